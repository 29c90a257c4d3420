//! Measuring: real-time threads, what they do each cycle, and what disturbs them.
//!
//! Floor 2. The only crate with unsafe code, all of it in `sys/`.

mod apart;
pub mod calibrate;
pub mod clock;
pub mod cycle;
mod failure;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod loads;
mod network;
pub mod process;
pub mod program;
pub mod quantity;
pub mod recorder;
pub mod scheduling;
pub mod session;
pub mod slot;
pub mod spike;
#[expect(unsafe_code, reason = "the one folder for calls that no safe crate wraps")]
mod sys;
pub mod task;
pub mod thread;
pub mod trials;
mod worker;
pub mod workloads;

pub use quantity::Quantity;
pub use recorder::Recorder;
pub use rtproof_host::facts::tasks::Policy;
pub use rtproof_model::EndReason;
pub use scheduling::LiveTasks;
pub use session::{Plan, Session, SessionError};
pub use slot::{Kept, Slot};
pub use spike::Spike;
pub use task::is_armed;
pub use thread::{Report, Started};
pub use worker::worker_main;
