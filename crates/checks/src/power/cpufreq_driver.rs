//! Who switches the frequency: the kernel's governor, or the hardware by itself?
//!
//! The sources disagree: profiles of tuned boot with `intel_pstate=disable` or `passive`, OpenShift
//! offers active, passive and automatic. No mode is wrong, so this tells which one is in force.

use rtproof_host::{Facts, knobs::power as knobs};

use super::frequency::absent;
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::{guest, rt_cpus};
use crate::setting;
use crate::text;
use crate::{Evidence, Finding, Impact, Intent, When};

pub(super) static CHECK: Check = Check {
    id: "cpufreq-driver",
    title: "driver that sets the frequency of the real-time CPUs, and its mode",
    why: "in active mode the processor chooses the frequency by itself within its limits, at times \
          that the kernel does not know",
    source: "Documentation/admin-guide/pm/intel_pstate.rst; \
             Documentation/admin-guide/pm/amd-pstate.rst; tuned, profile \
             cpu-partitioning-powersave (intel_pstate=passive); OpenShift node tuning operator",
    trade_off: Some(
        "sources disagree: some boot with intel_pstate=disable or passive, so that the kernel \
         alone sets the frequency, others stay active; measure both",
    ),
    impact: Impact::Information,
    when: When::Boot,
    knobs: &[&knobs::INTEL_PSTATE, &knobs::AMD_PSTATE],
    wanted: Wanted::Text("known"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let (cpus, missing) = rt_cpus(facts, intent);
    let drivers = cpus.iter().map(|cpu| (cpu.id, &cpu.freq.driver));
    let draft = draft.saw(text::grouped(drivers, String::clone));
    if let Some(blind) = cpus.iter().find(|cpu| cpu.freq.driver.value().is_none()) {
        let reading = &blind.freq.driver;
        return match (guest(facts), reading.is_absent()) {
            (Some(hypervisor), true) => draft
                .read(&facts.virt.hypervisor, |_| hypervisor.into())
                .not_applicable(format!("none in this {hypervisor} guest: the host has it")),
            (None, true) => absent(draft, facts),
            (_, false) => draft.blind(reading),
        };
    }
    if !missing.is_empty() {
        return draft.gone(facts, &missing);
    }
    let mut names: Vec<&str> =
        cpus.iter().filter_map(|cpu| cpu.freq.driver.value().map(String::as_str)).collect();
    names.sort_unstable();
    names.dedup();
    // The mode of the driver that is not in use says "off", or is not there.
    let modes = [&knobs::INTEL_PSTATE, &knobs::AMD_PSTATE].map(|knob| setting::text(facts, knob));
    let is_used = |mode: &&String| !matches!(mode.as_str(), "off" | "disable");
    let known = modes.iter().find(|mode| mode.value().filter(is_used).is_some());
    let mode = known.and_then(|mode| mode.value()).map(|mode| format!(", {mode} mode"));
    draft.saw(known.map(|mode| Evidence::of(mode, String::clone))).good(format!(
        "{}{} on {}",
        names.join(", "),
        mode.unwrap_or_default(),
        text::cpus(&intent.rt_cpus)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_guest};
    use rtproof_host::Reading;

    #[test]
    fn the_driver_is_told_with_its_mode() {
        let mut facts = good();
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!((finding.status, finding.summary.as_str()), (Good, "intel_pstate on CPUs 2-3"));
        fill_setting(&mut facts, &knobs::INTEL_PSTATE, "active");
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.summary, "intel_pstate, active mode on CPUs 2-3");
    }

    #[test]
    fn no_driver_is_unknown() {
        let mut facts = good();
        for cpu in &mut facts.cpus.cpus {
            cpu.freq.driver = Reading::absent(cpu.freq.driver.path.clone());
        }
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        set_guest(&mut facts, "kvm");
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
        let path = "/sys/devices/system/cpu/cpu2/cpufreq/scaling_driver";
        facts.cpus.cpus[2].freq.driver = Reading::denied(path, "EACCES");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
