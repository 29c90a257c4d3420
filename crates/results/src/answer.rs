//! The answer of a command in short, first in text, page and JSON: the result, why, what to do
//! next.

use rtproof_judge::{
    Report,
    causes::{Spikes, classes},
    units::grouped,
};
use schemars::JsonSchema;
use serde::Serialize;

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
    Verdict(rtproof_judge::Answer),
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
            let certain = match certain == percent(class.sum_ns) {
                true => String::new(),
                false => format!(" ({certain} % for certain)"),
            };
            let culprit = class.rows.first().map_or("", |row| &row.culprit);
            let who = match (culprit, class.rows.len()) {
                ("", _) => String::new(),
                (culprit, 1) => format!(": {culprit}"),
                (culprit, _) => format!(": most of all {culprit}"),
            };
            format!("{} % {}{who}{certain}", percent(class.sum_ns), class.title)
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
