//! The frequency of the CPUs: governor, driver, limits, turbo, preferences, the uncore.

use rtproof_host::{
    CpuList, Facts, Knob, Reading,
    facts::cpu::Cpu,
    knobs::power::{self as knobs, GOVERNOR},
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{built_with, guest, is_bare_metal, option, rt_cpus, without_cpu_folder};
use crate::profile::Choice;
use crate::{Evidence, Finding, Impact, Intent, Remedy, When, machine, value};

// What the checks of the frequency share: which CPUs keep theirs, and what it means that a machine
// has no cpufreq.

/// The frequency that the limits leave no choice but to keep.
fn pinned_hz(cpu: &Cpu) -> Option<u64> {
    let (min, max) = (cpu.freq.min_hz.value()?, cpu.freq.max_hz.value()?);
    (min == max).then_some(*min)
}

/// Whether the governor asks for the highest frequency all the time.
fn is_performance(cpu: &Cpu) -> bool {
    cpu.freq.governor.value().is_some_and(|governor| governor == "performance")
}

/// Whether software keeps the frequency constant.
pub(super) fn is_held(cpu: &Cpu) -> bool {
    is_performance(cpu) || pinned_hz(cpu).is_some()
}

/// What shows whether the frequency of these CPUs is held.
fn holding(cpus: &[&Cpu]) -> Vec<Evidence> {
    let governors = cpus.iter().map(|cpu| (cpu.id, &cpu.freq.governor));
    let mut evidence = machine::grouped(governors, String::clone);
    let pinned: Vec<&Cpu> =
        cpus.iter().copied().filter(|cpu| !is_performance(cpu) && is_held(cpu)).collect();
    evidence.extend(limits(&pinned));
    evidence
}

/// Lowest and highest frequency of these CPUs.
pub(super) fn limits(cpus: &[&Cpu]) -> Vec<Evidence> {
    let mut evidence = machine::grouped(cpus.iter().map(|cpu| (cpu.id, &cpu.freq.min_hz)), mhz);
    evidence.extend(machine::grouped(cpus.iter().map(|cpu| (cpu.id, &cpu.freq.max_hz)), mhz));
    evidence
}

/// A frequency in MHz.
fn mhz(hz: &u64) -> String {
    format!("{} MHz", hz / 1_000_000)
}

/// No cpufreq: the trap of other audits, which read no file and print OK.
pub(super) fn absent(draft: FindingBuilder, facts: &Facts) -> Finding {
    if let Some(why) = without_cpu_folder(facts) {
        return draft.no_cpu_folder(facts, why);
    }
    if let Some(hypervisor) = guest(facts) {
        return draft
            .evidence([Evidence::of(&facts.virt.hypervisor, |_| hypervisor.into())])
            .remedies([Remedy::Manual { text: "set the host's governor to performance".into() }])
            .unknown(format!("no cpufreq in this {hypervisor} guest: the host decides"));
    }
    if is_bare_metal(facts) && built_with(facts, "CPU_FREQ") == Some(false) {
        return draft
            .evidence([option(facts, "CPU_FREQ")])
            .not_applicable("this kernel changes no frequency: built without CONFIG_CPU_FREQ");
    }
    draft.unknown("no cpufreq is seen here: firmware may change the frequency all the same")
}

// Which part switches the frequency: the kernel's governor, or the hardware?
//
// The sources disagree: profiles of tuned boot with `intel_pstate=disable` or `passive`, OpenShift
// offers active, passive and automatic. No mode is wrong, so the check reports the current one.

pub(super) static CPUFREQ_DRIVER: Check = Check {
    id: "cpufreq-driver",
    title: "driver that sets the frequency of the real-time CPUs, and its mode",
    why: "in active mode the processor chooses the frequency by itself within its limits, at times \
          that the kernel does not know",
    source: "Documentation/admin-guide/pm/intel_pstate.rst; \
             Documentation/admin-guide/pm/amd-pstate.rst; tuned, profile \
             cpu-partitioning-powersave (intel_pstate=passive); OpenShift node tuning operator",
    trade_off: Some(
        "sources disagree: some boot with intel_pstate=disable or passive, so that the kernel \
         alone sets the frequency, others stay active; measure both",
    ),
    impact: Impact::Information,
    when: When::Boot,
    knobs: &[&knobs::INTEL_PSTATE, &knobs::AMD_PSTATE],
    wanted: Wanted::Text("known"),
    judge: Judge::Ask(judge_cpufreq_driver),
    ..Check::NEW
};

fn judge_cpufreq_driver(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let (cpus, missing) = rt_cpus(facts, intent);
    let drivers = cpus.iter().map(|cpu| (cpu.id, &cpu.freq.driver));
    let draft = draft.evidence(machine::grouped(drivers, String::clone));
    if let Some(unreadable) = cpus.iter().find(|cpu| cpu.freq.driver.value().is_none()) {
        let reading = &unreadable.freq.driver;
        return match (guest(facts), reading.is_absent()) {
            (Some(hypervisor), true) => draft
                .read(&facts.virt.hypervisor, |_| hypervisor.into())
                .not_applicable(format!("none in this {hypervisor} guest: the host has it")),
            (None, true) => absent(draft, facts),
            (_, false) => draft.unreadable(reading),
        };
    }
    if !missing.is_empty() {
        return draft.missing_cpus(facts, &missing);
    }
    let mut names: Vec<&str> =
        cpus.iter().filter_map(|cpu| cpu.freq.driver.value().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    // The mode of the driver that is not in use says "off", or is not there.
    let modes =
        [&knobs::INTEL_PSTATE, &knobs::AMD_PSTATE].map(|knob| value::knob_text(facts, knob));
    let is_used = |mode: &&String| !matches!(mode.as_str(), "off" | "disable");
    let known = modes.iter().find(|mode| mode.value().filter(is_used).is_some());
    let mode = known.and_then(|mode| mode.value()).map(|mode| format!(", {mode} mode"));
    draft.evidence(known.map(|mode| Evidence::of(mode, String::clone))).good(format!(
        "{}{} on {}",
        names.join(", "),
        mode.unwrap_or_default(),
        machine::cpus(&intent.rt_cpus)
    ))
}

// Does the frequency of the real-time CPUs stay where it is?
//
// The trap is the machine without cpufreq: in a guest the host decides, and it cannot be seen
// from here; on bare metal the kernel may simply be built without it (`absent`).

pub(super) static CPUFREQ_GOVERNOR: Check = Check {
    id: "cpufreq-governor",
    title: "frequency governor of the real-time CPUs",
    why: "other governors lower the frequency of an idle CPU: the next cycle starts slow, and the \
          switch itself stalls the CPU on some machines",
    source: "Documentation/admin-guide/pm/cpufreq.rst; \
             Documentation/core-api/real-time/kernel-configuration.rst; Codethink, \"Configuring \
             Linux systems to stabilise latency\"",
    wanted: Wanted::Text("performance"),
    judge: Judge::Ask(judge_cpufreq_governor),
    ..Check::NEW
};

fn judge_cpufreq_governor(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    let (cpus, missing) = rt_cpus(facts, intent);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    if let Some(why) = without_cpu_folder(facts) {
        return draft.no_cpu_folder(facts, why);
    }
    let governors = cpus.iter().map(|cpu| (cpu.id, &cpu.freq.governor));
    let draft = draft.evidence(machine::grouped(governors, String::clone));
    let varying: Vec<&Cpu> = cpus.iter().copied().filter(|cpu| varies(cpu)).collect();
    if !varying.is_empty() {
        return judge_varying(draft, &varying);
    }
    if let Some(unreadable) = cpus.iter().find(|cpu| cpu.freq.governor.value().is_none()) {
        let reading = &unreadable.freq.governor;
        return if reading.is_absent() { absent(draft, facts) } else { draft.unreadable(reading) };
    }
    if !missing.is_empty() {
        return draft.missing_cpus(facts, &missing);
    }
    let pinned: Vec<&Cpu> = cpus.into_iter().filter(|cpu| !is_performance(cpu)).collect();
    if pinned.is_empty() {
        return draft.good(format!("performance on {}", machine::cpus(&intent.rt_cpus)));
    }
    judge_pinned(draft, &pinned)
}

/// Whether the frequency is known to follow the load.
fn varies(cpu: &Cpu) -> bool {
    let governor = cpu.freq.governor.value();
    governor.is_some_and(|governor| governor != "performance" && governor != "userspace")
        && pinned_hz(cpu).is_none()
}

fn judge_varying(draft: FindingBuilder, varying: &[&Cpu]) -> Finding {
    let mut governors: Vec<&str> =
        varying.iter().filter_map(|cpu| cpu.freq.governor.value().map(String::as_str)).collect();
    governors.sort_unstable();
    governors.dedup();
    let cpus = CpuList::new(varying.iter().map(|cpu| cpu.id));
    let paths = varying.iter().map(|cpu| cpu.freq.governor.path.clone()).collect();
    let remedies = [
        Remedy::set(&GOVERNOR, paths, "performance"),
        Remedy::Boot { parameter: "cpufreq.default_governor=performance".into() },
    ];
    let summary = format!("{} on {}", machine::first_few(&governors, 3), machine::cpus(&cpus));
    draft.remedies(remedies).bad(summary)
}

/// Every CPU is at performance, pinned by its limits, or set by hand; at least one is not at
/// performance.
fn judge_pinned(draft: FindingBuilder, pinned: &[&Cpu]) -> Finding {
    let cpus = CpuList::new(pinned.iter().map(|cpu| cpu.id));
    let draft = draft.evidence(limits(pinned));
    if pinned.iter().all(|cpu| pinned_hz(cpu).is_some()) {
        return draft
            .good(format!("{}: pinned, lowest equals highest frequency", machine::cpus(&cpus)));
    }
    let paths = pinned.iter().map(|cpu| cpu.freq.governor.path.clone()).collect();
    draft
        .remedies([Remedy::set(&GOVERNOR, paths, "performance")])
        .doubtful(format!("userspace on {}: a program sets the frequency", machine::cpus(&cpus)))
}

// Can the frequency of the real-time CPUs move between its limits?
//
// Equal limits hold it whatever the governor does. The governor `performance` asks for the highest
// all the time, which comes to the same (intel_pstate even sets both limits of HWP to it); what
// the hardware does by itself within the limits is the question of `turbo-boost`.

pub(super) static CPUFREQ_MINMAX: Check = Check {
    id: "cpufreq-minmax",
    title: "lowest and highest frequency of the real-time CPUs",
    why: "between its limits the frequency follows the load: the same work takes longer after \
          idle, and some processors stop while they switch",
    source: "Documentation/admin-guide/pm/cpufreq.rst; drivers/cpufreq/intel_pstate.c \
             (intel_pstate_hwp_set); Codethink, \"Configuring Linux systems to stabilise latency\"",
    trade_off: Some(
        "a fixed frequency costs power and heat; sound on a desktop bears one that moves",
    ),
    impact: Impact::Tens,
    judge: Judge::Ask(judge_cpufreq_minmax),
    ..Check::NEW
};

fn judge_cpufreq_minmax(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let is_requested = intent.profile.choices.fixed_frequency == Choice::On;
    let wanted =
        if is_requested { "lowest equal to highest, or governor performance" } else { "known" };
    let draft = draft.wanted(wanted).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let (cpus, missing) = rt_cpus(facts, intent);
    let shown: Vec<&Cpu> = match intent.proposed {
        Some(_) => facts.cpus.cpus.iter().collect(),
        None => cpus.clone(),
    };
    let most = shown.iter().map(|cpu| (cpu.id, &cpu.freq.hardware_max_hz));
    let most = machine::grouped(most.filter(|(_, most)| most.value().is_some()), mhz);
    let draft = draft.evidence(limits(&shown)).evidence(most);
    let range = |cpus: &[&Cpu]| ranges(facts, intent, cpus);
    let is_moving = |cpu: &&Cpu| {
        let limits = (cpu.freq.min_hz.value(), cpu.freq.max_hz.value());
        let is_open = matches!(limits, (Some(min), Some(max)) if min < max);
        is_open && cpu.freq.governor.value().is_some() && !is_performance(cpu)
    };
    let moving: Vec<&Cpu> = cpus.iter().copied().filter(is_moving).collect();
    if is_requested && !moving.is_empty() {
        let summary = machine::frequency_range_of_each(&moving, ": ");
        let draft = draft.evidence(holding(&moving)).remedies(remedies(&moving));
        return draft.doubtful(summary);
    }
    for cpu in &cpus {
        for limit in [&cpu.freq.min_hz, &cpu.freq.max_hz] {
            if limit.is_absent() {
                return absent(draft, facts);
            } else if limit.value().is_none() {
                return draft.unreadable(limit);
            }
        }
        if pinned_hz(cpu).is_none() && cpu.freq.governor.value().is_none() {
            return draft.unreadable(&cpu.freq.governor);
        }
    }
    if !missing.is_empty() {
        return draft.missing_cpus(facts, &missing);
    }
    let open: Vec<&Cpu> = cpus.iter().copied().filter(|cpu| pinned_hz(cpu).is_none()).collect();
    if open.is_empty() {
        return draft.good(format!("fixed: {}", range(&cpus)));
    }
    let governors = open.iter().map(|cpu| (cpu.id, &cpu.freq.governor));
    let draft = draft.evidence(machine::grouped(governors, String::clone));
    if moving.is_empty() {
        return draft.good(format!("governor performance asks for the highest: {}", range(&cpus)));
    }
    draft.good(format!("it may move, which this profile bears: {}", range(&moving)))
}

/// The range of these CPUs, beside that of the others where those may still be chosen.
fn ranges(facts: &Facts, intent: &Intent, cpus: &[&Cpu]) -> String {
    let own = machine::frequency_range(cpus);
    let is_open = |cpu: &&Cpu| {
        let freq = &cpu.freq;
        !intent.rt_cpus.contains(cpu.id)
            && freq.min_hz.value().is_some()
            && freq.max_hz.value().is_some()
    };
    let others: Vec<&Cpu> = facts.cpus.cpus.iter().filter(is_open).collect();
    let differ = machine::frequency_range(&others) != own;
    match intent.proposed.is_some() && !others.is_empty() && differ {
        true => {
            format!("{own}; not proposed: {}", machine::frequency_range_of_each(&others, " "))
        }
        false => own,
    }
}

/// The governor first: it holds where limits cannot be equal.
fn remedies(moving: &[&Cpu]) -> Vec<Remedy> {
    let governors = moving.iter().map(|cpu| cpu.freq.governor.path.clone()).collect();
    let mut remedies = vec![Remedy::set(&GOVERNOR, governors, "performance")];
    let mut limits: Vec<u64> =
        moving.iter().filter_map(|c| c.freq.max_hz.value().copied()).collect();
    limits.sort_unstable();
    limits.dedup();
    for limit in limits {
        let of = moving.iter().filter(|cpu| cpu.freq.max_hz.value() == Some(&limit));
        let paths = of.map(|cpu| cpu.freq.min_hz.path.clone()).collect();
        remedies.push(Remedy::set(&knobs::MIN_FREQ, paths, (limit / 1_000).to_string()));
    }
    remedies
}

// What may the hardware prefer where it chooses the frequency by itself?
//
// Only where the frequency is not held: with the governor `performance` the drivers set the hint
// themselves and refuse another (intel_pstate.c, amd-pstate.c), and equal limits leave nothing to
// choose.

pub(super) static EPP: Check = Check {
    id: "epp",
    title: "energy-performance preference of the real-time CPUs",
    why: "a processor that prefers saving energy raises its frequency late after idle, so that the \
          next cycle starts slow",
    source: "Documentation/admin-guide/pm/intel_pstate.rst (Energy vs Performance Hints); \
             Documentation/admin-guide/pm/amd-pstate.rst; tuned, profile throughput-performance",
    impact: Impact::Tens,
    knobs: &[&knobs::EPP],
    wanted: Wanted::Text("performance"),
    judge: Judge::Ask(judge_epp),
    ..Check::NEW
};

fn judge_epp(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let found = super::of_cpus(facts, intent, &knobs::EPP);
    let draft = draft.evidence(machine::grouped(found.iter().copied(), String::clone));
    if found.is_empty() {
        let why = "no such hint: no hardware that is seen here chooses the frequency by itself";
        return super::missing_value(draft, facts, &knobs::EPP, why);
    }
    if let Some((_, unreadable)) = found.iter().find(|(_, hint)| hint.value().is_none()) {
        return draft.unreadable(unreadable);
    }
    let missing = super::missing(intent, &found);
    if !missing.is_empty() {
        return draft.missing_cpus(facts, &missing);
    }
    let is_other = |hint: &&str| !matches!(*hint, "performance" | "0");
    let mut others: Vec<&str> =
        found.iter().filter_map(|(_, hint)| hint.value().map(String::as_str)).collect();
    others.retain(|hint| is_other(hint));
    others.sort_unstable();
    others.dedup();
    if others.is_empty() {
        return draft.good(format!("performance on {}", machine::cpus(&intent.rt_cpus)));
    }
    let (cpus, _) = rt_cpus(facts, intent);
    let others = machine::first_few(&others, 3);
    let draft = draft.evidence(holding(&cpus));
    if cpus.iter().all(|cpu| is_held(cpu)) {
        return draft.good(format!("{others}, which decides nothing: the frequency is held"));
    }
    let paths =
        found.iter().filter(|(_, hint)| hint.value().is_some_and(|v| is_other(&v.as_str())));
    let paths = paths.map(|(_, hint)| hint.path.clone()).collect();
    draft
        .remedies([Remedy::set(&knobs::EPP, paths, "performance")])
        .doubtful(format!("{others} while the frequency may move"))
}

// How far down may intel_pstate go?
//
// The lowest performance in percent of the highest. It matters where neither the governor nor
// equal limits hold the frequency.

pub(super) static MIN_PERF_PCT: Check = Check {
    id: "min-perf-pct",
    title: "lowest performance that intel_pstate may set",
    why: "below 100 the frequency of an idle CPU drops, and the next cycle starts slow",
    source: "Documentation/admin-guide/pm/intel_pstate.rst (min_perf_pct); tuned, profile \
             throughput-performance",
    impact: Impact::Tens,
    knobs: &[&knobs::MIN_PERF_PCT],
    wanted: Wanted::Text("100, or the frequency held by other means"),
    judge: Judge::Ask(judge_min_perf_pct),
    ..Check::NEW
};

fn judge_min_perf_pct(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let found = value::knob_text(facts, &knobs::MIN_PERF_PCT);
    if found.is_absent() {
        let why = "intel_pstate does not set the frequency, or has limits for each CPU alone";
        return super::missing_value(draft, facts, &knobs::MIN_PERF_PCT, why);
    }
    let draft = draft.read(&found, String::clone);
    let Some(text) = found.value() else {
        return draft.unreadable(&found);
    };
    let Ok(percent) = text.parse::<u32>() else {
        return draft.unreadable(&Reading::<u32>::malformed(&found.path, text, "a percentage"));
    };
    if percent >= 100 {
        return draft.good("100 %: nothing but the highest");
    }
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let (cpus, missing) = rt_cpus(facts, intent);
    if !missing.is_empty() {
        return draft.missing_cpus(facts, &missing);
    }
    let draft = draft.evidence(holding(&cpus));
    if let Some(unreadable) = cpus.iter().find(|cpu| cpu.freq.governor.value().is_none()) {
        return draft.unreadable(&unreadable.freq.governor);
    }
    if cpus.iter().all(|cpu| is_held(cpu)) {
        return draft.good(format!("{percent} %, which decides nothing: the frequency is held"));
    }
    if intent.profile.choices.fixed_frequency != Choice::On {
        return draft.good(format!("{percent} %, which this profile bears"));
    }
    draft
        .remedies([Remedy::set(&knobs::MIN_PERF_PCT, vec![found.path.clone()], "100")])
        .doubtful(format!("{percent} %: the frequency of the real-time CPUs may drop"))
}

// May the processor leave its sustained frequency for a higher one?
//
// A question of the profile: turbo makes each cycle shorter on average and less even, because what
// it reaches depends on heat, power and how many cores are awake.

pub(super) static TURBO_BOOST: Check = Check {
    id: "turbo-boost",
    title: "turbo frequencies",
    why: "how high a turbo frequency is depends on heat, power and the other cores: the same work \
          takes a different time from one cycle to the next",
    source: "Documentation/admin-guide/pm/cpufreq.rst (Frequency Boost Support); \
             Documentation/admin-guide/pm/intel_pstate.rst (no_turbo); tuned, profile \
             cpu-partitioning-powersave",
    trade_off: Some(
        "off gives even times, on gives shorter ones on average. The kernel's documentation names \
         both, and tuned leaves it to the user. Off costs the share of the frequency above the \
         sustained one",
    ),
    impact: Impact::Microseconds,
    knobs: &[&knobs::NO_TURBO, &knobs::BOOST, &knobs::CPU_BOOST],
    judge: Judge::Ask(judge_turbo_boost),
    ..Check::NEW
};

fn judge_turbo_boost(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let choice = intent.profile.choices.turbo;
    let wanted = match choice {
        Choice::On => "on",
        Choice::Off => "off",
        Choice::Either => "known",
    };
    let draft = draft.wanted(wanted);
    let (no_turbo, boost) =
        (value::knob_text(facts, &knobs::NO_TURBO), value::knob_text(facts, &knobs::BOOST));
    if !no_turbo.is_absent() && facts.settings.contains_key(knobs::NO_TURBO.id) {
        let draft = draft.read(&no_turbo, String::clone);
        return match no_turbo.value().map(String::as_str) {
            Some("1") => answer(draft, choice, false, &knobs::NO_TURBO, &no_turbo, "0"),
            Some("0") => answer(draft, choice, true, &knobs::NO_TURBO, &no_turbo, "1"),
            _ => draft.unreadable(&odd(no_turbo)),
        };
    }
    if boost.is_absent() {
        let (Some(intel), Some(other)) = (
            value::missing_from(facts, &knobs::NO_TURBO),
            value::missing_from(facts, &knobs::BOOST),
        ) else {
            return match without_cpu_folder(facts) {
                Some(why) => draft.no_cpu_folder(facts, why),
                None => draft.unreadable(&no_turbo.or_else(|| boost)),
            };
        };
        let draft = draft.read(intel, String::clone).read(other, String::clone);
        return match guest(facts) {
            Some(hypervisor) => draft
                .read(&facts.virt.hypervisor, |_| hypervisor.into())
                .not_applicable(format!("no switch in this {hypervisor} guest: the host has it")),
            None => draft.not_applicable("the frequency driver has no switch for it"),
        };
    }
    let draft = draft.read(&boost, String::clone);
    match boost.value().map(String::as_str) {
        Some("0") => answer(draft, choice, false, &knobs::BOOST, &boost, "1"),
        Some("1") => {
            // On for the machine; a policy may still have it off.
            let own = super::of_cpus(facts, intent, &knobs::CPU_BOOST);
            let is_off = |(_, value): &(u32, &Reading<String>)| {
                value.value().is_some_and(|value| value == "0")
            };
            let is_off = super::missing(intent, &own).is_empty()
                && !own.is_empty()
                && own.iter().all(is_off);
            if is_off {
                let own = machine::grouped(own, String::clone);
                return answer(draft.evidence(own), choice, false, &knobs::BOOST, &boost, "1");
            }
            answer(draft, choice, true, &knobs::BOOST, &boost, "0")
        }
        _ => draft.unreadable(&odd(boost)),
    }
}

/// Something else than 0 or 1 is no value.
fn odd(reading: Reading<String>) -> Reading<String> {
    reading.and_then(|path, text| Reading::malformed(path, &text, "0 or 1"))
}

/// `other`: what to write for the opposite.
fn answer(
    draft: FindingBuilder,
    choice: Choice,
    is_on: bool,
    knob: &'static Knob,
    switch: &Reading<String>,
    other: &str,
) -> Finding {
    let summary = if is_on { "turbo frequencies may be used" } else { "no turbo frequencies" };
    if matches!((choice, is_on), (Choice::Either, _) | (Choice::On, true) | (Choice::Off, false)) {
        return draft.good(summary);
    }
    draft.remedies([Remedy::set(knob, vec![switch.path.clone()], other)]).doubtful(summary)
}

// Does the clock of what lies between the cores follow the load?
//
// Mesh, last-level cache and memory controller have a frequency of their own on Intel's servers
// and newer clients; the processor lowers it when little is going on.

pub(super) static UNCORE_FREQ: Check = Check {
    id: "uncore-freq",
    title: "lowest frequency of the uncore (mesh, last-level cache, memory controller)",
    why: "after a quiet time the uncore runs slowly: every access that leaves the core's own \
          caches takes longer until it has sped up",
    source: "Documentation/admin-guide/pm/intel_uncore_frequency_scaling.rst; tuned, plugin uncore",
    trade_off: Some("a fixed uncore frequency takes power that the cores could have used"),
    impact: Impact::Microseconds,
    knobs: &[&knobs::UNCORE_MIN_FREQ, &knobs::UNCORE_MAX_FREQ],
    wanted: Wanted::Text("lowest equal to highest"),
    judge: Judge::Ask(judge_uncore_freq),
    ..Check::NEW
};

fn judge_uncore_freq(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let lowest = value::knob_values(facts, &knobs::UNCORE_MIN_FREQ);
    if lowest.is_empty() {
        let why = "no uncore frequency that can be set: another processor, a guest, or the \
                   module intel_uncore_frequency is not loaded";
        return super::missing_value(draft, facts, &knobs::UNCORE_MIN_FREQ, why);
    }
    let highest = value::knob_values(facts, &knobs::UNCORE_MAX_FREQ);
    let shown = lowest.iter().chain(highest).map(|value| &value.reading);
    let draft = draft.evidence(machine::by_path(shown));
    let mut open: Vec<(String, &Reading<String>, &str)> = Vec::new();
    for value in lowest {
        let Some(max) = super::value_of(facts, &knobs::UNCORE_MAX_FREQ, &value.of) else {
            return draft.unreadable(&value::knob_text(facts, &knobs::UNCORE_MAX_FREQ));
        };
        for reading in [&value.reading, max] {
            let Some(text) = reading.value() else { return draft.unreadable(reading) };
            if text.parse::<u64>().is_err() {
                return draft.unreadable(&Reading::<u64>::malformed(&reading.path, text, "kHz"));
            }
        }
        let (min, max) = (&value.reading, max.value().map_or("", String::as_str));
        if min.value().is_some_and(|min| min != max) {
            let from = min.value().map_or("", String::as_str);
            open.push((format!("{} {from}-{max} kHz", value.of), min, max));
        }
    }
    if open.is_empty() {
        return draft.good("fixed: lowest equals highest");
    }
    let names: Vec<&String> = open.iter().map(|(name, ..)| name).collect();
    let summary = machine::first_few(&names, 4);
    if intent.profile.choices.fixed_frequency != Choice::On {
        return draft.good(format!("{summary}, which this profile bears"));
    }
    let write = |(_, min, max): &(String, &Reading<String>, &str)| {
        Remedy::set(&knobs::UNCORE_MIN_FREQ, vec![min.path.clone()], *max)
    };
    let remedies: Vec<Remedy> = open.iter().map(write).collect();
    draft.remedies(remedies).doubtful(format!("{summary}: it may follow the load"))
}

#[cfg(test)]
mod cpufreq_driver_tests {
    use super::*;
    use crate::Status::{Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_guest};
    use rtproof_host::Reading;

    #[test]
    fn the_driver_is_reported_with_its_mode() {
        let mut facts = good();
        let finding = CPUFREQ_DRIVER.judge(&facts, &intent());
        assert_eq!((finding.status, finding.summary.as_str()), (Good, "intel_pstate on CPUs 2-3"));
        fill_setting(&mut facts, &knobs::INTEL_PSTATE, "active");
        let finding = CPUFREQ_DRIVER.judge(&facts, &intent());
        assert_eq!(finding.summary, "intel_pstate, active mode on CPUs 2-3");
    }

    #[test]
    fn no_driver_is_unknown() {
        let mut facts = good();
        for cpu in &mut facts.cpus.cpus {
            cpu.freq.driver = Reading::absent(cpu.freq.driver.path.clone());
        }
        assert_eq!(CPUFREQ_DRIVER.judge(&facts, &intent()).status, Unknown);
        set_guest(&mut facts, "kvm");
        assert_eq!(CPUFREQ_DRIVER.judge(&facts, &intent()).status, NotApplicable);
        let path = "/sys/devices/system/cpu/cpu2/cpufreq/scaling_driver";
        facts.cpus.cpus[2].freq.driver = Reading::denied(path, "EACCES");
        assert_eq!(CPUFREQ_DRIVER.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod cpufreq_governor_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent, set_config, set_guest, set_without_sys};
    use rtproof_host::Reading;

    fn with(governors: &[(usize, &str)]) -> Facts {
        let mut facts = good();
        for &(cpu, governor) in governors {
            let reading = &mut facts.cpus.cpus[cpu].freq.governor;
            *reading = Reading::known(reading.path.clone(), governor.into());
        }
        facts
    }

    fn without_cpufreq() -> Facts {
        let mut facts = good();
        for cpu in &mut facts.cpus.cpus {
            cpu.freq.governor = Reading::absent(cpu.freq.governor.path.clone());
        }
        facts
    }

    #[test]
    fn only_the_real_time_cpus_matter() {
        let finding = CPUFREQ_GOVERNOR.judge(&with(&[(0, "powersave")]), &intent());
        assert_eq!(finding.status, Good);
        assert_eq!(finding.evidence.len(), 1);
        let path = "/sys/devices/system/cpu/cpu{2-3}/cpufreq/scaling_governor";
        assert_eq!(finding.evidence[0].path, path);
    }

    #[test]
    fn another_governor_is_bad_and_names_its_cpus() {
        let finding = CPUFREQ_GOVERNOR.judge(&with(&[(3, "schedutil")]), &intent());
        assert_eq!((finding.status, finding.summary.as_str()), (Bad, "schedutil on CPU 3"));
        let path = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor".to_owned();
        let remedy = Remedy::set(&GOVERNOR, vec![path], "performance");
        assert_eq!(finding.remedies[0], remedy);
    }

    #[test]
    fn pinned_limits_do_as_well_and_userspace_is_somebody_s_choice() {
        let mut facts = with(&[(2, "schedutil"), (3, "userspace")]);
        let freq = &mut facts.cpus.cpus[2].freq;
        freq.min_hz = Reading::known(freq.min_hz.path.clone(), 4_100_000_000);
        assert_eq!(CPUFREQ_GOVERNOR.judge(&facts, &intent()).status, Doubtful);
        let freq = &mut facts.cpus.cpus[3].freq;
        freq.min_hz = Reading::known(freq.min_hz.path.clone(), 4_100_000_000);
        assert_eq!(CPUFREQ_GOVERNOR.judge(&facts, &intent()).status, Good);
    }

    #[test]
    fn no_cpufreq_is_not_good() {
        let mut facts = without_cpufreq();
        assert_eq!(CPUFREQ_GOVERNOR.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "CPU_FREQ", None);
        assert_eq!(CPUFREQ_GOVERNOR.judge(&facts, &intent()).status, NotApplicable);
        set_guest(&mut facts, "kvm");
        let finding = CPUFREQ_GOVERNOR.judge(&facts, &intent());
        assert_eq!(finding.status, Unknown);
        assert!(finding.summary.contains("the host decides"), "{}", finding.summary);
    }

    #[test]
    fn without_sys_the_folder_is_missing_and_not_the_cpu() {
        let mut facts = without_cpufreq();
        set_guest(&mut facts, "kvm");
        set_without_sys(&mut facts);
        let finding = CPUFREQ_GOVERNOR.judge(&facts, &intent());
        assert_eq!(finding.status, Unknown);
        assert_eq!(finding.summary, "/sys/devices/system/cpu: not there");
        facts.cpus.online = Reading::absent("/sys/devices/system/cpu/online");
        let none = Intent { rt_cpus: cpus(&[]), ..intent() };
        assert_eq!(
            CPUFREQ_GOVERNOR.judge(&facts, &none).summary,
            "/sys/devices/system/cpu/online: not there; name the real-time CPUs with --cpus"
        );
    }

    #[test]
    fn an_offline_real_time_cpu_is_unknown() {
        let intent = Intent { rt_cpus: cpus(&[3, 7]), ..intent() };
        let finding = CPUFREQ_GOVERNOR.judge(&good(), &intent);
        assert_eq!(
            (finding.status, finding.summary.as_str()),
            (Unknown, "CPU 7: not in this machine")
        );
    }
}

#[cfg(test)]
mod cpufreq_minmax_tests {
    use super::*;
    use crate::Profile;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::profile::WorkloadKind;
    use crate::testing::{good, intent, set_config, set_guest};
    use rtproof_host::Reading;

    fn with(governor: &str, min_hz: u64) -> Facts {
        let mut facts = good();
        let freq = &mut facts.cpus.cpus[3].freq;
        freq.governor = Reading::known(freq.governor.path.clone(), governor.into());
        freq.min_hz = Reading::known(freq.min_hz.path.clone(), min_hz);
        facts
    }

    #[test]
    fn open_limits_are_doubtful_unless_the_governor_or_the_profile_closes_them() {
        let finding = CPUFREQ_MINMAX.judge(&with("schedutil", 400_000_000), &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "CPU 3: 400-4100 MHz");
        let path = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_min_freq".to_owned();
        let write = Remedy::set(&knobs::MIN_FREQ, vec![path], "4100000");
        assert_eq!(finding.remedies[1], write);
        let audio = Intent { profile: Profile::of(WorkloadKind::Audio), ..intent() };
        let finding = CPUFREQ_MINMAX.judge(&with("schedutil", 400_000_000), &audio);
        assert_eq!(finding.status, Good);
        let finding = CPUFREQ_MINMAX.judge(&with("schedutil", 4_100_000_000), &intent());
        assert_eq!(finding.status, Good);
        assert_eq!(CPUFREQ_MINMAX.judge(&good(), &intent()).status, Good);
    }

    #[test]
    fn no_cpufreq_is_not_good() {
        let mut facts = good();
        for cpu in &mut facts.cpus.cpus {
            cpu.freq.min_hz = Reading::absent(cpu.freq.min_hz.path.clone());
        }
        assert_eq!(CPUFREQ_MINMAX.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "CPU_FREQ", None);
        assert_eq!(CPUFREQ_MINMAX.judge(&facts, &intent()).status, NotApplicable);
        set_guest(&mut facts, "kvm");
        assert_eq!(CPUFREQ_MINMAX.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod epp_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};
    use rtproof_host::Reading;

    fn with(hint: &str, governor: &str) -> Facts {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::EPP, hint);
        for cpu in &mut facts.cpus.cpus {
            cpu.freq.governor = Reading::known(cpu.freq.governor.path.clone(), governor.into());
        }
        facts
    }

    #[test]
    fn a_hint_matters_where_the_frequency_is_not_held() {
        assert_eq!(EPP.judge(&good(), &intent()).status, Good);
        let finding = EPP.judge(&with("balance_performance", "powersave"), &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "balance_performance while the frequency may move");
        assert!(matches!(&finding.remedies[0], Remedy::Set { at: paths, .. } if paths.len() == 2));
        let finding = EPP.judge(&with("balance_performance", "performance"), &intent());
        assert_eq!(finding.status, Good);
        assert_eq!(EPP.judge(&with("0", "powersave"), &intent()).status, Good);
    }

    #[test]
    fn none_is_not_applicable_where_the_folder_is_known_to_lack_it() {
        let mut facts = good();
        let setting = facts.settings.get_mut(knobs::EPP.id).unwrap();
        setting.values.clear();
        assert_eq!(EPP.judge(&facts, &intent()).status, Unknown);
        let setting = facts.settings.get_mut(knobs::EPP.id).unwrap();
        setting.missing_from = Some(Reading::known("/sys/x", "holds no cpufreq".into()));
        assert_eq!(EPP.judge(&facts, &intent()).status, NotApplicable);
        set_setting(&mut facts, &knobs::EPP, Reading::denied("x", "EACCES"));
        assert_eq!(EPP.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod min_perf_pct_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};

    #[test]
    fn it_matters_where_nothing_else_holds_the_frequency() {
        let mut facts = good();
        assert_eq!(MIN_PERF_PCT.judge(&facts, &intent()).status, Good);
        fill_setting(&mut facts, &knobs::MIN_PERF_PCT, "9");
        assert_eq!(MIN_PERF_PCT.judge(&facts, &intent()).status, Good);
        let governor = &mut facts.cpus.cpus[3].freq.governor;
        *governor = Reading::known(governor.path.clone(), "powersave".into());
        let finding = MIN_PERF_PCT.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.remedies.len(), 1);
        fill_setting(&mut facts, &knobs::MIN_PERF_PCT, "all");
        assert_eq!(MIN_PERF_PCT.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn another_driver_has_none() {
        let mut facts = good();
        set_setting(&mut facts, &knobs::MIN_PERF_PCT, Reading::absent("x"));
        assert_eq!(MIN_PERF_PCT.judge(&facts, &intent()).status, Unknown);
        let setting = facts.settings.get_mut(knobs::MIN_PERF_PCT.id).unwrap();
        setting.missing_from = Some(Reading::known("/sys/x", "holds no intel_pstate".into()));
        assert_eq!(MIN_PERF_PCT.judge(&facts, &intent()).status, NotApplicable);
    }
}

#[cfg(test)]
mod turbo_boost_tests {
    use super::*;
    use crate::Profile;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::profile::WorkloadKind;
    use crate::testing::{fill_setting, good, intent, set_setting};

    fn judge(facts: &Facts) -> Finding {
        TURBO_BOOST.judge(facts, &intent())
    }

    fn boost(value: &str) -> Facts {
        let mut facts = good();
        facts.settings.remove(knobs::NO_TURBO.id);
        fill_setting(&mut facts, &knobs::BOOST, value);
        facts
    }

    #[test]
    fn each_driver_has_its_own_switch() {
        assert_eq!(judge(&good()).status, Good);
        let mut facts = good();
        fill_setting(&mut facts, &knobs::NO_TURBO, "0");
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        let path = "/sys/devices/system/cpu/intel_pstate/no_turbo".to_owned();
        assert_eq!(finding.remedies, [Remedy::set(&knobs::NO_TURBO, vec![path], "1")]);
        assert_eq!(judge(&boost("0")).status, Good);
        assert_eq!(judge(&boost("1")).status, Doubtful);
        assert_eq!(judge(&boost("yes")).status, Unknown);
        let mut facts = boost("1");
        fill_setting(&mut facts, &knobs::CPU_BOOST, "0");
        assert_eq!(judge(&facts).status, Good);
    }

    #[test]
    fn the_profile_decides() {
        let busy = Intent { profile: Profile::of(WorkloadKind::BusyPoll), ..intent() };
        assert_eq!(TURBO_BOOST.judge(&boost("1"), &busy).status, Good);
        let mut on = intent();
        on.profile.choices.turbo = Choice::On;
        assert_eq!(TURBO_BOOST.judge(&boost("0"), &on).status, Doubtful);
    }

    #[test]
    fn no_switch_is_not_applicable_only_where_that_is_known() {
        let mut facts = good();
        for knob in [&knobs::NO_TURBO, &knobs::BOOST] {
            set_setting(&mut facts, knob, Reading::absent("x"));
        }
        assert_eq!(judge(&facts).status, Unknown);
        for knob in [&knobs::NO_TURBO, &knobs::BOOST] {
            let setting = facts.settings.get_mut(knob.id).unwrap();
            setting.missing_from = Some(Reading::known("/sys/x", "holds no y".into()));
        }
        assert_eq!(judge(&facts).status, NotApplicable);
        set_setting(&mut facts, &knobs::NO_TURBO, Reading::denied("x", "EACCES"));
        assert_eq!(judge(&facts).status, Unknown);
    }
}

#[cfg(test)]
mod uncore_freq_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};

    #[test]
    fn equal_limits_are_good_and_open_ones_doubtful() {
        let mut facts = good();
        assert_eq!(UNCORE_FREQ.judge(&facts, &intent()).status, Good);
        fill_setting(&mut facts, &knobs::UNCORE_MIN_FREQ, "800000");
        let finding = UNCORE_FREQ.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "x 800000-2400000 kHz: it may follow the load");
        assert!(matches!(&finding.remedies[0], Remedy::Set { value, .. } if value == "2400000"));
        set_setting(&mut facts, &knobs::UNCORE_MAX_FREQ, Reading::denied("x", "EACCES"));
        assert_eq!(UNCORE_FREQ.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn none_is_not_applicable_only_where_that_is_known() {
        let mut facts = good();
        facts.settings.get_mut(knobs::UNCORE_MIN_FREQ.id).unwrap().values.clear();
        assert_eq!(UNCORE_FREQ.judge(&facts, &intent()).status, Unknown);
        let setting = facts.settings.get_mut(knobs::UNCORE_MIN_FREQ.id).unwrap();
        setting.missing_from = Some(Reading::known("/sys/x", "holds no y".into()));
        assert_eq!(UNCORE_FREQ.judge(&facts, &intent()).status, NotApplicable);
    }
}
