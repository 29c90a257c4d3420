//! Do the limits files grant what they seem to grant? Three questions of the same lines: whether
//! a program reads them, whether a later line undoes an earlier one, and whether the groups that
//! they name have anybody in them.
//!
//! `limits-rtprio` and `limits-memlock` judge what this process has; these checks judge what the
//! next login will get. Services of systemd never read these files.

use std::collections::BTreeMap;

use rtproof_host::{
    Facts,
    change::RIGHTS_GROUPS,
    facts::rights::{LimitLine, Service},
};

use crate::check::{Check, Judge, Wanted};
use crate::draft::Draft;
use crate::remedies::member_of;
use crate::text;
use crate::{Evidence, Finding, Impact, Intent, Remedy, When};

/// Items whose lines decide whether a real-time application gets what it needs.
const DECISIVE: &[&str] = &["rtprio", "memlock", "rttime"];
/// Services that start a session: what they do not read, the session does not have.
const SESSIONS: &[&str] = &["login", "sshd", "gdm-password", "lightdm", "sddm"];

fn decisive(lines: &[LimitLine]) -> Vec<&LimitLine> {
    lines.iter().filter(|line| DECISIVE.contains(&line.item.as_str())).collect()
}

fn show(lines: &[&LimitLine]) -> String {
    match lines.len() {
        0 => "no line about rtprio, memlock or rttime".into(),
        _ => {
            let lines: Vec<String> = lines.iter().map(|line| words(line)).collect();
            text::first_few(&lines, 6)
        }
    }
}

fn words(line: &LimitLine) -> String {
    format!("{} {} {} {}", line.who, line.kind, line.item, line.value)
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

fn judge_pam(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let reading = &facts.rights.limit_lines;
    let draft = draft.read(reading, |lines| show(&decisive(lines)));
    let Some(lines) = reading.value() else {
        return draft.blind(reading);
    };
    if decisive(lines).is_empty() {
        return draft.not_applicable("the limits files grant nothing that a login would miss");
    }
    let services = &facts.rights.services;
    let draft = draft.read(services, |services| shown(services));
    let Some(found) = services.value() else {
        return draft.blind(services);
    };
    let is_session = |service: &&Service| SESSIONS.contains(&service.name.as_str());
    let sessions: Vec<&Service> = found.iter().filter(is_session).collect();
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
        return draft.good(format!("read by {}", text::first_few(&names, 5)));
    }
    draft
        .remedies(without.iter().map(|name| Remedy::File {
            path: format!("/etc/pam.d/{name}"),
            line: "session required pam_limits.so".into(),
        }))
        .doubtful(format!("not read by {}", text::first_few(&without, 5)))
}

fn shown(services: &[Service]) -> String {
    let one = |service: &Service| {
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

fn judge_duplicates(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let reading = &facts.rights.limit_lines;
    let draft = draft.read(reading, |lines| show(&decisive(lines)));
    let Some(lines) = reading.value() else {
        return draft.blind(reading);
    };
    let lines = decisive(lines);
    if lines.is_empty() {
        return draft.good("no line about rtprio, memlock or rttime");
    }
    let Some((first, last)) = overridden(&lines) else {
        return draft.good(format!(
            "{} about rtprio, memlock or rttime, none changed by a later one",
            text::count(lines.len(), "line")
        ));
    };
    let evidence = [first, last].map(|line| Evidence { path: place(line), value: words(line) });
    let what = match first.who == last.who {
        true => String::new(),
        false => format!(" for who is in {} and {}", first.who, last.who),
    };
    draft
        .saw(evidence)
        .remedies([Remedy::Manual {
            text: format!("keep one of {} and {}", place(first), place(last)),
        }])
        .doubtful(format!(
            "{} {}{what}: {} says {}, then {} says {}",
            last.who,
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
            if let Some(earlier) = last.insert((&line.who, &line.item, kind), line)
                && earlier.value != line.value
            {
                return Some((earlier, line));
            }
        }
    }
    let is_group = |line: &LimitLine| line.who.starts_with('@');
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
    text::count(members, "member")
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

fn judge_groups(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let lines = &facts.rights.limit_lines;
    let draft = draft.read(lines, |lines| show(&decisive(lines)));
    let Some(found) = lines.value() else {
        return draft.blind(lines);
    };
    let granted =
        |name: &str| decisive(found).iter().any(|line| line.who.strip_prefix('@') == Some(name));
    if !decisive(found).iter().any(|line| line.who.starts_with('@')) {
        return draft.not_applicable("the limits files grant no group real-time rights");
    }
    let groups = &facts.rights.groups;
    let draft = draft.read(groups, |groups| {
        let one = |group: &rtproof_host::facts::rights::Group| match group.members {
            Some(members) => format!("{}: {}", group.name, members_text(members)),
            None => format!("{}: not there", group.name),
        };
        match groups.is_empty() {
            true => "no group by name".into(),
            false => groups.iter().map(one).collect::<Vec<_>>().join(", "),
        }
    });
    let Some(groups) = groups.value() else {
        return draft.blind(groups);
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
    draft.good(format!("there, with members: {}", text::first_few(&names, 5)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{good, intent};
    use rtproof_host::{Reading, facts::rights::Group};

    const PATH: &str = "/etc/security/limits.conf, /etc/security/limits.d";

    /// `who kind item value` each; lines of two files.
    fn with(lines: &[&str]) -> Facts {
        let mut facts = good();
        let line = |(line, text): (u32, &&str)| {
            let words: Vec<&str> = text.split(' ').collect();
            LimitLine {
                who: words[0].replace('_', " "),
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
    fn between_groups_only_less_is_told() {
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
                |&(name, members): &(&str, Option<u32>)| Group { name: name.into(), members };
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
