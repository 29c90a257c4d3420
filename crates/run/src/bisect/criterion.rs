//! What makes a kernel bad, and what a step's measurement says of it. A number that is not known
//! decides nothing: the step is skipped.

use rtproof_judge::units::{count, grouped};
use rtproof_model::Status;
use rtproof_results::kernel::{
    bisect::{BisectStep, StepOutcome},
    compare::{KernelSide, Stretches},
};

/// Exit code of a command that stands for a panic while it ran.
pub(super) const PANICKED: i32 = 255;
/// Exit codes of `prove`.
const ACCEPTED: i32 = 0;
const REFUSED: i32 = 2;
/// `git bisect run`: this one cannot be tested.
const SKIP: i32 = 125;

/// What is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// More stretches of a cause than this.
    Cause(String, u64),
    /// A longer way from due to run, instructions; `None`: between both ends.
    Longest(Option<u64>),
    /// A longer stretch of a cause, instructions; `None`: between both ends.
    Stretch(String, Option<u64>),
    /// A check whose status is not that of the good end.
    Check(String),
    /// A refusal by `prove`.
    Verdict,
    /// A command whose exit code is not 0.
    Command(Vec<String>),
}

/// Outcome and its reason.
pub(super) type Judged = (StepOutcome, String);

/// What both ends decide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Limits {
    /// Above it a number is bad.
    pub(super) threshold: Option<u64>,
    /// The good end's status of the check.
    pub(super) status: Option<Status>,
}

impl Criterion {
    /// In words, for arguments and answers.
    pub fn text(&self) -> String {
        let above = |of: &Option<u64>| of.map_or_else(|| "the middle of both ends".into(), grouped);
        match self {
            Self::Cause(name, limit) => format!("more than {} of {name}", count(*limit, "stretch")),
            Self::Longest(limit) => format!("wake-up path longer than {}", above(limit)),
            Self::Stretch(name, limit) => {
                format!("stretch of {name} longer than {}", above(limit))
            }
            Self::Check(id) => format!("another status of check {id}"),
            Self::Verdict => "prove refuses".into(),
            Self::Command(words) => format!("exit code of: {}", words.join(" ")),
        }
    }

    /// What the ends decide, or why they cannot.
    pub(super) fn limits(&self, good: &BisectStep, bad: &BisectStep) -> Result<Limits, String> {
        let given = match self {
            Self::Cause(_, limit) => Some(*limit),
            Self::Longest(limit) | Self::Stretch(_, limit) => *limit,
            Self::Verdict | Self::Command(_) => return Ok(Limits::default()),
            Self::Check(_) => {
                let status = good.check.as_ref().map(|(status, _)| *status);
                return Ok(Limits { threshold: None, status });
            }
        };
        if given.is_some() {
            return Ok(Limits { threshold: given, status: None });
        }
        let number = |of: &BisectStep| of.measured.as_ref().map(|side| self.number(side));
        let [good, bad] = match [number(good), number(bad)] {
            [Some(Ok(good)), Some(Ok(bad))] => [good, bad],
            [Some(Err(why)), _] => return Err(format!("the good end: {why}")),
            [_, Some(Err(why))] => return Err(format!("the bad end: {why}")),
            _ => return Err("an end was not measured".into()),
        };
        // A quarter: what any change of code moves is far less.
        if bad <= good.saturating_add(good / 4) {
            return Err(format!(
                "good has {}, bad has {} instructions, which is too near for a limit between them: \
                 give one",
                grouped(good),
                grouped(bad)
            ));
        }
        Ok(Limits { threshold: Some(good + (bad - good) / 2), status: None })
    }

