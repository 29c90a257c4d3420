//! The bars of a spike's first lane: its spans as they are drawn.

use std::collections::BTreeSet;

use rtproof_judge::causes::Explanation;

/// A stretch with one cause, as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bar {
    pub(crate) from_ns: u64,
    /// To; after `from_ns`.
    pub(crate) to_ns: u64,
    /// Index of the share.
    pub(crate) share: usize,
    /// Stands for several spans too short to be drawn, of which this share has most.
    pub(crate) is_merged: bool,
}

impl Bar {
    /// How long it is.
    pub(crate) const fn ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }
}

/// At most `most` bars, in order. Spans of a share that does not exist are left out.
pub(crate) fn bars(explanation: &Explanation, most: usize) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for span in &explanation.spans {
        let share = usize::try_from(span.share).unwrap_or(usize::MAX);
        let starts_ns = bars.last().map_or(0, |bar| bar.to_ns).max(span.from_ns);
        if share >= explanation.shares.len() || span.to_ns <= starts_ns {
            continue;
        }
        push(&mut bars, Bar { from_ns: starts_ns, to_ns: span.to_ns, share, is_merged: false });
    }
    if bars.len() > most.max(1) {
        merged(&bars, explanation.shares.len(), most.max(1))
    } else {
        bars
    }
}

fn push(bars: &mut Vec<Bar>, bar: Bar) {
    match bars.last_mut() {
        Some(last) if last.share == bar.share && last.to_ns == bar.from_ns => {
            last.to_ns = bar.to_ns;
            last.is_merged |= bar.is_merged;
        }
        _ => bars.push(bar),
    }
}

/// Columns of equal time, each of the share that has most of it.
fn merged(bars: &[Bar], shares: usize, most: usize) -> Vec<Bar> {
    let (Some(first), Some(last)) = (bars.first(), bars.last()) else {
        return Vec::new();
    };
    let length_ns = last.to_ns - first.from_ns;
    let edge = |i: usize| {
        let part = u128::from(length_ns) * i as u128 / most as u128;
        first.from_ns + u64::try_from(part).unwrap_or(length_ns)
    };
    let mut columns = Vec::new();
    let mut rest = bars;
    for i in 0..most {
        let (from_ns, to_ns) = (edge(i), edge(i + 1));
        let mut of = vec![0_u64; shares];
        let mut parts = 0;
        for bar in rest.iter().take_while(|bar| bar.from_ns < to_ns) {
            of[bar.share] += bar.to_ns.min(to_ns).saturating_sub(bar.from_ns.max(from_ns));
            parts += 1;
        }
        rest = &rest[rest.partition_point(|bar| bar.to_ns <= to_ns)..];
        let top = (0..shares).max_by_key(|&share| (of[share], std::cmp::Reverse(share)));
        if let Some(share) = top.filter(|&share| of[share] > 0 && to_ns > from_ns) {
            push(&mut columns, Bar { from_ns, to_ns, share, is_merged: parts > 1 });
        }
    }
    columns
}

/// For each share the longest of its bars, by index of the bar.
pub(crate) fn longest(bars: &[Bar], shares: usize) -> Vec<Option<usize>> {
    let of = |share: usize| {
        let of_share = bars.iter().enumerate().filter(move |(_, bar)| bar.share == share);
        of_share.max_by_key(|(i, bar)| (bar.ns(), std::cmp::Reverse(*i))).map(|(i, _)| i)
    };
    (0..shares).map(of).collect()
}

/// For each share one of `of` patterns, so that neighbours differ wherever that can be: colours may
/// not be seen.
pub(crate) fn patterns(bars: &[Bar], shares: usize, of: usize) -> Vec<usize> {
    let mut patterns: Vec<Option<usize>> = vec![None; shares];
    let mut neighbours = vec![BTreeSet::new(); shares];
    for (a, b) in bars.iter().zip(bars.iter().skip(1)) {
        neighbours[a.share].insert(b.share);
        neighbours[b.share].insert(a.share);
    }
    for share in 0..shares {
        let is_free = |pattern: &usize| {
            neighbours[share].iter().all(|&other| patterns[other] != Some(*pattern))
        };
        // Begin where the one before ended: all patterns are used.
        let tried = (0..of).map(|i| (share + i) % of.max(1));
        patterns[share] = Some(tried.into_iter().find(is_free).unwrap_or(share % of.max(1)));
    }
    patterns.into_iter().map(Option::unwrap_or_default).collect()
}

#[cfg(test)]
mod tests {
    use rtproof_judge::causes::Span;

    use super::*;
    use crate::spike::sample;

    #[test]
    fn bars_follow_the_spans_and_are_no_more_than_asked() {
        let mut explanation = sample::stall().explanation;
        let all = bars(&explanation, 100);
        assert_eq!(all.iter().map(Bar::ns).sum::<u64>(), explanation.wake.latency_ns());
        let (due_ns, ran_ns) = (explanation.wake.due_ns, explanation.wake.ran_ns);
        // Many short ones: half of the time for each of two shares.
        explanation.spans = (0..1000)
            .map(|i| Span {
                from_ns: due_ns + i * 100,
                to_ns: if i == 999 { ran_ns } else { due_ns + (i + 1) * 100 },
                share: u32::try_from(i % 2).unwrap(),
            })
            .collect();
        let few = bars(&explanation, 50);
        assert!(few.len() <= 50 && few.iter().any(|bar| bar.is_merged));
        assert_eq!(few.iter().map(Bar::ns).sum::<u64>(), explanation.wake.latency_ns());
    }

    #[test]
    fn neighbours_have_different_patterns() {
        for spike in [sample::stall(), sample::short(), sample::incomplete()] {
            let shares = spike.explanation.shares.len();
            let bars = bars(&spike.explanation, 100);
            let patterns = patterns(&bars, shares, 4);
            for pair in bars.windows(2) {
                assert_ne!(patterns[pair[0].share], patterns[pair[1].share]);
            }
        }
        assert!(patterns(&[], 0, 0).is_empty());
    }

    #[test]
    fn spans_of_an_altered_record_do_no_harm() {
        let mut explanation = sample::stall().explanation;
        explanation.spans = vec![
            Span { from_ns: 9, to_ns: 3, share: 0 },
            Span { from_ns: 0, to_ns: u64::MAX, share: 77 },
            Span { from_ns: 10, to_ns: 20, share: 1 },
            Span { from_ns: 5, to_ns: 15, share: 0 },
        ];
        assert_eq!(bars(&explanation, 10).len(), 1);
        explanation.shares.clear();
        assert!(bars(&explanation, 0).is_empty());
    }
}
