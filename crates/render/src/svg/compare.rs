//! Pictures of runs side by side: histograms over each other, the share of later wake-ups, how far
//! each quantile moved, and the runs in order of time.
//!
//! Every line carries its name where it ends, so that no legend has to be hunted; beyond eight,
//! colours come again with dashes.

use maud::{Markup, html};

use rtproof_judge::{
    compare::{Comparison, Group, RunSummary, View},
    units,
};
use rtproof_stats::Bins;

use super::chart::{self, About, AxisMark, AxisTick, COLOURS, Frame, Path, Scale, px};

/// One line of a picture.
#[derive(Clone, Debug)]
pub(crate) struct CompareSeries {
    pub(crate) label: String,
    pub(crate) bins: Bins,
    pub(crate) max_ns: Option<u64>,
    /// Whether that may have been larger.
    pub(crate) at_least: bool,
    /// Whether a cell is represented by its lower edge.
    pub(crate) rounds_down: bool,
    /// Width of its cells at least.
    pub(crate) resolution_ns: u64,
    /// Number of its colour; `None`: grey, behind the others.
    pub(crate) colour: Option<usize>,
}

impl CompareSeries {
    /// A group of runs, all together.
    pub(crate) fn of(group: &Group, view: View, colour: Option<usize>) -> Self {
        let mut bins = Bins::default();
        group.sides.iter().for_each(|side| bins.merge(&side.all(view)));
        let maxima = group.sides.iter().filter_map(rtproof_judge::compare::Side::max);
        let max = maxima.max_by_key(|max| max.0);
        Self {
            label: group.label.clone(),
            bins,
            max_ns: max.map(|max| max.0),
            at_least: max.is_some_and(|max| max.1),
            rounds_down: group.sides.iter().any(|side| side.rounds_down),
            resolution_ns: group.sides.iter().map(|side| side.resolution_ns).max().unwrap_or(1),
            colour,
        }
    }

    /// Class of the line's colour.
    pub(crate) fn class(&self) -> String {
        self.colour.map_or_else(|| "grey".into(), |colour| format!("s{}", colour % COLOURS))
    }

    /// Class of the line itself: the second eight are dashed.
    pub(crate) fn line(&self) -> &'static str {
        match self.colour {
            Some(colour) if colour >= COLOURS => "line dashed",
            _ => "line",
        }
    }

    /// The largest value in words.
    pub(crate) fn max_text(&self) -> String {
        let max_ns = self.max_ns.unwrap_or(0);
        format!("{}{}", if self.at_least { "≥ " } else { "" }, units::ns(max_ns))
    }

    /// Name and largest value, at the largest value.
    pub(crate) fn mark(&self) -> AxisMark {
        AxisMark {
            value: self.max_ns.unwrap_or(0) as f64,
            text: format!("{}: {}", self.label, self.max_text()),
            class: self.class(),
        }
    }

    /// Where a cell is drawn.
    pub(crate) fn value(&self, bin: &rtproof_stats::Bin) -> f64 {
        let high_ns = match self.max_ns {
            Some(max_ns) if !self.at_least => bin.high_ns.min(max_ns.max(bin.low_ns)),
            // The last cell of a histogram that ended before has no upper edge.
            _ => bin.high_ns.min(self.max_ns.unwrap_or(bin.low_ns).max(bin.low_ns)),
        };
        if self.rounds_down { bin.low_ns as f64 } else { high_ns as f64 }
    }

    /// Smallest and largest value; `None` of nothing.
    pub(crate) fn ends(&self) -> Option<(f64, f64)> {
        let first = self.bins.iter().next()?;
        let last = self.bins.iter().last()?;
        let high =
            self.max_ns.map_or(self.value(last), |max_ns| self.value(last).max(max_ns as f64));
        Some((first.low_ns as f64, high))
    }
}