    /// What a step says.
    pub(super) fn judge(&self, step: &BisectStep, limits: Limits) -> Judged {
        let skipped = |why: String| (StepOutcome::Skipped, why);
        match self {
            Self::Command(_) => match step.exit {
                Some(0) => (StepOutcome::Good, "exit code 0".into()),
                Some(SKIP) => skipped("exit code 125".into()),
                Some(PANICKED) => (StepOutcome::Bad, "the kernel panicked while it ran".into()),
                Some(code) => (StepOutcome::Bad, format!("exit code {code}")),
                None => skipped("no exit code".into()),
            },
            Self::Verdict => match step.measured.as_ref().and_then(|side| side.exit) {
                Some(ACCEPTED) => (StepOutcome::Good, "prove accepts".into()),
                Some(REFUSED) => (StepOutcome::Bad, "prove refuses".into()),
                Some(code) => skipped(format!("prove decides nothing: exit code {code}")),
                None => skipped("prove has no exit code".into()),
            },
            Self::Check(id) => match (&step.check, limits.status) {
                (None, _) => skipped(format!("check {id} was not asked there")),
                (Some((Status::Unknown, summary)), _) => skipped(format!("unknown: {summary}")),
                (Some((status, summary)), wanted) => {
                    let is_bad = Some(*status) != wanted;
                    let outcome = if is_bad { StepOutcome::Bad } else { StepOutcome::Good };
                    (outcome, format!("{}: {summary}", word(*status)))
                }
            },
            Self::Cause(..) | Self::Longest(_) | Self::Stretch(..) => {
                let Some(side) = &step.measured else { return skipped("not measured".into()) };
                match (self.number(side), limits.threshold) {
                    (Ok(number), Some(limit)) => {
                        let is_bad = number > limit;
                        let outcome = if is_bad { StepOutcome::Bad } else { StepOutcome::Good };
                        (outcome, self.said(number))
                    }
                    (Err(why), _) => skipped(why),
                    (_, None) => skipped("no limit".into()),
                }
            }
        }
    }

    fn said(&self, number: u64) -> String {
        match self {
            Self::Cause(name, _) => format!("{} of {name}", count(number, "stretch")),
            Self::Stretch(name, _) => {
                format!("longest stretch of {name} {} instructions", grouped(number))
            }
            _ => format!("longest wake-up path {} instructions", grouped(number)),
        }
    }

    /// The number that is compared, or why it is not known.
    fn number(&self, side: &KernelSide) -> Result<u64, String> {
        match self {
            Self::Longest(_) => {
                side.latency.max.ok_or_else(|| "no wake-up was measured".to_owned())
            }
            Self::Cause(name, _) => Ok(stretches(side, name)?.map_or(0, |of| of.count)),
            Self::Stretch(name, _) => Ok(stretches(side, name)?.map_or(0, |of| of.longest)),
            Self::Check(_) | Self::Verdict | Self::Command(_) => Err("not a number".into()),
        }
    }
}

/// The row of a cause; `None`: none, of wake-ups that were all explained.
fn stretches<'a>(side: &'a KernelSide, name: &str) -> Result<Option<&'a Stretches>, String> {
    let [seen, explained, incomplete] = side.spikes;
    if side.threshold.is_none() {
        return Err("causes are unknown: no wake-up was looked into (kernel events cannot be \
                    recorded there, or --no-trace)"
            .into());
    }
    if explained < seen || incomplete > 0 {
        return Err(format!(
            "causes are unknown: of {} above the threshold {} were explained, {} with events \
             missing",
            count(seen, "wake-up"),
            grouped(explained),
            grouped(incomplete)
        ));
    }
    let row = side.causes.iter().find(|of| of.cause == name);
    match row {
        Some(of) if of.sum > 0 && of.uncertain >= of.sum => {
            Err(format!("{name} may be another cause in all of its {}", count(of.count, "stretch")))
        }
        row => Ok(row),
    }
}

/// A status as it is written elsewhere.
pub(super) const fn word(status: Status) -> &'static str {
    match status {
        Status::Bad => "bad",
        Status::Doubtful => "doubtful",
        Status::Unknown => "unknown",
        Status::Good => "good",
        Status::NotApplicable => "not applicable",
    }
}

#[cfg(test)]
mod tests {
    use rtproof_results::kernel::compare::WakeUpPath;

    use super::*;

    fn step(max: Option<u64>, spikes: [u64; 3], rows: &[(&str, u64, u64, u64)]) -> BisectStep {
        let causes = rows.iter().map(|(cause, count, longest, uncertain)| Stretches {
            cause: (*cause).into(),
            title: (*cause).into(),
            count: *count,
            longest: *longest,
            sum: count * longest,
            uncertain: *uncertain,
        });
        let side = KernelSide {
            latency: WakeUpPath { max, ..WakeUpPath::default() },
            threshold: Some(100),
            spikes,
            causes: causes.collect(),
            ..KernelSide::default()
        };
        BisectStep { measured: Some(side), ..BisectStep::default() }
    }

    fn judged(of: &Criterion, step: &BisectStep, limit: u64) -> StepOutcome {
        of.judge(step, Limits { threshold: Some(limit), status: None }).0
    }

