//! The staging folder while it is filled: an image, its modules and, where the user gives one, an
//! initial RAM disk. Only regular files and folders of root that no other user can write.

#![expect(clippy::disallowed_methods, reason = "rtproof's own folder, and files of the user")]

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail, ensure};

use rtproof_guest::modules::unpacked;
use rtproof_host::{Root, boot, door, trusted, tune::Machine};
use rtproof_kernel::boot::image::{Located, locate};

use super::image_of;

/// Where the modules of kernels are on a machine.
pub(super) const LIBRARY: &str = "/lib/modules";

pub(super) const IMAGE: &str = "vmlinuz";

pub(super) const CONFIG: &str = "config";

/// The folder with the modules.
pub(super) const MODULES: &str = "modules";

/// The initial RAM disk.
pub(super) const INITRD: &str = "initrd";

/// Where depmod finds the modules.
const DEPMOD: &str = "root";

/// Largest file that is taken: an initial RAM disk with everything in it is below.
const BYTES_MAX: u64 = 1 << 30;

/// A kernel that is staged.
#[derive(Clone, Debug)]
pub(super) struct StagedKernel {
    /// Its `uname -r`.
    pub(super) release: String,
    /// Where it is from, as it is shown.
    pub(super) from: String,
    /// Whether its modules are staged.
    pub(super) has_modules: bool,
    /// Whether its configuration is staged.
    pub(super) has_config: bool,
    /// Whether its image is signed.
    pub(super) is_signed: bool,
}

impl StagedKernel {
    /// What is in the folder by now.
    pub(super) fn new(release: String, from: String, image: &[u8], place: &Path) -> Self {
        let is_signed = boot::signature_bytes(image) > 0;
        let has = |name: &str| place.join(name).exists();
        Self { release, from, has_modules: has(MODULES), has_config: has(CONFIG), is_signed }
    }
}

/// Whether every boot loader takes a release as it is.
pub(super) fn is_release(release: &str) -> bool {
    let path = format!("{LIBRARY}/{release}");
    let change = rtproof_host::tune::Change::Placed {
        path,
        from: format!("{}/{IMAGE}", rtproof_host::tune::STAGING),
        digest: String::new(),
        files: 0,
        bytes: 0,
    };
    change.may_be_made().is_ok()
}

/// Looks whether a path leads out of a folder that is not root's own: what is copied is read with
/// root's rights, and what is moved is gone where it was.
fn inside(top: &Path, path: &Path) -> anyhow::Result<()> {
    let real = path.canonicalize().with_context(|| path.display().to_string())?;
    let top = top.canonicalize().with_context(|| top.display().to_string())?;
    ensure!(
        real.starts_with(&top),
        "{}: leads out of {} ({})",
        path.display(),
        top.display(),
        real.display()
    );
    Ok(())
}

/// Bytes of a regular file.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    door::read_bytes(path, BYTES_MAX).with_context(|| path.display().to_string())
}

/// Writes a new file.
fn write(to: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let written = || -> io::Result<()> {
        if let Some(folder) = to.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(to)?;
        io::Write::write_all(&mut file, bytes)
    };
    written().with_context(|| to.display().to_string())
}

/// Copies a file of the user.
pub(super) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    write(to, &read(from)?)
}

/// Indexes the modules in `MODULES`, as modprobe and the makers of initial RAM disks need it.
fn index(place: &Path, release: &str) -> anyhow::Result<()> {
    let above = place.join(DEPMOD).join("lib/modules");
    let moved = || -> io::Result<()> {
        fs::create_dir_all(&above)?;
        // Where kmod looks for modules is chosen when it is built.
        fs::create_dir(place.join(DEPMOD).join("usr"))?;
        symlink("../lib", place.join(DEPMOD).join("usr/lib"))?;
        fs::rename(place.join(MODULES), above.join(release))
    };
    moved().context("the modules cannot be prepared")?;
    let command = trusted::command("depmod").context("modules cannot be indexed (kmod)")?;
    run(command, |it| it.arg("-b").arg(place.join(DEPMOD)).arg(release))?;
    ensure!(
        above.join(release).join("modules.dep").exists(),
        "depmod has written no modules.dep for {release}"
    );
    fs::rename(above.join(release), place.join(MODULES)).context("the modules")?;
    normalise(&place.join(MODULES)).context("the modules cannot be prepared")
}

/// Runs a program to its end; its output.
fn run(
    mut command: std::process::Command,
    with: impl FnOnce(&mut std::process::Command) -> &mut std::process::Command,
) -> anyhow::Result<Vec<u8>> {
    trusted::succeed(with(&mut command)).map_err(anyhow::Error::msg)
}

/// Leaves regular files and folders, with usual permissions. Links to where it was built go.
fn normalise(folder: &Path) -> io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        match () {
            () if kind.is_dir() => normalise(&path)?,
            () if kind.is_symlink() => fs::remove_file(&path)?,
            () if kind.is_file() => {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
                rustix::fs::chown(&path, Some(owner().0), Some(owner().1))?;
            }
            () => return Err(io::Error::other(format!("{}: no regular file", path.display()))),
        }
    }
    Ok(())
}

