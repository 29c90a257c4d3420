//! The answers of `tune`: what changes or has changed, what does not hold, what to do next.

use std::path::Path;

use rtproof_judge::{
    units::count,
    verify::{Verified, WordEffect},
};
use rtproof_results::{
    Answer, Tone,
    tune::{
        self, Applied, EntryKernel, EntryStanding, JournalStanding, MadeOutcome, StandingChange,
        StandingNow, TakenBack, TakenBackOutcome, TuneStatus, Undone,
    },
};

use crate::next;

/// Reasons that are named.
const NAMED_MAX: usize = 3;

/// The first few, and how many more there are.
fn some(all: &[String]) -> Option<String> {
    let more = all.len().saturating_sub(NAMED_MAX);
    let mut named: Vec<String> = all.iter().take(NAMED_MAX).cloned().collect();
    named.extend((more > 0).then(|| format!("and {more} more")));
    (!named.is_empty()).then(|| named.join("; "))
}

/// Parts that are not zero.
fn parts(parts: &[(usize, &str)]) -> String {
    let named = parts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
    named.collect::<Vec<_>>().join(", ")
}

/// The answer of `plan`; `next`: what makes or tries the changes, or shows that none is needed.
pub(crate) fn plan(document: &tune::PlanDocument, next: Option<String>) -> Answer {
    let (steps, words) = (document.steps.len(), document.boot.words.len());
    if !document.conflicts.is_empty() {
        let targets = document.conflicts.iter().map(|conflict| {
            let checks: Vec<&str> =
                conflict.requests.iter().map(|(check, _)| check.as_str()).collect();
            format!("{}: {} contradict each other", conflict.target, checks.join(", "))
        });
        return Answer {
            result: format!(
                "nothing can be applied: {}",
                count(document.conflicts.len(), "conflict")
            ),
            tone: Tone::Bad,
            why: some(&targets.collect::<Vec<_>>()),
            next: None,
        };
    }
    let mut checks: Vec<String> = Vec::new();
    for id in document.steps.iter().flat_map(|it| &it.step.reason.checks) {
        if !checks.contains(id) {
            checks.push(id.clone());
        }
    }
    let mut result = match (steps, words) {
        (0, 0) => "nothing to change".to_owned(),
        (_, 0) => format!("{} to make now", count(steps, "change")),
        (0, _) => format!("{} to try", count(words, "boot parameter")),
        _ => format!(
            "{} to make now, {} to try",
            count(steps, "change"),
            count(words, "boot parameter")
        ),
    };
    let by_hand = rtproof_render::page::manual_entries(&document.instructions);
    let rest = parts(&[
        (by_hand, "to do by hand"),
        (document.left_out.len(), "left out"),
        (document.done, "as wanted already"),
    ]);
    if !rest.is_empty() {
        result += &format!("; {rest}");
    }
    let tone = if steps + words + by_hand == 0 { Tone::Good } else { Tone::Doubtful };
    Answer { result, tone, why: some(&checks).map(|ids| format!("for {ids}")), next }
}

