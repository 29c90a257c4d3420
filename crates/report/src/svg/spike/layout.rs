//! Where everything lies in the picture of a spike.

use rtproof_judge::causes::{Explanation, Share};

use super::text::{SIZE, width};
use crate::{
    spike::{
        self,
        axis::{Axis, widths},
        bars::{Bar, bars, longest},
    },
    svg::frame::{LEFT, WIDTH},
};

/// Widest culprit that a bar is widened for.
const CULPRIT_MAX: f64 = 118.0;
/// Free space in a bar, left and right of its texts together.
pub(super) const PAD: f64 = 12.0;
/// Right edge of the plot.
pub(super) const RIGHT: f64 = WIDTH - 14.0;
/// Most bars: beyond, they are merged to columns.
const BARS_MAX: usize = 240;
/// Time shown before it was due and after it ran, in percent of the latency.
const MARGINS: (u64, u64) = (6, 4);
/// Least width of a bar that is named from above, and of one that is not named.
const LEAST: (f64, f64) = (9.0, 3.0);

/// Where everything lies: what the parts of the picture need to know.
pub(super) struct Layout<'a> {
    pub(super) explanation: &'a Explanation,
    pub(super) bars: Vec<Bar>,
    /// By share: the bar that carries its name.
    pub(super) named: Vec<Option<usize>>,
    pub(super) axis: Axis,
    /// Whether equal distances are equal times.
    pub(super) is_even: bool,
}

impl<'a> Layout<'a> {
    pub(super) fn of(explanation: &'a Explanation) -> Self {
        let bars = bars(explanation, BARS_MAX);
        let named = longest(&bars, explanation.shares.len());
        let even = Axis::even(ends_ns(explanation), (LEFT, RIGHT));
        let mut layout = Self { explanation, bars, named, axis: even, is_even: true };
        let fits = |layout: &Self| {
            let named = layout.named.iter().enumerate();
            named
                .filter_map(|(share, bar)| Some((share, layout.width((*bar)?))))
                .all(|(share, width)| width >= needed(&layout.explanation.shares[share]))
        };
        if !fits(&layout) {
            layout.axis = layout.widened();
            layout.is_even = false;
        }
        layout
    }

    /// Width of a bar.
    pub(super) fn width(&self, bar: usize) -> f64 {
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
            let wants = needed(share);
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

    pub(super) const fn due_ns(&self) -> u64 {
        self.explanation.wake.due_ns
    }

    pub(super) fn ran_ns(&self) -> u64 {
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

/// Width that a share's bar needs for its name, its culprit as far as usual, and its time.
fn needed(share: &Share) -> f64 {
    let name = width(&spike::short(&share.cause), SIZE);
    let time = width(&spike::us(share.ns), SIZE);
    name.max(time).max(width(&share.culprit, SIZE).min(CULPRIT_MAX)) + PAD
}
