//! Workloads: what a measured thread does each cycle. One file each, one list.
//!
//! To add one: copy `_template.rs`, fill it in, add one line to [`WORKLOADS`].

#[cfg(test)]
#[path = "_template.rs"]
mod template;
mod timer_wakeup;

use std::sync::atomic::AtomicBool;

pub use timer_wakeup::TimerWakeup;

use crate::{cycle::Cycle, thread::EndReason};

/// What a measured thread does each cycle.
pub trait Workload: Sync + std::fmt::Debug {
    /// Name on the command line and in records.
    fn name(&self) -> &'static str;
    /// What it measures and what it does not, in a line or two.
    fn about(&self) -> &'static str;
    /// Runs cycles until they end. Called once, after arming; each implementation calls
    /// [`Cycle::run`] with its own wait, so that the hot path is compiled as one function.
    fn run(&self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason;
    /// Address of the compiled hot path, whose code is locked into memory.
    fn code(&self) -> usize;
}

/// Every workload.
pub const WORKLOADS: &[&dyn Workload] = &[&TimerWakeup];
