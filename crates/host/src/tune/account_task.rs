//! What a machine asks of the tools for groups of users.

use super::{error::ChangeError, machine::Machine};
use crate::{Root, change::Change};

/// What a tool is to do.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task<'a> {
    Make(&'a str),
    Delete(&'a str),
    /// Add a user (the second) to a group.
    Add(&'a str, &'a str),
    /// Take a user (the second) out of a group.
    Remove(&'a str, &'a str),
}

impl<'a> Task<'a> {
    /// The command of shadow, and that of busybox.
    fn commands(self) -> [(&'static str, Vec<&'a str>); 2] {
        match self {
            Self::Make(group) => {
                [("groupadd", vec!["--system", group]), ("addgroup", vec!["-S", group])]
            }
            Self::Delete(group) => [("groupdel", vec![group]), ("delgroup", vec![group])],
            Self::Add(group, user) => {
                [("gpasswd", vec!["-a", user, group]), ("addgroup", vec![user, group])]
            }
            Self::Remove(group, user) => {
                [("gpasswd", vec!["-d", user, group]), ("delgroup", vec![user, group])]
            }
        }
    }
}

impl Machine<'_> {
    /// Lets a tool do it. What the tool complains of is the error.
    pub(super) fn account(&self, task: Task<'_>) -> Result<(), ChangeError> {
        let commands = task.commands();
        let words =
            |(program, arguments): &(&str, Vec<&str>)| format!("{program} {}", arguments.join(" "));
        let Some(tools) = self.accounts else {
            return Err(ChangeError::AccountElsewhere { what: words(&commands[0]) });
        };
        let Some(command) = commands.iter().find(|(program, _)| tools.has(program)) else {
            let names = commands.each_ref().map(|(program, _)| *program);
            return Err(ChangeError::Refused {
                path: words(&commands[0]),
                why: format!(
                    "this machine has neither {}: install passwd (Debian), shadow-utils (Fedora, \
                     SUSE) or shadow (Arch, Alpine)",
                    names.join(" nor ")
                ),
            });
        };
        let path = words(command);
        self.unit_step(&path)?;
        let (program, arguments) = command;
        let refused = |why: String| ChangeError::Refused { path: path.clone(), why };
        let answer = tools.run(program, arguments).map_err(|error| refused(error.to_string()))?;
        if answer.success {
            return Ok(());
        }
        let why = if answer.complaint.is_empty() { answer.text } else { answer.complaint };
        Err(refused(why.trim().to_owned()))
    }
}

/// Looks whether changes of groups can be made on a machine, before anything is changed.
///
/// # Errors
/// One is among the changes, and the machine is a folder.
pub fn may_change_groups<'a>(
    root: &Root,
    changes: impl IntoIterator<Item = &'a Change>,
) -> Result<(), ChangeError> {
    let is_of_groups =
        |change: &&Change| matches!(change, Change::Group { .. } | Change::Member { .. });
    match changes.into_iter().find(is_of_groups) {
        Some(change) if !root.is_live() => {
            Err(ChangeError::AccountElsewhere { what: change.target() })
        }
        _ => Ok(()),
    }
}
