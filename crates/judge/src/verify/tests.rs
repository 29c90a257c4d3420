//! Effects of words, on the good machine with one thing changed.

use rtproof_host::{CpuList, Reading};

use super::*;
use crate::checks::testing::{cpus, good, set_cmdline};

fn asked(parameter: &str) -> WantedWord {
    WantedWord { parameter: parameter.into(), removes: false }
}

/// The good machine booted with `line`; `shown` are files with what they hold.
fn effect(parameter: &str, line: &str, shown: &[(&str, &str)]) -> WordEffect {
    let mut facts = good();
    set_cmdline(&mut facts, line);
    let of = |path: String| {
        let text = shown.iter().find(|(at, _)| *at == path).map(|(_, text)| *text);
        let reading = match text {
            Some(text) => Reading::known(path.clone(), text.to_owned()),
            None => Reading::absent(path.clone()),
        };
        (path, reading)
    };
    let asked = [asked(parameter)];
    let shown: ShownValues = paths(&asked).into_iter().map(of).collect();
    words(&facts, &asked, &shown).remove(0).effect
}

const ISOLATED: &str = "/sys/devices/system/cpu/isolated";

const DEFAULT: &str = "/proc/irq/default_smp_affinity";

#[test]
fn lists_of_cpus() {
    for (parameter, path, text, expected) in [
        ("isolcpus=managed_irq,domain,2-3", ISOLATED, "2-3", WordEffect::Effective),
        ("isolcpus=2-3", ISOLATED, "2-3", WordEffect::Effective),
        ("isolcpus=2-N", ISOLATED, "2-3", WordEffect::Effective),
        ("isolcpus=2-3", ISOLATED, "3", WordEffect::NotEffective),
        ("isolcpus=2-3", ISOLATED, "", WordEffect::NotEffective),
        ("isolcpus=2-3n", ISOLATED, "", WordEffect::NotEffective),
        ("isolcpus=managed_irq,2-3", ISOLATED, "", WordEffect::NotShown),
        ("isolcpus=2-7", ISOLATED, "2-3", WordEffect::Effective),
        ("nohz_full=2-3", "/sys/devices/system/cpu/nohz_full", "(null)", WordEffect::NotEffective),
        ("nohz-full=2-3", "/sys/devices/system/cpu/nohz_full", "2-3", WordEffect::Effective),
        ("irqaffinity=0-1", DEFAULT, "3", WordEffect::Effective),
        ("irqaffinity=1", DEFAULT, "00000000,00000003", WordEffect::Effective),
        ("irqaffinity=0-1", DEFAULT, "f", WordEffect::NotEffective),
        ("irqaffinity=0-1", DEFAULT, "1", WordEffect::NotEffective),
    ] {
        let found = effect(parameter, parameter, &[(path, text)]);
        assert_eq!(found, expected, "{parameter}: {text}");
    }
    assert_eq!(effect("isolcpus=2-3", "isolcpus=2-3", &[]), WordEffect::CannotTell);
}

#[test]
fn values_of_files() {
    const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    const CSTATE: &str = "/sys/module/intel_idle/parameters/max_cstate";
    const SPECTRE: &str = "/sys/devices/system/cpu/vulnerabilities/spectre_v2";
    const PSTATE: &str = "/sys/devices/system/cpu/intel_pstate/status";
    for (parameter, path, text, expected) in [
        ("transparent_hugepage=never", THP, "always madvise [never]", WordEffect::Effective),
        ("transparent_hugepage=never", THP, "always [madvise] never", WordEffect::NotEffective),
        ("intel_idle.max_cstate=1", CSTATE, "1", WordEffect::Effective),
        ("intel_idle.max_cstate=1", CSTATE, "9", WordEffect::NotEffective),
        ("nosmt", "/sys/devices/system/cpu/smt/control", "forceoff", WordEffect::Effective),
        ("nosmt", "/sys/devices/system/cpu/smt/control", "on", WordEffect::NotEffective),
        ("loglevel=4", "/proc/sys/kernel/printk", "4\t4\t1\t7", WordEffect::Effective),
        ("mce=ignore_ce", "/nowhere", "", WordEffect::CannotTell),
        ("mce=off", "/nowhere", "", WordEffect::NotShown),
        ("mitigations=off", SPECTRE, "Vulnerable; IBPB: disabled", WordEffect::Effective),
        ("mitigations=off", SPECTRE, "Mitigation: Retpolines", WordEffect::NotEffective),
        ("mitigations=off", SPECTRE, "Not affected", WordEffect::NotShown),
        ("intel_pstate=disable", "/nowhere", "", WordEffect::Effective),
        ("intel_pstate=disable", PSTATE, "active", WordEffect::NotEffective),
        ("intel_pstate=passive", PSTATE, "passive", WordEffect::Effective),
        (
            "workqueue.power_efficient=1",
            "/sys/module/workqueue/parameters/power_efficient",
            "Y",
            WordEffect::Effective,
        ),
        ("skew_tick=1", "/nowhere", "", WordEffect::NotShown),
        ("../../etc.x=1", "/nowhere", "", WordEffect::NotShown),
    ] {
        let found = effect(parameter, parameter, &[(path, text)]);
        assert_eq!(found, expected, "{parameter}: {text}");
    }
}

