//! A run in memory: what a record file holds, and all that judging and rendering may use.

pub use rtproof_host::{
    idle::{CpuIdleState, IdleTime},
    sample::{HostCpuSecond, HostSecond},
};
pub use rtproof_model::run::{Cost, EndReason};
pub use rtproof_stats::{Sample, Totals};

use std::{cmp::Ordering, collections::BTreeMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_host::{CpuList, Facts, facts::tasks::Policy, flatten::FactRow};
use rtproof_model::{
    Finding, Verdict,
    run::{APPLICATION, Clock},
};
use rtproof_stats::{Histogram, Layout, Moments};

use crate::effects::Imported;
use crate::error::Contradiction;
use crate::{EffectTick, Effects, RecordedSpikes, SpikeTick};

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
    pub loads: Vec<RecordedLoad>,
    /// What the user must know, in order of time.
    pub notes: Vec<Note>,
    /// Spikes and their causes; `None`: the record is older than those, or was torn before.
    pub spikes: Option<RecordedSpikes>,
    /// What changes of the machine did to latency; `None`: none were tried.
    pub effects: Option<Effects>,
    /// Changes of its threads from outside, and idle states of its CPUs; empty in older records.
    pub surroundings: Surroundings,
    /// What another tool measured; `None`: rtproof measured it. Else there are no threads, and
    /// options, cost and facts have no meaning.
    pub imported: Option<Imported>,
}

/// Judgement of a run.
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

/// One measured thread of a run, with its histograms and samples.
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

/// One second of one thread. Longer if collecting was delayed: nothing is dropped.
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
        merge(&mut self.wake, &later.wake);
        merge(&mut self.missed, &later.missed);
    }
}

/// One load that ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordedLoad {
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
    /// The fact and the next step.
    pub text: String,
    /// Whether it takes force from the verdict: an accepted run must have none.
    pub weakens: bool,
}

// Surroundings of a measurement: changes of its threads from outside, and the idle states
// of its CPUs.

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
pub struct Surroundings {
    /// Changes from outside, in order of time.
    pub marks: Vec<Mark>,
    /// Idle states there are, by CPU and state.
    pub states: Vec<CpuIdleState>,
    /// Readings, in order of time.
    pub idle: Vec<IdleReading>,
}

/// What one second brought of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SurroundingsTick {
    pub marks: Vec<Mark>,
    /// Idle states of the CPUs, reported once a run.
    pub states: Vec<CpuIdleState>,
    /// Idle times, with the host counters of the same tick. `None`: not read this time.
    pub idle: Option<Vec<IdleTime>>,
}

