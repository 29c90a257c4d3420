//! CPUs that its cpuset grants, and the state of its partition.

use rtproof_host::CpuList;

use crate::case::Case;
use crate::check::{Answer, Check, Judge};
use crate::draft::Draft;
use crate::text::{count, cpus};
use crate::{Impact, Remedy};

pub(super) static CHECK: Check = Check {
    id: "app-cpuset",
    title: "CPUs that the application's control groups grant",
    why: "the application cannot run on a real-time CPU that its cpuset does not grant, whatever \
          its affinity asks for",
    source: "Documentation/admin-guide/cgroup-v2.rst (cpuset.cpus.effective, \
             cpuset.cpus.partition)",
    impact: Impact::Hundreds,
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let wanted = &case.intent.rt_cpus;
    let draft = draft.wants(format!("at least {}", cpus(wanted))).cpus(wanted);
    if wanted.is_empty() {
        return Ok(draft.no_rt_cpus(case.facts));
    }
    let groups = &case.app.groups.cpuset;
    let mut draft = draft.read(groups, |groups| count(groups.len(), "group"));
    let Some(list) = groups.value() else {
        return Ok(draft.blind(groups));
    };
    // What is in force in the lowest group that has the controller is within all above it.
    let mut lowest = None;
    for group in list {
        let show = |cpus: &Option<CpuList>| match cpus {
            Some(cpus) => cpus.to_string(),
            None => "no such file".into(),
        };
        draft = draft.read(&group.cpus, show);
        match group.cpus.value() {
            None => return Ok(draft.blind(&group.cpus)),
            Some(Some(granted)) => {
                lowest = Some((group, granted));
                break;
            }
            Some(None) => {}
        }
    }
    let Some((group, granted)) = lowest else {
        return Ok(draft.good("no group of its own limits CPUs"));
    };
    draft =
        draft.read(&group.partition, |kind| kind.clone().unwrap_or_else(|| "no such file".into()));
    let Some(partition) = group.partition.value() else {
        return Ok(draft.blind(&group.partition));
    };
    if let Some(broken) = partition.as_ref().filter(|kind| kind.contains("invalid")) {
        return Ok(draft.doubtful(format!("{}: the partition is {broken}", group.folder)));
    }
    let missing = wanted.difference(granted);
    if missing.is_empty() {
        return Ok(draft.good(format!("{} granted", cpus(granted))));
    }
    let line = format!("AllowedCPUs={wanted}");
    draft = draft.remedies(case.drop_in(&line).or_else(|| {
        let text =
            format!("add {} to cpuset.cpus of {} and of those above", cpus(&missing), group.folder);
        Some(Remedy::Manual { text })
    }));
    let summary = format!("{} not granted, only {}", cpus(&missing), cpus(granted));
    let is_none = wanted.intersection(granted).is_empty();
    Ok(if is_none { draft.bad(summary) } else { draft.doubtful(summary) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, cpuset, set_some};
    use crate::testing::cpus as list;

    #[test]
    fn granted_in_part_not_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).summary, "CPUs 2-3 granted");
        assert_eq!(scene.judge(&CHECK).status, Good);
        set_some(&mut cpuset(&mut scene).partition, "isolated invalid (Cpu list)".into());
        assert_eq!(scene.judge(&CHECK).status, Doubtful);
        set_some(&mut cpuset(&mut scene).partition, "member".into());
        set_some(&mut cpuset(&mut scene).cpus, list(&[0, 1, 2]));
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "CPU 3 not granted, only CPUs 0-2");
        set_some(&mut cpuset(&mut scene).cpus, list(&[0, 1]));
        assert_eq!(scene.judge(&CHECK).status, Bad);
        blank(&mut cpuset(&mut scene).cpus);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
