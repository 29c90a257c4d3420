//! Who may use real-time priorities and lock memory: limits, capabilities, groups.

use std::collections::BTreeMap;

use rtproof_host::{
    Facts,
    change::RIGHTS_GROUPS,
    facts::rights::{Limit, LimitLine, LoginService},
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::FindingBuilder;
use crate::remedies::{from_next_login, member_of, of_user, right};
use crate::{Evidence, Finding, Impact, Intent, Remedy, When, machine};

// Does a right that this process seems to have count here?
//
// The kernel asks for CAP_SYS_NICE in the first user namespace: that of a rootless container shows
// in /proc and is worth nothing. A filter of seccomp may refuse the call whatever the rights are.
// What the limits say is `limits-rtprio`; nothing is tried here.

pub(super) static CHRT_CAPABILITY: Check = Check {
    id: "chrt-capability",
    title: "what may refuse a real-time policy in spite of the rights",
    why: "sched_setscheduler fails with EPERM, and an application that does not look runs on as \
          SCHED_OTHER",
    source: "kernel/sched/syscalls.c (capable(CAP_SYS_NICE)); user_namespaces(7); seccomp(2); \
             systemd.exec(5), RestrictRealtime=",
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("no foreign user namespace, no seccomp filter"),
    judge: Judge::Ask(judge_chrt_capability),
    ..Check::NEW
};

fn judge_chrt_capability(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let (namespace, seccomp) = (&facts.rights.initial_user_namespace, &facts.rights.seccomp);
    let draft = draft
        .read(namespace, |is_initial| match is_initial {
            true => "the first user namespace".into(),
            false => "another user namespace".into(),
        })
        .read(seccomp, |mode| format!("Seccomp: {mode}"));
    let (Some(&is_initial), Some(&mode)) = (namespace.value(), seccomp.value()) else {
        return match namespace.value() {
            None => draft.unreadable(namespace),
            Some(_) => draft.unreadable(seccomp),
        };
    };
    let draft = match is_initial {
        true => draft,
        false => match foreign(draft, facts, intent) {
            Ok(draft) => draft,
            Err(finding) => return *finding,
        },
    };
    if mode != 0 {
        return draft
            .remedies([Remedy::Command { command: "rtproof check --prove priority".into() }])
            .doubtful("a seccomp filter is in force: it may refuse sched_setscheduler");
    }
    draft.good(match is_initial {
        true => "the first user namespace, no seccomp filter",
        false => "in a user namespace, where the rtprio limit alone counts, and it is enough",
    })
}

/// In another user namespace the rtprio limit has to be enough.
fn foreign(
    draft: FindingBuilder,
    facts: &Facts,
    intent: &Intent,
) -> Result<FindingBuilder, Box<Finding>> {
    let (cap, limit) = (&facts.limits.cap_sys_nice, &facts.limits.rtprio);
    let draft = draft.read(limit, |limit| match limit.soft {
        None => "rtprio unlimited".into(),
        Some(most) => format!("rtprio {most}"),
    });
    let Some(found) = limit.value() else {
        return Err(Box::new(draft.unreadable(limit)));
    };
    if found.soft.is_none_or(|most| most >= u64::from(intent.priority)) {
        return Ok(draft);
    }
    let draft = draft.remedies([Remedy::Manual {
        text: "start it outside the user namespace (a rootful container with --cap-add SYS_NICE), \
               or raise the rtprio limit of who starts it"
            .into(),
    }]);
    let summary = "in a user namespace CAP_SYS_NICE does not count, and the rtprio limit is lower \
                   than your priority";
    Err(Box::new(match cap.value() {
        Some(true) => draft.read(cap, |_| "CAP_SYS_NICE".into()).bad(summary),
        _ => draft.doubtful(summary),
    }))
}

// Do the limits files grant what they seem to grant? Three questions of the same lines: whether
// a program reads them, whether a later line undoes an earlier one, and whether the groups that
// they name have anybody in them.
//
// `limits-rtprio` and `limits-memlock` judge what this process has; these checks judge what the
// next login will get. Services of systemd never read these files.

/// Items whose lines decide whether a real-time application gets what it needs.
const DECISIVE: &[&str] = &["rtprio", "memlock", "rttime"];

/// Services that start a session: what they do not read, the session does not have.
const SESSIONS: &[&str] = &["login", "sshd", "gdm-password", "lightdm", "sddm"];

fn decisive(lines: &[LimitLine]) -> Vec<&LimitLine> {
    lines.iter().filter(|line| DECISIVE.contains(&line.item.as_str())).collect()
}

fn show_limits_files(lines: &[&LimitLine]) -> String {
    match lines.len() {
        0 => "no line about rtprio, memlock or rttime".into(),
        _ => {
            let lines: Vec<String> = lines.iter().map(|line| words(line)).collect();
            machine::first_few(&lines, 6)
        }
    }
}

fn words(line: &LimitLine) -> String {
    format!("{} {} {} {}", line.domain, line.kind, line.item, line.value)
}

fn place(line: &LimitLine) -> String {
    format!("{}:{}", line.file, line.line)
}

const WHY: &str = "an application that does not get its real-time priority or locked memory runs \
                   on as an ordinary task, and its pages may be missing";

pub(super) static PAM: Check = Check {
    id: "pam-limits",
    title: "logins that read the limits files",
    why: WHY,
    source: "pam_limits(8), limits.conf(5), pam.d(5)",
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("pam_limits.so in every login's session stack"),
    judge: Judge::Ask(judge_pam),
    ..Check::NEW
};

fn judge_pam(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let reading = &facts.rights.limit_lines;
    let draft = draft.read(reading, |lines| show_limits_files(&decisive(lines)));
    let Some(lines) = reading.value() else {
        return draft.unreadable(reading);
    };
    if decisive(lines).is_empty() {
        return draft.not_applicable("the limits files grant nothing that a login would miss");
    }
    let services = &facts.rights.services;
    let draft = draft.read(services, |services| shown(services));
    let Some(found) = services.value() else {
        return draft.unreadable(services);
    };
    let is_session = |service: &&LoginService| SESSIONS.contains(&service.name.as_str());
    let sessions: Vec<&LoginService> = found.iter().filter(is_session).collect();
    if sessions.is_empty() {
        return draft
            .remedies([Remedy::Manual {
                text: "grant the rights where the application is started: LimitRTPRIO= and \
                       LimitMEMLOCK= of its unit, or a capability of its file"
                    .into(),
            }])
            .doubtful("no login here uses PAM, so nobody reads the limits files");
    }
    let without: Vec<&str> =
        sessions.iter().filter(|s| !s.limits).map(|s| s.name.as_str()).collect();
    if without.is_empty() {
        let names: Vec<&str> = sessions.iter().map(|s| s.name.as_str()).collect();
        return draft.good(format!("read by {}", machine::first_few(&names, 5)));
    }
    draft
        .remedies(without.iter().map(|name| Remedy::File {
            path: format!("/etc/pam.d/{name}"),
            line: "session required pam_limits.so".into(),
        }))
        .doubtful(format!("not read by {}", machine::first_few(&without, 5)))
}

fn shown(services: &[LoginService]) -> String {
    let one = |service: &LoginService| {
        let has = if service.limits { "with" } else { "without" };
        format!("{} {has} pam_limits", service.name)
    };
    match services.is_empty() {
        true => "no login service".into(),
        false => services.iter().map(one).collect::<Vec<_>>().join(", "),
    }
}

pub(super) static DUPLICATES: Check = Check {
    id: "limits-duplicates",
    title: "limits granted in one line and changed in a later one",
    why: WHY,
    source: "limits.conf(5), pam_limits(8) (files in the order of the C locale, as one file)",
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("one value for each group or user"),
    judge: Judge::Ask(judge_duplicates),
    ..Check::NEW
};

fn judge_duplicates(draft: FindingBuilder, facts: &Facts, _: &Intent) -> Finding {
    let reading = &facts.rights.limit_lines;
    let draft = draft.read(reading, |lines| show_limits_files(&decisive(lines)));
    let Some(lines) = reading.value() else {
        return draft.unreadable(reading);
    };
    let lines = decisive(lines);
    if lines.is_empty() {
        return draft.good("no line about rtprio, memlock or rttime");
    }
    let Some((first, last)) = overridden(&lines) else {
        return draft.good(format!(
            "{} about rtprio, memlock or rttime, none changed by a later one",
            machine::count(lines.len(), "line")
        ));
    };
    let evidence = [first, last].map(|line| Evidence { path: place(line), value: words(line) });
    let what = match first.domain == last.domain {
        true => String::new(),
        false => format!(" for who is in {} and {}", first.domain, last.domain),
    };
    draft
        .evidence(evidence)
        .remedies([Remedy::Manual {
            text: format!("keep one of {} and {}", place(first), place(last)),
        }])
        .doubtful(format!(
            "{} {}{what}: {} says {}, then {} says {}",
            last.domain,
            last.item,
            place(first),
            first.value,
            place(last),
            last.value
        ))
}

/// The first two lines of which the later changes what the earlier says: for the same domain, or to
/// less between two groups, which one user may both be in.
fn overridden<'a>(lines: &[&'a LimitLine]) -> Option<(&'a LimitLine, &'a LimitLine)> {
    let mut last: BTreeMap<(&str, &str, &str), &'a LimitLine> = BTreeMap::new();
    for &line in lines {
        let kinds: &[&str] = if line.kind == "-" { &["soft", "hard"] } else { &[&line.kind] };
        for kind in kinds {
            if let Some(earlier) = last.insert((&line.domain, &line.item, kind), line)
                && earlier.value != line.value
            {
                return Some((earlier, line));
            }
        }
    }
    let is_group = |line: &LimitLine| line.domain.starts_with('@');
    lines.iter().enumerate().find_map(|(at, &line)| {
        let kinds_meet = |a: &str, b: &str| a == b || a == "-" || b == "-";
        let takes = |later: &&&'a LimitLine| {
            is_group(line)
                && is_group(later)
                && later.item == line.item
                && kinds_meet(&later.kind, &line.kind)
                && amount(&later.value) < amount(&line.value)
        };
        let later = lines[at + 1..].iter().find(takes)?;
        Some((line, *later))
    })
}

