//! What the firmware and the boot loader decide, and what the kernel said about it.

pub mod boot;
pub mod firmware;
pub mod log;
pub mod sysctl;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use self::sysctl::is_setting as is_sysctl_setting;

use super::settings::Settings;
use super::{cpu::Cpus, kernel::Kernel};
use crate::{Reading, Root, text};

/// System management interrupts of an Intel CPU since reset (Intel SDM volume 4, MSR_SMI_COUNT).
const SMI_COUNT: u32 = 0x34;

/// Flags of /proc/cpuinfo that say how far the TSC can be trusted.
const TSC_FLAGS: &[&str] =
    &["tsc", "constant_tsc", "nonstop_tsc", "tsc_known_freq", "tsc_reliable"];

/// Firmware, kernel log, timer resolution, next boot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Platform {
    /// Maker of the CPU as /proc/cpuinfo names it: `GenuineIntel`. x86 only.
    pub vendor: Reading<String>,
    /// Revision of the microcode. x86 only.
    pub microcode: Reading<String>,
    /// What the CPU promises of its time stamp counter. x86 only.
    pub tsc_flags: Reading<Vec<String>>,
    /// System management interrupts of the first online CPU since reset. Intel only.
    pub smi_count: Reading<u64>,
    /// Time since boot, in seconds.
    pub uptime_s: Reading<u64>,
    /// Resolution of timers (clock_getres of CLOCK_MONOTONIC), in ns: 1 with high-resolution
    /// timers, else a tick.
    pub timer_resolution_ns: Reading<u64>,
    /// What the kernel said.
    pub log: Reading<log::KernelLog>,
    /// Parameters that the next boot gets.
    pub boot: Reading<boot::NextBoot>,
    /// Settings that files of sysctl.d make at boot.
    pub sysctl: Reading<Vec<sysctl::Assigned>>,
    /// What someone said of the firmware's set-up.
    #[serde(default)]
    pub firmware: Reading<Vec<firmware::Tick>>,
}

impl Platform {
    /// Reads it. What others have read is handed in.
    pub fn read(
        root: &Root,
        cpuinfo: &Reading<String>,
        kernel: &Kernel,
        cpus: &Cpus,
        settings: &Settings,
    ) -> Self {
        let vendor = field(cpuinfo, "vendor_id");
        Self {
            smi_count: smi_count(root, &vendor, cpus),
            vendor,
            microcode: field(cpuinfo, "microcode"),
            tsc_flags: field(cpuinfo, "flags").map(|flags| {
                let flags = flags.split_whitespace().filter(|flag| TSC_FLAGS.contains(flag));
                flags.map(str::to_owned).collect()
            }),
            uptime_s: root
                .trimmed("/proc/uptime")
                .parsed("seconds since boot", |text| text.split('.').next()?.parse().ok()),
            timer_resolution_ns: timer_resolution(root),
            log: log::KernelLog::read(root),
            boot: boot::NextBoot::read(root, &kernel.release),
            sysctl: sysctl::read(root, settings),
            firmware: firmware::read(root),
        }
    }
}

/// A field of the first CPU; absent where the architecture has none of that name.
fn field(cpuinfo: &Reading<String>, name: &str) -> Reading<String> {
    cpuinfo.clone().and_then(|path, text| match text::field(&text, name) {
        Some(value) => Reading::known(path, value.to_owned()),
        None => Reading::absent(path),
    })
}

/// One CPU is read: the interrupt stops all of them, and each read interrupts its CPU.
fn smi_count(root: &Root, vendor: &Reading<String>, cpus: &Cpus) -> Reading<u64> {
    let first = cpus.online.value().and_then(|online| online.as_slice().first().copied());
    let is_intel = vendor.value().is_some_and(|vendor| vendor == "GenuineIntel");
    match first.filter(|_| is_intel) {
        Some(cpu) => root.register(cpu, SMI_COUNT),
        None => Reading::absent("/dev/cpu/0/msr"),
    }
}

fn timer_resolution(root: &Root) -> Reading<u64> {
    const CALL: &str = "clock_getres";
    let ask = || {
        let resolution = rustix::time::clock_getres(rustix::time::ClockId::Monotonic);
        let ns = i128::from(resolution.tv_sec) * 1_000_000_000 + i128::from(resolution.tv_nsec);
        Ok(ns.to_string())
    };
    let called = root.call(CALL, ask).unwrap_or_else(|| Reading::absent(CALL));
    called.parsed("a number of ns", |text| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    fn read(tree: &Tree) -> Platform {
        let root = tree.root();
        let cpuinfo = root.read_text("/proc/cpuinfo");
        let settings = Settings::new();
        Platform::read(&root, &cpuinfo, &Kernel::read(&root), &Cpus::read(&root), &settings)
    }

    #[test]
    fn fields_of_the_first_cpu() {
        let tree = Tree::new(&[
            (
                "proc/cpuinfo",
                "processor\t: 0\nvendor_id\t: GenuineIntel\nmicrocode\t: 0xf0\n\
                 flags\t\t: fpu tsc constant_tsc sse\n",
            ),
            ("proc/uptime", "4711.02 9000.0\n"),
        ]);
        let platform = read(&tree);
        assert_eq!(platform.vendor.value().unwrap(), "GenuineIntel");
        assert_eq!(platform.microcode.value().unwrap(), "0xf0");
        assert_eq!(platform.tsc_flags.value().unwrap(), &["tsc", "constant_tsc"]);
        assert_eq!(platform.uptime_s.value(), Some(&4711));
        // A folder answers no call.
        assert!(platform.smi_count.is_absent() && platform.log.is_absent());
        assert!(platform.timer_resolution_ns.is_absent());
    }

    #[test]
    fn another_architecture_has_none_of_them() {
        let tree = Tree::new(&[
            ("proc/cpuinfo", "processor\t: 0\nCPU implementer\t: 0x41\n"),
            ("proc/uptime", "soon"),
        ]);
        let platform = read(&tree);
        assert!(platform.vendor.is_absent() && platform.tsc_flags.is_absent());
        assert!(platform.uptime_s.why_unknown().is_some());
    }

    #[test]
    fn the_live_machine_has_a_timer_resolution() {
        let resolution = timer_resolution(&Root::live());
        assert!(resolution.value().is_some_and(|&ns| (1..=10_000_000).contains(&ns)));
    }
}
