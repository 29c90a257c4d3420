//! Single runs: shown with their intervals, and decided never.

use rtproof_stats::quantile::Q;

use super::{
    against::Against,
    answer::{Answer, Request, equal_exposure},
    boot::Draws,
    changes::Change,
    effect::cliffs_delta,
    moments, sentence,
    shift::{GRID, Shift, ShiftPoint},
    side::Side,
    table::{Observation, QUANTILES, Unit},
};

/// Most pairs of single runs that are drawn again and again.
const DRAWN_MAX: usize = 24;

/// Each of the others against the first.
pub(super) fn against(
    first: &Observation<'_>,
    others: &[Observation<'_>],
    wish: &Request,
) -> Vec<Against> {
    let drawn = drawn();
    let draws = |seen: &Observation<'_>, salt: usize| {
        let (side, _) = seen.single()?;
        (salt <= DRAWN_MAX).then(|| Draws::of(side, seen.view, &drawn, salt as u64)).flatten()
    };
    let mine = draws(first, 0);
    let one = |(at, seen): (usize, &Observation<'_>)| {
        let drawn = mine.as_ref().and_then(|mine| Some((mine, draws(seen, at + 1)?)));
        let drawn = drawn.as_ref().map(|(mine, other)| (*mine, other));
        let changes = changes(first, seen, drawn, wish);
        Against {
            group: at + 1,
            answer: Answer::CannotDecide,
            sentence: sentence::of_single(&first.group.label, &seen.group.label, &changes, wish),
            reasons: sentence::reasons_of_single(first, seen, wish),
            cliffs_delta: cliffs_delta(&first.bins, &seen.bins),
            shift: shift(first, seen, drawn, wish),
            pairs: None,
            changes,
        }
    };
    others.iter().enumerate().map(one).collect()
}

/// The quantiles that are looked at in each draw.
fn drawn() -> Vec<Q> {
    let more = QUANTILES.into_iter().filter(|q| !GRID.contains(q));
    GRID.into_iter().chain(more).collect()
}

/// Place of a quantile among them.
fn drawn_at(q: Q) -> Option<usize> {
    drawn().iter().position(|other| *other == q)
}

/// Draws of the first run and of the other.
type Drawn<'a> = Option<(&'a Draws, &'a Draws)>;

fn changes(
    first: &Observation<'_>,
    seen: &Observation<'_>,
    drawn: Drawn<'_>,
    wish: &Request,
) -> Vec<Change> {
    let mut changes: Vec<Change> =
        QUANTILES.into_iter().filter_map(|q| quantile(first, seen, q, drawn, wish)).collect();
    changes.push(max(first, seen, wish));
    let (from, _) = moments::of(&first.group.sides);
    let (to, _) = moments::of(&seen.group.sides);
    for (name, from, to) in [("mean", from.mean, to.mean), ("sd", from.sd, to.sd)] {
        let mut change = Change::of(name, Unit::Ns, from, to).with_ratio(wish.margin);
        change.method = "no interval".into();
        changes.push(change);
    }
    changes.extend(shares(first, seen, wish));
    let n = first.bins.total().min(seen.bins.total());
    changes.iter_mut().for_each(|change| change.n = n);
    changes
}

fn quantile(
    first: &Observation<'_>,
    seen: &Observation<'_>,
    q: Q,
    drawn: Drawn<'_>,
    wish: &Request,
) -> Option<Change> {
    let ((a, a_bins), (b, b_bins)) = first.single().zip(seen.single())?;
    let values = (a.quantile(a_bins, q), b.quantile(b_bins, q));
    let (from, to) = (values.0.map(|v| v.ns as f64), values.1.map(|v| v.ns as f64));
    let change = Change::of(&q.name(), Unit::Ns, from, to);
    let (from, to) = match values {
        (None, None) => return None,
        (Some(from), Some(to)) => (from, to),
        _ => return Some(change.because("too few wake-ups in one of the runs")),
    };
    if from.at_least || to.at_least {
        return Some(change.because("beyond the end of a tool's histogram"));
    }
    let mut change = change.with_ratio(wish.margin);
    let worth = |side: &Side, high_ns| side.n_eff(high_ns, first.view);
    change.n_eff = worth(a, from.high_ns).zip(worth(b, to.high_ns)).map(|(a, b)| a.min(b));
    let (interval, method) = interval(first, seen, q, drawn, wish);
    (change.low, change.high) = interval;
    change.method = method;
    Some(change)
}

