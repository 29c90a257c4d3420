//! Knobs: watchdogs, timers, machine checks, clocks.

use crate::{
    compare::Compare,
    knob::{Arch, Cpus, Knob, Rank, Scope},
};

/// Both lockup detectors at once; reads 1 while one of them runs.
pub static WATCHDOG: Knob = Knob::file("watchdog", "/proc/sys/kernel/watchdog")
    .or_boot("nowatchdog")
    .couples(&["nmi-watchdog", "soft-watchdog"])
    .ranked(Rank::Watchdogs);

/// The hard lockup detector.
pub static NMI_WATCHDOG: Knob = Knob::file("nmi-watchdog", "/proc/sys/kernel/nmi_watchdog")
    .or_boot("nmi_watchdog={}")
    .couples(&["watchdog"]);

/// The soft lockup detector.
pub static SOFT_WATCHDOG: Knob = Knob::file("soft-watchdog", "/proc/sys/kernel/soft_watchdog")
    .or_boot("nosoftlockup")
    .couples(&["watchdog"]);

/// CPUs that the detectors watch: a list, in spite of its name.
pub static WATCHDOG_CPUMASK: Knob =
    Knob::file("watchdog-cpumask", "/proc/sys/kernel/watchdog_cpumask")
        .compared(Compare::CpuList)
        .cpus(Cpus::Placed);

/// Seconds after which a task that waits is reported.
pub static HUNG_TASK: Knob = Knob::file("hung-task", "/proc/sys/kernel/hung_task_timeout_secs");

/// Seconds between two looks for such tasks; 0: the timeout.
pub static HUNG_TASK_INTERVAL: Knob =
    Knob::file("hung-task-interval", "/proc/sys/kernel/hung_task_check_interval_secs");

/// Backtraces of every CPU at a soft lockup.
pub static SOFTLOCKUP_BACKTRACE: Knob =
    Knob::file("softlockup-backtrace", "/proc/sys/kernel/softlockup_all_cpu_backtrace");

/// Backtraces of every CPU at a hard lockup.
pub static HARDLOCKUP_BACKTRACE: Knob =
    Knob::file("hardlockup-backtrace", "/proc/sys/kernel/hardlockup_all_cpu_backtrace");

/// Backtraces of every CPU at a hung task.
pub static HUNG_TASK_BACKTRACE: Knob =
    Knob::file("hung-task-backtrace", "/proc/sys/kernel/hung_task_all_cpu_backtrace");

/// Reports of RCU stalls left out.
pub static RCU_STALL: Knob =
    Knob::file("rcu-stall-spew", "/sys/module/rcupdate/parameters/rcu_cpu_stall_suppress")
        .or_boot("rcupdate.rcu_cpu_stall_suppress={}");

// Each CPU has a folder of machine checks, but these three values are the kernel's: every folder
// shows and sets the same (arch/x86/kernel/cpu/mce/core.c).

/// Corrected errors ignored: neither polled nor interrupting.
pub static MCE_IGNORE_CE: Knob =
    Knob::file("mce-ignore-ce", "/sys/devices/system/machinecheck/machinecheck0/ignore_ce")
        .or_boot("mce=ignore_ce")
        .on(Arch::X86)
        .risky(super::names::MCE_RISK);

/// The interrupt for corrected errors off.
pub static MCE_CMCI_DISABLED: Knob =
    Knob::file("mce-cmci-disabled", "/sys/devices/system/machinecheck/machinecheck0/cmci_disabled")
        .or_boot("mce=no_cmci")
        .on(Arch::X86)
        .risky(super::names::MCE_RISK);

/// Longest seconds between two polls for corrected errors; 0: never.
pub static MCE_CHECK_INTERVAL: Knob = Knob::file(
    "mce-check-interval",
    "/sys/devices/system/machinecheck/machinecheck0/check_interval",
)
.on(Arch::X86)
.risky(super::names::MCE_RISK);

/// Bytes a second that a memory controller scrubs by itself.
pub static MEM_SCRUB: Knob =
    Knob::file("mem-scrub", "/sys/devices/system/edac/mc/mc*/sdram_scrub_rate").of(Scope::Device);

/// What the kernel believes of the TSC.
pub static TSC: Knob = Knob::parameter("tsc-watchdog", "tsc").on(Arch::X86);

/// The timer of each CPU.
pub static CLOCKEVENT: Knob =
    Knob::file("clockevent", "/sys/devices/system/clockevents/clockevent{cpu}/current_device")
        .of(Scope::Cpu);

/// Whether a program that locks the bus has to wait.
pub static SPLIT_LOCK: Knob =
    Knob::file("split-lock", "/proc/sys/kernel/split_lock_mitigate").on(Arch::X86);

/// Units that set the time of day.
pub static NTP: Knob = Knob::units(
    "ntp-steps",
    &[
        "chrony.service",
        "chronyd.service",
        "ntp.service",
        "ntpd.service",
        "ntpsec.service",
        "openntpd.service",
        "systemd-timesyncd.service",
    ],
);

/// Clock that the kernel reads.
pub static CLOCKSOURCE: Knob = Knob::file(
    "clocksource-current",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
)
.fact();

/// The table.
pub const KNOBS: &[&Knob] = &[
    &CLOCKSOURCE,
    &WATCHDOG,
    &NMI_WATCHDOG,
    &SOFT_WATCHDOG,
    &WATCHDOG_CPUMASK,
    &HUNG_TASK,
    &HUNG_TASK_INTERVAL,
    &SOFTLOCKUP_BACKTRACE,
    &HARDLOCKUP_BACKTRACE,
    &HUNG_TASK_BACKTRACE,
    &RCU_STALL,
    &MCE_IGNORE_CE,
    &MCE_CMCI_DISABLED,
    &MCE_CHECK_INTERVAL,
    &MEM_SCRUB,
    &TSC,
    &CLOCKEVENT,
    &SPLIT_LOCK,
    &NTP,
];
