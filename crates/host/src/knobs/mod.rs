//! The knobs: one table per subsystem, the same subsystems as the checks.
//!
//! To add one: an entry in the table of its subsystem. Its value is then read with every machine
//! (`facts.settings`) for a check to judge, unless a typed fact holds it (`Knob::fact`).

/// The statics of a table, and the list of them.
macro_rules! table {
    ($list:ident: $($(#[$doc:meta])* $name:ident = $knob:expr;)*) => {
        $($(#[$doc])* pub static $name: Knob = $knob;)*

        pub const $list: &[&Knob] = &[$(&$name),*];
    };
}

pub mod cpu;
pub mod device;
pub mod power;

use crate::knob::{CpuPlacement, EffectTime, Knob, Place, ValueRule};

pub const TABLES: &[&[&Knob]] = &[
    KERNEL,
    power::POWER,
    cpu::SCHED,
    cpu::ISOLATION,
    cpu::TIME,
    cpu::MEMORY,
    device::DEVICE,
    device::PLATFORM,
];

pub fn all() -> impl Iterator<Item = &'static Knob> {
    TABLES.iter().flat_map(|table| table.iter().copied())
}

table! {
    KERNEL:

    /// Interval of KFENCE's guarded allocations, in ms.
    KFENCE = Knob::file("config-kfence", "/sys/module/kfence/parameters/sample_interval")
        .or_boot("kfence.sample_interval={}");

    /// Width of EFI's firmware: there on every machine that booted by EFI.
    EFI_PLATFORM = Knob::file("efi-platform", "/sys/firmware/efi/fw_platform_size")
        .at(EffectTime::Firmware);

    /// CPUs that may call EFI's firmware.
    EFI_CPUS = Knob::file("efi-runtime-cpus", "/sys/devices/virtual/workqueue/efi_runtime/cpumask")
        .workers();
}

// What is known by its name alone: boot parameters, keys of configuration files, properties of
// units and units. A name that is not listed has nothing special.

/// Risk of ignoring corrected memory errors.
const MCE_RISK: &str = "corrected memory errors, the sign of a failing module, are no longer seen";

const LEAKS: &str = "programs of others on this machine can read what they must not";

/// Boot parameters, keys and properties.
const NAMES: &[Knob] = &[
    // Lists of CPUs that are set apart.
    parameter("isolcpus").cpus(CpuPlacement::Apart),
    parameter("nohz_full").cpus(CpuPlacement::Apart),
    parameter("rcu_nocbs").cpus(CpuPlacement::Apart),
    // Lists of CPUs that are left. Drivers request their interrupts, and the kernel starts its
    // workers, before any service runs.
    parameter("irqaffinity").cpus(CpuPlacement::Left).rule(ValueRule::Early),
    parameter("workqueue.unbound_cpus").cpus(CpuPlacement::Left).rule(ValueRule::Early),
    parameter("kthread_cpus").cpus(CpuPlacement::Left),
    parameter("systemd.cpu_affinity").cpus(CpuPlacement::Left),
    // Each value is a word of its own.
    parameter("acpi").rule(ValueRule::AddsUp),
    parameter("efi").rule(ValueRule::AddsUp).risky(
        "firmware variables can no longer be written: a trial boot by them, and updates of \
         the firmware, do not work",
    ),
    parameter("intel_iommu").rule(ValueRule::AddsUp),
    parameter("iommu").rule(ValueRule::AddsUp),
    parameter("mce").rule(ValueRule::AddsUp).risky(MCE_RISK),
    parameter("pci").rule(ValueRule::AddsUp),
    parameter("slub_debug").rule(ValueRule::AddsUp),
    parameter("mitigations").risky(LEAKS),
    parameter("nopti").risky(LEAKS),
    parameter("nospectre_v2").risky(LEAKS),
    parameter("spectre_v2").risky(LEAKS),
    parameter("idle")
        .risky("no CPU ever rests: heat, noise, less turbo, and a guest burns its host's CPUs"),
    parameter("nomodeset").risky("the screen may stay dark"),
    parameter("intel_idle.max_cstate").serves(power::SHALLOW, 4),
    parameter("processor.max_cstate").serves(power::SHALLOW, 4),
    // Keys of files and properties of units.
    Knob::key("CPUAffinity").cpus(CpuPlacement::Placed),
    Knob::key("AllowedCPUs").cpus(CpuPlacement::Placed),
    Knob::key("rtprio").rule(ValueRule::Limit),
    Knob::key("memlock").rule(ValueRule::Limit),
    Knob::key("rttime").rule(ValueRule::Limit),
    Knob::key("LimitRTPRIO").rule(ValueRule::Limit),
    Knob::key("LimitMEMLOCK").rule(ValueRule::Limit),
    Knob::key("LimitRTTIME").rule(ValueRule::Limit),
];

const fn parameter(name: &'static str) -> Knob {
    Knob::parameter(name, name)
}

/// Properties of a boot parameter, by its name.
pub fn parameter_of(name: &str) -> Option<&'static Knob> {
    NAMES.iter().find(|knob| knob.place == Place::Parameter(knob.id) && knob.id == name)
}

/// Properties of a configuration key or of a unit's property, by its name.
pub fn key_of(name: &str) -> Option<&'static Knob> {
    NAMES.iter().find(|knob| knob.place == Place::Key(knob.id) && knob.id == name)
}

/// Units that the machine needs, by the start of their names, and the risk of stopping them.
const NEEDED: &[(&[&str], &str)] = &[
    (&["swap.target"], "when memory runs short, programs end instead of being swapped out"),
    (
        &[
            "blk-availability",
            "ceph",
            "dm-event",
            "iscsi",
            "lvm2",
            "mdadm",
            "mdmonitor",
            "multipathd",
            "nfs",
            "nvme",
            "open-iscsi",
            "zfs",
        ],
        "storage needs it: disks behind it may be lost, the root file system with them",
    ),
    (
        &[
            "NetworkManager",
            "ModemManager",
            "dhcpcd",
            "ifup",
            "networking",
            "openvpn",
            "ssh",
            "systemd-networkd",
            "wg-quick",
            "wpa_supplicant",
        ],
        "the machine may no longer be reached over the network",
    ),
    (&["thermald"], "it keeps the processor cool; without, the firmware stops it late and hard"),
];

/// Risk of stopping a unit.
pub fn risk_of_stopping(unit: &str) -> Option<&'static str> {
    let is_needed = |names: &[&str]| names.iter().any(|name| unit.starts_with(name));
    NEEDED.iter().find(|(names, _)| is_needed(names)).map(|(_, risk)| *risk)
}

