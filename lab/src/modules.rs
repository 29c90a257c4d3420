//! The modules that guests of the lab need.

/// Modules that every guest loads at boot, as far as its kernel has them.
pub const AT_BOOT: &[&str] = &[
    "virtio_pci",
    "9pnet_virtio",
    "netfs",
    "9p",
    "virtio_console",
    "virtio_blk",
    "virtio_net",
    "qemu_fw_cfg",
    "msr",
    "processor",
    "acpi_cpufreq",
    "cpufreq_powersave",
    "cpufreq_ondemand",
    "cpufreq_conservative",
    "cpufreq_userspace",
];

/// Modules that `modprobe`, or the kernel itself, loads when they are asked for: each costs a
/// boot up to a second of the guest's time. (ext4 asks for crc32c by an alias before 7.)
pub const ON_DEMAND: &[&str] = &["veth", "dummy", "overlay", "crc32c_generic", "ext4", "loop"];

/// Without these there is no shared folder.
pub const VITAL: &[&str] = &["virtio_pci", "9pnet_virtio", "9p"];

/// Where the wanted modules and what they depend on are, as patterns of package members; the rest
/// of a package is a hundred times as large.
pub const MEMBERS: &[&str] = &[
    "*/modules.builtin",
    "*/kernel/arch/*",
    "*/kernel/block/*",
    "*/kernel/crypto/*",
    "*/kernel/drivers/acpi/*",
    "*/kernel/drivers/block/*",
    "*/kernel/drivers/char/*",
    "*/kernel/drivers/cpufreq/*",
    "*/kernel/drivers/firmware/*",
    "*/kernel/drivers/net/dummy.*",
    "*/kernel/drivers/net/net_failover.*",
    "*/kernel/drivers/net/veth.*",
    "*/kernel/drivers/net/virtio_net.*",
    "*/kernel/drivers/virtio/*",
    "*/kernel/fs/9p/*",
    "*/kernel/fs/ext4/*",
    "*/kernel/fs/fscache/*",
    "*/kernel/fs/jbd2/*",
    "*/kernel/fs/mbcache.*",
    "*/kernel/fs/netfs/*",
    "*/kernel/fs/overlayfs/*",
    "*/kernel/lib/*",
    "*/kernel/net/9p/*",
    "*/kernel/net/core/*",
];
