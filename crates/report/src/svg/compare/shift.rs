//! How far each quantile moved, as a ratio with its band; the margin within which nothing matters
//! is shaded.

use maud::{Markup, html};
use rtproof_judge::{
    compare::{Shift, ShiftPoint},
    units,
};

use crate::svg::{
    COLOURS, Path,
    frame::{About, Frame},
    px,
    scale::{Scale, Tick},
};

/// Ratios at which the axis may have a text, and their inverses.
const TICKS: [f64; 11] = [1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0, 1000.0];
/// Room for a name at the end of a line.
const NAME: f64 = 16.0;
/// Room for a text of the axis.
const APART: f64 = 20.0;

/// Draws the quantiles of one group against the first; `None` where there are none.
pub(crate) fn draw(
    shift: &Shift,
    colour: usize,
    margin: f64,
    (id, title, text): (&str, &str, &str),
) -> Option<Markup> {
    if shift.points.is_empty() {
        return None;
    }
    let frame = frame(&shift.points, margin);
    let about = About { id, title, text, series: 1, units: ("", "") };
    let y = |ratio: f64| frame.px_y(ratio);
    let class = format!("s{}", colour % COLOURS);
    let body = html! {
        rect.shade x=(px(frame.left)) width=(px(frame.right - frame.left)) y=(px(y(1.0 + margin)))
            height=(px(y(1.0 / (1.0 + margin)) - y(1.0 + margin))) {}
        (frame.y_axis(&ticks(&frame), "change (logarithmic)"))
        line.limit x1=(px(frame.left)) x2=(px(frame.right)) y1=(px(y(1.0))) y2=(px(y(1.0))) {}
        (names(&frame, &shift.points))
        g class={ "series effect " (class) } {
            @if let Some(d) = band(&frame, &shift.points) { path.range d=(d) {} }
            path.line d=(line(&frame, &shift.points)) {}
            @for (at, point) in shift.points.iter().enumerate() {
                (one(&frame, at, point))
            }
        }
    };
    Some(frame.root(about, &body))
}

/// Place of a point: the deciles stand close, the tail has room for its names.
fn place(at: usize) -> f64 {
    const DECILES: usize = 9;
    at.min(DECILES) as f64 * 0.72 + at.saturating_sub(DECILES) as f64 * 1.25
}

/// The quantiles of many groups against the first, without their bands; each is named where it
/// ends. `None` where there are none.
pub(crate) fn together(
    shifts: &[(&str, usize, &Shift)],
    margin: f64,
    (id, title, text): (&str, &str, &str),
) -> Option<Markup> {
    let longest = shifts.iter().map(|(.., shift)| &shift.points).max_by_key(|p| p.len())?;
    let ratios: Vec<f64> =
        shifts.iter().flat_map(|(.., shift)| &shift.points).map(|point| point.ratio).collect();
    let mut frame = framed(longest, ratios.into_iter(), margin, 420.0);
    frame.right -= 170.0;
    let about = About { id, title, text, series: shifts.len(), units: ("", "") };
    let y = |ratio: f64| frame.px_y(ratio);
    // Names from the top down, none on another.
    let mut ends: Vec<(f64, f64, &str, usize)> = shifts
        .iter()
        .filter_map(|&(label, colour, shift)| {
            let last = shift.points.last()?;
            let end = frame.px_x(place(shift.points.len() - 1));
            Some((y(last.ratio), end, label, colour))
        })
        .collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut lowest = frame.top - NAME;
    for end in &mut ends {
        end.0 = end.0.max(lowest + NAME);
        lowest = end.0;
    }
    let body = html! {
        rect.shade x=(px(frame.left)) width=(px(frame.right - frame.left)) y=(px(y(1.0 + margin)))
            height=(px(y(1.0 / (1.0 + margin)) - y(1.0 + margin))) {}
        (frame.y_axis(&ticks(&frame), "change (logarithmic)"))
        line.limit x1=(px(frame.left)) x2=(px(frame.right)) y1=(px(y(1.0))) y2=(px(y(1.0))) {}
        (names(&frame, longest))
        @for &(label, colour, shift) in shifts {
            g class={ "series s" (colour % COLOURS) } {
                title { (label) }
                path class=(if colour >= COLOURS { "line dashed" } else { "line" })
                    d=(line(&frame, &shift.points)) {}
            }
        }
        @for (y, x, label, colour) in ends {
            g class={ "mark s" (colour % COLOURS) } {
                text.halo x=(px(x + 8.0)) y=(px(y + 4.5)) { (label) }
            }
        }
    };
    Some(frame.root(about, &body))
}

fn frame(points: &[ShiftPoint], margin: f64) -> Frame {
    let ratios = points.iter().flat_map(|p| [Some(p.ratio), p.low, p.high]).flatten();
    framed(points, ratios, margin, 330.0)
}

