//! Rewrites a file and reads it back, past the page cache where the file system allows. Brings out
//! disk interrupts and their softirqs, completion work on other CPUs, writeback and journal
//! threads, and flushes of the disk's own cache.
//!
//! Bounded: one file of at most 64 MiB and a quarter of the free space, without a name, so that
//! nothing stays after a SIGKILL; and a rate of writes, because a flash disk that is written to at
//! full speed through a run of days is worn out. Between writes the disk is kept busy with reads.

use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::rng::XorShift;
use super::{Context, Load};

/// Largest file in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Smallest file that is worth the name.
const FILE_BYTES_MIN: u64 = 1 << 20;
/// The file takes at most the free space divided by this.
const FREE_SHARE: u64 = 4;
/// Offsets, sizes and memory of direct writes are multiples of this: no disk has larger sectors.
const ALIGN: usize = 4096;
/// Sizes are `ALIGN << n` with n below this: 4 KiB to 1 MiB.
const SIZES: u64 = 9;
const BUFFER_BYTES: usize = ALIGN << (SIZES - 1);
/// Writes between two flushes.
const WRITES_PER_FLUSH: u64 = 16;
/// Mean rate of writes in bytes a second, at most: 2.8 TB a day.
const WRITE_RATE_MAX: u64 = 32 << 20;

/// One file, one thread.
pub(super) struct Disk;

impl Load for Disk {
    fn name(&self) -> &'static str {
        "disk"
    }

    fn about(&self) -> &'static str {
        "Random writes (at most 32 MiB/s), reads and flushes of one nameless file of at most 64 \
         MiB, past the page cache where the file system allows"
    }

    fn unit(&self) -> &'static str {
        "bytes"
    }

    fn work(&self, ctx: &Context) -> Result<(), String> {
        let mut space = Buffer::new();
        let scratch = Scratch::make(ctx.dir, space.aligned())?;
        (ctx.detail)(&scratch.describe(ctx.dir));
        scratch.churn(space.aligned(), ctx).map_err(|error| {
            let size = scratch.bytes >> 20;
            format!("{size} MiB file in {}: {error}; {}", ctx.dir.display(), next_step(&error))
        })
    }
}

/// Memory of which an aligned part is used: direct writes want it, and a `Vec` does not align.
struct Buffer(Vec<u8>);

impl Buffer {
    fn new() -> Self {
        // Random bytes: a file system that compresses shall have to write.
        let mut rng = XorShift::new(0);
        let words = (BUFFER_BYTES + ALIGN) / size_of::<u64>();
        Self((0..words).flat_map(|_| rng.next().to_le_bytes()).collect())
    }

    fn aligned(&mut self) -> &mut [u8] {
        let skip = self.0.as_ptr().align_offset(ALIGN);
        &mut self.0[skip..skip + BUFFER_BYTES]
    }
}

/// The file.
struct Scratch {
    file: File,
    /// Size, a power of two.
    bytes: u64,
    is_direct: bool,
}

impl Scratch {
    /// A full file: direct where it works, smaller where there is no room.
    fn make(dir: &Path, buffer: &[u8]) -> Result<Self, String> {
        let unusable = |error: &std::io::Error| {
            format!("cannot make a file in {}: {error}; {}", dir.display(), next_step(error))
        };
        let mut is_direct = true;
        let mut file = match open(dir, OFlags::DIRECT) {
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                is_direct = false;
                open(dir, OFlags::empty())
            }
            opened => opened,
        }
        .map_err(|error| unusable(&error))?;
        let mut bytes = room(&file).unwrap_or(FILE_BYTES_MAX);
        loop {
            match fill(&file, bytes, buffer) {
                Ok(()) => {
                    return Ok(Self { file, bytes, is_direct });
                }
                Err(error) if is_full(&error) && bytes > FILE_BYTES_MIN => bytes /= 2,
                // Some file systems take the flag and refuse the write.
                Err(error) if error.kind() == ErrorKind::InvalidInput && is_direct => {
                    is_direct = false;
                    file = open(dir, OFlags::empty()).map_err(|error| unusable(&error))?;
                }
                Err(error) => return Err(unusable(&error)),
            }
        }
    }

    fn describe(&self, dir: &Path) -> String {
        let how = if self.is_direct { "O_DIRECT" } else { "through the page cache" };
        let kind = file_system(&self.file);
        format!("{how}, {} MiB file in {} ({kind})", self.bytes >> 20, dir.display())
    }

    /// Writes, reads and flushes until stopped.
    fn churn(&self, buffer: &mut [u8], ctx: &Context) -> std::io::Result<()> {
        let mut rng = XorShift::new(self.bytes);
        let start = Instant::now();
        let mut written: u64 = 0;
        let mut writes = 0;
        while !ctx.stopped() {
            let size = (ALIGN as u64) << rng.below(SIZES);
            let offset = rng.below((self.bytes - size) / ALIGN as u64 + 1) * ALIGN as u64;
            let part = &mut buffer[..usize::try_from(size).unwrap_or(ALIGN)];
            let allowed = start.elapsed().as_secs_f64() * WRITE_RATE_MAX as f64;
            if written as f64 <= allowed {
                self.file.write_all_at(part, offset)?;
                written += size;
                writes += 1;
                if writes % WRITES_PER_FLUSH == 0 {
                    self.file.sync_data()?;
                }
            } else {
                self.file.read_exact_at(part, offset)?;
            }
            ctx.counter.add(size);
        }
        Ok(())
    }
}

