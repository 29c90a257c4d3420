//! Tests of the checks in `idle.rs`.

use super::*;

mod cpu_dma_latency {
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

mod cpuidle_governor {
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

mod cpuidle_states {
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

mod cstate_cmdline {
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

mod idle_poll {
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

mod pm_qos_resume {
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