/// A value for comparing: no limit is the most, what is no number the least.
fn amount(value: &str) -> u64 {
    match value {
        "unlimited" | "infinity" | "-1" => u64::MAX,
        number => number.parse().unwrap_or(0),
    }
}

/// The group with a member. Of a group that may have other rights, a human decides.
fn filled(group: &str, intent: &Intent) -> Remedy {
    let user = intent.user.as_ref().map(|user| user.name.as_str());
    match RIGHTS_GROUPS.contains(&group) {
        true => member_of(group, user),
        false => Remedy::Command {
            command: format!(
                "groupadd --system --force {group} && gpasswd --add {} {group}",
                user.unwrap_or("USER")
            ),
        },
    }
}

fn members_text(members: u32) -> String {
    machine::count(members, "member")
}

pub(super) static GROUPS: Check = Check {
    id: "limits-groups",
    title: "groups that the limits files grant rights to",
    why: WHY,
    source: "limits.conf(5), group(5)",
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("each there, with a member"),
    judge: Judge::Ask(judge_groups),
    ..Check::NEW
};

fn judge_groups(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let lines = &facts.rights.limit_lines;
    let draft = draft.read(lines, |lines| show_limits_files(&decisive(lines)));
    let Some(found) = lines.value() else {
        return draft.unreadable(lines);
    };
    let granted =
        |name: &str| decisive(found).iter().any(|line| line.domain.strip_prefix('@') == Some(name));
    if !decisive(found).iter().any(|line| line.domain.starts_with('@')) {
        return draft.not_applicable("the limits files grant no group real-time rights");
    }
    let groups = &facts.rights.groups;
    let draft = draft.read(groups, |groups| {
        let one = |group: &rtproof_host::facts::rights::LimitGroup| match group.members {
            Some(members) => format!("{}: {}", group.name, members_text(members)),
            None => format!("{}: not there", group.name),
        };
        match groups.is_empty() {
            true => "no group by name".into(),
            false => groups.iter().map(one).collect::<Vec<_>>().join(", "),
        }
    });
    let Some(groups) = groups.value() else {
        return draft.unreadable(groups);
    };
    let mut granted = groups.iter().filter(|group| granted(&group.name)).peekable();
    if granted.peek().is_none() {
        return draft.not_applicable("the limits files name their groups by number");
    }
    let granted: Vec<_> = granted.collect();
    if let Some(group) = granted.iter().find(|group| group.members.is_none()) {
        return draft.remedies([filled(&group.name, intent)]).doubtful(format!(
            "{} has rights and is not in /etc/group; a directory service may know it",
            group.name
        ));
    }
    if let Some(group) = granted.iter().find(|group| group.members == Some(0)) {
        return draft.remedies([filled(&group.name, intent)]).doubtful(format!(
            "{} has rights and lists no member; it may be somebody's first group",
            group.name
        ));
    }
    let names: Vec<&str> = granted.iter().map(|group| group.name.as_str()).collect();
    draft.good(format!("there, with members: {}", machine::first_few(&names, 5)))
}

