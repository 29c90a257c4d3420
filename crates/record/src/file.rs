//! The only place that opens files: records belong to the user and are no part of the machine, so
//! they do not go through `host::Root`.

#![expect(clippy::disallowed_methods, reason = "the user's own file")]

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Makes a file; fails if there is one. It names the machine's processes: nobody else reads it, nor
/// what SQLite keeps beside it, which gets the same mode.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

pub(crate) fn open(path: &Path) -> io::Result<File> {
    rtproof_host::input::open(path)
}

/// Whatever it is: a pipe, most often.
pub(crate) fn standard_input() -> io::Result<File> {
    File::open("/dev/stdin")
}

pub(crate) fn open_to_write(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Absolute, without links: what is renamed and synced is the file itself.
pub(crate) fn absolute(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

/// Makes the name of a file durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}
