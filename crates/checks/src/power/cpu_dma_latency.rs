//! Does a program forbid deep idle states to all CPUs?
//!
//! The limit is in force while a process holds /dev/cpu_dma_latency open, so it is gone with the
//! program: cyclictest sets it for itself, and what it measured is not what an application finds
//! that does not. No limit is no fault where no state is too deep anyway.

use rtproof_host::{Facts, facts::cpu::Cpu, knobs::power as knobs};

use super::idle::{
    blind, forbids, good_ns, held_limit_ns, is_haltpoll, is_polling, own_limit_ns, show, too_deep,
    wanted,
};
use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::machine::{rt_cpus, without_cpu_folder};
use crate::text;
use crate::{Evidence, Finding, Impact, Intent, Remedy, quantity};

pub(super) static CHECK: Check = Check {
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
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.wants(wanted(intent)).cpus(&intent.rt_cpus);
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
    let states = text::grouped(states, |states| show(states));
    let is_open =
        |cpu: &&&Cpu| too_deep(cpu, intent).is_some() && !forbids(own_limit_ns(cpu), cpu, intent);
    let open: Vec<&&Cpu> = cpus.iter().filter(is_open).collect();
    let is_held = !cpus.is_empty()
        && held_limit_ns(facts).is_some_and(|ns| {
            ns <= good_ns(intent) || open.iter().all(|cpu| forbids(Some(ns), cpu, intent))
        });
    if !missing.is_empty() {
        return draft.read(held, limit).gone(facts, &missing);
    }
    if is_haltpoll(facts) && held_limit_ns(facts) != Some(0) {
        let draft = draft.read(&facts.cpus.idle_driver, String::clone).read(held, limit);
        return match held.value() {
            None => draft.blind(held),
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
        let draft = draft.saw(states).read(held, limit);
        if is_held {
            let limit = held_text(facts);
            return draft.good(format!("at most {limit}, which no state that is too deep meets"));
        }
        if held.value().is_none() {
            return draft.blind(held);
        }
        let most_us = good_ns(intent) / 1_000;
        let exit = quantity::ns(worst.exit_latency_ns);
        return draft
            .remedies([Remedy::Hold { limit_us: u32::try_from(most_us).unwrap_or(u32::MAX) }])
            .doubtful(format!("{}: {} ({exit}) may be entered", held_text(facts), worst.name));
    }
    if let Some(blind) = blind(&cpus) {
        if let Some(why) = without_cpu_folder(facts) {
            return draft.no_cpu_folder(facts, why);
        }
        let driver = &facts.cpus.idle_driver;
        let draft = draft.saw(states).read(driver, String::clone);
        if blind.value().is_none() && !blind.is_absent() {
            return draft.blind(blind);
        }
        return match driver.value().is_some_and(|driver| driver == "none") {
            true => draft.not_applicable("no idle driver: there is no state to forbid"),
            false => draft.unknown("no idle states are seen here that it could forbid"),
        };
    }
    let own = cpus.iter().filter(|cpu| too_deep(cpu, intent).is_some());
    let own = own.map(|cpu| (cpu.id, &cpu.pm_qos_resume_latency_us));
    draft
        .saw(states)
        .saw(text::grouped(own, String::clone))
        .saw(held.value().map(|_| Evidence::of(held, limit)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn judge(facts: &Facts) -> Finding {
        CHECK.judge(facts, &intent())
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
