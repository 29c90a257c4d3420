//! Groups of users and their members. Read from /etc/group and /etc/passwd, changed by the
//! machine's own tools ([`Accounts`]).

use std::io;

use super::kind::{
    ChangeError, ChangeProperties, Kind, Machine, MachinePart, Owner, Rank, State, StateComparison,
    Switching,
};
use super::unit::ToolAnswer;
use crate::change::{Change, RIGHTS_GROUPS};
use crate::{Root, change, trusted};

const GROUP_FILE: &str = "/etc/group";

const PASSWD_FILE: &str = "/etc/passwd";

/// They stay over a reboot and act at the next login.
const NATURE: ChangeProperties = ChangeProperties {
    part: MachinePart::Accounts,
    rank: Rank::Files,
    pace: Switching::Later,
    is_durable: true,
};

/// One group. Undone by deleting it, if number and members are still those that it was made with.
pub(super) struct GroupChange<'a> {
    pub(super) name: &'a str,
}

/// One user in one group. A membership that was there before is no change, and stays.
pub(super) struct Member<'a> {
    pub(super) group: &'a str,
    pub(super) user: &'a str,
}

impl Kind for GroupChange<'_> {
    fn target(&self) -> String {
        format!("group {}", self.name)
    }

    fn line(&self) -> String {
        self.target()
    }

    fn wanted(&self) -> String {
        "new group".into()
    }

    fn texts(&self) -> Vec<&str> {
        vec![self.name]
    }

    fn may_be_made(&self) -> Result<(), String> {
        rights_group(self.name)
    }

    fn nature(&self) -> ChangeProperties {
        NATURE
    }

    fn file(&self) -> Option<&str> {
        Some(GROUP_FILE)
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        let found = machine.group(self.name)?;
        Ok(found.map_or(State::Absent, |(gid, members)| State::Group { gid, members }))
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        matches!(state, State::Group { .. })
    }

    fn write(&self, machine: &Machine<'_>, _before: &State) -> Result<(), ChangeError> {
        machine.account(Task::Make(self.name))
    }

    /// A group that has members is used by others, whoever made it.
    fn side(&self, _: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        match (states.after, states.current) {
            (_, current) if current == states.before => Owner::Before,
            (Some(after), current) => Owner::ours_if(after == current),
            (None, State::Group { members, .. }) => Owner::ours_if(members.is_empty()),
            (None, _) => Owner::Theirs,
        }
    }

    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        match states.before {
            State::Absent => machine.account(Task::Delete(self.name)),
            other => Err(ChangeError::not_expected(other, "the state of this change")),
        }
    }
}

impl Kind for Member<'_> {
    fn target(&self) -> String {
        format!("group {}, member {}", self.group, self.user)
    }

    fn line(&self) -> String {
        self.target()
    }

    fn wanted(&self) -> String {
        "a member".into()
    }

    fn after(&self) -> String {
        format!("a member, from the next login of {} on", self.user)
    }

    fn texts(&self) -> Vec<&str> {
        vec![self.group, self.user]
    }

    fn may_be_made(&self) -> Result<(), String> {
        rights_group(self.group)?;
        match self.user.contains(['\\', ':']) {
            true => Err(format!("{}: no name of a user", self.user)),
            false => change::check_name(self.user, "a user"),
        }
    }

    fn nature(&self) -> ChangeProperties {
        NATURE
    }

    fn file(&self) -> Option<&str> {
        Some(GROUP_FILE)
    }

    fn state(&self, machine: &Machine<'_>) -> Result<State, ChangeError> {
        let Some((gid, members)) = machine.group(self.group)? else {
            return Ok(State::Member { gid: None, is_member: false });
        };
        let is_listed = members.iter().any(|member| member == self.user);
        let is_member = is_listed || machine.first_group(self.user)? == Some(gid);
        Ok(State::Member { gid: Some(gid), is_member })
    }

    fn is_done(&self, _: &Machine<'_>, state: &State) -> bool {
        matches!(state, State::Member { is_member: true, .. })
    }

    fn write(&self, machine: &Machine<'_>, _before: &State) -> Result<(), ChangeError> {
        machine.account(Task::Add(self.group, self.user))
    }

    fn pending(&self, _: &Machine<'_>) -> Option<String> {
        Some("log out of every session first".into())
    }

    /// No member is as before, whatever became of the group. A group of this name that another
    /// made since has another number, and its members are not ours.
    fn side(&self, _: &Machine<'_>, states: StateComparison<'_>) -> Owner {
        let (State::Member { gid: old, .. }, State::Member { gid, is_member }) =
            (states.before, states.current)
        else {
            return Owner::Theirs;
        };
        let ours = match states.after {
            Some(State::Member { gid, .. }) => gid,
            _ => old,
        };
        if *is_member { Owner::ours_if(gid == ours) } else { Owner::Before }
    }

    fn restore(
        &self,
        machine: &Machine<'_>,
        states: StateComparison<'_>,
    ) -> Result<(), ChangeError> {
        match states.before {
            State::Member { is_member: false, .. } => {
                machine.account(Task::Remove(self.group, self.user))
            }
            other => Err(ChangeError::not_expected(other, "the state of this change")),
        }
    }
}

