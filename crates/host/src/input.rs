//! The door for files that a user names: somebody else may have made them.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

/// Opens a regular file to be read. Never waits for another program: what is a pipe, a socket or a
/// device is refused, whoever holds its other end; a terminal does not become the process's own.
///
/// # Errors
/// It cannot be opened, or is no regular file.
#[expect(clippy::disallowed_methods, reason = "the user's own file")]
pub fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    match kind {
        _ if kind.is_file() => Ok(file),
        _ if kind.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a pipe, a socket or a device, no regular file; copy what it holds into one",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_nothing_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let (file, pipe) = (dir.path().join("file"), dir.path().join("pipe"));
        File::create(&file).unwrap();
        assert!(open(&file).is_ok());
        let kind = |path: &Path| open(path).map_err(|error| error.kind()).err();
        assert_eq!(kind(dir.path()), Some(io::ErrorKind::IsADirectory));
        assert_eq!(kind(&dir.path().join("none")), Some(io::ErrorKind::NotFound));
        // Nobody writes to it: opened as usual, this would wait for ever.
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let made = rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0);
        made.unwrap();
        assert_eq!(kind(&pipe), Some(io::ErrorKind::InvalidInput));
        assert_eq!(kind(Path::new("/dev/null")), Some(io::ErrorKind::InvalidInput));
    }
}
