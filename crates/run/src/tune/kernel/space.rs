//! Whether there is room, before anything is put in place: a full /boot is a bad place to find out.

use anyhow::{Context as _, ensure};
use rtproof_host::{
    boot::{self, Loader},
    tune::{Change, Machine, STAGING},
};

use super::staged::LIBRARY as MODULES;

/// An initial RAM disk whose like is not there: the usual size of a distribution's.
const INITRD_BYTES: u64 = 64_000_000;
/// What stays free: a file system that is full to the last block is of no use.
const REST_BYTES: u64 = 1_000_000;

/// Whether so much can be prepared.
pub(super) fn check_staging(machine: &Machine<'_>, bytes: u64) -> anyhow::Result<()> {
    fits(machine, STAGING, bytes, "to prepare the kernel")
}

/// Whether all of it fits where it is put. What is prepared on the same disk is there already.
pub(super) fn check(
    machine: &Machine<'_>,
    loader: &Loader,
    changes: &[Change],
) -> anyhow::Result<()> {
    let (mut of_boot, mut of_modules, mut made) = (0, 0, 0);
    for change in changes {
        match change {
            Change::Placed { path, bytes, .. } if path.starts_with(MODULES) => of_modules += bytes,
            Change::Placed { bytes, .. } => of_boot += bytes,
            Change::Initrd { .. } => made += initrd_bytes(machine, loader),
            _ => {}
        }
    }
    fits(machine, STAGING, made, "to make the initial RAM disk")?;
    if !machine.is_same_disk(STAGING, "/boot") {
        fits(machine, "/boot", of_boot + made, "for the image and its initial RAM disk")?;
    }
    match machine.is_same_disk(STAGING, MODULES) {
        true => Ok(()),
        false => fits(machine, MODULES, of_modules, "for the modules"),
    }
}

/// As large as the one of the entry that is copied, and a quarter more.
fn initrd_bytes(machine: &Machine<'_>, loader: &Loader) -> u64 {
    let of_base = loader.base.iter().flat_map(|base| &base.initrd);
    let names = of_base.filter_map(|path| path.rsplit('/').next());
    let sizes = names.filter_map(|name| machine.file_bytes(&format!("/boot/{name}")));
    match sizes.sum::<u64>() {
        0 => INITRD_BYTES,
        bytes => bytes / 4 * 5,
    }
}

fn fits(machine: &Machine<'_>, path: &str, bytes: u64, what: &str) -> anyhow::Result<()> {
    let free = machine.free_bytes(path).with_context(|| format!("{path}: free space"))?;
    #[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let needed = bytes.saturating_add(REST_BYTES);
    let place = if path == "/boot" { boot::FOLDER } else { path };
    ensure!(
        free >= needed,
        "{place}: {:.1} MB are free, and {:.1} MB are needed {what}; make room. Nothing was put in \
         place",
        megabytes(free),
        megabytes(needed)
    );
    Ok(())
}
