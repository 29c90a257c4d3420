//! Histograms over each other, counts logarithmic: the picture that the field posts.

use maud::{Markup, html};

use super::{Series, cells::Cells, ends};
use crate::svg::{
    Path,
    frame::{About, Frame},
    labels,
    scale::Scale,
};

/// What is drawn besides the lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn<'a> {
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
fn unequal(series: &[Series]) -> bool {
    let totals = || series.iter().map(|series| series.bins.total()).filter(|&n| n > 0);
    let (low, high) = (totals().min().unwrap_or(0), totals().max().unwrap_or(0));
    (high - low) as f64 > 0.05 * high as f64
}

/// Draws the lines; `None` where nothing was measured.
pub(crate) fn draw(series: &[Series], drawn: Drawn<'_>) -> Option<Markup> {
    let (low, high) = ends(series)?;
    let reach = high.max(drawn.reach_ns.unwrap_or(0.0));
    let resolution_ns = series.iter().map(|series| series.resolution_ns).max().unwrap_or(1);
    let cells = Cells::over((low, reach), resolution_ns);
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
        @if drawn.named { (labels::marks(&frame, marks.map(Series::mark).collect())) }
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
