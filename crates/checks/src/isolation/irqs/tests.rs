//! Tests of the checks in `irqs.rs`.

use super::*;

mod irqs {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent, irq};
    use rtproof_host::Reading;

    fn with(irqs: Vec<Irq>) -> Facts {
        let mut facts = good();
        let mut all = facts.irqs.irqs.value().cloned().unwrap();
        all.extend(irqs);
        facts.irqs.irqs = Reading::known("/proc/interrupts", all);
        facts
    }

    fn judge(irqs: Vec<Irq>) -> Finding {
        IRQ_AFFINITY.judge(&with(irqs), &intent())
    }

    #[test]
    fn the_effective_affinity_decides() {
        assert_eq!(judge(vec![irq(30, "eth1", &[0, 1, 2, 3], &[0])]).status, Good);
        let finding = judge(vec![irq(30, "eth1", &[0, 1, 2, 3], &[2])]);
        assert_eq!(finding.status, Bad);
        assert_eq!(finding.summary, "1 interrupt on CPU 2: 30 (eth1)");
        let paths = vec!["/proc/irq/30/smp_affinity_list".to_owned()];
        assert_eq!(finding.remedies[0], Remedy::set(&IRQ_CPUS, paths, "0-1"));
    }

    #[test]
    fn requested_elsewhere_but_not_moved_is_reported() {
        let finding = judge(vec![irq(30, "eth1", &[0, 1], &[3])]);
        assert_eq!(finding.status, Bad);
        assert!(finding.summary.ends_with("1 of them asked elsewhere and not moved"));
    }

    #[test]
    fn an_interrupt_that_never_fired_and_the_default_are_doubtful() {
        let silent = Irq { count: 0, ..irq(31, "nvme0q3", &[2], &[2]) };
        assert_eq!(judge(vec![silent]).status, Doubtful);
        let mut facts = good();
        facts.irqs.default_affinity =
            Reading::known("/proc/irq/default_smp_affinity", cpus(&[0, 3]));
        let finding = IRQ_AFFINITY.judge(&facts, &intent());
        assert_eq!(finding.summary, "new interrupts may go to CPU 3: default affinity 0,3");
    }

    #[test]
    fn per_cpu_timers_are_no_devices() {
        assert_eq!(judge(vec![irq(11, "arch_timer", &[0, 1, 2, 3], &[])]).status, Good);
    }

    #[test]
    fn a_kernel_without_effective_affinity_is_judged_by_what_was_asked() {
        let path = "/proc/irq/30/effective_affinity_list";
        let old =
            |requested| Irq { effective: Reading::absent(path), ..irq(30, "eth1", requested, &[]) };
        assert_eq!(judge(vec![old(&[0, 1])]).status, Good);
        assert_eq!(judge(vec![old(&[1, 2])]).status, Doubtful);
        assert_eq!(judge(vec![Irq { count: 0, ..old(&[1, 2]) }]).status, Good);
        let denied = Irq { effective: Reading::denied(path, "EACCES"), ..old(&[1, 2]) };
        assert_eq!(judge(vec![denied]).status, Unknown);
    }

    #[test]
    fn with_every_cpu_real_time_there_is_nowhere_to_go() {
        let all = Intent { rt_cpus: cpus(&[0, 1, 2, 3]), housekeeping: cpus(&[]), ..intent() };
        let finding = IRQ_AFFINITY.judge(&good(), &all);
        assert_eq!(finding.status, Status::NotApplicable);
        assert!(finding.summary.contains("nowhere else to go"));
    }

    #[test]
    fn five_hundred_interrupts_stay_readable() {
        let irqs = (100..600).map(|n| irq(n, &format!("mlx5_{n}"), &[0, 1, 2, 3], &[2])).collect();
        let finding = judge(irqs);
        assert!(finding.summary.len() < 120, "{}", finding.summary);
        assert!(finding.evidence.len() < 10);
        assert!(finding.evidence.iter().all(|e| e.path.len() < 120 && e.value.len() < 120));
    }

    #[test]
    fn a_hidden_list_is_unknown() {
        let mut facts = good();
        facts.irqs.irqs = Reading::known("/proc/interrupts", Vec::new());
        assert_eq!(IRQ_AFFINITY.judge(&facts, &intent()).status, Unknown);
    }
}

mod irq_shared {
    use super::*;
    use crate::Status::{self, Doubtful, Good, Unknown};
    use crate::testing::{good, intent, irq};
    use rtproof_host::Reading;

