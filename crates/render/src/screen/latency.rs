//! Latencies by thread: now, the worst of three times, what was missed, and the last two minutes.

use ratatui_core::{buffer::Buffer, layout::Rect, style::Style};

use rtproof_judge::units;
use rtproof_results::watch::{ThreadLatency, WatchBin, WatchFrame, WatchSpike};

use super::cells::{
    ScreenCell, ScreenColumn, ScreenLine, choose, count, head, latency, number, plain, shown, time,
    words,
};
use super::{Panel, ScreenStyle, ScreenView, cells};

const COLUMNS: [ScreenColumn; 9] = [
    number("CPU", 3),
    words("thread", 12),
    number("now", 7),
    number("1 s", 7),
    number("1 min", 7),
    number("worst", 7),
    number("missed", 7),
    number("late", 5),
    words("last 2 min", 12),
];

/// On wide screens: who, and how many.
const WIDE: [ScreenColumn; 11] = [
    number("CPU", 4),
    words("thread", 22),
    words("class", 12),
    number("wake-ups", 13),
    number("now", 9),
    number("1 s", 9),
    number("1 min", 9),
    number("worst", 9),
    number("missed", 11),
    number("late", 9),
    words("last 2 min", 12),
];

/// From so many columns on a screen is wide; and wide enough for all columns of latencies.
pub(super) const WIDE_FROM: u16 = 118;

const ALL_FROM: u16 = 150;

pub(super) fn draw_latency(
    frame: &WatchFrame,
    view: &ScreenView,
    look: ScreenStyle,
    area: Rect,
    to: &mut Buffer,
) {
    let is_wide = area.width >= ALL_FROM;
    let mut columns = if is_wide { WIDE.to_vec() } else { COLUMNS.to_vec() };
    let before: u16 = columns.iter().rev().skip(1).map(|column| column.columns + 1).sum();
    let room = area.width.saturating_sub(before + 2);
    if let Some(last) = columns.last_mut() {
        last.columns = room;
    }
    head(to, area, look, view.panel == Panel::Latency, "", &columns);
    let rows = view.latencies(frame);
    if rows.is_empty() {
        let text = "no thread has measured yet";
        to.set_stringn(area.x + 2, area.y + 1, text, usize::from(area.width), look.dim());
        return;
    }
    let chosen = view.row(frame, Panel::Latency);
    let lines = usize::from(area.height.saturating_sub(1));
    for (line, at) in shown(rows.len(), chosen, lines).enumerate() {
        let y = area.y + 1 + line as u16;
        let cells = latency_cells(rows[at], frame.budget_ns, look, room, is_wide);
        cells::row(to, (area.x + 2, y), area.right(), &columns, &cells);
        if at == chosen && view.panel == Panel::Latency {
            choose(to, area, y, look, view);
        }
    }
}

fn latency_cells(
    of: &ThreadLatency,
    budget_ns: Option<u64>,
    look: ScreenStyle,
    room: u16,
    is_wide: bool,
) -> Vec<ScreenCell> {
    let timed = |ns: Option<u64>| (latency(ns), tone(ns, budget_ns, look));
    let counted = |n: Option<u64>| {
        (count(n), if n.is_some_and(|n| n > 0) { look.warn() } else { Style::new() })
    };
    let cpu = of.cpu.map_or_else(|| "-".into(), |cpu| cpu.to_string());
    let name = if of.cpu.is_some() { of.what.clone() } else { format!("{}:{}", of.what, of.tid) };
    let mut cells = vec![plain(cpu), plain(name)];
    if is_wide {
        let class = if of.scheduling.is_empty() { "?" } else { &of.scheduling };
        cells.extend([plain(class), plain(count(Some(of.n)))]);
    }
    cells.extend([of.now_ns, of.second_ns, of.minute_ns, of.max_ns].map(timed));
    cells.extend([counted(of.missed), counted(of.late)]);
    cells.push(plain(spark(&of.history_ns, usize::from(room), look)));
    cells
}

/// Red beyond the budget.
fn tone(ns: Option<u64>, budget_ns: Option<u64>, look: ScreenStyle) -> Style {
    match (ns, budget_ns) {
        (Some(ns), Some(budget_ns)) if ns > budget_ns => look.bad(),
        (Some(_), Some(_)) => look.good(),
        _ => Style::new(),
    }
}

/// The last seconds as heights: the logarithm of each worst latency, from 1 µs to the worst shown.
fn spark(history_ns: &[Option<u64>], room: usize, look: ScreenStyle) -> String {
    let last = &history_ns[history_ns.len().saturating_sub(room)..];
    let log = |ns: u64| (ns.max(1) as f64).ln();
    let worst = last.iter().flatten().copied().max().unwrap_or(1).max(2_000);
    let (low, high) = (log(1_000), log(worst));
    let heights = look.heights();
    let height = |ns: &Option<u64>| match ns {
        None => ' ',
        Some(ns) => {
            let part = ((log(*ns) - low) / (high - low)).clamp(0.0, 1.0);
            heights[(part * 7.0).round() as usize]
        }
    };
    last.iter().map(height).collect()
}

// All wake-ups since the reset as a histogram: logarithmic both ways, so that one late wake-up of
// a million is seen, with the budget as a line.

