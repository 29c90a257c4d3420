//! One moment of a machine as `watch` shows it: what the samplers read and what was measured, as
//! data. What is not known is `None`, never 0; why stands in [`WatchFrame::unknown`].

use schemars::JsonSchema;
use serde::Serialize;

use rtproof_host::{CpuList, facts::tasks::Policy};

pub const SCHEMA: &str = "rtproof/watch/1";

/// One second of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct WatchFrame {
    pub schema: &'static str,
    /// When it was taken, nanoseconds since 1970.
    pub at_realtime_ns: u64,
    /// Time since the frame before: rates are counts over it, per second.
    pub span_ns: u64,
    pub host: Option<String>,
    pub kernel: Option<String>,
    /// Where latencies come from.
    pub source: WatchSource,
    /// Context switches of all CPUs per second.
    pub context_switches_per_s: Option<u64>,
    /// Hottest thermal zone that can be read without disturbing, 1/1000 degree Celsius.
    pub temp_max_mc: Option<i64>,
    /// Online CPUs, ascending by their number.
    pub cpus: Vec<WatchCpu>,
    /// Real-time tasks; null: they cannot be listed.
    pub tasks: Option<Vec<WatchTask>>,
    pub latencies: Vec<ThreadLatency>,
    /// All wake-ups since the last reset, in buckets; empty where nothing is measured.
    pub histogram: Vec<WatchBin>,
    /// Latency above which a wake-up is late.
    pub budget_ns: Option<u64>,
    /// Latency above which a wake-up is a spike.
    pub threshold_ns: Option<u64>,
    /// Spikes of the run so far.
    pub spikes_seen: Option<u64>,
    /// Latest spikes, newest first, 200 at most.
    pub spikes: Vec<WatchSpike>,
    /// Moments that were marked, and what the user must know, newest first.
    pub notes: Vec<WatchNote>,
    /// What is not known and why, a sentence each.
    pub unknown: Vec<String>,
}

impl WatchFrame {
    /// A frame of nothing.
    pub fn empty(source: WatchSource) -> Self {
        Self {
            schema: SCHEMA,
            at_realtime_ns: 0,
            span_ns: 0,
            host: None,
            kernel: None,
            source,
            context_switches_per_s: None,
            temp_max_mc: None,
            cpus: Vec::new(),
            tasks: None,
            latencies: Vec::new(),
            histogram: Vec::new(),
            budget_ns: None,
            threshold_ns: None,
            spikes_seen: None,
            spikes: Vec::new(),
            notes: Vec::new(),
            unknown: Vec::new(),
        }
    }
}

/// Where latencies come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WatchSource {
    pub kind: WatchSourceKind,
    /// What is measured, in words; empty: nothing.
    pub about: String,
    /// Load that runs now; null: not known or none of ours.
    pub load: Option<String>,
    /// Why no more data will come; null: it continues.
    pub ended: Option<String>,
    /// Record that it is written to.
    pub record: Option<String>,
}

/// Kind of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WatchSourceKind {
    Passive,
    /// Threads of this process measure.
    Measuring,
    /// The record of another process is read.
    Record,
    /// A running application is observed.
    Application,
}

/// Load, idle states and frequency of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct WatchCpu {
    pub cpu: u32,
    /// Whether it is isolated from the scheduler's domains.
    pub isolated: bool,
    /// Not idle, 1/1000 of the time.
    pub busy_permille: Option<u32>,
    /// Stolen by the hypervisor, 1/1000 of the time.
    pub steal_permille: Option<u32>,
    /// Idle states, shallow to deep; empty: unknown.
    pub idle: Vec<IdleShare>,
    /// Source of the idle states; null: none.
    pub idle_by: Option<IdleCounter>,
    pub freq_hz: Option<u64>,
    /// Temperature of its core, thousandths of a degree Celsius: with `--msr`, of CPUs that nobody
    /// measures.
    pub temp_mc: Option<i64>,
    /// Times that the CPU was throttled because of heat, in this span.
    pub throttled: Option<u64>,
    pub interrupts: Option<EventRate>,
    pub softirqs: Option<EventRate>,
    /// Times per second that a task was switched to; the idle task is not counted.
    pub switches_per_s: Option<u64>,
}

/// How often events of one kind happen, per second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EventRate {
    pub per_s: u64,
    /// The most frequent, three at most: name and rate.
    pub top: Vec<(String, u64)>,
}

/// Time in an idle state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct IdleShare {
    /// Name, e.g. `C6`.
    pub name: String,
    /// Share of the time, 1/1000.
    pub permille: u32,
}

/// Source of idle times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdleCounter {
    /// The kernel (cpuidle): what it asked for; counted when a state is left.
    Kernel,
    /// The CPU's residency counters (MSR): what the hardware did.
    Hardware,
}

/// A real-time task, and its share of the CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WatchTask {
    /// CPU that it last ran on.
    pub cpu: u32,
    pub tid: u32,
    pub comm: String,
    pub policy: Policy,
    /// Priority, 1 to 99; 0 for SCHED_DEADLINE.
    pub priority: u32,
    pub kernel_thread: bool,
    /// Time on a CPU, 1/1000 of the span; null: new, or not counted.
    pub share_permille: Option<u32>,
    pub cpus: Option<CpuList>,
    /// How many real-time tasks may take a CPU from it.
    pub outranked: u32,
    /// Names of the first three of them.
    pub outranked_by: Vec<String>,
}

/// Latency of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ThreadLatency {
    /// Number of the thread.
    pub thread: u32,
    /// CPU of the thread; null: several.
    pub cpu: Option<u32>,
    pub tid: u32,
    /// Workload or name of the thread.
    pub what: String,
    /// Policy and priority in words; empty: unknown.
    pub scheduling: String,
    /// Sampled wake-ups since the reset.
    pub n: u64,
    /// Wake-ups that were due while the thread was still late; null: not counted.
    pub missed: Option<u64>,
    /// Later than the budget (or than `--over`); null: there is none.
    pub late: Option<u64>,
    /// Typical latency of the last second: median, of an application the mean.
    pub now_ns: Option<u64>,
    /// Worst of the last second.
    pub second_ns: Option<u64>,
    /// Worst of the last 60 seconds.
    pub minute_ns: Option<u64>,
    /// Worst since the reset.
    pub max_ns: Option<u64>,
    /// Worst of each of the last 120 seconds, oldest first.
    pub history_ns: Vec<Option<u64>>,
}

/// A bucket of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WatchBin {
    /// Smallest latency in it.
    pub low_ns: u64,
    /// Largest latency in it.
    pub high_ns: u64,
    pub n: u64,
}

/// A late wake-up that `watch` reports, with its main cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WatchSpike {
    /// When it was due, nanoseconds since 1970.
    pub at_realtime_ns: u64,
    pub thread: u32,
    /// When it was due on the clock of its source: with the thread its identity.
    pub due_ns: u64,
    pub cpu: u32,
    pub latency_ns: u64,
    /// Cause with the largest share, an id of the list of causes; null: not explained.
    pub cause: Option<String>,
    /// The cause in words.
    pub title: String,
    /// Culprit; empty if there is none.
    pub culprit: String,
    /// Whether no event was lost or missing.
    pub complete: bool,
    /// What would remove it; null: not known.
    pub knob: Option<String>,
    /// Whether its picture is available.
    pub has_picture: bool,
}

/// A note with the time it was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WatchNote {
    /// When, nanoseconds since 1970.
    pub at_realtime_ns: u64,
    pub text: String,
}