/// Smallest and largest value of all lines.
pub(crate) fn ends(series: &[CompareSeries]) -> Option<(f64, f64)> {
    series.iter().filter_map(CompareSeries::ends).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

// Cells of latency that histograms of different tools are drawn in: none finer than the coarsest
// tool's own, so that no line looks like a comb.

/// Cells wanted across a picture.
const CELLS: f64 = 180.0;

/// Up to this latency the axis is linear, where no value is too small to be seen on it.
const LINEAR_MAX: f64 = 2e6;

/// Edges of cells, ascending.
pub(crate) struct CellEdges {
    edges: Vec<f64>,
    /// Whether the axis is logarithmic.
    log: bool,
}

impl CellEdges {
    /// For values between two ends, with a resolution of `resolution_ns`.
    pub(crate) fn over((low, high): (f64, f64), resolution_ns: u64) -> Self {
        let step = resolution_ns.max(1) as f64;
        let log = high > LINEAR_MAX || high < 20.0 * step;
        let mut edges = Vec::new();
        if log {
            let low = low.max(step);
            let factor = ((high / low).max(1.2) * 1.05).powf(1.0 / CELLS);
            let mut at = (low / step).floor() * step;
            while at <= high {
                edges.push(at);
                // Whole steps of the tool, one at least.
                at = ((at * factor / step).round() * step).max(at + step);
            }
            edges.push(at);
        } else {
            let width = ((high / CELLS) / step).ceil().max(1.0) * step;
            let count = (high / width).floor() as usize + 1;
            edges.extend((0..=count).map(|i| i as f64 * width));
        }
        Self { edges, log }
    }

    /// The axis over them.
    pub(crate) fn scale(&self, high: f64) -> Scale {
        let (first, last) = (self.edges[0], self.edges[self.edges.len() - 1].max(high));
        match self.log {
            true => Scale::Log { low: first.max(1.0) / 1.05, high: last * 1.1 },
            false => Scale::Linear { low: 0.0, high: last * 1.04 },
        }
    }

    /// Ticks of that axis.
    pub(crate) fn ticks(&self, scale: Scale) -> Vec<AxisTick> {
        if self.log { scale.latency_ticks(13.0) } else { linear_ticks(scale.ends().1) }
    }

    /// Counts of a line in the cells: (from, to, count).
    pub(crate) fn counts(&self, series: &CompareSeries) -> Vec<(f64, f64, u64)> {
        let mut cells: Vec<(f64, f64, u64)> =
            self.edges.windows(2).map(|pair| (pair[0], pair[1], 0)).collect();
        for bin in series.bins.iter() {
            let value = if series.rounds_down {
                bin.low_ns as f64
            } else {
                f64::midpoint(bin.low_ns as f64, series.value(bin))
            };
            let at = self.edges.partition_point(|&edge| edge <= value).saturating_sub(1);
            let at = at.min(cells.len() - 1);
            cells[at].2 += bin.n;
        }
        cells
    }
}

/// Round latencies from zero: seven to fourteen of them.
fn linear_ticks(high_ns: f64) -> Vec<AxisTick> {
    let exponent = 10_f64.powf((high_ns / 10.0).max(1.0).log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|digit| digit * exponent)
        .find(|step| high_ns / step <= 13.0)
        .unwrap_or(high_ns);
    (0..=(high_ns / step) as u64)
        .map(|i| {
            let value = i as f64 * step;
            let text = if i == 0 { "0".into() } else { units::ns(value as u64) };
            AxisTick { value, text: Some(text) }
        })
        .collect()
}

// The share of wake-ups that are later than a latency, both axes logarithmic: each nine is as high
// as the next, and the far tail is as wide as the bulk.

/// Draws the lines; `None` where nothing was measured.
pub(crate) fn draw_later(series: &[CompareSeries], drawn: Overlay<'_>) -> Option<Markup> {
    let (low, high) = ends(series)?;
    let most = series.iter().map(|series| series.bins.total()).max()?.max(10) as f64;
    let low = low.max(100.0).min(high.max(100.0));
    let x = Scale::Log { low: low / 1.1, high: high.max(low * 2.0) * 1.15 };
    let y = Scale::Log { low: 0.6 / most, high: 1.0 };
    let mut frame = Frame::wide(drawn.height, 30.0, x, y);
    // Seven nines are a long name.
    frame.left += 28.0;
    let about = About {
        id: drawn.id,
        title: drawn.title,
        text: drawn.text,
        series: series.len(),
        units: ("ns", ""),
    };
    let marks = series.iter().filter(|series| series.max_ns.is_some());
    let body = html! {
        (frame.y_axis(&nines(&frame), "quantile: the wake-ups above are later"))
        (frame.x_axis(&frame.x.latency_ticks(13.0), "latency"))
        @for series in series.iter().rev() {
            g class={ "series " (series.class()) } {
                title { (series.label) ", largest " (series.max_text()) }
                path class=(series.line()) d=(curve(&frame, series)) {}
                @if let Some(max_ns) = series.max_ns {
                    circle.ends r="2.8" cx=(px(frame.px_x(max_ns as f64)))
                        cy=(px(frame.px_y(1.0 / series.bins.total().max(1) as f64))) {}
                }
            }
        }
        (frame.budget_upright(drawn.budget_ns))
        @if drawn.named { (chart::marks(&frame, marks.map(CompareSeries::mark).collect())) }
    };
    Some(frame.root(about, &body))
}

/// Ticks at p0, p90, p99, ...
fn nines(frame: &Frame) -> Vec<AxisTick> {
    let low = frame.y.ends().0;
    let all = (0..12_i32).map(|nines| (nines, 10_f64.powi(-nines)));
    all.take_while(|&(_, share)| share >= low)
        .map(|(nines, value)| {
            let decimals = (nines as usize).saturating_sub(2);
            let text = match nines {
                0 => "all".into(),
                _ => format!("p{:.decimals$}", 100.0 - 100.0 * value),
            };
            AxisTick { value, text: Some(text) }
        })
        .collect()
}

/// Steps: across to a value, down to the share that is later; the last ends at one of n.
fn curve(frame: &Frame, series: &CompareSeries) -> String {
    let n = series.bins.total();
    let mut path = Path::default();
    let mut seen = 0_u64;
    let mut at = (frame.left, frame.top);
    for bin in series.bins.iter() {
        seen += bin.n;
        let last = seen == n;
        let value = match (last, series.max_ns) {
            (true, Some(max_ns)) => max_ns as f64,
            _ => series.value(bin),
        };
        let (x, y) = (frame.px_x(value), frame.px_y((n - seen).max(1) as f64 / n as f64));
        if path.is_empty() {
            path.to(frame.left, frame.px_y(1.0));
        } else if !last && (x - at.0).abs() < 0.4 && (y - at.1).abs() < 0.4 {
            continue;
        }
        path.across(x).down(y);
        at = (x, y);
    }
    path.finish()
}

// Histograms over each other, counts logarithmic: the picture that the field posts.

/// Options of the picture besides the lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overlay<'a> {
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    /// Its numbers in a sentence.
    pub(crate) text: &'a str,
    pub(crate) budget_ns: Option<u64>,
    pub(crate) height: f64,
    /// Whether lines are named at their ends.
    pub(crate) named: bool,
    /// Latency that the axis reaches at least, so that pictures can be laid side by side.
    pub(crate) reach_ns: Option<f64>,
}

