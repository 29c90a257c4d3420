//! What a machine is: one serialisable snapshot, every value a [`Reading`].
//!
//! `Facts` is what checks judge and what a record keeps from the start and the end of a run. Adding
//! a fact: a field here, a reader in the file of its subject, a line in `class` if its subject
//! is new.

pub mod clock;
pub mod cpu;
pub mod irq;
pub mod kernel;
pub mod limits;
pub mod memory;
pub mod sched;
pub mod tasks;
pub mod virt;

use serde::{Deserialize, Serialize};

/// One snapshot of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Facts {
    /// Who the machine is.
    pub identity: Identity,
    /// Kernel build, preemption model, command line.
    pub kernel: kernel::Kernel,
    /// CPUs, topology, frequency, idle states.
    pub cpus: cpu::Cpus,
    /// Clock sources.
    pub clock: clock::Clock,
    /// RT throttling and the fair server.
    pub sched: sched::Sched,
    /// Real-time tasks that are running now (this process left out).
    pub rt_tasks: crate::Reading<Vec<tasks::RtTask>>,
    /// Interrupts and who balances them.
    pub irqs: irq::Irqs,
    /// Limits as they apply to this process.
    pub limits: limits::Limits,
    /// Swap and transparent huge pages.
    pub memory: memory::Memory,
    /// Hypervisor, container, steal time.
    pub virt: virt::Virt,
}

/// Who the machine is. Nothing here identifies it to others: the id is a hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Identity {
    /// Host name (/proc/sys/kernel/hostname).
    pub hostname: crate::Reading<String>,
    /// Salted SHA-256 of the DMI product UUID, device-tree serial or machine-id; 16 hex digits.
    pub machine_id: crate::Reading<String>,
    /// Board or product name from DMI or the device tree.
    pub model: crate::Reading<String>,
    /// CPU model from /proc/cpuinfo.
    pub cpu_model: crate::Reading<String>,
    /// This boot (/proc/sys/kernel/random/boot_id).
    pub boot_id: crate::Reading<String>,
    /// Memory in bytes (MemTotal of /proc/meminfo).
    pub memory_bytes: crate::Reading<u64>,
}
