//! Debian packages unpacked without dpkg's database, only the members that are wanted.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

/// Unpacks the members that match one of the shell patterns (`./boot/*`; all of them when there
/// is no pattern) below `into`, which exists. A pattern that matches nothing is no error.
///
/// # Errors
/// The archive is broken, or `into` cannot be written.
pub fn unpack(deb: &Path, into: &Path, members: &[&str]) -> Result<()> {
    let failed = || format!("{}: cannot be unpacked into {}", deb.display(), into.display());
    let mut archive = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(deb)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("dpkg-deb cannot be run: the lab needs Debian's dpkg")?;
    let stream = archive.stdout.take().with_context(failed)?;
    let unpacked = Command::new("tar")
        .env("LC_ALL", "C")
        .args(["-x", "--no-same-owner", "--wildcards", "-C"])
        .arg(into)
        .arg("--")
        .args(members)
        .stdin(stream)
        .output()
        .context("tar cannot be run: install tar");
    let archive = archive.wait_with_output().with_context(failed)?;
    let unpacked = unpacked?;
    let said = String::from_utf8_lossy(&archive.stderr);
    ensure!(archive.status.success(), "{}: {}; remove the file", failed(), said.trim());
    let said = String::from_utf8_lossy(&unpacked.stderr);
    let is_miss = |line: &str| {
        line.ends_with(": Not found in archive") || line.contains("Exiting with failure status")
    };
    let is_fine = unpacked.status.success() || said.lines().all(is_miss);
    ensure!(is_fine, "{}: {}", failed(), said.trim());
    Ok(())
}
