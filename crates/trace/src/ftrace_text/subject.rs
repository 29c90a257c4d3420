//! What a text is about: late wake-ups, sections and gaps, found while its events are read.

use std::collections::BTreeMap;

use super::{
    header::{Entry, Header},
    span::{self, span},
};
use crate::{Brief, Event, How, Scanner, Subjects, WakeUp, What, event::Comm, scan::Totals};

/// Wake-ups that are kept: the longest.
const LATE_MAX: usize = 5_000;
/// Events that all their windows may hold: seconds of work; most traces stay far below.
const EVENTS_MAX: f64 = 3e6;
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

    pub fn take(&mut self, entry: Entry<'_>) {
        match entry {
            Entry::Event(event, head) => self.event(event, head),
            Entry::Lost(cpu) => self.scanner.lost(cpu),
        }
    }

    fn event(&mut self, event: &Event, head: &Header) {
        self.first_ns.get_or_insert(event.at_ns);
        match &event.what {
            What::Timerlat { sequence, context, latency_ns } => {
                self.timerlat(event, *sequence, *context, *latency_ns);
            }
            // timerlat writes the stack of its interrupt when it stops.
            What::Stack { .. } => {
                let last = self.timerlat.get_mut(&event.cpu).and_then(|of| of.last);
                self.kept = self.kept.or(last);
            }
            What::Hwlat { inner_ns, outer_ns, .. } => {
                let long_ns = *inner_ns.max(outer_ns);
                self.add(gap(event, event.at_ns.saturating_sub(long_ns), event.at_ns));
            }
            What::Noise { duration_ns, .. }
                if head.tracer == "osnoise" && *duration_ns > self.over_ns =>
            {
                self.add(gap(event, event.at_ns.saturating_sub(*duration_ns), event.at_ns));
            }
            what if head.latency_ns.is_some() => self.of_header(event, what, head),
            _ => {
                let brief = Brief::of(event);
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
            how: How::Measured,
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
    fn of_header(&mut self, event: &Event, what: &What, head: &Header) {
        let Some((tid, _)) = head.task else { return };
        if head.is_section() {
            return;
        }
        match what {
            What::Waking { pid, .. } | What::Wakeup { pid, .. } if *pid == tid => {
                self.woken = Some((event.at_ns, event.cpu));
            }
            What::Switch { next_pid, .. } if *next_pid == tid => {
                let latency_ns = head.latency_ns.unwrap_or(0);
                let due_ns =
                    self.woken.map_or(event.at_ns.saturating_sub(latency_ns), |(at_ns, _)| at_ns);
                let cpu = head.cpu.unwrap_or(event.cpu);
                let how = How::Woken;
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
            handed += (per_ns * (to_ns - from_ns) as f64).min(span::EVENTS_MAX as f64);
            handed <= EVENTS_MAX
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
            (How::Woken, Some((at_ns, _))) => at_ns,
            // Without an entry there is no time either: it counts from its own begin.
            _ => self.first_ns.unwrap_or(0),
        };
        Some(WakeUp { due_ns, ran_ns: due_ns.saturating_add(latency_ns), ..header })
    }

    /// What was counted of each thread.
    pub fn totals(&self) -> impl Iterator<Item = &Totals> {
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
    WakeUp { tid: event.pid, cpu: event.cpu, due_ns, ran_ns, how: How::Gap }
}
