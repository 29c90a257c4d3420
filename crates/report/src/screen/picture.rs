//! One spike in full: the picture that `explain` prints, on the screen.

use ratatui_core::{
    buffer::Buffer,
    style::{Color, Modifier, Style},
};
use rtproof_judge::causes::Explanation;
use rtproof_trace::Window;

use super::{Look, look::Drawn, view::View};
use crate::text::{Glyphs, Sheet, WIDTH_MIN, explanation};

/// Most columns: longer lines are hard to read, and lanes need not be longer.
const WIDTH_MAX: usize = 160;

/// Draws a spike as lines for a screen of so many columns.
pub fn picture(of: &Explanation, window: Option<&Window>, columns: u16, look: Look) -> Vec<Drawn> {
    let glyphs = if look.unicode { Glyphs::BLOCKS } else { Glyphs::ASCII };
    let columns = usize::from(columns).clamp(WIDTH_MIN, WIDTH_MAX);
    let mut sheet = Sheet::new(columns, glyphs);
    // A sheet is memory: writing does not fail.
    let _ = explanation(&mut sheet, of, window);
    let mut style = Style::new();
    sheet.shown().lines().map(|line| drawn(line, &mut style, look)).collect()
}

/// Takes the colours of a line apart. Sequences of others were written out by the sheet, so each is
/// one of ours.
fn drawn(line: &str, style: &mut Style, look: Look) -> Drawn {
    let mut parts = line.split('\u{1b}');
    let mut drawn: Drawn = Vec::new();
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
fn styled(style: Style, code: &str, look: Look) -> Style {
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
pub(super) fn draw(lines: &[Drawn], view: &View, _: Look, to: &mut Buffer) {
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
