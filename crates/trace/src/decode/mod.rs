//! Records to typed events: a table from a record's number to where its fields lie, made once from
//! the kernel's formats.
//!
//! An event that lacks a field it should have becomes [`What::Other`]: never a wrong value.

mod fields;
mod plan;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::{
    Event, What,
    event::{Comm, Name},
    format::{Formats, Layout},
    page::Raw,
};
use fields::{Bytes, Record};
use plan::{Common, Group, Plan, Woken};

/// Bits of `prev_state` that say what the task waits for. From the next on they say that it was
/// preempted (`TASK_REPORT_MAX`; other bits in kernels before 4.15): then it is runnable.
const STATE_BITS: u64 = 0xff;

/// Decodes the records of one kernel.
#[derive(Clone, Debug)]
pub struct Decoder {
    layout: Layout,
    /// Index in `plans` by the record's number.
    index: Vec<u8>,
    /// The same for those that have a brief form; the others are not worth the look.
    briefs: Vec<u8>,
    /// The first is for numbers that are not known.
    plans: Vec<(Option<Common>, Plan)>,
    text_start: Option<u64>,
    strings: BTreeMap<u64, Name>,
}

/// The few fields of an event that most questions need, without building the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brief<'a> {
    /// sched_switch.
    Switch {
        /// Task that left.
        prev_pid: i32,
        /// Its state, 0: still runnable; see [`What::Switch`].
        prev_state: u64,
        /// Task that came.
        next_pid: i32,
        /// Its priority.
        next_prio: i32,
        /// Its name, perhaps with NULs behind.
        next_comm: &'a [u8],
    },
    /// sched_waking.
    Waking {
        /// Task that is woken.
        pid: i32,
        /// Its priority.
        prio: i32,
        /// CPU it is to run on.
        target_cpu: u32,
        /// Its name, perhaps with NULs behind.
        comm: &'a [u8],
    },
    /// sched_wakeup, sched_wakeup_new.
    Wakeup {
        /// Task that was woken.
        pid: i32,
        /// Its priority.
        prio: i32,
        /// CPU it is to run on.
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
    },
    /// hrtimer_expire_entry.
    TimerExpire {
        /// Address of the timer.
        timer: u64,
        /// The timer's clock as the interrupt read it.
        now_ns: u64,
    },
    /// hrtimer_expire_exit.
    TimerExpired,
    /// An event that may concern another CPU than its own: migration, inherited priority, signal,
    /// inter-processor interrupt, hotplug, frequency.
    Across,
    /// Any other.
    Other,
}

impl<'a> Brief<'a> {
    /// Of an event that is decoded already, such as one out of a text.
    #[must_use]
    pub fn of(event: &'a Event) -> Self {
        match &event.what {
            What::Switch { prev_pid, prev_state, next_pid, next_prio, next_comm, .. } => {
                Self::Switch {
                    prev_pid: *prev_pid,
                    prev_state: prev_state & STATE_BITS,
                    next_pid: *next_pid,
                    next_prio: *next_prio,
                    next_comm: next_comm.as_bytes(),
                }
            }
            What::Waking { comm, pid, prio, target_cpu } => Self::Waking {
                pid: *pid,
                prio: *prio,
                target_cpu: *target_cpu,
                comm: comm.as_bytes(),
            },
            What::Wakeup { comm, pid, prio, target_cpu } => Self::Wakeup {
                pid: *pid,
                prio: *prio,
                target_cpu: *target_cpu,
                comm: comm.as_bytes(),
            },
            What::TimerStart { timer, function, expires_ns } => Self::TimerStart {
                pid: event.pid,
                flags: event.flags,
                timer: *timer,
                function: *function,
                expires_ns: *expires_ns,
            },
            What::TimerExpire { timer, now_ns, .. } => {
                Self::TimerExpire { timer: *timer, now_ns: *now_ns }
            }
            What::TimerExpired { .. } => Self::TimerExpired,
            _ => Self::Other,
        }
    }
}

impl Decoder {
    /// For the events of these formats.
    #[must_use]
    pub fn new(formats: &Formats) -> Self {
        let common = formats.events().find_map(Common::of);
        let mut decoder = Self {
            layout: *formats.layout(),
            index: Vec::new(),
            briefs: Vec::new(),
            plans: vec![(common, Plan::Other)],
            text_start: None,
            strings: BTreeMap::new(),
        };
        for format in formats.events() {
            let plan = Plan::of(format);
            let index = match (plan, u8::try_from(decoder.plans.len())) {
                (Plan::Other, _) | (_, Err(_)) => continue,
                (_, Ok(index)) => index,
            };
            decoder.plans.push((Common::of(format), plan));
            let id = usize::from(format.id);
            if decoder.index.len() <= id {
                decoder.index.resize(id + 1, 0);
                decoder.briefs.resize(id + 1, 0);
            }
            decoder.index[id] = index;
            decoder.briefs[id] = if plan.has_brief() { index } else { 0 };
        }
        decoder
    }

