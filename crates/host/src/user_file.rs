//! The user's own files: open, whole write, usage error.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

// Files for the user, whole or not there: reports and exports.

/// Bytes of a name beside which there is room for the ending of a part.
const NAME_MAX: usize = 240;

/// Writes a file beside its place and moves it there when it is on disk. What lies in `/dev` or
/// `/proc`, such as `/dev/stdout`, and a pipe are written to as they are. A symbolic link elsewhere
/// is replaced and never followed: users who may write to the folder cannot redirect the write.
///
/// # Errors
/// Those of `fill`, and of the file system; a regular file of that name is left as it was.
pub fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if ["/dev", "/proc"].iter().any(|folder| path.starts_with(folder)) {
        return fill(&mut File::create(path)?);
    }
    if fs::symlink_metadata(path).is_ok_and(|of| of.file_type().is_fifo()) {
        return fill(&mut pipe(path)?);
    }
    let (temporary, mut file) = part(path)?;
    let moved = keep_mode(path, &file)
        .and_then(|()| fill(&mut file))
        .and_then(|()| Ok(file.sync_all()?))
        .and_then(|()| Ok(fs::rename(&temporary, path)?));
    moved.inspect_err(|_| {
        // What was begun is of no use.
        let _ = fs::remove_file(&temporary);
    })
}

/// A file of ours that is replaced keeps who may read it.
fn keep_mode(path: &Path, file: &File) -> anyhow::Result<()> {
    let Ok(old) = fs::symlink_metadata(path) else { return Ok(()) };
    if old.is_file() && old.uid() == rustix::process::geteuid().as_raw() {
        file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o777))?;
    }
    Ok(())
}

/// A pipe to be written to; it may have become something else meanwhile.
#[expect(clippy::disallowed_methods, reason = "the user's own pipe")]
fn pipe(path: &Path) -> anyhow::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let file = OpenOptions::new().write(true).custom_flags(flags).open(path)?;
    anyhow::ensure!(file.metadata()?.file_type().is_fifo(), "no pipe any more");
    Ok(file)
}

/// Whether a new file can be made there; none is left behind, even if killed meanwhile.
///
/// # Errors
/// When it cannot.
#[expect(clippy::disallowed_methods, reason = "the folder of the user's own file")]
pub fn try_new(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let name = path.file_name().unwrap_or_default();
    // A file without a name; not every file system has them, and none asks for the name's length.
    if name.len() < NAME_MAX {
        let flags = rustix::fs::OFlags::TMPFILE.bits().cast_signed();
        let mut options = OpenOptions::new();
        options.write(true).mode(0o600).custom_flags(flags);
        if options.open(folder.unwrap_or(Path::new("."))).is_ok() {
            return Ok(());
        }
    }
    let (temporary, _) = part(path)?;
    fs::remove_file(temporary)
}

/// A new file beside the one to be; what a run that was cut off left there is not touched.
#[expect(clippy::disallowed_methods, reason = "the user's own file")]
fn part(path: &Path) -> io::Result<(PathBuf, File)> {
    let named = |ending: String| {
        let mut name = OsString::from(path);
        name.push(ending);
        PathBuf::from(name)
    };
    let mut names = (2..100_u32).map(|number| named(format!(".{number}.part")));
    let mut temporary = named(".part".into());
    loop {
        // It names the machine's processes: it is private, unless the user changes that later.
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                temporary = names.next().ok_or(error)?;
            }
            made => return made.map(|file| (temporary, file)),
        }
    }
}

/// Refuses a target whose writing would destroy the record that it is computed from.
///
/// # Errors
/// Usage, when it is the record under any name, or its journal; else when it is a folder.
pub fn check_target(record: &Path, target: &Path) -> anyhow::Result<()> {
    let mut journal = OsString::from(record);
    journal.push("-journal");
    if is_same(record, target) || is_same(Path::new(&journal), target) {
        return Err(usage(format!(
            "{}: this is the record itself, which is never written over; name another file",
            target.display()
        )));
    }
    anyhow::ensure!(!target.is_dir(), "{}: a folder; name a file in it", target.display());
    Ok(())
}

/// Whether two paths lead to one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path: &Path| path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
    one == other || id(one).is_some_and(|one| id(other) == Some(one))
}

// A wrong request: an option, a name or a value that the user has to correct.

/// A wrong request. The program reports it plainly and does nothing.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UsageError(pub String);

/// A usage error as the error of a command.
pub fn usage(text: impl Into<String>) -> anyhow::Error {
    UsageError(text.into()).into()
}

/// Why a value or a name cannot be used; the caller adds where it stood.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

impl From<String> for Invalid {
    fn from(why: String) -> Self {
        Self(why)
    }
}

impl From<&str> for Invalid {
    fn from(why: &str) -> Self {
        Self(why.into())
    }
}

impl From<Invalid> for String {
    fn from(why: Invalid) -> Self {
        why.0
    }
}

impl std::ops::Deref for Invalid {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "the test's own files")]

    use super::*;

    #[test]
    fn a_link_is_replaced_and_what_it_leads_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("precious"), "mine").unwrap();
        std::os::unix::fs::symlink(at("precious"), at("page.html")).unwrap();
        write_whole(&at("page.html"), |to| Ok(to.write_all(b"page")?)).unwrap();
        let text = |name: &str| fs::read_to_string(at(name)).unwrap();
        assert_eq!((text("precious"), text("page.html")), ("mine".into(), "page".into()));
        assert!(!fs::symlink_metadata(at("page.html")).unwrap().is_symlink());
        write_whole(Path::new("/dev/null"), |to| Ok(to.write_all(b"page")?)).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn files_are_private_unless_requested_otherwise() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("page.html");
        let write = || write_whole(&path, |to| Ok(to.write_all(b"page")?)).unwrap();
        let mode = || fs::metadata(&path).unwrap().mode() & 0o777;
        write();
        assert_eq!(mode(), 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write();
        assert_eq!(mode(), 0o644);
    }
}
