//! What a kernel knows of what is proposed to it: the first release with a boot parameter or an
//! option of the build, and the form of `isolcpus=` that it takes. No remedy goes past [`fit`].

use rtproof_host::{CpuList, Facts, knob::KnobArch};

use crate::{Evidence, Finding, Remedy, since};

type Release = (u32, u32);

/// Boot parameters, with a value where it came later than the name.
const PARAMETERS: &[(&str, Release, KnobArch)] = &[
    ("clocksource=tsc", (2, 6), KnobArch::X86),
    ("cpufreq.default_governor", (5, 9), KnobArch::Any),
    ("cpuidle.governor", (5, 0), KnobArch::Any),
    ("efi=noruntime", (3, 18), KnobArch::Any),
    ("idle=poll", (2, 6), KnobArch::X86),
    ("intel_idle.max_cstate", (2, 6), KnobArch::X86),
    ("irqaffinity", (4, 6), KnobArch::Any),
    ("kfence.sample_interval", (5, 12), KnobArch::Any),
    ("mce=ignore_ce", (2, 6), KnobArch::X86),
    ("mitigations", (5, 2), KnobArch::Any),
    ("nohz_full", (3, 10), KnobArch::Any),
    ("nosmt", (4, 19), KnobArch::Any),
    ("preempt", (5, 12), KnobArch::Any),
    ("processor.max_cstate", (2, 6), KnobArch::X86),
    ("rcu_nocbs", (3, 8), KnobArch::Any),
    ("rcupdate.rcu_normal_after_boot", (4, 5), KnobArch::Any),
    ("rt_group_sched", (6, 16), KnobArch::Any),
    ("skew_tick", (3, 6), KnobArch::Any),
    ("threadirqs", (3, 0), KnobArch::Any),
    ("transparent_hugepage", (3, 0), KnobArch::Any),
    ("tsc", (2, 6), KnobArch::X86),
    ("workqueue.power_efficient", (3, 11), KnobArch::Any),
    ("workqueue.unbound_cpus", (6, 6), KnobArch::Any),
];

/// Options of the build that are looked at or proposed.
const OPTIONS: &[(&str, Release)] = &[
    ("CPU_ISOLATION", (4, 15)),
    ("HWLAT_TRACER", (4, 9)),
    ("NO_HZ_FULL", (3, 10)),
    ("PREEMPT_DYNAMIC", (5, 12)),
    ("RCU_NOCB_CPU", (3, 8)),
];

/// First release that takes the flag; before 5.8 a word that is not known costs all of `isolcpus=`
/// (kernel/sched/isolation.c, housekeeping_isolcpus_setup).
pub(crate) const MANAGED_IRQ: Release = (5, 6);

/// Whether `isolcpus=` takes the flag. A vendor's older kernel may have it: one that isolated CPUs
/// with the flag on its line has.
pub(crate) fn takes_managed_irq(facts: &Facts) -> Option<bool> {
    let has_isolated = || {
        let isolcpus = facts.kernel.cmdline.value()?.last("isolcpus").flatten()?;
        let is_given = isolcpus.split(',').any(|word| word == "managed_irq");
        Some(is_given && !facts.cpus.isolated.value()?.is_empty())
    };
    match since(facts, MANAGED_IRQ) {
        Some(false) => Some(has_isolated().unwrap_or(false)),
        known => known,
    }
}

/// The parameter that isolates these CPUs on this kernel: with flags only where it surely takes
/// them, as a list alone is taken by all.
pub(crate) fn isolcpus(facts: &Facts, cpus: &CpuList) -> String {
    match takes_managed_irq(facts) {
        Some(true) => format!("isolcpus=managed_irq,domain,{cpus}"),
        _ => format!("isolcpus={cpus}"),
    }
}

/// What keeps an interrupt away that its driver manages.
pub(crate) fn of_managed(facts: &Facts, cpus: &CpuList) -> String {
    let queues = "give the device fewer queues";
    match takes_managed_irq(facts) {
        Some(true) => format!("boot with {}, or {queues}", isolcpus(facts, cpus)),
        _ => format!("{queues}; from Linux 5.6 on isolcpus=managed_irq,... keeps it away, too"),
    }
}

/// `None`: of all kernels, or not listed.
pub(crate) fn option_since(option: &str) -> Option<Release> {
    OPTIONS.iter().find(|(name, _)| *name == option).map(|&(_, release)| release)
}

/// How a boot parameter fits the machine.
enum Fit {
    Yes,
    /// Only if the kernel is at least this one; its release is not known.
    From(Release),
    No,
}

fn of_parameter(facts: &Facts, word: &str) -> Fit {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    let row = PARAMETERS.iter().find(|(row, ..)| *row == word || *row == name);
    let Some(&(_, release, arch)) = row else { return Fit::Yes };
    let is_elsewhere = facts.kernel.arch.value().is_some_and(|machine| !arch.has(machine));
    match since(facts, release) {
        _ if is_elsewhere => Fit::No,
        Some(true) => Fit::Yes,
        Some(false) => Fit::No,
        // All that anybody runs.
        None if release < (4, 0) => Fit::Yes,
        None => Fit::From(release),
    }
}

/// A finding whose remedies this kernel knows.
pub(crate) fn fit(mut finding: Finding, facts: &Facts) -> Finding {
    let mut fitting = Vec::new();
    for remedy in finding.remedies {
        match remedy {
            Remedy::Boot { parameter } => match of_parameter(facts, &parameter) {
                Fit::Yes => fitting.push(Remedy::Boot { parameter }),
                Fit::From((major, minor)) => fitting.push(Remedy::Manual {
                    text: format!("on Linux {major}.{minor} or later: boot with {parameter}"),
                }),
                Fit::No => {}
            },
            Remedy::Build { mut options } => {
                options.retain(|option| {
                    let name = option.split_once('=').map_or(&**option, |(name, _)| name);
                    let name = name.strip_prefix("CONFIG_").unwrap_or(name);
                    option_since(name).is_none_or(|release| since(facts, release) != Some(false))
                });
                if !options.is_empty() {
                    fitting.push(Remedy::Build { options });
                }
            }
            other => fitting.push(other),
        }
    }
    finding.remedies = fitting;
    finding
}

/// Which of these options this kernel is too old for, and what shows it.
pub(crate) fn too_new(facts: &Facts, options: &[&str]) -> Option<(Evidence, String)> {
    let mut first = None;
    for option in options {
        let release = option_since(option).filter(|&it| since(facts, it) == Some(false))?;
        first = first.or(Some((option, release)));
    }
    let (option, (major, minor)) = first?;
    let release = Evidence::of(&facts.kernel.release, String::clone);
    Some((release, format!("CONFIG_{option} came with Linux {major}.{minor}")))
}
