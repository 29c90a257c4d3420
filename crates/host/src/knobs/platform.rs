//! Knobs: firmware, virtualization, security.

use crate::knob::{Arch, Effect, Knob, Scope, Undo};

/// What the kernel does about each weakness of the CPU.
pub static VULNERABILITIES: Knob =
    Knob::file("mitigations", "/sys/devices/system/cpu/vulnerabilities/*")
        .of(Scope::Device)
        .at(Effect::Boot)
        .undone(Undo::BootEntry);
/// Size of the cache of SELinux's decisions.
pub static SELINUX_AVC: Knob = Knob::file("selinux-avc", "/sys/fs/selinux/avc/cache_threshold");
/// How the IOMMU treats each group of devices.
pub static IOMMU: Knob = Knob::file("iommu", "/sys/kernel/iommu_groups/*/type")
    .of(Scope::Device)
    .or_boot("iommu.passthrough=1")
    .at(Effect::Boot)
    .undone(Undo::BootEntry);
/// Trusted execution environments.
pub static TEE: Knob =
    Knob::file("op-tee", "/sys/class/tee/*/dev").of(Scope::Device).at(Effect::Firmware);
/// KVM: every 300 s an interrupt to set the clocks of all guests.
pub static KVM_CLOCK_SYNC: Knob =
    Knob::file("kvm-host-clock-sync", "/sys/module/kvm/parameters/kvmclock_periodic_sync")
        .on(Arch::X86)
        .undone(Undo::RemoveFile);
/// KVM on Intel: exits of a guest that spins.
pub static KVM_PLE: Knob = Knob::file("kvm-host-ple", "/sys/module/kvm_intel/parameters/ple_gap")
    .on(Arch::X86)
    .undone(Undo::RemoveFile);
/// KVM: huge pages of guests split where they are executed.
pub static KVM_NX_HUGE_PAGES: Knob =
    Knob::file("kvm-host-nx-huge-pages", "/sys/module/kvm/parameters/nx_huge_pages")
        .on(Arch::X86)
        .risky("a guest can stop the host (CVE-2018-12207)");
/// KVM: how long a host polls for a guest that has halted, in ns.
pub static KVM_HALT_POLL: Knob =
    Knob::file("kvm-host-halt-poll", "/sys/module/kvm/parameters/halt_poll_ns");
/// In a guest: how long it polls before it halts, in ns.
pub static GUEST_HALT_POLL: Knob =
    Knob::file("guest-halt-poll", "/sys/module/haltpoll/parameters/guest_halt_poll_ns");
/// Maker of the firmware.
pub static BIOS_VENDOR: Knob =
    Knob::file("bios-vendor", "/sys/class/dmi/id/bios_vendor").at(Effect::Firmware);
/// Version of the firmware.
pub static BIOS_VERSION: Knob =
    Knob::file("bios-version", "/sys/class/dmi/id/bios_version").at(Effect::Firmware);
/// Date of the firmware.
pub static BIOS_DATE: Knob =
    Knob::file("bios-date", "/sys/class/dmi/id/bios_date").at(Effect::Firmware);
/// Looking for new firmware: some queries raise system management interrupts.
pub static FWUPD: Knob = Knob::units("fwupd", &["fwupd-refresh.timer", "fwupd.service"]);

/// The table.
pub const KNOBS: &[&Knob] = &[
    &VULNERABILITIES,
    &SELINUX_AVC,
    &IOMMU,
    &TEE,
    &KVM_CLOCK_SYNC,
    &KVM_PLE,
    &KVM_NX_HUGE_PAGES,
    &KVM_HALT_POLL,
    &GUEST_HALT_POLL,
    &BIOS_VENDOR,
    &BIOS_VERSION,
    &BIOS_DATE,
    &FWUPD,
];
