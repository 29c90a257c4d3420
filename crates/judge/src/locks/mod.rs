//! The locks that the real-time threads of a program wait for: who held each, and who ran in the
//! holder's place. Where that is a thread of lower priority than the waiter's, it is priority
//! inversion, which priority inheritance ends ([`Locks`]).
//!
//! A wait is one for a lock only where its word is that of one. The word is 2, as the locks of
//! glibc and Rust have it while a thread waits, or it is the thread number of the holder. That
//! alone proves nothing. A mutex of glibc has its owner beside the word. Another lock is likely by
//! its use: whoever waited for it wakes the next one afterwards, and nobody waits there for another
//! value.
//! Two threads that hand work to each other may do the same.

mod evidence;
mod machine;
mod meanwhile;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use rtproof_model::program::{Happening, Stack, What};
use schemars::JsonSchema;
use serde::Serialize;

pub use self::{
    evidence::LockKind,
    meanwhile::{Instead, Meanwhile, Order},
};
use self::{
    evidence::{Call, Word},
    machine::Machine,
};

/// A thread by number, name and priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct Party {
    pub tid: u32,
    pub name: String,
    /// Its priority in the kernel's numbers; `None`: it was not seen.
    pub priority: Option<i32>,
}

/// The waits of a thread for a lock that another one held.
#[derive(Clone, Debug)]
pub struct Waits {
    pub pid: u32,
    /// Address of the lock.
    pub address: u64,
    /// What the lock is.
    pub kind: LockKind,
    pub waiter: Party,
    /// Who held it at the end of the longest wait.
    pub holder: Party,
    pub count: u64,
    /// All waits together, nanoseconds.
    pub sum_ns: u64,
    /// The longest, nanoseconds: from when the thread left the CPU to when it was woken.
    pub worst_ns: u64,
    /// Others that released the lock before it was the waiter's turn in the longest.
    pub hands: u64,
    /// What the holder did in the longest.
    pub meanwhile: Meanwhile,
    /// The user's stack of the longest.
    pub stack: Option<Box<Stack>>,
}

/// Waits that are none for a lock without priority inheritance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Others {
    /// For a lock with priority inheritance (FUTEX_LOCK_PI).
    pub inheriting: u64,
    /// The longest of these, nanoseconds.
    pub inheriting_worst_ns: u64,
    /// For anything else: a condition variable, a semaphore, a lock that is not recognised.
    pub events: u64,
    /// For what may be a lock, and may be something else.
    pub not_sure: u64,
    /// The longest of these, nanoseconds.
    pub not_sure_worst_ns: u64,
    /// For a lock, given up or interrupted.
    pub given_up: u64,
    /// For a lock, woken by nobody who was seen to release it.
    pub unseen: u64,
    /// For a lock, without an end until the observation ended.
    pub endless: u64,
    /// For a lock, among more events than are kept.
    pub too_long: u64,
}

/// What the events do not say.
pub trait Memory {
    /// Five words of a thread's memory from an address on.
    fn words(&mut self, tid: u32, address: u64) -> Option<[u32; 5]>;
}

/// A call of futex(2) that has not returned.
#[derive(Debug)]
struct Inside {
    at: (u32, u64),
    call: Call,
    /// When the thread left the CPU, and its priority then.
    left: Option<(u64, i32)>,
    /// When it was woken, and by whom, if that one was releasing the lock.
    woken: Option<(u64, Option<u32>)>,
    /// Who released it meanwhile, and when.
    hands: Vec<(u64, u32)>,
    /// The owner that its memory named.
    owner: Option<u32>,
    stack: Option<Box<Stack>>,
    is_blind: bool,
}

/// Most events that are kept while a thread waits.
const LOG_MAX: usize = 200_000;
/// Most locks with their waiters that are kept apart.
const WAITS_MAX: usize = 1_024;

/// Follows the calls of futex(2) of a program, and who runs on the machine.
#[derive(Debug)]
pub struct Locks {
    futex: Vec<i64>,
    pids: BTreeMap<u32, u32>,
    names: BTreeMap<u32, String>,
    base: Machine,
    /// What happened since `base`, while a thread waits.
    log: Vec<Happening>,
    inside: BTreeMap<u32, Inside>,
    words: BTreeMap<(u32, u64), Word>,
    /// Who has waited for a lock and not released it since.
    owes: BTreeSet<(u32, u64)>,
    waits: BTreeMap<(u32, u64, u32, u32), Waits>,
    others: Others,
}

