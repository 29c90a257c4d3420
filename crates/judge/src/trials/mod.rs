//! What a trial on the live machine shows, as a [`Finding`]: one pure function for each trial of
//! the trials, from what was seen, the facts and the intent.
//!
//! A trial tries what a check infers, so it may be sure where the check can only doubt: its finding
//! is good or bad where the thing was seen, and unknown where it could not be tried.

mod isolation;
mod memlock;
mod priority;
mod smi;
mod throttling;

use rtproof_host::{CpuList, Facts, Reading};
use rtproof_model::Observation;

use crate::{Evidence, Finding, Impact, Intent, Remedy, Status, When};

/// The finding of one trial.
#[must_use]
pub fn judge(seen: &Observation, facts: &Facts, intent: &Intent) -> Finding {
    match seen {
        Observation::Throttling(seen) => throttling::judge(seen, facts, intent),
        Observation::Isolation(seen) => isolation::judge(seen, facts, intent),
        Observation::Priority(seen) => priority::judge(seen, facts),
        Observation::Memlock(seen) => memlock::judge(seen, facts),
        Observation::Smi(seen) => smi::judge(seen, facts),
    }
}

/// The finding of a trial that could not be run at all.
#[must_use]
pub fn not_run(trial: &str, why: &str) -> Finding {
    let question = QUESTIONS.iter().find(|question| question.id.ends_with(trial));
    let question = *question.unwrap_or(&&throttling::QUESTION);
    let evidence = Evidence { path: format!("trial {trial}"), value: why.into() };
    Draft::of(question).saw([evidence]).end(Status::Unknown, format!("not tried: {why}"))
}

/// Every question, in the order of the trials.
const QUESTIONS: &[&Question] = &[
    &priority::QUESTION,
    &memlock::QUESTION,
    &throttling::QUESTION,
    &isolation::QUESTION,
    &smi::QUESTION,
];

/// A trial that was ended before a second shows what it saw, but not that there is nothing.
const SHORT_NS: u64 = 1_000_000_000;

/// What a trial asks: the parts of its finding that are always the same.
struct Question {
    /// `proof-` and the name of the trial.
    id: &'static str,
    wanted: &'static str,
    why: &'static str,
    source: &'static str,
    trade_off: Option<&'static str>,
    impact: Impact,
    when: When,
}

/// A finding without its status and summary.
struct Draft(Finding);

impl Draft {
    fn of(question: &Question) -> Self {
        Self(Finding {
            check: question.id.into(),
            status: Status::Unknown,
            summary: String::new(),
            wanted: question.wanted.into(),
            cpus: None,
            evidence: Vec::new(),
            why: question.why.into(),
            source: question.source.into(),
            remedies: Vec::new(),
            when: question.when,
            impact: question.impact,
            trade_off: question.trade_off.map(Into::into),
            skipped: None,
        })
    }

    fn cpus(mut self, cpus: &CpuList) -> Self {
        self.0.cpus = Some(cpus.clone());
        self
    }

    fn saw(mut self, evidence: impl IntoIterator<Item = Evidence>) -> Self {
        self.0.evidence.extend(evidence);
        self
    }

    /// Adds a number that the trial itself took.
    fn took(self, what: impl Into<String>, value: impl Into<String>) -> Self {
        self.saw([Evidence { path: what.into(), value: value.into() }])
    }

    fn read<T>(self, reading: &Reading<T>, show: impl FnOnce(&T) -> String) -> Self {
        self.saw([Evidence::of(reading, show)])
    }

    fn remedies(mut self, remedies: impl IntoIterator<Item = Remedy>) -> Self {
        self.0.remedies.extend(remedies);
        self
    }

    fn end(mut self, status: Status, summary: impl Into<String>) -> Finding {
        if matches!(status, Status::Good | Status::NotApplicable) {
            self.0.remedies.clear();
        }
        self.0.status = status;
        self.0.summary = summary.into();
        self.0
    }
}

/// Whether the kernel is built with an option; `None` where its configuration cannot be read.
fn built_with(facts: &Facts, option: &str) -> Option<bool> {
    facts.kernel.config.value().map(|config| config.get(option).is_some_and(|value| value == "y"))
}

/// The option as evidence.
fn option(facts: &Facts, option: &str) -> Evidence {
    Evidence::of(&facts.kernel.config, |config| match config.get(option) {
        Some(value) => format!("CONFIG_{option}={value}"),
        None => format!("CONFIG_{option} is not set"),
    })
}

/// Whether the kernel is at least this version, if that is known.
fn since(facts: &Facts, version: (u32, u32)) -> Option<bool> {
    facts.kernel.version.value().map(|&running| running >= version)
}

/// Whether lockdown keeps debugfs closed.
fn is_locked_down(facts: &Facts) -> bool {
    let mode = facts.kernel.lockdown.value().map(String::as_str);
    matches!(mode, Some("integrity" | "confidentiality"))
}

/// A right that a user gets by a line of limits.conf(5), or a service by its unit.
fn right(name: &str, value: &str, directive: &str) -> Vec<Remedy> {
    vec![
        Remedy::Command {
            command: "groupadd --system --force realtime && usermod -aG realtime USER".into(),
        },
        Remedy::File {
            path: crate::plan::LIMITS_FILE.into(),
            line: format!("@realtime - {name} {value}"),
        },
        Remedy::Manual { text: format!("for a service: {directive} in its unit") },
    ]
}

/// The first few of a list, and how many more there are.
fn first_few(items: &[String], most: usize) -> String {
    let shown = items.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use rtproof_model::trial::NAMES;

    use super::*;

    #[test]
    fn every_trial_has_its_question() {
        assert_eq!(NAMES.len(), QUESTIONS.len());
        for (trial, question) in NAMES.iter().zip(QUESTIONS) {
            assert_eq!(question.id, format!("proof-{trial}"));
            assert!(!question.why.ends_with('.') && !question.source.is_empty());
            let finding = not_run(trial, "no thread");
            assert_eq!((finding.check.as_str(), finding.status), (question.id, Status::Unknown));
            assert_eq!(finding.summary, "not tried: no thread");
        }
    }
}
