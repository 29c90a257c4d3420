//! Are the real-time CPUs on one memory node?
//!
//! Memory of another node is farther away, and a cache line shared between nodes farther still.
//! Whether the threads on these CPUs share memory only the user knows.

use rtproof_host::{CpuList, Facts, facts::cpu::Node};

use crate::checks::Check;
use crate::checks::draft::Draft;
use crate::checks::machine::{built_with, option, why_missing};
use crate::{Finding, Impact, Intent, Remedy};

pub(super) struct NumaNodes;

impl Check for NumaNodes {
    fn id(&self) -> &'static str {
        "numa-nodes"
    }

    fn title(&self) -> &'static str {
        "memory nodes of the real-time CPUs"
    }

    fn why(&self) -> &'static str {
        "memory of another node is read over a link that other traffic shares"
    }

    fn source(&self) -> &'static str {
        "Wu, \"Real-time programming with Linux, part 2\" (minimize cross-node access); \
         Documentation/mm/numa.rst"
    }

    fn impact(&self) -> Impact {
        Impact::Microseconds
    }

    fn judge(&self, facts: &Facts, intent: &Intent) -> Finding {
        let draft = Draft::of(self, "one node").cpus(&intent.rt_cpus);
        if intent.rt_cpus.is_empty() {
            return draft.no_rt_cpus(facts);
        }
        let nodes = &facts.cpus.nodes;
        let draft = draft.read(nodes, |nodes| show(nodes));
        if nodes.is_absent() && built_with(facts, "NUMA") == Some(false) {
            return draft
                .saw([option(facts, "NUMA")])
                .not_applicable("this kernel is built without CONFIG_NUMA");
        }
        let Some(known) = nodes.value() else {
            return draft.blind(nodes);
        };
        let covered = known.iter().fold(CpuList::default(), |all, node| all.union(&node.cpus));
        let missing = intent.rt_cpus.difference(&covered);
        if !missing.is_empty() {
            return draft.unknown(why_missing(facts, &missing));
        }
        let has_rt = |node: &&Node| !node.cpus.intersection(&intent.rt_cpus).is_empty();
        let of_rt: Vec<String> =
            known.iter().filter(has_rt).map(|node| node.id.to_string()).collect();
        if let [one] = of_rt.as_slice() {
            return draft.good(format!("all on node {one}"));
        }
        let text = "take real-time CPUs of one node, and bind the application's memory to it \
                    (numactl --membind)";
        draft
            .remedies([Remedy::Manual { text: text.into() }])
            .doubtful(format!("on nodes {}: threads that share memory pay", of_rt.join(" and ")))
    }
}

/// Nodes and their CPUs in a line.
pub(super) fn show(nodes: &[Node]) -> String {
    let node = |node: &Node| format!("node {}: CPUs {}", node.id, node.cpus);
    let nodes: Vec<String> = nodes.iter().map(node).collect();
    if nodes.is_empty() { "no nodes".into() } else { nodes.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::checks::testing::{cpus, good, intent, set_config};
    use rtproof_host::Reading;

    #[test]
    fn one_two_and_none() {
        let mut facts = good();
        assert_eq!(NumaNodes.judge(&facts, &intent()).status, Good);
        let nodes = vec![Node { id: 0, cpus: cpus(&[0, 2]) }, Node { id: 1, cpus: cpus(&[1, 3]) }];
        facts.cpus.nodes = Reading::known("/sys/devices/system/node", nodes);
        let finding = NumaNodes.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.starts_with("on nodes 0 and 1"));
        facts.cpus.nodes = Reading::absent("/sys/devices/system/node");
        set_config(&mut facts, "NUMA", Some("y"));
        assert_eq!(NumaNodes.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "NUMA", None);
        assert_eq!(NumaNodes.judge(&facts, &intent()).status, NotApplicable);
    }
}
