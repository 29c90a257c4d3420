//! The kind of a file that is to be explained.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

use anyhow::Context;
use rtproof_trace::dat::ReadAt;

/// A file that can be read anywhere.
#[derive(Debug)]
pub struct OnDisk {
    file: File,
    length: u64,
}

/// What a file is.
#[derive(Debug)]
pub enum Kind {
    /// A record of rtproof.
    Record,
    /// trace-cmd's.
    TraceDat(OnDisk),
    /// The kernel's `trace` file, or what rtla prints.
    Text(String),
}

/// Longest text that is read.
const TEXT_BYTES_MAX: u64 = 256 << 20;
/// How SQLite files and trace.dat files begin.
const SQLITE: &[u8] = b"SQLite format 3\0";
const TRACE_DAT: &[u8] = b"\x17\x08\x44tracing";

impl Kind {
    /// Looks into a file.
    ///
    /// # Errors
    /// A file that cannot be read, or is none of these.
    #[expect(clippy::disallowed_methods, reason = "the user's own file")]
    pub fn of(path: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("{}: cannot be read", path.display());
        let file = File::open(path).with_context(cannot)?;
        let metadata = file.metadata().with_context(cannot)?;
        anyhow::ensure!(
            metadata.is_file(),
            "{}: no regular file; give a record (*.rtproof), a trace.dat of trace-cmd, or a copy \
             of the kernel's trace file",
            path.display()
        );
        let on_disk = OnDisk { length: metadata.len(), file };
        let mut begins = [0; 16];
        let count = on_disk.read_at(0, &mut begins).with_context(cannot)?;
        let begins = &begins[..count];
        if begins.starts_with(SQLITE) {
            return Ok(Self::Record);
        }
        if begins.starts_with(TRACE_DAT) {
            return Ok(Self::TraceDat(on_disk));
        }
        anyhow::ensure!(
            on_disk.length <= TEXT_BYTES_MAX,
            "{}: neither a record nor a trace.dat, and too long for a text ({} bytes, {} at most); \
             record with trace-cmd instead of copying the trace file",
            path.display(),
            on_disk.length,
            TEXT_BYTES_MAX
        );
        let mut bytes = vec![0; usize::try_from(on_disk.length)?];
        on_disk.file.read_exact_at(&mut bytes, 0).with_context(cannot)?;
        let is_text = !bytes.is_empty() && !bytes.iter().take(4096).any(|&byte| byte == 0);
        anyhow::ensure!(
            is_text,
            "{}: not a record (*.rtproof), not a trace.dat of trace-cmd, and no text",
            path.display()
        );
        Ok(Self::Text(String::from_utf8_lossy(&bytes).into_owned()))
    }
}

impl ReadAt for OnDisk {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(&self.file, buf, at)
    }
}
