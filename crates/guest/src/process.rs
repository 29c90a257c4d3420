//! One guest: a QEMU process from start to end, with its console, its time limit, and its end by
//! process id. It never outlives its caller: it dies with the thread that started it.

#[cfg(test)]
mod tests;

use std::{
    fmt, fs,
    os::unix::process::{CommandExt, ExitStatusExt},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use rtproof_host::trusted;

use crate::inside::ConsoleMark;
use crate::{Emulator, inside};

/// Time that a guest has until its init speaks. An icount boot takes 5 to 13 s on a quiet machine.
pub const SPEAK_LIMIT: Duration = Duration::from_secs(90);

/// The same for a whole Debian: 40 to 100 s.
pub const SPEAK_LIMIT_DISK: Duration = Duration::from_secs(240);

/// Time between the end of the script and that of QEMU.
const END_LIMIT: Duration = Duration::from_secs(20);

/// Time for the rest of a panic's message.
const PANIC_LIMIT: Duration = Duration::from_secs(3);

/// Interval between checks whether the user ended it.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Memory for files that are taken from a guest, bytes.
const FILES_MAX: usize = 1 << 30;

/// What the host does when the guest asks: stop the emulator for a while, cut the power.
pub type Cue = Arc<dyn Fn(&GuestProcess) -> Result<()> + Send + Sync>;

/// A QEMU to start: arguments, time limits, and whether a panic ends it.
pub struct Spec<'a> {
    pub emulator: &'a Emulator,
    /// Arguments of the machine, kernel, share.
    pub arguments: Vec<String>,
    /// Folder for console.log and command.txt.
    pub dir: &'a Path,
    /// Time until init speaks.
    pub speak_limit: Duration,
    /// Time that the whole guest may take from then on.
    pub limit: Duration,
    /// Whether a panic is its end also where the kernel does not restart: an early panic comes
    /// before the kernel has read its parameters.
    pub ends_at_panic: bool,
    /// What the host does at which cue.
    pub cues: &'a [(String, Cue)],
    /// Whether the user ended it.
    pub interrupted: &'a dyn Fn() -> bool,
}

/// For what is ended with its process.
pub const NEVER: &dyn Fn() -> bool = &|| false;

/// How a guest ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuestEnding {
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
    /// The user ended it; killed.
    Interrupted,
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

/// Result of a guest.
#[derive(Clone, Debug)]
pub struct GuestOutcome {
    pub ending: GuestEnding,
    /// Seconds from start to end.
    pub seconds: f64,
    /// Seconds until init spoke (or the state had been resumed).
    pub init_s: Option<f64>,
    /// Base64 lines of a tar.gz that came over the console.
    pub files: Vec<String>,
}

impl GuestOutcome {
    /// Whether the guest did not come up and that is not what the case is about: with a disk of its
    /// own (`may_die`) a panic may be, silence up to the time limit never is.
    pub fn is_mute(&self, may_die: bool) -> bool {
        match self.ending {
            GuestEnding::NeverSpoke => true,
            GuestEnding::DiedEarly => !may_die,
            _ => false,
        }
    }
}

/// The running process of an emulator, which signals can stop for a while.
#[derive(Clone, Copy, Debug)]
pub struct GuestProcess {
    pid: Pid,
}

