//! Real-time tasks: what the checks of this section ask about them.

use rtproof_host::{
    Facts, Reading,
    facts::{
        tasks::{Policy, RtTask},
        virt::Unit,
    },
    knobs::cpu,
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::container;
use crate::profile::WorkloadKind;
use crate::remedies::make_ordinary;
use crate::{Evidence, Finding, Impact, Intent, Remedy, machine, value};

/// Most tasks shown as evidence.
const SHOWN_MAX: usize = 256;

/// Why a list of tasks is incomplete.
pub(super) const HIDDEN: &str =
    "no kernel thread is visible: a PID namespace or hidepid hides tasks";

/// Threads of the kernel that have a check of their own.
pub(super) const IRQ_THREADS: &[&str] = &["irq/"];

/// Threads of softirqs: all of them, those of timers from 6.13 and in PREEMPT_RT patches.
pub(super) const SOFTIRQ_THREADS: &[&str] = &["ksoftirqd/", "ktimers/", "ktimersoftd/"];

/// Threads of RCU: callbacks, boosting, grace periods.
pub(super) const RCU_THREADS: &[&str] =
    &["rcuc/", "rcub/", "rcuo", "rcu_preempt", "rcu_sched", "rcu_exp", "rcu_bh"];

pub(super) fn own(intent: &Intent) -> String {
    match intent.priority {
        0 => "your SCHED_OTHER".into(),
        priority => format!("your FIFO {priority}"),
    }
}

/// Whether it may run on a real-time CPU; a task with an unreadable affinity may.
fn concerns(task: &RtTask, intent: &Intent) -> bool {
    task.cpus.as_ref().is_none_or(|cpus| !cpus.intersection(&intent.rt_cpus).is_empty())
}

/// Whether it runs ahead of the application, or level with it, where both want to run.
pub(super) fn outranks(task: &RtTask, intent: &Intent) -> bool {
    match task.policy {
        Policy::Deadline => true,
        Policy::Fifo | Policy::Rr => task.priority >= intent.priority,
        Policy::Other | Policy::Batch | Policy::Idle | Policy::Ext => false,
    }
}

/// The real-time tasks of the machine, or why nothing can be said of those on the real-time CPUs.
/// A list without a single kernel thread comes from inside a PID namespace.
pub(super) fn on_rt_cpus<'a>(
    draft: FindingBuilder,
    facts: &'a Facts,
    intent: &Intent,
) -> Result<(FindingBuilder, Vec<&'a RtTask>), Box<Finding>> {
    if intent.rt_cpus.is_empty() {
        return Err(Box::new(draft.no_rt_cpus(facts)));
    }
    let draft = draft.read(&facts.rt_tasks, |tasks| count(tasks));
    let Some(tasks) = facts.rt_tasks.value() else {
        return Err(Box::new(draft.unreadable(&facts.rt_tasks)));
    };
    if !tasks.iter().any(|task| task.kernel_thread) {
        return Err(Box::new(draft.unknown(HIDDEN)));
    }
    let (_, missing) = machine::rt_cpus(facts, intent);
    if !missing.is_empty() {
        return Err(Box::new(draft.missing_cpus(facts, &missing)));
    }
    Ok((draft, tasks.iter().filter(|task| concerns(task, intent)).collect()))
}

/// Kernel threads with one of these starts of their names.
pub(super) fn named<'a>(tasks: &[&'a RtTask], starts: &[&str]) -> Vec<&'a RtTask> {
    let is_named = |task: &&&RtTask| {
        task.kernel_thread && starts.iter().any(|start| task.comm.starts_with(start))
    };
    tasks.iter().filter(is_named).copied().collect()
}

/// Names without their numbers, ranks and how many: `ktimers FIFO 1 (2)`.
pub(super) fn kinds(tasks: &[&RtTask]) -> String {
    let mut kinds: Vec<(String, u32)> = Vec::new();
    for task in tasks {
        let name = task.comm.split(['/', ':']).next().unwrap_or_default();
        let kind = format!("{name} {}", rank(task));
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, number)) => *number += 1,
            None => kinds.push((kind, 1)),
        }
    }
    let kinds: Vec<String> =
        kinds.into_iter().map(|(kind, number)| format!("{number} {kind}")).collect();
    machine::first_few(&kinds, 4)
}

