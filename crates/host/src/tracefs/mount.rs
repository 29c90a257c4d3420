//! tracefs where nobody has mounted it: a mount of this process alone, which no path leads to and
//! which is gone with the last program that holds it (fsmount(2), Linux 5.2).

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    process::Stdio,
    sync::OnceLock,
};

use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Where tracefs is mounted for all.
pub(super) const TRACEFS: &str = "/sys/kernel/tracing";

/// The standard output of a program that is given the mount, see [`Mount::given`].
const GIVEN: &str = "/proc/self/fd/1";

#[derive(Debug)]
pub(super) struct Mount {
    fd: OwnedFd,
    path: String,
}

impl Mount {
    /// The one of this process; `None`: the kernel or the rights forbid it.
    pub(super) fn own() -> Option<&'static Self> {
        static OWN: OnceLock<Option<Mount>> = OnceLock::new();
        OWN.get_or_init(|| Self::new().ok()).as_ref()
    }

    fn new() -> io::Result<Self> {
        let made = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_create(&made)?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID
            | MountAttrFlags::MOUNT_ATTR_NODEV
            | MountAttrFlags::MOUNT_ATTR_NOEXEC;
        let fd = fsmount(&made, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?;
        let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
        Ok(Self { fd, path })
    }

    /// Its folder, for this process.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// For a program that is to work below `path` too: what its standard output has to be, and how
    /// it calls that path. `None`: the path is not in the mount.
    pub(super) fn given(path: &str) -> Option<(Stdio, String)> {
        let own = Self::own()?;
        let rest = path.strip_prefix(&own.path)?.strip_prefix('/')?;
        Some((own.fd.try_clone().ok()?.into(), format!("{GIVEN}/{rest}")))
    }
}

/// A path of an instance for people: where the file would be, were tracefs mounted for all.
pub fn shown(path: &str) -> String {
    let rest = path.strip_prefix("/proc/self/fd/").and_then(|rest| rest.split_once('/'));
    match rest {
        Some((_, rest)) => format!("{TRACEFS}/{rest}"),
        None => path.to_owned(),
    }
}
