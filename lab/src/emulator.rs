//! QEMU: the machine's own for one CPU under icount, 10.0 or later for several.

use std::path::PathBuf;

use anyhow::Result;

use crate::{cache::Cache, kernels::Arch};

/// A QEMU that can be started.
#[derive(Clone, Debug)]
pub struct Emulator {
    /// The program.
    pub program: PathBuf,
    /// Arguments that come first (`-L` folders of an unpacked one).
    pub arguments: Vec<String>,
    /// Version, e.g. (10, 0, 2).
    pub version: (u32, u32, u32),
}

impl Emulator {
    /// The installed QEMU.
    ///
    /// # Errors
    /// None is installed; says which package has it.
    pub fn installed(arch: Arch) -> Result<Self> {
        let _ = arch;
        todo!()
    }

    /// A QEMU of version 10 or later: the installed one if it is, else unpacked into the cache.
    /// (7.2 hangs while it brings up a second CPU under icount.)
    ///
    /// # Errors
    /// It cannot be fetched.
    pub fn recent(arch: Arch, cache: &Cache) -> Result<Self> {
        let _ = (arch, cache);
        todo!()
    }
}
