//! What is watched beside a measurement: changes of its threads from outside, and the idle states
//! of its CPUs.

use crate::error::Contradiction;
pub use rtproof_host::idle::{IdleState, IdleTime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Marks kept, at most.
pub const MARKS_MAX: usize = 1000;
/// Readings of idle states, at most: a longer run has longer intervals.
pub const IDLE_READINGS_MAX: u64 = 600;
/// Idle states of one CPU, at most: the kernel has ten (include/linux/cpuidle.h).
pub const STATES_MAX: u32 = 64;

/// A measured thread that was changed from outside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mark {
    pub thread: u32,
    /// When it was last seen as before, nanoseconds after the origin.
    pub since_ns: u64,
    /// When it was seen as it is now, nanoseconds after the origin.
    pub at_ns: u64,
    pub kind: MarkKind,
    /// What it was, e.g. `SCHED_OTHER`.
    pub before: String,
    /// What it is, e.g. `SCHED_FIFO 1`.
    pub after: String,
}

/// What of a thread was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarkKind {
    /// Policy, priority, nice value or deadline (chrt, renice).
    Policy,
    /// The CPUs that it may run on (taskset).
    Affinity,
}

/// Idle times of one reading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct IdleReading {
    /// Time of the reading, nanoseconds after the origin.
    pub at_ns: u64,
    /// States that were entered, by CPU and state.
    pub times: Vec<IdleTime>,
}

/// What else was recorded during the run: marks and idle states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Beside {
    /// Changes from outside, in order of time.
    pub marks: Vec<Mark>,
    /// Idle states there are, by CPU and state.
    pub states: Vec<IdleState>,
    /// Readings, in order of time.
    pub idle: Vec<IdleReading>,
}

/// What one second brought of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BesideTick {
    pub marks: Vec<Mark>,
    /// Idle states; once.
    pub states: Vec<IdleState>,
    /// Idle times, with the host counters of the same tick. `None`: not read this time.
    pub idle: Option<Vec<IdleTime>>,
}

impl Beside {
    /// Whether its parts fit together and to the threads (by number) of the run.
    pub(crate) fn check(&self, threads: &[(u32, u32)]) -> Result<(), Contradiction> {
        for mark in &self.marks {
            if mark.since_ns > mark.at_ns {
                return Err(format!("a mark from {} to {} ns", mark.since_ns, mark.at_ns).into());
            }
            if threads.iter().all(|(number, _)| *number != mark.thread) {
                return Err(format!("a mark of thread {}, which is not there", mark.thread).into());
            }
        }
        let known = |time: &IdleTime| {
            let key = (time.cpu, time.state);
            self.states.binary_search_by_key(&key, |state| (state.cpu, state.state)).is_ok()
        };
        let stray = self.idle.iter().flat_map(|reading| &reading.times).find(|time| !known(time));
        stray.map_or(Ok(()), |time| {
            Err(format!("idle state {} of CPU {}, which is not there", time.state, time.cpu).into())
        })
    }

    /// Per idle state of each CPU: how often entered, and time in it, over all readings.
    pub fn idle_sums(&self) -> Vec<(&IdleState, u64, u64)> {
        let mut sums: Vec<_> = self.states.iter().map(|state| (state, 0_u64, 0_u64)).collect();
        for time in self.idle.iter().flat_map(|reading| &reading.times) {
            let key = (time.cpu, time.state);
            if let Ok(at) = sums.binary_search_by_key(&key, |(state, ..)| (state.cpu, state.state))
            {
                sums[at].1 = sums[at].1.saturating_add(time.entered);
                sums[at].2 = sums[at].2.saturating_add(time.residency_us);
            }
        }
        sums
    }
}