// May this user lock its memory?
//
// rtproof itself locks less than 4 MiB, so a small limit does not stop it from measuring; an
// application that calls `mlockall(MCL_FUTURE)` meets the limit with its next stack.

/// What rtproof locks at most.
const OWN_BYTES: u64 = 4 << 20;

pub(super) static LIMITS_MEMLOCK: Check = Check {
    id: "limits-memlock",
    title: "right to lock memory",
    why: "without locked memory a page may be missing when it is needed: a page fault, from disk \
          milliseconds",
    source: "mlock(2), getrlimit(2); Wu, \"Real-time programming with Linux, part 2\"",
    impact: Impact::Milliseconds,
    when: When::Login,
    wanted: Wanted::Text("CAP_IPC_LOCK, or unlimited"),
    judge: Judge::Ask(judge_limits_memlock),
    ..Check::NEW
};

fn judge_limits_memlock(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let remedies =
        right(facts, intent.user.as_ref(), "memlock", "unlimited", "LimitMEMLOCK=infinity");
    if let Some(finding) = of_user(&draft, intent, "memlock", u64::MAX, &remedies) {
        return finding;
    }
    let (cap, limit) = (&facts.limits.cap_ipc_lock, &facts.limits.memlock);
    // Of another user namespace (a rootless container) the kernel does not count it.
    let counts = facts.rights.initial_user_namespace.value() != Some(&false);
    if cap.value() == Some(&true) && counts {
        return draft
            .read(cap, |_| "CAP_IPC_LOCK".into())
            .good("CAP_IPC_LOCK: no limit on locked memory, as this user");
    }
    let draft = draft.read(limit, show_limits_memlock);
    let Some(&found) = limit.value() else {
        return draft.unreadable(limit);
    };
    let Some(soft) = found.soft else {
        return draft.good("no limit on locked memory, as this user");
    };
    let Some(_) = cap.value() else {
        return draft.unreadable(cap);
    };
    let draft = draft
        .read(cap, |&has| match has {
            true => "CAP_IPC_LOCK, of another user namespace".into(),
            false => "no CAP_IPC_LOCK".into(),
        })
        .remedies(remedies);
    let size = machine::byte_size(soft);
    let later = from_next_login(intent, "memlock", u64::MAX);
    if found.hard.is_none() {
        return draft.doubtful(format!("{size} until the soft limit is raised: no hard limit"));
    }
    if soft < OWN_BYTES {
        return draft.bad(format!("this user may lock {size}: too little even to measure{later}"));
    }
    draft.doubtful(format!("this user may lock {size}; mlockall of more fails{later}"))
}

