//! The statistics of every group: a line each, with what each number rests on.

use rtproof_stats::{Bins, binomial, quantile::Q};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    answer::Request,
    groups::Group,
    moments::{self, Shape},
    side::{Side, View},
};

/// The quantiles of a comparison: those of the field, and p5 and p95 of older ones.
pub(super) const QUANTILES: [Q; 8] = [
    Q::P5,
    Q::P50,
    Q::P95,
    Q::P99,
    Q::P99_9,
    Q { above: 1, of: 10_000 },
    Q { above: 1, of: 100_000 },
    Q { above: 1, of: 1_000_000 },
];

/// What a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// A share, 0 to 1.
    Share,
    Number,
}

/// One statistic of all groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    pub statistic: String,
    /// What its values are.
    pub unit: Unit,
    /// One for each group.
    pub cells: Vec<Cell>,
}

/// One statistic of one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// The value; null: too few samples, or unknown.
    pub value: Option<f64>,
    /// Whether it may be larger: a histogram that ended before.
    pub at_least: bool,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end; null: none, or no finite one.
    pub high: Option<f64>,
    /// Values that it was computed from.
    pub n: u64,
    /// What they are worth in independent ones; null: not known, taken for all.
    pub n_eff: Option<u64>,
    /// How value and interval came about.
    pub method: String,
}

/// A group with its runs put together once.
pub(super) struct Observation<'a> {
    pub(super) group: &'a Group,
    pub(super) view: View,
    pub(super) budget_ns: Option<u64>,
    pub(super) bins: Bins,
    pub(super) runs: Vec<(&'a Side, Bins)>,
}

impl<'a> Observation<'a> {
    pub(super) fn of(group: &'a Group, view: View, budget_ns: Option<u64>) -> Self {
        let runs: Vec<_> = group.sides.iter().map(|side| (side, side.all(view))).collect();
        let mut bins = Bins::default();
        runs.iter().for_each(|(_, run)| bins.merge(run));
        Self { group, view, budget_ns, bins, runs }
    }

    /// The run of a group of one.
    pub(super) fn single(&self) -> Option<(&'a Side, &Bins)> {
        match self.runs.as_slice() {
            [(side, bins)] => Some((*side, bins)),
            _ => None,
        }
    }

    /// A quantile of each run.
    pub(super) fn quantiles(&self, q: Q) -> Vec<Option<f64>> {
        let of = |(side, bins): &(&Side, Bins)| Some(side.quantile(bins, q)?.ns as f64);
        self.runs.iter().map(of).collect()
    }

    /// The largest value of each run; `None` where it may have been larger.
    pub(super) fn maxima(&self) -> Vec<Option<f64>> {
        let of =
            |(side, _): &(&Side, Bins)| side.max().filter(|max| !max.1).map(|max| max.0 as f64);
        self.runs.iter().map(of).collect()
    }

    /// Wake-ups over the budget and all, of each run.
    pub(super) fn late(&self, budget_ns: u64) -> Vec<(u64, u64)> {
        let of = |(side, bins): &(&Side, Bins)| {
            let counted = side.budget_ns == Some(budget_ns) && self.view == View::Deadline;
            let exact = counted.then(|| {
                side.threads.iter().try_fold(0_u64, |sum, thread| Some(sum + thread.late?))
            });
            (exact.flatten().unwrap_or_else(|| bins.count_above(budget_ns).1), bins.total())
        };
        self.runs.iter().map(of).collect()
    }

    /// Wake-ups missed and due, of each run; `None`: not known.
    pub(super) fn missed(&self) -> Vec<Option<(u64, u64)>> {
        self.runs.iter().map(|(side, _)| Some((side.missed()?, side.exposure()))).collect()
    }
}

/// All lines.
pub(super) fn of(seen: &[Observation<'_>], wish: &Request) -> Vec<Line> {
    let line = |statistic: &str, unit, cell: &dyn Fn(&Observation<'_>) -> Cell| Line {
        statistic: statistic.into(),
        unit,
        cells: seen.iter().map(cell).collect(),
    };
    let mut lines: Vec<Line> = QUANTILES
        .into_iter()
        .map(|q| line(&q.name(), Unit::Ns, &|seen| quantile(seen, q, wish)))
        .filter(|line| line.cells.iter().any(|cell| cell.value.is_some()))
        .collect();
    lines.push(line("max", Unit::Ns, &max));
    let shape = |of: fn(&Shape) -> Option<f64>| {
        move |seen: &Observation<'_>| {
            let (shape, exact) = moments::of(&seen.group.sides);
            let method = if exact { "exact sums" } else { "from the cells of the histogram" };
            plain(of(&shape), shape.n, &format!("{method}, measured wake-ups"))
        }
    };
    lines.push(line("mean", Unit::Ns, &shape(|shape| shape.mean)));
    lines.push(line("sd", Unit::Ns, &shape(|shape| shape.sd)));
    lines.push(line("skewness", Unit::Number, &shape(|shape| shape.skewness)));
    lines.push(line("kurtosis", Unit::Number, &shape(|shape| shape.kurtosis)));
    lines.push(line("missed", Unit::Share, &|seen| missed(seen, wish)));
    if let Some(budget_ns) = seen.first().and_then(|seen| seen.budget_ns) {
        lines.push(line("over budget", Unit::Share, &|seen| late(seen, budget_ns, wish)));
    }
    lines
}

