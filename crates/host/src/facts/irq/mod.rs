//! Interrupts: their requested and effective CPUs, and what moves them.

mod interrupts;
mod irqbalance;

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::interrupts::{Row, actions, table};
pub use self::{interrupts::Irq, irqbalance::Irqbalance};
use super::tasks::Scan;
use crate::{CpuList, Reading, Root};

/// Interrupts of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Irqs {
    /// Affinity that new interrupts get (/proc/irq/default_smp_affinity).
    pub default_affinity: Reading<CpuList>,
    /// Every numbered interrupt that has an action, ascending.
    pub irqs: Reading<Vec<Irq>>,
    /// Lines that have a folder in /proc/irq and no handler, with their effective affinity: no
    /// interrupt comes there until a driver asks for one.
    #[serde(default)]
    pub unhandled: Reading<Vec<(u32, CpuList)>>,
    pub irqbalance: Reading<Irqbalance>,
}

impl Irqs {
    /// Reads the interrupts: two files for each. `scan` says whether irqbalance runs,
    /// `interrupts` is /proc/interrupts.
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
            default_affinity: default
                .parsed("a mask of CPUs in hexadecimal", |mask| CpuList::parse_mask(mask).ok()),
            unhandled: root.list_numbered("/proc/irq", "").map(|numbers| {
                let numbers = numbers.into_iter().filter(|number| !handled.contains(number));
                numbers.filter_map(unhandled).collect()
            }),
            irqs,
            irqbalance: irqbalance::read(root, scan),
        }
    }
}
