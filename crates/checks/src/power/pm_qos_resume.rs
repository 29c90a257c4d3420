//! Does each real-time CPU have a limit of its own?
//!
//! `pm_qos_resume_latency_us`, where 0 is the trap: it means any latency, not none; `n/a` forbids
//! every idle state. No limit is no fault where no state is too deep, or the machine's limit holds.

use rtproof_host::knobs::power::PM_QOS_RESUME;
use rtproof_host::{CpuList, Facts, Reading, facts::cpu::Cpu};

use super::idle::{
    blind, forbids, good_ns, held_limit_ns, is_haltpoll, is_polling, own_limit_ns, show, too_deep,
    wanted,
};
use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::machine::{rt_cpus, without_cpu_folder};
use crate::text;
use crate::{Evidence, Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "pm-qos-resume",
    title: "limit of exit latency of each real-time CPU",
    why: "without a limit the CPU may enter its deepest idle state, and takes the exit latency of \
          it to wake up; 0 means no limit",
    source: "Documentation/ABI/testing/sysfs-devices-power (pm_qos_resume_latency_us); \
             drivers/cpuidle/governor.c; tuned, pm_qos_resume_latency_us",
    trade_off: Some("a CPU that never sleeps deeply takes power, and leaves less of it to turbo"),
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
    let limits = cpus.iter().map(|cpu| (cpu.id, &cpu.pm_qos_resume_latency_us));
    let draft = draft.saw(text::grouped(limits, String::clone));
    for cpu in &cpus {
        let limit = &cpu.pm_qos_resume_latency_us;
        let Some(text) = limit.value() else {
            return match without_cpu_folder(facts).filter(|_| limit.is_absent()) {
                Some(why) => draft.no_cpu_folder(facts, why),
                None => draft.blind(limit),
            };
        };
        if text != "n/a" && text.parse::<u64>().is_err() {
            let odd = Reading::<u64>::malformed(&limit.path, text, "microseconds or n/a");
            return draft.blind(&odd);
        }
    }
    let is_low = |cpu: &Cpu| own_limit_ns(cpu).is_some_and(|ns| ns <= good_ns(intent));
    if !missing.is_empty() {
        return draft.gone(facts, &missing);
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
        return draft.good(format!("limited on {}", text::cpus(&intent.rt_cpus)));
    }
    let states = rest.iter().map(|cpu| (cpu.id, &cpu.idle_states));
    let draft = draft.saw(text::grouped(states, |states| show(states)));
    let open =
        |cpu: &&&Cpu| too_deep(cpu, intent).is_some() && !forbids(own_limit_ns(cpu), cpu, intent);
    let open: Vec<&&Cpu> = rest.iter().filter(open).collect();
    let worst = open.iter().filter_map(|cpu| too_deep(cpu, intent));
    if let Some(worst) = worst.max_by_key(|state| state.exit_latency_ns) {
        let held = &facts.cpu_dma_latency_us;
        if open.iter().all(|cpu| forbids(held_limit_ns(facts), cpu, intent)) {
            let shown = |us: &Option<u32>| us.map_or("none".into(), |us| format!("{us} µs"));
            return draft
                .saw([Evidence::of(held, shown)])
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
            text::cpus(&numbers),
            worst.name
        ));
    }
    if let Some(blind) = blind(&rest) {
        let driver = &facts.cpus.idle_driver;
        let draft = draft.read(driver, String::clone);
        if blind.value().is_none() && !blind.is_absent() {
            return draft.blind(blind);
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
    text::first_few(&limits, 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent};

    fn judge(facts: &Facts) -> Finding {
        CHECK.judge(facts, &intent())
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
