//! A QEMU that brings up several CPUs under icount, unpacked where the installed one is older.

use std::fs;

use anyhow::{Context, Result, ensure};
use rtproof_guest::{Arch, Emulator, RECENT};

use crate::cache::Cache;
use crate::fetch::{Newest, Package, Suite};
use crate::{deb, fetch, pins};

/// A QEMU of version 10 or later: the installed one if it is, else unpacked into the cache.
pub fn recent(arch: Arch, cache: &Cache) -> Result<Emulator> {
    if let Ok(installed) = Emulator::installed(arch)
        && installed.version >= RECENT
    {
        return Ok(installed);
    }
    let (section, newest) = packages(arch);
    let sets = pins::sets(section)?;
    let sets: Vec<&[Package]> = sets.iter().map(Vec::as_slice).collect();
    let fetched = fetch::fetch_set(cache, &sets, Some(&newest)).context("QEMU")?;
    let folder = cache.entry("qemu", &format!("{section}-{}", &fetched.digest[..16]), |place| {
        fs::create_dir(place).with_context(|| format!("{}: cannot make", place.display()))?;
        let members =
            ["*/bin/qemu-system-*", "*/share/qemu/*", "*/share/seabios/*", "*/lib/ipxe/*"];
        fetched.debs.iter().try_for_each(|package| deb::unpack(package, place, &members))
    })?;
    let program = folder.join("usr/bin").join(rtproof_guest::program_and_package(arch).0);
    let version = rtproof_guest::version(&program)?;
    ensure!(version >= RECENT, "{}: is {version:?}, expected 10 or later", program.display());
    let mut arguments = Vec::new();
    for data in ["share/qemu", "share/seabios", "lib/ipxe/qemu"] {
        arguments.push("-L".to_owned());
        arguments.push(folder.join("usr").join(data).display().to_string());
    }
    Ok(Emulator { program, arguments, version })
}

fn packages(arch: Arch) -> (&'static str, Newest) {
    let suite = Suite::BookwormBackports;
    // ipxe-qemu is not in backports; only network cards with a boot ROM want it.
    let newest = |names| Newest { suite, architecture: "amd64", names };
    match arch {
        Arch::X86_64 => (
            "qemu-x86",
            newest(&["qemu-system-x86", "qemu-system-common", "qemu-system-data", "seabios"]),
        ),
        Arch::Aarch64 | Arch::Armv7 => {
            ("qemu-arm", newest(&["qemu-system-arm", "qemu-system-common", "qemu-system-data"]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_are_there() {
        for &arch in Arch::ALL {
            assert!(!pins::sets(packages(arch).0).unwrap().is_empty());
        }
    }
}