/// Columns of the counts at the left.
const LEFT: u16 = 12;

/// Shortest range: a factor of four.
const RANGE_MIN: f64 = 1.386;

pub(super) fn draw_histogram(frame: &WatchFrame, look: ScreenStyle, area: Rect, to: &mut Buffer) {
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

fn column(to: &mut Buffer, look: ScreenStyle, (x, y): (u16, u16), lines: u16, part: f64) {
    let eighths = (part * f64::from(lines) * 8.0).ceil() as u16;
    let heights = look.heights();
    for line in 0..lines {
        let filled = eighths.saturating_sub((lines - 1 - line) * 8).min(8);
        if filled > 0 {
            to[(x, y + line)].set_char(heights[usize::from(filled) - 1]);
        }
    }
}

fn axis(to: &mut Buffer, look: ScreenStyle, area: Rect, scale: &Scale, most: u64) {
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
    fn counts(&self, bins: &[WatchBin]) -> Vec<u64> {
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

// Spikes as they come: when, where, how late, why, who, and what would remove it.

pub(super) fn draw_spikes(
    frame: &WatchFrame,
    view: &ScreenView,
    look: ScreenStyle,
    area: Rect,
    to: &mut Buffer,
) {
    if area.height == 0 {
        return;
    }
    let is_wide = area.width >= WIDE_FROM;
    let columns = columns(area.width, is_wide);
    head(to, area, look, view.panel == Panel::Spikes, "", &columns);
    let rows = view.spikes(frame);
    if rows.is_empty() {
        let text = none(frame);
        let mut line = ScreenLine::new(look);
        line.dim(&text).put(to, area.x + 2, area.y + 1, area.width.saturating_sub(2));
        return;
    }
    let chosen = view.row(frame, Panel::Spikes);
    let lines = usize::from(area.height.saturating_sub(2).max(1));
    for (line, at) in shown(rows.len(), chosen, lines).enumerate() {
        let y = area.y + 1 + line as u16;
        if y >= area.bottom() {
            break;
        }
        let cells = spike_cells(rows[at], frame.budget_ns, is_wide, look);
        cells::row(to, (area.x + 2, y), area.right(), &columns, &cells);
        if at == chosen && view.panel == Panel::Spikes {
            choose(to, area, y, look, view);
        }
    }
    if area.height > 2 {
        let line = about(frame, rows[chosen], look);
        line.put(to, area.x + 2, area.bottom() - 1, area.width.saturating_sub(2));
    }
}

/// Text if there is no spike, as far as known.
fn none(frame: &WatchFrame) -> String {
    match (frame.spikes_seen, frame.threshold_ns) {
        (Some(0), Some(ns)) => format!("no spike: no wake-up later than {}", units::ns(ns)),
        (Some(seen), _) if !frame.spikes.is_empty() => {
            format!("{} spikes, none on the CPUs that are shown", units::grouped(seen))
        }
        (Some(seen), _) => format!("{} spikes, none listed", units::grouped(seen)),
        (None, _) => "not known yet: nothing was measured".into(),
    }
}

fn columns(width: u16, is_wide: bool) -> Vec<ScreenColumn> {
    let mut columns =
        vec![words("spike at", 8), number("CPU", 3), number("late", 8), words("cause", 20)];
    let used: u16 = columns.iter().map(|column| column.columns + 1).sum::<u16>() + 2;
    let room = 21 + width.saturating_sub(used);
    if is_wide {
        columns[3].columns = room * 3 / 5;
        columns.push(words("what would remove it", room - room * 3 / 5 - 1));
    } else {
        columns[3].columns = room;
    }
    columns
}

fn spike_cells(
    spike: &WatchSpike,
    budget_ns: Option<u64>,
    is_wide: bool,
    look: ScreenStyle,
) -> Vec<ScreenCell> {
    let is_late = budget_ns.is_some_and(|budget_ns| spike.latency_ns > budget_ns);
    let tone = if is_late { look.bad() } else { Style::new() };
    let mut cells = vec![
        plain(time(spike.at_realtime_ns)),
        plain(spike.cpu.to_string()),
        (units::ns(spike.latency_ns), tone),
        plain(cause(spike)),
    ];
    if is_wide {
        cells.push(plain(spike.knob.clone().unwrap_or_else(|| "-".into())));
    }
    cells
}

/// Cause and culprit; what was lost makes it doubtful.
fn cause(spike: &WatchSpike) -> String {
    let who = if spike.culprit.is_empty() { "" } else { ": " };
    let doubt = if spike.cause.is_some() && !spike.complete { " (incomplete)" } else { "" };
    format!("{}{who}{}{doubt}", spike.title, spike.culprit)
}

fn about(frame: &WatchFrame, spike: &WatchSpike, look: ScreenStyle) -> ScreenLine {
    let mut line = ScreenLine::new(look);
    let seen = frame.spikes_seen.map_or("?".into(), units::grouped);
    line.bold(&format!("{seen} spikes"));
    if let Some(ns) = frame.threshold_ns {
        line.text(&format!(" later than {}", units::ns(ns)));
    }
    line.dim(if spike.has_picture { "  Enter: picture" } else { "  no picture kept" });
    line.dim("  fix: ").text(spike.knob.as_deref().unwrap_or("-"));
    line
}
