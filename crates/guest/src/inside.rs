//! The first process of a guest of `rtproof kernel boot`: makes the machine usable, runs what the
//! plan says, sends back what came of it, and ends the guest.
//!
//! It speaks to the host by marks on the console; how the host reads them is in the second half of
//! this file.

use std::{
    ffi::CString,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::{fs::OpenOptionsExt, process::ExitStatusExt},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc::Sender,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use rustix::{
    fs::OFlags,
    mount::{MountFlags, mount},
    net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socket_with},
    system::{RebootCommand, init_module, reboot, sethostname, uname},
};

use crate::image::sorted;
use crate::{COMMAND, GuestCommand, GuestPlan, LOG, OUT, RAN, RanCommand, image};

/// File systems: kind, where, options, what the kernel needs for it (none: it may be missing).
const MOUNTS: &[(&str, &str, &str, &str)] = &[
    ("sysfs", "/sys", "", "CONFIG_SYSFS"),
    ("devtmpfs", "/dev", "", "CONFIG_DEVTMPFS"),
    ("tmpfs", "/dev/shm", "mode=1777", ""),
    ("tmpfs", "/tmp", "mode=1777", ""),
    ("tmpfs", "/run", "mode=755", ""),
    ("devpts", "/dev/pts", "mode=620,ptmxmode=666", ""),
    ("tracefs", "/sys/kernel/tracing", "", ""),
    ("debugfs", "/sys/kernel/debug", "", ""),
    ("cgroup2", "/sys/fs/cgroup", "", ""),
];

/// Kernel messages on the console in addition to ours: errors and worse.
const ERRORS: &str = "4";

/// The same while files are sent: nothing may come between their lines.
const NOTHING: &str = "1";

