//! Kernel traces of the live machine: an instance of tracefs of our own, and nothing beside it.
//!
//! An instance (Documentation/trace/ftrace.rst, "Instances") has its own ring, clock, events and
//! triggers, so that whatever else is traced on the machine goes on as it was. Every write goes
//! below the instance's own folder; removing that folder undoes all of them.

mod globals;
mod instance;
#[cfg(test)]
mod tests;
mod tracer;

pub use globals::{Monitors, shown_path};
pub use instance::{Instance, RingSizes, RingStats, TracerRequest};
pub use tracer::{Tracer, has_event};

use std::{fmt, io};

use crate::reading::ReadingState;
use crate::{Reading, Root};

/// Where tracefs is mounted; before Linux 4.1 and on old systems inside debugfs.
const FOLDERS: &[&str] = &[globals::TRACEFS, "/sys/kernel/debug/tracing"];

/// Why the kernel's events cannot be recorded.
#[derive(Debug, thiserror::Error)]
pub enum TracefsError {
    /// A captured machine has no events.
    #[error("kernel events are recorded on a live machine only, not of a captured one")]
    NotLive,
    /// It is not mounted.
    #[error(
        "tracefs is not mounted: no kernel events; mount it with \
         `mount -t tracefs tracefs /sys/kernel/tracing`"
    )]
    NotMounted,
    /// A container has none, and may not mount it.
    #[error(
        "tracefs is not mounted in this container ({name}): no kernel events; bind the host's \
         /sys/kernel/tracing to the same place, and share the host's PID namespace"
    )]
    NotInContainer { name: String },
    /// The kernel has none.
    #[error(
        "{}: is not there: this kernel was built without event tracing (CONFIG_EVENT_TRACING)",
        FOLDERS[0]
    )]
    NoKernel,
    /// It may not be read.
    #[error("{path}: {why}")]
    Refused {
        path: String,
        /// Why, and the reason behind it.
        why: String,
    },
    /// The kernel lacks a tracer.
    #[error(
        "this kernel has no tracer `{tracer}`: it was built without {}; available_tracers: \
         {available}",
        build_options(tracer)
    )]
    NoTracer {
        tracer: &'static str,
        /// Those that it has.
        available: String,
    },
}

/// The folder of tracefs that can be used; where it is not mounted, one that this process alone
/// sees.
fn find_or_mount(root: &Root) -> Result<&'static str, TracefsError> {
    let found = find_mount(root);
    match found {
        Err(TracefsError::NotMounted) => {
            let own = globals::TracefsMount::own().map(globals::TracefsMount::path);
            own.filter(|own| usable(root, own).is_ok()).ok_or_else(|| {
                let container = crate::facts::virt::Virt::container(root);
                container
                    .map_or(TracefsError::NotMounted, |name| TracefsError::NotInContainer { name })
            })
        }
        found => found,
    }
}

/// The `format` file of an event, e.g. of `raw_syscalls/sys_enter`: its number and its fields.
///
/// # Errors
/// There is no tracefs, or no such event: why.
pub fn event_format(root: &Root, event: &str) -> Result<String, TracefsError> {
    let folder = find_or_mount(root)?;
    let text = root.read_text(&format!("{folder}/events/{event}/format"));
    text.value().cloned().ok_or_else(|| refused(&text))
}

/// The folder of tracefs that is mounted and can be used.
fn find_mount(root: &Root) -> Result<&'static str, TracefsError> {
    if !root.is_live() {
        return Err(TracefsError::NotLive);
    }
    let mut error = None;
    for folder in FOLDERS {
        match usable(root, folder) {
            Ok(()) => return Ok(folder),
            // The first refusal says more than that the other place is not there.
            Err(other) => match error {
                None | Some(TracefsError::NoKernel) => error = Some(other),
                Some(_) => {}
            },
        }
    }
    Err(error.unwrap_or(TracefsError::NoKernel))
}