    fn with(irqs: Vec<Irq>) -> Status {
        let mut facts = good();
        facts.irqs.irqs = Reading::known("/proc/interrupts", irqs);
        IRQ_SHARED.judge(&facts, &intent()).status
    }

    #[test]
    fn shared_here_or_elsewhere() {
        assert_eq!(with(vec![irq(16, "snd, ehci_hcd:usb1", &[2], &[2])]), Doubtful);
        assert_eq!(with(vec![irq(16, "snd, ehci_hcd:usb1", &[0], &[0])]), Good);
        assert_eq!(with(vec![irq(16, "snd", &[2], &[2])]), Good);
        assert_eq!(with(vec![]), Unknown);
        let silent = Irq { count: 0, ..irq(16, "snd, ehci_hcd:usb1", &[2], &[2]) };
        assert_eq!(with(vec![silent]), Good);
    }

    #[test]
    fn only_what_sits_in_a_slot_is_sent_to_another() {
        let remedies = |chip: &str| {
            let mut facts = good();
            let shared = Irq { chip: chip.into(), ..irq(27, "pcie, wlan0", &[2], &[2]) };
            facts.irqs.irqs = Reading::known("/proc/interrupts", vec![shared]);
            IRQ_SHARED.judge(&facts, &intent()).remedies
        };
        let manual = |text: &str| vec![Remedy::Manual { text: text.into() }];
        assert_eq!(remedies("IO-APIC 16-fasteoi"), manual(OTHER_SLOT));
        assert_eq!(remedies("GICv2 59 Level"), manual(WIRED));
        assert_eq!(remedies("SiFive PLIC 9 Edge"), manual(WIRED));
    }
}

mod irq_storm {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    fn with(count: u64) -> Finding {
        let mut facts = good();
        let mut counters = facts.isolation.counters.value().cloned().unwrap();
        counters.devices[3] = DeviceCount { cpu: 3, count, most: Some((24, count)) };
        facts.isolation.counters = Reading::known("/proc/interrupts", counters);
        IRQ_STORM.judge(&facts, &intent())
    }

    #[test]
    fn the_mean_since_boot() {
        assert_eq!(with(12).status, Good);
        let finding = with(50_000);
        assert_eq!(finding.status, Doubtful);
        assert!(
            finding.summary.starts_with(
                "50/s since boot on CPU 3, most of all interrupt 24 (nvme0q0) with 50/s"
            )
        );
        let mut facts = good();
        facts.isolation.uptime_ms = Reading::absent("/proc/uptime");
        assert_eq!(IRQ_STORM.judge(&facts, &intent()).status, Unknown);
    }
}

mod irqaffinity_boot {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn with(line: &str, default: &[u32]) -> Finding {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        facts.irqs.default_affinity =
            Reading::known("/proc/irq/default_smp_affinity", cpus(default));
        IRQAFFINITY_BOOT.judge(&facts, &intent())
    }

    #[test]
    fn the_default_and_the_parameter() {
        assert_eq!(with("quiet", &[0, 1]).status, Good);
        let finding = with("quiet", &[0, 1, 2, 3]);
        assert_eq!(finding.status, Doubtful);
        let paths = vec!["/proc/irq/default_smp_affinity".to_owned()];
        assert_eq!(finding.remedies[0], Remedy::set(&IRQ_DEFAULT, paths, "3"));
        let finding = with("irqaffinity=0-3", &[0, 1, 2, 3]);
        assert_eq!((finding.status, finding.summary.contains("covers the")), (Bad, true));
        assert!(with("irqaffinity=0-1", &[0, 2]).summary.contains("it was changed since"));
        assert!(with("irqaffinity=1-0", &[0, 2]).summary.contains("is refused"));
    }

    #[test]
    fn unreadable() {
        let mut facts = good();
        facts.irqs.default_affinity = Reading::absent("/proc/irq/default_smp_affinity");
        assert_eq!(IRQAFFINITY_BOOT.judge(&facts, &intent()).status, Unknown);
    }
}

