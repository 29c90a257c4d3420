//! The gate for the word *certain*. A [`Proof`] is made by the rules of this file alone, from
//! events, and a [`Share`] is certain only where proofs cover all of it. Everything else is likely
//! at most: causes, records and other tools propose.
//!
//! The only rule yet is that an interrupt, a softirq or an NMI had the CPU, between a begin and an
//! end that were both recorded there.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ops::Deref};

use rtproof_model::ShareRow;
use rtproof_trace::{
    Event, EventData, Window,
    context::{CpuState, Hard},
    event,
};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// How certain the cause of a share is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Certainty {
    /// Proved: an interrupt, softirq or NMI whose begin and end were recorded on that CPU.
    Certain,
    /// It fits; what else fits, and what was not recorded, is named with it where it is known.
    Likely,
    /// No cause is known.
    Unknown,
}

/// Share of one cause and culprit in the latency.
///
/// Where it is read back, from JSON or a record, it is likely at most.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Share {
    #[serde(flatten)]
    row: ShareRow,
    certainty: Certainty,
}

impl Share {
    /// A share with the proofs of its moments: certain if they cover all of it and nothing else
    /// fits.
    pub fn new(row: ShareRow, proofs: &[Proof]) -> Self {
        let proved_ns = proofs.iter().map(|of| of.to_ns - of.from_ns).sum::<u64>();
        let is_its = |of: &Proof| of.cause == row.cause;
        let is_proved = proved_ns == row.ns
            && row.ns > 0
            && proofs.iter().all(is_its)
            && proofs.windows(2).all(|two| two[0].to_ns <= two[1].from_ns)
            && row.alternatives.is_empty()
            && row.unrecorded.is_empty();
        if is_proved { Self { row, certainty: Certainty::Certain } } else { row.into() }
    }

    /// As if it were proved: for pictures and tables in tests.
    #[cfg(any(test, feature = "testing"))]
    pub fn assumed(row: ShareRow) -> Self {
        let is_alone = row.alternatives.is_empty() && row.unrecorded.is_empty();
        let share = Self::from(row);
        if is_alone && share.certainty == Certainty::Likely {
            Self { certainty: Certainty::Certain, ..share }
        } else {
            share
        }
    }

    pub const fn certainty(&self) -> Certainty {
        self.certainty
    }

    /// Whether it can be nothing else.
    pub fn is_certain(&self) -> bool {
        self.certainty == Certainty::Certain
    }
}

impl From<ShareRow> for Share {
    fn from(row: ShareRow) -> Self {
        let is_unknown = row.cause == "unexplained";
        let certainty = if is_unknown { Certainty::Unknown } else { Certainty::Likely };
        Self { row, certainty }
    }
}

impl<'de> Deserialize<'de> for Share {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        ShareRow::deserialize(from).map(Self::from)
    }
}

impl Deref for Share {
    type Target = ShareRow;

    fn deref(&self) -> &ShareRow {
        &self.row
    }
}

/// That a cause had the CPU in a stretch of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    cause: &'static str,
    from_ns: u64,
    to_ns: u64,
}

/// Causes that the rules can prove.
pub const PROVABLE: &[&str] = &["nmi", "masked", "timer-work", "ipi", "irq", "softirq"];

/// Interrupts, softirqs and NMIs of one CPU with begin and end, from its events alone.
#[derive(Debug, Default)]
pub struct Overs {
    hard: Vec<Over<Hard>>,
    softirqs: Vec<Over<(i32, u32)>>,
    nmis: Vec<Over<u64>>,
    /// Functions of high-resolution timers.
    expiries: Vec<Over<u64>>,
    /// Who was current before and after each event of the CPU.
    current: Vec<(u64, i32, i32)>,
}

/// What was over the task of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Over<T> {
    what: T,
    from_ns: u64,
    to_ns: u64,
}

/// Those nested in each other, at most.
const DEPTH_MAX: usize = 64;

impl<T> Over<T> {
    /// Those of a list, by their ends, that end after a time: the first ones, which are innermost.
    fn after(list: &[Self], from_ns: u64) -> impl Iterator<Item = &Self> + Clone {
        let first = list.partition_point(|of| of.to_ns <= from_ns);
        list[first..].iter().take(DEPTH_MAX)
    }

    const fn covers(&self, from_ns: u64, to_ns: u64) -> bool {
        self.from_ns <= from_ns && to_ns <= self.to_ns
    }

