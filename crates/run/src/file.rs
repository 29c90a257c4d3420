//! Files for the user, whole or not there: reports and exports.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::usage::usage;

/// Writes a file beside its place and moves it there when it is on disk. What is no regular file,
/// such as a pipe or a symbolic link like `/dev/stdout`, is written to as it is.
///
/// # Errors
/// Those of `fill`, and of the file system; a regular file of that name is left as it was.
pub fn write_whole(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if fs::symlink_metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
        return fill(&mut File::create(path)?);
    }
    let (beside, mut file) = part(path)?;
    let moved = fill(&mut file)
        .and_then(|()| Ok(file.sync_all()?))
        .and_then(|()| Ok(fs::rename(&beside, path)?));
    moved.inspect_err(|_| {
        // What was begun is of no use.
        let _ = fs::remove_file(&beside);
    })
}

/// Whether a new file can be made there; none is left behind.
///
/// # Errors
/// When it cannot.
pub fn try_new(path: &Path) -> io::Result<()> {
    let (beside, _) = part(path)?;
    fs::remove_file(beside)
}

/// A new file beside the one to be; what a run that was cut off left there is not touched.
fn part(path: &Path) -> io::Result<(PathBuf, File)> {
    let named = |ending: String| {
        let mut name = OsString::from(path);
        name.push(ending);
        PathBuf::from(name)
    };
    let mut names = (2..100_u32).map(|number| named(format!(".{number}.part")));
    let mut beside = named(".part".into());
    loop {
        match File::create_new(&beside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                beside = names.next().ok_or(error)?;
            }
            made => return made.map(|file| (beside, file)),
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
