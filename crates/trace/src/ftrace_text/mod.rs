//! Traces as text: the kernel's `trace` file in the forms that people post, and what rtla prints.
//!
//! Times are cut to microseconds in text; those inside osnoise and timerlat lines are not.

mod line;
mod subject;
#[cfg(test)]
mod tests;

pub use line::{TextEntry, TraceHeader};
pub use subject::{Finder, RtlaCpu, RtlaPart, RtlaText, Windows, parse_rtla};

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufRead},
};

use line::{Body, FlagColumns, TraceLine};

use crate::coverage::RecordedKinds;
use crate::event::Comm;
use crate::kernel::table;
use crate::kernel::text::TextSymbols;
use crate::{
    Coverage, Event, EventData, Lost, Subjects, Task, TracedSection, WakeUp, WakeUpBasis, Window,
};

/// Lines that were not understood, quoted.
const SKIPPED_QUOTED: usize = 5;

/// How much of each.
const SKIPPED_CHARS: usize = 120;

/// Stands for frames of a stack that may be missing.
pub const CUT: &str = "(cut)";

/// Longest line that is read; the rest of a longer one is left out.
const LINE_BYTES: u64 = 64 << 10;

/// Names of events without a meaning here, counted one by one.
const OTHERS_MAX: usize = 1_000;

/// Losses that are kept.
const LOST_MAX: usize = 100_000;

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
    /// The section that irqsoff or preemptoff kept.
    pub section: Option<TracedSection>,
    /// How many entries the text has by its own header, and how many were read.
    pub entries: Option<(u64, u64)>,
    /// The events that were kept, in the order of the text.
    pub events: Vec<Event>,
    /// How many events there were.
    pub count: u64,
    /// Which events the text holds.
    pub coverage: Coverage,
    /// Tasks by thread id, with the last name that the text gives them.
    pub tasks: BTreeMap<i32, Task>,
    /// Names of the addresses in the events. Where the text has names alone, the addresses are
    /// made up: each name has one.
    pub symbols: BTreeMap<u64, String>,
    /// What the trace is about: the late wake-up, or section, that a tracer kept.
    pub subject: Option<WakeUp>,
    /// Time of the last entry.
    pub end_ns: u64,
    /// Events that were lost, by CPU.
    pub lost: Vec<(u32, Lost)>,
    /// Events that contradict the one before them: entries are missing that nothing marks.
    pub misfits: u64,
    /// Its times are finer than microseconds, as with `--ns` of perf script and `-t` of trace-cmd.
    pub is_fine: bool,
    /// CPUs that are used, and of which it has no event.
    pub silent_cpus: Vec<u32>,
    /// Places where time goes back: its lines were put into another order.
    pub reversals: u64,
    /// The longest latency over its own limit that cyclictest wrote into the trace.
    pub marked_ns: Option<u64>,
    /// perf says that it lost some, and neither where nor when.
    pub is_lossy: bool,
    /// Events that have no meaning here, by name.
    pub others: BTreeMap<String, u64>,
    /// Lines that were not understood.
    pub skipped: Skipped,
}

/// Lines that were not understood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Skipped {
    pub count: u64,
    pub first: Vec<String>,
}

/// Why a text is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// No line of it is one of a trace.
    #[error("none of {lines} lines is one of a trace, e.g. {first:?}; {expected}")]
    None {
        /// How many lines there are.
        lines: u64,
        /// What was expected, and the next step.
        expected: &'static str,
        /// The first that is not empty.
        first: String,
    },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads a text whole. Of several traces in it, the last one.
///
/// # Errors
/// When no line of it is one of a trace.
pub fn parse(text: &str) -> Result<TextTrace, TextError> {
    let everyone = Subjects { all_real_time: true, ..Subjects::default() };
    let mut events: Vec<Event> = Vec::new();
    let (mut last, mut finder) = (0, Finder::new(&everyone, u64::MAX));
    let traces = read(&mut text.as_bytes(), &mut |trace, entry| {
        if trace != last {
            events.clear();
            (last, finder) = (trace, Finder::new(&everyone, u64::MAX));
        }
        finder.take(entry);
        if let TextEntry::Event(event, _) = entry {
            events.push(event.clone());
        }
    })?;
    let trace = traces.into_iter().next_back().unwrap_or_default();
    Ok(TextTrace { subject: finder.kept(trace.subject), events, ..trace })
}