impl Surroundings {
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
    pub fn idle_sums(&self) -> Vec<(&CpuIdleState, u64, u64)> {
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

// What the user requested.

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
    pub class: BudgetClass,
    /// Confidence in parts per million: 950 000 is 95 %.
    pub confidence_ppm: u32,
    /// For class 100: late episodes are to be fewer than this many per 1000 hours, at the
    /// confidence.
    pub rate_per_1000h: u64,
    /// For class 95: longest stretches of late wake-ups to allow for; `None`: as long as the run
    /// can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub episode_ns: Option<u64>,
}

/// Class of a requirement, as the field names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum BudgetClass {
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

// Histogram of one second as bytes: ascending (bucket, count) pairs, delta and LEB128.
//
// A second of one thread touches some twenty to fifty buckets; two or three bytes each keep a
// 64-CPU machine near 10 kB a second (docs/adr/0003-per-second-histograms-as-blobs.md).

/// Bytes of ascending pairs.
pub(crate) fn encode(pairs: &[(u16, u64)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(pairs.len() * 3);
    let mut previous = 0;
    for &(bucket, n) in pairs {
        push(&mut bytes, u64::from(bucket - previous));
        push(&mut bytes, n);
        previous = bucket;
    }
    bytes
}

fn push(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Pairs of bytes; buckets ascend and lie in `layout`, counts are positive.
pub(crate) fn decode(mut bytes: &[u8], layout: Layout) -> Result<Vec<(u16, u64)>, Contradiction> {
    let mut pairs = Vec::with_capacity(bytes.len() / 2);
    let mut previous: u64 = 0;
    while !bytes.is_empty() {
        let delta = pull(&mut bytes)?;
        let n = pull(&mut bytes)?;
        let bucket = previous.saturating_add(delta);
        if bucket >= layout.len() as u64 {
            return Err(format!("bucket {bucket} of {}", layout.len()).into());
        }
        if n == 0 || (delta == 0 && !pairs.is_empty()) {
            return Err(format!("bucket {bucket} is empty or comes twice").into());
        }
        pairs.push((bucket as u16, n)); // a grid has fewer than 2^16 buckets
        previous = bucket;
    }
    Ok(pairs)
}

fn pull(bytes: &mut &[u8]) -> Result<u64, Contradiction> {
    let mut value = 0;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or("a number is cut off")?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err("a number is longer than 63 bits".into())
}

/// Whether buckets ascend, lie in `layout` and hold something: what [`encode`] relies on.
pub(crate) fn check_pairs(pairs: &[(u16, u64)], layout: Layout) -> Result<(), Contradiction> {
    let ascending = pairs.windows(2).all(|pair| pair[0].0 < pair[1].0);
    let inside = pairs.last().is_none_or(|&(bucket, _)| usize::from(bucket) < layout.len());
    let positive = pairs.iter().all(|&(_, n)| n > 0 && n <= i64::MAX as u64);
    if ascending && inside && positive {
        return Ok(());
    }
    Err("its buckets do not ascend within the grid or are empty".into())
}

/// Sum of the counts; saturates.
pub(crate) fn total(pairs: &[(u16, u64)]) -> u64 {
    pairs.iter().fold(0, |sum, &(_, n)| sum.saturating_add(n))
}

/// Adds pairs to others; both ascend.
pub(crate) fn merge(into: &mut Vec<(u16, u64)>, more: &[(u16, u64)]) {
    let mut sum = Vec::with_capacity(into.len().max(more.len()));
    let (mut a, mut b) = (&into[..], more);
    while let (Some((&x, a_rest)), Some((&y, b_rest))) = (a.split_first(), b.split_first()) {
        match x.0.cmp(&y.0) {
            Ordering::Equal => {
                sum.push((x.0, x.1.saturating_add(y.1)));
                (a, b) = (a_rest, b_rest);
            }
            Ordering::Less => {
                sum.push(x);
                a = a_rest;
            }
            Ordering::Greater => {
                sum.push(y);
                b = b_rest;
            }
        }
    }
    sum.extend_from_slice(a);
    sum.extend_from_slice(b);
    *into = sum;
}

// What a session hands to the writer: the head before the first wake-up, a tick a second, the
// tail.

/// How many of a thread's largest samples are kept.
pub const TOP_MAX: usize = 64;

/// All that is known before the first wake-up.
#[derive(Clone, Debug)]
pub struct RunHead {
    /// Identity; `ended` is ignored. The times may be estimates until a tick brings the
    /// [`ClockOrigin`].
    pub meta: Meta,
    pub options: Options,
    pub facts: Snapshot,
    pub cost: Cost,
}

/// The machine at one moment, as document and as rows.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The document that judging reads.
    pub facts: Facts,
    /// The same, one fact a row, for SQL.
    pub rows: Vec<FactRow>,
    /// Hash of the facts that may change latency.
    pub condition_id: Option<String>,
}

/// Data of one second. Everything may be empty.
#[derive(Clone, Debug, Default)]
pub struct Tick {
    /// Times of the first wake-up, once they are known.
    pub origin: Option<ClockOrigin>,
    /// Threads that started; each before its first [`ThreadTick`].
    pub started: Vec<ThreadInfo>,
    /// Seconds of threads, in order of time for each thread.
    pub threads: Vec<ThreadTick>,
    /// Threads (by number) that ended.
    pub ended: Vec<(u32, ThreadEnd)>,
    pub host: Option<HostSecond>,
    pub notes: Vec<Note>,
    /// Loads that are new or have changed. Name and `from_ns` say which one it is: a later state
    /// of a load replaces the earlier one.
    pub loads: Vec<RecordedLoad>,
    pub spikes: SpikeTick,
    /// Changes that are tried.
    pub effects: EffectTick,
    /// Surroundings of the measurement.
    pub surroundings: SurroundingsTick,
}

/// The first wake-up on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOrigin {
    /// Wall-clock time, nanoseconds since 1970.
    pub realtime_ns: u64,
    /// CLOCK_MONOTONIC, nanoseconds: origin of all times in the record.
    pub monotonic_ns: u64,
}

/// One second of one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadTick {
    /// Number of the thread.
    pub number: u32,
    /// The second; its histograms are the fine ones on the coarse grid.
    pub second: Second,
    /// Wake-up view of this second alone, fine grid, non-empty buckets ascending.
    pub wake_fine: Vec<(u16, u64)>,
    /// Lateness of missed wake-ups of this second alone, likewise.
    pub missed_fine: Vec<(u16, u64)>,
    /// The largest samples of this second, in any order, at most [`TOP_MAX`]. The largest samples
    /// of the run are exact when each second hands over its [`TOP_MAX`] largest.
    pub top: Vec<Sample>,
}

/// What is known after the last wake-up.
#[derive(Clone, Debug)]
pub struct RunTail {
    /// How the run ended.
    pub ended: RunEnd,
    /// The machine now; `None` when there was no time left to look.
    pub facts: Option<Snapshot>,
    /// How each thread (by number) ended, unless a tick said so.
    pub threads: Vec<(u32, ThreadEnd)>,
    /// The final options, if it was not known before how long the run would
    /// last; `None`: those of the head.
    pub options: Option<Options>,
}

