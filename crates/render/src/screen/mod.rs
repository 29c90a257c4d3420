//! The live view as a picture of cells: a frame and what the user has chosen go in, a buffer comes
//! out. No terminal, no clock: the same in a test as on a screen.

mod cells;
mod cpus;
mod latency;
#[cfg(test)]
mod tests;

pub use cells::{picture, time};

use std::{cmp::Reverse, fmt::Write as _};

use cells::{ScreenLine, shown};
use ratatui_core::{
    buffer::Buffer,
    layout::Rect,
    style::{Color, Modifier, Style},
};

use rtproof_host::{CpuList, text};
use rtproof_judge::units;
use rtproof_results::watch::{
    ThreadLatency, WatchCpu, WatchFrame, WatchSourceKind, WatchSpike, WatchTask,
};

/// Fewest columns and lines that anything is drawn on.
pub const COLUMNS_MIN: u16 = 40;

pub const LINES_MIN: u16 = 10;

/// Draws the view over all of a buffer.
pub fn draw(frame: &WatchFrame, view: &ScreenView, look: ScreenStyle, to: &mut Buffer) {
    let area = to.area;
    to.reset();
    if area.is_empty() {
        return;
    }
    if area.width < COLUMNS_MIN || area.height < LINES_MIN {
        let text = format!("rtproof watch needs {COLUMNS_MIN} columns and {LINES_MIN} lines");
        ScreenLine::new(look).text(&text).put(to, area.x, area.y, area.width);
    } else {
        match &view.page {
            ScreenPage::Main => main(frame, view, look, to),
            ScreenPage::Help => cells::draw_help(frame, view, look, to),
            ScreenPage::Picture(lines) => cells::draw_picture(lines, view, look, to),
        }
        footer(frame, view, look, to);
    }
    look.finish(to);
}

/// A frame as text, all rows of it: what `--once` prints.
pub fn once(frame: &WatchFrame, columns: u16, look: ScreenStyle) -> String {
    let area = Rect::new(0, 0, columns.max(COLUMNS_MIN), height(frame));
    let mut buffer = Buffer::empty(area);
    main(frame, &ScreenView::of_text(), look, &mut buffer);
    let mut text = text(&{
        look.finish(&mut buffer);
        buffer
    });
    for why in &frame.unknown {
        let _ = writeln!(text, "? {}", text::harmless_line(why));
    }
    text
}

/// Text of a buffer, without colours and trailing spaces.
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

fn main(frame: &WatchFrame, view: &ScreenView, look: ScreenStyle, to: &mut Buffer) {
    let regions = regions(frame, view, to.area);
    title(frame, view, look, to);
    if let Some(area) = regions.latency {
        latency::draw_latency(frame, view, look, area, to);
    }
    if let Some(area) = regions.histogram {
        latency::draw_histogram(frame, look, area, to);
    }
    cpus::draw_cpus(frame, view, look, regions.cpus, to);
    if let Some(area) = regions.spikes {
        latency::draw_spikes(frame, view, look, area, to);
    }
    cpus::draw_tasks(frame, view, look, regions.tasks, to);
}

