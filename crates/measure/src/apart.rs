//! Namespaces of a process's own: nobody else sees what is made in them (interfaces, addresses,
//! files), and it ends with the process, however that ends.
//!
//! A worker enters one before it starts a thread: the kernel gives a user namespace, which is the
//! way without root, to processes of one thread alone.

use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags};
use rustix::thread::UnshareFlags;

use crate::failure::Failure;
use crate::sys;

/// A network namespace without any interface but its own loopback, which is down.
pub(crate) fn network() -> Result<(), Failure> {
    leave(UnshareFlags::NEWNET, "network")
}

/// An empty file system in memory over a folder, for this process and those that it starts. Returns
/// the folder as it is for others, and its absolute path.
///
/// # Errors
/// There is no such folder, or the kernel refuses.
pub(crate) fn folder(dir: &Path, bytes: u64) -> Result<(std::os::fd::OwnedFd, PathBuf), Failure> {
    let at =
        |doing: &str, error: Errno| Failure(format!("cannot {doing} {}: {error}", dir.display()));
    let open = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let cwd = rustix::fs::CWD;
    let real = rustix::fs::openat(cwd, dir, open, Mode::empty()).map_err(|e| at("open", e))?;
    // A relative path would go on to name what lies below the mount.
    let path = std::path::absolute(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    leave(UnshareFlags::NEWNS, "mount")?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).map_err(|error| at("mount apart", error))?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let options = std::ffi::CString::new(format!("mode=0700,size={bytes}")).unwrap_or_default();
    rustix::mount::mount("rtproof", &path, "tmpfs", flags, Some(options.as_c_str()))
        .map_err(|error| at("mount a tmpfs over", error))?;
    Ok((real, path))
}

/// Leaves a namespace of the machine, through a user namespace where the right is missing.
fn leave(what: UnshareFlags, name: &str) -> Result<(), Failure> {
    let is =
        |error: &std::io::Error, errno: Errno| error.raw_os_error() == Some(errno.raw_os_error());
    let refused = |error, takes| {
        Err(Failure(format!(
            "cannot have a {name} namespace of its own: {error}; it takes {takes}"
        )))
    };
    let without_right = match sys::unshare(what) {
        Ok(()) => return Ok(()),
        Err(error) if is(&error, Errno::PERM) => error,
        Err(error) => return refused(error, "root, and a kernel that has them"),
    };
    match leave_as_user(what) {
        Ok(()) => Ok(()),
        // The process has other threads.
        Err(error) if is(&error, Errno::INVAL) => refused(without_right, "root"),
        Err(error) => {
            refused(error, "root or user namespaces (/proc/sys/user/max_user_namespaces)")
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this process's own identity, not the machine's")]
fn leave_as_user(what: UnshareFlags) -> std::io::Result<()> {
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    sys::unshare(UnshareFlags::NEWUSER | what)?;
    // Without a user that files can belong to, none could be made.
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("0 {} 1", user.as_raw()))?;
    std::fs::write("/proc/self/gid_map", format!("0 {} 1", group.as_raw()))
}
