//! Spikes as they come: when, where, how late, why, who, and what would remove it.

use ratatui_core::{buffer::Buffer, layout::Rect, style::Style};
use rtproof_judge::units;
use rtproof_results::watch::{Frame, Spike};

use super::{
    Look,
    cells::{self, Cell, Column, Line, choose, head, number, plain, shown, time, words},
    latency::WIDE_FROM,
    view::{Panel, View},
};

pub(super) fn draw(frame: &Frame, view: &View, look: Look, area: Rect, to: &mut Buffer) {
    if area.height == 0 {
        return;
    }
    let is_wide = area.width >= WIDE_FROM;
    let columns = columns(area.width, is_wide);
    head(to, area, look, view.panel == Panel::Spikes, "", &columns);
    let rows = view.spikes(frame);
    if rows.is_empty() {
        let text = none(frame);
        let mut line = Line::new(look);
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
        let cells = cells_of(rows[at], frame.budget_ns, is_wide, look);
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

/// That there is none, as far as that is known.
fn none(frame: &Frame) -> String {
    match (frame.spikes_seen, frame.threshold_ns) {
        (Some(0), Some(ns)) => format!("no spike: no wake-up later than {}", units::ns(ns)),
        (Some(seen), _) if !frame.spikes.is_empty() => {
            format!("{} spikes, none on the CPUs that are shown", units::grouped(seen))
        }
        (Some(seen), _) => format!("{} spikes, none listed", units::grouped(seen)),
        (None, _) => "not known yet: nothing was measured".into(),
    }
}

fn columns(width: u16, is_wide: bool) -> Vec<Column> {
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

fn cells_of(spike: &Spike, budget_ns: Option<u64>, is_wide: bool, look: Look) -> Vec<Cell> {
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
fn cause(spike: &Spike) -> String {
    let who = if spike.culprit.is_empty() { "" } else { ": " };
    let doubt = if spike.cause.is_some() && !spike.complete { " (incomplete)" } else { "" };
    format!("{}{who}{}{doubt}", spike.title, spike.culprit)
}

fn about(frame: &Frame, spike: &Spike, look: Look) -> Line {
    let mut line = Line::new(look);
    let seen = frame.spikes_seen.map_or("?".into(), units::grouped);
    line.bold(&format!("{seen} spikes"));
    if let Some(ns) = frame.threshold_ns {
        line.text(&format!(" later than {}", units::ns(ns)));
    }
    line.dim(if spike.has_picture { "  Enter: picture" } else { "  no picture kept" });
    line.dim("  fix: ").text(spike.knob.as_deref().unwrap_or("-"));
    line
}
