//! Fills a file system but for some bytes, and empties it again.

use std::{
    fs::{self, File},
    io::{ErrorKind, Write},
    path::Path,
};

use crate::args::Args;
use crate::failure::Failure;
use crate::run::Frame;

const CHUNK: u64 = 1 << 20;

pub(super) fn fill_disk(frame: Frame, args: &Args) -> Result<(), Failure> {
    let dir = Path::new(args.needed("dir").map_err(Failure::Usage)?);
    let leave = args.bytes("leave").map_err(Failure::Usage)?.unwrap_or(0);
    frame.run("fill-disk", args, |run, truth| {
        let path = dir.join(format!("lab-plant-{}", std::process::id()));
        truth.set("free_before", free(dir)?);
        let filled = fill(&path, dir, leave);
        if let Ok(bytes) = &filled {
            truth.set("bytes", bytes);
            truth.set("free", free(dir)?);
            truth.set("filled_ns", crate::clock::now_ns());
            run.sleep_out();
        }
        let removed = fs::remove_file(&path);
        truth.set("free_after", free(dir)?);
        filled?;
        removed.map_err(|error| format!("{}: remove: {error}", path.display()))
    })
}

/// Writes until not more than `leave` bytes are free; how many were written.
fn fill(path: &Path, dir: &Path, leave: u64) -> Result<u64, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let zeros = vec![0; CHUNK as usize];
    let mut file = File::create(path).map_err(failed)?;
    let mut written = 0_u64;
    loop {
        let more = free(dir)?.saturating_sub(leave).min(CHUNK);
        let chunk = &zeros[..usize::try_from(more).unwrap_or(0)];
        match file.write(chunk) {
            Ok(0) => break,
            Ok(bytes) => written += bytes as u64,
            Err(error) if error.kind() == ErrorKind::StorageFull => break,
            Err(error) => return Err(failed(error)),
        }
        // Delayed allocation would hide what is really free.
        file.sync_data().map_err(failed)?;
    }
    Ok(written)
}

/// Bytes that a user can still write.
fn free(dir: &Path) -> Result<u64, String> {
    let stat = rustix::fs::statvfs(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    Ok(stat.f_bavail * stat.f_frsize)
}
