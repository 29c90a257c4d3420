//! Knobs: isolation, memory and file systems, scheduler and rights, time.

use crate::knob::{Compare, CpuPlacement, EffectTime, Knob, KnobArch, KnobKind, Rank, Scope, Undo};

table! {
    ISOLATION:

    /// Expedited grace periods of RCU turned into normal ones.
    RCU_NORMAL = Knob::file("rcu-normal-after-boot", "/sys/kernel/rcu_normal")
        .or_boot("rcupdate.rcu_normal_after_boot={}");

    /// Milliseconds that RCU leaves tickless CPUs alone (6.11, and kernels that took it over).
    RCU_PATIENCE = Knob::file(
        "rcu-patience",
        "/sys/module/rcutree/parameters/nohz_full_patience_delay",
    ).at(EffectTime::Boot).or_boot("rcutree.nohz_full_patience_delay={}");

    /// Unbound work in place of some work that is bound to a CPU.
    POWER_EFFICIENT = Knob::file(
        "wq-power-efficient",
        "/sys/module/workqueue/parameters/power_efficient",
    ).at(EffectTime::Boot).or_boot("workqueue.power_efficient={}");

    /// Mask of the unbound workers.
    WORKQUEUE_CPUMASK = Knob::file("workqueue-cpumask", "/sys/devices/virtual/workqueue/cpumask")
        .or_boot("workqueue.unbound_cpus={}").workers();

    /// Mask of the workers that write dirty pages back.
    WRITEBACK_CPUMASK = Knob::file(
        "writeback-cpumask",
        "/sys/devices/virtual/workqueue/writeback/cpumask",
    ).couples(&["workqueue-cpumask"]).workers();

    /// kernel.timer_migration.
    TIMER_MIGRATION = Knob::file("timer-migration", "/proc/sys/kernel/timer_migration");

    /// Probes in the kernel's code, for root only.
    KPROBES = Knob::file("text-poke-activity", "/sys/kernel/debug/kprobes/list").counter();

    /// The daemon that keeps network time stamps switched on.
    ENTSK = Knob::units("static-key-ipis", &["realtime-entsk.service"]).of(Scope::Unit);

    /// CPUs of an interrupt.
    IRQ_CPUS = Knob::file("irq-cpus", "/proc/irq/*/smp_affinity_list")
        .of(Scope::Irq).fact().kind(KnobKind::Irq);

    /// CPUs of interrupts that are requested later.
    IRQ_DEFAULT = Knob::file("irq-default-cpus", "/proc/irq/default_smp_affinity")
        .fact().compared(Compare::CpuMask).cpus(CpuPlacement::Placed).ranked(Rank::IrqDefault);

    GROUP = Knob::group("cgroup", "a control group").ranked(Rank::GroupFolders);

    /// Controllers that a control group passes to its children.
    GROUP_CONTROLLERS = Knob::group(
        "cgroup-controllers",
        "cgroup.subtree_control of a control group",
    ).compared(Compare::Controller).ranked(Rank::GroupControllers);

    /// CPUs of a control group.
    GROUP_CPUS = Knob::group("cgroup-cpus", "cpuset.cpus of a control group")
        .compared(Compare::CpuList).cpus(CpuPlacement::Placed).ranked(Rank::GroupCpus);

    /// Whether a control group has its CPUs for itself.
    GROUP_PARTITION = Knob::group("cgroup-partition", "cpuset.cpus.partition of a control group")
        .compared(Compare::Text).cpus(CpuPlacement::Placed).ranked(Rank::GroupPartitions);
}

