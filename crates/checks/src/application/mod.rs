//! Is this application really real-time?
//!
//! A check of an application is a `Check` whose function also reads the application's facts. A
//! check of real-time threads does not apply to an application without any: `app-policy` reports
//! that. A new check needs its static, a line in `CHECKS`, and good values in `testing.rs`.

#[cfg(test)]
mod contract;
mod groups;
mod memory;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use rtproof_host::{
    CpuList, Facts,
    facts::{
        app::{App, UnitFile},
        tasks::{Policy, RtTask},
    },
    tune::Scheduling,
};

use crate::case::{
    Case, GROUPS_MAX, NAMED_MAX, PlacedThread, Scheduled, is_own, may_run_on, name, of_threads,
    place, policy_of, rank, set, task_evidence, task_name,
};
use crate::check::{Check, CheckAnswer, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{count, cpus, first_few, times};
use crate::{Evidence, Finding, Impact, Intent, Remedy, Status, When};

const CHECKS: &[&Check] = &[
    &POLICY,
    &AFFINITY,
    &groups::ISOLATION,
    &PINNING,
    &OUTRANKED,
    &EQUAL_PRIORITY,
    &IRQ_THREADS,
    &ORDINARY_THREADS,
    &groups::THROTTLING,
    &PREEMPTED,
    &memory::MEMORY_LOCKED,
    &memory::PAGE_FAULTS,
    &memory::SWAPPED,
    &memory::RTPRIO,
    &memory::MEMLOCK,
    &memory::RTTIME,
    &groups::CGROUP_QUOTA,
    &groups::RT_BANDWIDTH,
    &groups::CPUSET,
    &memory::MEMORY_NODES,
    &memory::MEMORY_LIMIT,
    &UNIT,
    &groups::TIMER_SLACK_CHECK,
    &groups::SECCOMP,
    &groups::DEBUGGER,
    &memory::OOM,
    &groups::CONTAINER,
];

/// Every check, in the order of the report.
pub fn all() -> impl Iterator<Item = &'static Check> {
    CHECKS.iter().copied()
}

/// The check with an id.
pub fn by_id(id: &str) -> Option<&'static Check> {
    all().find(|check| check.id == id)
}

/// Runs every check of an application.
pub fn judge_all(facts: &Facts, app: &App, intent: &Intent) -> Vec<Finding> {
    let judge = |check: &Check| {
        let mut finding = crate::known::fit(check.judge_app(facts, app, intent), facts);
        finding.skipped = intent.skip.get(&finding.check).cloned();
        finding
    };
    all().map(judge).collect()
}

/// The machine without the application's own real-time threads, which are no strangers on it: what
/// the checks of the machine are to judge.
pub fn without_own(facts: &Facts, app: &App) -> Facts {
    let mut facts = facts.clone();
    facts.rt_tasks = facts.rt_tasks.map(|mut tasks| {
        tasks.retain(|task| !is_own(app, task));
        tasks
    });
    facts
}

static AFFINITY: Check = Check {
    id: "app-affinity",
    title: "CPUs that the application's real-time threads may run on",
    why: "on a CPU that is not kept free, interrupts, timers and threads of the kernel run in \
          front of it",
    source: "sched_setaffinity(2); Documentation/admin-guide/kernel-parameters.txt (isolcpus)",
    impact: Impact::Hundreds,
    judge: Judge::App(judge_affinity),
    ..Check::NEW
};

fn judge_affinity(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let wanted = &case.intent.rt_cpus;
    let draft = draft.wanted(format!("none but {}", cpus(wanted))).cpus(wanted);
    if wanted.is_empty() {
        return Ok(draft.no_rt_cpus(case.facts));
    }
    let (draft, mut threads) = case.scheduled(draft)?;
    // Without real-time threads it is about all: where they run is where they will be real-time.
    if threads.iter().any(|thread| thread.sched.policy.is_real_time()) {
        threads.retain(|thread| thread.sched.policy.is_real_time());
    }
    let (draft, threads) = place(draft, &threads)?;
    let outside: Vec<&PlacedThread<'_>> =
        threads.iter().filter(|t| !t.status.cpus.difference(wanted).is_empty()).collect();
    if outside.is_empty() {
        let mut all = threads[0].status.cpus.clone();
        for thread in &threads {
            all = all.union(&thread.status.cpus);
        }
        return Ok(draft.good(format!("on {} only", cpus(&all))));
    }
    let move_to = |placed: &&PlacedThread<'_>| {
        let cpus = Scheduling { cpus: Some(wanted.clone()), ..Scheduling::default() };
        set(placed.thread, placed.sched, cpus)
    };
    let remedies: Vec<Remedy> = outside.iter().map(move_to).collect();
    let line = format!("CPUAffinity={wanted}");
    let draft = draft.remedies(remedies).remedies(case.drop_in(&line));
    let names: Vec<String> = outside
        .iter()
        .map(|t| format!("{} on {}", name(t.thread, t.sched), cpus(&t.status.cpus)))
        .collect();
    let is_apart = |t: &&&PlacedThread<'_>| t.status.cpus.intersection(wanted).is_empty();
    let names = first_few(&names, NAMED_MAX);
    Ok(match outside.iter().find(is_apart) {
        Some(_) => draft.bad(format!("not on the real-time {}: {names}", cpus(wanted))),
        None => draft.doubtful(format!("also on other CPUs than {}: {names}", cpus(wanted))),
    })
}

