//! What the checks of idle states share: how deep is too deep, and which limits are in force.
//!
//! A state is not entered where its exit takes longer than the CPU's own limit
//! (`pm_qos_resume_latency_us`) or that of the machine (`/dev/cpu_dma_latency`), the lower of both
//! (`cpuidle_governor_latency_req` in drivers/cpuidle/governor.c).

use rtproof_host::{Facts, Reading, facts::cpu::Cpu, facts::cpu::IdleState};

use crate::{Intent, quantity};

/// Exit latency that is good without a budget: deeper than C1E, shallower than C6 of x86.
pub(super) const NO_BUDGET_NS: u64 = 20_000;

/// Exit latency that is certainly good.
pub(super) fn good_ns(intent: &Intent) -> u64 {
    intent.budget_ns.map_or(NO_BUDGET_NS, |budget_ns| budget_ns / 4)
}

/// What is wanted of it, in words.
pub(super) fn wanted(intent: &Intent) -> String {
    let most = quantity::ns(good_ns(intent));
    match intent.budget_ns {
        Some(_) => format!("exit latency at most {most}, a quarter of the budget"),
        None => format!("exit latency at most {most}"),
    }
}

/// Exit latency that the CPU's own limit allows; `None`: any.
pub(super) fn own_limit_ns(cpu: &Cpu) -> Option<u64> {
    match cpu.pm_qos_resume_latency_us.value()?.as_str() {
        "n/a" => Some(0),
        "0" => None,
        us => us.parse::<u64>().ok().map(|us| us.saturating_mul(1_000)),
    }
}

/// Exit latency that the machine's limit allows; `None`: any, or not known.
pub(super) fn held_limit_ns(facts: &Facts) -> Option<u64> {
    (*facts.cpu_dma_latency_us.value()?).map(|us| u64::from(us) * 1_000)
}

/// Exit latency that both allow; `None`: any.
pub(super) fn limit_ns(facts: &Facts, cpu: &Cpu) -> Option<u64> {
    own_limit_ns(cpu).into_iter().chain(held_limit_ns(facts)).min()
}

/// The states that user space has not disabled.
pub(super) fn enabled(cpu: &Cpu) -> impl Iterator<Item = &IdleState> {
    cpu.idle_states.value().into_iter().flatten().filter(|state| !state.disabled)
}

/// The deepest state of a CPU that is too deep and enabled, limits aside.
pub(super) fn too_deep<'a>(cpu: &'a Cpu, intent: &Intent) -> Option<&'a IdleState> {
    let most_ns = good_ns(intent);
    enabled(cpu).filter(|state| state.exit_latency_ns > most_ns).max_by_key(|s| s.exit_latency_ns)
}

/// Whether a limit keeps a CPU out of every state that is too deep.
pub(super) fn forbids(limit_ns: Option<u64>, cpu: &Cpu, intent: &Intent) -> bool {
    let good_ns = good_ns(intent);
    limit_ns.is_some_and(|most_ns| {
        !enabled(cpu).any(|s| s.exit_latency_ns > good_ns && s.exit_latency_ns <= most_ns)
    })
}

/// The first of these CPUs whose states are not known, or not there.
pub(super) fn blind<'a>(cpus: &[&'a Cpu]) -> Option<&'a Reading<Vec<IdleState>>> {
    let is_empty = |states: &&Reading<Vec<IdleState>>| states.value().is_none_or(Vec::is_empty);
    cpus.iter().map(|cpu| &cpu.idle_states).find(is_empty)
}

/// Whether idle CPUs of a guest spin for a moment and then halt, as long as no limit is 0
/// (drivers/cpuidle/governors/haltpoll.c). Where the driver is not seen, its state tells.
pub(super) fn is_haltpoll(facts: &Facts) -> bool {
    let has_its_state = |cpu: &Cpu| enabled(cpu).any(|state| state.name == "haltpoll idle");
    match facts.cpus.idle_driver.value() {
        Some(driver) => driver == "haltpoll",
        None => facts.cpus.cpus.iter().any(has_its_state),
    }
}

/// `idle=poll` is a parameter of x86 alone.
pub(super) fn is_polling(facts: &Facts) -> bool {
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
            format!("{} {}{off}", state.name, quantity::ns(state.exit_latency_ns))
        })
        .collect();
    if states.is_empty() { "no states".into() } else { crate::text::first_few(&states, 10) }
}
