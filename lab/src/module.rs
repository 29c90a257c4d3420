//! The test-only kernel module that plants what user space cannot (interrupts or preemption off,
//! long interrupts, SMIs); built against the headers of each guest kernel.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use anyhow::{Context, Result, ensure};
use sha2::{Digest, Sha256};

use crate::cache::Cache;
use crate::fetch::{Archive, Newest, Package, Suite};
use crate::kernels::Kernel;
use crate::{deb, fetch};

const SOURCES: &[(&str, &str)] = &[
    ("rtproof_plant.c", include_str!("../module/rtproof_plant.c")),
    ("smi.h", include_str!("../module/smi.h")),
    ("Kbuild", include_str!("../module/Kbuild")),
];
const FILE: &str = "rtproof_plant.ko";

/// Settings of a kernel's build that ask for what the host's compiler and tools may not have, and
/// that a module does without: type information, gcc plugins, an option of gcc 13.
const WITHOUT: &[&str] = &[
    "CONFIG_DEBUG_INFO_BTF_MODULES=",
    "CONFIG_GCC_PLUGINS=",
    "CONFIG_CC_HAS_MIN_FUNCTION_ALIGNMENT=",
];

/// Tools of kbuild that are linked to the libc of the kernel's own suite: the variable that names
/// each to make, and its place below the headers.
const TOOLS: &[(&str, &str)] = &[
    ("objtool", "tools/objtool/objtool.real-x86"),
    ("MODPOST", "scripts/mod/modpost.real-lsb-64"),
];

/// libc of the newest suite that kernels come from, for tools that the host's is too old for.
const LIBC: Package = Package {
    name: "libc6",
    version: "2.41-12+deb13u4",
    path: "pool/main/g/glibc/libc6_2.41-12+deb13u4_amd64.deb",
    sha256: "967aa62605721081c3eb2a17650611a792aa802d76a6511d1840242623d204c9",
    archive: Archive::Debian,
};
const LIBC_NEWEST: Newest =
    Newest { suite: Suite::Trixie, architecture: "amd64", names: &["libc6"] };

/// Builds the module for a kernel, or takes it from the cache.
///
/// # Errors
/// Headers cannot be fetched, or the compiler fails.
pub fn build(kernel: &Kernel, cache: &Cache) -> Result<PathBuf> {
    let headers = kernel.headers(cache)?;
    let failed = || format!("kernel {}: the module cannot be built", kernel.id);
    let folder = cache.entry("module", &key(&headers), |place| {
        fs::create_dir(place).with_context(|| format!("{}: cannot make", place.display()))?;
        make(&headers, place, cache).with_context(failed)
    })?;
    Ok(folder.join(FILE))
}

/// The folder of the headers tells release and packages; this file tells how it is built.
fn key(headers: &Path) -> String {
    let mut digest = Sha256::new();
    let sources = SOURCES.iter().map(|(_, text)| *text);
    for part in sources.chain([include_str!("module.rs"), &*headers.to_string_lossy()]) {
        digest.update(part);
        digest.update([0]);
    }
    let hex: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let name = headers.file_name().unwrap_or_default().to_string_lossy();
    format!("{}-{hex}", name.trim_start_matches("linux-headers-"))
}

fn make(headers: &Path, place: &Path, cache: &Cache) -> Result<()> {
    let work = tempfile::tempdir().context("a folder to build the module in")?;
    for (name, text) in SOURCES {
        write(&work.path().join(name), text)?;
    }
    let mut command = Command::new("make");
    command.arg("-C").arg(headers).arg(format!("M={}", work.path().display()));
    command.args(["CC=gcc", "modules"]).args(WITHOUT).args(wrapped(headers, work.path(), cache)?);
    // What a make above this one hands down would reach this one's settings.
    command.env_remove("MAKEFLAGS").env_remove("MFLAGS").env_remove("MAKELEVEL");
    let output = command.output().context("make cannot be run: install make and gcc")?;
    let built = work.path().join(FILE);
    ensure!(
        output.status.success() && built.is_file(),
        "make -C {} failed; are make and gcc installed?\n{}",
        headers.display(),
        tail(&output)
    );
    let kept = place.join(FILE);
    fs::copy(&built, &kept).with_context(|| format!("{}: cannot write", kept.display()))?;
    Ok(())
}

/// Settings that make kbuild run its tools under a newer libc, where the host's is too old.
fn wrapped(headers: &Path, work: &Path, cache: &Cache) -> Result<Vec<String>> {
    let mut settings = Vec::new();
    for (variable, place) in TOOLS {
        let tool = headers.join(place);
        if !tool.is_file() || !wants_newer_libc(&tool)? {
            continue;
        }
        let libc = newer_libc(cache)?;
        let libc = libc.display();
        let script = format!(
            "#!/bin/sh\nexec '{libc}/ld-linux-x86-64.so.2' --library-path '{libc}' '{}' \"$@\"\n",
            tool.display()
        );
        let wrapper = work.join(format!("run-{variable}"));
        write(&wrapper, &script)?;
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))
            .with_context(|| format!("{}: cannot be made a program", wrapper.display()))?;
        settings.push(format!("{variable}={}", wrapper.display()));
    }
    Ok(settings)
}

/// Whether the loader turns the tool away.
fn wants_newer_libc(tool: &Path) -> Result<bool> {
    let output = Command::new(tool)
        .arg("--help")
        .output()
        .with_context(|| format!("{}: cannot be run", tool.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    Ok(said.contains("version `GLIBC_") && said.contains("not found"))
}

/// The folder of a newer libc and its loader.
fn newer_libc(cache: &Cache) -> Result<PathBuf> {
    let fetched = fetch::fetch_set(cache, &[&[LIBC]], Some(&LIBC_NEWEST)).context("libc6")?;
    let folder = cache.entry("libc", &fetched.digest[..16], |place| {
        fs::create_dir(place).with_context(|| format!("{}: cannot make", place.display()))?;
        fetched.debs.iter().try_for_each(|deb| deb::unpack(deb, place, &["./usr/lib/*"]))
    })?;
    Ok(folder.join("usr/lib/x86_64-linux-gnu"))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("{}: cannot write", path.display()))
}

/// The last lines of what a command said.
fn tail(output: &Output) -> String {
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let text = String::from_utf8_lossy(&said);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_the_release_and_changes_with_the_headers() {
        let one = key(Path::new("/c/a/usr/src/linux-headers-6.1.0-50-rt-amd64"));
        let other = key(Path::new("/c/b/usr/src/linux-headers-6.1.0-50-rt-amd64"));
        assert!(one.starts_with("6.1.0-50-rt-amd64-"), "{one}");
        assert_ne!(one, other);
    }

    #[test]
    fn a_tool_that_runs_needs_no_other_libc() {
        assert!(!wants_newer_libc(Path::new("/bin/true")).unwrap());
    }
}
