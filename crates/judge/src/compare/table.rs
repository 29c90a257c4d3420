//! The statistics of every group: a line each, with what each number rests on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_model::Structure;
use rtproof_stats::{Bin, Bins, quantile::Q};

use super::side::{Group, Side, View};
use crate::{quantity, structure};

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
pub enum ValueUnit {
    Ns,
    /// A share, 0 to 1.
    Share,
    Number,
}

/// One statistic of all groups.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatisticLine {
    pub statistic: String,
    /// What its values are.
    pub unit: ValueUnit,
    /// One for each group.
    pub cells: Vec<StatisticCell>,
}

/// One statistic of one group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatisticCell {
    /// The value; null: too few samples, or unknown.
    pub value: Option<f64>,
    /// Whether it may be larger: a histogram that ended before.
    pub at_least: bool,
    /// Lowest value over the tenths of a run, or over several runs; null: not known.
    pub low: Option<f64>,
    pub high: Option<f64>,
    /// Values that it was computed from.
    pub n: u64,
    /// How value and range came about.
    pub method: String,
}

/// A group with its runs put together once.
pub(super) struct GroupObservation<'a> {
    pub(super) group: &'a Group,
    pub(super) view: View,
    pub(super) budget_ns: Option<u64>,
    pub(super) bins: Bins,
    pub(super) runs: Vec<(&'a Side, Bins)>,
}

