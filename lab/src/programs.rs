//! Programs of the host (cyclictest, stress-ng), and such as are made here, with the libraries that
//! they load, for x86-64 guests.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use rtproof_guest::inside::{find_program, libraries};

use crate::cache::Cache;
use crate::fetch::{Newest, Package};
use crate::{deb, fetch, pins};

/// Where Debian's packages for x86-64 have their libraries.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";

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

/// Unpacks a section of the pinned packages, or the newest of them, into a folder: the program in
/// it at a path. Its libraries lie beside it, and nothing is installed.
///
/// # Errors
/// The packages cannot be fetched, or have no such program.
pub fn packaged(folder: &Path, section: &str, newest: &Newest, path: &str) -> Result<PathBuf> {
    let sets = pins::sets(section)?;
    let sets: Vec<&[Package]> = sets.iter().map(Vec::as_slice).collect();
    let fetched = fetch::fetch_set(&Cache::open()?, &sets, Some(newest))?;
    for package in &fetched.debs {
        deb::unpack(package, folder, &[&format!("./{path}"), &format!("./{LIBRARIES}/*")])?;
    }
    let program = folder.join(path);
    ensure!(program.is_file(), "[{section}] of lab/src/kernels/pins.txt has no {path}");
    Ok(program)
}

/// Makes a program, and puts it into `bin` as `name` and its libraries below `root`.
pub fn make(name: &str, make: Make, rtproof: &Path, bin: &Path, root: &Path) -> Result<()> {
    let folder = tempfile::tempdir().context("a folder for a program")?;
    let path = make(rtproof, folder.path()).with_context(|| format!("making {name}"))?;
    put(&path, &bin.join(name))?;
    let own = folder.path().join(LIBRARIES);
    let found = if own.is_dir() { libraries_beside(&path, &own)? } else { libraries(&path)? };
    for library in found {
        let place = library.strip_prefix(folder.path()).or_else(|_| library.strip_prefix("/"))?;
        put(&library, &root.join(place))?;
    }
    Ok(())
}

/// The libraries that a program loads, some of them from a folder of its own.
fn libraries_beside(program: &Path, own: &Path) -> Result<Vec<PathBuf>> {
    let mut ldd = Command::new("ldd");
    let output = ldd.env("LD_LIBRARY_PATH", own).arg(program).output().context("ldd")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let missing = text.lines().find(|line| line.ends_with("=> not found"));
    ensure!(missing.is_none(), "{}: a library is missing: {missing:?}", program.display());
    let paths = text.split_whitespace().filter(|word| word.starts_with('/'));
    Ok(paths.map(|path| PathBuf::from(path.trim_end_matches(':'))).collect())
}

/// Copies a program into `bin` and its libraries below `root`, at the paths they have here.
///
/// # Errors
/// The program is not installed.
pub fn bring(program: &str, bin: &Path, root: &Path) -> Result<()> {
    let path =
        find_program(program).with_context(|| format!("{program} is missing: run `make deps`"))?;
    put(&path, &bin.join(program))?;
    bring_libraries(&path, root)
}

/// Copies the libraries that a program loads below `root`, at the paths they have here; none for a
/// static one.
///
/// # Errors
/// One cannot be copied.
pub fn bring_libraries(program: &Path, root: &Path) -> Result<()> {
    for library in libraries(program)? {
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
