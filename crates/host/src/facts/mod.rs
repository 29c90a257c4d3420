//! What a machine is: one serialisable snapshot, every value a [`crate::Reading`].
//!
//! `Facts` is what checks judge and what a record keeps from the start and the end of a run. Adding
//! a fact: a field here, a reader in the file of its subject, a line in `class_of` (`flatten`)
//! if its subject is new.

pub mod app;
pub mod copied;
pub mod cpu;
pub mod cpu_classes;
mod cpu_part;
pub mod devices;
pub mod irq;
pub mod isolation;
pub mod kernel;
pub mod memory;
pub mod net;
pub mod next_boot;
pub mod platform;
pub mod rights;
pub mod sched;
pub mod settings;
pub mod tasks;
pub mod virt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::text::{field, hex};
use crate::{Reading, Root};

/// One snapshot of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    /// What was read in place of a machine; `None`: a live machine, or a capture made on one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<copied::MachineCopy>,
    /// Identity of the machine.
    pub identity: Identity,
    /// Kernel build, preemption model, command line.
    pub kernel: kernel::Kernel,
    /// CPUs, topology, frequency, idle states.
    pub cpus: cpu::Cpus,
    pub clock: ClockSource,
    /// RT throttling and the fair server.
    pub sched: sched::Sched,
    /// Real-time tasks that are running now (this process left out).
    pub rt_tasks: Reading<Vec<tasks::RtTask>>,
    /// All tasks, grouped by allowed CPUs (without this process).
    #[serde(default)]
    pub placement: Reading<Vec<tasks::TaskGroup>>,
    /// Control groups of CPUs, the affinity that services inherit, counters of each CPU.
    #[serde(default)]
    pub isolation: isolation::Isolation,
    /// Interrupts and the daemon that balances them.
    pub irqs: irq::Irqs,
    /// Limits as they apply to this process.
    pub limits: rights::Limits,
    /// Limits granted by files, the PAM services that read them, and whether a right counts here.
    #[serde(default)]
    pub rights: rights::Rights,
    /// Swap and transparent huge pages.
    pub memory: memory::Memory,
    /// Mounted file systems that hold files of programs.
    #[serde(default)]
    pub mounts: Reading<Vec<memory::Mount>>,
    /// Parts of the cache for groups of CPUs.
    #[serde(default)]
    pub resctrl: Reading<memory::Resctrl>,
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
    pub cpu_dma_latency_us: Reading<Option<u32>>,
    /// systemd units that knobs name.
    #[serde(default)]
    pub units: Reading<virt::Units>,
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
        let root = &root.judged();
        let cpuinfo = root.read_text("/proc/cpuinfo");
        let meminfo = root.read_text("/proc/meminfo");
        let settings = settings::read(root);
        let kernel = kernel::Kernel::read(root, &cpuinfo);
        let cpus = cpu::Cpus::read(root, &cpuinfo);
        let sched = sched::Sched::read(root, &kernel.version);
        let scan = tasks::TaskScan::read(root);
        let net = net::Net::read(root, &kernel.version);
        let devices = devices::Devices::read(root, &kernel.tainted);
        let platform = platform::Platform::read(root, &cpuinfo, &kernel, &cpus, &settings);
        let interrupts = root.read_text("/proc/interrupts");
        let irqs = irq::Irqs::read(root, &scan, &interrupts, cpus.existing());
        let existing = cpus.existing().cloned();
        let facts = Self {
            copy: None,
            identity: Identity::read(root, &cpuinfo, &meminfo),
            kernel,
            cpus,
            clock: ClockSource::read(root),
            sched,
            rt_tasks: scan.rt_tasks,
            placement: scan.placement,
            isolation: isolation::Isolation::read(root, &interrupts, existing.as_ref()),
            irqs,
            limits: rights::Limits::read(root),
            rights: rights::Rights::read(root),
            memory: memory::Memory::read(root, &meminfo, &settings),
            mounts: memory::read_mounts(root),
            resctrl: memory::read_resctrl(root, &cpuinfo),
            virt: virt::Virt::read(root, &cpuinfo),
            platform,
            settings,
            cpu_dma_latency_us: crate::idle::limit_us(root),
            units: virt::read_units(root),
            net,
            devices,
        };
        // Last: it knows what was read.
        Self { copy: copied::MachineCopy::of(root, facts.kernel.config_is_part), ..facts }
    }
}

// Clock sources.

/// The clock behind CLOCK_MONOTONIC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClockSource {
    /// Clock source in use.
    pub source: Reading<String>,
    /// Clock sources to choose from.
    pub available: Reading<Vec<String>>,
}

