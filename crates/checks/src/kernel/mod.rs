//! Checks: kernel build and preemption.

mod cmdline;
mod preemption;

use rtproof_host::Facts;

use crate::check::{Check, Judge};
use crate::profile::Choice;
use crate::value::{Build, Built, Harmless};
use crate::{Evidence, Impact, Intent, Remedy, Section, Status, When, machine};

pub(crate) const SECTION: Section =
    Section { name: "kernel", title: "kernel build and preemption", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &preemption::PREEMPT_RT,
    &preemption::PREEMPT_DYNAMIC,
    &preemption::THREADIRQS,
    &preemption::HIGH_RES_TIMERS,
    &preemption::CONFIG_READABLE,
    &cmdline::CMDLINE_UNKNOWN,
    &cmdline::CMDLINE_DUPLICATES,
    &preemption::LOCKDOWN,
    &cmdline::EFI_RUNTIME,
    &cmdline::DEBUG_PARAMETERS,
    &preemption::KFENCE,
    &preemption::RT_GROUP_SCHED,
    &preemption::CONFIG_HZ,
    &NO_HZ,
    &CPU_ISOLATION,
    &CPUSETS,
    &RCU_NOCB,
    &RCU_BOOST,
    &CPU_FREQ,
    &CPUFREQ_DEFAULT,
    &CPU_IDLE,
    &LOCKUP_DETECTOR,
    &HUNG_TASK,
    &DEBUG_LOCKING,
    &DEBUG_MEMORY,
    &DEBUG_KMEMLEAK,
    &DEBUG_OBJECTS,
    &LATENCY_TRACERS,
    &DRM,
];

// Options of the kernel's build.

/// Where the kernel's own guide says it.
const GUIDE: &str = "Documentation/core-api/real-time/kernel-configuration.rst";

/// What they have in common.
const ROW: Check = Check { source: GUIDE, when: When::Kernel, ..Check::NEW };

static NO_HZ: Check = Check {
    id: "config-nohz",
    title: "kernel that can stop the tick of a busy CPU (CONFIG_NO_HZ_FULL)",
    why: "without it every CPU takes a tick HZ times a second, and nohz_full= is not known",
    source: "Documentation/timers/no_hz.rst; \
             Documentation/core-api/real-time/kernel-configuration.rst",
    trade_off: Some(
        "the kernel's guide wants it off for periodic loops, where each entry to the kernel gets \
         slower, and on for long computations; it costs little where nohz_full= is not given",
    ),
    impact: Impact::Microseconds,
    judge: Judge::Build(Build {
        options: &["NO_HZ_FULL"],
        want: |intent| match intent.profile.choices.nohz_full {
            Choice::On => Built::With,
            Choice::Off | Choice::Either => Built::Either,
        },
        ..Build::NEW
    }),
    ..ROW
};

static CPU_ISOLATION: Check = Check {
    id: "config-cpu-isolation",
    title: "kernel that can isolate CPUs (CONFIG_CPU_ISOLATION)",
    why: "without it the kernel does not know isolcpus= and nohz_full=, and unbound work of the \
          kernel runs on every CPU",
    source: "init/Kconfig (CPU_ISOLATION); kernel/sched/isolation.c",
    judge: Judge::Build(Build { options: &["CPU_ISOLATION"], want: |_| Built::With, ..Build::NEW }),
    ..ROW
};

static CPUSETS: Check = Check {
    id: "config-cpusets",
    title: "kernel that has sets of CPUs for control groups (CONFIG_CPUSETS)",
    why: "without it tasks cannot be kept off real-time CPUs while the system runs",
    source: "init/Kconfig (CPUSETS); Documentation/admin-guide/cgroup-v2.rst (Cpuset)",
    judge: Judge::Build(Build { options: &["CPUSETS"], want: |_| Built::With, ..Build::NEW }),
    ..ROW
};

static RCU_NOCB: Check = Check {
    id: "config-rcu-nocb",
    title: "kernel that can move RCU callbacks off a CPU (CONFIG_RCU_NOCB_CPU)",
    why: "without it each CPU runs the RCU callbacks that it has queued, in softirq context",
    source: "kernel/rcu/Kconfig (RCU_NOCB_CPU); \
             Documentation/admin-guide/kernel-per-CPU-kthreads.rst",
    judge: Judge::Build(Build { options: &["RCU_NOCB_CPU"], want: |_| Built::With, ..Build::NEW }),
    ..ROW
};

