//! Work under way, as the terminal shows it.

pub(crate) mod rows;

use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
    sync::mpsc::{self, Receiver, SyncSender},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rows::RowPrinter;

use rtproof_host::tune::Change;
use rtproof_judge::{Report, units};
use rtproof_record::Run;
use rtproof_render::{
    page::{self, Terminal},
    sections::effects,
};
use rtproof_results::{
    Answer,
    measure::{Cell, Index, MeasurePlan},
};
use rtproof_run::{
    experiment::{self, Results},
    measure::{MeasureEvents, RecordFolder},
    prove::{Observer, Output, RunProgress as State, SilentObserver},
    tune::making::ChangeProgress,
};

use crate::answers::measure;
use crate::exit::{self, TextOutput};

// Cells while they are measured: a progress line each, or rows.

#[derive(Debug)]
pub(crate) struct CellPrinter {
    is_rows: bool,
    text: TextOutput,
    folder: PathBuf,
    now: CellDisplay,
}

/// What shows the cell that is measured.
#[derive(Debug)]
pub(crate) enum CellDisplay {
    Nothing(SilentObserver),
    Bar(ProgressBar),
    Rows(RowPrinter),
}

impl CellDisplay {
    /// Of one run alone.
    pub(crate) fn of_one(duration_ns: u64, is_rows: bool) -> Self {
        if is_rows {
            Self::Rows(RowPrinter::new())
        } else {
            Self::Bar(ProgressBar::new(duration_ns))
        }
    }

    /// What observes the run.
    pub(crate) fn observer(&mut self) -> &mut dyn Observer {
        match self {
            Self::Nothing(silent) => silent,
            Self::Bar(bar) => bar,
            Self::Rows(rows) => rows,
        }
    }

    /// The sums of the rows, if there are some.
    pub(crate) fn end(self) {
        if let Self::Rows(rows) = self {
            rows.end();
        }
    }
}

impl CellPrinter {
    /// Rows instead of a progress line, or not.
    pub(crate) fn new(is_rows: bool, text: TextOutput, folder: &RecordFolder) -> Self {
        Self {
            is_rows,
            text,
            folder: folder.path().to_owned(),
            now: CellDisplay::Nothing(SilentObserver),
        }
    }
}

impl MeasureEvents for CellPrinter {
    /// On stdout where its rows follow, else on stderr.
    fn begin(&mut self, plan: &MeasurePlan, cell: &Cell, left_ns: u64) -> anyhow::Result<()> {
        let text = format!(
            "cell {} of {}: {}; about {} left",
            cell.number,
            plan.cells.len(),
            cell.title(),
            units::duration(left_ns.div_ceil(1_000_000_000) * 1_000_000_000)
        );
        if self.is_rows {
            self.text.print(|to| writeln!(to, "{text}"))?;
        } else if !crate::is_quiet() {
            // Progress is a courtesy.
            let _ = crate::stderr_line(&text);
        }
        Ok(())
    }

    fn observer(&mut self, plan: &MeasurePlan, cell: &Cell, after_ns: u64) -> &mut dyn Observer {
        let label = format!("{} of {}  ", cell.number, plan.cells.len());
        self.now = match self.is_rows {
            true => CellDisplay::Rows(RowPrinter::new()),
            false => CellDisplay::Bar(ProgressBar::of_one(cell.duration_ns, label, after_ns)),
        };
        self.now.observer()
    }

    fn end(&mut self) {
        std::mem::replace(&mut self.now, CellDisplay::Nothing(SilentObserver)).end();
    }

    fn sealed(&mut self, output: &Output, run: &Run, report: &Report) -> anyhow::Result<()> {
        crate::write_html(&output.html, run, report, None, None)
    }

    fn page(&self, index: &Index) -> String {
        rtproof_render::sections::measure::page(index, &measure::answer(index, &self.folder))
    }
}

// Progress of changes: one line that is rewritten on a terminal, nothing elsewhere.

#[derive(Debug)]
pub(crate) struct ApplyProgress {
    of: usize,
    made: usize,
    is_shown: bool,
}

impl ApplyProgress {
    pub(crate) fn new() -> Self {
        Self { of: 0, made: 0, is_shown: io::stderr().is_terminal() && !crate::is_quiet() }
    }
}

