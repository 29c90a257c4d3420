//! Groups of runs that alternate: pairs by time, exact tests, and what they decide.
//!
//! p99.9, the latest wake-up of a run and the share of missed wake-ups are tested, adjusted after
//! Holm over these and all groups; p99.9 has most of the weight: six pairs can decide on it.
//! The other statistics are reported with their intervals and decide nothing, because whoever asks
//! ten questions gets one wrong answer.

use rtproof_stats::{
    paired::{self, MAIN, Margin, PAIRS_MAX, Paired, Spread, WeightedQuestion},
    quantile::Q,
};

use super::table::{
    GRID, GroupObservation, PairSummary, QUANTILES, Shift, ShiftPoint, ValueUnit, median,
};
use super::{
    Against, CompareAnswer, CompareRequest, Direction, FAR, PRIMARY, StatisticChange, cliffs_delta,
    direction, equal_exposure, sentence, table,
};

/// Statistics that decide in addition to p99.9: the latest wake-up and the missed ones.
const OTHERS: usize = 2;

/// One statistic before the p values are adjusted.
struct Tested {
    change: StatisticChange,
    paired: Option<Paired>,
    /// Logarithms of the ratios of the pairs.
    logs: Vec<f64>,
    decides: bool,
}

impl Tested {
    const fn untested(change: StatisticChange) -> Self {
        Self { change, paired: None, logs: Vec::new(), decides: false }
    }
}

