//! An entry of another kernel than the running one: of one that is in the menu already, or of one
//! that rtproof puts beside it. Its files are in a folder that no `update-grub` and no
//! `kernel-install` lists, so it never becomes the default by itself.

use super::{error::BootError, storage};
use crate::Root;
pub use crate::change::places::OWN_KERNELS as FOLDER;

/// A kernel in [`FOLDER`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnKernel {
    /// Its `uname -r`.
    pub release: String,
    /// Whether it has an initial RAM disk there.
    pub has_initrd: bool,
}

impl OwnKernel {
    /// The one of this release, where a trial has put it in place.
    pub(super) fn there(root: &Root, release: &str) -> Option<Self> {
        let kernel = Self { release: release.to_owned(), has_initrd: true };
        let has_initrd = kernel.initrd().is_some_and(|path| root.exists(&path));
        root.exists(&kernel.image()).then_some(Self { has_initrd, ..kernel })
    }

    /// Path of its image.
    pub fn image(&self) -> String {
        format!("{FOLDER}/vmlinuz-{}", self.release)
    }

    /// Path of its initial RAM disk.
    pub fn initrd(&self) -> Option<String> {
        self.has_initrd.then(|| format!("{FOLDER}/initrd.img-{}", self.release))
    }
}

/// The files that take the place of those of the base, as the boot loader has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Files {
    pub(super) release: String,
    /// Release of the base's kernel, where its name says so.
    pub(super) base: Option<String>,
    pub(super) kernel: String,
    pub(super) initrd: Option<String>,
}

impl Files {
    /// The initial RAM disks: ours, after those of the base that hold microcode or are named by a
    /// variable.
    pub(super) fn initrds<'a>(&'a self, of_base: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
        let stays = |path: &&str| path.starts_with('$') || path.contains("ucode");
        of_base.filter(stays).chain(self.initrd.as_deref()).collect()
    }
}

/// The release that the path of a kernel has: `vmlinuz-6.1.0-50-amd64`, `TOKEN/6.12.5/linux`;
/// `None`: it has none (`vmlinuz-linux`).
pub fn release_of(kernel: &str) -> Option<String> {
    let is_release = |text: &&str| text.starts_with(|c: char| c.is_ascii_digit());
    let mut parts = kernel.rsplit('/');
    let name = parts.next()?;
    let of_name = name.split_once('-').map(|(_, rest)| rest).filter(is_release);
    let of_folder = || parts.next().filter(|_| !name.contains('-')).filter(is_release);
    of_name.or_else(of_folder).map(str::to_owned)
}

/// [`FOLDER`] as the boot loader has it, which names a kernel of /boot so. It is known only where
/// the kernel is found under the very name that its mount gives it.
pub(super) fn folder(root: &Root, kernel: &str) -> Result<String, BootError> {
    let (device, path) = match kernel.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((device, path)) => (format!("({device})"), path),
        None => (String::new(), kernel),
    };
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    let ours = format!("/boot/{name}");
    let unknown = |why: &str| {
        let why = format!(
            "the entry's kernel {kernel}: {why}, so it is unknown under which name the boot loader \
             would find {FOLDER}; install the package and give --kernel VERSION"
        );
        Err(BootError::file(&ours, why))
    };
    if !root.exists(&ours) {
        return unknown("not there under this name");
    }
    match storage::name_on_disk(root, &ours) {
        Some(names) if names.contains(&path.to_owned()) => Ok(format!("{device}{above}/rtproof")),
        Some(names) => unknown(&format!("on its disk it is {}", names.join(" or "))),
        None => unknown("/proc/self/mountinfo does not show its disk"),
    }
}

/// Bytes of an image's certificate table (Microsoft's PE format, "The Attribute Certificate
/// Table"): 0 where nobody has signed it, as with Secure Boot every kernel has to be.
pub fn signature_bytes(image: &[u8]) -> u32 {
    let word = |at: usize| {
        let bytes = image.get(at..at.checked_add(4)?)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let table = || {
        let pe = word(0x3c)? as usize;
        let optional = (image.get(pe..pe + 4)? == b"PE\0\0").then_some(pe + 24)?;
        // PE32+ has 16 bytes more before its directories.
        let directories = match image.get(optional..optional + 2)? {
            [0x0b, 0x02] => optional + 112,
            [0x0b, 0x01] => optional + 96,
            _ => return None,
        };
        word(directories + 4 * 8 + 4)
    };
    if image.starts_with(b"MZ") { table().unwrap_or(0) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn a_release_is_in_the_name_or_in_none() {
        for (kernel, release) in [
            ("/boot/vmlinuz-6.1.0-50-rt-amd64", Some("6.1.0-50-rt-amd64")),
            ("(hd0,gpt2)/vmlinuz-6.12.5", Some("6.12.5")),
            ("/abc/6.12.5-arch1/linux", Some("6.12.5-arch1")),
            ("/vmlinuz-linux", None),
            ("/vmlinuz-linux-rt", None),
            ("/6.12/vmlinuz-linux", None),
            ("", None),
        ] {
            assert_eq!(release_of(kernel).as_deref(), release, "{kernel}");
        }
    }

    #[test]
    fn the_folder_is_known_by_the_mount_alone() {
        let seen = |mountinfo: &str, kernel: &str| {
            let files = [("proc/self/mountinfo", mountinfo), ("boot/vmlinuz-6.1", "x")];
            folder(&Tree::new(&files).root(), kernel).map_err(|error| error.to_string())
        };
        let one = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n";
        let two = format!("{one}30 22 8:2 / /boot rw - ext4 /dev/sda2 rw\n");
        let sub = "22 1 0:25 /@ / rw - btrfs /dev/sda1 rw\n";
        assert_eq!(seen(one, "/boot/vmlinuz-6.1").unwrap(), "/boot/rtproof");
        assert_eq!(seen(&two, "/vmlinuz-6.1").unwrap(), "/rtproof");
        assert_eq!(seen(&two, "($root)/vmlinuz-6.1").unwrap(), "($root)/rtproof");
        assert_eq!(seen(sub, "/@/boot/vmlinuz-6.1").unwrap(), "/@/boot/rtproof");
        assert_eq!(seen(sub, "/boot/vmlinuz-6.1").unwrap(), "/boot/rtproof");
        for (mountinfo, kernel) in [
            (one, "/vmlinuz-6.1"),
            (&two, "/boot/vmlinuz-6.1"),
            (one, "/ROOT/debian@/boot/vmlinuz-6.1"),
            (one, "/boot/vmlinuz-6.2"),
            ("", "/boot/vmlinuz-6.1"),
        ] {
            let error = seen(mountinfo, kernel).unwrap_err();
            assert!(error.contains(kernel) && error.contains("unknown"), "{error}");
        }
    }

    #[test]
    fn a_signature_is_a_certificate_table_that_is_not_empty() {
        let mut image = vec![0; 512];
        assert_eq!(signature_bytes(&image), 0);
        image[..2].copy_from_slice(b"MZ");
        image[0x3c] = 0x80;
        image[0x80..0x84].copy_from_slice(b"PE\0\0");
        image[0x98..0x9a].copy_from_slice(&[0x0b, 0x02]);
        assert_eq!(signature_bytes(&image), 0);
        image[0x98 + 112 + 36] = 9;
        assert_eq!(signature_bytes(&image), 9);
        assert_eq!(signature_bytes(&image[..0x98 + 112]), 0, "cut off");
    }
}