// Which other tasks have the same priority?
//
// SCHED_FIFO threads of one priority on one CPU run in the order in which they became ready, each
// until it sleeps; SCHED_RR ones change after a slice (sched_rr_timeslice_ms). As many CPUs as
// threads are enough: the scheduler spreads them.

static EQUAL_PRIORITY: Check = Check {
    id: "app-equal-priority",
    title: "tasks of the same priority on the application's CPUs",
    why: "under SCHED_FIFO a thread waits until those before it in the queue of its priority \
          sleep, under SCHED_RR at least until their slice of 100 ms is used",
    source: "sched(7); kernel/sched/rt.c (task_tick_rt, RR_TIMESLICE)",
    impact: Impact::Hundreds,
    wanted: Wanted::Text("none"),
    judge: Judge::App(judge_equal_priority),
    ..Check::NEW
};

fn judge_equal_priority(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let (draft, threads) = case.placed(draft)?;
    let (draft, others) = case.other_tasks(draft)?;
    let is_rival = |task: &&&RtTask| {
        task.policy != Policy::Deadline
            && threads.iter().any(|thread| {
                rank(thread.sched) == Some(task.priority) && may_run_on(task, &thread.status.cpus)
            })
    };
    let rivals: Vec<&RtTask> = others.iter().filter(is_rival).copied().collect();
    let draft = draft.evidence(rivals.iter().take(GROUPS_MAX).map(|task| task_evidence(task)));
    let is_rr = threads.iter().any(|thread| thread.sched.policy == Policy::Rr);
    let slice = &case.app.rr_timeslice_ms;
    let turns = match slice.value() {
        _ if !is_rr => String::new(),
        Some(ms) => format!("; SCHED_RR takes turns of {ms} ms"),
        None => "; SCHED_RR takes turns, of 100 ms by default".into(),
    };
    let with_slice = |draft: FindingBuilder| match is_rr {
        true => draft.read(slice, |ms| format!("{ms} ms")),
        false => draft,
    };
    let text = "give each thread a priority of its own, by urgency, with chrt(1)";
    let remedy = || [Remedy::Manual { text: text.into() }];
    let user: Vec<String> =
        rivals.iter().filter(|task| !task.kernel_thread).map(|task| task_name(task)).collect();
    if !user.is_empty() {
        let names = first_few(&user, NAMED_MAX);
        let draft = with_slice(draft).remedies(remedy());
        return Ok(draft.bad(format!("in the same queue: {names}{turns}")));
    }
    if !rivals.is_empty() {
        let names: Vec<String> = rivals.iter().map(|task| task_name(task)).collect();
        let names = first_few(&names, NAMED_MAX);
        return Ok(with_slice(draft)
            .remedies(remedy())
            .doubtful(format!("threads of the kernel in the same queue: {names}{turns}")));
    }
    let own: Vec<String> = threads
        .iter()
        .filter(|thread| is_crowded(thread, &threads))
        .map(|thread| name(thread.thread, thread.sched))
        .collect();
    if !own.is_empty() {
        let names = first_few(&own, NAMED_MAX);
        return Ok(with_slice(draft)
            .remedies(remedy())
            .doubtful(format!("its own threads share a queue: {names}{turns}")));
    }
    Ok(draft.good("no other task of the same priority on its CPUs"))
}

/// Whether more threads of its priority than CPUs are where a thread may run.
fn is_crowded(thread: &PlacedThread<'_>, all: &[PlacedThread<'_>]) -> bool {
    let Some(own) = rank(thread.sched) else {
        return false;
    };
    let mut cpus = CpuList::default();
    let mut number = 0;
    for other in all.iter().filter(|other| rank(other.sched) == Some(own)) {
        if !other.status.cpus.intersection(&thread.status.cpus).is_empty() {
            cpus = cpus.union(&other.status.cpus);
            number += 1;
        }
    }
    number > cpus.len()
}

// Interrupt threads on its CPUs: above it they preempt it, below it they wait for it.
//
// It is unknown which device the application depends on, so both are reported.

static IRQ_THREADS: Check = Check {
    id: "app-irq-threads",
    title: "interrupt threads on the application's CPUs",
    why: "an interrupt thread above the application runs in front of it; one below it waits while \
          the application runs, and with it whoever needs the device",
    source: "kernel/irq/manage.c (setup_irq_thread: SCHED_FIFO 50); sched(7)",
    wanted: Wanted::Text("none but those of the application's devices"),
    judge: Judge::App(judge_irq_threads),
    ..Check::NEW
};

