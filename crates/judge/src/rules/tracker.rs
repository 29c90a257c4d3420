//! Follows each thread of a program through its events, in their order of time, and finds breaches
//! of the rules by those that are real-time at that moment.
//!
//! A thread's class is known from the first look, from its birth, from its own calls, and from its
//! priority at each switch. A priority is that of another one while it holds a lock with priority
//! inheritance: where it differs from the class, the kernel is asked for the policy.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use rtproof_model::run::{Monitor, ProgramEvent, ProgramEventData, Stack};

use super::{CallRule, Rule, call, descriptor};

/// What the events do not say.
pub trait Outside {
    /// What a descriptor of a process is, as /proc/PID/fd names it.
    fn descriptor(&mut self, pid: u32, number: u64) -> Option<String>;

    /// Whether a thread's policy is real-time, and its priority in the kernel's numbers.
    fn class(&mut self, tid: u32) -> Option<(bool, i32)>;

    /// Whether two addresses of a process are in one mapping.
    fn is_same_mapping(&mut self, pid: u32, a: u64, b: u64) -> Option<bool>;
}

/// One breach of a rule, with the thread and its stack.
#[derive(Clone, Debug)]
pub struct RuleBreach {
    pub rule: Rule,
    pub pid: u32,
    pub tid: u32,
    pub time_ns: u64,
    /// How long a call took.
    pub lasted_ns: Option<u64>,
    pub what: String,
    /// Why it is a breach.
    pub why: &'static str,
    pub stack: Option<Box<Stack>>,
    /// The kernel's monitor that reports it, too.
    pub monitor: Option<Monitor>,
}

/// A system call that has not returned.
#[derive(Debug)]
struct Open {
    number: i64,
    name: String,
    /// With what it was made on.
    what: String,
    args: [u64; 6],
    found: Option<RuleBreach>,
    kind: CallRule,
    time_ns: u64,
    stack: Option<Box<Stack>>,
    /// Made in it: process or not, and the new thread.
    made: Option<(bool, u32)>,
    /// Last waker of the thread.
    woken_by: Option<u32>,
    waited: bool,
    /// Whether it began before it was observed: how long it takes is not known.
    began_before: bool,
    /// Why the kernel's monitor reports the sleep in it.
    reported: Option<&'static str>,
}

impl Open {
    fn new(number: i64, name: String, args: [u64; 6], kind: CallRule, time_ns: u64) -> Self {
        Self {
            number,
            what: name.clone(),
            name,
            args,
            found: None,
            kind,
            time_ns,
            stack: None,
            made: None,
            woken_by: None,
            waited: false,
            began_before: false,
            reported: None,
        }
    }
}

/// State of a thread.
#[derive(Debug, Default)]
pub struct TrackedThread {
    pub pid: u32,
    pub name: String,
    /// Whether it is real-time; `None`: not known yet.
    pub is_real_time: Option<bool>,
    /// Whether it ever was.
    pub was_real_time: bool,
    /// Times it left the CPU while it was observed.
    pub switches: u64,
    priority: Option<i32>,
    call: Option<Open>,
    /// The one that it made last and that has not run yet.
    made: Option<u32>,
    /// Breaches while the class was not known.
    pending: Vec<RuleBreach>,
    ended_ns: Option<u64>,
    has_executed: bool,
    /// Whether a call of it began or ended since it is judged.
    has_called: bool,
    strays: BTreeSet<u32>,
    /// Whether the kernel's monitor reports a page fault that is to come.
    fault_reported: bool,
}

/// Follows the threads of a program.
#[derive(Debug)]
pub struct Tracker {
    names: BTreeMap<i64, &'static str>,
    cpus: Option<BTreeSet<u32>>,
    threads: BTreeMap<u32, TrackedThread>,
    /// Threads by the numbers of the kernel's events.
    numbers: BTreeMap<u32, u32>,
    from_ns: Option<u64>,
    last_ns: u64,
    found: Vec<RuleBreach>,
    unobserved: BTreeSet<String>,
    faults_unhandled: u64,
}

/// Most breaches kept of one thread whose class is not known yet.
const PENDING_MAX: usize = 256;

/// A thread may be seen in /proc for so long after the kernel has reported its end.
const ENDING_NS: u64 = 2_000_000_000;