fn rank(task: &RtTask) -> String {
    match task.policy {
        Policy::Deadline => "SCHED_DEADLINE".into(),
        Policy::Rr => format!("SCHED_RR {}", task.priority),
        _ => format!("SCHED_FIFO {}", task.priority),
    }
}

pub(super) fn place(task: &RtTask) -> String {
    task.cpus.as_ref().map_or_else(|| "CPUs that cannot be read".into(), machine::cpus)
}

pub(super) fn evidence(tasks: &[&RtTask]) -> Vec<Evidence> {
    let mut evidence: Vec<Evidence> = tasks
        .iter()
        .take(SHOWN_MAX)
        .map(|task| {
            let unit = task.unit.as_ref().map_or_else(String::new, |unit| format!(", {unit}"));
            Evidence {
                path: format!("/proc/{}/task/{}/stat", task.pid, task.tid),
                value: format!("{} {} on {}{unit}", task.comm, rank(task), place(task)),
            }
        })
        .collect();
    if let Some(next) = tasks.get(SHOWN_MAX) {
        let path = format!("/proc/{}/task/{}/stat", next.pid, next.tid);
        let value = format!("{} and more: {} in all", next.comm, tasks.len());
        evidence.push(Evidence { path, value });
    }
    evidence
}

pub(super) fn count(tasks: &[RtTask]) -> String {
    let kernel = tasks.iter().filter(|task| task.kernel_thread).count();
    let user = machine::count(tasks.len() - kernel, "user task");
    format!("{} and {user} are real-time", machine::count(kernel, "kernel thread"))
}

// Daemons that make tasks real-time: rtkit gives priorities to desktop programs, stalld runs
// starved tasks ahead of real-time ones.

/// Highest priority that rtkit hands out unless configured otherwise.
const RTKIT_PRIORITY_MAX: u32 = 20;

const RTKIT_UNIT: &str = "rtkit-daemon.service";

const STALLD_UNIT: &str = "stalld.service";

/// State of a unit as far as it is known.
enum State<'a> {
    Running(FindingBuilder),
    Stopped(FindingBuilder, &'a Unit),
    Missing(FindingBuilder),
    Settled(Finding),
}

fn state<'a>(draft: FindingBuilder, facts: &'a Facts, name: &str) -> State<'a> {
    let units = &facts.units;
    let Some(found) = units.value() else {
        return State::Settled(draft.unreadable(units));
    };
    if let Some(name) = container(facts) {
        return State::Settled(
            draft
                .read(&facts.virt.container, |_| name.into())
                .unknown(format!("inside a {name} container the host's services are not seen")),
        );
    }
    let unit = found.get(name);
    let draft = draft.evidence([Evidence {
        path: units.path.clone(),
        value: unit.map_or_else(|| format!("no {name}"), |unit| show(name, unit)),
    }]);
    match unit {
        None => State::Missing(draft),
        Some(unit) if unit.running == Some(true) => State::Running(draft),
        Some(unit) if unit.running == Some(false) => State::Stopped(draft, unit),
        Some(_) => State::Settled(
            draft.unknown(format!("{name} is installed; whether it runs is unknown")),
        ),
    }
}

fn show(name: &str, unit: &Unit) -> String {
    let mut words = vec![if unit.enabled { "enabled" } else { "not enabled" }];
    words.extend(unit.masked.then_some("masked"));
    words.extend(unit.running.map(|running| if running { "running" } else { "not running" }));
    format!("{name}: {}", words.join(", "))
}

fn stop(unit: &str) -> Remedy {
    Remedy::Unit { unit: unit.into(), action: "mask --now".into() }
}

pub(super) static RTKIT: Check = Check {
    id: "rtkit",
    title: "real-time priorities for programs of the desktop (rtkit)",
    why: "rtkit makes threads of desktop programs real-time, up to priority 20 unless told \
          otherwise, and takes it from them again when its own ordinary thread starves",
    source: "rtkit-daemon.c (max_realtime_priority 20, canary thread, watchdog at priority 99)",
    trade_off: Some(
        "sound servers get their priority from it where their user has no rtprio limit",
    ),
    impact: Impact::Hundreds,
    knobs: &[&cpu::RTKIT],
    judge: Judge::Ask(judge_rtkit),
    ..Check::NEW
};