fn judge_irq_threads(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let (draft, threads) = case.placed(draft)?;
    let (draft, others) = case.other_tasks(draft)?;
    let irqs: Vec<&RtTask> = others
        .into_iter()
        .filter(|task| task.kernel_thread && task.comm.starts_with("irq/"))
        .filter(|task| threads.iter().any(|thread| may_run_on(task, &thread.status.cpus)))
        .collect();
    if irqs.is_empty() {
        return Ok(draft.good("no interrupt thread on its CPUs"));
    }
    let is_ahead = |task: &&&RtTask| {
        threads.iter().any(|thread| {
            rank(thread.sched).is_some_and(|own| task.priority >= own)
                && may_run_on(task, &thread.status.cpus)
        })
    };
    let names = |tasks: &[&RtTask]| {
        let names: Vec<String> = tasks.iter().map(|task| task_name(task)).collect();
        first_few(&names, NAMED_MAX)
    };
    let ahead: Vec<&RtTask> = irqs.iter().filter(is_ahead).copied().collect();
    let below: Vec<&RtTask> = irqs.iter().filter(|task| !is_ahead(task)).copied().collect();
    let mut parts = Vec::new();
    if !ahead.is_empty() {
        parts.push(format!("may run ahead of it: {}", names(&ahead)));
    }
    if !below.is_empty() {
        parts.push(format!("wait while it runs: {}", names(&below)));
    }
    let text = "move interrupts of other devices away (/proc/irq/N/smp_affinity_list); set the \
                thread of its own device just above or below it with chrt(1)";
    Ok(draft
        .evidence(irqs.iter().take(GROUPS_MAX).map(|task| task_evidence(task)))
        .remedies([Remedy::Manual { text: text.into() }])
        .doubtful(parts.join("; ")))
}

// Its threads that are not real-time: do they share a CPU with those that are?

static ORDINARY_THREADS: Check = Check {
    id: "app-ordinary-threads",
    title: "ordinary threads on the CPUs of the application's real-time threads",
    why: "ordinary threads on the same CPU evict its caches and start timers and work of the \
          kernel there, and hold locks that a real-time thread may wait for",
    source: "sched(7); Documentation/timers/no_hz.rst (a second runnable task keeps the tick)",
    impact: Impact::Microseconds,
    wanted: Wanted::Text("none on the CPUs of its real-time threads"),
    judge: Judge::App(judge_ordinary_threads),
    ..Check::NEW
};

fn judge_ordinary_threads(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let (draft, all) = case.scheduled(draft)?;
    let (real_time, ordinary): (Vec<Scheduled<'_>>, Vec<Scheduled<'_>>) =
        all.iter().partition(|thread| thread.sched.policy.is_real_time());
    if real_time.is_empty() {
        return Ok(draft.not_applicable("the application has no real-time thread"));
    }
    if ordinary.is_empty() {
        return Ok(draft.good(format!("all of its {} are real-time", count(all.len(), "thread"))));
    }
    let (draft, real_time) = place(draft, &real_time)?;
    let readings = ordinary.iter().map(|found| (found.thread, &found.thread.status));
    let draft = draft.evidence(of_threads(readings, |status| format!("CPUs {}", status.cpus)));
    let shares = |cpus: &CpuList| {
        real_time.iter().any(|thread| !thread.status.cpus.intersection(cpus).is_empty())
    };
    let placed = ordinary.iter().filter_map(|found| Some((found, found.thread.status.value()?)));
    let sharing: Vec<_> = placed.filter(|(_, status)| shares(&status.cpus)).collect();
    if sharing.is_empty() {
        if let Some(unread) = ordinary.iter().find(|t| t.thread.status.value().is_none()) {
            return Ok(draft.unreadable(&unread.thread.status));
        }
        let number = count(ordinary.len(), "ordinary thread");
        return Ok(draft.good(format!("{number}, on other CPUs")));
    }
    let names: Vec<String> = sharing
        .iter()
        .map(|(t, on)| format!("{} (tid {}) on {}", t.sched.comm, t.thread.tid, cpus(&on.cpus)))
        .collect();
    let text = "start ordinary threads with the affinity of the housekeeping CPUs \
                (pthread_attr_setaffinity_np(3)), or move them with taskset(1)";
    Ok(draft.remedies([Remedy::Manual { text: text.into() }]).doubtful(format!(
        "{} may run beside its real-time threads: {}",
        count(sharing.len(), "ordinary thread"),
        first_few(&names, NAMED_MAX)
    )))
}

// Which tasks run ahead of it on its CPUs?
//
// Tasks of others are distinguished from threads of the kernel, which belong to the machine: those
// that outrank everybody by design run for microseconds, interrupt threads are a question of
// their own (`app-irq-threads`).

/// Threads of the kernel above everybody: the stopper of each CPU, the feeder of the watchdog.
const BY_DESIGN: &[&str] = &["migration/", "stopper/", "watchdog"];

static OUTRANKED: Check = Check {
    id: "app-outranked",
    title: "tasks of a higher priority on the application's CPUs",
    why: "the thread waits until every task of a higher priority on its CPU sleeps",
    source: "sched(7); kernel/sched/core.c (classes in the order stop, deadline, rt, fair)",
    impact: Impact::Hundreds,
    wanted: Wanted::Text("none"),
    judge: Judge::App(judge_outranked),
    ..Check::NEW
};