    /// Gives the address of the kernel's first instruction (`_stext`): the callers in irq_disable,
    /// preempt_disable and so on are offsets from it, and 0 without.
    #[must_use]
    pub const fn with_text_start(mut self, address: u64) -> Self {
        self.text_start = Some(address);
        self
    }

    /// Gives the texts that events only point at (`printk_formats`): the reasons of Arm's
    /// inter-processor interrupts, empty without.
    #[must_use]
    pub fn with_strings(mut self, strings: impl IntoIterator<Item = (u64, Name)>) -> Self {
        self.strings.extend(strings);
        self
    }

    /// Layout of the pages whose records this decodes.
    #[must_use]
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether a record of this number has a meaning here, i.e. is not [`What::Other`].
    #[must_use]
    pub fn knows(&self, id: u16) -> bool {
        self.index.get(usize::from(id)).is_some_and(|&index| index != 0)
    }

    /// Whether such an event tells what a CPU is in the middle of: see `carry`.
    pub(crate) fn is_state(&self, id: u16) -> bool {
        matches!(
            self.plan(id).1,
            Plan::Switch { .. }
                | Plan::Idle { .. }
                | Plan::VectorEntry(_)
                | Plan::VectorExit(_)
                | Plan::IrqEntry { .. }
                | Plan::IrqExit { .. }
                | Plan::IpiEntry { .. }
                | Plan::IpiExit { .. }
                | Plan::SoftirqEntry { .. }
                | Plan::SoftirqExit { .. }
                | Plan::TimerExpire { .. }
                | Plan::TimerExpired { .. }
                | Plan::WheelExpire { .. }
                | Plan::WheelExpired { .. }
                | Plan::WorkStart { .. }
                | Plan::WorkEnd { .. }
                | Plan::Irqs { .. }
                | Plan::Preempt { .. }
        )
    }

    /// The event of a record.
    #[must_use]
    pub fn event(&self, cpu: u32, raw: &Raw<'_>) -> Event {
        let (common, plan) = self.plan(raw.id);
        let record = self.record(raw);
        let of = |num: fn(&Common) -> fields::Num| common.as_ref().map(num);
        let pid = of(|common| common.pid).and_then(|num| record.int(num));
        let flags = of(|common| common.flags).and_then(|num| record.byte(num));
        let preempt = of(|common| common.preempt).and_then(|num| record.byte(num));
        let what = pid.and_then(|_| self.what(plan, &record));
        Event {
            at_ns: raw.at_ns,
            cpu,
            pid: pid.unwrap_or(0),
            flags: flags.unwrap_or(0),
            preempt: preempt.unwrap_or(0),
            what: what.unwrap_or(What::Other { id: raw.id }),
        }
    }

