//! A Debian 12 disk with systemd, both kernels and a real GRUB: for services, reboots and trial
//! boots, which an initramfs cannot show.
//!
//! The image is made once and never changed; each case works on a layer over it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use rtproof_guest::Emulator;

use crate::cache::Cache;

mod build;
mod image;
mod recipe;

pub use image::{Boot, Image, args};

/// Cache kind of the images.
pub const DISKS: &str = "disks";

/// Key of the image in the cache, for whoever prunes it.
pub fn key() -> String {
    recipe::key()
}

/// The image: from the cache, or made there (2 to 4 minutes, as root).
///
/// # Errors
/// A package or a program is missing, the user is not root, or the first boot fails.
pub fn image(cache: &Cache, emulator: &Emulator) -> Result<Image> {
    let folder = cache.entry(DISKS, &key(), |place| build::make(place, cache, emulator))?;
    build::open(&folder)
}

/// A disk in `dir` that starts as the image and keeps what a case writes.
///
/// # Errors
/// qemu-img is missing or fails.
pub fn overlay(image: &Image, dir: &Path) -> Result<PathBuf> {
    let disk = dir.join("disk.qcow2");
    let text = |path: &Path| path.display().to_string();
    build::run(
        "qemu-img",
        "qemu-utils",
        &["create", "-q", "-f", "qcow2", "-F", "raw", "-b", &text(&image.disk), &text(&disk)],
    )
    .with_context(|| format!("{}: cannot make a layer over the image", disk.display()))?;
    Ok(disk)
}

/// Size of a case's own disk.
const STORE_BYTES: u64 = 64 << 20;

/// An empty ext4 disk in `dir`.
///
/// # Errors
/// mke2fs is missing or fails.
pub fn store(dir: &Path) -> Result<PathBuf> {
    let disk = dir.join("store.raw");
    let made = std::fs::File::create(&disk).and_then(|file| file.set_len(STORE_BYTES));
    made.with_context(|| format!("{}: cannot make", disk.display()))?;
    let text = disk.display().to_string();
    build::run("mke2fs", "e2fsprogs", &["-q", "-F", "-t", "ext4", &text])?;
    Ok(disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Image {
        Image {
            disk: "/c/disk.raw".into(),
            kernel: "/c/vmlinux".into(),
            initrd: "/c/initrd".into(),
            release: "6.1.0-1-rt-amd64".into(),
            stock_release: "6.1.0-1-amd64".into(),
        }
    }

    #[test]
    fn grub_gets_only_the_disk() {
        let got = args(Path::new("/a,b/disk.qcow2"), Boot::Grub);
        let drive = "file=/a,,b/disk.qcow2,if=virtio,format=qcow2,cache=unsafe";
        assert_eq!(got, ["-drive", drive]);
    }

    #[test]
    fn a_direct_boot_names_kernel_and_root() {
        let image = image();
        let got = args(&image.disk, Boot::Direct(&image));
        assert!(got[1].contains("format=raw"), "{got:?}");
        assert_eq!(got[2..6], ["-kernel", "/c/vmlinux", "-initrd", "/c/initrd"]);
        assert!(got[7].starts_with("root=/dev/vda1 ro console=ttyS0 "), "{got:?}");
    }
}
