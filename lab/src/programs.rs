//! Programs of the host (cyclictest, stress-ng) with the libraries that they load, for x86-64
//! guests.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result, bail};

/// Copies a program into `bin` and its libraries below `root`, at the paths they have here.
///
/// # Errors
/// The program is not installed.
pub fn bring(program: &str, bin: &Path, root: &Path) -> Result<()> {
    let found = std::env::var_os("PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file());
    let Some(path) = found else {
        bail!("{program} is not installed: run `make deps`");
    };
    let output = Command::new("ldd").arg(&path).output().context("run ldd")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let libraries = text
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
        .map(|word| word.trim_end_matches(':').to_owned());
    put(&path, &bin.join(program))?;
    for library in libraries {
        put(Path::new(&library), &root.join(library.trim_start_matches('/')))?;
    }
    Ok(())
}

/// The file itself, not a link to it.
fn put(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).with_context(|| format!("{}: copy to {}", from.display(), to.display()))?;
    Ok(())
}
