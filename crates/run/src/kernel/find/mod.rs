//! What the distribution of this machine offers as a real-time kernel, asked through its own
//! package manager. To add one: its file and a line of `MANAGERS`.

mod apk;
mod apt;
mod dnf;
mod manager;
mod pacman;
mod table;
mod zypper;

use rtproof_host::program;
use rtproof_results::kernel::find::{Offers, SCHEMA};

pub use manager::FindError;
use manager::{Manager, Queries};

/// In the order in which they are looked for: a machine that has two has its own first.
const MANAGERS: &[&Manager] =
    &[&apt::MANAGER, &dnf::MANAGER, &zypper::MANAGER, &apk::MANAGER, &pacman::MANAGER];

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
        let all: Vec<&str> =
            [&package.name].into_iter().chain(&package.with).map(String::as_str).collect();
        package.remove = format!("{} {}", manager.remove, all.join(" "));
    }
    packages.sort_by_key(|package| !package.follows);
    Ok(Offers { schema: SCHEMA, manager: manager.id.into(), queries: queries.commands, packages })
}

/// Whether a name holds a version: digits, a dot, digits.
fn has_version(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.windows(3).any(|of| of[0].is_ascii_digit() && of[1] == b'.' && of[2].is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use manager::is_realtime;

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