fn judge_rtkit(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let is_audio = intent.profile.kind == WorkloadKind::Audio;
    let draft = draft.wanted(if is_audio { "known" } else { "not running, or below you" });
    match state(draft, facts, RTKIT_UNIT) {
        State::Settled(finding) => finding,
        State::Missing(draft) => draft.good("not installed"),
        State::Stopped(draft, unit) if unit.masked => draft.good("masked"),
        State::Stopped(draft, _) => {
            draft.good("not running; it starts when a program asks for a priority")
        }
        State::Running(draft) if is_audio => {
            draft.good("running: sound servers may get their priority from it")
        }
        State::Running(draft) if intent.priority > RTKIT_PRIORITY_MAX => draft.good(format!(
            "running; what it grants by default is at most {RTKIT_PRIORITY_MAX}, below \
                 your FIFO {}",
            intent.priority
        )),
        State::Running(draft) => draft.remedies([stop(RTKIT_UNIT)]).doubtful(format!(
            "running: programs of the desktop may get up to {RTKIT_PRIORITY_MAX}, not below \
             your {}",
            intent.priority
        )),
    }
}

pub(super) static STALLD: Check = Check {
    id: "stalld",
    title: "starved tasks run ahead of real-time ones (stalld)",
    why: "stalld gives a starved task SCHED_DEADLINE, which runs in front of every priority: 20 µs \
          of each second by default",
    source: "stalld(8); OpenShift, profile openshift-node-performance (stalld started for \
             real-time)",
    trade_off: Some(
        "where a real-time task owns its CPU and throttling is off, threads of the kernel on that \
         CPU starve without it, and the machine may hang. OpenShift starts it for that reason",
    ),
    knobs: &[&cpu::STALLD],
    judge: Judge::Ask(judge_stalld),
    ..Check::NEW
};

fn judge_stalld(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let owns_cpus = matches!(
        intent.profile.kind,
        WorkloadKind::BusyPoll
            | WorkloadKind::ContainerHost
            | WorkloadKind::RtVmHost
            | WorkloadKind::RtVmGuest
    );
    let wanted = if owns_cpus { "known" } else { "not running" };
    match state(draft.wanted(wanted), facts, STALLD_UNIT) {
        State::Settled(finding) => finding,
        State::Missing(draft) => draft.good("not installed"),
        State::Stopped(draft, unit) if unit.enabled && !unit.masked && !owns_cpus => draft
            .remedies([stop(STALLD_UNIT)])
            .doubtful("not running now, but enabled: it starts at the next boot"),
        State::Stopped(draft, _) => draft.good("not running"),
        State::Running(draft) if owns_cpus => {
            draft.good("running: starved tasks get 20 µs of each second unless told otherwise")
        }
        State::Running(draft) => draft
            .remedies([stop(STALLD_UNIT)])
            .doubtful("running: it runs starved tasks in front of the application"),
    }
}

// Does a task of user space run at the highest priority there is?
//
// At 99 nothing of the kernel that is a thread gets past it: interrupts, timers, RCU of that CPU
// wait as long as it runs. The stopper (`migration/N`) does, it is above all priorities.
// On every CPU of the machine, because the real-time CPUs wait for the others now and then.

/// The highest priority of SCHED_FIFO and SCHED_RR.
const HIGHEST: u32 = 99;

pub(super) static PRIO_99: Check = Check {
    id: "prio-99",
    title: "user tasks at priority 99",
    why: "above every thread of the kernel, a task at 99 holds up interrupts, timers and RCU of \
          its CPU, and whoever waits for them on another",
    source: "kernel/sched/syscalls.c (sched_set_fifo: threads of the kernel at 50), \
             kernel/sched/stop_task.c; Wu, \"Real-time programming with Linux, part 2\" \
             (multipathd at SCHED_RR 99)",
    impact: Impact::Hundreds,
    wanted: Wanted::Text("none"),
    judge: Judge::Ask(judge_prio_99),
    ..Check::NEW
};

