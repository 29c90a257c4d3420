//! Limits as they apply to this process: what mlock and SCHED_FIFO will be allowed to do.

use serde::{Deserialize, Serialize};

use crate::Reading;

/// Limits of this process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    /// RLIMIT_RTPRIO: highest real-time priority without CAP_SYS_NICE.
    pub rtprio: Reading<Limit>,
    /// RLIMIT_MEMLOCK in bytes: how much may be locked without CAP_IPC_LOCK.
    pub memlock: Reading<Limit>,
    /// CAP_SYS_NICE in the effective set (CapEff of /proc/self/status).
    pub cap_sys_nice: Reading<bool>,
    /// CAP_IPC_LOCK in the effective set.
    pub cap_ipc_lock: Reading<bool>,
    /// RLIMIT_RTTIME in microseconds: a real-time task that runs longer without blocking is killed.
    pub rttime: Reading<Limit>,
}

/// Soft and hard limit; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limit {
    /// Soft limit.
    pub soft: Option<u64>,
    /// Hard limit.
    pub hard: Option<u64>,
}
