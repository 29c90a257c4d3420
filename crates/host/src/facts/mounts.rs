//! Mounted file systems that hold files of programs: disks, servers, user space.
//!
//! Of a mount only where it is, what kind it is and the options that cost time are kept. What is
//! mounted (a disk's or a server's name) says nothing about latency and is not.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Reading, Root, text::unescape};

/// Options that cost time or save it; the rest is left out, user names and addresses with it.
pub(crate) const OPTIONS: &[&str] = &[
    "rw",
    "ro",
    "sync",
    "dirsync",
    "relatime",
    "noatime",
    "nodiratime",
    "lazytime",
    "data=journal",
    "data=ordered",
    "data=writeback",
];

/// Kinds that are the kernel's own, in memory, or a layer over others.
const NOT_FILES: &[&str] = &[
    "autofs",
    "bdev",
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "overlay",
    "pipefs",
    "proc",
    "pstore",
    "ramfs",
    "resctrl",
    "rootfs",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "smackfs",
    "sysfs",
    "tmpfs",
    "tracefs",
];

/// Folders in which daemons mount for themselves and for containers, which come and go.
const NOT_OURS: &[&str] =
    &["/run/", "/var/lib/kubelet/", "/var/lib/docker/", "/var/lib/containers/", "/snap/"];

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mount {
    /// Where it is mounted.
    pub name: String,
    /// Its type: `ext4`, `nfs4`, `fuse.sshfs`.
    pub kind: String,
    /// Of its options those that cost time or save it.
    pub options: Vec<String>,
}

/// Reads /proc/self/mounts.
pub fn read(root: &Root) -> Reading<Vec<Mount>> {
    root.read_text("/proc/self/mounts").and_then(|path, text| {
        let mut mounts: Vec<Mount> = Vec::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [_, point, kind, options, ..] = words[..] else {
                return Reading::malformed(path, line, "what, where, type, options");
            };
            let name = unescape(point);
            // What is mounted over hides what was there.
            mounts.retain(|mount| mount.name != name);
            if NOT_FILES.contains(&kind) || NOT_OURS.iter().any(|top| name.starts_with(top)) {
                continue;
            }
            let kept = options.split(',').filter(|option| OPTIONS.contains(option));
            let options = kept.map(str::to_owned).collect();
            mounts.push(Mount { name, kind: kind.to_owned(), options });
        }
        Reading::known(path, mounts)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn disks_and_servers_without_their_names() {
        let text = "proc /proc proc rw,relatime 0 0\n\
                    /dev/sda1 / ext4 rw,relatime,errors=remount-ro 0 0\n\
                    tmpfs /tmp tmpfs rw 0 0\n\
                    nas.example.org:/x /data\\040of nfs4 rw,noatime,addr=192.0.2.7 0 0\n\
                    overlay /var/lib/docker/a overlay rw 0 0\n\
                    /dev/sdb1 /run/media/x vfat rw 0 0\n\
                    /dev/sdc1 /srv xfs rw,sync 0 0\n\
                    tmpfs /srv tmpfs rw 0 0\n";
        let tree = Tree::new(&[("proc/self/mounts", text)]);
        let mounts = read(&tree.root());
        let mounts = mounts.value().unwrap();
        let names: Vec<&str> = mounts.iter().map(|mount| mount.name.as_str()).collect();
        assert_eq!(names, ["/", "/data of"]);
        assert_eq!(mounts[1].options, ["rw", "noatime"]);
    }

    #[test]
    fn a_cut_line_is_malformed() {
        let tree = Tree::new(&[("proc/self/mounts", "/dev/sda1 /\n")]);
        assert!(read(&tree.root()).why_unknown().unwrap().contains("/dev/sda1 /"));
        assert!(read(&Tree::new(&[]).root()).is_absent());
    }
}
