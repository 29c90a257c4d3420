//! A series of patches, applied by `patch` to a copy of a source.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    error::{KernelError, PatchFailure},
    tool::{Log, OnProgress, tool},
};

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
    match fs::read_to_string(&list) {
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

/// Applies them all.
///
/// # Errors
/// The first that does not apply, with its rejected hunks.
pub(super) fn apply(
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

#[expect(clippy::disallowed_methods, reason = "what patch rejected")]
fn rejected(path: &Path) -> Vec<String> {
    let Ok(text) = fs::read(path) else { return vec!["(patch kept no hunk)".into()] };
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
