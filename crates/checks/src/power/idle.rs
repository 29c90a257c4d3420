//! Idle states: which may be entered, which limits hold, who chooses.
//!
//! What the checks of idle states share: how deep is too deep, and which limits are in force.
//!
//! A state is not entered where its exit takes longer than the CPU's own limit
//! (`pm_qos_resume_latency_us`) or that of the machine (`/dev/cpu_dma_latency`), the lower of both
//! (`cpuidle_governor_latency_req` in drivers/cpuidle/governor.c).

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::cpu::{Cpu, IdleState},
    knob::KnobArch,
    knobs::power::{self as knobs, IDLE_STATE, PM_QOS_RESUME},
};

use super::smt::threads;
use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::machine::{built_with, guest, is_bare_metal, option, rt_cpus, without_cpu_folder};
use crate::profile::Choice;
use crate::{Evidence, Finding, Impact, Intent, Remedy, When, machine};

/// Exit latency that is good without a budget: deeper than C1E, shallower than C6 of x86.
pub(super) const NO_BUDGET_NS: u64 = 20_000;

/// Exit latency that is certainly good.
fn good_ns(intent: &Intent) -> u64 {
    intent.budget_ns.map_or(NO_BUDGET_NS, |budget_ns| budget_ns / 4)
}

/// What is wanted of it, in words.
pub(super) fn wanted(intent: &Intent) -> String {
    let most = crate::ns(good_ns(intent));
    match intent.budget_ns {
        Some(_) => format!("exit latency at most {most}, a quarter of the budget"),
        None => format!("exit latency at most {most}"),
    }
}

/// Exit latency that the CPU's own limit allows; `None`: any.
fn own_limit_ns(cpu: &Cpu) -> Option<u64> {
    match cpu.pm_qos_resume_latency_us.value()?.as_str() {
        "n/a" => Some(0),
        "0" => None,
        us => us.parse::<u64>().ok().map(|us| us.saturating_mul(1_000)),
    }
}

/// Exit latency that the machine's limit allows; `None`: any, or not known.
fn held_limit_ns(facts: &Facts) -> Option<u64> {
    (*facts.cpu_dma_latency_us.value()?).map(|us| u64::from(us) * 1_000)
}

/// Exit latency that both allow; `None`: any.
fn limit_ns(facts: &Facts, cpu: &Cpu) -> Option<u64> {
    own_limit_ns(cpu).into_iter().chain(held_limit_ns(facts)).min()
}

/// The states that user space has not disabled.
pub(super) fn enabled(cpu: &Cpu) -> impl Iterator<Item = &IdleState> {
    cpu.idle_states.value().into_iter().flatten().filter(|state| !state.disabled)
}

/// The deepest state of a CPU that is too deep and enabled, limits aside.
fn too_deep<'a>(cpu: &'a Cpu, intent: &Intent) -> Option<&'a IdleState> {
    let most_ns = good_ns(intent);
    enabled(cpu).filter(|state| state.exit_latency_ns > most_ns).max_by_key(|s| s.exit_latency_ns)
}

/// Whether a limit keeps a CPU out of every state that is too deep.
fn forbids(limit_ns: Option<u64>, cpu: &Cpu, intent: &Intent) -> bool {
    let good_ns = good_ns(intent);
    limit_ns.is_some_and(|most_ns| {
        !enabled(cpu).any(|s| s.exit_latency_ns > good_ns && s.exit_latency_ns <= most_ns)
    })
}

/// The first of these CPUs whose states are not known, or not there.
pub(super) fn unreadable_states<'a>(cpus: &[&'a Cpu]) -> Option<&'a Reading<Vec<IdleState>>> {
    let is_empty = |states: &&Reading<Vec<IdleState>>| states.value().is_none_or(Vec::is_empty);
    cpus.iter().map(|cpu| &cpu.idle_states).find(is_empty)
}

/// Whether idle CPUs of a guest spin for a moment and then halt, as long as no limit is 0
/// (drivers/cpuidle/governors/haltpoll.c). If the driver is unknown, its idle state identifies it.
fn is_haltpoll(facts: &Facts) -> bool {
    let has_its_state = |cpu: &Cpu| enabled(cpu).any(|state| state.name == "haltpoll idle");
    match facts.cpus.idle_driver.value() {
        Some(driver) => driver == "haltpoll",
        None => facts.cpus.cpus.iter().any(has_its_state),
    }
}

/// `idle=poll` is a parameter of x86 alone.
fn is_polling(facts: &Facts) -> bool {
    let is_x86 = matches!(facts.kernel.arch.value().map(String::as_str), Some("x86_64" | "i686"));
    let idle = facts.kernel.cmdline.value().and_then(|line| line.last("idle"));
    is_x86 && idle == Some(Some("poll"))
}

/// States of one CPU in a line.
pub(super) fn show(states: &[IdleState]) -> String {
    let states: Vec<String> = states
        .iter()
        .map(|state| {
            let off = if state.disabled { " disabled" } else { "" };
            format!("{} {}{off}", state.name, crate::ns(state.exit_latency_ns))
        })
        .collect();
    if states.is_empty() { "no states".into() } else { machine::first_few(&states, 10) }
}

// Does a program forbid deep idle states to all CPUs?
//
// The limit is in force while a process holds /dev/cpu_dma_latency open, so it is gone with the
// program: cyclictest sets it for itself, and what it measured is not what an application finds
// that does not. No limit is no fault where no state is too deep anyway.

pub(super) static CPU_DMA_LATENCY: Check = Check {
    id: "cpu-dma-latency",
    title: "limit of exit latency that a program holds for all CPUs",
    why: "without a limit an idle CPU may enter its deepest state, and takes the exit latency of \
          it to wake up",
    source: "Documentation/power/pm_qos_interface.rst; kernel/power/qos.c; \
             drivers/cpuidle/governor.c; cyclictest(8); tuned, force_latency; Flatscher, \
             \"Real-time Optimizations\"",
    trade_off: Some(
        "it keeps every CPU awake and warm, the others too, and may cost turbo frequencies; a \
         limit for each CPU (pm-qos-resume) does it where it is needed",
    ),
    impact: Impact::Hundreds,
    knobs: &[&knobs::CPU_DMA_LATENCY],
    judge: Judge::Ask(judge_cpu_dma_latency),
    ..Check::NEW
};

