//! Traces as text: the kernel's `trace` file in the forms that people post, and what rtla prints.
//!
//! Times are cut to microseconds in text; those inside osnoise and timerlat lines are not.

mod header;
mod line;
mod rtla;

use std::collections::{BTreeMap, BTreeSet};

pub use rtla::{RtlaCpu, RtlaPart, RtlaText, parse_rtla};

use crate::{
    Event, How, Lost, Task, WakeUp, What, Window,
    event::Comm,
    kernel::{self, text::Symbols},
};
use header::Header;
use line::{Body, Columns, Line};

/// A time in a text is cut to this.
pub const RESOLUTION_NS: u64 = 1_000;
/// Lines that were not understood, quoted.
const SKIPPED_QUOTED: usize = 5;
/// How much of each.
const SKIPPED_CHARS: usize = 120;
/// Names of events without a meaning here, counted one by one.
const OTHERS_MAX: usize = 1_000;
/// Before the wake-up and after it, in a window.
const LEAD_NS: u64 = 2_000_000;
const TAIL_NS: u64 = 200_000;

/// A trace that was read as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextTrace {
    /// Name of the tracer, e.g. `nop`; empty: the text does not say.
    pub tracer: String,
    /// Version of the kernel, where the text says.
    pub kernel: Option<String>,
    /// The latency that a latency tracer found.
    pub latency_ns: Option<u64>,
    /// CPU of that latency.
    pub cpu: Option<u32>,
    /// Where an irqsoff or preemptoff section began and ended.
    pub section: Option<(String, String)>,
    /// The events, in the order of the text.
    pub events: Vec<Event>,
    /// Calls of functions, in the order of the text.
    pub calls: Vec<Call>,
    /// Tasks by thread id, with the last name that the text gives them.
    pub tasks: BTreeMap<i32, Task>,
    /// Names of the addresses in the events. Where the text has names alone, the addresses are
    /// made up: each name has one.
    pub symbols: BTreeMap<u64, String>,
    /// The late wake-up that the trace is about.
    pub subject: Option<WakeUp>,
    /// Events that were lost, by CPU.
    pub lost: Vec<(u32, Lost)>,
    /// Events that have no meaning here, by name.
    pub others: BTreeMap<String, u64>,
    /// Lines that were not understood.
    pub skipped: Skipped,
}

/// A function that was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// When.
    pub at_ns: u64,
    /// On which CPU.
    pub cpu: u32,
    /// Task that was current.
    pub pid: i32,
    /// Its name.
    pub function: String,
    /// Who called it; empty: not told.
    pub caller: String,
}

/// Lines that were not understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    /// How many.
    pub count: u64,
    /// The first few.
    pub first: Vec<String>,
}

/// Why a text is no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "none of {lines} lines is one of a trace, e.g. {first:?}; expected the kernel's `trace` file, \
     or what rtla prints with --auto-analysis"
)]
pub struct TextError {
    lines: u64,
    first: String,
}

/// Reads a text.
///
/// # Errors
/// When no line of it is one of a trace.
pub fn parse(text: &str) -> Result<TextTrace, TextError> {
    let mut reader = Reader::default();
    let mut lines = 0;
    for line in text.lines() {
        lines += 1;
        reader.line(line.trim_end());
    }
    reader.finish(lines)
}

