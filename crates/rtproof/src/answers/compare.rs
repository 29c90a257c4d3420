//! The answer of `compare`: what is decided, which causes came or went, where to look.

use std::path::Path;

use rtproof_judge::{
    compare::{self, CauseLine, Comparison, Group, Mismatch, Side},
    units,
};
use rtproof_results::answer::{Answer, Tone};

use crate::next;

/// Causes that are named.
const NAMED_MAX: usize = 3;

/// The answer.
#[must_use]
pub(crate) fn answer(comparison: &Comparison, groups: &[Group]) -> Answer {
    let tone = match comparison.answer {
        compare::Answer::Better => Tone::Good,
        compare::Answer::Worse => Tone::Bad,
        compare::Answer::NoDifference => Tone::Plain,
        compare::Answer::CannotDecide => Tone::Doubtful,
    };
    let is_open =
        matches!(comparison.answer, compare::Answer::Worse | compare::Answer::CannotDecide);
    Answer {
        result: comparison.sentence.clone(),
        tone,
        why: forced(comparison).or_else(|| why(comparison)),
        next: groups.last().filter(|_| is_open).and_then(explained),
    }
}

/// Why the runs should not have been compared: nothing else counts then.
fn forced(comparison: &Comparison) -> Option<String> {
    let texts: Vec<String> = comparison.mismatches.iter().map(Mismatch::text).collect();
    (!texts.is_empty()).then(|| format!("compared by force, not alike: {}", texts.join("; ")))
}

/// Causes of late wake-ups that two groups do not share alike, those with the largest sum first.
/// That they are the reason of a difference is not said: nobody has removed one.
fn why(comparison: &Comparison) -> Option<String> {
    let [a, b] = comparison.groups.as_slice() else { return None };
    let line = |line: &CauseLine| match line.cells.as_slice() {
        [Some(one), Some(other)] if one.count != other.count => {
            let who = match line.culprit.as_str() {
                "" => String::new(),
                culprit => format!(" ({culprit})"),
            };
            let (before, after) = (units::times(one.count), units::times(other.count));
            Some(format!("{}{who}: {} {before}, {} {after}", line.title, a.label, b.label))
        }
        _ => None,
    };
    let named: Vec<String> = comparison.causes.iter().filter_map(line).take(NAMED_MAX).collect();
    (!named.is_empty()).then(|| format!("causes that differ: {}", named.join("; ")))
}

/// Where the worst spike of a group is explained; `None`: no record of it holds one.
fn explained(group: &Group) -> Option<String> {
    let worst = |side: &Side| {
        let spike = side.spikes.as_ref()?.worst.first()?;
        Some((spike.explanation.wake.latency_ns(), spike.number))
    };
    let sides = group.sides.iter().filter_map(|side| Some((worst(side)?, side)));
    let ((_, number), side) = sides.max_by_key(|&(worst, _)| worst)?;
    Some(format!("rtproof explain {} --spike {number}", next::path(Path::new(&side.source))))
}
