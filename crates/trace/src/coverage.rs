//! Which classes of kernel events a source holds: what was not recorded cannot contradict a cause.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::event::Vector;
use crate::{Event, EventData};

/// A class of kernel events that shows one kind of cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventClass {
    /// sched_switch: which task runs.
    Switches,
    /// sched_waking, sched_wakeup: who wakes whom.
    WakeUps,
    /// Begin and end of hard interrupts: of devices, of the timer, between processors.
    Interrupts,
    /// Begin and end of softirqs.
    Softirqs,
    Nmis,
    Idle,
    /// Functions of high-resolution timers.
    Timers,
}

impl EventClass {
    pub const ALL: [Self; 7] = [
        Self::Switches,
        Self::WakeUps,
        Self::Interrupts,
        Self::Softirqs,
        Self::Nmis,
        Self::Idle,
        Self::Timers,
    ];

    /// In words, as what was not recorded.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Switches => "every task switch",
            Self::WakeUps => "wake-ups",
            Self::Interrupts => "begin and end of every interrupt",
            Self::Softirqs => "softirqs",
            Self::Nmis => "non-maskable interrupts",
            Self::Idle => "idle states",
            Self::Timers => "functions of timers",
        }
    }

    /// The class that an event of this name belongs to, e.g. `irq:irq_handler_entry`.
    pub fn of_event(name: &str) -> Option<Self> {
        let (system, event) = name.split_once(':').unwrap_or(("", name));
        Some(match (system, event) {
            (_, "sched_switch") => Self::Switches,
            (_, "sched_waking" | "sched_wakeup" | "sched_wakeup_new") => Self::WakeUps,
            (_, "softirq_entry" | "softirq_exit") => Self::Softirqs,
            (_, "irq_handler_entry" | "irq_handler_exit" | "ipi_entry" | "ipi_exit") => {
                Self::Interrupts
            }
            ("irq_vectors", _) => Self::Interrupts,
            ("nmi", _) => Self::Nmis,
            (_, "cpu_idle") => Self::Idle,
            (_, "hrtimer_expire_entry" | "hrtimer_expire_exit") => Self::Timers,
            _ => return None,
        })
    }
}

/// How much of a class a source holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Extent {
    None,
    /// Some of it, or no event that would prove that all are there.
    Partial,
    Complete,
}

/// How much a source holds of each class. The default is a recording of our own: all that is not
/// named is complete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Coverage(BTreeMap<EventClass, Extent>);

impl Coverage {
    pub fn none() -> Self {
        Self(EventClass::ALL.into_iter().map(|class| (class, Extent::None)).collect())
    }

    /// How much of a class there is.
    pub fn of(&self, class: EventClass) -> Extent {
        self.0.get(&class).copied().unwrap_or(Extent::Complete)
    }

    /// Whether there is all of a class.
    pub fn has(&self, class: EventClass) -> bool {
        self.of(class) == Extent::Complete
    }

    /// Whether everything is complete.
    pub fn is_all(&self) -> bool {
        EventClass::ALL.into_iter().all(|class| self.has(class))
    }

    /// The classes that are not complete, in words.
    pub fn without(&self) -> String {
        let lacking = EventClass::ALL.into_iter().filter(|&class| !self.has(class));
        lacking.map(EventClass::text).collect::<Vec<_>>().join(", ")
    }

    /// At most so much of a class.
    pub fn limit(&mut self, class: EventClass, extent: Extent) {
        let extent = extent.min(self.of(class));
        if extent == Extent::Complete {
            self.0.remove(&class);
        } else {
            self.0.insert(class, extent);
        }
    }

    /// Entries are missing, and it is not known which: nothing is complete.
    pub fn thin(&mut self) {
        for class in EventClass::ALL {
            self.limit(class, Extent::Partial);
        }
    }
}

/// Which kinds of events came so far: a kind that came was recorded, one that did not perhaps not.
#[derive(Clone, Debug, Default)]
pub struct RecordedKinds {
    kinds: u32,
    fit: Fit,
    cpus: BTreeSet<u32>,
    /// CPUs to which a task was sent before their first event, and since when.
    silent: BTreeMap<u32, u64>,
    end_ns: u64,
}

