//! The line that shows a run under way, on stderr: rewritten on a terminal, now and then elsewhere.

use std::{
    io::{IsTerminal, Write},
    sync::mpsc::{self, Receiver, SyncSender},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rtproof_judge::units;
use rtproof_run::prove::observer::{Observer, Progress as State};

use crate::manners;

/// Lines printed over a run where stderr is not a terminal.
const LINES: u64 = 10;
/// Longest wait for the last text to be written.
const DONE_TIMEOUT: Duration = Duration::from_millis(100);
/// Cells of the bar.
const CELLS: u64 = 10;

/// Progress of a run.
#[derive(Debug)]
pub(crate) struct Progress {
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

impl Observer for Progress {
    fn progress(&mut self, state: &State<'_>) {
        self.show(state);
    }

    fn done(&mut self) {
        self.clear();
    }
}

impl Progress {
    pub(crate) fn new(duration_ns: u64) -> Self {
        let terminal = std::io::stderr().is_terminal() && !manners::is_quiet();
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
            lines_done: if manners::is_quiet() { LINES } else { 0 },
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
        let line = rtproof_host::harmless::line(&self.line(at_ns, state));
        let text = if self.terminal {
            let width = rustix::termios::tcgetwinsize(std::io::stderr())
                .map_or(80, |size| usize::from(size.ws_col).max(20));
            let cut: String = line.chars().take(width - 1).collect();
            format!("\r\x1b[K{cut}")
        } else {
            format!("{line}\n")
        };
        self.say(text);
        self.shown = true;
    }

    /// Hands a text to the thread that writes; dropped while it still writes the one before. A
    /// paused terminal or a reader that does not read must not stop who empties the slots.
    fn say(&self, text: String) {
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