fn judge_outranked(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let (draft, threads) = case.placed(draft)?;
    let (draft, others) = case.other_tasks(draft)?;
    let mut above: Vec<&RtTask> = others.into_iter().filter(|t| is_above(t, &threads)).collect();
    above.sort_by_key(|task| std::cmp::Reverse((task.policy == Policy::Deadline, task.priority)));
    let names = |tasks: &[&RtTask]| {
        let names: Vec<String> = tasks.iter().map(|task| task_name(task)).collect();
        first_few(&names, NAMED_MAX)
    };
    let draft = draft.evidence(above.iter().take(GROUPS_MAX).map(|task| task_evidence(task)));
    let (kernel, user): (Vec<&RtTask>, Vec<&RtTask>) =
        above.iter().partition(|task| task.kernel_thread);
    if !user.is_empty() {
        let remedies = user.iter().take(NAMED_MAX).map(|task| match task.unit.as_deref() {
            Some(unit) => Remedy::Manual {
                text: format!("keep {unit} off its CPUs, or lower it: {}", task_name(task)),
            },
            None => Remedy::Manual {
                text: format!("keep {} off its CPUs, or lower it with chrt(1)", task_name(task)),
            },
        });
        return Ok(draft.remedies(remedies).bad(format!("run ahead of it: {}", names(&user))));
    }
    if !kernel.is_empty() {
        let text = "decide which is more urgent, and set the priorities with chrt(1)";
        return Ok(draft
            .remedies([Remedy::Manual { text: text.into() }])
            .doubtful(format!("threads of the kernel run ahead of it: {}", names(&kernel))));
    }
    let highest = threads.iter().max_by_key(|thread| rank(thread.sched).unwrap_or(100));
    let own = highest.map_or_else(String::new, |thread| policy_of(thread.sched));
    Ok(draft.good(format!("nothing runs ahead of its {own} on its CPUs")))
}

/// Whether a task outranks one of the threads on a CPU that both may use.
fn is_above(task: &RtTask, threads: &[PlacedThread<'_>]) -> bool {
    let is_design = task.kernel_thread
        && (task.comm.starts_with("irq/")
            || BY_DESIGN.iter().any(|name| task.comm.starts_with(name)));
    let outranks = |thread: &PlacedThread<'_>| match (rank(thread.sched), task.policy) {
        // Among SCHED_DEADLINE the earliest deadline decides, not a rank.
        (None, _) => false,
        (Some(_), Policy::Deadline) => true,
        (Some(own), _) => task.priority > own,
    };
    !is_design && threads.iter().any(|t| outranks(t) && may_run_on(task, &t.status.cpus))
}

// Has each real-time thread one CPU of its own choice?
//
// SCHED_DEADLINE is left out: its threads must be allowed on all CPUs of their domain.

static PINNING: Check = Check {
    id: "app-pinning",
    title: "real-time threads that may move between CPUs",
    why: "after a move to another CPU the thread finds its data in none of the near caches",
    source: "kernel/sched/rt.c (push_rt_task, pull_rt_task); sched_setaffinity(2)",
    trade_off: Some(
        "a pinned thread waits for a task of its own or a higher priority there even while another \
         CPU is idle",
    ),
    wanted: Wanted::Text("one CPU for each real-time thread"),
    judge: Judge::App(judge_pinning),
    ..Check::NEW
};

fn judge_pinning(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let (draft, threads) = case.placed(draft)?;
    let wide: Vec<String> = threads
        .iter()
        .filter(|t| t.sched.policy != Policy::Deadline && t.status.cpus.len() > 1)
        .map(|t| format!("{} on {}", name(t.thread, t.sched), cpus(&t.status.cpus)))
        .collect();
    if wide.is_empty() {
        return Ok(draft.good("each real-time thread has one CPU"));
    }
    let text = "pin each thread to a CPU of its own with pthread_setaffinity_np(3) or taskset(1)";
    Ok(draft
        .remedies([Remedy::Manual { text: text.into() }])
        .doubtful(format!("may move: {}", first_few(&wide, NAMED_MAX))))
}

// Is any thread real-time, and is none at the very top?

/// The highest priority: the stopper of each CPU and the feeder of the watchdog have it.
const HIGHEST: u32 = 99;

static POLICY: Check = Check {
    id: "app-policy",
    title: "policy and priority of the application's threads",
    why: "an ordinary thread waits until the scheduler finds its turn fair, behind every real-time \
          task and beside all ordinary ones",
    source: "sched(7); kernel/sched/core.c; kernel/stop_machine.c",
    trade_off: Some("a real-time thread that does not sleep keeps all ordinary tasks off its CPU"),
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("at least one thread under SCHED_FIFO, SCHED_RR or SCHED_DEADLINE"),
    judge: Judge::App(judge_policy),
    ..Check::NEW
};

/// Real-time, with this priority.
fn fifo(priority: u32) -> Scheduling {
    let policy = Some("fifo".to_owned());
    Scheduling { policy, priority: Some(priority), ..Scheduling::default() }
}

fn judge_policy(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let (draft, threads) = case.scheduled(draft)?;
    let real_time: Vec<_> = threads.iter().filter(|t| t.sched.policy.is_real_time()).collect();
    if real_time.is_empty() {
        let priority = case.intent.priority.clamp(1, HIGHEST - 1);
        let unit = format!("CPUSchedulingPolicy=fifo\nCPUSchedulingPriority={priority}");
        let what = match threads.as_slice() {
            [one] => format!("its only thread is {}", policy_of(one.sched)),
            all => format!("none of its {} is real-time", count(all.len(), "thread")),
        };
        let main = threads.iter().find(|found| found.thread.tid == case.app.pid);
        let remedies = main.map(|main| set(main.thread, main.sched, fifo(priority)));
        return Ok(draft.remedies(remedies).remedies(case.drop_in(&unit)).bad(what));
    }
    let names: Vec<String> = real_time.iter().map(|t| name(t.thread, t.sched)).collect();
    let summary = format!(
        "{} of {}: {}",
        real_time.len(),
        count(threads.len(), "thread"),
        first_few(&names, NAMED_MAX)
    );
    match real_time.iter().find(|thread| thread.sched.priority >= HIGHEST) {
        Some(top) => {
            let below = set(top.thread, top.sched, fifo(HIGHEST - 1));
            Ok(draft.remedies([below]).doubtful(format!(
                "{summary}; 99 is also the priority of the kernel's own migration threads, which \
                 then wait for it"
            )))
        }
        None => Ok(draft.good(summary)),
    }
}

