//! What the user requested.

use std::collections::BTreeMap;

use rtproof_host::{CpuList, facts::tasks::Policy};
use rtproof_model::run::Clock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Options of a run, resolved: no defaults are left to guess.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Options {
    /// CPUs that are measured: the real-time CPUs.
    pub cpus: CpuList,
    /// CPUs that run the tool's own housekeeping.
    pub housekeeping: CpuList,
    /// CPUs that the loads run on.
    pub load_cpus: CpuList,
    pub policy: Policy,
    /// Requested real-time priority, 1 to 99; 0 for SCHED_OTHER.
    pub priority: u32,
    pub period_ns: u64,
    /// Duration of the measurement.
    pub duration_ns: u64,
    /// How the first wake-ups of the CPUs lie to each other.
    pub start: Start,
    /// Clock that was waited for and read; not there: CLOCK_MONOTONIC.
    #[serde(default, skip_serializing_if = "Clock::is_monotonic")]
    pub clock: Clock,
    /// Latency that /dev/cpu_dma_latency was held at, in microseconds; `None`: not touched.
    pub dma_latency_us: Option<u32>,
    /// Load phases in order; they cover the duration.
    pub phases: Vec<Phase>,
    /// What the machine has to meet.
    pub requirement: Requirement,
    /// Profile that the checks were made with, as the judge's JSON; empty: the default one.
    #[serde(default)]
    pub profile: String,
    /// Checks left out, with the reason.
    #[serde(default)]
    pub skipped: BTreeMap<String, String>,
    /// Wake-ups later than this are spikes; `None`: the threshold follows the machine.
    #[serde(default)]
    pub spike_ns: Option<u64>,
    /// Whether kernel events were to be recorded, to explain the spikes.
    #[serde(default)]
    pub trace: bool,
}

impl Options {
    /// Name of the load phase at a time, nanoseconds after the first wake-up; empty: there is none.
    pub fn phase_at(&self, at_ns: u64) -> &str {
        let found = self.phases.iter().find(|p| (p.from_ns..p.to_ns).contains(&at_ns));
        found.map_or("", |phase| &phase.name)
    }
}

/// One phase of the run: the loads that run from `from_ns` to `to_ns` after the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Name, e.g. `idle` or `cpu+memory+net+disk`.
    pub name: String,
    /// Loads, e.g. `cpu`, `cmd:make -j4`; empty when idle.
    pub loads: Vec<String>,
    pub from_ns: u64,
    /// End, nanoseconds after the first wake-up.
    pub to_ns: u64,
}

/// How first wake-ups lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Start {
    /// All CPUs at the same instants.
    Aligned,
    /// CPU i of n at i/n of the period.
    Staggered,
}

/// What the machine has to meet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Requirement {
    /// A wake-up later than this is late. `None`: nothing is judged.
    pub budget_ns: Option<u64>,
    /// How late wake-ups count.
    pub class: Class,
    /// Confidence in parts per million: 950 000 is 95 %.
    pub confidence_ppm: u32,
    /// For class 100: groups of late wake-ups are to be fewer than this many per 1000 hours, at the
    /// confidence.
    pub rate_per_1000h: u64,
}

/// Class of a requirement, as the field names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Class {
    /// Soft real-time: quantiles are reported, nothing is judged.
    #[serde(rename = "soft")]
    Soft,
    /// 95 % real-time: at most one wake-up in twenty may be late.
    #[serde(rename = "95")]
    NinetyFive,
    /// 100 % real-time: groups of late wake-ups are fewer than the rate asked for.
    #[serde(rename = "100")]
    Hundred,
    /// Life-critical: measurement cannot certify it.
    #[serde(rename = "safe")]
    Safe,
}