/// The interval of a quantile's ratio: from draws of the rows, else from the ends of the two order
/// statistics' intervals, and never narrower than the cells that the values were read from.
fn interval(
    first: &Observation<'_>,
    seen: &Observation<'_>,
    q: Q,
    drawn: Drawn<'_>,
    wish: &Request,
) -> ((Option<f64>, Option<f64>), String) {
    let at = drawn_at(q);
    let boot = drawn.zip(at).and_then(|((mine, other), at)| {
        let (low, high) = mine.ratio(other, at, wish.confidence)?;
        let block_ns = mine.block_ns.max(other.block_ns);
        Some((low, high, crate::quantity::duration(block_ns)))
    });
    if let Some((low, high, block)) = boot {
        return ((Some(low), Some(high)), format!("stationary bootstrap, blocks of {block}"));
    }
    let Some(((a, a_bins), (b, b_bins))) = first.single().zip(seen.single()) else {
        return ((None, None), "no interval".into());
    };
    let ends = |side: &Side, bins: &rtproof_stats::Bins| {
        let value = side.quantile(bins, q);
        let n_eff = value.and_then(|value| side.n_eff(value.high_ns, first.view));
        let (low, high) =
            bins.interval_of(q.value(), wish.confidence, n_eff.unwrap_or(bins.total()));
        // A cell of whole microseconds holds what is a microsecond more, and not quite.
        let edge = |ns: u64| (ns + 1) as f64;
        let low = low.zip(value).map(|(ns, value)| ns.min(value.low_ns) as f64);
        let high = high.zip(value).map(|(ns, value)| edge(ns.max(value.high_ns)));
        (low, high, n_eff.is_some())
    };
    let ((a_low, a_high, a_known), (b_low, b_high, b_known)) = (ends(a, a_bins), ends(b, b_bins));
    let ratio = |to: Option<f64>, from: Option<f64>| {
        Some(to? / from?).filter(|ratio| ratio.is_finite() && *ratio > 0.0)
    };
    let method = match a_known && b_known {
        true => "ends of both order-statistics intervals",
        false => {
            "ends of both order-statistics intervals, wake-ups taken for independent: too narrow \
             where late ones come in groups"
        }
    };
    ((ratio(b_low, a_high), ratio(b_high, a_low)), method.into())
}

/// Maxima are compared where both runs were as long.
fn max(first: &Observation<'_>, seen: &Observation<'_>, wish: &Request) -> Change {
    let of = |seen: &Observation<'_>| seen.single().and_then(|(side, _)| side.max());
    let (from, to) = (of(first), of(seen));
    let value = |max: Option<(u64, bool)>| max.map(|(ns, _)| ns as f64);
    let change = Change::of("max", Unit::Ns, value(from), value(to));
    if [from, to].iter().flatten().any(|&(_, at_least)| at_least) {
        return change.because("a tool's histogram ended before the largest value");
    }
    if !equal_exposure(first.group.exposure(), seen.group.exposure()) {
        return change.because("unequal exposure: the longer run has the larger maximum by itself");
    }
    let mut change = change.with_ratio(wish.margin);
    change.method = "exact, at equal exposure; a maximum has no interval".into();
    change
}

/// Missed wake-ups and those over the budget.
fn shares(first: &Observation<'_>, seen: &Observation<'_>, wish: &Request) -> Vec<Change> {
    let share = |run: (u64, u64)| (run.1 > 0).then(|| run.0 as f64 / run.1 as f64);
    let missed =
        |seen: &Observation<'_>| seen.missed().into_iter().next().flatten().and_then(share);
    let mut all = vec![("missed", missed(first), missed(seen))];
    if let Some(budget_ns) = first.budget_ns {
        let late = |seen: &Observation<'_>| seen.late(budget_ns).into_iter().next().and_then(share);
        all.push(("over budget", late(first), late(seen)));
    }
    let change = |(name, from, to): (&str, _, _)| {
        let change = Change::of(name, Unit::Share, from, to);
        match from.zip(to) {
            None => change.because("not counted in one of the runs"),
            Some(_) => Change {
                method: "no interval of the ratio".into(),
                ..change.with_ratio(wish.margin)
            },
        }
    };
    all.into_iter().map(change).collect()
}

fn shift(
    first: &Observation<'_>,
    seen: &Observation<'_>,
    drawn: Drawn<'_>,
    wish: &Request,
) -> Shift {
    let mut method = String::new();
    let mut points = Vec::new();
    for q in GRID {
        let Some(((a, a_bins), (b, b_bins))) = first.single().zip(seen.single()) else { break };
        let Some((from, to)) = a.quantile(a_bins, q).zip(b.quantile(b_bins, q)) else { continue };
        if from.ns == 0 || to.ns == 0 || from.at_least || to.at_least {
            continue;
        }
        let ((low, high), how) = interval(first, seen, q, drawn, wish);
        method = how;
        points.push(ShiftPoint {
            quantile: q.name(),
            share: q.value(),
            from_ns: from.ns as f64,
            to_ns: to.ns as f64,
            ratio: to.ns as f64 / from.ns as f64,
            low,
            high,
        });
    }
    Shift { points, method }
}
