//! A late wake-up as a few rows of characters: its causes as blocks with their letters and names,
//! below them tasks, interrupts, softirqs, lost stretches and the steps of the wake-up.

use std::io::{self, Write};

use anstyle::AnsiColor;

use rtproof_host::text;
use rtproof_judge::causes::{CauseKind, Explanation, kind};
use rtproof_trace::Window;

use crate::spike::{self, Axis, Bar, Lanes, Piece, bars, longest, patterns, widths};
use crate::text::{BOLD, DIM, Glyphs, TextStyle, WARN};

/// Columns before the rows: indent and the name of the row.
const MARGIN: usize = 8;

/// Most bars: beyond, they are merged to columns.
const BARS_MAX: usize = 400;

/// Least columns of a share.
const LEAST: f64 = 2.0;

/// The blocks of the shares.
pub(crate) fn blocks_of(glyphs: &Glyphs, explanation: &Explanation) -> Vec<char> {
    let shares = explanation.shares.len();
    let patterns = patterns(&bars(explanation, BARS_MAX), shares, glyphs.blocks.len());
    patterns.into_iter().map(|pattern| glyphs.blocks[pattern]).collect()
}

/// The letter of a share: the largest is A.
pub(crate) fn letter(share: usize) -> char {
    u8::try_from(share).ok().filter(|n| *n < 26).map_or('·', |n| char::from(b'A' + n))
}

/// The colour of a cause.
pub(crate) fn style(cause: &str) -> TextStyle {
    let colour = match kind(cause) {
        CauseKind::Interrupt => AnsiColor::Blue,
        CauseKind::Scheduling => AnsiColor::Red,
        CauseKind::Softirq => AnsiColor::Green,
        CauseKind::Hardware => AnsiColor::Magenta,
        CauseKind::Throttling => AnsiColor::Yellow,
        CauseKind::Blocking => AnsiColor::BrightMagenta,
        CauseKind::Power => AnsiColor::Cyan,
        CauseKind::Own => AnsiColor::BrightBlue,
        CauseKind::Unknown => return DIM,
    };
    TextStyle::of(colour)
}

/// Columns of the plot; times are placed on their edges.
struct Plot<'a> {
    explanation: &'a Explanation,
    bars: Vec<Bar>,
    axis: Axis,
    columns: usize,
    is_even: bool,
    glyphs: Glyphs,
}

impl<'a> Plot<'a> {
    fn of(explanation: &'a Explanation, columns: usize, glyphs: Glyphs) -> Self {
        let bars = bars(explanation, BARS_MAX);
        let mut least = vec![0.0; bars.len()];
        for bar in longest(&bars, explanation.shares.len()).into_iter().flatten() {
            least[bar] = LEAST;
        }
        let durations: Vec<u64> = bars.iter().map(Bar::ns).collect();
        let all_ns = explanation.wake.latency_ns().max(1) as f64;
        let is_even = durations
            .iter()
            .zip(&least)
            .all(|(ns, least)| *ns as f64 / all_ns * columns as f64 >= *least);
        let mut at = 0.0;
        let mut knots = vec![(explanation.wake.due_ns, 0.0)];
        for (bar, width) in bars.iter().zip(widths(&durations, &least, columns as f64)) {
            at += width;
            knots.push((bar.to_ns, at));
        }
        knots.dedup_by_key(|knot| knot.0);
        Self { explanation, bars, axis: Axis::through(knots), columns, is_even, glyphs }
    }

    fn column(&self, at_ns: u64) -> usize {
        (self.axis.at(at_ns).round().max(0.0) as usize).min(self.columns)
    }

    /// First column and the one after the last, for a stretch that is to be seen if it can.
    fn columns_of(&self, from_ns: u64, to_ns: u64) -> (usize, usize) {
        let from = self.column(from_ns).min(self.columns.saturating_sub(1));
        (from, self.column(to_ns).max(from + 1).min(self.columns))
    }
}

/// A row under way: characters with their colours.
struct Row {
    cells: Vec<(char, TextStyle)>,
}

impl Row {
    fn new(columns: usize) -> Self {
        Self { cells: vec![(' ', TextStyle::PLAIN); columns] }
    }

