//! Which threads of the kernel run in front of the application, or level with it: those of
//! interrupts, of softirqs and timers, and of RCU, each with its own reason and its own way to
//! change it. Only the user knows whether the application needs them soon or can let them wait.

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::{irq::Irq, kernel::Preemption, settings::Setting, tasks::RtTask},
    knobs::cpu::{self, FEATURES, RT_RUNTIME},
};

use super::tasks::{
    IRQ_THREADS, RCU_THREADS, SOFTIRQ_THREADS, evidence, kinds, named, on_rt_cpus, outranks, own,
};
use super::{RUNAWAY, limited};
use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{built_with, option, since};
use crate::profile::Choice;
use crate::remedies::{make_fifo, move_to};
use crate::value::grouped;
use crate::{Evidence, Finding, Impact, Intent, Remedy, Status, When, machine, value};

/// Priority that OpenShift's profile gives the kernel's softirq and RCU threads.
const HELPER_PRIORITY: u32 = 11;

pub(super) static IRQ_THREAD_PRIO: Check = Check {
    id: "irq-thread-prio",
    title: "interrupt threads at or above the application's priority",
    why: "the application waits for the handler of every device whose interrupt thread ranks as \
          high",
    source: "kernel/irq/manage.c (sched_set_fifo), kernel/sched/syscalls.c (FIFO 50 by default); \
             sched(7); rtirq (raises the threads of sound cards)",
    trade_off: Some(
        "a device that the application waits for needs its thread above the application, all \
         others below",
    ),
    knobs: &[&cpu::IRQ_THREADS],
    judge: Judge::Ask(judge_irq_thread_prio),
    ..Check::NEW
};

fn judge_irq_thread_prio(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.wanted(format!("none above {}", own(intent))).cpus(&intent.rt_cpus);
    let (draft, tasks) = match on_rt_cpus(draft, facts, intent) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let threads = named(&tasks, IRQ_THREADS);
    let ahead: Vec<&RtTask> =
        threads.iter().filter(|task| outranks(task, intent)).copied().collect();
    let cpus = machine::cpus(&intent.rt_cpus);
    if ahead.is_empty() {
        let all = facts.rt_tasks.value().into_iter().flatten().collect::<Vec<_>>();
        return draft.good(match (threads.is_empty(), named(&all, IRQ_THREADS).is_empty()) {
            (false, _) => format!("below {} on {cpus}: {}", own(intent), kinds(&threads)),
            (true, false) => format!("no interrupt thread may run on {cpus}"),
            (true, true) => "no interrupt has a thread: handlers run at once, where they are \
                             sent"
                .into(),
        });
    }
    let names: Vec<&str> = ahead.iter().map(|task| task.comm.as_str()).collect();
    draft
        .evidence(evidence(&ahead))
        .remedies([Remedy::Manual {
            text: "unless the application waits for the device: move its interrupt to another \
                   CPU, or lower the thread with chrt --fifo --pid PRIORITY TID"
                .into(),
        }])
        .doubtful(format!(
            "{} may run on {cpus} at or above {}: {}",
            machine::count(ahead.len(), "interrupt thread"),
            own(intent),
            machine::first_few(&names, 4)
        ))
}

pub(super) static SOFTIRQ_PRIO: Check = Check {
    id: "ksoftirqd-ktimers-prio",
    title: "softirq and timer threads at or above the application's priority",
    why: "softirq work has no end that is known: network packets and timers of others run while \
          the application waits",
    source: "kernel/softirq.c (ksoftirqd is SCHED_OTHER; ktimers, 6.13 and PREEMPT_RT patches, \
             SCHED_FIFO 1); tuned, profile realtime; OpenShift, profile openshift-node-performance",
    trade_off: Some(
        "tuned and OpenShift raise them to SCHED_FIFO 2 and 11, so that an application that rarely \
         sleeps does not starve timers and the network: above ordinary tasks, below the \
         application",
    ),
    knobs: &[&cpu::SOFTIRQ_THREADS],
    judge: Judge::Ask(judge_softirq_prio),
    ..Check::NEW
};

