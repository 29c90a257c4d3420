//! The runs in order of time, p99.9 of each, and which make pairs: what drifts is seen here.

use maud::{Markup, html};
use rtproof_judge::{
    compare::{Comparison, RunSummary},
    units,
};

use crate::svg::{
    COLOURS,
    frame::{About, Frame},
    px,
    scale::{Scale, Tick},
};

/// A run with its group and its place in time.
struct Placed<'a> {
    group: usize,
    number: usize,
    run: &'a RunSummary,
    p999_ns: f64,
}

/// Draws the runs; `None` where fewer than three tell when they began.
pub(crate) fn draw(
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
    let ticks: Vec<Tick> = (1..=runs.len())
        .map(|at| Tick {
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
