//! What a CPU did: its events turned into stretches, each with everything that was stacked up.
//!
//! The top of the stack owns the nanoseconds, so stretches are disjoint by construction:
//! NMI over hard interrupt over (softirq over) task. Softirqs belong to the task under them: on
//! PREEMPT_RT they may be preempted, and go on when the task comes back.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::event::{HandlerName, Vector};
use crate::{Event, EventData, event};

/// A hard interrupt, by vector, by number or by the reason of its IPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hard {
    /// One with a vector of its own (x86).
    Vector(Vector),
    /// A device's, with the handler's name; on Arm and RISC-V the timer's, too.
    Irq { irq: i32, name: HandlerName },
    /// An inter-processor interrupt (Arm).
    Ipi { reason: HandlerName },
    /// One that began before the trace and is known from the events' flags only.
    Unknown,
}

impl Hard {
    /// Whether it is the timer's.
    pub fn is_timer(&self) -> bool {
        match self {
            Self::Vector(vector) => *vector == Vector::LocalTimer,
            // arch_timer, riscv-timer, hpet, LAPIC-less PIT: the name is all there is.
            Self::Irq { name, .. } => {
                let name = String::from_utf8_lossy(name.as_bytes());
                name.contains("timer") || name.starts_with("hpet") || name.contains("local_clock")
            }
            Self::Ipi { reason } => reason.as_bytes().starts_with(b"Timer broadcast"),
            Self::Unknown => false,
        }
    }

    /// Whether another CPU sent it.
    pub fn is_ipi(&self) -> bool {
        match self {
            Self::Vector(vector) => matches!(
                vector,
                Vector::Reschedule | Vector::CallFunction | Vector::CallFunctionSingle
            ),
            Self::Ipi { .. } => !self.is_timer(),
            Self::Irq { .. } | Self::Unknown => false,
        }
    }
}

impl fmt::Display for Hard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vector(vector) => f.write_str(vector.title()),
            Self::Irq { irq, name } => write!(f, "IRQ {irq} {name}"),
            Self::Ipi { reason } => write!(f, "{reason}"),
            Self::Unknown => f.write_str("an interrupt that began before the trace"),
        }
    }
}

/// A stretch of time of one CPU in which nothing of this changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub from_ns: u64,
    pub to_ns: u64,
    /// What was going on.
    pub state: CpuState,
    /// `common_flags` of the first event after its beginning, as far as there was one.
    pub flags: u8,
    /// `common_preempt_count` of the same.
    pub preempt: u8,
    /// When the event came whose flags these are.
    pub flags_at_ns: u64,
}

/// What a CPU was doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuState {
    /// Current task; 0: the idle task. Negative: not known.
    pub task: i32,
    /// Priority of the task, as the switch to it recorded; `None`: it was not seen.
    pub prio: Option<i32>,
    /// When the task was switched to; `None`: before the trace.
    pub since_ns: Option<u64>,
    /// Innermost hard interrupt and when it began.
    pub hard: Option<(Hard, u64)>,
    /// Function of the high-resolution timer that expires in it.
    pub expiring: Option<u64>,
    /// Softirq of the task, innermost.
    pub softirq: Option<u32>,
    /// Function of the wheel timer that runs in it.
    pub wheel: Option<u64>,
    /// Function of the work item that the task runs.
    pub work: Option<u64>,
    /// Idle state, while the CPU sleeps.
    pub idle: Option<u32>,
    /// In a non-maskable interrupt with this handler.
    pub nmi: Option<u64>,
    /// The switch to the task was not recorded: a later event shows that it was current.
    pub inferred: bool,
}

impl Default for CpuState {
    fn default() -> Self {
        Self {
            task: -1,
            prio: None,
            since_ns: None,
            hard: None,
            expiring: None,
            softirq: None,
            wheel: None,
            work: None,
            idle: None,
            nmi: None,
            inferred: false,
        }
    }
}

