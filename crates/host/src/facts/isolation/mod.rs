//! What keeps CPUs free beside the boot parameters, and what reached them all the same.

mod counters;
mod cpusets;
mod manager;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::{
    counters::{CounterRow, Counters, DeviceCount},
    cpusets::{Cpuset, Cpusets, Hierarchy},
    manager::ManagerAffinity,
};

use super::app::uptime_ticks;
use crate::{CpuList, Reading, Root};

/// Control groups of CPUs, the affinity that services inherit, counters of each CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Isolation {
    pub cpusets: Reading<Cpusets>,
    /// CPUs in isolated partitions (cpuset.cpus.isolated of the root group, 6.7 and later).
    pub partitioned: Reading<CpuList>,
    /// `CPUAffinity=` of systemd's own configuration; `None`: not set.
    pub manager_affinity: Reading<Option<ManagerAffinity>>,
    /// Name of process 1.
    pub init: Reading<String>,
    /// CPUs that process 1 may run on, which every service inherits.
    pub init_cpus: Reading<CpuList>,
    /// Time since boot, milliseconds.
    pub uptime_ms: Reading<u64>,
    /// Interrupts of each CPU since boot.
    pub counters: Reading<Counters>,
}

impl Isolation {
    /// Reads it; `interrupts` is /proc/interrupts.
    pub fn read(root: &Root, interrupts: &Reading<String>) -> Self {
        let init_cpus = root.excerpt("/proc/1/status", &["Cpus_allowed_list"]);
        Self {
            cpusets: cpusets::read(root),
            partitioned: root.cpu_list(&format!("{}/cpuset.cpus.isolated", cpusets::MOUNT)),
            manager_affinity: manager::read(root),
            init: root.trimmed("/proc/1/comm"),
            init_cpus: init_cpus.parsed("Cpus_allowed_list: and a list", |line| {
                let cpus = CpuList::parse(line.split_once(':')?.1, None).ok()?;
                (!cpus.is_empty()).then_some(cpus)
            }),
            uptime_ms: root
                .read_text("/proc/uptime")
                .parsed("seconds like 350735.47", |text| uptime_ticks(text)?.checked_mul(10)),
            counters: counters::read(interrupts),
        }
    }
}
