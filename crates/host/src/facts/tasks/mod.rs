//! Real-time tasks of the machine: who may preempt whom.

mod groups;
mod scan;
mod stat;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use groups::without_numbers;
pub use scan::Scan;
pub(crate) use scan::unit_of;
pub(crate) use stat::Stat;

use crate::{CpuList, change::TaskName};

/// One task (thread) under SCHED_FIFO, SCHED_RR or SCHED_DEADLINE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RtTask {
    pub tid: u32,
    pub pid: u32,
    /// Name of the thread.
    pub comm: String,
    pub policy: Policy,
    /// Real-time priority, 1 to 99; 0 for SCHED_DEADLINE.
    pub priority: u32,
    /// CPUs it may run on, if readable.
    pub cpus: Option<CpuList>,
    pub kernel_thread: bool,
    /// systemd unit or cgroup that owns it, where it has one, e.g. `multipathd.service`.
    pub unit: Option<String>,
    /// Start time in clock ticks since boot: with the pid, the identity of the process.
    pub start_ticks: u64,
}

/// Tasks of one name that are placed and scheduled alike: all tasks of the machine in a few lines.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskGroup {
    /// Name with numbers as `N`, e.g. `kworker/uN:N`; that of the process where its threads are
    /// all alike. `*`: several names.
    pub name: String,
    /// Whether they are kernel threads.
    pub kernel_thread: bool,
    /// Whether the kernel refuses to move them (PF_NO_SETAFFINITY).
    pub bound: bool,
    /// CPUs that they may run on; `None`: not readable. Of threads that are bound, or that follow
    /// an interrupt, each has its own and this is where any of them may run.
    pub cpus: Option<CpuList>,
    /// Policy; `None`: one that is not known here.
    pub policy: Option<Policy>,
    /// systemd unit or cgroup that owns them, where they have one.
    pub unit: Option<String>,
    pub count: u32,
    /// Thread id of one of them, the lowest.
    pub tid: u32,
    /// Each of them, where they are kernel threads that can be moved one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskName>,
}

/// Scheduling policy (include/uapi/linux/sched.h).
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    Other,
    Fifo,
    Rr,
    Batch,
    Idle,
    Deadline,
    Ext,
}

impl Policy {
    /// The policy with this number of the kernel's ABI, if there is one.
    pub const fn from_number(number: u32) -> Option<Self> {
        match number {
            0 => Some(Self::Other),
            1 => Some(Self::Fifo),
            2 => Some(Self::Rr),
            3 => Some(Self::Batch),
            5 => Some(Self::Idle),
            6 => Some(Self::Deadline),
            7 => Some(Self::Ext),
            _ => None,
        }
    }

    /// The policy of that name, of those that a measuring thread can have.
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Fifo, Self::Rr, Self::Deadline, Self::Other];
        all.into_iter().find(|policy| policy.name() == name)
    }

    /// Whether it has priorities, 1 to 99.
    pub const fn has_priority(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr)
    }

    /// Whether tasks of this policy run ahead of all ordinary ones.
    pub const fn is_real_time(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr | Self::Deadline)
    }

    /// Name as it is serialised: `fifo`, `rr`, ...
    pub const fn name(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Fifo => "fifo",
            Self::Rr => "rr",
            Self::Batch => "batch",
            Self::Idle => "idle",
            Self::Deadline => "deadline",
            Self::Ext => "ext",
        }
    }
}
