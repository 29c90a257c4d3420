//! Remedies that several checks share. A task is named by its start, too: its number may become
//! another's.

use rtproof_host::{
    CpuList, Facts,
    facts::{
        rights::{Account, Grant, UserSource},
        tasks::RtTask,
    },
    knobs::LIMITS_FILE,
    reading::ReadingState,
    tune::{Change, Scheduling, TaskName},
};
use rtproof_model::finding::RemedyPart;

use crate::draft::FindingBuilder;
use crate::machine::container;
use crate::{Finding, Intent, Remedy};

/// Receiver of the rights: a group, as the limits files name it.
pub(crate) const RIGHTS: &str = "@realtime";

/// Moves a task to other CPUs.
pub(crate) fn move_to(task: &RtTask, cpus: &CpuList) -> Remedy {
    set(task, Scheduling { cpus: Some(cpus.clone()), ..Scheduling::default() })
}

/// Makes a task real-time with this priority.
pub(crate) fn make_fifo(task: &RtTask, priority: u32) -> Remedy {
    let policy = Some("fifo".to_owned());
    set(task, Scheduling { policy, priority: Some(priority), ..Scheduling::default() })
}

/// Makes a task an ordinary one.
pub(crate) fn make_ordinary(task: &RtTask) -> Remedy {
    set(task, Scheduling { policy: Some("other".to_owned()), ..Scheduling::default() })
}

fn set(task: &RtTask, set: Scheduling) -> Remedy {
    let comm = task.comm.clone();
    let task = TaskName { tid: task.tid, start_ticks: Some(task.start_ticks), comm };
    Remedy::Task { task, set }
}

/// A group for rights, with the user in it where one is known.
pub(crate) fn member_of(group: &str, user: Option<&str>) -> Remedy {
    let mut changes = vec![RemedyPart::from(Change::Group { name: group.into() })];
    let text = match user {
        Some(user) => {
            let change = Change::Member { group: group.into(), user: user.into() };
            changes.push(change.into());
            format!("a group {group} with {user} in it, from the next login of {user} on")
        }
        None => format!("a group {group} with the user in it"),
    };
    let then = user
        .is_none()
        .then(|| format!("say who is to be in the group {group}: add --user NAME to this command"));
    Remedy::Changes { text, changes, then }
}

/// A right that a user gets by a line of limits.conf(5), or a service by its unit. A container gets
/// it from its runtime, which reads neither.
pub(crate) fn right(
    facts: &Facts,
    user: Option<&Account>,
    name: &str,
    value: &str,
    directive: &str,
) -> Vec<Remedy> {
    let is_own = user.is_none_or(|user| user.source == UserSource::Runs);
    if let Some(container) = container(facts).filter(|_| is_own) {
        return vec![Remedy::Manual { text: of_runtime(container, name, value) }];
    }
    let line = format!("{RIGHTS} - {name} {value}");
    vec![
        member_of(&RIGHTS[1..], user.map(|user| user.name.as_str())),
        Remedy::File { path: LIMITS_FILE.into(), line },
        Remedy::Manual { text: format!("for a service: {directive} in its unit") },
    ]
}

/// How a container is given a limit, or the capability in its place. Docker gives capabilities to
/// root alone: what runs as another user has none of them in force.
pub(crate) fn of_runtime(container: &str, name: &str, value: &str) -> String {
    let capability = match name {
        "rtprio" => Some("SYS_NICE"),
        "memlock" => Some("IPC_LOCK"),
        _ => None,
    };
    let number = if value == "unlimited" { "-1" } else { value };
    match (&*container.to_ascii_lowercase(), capability) {
        ("docker" | "podman", Some(capability)) => format!(
            "start the container with --cap-add {capability}, or with --ulimit {name}={number}, \
             which counts for other users than root as well"
        ),
        ("docker" | "podman", None) => format!("start the container with --ulimit {name}={number}"),
        ("kubernetes", Some(capability)) => format!(
            "add {capability} to securityContext.capabilities of the container, and run it as root"
        ),
        (_, Some(capability)) => format!(
            "let the container's runtime give it CAP_{capability}, or the limit {name} {value}"
        ),
        (_, None) => format!("let the container's runtime give it the limit {name} {value}"),
    }
}

/// Limits that the files grant the chosen user, if that is not the one of this process:
/// a finding of its own, else `None`.
pub(crate) fn of_user(
    draft: &FindingBuilder,
    intent: &Intent,
    item: &str,
    least: u64,
    remedies: &[Remedy],
) -> Option<Finding> {
    let user = intent.user.as_ref().filter(|user| user.source != UserSource::Runs)?;
    let name = &user.name;
    let draft = draft.clone().read(&user.grants, |_| match user.grant(item) {
        Some(grant) => {
            let limit = |limit: &Option<String>| limit.clone().unwrap_or_else(|| "none".into());
            let (soft, hard) = (limit(&grant.soft), limit(&grant.hard));
            format!("{item} of {name}: soft {soft}, hard {hard} ({})", grant.line)
        }
        None => format!("{item} of {name}: no line"),
    });
    if user.grants.value().is_none() {
        // The tools that make members know users of a directory service, and say so of nobody.
        let is_elsewhere = matches!(user.grants.state, ReadingState::Malformed { .. });
        return Some(match is_elsewhere && user.source == UserSource::Stated {
            true => draft.remedies(remedies.iter().cloned()).doubtful(format!(
                "{name} is not in /etc/passwd: what the limits files grant it is not known"
            )),
            false => draft.unreadable(&user.grants),
        });
    }
    let grant = user.grant(item);
    let is_enough = |limit: Option<&String>| {
        Grant::amount(limit.map(String::as_str)).is_some_and(|amount| amount >= least)
    };
    let soft = grant.and_then(|grant| grant.soft.as_ref());
    let hard = grant.and_then(|grant| grant.hard.as_ref());
    // A soft limit above the hard one is cut down to it.
    if is_enough(soft) && is_enough(hard) {
        let line = grant.map_or("", |grant| grant.line.as_str());
        return Some(draft.good(format!("the limits files grant it to {name} at login ({line})")));
    }
    let draft = draft.remedies(remedies.iter().cloned());
    Some(match (user.source, is_enough(hard)) {
        (_, true) => draft.doubtful(format!("{name} has to raise its soft limit first")),
        (UserSource::Stated, false) => {
            draft.bad(format!("the limits files do not grant it to {name}"))
        }
        (_, false) => draft.doubtful(format!(
            "the limits files do not grant it to {name}, who asks; root has it, if the application \
             runs as root"
        )),
    })
}

/// Remedy for a user whose next login grants what this process lacks.
pub(crate) fn from_next_login(intent: &Intent, item: &str, least: u64) -> &'static str {
    let grant = intent.user.as_ref().and_then(|user| user.grant(item));
    let is_enough = |limit: &Option<String>| {
        Grant::amount(limit.as_deref()).is_some_and(|amount| amount >= least)
    };
    match grant.is_some_and(|grant| is_enough(&grant.soft) && is_enough(&grant.hard)) {
        true => "; the limits files grant it from the next login on",
        false => "",
    }
}