/// What one CPU did between two times, from its events (by time, other CPUs' are skipped). Events
/// before `from_ns` set the scene.
pub fn reconstruct(events: &[Event], cpu: u32, from_ns: u64, to_ns: u64) -> Vec<Stretch> {
    let own = || events.iter().filter(|event| event.cpu == cpu);
    let mut machine = Machine::new(from_ns, to_ns);
    machine.ends = Ends::of(own());
    // Tasks that no event names: they are looked for once.
    let mut unnamed = BTreeSet::new();
    let mut prio_at = |event: &Event| {
        let tid = current(event);
        let prio = if unnamed.contains(&tid) { None } else { prio_of(events, event) };
        if prio.is_none() {
            unnamed.insert(tid);
        }
        prio
    };
    for event in own() {
        // osnoise writes its events inside of the switch, when the old task is still current.
        let is_reliable = !matches!(event.what, EventData::Noise { .. });
        if machine.state.task >= 0 && is_reliable && machine.state.task != current(event) {
            machine.infer(event, prio_at(event));
        }
        machine.take(event);
        if machine.state.prio.is_none() && is_reliable && machine.state.task == current(event) {
            machine.state.prio = prio_at(event);
        }
    }
    machine.finish()
}

/// The task that is current when an event is written.
const fn current(event: &Event) -> i32 {
    match event.what {
        EventData::Switch { prev_pid, .. } => prev_pid,
        _ => event.pid,
    }
}

/// The priority of the task that is current at an event: as the last event before named it, which
/// is what it was switched to with, else the next. It may have changed it meanwhile, and leave with
/// another.
fn prio_of(events: &[Event], at: &Event) -> Option<i32> {
    let tid = current(at);
    let first = events.partition_point(|event| event.at_ns < at.at_ns);
    let named = |event: &Event| match event.what {
        EventData::Switch { prev_pid, prev_prio, .. } if prev_pid == tid => Some(prev_prio),
        EventData::Switch { next_pid, next_prio, .. } if next_pid == tid => Some(next_prio),
        EventData::Waking { pid, prio, .. } | EventData::Wakeup { pid, prio, .. } if pid == tid => {
            Some(prio)
        }
        EventData::PiSetprio { pid, old_prio, new_prio, .. } if pid == tid => {
            Some(if event.at_ns < at.at_ns { new_prio } else { old_prio })
        }
        _ => None,
    };
    let before = events[..first].iter().rev().find_map(named);
    before.or_else(|| events[first..].iter().find_map(named))
}

/// Which kinds of interrupts have ends in the events. Without ends their begins say nothing of how
/// long they took.
#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    vectors: bool,
    irqs: bool,
    ipis: bool,
    softirqs: bool,
}

impl Ends {
    fn of<'a>(events: impl Iterator<Item = &'a Event>) -> Self {
        events.fold(Self::default(), |mut ends, event| {
            match event.what {
                EventData::VectorExit { .. } => ends.vectors = true,
                EventData::IrqExit { .. } => ends.irqs = true,
                EventData::IpiExit { .. } => ends.ipis = true,
                EventData::SoftirqExit { .. } => ends.softirqs = true,
                _ => {}
            }
            ends
        })
    }

    const fn any_hard(self) -> bool {
        self.vectors || self.irqs || self.ipis
    }
}

/// Longest time between two entries of a text that are as good as at the same time.
const ADJACENT_NS: u64 = 2_000;

/// The state of a CPU while its events are taken.
struct Machine {
    from_ns: u64,
    to_ns: u64,
    at_ns: u64,
    state: CpuState,
    hard: Vec<(Hard, u64)>,
    softirqs: BTreeMap<i32, Vec<u32>>,
    wheels: BTreeMap<i32, u64>,
    works: BTreeMap<i32, u64>,
    done: Vec<Stretch>,
    /// Written at its end: from, to, kind.
    over: Vec<(u64, u64, Over)>,
    ends: Ends,
    /// Since when events without the beginning of an interrupt were flagged to be in one.
    inside: Option<u64>,
}

impl Machine {
    fn new(from_ns: u64, to_ns: u64) -> Self {
        Self {
            from_ns,
            to_ns,
            at_ns: from_ns,
            state: CpuState::default(),
            hard: Vec::new(),
            softirqs: BTreeMap::new(),
            wheels: BTreeMap::new(),
            works: BTreeMap::new(),
            done: Vec::new(),
            over: Vec::new(),
            ends: Ends::default(),
            inside: None,
        }
    }

    fn take(&mut self, event: &Event) {
        if self.state.task < 0 {
            // The first event shows the current task; it was current before, too.
            self.state.task = match event.what {
                EventData::Switch { prev_pid, prev_prio, .. } => {
                    self.state.prio = Some(prev_prio);
                    prev_pid
                }
                _ => event.pid,
            };
            self.inside = Some(self.from_ns);
        }
        self.flagged(event);
        self.advance(event);
        // From this event on it is known.
        self.state.inferred = false;
        self.apply(event);
        self.refresh();
    }

