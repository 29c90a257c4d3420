//! What a text is about: late wake-ups, sections and gaps, found while its events are read.

use std::collections::{BTreeMap, VecDeque};

use super::line::{TextEntry, TraceHeader};
use super::{EVENTS_MAX, TextTrace, span};
use crate::event::Comm;
use crate::scan::ThreadTotals;
use crate::{Event, EventBrief, EventData, Lost, Scanner, Subjects, WakeUp, WakeUpBasis, Window};

/// Wake-ups that are kept: the longest.
const LATE_MAX: usize = 5_000;

/// Events that all their windows may hold: seconds of work; most traces stay far below.
const SUBJECT_EVENTS_MAX: f64 = 3e6;

/// Wake-ups whose windows are looked at, however long they are.
const LATE_MIN: usize = 50;

/// Finds what was late in the events of one trace.
#[derive(Debug)]
pub struct Finder {
    over_ns: u64,
    scanner: Scanner,
    /// Those of timerlat by CPU: its thread, and the wake-up that is going on.
    timerlat: BTreeMap<u32, Timerlat>,
    /// What a tracer kept: its wake-up, section or the one at which it stopped.
    kept: Option<WakeUp>,
    /// The wake-up of the task that the header names.
    woken: Option<(u64, u32)>,
    first_ns: Option<u64>,
    late: Vec<WakeUp>,
    count: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Timerlat {
    tid: Option<i32>,
    sequence: u32,
    last: Option<WakeUp>,
}

impl Finder {
    /// Looks for what is more than `over_ns` late.
    pub fn new(subjects: &Subjects, over_ns: u64) -> Self {
        Self {
            over_ns,
            scanner: Scanner::new(subjects, over_ns, false),
            timerlat: BTreeMap::new(),
            kept: None,
            woken: None,
            first_ns: None,
            late: Vec::new(),
            count: 0,
        }
    }

    pub fn take(&mut self, entry: TextEntry<'_>) {
        match entry {
            TextEntry::Event(event, head) => self.event(event, head),
            TextEntry::Lost(cpu) => {
                self.scanner.lost(cpu).into_iter().for_each(|wake| self.add(wake));
            }
        }
    }

    fn event(&mut self, event: &Event, head: &TraceHeader) {
        self.first_ns.get_or_insert(event.at_ns);
        match &event.what {
            EventData::Timerlat { sequence, context, latency_ns } => {
                self.timerlat(event, *sequence, *context, *latency_ns);
            }
            // timerlat writes the stack of its interrupt when it stops.
            EventData::Stack { .. } => {
                let last = self.timerlat.get_mut(&event.cpu).and_then(|of| of.last);
                self.kept = self.kept.or(last);
            }
            EventData::Hwlat { inner_ns, outer_ns, .. } => {
                let long_ns = *inner_ns.max(outer_ns);
                self.add(gap(event, event.at_ns.saturating_sub(long_ns), event.at_ns));
            }
            EventData::Noise { duration_ns, .. }
                if head.tracer == "osnoise" && *duration_ns > self.over_ns =>
            {
                self.add(gap(event, event.at_ns.saturating_sub(*duration_ns), event.at_ns));
            }
            what if head.latency_ns.is_some() => self.of_header(event, what, head),
            _ => {
                let brief = EventBrief::of(event);
                let Event { at_ns, cpu, pid, flags, .. } = *event;
                let before = self.scanner.current(at_ns, cpu, pid, flags);
                let at_it = self.scanner.feed_brief(at_ns, cpu, &brief);
                [before, at_it].into_iter().flatten().for_each(|wake| self.add(wake));
            }
        }
    }

    fn timerlat(&mut self, event: &Event, sequence: u32, context: u32, latency_ns: u64) {
        let of = self.timerlat.entry(event.cpu).or_default();
        if context > 0 {
            of.tid = Some(event.pid);
        }
        // The same wake-up goes on from the interrupt to the thread and back to user mode.
        let before = of.last.filter(|_| of.sequence == sequence);
        of.sequence = sequence;
        let wake = WakeUp {
            tid: of.tid.unwrap_or(-1),
            cpu: event.cpu,
            due_ns: event.at_ns.saturating_sub(latency_ns),
            ran_ns: event.at_ns,
            how: WakeUpBasis::Measured,
        };
        of.last = Some(wake);
        // The interrupt's own latency is part of the thread's, if that follows.
        if let Some(before) = before.filter(|before| before.latency_ns() > self.over_ns)
            && let Some(at) = self.late.iter().rposition(|late| *late == before)
        {
            self.late.remove(at);
            self.count -= 1;
        }
        if latency_ns > self.over_ns {
            self.add(wake);
        }
    }

