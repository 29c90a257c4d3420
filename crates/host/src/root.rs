//! root
/// Placeholder.
pub struct Root;