/// Receives an entry: number of the trace in the text, entry.
pub type Sink<'a> = dyn FnMut(usize, TextEntry<'_>) + 'a;

/// Reads a text and hands each entry on, so that memory does not grow with the text. Gives the
/// traces that are in it, each without its events.
///
/// # Errors
/// When no line of it is one of a trace; when it cannot be read.
pub fn read(text: &mut dyn BufRead, sink: &mut Sink<'_>) -> Result<Vec<TextTrace>, TextError> {
    let mut reader = Reader::new(sink);
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let count = io::Read::take(&mut *text, LINE_BYTES).read_until(b'\n', &mut bytes)?;
        if count == 0 {
            break;
        }
        reader.lines += 1;
        reader.line(String::from_utf8_lossy(&bytes).trim_end());
    }
    reader.finish()
}

struct Reader<'s, 'e> {
    sink: &'s mut Sink<'e>,
    done: Vec<TextTrace>,
    trace: TextTrace,
    header: TraceHeader,
    columns: FlagColumns,
    symbols: TextSymbols,
    seen: RecordedKinds,
    lines: u64,
    /// Entries of this trace so far.
    entries: u64,
    /// Stack that is being read: its event, and whether it has reached what is no symbol.
    stack: Option<(Event, Vec<u64>, bool)>,
    /// Last event of each CPU.
    last_ns: BTreeMap<u32, u64>,
    /// Last event of all.
    latest_ns: u64,
    /// Losses that no event came after yet, by CPU.
    losing: BTreeMap<u32, u64>,
    /// Entries were left out here by whoever copied the text: until when each CPU's last event
    /// before was.
    left_out: Option<BTreeMap<u32, u64>>,
    is_abbreviated: bool,
    /// Wake-ups in the form of the wakeup tracers, which write the last switch alone.
    is_wakeup: bool,
    /// Tasks whose whole name is known; those in the first column are cut.
    named: BTreeSet<i32>,
}

impl<'s, 'e> Reader<'s, 'e> {
    fn new(sink: &'s mut Sink<'e>) -> Self {
        Self {
            sink,
            done: Vec::new(),
            trace: TextTrace::default(),
            header: TraceHeader::default(),
            columns: FlagColumns::default(),
            symbols: TextSymbols::default(),
            seen: RecordedKinds::default(),
            lines: 0,
            entries: 0,
            stack: None,
            last_ns: BTreeMap::new(),
            latest_ns: 0,
            losing: BTreeMap::new(),
            left_out: None,
            is_abbreviated: false,
            is_wakeup: false,
            named: BTreeSet::new(),
        }
    }

    fn line(&mut self, line: &str) {
        // People paste from mails.
        let line = line.trim_start_matches(['>', '\u{feff}']);
        let trimmed = line.trim_start();
        if trimmed.is_empty() {
            return;
        }
        if let Some(frame) = trimmed.strip_prefix("=> ").or_else(|| perf_frame(line))
            && self.stack.is_some()
        {
            return self.frame(frame.trim());
        }
        self.end_stack();
        if let Some(comment) = trimmed.strip_prefix('#')
            && !comment.starts_with("####")
            && !comment.starts_with(|c: char| c.is_ascii_digit())
        {
            if comment.trim().starts_with("tracer:") && self.has_begun() {
                self.next_trace();
            }
            return self.header.line(comment, &mut self.columns);
        }
        if let Some((cpu, count)) = line::lost(line) {
            *self.losing.entry(cpu).or_default() += count;
            return;
        }
        if trimmed.starts_with("Processed ") && trimmed.contains(" events and lost ") {
            self.trace.is_lossy = true;
            return;
        }
        if trimmed.starts_with("#####") || trimmed.starts_with("cpus=") {
            return;
        }
        match line::parse(line, &self.columns) {
            Some(parsed) => self.take(&parsed, line),
            None if perf_frame(line).is_some() => {}
            None => {
                if self.has_begun() && is_left_out(trimmed) {
                    self.left_out.get_or_insert_with(|| self.last_ns.clone());
                    self.is_abbreviated = true;
                }
                self.skip(line);
            }
        }
    }

    fn has_begun(&self) -> bool {
        self.entries > 0 || !self.header.tracer.is_empty()
    }