fn usable(root: &Root, folder: &str) -> Result<(), TracefsError> {
    let names = root.list_dir(folder);
    match &names.state {
        ReadingState::Known { value } if value.is_empty() => Err(TracefsError::NotMounted),
        ReadingState::Known { value } if !value.iter().any(|name| name == "instances") => {
            Err(TracefsError::Refused {
                path: format!("{folder}/instances"),
                why: "is not there: this kernel cannot record beside another tracer (it needs \
                      Linux 3.10)"
                    .into(),
            })
        }
        ReadingState::Known { .. } => listed(root, &format!("{folder}/instances")),
        ReadingState::Absent => Err(TracefsError::NoKernel),
        _ => Err(refused(&names)),
    }
}

fn listed(root: &Root, folder: &str) -> Result<(), TracefsError> {
    let names = root.list_dir(folder);
    match names.value() {
        Some(_) => Ok(()),
        None => Err(refused(&names)),
    }
}

fn refused<T>(reading: &Reading<T>) -> TracefsError {
    let why = match &reading.state {
        ReadingState::Absent => "is not there".into(),
        ReadingState::Denied { why } => why.clone(),
        ReadingState::Malformed { found, expected } => format!("holds `{found}`, not {expected}"),
        ReadingState::Known { .. } => "cannot be used".into(),
    };
    TracefsError::Refused { path: shown_path(&reading.path), why }
}

/// The same words for a refused write as for a refused read: with lockdown, container, rights.
fn refused_io(root: &Root, path: &str, error: io::Error) -> TracefsError {
    refused(&root.refused::<()>(path, &error.into()))
}

/// Adds to a refusal of another kind.
fn why(error: &TracefsError) -> String {
    match error {
        TracefsError::Refused { why, .. } => why.clone(),
        other => other.to_string(),
    }
}

// The kernel's tracers that rtproof drives: what builds each into a kernel, what it keeps, and
// which of them cannot run beside it.

/// What a tracer keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// The longest latency alone, in a buffer of its own (kernel/trace/trace_sched_wakeup.c,
    /// trace_irqsoff.c).
    Longest,
    /// The last calls, as many as the ring holds: they come faster than they can be read.
    Last,
    /// Lines that can be read as they come.
    Lines,
}

/// A tracer of the kernel that rtproof can run.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Name, as in `available_tracers`.
    pub name: &'static str,
    /// Build options that it needs.
    pub options: &'static str,
    pub keeps: Keeps,
    /// Resource shared with other tracers: only one of them can run at a time.
    family: &'static str,
    /// Whether it uses `tracing_thresh`, which the whole machine shares.
    has_threshold: bool,
}

const fn known(
    name: &'static str,
    options: &'static str,
    keeps: Keeps,
    family: &'static str,
    has_threshold: bool,
) -> Known {
    Known { name, options, keeps, family, has_threshold }
}

const SCHED: &str = "CONFIG_SCHED_TRACER";

const BOTH: &str = "CONFIG_IRQSOFF_TRACER and CONFIG_PREEMPT_TRACER";

pub const KNOWN: &[Known] = &[
    known("wakeup", SCHED, Keeps::Longest, "wakeup", true),
    known("wakeup_rt", SCHED, Keeps::Longest, "wakeup", true),
    known("wakeup_dl", SCHED, Keeps::Longest, "wakeup", true),
    known("irqsoff", "CONFIG_IRQSOFF_TRACER", Keeps::Longest, "off", true),
    known("preemptoff", "CONFIG_PREEMPT_TRACER", Keeps::Longest, "off", true),
    known("preemptirqsoff", BOTH, Keeps::Longest, "off", true),
    known("function", "CONFIG_FUNCTION_TRACER", Keeps::Last, "", false),
    known("function_graph", "CONFIG_FUNCTION_GRAPH_TRACER", Keeps::Last, "", true),
    known("hwlat", "CONFIG_HWLAT_TRACER", Keeps::Lines, "hwlat", true),
    known("osnoise", "CONFIG_OSNOISE_TRACER", Keeps::Lines, "osnoise", true),
    known("timerlat", "CONFIG_TIMERLAT_TRACER", Keeps::Lines, "osnoise", false),
    known("nop", "CONFIG_TRACING", Keeps::Lines, "", false),
];

/// The tracer of a name.
pub fn find_tracer(name: &str) -> Option<&'static Known> {
    KNOWN.iter().find(|known| known.name == name)
}

