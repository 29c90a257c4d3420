//! The events that are recorded, and what cannot be distinguished without each.

use std::fmt;

/// An event, or the two that begin and end the same thing.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Names, `system:event`.
    pub events: &'static [&'static str],
    /// What cannot be known without them.
    pub without: &'static str,
    /// What a kernel has that has no such event.
    pub or: Or,
}

/// What the absence of an event means.
#[derive(Clone, Copy, Debug)]
pub enum Or {
    /// Something cannot be known.
    Nothing,
    /// Another event says the same: nothing is missing where the kernel has it.
    Event(&'static str),
    /// A kernel without the event has no such thing either.
    NoSuchThing,
}

/// An event that this machine lacks or refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Name, `system:event`.
    pub event: &'static str,
    /// Why: not in this kernel, or the refusal.
    pub why: String,
    /// What cannot be known without it.
    pub without: &'static str,
}

impl fmt::Display for Missing {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {}: {}", self.event, self.why, self.without)
    }
}

const TIMER_IRQ: &str = "irq_vectors:local_timer_entry";
const IRQ: &str = "irq:irq_handler_entry";
const IPI: &str = "ipi:ipi_entry";

const fn event(events: &'static [&'static str], without: &'static str) -> Wanted {
    Wanted { events, without, or: Or::Nothing }
}

/// An interrupt with an event of its own on x86; elsewhere it is one like others.
const fn vector(events: &'static [&'static str]) -> Wanted {
    const WITHOUT: &str = "time in this interrupt is counted as time of the task below it";
    Wanted { events, without: WITHOUT, or: Or::Event(IRQ) }
}

/// An interrupt that kernels have whose hardware has it.
const fn rare(events: &'static [&'static str]) -> Wanted {
    const WITHOUT: &str = "time in this interrupt is counted as time of the task below it";
    Wanted { events, without: WITHOUT, or: Or::NoSuchThing }
}

/// All events that are recorded. Those of `preemptirq` are not among them: a kernel that has them
/// writes one each time anything turns interrupts or preemption off, millions a second.
pub const WANTED: &[Wanted] = &[
    event(&["sched:sched_switch"], "the running tasks are unknown"),
    event(
        &["sched:sched_waking"],
        "a late timer cannot be distinguished from a wait for the CPU, and wakers are unknown",
    ),
    event(
        &["sched:sched_wakeup", "sched:sched_wakeup_new"],
        "the path of a wake-up from CPU to CPU cannot be distinguished from waiting for the CPU",
    ),
    event(&["sched:sched_migrate_task"], "moves of tasks between CPUs are unknown"),
    event(&["sched:sched_pi_setprio"], "a task with an inherited priority looks like a lower one"),
    event(&["timer:hrtimer_start"], "when a task of another program should have run is unknown"),
    event(
        &["timer:hrtimer_expire_entry", "timer:hrtimer_expire_exit"],
        "the timers that were served first cannot be distinguished from the timer interrupt itself",
    ),
    event(
        &["timer:timer_expire_entry", "timer:timer_expire_exit"],
        "the function of a long timer softirq is unknown",
    ),
    vector(&[TIMER_IRQ, "irq_vectors:local_timer_exit"]),
    vector(&["irq_vectors:reschedule_entry", "irq_vectors:reschedule_exit"]),
    vector(&["irq_vectors:call_function_entry", "irq_vectors:call_function_exit"]),
    vector(&["irq_vectors:call_function_single_entry", "irq_vectors:call_function_single_exit"]),
    vector(&["irq_vectors:irq_work_entry", "irq_vectors:irq_work_exit"]),
    rare(&["irq_vectors:thermal_apic_entry", "irq_vectors:thermal_apic_exit"]),
    rare(&["irq_vectors:threshold_apic_entry", "irq_vectors:threshold_apic_exit"]),
    rare(&["irq_vectors:deferred_error_apic_entry", "irq_vectors:deferred_error_apic_exit"]),
    rare(&["irq_vectors:error_apic_entry", "irq_vectors:error_apic_exit"]),
    rare(&["irq_vectors:spurious_apic_entry", "irq_vectors:spurious_apic_exit"]),
    rare(&["irq_vectors:x86_platform_ipi_entry", "irq_vectors:x86_platform_ipi_exit"]),
    event(
        &[IRQ, "irq:irq_handler_exit"],
        "time in device interrupts is counted as time of the task below them",
    ),
    event(
        &["irq:softirq_entry", "irq:softirq_exit"],
        "time in softirqs is counted as time of the task below them",
    ),
    event(&["irq:softirq_raise"], "who caused a softirq is unknown"),
    rare(&[IPI, "ipi:ipi_exit"]),
    rare(&["ipi:ipi_raise"]),
    event(
        &["ipi:ipi_send_cpu", "ipi:ipi_send_cpumask"],
        "who sent an interrupt from another CPU is unknown (Linux 6.4 and later report it)",
    ),
    rare(&["nmi:nmi_handler"]),
    event(
        &["power:cpu_idle"],
        "waking from an idle state cannot be distinguished from other time of the idle task",
    ),
    event(&["power:cpu_frequency"], "changes of frequency are unknown"),
    event(
        &["workqueue:workqueue_execute_start", "workqueue:workqueue_execute_end"],
        "what a kworker works on is unknown",
    ),
    event(
        &["exceptions:page_fault_user", "exceptions:page_fault_kernel"],
        "page faults of the late task cannot be distinguished from its own work",
    ),
    event(&["signal:signal_generate"], "who signalled a task is unknown"),
    event(
        &["cpuhp:cpuhp_enter", "cpuhp:cpuhp_multi_enter"],
        "a CPU that goes or comes cannot be distinguished from other stops",
    ),
];

/// System of the entries that the kernel writes by itself.
pub(super) const OWN: &str = "ftrace";
/// Those of them that are read.
pub(super) const OWN_FORMATS: &[&str] = &["kernel_stack"];

/// Events with a pointer to a text of the kernel.
pub(super) const POINTING: &[&str] = &[IPI, "ipi:ipi_raise"];

/// Events that mark the timer interrupt, best first, each with the filter that makes it so:
/// where the stack of what was interrupted is taken.
pub(super) const TIMER_IRQS: &[(&str, &str)] = &[
    (TIMER_IRQ, ""),
    // Arm and RISC-V: drivers/clocksource/arm_arch_timer.c, timer-riscv.c.
    (IRQ, " if name == \"arch_timer\" || name == \"riscv-timer\""),
    ("timer:hrtimer_expire_entry", ""),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_event_is_named_once_and_what_it_is_for_is_said() {
        let names: Vec<&str> = WANTED.iter().flat_map(|wanted| wanted.events).copied().collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for wanted in WANTED {
            assert!(wanted.events.iter().all(|name| name.split(':').count() == 2));
            assert!(!wanted.without.is_empty() && !wanted.without.ends_with('.'));
            if let Or::Event(instead) = wanted.or {
                assert!(names.contains(&instead), "{instead} is recorded");
            }
        }
        for (event, _) in TIMER_IRQS {
            assert!(names.contains(event));
        }
    }
}
