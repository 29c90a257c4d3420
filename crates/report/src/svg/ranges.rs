//! Cells of a matrix beside each other: a row for each CPU of each cell, from its smallest sample
//! to its largest, on one logarithmic scale.

use maud::{Markup, html};

use super::{
    Path,
    frame::{About, Frame, WIDTH},
    px,
    scale::Scale,
};

/// Height of a row.
const ROW: f64 = 24.0;
/// Room for the names.
const NAMES: f64 = 330.0;
/// Letters of a name that fit there.
const LETTERS: usize = 48;

/// One row: a name, and what is shown of its samples, nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) name: String,
    pub(crate) ends_ns: [u64; 2],
    pub(crate) median_ns: Option<u64>,
    /// p5, p95, p99 and p99.9, those that the samples carry.
    pub(crate) quantiles_ns: [Option<u64>; 4],
    /// Whether it begins a group.
    pub(crate) begins: bool,
}

pub(crate) fn draw(rows: &[Range], (title, text): (&str, &str)) -> Markup {
    let frame = frame(rows);
    let about = About { id: "chart-ranges", title, text, series: rows.len(), units: ("ns", "") };
    let body = html! {
        (frame.x_axis(&frame.x.latency_ticks(8.0), "sample (logarithmic)"))
        @for (at, row) in rows.iter().enumerate() {
            (draw_row(&frame, frame.top + ROW * (at as f64 + 0.5), row))
        }
    };
    frame.root(about, &body)
}

fn frame(rows: &[Range]) -> Frame {
    let low = rows.iter().map(|row| row.ends_ns[0].max(1)).min().unwrap_or(1);
    let high = rows.iter().map(|row| row.ends_ns[1]).max().unwrap_or(1);
    let (low, high) = (low as f64 / 1.1, (high as f64).max(low as f64 * 2.0) * 1.1);
    let (top, height) = (14.0, ROW * rows.len() as f64);
    Frame {
        width: WIDTH,
        height: top + height + 52.0,
        left: NAMES,
        right: WIDTH - 20.0,
        top,
        bottom: top + height,
        x: Scale::Log { low, high },
        y: Scale::from_zero(1.0),
    }
}

fn draw_row(frame: &Frame, y: f64, row: &Range) -> Markup {
    let name = match row.name.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &row.name[..end]),
        None => row.name.clone(),
    };
    let x = |ns: u64| frame.px_x(ns.max(1) as f64);
    let [low, high] = row.ends_ns.map(x);
    let mut line = Path::default();
    line.to(low, y).across(high);
    let edge = px(y - ROW / 2.0);
    html! {
        @if row.begins && y > frame.top + ROW {
            line.grid x1="0" x2=(px(frame.right)) y1=(edge) y2=(edge) {}
        }
        g.effect.idle {
            text x=(px(frame.left - 10.0)) y=(px(y + 4.5)) text-anchor="end" {
                title { (row.name) }
                (name)
            }
            path.whisker d=(line.finish()) {}
            @if let Some(ns) = row.median_ns {
                circle.point cx=(px(x(ns))) cy=(px(y)) r="4.5" { title { "p50" } }
            }
            @for ns in row.quantiles_ns.into_iter().flatten() {
                circle.point cx=(px(x(ns))) cy=(px(y)) r="2.5" {}
            }
            circle.ring cx=(px(high)) cy=(px(y)) r="3.5" { title { "max" } }
        }
    }
}