/// The build options of a tracer.
fn build_options(name: &str) -> &'static str {
    find_tracer(name).map_or("CONFIG_TRACING", |known| known.options)
}

/// Whether two tracers share threads or a state of which the kernel has one.
fn exclude_each_other(one: &str, other: &str) -> bool {
    let family =
        |name| find_tracer(name).map(|known| known.family).filter(|family| !family.is_empty());
    family(one).is_some() && family(one) == family(other)
}

/// Whether a tracer uses `tracing_thresh`.
fn has_threshold(name: &str) -> bool {
    find_tracer(name).is_some_and(|known| known.has_threshold)
}

// The events that are recorded, and what cannot be distinguished without each.

/// An event, or the two that begin and end the same thing.
#[derive(Clone, Copy, Debug)]
pub struct WantedEvents {
    /// Names, `system:event`.
    pub events: &'static [&'static str],
    /// What cannot be known without them.
    pub without: &'static str,
    /// What a kernel has that has no such event.
    pub if_missing: IfMissing,
}

/// What the absence of an event means.
#[derive(Clone, Copy, Debug)]
pub enum IfMissing {
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

const fn event(events: &'static [&'static str], without: &'static str) -> WantedEvents {
    WantedEvents { events, without, if_missing: IfMissing::Nothing }
}

/// An interrupt with an event of its own on x86; elsewhere it is one like others.
const fn vector(events: &'static [&'static str]) -> WantedEvents {
    const WITHOUT: &str = "time in this interrupt is counted as time of the task below it";
    WantedEvents { events, without: WITHOUT, if_missing: IfMissing::Event(IRQ) }
}

/// An interrupt that kernels have whose hardware has it.
const fn rare(events: &'static [&'static str]) -> WantedEvents {
    const WITHOUT: &str = "time in this interrupt is counted as time of the task below it";
    WantedEvents { events, without: WITHOUT, if_missing: IfMissing::NoSuchThing }
}

/// All events that are recorded. Those of `preemptirq` are not among them: a kernel that has them
/// writes one each time anything turns interrupts or preemption off, millions a second.
pub const WANTED: &[WantedEvents] = &[
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
const OWN: &str = "ftrace";

/// Those of them that are read.
const OWN_FORMATS: &[&str] = &["kernel_stack"];

/// Events with a pointer to a text of the kernel.
const POINTING: &[&str] = &[IPI, "ipi:ipi_raise"];

/// Events that mark the timer interrupt, best first, each with the filter that makes it so:
/// where the stack of what was interrupted is taken.
const TIMER_IRQS: &[(&str, &str)] = &[
    (TIMER_IRQ, ""),
    // Arm and RISC-V: drivers/clocksource/arm_arch_timer.c, timer-riscv.c.
    (IRQ, " if name == \"arch_timer\" || name == \"riscv-timer\""),
    ("timer:hrtimer_expire_entry", ""),
];

#[cfg(test)]
mod catalogue_tests {
    use super::*;

    #[test]
    fn one_of_a_kind_runs_at_a_time() {
        assert!(exclude_each_other("wakeup_rt", "wakeup_dl"));
        assert!(exclude_each_other("timerlat", "osnoise"));
        assert!(exclude_each_other("hwlat", "hwlat"));
        for (one, other) in [("nop", "nop"), ("function", "function"), ("nop", "timerlat")] {
            assert!(!exclude_each_other(one, other), "{one} {other}");
        }
        assert!(!exclude_each_other("wakeup_rt", "irqsoff"));
        assert!(!exclude_each_other("blk", "blk"), "not one of ours");
    }
}

#[cfg(test)]
mod events_tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_event_is_listed_once_with_its_purpose() {
        let names: Vec<&str> = WANTED.iter().flat_map(|wanted| wanted.events).copied().collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for wanted in WANTED {
            assert!(wanted.events.iter().all(|name| name.split(':').count() == 2));
            assert!(!wanted.without.is_empty() && !wanted.without.ends_with('.'));
            if let IfMissing::Event(instead) = wanted.if_missing {
                assert!(names.contains(&instead), "{instead} is recorded");
            }
        }
        for (event, _) in TIMER_IRQS {
            assert!(names.contains(event));
        }
    }
}
