//! The work behind `tune`: previews, the guardian, proving, exporting.

pub mod preview;
pub mod prove;
