//! Is this application really real-time? One file for each subject.
//!
//! A check of an application is a `Check` whose function also reads the application's facts. A
//! check of real-time threads does not apply to an application without any: `app-policy` reports
//! that. A new check needs its static, a line in `CHECKS`, and good values in `testing.rs`.

use rtproof_host::{Facts, facts::app::App};

pub use threads::{cpus, priority};

use super::case::is_own;
use super::check::Check;
use crate::{Finding, Intent};

mod affinity;
mod cgroup_quota;
mod container;
#[cfg(test)]
mod contract;
mod cpuset;
mod debugger;
mod equal_priority;
mod irq_threads;
mod isolation;
mod limits;
mod memory_limit;
mod memory_locked;
mod memory_nodes;
mod oom;
mod ordinary_threads;
mod outranked;
mod page_faults;
mod pinning;
mod policy;
mod preempted;
mod rt_bandwidth;
mod seccomp;
mod swapped;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod threads;
mod throttling;
mod timer_slack;
mod unit;

const CHECKS: &[&Check] = &[
    &policy::CHECK,
    &affinity::CHECK,
    &isolation::CHECK,
    &pinning::CHECK,
    &outranked::CHECK,
    &equal_priority::CHECK,
    &irq_threads::CHECK,
    &ordinary_threads::CHECK,
    &throttling::CHECK,
    &preempted::CHECK,
    &memory_locked::CHECK,
    &page_faults::CHECK,
    &swapped::CHECK,
    &limits::RTPRIO,
    &limits::MEMLOCK,
    &limits::RTTIME,
    &cgroup_quota::CHECK,
    &rt_bandwidth::CHECK,
    &cpuset::CHECK,
    &memory_nodes::CHECK,
    &memory_limit::CHECK,
    &unit::CHECK,
    &timer_slack::CHECK,
    &seccomp::CHECK,
    &debugger::CHECK,
    &oom::CHECK,
    &container::CHECK,
];

/// Every check, in the order of the report.
pub fn all() -> impl Iterator<Item = &'static Check> {
    CHECKS.iter().copied()
}

/// The check with an id.
pub fn by_id(id: &str) -> Option<&'static Check> {
    all().find(|check| check.id == id)
}

/// Runs every check of an application.
pub fn judge_all(facts: &Facts, app: &App, intent: &Intent) -> Vec<Finding> {
    let judge = |check: &Check| {
        let mut finding = check.judge_app(facts, app, intent);
        finding.skipped = intent.skip.get(&finding.check).cloned();
        finding
    };
    all().map(judge).collect()
}

/// The machine without the application's own real-time threads, which are no strangers on it: what
/// the checks of the machine are to judge.
pub fn without_own(facts: &Facts, app: &App) -> Facts {
    let mut facts = facts.clone();
    facts.rt_tasks = facts.rt_tasks.map(|mut tasks| {
        tasks.retain(|task| !is_own(app, task));
        tasks
    });
    facts
}
