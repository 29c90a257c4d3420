//! Is a core split between a real-time CPU and one that runs ordinary work?
//!
//! `smt` asks whether anything shares a core with the real-time CPUs; this, whether what shares it
//! is kept as free as they are: a real-time CPU too, or isolated. tuned's `calc_isolated_cores`
//! reserves one logical CPU of each socket for housekeeping and so splits a core.

use rtproof_host::{CpuList, Facts};

use super::smt::{remedies, threads};
use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::{guest, guest_unseen, rt_cpus, without_cpu_folder};
use crate::text;
use crate::{Finding, Impact, Intent};

pub(super) static CHECK: Check = Check {
    id: "smt-sibling-isolation",
    title: "cores split between real-time and ordinary work",
    why: "ordinary work, and its interrupts, on the other thread of the core take the pipeline and \
          the caches from the real-time thread at any time, and no priority helps",
    source: "Documentation/admin-guide/cpu-isolation.rst; rteval, CoreSiblings; tuned, \
             calc_isolated_cores; Flatscher, \"Real-time Optimizations\"",
    impact: Impact::Tens,
    wanted: Wanted::Text("each core in one role"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = draft.cpus(&intent.rt_cpus);
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let (cpus, missing) = rt_cpus(facts, intent);
    if let Some(why) = without_cpu_folder(facts) {
        return draft.no_cpu_folder(facts, why);
    }
    let siblings = cpus.iter().map(|cpu| (cpu.id, &cpu.siblings));
    let draft = draft.saw(text::grouped(siblings, CpuList::to_string));
    let isolated = facts.cpus.isolated.value().cloned().unwrap_or_default();
    let kept = intent.rt_cpus.union(&isolated);
    let mut split: Vec<(CpuList, CpuList)> = Vec::new();
    for cpu in &cpus {
        let Some(core) = threads(cpu) else { continue };
        let (own, others) = (core.intersection(&intent.rt_cpus), core.difference(&kept));
        if !others.is_empty() && !split.iter().any(|(known, _)| *known == own) {
            split.push((own, others));
        }
    }
    if !split.is_empty() {
        let others = split.iter().fold(CpuList::default(), |all, (_, cpus)| all.union(cpus));
        let cores: Vec<String> =
            split.iter().map(|(own, others)| format!("{own} with {others}")).collect();
        let cores = text::first_few(&cores, 4);
        let draft = draft.remedies(remedies(facts, intent, &others));
        let split = format!("cores split between real-time and other CPUs: {cores}");
        let isolated = &facts.cpus.isolated;
        return match isolated.why_unknown() {
            None => draft.bad(split),
            // The other threads may be isolated, and idle.
            Some(why) => draft
                .read(isolated, CpuList::to_string)
                .doubtful(format!("{split}; what is isolated is unknown: {why}")),
        };
    }
    if let Some(blind) = cpus.iter().find(|cpu| cpu.siblings.value().is_none()) {
        return draft.blind(&blind.siblings);
    }
    if !missing.is_empty() {
        return draft.gone(facts, &missing);
    }
    if let Some(hypervisor) = guest(facts) {
        return draft.read(&facts.virt.hypervisor, |_| hypervisor.into()).unknown(format!(
            "this {hypervisor} guest sees no split core: what shares one, the host knows"
        ));
    }
    if let Some(unseen) = guest_unseen(facts) {
        return draft.blind(unseen);
    }
    let draft = draft.read(&facts.virt.hypervisor, |_| "none".into());
    let core = |cpu: &&_| threads(cpu).map(|core| core.difference(&intent.rt_cpus));
    let idle = cpus.iter().filter_map(core).fold(CpuList::default(), |all, c| all.union(&c));
    if !idle.is_empty() {
        return draft.read(&facts.cpus.isolated, CpuList::to_string).good(format!(
            "the siblings of the real-time CPUs are isolated as well: {}",
            text::cpus(&idle)
        ));
    }
    let is_shared = cpus.iter().any(|cpu| threads(cpu).is_some());
    draft.good(match is_shared {
        true => "the real-time CPUs share cores with each other alone",
        false => "the real-time CPUs share no core",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent, set_guest};
    use rtproof_host::Reading;

    fn with(siblings: [&[u32]; 4]) -> Facts {
        let mut facts = good();
        for (cpu, siblings) in facts.cpus.cpus.iter_mut().zip(siblings) {
            cpu.siblings = Reading::known(cpu.siblings.path.clone(), cpus(siblings));
        }
        facts
    }

    #[test]
    fn a_core_in_two_roles_is_bad() {
        let facts = with([&[0, 2], &[1, 3], &[0, 2], &[1, 3]]);
        let finding = CHECK.judge(&facts, &intent());
        assert_eq!(finding.status, Bad);
        assert!(finding.summary.ends_with("2 with 0, 3 with 1"), "{}", finding.summary);
        assert!(!finding.remedies.is_empty());
    }

    #[test]
    fn a_core_in_one_role_is_good() {
        let facts = with([&[0, 1], &[0, 1], &[2, 3], &[2, 3]]);
        assert_eq!(CHECK.judge(&facts, &intent()).status, Good);
        // CPU 3 is isolated and idle: as free as CPU 2.
        let alone = Intent { rt_cpus: cpus(&[2]), ..intent() };
        let finding = CHECK.judge(&facts, &alone);
        assert_eq!(finding.status, Good);
        assert!(finding.summary.ends_with("as well: CPU 3"), "{}", finding.summary);
        let mut facts = facts;
        facts.cpus.isolated = Reading::known(facts.cpus.isolated.path.clone(), cpus(&[2]));
        assert_eq!(CHECK.judge(&facts, &alone).status, Bad);
        facts.cpus.isolated = Reading::denied(facts.cpus.isolated.path.clone(), "EACCES");
        assert_eq!(CHECK.judge(&facts, &alone).status, Doubtful);
    }

    #[test]
    fn a_guest_and_unread_siblings_are_unknown() {
        let mut facts = good();
        set_guest(&mut facts, "kvm");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        let mut facts = good();
        facts.cpus.cpus[3].siblings = Reading::absent("/sys/devices/system/cpu/cpu3/topology");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
