//! What changes of the machine did to latency, as a record of `tune apply --prove` or `experiment`
//! holds it: slices of time with and without each change, and what was made of them. Also what a
//! result file of another tool says.
//!
//! Ratios of effects are with the change to without it, in parts per million: 800 000 is a fifth
//! less.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_stats::Bins;

use crate::error::Contradiction;

pub const KNOBS_MAX: usize = 1000;

pub const SLICES_MAX: usize = 100_000;

/// What an experiment recorded: its trial, knobs and slices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Effects {
    /// How it was tried.
    pub trial: TrialSummary,
    pub knobs: Vec<KnobResult>,
    /// Slices, in order of time.
    pub slices: Vec<Slice>,
}

/// What one second brought of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectTick {
    /// How it is tried, as known now.
    pub trial: Option<TrialSummary>,
    /// Knobs that are new or have changed: as they are now.
    pub knobs: Vec<KnobResult>,
    pub slices: Vec<Slice>,
}

/// How changes were tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TrialSummary {
    /// Seed of the order of slices.
    pub seed: u64,
    /// How knobs share the time.
    pub design: TrialDesign,
    /// Pairs of slices planned for each knob.
    pub pairs: u32,
    /// Length of a slice.
    pub slice_ns: u64,
    /// Differences up to this do not matter, parts per million.
    pub margin_ppm: u64,
    /// P values below this count, parts per billion, after Holm.
    pub level_ppb: u64,
    /// Smallest change of p99.9 that is shown to be larger than the margin four times in five, from
    /// the slices before, parts per million; null: none is.
    pub detectable_ppm: Option<u64>,
}

/// How knobs share the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialDesign {
    /// One knob after the other, each alone.
    Single,
    /// All at once: in each pair some are on in one slice and the others in the other one.
    Mirrored,
    /// All at once first (`screen`), then each that stood out with and without, beside the others
    /// that help.
    Screened,
    /// The boot is the unit: pairs of boots with and without.
    Boots,
}

/// One knob: changes that belong together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Knob")]
pub struct KnobResult {
    /// 0, 1, ...
    pub number: u32,
    pub name: String,
    pub changes: Vec<String>,
    /// How it was tried.
    pub how: TrialMode,
    pub decision: Decision,
    /// Whether it was left in force.
    pub kept: bool,
    /// Why, in a sentence, with the next step.
    pub why: String,
    /// Numbers; none where there were too few slices.
    pub effects: Vec<Effect>,
}

/// How a knob was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrialMode {
    /// Switched on and off in pairs of slices.
    Toggled,
    /// Before and after, once: drift is not excluded.
    Once,
    NotTried,
}

/// Effect of a knob on latency, as the experiment decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Latency is lower with it, by more than the margin.
    Helps,
    /// Latency is higher with it, by more than the margin.
    Hurts,
    /// No difference larger than the margin.
    NoDifference,
    /// None of these can be said.
    CannotDecide,
    /// It was not tried, or could not be made.
    NotTried,
}

/// What a knob does to one statistic of a slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Effect {
    pub statistic: SliceStatistic,
    /// Pairs that were compared; 0 of before and after.
    pub pairs: u32,
    /// Median of the slices without it.
    pub off_ns: u64,
    /// Median of the slices with it.
    pub on_ns: u64,
    /// With to without it, parts per million: the median of the ratios of pairs (Hodges-Lehmann),
    /// which is not the ratio of the medians; of before and after, which have no pairs, it is.
    pub ratio_ppm: u64,
    /// Lower end of its interval; null: none.
    pub low_ppm: Option<u64>,
    pub high_ppm: Option<u64>,
    /// P value of no effect, exact sign-flip test, parts per billion; null: nothing was tested.
    pub p_ppb: Option<u64>,
    /// The same after Holm, over all knobs and statistics.
    pub adjusted_ppb: Option<u64>,
}