table! {
    MEMORY:

    /// Transparent huge pages. Writing it recomputes vm.min_free_kbytes.
    THP = Knob::choice("thp", "/sys/kernel/mm/transparent_hugepage/enabled")
        .or_boot("transparent_hugepage={}").couples(&["min-free"]).ranked(Rank::HugePages);

    /// What a page fault does to get one.
    THP_DEFRAG = Knob::choice("thp-defrag", "/sys/kernel/mm/transparent_hugepage/defrag")
        .ranked(Rank::HugePages);

    /// Transparent huge pages of shared memory and tmpfs.
    THP_SHMEM = Knob::choice("thp-shmem", "/sys/kernel/mm/transparent_hugepage/shmem_enabled")
        .couples(&["min-free"]).ranked(Rank::HugePages);

    /// Transparent huge pages of one size.
    THP_SIZES = Knob::choice("thp-sizes", "/sys/kernel/mm/transparent_hugepage/hugepages-*/enabled")
        .of(Scope::Device).couples(&["min-free"]).ranked(Rank::HugePages);

    /// Whether khugepaged may compact memory.
    KHUGEPAGED = Knob::file("khugepaged", "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag")
        .ranked(Rank::HugePages);

    /// Merging of equal pages. 2 gives merged pages their own copies back, and cannot be undone.
    KSM = Knob::file("ksm", "/sys/kernel/mm/ksm/run");

    /// Balancing of memory between nodes.
    NUMA_BALANCING = Knob::file("numa-balancing", "/proc/sys/kernel/numa_balancing")
        .or_boot("numa_balancing=disable");

    /// Compaction before anybody asks for it.
    COMPACTION_PROACTIVE = Knob::file(
        "compaction-proactive",
        "/proc/sys/vm/compaction_proactiveness",
    ).since(5, 9);

    /// Compaction of locked pages.
    COMPACTION_UNEVICTABLE = Knob::file(
        "compaction-unevictable",
        "/proc/sys/vm/compact_unevictable_allowed",
    );

    SWAPPINESS = Knob::file("swappiness", "/proc/sys/vm/swappiness");

    /// Seconds between two updates of the counters of each CPU.
    STAT_INTERVAL = Knob::file("stat-interval", "/proc/sys/vm/stat_interval");

    /// Dirty pages, percent of what can be, at which a writer has to wait.
    DIRTY_RATIO = Knob::file("dirty-ratio", "/proc/sys/vm/dirty_ratio").couples(&["dirty-bytes"]);

    /// The same in bytes; of the two, the one that is not 0 counts.
    DIRTY_BYTES = Knob::file("dirty-bytes", "/proc/sys/vm/dirty_bytes").couples(&["dirty-ratio"]);

    /// Dirty pages, percent of what can be, at which the kernel starts to write.
    DIRTY_BACKGROUND_RATIO = Knob::file(
        "dirty-background-ratio",
        "/proc/sys/vm/dirty_background_ratio",
    ).couples(&["dirty-background-bytes"]);

    /// The same in bytes.
    DIRTY_BACKGROUND_BYTES = Knob::file(
        "dirty-background-bytes",
        "/proc/sys/vm/dirty_background_bytes",
    ).couples(&["dirty-background-ratio"]);

    MIN_FREE = Knob::file("min-free", "/proc/sys/vm/min_free_kbytes");

    /// Reclaim on a node before memory of another is used.
    ZONE_RECLAIM = Knob::file("zone-reclaim", "/proc/sys/vm/zone_reclaim_mode");

    /// Parts of the multi-gen LRU that are on, as bits.
    LRU_GEN = Knob::file("lru-gen", "/sys/kernel/mm/lru_gen/enabled").since(6, 1);

    /// Objects on each CPU's list of partial slabs: of the caches behind kmalloc alone, since a
    /// machine has hundreds of caches and each is a file.
    SLUB_PARTIALS = Knob::file("slub-partials", "/sys/kernel/slab/kmalloc-*/cpu_partial")
        .of(Scope::Device);

    /// Huge pages reserved on each node, or on a machine without nodes.
    HUGEPAGES = Knob::file(
        "hugepages",
        "/sys/devices/system/node/node*/hugepages/hugepages-*/nr_hugepages | \
         /sys/kernel/mm/hugepages/hugepages-*/nr_hugepages",
    ).of(Scope::Device);

    /// Huge pages that may be made when the reserved ones are used up.
    HUGEPAGES_OVERCOMMIT = Knob::file(
        "hugepages-overcommit",
        "/sys/kernel/mm/hugepages/hugepages-*/nr_overcommit_hugepages",
    ).of(Scope::Device);

    /// Parts of the cache for groups of CPUs.
    RESCTRL = Knob::other("resctrl-cat", "groups of /sys/fs/resctrl");
}

