//! Knobs: network, consoles, tracing, services; firmware, virtualization, security.

use crate::knob::{Compare, CpuPlacement, EffectTime, Knob, KnobArch, Scope, Undo, ValueRule};

table! {
    DEVICE:

    /// Nanoseconds for which NAPI waits before it asks for interrupts again, or lets GRO go.
    GRO_FLUSH = Knob::file("nic-coalescing-flush", "/sys/class/net/*/gro_flush_timeout")
        .of(Scope::Device);

    /// Polls without a packet before NAPI asks for interrupts again.
    DEFER_IRQS = Knob::file("nic-coalescing-defer", "/sys/class/net/*/napi_defer_hard_irqs")
        .of(Scope::Device).since(5, 8);

    /// CPUs that received packets are handed to.
    RPS = Knob::file("rps", "/sys/class/net/*/queues/rx-*/rps_cpus")
        .of(Scope::Device).compared(Compare::CpuMask).cpus(CpuPlacement::Placed);

    /// The same for interfaces that appear later.
    RPS_DEFAULT = Knob::file("rps-default-mask", "/proc/sys/net/core/rps_default_mask")
        .since(6, 3).compared(Compare::CpuMask);

    /// Entries of the table that steers packets to the CPU of their reader.
    RFS = Knob::file("xps-rfs-flow", "/proc/sys/net/core/rps_sock_flow_entries");

    /// CPUs that send through a queue.
    XPS = Knob::file("xps-rfs-transmit", "/sys/class/net/*/queues/tx-*/xps_cpus")
        .of(Scope::Device).compared(Compare::CpuMask).cpus(CpuPlacement::Placed);

    /// Whether a thread polls, instead of a soft interrupt.
    NAPI_THREADED = Knob::file("napi-threaded", "/sys/class/net/*/threaded")
        .of(Scope::Device).since(5, 12);

    /// Microseconds for which poll and select spin.
    BUSY_POLL = Knob::file("busy-poll", "/proc/sys/net/core/busy_poll");

    /// Microseconds for which reads of a socket spin.
    BUSY_READ = Knob::file("busy-poll-read", "/proc/sys/net/core/busy_read");

    /// Packets in one cycle of NAPI.
    NETDEV_BUDGET = Knob::file("netdev-budget", "/proc/sys/net/core/netdev_budget");

    /// Microseconds of one cycle.
    NETDEV_BUDGET_USECS = Knob::file(
        "netdev-budget-usecs",
        "/proc/sys/net/core/netdev_budget_usecs",
    ).since(4, 12);

    /// Time stamps in TCP segments.
    TCP_TIMESTAMPS = Knob::file("tcp-timestamps", "/proc/sys/net/ipv4/tcp_timestamps");

    TCP_FASTOPEN = Knob::file("tcp-fastopen", "/proc/sys/net/ipv4/tcp_fastopen");

    /// Whether IPv6 is off.
    IPV6 = Knob::file("ipv6", "/proc/sys/net/ipv6/conf/all/disable_ipv6")
        .or_boot("ipv6.disable={}");

    /// Level of messages that go to the consoles, and three more numbers.
    PRINTK = Knob::file("printk-console", "/proc/sys/kernel/printk")
        .or_boot("loglevel={}").rule(ValueRule::FirstWord);

    /// Tracer of the machine.
    TRACER = Knob::file(
        "perf-tracing-active",
        "/sys/kernel/tracing/current_tracer | /sys/kernel/debug/tracing/current_tracer",
    );

    /// Events that are recorded.
    TRACE_EVENTS = Knob::file(
        "trace-events",
        "/sys/kernel/tracing/set_event | /sys/kernel/debug/tracing/set_event",
    ).rule(ValueRule::MayBeEmpty);

    /// Probes that a user has put into the kernel.
    TRACE_PROBES = Knob::file(
        "trace-kprobes",
        "/sys/kernel/tracing/kprobe_events | /sys/kernel/debug/tracing/kprobe_events",
    ).rule(ValueRule::MayBeEmpty);

    /// Tracers of the instances.
    TRACE_INSTANCES = Knob::file(
        "trace-instances",
        "/sys/kernel/tracing/instances/*/current_tracer",
    ).of(Scope::Device);

    /// Events that the instances record.
    TRACE_INSTANCE_EVENTS = Knob::file(
        "trace-instance-events",
        "/sys/kernel/tracing/instances/*/set_event",
    ).of(Scope::Device).rule(ValueRule::MayBeEmpty);

    COALESCE = Knob::other("nic-coalescing", "interrupt moderation of an interface (ethtool -C)")
        .of(Scope::Device);

    CHANNELS = Knob::other("nic-queues", "queues of an interface (ethtool -L)").of(Scope::Device);

    /// Receive offloads and pause frames.
    OFFLOADS = Knob::other(
        "nic-offload-flow",
        "receive offloads and pause frames of an interface (ethtool -K, -A)",
    ).of(Scope::Device);

    EEE = Knob::other("nic-eee", "Energy-Efficient Ethernet of an interface (ethtool --set-eee)")
        .of(Scope::Device);

    /// Power saving of wireless interfaces.
    WIFI_POWERSAVE = Knob::other(
        "wifi-powersave",
        "power saving of a wireless interface (iw set power_save)",
    ).of(Scope::Device);

    GRAPHICS_I915 = Knob::other("gpu-i915", "graphics on the processor's own chip")
        .of(Scope::Device);

    GRAPHICS_NVIDIA = Knob::other("gpu-nvidia", "NVIDIA's own graphics driver").of(Scope::Device);

    /// Modules from outside the tree.
    MODULES = Knob::other("oot-modules", "modules that taint the kernel").of(Scope::Device);

    /// Consoles on serial lines.
    SERIAL_CONSOLE = Knob::parameter("serial-console", "console");

    /// Auditing of system calls, at boot.
    AUDIT = Knob::parameter("audit", "audit");

    /// Who turns auditing on.
    AUDIT_UNITS = Knob::units("audit-daemon", &["auditd.service"]);

    /// Timers of work in the background.
    TIMERS = Knob::units("background-timers", &[
        "apt-daily.timer",
        "apt-daily-upgrade.timer",
        "btrfs-scrub.timer",
        "dnf-automatic.timer",
        "dnf-makecache.timer",
        "dpkg-db-backup.timer",
        "e2scrub_all.timer",
        "fstrim.timer",
        "fwupd-refresh.timer",
        "logrotate.timer",
        "man-db.timer",
        "mdcheck_start.timer",
        "mlocate-updatedb.timer",
        "motd-news.timer",
        "plocate-updatedb.timer",
        "raid-check.timer",
        "sysstat-collect.timer",
        "sysstat-summary.timer",
        "unbound-anchor.timer",
        "updatedb.timer",
        "xfs_scrub_all.timer",
    ]);

    /// Daemons that measure the machine.
    MONITORS = Knob::units("monitoring-daemons", &[
        "collectd.service",
        "glances.service",
        "netdata.service",
        "node_exporter.service",
        "pcp.service",
        "pmcd.service",
        "pmlogger.service",
        "prometheus-node-exporter.service",
        "sysstat.service",
        "telegraf.service",
        "turbostat.service",
        "zabbix-agent.service",
        "zabbix-agent2.service",
    ]);

    DISPLAY_MANAGERS = Knob::units("vt-graphics", &[
        "display-manager.service",
        "gdm.service",
        "gdm3.service",
        "greetd.service",
        "lightdm.service",
        "lxdm.service",
        "sddm.service",
        "xdm.service",
    ]);

    /// Services of a desktop that a real-time machine seldom needs.
    DESKTOP_SERVICES = Knob::units("bluetooth-etc", &[
        "ModemManager.service",
        "avahi-daemon.service",
        "bluetooth.service",
        "colord.service",
        "cups.service",
        "cups-browsed.service",
        "geoclue.service",
        "packagekit.service",
        "pcscd.service",
        "pcscd.socket",
        "snapd.service",
    ]);

    /// Clocks of a Raspberry Pi.
    RPI_FIRMWARE = Knob::other(
        "rpi-firmware",
        "clocks in /boot/firmware/config.txt of a Raspberry Pi",
    ).at(EffectTime::Boot).undone(Undo::ByHand);
}

