//! An image, and how QEMU starts from it.

use std::path::{Path, PathBuf};

use super::recipe;

/// The image in the cache.
#[derive(Clone, Debug)]
pub struct Image {
    /// The whole disk, raw and sparse. Cases never write to it.
    pub disk: PathBuf,
    /// The PREEMPT_RT kernel as an unpacked ELF file; GRUB's default is the same kernel.
    pub kernel: PathBuf,
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

/// QEMU arguments for a disk (raw, or a layer that ends in `.qcow2`) and what starts from it.
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
