//! One late wake-up as a picture: its causes on top, named where they are, and below them what its
//! CPU did. Read from left to right: when it was due, what each stretch went into, when it ran.
//!
//! Where a stretch is too short for its name, the axis is widened there, and a bar to scale above
//! tells the true proportions.

mod causes;
mod lanes;
mod text;
mod ticks;

use maud::{Markup, html};
use rtproof_judge::causes::Explanation;
use rtproof_trace::Window;

use super::{
    frame::{LEFT, WIDTH},
    px,
};
use crate::spike::{
    self,
    axis::{Axis, widths},
    bars::{Bar, bars, longest},
};

/// Right edge of the plot.
const RIGHT: f64 = WIDTH - 14.0;
/// Most bars: beyond, they are merged to columns.
const BARS_MAX: usize = 240;
/// Time shown before it was due and after it ran, in percent of the latency.
const MARGINS: (u64, u64) = (6, 4);
/// Least width of a bar that is named from above, and of one that is not named.
const LEAST: (f64, f64) = (9.0, 3.0);

/// Where everything lies: what the parts of the picture need to know.
struct Layout<'a> {
    explanation: &'a Explanation,
    bars: Vec<Bar>,
    /// By share: the bar that carries its name.
    named: Vec<Option<usize>>,
    axis: Axis,
    /// Whether equal distances are equal times.
    is_even: bool,
}

impl<'a> Layout<'a> {
    fn of(explanation: &'a Explanation) -> Self {
        let bars = bars(explanation, BARS_MAX);
        let named = longest(&bars, explanation.shares.len());
        let even = Axis::even(ends_ns(explanation), (LEFT, RIGHT));
        let mut layout = Self { explanation, bars, named, axis: even, is_even: true };
        let fits = |layout: &Self| {
            let named = layout.named.iter().enumerate();
            named
                .filter_map(|(share, bar)| Some((share, layout.width((*bar)?))))
                .all(|(share, width)| width >= causes::room(&layout.explanation.shares[share]))
        };
        if !fits(&layout) {
            layout.axis = layout.widened();
            layout.is_even = false;
        }
        layout
    }

    /// Width of a bar.
    fn width(&self, bar: usize) -> f64 {
        let bar = &self.bars[bar];
        self.axis.at(bar.to_ns) - self.axis.at(bar.from_ns)
    }

    /// An axis on which as many shares as possible have room for their name.
    fn widened(&self) -> Axis {
        let (from_ns, to_ns) = ends_ns(self.explanation);
        let (due, ran) = (self.axis.at(self.due_ns()), self.axis.at(self.ran_ns()));
        let room = ran - due;
        let unnamed = LEAST.1.min(room * 0.25 / self.bars.len().max(1) as f64);
        let mut least = vec![unnamed; self.bars.len()];
        let mut left = room * 0.85 - unnamed * self.bars.len() as f64;
        // The largest shares are named first; what has no room is named from above.
        let shares = self.named.iter().zip(&self.explanation.shares);
        for (bar, share) in shares.filter_map(|(bar, share)| Some(((*bar)?, share))) {
            let wants = causes::room(share);
            least[bar] = if wants <= left { wants } else { LEAST.0.min(left.max(unnamed)) };
            left -= least[bar];
        }
        let durations: Vec<u64> = self.bars.iter().map(Bar::ns).collect();
        let mut knots = vec![(from_ns, LEFT), (self.due_ns(), due)];
        let mut at = due;
        for (bar, width) in self.bars.iter().zip(widths(&durations, &least, room)) {
            at += width;
            knots.push((bar.to_ns, at));
        }
        knots.push((to_ns, RIGHT));
        knots.sort_by_key(|knot| knot.0);
        knots.dedup_by_key(|knot| knot.0);
        Axis::through(knots)
    }

    const fn due_ns(&self) -> u64 {
        self.explanation.wake.due_ns
    }

    fn ran_ns(&self) -> u64 {
        self.explanation.wake.ran_ns.max(self.due_ns())
    }
}

/// First and last time of the picture.
fn ends_ns(explanation: &Explanation) -> (u64, u64) {
    let wake = &explanation.wake;
    let of = |percent: u64| (wake.latency_ns() / 100).saturating_mul(percent).max(1);
    let to_ns = wake.ran_ns.max(wake.due_ns).saturating_add(of(MARGINS.1));
    (wake.due_ns.saturating_sub(of(MARGINS.0)), to_ns)
}

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
