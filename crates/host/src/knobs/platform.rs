//! Knobs: firmware, virtualization, security.

use crate::knob::{Arch, Effect, Knob, Scope, Undo};

table! {
    /// What the kernel does about each weakness of the CPU.
    VULNERABILITIES = Knob::file("mitigations", "/sys/devices/system/cpu/vulnerabilities/*")
        .of(Scope::Device).at(Effect::Boot).undone(Undo::BootEntry);

    /// Size of the cache of SELinux's decisions.
    SELINUX_AVC = Knob::file("selinux-avc", "/sys/fs/selinux/avc/cache_threshold");

    /// How the IOMMU treats each group of devices.
    IOMMU = Knob::file("iommu", "/sys/kernel/iommu_groups/*/type")
        .of(Scope::Device).or_boot("iommu.passthrough=1").at(Effect::Boot).undone(Undo::BootEntry);

    TEE = Knob::file("op-tee", "/sys/class/tee/*/dev").of(Scope::Device).at(Effect::Firmware);

    /// KVM: every 300 s an interrupt to set the clocks of all guests.
    KVM_CLOCK_SYNC = Knob::file(
        "kvm-host-clock-sync",
        "/sys/module/kvm/parameters/kvmclock_periodic_sync",
    ).on(Arch::X86).undone(Undo::RemoveFile);

    /// KVM on Intel: exits of a guest that spins.
    KVM_PLE = Knob::file("kvm-host-ple", "/sys/module/kvm_intel/parameters/ple_gap")
        .on(Arch::X86).undone(Undo::RemoveFile);

    /// KVM: huge pages of guests split where they are executed.
    KVM_NX_HUGE_PAGES = Knob::file(
        "kvm-host-nx-huge-pages",
        "/sys/module/kvm/parameters/nx_huge_pages",
    ).on(Arch::X86).risky("a guest can stop the host (CVE-2018-12207)");

    /// KVM: how long a host polls for a guest that has halted, in ns.
    KVM_HALT_POLL = Knob::file("kvm-host-halt-poll", "/sys/module/kvm/parameters/halt_poll_ns");

    /// In a guest: how long it polls before it halts, in ns.
    GUEST_HALT_POLL = Knob::file(
        "guest-halt-poll",
        "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
    );

    /// Maker of the firmware.
    BIOS_VENDOR = Knob::file("bios-vendor", "/sys/class/dmi/id/bios_vendor").at(Effect::Firmware);

    /// Version of the firmware.
    BIOS_VERSION = Knob::file("bios-version", "/sys/class/dmi/id/bios_version")
        .at(Effect::Firmware);

    /// Date of the firmware.
    BIOS_DATE = Knob::file("bios-date", "/sys/class/dmi/id/bios_date").at(Effect::Firmware);

    /// Kind of case (SMBIOS, type 3).
    CHASSIS = Knob::file("laptop-chassis", "/sys/class/dmi/id/chassis_type").at(Effect::Firmware);

    /// Kinds of power supplies: `Battery`, `Mains`, `UPS`.
    SUPPLY = Knob::file("laptop-supply", "/sys/class/power_supply/*/type")
        .of(Scope::Device).at(Effect::Firmware);

    /// What a power supply is for: `System`, or `Device` for a mouse's battery.
    SUPPLY_SCOPE = Knob::file("laptop-supply-scope", "/sys/class/power_supply/*/scope")
        .of(Scope::Device).at(Effect::Firmware);

    LID = Knob::file("laptop-lid", "/proc/acpi/button/lid/*/state")
        .of(Scope::Device).at(Effect::Firmware);

    /// Looking for new firmware: some queries raise system management interrupts.
    FWUPD = Knob::units("fwupd", &["fwupd-refresh.timer", "fwupd.service"]);
}