/// Whether numbers of wake-ups differ so much that counts mislead.
fn unequal(series: &[CompareSeries]) -> bool {
    let totals = || series.iter().map(|series| series.bins.total()).filter(|&n| n > 0);
    let (low, high) = (totals().min().unwrap_or(0), totals().max().unwrap_or(0));
    (high - low) as f64 > 0.05 * high as f64
}

/// Draws the lines; `None` where nothing was measured.
pub(crate) fn draw_overlay(series: &[CompareSeries], drawn: Overlay<'_>) -> Option<Markup> {
    let (low, high) = ends(series)?;
    let reach = high.max(drawn.reach_ns.unwrap_or(0.0));
    let resolution_ns = series.iter().map(|series| series.resolution_ns).max().unwrap_or(1);
    let cells = CellEdges::over((low, reach), resolution_ns);
    let budget = drawn.budget_ns.filter(|&ns| (ns as f64) < 4.0 * reach);
    let x = cells.scale(budget.map_or(reach, |ns| reach.max(ns as f64)));
    let per_million = unequal(series);
    let counted: Vec<_> = series
        .iter()
        .map(|series| {
            let size = if per_million { 1e6 / series.bins.total().max(1) as f64 } else { 1.0 };
            let cells = cells.counts(series).into_iter();
            let cells: Vec<(f64, f64, f64)> =
                cells.map(|(from, to, n)| (from, to, n as f64 * size)).collect();
            (series, cells)
        })
        .collect();
    let positive = || counted.iter().flat_map(|(_, cells)| cells).map(|c| c.2).filter(|&n| n > 0.0);
    let most = positive().fold(1.0, f64::max);
    let least = positive().fold(1.0, f64::min);
    let y = Scale::Log { low: 0.7 * least, high: (most * 1.6).max(10.0) };
    let frame = Frame::wide(drawn.height, 30.0, x, y);
    let about = About {
        id: drawn.id,
        title: drawn.title,
        text: drawn.text,
        series: series.len(),
        units: ("ns", if per_million { "number" } else { "count" }),
    };
    let axis = if per_million { "wake-ups per cell, of a million" } else { "wake-ups per cell" };
    let ticks = if per_million { frame.y.number_ticks(8.0) } else { frame.y.count_ticks(8.0) };
    let (grey, coloured): (Vec<_>, Vec<_>) =
        counted.iter().partition(|(series, _)| series.colour.is_none());
    let marks = series.iter().filter(|series| series.colour.is_some() && series.max_ns.is_some());
    let body = html! {
        (frame.y_axis(&ticks, axis))
        (frame.x_axis(&cells.ticks(x), "latency"))
        @for (series, cells) in grey.into_iter().chain(coloured.into_iter().rev()) {
            @let d = steps(&frame, cells);
            g class={ "series " (series.class()) } {
                title { (series.label) ", largest " (series.max_text()) }
                @if counted.len() == 1 { path.area d=(d) {} }
                path class=(series.line()) d=(d) {}
            }
        }
        (frame.budget_upright(budget))
        @if drawn.named { (chart::marks(&frame, marks.map(CompareSeries::mark).collect())) }
    };
    Some(frame.root(about, &body))
}