/// How far below the stack pointer a fault is one of the stack where mappings are not known.
const STACK_NEAR: u64 = 128 << 10;

/// Why a report of the kernel's monitor of sleeps is one: in the thread, and in who wakes it.
const WHY_SLEEP: &str = "the kernel's monitor takes this for no safe sleep of a real-time thread";

const WHY_WAKE: &str = "who woke it has a lower priority, or is a softirq";

/// Why one that we do not judge is one.
const WHY_RAISED: &str = "it had a real-time priority then, by inheritance or from outside: what \
                          it does takes the time of who waits for it";

/// Why a lock without priority inheritance is a breach.
const WHY_LOCK: &str = "who holds it can be preempted by anything of middle priority";

impl Tracker {
    /// For a program whose first thread is `tid`; `cpus`: those it may run on, where that was set.
    pub fn new(tid: u32, names: &[(i64, &'static str)], cpus: Option<&[u32]>) -> Self {
        let first = TrackedThread { pid: tid, ..TrackedThread::default() };
        Self {
            names: names.iter().copied().collect(),
            cpus: cpus.map(|cpus| cpus.iter().copied().collect()),
            threads: BTreeMap::from([(tid, first)]),
            numbers: BTreeMap::new(),
            from_ns: None,
            last_ns: 0,
            found: Vec::new(),
            unobserved: BTreeSet::new(),
            faults_unhandled: 0,
        }
    }

    /// The program is ready: what happens from now on is judged.
    pub fn begin(&mut self, from_ns: u64, outside: &mut dyn Outside) {
        self.from_ns = Some(from_ns);
        for (&tid, thread) in self.threads.iter_mut().filter(|(_, it)| it.ended_ns.is_none()) {
            thread.set_class(outside.class(tid));
            thread.made = None;
            // Whether that program is observed, `compare` finds.
            thread.has_executed = false;
        }
    }

    /// A thread that ran before it was observed.
    pub fn find(&mut self, pid: u32, tid: u32, name: String) {
        self.threads.insert(tid, TrackedThread { pid, name, ..TrackedThread::default() });
    }

    /// A thread was inside a system call after [`Self::begin`], which it had made before. Only a
    /// wait for a lock is judged: what it had found where it began is not known.
    pub fn find_inside(&mut self, tid: u32, number: i64, args: [u64; 6], from_ns: u64) {
        let name = self.names.get(&number).copied().unwrap_or_default();
        let Some(thread) = self.threads.get_mut(&tid).filter(|of| !of.has_called) else { return };
        if call(name, &args) == CallRule::Lock {
            let mut open = Open::new(number, name.to_owned(), args, CallRule::Lock, from_ns);
            (open.waited, open.began_before) = (true, true);
            thread.call = Some(open);
        }
    }

    /// Compares with the live threads that were seen at a time before the last event; `why` one may
    /// not be reported.
    pub fn compare(&mut self, seen_ns: u64, live: &[(u32, u32)], why: &str) {
        for &(pid, tid) in live {
            let ended = match self.threads.get(&tid) {
                None => true,
                Some(of) => of.ended_ns.is_some_and(|ns| ns + ENDING_NS < seen_ns),
            };
            if ended {
                self.unobserved.insert(format!(
                    "the kernel does not report thread {tid} of process {pid}: {why}"
                ));
            }
        }
    }

    /// Takes an event, in the order of time. Breaches are handed out by [`Self::found`].
    pub fn take(&mut self, event: ProgramEvent, outside: &mut dyn Outside) {
        self.last_ns = self.last_ns.max(event.time_ns);
        let ProgramEvent { time_ns, cpu, pid, tid, what, stack } = event;
        let judged = self.from_ns.is_some_and(|from| time_ns >= from);
        match what {
            ProgramEventData::Forked { pid, tid, parent, .. } => {
                return self.forked(pid, tid, parent);
            }
            ProgramEventData::Named { name, by_exec } => {
                let thread = self.threads.entry(tid).or_default();
                (thread.pid, thread.name) = (pid, name);
                thread.has_executed = by_exec;
                return;
            }
            ProgramEventData::Ended => return self.ended(tid, time_ns),
            ProgramEventData::Wakes { number } => {
                let woken = self.numbers.get(&number).and_then(|tid| self.threads.get_mut(tid));
                if let Some(call) = woken.and_then(|it| it.call.as_mut()) {
                    call.woken_by = Some(tid);
                }
                return;
            }
            ProgramEventData::Born { priority } => return self.thread_created(tid, priority),
            ProgramEventData::Lost(_) | ProgramEventData::Mapped(_) => return,
            _ => {}
        }
        if let ProgramEventData::Reported { monitor: by, number } = what {
            if judged {
                self.reported(by, number, tid, time_ns);
            }
            return;
        }
        if !judged || !self.threads.contains_key(&tid) {
            return;
        }
        match what {
            ProgramEventData::SwitchedOut { number, priority } => {
                self.numbers.insert(number, tid);
                self.switched(tid, cpu, time_ns, priority, outside);
            }
            ProgramEventData::Enter { number, args } => {
                self.enter(tid, time_ns, number, args, stack, outside)
            }
            ProgramEventData::Exit { number, result } => {
                self.exit(tid, time_ns, number, result, outside)
            }
            ProgramEventData::Fault { address } => {
                self.fault(pid, tid, time_ns, address, stack, outside)
            }
            ProgramEventData::Migrated => {
                let what = format!("runs on CPU {cpu} now");
                self.add(tid, Rule::Migration, time_ns, what, "its caches are cold there", stack);
            }
            ProgramEventData::Signal { number, is_handled: true } => {
                let what = format!("signal {number}");
                let why = "its handler interrupts the thread wherever it is";
                self.add(tid, Rule::Signal, time_ns, what, why, stack);
            }
            _ => {}
        }
    }

    fn add(
        &mut self,
        tid: u32,
        rule: Rule,
        time_ns: u64,
        what: String,
        why: &'static str,
        stack: Option<Box<Stack>>,
    ) {
        let pid = self.threads.get(&tid).map_or(tid, |it| it.pid);
        let (lasted_ns, monitor) = (None, None);
        self.file(RuleBreach { rule, pid, tid, time_ns, lasted_ns, what, why, stack, monitor });
    }

    /// A breach counts if its thread is real-time, or was so to the kernel's monitor.
    fn file(&mut self, found: RuleBreach) {
        let Some(thread) = self.threads.get_mut(&found.tid) else { return };
        match thread.is_real_time {
            Some(true) => self.found.push(found),
            Some(false) if found.monitor.is_some() => {
                self.found.push(RuleBreach { rule: Rule::KernelMonitor, why: WHY_RAISED, ..found });
            }
            Some(false) => {}
            None if thread.pending.len() < PENDING_MAX => thread.pending.push(found),
            None => {
                let text = format!("the class of thread {} is not known", found.tid);
                self.unobserved.insert(text);
            }
        }
    }

    /// A monitor of the kernel reports a thread; `tid`: the one that ran.
    fn reported(&mut self, by: Monitor, number: u32, tid: u32, time_ns: u64) {
        if by == Monitor::PageFault {
            if let Some(thread) = self.threads.get_mut(&tid) {
                thread.fault_reported = true;
                self.faults_unhandled += 1;
            }
            return;
        }
        // Outside of a PID namespace a number is known before its first switch.
        let is_ours = || self.numbers.iter().all(|(number, tid)| number == tid);
        let slept = self.numbers.get(&number).copied();
        let Some(slept) = slept.or_else(|| is_ours().then_some(number)) else { return };
        let Some(thread) = self.threads.get_mut(&slept) else { return };
        let why = if slept == tid { WHY_SLEEP } else { WHY_WAKE };
        if let Some(call) = &mut thread.call {
            call.reported = Some(why);
            return;
        }
        let what = match thread.has_called {
            true => "sleep in no system call that is recorded",
            false => "sleep in a system call that it made before it was observed",
        };
        self.file_monitor_breach(slept, time_ns, None, what.into(), why, None);
    }

    /// A report of the kernel's monitor of sleeps that is no breach of ours.
    fn file_monitor_breach(
        &mut self,
        tid: u32,
        time_ns: u64,
        lasted_ns: Option<u64>,
        what: String,
        why: &'static str,
        stack: Option<Box<Stack>>,
    ) {
        let pid = self.threads.get(&tid).map_or(tid, |it| it.pid);
        let (rule, monitor) = (Rule::KernelMonitor, Some(Monitor::Sleep));
        self.file(RuleBreach { rule, pid, tid, time_ns, lasted_ns, what, why, stack, monitor });
    }

    fn forked(&mut self, pid: u32, tid: u32, parent: u32) {
        let made = self.threads.get_mut(&parent);
        let mut name = String::new();
        if let Some(of) = made {
            name.clone_from(&of.name);
            of.made = Some(tid);
            let is_process = of.pid != pid;
            if let Some(call) = &mut of.call {
                call.made = Some((is_process, tid));
            }
        }
        // A number that is used again is another thread.
        self.threads.insert(tid, TrackedThread { pid, name, ..TrackedThread::default() });
    }

    fn thread_created(&mut self, parent: u32, priority: i32) {
        let made = self.threads.get_mut(&parent).and_then(|it| it.made.take());
        if let Some(thread) = made.and_then(|tid| self.threads.get_mut(&tid)) {
            thread.set_class(Some((priority < 100, priority)));
        }
    }

    fn ended(&mut self, tid: u32, time_ns: u64) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.ended_ns = Some(time_ns);
        if thread.has_executed && self.from_ns.is_some_and(|from| time_ns >= from) {
            self.unobserved.insert(format!(
                "thread {tid} executed a program that the kernel does not let be observed \
                 (set-user-ID, or not to be read)"
            ));
        }
        self.flush(tid);
        self.settle(tid, true);
    }

    /// A call that never returned counts as well.
    fn flush(&mut self, tid: u32) {
        let Some(call) = self.threads.get_mut(&tid).and_then(|it| it.call.take()) else { return };
        if call.kind == CallRule::Lock && call.waited {
            let what = "waits on a lock until the end; who holds it is not known".into();
            self.add(tid, Rule::Lock, call.time_ns, what, WHY_LOCK, call.stack);
        } else if let Some(found) = call.found {
            let monitor = call.reported.map(|_| Monitor::Sleep);
            self.file(RuleBreach { monitor, ..found });
        } else if let Some(why) = call.reported {
            self.file_monitor_breach(tid, call.time_ns, None, call.what, why, call.stack);
        }
    }

    /// Files what waited for the class of its thread.
    fn settle(&mut self, tid: u32, is_last: bool) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        if thread.is_real_time.is_none() && is_last && !thread.pending.is_empty() {
            self.unobserved.insert(format!("the class of thread {tid} is not known"));
        }
        if thread.is_real_time.is_some() || is_last {
            let pending = std::mem::take(&mut thread.pending);
            pending.into_iter().for_each(|found| self.file(found));
        }
    }