table! {
    PLATFORM:

    /// What the kernel does about each weakness of the CPU.
    VULNERABILITIES = Knob::file("mitigations", "/sys/devices/system/cpu/vulnerabilities/*")
        .of(Scope::Device).at(EffectTime::Boot).undone(Undo::BootEntry);

    /// Size of the cache of SELinux's decisions.
    SELINUX_AVC = Knob::file("selinux-avc", "/sys/fs/selinux/avc/cache_threshold");

    /// How the IOMMU treats each group of devices.
    IOMMU = Knob::file("iommu", "/sys/kernel/iommu_groups/*/type")
        .of(Scope::Device).or_boot("iommu.passthrough=1").at(EffectTime::Boot)
        .undone(Undo::BootEntry);

    TEE = Knob::file("op-tee", "/sys/class/tee/*/dev").of(Scope::Device).at(EffectTime::Firmware);

    /// KVM: every 300 s an interrupt to set the clocks of all guests.
    KVM_CLOCK_SYNC = Knob::file(
        "kvm-host-clock-sync",
        "/sys/module/kvm/parameters/kvmclock_periodic_sync",
    ).on(KnobArch::X86).undone(Undo::RemoveFile);

    /// KVM on Intel: exits of a guest that spins.
    KVM_PLE = Knob::file("kvm-host-ple", "/sys/module/kvm_intel/parameters/ple_gap")
        .on(KnobArch::X86).undone(Undo::RemoveFile);

    /// KVM: huge pages of guests split where they are executed.
    KVM_NX_HUGE_PAGES = Knob::file(
        "kvm-host-nx-huge-pages",
        "/sys/module/kvm/parameters/nx_huge_pages",
    ).on(KnobArch::X86).risky("a guest can stop the host (CVE-2018-12207)");

    /// KVM: how long a host polls for a guest that has halted, in ns.
    KVM_HALT_POLL = Knob::file("kvm-host-halt-poll", "/sys/module/kvm/parameters/halt_poll_ns");

    /// In a guest: how long it polls before it halts, in ns.
    GUEST_HALT_POLL = Knob::file(
        "guest-halt-poll",
        "/sys/module/haltpoll/parameters/guest_halt_poll_ns",
    );

    /// Maker of the firmware.
    BIOS_VENDOR = Knob::file("bios-vendor", "/sys/class/dmi/id/bios_vendor")
        .at(EffectTime::Firmware);

    /// Version of the firmware.
    BIOS_VERSION = Knob::file("bios-version", "/sys/class/dmi/id/bios_version")
        .at(EffectTime::Firmware);

    /// Date of the firmware.
    BIOS_DATE = Knob::file("bios-date", "/sys/class/dmi/id/bios_date").at(EffectTime::Firmware);

    /// Kind of case (SMBIOS, type 3).
    CHASSIS = Knob::file("laptop-chassis", "/sys/class/dmi/id/chassis_type")
        .at(EffectTime::Firmware);

    /// Kinds of power supplies: `Battery`, `Mains`, `UPS`.
    SUPPLY = Knob::file("laptop-supply", "/sys/class/power_supply/*/type")
        .of(Scope::Device).at(EffectTime::Firmware);

    /// What a power supply is for: `System`, or `Device` for a mouse's battery.
    SUPPLY_SCOPE = Knob::file("laptop-supply-scope", "/sys/class/power_supply/*/scope")
        .of(Scope::Device).at(EffectTime::Firmware);

    LID = Knob::file("laptop-lid", "/proc/acpi/button/lid/*/state")
        .of(Scope::Device).at(EffectTime::Firmware);

    /// Looking for new firmware: some queries raise system management interrupts.
    FWUPD = Knob::units("fwupd", &["fwupd-refresh.timer", "fwupd.service"]);
}
