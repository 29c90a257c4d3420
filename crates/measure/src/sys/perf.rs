//! perf_event_open(2), and the memory in which its records come.

use std::{
    ffi::CString,
    io,
    mem::MaybeUninit,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering, fence},
    time::Duration,
};

use super::signals::timespec;

/// `struct perf_event_attr` up to its third version (Linux 4.1).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attr {
    pub(crate) kind: u32,
    pub(crate) size: u32,
    pub(crate) config: u64,
    pub(crate) sample_period: u64,
    pub(crate) sample_type: u64,
    pub(crate) read_format: u64,
    pub(crate) flags: u64,
    pub(crate) wakeup_watermark: u32,
    pub(crate) bp_type: u32,
    pub(crate) config1: u64,
    pub(crate) config2: u64,
    pub(crate) branch_sample_type: u64,
    pub(crate) sample_regs_user: u64,
    pub(crate) sample_stack_user: u32,
    pub(crate) clockid: i32,
}

const FLAG_FD_CLOEXEC: libc::c_ulong = 8;

const ENABLE: libc::c_ulong = 0x2400;

const DISABLE: libc::c_ulong = 0x2401;

const SET_OUTPUT: libc::c_ulong = 0x2405;

/// Their numbers have the size of the pointer that they take.
const SET_FILTER: libc::c_ulong = 0x4000_2406 | POINTER;

const ID: libc::c_ulong = 0x8000_2407 | POINTER;

const POINTER: libc::c_ulong = (size_of::<*const u8>() as libc::c_ulong) << 16;

/// Opens an event of a thread on one CPU (0: of the calling thread; `None`: of all threads).
///
/// # Errors
/// EACCES or EPERM without the right to it, EINVAL where the kernel does not know it.
pub(crate) fn open(attr: &Attr, tid: Option<u32>, cpu: u32) -> io::Result<OwnedFd> {
    let attr = Attr { size: size_of::<Attr>() as u32, ..*attr };
    let tid = tid.map_or(-1, u32::cast_signed);
    // SAFETY: `attr` is a valid structure of the size it says, and outlives the call.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attr, tid, cpu, -1, FLAG_FD_CLOEXEC)
    };
    let fd = i32::try_from(fd).unwrap_or(-1);
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made it for us.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Switches an event on or off, with all that threads have inherited of it.
pub(crate) fn set_enabled(event: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    let request = if on { ENABLE } else { DISABLE };
    // SAFETY: it takes a number.
    check(unsafe { libc::ioctl(event.as_raw_fd(), request as _, 0) })
}

/// Writes the records of an event to the memory of another one of the same CPU.
pub(crate) fn set_output(event: BorrowedFd<'_>, to: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: it takes a number.
    check(unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT as _, to.as_raw_fd()) })
}

/// Lets a tracepoint report only what the kernel's filter takes.
pub(crate) fn set_filter(event: BorrowedFd<'_>, filter: &str) -> io::Result<()> {
    let filter = CString::new(filter).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: the kernel reads a text that ends with a zero and outlives the call.
    check(unsafe { libc::ioctl(event.as_raw_fd(), SET_FILTER as _, filter.as_ptr()) })
}

