//! Are there CPUs left for everything else, on each node?

use rtproof_host::{CpuList, Facts, facts::cpu::Node};

use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Evidence, Finding, Impact, Intent, Remedy, When};

pub(super) static HK_SUFFICIENT: Check = Check {
    id: "hk-sufficient",
    title: "CPUs left for housekeeping",
    why: "interrupts, timers, RCU callbacks and workers that have nowhere else to go stay on the \
          real-time CPUs",
    source: "kernel/sched/isolation.c (housekeeping_setup: the boot CPU is taken back where none \
             is left); Documentation/timers/no_hz.rst",
    trade_off: Some("each CPU for housekeeping is one less for real-time work"),
    impact: Impact::Hundreds,
    when: When::Boot,
    needs: Needs::RealTimeCpus,
    wanted: Wanted::Text("one at least, on each node with real-time CPUs"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let online = &facts.cpus.online;
    let draft = draft.read(online, CpuList::to_string);
    let Some(cpus) = online.value() else {
        return draft.blind(online);
    };
    let none = CpuList::default();
    let free = cpus.difference(&intent.rt_cpus);
    // One CPU is no machine to isolate on: nothing is wrong with its settings.
    if cpus.len() == 1 {
        return draft.not_applicable("the machine has one CPU");
    }
    let fewer = Remedy::Manual { text: "choose fewer real-time CPUs".into() };
    // `isolation` says so where that is: once is enough.
    if free.is_empty() {
        return draft.not_applicable(format!(
            "every one of {} is a real-time CPU: see isolation",
            text::cpus(cpus)
        ));
    }
    let isolated = facts.cpus.isolated.value().unwrap_or(&none);
    let tickless = facts.cpus.nohz_full.value().unwrap_or(&none);
    let left = cpus.difference(isolated).difference(tickless);
    if left.is_empty() {
        let sides = Evidence::of(&facts.cpus.isolated, text::or_empty);
        return draft.saw([sides]).remedies([fewer]).bad(format!(
            "isolated {} and nohz_full {} leave no CPU",
            text::or_empty(isolated),
            text::or_empty(tickless)
        ));
    }
    let nodes = &facts.cpus.nodes;
    let Some(found) = nodes.value() else {
        return draft.blind(nodes);
    };
    let draft = draft.read(nodes, |nodes| text::count(nodes.len(), "node"));
    let is_without = |node: &&Node| {
        let here = node.cpus.intersection(cpus);
        !here.intersection(&intent.rt_cpus).is_empty() && here.intersection(&free).is_empty()
    };
    let without: Vec<String> =
        found.iter().filter(is_without).map(|node| format!("node {}", node.id)).collect();
    if without.is_empty() {
        return draft.good(format!("{} left", text::cpus(&free)));
    }
    draft.remedies([fewer]).doubtful(format!(
        "{} left, none on {}",
        text::cpus(&free),
        text::first_few(&without, 4)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent};
    use rtproof_host::Reading;

    #[test]
    fn some_none_and_none_on_a_node() {
        let mut facts = good();
        assert_eq!(HK_SUFFICIENT.judge(&facts, &intent()).status, Good);
        let all = Intent { rt_cpus: cpus(&[0, 1, 2, 3]), housekeeping: cpus(&[]), ..intent() };
        assert_eq!(HK_SUFFICIENT.judge(&facts, &all).status, NotApplicable);
        let nodes = vec![Node { id: 0, cpus: cpus(&[0, 1]) }, Node { id: 1, cpus: cpus(&[2, 3]) }];
        facts.cpus.nodes = Reading::known("/sys/devices/system/node", nodes);
        let finding = HK_SUFFICIENT.judge(&facts, &intent());
        assert_eq!(
            (finding.status, finding.summary.as_str()),
            (Doubtful, "CPUs 0-1 left, none on node 1")
        );
        facts.cpus.nohz_full = Reading::known("/sys/devices/system/cpu/nohz_full", cpus(&[0, 1]));
        assert_eq!(HK_SUFFICIENT.judge(&facts, &intent()).status, Bad);
        facts.cpus.online = Reading::denied("/sys/devices/system/cpu/online", "EACCES");
        assert_eq!(HK_SUFFICIENT.judge(&facts, &intent()).status, Unknown);
    }

    #[test]
    fn a_machine_with_one_cpu() {
        let mut facts = good();
        facts.cpus.online = Reading::known("/sys/devices/system/cpu/online", cpus(&[2]));
        let one = Intent { rt_cpus: cpus(&[2]), housekeeping: cpus(&[]), ..intent() };
        assert_eq!(HK_SUFFICIENT.judge(&facts, &one).status, NotApplicable);
    }
}
