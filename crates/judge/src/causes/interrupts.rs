//! Causes whose culprit is an interrupt or what it leaves behind: its handler, its thread,
//! softirqs, IPIs, NMIs, and stretches with interrupts or preemption off.

use rtproof_trace::{
    EventClass, EventData,
    context::Hard,
    event::{Vector, softirq_name},
};

use super::machine::{is_likely, path_ns};
use super::scene::{Interrupted, Moment, WakeUpPhase, turns_interrupts_on};
use super::{Attribution, Cause, CauseKind, PriorityOrder, changed, names, order};
use crate::Remedy;

// An interrupt that another CPU sent.

pub(super) const IPI: Cause = Cause {
    id: "ipi",
    kind: CauseKind::Interrupt,
    title: "an inter-processor interrupt",
    about: "a rescheduling or function call interrupt was on top; ipi_send_cpu (6.4) and ipi_raise \
        name who sent it",
    source: "kernel/smp.c; include/trace/events/ipi.h",
    checks: &["local-ipis", "tlb-shootdown", "static-key-ipis"],
    attribute: attribute_ipi,
};

fn attribute_ipi(moment: &Moment<'_>) -> Option<Attribution> {
    let (hard, _) = moment.cpu.hard.filter(|(hard, _)| hard.is_ipi())?;
    let attribution = Attribution::of_culprit(hard.to_string());
    let sender = names::sender(moment);
    let unknown = sender.is_none();
    let attribution = attribution.detail(sender.map(|sender| format!("sent by {sender}")));
    let attribution = attribution.detail(unknown.then(|| "who sent it is not recorded".to_owned()));
    Some(attribution.manual(
        "keep what sends it away from this CPU: no shared memory with other CPUs' processes \
         (TLB shootdowns), no membarrier, no static-key or module changes in operation",
    ))
}

// A device's interrupt handler ran.

pub(super) const IRQ: Cause = Cause {
    id: "irq",
    kind: CauseKind::Interrupt,
    title: "an interrupt handler",
    about: "irq_handler_entry to irq_handler_exit, or a vector of its own, was on top",
    source: "include/trace/events/irq.h",
    checks: &["irq-affinity", "irqbalance", "threadirqs"],
    attribute: attribute_irq,
};

fn attribute_irq(moment: &Moment<'_>) -> Option<Attribution> {
    let (hard, _) = moment.cpu.hard.filter(|(hard, _)| !hard.is_timer() && !hard.is_ipi())?;
    Some(against(Attribution::of_culprit(hard.to_string()), moment, &hard))
}

/// What to do about a hard interrupt on a real-time CPU.
fn against(attribution: Attribution, moment: &Moment<'_>, hard: &Hard) -> Attribution {
    let cpu = moment.scene.wake.cpu;
    match hard {
        Hard::Irq { irq, name } => attribution
            .owner(Some(name.to_string()))
            .remedy(Remedy::Command {
                command: format!(
                    "rtproof check --only irq-affinity  # IRQ {irq} runs on CPU {cpu}"
                ),
            })
            .manual(format!(
                "move it: write other CPUs to /proc/irq/{irq}/smp_affinity_list, or boot with \
                 irqaffinity=; with threadirqs most of the handler becomes a thread"
            )),
        Hard::Vector(vector) if names::is_health(*vector) => attribution
            .manual("the machine reports its own state: cooling, memory, firmware settings"),
        _ => attribution,
    }
}

// A threaded interrupt handler ran ahead of the thread.

pub(super) const IRQ_THREAD: Cause = Cause {
    id: "irq-thread",
    kind: CauseKind::Interrupt,
    title: "an interrupt thread",
    about: "a thread irq/N-name of higher or equal priority was running",
    source: "kernel/irq/manage.c (irq_thread); szg, \"SCHED_FIFO on Raspberry Pi and Debian\"",
    checks: &["irq-thread-affinity", "irq-affinity", "app-irq-threads"],
    attribute: attribute_irq_thread,
};

fn attribute_irq_thread(moment: &Moment<'_>) -> Option<Attribution> {
    let order = order(moment);
    let above = !matches!(order, PriorityOrder::Below | PriorityOrder::UnknownAndHeld);
    if moment.phase != WakeUpPhase::Runnable || !moment.is_task() || !above {
        return None;
    }
    let scene = moment.scene;
    let name = names::comm(scene, moment.cpu.task);
    let rest = name.strip_prefix("irq/")?;
    let (irq, driver) = rest.split_once('-').unwrap_or((rest, ""));
    let attribution = Attribution::of_culprit(names::task(scene, moment.cpu.task, moment.cpu.prio));
    let attribution = attribution.detail(names::task_detail(scene, moment.cpu.task));
    let attribution =
        attribution.detail(changed(moment)).owner((!driver.is_empty()).then(|| driver.to_owned()));
    let others: &[&str] = if order == PriorityOrder::Unknown { &["preempt-off"] } else { &[] };
    Some(attribution.or_causes(others).manual(format!(
        "move IRQ {irq} to another CPU, or give the application a higher priority than the \
         thread"
    )))
}