/// Two lines: the machine, and what is measured.
fn title(frame: &WatchFrame, view: &ScreenView, look: ScreenStyle, to: &mut Buffer) {
    let area = to.area;
    let or_unknown = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".into());
    let mut line = ScreenLine::new(look);
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

fn source(frame: &WatchFrame, look: ScreenStyle) -> ScreenLine {
    let source = &frame.source;
    let mut line = ScreenLine::new(look);
    match source.kind {
        WatchSourceKind::Passive => line.text("passive: measures nothing"),
        WatchSourceKind::Measuring => line.bold("measures ").text(&source.about),
        WatchSourceKind::Record => line.bold("follows ").text(&source.about),
        WatchSourceKind::Application => line.bold("observes ").text(&source.about),
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
fn footer(frame: &WatchFrame, view: &ScreenView, look: ScreenStyle, to: &mut Buffer) {
    let area = to.area;
    let mut line = ScreenLine::new(look);
    match (&view.input, &view.message) {
        (Some(TypedInput::Filter(text)), _) => {
            line.bold("CPUs to show (e.g. 0-3,8; empty: all): ").text(text).text("_");
        }
        (Some(TypedInput::Mark(text)), _) => {
            line.bold("Note for this moment: ").text(text).text("_");
        }
        (None, Some(message)) => {
            line.warn(message);
        }
        (None, None) => keys(frame, view, &mut line),
    }
    line.put(to, area.x, area.bottom() - 1, area.width);
}

fn keys(frame: &WatchFrame, view: &ScreenView, line: &mut ScreenLine) {
    let keys: &[(&str, &str)] = match view.page {
        ScreenPage::Main if frame.source.kind == WatchSourceKind::Passive => &[
            ("?", "help"),
            ("q", "quit"),
            ("Tab", "panel"),
            ("<>", "sort"),
            ("space", "freeze"),
            ("/", "CPUs"),
            ("m", "mark"),
        ],
        ScreenPage::Main => &[
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
        ScreenPage::Help | ScreenPage::Picture(_) => {
            &[("Esc", "back"), ("arrows", "scroll"), ("q", "quit")]
        }
    };
    for (key, what) in keys {
        line.bold(key).text(" ").dim(what).text("  ");
    }
}

// Position of each panel: for drawing, and for mouse clicks.

/// Lines of the title, and of the keys.
const TITLE: u16 = 2;

const FOOTER: u16 = 1;

/// Fewest and most lines of a histogram, with its axis.
const HISTOGRAM: (u16, u16) = (5, 12);

/// Rows that a list is worth at least.
const LIST_MIN: u16 = 4;

/// The panels of the main page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regions {
    pub latency: Option<Rect>,
    pub histogram: Option<Rect>,
    /// CPUs; its last line is about the chosen one.
    pub cpus: Rect,
    /// Spikes; its last line is about the chosen one.
    pub spikes: Option<Rect>,
    pub tasks: Rect,
}

/// A row of a panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PanelRow {
    pub panel: Panel,
    /// Row of its list; `None`: its head or another line.
    pub row: Option<usize>,
}

/// Lines that all of a frame takes.
fn height(frame: &WatchFrame) -> u16 {
    let lines = |n: usize| u16::try_from(n.min(500)).unwrap_or(500);
    let tasks = frame.tasks.as_ref().map_or(1, Vec::len);
    let all = frame.cpus.len() + tasks + 6;
    let measured = frame.latencies.len() + frame.spikes.len().max(1) + 4;
    let measured = if frame.source.kind == WatchSourceKind::Passive { 0 } else { measured };
    let histogram = if frame.histogram.is_empty() { 0 } else { HISTOGRAM.1 };
    TITLE + FOOTER + lines(all) + lines(measured) + histogram
}

/// Shares the lines of a screen out.
pub fn regions(frame: &WatchFrame, view: &ScreenView, area: Rect) -> Regions {
    let lines = |n: usize| u16::try_from(n).unwrap_or(u16::MAX);
    let mut left = area.height.saturating_sub(TITLE + FOOTER);
    let mut y = area.y + TITLE;
    let mut take = |height: u16| {
        let rect = Rect::new(area.x, y, area.width, height);
        y += height;
        rect
    };
    let all_cpus = lines(view.cpus(frame).len()).saturating_add(2);
    let all_tasks = lines(view.tasks(frame).len().max(1)).saturating_add(1);
    if frame.source.kind == WatchSourceKind::Passive {
        let most = left.saturating_sub(LIST_MIN.min(all_tasks)).max(left / 2);
        let cpus = all_cpus.min(most);
        left -= cpus;
        return Regions {
            latency: None,
            histogram: None,
            cpus: take(cpus),
            spikes: None,
            tasks: take(left),
        };
    }
    let quarter = left / 4;
    let latency = lines(view.latencies(frame).len().max(1)).saturating_add(1).min(quarter.max(2));
    let cpus = all_cpus.min(quarter.max(3));
    left -= latency + cpus;
    let spare = left.saturating_sub(2 * LIST_MIN);
    let histogram = match frame.histogram.is_empty() {
        false if spare >= HISTOGRAM.0 => spare.min(HISTOGRAM.1).min((left / 3).max(HISTOGRAM.0)),
        _ => 0,
    };
    left -= histogram;
    let wanted = lines(view.spikes(frame).len().max(1)).saturating_add(2);
    let spikes = wanted.max(left.saturating_sub(all_tasks)).min(left - left / 3);
    left -= spikes;
    Regions {
        latency: Some(take(latency)),
        histogram: (histogram > 0).then(|| take(histogram)),
        cpus: take(cpus),
        spikes: Some(take(spikes)),
        tasks: take(left),
    }
}

/// Panel and row at a position of the screen.
pub fn panel_row_at(
    frame: &WatchFrame,
    view: &ScreenView,
    area: Rect,
    x: u16,
    y: u16,
) -> Option<PanelRow> {
    let regions = regions(frame, view, area);
    let lists = [
        (Panel::Latency, regions.latency, view.latencies(frame).len(), 1),
        (Panel::Cpus, Some(regions.cpus), view.cpus(frame).len(), 2),
        (Panel::Spikes, regions.spikes, view.spikes(frame).len(), 2),
        (Panel::Tasks, Some(regions.tasks), view.tasks(frame).len(), 1),
    ];
    let inside = |rect: &Rect| rect.contains((x, y).into());
    lists.into_iter().find_map(|(panel, rect, all, extra)| {
        let rect = rect.filter(inside)?;
        let lines = usize::from(rect.height.saturating_sub(extra));
        let range = shown(all, view.row(frame, panel), lines);
        let row = usize::from(y - rect.y).checked_sub(1).map(|line| range.start + line);
        Some(PanelRow { panel, row: row.filter(|row| range.contains(row)) })
    })
}

// What a terminal can show: colours of its own palette, which it keeps readable on its own
// background, and characters.

/// A line: words with their styles.
pub type StyledLine = Vec<(String, Style)>;

/// What the terminal can show: colours, Unicode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScreenStyle {
    /// Whether colours are shown; without, bold and reverse remain.
    pub colours: bool,
    /// Whether anything but ASCII is shown.
    pub unicode: bool,
}

impl ScreenStyle {
    pub const FULL: Self = Self { colours: true, unicode: true };

    const fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    const fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// The row that is chosen.
    const fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    const fn bad(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    const fn warn(self) -> Style {
        self.coloured(Color::Yellow)
    }

    const fn good(self) -> Style {
        self.coloured(Color::Green)
    }

    const fn coloured(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    /// Bars of eight heights, the lowest first.
    const fn heights(self) -> [char; 8] {
        if self.unicode {
            ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
        } else {
            ['_', '.', ',', '-', '=', '+', '*', '#']
        }
    }

    /// Idle states, shallow, between and deep; and time that was not idle.
    const fn shades(self) -> [char; 4] {
        if self.unicode { ['▓', '▒', '░', '█'] } else { ['=', '-', '.', '#'] }
    }

    /// Puts only what the terminal can show.
    fn finish(self, to: &mut Buffer) {
        if self.unicode {
            return;
        }
        for cell in &mut to.content {
            if !cell.symbol().is_ascii() {
                let plain = match cell.symbol() {
                    "µ" => "u",
                    "\u{202f}" | "°" => " ",
                    "–" | "─" | "−" => "-",
                    "│" | "┤" | "├" | "▏" => "|",
                    "→" | "▸" => ">",
                    "█" => "#",
                    "×" => "x",
                    _ => "?",
                };
                cell.set_symbol(plain);
            }
        }
    }
}

// What the user has chosen: panel, row, order, filter, page. Keys change it; nothing else does.

/// Which page the screen of `watch` shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ScreenPage {
    #[default]
    Main,
    /// Keys, and what the numbers are.
    Help,
    Picture(Vec<StyledLine>),
}

/// A part of the main page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Panel {
    Latency,
    #[default]
    Cpus,
    Spikes,
    Tasks,
}

/// A text that is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypedInput {
    /// Numbers of the CPUs to show.
    Filter(String),
    /// A note for a moment.
    Mark(String),
}