    /// What most questions need of a record.
    #[inline]
    #[must_use]
    pub fn brief<'a>(&self, raw: &Raw<'a>) -> Brief<'a> {
        match self.briefs.get(usize::from(raw.id)) {
            None | Some(0) => Brief::Other,
            Some(&index) => self.try_brief(raw, index).unwrap_or(Brief::Other),
        }
    }

    #[inline]
    fn try_brief<'a>(&self, raw: &Raw<'a>, index: u8) -> Option<Brief<'a>> {
        let record = self.record(raw);
        let (common, plan) = self.plans.get(usize::from(index))?;
        Some(match plan {
            Plan::Switch { prev_pid, prev_state, next_comm, next_pid, next_prio, .. } => {
                Brief::Switch {
                    prev_pid: record.int(*prev_pid)?,
                    prev_state: record.get(*prev_state)? & STATE_BITS,
                    next_pid: record.int(*next_pid)?,
                    next_prio: record.int(*next_prio)?,
                    next_comm: record.bytes(*next_comm)?,
                }
            }
            Plan::Waking(Woken { comm, pid, prio, cpu }) => Brief::Waking {
                pid: record.int(*pid)?,
                prio: record.int(*prio)?,
                target_cpu: record.uint(*cpu)?,
                comm: record.bytes(*comm)?,
            },
            Plan::Wakeup(Woken { comm, pid, prio, cpu }) => Brief::Wakeup {
                pid: record.int(*pid)?,
                prio: record.int(*prio)?,
                target_cpu: record.uint(*cpu)?,
                comm: record.bytes(*comm)?,
            },
            Plan::TimerStart { timer, function, expires } => Brief::TimerStart {
                pid: record.int(common.as_ref()?.pid)?,
                flags: record.byte(common.as_ref()?.flags)?,
                timer: record.get(*timer)?,
                function: record.get(*function)?,
                expires_ns: record.get(*expires)?,
            },
            Plan::TimerExpire { timer, now, .. } => {
                Brief::TimerExpire { timer: record.get(*timer)?, now_ns: record.get(*now)? }
            }
            Plan::TimerExpired { .. } => Brief::TimerExpired,
            plan if plan.is_across() => Brief::Across,
            _ => Brief::Other,
        })
    }

    #[inline]
    fn plan(&self, id: u16) -> &(Option<Common>, Plan) {
        let index = self.index.get(usize::from(id)).copied().unwrap_or(0);
        &self.plans[usize::from(index)]
    }

    #[inline]
    const fn record<'a>(&self, raw: &Raw<'a>) -> Record<'a> {
        Record { data: raw.data, order: self.layout.order }
    }

    /// `None`: the record lacks something.
    fn what(&self, plan: &Plan, record: &Record<'_>) -> Option<What> {
        match plan.group() {
            Group::Sched => sched(plan, record),
            Group::Timers => timers(plan, record),
            Group::Interrupts => self.interrupts(plan, record),
            Group::Others => self.others(plan, record),
        }
    }

    fn interrupts(&self, plan: &Plan, record: &Record<'_>) -> Option<What> {
        Some(match *plan {
            Plan::VectorEntry(vector) => What::VectorEntry { vector },
            Plan::VectorExit(vector) => What::VectorExit { vector },
            Plan::IrqEntry { irq, name } => {
                What::IrqEntry { irq: record.int(irq)?, name: self.name(record, name)? }
            }
            Plan::IrqExit { irq } => What::IrqExit { irq: record.int(irq)? },
            Plan::IpiEntry { reason } => What::IpiEntry { reason: self.name(record, reason)? },
            Plan::IpiExit { reason } => What::IpiExit { reason: self.name(record, reason)? },
            Plan::IpiRaise { cpus, reason } => What::IpiRaise {
                cpus: record.mask(cpus, self.layout.long_bytes)?,
                reason: match reason {
                    Some(reason) => self.name(record, reason)?,
                    None => Name::default(),
                },
            },
            Plan::IpiSend { cpu, callsite, callback } => What::IpiSend {
                to_cpu: record.uint(cpu)?,
                callsite: record.get(callsite)?,
                callback: record.get(callback)?,
            },
            Plan::SoftirqRaise { vec } => What::SoftirqRaise { vec: record.uint(vec)? },
            Plan::SoftirqEntry { vec } => What::SoftirqEntry { vec: record.uint(vec)? },
            Plan::SoftirqExit { vec } => What::SoftirqExit { vec: record.uint(vec)? },
            Plan::Nmi { handler, delta } => {
                What::Nmi { handler: record.get(handler)?, delta_ns: record.get(delta)? }
            }
            Plan::Irqs { off, caller } => What::Irqs { off, caller: self.caller(record, caller)? },
            Plan::Preempt { off, caller } => {
                What::Preempt { off, caller: self.caller(record, caller)? }
            }
            _ => return None,
        })
    }

    fn others(&self, plan: &Plan, record: &Record<'_>) -> Option<What> {
        Some(match *plan {
            Plan::Idle { state } => match record.uint(state)? {
                u32::MAX => What::IdleExit,
                state => What::Idle { state },
            },
            Plan::Frequency { cpu, khz } => {
                What::Frequency { of_cpu: record.uint(cpu)?, khz: record.uint(khz)? }
            }
            Plan::WorkStart { work, function } => {
                What::WorkStart { work: record.get(work)?, function: record.get(function)? }
            }
            Plan::WorkEnd { work } => What::WorkEnd { work: record.get(work)? },
            Plan::PageFault { user, address, ip } => {
                What::PageFault { user, address: record.get(address)?, ip: record.get(ip)? }
            }
            Plan::Stack { size, callers_at } => {
                What::Stack { frames: self.frames(record, record.int(size)?, callers_at) }
            }
            Plan::Signal { number, comm, pid } => What::Signal {
                number: record.int(number)?,
                comm: Comm::of(record.bytes(comm)?),
                pid: record.int(pid)?,
            },
            Plan::Hotplug { cpu, target, function } => What::Hotplug {
                of_cpu: record.uint(cpu)?,
                target: record.int(target)?,
                function: record.get(function)?,
            },
            Plan::Timerlat { sequence, context, latency } => What::Timerlat {
                sequence: record.uint(sequence)?,
                context: record.uint(context)?,
                latency_ns: record.get(latency)?,
            },
            Plan::Noise { kind, name, number, start, duration } => What::Noise {
                kind: kind.into(),
                name: match name {
                    Some(name) => self.name(record, name)?,
                    None => Name::default(),
                },
                number: match number {
                    Some(number) => record.int(number)?,
                    None => -1,
                },
                start_ns: record.get(start)?,
                duration_ns: record.get(duration)?,
            },
            Plan::Hwlat { inner, outer, nmi_count } => What::Hwlat {
                inner_ns: record.get(inner)?,
                outer_ns: record.get(outer)?,
                nmi_count: record.uint(nmi_count)?,
            },
            _ => return None,
        })
    }

    /// A text of the record, or one that it points at; empty: not known.
    fn name(&self, record: &Record<'_>, bytes: Bytes) -> Option<Name> {
        match bytes {
            Bytes::Pointer(num) => {
                let address = record.get(num)?;
                Some(self.strings.get(&address).copied().unwrap_or_default())
            }
            _ => record.bytes(bytes).map(Name::of),
        }
    }

    /// Address of a caller that is told by its offset; 0: not known.
    fn caller(&self, record: &Record<'_>, offset: fields::Num) -> Option<u64> {
        let offset = i64::from(record.int(offset)?);
        Some(self.text_start.map_or(0, |start| start.wrapping_add_signed(offset)))
    }

    /// Return addresses up to the first 0 or -1. What is behind was there before.
    fn frames(&self, record: &Record<'_>, size: i32, at: u16) -> Box<[u64]> {
        let long_bytes = self.layout.long_bytes;
        let end = if long_bytes == 8 { u64::MAX } else { u64::from(u32::MAX) };
        let count = usize::try_from(size).unwrap_or(0);
        let frames = record.longs(at, count, long_bytes);
        frames.take_while(|&frame| frame != 0 && frame != end).collect()
    }
}

