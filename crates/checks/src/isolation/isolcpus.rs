//! Are the real-time CPUs out of load balancing, by whatever means?
//!
//! `isolation` compares what the boot parameters say; this asks what is so. isolcpus with flags but
//! without `domain` takes nothing out of load balancing, which its name does not tell: OpenShift
//! boots so on purpose and lets the container runtime do the rest for each container.

use rtproof_host::{CpuList, Facts};

use super::common;
use crate::boot_params::{CpuParameter, Given};
use crate::check::{Check, Judge, Needs, Wanted};
use crate::draft::Draft;
use crate::profile::Isolation;
use crate::text;
use crate::{Evidence, Finding, Impact, Intent, Remedy, When};

pub(super) static ISOLCPUS: Check = Check {
    id: "isolcpus",
    title: "real-time CPUs taken out of load balancing",
    why: "the scheduler balances load across CPUs that are not isolated: it moves ordinary tasks \
          there, and its own search for imbalance runs there",
    source: "kernel/sched/isolation.c (housekeeping_isolcpus_setup), kernel/sched/topology.c; \
             Documentation/admin-guide/cgroup-v2.rst, cpuset.cpus.partition; Codethink, \
             stabilising latency",
    trade_off: Some(
        "isolated CPUs are idle when the real-time application is: nothing is moved there",
    ),
    impact: Impact::Hundreds,
    when: When::Boot,
    needs: Needs::OtherCpus,
    wanted: Wanted::Of(|intent| format!("{} isolated", text::cpus(&intent.rt_cpus))),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let (boot, partitions) = (&facts.cpus.isolated, &facts.isolation.partitioned);
    let is_free = |cpus: &CpuList| intent.rt_cpus.difference(cpus).is_empty();
    let rt = text::cpus(&intent.rt_cpus);
    if boot.value().is_some_and(is_free) {
        return draft.read(boot, text::or_empty).good(format!("{rt} isolated at boot"));
    }
    if let Some(cpus) = partitions.value().filter(|cpus| !cpus.is_empty()) {
        let draft = draft.read(partitions, text::or_empty);
        if is_free(cpus) {
            return draft.good(format!("{rt} isolated by a partition of cgroup v2"));
        }
        let Some(found) = boot.value() else {
            return draft.blind(boot);
        };
        let draft = draft.read(boot, text::or_empty);
        let all = found.union(cpus);
        if is_free(&all) {
            return draft.good(format!("{rt} isolated at boot and by a partition"));
        }
        return not_isolated(draft, facts, intent, &all);
    }
    let draft = draft.read(boot, text::or_empty);
    match (boot.value(), without_domain(facts)) {
        (Some(found), _) => not_isolated(draft, facts, intent, found),
        (None, Some(asked)) => {
            let isolated = partitions.value().cloned().unwrap_or_default();
            draft
                .saw([Evidence::of(&facts.kernel.cmdline, |_| asked.written.clone())])
                .remedies(remedies(facts, intent, &isolated))
                .doubtful(format!(
                    "{} has no flag `domain`: load is balanced onto {rt}",
                    asked.written
                ))
        }
        (None, None) => draft.blind(boot),
    }
}

/// isolcpus as given, where it takes no CPU out of load balancing.
fn without_domain(facts: &Facts) -> Option<CpuParameter> {
    let line = facts.kernel.cmdline.value()?;
    let given = Given::of(facts, line, "isolcpus");
    given.once().filter(|asked| asked.cpus().is_some() && !asked.is_domain()).cloned()
}

fn not_isolated(draft: Draft, facts: &Facts, intent: &Intent, isolated: &CpuList) -> Finding {
    let draft = draft.remedies(remedies(facts, intent, isolated));
    let (rt, path) = (text::cpus(&intent.rt_cpus), &facts.cpus.isolated.path);
    if let Some(asked) = without_domain(facts) {
        let cmdline = Evidence::of(&facts.kernel.cmdline, |_| asked.written.clone());
        return draft.saw([cmdline]).bad(format!(
            "{} has no flag `domain`, so {path} is {}: load is balanced onto {rt}",
            asked.written,
            text::or_empty(isolated)
        ));
    }
    if isolated.is_empty() {
        return draft.doubtful(format!("no CPU is isolated: load is balanced onto {rt}"));
    }
    let open = text::cpus(&intent.rt_cpus.difference(isolated));
    draft.bad(format!("{} isolated, the real-time {open} not", text::cpus(isolated)))
}

fn remedies(facts: &Facts, intent: &Intent, isolated: &CpuList) -> Vec<Remedy> {
    let all = isolated.union(&intent.rt_cpus);
    let boot = Remedy::Boot { parameter: format!("isolcpus=managed_irq,domain,{all}") };
    let partition = common::has_v2(facts).then(|| common::partition(intent));
    let (first, then) = match intent.profile.choices.isolation {
        Isolation::Cpuset => (partition, Some(boot)),
        Isolation::Boot => (Some(boot), None),
        Isolation::Either => (Some(boot), partition),
    };
    first.into_iter().chain(then).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Bad, Doubtful, Good, Unknown};
    use crate::testing::{cpus, good, intent, set_cmdline};
    use rtproof_host::Reading;

    fn with(line: &str, boot: &[u32], partitions: Option<&[u32]>) -> (Status, String) {
        let mut facts = good();
        set_cmdline(&mut facts, line);
        facts.cpus.isolated = Reading::known("/sys/devices/system/cpu/isolated", cpus(boot));
        let path = "/sys/fs/cgroup/cpuset.cpus.isolated";
        facts.isolation.partitioned = match partitions {
            Some(set) => Reading::known(path, cpus(set)),
            None => Reading::absent(path),
        };
        let finding = ISOLCPUS.judge(&facts, &intent());
        (finding.status, finding.summary)
    }

    #[test]
    fn by_boot_by_partition_and_by_both() {
        assert_eq!(with("", &[2, 3], None).0, Good);
        assert_eq!(with("", &[], Some(&[2, 3])).0, Good);
        assert_eq!(with("", &[2], Some(&[3])).0, Good);
        assert_eq!(with("", &[1], Some(&[3])).0, Bad);
    }

    #[test]
    fn nothing_isolated_is_doubtful_and_others_isolated_is_bad() {
        assert_eq!(with("quiet", &[], None).0, Doubtful);
        let (status, summary) = with("isolcpus=1", &[1], Some(&[]));
        assert_eq!((status, summary.as_str()), (Bad, "CPU 1 isolated, the real-time CPUs 2-3 not"));
    }

    #[test]
    fn flags_without_domain_isolate_nothing() {
        let (status, summary) = with("isolcpus=managed_irq,2-3", &[], None);
        assert_eq!(status, Bad);
        assert!(summary.starts_with("isolcpus=managed_irq,2-3 has no flag `domain`, so /sys"));
    }

    #[test]
    fn an_unreadable_list_is_unknown() {
        let mut facts = good();
        facts.cpus.isolated = Reading::denied("/sys/devices/system/cpu/isolated", "EACCES");
        assert_eq!(ISOLCPUS.judge(&facts, &intent()).status, Unknown);
        set_cmdline(&mut facts, "isolcpus=managed_irq,2-3");
        assert_eq!(ISOLCPUS.judge(&facts, &intent()).status, Doubtful);
    }
}
