//! The state of a bisection: one file, replaced as a whole after each step, and a lock. With the
//! steps the same questions give the same answers, so the work goes on where it was.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{Read as _, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rtproof_results::kernel::bisect::BisectStep;
use rustix::fs::{FlockOperation, OFlags};
use serde::{Deserialize, Serialize};

use crate::{file::write_whole, kernel::KernelError};

/// Version of the file.
const VERSION: &str = "rtproof kernel bisect, state 1";
const FILE: &str = "bisect.json";
const LOCK: &str = "lock";
/// What a killed bisection had started ends within this: make at the next line that it writes.
const REST: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    version: String,
    /// What was asked for, by name.
    pub(super) arguments: BTreeMap<String, String>,
    /// Whether a build is under way: where that was cut off, the newest objects may be torn.
    pub(super) is_building: bool,
    /// Steps that are done.
    pub(super) steps: Vec<BisectStep>,
    /// The kernel that is built and was to boot next.
    #[serde(default)]
    pub(super) pending: Option<Pending>,
}

/// A kernel that waits for its boot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Pending {
    /// What is known of it.
    pub(super) step: BisectStep,
    /// Identity of the boot in which it was chosen.
    pub(super) boot_id: String,
}

/// The file in a folder that tells that a bisection was begun there.
pub fn state(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// The state in its folder, held by this process and what it starts.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) state: State,
    path: PathBuf,
    _lock: File,
}

impl Held {
    /// Opens the folder: a new one, or one that was begun with the same arguments.
    pub(super) fn open(
        place: &Path,
        arguments: BTreeMap<String, String>,
    ) -> Result<Self, KernelError> {
        let lock = lock(&place.join(LOCK))?;
        let path = place.join(FILE);
        let state = match read(&path) {
            Ok(bytes) => known(&path, &bytes, &arguments)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                fresh(place)?;
                let version = VERSION.to_owned();
                State { version, arguments, is_building: false, steps: Vec::new(), pending: None }
            }
            Err(error) => return Err(KernelError::io(path)(error)),
        };
        let held = Self { state, path, _lock: lock };
        held.save()?;
        Ok(held)
    }

    /// Notes whether a build is under way.
    pub(super) fn building(&mut self, is_building: bool) -> Result<(), KernelError> {
        self.state.is_building = is_building;
        self.save()
    }

    /// Appends a step. What waited for its boot waits no longer.
    pub(super) fn append(&mut self, step: BisectStep) -> Result<(), KernelError> {
        self.state.steps.push(step);
        self.waits(None)
    }

    /// Notes which kernel waits for its boot. Its build is over.
    pub(super) fn waits(&mut self, pending: Option<Pending>) -> Result<(), KernelError> {
        self.state.is_building = false;
        self.state.pending = pending;
        self.save()
    }

    fn save(&self) -> Result<(), KernelError> {
        let text = serde_json::to_vec_pretty(&self.state)
            .map_err(|error| KernelError::path(&self.path, error.to_string()))?;
        write_whole(&self.path, |to| Ok(to.write_all(&text)?))
            .map_err(|error| KernelError::path(&self.path, format!("{error:#}")))
    }
}

/// A state that was written before, for the same question.
fn known(
    path: &Path,
    bytes: &[u8],
    arguments: &BTreeMap<String, String>,
) -> Result<State, KernelError> {
    let state: State = serde_json::from_slice(bytes).map_err(|error| {
        KernelError::path(path, format!("no state of a bisection: {error}; name another folder"))
    })?;
    if state.version != VERSION {
        let why = format!("{:?}, where {VERSION:?} is known; name another folder", state.version);
        return Err(KernelError::path(path, why));
    }
    let none = String::from("none");
    let names = state.arguments.keys().chain(arguments.keys());
    let differs = names.filter_map(|name| {
        let [was, is] = [&state.arguments, arguments].map(|of| of.get(name).unwrap_or(&none));
        (was != is).then(|| format!("  {name}: {was} -> {is}"))
    });
    let mut differs: Vec<String> = differs.collect();
    differs.sort();
    differs.dedup();
    if differs.is_empty() {
        return Ok(state);
    }
    let why = format!(
        "another bisection was begun here, with {}; name another folder, or give the same \
         arguments. What differs:\n{}",
        rtproof_judge::units::count(state.steps.len() as u64, "step"),
        differs.join("\n")
    );
    Err(KernelError::path(path, why))
}

/// Refuses a folder that holds something else.
#[expect(clippy::disallowed_methods, reason = "the folder of the answer")]
fn fresh(place: &Path) -> Result<(), KernelError> {
    let entries = fs::read_dir(place).map_err(KernelError::io(place))?;
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name()));
    let is_ours = |name: &std::ffi::OsString| {
        name == LOCK || name.to_string_lossy().starts_with(&format!("{FILE}."))
    };
    match names.into_iter().find(|name| !is_ours(name)) {
        None => Ok(()),
        Some(name) => {
            let why = format!("holds {name:?} and no bisection; name a new folder");
            Err(KernelError::path(place, why))
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the folder of the answer")]
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    fs::read(path)
}

/// Takes the lock. What we start inherits it: a make that outlives us still writes objects.
#[expect(clippy::disallowed_methods, reason = "the folder of the answer")]
fn lock(path: &Path) -> Result<File, KernelError> {
    let mut options = OpenOptions::new();
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    options.read(true).write(true).create(true).truncate(false).mode(0o644).custom_flags(flags);
    let mut file = options.open(path).map_err(KernelError::io(path))?;
    let began = Instant::now();
    while let Err(errno) = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if errno != rustix::io::Errno::WOULDBLOCK {
            return Err(KernelError::io(path)(errno.into()));
        }
        let mut pid = String::new();
        let _ = OpenOptions::new()
            .read(true)
            .open(path)
            .and_then(|of| of.take(32).read_to_string(&mut pid));
        let alive = pid.trim().parse().ok().and_then(rustix::process::Pid::from_raw);
        let is_alive = alive.is_none_or(|pid| {
            rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
        });
        if is_alive || began.elapsed() > REST {
            let why = match is_alive {
                true => format!("another bisection works here, process {}", pid.trim()),
                false => "what a killed bisection had started still runs; try again".to_owned(),
            };
            return Err(KernelError::path(path, why));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(KernelError::io(path))?;
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty())
        .map_err(|errno| KernelError::io(path)(errno.into()))?;
    Ok(file)
}
