//! What a kernel needs to boot under QEMU with a serial console and an initrd and nothing else.

/// Name of an option, with its value where that is not y, and why.
pub(super) type Row = (&'static str, &'static str);

const CONSOLE: &str = "the console of the guest, on its serial line";
const INITRD: &str = "the guest starts from an initrd";
const FILES: &str = "programs read /proc, /sys and /dev, and lock what they write";
const RUN: &str = "programs of the initrd run";
const HOST: &str = "the host's clock and idle loop, instead of emulated ones";
const DEVICES: &str = "the host ends the guest, and finds its devices";

/// All of them; an architecture ignores what it has not.
pub(super) const OPTIONS: &[(&str, &[&str])] = &[
    (
        RUN,
        &[
            "64BIT",
            "SMP",
            // A configuration without SMP has 1, from which kconfig makes 2.
            "NR_CPUS=64",
            "MULTIUSER",
            "BINFMT_ELF",
            "BINFMT_SCRIPT",
            "FUTEX",
            "POSIX_TIMERS",
            "EPOLL",
            "SIGNALFD",
            "TIMERFD",
            "EVENTFD",
            "ADVISE_SYSCALLS",
            "MEMBARRIER",
            "UNIX",
            "NET",
            "INET",
            "SYSCTL",
            "PROC_SYSCTL",
            "CGROUPS",
        ],
    ),
    (CONSOLE, &["PRINTK", "TTY", "SERIAL_8250", "SERIAL_8250_CONSOLE"]),
    (INITRD, &["BLK_DEV_INITRD", "RD_GZIP"]),
    (
        FILES,
        &[
            "FILE_LOCKING",
            "PROC_FS",
            "SYSFS",
            "SHMEM",
            "TMPFS",
            "DEVTMPFS",
            "DEVTMPFS_MOUNT",
            "IKCONFIG",
            "IKCONFIG_PROC",
        ],
    ),
    (HOST, &["HYPERVISOR_GUEST", "PARAVIRT", "KVM_GUEST"]),
    (DEVICES, &["PCI", "ACPI", "VIRTIO_MENU", "VIRTIO_PCI", "HW_RANDOM", "HW_RANDOM_VIRTIO"]),
];

pub(super) fn rows() -> impl Iterator<Item = Row> {
    OPTIONS.iter().flat_map(|(why, names)| names.iter().map(move |name| (*name, *why)))
}