/// Statistic of a slice, over all measured CPUs.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SliceStatistic {
    /// 99.9 % of the wake-ups that were due, missed ones among them, were no later.
    P999,
    Max,
}

/// One slice of time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Slice {
    /// 0, 1, ...
    pub number: u32,
    /// What it is for.
    pub part: SlicePart,
    /// Pair, 0, 1, ...; 0 where there are none.
    pub pair: u32,
    /// Numbers of the knobs that were on.
    pub on: Vec<u32>,
    /// Start, after the origin.
    pub from_ns: u64,
    pub to_ns: u64,
    /// Wake-ups that were due, all CPUs.
    pub scheduled: u64,
    /// p99.9; null: too few wake-ups.
    pub p999_ns: Option<u64>,
    /// Latest wake-up; null: there was none.
    pub max_ns: Option<u64>,
    /// Wake-ups that were due while the thread was still late.
    pub missed: u64,
}

/// What a slice is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SlicePart {
    /// Before anything was changed.
    Before,
    /// One of a pair.
    Pair,
    /// One of a pair in which some knobs are on in one slice and the others in the other one.
    Screen,
    /// One of a pair of all that seems to help and nothing.
    Together,
    /// A change that is made once.
    Once,
    /// With what was kept.
    After,
}

impl Effects {
    /// Whether its parts fit together.
    pub(crate) fn check(&self) -> Result<(), Contradiction> {
        let known = |number: &u32| self.knobs.iter().any(|knob| knob.number == *number);
        for slice in &self.slices {
            if slice.from_ns > slice.to_ns {
                return Err(format!("slice {} from {} ns", slice.number, slice.from_ns).into());
            }
            if slice.on.len() > KNOBS_MAX {
                return Err(format!("slice {} with {} knobs", slice.number, slice.on.len()).into());
            }
            if let Some(number) = slice.on.iter().find(|number| !known(number)) {
                return Err(format!(
                    "slice {} with knob {number}, which is not there",
                    slice.number
                )
                .into());
            }
        }
        Ok(())
    }

    /// The statistic's effect of a knob.
    pub fn of(knob: &KnobResult, statistic: SliceStatistic) -> Option<&Effect> {
        knob.effects.iter().find(|effect| effect.statistic == statistic)
    }
}

impl SliceStatistic {
    /// Both, in the order of reports.
    pub const ALL: [Self; 2] = [Self::P999, Self::Max];

    /// As the field names it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::P999 => "p99.9",
            Self::Max => "max",
        }
    }
}

impl Decision {
    pub const fn text(self) -> &'static str {
        match self {
            Self::Helps => "helps",
            Self::Hurts => "hurts",
            Self::NoDifference => "no difference",
            Self::CannotDecide => "cannot decide",
            Self::NotTried => "not tried",
        }
    }
}

// What a result file of another tool says, and what it leaves open.
//
// Nothing here is guessed: a number that the tool did not write is `None`, and what may mislead is
// a `Doubt` with its text.

/// Most series of one file.
pub const THREADS_MAX: usize = 16_384;

/// Most cells of one series.
pub const BINS_MAX: usize = 1 << 20;

/// One result file of another tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// The tool, e.g. `cyclictest`.
    pub tool: String,
    /// Its version, where the file says it.
    pub tool_version: Option<String>,
    /// Which of its formats: the id of an importer.
    pub dialect: String,
    /// Name of the file, without its folder.
    pub source: String,
    /// SHA-256 of the file, 64 hex digits.
    pub digest: String,
    /// Command line that made it, from the file or as the user said.
    pub command: Option<String>,
    /// Host and kernel, where the file says them: `nodename release version machine`.
    pub machine: Option<String>,
    /// Start, seconds since 1970, where the file says it.
    pub started_s: Option<i64>,
    /// Step of the tool's values in nanoseconds: 1000 for microseconds.
    pub resolution_ns: u64,
    /// Values from here on were counted without their value, or not at all (a doubt says which);
    /// the smallest of the threads'. `None`: every sample has its value.
    pub censored_above_ns: Option<u64>,
    /// Period of the first thread, as far as known.
    pub period_ns: Option<u64>,
    /// How long it measured, as far as known.
    pub duration_ns: Option<u64>,
    pub doubts: Vec<Doubt>,
    /// What else the tool said, a sentence each, e.g. which thread blocked.
    pub remarks: Vec<String>,
    /// Wake-ups that the tool skipped while a thread was late; `None`: it does not skip, or period
    /// and duration are not known.
    pub omitted: Option<Omitted>,
    /// One per thread and quantity, in the order of the file.
    pub threads: Vec<ImportedThread>,
}

