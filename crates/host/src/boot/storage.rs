//! On what a file of the boot loader lies: GRUB can read more than it can write, and a choice for
//! one boot that it cannot clear is a choice for all.

use crate::{Root, text::unescape};

/// File systems on which GRUB finds the blocks of a file and may write into them. Copy-on-write,
/// compressed and network file systems are not among them.
const WRITABLE: &[&str] = &["ext2", "ext3", "ext4", "fat", "jfs", "msdos", "vfat", "xfs"];

/// Disks of the kernel's own drivers, without a layer in between.
const PLAIN_DISKS: &[&str] = &["hd", "mmcblk", "nvme", "sd", "vd", "xvd"];

/// One line of /proc/self/mountinfo.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mount {
    /// What of its file system is mounted: `/`, or a folder of it.
    top: String,
    point: String,
    kind: String,
    source: String,
    /// `MAJOR:MINOR`.
    device: String,
}

/// Why GRUB cannot write a file; `None` when it can.
pub(super) fn why_grub_cannot_write(root: &Root, path: &str) -> Option<String> {
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
pub(super) fn name_on_disk(root: &Root, path: &str) -> Option<Vec<String>> {
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

#[cfg(test)]
mod tests {
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