fn judge_cpu_dma_latency(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.wanted(wanted(intent)).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let held = &facts.cpu_dma_latency_us;
    let limit = |us: &Option<u32>| us.map_or("no limit".into(), |us| format!("{us} µs"));
    if is_polling(facts) {
        return draft
            .read(&facts.kernel.cmdline, |_| "idle=poll".into())
            .read(&facts.kernel.arch, String::clone)
            .good("idle=poll: an idle CPU spins and never sleeps");
    }
    let (cpus, missing) = rt_cpus(facts, intent);
    let states = cpus.iter().map(|cpu| (cpu.id, &cpu.idle_states));
    let states = machine::grouped(states, |states| show(states));
    let is_open =
        |cpu: &&&Cpu| too_deep(cpu, intent).is_some() && !forbids(own_limit_ns(cpu), cpu, intent);
    let open: Vec<&&Cpu> = cpus.iter().filter(is_open).collect();
    let is_held = !cpus.is_empty()
        && held_limit_ns(facts).is_some_and(|ns| {
            ns <= good_ns(intent) || open.iter().all(|cpu| forbids(Some(ns), cpu, intent))
        });
    if !missing.is_empty() {
        return draft.read(held, limit).missing_cpus(facts, &missing);
    }
    if is_haltpoll(facts) && held_limit_ns(facts) != Some(0) {
        let draft = draft.read(&facts.cpus.idle_driver, String::clone).read(held, limit);
        return match held.value() {
            None => draft.unreadable(held),
            Some(_) => draft.remedies([Remedy::Hold { limit_us: 0 }]).doubtful(format!(
                "{}: a guest's CPU may halt, and the host decides when it wakes up; 0 keeps \
                 it spinning",
                held_text(facts)
            )),
        };
    }
    if is_held && held_limit_ns(facts).is_some_and(|ns| ns <= good_ns(intent)) {
        return draft
            .read(held, limit)
            .good(format!("at most {}, while a program holds it open", held_text(facts)));
    }
    let worst = open.iter().filter_map(|cpu| too_deep(cpu, intent));
    if let Some(worst) = worst.max_by_key(|state| state.exit_latency_ns) {
        let draft = draft.evidence(states).read(held, limit);
        if is_held {
            let limit = held_text(facts);
            return draft.good(format!("at most {limit}, which no state that is too deep meets"));
        }
        if held.value().is_none() {
            return draft.unreadable(held);
        }
        let most_us = good_ns(intent) / 1_000;
        let exit = crate::ns(worst.exit_latency_ns);
        return draft
            .remedies([Remedy::Hold { limit_us: u32::try_from(most_us).unwrap_or(u32::MAX) }])
            .doubtful(format!("{}: {} ({exit}) may be entered", held_text(facts), worst.name));
    }
    if let Some(unreadable) = unreadable_states(&cpus) {
        if let Some(why) = without_cpu_folder(facts) {
            return draft.no_cpu_folder(facts, why);
        }
        let driver = &facts.cpus.idle_driver;
        let draft = draft.evidence(states).read(driver, String::clone);
        if unreadable.value().is_none() && !unreadable.is_absent() {
            return draft.unreadable(unreadable);
        }
        return match driver.value().is_some_and(|driver| driver == "none") {
            true => draft.not_applicable("no idle driver: there is no state to forbid"),
            false => draft.unknown("no idle states are seen here that it could forbid"),
        };
    }
    let own = cpus.iter().filter(|cpu| too_deep(cpu, intent).is_some());
    let own = own.map(|cpu| (cpu.id, &cpu.pm_qos_resume_latency_us));
    draft
        .evidence(states)
        .evidence(machine::grouped(own, String::clone))
        .evidence(held.value().map(|_| Evidence::of(held, limit)))
        .good(format!("{}, and none needed: no state is too deep", held_text(facts)))
}

/// The limit in words.
fn held_text(facts: &Facts) -> String {
    match facts.cpu_dma_latency_us.value() {
        Some(Some(us)) => format!("{us} µs"),
        Some(None) => "no limit".into(),
        None => "limit not known".into(),
    }
}

// Which rule chooses the idle state?
//
// `menu` and `teo` predict how long the CPU will be idle; `ladder` is for kernels whose tick never
// stops, and `haltpoll` for guests, where it spins for a moment before the CPU is given back.

pub(super) static CPUIDLE_GOVERNOR: Check = Check {
    id: "cpuidle-governor",
    title: "governor that chooses the idle state",
    why: "a governor that expects a longer idle time than comes chooses a deeper state than \
          needed, whose exit takes longer",
    source: "Documentation/admin-guide/pm/cpuidle.rst; Documentation/virt/guest-halt-polling.rst; \
             drivers/cpuidle/governors",
    impact: Impact::Microseconds,
    wanted: Wanted::Text("menu or teo; haltpoll in a guest"),
    judge: Judge::Ask(judge_cpuidle_governor),
    ..Check::NEW
};

fn judge_cpuidle_governor(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let (driver, governor) = (&facts.cpus.idle_driver, &facts.cpus.idle_governor);
    if driver.value().is_some_and(|driver| driver == "none") {
        return draft
            .read(driver, String::clone)
            .not_applicable("no idle driver: there are no states to choose from");
    }
    if built_with(facts, "CPU_IDLE") == Some(false) {
        return draft.built_without(facts, "CPU_IDLE");
    }
    let draft = draft.read(governor, String::clone);
    let Some(name) = governor.value() else {
        return draft.unreadable(governor);
    };
    let remedy = Remedy::Boot { parameter: "cpuidle.governor=menu".into() };
    match name.as_str() {
        "menu" | "teo" => draft.good(name.clone()),
        "ladder" => draft
            .remedies([remedy])
            .doubtful("ladder: made for kernels whose tick does not stop in idle"),
        "haltpoll" => match (guest(facts), facts.virt.hypervisor.value()) {
            (Some(hypervisor), _) => draft
                .read(&facts.virt.hypervisor, |_| hypervisor.into())
                .good(format!("haltpoll, in this {hypervisor} guest")),
            (None, Some(_)) => draft
                .read(&facts.virt.hypervisor, |_| "none".into())
                .remedies([remedy])
                .doubtful("haltpoll: made for guests, and this is none"),
            (None, None) => draft.unreadable(&facts.virt.hypervisor),
        },
        other => draft.unknown(format!("{other}: what it chooses is not known here")),
    }
}

