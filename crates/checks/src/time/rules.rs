//! Rows: watchdogs, timers, machine checks.

use rtproof_host::knobs::time as knobs;

use crate::Impact;
use crate::check::{Check, Judge};
use crate::value::{Absent, Want};

/// Timers of one CPU alone, programmed by a register.
const OWN_TIMERS: &[&str] = &[
    "lapic-deadline",
    "lapic",
    "arch_sys_timer",
    "riscv_timer_clockevent",
    "decrementer",
    "comparator",
    "xen",
    "Hyper-V clockevent",
];

const BACKTRACE_WHY: &str = "the report interrupts every CPU, which no masking holds back, and \
                             each writes its stack to the console";
const BACKTRACE_SOURCE: &str = "Documentation/admin-guide/sysctl/kernel.rst; kernel/watchdog.c, \
     kernel/hung_task.c (trigger_allbutcpu_cpu_backtrace, trigger_all_cpu_backtrace)";

pub(super) static SOFTLOCKUP_BACKTRACE: Check = Check {
    title: "backtraces of every CPU at a soft lockup",
    why: BACKTRACE_WHY,
    source: BACKTRACE_SOURCE,
    impact: Impact::Hundreds,
    judge: Judge::value(
        |_| Want::is("0").or_doubtful(),
        Absent::WithoutOption("SOFTLOCKUP_DETECTOR"),
    ),
    ..Check::of(&[&knobs::SOFTLOCKUP_BACKTRACE])
};

pub(super) static HARDLOCKUP_BACKTRACE: Check = Check {
    title: "backtraces of every CPU at a hard lockup",
    why: BACKTRACE_WHY,
    source: BACKTRACE_SOURCE,
    impact: Impact::Hundreds,
    judge: Judge::value(
        |_| Want::is("0").or_doubtful(),
        Absent::WithoutOption("HARDLOCKUP_DETECTOR"),
    ),
    ..Check::of(&[&knobs::HARDLOCKUP_BACKTRACE])
};

pub(super) static HUNG_TASK_BACKTRACE: Check = Check {
    title: "backtraces of every CPU at a hung task",
    why: BACKTRACE_WHY,
    source: BACKTRACE_SOURCE,
    impact: Impact::Hundreds,
    judge: Judge::value(|_| Want::is("0").or_doubtful(), Absent::WithoutOption("DETECT_HUNG_TASK")),
    ..Check::of(&[&knobs::HUNG_TASK_BACKTRACE])
};

pub(super) static RCU_STALL: Check = Check {
    title: "reports of RCU stalls",
    why: "a real-time thread that does not sleep keeps an RCU grace period waiting, and the report \
          interrupts the CPUs that wait and prints their stacks",
    source: "Documentation/RCU/stallwarn.rst; Documentation/admin-guide/kernel-parameters.txt \
             (rcupdate.rcu_cpu_stall_suppress); kernel/rcu/tree_stall.h",
    trade_off: Some(
        "a stall is the news that a thread starves the kernel: leave the reports on until the \
         application is known to sleep often enough",
    ),
    impact: Impact::Hundreds,
    judge: Judge::value(
        |_| Want::one_of(&["0", "1"]).or_doubtful().not_set().text("known: 0 or 1"),
        Absent::Unknown,
    ),
    ..Check::of(&[&knobs::RCU_STALL])
};

pub(super) static MEM_SCRUB: Check = Check {
    title: "memory scrubbing by the memory controller",
    why: "where the controller does not scrub by itself, firmware may stop every CPU to do it",
    source: "Documentation/core-api/real-time/hardware.rst (Firmware); \
             Documentation/ABI/testing/sysfs-devices-edac (sdram_scrub_rate); Wu, \"Real-time \
             programming with Linux, part 2\" (400 µs every 14 minutes)",
    impact: Impact::Hundreds,
    judge: Judge::value(
        |_| {
            let wanted = "by the controller itself, not by firmware: set it there";
            Want::at_least(1).or_doubtful().not_set().text(wanted)
        },
        Absent::NoSuchThing("no memory controller shows how it scrubs"),
    ),
    ..Check::of(&[&knobs::MEM_SCRUB])
};

pub(super) static CLOCKEVENT: Check = Check {
    title: "timer of each CPU",
    why: "a timer that CPUs share, or that is set over a bus, is late by the time that takes and \
          needs an interrupt of another CPU",
    source: "Documentation/timers/highres.rst, Documentation/timers/hrtimers.rst; \
             arch/x86/kernel/apic/apic.c (lapic-deadline)",
    impact: Impact::Microseconds,
    judge: Judge::value(
        |_| {
            let wanted = "a timer of the CPU: lapic-deadline, lapic, arch_sys_timer";
            Want::one_of(OWN_TIMERS).or_doubtful().not_set().text(wanted)
        },
        Absent::Unknown,
    ),
    ..Check::of(&[&knobs::CLOCKEVENT])
};

pub(super) static SPLIT_LOCK: Check = Check {
    title: "programs that lock the bus have to wait (split_lock_mitigate)",
    why: "an atomic operation across two cache lines stops the memory accesses of every CPU. Where \
          the processor can detect it, the kernel makes the offender wait 10 ms and lets one at a \
          time",
    source: "Documentation/admin-guide/sysctl/kernel.rst (split_lock_mitigate); \
             arch/x86/kernel/cpu/intel.c (split_lock_warn)",
    trade_off: Some(
        "0 frees a real-time application that does so itself of the 10 ms, and lets every other \
         program disturb it: mend the application (dmesg: \"split lock detection\")",
    ),
    judge: Judge::value(
        |_| Want::is("1").or_doubtful(),
        Absent::NoSuchThing("this kernel has no such switch"),
    ),
    ..Check::of(&[&knobs::SPLIT_LOCK])
};