fn judge_prio_99(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.read(&facts.rt_tasks, |tasks| count(tasks));
    let Some(tasks) = facts.rt_tasks.value() else {
        return draft.unreadable(&facts.rt_tasks);
    };
    let is_highest = |task: &&RtTask| {
        let has_priority = matches!(task.policy, Policy::Fifo | Policy::Rr);
        !task.kernel_thread && has_priority && task.priority >= HIGHEST
    };
    let found: Vec<&RtTask> = tasks.iter().filter(is_highest).collect();
    let draft = draft.evidence(evidence(&found)).remedies([Remedy::Manual {
        text: "98 is above everything, too, as long as nobody else takes 99: chrt --fifo --pid \
               98 TID, or in the unit CPUSchedulingPriority=98"
            .into(),
    }]);
    if let Some(task) = found.first() {
        let more = found.len() - 1;
        let more = if more == 0 { String::new() } else { format!("; {more} more") };
        let unit = task.unit.as_ref().map_or_else(String::new, |unit| format!(", {unit}"));
        return draft.doubtful(format!(
            "{} (pid {}{unit}) runs {}{more}",
            task.comm,
            task.pid,
            rank(task)
        ));
    }
    if !tasks.iter().any(|task| task.kernel_thread) {
        return draft.unknown(HIDDEN);
    }
    if intent.priority >= HIGHEST {
        return draft.doubtful("your FIFO 99 is above every thread of the kernel");
    }
    let user = tasks.iter().filter(|task| !task.kernel_thread).count();
    draft.good(match user {
        0 => "no user task is real-time".into(),
        _ => format!("none at 99 of {}", machine::count(user, "real-time user task")),
    })
}

// Which other tasks may run ahead of the application?
//
// A task of the same or a higher priority is not preempted by it, and SCHED_DEADLINE outranks
// every priority. Threads of the kernel belong to the machine: migration and the like are above
// everybody on purpose, interrupt threads above the application are a choice that only the user
// can make. A list without a single kernel thread comes from inside a PID namespace and says
// nothing of the machine.

/// Threads that outrank everybody by design and run for microseconds: the stopper of each CPU, the
/// lockup detector before 4.19, and the feeder of the hardware watchdog.
const ABOVE_BY_DESIGN: &[&str] = &["migration/", "stopper/", "watchdog/", "watchdogd"];

/// Units that a desktop or the system itself lives in: never a candidate to be stopped.
const VITAL_UNITS: &[&str] = &["user@", "systemd-", "dbus", "init.", "display-manager", "session-"];

pub(super) static ROGUE_RT_TASKS: Check = Check {
    id: "rogue-rt-tasks",
    title: "tasks that may run ahead of the application on its CPUs",
    why: "the application waits until a task of the same or a higher priority sleeps",
    source: "sched(7); Wu, \"Real-time programming with Linux, part 2\" (multipathd at SCHED_RR 99 \
             ran 331 µs; maximum 279 µs with it, 130 µs without)",
    impact: Impact::Hundreds,
    judge: Judge::Ask(judge_rogue_rt_tasks),
    ..Check::NEW
};

