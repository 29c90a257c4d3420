//! Where a program runs: a partition of cgroup v2 where one can be made, affinity otherwise, and
//! why it is the one or the other.

use rtproof_host::{
    CpuList, Facts,
    facts::isolation::Hierarchy,
    knobs::isolation::{GROUP_CONTROLLERS, GROUP_CPUS, GROUP_PARTITION},
    tune::Change,
};
use rtproof_judge::{
    Impact,
    plan::{Reason, Step},
};

use super::options::{Class, Options, Place};
use crate::{cpus::online_cpus, usage::usage};

/// Where the control groups are.
const GROUPS: &str = "/sys/fs/cgroup";

/// Why CPUs that are isolated at boot need no partition.
const ISOLATED: &str = "the CPUs are isolated since boot: no other task runs there by itself";

/// Where a program runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// CPUs of its own; `None`: it runs where this process may.
    pub(super) cpus: Option<CpuList>,
    /// The group of the partition.
    pub(super) group: Option<String>,
    /// How it is kept there, and why so.
    pub(super) how: String,
}

/// Decides.
///
/// # Errors
/// Usage: CPUs that are not there, or all; CPUs of another partition; no partition where one
/// was asked for.
pub(super) fn placed(
    facts: &Facts,
    options: &Options,
    policy: Class,
    is_root: bool,
) -> anyhow::Result<Placed> {
    let Some(list) = &options.cpus else {
        if options.place == Place::Partition {
            return Err(usage("--place partition needs --cpus"));
        }
        let how = "affinity of this process: no --cpus, so the machine is left as it is".into();
        return Ok(Placed { cpus: None, group: None, how });
    };
    let cpus = online_cpus(list, "--cpus", facts)?;
    let online = facts.cpus.online.value().cloned().unwrap_or_default();
    if online.difference(&cpus).is_empty() {
        return Err(usage(format!(
            "--cpus {list}: that is every CPU of this machine: none is left for the rest, which \
             the program would starve; name fewer, or leave --cpus out"
        )));
    }
    taken(facts, &cpus)?;
    let cannot = why_no_partition(facts, &cpus, is_root);
    let group = format!("{GROUPS}/rtproof-run-{}", std::process::id());
    match (options.place, cannot) {
        (Place::Partition, Some(why)) => {
            anyhow::bail!("--place partition: {why}; --place affinity needs none")
        }
        (Place::Affinity, _) => {
            let how = "affinity, as requested; other tasks may run there, too".into();
            Ok(Placed { cpus: Some(cpus), group: None, how })
        }
        (Place::Auto, Some(why)) => {
            let others = if why == ISOLATED { "" } else { "; other tasks may run there, too" };
            let how = format!("affinity: {why}{others}");
            Ok(Placed { cpus: Some(cpus), group: None, how })
        }
        (Place::Auto | Place::Partition, None) => {
            let kind = kind(policy);
            let how = format!("partition ({kind}) {group}: no other task runs there");
            Ok(Placed { cpus: Some(cpus), group: Some(group), how })
        }
    }
}

/// A deadline is admitted to CPUs that share one root domain, which those of an isolated partition
/// do not (kernel/cgroup/cpuset.c).
const fn kind(policy: Class) -> &'static str {
    match policy {
        Class::Deadline => "root",
        Class::Fifo | Class::Rr | Class::Other => "isolated",
    }
}

/// Refuses CPUs that another partition has.
fn taken(facts: &Facts, cpus: &CpuList) -> anyhow::Result<()> {
    let Some(sets) = facts.isolation.cpusets.value() else { return Ok(()) };
    let has = |name: &str, kind: &Option<String>, effective: &Option<CpuList>| {
        let is_valid = kind.as_ref().is_some_and(|kind| !kind.contains("invalid"));
        let effective = effective.clone().unwrap_or_default();
        (is_valid && !effective.intersection(cpus).is_empty())
            .then(|| (name.to_owned(), effective.intersection(cpus)))
    };
    let other = sets.groups.iter().find_map(|of| has(&of.name, &of.partition, &of.effective));
    match other {
        Some((name, shared)) => anyhow::bail!(
            "--cpus {cpus}: {} belongs to the partition {GROUPS}{name} already; choose other CPUs, \
             or end what runs there",
            rtproof_judge::units::cpus(&shared)
        ),
        None => Ok(()),
    }
}

/// Why no partition can be made; `None`: it can be tried.
fn why_no_partition(facts: &Facts, cpus: &CpuList, is_root: bool) -> Option<String> {
    let isolated = facts.cpus.isolated.value();
    if isolated.is_some_and(|isolated| cpus.difference(isolated).is_empty()) {
        return Some(ISOLATED.into());
    }
    let sets = &facts.isolation.cpusets;
    Some(match sets.value().map(|sets| sets.hierarchy) {
        None => sets.why_unknown().unwrap_or_default(),
        Some(Hierarchy::V1) => {
            "the cpuset controller is in cgroup v1, which has no partitions".into()
        }
        Some(Hierarchy::None) => "no cpuset controller of cgroup v2 is mounted".into(),
        Some(Hierarchy::V2) if !is_root => "a partition needs root".into(),
        Some(Hierarchy::V2) => return None,
    })
}

/// The changes that make the partition, in their order.
pub(super) fn steps(placed: &Placed, policy: Class) -> Vec<Step> {
    let (Some(group), Some(cpus)) = (&placed.group, &placed.cpus) else { return Vec::new() };
    let value = |path: String, value: &str, compare| Change::Value {
        path,
        value: value.into(),
        compare,
        couples: Vec::new(),
    };
    let of = |knob: &rtproof_host::Knob| knob.compare.unwrap_or_default();
    let changes = [
        value(format!("{GROUPS}/cgroup.subtree_control"), "+cpuset", of(&GROUP_CONTROLLERS)),
        Change::Folder { path: group.clone() },
        value(format!("{group}/cpuset.cpus"), &cpus.to_string(), of(&GROUP_CPUS)),
        value(format!("{group}/cpuset.cpus.partition"), kind(policy), of(&GROUP_PARTITION)),
    ];
    let reason = Reason {
        checks: vec!["cpuset-partition".into()],
        why: "a partition gives the program CPUs on which the scheduler puts no other task".into(),
        impact: Impact::Milliseconds,
        trade_off: Some("the rest of the machine has so many CPUs fewer".into()),
        risk: None,
    };
    changes.into_iter().map(|change| Step { change, reason: reason.clone() }).collect()
}