    fn take(&mut self, line: &TraceLine<'_>, whole: &str) {
        self.entries += 1;
        if line.at_ns < self.latest_ns {
            self.reverse();
        }
        self.latest_ns = line.at_ns;
        let (from_ns, to_ns) = (self.last_ns.get(&line.cpu).copied().unwrap_or(0), line.at_ns);
        if let Some(count) = self.losing.remove(&line.cpu) {
            let count = (count > 0).then_some(count);
            self.lose(line.cpu, Lost { from_ns, to_ns, count });
        }
        if let Some(count) = line.lost() {
            return self.lose(line.cpu, Lost { from_ns, to_ns, count: Some(count) });
        }
        if let Some(before) = self.left_out.take() {
            for (cpu, from_ns) in before {
                self.lose(cpu, Lost { from_ns, to_ns: line.at_ns, count: None });
            }
        }
        self.last_ns.insert(line.cpu, line.at_ns);
        self.trace.end_ns = self.trace.end_ns.max(line.at_ns);
        self.trace.is_fine |= !line.at_ns.is_multiple_of(1_000);
        if !self.named.contains(&line.pid) && !line.comm.starts_with('<') {
            self.name(line.pid, line.comm);
        }
        let other = EventData::Other { id: 0 };
        match line.body() {
            Body::StackBegins => self.stack = Some((line.event(other), Vec::new(), false)),
            // The name of the task that left is that of the first column, and cut.
            Body::Switch(what) => self.push(line.event(what), true),
            Body::Wakeup(what) => {
                self.is_wakeup = true;
                self.push(line.event(what), false);
            }
            Body::Event { name, fields } => {
                let marked = marked_ns(fields).filter(|_| MARKS.contains(&name));
                self.trace.marked_ns = self.trace.marked_ns.max(marked);
                match table::parse_event(name, fields, &mut self.symbols) {
                    Some(Ok(what)) => self.push(line.event(what), false),
                    // Known, but not as it is here.
                    Some(Err(())) => self.skip(whole),
                    None => {
                        let count = self.trace.others.len();
                        if count < OTHERS_MAX || self.trace.others.contains_key(name) {
                            *self.trace.others.entry(name.to_owned()).or_default() += 1;
                        }
                        // Whatever it means, it shows the current task.
                        self.push(line.event(other), false);
                    }
                }
            }
            Body::Call(call) => match table::parse_event("function", call, &mut self.symbols) {
                Some(Ok(what)) => self.push(line.event(what), false),
                _ => self.skip(whole),
            },
            Body::Unknown => {
                self.push(line.event(other), false);
                self.skip(whole);
            }
        }
    }

    /// What was before belongs to another time.
    fn reverse(&mut self) {
        self.trace.reversals += 1;
        for cpu in std::mem::take(&mut self.last_ns).into_keys() {
            self.seen.lose(cpu);
            (self.sink)(self.done.len(), TextEntry::Lost(cpu));
        }
    }

    /// Whether the tracer writes no other switch than the one that ends a wake-up.
    fn writes_last_switch(&self) -> bool {
        self.is_wakeup || self.header.tracer.starts_with("wakeup")
    }

    fn lose(&mut self, cpu: u32, lost: Lost) {
        if self.trace.lost.len() < LOST_MAX {
            self.trace.lost.push((cpu, lost));
        }
        self.seen.lose(cpu);
        (self.sink)(self.done.len(), TextEntry::Lost(cpu));
    }

