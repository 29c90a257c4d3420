//! Loads of disks and file systems.

use std::{
    fs::{File, OpenOptions},
    io::ErrorKind,
    os::{
        fd::{AsFd, OwnedFd},
        unix::fs::{FileExt, OpenOptionsExt},
    },
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags},
    io::Errno,
};

use super::cpu::XorShift;
use super::{Load, LoadContext, LoadInput};
use crate::{Failure, apart};

/// Largest file in bytes.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Smallest file that is worth the name.
const FILE_BYTES_MIN: u64 = 1 << 20;

/// Longest time to fill it.
const FILL_MAX: Duration = Duration::from_secs(1);

/// The file takes at most the free space divided by this.
const FREE_SHARE: u64 = 4;

/// Offsets, sizes and memory of direct writes are multiples of this: no disk has larger sectors.
const ALIGN: usize = 4096;

/// Sizes are `ALIGN << n` with n below this: 4 KiB to 1 MiB.
const SIZES: u64 = 9;

const BUFFER_BYTES: usize = ALIGN << (SIZES - 1);

// Rewrites a file and reads it back, past the page cache where the file system allows. Brings out
// disk interrupts and their softirqs, completion work on other CPUs, writeback and journal
// threads, and flushes of the disk's own cache.
//
// Bounded: one file of at most 64 MiB and a quarter of the free space, without a name, so that
// nothing stays after a SIGKILL; and a rate of writes, because a flash disk that is written to at
// full speed through a run of days is worn out. Between writes the disk is kept busy with reads.
//
// What a file system refuses is left out and said: O_DIRECT, and flushes (fsync). The file is
// never resized or asked about: servers that know files by name alone (9p of QEMU before 10.1)
// answer ENOENT then.

/// Writes between two flushes.
const WRITES_PER_FLUSH: u64 = 16;

/// Mean rate of writes in bytes a second, at most: 2.8 TB a day.
const WRITE_RATE_MAX: u64 = 32 << 20;

/// One file, one thread.
pub(super) const DISK: Load = Load {
    name: "disk",
    about: "Random writes (at most 32 MiB/s), reads and flushes of one nameless file of at most 64 \
         MiB, past the page cache where the file system allows",
    unit: "bytes",
    parameter: None,
    prepare: None,
    work: work_disk,
};

fn work_disk(ctx: &LoadContext) -> Result<(), Failure> {
    let mut space = Buffer::new();
    let scratch = Scratch::make(ctx.before.dir, space.aligned(), &|bytes| ctx.counter.add(bytes))?;
    (ctx.detail)(&scratch.describe(ctx.before.dir));
    scratch.write_loop(space.aligned(), ctx).map_err(|(doing, error)| {
        let size = scratch.bytes >> 20;
        let how = format!("{size} MiB file in {}: cannot {doing}", ctx.before.dir.display());
        format!("{how}: {error}; {}", next_step(&error)).into()
    })
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

/// What was tried, and why it failed.
type FailedStep = (&'static str, std::io::Error);

struct Scratch {
    file: File,
    /// Size, a power of two.
    bytes: u64,
    is_direct: bool,
    /// Why it is not flushed.
    no_flush: Option<String>,
}

impl Scratch {
    /// A full file: direct where it works, smaller where there is no room. `written` receives what
    /// filling it takes.
    fn make(dir: &Path, buffer: &[u8], written: &dyn Fn(u64)) -> Result<Self, Failure> {
        let unusable = |(doing, error): &FailedStep| {
            let dir = dir.display();
            format!("cannot {doing} a file in {dir}: {error}; {}", next_step(error))
        };
        let mut is_direct = true;
        let mut bytes = room(dir).unwrap_or(FILE_BYTES_MAX);
        loop {
            let flags = if is_direct { OFlags::DIRECT } else { OFlags::empty() };
            let filled = open(dir, flags)
                .map_err(|error| ("make", error))
                .and_then(|file| Ok((fill(&file, bytes, buffer, written)?, file)));
            match filled {
                Ok((bytes, file)) => {
                    let no_flush =
                        try_flush(file.sync_data()).map_err(|error| unusable(&("flush", error)))?;
                    return Ok(Self { file, bytes, is_direct, no_flush });
                }
                Err((_, error)) if is_full(&error) && bytes > FILE_BYTES_MIN => bytes /= 2,
                // Some file systems refuse the flag, others take it and refuse the write.
                Err((_, error)) if is_direct && is_refused(&error) => is_direct = false,
                Err(failure) => return Err(Failure(unusable(&failure))),
            }
        }
    }

    fn describe(&self, dir: &Path) -> String {
        let how = if self.is_direct { "O_DIRECT" } else { "through the page cache" };
        let flush = self
            .no_flush
            .as_ref()
            .map_or(String::new(), |why| format!(", not flushed (fsync is refused here: {why})"));
        let kind = file_system(dir);
        format!("{how}{flush}, {} MiB file in {} ({kind})", self.bytes >> 20, dir.display())
    }

    /// Writes, reads and flushes until stopped.
    fn write_loop(&self, buffer: &mut [u8], ctx: &LoadContext) -> Result<(), FailedStep> {
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
                self.file.write_all_at(part, offset).map_err(|error| ("write", error))?;
                written += size;
                writes += 1;
                if writes % WRITES_PER_FLUSH == 0 && self.no_flush.is_none() {
                    self.file.sync_data().map_err(|error| ("flush", error))?;
                }
            } else {
                self.file.read_exact_at(part, offset).map_err(|error| ("read", error))?;
            }
            ctx.counter.add(size);
        }
        Ok(())
    }
}

