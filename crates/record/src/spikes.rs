//! Spikes of a run as a record holds them: numbers, causes, the list, the kept windows.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer, ser::Error as _};

use rtproof_model::{CauseRow, RecorderSummary, Remedy};
use rtproof_trace::Window;

use crate::error::{Contradiction, bound};

/// Spikes listed, at most; all of them are counted.
pub const SPIKES_MAX: usize = 100_000;

/// Windows kept, at most.
pub const WINDOWS_MAX: usize = 128;

pub const CAUSES_MAX: usize = 256;

/// CPUs of one cause, at most: what Linux can have.
pub const CPUS_MAX: usize = 8192;

/// Events of a kept window, at most.
pub const EVENTS_MAX: usize = 20_000;

/// The spikes of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedSpikes {
    pub summary: SpikeSummary,
    /// What caused them, in order of appearance.
    pub causes: Vec<CauseEntry>,
    /// The first [`SPIKES_MAX`], by thread and time.
    pub list: Vec<Spike>,
    /// The worst ones with their windows, by number.
    pub kept: Vec<KeptSpike>,
}

/// Spikes of one second.
#[derive(Clone, Debug, Default)]
pub struct SpikeTick {
    pub summary: Option<SpikeSummary>,
    /// Causes that are new or have changed: as they are now.
    pub causes: Vec<CauseEntry>,
    pub list: Vec<Spike>,
    /// Windows to keep from now on.
    pub kept: Vec<KeptSpike>,
    /// Numbers of windows that are no longer kept.
    pub dropped: Vec<u32>,
}

/// Numbers of late wake-ups: seen, explained, dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SpikeSummary {
    /// Wake-ups later than this are spikes; of an adaptive threshold the last one.
    pub threshold_ns: u64,
    /// Whether the threshold followed the machine.
    pub adaptive: bool,
    pub seen: u64,
    pub explained: u64,
    /// Of the explained: events were lost or missing.
    pub incomplete: u64,
    /// Not explained: `seen - explained`.
    pub unexamined: u64,
    /// Of the unexamined: no room on their way out of the measuring thread.
    pub dropped: u64,
    /// Sum of the latencies of the explained ones.
    pub sum_ns: u64,
    pub certain_ns: u64,
    /// How kernel events were recorded.
    #[serde(rename = "recorder_json", serialize_with = "as_text")]
    #[schemars(with = "String")]
    pub recorder: RecorderSummary,
}

/// A document as its JSON text: what the export of a record shows.
pub(crate) fn as_text<T: Serialize, S: Serializer>(
    value: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&serde_json::to_string(value).map_err(S::Error::custom)?)
}

/// One late wake-up, as JSON shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Spike {
    pub thread: u32,
    /// When it was due, after the origin.
    pub due_ns: u64,
    pub latency_ns: u64,
    /// Cause and culprit of the largest share; null: not explained.
    pub why: Option<MainCause>,
}

/// What a spike was mostly caused by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MainCause {
    pub cause: String,
    /// Culprit; empty if there is none.
    pub culprit: String,
    /// Whether no event was lost or missing.
    pub complete: bool,
}

/// One cause and culprit of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CauseEntry {
    /// Order of appearance: 0, 1, ...
    pub number: u32,
    /// Sums and properties of the cause.
    pub row: CauseRow,
}

/// Properties of a cause in a record besides its numbers.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct CauseDocument {
    pub(crate) title: String,
    pub(crate) owner: Option<String>,
    pub(crate) checks: Vec<String>,
    pub(crate) remedies: Vec<Remedy>,
}

impl CauseDocument {
    pub(crate) fn of(row: &CauseRow) -> Self {
        Self {
            title: row.title.clone(),
            owner: row.owner.clone(),
            checks: row.checks.clone(),
            remedies: row.remedies.clone(),
        }
    }
}