    /// Another task is current than the one that was switched to last: the switch between them was
    /// not recorded. What was since the last event is taken for the new task's, unless that is
    /// next to nothing.
    fn infer(&mut self, event: &Event, prio: Option<i32>) {
        if event.at_ns.saturating_sub(self.at_ns) <= ADJACENT_NS {
            self.advance(event);
        }
        self.state.task = current(event);
        self.state.prio = prio;
        self.state.since_ns = None;
        self.state.idle = None;
        self.state.inferred = true;
        self.hard.clear();
        self.refresh();
    }

    /// An interrupt whose beginning is not in the trace: known by flags, from one event that has
    /// them to the next.
    fn flagged(&mut self, event: &Event) {
        let enters = matches!(
            event.what,
            EventData::IrqEntry { .. } | EventData::VectorEntry { .. } | EventData::IpiEntry { .. }
        );
        // Where no interrupt's end is recorded, flags do not separate one from the next.
        let is_inside = self.ends.any_hard()
            && event.flags & event::flags::HARDIRQ != 0
            && !enters
            && self.hard.is_empty();
        match self.inside {
            Some(from_ns) if is_inside => self.state.hard = Some((Hard::Unknown, from_ns)),
            _ => self.inside = is_inside.then_some(event.at_ns),
        }
    }

    /// Closes the stretch that ends with this event.
    fn advance(&mut self, event: &Event) {
        let at_ns = event.at_ns.min(self.to_ns);
        if at_ns > self.at_ns {
            self.push(at_ns, event.flags, event.preempt, event.at_ns);
            self.at_ns = at_ns;
        }
    }

    fn push(&mut self, to_ns: u64, flags: u8, preempt: u8, flags_at_ns: u64) {
        let from_ns = self.at_ns;
        if let Some(last) = self.done.last_mut().filter(|last| last.state == self.state) {
            last.to_ns = to_ns;
            return;
        }
        let state = self.state.clone();
        self.done.push(Stretch { from_ns, to_ns, state, flags, preempt, flags_at_ns });
    }

    fn apply(&mut self, event: &Event) {
        match &event.what {
            EventData::Switch { next_pid, next_prio, .. } => {
                self.state.task = *next_pid;
                self.state.prio = Some(*next_prio);
                self.state.since_ns = Some(event.at_ns);
                self.state.idle = None;
                // A switch does not happen inside a hard interrupt: what seemed open was lost.
                self.hard.clear();
                self.state.expiring = None;
            }
            EventData::VectorEntry { vector } if self.ends.vectors => {
                self.enter(Hard::Vector(*vector), event.at_ns);
            }
            EventData::IrqEntry { irq, name } if self.ends.irqs => {
                self.enter(Hard::Irq { irq: *irq, name: *name }, event.at_ns);
            }
            EventData::IpiEntry { reason } if self.ends.ipis => {
                self.enter(Hard::Ipi { reason: *reason }, event.at_ns);
            }
            EventData::VectorExit { vector } => self.leave(|hard| *hard == Hard::Vector(*vector)),
            EventData::IrqExit { irq } => {
                self.leave(|hard| matches!(hard, Hard::Irq { irq: open, .. } if open == irq));
            }
            EventData::IpiExit { .. } => self.leave(|hard| matches!(hard, Hard::Ipi { .. })),
            EventData::TimerExpire { function, .. } => self.state.expiring = Some(*function),
            EventData::TimerExpired { .. } => self.state.expiring = None,
            EventData::SoftirqEntry { vec } if self.ends.softirqs => {
                self.softirqs.entry(self.state.task).or_default().push(*vec);
            }
            EventData::SoftirqExit { vec } => {
                if let Some(open) = self.softirqs.get_mut(&self.state.task)
                    && let Some(at) = open.iter().rposition(|of| of == vec)
                {
                    open.truncate(at);
                }
            }
            EventData::WheelExpire { function, .. } => {
                self.wheels.insert(self.state.task, *function);
            }
            EventData::WheelExpired { .. } => {
                self.wheels.remove(&self.state.task);
            }
            EventData::WorkStart { function, .. } => {
                self.works.insert(event.pid, *function);
            }
            EventData::WorkEnd { .. } => {
                self.works.remove(&event.pid);
            }
            EventData::Idle { state } => self.state.idle = Some(*state),
            EventData::IdleExit => self.state.idle = None,
            EventData::Nmi { handler, delta_ns } => {
                let from_ns = event.at_ns.saturating_sub(*delta_ns);
                self.over.push((from_ns, event.at_ns, Over::Nmi(*handler)));
            }
            EventData::Noise { kind, name, number, start_ns, duration_ns } => {
                self.noise(event.at_ns, kind, *name, *number, (*start_ns, *duration_ns));
            }
            _ => {}
        }
    }

