//! The kernel that is to be booted: a file, an installed version or a built tree; with its
//! configuration, as far as that can be read.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rtproof_guest::{arch::Arch, image::Image, vmlinux::unpacked};

use crate::kernel::KernelError;

/// Where distributions put kernels.
pub const BOOT: &str = "/boot";
/// Where they put modules.
const MODULES: &str = "/lib/modules";
/// Images in a built tree.
const BUILT: &[&str] = &["arch/x86/boot/bzImage", "arch/arm64/boot/Image"];
/// Larger files are no kernel.
const MAX_BYTES: u64 = 1 << 30;

/// A kernel configuration as text, and where it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigText {
    /// Where it is from.
    pub from: String,
    pub text: String,
}

impl ConfigText {
    /// Value of an option, without `CONFIG_`; `n`: not set.
    pub fn value(&self, option: &str) -> &str {
        let value = |line: &'_ str| -> Option<usize> {
            let rest = line.strip_prefix("CONFIG_")?.strip_prefix(option)?;
            rest.starts_with('=').then(|| line.len() - rest.len() + 1)
        };
        self.text.lines().find_map(|line| Some(&line[value(line)?..])).unwrap_or("n")
    }

    /// Options that a guest needs and that are not built in.
    pub fn missing(&self, arch: Arch) -> Vec<&'static str> {
        let console = match arch {
            Arch::X86_64 => "SERIAL_8250_CONSOLE",
            Arch::Aarch64 | Arch::Armv7 => "SERIAL_AMBA_PL011_CONSOLE",
        };
        let needed = ["BLK_DEV_INITRD", "BINFMT_ELF", "DEVTMPFS", "PROC_FS", "SYSFS", console];
        needed.into_iter().filter(|option| self.value(option) != "y").collect()
    }
}

/// A kernel image with its configuration and modules.
#[derive(Clone, Debug)]
pub struct Located {
    pub path: PathBuf,
    pub image: Image,
    /// Its configuration; `None`: unknown.
    pub config: Option<ConfigText>,
    /// Where its modules are, if any are there.
    pub modules: Option<PathBuf>,
}

/// Finds it.
///
/// # Errors
/// There is none, it cannot be read, or QEMU cannot start it.
pub fn locate(what: &Path, config: Option<&Path>) -> Result<Located, KernelError> {
    locate_in(what, config, Path::new(BOOT), Path::new(MODULES))
}

#[expect(clippy::disallowed_methods, reason = "the kernel that the user names")]
fn locate_in(
    what: &Path,
    config: Option<&Path>,
    boot: &Path,
    modules: &Path,
) -> Result<Located, KernelError> {
    let is_name =
        what.components().count() == 1 && !what.as_os_str().as_encoded_bytes().contains(&b'/');
    let (path, beside, below) = if what.is_dir() {
        let (tree, path) = built(what)?;
        (path, Some(tree.join(".config")), Some(tree))
    } else if what.exists() {
        let beside = beside(what);
        (what.to_owned(), beside, None)
    } else if is_name {
        let path = boot.join(format!("vmlinuz-{}", what.display()));
        if !path.exists() {
            return Err(KernelError::path(what, not_found(&path, boot)));
        }
        (path, Some(boot.join(format!("config-{}", what.display()))), Some(modules.join(what)))
    } else {
        return Err(KernelError::path(what, "no such file or folder"));
    };
    let image = Image::read(&read(&path)?)
        .map_err(|error| KernelError::path(&path, format!("{error:#}")))?;
    let config = match config {
        Some(path) => Some(given(path)?),
        None => image.config().map_or_else(
            || {
                let path = beside?;
                let text = fs::read_to_string(&path).ok()?;
                Some(ConfigText { from: path.display().to_string(), text })
            },
            |bytes| {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                Some(ConfigText { from: format!("{}, inside", path.display()), text })
            },
        ),
    };
    let below = below.filter(|folder| folder.join("modules.builtin").exists());
    Ok(Located { path, image, config, modules: below })
}

/// The tree and its image: `kernel build` puts objects into `build` below its folder.
fn built(folder: &Path) -> Result<(PathBuf, PathBuf), KernelError> {
    let trees = [folder.to_owned(), folder.join("build")];
    let each = trees.iter().flat_map(|tree| BUILT.iter().map(|it| (tree.clone(), tree.join(it))));
    let found: Vec<_> = each.filter(|(_, path)| path.exists()).collect();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(KernelError::path(
            folder,
            format!("has no kernel: looked for {}, also below build/", BUILT.join(" and ")),
        )),
        more => {
            let paths: Vec<_> = more.iter().map(|(_, path)| path.display().to_string()).collect();
            let why = format!("has several kernels; name one of {}", paths.join(", "));
            Err(KernelError::path(folder, why))
        }
    }
}

/// `config-X` beside `vmlinuz-X`.
fn beside(image: &Path) -> Option<PathBuf> {
    let name = image.file_name()?.to_str()?;
    let version = ["vmlinuz-", "vmlinux-", "Image-"].iter().find_map(|it| name.strip_prefix(it))?;
    Some(image.with_file_name(format!("config-{version}")))
}

