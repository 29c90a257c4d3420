//! What the machine is meant for: the part of the user's wishes that checks need.

use std::collections::BTreeMap;

use rtproof_host::{CpuList, Facts};
use rtproof_record::Options;

use crate::Profile;

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
}

impl Intent {
    /// The CPUs that the machine keeps free for real-time work, where nobody names them: the
    /// isolated ones, else all that are online.
    #[must_use]
    pub fn default_rt_cpus(facts: &Facts) -> CpuList {
        let isolated = facts.cpus.isolated.value().filter(|list| !list.is_empty());
        isolated.or_else(|| facts.cpus.online.value()).cloned().unwrap_or_default()
    }

    /// The intent behind a run.
    #[must_use]
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
        }
    }
}
