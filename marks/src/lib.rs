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

// It is copied into the projects of `rtproof new`: it builds with Rust 1.63 (Debian 12), without
// the settings of this workspace.
#[allow(unsafe_code)] // the ring is memory that is shared with another process
mod ring;

use std::{
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

pub use ring::CAPACITY;
use ring::{Ring, now_ns};

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
        let flags = libc::O_NOFOLLOW | libc::O_CLOEXEC;
        #[allow(clippy::disallowed_methods)] // the ring's own file
        let file = std::fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(flags)
            .open(path)?;
        Ok(Self { ring: Ring::new(&file)?, path: path.into(), begin_ns: 0 })
    }

    /// The file of the ring, which a measuring rtproof opens.
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