    /// osnoise writes at the end how long an interrupt took, without what interrupted it in turn.
    fn noise(
        &mut self,
        at_ns: u64,
        kind: &HandlerName,
        name: HandlerName,
        irq: i32,
        (start, ns): (u64, u64),
    ) {
        let over = match kind.as_bytes() {
            b"irq" if !self.ends.any_hard() => Over::Hard(Hard::Irq { irq, name }),
            b"softirq" => Over::Softirq(irq.unsigned_abs()),
            b"nmi" => Over::Nmi(0),
            _ => return,
        };
        // Its start is on the local clock: of use only where that is the clock of the trace.
        let shortest_ns = at_ns.saturating_sub(ns);
        let same = start <= shortest_ns && shortest_ns - start <= ns.saturating_add(SAME_CLOCK_NS);
        // What is written later than it ended is not it; a softirq is interrupted, and goes on.
        let ends = |from_ns: u64| match over {
            Over::Softirq(_) => at_ns,
            Over::Hard(_) | Over::Nmi(_) => at_ns.min(from_ns.saturating_add(ns)),
        };
        let from_ns = if same { start } else { shortest_ns };
        self.over.push((from_ns, ends(from_ns), over));
    }

    fn enter(&mut self, hard: Hard, at_ns: u64) {
        self.hard.push((hard, at_ns));
    }

    /// Closes the innermost interrupt that fits, with what is open inside it. One that was never
    /// opened began before the trace, or its beginning was lost.
    fn leave(&mut self, fits: impl Fn(&Hard) -> bool) {
        if let Some(at) = self.hard.iter().rposition(|(hard, _)| fits(hard)) {
            self.hard.truncate(at);
        } else if self.hard.is_empty() {
            self.inside = None;
        }
        if self.hard.is_empty() {
            self.state.expiring = None;
        }
    }

    fn refresh(&mut self) {
        let task = self.state.task;
        self.state.hard = self.hard.last().copied();
        self.state.softirq = self.softirqs.get(&task).and_then(|open| open.last().copied());
        self.state.wheel = self.wheels.get(&task).copied();
        self.state.work = self.works.get(&task).copied();
    }

    fn finish(mut self) -> Vec<Stretch> {
        if self.at_ns < self.to_ns {
            self.push(self.to_ns, 0, 0, self.to_ns);
        }
        let mut done = self.done;
        // What began first contains the others.
        self.over.sort_by_key(|&(from_ns, to_ns, _)| (from_ns, std::cmp::Reverse(to_ns)));
        for (from_ns, to_ns, over) in self.over {
            let (from_ns, to_ns) = (from_ns.max(self.from_ns), to_ns.min(self.to_ns));
            carve(&mut done, from_ns, to_ns, over);
        }
        done
    }
}

/// A start that is earlier than the duration explains, by more than this, is of another clock.
const SAME_CLOCK_NS: u64 = 1_000_000;

/// What an event that is written at the end says of the time before.
#[derive(Clone, Copy, Debug)]
enum Over {
    /// A non-maskable interrupt with this handler.
    Nmi(u64),
    Hard(Hard),
    Softirq(u32),
}

/// Marks a time as spent in something whose event comes when it has ended.
fn carve(done: &mut Vec<Stretch>, from_ns: u64, to_ns: u64, over: Over) {
    let first = done.partition_point(|stretch| stretch.to_ns <= from_ns);
    let end = done.partition_point(|stretch| stretch.from_ns < to_ns);
    if first >= end || from_ns >= to_ns {
        return;
    }
    let mut new = Vec::with_capacity(end - first + 2);
    for stretch in &done[first..end] {
        let part = |from_ns, to_ns| Stretch { from_ns, to_ns, ..stretch.clone() };
        let (from, to) = (stretch.from_ns.max(from_ns), stretch.to_ns.min(to_ns));
        if stretch.from_ns < from {
            new.push(part(stretch.from_ns, from));
        }
        let mut inside = part(from, to);
        match over {
            Over::Nmi(handler) => inside.state.nmi = Some(handler),
            Over::Hard(hard) => inside.state.hard = Some((hard, from_ns)),
            Over::Softirq(vec) => inside.state.softirq = Some(vec),
        }
        new.push(inside);
        if to < stretch.to_ns {
            new.push(part(to, stretch.to_ns));
        }
    }
    done.splice(first..end, new);
}
