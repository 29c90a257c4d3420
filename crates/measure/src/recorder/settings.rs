//! Settings of the flight recorder: CPUs, sizes, times.

use std::time::Duration;

use rtproof_host::{CpuList, tracefs::Rings};

/// How the kernel's rings are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Repeatedly, during the measurement: nothing stops.
    Stream,
    /// Only for an answer: recording stops, everything is read, recording goes on. Where one CPU
    /// does all, reading would take it from what is measured.
    Freeze,
}

/// Settings of a [`super::Recorder`].
#[derive(Clone, Debug)]
pub struct Settings {
    /// CPUs whose late wake-ups will be requested.
    pub measured: CpuList,
    /// Other CPUs that are recorded: those that wake and interrupt the measured ones.
    pub others: CpuList,
    /// CPUs that the recorder's own thread may run on; empty: any.
    pub housekeeping: CpuList,
    /// Nice value of the recorder's own thread.
    pub nice: i32,
    /// How the rings are read; `None`: as the machine needs it.
    pub mode: Option<Mode>,
    /// Ring of a measured CPU, kilobytes.
    pub measured_kb: u64,
    /// Ring of another CPU, kilobytes.
    pub others_kb: u64,
    /// Most memory of what was read, bytes.
    pub store_bytes: usize,
    /// Time between two readings.
    pub poll: Duration,
    /// A window begins so long before the wake-up was due, nanoseconds.
    pub lead_ns: u64,
    /// And ends so long after it ran, nanoseconds.
    pub tail_ns: u64,
    /// Longest wait for the events of a wake-up after it ran, nanoseconds.
    pub patience_ns: u64,
}

impl Settings {
    pub fn new(measured: CpuList, others: CpuList, housekeeping: CpuList) -> Self {
        Self {
            measured,
            others,
            housekeeping,
            nice: -15,
            mode: None,
            measured_kb: 4096,
            others_kb: 512,
            store_bytes: 64 << 20,
            poll: Duration::from_millis(20),
            lead_ns: 3_000_000,
            tail_ns: 100_000,
            patience_ns: 500_000_000,
        }
    }
}

impl Settings {
    pub(super) fn rings(&self) -> Rings {
        Rings {
            measured: self.measured.clone(),
            measured_kb: self.measured_kb,
            others: self.others.clone(),
            others_kb: self.others_kb,
        }
    }
}
