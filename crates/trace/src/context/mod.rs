//! What a CPU did: its events turned into stretches, each with everything that was stacked up.
//!
//! The top of the stack owns the nanoseconds, so stretches are disjoint by construction:
//! NMI over hard interrupt over (softirq over) task. Softirqs belong to the task under them: on
//! PREEMPT_RT they may be preempted, and go on when the task comes back.

use std::collections::BTreeMap;

use crate::{
    Event, What,
    event::{Name, Vector, flags},
};

/// A hard interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hard {
    /// One with a vector of its own (x86).
    Vector(Vector),
    /// A device's, with the handler's name; on Arm and RISC-V the timer's, too.
    Irq {
        /// Number.
        irq: i32,
        /// Handler.
        name: Name,
    },
    /// An inter-processor interrupt (Arm).
    Ipi {
        /// Why.
        reason: Name,
    },
    /// One that began before the trace and is known from the events' flags only.
    Unknown,
}

impl Hard {
    /// Whether it is the timer's.
    #[must_use]
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
    #[must_use]
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

/// A stretch of time of one CPU in which nothing of this changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// From.
    pub from_ns: u64,
    /// To.
    pub to_ns: u64,
    /// What was going on.
    pub state: State,
    /// `common_flags` of the first event after its beginning, as far as there was one.
    pub flags: u8,
    /// `common_preempt_count` of the same.
    pub preempt: u8,
    /// When the event came whose flags these are.
    pub flags_at_ns: u64,
}

/// What a CPU was doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// Current task; 0: the idle task. Negative: not known.
    pub task: i32,
    /// Priority of the task, as the switch to it told; `None`: it was not seen.
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
}

impl Default for State {
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
        }
    }
}

/// What one CPU did between two times, from its events (by time, other CPUs' are skipped). Events
/// before `from_ns` set the scene.
#[must_use]
pub fn reconstruct(events: &[Event], cpu: u32, from_ns: u64, to_ns: u64) -> Vec<Stretch> {
    let mut machine = Machine::new(from_ns, to_ns);
    for event in events.iter().filter(|event| event.cpu == cpu) {
        machine.take(event);
    }
    machine.finish()
}

/// The state of a CPU while its events are taken.
struct Machine {
    from_ns: u64,
    to_ns: u64,
    at_ns: u64,
    state: State,
    hard: Vec<(Hard, u64)>,
    softirqs: BTreeMap<i32, Vec<u32>>,
    wheels: BTreeMap<i32, u64>,
    works: BTreeMap<i32, u64>,
    done: Vec<Stretch>,
    nmis: Vec<(u64, u64, u64)>,
    /// Since when events without the beginning of an interrupt were flagged to be in one.
    inside: Option<u64>,
}

impl Machine {
    fn new(from_ns: u64, to_ns: u64) -> Self {
        Self {
            from_ns,
            to_ns,
            at_ns: from_ns,
            state: State::default(),
            hard: Vec::new(),
            softirqs: BTreeMap::new(),
            wheels: BTreeMap::new(),
            works: BTreeMap::new(),
            done: Vec::new(),
            nmis: Vec::new(),
            inside: None,
        }
    }

    fn take(&mut self, event: &Event) {
        if self.state.task < 0 {
            // The first event tells who is current; what it was before is the same task.
            self.state.task = match event.what {
                What::Switch { prev_pid, prev_prio, .. } => {
                    self.state.prio = Some(prev_prio);
                    prev_pid
                }
                _ => event.pid,
            };
            self.inside = Some(self.from_ns);
        }
        self.flagged(event);
        self.advance(event);
        self.apply(event);
        self.refresh();
    }

    /// An interrupt whose beginning is not in the trace: only flags tell, from one event that has
    /// them to the next.
    fn flagged(&mut self, event: &Event) {
        let enters = matches!(
            event.what,
            What::IrqEntry { .. } | What::VectorEntry { .. } | What::IpiEntry { .. }
        );
        let is_inside = event.flags & flags::HARDIRQ != 0 && !enters && self.hard.is_empty();
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
            What::Switch { next_pid, next_prio, .. } => {
                self.state.task = *next_pid;
                self.state.prio = Some(*next_prio);
                self.state.since_ns = Some(event.at_ns);
                self.state.idle = None;
                // A switch does not happen inside a hard interrupt: what seemed open was lost.
                self.hard.clear();
                self.state.expiring = None;
            }
            What::VectorEntry { vector } => self.enter(Hard::Vector(*vector), event.at_ns),
            What::IrqEntry { irq, name } => {
                self.enter(Hard::Irq { irq: *irq, name: *name }, event.at_ns);
            }
            What::IpiEntry { reason } => self.enter(Hard::Ipi { reason: *reason }, event.at_ns),
            What::VectorExit { vector } => self.leave(|hard| *hard == Hard::Vector(*vector)),
            What::IrqExit { irq } => {
                self.leave(|hard| matches!(hard, Hard::Irq { irq: open, .. } if open == irq));
            }
            What::IpiExit { .. } => self.leave(|hard| matches!(hard, Hard::Ipi { .. })),
            What::TimerExpire { function, .. } => self.state.expiring = Some(*function),
            What::TimerExpired { .. } => self.state.expiring = None,
            What::SoftirqEntry { vec } => {
                self.softirqs.entry(self.state.task).or_default().push(*vec);
            }
            What::SoftirqExit { vec } => {
                if let Some(open) = self.softirqs.get_mut(&self.state.task)
                    && let Some(at) = open.iter().rposition(|of| of == vec)
                {
                    open.truncate(at);
                }
            }
            What::WheelExpire { function, .. } => {
                self.wheels.insert(self.state.task, *function);
            }
            What::WheelExpired { .. } => {
                self.wheels.remove(&self.state.task);
            }
            What::WorkStart { function, .. } => {
                self.works.insert(event.pid, *function);
            }
            What::WorkEnd { .. } => {
                self.works.remove(&event.pid);
            }
            What::Idle { state } => self.state.idle = Some(*state),
            What::IdleExit => self.state.idle = None,
            What::Nmi { handler, delta_ns } => {
                self.nmis.push((event.at_ns.saturating_sub(*delta_ns), event.at_ns, *handler));
            }
            _ => {}
        }
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
        for (from_ns, to_ns, handler) in self.nmis {
            done = carve(done, from_ns.max(self.from_ns), to_ns.min(self.to_ns), handler);
        }
        done
    }
}

/// Marks a time as spent in a non-maskable interrupt: its event comes when it has ended.
fn carve(stretches: Vec<Stretch>, from_ns: u64, to_ns: u64, handler: u64) -> Vec<Stretch> {
    let mut out = Vec::with_capacity(stretches.len() + 2);
    for stretch in stretches {
        let (from, to) = (stretch.from_ns.max(from_ns), stretch.to_ns.min(to_ns));
        if from >= to {
            out.push(stretch);
            continue;
        }
        let part = |from_ns, to_ns| Stretch { from_ns, to_ns, ..stretch.clone() };
        if stretch.from_ns < from {
            out.push(part(stretch.from_ns, from));
        }
        let mut inside = part(from, to);
        inside.state.nmi = Some(handler);
        out.push(inside);
        if to < stretch.to_ns {
            out.push(part(to, stretch.to_ns));
        }
    }
    out
}

#[cfg(test)]
mod tests;
