//! Changing a machine: one [`Change`] at a time, written down before it is made, read back after,
//! and taken back exactly.
//!
//! What is to change and why is the judge's (`rtproof_judge::plan`); here is how. Everything that
//! rtproof ever writes to a machine goes through this module.

pub mod change;
pub mod drift;
pub mod state;

pub use change::{Change, Compare, IrqName, Scheduling, TaskName, UnitWish};
pub use state::{Bytes, State};