/// The answer of `apply`; `prove`: the measurement that shows the effect; `trial`: what tries the
/// boot parameters that are left; `root`: the machine, where it is not the running one.
pub(crate) fn applied(applied: &Applied, prove: &str, trial: &str, root: Option<&Path>) -> Answer {
    let of = |outcome| applied.changes.iter().filter(move |it| it.outcome == outcome);
    let (made, failed) = (of(MadeOutcome::Applied).count(), of(MadeOutcome::Failed).count());
    let failures = of(MadeOutcome::Failed)
        .map(|it| format!("{}: {}", it.change.title(), it.why.as_deref().unwrap_or("failed")));
    let why = some(&failures.collect::<Vec<_>>());
    let at = next::root(root);
    if applied.rolled_back {
        let result = "nothing is applied: everything was undone".to_owned();
        return Answer { result, tone: Tone::Bad, why, next: None };
    }
    let kernel = of(MadeOutcome::Applied).find_map(|it| it.change.kernel());
    let measured = match kernel {
        // What runs until then is the old one.
        Some(release) => format!("rtproof tune trial --kernel {release}"),
        None if at.is_empty() => prove.to_owned(),
        None => format!("rtproof tune status{at}"),
    };
    if applied.changes.is_empty() {
        let (result, next) = match applied.boot_parameters.len() {
            0 => ("nothing to change: the machine is as the plan wants it".to_owned(), measured),
            n => (
                format!("nothing to change at once; {} left", count(n, "boot parameter")),
                trial.to_owned(),
            ),
        };
        return Answer { result, tone: Tone::Plain, why, next: Some(next) };
    }
    let rest = parts(&[
        (of(MadeOutcome::AsWanted).count(), "as wanted already"),
        (of(MadeOutcome::LeftOut).count(), "left out"),
        (failed, "FAILED"),
    ]);
    let mut result = format!("{} applied", count(made, "change"));
    if !rest.is_empty() {
        result += &format!(", {rest}");
    }
    let next = match applied.confirm_within_ns {
        // Changes that are not kept are undone while measuring.
        Some(ns) => {
            result += &format!("; undone unless confirmed within {}", next::time(ns));
            format!("rtproof tune confirm{at}")
        }
        None => measured,
    };
    let tone = if failed > 0 { Tone::Doubtful } else { Tone::Good };
    Answer { result, tone, why, next: Some(next) }
}

/// The answer of what writes files for a later boot: `trial`, `persist`. What comes next is the
/// boot, which no command of ours is.
pub(crate) fn written(applied: &Applied, what: &str) -> Answer {
    let made = applied.changes.iter().filter(|it| it.outcome == MadeOutcome::Applied).count();
    let result = match made {
        0 => format!("nothing written for the {what}"),
        _ => format!("{} written for the {what}", count(made, "change")),
    };
    Answer { result, ..Answer::default() }
}

/// The answer of `undo`.
pub(crate) fn undone(undone: &Undone, root: Option<&Path>) -> Answer {
    let changes = || undone.journals.iter().flat_map(|journal| &journal.changes);
    let of = |outcome| changes().filter(|it| it.outcome == outcome).count();
    let failed = of(TakenBackOutcome::Failed);
    let left = of(TakenBackOutcome::LeftAlone) + of(TakenBackOutcome::Unnoted);
    let restored = of(TakenBackOutcome::Restored);
    let before = of(TakenBackOutcome::WasBefore) + of(TakenBackOutcome::Gone);
    let unusable = undone.unusable.len();
    let rest = parts(&[(before, "back already"), (left, "left alone"), (failed, "FAILED")]);
    let missing = undone.unusable.iter().filter(|it| it.missing).count();
    let unusable = unusable - missing;
    let mut result = match undone.journals.is_empty() {
        true if missing > 0 => "nothing was undone".to_owned(),
        true => "nothing to undo".to_owned(),
        false => format!("{} undone", count(restored, "change")),
    };
    if !rest.is_empty() {
        result += &format!(", {rest}");
    }
    if unusable > 0 {
        result += &format!("; {} cannot be used", count(unusable, "journal"));
    }
    if missing > 0 {
        result += &format!("; applied, {} missing", count(missing, "journal"));
    }
    if !undone.still_open.is_empty() {
        result += &format!("; {} still open", count(undone.still_open.len(), "journal"));
    }
    let tone = match (failed, left + unusable + missing) {
        (0, 0) => Tone::Good,
        (0, _) => Tone::Doubtful,
        _ => Tone::Bad,
    };
    let open = failed > 0 || undone.journals.iter().any(|journal| journal.unrecorded.is_some());
    let at = next::root(root);
    let next = match (open, undone.still_open.is_empty()) {
        (_, false) => Some(format!("rtproof tune undo --all{at}")),
        (true, true) => Some(format!("rtproof tune status{at}")),
        (false, true) => None,
    };
    let is_off = |it: &&TakenBack| {
        use rtproof_results::tune::TakenBackOutcome::{Failed, LeftAlone, Unnoted};
        matches!(it.outcome, Failed | LeftAlone | Unnoted)
    };
    let why = |it: &TakenBack| match &it.why {
        Some(why) => format!("{}: {why}", it.change.title()),
        None => format!("{}: found {}, not our {}", it.change.title(), it.now, it.ours),
    };
    let mut reasons: Vec<String> = changes().filter(is_off).map(why).collect();
    reasons.extend(undone.unusable.iter().map(|it| format!("journal {}: {}", it.journal, it.why)));
    Answer { result, tone, why: some(&reasons), next }
}