const FOLDER: &str = "/sys/devices/system/clocksource/clocksource0";

impl ClockSource {
    /// Reads the clock sources.
    pub fn read(root: &Root) -> Self {
        let words = |text: String| text.split_whitespace().map(str::to_owned).collect();
        Self {
            source: root.trimmed(&format!("{FOLDER}/current_clocksource")),
            available: root.read_text(&format!("{FOLDER}/available_clocksource")).map(words),
        }
    }
}

/// Identity of the machine. Nothing here identifies it to others: the id is a hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Identity {
    /// Host name (/proc/sys/kernel/hostname).
    pub hostname: Reading<String>,
    /// Salted SHA-256 of the DMI product UUID, device-tree serial or machine-id; 16 hex digits.
    pub machine_id: Reading<String>,
    /// Board or product name from DMI or the device tree.
    pub model: Reading<String>,
    /// CPU model from /proc/cpuinfo.
    pub cpu_model: Reading<String>,
    /// This boot (/proc/sys/kernel/random/boot_id).
    pub boot_id: Reading<String>,
    /// Memory in bytes (MemTotal of /proc/meminfo).
    pub memory_bytes: Reading<u64>,
}

/// Keeps the hash from being looked up in a table of machine-ids.
const SALT: &str = "rtproof machine id 1";

impl Identity {
    /// Reads the machine's identity. /proc/cpuinfo and /proc/meminfo are handed in, because others
    /// need them too.
    pub fn read(root: &Root, cpuinfo: &Reading<String>, meminfo: &Reading<String>) -> Self {
        Self {
            hostname: root.trimmed("/proc/sys/kernel/hostname"),
            machine_id: machine_id(root),
            model: model(root),
            cpu_model: cpuinfo.clone().parsed("the name of a CPU model", cpu_model),
            boot_id: root.trimmed("/proc/sys/kernel/random/boot_id"),
            memory_bytes: memory::meminfo_bytes(meminfo, "MemTotal"),
        }
    }
}

/// The first of three that names the machine. The product UUID is for root only: where it is
/// refused, so is the id, because a machine must not have one id for root and another for users.
fn machine_id(root: &Root) -> Reading<String> {
    let uuid = root.trimmed("/sys/class/dmi/id/product_uuid").and_then(usable);
    if matches!(uuid.state, crate::reading::ReadingState::Denied { .. }) {
        return uuid;
    }
    let own = uuid.or_else(|| root.trimmed("/proc/device-tree/serial-number").and_then(usable));
    // In a container /etc/machine-id is the image's, and may be that of others elsewhere.
    let known = match own.value().is_none() && virt::Virt::container(root).is_some() {
        true => own,
        false => own.or_else(|| root.trimmed("/etc/machine-id").and_then(usable)),
    };
    known.map(|raw| hash(&raw))
}

/// Refuses the placeholders of boards without a serial number.
fn usable(path: String, id: String) -> Reading<String> {
    let id = id.to_lowercase();
    let mut digits = id.chars().filter(char::is_ascii_alphanumeric);
    let first = digits.next();
    let same = digits.all(|digit| Some(digit) == first);
    if same || id == "03000200-0400-0500-0006-000700080009" || id == "uninitialized" {
        return Reading::malformed(path, &id, "an id that is this machine's own");
    }
    Reading::known(path, id)
}

pub(crate) fn hash(raw: &str) -> String {
    let digest = Sha256::new().chain_update(SALT).chain_update(raw).finalize();
    hex(&digest[..8])
}

fn model(root: &Root) -> Reading<String> {
    let dmi = root.trimmed("/sys/class/dmi/id/product_name").map(|product| {
        match root.trimmed("/sys/class/dmi/id/sys_vendor").value() {
            Some(vendor) if !product.starts_with(vendor.as_str()) => {
                format!("{vendor} {product}")
            }
            _ => product,
        }
    });
    dmi.or_else(|| root.trimmed("/proc/device-tree/model"))
}

/// x86, 32-bit ARM and LoongArch name a model; 64-bit ARM gives numbers; others use their own word.
fn cpu_model(text: &str) -> Option<String> {
    let field = |name: &str| field(text, name).map(str::to_owned);
    let named = field("model name").or_else(|| field("Model Name"));
    let named = named.or_else(|| cpu_part::arm_core(text));
    let other = || field("uarch").or_else(|| field("cpu model")).or_else(|| field("cpu"));
    named.or_else(other)
}