// How often did its real-time threads lose the CPU?
//
// The count holds every switch away from a thread that had work: to a task of a higher priority,
// at the end of a slice, on PREEMPT_RT also a wait for a lock of the kernel; and those before the
// thread became real-time. So it is reported and not judged: what matters is whether it rises.

static PREEMPTED: Check = Check {
    id: "app-preempted",
    title: "involuntary context switches of the application's real-time threads",
    why: "each one is a time when the thread had work and another ran",
    source: "proc_pid_status(5) (nonvoluntary_ctxt_switches); kernel/sched/core.c (__schedule)",
    impact: Impact::Information,
    wanted: Wanted::Text("known; it should not rise"),
    judge: Judge::App(judge_preempted),
    ..Check::NEW
};

fn judge_preempted(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let (draft, threads) = case.placed(draft)?;
    let readings = threads.iter().map(|found| (found.thread, &found.thread.status));
    let draft = draft.evidence(of_threads(readings, |status| {
        format!("{} voluntary, {} not", status.voluntary_switches, status.involuntary_switches)
    }));
    let mut sorted: Vec<_> = threads.iter().collect();
    sorted.sort_by_key(|thread| std::cmp::Reverse(thread.status.involuntary_switches));
    let shown: Vec<String> = sorted
        .iter()
        .map(|found| {
            let (lost, tid) = (found.status.involuntary_switches, found.thread.tid);
            format!("{} (tid {tid}) {}", found.sched.comm, times(lost))
        })
        .collect();
    Ok(draft.good(format!("lost the CPU since the start: {}", first_few(&shown, NAMED_MAX))))
}

// Priority and CPUs of an application, from its threads.

/// Highest priority of the application's SCHED_FIFO and SCHED_RR threads.
pub fn priority(app: &App) -> Option<u32> {
    let scheds = app.threads().filter_map(|thread| thread.sched.value());
    scheds
        .filter(|sched| rank(sched).is_some())
        .map(|sched| sched.priority)
        .max()
        .filter(|&p| p > 0)
}

/// CPUs of the application's real-time threads, where all of them are known.
pub fn real_time_cpus(app: &App) -> Option<CpuList> {
    let mut all = CpuList::default();
    for thread in app.threads().filter(|thread| thread.is_real_time()) {
        all = all.union(&thread.status.value()?.cpus);
    }
    (!all.is_empty()).then_some(all)
}

// Its systemd unit, by its files: which settings obstruct real-time?
//
// A unit whose process is real-time already got there before a filter was put on, or by
// another's hand: what would refuse it is then doubtful, for its next thread.

/// System calls and groups of them without which a thread cannot become real-time or lock memory
/// (systemd-analyze syscall-filter).
const NEEDED_CALLS: &[&str] =
    &["@resources", "@memlock", "sched_setscheduler", "sched_setattr", "mlockall", "mlock"];

static UNIT: Check = Check {
    id: "app-unit",
    title: "settings of the application's systemd unit",
    why: "a setting of the unit refuses SCHED_FIFO or locked memory, stops its threads, or keeps \
          them off the real-time CPUs",
    source: "systemd.exec(5), systemd.resource-control(5), systemd.unit(5)",
    trade_off: Some("RestrictRealtime= and system call filters protect against a broken service"),
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("nothing that refuses or stops real-time threads"),
    judge: Judge::App(judge_unit),
    ..Check::NEW
};

/// A setting of the application that obstructs real-time operation.
struct Problem {
    status: Status,
    text: String,
    line: String,
}

fn judge_unit(draft: FindingBuilder, case: &Case<'_>) -> CheckAnswer {
    let files = &case.app.unit_file;
    let draft = draft.read(files, |unit| match unit {
        Some(unit) => shown(unit),
        None => "no service or scope".into(),
    });
    let unit = match files.value() {
        None => return Ok(draft.unreadable(files)),
        Some(None) => return Ok(draft.not_applicable("it runs in no service or scope")),
        Some(Some(unit)) => unit,
    };
    let draft = draft.evidence(unit.settings.iter().map(|(key, set)| Evidence {
        path: set.file.clone(),
        value: format!("{key}={}", set.value),
    }));
    let problems = problems(case, unit);
    let Some(status) = problems.iter().map(|problem| problem.status).min() else {
        let files = count(unit.files.len(), "file");
        return Ok(draft.good(format!("{}: nothing in the way, in {files}", unit.name)));
    };
    let texts: Vec<&str> = problems.iter().map(|problem| problem.text.as_str()).collect();
    let summary = format!("{}: {}", unit.name, first_few(&texts, NAMED_MAX));
    let lines: Vec<&str> = problems.iter().map(|problem| problem.line.as_str()).collect();
    let restart = Remedy::Command {
        command: format!("systemctl daemon-reload && systemctl restart {}", unit.name),
    };
    let remedies = case.drop_in(&lines.join("\n")).into_iter().chain([restart]);
    Ok(draft.remedies(remedies).status(status, summary))
}

