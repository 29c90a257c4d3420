//! One guest: a QEMU process from start to end, with its console, its time limit, and its end by
//! process id. It never outlives the lab: it dies with the thread that started it.

use std::{
    fmt, fs,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        mpsc::{self, RecvTimeoutError},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::json;

use crate::{
    console::{self, Mark},
    emulator::Emulator,
    qmp::Monitor,
};

/// Time that a guest has until its init speaks. An icount boot takes 5 to 13 s on a quiet machine.
pub const SPEAK_LIMIT: Duration = Duration::from_secs(90);
/// The same for a whole Debian: 40 to 100 s.
pub const SPEAK_LIMIT_DISK: Duration = Duration::from_secs(240);
/// Time between the end of the script and that of QEMU.
const END_LIMIT: Duration = Duration::from_secs(20);
/// Time to save or load a state.
const STATE_LIMIT: Duration = Duration::from_secs(60);

/// What the host does when the guest asks: stop the emulator for a while, cut the power.
pub type Cue = Arc<dyn Fn(&Process) -> Result<()> + Send + Sync>;

/// What to start.
pub struct Spec<'a> {
    /// QEMU.
    pub emulator: &'a Emulator,
    /// Arguments of the machine, kernel, share.
    pub arguments: Vec<String>,
    /// Folder for console.log and command.txt.
    pub dir: &'a Path,
    /// Time until init speaks.
    pub speak_limit: Duration,
    /// Time that the whole guest may take from then on.
    pub limit: Duration,
    /// Saved state to resume from.
    pub resume: Option<&'a Path>,
    /// What the host does at which cue.
    pub cues: &'a [(String, Cue)],
}

/// How a guest ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The script ended with this code.
    Script(i32),
    /// QEMU ended without a word from the script: panic, power off, reboot, power cut.
    Silent,
    /// The time limit; killed.
    TimedOut,
    /// Init was not heard within its time limit; killed: not the case's fault.
    NeverSpoke,
    /// QEMU ended before init was heard: a panic, or a disk that does not come up.
    DiedEarly,
    /// Init could not do its work.
    Broken(String),
}

/// The guest did not come to where its script begins, which is not the case's fault. Part of an
/// error's chain.
#[derive(Debug)]
pub struct NotReady;

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the guest did not come to its script")
    }
}

/// What came of a guest.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// Seconds from start to end.
    pub seconds: f64,
    /// Seconds until init spoke (or the state had been resumed).
    pub init_s: Option<f64>,
    /// Base64 lines of a tar.gz that came over the console.
    pub files: Vec<String>,
}

impl Outcome {
    /// Whether the guest did not come up and that is not what the case is about: with a disk of its
    /// own (`may_die`) a panic may be, silence up to the time limit never is.
    #[must_use]
    pub fn is_mute(&self, may_die: bool) -> bool {
        match self.ending {
            Ending::NeverSpoke => true,
            Ending::DiedEarly => !may_die,
            _ => false,
        }
    }
}

/// A running QEMU.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    pid: Pid,
}

impl Process {
    /// Stops the whole emulator for a while: seen from the guest, a gap.
    ///
    /// # Errors
    /// It has ended.
    pub fn stop_for(&self, time: Duration) -> Result<()> {
        self.signal(Signal::STOP)?;
        std::thread::sleep(time);
        self.signal(Signal::CONT)
    }

    /// Ends the emulator at once: seen from the guest, a power cut.
    ///
    /// # Errors
    /// It has ended.
    pub fn power_cut(&self) -> Result<()> {
        kill_process_group(self.pid, Signal::KILL)
            .with_context(|| format!("end QEMU {:?}", self.pid))
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(self.pid, signal).with_context(|| format!("signal to QEMU {:?}", self.pid))
    }
}

/// A started QEMU, killed when dropped.
struct Running {
    child: Child,
}

impl Drop for Running {
    fn drop(&mut self) {
        // With all that it started. None there, or ended already: both are what is wanted.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The command that starts QEMU: its own process group, killed by the kernel when the thread that
/// started it ends.
fn command(emulator: &Emulator, arguments: &[String]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]);
    command.arg(&emulator.program).args(&emulator.arguments).args(arguments);
    command.process_group(0);
    command
}

