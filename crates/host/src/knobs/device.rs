//! Knobs: network, consoles, tracing, services.

use crate::{
    compare::Compare,
    knob::{Cpus, Knob, Rule, Scope, Undo},
};

/// The table.
pub const KNOBS: &[&Knob] = &[
    &GRO_FLUSH,
    &DEFER_IRQS,
    &RPS,
    &RPS_DEFAULT,
    &RFS,
    &XPS,
    &NAPI_THREADED,
    &BUSY_POLL,
    &BUSY_READ,
    &NETDEV_BUDGET,
    &NETDEV_BUDGET_USECS,
    &TCP_TIMESTAMPS,
    &TCP_FASTOPEN,
    &IPV6,
    &PRINTK,
    &TRACER,
    &TRACE_EVENTS,
    &TRACE_PROBES,
    &TRACE_INSTANCES,
    &TRACE_INSTANCE_EVENTS,
    &COALESCE,
    &CHANNELS,
    &OFFLOADS,
    &EEE,
    &WIFI_POWERSAVE,
    &GRAPHICS_I915,
    &GRAPHICS_NVIDIA,
    &MODULES,
    &SERIAL_CONSOLE,
    &AUDIT,
    &AUDIT_UNITS,
    &TIMERS,
    &MONITORS,
    &DISPLAY_MANAGERS,
    &DESKTOP_SERVICES,
    &RPI_FIRMWARE,
];

/// Nanoseconds for which NAPI waits before it asks for interrupts again, or lets GRO go.
pub static GRO_FLUSH: Knob =
    Knob::file("nic-coalescing-flush", "/sys/class/net/*/gro_flush_timeout").of(Scope::Device);

/// Polls without a packet before NAPI asks for interrupts again.
pub static DEFER_IRQS: Knob =
    Knob::file("nic-coalescing-defer", "/sys/class/net/*/napi_defer_hard_irqs")
        .of(Scope::Device)
        .since(5, 8);

/// CPUs that received packets are handed to.
pub static RPS: Knob = Knob::file("rps", "/sys/class/net/*/queues/rx-*/rps_cpus")
    .of(Scope::Device)
    .compared(Compare::CpuMask)
    .cpus(Cpus::Placed);

/// The same for interfaces that appear later.
pub static RPS_DEFAULT: Knob =
    Knob::file("rps-default-mask", "/proc/sys/net/core/rps_default_mask")
        .since(6, 3)
        .compared(Compare::CpuMask);

/// Entries of the table that steers packets to the CPU of their reader.
pub static RFS: Knob = Knob::file("xps-rfs-flow", "/proc/sys/net/core/rps_sock_flow_entries");

/// CPUs that send through a queue.
pub static XPS: Knob = Knob::file("xps-rfs-transmit", "/sys/class/net/*/queues/tx-*/xps_cpus")
    .of(Scope::Device)
    .compared(Compare::CpuMask)
    .cpus(Cpus::Placed);

/// Whether a thread polls, instead of a soft interrupt.
pub static NAPI_THREADED: Knob =
    Knob::file("napi-threaded", "/sys/class/net/*/threaded").of(Scope::Device).since(5, 12);

/// Microseconds for which poll and select spin.
pub static BUSY_POLL: Knob = Knob::file("busy-poll", "/proc/sys/net/core/busy_poll");

/// Microseconds for which reads of a socket spin.
pub static BUSY_READ: Knob = Knob::file("busy-poll-read", "/proc/sys/net/core/busy_read");

/// Packets in one cycle of NAPI.
pub static NETDEV_BUDGET: Knob = Knob::file("netdev-budget", "/proc/sys/net/core/netdev_budget");

/// Microseconds of one cycle.
pub static NETDEV_BUDGET_USECS: Knob =
    Knob::file("netdev-budget-usecs", "/proc/sys/net/core/netdev_budget_usecs").since(4, 12);

/// Time stamps in TCP segments.
pub static TCP_TIMESTAMPS: Knob = Knob::file("tcp-timestamps", "/proc/sys/net/ipv4/tcp_timestamps");

/// TCP Fast Open.
pub static TCP_FASTOPEN: Knob = Knob::file("tcp-fastopen", "/proc/sys/net/ipv4/tcp_fastopen");

/// Whether IPv6 is off.
pub static IPV6: Knob =
    Knob::file("ipv6", "/proc/sys/net/ipv6/conf/all/disable_ipv6").or_boot("ipv6.disable={}");