    fn push(&mut self, event: Event, is_cut: bool) {
        let mut names: [Option<(i32, Comm)>; 2] = [None, None];
        match event.what {
            EventData::Switch { prev_comm, prev_pid, next_comm, next_pid, .. } => {
                names = [(!is_cut).then_some((prev_pid, prev_comm)), Some((next_pid, next_comm))];
            }
            EventData::Waking { comm, pid, .. }
            | EventData::Wakeup { comm, pid, .. }
            | EventData::Migrate { comm, pid, .. }
            | EventData::PiSetprio { comm, pid, .. } => names[0] = Some((pid, comm)),
            _ => {}
        }
        for (pid, comm) in names.into_iter().flatten() {
            self.named.insert(pid);
            self.name(pid, &comm.to_string());
        }
        if self.writes_last_switch() {
            self.seen.choose();
        }
        self.seen.take(&event);
        self.trace.count += 1;
        (self.sink)(self.done.len(), TextEntry::Event(&event, &self.header));
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
            // trace-cmd writes the address behind the name.
            let name = frame.split(" (").next().unwrap_or(frame);
            frames.push(self.symbols.address(name));
        }
    }

    fn end_stack(&mut self) {
        if let Some((mut event, frames, _)) = self.stack.take() {
            event.what = EventData::Stack { frames: frames.into() };
            self.push(event, false);
        }
    }

    fn skip(&mut self, line: &str) {
        self.trace.skipped.count += 1;
        if self.trace.skipped.first.len() < SKIPPED_QUOTED {
            self.trace.skipped.first.push(line.trim().chars().take(SKIPPED_CHARS).collect());
        }
    }

    /// Another trace begins in the same text.
    fn next_trace(&mut self) {
        let mut trace = std::mem::take(&mut self.trace);
        let header = std::mem::take(&mut self.header);
        trace.coverage = self.coverage(&header, trace.is_lossy || trace.reversals > 0);
        trace.misfits = self.seen.misfits();
        trace.silent_cpus = self.seen.silent_cpus();
        trace.entries = header.entries.map(|said| (said, self.entries));
        trace.subject = header.subject(trace.end_ns);
        let is_section = header.is_section();
        let TraceHeader { tracer, kernel, latency_ns, cpu, task, started, ended, .. } = header;
        if let Some((tid, of_header)) = task {
            let named = trace.tasks.remove(&tid).map(|task| task.comm);
            let comm = named.unwrap_or_else(|| of_header.comm.clone());
            trace.tasks.insert(tid, Task { comm, ..of_header });
        }
        trace.section = is_section.then(|| TracedSection {
            tracer: tracer.clone(),
            began: started.unwrap_or_default(),
            ended: ended.unwrap_or_default(),
        });
        trace.symbols = std::mem::take(&mut self.symbols).into_names();
        self.done.push(TextTrace { tracer, kernel, latency_ns, cpu, ..trace });
        self.columns = FlagColumns::default();
        self.seen = RecordedKinds::default();
        self.entries = 0;
        self.last_ns.clear();
        self.latest_ns = 0;
        self.losing.clear();
        self.left_out = None;
        self.is_abbreviated = false;
        self.is_wakeup = false;
        self.named.clear();
    }

    fn coverage(&self, header: &TraceHeader, is_lossy: bool) -> Coverage {
        let mut coverage = self.seen.coverage();
        if header.tracer.starts_with("wakeup") || self.is_wakeup {
            coverage.limit(crate::EventClass::Switches, crate::Extent::Partial);
        }
        let is_cut = header.entries.is_some_and(|said| said > self.entries);
        if is_cut || self.is_abbreviated || is_lossy {
            coverage.thin();
        }
        coverage
    }

    fn finish(mut self) -> Result<Vec<TextTrace>, TextError> {
        // A stack at the very end may go on where the text was cut.
        if let Some((_, frames, false)) = &mut self.stack {
            frames.push(self.symbols.address(CUT));
        }
        self.end_stack();
        if self.has_begun() {
            self.next_trace();
        }
        if self.done.is_empty() {
            let expected = expected(&self.trace.skipped.first);
            let first = self.trace.skipped.first.into_iter().next().unwrap_or_default();
            return Err(TextError::None { lines: self.lines, expected, first });
        }
        Ok(self.done)
    }
}

/// What a text should be that begins with these lines.
fn expected(first: &[String]) -> &'static str {
    let is_graph = |line: &String| {
        line.split_once(')').is_some_and(|(cpu, rest)| {
            cpu.trim().bytes().all(|byte| byte.is_ascii_digit()) && rest.contains('|')
        })
    };
    // Of perf sched timehist, its summary, latency, and map.
    let is_perf_sched = |line: &String| {
        ["sch delay", "sched-in", "Avg delay ms"].iter().any(|column| line.contains(column))
            || (line.contains('*') && line.contains(" secs"))
    };
    if first.iter().take(1).any(is_graph) {
        "function_graph has no times by default, and without them nothing can be late: set the \
         trace options funcgraph-abstime and funcgraph-proc"
    } else if first.iter().any(is_perf_sched) {
        "perf sched timehist, latency and map hold no events: run `perf script -i perf.data > \
         FILE` where its perf.data is, then `rtproof explain FILE`"
    } else {
        "expected the kernel's `trace` file, trace-cmd report, perf script, or what rtla prints \
         with --auto-analysis"
    }
}

