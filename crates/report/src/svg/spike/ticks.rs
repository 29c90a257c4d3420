//! The axis of a spike: times after it was due, and the steps of the wake-up as lines through all
//! lanes, named below.

use maud::{Markup, html};

use super::{
    layout::{Layout, RIGHT},
    text::{self, SIZE, width},
};
use crate::{
    spike,
    svg::{
        frame::{LEFT, WIDTH},
        px,
    },
};

/// Height of a row of names.
const ROW: f64 = 18.0;

/// Draws axis and steps; the lines begin at `top`. Moves `y` below them.
pub(super) fn draw(layout: &Layout<'_>, top: f64, y: &mut f64) -> Markup {
    *y += 5.0;
    let base = *y;
    let ticks = if layout.is_even { even(layout) } else { ends(layout) };
    *y = base + 22.0;
    let steps = steps(layout, top, y);
    html! {
        (steps)
        g.axis {
            line.base x1=(px(LEFT)) x2=(px(RIGHT)) y1=(px(base)) y2=(px(base)) {}
            @for (x, text) in &ticks {
                line.grid x1=(px(*x)) x2=(px(*x)) y1=(px(top)) y2=(px(base + 4.0)) {}
                text.halo x=(px(*x)) y=(px(base + 17.0)) text-anchor="middle" { (text) }
            }
            text.lane x=(px(LEFT - 8.0)) y=(px(base + 17.0)) text-anchor="end" {
                (if layout.is_even { "µs" } else { "µs, uneven" })
            }
        }
    }
}

/// Round times, where equal distances are equal times.
fn even(layout: &Layout<'_>) -> Vec<(f64, String)> {
    let length_us = layout.explanation.wake.latency_ns() as f64 / 1000.0;
    let raw = (length_us / 7.0).max(0.1);
    let power = 10_f64.powf(raw.log10().floor());
    let step_us = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|step| *step >= raw);
    let step_ns = (step_us.unwrap_or(raw) * 1000.0).round().max(1.0) as u64;
    let times = (0..20).map(|i| i * step_ns).take_while(|&ns| ns as f64 <= length_us * 1000.0);
    let text = |ns: u64| match ns % 1000 {
        0 => rtproof_judge::units::grouped(ns / 1000),
        _ => spike::us_number(ns),
    };
    times.map(|ns| (layout.axis.at(layout.due_ns() + ns), text(ns))).collect()
}

/// Where bars end, as far as their times have room: the whole first.
fn ends(layout: &Layout<'_>) -> Vec<(f64, String)> {
    let mut times = vec![layout.due_ns(), layout.ran_ns()];
    let named = layout.named.iter().flatten().map(|&bar| &layout.bars[bar]);
    times.extend(named.flat_map(|bar| [bar.from_ns, bar.to_ns]));
    let mut shown: Vec<(f64, String)> = Vec::new();
    for at_ns in times {
        let text = match at_ns.saturating_sub(layout.due_ns()) {
            0 => "0".into(),
            after_ns => spike::us_number(after_ns),
        };
        let x = layout.axis.at(at_ns);
        let is_free = |(other, other_text): &(f64, String)| {
            let both = width(other_text, SIZE) + width(&text, SIZE);
            (other - x).abs() > both / 2.0 + 5.0
        };
        if shown.iter().all(is_free) {
            shown.push((x, text));
        }
    }
    shown
}

fn steps(layout: &Layout<'_>, top: f64, y: &mut f64) -> Markup {
    let due_ns = layout.due_ns();
    let name = |(name, at_ns): (&str, u64)| match at_ns.checked_sub(due_ns) {
        Some(0) => name.to_owned(),
        Some(after_ns) => format!("{name} {}", spike::us_number(after_ns)),
        None => format!("{name} −{}", spike::us_number(due_ns - at_ns)),
    };
    let steps: Vec<(f64, String)> = spike::steps(layout.explanation)
        .into_iter()
        .map(|step| (layout.axis.at(step.1), name(step)))
        .collect();
    let extents: Vec<(f64, f64)> =
        steps.iter().map(|(x, text)| (*x, width(text, SIZE) + 4.0)).collect();
    let places = text::place(&extents, WIDTH - 2.0);
    let rows = places.iter().map(|place| place.row + 1).max().unwrap_or(0);
    let first = *y + 14.0;
    *y = first + (rows as f64 - 1.0) * ROW + 8.0;
    html! {
        g.steps {
            @for ((x, text), place) in steps.iter().zip(&places) {
                @let base = first + place.row as f64 * ROW;
                @let at = if place.is_end { x - 4.0 } else { x + 4.0 };
                line x1=(px(*x)) x2=(px(*x)) y1=(px(top - 3.0)) y2=(px(base + 2.0)) {}
                text x=(px(at)) y=(px(base))
                    text-anchor=(if place.is_end { "end" } else { "start" }) { (text) }
            }
        }
    }
}
