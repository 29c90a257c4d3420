//! What else is between this system and the hardware?
//!
//! In a guest every other finding and every latency holds as seen from inside: the host may stop
//! the CPU at any time, and steal time is what it admits to.

use rtproof_host::Facts;

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy, When};

pub(super) static CHECK: Check = Check {
    id: "hypervisor",
    title: "hypervisor or container round this system",
    why: "a host that stops a virtual CPU adds latency that no setting of the guest removes",
    source: "Documentation/virt/kvm/x86/msr.rst (steal time); proc_stat(5); Flatscher, \"Real-time \
             Optimizations\" (containers: no measurable difference)",
    impact: Impact::Hundreds,
    when: When::Firmware,
    wanted: Wanted::Text("bare metal"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let (hypervisor, container) = (&facts.virt.hypervisor, &facts.virt.container);
    let draft = draft.read(hypervisor, |name| name.clone().unwrap_or_else(|| "none".into()));
    let Some(guest_of) = hypervisor.value() else {
        return draft.blind(hypervisor);
    };
    let draft = draft.read(container, |name| name.clone().unwrap_or_else(|| "none".into()));
    let inside = container.value().and_then(Option::as_ref);
    let steal = steal(facts, intent);
    let draft = if steal.is_some() {
        draft.read(&facts.virt.steal_ticks, |ticks| show(ticks))
    } else {
        draft
    };
    if let Some(name) = guest_of {
        let inside = inside.map_or(String::new(), |c| format!(", in a {c} container"));
        return draft
            .remedies([host()])
            .doubtful(format!("{name} guest{inside}: every verdict holds as seen from inside"));
    }
    if let Some(name) = inside {
        return draft.doubtful(format!(
            "{name} container: the host's tuning decides, and part of it cannot be seen"
        ));
    }
    if container.value().is_none() {
        return draft.blind(container);
    }
    match steal {
        Some(ticks) if ticks > 0 => draft.doubtful(format!(
            "no hypervisor shows itself, yet {ticks} clock ticks were stolen since boot"
        )),
        _ => draft.good("bare metal, no container"),
    }
}

/// Clock ticks stolen from the real-time CPUs, or from all where none are named.
fn steal(facts: &Facts, intent: &Intent) -> Option<u64> {
    let ticks = facts.virt.steal_ticks.value()?;
    let concerns = |cpu: u32| intent.rt_cpus.is_empty() || intent.rt_cpus.contains(cpu);
    let counted = ticks.iter().filter(|(cpu, _)| concerns(*cpu));
    Some(counted.fold(0, |sum: u64, (_, ticks)| sum.saturating_add(*ticks)))
}

fn show(ticks: &[(u32, u64)]) -> String {
    let all = ticks.iter().fold(0_u64, |sum, (_, ticks)| sum.saturating_add(*ticks));
    format!("{all} ticks stolen on {}", text::count(ticks.len(), "CPU"))
}

fn host() -> Remedy {
    Remedy::Manual {
        text:
            "on the host: pin the virtual CPUs to isolated CPUs at a real-time priority, lock the \
               guest's memory, and prove the host too"
                .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_guest};
    use rtproof_host::Reading;

    #[test]
    fn a_guest_is_named_and_steal_time_tells_what_was_stolen() {
        let mut facts = good();
        set_guest(&mut facts, "kvm");
        facts.virt.steal_ticks = Reading::known("/proc/stat", vec![(0, 99), (2, 5), (3, 2)]);
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "kvm guest: every verdict holds as seen from inside");
    }

    #[test]
    fn a_container_is_named() {
        let mut facts = good();
        facts.virt.container = Reading::known("/.dockerenv", Some("docker".into()));
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.starts_with("docker container"), "{}", finding.summary);
    }

    #[test]
    fn bare_metal_is_good_and_stolen_time_gives_a_host_away() {
        let mut facts = good();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        facts.virt.steal_ticks = Reading::known("/proc/stat", vec![(2, 5)]);
        assert_eq!(CHECK.judge(&facts, &intent()).status, Doubtful);
    }

    #[test]
    fn half_known_is_unknown() {
        let mut facts = good();
        facts.virt.container = Reading::denied("/proc/1/environ", "EACCES");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.virt.hypervisor = Reading::absent("/sys/hypervisor");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