    /// The task that the header names is woken, and runs.
    fn of_header(&mut self, event: &Event, what: &EventData, head: &TraceHeader) {
        let Some((tid, _)) = head.task else { return };
        if head.is_section() {
            return;
        }
        match what {
            EventData::Waking { pid, .. } | EventData::Wakeup { pid, .. } if *pid == tid => {
                self.woken = Some((event.at_ns, event.cpu));
            }
            EventData::Switch { next_pid, .. } if *next_pid == tid => {
                let latency_ns = head.latency_ns.unwrap_or(0);
                let due_ns =
                    self.woken.map_or(event.at_ns.saturating_sub(latency_ns), |(at_ns, _)| at_ns);
                let cpu = head.cpu.unwrap_or(event.cpu);
                let how = WakeUpBasis::Woken;
                self.kept = Some(WakeUp { tid, cpu, due_ns, ran_ns: event.at_ns, how });
            }
            _ => {}
        }
    }

    fn add(&mut self, wake: WakeUp) {
        self.count += 1;
        self.late.push(wake);
        if self.late.len() >= 2 * LATE_MAX {
            self.late.sort_by_key(|wake| std::cmp::Reverse(wake.latency_ns()));
            self.late.truncate(LATE_MAX);
        }
    }

    /// What was found, the longest first, as far as its windows can be looked at, and how many
    /// there were in all. `header`: what the header says of a trace that keeps one latency;
    /// `events`, `end_ns`: how many the trace has, and when it ends.
    pub fn finish(
        mut self,
        header: Option<WakeUp>,
        events: u64,
        end_ns: u64,
    ) -> (Vec<WakeUp>, u64) {
        if let Some(kept) = self.kept(header) {
            let is_new = !self.late.contains(&kept);
            self.count += u64::from(is_new);
            self.late.retain(|wake| *wake != kept);
            self.late.push(kept);
        }
        self.late.sort_by_key(|wake| std::cmp::Reverse(wake.latency_ns()));
        self.late.truncate(LATE_MAX);
        let all_ns = end_ns.saturating_sub(self.first_ns.unwrap_or(0)).max(1);
        let per_ns = events as f64 / all_ns as f64;
        let mut handed = 0.0;
        let is_within = |wake: &&WakeUp| {
            let (from_ns, to_ns) = span(wake);
            handed += (per_ns * (to_ns - from_ns) as f64).min(EVENTS_MAX as f64);
            handed <= SUBJECT_EVENTS_MAX
        };
        let within = self.late.iter().take_while(is_within).count();
        self.late.truncate(within.max(LATE_MIN));
        (self.late, self.count)
    }

    /// What the trace is about: the one wake-up or section that its tracer kept, or at which it
    /// stopped.
    pub fn kept(&self, header: Option<WakeUp>) -> Option<WakeUp> {
        self.kept.or_else(|| self.of_latency(header?))
    }

    /// The text ends before the task ran, or is about a section.
    fn of_latency(&self, header: WakeUp) -> Option<WakeUp> {
        let latency_ns = header.latency_ns();
        let due_ns = match (header.how, self.woken) {
            (WakeUpBasis::Woken, Some((at_ns, _))) => at_ns,
            // Without an entry there is no time either: it counts from its own begin.
            _ => self.first_ns.unwrap_or(0),
        };
        Some(WakeUp { due_ns, ran_ns: due_ns.saturating_add(latency_ns), ..header })
    }

    /// What was counted of each thread.
    pub fn totals(&self) -> impl Iterator<Item = &ThreadTotals> {
        self.scanner.totals()
    }

    /// How many wake-ups were counted.
    pub fn wake_ups(&self) -> u64 {
        self.totals().map(|of| of.wake_ups).sum()
    }

    /// The last name of a thread that is looked for.
    pub fn names(&self) -> impl Iterator<Item = (i32, Comm)> {
        self.scanner.totals().map(|of| (of.tid, of.comm))
    }
}

fn gap(event: &Event, due_ns: u64, ran_ns: u64) -> WakeUp {
    WakeUp { tid: event.pid, cpu: event.cpu, due_ns, ran_ns, how: WakeUpBasis::Gap }
}

// What `rtla timerlat --auto-analysis` prints when it stops: its numbers, unchanged.

/// The analysis that `rtla timerlat --auto-analysis` prints, by CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtlaText {
    /// By CPU, in the order of the text.
    pub cpus: Vec<RtlaCpu>,
}

/// What rtla said of one CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtlaCpu {
    pub cpu: u32,
    /// The parts, in the order of the text; the last of them, behind the rule, is the latency.
    pub parts: Vec<RtlaPart>,
    /// Stack of the thread that was in the way, innermost first.
    pub stack: Vec<String>,
}

