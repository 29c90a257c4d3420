//! What starting a program and waiting for it needs of the system, beyond what safe crates have.

pub use crate::sys::numa::{bind_memory, memory_is_bound_to};
pub use crate::sys::process::{Queue, Taken, inherited, keep_ended_children, unblock};