mod irqbalance {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent};

    fn judge_in(mut facts: Facts, running: bool, enabled: bool, banned: Option<&[u32]>) -> Finding {
        let state = irq::Irqbalance {
            running: running.then_some(612),
            enabled,
            banned: banned.map(cpus),
            banned_from: banned.map(|_| "/etc/default/irqbalance".into()),
        };
        facts.irqs.irqbalance = Reading::known("/proc", state);
        IRQBALANCE.judge(&facts, &intent())
    }

    fn judge(running: bool, enabled: bool, banned: Option<&[u32]>) -> Finding {
        judge_in(good(), running, enabled, banned)
    }

    #[test]
    fn stopped_or_banned_is_good() {
        assert_eq!(judge(false, false, None).status, Good);
        assert_eq!(judge(true, true, Some(&[2, 3])).status, Good);
    }

    #[test]
    fn a_short_ban_is_bad_even_with_isolated_cpus() {
        let finding = judge(true, true, Some(&[3]));
        assert_eq!(finding.status, Bad);
        assert!(finding.summary.starts_with("pid 612 may use CPU 2:"), "{}", finding.summary);
        let path = "/etc/default/irqbalance".into();
        let line = "IRQBALANCE_BANNED_CPULIST=2-3".into();
        assert_eq!(finding.remedies[1], Remedy::File { path, line });
    }

    #[test]
    fn running_is_bad_and_doubtful_where_the_cpus_are_isolated() {
        assert_eq!(judge(true, true, None).status, Doubtful);
        let mut facts = good();
        facts.cpus.isolated = Reading::known("/sys/x/isolated", cpus(&[]));
        facts.cpus.nohz_full = Reading::absent("/sys/x/nohz_full");
        assert_eq!(judge_in(facts, true, true, None).status, Bad);
    }

    #[test]
    fn enabled_is_doubtful_and_a_container_does_not_see_the_host() {
        assert_eq!(judge(false, true, None).status, Doubtful);
        let mut facts = good();
        facts.virt.container = Reading::known("/run/.containerenv", Some("podman".into()));
        assert_eq!(judge_in(facts, false, false, None).status, Unknown);
    }
}

mod local_ipis {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_row};
    use rtproof_host::Reading;

    #[test]
    fn rates_of_real_time_cpus_only() {
        let mut facts = good();
        set_row(&mut facts, "CAL", "Function call interrupts", [90_000, 90_000, 3, 5]);
        assert_eq!(LOCAL_IPIS.judge(&facts, &intent()).status, Good);
        set_row(&mut facts, "CAL", "Function call interrupts", [0, 0, 3, 30_000]);
        let finding = LOCAL_IPIS.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "since boot function call interrupts 30/s on CPU 3");
        facts.isolation.counters = Reading::denied("/proc/interrupts", "EACCES");
        assert_eq!(LOCAL_IPIS.judge(&facts, &intent()).status, Unknown);
    }
}

mod static_key_ipis {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_config};
    use rtproof_host::{Reading, facts::virt::Unit};

    #[test]
    fn held_not_held_and_no_keys() {
        let mut facts = good();
        set_config(&mut facts, "JUMP_LABEL", Some("y"));
        let with = |running: Option<Option<bool>>| {
            let mut facts = facts.clone();
            let mut units = facts.units.value().cloned().unwrap();
            units.remove(ENTSK_UNIT);
            units.extend(running.map(|running| {
                let file = format!("/usr/lib/systemd/system/{ENTSK_UNIT}");
                (ENTSK_UNIT.into(), Unit { file, enabled: true, masked: false, running })
            }));
            facts.units = Reading::known(facts.units.path.clone(), units);
            let finding = STATIC_KEY_IPIS.judge(&facts, &intent());
            // What is not installed cannot be enabled.
            let enables = finding.remedies.iter().any(|it| matches!(it, Remedy::Unit { .. }));
            assert!(running.is_some() || !enables);
            finding.status
        };
        assert_eq!(with(Some(Some(true))), Good);
        assert_eq!(with(Some(Some(false))), Doubtful);
        assert_eq!(with(Some(None)), Unknown);
        assert_eq!(with(None), Doubtful);
        set_config(&mut facts, "JUMP_LABEL", None);
        assert_eq!(STATIC_KEY_IPIS.judge(&facts, &intent()).status, NotApplicable);
    }
}

mod tlb_shootdown {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent, set_row};
    use rtproof_host::Reading;

    #[test]
    fn the_mean_since_boot_and_machines_without() {
        let mut facts = good();
        assert_eq!(TLB_SHOOTDOWN.judge(&facts, &intent()).status, Good);
        set_row(&mut facts, "TLB", "TLB shootdowns", [9, 9, 2_000, 0]);
        let finding = TLB_SHOOTDOWN.judge(&facts, &intent());
        assert_eq!(
            (finding.status, finding.summary.as_str()),
            (Doubtful, "2.0/s since boot on CPU 2")
        );
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(TLB_SHOOTDOWN.judge(&facts, &intent()).status, NotApplicable);
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "riscv64".into());
        facts.isolation.counters = Reading::absent("/proc/interrupts");
        assert_eq!(TLB_SHOOTDOWN.judge(&facts, &intent()).status, Unknown);
    }
}
