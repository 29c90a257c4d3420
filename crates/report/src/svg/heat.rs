//! The heat map of latency over time: what was usual, what was rare, and when. OSADL's stacked
//! histograms seen from above.

use std::collections::BTreeMap;

use maud::{Markup, html};
use rtproof_judge::{Report, units};
use rtproof_record::Run;

use super::{
    Path,
    bins::{Column, HeatBins, TimeBins, level},
    events::Events,
    frame::{About, Frame},
    labels, px,
    scale::Scale,
};

/// Colours of the ramp, `h0` to `h8`.
pub(crate) const LEVELS: usize = 9;
const MARKED: usize = 10;

/// Draws the heat map of a run; `None` when nothing was measured. `columns` are those of all CPUs.
pub(crate) fn draw(
    run: &Run,
    report: &Report,
    bins: &HeatBins,
    columns: &[Column],
    events: &Events,
    text: (&str, &str),
) -> Markup {
    let frame = frame(run, bins, events);
    let about =
        About { id: "chart-heat", title: text.0, text: text.1, series: 1, units: ("time", "ns") };
    let body = html! {
        g.plot { (cells(&frame, bins)) }
        (frame.y_axis(&frame.y.latency_ticks(8.0), "latency"))
        (frame.x_axis(&frame.x.time_ticks(10), "time since the first wake-up"))
        (labels::phases(&events.above(&frame), &run.options.phases))
        (events.lanes(&frame))
        (frame.budget_level(run.options.requirement.budget_ns))
        g.plot {
        (worst(&frame, bins.time, columns))
        (events.lines(&frame))
        g.largest {
            @for top in report.top.iter().take(MARKED) {
                ellipse rx="5" ry="5" cx=(px(frame.px_x(top.due_ns as f64)))
                    cy=(px(frame.px_y(top.latency_ns as f64))) {
                    title {
                        "CPU " (top.cpu) ": " (units::ns(top.latency_ns))
                        " at " (units::ns(top.due_ns))
                    }
                }
            }
        }
        }
    };
    frame.root(about, &body)
}

fn frame(run: &Run, bins: &HeatBins, events: &Events) -> Frame {
    let (low, mut high) = bins.range();
    let exact = run.threads.iter().filter_map(|thread| thread.totals.wake.max()).max().unwrap_or(0);
    let budget = run.options.requirement.budget_ns.map_or(high, |ns| ns as f64);
    high = high.max(exact as f64 * 1.1).max(budget * 1.25);
    let y = Scale::Log { low: low.min(budget / 1.25), high };
    let lanes = events.height();
    Frame::wide(430.0 + lanes, 40.0 + lanes, over_time(bins.time), y)
}

/// The scale of a time axis: whole columns.
pub(crate) fn over_time(time: TimeBins) -> Scale {
    Scale::from_zero((time.len as u64 * time.width_ns) as f64)
}

/// The cells, one path per colour, in units of cells: short text, and no seams.
fn cells(frame: &Frame, bins: &HeatBins) -> Markup {
    let (low, high) = bins.range();
    let (lower, upper) = (frame.px_y(low), frame.px_y(high));
    let mut runs = Runs::default();
    let most = bins.most();
    for (&(row, column), &n) in &bins.counts {
        runs.push(level(n, 1, most, LEVELS), row, column);
    }
    let (width, height) =
        ((frame.right - frame.left) / bins.time.len as f64, (lower - upper) / f64::from(bins.rows));
    html! {
        g.series.cells data-cpu="all"
            transform=(format!("translate({} {}) scale({width:.4} -{height:.4})",
                px(frame.left), px(lower))) {
            (runs.finish())
        }
    }
}

/// Cells of a grid by colour, neighbours in a row joined.
#[derive(Default)]
pub(crate) struct Runs {
    rows: BTreeMap<usize, Vec<(u32, usize, usize)>>,
}

impl Runs {
    /// Adds a cell; cells come by row, then by column.
    pub(crate) fn push(&mut self, level: usize, row: u32, column: usize) {
        let runs = self.rows.entry(level).or_default();
        match runs.last_mut() {
            Some((last_row, _, end)) if *last_row == row && *end == column => *end += 1,
            _ => runs.push((row, column, column + 1)),
        }
    }

    /// A path per colour; a row is a line one unit thick.
    pub(crate) fn finish(self) -> Markup {
        self.finish_as("h")
    }

    /// The same in the colours of another ramp.
    pub(crate) fn finish_as(self, ramp: &str) -> Markup {
        html! {
            @for (level, runs) in self.rows {
                path class={ (ramp) (level) } d=(runs_text(&runs)) {}
            }
        }
    }
}

fn runs_text(runs: &[(u32, usize, usize)]) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let mut pen = None;
    for &(row, from, to) in runs {
        // Writing to a string cannot fail.
        let _ = match pen {
            Some((at_row, at)) if at_row == row => write!(text, "m{} 0h{}", from - at, to - from),
            _ => write!(text, "M{from} {row}.5h{}", to - from),
        };
        pen = Some((row, to));
    }
    text
}

/// The worst case of each column as a line over the cells.
fn worst(frame: &Frame, time: TimeBins, columns: &[Column]) -> Markup {
    let mut path = Path::default();
    let mut open = false;
    for (i, column) in columns.iter().enumerate() {
        let Some((latency_ns, _)) = column.worst else {
            open = false;
            continue;
        };
        let start_ns = time.start_ns(i) as f64;
        let (from, to) = (frame.px_x(start_ns), frame.px_x(start_ns + time.width_ns as f64));
        let y = frame.px_y(latency_ns as f64);
        if open {
            path.down(y);
        } else {
            path.to(from, y);
        }
        path.across(to);
        open = true;
    }
    html! { path.worst d=(path.finish()) {} }
}
