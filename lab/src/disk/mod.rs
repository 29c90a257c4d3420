//! A Debian 12 disk with systemd, both kernels and a real GRUB: for services, reboots and trial
//! boots, which an initramfs cannot show.
//!
//! The image is made once and never changed; each case works on a layer over it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{cache::Cache, emulator::Emulator};

mod build;
mod recipe;

/// Cache kind of the images.
pub const DISKS: &str = "disks";

/// The image in the cache.
#[derive(Clone, Debug)]
pub struct Image {
    /// The whole disk, raw and sparse. Cases never write to it.
    pub disk: PathBuf,
    /// The PREEMPT_RT kernel as an unpacked ELF file; GRUB's default is the same kernel.
    pub kernel: PathBuf,
    /// Its initramfs.
    pub initrd: PathBuf,
    /// `uname -r` of the PREEMPT_RT kernel.
    pub release: String,
    /// `uname -r` of the stock kernel beside it.
    pub stock_release: String,
}

/// What starts the kernel.
#[derive(Clone, Copy, Debug)]
pub enum Boot<'a> {
    /// QEMU, past GRUB: the PREEMPT_RT kernel of this image.
    Direct(&'a Image),
    /// The firmware, through the disk's GRUB.
    Grub,
}

/// Key of the image in the cache, for whoever prunes it.
#[must_use]
pub fn key() -> String {
    recipe::key()
}

/// The image: from the cache, or made there (2 to 4 minutes, as root).
///
/// # Errors
/// A package or a program is missing, the user is not root, or the first boot fails.
pub fn image(cache: &Cache, emulator: &Emulator) -> Result<Image> {
    let folder = cache.entry(DISKS, &key(), |place| build::make(place, cache, emulator))?;
    open(&folder)
}

/// The image in this folder.
fn open(folder: &Path) -> Result<Image> {
    let (release, stock_release) = build::releases(folder)?;
    Ok(Image {
        disk: folder.join(recipe::DISK),
        kernel: folder.join(recipe::KERNEL),
        initrd: folder.join(recipe::INITRD),
        release,
        stock_release,
    })
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

/// QEMU arguments for a disk (raw, or a layer that ends in `.qcow2`) and what starts from it.
#[must_use]
pub fn args(disk: &Path, boot: Boot<'_>) -> Vec<String> {
    let format = if disk.extension().is_some_and(|end| end == "qcow2") { "qcow2" } else { "raw" };
    // A comma in a value is written twice.
    let file = disk.display().to_string().replace(',', ",,");
    // unsafe: the host's disk does not wait when the guest's does. What the guest has flushed still
    // survives the end of QEMU, which is all that a power cut of the guest asks.
    let drive = format!("file={file},if=virtio,format={format},cache=unsafe");
    let mut arguments = vec!["-drive".into(), drive];
    if let Boot::Direct(image) = boot {
        arguments.extend([
            "-kernel".into(),
            image.kernel.display().to_string(),
            "-initrd".into(),
            image.initrd.display().to_string(),
            "-append".into(),
            format!("root=/dev/vda1 ro {} quiet", recipe::COMMAND_LINE),
        ]);
    }
    arguments
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