/// A spike of which the window is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeptSpike {
    /// Number: 1, 2, ...
    pub number: u32,
    pub thread: u32,
    /// When it was due, after the origin.
    pub due_ns: u64,
    pub latency_ns: u64,
    /// Kernel events round it; times are CLOCK_MONOTONIC nanoseconds.
    #[schemars(with = "serde_json::Value")]
    pub window: Window,
}

impl RecordedSpikes {
    /// The window kept under a number.
    pub fn window(&self, number: u32) -> Option<&Window> {
        self.kept.iter().find(|kept| kept.number == number).map(|kept| &kept.window)
    }

    /// What must hold between the parts; `threads`: (number, CPU) of those that the run has.
    pub(crate) fn check(&self, threads: &[(u32, u32)]) -> Result<(), Contradiction> {
        self.summary.check()?;
        let SpikeSummary { seen, explained, .. } = self.summary;
        bound("spikes", self.list.len(), SPIKES_MAX)?;
        bound("windows", self.kept.len(), WINDOWS_MAX)?;
        bound("causes", self.causes.len(), CAUSES_MAX)?;
        let whys = self.list.iter().filter(|spike| spike.why.is_some()).count() as u64;
        if self.list.len() as u64 > seen || whys > explained {
            return Err(format!(
                "{} spikes are listed, {whys} with a cause, but {seen} were seen and {explained} \
                 explained",
                self.list.len()
            )
            .into());
        }
        let known = |number: u32| threads.iter().find(|thread| thread.0 == number);
        if let Some(spike) = self.list.iter().find(|spike| known(spike.thread).is_none()) {
            return Err(format!("a spike of thread {}, which does not exist", spike.thread).into());
        }
        for kept in &self.kept {
            let cpu = known(kept.thread).map(|thread| thread.1);
            if cpu != Some(kept.window.cpu) {
                return Err(format!(
                    "window {} is of CPU {}, but its thread {} of {cpu:?}",
                    kept.number, kept.window.cpu, kept.thread
                )
                .into());
            }
            bound("events of a window", kept.window.events.len(), EVENTS_MAX)?;
        }
        self.causes.iter().try_for_each(|cause| cause.check(explained))
    }
}

impl SpikeSummary {
    /// Whether the numbers fit each other.
    pub(crate) fn check(&self) -> Result<(), Contradiction> {
        let Self { seen, explained, incomplete, unexamined, dropped, sum_ns, certain_ns, .. } =
            *self;
        if explained.checked_add(unexamined) != Some(seen)
            || incomplete > explained
            || dropped > unexamined
            || certain_ns > sum_ns
        {
            return Err(format!(
                "{seen} spikes cannot be {explained} explained ({incomplete} incomplete, \
                 {certain_ns} of {sum_ns} ns certain) and {unexamined} not ({dropped} dropped)"
            )
            .into());
        }
        Ok(())
    }
}

impl CauseEntry {
    /// Whether the numbers fit each other and those of the CPUs.
    pub(crate) fn check(&self, explained: u64) -> Result<(), Contradiction> {
        let row = &self.row;
        let bad = |what: &str| {
            Err(format!("cause {} ({} {}): {what}", self.number, row.cause, row.culprit).into())
        };
        if self.number as usize >= CAUSES_MAX {
            return bad("its number is beyond the last one");
        }
        let sums = row.cpus.iter().try_fold((0_u64, 0_u64), |(count, sum), cpu| {
            Some((count.checked_add(cpu.count)?, sum.checked_add(cpu.sum_ns)?))
        });
        let worst = row.cpus.iter().map(|cpu| cpu.worst_ns).max().unwrap_or(0);
        if sums != Some((row.count, row.sum_ns)) || worst != row.worst_ns {
            return bad("its CPUs do not sum to it");
        }
        let fits = row.top <= row.count
            && row.count <= explained
            && row.worst_ns <= row.sum_ns
            && row.ambiguous_ns <= row.sum_ns;
        if !fits {
            return bad("its counts and sums do not fit each other");
        }
        Ok(())
    }
}
