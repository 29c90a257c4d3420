//! QEMU: the machine's own for one CPU under icount, 10.0 or later for several.

use std::{fs, path::Path, path::PathBuf, process::Command};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    arch::Arch,
    cache::Cache,
    deb,
    fetch::{self, Newest, Package, Suite},
    pins,
};

/// The first version that brings up several CPUs under icount.
const RECENT: (u32, u32, u32) = (10, 0, 0);

/// A QEMU that can be started.
#[derive(Clone, Debug)]
pub struct Emulator {
    /// The program.
    pub program: PathBuf,
    /// Arguments that come first (`-L` folders of an unpacked one).
    pub arguments: Vec<String>,
    /// Version, e.g. (10, 0, 2).
    pub version: (u32, u32, u32),
}

impl Emulator {
    /// The installed QEMU.
    ///
    /// # Errors
    /// None is installed; says which package has it.
    pub fn installed(arch: Arch) -> Result<Self> {
        let Names { program, package, .. } = names(arch);
        let version = version(Path::new(program))
            .with_context(|| format!("no working {program}: install {package}"))?;
        Ok(Self { program: program.into(), arguments: Vec::new(), version })
    }

    /// A QEMU of version 10 or later: the installed one if it is, else unpacked into the cache.
    /// (7.2 hangs while it brings up a second CPU under icount.)
    ///
    /// # Errors
    /// It cannot be fetched.
    pub fn recent(arch: Arch, cache: &Cache) -> Result<Self> {
        if let Ok(installed) = Self::installed(arch)
            && installed.version >= RECENT
        {
            return Ok(installed);
        }
        let Names { program, section, newest, .. } = names(arch);
        let sets = pins::sets(section)?;
        let sets: Vec<&[Package]> = sets.iter().map(Vec::as_slice).collect();
        let fetched = fetch::fetch_set(cache, &sets, Some(&newest)).context("QEMU")?;
        let folder =
            cache.entry("qemu", &format!("{section}-{}", &fetched.digest[..16]), |place| {
                fs::create_dir(place)
                    .with_context(|| format!("{}: cannot make", place.display()))?;
                let members =
                    ["*/bin/qemu-system-*", "*/share/qemu/*", "*/share/seabios/*", "*/lib/ipxe/*"];
                fetched.debs.iter().try_for_each(|package| deb::unpack(package, place, &members))
            })?;
        let program = folder.join("usr/bin").join(program);
        let version = version(&program)?;
        ensure!(version >= RECENT, "{}: is {version:?}, expected 10 or later", program.display());
        let mut arguments = Vec::new();
        for data in ["share/qemu", "share/seabios", "lib/ipxe/qemu"] {
            arguments.push("-L".to_owned());
            arguments.push(folder.join("usr").join(data).display().to_string());
        }
        Ok(Self { program, arguments, version })
    }
}

struct Names {
    program: &'static str,
    package: &'static str,
    section: &'static str,
    newest: Newest,
}

fn names(arch: Arch) -> Names {
    let suite = Suite::BookwormBackports;
    // ipxe-qemu is not in backports; only network cards with a boot ROM want it.
    let newest = |names| Newest { suite, architecture: "amd64", names };
    match arch {
        Arch::X86_64 => Names {
            program: "qemu-system-x86_64",
            package: "qemu-system-x86",
            section: "qemu-x86",
            newest: newest(&[
                "qemu-system-x86",
                "qemu-system-common",
                "qemu-system-data",
                "seabios",
            ]),
        },
        Arch::Aarch64 | Arch::Armv7 => Names {
            program: match arch {
                Arch::Armv7 => "qemu-system-arm",
                _ => "qemu-system-aarch64",
            },
            package: "qemu-system-arm",
            section: "qemu-arm",
            newest: newest(&["qemu-system-arm", "qemu-system-common", "qemu-system-data"]),
        },
    }
}

/// Starts it once and reads its version.
fn version(program: &Path) -> Result<(u32, u32, u32)> {
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

    #[test]
    fn pins_are_there() {
        for &arch in Arch::ALL {
            assert!(!pins::sets(names(arch).section).unwrap().is_empty());
        }
    }
}
