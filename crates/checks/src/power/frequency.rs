//! What the checks of the frequency share: which CPUs keep theirs, and what it means that a
//! machine has no cpufreq.

use rtproof_host::{CpuList, Facts, facts::cpu::Cpu};

use crate::draft::Draft;
use crate::machine::{built_with, guest, is_bare_metal, option, without_cpu_folder};
use crate::text;
use crate::{Evidence, Finding, Remedy};

/// The frequency that the limits leave no choice but to keep.
pub(super) fn pinned_hz(cpu: &Cpu) -> Option<u64> {
    let (min, max) = (cpu.freq.min_hz.value()?, cpu.freq.max_hz.value()?);
    (min == max).then_some(*min)
}

/// Whether the governor asks for the highest frequency all the time.
pub(super) fn is_performance(cpu: &Cpu) -> bool {
    cpu.freq.governor.value().is_some_and(|governor| governor == "performance")
}

/// Whether software leaves the frequency where it is.
pub(super) fn is_held(cpu: &Cpu) -> bool {
    is_performance(cpu) || pinned_hz(cpu).is_some()
}

/// What shows whether the frequency of these CPUs is held.
pub(super) fn holding(cpus: &[&Cpu]) -> Vec<Evidence> {
    let governors = cpus.iter().map(|cpu| (cpu.id, &cpu.freq.governor));
    let mut evidence = text::grouped(governors, String::clone);
    let pinned: Vec<&Cpu> =
        cpus.iter().copied().filter(|cpu| !is_performance(cpu) && is_held(cpu)).collect();
    evidence.extend(limits(&pinned));
    evidence
}

/// Lowest and highest frequency of these CPUs.
pub(super) fn limits(cpus: &[&Cpu]) -> Vec<Evidence> {
    let mut evidence = text::grouped(cpus.iter().map(|cpu| (cpu.id, &cpu.freq.min_hz)), mhz);
    evidence.extend(text::grouped(cpus.iter().map(|cpu| (cpu.id, &cpu.freq.max_hz)), mhz));
    evidence
}

/// A frequency in MHz.
pub(super) fn mhz(hz: &u64) -> String {
    format!("{} MHz", hz / 1_000_000)
}

pub(super) fn numbers(cpus: &[&Cpu]) -> CpuList {
    CpuList::new(cpus.iter().map(|cpu| cpu.id))
}

/// No cpufreq: the trap of other audits, which read no file and print OK.
pub(super) fn absent(draft: Draft, facts: &Facts) -> Finding {
    if let Some(why) = without_cpu_folder(facts) {
        return draft.no_cpu_folder(facts, why);
    }
    if let Some(hypervisor) = guest(facts) {
        return draft
            .saw([Evidence::of(&facts.virt.hypervisor, |_| hypervisor.into())])
            .remedies([Remedy::Manual { text: "set the host's governor to performance".into() }])
            .unknown(format!("no cpufreq in this {hypervisor} guest: the host decides"));
    }
    if is_bare_metal(facts) && built_with(facts, "CPU_FREQ") == Some(false) {
        return draft
            .saw([option(facts, "CPU_FREQ")])
            .not_applicable("this kernel changes no frequency: built without CONFIG_CPU_FREQ");
    }
    draft.unknown("no cpufreq is seen here: firmware may change the frequency all the same")
}
