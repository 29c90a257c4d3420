//! Trial boots: a kernel is built in the machine's own one, boots once and is tested there; the
//! boot after it is the machine's own again. A boot that did not come so far skips the step.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{Read as _, Write as _},
    os::unix::{fs::OpenOptionsExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, OFlags},
    process::{Pid, Signal, kill_process_group},
};
use serde::{Deserialize, Serialize};

use rtproof_guest::inside;
use rtproof_host::{
    Root,
    boot::{Word, cmdline},
    door::{self, write_whole},
    tune::Machine,
};
use rtproof_kernel::{KernelError, compare::BootedKernel};
use rtproof_measure::LiveTasks;
use rtproof_results::kernel::{BisectStep, GuestStep, KernelBisectNext, NEXT_SCHEMA};

use super::{BisectWatch, TrialBoots};
use crate::tune::{
    self, Once,
    kernel::{self, KernelSource},
};

/// Title of the journals of the boot entry.
const TITLE: &str = "kernel bisect";

/// Boot parameter with the number of the step; the kernel ignores it.
const PARAMETER: &str = "rtproof.bisect";

/// Between two looks at a program that runs.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Time for a program to end by itself.
const PROGRAM_REST: Duration = Duration::from_secs(5);

/// Bytes of a program's output that are kept in memory.
const OUTPUT_MAX: u64 = 64 << 10;

/// The machine that boots the kernels.
pub(super) struct BisectBoots<'a> {
    trial: &'a TrialBoots,
    title: String,
}

/// What is tested in the kernel that runs.
pub(super) struct Test<'a, 'w> {
    /// Its name, program and arguments, as a guest would run it.
    pub(super) step: Option<&'a (String, Vec<String>)>,
    pub(super) limit: Duration,
    /// Where the kernel was built.
    pub(super) objects: &'a Path,
    /// Folder of its files.
    pub(super) folder: &'a Path,
    pub(super) watch: &'a BisectWatch<'w>,
}

/// The boot that runs.
pub(super) enum RunningBoot {
    /// The one of the step that waits for it.
    Trial,
    /// One of a step, and none waits.
    Tested,
    /// The one in which the step was chosen: nothing has booted since.
    Chosen,
    Other,
}

impl<'a> BisectBoots<'a> {
    /// The machine, for the bisection in a folder.
    pub(super) fn of(trial: &'a TrialBoots, place: &Path) -> Self {
        Self { trial, title: format!("{TITLE} {}", place.display()) }
    }

    const fn root(&self) -> &Root {
        &self.trial.root
    }

    pub(super) fn boot_id(&self) -> Result<String, KernelError> {
        Ok(tune::boot_id(self.root())?)
    }

    /// Boot parameter that identifies the boot of a step.
    fn word(pending: &Pending) -> String {
        let boot = pending.boot_id.get(..8).unwrap_or(&pending.boot_id);
        format!("{PARAMETER}={}-{boot}", pending.step.number)
    }

    pub(super) fn running(&self, pending: Option<&Pending>) -> Result<RunningBoot, KernelError> {
        let line = self.root().trimmed("/proc/cmdline");
        let Some(line) = line.value() else {
            let why = line.why_unknown().unwrap_or_default().to_string();
            return Err(KernelError::path("/proc/cmdline", why));
        };
        let Some(pending) = pending else {
            let is_ours = cmdline::has(line, PARAMETER);
            return Ok(if is_ours { RunningBoot::Tested } else { RunningBoot::Other });
        };
        let word = Self::word(pending);
        Ok(match () {
            () if cmdline::split(line).iter().any(|token| token.text == word) => RunningBoot::Trial,
            () if self.boot_id()? == pending.boot_id => RunningBoot::Chosen,
            () => RunningBoot::Other,
        })
    }

    /// Lets the kernel in a folder boot next, once. Returns the argument of reboot(2).
    pub(super) fn arm(
        &self,
        objects: &Path,
        pending: &Pending,
    ) -> Result<Option<String>, KernelError> {
        self.undo()?;
        let machine = self.machine()?;
        let words = self.words(&Self::word(pending));
        let source = KernelSource::Build(objects.to_owned());
        let kernel = Some((&source, &self.trial.initrd));
        Ok(Once { title: &self.title, kernel, words: &words }.arm(&machine)?)
    }