    fn switched(&mut self, tid: u32, cpu: u32, at: u64, priority: i32, out: &mut dyn Outside) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.switches += 1;
        thread.has_executed = false;
        if let Some(call) = &mut thread.call {
            call.waited = true;
        }
        let before = (thread.is_real_time, thread.priority);
        let seen = (priority < 100, priority);
        let differs = before != (Some(seen.0), Some(seen.1));
        // Priority inheritance raises, and never lowers: a low one is its own.
        let is_ordinary_as_before = before.0 == Some(false) && !seen.0;
        let mut changed = None;
        if differs && !is_ordinary_as_before {
            // One that has ended: what raised it may have been inheritance.
            let kept = before.0.zip(before.1).unwrap_or(seen);
            let class = if seen.0 { out.class(tid).or(Some(kept)) } else { Some(seen) };
            thread.set_class(class);
            if let (Some(true), Some(old), Some((_, new))) = (before.0, before.1, class)
                && old != new
            {
                changed = Some(format!("{}, before {}", words(new), words(old)));
            }
        }
        let strays = self.cpus.as_ref().is_some_and(|cpus| !cpus.contains(&cpu));
        let strays = strays && thread.strays.insert(cpu);
        self.settle(tid, false);
        if let Some(what) = changed {
            // It may be ordinary now: that is the breach.
            let pid = self.threads.get(&tid).map_or(tid, |it| it.pid);
            let why = "its class or priority was changed from outside of it";
            let rule = Rule::Scheduling;
            let (lasted_ns, stack, monitor) = (None, None, None);
            let time_ns = at;
            let found =
                RuleBreach { rule, pid, tid, time_ns, lasted_ns, what, why, stack, monitor };
            self.found.push(found);
        }
        if strays {
            let what = format!("ran on CPU {cpu}");
            self.add(tid, Rule::Scheduling, at, what, "--cpus does not name this CPU", None);
        }
    }

    fn enter(
        &mut self,
        tid: u32,
        time_ns: u64,
        number: i64,
        args: [u64; 6],
        stack: Option<Box<Stack>>,
        out: &mut dyn Outside,
    ) {
        if stack.as_ref().is_some_and(|of| of.is_foreign) {
            let why = "a thread runs code of another width (32 or 64 bits) than rtproof, whose \
                       system calls differ";
            self.unobserved.insert(why.into());
            return;
        }
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.fault_reported = false;
        let name = self.names.get(&number);
        let name = name.map_or_else(|| format!("system call {number}"), |it| (*it).to_owned());
        let mut kind = call(&name, &args);
        let mut what = name.clone();
        if matches!(kind, CallRule::Writes | CallRule::Reads) && thread.is_real_time != Some(false)
        {
            let target = out.descriptor(thread.pid, args[0]);
            let shown = target.as_deref().unwrap_or("a descriptor that could not be looked at");
            what = format!("{name} on {} ({shown})", args[0]);
            kind = descriptor(args[0], target.as_deref(), kind == CallRule::Reads);
        }
        let pid = thread.pid;
        let found = match kind {
            CallRule::Breach(rule, why) => Some(RuleBreach {
                rule,
                pid,
                tid,
                time_ns,
                lasted_ns: None,
                what: what.clone(),
                why,
                stack: stack.clone(),
                monitor: None,
            }),
            _ => None,
        };
        thread.has_called = true;
        let open = Open::new(number, name, args, kind, time_ns);
        thread.call = Some(Open { found, stack, what, ..open });
    }

    fn exit(&mut self, tid: u32, at: u64, number: i64, result: i64, out: &mut dyn Outside) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        thread.has_executed = false;
        thread.has_called = true;
        thread.fault_reported = false;
        let Some(mut call) = thread.call.take().filter(|call| call.number == number) else {
            return;
        };
        let lasted_ns = (!call.began_before).then(|| at.saturating_sub(call.time_ns));
        let monitor = call.reported.map(|_| Monitor::Sleep);
        if let Some(found) = call.found.take() {
            return self.file(RuleBreach { lasted_ns, monitor, ..found });
        }
        let pid = thread.pid;
        let made = |rule, what, why| RuleBreach {
            rule,
            pid,
            tid,
            time_ns: call.time_ns,
            lasted_ns,
            what,
            why,
            stack: call.stack.clone(),
            monitor,
        };
        match call.kind {
            CallRule::Lock if call.waited => {
                // A wait that times out or is interrupted did not get the lock.
                let what = match result {
                    0 => format!("waited on a lock that {} held", self.thread_name(call.woken_by)),
                    _ => "waited on a lock and did not get it; who held it is not known".into(),
                };
                let found = made(Rule::Lock, what, WHY_LOCK);
                self.file(found);
            }
            CallRule::Makes => {
                let is_born_real_time = |tid: &u32| {
                    self.threads.get(tid).is_some_and(|it| it.is_real_time == Some(true))
                };
                let found = match call.made {
                    Some((true, child)) if is_born_real_time(&child) => made(
                        Rule::Inheritance,
                        format!("{}: process {child} has the real-time class", call.name),
                        "what it executes runs at this priority, too",
                    ),
                    _ => made(
                        Rule::Blocking,
                        call.name.clone(),
                        "making a thread or process takes memory and locks of the whole machine",
                    ),
                };
                self.file(found);
            }
            CallRule::Schedules => {
                let found = made(
                    Rule::Scheduling,
                    call.name.clone(),
                    "class, priority or CPUs are set while the program is at work",
                );
                self.schedules(tid, &call.name, call.args, result, found, out);
            }
            _ => {
                if let Some(why) = call.reported {
                    self.file_monitor_breach(
                        tid,
                        call.time_ns,
                        lasted_ns,
                        call.what,
                        why,
                        call.stack,
                    );
                }
            }
        }
    }

    /// A call that sets how a thread is scheduled: a breach by a real-time thread, or to one.
    fn schedules(
        &mut self,
        tid: u32,
        name: &str,
        args: [u64; 6],
        result: i64,
        found: RuleBreach,
        out: &mut dyn Outside,
    ) {
        let target = if args[0] as u32 == 0 { tid } else { args[0] as u32 };
        let is_real_time =
            |tid: &u32| self.threads.get(tid).is_some_and(|it| it.is_real_time == Some(true));
        if target != tid && is_real_time(&target) && !is_real_time(&tid) {
            self.found.push(found);
        } else {
            self.file(found);
        }
        if result >= 0 && name != "sched_setaffinity" {
            self.settle(target, false);
            if let Some(thread) = self.threads.get_mut(&target) {
                thread.set_class(out.class(target));
            }
            self.settle(target, false);
        }
    }

    fn fault(
        &mut self,
        pid: u32,
        tid: u32,
        at: u64,
        address: u64,
        stack: Option<Box<Stack>>,
        out: &mut dyn Outside,
    ) {
        let near = |sp: u64| address >= sp.saturating_sub(STACK_NEAR) && address < sp + STACK_NEAR;
        let is_stack = stack.as_ref().is_some_and(|of| {
            out.is_same_mapping(pid, of.sp, address).unwrap_or_else(|| near(of.sp))
        });
        let rule = if is_stack { Rule::StackFault } else { Rule::PageFault };
        let why = "the kernel finds or makes the page, or reads it from a disk";
        let is_reported = self.threads.get_mut(&tid).is_some_and(|thread| {
            // One report is of one fault.
            std::mem::take(&mut thread.fault_reported)
        });
        self.faults_unhandled -= u64::from(is_reported);
        let monitor = is_reported.then_some(Monitor::PageFault);
        let (time_ns, lasted_ns, what) = (at, None, "page fault".into());
        self.file(RuleBreach { rule, pid, tid, time_ns, lasted_ns, what, why, stack, monitor });
    }

    fn thread_name(&self, tid: Option<u32>) -> String {
        match tid {
            None | Some(0) => "a thread that is not known".into(),
            Some(tid) => match self.threads.get(&tid) {
                Some(of) => format!("{}:{tid}", of.name),
                None => format!("thread {tid}"),
            },
        }
    }

    /// The breaches that were found since it was last called.
    pub fn found(&mut self) -> Vec<RuleBreach> {
        std::mem::take(&mut self.found)
    }

    /// No event follows: calls that have not returned count.
    pub fn finish(&mut self) {
        let all: Vec<u32> = self.threads.keys().copied().collect();
        for tid in all {
            self.flush(tid);
            self.settle(tid, true);
        }
    }

    /// The threads, by their number.
    pub const fn threads(&self) -> &BTreeMap<u32, TrackedThread> {
        &self.threads
    }

    /// The last event's time.
    pub const fn last_ns(&self) -> u64 {
        self.last_ns
    }

    /// Page faults that the kernel's monitor reports, and of which nothing had to be handled:
    /// rtproof's own look at a stack, which ends where no memory is, is one.
    pub const fn faults_unhandled(&self) -> u64 {
        self.faults_unhandled
    }

    /// Why not all that the program did was observed.
    pub const fn unobserved(&self) -> &BTreeSet<String> {
        &self.unobserved
    }
}

impl TrackedThread {
    /// Whether it has not ended.
    pub const fn is_live(&self) -> bool {
        self.ended_ns.is_none()
    }

    /// Whether anything was seen of it since it is judged.
    pub const fn has_acted(&self) -> bool {
        self.switches > 0 || self.has_called
    }

    fn set_class(&mut self, class: Option<(bool, i32)>) {
        self.is_real_time = class.map(|(is_real_time, _)| is_real_time);
        self.priority = class.map(|(_, priority)| priority);
        self.was_real_time |= self.is_real_time == Some(true);
    }
}

fn words(priority: i32) -> String {
    match priority {
        ..0 => "deadline".into(),
        0..100 => format!("real-time priority {}", 99 - priority),
        100.. => "an ordinary class".into(),
    }
}