fn shown(unit: &UnitFile) -> String {
    format!("{}, {} that matter", unit.name, count(unit.settings.len(), "setting"))
}

fn problems(case: &Case<'_>, unit: &UnitFile) -> Vec<Problem> {
    let is_real_time = case.app.threads().any(|thread| thread.is_real_time());
    let refused = if is_real_time { Status::Doubtful } else { Status::Bad };
    let get = |key: &str| unit.settings.get(key).map(|set| set.value.as_str());
    let mut found = Vec::new();
    let mut add = |status, key: &str, wanted: &str, what: &str| {
        if let Some(value) = get(key) {
            let text = format!("{key}={value} {what}");
            found.push(Problem { status, text, line: format!("{key}={wanted}") });
        }
    };
    if get("RestrictRealtime").is_some_and(is_true) {
        add(refused, "RestrictRealtime", "no", "refuses real-time policies");
    }
    if get("SystemCallFilter").is_some_and(refuses_calls) {
        add(refused, "SystemCallFilter", "@resources @memlock", "refuses calls that it needs");
    }
    if get("CPUSchedulingResetOnFork").is_some_and(is_true) {
        let what = "makes new threads ordinary ones";
        add(Status::Doubtful, "CPUSchedulingResetOnFork", "no", what);
    }
    let policy = get("CPUSchedulingPolicy");
    if policy.is_some_and(|policy| !matches!(policy, "fifo" | "rr" | "ext")) && !is_real_time {
        add(Status::Bad, "CPUSchedulingPolicy", "fifo", "is an ordinary policy");
    }
    let most = |key| get(key).and_then(|value| value.split(':').next()?.parse::<u32>().ok());
    let needed = priority(case.app).unwrap_or(case.intent.priority);
    if most("LimitRTPRIO").is_some_and(|most| most < needed) {
        add(Status::Doubtful, "LimitRTPRIO", "95", "is below its priority");
    }
    let is_finite = |key| get(key).is_some_and(|value| !value.starts_with("infinity"));
    if is_finite("LimitMEMLOCK") {
        add(Status::Doubtful, "LimitMEMLOCK", "infinity", "limits locked memory");
    }
    if is_finite("LimitRTTIME") {
        let what = "ends a thread that does not sleep";
        add(Status::Doubtful, "LimitRTTIME", "infinity", what);
    }
    if get("CPUQuota").is_some() {
        add(Status::Doubtful, "CPUQuota", "", "stops its ordinary threads");
    }
    if !is_real_time && most("Nice").is_some_and(|nice| nice > 0) {
        add(Status::Doubtful, "Nice", "0", "puts it behind others");
    }
    for key in ["CPUAffinity", "AllowedCPUs"] {
        let Some(list) = get(key).and_then(cpu_list) else {
            continue;
        };
        let wanted = &case.intent.rt_cpus;
        let missing = wanted.difference(&list);
        if missing.is_empty() {
            continue;
        }
        let is_none = wanted.intersection(&list).is_empty();
        let status = if is_none { Status::Bad } else { Status::Doubtful };
        let what = format!("leaves out {}", cpus(&missing));
        add(status, key, &format!("\n{key}={wanted}"), &what);
    }
    found
}

/// A boolean of systemd.syntax(7).
fn is_true(value: &str) -> bool {
    ["1", "yes", "y", "true", "t", "on"].iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// Whether the lines of a filter, joined by `; `, take away what a real-time thread needs. A line
/// that begins with `~` names what is refused. A list of what is allowed is not taken apart: what
/// its groups hold depends on the version of systemd.
fn refuses_calls(value: &str) -> bool {
    let names = |line: &str| {
        let refused = line.trim().strip_prefix('~')?;
        let word = |word: &str| word.split(':').next().unwrap_or_default().to_owned();
        Some(refused.split_whitespace().map(word).collect::<Vec<String>>())
    };
    value.split(';').filter_map(names).flatten().any(|name| NEEDED_CALLS.contains(&name.as_str()))
}

/// CPUs separated by white space, commas or `; `; `None` for `numa` and what cannot be read.
fn cpu_list(value: &str) -> Option<CpuList> {
    let mut all = CpuList::default();
    let words = value.split(|c: char| c.is_whitespace() || c == ',' || c == ';');
    for word in words.filter(|word| !word.is_empty()) {
        all = all.union(&CpuList::parse(word, None).ok()?);
    }
    Some(all)
}

#[cfg(test)]
mod affinity_tests {
    use super::*;
    use crate::Intent;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, set_cpus, thread};
    use crate::testing::{cpus as list, intent};

    #[test]
    fn within_beside_and_across() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&AFFINITY).summary, "on CPU 2 only");
        assert_eq!(scene.judge(&AFFINITY).status, Good);
        set_cpus(&mut scene, 101, &[0, 1, 2]);
        assert_eq!(scene.judge(&AFFINITY).status, Doubtful);
        set_cpus(&mut scene, 101, &[0]);
        let finding = scene.judge(&AFFINITY);
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.remedies[0].to_string(), "taskset -cp 2-3 101");
        blank(&mut thread(&mut scene, 101).status);
        assert_eq!(scene.judge(&AFFINITY).status, Unknown);
        let nowhere = Intent { rt_cpus: list(&[]), ..intent() };
        let scene = Scene::good();
        assert_eq!(AFFINITY.judge_app(&scene.facts, &scene.app, &nowhere).status, Unknown);
    }
}

