//! The door for files that a user names: another user may have made them.

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{FileTypeExt, OpenOptionsExt},
    path::Path,
};

use rustix::fs::OFlags;

/// Names of what the process was given by whoever started it: a pipe of a shell's `|` or `<(...)`.
const GIVEN: [&str; 3] = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];

/// Opens a file to be read. Never waits for a program that the user did not name: what lies in a
/// folder and is a pipe, a socket or a device is refused, whoever holds its other end; a terminal
/// does not become the process's own. A pipe that the process was given is read.
///
/// # Errors
/// It cannot be opened, or is no regular file.
#[expect(clippy::disallowed_methods, reason = "the user's own file")]
pub fn open(path: &Path) -> io::Result<File> {
    let given = is_given(path);
    let wait = if given { OFlags::empty() } else { OFlags::NONBLOCK };
    let flags = (wait | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let kind = file.metadata()?.file_type();
    match kind {
        _ if kind.is_file() || given && kind.is_fifo() => Ok(file),
        _ if kind.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a pipe, a socket or a device, no regular file; copy what it holds into one",
        )),
    }
}

/// Whether a path is of what the process was given, and of no folder.
pub(crate) fn is_given(path: &Path) -> bool {
    GIVEN.iter().any(|name| path.starts_with(name))
}

#[cfg(test)]
mod tests {
    use std::{io::Read, os::fd::AsRawFd};

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
        // What a shell's <(...) gives.
        let (read, write) = rustix::pipe::pipe().unwrap();
        let given = format!("/dev/fd/{}", read.as_raw_fd());
        rustix::io::write(&write, b"piped").unwrap();
        drop(write);
        let mut text = String::new();
        open(Path::new(&given)).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "piped");
    }
}