impl GuestProcess {
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

/// The command that starts QEMU, which the kernel kills when the thread that started it ends.
fn command(emulator: &Emulator, arguments: &[String]) -> Result<Command> {
    let mut command = trusted::command("setpriv").with_context(|| not_started(emulator))?;
    command.args(["--pdeathsig", "KILL", "--"]);
    command.arg(&emulator.program).args(&emulator.arguments).args(arguments);
    Ok(command)
}

fn start(spec: &Spec<'_>, arguments: &[String]) -> Result<Running> {
    let mut command = command(spec.emulator, arguments)?;
    command.process_group(0);
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

/// A word as a shell takes it, so that command.txt can be run by hand.
fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Boots a guest and follows it to its end.
///
/// # Errors
/// QEMU cannot be started, or a cue fails.
pub fn run(spec: &Spec<'_>) -> Result<GuestOutcome> {
    StartedGuest::new(spec, &[])?.follow(spec, false)
}

/// A guest that runs; it ends when this is dropped.
pub struct StartedGuest {
    running: Running,
    /// Its console; held open, or the guest reads the end of the file there.
    input: ChildStdin,
    marks: Receiver<ConsoleMark>,
    reader: JoinHandle<Result<()>>,
    began: Instant,
}

impl StartedGuest {
    /// Starts QEMU with the arguments of `spec` and `more`.
    pub fn new(spec: &Spec<'_>, more: &[String]) -> Result<Self> {
        let began = Instant::now();
        let serial = ["-serial".to_owned(), "stdio".to_owned()];
        let arguments = [&spec.arguments[..], &serial, more].concat();
        let mut running = start(spec, &arguments)?;
        let output = running.child.stdout.take().context("QEMU has no output")?;
        let input = running.child.stdin.take().context("QEMU has no input")?;
        let (sender, marks) = mpsc::channel();
        let log = spec.dir.join("console.log");
        let reader = std::thread::spawn(move || inside::follow(output, &log, began, &sender));
        Ok(Self { running, input, marks, reader, began })
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.running.child
    }

    pub fn input(&mut self) -> &mut ChildStdin {
        &mut self.input
    }

    /// The next mark; `None`: the time is over, or QEMU has ended.
    pub fn next(&self, limit: Duration) -> Option<ConsoleMark> {
        let left = limit.saturating_sub(self.began.elapsed());
        self.marks.recv_timeout(left).ok().filter(|mark| *mark != ConsoleMark::Closed)
    }

    /// Ends it, and waits for the end of the console.
    pub fn end(self) -> Result<()> {
        drop(self.running);
        self.reader.join().map_err(|_| anyhow!("the console's reader panicked"))?
    }

    /// Follows it to its end; `resumed`: init has spoken before its state was saved.
    ///
    /// # Errors
    /// A cue fails.
    pub fn follow(self, spec: &Spec<'_>, resumed: bool) -> Result<GuestOutcome> {
        let process = GuestProcess { pid: Pid::from_child(&self.running.child) };
        let mut init_s = resumed.then(|| self.began.elapsed().as_secs_f64());
        let (mut files, mut size) = (Vec::new(), 0);
        let mut ending = None;
        let mut until = self.began + if resumed { spec.limit } else { spec.speak_limit };
        let mut looked = Instant::now();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let mut mark = self.marks.recv_timeout(left.min(POLL_INTERVAL));
            // A guest that writes marks without end is still checked.
            if mark.is_ok() && looked.elapsed() >= POLL_INTERVAL {
                looked = Instant::now();
                if (spec.interrupted)()
                    || (looked >= until && !matches!(mark, Ok(ConsoleMark::Closed)))
                {
                    mark = Err(RecvTimeoutError::Timeout);
                }
            }
            match mark {
                Ok(ConsoleMark::Init(_)) if init_s.is_none() => {
                    init_s = Some(self.began.elapsed().as_secs_f64());
                    until = Instant::now() + spec.limit;
                }
                Ok(ConsoleMark::Cue(name)) => {
                    match spec.cues.iter().find(|(cue, _)| *cue == name) {
                        Some((_, act)) => act(&process).with_context(|| format!("cue {name}"))?,
                        None => bail!("the guest gives cue {name}, which the case does not know"),
                    }
                }
                Ok(ConsoleMark::File(line)) => {
                    size += line.len() + size_of::<String>();
                    if size > FILES_MAX {
                        bail!("the guest's files are larger than 1 GiB: their reading was ended");
                    }
                    files.push(line);
                    // They may come after the end, and take longer than it.
                    if ending.is_some() {
                        until = Instant::now() + END_LIMIT;
                    }
                }
                Ok(ConsoleMark::Ended(code)) => {
                    ending = Some(GuestEnding::Script(code));
                    until = Instant::now() + END_LIMIT;
                }
                Ok(ConsoleMark::Broken(why)) => {
                    ending = Some(GuestEnding::Broken(why));
                    until = Instant::now() + END_LIMIT;
                }
                Ok(ConsoleMark::Panic) if spec.ends_at_panic => {
                    until = until.min(Instant::now() + PANIC_LIMIT);
                }
                Ok(ConsoleMark::Init(_) | ConsoleMark::Ready | ConsoleMark::Panic) => {}
                Ok(ConsoleMark::Closed) | Err(RecvTimeoutError::Disconnected) => {
                    ending.get_or_insert(match init_s {
                        Some(_) => GuestEnding::Silent,
                        None => GuestEnding::DiedEarly,
                    });
                    break;
                }
                Err(RecvTimeoutError::Timeout) if (spec.interrupted)() => {
                    ending = Some(GuestEnding::Interrupted);
                    break;
                }
                Err(RecvTimeoutError::Timeout) if Instant::now() < until => {}
                Err(RecvTimeoutError::Timeout) => {
                    ending.get_or_insert(match init_s {
                        Some(_) => GuestEnding::TimedOut,
                        None => GuestEnding::NeverSpoke,
                    });
                    break;
                }
            }
        }
        let began = self.began;
        self.end()?;
        let ending = ending.unwrap_or(GuestEnding::Silent);
        Ok(GuestOutcome { ending, seconds: began.elapsed().as_secs_f64(), init_s, files })
    }
}

/// Runs a guest on this terminal until it ends.
///
/// # Errors
/// QEMU cannot be started.
pub fn interactive(emulator: &Emulator, arguments: &[String]) -> Result<()> {
    // In the terminal's own process group, or it could not read from it.
    let status = command(emulator, arguments)?
        .args(["-serial", "mon:stdio"])
        .status()
        .with_context(|| not_started(emulator))?;
    if status.signal().is_some() {
        bail!("QEMU ended by {status}");
    }
    Ok(())
}

/// The last lines of a log.
pub fn tail_of(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let tail = &lines[lines.len().saturating_sub(25)..];
    tail.iter().map(|line| format!("    {line}\n")).collect()
}
