//! Are huge pages reserved where the real-time CPUs are?
//!
//! A machine that reserves none has no question here. One that does reserves them on nodes, and
//! pages of another node are farther away than any small page of the own.

use rtproof_host::{Facts, facts::cpu::Node, facts::settings::Value, knobs::memory as knobs};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::machine::{built_with, option};
use crate::setting;
use crate::value::grouped;
use crate::{Finding, Impact, Intent, Remedy, When};

pub(super) static CHECK: Check = Check {
    id: "hugepages",
    title: "huge pages reserved on the real-time CPUs' node",
    why: "an application that finds no reserved huge page on its node gets one that is farther \
          away, or none",
    source: "Documentation/admin-guide/mm/hugetlbpage.rst (per node attributes); \
             Documentation/core-api/real-time/hardware.rst",
    impact: Impact::Microseconds,
    when: When::Boot,
    knobs: &[&knobs::HUGEPAGES],
    wanted: Wanted::Text("some on each node with real-time CPUs, if any are"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let setting = facts.settings.get(knobs::HUGEPAGES.id);
    let values: Vec<&Value> = setting.into_iter().flat_map(|setting| &setting.values).collect();
    if values.is_empty() {
        return match built_with(facts, "HUGETLBFS") {
            Some(false) => draft
                .saw([option(facts, "HUGETLBFS")])
                .not_applicable("this kernel has no huge pages to reserve"),
            _ => draft.blind(&setting::text(facts, &knobs::HUGEPAGES)),
        };
    }
    let draft = draft.saw(grouped(&values));
    let mut reserved = Vec::new();
    for value in values {
        match value.reading.value().map(|text| text.parse::<u64>()) {
            Some(Ok(0)) => {}
            Some(Ok(_)) => reserved.push(value.of.as_str()),
            _ => return draft.blind(&value.reading),
        }
    }
    if reserved.is_empty() {
        return draft.not_applicable("no huge pages are reserved");
    }
    if !reserved[0].contains('/') {
        return draft.good("reserved; the machine has no nodes");
    }
    if intent.rt_cpus.is_empty() {
        return draft.no_rt_cpus(facts);
    }
    let nodes = &facts.cpus.nodes;
    let draft = draft.read(nodes, |nodes| show(nodes));
    let Some(known) = nodes.value() else {
        return draft.blind(nodes);
    };
    let has_rt = |cpus: &rtproof_host::CpuList| !cpus.intersection(&intent.rt_cpus).is_empty();
    let of_rt: Vec<u32> =
        known.iter().filter(|node| has_rt(&node.cpus)).map(|node| node.id).collect();
    if of_rt.is_empty() {
        return draft.unknown("no node has the real-time CPUs");
    }
    let is_bare = |node: &&u32| !reserved.iter().any(|of| of.starts_with(&format!("{node}/")));
    let bare: Vec<String> = of_rt.iter().filter(is_bare).map(u32::to_string).collect();
    if bare.is_empty() {
        return draft.good("reserved on the real-time CPUs' node");
    }
    let text = format!(
        "reserve them at boot (hugepages=NODE:NUMBER), or write the number to \
         /sys/devices/system/node/node{}/hugepages/hugepages-*/nr_hugepages",
        bare[0]
    );
    draft
        .remedies([Remedy::Manual { text }])
        .doubtful(format!("none on node {}, where real-time CPUs are", bare.join(", ")))
}

/// Nodes and their CPUs in a line.
fn show(nodes: &[Node]) -> String {
    let node = |node: &Node| format!("node {}: CPUs {}", node.id, node.cpus);
    let nodes: Vec<String> = nodes.iter().map(node).collect();
    if nodes.is_empty() { "no nodes".into() } else { nodes.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent, set_config};
    use rtproof_host::{Reading, facts::settings::Setting};

    fn status(values: &[(&str, &str)]) -> Status {
        let mut facts = good();
        let nodes = vec![Node { id: 0, cpus: cpus(&[0, 1]) }, Node { id: 1, cpus: cpus(&[2, 3]) }];
        facts.cpus.nodes = Reading::known("/sys/devices/system/node", nodes);
        let value = |&(of, text): &(&str, &str)| Value {
            of: of.into(),
            reading: Reading::known(format!("/sys/{of}"), text.into()),
        };
        let values = values.iter().map(value).collect();
        facts.settings.insert("hugepages".into(), Setting { values, lacking: None });
        CHECK.judge(&facts, &intent()).status
    }

    #[test]
    fn on_the_node_of_the_real_time_cpus() {
        assert_eq!(status(&[("0/2048kB", "0"), ("1/2048kB", "0")]), NotApplicable);
        assert_eq!(status(&[("0/2048kB", "0"), ("1/2048kB", "8")]), Good);
        assert_eq!(status(&[("0/2048kB", "8"), ("1/2048kB", "0")]), Doubtful);
        assert_eq!(status(&[("0/2048kB", "8"), ("1/1048576kB", "1")]), Good);
        assert_eq!(status(&[("2048kB", "8")]), Good);
        assert_eq!(status(&[("0/2048kB", "?")]), Unknown);
    }

    #[test]
    fn no_files_need_the_kernel_s_word() {
        let mut facts = good();
        facts.settings.remove("hugepages");
        set_config(&mut facts, "HUGETLBFS", Some("y"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        set_config(&mut facts, "HUGETLBFS", None);
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
    }
}
