//! Knobs: watchdogs, timers, machine checks, clocks.

use crate::knob::{Arch, Compare, Cpus, Knob, Rank, Scope};

table! {
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
        .compared(Compare::CpuList).cpus(Cpus::Placed);

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
    ).or_boot("mce=ignore_ce").on(Arch::X86).risky(super::names::MCE_RISK);

    /// The interrupt for corrected errors off.
    MCE_CMCI_DISABLED = Knob::file(
        "mce-cmci-disabled",
        "/sys/devices/system/machinecheck/machinecheck0/cmci_disabled",
    ).or_boot("mce=no_cmci").on(Arch::X86).risky(super::names::MCE_RISK);

    /// Longest seconds between two polls for corrected errors; 0: never.
    MCE_CHECK_INTERVAL = Knob::file(
        "mce-check-interval",
        "/sys/devices/system/machinecheck/machinecheck0/check_interval",
    ).on(Arch::X86).risky(super::names::MCE_RISK);

    /// Bytes a second that a memory controller scrubs by itself.
    MEM_SCRUB = Knob::file("mem-scrub", "/sys/devices/system/edac/mc/mc*/sdram_scrub_rate")
        .of(Scope::Device);

    /// What the kernel believes of the TSC.
    TSC = Knob::parameter("tsc-watchdog", "tsc").on(Arch::X86);

    /// The timer of each CPU.
    CLOCKEVENT = Knob::file(
        "clockevent",
        "/sys/devices/system/clockevents/clockevent{cpu}/current_device",
    ).of(Scope::Cpu);

    /// Whether a program that locks the bus has to wait.
    SPLIT_LOCK = Knob::file("split-lock", "/proc/sys/kernel/split_lock_mitigate").on(Arch::X86);

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
