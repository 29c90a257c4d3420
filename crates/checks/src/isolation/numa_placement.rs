//! Are the real-time CPUs on one node, with others to help them?

use rtproof_host::{CpuList, Facts, facts::cpu::Node};

use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::machine::built_with;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static NUMA_PLACEMENT: Check = Check {
    id: "numa-placement",
    title: "real-time CPUs on one NUMA node",
    why: "memory, locks and devices of another node are reached through the link between the \
          sockets, which others load, too",
    source: "Documentation/admin-guide/mm/numaperf.rst; numactl(8); Wu, \"Real-time programming \
             with Linux, part 2\"",
    trade_off: Some(
        "CPUs of two nodes are no harm where each application keeps to one, with its memory",
    ),
    impact: Impact::Microseconds,
    needs: Needs::RealTimeCpus,
    wanted: Wanted::Text("one node"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let nodes = &facts.cpus.nodes;
    let draft = draft.read(nodes, |nodes| {
        let show = |node: &Node| format!("node {}: {}", node.id, text::or_empty(&node.cpus));
        nodes.iter().map(show).collect::<Vec<_>>().join("; ")
    });
    if nodes.is_absent() && built_with(facts, "NUMA") == Some(false) {
        return draft.without(facts, "NUMA");
    }
    let Some(found) = nodes.value() else {
        return draft.blind(nodes);
    };
    let with_cpus: Vec<&Node> = found.iter().filter(|node| !node.cpus.is_empty()).collect();
    if with_cpus.is_empty() {
        return draft.unknown("no node has CPUs");
    }
    let parts: Vec<String> = with_cpus
        .iter()
        .map(|node| (node, node.cpus.intersection(&intent.rt_cpus)))
        .filter(|(_, cpus)| !cpus.is_empty())
        .map(|(node, cpus)| format!("{} on node {}", short(&cpus), node.id))
        .collect();
    let covered = with_cpus.iter().fold(CpuList::default(), |all, node| all.union(&node.cpus));
    let homeless = intent.rt_cpus.difference(&covered);
    if parts.len() < 2 && !homeless.is_empty() {
        return draft.unknown(format!("no node has the real-time {}", text::cpus(&homeless)));
    }
    match parts.as_slice() {
        [one] if with_cpus.len() == 1 => draft.good(format!("{one}, the only one")),
        [one] => draft.good(one.clone()),
        parts => {
            let text = "take real-time CPUs of one node, or give each application CPUs, memory \
                        (numactl --membind, or \
                        AllowedMemoryNodes=) and devices of one node"
                .into();
            draft
                .remedies([Remedy::Manual { text }])
                .doubtful(format!("real-time CPUs on several nodes: {}", text::first_few(parts, 4)))
        }
    }
}

/// CPUs, or how many there are where the list is long: nodes take turns in it on many machines.
fn short(cpus: &CpuList) -> String {
    let list = text::cpus(cpus);
    if list.len() <= 24 { list } else { text::count(cpus.len(), "CPU") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent, set_config};
    use rtproof_host::Reading;

    fn with(nodes: &[&[u32]]) -> Status {
        let mut facts = good();
        let nodes = nodes.iter().zip(0..).map(|(set, id)| Node { id, cpus: cpus(set) }).collect();
        facts.cpus.nodes = Reading::known("/sys/devices/system/node", nodes);
        NUMA_PLACEMENT.judge(&facts, &intent()).status
    }

    #[test]
    fn one_node_or_several() {
        assert_eq!(with(&[&[0, 1, 2, 3]]), Good);
        assert_eq!(with(&[&[0, 1], &[2, 3], &[]]), Good);
        assert_eq!(with(&[&[0, 2], &[1, 3]]), Doubtful);
        assert_eq!(with(&[&[0, 1]]), Unknown);
        assert_eq!(with(&[&[0, 1, 2]]), Unknown, "where is CPU 3?");
        let mut facts = good();
        facts.cpus.nodes = Reading::absent("/sys/devices/system/node");
        set_config(&mut facts, "NUMA", Some("y"));
        assert_eq!(NUMA_PLACEMENT.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "NUMA", None);
        assert_eq!(NUMA_PLACEMENT.judge(&facts, &intent()).status, NotApplicable);
    }
}
