//! All wake-ups since the reset as a histogram: logarithmic both ways, so that one late wake-up of
//! a million is seen, with the budget as a line.

use ratatui_core::{buffer::Buffer, layout::Rect};
use rtproof_judge::units;
use rtproof_results::watch::{Bin, Frame};

use super::{Look, cells};

/// Columns of the counts at the left.
const LEFT: u16 = 12;
/// Shortest range: a factor of four.
const RANGE_MIN: f64 = 1.386;

pub(super) fn draw(frame: &Frame, look: Look, area: Rect, to: &mut Buffer) {
    let columns = area.width.saturating_sub(LEFT + 1);
    let (Some(first), Some(last)) = (frame.histogram.first(), frame.histogram.last()) else {
        return;
    };
    if columns < 10 || area.height < 3 {
        return;
    }
    let scale = Scale::new(first.low_ns, last.high_ns, frame.budget_ns, columns);
    let counts = scale.counts(&frame.histogram);
    let most = counts.iter().copied().max().unwrap_or(1);
    let lines = area.height - 1;
    for (at, &n) in (0..).zip(&counts) {
        column(to, look, (area.x + LEFT + at, area.y), lines, part(n, most));
    }
    axis(to, look, area, &scale, most);
    let budget = frame.budget_ns.map(|budget_ns| (budget_ns, scale.column(budget_ns)));
    if let Some((_, at)) = budget.filter(|(_, at)| *at < columns) {
        for y in area.y..area.y + lines {
            let x = area.x + LEFT + at;
            if to[(x, y)].symbol() == " " {
                let line = if look.unicode { "│" } else { "|" };
                to[(x, y)].set_symbol(line).set_style(look.bad());
            }
        }
    }
}

/// Height of a count, 0 to 1: one wake-up is seen, and the most frequent fill it.
fn part(n: u64, most: u64) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let log = |n: u64| (n as f64 + 1.0).ln();
    log(n) / log(most)
}

fn column(to: &mut Buffer, look: Look, (x, y): (u16, u16), lines: u16, part: f64) {
    let eighths = (part * f64::from(lines) * 8.0).ceil() as u16;
    let heights = look.heights();
    for line in 0..lines {
        let filled = eighths.saturating_sub((lines - 1 - line) * 8).min(8);
        if filled > 0 {
            to[(x, y + line)].set_char(heights[usize::from(filled) - 1]);
        }
    }
}

fn axis(to: &mut Buffer, look: Look, area: Rect, scale: &Scale, most: u64) {
    let room = usize::from(LEFT - 1);
    let at = |y: u16| area.y + y;
    let most = cells::cut(&units::grouped(most), LEFT - 1);
    to.set_stringn(area.x + 2, at(0), &most, room, look.dim());
    to.set_stringn(area.x + 2, at(area.height - 2), "1 wake-up", room, look.dim());
    let y = at(area.height - 1);
    let mut free = 0;
    for ns in ticks(scale) {
        let (x, text) = (scale.column(ns), units::ns(ns));
        let used = cells::width(&text) as u16;
        if x >= free && x + used <= scale.columns {
            to.set_stringn(area.x + LEFT + x, y, &text, usize::from(used), look.dim());
            free = x + used + 2;
        }
    }
}

/// 1, 2 and 5 of each power of ten within the range.
fn ticks(scale: &Scale) -> impl Iterator<Item = u64> {
    let (low, high) = (scale.low.exp(), scale.high.exp());
    let powers = (0..13).map(|power| 10_u64.pow(power));
    let all = powers.flat_map(|power| [1, 2, 5].map(|digit| digit * power));
    all.filter(move |&ns| (low..=high).contains(&(ns as f64)))
}

/// Logarithms of the ends, and columns between them.
struct Scale {
    low: f64,
    high: f64,
    columns: u16,
}

impl Scale {
    fn new(low_ns: u64, high_ns: u64, budget_ns: Option<u64>, columns: u16) -> Self {
        let log = |ns: u64| (ns.max(1) as f64).ln();
        let budget_ns = budget_ns.unwrap_or(high_ns);
        // The budget is in the picture, unless that would leave no room for what was measured.
        let reach = high_ns.max(budget_ns.min(high_ns.saturating_mul(1000)));
        let low = log(low_ns.min(budget_ns.max(1)).max(1));
        let high = (log(reach) + 0.05).max(low + RANGE_MIN);
        Self { low, high, columns }
    }

    fn column(&self, ns: u64) -> u16 {
        let part = ((ns.max(1) as f64).ln() - self.low) / (self.high - self.low);
        (part.max(0.0) * f64::from(self.columns)) as u16
    }

    /// Wake-ups of each column; those of a bucket that is wider than a column are spread over all
    /// that it covers, at least one in each.
    fn counts(&self, bins: &[Bin]) -> Vec<u64> {
        let mut counts = vec![0_u64; usize::from(self.columns)];
        for bin in bins {
            let last = counts.len() - 1;
            let from = usize::from(self.column(bin.low_ns)).min(last);
            let until =
                usize::from(self.column(bin.high_ns.saturating_add(1))).clamp(from + 1, last + 1);
            let each = (bin.n / (until - from) as u64).max(1);
            counts[from..until].iter_mut().for_each(|n| *n = n.saturating_add(each));
        }
        counts
    }
}