    const fn touches(&self, from_ns: u64, to_ns: u64) -> bool {
        self.from_ns < to_ns && from_ns < self.to_ns
    }
}

impl Overs {
    /// Those of a window's CPU. Empty where the CPU may have stood still meanwhile, or where events
    /// were left out.
    pub fn of(window: &Window) -> Self {
        let surroundings = &window.surroundings;
        let stood = surroundings.steal_ns.is_some_and(|ns| ns > 0)
            || surroundings.smi.is_some_and(|count| count > 0);
        if stood || window.cut {
            return Self::default();
        }
        let mut book = Book::default();
        let mut lost = window.lost.to_vec();
        lost.sort_by_key(|lost| lost.from_ns);
        let mut lost = lost.into_iter().peekable();
        for event in window.events.iter().filter(|event| event.cpu == window.cpu) {
            while lost.next_if(|lost| lost.from_ns <= event.at_ns).is_some() {
                book.forget();
            }
            book.take(event, surroundings.preempt_rt != Some(false));
        }
        book.found
    }

    /// Proves that a cause had the CPU from one time to another. `cpu`: what is proposed to have
    /// been over the task then; `names_function`: whether the culprit is the function of a timer.
    pub fn prove(
        &self,
        cause: &'static str,
        cpu: &CpuState,
        names_function: bool,
        (from_ns, to_ns): (u64, u64),
    ) -> Option<Proof> {
        if !PROVABLE.contains(&cause) || from_ns >= to_ns {
            return None;
        }
        let is_it = match (cause, cpu.nmi, cpu.hard) {
            ("nmi", Some(handler), _) => {
                let mut on = Over::after(&self.nmis, from_ns);
                on.any(|of| of.what == handler && of.covers(from_ns, to_ns))
            }
            ("irq" | "ipi" | "masked" | "timer-work", None, Some((hard, _))) => {
                let function = !names_function
                    || Over::after(&self.expiries, from_ns)
                        .any(|of| Some(of.what) == cpu.expiring && of.covers(from_ns, to_ns));
                function && self.innermost(from_ns, to_ns) == Some(hard)
            }
            ("softirq", None, None) => {
                let of_task = cpu.softirq.map(|vec| (cpu.task, vec));
                Over::after(&self.softirqs, from_ns)
                    .any(|of| Some(of.what) == of_task && of.covers(from_ns, to_ns))
                    && !Over::after(&self.hard, from_ns).any(|of| of.touches(from_ns, to_ns))
                    && self.is_current(cpu.task, from_ns, to_ns)
            }
            _ => false,
        };
        let is_free = cause == "nmi"
            || !Over::after(&self.nmis, from_ns).any(|of| of.touches(from_ns, to_ns));
        (is_it && is_free).then_some(Proof { cause, from_ns, to_ns })
    }

    /// The hard interrupt that was on top all the time.
    fn innermost(&self, from_ns: u64, to_ns: u64) -> Option<Hard> {
        let on = Over::after(&self.hard, from_ns).filter(|of| of.touches(from_ns, to_ns));
        // Of those nested in each other the one that ends first.
        let top = on.clone().min_by_key(|of| of.to_ns)?;
        let are_below = on.clone().all(|of| of == top || of.covers(top.from_ns, top.to_ns));
        (top.covers(from_ns, to_ns) && are_below).then_some(top.what)
    }

    fn is_current(&self, task: i32, from_ns: u64, to_ns: u64) -> bool {
        let index = |at_ns: u64| self.current.partition_point(|(of, ..)| *of < at_ns);
        let (first, end) = (index(from_ns + 1), index(to_ns));
        let before = first.checked_sub(1).map(|at| self.current[at].2);
        let after = self.current.get(end).map(|of| of.1);
        let is_its = |(_, before, after): &(u64, i32, i32)| *before == task && *after == task;
        before == Some(task) && after == Some(task) && self.current[first..end].iter().all(is_its)
    }
}

/// What is open while the events of a CPU are read.
#[derive(Default)]
struct Book {
    found: Overs,
    hard: Vec<OpenHard>,
    softirqs: BTreeMap<i32, (u32, u64)>,
    expiry: Option<(u64, u64)>,
}

#[derive(Clone, Copy)]
struct OpenHard {
    what: Hard,
    from_ns: u64,
    task: i32,
    /// Whether an event without the flag of an interrupt came in it.
    has_unflagged: bool,
}