/// One series of samples.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImportedThread {
    /// CPU, where the file says it. A thread's number is no CPU.
    pub cpu: Option<u32>,
    /// Name to show, e.g. `thread 0`, `CPU 3`, `CPU 3 IRQ`.
    pub label: String,
    /// What its samples are.
    pub kind: SampleKind,
    /// Distribution. Holds all `n` samples, or none where the tool says only extremes. Samples
    /// without value (`overflow`) are in the last bin, from the first value without a row on.
    #[schemars(with = "Vec<rtproof_stats::Bin>")]
    pub bins: Bins,
    pub n: u64,
    /// Smallest, exact as the tool said it.
    pub min_ns: Option<u64>,
    /// Largest, exact as the tool said it.
    pub max_ns: Option<u64>,
    /// Whether the largest may be larger than `max_ns`: it has no value of its own.
    pub max_is_at_least: bool,
    /// Mean as the tool said it.
    pub mean_ns: Option<f64>,
    /// Samples without value, at the far end.
    pub overflow: u64,
    /// Samples that a run without omission would have, from period and duration.
    pub expected: Option<u64>,
    /// Period of this thread, as far as known.
    pub period_ns: Option<u64>,
    /// Quantiles that the tool itself computed: (parts per million, value). Only of tools that
    /// give no distribution.
    #[serde(rename = "told")]
    pub quantiles: Vec<(u32, u64)>,
}

impl ImportedThread {
    /// Mean: of the cells where each sample has a value of its own, because tools cut theirs to
    /// their step; else as the tool said it, because it saw what no cell has.
    pub fn mean(&self) -> Option<f64> {
        let n = self.bins.total();
        if n == 0 || (self.overflow > 0 && self.mean_ns.is_some()) {
            return self.mean_ns;
        }
        let sum: f64 = self.bins.iter().map(|bin| bin.low_ns as f64 * bin.n as f64).sum();
        Some(sum / n as f64)
    }
}

/// What a sample is. Only like may be compared with like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SampleKind {
    /// From when a thread should have run to when it ran.
    Latency,
    /// From when a timer was due to its interrupt handler.
    IrqLatency,
    /// From when a timer was due to the return to user space.
    UserLatency,
    /// Time that a busy loop did not see.
    Gap,
    /// The same with interrupts off: hardware and firmware.
    HardwareGap,
    /// Time taken from a CPU within a period.
    Noise,
    /// The file does not say.
    Unknown,
}

impl SampleKind {
    pub const ALL: [Self; 7] = [
        Self::Latency,
        Self::IrqLatency,
        Self::UserLatency,
        Self::Gap,
        Self::HardwareGap,
        Self::Noise,
        Self::Unknown,
    ];

    /// In words, for axes and tables.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::IrqLatency => "timer interrupt latency",
            Self::UserLatency => "latency to user space",
            Self::Gap => "gap",
            Self::HardwareGap => "hardware gap",
            Self::Noise => "noise",
            Self::Unknown => "value",
        }
    }
}

/// A value that a tool measured, or the least that it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Reading")]
pub struct ToolValue {
    pub ns: u64,
    /// Whether it may be larger: the tool counted the sample and not its value.
    pub at_least: bool,
}