impl Locks {
    /// `futex`: the numbers of the system call, two on a 32-bit processor.
    pub fn new(futex: Vec<i64>) -> Self {
        Self {
            futex,
            pids: BTreeMap::new(),
            names: BTreeMap::new(),
            base: Machine::default(),
            log: Vec::new(),
            inside: BTreeMap::new(),
            words: BTreeMap::new(),
            owes: BTreeSet::new(),
            waits: BTreeMap::new(),
            others: Others::default(),
        }
    }

    /// A thread that ran before it was observed.
    pub fn find(&mut self, pid: u32, tid: u32, name: String) {
        self.pids.insert(tid, pid);
        self.names.insert(tid, name);
    }

    /// Takes an event, in the order of time.
    pub fn take(&mut self, event: Happening) {
        let Happening { time_ns, pid, tid, .. } = event;
        match &event.what {
            What::Forked { pid, tid, parent, .. } => {
                let name = self.names.get(parent).cloned().unwrap_or_default();
                self.find(*pid, *tid, name);
            }
            What::Named { name, .. } => self.find(pid, tid, name.clone()),
            What::Ended => drop(self.inside.remove(&tid)),
            What::Enter { number, args } if self.futex.contains(number) => {
                self.enter((pid, tid), time_ns, args, event.stack);
            }
            What::Exit { number, result } if self.futex.contains(number) => self.exit(tid, *result),
            What::Switched { from, from_priority, is_runnable, .. } => {
                if let Some(of) = self.inside.get_mut(from).filter(|_| !is_runnable) {
                    of.left.get_or_insert((time_ns, *from_priority));
                }
                self.machine(event);
            }
            What::Woken { tid: woken, .. } => {
                self.woken(*woken, tid, time_ns);
                self.machine(event);
            }
            What::Moved { .. } => self.machine(event),
            _ => {}
        }
    }

    fn machine(&mut self, event: Happening) {
        let waits = |of: &Inside| of.call.is_lock() && !of.is_blind;
        if !self.inside.values().any(waits) {
            self.log.drain(..).for_each(|event| self.base.apply(&event));
            return self.base.apply(&event);
        }
        self.log.push(event);
        if self.log.len() > LOG_MAX {
            self.inside.values_mut().for_each(|of| of.is_blind = true);
        }
    }

    fn enter(
        &mut self,
        (pid, tid): (u32, u32),
        time_ns: u64,
        args: &[u64; 6],
        stack: Option<Box<Stack>>,
    ) {
        let call = Call::of(args, |holder| self.pids.get(&holder) == Some(&pid));
        let at = (pid, args[0]);
        let word = |words: &mut BTreeMap<(u32, u64), Word>, at| {
            words.entry(at).or_default().see(call);
        };
        match call {
            Call::Else => return,
            Call::Moves => {
                word(&mut self.words, at);
                word(&mut self.words, (pid, args[4]));
                return;
            }
            Call::Inherits => {}
            _ => word(&mut self.words, at),
        }
        if matches!(call, Call::Wakes { .. }) {
            if self.owes.remove(&(tid, args[0])) {
                self.words.entry(at).or_default().releases += 1;
            }
            let waits = |of: &&mut Inside| of.at == at && of.call.is_lock() && of.woken.is_none();
            self.inside.values_mut().filter(waits).for_each(|of| of.hands.push((time_ns, tid)));
        }
        let (left, woken, owner, is_blind) = (None, None, None, false);
        let hands = Vec::new();
        self.inside.insert(tid, Inside { at, call, left, woken, hands, owner, stack, is_blind });
    }

    fn woken(&mut self, tid: u32, by: u32, time_ns: u64) {
        let releases = |at| {
            let of = self.inside.get(&by)?;
            (matches!(of.call, Call::Wakes { .. }) && of.at == at).then_some(by)
        };
        let Some(at) = self.inside.get(&tid).filter(|of| of.left.is_some()).map(|of| of.at) else {
            return;
        };
        let by = releases(at);
        if let Some(of) = self.inside.get_mut(&tid) {
            of.woken = Some((time_ns, by));
        }
    }

