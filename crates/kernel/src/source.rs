//! The source of a kernel: a folder as it is, or a copy in the folder of the build: unpacked from a
//! tarball, or patched. A copy is whole or not there.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rtproof_host::{door, trusted};

use crate::tool::{Log, OnProgress, tool};
use crate::{KernelError, PatchFailure};

/// The name that selects the distribution's source package.
pub const DISTRIBUTION: &str = "distribution";

/// Where Debian's packages put it.
const USR_SRC: &str = "/usr/src";

/// A source that can be built.
#[derive(Clone, Debug)]
pub struct SourceTree {
    pub path: PathBuf,
    /// Patches in it that were asked for, in order.
    pub patches: Vec<String>,
}

/// Opens a source. `place` is the folder of the build; the copy lies in `place/source`.
///
/// # Errors
/// There is none, it is no kernel's, it cannot be unpacked or patched.
pub fn open(
    from: &Path,
    place: &Path,
    patches: Option<&Path>,
    observer: OnProgress<'_>,
) -> Result<SourceTree, KernelError> {
    let from = if from == Path::new(DISTRIBUTION) { distribution()? } else { from.to_path_buf() };
    let from = from.canonical()?;
    // make includes files of the folder that it builds in.
    for folder in [place.to_path_buf(), place.join("build")] {
        if folder.exists() {
            obeyed(trusted::folder(&folder))?;
        }
    }
    if from.is_dir() {
        check(&from)?;
        if patches.is_none() {
            return Ok(SourceTree { path: from, patches: Vec::new() });
        }
    }
    let series = patches.map(series).transpose()?.unwrap_or_default();
    let stamp = stamp(&from, &series)?;
    let (copy, mark) = (place.join("source"), place.join("source.from"));
    let names = series.iter().map(|it| it.display().to_string()).collect();
    if copy.exists() {
        return match read(&mark) {
            Ok(known) if known == stamp => Ok(SourceTree { path: copy, patches: names }),
            _ => Err(KernelError::path(
                &copy,
                format!(
                    "holds another source, or other patches, than {}; name another folder, or \
                     remove it",
                    from.display()
                ),
            )),
        };
    }
    let part = place.join("source.part");
    remove(&part)?;
    fs::create_dir_all(&part).map_err(KernelError::io(&part))?;
    let mut log = Log::begin(place.join("source.log"))?;
    let made = unpack(&from, &part, &mut log, observer)
        .and_then(|()| check(&part))
        .and_then(|()| apply(&part, &series, &from, &mut log, observer));
    if let Err(error) = made {
        // Half of a source is of no use, and would be taken for one.
        remove(&part)?;
        return Err(error);
    }
    door::write_whole(&mark, |to| Ok(to.write_all(stamp.as_bytes())?))
        .map_err(|error| KernelError::path(&mark, error.to_string()))?;
    fs::rename(&part, &copy).map_err(KernelError::io(&copy))?;
    Ok(SourceTree { path: copy, patches: names })
}

fn remove(path: &Path) -> Result<(), KernelError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(KernelError::io(path)(error))
        }
        _ => Ok(()),
    }
}

/// A path that stays right in another working directory.
trait Canonical {
    fn canonical(&self) -> Result<PathBuf, KernelError>;
}

impl Canonical for Path {
    #[expect(clippy::disallowed_methods, reason = "the user's own source")]
    fn canonical(&self) -> Result<PathBuf, KernelError> {
        self.canonicalize().map_err(KernelError::io(self))
    }
}

fn read(path: &Path) -> std::io::Result<String> {
    door::read_text(path, crate::CONFIG_MAX)
}

