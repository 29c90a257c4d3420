//! What a run is to measure, as requested: defaults are still open.

use std::path::PathBuf;

use rtproof_measure::{clock::Clock, loads::LoadSet};
use rtproof_record::{Class, Start};

use crate::intent::Requested;

/// What a run is requested to measure and to prove.
#[derive(Clone, Debug)]
pub struct Request {
    /// Duration of the measurement; `None`: a minute, or what the samples take.
    pub duration_ns: Option<u64>,
    /// Wake-ups due on each CPU that end it.
    pub samples: Option<u64>,
    /// Latency budget; `None`: that of the profile, else nothing is judged.
    pub budget_ns: Option<u64>,
    /// Class of the requirement.
    pub class: Class,
    /// Confidence of the verdict.
    pub confidence_ppm: u32,
    /// Highest acceptable rate of late wake-ups in class 100.
    pub rate_per_1000h: u64,
    /// CPUs to measure, as a list; `None`: those of the profile, else the isolated ones, else all.
    pub cpus: Option<String>,
    /// Profile and checks left out.
    pub intent: Requested,
    /// Priority; `None`: that of the profile, else [`crate::intent::PRIORITY`].
    pub priority: Option<u32>,
    /// Whether the threads are real-time threads (`SCHED_FIFO`).
    pub is_real_time: bool,
    /// Period; `None`: that of the profile, else [`crate::intent::PERIOD_NS`].
    pub period_ns: Option<u64>,
    /// When the CPUs start.
    pub start: Start,
    /// Load; `None`: a third idle, then the default load.
    pub load: Option<LoadSet>,
    /// CPUs of the load, as a list; `None`: all that are not isolated.
    pub load_cpus: Option<String>,
    /// Folder for the files of loads; `None`: that of the record.
    pub load_dir: Option<PathBuf>,
    /// Clock that is waited for and read.
    pub clock: Clock,
    /// Limit of `/dev/cpu_dma_latency`; `None`: it is not touched.
    pub dma_latency_us: Option<u32>,
    /// Threshold of spikes; `None`: the budget, else one that follows the machine.
    pub spike_ns: Option<u64>,
    /// Whether kernel events are recorded, to explain spikes.
    pub trace: bool,
    /// Where record and report go: a folder, or a name without extension.
    pub output: PathBuf,
}

impl Request {
    /// A run of some length into a folder or to a name; the rest by default.
    pub fn new(duration_ns: u64, output: impl Into<PathBuf>) -> Self {
        Self {
            duration_ns: Some(duration_ns),
            samples: None,
            budget_ns: None,
            class: Class::Hundred,
            confidence_ppm: 950_000,
            rate_per_1000h: 125,
            cpus: None,
            intent: Requested::default(),
            priority: None,
            is_real_time: true,
            period_ns: None,
            start: Start::Staggered,
            load: None,
            load_cpus: None,
            load_dir: None,
            clock: Clock::Monotonic,
            dma_latency_us: None,
            spike_ns: None,
            trace: true,
            output: output.into(),
        }
    }
}
