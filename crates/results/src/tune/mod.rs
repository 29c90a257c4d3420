//! What `tune` plans, does and finds, as data.

pub mod active;
pub mod exported;
pub mod outcome;
pub mod plan;
pub mod verified;