#[cfg(test)]
mod equal_priority_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, add_task, blank, sched_of, set_cpus};
    use crate::testing::task;

    #[test]
    fn others_kernel_and_own() {
        let mut scene = Scene::good();
        add_task(&mut scene, task(900, "x", 79, &[2], false));
        add_task(&mut scene, task(901, "y", 80, &[3], false));
        assert_eq!(scene.judge(&EQUAL_PRIORITY).status, Good);
        add_task(&mut scene, task(902, "irq/9-x", 80, &[2], true));
        assert_eq!(scene.judge(&EQUAL_PRIORITY).status, Doubtful);
        sched_of(&mut scene, 101).policy = Policy::Rr;
        add_task(&mut scene, task(903, "z", 80, &[2], false));
        let finding = scene.judge(&EQUAL_PRIORITY);
        assert_eq!(finding.status, Bad);
        assert!(finding.summary.ends_with("takes turns of 100 ms"), "{}", finding.summary);
        blank(&mut scene.facts.rt_tasks);
        assert_eq!(scene.judge(&EQUAL_PRIORITY).status, Unknown);
    }

    #[test]
    fn own_threads_on_too_few_cpus() {
        let mut scene = Scene::good();
        let sched = sched_of(&mut scene, 100);
        (sched.policy, sched.priority) = (Policy::Fifo, 80);
        assert_eq!(scene.judge(&EQUAL_PRIORITY).status, Good, "on different CPUs");
        set_cpus(&mut scene, 100, &[2]);
        let finding = scene.judge(&EQUAL_PRIORITY);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.starts_with("its own threads"), "{}", finding.summary);
        set_cpus(&mut scene, 100, &[2, 3]);
        assert_eq!(scene.judge(&EQUAL_PRIORITY).status, Good, "two CPUs for two threads");
    }
}

#[cfg(test)]
mod irq_threads_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, add_task, blank};
    use crate::testing::task;

    #[test]
    fn ahead_and_below() {
        let mut scene = Scene::good();
        add_task(&mut scene, task(900, "irq/9-x", 50, &[3], true));
        assert_eq!(scene.judge(&IRQ_THREADS).status, Good);
        add_task(&mut scene, task(901, "irq/8-eth1", 50, &[2], true));
        let finding = scene.judge(&IRQ_THREADS);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "wait while it runs: irq/8-eth1 (tid 901, SCHED_FIFO 50)");
        add_task(&mut scene, task(902, "irq/7-can0", 85, &[2], true));
        let finding = scene.judge(&IRQ_THREADS);
        assert!(finding.summary.starts_with("may run ahead of it: irq/7"), "{}", finding.summary);
        blank(&mut scene.facts.rt_tasks);
        assert_eq!(scene.judge(&IRQ_THREADS).status, Unknown);
    }
}

#[cfg(test)]
mod ordinary_threads_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::application::testing::{Scene, blank, sched_of, set_cpus, thread};
    use rtproof_host::facts::tasks::Policy;

    #[test]
    fn elsewhere_on_the_same_cpus_none_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&ORDINARY_THREADS).summary, "1 ordinary thread, on other CPUs");
        set_cpus(&mut scene, 100, &[0, 1, 2]);
        assert_eq!(scene.judge(&ORDINARY_THREADS).status, Doubtful);
        blank(&mut thread(&mut scene, 100).status);
        assert_eq!(scene.judge(&ORDINARY_THREADS).status, Unknown);
        sched_of(&mut scene, 100).policy = Policy::Fifo;
        assert_eq!(scene.judge(&ORDINARY_THREADS).status, Good);
        for tid in [100, 101] {
            sched_of(&mut scene, tid).policy = Policy::Other;
        }
        assert_eq!(scene.judge(&ORDINARY_THREADS).status, NotApplicable);
    }
}

#[cfg(test)]
mod outranked_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::application::testing::{Scene, add_task, sched_of};
    use crate::testing::task;
    use rtproof_host::Reading;

    #[test]
    fn others_and_threads_of_the_kernel() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&OUTRANKED).status, Good);
        add_task(&mut scene, task(900, "irq/9-x", 90, &[2], true));
        add_task(&mut scene, task(901, "elsewhere", 90, &[0], false));
        add_task(&mut scene, task(902, "equal", 80, &[2], false));
        assert_eq!(scene.judge(&OUTRANKED).status, Good);
        add_task(&mut scene, task(903, "rcuc/2", 90, &[2], true));
        assert_eq!(scene.judge(&OUTRANKED).status, Doubtful);
        add_task(&mut scene, task(904, "multipathd", 99, &[0, 1, 2, 3], false));
        let finding = scene.judge(&OUTRANKED);
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "run ahead of it: multipathd (tid 904, SCHED_FIFO 99)");
        sched_of(&mut scene, 101).policy = Policy::Other;
        assert_eq!(scene.judge(&OUTRANKED).status, NotApplicable);
    }

    #[test]
    fn deadline_outranks_and_hidden_tasks_are_unknown() {
        let mut scene = Scene::good();
        add_task(&mut scene, RtTask { policy: Policy::Deadline, ..task(9, "d", 0, &[2], false) });
        assert_eq!(scene.judge(&OUTRANKED).status, Bad);
        scene.facts.rt_tasks = Reading::known("/proc/*/task/*/stat", Vec::new());
        assert_eq!(scene.judge(&OUTRANKED).status, Unknown);
    }
}