fn judge_softirq_prio(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.wanted(format!("below {}", own(intent))).cpus(&intent.rt_cpus);
    let (draft, tasks) = match on_rt_cpus(draft, facts, intent) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let threads = named(&tasks, SOFTIRQ_THREADS);
    let ahead: Vec<&RtTask> =
        threads.iter().filter(|task| outranks(task, intent)).copied().collect();
    let cpus = machine::cpus(&intent.rt_cpus);
    if !ahead.is_empty() {
        let wanted = HELPER_PRIORITY.min(intent.priority.saturating_sub(1)).max(1);
        let lower = |task: &&RtTask| make_fifo(task, wanted);
        let remedies: Vec<Remedy> = match intent.priority > 1 {
            true => ahead.iter().map(lower).collect(),
            false => vec![Remedy::Manual {
                text: "give the application a priority above these threads".into(),
            }],
        };
        return draft.evidence(evidence(&ahead)).remedies(remedies).doubtful(format!(
            "at or above {} on {cpus}: {}",
            own(intent),
            kinds(&ahead)
        ));
    }
    draft.good(match threads.is_empty() {
        true => format!("not real-time on {cpus}"),
        false => format!("below {} on {cpus}: {}", own(intent), kinds(&threads)),
    })
}

pub(super) static RCU_KTHREAD_PRIO: Check = Check {
    id: "rcu-kthread-prio",
    title: "RCU threads at or above the application's priority",
    why: "RCU callbacks run in batches: at or above the application they run in front of it, and \
          at no priority at all memory waits until it sleeps",
    source: "Documentation/admin-guide/kernel-parameters.txt (rcutree.kthread_prio); \
             kernel/rcu/tree.c; OpenShift, profile openshift-node-performance (11)",
    when: When::Boot,
    knobs: &[&cpu::RCU_KTHREAD_PRIO],
    judge: Judge::Ask(judge_rcu_kthread_prio),
    ..Check::NEW
};

fn judge_rcu_kthread_prio(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.wanted(format!("below {}", own(intent))).cpus(&intent.rt_cpus);
    let (draft, tasks) = match on_rt_cpus(draft, facts, intent) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let reading = value::knob_text(facts, &cpu::RCU_KTHREAD_PRIO);
    let draft = draft.read(&reading, String::clone);
    let threads = named(&tasks, RCU_THREADS);
    let ahead: Vec<&RtTask> =
        threads.iter().filter(|task| outranks(task, intent)).copied().collect();
    let cpus = machine::cpus(&intent.rt_cpus);
    if !ahead.is_empty() {
        let wanted = HELPER_PRIORITY.min(intent.priority.saturating_sub(1)).max(1);
        let parameter = format!("rcutree.kthread_prio={wanted}");
        let lower = (intent.priority > 1).then_some(Remedy::Boot { parameter });
        let raise =
            Remedy::Manual { text: "give the application a priority above these threads".into() };
        return draft.evidence(evidence(&ahead)).remedies(lower.or(Some(raise))).doubtful(format!(
            "at or above {} on {cpus}: {}",
            own(intent),
            kinds(&ahead)
        ));
    }
    let Some(found) = reading.value() else {
        return draft.unreadable(&reading);
    };
    if found.parse::<u32>().is_err() {
        return draft.unreadable(&Reading::<u32>::malformed(&reading.path, found, "a priority"));
    }
    draft.good(match threads.is_empty() {
        true => format!("rcutree.kthread_prio is {found}; none is real-time on {cpus}"),
        false => format!(
            "rcutree.kthread_prio is {found}; below {} on {cpus}: {}",
            own(intent),
            kinds(&threads)
        ),
    })
}

// Does a nice value of the application count beyond its own session?
//
// Autogroups gather the ordinary tasks of each session: nice then ranks a task within its session
// alone. Real-time tasks are in no such group, so nothing is wrong for an application that has a
// priority.

pub(super) static AUTOGROUP: Check = Check {
    id: "sched-autogroup",
    title: "automatic groups of ordinary tasks, one a session",
    why: "with autogroups the nice value of an ordinary task ranks it within its own session only",
    source: "sched(7), \"The autogroup feature\"; kernel/sched/autogroup.c",
    impact: Impact::Information,
    knobs: &[&cpu::AUTOGROUP],
    judge: Judge::Ask(judge_autogroup),
    ..Check::NEW
};