impl Book {
    /// Events are missing: what is open may have ended.
    fn forget(&mut self) {
        self.hard.clear();
        self.softirqs.clear();
        self.expiry = None;
    }

    fn take(&mut self, event: &Event, softirqs_stay: bool) {
        let at_ns = event.at_ns;
        let (before, after) = match event.what {
            EventData::Switch { prev_pid, next_pid, .. } => (prev_pid, next_pid),
            _ => (event.pid, event.pid),
        };
        self.found.current.push((at_ns, before, after));
        let enters = matches!(
            event.what,
            EventData::VectorEntry { .. } | EventData::IrqEntry { .. } | EventData::IpiEntry { .. }
        );
        let is_orphan = event.flags & event::flags::HARDIRQ != 0 && self.hard.is_empty() && !enters;
        // Inside a hard interrupt no softirq begins or ends, and no task is switched to.
        let is_outside = matches!(
            event.what,
            EventData::SoftirqEntry { .. }
                | EventData::SoftirqExit { .. }
                | EventData::Switch { .. }
        );
        let open = self.hard.last();
        if is_orphan || open.is_some_and(|open| is_outside || open.task != event.pid) {
            self.forget();
        }
        match event.what {
            EventData::VectorEntry { vector } => self.enter(Hard::Vector(vector), event),
            EventData::IrqEntry { irq, name } => self.enter(Hard::Irq { irq, name }, event),
            EventData::IpiEntry { reason } => self.enter(Hard::Ipi { reason }, event),
            EventData::VectorExit { vector } => {
                self.leave(event, |of| *of == Hard::Vector(vector));
            }
            EventData::IrqExit { irq: of } => {
                self.leave(event, |open| matches!(open, Hard::Irq { irq, .. } if *irq == of));
            }
            EventData::IpiExit { reason } => self.leave(event, |of| *of == Hard::Ipi { reason }),
            EventData::Nmi { handler: what, delta_ns } => {
                let from_ns = at_ns.saturating_sub(delta_ns);
                self.found.nmis.push(Over { what, from_ns, to_ns: at_ns });
            }
            EventData::TimerExpire { function, .. } => self.expiry = Some((function, at_ns)),
            EventData::TimerExpired { .. } => {
                if let Some((what, from_ns)) = self.expiry.take() {
                    self.found.expiries.push(Over { what, from_ns, to_ns: at_ns });
                }
            }
            EventData::SoftirqEntry { vec } => {
                self.softirqs.insert(event.pid, (vec, at_ns));
            }
            EventData::SoftirqExit { vec } => {
                let open = self.softirqs.remove(&event.pid).filter(|(of, _)| *of == vec);
                if let Some((_, from_ns)) = open {
                    let what = (event.pid, vec);
                    self.found.softirqs.push(Over { what, from_ns, to_ns: at_ns });
                }
            }
            EventData::Switch { prev_pid, .. } => {
                self.expiry = None;
                // On PREEMPT_RT a softirq goes on when its task comes back.
                if !softirqs_stay {
                    self.softirqs.remove(&prev_pid);
                }
            }
            _ => self.inside(event),
        }
    }

    fn inside(&mut self, event: &Event) {
        let is_flagged = event.flags & (event::flags::HARDIRQ | event::flags::NMI) != 0;
        self.hard.iter_mut().for_each(|open| open.has_unflagged |= !is_flagged);
    }

    fn enter(&mut self, what: Hard, event: &Event) {
        // One handler is never inside itself: its end was not recorded.
        if self.hard.iter().any(|open| open.what == what) {
            self.forget();
        }
        let (from_ns, task) = (event.at_ns, event.pid);
        self.hard.push(OpenHard { what, from_ns, task, has_unflagged: false });
    }

    fn leave(&mut self, event: &Event, is_it: impl Fn(&Hard) -> bool) {
        let Some(open) = self.hard.pop().filter(|open| is_it(&open.what)) else {
            return self.forget();
        };
        self.expiry = None;
        // Where flags are recorded, all of it has them.
        if event.flags & event::flags::HARDIRQ != 0 && open.has_unflagged {
            return self.forget();
        }
        let OpenHard { what, from_ns, .. } = open;
        self.found.hard.push(Over { what, from_ns, to_ns: event.at_ns });
    }
}
