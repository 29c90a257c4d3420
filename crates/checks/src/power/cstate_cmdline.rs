//! Do the caps of idle states on the command line cap the driver that is in use?
//!
//! Each cap is for one driver: `intel_idle.max_cstate=` and `processor.max_cstate=` (acpi_idle).
//! `intel_idle.max_cstate=0` alone hands over to acpi_idle, which nothing caps then. No cap is no
//! fault: `cpuidle-states` judges the states that are left.

use rtproof_host::{Facts, knob::Arch};

use super::idle::{blind, show, too_deep};
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::rt_cpus;
use crate::text;
use crate::{Evidence, Finding, Impact, Intent, Remedy, When};

/// Driver, and the parameter that caps its states.
const CAPS: [(&str, &str); 2] =
    [("intel_idle", "intel_idle.max_cstate"), ("acpi_idle", "processor.max_cstate")];

/// The cap for the driver in use.
pub(super) fn cap(facts: &Facts) -> Option<Remedy> {
    let driver = facts.cpus.idle_driver.value()?;
    let (_, key) = CAPS.iter().find(|(of, _)| of == driver)?;
    Some(Remedy::Boot { parameter: format!("{key}=1") })
}

pub(super) static CHECK: Check = Check {
    id: "cstate-cmdline",
    title: "caps of idle states on the kernel command line",
    why: "a cap for another driver than the one in use forbids nothing, and the CPU enters the \
          states that it was to forbid",
    source: "Documentation/admin-guide/pm/cpuidle.rst (intel_idle.max_cstate, \
             processor.max_cstate); Documentation/admin-guide/pm/intel_idle.rst; Codethink, \
             \"Configuring Linux systems to stabilise latency\"",
    trade_off: Some(
        "a cap at boot holds for all CPUs until the next boot; a limit for each CPU \
         (pm-qos-resume) does it where and when it is needed",
    ),
    impact: Impact::Hundreds,
    when: When::Boot,
    wanted: Wanted::Text("none, or one for the driver in use"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let arch = &facts.kernel.arch;
    if let Some(name) = arch.value().filter(|name| !Arch::X86.has(name)) {
        return draft.read(arch, String::clone).not_applicable(format!("not on {name}"));
    }
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        return draft.blind(cmdline);
    };
    let given: Vec<(&str, String)> = CAPS
        .iter()
        .filter_map(|(driver, key)| {
            let value = line.last(key)??;
            Some((*driver, format!("{key}={value}")))
        })
        .collect();
    let words: Vec<&str> = given.iter().map(|(_, word)| word.as_str()).collect();
    let words = if words.is_empty() { "no cap".into() } else { words.join(" ") };
    let draft = draft.saw([Evidence { path: cmdline.path.clone(), value: words.clone() }]);
    if given.is_empty() {
        return draft.good("none: cpuidle-states judges the states that are left");
    }
    let reading = &facts.cpus.idle_driver;
    let draft = draft.read(reading, String::clone);
    let Some(driver) = reading.value() else {
        return draft.blind(reading);
    };
    if driver == "none" {
        return draft.good(format!("{words}: no idle driver is in use"));
    }
    if given.iter().any(|(capped, _)| capped == driver) {
        return draft.good(format!("{words}, for {driver}, the driver in use"));
    }
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let (cpus, missing) = rt_cpus(facts, intent);
    let states = cpus.iter().map(|cpu| (cpu.id, &cpu.idle_states));
    let draft = draft.saw(text::grouped(states, |states| show(states)));
    let deep = cpus.iter().filter_map(|cpu| too_deep(cpu, intent));
    if let Some(deep) = deep.max_by_key(|state| state.exit_latency_ns) {
        return draft.remedies(cap(facts)).doubtful(format!(
            "{words} does not cap {driver}, the driver in use: {} may be entered",
            deep.name
        ));
    }
    if let Some(blind) = blind(&cpus) {
        return draft.blind(blind);
    }
    if !missing.is_empty() {
        return draft.gone(facts, &missing);
    }
    draft.good(format!("{words} does not cap {driver}, which has no state that is too deep"))
}

#[cfg(test)]
mod tests {
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
        CHECK.judge(&with(line, driver, is_deep), &intent())
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
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.kernel.cmdline = Reading::denied("/proc/cmdline", "EACCES");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.kernel.arch = Reading::known("/proc/sys/kernel/arch", "aarch64".into());
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
    }
}
