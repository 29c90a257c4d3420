//! How long do the real-time CPUs take to wake up from idle?
//!
//! A C-state is not bad in itself: its exit latency is part of the latency, so it is held against
//! the budget. Up to a quarter of the budget is good, up to the whole is doubtful, beyond is bad.
//! Without a budget, up to 20 µs is good and anything deeper doubtful, as only the user knows.
//! States that the CPU's own limit or the machine's forbids are not entered (`idle.rs`); where the
//! machine's cannot be read, a deep state is not certain to be.

use rtproof_host::knobs::power::IDLE_STATE;
use rtproof_host::{Facts, facts::cpu::Cpu, facts::cpu::IdleState};

use super::idle::{
    enabled, forbids, good_ns, is_haltpoll, is_polling, limit_ns, own_limit_ns, show, wanted,
};
use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::machine::{built_with, guest, is_bare_metal, option, rt_cpus, without_cpu_folder};
use crate::text;
use crate::{Evidence, Finding, Impact, Intent, Remedy, quantity};

pub(super) static CHECK: Check = Check {
    id: "cpuidle-states",
    title: "exit latency of the idle states of the real-time CPUs",
    why: "a CPU in a deep idle state takes its exit latency to wake up, and finds its caches cold",
    source: "Documentation/admin-guide/pm/cpuidle.rst; Flatscher, \"Real-time Optimizations\" \
             (maximum halved on a ThinkPad P500)",
    impact: Impact::Hundreds,
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.wants(wanted(intent)).cpus(&intent.rt_cpus);
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
    let draft = draft.saw(text::grouped(states, |states| show(states)));
    let mut deep: Vec<Deep<'_>> = cpus.iter().flat_map(|cpu| deep(facts, cpu, intent)).collect();
    deep.sort_by_key(|deep| std::cmp::Reverse(deep.state.exit_latency_ns));
    if let Some(worst) = deep.first() {
        return judge_deep(draft, facts, &deep, worst, intent);
    }
    let empty = |cpu: &&&Cpu| cpu.idle_states.value().is_none_or(Vec::is_empty);
    if let Some(blind) = cpus.iter().find(empty) {
        let is_there = !blind.idle_states.is_absent() && blind.idle_states.value().is_none();
        return if is_there { draft.blind(&blind.idle_states) } else { no_states(draft, facts) };
    }
    if !missing.is_empty() {
        return draft.gone(facts, &missing);
    }
    judge_shallow(draft, facts, &cpus, intent)
}

/// An enabled state that is deeper than what is certainly good.
struct Deep<'a> {
    cpu: u32,
    state: &'a IdleState,
}

fn deep<'a>(facts: &Facts, cpu: &'a Cpu, intent: &Intent) -> Vec<Deep<'a>> {
    let most_ns = limit_ns(facts, cpu).unwrap_or(u64::MAX);
    let good_ns = good_ns(intent);
    enabled(cpu)
        .filter(|state| state.exit_latency_ns <= most_ns && state.exit_latency_ns > good_ns)
        .map(|state| Deep { cpu: cpu.id, state })
        .collect()
}

fn judge_deep(
    draft: Draft,
    facts: &Facts,
    deep: &[Deep<'_>],
    worst: &Deep<'_>,
    intent: &Intent,
) -> Finding {
    let mut paths: Vec<(u32, u32)> = deep.iter().map(|d| (d.cpu, d.state.index)).collect();
    paths.sort_unstable();
    let cpus = rtproof_host::CpuList::new(paths.iter().map(|&(cpu, _)| cpu));
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
        quantity::ns(exit_ns),
        text::cpus(&cpus)
    );
    let cap = super::cstate_cmdline::cap(facts);
    let write = Remedy::set(&IDLE_STATE, paths, "1");
    let draft = draft.remedies([write]).remedies(cap);
    match intent.budget_ns {
        None => draft.doubtful(format!("{summary}; no budget to hold it against")),
        Some(budget_ns) => {
            let summary = format!("{summary}; the budget is {}", quantity::ns(budget_ns));
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

fn judge_shallow(draft: Draft, facts: &Facts, cpus: &[&Cpu], intent: &Intent) -> Finding {
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
    let draft = draft.saw(text::grouped(own, String::clone)).saw(
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
            format!(
                "deepest is {}, left in {}",
                deepest.name,
                quantity::ns(deepest.exit_latency_ns)
            )
        }
        None => "every idle state is disabled".into(),
    };
    let while_held = match is_held {
        true => format!(", while a program holds {} open", held.path),
        false => String::new(),
    };
    draft.good(format!("{summary}, on {}{while_held}", text::cpus(&intent.rt_cpus)))
}

/// No idle states in /sys: the architecture's plain halt, or a host that decides.
fn no_states(draft: Draft, facts: &Facts) -> Finding {
    let driver = &facts.cpus.idle_driver;
    let draft = draft.read(driver, String::clone);
    if let Some(hypervisor) = guest(facts) {
        return draft.saw([Evidence::of(&facts.virt.hypervisor, |_| hypervisor.into())]).doubtful(
            format!(
                "no idle states in this {hypervisor} guest: an idle CPU halts, and \
                the host decides when it wakes up"
            ),
        );
    }
    let is_none = driver.value().is_some_and(|driver| driver == "none");
    let is_built_without = built_with(facts, "CPU_IDLE") == Some(false);
    if is_bare_metal(facts) && (is_none || is_built_without) {
        return draft.saw(is_built_without.then(|| option(facts, "CPU_IDLE"))).not_applicable(
            "no idle driver: an idle CPU only halts (HLT, WFI); firmware may go deeper",
        );
    }
    draft.unknown("no idle states are seen here: firmware or a driver may enter some all the same")
}

#[cfg(test)]
mod tests {
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
        CHECK.judge(facts, &Intent { budget_ns, ..intent() })
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
