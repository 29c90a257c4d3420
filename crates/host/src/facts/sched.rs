//! RT throttling and, from 6.12, the deadline server that runs fair tasks ahead of real-time ones.

use serde::{Deserialize, Serialize};

use crate::Reading;

/// What the scheduler takes from real-time tasks by rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sched {
    /// sched_rt_runtime_us; -1 is no limit.
    pub rt_runtime_us: Reading<i64>,
    /// sched_rt_period_us.
    pub rt_period_us: Reading<i64>,
    /// Fair server per CPU (/sys/kernel/debug/sched/fair_server). Absent before 6.12, denied under
    /// lockdown, absent also where debugfs is not mounted: the path says which was asked.
    pub fair_server: Reading<Vec<FairServer>>,
}

/// The fair server of one CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FairServer {
    /// CPU.
    pub cpu: u32,
    /// Runtime per period in nanoseconds; 0 is off.
    pub runtime_ns: u64,
    /// Period in nanoseconds.
    pub period_ns: u64,
}