fn start(spec: &Spec<'_>, arguments: &[String]) -> Result<Running> {
    let mut command = command(spec.emulator, arguments);
    let quoted: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| shell_quoted(&word.to_string_lossy()))
        .collect();
    fs::write(spec.dir.join("command.txt"), quoted.join(" ") + "\n")?;
    let errors = fs::File::create(spec.dir.join("qemu.err"))?;
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .with_context(|| not_started(spec.emulator))?;
    Ok(Running { child })
}

fn not_started(emulator: &Emulator) -> String {
    format!(
        "{}: setpriv, which starts it, cannot be run: install util-linux",
        emulator.program.display()
    )
}

/// Waits for the end of the console.
fn finish(reader: JoinHandle<Result<()>>) -> Result<()> {
    reader.join().map_err(|_| anyhow!("the console's reader panicked"))?
}

/// A word as a shell takes it, so that command.txt can be run by hand.
fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Boots (or resumes) a guest and follows it to its end.
///
/// # Errors
/// QEMU cannot be started, a state cannot be resumed ([`NotReady`]), or a cue fails.
pub fn run(spec: &Spec<'_>) -> Result<Outcome> {
    let began = Instant::now();
    let mut arguments = spec.arguments.clone();
    arguments.extend(["-serial".into(), "stdio".into()]);
    let sockets = tempfile::tempdir().context("folder for the monitor's socket")?;
    let socket = sockets.path().join("qmp");
    if let Some(state) = spec.resume {
        arguments.extend(["-incoming".into(), format!("exec:cat {}", quoted_path(state)?)]);
        arguments.extend(["-qmp".into(), monitor_argument(&socket)]);
    }
    let mut running = start(spec, &arguments)?;
    let process = Process { pid: Pid::from_child(&running.child) };
    let output = running.child.stdout.take().context("QEMU has no output")?;
    let mut input = running.child.stdin.take().context("QEMU has no input")?;
    let (sender, marks) = mpsc::channel();
    let log = spec.dir.join("console.log");
    let reader = std::thread::spawn(move || console::follow(output, &log, began, &sender));

    let mut init_s = None;
    if spec.resume.is_some() {
        resume(&socket, &mut running.child, &mut input)
            .with_context(|| tail_of(&spec.dir.join("qemu.err")))
            .context(NotReady)?;
        init_s = Some(began.elapsed().as_secs_f64());
    }
    // Not needed any more, and a lab that is killed leaves none behind.
    drop(sockets);
    let mut files = Vec::new();
    let mut ending = None;
    let mut until = began + if init_s.is_some() { spec.limit } else { spec.speak_limit };
    loop {
        let left = until.saturating_duration_since(Instant::now());
        match marks.recv_timeout(left) {
            Ok(Mark::Init(_)) if init_s.is_none() => {
                init_s = Some(began.elapsed().as_secs_f64());
                until = Instant::now() + spec.limit;
            }
            Ok(Mark::Cue(name)) => match spec.cues.iter().find(|(cue, _)| *cue == name) {
                Some((_, act)) => act(&process).with_context(|| format!("cue {name}"))?,
                None => bail!("the guest gives cue {name}, which the case does not know"),
            },
            Ok(Mark::File(line)) => files.push(line),
            Ok(Mark::Ended(code)) => {
                ending = Some(Ending::Script(code));
                until = Instant::now() + END_LIMIT;
            }
            Ok(Mark::Broken(why)) => {
                ending = Some(Ending::Broken(why));
                until = Instant::now() + END_LIMIT;
            }
            Ok(Mark::Init(_) | Mark::Ready) => {}
            Ok(Mark::Closed) | Err(RecvTimeoutError::Disconnected) => {
                ending.get_or_insert(match init_s {
                    Some(_) => Ending::Silent,
                    None => Ending::DiedEarly,
                });
                break;
            }
            Err(RecvTimeoutError::Timeout) => {
                ending.get_or_insert(match init_s {
                    Some(_) => Ending::TimedOut,
                    None => Ending::NeverSpoke,
                });
                break;
            }
        }
    }
    drop(running);
    finish(reader)?;
    let ending = ending.unwrap_or(Ending::Silent);
    Ok(Outcome { ending, seconds: began.elapsed().as_secs_f64(), init_s, files })
}

fn resume(socket: &Path, qemu: &mut Child, input: &mut impl std::io::Write) -> Result<()> {
    let mut monitor = Monitor::connect(socket, qemu, STATE_LIMIT)?;
    let status = monitor.wait("query-status", &["inmigrate"], STATE_LIMIT)?;
    if status != "paused" && status != "postmigrate" && status != "prelaunch" {
        bail!("a resumed state is {status}");
    }
    monitor.call("cont", &json!({}))?;
    input.write_all(b"go\n")?;
    input.flush()?;
    Ok(())
}

