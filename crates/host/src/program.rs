//! Programs of the machine that rtproof itself runs: by absolute path, from folders and files that
//! only root can change.

use std::{
    ffi::OsStr,
    fs::{File, Metadata},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Where they are looked for, whatever PATH says; the last is NixOS's.
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

/// Finds a program.
///
/// # Errors
/// It is in none of the folders, or another than root can change it: the path says which.
pub fn find(name: &str) -> io::Result<PathBuf> {
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

/// A program with its arguments to come, and a PATH of the system's folders for what it starts.
///
/// # Errors
/// As [`find`].
pub fn command(name: impl AsRef<OsStr>) -> io::Result<Command> {
    let mut command = Command::new(find(&name.as_ref().to_string_lossy())?);
    command.env("PATH", PATH);
    Ok(command)
}

/// Runs a program to its end, within a time: what it wrote, to each of stdout and stderr.
///
/// # Errors
/// It cannot be run, or takes longer; it is ended then.
pub fn output_within(command: &mut Command, limit: Duration) -> io::Result<Output> {
    // Memory, not pipes: nobody has to read while it runs.
    let (stdout, stderr) = (memory()?, memory()?);
    command.stdin(Stdio::null()).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let mut child = command.spawn()?;
    let end = Instant::now() + limit;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break status,
            None if Instant::now() < end => thread::sleep(Duration::from_millis(20)),
            None => {
                child.kill()?;
                child.wait()?;
                let why = format!("no answer within {} s", limit.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
        }
    };
    Ok(Output { status, stdout: written(&stdout, 0)?, stderr: written(&stderr, 0)? })
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
    let said = [ran.stdout, ran.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(LINES_MAX)..];
    Err(format!("{name} failed ({}): {}", ran.status, last.join("; ")))
}

/// A file in memory for what a program writes.
pub(crate) fn memory() -> io::Result<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    Ok(rustix::fs::memfd_create("rtproof-output", flags)?.into())
}

/// What was written to such a file from a byte on. The place where the program writes stays.
pub(crate) fn written(file: &File, from: u64) -> io::Result<Vec<u8>> {
    let bytes = file.metadata()?.len().saturating_sub(from);
    let mut all = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
    file.read_exact_at(&mut all, from)?;
    Ok(all)
}

/// Whether nobody but root can change a program, where we are root: a user's own run uses what the
/// user has.
fn of_root(path: &Path) -> io::Result<bool> {
    let file = path.metadata()?;
    if !file.is_file() || file.mode() & 0o111 == 0 {
        return Err(io::ErrorKind::NotFound.into());
    }
    let folder = path.parent().map(Path::metadata).transpose()?;
    Ok(!rustix::process::geteuid().is_root() || keeps(&file) && folder.is_none_or(|of| keeps(&of)))
}

/// Owned by root and written by nobody else.
fn keeps(of: &Metadata) -> bool {
    of.uid() == 0 && of.mode() & 0o022 == 0
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_the_system_has_is_found_by_its_path() {
        let sh = find("sh").unwrap();
        assert!(sh.is_absolute() && FOLDERS.iter().any(|folder| sh.starts_with(folder)), "{sh:?}");
        let path = command("sh").unwrap().args(["-c", "echo $PATH"]).output().unwrap();
        assert_eq!(String::from_utf8(path.stdout).unwrap().trim(), PATH);
        assert_eq!(find("no-such-program").unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_failure_says_what_the_program_said_last() {
        let sh = |script: &str| succeed(command("sh").unwrap().args(["-c", script]));
        assert_eq!(sh("echo out; echo err >&2"), Ok(b"out\n".to_vec()));
        let error = sh("echo one; for i in 2 3 4 5 6; do echo $i >&2; done; exit 7").unwrap_err();
        assert_eq!(error, "sh failed (exit status: 7): 2; 3; 4; 5; 6");
    }

    #[test]
    fn what_takes_too_long_is_ended() {
        let sh =
            |script: &str, limit| output_within(command("sh").unwrap().args(["-c", script]), limit);
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
        std::fs::write(&path, "#!/bin/sh\n").unwrap();
        assert!(of_root(&path).is_err(), "it cannot be run");
        for (mode, ours) in [(0o755, true), (0o775, false), (0o757, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let root = rustix::process::geteuid().is_root();
            assert_eq!(of_root(&path).unwrap(), ours || !root, "{mode:o}");
        }
    }
}
