//! Are files on servers, in user space, or written at each read?
//!
//! A page of a program or a library that is not in memory comes from its file system. On a server
//! or a daemon's file system that takes as long as they take. Where the application's files are
//! only the user knows.

use rtproof_host::{Facts, facts::mounts::Mount};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text;
use crate::{Finding, Impact, Intent, Remedy};

/// Behind a network or a process, by the part of the name before a dot; and reiserfs, whose big
/// lock held every writer up.
const SLOW: &[&str] = &[
    "9p",
    "afs",
    "ceph",
    "cifs",
    "fuse",
    "fuseblk",
    "glusterfs",
    "nfs",
    "nfs4",
    "reiserfs",
    "smb3",
    "smbfs",
];
/// Of these only what a daemon shows of the kernel's own files.
const NO_FILES: &[&str] = &["fuse.lxcfs", "fuse.portal", "fuse.gvfsd-fuse", "fuse.snapfuse"];
/// Kinds whose mounts say when they write access times.
const TELLS_ATIME: &[&str] = &["btrfs", "ext2", "ext3", "ext4", "f2fs", "xfs"];

pub(super) static CHECK: Check = Check {
    id: "fs-mounts",
    title: "file systems over a network, in user space, or written at each read",
    why: "a thread that touches a page of a file waits for the server or process that holds it, \
          and access times make a write of each read",
    source: "rtcqs, filesystems_check (fuse, reiserfs, nfs, cifs); mount(8) (strictatime, \
             relatime, sync); mmap(2), mlock(2)",
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("the application's files on a local disk or in memory"),
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let reading = &facts.mounts;
    let draft = draft.read(reading, |mounts| show(mounts));
    let Some(mounts) = reading.value() else {
        return draft.blind(reading);
    };
    let slow: Vec<String> = mounts.iter().filter(|m| is_slow(m)).map(named).collect();
    let written: Vec<String> = mounts.iter().filter(|m| is_written(m)).map(named).collect();
    let mut remedies = Vec::new();
    let mut parts = Vec::new();
    if !slow.is_empty() {
        parts.push(format!("{}: keep the application's files away", text::first_few(&slow, 3)));
        let text = "move the application, its libraries and its data to a local file system, \
                    or lock them in memory (mlockall) before real-time work starts";
        remedies.push(Remedy::Manual { text: text.into() });
    }
    if !written.is_empty() {
        parts.push(format!("{}: writes at once or at each read", text::first_few(&written, 3)));
        let text = "mount with relatime or noatime, and without sync";
        remedies.push(Remedy::Manual { text: text.into() });
    }
    if parts.is_empty() {
        return draft.good("no network or user-space file system");
    }
    draft.remedies(remedies).doubtful(parts.join("; "))
}

fn is_slow(mount: &Mount) -> bool {
    let kind = mount.kind.split('.').next().unwrap_or_default();
    SLOW.contains(&kind) && !NO_FILES.contains(&mount.kind.as_str())
}

fn is_written(mount: &Mount) -> bool {
    let has = |option: &str| mount.options.iter().any(|known| known == option);
    let writes_atime =
        TELLS_ATIME.contains(&mount.kind.as_str()) && !has("relatime") && !has("noatime");
    has("rw") && (has("sync") || writes_atime)
}

fn named(mount: &Mount) -> String {
    format!("{} ({})", mount.name, mount.kind)
}

fn show(mounts: &[Mount]) -> String {
    let mount =
        |mount: &Mount| format!("{} {} {}", mount.name, mount.kind, mount.options.join(","));
    let mounts: Vec<String> = mounts.iter().map(mount).collect();
    if mounts.is_empty() {
        "none with files of its own".into()
    } else {
        text::first_few(&mounts, 8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    fn status(mounts: &[(&str, &str, &str)]) -> Status {
        let mount = |&(name, kind, options): &(&str, &str, &str)| Mount {
            name: name.into(),
            kind: kind.into(),
            options: options.split(',').map(str::to_owned).collect(),
        };
        let mut facts = good();
        facts.mounts = Reading::known("/proc/self/mounts", mounts.iter().map(mount).collect());
        CHECK.judge(&facts, &intent()).status
    }

    #[test]
    fn local_is_good_remote_and_strict_are_doubtful() {
        let root = ("/", "ext4", "rw,relatime");
        assert_eq!(status(&[root, ("/boot/efi", "vfat", "rw")]), Good);
        assert_eq!(status(&[root, ("/var/lib/lxcfs", "fuse.lxcfs", "rw")]), Good);
        assert_eq!(status(&[root, ("/mnt", "nfs4", "rw,relatime")]), Doubtful);
        assert_eq!(status(&[root, ("/home/a", "fuse.sshfs", "rw")]), Doubtful);
        assert_eq!(status(&[("/", "ext4", "rw")]), Doubtful);
        assert_eq!(status(&[("/", "xfs", "rw,sync,noatime")]), Doubtful);
        assert_eq!(status(&[("/", "ext4", "ro")]), Good);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let mut facts = good();
        facts.mounts = Reading::absent("/proc/self/mounts");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
