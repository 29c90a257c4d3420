//! What is known by its name alone: boot parameters, keys of configuration files, properties of
//! units and units. A name that is not listed has nothing special.

use crate::knob::{Cpus, Knob, Place, Rule};

/// Risk of ignoring corrected memory errors.
pub(super) const MCE_RISK: &str =
    "corrected memory errors, the sign of a failing module, are no longer seen";

const LEAKS: &str = "programs of others on this machine can read what they must not";

/// Boot parameters, keys and properties.
const NAMES: &[Knob] = &[
    // Lists of CPUs that are set apart.
    parameter("isolcpus").cpus(Cpus::Apart),
    parameter("nohz_full").cpus(Cpus::Apart),
    parameter("rcu_nocbs").cpus(Cpus::Apart),
    // Lists of CPUs that are left. Drivers request their interrupts, and the kernel starts its
    // workers, before any service runs.
    parameter("irqaffinity").cpus(Cpus::Left).rule(Rule::Early),
    parameter("workqueue.unbound_cpus").cpus(Cpus::Left).rule(Rule::Early),
    parameter("kthread_cpus").cpus(Cpus::Left),
    parameter("systemd.cpu_affinity").cpus(Cpus::Left),
    // Each value is a word of its own.
    parameter("acpi").rule(Rule::AddsUp),
    parameter("efi").rule(Rule::AddsUp).risky(
        "firmware variables can no longer be written: a trial boot by them, and updates of \
         the firmware, do not work",
    ),
    parameter("intel_iommu").rule(Rule::AddsUp),
    parameter("iommu").rule(Rule::AddsUp),
    parameter("mce").rule(Rule::AddsUp).risky(MCE_RISK),
    parameter("pci").rule(Rule::AddsUp),
    parameter("slub_debug").rule(Rule::AddsUp),
    parameter("mitigations").risky(LEAKS),
    parameter("nopti").risky(LEAKS),
    parameter("nospectre_v2").risky(LEAKS),
    parameter("spectre_v2").risky(LEAKS),
    parameter("idle")
        .risky("no CPU ever rests: heat, noise, less turbo, and a guest burns its host's CPUs"),
    parameter("nomodeset").risky("the screen may stay dark"),
    parameter("intel_idle.max_cstate").serves(super::power::SHALLOW, 4),
    parameter("processor.max_cstate").serves(super::power::SHALLOW, 4),
    // Keys of files and properties of units.
    Knob::key("CPUAffinity").cpus(Cpus::Placed),
    Knob::key("AllowedCPUs").cpus(Cpus::Placed),
    Knob::key("rtprio").rule(Rule::Limit),
    Knob::key("memlock").rule(Rule::Limit),
    Knob::key("rttime").rule(Rule::Limit),
    Knob::key("LimitRTPRIO").rule(Rule::Limit),
    Knob::key("LimitMEMLOCK").rule(Rule::Limit),
    Knob::key("LimitRTTIME").rule(Rule::Limit),
];

const fn parameter(name: &'static str) -> Knob {
    Knob::parameter(name, name)
}

/// What is known of a boot parameter, by its name.
pub fn parameter_of(name: &str) -> Option<&'static Knob> {
    NAMES.iter().find(|knob| knob.place == Place::Parameter(knob.id) && knob.id == name)
}

/// What is known of a key of a configuration file or a property of a unit, by its name.
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

/// What can go wrong when a unit is stopped.
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
