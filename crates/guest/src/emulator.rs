//! The installed QEMU.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use rtproof_host::program;

use crate::arch::Arch;

/// The first version that brings up several CPUs under icount; 7.2 hangs there.
pub const RECENT: (u32, u32, u32) = (10, 0, 0);

/// A QEMU that can be started.
#[derive(Clone, Debug)]
pub struct Emulator {
    pub program: PathBuf,
    /// Arguments that come first (`-L` folders of an unpacked one).
    pub arguments: Vec<String>,
    /// Version, e.g. (10, 0, 2).
    pub version: (u32, u32, u32),
}

/// The program that emulates an architecture, and the Debian package that has it.
pub const fn names(arch: Arch) -> (&'static str, &'static str) {
    match arch {
        Arch::X86_64 => ("qemu-system-x86_64", "qemu-system-x86"),
        Arch::Aarch64 => ("qemu-system-aarch64", "qemu-system-arm"),
        Arch::Armv7 => ("qemu-system-arm", "qemu-system-arm"),
    }
}

impl Emulator {
    /// The installed QEMU.
    ///
    /// # Errors
    /// None is installed; names the package that has it.
    pub fn installed(arch: Arch) -> Result<Self> {
        let (name, package) = names(arch);
        let program = program::find(name).with_context(|| {
            format!("QEMU for {arch} is missing; on Debian: apt-get install {package}")
        })?;
        let version = version(&program)
            .with_context(|| format!("no working {name}; on Debian: apt-get install {package}"))?;
        Ok(Self { program, arguments: Vec::new(), version })
    }
}

/// Starts it once and reads its version.
///
/// # Errors
/// It cannot be run, or prints no version.
pub fn version(program: &Path) -> Result<(u32, u32, u32)> {
    let output = Command::new(program)
        .arg("--version")
        .output()
        .with_context(|| format!("{}: cannot be run", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if let Some(package) = missing_library(&said) {
        bail!("{}: {}; install {package}", program.display(), said.trim());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    parse_version(&text).with_context(|| {
        format!("{} --version: {:?} has no version; {}", program.display(), text, said.trim())
    })
}

/// `QEMU emulator version 10.0.2 (Debian ...)`.
fn parse_version(text: &str) -> Option<(u32, u32, u32)> {
    let text = text.split("version ").nth(1)?;
    let text = text.split(|c: char| c != '.' && !c.is_ascii_digit()).next()?;
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)))
}

/// The package of the shared library that the loader misses, by Debian's rule for their names:
/// `libpmem.so.1` is in libpmem1, `libfuse3.so.3` in libfuse3-3.
fn missing_library(said: &str) -> Option<String> {
    let (_, rest) = said.split_once("error while loading shared libraries: ")?;
    let (library, _) = rest.split_once(": cannot open")?;
    let (name, version) = library.split_once(".so.")?;
    let hyphen = if name.ends_with(|c: char| c.is_ascii_digit()) { "-" } else { "" };
    Some(format!("{name}{hyphen}{version}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        let text = "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)\nCopyright";
        assert_eq!(parse_version(text), Some((7, 2, 22)));
        assert_eq!(parse_version("QEMU emulator version 11.0\n"), Some((11, 0, 0)));
        assert_eq!(parse_version("no"), None);
    }

    #[test]
    fn a_missing_library_is_named_by_its_package() {
        let said = |library: &str| {
            format!(
                "qemu: error while loading shared libraries: {library}: cannot open shared object"
            )
        };
        assert_eq!(missing_library(&said("libpmem.so.1")).unwrap(), "libpmem1");
        assert_eq!(missing_library(&said("libfuse3.so.3")).unwrap(), "libfuse3-3");
        assert_eq!(missing_library("Segmentation fault"), None);
    }
}
