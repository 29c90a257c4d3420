//! The locks that the real-time threads of a program wait for: who held each, and who ran in the
//! holder's place. Where that is a thread of lower priority than the waiter's, it is priority
//! inversion, which priority inheritance ends ([`Locks`]).
//!
//! A wait is one for a lock only where its word is that of one. The word is 2, as the locks of
//! glibc and Rust have it while a thread waits, or it is the thread number of the holder. That
//! alone proves nothing. A mutex of glibc has its owner beside the word. Another lock is likely by
//! its use: whoever waited for it wakes the next one afterwards, and no one waits there for another
//! value.
//! Two threads that hand work to each other may do the same.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;

use rtproof_model::run::{ProgramEvent, ProgramEventData, Stack};

/// A thread by number, name and priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
pub struct LockThread {
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
    pub waiter: LockThread,
    /// Holder at the end of the longest wait.
    pub holder: LockThread,
    pub count: u64,
    /// All waits together, nanoseconds.
    pub sum_ns: u64,
    /// The longest, nanoseconds: from when the thread left the CPU to when it was woken.
    pub worst_ns: u64,
    /// Others that released the lock before it was the waiter's turn in the longest.
    pub hands: u64,
    /// What the holder did in the longest.
    pub holder_time: HolderTime,
    /// The user's stack of the longest.
    pub stack: Option<Box<Stack>>,
}

/// Waits that are not for a lock without priority inheritance.
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
    /// For a lock, woken without a recorded release.
    pub unseen: u64,
    /// For a lock, without an end until the observation ended.
    pub endless: u64,
    /// For a lock, among more events than are kept.
    pub too_long: u64,
}

/// What the events do not say.
pub trait LockMemory {
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
    /// When it was woken, and the waker, if that one was releasing the lock.
    woken: Option<(u64, Option<u32>)>,
    /// The thread that released it meanwhile, and when.
    hands: Vec<(u64, u32)>,
    /// The owner that its memory named.
    owner: Option<u32>,
    stack: Option<Box<Stack>>,
    is_incomplete: bool,
}

/// Most events that are kept while a thread waits.
const LOG_MAX: usize = 200_000;

/// Most locks with their waiters that are kept apart.
const WAITS_MAX: usize = 1_024;

/// Follows the calls of futex(2) of a program, and the tasks that run on the machine.
#[derive(Debug)]
pub struct Locks {
    futex: Vec<i64>,
    pids: BTreeMap<u32, u32>,
    names: BTreeMap<u32, String>,
    base: Machine,
    /// What happened since `base`, while a thread waits.
    log: Vec<ProgramEvent>,
    inside: BTreeMap<u32, Inside>,
    words: BTreeMap<(u32, u64), Word>,
    /// Threads that waited for a lock and have not released it since.
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
    pub fn take(&mut self, event: ProgramEvent) {
        let ProgramEvent { time_ns, pid, tid, .. } = event;
        match &event.what {
            ProgramEventData::Forked { pid, tid, parent, .. } => {
                let name = self.names.get(parent).cloned().unwrap_or_default();
                self.find(*pid, *tid, name);
            }
            ProgramEventData::Named { name, .. } => self.find(pid, tid, name.clone()),
            ProgramEventData::Ended => drop(self.inside.remove(&tid)),
            ProgramEventData::Enter { number, args } if self.futex.contains(number) => {
                self.enter((pid, tid), time_ns, args, event.stack);
            }
            ProgramEventData::Exit { number, result } if self.futex.contains(number) => {
                self.exit(tid, *result)
            }
            ProgramEventData::Switched { from, from_priority, is_runnable, .. } => {
                if let Some(of) = self.inside.get_mut(from).filter(|_| !is_runnable) {
                    of.left.get_or_insert((time_ns, *from_priority));
                }
                self.machine(event);
            }
            ProgramEventData::Woken { tid: woken, .. } => {
                self.woken(*woken, tid, time_ns);
                self.machine(event);
            }
            ProgramEventData::Moved { .. } => self.machine(event),
            _ => {}
        }
    }

