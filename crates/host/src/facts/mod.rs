//! What a machine is: one serialisable snapshot, every value a [`crate::Reading`].
//!
//! `Facts` is what checks judge and what a record keeps from the start and the end of a run. Adding
//! a fact: a field here, a reader in the file of its subject, a line in `class_of` (`flatten`)
//! if its subject is new.

pub mod account;
pub mod app;
pub mod clock;
pub mod cpu;
pub mod devices;
pub mod identity;
pub mod irq;
pub mod isolation;
pub mod kernel;
pub mod limits;
pub mod memory;
pub mod mounts;
pub mod net;
pub mod platform;
pub mod resctrl;
pub mod rights;
pub mod sched;
pub mod settings;
pub mod tasks;
pub mod units;
pub mod virt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use identity::Identity;

use crate::Root;

/// One snapshot of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// Who the machine is.
    pub identity: Identity,
    /// Kernel build, preemption model, command line.
    pub kernel: kernel::Kernel,
    /// CPUs, topology, frequency, idle states.
    pub cpus: cpu::Cpus,
    pub clock: clock::Clock,
    /// RT throttling and the fair server.
    pub sched: sched::Sched,
    /// Real-time tasks that are running now (this process left out).
    pub rt_tasks: crate::Reading<Vec<tasks::RtTask>>,
    /// All tasks, grouped: who may run where (this process left out).
    #[serde(default)]
    pub placement: crate::Reading<Vec<tasks::TaskGroup>>,
    /// Control groups of CPUs, the affinity that services inherit, counters of each CPU.
    #[serde(default)]
    pub isolation: isolation::Isolation,
    /// Interrupts and who balances them.
    pub irqs: irq::Irqs,
    /// Limits as they apply to this process.
    pub limits: limits::Limits,
    /// What the limits files grant, who reads them, and whether a right counts here.
    #[serde(default)]
    pub rights: rights::Rights,
    /// Swap and transparent huge pages.
    pub memory: memory::Memory,
    /// Mounted file systems that hold files of programs.
    #[serde(default)]
    pub mounts: crate::Reading<Vec<mounts::Mount>>,
    /// Parts of the cache for groups of CPUs.
    #[serde(default)]
    pub resctrl: crate::Reading<resctrl::Resctrl>,
    /// Hypervisor, container, steal time.
    pub virt: virt::Virt,
    /// Firmware, kernel log, timer resolution, next boot.
    #[serde(default)]
    pub platform: platform::Platform,
    /// Values of the knobs that are plain files, by the knob's id.
    #[serde(default)]
    pub settings: settings::Settings,
    /// Longest exit from idle that is allowed to every CPU, in microseconds, while some program
    /// holds /dev/cpu_dma_latency open; `None`: none does.
    #[serde(default)]
    pub cpu_dma_latency_us: crate::Reading<Option<u32>>,
    /// systemd units that knobs name.
    #[serde(default)]
    pub units: crate::Reading<units::Units>,
    /// Network interfaces with a device behind them.
    #[serde(default)]
    pub net: net::Net,
    /// Consoles, graphics, modules and others.
    #[serde(default)]
    pub devices: devices::Devices,
}

impl Facts {
    /// Reads the machine. Never panics and never waits; what cannot be read says so. A live machine
    /// of a few CPUs takes some milliseconds, one of a hundred CPUs and a thousand interrupts below
    /// a hundred.
    ///
    /// On x86 before 5.19 the kernel answers a read of /proc/cpuinfo by interrupting every busy CPU
    /// (`arch_freq_prepare_all`): call this before and after a measurement, not within.
    pub fn read(root: &Root) -> Self {
        let cpuinfo = root.read_text("/proc/cpuinfo");
        let meminfo = root.read_text("/proc/meminfo");
        let settings = settings::read(root);
        let kernel = kernel::Kernel::read(root);
        let cpus = cpu::Cpus::read(root);
        let sched = sched::Sched::read(root, &kernel.version);
        let scan = tasks::Scan::read(root);
        let net = net::Net::read(root, &kernel.version);
        let devices = devices::Devices::read(root, &kernel.tainted);
        let platform = platform::Platform::read(root, &cpuinfo, &kernel, &cpus, &settings);
        let interrupts = root.read_text("/proc/interrupts");
        let irqs = irq::Irqs::read(root, &scan, &interrupts);
        Self {
            identity: Identity::read(root, &cpuinfo, &meminfo),
            kernel,
            cpus,
            clock: clock::Clock::read(root),
            sched,
            rt_tasks: scan.rt_tasks,
            placement: scan.placement,
            isolation: isolation::Isolation::read(root, &interrupts),
            irqs,
            limits: limits::Limits::read(root),
            rights: rights::Rights::read(root),
            memory: memory::Memory::read(root, &meminfo, &settings),
            mounts: mounts::read(root),
            resctrl: resctrl::read(root, &cpuinfo),
            virt: virt::Virt::read(root, &cpuinfo),
            platform,
            settings,
            cpu_dma_latency_us: crate::pm_qos::limit_us(root),
            units: units::read(root),
            net,
            devices,
        }
    }
}