impl Machine<'_> {
    /// Number and members of a group of /etc/group.
    fn group(&self, name: &str) -> Result<Option<(u32, Vec<String>)>, ChangeError> {
        let Some(text) = ChangeError::present(self.root.read_text(GROUP_FILE))? else {
            return Ok(None);
        };
        let Some(line) = text.lines().find(|line| line.split(':').next() == Some(name)) else {
            return Ok(None);
        };
        let fields: Vec<&str> = line.split(':').collect();
        let gid = fields.get(2).and_then(|gid| gid.parse().ok());
        let Some((gid, members)) = gid.zip(fields.get(3)) else {
            return Err(ChangeError::Unexpected {
                path: GROUP_FILE.into(),
                found: format!("\"{line}\""),
                expected: "NAME:PASSWORD:NUMBER:MEMBERS".into(),
            });
        };
        let members = members.split(',').map(str::trim).filter(|member| !member.is_empty());
        Ok(Some((gid, members.map(str::to_owned).collect())))
    }

    /// The number of a user's first group; `None`: the user is not in /etc/passwd.
    fn first_group(&self, user: &str) -> Result<Option<u32>, ChangeError> {
        let text = ChangeError::present(self.root.read_text(PASSWD_FILE))?;
        let of = |line: &str| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields[0] == user).then(|| fields.get(3)?.parse().ok()).flatten()
        };
        Ok(text.as_deref().and_then(|text| text.lines().find_map(of)))
    }
}

/// Groups that rtproof makes and fills.
fn rights_group(name: &str) -> Result<(), String> {
    match RIGHTS_GROUPS.contains(&name) {
        true => Ok(()),
        false => Err(format!(
            "group {name}: rtproof makes and fills only {}: another group may have more rights",
            RIGHTS_GROUPS.join(", ")
        )),
    }
}

#[cfg(test)]
pub(super) fn examples() -> [Change; 2] {
    use crate::change::Change;
    let (group, user) = ("realtime".to_owned(), "alice".to_owned());
    [Change::Group { name: group.clone() }, Change::Member { group, user }]
}

// What a machine asks of the tools for groups of users.

/// What a tool is to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Task<'a> {
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

// The tools that make groups of users and their members: those of shadow, else those of busybox.
// rtproof itself never writes /etc/group: the tools know its lock and the files beside it.

/// What runs the tools, or a test double.
pub trait Accounts {
    /// Whether the machine has a tool.
    fn has(&self, program: &str) -> bool;

    /// Runs a tool with arguments.
    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<ToolAnswer>;
}

/// The machine's own tools.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccountTools;

impl Accounts for AccountTools {
    fn has(&self, program: &str) -> bool {
        trusted::find_program(program).is_ok()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> io::Result<ToolAnswer> {
        ToolAnswer::of(trusted::command(program)?.args(arguments))
    }
}
