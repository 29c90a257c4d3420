//! The programs that run inside guests: rtproof and lab-plant, static, for both architectures.

use std::path::PathBuf;

use anyhow::Result;

use crate::{cache::Cache, kernels::Arch};

/// Static programs for one architecture.
#[derive(Clone, Debug)]
pub struct Binaries {
    /// `rtproof`.
    pub rtproof: PathBuf,
    /// `lab-plant`.
    pub plant: PathBuf,
}

impl Binaries {
    /// Builds them with cargo (a no-op when nothing has changed).
    ///
    /// # Errors
    /// The build fails, or the cross tools cannot be fetched.
    pub fn build(arch: Arch, cache: &Cache) -> Result<Self> {
        let _ = (arch, cache);
        todo!()
    }
}
