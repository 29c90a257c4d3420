//! What is proposed for a captured machine, were its kernel another one: held against how that
//! kernel reads its command line, written down here a second time.

use std::collections::BTreeSet;

use rtproof_checks::{Finding, Intent, Remedy, judge_all};
use rtproof_host::{Facts, Reading};

use crate::denied::{facts, intent, is_full, machines};

/// The last CPU of several is to be real-time.
fn last_cpu(facts: &Facts) -> Intent {
    let every = intent(facts);
    let online = facts.cpus.online.value().cloned().unwrap_or_default();
    match online.iter().last() {
        Some(last) if online.len() > 1 => {
            let rt_cpus = rtproof_host::CpuList::new([last]);
            Intent { housekeeping: online.difference(&rt_cpus), rt_cpus, proposed: None, ..every }
        }
        _ => every,
    }
}

const KERNELS: [(u32, u32); 8] =
    [(3, 10), (4, 14), (4, 19), (5, 4), (5, 6), (5, 10), (6, 1), (6, 12)];

const MACHINES: [&str; 6] = ["x86_64", "aarch64", "armv7l", "riscv64", "ppc64le", "s390x"];

/// Whether a kernel isolates the CPUs of `isolcpus=`. Until 4.14 a list alone is read
/// (kernel/sched/core.c, isolated_cpu_setup); from then on `nohz` and `domain` may stand before it,
/// from 5.6 on `managed_irq`; until 5.7 any other word makes it ignore all of them
/// (kernel/sched/isolation.c, housekeeping_isolcpus_setup).
fn isolates(kernel: (u32, u32), value: &str) -> bool {
    let words: Vec<&str> =
        value.split(',').take_while(|word| word.starts_with(char::is_alphabetic)).collect();
    let is_known = |word: &&str| match *word {
        "nohz" | "domain" => kernel >= (4, 15),
        "managed_irq" => kernel >= (5, 6),
        _ => kernel >= (5, 8),
    };
    words.iter().all(is_known) && (words.is_empty() || words.contains(&"domain"))
}

/// When the kernel got what is proposed elsewhere (Documentation/admin-guide/kernel-parameters.txt
/// of the releases, CONFIG names of their Kconfig files).
fn came(word: &str) -> (u32, u32) {
    match word.split_once('=').map_or(word, |(name, _)| name) {
        "cpufreq.default_governor" => (5, 9),
        "kfence.sample_interval" | "preempt" => (5, 12),
        "workqueue.power_efficient" => (3, 11),
        "rcupdate.rcu_normal_after_boot" => (4, 5),
        "mitigations" => (5, 2),
        "nosmt" => (4, 19),
        "nohz_full" => (3, 10),
        "rt_group_sched" => (6, 16),
        "workqueue.unbound_cpus" => (6, 5),
        "CPU_ISOLATION" => (4, 15),
        "HWLAT_TRACER" => (4, 9),
        _ => (0, 0),
    }
}

fn of_x86(word: &str) -> bool {
    let names = ["tsc=", "mce=", "intel_idle.", "processor.max_cstate", "idle=", "clocksource=tsc"];
    names.iter().any(|name| word.starts_with(name))
}

fn words(finding: &Finding) -> Vec<String> {
    let words = finding.remedies.iter().flat_map(|remedy| match remedy {
        Remedy::Boot { parameter } => vec![parameter.clone()],
        Remedy::Build { options } => options.clone(),
        _ => Vec::new(),
    });
    words.collect()
}

fn with_kernel(facts: &Facts, (major, minor): (u32, u32), machine: &str) -> Facts {
    let mut facts = facts.clone();
    let path = "/proc/sys/kernel/osrelease";
    facts.kernel.version = Reading::known(path, (major, minor));
    facts.kernel.release = Reading::known(path, format!("{major}.{minor}.0"));
    facts.kernel.arch = Reading::known("uname", machine.to_owned());
    facts
}

#[test]
fn no_kernel_is_told_what_it_does_not_know() {
    let mut seen = BTreeSet::new();
    let (step, archs) = if is_full() { (1, &MACHINES[..]) } else { (3, &MACHINES[..2]) };
    for (name, capture) in machines().into_iter().step_by(step) {
        let machine = facts(&capture);
        let intent = last_cpu(&machine);
        for (kernel, arch) in
            KERNELS.iter().flat_map(|kernel| archs.iter().map(|arch| (*kernel, *arch)))
        {
            for finding in judge_all(&with_kernel(&machine, kernel, arch), &intent) {
                for word in words(&finding) {
                    let what = format!("{name} as {arch} {kernel:?}: {} {word}", finding.check);
                    assert!(came(&word) <= kernel, "{what}");
                    assert!(arch == "x86_64" || !of_x86(&word), "{what}");
                    if let Some(value) = word.strip_prefix("isolcpus=") {
                        assert!(isolates(kernel, value), "{what}");
                    }
                    seen.insert(word.split_once('=').map_or(&*word, |it| it.0).to_owned());
                }
            }
        }
    }
    for word in ["isolcpus", "irqaffinity", "cpufreq.default_governor", "preempt", "tsc"] {
        assert!(seen.contains(word), "{word} is never proposed: {seen:?}");
    }
}

/// The plain form, which every kernel takes.
#[test]
fn a_kernel_of_unknown_release_gets_the_old_form() {
    let mut count = 0;
    for (name, capture) in machines() {
        let mut machine = facts(&capture);
        let intent = last_cpu(&machine);
        machine.kernel.version = Reading::absent("/proc/sys/kernel/osrelease");
        for word in judge_all(&machine, &intent).iter().flat_map(words) {
            if let Some(value) = word.strip_prefix("isolcpus=") {
                assert!(isolates((3, 10), value), "{name}: {word}");
                count += 1;
            }
        }
    }
    assert!(count > 0);
}