fn judge_rogue_rt_tasks(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let own = own(intent);
    let draft = draft.wanted(format!("none at or above {own}")).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let draft = draft.read(&facts.rt_tasks, |tasks| count(tasks));
    let Some(tasks) = facts.rt_tasks.value() else {
        return draft.unreadable(&facts.rt_tasks);
    };
    let mut above: Vec<&RtTask> = tasks.iter().filter(|task| is_ahead(task, intent)).collect();
    above.sort_by_key(|task| (task.policy != Policy::Deadline, 99 - task.priority.min(99)));
    let (kernel, user): (Vec<&RtTask>, _) = above.iter().partition(|task| task.kernel_thread);
    let (known, kernel): (Vec<&RtTask>, _) = kernel.into_iter().partition(has_own_check);
    if let Some(worst) = user.first() {
        let remedies: Vec<Remedy> = user.iter().map(|task| remedy(task, intent)).collect();
        return draft.evidence(evidence(&user)).remedies(distinct(remedies)).bad(summary(
            worst,
            user.len(),
            &own,
        ));
    }
    if !tasks.iter().any(|task| task.kernel_thread) {
        return draft.unknown(HIDDEN);
    }
    if let Some(worst) = kernel.first() {
        let text = if worst.comm.starts_with("sugov") {
            "set the frequency governor to performance: this thread changes the frequency for \
             schedutil"
                .into()
        } else if worst.policy == Policy::Deadline {
            "nothing can be raised above SCHED_DEADLINE: keep this thread off the real-time \
             CPUs"
                .into()
        } else {
            format!(
                "decide which is more urgent: raise the application above {}, or lower the \
                 thread with chrt",
                rank(worst)
            )
        };
        return draft
            .evidence(evidence(&kernel))
            .remedies([Remedy::Manual { text }])
            .doubtful(summary(worst, kernel.len(), &own));
    }
    let highest = tasks
        .iter()
        .filter(|task| concerns(task, intent) && !is_above_by_design(task))
        .max_by_key(|task| task.priority)
        .map_or_else(String::new, |task| format!("; highest: {} {}", task.comm, rank(task)));
    let cpus = machine::cpus(&intent.rt_cpus);
    if !known.is_empty() {
        return draft.evidence(evidence(&known)).good(format!(
            "nothing at or above {own} on {cpus} but threads of interrupts, softirqs or RCU, \
             which have checks of their own"
        ));
    }
    draft.good(format!("nothing at or above {own} on {cpus}{highest}"))
}

fn is_above_by_design(task: &RtTask) -> bool {
    task.kernel_thread && ABOVE_BY_DESIGN.iter().any(|name| task.comm.starts_with(name))
}

/// Threads of interrupts, softirqs and RCU.
fn has_own_check(task: &&RtTask) -> bool {
    let starts = [IRQ_THREADS, SOFTIRQ_THREADS, RCU_THREADS].concat();
    !named(&[task], &starts).is_empty()
}

fn is_ahead(task: &RtTask, intent: &Intent) -> bool {
    outranks(task, intent) && concerns(task, intent) && !is_above_by_design(task)
}

fn summary(worst: &RtTask, number: usize, own: &str) -> String {
    let is_equal =
        worst.policy != Policy::Deadline && own.ends_with(&format!(" {}", worst.priority));
    let relation = if is_equal { "level with" } else { "above" };
    let more = match number {
        1 => String::new(),
        more => format!("; {} more", more - 1),
    };
    let (pid, rank, place) = (worst.pid, rank(worst), place(worst));
    let unit = worst.unit.as_ref().map_or_else(String::new, |unit| format!(", {unit}"));
    format!("{} (pid {pid}{unit}) runs {rank} on {place}, {relation} {own}{more}", worst.comm)
}

fn remedy(task: &RtTask, intent: &Intent) -> Remedy {
    if task.policy != Policy::Deadline && task.priority == intent.priority {
        let text = format!(
            "unless {} (pid {}) is the application itself: lower it, or keep it off the real-time \
             CPUs",
            task.comm, task.pid
        );
        return Remedy::Manual { text };
    }
    match task.unit.as_deref() {
        Some(unit)
            if unit.ends_with(".service")
                && !VITAL_UNITS.iter().any(|vital| unit.starts_with(vital)) =>
        {
            Remedy::Unit { unit: unit.into(), action: "disable --now".into() }
        }
        _ => make_ordinary(task),
    }
}

fn distinct(remedies: Vec<Remedy>) -> Vec<Remedy> {
    let mut distinct: Vec<Remedy> = Vec::new();
    for remedy in remedies {
        if !distinct.contains(&remedy) {
            distinct.push(remedy);
        }
    }
    distinct
}

// Do real-time tasks take turns on the real-time CPUs?
//
// The time slice of SCHED_RR matters where two tasks of one priority want the same CPU and one of
// them is SCHED_RR: it then waits as long as the slice of the other, 100 ms by default.

