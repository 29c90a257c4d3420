//! Real-time tasks of the machine: who may preempt whom.

use serde::{Deserialize, Serialize};

use crate::CpuList;

/// One task (thread) under SCHED_FIFO, SCHED_RR or SCHED_DEADLINE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RtTask {
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub pid: u32,
    /// Name of the thread.
    pub comm: String,
    /// Policy.
    pub policy: Policy,
    /// Real-time priority, 1 to 99; 0 for SCHED_DEADLINE.
    pub priority: u32,
    /// CPUs it may run on, if readable.
    pub cpus: Option<CpuList>,
    /// Whether it is a kernel thread.
    pub kernel_thread: bool,
    /// systemd unit or cgroup that owns it, where it has one, e.g. `multipathd.service`.
    pub unit: Option<String>,
    /// Start time in clock ticks since boot: with the pid, the identity of the process.
    pub start_ticks: u64,
}

/// Scheduling policy (include/uapi/linux/sched.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Policy {
    /// SCHED_OTHER.
    Other,
    /// SCHED_FIFO.
    Fifo,
    /// SCHED_RR.
    Rr,
    /// SCHED_BATCH.
    Batch,
    /// SCHED_IDLE.
    Idle,
    /// SCHED_DEADLINE.
    Deadline,
    /// SCHED_EXT.
    Ext,
}