fn show_limits_memlock(limit: &Limit) -> String {
    let one = |limit: Option<u64>| limit.map_or("unlimited".into(), |b| format!("{b} bytes"));
    format!("{} (hard {})", one(limit.soft), one(limit.hard))
}

// May this user run at the priority asked for?
//
// The limits are those of the process that asks: what root may do says nothing of the user that
// the application runs as, and the finding says so. Of a user that is named, or who asks through
// sudo, it judges what the limits files grant at the next login.

pub(super) static LIMITS_RTPRIO: Check = Check {
    id: "limits-rtprio",
    title: "right to run at the real-time priority",
    why: "without the right, sched_setscheduler fails with EPERM, and an application that does not \
          look runs on as SCHED_OTHER",
    source: "sched(7), getrlimit(2); Wu, \"Real-time programming with Linux, part 2\"",
    impact: Impact::Milliseconds,
    when: When::Login,
    judge: Judge::Ask(judge_limits_rtprio),
    ..Check::NEW
};

fn judge_limits_rtprio(draft: FindingBuilder, facts: &Facts, intent: &Intent) -> Finding {
    let priority = intent.priority;
    let draft = draft.wanted(format!("CAP_SYS_NICE, or at least {priority}"));
    if priority == 0 {
        return draft.not_applicable("no real-time priority is asked for");
    }
    let least = u64::from(priority);
    let most = priority.max(95).to_string();
    let remedies =
        right(facts, intent.user.as_ref(), "rtprio", &most, &format!("LimitRTPRIO={most}"));
    if let Some(finding) = of_user(&draft, intent, "rtprio", least, &remedies) {
        return finding;
    }
    let (cap, limit) = (&facts.limits.cap_sys_nice, &facts.limits.rtprio);
    // Of another user namespace (a rootless container) the kernel does not count it.
    let counts = facts.rights.initial_user_namespace.value() != Some(&false);
    if cap.value() == Some(&true) && counts {
        let draft = draft.read(cap, |_| "CAP_SYS_NICE".into());
        return lasting(draft, facts, "CAP_SYS_NICE: any priority, as this user");
    }
    let draft = draft.read(limit, |limit| format!("rtprio {}", show_limits_rtprio(limit)));
    let Some(found) = limit.value() else {
        return draft.unreadable(limit);
    };
    let is_enough = |limit: Option<u64>| limit.is_none_or(|most| most >= least);
    if is_enough(found.soft) {
        let summary =
            format!("FIFO {priority} allowed, as this user: limit {}", show_limits_rtprio(found));
        return lasting(draft, facts, &summary);
    }
    let draft = draft.remedies(remedies);
    if is_enough(found.hard) {
        return draft.doubtful(format!(
            "FIFO {priority} needs the soft limit raised first: {}",
            show_limits_rtprio(found)
        ));
    }
    if cap.value().is_none() {
        return draft.unreadable(cap);
    }
    draft
        .read(cap, |&has| match has {
            true => "CAP_SYS_NICE, of another user namespace".into(),
            false => "no CAP_SYS_NICE".into(),
        })
        .bad(format!(
            "FIFO {priority} is refused to this user: limit {}{}",
            show_limits_rtprio(found),
            from_next_login(intent, "rtprio", least)
        ))
}

