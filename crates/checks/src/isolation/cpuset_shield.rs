//! Are the groups that systemd puts everything into held off the real-time CPUs?

use rtproof_host::{CpuList, Facts, facts::isolation::Hierarchy};

use super::common;
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Evidence, Finding, Intent};

/// Groups of ordinary work. Real-time work is in a group of its own, or in machine.slice.
const ORDINARY: [&str; 3] = ["/init.scope", "/system.slice", "/user.slice"];

pub(super) static CPUSET_SHIELD: Check = Check {
    id: "cpuset-shield",
    title: "services and logins held off the real-time CPUs (AllowedCPUs)",
    why: "what starts in a group without CPUs of its own may run on any, the real-time ones too",
    source: "systemd.resource-control(5), AllowedCPUs=; Documentation/admin-guide/cgroup-v2.rst, \
             cpuset.cpus.effective",
    trade_off: Some(
        "an application in such a group cannot use the real-time CPUs either: it needs a slice of \
         its own",
    ),
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("{} at most", text::cpus(&intent.housekeeping))),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let draft = match common::outside_containers(draft, facts) {
        Ok(draft) => draft,
        Err(finding) => return *finding,
    };
    let cpusets = &facts.isolation.cpusets;
    let Some(found) = cpusets.value() else {
        return draft.blind(cpusets);
    };
    let draft = draft.read(cpusets, |found| format!("{:?}", found.hierarchy));
    match found.hierarchy {
        Hierarchy::V1 => return draft.not_applicable("systemd sets no AllowedCPUs with cgroup v1"),
        Hierarchy::None => return draft.not_applicable("no cpuset controller is in use"),
        Hierarchy::V2 => {}
    }
    let mut open = Vec::new();
    let mut seen = Vec::new();
    for group in found.groups.iter().filter(|group| ORDINARY.contains(&group.name.as_str())) {
        let cpus = group.effective.as_ref().or(found.effective.as_ref());
        let value = match (&group.effective, cpus) {
            (Some(cpus), _) => cpus.to_string(),
            (None, Some(cpus)) => format!("none of its own: {cpus}"),
            (None, None) => "none of its own".into(),
        };
        seen.push(Evidence {
            path: format!("/sys/fs/cgroup{}/cpuset.cpus.effective", group.name),
            value,
        });
        if cpus.is_none_or(|cpus| !cpus.intersection(&intent.rt_cpus).is_empty()) {
            open.push(group.name.trim_start_matches('/'));
        }
    }
    let draft = draft.saw(seen.iter().cloned());
    if seen.is_empty() {
        return draft.not_applicable("no group of systemd's: it does not run here");
    }
    if open.is_empty() {
        let groups = text::count(seen.len(), "group");
        return draft.good(format!("{groups} held off {}", text::cpus(&intent.rt_cpus)));
    }
    // isolcpus is enough: process 1 and all that comes of it start without these CPUs.
    let is_boot = |cpus: &CpuList| intent.rt_cpus.difference(cpus).is_empty();
    if facts.cpus.isolated.value().is_some_and(is_boot) {
        return draft.read(&facts.cpus.isolated, text::or_empty).good(format!(
            "{} may use {}, which isolcpus keeps them from unless they ask",
            open.join(", "),
            text::cpus(&intent.rt_cpus)
        ));
    }
    let isolated = common::isolated(facts).map_or_else(|| "unknown".into(), |c| text::or_empty(&c));
    draft.remedies(open.iter().map(|name| common::allow(name, &intent.housekeeping))).doubtful(
        format!(
            "{} may use the real-time {} (isolated: {isolated})",
            open.join(", "),
            text::cpus(&intent.rt_cpus)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{cpus, good, intent};
    use rtproof_host::{Reading, facts::isolation::Cpusets};

    fn with(isolated: &[u32], change: impl FnOnce(&mut Cpusets)) -> Finding {
        let mut facts = good();
        facts.cpus.isolated = Reading::known("/sys/devices/system/cpu/isolated", cpus(isolated));
        let mut found = facts.isolation.cpusets.value().cloned().unwrap();
        change(&mut found);
        facts.isolation.cpusets = Reading::known("/sys/fs/cgroup", found);
        CPUSET_SHIELD.judge(&facts, &intent())
    }

    #[test]
    fn shielded_isolated_or_open() {
        let shield = |found: &mut Cpusets| {
            for group in &mut found.groups {
                group.effective = Some(cpus(&[0, 1]));
            }
        };
        assert_eq!(with(&[], shield).status, Good);
        assert_eq!(with(&[2, 3], |_| {}).status, Good);
        let finding = with(&[], |_| {});
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.remedies.len(), 3);
    }

    #[test]
    fn version_1_no_systemd_and_unknown() {
        assert_eq!(with(&[], |found| found.hierarchy = Hierarchy::V1).status, NotApplicable);
        assert_eq!(with(&[], |found| found.groups.clear()).status, NotApplicable);
        let mut facts = good();
        facts.isolation.cpusets = Reading::denied("/sys/fs/cgroup", "EACCES");
        assert_eq!(CPUSET_SHIELD.judge(&facts, &intent()).status, Unknown);
    }
}