/// Runs as init. Returns where this is none: a user who types the command must not lose the
/// machine.
///
/// # Errors
/// This is not the first process of a guest.
pub fn main() -> Result<()> {
    let is_first = rustix::process::getpid().is_init();
    // A container's first process finds /proc there.
    let is_bare = !Path::new("/proc/self").exists() && Path::new(crate::PATH).exists();
    ensure!(is_first && is_bare, "{COMMAND} is for the first process of a guest of `kernel boot`");
    let ended = mounted("proc", "/proc", "")
        .context("proc cannot be mounted; the kernel needs CONFIG_PROC_FS=y")
        .and_then(|()| run());
    match ended {
        Ok(()) => print_mark("GUEST-RC=0"),
        Err(error) => print_mark(&format!("GUEST-BROKEN {error:#}")),
    }
    rustix::fs::sync();
    // QEMU ends where a guest restarts; unlike power off it needs no ACPI.
    loop {
        let _ = reboot(RebootCommand::Restart);
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn run() -> Result<()> {
    let release = uname().release().to_string_lossy().into_owned();
    print_mark(&format!("GUEST-INIT {release}"));
    console_level(ERRORS);
    for (kind, at, options, option) in MOUNTS {
        match mounted(kind, at, options) {
            Err(error) if !option.is_empty() => {
                bail!("{kind} cannot be mounted on {at}: {error}; the kernel needs {option}=y")
            }
            // What needs it says so.
            _ => {}
        }
    }
    let _ = sethostname(b"guest");
    let _ = loopback_up();
    // Where programs look for the configuration of the running kernel.
    let _ = fs::rename("/boot/config", format!("/boot/config-{release}"));
    let text = fs::read(crate::PATH).with_context(|| crate::PATH.to_owned())?;
    let plan: GuestPlan = serde_json::from_slice(&text).with_context(|| crate::PATH.to_owned())?;
    fs::create_dir_all(OUT).context(OUT)?;
    for name in &plan.modules {
        let path = Path::new("/modules").join(name);
        let loaded = fs::read(&path).map_err(anyhow::Error::from);
        let loaded = loaded.and_then(|image| Ok(init_module(&image, c"")?));
        loaded.with_context(|| format!("module {name} cannot be loaded"))?;
    }
    let mut ran = Vec::new();
    for step in &plan.steps {
        print_mark(&format!("GUEST-STEP {}", step.name));
        ran.push(run_step(step)?);
    }
    write(RAN, &serde_json::to_vec(&ran)?)?;
    let _ = write(LOG, kernel_log().unwrap_or_default().as_bytes());
    if let Ok(config) = fs::read("/proc/config.gz") {
        write(crate::CONFIG, &config)?;
    }
    send_files()
}

/// Without it no load of the network works. As `ip link set lo up`: rtnetlink(7).
fn loopback_up() -> rustix::io::Result<()> {
    const RTM_NEWLINK: u16 = 16;
    const REQUEST: u16 = 1;
    const UP: u32 = 1;
    let (flags, number) = (SocketFlags::CLOEXEC, None);
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, number)?;
    // struct nlmsghdr; struct ifinfomsg: its first interface is the loopback device.
    let mut message = 32_u32.to_ne_bytes().to_vec();
    message.extend(RTM_NEWLINK.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    message.extend([0; 12]);
    [1, UP, UP].iter().for_each(|word: &u32| message.extend(word.to_ne_bytes()));
    send(&socket, &message, SendFlags::empty()).map(drop)
}

fn mounted(kind: &str, at: &str, options: &str) -> io::Result<()> {
    // /dev/pts and the like; where the file system above is none of ours, mount says what is wrong.
    let _ = fs::create_dir_all(at);
    let options = CString::new(options)?;
    Ok(mount(kind, at, kind, MountFlags::empty(), options.as_c_str())?)
}

/// Runs a command to its end.
fn run_step(step: &GuestCommand) -> Result<RanCommand> {
    let began = Instant::now();
    let file = |ending: &str| {
        let path = format!("{OUT}/{}.{ending}", step.name);
        File::create(&path).with_context(|| path.clone())
    };
    let (program, arguments) = step.command.split_first().context("an empty command")?;
    let status = Command::new(program)
        .args(arguments)
        .env_clear()
        .envs([("PATH", "/bin"), ("HOME", "/root"), ("TERM", "dumb"), ("NO_COLOR", "1")])
        .current_dir("/root")
        .stdin(Stdio::null())
        .stdout(file("out")?)
        .stderr(file("err")?)
        .status();
    // Those whose parents ended are init's to wait for.
    while let Ok(Some(_)) = rustix::process::wait(rustix::process::WaitOptions::NOHANG) {}
    let (exit, why) = match status {
        Ok(status) => (status.code(), status.signal().map(|signal| format!("signal {signal}"))),
        Err(error) => (None, Some(format!("{program}: {error}"))),
    };
    Ok(RanCommand { name: step.name.clone(), exit, why, seconds: began.elapsed().as_secs_f64() })
}

/// What the kernel still has of its messages.
fn kernel_log() -> io::Result<String> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open("/dev/kmsg")?;
    let mut log = String::new();
    let mut record = vec![0; 8192];
    loop {
        match file.read(&mut record) {
            Ok(size) if size > 0 => {
                log.push_str(&log_line(&String::from_utf8_lossy(&record[..size])))
            }
            // The oldest were overwritten meanwhile; the next read goes on behind them.
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::PIPE.raw_os_error()) => {}
            _ => return Ok(log),
        }
    }
}

/// `6,339,5140900,-;NET: Registered` and lines with keys, Documentation/ABI/testing/dev-kmsg.
fn log_line(record: &str) -> String {
    let first = record.lines().next().unwrap_or_default();
    let (head, message) = first.split_once(';').unwrap_or(("", first));
    let time = head.split(',').nth(2).and_then(|time| time.parse::<u64>().ok()).unwrap_or(0);
    format!("[{:5}.{:06}] {message}\n", time / 1_000_000, time % 1_000_000)
}

fn write(name: &str, content: &[u8]) -> Result<()> {
    let path = format!("{OUT}/{name}");
    fs::write(&path, content).with_context(|| path.clone())
}

