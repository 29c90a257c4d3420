//! What became of words, on the good machine with one thing changed.

use rtproof_host::{CpuList, Reading};

use super::*;
use crate::checks::testing::{cpus, good, set_cmdline};

fn asked(parameter: &str) -> WantedWord {
    WantedWord { parameter: parameter.into(), removes: false }
}

/// The good machine booted with `line`; `shown` are files with what they hold.
fn effect(parameter: &str, line: &str, shown: &[(&str, &str)]) -> Effect {
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
    let shown: Shown = paths(&asked).into_iter().map(of).collect();
    words(&facts, &asked, &shown).remove(0).effect
}

const ISOLATED: &str = "/sys/devices/system/cpu/isolated";

const DEFAULT: &str = "/proc/irq/default_smp_affinity";

#[test]
fn lists_of_cpus() {
    for (parameter, path, text, expected) in [
        ("isolcpus=managed_irq,domain,2-3", ISOLATED, "2-3", Effect::Effective),
        ("isolcpus=2-3", ISOLATED, "2-3", Effect::Effective),
        ("isolcpus=2-N", ISOLATED, "2-3", Effect::Effective),
        ("isolcpus=2-3", ISOLATED, "3", Effect::NotEffective),
        ("isolcpus=2-3", ISOLATED, "", Effect::NotEffective),
        ("isolcpus=2-3n", ISOLATED, "", Effect::NotEffective),
        ("isolcpus=managed_irq,2-3", ISOLATED, "", Effect::NotShown),
        ("isolcpus=2-7", ISOLATED, "2-3", Effect::Effective),
        ("nohz_full=2-3", "/sys/devices/system/cpu/nohz_full", "(null)", Effect::NotEffective),
        ("nohz-full=2-3", "/sys/devices/system/cpu/nohz_full", "2-3", Effect::Effective),
        ("irqaffinity=0-1", DEFAULT, "3", Effect::Effective),
        ("irqaffinity=1", DEFAULT, "00000000,00000003", Effect::Effective),
        ("irqaffinity=0-1", DEFAULT, "f", Effect::NotEffective),
        ("irqaffinity=0-1", DEFAULT, "1", Effect::NotEffective),
    ] {
        let found = effect(parameter, parameter, &[(path, text)]);
        assert_eq!(found, expected, "{parameter}: {text}");
    }
    assert_eq!(effect("isolcpus=2-3", "isolcpus=2-3", &[]), Effect::CannotTell);
}

#[test]
fn values_of_files() {
    const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    const CSTATE: &str = "/sys/module/intel_idle/parameters/max_cstate";
    const SPECTRE: &str = "/sys/devices/system/cpu/vulnerabilities/spectre_v2";
    const PSTATE: &str = "/sys/devices/system/cpu/intel_pstate/status";
    for (parameter, path, text, expected) in [
        ("transparent_hugepage=never", THP, "always madvise [never]", Effect::Effective),
        ("transparent_hugepage=never", THP, "always [madvise] never", Effect::NotEffective),
        ("intel_idle.max_cstate=1", CSTATE, "1", Effect::Effective),
        ("intel_idle.max_cstate=1", CSTATE, "9", Effect::NotEffective),
        ("nosmt", "/sys/devices/system/cpu/smt/control", "forceoff", Effect::Effective),
        ("nosmt", "/sys/devices/system/cpu/smt/control", "on", Effect::NotEffective),
        ("loglevel=4", "/proc/sys/kernel/printk", "4\t4\t1\t7", Effect::Effective),
        ("mce=ignore_ce", "/nowhere", "", Effect::CannotTell),
        ("mce=off", "/nowhere", "", Effect::NotShown),
        ("mitigations=off", SPECTRE, "Vulnerable; IBPB: disabled", Effect::Effective),
        ("mitigations=off", SPECTRE, "Mitigation: Retpolines", Effect::NotEffective),
        ("mitigations=off", SPECTRE, "Not affected", Effect::NotShown),
        ("intel_pstate=disable", "/nowhere", "", Effect::Effective),
        ("intel_pstate=disable", PSTATE, "active", Effect::NotEffective),
        ("intel_pstate=passive", PSTATE, "passive", Effect::Effective),
        (
            "workqueue.power_efficient=1",
            "/sys/module/workqueue/parameters/power_efficient",
            "Y",
            Effect::Effective,
        ),
        ("skew_tick=1", "/nowhere", "", Effect::NotShown),
        ("../../etc.x=1", "/nowhere", "", Effect::NotShown),
    ] {
        let found = effect(parameter, parameter, &[(path, text)]);
        assert_eq!(found, expected, "{parameter}: {text}");
    }
}

#[test]
fn missing_and_to_be_away() {
    assert_eq!(effect("isolcpus=2-3", "quiet", &[(ISOLATED, "2-3")]), Effect::Missing);
    assert_eq!(effect("isolcpus=2-3", "isolcpus=2", &[(ISOLATED, "2-3")]), Effect::Missing);
    let away = [WantedWord { parameter: "tsc".into(), removes: true }];
    let mut facts = good();
    assert_eq!(words(&facts, &away, &Shown::new())[0].effect, Effect::Missing);
    set_cmdline(&mut facts, "quiet");
    assert_eq!(words(&facts, &away, &Shown::new())[0].effect, Effect::Effective);
    facts.kernel.cmdline = Reading::absent("/proc/cmdline");
    assert_eq!(words(&facts, &away, &Shown::new())[0].effect, Effect::CannotTell);
    assert_eq!(words(&facts, &[asked("")], &Shown::new())[0].effect, Effect::CannotTell);
}

#[test]
fn what_the_kernel_did_not_know_is_ignored() {
    let mut facts = good();
    set_cmdline(&mut facts, "isolcpu=2-3");
    let mut log = facts.platform.log.value().cloned().unwrap();
    log.unknown_parameters = Some(vec!["isolcpu".into()]);
    facts.platform.log = Reading::known("/dev/kmsg", log);
    let found = words(&facts, &[asked("isolcpu=2-3")], &Shown::new());
    assert_eq!(found[0].effect, Effect::Ignored);
    assert!(found[0].effect.is_bad());
}

#[test]
fn offloaded_callbacks_by_the_log_or_by_the_threads() {
    let mut facts = good();
    let of = |facts: &Facts| words(facts, &[asked("rcu_nocbs=2-3")], &Shown::new())[0].effect;
    assert_eq!(of(&facts), Effect::Effective, "two threads");
    let mut log = facts.platform.log.value().cloned().unwrap();
    log.rcu_offloaded = Some(cpus(&[3]));
    facts.platform.log = Reading::known("/dev/kmsg", log.clone());
    assert_eq!(of(&facts), Effect::NotEffective);
    log.rcu_offloaded = Some(CpuList::new(0..4));
    facts.platform.log = Reading::known("/dev/kmsg", log);
    assert_eq!(of(&facts), Effect::Effective);
    facts.platform.log = Reading::absent("/dev/kmsg");
    facts.placement = Reading::absent("/proc");
    assert_eq!(of(&facts), Effect::CannotTell);
}

#[test]
fn facts_that_tell() {
    let facts = good();
    let mut set = facts.clone();
    set_cmdline(&mut set, "preempt=full systemd.cpu_affinity=0-1");
    let of = |word| words(&set, &[asked(word)], &Shown::new())[0].effect;
    assert_eq!(of("preempt=full"), Effect::NotEffective, "the good machine is PREEMPT_RT");
    assert_eq!(of("systemd.cpu_affinity=0-1"), Effect::Effective);
}