fn judge_autogroup(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let is_real_time = intent.priority > 0;
    let draft = draft.wanted(if is_real_time { "known" } else { "0" });
    let reading = value::knob_text(facts, &cpu::AUTOGROUP);
    let draft = draft.read(&reading, String::clone);
    match reading.value().map(String::as_str) {
        Some("0") => draft.good("off"),
        Some("1") if is_real_time => draft.good(format!(
            "on, for ordinary tasks only: FIFO {} is in no autogroup",
            intent.priority
        )),
        Some("1") => draft
            .remedies([Remedy::set(&cpu::AUTOGROUP, vec![reading.path.clone()], "0")])
            .doubtful("on: a nice value ranks the application within its session only"),
        Some(found) => {
            draft.unreadable(&Reading::<String>::malformed(&reading.path, found, "0, 1"))
        }
        None if reading.is_absent() && built_with(facts, "SCHED_AUTOGROUP") == Some(false) => draft
            .evidence([option(facts, "SCHED_AUTOGROUP")])
            .not_applicable("this kernel is built without autogroups"),
        None => draft.unreadable(&reading),
    }
}

// Features of the scheduler that real-time tasks feel: one check for each, all in one file of
// debugfs.

#[derive(Clone, Copy, PartialEq, Eq)]
enum Only {
    PreemptRt,
    Throttling,
}

pub(super) static TTWU_QUEUE: Check = Check {
    id: "sched-features-ttwu-queue",
    title: "wakeups from other CPUs, queued or done at once",
    why: "wakeups queued for another CPU are worked off there in a row, in an interrupt that holds \
          up the real-time task",
    source: "kernel/sched/features.h (off with PREEMPT_RT); Gleixner, \"sched: Disable TTWU_QUEUE \
             on RT\", linux-kernel, September 2021 (maximum latencies up to 5 times and more with \
             it)",
    judge: Judge::Ask(|draft, facts, _| {
        feature(draft, facts, "TTWU_QUEUE", false, Only::PreemptRt, Status::Bad)
    }),
    ..Check::NEW
};

pub(super) static RT_PUSH_IPI: Check = Check {
    id: "sched-features-rt-push-ipi",
    title: "how waiting real-time tasks move to a CPU that gets free",
    why: "without it, every CPU whose priority falls takes the lock of the CPU where a real-time \
          task waits, all at the same time",
    source: "kernel/sched/features.h (best for PREEMPT_RT, its default there); kernel/sched/rt.c \
             (pull_rt_task)",
    judge: Judge::Ask(|draft, facts, _| {
        feature(draft, facts, "RT_PUSH_IPI", true, Only::PreemptRt, Status::Doubtful)
    }),
    ..Check::NEW
};

pub(super) static RT_RUNTIME_SHARE: Check = Check {
    id: "sched-features-rt-runtime-share",
    impact: Impact::Milliseconds,
    title: "real-time time borrowed between CPUs",
    why: "a CPU that borrows the real-time time of others never throttles, and the CPUs that lent \
          it throttle earlier",
    source: "kernel/sched/rt.c (balance_runtime); kernel/sched/features.h (off by default)",
    judge: Judge::Ask(|draft, facts, _| {
        feature(draft, facts, "RT_RUNTIME_SHARE", false, Only::Throttling, Status::Doubtful)
    }),
    ..Check::NEW
};

/// Whether a feature is set as wanted: on or off, and where it is decided.
fn feature(
    draft: FindingBuilder,
    facts: &Facts,
    name: &str,
    on: bool,
    only: Only,
    otherwise: Status,
) -> Finding {
    let (set, unset) = (name.to_owned(), format!("NO_{name}"));
    let (wanted, unwanted) = if on { (set, unset) } else { (unset, set) };
    let draft = draft.wanted(&wanted);
    let draft = match only {
        Only::PreemptRt => {
            let model = &facts.kernel.preemption;
            let draft = draft.read(model, |model| match model {
                Preemption::Rt => "PREEMPT_RT".into(),
                _ => "not PREEMPT_RT".into(),
            });
            match model.value() {
                Some(Preemption::Rt) => draft,
                Some(_) => {
                    return draft.not_applicable(
                        "it is a choice of PREEMPT_RT: without it, the kernel's own is right",
                    );
                }
                None => return draft.unreadable(model),
            }
        }
        Only::Throttling => {
            let is_throttled = built_with(facts, "RT_GROUP_SCHED") == Some(true);
            if since(facts, (6, 12)) == Some(true)
                && built_with(facts, "RT_GROUP_SCHED") == Some(false)
            {
                return draft
                    .read(&facts.kernel.version, |(major, minor)| format!("{major}.{minor}"))
                    .evidence([option(facts, "RT_GROUP_SCHED")])
                    .not_applicable("from 6.12 CPUs have no real-time time to lend");
            }
            draft.evidence(is_throttled.then(|| option(facts, "RT_GROUP_SCHED")))
        }
    };
    let features = &facts.sched.features;
    let has = |name: &str| features.value().is_some_and(|all| all.iter().any(|f| f == name));
    let shown = [&wanted, &unwanted].into_iter().find(|name| has(name));
    let draft = draft.evidence([Evidence::of(features, |_| match shown {
        Some(name) => name.clone(),
        None => format!("neither {wanted} nor {unwanted}"),
    })]);
    if features.value().is_none() {
        return draft.remedies([super::readable(facts, features)]).unreadable(features);
    }
    match shown {
        Some(name) if *name == wanted => draft.good(name.clone()),
        Some(name) => draft
            .remedies([Remedy::set(&FEATURES, vec![features.path.clone()], wanted.clone())])
            .status(otherwise, format!("{name}; wanted: {wanted}")),
        None => draft.not_applicable(format!("this kernel has no {}", name)),
    }
}

