//! Real-time threads, workloads, loads, and the recorder of kernel events.
#![doc = include_str!("../README.md")]

mod apart;
pub mod calibrate;
pub mod clock;
pub mod cycle;
#[cfg(any(test, feature = "testing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod loads;
pub mod program;
pub mod recorder;
pub mod session;
pub mod slot;
#[expect(unsafe_code, reason = "the one folder for calls that no safe crate wraps")]
mod sys;
pub mod task;
pub mod thread;
pub mod trials;
pub mod workloads;

pub use recorder::Recorder;
pub use session::{Session, SessionError, SessionPlan};
pub use slot::{KeptSamples, LateWakeUp, Slot};
pub use sys::{bind_memory, memory_is_bound_to};
pub use task::{LiveTasks, is_armed};
pub use thread::{StartedThread, ThreadReport};

pub use rtproof_host::facts::tasks::Policy;
pub use rtproof_model::EndReason;

pub use crate::sys::perf::{Queue, TakenSignal, inherited, keep_ended_children, unblock};

use serde::{Deserialize, Serialize};

use crate::loads::worker;

/// Why a load or a workload could not go on: the value, what was expected, the next step. That of a
/// load crosses a pipe as text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Failure {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// What a sample of a workload is: the same nanoseconds mean different things on an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// From the moment the thread should have run to the moment it did.
    Latency,
    /// From one wake-up to the next, less the period.
    Interval,
    /// How long a piece of work took.
    Duration,
    /// How long the CPU was away from a loop that never sleeps.
    Gap,
    /// From one thread's signal to the other thread's first instruction.
    HandOff,
    /// From one thread's signal over another thread and back.
    RoundTrip,
    /// How late a cycle was as the measured program itself says.
    Lateness,
}

impl Quantity {
    pub const ALL: [Self; 7] = [
        Self::Latency,
        Self::Interval,
        Self::Duration,
        Self::Gap,
        Self::HandOff,
        Self::RoundTrip,
        Self::Lateness,
    ];

    /// For axes and heads of columns.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Interval => "interval minus period",
            Self::Duration => "duration",
            Self::Gap => "gap",
            Self::HandOff => "hand-off time",
            Self::RoundTrip => "round trip",
            Self::Lateness => "lateness",
        }
    }

    /// Name in records and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Interval => "interval",
            Self::Duration => "duration",
            Self::Gap => "gap",
            Self::HandOff => "hand_off",
            Self::RoundTrip => "round_trip",
            Self::Lateness => "lateness",
        }
    }

    /// The quantity of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|quantity| quantity.name() == name)
    }

    /// Whether a sample of a period or more means that wake-ups were missed: the sample is counted
    /// from the moment at which the cycle was due. For the others the deadline view shows nothing
    /// beyond the number of missed cycles.
    pub const fn is_lateness(self) -> bool {
        matches!(self, Self::Latency | Self::Interval | Self::Lateness)
    }
}

// The process that rtproof starts of itself: a load, or a trial's child.

/// Runs the hidden subcommand: `args` are the arguments behind the subcommand
/// itself, as [`Runner::start`](crate::loads::Runner::start) gives them. Returns when the load has
/// ended; results go to stdout. Call it first thing in `main`, before arguments are parsed: the
/// `fork` load measures how fast this binary starts and ends.
///
/// # Errors
/// What kept the load from working. The caller may print it to stderr and must exit non-zero; the
/// parent has it already.
pub fn worker_main(args: &[String]) -> Result<(), Failure> {
    match args {
        [what, bytes] if what == trials::CHILD => trials::child(bytes),
        load => worker::main(load),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_are_those_of_serde() {
        for quantity in Quantity::ALL {
            assert_eq!(Quantity::from_name(quantity.name()), Some(quantity));
            assert!(!quantity.words().is_empty());
        }
        assert_eq!(Quantity::from_name("speed"), None);
    }
}