impl ChangeProgress for ApplyProgress {
    fn begin(&mut self, changes: usize) {
        (self.of, self.made) = (changes, 0);
    }

    fn change(&mut self, change: &Change) {
        self.made += 1;
        if self.is_shown {
            let (made, of) = (self.made, self.of);
            let target: String =
                rtproof_host::text::harmless_line(&change.title()).chars().take(60).collect();
            // A failed write of progress does not matter.
            let _ = crate::rewrite("\r\x1b[K", &format!("{made}/{of} {target}"));
        }
    }

    fn end(&mut self) {
        if self.is_shown {
            let _ = crate::rewrite("\r\x1b[K", "");
        }
    }
}

/// Shows a line of a package manager at work.
pub(crate) fn manager_line(line: &str) {
    if crate::is_quiet() {
        return;
    }
    let clear = if io::stderr().is_terminal() { "\r\x1b[K" } else { "" };
    let line = rtproof_host::text::harmless_line(line);
    // A failed write of progress does not matter.
    let _ = crate::rewrite(clear, &format!("  {line}\n"));
}

// The line that shows a run under way, on stderr: rewritten on a terminal, now and then elsewhere.

/// Lines printed over a run where stderr is not a terminal.
const LINES: u64 = 10;

/// Longest wait for the last text to be written.
const DONE_TIMEOUT: Duration = Duration::from_millis(100);

/// Cells of the bar.
const CELLS: u64 = 10;

/// Progress of a run.
#[derive(Debug)]
pub(crate) struct ProgressBar {
    terminal: bool,
    /// What is measured, where there is more than one thing.
    label: String,
    /// Time that comes after this run.
    after_ns: u64,
    duration_ns: u64,
    lines_done: u64,
    shown: bool,
    to: Option<SyncSender<String>>,
    writer: Option<JoinHandle<()>>,
}

impl Observer for ProgressBar {
    fn progress(&mut self, state: &State<'_>) {
        self.show(state);
    }

    fn done(&mut self) {
        self.clear();
    }
}

impl ProgressBar {
    pub(crate) fn new(duration_ns: u64) -> Self {
        let terminal = io::stderr().is_terminal() && !crate::is_quiet();
        let (to, texts) = mpsc::sync_channel(1);
        let writer = std::thread::Builder::new()
            .name("rtproof/progress".into())
            .spawn(move || write_all(&texts))
            .ok();
        let (label, after_ns) = (String::new(), 0);
        Self {
            terminal,
            label,
            after_ns,
            duration_ns,
            lines_done: if crate::is_quiet() { LINES } else { 0 },
            shown: false,
            to: Some(to),
            writer,
        }
    }

    /// One of several runs; others follow for so long. Without a terminal nothing is shown.
    pub(crate) fn of_one(duration_ns: u64, label: String, after_ns: u64) -> Self {
        Self { label, after_ns, lines_done: LINES, ..Self::new(duration_ns) }
    }

    /// Shows a state, if it is time to.
    pub(crate) fn show(&mut self, state: &State<'_>) {
        let at_ns = state.at_ns.min(self.duration_ns);
        let step = u128::from(at_ns) * u128::from(LINES) / u128::from(self.duration_ns);
        let step = u64::try_from(step).unwrap_or(LINES);
        if !self.terminal && step <= self.lines_done {
            return;
        }
        self.lines_done = step;
        let line = rtproof_host::text::harmless_line(&self.line(at_ns, state));
        let text = if self.terminal {
            let width = rustix::termios::tcgetwinsize(io::stderr())
                .map_or(80, |size| usize::from(size.ws_col).max(20));
            let cut: String = line.chars().take(width - 1).collect();
            format!("\r\x1b[K{cut}")
        } else {
            format!("{line}\n")
        };
        self.send(text);
        self.shown = true;
    }

    /// Hands a text to the thread that writes; dropped while it still writes the one before. A
    /// paused terminal or a reader that does not read must not stop the collector.
    fn send(&self, text: String) {
        if let Some(to) = &self.to {
            let _ = to.try_send(text);
        }
    }

