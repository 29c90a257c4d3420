//! The oldest Rust that the workspace states: no crate that the binary is built from states a newer
//! one. `cargo deny` does not compare these.

use std::{
    collections::BTreeSet,
    io::Write,
    process::{Command, ExitCode},
};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::tree::root;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    rust_version: Option<String>,
}

/// Compares every crate of the binary and its build with the workspace.
pub(crate) fn run() -> Result<ExitCode> {
    let shipped =
        cargo(&["tree", "--package", "rtproof", "--edges", "no-dev", "--prefix", "none"])?;
    let shipped: BTreeSet<&str> =
        shipped.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    let metadata: Metadata =
        serde_json::from_str(&cargo(&["metadata", "--format-version=1", "--all-features"])?)?;
    let ours = metadata.packages.iter().find(|package| package.name == "rtproof");
    let ours = ours.and_then(|package| package.rust_version.as_deref());
    let ours = numbers(ours.context("Cargo.toml: no workspace.package.rust-version")?);
    let mut out = std::io::stdout().lock();
    let mut newer = 0;
    for Package { name, version, rust_version } in &metadata.packages {
        let is_shipped = shipped.iter().any(|line| line.starts_with(&format!("{name} v{version}")));
        let Some(wanted) = rust_version.as_deref().filter(|_| is_shipped) else { continue };
        if numbers(wanted) > ours {
            newer += 1;
            writeln!(
                out,
                "{name} {version} needs Rust {wanted}: pin an older version, or raise rust-version"
            )?;
        }
    }
    writeln!(out, "oldest Rust: {} crates in the binary, {newer} need a newer one", shipped.len())?;
    Ok(if newer == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn cargo(arguments: &[&str]) -> Result<String> {
    let output = Command::new(env!("CARGO"))
        .args(arguments)
        .arg("--locked")
        .current_dir(root())
        .output()
        .context("cannot run cargo")?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo {}: {}", arguments[0], stderr.trim());
    String::from_utf8(output.stdout).context("cargo printed something that is not UTF-8")
}

/// The numbers of a version, for comparing: `1.89` is `[1, 89, 0]`.
fn numbers(version: &str) -> [u64; 3] {
    let mut parts = version.split(['.', '-', '+']).map(|part| part.parse().unwrap_or(0));
    [(); 3].map(|()| parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(numbers("1.100") > numbers("1.89.2"));
        assert_eq!(numbers("1.89"), numbers("1.89.0"));
    }
}