// Code ran with interrupts off.

/// Whether a function is known to keep interrupts off for milliseconds: text on a serial console
/// (drivers/tty/serial).
fn takes_long(name: &str) -> bool {
    ["console_", "vprintk", "serial8250", "uart_", "pl011_"].iter().any(|part| name.contains(part))
}

pub(super) const IRQS_OFF: Cause = Cause {
    id: "irqs-off",
    kind: CauseKind::Blocking,
    title: "kernel code with interrupts off",
    about: "the timer was due, a task was on the CPU and no interrupt came. The stack at the \
        interrupt names the code, and rules out user mode, where interrupts cannot be off",
    source: "kernel/trace/trace_irqsoff.c; measured: 457 us in move_expired_inodes (wb_workfn), \
        Linux 6.18",
    checks: &["preempt-rt", "serial-console", "threadirqs"],
    attribute: attribute_irqs_off,
};

fn attribute_irqs_off(moment: &Moment<'_>) -> Option<Attribution> {
    let waits = moment.phase == WakeUpPhase::TimerLate && moment.cpu.task > 0 && moment.is_task();
    let scene = moment.scene;
    let interrupted = moment.interrupted();
    if !waits || moment.whole_ns() <= path_ns(moment) || *interrupted == Interrupted::User {
        return None;
    }
    let surroundings = &scene.window.surroundings;
    let taken =
        surroundings.steal_ns.is_some_and(|ns| ns > 0) || surroundings.smi.is_some_and(|n| n > 0);
    let task = names::task(scene, moment.cpu.task, moment.cpu.prio);
    let Interrupted::Kernel(frames) = interrupted else {
        if taken || is_likely(moment) {
            return None;
        }
        return Some(
            Attribution::of_culprit(task).or_causes(&["stall"]).detail([
                "without the stack at the interrupt \
            it may as well be the hardware or a hypervisor"
                    .to_owned(),
            ]),
        );
    };
    let ends = frames.first().is_some_and(|frame| turns_interrupts_on(frame));
    // The function that turned them on is shared by all; its caller is the culprit.
    let named = frames.iter().find(|frame| !turns_interrupts_on(frame)).or(frames.first());
    let function = named.map_or("?", |frame| frame.split('+').next().unwrap_or(frame));
    let attribution = Attribution::of_culprit(format!("{function} in {task}"));
    let attribution = attribution.detail([frames.join(" ← ")]);
    let owner = frames.iter().find_map(|frame| names::module_of(frame));
    let attribution = attribution.owner(owner).manual(
        "the code named here keeps interrupts off: another driver, a newer kernel, or keep \
         what calls it off this CPU",
    );
    // Inside kernel code, while firmware or hypervisor took the CPU: a stall. In a
    // guest that is silent for long, so it is where the code had just turned interrupts on:
    // the kernel does that all the time, and few sections are that long.
    let in_midst = !ends || moment.cpu.task == scene.wake.tid;
    let is_known = || frames.iter().any(|frame| takes_long(frame));
    if taken && in_midst || is_likely(moment) && !is_known() {
        return None;
    }
    // Interrupts that come just where they are turned on were held up by that code. Elsewhere a
    // stall inside kernel code looks the same, unless the machine says there was none.
    let no_stall = surroundings.smi == Some(0) && surroundings.guest == Some(false);
    let certain = no_stall || (ends && !is_likely(moment));
    Some(if certain { attribution } else { attribution.or_causes(&["stall"]) })
}

// The timer was due while another interrupt was being handled.

pub(super) const MASKED: Cause = Cause {
    id: "masked",
    kind: CauseKind::Interrupt,
    title: "the timer interrupt, masked by another interrupt",
    about: "the timer was due and not yet handled, and another interrupt was on top: interrupts \
        are off in handlers",
    source: "kernel/irq/handle.c (handlers run with interrupts off)",
    checks: &["irq-affinity", "threadirqs", "irqaffinity-boot"],
    attribute: attribute_masked,
};

fn attribute_masked(moment: &Moment<'_>) -> Option<Attribution> {
    if moment.phase != WakeUpPhase::TimerLate {
        return None;
    }
    let (hard, _) = moment.cpu.hard.filter(|(hard, _)| !hard.is_timer())?;
    if matches!(hard, Hard::Vector(Vector::LocalTimer)) {
        return None;
    }
    let attribution = Attribution::of_culprit(hard.to_string());
    let attribution = match names::sender(moment).filter(|_| hard.is_ipi()) {
        Some(sender) => attribution.detail([format!("sent by {sender}")]),
        None => attribution,
    };
    Some(against(attribution, moment, &hard))
}

