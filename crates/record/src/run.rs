//! A run in memory: what a record file holds, and all that judging and rendering may use.

pub use rtproof_host::sample::{HostCpuSecond, HostSecond};
use rtproof_host::{Facts, facts::tasks::Policy};
use rtproof_model::run::APPLICATION;
pub use rtproof_model::run::{Cost, EndReason};
use rtproof_model::{Finding, Verdict};
use rtproof_stats::{Histogram, Moments};
pub use rtproof_stats::{Sample, Totals};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Beside, Effects, Options, Spikes, imported::Imported, pairs};

/// One run, read back from its record.
#[derive(Clone, Debug)]
pub struct Run {
    /// Identity, times, how it ended.
    pub meta: Meta,
    pub options: Options,
    /// The machine before the first wake-up.
    pub facts_start: Facts,
    /// The machine after the last one; `None` in a torn record.
    pub facts_end: Option<Facts>,
    /// What the measuring itself costs.
    pub cost: Cost,
    /// One per measured CPU.
    pub threads: Vec<Thread>,
    /// Host counters, one row a second.
    pub host: Vec<HostSecond>,
    pub loads: Vec<Load>,
    /// What the user must know, in order of time.
    pub notes: Vec<Note>,
    /// Spikes and their causes; `None`: the record is older than those, or was torn before.
    pub spikes: Option<Spikes>,
    /// What changes of the machine did to latency; `None`: none were tried.
    pub effects: Option<Effects>,
    /// Changes of its threads from outside, and idle states of its CPUs; empty in older records.
    pub beside: Beside,
    /// What another tool measured; `None`: rtproof measured it. Else there are no threads, and
    /// options, cost and facts say nothing.
    pub imported: Option<Imported>,
}

/// What was judged of a run, the judge's answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    pub findings: Vec<Finding>,
    pub verdict: Verdict,
    /// The verdict in one line, for `sqlite3` and lists of runs.
    pub summary: String,
}

/// Identity of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Meta {
    /// Random identity, 32 hex digits.
    pub run_id: String,
    /// Version of the tool that measured.
    pub tool_version: String,
    /// Command line of the run.
    pub command: Vec<String>,
    /// Wall-clock time of the first wake-up, nanoseconds since 1970.
    pub started_realtime_ns: u64,
    /// CLOCK_MONOTONIC of the first wake-up: origin of all times in the record.
    pub started_monotonic_ns: u64,
    /// How the run ended; `None` in a torn record.
    pub ended: Option<RunEnd>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "how")]
pub enum RunEnd {
    /// The requested duration was measured.
    Complete,
    /// A signal ended it.
    Interrupted {
        /// Name of the signal, e.g. `SIGINT`.
        signal: String,
    },
    /// The tool ended it.
    Aborted { why: String },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    pub info: ThreadInfo,
    /// Totals of the run.
    pub totals: Totals,
    pub end: Option<ThreadEnd>,
    /// Wake-up view, whole run, fine grid.
    pub wake: Histogram,
    /// Lateness of the missed wake-ups, whole run, fine grid. Wake-up view + this = deadline view.
    pub missed: Histogram,
    /// The largest samples of the run, largest first. Exact: no larger sample is left out.
    pub top: Vec<Sample>,
    /// Second by second; of a long run that was read by [`read_shown`](crate::read_shown) as many
    /// seconds in one as keep it short.
    pub seconds: Vec<Second>,
}

impl Thread {
    /// What its wake-ups cover: from the first one that was due to the last one, sampled or missed,
    /// nanoseconds after the origin. A single wake-up is a moment and covers nothing.
    pub fn covered(&self) -> (u64, u64) {
        let from_ns = self.info.first_due_ns;
        let periods = self.totals.accounted().saturating_sub(1);
        let to_ns = from_ns.saturating_add(periods.saturating_mul(self.info.period_ns));
        // A program's thread may have no period: no more than was written.
        let is_program = self.info.workload.starts_with(APPLICATION);
        let last_ns = if is_program { self.written_to_ns().max(from_ns) } else { u64::MAX };
        (from_ns, to_ns.min(last_ns))
    }

    /// Until when its seconds are in the record.
    pub fn written_to_ns(&self) -> u64 {
        self.seconds.last().map_or(0, |second| second.to_ns)
    }
}

/// Fixed properties of a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadInfo {
    /// 0, 1, ...
    pub number: u32,
    /// CPU it is pinned to.
    pub cpu: u32,
    pub tid: u32,
    /// What it measures, e.g. `timer-wakeup`.
    pub workload: String,
    pub policy: Policy,
    pub priority: u32,
    /// Whether its memory is locked.
    pub locked: bool,
    pub period_ns: u64,
    /// First wake-up, nanoseconds after the origin.
    pub first_due_ns: u64,
}

/// How a thread ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadEnd {
    pub reason: EndReason,
    /// Wake-ups that were due, from the schedule alone: must equal sampled + missed.
    pub scheduled: u64,
    /// Minor page faults while armed.
    pub faults_minor: u64,
    /// Major page faults while armed.
    pub faults_major: u64,
    /// CPU time used while armed, nanoseconds.
    pub cpu_time_ns: u64,
    /// Involuntary context switches while armed.
    pub preemptions: u64,
}

/// One second of one thread. Longer when nobody could collect: nothing is dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct Second {
    /// Due time of the first wake-up it covers, nanoseconds after the origin.
    pub from_ns: u64,
    /// Due time of the first wake-up that it no longer covers.
    pub to_ns: u64,
    pub totals: Totals,
    /// Due time of the largest sample, nanoseconds after the origin.
    pub max_at_ns: u64,
    /// Wake-up view, coarse grid, non-empty buckets (bucket, count) ascending.
    pub wake: Vec<(u16, u64)>,
    /// Lateness of missed wake-ups, likewise.
    pub missed: Vec<(u16, u64)>,
    /// Intervals from one wake-up to the next; empty where the workload keeps none.
    pub intervals: Moments,
}

impl Second {
    /// Adds what came after.
    pub(crate) fn merge(&mut self, later: &Self) {
        if later.totals.wake.max() > self.totals.wake.max() {
            self.max_at_ns = later.max_at_ns;
        }
        self.to_ns = later.to_ns;
        self.totals.merge(&later.totals);
        self.intervals.merge(&later.intervals);
        pairs::merge(&mut self.wake, &later.wake);
        pairs::merge(&mut self.missed, &later.missed);
    }
}

/// One load that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// Name, e.g. `memory`.
    pub name: String,
    /// What it did, in words: size, threads, tool.
    pub detail: String,
    /// Unit of its work, e.g. `bytes`, `operations`.
    pub unit: String,
    pub work: u64,
    /// Start, nanoseconds after the origin.
    pub from_ns: u64,
    /// End, nanoseconds after the origin.
    pub to_ns: u64,
    /// What went wrong with it.
    pub error: Option<String>,
}

/// Something that the user must know of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// Nanoseconds after the origin; 0 before the start.
    pub at_ns: u64,
    /// Stable identifier, e.g. `no-rt-right`.
    pub id: String,
    /// What is so and the next step to take.
    pub text: String,
    /// Whether it takes force from the verdict: an accepted run must have none.
    pub weakens: bool,
}
