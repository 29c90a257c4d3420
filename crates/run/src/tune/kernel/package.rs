//! A kernel from a Debian package, unpacked and not installed: its scripts would make the menu anew
//! and its kernel the default.

#![expect(clippy::disallowed_methods, reason = "rtproof's own folder")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use rtproof_host::{program, tune::Machine};

use super::{
    fits::image_of,
    space,
    staged::{self, CONFIG, MODULES, Staged},
};

/// Where it is unpacked, below the staging folder.
const UNPACKED: &str = "package";

/// Unpacks a package, and stages the kernel that is in it.
pub(super) fn unpack(
    machine: &Machine<'_>,
    package: &Path,
    place: &Path,
) -> anyhow::Result<Staged> {
    let shown = package.display();
    let dpkg = || program::command("dpkg-deb").context("a .deb package is read by dpkg-deb");
    let field = |name: &str| -> anyhow::Result<String> {
        let text = staged::run(dpkg()?, |it| it.arg("-f").arg(package).arg(name));
        let text = text.with_context(|| format!("{shown}: no Debian package"))?;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    };
    let (name, version) = (field("Package")?, field("Version")?);
    // In KiB (deb-control(5)); a package need not say it.
    let size: u64 = field("Installed-Size")?.parse().unwrap_or(0);
    space::check_staging(machine, size.saturating_mul(1024))?;
    let unpacked = place.join(UNPACKED);
    staged::run(dpkg()?, |it| it.arg("-x").arg(package).arg(&unpacked))
        .with_context(|| format!("{shown} cannot be unpacked"))?;
    let images = named(&unpacked.join("boot"), "vmlinuz-")?;
    let image = match images.as_slice() {
        [one] => one,
        [] => bail!("{shown}: {name} holds no kernel (/boot/vmlinuz-*); expected a linux-image"),
        more => bail!("{shown}: {name} holds {} kernels; expected one", more.len()),
    };
    staged::inside(&unpacked, image).with_context(|| shown.to_string())?;
    let bytes = staged::stage_image(image, place)?;
    let release = image_of(machine.root(), image, &bytes).with_context(|| shown.to_string())?;
    let folders: Vec<PathBuf> = ["lib/modules", "usr/lib/modules"]
        .iter()
        .map(|top| named(&unpacked.join(top), ""))
        .collect::<anyhow::Result<Vec<_>>>()?
        .concat();
    let folder = match folders.as_slice() {
        [one] => one,
        [] => bail!(
            "{shown}: {name} holds no modules (/lib/modules/{release}), which are in another \
             package ({}); install both and give --kernel {release}",
            field("Depends")?
        ),
        more => bail!("{shown}: {name} has modules of {} kernels; expected one", more.len()),
    };
    staged::inside(&unpacked, folder).with_context(|| shown.to_string())?;
    let of = folder.file_name().unwrap_or_default().to_string_lossy();
    ensure!(of == release, "{shown}: modules for {of}; the kernel is {release}");
    staged::modules_fit(folder, &release).with_context(|| shown.to_string())?;
    let configs = [unpacked.join(format!("boot/config-{release}")), folder.join("config")];
    if let Some(config) = configs.iter().find(|path| path.is_file()) {
        staged::inside(&unpacked, config).with_context(|| shown.to_string())?;
        staged::copy(config, &place.join(CONFIG))?;
    }
    fs::rename(folder, place.join(MODULES)).context("the modules cannot be prepared")?;
    fs::remove_dir_all(&unpacked).context("what else is in the package")?;
    staged::index(place, &release)?;
    let from = format!("{shown} ({name} {version})");
    Ok(Staged::new(release, from, &bytes, place))
}

/// What is in a folder with names that begin so; nothing where it is not there.
fn named(folder: &Path, begin: &str) -> anyhow::Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let mut paths = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(begin) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    Ok(paths)
}