// Do interrupt threads run where their interrupts go?
//
// The kernel gives a thread the CPUs of its interrupt. If a driver does not report it, or the
// thread was moved by hand, the interrupt is kept away from a real-time CPU and its work is not.
// A thread whose interrupt never fired follows at the first one: it is left out.

pub(super) static IRQ_THREAD_AFFINITY: Check = Check {
    id: "irq-thread-affinity",
    title: "interrupt threads on CPUs that their interrupts do not use",
    why: "an interrupt that was moved away from a real-time CPU still runs its handler there",
    source: "kernel/irq/manage.c (irq_thread_check_affinity); github.com/raspberrypi/linux issue \
             7301",
    wanted: Wanted::Text("each where its interrupt goes"),
    judge: Judge::Ask(judge_irq_thread_affinity),
    ..Check::NEW
};

fn judge_irq_thread_affinity(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    let (draft, tasks) = match on_rt_cpus(draft, facts, intent) {
        Ok(found) => found,
        Err(finding) => return *finding,
    };
    let cpus = machine::cpus(&intent.rt_cpus);
    let threads = named(&tasks, IRQ_THREADS);
    if threads.is_empty() {
        return draft.good(format!("no interrupt thread may run on {cpus}"));
    }
    let irqs = &facts.irqs.irqs;
    let draft = draft.read(irqs, |irqs| machine::count(irqs.len(), "interrupt"));
    let Some(irqs) = irqs.value() else {
        return draft.unreadable(irqs);
    };
    let of = |task: &RtTask| irqs.iter().find(|irq| Some(irq.number) == number(&task.comm));
    let pairs: Vec<(&RtTask, &Irq)> = threads
        .iter()
        .filter_map(|task| Some((*task, of(task)?)))
        .filter(|(_, irq)| irq.count > 0)
        .collect();
    let targets: Vec<(u32, &Reading<CpuList>)> =
        pairs.iter().map(|(_, irq)| (irq.number, target(irq))).collect();
    let draft = draft.evidence(machine::grouped(targets.iter().copied(), machine::or_empty));
    let elsewhere =
        pairs.iter().filter(|(_, irq)| is_elsewhere(irq, intent)).map(|(task, _)| *task);
    let (stray, unseen): (Vec<&RtTask>, Vec<&RtTask>) =
        elsewhere.partition(|task| task.cpus.is_some());
    if let Some(first) = stray.first() {
        let names: Vec<&str> = stray.iter().map(|task| task.comm.as_str()).collect();
        let commands = stray.iter().filter_map(|task| {
            let to = target(of(task)?).value()?;
            Some(move_to(task, to))
        });
        let on = first.cpus.as_ref().map_or_else(|| "any CPU".into(), machine::cpus);
        return draft.evidence(evidence(&stray)).remedies(commands).doubtful(format!(
            "{} may run on {on}, where the interrupt does not go: {}",
            machine::count(stray.len(), "interrupt thread"),
            machine::first_few(&names, 4)
        ));
    }
    if let Some(task) = unseen.first() {
        return draft.unknown(format!(
            "/proc/{}/status: on which CPUs {} may run cannot be read",
            task.tid, task.comm
        ));
    }
    if let Some((_, unreadable)) = targets.iter().find(|(_, reading)| reading.value().is_none()) {
        return draft.unreadable(unreadable);
    }
    draft.good(match pairs.len() {
        0 => format!("the interrupt threads on {cpus} have had no work"),
        number => format!(
            "{} on {cpus}, each where its interrupt goes",
            machine::count(number, "interrupt thread")
        ),
    })
}