    fn exit(&mut self, tid: u32, result: i64) {
        let Some(of) = self.inside.remove(&tid) else { return };
        // Who never left the CPU did not wait; whether an ordinary thread does is no matter.
        let Some((left_ns, priority)) = of.left else { return };
        if of.call.is_lock() && result == 0 {
            self.owes.insert((tid, of.at.1));
        }
        if priority >= 100 {
            return;
        }
        match (of.call, of.woken) {
            (Call::Inherits, Some((woken_ns, _))) => {
                let ns = woken_ns.saturating_sub(left_ns);
                self.others.inheriting += 1;
                self.others.inheriting_worst_ns = self.others.inheriting_worst_ns.max(ns);
            }
            (Call::Waits, _) => self.others.events += 1,
            (Call::Locks { .. }, _) if result != 0 => self.others.given_up += 1,
            (Call::Locks { .. }, _) if of.is_blind => self.others.too_long += 1,
            (Call::Locks { holder }, Some((woken_ns, Some(by)))) => {
                self.file((tid, priority), holder, by, &of, (left_ns, woken_ns));
            }
            (Call::Locks { .. }, _) => self.others.unseen += 1,
            _ => {}
        }
    }

    /// A wait that ended as a thread released the lock.
    fn file(
        &mut self,
        (tid, priority): (u32, i32),
        named: Option<u32>,
        by: u32,
        of: &Inside,
        (left_ns, woken_ns): (u64, u64),
    ) {
        let word = self.words.entry(of.at).or_default();
        word.is_named |= named == Some(by);
        word.is_owned |= of.owner == Some(by);
        let mut meanwhile = Meanwhile::default();
        // Each release ends one holder's time; the last one is that of `by`, and wakes the waiter.
        let last = of.hands.iter().rposition(|(_, hand)| *hand == by).unwrap_or(of.hands.len());
        let before = of.hands[..last].iter().map(|&(at_ns, hand)| (at_ns.max(left_ns), hand));
        let mut from_ns = left_ns;
        for (to_ns, hand) in before.chain([(woken_ns, by)]) {
            let (both, span) = ((hand, priority), (from_ns, to_ns));
            self.base.clone().meanwhile(&self.log, both, span, &mut meanwhile);
            from_ns = to_ns;
        }
        let party = |tid: u32, priority| {
            let name = self.names.get(&tid).map(String::as_str).or(self.base.name(tid));
            Party { tid, name: name.unwrap_or_default().to_owned(), priority }
        };
        let holder_priority = self.base.priority(by).or_else(|| {
            self.log.iter().rev().find_map(|event| match event.what {
                What::Switched { from, from_priority, .. } if from == by => Some(from_priority),
                What::Switched { to, to_priority, .. } if to == by => Some(to_priority),
                _ => None,
            })
        });
        let (waiter, holder) = (party(tid, Some(priority)), party(by, holder_priority));
        let key = (of.at.0, of.at.1, tid, by);
        if self.waits.len() >= WAITS_MAX && !self.waits.contains_key(&key) {
            self.others.unseen += 1;
            return;
        }
        let ns = woken_ns.saturating_sub(left_ns);
        let fresh = Waits {
            pid: of.at.0,
            address: of.at.1,
            kind: LockKind::NotSure,
            waiter,
            holder,
            count: 0,
            sum_ns: 0,
            worst_ns: 0,
            hands: last as u64,
            meanwhile,
            stack: of.stack.clone(),
        };
        let entry = self.waits.entry(key).or_insert_with(|| fresh.clone());
        let (count, sum_ns) = (entry.count + 1, entry.sum_ns + ns);
        if ns >= entry.worst_ns {
            *entry = Waits { worst_ns: ns, ..fresh };
        }
        (entry.count, entry.sum_ns) = (count, sum_ns);
    }

    /// Reads the memory of the locks that are waited for now.
    pub fn look(&mut self, memory: &mut dyn Memory) {
        let pids = &self.pids;
        for (&tid, of) in &mut self.inside {
            if of.call.is_lock()
                && of.left.is_some()
                && let Some(words) = memory.words(tid, of.at.1)
            {
                let owner = evidence::owner(&words);
                of.owner = owner.filter(|owner| pids.get(owner) == Some(&of.at.0)).or(of.owner);
            }
        }
    }

    /// No event follows: the waits for what is or may be a lock, the longest first, and what else
    /// was waited for.
    pub fn finish(mut self) -> (Vec<Waits>, Others) {
        let is_real_time = |of: &&Inside| of.left.is_some_and(|(_, priority)| priority < 100);
        let open = self.inside.values().filter(is_real_time);
        self.others.endless += open.filter(|of| of.call.is_lock()).count() as u64;
        let mut all: Vec<Waits> = self.waits.into_values().collect();
        for of in &mut all {
            of.kind = self.words.get(&(of.pid, of.address)).map_or(LockKind::NotSure, Word::kind);
        }
        all.sort_by_key(|of| std::cmp::Reverse(of.worst_ns));
        (all, self.others)
    }
}
