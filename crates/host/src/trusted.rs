//! The door for files that are obeyed: journals, plans, matrices, configuration. What they say is
//! written or run with the caller's rights, so that no other user may be able to write them.

use std::{
    ffi::OsStr,
    fs::{self, File, Metadata, OpenOptions},
    io,
    os::unix::fs::{FileExt, FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::{
    fs::OFlags,
    process::{getegid, geteuid},
};

use crate::door::{self, Found};

/// Why another user could have written a file that would be obeyed.
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
        /// The accepted owner: a user id.
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
/// and that no one else can write or replace. What a shell hands over (`/dev/stdin`, `<(...)`) has
/// no folder: a pipe is the caller's own doing.
///
/// # Errors
/// It cannot be opened, is no regular file, or another user could have written it
/// ([`is_distrust`]).
pub fn open(path: &Path) -> io::Result<File> {
    match door::find(path, true)? {
        Found::Given(handed) => {
            let file = handed.file(OpenOptions::new().read(true))?;
            let of = file.metadata()?;
            if !of.is_file() && !of.file_type().is_fifo() {
                return Err(no_regular_file());
            }
            given(&file).map(|()| file)
        }
        Found::Entry(_) => open_with(path, OFlags::RDONLY),
    }
}

/// As [`open`]; `anyones`: whoever asked for it has looked through it, and any regular file will
/// do.
///
/// # Errors
/// As [`open`].
pub fn open_if(path: &Path, anyones: bool) -> io::Result<File> {
    if anyones { door::read(path) } else { open(path) }
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
    open_with(path, OFlags::RDWR)
}

#[expect(clippy::disallowed_methods, reason = "this is the door")]
fn open_with(path: &Path, access: OFlags) -> io::Result<File> {
    let real = fs::canonicalize(path)?;
    let entry = match door::find(&real, false)? {
        Found::Entry(entry) => entry,
        Found::Given(_) => return Err(no_regular_file()),
    };
    let metadata = entry.file.as_ref().ok_or(rustix::io::Errno::NOENT)?.metadata()?;
    if metadata.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !metadata.is_file() {
        return Err(no_regular_file());
    }
    if let Some(why) = why_not(&metadata) {
        return Err(of_file(path, why).into());
    }
    // Whoever owns none of them and can write none of them could not have led us elsewhere.
    above(path, &real)?;
    door::reopen(&entry, access)
}

fn no_regular_file() -> io::Error {
    let why = "a pipe, a socket or a device, no regular file";
    io::Error::new(io::ErrorKind::InvalidInput, why)
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

// Programs of the machine that rtproof itself runs: by absolute path, from folders and files that
// only root can change.

/// Folders that are searched, whatever PATH says; the last is NixOS's.
const FOLDERS: &[&str] = &[
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/run/current-system/sw/bin",
];

/// Lines of what a program that fails says.
const LINES_MAX: usize = 5;

/// The PATH of what they start.
pub const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Finds a program that only root can change.
///
/// # Errors
/// It is in none of the folders, or another than root can change it: the path says which.
pub fn find_program(name: &str) -> io::Result<PathBuf> {
    let mut refused = None;
    for folder in FOLDERS {
        let path = Path::new(folder).join(name);
        match of_root(&path) {
            Ok(true) => return Ok(path),
            Ok(false) => refused = refused.or(Some(path)),
            Err(_) => {}
        }
    }
    Err(match refused {
        Some(path) => io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{}: another user than root can change it: it is not run", path.display()),
        ),
        None => io::Error::new(
            io::ErrorKind::NotFound,
            format!("{name} is in none of {}", FOLDERS.join(", ")),
        ),
    })
}

/// A program with its arguments to come. Of the caller's environment it has nothing.
///
/// # Errors
/// As [`find_program`].
pub fn command(name: impl AsRef<OsStr>) -> io::Result<Command> {
    Ok(command_at(find_program(&name.as_ref().to_string_lossy())?))
}

/// As [`command`], of a program that was found.
pub fn command_at(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs([("PATH", PATH), ("LC_ALL", "C"), ("HOME", "/nonexistent")]);
    command
}

/// Runs a program to its good end: what it wrote to stdout.
///
/// # Errors
/// It cannot be run, or fails: its name, its status and the last lines that it wrote.
pub fn succeed(command: &mut Command) -> Result<Vec<u8>, String> {
    let name = Path::new(command.get_program()).file_name().unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let ran = command.stdin(Stdio::null()).output();
    let ran = ran.map_err(|error| format!("{name} cannot be run: {error}"))?;
    if ran.status.success() {
        return Ok(ran.stdout);
    }
    let output = [ran.stdout, ran.stderr].concat();
    let output = String::from_utf8_lossy(&output);
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES_MAX)..];
    Err(format!("{name} failed ({}): {}", ran.status, last.join("; ")))
}