fn plain(value: Option<f64>, n: u64, method: &str) -> Cell {
    Cell { value, at_least: false, low: None, high: None, n, n_eff: None, method: method.into() }
}

fn quantile(seen: &Observation<'_>, q: Q, wish: &Request) -> Cell {
    let Some((side, bins)) = seen.single() else {
        return of_runs(&seen.quantiles(q), seen.bins.total());
    };
    let n = bins.total();
    let Some(value) = side.quantile(bins, q) else {
        return plain(None, n, "too few wake-ups");
    };
    let n_eff = side.n_eff(value.high_ns, seen.view);
    let (low, high) = bins.interval_of(q.value(), wish.confidence, n_eff.unwrap_or(n));
    let method = match n_eff {
        Some(_) => "order statistics, worth of the wake-ups from the rows",
        None => "order statistics, wake-ups taken for independent",
    };
    let within = |ns: u64| match side.max() {
        Some((max_ns, false)) => ns.min(max_ns),
        _ => ns,
    };
    Cell {
        value: Some(value.ns as f64),
        at_least: value.at_least,
        low: low.map(|low| low.min(value.low_ns) as f64),
        high: high.map(|high| within(high.max(value.high_ns)) as f64),
        n,
        n_eff,
        method: method.into(),
    }
}

/// The median of the runs, with the smallest and the largest.
fn of_runs(values: &[Option<f64>], n: u64) -> Cell {
    let mut values: Vec<f64> = values.iter().flatten().copied().collect();
    values.sort_by(f64::total_cmp);
    let method = format!("median of {} runs, smallest to largest", values.len());
    Cell {
        low: values.first().copied(),
        high: values.last().copied(),
        ..plain(median(&values), n, &method)
    }
}

/// Of sorted values.
pub(super) fn median(sorted: &[f64]) -> Option<f64> {
    let (low, high) =
        (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

fn max(seen: &Observation<'_>) -> Cell {
    let n = seen.bins.total();
    let Some((side, _)) = seen.single() else {
        let largest: Vec<_> =
            seen.runs.iter().map(|(side, _)| side.max().map(|max| max.0 as f64)).collect();
        let at_least = seen.runs.iter().any(|(side, _)| side.max().is_some_and(|max| max.1));
        return Cell { at_least, ..of_runs(&largest, n) };
    };
    let (max_ns, at_least) = side.max().unzip();
    let method = "exact; a run as long again exceeds it with probability 1/2";
    Cell {
        at_least: at_least.unwrap_or(false),
        ..plain(max_ns.map(|ns: u64| ns as f64), n, method)
    }
}

fn missed(seen: &Observation<'_>, wish: &Request) -> Cell {
    let all: Option<Vec<(u64, u64)>> = seen.missed().into_iter().collect();
    match all {
        None => plain(None, seen.bins.total(), "the tool does not count them"),
        Some(runs) => share(&runs, None, wish),
    }
}

fn late(seen: &Observation<'_>, budget_ns: u64, wish: &Request) -> Cell {
    let n_eff = seen.single().and_then(|(side, _)| side.n_eff(budget_ns, seen.view));
    share(&seen.late(budget_ns), n_eff, wish)
}

/// A share of events with the exact bounds of Clopper and Pearson.
fn share(runs: &[(u64, u64)], n_eff: Option<u64>, wish: &Request) -> Cell {
    let (k, n) = runs.iter().fold((0_u64, 0_u64), |(k, n), run| (k + run.0, n + run.1));
    if n == 0 {
        return plain(None, 0, "nothing was measured");
    }
    let value = k as f64 / n as f64;
    let worth = n_eff.unwrap_or(n).clamp(1, n);
    let events = ((value * worth as f64).ceil() as u64).min(worth);
    let one_sided = f64::midpoint(1.0, wish.confidence);
    let method = match n_eff {
        Some(_) => "Clopper-Pearson, worth of the wake-ups from the rows",
        None => "Clopper-Pearson, wake-ups taken for independent",
    };
    Cell {
        low: Some(binomial::lower_bound(events, worth, one_sided)),
        high: Some(binomial::upper_bound(events, worth, one_sided)),
        n_eff,
        ..plain(Some(value), n, method)
    }
}
