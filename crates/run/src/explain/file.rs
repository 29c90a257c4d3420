//! The kind of a file that is to be explained.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    os::unix::fs::FileExt,
    path::Path,
};

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
    TraceDat(OnDisk),
    /// A trace as text, or what rtla prints.
    Text(TextFile),
}

/// A text that is read more than once, without being held in memory.
#[derive(Debug)]
pub struct TextFile {
    file: OnDisk,
    /// Decoded from UTF-16.
    decoded: Option<String>,
}

/// Longest text in UTF-16, which is decoded whole.
const UTF16_BYTES_MAX: u64 = 64 << 20;
/// How much of the beginning is looked at at once.
const START_BYTES: u64 = 1 << 20;
/// How SQLite files, trace.dat files and those of perf begin.
const SQLITE: &[u8] = b"SQLite format 3\0";
const TRACE_DAT: &[u8] = b"\x17\x08\x44tracing";
const PERF_DATA: &[u8] = b"PERFILE2";

impl Kind {
    /// Looks into a file.
    ///
    /// # Errors
    /// A file that cannot be read, or is none of these.
    pub fn of(path: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("{}: cannot be read", path.display());
        let no_file = || {
            format!(
                "{}: no regular file; give a record (*.rtproof), a trace.dat of trace-cmd, or a \
                 copy of the kernel's trace file",
                path.display()
            )
        };
        let file = rtproof_host::input::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory => {
                anyhow::Error::msg(no_file())
            }
            _ => anyhow::Error::new(error).context(cannot()),
        })?;
        let metadata = file.metadata().with_context(cannot)?;
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
            !begins.starts_with(PERF_DATA),
            "{path}: data of perf: run `perf script -i {path} > FILE`, then `rtproof explain FILE`",
            path = path.display()
        );
        let utf16 = match begins {
            [0xff, 0xfe, ..] => Some(u16::from_le_bytes as fn([u8; 2]) -> u16),
            [0xfe, 0xff, ..] => Some(u16::from_be_bytes as fn([u8; 2]) -> u16),
            _ => None,
        };
        if let Some(unit) = utf16 {
            anyhow::ensure!(
                on_disk.length <= UTF16_BYTES_MAX,
                "{}: UTF-16 of {} bytes, {UTF16_BYTES_MAX} at most; convert it with iconv",
                path.display(),
                on_disk.length
            );
            let mut bytes = vec![0; usize::try_from(on_disk.length)?];
            on_disk.file.read_exact_at(&mut bytes, 0).with_context(cannot)?;
            let units: Vec<u16> =
                bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
            let decoded = Some(String::from_utf16_lossy(&units));
            return Ok(Self::Text(TextFile { file: on_disk, decoded }));
        }
        let mut start = vec![0; usize::try_from(on_disk.length.min(4096))?];
        on_disk.file.read_exact_at(&mut start, 0).with_context(cannot)?;
        anyhow::ensure!(
            !start.is_empty() && !start.contains(&0),
            "{}: not a record (*.rtproof), not a trace.dat of trace-cmd, and no text",
            path.display()
        );
        Ok(Self::Text(TextFile { file: on_disk, decoded: None }))
    }
}

impl TextFile {
    /// A text that was written just now.
    pub(crate) fn of(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file: OnDisk { file, length }, decoded: None })
    }

    /// Reads it from its beginning.
    pub fn open(&self) -> io::Result<Box<dyn BufRead + '_>> {
        Ok(match &self.decoded {
            Some(text) => Box::new(text.as_bytes()),
            None => {
                Box::new(BufReader::with_capacity(1 << 16, FromStart { of: &self.file, at: 0 }))
            }
        })
    }

    /// Its beginning, where an analysis of rtla would stand.
    pub fn start(&self) -> io::Result<String> {
        let mut bytes = Vec::new();
        self.open()?.take(START_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Reads a file from a place of its own.
struct FromStart<'a> {
    of: &'a OnDisk,
    at: u64,
}

impl Read for FromStart<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.of.read_at(self.at, buf)?;
        self.at += count as u64;
        Ok(count)
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