    fn fill(&mut self, (from, to): (usize, usize), with: char, style: TextStyle) {
        let cells = self.cells.iter_mut().take(to).skip(from);
        cells.for_each(|cell| *cell = (with, style));
    }

    /// A text from a column, cut at `to`.
    fn text(&mut self, text: &str, (from, to): (usize, usize), style: TextStyle) {
        let fitted = fitted(text, to.saturating_sub(from));
        let cells = self.cells.iter_mut().take(to).skip(from);
        cells.zip(fitted.chars()).for_each(|(cell, c)| *cell = (c, style));
    }

    fn is_free(&self, from: usize, to: usize) -> bool {
        let mut cells = self.cells.iter().take(to).skip(from);
        to <= self.cells.len() && cells.all(|cell| cell.0 == ' ')
    }

    fn write(&self, to: &mut dyn Write, name: &str) -> io::Result<()> {
        write!(to, "  {DIM}{name:<width$}{DIM:#}", width = MARGIN - 2)?;
        let used = self.cells.iter().rposition(|cell| cell.0 != ' ').map_or(0, |last| last + 1);
        let mut rest = &self.cells[..used];
        while let Some((_, style)) = rest.first() {
            let length = rest.iter().take_while(|cell| cell.1 == *style).count();
            let text: String = rest[..length].iter().map(|cell| cell.0).collect();
            write!(to, "{style}{text}{style:#}")?;
            rest = &rest[length..];
        }
        writeln!(to)
    }
}

/// A text cut to so many columns.
pub(crate) fn fitted(text: &str, columns: usize) -> String {
    let text = text::harmless_line(text);
    match text.chars().count() <= columns {
        true => text,
        false => text.chars().take(columns.saturating_sub(1)).chain(['…']).take(columns).collect(),
    }
}

/// Writes the timeline, `columns` wide with its margin.
pub(crate) fn timeline(
    to: &mut dyn Write,
    explanation: &Explanation,
    window: Option<&Window>,
    columns: usize,
    glyphs: Glyphs,
) -> io::Result<()> {
    let plot = Plot::of(explanation, columns.saturating_sub(MARGIN).max(20), glyphs);
    arrow(&plot).write(to, "")?;
    names(&plot).write(to, "")?;
    blocks(&plot).write(to, "why")?;
    if let Some(window) = window {
        let ends_ns = plot.axis.ends_ns();
        let lanes = Lanes::of(explanation, window, ends_ns);
        tasks(&plot, &lanes.tasks).write(to, "ran")?;
        for (name, pieces) in [("irq", &lanes.interrupts), ("soft", &lanes.softirqs)] {
            if !pieces.is_empty() {
                marks(&plot, pieces).write(to, name)?;
            }
        }
        lost(&plot, window).map_or(Ok(()), |row| row.write(to, "lost"))?;
    }
    steps(&plot).write(to, "")?;
    if !plot.is_even {
        let text = "not to scale: short stretches are widened";
        writeln!(to, "{}{DIM}{text}{DIM:#}", " ".repeat(MARGIN))?;
    }
    Ok(())
}

fn arrow(plot: &Plot<'_>) -> Row {
    let [left, line, right] = plot.glyphs.arrow;
    let mut row = Row::new(plot.columns);
    row.fill((0, plot.columns), line, DIM);
    row.fill((0, 1), left, DIM);
    row.fill((plot.columns - 1, plot.columns), right, DIM);
    let text = format!(" {} late ", spike::us(plot.explanation.wake.latency_ns()));
    let from = plot.columns.saturating_sub(text.chars().count()) / 2;
    row.text(&text, (from, plot.columns), BOLD);
    row
}

/// A stretch of columns with the blocks of one share.
struct Run {
    share: usize,
    columns: (usize, usize),
    ns: u64,
}

/// The stretches as they are seen: bars without a column of their own do not part others.
fn runs(plot: &Plot<'_>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for bar in &plot.bars {
        let columns = (plot.column(bar.from_ns), plot.column(bar.to_ns));
        if columns.0 == columns.1 {
            continue;
        }
        match runs.last_mut() {
            Some(run) if run.share == bar.share => {
                (run.columns.1, run.ns) = (columns.1, run.ns + bar.ns());
            }
            _ => runs.push(Run { share: bar.share, columns, ns: bar.ns() }),
        }
    }
    runs
}