#[derive(Default)]
struct Reader {
    trace: TextTrace,
    header: Header,
    columns: Columns,
    symbols: Symbols,
    /// Stack that is being read: its event, and whether it has reached what is no symbol.
    stack: Option<(Event, Vec<u64>, bool)>,
    /// Last event of each CPU.
    last_ns: BTreeMap<u32, u64>,
    /// Losses that no event came after yet, by CPU.
    losing: BTreeMap<u32, u64>,
    /// Tasks whose whole name is known; those in the first column are cut.
    named: BTreeSet<i32>,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        if let Some(frame) = line.trim_start().strip_prefix("=> ")
            && self.stack.is_some()
        {
            return self.frame(frame.trim());
        }
        self.end_stack();
        if let Some(comment) = line.strip_prefix('#')
            && !comment.starts_with("####")
        {
            return self.header.line(comment, &mut self.columns);
        }
        if let Some((cpu, count)) = line::lost(line) {
            *self.losing.entry(cpu).or_default() += count;
            return;
        }
        if line.starts_with("#####") {
            return;
        }
        match line::parse(line, &self.columns) {
            Some(parsed) => self.take(&parsed, line),
            None => self.skip(line),
        }
    }

    fn take(&mut self, line: &Line<'_>, whole: &str) {
        if let Some(count) = self.losing.remove(&line.cpu) {
            let from_ns = self.last_ns.get(&line.cpu).copied().unwrap_or(0);
            let lost = Lost { from_ns, to_ns: line.at_ns, count: Some(count) };
            self.trace.lost.push((line.cpu, lost));
        }
        self.last_ns.insert(line.cpu, line.at_ns);
        if !self.named.contains(&line.pid) && !line.comm.starts_with('<') {
            self.name(line.pid, line.comm);
        }
        let mut event = line.event();
        match line.body() {
            Body::StackBegins => self.stack = Some((event, Vec::new(), false)),
            // The name of who left is that of the first column, and cut.
            Body::Switch(what) => {
                event.what = what;
                self.push(event, true);
            }
            Body::Wakeup(what) => {
                event.what = what;
                self.push(event, false);
            }
            Body::Event { name, fields } => {
                match kernel::parse(name, fields, &mut self.symbols) {
                    Some(Ok(what)) => {
                        event.what = what;
                        self.push(event, false);
                    }
                    // Known, but not as it is here.
                    Some(Err(())) => self.skip(whole),
                    None => {
                        let count = self.trace.others.len();
                        if count < OTHERS_MAX || self.trace.others.contains_key(name) {
                            *self.trace.others.entry(name.to_owned()).or_default() += 1;
                        }
                    }
                }
            }
            Body::Call { function, caller } => self.trace.calls.push(Call {
                at_ns: line.at_ns,
                cpu: line.cpu,
                pid: line.pid,
                function: function.to_owned(),
                caller: caller.to_owned(),
            }),
            Body::Unknown => self.skip(whole),
        }
    }

    fn push(&mut self, event: Event, is_cut: bool) {
        let mut names: Vec<(i32, Comm)> = Vec::new();
        match event.what {
            What::Switch { prev_comm, prev_pid, next_comm, next_pid, .. } => {
                if !is_cut {
                    names.push((prev_pid, prev_comm));
                }
                names.push((next_pid, next_comm));
            }
            What::Waking { comm, pid, .. }
            | What::Wakeup { comm, pid, .. }
            | What::Migrate { comm, pid, .. }
            | What::PiSetprio { comm, pid, .. } => names.push((pid, comm)),
            _ => {}
        }
        for (pid, comm) in names {
            self.named.insert(pid);
            self.name(pid, &comm.to_string());
        }
        self.trace.events.push(event);
    }

    fn name(&mut self, pid: i32, comm: &str) {
        let task = self.trace.tasks.entry(pid).or_default();
        if task.comm != comm {
            comm.clone_into(&mut task.comm);
        }
    }

    fn frame(&mut self, frame: &str) {
        let Some((_, frames, is_over)) = &mut self.stack else { return };
        // What is no symbol is what the buffer held before, and so is all behind it.
        *is_over |= frame == "0" || frame.starts_with("0x") || frame.starts_with('<');
        if !*is_over {
            frames.push(self.symbols.address(frame));
        }
    }

    fn end_stack(&mut self) {
        if let Some((mut event, frames, _)) = self.stack.take() {
            event.what = What::Stack { frames: frames.into() };
            self.trace.events.push(event);
        }
    }

    fn skip(&mut self, line: &str) {
        self.trace.skipped.count += 1;
        if self.trace.skipped.first.len() < SKIPPED_QUOTED {
            self.trace.skipped.first.push(line.chars().take(SKIPPED_CHARS).collect());
        }
    }

    fn finish(mut self, lines: u64) -> Result<TextTrace, TextError> {
        self.end_stack();
        let is_trace = !self.header.tracer.is_empty()
            || !self.trace.events.is_empty()
            || !self.trace.calls.is_empty()
            || !self.trace.others.is_empty();
        if !is_trace {
            let first = self.trace.skipped.first.into_iter().next().unwrap_or_default();
            return Err(TextError { lines, first });
        }
        let Header { tracer, kernel, latency_ns, cpu, task, started, ended } = self.header;
        let mut trace = self.trace;
        trace.subject = subject(&trace.events, task.as_ref().map(|(tid, _)| *tid), cpu, latency_ns);
        if let Some((tid, of_header)) = task {
            let named = trace.tasks.remove(&tid).map(|task| task.comm);
            let comm = named.unwrap_or_else(|| of_header.comm.clone());
            trace.tasks.insert(tid, Task { comm, ..of_header });
        }
        trace.section = started.zip(ended);
        trace.symbols = self.symbols.into_names();
        Ok(TextTrace { tracer, kernel, latency_ns, cpu, ..trace })
    }
}

