//! Who is granted real-time priorities and locked memory, by whom that is read, and whether a right
//! that this process has counts here.
//!
//! `limits.rs` has the limits of this process; this file has where those of the next login come
//! from: the lines of pam_limits (limits.conf(5)), the login services that read them (pam.d(5)) and
//! the groups that the lines name. Users are numbered in the order of the lines: who they are is
//! private.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Reading, Root};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rights {
    /// Lines about [`ITEMS`], in the order in which pam_limits reads them. Empty where the machine
    /// has no such file.
    pub limit_lines: Reading<Vec<LimitLine>>,
    /// Login services that the machine has. Empty without PAM.
    pub services: Reading<Vec<Service>>,
    /// Groups that the lines name.
    pub groups: Reading<Vec<Group>>,
    /// Whether this process is in the first user namespace: the kernel asks for CAP_SYS_NICE and
    /// CAP_IPC_LOCK there (`capable()`), and those of another namespace do not count.
    pub initial_user_namespace: Reading<bool>,
    /// Seccomp mode of this process: 0 none, 1 strict, 2 a filter.
    pub seccomp: Reading<u32>,
}

/// One line of limits.conf or limits.d/*.conf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitLine {
    /// For whom: `*`, `root`, `@group`, `user 1`, or a range of ids as it is written.
    pub who: String,
    /// `soft`, `hard`, or `-` for both.
    pub kind: String,
    /// What is limited, one of [`ITEMS`].
    pub item: String,
    /// The value as it is written.
    pub value: String,
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

/// A login service (a file of pam.d).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Service {
    /// Name, e.g. `sshd`.
    pub name: String,
    /// Whether its session stack has pam_limits.so, included files counted.
    pub limits: bool,
}

/// A group that a line names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    pub name: String,
    /// Users that /etc/group lists for it; `None` where it does not have the group.
    pub members: Option<u32>,
}

/// Items that matter to real-time tasks (limits.conf(5)).
pub const ITEMS: &[&str] = &["rtprio", "memlock", "rttime", "nice", "priority"];

/// Services that start sessions, and those that change the user in one.
const SERVICES: &[&str] =
    &["login", "sshd", "gdm-password", "lightdm", "sddm", "systemd-user", "su", "sudo"];
/// Folders of pam.d(5), the first that has a file wins.
const PAM_FOLDERS: &[&str] = &["/etc/pam.d", "/usr/lib/pam.d"];
/// Deepest inclusion that is followed.
const DEPTH_MAX: u32 = 8;

const LIMITS_CONF: &str = "/etc/security/limits.conf";
const LIMITS_FOLDER: &str = "/etc/security/limits.d";
const GROUP_FILE: &str = "/etc/group";

/// The first user namespace (include/linux/proc_ns.h, `PROC_USER_INIT_INO`).
const INITIAL_USER_NAMESPACE: &str = "user:[4026531837]";

impl Rights {
    pub fn read(root: &Root) -> Self {
        let limit_lines = limit_lines(root);
        let namespace = root.read_link("/proc/self/ns/user");
        Self {
            services: services(root),
            groups: groups(root, &limit_lines),
            limit_lines,
            initial_user_namespace: namespace.map(|target| target == INITIAL_USER_NAMESPACE),
            seccomp: root.read_text("/proc/self/status").and_then(seccomp),
        }
    }
}

fn seccomp(path: String, status: String) -> Reading<u32> {
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    match mode.map(str::trim).map(str::parse) {
        Some(Ok(mode)) => Reading::known(path, mode),
        Some(Err(_)) => Reading::malformed(path, mode.unwrap_or_default(), "Seccomp: and a mode"),
        // A kernel without CONFIG_SECCOMP has no such line, and no filter.
        None if status.contains("CapEff:") => Reading::known(path, 0),
        None => Reading::malformed(path, "no Seccomp:", "Seccomp: and a mode"),
    }
}

/// The lines with the names of users, for what is asked of one user.
pub(super) fn lines_by_name(root: &Root) -> Reading<Vec<LimitLine>> {
    lines(root, &mut |domain| domain.to_owned())
}

fn limit_lines(root: &Root) -> Reading<Vec<LimitLine>> {
    let mut users = Vec::new();
    lines(root, &mut |domain| who(domain, &mut users))
}