#[cfg(test)]
mod clock_tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn current_and_available() {
        let tree = Tree::new(&[
            ("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n"),
            ("sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet \n"),
        ]);
        let clock = ClockSource::read(&tree.root());
        assert_eq!(clock.source.value().unwrap(), "tsc");
        assert_eq!(clock.available.value().unwrap(), &["tsc", "hpet"]);
        assert!(ClockSource::read(&Tree::new(&[]).root()).source.is_absent());
    }
}

#[cfg(test)]
mod identity_tests {
    use super::*;
    use crate::reading::ReadingState;
    use crate::testing::Tree;

    fn identity(files: &[(&str, &str)]) -> Identity {
        let root = Tree::new(files);
        let root = root.root();
        Identity::read(&root, &root.read_text("/proc/cpuinfo"), &root.read_text("/proc/meminfo"))
    }

    #[test]
    fn x86_server() {
        let identity = identity(&[
            ("sys/class/dmi/id/product_uuid", "4C4C4544-0042\n"),
            ("sys/class/dmi/id/product_name", "PowerEdge R740xd\n"),
            ("sys/class/dmi/id/sys_vendor", "Dell Inc.\n"),
            ("etc/machine-id", "abcdef\n"),
            ("proc/cpuinfo", "processor\t: 0\nmodel name\t: Xeon  5218R\n"),
            ("proc/meminfo", "MemTotal:       196633688 kB\nMemFree: 1 kB\n"),
            ("proc/sys/kernel/hostname", "w1\n"),
        ]);
        assert_eq!(identity.machine_id.path, "/sys/class/dmi/id/product_uuid");
        let id = identity.machine_id.value().unwrap();
        assert!(id.len() == 16 && id.chars().all(|c| c.is_ascii_hexdigit()));
        assert_eq!(identity.model.value().unwrap(), "Dell Inc. PowerEdge R740xd");
        assert_eq!(identity.cpu_model.value().unwrap(), "Xeon  5218R");
        assert_eq!(identity.memory_bytes.value(), Some(&(196_633_688 * 1024)));
        assert!(identity.boot_id.is_absent());
    }

    #[test]
    fn the_hash_is_fixed_and_is_not_the_id() {
        // sha256("rtproof machine id 1" "abcdef"), computed with sha256sum.
        assert_eq!(hash("abcdef"), "41a0e2345902a55c");
    }

    #[test]
    fn board_without_dmi() {
        let pi = identity(&[
            ("proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4\0"),
            ("proc/device-tree/serial-number", "10000000abcd\0"),
            ("proc/cpuinfo", "processor : 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n"),
        ]);
        assert_eq!(pi.machine_id.path, "/proc/device-tree/serial-number");
        assert_eq!(pi.model.value().unwrap(), "Raspberry Pi 4 Model B Rev 1.4");
        assert_eq!(pi.cpu_model.value().unwrap(), "Cortex-A72");
        let riscv = identity(&[("proc/cpuinfo", "hart : 0\nuarch : sifive,u74-mc\n")]);
        assert_eq!(riscv.cpu_model.value().unwrap(), "sifive,u74-mc");
    }

    #[test]
    fn the_machine_id_of_an_image_is_no_machine_s() {
        let marked = [(".dockerenv", ""), ("etc/machine-id", "abcdef")];
        assert!(identity(&marked).machine_id.is_absent());
        let board = ("proc/device-tree/serial-number", "10000000abcd");
        assert!(identity(&[marked[0], marked[1], board]).machine_id.value().is_some());
    }

    #[test]
    fn placeholders_do_not_name_a_machine() {
        for uuid in ["00000000-0000-0000-0000-000000000000", "FFFFFFFF-FFFF", "", "0"] {
            let files = [("sys/class/dmi/id/product_uuid", uuid), ("etc/machine-id", "abcdef")];
            assert_eq!(identity(&files).machine_id.path, "/etc/machine-id", "{uuid}");
        }
        assert!(identity(&[]).machine_id.is_absent());
        assert!(matches!(
            identity(&[("etc/machine-id", "uninitialized\n")]).machine_id.state,
            ReadingState::Malformed { .. }
        ));
    }

    #[test]
    fn a_refused_uuid_gives_no_other_id() {
        // A folder in place of the file makes the read fail.
        let refused =
            identity(&[("sys/class/dmi/id/product_uuid/x", ""), ("etc/machine-id", "abcdef")]);
        assert!(matches!(refused.machine_id.state, ReadingState::Denied { .. }));
    }
}