/// Whether a file system says that it does not do this: EINVAL, EOPNOTSUPP, ENOSYS.
fn is_refused(error: &std::io::Error) -> bool {
    let refusals = [Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS];
    Errno::from_io_error(error).is_some_and(|errno| refusals.contains(&errno))
}

/// Why flushes are left out, where they are refused; other errors are errors.
fn try_flush(flushed: std::io::Result<()>) -> std::io::Result<Option<String>> {
    match flushed {
        Ok(()) => Ok(None),
        Err(error) if is_refused(&error) => Ok(Some(error.to_string())),
        Err(error) => Err(error),
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
fn room(dir: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(dir).ok()?;
    let share = stat.f_bavail.saturating_mul(stat.f_frsize) / FREE_SHARE;
    let power = share.checked_ilog2().map_or(0, |log| 1 << log);
    Some(power.clamp(FILE_BYTES_MIN, FILE_BYTES_MAX))
}

/// Writes the file once, so that every block of it is there. On a slow disk it stays smaller, so
/// that the load is soon what it is to be. Returns its size, a power of two.
fn fill(file: &File, bytes: u64, buffer: &[u8], written: &dyn Fn(u64)) -> Result<u64, FailedStep> {
    let start = Instant::now();
    for offset in (0..bytes).step_by(BUFFER_BYTES) {
        if offset >= FILE_BYTES_MIN && start.elapsed() > FILL_MAX {
            return Ok(1 << offset.ilog2());
        }
        file.write_all_at(buffer, offset).map_err(|error| ("write", error))?;
        written(buffer.len() as u64);
    }
    Ok(bytes)
}

fn is_full(error: &std::io::Error) -> bool {
    use ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

fn next_step(error: &std::io::Error) -> &'static str {
    if is_full(error) {
        "free at least 4 MiB there, or name another folder with --load-dir"
    } else {
        "name a folder on a disk that may be written to with --load-dir"
    }
}

/// Name of the file system by its magic number (linux/magic.h), with a word where it is no disk.
fn file_system(dir: &Path) -> String {
    let magic = match rustix::fs::statfs(dir) {
        Ok(stat) => stat.f_type as u32,
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
        0x0102_1997 => "9p: another machine's files, not a disk",
        0x6573_5546 => "fuse: a program's files",
        0x0102_1994 => "tmpfs: memory, not a disk",
        0x8584_58f6 => "ramfs: memory, not a disk",
        _ => return format!("file system {magic:#x}"),
    };
    name.into()
}

// Makes, links, renames, lists and removes many small files. Brings out the metadata of file
// systems: path lookup and its locks, the caches of names and inodes and the RCU callbacks that
// free them, and, on the file system of the load's folder, its journal.
//
// Bounded: 64 files for each load CPU. Those with names are in a file system in memory that only
// the worker sees; on the load's folder files have no name. So nothing stays after a SIGKILL.

/// Files of a round.
const FILES: usize = 64;

/// Size of a file in bytes.
const FILE_BYTES: usize = 1024;

/// Most that the file system in memory holds.
const MEMORY_BYTES_MAX: u64 = 64 << 20;

/// Rounds on each load CPU.
pub(super) const FILES_LOAD: Load = Load {
    name: "files",
    about: "Makes, links, renames, lists and removes small files, 64 at a time on each load CPU, \
            in a file system in memory that only it sees. For each 64, one nameless file in the \
            load's folder works the journal of that file system",
    unit: "files",
    parameter: None,
    prepare: Some(|before| Ok(apart::folder(before.dir, MEMORY_BYTES_MAX)?.0)),
    work: work_files,
};

fn work_files(ctx: &LoadContext) -> Result<(), Failure> {
    let (LoadInput { cpus, dir, .. }, real) = (&ctx.before, ctx.held.ok_or("no folder is held")?);
    let nameless = match make_nameless(real) {
        Ok(()) => "and nameless files there",
        Err(Errno::OPNOTSUPP | Errno::ISDIR) => "no nameless files there (not supported)",
        Err(error) => return Err(format!("{}: {error}", dir.display()).into()),
    };
    let (count, bytes) = (cpus.len(), FILE_BYTES);
    let place = dir.display();
    (ctx.detail)(&format!(
        "{count} x {FILES} files of {bytes} bytes in a tmpfs over {place}, {nameless}"
    ));
    let is_real = nameless.starts_with("and");
    let path = std::path::absolute(dir)?;
    ctx.on_each_cpu(|cpu| {
        let at = |error: Errno| Failure(format!("{}: {error}", path.display()));
        let folder = open_folder(rustix::fs::CWD, &path).map_err(at)?;
        let name = format!("cpu{cpu}");
        rustix::fs::mkdirat(&folder, &name, Mode::RWXU).map_err(at)?;
        let own = open_folder(&folder, &name).map_err(at)?;
        while !ctx.stopped() {
            round(&own).map_err(at)?;
            if is_real {
                make_nameless(real).map_err(at)?;
            }
            ctx.counter.add(FILES as u64);
        }
        Ok(())
    })
}

fn open_folder(from: impl AsFd, path: impl rustix::path::Arg) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(from, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// Every kind of change of a name, on every file.
fn round(folder: &OwnedFd) -> rustix::io::Result<()> {
    let names = |kind: &str| (0..FILES).map(|n| format!("{kind}{n}")).collect::<Vec<_>>();
    let (made, linked, renamed) = (names("made"), names("linked"), names("renamed"));
    for ((made, linked), renamed) in made.iter().zip(&linked).zip(&renamed) {
        let create = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, made, create, Mode::RUSR | Mode::WUSR)?;
        rustix::io::write(&file, &[0x5a; FILE_BYTES])?;
        rustix::fs::linkat(folder, made, folder, linked, AtFlags::empty())?;
        rustix::fs::renameat(folder, made, folder, renamed)?;
        // A name that is not there is looked up, too.
        let gone = rustix::fs::statat(folder, made, AtFlags::empty());
        debug_assert!(gone.is_err());
        rustix::fs::statat(folder, renamed, AtFlags::empty())?;
    }
    for entry in Dir::read_from(folder)? {
        entry?;
    }
    for name in linked.iter().chain(&renamed) {
        rustix::fs::unlinkat(folder, name, AtFlags::empty())?;
    }
    Ok(())
}

/// A file without a name: made, filled, changed, and gone when it is closed.
fn make_nameless(folder: &OwnedFd) -> rustix::io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, ".", flags, Mode::RUSR | Mode::WUSR)?;
    rustix::io::write(&file, &[0x5a; FILE_BYTES])?;
    rustix::fs::fchmod(&file, Mode::RUSR)?;
    rustix::fs::ftruncate(&file, 0)
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
        let scratch = {
            let written = std::cell::Cell::new(0);
            let count = |bytes| written.set(written.get() + bytes);
            let scratch = Scratch::make(dir.path(), Buffer::new().aligned(), &count).unwrap();
            assert!(written.get() >= scratch.bytes, "filling is work too");
            scratch
        };
        // A disk that is slow was filled further than to a power of two.
        assert!(scratch.file.metadata().unwrap().len() >= scratch.bytes);
        assert!(scratch.bytes.is_power_of_two() && scratch.bytes <= FILE_BYTES_MAX);
        assert!(dir.path().read_dir().unwrap().next().is_none(), "a file is left");
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let error = Scratch::make(Path::new("/nowhere"), &[], &|_| {}).err().unwrap();
        for part in ["make a file in /nowhere", "os error 2", "--load-dir"] {
            assert!(error.0.contains(part), "{error}");
        }
    }

    #[test]
    fn refused_flushes_are_skipped_and_reported() {
        let failed = |errno: Errno| try_flush(Err(errno.into()));
        assert_eq!(try_flush(Ok(())).unwrap(), None);
        for errno in [Errno::INVAL, Errno::OPNOTSUPP, Errno::NOSYS] {
            assert!(failed(errno).unwrap().is_some());
        }
        assert!(failed(Errno::IO).is_err() && failed(Errno::NOSPC).is_err());
        let dir = tempfile::tempdir().unwrap();
        let mut scratch = Scratch::make(dir.path(), Buffer::new().aligned(), &|_| {}).unwrap();
        assert!(!scratch.describe(dir.path()).contains("fsync"));
        scratch.no_flush = failed(Errno::INVAL).unwrap();
        let text = scratch.describe(dir.path());
        assert!(text.contains("fsync is refused here: Invalid argument (os error 22)"), "{text}");
    }
}

#[cfg(test)]
mod files_tests {
    use super::*;

    #[test]
    fn a_round_leaves_its_folder_empty() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = open_folder(rustix::fs::CWD, dir.path()).expect("it opens");
        round(&folder).expect("a round");
        round(&folder).expect("another");
        #[expect(clippy::disallowed_methods, reason = "this test's own folder")]
        let left = std::fs::read_dir(dir.path()).expect("it is there").count();
        assert_eq!(left, 0);
    }
}