/// Whether the events of a source fit together: where many do not, entries are missing that
/// nobody marks, as of one that was recorded for some tasks alone, or from which lines were taken.
#[derive(Clone, Debug, Default)]
struct Fit {
    on: BTreeMap<u32, OnCpu>,
    /// Interrupts of which begins, and of which ends are recorded.
    begins: BTreeSet<Interrupt>,
    ends: BTreeSet<Interrupt>,
    gaps: u64,
    is_over: bool,
}

/// What is under way on a CPU.
#[derive(Clone, Debug, Default)]
struct OnCpu {
    /// The task that was switched to.
    task: Option<i32>,
    open: Vec<Interrupt>,
    has_begun: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Interrupt {
    Vector(Vector),
    Irq(i32),
}

/// A CPU to which a task is sent switches to it sooner than that, or another takes the task away.
const SILENT_NS: u64 = 10_000_000;

/// CPUs, interrupts of one machine, and those inside each other, that are kept apart at most.
const CPUS_MAX: u32 = 8_192;

const INTERRUPTS_MAX: usize = 4_096;

const OPEN_MAX: usize = 16;

/// Most events that do not fit: where a recording begins or ends, kind by kind, some may be alone.
const GAPS_MAX: u64 = 2;

impl Fit {
    fn take(&mut self, event: &Event) {
        let (is_begin, of) = match event.what {
            EventData::Switch { prev_pid, next_pid, .. } => {
                return self.switch(event.cpu, prev_pid, next_pid);
            }
            EventData::VectorEntry { vector } => (true, Interrupt::Vector(vector)),
            EventData::VectorExit { vector } => (false, Interrupt::Vector(vector)),
            EventData::IrqEntry { irq, .. } => (true, Interrupt::Irq(irq)),
            EventData::IrqExit { irq } => (false, Interrupt::Irq(irq)),
            _ => return,
        };
        let on = self.on.entry(event.cpu).or_default();
        let at = on.open.iter().rposition(|open| *open == of);
        let inner = if is_begin { at } else { at.map(|at| at + 1) };
        let without_end = on.open.drain(inner.unwrap_or(on.open.len())..);
        let mut is_gap = without_end.fold(false, |is_gap, of| is_gap | self.ends.contains(&of));
        let is_new = |set: &BTreeSet<Interrupt>| set.len() < INTERRUPTS_MAX;
        if is_begin {
            if on.open.len() >= OPEN_MAX {
                on.open.clear();
            }
            on.open.push(of);
            on.has_begun = true;
            if is_new(&self.begins) {
                self.begins.insert(of);
            }
        } else {
            match at {
                Some(_) => drop(on.open.pop()),
                None => is_gap |= on.has_begun && self.begins.contains(&of),
            }
            if is_new(&self.ends) {
                self.ends.insert(of);
            }
        }
        self.gaps += u64::from(is_gap);
    }