    fn words(&self, own: &str) -> Vec<Word> {
        let given = self.trial.words.iter().map(String::as_str);
        given.chain([own]).map(Word::set).collect()
    }

    /// Looks before the first build whether anything can boot.
    pub(super) fn check(&self) -> Result<(), KernelError> {
        let loader = kernel::check(self.root(), &self.trial.initrd)?;
        loader.real_time(self.root(), &self.words(PARAMETER)).map_err(anyhow::Error::from)?;
        Ok(())
    }

    /// Removes the entry and the kernel of the last step. One boot can be chosen at a time, so
    /// another bisection that waits for its own is left alone, and this one cannot go on.
    pub(super) fn undo(&self) -> Result<(), KernelError> {
        let machine = self.machine()?;
        let in_force = tune::in_force(&machine, TITLE)?;
        if let Some(other) = in_force.iter().find(|title| **title != self.title) {
            let place = other.strip_prefix(TITLE).unwrap_or(other).trim();
            let why = "another bisection waits there for its boot: let it go on, or give it up \
                       with rtproof tune undo --all";
            return Err(KernelError::path(place, why));
        }
        Ok(tune::undo(&machine, &self.title)?)
    }

    fn machine(&self) -> Result<Machine<'_>, KernelError> {
        Machine::new(self.root(), &LiveTasks).map_err(|error| KernelError::Guest(error.into()))
    }

    /// The kernel that runs.
    fn kernel(&self, objects: &Path, folder: &Path) -> BootedKernel {
        let release = self.root().trimmed("/proc/sys/kernel/osrelease");
        BootedKernel {
            image: objects.display().to_string(),
            release: release.value().cloned().unwrap_or_default(),
            config: Some(objects.join(".config").display().to_string()),
            folder: folder.display().to_string(),
        }
    }

    /// Runs the test in the kernel that runs.
    pub(super) fn test(
        &self,
        test: &Test<'_, '_>,
    ) -> Result<(BootedKernel, GuestStep), KernelError> {
        self.settle(test.watch)?;
        let Some((name, words)) = test.step else {
            return Err(KernelError::path(test.folder, "no test"));
        };
        let ran = ran(test, name, words)?;
        Ok((self.kernel(test.objects, test.folder), ran))
    }

    /// Waits until what starts with the machine has settled.
    fn settle(&self, watch: &BisectWatch<'_>) -> Result<(), KernelError> {
        let path = "/proc/uptime";
        if self.trial.settle.is_zero() {
            return Ok(());
        }
        loop {
            let read = self.root().trimmed(path);
            let first = read.value().and_then(|text| text.split(' ').next()?.parse().ok());
            let Some(seconds): Option<f64> = first else {
                return Err(KernelError::path(path, "it does not say since when the machine runs"));
            };
            let Some(rest) = self.trial.settle.checked_sub(Duration::from_secs_f64(seconds)) else {
                return Ok(());
            };
            if watch.is_stopped("the machine settles", Duration::ZERO) {
                return Err(KernelError::path(path, "ended by a signal"));
            }
            std::thread::sleep(rest.min(POLL_INTERVAL));
        }
    }
}

/// Runs a program of a test, within its time.
fn ran(test: &Test<'_, '_>, name: &str, words: &[String]) -> Result<GuestStep, KernelError> {
    let file = |ending: &str| test.folder.join(format!("{name}.{ending}"));
    let to = |ending: &str| {
        door::create_anew(&file(ending), 0o644).map_err(KernelError::io(file(ending)))
    };
    let found = match words.first().map(String::as_str) {
        Some("rtproof") => std::env::current_exe().map_err(KernelError::io("/proc/self/exe"))?,
        Some(first) => inside::find_program(first).ok_or_else(|| {
            // Of this machine, not of a kernel.
            KernelError::Guest(anyhow::anyhow!(
                "{first}: no such program: neither a file nor in a folder of PATH"
            ))
        })?,
        None => return Err(KernelError::path(test.folder, "no test")),
    };
    let mut command = Command::new(found);
    for word in &words[1..] {
        match word.as_str() {
            // As in a guest.
            "/out/prove" if name == "prove" => command.arg(test.folder.join("prove")),
            word => command.arg(word),
        };
    }
    // A group of its own: what it starts ends with it.
    command.stdin(Stdio::null()).stdout(to("out")?).stderr(to("err")?).process_group(0);
    let began = Instant::now();
    let mut child = command.spawn().map_err(KernelError::io(&words[0]))?;
    let (status, why) = loop {
        if let Some(status) = child.try_wait().map_err(KernelError::io(&words[0]))? {
            break (Some(status), None);
        }
        let is_late = began.elapsed() > test.limit;
        if is_late || test.watch.is_stopped(name, began.elapsed()) {
            end(&mut child);
            let why = format!("it did not end within {} s (--timeout)", test.limit.as_secs());
            break (None, Some(why));
        }
        std::thread::sleep(POLL_INTERVAL);
    };
    let exit = status.and_then(|status| status.code());
    let signal = status.filter(|_| exit.is_none()).map(|status| status.to_string());
    Ok(GuestStep {
        name: name.to_owned(),
        command: words.to_vec(),
        exit,
        why: why.or(signal),
        seconds: began.elapsed().as_secs_f64(),
        output: text(&file("out")),
        errors: text(&file("err")),
    })
}