/// One of its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtlaPart {
    /// What it is, e.g. `IRQ handler delay`.
    pub name: String,
    /// How long; `None`: unknown.
    pub ns: Option<u64>,
    /// Hundredths of a percent of the latency, as reported.
    pub share_e4: Option<u32>,
    /// A remark in parentheses, e.g. `exit from idle`.
    pub remark: Option<String>,
    /// Tasks or interrupts: name, number, time of each.
    pub tasks: Vec<(String, i32, Option<u64>)>,
}

impl RtlaCpu {
    /// The part of a name.
    pub fn part(&self, name: &str) -> Option<&RtlaPart> {
        self.parts.iter().find(|part| part.name == name)
    }
}

/// Reads what rtla printed. `None`: it did not analyse anything there.
pub fn parse_rtla(text: &str) -> Option<RtlaText> {
    let mut found = RtlaText::default();
    for line in text.lines() {
        let trimmed = line.trim();
        if let Some(rest) = trimmed.strip_prefix("## CPU ") {
            let cpu = rest.split_whitespace().next().and_then(|cpu| cpu.parse().ok());
            if let Some(cpu) = cpu {
                found.cpus.push(RtlaCpu { cpu, ..RtlaCpu::default() });
            }
            continue;
        }
        let Some(cpu) = found.cpus.last_mut() else { continue };
        if let Some(symbol) = trimmed.strip_prefix("-> ") {
            cpu.stack.push(symbol.trim().to_owned());
        } else if let Some(part) = part(trimmed) {
            cpu.parts.push(part);
        } else if let (Some(who), Some(part)) = (task_and_time(trimmed), cpu.parts.last_mut()) {
            part.tasks.push(who);
        }
    }
    (!found.cpus.is_empty()).then_some(found)
}

/// `IRQ handler delay:   (exit from idle)   27.49 us (65.52 %)`, `Blocking thread:`
fn part(text: &str) -> Option<RtlaPart> {
    let (name, rest) = text.split_once(':')?;
    // Of those that are indented the number follows at once.
    if rest.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-') {
        return None;
    }
    let mut part = RtlaPart { name: name.trim().to_owned(), ..RtlaPart::default() };
    let mut rest = rest.trim();
    if let Some((remark, behind)) = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        part.remark = Some(remark.to_owned());
        rest = behind.trim();
    }
    if rest.is_empty() {
        return Some(part);
    }
    let (us, behind) = rest.split_once(" us")?;
    part.ns = Some(decimal(us.trim(), 3)?);
    let share = behind.trim().strip_prefix('(').and_then(|share| share.split_once('%'));
    let share = share.and_then(|(share, _)| decimal(share.trim(), 2));
    part.share_e4 = share.and_then(|share| u32::try_from(share).ok());
    Some(part)
}

/// `objtool:49256   3.79 us`
fn task_and_time(text: &str) -> Option<(String, i32, Option<u64>)> {
    let mut words = text.rsplitn(2, ':');
    let (rest, name) = (words.next()?, words.next()?);
    let mut words = rest.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let ns = match (words.next(), words.next()) {
        (Some(us), Some("us")) => Some(decimal(us, 3)?),
        _ => None,
    };
    Some((name.trim().to_owned(), number, ns))
}

/// `27.49` with so many digits behind the point, as a whole number.
fn decimal(text: &str, digits: usize) -> Option<u64> {
    let (whole, parts) = text.split_once('.').unwrap_or((text, ""));
    if !parts.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let parts = format!("{:0<digits$}", parts.get(..digits).unwrap_or(parts));
    let scale = 10_u64.pow(u32::try_from(digits).ok()?);
    whole.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(parts.parse().ok()?)
}

// The windows of late wake-ups, taken while a text is read a second time: only the events round
// those that are still to come are kept.

/// Events of all windows together, where they lie closer than elsewhere in the trace.
const WINDOW_EVENTS_MAX: usize = 10_000_000;

/// Takes windows out of a stream of events.
#[derive(Debug)]
pub struct Windows<'a> {
    trace: &'a TextTrace,
    /// By the end of their windows, the first one last.
    waiting: Vec<WakeUp>,
    /// From here on events are of use.
    from_ns: u64,
    events: VecDeque<Event>,
    switches: BTreeMap<u32, Event>,
    /// What was left out of the middle.
    left_out: Option<Lost>,
    /// Events that were looked through for windows.
    handed: usize,
    /// Windows that were too much.
    unexamined: u64,
}

impl<'a> Windows<'a> {
    /// Of these wake-ups of a trace.
    pub fn new(trace: &'a TextTrace, mut late: Vec<WakeUp>) -> Self {
        late.sort_by_key(|wake| std::cmp::Reverse(span(wake).1));
        let mut windows = Self {
            trace,
            waiting: late,
            from_ns: 0,
            events: VecDeque::new(),
            switches: BTreeMap::new(),
            left_out: None,
            handed: 0,
            unexamined: 0,
        };
        windows.advance();
        windows
    }

