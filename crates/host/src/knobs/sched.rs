//! Knobs: scheduler, real-time tasks, rights.

use crate::knob::{Compare, Effect, Knob, Rank, Scope, Undo};

table! {
    /// Whether a BPF scheduler runs ordinary tasks.
    SCHED_EXT = Knob::file("sched-ext", "/sys/kernel/sched_ext/state")
        .undone(Undo::UnitState).since(6, 12);

    /// Automatic groups of ordinary tasks, one a session.
    AUTOGROUP = Knob::file("sched-autogroup", "/proc/sys/kernel/sched_autogroup_enabled")
        .or_boot("noautogroup");

    /// Time slice of SCHED_RR in milliseconds.
    RR_TIMESLICE = Knob::file("sched-rr-timeslice", "/proc/sys/kernel/sched_rr_timeslice_ms");

    /// Priority of the kernel's RCU threads.
    RCU_KTHREAD_PRIO = Knob::file("rcu-kthread-prio", "/sys/module/rcutree/parameters/kthread_prio")
        .or_boot("rcutree.kthread_prio={}").at(Effect::Boot).undone(Undo::BootEntry);

    /// Whether a watchdog device is armed: `active` or `inactive`.
    WATCHDOG_STATE = Knob::file("watchdog-state", "/sys/class/watchdog/*/state").of(Scope::Device);

    /// Daemons that feed a hardware watchdog.
    WATCHDOG_DAEMON = Knob::units("watchdog-daemon", &[
        "watchdog.service",
        "watchdogd.service",
        "wd_keepalive.service",
    ]);

    /// The daemon that gives real-time priorities to programs of a desktop session.
    RTKIT = Knob::units("rtkit", &["rtkit-daemon.service"]);

    /// The daemon that runs starved tasks ahead of real-time ones.
    STALLD = Knob::units("stalld", &["stalld.service"]);

    /// Scheduling of the threads of interrupts.
    IRQ_THREADS = Knob::other(
        "irq-threads",
        "policy, priority and CPUs of the kernel's irq/N threads",
    ).of(Scope::Task).undone(Undo::TaskState);

    /// Scheduling of the threads of softirqs and timers.
    SOFTIRQ_THREADS = Knob::other(
        "softirq-threads",
        "policy and priority of ksoftirqd/N and ktimers/N",
    ).of(Scope::Task).undone(Undo::TaskState);

    /// Time of real-time tasks in a period, in µs; -1: no limit.
    RT_RUNTIME = Knob::file("rt-runtime", "/proc/sys/kernel/sched_rt_runtime_us")
        .fact().ranked(Rank::RtThrottling);

    /// Time of the deadline server of ordinary tasks, in ns; 0: off.
    FAIR_SERVER = Knob::file(
        "fair-server-runtime",
        "/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime",
    ).of(Scope::Cpu).fact().ranked(Rank::DeadlineServers);

    /// Time of the deadline server of tasks of a BPF scheduler, in ns; 0: off.
    EXT_SERVER = Knob::file(
        "ext-server-runtime",
        "/sys/kernel/debug/sched/ext_server/cpu{cpu}/runtime",
    ).of(Scope::Cpu).fact().ranked(Rank::DeadlineServers);

    /// Features of the scheduler: a name switches one on, `NO_` before it off.
    FEATURES = Knob::file("scheduler-features", "/sys/kernel/debug/sched/features")
        .fact().compared(Compare::Word);

    /// How readily a process is ended when memory runs short. It is one process's: its number may
    /// be
    /// another's when the value is restored.
    OOM_SCORE_ADJ = Knob::file("oom-score-adj", "/proc/*/oom_score_adj")
        .of(Scope::Task).fact().undone(Undo::ByHand);

    /// Slack of a thread's timers, in ns. See [`OOM_SCORE_ADJ`].
    TIMER_SLACK = Knob::file("timer-slack", "/proc/*/timerslack_ns")
        .of(Scope::Task).fact().undone(Undo::ByHand);

    /// Time of the real-time tasks of a control group (version 1), in µs.
    GROUP_RT_RUNTIME = Knob::group("cgroup-rt-runtime", "cpu.rt_runtime_us of a control group");

    /// CPU time of a control group: quota and period.
    GROUP_QUOTA = Knob::group("cgroup-quota", "cpu.max or cpu.cfs_quota_us of a control group");
}