/// The right is there; RLIMIT_RTTIME may end it with SIGXCPU.
fn lasting(draft: FindingBuilder, facts: &Facts, summary: &str) -> Finding {
    let rttime = &facts.limits.rttime;
    let draft = draft.read(rttime, |limit| format!("rttime {}", show_limits_rtprio(limit)));
    let Some(limit) = rttime.value() else {
        return draft.unreadable(rttime);
    };
    match limit.soft {
        None => draft.good(summary),
        Some(us) => draft.doubtful(format!(
            "{summary}; RLIMIT_RTTIME kills a real-time task that runs {} without blocking",
            crate::ns(us.saturating_mul(1_000))
        )),
    }
}

fn show_limits_rtprio(limit: &Limit) -> String {
    let one = |limit: Option<u64>| limit.map_or("unlimited".into(), |limit| limit.to_string());
    format!("{} (hard {})", one(limit.soft), one(limit.hard))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::{Reading, facts::rights::Limit};

    fn judge(is_initial: bool, mode: u32, cap: bool, soft: u64) -> Finding {
        let mut facts = good();
        facts.rights.initial_user_namespace = Reading::known("/proc/self/ns/user", is_initial);
        facts.rights.seccomp = Reading::known("/proc/self/status", mode);
        facts.limits.cap_sys_nice = Reading::known("/proc/self/status", cap);
        let limit = Limit { soft: Some(soft), hard: Some(soft) };
        facts.limits.rtprio = Reading::known("/proc/self/limits", limit);
        CHRT_CAPABILITY.judge(&facts, &intent())
    }

    #[test]
    fn a_capability_of_another_namespace_does_not_count() {
        assert_eq!(judge(true, 0, true, 0).status, Good);
        assert_eq!(judge(false, 0, true, 0).status, Bad);
        assert_eq!(judge(false, 0, false, 0).status, Doubtful);
        assert_eq!(judge(false, 0, true, 95).status, Good);
    }

    #[test]
    fn a_filter_may_refuse() {
        let finding = judge(true, 2, true, 0);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("seccomp"), "{}", finding.summary);
        assert_eq!(judge(false, 2, true, 95).status, Doubtful);
    }

    #[test]
    fn what_cannot_be_read_is_unknown() {
        let mut facts = good();
        facts.rights.initial_user_namespace = Reading::absent("/proc/self/ns/user");
        assert_eq!(CHRT_CAPABILITY.judge(&facts, &intent()).status, Unknown);
        let mut facts = good();
        facts.rights.seccomp = Reading::absent("/proc/self/status");
        assert_eq!(CHRT_CAPABILITY.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod limits_files_tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::{Reading, facts::rights::LimitGroup};

    const PATH: &str = "/etc/security/limits.conf, /etc/security/limits.d";

    /// `who kind item value` each; lines of two files.
    fn with(lines: &[&str]) -> Facts {
        let mut facts = good();
        let line = |(line, text): (u32, &&str)| {
            let words: Vec<&str> = text.split(' ').collect();
            LimitLine {
                domain: words[0].replace('_', " "),
                kind: words[1].into(),
                item: words[2].into(),
                value: words[3].into(),
                file: "/etc/security/limits.conf".into(),
                line,
            }
        };
        let lines = (1..).zip(lines).map(line).collect();
        facts.rights.limit_lines = Reading::known(PATH, lines);
        facts
    }

    fn unreadable() -> Facts {
        let mut facts = good();
        facts.rights.limit_lines = Reading::denied(PATH, "EACCES");
        facts
    }

    #[test]
    fn logins_without_pam_limits() {
        let judge = |facts: &Facts| PAM.judge(facts, &intent());
        assert_eq!(judge(&good()).status, Good);
        assert_eq!(judge(&with(&[])).status, NotApplicable);
        assert_eq!(judge(&with(&["* - nice -5"])).status, NotApplicable);
        assert_eq!(judge(&unreadable()).status, Unknown);
        let mut facts = good();
        let mut services = facts.rights.services.value().cloned().unwrap();
        services[1].limits = false;
        facts.rights.services = Reading::known("/etc/pam.d", services);
        let finding = judge(&facts);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "not read by sshd");
        facts.rights.services = Reading::known("/etc/pam.d", Vec::new());
        assert_eq!(judge(&facts).status, Doubtful);
        facts.rights.services = Reading::absent("/etc/pam.d");
        assert_eq!(judge(&facts).status, Unknown);
    }

    #[test]
    fn later_lines_take_back() {
        let judge = |lines: &[&str]| DUPLICATES.judge(&with(lines), &intent());
        assert_eq!(judge(&[]).status, Good);
        assert_eq!(judge(&["@a - rtprio 95", "@a - memlock 1"]).status, Good);
        assert_eq!(judge(&["@a - rtprio 95", "@a hard rtprio 95"]).status, Good);
        assert_eq!(judge(&["@a soft rtprio 9", "@a hard rtprio 95"]).status, Good);
        let finding = judge(&["@a - rtprio 95", "@a hard rtprio 10"]);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(
            finding.summary,
            "@a rtprio: /etc/security/limits.conf:1 says 95, then \
             /etc/security/limits.conf:2 says 10"
        );
        assert_eq!(judge(&["user_1 - rtprio 9", "* - rtprio 0"]).status, Good, "users win");
        assert_eq!(DUPLICATES.judge(&unreadable(), &intent()).status, Unknown);
    }

    #[test]
    fn between_groups_only_a_lower_limit_is_reported() {
        let judge = |lines: &[&str]| DUPLICATES.judge(&with(lines), &intent());
        assert_eq!(judge(&["@audio - rtprio 95", "@realtime - rtprio 98"]).status, Good);
        let finding = judge(&["@realtime - memlock unlimited", "@audio - memlock 512"]);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("in @realtime and @audio"), "{}", finding.summary);
    }

    #[test]
    fn groups_without_anybody() {
        let judge = |lines: &[&str], groups: &[(&str, Option<u32>)]| {
            let mut facts = with(lines);
            let group =
                |&(name, members): &(&str, Option<u32>)| LimitGroup { name: name.into(), members };
            facts.rights.groups = Reading::known("/etc/group", groups.iter().map(group).collect());
            GROUPS.judge(&facts, &intent())
        };
        let line = ["@realtime - rtprio 98"];
        assert_eq!(judge(&line, &[("realtime", Some(1))]).status, Good);
        assert_eq!(judge(&line, &[("realtime", Some(0))]).status, Doubtful);
        let finding = judge(&line, &[("realtime", None)]);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.remedies, [member_of("realtime", None)]);
        let finding = judge(&["@docker - rtprio 98"], &[("docker", Some(0))]);
        let command = "groupadd --system --force docker && gpasswd --add USER docker".into();
        assert_eq!(finding.remedies, [Remedy::Command { command }]);
        assert_eq!(judge(&["* - rtprio 98"], &[]).status, NotApplicable);
        assert_eq!(judge(&["@500: - rtprio 98"], &[]).status, NotApplicable);
        assert_eq!(GROUPS.judge(&unreadable(), &intent()).status, Unknown);
        let mut facts = good();
        facts.rights.groups = Reading::absent("/etc/group");
        assert_eq!(GROUPS.judge(&facts, &intent()).status, Unknown);
    }
}

