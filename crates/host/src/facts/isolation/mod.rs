//! What keeps CPUs free beside the boot parameters, and what reached them all the same.

mod counters;
mod cpusets;
mod manager;

use serde::{Deserialize, Serialize};

pub use self::{
    counters::{CounterRow, Counters, DeviceCount},
    cpusets::{Cpuset, Cpusets, Hierarchy},
    manager::ManagerAffinity,
};

use crate::{CpuList, Reading, Root};

/// Control groups of CPUs, the affinity that services inherit, counters of each CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Isolation {
    /// The cpuset controller.
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

impl Default for Isolation {
    /// What a record of an earlier rtproof does not hold.
    fn default() -> Self {
        Self {
            cpusets: Reading::<Cpusets>::not_recorded(),
            partitioned: Reading::<CpuList>::not_recorded(),
            manager_affinity: Reading::<Option<ManagerAffinity>>::not_recorded(),
            init: Reading::<String>::not_recorded(),
            init_cpus: Reading::<CpuList>::not_recorded(),
            uptime_ms: Reading::<u64>::not_recorded(),
            counters: Reading::<Counters>::not_recorded(),
        }
    }
}

impl Isolation {
    /// Reads it; `interrupts` is /proc/interrupts.
    #[must_use]
    pub fn read(root: &Root, interrupts: &Reading<String>) -> Self {
        let init_cpus = root.excerpt("/proc/1/status", &["Cpus_allowed_list"]);
        Self {
            cpusets: cpusets::read(root),
            partitioned: root.cpu_list(&format!("{}/cpuset.cpus.isolated", cpusets::MOUNT)),
            manager_affinity: manager::read(root),
            init: root.trimmed("/proc/1/comm"),
            init_cpus: init_cpus.and_then(|path, line| {
                let list = line.split_once(':').map_or("", |(_, list)| list);
                match CpuList::parse(list, None) {
                    Ok(cpus) if !cpus.is_empty() => Reading::known(path, cpus),
                    _ => Reading::malformed(path, &line, "Cpus_allowed_list: and a list"),
                }
            }),
            uptime_ms: root.read_text("/proc/uptime").and_then(|path, text| {
                let seconds = text.split_whitespace().next().and_then(|word| {
                    let (whole, part) = word.split_once('.')?;
                    // Two digits (fs/proc/uptime.c).
                    Some(
                        whole.parse::<u64>().ok()?.checked_mul(1_000)?
                            + part.parse::<u64>().ok()? * 10,
                    )
                });
                match seconds {
                    Some(ms) => Reading::known(path, ms),
                    None => Reading::malformed(path, &text, "seconds like 350735.47"),
                }
            }),
            counters: counters::read(interrupts),
        }
    }
}
