//! Records to typed events: a table from a record's number to where its fields lie, made once from
//! the kernel's formats.
//!
//! An event that lacks a field it should have becomes [`EventData::Other`]: never a wrong value.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::event::HandlerName;
use crate::format::{EventFormat, Formats, PageLayout};
use crate::kernel::codec::{FieldForm, FieldPlace, KernelOrigin, Places, Record, Role, STATE_BITS};
use crate::kernel::table::{self, EventKind};
use crate::page::Raw;
use crate::{Event, EventData};

/// Where the fields common to all events lie.
#[derive(Clone, Copy, Debug)]
struct Common {
    pid: FieldPlace,
    flags: FieldPlace,
    preempt: FieldPlace,
}

/// An event and where its fields lie.
#[derive(Clone, Debug)]
struct Plan {
    common: Option<Common>,
    /// `None`: it has no meaning here, or lacks a field.
    kind: Option<&'static EventKind>,
    role: Role,
    at: Places,
}

impl Common {
    fn of(format: &EventFormat) -> Option<Self> {
        let place = |name| FieldPlace::of(format, name, FieldForm::Number);
        Some(Self {
            pid: place("common_pid")?,
            flags: place("common_flags")?,
            preempt: place("common_preempt_count")?,
        })
    }
}

impl Plan {
    fn of(format: &EventFormat) -> Option<Self> {
        let kind = table::find_event(&format.system, &format.name)?;
        let mut at = Places::default();
        for (place, field) in at.iter_mut().zip(kind.fields) {
            *place = FieldPlace::of(format, field.name(), field.wanted)?;
        }
        Some(Self { common: Common::of(format), kind: Some(kind), role: kind.role, at })
    }
}

/// Decodes the records of one kernel.
#[derive(Clone, Debug)]
pub struct Decoder {
    layout: PageLayout,
    /// Index in `plans` by the record's number.
    index: Vec<u8>,
    /// The same for those that have a brief form; the others are not worth the look.
    briefs: Vec<u8>,
    /// The first is for numbers that are not known.
    plans: Vec<Plan>,
    origin: KernelOrigin,
}

/// The few fields of an event that most questions need, without building the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventBrief<'a> {
    /// sched_switch.
    Switch {
        prev_pid: i32,
        /// Its state, 0: still runnable; see [`EventData::Switch`].
        prev_state: u64,
        next_pid: i32,
        next_prio: i32,
        /// Its name, perhaps with NULs behind.
        next_comm: &'a [u8],
    },
    /// sched_waking.
    Waking {
        /// Task that is woken.
        pid: i32,
        prio: i32,
        target_cpu: u32,
        /// Its name, perhaps with NULs behind.
        comm: &'a [u8],
    },
    /// sched_wakeup, sched_wakeup_new.
    Wakeup {
        /// Task that was woken.
        pid: i32,
        prio: i32,
        target_cpu: u32,
        /// Its name, perhaps with NULs behind.
        comm: &'a [u8],
    },
    /// hrtimer_start.
    TimerStart {
        /// Task that was current.
        pid: i32,
        /// [`Event::flags`].
        flags: u8,
        /// Address of the timer.
        timer: u64,
        /// Address of its function.
        function: u64,
        /// When it is to expire, on the timer's clock.
        expires_ns: u64,
        /// From when on it may expire; 0: not recorded.
        soft_ns: u64,
    },
    /// hrtimer_expire_entry.
    TimerExpire {
        /// Address of the timer.
        timer: u64,
        /// Address of its function; 0: not recorded.
        function: u64,
        /// The timer's clock as the interrupt read it.
        now_ns: u64,
    },
    /// hrtimer_expire_exit.
    TimerExpired,
    /// An event that may concern another CPU than its own: migration, inherited priority, signal,
    /// inter-processor interrupt, hotplug, frequency.
    Across,
    Other,
}