// How long do the real-time CPUs take to wake up from idle?
//
// A C-state is not bad in itself: its exit latency is part of the latency, so it is held against
// the budget. Up to a quarter of the budget is good, up to the whole is doubtful, beyond is bad.
// Without a budget, up to 20 µs is good and anything deeper doubtful, as only the user knows.
// States that the CPU's own limit or the machine's forbids are not entered; where the machine's
// cannot be read, a deep state is not certain to be.

pub(super) static CPUIDLE_STATES: Check = Check {
    id: "cpuidle-states",
    title: "exit latency of the idle states of the real-time CPUs",
    why: "a CPU in a deep idle state takes its exit latency to wake up, and finds its caches cold",
    source: "Documentation/admin-guide/pm/cpuidle.rst; Flatscher, \"Real-time Optimizations\" \
             (maximum halved on a ThinkPad P500)",
    impact: Impact::Hundreds,
    judge: Judge::Ask(judge_cpuidle_states),
    ..Check::NEW
};

fn judge_cpuidle_states(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.wanted(wanted(intent)).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    if is_polling(facts) {
        return draft
            .read(&facts.kernel.cmdline, |_| "idle=poll".into())
            .read(&facts.kernel.arch, String::clone)
            .good("idle=poll: an idle CPU spins and never sleeps");
    }
    let (cpus, missing) = rt_cpus(facts, intent);
    if let Some(why) = without_cpu_folder(facts) {
        return draft.no_cpu_folder(facts, why);
    }
    let states = cpus.iter().map(|cpu| (cpu.id, &cpu.idle_states));
    let draft = draft.evidence(machine::grouped(states, |states| show(states)));
    let mut deep: Vec<DeepState<'_>> =
        cpus.iter().flat_map(|cpu| deep(facts, cpu, intent)).collect();
    deep.sort_by_key(|deep| std::cmp::Reverse(deep.state.exit_latency_ns));
    if let Some(worst) = deep.first() {
        return judge_deep(draft, facts, &deep, worst, intent);
    }
    let empty = |cpu: &&&Cpu| cpu.idle_states.value().is_none_or(Vec::is_empty);
    if let Some(unreadable) = cpus.iter().find(empty) {
        let is_there =
            !unreadable.idle_states.is_absent() && unreadable.idle_states.value().is_none();
        return if is_there {
            draft.unreadable(&unreadable.idle_states)
        } else {
            no_states(draft, facts)
        };
    }
    if !missing.is_empty() {
        return draft.missing_cpus(facts, &missing);
    }
    judge_shallow(draft, facts, &cpus, intent)
}

/// An enabled state that is deeper than what is certainly good.
struct DeepState<'a> {
    cpu: u32,
    state: &'a IdleState,
}

fn deep<'a>(facts: &Facts, cpu: &'a Cpu, intent: &Intent) -> Vec<DeepState<'a>> {
    let most_ns = limit_ns(facts, cpu).unwrap_or(u64::MAX);
    let good_ns = good_ns(intent);
    enabled(cpu)
        .filter(|state| state.exit_latency_ns <= most_ns && state.exit_latency_ns > good_ns)
        .map(|state| DeepState { cpu: cpu.id, state })
        .collect()
}