    fn line(&self, at_ns: u64, state: &State<'_>) -> String {
        let filled = u128::from(at_ns) * u128::from(CELLS) / u128::from(self.duration_ns);
        let filled = usize::try_from(filled).unwrap_or(0);
        let bar = format!("{}{}", "█".repeat(filled), "░".repeat(CELLS as usize - filled));
        let mut line = format!(
            "{}measuring [{bar}] {} of {}",
            self.label,
            units::duration(at_ns / 1_000_000_000 * 1_000_000_000),
            units::duration(self.duration_ns)
        );
        if let Some((latency_ns, cpu)) = state.worst {
            line += &format!("  worst {} (CPU {cpu})", units::ns(latency_ns));
        }
        if let Some(late) = state.late {
            line += &format!("  late {}", units::grouped(late));
        }
        if state.missed > 0 || state.late.is_none() {
            line += &format!("  missed {}", units::grouped(state.missed));
        }
        if let Some((cause, culprit)) = state.last_cause {
            let space = if culprit.is_empty() { "" } else { " " };
            line += &format!("  last: {cause}{space}{culprit}");
        }
        let left_ns =
            self.duration_ns.saturating_sub(at_ns).div_ceil(1_000_000_000) * 1_000_000_000;
        line += &format!("  {}  {} left", state.phase, units::duration(left_ns));
        if self.after_ns > 0 {
            line += &format!(", {} in all", units::duration(left_ns + self.after_ns));
        }
        line
    }

    fn clear(&mut self) {
        let start = Instant::now();
        if let Some(to) = self.to.take().filter(|_| self.terminal && self.shown) {
            // The last line may still be under way: the one that clears it must not be dropped.
            while to.try_send("\r\x1b[K".into()).is_err() && start.elapsed() < DONE_TIMEOUT {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let Some(writer) = self.writer.take() else { return };
        while !writer.is_finished() && start.elapsed() < DONE_TIMEOUT {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Writes what comes. Progress is a courtesy: a closed stderr must not end a run.
fn write_all(texts: &Receiver<String>) {
    while let Ok(text) = texts.recv() {
        let mut stderr = anstream::stderr().lock();
        let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
    }
}

/// Shows knobs while they are tried.
#[derive(Debug)]
pub(crate) struct ExperimentProgress {
    text: TextOutput,
    setup: fn(&mut Terminal, &str) -> io::Result<()>,
}

impl ExperimentProgress {
    pub(crate) fn new(text: TextOutput) -> Self {
        Self { text, setup: effects::experiment }
    }

    /// Of `tune apply --prove`.
    pub(crate) fn of_plan(text: TextOutput) -> Self {
        Self { text, setup: effects::before }
    }
}

impl experiment::ExperimentEvents for ExperimentProgress {
    fn setup(&mut self, sentence: &str) -> io::Result<()> {
        self.text.print(|to| (self.setup)(to, sentence))
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        self.text.print(|to| effects::line(to, line))
    }

    fn observer(&self, duration_ns: u64) -> Box<dyn Observer> {
        Box::new(ProgressBar::new(duration_ns))
    }
}

/// Writes the report, and prints what was found and where it is. What is returned: whether the
/// report is written.
///
/// # Errors
/// Those of stdout; a record without effects.
pub(crate) fn show_experiment(
    results: &Results,
    answer: &Answer,
    text: TextOutput,
    output: &Output,
) -> anyhow::Result<anyhow::Result<()>> {
    let next = answer.next.as_deref();
    let html = crate::write_html(&output.html, &results.sealed.run, &results.report, None, next);
    let effects = results.effects()?;
    text.print(|to| {
        page::answer_text(to, answer)?;
        effects::table_text(to, effects)?;
        let is_sealed = results.sealed.failure.is_none();
        page::file_list(to, &output.record, &output.html, is_sealed, html.is_ok())
    })?;
    Ok(html)
}

/// The exit code that the results of an experiment give.
///
/// # Errors
/// What is wrong with the record or the report.
pub(crate) fn experiment_code(results: Results, html: anyhow::Result<()>) -> anyhow::Result<u8> {
    let ended = results.ended()?;
    if let Some(failure) = results.sealed.failure {
        return Err(failure);
    }
    html?;
    Ok(exit::of(ended))
}
