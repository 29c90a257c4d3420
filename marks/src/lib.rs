//! Marks begin and end of a cycle in an application, for `rtproof measure --workload marks:PID`.
//!
//! ```no_run
//! let mut marks = rtproof_mark::Marks::open("control")?;
//! loop {
//!     // ... wait for the cycle ...
//!     marks.begin();
//!     // ... its work ...
//!     marks.end();
//! #   break;
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! One ring per thread, in shared memory. Open it before the thread becomes real-time; a mark reads
//! the clock and stores a few words: no system call, no allocation, no lock. Without a reader, old
//! cycles are overwritten. The layout is that of `rtproof_mark.h` beside this crate.

#[expect(unsafe_code, reason = "the ring is memory that is shared with another process")]
mod ring;

use std::{
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use rustix::{fs::OFlags, thread::ClockId};

pub use ring::CAPACITY;
use ring::Ring;

/// The marks of one thread.
#[derive(Debug)]
pub struct Marks {
    ring: Ring,
    path: PathBuf,
    begin_ns: u64,
}

impl Marks {
    /// A ring under `/dev/shm`, with a word that tells the threads of this process apart. The empty
    /// word is as good as any other.
    ///
    /// # Errors
    /// The file cannot be made there.
    pub fn open(word: &str) -> io::Result<Self> {
        if word.contains('/') {
            let text = format!("`{word}`: a word without a slash; for a path take open_at");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let dash = if word.is_empty() { "" } else { "-" };
        let name = format!("rtproof-mark-{}{dash}{word}", std::process::id());
        Self::open_at(&Path::new("/dev/shm").join(name))
    }

    /// A ring in a file of its own, which is replaced.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn open_at(path: &Path) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let flags = (OFlags::NOFOLLOW | OFlags::CLOEXEC).bits().cast_signed();
        #[expect(clippy::disallowed_methods, reason = "the ring's own file")]
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(flags)
            .open(path)?;
        Ok(Self { ring: Ring::new(&file)?, path: path.into(), begin_ns: 0 })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A cycle begins now.
    #[inline]
    pub fn begin(&mut self) {
        self.begin_ns = now_ns();
    }

    /// The cycle that began last ends now.
    #[inline]
    pub fn end(&mut self) {
        self.ring.push(self.begin_ns, now_ns());
    }
}

impl Drop for Marks {
    /// Removes the file. Who reads it goes on to its end.
    fn drop(&mut self) {
        // Another program may have removed it already.
        let _ = std::fs::remove_file(&self.path);
    }
}

#[inline]
fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_in_the_file() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("ring");
        let mut marks = Marks::open_at(&path).expect("a ring");
        for _ in 0..CAPACITY + 2 {
            marks.begin();
            marks.end();
        }
        #[expect(clippy::disallowed_methods, reason = "the ring's own file")]
        let bytes = std::fs::read(marks.path()).expect("the file");
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        assert_eq!((&bytes[..8], word(8), word(16)), (&b"RTPMARK1"[..], CAPACITY, CAPACITY + 2));
        assert_eq!(word(24), u64::from(std::process::id()));
        assert_eq!(bytes.len() as u64, 64 + CAPACITY * 32);
        // The third oldest is in the third place; the first two were overwritten.
        assert_eq!((word(64), word(64 + 32), word(64 + 64)), (CAPACITY + 1, CAPACITY + 2, 3));
        assert!(word(64 + 8) > 0 && word(64 + 16) >= word(64 + 8));
        drop(marks);
        assert!(!path.exists());
    }

    #[test]
    fn a_word_is_no_path() {
        assert!(Marks::open("a/b").is_err());
        assert!(Marks::open_at(Path::new("/no/such/folder/ring")).is_err());
    }
}
