//! What the distribution of this machine offers as a real-time kernel, asked through its own
//! package manager. To add one: its file and a line of [`MANAGERS`].

mod apk;
mod apt;
mod dnf;
mod pacman;
mod table;
mod zypper;

use std::process::Stdio;

use rtproof_host::program;
use rtproof_results::kernel::find::{KernelPackage, Offers, SCHEMA};

/// A package manager.
struct Manager {
    id: &'static str,
    /// The program whose presence shows that the machine has it.
    program: &'static str,
    ask: fn(&mut Queries) -> Result<Vec<KernelPackage>, FindError>,
    /// What comes before the package's name to install and to remove it.
    install: &'static str,
    remove: &'static str,
}

/// In the order in which they are looked for: a machine that has two has its own first.
const MANAGERS: &[&Manager] =
    &[&apt::MANAGER, &dnf::MANAGER, &zypper::MANAGER, &apk::MANAGER, &pacman::MANAGER];

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// None of the managers is here.
    #[error(
        "no package manager found ({0}): what the distribution offers is unknown; build a kernel \
         with `rtproof kernel build`"
    )]
    NoManager(String),
    /// It could not be started.
    #[error("{command}: {source}")]
    Start {
        /// Its command.
        command: String,
        /// Why not.
        source: std::io::Error,
    },
    /// It failed.
    #[error("{command}: exit status {status}: {said}")]
    Failed {
        /// Its command.
        command: String,
        /// How it ended.
        status: String,
        /// Its last lines.
        said: String,
    },
    /// It answered something else than expected.
    #[error("{command}: unexpected answer: {line:?}")]
    Answer {
        /// Its command.
        command: String,
        /// The line.
        line: String,
    },
}

/// The commands that were run.
#[derive(Debug, Default)]
struct Queries {
    commands: Vec<String>,
}

impl Queries {
    /// Runs one and gives what it writes to stdout. An exit status of `empty` means "none".
    fn ask(&mut self, words: &[&str], empty: Option<i32>) -> Result<String, FindError> {
        let command = words.join(" ");
        self.commands.push(command.clone());
        let start = |source| FindError::Start { command: command.clone(), source };
        let output = program::command(words[0])
            .map_err(start)?
            .args(&words[1..])
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(start)?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() || output.status.code().is_some_and(|is| Some(is) == empty) {
            return Ok(stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
        let status = output.status.code().map_or("none: a signal".into(), |is| is.to_string());
        let said = lines[lines.len().saturating_sub(3)..].join("; ");
        Err(FindError::Failed { command, status, said })
    }
}

/// Asks the machine's package manager. Nothing is installed or refreshed.
///
/// # Errors
/// No manager is here, or it failed.
pub fn find() -> Result<Offers, FindError> {
    let manager = MANAGERS.iter().find(|manager| program::find(manager.program).is_ok());
    let manager = manager.ok_or_else(|| {
        let names: Vec<&str> = MANAGERS.iter().map(|manager| manager.program).collect();
        FindError::NoManager(names.join(", "))
    })?;
    let mut queries = Queries::default();
    let mut packages = (manager.ask)(&mut queries)?;
    for package in &mut packages {
        package.follows = !has_version(&package.name);
        package.install = format!("{} {}", manager.install, package.name);
        package.remove = format!("{} {}", manager.remove, package.name);
    }
    packages.sort_by_key(|package| !package.follows);
    Ok(Offers { schema: SCHEMA, manager: manager.id.into(), queries: queries.commands, packages })
}

/// Whether a name holds a version: digits, a dot, digits.
fn has_version(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.windows(3).any(|of| of[0].is_ascii_digit() && of[1] == b'.' && of[2].is_ascii_digit())
}

/// Whether a name is a real-time kernel's: a part of it says so, and none says that it is
/// something beside the kernel.
fn is_realtime(name: &str) -> bool {
    let parts: Vec<&str> = name.split('-').collect();
    let has = |words: &[&str]| parts.iter().any(|part| words.contains(part));
    has(&["rt", "realtime", "preempt_rt", "rt64"])
        && !has(&[
            "dbg",
            "debug",
            "debuginfo",
            "unsigned",
            "headers",
            "devel",
            "doc",
            "docs",
            "tools",
            "dev",
            "source",
            "modules",
            "selftests",
            "kvm",
            "template",
            "base",
            "vdso",
            "extra",
            "internal",
            "core",
            "matched",
        ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kernels_are_told_from_those_of_their_parts() {
        for name in ["linux-image-rt-amd64", "kernel-rt", "linux-rt-lts", "linux-image-realtime"] {
            assert!(is_realtime(name) && !has_version(name), "{name}");
        }
        for name in ["linux-image-rt-amd64-dbg", "kernel-rt-devel", "linux-headers-rt-amd64"] {
            assert!(!is_realtime(name), "{name}");
        }
        assert!(!is_realtime("linux-image-cart-amd64"));
        assert!(has_version("linux-image-6.1.0-56-rt-amd64"));
    }

    #[test]
    fn a_manager_that_fails_is_an_error_and_one_that_has_none_is_not() {
        let mut queries = Queries::default();
        assert_eq!(queries.ask(&["sh", "-c", "echo a; exit 1"], Some(1)).unwrap(), "a\n");
        let error = queries.ask(&["sh", "-c", "echo no net >&2; exit 4"], Some(1)).unwrap_err();
        assert!(error.to_string().ends_with("exit status 4: no net"), "{error}");
        assert!(queries.ask(&["no-such-program-here"], None).is_err());
        assert_eq!(queries.commands.len(), 3);
    }
}
