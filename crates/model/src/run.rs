//! What a measuring thread reports of itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How the name of a workload begins that is a thread of a program of `rtproof run`: the rest is
/// the thread's name.
pub const APPLICATION: &str = "app:";

/// The clock that a measurement is made by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// CLOCK_MONOTONIC: never set, its rate adjusted by NTP.
    #[default]
    Monotonic,
    /// CLOCK_MONOTONIC_RAW: never set, its rate not adjusted. No timer runs on it.
    Raw,
    /// CLOCK_REALTIME: the wall clock, which can be set at any time.
    Realtime,
    /// CLOCK_BOOTTIME: as CLOCK_MONOTONIC, and goes on while the machine is suspended.
    Boottime,
    /// CLOCK_TAI: as CLOCK_REALTIME, without leap seconds.
    Tai,
}

impl Clock {
    /// Every clock, in the order of `--help`.
    pub const ALL: [Self; 5] =
        [Self::Monotonic, Self::Raw, Self::Realtime, Self::Boottime, Self::Tai];

    /// Its name on the command line.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Monotonic => "monotonic",
            Self::Raw => "raw",
            Self::Realtime => "realtime",
            Self::Boottime => "boottime",
            Self::Tai => "tai",
        }
    }

    /// Its name in clock_gettime(2).
    pub const fn name(self) -> &'static str {
        match self {
            Self::Monotonic => "CLOCK_MONOTONIC",
            Self::Raw => "CLOCK_MONOTONIC_RAW",
            Self::Realtime => "CLOCK_REALTIME",
            Self::Boottime => "CLOCK_BOOTTIME",
            Self::Tai => "CLOCK_TAI",
        }
    }

    /// Whether it is the one that a run has unless another is requested.
    pub fn is_monotonic(&self) -> bool {
        *self == Self::Monotonic
    }

    /// Whether it is at a fixed distance from CLOCK_MONOTONIC as long as nobody sets it: the kernel
    /// makes both of one count and one rate (kernel/time/timekeeping.c).
    pub const fn keeps_its_distance(self) -> bool {
        !matches!(self, Self::Raw)
    }
}

/// What measuring costs on this machine, measured before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Median cost of reading the clock, picoseconds.
    pub clock_read_ps: u64,
    /// Smallest step between two clock readings, nanoseconds.
    pub clock_step_ns: u64,
    /// clock_getres of the clock of the run, nanoseconds; 1 with high-resolution timers.
    pub clock_getres_ns: u64,
    /// Cost of recording one sample, picoseconds.
    pub record_ps: u64,
    /// Shortest period the machine can turn round: median excess of sleeps of 50 µs,
    /// nanoseconds.
    pub floor_ns: u64,
}

/// Why a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Its last wake-up was measured.
    Complete,
    /// The run was stopped.
    Stopped,
    /// Nothing emptied its results for too long: real-time threads starve the machine.
    Starved,
    /// Its CPU went offline or it was moved away from it.
    CpuLost,
    Panicked,
    /// Its workload could not go on; a note says why.
    Failed,
}
