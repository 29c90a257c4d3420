//! Cells of a matrix beside each other: a row for each CPU of each cell, from its smallest sample
//! to its largest, on one logarithmic scale.

use maud::{Markup, html};

use rtproof_record::{
    Effects,
    effects::{Decision, KnobResult, SliceStatistic},
};
use rtproof_results::signed;

use super::chart::{About, AxisTick, Frame, Path, Scale, WIDTH, px};

/// Height of a row.
const RANGES_ROW: f64 = 24.0;

/// Room for the names.
const RANGES_NAMES: f64 = 330.0;

/// Letters of a name that fit there.
const RANGES_LETTERS: usize = 48;

/// One row: a name, and what is shown of its samples, nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct RangeRow {
    pub(crate) name: String,
    pub(crate) ends_ns: [u64; 2],
    pub(crate) median_ns: Option<u64>,
    /// p5, p95, p99 and p99.9, those that the samples carry.
    pub(crate) quantiles_ns: [Option<u64>; 4],
    /// Whether it begins a group.
    pub(crate) begins: bool,
}

pub(crate) fn draw_ranges(rows: &[RangeRow], (title, text): (&str, &str)) -> Markup {
    let frame = ranges_frame(rows);
    let about = About { id: "chart-ranges", title, text, series: rows.len(), units: ("ns", "") };
    let body = html! {
        (frame.x_axis(&frame.x.latency_ticks(8.0), "sample (logarithmic)"))
        @for (at, row) in rows.iter().enumerate() {
            (draw_ranges_row(&frame, frame.top + RANGES_ROW * (at as f64 + 0.5), row))
        }
    };
    frame.root(about, &body)
}

fn ranges_frame(rows: &[RangeRow]) -> Frame {
    let low = rows.iter().map(|row| row.ends_ns[0].max(1)).min().unwrap_or(1);
    let high = rows.iter().map(|row| row.ends_ns[1]).max().unwrap_or(1);
    let (low, high) = (low as f64 / 1.1, (high as f64).max(low as f64 * 2.0) * 1.1);
    let (top, height) = (14.0, RANGES_ROW * rows.len() as f64);
    Frame {
        width: WIDTH,
        height: top + height + 52.0,
        left: RANGES_NAMES,
        right: WIDTH - 20.0,
        top,
        bottom: top + height,
        x: Scale::Log { low, high },
        y: Scale::from_zero(1.0),
    }
}

