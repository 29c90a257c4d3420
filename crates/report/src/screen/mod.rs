//! The live view as a picture of cells: a frame and what the user has chosen go in, a buffer comes
//! out. No terminal, no clock: the same in a test as on a screen.

mod cells;
mod cpus;
mod help;
mod histogram;
mod latency;
mod layout;
mod look;
mod picture;
mod spikes;
mod tasks;
#[cfg(test)]
mod tests;
mod view;

use std::fmt::Write as _;

use ratatui_core::{buffer::Buffer, layout::Rect};
use rtproof_host::harmless;
use rtproof_judge::units;
use rtproof_results::watch::{Frame, Kind};

use self::cells::Line;

pub use self::{
    cells::time,
    layout::{Place, Regions, place, regions},
    look::{Drawn, Look},
    picture::picture,
    view::{Input, Page, Panel, View},
};

/// Fewest columns and lines that anything is drawn on.
pub const COLUMNS_MIN: u16 = 40;
pub const LINES_MIN: u16 = 10;

/// Draws the view over all of a buffer.
pub fn draw(frame: &Frame, view: &View, look: Look, to: &mut Buffer) {
    let area = to.area;
    to.reset();
    if area.is_empty() {
        return;
    }
    if area.width < COLUMNS_MIN || area.height < LINES_MIN {
        let text = format!("rtproof watch needs {COLUMNS_MIN} columns and {LINES_MIN} lines");
        Line::new(look).text(&text).put(to, area.x, area.y, area.width);
    } else {
        match &view.page {
            Page::Main => main(frame, view, look, to),
            Page::Help => help::draw(frame, view, look, to),
            Page::Picture(lines) => picture::draw(lines, view, look, to),
        }
        footer(frame, view, look, to);
    }
    look.finish(to);
}

/// A frame as text, all rows of it: what `--once` prints.
pub fn once(frame: &Frame, columns: u16, look: Look) -> String {
    let area = Rect::new(0, 0, columns.max(COLUMNS_MIN), layout::height(frame));
    let mut buffer = Buffer::empty(area);
    main(frame, &View::of_text(), look, &mut buffer);
    let mut text = text(&{
        look.finish(&mut buffer);
        buffer
    });
    for why in &frame.unknown {
        let _ = writeln!(text, "? {}", harmless::line(why));
    }
    text
}

/// What stands in a buffer, without colours and trailing spaces.
pub fn text(buffer: &Buffer) -> String {
    let mut text = String::new();
    for y in buffer.area.rows().map(|row| row.y) {
        let mut line = String::new();
        let mut covered = 0;
        for x in buffer.area.left()..buffer.area.right() {
            // The cell behind a wide character is a part of it.
            if covered > 0 {
                covered -= 1;
                continue;
            }
            let symbol = buffer[(x, y)].symbol();
            covered = cells::width(symbol).saturating_sub(1);
            line.push_str(symbol);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    let end = text.trim_end().len();
    text.truncate(end);
    text.push('\n');
    text
}

fn main(frame: &Frame, view: &View, look: Look, to: &mut Buffer) {
    let regions = regions(frame, view, to.area);
    title(frame, view, look, to);
    if let Some(area) = regions.latency {
        latency::draw(frame, view, look, area, to);
    }
    if let Some(area) = regions.histogram {
        histogram::draw(frame, look, area, to);
    }
    cpus::draw(frame, view, look, regions.cpus, to);
    if let Some(area) = regions.spikes {
        spikes::draw(frame, view, look, area, to);
    }
    tasks::draw(frame, view, look, regions.tasks, to);
}

/// Two lines: the machine, and what is measured.
fn title(frame: &Frame, view: &View, look: Look, to: &mut Buffer) {
    let area = to.area;
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".into());
    let mut line = Line::new(look);
    line.bold("rtproof").text("  ").text(&or_unknown(&frame.host));
    line.text("  Linux ").text(&or_unknown(&frame.kernel)).text("  ");
    line.text(&time(frame.at_realtime_ns)).text(" UTC");
    if view.frozen {
        line.text("  ").bad("FROZEN (space goes on)");
    }
    if let Some(filter) = &view.filter {
        line.text("  ").warn(&format!("CPUs {filter}"));
    }
    let switches = frame.context_switches_per_s.map_or("?".into(), units::grouped);
    line.text(&format!("  {switches} switches/s"));
    let temp = frame.temp_max_mc.map_or("?".into(), |mc| format!("{:.1}", mc as f64 / 1000.0));
    line.text(&format!("  {temp} °C"));
    line.put(to, area.x, area.y, area.width);
    source(frame, look).put(to, area.x, area.y + 1, area.width);
}

fn source(frame: &Frame, look: Look) -> Line {
    let source = &frame.source;
    let mut line = Line::new(look);
    match source.kind {
        Kind::Passive => line.text("passive: measures nothing"),
        Kind::Measuring => line.bold("measures ").text(&source.about),
        Kind::Record => line.bold("follows ").text(&source.about),
        Kind::Application => line.bold("observes ").text(&source.about),
    };
    if let Some(ended) = &source.ended {
        line.text("  ").warn(ended);
    }
    if let Some(load) = &source.load {
        line.text("  load ").text(load);
    }
    if let Some(budget_ns) = frame.budget_ns {
        line.text(&format!("  budget {}", units::ns(budget_ns)));
    }
    line
}

/// The last line: keys, a question, or an answer.
fn footer(frame: &Frame, view: &View, look: Look, to: &mut Buffer) {
    let area = to.area;
    let mut line = Line::new(look);
    match (&view.input, &view.message) {
        (Some(Input::Filter(text)), _) => {
            line.bold("CPUs to show (e.g. 0-3,8; empty: all): ").text(text).text("_");
        }
        (Some(Input::Mark(text)), _) => {
            line.bold("Note for this moment: ").text(text).text("_");
        }
        (None, Some(message)) => {
            line.warn(message);
        }
        (None, None) => keys(frame, view, &mut line),
    }
    line.put(to, area.x, area.bottom() - 1, area.width);
}

fn keys(frame: &Frame, view: &View, line: &mut Line) {
    let keys: &[(&str, &str)] = match view.page {
        Page::Main if frame.source.kind == Kind::Passive => &[
            ("?", "help"),
            ("q", "quit"),
            ("Tab", "panel"),
            ("<>", "sort"),
            ("space", "freeze"),
            ("/", "CPUs"),
            ("m", "mark"),
        ],
        Page::Main => &[
            ("?", "help"),
            ("q", "quit"),
            ("Tab", "panel"),
            ("<>", "sort"),
            ("Enter", "open"),
            ("space", "freeze"),
            ("r", "reset"),
            ("l", "load"),
            ("m", "mark"),
            ("/", "CPUs"),
            ("s", "record"),
        ],
        Page::Help | Page::Picture(_) => &[("Esc", "back"), ("arrows", "scroll"), ("q", "quit")],
    };
    for (key, what) in keys {
        line.bold(key).text(" ").dim(what).text("  ");
    }
}