/// Status of changes: number as applied, and problems of the others.
fn count_standing<'a>(
    changes: impl Iterator<Item = &'a StandingChange>,
) -> (usize, Vec<String>, usize) {
    let (mut good, mut wrong, mut unknown) = (0, Vec::new(), 0);
    for it in changes {
        match it.standing {
            StandingNow::AsApplied => good += 1,
            StandingNow::Changed => {
                wrong.push(format!("{}: {}, not our {}", it.change.title(), it.now, it.ours));
            }
            StandingNow::Unreadable => unknown += 1,
            StandingNow::Superseded
            | StandingNow::UsedUp
            | StandingNow::Gone
            | StandingNow::NotMade => {}
        }
    }
    (good, wrong, unknown)
}

/// The answer of `status`.
pub(crate) fn status(status: &TuneStatus, root: Option<&Path>) -> Answer {
    let at = next::root(root);
    let changes = || status.journals.iter().flat_map(|journal| &journal.changes);
    let (good, mut why, unknown) = count_standing(changes());
    let changed = why.len();
    let missing = status.unusable.iter().filter(|it| it.missing).count();
    let mut result = if status.journals.is_empty() {
        match status.unusable.is_empty() {
            true => "nothing of rtproof is applied".to_owned(),
            false => "what is applied is unknown".to_owned(),
        }
    } else {
        let journals = count(status.journals.len(), "open journal");
        let rest = parts(&[(changed, "changed since"), (unknown, "cannot be read")]);
        let rest = if rest.is_empty() { rest } else { format!("; {rest}") };
        format!("{good} of {} as applied, {journals}{rest}", count(changes().count(), "change"))
    };
    if missing > 0 {
        result += &format!("; applied, {} missing", count(missing, "journal"));
    }
    why.extend(status.unusable.iter().map(|it| format!("journal {}: {}", it.journal, it.why)));
    let tone = match (changed, unknown + status.unusable.len()) {
        (0, 0) => Tone::Good,
        (0, _) => Tone::Doubtful,
        _ => Tone::Bad,
    };
    let is_ours = status.boot.as_ref().is_some_and(on_trial);
    let waits = |journal: &JournalStanding| {
        let is_back = !journal.changes.is_empty() && journal.changes.iter().all(|it| it.is_old);
        journal.unconfirmed && journal.is_of_this_boot && !is_back
    };
    let next = match () {
        () if is_ours || status.journals.iter().any(waits) => {
            Some(format!("rtproof tune confirm{at}"))
        }
        () if !status.journals.is_empty() => Some(format!("rtproof tune undo{at}")),
        () => None,
    };
    Answer { result, tone, why: some(&why), next }
}

/// Whether this boot is the trial of our entry.
fn on_trial(boot: &tune::BootStanding) -> bool {
    boot.standing == EntryStanding::Written && boot.is_running
}