/// A file in memory for what a program writes.
pub(crate) fn memory() -> io::Result<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    Ok(rustix::fs::memfd_create("rtproof-output", flags)?.into())
}

/// Content of such a file from a byte on. The place where the program writes stays.
pub(crate) fn written(file: &File, from: u64) -> io::Result<Vec<u8>> {
    let bytes = file.metadata()?.len().saturating_sub(from);
    let mut all = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut all, from)?;
    Ok(all)
}

/// Whether only root can change a program, where we are root: a user's own run uses what the
/// user has.
fn of_root(path: &Path) -> io::Result<bool> {
    let file = path.metadata()?;
    if !file.is_file() || file.mode() & 0o111 == 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    let folder = path.parent().map(Path::metadata).transpose()?;
    Ok(!geteuid().is_root() || is_root_owned(&file) && folder.is_none_or(|of| is_root_owned(&of)))
}

/// Owned by root and not writable by others.
fn is_root_owned(of: &Metadata) -> bool {
    of.uid() == 0 && of.mode() & 0o022 == 0
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
    fn only_files_that_no_other_user_could_write_are_obeyed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let own = made(dir, "own", 0o644);
        assert!(open(&own).is_ok());
        assert!(open_to_write(&own).is_ok());
        let anybodys = made(dir, "anybodys", 0o666);
        let message = why(&anybodys);
        assert!(
            message.contains("can be written by others") && message.contains("chmod go-w"),
            "{message}"
        );
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
        let message = why(&inside);
        assert!(
            message.contains("shared can be written by others: the file could be"),
            "{message}"
        );
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

#[cfg(test)]
mod program_tests {
    use std::{os::unix::fs::PermissionsExt, time::Duration};

    use super::*;

    #[test]
    fn what_the_system_has_is_found_by_its_path() {
        let sh = find_program("sh").unwrap();
        assert!(sh.is_absolute() && FOLDERS.iter().any(|folder| sh.starts_with(folder)), "{sh:?}");
        // The tests' own environment has more.
        let environment = command("env").unwrap().output().unwrap();
        let environment = String::from_utf8(environment.stdout).unwrap();
        let mut lines: Vec<&str> = environment.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["HOME=/nonexistent", "LC_ALL=C", &format!("PATH={PATH}")]);
        assert_eq!(find_program("no-such-program").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_failure_quotes_the_last_output() {
        let sh = |script: &str| succeed(command("sh").unwrap().args(["-c", script]));
        assert_eq!(sh("echo out; echo err >&2"), Ok(b"out\n".to_vec()));
        let error = sh("echo one; for i in 2 3 4 5 6; do echo $i >&2; done; exit 7").unwrap_err();
        assert_eq!(error, "sh failed (exit status: 7): 2; 3; 4; 5; 6");
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let sh = |script: &str, limit| {
            crate::child::output_within(command("sh").unwrap().args(["-c", script]), limit)
        };
        let output = sh("cat; echo out; echo err >&2; exit 3", Duration::from_secs(60)).unwrap();
        assert_eq!((&output.stdout[..], &output.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
        assert_eq!(output.status.code(), Some(3));
        let error = sh("exec sleep 60", Duration::from_millis(10)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test's own file")]
    fn what_others_can_write_is_no_program_of_root() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("systemctl");
        fs::write(&path, "#!/bin/sh\n").unwrap();
        assert!(of_root(&path).is_err(), "it cannot be run");
        for (mode, ours) in [(0o755, true), (0o775, false), (0o757, false)] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let root = geteuid().is_root();
            assert_eq!(of_root(&path).unwrap(), ours || !root, "{mode:o}");
        }
    }
}