/// The newest source package of the distribution that is installed.
#[expect(clippy::disallowed_methods, reason = "sources of kernels, not the machine's state")]
fn distribution() -> Result<PathBuf, KernelError> {
    let entries = fs::read_dir(USR_SRC).map_err(KernelError::io(USR_SRC))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut found: Vec<String> =
        names.filter(|name| name.starts_with("linux-source-") && name.contains(".tar.")).collect();
    let numbers = |name: &str| -> Vec<u64> {
        let words = name.split(|c: char| !c.is_ascii_digit());
        words.filter_map(|word| word.parse().ok()).collect()
    };
    found.sort_by_key(|name| numbers(name));
    let name = found.pop().ok_or_else(|| {
        KernelError::path(
            USR_SRC,
            "holds no linux-source-*.tar.*; on Debian and Ubuntu: apt-get install linux-source",
        )
    })?;
    Ok(Path::new(USR_SRC).join(name))
}

/// What a copy was made of: path, size and time of a file, and those of the patches.
fn stamp(from: &Path, series: &[PathBuf]) -> Result<String, KernelError> {
    let mut text = String::new();
    for path in std::iter::once(from).chain(series.iter().map(PathBuf::as_path)) {
        let of = path.metadata().map_err(KernelError::io(path))?;
        text += &format!("{} {} {}.{}\n", path.display(), of.size(), of.mtime(), of.mtime_nsec());
    }
    Ok(text)
}

/// Refuses what is no kernel's source, and as root one whose makefile another user could have
/// written or can replace: it would run as root.
pub fn check(path: &Path) -> Result<(), KernelError> {
    for name in ["Makefile", "Kconfig"] {
        let file = path.join(name);
        if !file.is_file() {
            let why = format!("no kernel source: there is no {name} in it");
            return Err(KernelError::path(path, why));
        }
        obeyed(trusted::open(&file).map(|_| ()))?;
    }
    Ok(())
}

/// As root, no other user may decide what is executed.
pub fn obeyed(checked: std::io::Result<()>) -> Result<(), KernelError> {
    match checked {
        Err(why) if rustix::process::geteuid().is_root() => Err(KernelError::Distrusted { why }),
        _ => Ok(()),
    }
}

fn unpack(
    from: &Path,
    to: &Path,
    log: &mut Log,
    observer: OnProgress<'_>,
) -> Result<(), KernelError> {
    if from.is_dir() {
        let mut copy = tool("cp", "coreutils")?;
        copy.args(["-a", "--no-preserve=ownership", "--reflink=auto"]).arg(from.join(".")).arg(to);
        log.done("copying the source", copy, observer)?;
        return Ok(());
    }
    let mut tar = tool("tar", "tar")?;
    tar.args(["--no-same-owner", "--no-same-permissions", "--strip-components=1", "-C"])
        .arg(to)
        .arg("-xf")
        .arg(from);
    log.done("unpacking the source", tar, observer)?;
    Ok(())
}

// A series of patches, applied by `patch` to a copy of a source.

/// Lines of a rejected hunk that are shown.
const REJECTED_MAX: usize = 40;