impl<'a> EventBrief<'a> {
    /// Of an event that is decoded already, such as one out of a text.
    pub fn of(event: &'a Event) -> Self {
        match &event.what {
            EventData::Switch { prev_pid, prev_state, next_pid, next_prio, next_comm, .. } => {
                Self::Switch {
                    prev_pid: *prev_pid,
                    prev_state: prev_state & STATE_BITS,
                    next_pid: *next_pid,
                    next_prio: *next_prio,
                    next_comm: next_comm.as_bytes(),
                }
            }
            EventData::Waking { comm, pid, prio, target_cpu } => Self::Waking {
                pid: *pid,
                prio: *prio,
                target_cpu: *target_cpu,
                comm: comm.as_bytes(),
            },
            EventData::Wakeup { comm, pid, prio, target_cpu } => Self::Wakeup {
                pid: *pid,
                prio: *prio,
                target_cpu: *target_cpu,
                comm: comm.as_bytes(),
            },
            EventData::TimerStart { timer, function, expires_ns, soft_ns } => Self::TimerStart {
                pid: event.pid,
                flags: event.flags,
                timer: *timer,
                function: *function,
                expires_ns: *expires_ns,
                soft_ns: *soft_ns,
            },
            EventData::TimerExpire { timer, function, now_ns } => {
                Self::TimerExpire { timer: *timer, function: *function, now_ns: *now_ns }
            }
            EventData::TimerExpired { .. } => Self::TimerExpired,
            _ => Self::Other,
        }
    }
}

impl Decoder {
    /// For the events of these formats.
    pub fn new(formats: &Formats) -> Self {
        let common = formats.events().find_map(Common::of);
        let layout = *formats.layout();
        let mut decoder = Self {
            layout,
            index: Vec::new(),
            briefs: Vec::new(),
            plans: vec![Plan { common, kind: None, role: Role::Plain, at: Places::default() }],
            origin: KernelOrigin {
                order: layout.order,
                long_bytes: layout.long_bytes,
                text_start: None,
                strings: BTreeMap::new(),
            },
        };
        for format in formats.events() {
            let Ok(index) = u8::try_from(decoder.plans.len()) else { break };
            let Some(plan) = Plan::of(format) else { continue };
            let id = usize::from(format.id);
            if decoder.index.len() <= id {
                decoder.index.resize(id + 1, 0);
                decoder.briefs.resize(id + 1, 0);
            }
            decoder.index[id] = index;
            decoder.briefs[id] = if plan.role.has_brief() { index } else { 0 };
            decoder.plans.push(plan);
        }
        decoder
    }

    /// Gives the address of the kernel's first instruction (`_stext`): the callers in irq_disable,
    /// preempt_disable and so on are offsets from it, and 0 without.
    #[must_use]
    pub const fn with_text_start(mut self, address: u64) -> Self {
        self.origin.text_start = Some(address);
        self
    }

    /// Gives the texts that events only point at (`printk_formats`): the reasons of Arm's
    /// inter-processor interrupts, empty without.
    #[must_use]
    pub fn with_strings(mut self, strings: impl IntoIterator<Item = (u64, HandlerName)>) -> Self {
        self.origin.strings.extend(strings);
        self
    }

    /// Layout of the pages whose records this decodes.
    pub const fn layout(&self) -> &PageLayout {
        &self.layout
    }

    /// Whether a record of this number has a meaning here, i.e. is not [`EventData::Other`].
    pub fn knows(&self, id: u16) -> bool {
        self.index.get(usize::from(id)).is_some_and(|&index| index != 0)
    }

    /// Whether such an event changes the state of its CPU: see `carry`.
    pub(crate) fn is_state(&self, id: u16) -> bool {
        self.plan(id).role.is_state()
    }

