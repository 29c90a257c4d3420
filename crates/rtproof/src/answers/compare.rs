//! The answer of `compare`: what is decided, which causes came or went, where to look.

use std::path::Path;

use rtproof_judge::{
    causes::Spikes,
    compare::{self, CauseCell, CauseLine, Comparison, Group, Mismatch, Side},
    units,
};
use rtproof_results::answer::{Answer, Tone};

use crate::next;

/// Causes that are named.
const NAMED_MAX: usize = 3;

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
        why: forced(comparison).or_else(|| why(comparison, groups)),
        next: groups.get(1..).filter(|_| is_open).and_then(explained),
    }
}

/// Why the runs should not have been compared: nothing else counts then.
fn forced(comparison: &Comparison) -> Option<String> {
    let texts: Vec<String> = comparison.mismatches.iter().map(Mismatch::text).collect();
    (!texts.is_empty()).then(|| format!("compared by force, not alike: {}", texts.join("; ")))
}

/// Causes of spikes that come more often in one of two groups, those with the largest sum first.
/// That they are the reason of a difference is not said: nobody has removed one.
fn why(comparison: &Comparison, groups: &[Group]) -> Option<String> {
    let spikes: Vec<_> = groups.iter().flat_map(|it| &it.sides).map(|it| &it.spikes).collect();
    let threshold = |it: &&Option<Spikes>| it.as_ref().map(|spikes| spikes.threshold_ns);
    // What is no spike in one of them is counted in the other alone.
    let is_alike = spikes.windows(2).all(|two| threshold(&two[0]) == threshold(&two[1]));
    let [a, b] = comparison.groups.as_slice() else { return None };
    let lines = comparison.causes.iter().filter(|_| is_alike);
    let named = lines.filter_map(|line| differs(line, [&a.label, &b.label]));
    let named: Vec<String> = named.take(NAMED_MAX).collect();
    (!named.is_empty()).then(|| format!("causes that differ: {}", named.join("; ")))
}

/// A cause in two groups, as a rate: runs may differ in length.
fn differs(line: &CauseLine, labels: [&str; 2]) -> Option<String> {
    let [Some(one), Some(other)] = line.cells.as_slice() else { return None };
    if one.count == other.count {
        return None;
    }
    let text = |label: &str, cell: &CauseCell| match cell.count {
        0 => format!("{label} never"),
        _ => format!("{label} {}", units::per_hour(cell.per_hour)),
    };
    let who = if line.culprit.is_empty() { String::new() } else { format!(" ({})", line.culprit) };
    let (one, other) = (text(labels[0], one), text(labels[1], other));
    Some(format!("{}{who}: {one}, {other}", line.title))
}

/// Where the worst spike of some groups is explained; `None`: no record of them holds one.
fn explained(groups: &[Group]) -> Option<String> {
    let worst = |side: &Side| {
        let spike = side.spikes.as_ref()?.worst.first()?;
        Some((spike.explanation.wake.latency_ns(), spike.number))
    };
    let sides = groups.iter().flat_map(|group| &group.sides);
    let sides = sides.filter_map(|side| Some((worst(side)?, side)));
    let ((_, number), side) = sides.max_by_key(|&(worst, _)| worst)?;
    Some(format!("rtproof explain {} --spike {number}", next::path(Path::new(&side.source))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_are_compared_by_their_rates() {
        let cell = |count, per_hour| Some(CauseCell { count, per_hour, ..CauseCell::default() });
        let of = |cells: [Option<CauseCell>; 2]| {
            let (cause, title, culprit) = ("irq".into(), "an interrupt".into(), "eth0".into());
            differs(&CauseLine { cause, title, culprit, cells: cells.into() }, ["a", "b"])
        };
        let text = of([cell(3, 180.0), cell(0, 0.0)]);
        assert_eq!(text.as_deref(), Some("an interrupt (eth0): a 180/h, b never"));
        assert_eq!(of([cell(3, 180.0), cell(3, 180.0)]), None);
        assert_eq!(of([cell(3, 180.0), None]), None, "not explained is not never");
    }
}