#[cfg(test)]
mod limits_memlock_tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::Reading;

    fn judge(soft: Option<u64>, hard: Option<u64>, cap: Option<bool>) -> Finding {
        let mut facts = good();
        facts.limits.memlock = Reading::known("/proc/self/limits", Limit { soft, hard });
        let path = "/proc/self/status";
        facts.limits.cap_ipc_lock =
            cap.map_or_else(|| Reading::denied(path, "EACCES"), |cap| Reading::known(path, cap));
        LIMITS_MEMLOCK.judge(&facts, &intent())
    }

    #[test]
    fn unlimited_or_the_capability_is_good() {
        assert_eq!(judge(None, None, Some(false)).status, Good);
        assert_eq!(judge(Some(0), Some(0), Some(true)).status, Good);
        assert_eq!(judge(None, None, None).status, Good);
    }

    #[test]
    fn a_limit_is_given_in_bytes() {
        let finding = judge(Some(8 << 20), Some(8 << 20), Some(false));
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "this user may lock 8 MiB; mlockall of more fails");
        assert_eq!(finding.evidence[0].value, "8388608 bytes (hard 8388608 bytes)");
        assert_eq!(judge(Some(65_536), Some(65_536), Some(false)).status, Bad);
        assert_eq!(judge(Some(65_536), None, Some(false)).status, Doubtful);
    }

    #[test]
    fn a_capability_of_another_namespace_does_not_count() {
        let mut facts = good();
        let limit = Limit { soft: Some(65_536), hard: Some(65_536) };
        facts.limits.memlock = Reading::known("/proc/self/limits", limit);
        facts.limits.cap_ipc_lock = Reading::known("/proc/self/status", true);
        assert_eq!(LIMITS_MEMLOCK.judge(&facts, &intent()).status, Good);
        facts.rights.initial_user_namespace = Reading::known("/proc/self/ns/user", false);
        assert_eq!(LIMITS_MEMLOCK.judge(&facts, &intent()).status, Bad);
    }

    #[test]
    fn an_unknown_capability_decides_nothing() {
        assert_eq!(judge(Some(8 << 20), Some(8 << 20), None).status, Unknown);
    }
}