fn lines(root: &Root, who: &mut dyn FnMut(&str) -> String) -> Reading<Vec<LimitLine>> {
    let path = format!("{LIMITS_CONF}, {LIMITS_FOLDER}");
    let folder = root.list_dir(LIMITS_FOLDER);
    if folder.value().is_none() && !folder.is_absent() {
        return folder.map(|_| Vec::new());
    }
    // list_dir sorts by byte, which is the order of the "C" locale that pam_limits uses.
    let names = folder.value().into_iter().flatten().filter(|name| name.ends_with(".conf"));
    let files: Vec<String> = std::iter::once(LIMITS_CONF.to_owned())
        .chain(names.map(|name| format!("{LIMITS_FOLDER}/{name}")))
        .collect();
    let mut lines = Vec::new();
    let mut is_there = folder.value().is_some();
    for file in files {
        let text = root.read_text(&file);
        match text.value() {
            Some(text) => {
                is_there = true;
                parse(text, &file, who, &mut lines);
            }
            None if text.is_absent() => {}
            None => return text.map(|_| Vec::new()),
        }
    }
    match is_there || root.is_whole() {
        true => Reading::known(path, lines),
        false => Reading::absent(path),
    }
}

/// `<domain> <type> <item> <value>`, comments from `#` on.
fn parse(text: &str, file: &str, who: &mut dyn FnMut(&str) -> String, lines: &mut Vec<LimitLine>) {
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split_whitespace().collect();
        let [domain, kind, item, value, ..] = words[..] else { continue };
        let item = item.to_lowercase();
        if !ITEMS.contains(&item.as_str()) {
            continue;
        }
        lines.push(LimitLine {
            who: who(domain),
            kind: kind.to_lowercase(),
            item,
            value: value.to_lowercase(),
            file: file.to_owned(),
            line: number,
        });
    }
}

fn who(domain: &str, users: &mut Vec<String>) -> String {
    let is_range = domain.contains(':');
    if is_range || domain.starts_with(['@', '%']) || matches!(domain, "*" | "root") {
        return domain.to_owned();
    }
    let at = users.iter().position(|user| user == domain).unwrap_or_else(|| {
        users.push(domain.to_owned());
        users.len() - 1
    });
    format!("user {}", at + 1)
}

fn services(root: &Root) -> Reading<Vec<Service>> {
    let mut services = Vec::new();
    for name in SERVICES {
        match has_limits(root, name, 0) {
            Ok(Some(limits)) => services.push(Service { name: (*name).to_owned(), limits }),
            Ok(None) => {}
            Err(refused) => return refused.map(|()| Vec::new()),
        }
    }
    match services.is_empty() && !root.is_whole() {
        true => Reading::absent(PAM_FOLDERS[0]),
        false => Reading::known(PAM_FOLDERS.join(", "), services),
    }
}

/// Whether a file of pam.d has pam_limits in its session stack; `None`: no such file.
fn has_limits(root: &Root, name: &str, depth: u32) -> Result<Option<bool>, Reading<()>> {
    if depth > DEPTH_MAX || name.contains('/') {
        return Ok(None);
    }
    for folder in PAM_FOLDERS {
        let text = root.read_text(&format!("{folder}/{name}"));
        let Some(text) = text.value() else {
            if text.is_absent() {
                continue;
            }
            return Err(text.map(|_| ()));
        };
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default();
            let words: Vec<&str> = line.split_whitespace().collect();
            let included = match words[..] {
                ["@include", file, ..] => Some(file),
                ["session" | "-session", "include" | "substack", file, ..] => Some(file),
                ["session" | "-session", ..] if line.contains("pam_limits.so") => {
                    return Ok(Some(true));
                }
                _ => None,
            };
            if let Some(file) = included
                && has_limits(root, file, depth + 1)? == Some(true)
            {
                return Ok(Some(true));
            }
        }
        return Ok(Some(false));
    }
    Ok(None)
}