static RCU_BOOST: Check = Check {
    id: "config-rcu-boost",
    title: "RCU readers boosted when they hold up a grace period (CONFIG_RCU_BOOST)",
    why: "an ordinary task that is preempted within an RCU reader by real-time tasks holds up \
          grace periods: who waits for one waits on, and memory runs out",
    source: "kernel/rcu/Kconfig (RCU_BOOST: default on PREEMPT_RT; without it other kernels are as \
             meant)",
    impact: Impact::Information,
    judge: Judge::Build(Build {
        options: &["RCU_BOOST"],
        want: |_| Built::With,
        part_of: Some("PREEMPT_RT"),
        ..Build::NEW
    }),
    ..ROW
};

static CPU_FREQ: Check = Check {
    id: "config-cpu-freq",
    title: "kernel that can set CPU frequencies (CONFIG_CPU_FREQ)",
    why: "some boot loaders leave the CPU at a low frequency, and nothing raises it",
    judge: Judge::Build(Build {
        options: &["CPU_FREQ"],
        want: |_| Built::With,
        harmless: Some(of_the_host),
        ..Build::NEW
    }),
    ..ROW
};

static CPUFREQ_DEFAULT: Check = Check {
    id: "config-cpufreq-default",
    title: "governor at boot (CONFIG_CPU_FREQ_DEFAULT_GOV_PERFORMANCE)",
    why: "until something sets the performance governor the frequency follows the load; \
          cpufreq-governor tells which is in force, and cpufreq.default_governor= chooses it at \
          boot",
    source: "Documentation/core-api/real-time/kernel-configuration.rst; \
             Documentation/admin-guide/pm/cpufreq.rst",
    impact: Impact::Information,
    judge: Judge::Build(Build {
        options: &["CPU_FREQ_DEFAULT_GOV_PERFORMANCE"],
        want: |_| Built::Either,
        part_of: Some("CPU_FREQ"),
        ..Build::NEW
    }),
    ..ROW
};

static CPU_IDLE: Check = Check {
    id: "config-cpu-idle",
    title: "idle states that the kernel chooses (CONFIG_CPU_IDLE)",
    why: "deep idle states take long to leave; limiting them is better than a kernel without, \
          which wears and heats the CPU",
    impact: Impact::Information,
    judge: Judge::Build(Build { options: &["CPU_IDLE"], want: |_| Built::Either, ..Build::NEW }),
    ..ROW
};

static LOCKUP_DETECTOR: Check = Check {
    id: "config-lockup-detector",
    title: "lockup detectors (CONFIG_LOCKUP_DETECTOR)",
    why: "where they run, their timer interrupts every CPU each few seconds, with PREEMPT_RT, too; \
          nmi-watchdog and soft-watchdog tell whether they do",
    impact: Impact::Information,
    judge: Judge::Build(Build {
        options: &["LOCKUP_DETECTOR"],
        want: |_| Built::Either,
        ..Build::NEW
    }),
    ..ROW
};

static HUNG_TASK: Check = Check {
    id: "config-hung-task",
    title: "detector of hung tasks (CONFIG_DETECT_HUNG_TASK)",
    why: "where it is on, khungtaskd walks the list of all tasks and writes what it finds to the \
          console; hung-task tells whether and how often",
    source: "kernel/hung_task.c; Wu, \"Real-time programming with Linux, part 2\"",
    impact: Impact::Information,
    judge: Judge::Build(Build {
        options: &["DETECT_HUNG_TASK"],
        want: |_| Built::Either,
        ..Build::NEW
    }),
    ..ROW
};

static DEBUG_LOCKING: Check = Check {
    id: "config-debug-locking",
    title: "proofs and statistics of locks (CONFIG_PROVE_LOCKING and others)",
    why: "each lock and unlock walks the validator's graph, with interrupts off",
    trade_off: Some("wanted while drivers are developed and tested, not in production"),
    impact: Impact::Hundreds,
    judge: Judge::Build(Build {
        options: &["PROVE_LOCKING", "DEBUG_LOCK_ALLOC", "LOCK_STAT"],
        otherwise: Status::Bad,
        ..Build::NEW
    }),
    ..ROW
};

