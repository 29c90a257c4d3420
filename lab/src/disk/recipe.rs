//! What the Debian image is made of. All of it goes into the key: a change makes a new image.

use sha2::{Digest, Sha256};

use crate::fetch::hex;

/// Raise it to take newer packages: Debian's newest at the time of building are used, and an image
/// once made stays as it is, online or not.
pub(super) const EDITION: &str = "2026-11";

/// Debian's name for the release.
pub(super) const SUITE: &str = "bookworm";

/// Files of a cache entry.
pub(super) const DISK: &str = "disk.raw";
/// The PREEMPT_RT kernel, unpacked: QEMU starts it without a boot loader.
pub(super) const KERNEL: &str = "vmlinux";
pub(super) const INITRD: &str = "initrd";

/// Packages beside the essential ones.
///
/// tiny-initramfs: a 0.7 MB initramfs that only mounts the root; unpacking Debian's usual one takes
/// an emulated CPU 16 s of each boot.
pub(super) const PACKAGES: &[&str] = &[
    "dbus",
    "e2fsprogs",
    "grub-pc",
    "iproute2",
    "irqbalance",
    "kmod",
    "linux-image-amd64",
    "linux-image-rt-amd64",
    "procps",
    "strace",
    "systemd-container",
    "systemd-sysv",
    "tiny-initramfs",
    "tuned",
    "udev",
];

/// What dpkg leaves out: unused files, and modules without hardware cost time at each coldplug.
pub(super) const EXCLUDED: &[&str] = &[
    "/usr/share/bug/*",
    "/usr/share/doc/*",
    "/usr/share/i18n/*",
    "/usr/share/info/*",
    "/usr/share/lintian/*",
    "/usr/share/locale/*",
    "/usr/share/man/*",
    "/lib/modules/*/kernel/arch/*",
    "/lib/modules/*/kernel/drivers/*",
    "/lib/modules/*/kernel/fs/*",
    "/lib/modules/*/kernel/net/*",
    "/lib/modules/*/kernel/sound/*",
];

/// Modules that stay, below `/lib/modules/*/kernel/`.
pub(super) const MODULES: &[&str] = &[
    "arch/x86/kernel/*",
    "drivers/acpi/*",
    "drivers/block/virtio_blk.ko",
    "drivers/char/*",
    "drivers/cpufreq/*",
    "drivers/net/net_failover.ko",
    "drivers/net/veth.ko",
    "drivers/net/virtio_net.ko",
    "drivers/powercap/*",
    "drivers/thermal/*",
    "drivers/virtio/*",
    "drivers/watchdog/*",
    "fs/9p/*",
    "fs/autofs/*",
    "fs/configfs/*",
    "fs/ext4/*",
    "fs/fscache/*",
    "fs/fuse/*",
    "fs/jbd2/*",
    "fs/mbcache.ko",
    "fs/netfs/*",
    "fs/overlayfs/*",
    "net/9p/*",
    "net/core/*",
];

/// Read by tiny-initramfs when the kernels are installed.
pub(super) const INITRAMFS: &str =
    "AUTO_MODULES=no\nMICROCODE=no\nINCLUDE_MODULES=virtio_pci,virtio_blk,crc32c_generic,ext4\n";

/// Kernel parameters of every boot, GRUB's too (`GRUB_CMDLINE_LINUX`).
pub(super) const COMMAND_LINE: &str = "console=ttyS0 panic=-1 tsc=reliable mitigations=off nokaslr \
    no_timer_check cryptomgr.notests audit=0 systemd.show_status=0";

/// Files of the guest: path in it, text.
pub(super) const FILES: &[(&str, &str)] = &[
    ("etc/default/grub.d/00-lab.cfg", include_str!("../../guest/disk/00-lab.cfg")),
    ("etc/fstab", "/dev/vda1 / ext4 rw,relatime,errors=remount-ro 0 0\n"),
    ("etc/hostname", "lab\n"),
    // The same machine each time it is made.
    ("etc/machine-id", "1ab00000000040008000000000000001\n"),
    // The lab has its own limit; under icount a wait for the disk may be minutes of virtual time.
    (
        "etc/systemd/system.conf.d/lab.conf",
        "[Manager]\nDefaultTimeoutStartSec=infinity\nDefaultTimeoutStopSec=infinity\n\
         DefaultDeviceTimeoutSec=infinity\n",
    ),
    ("etc/systemd/system/lab.service", include_str!("../../guest/disk/lab.service")),
    ("usr/local/sbin/lab-run", include_str!("../../guest/disk/lab-run")),
];

/// Links in the guest: path, target.
pub(super) const LINKS: &[(&str, &str)] = &[
    ("etc/systemd/system/default.target", "/usr/lib/systemd/system/multi-user.target"),
    ("etc/systemd/system/multi-user.target.wants/lab.service", "../lab.service"),
];

/// Units that no case needs; each costs an emulated boot up to seconds.
pub(super) const MASKED: &str = include_str!("../../guest/disk/masked");

/// Scripts of update-grub that find nothing here.
pub(super) const WITHOUT_GRUB_SCRIPTS: &[&str] =
    &["05_debian_theme", "20_linux_xen", "30_os-prober", "30_uefi-firmware"];

/// What the first boot runs.
pub(super) const FIRST_BOOT: &str = include_str!("../../guest/disk/first-boot.sh");

/// UUID of the root, which GRUB's entries carry.
pub(super) const UUID: &str = "1ab00000-0000-4000-8000-000000000001";

/// Size of the disk. Sparse: 0.4 GiB are used.
pub(super) const SIZE_MIB: u64 = 2048;

/// Size of what is before the partition.
pub(super) const START_MIB: u64 = 1;

/// Key in the cache: suite, edition, and a digest of all of this page.
pub(super) fn key() -> String {
    let mut digest = Sha256::new();
    let mut add = |text: &str| {
        digest.update(text);
        digest.update([0]);
    };
    for list in [PACKAGES, EXCLUDED, MODULES, WITHOUT_GRUB_SCRIPTS] {
        list.iter().for_each(|text| add(text));
        add("");
    }
    for pairs in [FILES, LINKS] {
        pairs.iter().for_each(|(path, text)| {
            add(path);
            add(text);
        });
    }
    for text in [DISK, KERNEL, INITRD, INITRAMFS, COMMAND_LINE, MASKED, FIRST_BOOT, UUID] {
        add(text);
    }
    add(&format!("{SIZE_MIB} {START_MIB}"));
    let digest = hex(&digest.finalize());
    format!("{SUITE}-{EDITION}-{}", &digest[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_names_the_edition() {
        let key = key();
        assert_eq!(key.len(), "bookworm-2026-11-".len() + 16);
        assert!(key.starts_with("bookworm-2026-11-"), "{key}");
    }

    #[test]
    fn grub_has_the_same_command_line() {
        let grub = FILES[0].1;
        assert!(grub.contains(&format!("GRUB_CMDLINE_LINUX=\"{COMMAND_LINE}\"")), "{grub}");
    }

    #[test]
    fn masked_units_are_names() {
        for unit in MASKED.lines() {
            assert!(unit.contains('.') && !unit.contains(['/', ' ']), "{unit:?}");
        }
    }
}
