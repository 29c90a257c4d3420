//! Keys, what the numbers are, and what is not known here with its reason.

use ratatui_core::{buffer::Buffer, layout::Rect};
use rtproof_results::watch::Frame;

use super::{
    Look,
    cells::{Line, time, width},
    view::View,
};

const KEYS: [(&str, &str); 14] = [
    ("?", "this page; Esc goes back"),
    ("q, Ctrl-C", "quit; what was switched on is switched off"),
    ("Tab, Shift-Tab", "next panel, panel before; a click chooses panel and row"),
    ("arrows, PgUp, PgDn, Home", "choose a row; the wheel does, too. Home follows new spikes"),
    ("Enter", "on a spike: its picture; on a CPU: this CPU alone, and all again"),
    ("< >", "sort the panel by another column"),
    ("space", "freeze and go on; sampling and recording do not stop"),
    ("r", "count maxima, wake-ups and histogram of this view anew"),
    ("/ or c", "show some CPUs only"),
    ("l", "load on or off, where this view measures"),
    ("m", "mark this moment with a note; it goes into the record of this view"),
    ("s", "say where the record is"),
    ("Ctrl-Z", "suspend, where this view does not measure"),
    ("Ctrl-L", "draw all anew"),
];

const NUMBERS: [(&str, &str); 12] = [
    ("-, ?", "not known, with the reason below; never 0"),
    ("now", "median latency of the last second (of an application: mean)"),
    ("1 s, 1 min, worst", "largest latency of the last second, of 60 seconds, since the reset"),
    ("missed", "wake-ups that were due while the thread was still late"),
    ("late", "wake-ups later than the budget (of an application: than --over)"),
    ("busy, steal", "share of the time in steps of 10 ms (/proc/stat)"),
    ("busy and idle", "solid: not idle; shaded: idle states, the deepest the lightest"),
    (
        "deepest",
        "share of the time in the deepest idle state. The kernel counts when a state is left: a \
         CPU that slept through the second shows 0 % and an empty bar",
    ),
    ("hot", "times that the CPU was throttled because of heat, in this second"),
    ("switch/s", "tasks that were switched to; the idle task is not counted"),
    ("share", "time on a CPU; tasks are looked for every five seconds at most"),
    (
        "outranked by",
        "real-time tasks of higher class or priority that may use one of the same CPUs. Not \
         counted: interrupts, softirqs, priorities lent by locks",
    ),
];

pub(super) fn draw(frame: &Frame, view: &View, look: Look, to: &mut Buffer) {
    let area = to.area;
    let lines = lines(frame, look, usize::from(area.width));
    let room = usize::from(area.height.saturating_sub(1));
    let from = view.scroll.min(lines.len().saturating_sub(room));
    let area = Rect { height: area.height.saturating_sub(1), ..area };
    for (row, line) in area.rows().zip(lines.iter().skip(from)) {
        line.put(to, row.x, row.y, row.width);
    }
}

fn lines(frame: &Frame, look: Look, columns: usize) -> Vec<Line> {
    let mut lines = Vec::new();
    let title = |lines: &mut Vec<Line>, text: &str| {
        let mut line = Line::new(look);
        line.bold(text);
        lines.push(line);
    };
    title(&mut lines, "Keys");
    KEYS.iter().for_each(|(key, what)| entry(&mut lines, look, columns, key, what));
    title(&mut lines, "Numbers");
    NUMBERS.iter().for_each(|(name, what)| entry(&mut lines, look, columns, name, what));
    title(&mut lines, "Not known here");
    if frame.unknown.is_empty() {
        entry(&mut lines, look, columns, "", "nothing");
    }
    frame.unknown.iter().for_each(|why| entry(&mut lines, look, columns, "?", why));
    title(&mut lines, "Notes, newest first");
    if frame.notes.is_empty() {
        entry(&mut lines, look, columns, "", "none");
    }
    for note in &frame.notes {
        entry(&mut lines, look, columns, &time(note.at_realtime_ns), &note.text);
    }
    lines
}

/// A word and what it means, over as many lines as it takes.
fn entry(lines: &mut Vec<Line>, look: Look, columns: usize, name: &str, text: &str) {
    const INDENT: usize = 28;
    let indent = if columns >= 70 { INDENT } else { 4 };
    let text = rtproof_host::harmless::line(text);
    let room = columns.saturating_sub(indent).max(10);
    let mut line = Line::new(look);
    line.text("  ").bold(name);
    let used = 2 + width(name);
    if used < indent {
        line.text(&" ".repeat(indent - used));
    } else {
        lines.push(std::mem::replace(&mut line, Line::new(look)));
        line.text(&" ".repeat(indent));
    }
    let mut filled = 0;
    for word in text.split(' ') {
        if filled > 0 && filled + 1 + width(word) > room {
            lines.push(std::mem::replace(&mut line, Line::new(look)));
            line.text(&" ".repeat(indent));
            filled = 0;
        }
        if filled > 0 {
            line.text(" ");
            filled += 1;
        }
        line.text(word);
        filled += width(word);
    }
    lines.push(line);
}