/// What the user has chosen to see on the screen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScreenView {
    pub page: ScreenPage,
    /// Panel that keys move in.
    pub panel: Panel,
    /// First line of a page that scrolls.
    pub scroll: usize,
    /// CPUs that are shown; `None`: all.
    pub filter: Option<CpuList>,
    /// Whether the picture is frozen.
    pub frozen: bool,
    /// What is being typed.
    pub input: Option<TypedInput>,
    /// An answer in the last line, until the next key.
    pub message: Option<String>,
    /// Whether it is text and not a screen: nothing is chosen.
    is_text: bool,
    rows: [usize; 4],
    orders: [usize; 4],
    /// The chosen spike: the list moves on under it.
    spike: Option<(u32, u64)>,
}

/// Orders of each panel.
const ORDERS: [&[&str]; 4] = [
    &["by thread", "by worst", "by worst of the minute", "by missed"],
    &["by number", "by busy", "by interrupts", "by switches"],
    &["newest first", "worst first"],
    &["by CPU", "by priority", "by share"],
];

impl ScreenView {
    /// Of a page of text.
    fn of_text() -> Self {
        Self { is_text: true, ..Self::default() }
    }

    /// The order of a panel in words.
    pub fn order(&self, panel: Panel) -> &'static str {
        ORDERS[panel as usize][self.orders[panel as usize]]
    }

    /// The next order of the panel, or the one before.
    pub fn sort(&mut self, forward: bool) {
        let at = self.panel as usize;
        let all = ORDERS[at].len();
        self.orders[at] = (self.orders[at] + if forward { 1 } else { all - 1 }) % all;
        self.message = Some(format!("Sorted {}.", self.order(self.panel)));
    }

    /// The next panel that the frame has.
    pub fn next_panel(&mut self, frame: &WatchFrame, forward: bool) {
        let panels = panels(frame);
        let at = panels.iter().position(|&panel| panel == self.panel).unwrap_or(0);
        let step = if forward { 1 } else { panels.len() - 1 };
        self.panel = panels[(at + step) % panels.len()];
    }

    /// Chooses a panel and one of its rows.
    pub fn choose(&mut self, frame: &WatchFrame, panel: Panel, row: usize) {
        self.panel = panel;
        let last = self.len(frame, panel).saturating_sub(1);
        self.rows[panel as usize] = row.min(last);
        if panel == Panel::Spikes {
            let spikes = self.spikes(frame);
            self.spike = spikes.get(row.min(last)).map(|spike| (spike.thread, spike.due_ns));
        }
    }

    /// Moves by some rows, down where it is positive; scrolls the pages that scroll.
    pub fn step(&mut self, frame: &WatchFrame, by: isize) {
        if self.page == ScreenPage::Main {
            let row = self.row(frame, self.panel).saturating_add_signed(by);
            self.choose(frame, self.panel, row);
        } else {
            self.scroll = self.scroll.saturating_add_signed(by).min(10_000);
        }
    }

    /// The first row, where new spikes come in.
    pub fn home(&mut self, frame: &WatchFrame) {
        self.choose(frame, self.panel, 0);
        self.scroll = 0;
        self.spike = None;
    }

    /// The row that is chosen in a panel.
    pub fn row(&self, frame: &WatchFrame, panel: Panel) -> usize {
        let row = match (panel, self.spike) {
            (Panel::Spikes, None) => 0,
            (Panel::Spikes, Some(key)) => {
                let is = |spike: &&WatchSpike| (spike.thread, spike.due_ns) == key;
                self.spikes(frame).iter().position(is).unwrap_or(0)
            }
            _ => self.rows[panel as usize],
        };
        row.min(self.len(frame, panel).saturating_sub(1))
    }

    /// CPU of the row that is chosen, among latencies and CPUs.
    pub fn chosen_cpu(&self, frame: &WatchFrame) -> Option<u32> {
        let row = self.row(frame, self.panel);
        match self.panel {
            Panel::Latency => self.latencies(frame).get(row)?.cpu,
            Panel::Cpus => Some(self.cpus(frame).get(row)?.cpu),
            Panel::Spikes | Panel::Tasks => None,
        }
    }

    fn len(&self, frame: &WatchFrame, panel: Panel) -> usize {
        match panel {
            Panel::Latency => self.latencies(frame).len(),
            Panel::Cpus => self.cpus(frame).len(),
            Panel::Spikes => self.spikes(frame).len(),
            Panel::Tasks => self.tasks(frame).len(),
        }
    }

    fn shows(&self, cpu: u32) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.contains(cpu))
    }

    /// Latencies that are shown, in their order.
    fn latencies<'f>(&self, frame: &'f WatchFrame) -> Vec<&'f ThreadLatency> {
        let all = frame.latencies.iter();
        let mut rows: Vec<&ThreadLatency> =
            all.filter(|of| of.cpu.is_none_or(|cpu| self.shows(cpu))).collect();
        match self.orders[Panel::Latency as usize] {
            1 => rows.sort_by_key(|of| Reverse(of.max_ns)),
            2 => rows.sort_by_key(|of| Reverse(of.minute_ns)),
            3 => rows.sort_by_key(|of| Reverse(of.missed)),
            _ => {}
        }
        rows
    }

    /// CPUs that are shown, in their order.
    fn cpus<'f>(&self, frame: &'f WatchFrame) -> Vec<&'f WatchCpu> {
        let mut rows: Vec<&WatchCpu> = frame.cpus.iter().filter(|of| self.shows(of.cpu)).collect();
        match self.orders[Panel::Cpus as usize] {
            1 => rows.sort_by_key(|of| Reverse(of.busy_permille)),
            2 => rows.sort_by_key(|of| Reverse(of.interrupts.as_ref().map(|rate| rate.per_s))),
            3 => rows.sort_by_key(|of| Reverse(of.switches_per_s)),
            _ => {}
        }
        rows
    }

    /// Spikes that are shown, in their order.
    pub fn spikes<'f>(&self, frame: &'f WatchFrame) -> Vec<&'f WatchSpike> {
        let mut rows: Vec<&WatchSpike> =
            frame.spikes.iter().filter(|of| self.shows(of.cpu)).collect();
        if self.orders[Panel::Spikes as usize] == 1 {
            rows.sort_by_key(|of| Reverse(of.latency_ns));
        }
        rows
    }

    /// Tasks that are shown, in their order.
    fn tasks<'f>(&self, frame: &'f WatchFrame) -> Vec<&'f WatchTask> {
        let all = frame.tasks.iter().flatten();
        let mut rows: Vec<&WatchTask> = all.filter(|of| self.shows(of.cpu)).collect();
        match self.orders[Panel::Tasks as usize] {
            1 => rows.sort_by_key(|of| (of.outranked, Reverse(of.priority), of.tid)),
            2 => rows.sort_by_key(|of| (Reverse(of.share_permille), of.tid)),
            _ => rows.sort_by_key(|of| (of.cpu, of.outranked, of.tid)),
        }
        rows
    }
}

/// Panels that a frame has.
fn panels(frame: &WatchFrame) -> Vec<Panel> {
    let is_measured = frame.source.kind != WatchSourceKind::Passive;
    let all = [Panel::Latency, Panel::Cpus, Panel::Spikes, Panel::Tasks];
    let has = |panel: &Panel| is_measured || matches!(panel, Panel::Cpus | Panel::Tasks);
    all.into_iter().filter(has).collect()
}
