//! What the machine is meant for: the part of the user's requirements that checks need.

use std::collections::BTreeMap;

use rtproof_host::{CpuList, Facts, facts::account::Account};
use rtproof_record::Options;

use crate::{Profile, boot_params};

/// What the machine is meant for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intent {
    /// Real-time CPUs: where latency matters.
    pub rt_cpus: CpuList,
    /// The other online CPUs.
    pub housekeeping: CpuList,
    /// Priority of the real-time application (SCHED_FIFO).
    pub priority: u32,
    /// Period of its loop.
    pub period_ns: u64,
    /// Latency it can bear.
    pub budget_ns: Option<u64>,
    /// Kind of work, which decides where the sources disagree.
    pub profile: Profile,
    /// Checks that the user leaves out, with the reason.
    pub skip: BTreeMap<String, String>,
    /// The user whose rights count, where one is known; a record has none.
    pub user: Option<Account>,
}

impl Intent {
    /// The real-time CPUs where nobody named any: those that the machine itself sets apart. That is
    /// what is isolated at boot, else by partitions of cgroup v2, else what is tickless, else what
    /// `isolcpus=`, `nohz_full=` or tuned's `tuned.non_isolcpus=` ask for, in force or not; else
    /// every online CPU.
    ///
    /// OpenShift isolates with `isolcpus=managed_irq,LIST` and no `domain`: nothing counts as
    /// isolated then, and `nohz_full` tells which CPUs are meant.
    pub fn default_rt_cpus(facts: &Facts) -> CpuList {
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let some = |cpus: Option<&CpuList>| cpus.filter(|cpus| !cpus.is_empty()).cloned();
        let asked = |key: &str| {
            let asked = boot_params::asked(facts, key)?.intersection(&online);
            let is_all = online.difference(&asked).is_empty();
            Some(asked).filter(|asked| !asked.is_empty() && !is_all)
        };
        some(facts.cpus.isolated.value())
            .or_else(|| some(facts.isolation.partitioned.value()))
            .or_else(|| some(facts.cpus.nohz_full.value()))
            .or_else(|| asked("isolcpus"))
            .or_else(|| asked("nohz_full"))
            .or_else(|| not_housekeeping(facts, &online))
            .unwrap_or(online)
    }

    /// The intent behind a run.
    pub fn of(options: &Options, facts: &Facts) -> Self {
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        Self {
            rt_cpus: options.cpus.clone(),
            housekeeping: online.difference(&options.cpus),
            priority: options.priority,
            period_ns: options.period_ns,
            budget_ns: options.requirement.budget_ns,
            profile: Profile::from_json(&options.profile),
            skip: options.skipped.clone(),
            user: None,
        }
    }
}

/// What tuned's profile cpu-partitioning leaves for the application: it boots with the mask of the
/// other CPUs and without isolcpus.
fn not_housekeeping(facts: &Facts, online: &CpuList) -> Option<CpuList> {
    let mask = facts.kernel.cmdline.value()?.last("tuned.non_isolcpus").flatten()?;
    let housekeeping = CpuList::parse_mask(mask).ok()?.intersection(online);
    let others = online.difference(&housekeeping);
    Some(others).filter(|others| !others.is_empty() && !housekeeping.is_empty())
}

#[cfg(test)]
mod tests {
    use rtproof_host::Reading;

    use super::*;
    use crate::testing::{cpus, good, set_cmdline};

    #[test]
    fn the_real_time_cpus_are_those_that_the_machine_sets_apart() {
        let mut facts = good();
        let set = |path: &str, set: &[u32]| Reading::known(path.to_owned(), cpus(set));
        let of = |facts: &Facts| Intent::default_rt_cpus(facts).to_string();
        facts.cpus.isolated = set("/sys/devices/system/cpu/isolated", &[3]);
        assert_eq!(of(&facts), "3");
        facts.cpus.isolated = set("/sys/devices/system/cpu/isolated", &[]);
        assert_eq!(of(&facts), "2-3", "tickless");
        facts.isolation.partitioned = set("/sys/fs/cgroup/cpuset.cpus.isolated", &[1]);
        assert_eq!(of(&facts), "1");
        facts.isolation.partitioned = Reading::absent("/sys/fs/cgroup/cpuset.cpus.isolated");
        facts.cpus.nohz_full = Reading::absent("/sys/devices/system/cpu/nohz_full");
        set_cmdline(&mut facts, "isolcpus=managed_irq,1-2,9");
        assert_eq!(of(&facts), "1-2");
        set_cmdline(&mut facts, "tuned.non_isolcpus=00000000,00000003");
        assert_eq!(of(&facts), "2-3");
        for none in [
            "quiet",
            "tuned.non_isolcpus=f",
            "tuned.non_isolcpus=x",
            "isolcpus=2-3n",
            "isolcpus=",
            "isolcpus=0-3",
            "isolcpus=8-9",
        ] {
            set_cmdline(&mut facts, none);
            assert_eq!(of(&facts), "0-3", "{none}");
        }
    }
}
