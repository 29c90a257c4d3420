//! The package manager's programs, or a test double: short questions whose time is bounded, and
//! work whose output is shown as it comes.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use super::systemctl::Answer;
use crate::program;

/// Time that a question may take; a simulation of apt takes one to three seconds.
const QUESTION_MAX: Duration = Duration::from_secs(60);
/// How often the output is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// For the maintainers' scripts and hooks of apt: nobody is there to answer, and no service is
/// restarted (needrestart does on Ubuntu).
const ENVIRONMENT: &[(&str, &str)] = &[
    ("LC_ALL", "C"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("DEBIAN_PRIORITY", "critical"),
    ("APT_LISTCHANGES_FRONTEND", "none"),
    ("NEEDRESTART_MODE", "l"),
];

/// Whether what runs ends with a Ctrl-C on the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interruption {
    /// It does: a download.
    Ends,
    /// It comes to its end first: what dpkg has begun.
    Waits,
}

/// What runs the programs of a package manager, or a test double.
pub(super) trait Packages {
    /// Asks. It changes nothing.
    ///
    /// # Errors
    /// It cannot be run, or takes too long.
    fn ask(&self, program: &str, arguments: &[&str]) -> io::Result<Answer>;

    /// Lets it work; each line of its output goes to `show`. [`Answer::complaint`] has all.
    fn work(
        &self,
        program: &str,
        arguments: &[&str],
        interruption: Interruption,
        show: &dyn Fn(&str),
    ) -> io::Result<Answer>;
}

/// The machine's own programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackageTools;

impl Packages for PackageTools {
    fn ask(&self, program: &str, arguments: &[&str]) -> io::Result<Answer> {
        let output = program::output_within(&mut command(program, arguments)?, QUESTION_MAX)?;
        Ok(answer(output.status, text(&output.stdout), &text(&output.stderr)))
    }

    fn work(
        &self,
        program: &str,
        arguments: &[&str],
        interruption: Interruption,
        show: &dyn Fn(&str),
    ) -> io::Result<Answer> {
        // Memory, not a pipe: if rtproof is killed, dpkg goes on writing, and comes to its end.
        let output = program::memory()?;
        let mut command = command(program, arguments)?;
        command.stdout(output.try_clone()?).stderr(output.try_clone()?);
        if interruption == Interruption::Waits {
            command.process_group(0);
        }
        let mut child = command.spawn()?;
        let (mut said, mut shown) = (String::new(), 0);
        loop {
            let ended = child.try_wait()?;
            said += &text(&program::written(&output, said.len() as u64)?);
            let end = match ended {
                Some(_) => said.len(),
                None => said.rfind('\n').map_or(0, |at| at + 1),
            };
            said[shown..end].lines().for_each(show);
            shown = end;
            match ended {
                Some(status) => return Ok(answer(status, String::new(), &said)),
                None => thread::sleep(LOOK),
            }
        }
    }
}

fn command(program: &str, arguments: &[&str]) -> io::Result<Command> {
    let mut command = program::command(program)?;
    command.args(arguments).envs(ENVIRONMENT.iter().copied()).stdin(Stdio::null());
    Ok(command)
}

/// Text with one byte for each byte: what was shown is counted.
fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| if byte.is_ascii() { char::from(byte) } else { '?' }).collect()
}

fn answer(status: ExitStatus, text: String, complaint: &str) -> Answer {
    let complaint = match (status.code(), complaint.trim()) {
        (None, said) => format!("{said}\nended by {status}"),
        (_, said) => said.to_owned(),
    };
    Answer { success: status.success(), text, complaint }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn lines_are_shown_as_they_come_and_the_environment_is_set() {
        let lines = RefCell::new(Vec::new());
        let show = |line: &str| lines.borrow_mut().push(line.to_owned());
        let script = "echo one; echo $DEBIAN_FRONTEND >&2; sleep 0.2; printf 'last é'; exit 3";
        let answer = PackageTools.work("sh", &["-c", script], Interruption::Waits, &show).unwrap();
        assert_eq!(*lines.borrow(), ["one", "noninteractive", "last ??"]);
        assert!(!answer.success && answer.complaint.starts_with("one\n"), "{answer:?}");
        let killed = PackageTools.ask("sh", &["-c", "echo x; kill -9 $$"]).unwrap();
        assert!(killed.complaint.contains("signal: 9") && killed.text == "x\n", "{killed:?}");
        assert!(PackageTools.ask("no-such-program-here", &[]).is_err());
    }
}
