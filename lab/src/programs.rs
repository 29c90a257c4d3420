//! Programs of the host (cyclictest, stress-ng), and such as are made here, with the libraries that
//! they load, for x86-64 guests.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use rtproof_guest::programs::{find, libraries};

/// Makes a program in an empty folder, by our rtproof where it needs one: its file.
pub type Make = fn(rtproof: &Path, folder: &Path) -> Result<PathBuf>;

/// Runs a command to its good end.
///
/// # Errors
/// It is not installed, or fails: the end of what it printed.
pub fn succeed(command: &mut Command) -> Result<()> {
    let words = format!("{command:?}");
    let output = command.stdin(Stdio::null()).output().with_context(|| words.clone())?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{words}: {}\n{}", output.status, said.trim());
    Ok(())
}

/// Compiles one source file in a folder; the words name the program as the file without ending.
///
/// # Errors
/// The compiler is not installed, or refuses the file.
pub fn compiled(folder: &Path, file: &str, source: &str, words: &[&str]) -> Result<PathBuf> {
    fs::write(folder.join(file), source)?;
    succeed(Command::new(words[0]).args(&words[1..]).current_dir(folder))?;
    Ok(folder.join(Path::new(file).with_extension("")))
}

/// Makes a program, and puts it into `bin` as `name` and its libraries below `root`.
///
/// # Errors
/// It cannot be made.
pub fn make(name: &str, make: Make, rtproof: &Path, bin: &Path, root: &Path) -> Result<()> {
    let folder = tempfile::tempdir().context("a folder for a program")?;
    let path = make(rtproof, folder.path()).with_context(|| format!("making {name}"))?;
    with_libraries(&path, &bin.join(name), root)
}

/// Copies a program into `bin` and its libraries below `root`, at the paths they have here.
///
/// # Errors
/// The program is not installed.
pub fn bring(program: &str, bin: &Path, root: &Path) -> Result<()> {
    let path = find(program).with_context(|| format!("{program} is missing: run `make deps`"))?;
    with_libraries(&path, &bin.join(program), root)
}

fn with_libraries(path: &Path, to: &Path, root: &Path) -> Result<()> {
    put(path, to)?;
    for library in libraries(path)? {
        put(&library, &root.join(library.strip_prefix("/")?))?;
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