/// The answer of `verify`; `boot`: our entry, where its parameters were looked for.
pub(crate) fn verified(
    found: &tune::VerifiedDocument,
    boot: Option<&tune::BootStanding>,
    root: Option<&Path>,
) -> Answer {
    let at = next::root(root);
    let (good, wrong, unreadable) = count_standing(found.changes.iter());
    let effective = found.parameters.iter().filter(|it| it.effect == WordEffect::Effective).count();
    let lost = || found.parameters.iter().filter(|it| it.effect.is_bad());
    let mut why: Vec<String> = lost().map(became).collect();
    why.extend(wrong.iter().cloned());
    let other = found.kernel.as_ref().filter(|it| it.is_running() != Some(true));
    why.extend(other.map(|it| format!("kernel of the boot entry: {}", it.text())));
    let runs = found.kernel.as_ref().map(EntryKernel::is_running);
    let cannot = found.parameters.iter().filter(|it| it.effect == WordEffect::CannotTell).count();
    let mut counts = Vec::new();
    if !found.parameters.is_empty() {
        counts.push(format!(
            "{effective} of {} effective",
            count(found.parameters.len(), "parameter")
        ));
    }
    if !found.changes.is_empty() {
        counts.push(format!("{good} of {} as applied", count(found.changes.len(), "change")));
    }
    match runs {
        Some(Some(true)) => counts.insert(0, "the kernel of the boot entry runs".to_owned()),
        Some(Some(false)) => counts.insert(0, "another kernel runs than the entry's".to_owned()),
        Some(None) => counts.insert(0, "whether the entry's kernel runs is unknown".to_owned()),
        None => {}
    }
    let result = match counts.is_empty() {
        true => "nothing to verify".to_owned(),
        false => counts.join("; "),
    };
    let (tone, next) = match () {
        () if runs == Some(Some(false)) => (Tone::Bad, Some(format!("rtproof tune status{at}"))),
        () if lost().next().is_some() => (Tone::Bad, Some(format!("rtproof tune plan{at}"))),
        () if found.changes.iter().any(StandingChange::is_bad) => {
            (Tone::Bad, Some(format!("rtproof tune status{at}")))
        }
        () if cannot + unreadable > 0 || runs == Some(None) => (Tone::Doubtful, None),
        () if counts.is_empty() => (Tone::Plain, Some(format!("rtproof tune plan{at}"))),
        () if boot.is_some_and(on_trial) => (Tone::Good, Some(format!("rtproof tune confirm{at}"))),
        () => (Tone::Good, None),
    };
    Answer { result, tone, why: some(&why), next }
}

/// State of a parameter that differs from the request.
fn became(it: &Verified) -> String {
    let word = &it.parameter;
    match it.effect {
        WordEffect::Missing if it.removes => format!("{word} is still on the command line"),
        // Another word of the same name may do as much.
        WordEffect::Missing => format!("{word} is not on the command line"),
        WordEffect::Ignored => format!("the kernel ignores {word}"),
        _ => format!("{word} is not in force"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rtproof_results::tune::{APPLIED, UNDONE};

    fn done(boot_parameters: &[&str], rolled_back: bool) -> Applied {
        Applied {
            schema: APPLIED,
            journal: None,
            path: None,
            changes: Vec::new(),
            rolled_back,
            boot_parameters: boot_parameters.iter().map(|&word| word.to_owned()).collect(),
            confirm_within_ns: None,
            kernel: None,
        }
    }

    #[test]
    fn after_an_apply_its_effect_is_measured_where_it_can_be() {
        let next = |it: &Applied, root| applied(it, "PROVE", "TRIAL", root).next;
        assert_eq!(next(&done(&[], false), None).as_deref(), Some("PROVE"));
        assert_eq!(next(&done(&["nohz_full=1"], false), None).as_deref(), Some("TRIAL"));
        let root = Some(Path::new("/a b"));
        let status = next(&done(&[], false), root);
        assert_eq!(status.as_deref(), Some("rtproof tune status --root '/a b'"));
        let undone = applied(&done(&[], true), "PROVE", "TRIAL", None);
        assert_eq!((undone.tone, undone.next), (Tone::Bad, None));
    }

    #[test]
    fn what_is_left_open_is_undone_next() {
        let of = |still_open| {
            undone(&Undone { schema: UNDONE, journals: vec![], unusable: vec![], still_open }, None)
        };
        assert_eq!((of(vec![]).result, of(vec![]).next), ("nothing to undo".into(), None));
        assert_eq!(of(vec![3]).result, "nothing to undo; 1 journal still open");
        assert_eq!(of(vec![3]).next.as_deref(), Some("rtproof tune undo --all"));
    }

    #[test]
    fn the_first_reasons_are_named_and_the_others_counted() {
        let of = |n: usize| some(&(0..n).map(|at| at.to_string()).collect::<Vec<_>>());
        assert_eq!(of(0), None);
        assert_eq!(of(3).as_deref(), Some("0; 1; 2"));
        assert_eq!(of(5).as_deref(), Some("0; 1; 2; and 2 more"));
    }
}