/// Our settings of the kernel at boot: the last file of the folder, so that they win.
pub const SYSCTL_FILE: &str = "/etc/sysctl.d/99-zz-rtproof.conf";

/// Our limits of logins: the last file that says something of a group wins.
pub const LIMITS_FILE: &str = "/etc/security/limits.d/99-rtproof.conf";

/// Whether a file is one that rtproof makes whole: no other program's file has this name.
pub fn is_ours(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.contains("rtproof"))
}

/// The file of a setting of the kernel, e.g. `vm.swappiness`.
pub fn sysctl_path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::all;
    use crate::knob::{Place, Scope};

    #[test]
    fn ids_are_unique_and_places_are_paths() {
        let mut seen = BTreeSet::new();
        let mut paths = BTreeSet::new();
        for knob in all() {
            assert!(seen.insert(knob.id), "{} twice", knob.id);
            assert!(
                knob.id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            );
            for pattern in knob.patterns() {
                assert!(pattern.starts_with("/proc/") || pattern.starts_with("/sys/"), "{pattern}");
                assert!(paths.insert(pattern), "{}: {pattern} is another knob, too", knob.id);
                let is_one = !pattern.contains('*') && !pattern.contains("{cpu}");
                assert_eq!(is_one, knob.scope == Scope::Machine, "{}: {pattern}", knob.id);
            }
            if let Place::Units(units) = knob.place {
                assert!(units.iter().all(|unit| unit.contains('.')), "{}", knob.id);
            }
        }
    }
}