/// The number by which its records name an event.
pub(crate) fn id(event: BorrowedFd<'_>) -> io::Result<u64> {
    let mut id = 0u64;
    // SAFETY: `id` is valid for the write of 8 bytes.
    check(unsafe { libc::ioctl(event.as_raw_fd(), ID as _, &raw mut id) })?;
    Ok(id)
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Where the header says how far the kernel has written, and we have read.
const HEAD_AT: usize = 1024;

const TAIL_AT: usize = 1032;

/// No record is longer (`perf_event_header.size` has 16 bits).
const RECORD_MAX: u64 = 1 << 16;

/// The memory of the records of one CPU.
#[derive(Debug)]
pub(crate) struct PerfRing {
    start: NonNull<u8>,
    page: usize,
    bytes: usize,
}

// SAFETY: the mapping belongs to no thread.
unsafe impl Send for PerfRing {}

impl PerfRing {
    /// Maps it: a header of a page, and `bytes`, a power of two of pages.
    pub(crate) fn map(event: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        if !bytes.is_power_of_two() || bytes < page || bytes as u64 <= RECORD_MAX {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let (any, length) = (std::ptr::null_mut(), page + bytes);
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let fd = event.as_raw_fd();
        // SAFETY: no address is asked for, so that nothing that is mapped is replaced.
        let start = unsafe { libc::mmap(any, length, protection, libc::MAP_SHARED, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, page, bytes })
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: both words are in the header's page, aligned, and the kernel and we access them
        // atomically.
        unsafe { self.start.add(at).cast::<AtomicU64>().as_ref() }
    }

    /// Moves what has come to the end of `to`. Whether a record may have been refused since the
    /// last call: one is only where less than the longest record was free.
    pub(crate) fn take(&mut self, to: &mut Vec<u8>) -> bool {
        let head = self.word(HEAD_AT).load(Ordering::Acquire);
        let tail = self.word(TAIL_AT).load(Ordering::Relaxed);
        let size = self.bytes as u64;
        // A 32-bit kernel counts in 32 bits, and begins anew after 4 GiB.
        let length = (head.wrapping_sub(tail) as usize).min(self.bytes);
        let first = (tail % size) as usize;
        let until = (first + length).min(self.bytes);
        let (a, b) = (until - first, length - (until - first));
        // SAFETY: both ranges are in the data of the mapping, which begins after the header's page.
        // The kernel does not write there before the tail has moved.
        unsafe {
            let data = self.start.as_ptr().add(self.page);
            to.extend_from_slice(std::slice::from_raw_parts(data.add(first), a));
            to.extend_from_slice(std::slice::from_raw_parts(data, b));
        }
        self.word(TAIL_AT).store(head, Ordering::Release);
        // What came until the tail moved found the ring as full as this, or less.
        fence(Ordering::SeqCst);
        let now = self.word(HEAD_AT).load(Ordering::Acquire);
        now.wrapping_sub(tail) as usize > self.bytes - RECORD_MAX as usize
    }
}

impl Drop for PerfRing {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.page + self.bytes) };
    }
}

// Signals that a process passes on, and a file descriptor that it was started with: for a program
// that rtproof starts and waits for.

/// A signal that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TakenSignal {
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
    pub fn take(&self, within: Duration) -> Option<TakenSignal> {
        let within = timespec(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX));
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        // SAFETY: set and time are valid, `info` is valid for the write; all-zero bytes are a
        // valid siginfo.
        let (signal, info) = unsafe {
            let signal =
                libc::sigtimedwait(&raw const self.set, info.as_mut_ptr(), &raw const within);
            (signal, info.assume_init())
        };
        (signal > 0).then_some(TakenSignal { signal, is_kernels: info.si_code == libc::SI_KERNEL })
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
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_cannot_be_opened_is_an_error() {
        // No such kind of event, or no right to any.
        assert!(open(&Attr { kind: u32::MAX, ..Attr::default() }, Some(0), 0).is_err());
        let file = tempfile::tempfile().unwrap();
        assert!(set_enabled(file.as_fd(), true).is_err());
        assert!(set_filter(file.as_fd(), "a\0b").is_err());
        assert!(PerfRing::map(file.as_fd(), 4096).is_err());
    }
}

#[cfg(test)]
mod process_tests {
    use super::*;

    #[test]
    fn a_blocked_signal_is_taken_with_its_origin() {
        std::thread::spawn(|| {
            let queue = Queue::block(&[libc::SIGURG]).unwrap();
            assert_eq!(queue.take(Duration::ZERO), None);
            // SAFETY: sends a signal to the calling thread, which blocks it.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGURG) };
            let taken = queue.take(Duration::from_secs(5));
            assert_eq!(taken, Some(TakenSignal { signal: libc::SIGURG, is_kernels: false }));
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