/// Sends all that lies in the folder.
fn send_files() -> Result<()> {
    let mut found = Vec::new();
    for path in sorted(Path::new(OUT))? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Other leftovers of a command, e.g. folders, are not wanted.
        if path.is_file() && image::is_plain(&name) {
            found.push((name, fs::read(&path).with_context(|| path.display().to_string())?));
        }
    }
    let lines = image::pack(&found)?;
    console_level(NOTHING);
    print_mark("GUEST-FILES-BEGIN");
    let mut stdout = io::stdout().lock();
    for line in lines {
        writeln!(stdout, "{line}")?;
    }
    stdout.flush()?;
    drop(stdout);
    print_mark("GUEST-FILES-END");
    console_level(ERRORS);
    Ok(())
}

fn console_level(level: &str) {
    // Without CONFIG_PRINTK there are no messages.
    let _ = fs::write("/proc/sys/kernel/printk", level);
}

fn print_mark(line: &str) {
    // A console that takes nothing is what the host finds out.
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{line}");
    // A panic that follows would take it along.
    let _ = rustix::termios::tcdrain(&stdout);
}

// The guest's console: read line by line as it comes, kept on disk with the second of each line,
// and searched for the marks that init and the prelude print.

/// How the kernel's panic() begins its last message.
pub const PANIC: &str = "Kernel panic - not syncing";

/// Longest line: a longer one comes in parts. Those of init are below 200 bytes.
const LINE_MAX: u64 = 64 << 10;

/// Largest log: a kernel that repeats one message fills no disk. Marks are read beyond it.
const LOG_MAX: usize = 64 << 20;

/// What a line of the console says to the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsoleMark {
    /// Init runs: release of the kernel.
    Init(String),
    /// Init waits for a line; the state may be saved.
    Ready,
    /// The script asks the host to act.
    Cue(String),
    /// The script has ended with this code.
    Ended(i32),
    /// Init could not do its work.
    Broken(String),
    /// The kernel has panicked.
    Panic,
    /// A line of the files that come over the console.
    File(String),
    /// Standard output is closed: QEMU has ended.
    Closed,
}

/// Reads until the guest closes; sends marks.
pub fn follow(
    output: impl Read,
    log: &Path,
    began: Instant,
    marks: &Sender<ConsoleMark>,
) -> Result<()> {
    let mut log = File::create(log).with_context(|| format!("{}: create", log.display()))?;
    let mut reader = BufReader::new(output);
    let mut line = Vec::new();
    let mut in_files = false;
    let mut left = LOG_MAX;
    loop {
        line.clear();
        // A guest that is killed ends its console anywhere; an error is an end too.
        if (&mut reader).take(LINE_MAX).read_until(b'\n', &mut line).unwrap_or(0) == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches(['\r', '\n']);
        match text {
            "GUEST-FILES-BEGIN" => in_files = true,
            "GUEST-FILES-END" => in_files = false,
            _ if in_files => {
                let _ = marks.send(ConsoleMark::File(text.to_owned()));
                continue;
            }
            _ => {}
        }
        match left.checked_sub(line.len()) {
            Some(rest) => {
                writeln!(log, "[{:7.2}] {text}", began.elapsed().as_secs_f64())?;
                left = rest;
            }
            None if left > 0 => {
                writeln!(log, "[{:7.2}] the log ends: 64 MiB", began.elapsed().as_secs_f64())?;
                left = 0;
            }
            None => {}
        }
        if text.contains(PANIC) {
            let _ = marks.send(ConsoleMark::Panic);
        }
        if let Some(mark) = parse(text) {
            let _ = marks.send(mark);
        }
    }
    let _ = marks.send(ConsoleMark::Closed);
    Ok(())
}

/// The mark of a line. Kernel messages may precede it on the same line.
fn parse(line: &str) -> Option<ConsoleMark> {
    let mark = &line[line.find("GUEST-")?..];
    let (word, rest) = mark.split_once([' ', '=']).unwrap_or((mark, ""));
    Some(match word {
        "GUEST-INIT" => ConsoleMark::Init(rest.trim().to_owned()),
        "GUEST-READY" => ConsoleMark::Ready,
        "GUEST-CUE" => ConsoleMark::Cue(rest.trim().to_owned()),
        "GUEST-RC" => ConsoleMark::Ended(rest.trim().parse().ok()?),
        "GUEST-BROKEN" => ConsoleMark::Broken(rest.to_owned()),
        _ => return None,
    })
}

// Programs of this machine and the libraries that they load, for guests of the same architecture.