/// `irq/24-eth0` and `irq/24-s-eth0` are of interrupt 24.
fn number(comm: &str) -> Option<u32> {
    let rest = comm.strip_prefix("irq/")?;
    rest.split('-').next()?.parse().ok()
}

/// Effective CPUs, else the requested ones: not every chip reports the former.
fn target(irq: &Irq) -> &Reading<CpuList> {
    match irq.effective.value().is_some_and(|cpus| !cpus.is_empty()) {
        true => &irq.effective,
        false if irq.effective.is_absent() || irq.effective.value().is_some() => &irq.requested,
        false => &irq.effective,
    }
}

fn is_elsewhere(irq: &Irq, intent: &Intent) -> bool {
    let target = target(irq).value();
    target.is_some_and(|cpus| cpus.intersection(&intent.rt_cpus).is_empty())
}

// Are real-time tasks stopped once they have used their share?
//
// Before 6.12 they may use `sched_rt_runtime_us` of each period. From 6.12 the value stops no task
// unless the kernel is built with CONFIG_RT_GROUP_SCHED: what takes time then is the fair server,
// which has a check of its own and which `-1` does not stop.
//
// It bites only a task that leaves less than the limit to others, so the default is doubtful: only
// the user knows. It is bad where real-time tasks are left half of the time or less.

pub(super) static RT_THROTTLING: Check = Check {
    id: "rt-throttling",
    title: "time taken from real-time tasks by RT throttling",
    why: "a real-time task that does not sleep enough is stopped for the rest of the period: 50 ms \
          of each second by default",
    source: "kernel/sched/rt.c (from 6.12 only with CONFIG_RT_GROUP_SCHED); \
             Documentation/scheduler/sched-rt-group.rst; measured on 6.1, 6.12 and 7.2 with a FIFO \
             and an ordinary spinner",
    trade_off: Some(
        "without the limit a real-time task that never sleeps locks up its CPU for good: have a \
         hardware watchdog",
    ),
    impact: Impact::Milliseconds,
    judge: Judge::Ask(judge_rt_throttling),
    ..Check::NEW
};

fn judge_rt_throttling(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let choice = intent.profile.choices.rt_throttling;
    let draft = draft.wanted(match choice {
        Choice::On => "a limit, below half of the time",
        Choice::Off | Choice::Either => "no time taken",
    });
    let (version, runtime) = (&facts.kernel.version, &facts.sched.rt_runtime_us);
    let show = |(major, minor): &(u32, u32)| format!("{major}.{minor}");
    match (since(facts, (6, 12)), has_groups(facts)) {
        (Some(false), _) => judge_throttling(draft.read(version, show), facts, choice, ""),
        _ if runtime.value() == Some(&-1) && choice != Choice::On => {
            draft.read(runtime, i64::to_string).good(format!(
                "RT throttling is off; from 6.12 that does not stop the fair server{}",
                group_caveat(facts)
            ))
        }
        (Some(true), Some(true)) => {
            let draft = draft.evidence([option(facts, "RT_GROUP_SCHED")]);
            judge_throttling(draft, facts, choice, "CONFIG_RT_GROUP_SCHED keeps RT throttling: ")
        }
        (Some(true), Some(false)) => draft
            .read(version, show)
            .evidence([option(facts, "RT_GROUP_SCHED")])
            .evidence(groups_off(facts))
            .not_applicable(
                "from 6.12 sched_rt_runtime_us stops no task: the fair server takes its place",
            ),
        (Some(true), None) => {
            draft.evidence([option(facts, "RT_GROUP_SCHED")]).read(runtime, i64::to_string).unknown(
                "from 6.12 sched_rt_runtime_us throttles only with CONFIG_RT_GROUP_SCHED, and \
                 the kernel configuration is not readable",
            )
        }
        (None, _) => draft.unreadable(version),
    }
}

