//! The boot loader: what boots next, and a second entry, "real-time", beside it.
//!
//! Nothing is written here. [`detect`] reads; [`Loader::real_time`] says as a list of changes
//! what makes the entry, what boots it once and what makes it the default; the engine
//! ([`crate::tune`]) makes and undoes them. The entry that boots now is never edited, and
//! no file of a distribution is made anew: where our lines stand in a file of others, they stand
//! between two marks.
//!
//! One file for each boot loader; each says what it reads and writes. docs/boot.md is for users.

mod bls;
pub mod cmdline;
mod efi;
mod entries;
pub(crate) mod grub;
mod grub_script;
mod loader;
mod plain;
mod systemd_boot;
#[cfg(test)]
mod tests;

pub use cmdline::{Edit, Word, WordError};
pub use loader::{BootChanges, BootEntry, ID, Loader, LoaderKind, OwnEntryState, TITLE};

pub use crate::change::OWN_KERNELS as FOLDER;

use loader::LoaderContext;

use crate::change::{Bytes, Change};
use crate::reading::ReadingState;
use crate::text::unescape;
use crate::{Reading, Root};

/// Looks for one boot loader.
type Detector = fn(&BootView<'_>, &LoaderContext) -> Result<Option<Loader>, BootError>;

/// Reads the boot loader of a machine.
pub fn detect(root: &Root) -> Result<Loader, BootError> {
    let around = LoaderContext::read(root);
    let mut loader = detect_around(&BootView::new(root), &around)?;
    take_running(root, &around, &mut loader);
    Ok(loader)
}

fn detect_around(view: &BootView<'_>, around: &LoaderContext) -> Result<Loader, BootError> {
    if let Some(loader) = entries::detect_elsewhere(view, around) {
        return Ok(loader);
    }
    // A loader that says that it started this system did; else its files decide, the clearest
    // first.
    let is_systemd = around.firmware.loader.as_deref().is_some_and(|n| n.starts_with("systemd"));
    let detectors: [Detector; 4] = match is_systemd {
        true => [
            systemd_boot::detect,
            plain::detect_raspberry,
            bls::detect_grub,
            plain::detect_extlinux,
        ],
        false => [
            plain::detect_raspberry,
            bls::detect_grub,
            systemd_boot::detect,
            plain::detect_extlinux,
        ],
    };
    for detect in detectors {
        if let Some(loader) = detect(view, around)? {
            return Ok(loader);
        }
    }
    Ok(entries::unknown(view, around))
}

/// Reads the boot loader for an entry that is a copy of the one of this kernel, or boots one that a
/// trial has put in place.
///
/// # Errors
/// As [`detect`]; there is no entry of this kernel: the error lists those that there are.
pub fn detect_release(root: &Root, release: &str) -> Result<Loader, BootError> {
    let around = LoaderContext { release: Some(release.to_owned()), ..LoaderContext::read(root) };
    let mut loader = detect_around(&BootView::new(root), &around)?;
    if let Some(kernel) = OwnKernel::installed(root, release).filter(|_| !loader.is_of_release) {
        loader.take_kernel(root, &kernel)?;
        return Ok(loader);
    }
    if loader.kind == LoaderKind::Elsewhere {
        let why = loader.no_entry.unwrap_or_default();
        return Err(BootError::file(loader.name, format!("{why}: it has no entries to choose of")));
    }
    if loader.is_of_release {
        return Ok(loader);
    }
    let mut there: Vec<String> = loader.kernels.iter().map(|it| shown(it)).collect();
    there.sort();
    there.dedup();
    let there = match there.is_empty() {
        true => "its kernels have no version in their names".to_owned(),
        false => format!("there are entries of {}", there.join(", ")),
    };
    let place = loader.files.into_iter().next().unwrap_or(loader.name);
    Err(BootError::file(place, format!("no entry of kernel {release}; {there}")))
}

/// Lets an entry of the running kernel boot that kernel also where it is on trial, and the menu
/// does not have it.
fn take_running(root: &Root, around: &LoaderContext, loader: &mut Loader) {
    let Some(release) = around.release.as_deref().filter(|_| !loader.is_of_release) else { return };
    let Some(kernel) = OwnKernel::installed(root, release) else { return };
    if let Err(error) = loader.take_kernel(root, &kernel) {
        loader.no_trial = Some(error.to_string());
        loader.no_entry = loader.no_trial.clone();
    }
}

/// A kernel as an error shows it: its release, else its path.
fn shown(kernel: &str) -> String {
    release_of(kernel).unwrap_or_else(|| kernel.to_owned())
}

/// Why the boot loader cannot be read or changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BootError {
    /// A file or folder cannot be read, lacks what is needed, or is not ours to write.
    #[error("{path}: {why}")]
    File {
        /// The file or folder.
        path: String,
        /// Why, and what to do.
        why: String,
    },
    /// A file does not hold what it should.
    #[error("{path}:{line}: {what}; {next}")]
    Text {
        path: String,
        /// Line, from 1.
        line: usize,
        what: String,
        next: &'static str,
    },
    /// A word cannot be on the command line.
    #[error(transparent)]
    Word(#[from] WordError),
}

impl BootError {
    fn file(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self::File { path: path.into(), why: why.into() }
    }

    /// The entry is not there when it is read back.
    fn not_written(path: impl Into<String>) -> Self {
        let why = "our entry is not there when it is read back; report this with the file";
        Self::file(path, why)
    }
}

// An entry of another kernel than the running one: of one that is in the menu already, or of one
// that rtproof puts beside it. Its files are in a folder that no `update-grub` and no
// `kernel-install` lists, so it never becomes the default by itself.

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
    fn installed(root: &Root, release: &str) -> Option<Self> {
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
struct KernelFiles {
    release: String,
    /// Release of the base's kernel, where its name says so.
    base: Option<String>,
    kernel: String,
    initrd: Option<String>,
}

impl KernelFiles {
    /// The initial RAM disks: ours, after those of the base that hold microcode or are named by a
    /// variable.
    fn initrds<'a>(&'a self, of_base: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
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

/// [`OWN_KERNELS`] as the boot loader has it, which names a kernel of /boot so. It is known only
/// where the kernel is found under the very name that its mount gives it.
fn folder(root: &Root, kernel: &str) -> Result<String, BootError> {
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
    match name_on_disk(root, &ours) {
        Some(names) if names.contains(&path.to_owned()) => Ok(format!("{device}{above}/rtproof")),
        Some(names) => unknown(&format!("on its disk it is {}", names.join(" or "))),
        None => unknown("/proc/self/mountinfo does not show its disk"),
    }
}

/// Bytes of an image's certificate table (Microsoft's PE format, "The Attribute Certificate
/// Table"): 0 if it is not signed, as Secure Boot requires of every kernel.
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

// On what a file of the boot loader lies: GRUB can read more than it can write, and a choice for
// one boot that it cannot clear is a choice for all.

/// File systems on which GRUB finds the blocks of a file and may write into them. Copy-on-write,
/// compressed and network file systems are not among them.
const WRITABLE: &[&str] = &["ext2", "ext3", "ext4", "fat", "jfs", "msdos", "vfat", "xfs"];

/// Disks of the kernel's own drivers, without a layer in between.
const PLAIN_DISKS: &[&str] = &["hd", "mmcblk", "nvme", "sd", "vd", "xvd"];

/// One line of /proc/self/mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    /// Mounted subtree of the file system: `/`, or a subvolume path.
    top: String,
    point: String,
    kind: String,
    source: String,
    /// `MAJOR:MINOR`.
    device: String,
}

/// Why GRUB cannot write a file; `None` when it can.
fn why_grub_cannot_write(root: &Root, path: &str) -> Option<String> {
    let Some(mount) = mount_of(root, path) else {
        return Some(format!(
            "/proc/self/mountinfo does not show the disk of {path}, so it is unknown whether GRUB \
             can write there"
        ));
    };
    if !WRITABLE.contains(&mount.kind.as_str()) {
        return Some(format!(
            "{path} lies on {}, where GRUB cannot write: it could not take the choice back, and \
             the trial would start again and again",
            mount.kind
        ));
    }
    let disk = disk_name(root, &mount);
    let is_plain = PLAIN_DISKS.iter().any(|kind| {
        let rest = disk.strip_prefix(kind);
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
    });
    if is_plain {
        return None;
    }
    let layer = layer(root, &mount, &disk);
    Some(format!(
        "{path} lies on {layer}, where GRUB cannot write: it could not take the choice back, and \
         the trial would start again and again"
    ))
}

/// Names of a file on its own file system, as GRUB may have them: from its top, and on btrfs also
/// from the subvolume that is mounted. `None`: unknown.
fn name_on_disk(root: &Root, path: &str) -> Option<Vec<String>> {
    let mount = mount_of(root, path)?;
    let below = path.strip_prefix(mount.point.trim_end_matches('/'))?.to_owned();
    match mount.top.as_str() {
        "/" => Some(vec![below]),
        top if mount.kind == "btrfs" => Some(vec![format!("{top}{below}"), below]),
        top => Some(vec![format!("{top}{below}")]),
    }
}

/// The mount that holds a path: of the longest mount points the last one.
fn mount_of(root: &Root, path: &str) -> Option<Mount> {
    let text = root.read_text("/proc/self/mountinfo");
    let mut best: Option<Mount> = None;
    for line in text.value()?.lines() {
        let Some(mount) = parse(line) else { continue };
        let holds = match path.strip_prefix(mount.point.as_str()) {
            Some(rest) => mount.point == "/" || rest.starts_with('/'),
            None => false,
        };
        if holds && best.as_ref().is_none_or(|best| mount.point.len() >= best.point.len()) {
            best = Some(mount);
        }
    }
    best
}

/// `36 35 98:0 /root /point options shared:1 - ext4 /dev/sda1 rw` (proc_pid_mountinfo(5)).
fn parse(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let before: Vec<&str> = before.split(' ').collect();
    let mut after = after.split(' ');
    Some(Mount {
        top: unescape(before.get(3)?),
        point: unescape(before.get(4)?),
        device: (*before.get(2)?).to_owned(),
        kind: after.next()?.to_owned(),
        source: unescape(after.next()?),
    })
}

/// `sda1`, `dm-0`, `md0`: from the kernel where it knows, else from the name of what is mounted.
fn disk_name(root: &Root, mount: &Mount) -> String {
    let path = format!("/sys/dev/block/{}/uevent", mount.device);
    let uevent = root.read_text(&path);
    let named = uevent.value().and_then(|text| {
        text.lines().find_map(|line| line.strip_prefix("DEVNAME=")).map(str::to_owned)
    });
    named.unwrap_or_else(|| mount.source.trim_start_matches("/dev/").to_owned())
}

/// The layer that is in between, in words.
fn layer(root: &Root, mount: &Mount, disk: &str) -> String {
    let uuid = root.trimmed(&format!("/sys/dev/block/{}/dm/uuid", mount.device));
    let uuid = uuid.value().map(String::as_str).unwrap_or_default();
    match () {
        () if uuid.starts_with("LVM-") => format!("a logical volume (LVM, {disk})"),
        () if uuid.starts_with("CRYPT-") => format!("an encrypted disk ({disk})"),
        () if disk.starts_with("md") => format!("a RAID ({disk})"),
        () => format!("{disk}, which is no plain disk"),
    }
}

// The files of a boot loader as they would be after some changes: so that what is about to be
// written can be read back before it is written.

/// Largest file of a boot loader that is read as text.
const TEXT_BYTES_MAX: usize = 8 << 20;

/// A machine with changes made in thought.
#[derive(Clone, Copy)]
pub(crate) struct BootView<'a> {
    root: &'a Root,
    changes: &'a [Change],
}

impl<'a> BootView<'a> {
    const fn new(root: &'a Root) -> Self {
        Self { root, changes: &[] }
    }

    /// The same machine after these changes.
    const fn with(root: &'a Root, changes: &'a [Change]) -> Self {
        Self { root, changes }
    }

    const fn root(&self) -> &'a Root {
        self.root
    }

    /// The bytes of a file; `None` when it is not there.
    ///
    /// # Errors
    /// It is there and cannot be read, or is larger than any file of a boot loader.
    fn bytes(&self, path: &str) -> Result<Option<Vec<u8>>, BootError> {
        for change in self.changes.iter().rev() {
            if let Change::File { path: changed, content, .. } = change
                && changed == path
            {
                return Ok(content.as_ref().map(|Bytes(bytes)| bytes.clone()));
            }
        }
        let bytes = known_or_error(self.root.read_bytes(path))?;
        if bytes.as_ref().is_some_and(|bytes| bytes.len() > TEXT_BYTES_MAX) {
            let why = "larger than 8 MiB, which no configuration of a boot loader is";
            return Err(BootError::file(path, why));
        }
        Ok(bytes)
    }

    /// The text of a file; bytes that are not UTF-8 are an error, because the text is written back.
    fn text(&self, path: &str) -> Result<Option<String>, BootError> {
        let Some(bytes) = self.bytes(path)? else { return Ok(None) };
        String::from_utf8(bytes).map(Some).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let before = &error.as_bytes()[..at];
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            BootError::Text {
                path: path.into(),
                line,
                what: "a byte that is no UTF-8 text".into(),
                next: "see whether the file is damaged",
            }
        })
    }

    /// Names in a folder with files that are to come; empty when it is not there.
    fn names(&self, folder: &str) -> Result<Vec<String>, BootError> {
        let mut names = known_or_error(self.root.list_dir(folder))?.unwrap_or_default();
        for change in self.changes {
            if let Change::File { path, content: Some(_), .. } = change
                && let Some(name) = path.strip_prefix(folder).and_then(|p| p.strip_prefix('/'))
                && !name.contains('/')
                && !names.iter().any(|known| known == name)
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn exists(&self, path: &str) -> bool {
        self.root.exists(path)
    }
}

/// `None` for what is not there; an error for what cannot be read.
fn known_or_error<T>(reading: Reading<T>) -> Result<Option<T>, BootError> {
    match reading.state {
        ReadingState::Known { value } => Ok(Some(value)),
        ReadingState::Absent => Ok(None),
        ReadingState::Denied { why } => Err(BootError::file(reading.path, why)),
        ReadingState::Malformed { found, expected } => {
            let why = format!("holds \"{found}\", expected {expected}");
            Err(BootError::file(reading.path, why))
        }
    }
}

/// A file with new content.
fn file_change(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Change {
    Change::File { path: path.into(), content: Some(Bytes(content.into())), mode: None }
}

/// A file that is to be removed.
fn removed_file(path: impl Into<String>) -> Change {
    Change::File { path: path.into(), content: None, mode: None }
}

#[cfg(test)]
mod own_tests {
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

#[cfg(test)]
mod storage_tests {
    use super::*;
    use crate::testing::Tree;

    fn why(mountinfo: &str, more: &[(&str, &str)], path: &str) -> Option<String> {
        let files = [&[("proc/self/mountinfo", mountinfo)], more].concat();
        why_grub_cannot_write(&Tree::new(&files).root(), path)
    }

    const ENV: &str = "/boot/grub/grubenv";

    #[test]
    fn plain_disks_are_written() {
        let ext4 = "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n";
        assert_eq!(why(ext4, &[], ENV), None);
        let boot = format!("{ext4}30 22 259:2 / /boot rw - vfat /dev/nvme0n1p2 rw\n");
        assert_eq!(why(&boot, &[], ENV), None);
        let root = "22 1 254:1 / / rw - ext4 /dev/root rw\n";
        assert_eq!(why(root, &[("sys/dev/block/254:1/uevent", "DEVNAME=vda1\n")], ENV), None);
        assert!(why(root, &[], ENV).unwrap().contains("root"));
    }

    #[test]
    fn layers_and_copy_on_write_are_not() {
        let btrfs = "22 1 0:25 /@ / rw - btrfs /dev/sda1 rw\n";
        assert!(why(btrfs, &[], ENV).unwrap().contains("btrfs"));
        let lvm = "22 1 253:0 / / rw - ext4 /dev/mapper/vg-root rw\n";
        let dm = [
            ("sys/dev/block/253:0/uevent", "MAJOR=253\nDEVNAME=dm-0\n"),
            ("sys/dev/block/253:0/dm/uuid", "LVM-abc\n"),
        ];
        assert!(why(lvm, &dm, ENV).unwrap().contains("logical volume (LVM, dm-0)"));
        assert!(why(lvm, &[], ENV).unwrap().contains("mapper/vg-root"));
        let raid = "22 1 9:0 / / rw - ext4 /dev/md0 rw\n";
        assert!(why(raid, &[], ENV).unwrap().contains("RAID (md0)"));
        // /boot of its own on a plain disk is what counts.
        let boot = format!("{lvm}30 22 8:1 / /boot rw - ext4 /dev/sda1 rw\n");
        assert_eq!(why(&boot, &dm, ENV), None);
        assert!(why(&boot, &dm, "/bootx").unwrap().contains("LVM"));
    }

    #[test]
    fn unknown_is_no_yes() {
        assert!(why("", &[], ENV).unwrap().contains("it is unknown whether"));
        let none = why_grub_cannot_write(&Tree::new(&[]).root(), ENV);
        assert!(none.unwrap().contains("mountinfo"));
    }
}