    /// Some kernels leave out switches from the idle task.
    fn switch(&mut self, cpu: u32, from: i32, to: i32) {
        let on = self.on.entry(cpu).or_default();
        let before = on.task.replace(to);
        let is_gap = before.is_some_and(|tid| tid != 0 && tid != from);
        // No interrupt is left so.
        let without_end = on.open.drain(..).fold(false, |is, of| is | self.ends.contains(&of));
        self.gaps += u64::from(is_gap) + u64::from(without_end);
    }
}

mod kind {
    pub(super) const SWITCH: u32 = 1;
    pub(super) const WAKE: u32 = 1 << 1;
    pub(super) const TIMER_ENTRY: u32 = 1 << 2;
    pub(super) const TIMER_EXIT: u32 = 1 << 3;
    pub(super) const VECTOR: u32 = 1 << 4;
    pub(super) const IRQ_ENTRY: u32 = 1 << 5;
    pub(super) const IRQ_EXIT: u32 = 1 << 6;
    /// The timer's interrupt is one of a device (Arm, RISC-V).
    pub(super) const TIMER_IRQ: u32 = 1 << 7;
    pub(super) const SOFTIRQ_ENTRY: u32 = 1 << 8;
    pub(super) const SOFTIRQ_EXIT: u32 = 1 << 9;
    /// softirq_raise is recorded with the others of its system, irq.
    pub(super) const SOFTIRQ_RAISE: u32 = 1 << 10;
    pub(super) const NMI: u32 = 1 << 11;
    pub(super) const IDLE: u32 = 1 << 12;
    pub(super) const IDLE_EXIT: u32 = 1 << 13;
    /// osnoise:irq_noise and its like: written at the end, with the duration.
    pub(super) const NOISE_IRQ: u32 = 1 << 14;
    pub(super) const NOISE_THREAD: u32 = 1 << 15;
    pub(super) const NOISE_SOFTIRQ: u32 = 1 << 16;
    pub(super) const EXPIRE: u32 = 1 << 17;
    pub(super) const EXPIRED: u32 = 1 << 18;
}

impl RecordedKinds {
    /// An event came; in order of time on each CPU.
    pub fn take(&mut self, event: &Event) {
        self.was_on(event.cpu, event.at_ns);
        if let EventData::Wakeup { target_cpu: to_cpu, .. } | EventData::Migrate { to_cpu, .. } =
            event.what
            && to_cpu < CPUS_MAX
            && !self.cpus.contains(&to_cpu)
        {
            self.silent.entry(to_cpu).or_insert(event.at_ns);
        }
        self.kind(&event.what);
        if !self.fit.is_over && event.cpu < CPUS_MAX {
            self.fit.take(event);
        }
    }

    /// An event of a CPU came, whatever it was.
    pub fn was_on(&mut self, cpu: u32, at_ns: u64) {
        self.end_ns = at_ns;
        let is_first = cpu < CPUS_MAX && self.cpus.insert(cpu);
        if is_first
            && self
                .silent
                .get(&cpu)
                .is_some_and(|&since_ns| at_ns <= since_ns.saturating_add(SILENT_NS))
        {
            self.silent.remove(&cpu);
        }
    }

    /// CPUs that are used, and of which the source has no event, or none of its beginning, which
    /// may have been overwritten: what ran there is unknown.
    pub fn silent_cpus(&self) -> Vec<u32> {
        let is_silent = |since_ns: u64| self.end_ns.saturating_sub(since_ns) > SILENT_NS;
        self.silent.iter().filter(|&(_, &at_ns)| is_silent(at_ns)).map(|(&cpu, _)| cpu).collect()
    }

    /// Events of a CPU were lost, and that is known.
    pub fn lose(&mut self, cpu: u32) {
        self.fit.on.remove(&cpu);
    }

    /// From now on not every event is given.
    pub fn choose(&mut self) {
        self.fit.is_over = true;
    }

    /// Events that contradict the one before them: entries are missing between.
    pub fn misfits(&self) -> u64 {
        if self.fit.gaps > GAPS_MAX { self.fit.gaps } else { 0 }
    }

    fn kind(&mut self, what: &EventData) {
        use crate::context::Hard;
        self.kinds |= match what {
            EventData::Switch { .. } => kind::SWITCH,
            EventData::Waking { .. } | EventData::Wakeup { .. } => kind::WAKE,
            EventData::VectorEntry { vector: Vector::LocalTimer } => kind::TIMER_ENTRY,
            EventData::VectorExit { vector: Vector::LocalTimer } => kind::TIMER_EXIT,
            EventData::VectorEntry { .. } | EventData::VectorExit { .. } => kind::VECTOR,
            EventData::IrqEntry { irq, name } => {
                let is_timer = Hard::Irq { irq: *irq, name: *name }.is_timer();
                kind::IRQ_ENTRY | if is_timer { kind::TIMER_IRQ } else { 0 }
            }
            EventData::IrqExit { .. } => kind::IRQ_EXIT,
            EventData::SoftirqEntry { .. } => kind::SOFTIRQ_ENTRY,
            EventData::SoftirqExit { .. } => kind::SOFTIRQ_EXIT,
            EventData::SoftirqRaise { .. } => kind::SOFTIRQ_RAISE,
            EventData::Nmi { .. } => kind::NMI,
            EventData::Idle { .. } => kind::IDLE,
            EventData::IdleExit => kind::IDLE_EXIT,
            EventData::TimerExpire { .. } => kind::EXPIRE,
            EventData::TimerExpired { .. } => kind::EXPIRED,
            EventData::Noise { kind: of, .. } => match of.as_bytes() {
                b"irq" => kind::NOISE_IRQ,
                b"thread" => kind::NOISE_THREAD,
                b"softirq" => kind::NOISE_SOFTIRQ,
                _ => kind::NMI,
            },
            _ => 0,
        };
    }

