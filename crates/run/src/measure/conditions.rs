//! States of the machine in which cells are measured: a command makes one, another takes it back,
//! also when the run ends early.

use std::process::{Command, Stdio};

use rtproof_host::program;
use rtproof_results::measure::plan::Condition;

use crate::usage::Invalid;

/// Conditions as they are entered and left.
#[derive(Debug)]
pub(super) struct Conditions<'a> {
    all: &'a [Condition],
    now: Option<&'a Condition>,
}

impl<'a> Conditions<'a> {
    pub(super) const fn of(all: &'a [Condition]) -> Self {
        Self { all, now: None }
    }

    /// Goes to a condition by name; the one before is left first.
    ///
    /// # Errors
    /// A command failed; what was begun is undone.
    pub(super) fn enter(&mut self, name: &str) -> Result<(), Invalid> {
        if self.now.is_some_and(|now| now.name == name) {
            return Ok(());
        }
        self.leave()?;
        let Some(next) = self.all.iter().find(|condition| condition.name == name) else {
            return Ok(());
        };
        self.now = Some(next);
        match next.before.as_deref().map_or(Ok(()), run) {
            Ok(()) => Ok(()),
            Err(why) => {
                let why = format!("condition {name}: {why}");
                match self.leave() {
                    Ok(()) => Err(why.into()),
                    Err(left) => Err(format!("{why}; {left}").into()),
                }
            }
        }
    }

    /// Takes the condition back that is in force.
    ///
    /// # Errors
    /// Its command failed: the machine is not as it was.
    pub(super) fn leave(&mut self) -> Result<(), Invalid> {
        let Some(now) = self.now.take() else { return Ok(()) };
        let Some(after) = &now.after else { return Ok(()) };
        run(after).map_err(|why| format!("condition {} was not taken back: {why}", now.name).into())
    }
}

impl Drop for Conditions<'_> {
    fn drop(&mut self) {
        // Only where an error prevented leaving: that error is reported.
        let _ = self.leave();
    }
}

/// `rtproof` in a command line is this program, whatever PATH has; nothing else of its folder is
/// run.
const RTPROOF: &str = "rtproof() { /proc/\"$RTPROOF_PID\"/exe \"$@\"; }\n";

/// Runs a command line. What it prints goes to stderr: stdout is for results.
fn run(command: &str) -> Result<(), Invalid> {
    let failed = |error| format!("`{command}` cannot be run: {error}");
    let mut shell = Command::new(program::find("sh").map_err(failed)?);
    shell.arg("-c").arg(format!("{RTPROOF}{command}")).stdin(Stdio::null());
    shell.env("RTPROOF_PID", std::process::id().to_string()).stdout(std::io::stderr());
    match shell.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{command}` ended with {status}, expected exit code 0").into()),
        Err(error) => Err(failed(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(name: &str, before: Option<&str>, after: Option<&str>) -> Condition {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Condition { name: name.into(), before: own(before), after: own(after) }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test's own file")]
    fn what_is_entered_is_left_also_when_it_fails() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let say = |word: &str| format!("echo {word} >>{}", log.display());
        let (enter, leave) = (say("enter"), say("leave"));
        let fails = format!("{}; false", say("tried"));
        let all = [
            condition("plain", None, None),
            condition("tuned", Some(&enter), Some(&leave)),
            condition("broken", Some(&fails), Some(&leave)),
        ];
        let mut conditions = Conditions::of(&all);
        conditions.enter("plain").unwrap();
        conditions.enter("tuned").unwrap();
        conditions.enter("tuned").unwrap();
        let error = conditions.enter("broken").unwrap_err();
        assert!(error.contains("condition broken") && error.contains("exit code 0"), "{error}");
        conditions.enter("tuned").unwrap();
        drop(conditions);
        let lines = std::fs::read_to_string(&log).unwrap();
        let words: Vec<&str> = lines.lines().collect();
        assert_eq!(words, ["enter", "leave", "tried", "leave", "enter", "leave"]);
    }
}
