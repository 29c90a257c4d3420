//! What a measuring thread reports of itself.

use serde::{Deserialize, Serialize};

/// What measuring costs on this machine, measured before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Median cost of reading the clock, picoseconds.
    pub clock_read_ps: u64,
    /// Smallest step between two clock readings, nanoseconds.
    pub clock_step_ns: u64,
    /// clock_getres(CLOCK_MONOTONIC), nanoseconds; 1 with high-resolution timers.
    pub clock_getres_ns: u64,
    /// Cost of recording one sample, picoseconds.
    pub record_ps: u64,
    /// Shortest period the machine can turn round: median excess of sleeps of 50 µs,
    /// nanoseconds.
    pub floor_ns: u64,
}

/// Why a thread stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum EndReason {
    /// Its last wake-up was measured.
    Complete,
    /// The run was stopped.
    Stopped,
    /// Nothing emptied its results for too long: real-time threads starve the machine.
    Starved,
    /// Its CPU went offline or it was moved away from it.
    CpuLost,
    /// It panicked.
    Panicked,
    /// Its workload could not go on; a note says why.
    Failed,
}
