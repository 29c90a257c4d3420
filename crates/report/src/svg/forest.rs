//! What each change does, as a forest plot: a row for each knob, its ratio with the interval, the
//! line of no change, the margin within which nothing matters.

use maud::{Markup, html};
use rtproof_record::{
    Effects,
    effects::{Decision, KnobResult, Statistic},
};
use rtproof_results::effects::signed;

use super::{
    Path,
    frame::{About, Frame, WIDTH},
    px,
    scale::{Scale, Tick},
};

/// Height of a row.
const ROW: f64 = 34.0;
/// Room for the names.
const NAMES: f64 = 250.0;
/// Letters of a name that fit there.
const LETTERS: usize = 34;
/// Ratios at which the axis may have a text, and their inverses.
const TICKS: [f64; 10] = [1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0, 1000.0];
/// Room for a text.
const APART: f64 = 62.0;

/// Draws the plot; knobs without numbers are not in it.
pub(crate) fn draw(effects: &Effects, knobs: &[&KnobResult], text: (&str, &str)) -> Markup {
    let shown: Vec<&KnobResult> =
        knobs.iter().copied().filter(|knob| !knob.effects.is_empty()).collect();
    let margin = effects.trial.margin_ppm as f64 / 1e6;
    let frame = frame(&shown, margin);
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
            (draw_row(&frame, frame.top + ROW * (row as f64 + 0.5), knob))
        }
    };
    frame.root(about, &body)
}

/// Ticks on both sides of no change, their texts clear of each other.
fn ticks(frame: &Frame) -> Vec<Tick> {
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
    let tick = |value: f64| Tick { value, text: Some(signed((value * 1e6).round() as u64)) };
    ticks.into_iter().map(tick).collect()
}

fn frame(shown: &[&KnobResult], margin: f64) -> Frame {
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
    let (top, height) = (14.0, ROW * shown.len() as f64);
    Frame {
        width: WIDTH,
        height: top + height + 52.0,
        left: NAMES,
        right: WIDTH - 20.0,
        top,
        bottom: top + height,
        x: Scale::Log { low: 1.0 / half, high: half },
        y: Scale::from_zero(1.0),
    }
}

fn draw_row(frame: &Frame, y: f64, knob: &KnobResult) -> Markup {
    let tone = match knob.decision {
        Decision::Helps => "good",
        Decision::Hurts => "bad",
        Decision::CannotDecide => "doubtful",
        Decision::NoDifference | Decision::NotTried => "idle",
    };
    let name: String = match knob.name.char_indices().nth(LETTERS) {
        Some((end, _)) => format!("{}…", &knob.name[..end]),
        None => knob.name.clone(),
    };
    let place = |ppm: u64| frame.px_x(ppm.max(1) as f64 / 1e6);
    let main = Effects::of(knob, Statistic::P999);
    let worst = Effects::of(knob, Statistic::Max);
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
