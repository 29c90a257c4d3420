//! Who runs on each CPU, who could, and who ran in the place of a thread.

use std::collections::BTreeMap;

use rtproof_model::program::{Happening, What};

use super::meanwhile::{Instead, Meanwhile, Order};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Runs,
    /// Could run on this CPU.
    Ready(u32),
    Sleeps,
}

/// A thread as its last event left it.
#[derive(Clone, Debug)]
struct Known {
    doing: Option<Doing>,
    name: String,
    priority: Option<i32>,
}

/// The threads of the machine at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Machine {
    current: BTreeMap<u32, u32>,
    threads: BTreeMap<u32, Known>,
}

impl Machine {
    fn thread(&mut self, tid: u32) -> &mut Known {
        let new = || Known { doing: None, name: String::new(), priority: None };
        self.threads.entry(tid).or_insert_with(new)
    }

    pub(super) fn apply(&mut self, event: &Happening) {
        match &event.what {
            What::Switched { from, from_priority, is_runnable, to, to_priority, to_name } => {
                let doing = if *is_runnable { Doing::Ready(event.cpu) } else { Doing::Sleeps };
                let of = self.thread(*from);
                (of.doing, of.priority) = (Some(doing), Some(*from_priority));
                let of = self.thread(*to);
                (of.doing, of.priority) = (Some(Doing::Runs), Some(*to_priority));
                of.name.clone_from(to_name);
                self.current.insert(event.cpu, *to);
            }
            What::Woken { tid, cpu } if self.thread(*tid).doing != Some(Doing::Runs) => {
                self.thread(*tid).doing = Some(Doing::Ready(*cpu));
            }
            What::Moved { tid, cpu } => {
                let of = self.thread(*tid);
                if matches!(of.doing, Some(Doing::Ready(_))) {
                    of.doing = Some(Doing::Ready(*cpu));
                }
            }
            _ => {}
        }
    }

    pub(super) fn name(&self, tid: u32) -> Option<&str> {
        self.threads.get(&tid).map(|of| of.name.as_str()).filter(|name| !name.is_empty())
    }

    pub(super) fn priority(&self, tid: u32) -> Option<i32> {
        self.threads.get(&tid)?.priority
    }

    /// Adds what a holder did in a stretch of time to what it did before.
    fn add(&self, holder: u32, waiter: i32, ns: u64, to: &mut Meanwhile) {
        let of = self.threads.get(&holder);
        let cpu = match of.and_then(|of| of.doing) {
            Some(Doing::Runs) => return to.holder_ran_ns += ns,
            Some(Doing::Sleeps) => return to.holder_slept_ns += ns,
            Some(Doing::Ready(cpu)) => cpu,
            None => return to.unknown_ns += ns,
        };
        let Some(&tid) = self.current.get(&cpu).filter(|tid| **tid != holder) else {
            return to.unknown_ns += ns;
        };
        let own = of.and_then(|of| of.priority);
        let order = match (self.priority(tid), own) {
            _ if tid == 0 => Order::Idle,
            (Some(it), _) if it <= waiter => Order::Higher,
            // Ordinary threads take turns, whatever their nice value is.
            (Some(it), Some(own)) if it <= own || it >= 100 && own >= 100 => Order::Middle,
            (Some(_), Some(_)) => Order::Lower,
            _ => return to.unknown_ns += ns,
        };
        match to.instead.iter_mut().find(|it| it.tid == tid && it.order == order) {
            Some(it) => it.ns += ns,
            None => to.instead.push(Instead {
                tid,
                name: self.name(tid).unwrap_or_default().to_owned(),
                priority: self.priority(tid).unwrap_or(0),
                order,
                ns,
            }),
        }
    }

    /// What a holder did from one time to another, by the events that follow.
    pub(super) fn meanwhile(
        mut self,
        log: &[Happening],
        (holder, waiter): (u32, i32),
        (from_ns, to_ns): (u64, u64),
        to: &mut Meanwhile,
    ) {
        let mut at_ns = from_ns;
        for event in log {
            if event.time_ns >= to_ns {
                break;
            }
            if event.time_ns > at_ns {
                self.add(holder, waiter, event.time_ns - at_ns, to);
                at_ns = event.time_ns;
            }
            self.apply(event);
        }
        self.add(holder, waiter, to_ns.saturating_sub(at_ns), to);
        to.instead.sort_by_key(|it| std::cmp::Reverse(it.ns));
    }
}
