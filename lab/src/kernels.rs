//! The table of kernels, pinned with digests and fallbacks.

use std::path::PathBuf;

use anyhow::Result;

use crate::cache::Cache;

/// Processor architecture of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arch {
    /// x86-64.
    X86_64,
    /// aarch64.
    Aarch64,
}

/// One kernel of the table.
#[derive(Debug)]
pub struct Kernel {
    /// Name in the lab: `rt-6.1`, `stock-6.1`, `rt-6.1-arm64`.
    pub id: &'static str,
    /// Architecture.
    pub arch: Arch,
    /// Whether it is PREEMPT_RT.
    pub is_rt: bool,
}

/// A kernel that can be booted.
#[derive(Clone, Debug)]
pub struct Ready {
    /// ELF vmlinux with a PVH note (x86-64), or Image (aarch64).
    pub image: PathBuf,
    /// Uncompressed initramfs with busybox, init and the modules that a guest needs.
    pub initramfs: PathBuf,
    /// `uname -r`.
    pub release: String,
    /// Digest over image and initramfs, for keys of caches.
    pub digest: String,
}

/// All kernels.
pub const KERNELS: &[Kernel] = &[];

/// The kernel of this name.
///
/// # Errors
/// There is none; the names are listed.
pub fn named(id: &str) -> Result<&'static Kernel> {
    let _ = id;
    todo!()
}

impl Kernel {
    /// Fetches and unpacks what is missing.
    ///
    /// # Errors
    /// No version of the pinned ones can be had, or an archive is broken.
    pub fn ready(&self, cache: &Cache) -> Result<Ready> {
        let _ = cache;
        todo!()
    }
}
