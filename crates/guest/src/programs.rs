//! Programs of this machine and the libraries that they load, for guests of the same architecture.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

/// Where a program is: its path, or its name in a folder of PATH.
pub fn find(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    std::env::var_os("PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// The libraries that a program loads at its start, its loader among them; none: it is static.
///
/// # Errors
/// ldd is missing, or one of the libraries is.
pub fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("ldd cannot be run")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if let Some(line) = text.lines().find(|line| line.ends_with("=> not found")) {
        bail!("{}: a library is missing: {}", program.display(), line.trim());
    }
    Ok(text
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
        .map(|word| PathBuf::from(word.trim_end_matches(':')))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_the_machine_is_found_with_its_libraries() {
        let sh = find("sh").unwrap();
        assert_eq!(find(&sh.display().to_string()), Some(sh.clone()));
        assert_eq!(find("no-such-program"), None);
        // Static on some machines; then there is nothing to find.
        for library in libraries(&sh).unwrap() {
            assert!(library.is_absolute() && library.exists(), "{library:?}");
        }
    }
}