pub(super) static RR_TIMESLICE: Check = Check {
    id: "sched-rr-timeslice",
    title: "time slice of SCHED_RR, where tasks take turns",
    why: "a SCHED_RR task waits for the whole slice of another of its priority on the same CPU",
    source: "sched(7); kernel/sched/rt.c (sched_rr_timeslice_ms); include/linux/sched/rt.h \
             (RR_TIMESLICE: 100 ms)",
    impact: Impact::Milliseconds,
    knobs: &[&cpu::RR_TIMESLICE],
    wanted: Wanted::Text("no two tasks that take turns"),
    judge: Judge::Ask(judge_rr_timeslice),
    ..Check::NEW
};

fn judge_rr_timeslice(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    let (draft, tasks) = match on_rt_cpus(draft, facts, intent) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let reading = value::knob_text(facts, &cpu::RR_TIMESLICE);
    let draft = draft.read(&reading, |ms| format!("{ms} ms"));
    let Some(found) = reading.value() else {
        return draft.unreadable(&reading);
    };
    let Ok(slice_ms) = found.parse::<u64>() else {
        return draft.unreadable(&Reading::<u64>::malformed(&reading.path, found, "milliseconds"));
    };
    let turns: Vec<&RtTask> =
        tasks.iter().filter(|task| takes_turns(task, &tasks, intent)).copied().collect();
    let Some(first) = turns.first() else {
        return draft.good(format!(
            "{slice_ms} ms, and no SCHED_RR task shares its priority on {}",
            machine::cpus(&intent.rt_cpus)
        ));
    };
    draft
        .evidence(evidence(&turns))
        .remedies([Remedy::Manual {
            text: "give each task a priority of its own, or its own CPU; or make the slice \
                   shorter: kernel.sched_rr_timeslice_ms"
                .into(),
        }])
        .doubtful(format!(
            "{} ({}) and others of its priority take turns of {slice_ms} ms",
            first.comm,
            rank(first)
        ))
}

/// Whether it is SCHED_RR and another task of its priority may run on a real-time CPU of its.
fn takes_turns(task: &RtTask, all: &[&RtTask], intent: &Intent) -> bool {
    let shares = |other: &&RtTask| {
        let common = match (&task.cpus, &other.cpus) {
            (Some(mine), Some(theirs)) => mine.intersection(theirs),
            (Some(cpus), None) | (None, Some(cpus)) => cpus.clone(),
            (None, None) => intent.rt_cpus.clone(),
        };
        other.tid != task.tid
            && other.policy != Policy::Deadline
            && other.priority == task.priority
            && !common.intersection(&intent.rt_cpus).is_empty()
    };
    task.policy == Policy::Rr && all.iter().any(shares)
}

#[cfg(test)]
mod daemons_tests {
    use super::*;
    use crate::Profile;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    fn with(name: &str, enabled: bool, running: Option<bool>) -> Facts {
        let mut facts = good();
        let file = format!("/usr/lib/systemd/system/{name}");
        let unit = Unit { file, enabled, masked: false, running };
        let units = [(name.to_owned(), unit)].into();
        facts.units = Reading::known(facts.units.path.clone(), units);
        facts
    }

    fn for_kind(kind: WorkloadKind, priority: u32) -> Intent {
        Intent { profile: Profile::of(kind), priority, ..intent() }
    }

    #[test]
    fn rtkit_by_priority_and_work() {
        let judge = |facts: &Facts, intent: &Intent| RTKIT.judge(facts, intent).status;
        let running = with(RTKIT_UNIT, false, Some(true));
        assert_eq!(judge(&good(), &intent()), Good);
        assert_eq!(judge(&running, &intent()), Good);
        assert_eq!(judge(&running, &for_kind(WorkloadKind::Periodic, 20)), Doubtful);
        assert_eq!(judge(&running, &for_kind(WorkloadKind::Audio, 15)), Good);
        assert_eq!(judge(&with(RTKIT_UNIT, false, Some(false)), &intent()), Good);
        assert_eq!(judge(&with(RTKIT_UNIT, false, None), &intent()), Unknown);
    }

    #[test]
    fn stalld_by_work() {
        let judge = |facts: &Facts, kind| STALLD.judge(facts, &for_kind(kind, 80)).status;
        let running = with(STALLD_UNIT, true, Some(true));
        assert_eq!(judge(&good(), WorkloadKind::Periodic), Good);
        assert_eq!(judge(&running, WorkloadKind::Periodic), Doubtful);
        assert_eq!(judge(&running, WorkloadKind::ContainerHost), Good);
        assert_eq!(judge(&with(STALLD_UNIT, true, Some(false)), WorkloadKind::Periodic), Doubtful);
        assert_eq!(judge(&with(STALLD_UNIT, false, Some(false)), WorkloadKind::Periodic), Good);
    }

