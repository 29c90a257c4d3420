//! A clock other than CLOCK_MONOTONIC: how a thread waits for it and reads it.
//!
//! All times of a run stay on CLOCK_MONOTONIC, as kernel events are. The other clock is at a fixed
//! distance from it until it is set (`kernel/time/timekeeping.c`: one count, one rate), so that a
//! changed distance is a step. A step is no latency: it is counted beside the samples.

mod ledger;
mod source;
mod timekeeper;
mod watcher;

pub use ledger::{Ledger, Steps};
pub use rtproof_model::run::Clock;

pub(crate) use self::{
    source::{KernelClock, TimeSource, can_sleep, id},
    timekeeper::{Timekeeper, Woken, code},
    watcher::StepWatcher,
};