    fn machine(&mut self, event: ProgramEvent) {
        let waits = |of: &Inside| of.call.is_lock() && !of.is_incomplete;
        if !self.inside.values().any(waits) {
            self.log.drain(..).for_each(|event| self.base.apply(&event));
            return self.base.apply(&event);
        }
        self.log.push(event);
        if self.log.len() > LOG_MAX {
            self.inside.values_mut().for_each(|of| of.is_incomplete = true);
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
            words.entry(at).or_default().add_call(call);
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
        let (left, woken, owner, is_incomplete) = (None, None, None, false);
        let hands = Vec::new();
        self.inside
            .insert(tid, Inside { at, call, left, woken, hands, owner, stack, is_incomplete });
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
        // A thread that never left the CPU did not wait; ordinary threads do not matter.
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
            (Call::Locks { .. }, _) if of.is_incomplete => self.others.too_long += 1,
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
        let mut meanwhile = HolderTime::default();
        // Each release ends one holder's time; the last one is that of `by`, and wakes the waiter.
        let last = of.hands.iter().rposition(|(_, hand)| *hand == by).unwrap_or(of.hands.len());
        let before = of.hands[..last].iter().map(|&(at_ns, hand)| (at_ns.max(left_ns), hand));
        let mut from_ns = left_ns;
        for (to_ns, hand) in before.chain([(woken_ns, by)]) {
            let (both, span) = ((hand, priority), (from_ns, to_ns));
            self.base.clone().holder_time(&self.log, both, span, &mut meanwhile);
            from_ns = to_ns;
        }
        let party = |tid: u32, priority| {
            let name = self.names.get(&tid).map(String::as_str).or(self.base.name(tid));
            LockThread { tid, name: name.unwrap_or_default().to_owned(), priority }
        };
        let holder_priority = self.base.priority(by).or_else(|| {
            self.log.iter().rev().find_map(|event| match event.what {
                ProgramEventData::Switched { from, from_priority, .. } if from == by => {
                    Some(from_priority)
                }
                ProgramEventData::Switched { to, to_priority, .. } if to == by => Some(to_priority),
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
            holder_time: meanwhile,
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
    pub fn read_memory(&mut self, memory: &mut dyn LockMemory) {
        let pids = &self.pids;
        for (&tid, of) in &mut self.inside {
            if of.call.is_lock()
                && of.left.is_some()
                && let Some(words) = memory.words(tid, of.at.1)
            {
                let owner = owner(&words);
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

// Whether what a thread waits for is a lock: by the arguments of futex(2), by how the word is
// used, by the words next to it.

/// What a lock is, and how that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// A mutex of glibc without priority inheritance: its owner was read, and released it; or the
    /// thread waited in glibc's `pthread_mutex_lock`.
    Pthread,
    /// A lock whose word is the number of its holder, who released it: robust ones of glibc, those
    /// of musl.
    Named,
    /// A lock of Rust's library, in which the thread waited.
    Rust,
    /// Used as a lock is: likely one.
    Used,
    /// It looks like one; what it is was not seen.
    NotSure,
}

/// A call of futex(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// Waits as for a lock; the holder where the word names it.
    Locks {
        holder: Option<u32>,
    },
    /// Waits for anything else.
    Waits,
    Wakes {
        count: u32,
    },
    /// Waits for a lock with priority inheritance.
    Inherits,
    /// Moves waiters from one word to another, or changes another word.
    Moves,
    Else,
}

impl Call {
    /// By its arguments; `is_sibling`: whether a number is that of a thread of the same process.
    fn of(args: &[u64; 6], is_sibling: impl Fn(u32) -> bool) -> Self {
        /// Locked, with waiters: glibc's low-level lock, Rust's, Go's.
        const CONTENDED: u32 = 2;
        const WAITERS: u32 = 0x8000_0000;
        const TID: u32 = 0x3fff_ffff;
        let value = args[2] as u32;
        // FUTEX_CMD_MASK leaves private and clock out.
        match args[1] & 0x7f {
            0 | 9 if value == CONTENDED => Self::Locks { holder: None },
            0 | 9 if value & WAITERS != 0 && is_sibling(value & TID) => {
                Self::Locks { holder: Some(value & TID) }
            }
            0 | 9 | 11 => Self::Waits,
            1 | 10 => Self::Wakes { count: value },
            3 | 4 | 5 | 12 => Self::Moves,
            6 | 13 => Self::Inherits,
            _ => Self::Else,
        }
    }

    const fn is_lock(self) -> bool {
        matches!(self, Self::Locks { .. })
    }
}

/// How a word is used.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    /// A thread waited for another value, or woke more than one: no lock does.
    is_other: bool,
    /// Times that a thread which had waited for it has released it.
    releases: u32,
    /// The word named the thread that released it.
    is_named: bool,
    /// Its memory named the thread that released it.
    is_owned: bool,
}

/// So often a word was used as a lock is before it is taken for one.
const RELEASES_MIN: u32 = 2;

impl Word {
    const fn add_call(&mut self, call: Call) {
        if matches!(call, Call::Waits | Call::Moves) {
            self.is_other = true;
        } else if let Call::Wakes { count } = call {
            self.is_other |= count != 1;
        }
    }

    const fn kind(&self) -> LockKind {
        match self {
            Self { is_named: true, .. } => LockKind::Named,
            Self { is_other: true, .. } => LockKind::NotSure,
            Self { is_owned: true, .. } => LockKind::Pthread,
            Self { releases: RELEASES_MIN.., .. } => LockKind::Used,
            _ => LockKind::NotSure,
        }
    }
}

/// The owner of a mutex of glibc that has waiters and no priority inheritance, by its first five
/// words: lock, count, owner, users, kind (sysdeps/nptl/bits/struct_mutex.h).
fn owner(words: &[u32; 5]) -> Option<u32> {
    /// Shared between processes; lock elision allowed, forbidden.
    const FLAGS: u32 = 128 | 256 | 512;
    let [lock, _, owner, users, kind] = *words;
    let is_plain = matches!(kind & !FLAGS, 0..=3);
    (lock == 2 && is_plain && users > 0).then_some(owner)
}

// Which task runs on each CPU, which could, and which ran instead of a thread.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadDoing {
    Runs,
    /// Could run on this CPU.
    Ready(u32),
    Sleeps,
}

/// A thread as its last event left it.
#[derive(Clone, Debug)]
struct Known {
    doing: Option<ThreadDoing>,
    name: String,
    priority: Option<i32>,
}

/// The threads of the machine at a time.
#[derive(Clone, Debug, Default)]
struct Machine {
    current: BTreeMap<u32, u32>,
    threads: BTreeMap<u32, Known>,
}

impl Machine {
    fn thread(&mut self, tid: u32) -> &mut Known {
        let new = || Known { doing: None, name: String::new(), priority: None };
        self.threads.entry(tid).or_insert_with(new)
    }

    fn apply(&mut self, event: &ProgramEvent) {
        match &event.what {
            ProgramEventData::Switched {
                from,
                from_priority,
                is_runnable,
                to,
                to_priority,
                to_name,
            } => {
                let doing =
                    if *is_runnable { ThreadDoing::Ready(event.cpu) } else { ThreadDoing::Sleeps };
                let of = self.thread(*from);
                (of.doing, of.priority) = (Some(doing), Some(*from_priority));
                let of = self.thread(*to);
                (of.doing, of.priority) = (Some(ThreadDoing::Runs), Some(*to_priority));
                of.name.clone_from(to_name);
                self.current.insert(event.cpu, *to);
            }
            ProgramEventData::Woken { tid, cpu }
                if self.thread(*tid).doing != Some(ThreadDoing::Runs) =>
            {
                self.thread(*tid).doing = Some(ThreadDoing::Ready(*cpu));
            }
            ProgramEventData::Moved { tid, cpu } => {
                let of = self.thread(*tid);
                if matches!(of.doing, Some(ThreadDoing::Ready(_))) {
                    of.doing = Some(ThreadDoing::Ready(*cpu));
                }
            }
            _ => {}
        }
    }

    fn name(&self, tid: u32) -> Option<&str> {
        self.threads.get(&tid).map(|of| of.name.as_str()).filter(|name| !name.is_empty())
    }

    fn priority(&self, tid: u32) -> Option<i32> {
        self.threads.get(&tid)?.priority
    }

    /// Adds what a holder did in a stretch of time to what it did before.
    fn add(&self, holder: u32, waiter: i32, ns: u64, to: &mut HolderTime) {
        let of = self.threads.get(&holder);
        let cpu = match of.and_then(|of| of.doing) {
            Some(ThreadDoing::Runs) => return to.holder_ran_ns += ns,
            Some(ThreadDoing::Sleeps) => return to.holder_slept_ns += ns,
            Some(ThreadDoing::Ready(cpu)) => cpu,
            None => return to.unknown_ns += ns,
        };
        let Some(&tid) = self.current.get(&cpu).filter(|tid| **tid != holder) else {
            return to.unknown_ns += ns;
        };
        let own = of.and_then(|of| of.priority);
        let order = match (self.priority(tid), own) {
            _ if tid == 0 => LockOrder::Idle,
            (Some(it), _) if it <= waiter => LockOrder::Higher,
            // Ordinary threads take turns, whatever their nice value is.
            (Some(it), Some(own)) if it <= own || it >= 100 && own >= 100 => LockOrder::Middle,
            (Some(_), Some(_)) => LockOrder::Lower,
            _ => return to.unknown_ns += ns,
        };
        match to.preempters.iter_mut().find(|it| it.tid == tid && it.order == order) {
            Some(it) => it.ns += ns,
            None => to.preempters.push(HolderPreempter {
                tid,
                name: self.name(tid).unwrap_or_default().to_owned(),
                priority: self.priority(tid).unwrap_or(0),
                order,
                ns,
            }),
        }
    }

    /// What a holder did from one time to another, by the events that follow.
    fn holder_time(
        mut self,
        log: &[ProgramEvent],
        (holder, waiter): (u32, i32),
        (from_ns, to_ns): (u64, u64),
        to: &mut HolderTime,
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
        to.preempters.sort_by_key(|it| std::cmp::Reverse(it.ns));
    }
}

// What the holder of a lock did while another thread waited for it.

/// Priority of a thread relative to those of the waiter and the holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockOrder {
    /// At least the holder's, and below the waiter's: priority inversion.
    Middle,
    /// At least the waiter's: the waiter would have waited for it anyway.
    Higher,
    /// Below the holder's: preemption was off, or the holder was throttled.
    Lower,
    /// No task ran: the holder was throttled, or on its way to a CPU.
    Idle,
}

/// A task that ran while the holder was runnable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HolderPreempter {
    /// Thread; 0: the idle task.
    pub tid: u32,
    pub name: String,
    /// Its priority in the kernel's numbers: below 100 is real-time, 99 less its priority.
    pub priority: i32,
    /// Priority relative to the others.
    pub order: LockOrder,
    pub ns: u64,
}

/// What the holder did during a wait; sums to its length.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HolderTime {
    pub holder_ran_ns: u64,
    /// It slept or waited itself, nanoseconds.
    pub holder_slept_ns: u64,
    /// It could have run, and others did, the longest first.
    #[serde(rename = "instead")]
    pub preempters: Vec<HolderPreempter>,
    /// Not known: nothing was seen of it so far, or of its CPU.
    pub unknown_ns: u64,
}

impl HolderTime {
    /// How long threads of lower priority than the waiter's ran in the holder's place, nanoseconds.
    pub fn inversion_ns(&self) -> u64 {
        self.preempters.iter().filter(|it| it.order == LockOrder::Middle).map(|it| it.ns).sum()
    }
}
