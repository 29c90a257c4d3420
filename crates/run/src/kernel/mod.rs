//! Kernels: which the distribution offers, how one is configured and built.

pub mod boot;
pub mod build;
pub mod compare;
pub mod config;
pub mod error;
pub mod find;
pub mod fragment;
mod guest;
pub mod kconfig;
pub mod make;
pub mod offer;
pub mod patches;
pub mod rebase;
pub mod source;
pub mod tool;

use std::{
    fs,
    path::{Path, PathBuf},
};

pub use error::KernelError;

/// The folder of a configuration or build, made where it is not there, as an absolute path: make
/// works in another directory.
#[expect(clippy::disallowed_methods, reason = "the user's own folder")]
pub fn place(folder: &Path) -> Result<PathBuf, KernelError> {
    fs::create_dir_all(folder).map_err(KernelError::io(folder))?;
    let path = folder.canonicalize().map_err(KernelError::io(folder))?;
    // make splits its arguments there, and kbuild refuses such folders late.
    if path.to_string_lossy().contains([' ', ':', '#']) {
        return Err(KernelError::path(path, "kbuild takes no folder with a blank, ':' or '#'"));
    }
    Ok(path)
}