/// Ends a program and what it started: `prove` leaves a record that opens, where it gets the time.
fn end(child: &mut Child) {
    let Some(pid) = Pid::from_raw(child.id().cast_signed()) else { return };
    let began = Instant::now();
    let _ = kill_process_group(pid, Signal::TERM);
    while began.elapsed() < PROGRAM_REST && matches!(child.try_wait(), Ok(None)) {
        std::thread::sleep(POLL_INTERVAL);
    }
    let _ = kill_process_group(pid, Signal::KILL);
    let _ = child.wait();
}

/// What comes next, as the end of this process's work.
pub(super) fn next(
    place: &Path,
    step: Option<usize>,
    reboot: Option<String>,
    steps: &[BisectStep],
) -> KernelError {
    let then = match step {
        Some(number) => format!("the kernel of step {number} boots once, to be tested"),
        None => "the machine's own kernel boots, and the next one is built in it".to_owned(),
    };
    KernelError::Reboots(Box::new(KernelBisectNext {
        schema: NEXT_SCHEMA,
        folder: place.display().to_string(),
        step,
        reboot,
        then,
        steps: steps.to_vec(),
    }))
}

fn text(path: &Path) -> String {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = door::read(path).and_then(|file| file.take(OUTPUT_MAX).read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => error.to_string(),
    }
}

// The state of a bisection: one file, replaced as a whole after each step, and a lock. With the
// steps the same questions give the same answers, so the work goes on where it was.

/// Version of the file.
const VERSION: &str = "rtproof kernel bisect, state 1";

const FILE: &str = "bisect.json";

const LOCK: &str = "lock";

/// Processes of a killed bisection end within this time: make at the next line that it writes.
const BISECT_REST: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    version: String,
    /// The request, as names and values.
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
    /// The step that is tested.
    pub(super) step: BisectStep,
    /// Identity of the boot in which it was chosen.
    pub(super) boot_id: String,
}

/// The state file of a bisection in a folder.
pub fn state_file(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// The state in its folder, held by this process and what it starts.
#[derive(Debug)]
pub(super) struct HeldState {
    pub(super) state: State,
    path: PathBuf,
    _lock: File,
}

impl HeldState {
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

/// Bytes of the file of a bisection.
const STATE_MAX: u64 = 256 << 20;

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    door::read_bytes(path, STATE_MAX)
}

/// Takes the lock. Children inherit it: a make that outlives us still writes objects.
#[expect(clippy::disallowed_methods, reason = "the folder of the answer")]
fn lock(path: &Path) -> Result<File, KernelError> {
    let mut options = OpenOptions::new();
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    options.read(true).write(true).create(true).truncate(false).mode(0o644).custom_flags(flags);
    let mut file = options.open(path).map_err(KernelError::io(path))?;
    let began = Instant::now();
    while let Err(errno) = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if errno != rustix::io::Errno::WOULDBLOCK {
            return Err(KernelError::io(path)(errno.into()));
        }
        let mut pid = String::new();
        let _ = door::read(path).and_then(|of| of.take(32).read_to_string(&mut pid));
        let alive = pid.trim().parse().ok().and_then(Pid::from_raw);
        let is_alive = alive.is_none_or(|pid| {
            rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH)
        });
        if is_alive || began.elapsed() > BISECT_REST {
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