/// Where a program is: its path, or its name in a folder of PATH.
pub fn find_program(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|path| path.is_file());
    }
    std::env::var_os("PATH")
        .iter()
        .flat_map(std::env::split_paths)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

/// The libraries that a program loads at its start, its loader among them; none: it is static.
///
/// # Errors
/// ldd is missing, or one of the libraries is.
pub fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = rtproof_host::trusted::command("ldd")
        .and_then(|mut ldd| ldd.arg(program).output())
        .context("ldd cannot be run")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if let Some(line) = text.lines().find(|line| line.ends_with("=> not found")) {
        bail!("{}: a library is missing: {}", program.display(), line.trim());
    }
    Ok(text
        .split_whitespace()
        .filter(|word| word.starts_with('/'))
        .map(|word| PathBuf::from(word.trim_end_matches(':')))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_the_log_become_lines() {
        let record = "6,339,5140900,-;NET: Registered protocol family 10\n SUBSYSTEM=x\n";
        assert_eq!(log_line(record), "[    5.140900] NET: Registered protocol family 10\n");
        assert_eq!(log_line("odd"), "[    0.000000] odd\n");
    }

    #[test]
    fn refused_unless_init_of_a_guest() {
        assert!(main().unwrap_err().to_string().contains("kernel boot"));
    }
}

#[cfg(test)]
mod console_tests {
    use super::*;

    fn marks_of(text: &str) -> Vec<ConsoleMark> {
        let folder = tempfile::tempdir().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        follow(text.as_bytes(), &folder.path().join("log"), Instant::now(), &sender).unwrap();
        drop(sender);
        receiver.iter().collect()
    }

    #[test]
    fn marks_are_found_among_kernel_messages() {
        let text =
            "[    0.1] hello\r\nGUEST-INIT 6.1.0\r\n[    2.0] x: GUEST-CUE stop now\nGUEST-RC=7\n";
        assert_eq!(
            marks_of(text),
            [
                ConsoleMark::Init("6.1.0".into()),
                ConsoleMark::Cue("stop now".into()),
                ConsoleMark::Ended(7),
                ConsoleMark::Closed
            ]
        );
    }

    #[test]
    fn files_are_not_taken_for_marks() {
        let text = "GUEST-FILES-BEGIN\nTEFCLVJDPTA=\nGUEST-RC=1\nGUEST-FILES-END\nGUEST-RC=0\n";
        assert_eq!(
            marks_of(text),
            [
                ConsoleMark::File("TEFCLVJDPTA=".into()),
                ConsoleMark::File("GUEST-RC=1".into()),
                ConsoleMark::Ended(0),
                ConsoleMark::Closed
            ]
        );
    }

    #[test]
    fn a_line_without_end_and_a_flood_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let (sender, receiver) = std::sync::mpsc::channel();
        let flood = io::repeat(b'x').take(80 << 20);
        let end = "\nGUEST-RC=3\n";
        follow(flood.chain(end.as_bytes()), &log, Instant::now(), &sender).unwrap();
        drop(sender);
        assert_eq!(
            receiver.iter().collect::<Vec<_>>(),
            [ConsoleMark::Ended(3), ConsoleMark::Closed]
        );
        let length = usize::try_from(log.metadata().unwrap().len()).unwrap();
        assert!((LOG_MAX..LOG_MAX + (1 << 20)).contains(&length), "{length}");
    }

    #[test]
    fn a_cut_or_foreign_line_is_no_mark() {
        assert_eq!(marks_of("GUEST-RC=\nGUEST-RCX\nGUEST-RC=zero\nLA"), [ConsoleMark::Closed]);
    }
}

#[cfg(test)]
mod programs_tests {
    use super::*;

    #[test]
    fn a_program_of_the_machine_is_found_with_its_libraries() {
        let sh = find_program("sh").unwrap();
        assert_eq!(find_program(&sh.display().to_string()), Some(sh.clone()));
        assert_eq!(find_program("no-such-program"), None);
        // Static on some machines; then there is nothing to find.
        for library in libraries(&sh).unwrap() {
            assert!(library.is_absolute() && library.exists(), "{library:?}");
        }
    }
}