impl ImportedThread {
    /// The largest sample: what the tool says, else the upper edge of the last cell.
    pub fn largest(&self) -> Option<ToolValue> {
        let from_cells = || self.bins.iter().last().map(|bin| bin.high_ns);
        let ns = self.max_ns.or_else(from_cells)?;
        Some(ToolValue { ns, at_least: self.max_is_at_least })
    }

    /// The p-quantile in steps of the tool (`step_ns`): cyclictest's 193 µs are 193 000 ns here and
    /// not the end of that microsecond. Among samples without value only the least is known.
    pub fn quantile(&self, p: f64, step_ns: u64) -> Option<ToolValue> {
        if self.bins.is_empty() {
            let reported =
                self.quantiles.iter().find(|(ppm, _)| (f64::from(*ppm) / 1e6 - p).abs() < 1e-9);
            return reported.map(|&(_, ns)| ToolValue { ns, at_least: false });
        }
        let high_ns = self.bins.quantile(p)?;
        let last = self.bins.iter().last()?;
        if self.overflow > 0 && high_ns == last.high_ns {
            let exact = self.overflow == 1 && self.max_ns.is_some() && !self.max_is_at_least;
            let ns = if exact { self.max_ns? } else { last.low_ns };
            return Some(ToolValue { ns, at_least: !exact });
        }
        let ns = high_ns / step_ns.max(1) * step_ns.max(1);
        // A row may be wider than a step: no sample of it is larger than the largest.
        let ns = self.max_ns.filter(|_| !self.max_is_at_least).map_or(ns, |max_ns| ns.min(max_ns));
        Some(ToolValue { ns, at_least: false })
    }
}

/// Something that may mislead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doubt {
    /// Stable identifier: listed in docs/import.md.
    pub id: String,
    /// The fact and its consequence.
    pub text: String,
}

/// Wake-ups that were never measured because the thread was late when they were due.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Omitted {
    /// How many, in the order of the threads; of each at least so many.
    pub by_thread: Vec<u64>,
    /// Whether samples without value may hide more.
    pub at_least: bool,
    /// Whether the first thread misses exactly as many: expected less recorded. `None`: the
    /// duration is not known.
    pub confirmed: Option<bool>,
}

impl Omitted {
    pub fn total(&self) -> u64 {
        self.by_thread.iter().fold(0, |sum, &n| sum.saturating_add(n))
    }
}

impl Imported {
    /// Wake-ups that the tool skipped in one series; `None`: unknown, also where only the period of
    /// other threads is known.
    pub fn omitted_of(&self, number: usize) -> Option<u64> {
        self.threads.get(number)?.period_ns?;
        self.omitted.as_ref()?.by_thread.get(number).copied()
    }

    /// Whether counts, cells and extremes agree.
    pub(crate) fn check(&self) -> Result<(), Contradiction> {
        if self.threads.is_empty() || self.threads.len() > THREADS_MAX {
            return Err(
                format!("{} series, expected 1 to {THREADS_MAX}", self.threads.len()).into()
            );
        }
        for thread in &self.threads {
            thread.check().map_err(|what| format!("{}: {what}", thread.label))?;
        }
        Ok(())
    }
}

impl ImportedThread {
    fn check(&self) -> Result<(), Contradiction> {
        let total = self.bins.total();
        if total != self.n && !self.bins.is_empty() {
            return Err(format!("{} samples, but its cells hold {total}", self.n).into());
        }
        if self.overflow > self.n {
            return Err(format!("{} of {} samples without value", self.overflow, self.n).into());
        }
        match (self.min_ns, self.max_ns) {
            (Some(min), Some(max)) if min > max => {
                Err(format!("its smallest value {min} ns is above its largest {max} ns").into())
            }
            // A mean is rounded otherwise than they are, by a unit of the tool at most.
            (min, Some(max)) if !self.max_is_at_least => match self.mean_ns {
                Some(mean)
                    if mean > max as f64 + 1000.0 || mean + 1000.0 < min.unwrap_or(0) as f64 =>
                {
                    Err(format!("its mean {mean} ns is not between its extremes").into())
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }
}