#[cfg(test)]
mod pinning_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, sched_of, set_cpus, thread};

    #[test]
    fn one_cpu_or_several() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&PINNING).status, Good);
        set_cpus(&mut scene, 101, &[2, 3]);
        let finding = scene.judge(&PINNING);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "may move: loop (tid 101, SCHED_FIFO 80) on CPUs 2-3");
        sched_of(&mut scene, 101).policy = Policy::Deadline;
        assert_eq!(scene.judge(&PINNING).status, Good);
        blank(&mut thread(&mut scene, 101).status);
        assert_eq!(scene.judge(&PINNING).status, Unknown);
    }
}

#[cfg(test)]
mod policy_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, sched_of};
    use rtproof_host::facts::tasks::Policy;

    #[test]
    fn good_bad_doubtful_and_unknown() {
        let mut scene = Scene::good();
        let finding = scene.judge(&POLICY);
        assert_eq!(finding.status, Good);
        assert_eq!(finding.summary, "1 of 2 threads: loop (tid 101, SCHED_FIFO 80)");
        sched_of(&mut scene, 101).priority = 99;
        assert_eq!(scene.judge(&POLICY).status, Doubtful);
        sched_of(&mut scene, 101).policy = Policy::Other;
        let finding = scene.judge(&POLICY);
        assert_eq!((finding.status, finding.remedies.len()), (Bad, 2));
        assert_eq!(finding.summary, "none of its 2 threads is real-time");
        blank(&mut scene.app.processes[0].threads);
        assert_eq!(scene.judge(&POLICY).status, Unknown);
    }
}

#[cfg(test)]
mod preempted_tests {
    use super::*;
    use crate::Status::{Good, NotApplicable, Unknown};
    use crate::application::testing::{Scene, blank, sched_of, thread};
    use rtproof_host::facts::tasks::Policy;

    #[test]
    fn reported_unknown_and_not_applicable() {
        let mut scene = Scene::good();
        let finding = scene.judge(&PREEMPTED);
        assert_eq!(finding.status, Good);
        assert!(finding.summary.ends_with("loop (tid 101) once"), "{}", finding.summary);
        blank(&mut thread(&mut scene, 101).status);
        assert_eq!(scene.judge(&PREEMPTED).status, Unknown);
        sched_of(&mut scene, 101).policy = Policy::Batch;
        assert_eq!(scene.judge(&PREEMPTED).status, NotApplicable);
    }
}

#[cfg(test)]
mod unit_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::application::testing::{Scene, blank, sched_of, set_unit};
    use rtproof_host::{Reading, facts::tasks::Policy};

    fn with(key: &str, value: &str) -> Scene {
        let mut scene = Scene::good();
        set_unit(&mut scene, key, value);
        scene
    }

    #[test]
    fn settings_in_the_way() {
        assert_eq!(Scene::good().judge(&UNIT).status, Good);
        let mut scene = with("RestrictRealtime", "yes");
        let finding = scene.judge(&UNIT);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "arm.service: RestrictRealtime=yes refuses real-time policies");
        let line = "[Service]\nRestrictRealtime=no".to_owned();
        let path = "/etc/systemd/system/arm.service.d/90-rtproof.conf".to_owned();
        assert_eq!(finding.remedies[0], Remedy::File { path, line });
        sched_of(&mut scene, 101).policy = Policy::Other;
        assert_eq!(scene.judge(&UNIT).status, Bad);
        for (key, value, status) in [
            ("CPUQuota", "20%", Doubtful),
            ("LimitRTPRIO", "10", Doubtful),
            ("LimitRTPRIO", "99", Good),
            ("LimitMEMLOCK", "8M", Doubtful),
            ("LimitMEMLOCK", "infinity", Good),
            ("LimitRTTIME", "200000", Doubtful),
            ("CPUAffinity", "0-1", Bad),
            ("CPUAffinity", "0 1, 2; 3", Good),
            ("AllowedCPUs", "0-2", Doubtful),
            ("CPUAffinity", "numa", Good),
            ("SystemCallFilter", "@system-service; ~@privileged @resources", Doubtful),
            ("SystemCallFilter", "@system-service", Good),
            ("CPUSchedulingPolicy", "batch", Good),
            ("CPUSchedulingResetOnFork", "true", Doubtful),
        ] {
            assert_eq!(with(key, value).judge(&UNIT).status, status, "{key}={value}");
        }
    }

    #[test]
    fn no_unit_and_unknown() {
        let mut scene = Scene::good();
        scene.app.unit_file = Reading::known("/proc/100/cgroup", None);
        assert_eq!(scene.judge(&UNIT).status, NotApplicable);
        blank(&mut scene.app.unit_file);
        assert_eq!(scene.judge(&UNIT).status, Unknown);
    }
}
