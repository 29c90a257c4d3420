//! The door for files that are obeyed: journals, plans, matrices, configuration. What they say is
//! written or run with the caller's rights, so that nobody else may be able to write them.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::OFlags,
    process::{getegid, geteuid},
};

use crate::input;

/// Who else could have written a file that is to be obeyed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Distrust {
    #[error(
        "{} {why}, and what it says is done with your rights; look through it, then: \
         chown {owner} {0} && chmod go-w {0}", path.display()
    )]
    File {
        path: PathBuf,
        /// `belongs to user 1000`, `can be written by others`.
        why: String,
        /// Who may own it: a user's number.
        owner: u32,
    },
    /// A folder above it, in which it can be replaced.
    #[error(
        "{}: {} {why}: the file could be replaced, and what it says is done with your rights; look \
         through it and copy it where nobody else can write",
        path.display(), folder.display()
    )]
    Folder {
        path: PathBuf,
        folder: PathBuf,
        /// `belongs to user 1000`, `can be written by others`.
        why: String,
    },
}

impl From<Distrust> for io::Error {
    fn from(distrust: Distrust) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, distrust)
    }
}

/// Opens a file to be read and obeyed: a regular one that belongs to root or to whoever runs this,
/// and that nobody else can write or replace. What a shell hands over (`/dev/stdin`, `<(...)`) has
/// no folder: a pipe is the caller's own doing.
///
/// # Errors
/// It cannot be opened, is no regular file, or another user could have written it
/// ([`is_distrust`]).
pub fn open(path: &Path) -> io::Result<File> {
    if input::is_given(path) {
        let file = input::open(path)?;
        return given(&file).map(|()| file);
    }
    open_with(path, OpenOptions::new().read(true))
}

/// As [`open`]; `anyones`: whoever asked for it has looked through it, and any regular file will
/// do.
///
/// # Errors
/// As [`open`].
pub fn open_if(path: &Path, anyones: bool) -> io::Result<File> {
    if anyones { input::open(path) } else { open(path) }
}

/// Checks what a shell has opened for us: a file as [`open`] does, a pipe not at all.
///
/// # Errors
/// Another user could have written the file.
pub fn given(file: impl std::os::fd::AsFd) -> io::Result<()> {
    let metadata = File::from(file.as_fd().try_clone_to_owned()?).metadata()?;
    match metadata.is_file().then(|| why_not(&metadata)).flatten() {
        Some(why) => Err(of_file(Path::new("/dev/stdin"), why).into()),
        None => Ok(()),
    }
}

/// As [`open`], also to be written.
pub(crate) fn open_to_write(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true).write(true))
}

#[expect(clippy::disallowed_methods, reason = "this is the door")]
fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let real = fs::canonicalize(path)?;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = options.custom_flags(flags.bits().cast_signed()).open(&real)?;
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        let why = "a pipe, a socket or a device, no regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    if let Some(why) = why_not(&metadata) {
        return Err(of_file(path, why).into());
    }
    // Whoever owns none of them and can write none of them could not have led us elsewhere.
    above(path, &real)?;
    Ok(file)
}

/// Checks a folder whose files are obeyed, and those above it.
///
/// # Errors
/// It cannot be looked at, or another user can write there.
pub fn folder(path: &Path) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "this is the door")]
    let real = fs::canonicalize(path)?;
    let metadata = real.symlink_metadata()?;
    match why_not(&metadata) {
        Some(why) => Err(of_file(path, why).into()),
        None => above(path, &real),
    }
}

/// Whether an error is that of another user's file.
pub fn is_distrust(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|error| error.is::<Distrust>())
}

/// Looks at the folders above. In one like /tmp others can make files, and not touch ours.
fn above(path: &Path, real: &Path) -> io::Result<()> {
    for folder in real.ancestors().skip(1) {
        let metadata = folder.symlink_metadata()?;
        let is_sticky = metadata.mode() & 0o1000 != 0 && is_own(metadata.uid());
        if let Some(why) = why_not(&metadata).filter(|_| !is_sticky) {
            let (path, folder) = (path.into(), folder.into());
            return Err(Distrust::Folder { path, folder, why }.into());
        }
    }
    Ok(())
}

fn of_file(path: &Path, why: String) -> Distrust {
    Distrust::File { path: path.into(), why, owner: geteuid().as_raw() }
}

fn is_own(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

/// Why what is in a file may be another user's. An access control list shows as the group's right;
/// a user's own group is that user's.
fn why_not(metadata: &Metadata) -> Option<String> {
    let of_own_group = !geteuid().is_root() && metadata.gid() == getegid().as_raw();
    let by_others = if of_own_group { 0o002 } else { 0o022 };
    match metadata {
        it if !is_own(it.uid()) => Some(format!("belongs to user {}", it.uid())),
        it if it.mode() & by_others != 0 => Some("can be written by others".into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    fn made(dir: &Path, name: &str, mode: u32) -> PathBuf {
        let path = dir.join(name);
        fs::write(&path, "x").unwrap();
        set(&path, mode);
        path
    }

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn why(path: &Path) -> String {
        open(path).unwrap_err().to_string()
    }

    #[test]
    fn only_what_nobody_else_could_have_written_is_obeyed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let own = made(dir, "own", 0o644);
        assert!(open(&own).is_ok());
        assert!(open_to_write(&own).is_ok());
        let anybodys = made(dir, "anybodys", 0o666);
        let told = why(&anybodys);
        assert!(told.contains("can be written by others") && told.contains("chmod go-w"), "{told}");
        assert!(is_distrust(&open(&anybodys).unwrap_err()));
        // By another name, too, and through what the shell hands over.
        let link = dir.join("link");
        symlink(&anybodys, &link).unwrap();
        assert!(why(&link).contains("can be written by others"));
        let file = File::open(&anybodys).unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file);
        assert!(why(Path::new(&format!("/dev/fd/{fd}"))).contains("by others"));
        // In a folder of anybody's a file can be replaced; in one like /tmp it cannot.
        let shared = dir.join("shared");
        fs::create_dir(&shared).unwrap();
        let inside = made(&shared, "inside", 0o600);
        symlink(&inside, dir.join("to-inside")).unwrap();
        for (mode, is_taken) in [(0o755, true), (0o777, false), (0o1777, true)] {
            set(&shared, mode);
            assert_eq!(open(&inside).is_ok(), is_taken, "{mode:o}");
            assert_eq!(open(&dir.join("to-inside")).is_ok(), is_taken, "{mode:o}");
            assert_eq!(folder(&shared).is_ok(), mode == 0o755, "{mode:o}");
        }
        set(&shared, 0o777);
        let told = why(&inside);
        assert!(told.contains("shared can be written by others: the file could be"), "{told}");
        assert!(!is_distrust(&open(&dir.join("none")).unwrap_err()));
        assert!(open(dir).is_err());
    }

    #[test]
    fn root_obeys_root() {
        if !geteuid().is_root() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let file = made(dir.path(), "file", 0o600);
        chown(&file, Some(1000), Some(0)).unwrap();
        assert!(why(&file).contains("belongs to user 1000"), "{}", why(&file));
        assert!(why(&file).contains("chown 0 "), "{}", why(&file));
        chown(&file, Some(0), Some(1000)).unwrap();
        assert!(open(&file).is_ok());
        set(&file, 0o660);
        assert!(open(&file).is_err(), "a group is others");
        set(&file, 0o600);
        chown(dir.path(), Some(1000), None).unwrap();
        assert!(why(&file).contains("belongs to user 1000: the file could be replaced"));
    }
}
