//! Signals that a process passes on, and a file descriptor that it was started with: for a program
//! that rtproof starts and waits for.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{FromRawFd, OwnedFd},
    time::Duration,
};

use super::signals::timespec;

/// A signal that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    pub signal: i32,
    /// Whether the kernel sent it: a key of the terminal goes to the whole process group, so that
    /// the program has it, too.
    pub is_kernels: bool,
}

/// Signals that are taken one by one instead of acting. Threads that are made later block them as
/// well, and programs that are started: see [`unblock`].
#[derive(Debug)]
pub struct Queue {
    set: libc::sigset_t,
}

impl Queue {
    /// Blocks these signals in the calling thread.
    ///
    /// # Errors
    /// A number that is no signal.
    pub fn block(signals: &[i32]) -> io::Result<Self> {
        let set = set_of(signals)?;
        mask(libc::SIG_BLOCK, &set)?;
        Ok(Self { set })
    }

    /// The next of them, or nothing within a time.
    pub fn take(&self, within: Duration) -> Option<Taken> {
        let within = timespec(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX));
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: set and time are valid, `info` is valid for the write; all-zero bytes are a
        // valid siginfo.
        let (signal, info) = unsafe {
            let signal =
                libc::sigtimedwait(&raw const self.set, info.as_mut_ptr(), &raw const within);
            (signal, info.assume_init())
        };
        (signal > 0).then_some(Taken { signal, is_kernels: info.si_code == libc::SI_KERNEL })
    }
}

/// Lets children that end be waited for: where a parent has SIGCHLD ignored, which is inherited,
/// the kernel forgets them at once.
///
/// # Errors
/// The kernel refuses, which it does not.
pub fn keep_ended_children() -> io::Result<()> {
    // SAFETY: sets a disposition that has no handler.
    match unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Lets these signals act again in the calling thread: a process that the standard library starts
/// blocks what its parent blocks.
///
/// # Errors
/// A number that is no signal.
pub fn unblock(signals: &[i32]) -> io::Result<()> {
    mask(libc::SIG_UNBLOCK, &set_of(signals)?)
}

fn set_of(signals: &[i32]) -> io::Result<libc::sigset_t> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set that the other calls change; a number that is no
    // signal is EINVAL.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for &signal in signals {
            if libc::sigaddset(set.as_mut_ptr(), signal) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(set.assume_init())
    }
}

fn mask(how: libc::c_int, set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: `set` is a valid set; no old mask is asked for.
    match unsafe { libc::pthread_sigmask(how, set, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Takes over a descriptor that this process was started with, so that it is closed when a program
/// takes the process over.
///
/// # Errors
/// No such descriptor is open, or it is one of the three that every program has.
pub fn inherited(number: i32) -> io::Result<OwnedFd> {
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: two numbers; a descriptor that is not open is EBADF.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, as fcntl says, and nothing else in this process owns it: the caller calls
    // this once, at the start, with a number that its parent made for it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_signal_is_taken_with_its_origin() {
        std::thread::spawn(|| {
            let queue = Queue::block(&[libc::SIGURG]).unwrap();
            assert_eq!(queue.take(Duration::ZERO), None);
            // SAFETY: sends a signal to the calling thread, which blocks it.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGURG) };
            let taken = queue.take(Duration::from_secs(5));
            assert_eq!(taken, Some(Taken { signal: libc::SIGURG, is_kernels: false }));
            assert!(Queue::block(&[-1]).is_err());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn what_is_not_open_is_no_descriptor() {
        assert!(inherited(1).is_err());
        assert!(inherited(1_000_000).is_err());
    }
}
