//! Makes, links, renames, lists and removes many small files. Brings out the metadata of file
//! systems: path lookup and its locks, the caches of names and inodes and the RCU callbacks that
//! free them, and, on the file system of the load's folder, its journal.
//!
//! Bounded: 64 files for each load CPU. Those with names are in a file system in memory that only
//! the worker sees; on the load's folder files have no name. So nothing stays after a SIGKILL.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use super::super::load::{Before, Context, Load};
use crate::{apart, failure::Failure};

/// Files of a round.
const FILES: usize = 64;
/// Size of a file in bytes.
const FILE_BYTES: usize = 1024;
/// Most that the file system in memory holds.
const MEMORY_BYTES_MAX: u64 = 64 << 20;

/// Rounds on each load CPU.
pub(super) const LOAD: Load = Load {
    name: "files",
    about: "Makes, links, renames, lists and removes small files, 64 at a time on each load CPU, \
            in a file system in memory that only it sees. For each 64, one nameless file in the \
            load's folder works the journal of that file system",
    unit: "files",
    parameter: None,
    prepare: Some(|before| Ok(apart::folder(before.dir, MEMORY_BYTES_MAX)?.0)),
    work,
};

fn work(ctx: &Context) -> Result<(), Failure> {
    let (Before { cpus, dir, .. }, real) = (&ctx.before, ctx.held.ok_or("no folder is held")?);
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
