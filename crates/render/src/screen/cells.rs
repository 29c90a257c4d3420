//! Lines of styled words, columns, and alignment of numbers. Untrusted words pass
//! [`rtproof_host::text::line`] here, all of them.

use jiff::{Timestamp, tz::TimeZone};
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
    text::Span,
};

use rtproof_host::text;
use rtproof_judge::{causes::Explanation, units};
use rtproof_results::watch::WatchFrame;
use rtproof_trace::Window;

use super::{ScreenStyle, ScreenView, StyledLine};
use crate::page::{Glyphs, Terminal, WIDTH_MIN, explanation};

/// Words in a line, each with its style.
#[derive(Clone, Debug)]
pub(super) struct ScreenLine {
    look: ScreenStyle,
    parts: Vec<(String, Style)>,
}

impl ScreenLine {
    pub(super) const fn new(look: ScreenStyle) -> Self {
        Self { look, parts: Vec::new() }
    }

    fn styled(&mut self, text: &str, style: Style) -> &mut Self {
        self.parts.push((text::harmless_line(text), style));
        self
    }

    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        self.styled(text, Style::new())
    }

    pub(super) fn bold(&mut self, text: &str) -> &mut Self {
        self.styled(text, self.look.bold())
    }

    pub(super) fn dim(&mut self, text: &str) -> &mut Self {
        self.styled(text, self.look.dim())
    }

    pub(super) fn bad(&mut self, text: &str) -> &mut Self {
        self.styled(text, self.look.bad())
    }

    pub(super) fn warn(&mut self, text: &str) -> &mut Self {
        self.styled(text, self.look.warn())
    }

    /// Draws it, cut to so many columns.
    pub(super) fn put(&self, to: &mut Buffer, x: u16, y: u16, columns: u16) {
        let (mut x, end) = (x, x.saturating_add(columns).min(to.area.right()));
        for (text, style) in &self.parts {
            if x >= end {
                break;
            }
            (x, _) = to.set_stringn(x, y, text, usize::from(end - x), *style);
        }
    }
}

/// A column of a table: title, columns, whether it holds numbers (right-aligned).
#[derive(Clone, Copy, Debug)]
pub(super) struct ScreenColumn {
    pub(super) title: &'static str,
    pub(super) columns: u16,
    pub(super) is_number: bool,
}

pub(super) const fn number(title: &'static str, columns: u16) -> ScreenColumn {
    ScreenColumn { title, columns, is_number: true }
}

pub(super) const fn words(title: &'static str, columns: u16) -> ScreenColumn {
    ScreenColumn { title, columns, is_number: false }
}

/// A cell: text and style.
pub(super) type ScreenCell = (String, Style);

/// A cell without a style.
pub(super) fn plain(text: impl Into<String>) -> ScreenCell {
    (text.into(), Style::new())
}

/// Draws a row of cells below their columns.
pub(super) fn row(
    to: &mut Buffer,
    at: (u16, u16),
    end: u16,
    columns: &[ScreenColumn],
    cells: &[ScreenCell],
) {
    let (mut x, y) = at;
    for (column, (text, style)) in columns.iter().zip(cells) {
        let room = column.columns.min(end.saturating_sub(x));
        if room == 0 {
            break;
        }
        let text = cut(&text::harmless_line(text), room);
        let used = width(&text) as u16;
        let shift = if column.is_number { room.saturating_sub(used) } else { 0 };
        to.set_stringn(x + shift, y, &text, usize::from(room), *style);
        x = x.saturating_add(column.columns + 1);
    }
}

/// The head of a table; `is_focused`: keys move in it.
pub(super) fn head(
    to: &mut Buffer,
    area: Rect,
    look: ScreenStyle,
    is_focused: bool,
    title: &str,
    columns: &[ScreenColumn],
) {
    let style = if is_focused { look.bold() } else { look.dim() };
    let cells: Vec<ScreenCell> =
        columns.iter().map(|column| (column.title.to_owned(), style)).collect();
    row(to, (area.x + 2, area.y), area.right(), columns, &cells);
    let mark = if !is_focused {
        " "
    } else if look.unicode {
        "▸"
    } else {
        ">"
    };
    to.set_stringn(area.x, area.y, mark, 1, look.bold());
    if !title.is_empty() {
        let used = columns.iter().map(|column| column.columns + 1).sum::<u16>() + 2;
        let room = area.width.saturating_sub(used);
        to.set_stringn(area.x + used, area.y, title, usize::from(room), style);
    }
}

/// Rows of a table: which of so many are shown where one is chosen.
pub(super) fn shown(all: usize, chosen: usize, lines: usize) -> std::ops::Range<usize> {
    let from = if chosen < lines { 0 } else { chosen + 1 - lines };
    let from = from.min(all.saturating_sub(lines));
    from..all.min(from + lines)
}

/// Marks the row that is chosen, where keys move.
pub(super) fn choose(to: &mut Buffer, area: Rect, y: u16, look: ScreenStyle, view: &ScreenView) {
    if view.is_text {
        return;
    }
    to.set_style(Rect::new(area.x, y, area.width, 1), look.chosen());
}

/// A text cut to so many columns; what is cut off is marked.
pub(super) fn cut(text: &str, columns: u16) -> String {
    let columns = usize::from(columns);
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        if width(&short) + width(letter.encode_utf8(&mut [0; 4])) + 1 > columns {
            break;
        }
        short.push(letter);
    }
    short.push('~');
    short
}

/// Columns that a text takes.
pub(super) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

/// A latency; `-`: unknown.
pub(super) fn latency(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".into(), units::ns)
}