impl<'a> GroupObservation<'a> {
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

/// One line per statistic; quantiles that no group has are left out.
pub(super) fn statistic_lines(observation: &[GroupObservation<'_>]) -> Vec<StatisticLine> {
    let line = |statistic: &str, unit, cell: &dyn Fn(&GroupObservation<'_>) -> StatisticCell| {
        StatisticLine {
            statistic: statistic.into(),
            unit,
            cells: observation.iter().map(cell).collect(),
        }
    };
    let mut lines: Vec<StatisticLine> = QUANTILES
        .into_iter()
        .map(|q| line(&q.name(), ValueUnit::Ns, &|observation| quantile(observation, q)))
        .filter(|line| line.cells.iter().any(|cell| cell.value.is_some()))
        .collect();
    lines.push(line("max", ValueUnit::Ns, &max));
    let shape = |of: fn(&Shape) -> Option<f64>| {
        move |observation: &GroupObservation<'_>| {
            let (shape, exact) = shape_of(&observation.group.sides);
            let method = if exact { "exact sums" } else { "from the cells of the histogram" };
            plain(of(&shape), shape.n, &format!("{method}, measured wake-ups"))
        }
    };
    lines.push(line("mean", ValueUnit::Ns, &shape(|shape| shape.mean)));
    lines.push(line("sd", ValueUnit::Ns, &shape(|shape| shape.sd)));
    lines.push(line("skewness", ValueUnit::Number, &shape(|shape| shape.skewness)));
    lines.push(line("kurtosis", ValueUnit::Number, &shape(|shape| shape.kurtosis)));
    lines.push(line("missed", ValueUnit::Share, &missed));
    if let Some(budget_ns) = observation.first().and_then(|observation| observation.budget_ns) {
        lines.push(line("over budget", ValueUnit::Share, &|observation| {
            share(&observation.late(budget_ns))
        }));
    }
    lines
}

fn plain(value: Option<f64>, n: u64, method: &str) -> StatisticCell {
    StatisticCell { value, at_least: false, low: None, high: None, n, method: method.into() }
}

fn quantile(observation: &GroupObservation<'_>, q: Q) -> StatisticCell {
    let Some((side, bins)) = observation.single() else {
        return of_runs(&observation.quantiles(q), observation.bins.total());
    };
    let n = bins.total();
    let Some(value) = side.quantile(bins, q) else {
        return plain(None, n, "too few wake-ups");
    };
    let range = side.range(q, observation.view);
    StatisticCell {
        at_least: value.at_least,
        low: range.map(|(low, _)| low as f64),
        high: range.map(|(_, high)| high as f64),
        ..plain(Some(value.ns as f64), n, "range over the tenths of the run")
    }
}

/// The median of the runs, with the smallest and the largest.
fn of_runs(values: &[Option<f64>], n: u64) -> StatisticCell {
    let mut values: Vec<f64> = values.iter().flatten().copied().collect();
    values.sort_by(f64::total_cmp);
    let method = format!("median of {} runs, smallest to largest", values.len());
    StatisticCell {
        low: values.first().copied(),
        high: values.last().copied(),
        ..plain(median(&values), n, &method)
    }
}

/// Median of sorted values; `None`: there are none.
pub(super) fn median(sorted: &[f64]) -> Option<f64> {
    let (low, high) =
        (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

fn max(observation: &GroupObservation<'_>) -> StatisticCell {
    let n = observation.bins.total();
    let Some((side, _)) = observation.single() else {
        let largest: Vec<_> =
            observation.runs.iter().map(|(side, _)| side.max().map(|max| max.0 as f64)).collect();
        let at_least = observation.runs.iter().any(|(side, _)| side.max().is_some_and(|max| max.1));
        return StatisticCell { at_least, ..of_runs(&largest, n) };
    };
    let (max_ns, at_least) = side.max().unzip();
    let method = "exact; a run as long again exceeds it with probability 1/2";
    StatisticCell {
        at_least: at_least.unwrap_or(false),
        ..plain(max_ns.map(|ns: u64| ns as f64), n, method)
    }
}

fn missed(observation: &GroupObservation<'_>) -> StatisticCell {
    let all: Option<Vec<(u64, u64)>> = observation.missed().into_iter().collect();
    match all {
        None => plain(None, observation.bins.total(), "the tool does not count them"),
        Some(runs) => share(&runs),
    }
}

/// A share of events, over all runs.
fn share(runs: &[(u64, u64)]) -> StatisticCell {
    let (k, n) = runs.iter().fold((0_u64, 0_u64), |(k, n), run| (k + run.0, n + run.1));
    match n {
        0 => plain(None, 0, "nothing was measured"),
        n => plain(Some(k as f64 / n as f64), n, "counted"),
    }
}

// Level changes of each run of a comparison, and whether they were searched for.

/// CPUs of a run whose changes its sentence names.
const NAMED: usize = 2;

/// Where the level of a run changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunLevels {
    /// Name of the run.
    pub run: String,
    /// In a sentence; also why nothing is known.
    pub text: String,
    /// Whether changes were searched; else `changes` has no meaning.
    #[serde(rename = "looked")]
    pub searched: bool,
    /// Changes of the level, one finding for each CPU that has any.
    pub changes: Vec<Structure>,
}

/// The least likely by chance; of the others how many CPUs.
fn in_short(changes: &[Structure]) -> String {
    let first: Vec<&str> = changes.iter().take(NAMED).map(|of| of.text.as_str()).collect();
    let more = match changes.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!("; and that of {} more", quantity::count(n, "CPU")),
    };
    first.join("; ") + &more
}

/// Where the level of each run changes.
pub(super) fn run_levels(groups: &[Group]) -> Vec<RunLevels> {
    let sides = groups.iter().flat_map(|group| &group.sides);
    let one = |side: &Side| {
        let over = side.over.as_ref();
        let looked = over.is_some_and(|over| over.has_seconds);
        let changes = over.map_or_else(Vec::new, |over| over.levels.clone());
        let text = match over {
            None if side.has_facts => "no second is in its record".into(),
            None => "its file holds no times".into(),
            Some(_) if !changes.is_empty() => in_short(&changes),
            Some(over) if looked => {
                format!("no change of the median found in {}", quantity::duration(over.end_ns))
            }
            Some(_) => format!(
                "changes of the median are not looked for below {} s a CPU",
                structure::SECONDS_MIN
            ),
        };
        RunLevels { run: side.label.clone(), text, searched: looked, changes }
    };
    sides.map(one).collect()
}

// Mean, standard deviation, skewness and kurtosis of the wake-ups that were measured.
//
// Conventions: sd with n - 1; skewness m3 / m2^1.5; kurtosis m4 / m2^2, which is 3 of a normal
// distribution. Both of the last two count outliers more than anything else: k of them among n
// give about sqrt(n / k) and n / k.

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Shape {
    pub(super) n: u64,
    pub(super) mean: Option<f64>,
    pub(super) sd: Option<f64>,
    pub(super) skewness: Option<f64>,
    pub(super) kurtosis: Option<f64>,
}

/// Of all threads of all runs, and whether mean and sd come from exact sums. Where not, the mean is
/// that of the threads, weighted: a tool's own holds samples that its histogram has no row for.
pub(super) fn shape_of(sides: &[Side]) -> (Shape, bool) {
    let mut shape = cells(sides);
    let threads = || sides.iter().flat_map(|side| &side.threads);
    let mut sums = rtproof_stats::Moments::default();
    for thread in threads() {
        let Some(moments) = &thread.moments else {
            shape.mean = weighted(sides).or(shape.mean);
            return (shape, false);
        };
        sums.merge(moments);
    }
    (shape.mean, shape.sd) = (sums.mean(), sums.sd());
    (shape, sums.count() > 0)
}

/// Mean of the threads' means; `None` where one has none.
fn weighted(sides: &[Side]) -> Option<f64> {
    let (mut sum, mut count) = (0.0, 0.0);
    for thread in sides.iter().flat_map(|side| &side.threads) {
        let n = thread.wake.total() as f64;
        sum += thread.mean_ns? * n;
        count += n;
    }
    (count > 0.0).then(|| sum / count)
}

/// Two passes over the cells: no power of a large number is subtracted from another.
fn cells(sides: &[Side]) -> Shape {
    let cells = || {
        sides.iter().flat_map(|side| {
            let value = |bin: &Bin| match side.rounds_down {
                true => bin.low_ns as f64,
                false => f64::midpoint(bin.low_ns as f64, bin.high_ns as f64),
            };
            side.threads.iter().flat_map(move |thread| {
                thread.wake.iter().map(move |bin| (value(bin), bin.n as f64))
            })
        })
    };
    let n: u64 = sides.iter().fold(0, |sum, side| sum.saturating_add(side.sampled()));
    if n == 0 {
        return Shape::default();
    }
    let count = n as f64;
    let mean = cells().map(|(x, n)| x * n).sum::<f64>() / count;
    let centred = |power: i32| cells().map(|(x, n)| n * (x - mean).powi(power)).sum::<f64>();
    let (m2, m3, m4) = (centred(2) / count, centred(3) / count, centred(4) / count);
    let spread = m2 > 0.0;
    Shape {
        n,
        mean: Some(mean),
        sd: (n > 1).then(|| (m2 * count / (count - 1.0)).sqrt()),
        skewness: spread.then(|| m3 / m2.powf(1.5)),
        kurtosis: spread.then(|| m4 / (m2 * m2)),
    }
}

// Which runs make a pair: neighbours in time, one of each group.

/// How the runs of two groups were paired.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PairSummary {
    /// Pairs: numbers of the runs within the first group and within this one.
    pub pairs: Vec<(usize, usize)>,
    /// Pairs in which the run of the first group came first.
    pub first_before: usize,
    /// Runs that have no neighbour of the other group.
    pub left_out: usize,
    /// Why there are none, where there are none.
    pub why_none: Option<String>,
}