/// A file without a name.
#[expect(clippy::disallowed_methods, reason = "the user's directory for this load's own file")]
fn open(dir: &Path, more: OFlags) -> std::io::Result<File> {
    let flags = |flags: OFlags| i32::try_from(flags.bits()).unwrap_or(0);
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.clone().custom_flags(flags(OFlags::TMPFILE | more)).open(dir) {
        // File systems without nameless files: EOPNOTSUPP; before Linux 3.11: EISDIR.
        Err(error)
            if matches!(Errno::from_io_error(&error), Some(Errno::OPNOTSUPP | Errno::ISDIR)) =>
        {
            let path = dir.join(format!(".rtproof-disk-{}", std::process::id()));
            let file = options.create_new(true).custom_flags(flags(more)).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        }
        opened => opened,
    }
}

/// Size for the file: a power of two, at most a share of the free space; `None`: not known.
fn room(file: &File) -> Option<u64> {
    let stat = rustix::fs::fstatvfs(file).ok()?;
    let share = stat.f_bavail.saturating_mul(stat.f_frsize) / FREE_SHARE;
    let power = share.checked_ilog2().map_or(0, |log| 1 << log);
    Some(power.clamp(FILE_BYTES_MIN, FILE_BYTES_MAX))
}

/// Writes the whole file once, so that every block of it is there.
fn fill(file: &File, bytes: u64, buffer: &[u8]) -> std::io::Result<()> {
    file.set_len(0)?;
    for offset in (0..bytes).step_by(BUFFER_BYTES) {
        file.write_all_at(buffer, offset)?;
    }
    file.sync_data()
}

fn is_full(error: &std::io::Error) -> bool {
    use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

fn next_step(error: &std::io::Error) -> &'static str {
    if is_full(error) {
        "free at least 4 MiB there, or name another directory"
    } else {
        "name a directory on the disk that may be written to"
    }
}

/// Name of the file system by its magic number (linux/magic.h), with a word where it is no disk.
fn file_system(file: &File) -> String {
    let magic = match rustix::fs::fstatfs(file) {
        Ok(stat) => stat.f_type & 0xffff_ffff,
        Err(error) => return format!("file system unknown: {error}"),
    };
    let name = match magic {
        0xef53 => "ext2/3/4",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0xf2f5_2010 => "f2fs",
        0x2fc1_2fc1 => "zfs",
        0x794c_7630 => "overlayfs",
        0x2405_1905 => "ubifs",
        0x4d44 => "vfat",
        0x6969 => "nfs: the network, not a disk",
        0x0102_1994 => "tmpfs: memory, not a disk",
        0x8584_58f6 => "ramfs: memory, not a disk",
        _ => return format!("file system {magic:#x}"),
    };
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_random() {
        let mut buffer = Buffer::new();
        let part = buffer.aligned();
        assert_eq!(part.len(), BUFFER_BYTES);
        assert_eq!(part.as_ptr().align_offset(ALIGN), 0);
        assert_ne!(part[..8], part[8..16]);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "this test's own directory")]
    fn the_file_has_no_name_and_its_size() {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch::make(dir.path(), Buffer::new().aligned()).unwrap();
        assert_eq!(scratch.file.metadata().unwrap().len(), scratch.bytes);
        assert!(scratch.bytes.is_power_of_two() && scratch.bytes <= FILE_BYTES_MAX);
        assert!(dir.path().read_dir().unwrap().next().is_none(), "a file is left");
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = Scratch::make(Path::new("/nowhere"), &[]).err().unwrap();
        assert!(error.contains("/nowhere") && error.contains("name a directory"), "{error}");
    }
}