/// Letters over the blocks; names where they fit.
fn names(plot: &Plot<'_>) -> Row {
    let mut row = Row::new(plot.columns);
    for Run { share, columns, ns } in runs(plot) {
        let of = &plot.explanation.shares[share];
        let (letter, name, time) = (letter(share), spike::short(&of.cause), spike::us(ns));
        let texts = [
            format!("{letter} {} {time}", spike::named_short(of)),
            format!("{letter} {name} {time}"),
            format!("{letter} {name}"),
            letter.to_string(),
        ];
        let fits = |text: &&String| text.chars().count() < columns.1 - columns.0;
        let text = texts.iter().find(fits).unwrap_or(&texts[3]);
        row.text(text, columns, style(&of.cause));
    }
    row
}

fn blocks(plot: &Plot<'_>) -> Row {
    let mut row = Row::new(plot.columns);
    let blocks = blocks_of(&plot.glyphs, plot.explanation);
    for bar in &plot.bars {
        let columns = (plot.column(bar.from_ns), plot.column(bar.to_ns));
        let cause = &plot.explanation.shares[bar.share].cause;
        row.fill(columns, blocks[bar.share], style(cause));
    }
    row
}

fn tasks(plot: &Plot<'_>, pieces: &[Piece]) -> Row {
    let mut row = Row::new(plot.columns);
    for piece in pieces {
        let (from, to) = plot.columns_of(piece.from_ns, piece.to_ns);
        row.fill((from, to), ' ', TextStyle::PLAIN);
        row.fill((from, from + 1), plot.glyphs.bar, DIM);
        let bare = piece.name.split(" [").next().unwrap_or_default();
        let is_room = piece.name.chars().count() < to - from;
        let name = if is_room { &piece.name } else { bare };
        if to - from > 4 || name.chars().count() < to - from {
            row.text(name, (from + 1, to), TextStyle::PLAIN);
        }
    }
    row
}

/// Marks where something was under way; its name after it where there is room.
fn marks(plot: &Plot<'_>, pieces: &[Piece]) -> Row {
    let mut row = Row::new(plot.columns);
    for piece in pieces {
        let columns = plot.columns_of(piece.from_ns, piece.to_ns);
        row.fill(columns, plot.glyphs.mark, TextStyle::PLAIN);
    }
    for piece in pieces {
        let (_, to) = plot.columns_of(piece.from_ns, piece.to_ns);
        let end = to + 1 + piece.name.chars().count();
        if row.is_free(to, (end + 1).min(plot.columns)) && end <= plot.columns {
            row.text(&piece.name, (to + 1, end), DIM);
        }
    }
    row
}

fn lost(plot: &Plot<'_>, window: &Window) -> Option<Row> {
    let mut row = Row::new(plot.columns);
    let (first_ns, last_ns) = plot.axis.ends_ns();
    let mut is_any = false;
    for lost in window.lost.iter().filter(|l| l.from_ns < last_ns && first_ns < l.to_ns) {
        row.fill(plot.columns_of(lost.from_ns, lost.to_ns), plot.glyphs.lost, WARN);
        is_any = true;
    }
    is_any.then_some(row)
}

/// The steps where they are, as far as their names have room: due and ran first.
fn steps(plot: &Plot<'_>) -> Row {
    let mut row = Row::new(plot.columns);
    let mut steps = spike::steps(plot.explanation);
    steps.sort_by_key(|(name, _)| !matches!(*name, "due" | "ran"));
    for (name, at_ns) in steps {
        let at = plot.column(at_ns).min(plot.columns - 1);
        let length = name.chars().count() + 1;
        let (from, text) = match at + length <= plot.columns && name != "ran" {
            true => (at, format!("{}{name}", plot.glyphs.steps[0])),
            false => ((at + 1).saturating_sub(length), format!("{name}{}", plot.glyphs.steps[1])),
        };
        let end = (from + length + 1).min(plot.columns);
        if row.is_free(from.saturating_sub(1), end) {
            row.text(&text, (from, from + length), DIM);
        }
    }
    row
}
