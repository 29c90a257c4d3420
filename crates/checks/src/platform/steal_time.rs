//! Has a host run something else on these CPUs?
//!
//! Steal time is what the host admits to. Where it has no steal clock the column stays 0 on every
//! CPU of a guest, so that 0 is good only beside another CPU with some.

use rtproof_host::Facts;

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::{Finding, Impact, Intent, Remedy, When};
use crate::{machine, text};

pub(super) static CHECK: Check = Check {
    id: "steal-time",
    title: "time stolen by a host since boot",
    why: "while the host runs something else, the virtual CPU stands still and its task with it",
    source: "proc_stat(5) (steal); Documentation/virt/kvm/x86/msr.rst (MSR_KVM_STEAL_TIME)",
    impact: Impact::Milliseconds,
    when: When::Firmware,
    wanted: Wanted::Text("0"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let ticks = &facts.virt.steal_ticks;
    let of_all = intent.rt_cpus.is_empty();
    let Some(known) = ticks.value() else {
        return draft.blind(ticks);
    };
    let concerned = |cpu: u32| of_all || intent.rt_cpus.contains(cpu);
    let counted: Vec<_> = known.iter().filter(|(cpu, _)| concerned(*cpu)).collect();
    let all = counted.iter().fold(0_u64, |sum, (_, ticks)| sum.saturating_add(*ticks));
    let draft =
        draft.read(ticks, |_| format!("{all} ticks on {}", text::count(counted.len(), "CPU")));
    let draft = if of_all { draft } else { draft.cpus(&intent.rt_cpus) };
    let is_missing =
        !of_all && intent.rt_cpus.iter().any(|cpu| known.iter().all(|(id, _)| *id != cpu));
    if is_missing {
        let (_, missing) = machine::rt_cpus(facts, intent);
        return draft.gone(facts, &missing);
    }
    let hypervisor = &facts.virt.hypervisor;
    if all > 0 {
        let text = "on the host: pin the virtual CPUs to isolated CPUs, at a real-time priority";
        return draft
            .remedies([Remedy::Manual { text: text.into() }])
            .doubtful(format!("{all} ticks stolen since boot: look at what a run adds"));
    }
    let draft = draft.read(hypervisor, |name| name.clone().unwrap_or_else(|| "bare metal".into()));
    if hypervisor.value().is_none() {
        return draft.blind(hypervisor);
    }
    match machine::guest(facts) {
        None => draft.good("bare metal, none"),
        Some(name) if known.iter().all(|(_, ticks)| *ticks == 0) => {
            draft.unknown(format!("0 on every CPU: {name} may not tell (no steal clock)"))
        }
        Some(name) => draft.good(format!("none that {name} admits to")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::testing::{good, intent, set_guest};
    use rtproof_host::Reading;

    #[test]
    fn ticks_of_the_real_time_cpus_count() {
        let mut facts = good();
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        set_guest(&mut facts, "KVM");
        let ticks = |of_3| vec![(0, 99), (1, 5), (2, 0), (3, of_3)];
        facts.virt.steal_ticks = Reading::known("/proc/stat", ticks(0));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        facts.virt.steal_ticks = Reading::known("/proc/stat", ticks(7));
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.starts_with("7 ticks"), "{}", finding.summary);
    }

    #[test]
    fn what_is_not_counted_is_unknown() {
        let mut facts = good();
        set_guest(&mut facts, "KVM");
        facts.virt.steal_ticks = Reading::known("/proc/stat", (0..4).map(|cpu| (cpu, 0)).collect());
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        facts.virt.steal_ticks = Reading::denied("/proc/stat", "EACCES");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