/// The groups that lines name, by name.
fn groups(root: &Root, lines: &Reading<Vec<LimitLine>>) -> Reading<Vec<Group>> {
    let named = lines.value().into_iter().flatten().filter_map(|line| {
        let name = line.who.strip_prefix('@').filter(|name| !name.contains(':'));
        name.map(str::to_owned)
    });
    let named: std::collections::BTreeSet<String> = named.collect();
    if named.is_empty() {
        return lines.as_ref().map(|_| Vec::new());
    }
    root.read_text(GROUP_FILE).map(|text| {
        let members = |name: &str| {
            let mut fields = text.lines().map(|line| line.split(':'));
            let mut found =
                fields.find_map(|mut line| (line.next() == Some(name)).then_some(line))?;
            let users = found.nth(2).unwrap_or_default();
            let users = users.split(',').filter(|user| !user.trim().is_empty()).count();
            Some(u32::try_from(users).unwrap_or(u32::MAX))
        };
        named.into_iter().map(|name| Group { members: members(&name), name }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{reading::State, testing::Tree};

    fn lines(files: &[(&str, &str)]) -> Vec<String> {
        let found = Rights::read(&Tree::new(files).root()).limit_lines;
        let line = |l: &LimitLine| {
            let file = l.file.rsplit('/').next().unwrap();
            format!("{} {} {} {} {file}:{}", l.who, l.kind, l.item, l.value, l.line)
        };
        found.value().unwrap().iter().map(line).collect()
    }

    #[test]
    fn lines_in_the_order_of_pam_limits_without_names_of_users() {
        let found = lines(&[
            (
                "etc/security/limits.conf",
                "# @x - rtprio 1\n* soft nofile 9\nalice - rtprio 90 # a\n",
            ),
            ("etc/security/limits.d/99-b.conf", "@audio - MEMLOCK Unlimited\nbob hard nice -11"),
            ("etc/security/limits.d/20-a.conf", "alice\t-\tmemlock 64\nroot - rtprio 99\ncut -\n"),
            ("etc/security/limits.d/README", "* - rtprio 1\n"),
        ]);
        assert_eq!(
            found,
            [
                "user 1 - rtprio 90 limits.conf:3",
                "user 1 - memlock 64 20-a.conf:1",
                "root - rtprio 99 20-a.conf:2",
                "@audio - memlock unlimited 99-b.conf:1",
                "user 2 hard nice -11 99-b.conf:2",
            ]
        );
    }

    #[test]
    fn groups_of_the_lines_and_their_members() {
        let rights = Rights::read(
            &Tree::new(&[
                (
                    "etc/security/limits.conf",
                    "@audio - rtprio 9\n@realtime - rtprio 9\n@5: - nice 0",
                ),
                ("etc/group", "root:x:0:\naudio:x:29:alice,bob\naudio2:x:30:\n"),
            ])
            .root(),
        );
        let groups = rights.groups.value().unwrap();
        let expected = [("audio", Some(2)), ("realtime", None)];
        assert_eq!(groups.len(), 2);
        for (group, (name, members)) in groups.iter().zip(expected) {
            assert_eq!((group.name.as_str(), group.members), (name, members));
        }
    }

    #[test]
    fn the_stacks_of_login_services_with_their_inclusions() {
        let rights = Rights::read(
            &Tree::new(&[
                ("etc/pam.d/login", "auth required pam_unix.so\n@include common-session\n"),
                ("etc/pam.d/common-session", "session [default=1] pam_x.so\n"),
                ("etc/pam.d/sshd", "session include system-auth\n"),
                ("usr/lib/pam.d/system-auth", "-session  optional pam_limits.so\n"),
                (
                    "etc/pam.d/su",
                    "# session required pam_limits.so\nauth x pam_limits.so\n@include su",
                ),
            ])
            .root(),
        );
        let found: Vec<(&str, bool)> =
            rights.services.value().unwrap().iter().map(|s| (s.name.as_str(), s.limits)).collect();
        assert_eq!(found, [("login", false), ("sshd", true), ("su", false)]);
    }

    #[test]
    fn what_is_not_there_or_refused_is_told() {
        let bare = Rights::read(&Tree::new(&[("proc/version", "")]).root());
        assert!(bare.limit_lines.is_absent() && bare.services.is_absent());
        assert!(bare.groups.is_absent() && bare.initial_user_namespace.is_absent());
        let refused = Tree::new(&[("etc/security/limits.conf/x", ""), ("etc/pam.d/login/x", "")]);
        let refused = Rights::read(&refused.root());
        assert!(matches!(refused.limit_lines.state, State::Denied { .. }));
        assert!(matches!(refused.services.state, State::Denied { .. }));
        let live = Rights::read(&Root::live());
        assert!(live.limit_lines.value().is_some() && live.services.value().is_some());
    }

    #[test]
    fn seccomp_modes() {
        let mode =
            |status: &str| Rights::read(&Tree::new(&[("proc/self/status", status)]).root()).seccomp;
        assert_eq!(mode("CapEff:\t0\nSeccomp:\t2\n").value(), Some(&2));
        assert_eq!(mode("CapEff:\t0\n").value(), Some(&0));
        assert!(mode("Seccomp:\tx\n").why_unknown().is_some());
        assert!(mode("Name:\tx\n").value().is_none());
    }
}