fn judge_deep(
    draft: FindingBuilder,
    facts: &Facts,
    deep: &[DeepState<'_>],
    worst: &DeepState<'_>,
    intent: &Intent,
) -> Finding {
    let mut paths: Vec<(u32, u32)> = deep.iter().map(|d| (d.cpu, d.state.index)).collect();
    paths.sort_unstable();
    let cpus = CpuList::new(paths.iter().map(|&(cpu, _)| cpu));
    let paths = paths
        .iter()
        .map(|(cpu, index)| {
            format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle/state{index}/disable")
        })
        .collect();
    let exit_ns = worst.state.exit_latency_ns;
    let summary = format!(
        "{} takes {} to leave on {}",
        worst.state.name,
        crate::ns(exit_ns),
        machine::cpus(&cpus)
    );
    let cap = cap(facts);
    let write = Remedy::set(&IDLE_STATE, paths, "1");
    let draft = draft.remedies([write]).remedies(cap);
    match intent.budget_ns {
        None => draft.doubtful(format!("{summary}; no budget to hold it against")),
        Some(budget_ns) => {
            let summary = format!("{summary}; the budget is {}", crate::ns(budget_ns));
            let held = &facts.cpu_dma_latency_us;
            match held.why_unknown() {
                Some(why) if exit_ns > budget_ns => draft
                    .read(held, |_| String::new())
                    .doubtful(format!("{summary}; unless {} forbids it: {why}", held.path)),
                None if exit_ns > budget_ns => draft.bad(summary),
                _ => draft.doubtful(summary),
            }
        }
    }
}

fn judge_shallow(draft: FindingBuilder, facts: &Facts, cpus: &[&Cpu], intent: &Intent) -> Finding {
    // Good because of the limit, where an enabled state would be too deep without it.
    let limited: Vec<&&Cpu> = cpus
        .iter()
        .filter(|cpu| enabled(cpu).any(|state| state.exit_latency_ns > good_ns(intent)))
        .collect();
    let by_own = |cpu: &&&&Cpu| forbids(own_limit_ns(cpu), cpu, intent);
    let own = limited.iter().filter(by_own);
    let own: Vec<_> = own.map(|cpu| (cpu.id, &cpu.pm_qos_resume_latency_us)).collect();
    let held = &facts.cpu_dma_latency_us;
    let is_held = own.len() < limited.len();
    let draft = draft.evidence(machine::grouped(own, String::clone)).evidence(
        is_held.then(|| Evidence::of(held, |us| us.map_or("none".into(), |us| format!("{us} µs")))),
    );
    let driver = &facts.cpus.idle_driver;
    if is_haltpoll(facts) {
        return draft
            .read(driver, String::clone)
            .doubtful("haltpoll: a guest's CPU may halt, and the host decides when it wakes up");
    }
    let entered = cpus.iter().flat_map(|cpu| {
        let most_ns = limit_ns(facts, cpu).unwrap_or(u64::MAX);
        enabled(cpu).filter(move |state| state.exit_latency_ns <= most_ns)
    });
    let summary = match entered.max_by_key(|state| state.exit_latency_ns) {
        Some(deepest) => {
            format!("deepest is {}, left in {}", deepest.name, crate::ns(deepest.exit_latency_ns))
        }
        None => "every idle state is disabled".into(),
    };
    let while_held = match is_held {
        true => format!(", while a program holds {} open", held.path),
        false => String::new(),
    };
    draft.good(format!("{summary}, on {}{while_held}", machine::cpus(&intent.rt_cpus)))
}

/// No idle states in /sys: the architecture's plain halt, or a host that decides.
fn no_states(draft: FindingBuilder, facts: &Facts) -> Finding {
    let driver = &facts.cpus.idle_driver;
    let draft = draft.read(driver, String::clone);
    if let Some(hypervisor) = guest(facts) {
        return draft
            .evidence([Evidence::of(&facts.virt.hypervisor, |_| hypervisor.into())])
            .doubtful(format!(
                "no idle states in this {hypervisor} guest: an idle CPU halts, and \
                the host decides when it wakes up"
            ));
    }
    let is_none = driver.value().is_some_and(|driver| driver == "none");
    let is_built_without = built_with(facts, "CPU_IDLE") == Some(false);
    if is_bare_metal(facts) && (is_none || is_built_without) {
        return draft.evidence(is_built_without.then(|| option(facts, "CPU_IDLE"))).not_applicable(
            "no idle driver: an idle CPU only halts (HLT, WFI); firmware may go deeper",
        );
    }
    draft.unknown("no idle states are seen here: firmware or a driver may enter some all the same")
}

// Do the caps of idle states on the command line cap the driver that is in use?
//
// Each cap is for one driver: `intel_idle.max_cstate=` and `processor.max_cstate=` (acpi_idle).
// `intel_idle.max_cstate=0` alone hands over to acpi_idle, which nothing caps then. No cap is no
// fault: `cpuidle-states` judges the states that are left.

/// Driver, and the parameter that caps its states.
const CAPS: [(&str, &str); 2] =
    [("intel_idle", "intel_idle.max_cstate"), ("acpi_idle", "processor.max_cstate")];

/// The cap for the driver in use.
fn cap(facts: &Facts) -> Option<Remedy> {
    let driver = facts.cpus.idle_driver.value()?;
    let (_, key) = CAPS.iter().find(|(of, _)| of == driver)?;
    Some(Remedy::Boot { parameter: format!("{key}=1") })
}

pub(super) static CSTATE_CMDLINE: Check = Check {
    id: "cstate-cmdline",
    title: "caps of idle states on the kernel command line",
    why: "a cap for another driver than the one in use forbids nothing, and the CPU enters the \
          states that it was to forbid",
    source: "Documentation/admin-guide/pm/cpuidle.rst (intel_idle.max_cstate, \
             processor.max_cstate); Documentation/admin-guide/pm/intel_idle.rst; Codethink, \
             \"Configuring Linux systems to stabilise latency\"",
    trade_off: Some(
        "a cap at boot holds for all CPUs until the next boot; a limit for each CPU \
         (pm-qos-resume) does it where and when it is needed",
    ),
    impact: Impact::Hundreds,
    when: When::Boot,
    wanted: Wanted::Text("none, or one for the driver in use"),
    judge: Judge::Ask(judge_cstate_cmdline),
    ..Check::NEW
};

fn judge_cstate_cmdline(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let arch = &facts.kernel.arch;
    if let Some(name) = arch.value().filter(|name| !KnobArch::X86.has(name)) {
        return draft.read(arch, String::clone).not_applicable(format!("not on {name}"));
    }
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.unreadable(cmdline);
    };
    let given: Vec<(&str, String)> = CAPS
        .iter()
        .filter_map(|(driver, key)| {
            let value = line.last(key)??;
            Some((*driver, format!("{key}={value}")))
        })
        .collect();
    let words: Vec<&str> = given.iter().map(|(_, word)| word.as_str()).collect();
    let words = if words.is_empty() { "no cap".into() } else { words.join(" ") };
    let draft = draft.evidence([Evidence { path: cmdline.path.clone(), value: words.clone() }]);
    if given.is_empty() {
        return draft.good("none: cpuidle-states judges the states that are left");
    }
    let reading = &facts.cpus.idle_driver;
    let draft = draft.read(reading, String::clone);
    let Some(driver) = reading.value() else {
        return draft.unreadable(reading);
    };
    if driver == "none" {
        return draft.good(format!("{words}: no idle driver is in use"));
    }
    if given.iter().any(|(capped, _)| capped == driver) {
        return draft.good(format!("{words}, for {driver}, the driver in use"));
    }
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let (cpus, missing) = rt_cpus(facts, intent);
    let states = cpus.iter().map(|cpu| (cpu.id, &cpu.idle_states));
    let draft = draft.evidence(machine::grouped(states, |states| show(states)));
    let deep = cpus.iter().filter_map(|cpu| too_deep(cpu, intent));
    if let Some(deep) = deep.max_by_key(|state| state.exit_latency_ns) {
        return draft.remedies(cap(facts)).doubtful(format!(
            "{words} does not cap {driver}, the driver in use: {} may be entered",
            deep.name
        ));
    }
    if let Some(unreadable) = unreadable_states(&cpus) {
        return draft.unreadable(unreadable);
    }
    if !missing.is_empty() {
        return draft.missing_cpus(facts, &missing);
    }
    draft.good(format!("{words} does not cap {driver}, which has no state that is too deep"))
}

// Do idle CPUs spin instead of sleeping?
//
// `idle=poll` wakes up fastest and never rests. Where two threads share a core the one that spins
// takes the other's time (the kernel warns of it at boot); in a guest it never gives its CPU back,
// which is right only where the host gave it one of its own.

