//! Are its CPUs kept free of other tasks: by `isolcpus=`, or by a cpuset partition?

use rtproof_host::CpuList;

use crate::case::Case;
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::{count, cpus, or_empty};
use crate::{Evidence, Remedy, When};

pub(super) static CHECK: Check = Check {
    id: "app-isolation",
    title: "whether the application's CPUs are isolated",
    why: "on a CPU that is not isolated the scheduler puts any task that has no affinity of its \
          own",
    source: "Documentation/admin-guide/kernel-parameters.txt (isolcpus); \
             Documentation/admin-guide/cgroup-v2.rst (cpuset.cpus.partition)",
    trade_off: Some("isolated CPUs are lost to all other work"),
    when: When::Boot,
    wanted: Wanted::Text("isolated CPUs only"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let (draft, threads) = case.placed(draft)?;
    let mut used = CpuList::default();
    for thread in &threads {
        used = used.union(&thread.status.cpus);
    }
    let groups = &case.app.groups.cpuset;
    if let Some(list) = groups.value() {
        let mut seen = Vec::new();
        // A group without a partition of its own, a member, is in that of the group above it.
        for group in list {
            let kind = group.partition.value().and_then(Option::as_deref);
            seen.push(Evidence::of(&group.partition, |kind| {
                kind.clone().unwrap_or_else(|| "no such file".into())
            }));
            let in_force = group.cpus.value().and_then(Option::as_ref);
            let covers = in_force.is_some_and(|all| used.difference(all).is_empty());
            if kind == Some("isolated") && covers {
                let granted = in_force.map_or_else(String::new, CpuList::to_string);
                return Ok(draft
                    .read(groups, |groups| count(groups.len(), "group"))
                    .saw(seen)
                    .read(&group.cpus, |_| granted)
                    .good(format!("{} in an isolated partition", cpus(&used))));
            }
            if group.partition.value().is_none() || kind.is_some_and(|kind| kind != "member") {
                break;
            }
        }
    }
    let isolated = &case.facts.cpus.isolated;
    let draft = draft.read(isolated, or_empty);
    let Some(list) = isolated.value() else {
        return Ok(draft.blind(isolated));
    };
    let free = used.difference(list);
    if free.is_empty() {
        return Ok(draft.good(format!("{} isolated at boot", cpus(&used))));
    }
    let remedy = match case.facts.cpus.online.value() {
        Some(online) if !online.difference(&used).is_empty() => {
            Remedy::Boot { parameter: format!("isolcpus=managed_irq,domain,{used}") }
        }
        _ => {
            let text = "pin the application to a part of the CPUs first, then isolate those";
            Remedy::Manual { text: text.into() }
        }
    };
    Ok(draft
        .remedies([remedy])
        .doubtful(format!("it may run on {}, which nothing keeps other tasks from", cpus(&free))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::application::testing::{Scene, blank, cpuset, sched_of, set_cpus, set_some};
    use crate::testing::cpus as list;
    use rtproof_host::facts::tasks::Policy;

    #[test]
    fn by_boot_by_partition_or_not() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).summary, "CPU 2 isolated at boot");
        set_cpus(&mut scene, 101, &[1, 2]);
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.starts_with("it may run on CPU 1,"), "{}", finding.summary);
        set_some(&mut cpuset(&mut scene).partition, "isolated".into());
        assert_eq!(scene.judge(&CHECK).status, Doubtful, "CPU 1 is not in it");
        set_some(&mut cpuset(&mut scene).cpus, list(&[1, 2]));
        assert_eq!(scene.judge(&CHECK).status, Good);
        set_some(&mut cpuset(&mut scene).partition, "isolated invalid (x)".into());
        assert_eq!(scene.judge(&CHECK).status, Doubtful);
        blank(&mut scene.facts.cpus.isolated);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
        sched_of(&mut scene, 101).policy = Policy::Other;
        assert_eq!(scene.judge(&CHECK).status, NotApplicable);
    }
}
