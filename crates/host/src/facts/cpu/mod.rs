//! CPUs: sets, topology, frequency, idle states.

mod read;

use serde::{Deserialize, Serialize};

use crate::{CpuList, Reading};

/// All CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpus {
    /// CPUs that are online.
    pub online: Reading<CpuList>,
    /// CPUs that could be.
    pub possible: Reading<CpuList>,
    /// CPUs isolated from the scheduler's domains (/sys/devices/system/cpu/isolated).
    pub isolated: Reading<CpuList>,
    /// CPUs in full-tickless mode (/sys/devices/system/cpu/nohz_full). An empty file and the
    /// kernel's `(null)` are the empty list.
    pub nohz_full: Reading<CpuList>,
    /// CPUs this process may use (its cpuset and affinity).
    pub allowed: Reading<CpuList>,
    /// SMT control: on, off, forceoff, notsupported, notimplemented.
    pub smt_control: Reading<String>,
    /// Whether SMT is active: some core has two threads online.
    pub smt_active: Reading<bool>,
    /// Idle driver (cpuidle/current_driver); `none` where no driver is loaded.
    pub idle_driver: Reading<String>,
    /// Idle governor (cpuidle/current_governor).
    pub idle_governor: Reading<String>,
    /// Each online CPU, ascending.
    pub cpus: Vec<Cpu>,
    /// NUMA nodes and their CPUs.
    pub nodes: Reading<Vec<Node>>,
}

/// One CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cpu {
    /// Number.
    pub id: u32,
    /// Core number within the package.
    pub core: Reading<u32>,
    /// Package (socket) number.
    pub package: Reading<u32>,
    /// All threads of the same core, this one included.
    pub siblings: Reading<CpuList>,
    /// Size of the last-level cache in bytes.
    pub last_level_cache_bytes: Reading<u64>,
    /// Frequency scaling.
    pub freq: Freq,
    /// Idle states, shallow to deep.
    pub idle_states: Reading<Vec<IdleState>>,
    /// Per-CPU resume latency limit: `n/a` forbids all idle states, `0` means no limit.
    pub pm_qos_resume_latency_us: Reading<String>,
}

/// Frequency scaling of one CPU (cpufreq). All absent where the kernel or the hypervisor has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Freq {
    /// scaling_governor.
    pub governor: Reading<String>,
    /// scaling_driver.
    pub driver: Reading<String>,
    /// scaling_min_freq in Hz.
    pub min_hz: Reading<u64>,
    /// scaling_max_freq in Hz.
    pub max_hz: Reading<u64>,
}

/// One idle state of one CPU (cpuidle).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IdleState {
    /// stateN.
    pub index: u32,
    /// Name, e.g. C6.
    pub name: String,
    /// Exit latency in nanoseconds.
    pub exit_latency_ns: u64,
    /// Target residency in nanoseconds.
    pub residency_ns: u64,
    /// Whether user space has disabled it.
    pub disabled: bool,
}

/// One NUMA node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Node {
    /// Number.
    pub id: u32,
    /// Its CPUs.
    pub cpus: CpuList,
}
