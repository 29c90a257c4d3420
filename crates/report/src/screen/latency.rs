//! Latencies by thread: now, the worst of three times, what was missed, and the last two minutes.

use ratatui_core::{buffer::Buffer, layout::Rect, style::Style};
use rtproof_results::watch::{Frame, Latency};

use super::{
    Look,
    cells::{self, Cell, Column, choose, count, head, latency, number, plain, shown, words},
    view::{Panel, View},
};

const COLUMNS: [Column; 9] = [
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
const WIDE: [Column; 11] = [
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

pub(super) fn draw(frame: &Frame, view: &View, look: Look, area: Rect, to: &mut Buffer) {
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
        let cells = cells_of(rows[at], frame.budget_ns, look, room, is_wide);
        cells::row(to, (area.x + 2, y), area.right(), &columns, &cells);
        if at == chosen && view.panel == Panel::Latency {
            choose(to, area, y, look, view);
        }
    }
}

fn cells_of(
    of: &Latency,
    budget_ns: Option<u64>,
    look: Look,
    room: u16,
    is_wide: bool,
) -> Vec<Cell> {
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
fn tone(ns: Option<u64>, budget_ns: Option<u64>, look: Look) -> Style {
    match (ns, budget_ns) {
        (Some(ns), Some(budget_ns)) if ns > budget_ns => look.bad(),
        (Some(_), Some(_)) => look.good(),
        _ => Style::new(),
    }
}

/// The last seconds as heights: the logarithm of each worst latency, from 1 µs to the worst shown.
pub(super) fn spark(history_ns: &[Option<u64>], room: usize, look: Look) -> String {
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
