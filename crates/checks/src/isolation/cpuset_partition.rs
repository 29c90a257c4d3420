//! Do the partitions of cgroup v2 hold what they promise?
//!
//! A partition may turn invalid long after it was made, by a change of another group or a CPU that
//! goes offline; the file then says so and nothing else does.

use rtproof_host::{CpuList, Facts, facts::isolation::Hierarchy};

use super::common;
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::profile::Isolation;
use crate::text;
use crate::{Evidence, Finding, Impact, Intent, Remedy};

pub(super) static CPUSET_PARTITION: Check = Check {
    id: "cpuset-partition",
    title: "partitions of CPUs made with cgroup v2",
    why: "a partition that is invalid isolates nothing: its CPUs are balanced as before",
    source: "Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.partition and \
             cpuset.cpus.isolated; kernel/cgroup/cpuset.c",
    impact: Impact::Hundreds,
    needs: Needs::RealTimeCpus,
    wanted: Wanted::Text("valid, and made of the real-time CPUs"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = match common::outside_containers(draft, facts) {
        Ok(draft) => draft,
        Err(finding) => return *finding,
    };
    let cpusets = &facts.isolation.cpusets;
    let draft = draft.read(cpusets, |found| match found.hierarchy {
        Hierarchy::V2 => "cgroup v2 with cpuset".into(),
        Hierarchy::V1 => "cpuset of cgroup v1".into(),
        Hierarchy::None => "no cpuset controller".into(),
    });
    let Some(found) = cpusets.value() else {
        return draft.blind(cpusets);
    };
    match found.hierarchy {
        Hierarchy::V1 => return draft.not_applicable("cgroup v1 has no partitions"),
        Hierarchy::None => return draft.not_applicable("no cpuset controller is in use"),
        Hierarchy::V2 => {}
    }
    let partitions: Vec<(&str, &str)> = found
        .groups
        .iter()
        .filter_map(|group| Some((group.name.as_str(), group.partition.as_deref()?)))
        .collect();
    let path = |name: &str| format!("/sys/fs/cgroup{name}/cpuset.cpus.partition");
    let draft = draft.saw(
        partitions
            .iter()
            .map(|(name, kind)| Evidence { path: path(name), value: (*kind).to_owned() }),
    );
    if let Some((name, kind)) = partitions.iter().find(|(_, kind)| kind.contains("invalid")) {
        let text = format!("remove what makes it invalid, then write isolated to {}", path(name));
        return draft.remedies([Remedy::Manual { text }]).bad(format!("{name} is {kind}"));
    }
    if partitions.is_empty() {
        if !found.is_complete {
            return draft.unknown("too many control groups: not all were looked at");
        }
        return none(draft, facts, intent);
    }
    let isolated = &facts.isolation.partitioned;
    let draft = draft.read(isolated, text::or_empty);
    let names: Vec<String> =
        partitions.iter().map(|(name, kind)| format!("{name} ({kind})")).collect();
    let names = text::first_few(&names, 3);
    // Before 6.7 the root group does not say which CPUs are isolated.
    let Some(cpus) = isolated.value() else {
        return draft.blind(isolated);
    };
    let foreign = cpus.difference(&intent.rt_cpus);
    if !cpus.is_empty() && cpus.intersection(&intent.rt_cpus).is_empty() {
        return draft.doubtful(format!(
            "{names} isolates {}, none of the real-time {}",
            text::cpus(cpus),
            text::cpus(&intent.rt_cpus)
        ));
    }
    let beside = match foreign.is_empty() {
        true => String::new(),
        false => format!("; {} beside the real-time CPUs", text::cpus(&foreign)),
    };
    draft.good(format!("{names}{beside}"))
}

fn none(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    if intent.profile.choices.isolation == Isolation::Cpuset {
        let boot = &facts.cpus.isolated;
        let is_at_boot = |cpus: &CpuList| intent.rt_cpus.difference(cpus).is_empty();
        let how = if boot.value().is_some_and(is_at_boot) { ", isolcpus does it" } else { "" };
        return draft
            .read(boot, text::or_empty)
            .remedies([common::partition(intent)])
            .doubtful(format!("no partition, which the profile wants{how}"));
    }
    draft.good("no partition is made, none is invalid")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent};
    use rtproof_host::{Reading, facts::isolation::Cpuset};

    fn with(hierarchy: Hierarchy, partition: Option<&str>, isolated: &[u32]) -> Finding {
        let mut facts = good();
        let mut found = facts.isolation.cpusets.value().cloned().unwrap();
        found.hierarchy = hierarchy;
        found.groups.extend(partition.map(|kind| Cpuset {
            name: "/rt.slice".into(),
            effective: None,
            partition: Some(kind.into()),
        }));
        facts.isolation.cpusets = Reading::known("/sys/fs/cgroup", found);
        let path = facts.isolation.partitioned.path.clone();
        facts.isolation.partitioned = Reading::known(path, cpus(isolated));
        CPUSET_PARTITION.judge(&facts, &intent())
    }

    #[test]
    fn valid_invalid_and_elsewhere() {
        assert_eq!(with(Hierarchy::V2, Some("isolated"), &[2, 3]).status, Good);
        assert_eq!(with(Hierarchy::V2, None, &[]).status, Good);
        assert_eq!(with(Hierarchy::V2, Some("isolated"), &[1]).status, Doubtful);
        let kind = "isolated invalid (Parent is not a partition root)";
        let finding = with(Hierarchy::V2, Some(kind), &[]);
        assert_eq!(finding.status, Bad);
        assert!(finding.summary.contains("/rt.slice is isolated invalid (Parent"));
    }

    #[test]
    fn version_1_and_no_controller_have_none() {
        assert_eq!(with(Hierarchy::V1, None, &[]).status, NotApplicable);
        assert_eq!(with(Hierarchy::None, None, &[]).status, NotApplicable);
        let mut facts = good();
        facts.virt.container = Reading::known("/run/.containerenv", Some("podman".into()));
        assert_eq!(CPUSET_PARTITION.judge(&facts, &intent()).status, Unknown);
        let mut facts = good();
        facts.isolation.cpusets = Reading::absent("/sys/fs/cgroup");
        assert_eq!(CPUSET_PARTITION.judge(&facts, &intent()).status, Unknown);
    }
}