pub(super) static IDLE_POLL: Check = Check {
    id: "idle-poll",
    title: "idle CPUs that spin (idle=poll)",
    why: "a CPU that spins wakes up at once. But it takes execution time from the thread that \
          shares its core, heat and power from all, and in a guest the host's CPU",
    source: "arch/x86/kernel/process.c (select_idle_routine); \
             Documentation/admin-guide/pm/cpuidle.rst; \
             Documentation/admin-guide/kernel-parameters.txt (idle=)",
    trade_off: Some(
        "the kernel's documentation does not recommend it. No CPU ever rests, so turbo frequencies \
         that need idle cores are never reached. A limit on the exit latency does as well on most \
         machines",
    ),
    impact: Impact::Tens,
    when: When::Boot,
    judge: Judge::Ask(judge_idle_poll),
    ..Check::NEW
};

fn judge_idle_poll(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let choice = intent.profile.choices.idle_poll;
    let wanted = match choice {
        Choice::On => "idle=poll, without SMT",
        Choice::Off => "not set",
        Choice::Either => "not set, or without SMT",
    };
    let draft = draft.wanted(wanted).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let arch = &facts.kernel.arch;
    if let Some(name) = arch.value().filter(|name| !KnobArch::X86.has(name)) {
        return draft.read(arch, String::clone).not_applicable(format!("not on {name}"));
    }
    let cmdline = &facts.kernel.cmdline;
    let draft = draft.read(cmdline, |line| match line.last("idle") {
        Some(Some(value)) => format!("idle={value}"),
        _ => "no idle=".into(),
    });
    let Some(line) = cmdline.value() else {
        return draft.unreadable(cmdline);
    };
    let (cpus, missing) = rt_cpus(facts, intent);
    if line.last("idle") != Some(Some("poll")) {
        if !missing.is_empty() {
            return draft.missing_cpus(facts, &missing);
        }
        return match choice {
            Choice::On => draft
                .remedies([Remedy::Boot { parameter: "idle=poll".into() }])
                .doubtful("not set: idle CPUs sleep"),
            _ => draft.good("not set"),
        };
    }
    let draft = draft.read(arch, String::clone);
    if !is_polling(facts) {
        return draft.unreadable(arch);
    }
    let drop = Remedy::Unboot { parameter: "idle".into() };
    let siblings = cpus.iter().map(|cpu| (cpu.id, &cpu.siblings));
    let draft = draft.evidence(machine::grouped(siblings, CpuList::to_string)).remedies([drop]);
    if cpus.iter().any(|cpu| threads(cpu).is_some()) {
        return draft.bad("set while real-time CPUs share cores: idle siblings spin beside them");
    }
    if let Some(hypervisor) = guest(facts) {
        return draft.read(&facts.virt.hypervisor, |_| hypervisor.into()).doubtful(format!(
            "set in this {hypervisor} guest, which never gives its CPUs back to the host"
        ));
    }
    if choice == Choice::Off {
        return draft.doubtful("set: no CPU ever rests");
    }
    if let Some(unreadable) = cpus.iter().find(|cpu| cpu.siblings.value().is_none()) {
        return draft.unreadable(&unreadable.siblings);
    }
    if facts.virt.hypervisor.value().is_none() {
        return draft.unreadable(&facts.virt.hypervisor);
    }
    if !missing.is_empty() {
        return draft.missing_cpus(facts, &missing);
    }
    draft
        .read(&facts.virt.hypervisor, |_| "none".into())
        .good("set, and the real-time CPUs share no core")
}

// Does each real-time CPU have a limit of its own?
//
// `pm_qos_resume_latency_us`, where 0 is the trap: it means any latency, not none; `n/a` forbids
// every idle state. No limit is no fault where no state is too deep, or the machine's limit holds.

pub(super) static PM_QOS_RESUME_CHECK: Check = Check {
    id: "pm-qos-resume",
    title: "limit of exit latency of each real-time CPU",
    why: "without a limit the CPU may enter its deepest idle state, and takes the exit latency of \
          it to wake up; 0 means no limit",
    source: "Documentation/ABI/testing/sysfs-devices-power (pm_qos_resume_latency_us); \
             drivers/cpuidle/governor.c; tuned, pm_qos_resume_latency_us",
    trade_off: Some("a CPU that never sleeps deeply takes power, and leaves less of it to turbo"),
    impact: Impact::Hundreds,
    judge: Judge::Ask(judge_pm_qos_resume),
    ..Check::NEW
};