/// RT throttling is in force; `because` opens the summary where that needs a reason.
fn judge_throttling(
    draft: FindingBuilder,
    facts: &Facts,
    choice: Choice,
    because: &str,
) -> Finding {
    let (runtime, period) = (&facts.sched.rt_runtime_us, &facts.sched.rt_period_us);
    let draft = draft.read(runtime, i64::to_string);
    let Some(&runtime_us) = runtime.value() else {
        return draft.unreadable(runtime);
    };
    let unlimited = |draft: FindingBuilder, summary: String| match choice {
        Choice::On => draft.doubtful(format!("{summary}: {RUNAWAY}")),
        Choice::Off | Choice::Either => draft.good(summary),
    };
    if runtime_us < 0 {
        let caveat = group_caveat(facts);
        return unlimited(draft, format!("{because}no limit on real-time tasks{caveat}"));
    }
    let draft = draft.read(period, i64::to_string);
    let Some(&period_us) = period.value() else {
        return draft.unreadable(period);
    };
    if runtime_us >= period_us {
        return unlimited(draft, format!("{because}real-time tasks may use the whole period"));
    }
    let ns = |us: i64| u64::try_from(us).unwrap_or(0).saturating_mul(1_000);
    let (runtime_ns, period_ns) = (ns(runtime_us), ns(period_us));
    let summary = format!(
        "{because}real-time tasks are stopped for {} of each {} once they use {} of it",
        crate::ns(period_ns - runtime_ns),
        crate::ns(period_ns),
        crate::ns(runtime_ns),
    );
    let status = limited(period_ns - runtime_ns, period_ns, choice);
    if status == Status::Good {
        return draft.good(summary);
    }
    let remedies = [
        Remedy::set(&RT_RUNTIME, vec![runtime.path.clone()], "-1"),
        Remedy::File {
            path: rtproof_host::knobs::SYSCTL_FILE.into(),
            line: "kernel.sched_rt_runtime_us = -1".into(),
        },
    ];
    draft.remedies(remedies).status(status, summary)
}

/// Whether real-time group scheduling is in force: from 6.16 `rt_group_sched=` turns it on or off,
/// and CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED says which it is without.
fn has_groups(facts: &Facts) -> Option<bool> {
    if !built_with(facts, "RT_GROUP_SCHED")? {
        return Some(false);
    }
    let is_off = match facts.kernel.cmdline.value()?.last("rt_group_sched") {
        Some(value) => value == Some("0"),
        None => built_with(facts, "RT_GROUP_SCHED_DEFAULT_DISABLED")?,
    };
    if is_off { since(facts, (6, 16)).map(|knows_it| !knows_it) } else { Some(true) }
}

/// What turned real-time groups off in a kernel that has them.
fn groups_off(facts: &Facts) -> Option<Evidence> {
    let is_built_in = built_with(facts, "RT_GROUP_SCHED") == Some(true);
    is_built_in.then(|| {
        Evidence::of(&facts.kernel.cmdline, |line| match line.last("rt_group_sched") {
            Some(_) => "rt_group_sched=0".into(),
            None => "no rt_group_sched=1".into(),
        })
    })
}

fn group_caveat(facts: &Facts) -> &'static str {
    match has_groups(facts) {
        Some(true) => {
            "; CONFIG_RT_GROUP_SCHED: SCHED_FIFO is refused in control groups without rt_runtime"
        }
        _ => "",
    }
}

// Does something reset a machine that a real-time task has locked up?
//
// Only where nothing else does: with throttling or the fair server, ordinary tasks run on now and
// then, and an administrator can log in. Not about latency: about what turning them off costs.

pub(super) static WATCHDOG_DAEMON: Check = Check {
    id: "watchdog-daemon",
    title: "a watchdog, where nothing limits real-time tasks",
    why: "without a limit a real-time task that never sleeps locks its CPU up for good, and with \
          it what waits for that CPU",
    source: "Documentation/ABI/testing/sysfs-class-watchdog; \
             Documentation/watchdog/watchdog-api.rst; systemd-system.conf(5), RuntimeWatchdogSec=",
    trade_off: Some("a watchdog resets the machine when its daemon starves, for whatever reason"),
    impact: Impact::Information,
    knobs: &[&cpu::WATCHDOG_STATE, &cpu::WATCHDOG_DAEMON],
    wanted: Wanted::Text("armed, or real-time tasks limited"),
    judge: Judge::Ask(judge_watchdog_daemon),
    ..Check::NEW
};