// A non-maskable interrupt: nothing keeps it away.

pub(super) const NMI: Cause = Cause {
    id: "nmi",
    kind: CauseKind::Interrupt,
    title: "a non-maskable interrupt",
    about: "nmi_handler tells how long a handler took; perf and the hard lockup detector raise \
        them",
    source: "arch/x86/kernel/nmi.c (nmi_handler tells its length)",
    checks: &["perf-tracing-active", "config-lockup-detector"],
    attribute: attribute_nmi,
};

fn attribute_nmi(moment: &Moment<'_>) -> Option<Attribution> {
    let handler = moment.cpu.nmi?;
    let attribution = Attribution::of_culprit(names::function(moment.scene, handler));
    Some(attribution.manual("turn off what raises it: kernel.nmi_watchdog=0, no perf record"))
}

// A task of lower priority could not be preempted.

pub(super) const PREEMPT_OFF: Cause = Cause {
    id: "preempt-off",
    kind: CauseKind::Blocking,
    title: "a task of lower priority, preemption off",
    about: "a task that should give way had been running since before the thread was woken: kernel \
        code with preemption off, or any kernel code where the kernel is not preemptible",
    source: "kernel/sched/core.c (preempt_schedule); measured: the switch, not NEED_RESCHED, tells \
        it from throttling",
    checks: &["preempt-rt", "preempt-dynamic"],
    attribute: attribute_preempt_off,
};

fn attribute_preempt_off(moment: &Moment<'_>) -> Option<Attribution> {
    let below = matches!(order(moment), PriorityOrder::Below | PriorityOrder::UnknownAndHeld);
    let waits = moment.phase == WakeUpPhase::Runnable && moment.cpu.task > 0 && below;
    if !waits || !moment.is_task() || moment.whole_ns() <= path_ns(moment) {
        return None;
    }
    let scene = moment.scene;
    if *moment.interrupted() == Interrupted::User {
        // User mode is preempted at once: the stall's business, unless it left that since.
        return None;
    }
    // Interrupts are on in it, and a CPU that two tasks want has ticks.
    if is_likely(moment) {
        return None;
    }
    let attribution = Attribution::of_culprit(names::task(scene, moment.cpu.task, moment.cpu.prio));
    let attribution = attribution.detail(names::task_detail(scene, moment.cpu.task));
    let stack = match moment.interrupted() {
        Interrupted::Kernel(frames) => Some(format!("in {}", frames.join(" ← "))),
        _ => None,
    };
    let stack = stack.or_else(|| ended_in(moment));
    let is_recorded = stack.is_some() || moment.preempt & 0x0f > 0;
    let owner = match moment.interrupted() {
        Interrupted::Kernel(frames) => frames.iter().find_map(|frame| names::module_of(frame)),
        _ => names::owner(scene, moment.cpu.task),
    };
    let attribution = attribution.detail(stack).owner(owner).manual(
        "a PREEMPT_RT kernel preempts nearly everywhere; there it is the driver or call named \
         here",
    );
    let attribution = match order(moment) {
        PriorityOrder::UnknownAndHeld => attribution.or_causes(&["preempted", "queued"]),
        _ => attribution,
    };
    Some(if is_recorded { attribution } else { attribution.or_causes(&["stall"]) })
}

/// Where preemption came back on: the stack of the switch that ended the wait, where the trace has
/// one (option stacktrace).
fn ended_in(moment: &Moment<'_>) -> Option<String> {
    let scene = moment.scene;
    let switched_ns = scene.switched_ns?;
    let mut after = scene.events(switched_ns, u64::MAX).filter(|e| e.pid == moment.cpu.task);
    let frames = after.find_map(|event| match &event.what {
        EventData::Stack { frames } => Some(frames),
        _ => None,
    })?;
    let names: Vec<&str> = frames.iter().filter_map(|&at| scene.window.symbol(at)).collect();
    let is_scheduler = |name: &&str| name.contains("schedule");
    let below = names.iter().rposition(is_scheduler).map_or(0, |at| at + 1);
    (below < names.len())
        .then(|| format!("preemption came back on in {}", names[below..].join(" ← ")))
}

// A softirq ran, on top of a task or in ksoftirqd.

pub(super) const SOFTIRQ: Cause = Cause {
    id: "softirq",
    kind: CauseKind::Softirq,
    title: "a softirq",
    about: "softirq_entry to softirq_exit was open for the task on the CPU; on PREEMPT_RT only \
        where that task runs ahead of the late one, for a softirq can be preempted there",
    source: "kernel/softirq.c; measured: on PREEMPT_RT a softirq is preemptible and belongs to its \
        task",
    checks: &["irq-affinity", "ksoftirqd-ktimers-prio", "irq-thread-affinity"],
    attribute: attribute_softirq,
};

