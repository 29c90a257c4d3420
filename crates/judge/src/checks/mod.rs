//! The checks: one file each, one list.
//!
//! A check is a pure function from facts and intent to a [`Finding`]. To add one: copy
//! `_template.rs`, fill it in, add one line to [`CHECKS`], run the tests. `contract.rs` then holds
//! it to what every check promises: it is never good without what it read, and says what that was.

use rtproof_host::Facts;

use crate::{Finding, Intent};

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

/// Runs every check.
#[must_use]
pub fn judge_all(facts: &Facts, intent: &Intent) -> Vec<Finding> {
    CHECKS.iter().map(|check| check.judge(facts, intent)).collect()
}