fn draw_ranges_row(frame: &Frame, y: f64, row: &RangeRow) -> Markup {
    let name = match row.name.char_indices().nth(RANGES_LETTERS) {
        Some((end, _)) => format!("{}…", &row.name[..end]),
        None => row.name.clone(),
    };
    let x = |ns: u64| frame.px_x(ns.max(1) as f64);
    let [low, high] = row.ends_ns.map(x);
    let mut line = Path::default();
    line.to(low, y).across(high);
    let edge = px(y - RANGES_ROW / 2.0);
    html! {
        @if row.begins && y > frame.top + RANGES_ROW {
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

// What each change does, as a forest plot: a row for each knob, its ratio with the interval, the
// line of no change, the margin within which nothing matters.

/// Height of a row.
const FOREST_ROW: f64 = 34.0;

/// Room for the names.
const FOREST_NAMES: f64 = 250.0;

/// Letters of a name that fit there.
const FOREST_LETTERS: usize = 34;

/// Ratios at which the axis may have a text, and their inverses.
const TICKS: [f64; 10] = [1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0, 1000.0];

/// Room for a text.
const APART: f64 = 62.0;

/// Draws the plot; knobs without numbers are not in it.
pub(crate) fn draw_forest(effects: &Effects, knobs: &[&KnobResult], text: (&str, &str)) -> Markup {
    let shown: Vec<&KnobResult> =
        knobs.iter().copied().filter(|knob| !knob.effects.is_empty()).collect();
    let margin = effects.trial.margin_ppm as f64 / 1e6;
    let frame = forest_frame(&shown, margin);
    let about = About {
        id: "chart-effects",
        title: text.0,
        text: text.1,
        series: shown.len(),
        units: ("", ""),
    };
    let ticks = ticks(&frame);
    let (low, high) = (frame.px_x(1.0 / (1.0 + margin)), frame.px_x(1.0 + margin));
    let one = px(frame.px_x(1.0));
    let body = html! {
        rect.shade x=(px(low)) y=(px(frame.top)) width=(px(high - low))
            height=(px(frame.bottom - frame.top)) {}
        (frame.x_axis(&ticks, "change of latency with the knob (logarithmic)"))
        line.limit x1=(one) x2=(one) y1=(px(frame.top)) y2=(px(frame.bottom)) {}
        @for (row, knob) in shown.iter().enumerate() {
            (draw_forest_row(&frame, frame.top + FOREST_ROW * (row as f64 + 0.5), knob))
        }
    };
    frame.root(about, &body)
}

/// Ticks on both sides of no change, their texts clear of each other.
fn ticks(frame: &Frame) -> Vec<AxisTick> {
    let mut ticks = vec![1.0];
    for outwards in [-1.0, 1.0] {
        let mut last = frame.px_x(1.0);
        for ratio in TICKS.map(|ratio| f64::powf(ratio, outwards)) {
            if frame.x.holds(ratio) && (frame.px_x(ratio) - last).abs() >= APART {
                last = frame.px_x(ratio);
                ticks.push(ratio);
            }
        }
    }
    ticks.sort_by(f64::total_cmp);
    let tick = |value: f64| AxisTick { value, text: Some(signed((value * 1e6).round() as u64)) };
    ticks.into_iter().map(tick).collect()
}

fn forest_frame(shown: &[&KnobResult], margin: f64) -> Frame {
    let ratios = shown.iter().flat_map(|knob| &knob.effects).flat_map(|effect| {
        [Some(effect.ratio_ppm), effect.low_ppm, effect.high_ppm].into_iter().flatten()
    });
    // Never narrower than the margin is wide, nor wider than anyone can read.
    let least = (1.0 + margin).powi(4);
    let widest = ratios
        .map(|ppm| (ppm.max(1) as f64 / 1e6).ln().abs())
        .fold(least.ln(), f64::max)
        .min(1000_f64.ln());
    let half = (widest * 1.08).exp();
    let (top, height) = (14.0, FOREST_ROW * shown.len() as f64);
    Frame {
        width: WIDTH,
        height: top + height + 52.0,
        left: FOREST_NAMES,
        right: WIDTH - 20.0,
        top,
        bottom: top + height,
        x: Scale::Log { low: 1.0 / half, high: half },
        y: Scale::from_zero(1.0),
    }
}

fn draw_forest_row(frame: &Frame, y: f64, knob: &KnobResult) -> Markup {
    let tone = match knob.decision {
        Decision::Helps => "good",
        Decision::Hurts => "bad",
        Decision::CannotDecide => "doubtful",
        Decision::NoDifference | Decision::NotTried => "idle",
    };
    let name: String = match knob.name.char_indices().nth(FOREST_LETTERS) {
        Some((end, _)) => format!("{}…", &knob.name[..end]),
        None => knob.name.clone(),
    };
    let place = |ppm: u64| frame.px_x(ppm.max(1) as f64 / 1e6);
    let main = Effects::of(knob, SliceStatistic::P999);
    let worst = Effects::of(knob, SliceStatistic::Max);
    html! {
        g.effect.(tone) {
            text x=(px(frame.left - 10.0)) y=(px(y + 4.5)) text-anchor="end" {
                title { (knob.name) }
                (name)
            }
            @if let Some(effect) = worst {
                @let x = place(effect.ratio_ppm);
                circle.ring cx=(px(x)) cy=(px(y + 8.0)) r="3.5" {
                    title { "max " (signed(effect.ratio_ppm)) }
                }
            }
            @if let Some(effect) = main {
                @let y = y - 3.0;
                @if let (Some(low), Some(high)) = (effect.low_ppm, effect.high_ppm) {
                    path.whisker d=(whisker(place(low), place(high), y)) {}
                }
                circle.point cx=(px(place(effect.ratio_ppm))) cy=(px(y)) r="5" {
                    title { "p99.9 " (signed(effect.ratio_ppm)) }
                }
            }
        }
    }
}

fn whisker(low: f64, high: f64, y: f64) -> String {
    let mut path = Path::default();
    path.to(low, y).across(high);
    for end in [low, high] {
        path.to(end, y - 5.0).down(y + 5.0);
    }
    path.finish()
}