/// A step line, down to the axis wherever a cell is empty.
fn steps(frame: &Frame, cells: &[(f64, f64, f64)]) -> String {
    let mut path = Path::default();
    let mut open = false;
    for &(from, to, n) in cells {
        if n > 0.0 {
            if !open {
                path.to(frame.px_x(from), frame.bottom);
            }
            path.down(frame.px_y(n)).across(frame.px_x(to));
        } else if open {
            path.down(frame.bottom);
        }
        open = n > 0.0;
    }
    if open {
        path.down(frame.bottom);
    }
    path.finish()
}

// The runs in order of time, p99.9 of each, and which make pairs: what drifts is seen here.

/// A run with its group and its place in time.
struct Placed<'a> {
    group: usize,
    number: usize,
    run: &'a RunSummary,
    p999_ns: f64,
}

/// Draws the runs; `None` if fewer than three have a start time.
pub(crate) fn draw_runs(
    comparison: &Comparison,
    (id, title, text): (&str, &str, &str),
) -> Option<Markup> {
    let mut runs: Vec<Placed<'_>> = comparison
        .groups
        .iter()
        .enumerate()
        .flat_map(|(group, summary)| {
            summary.runs.iter().enumerate().filter_map(move |(number, run)| {
                run.started_ns?;
                Some(Placed { group, number, run, p999_ns: run.p999_ns? as f64 })
            })
        })
        .collect();
    if runs.len() < 3 {
        return None;
    }
    runs.sort_by_key(|placed| placed.run.started_ns);
    let (low, high) = runs
        .iter()
        .map(|placed| placed.p999_ns.max(1.0))
        .fold((f64::MAX, 0.0_f64), |(low, high), ns| (low.min(ns), high.max(ns)));
    let y = Scale::Log { low: low / 1.1, high: high * 1.1 };
    let x = Scale::Linear { low: 0.4, high: runs.len() as f64 + 0.6 };
    let mut frame = Frame::wide(260.0, 26.0, x, y);
    frame.right -= 60.0;
    let about = About { id, title, text, series: comparison.groups.len(), units: ("", "ns") };
    let place = |group: usize, number: usize| {
        let at = runs.iter().position(|p| p.group == group && p.number == number)?;
        Some((frame.px_x(at as f64 + 1.0), frame.px_y(runs[at].p999_ns)))
    };
    let pairs = comparison.against.iter().flat_map(|one| {
        let pairs = one.pairs.iter().flat_map(|summary| &summary.pairs);
        pairs.filter_map(|&(a, b)| Some((place(0, a)?, place(one.group, b)?)))
    });
    let every = runs.len().div_ceil(24);
    let ticks: Vec<AxisTick> = (1..=runs.len())
        .map(|at| AxisTick {
            value: at as f64,
            text: (at % every == 0 || every == 1).then(|| at.to_string()),
        })
        .collect();
    let body = html! {
        (frame.y_axis(&frame.y.latency_ticks(6.0), "p99.9 of the run"))
        (frame.x_axis(&ticks, "runs in order of time; lines join pairs"))
        @for (from, to) in pairs {
            line.base x1=(px(from.0)) y1=(px(from.1)) x2=(px(to.0)) y2=(px(to.1)) {}
        }
        @for (group, summary) in comparison.groups.iter().enumerate() {
            g class={ "series effect s" (group % COLOURS) } {
                @for (at, placed) in runs.iter().enumerate().filter(|(_, p)| p.group == group) {
                    @let (x, y) = (frame.px_x(at as f64 + 1.0), frame.px_y(placed.p999_ns));
                    (shape(group, x, y, &format!("{}: {}", placed.run.label,
                        units::ns(placed.p999_ns as u64))))
                }
                @if let Some((at, last)) =
                    runs.iter().enumerate().rfind(|(_, p)| p.group == group)
                {
                    text.halo x=(px(frame.px_x(at as f64 + 1.0) + 9.0))
                        y=(px(frame.px_y(last.p999_ns) + 4.5)) { (summary.label) }
                }
            }
        }
    };
    Some(frame.root(about, &body))
}

