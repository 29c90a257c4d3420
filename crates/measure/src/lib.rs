//! Measuring: real-time threads, what they do each cycle, and what disturbs them.
//!
//! Floor 2. The only crate with unsafe code, all of it in `sys`.

pub mod loads;