fn owner() -> (rustix::fs::Uid, rustix::fs::Gid) {
    (rustix::process::geteuid(), rustix::process::getegid())
}

/// Looks whether modules are of this kernel: their folder is named after it, and what they were
/// built for is in each of them (include/linux/vermagic.h).
fn modules_fit(folder: &Path, release: &str) -> anyhow::Result<()> {
    let Some(path) = first_module(folder)? else { return Ok(()) };
    let bytes = read(&path)?;
    // Packed ones need a program that may not be here; then the name of the folder is all.
    let plain = match bytes.starts_with(b"\x7fELF") {
        true => bytes,
        false => match unpacked(&bytes) {
            Ok(plain) => plain,
            Err(_) => return Ok(()),
        },
    };
    let Some(of) = vermagic(&plain) else { return Ok(()) };
    let name = path.strip_prefix(folder).unwrap_or(&path).display();
    ensure!(of == release, "{name}: a module for {of}; the kernel is {release}");
    Ok(())
}

/// The release that a module is for.
fn vermagic(module: &[u8]) -> Option<String> {
    const KEY: &[u8] = b"vermagic=";
    let at = module.windows(KEY.len()).position(|bytes| bytes == KEY)?;
    let rest = &module[at + KEY.len()..];
    let end = rest.iter().position(|byte| [b' ', 0].contains(byte))?;
    String::from_utf8(rest[..end].to_vec()).ok()
}

fn first_module(folder: &Path) -> anyhow::Result<Option<PathBuf>> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut paths: Vec<_> = fs::read_dir(&folder)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
            .with_context(|| folder.display().to_string())?;
        paths.sort();
        for path in paths {
            let of = fs::symlink_metadata(&path).with_context(|| path.display().to_string())?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if of.is_dir() {
                folders.push(path);
            } else if of.is_file() && name.contains(".ko") {
                return Ok(Some(path));
            }
        }
    }
    Ok(None)
}

/// The file of a kernel, opened once so that all of it is of the same one.
fn stage_image(from: &Path, place: &Path) -> anyhow::Result<Vec<u8>> {
    let bytes = read(from)?;
    write(&place.join(IMAGE), &bytes)?;
    File::open(place.join(IMAGE)).and_then(|file| file.sync_all()).context("the image")?;
    Ok(bytes)
}

// A kernel from the folder of a build, as `make modules_install` would install it, and one that is
// nothing but an image. Nothing of the folder is run.

/// Files about the modules that are built in, which depmod reads.
const LISTS: &[&str] = &["modules.order", "modules.builtin", "modules.builtin.modinfo"];

/// Stages the kernel of a build.
pub(super) fn collect(
    machine: &Machine<'_>,
    folder: &Path,
    place: &Path,
) -> anyhow::Result<StagedKernel> {
    let located = locate(folder, None)?;
    // arch/x86/boot/bzImage
    let Some(objects) = located.path.ancestors().nth(4).map(Path::to_owned) else {
        bail!("{}: no folder of a build", folder.display())
    };
    if objects.join(".config").exists() {
        inside(&objects, &objects.join(".config"))?;
    }
    inside(&objects, &located.path)?;
    let option = |name: &str| located.config.as_ref().map(|config| config.value(name));
    ensure!(
        option("MODULE_SIG_FORCE") != Some("y"),
        "{}: CONFIG_MODULE_SIG_FORCE: the kernel takes signed modules alone, and they are signed \
         when they are installed; build the package (rtproof kernel build --deb) and give that",
        objects.display()
    );
    let modules = modules(&objects)?;
    let sizes: u64 = modules.iter().filter_map(|(path, _)| Some(path.metadata().ok()?.len())).sum();
    super::check_staging(machine, sizes)?;
    let bytes = stage_image(&located.path, place)?;
    let release = image_of(machine.root(), &located.path, &bytes)?;
    let built = objects.join("include/config/kernel.release");
    if let Ok(text) = door::read_text(&built, BYTES_MAX) {
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
        inside(&objects, from)?;
        copy(from, &target.join("kernel").join(name))?;
    }
    for name in LISTS.iter().filter(|name| objects.join(name).exists()) {
        inside(&objects, &objects.join(name))?;
        copy(&objects.join(name), &target.join(name))?;
    }
    fs::create_dir_all(&target).context("the modules")?;
    modules_fit(&target, &release).with_context(|| objects.display().to_string())?;
    index(place, &release)?;
    config(&located, place)?;
    Ok(StagedKernel::new(release, objects.display().to_string(), &bytes, place))
}

