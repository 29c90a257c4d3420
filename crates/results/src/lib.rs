//! What commands return: typed JSON documents.
#![doc = include_str!("../README.md")]

pub mod kernel;
pub mod launch;
pub mod measure;
pub mod record_state;
pub mod tune;
pub mod watch;

use launch::StackFrame;
use schemars::JsonSchema;
use serde::Serialize;

use rtproof_host::CpuList;
use rtproof_judge::{
    Intent, Report,
    causes::{Spikes, classes},
    locks::{HolderTime, LockKind, LockThread, Others},
    profile::Choices,
    units::{self, grouped},
};
use rtproof_record::{
    Effects,
    effects::{Decision, KnobResult, SliceStatistic},
};

/// A policy as the kernel names it.
pub const fn policy_name(policy: rtproof_host::facts::tasks::Policy) -> &'static str {
    use rtproof_host::facts::tasks::Policy;
    match policy {
        Policy::Other => "SCHED_OTHER",
        Policy::Fifo => "SCHED_FIFO",
        Policy::Rr => "SCHED_RR",
        Policy::Batch => "SCHED_BATCH",
        Policy::Idle => "SCHED_IDLE",
        Policy::Deadline => "SCHED_DEADLINE",
        Policy::Ext => "SCHED_EXT",
    }
}

// The answer of a command in short, first in text, page and JSON: the result, why, what to do
// next.

/// Classes of causes that are named.
const CLASSES_MAX: usize = 3;

/// Of all lateness, in percent: less is not worth a line.
const SHARE_MIN: u64 = 3;

/// A result as JSON: the answer, then all that it rests on.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Answered<'a, T> {
    pub answer: Answer,
    /// What it rests on.
    #[serde(flatten)]
    pub rest: &'a T,
}

/// The answer in sentences: the same shape for all commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Answer {
    /// The result in a sentence.
    pub result: String,
    /// How good the result is.
    #[serde(skip)]
    pub tone: Tone,
    /// The main reasons, the largest first.
    pub why: Option<String>,
    /// A complete command to go on with; `None`: nothing has to be done, or no command does it.
    pub next: Option<String>,
}

/// How a result is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Neither good nor bad.
    #[default]
    Plain,
    /// All is as it has to be.
    Good,
    /// Something is unknown or undecided.
    Doubtful,
    /// Something is not as it has to be.
    Bad,
    /// The result begins with the word of a verdict.
    Verdict(rtproof_judge::VerdictAnswer),
}

impl Answer {
    /// The answer of a run.
    pub fn of_report(report: &Report, next: Option<String>) -> Self {
        let verdict = &report.verdict;
        Self {
            result: format!("{} {}", verdict.answer.text(), verdict.sentence),
            tone: Tone::Verdict(verdict.answer),
            why: report.spikes.as_ref().and_then(why),
            next,
        }
    }

    /// As JSON, with what it rests on.
    pub fn with<T>(self, rest: &T) -> Answered<'_, T> {
        Answered { answer: self, rest }
    }
}

/// The largest classes of causes, with their share of all lateness that was explained.
pub fn why(spikes: &Spikes) -> Option<String> {
    if let Some(why) = spikes.recorder.off.as_ref().filter(|_| spikes.seen > 0) {
        return Some(format!("not known: nothing was recorded ({why})"));
    }
    let percent = |ns: u64| (100 * u128::from(ns) / u128::from(spikes.sum_ns.max(1))) as u64;
    let classes = classes(spikes);
    let named = classes.iter().filter(|class| percent(class.sum_ns) >= SHARE_MIN);
    let named: Vec<String> = named
        .take(CLASSES_MAX)
        .map(|class| {
            let certain = percent(class.certain_ns());
            let (likely, certain) = match certain {
                0 if class.cause == "unexplained" => ("", String::new()),
                0 => ("likely ", String::new()),
                all if all == percent(class.sum_ns) => ("", String::new()),
                some => ("", format!(" ({some} % for certain)")),
            };
            let culprit = class.rows.first().map_or("", |row| &row.culprit);
            let who = match (culprit, class.rows.len()) {
                ("", _) => String::new(),
                (culprit, 1) => format!(": {culprit}"),
                (culprit, _) => format!(": most of all {culprit}"),
            };
            format!("{} % {likely}{}{who}{certain}", percent(class.sum_ns), class.title)
        })
        .collect();
    let of = match spikes.explained == spikes.seen {
        true => "of all lateness".to_owned(),
        false => format!(
            "of the lateness of {} of {} spikes",
            grouped(spikes.explained),
            grouped(spikes.seen)
        ),
    };
    (!named.is_empty()).then(|| format!("{of}: {}", named.join("; ")))
}

// What text and report share of effects: order and numbers.

/// Knobs in the order of interest: what helps most first, what was not tried last.
pub fn ranked(effects: &Effects) -> Vec<&KnobResult> {
    let mut knobs: Vec<&KnobResult> = effects.knobs.iter().collect();
    knobs.sort_by_key(|knob| {
        let place = match knob.decision {
            Decision::Helps => 0,
            Decision::Hurts => 1,
            Decision::NoDifference => 2,
            Decision::CannotDecide => 3,
            Decision::NotTried => 4,
        };
        let ratio =
            Effects::of(knob, SliceStatistic::P999).map_or(u64::MAX, |effect| effect.ratio_ppm);
        (place, ratio, knob.number)
    });
    knobs
}