    /// What a source holds in which these came.
    pub fn coverage(&self) -> Coverage {
        let has = |kinds: u32| self.kinds & kinds == kinds;
        let any = |kinds: u32| self.kinds & kinds != 0;
        let extent = |complete: bool, some: bool| match (complete, some) {
            (true, _) => Extent::Complete,
            (false, true) => Extent::Partial,
            (false, false) => Extent::None,
        };
        let noise = has(kind::NOISE_IRQ | kind::NOISE_THREAD);
        // Events of one system are enabled together more often than not; a raised softirq shows
        // that the interrupts of devices, of the same system, were recorded where none came.
        let devices = has(kind::IRQ_ENTRY | kind::IRQ_EXIT)
            || has(kind::SOFTIRQ_RAISE | kind::SOFTIRQ_ENTRY | kind::SOFTIRQ_EXIT);
        let timer = has(kind::TIMER_ENTRY | kind::TIMER_EXIT)
            || has(kind::TIMER_IRQ | kind::IRQ_ENTRY | kind::IRQ_EXIT);
        let interrupts = kind::TIMER_ENTRY
            | kind::TIMER_EXIT
            | kind::VECTOR
            | kind::IRQ_ENTRY
            | kind::IRQ_EXIT
            | kind::NOISE_IRQ;
        let softirqs = kind::SOFTIRQ_ENTRY | kind::SOFTIRQ_EXIT;
        let all = [
            (EventClass::Switches, extent(has(kind::SWITCH), has(kind::NOISE_THREAD))),
            (EventClass::WakeUps, extent(has(kind::WAKE), false)),
            (EventClass::Interrupts, extent(devices && timer || noise, any(interrupts))),
            (
                EventClass::Softirqs,
                extent(has(softirqs) || noise, any(softirqs | kind::NOISE_SOFTIRQ)),
            ),
            (EventClass::Nmis, extent(has(kind::NMI) || noise, false)),
            (
                EventClass::Idle,
                extent(has(kind::IDLE | kind::IDLE_EXIT), any(kind::IDLE | kind::IDLE_EXIT)),
            ),
            (
                EventClass::Timers,
                extent(has(kind::EXPIRE | kind::EXPIRED), any(kind::EXPIRE | kind::EXPIRED)),
            ),
        ];
        let mut coverage = Coverage::default();
        for (class, extent) in all {
            coverage.limit(class, extent);
        }
        if self.misfits() > 0 || !self.silent_cpus().is_empty() {
            coverage.thin();
        }
        coverage
    }
}

impl<'a> Extend<&'a Event> for RecordedKinds {
    fn extend<T: IntoIterator<Item = &'a Event>>(&mut self, events: T) {
        events.into_iter().for_each(|event| self.take(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(whats: &[EventData]) -> Coverage {
        let mut seen = RecordedKinds::default();
        whats.iter().for_each(|what| seen.kind(what));
        seen.coverage()
    }

    #[test]
    fn what_does_not_fit_together_is_not_complete() {
        let vector = Vector::LocalTimer;
        let (entry, exit) = (EventData::VectorEntry { vector }, EventData::VectorExit { vector });
        let switch = |prev_pid, next_pid| EventData::Switch {
            prev_comm: "a".into(),
            prev_pid,
            prev_prio: 120,
            prev_state: 0,
            next_comm: "b".into(),
            next_pid,
            next_prio: 120,
        };
        let is_thin = |events: &[(u32, EventData)], lost: bool| {
            let mut seen = RecordedKinds::default();
            for (cpu, what) in [events; 3].into_iter().flatten() {
                let what = what.clone();
                let event = Event { at_ns: 0, cpu: *cpu, pid: 1, flags: 0, preempt: 0, what };
                seen.take(&event);
                if lost {
                    seen.lose(*cpu);
                }
            }
            seen.coverage().of(EventClass::Switches) != Extent::Complete
        };
        let whole = [(0, switch(0, 7)), (0, entry.clone()), (0, exit.clone()), (0, switch(7, 0))];
        assert!(!is_thin(&whole, false));
        // Other CPUs are others, and some kernels leave out switches from the idle task.
        assert!(!is_thin(&[(0, switch(0, 7)), (1, switch(8, 0)), (0, switch(7, 0))], false));
        assert!(!is_thin(&[(0, switch(7, 0)), (0, switch(8, 0)), (0, switch(9, 7))], false));
        // Filtered by task; an end, and a beginning, that are missing.
        let gaps = [
            vec![(0, switch(7, 8)), (0, switch(9, 7))],
            vec![(0, switch(0, 7)), (0, entry.clone()), (0, exit.clone()), (0, exit.clone())],
            vec![(0, entry.clone()), (0, exit.clone()), (0, entry.clone()), (0, switch(0, 0))],
            vec![(0, entry.clone()), (0, exit.clone()), (0, entry.clone())],
        ];
        for events in gaps {
            let events = [&[(0, switch(0, 0))], &events[..], &[(0, switch(7, 0))]].concat();
            assert!(is_thin(&events, false) && !is_thin(&events, true), "{events:?}");
        }
        // Of some kinds no end is recorded.
        assert!(!is_thin(&[(0, switch(0, 7)), (0, entry.clone()), (0, switch(7, 0))], false));
    }

    #[test]
    fn a_cpu_that_gets_work_and_shows_nothing_was_not_recorded() {
        let woken = |at_ns, target_cpu| {
            let what = EventData::Wakeup { comm: "a".into(), pid: 7, prio: 120, target_cpu };
            Event { at_ns, cpu: 0, pid: 1, flags: 0, preempt: 0, what }
        };
        let mut seen = RecordedKinds::default();
        seen.extend(&[woken(0, 0), woken(5, 1), woken(6, 2)]);
        seen.was_on(2, SILENT_NS);
        // It may be about to switch.
        assert!(seen.silent_cpus().is_empty());
        seen.was_on(0, 2 * SILENT_NS);
        assert_eq!(seen.silent_cpus(), [1]);
        assert_ne!(seen.coverage().of(EventClass::WakeUps), Extent::Complete);
        // Its beginning was overwritten.
        seen.was_on(1, 2 * SILENT_NS);
        assert_eq!(seen.silent_cpus(), [1]);
        let mut seen = RecordedKinds::default();
        seen.extend(&[woken(5, 1), woken(6, u32::MAX)]);
        seen.was_on(1, 100);
        seen.was_on(0, 2 * SILENT_NS);
        assert!(seen.silent_cpus().is_empty());
        assert_eq!(seen.coverage().of(EventClass::WakeUps), Extent::Complete);
    }

    #[test]
    fn only_begin_and_end_of_all_interrupts_cover_them() {
        let timer = Vector::LocalTimer;
        let entry = EventData::VectorEntry { vector: timer };
        let exit = EventData::VectorExit { vector: timer };
        let (irq, name) = (1, "eth0".into());
        let device = [EventData::IrqEntry { irq, name }, EventData::IrqExit { irq }];
        let interrupts = |whats: &[EventData]| of(whats).of(EventClass::Interrupts);
        assert_eq!(interrupts(&[]), Extent::None);
        assert_eq!(interrupts(&[entry.clone(), exit.clone()]), Extent::Partial);
        // Of devices alone: the timer's have vectors of their own.
        assert_eq!(interrupts(&device), Extent::Partial);
        let all = [&device[..], &[entry, exit]].concat();
        assert_eq!(interrupts(&all), Extent::Complete);
        // Not where the ends are missing.
        assert_eq!(interrupts(&[all[0].clone(), all[2].clone()]), Extent::Partial);
        let arm = [
            EventData::IrqEntry { irq: 3, name: "arch_timer".into() },
            EventData::IrqExit { irq: 3 },
        ];
        assert_eq!(interrupts(&arm), Extent::Complete);
        assert!(Coverage::default().is_all() && !of(&all).is_all());
        assert_eq!(Coverage::none().of(EventClass::Idle), Extent::None);
    }
}
