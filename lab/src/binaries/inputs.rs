//! A digest of everything that goes into the programs: the key of a built result.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use super::cargo;
use crate::fetch::{hex, sha256_of};

/// Files and folders of the workspace that count. Tests count too: it is unknown which of their
/// files a source includes.
const SOURCES: &[&str] =
    &["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo", "crates", "lab/plant"];

/// Digest over the paths and contents of the sources, cargo's configuration, and `others`.
pub(super) fn digest(workspace: &Path, others: &str) -> Result<String> {
    let mut files = Vec::new();
    for source in SOURCES {
        collect(&workspace.join(source), &mut files)?;
    }
    files.extend(configurations(workspace));
    files.sort();
    let mut digest = Sha256::new();
    digest.update(format!("{others}\0"));
    for path in files {
        // Where the clone lies does not matter.
        let name = path.strip_prefix(workspace).unwrap_or(&path);
        digest.update(format!("{}\0{}\0", name.display(), sha256_of(&path)?));
    }
    Ok(hex(&digest.finalize()))
}

/// All files below; a path that is not there is as good as an empty folder.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let failed = || format!("{}: cannot be read", path.display());
    if path.is_dir() {
        for entry in fs::read_dir(path).with_context(failed)? {
            collect(&entry.with_context(failed)?.path(), files)?;
        }
    } else if path.is_file() {
        files.push(path.to_path_buf());
    }
    Ok(())
}

/// Cargo's configuration outside the workspace can set profiles and flags.
fn configurations(workspace: &Path) -> Vec<PathBuf> {
    let home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let above = workspace.ancestors().skip(1).map(|folder| folder.join(".cargo"));
    let names = ["config", "config.toml"];
    let mut found: Vec<_> = above
        .chain(home)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .filter(|path| path.is_file())
        .collect();
    found.sort();
    found.dedup();
    found
}

/// This machine's C compiler, and the C library that becomes a part of a static program.
pub(super) fn host_c(workspace: &Path) -> Result<String> {
    let ask = |argument: &str| {
        let mut command = Command::new("cc");
        let output = cargo::clean(&mut command, workspace)
            .arg(argument)
            .output()
            .context("cc cannot be run: install gcc")?;
        ensure!(output.status.success(), "cc {argument}: {}", output.status);
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let library = ask("-print-file-name=libc.a")?;
    ensure!(library.starts_with('/'), "no libc.a for static programs: install libc6-dev");
    Ok(format!("{}\n{}\n", ask("--version")?, sha256_of(Path::new(&library))?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["crates/a/src", "lab/plant/src", "lab/src", "docs"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        for file in [
            "Cargo.toml",
            "Cargo.lock",
            "crates/a/src/lib.rs",
            "crates/a/src/style.css",
            "lab/plant/src/main.rs",
            "lab/src/lib.rs",
            "docs/a.md",
        ] {
            fs::write(dir.path().join(file), "text").unwrap();
        }
        dir
    }

    #[test]
    fn a_changed_byte_of_a_source_changes_the_key() {
        let tree = tree();
        let root = tree.path();
        let first = digest(root, "rustc 1").unwrap();
        assert_eq!(digest(root, "rustc 1").unwrap(), first);
        assert_eq!(digest(tests::tree().path(), "rustc 1").unwrap(), first, "another clone");
        assert_ne!(digest(root, "rustc 2").unwrap(), first);
        for file in [
            "Cargo.toml",
            "Cargo.lock",
            "crates/a/src/lib.rs",
            "crates/a/src/style.css",
            "lab/plant/src/main.rs",
        ] {
            fs::write(root.join(file), "texT").unwrap();
            assert_ne!(digest(root, "rustc 1").unwrap(), first, "{file}");
            fs::write(root.join(file), "text").unwrap();
        }
        assert_eq!(digest(root, "rustc 1").unwrap(), first);
        fs::rename(root.join("crates/a/src/style.css"), root.join("crates/a/src/s.css")).unwrap();
        assert_ne!(digest(root, "rustc 1").unwrap(), first, "a name");
    }

    #[test]
    fn what_is_not_built_in_does_not_change_the_key() {
        let tree = tree();
        let first = digest(tree.path(), "").unwrap();
        fs::write(tree.path().join("lab/src/lib.rs"), "other").unwrap();
        fs::write(tree.path().join("docs/a.md"), "other").unwrap();
        assert_eq!(digest(tree.path(), "").unwrap(), first);
    }
}