fn framed(
    points: &[ShiftPoint],
    ratios: impl Iterator<Item = f64>,
    margin: f64,
    height: f64,
) -> Frame {
    // Not narrower than the margin is wide on either side, and no wider than can be read.
    let least = 2.5 * margin.ln_1p().max(0.01);
    let most = 1000_f64.ln();
    let logs = ratios.filter(|ratio| *ratio > 0.0).map(f64::ln);
    let (low, high) = logs.fold((-least, least), |(low, high), log| (log.min(low), log.max(high)));
    let air = 0.12 * (high - low);
    let (low, high) = (low.max(-most) - air, high.min(most) + air);
    let y = Scale::Log { low: low.exp(), high: high.exp() };
    let x = Scale::Linear { low: -0.6, high: place(points.len()) - 0.4 };
    Frame::wide(height, 14.0, x, y)
}

/// Ticks on both sides of no change, their texts clear of each other.
fn ticks(frame: &Frame) -> Vec<Tick> {
    let mut values = vec![1.0];
    for outwards in [-1.0, 1.0] {
        let mut last = frame.px_y(1.0);
        for ratio in TICKS.map(|ratio| f64::powf(ratio, outwards)) {
            if frame.y.holds(ratio) && (frame.px_y(ratio) - last).abs() >= APART {
                last = frame.px_y(ratio);
                values.push(ratio);
            }
        }
    }
    values.sort_by(f64::total_cmp);
    let text = |ratio: f64| rtproof_results::effects::signed((ratio * 1e6).round() as u64);
    values.into_iter().map(|value| Tick { value, text: Some(text(value)) }).collect()
}

fn names(frame: &Frame, points: &[ShiftPoint]) -> Markup {
    let middle = px(f64::midpoint(frame.left, frame.right));
    html! {
        g.axis {
            line.base x1=(px(frame.left)) x2=(px(frame.right))
                y1=(px(frame.bottom)) y2=(px(frame.bottom)) {}
            @for (at, point) in points.iter().enumerate() {
                text x=(px(frame.px_x(place(at)))) y=(px(frame.bottom + 18.0))
                    text-anchor="middle" { (point.quantile) }
            }
            text.name x=(middle) y=(px(frame.bottom + 40.0)) text-anchor="middle" {
                "quantile of latency, from the fastest tenth to the far tail"
            }
        }
    }
}

fn line(frame: &Frame, points: &[ShiftPoint]) -> String {
    let mut path = Path::default();
    for (at, point) in points.iter().enumerate() {
        let (x, y) = (frame.px_x(place(at)), frame.px_y(point.ratio));
        if at == 0 {
            path.to(x, y)
        } else {
            path.line(x, y)
        };
    }
    path.finish()
}

/// The band from its lower ends and back along its upper ones; an end that is not there is drawn
/// at the edge.
fn band(frame: &Frame, points: &[ShiftPoint]) -> Option<String> {
    let banded: Vec<(f64, f64, f64)> = points
        .iter()
        .enumerate()
        .filter(|(_, point)| point.low.is_some() || point.high.is_some())
        .map(|(at, point)| {
            let (low, high) = frame.y.ends();
            let x = frame.px_x(place(at));
            (x, frame.px_y(point.low.unwrap_or(low)), frame.px_y(point.high.unwrap_or(high)))
        })
        .collect();
    if banded.len() < 2 {
        return None;
    }
    let mut path = Path::default();
    for (at, &(x, low, _)) in banded.iter().enumerate() {
        if at == 0 {
            path.to(x, low)
        } else {
            path.line(x, low)
        };
    }
    for &(x, _, high) in banded.iter().rev() {
        path.line(x, high);
    }
    Some(path.finish() + "Z")
}

/// The point, and its difference in time written beside it, clear of the line.
fn one(frame: &Frame, at: usize, point: &ShiftPoint) -> Markup {
    let (x, y) = (frame.px_x(place(at)), frame.px_y(point.ratio));
    let difference = point.to_ns - point.from_ns;
    let sign = if difference < 0.0 { "−" } else { "+" };
    let text = match difference.abs() {
        d if d < 0.5 => "0".into(),
        d => format!("{sign}{}", units::ns(d as u64)),
    };
    let above = point.ratio >= 1.0;
    let at_edge = if above { y - frame.top < 22.0 } else { frame.bottom - y < 22.0 };
    let offset = if above == at_edge { 20.0 } else { -10.0 };
    html! {
        circle.point cx=(px(x)) cy=(px(y)) r="4" {
            title {
                (point.quantile) ": " (units::ns(point.from_ns as u64)) " to "
                (units::ns(point.to_ns as u64))
            }
        }
        text.halo.small x=(px(x)) y=(px(y + offset)) text-anchor="middle" { (text) }
    }
}
