//! Knobs: scheduler, real-time tasks, rights.

use crate::knob::{Effect, Knob, Scope, Undo};

/// Whether a BPF scheduler runs ordinary tasks.
pub static SCHED_EXT: Knob =
    Knob::file("sched-ext", "/sys/kernel/sched_ext/state").undone(Undo::UnitState).since(6, 12);

/// Automatic groups of ordinary tasks, one a session.
pub static AUTOGROUP: Knob =
    Knob::file("sched-autogroup", "/proc/sys/kernel/sched_autogroup_enabled")
        .or_boot("noautogroup");

/// Time slice of SCHED_RR in milliseconds.
pub static RR_TIMESLICE: Knob =
    Knob::file("sched-rr-timeslice", "/proc/sys/kernel/sched_rr_timeslice_ms");

/// Priority of the kernel's RCU threads.
pub static RCU_KTHREAD_PRIO: Knob =
    Knob::file("rcu-kthread-prio", "/sys/module/rcutree/parameters/kthread_prio")
        .or_boot("rcutree.kthread_prio={}")
        .at(Effect::Boot)
        .undone(Undo::BootEntry);

/// Whether a watchdog device is armed: `active` or `inactive`.
pub static WATCHDOG_STATE: Knob =
    Knob::file("watchdog-state", "/sys/class/watchdog/*/state").of(Scope::Device);

/// Daemons that feed a hardware watchdog.
pub static WATCHDOG_DAEMON: Knob = Knob::units(
    "watchdog-daemon",
    &["watchdog.service", "watchdogd.service", "wd_keepalive.service"],
);

/// The daemon that gives real-time priorities to programs of a desktop session.
pub static RTKIT: Knob = Knob::units("rtkit", &["rtkit-daemon.service"]);

/// The daemon that runs starved tasks ahead of real-time ones.
pub static STALLD: Knob = Knob::units("stalld", &["stalld.service"]);

/// Scheduling of the threads of interrupts.
pub static IRQ_THREADS: Knob =
    Knob::other("irq-threads", "policy, priority and CPUs of the kernel's irq/N threads")
        .of(Scope::Task)
        .undone(Undo::TaskState);

/// Scheduling of the threads of softirqs and timers.
pub static SOFTIRQ_THREADS: Knob =
    Knob::other("softirq-threads", "policy and priority of ksoftirqd/N and ktimers/N")
        .of(Scope::Task)
        .undone(Undo::TaskState);

/// The table.
pub const KNOBS: &[&Knob] = &[
    &SCHED_EXT,
    &AUTOGROUP,
    &RR_TIMESLICE,
    &RCU_KTHREAD_PRIO,
    &WATCHDOG_STATE,
    &WATCHDOG_DAEMON,
    &RTKIT,
    &STALLD,
    &IRQ_THREADS,
    &SOFTIRQ_THREADS,
];