impl PairSummary {
    /// Whether one kind of run always came first: what drifts is then no different from what was
    /// changed.
    pub fn is_one_sided(&self) -> bool {
        self.pairs.len() > 1 && (self.first_before == 0 || self.first_before == self.pairs.len())
    }

    /// Goes through the runs in order of time: two that follow each other and are of different
    /// groups are a pair; one that is followed by its own kind is left out.
    pub(super) fn of(first: &[Side], other: &[Side]) -> Self {
        let of = |sides: &[Side], is_first: bool| -> Option<Vec<(u64, bool, usize)>> {
            let run = |(number, side): (usize, &Side)| Some((side.started_ns?, is_first, number));
            sides.iter().enumerate().map(run).collect()
        };
        let (Some(mut runs), Some(others)) = (of(first, true), of(other, false)) else {
            return Self {
                left_out: first.len() + other.len(),
                why_none: Some("not all of the runs tell when they began".into()),
                ..Self::default()
            };
        };
        runs.extend(others);
        runs.sort_unstable();
        let mut summary = Self::default();
        let mut at = 0;
        while at < runs.len() {
            match (runs[at], runs.get(at + 1)) {
                ((_, one, a), Some(&(_, two, b))) if one != two => {
                    summary.pairs.push(if one { (a, b) } else { (b, a) });
                    summary.first_before += usize::from(one);
                    at += 2;
                }
                _ => {
                    summary.left_out += 1;
                    at += 1;
                }
            }
        }
        summary
    }
}

// The shift function: how far each quantile moved (Doksum 1974), from the deciles to the tail.

/// The quantiles of the shift.
pub(super) const GRID: [Q; 14] = [
    Q { above: 9, of: 10 },
    Q { above: 8, of: 10 },
    Q { above: 7, of: 10 },
    Q { above: 6, of: 10 },
    Q::P50,
    Q { above: 4, of: 10 },
    Q { above: 3, of: 10 },
    Q { above: 2, of: 10 },
    Q { above: 1, of: 10 },
    Q { above: 1, of: 100 },
    Q { above: 1, of: 1000 },
    Q { above: 1, of: 10_000 },
    Q { above: 1, of: 100_000 },
    Q { above: 1, of: 1_000_000 },
];

/// How far each quantile moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shift {
    /// From the lowest quantile up.
    pub points: Vec<ShiftPoint>,
    /// How the bands came about.
    pub method: String,
}

/// How one quantile differs between two sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShiftPoint {
    /// Name, e.g. `p99.9`.
    pub quantile: String,
    /// Share of wake-ups below it.
    pub share: f64,
    /// In the first group, nanoseconds.
    pub from_ns: f64,
    pub to_ns: f64,
    /// This one to the first.
    pub ratio: f64,
    /// Lower end of the band, a ratio.
    pub low: Option<f64>,
    pub high: Option<f64>,
}

#[cfg(test)]
mod tests {
    use rtproof_record::Run;

    use super::*;
    use crate::testing::slower_from as run;

    #[test]
    fn levels_not_searched_are_not_reported_as_none() {
        let text = |run: &Run| run_levels(&[Group::single(Side::of_run(run, "a", "a"))])[0].clone();
        let quiet = text(&run(40, 1000));
        assert!(quiet.searched && quiet.text.starts_with("no change of the median found in 40"));
        let short = text(&run(10, 5));
        assert!(!short.searched && short.text.contains("not looked for below 30 s"), "{short:?}");
        let mut empty = run(10, 5);
        empty.threads.iter_mut().for_each(|thread| thread.seconds.clear());
        assert_eq!(text(&empty).text, "no second is in its record");
    }

    #[test]
    fn a_change_is_in_the_sentence_of_its_run() {
        let run = run(400, 250);
        let found = run_levels(&[Group::single(Side::of_run(&run, "a", "a"))]);
        assert!(found[0].searched && found[0].text.contains("CPU 1 changed once at 250 s"));
    }
}