/// The late wake-up that a trace is about: of a latency tracer, or of a timerlat that has stopped.
fn subject(
    events: &[Event],
    task: Option<i32>,
    cpu: Option<u32>,
    latency_ns: Option<u64>,
) -> Option<WakeUp> {
    if let (Some(tid), Some(latency_ns)) = (task, latency_ns) {
        let is_woken = |what: &What| match what {
            What::Wakeup { pid, .. } | What::Waking { pid, .. } => *pid == tid,
            _ => false,
        };
        let is_here =
            |what: &What| matches!(what, What::Switch { next_pid, .. } if *next_pid == tid);
        let ran = events.iter().rposition(|event| is_here(&event.what))?;
        let woken = events[..ran].iter().rposition(|event| is_woken(&event.what));
        let ran = &events[ran];
        let due_ns = woken.map_or(ran.at_ns.saturating_sub(latency_ns), |at| events[at].at_ns);
        let cpu = cpu.unwrap_or(ran.cpu);
        return Some(WakeUp { tid, cpu, due_ns, ran_ns: ran.at_ns, how: How::Woken });
    }
    // timerlat writes the stack of its interrupt when it stops.
    let stack = events.iter().rposition(|event| matches!(event.what, What::Stack { .. }))?;
    let cpu = events[stack].cpu;
    let own = events[..stack].iter().rev().filter(|event| event.cpu == cpu);
    own.take(16).find_map(|event| match event.what {
        What::Timerlat { context: 1 | 2, latency_ns, .. } => Some(WakeUp {
            tid: event.pid,
            cpu,
            due_ns: event.at_ns.saturating_sub(latency_ns),
            ran_ns: event.at_ns,
            how: How::Measured,
        }),
        _ => None,
    })
}

impl TextTrace {
    /// The events round the wake-up that the trace is about.
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        self.subject.map(|subject| self.window_of(&subject))
    }

    /// The events round a wake-up.
    #[must_use]
    pub fn window_of(&self, subject: &WakeUp) -> Window {
        let from_ns = subject.due_ns.saturating_sub(LEAD_NS);
        let to_ns = subject.ran_ns + TAIL_NS;
        let own = || self.events.iter().filter(|event| event.cpu == subject.cpu);
        // The last switch before tells who ran when the window begins.
        let is_switch = |event: &&Event| matches!(event.what, What::Switch { .. });
        let carried = own().take_while(|event| event.at_ns < from_ns).filter(is_switch).last();
        let inside = self.events.iter().filter(|event| (from_ns..=to_ns).contains(&event.at_ns));
        let mut events: Vec<Event> = carried.into_iter().chain(inside).cloned().collect();
        events.sort_by_key(|event| event.at_ns);
        let lost = self.lost.iter().filter(|(cpu, _)| *cpu == subject.cpu).map(|(_, lost)| *lost);
        Window {
            cpu: subject.cpu,
            from_ns: own().next().map_or(from_ns, |first| first.at_ns.max(from_ns)),
            to_ns: own().next_back().map_or(to_ns, |last| last.at_ns.min(to_ns)),
            events,
            lost: lost.filter(|lost| lost.to_ns > from_ns && lost.from_ns < to_ns).collect(),
            tasks: self.tasks.clone(),
            symbols: self.symbols.clone(),
            ..Window::default()
        }
    }

    /// The longest time between two lines of a CPU inside the wake-up: from when, to when. What a
    /// latency tracer does not show lies there.
    #[must_use]
    pub fn longest_gap_ns(&self) -> Option<(u64, u64)> {
        let subject = self.subject?;
        let events = self.events.iter().map(|event| (event.cpu, event.at_ns));
        let calls = self.calls.iter().map(|call| (call.cpu, call.at_ns));
        let mut times: Vec<u64> = events
            .chain(calls)
            .filter(|(cpu, at_ns)| {
                *cpu == subject.cpu && (subject.due_ns..=subject.ran_ns).contains(at_ns)
            })
            .map(|(_, at_ns)| at_ns)
            .collect();
        times.sort_unstable();
        let gaps = times.windows(2).map(|pair| (pair[0], pair[1]));
        gaps.max_by_key(|(from, to)| to - from)
    }
}

#[cfg(test)]
mod tests;