#[expect(clippy::disallowed_methods, reason = "names of installed kernels, for an error")]
fn not_found(path: &Path, boot: &Path) -> String {
    let entries = fs::read_dir(boot).into_iter().flatten().filter_map(Result::ok);
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut versions: Vec<String> =
        names.filter_map(|name| Some(name.strip_prefix("vmlinuz-")?.to_owned())).collect();
    versions.sort();
    let there = match versions.as_slice() {
        [] => format!("{} has none", boot.display()),
        versions => format!("{} has {}", boot.display(), versions.join(", ")),
    };
    format!(
        "neither a file nor a folder, and no installed kernel: {} is missing, {there}",
        path.display()
    )
}

/// A configuration that the user names, plain or packed as kernels are.
pub(crate) fn given(path: &Path) -> Result<ConfigText, KernelError> {
    let bytes = unpacked(&read(path)?)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if !text.contains("\nCONFIG_") && !text.starts_with("CONFIG_") {
        return Err(KernelError::path(path, "no configuration of a kernel: no line CONFIG_...="));
    }
    Ok(ConfigText { from: path.display().to_string(), text })
}

#[expect(clippy::disallowed_methods, reason = "the kernel that the user names")]
fn read(path: &Path) -> Result<Vec<u8>, KernelError> {
    let of = fs::metadata(path).map_err(KernelError::io(path))?;
    if !of.is_file() {
        return Err(KernelError::path(path, "no regular file"));
    }
    if of.len() > MAX_BYTES {
        return Err(KernelError::path(path, "too large: more than 1 GiB"));
    }
    fs::read(path).map_err(KernelError::io(path))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the tests' own files")]
mod tests {
    use super::*;

    fn arm_image() -> Vec<u8> {
        let mut image = vec![0; 64];
        image[0x38..0x3c].copy_from_slice(b"ARM\x64");
        image.extend(b"Linux version 6.1.0-x (me)");
        image
    }

    #[test]
    fn a_kernel_is_found_by_file_version_and_folder() {
        let dir = tempfile::tempdir().unwrap();
        let boot = dir.path();
        fs::write(boot.join("vmlinuz-6.1.0-x"), arm_image()).unwrap();
        fs::write(boot.join("config-6.1.0-x"), "CONFIG_DEVTMPFS=y\n").unwrap();
        let tree = boot.join("tree/build/arch/arm64/boot");
        fs::create_dir_all(&tree).unwrap();
        fs::write(tree.join("Image"), arm_image()).unwrap();
        let find = |what: &Path| locate_in(what, None, boot, boot);
        for what in [Path::new("6.1.0-x"), &boot.join("vmlinuz-6.1.0-x")] {
            let found = find(what).unwrap();
            assert_eq!(found.image.release.as_deref(), Some("6.1.0-x"));
            let config = found.config.unwrap();
            assert!(config.from.ends_with("config-6.1.0-x"), "{config:?}");
            assert_eq!((config.value("DEVTMPFS"), config.value("DEV")), ("y", "n"));
        }
        let found = find(&boot.join("tree")).unwrap();
        assert!(found.path.ends_with("Image") && found.config.is_none());
        let refused = |what: &Path| find(what).unwrap_err().to_string();
        assert!(refused(Path::new("6.2")).contains("has 6.1.0-x"));
        assert!(refused(&boot.join("tree/build/arch")).contains("looked for"));
        assert!(refused(&boot.join("no/such")).contains("no/such"));
        assert!(refused(&boot.join("config-6.1.0-x")).contains("not a kernel"));
        assert!(refused(Path::new("/dev/null")).contains("no regular file"));
        fs::create_dir_all(boot.join("tree/arch/x86/boot")).unwrap();
        fs::write(boot.join("tree/arch/x86/boot/bzImage"), "").unwrap();
        assert!(refused(&boot.join("tree")).contains("name one of"));
    }

    #[test]
    fn what_a_guest_needs_is_built_in() {
        let text = "CONFIG_BLK_DEV_INITRD=y\nCONFIG_BINFMT_ELF=y\n# CONFIG_DEVTMPFS is not set\n\
            CONFIG_PROC_FS=y\nCONFIG_SYSFS=y\nCONFIG_SERIAL_8250_CONSOLE=m\n";
        let config = ConfigText { from: "x".into(), text: text.into() };
        assert_eq!(config.missing(Arch::X86_64), ["DEVTMPFS", "SERIAL_8250_CONSOLE"]);
        let whole =
            text.replace("=m", "=y").replace("# CONFIG_DEVTMPFS is not set", "CONFIG_DEVTMPFS=y");
        let config = ConfigText { text: whole, ..config };
        assert!(config.missing(Arch::X86_64).is_empty());
        assert_eq!(config.missing(Arch::Aarch64), ["SERIAL_AMBA_PL011_CONSOLE"]);
    }
}
