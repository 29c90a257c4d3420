//! When to look again whether what was applied still is: files of ours are watched, the kernel
//! reports devices and CPUs that come and go, and the rest is read now and then: values of
//! /proc and /sys send no message when they change.

use std::{
    collections::BTreeSet,
    io,
    os::fd::{AsFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::inotify,
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SocketFlags, SocketType, bind, netlink,
        netlink::SocketAddrNetlink, recv, socket_with,
    },
};

use crate::Root;

/// Devices come in crowds: as long as more of them come, up to [`CROWD_MAX`], looking waits.
const QUIET: Duration = Duration::from_millis(200);
/// Longest wait for a crowd to end.
const CROWD_MAX: Duration = Duration::from_secs(2);
/// Most folders watched: each takes kernel memory.
const FOLDERS_MAX: usize = 256;
/// Group of the kernel's own messages; group 2 is udev's.
const KERNEL_GROUP: u32 = 1;

/// Why to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    Files,
    /// A device or a CPU came, went or changed.
    Devices,
    /// The time was over.
    Timer,
    /// The call that `wait` was given to watch.
    Called,
}

#[derive(Debug)]
pub struct Wake {
    files: Option<OwnedFd>,
    devices: Option<OwnedFd>,
    watched: BTreeSet<String>,
}

impl Wake {
    /// Begins to listen. What the machine does not offer is left to the timer: a folder has no
    /// devices, a container hears of none.
    pub fn new(root: &Root) -> Self {
        let flags = inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK;
        Self {
            files: inotify::init(flags).ok(),
            devices: root.is_live().then(|| listen().ok()).flatten(),
            watched: BTreeSet::new(),
        }
    }

    /// Watches the folders of these files as well. Folders, because a file is replaced as a rule.
    pub fn watch<'a>(&mut self, root: &Root, files: impl IntoIterator<Item = &'a str>) {
        let Some(inotify) = &self.files else { return };
        let flags = inotify::WatchFlags::CLOSE_WRITE
            | inotify::WatchFlags::ATTRIB
            | inotify::WatchFlags::CREATE
            | inotify::WatchFlags::DELETE
            | inotify::WatchFlags::MOVE
            | inotify::WatchFlags::ONLYDIR;
        for file in files {
            let Some((folder, _)) = file.rsplit_once('/') else { continue };
            if self.watched.len() >= FOLDERS_MAX || self.watched.contains(folder) {
                continue;
            }
            // One that is not there yet is tried again.
            let place = root.place(folder);
            if place.is_ok_and(|place| inotify::add_watch(inotify, place, flags).is_ok()) {
                self.watched.insert(folder.to_owned());
            }
        }
    }

    /// Waits until there is a reason to look again, at most for a time. `call` is a descriptor that
    /// becomes readable when the wait has to end.
    ///
    /// # Errors
    /// poll(2) fails; not for a signal, which is [`Woken::Called`].
    pub fn wait(&self, at_most: Duration, call: Option<&dyn AsFd>) -> io::Result<Woken> {
        let woken = self.poll(at_most, call)?;
        if !matches!(woken, Woken::Files | Woken::Devices) {
            return Ok(woken);
        }
        let end = Instant::now() + CROWD_MAX;
        while Instant::now() < end {
            self.drain();
            match self.poll(QUIET, call)? {
                Woken::Timer => break,
                Woken::Called => return Ok(Woken::Called),
                Woken::Files | Woken::Devices => {}
            }
        }
        Ok(woken)
    }

    fn poll(&self, at_most: Duration, call: Option<&dyn AsFd>) -> io::Result<Woken> {
        let sources = [
            (call.map(AsFd::as_fd), Woken::Called),
            (self.files.as_ref().map(AsFd::as_fd), Woken::Files),
            (self.devices.as_ref().map(AsFd::as_fd), Woken::Devices),
        ];
        let sources: Vec<_> =
            sources.into_iter().filter_map(|(fd, woken)| Some((fd?, woken))).collect();
        let mut fds: Vec<PollFd<'_>> =
            sources.iter().map(|(fd, _)| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
        let timeout = Timespec::try_from(at_most).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) => return Ok(Woken::Timer),
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Woken::Called),
            Err(errno) => return Err(errno.into()),
        }
        let is_ready = |fd: &&(usize, &PollFd<'_>)| !fd.1.revents().is_empty();
        let first = fds.iter().enumerate().find(|fd| is_ready(&fd));
        Ok(first.map_or(Woken::Timer, |(at, _)| sources[at].1))
    }

    /// What came is of no interest but that it came.
    fn drain(&self) {
        let mut buffer = [0; 8192];
        let mut left = 4096;
        while let Some(files) = self.files.as_ref().filter(|_| left > 0) {
            left -= 1;
            if !matches!(rustix::io::read(files, &mut buffer), Ok(1..)) {
                break;
            }
        }
        while let Some(devices) = self.devices.as_ref().filter(|_| left > 0) {
            left -= 1;
            // ENOBUFS: some were lost; more may be there.
            match recv(devices, &mut buffer[..], RecvFlags::DONTWAIT) {
                Ok((_, 1..)) | Err(Errno::NOBUFS) => {}
                _ => break,
            }
        }
    }
}

/// A socket on which the kernel reports devices (lib/kobject_uevent.c).
fn listen() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let kind = SocketType::RAW;
    let protocol = Some(netlink::KOBJECT_UEVENT);
    let socket = socket_with(AddressFamily::NETLINK, kind, flags, protocol)?;
    bind(&socket, &SocketAddrNetlink::new(0, KERNEL_GROUP))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::{io::Write as _, os::unix::net::UnixStream};

    use super::*;
    use crate::testing::Tree;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_file_that_changes_or_is_replaced_wakes() {
        let tree = Tree::new(&[("etc/a", "1"), ("etc/b", "1")]);
        let root = tree.root();
        let mut wake = Wake::new(&root);
        wake.watch(&root, ["/etc/a", "/etc/b", "/not/there"]);
        assert_eq!(wake.watched.len(), 1);
        assert_eq!(wake.wait(Duration::ZERO, None).unwrap(), Woken::Timer);
        tree.write("etc/a", "2");
        assert_eq!(wake.wait(LONG, None).unwrap(), Woken::Files);
        assert_eq!(wake.wait(Duration::ZERO, None).unwrap(), Woken::Timer, "drained");
        std::fs::rename(tree.path().join("etc/a"), tree.path().join("etc/b")).unwrap();
        assert_eq!(wake.wait(LONG, None).unwrap(), Woken::Files);
        // A folder that has come since.
        tree.write("not/there", "");
        wake.watch(&root, ["/not/there"]);
        tree.write("not/there", "x");
        assert_eq!(wake.wait(LONG, None).unwrap(), Woken::Files);
    }

    #[test]
    fn one_who_is_called_stops_waiting() {
        let tree = Tree::new(&[]);
        let (ours, theirs) = UnixStream::pair().unwrap();
        (&theirs).write_all(b"x").unwrap();
        let wake = Wake::new(&tree.root());
        assert_eq!(wake.wait(LONG, Some(&ours)).unwrap(), Woken::Called);
    }

    #[test]
    fn a_folder_has_no_devices_and_the_machine_may() {
        assert!(Wake::new(&Tree::new(&[]).root()).devices.is_none());
        // Whether the kernel lets us listen or not, the timer is left.
        let wake = Wake::new(&Root::live());
        wake.drain();
        assert!(wake.wait(Duration::ZERO, None).is_ok());
    }
}