fn sched(plan: &Plan, record: &Record<'_>) -> Option<What> {
    let comm = |bytes| record.bytes(bytes).map(Comm::of);
    Some(match *plan {
        Plan::Switch {
            prev_comm,
            prev_pid,
            prev_prio,
            prev_state,
            next_comm,
            next_pid,
            next_prio,
        } => What::Switch {
            prev_comm: comm(prev_comm)?,
            prev_pid: record.int(prev_pid)?,
            prev_prio: record.int(prev_prio)?,
            prev_state: record.get(prev_state)? & STATE_BITS,
            next_comm: comm(next_comm)?,
            next_pid: record.int(next_pid)?,
            next_prio: record.int(next_prio)?,
        },
        Plan::Waking(woken) => What::Waking {
            comm: comm(woken.comm)?,
            pid: record.int(woken.pid)?,
            prio: record.int(woken.prio)?,
            target_cpu: record.uint(woken.cpu)?,
        },
        Plan::Wakeup(woken) => What::Wakeup {
            comm: comm(woken.comm)?,
            pid: record.int(woken.pid)?,
            prio: record.int(woken.prio)?,
            target_cpu: record.uint(woken.cpu)?,
        },
        Plan::Migrate { comm: name, pid, prio, from, to } => What::Migrate {
            comm: comm(name)?,
            pid: record.int(pid)?,
            prio: record.int(prio)?,
            from_cpu: record.uint(from)?,
            to_cpu: record.uint(to)?,
        },
        Plan::PiSetprio { comm: name, pid, old, new } => What::PiSetprio {
            comm: comm(name)?,
            pid: record.int(pid)?,
            old_prio: record.int(old)?,
            new_prio: record.int(new)?,
        },
        _ => return None,
    })
}

fn timers(plan: &Plan, record: &Record<'_>) -> Option<What> {
    Some(match *plan {
        Plan::TimerStart { timer, function, expires } => What::TimerStart {
            timer: record.get(timer)?,
            function: record.get(function)?,
            expires_ns: record.get(expires)?,
        },
        Plan::TimerCancel { timer } => What::TimerCancel { timer: record.get(timer)? },
        Plan::TimerExpire { timer, function, now } => What::TimerExpire {
            timer: record.get(timer)?,
            function: record.get(function)?,
            now_ns: record.get(now)?,
        },
        Plan::TimerExpired { timer } => What::TimerExpired { timer: record.get(timer)? },
        Plan::WheelExpire { timer, function } => {
            What::WheelExpire { timer: record.get(timer)?, function: record.get(function)? }
        }
        Plan::WheelExpired { timer } => What::WheelExpired { timer: record.get(timer)? },
        _ => return None,
    })
}