    /// The next event; hands on the windows that end before it.
    pub fn take(&mut self, event: &Event, found: &mut dyn FnMut(&WakeUp, Window)) {
        while self.waiting.last().is_some_and(|wake| span(wake).1 < event.at_ns) {
            self.next(found);
        }
        if event.at_ns >= self.from_ns && !self.waiting.is_empty() {
            if self.events.len() >= EVENTS_MAX {
                self.leave_out();
            }
            self.events.push_back(event.clone());
        } else {
            self.carry(event);
        }
    }

    /// Makes room: many at once, so that the time stays linear. The beginning shows the task, the
    /// end what came last; what is between them is unknown from then on.
    fn leave_out(&mut self) {
        let mut gone = self.events.drain(EVENTS_MAX / 2..EVENTS_MAX / 4 * 3);
        let first_ns = gone.next().map_or(0, |event| event.at_ns);
        let to_ns = gone.next_back().map_or(first_ns, |event| event.at_ns);
        let before = self.left_out;
        self.left_out = Some(Lost {
            from_ns: before.map_or(first_ns, |lost| lost.from_ns),
            to_ns,
            count: Some(before.and_then(|lost| lost.count).unwrap_or(0) + EVENTS_MAX as u64 / 4),
        });
    }

    /// The text ends: hands on the windows that are left. How many were not handed on.
    pub fn finish(mut self, found: &mut dyn FnMut(&WakeUp, Window)) -> u64 {
        while !self.waiting.is_empty() {
            self.next(found);
        }
        self.unexamined
    }

    fn next(&mut self, found: &mut dyn FnMut(&WakeUp, Window)) {
        let Some(wake) = self.waiting.pop() else { return };
        let (from_ns, _) = span(&wake);
        self.handed += self.events.len();
        if self.handed > WINDOW_EVENTS_MAX {
            self.unexamined += 1;
            return self.advance();
        }
        let events = self.events.make_contiguous();
        let is_before = |event: &&Event| {
            event.cpu == wake.cpu
                && event.at_ns < from_ns
                && matches!(event.what, EventData::Switch { .. })
        };
        let carried = events.iter().rfind(is_before);
        let carried = carried.or_else(|| self.switches.get(&wake.cpu));
        let mut window = self.trace.window_of(&wake, carried, events);
        if let Some(lost) = self.left_out.filter(|lost| lost.to_ns > from_ns) {
            window.cut = true;
            window.lost.push(lost);
        }
        found(&wake, window);
        self.advance();
    }

    /// Drops the events that no window needs any more.
    fn advance(&mut self) {
        let begins = self.waiting.iter().map(|wake| span(wake).0);
        self.from_ns = begins.min().unwrap_or(u64::MAX);
        while self.events.front().is_some_and(|event| event.at_ns < self.from_ns) {
            if let Some(event) = self.events.pop_front() {
                self.carry(&event);
            }
        }
        if self.events.is_empty() {
            self.left_out = None;
        }
    }

    fn carry(&mut self, event: &Event) {
        if matches!(event.what, EventData::Switch { .. }) {
            self.switches.insert(event.cpu, event.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "## CPU 0 hit stop tracing, analyzing it ##\n\
        \x20 IRQ handler delay:        \t(exit from idle)\t    27.49 us (65.52 %)\n\
        \x20 IRQ latency:                                   28.1 us\n\
        \x20 Blocking thread:                                3.79 us (9.03 %)\n\
        \x20            kworker/u8:1:49256                   3.79 us\n\
        \x20   Blocking thread stack trace\n\
        \x20               -> timerlat_irq\n\
        -------------------------------------------\n\
        \x20 Thread latency:                                41.96 us (100%)\n";

    #[test]
    fn rtla_s_numbers_are_kept() {
        let text = parse_rtla(TEXT).expect("an analysis");
        let cpu = &text.cpus[0];
        let delay = cpu.part("IRQ handler delay").expect("a part");
        assert_eq!((delay.ns, delay.share_e4), (Some(27_490), Some(6_552)));
        assert_eq!(delay.remark.as_deref(), Some("exit from idle"));
        assert_eq!(cpu.part("IRQ latency").and_then(|part| part.ns), Some(28_100));
        let blocking = cpu.part("Blocking thread").expect("a part");
        assert_eq!(blocking.tasks, [("kworker/u8:1".to_owned(), 49_256, Some(3_790))]);
        assert_eq!(cpu.stack, ["timerlat_irq"]);
        assert_eq!(cpu.parts.last().and_then(|part| part.share_e4), Some(10_000));
        assert_eq!(parse_rtla("Timer Latency\n"), None);
    }
}