/// A count; `-`: unknown.
pub(super) fn count(n: Option<u64>) -> String {
    n.map_or_else(|| "-".into(), units::grouped)
}

/// A share of 1/1000 as percent; `-`: unknown.
pub(super) fn percent(permille: Option<u32>) -> String {
    match permille {
        None => "-".into(),
        Some(permille) if permille < 100 => format!("{}.{} %", permille / 10, permille % 10),
        Some(permille) => format!("{} %", (permille + 5) / 10),
    }
}

/// Time of day in UTC, `12:03:04`; `-`: unknown.
pub fn time(realtime_ns: u64) -> String {
    let at = Timestamp::from_nanosecond(i128::from(realtime_ns)).ok().filter(|_| realtime_ns > 0);
    at.map_or_else(|| "-".into(), |at| at.to_zoned(TimeZone::UTC).strftime("%H:%M:%S").to_string())
}

// Keys, what the numbers are, and what is not known here with its reason.

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

pub(super) fn draw_help(frame: &WatchFrame, view: &ScreenView, look: ScreenStyle, to: &mut Buffer) {
    let area = to.area;
    let lines = lines(frame, look, usize::from(area.width));
    let room = usize::from(area.height.saturating_sub(1));
    let from = view.scroll.min(lines.len().saturating_sub(room));
    let area = Rect { height: area.height.saturating_sub(1), ..area };
    for (row, line) in area.rows().zip(lines.iter().skip(from)) {
        line.put(to, row.x, row.y, row.width);
    }
}

fn lines(frame: &WatchFrame, look: ScreenStyle, columns: usize) -> Vec<ScreenLine> {
    let mut lines = Vec::new();
    let title = |lines: &mut Vec<ScreenLine>, text: &str| {
        let mut line = ScreenLine::new(look);
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
fn entry(lines: &mut Vec<ScreenLine>, look: ScreenStyle, columns: usize, name: &str, text: &str) {
    const INDENT: usize = 28;
    let indent = if columns >= 70 { INDENT } else { 4 };
    let text = text::harmless_line(text);
    let room = columns.saturating_sub(indent).max(10);
    let mut line = ScreenLine::new(look);
    line.text("  ").bold(name);
    let used = 2 + width(name);
    if used < indent {
        line.text(&" ".repeat(indent - used));
    } else {
        lines.push(std::mem::replace(&mut line, ScreenLine::new(look)));
        line.text(&" ".repeat(indent));
    }
    let mut filled = 0;
    for word in text.split(' ') {
        if filled > 0 && filled + 1 + width(word) > room {
            lines.push(std::mem::replace(&mut line, ScreenLine::new(look)));
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

// One spike in full: the picture that `explain` prints, on the screen.

/// Most columns: longer lines are hard to read, and lanes need not be longer.
const WIDTH_MAX: usize = 160;

/// Draws a spike as lines for a screen of so many columns.
pub fn picture(
    of: &Explanation,
    window: Option<&Window>,
    columns: u16,
    look: ScreenStyle,
) -> Vec<StyledLine> {
    let glyphs = if look.unicode { Glyphs::BLOCKS } else { Glyphs::ASCII };
    let columns = usize::from(columns).clamp(WIDTH_MIN, WIDTH_MAX);
    let mut sheet = Terminal::new(columns, glyphs);
    // A sheet is memory: writing does not fail.
    let _ = explanation(&mut sheet, of, window);
    let mut style = Style::new();
    sheet.shown().lines().map(|line| drawn(line, &mut style, look)).collect()
}

/// Takes the colours of a line apart. Sequences of others were written out by the sheet, so each is
/// one of ours.
fn drawn(line: &str, style: &mut Style, look: ScreenStyle) -> StyledLine {
    let mut parts = line.split('\u{1b}');
    let mut drawn: StyledLine = Vec::new();
    drawn.extend(parts.next().filter(|text| !text.is_empty()).map(|text| (text.into(), *style)));
    for part in parts {
        let (codes, text) =
            part.strip_prefix('[').and_then(|part| part.split_once('m')).unwrap_or(("", part));
        codes.split(';').for_each(|code| *style = styled(*style, code, look));
        if !text.is_empty() {
            drawn.push((text.replace('\t', " "), *style));
        }
    }
    drawn
}

/// What a code of a sequence changes (ECMA-48, SGR).
fn styled(style: Style, code: &str, look: ScreenStyle) -> Style {
    const COLOURS: [Color; 8] = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
    ];
    match code.parse::<usize>() {
        Ok(0) => Style::new(),
        Ok(1) => style.add_modifier(Modifier::BOLD),
        Ok(2) => style.add_modifier(Modifier::DIM),
        Ok(code @ 30..=37) if look.colours => style.fg(COLOURS[code - 30]),
        // Bright ones are not readable on every background: the plain ones are.
        Ok(code @ 90..=97) if look.colours => style.fg(COLOURS[code - 90]),
        _ => style,
    }
}

/// Draws the lines from the one that is scrolled to.
pub(super) fn draw_picture(
    lines: &[StyledLine],
    view: &ScreenView,
    _: ScreenStyle,
    to: &mut Buffer,
) {
    let area = to.area;
    let room = usize::from(area.height.saturating_sub(1));
    let from = view.scroll.min(lines.len().saturating_sub(room));
    for (y, line) in (area.y..).zip(lines.iter().skip(from).take(room)) {
        let mut x = area.x;
        for (text, style) in line {
            if x >= area.right() {
                break;
            }
            (x, _) = to.set_stringn(x, y, text, usize::from(area.right() - x), *style);
        }
    }
}