    #[test]
    fn a_limit_lies_between_both_ends_or_is_asked_for() {
        let of = Criterion::Longest(None);
        let (good, bad) = (step(Some(1000), [0; 3], &[]), step(Some(9000), [0; 3], &[]));
        let limits = of.limits(&good, &bad).unwrap();
        assert_eq!(limits.threshold, Some(5000));
        assert_eq!(of.judge(&good, limits).0, StepOutcome::Good);
        assert_eq!(of.judge(&bad, limits).0, StepOutcome::Bad);
        let near = step(Some(1200), [0; 3], &[]);
        assert!(of.limits(&good, &near).unwrap_err().contains(&grouped(1200)));
        assert!(of.limits(&bad, &good).is_err());
        assert!(of.limits(&step(None, [0; 3], &[]), &bad).unwrap_err().contains("good end"));
    }

    #[test]
    fn what_is_not_known_decides_nothing() {
        let of = Criterion::Cause("irqs-off".into(), 0);
        let rows: &[_] = &[("irqs-off", 3, 500, 0)];
        assert_eq!(judged(&of, &step(None, [3, 3, 0], rows), 0), StepOutcome::Bad);
        assert_eq!(judged(&of, &step(None, [3, 3, 0], rows), 3), StepOutcome::Good);
        assert_eq!(judged(&of, &step(None, [0, 0, 0], &[]), 0), StepOutcome::Good);
        // Not all explained, events missing, all of it uncertain, nothing recorded at all.
        assert_eq!(judged(&of, &step(None, [4, 3, 0], rows), 0), StepOutcome::Skipped);
        assert_eq!(judged(&of, &step(None, [3, 3, 1], &[]), 0), StepOutcome::Skipped);
        let unsure: &[_] = &[("irqs-off", 3, 500, 1500)];
        assert_eq!(judged(&of, &step(None, [3, 3, 0], unsure), 0), StepOutcome::Skipped);
        let mut blind = step(None, [0; 3], &[]);
        blind.measured.as_mut().unwrap().threshold = None;
        assert_eq!(judged(&of, &blind, 0), StepOutcome::Skipped);
        let longest = Criterion::Stretch("irqs-off".into(), Some(400));
        assert_eq!(judged(&longest, &step(None, [3, 3, 0], rows), 400), StepOutcome::Bad);
    }

    #[test]
    fn exit_codes_are_those_of_git_bisect_run() {
        let of = Criterion::Command(vec!["true".into()]);
        let outcome =
            |exit| of.judge(&BisectStep { exit, ..BisectStep::default() }, Limits::default()).0;
        assert_eq!(outcome(Some(0)), StepOutcome::Good);
        assert_eq!([1, 124, 126, 127].map(|code| outcome(Some(code))), [StepOutcome::Bad; 4]);
        assert_eq!(outcome(Some(125)), StepOutcome::Skipped);
        assert_eq!(outcome(None), StepOutcome::Skipped);
        assert_eq!(outcome(Some(PANICKED)), StepOutcome::Bad);
    }

    #[test]
    fn a_verdict_is_good_bad_or_none() {
        let outcome = |exit| {
            let mut step = step(None, [0; 3], &[]);
            step.measured.as_mut().unwrap().exit = exit;
            Criterion::Verdict.judge(&step, Limits::default()).0
        };
        assert_eq!(outcome(Some(0)), StepOutcome::Good);
        assert_eq!(outcome(Some(2)), StepOutcome::Bad);
        assert_eq!([Some(1), Some(3), None].map(outcome), [StepOutcome::Skipped; 3]);
    }

    #[test]
    fn a_check_that_is_unknown_is_skipped() {
        let of = Criterion::Check("preempt-rt".into());
        let step =
            |status| BisectStep { check: Some((status, "x".into())), ..BisectStep::default() };
        let limits = of.limits(&step(Status::Good), &step(Status::Bad)).unwrap();
        let outcome = |status| of.judge(&step(status), limits).0;
        assert_eq!(outcome(Status::Good), StepOutcome::Good);
        assert_eq!(outcome(Status::Doubtful), StepOutcome::Bad);
        assert_eq!(outcome(Status::Unknown), StepOutcome::Skipped);
        assert_eq!(of.judge(&BisectStep::default(), limits).0, StepOutcome::Skipped);
    }
}
