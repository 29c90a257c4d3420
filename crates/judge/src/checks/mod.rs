//! The checks: one file each, one list.
//!
//! A check is a pure function from facts and intent to a [`Finding`]. To add one: copy
//! `_template.rs`, fill it in, add one line to [`CHECKS`], run the tests. `contract.rs` then holds
//! it to what every check promises: it is never good without what it read, and says what that was.

use rtproof_host::{CpuList, Facts};

use crate::{Finding, Intent};
use draft::Draft;

#[cfg(test)]
mod _template;
mod boot_params;
mod clocksource;
#[cfg(test)]
mod contract;
mod cpufreq_governor;
mod cpuidle_states;
mod draft;
mod hypervisor;
mod irq_affinity;
mod irqbalance;
mod isolation;
mod limits_memlock;
mod limits_rtprio;
mod machine;
mod preempt_rt;
mod rogue_rt_tasks;
mod rt_throttling;
mod smt;
mod swap;
#[doc(hidden)]
pub mod testing;
mod text;
mod thp;

/// One check.
pub trait Check: Sync {
    /// Identifier: short, kebab-case, for ever.
    fn id(&self) -> &'static str;
    /// What it looks at, in one line.
    fn title(&self) -> &'static str;
    /// Why a bad answer adds latency.
    fn why(&self) -> &'static str;
    /// Where that is known from: documents, kernel files, measurements.
    fn source(&self) -> &'static str;
    /// Whether it judges real-time CPUs that are offline, too; others are asked about online ones.
    fn is_of_offline_cpus(&self) -> bool {
        false
    }
    /// The answer. Never `Good` when what it needs is unknown.
    fn judge(&self, facts: &Facts, intent: &Intent) -> Finding;
}

/// Every check, in the order of the report.
pub const CHECKS: &[&dyn Check] = &[
    &preempt_rt::PreemptRt,
    &cpufreq_governor::CpufreqGovernor,
    &cpuidle_states::CpuidleStates,
    &smt::Smt,
    &rt_throttling::RtThrottling,
    &rogue_rt_tasks::RogueRtTasks,
    &irq_affinity::IrqAffinity,
    &irqbalance::Irqbalance,
    &clocksource::Clocksource,
    &isolation::Isolation,
    &limits_rtprio::LimitsRtprio,
    &limits_memlock::LimitsMemlock,
    &thp::Thp,
    &swap::Swap,
    &hypervisor::Hypervisor,
];

/// Runs every check. Of real-time CPUs that are offline nothing can be told but that they are.
#[must_use]
pub fn judge_all(facts: &Facts, intent: &Intent) -> Vec<Finding> {
    let offline = machine::offline_rt(facts, intent);
    let online = Intent { rt_cpus: intent.rt_cpus.difference(&offline), ..intent.clone() };
    let judge = |check: &dyn Check| {
        if offline.is_empty() || check.is_of_offline_cpus() {
            return check.judge(facts, intent);
        }
        if !online.rt_cpus.is_empty() {
            return check.judge(facts, &online);
        }
        let found = check.judge(facts, intent);
        if found.cpus.is_none() {
            return found;
        }
        Draft::of(check, found.wanted)
            .cpus(&offline)
            .read(&facts.cpus.online, CpuList::to_string)
            .unknown(machine::why_missing(facts, &offline))
    };
    CHECKS.iter().map(|&check| judge(check)).collect()
}

#[cfg(test)]
mod tests {
    use rtproof_host::Reading;

    use super::testing::{cpus, good, intent};
    use super::*;
    use crate::Status;

    /// The good machine with only these CPUs online.
    fn with_online(online: &[u32]) -> Facts {
        let mut facts = good();
        facts.cpus.online = Reading::known(facts.cpus.online.path.clone(), cpus(online));
        facts.cpus.cpus.retain(|cpu| online.contains(&cpu.id));
        facts
    }

    #[test]
    fn an_offline_cpu_is_named_once_and_the_others_are_judged() {
        for finding in judge_all(&with_online(&[0, 1, 2]), &intent()) {
            match finding.check.as_str() {
                "isolation" => {
                    assert_eq!(finding.status, Status::Doubtful);
                    assert!(finding.summary.contains("CPU 3 offline"), "{}", finding.summary);
                }
                _ => {
                    let settled = [Status::Good, Status::NotApplicable];
                    assert!(settled.contains(&finding.status), "{finding:#?}");
                    assert!(finding.cpus.is_none_or(|found| found == cpus(&[2])));
                }
            }
        }
    }

    #[test]
    fn nothing_is_said_of_cpus_that_are_all_offline() {
        for finding in judge_all(&with_online(&[0, 1]), &intent()) {
            if finding.cpus.is_some() && finding.check != "isolation" {
                assert_eq!(finding.status, Status::Unknown);
                assert_eq!(finding.summary, "CPUs 2-3: offline");
            }
        }
    }
}