    #[test]
    fn services_that_cannot_be_seen_are_unknown() {
        let mut facts = good();
        facts.units = Reading::absent("/etc/systemd/system");
        assert_eq!(RTKIT.judge(&facts, &intent()).status, Unknown);
        let mut facts = with(STALLD_UNIT, false, Some(false));
        facts.virt.container = Reading::known("/run/.containerenv", Some("podman".into()));
        let finding = STALLD.judge(&facts, &intent());
        assert_eq!(finding.status, Unknown);
        assert!(finding.summary.contains("podman"), "{}", finding.summary);
    }
}

#[cfg(test)]
mod prio_99_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, task};
    use rtproof_host::Reading;

    fn judge(tasks: Vec<RtTask>, priority: u32) -> Finding {
        let mut facts = good();
        facts.rt_tasks = Reading::known("/proc/*/task/*/stat", tasks);
        PRIO_99.judge(&facts, &Intent { priority, ..intent() })
    }

    #[test]
    fn only_tasks_of_user_space_count_and_on_any_cpu() {
        let kernel = || task(12, "migration/0", 99, &[0], true);
        assert_eq!(judge(vec![kernel(), task(7, "a", 98, &[0], false)], 80).status, Good);
        let finding = judge(vec![kernel(), task(7, "a", 99, &[0], false)], 80);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "a (pid 7) runs SCHED_FIFO 99");
        assert_eq!(judge(vec![kernel()], 99).status, Doubtful);
        let deadline = RtTask { policy: Policy::Deadline, ..task(7, "a", 0, &[0], false) };
        assert_eq!(judge(vec![kernel(), deadline], 80).status, Good);
    }

    #[test]
    fn tasks_that_cannot_be_seen_are_unknown() {
        assert_eq!(judge(vec![], 80).status, Unknown);
        let mut facts = good();
        facts.rt_tasks = Reading::denied("/proc/*/task/*/stat", "hidepid");
        assert_eq!(PRIO_99.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod rogue_rt_tasks_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, task};
    use rtproof_host::Reading;

    fn with(more: Vec<RtTask>) -> Facts {
        let mut facts = good();
        let mut tasks = facts.rt_tasks.value().cloned().unwrap();
        tasks.extend(more);
        facts.rt_tasks = Reading::known(facts.rt_tasks.path.clone(), tasks);
        facts
    }

    fn judge(more: Vec<RtTask>) -> Finding {
        ROGUE_RT_TASKS.judge(&with(more), &intent())
    }

    fn multipathd() -> RtTask {
        let unit = Some("multipathd.service".into());
        RtTask { policy: Policy::Rr, unit, ..task(1456, "multipathd", 99, &[0, 1, 2, 3], false) }
    }

    #[test]
    fn multipathd_is_named_with_its_unit() {
        let finding = judge(vec![multipathd()]);
        assert_eq!(finding.status, Bad);
        assert_eq!(
            finding.summary,
            "multipathd (pid 1456, multipathd.service) runs SCHED_RR 99 \
             on CPUs 0-3, above your FIFO 80"
        );
        let unit = "multipathd.service".into();
        assert_eq!(finding.remedies, [Remedy::Unit { unit, action: "disable --now".into() }]);
    }

    #[test]
    fn tasks_below_or_elsewhere_are_good() {
        assert_eq!(judge(vec![task(7, "jackd", 79, &[2], false)]).status, Good);
        assert_eq!(judge(vec![task(7, "jackd", 99, &[0, 1], false)]).status, Good);
        let finding = judge(vec![task(7, "jackd", 79, &[2], false)]);
        assert!(finding.summary.ends_with("highest: jackd SCHED_FIFO 79"), "{}", finding.summary);
    }

    #[test]
    fn deadline_and_unreadable_affinity_count() {
        let deadline = RtTask { policy: Policy::Deadline, ..task(8, "dl", 0, &[3], false) };
        assert_eq!(judge(vec![deadline]).status, Bad);
        let anywhere = RtTask { cpus: None, ..task(8, "x", 90, &[], false) };
        assert_eq!(judge(vec![anywhere]).status, Bad);
    }

    #[test]
    fn an_equal_task_may_be_the_application_and_a_session_is_not_stopped() {
        let finding = judge(vec![task(9, "control", 80, &[2], false)]);
        assert_eq!(finding.status, Bad);
        assert!(finding.summary.ends_with("level with your FIFO 80"), "{}", finding.summary);
        assert!(matches!(finding.remedies[0], Remedy::Manual { .. }));
        let unit = Some("user@1000.service".into());
        let finding = judge(vec![RtTask { unit, ..task(9, "jackd", 95, &[2], false) }]);
        assert_eq!(finding.remedies[0].to_string(), "chrt --other --pid 0 9");
    }

    #[test]
    fn kernel_threads_above_the_application_are_a_choice() {
        assert_eq!(judge(vec![task(10, "card0-crtc0", 50, &[2], true)]).status, Good);
        assert_eq!(judge(vec![task(10, "card0-crtc0", 85, &[2], true)]).status, Doubtful);
        let finding = judge(vec![task(10, "irq/30-eth1", 85, &[2], true)]);
        assert_eq!(finding.status, Good);
        assert!(finding.summary.ends_with("have checks of their own"), "{}", finding.summary);
        assert_eq!(judge(vec![task(10, "watchdogd", 99, &[0, 1, 2, 3], true)]).status, Good);
    }

    #[test]
    fn a_pid_namespace_is_not_the_machine() {
        let mut facts = good();
        facts.rt_tasks = Reading::known("/proc/*/task/*/stat", Vec::new());
        assert_eq!(ROGUE_RT_TASKS.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn many_are_counted() {
        let many = |n| (0..n).map(|tid| task(tid, "w", 90, &[2], false)).collect();
        let finding = judge(many(30));
        assert!(finding.summary.ends_with("; 29 more"), "{}", finding.summary);
        assert_eq!(finding.evidence.len(), 1 + 30);
        assert_eq!(judge(many(300)).evidence.len(), 2 + 256);
    }
}

#[cfg(test)]
mod rr_timeslice_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_setting, task};

    fn rr(tid: u32, priority: u32, on: &[u32]) -> RtTask {
        RtTask { policy: Policy::Rr, ..task(tid, "rr", priority, on, false) }
    }

    fn judge(more: Vec<RtTask>) -> Finding {
        let mut facts = good();
        let mut tasks = facts.rt_tasks.value().cloned().unwrap();
        tasks.extend(more);
        facts.rt_tasks = Reading::known(facts.rt_tasks.path.clone(), tasks);
        RR_TIMESLICE.judge(&facts, &intent())
    }

    #[test]
    fn turns_need_two_of_a_priority_on_one_cpu() {
        assert_eq!(judge(vec![]).status, Good);
        assert_eq!(judge(vec![rr(500, 30, &[2, 3])]).status, Good);
        assert_eq!(judge(vec![rr(500, 30, &[2]), rr(501, 30, &[3])]).status, Good);
        assert_eq!(judge(vec![rr(500, 30, &[2]), rr(501, 31, &[2])]).status, Good);
        let finding = judge(vec![rr(500, 30, &[2]), rr(501, 30, &[2, 3])]);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.ends_with("take turns of 100 ms"), "{}", finding.summary);
        let fifo = task(501, "fifo", 30, &[2], false);
        assert_eq!(judge(vec![rr(500, 30, &[2]), fifo]).status, Doubtful);
    }

    #[test]
    fn without_a_value_or_the_tasks_it_is_unknown() {
        let mut facts = good();
        set_setting(&mut facts, &cpu::RR_TIMESLICE, Reading::denied("/x", "EACCES"));
        assert_eq!(RR_TIMESLICE.judge(&facts, &intent()).status, Unknown);
        let mut facts = good();
        facts.rt_tasks = Reading::known("/proc/*/task/*/stat", Vec::new());
        assert_eq!(RR_TIMESLICE.judge(&facts, &intent()).status, Unknown);
    }
}