fn judge_pm_qos_resume(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.wanted(wanted(intent)).cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    if is_polling(facts) {
        return draft
            .read(&facts.kernel.cmdline, |_| "idle=poll".into())
            .read(&facts.kernel.arch, String::clone)
            .good("idle=poll: an idle CPU spins and never sleeps");
    }
    let (cpus, missing) = rt_cpus(facts, intent);
    let limits = cpus.iter().map(|cpu| (cpu.id, &cpu.pm_qos_resume_latency_us));
    let draft = draft.evidence(machine::grouped(limits, String::clone));
    for cpu in &cpus {
        let limit = &cpu.pm_qos_resume_latency_us;
        let Some(text) = limit.value() else {
            return match without_cpu_folder(facts).filter(|_| limit.is_absent()) {
                Some(why) => draft.no_cpu_folder(facts, why),
                None => draft.unreadable(limit),
            };
        };
        if text != "n/a" && text.parse::<u64>().is_err() {
            let odd = Reading::<u64>::malformed(&limit.path, text, "microseconds or n/a");
            return draft.unreadable(&odd);
        }
    }
    let is_low = |cpu: &Cpu| own_limit_ns(cpu).is_some_and(|ns| ns <= good_ns(intent));
    if !missing.is_empty() {
        return draft.missing_cpus(facts, &missing);
    }
    if is_haltpoll(facts) && held_limit_ns(facts) != Some(0) {
        let paths = cpus.iter().map(|cpu| cpu.pm_qos_resume_latency_us.path.clone()).collect();
        let draft = draft.read(&facts.cpus.idle_driver, String::clone).remedies([Remedy::set(
            &PM_QOS_RESUME,
            paths,
            "n/a",
        )]);
        return match cpus.iter().all(|cpu| own_limit_ns(cpu) == Some(0)) {
            true => draft.good("n/a: idle CPUs of this guest spin and never halt"),
            false => draft.doubtful(
                "a guest's CPU may halt, and the host decides when it wakes up; n/a keeps it \
                 spinning",
            ),
        };
    }
    let rest: Vec<&Cpu> = cpus.iter().copied().filter(|cpu| !is_low(cpu)).collect();
    if rest.is_empty() {
        return draft.good(format!("limited on {}", machine::cpus(&intent.rt_cpus)));
    }
    let states = rest.iter().map(|cpu| (cpu.id, &cpu.idle_states));
    let draft = draft.evidence(machine::grouped(states, |states| show(states)));
    let open =
        |cpu: &&&Cpu| too_deep(cpu, intent).is_some() && !forbids(own_limit_ns(cpu), cpu, intent);
    let open: Vec<&&Cpu> = rest.iter().filter(open).collect();
    let worst = open.iter().filter_map(|cpu| too_deep(cpu, intent));
    if let Some(worst) = worst.max_by_key(|state| state.exit_latency_ns) {
        let held = &facts.cpu_dma_latency_us;
        if open.iter().all(|cpu| forbids(held_limit_ns(facts), cpu, intent)) {
            let shown = |us: &Option<u32>| us.map_or("none".into(), |us| format!("{us} µs"));
            return draft
                .evidence([Evidence::of(held, shown)])
                .good(format!("none, while a program holds {} open", held.path));
        }
        let paths = open.iter().map(|cpu| cpu.pm_qos_resume_latency_us.path.clone()).collect();
        let numbers = CpuList::new(open.iter().map(|cpu| cpu.id));
        let value = match good_ns(intent) / 1_000 {
            0 => "n/a".into(),
            us => us.to_string(),
        };
        return draft.remedies([Remedy::set(&PM_QOS_RESUME, paths, value)]).doubtful(format!(
            "{} on {} (0 is no limit): {} may be entered",
            limits_of(&open),
            machine::cpus(&numbers),
            worst.name
        ));
    }
    if let Some(unreadable) = unreadable_states(&rest) {
        let driver = &facts.cpus.idle_driver;
        let draft = draft.read(driver, String::clone);
        if unreadable.value().is_none() && !unreadable.is_absent() {
            return draft.unreadable(unreadable);
        }
        return match driver.value().is_some_and(|driver| driver == "none") {
            true => draft.not_applicable("no idle driver: there is no state to forbid"),
            false => draft.unknown("no idle states are seen here that it could forbid"),
        };
    }
    draft.good("no limit, and none needed: no state is too deep")
}

/// The different limits, as they are written.
fn limits_of(cpus: &[&&Cpu]) -> String {
    let mut limits: Vec<&str> = cpus
        .iter()
        .filter_map(|cpu| cpu.pm_qos_resume_latency_us.value().map(String::as_str))
        .collect();
    limits.sort_unstable();
    limits.dedup();
    machine::first_few(&limits, 3)
}

#[cfg(test)]
mod cpu_dma_latency_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn judge(facts: &Facts) -> Finding {
        CPU_DMA_LATENCY.judge(facts, &intent())
    }

    /// The good machine with C6 (133 µs) enabled on CPU 3.
    fn with_c6(held: Reading<Option<u32>>) -> Facts {
        let mut facts = good();
        let reading = &mut facts.cpus.cpus[3].idle_states;
        let mut states = reading.value().cloned().unwrap();
        states[3].disabled = false;
        *reading = Reading::known(reading.path.clone(), states);
        facts.cpu_dma_latency_us = held;
        facts
    }

    #[test]
    fn a_limit_is_needed_where_a_state_is_too_deep() {
        let path = "/dev/cpu_dma_latency";
        assert_eq!(judge(&good()).status, Good);
        let finding = judge(&with_c6(Reading::known(path, None)));
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "no limit: C6 (133 µs) may be entered");
        assert_eq!(judge(&with_c6(Reading::known(path, Some(200)))).status, Doubtful);
        assert_eq!(judge(&with_c6(Reading::known(path, Some(100)))).status, Good);
        assert_eq!(judge(&with_c6(Reading::known(path, Some(0)))).status, Good);
        assert_eq!(judge(&with_c6(Reading::denied(path, "EACCES"))).status, Unknown);
        let mut facts = with_c6(Reading::known(path, None));
        let own = &mut facts.cpus.cpus[3].pm_qos_resume_latency_us;
        *own = Reading::known(own.path.clone(), "n/a".into());
        assert_eq!(judge(&facts).status, Good);
        set_cmdline(&mut facts, "idle=poll");
        assert_eq!(judge(&facts).status, Good);
    }

    #[test]
    fn a_guest_that_polls_before_it_halts_spins_only_for_a_limit_of_0() {
        let mut facts = good();
        let path = "/dev/cpu_dma_latency";
        facts.cpus.idle_driver = Reading::known("/sys/x/current_driver", "haltpoll".into());
        assert_eq!(judge(&facts).status, Doubtful);
        facts.cpu_dma_latency_us = Reading::known(path, Some(2));
        assert_eq!(judge(&facts).status, Doubtful);
        facts.cpu_dma_latency_us = Reading::known(path, Some(0));
        assert_eq!(judge(&facts).status, Good);
        facts.cpu_dma_latency_us = Reading::denied(path, "EACCES");
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn without_states_there_is_nothing_to_forbid() {
        let mut facts = good();
        for cpu in &mut facts.cpus.cpus {
            cpu.idle_states = Reading::absent(cpu.idle_states.path.clone());
        }
        assert_eq!(judge(&facts).status, Unknown);
        facts.cpus.idle_driver = Reading::known(facts.cpus.idle_driver.path.clone(), "none".into());
        assert_eq!(judge(&facts).status, NotApplicable);
    }
}