fn attribute_softirq(moment: &Moment<'_>) -> Option<Attribution> {
    if !moment.is_task() || matches!(moment.phase, WakeUpPhase::TimerLate | WakeUpPhase::Stopped) {
        return None;
    }
    let scene = moment.scene;
    let name = names::comm(scene, moment.cpu.task);
    let is_thread = name.starts_with("ksoftirqd/") || name.starts_with("ktimers/");
    let gives_way = order(moment) == PriorityOrder::Below;
    let vec = match moment.cpu.softirq {
        // A thread of higher priority that happens to run one, or no thread at all under it.
        Some(vec) if !(gives_way && scene.window.surroundings.preempt_rt == Some(true)) => {
            Some(vec)
        }
        _ if is_thread && moment.phase == WakeUpPhase::Runnable && !gives_way => moment.cpu.softirq,
        _ => return None,
    };
    let culprit = vec.map_or_else(|| name.clone(), softirq_name);
    let wheel = moment
        .cpu
        .wheel
        .map(|function| format!("timer function {}", names::function(scene, function)));
    let on = (moment.cpu.task > 0)
        .then(|| format!("in {}", names::task(scene, moment.cpu.task, moment.cpu.prio)));
    let owner = moment.cpu.wheel.and_then(|function| names::module(scene, function));
    Some(Attribution::of_culprit(culprit).detail(on.into_iter().chain(wheel)).owner(owner).manual(
        format!(
            "keep the interrupt that raises it off CPU {} (affinity, RPS), or use PREEMPT_RT with \
         ksoftirqd below the application",
            scene.wake.cpu
        ),
    ))
}

// The timer interrupt itself: timers that expire before the thread's own, and the tick.

/// Functions of the kernel's own that wake a thread or count a tick; drivers' may do anything.
const SHORT: [&str; 3] = ["hrtimer_wakeup", "tick_sched_timer", "tick_nohz_handler"];

/// Longer they are not.
const SHORT_NS: u64 = 1_000_000;

/// The path of the interrupt between the functions of timers is not longer than this.
const QUIET_NS: u64 = 100_000;

pub(super) const TIMER_WORK: Cause = Cause {
    id: "timer-work",
    kind: CauseKind::Interrupt,
    title: "work in the timer interrupt",
    about: "the timer interrupt was on top: functions of other timers that expired with it \
        (hrtimer_expire_entry), the tick, waking other threads",
    source: "kernel/time/hrtimer.c (__hrtimer_run_queues)",
    checks: &["nohz-full", "skew-tick", "app-timer-slack"],
    attribute: attribute_timer_work,
};

fn attribute_timer_work(moment: &Moment<'_>) -> Option<Attribution> {
    moment.cpu.hard.filter(|(hard, _)| hard.is_timer())?;
    let scene = moment.scene;
    let function = moment.cpu.expiring.or_else(|| before(moment));
    let culprit = function.map(|function| names::function(scene, function));
    // Between callbacks there is only the interrupt's own path: much longer, and the CPU
    // stood still.
    let has_timers = scene.coverage.has(EventClass::Timers);
    if culprit.is_none() && moment.whole_ns() > QUIET_NS {
        // Where the functions are not recorded, one of them may have been as long.
        return (!has_timers).then(|| {
            Attribution::of_culprit("a function that was not recorded").or_causes(&["stall"])
        });
    }
    // So is it where a function that is always short was long.
    let is_short = culprit.as_deref().is_some_and(|name| SHORT.contains(&name));
    if is_short && moment.whole_ns() > SHORT_NS {
        return None;
    }
    let mut woken: Vec<String> = scene
        .events(moment.from_ns, moment.to_ns)
        .filter_map(|event| match &event.what {
            EventData::Waking { comm, pid, .. } if *pid != scene.wake.tid => Some(comm.to_string()),
            _ => None,
        })
        .collect();
    woken.sort();
    woken.dedup();
    woken.truncate(8);
    let detail = (!woken.is_empty()).then(|| format!("wakes {}", woken.join(", ")));
    let attribution = Attribution::of_culprit(culprit.unwrap_or_default()).detail(detail);
    let owner = function.and_then(|function| names::module(scene, function));
    Some(attribution.owner(owner))
}

/// The timer before, while the thread's own is still to come: its removal from the queue is part
/// of it.
fn before(moment: &Moment<'_>) -> Option<u64> {
    let (_, begin_ns) = moment.cpu.hard?;
    if moment.phase != WakeUpPhase::Expiry {
        return None;
    }
    moment.scene.events(begin_ns, moment.from_ns).rev().find_map(|event| match &event.what {
        EventData::TimerExpire { function, .. } => Some(*function),
        _ => None,
    })
}