    /// The event of a record.
    pub fn event(&self, cpu: u32, raw: &Raw<'_>) -> Event {
        let plan = self.plan(raw.id);
        let record = self.record(raw);
        let of = |place: fn(&Common) -> FieldPlace| plan.common.as_ref().map(place);
        let pid = of(|common| common.pid).and_then(|place| record.int(place));
        let flags = of(|common| common.flags).and_then(|place| record.byte(place));
        let preempt = of(|common| common.preempt).and_then(|place| record.byte(place));
        let what = pid.and(plan.kind).and_then(|kind| (kind.read)(&record, &plan.at));
        Event {
            at_ns: raw.at_ns,
            cpu,
            pid: pid.unwrap_or(0),
            flags: flags.unwrap_or(0),
            preempt: preempt.unwrap_or(0),
            what: what.map_or(EventData::Other { id: raw.id }, table::completed),
        }
    }

    /// The task that was current when a record was written, and its flags ([`Event::flags`]).
    #[inline]
    pub(crate) fn current(&self, raw: &Raw<'_>) -> (i32, u8) {
        let common = self.plans.first().and_then(|plan| plan.common.as_ref());
        let record = self.record(raw);
        let of = |common: &Common| Some((record.int(common.pid)?, record.byte(common.flags)?));
        common.and_then(of).unwrap_or_default()
    }

    /// What most questions need of a record.
    #[inline]
    pub fn brief<'a>(&self, raw: &Raw<'a>) -> EventBrief<'a> {
        match self.briefs.get(usize::from(raw.id)) {
            None | Some(0) => EventBrief::Other,
            Some(&index) => self.try_brief(raw, index).unwrap_or(EventBrief::Other),
        }
    }

    #[inline]
    fn try_brief<'a>(&self, raw: &Raw<'a>, index: u8) -> Option<EventBrief<'a>> {
        let record = self.record(raw);
        let plan = self.plans.get(usize::from(index))?;
        Some(match plan.role {
            Role::Switch => {
                let [_, prev_pid, _, prev_state, next_comm, next_pid, next_prio] = plan.at;
                EventBrief::Switch {
                    prev_pid: record.int(prev_pid)?,
                    prev_state: record.get(prev_state)? & STATE_BITS,
                    next_pid: record.int(next_pid)?,
                    next_prio: record.int(next_prio)?,
                    next_comm: record.bytes(next_comm)?,
                }
            }
            Role::Waking | Role::Wakeup => {
                let [comm, pid, prio, cpu, ..] = plan.at;
                let (pid, prio) = (record.int(pid)?, record.int(prio)?);
                let (target_cpu, comm) = (record.uint(cpu)?, record.bytes(comm)?);
                match plan.role {
                    Role::Waking => EventBrief::Waking { pid, prio, target_cpu, comm },
                    _ => EventBrief::Wakeup { pid, prio, target_cpu, comm },
                }
            }
            Role::TimerStart => {
                let [timer, function, expires, soft, ..] = plan.at;
                EventBrief::TimerStart {
                    pid: record.int(plan.common.as_ref()?.pid)?,
                    flags: record.byte(plan.common.as_ref()?.flags)?,
                    timer: record.get(timer)?,
                    function: record.get(function)?,
                    expires_ns: record.get(expires)?,
                    soft_ns: record.get(soft)?,
                }
            }
            Role::TimerExpire => {
                let [timer, now, function, ..] = plan.at;
                EventBrief::TimerExpire {
                    timer: record.get(timer)?,
                    function: record.get(function).unwrap_or(0),
                    now_ns: record.get(now)?,
                }
            }
            Role::TimerExpired => EventBrief::TimerExpired,
            Role::Across => EventBrief::Across,
            Role::Plain | Role::State => EventBrief::Other,
        })
    }

    #[inline]
    fn plan(&self, id: u16) -> &Plan {
        let index = self.index.get(usize::from(id)).copied().unwrap_or(0);
        &self.plans[usize::from(index)]
    }

    #[inline]
    const fn record<'a>(&self, raw: &Raw<'a>) -> Record<'a, '_> {
        Record { data: raw.data, origin: &self.origin }
    }
}
