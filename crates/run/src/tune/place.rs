//! Where this program is, and whether a unit may name it: root starts it at each boot, so that it
//! has to be there then, and to be root's alone.

use crate::usage::Invalid;
use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use rtproof_host::{
    Root,
    tune::{Change, may_change_groups},
};
use rtproof_judge::plan::units;

/// Folders of programs that stay. The last two are where /usr/local and /opt lead on systems whose
/// /usr is an image.
const LASTING: [&str; 5] = ["/usr", "/opt", "/bin", "/var/usrlocal", "/var/opt"];

/// Where the program is expected on a machine that is not this one.
pub const USUAL: &str = "/usr/local/bin/rtproof";

/// Path of the program for a unit of a machine: of this one, where it is.
///
/// # Errors
/// It is not in a place that lasts, or others could replace it; with where to copy it.
pub fn of(root: &Root) -> anyhow::Result<String> {
    if !root.is_live() {
        return Ok(USUAL.into());
    }
    let exe = running()?;
    lasting(&exe).map_err(|why| anyhow::anyhow!(why))
}

/// Path of the running program, which has to be there to be started again.
///
/// # Errors
/// It was moved, replaced or removed since it was started.
pub fn running() -> anyhow::Result<PathBuf> {
    there(std::env::current_exe().context("the program's own path")?)
}

/// The kernel adds ` (deleted)` to a path that is no longer the program's.
fn there(exe: PathBuf) -> anyhow::Result<PathBuf> {
    let gone = exe.to_str().and_then(|path| path.strip_suffix(" (deleted)"));
    if let (Some(was), false) = (gone, exe.exists()) {
        anyhow::bail!(
            "{was}: the program that runs is no longer there: it was moved, replaced or removed \
             since it was started; start rtproof again"
        );
    }
    Ok(exe)
}

/// Refuses changes that would have a unit start this program where it cannot, and those of groups
/// in a folder.
///
/// # Errors
/// As [`of`], and [`may_change_groups`].
pub fn allows<'a>(
    root: &Root,
    changes: impl IntoIterator<Item = &'a Change> + Clone,
) -> anyhow::Result<()> {
    may_change_groups(root, changes.clone())?;
    let starts_us = |change: &Change| match change {
        Change::File { path, content: Some(content), .. } => {
            path.starts_with(units::FOLDER) && content.text().contains("/rtproof tune ")
        }
        _ => false,
    };
    match changes.into_iter().any(starts_us) {
        true => of(root).map(drop),
        false => Ok(()),
    }
}

/// The path, if a unit may name it.
///
/// # Errors
/// What is against it, and where to copy the program.
pub fn lasting(exe: &Path) -> Result<String, Invalid> {
    let refuse = |why: String| {
        let exe = exe.display();
        Err(format!(
            "{exe}: a unit cannot start this program at boot: {why}; copy it with \
             `install -m 755 {exe} /usr/local/bin/rtproof` and run that one"
        )
        .into())
    };
    if !LASTING.iter().any(|top| exe.starts_with(top)) {
        return refuse(format!("it is not below {}", LASTING[..2].join(" or ")));
    }
    let Some(path) = exe.to_str() else {
        return refuse("its path is not UTF-8".into());
    };
    if let Err(why) = of_root(exe) {
        return refuse(why);
    }
    match PathBuf::from(path).is_file() {
        true => Ok(path.to_owned()),
        false => refuse("it is no file".into()),
    }
}

/// Whether a path and all folders above it are root's.
///
/// # Errors
/// Which is not, and why.
pub(super) fn of_root(path: &Path) -> Result<(), String> {
    for part in path.ancestors() {
        let metadata =
            fs::metadata(part).map_err(|error| format!("{}: {error}", part.display()))?;
        if metadata.uid() != 0 {
            return Err(format!("{} does not belong to root", part.display()));
        }
        // A group of administrators may: /usr/local of Debian belongs to the group staff.
        if metadata.mode() & 0o002 != 0 {
            return Err(format!("anybody may write {}", part.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_the_system_may_be_named() {
        assert_eq!(lasting(Path::new("/usr/bin/env")).as_deref(), Ok("/usr/bin/env"));
    }

    #[test]
    fn a_program_that_is_gone_is_told_by_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let exe = dir.path().join("rtproof (deleted)");
        let why = there(exe.clone()).unwrap_err().to_string();
        assert!(why.contains("rtproof: the program that runs is no longer there"), "{why}");
        // A program may have this name.
        fs::copy("/usr/bin/env", &exe).unwrap();
        assert_eq!(there(exe.clone()).unwrap(), exe);
    }

    #[test]
    fn a_program_that_may_be_gone_is_refused_with_what_to_do() {
        let dir = tempfile::tempdir().unwrap();
        let exe = dir.path().join("rtproof");
        fs::copy("/usr/bin/env", &exe).unwrap();
        for exe in [exe.as_path(), Path::new("/usr/bin/no-such"), Path::new("/usr/bin")] {
            let why = lasting(exe).unwrap_err();
            assert!(why.contains("/usr/local/bin/rtproof"), "{why}");
        }
    }
}