/// Events that hold what an application wrote into the trace.
const MARKS: [&str; 3] = ["tracing_mark_write", "print", "bprint"];

/// `hit latency threshold (215 > 100)`, in microseconds: cyclictest --breaktrace.
fn marked_ns(text: &str) -> Option<u64> {
    let (_, behind) = text.split_once("hit latency threshold (")?;
    behind.split_once(" >")?.0.trim().parse::<u64>().ok()?.checked_mul(1_000)
}

/// What people write where they left lines out.
fn is_left_out(line: &str) -> bool {
    let line = line.to_ascii_lowercase();
    let is_mark = !line.contains(char::is_alphanumeric);
    is_mark
        || line.starts_with("...")
        || line.starts_with("[...")
        || ["omit", "snip", "abbrev", "left out", "truncated", "[ cut", "[cut", "<cut", "skipped"]
            .iter()
            .any(|word| line.contains(word))
}

/// A line of a stack of perf script: `  ffffffff8100 function+0x1 ([kernel.kallsyms])`.
fn perf_frame(line: &str) -> Option<&str> {
    let (address, rest) = line.strip_prefix(['\t', ' '])?.trim_start().split_once(' ')?;
    let is_address = address.len() >= 6 && address.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_address && rest.ends_with(')')).then_some(rest)
}

impl TextTrace {
    /// The events round the wake-up that the trace is about, of those that were kept.
    pub fn window(&self) -> Option<Window> {
        let subject = self.subject?;
        let (from_ns, _) = span(&subject);
        // The last switch before shows the task at the beginning of the window.
        let is_before = |event: &&Event| {
            event.cpu == subject.cpu
                && event.at_ns < from_ns
                && matches!(event.what, EventData::Switch { .. })
        };
        let carried = self.events.iter().rfind(is_before);
        Some(self.window_of(&subject, carried, &self.events))
    }

    /// The events round a wake-up. `carried`: the last switch of its CPU before them.
    pub fn window_of(&self, subject: &WakeUp, carried: Option<&Event>, events: &[Event]) -> Window {
        let (from_ns, to_ns) = span(subject);
        let inside = events.iter().filter(|event| (from_ns..=to_ns).contains(&event.at_ns));
        let mut events: Vec<Event> = carried.into_iter().chain(inside).cloned().collect();
        events.sort_by_key(|event| event.at_ns);
        let own = || events.iter().filter(|event| event.cpu == subject.cpu);
        let lost = self.lost.iter().filter(|(cpu, _)| *cpu == subject.cpu).map(|(_, lost)| *lost);
        let mut window = Window {
            cpu: subject.cpu,
            from_ns: own().next().map_or(from_ns, |first| first.at_ns.max(from_ns)),
            // Where the text goes on, the CPU was silent.
            to_ns: if self.end_ns >= to_ns {
                to_ns
            } else {
                own()
                    .next_back()
                    .map_or(self.end_ns, |last| last.at_ns.max(subject.ran_ns.min(self.end_ns)))
            },
            lost: lost.filter(|lost| lost.to_ns > from_ns && lost.from_ns < to_ns).collect(),
            coverage: self.coverage.clone(),
            section: self.section.clone().filter(|_| subject.how == WakeUpBasis::Section),
            ..Window::default()
        };
        window.events = events;
        for tid in window.tids().into_iter().chain([subject.tid]) {
            if let Some(task) = self.tasks.get(&tid) {
                window.tasks.insert(tid, task.clone());
            }
        }
        for address in window.addresses() {
            if let Some(name) = self.symbols.get(&address) {
                window.symbols.insert(address, name.clone());
            }
        }
        window
    }
}

// How much of a text is looked at for one wake-up.

/// Before the wake-up and after it, in a window.
const LEAD_NS: u64 = 2_000_000;

const TAIL_NS: u64 = 200_000;

/// Events that are kept of a window at most; of a longer wait the middle is left out.
const EVENTS_MAX: usize = 20_000;

/// First and last moment of the window of a wake-up.
const fn span(wake: &WakeUp) -> (u64, u64) {
    (wake.due_ns.saturating_sub(LEAD_NS), wake.ran_ns.saturating_add(TAIL_NS))
}
