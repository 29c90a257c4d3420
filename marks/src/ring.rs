//! The shared memory: a header of eight words, then cycles of four. And the clock, which needs the
//! same: a call of the C library.

use std::{
    fs::File,
    io,
    os::unix::io::AsRawFd,
    ptr::NonNull,
    sync::atomic::{AtomicU64, Ordering, fence},
};

/// CLOCK_MONOTONIC, nanoseconds.
#[inline]
pub(crate) fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for the write.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    // Monotonic time is not negative.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Cycles in a ring.
pub const CAPACITY: u64 = 4096;

/// "RTPMARK1", in the order of bytes of little-endian machines.
const MAGIC: u64 = 0x314b_5241_4d50_5452;
/// Words of the header: magic, capacity, head, process, thread, and three of the writer's own.
const HEADER: usize = 8;
/// Words of a cycle: its number from 1 (0 while it is written), begin, end, and one to spare.
const CYCLE: usize = 4;
const WORDS: usize = HEADER + CYCLE * CAPACITY as usize;
const BYTES: usize = WORDS * 8;

/// A mapped ring with one writer.
#[derive(Debug)]
pub(crate) struct Ring {
    words: NonNull<AtomicU64>,
    head: u64,
}

// SAFETY: the mapping belongs to no thread, and all access to it is atomic.
unsafe impl Send for Ring {}

impl Ring {
    /// Makes a ring of an empty file.
    pub(crate) fn new(file: &File) -> io::Result<Self> {
        file.set_len(BYTES as u64)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        let (anywhere, fd) = (std::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: no address is asked for, so that nothing that is mapped is replaced.
        let start = unsafe { libc::mmap(anywhere, BYTES, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let words = NonNull::new(start.cast::<AtomicU64>())
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        // SAFETY: the range is the mapping. Without the right to lock it works too.
        unsafe { libc::mlock(start, BYTES) };
        let ring = Self { words, head: 0 };
        ring.word(1).store(CAPACITY, Ordering::Relaxed);
        ring.word(3).store(u64::from(std::process::id()), Ordering::Relaxed);
        // SAFETY: it takes nothing and returns the thread's number.
        let tid = unsafe { libc::syscall(libc::SYS_gettid) };
        ring.word(4).store(tid.unsigned_abs() as u64, Ordering::Relaxed);
        ring.word(0).store(MAGIC, Ordering::Release);
        Ok(ring)
    }

    #[inline]
    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < WORDS);
        // SAFETY: the mapping holds WORDS words, is aligned to a page, and lives as long as `self`.
        // Other processes access them atomically or by read(2).
        unsafe { self.words.add(index).as_ref() }
    }

    /// Writes a cycle over the oldest one. Who reads it meanwhile sees that by its number.
    #[inline]
    pub(crate) fn push(&mut self, begin_ns: u64, end_ns: u64) {
        let at = HEADER + (self.head % CAPACITY) as usize * CYCLE;
        self.head += 1;
        self.word(at).store(0, Ordering::Relaxed);
        fence(Ordering::Release);
        self.word(at + 1).store(begin_ns, Ordering::Relaxed);
        self.word(at + 2).store(end_ns, Ordering::Relaxed);
        self.word(at).store(self.head, Ordering::Release);
        self.word(2).store(self.head, Ordering::Release);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing refers to it any more.
        unsafe { libc::munmap(self.words.as_ptr().cast(), BYTES) };
    }
}