#[cfg(test)]
mod cpuidle_governor_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_config, set_guest};
    use rtproof_host::Reading;

    fn with(name: &str) -> Facts {
        let mut facts = good();
        let path = facts.cpus.idle_governor.path.clone();
        facts.cpus.idle_governor = Reading::known(path, name.into());
        facts
    }

    #[test]
    fn each_governor_has_its_place() {
        let judge = |facts: &Facts| CPUIDLE_GOVERNOR.judge(facts, &intent()).status;
        assert_eq!(judge(&with("teo")), Good);
        assert_eq!(judge(&with("ladder")), Doubtful);
        assert_eq!(judge(&with("haltpoll")), Doubtful);
        assert_eq!(judge(&with("mine")), Unknown);
        let mut facts = with("haltpoll");
        set_guest(&mut facts, "kvm");
        assert_eq!(judge(&facts), Good);
        facts.virt.hypervisor = Reading::absent("cpuid");
        assert_eq!(judge(&facts), Unknown);
    }

    #[test]
    fn without_a_driver_there_is_nothing_to_choose() {
        let mut facts = good();
        facts.cpus.idle_governor = Reading::absent("/sys/x/current_governor");
        assert_eq!(CPUIDLE_GOVERNOR.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "CPU_IDLE", None);
        assert_eq!(CPUIDLE_GOVERNOR.judge(&facts, &intent()).status, NotApplicable);
        let mut facts = good();
        facts.cpus.idle_driver = Reading::known(facts.cpus.idle_driver.path.clone(), "none".into());
        assert_eq!(CPUIDLE_GOVERNOR.judge(&facts, &intent()).status, NotApplicable);
    }
}

#[cfg(test)]
mod cpuidle_states_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_cmdline, set_guest};
    use rtproof_host::Reading;

    /// The good machine with C6 (133 µs) enabled on CPU 3.
    fn with_c6() -> Facts {
        let mut facts = good();
        let mut states = facts.cpus.cpus[3].idle_states.value().cloned().unwrap();
        states[3].disabled = false;
        facts.cpus.cpus[3].idle_states =
            Reading::known("/sys/devices/system/cpu/cpu3/cpuidle", states);
        facts
    }

    fn judge(facts: &Facts, budget_ns: Option<u64>) -> Finding {
        CPUIDLE_STATES.judge(facts, &Intent { budget_ns, ..intent() })
    }

    #[test]
    fn the_budget_decides() {
        let finding = judge(&with_c6(), Some(100_000));
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "C6 takes 133 µs to leave on CPU 3; the budget is 100 µs");
        let path = "/sys/devices/system/cpu/cpu3/cpuidle/state3/disable".to_owned();
        let write = Remedy::set(&IDLE_STATE, vec![path], "1");
        let cap = Remedy::Boot { parameter: "intel_idle.max_cstate=1".into() };
        assert_eq!(finding.remedies, [write, cap]);
        assert_eq!(judge(&with_c6(), Some(200_000)).status, Doubtful);
        assert_eq!(judge(&with_c6(), Some(1_000_000)).status, Good);
        assert_eq!(judge(&with_c6(), None).status, Doubtful);
        assert_eq!(judge(&good(), None).status, Good);
    }

    #[test]
    fn a_limit_on_the_cpu_forbids_deep_states_but_zero_is_no_limit() {
        let mut facts = with_c6();
        let mut limit = |value: &str| {
            let qos = &mut facts.cpus.cpus[3].pm_qos_resume_latency_us;
            *qos = Reading::known(
                "/sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us",
                value.into(),
            );
            judge(&facts, Some(100_000))
        };
        assert_eq!(limit("0").status, Bad);
        assert_eq!(limit("20").status, Good);
        let finding = limit("n/a");
        assert_eq!(finding.status, Good);
        assert!(finding.evidence.iter().any(|e| e.value == "n/a"));
        assert_eq!(limit("soon").status, Bad);
    }

    #[test]
    fn a_limit_that_is_held_open_forbids_deep_states_and_one_that_is_refused_may() {
        let mut facts = with_c6();
        let path = facts.cpu_dma_latency_us.path.clone();
        facts.cpu_dma_latency_us = Reading::known(path.clone(), Some(0));
        let finding = judge(&facts, Some(100_000));
        assert_eq!(finding.status, Good);
        assert!(finding.summary.ends_with("holds /dev/cpu_dma_latency open"), "{finding:?}");
        facts.cpu_dma_latency_us = Reading::known(path.clone(), Some(500));
        assert_eq!(judge(&facts, Some(100_000)).status, Bad);
        facts.cpu_dma_latency_us = Reading::denied(path, "EACCES");
        let finding = judge(&facts, Some(100_000));
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.ends_with("forbids it: refused: EACCES"), "{finding:?}");
    }

    #[test]
    fn no_states_are_never_good() {
        let mut facts = good();
        for cpu in &mut facts.cpus.cpus {
            cpu.idle_states = Reading::absent(cpu.idle_states.path.clone());
        }
        assert_eq!(judge(&facts, None).status, Unknown);
        facts.cpus.idle_driver = Reading::known(facts.cpus.idle_driver.path.clone(), "none".into());
        assert_eq!(judge(&facts, None).status, NotApplicable);
        set_guest(&mut facts, "kvm");
        assert_eq!(judge(&facts, None).status, Doubtful);
    }

    #[test]
    fn polling_is_good_and_only_where_the_parameter_exists() {
        let mut facts = with_c6();
        set_cmdline(&mut facts, "idle=poll");
        assert_eq!(judge(&facts, Some(100_000)).status, Good);
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(judge(&facts, Some(100_000)).status, Bad);
    }

    #[test]
    fn haltpoll_is_the_host_s_business() {
        let mut facts = good();
        facts.cpus.idle_driver = Reading::known("/sys/x/current_driver", "haltpoll".into());
        assert_eq!(judge(&facts, Some(100_000)).status, Doubtful);
    }
}