impl ThreadTick {
    /// Builds the tick of a thread from its fine histograms of one second; fills the coarse ones of
    /// `second`.
    pub fn new(
        number: u32,
        mut second: Second,
        wake: &Histogram,
        missed: &Histogram,
        top: Vec<Sample>,
    ) -> Self {
        // Bucket numbers fit: the fine grid has fewer than 2^16 buckets.
        let pairs = |h: &Histogram| h.buckets().map(|(b, n)| (b as u16, n)).collect();
        second.wake = pairs(&wake.coarsened(Layout::COARSE));
        second.missed = pairs(&missed.coarsened(Layout::COARSE));
        Self { number, second, wake_fine: pairs(wake), missed_fine: pairs(missed), top }
    }

    /// Whether sums, both grids and the largest samples agree.
    pub(crate) fn check(&self) -> Result<(), Contradiction> {
        let second = &self.second;
        let sampled = second.totals.wake.count();
        check_view("sampled", sampled, &second.wake, &self.wake_fine)?;
        check_view("missed", second.totals.missed, &second.missed, &self.missed_fine)?;
        if second.from_ns > second.to_ns {
            return Err(format!("second from {} to {} ns", second.from_ns, second.to_ns).into());
        }
        if self.top.len() > TOP_MAX {
            return Err(
                format!("{} largest samples, expected {TOP_MAX} at most", self.top.len()).into()
            );
        }
        let wake = &second.totals.wake;
        let edges = [self.wake_fine.first(), self.wake_fine.last()];
        let expected = [wake.min(), wake.max()].map(|ns| ns.map(|ns| Layout::FINE.index(ns)));
        if edges.map(|edge| edge.map(|&(bucket, _)| usize::from(bucket))) != expected {
            return Err(format!(
                "extremes {:?} and {:?} ns are not those of the histogram",
                wake.min(),
                wake.max()
            )
            .into());
        }
        let largest = self.top.iter().map(|sample| sample.latency_ns).max();
        if largest.is_some() && largest != wake.max() {
            return Err(format!(
                "largest sample {largest:?}, but the second's maximum is {:?}",
                wake.max()
            )
            .into());
        }
        Ok(())
    }
}

fn check_view(
    view: &str,
    count: u64,
    coarse: &[(u16, u64)],
    fine: &[(u16, u64)],
) -> Result<(), Contradiction> {
    check_pairs(coarse, Layout::COARSE)?;
    check_pairs(fine, Layout::FINE)?;
    let (in_coarse, in_fine) = (total(coarse), total(fine));
    if in_coarse != count || in_fine != count {
        return Err(format!(
            "{count} wake-ups {view}, but its histograms hold {in_coarse} (coarse) and {in_fine} \
             (fine)"
        )
        .into());
    }
    if coarsened(fine) != coarse {
        return Err(
            format!("the coarse histogram of the {view} is not the fine one coarsened").into()
        );
    }
    Ok(())
}

/// Fine buckets on the coarse grid.
pub(crate) fn coarsened(fine: &[(u16, u64)]) -> Vec<(u16, u64)> {
    let mut coarse: Vec<(u16, u64)> = Vec::with_capacity(fine.len());
    for &(bucket, n) in fine {
        let bucket = Layout::FINE.coarsen(usize::from(bucket), Layout::COARSE) as u16;
        match coarse.last_mut() {
            Some((last, sum)) if *last == bucket => *sum = sum.saturating_add(n),
            _ => coarse.push((bucket, n)),
        }
    }
    coarse
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trip(map in proptest::collection::btree_map(
            0..Layout::COARSE.len() as u16, 1..i64::MAX as u64, 0..80))
        {
            let pairs: Vec<(u16, u64)> = map.into_iter().collect();
            check_pairs(&pairs, Layout::COARSE).unwrap();
            prop_assert_eq!(decode(&encode(&pairs), Layout::COARSE).unwrap(), pairs);
        }

        #[test]
        fn sums_are_those_of_a_map(
            a in proptest::collection::btree_map(0_u16..40, 1..9_u64, 0..20),
            b in proptest::collection::btree_map(0_u16..40, 1..9_u64, 0..20))
        {
            let mut sum: Vec<_> = a.clone().into_iter().collect();
            merge(&mut sum, &b.clone().into_iter().collect::<Vec<_>>());
            let mut map = a;
            b.into_iter().for_each(|(bucket, n)| *map.entry(bucket).or_insert(0) += n);
            prop_assert_eq!(sum, map.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(pairs) = decode(&bytes, Layout::COARSE) {
                check_pairs(&pairs, Layout::COARSE).unwrap();
            }
        }
    }

    #[test]
    fn refuses_what_encode_never_writes() {
        for bytes in [&[1][..], &[1, 0], &[0x80], &[1, 1, 0, 1], &[0xff; 12], &[0xff, 0x7f, 1]] {
            decode(bytes, Layout::COARSE).unwrap_err();
        }
    }
}
