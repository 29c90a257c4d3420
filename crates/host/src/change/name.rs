//! What a change is about, by what it is and not by its number of the moment: interrupts and tasks.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::CpuList;

/// An interrupt by what it is, not by its number.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct IrqName {
    /// Number when it was named: a hint.
    pub number: u32,
    /// Names of its handlers, as in /sys/kernel/irq/N/actions; empty without any.
    pub actions: String,
    /// Number in its interrupt controller, as in /sys/kernel/irq/N/hwirq; empty without one.
    pub hwirq: String,
    /// Its interrupt controller, as in /sys/kernel/irq/N/chip_name.
    pub chip: String,
}

/// A task by what it is, not by its number alone.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct TaskName {
    /// Thread id when it was named.
    pub tid: u32,
    /// Start in clock ticks since boot (field 22 of /proc/TID/stat): with the thread id unique.
    /// `None` where a plan names a task for every boot: then its name has to be enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ticks: Option<u64>,
    pub comm: String,
}

/// How a task is scheduled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Scheduling {
    /// `other`, `fifo`, `rr`, `batch`, `idle`, `deadline`, `ext`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Priority, 1 to 99, with `fifo` and `rr`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u32>,
    /// Nice value, with `other` and `batch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nice: Option<i32>,
    /// Runtime, deadline, period in nanoseconds, with `deadline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<[u64; 3]>,
    /// `SCHED_FLAG_RESET_ON_FORK`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset_on_fork: Option<bool>,
    /// CPUs on which it may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<CpuList>,
}