/// The modules of a build, each with its place below `kernel`.
fn modules(objects: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let order = objects.join("modules.order");
    if !order.exists() {
        return Ok(Vec::new());
    }
    let text = read(&order)?;
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
pub(super) fn image(root: &Root, path: &Path, place: &Path) -> anyhow::Result<StagedKernel> {
    let located: Located = locate(path, None)?;
    let bytes = stage_image(path, place)?;
    let release = image_of(root, path, &bytes)?;
    let folder = format!("{}/{release}", LIBRARY);
    let has_none = located.config.as_ref().is_some_and(|config| config.value("MODULES") == "n");
    ensure!(
        has_none || root.exists(&folder),
        "{}: its modules are not in {folder}; give the package or the folder of the build instead",
        path.display()
    );
    config(&located, place)?;
    Ok(StagedKernel::new(release, path.display().to_string(), &bytes, place))
}

/// Stages the configuration: mkinitramfs chooses how it packs by it, `rtproof check` reads it.
fn config(located: &Located, place: &Path) -> anyhow::Result<()> {
    match &located.config {
        Some(config) => write(&place.join(CONFIG), config.text.as_bytes()),
        None => Ok(()),
    }
}

// A kernel from a Debian package, unpacked and not installed: its scripts would make the menu anew
// and its kernel the default.

/// Where it is unpacked, below the staging folder.
const UNPACKED: &str = "package";

/// Unpacks a package, and stages the kernel that is in it.
pub(super) fn unpack(
    machine: &Machine<'_>,
    package: &Path,
    place: &Path,
) -> anyhow::Result<StagedKernel> {
    let shown = package.display();
    let dpkg = || trusted::command("dpkg-deb").context("a .deb package is read by dpkg-deb");
    let field = |name: &str| -> anyhow::Result<String> {
        let text = run(dpkg()?, |it| it.arg("-f").arg(package).arg(name));
        let text = text.with_context(|| format!("{shown}: no Debian package"))?;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    };
    let (name, version) = (field("Package")?, field("Version")?);
    // In KiB (deb-control(5)); a package need not say it.
    let size: u64 = field("Installed-Size")?.parse().unwrap_or(0);
    super::check_staging(machine, size.saturating_mul(1024))?;
    let unpacked = place.join(UNPACKED);
    run(dpkg()?, |it| it.arg("-x").arg(package).arg(&unpacked))
        .with_context(|| format!("{shown} cannot be unpacked"))?;
    let images = named(&unpacked.join("boot"), "vmlinuz-")?;
    let image = match images.as_slice() {
        [one] => one,
        [] => bail!("{shown}: {name} holds no kernel (/boot/vmlinuz-*); expected a linux-image"),
        more => bail!("{shown}: {name} holds {} kernels; expected one", more.len()),
    };
    inside(&unpacked, image).with_context(|| shown.to_string())?;
    let bytes = stage_image(image, place)?;
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
    inside(&unpacked, folder).with_context(|| shown.to_string())?;
    let of = folder.file_name().unwrap_or_default().to_string_lossy();
    ensure!(of == release, "{shown}: modules for {of}; the kernel is {release}");
    modules_fit(folder, &release).with_context(|| shown.to_string())?;
    let configs = [unpacked.join(format!("boot/config-{release}")), folder.join("config")];
    if let Some(config) = configs.iter().find(|path| path.is_file()) {
        inside(&unpacked, config).with_context(|| shown.to_string())?;
        copy(config, &place.join(CONFIG))?;
    }
    fs::rename(folder, place.join(MODULES)).context("the modules cannot be prepared")?;
    fs::remove_dir_all(&unpacked).context("what else is in the package")?;
    index(place, &release)?;
    let from = format!("{shown} ({name} {version})");
    Ok(StagedKernel::new(release, from, &bytes, place))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_checked_for_their_release() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("kernel/a")).unwrap();
        assert!(modules_fit(dir.path(), "6.1").is_ok(), "none");
        let module = b"\x7fELF..vermagic=6.1.0-x SMP preempt_rt mod_unload \0.";
        fs::write(dir.path().join("kernel/a/x.ko"), module).unwrap();
        assert!(modules_fit(dir.path(), "6.1.0-x").is_ok());
        let error = modules_fit(dir.path(), "6.1.0").unwrap_err().to_string();
        assert_eq!(error, "kernel/a/x.ko: a module for 6.1.0-x; the kernel is 6.1.0");
    }

    #[test]
    fn links_and_odd_permissions_do_not_stay() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/etc/passwd", dir.path().join("build")).unwrap();
        fs::write(dir.path().join("x"), "x").unwrap();
        fs::set_permissions(dir.path().join("x"), fs::Permissions::from_mode(0o4777)).unwrap();
        normalise(dir.path()).unwrap();
        let mode = fs::metadata(dir.path().join("x")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o644);
        assert!(fs::symlink_metadata(dir.path().join("build")).is_err());
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("y"), 0o600.into()).unwrap();
        assert!(normalise(dir.path()).is_err());
    }

    #[test]
    fn releases_that_a_script_would_read_are_none() {
        assert!(is_release("6.12.5-rt1+") && is_release("6.1.0-50-rt-amd64"));
        for release in ["6.1;reboot", "6.1 x", "../6.1", "", "$x", "6.1'"] {
            assert!(!is_release(release), "{release}");
        }
    }
}

#[cfg(test)]
mod build_tests {
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
