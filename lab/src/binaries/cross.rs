//! Compilers for other processors out of Debian's packages, unpacked into the cache: nothing is
//! installed, and a toolchain of rustup on the same machine is not disturbed.
//!
//! Debian builds its standard libraries for them with its own rustc, and only that rustc can use
//! it: the workspace's cargo runs it, unless the workspace's toolchain has the target.

use std::{
    ffi::OsString,
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use rtproof_guest::Arch;
use sha2::{Digest, Sha256};

use super::{elf, pins};
use crate::cache::Cache;
use crate::deb;
use crate::fetch::{Newest, Package, fetch_set, hex};

/// Cache kind of the unpacked compilers.
const KIND: &str = "cross";

/// Changes when the folder is laid out differently.
const LAYOUT: &str = "1";

/// Members of the packages that are needed: no documents, no link-time optimiser. GNU stands for
/// [`Arch::gnu`].
const MEMBERS: &[&str] = &[
    "./lib/x86_64-linux-gnu/*",
    "./usr/GNU/*",
    "./usr/bin/GNU-ar",
    "./usr/bin/GNU-as",
    "./usr/bin/GNU-gcc-12",
    "./usr/bin/GNU-ld*",
    "./usr/bin/rustc",
    "./usr/lib/gcc-cross/GNU/12/cc1",
    "./usr/lib/gcc-cross/GNU/12/collect2",
    "./usr/lib/gcc-cross/GNU/12/crt*",
    "./usr/lib/gcc-cross/GNU/12/include*",
    "./usr/lib/gcc-cross/GNU/12/libgcc*",
    "./usr/lib/rustlib/*",
    "./usr/lib/x86_64-linux-gnu/*",
];

/// Its wrappers find the rest from where they are, for the folder is made elsewhere and then moved.
/// The assembler and the linker that gcc starts need the same libraries.
const GCC: &str = r#"#!/bin/sh
root=${0%/*}/..
LD_LIBRARY_PATH=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH
exec "$root/usr/bin/GNU-PROGRAM" OPTIONS "$@"
"#;

/// There is no link-time optimiser, so there is no plugin for it.
const GCC_OPTIONS: &str = "--sysroot=\"$root\" -fno-use-linker-plugin ";

/// GNU ld 2.40 loses the Thumb bit of glibc's memcpy in a static program of more than 16 MiB of
/// code, where it makes veneers: the program crashes before main. gold makes none for short jumps.
const ARMV7_OPTIONS: &str = "-fuse-ld=lld -B\"$root/bin\" ";

/// That linker in its package.
const LLD: &str = "./usr/lib/llvm-*/bin/lld";

/// rustc also starts this machine's own linker, which must not see these libraries: they are handed
/// to the loader, not left in the environment.
const RUSTC: &str = r#"#!/bin/sh
root=${0%/*}/..
libraries=$root/usr/lib/x86_64-linux-gnu:$root/lib/x86_64-linux-gnu
exec /lib64/ld-linux-x86-64.so.2 --library-path "$libraries" \
    "$root/usr/bin/rustc" --sysroot "$root/usr" "$@"
"#;

/// An unpacked compiler.
#[derive(Debug)]
pub(super) struct Cross {
    arch: Arch,
    bin: PathBuf,
    has_rustc: bool,
}

impl Cross {
    /// Variables for cargo and for the build script that compiles SQLite.
    pub(super) fn environment(&self) -> Vec<(String, OsString)> {
        let tool = |name: &str| self.bin.join(name).into_os_string();
        let target = self.arch.target().replace('-', "_");
        let mut all = vec![
            (format!("CARGO_TARGET_{}_LINKER", target.to_uppercase()), tool("gcc")),
            (format!("CC_{target}"), tool("gcc")),
            (format!("AR_{target}"), tool("ar")),
        ];
        if self.has_rustc {
            all.push(("RUSTC".to_owned(), tool("rustc")));
        }
        all
    }
}

/// What tells this compiler from others, without fetching it: its pins. A newer one that had to be
/// taken because the pins have gone counts as the same until the pins are renewed.
pub(super) fn identity(arch: Arch, with_rustc: bool) -> String {
    let mut digest = Sha256::new();
    digest.update(format!("{LAYOUT} {with_rustc} {MEMBERS:?} {GCC} {} {RUSTC}", gcc_options(arch)));
    for (pins, _) in sets(arch, with_rustc) {
        for pin in pins {
            digest.update(pin.sha256);
        }
    }
    hex(&digest.finalize())
}

fn sets(arch: Arch, with_rustc: bool) -> Vec<(&'static [Package], Newest)> {
    let (gcc, std) = match arch {
        Arch::Armv7 => (pins::GCC_ARMHF, pins::STD_ARMHF),
        Arch::Aarch64 | Arch::X86_64 => (pins::GCC_ARM64, pins::STD_ARM64),
    };
    let mut sets = vec![gcc, (pins::GCC_LIBRARIES, pins::GCC_LIBRARIES_NEWEST)];
    if with_rustc || arch == Arch::Armv7 {
        sets.push((pins::RUSTC_LIBRARIES, pins::RUSTC_LIBRARIES_NEWEST));
        sets.push((pins::LLVM, pins::LLVM_NEWEST));
    }
    if arch == Arch::Armv7 {
        sets.push(pins::LLD);
    }
    if with_rustc {
        sets.push((pins::RUSTC, pins::RUSTC_NEWEST));
        sets.push(std);
    }
    sets
}

/// Fetches and unpacks what is missing.
pub(super) fn ready(cache: &Cache, arch: Arch, with_rustc: bool) -> Result<Cross> {
    let key = format!("{}-{}", arch.name(), &identity(arch, with_rustc)[..32]);
    let entry = cache
        .entry(KIND, &key, |place| {
            let mut debs = gather(cache, arch, with_rustc, true)?;
            if with_rustc && !is_one_version(&debs) {
                // Some of the pins are still available, or in the cache, and some have gone.
                debs = gather(cache, arch, with_rustc, false)?;
                ensure!(is_one_version(&debs), "rustc and its libraries differ in version");
            }
            unpack(&debs, place, arch, with_rustc)?;
            // Unpacked they are not needed again, and they are large.
            for deb in debs {
                let _ = fs::remove_file(deb);
            }
            Ok(())
        })
        .with_context(|| format!("the cross compiler for {}", arch.name()))?;
    Ok(Cross { arch, bin: entry.join("bin"), has_rustc: with_rustc })
}

/// All packages: the pinned ones where they can be had, or the newest.
fn gather(cache: &Cache, arch: Arch, with_rustc: bool, are_pinned: bool) -> Result<Vec<PathBuf>> {
    let mut debs = Vec::new();
    for (pins, newest) in sets(arch, with_rustc) {
        let pinned: &[&[Package]] = if are_pinned { &[pins] } else { &[] };
        debs.extend(fetch_set(cache, pinned, Some(&newest))?.debs);
    }
    Ok(debs)
}

/// Whether compiler and standard libraries come from one build of Debian.
fn is_one_version(debs: &[PathBuf]) -> bool {
    let mut versions: Vec<String> = debs
        .iter()
        .filter_map(|deb| Some(deb.file_name()?.to_string_lossy().into_owned()))
        .filter(|name| name.starts_with("rustc-web_") || name.starts_with("libstd-rust-web"))
        .filter_map(|name| Some(name.split('_').nth(1)?.to_owned()))
        .collect();
    versions.dedup();
    versions.len() == 1
}

fn gcc_options(arch: Arch) -> String {
    let more = if arch == Arch::Armv7 { ARMV7_OPTIONS } else { "" };
    format!("{GCC_OPTIONS}{more}")
}

fn unpack(debs: &[PathBuf], place: &Path, arch: Arch, with_rustc: bool) -> Result<()> {
    let bin = place.join("bin");
    fs::create_dir_all(&bin).with_context(|| format!("{}: cannot be made", bin.display()))?;
    let members: Vec<String> =
        MEMBERS.iter().map(|member| member.replace("GNU", arch.gnu())).collect();
    let mut members: Vec<&str> = members.iter().map(String::as_str).collect();
    if arch == Arch::Armv7 {
        members.push(LLD);
    }
    for deb in debs {
        deb::unpack(deb, place, &members)?;
    }
    if arch == Arch::Armv7 {
        link_lld(place)?;
    }
    let gcc = |program: &str, options: &str| {
        let text = GCC.replace("GNU", arch.gnu()).replace("PROGRAM", program);
        text.replace("OPTIONS ", options)
    };
    let mut wrappers = vec![("gcc", gcc("gcc-12", &gcc_options(arch))), ("ar", gcc("ar", ""))];
    if with_rustc {
        wrappers.push(("rustc", RUSTC.to_owned()));
    }
    for (name, text) in wrappers {
        let path = bin.join(name);
        fs::write(&path, text)
            .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
            .with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    try_out(place, arch, with_rustc)
}

/// gcc looks for lld under the name that says what it is to be.
fn link_lld(place: &Path) -> Result<()> {
    let libraries = place.join("usr/lib");
    let listed = fs::read_dir(&libraries)
        .with_context(|| format!("{}: cannot be listed", libraries.display()))?;
    let names = listed.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut found = names.filter(|name| libraries.join(name).join("bin/lld").is_file());
    let version = found.next().context("the packages have no lld")?;
    let link = place.join("bin/ld.lld");
    symlink(format!("../usr/lib/{version}/bin/lld"), &link)
        .with_context(|| format!("{}: cannot be made", link.display()))
}

/// Compiles and links: a file that is missing shows here, not at the end of a build of minutes.
fn try_out(place: &Path, arch: Arch, with_rustc: bool) -> Result<()> {
    let dir = tempfile::tempdir().context("no temporary folder for a trial of the compiler")?;
    let at = |name: &str| dir.path().join(name);
    fs::write(at("a.c"), "#include <stdio.h>\nint main(void) { return puts(\"\") < 0; }\n")?;
    fs::write(at("a.rs"), "fn main() { println!(); }\n")?;
    let gcc = place.join("bin/gcc");
    let mut trials = vec![("gcc", Command::new(&gcc))];
    trials[0].1.args(["-O2", "-static", "-o"]).arg(at("gcc")).arg(at("a.c"));
    if with_rustc {
        let mut linker = OsString::from("-Clinker=");
        linker.push(&gcc);
        let mut rustc = Command::new(place.join("bin/rustc"));
        rustc
            .args(["--target", arch.target(), "-Ctarget-feature=+crt-static"])
            .arg(linker)
            .arg("-o")
            .arg(at("rustc"))
            .arg(at("a.rs"));
        trials.push(("rustc", rustc));
    }
    for (name, mut command) in trials {
        let output = command
            .env_remove("LD_LIBRARY_PATH")
            .output()
            .with_context(|| format!("{name} of the cross compiler cannot be run"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "{name} of the cross compiler makes no program: {}\n{}",
            output.status,
            said.trim()
        );
        elf::check_static(&fs::read(at(name))?, arch)
            .with_context(|| format!("trial program of {name}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn pins_are_complete_and_of_one_version() {
        for arch in [Arch::Aarch64, Arch::Armv7] {
            let debs: Vec<PathBuf> = sets(arch, true)
                .iter()
                .flat_map(|(pins, _)| pins.iter())
                .map(|pin| PathBuf::from(pin.file_name()))
                .collect();
            assert_eq!(debs.len(), if arch == Arch::Armv7 { 29 } else { 28 });
            assert!(is_one_version(&debs));
            let other = PathBuf::from("libstd-rust-web-dev_1.97.0_arm64.deb");
            assert!(!is_one_version(&[debs, vec![other]].concat()));
            for (pins, newest) in sets(arch, true) {
                assert_eq!(pins.len(), newest.names.len());
                for (pin, name) in pins.iter().zip(newest.names) {
                    assert!(pin.path.ends_with(".deb") && pin.path.starts_with("pool/"), "{pin:?}");
                    assert!(pin.name.starts_with(name.trim_end_matches('*')), "{pin:?}: {name}");
                    assert_eq!(pin.sha256.len(), 64, "{pin:?}");
                }
            }
        }
    }

    #[test]
    fn one_with_rustc_is_another() {
        let all = [(Arch::Aarch64, true), (Arch::Aarch64, false), (Arch::Armv7, true)];
        let identities: HashSet<_> =
            all.iter().map(|(arch, rustc)| identity(*arch, *rustc)).collect();
        assert_eq!(identities.len(), all.len());
        let said = |arch, has_rustc| {
            let cross = Cross { arch, bin: "/c".into(), has_rustc };
            let all = cross.environment();
            all.into_iter().map(|(name, value)| format!("{name}={}", value.display())).collect()
        };
        let with: Vec<String> = said(Arch::Armv7, true);
        let linker = "CARGO_TARGET_ARMV7_UNKNOWN_LINUX_GNUEABIHF_LINKER=/c/gcc".to_owned();
        assert!(with.contains(&linker) && with.contains(&"RUSTC=/c/rustc".to_owned()), "{with:?}");
        let without: Vec<String> = said(Arch::Aarch64, false);
        assert!(!without.iter().any(|line| line.starts_with("RUSTC")), "{without:?}");
    }

    #[test]
    #[ignore = "190 MB from Debian's servers: `make lab-all` and CI run it"]
    fn without_pins_the_newest_packages_make_a_compiler_too() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(&dir.path().join("cache")).unwrap();
        let debs = gather(&cache, Arch::Aarch64, true, false).unwrap();
        assert!(is_one_version(&debs), "{debs:?}");
        unpack(&debs, &dir.path().join("cross"), Arch::Aarch64, true).unwrap();
    }
}