/// Boots a guest up to where its init waits, and writes its state to a file.
///
/// # Errors
/// The guest never gets there ([`NotReady`]), or QEMU refuses.
pub fn save(spec: &Spec<'_>, state: &Path) -> Result<()> {
    let began = Instant::now();
    let sockets = tempfile::tempdir().context("folder for the monitor's socket")?;
    let socket = sockets.path().join("qmp");
    let mut arguments = spec.arguments.clone();
    arguments.extend(["-serial".into(), "stdio".into()]);
    arguments.extend(["-qmp".into(), monitor_argument(&socket)]);
    let mut running = start(spec, &arguments)?;
    // Held open: the guest reads its console.
    let _input = running.child.stdin.take();
    let output = running.child.stdout.take().context("QEMU has no output")?;
    let (sender, marks) = mpsc::channel();
    let log = spec.dir.join("console.log");
    let reader = std::thread::spawn(move || console::follow(output, &log, began, &sender));
    let mut monitor = Monitor::connect(&socket, &mut running.child, STATE_LIMIT)
        .with_context(|| tail_of(&spec.dir.join("qemu.err")))?;
    // A lab that is killed from here on leaves none behind.
    drop(sockets);
    let until = began + spec.speak_limit;
    loop {
        match marks.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Mark::Ready) => break,
            Ok(Mark::Broken(why)) => bail!("init: {why}"),
            Ok(Mark::Closed) | Err(_) => {
                drop(running);
                finish(reader)?;
                let console = tail_of(&spec.dir.join("console.log"));
                return Err(anyhow!("it was to be saved; its console ends with:\n{console}"))
                    .context(NotReady);
            }
            Ok(_) => {}
        }
    }
    // The shell is about to block in read(2).
    std::thread::sleep(Duration::from_millis(200));
    monitor.call("stop", &json!({}))?;
    monitor.call("migrate-set-parameters", &json!({ "max-bandwidth": 10_000_000_000_u64 }))?;
    // QEMU is done before the last bytes are on the disk, and does not tell when the disk is full.
    let whole = spec.dir.join("whole");
    let uri = format!("exec:cat >{} && : >{}", quoted_path(state)?, quoted_path(&whole)?);
    monitor.call("migrate", &json!({ "uri": uri }))?;
    let underway = ["none", "setup", "active", "device", "pre-switchover"];
    let status = monitor.wait("query-migrate", &underway, STATE_LIMIT)?;
    if status != "completed" {
        bail!("saving the guest's state: {status}");
    }
    let until = Instant::now() + STATE_LIMIT;
    while !whole.exists() {
        if Instant::now() > until {
            bail!("{}: QEMU's state was not written; is the disk full?", state.display());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(running);
    finish(reader)
}

/// Runs a guest on this terminal until it ends.
///
/// # Errors
/// QEMU cannot be started.
pub fn interactive(emulator: &Emulator, arguments: &[String]) -> Result<()> {
    // In the terminal's own process group, or it could not read from it.
    let status = Command::new("setpriv")
        .args(["--pdeathsig", "KILL", "--"])
        .arg(&emulator.program)
        .args(&emulator.arguments)
        .args(arguments)
        .args(["-serial", "mon:stdio"])
        .status()
        .with_context(|| not_started(emulator))?;
    if status.signal().is_some() {
        bail!("QEMU ended by {status}");
    }
    Ok(())
}

fn monitor_argument(socket: &Path) -> String {
    format!("unix:{},server=on,wait=off", socket.display())
}

/// QEMU hands the command to a shell; a path of ours has no reason to need more quoting.
fn quoted_path(path: &Path) -> Result<String> {
    let text = path.display().to_string();
    if text.contains('\'') {
        bail!("{text}: choose a folder without an apostrophe");
    }
    Ok(format!("'{text}'"))
}

/// The last lines of a log.
#[must_use]
pub fn tail_of(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let tail = &lines[lines.len().saturating_sub(25)..];
    tail.iter().map(|line| format!("    {line}\n")).collect()
}

/// Folder of one guest's files under the target folder.
#[must_use]
pub fn share_of(dir: &Path) -> PathBuf {
    dir.join("host")
}

#[cfg(test)]
mod tests;