#[test]
fn missing_words_and_words_to_remove() {
    assert_eq!(effect("isolcpus=2-3", "quiet", &[(ISOLATED, "2-3")]), WordEffect::Missing);
    assert_eq!(effect("isolcpus=2-3", "isolcpus=2", &[(ISOLATED, "2-3")]), WordEffect::Missing);
    let away = [WantedWord { parameter: "tsc".into(), removes: true }];
    let mut facts = good();
    assert_eq!(words(&facts, &away, &ShownValues::new())[0].effect, WordEffect::Missing);
    set_cmdline(&mut facts, "quiet");
    assert_eq!(words(&facts, &away, &ShownValues::new())[0].effect, WordEffect::Effective);
    facts.kernel.cmdline = Reading::absent("/proc/cmdline");
    assert_eq!(words(&facts, &away, &ShownValues::new())[0].effect, WordEffect::CannotTell);
    assert_eq!(words(&facts, &[asked("")], &ShownValues::new())[0].effect, WordEffect::CannotTell);
}

#[test]
fn what_the_kernel_did_not_know_is_ignored() {
    let mut facts = good();
    set_cmdline(&mut facts, "isolcpu=2-3");
    let mut log = facts.platform.log.value().cloned().unwrap();
    log.unknown_parameters = Some(vec!["isolcpu".into()]);
    facts.platform.log = Reading::known("/dev/kmsg", log);
    let found = words(&facts, &[asked("isolcpu=2-3")], &ShownValues::new());
    assert_eq!(found[0].effect, WordEffect::Ignored);
    assert!(found[0].effect.is_bad());
}

#[test]
fn offloaded_callbacks_by_the_log_or_by_the_threads() {
    let mut facts = good();
    let of = |facts: &Facts| words(facts, &[asked("rcu_nocbs=2-3")], &ShownValues::new())[0].effect;
    assert_eq!(of(&facts), WordEffect::Effective, "two threads");
    let mut log = facts.platform.log.value().cloned().unwrap();
    log.rcu_offloaded = Some(cpus(&[3]));
    facts.platform.log = Reading::known("/dev/kmsg", log.clone());
    assert_eq!(of(&facts), WordEffect::NotEffective);
    log.rcu_offloaded = Some(CpuList::new(0..4));
    facts.platform.log = Reading::known("/dev/kmsg", log);
    assert_eq!(of(&facts), WordEffect::Effective);
    facts.platform.log = Reading::absent("/dev/kmsg");
    facts.placement = Reading::absent("/proc");
    assert_eq!(of(&facts), WordEffect::CannotTell);
}

#[test]
fn facts_that_show_an_effect() {
    let facts = good();
    let mut set = facts.clone();
    set_cmdline(&mut set, "preempt=full systemd.cpu_affinity=0-1");
    let of = |word| words(&set, &[asked(word)], &ShownValues::new())[0].effect;
    assert_eq!(of("preempt=full"), WordEffect::NotEffective, "the good machine is PREEMPT_RT");
    assert_eq!(of("systemd.cpu_affinity=0-1"), WordEffect::Effective);
}