#[cfg(test)]
mod cstate_cmdline_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn with(line: &str, driver: &str, is_deep: bool) -> Facts {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        facts.cpus.idle_driver = Reading::known("/sys/x/current_driver", driver.into());
        let reading = &mut facts.cpus.cpus[3].idle_states;
        let mut states = reading.value().cloned().unwrap();
        states[3].disabled = !is_deep;
        *reading = Reading::known(reading.path.clone(), states);
        facts
    }

    fn judge(line: &str, driver: &str, is_deep: bool) -> Finding {
        CSTATE_CMDLINE.judge(&with(line, driver, is_deep), &intent())
    }

    #[test]
    fn a_cap_is_for_one_driver() {
        assert_eq!(judge("quiet", "intel_idle", true).status, Good);
        assert_eq!(judge("intel_idle.max_cstate=1", "intel_idle", true).status, Good);
        let finding = judge("intel_idle.max_cstate=0", "acpi_idle", true);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.remedies, [Remedy::Boot { parameter: "processor.max_cstate=1".into() }]);
        assert_eq!(judge("processor.max_cstate=1", "intel_idle", true).status, Doubtful);
        assert_eq!(judge("processor.max_cstate=1", "intel_idle", false).status, Good);
        let both = "intel_idle.max_cstate=0 processor.max_cstate=1";
        assert_eq!(judge(both, "acpi_idle", true).status, Good);
        assert_eq!(judge("intel_idle.max_cstate=0", "none", false).status, Good);
    }

    #[test]
    fn unknown_and_not_applicable() {
        let mut facts = with("processor.max_cstate=1", "intel_idle", false);
        facts.cpus.idle_driver = Reading::absent("/sys/x/current_driver");
        assert_eq!(CSTATE_CMDLINE.judge(&facts, &intent()).status, Unknown);
        facts.kernel.cmdline = Reading::denied("/proc/cmdline", "EACCES");
        assert_eq!(CSTATE_CMDLINE.judge(&facts, &intent()).status, Unknown);
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(CSTATE_CMDLINE.judge(&facts, &intent()).status, NotApplicable);
    }
}

#[cfg(test)]
mod idle_poll_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline, set_guest};
    use rtproof_host::Reading;

    fn polling() -> Facts {
        let mut facts = good();
        set_cmdline(&mut facts, "idle=poll");
        facts
    }

    fn with(choice: Choice) -> Intent {
        let mut intent = intent();
        intent.profile.choices.idle_poll = choice;
        intent
    }

    #[test]
    fn never_with_an_active_sibling() {
        assert_eq!(IDLE_POLL.judge(&good(), &intent()).status, Good);
        assert_eq!(IDLE_POLL.judge(&polling(), &intent()).status, Good);
        let mut facts = polling();
        facts.cpus.cpus[2].siblings = Reading::known("/sys/cpu2/siblings", cpus(&[2, 3]));
        assert_eq!(IDLE_POLL.judge(&facts, &with(Choice::On)).status, Bad);
        facts.cpus.cpus[2].siblings = Reading::absent("/sys/cpu2/siblings");
        assert_eq!(IDLE_POLL.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn the_profile_and_the_host_have_a_word() {
        assert_eq!(IDLE_POLL.judge(&polling(), &with(Choice::Off)).status, Doubtful);
        assert_eq!(IDLE_POLL.judge(&good(), &with(Choice::On)).status, Doubtful);
        let mut facts = polling();
        set_guest(&mut facts, "kvm");
        assert_eq!(IDLE_POLL.judge(&facts, &intent()).status, Doubtful);
    }

    #[test]
    fn another_architecture_has_no_such_parameter() {
        let mut facts = polling();
        facts.kernel.arch = Reading::absent("/proc/sys/kernel/arch");
        assert_eq!(IDLE_POLL.judge(&facts, &intent()).status, Unknown);
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(IDLE_POLL.judge(&facts, &intent()).status, NotApplicable);
    }
}

#[cfg(test)]
mod pm_qos_resume_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent};

    fn judge(facts: &Facts) -> Finding {
        PM_QOS_RESUME_CHECK.judge(facts, &intent())
    }

    /// The good machine with C6 (133 µs) enabled on CPU 3, and this limit.
    fn with_c6(limit: &str) -> Facts {
        let mut facts = good();
        let cpu = &mut facts.cpus.cpus[3];
        let mut states = cpu.idle_states.value().cloned().unwrap();
        states[3].disabled = false;
        cpu.idle_states = Reading::known(cpu.idle_states.path.clone(), states);
        let path = cpu.pm_qos_resume_latency_us.path.clone();
        cpu.pm_qos_resume_latency_us = Reading::known(path, limit.into());
        facts
    }

    #[test]
    fn zero_is_no_limit() {
        assert_eq!(judge(&good()).status, Good);
        let finding = judge(&with_c6("0"));
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "0 on CPU 3 (0 is no limit): C6 may be entered");
        let path = "/sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us".to_owned();
        assert_eq!(finding.remedies, [Remedy::set(&PM_QOS_RESUME, vec![path], "25")]);
        assert_eq!(judge(&with_c6("n/a")).status, Good);
        assert_eq!(judge(&with_c6("100")).status, Good, "C6 takes longer");
        assert_eq!(judge(&with_c6("200")).status, Doubtful);
        assert_eq!(judge(&with_c6("soon")).status, Unknown);
        let mut facts = with_c6("0");
        facts.cpu_dma_latency_us = Reading::known("/dev/cpu_dma_latency", Some(2));
        assert_eq!(judge(&facts).status, Good);
    }

    #[test]
    fn a_guest_that_polls_before_it_halts_spins_only_for_n_a() {
        let mut facts = good();
        facts.cpus.idle_driver = Reading::known("/sys/x/current_driver", "haltpoll".into());
        assert_eq!(judge(&facts).status, Doubtful);
        for cpu in &mut facts.cpus.cpus {
            let path = cpu.pm_qos_resume_latency_us.path.clone();
            cpu.pm_qos_resume_latency_us = Reading::known(path, "n/a".into());
        }
        assert_eq!(judge(&facts).status, Good);
    }

    #[test]
    fn no_file_is_unknown_and_no_states_leave_nothing_to_forbid() {
        let mut facts = good();
        for cpu in &mut facts.cpus.cpus {
            cpu.idle_states = Reading::absent(cpu.idle_states.path.clone());
        }
        assert_eq!(judge(&facts).status, Unknown);
        facts.cpus.idle_driver = Reading::known(facts.cpus.idle_driver.path.clone(), "none".into());
        assert_eq!(judge(&facts).status, NotApplicable);
        let limit = &mut facts.cpus.cpus[2].pm_qos_resume_latency_us;
        *limit = Reading::absent(limit.path.clone());
        assert_eq!(judge(&facts).status, Unknown);
    }
}
