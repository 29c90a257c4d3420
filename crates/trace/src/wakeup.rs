//! One wake-up of a thread: when it should have run, and when it did.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A wake-up. `ran_ns - due_ns` is its latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WakeUp {
    pub tid: i32,
    /// CPU it ran on.
    pub cpu: u32,
    /// When it should have run, on the clock of the trace.
    pub due_ns: u64,
    pub ran_ns: u64,
    /// What `due_ns` and `ran_ns` are.
    pub how: How,
}

impl WakeUp {
    pub const fn latency_ns(&self) -> u64 {
        self.ran_ns.saturating_sub(self.due_ns)
    }
}

/// How the times of a wake-up are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// The thread itself: due is the deadline that it slept for, ran is its own clock reading.
    Measured,
    /// From the trace: due is when its timer was to expire, ran is when it was switched to.
    Timer,
    /// From the trace: due is when it was woken (sched_waking), ran as above.
    Woken,
    /// No wake-up: a section of code with interrupts or preemption off, from its begin to its end,
    /// as the kernel's tracer measured it.
    Section,
    /// No wake-up: a gap in the work of a thread that polls the clock (tracers hwlat, osnoise).
    Gap,
}