fn judge_watchdog_daemon(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let limit = daemon_limit(facts, intent);
    if let Limit::Some(evidence, what) = limit {
        return draft.evidence(evidence).good(format!("not needed: {what}"));
    }
    let empty = Setting { values: Vec::new(), missing_from: None };
    let setting = facts.settings.get(cpu::WATCHDOG_STATE.id).unwrap_or(&empty);
    let devices: Vec<_> = setting.values.iter().collect();
    let draft = draft.evidence(grouped(&devices));
    let is = |state: &str| {
        let mut states = devices.iter().filter_map(|device| device.reading.value());
        states.any(|found| found == state)
    };
    if is("active") {
        return draft.good("a watchdog is armed");
    }
    let draft = draft.evidence(limit.evidence());
    if let Limit::Unknown(_, why) = limit {
        return draft.unknown(format!("no watchdog is seen to be armed, and {why}"));
    }
    let draft = draft.remedies([Remedy::File {
        path: "/etc/systemd/system.conf.d/90-rtproof-watchdog.conf".into(),
        line: "[Manager] RuntimeWatchdogSec=30s".into(),
    }]);
    if is("inactive") {
        return draft.doubtful(format!(
            "nothing limits real-time tasks, and of {} none is armed",
            machine::count(devices.len(), "watchdog")
        ));
    }
    if let Some(device) = devices.first() {
        return draft.unreadable(&device.reading);
    }
    match setting.missing_from.as_ref().filter(|reading| reading.value().is_some()) {
        Some(lacking) => draft
            .read(lacking, String::clone)
            .doubtful("nothing limits real-time tasks, and no watchdog is seen"),
        None => draft
            .evidence([Evidence { path: "/sys/class/watchdog".into(), value: "not there".into() }])
            .unknown("nothing limits real-time tasks; /sys/class/watchdog: not there"),
    }
}

/// Whether something limits real-time tasks on the real-time CPUs, and what shows it.
enum Limit {
    Some(Vec<Evidence>, &'static str),
    None(Vec<Evidence>),
    Unknown(Vec<Evidence>, &'static str),
}

impl Limit {
    fn evidence(&self) -> Vec<Evidence> {
        match self {
            Self::Some(evidence, _) | Self::None(evidence) | Self::Unknown(evidence, _) => {
                evidence.clone()
            }
        }
    }
}

fn daemon_limit(facts: &Facts, intent: &Intent) -> Limit {
    let servers = &facts.sched.fair_server;
    let (runtime, period) = (&facts.sched.rt_runtime_us, &facts.sched.rt_period_us);
    let throttling =
        || vec![Evidence::of(runtime, i64::to_string), Evidence::of(period, i64::to_string)];
    let is_throttled = match (runtime.value(), period.value()) {
        (Some(runtime_us), _) if *runtime_us < 0 => Some(false),
        (Some(runtime_us), Some(period_us)) => Some(runtime_us < period_us),
        _ => None,
    };
    if is_throttled == Some(true) && has_groups(facts) == Some(true) {
        let mut evidence = vec![
            option(facts, "RT_GROUP_SCHED"),
            Evidence::of(&facts.kernel.cmdline, |_| "rt_group_sched= leaves it on".into()),
        ];
        evidence.extend(throttling());
        return Limit::Some(evidence, "RT throttling stops real-time tasks");
    }
    if let Some(found) = servers.value() {
        let evidence = vec![Evidence::of(servers, |found| super::show_servers(found))];
        let is_concerned = |cpu| intent.rt_cpus.is_empty() || intent.rt_cpus.contains(cpu);
        let mut concerned = found.iter().filter(|server| is_concerned(server.cpu)).peekable();
        return match concerned.peek().is_some() && concerned.all(|server| server.runtime_ns > 0) {
            true => Limit::Some(evidence, "the fair server runs ordinary tasks"),
            false => Limit::None(evidence),
        };
    }
    let version = &facts.kernel.version;
    let mut evidence = vec![Evidence::of(version, |(major, minor)| format!("{major}.{minor}"))];
    match (since(facts, (6, 12)), is_throttled) {
        (Some(false), Some(is_throttled)) => {
            evidence.extend(throttling());
            match is_throttled {
                true => Limit::Some(evidence, "RT throttling stops real-time tasks"),
                false => Limit::None(evidence),
            }
        }
        (Some(true), _) => {
            evidence.push(Evidence::of(servers, |found| super::show_servers(found)));
            Limit::Unknown(evidence, "whether the fair server limits real-time tasks is unknown")
        }
        _ => {
            evidence.extend(throttling());
            Limit::Unknown(evidence, "whether real-time tasks are limited is unknown")
        }
    }
}

#[cfg(test)]
mod tests;