table! {
    SCHED:

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
        .or_boot("rcutree.kthread_prio={}").at(EffectTime::Boot).undone(Undo::BootEntry);

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

table! {
    TIME:

    /// Both lockup detectors at once; reads 1 while one of them runs.
    WATCHDOG = Knob::file("watchdog", "/proc/sys/kernel/watchdog")
        .or_boot("nowatchdog").couples(&["nmi-watchdog", "soft-watchdog"]).ranked(Rank::Watchdogs);

    /// The hard lockup detector.
    NMI_WATCHDOG = Knob::file("nmi-watchdog", "/proc/sys/kernel/nmi_watchdog")
        .or_boot("nmi_watchdog={}").couples(&["watchdog"]);

    /// The soft lockup detector.
    SOFT_WATCHDOG = Knob::file("soft-watchdog", "/proc/sys/kernel/soft_watchdog")
        .or_boot("nosoftlockup").couples(&["watchdog"]);

    /// CPUs that the detectors watch: a list, in spite of its name.
    WATCHDOG_CPUMASK = Knob::file("watchdog-cpumask", "/proc/sys/kernel/watchdog_cpumask")
        .compared(Compare::CpuList).cpus(CpuPlacement::Placed);

    /// Seconds after which a task that waits is reported.
    HUNG_TASK = Knob::file("hung-task", "/proc/sys/kernel/hung_task_timeout_secs");

    /// Seconds between two looks for such tasks; 0: the timeout.
    HUNG_TASK_INTERVAL = Knob::file(
        "hung-task-interval",
        "/proc/sys/kernel/hung_task_check_interval_secs",
    );

    /// Backtraces of every CPU at a soft lockup.
    SOFTLOCKUP_BACKTRACE = Knob::file(
        "softlockup-backtrace",
        "/proc/sys/kernel/softlockup_all_cpu_backtrace",
    );

    /// Backtraces of every CPU at a hard lockup.
    HARDLOCKUP_BACKTRACE = Knob::file(
        "hardlockup-backtrace",
        "/proc/sys/kernel/hardlockup_all_cpu_backtrace",
    );

    /// Backtraces of every CPU at a hung task.
    HUNG_TASK_BACKTRACE = Knob::file(
        "hung-task-backtrace",
        "/proc/sys/kernel/hung_task_all_cpu_backtrace",
    );

    /// Reports of RCU stalls left out.
    RCU_STALL = Knob::file(
        "rcu-stall-spew",
        "/sys/module/rcupdate/parameters/rcu_cpu_stall_suppress",
    ).or_boot("rcupdate.rcu_cpu_stall_suppress={}");

    // Each CPU has a folder of machine checks, but these three values are the kernel's: every
    // folder shows and sets the same (arch/x86/kernel/cpu/mce/core.c).

    /// Corrected errors ignored: neither polled nor interrupting.
    MCE_IGNORE_CE = Knob::file(
        "mce-ignore-ce",
        "/sys/devices/system/machinecheck/machinecheck0/ignore_ce",
    ).or_boot("mce=ignore_ce").on(KnobArch::X86).risky(super::MCE_RISK);

    /// The interrupt for corrected errors off.
    MCE_CMCI_DISABLED = Knob::file(
        "mce-cmci-disabled",
        "/sys/devices/system/machinecheck/machinecheck0/cmci_disabled",
    ).or_boot("mce=no_cmci").on(KnobArch::X86).risky(super::MCE_RISK);

    /// Longest seconds between two polls for corrected errors; 0: never.
    MCE_CHECK_INTERVAL = Knob::file(
        "mce-check-interval",
        "/sys/devices/system/machinecheck/machinecheck0/check_interval",
    ).on(KnobArch::X86).risky(super::MCE_RISK);

    /// Bytes a second that a memory controller scrubs by itself.
    MEM_SCRUB = Knob::file("mem-scrub", "/sys/devices/system/edac/mc/mc*/sdram_scrub_rate")
        .of(Scope::Device);

    /// What the kernel believes of the TSC.
    TSC = Knob::parameter("tsc-watchdog", "tsc").on(KnobArch::X86);

    /// The timer of each CPU.
    CLOCKEVENT = Knob::file(
        "clockevent",
        "/sys/devices/system/clockevents/clockevent{cpu}/current_device",
    ).of(Scope::Cpu);

    /// Whether a program that locks the bus has to wait.
    SPLIT_LOCK = Knob::file("split-lock", "/proc/sys/kernel/split_lock_mitigate").on(KnobArch::X86);

    /// Units that set the time of day.
    NTP = Knob::units("ntp-steps", &[
        "chrony.service",
        "chronyd.service",
        "ntp.service",
        "ntpd.service",
        "ntpsec.service",
        "openntpd.service",
        "systemd-timesyncd.service",
    ]);

    /// Clock that the kernel reads.
    CLOCKSOURCE = Knob::file(
        "clocksource-current",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    ).fact();
}
