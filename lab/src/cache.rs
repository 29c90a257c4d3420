//! The cache outside the tree: packages, unpacked kernels, snapshots. Bounded, shared by concurrent
//! runs, usable offline.

use std::path::{Path, PathBuf};

use anyhow::Result;

/// The cache folder: `$RTPROOF_LAB_CACHE`, else `$XDG_CACHE_HOME/rtproof-lab`, else
/// `~/.cache/rtproof-lab`.
#[derive(Clone, Debug)]
pub struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// Opens the cache, making its folder.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn open() -> Result<Self> {
        todo!()
    }

    /// The folder itself.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The entry `KIND/KEY` (a file or a folder); if it is not there, `make` is called with the path
    /// of a temporary place beside it that is then renamed. Two processes never make one entry at
    /// once (file lock). The entry is marked as used now.
    ///
    /// # Errors
    /// What `make` says; the temporary place is removed.
    pub fn entry(
        &self,
        kind: &str,
        key: &str,
        make: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<PathBuf> {
        let _ = (kind, key, make);
        todo!()
    }
}