#[cfg(test)]
mod limits_rtprio_tests {
    use super::*;
    use crate::Remedy;
    use crate::Status::{self, Bad, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::{Reading, facts::rights::Account};

    fn with(soft: Option<u64>, hard: Option<u64>, cap: bool) -> Facts {
        let mut facts = good();
        facts.limits.rtprio = Reading::known("/proc/self/limits", Limit { soft, hard });
        facts.limits.cap_sys_nice = Reading::known("/proc/self/status", cap);
        facts
    }

    fn status(facts: &Facts) -> Status {
        LIMITS_RTPRIO.judge(facts, &intent()).status
    }

    #[test]
    fn the_right_comes_from_the_capability_or_the_limit() {
        assert_eq!(status(&with(Some(0), Some(0), true)), Good);
        assert_eq!(status(&with(Some(80), Some(80), false)), Good);
        assert_eq!(status(&with(None, None, false)), Good);
        assert_eq!(status(&with(Some(79), Some(79), false)), Bad);
        assert_eq!(status(&with(Some(0), Some(95), false)), Doubtful);
    }

    #[test]
    fn half_known_is_unknown_where_it_decides() {
        let mut facts = with(Some(0), Some(0), false);
        facts.limits.cap_sys_nice = Reading::absent("/proc/self/status");
        assert_eq!(status(&facts), Unknown);
        let mut facts = with(Some(0), Some(0), true);
        facts.limits.rtprio = Reading::absent("/proc/self/limits");
        assert_eq!(status(&facts), Good);
    }

    #[test]
    fn a_capability_of_another_namespace_does_not_count() {
        let mut facts = with(Some(0), Some(0), true);
        facts.rights.initial_user_namespace = Reading::known("/proc/self/ns/user", false);
        let finding = LIMITS_RTPRIO.judge(&facts, &intent());
        assert_eq!(finding.status, Bad);
        assert!(finding.evidence[1].value.contains("another user namespace"), "{finding:?}");
    }

    #[test]
    fn a_container_gets_it_from_its_runtime() {
        let mut facts = with(Some(0), Some(0), false);
        let fixes = |facts: &Facts| -> Vec<String> {
            let remedies = LIMITS_RTPRIO.judge(facts, &intent()).remedies;
            remedies.iter().map(ToString::to_string).collect()
        };
        assert!(fixes(&facts).iter().any(|fix| fix.contains("@realtime")));
        for (name, part) in [
            ("docker", "--ulimit rtprio=95"),
            ("podman", "--cap-add SYS_NICE"),
            ("kubernetes", "securityContext"),
            ("lxc", "CAP_SYS_NICE, or the limit rtprio 95"),
        ] {
            facts.virt.container = Reading::known("/proc/1/cgroup", Some(name.into()));
            let fixes = fixes(&facts);
            assert!(fixes.len() == 1 && fixes[0].contains(part), "{fixes:?}");
        }
    }

    #[test]
    fn rttime_kills() {
        let mut facts = good();
        let limit = Limit { soft: Some(200_000), hard: Some(200_000) };
        facts.limits.rttime = Reading::known("/proc/self/limits", limit);
        let finding = LIMITS_RTPRIO.judge(&facts, &intent());
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("runs 200 ms without blocking"), "{}", finding.summary);
    }