/// A ratio as a change: 800 000 is `−20 %`.
pub fn signed(ratio_ppm: u64) -> String {
    let change = ratio_ppm as f64 / 1e4 - 100.0;
    let text = match change.abs() {
        size if size < 9.95 => format!("{size:.1}"),
        size => format!("{size:.0}"),
    };
    match text.as_str() {
        "0.0" => "0 %".into(),
        _ if change < 0.0 => format!("−{text} %"),
        _ => format!("+{text} %"),
    }
}

/// A share: 0.05 is `5 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent < 9.95 && (percent - percent.round()).abs() > 0.05 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

pub fn p_value(ppb: Option<u64>) -> String {
    match ppb.map(|ppb| ppb as f64 / 1e9) {
        None => "not tested".into(),
        Some(p) if p < 0.0001 => "<0.0001".into(),
        Some(p) if p < 0.01 => format!("{p:.4}"),
        Some(p) => format!("{p:.2}"),
    }
}

/// How a command ended; its exit code follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Done,
    ToolFailed,
    /// The machine failed: something is not as requested.
    MachineFailed,
    /// It cannot be decided, or something is unknown.
    CannotTell,
}

/// What an audit was made for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct IntentShown {
    pub profile: String,
    /// Choices of the profile.
    pub choices: Choices,
    pub rt_cpus: CpuList,
    /// Why these, where they are a proposal of rtproof; `None`: chosen, or kept free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed: Option<String>,
    pub housekeeping: CpuList,
    /// Priority of the application.
    pub priority: u32,
    /// Period of its loop.
    pub period_ns: u64,
    pub budget_ns: Option<u64>,
}

impl IntentShown {
    /// As it is shown.
    pub fn of(intent: &Intent) -> Self {
        Self {
            profile: intent.profile.name.clone(),
            choices: intent.profile.choices,
            rt_cpus: intent.rt_cpus.clone(),
            proposed: intent.proposed.clone(),
            housekeeping: intent.housekeeping.clone(),
            priority: intent.priority,
            period_ns: intent.period_ns,
            budget_ns: intent.budget_ns,
        }
    }

    pub fn line(&self) -> String {
        let cpus = match self.rt_cpus.is_empty() {
            true => "no real-time CPUs".into(),
            false => format!("real-time {}", units::cpus(&self.rt_cpus)),
        };
        let cpus = match &self.proposed {
            Some(why) => format!("{cpus} (proposed, none is chosen: {why})"),
            None => cpus,
        };
        let (priority, period) = (self.priority, units::ns(self.period_ns));
        let budget =
            self.budget_ns.map_or("no budget".into(), |ns| format!("budget {}", units::ns(ns)));
        format!("{}, {cpus}, SCHED_FIFO {priority}, period {period}, {budget}", self.profile)
    }
}

// What `rtproof explain --pid` found of the locks that a program waits for.

/// Waits for locks that were observed, with their holders.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LocksFound {
    /// Locks without priority inheritance that real-time threads waited for, the longest wait
    /// first.
    pub waits: Vec<LockWaits>,
    /// Other waits of real-time threads in futex(2).
    pub others: Others,
    /// Why not all is known.
    pub unknown: Vec<String>,
}

/// The waits of a thread for a lock that another one held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LockWaits {
    pub pid: u32,
    /// Address of the lock in it.
    pub address: u64,
    /// What the lock is.
    pub kind: LockKind,
    /// Whether it is certainly a lock, and no event that could contradict was lost.
    pub is_certain: bool,
    pub waiter: LockThread,
    /// Holder at the end of the longest wait.
    pub holder: LockThread,
    pub count: u64,
    /// All waits together, nanoseconds.
    pub sum_ns: u64,
    /// The longest, nanoseconds: from when the thread left the CPU to when it was woken.
    pub worst_ns: u64,
    /// How long threads of lower priority than the waiter's ran in the holder's place in the
    /// longest, nanoseconds.
    pub inversion_ns: u64,
    /// Others that released the lock before it was the waiter's turn in the longest.
    pub hands: u64,
    /// What the holder did in the longest.
    #[serde(rename = "meanwhile")]
    pub holder_time: HolderTime,
    /// Where the program takes the lock; `None`: the stack does not show it.
    pub at: Option<StackFrame>,
}

impl LockWaits {
    /// Whether a tenth of the longest wait and more was priority inversion.
    pub const fn is_inversion(&self) -> bool {
        self.inversion_ns > 0 && self.inversion_ns >= self.worst_ns / 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        let texts = [800_000, 1_000_000, 1_034_000, 999_900, 4_000_000, 1].map(signed);
        assert_eq!(texts, ["−20 %", "0 %", "+3.4 %", "0 %", "+300 %", "−100 %"]);
        assert_eq!([0.05, 0.123, 0.034].map(percent), ["5 %", "12 %", "3.4 %"]);
        let p = [None, Some(1_907), Some(4_000_000), Some(50_000_000), Some(1_000_000_000)];
        assert_eq!(p.map(p_value), ["not tested", "<0.0001", "0.0040", "0.05", "1.00"]);
    }
}
