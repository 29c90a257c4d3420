//! Lines of styled words, columns, and how numbers stand in them. Words of others pass
//! [`harmless::line`] here, all of them.

use jiff::{Timestamp, tz::TimeZone};
use ratatui_core::{buffer::Buffer, layout::Rect, style::Style, text::Span};
use rtproof_host::harmless;
use rtproof_judge::units;

use super::{Look, view::View};

/// Words in a line, each with its style.
#[derive(Clone, Debug)]
pub(super) struct Line {
    look: Look,
    parts: Vec<(String, Style)>,
}

impl Line {
    pub(super) const fn new(look: Look) -> Self {
        Self { look, parts: Vec::new() }
    }

    pub(super) fn styled(&mut self, text: &str, style: Style) -> &mut Self {
        self.parts.push((harmless::line(text), style));
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

/// A column of a table: title, columns, whether numbers stand in it (at the right).
#[derive(Clone, Copy, Debug)]
pub(super) struct Column {
    pub(super) title: &'static str,
    pub(super) columns: u16,
    pub(super) is_number: bool,
}

pub(super) const fn number(title: &'static str, columns: u16) -> Column {
    Column { title, columns, is_number: true }
}

pub(super) const fn words(title: &'static str, columns: u16) -> Column {
    Column { title, columns, is_number: false }
}

/// A cell: text and style.
pub(super) type Cell = (String, Style);

/// A cell without a style.
pub(super) fn plain(text: impl Into<String>) -> Cell {
    (text.into(), Style::new())
}

/// Draws a row of cells below their columns.
pub(super) fn row(to: &mut Buffer, at: (u16, u16), end: u16, columns: &[Column], cells: &[Cell]) {
    let (mut x, y) = at;
    for (column, (text, style)) in columns.iter().zip(cells) {
        let room = column.columns.min(end.saturating_sub(x));
        if room == 0 {
            break;
        }
        let text = cut(&harmless::line(text), room);
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
    look: Look,
    is_focused: bool,
    title: &str,
    columns: &[Column],
) {
    let style = if is_focused { look.bold() } else { look.dim() };
    let cells: Vec<Cell> = columns.iter().map(|column| (column.title.to_owned(), style)).collect();
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
pub(super) fn choose(to: &mut Buffer, area: Rect, y: u16, look: Look, view: &View) {
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
