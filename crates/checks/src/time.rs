//! Checks: clocks, watchdogs, machine checks.

use rtproof_host::{
    CpuList, Facts, Knob, Reading,
    arch::Family,
    facts::virt::{Unit, Units},
    knob::{KnobArch, Place},
    knobs::cpu::{self as knobs, CLOCKSOURCE},
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{built_with, container, guest, is_all_rt};
use crate::profile::Choice;
use crate::value::{Absent, Want};
use crate::{Evidence, Finding, Impact, Intent, Remedy, Section, When, machine, value};

pub(crate) const SECTION: Section =
    Section { name: "time", title: "clocks, watchdogs, machine checks", checks: CHECKS };

const CHECKS: &[&Check] = &[
    &NMI,
    &SOFT,
    &MASK,
    &HUNG_TASK,
    &MCE_CE,
    &CLOCKSOURCE_CHECK,
    &TSC_WATCHDOG,
    &NTP_STEPS,
    &SOFTLOCKUP_BACKTRACE,
    &HARDLOCKUP_BACKTRACE,
    &HUNG_TASK_BACKTRACE,
    &RCU_STALL,
    &MEM_SCRUB,
    &CLOCKEVENT,
    &SPLIT_LOCK,
];

// Is the clock read from the CPU, or over a bus?
//
// The good ones are registers that the vDSO reads in user space. A board's own timer may be fine
// or not; what is not known here is doubtful, never good.

/// Read from a register of the CPU or a shared page, without a system call.
const FAST: &[&str] = &[
    "tsc",
    "arch_sys_counter",
    "riscv_clocksource",
    "Constant",
    "timebase",
    "tod",
    "hyperv_clocksource_tsc_page",
];

/// As fast, but only in a guest of their hypervisor.
const FAST_IN_GUEST: &[&str] = &["kvm-clock"];

/// Read over a bus, by an exit to the hypervisor, or counted in ticks.
const SLOW: &[&str] =
    &["hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies", "hyperv_clocksource_msr"];

static CLOCKSOURCE_CHECK: Check = Check {
    id: "clocksource",
    title: "clock behind CLOCK_MONOTONIC",
    why: "hpet and acpi_pm are read over a bus, about 1 µs each time and by system call; every \
          timer and time stamp pays",
    source: "Documentation/timers/timekeeping.rst; Codethink, \"Configuring Linux systems to \
             stabilise latency\"",
    impact: Impact::Microseconds,
    wanted: Wanted::Text("a register of the CPU: tsc, arch_sys_counter"),
    judge: Judge::Ask(judge_clocksource),
    ..Check::NEW
};

fn judge_clocksource(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let source = &facts.clock.source;
    let draft = draft.read(source, String::clone);
    let Some(name) = source.value().map(String::as_str) else {
        return draft.unreadable(source);
    };
    if FAST.contains(&name) {
        return draft.good(name);
    }
    let draft =
        draft.read(&facts.clock.available, |names| names.join(" ")).remedies(remedies(facts));
    if FAST_IN_GUEST.contains(&name) {
        let draft = draft.read(&facts.virt.hypervisor, |name| match name {
            Some(name) => name.clone(),
            None => "none".into(),
        });
        return match guest(facts) {
            Some(hypervisor) => draft.good(format!("{name} in a {hypervisor} guest")),
            None => draft.doubtful(format!("{name}, but no hypervisor is known")),
        };
    }
    if SLOW.contains(&name) {
        return draft.bad(name);
    }
    draft.doubtful(format!("{name}: not known to be read without a bus access"))
}

fn remedies(facts: &Facts) -> Vec<Remedy> {
    let Some(available) = facts.clock.available.value() else {
        return Vec::new();
    };
    match FAST.iter().find(|fast| available.iter().any(|name| name == *fast)) {
        Some(fast) => {
            let paths = vec![facts.clock.source.path.clone()];
            vec![
                Remedy::set(&CLOCKSOURCE, paths, *fast),
                Remedy::Boot { parameter: format!("clocksource={fast}") },
            ]
        }
        None => {
            let text = match facts.kernel.family() {
                Some(Family::X86) => {
                    "look in dmesg for why the kernel gave its fast clock up: \"Marking TSC \
                     unstable\""
                }
                _ => {
                    "look in the CPU's manual for a counter that user space may read; without one \
                     this clock is what there is"
                }
            };
            vec![Remedy::Manual { text: text.into() }]
        }
    }
}

// How often does the kernel look for tasks that wait too long?
//
// The search has no fixed period: it is the timeout, or a shorter interval of its own.

/// Seconds between two searches in tuned's profile for isolated CPUs.
const SECONDS_MIN: i64 = 600;

static HUNG_TASK: Check = Check {
    id: "hung-task",
    title: "search for hung tasks (khungtaskd)",
    why: "khungtaskd walks over every task in one go, and what a busy real-time thread keeps \
          waiting is reported on the console",
    source: "Documentation/admin-guide/sysctl/kernel.rst (hung_task_timeout_secs); \
             kernel/hung_task.c; tuned, profile cpu-partitioning (600); Wu, \"Real-time \
             programming with Linux, part 2\" (CONFIG_DETECT_HUNG_TASK)",
    trade_off: Some(
        "a task that never comes back from the kernel is reported later, or with 0 never",
    ),
    impact: Impact::Tens,
    knobs: &[&knobs::HUNG_TASK, &knobs::HUNG_TASK_INTERVAL],
    judge: Judge::Ask(judge_hung_task),
    ..Check::NEW
};

fn judge_hung_task(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let timeout = value::knob_number(facts, &knobs::HUNG_TASK);
    let wanted = format!("0 (off), or at least {SECONDS_MIN} s");
    let draft = draft.wanted(wanted).read(&timeout, show_hung_task);
    if timeout.is_absent() && built_with(facts, "DETECT_HUNG_TASK") == Some(false) {
        return draft.built_without(facts, "DETECT_HUNG_TASK");
    }
    let Some(&timeout_s) = timeout.value() else {
        return draft.unreadable(&timeout);
    };
    if timeout_s == 0 {
        return draft.good("off");
    }
    let paths = vec![timeout.path.clone()];
    let remedy = Remedy::set(&knobs::HUNG_TASK, paths, SECONDS_MIN.to_string());
    if timeout_s < SECONDS_MIN {
        return draft.remedies([remedy]).doubtful(format!("searches every {timeout_s} s"));
    }
    let interval = value::knob_number(facts, &knobs::HUNG_TASK_INTERVAL);
    if interval.is_absent() {
        // Older kernels have the timeout alone.
        return draft.good(format!("searches every {timeout_s} s"));
    }
    let draft = draft.read(&interval, show_hung_task);
    match interval.value() {
        None => draft.unreadable(&interval),
        Some(&interval_s) if interval_s > 0 && interval_s < SECONDS_MIN => {
            let paths = vec![interval.path.clone()];
            draft.remedies([Remedy::set(&knobs::HUNG_TASK_INTERVAL, paths, "0")]).doubtful(format!(
                "searches every {interval_s} s: the interval of its own is shorter"
            ))
        }
        Some(_) => draft.good(format!("searches not more than once in {SECONDS_MIN} s")),
    }
}

fn show_hung_task(seconds: &i64) -> String {
    seconds.to_string()
}

// Do the lockup detectors run on the real-time CPUs?
//
// Both are driven by one timer on each CPU that they watch; off, or set to watch other CPUs, is
// the same for the real-time ones. The kernel itself leaves `nohz_full=` CPUs out. The mask also
// names CPUs that are offline, so it is held against the real-time CPUs, not the others.

const SOURCE: &str = "Documentation/admin-guide/lockup-watchdogs.rst; kernel/watchdog.c \
     (watchdog_enable, watchdog_timer_fn); tuned, profiles cpu-partitioning and realtime; \
     Codethink, \"Configuring Linux systems to stabilise latency\"";

/// By a performance counter's non-maskable interrupt.
static NMI: Check = Check {
    id: knobs::NMI_WATCHDOG.id,
    title: "hard lockup detector (nmi_watchdog)",
    why: "a counter raises a non-maskable interrupt on each watched CPU every few seconds, and a \
          timer beside it every four",
    source: SOURCE,
    trade_off: Some("a CPU that hangs is no longer reported"),
    knobs: &[&knobs::NMI_WATCHDOG, &knobs::WATCHDOG, &knobs::WATCHDOG_CPUMASK],
    wanted: Wanted::Text("0, or the real-time CPUs not watched"),
    judge: Judge::Ask(|draft, facts, intent| {
        detector(draft, facts, intent, &knobs::NMI_WATCHDOG, "LOCKUP_DETECTOR", "nmi_watchdog=0")
    }),
    ..Check::NEW
};

/// By a thread of the highest class.
static SOFT: Check = Check {
    id: knobs::SOFT_WATCHDOG.id,
    title: "soft lockup detector (soft_watchdog)",
    why: "every four seconds a timer wakes the stop thread of each watched CPU, which no priority \
          keeps out, and a real-time thread that does not sleep is reported with backtraces",
    source: SOURCE,
    trade_off: Some("a CPU that hangs is no longer reported"),
    knobs: &[&knobs::SOFT_WATCHDOG, &knobs::WATCHDOG, &knobs::WATCHDOG_CPUMASK],
    wanted: Wanted::Text("0, or the real-time CPUs not watched"),
    judge: Judge::Ask(|draft, facts, intent| {
        detector(draft, facts, intent, &knobs::SOFT_WATCHDOG, "SOFTLOCKUP_DETECTOR", "nosoftlockup")
    }),
    ..Check::NEW
};

/// Whether a detector is off, or leaves the real-time CPUs out.
fn detector(
    draft: FindingBuilder,
    facts: &Facts,
    intent: &Intent,
    knob: &'static Knob,
    build: &str,
    parameter: &str,
) -> Finding {
    let value = value::knob_number(facts, knob);
    let draft = draft.read(&value, show_lockup);
    if value.is_absent() && built_with(facts, build) == Some(false) {
        return draft.built_without(facts, build);
    }
    let Some(&value_known) = value.value() else {
        return draft.unreadable(&value);
    };
    if value_known == 0 {
        return draft.good("off");
    }
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let mask = mask(facts);
    let draft = draft.read(&mask, CpuList::to_string);
    let Some(watched) = mask.value() else {
        return draft.unreadable(&mask);
    };
    let watched_rt = watched.intersection(&intent.rt_cpus);
    if watched_rt.is_empty() {
        return draft.good(format!("on, and watches {} alone", machine::cpus(watched)));
    }
    let paths = vec![value.path.clone()];
    draft
        .remedies([Remedy::set(knob, paths, "0"), Remedy::Boot { parameter: parameter.into() }])
        .bad(format!("on, and watches {}", machine::cpus(&watched_rt)))
}

/// Whether the detectors, where they run, leave the real-time CPUs out.
static MASK: Check = Check {
    id: "watchdog-cpumask",
    title: "CPUs that the lockup detectors watch",
    why: "each watched CPU has the detectors' timer; the others still report a hang when real-time \
          CPUs are left out",
    source: "Documentation/admin-guide/lockup-watchdogs.rst, \
             Documentation/admin-guide/sysctl/kernel.rst (watchdog_cpumask); kernel/watchdog.c \
             (lockup_detector_init)",
    impact: Impact::Tens,
    knobs: &[&knobs::WATCHDOG_CPUMASK, &knobs::WATCHDOG],
    wanted: Wanted::Text("no real-time CPU"),
    judge: Judge::Ask(judge_mask),
    ..Check::NEW
};

fn judge_mask(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let running = value::knob_number(facts, &knobs::WATCHDOG);
    let mut draft = draft.read(&running, show_lockup);
    if running.is_absent() && built_with(facts, "LOCKUP_DETECTOR") == Some(false) {
        return draft.built_without(facts, "LOCKUP_DETECTOR");
    }
    match running.value() {
        None => return draft.unreadable(&running),
        Some(0) => return draft.not_applicable("no lockup detector runs"),
        Some(_) => {}
    }
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    if is_all_rt(facts, intent) {
        return draft
            .read(&facts.cpus.online, CpuList::to_string)
            .not_applicable("every CPU is a real-time CPU: none is left to watch");
    }
    let mask = mask(facts);
    draft = draft.read(&mask, CpuList::to_string);
    let Some(watched) = mask.value() else {
        return draft.unreadable(&mask);
    };
    let watched_rt = watched.intersection(&intent.rt_cpus);
    if watched_rt.is_empty() {
        return draft.good(format!("watches {} alone", machine::cpus(watched)));
    }
    let (paths, value) = (vec![mask.path.clone()], intent.housekeeping.to_string());
    draft
        .remedies([Remedy::set(&knobs::WATCHDOG_CPUMASK, paths, value)])
        // Bad is what runs: `soft-watchdog` and `nmi-watchdog` say so. This is one way out.
        .doubtful(format!("the detectors watch {}", machine::cpus(&watched_rt)))
}

fn show_lockup(value: &i64) -> String {
    value.to_string()
}

fn mask(facts: &Facts) -> Reading<CpuList> {
    value::knob_text(facts, &knobs::WATCHDOG_CPUMASK).and_then(|path, list| {
        match CpuList::parse(&list, None) {
            Ok(cpus) => Reading::known(path, cpus),
            Err(_) => Reading::malformed(path, &list, "a list of CPUs"),
        }
    })
}

// Does every CPU look for corrected hardware errors?
//
// Corrected errors are found in two ways, by a timer on each CPU and by an interrupt (CMCI), and
// `ignore_ce` ends both. Whether that is wanted the profile says: what is not looked for does not
// warn of failing memory either.

static MCE_CE: Check = Check {
    id: "mce-ce",
    title: "corrected machine checks",
    why: "a timer on each CPU reads its banks of machine checks, every five minutes and oftener \
          once it found an error, and an interrupt comes with each corrected error",
    source: "arch/x86/kernel/cpu/mce/core.c (mce_timer_fn, set_ignore_ce); \
             Documentation/arch/x86/x86_64/boot-options.rst (mce=); Codethink, \"Configuring Linux \
             systems to stabilise latency\" (periodic spikes); tuned, profile realtime (ignore_ce)",
    trade_off: Some(
        "memory that fails slowly is no longer reported by the kernel: watch it in the firmware's \
         log; uncorrected errors are still handled",
    ),
    impact: Impact::Tens,
    knobs: &[&knobs::MCE_IGNORE_CE, &knobs::MCE_CMCI_DISABLED, &knobs::MCE_CHECK_INTERVAL],
    judge: Judge::Ask(judge_mce_ce),
    ..Check::NEW
};

fn judge_mce_ce(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let choice = intent.profile.choices.corrected_errors;
    let wanted = match choice {
        Choice::On => "looked for",
        Choice::Off => "ignored: ignore_ce is 1",
        Choice::Either => "known",
    };
    let draft = draft.wanted(wanted);
    let arch = &facts.kernel.arch;
    if let Some(name) = arch.value().filter(|name| !KnobArch::X86.has(name)) {
        return draft.read(arch, String::clone).not_applicable(format!("not on {name}"));
    }
    let ignored = value::knob_number(facts, &knobs::MCE_IGNORE_CE);
    let draft = draft.read(&ignored, i64::to_string);
    if ignored.is_absent()
        && let Some(lacking) = value::missing_from(facts, &knobs::MCE_IGNORE_CE)
    {
        return draft
            .read(lacking, String::clone)
            .not_applicable("no machine checks: switched off (mce=off), or none in this guest");
    }
    let Some(&is_ignored) = ignored.value() else {
        return draft.unreadable(&ignored);
    };
    if is_ignored != 0 {
        let summary = "corrected errors are ignored";
        return match choice {
            Choice::On => draft.doubtful(format!("{summary}: failing memory goes unseen")),
            Choice::Off | Choice::Either => draft.good(summary),
        };
    }
    let interval = value::knob_number(facts, &knobs::MCE_CHECK_INTERVAL);
    let disabled = value::knob_number(facts, &knobs::MCE_CMCI_DISABLED);
    let draft = draft.read(&interval, i64::to_string).read(&disabled, i64::to_string);
    let (Some(&interval_s), Some(&is_disabled)) = (interval.value(), disabled.value()) else {
        return draft.unreadable(if interval.value().is_none() { &interval } else { &disabled });
    };
    let polled = match interval_s {
        0 => "not polled".to_owned(),
        seconds => format!("polled at least every {seconds} s"),
    };
    let interrupt = if is_disabled == 0 { "interrupt on" } else { "interrupt off" };
    let summary = format!("{polled}, {interrupt}");
    let is_quiet = interval_s == 0 && is_disabled != 0;
    match choice {
        Choice::Off if !is_quiet => draft
            .remedies([
                Remedy::set(&knobs::MCE_IGNORE_CE, vec![ignored.path.clone()], "1"),
                Remedy::Boot { parameter: "mce=ignore_ce".into() },
            ])
            .bad(summary),
        Choice::On if is_quiet => draft.doubtful(format!("{summary}: failing memory goes unseen")),
        _ => draft.good(summary),
    }
}

// Which daemon sets the time of day?
//
// A daemon may step CLOCK_REALTIME; CLOCK_MONOTONIC is only made a little faster or slower. So one
// daemon is good to know, and two that pull at one clock are not good.

static NTP_STEPS: Check = Check {
    id: "ntp-steps",
    title: "daemons that set the time of day",
    why: "an application that waits on CLOCK_REALTIME is late or early by each step of that clock, \
          which a time daemon makes; CLOCK_MONOTONIC has no steps",
    source: "clock_settime(2), clock_nanosleep(2); adjtimex(2) (a change of frequency is at most \
             500 ppm); chrony.conf(5) (makestep)",
    impact: Impact::Information,
    knobs: &[&knobs::NTP],
    wanted: Wanted::Text("at most one"),
    judge: Judge::Ask(judge_ntp_steps),
    ..Check::NEW
};

fn judge_ntp_steps(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let reading = &facts.units;
    let draft = draft.evidence([Evidence::of(reading, show_ntp_steps)]);
    let Some(units) = reading.value() else {
        return draft.unreadable(reading);
    };
    if let Some(name) = container(facts) {
        return draft
            .read(&facts.virt.container, |_| name.into())
            .unknown(format!("inside a {name} container the host's time daemon is not seen"));
    }
    let active: Vec<&str> =
        daemons(units).filter(|(_, unit)| is_active(unit)).map(|(name, _)| name).collect();
    match active.as_slice() {
        [] => draft.good("no daemon that this check knows"),
        [one] => draft.good(format!("{one} may step CLOCK_REALTIME, not CLOCK_MONOTONIC")),
        several => {
            let remedies: Vec<Remedy> = several[1..]
                .iter()
                .map(|&unit| Remedy::Unit { unit: unit.into(), action: "disable --now".into() })
                .collect();
            draft
                .remedies(remedies)
                .doubtful(format!("{} pull at one clock", several.join(" and ")))
        }
    }
}

fn daemons(units: &Units) -> impl Iterator<Item = (&str, &Unit)> {
    let known = match knobs::NTP.place {
        Place::Units(known) => known,
        _ => &[],
    };
    let of = move |(name, unit)| {
        let name: &String = name;
        known.contains(&name.as_str()).then_some((name.as_str(), unit))
    };
    units.iter().filter_map(of)
}

/// Whether it runs; where that is unknown, whether it will.
fn is_active(unit: &Unit) -> bool {
    unit.running.unwrap_or(unit.enabled && !unit.masked)
}

fn show_ntp_steps(units: &Units) -> String {
    let word = |unit: &Unit| match unit.running {
        Some(true) => "running",
        Some(false) => "not running",
        None if unit.enabled => "enabled",
        None => "not enabled",
    };
    let words: Vec<String> =
        daemons(units).map(|(name, unit)| format!("{name} {}", word(unit))).collect();
    if words.is_empty() { "no time daemon".into() } else { words.join(", ") }
}

// Rows: watchdogs, timers, machine checks.

/// Timers of one CPU alone, programmed by a register or in the CPU's own block.
const OWN_TIMERS: &[&str] = &[
    "lapic-deadline",
    "lapic",
    "arch_sys_timer",
    // drivers/clocksource: Cortex-A5, A9 and A15; Exynos; Armada; bcm2836; MIPS; LoongArch; ARC
    "local_timer",
    "arm_global_timer",
    "mct_tick0",
    "mct_tick1",
    "mct_tick2",
    "mct_tick3",
    "mct_tick4",
    "mct_tick5",
    "mct_tick6",
    "mct_tick7",
    "armada_370_xp_per_cpu_tick",
    "MIPS",
    "MIPS GIC",
    "Constant",
    "ARC Timer0",
    "riscv_timer_clockevent",
    "clint_clockevent",
    "decrementer",
    "comparator",
    "xen",
    "Hyper-V clockevent",
];

const BACKTRACE_WHY: &str = "the report interrupts every CPU, which no masking holds back, and \
                             each writes its stack to the console";

const BACKTRACE_SOURCE: &str = "Documentation/admin-guide/sysctl/kernel.rst; kernel/watchdog.c, \
     kernel/hung_task.c (trigger_allbutcpu_cpu_backtrace, trigger_all_cpu_backtrace)";

static SOFTLOCKUP_BACKTRACE: Check = Check {
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

static HARDLOCKUP_BACKTRACE: Check = Check {
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

static HUNG_TASK_BACKTRACE: Check = Check {
    title: "backtraces of every CPU at a hung task",
    why: BACKTRACE_WHY,
    source: BACKTRACE_SOURCE,
    impact: Impact::Hundreds,
    judge: Judge::value(|_| Want::is("0").or_doubtful(), Absent::WithoutOption("DETECT_HUNG_TASK")),
    ..Check::of(&[&knobs::HUNG_TASK_BACKTRACE])
};

static RCU_STALL: Check = Check {
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

static MEM_SCRUB: Check = Check {
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

static CLOCKEVENT: Check = Check {
    title: "timer of each CPU",
    why: "a timer that CPUs share, or that is set over a bus, is late by the time that takes and \
          needs an interrupt of another CPU",
    source: "Documentation/timers/highres.rst, Documentation/timers/hrtimers.rst; \
             arch/x86/kernel/apic/apic.c (lapic-deadline)",
    impact: Impact::Microseconds,
    judge: Judge::value(
        |_| {
            let wanted = "a timer of the CPU itself, as lapic-deadline or arch_sys_timer";
            Want::one_of(OWN_TIMERS).or_doubtful().not_set().text(wanted)
        },
        Absent::Unknown,
    ),
    ..Check::of(&[&knobs::CLOCKEVENT])
};

static SPLIT_LOCK: Check = Check {
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

// Is the TSC checked against another clock all the time?
//
// Two timers do that, on one CPU after the other. `tsc=nowatchdog` ends the one that compares
// clocks twice a second; the one that looks for a changed TSC_ADJUST register every ten minutes
// ends with `tsc=reliable` alone, a difference that gave OpenShift latency spikes. Since 5.17
// the first is off by itself on most machines, which no file shows.

static TSC_WATCHDOG: Check = Check {
    id: "tsc-watchdog",
    title: "watchdog of the TSC (tsc=)",
    why: "timers check the TSC on each CPU in turn, one of them by reading a slow clock over a bus",
    source: "kernel/time/clocksource.c (clocksource_watchdog), arch/x86/kernel/tsc_sync.c \
             (start_sync_check_timer), arch/x86/kernel/tsc.c (check_system_tsc_reliable); \
             github.com/openshift/cluster-node-tuning-operator pull request 756 (OCPBUGS-16348)",
    trade_off: Some(
        "a TSC that drifts or jumps is no longer found out: first see that it never was marked \
         unstable on this model",
    ),
    impact: Impact::Microseconds,
    when: When::Boot,
    knobs: &[&knobs::TSC],
    wanted: Wanted::Text("tsc=reliable"),
    judge: Judge::Ask(judge_tsc_watchdog),
    ..Check::NEW
};

fn judge_tsc_watchdog(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let arch = &facts.kernel.arch;
    let draft = draft.read(arch, String::clone);
    match arch.value() {
        None => return draft.unreadable(arch),
        Some(name) if !KnobArch::X86.has(name) => {
            return draft.not_applicable(format!("not on {name}"));
        }
        Some(_) => {}
    }
    let source = &facts.clock.source;
    let draft = draft.read(source, String::clone);
    match source.value().map(String::as_str) {
        None => return draft.unreadable(source),
        Some("tsc") => {}
        Some(name) => return draft.not_applicable(format!("the clock is {name}")),
    }
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.unreadable(cmdline);
    };
    let given: Vec<&str> = line.all("tsc").flatten().collect();
    let written: Vec<String> = given.iter().map(|value| format!("tsc={value}")).collect();
    let draft = draft.evidence([Evidence::of(cmdline, |_| match written.as_slice() {
        [] => "no tsc=".into(),
        written => written.join(" "),
    })]);
    if given.contains(&"reliable") {
        return draft.good("tsc=reliable");
    }
    let draft = draft.remedies([Remedy::Boot { parameter: "tsc=reliable".into() }]);
    if given.contains(&"nowatchdog") {
        return draft.doubtful(
            "tsc=nowatchdog leaves the timer that looks at TSC_ADJUST every ten minutes",
        );
    }
    draft.doubtful("no tsc=reliable: the TSC may be checked on each CPU in turn")
}

#[cfg(test)]
mod clocksource_tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_guest};
    use rtproof_host::Reading;

    fn with(source: &str) -> Facts {
        let mut facts = good();
        facts.clock.source = Reading::known(facts.clock.source.path.clone(), source.into());
        facts
    }

    fn status(source: &str) -> Status {
        CLOCKSOURCE_CHECK.judge(&with(source), &intent()).status
    }

    #[test]
    fn by_name() {
        assert_eq!(status("tsc"), Good);
        assert_eq!(status("arch_sys_counter"), Good);
        assert_eq!(status("hpet"), Bad);
        assert_eq!(status("jiffies"), Bad);
        assert_eq!(status("imx_gpt"), Doubtful);
        assert_eq!(status("tsc-early"), Doubtful);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let mut facts = good();
        facts.clock.source = Reading::denied(facts.clock.source.path.clone(), "EACCES");
        assert_eq!(CLOCKSOURCE_CHECK.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn kvm_clock_belongs_to_a_guest() {
        let mut facts = with("kvm-clock");
        assert_eq!(CLOCKSOURCE_CHECK.judge(&facts, &intent()).status, Doubtful);
        set_guest(&mut facts, "kvm");
        assert_eq!(CLOCKSOURCE_CHECK.judge(&facts, &intent()).status, Good);
        facts.virt.hypervisor = Reading::denied("cpuid", "seccomp");
        assert_eq!(CLOCKSOURCE_CHECK.judge(&facts, &intent()).status, Doubtful);
    }

    #[test]
    fn the_remedy_is_what_the_machine_offers() {
        let mut facts = with("hpet");
        let finding = CLOCKSOURCE_CHECK.judge(&facts, &intent());
        assert_eq!(finding.remedies[1], Remedy::Boot { parameter: "clocksource=tsc".into() });
        facts.clock.available = Reading::known("/sys/x", vec!["hpet".into()]);
        let finding = CLOCKSOURCE_CHECK.judge(&facts, &intent());
        assert!(matches!(finding.remedies[..], [Remedy::Manual { .. }]));
    }
}

#[cfg(test)]
mod hung_task_tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};
    use rtproof_host::Reading;

    fn status(timeout: &str, interval: &str) -> Status {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::HUNG_TASK, timeout);
        fill_setting(&mut facts, &knobs::HUNG_TASK_INTERVAL, interval);
        HUNG_TASK.judge(&facts, &intent()).status
    }

    #[test]
    fn by_the_shorter_period() {
        assert_eq!(status("0", "?"), Good);
        assert_eq!(status("600", "0"), Good);
        assert_eq!(status("1200", "900"), Good);
        assert_eq!(status("120", "0"), Doubtful);
        assert_eq!(status("1200", "60"), Doubtful);
        assert_eq!(status("?", "0"), Unknown);
        assert_eq!(status("600", "?"), Unknown);
    }

    #[test]
    fn a_missing_file_needs_the_kernel_s_word() {
        let mut facts = good();
        set_setting(&mut facts, &knobs::HUNG_TASK, Reading::absent("x"));
        assert_eq!(HUNG_TASK.judge(&facts, &intent()).status, NotApplicable);
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(HUNG_TASK.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod lockup_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, fill_setting, good, intent, set_config, set_setting};

    fn machine(nmi: &str, soft: &str, mask: &str) -> Facts {
        let mut facts = good();
        let any = if nmi == "1" || soft == "1" { "1" } else { "0" };
        fill_setting(&mut facts, &knobs::WATCHDOG, any);
        fill_setting(&mut facts, &knobs::NMI_WATCHDOG, nmi);
        fill_setting(&mut facts, &knobs::SOFT_WATCHDOG, soft);
        fill_setting(&mut facts, &knobs::WATCHDOG_CPUMASK, mask);
        facts
    }

    #[test]
    fn off_or_elsewhere_is_good() {
        let facts = machine("0", "1", "0-1,8-79");
        assert_eq!(NMI.judge(&facts, &intent()).status, Good);
        let finding = SOFT.judge(&facts, &intent());
        assert_eq!(finding.status, Good, "{finding:?}");
        assert_eq!(MASK.judge(&facts, &intent()).status, Good);
        let facts = machine("0", "0", "0-3");
        assert_eq!(SOFT.judge(&facts, &intent()).status, Good);
        assert_eq!(MASK.judge(&facts, &intent()).status, NotApplicable);
    }

    #[test]
    fn on_real_time_cpus_is_bad_and_the_mask_keeps_the_net_for_the_others() {
        let facts = machine("1", "1", "0-3");
        let finding = NMI.judge(&facts, &intent());
        assert_eq!((finding.status, finding.summary.as_str()), (Bad, "on, and watches CPUs 2-3"));
        assert_eq!(SOFT.judge(&facts, &intent()).status, Bad);
        let finding = MASK.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        let paths = vec!["/proc/sys/kernel/watchdog_cpumask".into()];
        assert_eq!(finding.remedies, [Remedy::set(&knobs::WATCHDOG_CPUMASK, paths, "0-1")]);
    }

    #[test]
    fn nothing_can_be_moved_where_every_cpu_is_real_time() {
        let all = Intent { rt_cpus: cpus(&[0, 1, 2, 3]), housekeeping: cpus(&[]), ..intent() };
        let facts = machine("0", "1", "0-3");
        assert_eq!(MASK.judge(&facts, &all).status, NotApplicable);
        assert_eq!(SOFT.judge(&facts, &all).status, Bad);
    }

    #[test]
    fn a_missing_file_needs_the_kernel_s_word() {
        let mut facts = machine("0", "0", "0-3");
        set_setting(&mut facts, &knobs::SOFT_WATCHDOG, Reading::absent("x"));
        set_config(&mut facts, "SOFTLOCKUP_DETECTOR", Some("y"));
        assert_eq!(SOFT.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "SOFTLOCKUP_DETECTOR", None);
        assert_eq!(SOFT.judge(&facts, &intent()).status, NotApplicable);
        let mut facts = machine("1", "1", "0-3");
        set_setting(&mut facts, &knobs::WATCHDOG_CPUMASK, Reading::denied("x", "EACCES"));
        assert_eq!(NMI.judge(&facts, &intent()).status, Unknown);
        assert_eq!(MASK.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod mce_ce_tests {
    use super::*;
    use crate::Profile;
    use crate::Status::{self, Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};
    use rtproof_host::Reading;

    fn machine(ignore: &str, disabled: &str, interval: &str) -> Facts {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::MCE_IGNORE_CE, ignore);
        fill_setting(&mut facts, &knobs::MCE_CMCI_DISABLED, disabled);
        fill_setting(&mut facts, &knobs::MCE_CHECK_INTERVAL, interval);
        facts
    }

    fn status(choice: Choice, ignore: &str, disabled: &str, interval: &str) -> Status {
        let mut profile = Profile::default();
        profile.choices.corrected_errors = choice;
        let intent = Intent { profile, ..intent() };
        MCE_CE.judge(&machine(ignore, disabled, interval), &intent).status
    }

    #[test]
    fn the_profile_decides() {
        assert_eq!(status(Choice::Off, "1", "0", "300"), Good);
        assert_eq!(status(Choice::Off, "0", "1", "0"), Good);
        assert_eq!(status(Choice::Off, "0", "0", "300"), Bad);
        assert_eq!(status(Choice::Off, "0", "0", "0"), Bad);
        assert_eq!(status(Choice::Either, "0", "0", "300"), Good);
        assert_eq!(status(Choice::On, "0", "0", "300"), Good);
        assert_eq!(status(Choice::On, "1", "0", "300"), Doubtful);
        assert_eq!(status(Choice::Off, "0", "x", "300"), Unknown);
    }

    #[test]
    fn another_architecture_and_a_guest_without_machine_checks() {
        let mut facts = machine("0", "0", "300");
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(MCE_CE.judge(&facts, &intent()).status, NotApplicable);
        let mut facts = machine("0", "0", "300");
        set_setting(&mut facts, &knobs::MCE_IGNORE_CE, Reading::absent("x"));
        assert_eq!(MCE_CE.judge(&facts, &intent()).status, Unknown);
        let setting = facts.settings.get_mut("mce-ignore-ce").unwrap();
        let folder = "/sys/devices/system";
        setting.missing_from = Some(Reading::known(folder, "holds no machinecheck".into()));
        assert_eq!(MCE_CE.judge(&facts, &intent()).status, NotApplicable);
    }
}

#[cfg(test)]
mod ntp_steps_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    fn judge(running: &[(&str, Option<bool>)]) -> Finding {
        let unit = |&(name, running): &(&str, Option<bool>)| {
            let file = format!("/usr/lib/systemd/system/{name}");
            (name.to_owned(), Unit { file, enabled: true, masked: false, running })
        };
        let mut facts = good();
        let units = running.iter().map(unit).collect();
        facts.units = Reading::known("/usr/lib/systemd/system", units);
        NTP_STEPS.judge(&facts, &intent())
    }

    #[test]
    fn none_or_one_is_good_two_are_doubtful() {
        assert_eq!(judge(&[("irqbalance.service", Some(true))]).status, Good);
        let one = [("chrony.service", Some(true)), ("systemd-timesyncd.service", Some(false))];
        let finding = judge(&one);
        assert_eq!(finding.status, Good);
        assert!(finding.summary.starts_with("chrony.service may step"), "{}", finding.summary);
        let two = [("chrony.service", Some(true)), ("systemd-timesyncd.service", None)];
        let finding = judge(&two);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.remedies.len(), 1);
    }

    #[test]
    fn a_container_does_not_see_the_host() {
        let mut facts = good();
        facts.virt.container = Reading::known("/run/.containerenv", Some("podman".into()));
        assert_eq!(NTP_STEPS.judge(&facts, &intent()).status, Unknown);
        facts.units = Reading::absent("/etc/systemd/system");
        assert_eq!(NTP_STEPS.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod tsc_watchdog_tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn status(line: &str) -> Status {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        TSC_WATCHDOG.judge(&facts, &intent()).status
    }

    #[test]
    fn only_reliable_ends_both_timers() {
        assert_eq!(status("quiet tsc=reliable"), Good);
        assert_eq!(status("tsc=nowatchdog tsc=reliable"), Good);
        assert_eq!(status("tsc=nowatchdog"), Doubtful);
        assert_eq!(status("quiet"), Doubtful);
    }

    #[test]
    fn another_clock_or_architecture_has_no_such_watchdog() {
        let judge = |facts: &Facts| TSC_WATCHDOG.judge(facts, &intent()).status;
        let mut facts = good();
        facts.clock.source = Reading::known("/sys/x", "kvm-clock".into());
        assert_eq!(judge(&facts), NotApplicable);
        facts.clock.source = Reading::absent("/sys/x");
        assert_eq!(judge(&facts), Unknown);
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(judge(&facts), NotApplicable);
    }
}
