//! Interrupts: where they were asked to go, where they go, and who moves them.

mod interrupts;
mod irqbalance;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::tasks::Scan;
use crate::{CpuList, Reading, Root};

/// Interrupts of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Irqs {
    /// Affinity that new interrupts get (/proc/irq/default_smp_affinity).
    pub default_affinity: Reading<CpuList>,
    /// Every numbered interrupt that has an action, ascending.
    pub irqs: Reading<Vec<Irq>>,
    /// Lines that have a folder in /proc/irq and no handler, with their effective affinity: no
    /// interrupt comes there until a driver asks for one.
    #[serde(default = "Reading::<Vec<(u32, CpuList)>>::not_recorded")]
    pub unhandled: Reading<Vec<(u32, CpuList)>>,
    /// irqbalance.
    pub irqbalance: Reading<Irqbalance>,
}

/// One interrupt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Irq {
    /// Number. Not an identity: it changes over boots and hotplug.
    pub number: u32,
    /// Handlers (last columns of /proc/interrupts, or /sys/kernel/irq/N/actions).
    pub actions: String,
    /// Chip and hardware line, e.g. `PCI-MSIX-0000:00:02.0 1-edge`.
    pub chip: String,
    /// Affinity asked for (smp_affinity_list).
    pub requested: Reading<CpuList>,
    /// Affinity in force (effective_affinity_list).
    pub effective: Reading<CpuList>,
    /// Interrupts since boot, all CPUs.
    pub count: u64,
    /// Whether the kernel lets nobody move it, as the interrupts of a device's queues that it
    /// spreads by itself ("managed"). From 6.12 its file says so by its mode; false: not known.
    #[serde(default)]
    pub managed: bool,
}

/// irqbalance, the daemon that rewrites affinities every ten seconds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Irqbalance {
    /// Process id when it runs.
    pub running: Option<u32>,
    /// Whether its unit is enabled: a link in a `*.wants` folder.
    pub enabled: bool,
    /// CPUs it is told to leave alone (IRQBALANCE_BANNED_CPULIST or _CPUS), where set.
    pub banned: Option<CpuList>,
    /// The file the banned CPUs came from.
    pub banned_from: Option<String>,
}

impl Irqs {
    /// Reads the interrupts: two files for each. `scan` tells whether irqbalance runs,
    /// `interrupts` is /proc/interrupts.
    #[must_use]
    pub fn read(root: &Root, scan: &Scan, interrupts: &Reading<String>) -> Self {
        let default = root.trimmed("/proc/irq/default_smp_affinity");
        let irqs = interrupts::read(root, interrupts);
        let handled: BTreeSet<u32> =
            irqs.value().into_iter().flatten().map(|irq| irq.number).collect();
        let unhandled = |number: u32| {
            let path = format!("/proc/irq/{number}/effective_affinity_list");
            Some((number, root.cpu_list(&path).value()?.clone()))
        };
        Self {
            default_affinity: default.and_then(|path, mask| match CpuList::parse_mask(&mask) {
                Ok(cpus) => Reading::known(path, cpus),
                Err(_) => Reading::malformed(path, &mask, "a mask of CPUs in hexadecimal"),
            }),
            unhandled: root.list_numbered("/proc/irq", "").map(|numbers| {
                let numbers = numbers.into_iter().filter(|number| !handled.contains(number));
                numbers.filter_map(unhandled).collect()
            }),
            irqs,
            irqbalance: irqbalance::read(root, scan),
        }
    }
}