/// Level of messages that go to the consoles, and three more numbers.
pub static PRINTK: Knob = Knob::file("printk-console", "/proc/sys/kernel/printk")
    .or_boot("loglevel={}")
    .rule(Rule::FirstWord);

/// Tracer of the machine.
pub static TRACER: Knob = Knob::file(
    "perf-tracing-active",
    "/sys/kernel/tracing/current_tracer | /sys/kernel/debug/tracing/current_tracer",
);

/// Events that are recorded.
pub static TRACE_EVENTS: Knob = Knob::file(
    "trace-events",
    "/sys/kernel/tracing/set_event | /sys/kernel/debug/tracing/set_event",
)
.rule(Rule::MayBeEmpty);

/// Probes that a user has put into the kernel.
pub static TRACE_PROBES: Knob = Knob::file(
    "trace-kprobes",
    "/sys/kernel/tracing/kprobe_events | /sys/kernel/debug/tracing/kprobe_events",
)
.rule(Rule::MayBeEmpty);

/// Tracers of the instances.
pub static TRACE_INSTANCES: Knob =
    Knob::file("trace-instances", "/sys/kernel/tracing/instances/*/current_tracer")
        .of(Scope::Device);

/// Events that the instances record.
pub static TRACE_INSTANCE_EVENTS: Knob =
    Knob::file("trace-instance-events", "/sys/kernel/tracing/instances/*/set_event")
        .of(Scope::Device)
        .rule(Rule::MayBeEmpty);

/// Interrupt moderation.
pub static COALESCE: Knob =
    Knob::other("nic-coalescing", "interrupt moderation of an interface (ethtool -C)")
        .of(Scope::Device);

/// Queues.
pub static CHANNELS: Knob =
    Knob::other("nic-queues", "queues of an interface (ethtool -L)").of(Scope::Device);

/// Receive offloads and pause frames.
pub static OFFLOADS: Knob = Knob::other(
    "nic-offload-flow",
    "receive offloads and pause frames of an interface (ethtool -K, -A)",
)
.of(Scope::Device);

/// Energy-Efficient Ethernet.
pub static EEE: Knob =
    Knob::other("nic-eee", "Energy-Efficient Ethernet of an interface (ethtool --set-eee)")
        .of(Scope::Device);

/// Power saving of wireless interfaces.
pub static WIFI_POWERSAVE: Knob =
    Knob::other("wifi-powersave", "power saving of a wireless interface (iw set power_save)")
        .of(Scope::Device);

/// Intel graphics.
pub static GRAPHICS_I915: Knob =
    Knob::other("gpu-i915", "graphics on the processor's own chip").of(Scope::Device);

/// NVIDIA's own driver.
pub static GRAPHICS_NVIDIA: Knob =
    Knob::other("gpu-nvidia", "NVIDIA's own graphics driver").of(Scope::Device);

/// Modules from outside the tree.
pub static MODULES: Knob =
    Knob::other("oot-modules", "modules that taint the kernel").of(Scope::Device);

/// Consoles on serial lines.
pub static SERIAL_CONSOLE: Knob = Knob::parameter("serial-console", "console");

/// Auditing of system calls, at boot.
pub static AUDIT: Knob = Knob::parameter("audit", "audit");

/// Who turns auditing on.
pub static AUDIT_UNITS: Knob = Knob::units("audit-daemon", &["auditd.service"]);

/// Timers of work in the background.
pub static TIMERS: Knob = Knob::units(
    "background-timers",
    &[
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
    ],
);

/// Daemons that measure the machine.
pub static MONITORS: Knob = Knob::units(
    "monitoring-daemons",
    &[
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
    ],
);

/// Graphical logins.
pub static DISPLAY_MANAGERS: Knob = Knob::units(
    "vt-graphics",
    &[
        "display-manager.service",
        "gdm.service",
        "gdm3.service",
        "greetd.service",
        "lightdm.service",
        "lxdm.service",
        "sddm.service",
        "xdm.service",
    ],
);

/// Services of a desktop that a real-time machine seldom needs.
pub static DESKTOP_SERVICES: Knob = Knob::units(
    "bluetooth-etc",
    &[
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
    ],
);

/// Clocks of a Raspberry Pi.
pub static RPI_FIRMWARE: Knob =
    Knob::other("rpi-firmware", "clocks in /boot/firmware/config.txt of a Raspberry Pi")
        .at(crate::knob::Effect::Boot)
        .undone(Undo::ByHand);