static DEBUG_MEMORY: Check = Check {
    id: "config-debug-memory",
    title: "memory accesses and allocations checked (CONFIG_KASAN and others)",
    why: "every access to memory, or every allocation, runs through a check",
    source: "Documentation/dev-tools/kasan.rst, kcsan.rst, kmsan.rst; mm/Kconfig.debug",
    trade_off: Some("wanted while drivers are developed and tested, not in production"),
    judge: Judge::Build(Build {
        options: &[
            "KASAN_GENERIC",
            "KASAN_SW_TAGS",
            "KCSAN",
            "KMSAN",
            "SLUB_DEBUG_ON",
            "DEBUG_PAGEALLOC_ENABLE_DEFAULT",
        ],
        otherwise: Status::Bad,
        ..Build::NEW
    }),
    ..ROW
};

static DEBUG_KMEMLEAK: Check = Check {
    id: "config-debug-kmemleak",
    title: "search for leaked memory (CONFIG_DEBUG_KMEMLEAK)",
    why: "a thread scans all memory of the kernel every ten minutes, and each allocation is \
          entered into a tree under a lock",
    source: "Documentation/dev-tools/kmemleak.rst",
    judge: Judge::Build(Build {
        options: &["DEBUG_KMEMLEAK"],
        otherwise: Status::Bad,
        harmless: Some(no_kmemleak),
        remedy: Some(|| Remedy::Boot { parameter: "kmemleak=off".into() }),
        ..Build::NEW
    }),
    ..ROW
};

static DEBUG_OBJECTS: Check = Check {
    id: "config-debug-objects",
    title: "objects, locks and preemption counts checked (CONFIG_DEBUG_OBJECTS and others)",
    why: "each timer, lock or access to a variable of a CPU is checked first",
    source: "lib/Kconfig.debug; Documentation/core-api/real-time/kernel-configuration.rst (debug \
             options add to the worst case)",
    impact: Impact::Microseconds,
    judge: Judge::Build(Build {
        options: &["DEBUG_OBJECTS", "DEBUG_PREEMPT", "DEBUG_SPINLOCK", "DEBUG_RT_MUTEXES"],
        ..Build::NEW
    }),
    ..ROW
};

static LATENCY_TRACERS: Check = Check {
    id: "config-latency-tracers",
    title: "tracers of interrupts and preemption off (CONFIG_IRQSOFF_TRACER, \
            CONFIG_PREEMPT_TRACER)",
    why: "each switch of interrupts or preemption calls a hook, also when nobody traces",
    judge: Judge::Build(Build {
        options: &["IRQSOFF_TRACER", "PREEMPT_TRACER"],
        otherwise: Status::Bad,
        ..Build::NEW
    }),
    ..ROW
};

static DRM: Check = Check {
    id: "config-drm",
    title: "kernel with graphics (CONFIG_DRM)",
    why: "an integrated graphics processor shares last-level cache and memory bandwidth with the \
          CPUs",
    impact: Impact::Information,
    judge: Judge::Build(Build { options: &["DRM"], want: |_| Built::Either, ..Build::NEW }),
    ..ROW
};

/// In a guest frequencies are the host's business.
fn of_the_host(facts: &Facts, _: &Intent) -> Harmless {
    machine::guest(facts)?;
    let hypervisor = &facts.virt.hypervisor;
    let evidence = Evidence::of(hypervisor, |name| name.clone().unwrap_or_default());
    Some((evidence, "frequencies are the host's business"))
}

fn no_kmemleak(facts: &Facts, _: &Intent) -> Harmless {
    let cmdline = &facts.kernel.cmdline;
    let asked = cmdline.value()?.last("kmemleak").flatten();
    let is_off = match asked {
        Some(asked) => asked == "off",
        None => machine::built_with(facts, "DEBUG_KMEMLEAK_DEFAULT_OFF")?,
    };
    let shown = |_: &_| asked.map_or("no kmemleak=".into(), |asked| format!("kmemleak={asked}"));
    is_off.then(|| (Evidence::of(cmdline, shown), "it is off"))
}
