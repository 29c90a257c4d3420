//! The process that becomes the program: this binary once more, which sets itself up and then
//! executes the program in its place. Code between fork and exec of a process with threads could
//! do next to nothing safely.
//!
//! It talks with its parent over a socket that it was started with: what to set comes, what could
//! not be set goes, then the word to go comes. The socket ends when the program takes over; what
//! goes before that is why it could not.

use std::{
    ffi::{OsStr, OsString},
    io::{self, BufRead as _, BufReader, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::{net::UnixStream, process::CommandExt as _},
    },
    path::Path,
    process::{Child, Command},
};

use anyhow::Context as _;
use rtproof_measure::process::{inherited, unblock};
use rtproof_results::launch::Cannot;
use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};

use super::setup::Setup;

/// First argument of the process.
pub const NAME: &str = "become-program";

/// What the process says.
#[derive(Debug, Serialize, Deserialize)]
struct Said {
    /// What could not be set.
    cannot: Vec<Cannot>,
    /// The program could not be executed: the number of the error.
    #[serde(default)]
    error: Option<i32>,
}

/// Runs in the process: `socket -- file program arguments`. Returns why it could
/// not become the program.
pub fn main(mut args: impl Iterator<Item = OsString>) -> io::Error {
    let (Some(socket), Some(file), Some(name)) = (args.next(), args.nth(1), args.next()) else {
        return io::ErrorKind::InvalidInput.into();
    };
    match become_program(&socket, (&file, &name), args) {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

/// Nothing: the program has taken over.
enum Never {}

fn become_program(
    socket: &OsStr,
    (file, name): (&OsStr, &OsStr),
    args: impl Iterator<Item = OsString>,
) -> io::Result<Never> {
    let number = socket.to_str().and_then(|text| text.parse().ok());
    let stream = UnixStream::from(inherited(number.ok_or(io::ErrorKind::InvalidInput)?)?);
    let mut lines = BufReader::new(&stream);
    let mut text = String::new();
    lines.read_line(&mut text)?;
    let setup: Setup = serde_json::from_str(&text)?;
    say(&stream, &Said { cannot: setup.make(), error: None })?;
    let mut go = String::new();
    lines.read_line(&mut go)?;
    if go.trim() != "go" {
        return Err(io::ErrorKind::ConnectionAborted.into());
    }
    unblock(&super::wait::taken())?;
    let mut command = Command::new(file);
    command.arg0(name).args(args);
    if let Some(user) = &setup.user {
        command.env("HOME", &user.home).env("USER", &user.name).env("LOGNAME", &user.name);
    }
    let error = command.exec();
    say(&stream, &Said { cannot: Vec::new(), error: error.raw_os_error() })?;
    Err(error)
}

fn say(mut stream: &UnixStream, said: &Said) -> io::Result<()> {
    let mut line = serde_json::to_string(said)?;
    line.push('\n');
    stream.write_all(line.as_bytes())
}

/// The process, before it has become the program.
pub(super) struct Becoming {
    pub(super) child: Child,
    stream: UnixStream,
    /// What could not be set.
    pub(super) cannot: Vec<Cannot>,
}

impl Becoming {
    /// Starts it, and lets it set itself up.
    pub(super) fn begin(file: &Path, words: &[OsString], setup: &Setup) -> anyhow::Result<Self> {
        let (stream, theirs) = UnixStream::pair().context("a socket")?;
        fcntl_setfd(&theirs, FdFlags::empty()).context("a socket for the program")?;
        // The file that runs, whatever is at its path.
        let mut command = Command::new("/proc/self/exe");
        command.arg(NAME).arg(theirs.as_raw_fd().to_string()).arg("--").arg(file).args(words);
        let mut child = command.spawn().context("a process for the program")?;
        drop(theirs);
        let answer = || {
            let mut line = serde_json::to_string(setup)?;
            line.push('\n');
            (&stream).write_all(line.as_bytes())?;
            said(&stream)?.context("it ended before it was set up")
        };
        match answer() {
            Ok(said) => Ok(Self { child, stream, cannot: said.cannot }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error.context("the process for the program"))
            }
        }
    }

    /// Lets it become the program.
    ///
    /// # Errors
    /// Why the program could not be executed.
    pub(super) fn go(mut self) -> anyhow::Result<Result<Child, io::Error>> {
        (&self.stream).write_all(b"go\n").context("the process for the program")?;
        match said(&self.stream)? {
            None => Ok(Ok(self.child)),
            Some(said) => {
                let _ = self.child.wait();
                let error = said.error.map_or_else(
                    || io::Error::other("the kernel gave no reason"),
                    io::Error::from_raw_os_error,
                );
                Ok(Err(error))
            }
        }
    }

    pub(super) fn give_up(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The next line of the process; `None`: it has become the program, or has ended.
fn said(stream: &UnixStream) -> anyhow::Result<Option<Said>> {
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).context("the process for the program")?;
    Ok(if line.is_empty() { None } else { Some(serde_json::from_str(&line)?) })
}