/// Each of the others against the first.
pub(super) fn against_paired(
    first: &GroupObservation<'_>,
    others: &[GroupObservation<'_>],
    request: &CompareRequest,
) -> Vec<Against> {
    let mut tests: Vec<(PairSummary, Vec<Tested>)> = others
        .iter()
        .map(|second| {
            let pairs = PairSummary::of(&first.group.sides, &second.group.sides);
            let mut tests = ask(first, second, &pairs, request);
            add_detectable(&mut tests, others.len(), request);
            (pairs, tests)
        })
        .collect();
    decide(&mut tests, request);
    let groups = others.len();
    let one = |((at, second), (pairs, tests)): (
        (usize, &GroupObservation<'_>),
        (PairSummary, Vec<Tested>),
    )| {
        let changes: Vec<StatisticChange> = tests.into_iter().map(|tests| tests.change).collect();
        let answer = answer(&changes);
        let names = (first.group.label.as_str(), second.group.label.as_str());
        Against {
            group: at + 1,
            answer,
            sentence: sentence::of_paired(names, answer, &changes, &pairs, groups, request),
            reasons: sentence::reasons_of_paired(names, &changes, &pairs, groups, request),
            cliffs_delta: cliffs_delta(&first.bins, &second.bins),
            shift: shift_paired(first, second, &pairs, request),
            may_deviate: (answer == CompareAnswer::NoDifference)
                .then(|| sentence::unseen(pairs.pairs.len(), request.confidence)),
            pairs: Some(pairs),
            changes,
        }
    };
    others.iter().enumerate().zip(tests).map(one).collect()
}

/// Worse in one is worse; then better in one; then what p99.9 says.
fn answer(changes: &[StatisticChange]) -> CompareAnswer {
    let any = |answer| changes.iter().any(|change| change.answer == Some(answer));
    let primary = changes.iter().find(|change| change.statistic == PRIMARY.name());
    match () {
        () if any(CompareAnswer::Worse) => CompareAnswer::Worse,
        () if any(CompareAnswer::Better) => CompareAnswer::Better,
        () => primary.and_then(|change| change.answer).unwrap_or(CompareAnswer::CannotDecide),
    }
}

/// Which change of p99.9 so many pairs find.
fn add_detectable(tests: &mut [Tested], groups: usize, request: &CompareRequest) {
    let main = tests.iter_mut().find(|tests| tests.change.statistic == PRIMARY.name());
    if let Some(tests) = main {
        let (level, margin) = (1.0 - request.confidence, Margin::of_share(request.margin));
        tests.change.detectable = Spread::of_pairs(&tests.logs)
            .and_then(|sd| paired::detectable(sd, tests.logs.len(), groups, level, margin))
            .map(f64::exp);
    }
}

/// P values adjusted over all that decides, and what each then says.
fn decide(tests: &mut [(PairSummary, Vec<Tested>)], request: &CompareRequest) {
    let groups = tests.len();
    let mut deciding: Vec<(usize, &mut Tested)> = tests
        .iter_mut()
        .enumerate()
        .flat_map(|(of, (_, tests))| tests.iter_mut().map(move |tests| (of, tests)))
        .filter(|(_, tests)| tests.decides && tests.paired.is_some())
        .collect();
    let question = |(of, tests): &(usize, &mut Tested)| {
        let is_main = tests.change.statistic == PRIMARY.name();
        let weight = if is_main { MAIN } else { paired::rest(OTHERS) };
        Some(WeightedQuestion { of: *of, paired: tests.paired?, weight })
    };
    let questions: Vec<WeightedQuestion> = deciding.iter().filter_map(question).collect();
    let answers = paired::answers(&questions, groups, 1.0 - request.confidence);
    for ((_, tests), (adjusted, answer)) in deciding.iter_mut().zip(answers) {
        let far = Margin::of_share(FAR * request.margin);
        let is_far = tests.logs.iter().any(|&log| !far.holds(log));
        tests.change.p_adjusted = Some(adjusted.p);
        tests.change.p_margin = Some(adjusted.p_margin);
        tests.change.p_equivalent = Some(adjusted.p_equivalent);
        tests.change.differs = match answer {
            paired::PairedAnswer::Lower | paired::PairedAnswer::SomeLower => Direction::Lower,
            paired::PairedAnswer::Higher | paired::PairedAnswer::SomeHigher => Direction::Higher,
            paired::PairedAnswer::Equivalent => Direction::Same,
            paired::PairedAnswer::Undecided => Direction::Unknown,
        };
        tests.change.answer = Some(match answer {
            paired::PairedAnswer::Lower => CompareAnswer::Better,
            paired::PairedAnswer::Higher => CompareAnswer::Worse,
            paired::PairedAnswer::Equivalent if !is_far => CompareAnswer::NoDifference,
            paired::PairedAnswer::Equivalent
            | paired::PairedAnswer::SomeLower
            | paired::PairedAnswer::SomeHigher
            | paired::PairedAnswer::Undecided => CompareAnswer::CannotDecide,
        });
    }
    // Where one kind of run always came first nothing is decided.
    for (_, tests) in tests.iter_mut().filter(|(pairs, _)| pairs.is_one_sided()) {
        for tests in tests.iter_mut().filter(|tests| tests.change.answer.is_some()) {
            tests.change.answer = Some(CompareAnswer::CannotDecide);
        }
    }
}

fn ask(
    first: &GroupObservation<'_>,
    second: &GroupObservation<'_>,
    pairs: &PairSummary,
    request: &CompareRequest,
) -> Vec<Tested> {
    let mut all: Vec<Tested> = QUANTILES
        .into_iter()
        .map(|q| {
            let (from, to) = (first.quantiles(q), second.quantiles(q));
            let mut tests = of_values(&q.name(), (&from, &to), pairs, request);
            tests.decides = q == PRIMARY;
            tests
        })
        // What neither carries in any run is not spoken of, but for what decides.
        .filter(|tests| tests.decides || tests.change.from.or(tests.change.to).is_some())
        .collect();
    all.push(max_paired(first, second, pairs, request));
    all.extend(shares_paired(first, second, pairs, request));
    let n = first.bins.total().min(second.bins.total());
    all.iter_mut().for_each(|tests| tests.change.n = n);
    all
}

/// A statistic of each run, positive or not there.
fn of_values(
    name: &str,
    (from, to): (&[Option<f64>], &[Option<f64>]),
    pairs: &PairSummary,
    request: &CompareRequest,
) -> Tested {
    let change = StatisticChange::of(name, ValueUnit::Ns, middle(from), middle(to));
    let logs: Option<Vec<f64>> = pairs
        .pairs
        .iter()
        .map(|&(a, b)| Some((to[b]?.max(1.0) / from[a]?.max(1.0)).ln()))
        .collect();
    match logs {
        Some(logs) => of_differences(change, &logs, request),
        None => Tested::untested(
            change.not_compared("some of the runs have too few wake-ups, or do not report it"),
        ),
    }
}

/// Logarithms of the ratios of all pairs, tested.
fn of_differences(mut change: StatisticChange, logs: &[f64], request: &CompareRequest) -> Tested {
    let logs = folded(logs);
    let margin = Margin::of_share(request.margin);
    let Some(paired) = paired::compare(&logs, request.confidence, margin) else {
        return Tested::untested(change.not_compared("no two runs are neighbours in time"));
    };
    let ratio = paired.estimate.exp();
    change.ratio = Some(ratio);
    change.direction = direction(ratio, request.margin);
    (change.low, change.high) = paired.interval.map(|(low, high)| (low.exp(), high.exp())).unzip();
    change.p = Some(paired.p);
    change.method = format!(
        "median of the ratios of {} pairs (Hodges-Lehmann), exact signed-rank interval, exact \
         sign-flip p",
        logs.len()
    );
    Tested { change, paired: Some(paired), logs, decides: false }
}

/// More pairs than the exact test looks at: the mean of neighbours counts as one.
fn folded(logs: &[f64]) -> Vec<f64> {
    let each = logs.len().div_ceil(PAIRS_MAX).max(1);
    logs.chunks(each).map(|some| some.iter().sum::<f64>() / some.len() as f64).collect()
}

/// The median of those that are there.
fn middle(values: &[Option<f64>]) -> Option<f64> {
    let mut values: Vec<f64> = values.iter().flatten().copied().collect();
    values.sort_by(f64::total_cmp);
    median(&values)
}

/// The latest wake-up of each run, where the runs of each pair were as long.
fn max_paired(
    first: &GroupObservation<'_>,
    second: &GroupObservation<'_>,
    pairs: &PairSummary,
    request: &CompareRequest,
) -> Tested {
    let (from, to) = (first.maxima(), second.maxima());
    let equal = pairs
        .pairs
        .iter()
        .all(|&(a, b)| equal_exposure(first.runs[a].0.exposure(), second.runs[b].0.exposure()));
    if !equal {
        let change = StatisticChange::of("max", ValueUnit::Ns, middle(&from), middle(&to));
        let why = "unequal exposure: the longer run has the larger maximum by itself";
        return Tested::untested(change.not_compared(why));
    }
    Tested { decides: true, ..of_values("max", (&from, &to), pairs, request) }
}

/// Missed wake-ups, which decide, and those over the budget, where there were any.
fn shares_paired(
    first: &GroupObservation<'_>,
    second: &GroupObservation<'_>,
    pairs: &PairSummary,
    request: &CompareRequest,
) -> Vec<Tested> {
    let whole = |runs: Vec<Option<(u64, u64)>>| runs.into_iter().collect::<Option<Vec<_>>>();
    let missed = whole(first.missed()).zip(whole(second.missed()));
    let late = first.budget_ns.map(|budget_ns| (first.late(budget_ns), second.late(budget_ns)));
    let one = |(name, runs, decides): (&str, Option<(Vec<_>, Vec<_>)>, bool)| {
        let (from, to) = runs?;
        let tests = share(name, &from, &to, pairs, request);
        Some(Tested { decides: decides && tests.paired.is_some(), ..tests })
    };
    [("missed", missed, true), ("over budget", late, false)].into_iter().filter_map(one).collect()
}

fn share(
    name: &str,
    from: &[(u64, u64)],
    to: &[(u64, u64)],
    pairs: &PairSummary,
    request: &CompareRequest,
) -> Tested {
    let pooled = |runs: &[(u64, u64)]| {
        let (k, n) = runs.iter().fold((0, 0), |(k, n), run| (k + run.0, n + run.1));
        (n > 0).then(|| k as f64 / n as f64)
    };
    let change = StatisticChange::of(name, ValueUnit::Share, pooled(from), pooled(to));
    if from.iter().chain(to).all(|run| run.0 == 0) {
        let mut change = change.with_ratio(request.margin);
        change.method = "none in any run".into();
        return Tested::untested(change);
    }
    // Half an event more on both sides: no run has none.
    let rate = |run: (u64, u64)| (run.0 as f64 + 0.5) / (run.1 as f64 + 1.0);
    let logs: Vec<f64> =
        pairs.pairs.iter().map(|&(a, b)| (rate(to[b]) / rate(from[a])).ln()).collect();
    of_differences(change, &logs, request)
}

fn shift_paired(
    first: &GroupObservation<'_>,
    second: &GroupObservation<'_>,
    pairs: &PairSummary,
    request: &CompareRequest,
) -> Shift {
    let point = |q: Q| {
        let (from, to) = (first.quantiles(q), second.quantiles(q));
        let change = of_values(&q.name(), (&from, &to), pairs, request).change;
        Some(ShiftPoint {
            quantile: q.name(),
            share: q.value(),
            from_ns: change.from?,
            to_ns: change.to?,
            ratio: change.ratio?,
            low: change.low,
            high: change.high,
        })
    };
    Shift {
        points: GRID.into_iter().filter_map(point).collect(),
        method: "median of the ratios of the pairs (Hodges-Lehmann), exact signed-rank bands"
            .into(),
    }
}

// Single runs: shown with their intervals, and decided never.

/// Each of the others against the first.
pub(super) fn against_single(
    first: &GroupObservation<'_>,
    others: &[GroupObservation<'_>],
    request: &CompareRequest,
) -> Vec<Against> {
    let one = |(at, second): (usize, &GroupObservation<'_>)| {
        let changes = changes(first, second, request);
        Against {
            group: at + 1,
            answer: CompareAnswer::CannotDecide,
            sentence: sentence::of_single(
                &first.group.label,
                &second.group.label,
                &changes,
                request,
            ),
            reasons: sentence::reasons_of_single(first, second, request),
            cliffs_delta: cliffs_delta(&first.bins, &second.bins),
            shift: shift_single(first, second),
            pairs: None,
            may_deviate: None,
            changes,
        }
    };
    others.iter().enumerate().map(one).collect()
}

fn changes(
    first: &GroupObservation<'_>,
    second: &GroupObservation<'_>,
    request: &CompareRequest,
) -> Vec<StatisticChange> {
    let mut changes: Vec<StatisticChange> =
        QUANTILES.into_iter().filter_map(|q| quantile(first, second, q, request)).collect();
    changes.push(max_single(first, second, request));
    let (from, _) = table::shape_of(&first.group.sides);
    let (to, _) = table::shape_of(&second.group.sides);
    for (name, from, to) in [("mean", from.mean, to.mean), ("sd", from.sd, to.sd)] {
        let mut change =
            StatisticChange::of(name, ValueUnit::Ns, from, to).with_ratio(request.margin);
        change.method = "no interval".into();
        changes.push(change);
    }
    changes.extend(shares_single(first, second, request));
    let n = first.bins.total().min(second.bins.total());
    changes.iter_mut().for_each(|change| change.n = n);
    changes
}

fn quantile(
    first: &GroupObservation<'_>,
    second: &GroupObservation<'_>,
    q: Q,
    request: &CompareRequest,
) -> Option<StatisticChange> {
    let ((a, a_bins), (b, b_bins)) = first.single().zip(second.single())?;
    let values = (a.quantile(a_bins, q), b.quantile(b_bins, q));
    let (from, to) = (values.0.map(|v| v.ns as f64), values.1.map(|v| v.ns as f64));
    let change = StatisticChange::of(&q.name(), ValueUnit::Ns, from, to);
    let (from, to) = match values {
        (None, None) => return None,
        (Some(from), Some(to)) => (from, to),
        _ => return Some(change.not_compared("too few wake-ups in one of the runs")),
    };
    if from.at_least || to.at_least {
        return Some(change.not_compared("beyond the end of a tool's histogram"));
    }
    let mut change = change.with_ratio(request.margin);
    (change.low, change.high) = range(first, second, q).unzip();
    change.method = RANGE.into();
    Some(change)
}

const RANGE: &str = "range over the tenths of both runs";

/// From the lowest tenth of the second run over the highest of the first to the other way round.
fn range(first: &GroupObservation<'_>, second: &GroupObservation<'_>, q: Q) -> Option<(f64, f64)> {
    let of = |observation: &GroupObservation<'_>| observation.single()?.0.range(q, first.view);
    let ((a_low, a_high), (b_low, b_high)) = of(first).zip(of(second))?;
    let ratio = |to: u64, from: u64| to.max(1) as f64 / from.max(1) as f64;
    Some((ratio(b_low, a_high), ratio(b_high, a_low)))
}

/// Maxima are compared where both runs were as long.
fn max_single(
    first: &GroupObservation<'_>,
    second: &GroupObservation<'_>,
    request: &CompareRequest,
) -> StatisticChange {
    let of = |second: &GroupObservation<'_>| second.single().and_then(|(side, _)| side.max());
    let (from, to) = (of(first), of(second));
    let value = |max: Option<(u64, bool)>| max.map(|(ns, _)| ns as f64);
    let change = StatisticChange::of("max", ValueUnit::Ns, value(from), value(to));
    if [from, to].iter().flatten().any(|&(_, at_least)| at_least) {
        return change.not_compared("a tool's histogram ended before the largest value");
    }
    if !equal_exposure(first.group.exposure(), second.group.exposure()) {
        return change
            .not_compared("unequal exposure: the longer run has the larger maximum by itself");
    }
    let mut change = change.with_ratio(request.margin);
    change.method = "exact, at equal exposure; a maximum has no interval".into();
    change
}

/// Missed wake-ups and those over the budget.
fn shares_single(
    first: &GroupObservation<'_>,
    second: &GroupObservation<'_>,
    request: &CompareRequest,
) -> Vec<StatisticChange> {
    let share = |run: (u64, u64)| (run.1 > 0).then(|| run.0 as f64 / run.1 as f64);
    let missed = |second: &GroupObservation<'_>| {
        second.missed().into_iter().next().flatten().and_then(share)
    };
    let mut all = vec![("missed", missed(first), missed(second))];
    if let Some(budget_ns) = first.budget_ns {
        let late = |second: &GroupObservation<'_>| {
            second.late(budget_ns).into_iter().next().and_then(share)
        };
        all.push(("over budget", late(first), late(second)));
    }
    let change = |(name, from, to): (&str, _, _)| {
        let change = StatisticChange::of(name, ValueUnit::Share, from, to);
        match from.zip(to) {
            None => change.not_compared("not counted in one of the runs"),
            Some(_) => StatisticChange {
                method: "no interval of the ratio".into(),
                ..change.with_ratio(request.margin)
            },
        }
    };
    all.into_iter().map(change).collect()
}

fn shift_single(first: &GroupObservation<'_>, second: &GroupObservation<'_>) -> Shift {
    let mut points = Vec::new();
    for q in GRID {
        let Some(((a, a_bins), (b, b_bins))) = first.single().zip(second.single()) else { break };
        let Some((from, to)) = a.quantile(a_bins, q).zip(b.quantile(b_bins, q)) else { continue };
        if from.ns == 0 || to.ns == 0 || from.at_least || to.at_least {
            continue;
        }
        let (low, high) = range(first, second, q).unzip();
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
    Shift { points, method: RANGE.into() }
}
