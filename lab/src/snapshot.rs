//! Saved states: a guest is booted once up to where its init waits, later starts resume from there
//! in a fraction of a second. One state for each kernel, command line, machine and QEMU.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use rtproof_guest::{
    Emulator,
    process::{NEVER, SPEAK_LIMIT, Spec},
};
use sha2::{Digest, Sha256};

use crate::cache::Cache;
use crate::kernels::Ready;
use crate::machine::{Machine, share_of};
use crate::state;

/// Word on the kernel's command line that makes init wait.
const WAIT: &str = "labsnap";

/// Arguments and state of a guest that resumes.
#[derive(Debug)]
pub struct Saved {
    /// Arguments, the same as when it was saved, but for the shared folder.
    pub arguments: Vec<String>,
    pub state: PathBuf,
}

/// The saved state of a machine, made if it is not in the cache. `dir` gets the console.
///
/// # Errors
/// The guest does not boot.
pub fn saved(
    machine: &Machine,
    emulator: &Emulator,
    ready: &Ready,
    cache: &Cache,
    dir: &Path,
) -> Result<Saved> {
    let mut arguments = machine.hardware(emulator, cache)?;
    let mut key = Sha256::new();
    for part in arguments.iter().chain([&machine.kernel_command_line(WAIT)?, &ready.digest]) {
        key.update(part.as_bytes());
        key.update([0]);
    }
    key.update(format!("{:?}", emulator.version));
    arguments.extend(machine.kernel_arguments(ready, &ready.initramfs, WAIT)?);
    let digest: String = key.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    let state =
        cache.entry("snapshots", &format!("{}-{}", machine.kernel, &digest[..16]), |to| {
            let share = share_of(dir);
            fs::create_dir_all(&share)?;
            let mut with_share = arguments.clone();
            with_share.extend(Machine::share_arguments(&share));
            let spec = Spec {
                emulator,
                arguments: with_share,
                dir,
                speak_limit: SPEAK_LIMIT,
                limit: std::time::Duration::from_secs(120),
                cues: &[],
                ends_at_panic: false,
                interrupted: NEVER,
            };
            state::save(&spec, to).with_context(|| format!("save the state of {}", machine.kernel))
        })?;
    Ok(Saved { arguments, state })
}