/// The patches of a folder, in the order of its `series` file (as quilt has it), else sorted; or a
/// single file.
///
/// # Errors
/// There is none, or `series` names one that is not there.
#[expect(clippy::disallowed_methods, reason = "the user's own patches")]
pub fn series(path: &Path) -> Result<Vec<PathBuf>, KernelError> {
    let path = &path.canonicalize().map_err(KernelError::io(path))?;
    if path.is_file() {
        return Ok(vec![path.clone()]);
    }
    let list = path.join("series");
    let mut all = Vec::new();
    match door::read_text(&list, crate::CONFIG_MAX) {
        Ok(text) => {
            for line in text.lines() {
                let line = line.split('#').next().unwrap_or_default();
                let mut words = line.split_whitespace();
                let Some(name) = words.next() else { continue };
                if let Some(option) = words.find(|word| *word != "-p1") {
                    let why = format!("{name} {option}: only -p1 is known");
                    return Err(KernelError::path(list, why));
                }
                let patch = path.join(name);
                if !patch.is_file() {
                    let why = format!("names {name}, which is not there");
                    return Err(KernelError::path(list, why));
                }
                all.push(patch);
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            for entry in fs::read_dir(path).map_err(KernelError::io(path))? {
                let file = entry.map_err(KernelError::io(path))?.path();
                let name = file.to_string_lossy();
                let plain = name.trim_end_matches(".xz").trim_end_matches(".gz");
                if file.is_file() && (plain.ends_with(".patch") || plain.ends_with(".diff")) {
                    all.push(file);
                }
            }
            all.sort();
        }
        Err(error) => return Err(KernelError::io(list)(error)),
    }
    if all.is_empty() {
        return Err(KernelError::path(path, "holds no series file and no *.patch"));
    }
    Ok(all)
}

/// Applies the patches in order to the source tree.
///
/// # Errors
/// The first that does not apply, with its rejected hunks.
fn apply(
    tree: &Path,
    series: &[PathBuf],
    source: &Path,
    log: &mut Log,
    observer: OnProgress<'_>,
) -> Result<(), KernelError> {
    let place = tree.parent().unwrap_or(tree);
    let (plain, rejects) = (place.join("patch.part"), place.join("rejected.part"));
    let mut applied = || -> Result<(), KernelError> {
        for (before, patch) in series.iter().enumerate() {
            let input = unpacked(patch, &plain, log, observer)?;
            let mut command = tool("patch", "patch")?;
            command
                .args(["-p1", "--forward", "--batch", "--no-backup-if-mismatch", "-d"])
                .arg(tree)
                .arg("-i")
                .arg(&input)
                .arg("-r")
                .arg(&rejects);
            let ran = log.run(&format!("patch {}", before + 1), command, observer)?;
            if !ran.succeeded && ran.hint.is_empty() {
                return Err(KernelError::Patch(Box::new(PatchFailure {
                    patch: patch.clone(),
                    applied: before,
                    origin: source.to_path_buf(),
                    lines: ran.errors,
                    rejected: rejected(&rejects),
                    log: log.path.clone(),
                })));
            }
            if !ran.succeeded {
                return Err(log.failure("patch", ran));
            }
        }
        Ok(())
    };
    let result = applied();
    for path in [plain, rejects] {
        // They are ours, and may not be there.
        let _ = fs::remove_file(path);
    }
    result
}

/// The patch as text.
fn unpacked(
    patch: &Path,
    plain: &Path,
    log: &mut Log,
    observer: OnProgress<'_>,
) -> Result<PathBuf, KernelError> {
    let (name, package) = match patch.extension().and_then(|ending| ending.to_str()) {
        Some("xz") => ("xz", "xz-utils"),
        Some("gz") => ("gzip", "gzip"),
        _ => return Ok(patch.to_path_buf()),
    };
    // A shell only for its redirection; the paths are arguments.
    let mut command = tool("sh", "dash")?;
    command.args(["-c", "exec \"$0\" -dc -- \"$1\" > \"$2\"", name]).arg(patch).arg(plain);
    tool(name, package)?;
    log.done("unpacking the patch", command, observer)?;
    Ok(plain.to_path_buf())
}

fn rejected(path: &Path) -> Vec<String> {
    let Ok(text) = door::read_bytes(path, crate::CONFIG_MAX) else {
        return vec!["(patch kept no hunk)".into()];
    };
    let text = String::from_utf8_lossy(&text);
    let mut lines: Vec<String> = text.lines().take(REJECTED_MAX).map(str::to_owned).collect();
    let all = text.lines().count();
    if all > lines.len() {
        lines.push(format!("... and {} more lines", all - lines.len()));
    }
    lines
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "the test's own files")]

    use super::*;

    #[test]
    fn a_series_is_read_as_quilt_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["b.patch", "a.patch", "README"] {
            fs::write(at(name), "").unwrap();
        }
        let names = || {
            let all = series(folder.path()).unwrap();
            all.iter().map(|it| it.file_name().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(), ["a.patch", "b.patch"]);
        fs::write(at("series"), "# first\nb.patch -p1 # x\n\na.patch\n").unwrap();
        assert_eq!(names(), ["b.patch", "a.patch"]);
        for (text, says) in [("c.patch\n", "names c.patch"), ("a.patch -p0\n", "only -p1")] {
            fs::write(at("series"), text).unwrap();
            assert!(series(folder.path()).unwrap_err().to_string().contains(says));
        }
    }
}