    #[test]
    fn of_a_user_the_limits_files_count() {
        use rtproof_host::facts::rights::{Grant, UserSource};
        let judge = |source, grants: Reading<Vec<Grant>>| {
            let user = Some(Account { name: "alice".into(), source, grants });
            LIMITS_RTPRIO.judge(&with(Some(0), Some(0), true), &Intent { user, ..intent() })
        };
        let grants = |soft: Option<&str>, hard: Option<&str>| {
            let limit = |limit: Option<&str>| limit.map(str::to_owned);
            let (soft, hard) = (limit(soft), limit(hard));
            let grant = Grant { item: "rtprio".into(), soft, hard, line: "f:1".into() };
            Reading::known("/etc/security", vec![grant])
        };
        let none = || Reading::known("/etc/security", Vec::new());
        assert_eq!(judge(UserSource::Stated, grants(Some("95"), Some("95"))).status, Good);
        assert_eq!(judge(UserSource::Stated, grants(Some("9"), Some("95"))).status, Doubtful);
        let soft_alone = judge(UserSource::Stated, grants(Some("95"), None));
        assert_eq!(soft_alone.status, Bad, "it is cut down to the hard limit");
        let bad = judge(UserSource::Stated, none());
        assert_eq!(bad.status, Bad);
        let Remedy::Changes { changes, then: None, .. } = &bad.remedies[0] else { panic!() };
        assert_eq!(changes[1].change.target(), "group realtime, member alice");
        assert_eq!(judge(UserSource::Asked, none()).status, Doubtful);
        assert_eq!(judge(UserSource::Asked, grants(Some("80"), Some("80"))).status, Good);
        assert_eq!(judge(UserSource::Stated, Reading::absent("/etc/passwd")).status, Unknown);
        assert_eq!(judge(UserSource::Runs, none()).status, Good, "CAP_SYS_NICE of this process");
    }

    #[test]
    fn no_priority_no_right_needed() {
        let other = Intent { priority: 0, ..intent() };
        assert_eq!(LIMITS_RTPRIO.judge(&good(), &other).status, NotApplicable);
    }
}