/// A disc for the first group, a square for the others: not by colour alone.
fn shape(group: usize, x: f64, y: f64, title: &str) -> Markup {
    html! {
        @if group == 0 {
            circle.point cx=(px(x)) cy=(px(y)) r="4.5" { title { (title) } }
        } @else {
            rect.point x=(px(x - 4.0)) y=(px(y - 4.0)) width="8" height="8" { title { (title) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_ascend_in_whole_steps_of_the_tool_and_hold_all() {
        for (ends, resolution_ns) in [
            ((6000.0, 717_000.0), 1000),
            ((1900.0, 5.3e9), 1),
            ((0.0, 0.0), 1),
            ((0.0, 3000.0), 1000),
            ((5000.0, 9e6), 1000),
        ] {
            let cells = CellEdges::over(ends, resolution_ns);
            assert!(cells.edges.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", cells.edges);
            assert!(cells.edges.last().is_some_and(|&last| last > ends.1), "{ends:?}");
            assert!(cells.edges.len() < 500);
            let whole = |edge: &f64| (edge % resolution_ns as f64).abs() < 1e-6;
            assert!(cells.edges.iter().all(whole));
            assert!(!cells.ticks(cells.scale(ends.1)).is_empty());
        }
    }

    #[test]
    fn linear_ticks_are_round() {
        let named = |high| -> Vec<String> {
            linear_ticks(high).into_iter().filter_map(|tick| tick.text).collect()
        };
        assert_eq!(named(740_000.0)[..3], ["0", "100 µs", "200 µs"]);
        assert_eq!(named(30_000.0)[..3], ["0", "5 µs", "10 µs"]);
        assert!(named(1.0).len() < 15);
    }
}
