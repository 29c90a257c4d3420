//! A kernel from the folder of a build, as `make modules_install` would install it, and one that is
//! nothing but an image. Nothing of the folder is run.

#![expect(clippy::disallowed_methods, reason = "the user's own build")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};
use rtproof_host::{Root, tune::Machine};

use super::{
    fits::image_of,
    space,
    staged::{self, CONFIG, MODULES, Staged},
};
use crate::kernel::boot::locate::{Located, locate};

/// Files about the modules that are built in, which depmod reads.
const LISTS: &[&str] = &["modules.order", "modules.builtin", "modules.builtin.modinfo"];

/// Stages the kernel of a build.
pub(super) fn collect(
    machine: &Machine<'_>,
    folder: &Path,
    place: &Path,
) -> anyhow::Result<Staged> {
    let located = locate(folder, None)?;
    // arch/x86/boot/bzImage
    let Some(objects) = located.path.ancestors().nth(4).map(Path::to_owned) else {
        bail!("{}: no folder of a build", folder.display())
    };
    if objects.join(".config").exists() {
        staged::inside(&objects, &objects.join(".config"))?;
    }
    staged::inside(&objects, &located.path)?;
    let option = |name: &str| located.config.as_ref().map(|config| config.value(name));
    ensure!(
        option("MODULE_SIG_FORCE") != Some("y"),
        "{}: CONFIG_MODULE_SIG_FORCE: the kernel takes signed modules alone, and they are signed \
         when they are installed; build the package (rtproof kernel build --deb) and give that",
        objects.display()
    );
    let modules = modules(&objects)?;
    let sizes: u64 = modules.iter().filter_map(|(path, _)| Some(path.metadata().ok()?.len())).sum();
    space::check_staging(machine, sizes)?;
    let bytes = staged::stage_image(&located.path, place)?;
    let release = image_of(machine.root(), &located.path, &bytes)?;
    let built = objects.join("include/config/kernel.release");
    if let Ok(text) = fs::read_to_string(&built) {
        ensure!(
            text.trim() == release,
            "{} says {}, and the image is {release}: the build was not finished; run make again",
            built.display(),
            text.trim()
        );
    }
    let target = place.join(MODULES);
    for (from, name) in &modules {
        ensure!(
            from.exists(),
            "{}: modules.order names it; the build was not finished",
            from.display()
        );
        staged::inside(&objects, from)?;
        staged::copy(from, &target.join("kernel").join(name))?;
    }
    for name in LISTS.iter().filter(|name| objects.join(name).exists()) {
        staged::inside(&objects, &objects.join(name))?;
        staged::copy(&objects.join(name), &target.join(name))?;
    }
    fs::create_dir_all(&target).context("the modules")?;
    staged::modules_fit(&target, &release).with_context(|| objects.display().to_string())?;
    staged::index(place, &release)?;
    config(&located, place)?;
    Ok(Staged::new(release, objects.display().to_string(), &bytes, place))
}

/// The modules of a build, each with its place below `kernel`.
fn modules(objects: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let order = objects.join("modules.order");
    if !order.exists() {
        return Ok(Vec::new());
    }
    let text = staged::read(&order)?;
    let text = String::from_utf8(text).with_context(|| order.display().to_string())?;
    let mut modules = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        // `kernel/drivers/x.ko`; since 6.3 `drivers/x.o` (scripts/Makefile.modinst).
        let stem = line.strip_prefix("kernel/").unwrap_or(line);
        let stem = stem.strip_suffix(".ko").or_else(|| stem.strip_suffix(".o"));
        let is_part = |part: &str| !matches!(part, "" | "." | "..");
        let Some(stem) = stem.filter(|stem| stem.split('/').all(is_part)) else {
            bail!("{}: \"{line}\": no module's path", order.display())
        };
        let name = format!("{stem}.ko");
        modules.push((objects.join(&name), name));
    }
    Ok(modules)
}

/// Stages an image alone: its modules are where they have to be, or it has none.
pub(super) fn image(root: &Root, path: &Path, place: &Path) -> anyhow::Result<Staged> {
    let located: Located = locate(path, None)?;
    let bytes = staged::stage_image(path, place)?;
    let release = image_of(root, path, &bytes)?;
    let folder = format!("{}/{release}", staged::LIBRARY);
    let has_none = located.config.as_ref().is_some_and(|config| config.value("MODULES") == "n");
    ensure!(
        has_none || root.exists(&folder),
        "{}: its modules are not in {folder}; give the package or the folder of the build instead",
        path.display()
    );
    config(&located, place)?;
    Ok(Staged::new(release, path.display().to_string(), &bytes, place))
}

/// Stages the configuration: mkinitramfs chooses how it packs by it, `rtproof check` reads it.
fn config(located: &Located, place: &Path) -> anyhow::Result<()> {
    match &located.config {
        Some(config) => staged::write(&place.join(CONFIG), config.text.as_bytes()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_old_and_new_builds() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(modules(dir.path()).unwrap(), []);
        let of = |text: &str| {
            fs::write(dir.path().join("modules.order"), text).unwrap();
            modules(dir.path()).map(|all| all.into_iter().map(|(_, name)| name).collect::<Vec<_>>())
        };
        assert_eq!(of("kernel/a/x.ko\nkernel/b.ko\n").unwrap(), ["a/x.ko", "b.ko"]);
        assert_eq!(of("a/x.o\n\nb.o\n").unwrap(), ["a/x.ko", "b.ko"]);
        for line in ["../x.o", "/etc/x.ko", "a//x.o", "x"] {
            assert!(of(line).unwrap_err().to_string().contains(line), "{line}");
        }
    }
}
