//! Knobs: scheduler, real-time tasks, rights.

use crate::{
    compare::Compare,
    knob::{Effect, Knob, Rank, Scope, Undo},
};

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

/// Time of real-time tasks in a period, in µs; -1: no limit.
pub static RT_RUNTIME: Knob = Knob::file("rt-runtime", "/proc/sys/kernel/sched_rt_runtime_us")
    .fact()
    .ranked(Rank::RtThrottling);

/// Time of the deadline server of ordinary tasks, in ns; 0: off.
pub static FAIR_SERVER: Knob =
    Knob::file("fair-server-runtime", "/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime")
        .of(Scope::Cpu)
        .fact()
        .ranked(Rank::DeadlineServers);

/// Time of the deadline server of tasks of a BPF scheduler, in ns; 0: off.
pub static EXT_SERVER: Knob =
    Knob::file("ext-server-runtime", "/sys/kernel/debug/sched/ext_server/cpu{cpu}/runtime")
        .of(Scope::Cpu)
        .fact()
        .ranked(Rank::DeadlineServers);

/// Features of the scheduler: a name switches one on, `NO_` before it off.
pub static FEATURES: Knob = Knob::file("scheduler-features", "/sys/kernel/debug/sched/features")
    .fact()
    .compared(Compare::Word);

/// How readily a process is ended when memory runs short. It is one process's: its number may be
/// another's when the value is restored.
pub static OOM_SCORE_ADJ: Knob = Knob::file("oom-score-adj", "/proc/*/oom_score_adj")
    .of(Scope::Task)
    .fact()
    .undone(Undo::ByHand);

/// Slack of a thread's timers, in ns. See [`OOM_SCORE_ADJ`].
pub static TIMER_SLACK: Knob =
    Knob::file("timer-slack", "/proc/*/timerslack_ns").of(Scope::Task).fact().undone(Undo::ByHand);

/// Time of the real-time tasks of a control group (version 1), in µs.
pub static GROUP_RT_RUNTIME: Knob =
    Knob::group("cgroup-rt-runtime", "cpu.rt_runtime_us of a control group");

/// CPU time of a control group: quota and period.
pub static GROUP_QUOTA: Knob =
    Knob::group("cgroup-quota", "cpu.max or cpu.cfs_quota_us of a control group");

/// The table.
pub const KNOBS: &[&Knob] = &[
    &RT_RUNTIME,
    &FAIR_SERVER,
    &EXT_SERVER,
    &FEATURES,
    &OOM_SCORE_ADJ,
    &TIMER_SLACK,
    &GROUP_RT_RUNTIME,
    &GROUP_QUOTA,
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
