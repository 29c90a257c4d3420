//! One late wake-up as a picture: its causes on top, named where they are, and below them what its
//! CPU did. Read from left to right: when it was due, what each stretch went into, when it ran.
//!
//! Where a stretch is too short for its name, the axis is widened there, and a bar to scale above
//! tells the true proportions.

mod causes;
mod lanes;
mod layout;
mod text;
mod ticks;

use maud::{Markup, html};
use rtproof_judge::causes::Explanation;
use rtproof_trace::Window;

use self::layout::Layout;
use super::{frame::WIDTH, px};
use crate::spike;

/// Draws a spike. `window`: the events round it, where they were kept.
pub(crate) fn draw(id: &str, explanation: &Explanation, window: Option<&Window>) -> Markup {
    let layout = Layout::of(explanation);
    let arrow = arrow(&layout);
    let mut y = 32.0;
    let overview = (!layout.is_even).then(|| causes::overview(&layout, &mut y));
    let causes = causes::draw(&layout, &mut y);
    let lane_top = y - causes::HEIGHT;
    let lanes = window.map(|window| lanes::draw(&layout, window, &mut y));
    let axis = ticks::draw(&layout, lane_top, &mut y);
    let text = spike::sentence(explanation);
    html! {
        svg.chart.spike id=(id) role="img" aria-label=(text)
            viewBox=(format!("0 0 {} {}", px(WIDTH), px(y)))
            // No read-out under the pointer: each part has its own.
            data-x="linear 0 0 0 0 " data-y="linear 0 0 0 0 " {
            (arrow)
            @if let Some(overview) = overview { (overview) }
            (axis)
            (causes)
            @if let Some(lanes) = lanes { (lanes) }
        }
    }
}

/// The latency, measured from due to ran.
fn arrow(layout: &Layout<'_>) -> Markup {
    let (from, to) = (layout.axis.at(layout.due_ns()), layout.axis.at(layout.ran_ns()));
    let y = 22.0;
    let text = format!("{} late", spike::us(layout.explanation.wake.latency_ns()));
    let mut ends = super::Path::default();
    ends.to(from, y - 6.0).down(y + 6.0).to(to, y - 6.0).down(y + 6.0);
    ends.to(from + 7.0, y - 4.0).line(from, y).line(from + 7.0, y + 4.0);
    ends.to(to - 7.0, y - 4.0).line(to, y).line(to - 7.0, y + 4.0);
    ends.to(from, y).across(to);
    html! {
        g.measure {
            path d=(ends.finish()) {}
            text.strong x=(px(f64::midpoint(from, to))) y="14" text-anchor="middle" { (text) }
        }
    }
}

#[cfg(test)]
mod tests;
