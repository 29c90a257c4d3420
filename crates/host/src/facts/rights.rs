//! Grants of real-time priorities and locked memory, the services that read them, whether a right
//! that this process has counts here.
//!
//! `Limits` are those of this process. Those of the next login come from the lines of pam_limits
//! (limits.conf(5)), the login services that read them (pam.d(5)) and the groups that the lines
//! name. Users are numbered in the order of the lines: who they are is private.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::field;
use crate::{Reading, Root};

/// Facts about the right to real-time scheduling and locked memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rights {
    /// Lines about [`ITEMS`], in the order in which pam_limits reads them. Empty where the machine
    /// has no such file.
    pub limit_lines: Reading<Vec<LimitLine>>,
    /// Login services that the machine has. Empty without PAM.
    pub services: Reading<Vec<LoginService>>,
    /// Groups that the lines name.
    pub groups: Reading<Vec<LimitGroup>>,
    /// Whether this process is in the first user namespace: the kernel asks for CAP_SYS_NICE and
    /// CAP_IPC_LOCK there (`capable()`), and those of another namespace do not count.
    pub initial_user_namespace: Reading<bool>,
    /// Seccomp mode of this process: 0 none, 1 strict, 2 a filter.
    pub seccomp: Reading<u32>,
}

/// One line of limits.conf or limits.d/*.conf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitLine {
    /// Domain: `*`, `root`, `@group`, `user 1`, or a range of ids as it is written.
    #[serde(rename = "who")]
    pub domain: String,
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
pub struct LoginService {
    /// Name, e.g. `sshd`.
    pub name: String,
    /// Whether its session stack has pam_limits.so, included files counted.
    pub limits: bool,
}

/// A group that a line names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LimitGroup {
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
fn lines_by_name(root: &Root) -> Reading<Vec<LimitLine>> {
    lines(root, &mut |domain| domain.to_owned())
}

fn limit_lines(root: &Root) -> Reading<Vec<LimitLine>> {
    let mut users = Vec::new();
    lines(root, &mut |domain| named_domain(domain, &mut users))
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
            domain: who(domain),
            kind: kind.to_lowercase(),
            item,
            value: value.to_lowercase(),
            file: file.to_owned(),
            line: number,
        });
    }
}

fn named_domain(domain: &str, users: &mut Vec<String>) -> String {
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

fn services(root: &Root) -> Reading<Vec<LoginService>> {
    let mut services = Vec::new();
    for name in SERVICES {
        match has_limits(root, name, 0) {
            Ok(Some(limits)) => services.push(LoginService { name: (*name).to_owned(), limits }),
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
fn groups(root: &Root, lines: &Reading<Vec<LimitLine>>) -> Reading<Vec<LimitGroup>> {
    let named = lines.value().into_iter().flatten().filter_map(|line| {
        let name = line.domain.strip_prefix('@').filter(|name| !name.contains(':'));
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
        named.into_iter().map(|name| LimitGroup { members: members(&name), name }).collect()
    })
}

// One user by name: the groups of it, and what the limits files grant it at its next login.
//
// Not part of `super::Facts`: the users of a machine are private. Only /etc is read, as a
// static program cannot ask a directory service; a user or group of one is unknown here.

/// How the user was determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserSource {
    /// Named on the command line.
    Stated,
    /// Asked through sudo or doas.
    Asked,
    Runs,
}

/// A user, and what the limits files grant to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    /// How this user was determined.
    pub source: UserSource,
    /// What the limits files grant: `None` for an item without a line.
    pub grants: Reading<Vec<Grant>>,
}

/// One limit, after all lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// `rtprio`, `memlock` ...
    pub item: String,
    /// The soft limit as it is written.
    pub soft: Option<String>,
    /// The hard limit as it is written.
    pub hard: Option<String>,
    /// The line that decides, as `FILE:LINE`.
    pub line: String,
}

impl Grant {
    /// A limit as a number; no limit is the most.
    pub fn amount(limit: Option<&str>) -> Option<u64> {
        match limit? {
            "unlimited" | "infinity" | "-1" => Some(u64::MAX),
            number => number.parse().ok(),
        }
    }
}

impl Account {
    /// Reads what the machine's own files say of a user.
    pub fn read(root: &Root, name: &str, source: UserSource) -> Self {
        Self { name: name.to_owned(), source, grants: grants(root, name) }
    }

    /// What is granted of an item.
    pub fn grant(&self, item: &str) -> Option<&Grant> {
        self.grants.value()?.iter().find(|grant| grant.item == item)
    }
}

/// The name of a user by number, from /etc/passwd.
pub fn name_of(root: &Root, uid: u32) -> Option<String> {
    let passwd = root.read_text("/etc/passwd");
    let mut lines = passwd.value()?.lines().map(|line| line.split(':'));
    lines.find_map(|mut line| {
        let name = line.next()?;
        (line.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// Numbers and groups of a user.
struct Ids {
    uid: u32,
    gid: u32,
    /// Groups by name and number, the first one among them.
    groups: Vec<(String, u32)>,
}

fn ids(root: &Root, name: &str) -> Result<Ids, Reading<()>> {
    let passwd = root.read_text("/etc/passwd");
    let Some(text) = passwd.value() else { return Err(passwd.map(|_| ())) };
    let mut fields = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let own = fields.find(|fields| fields[0] == name && fields.len() >= 4);
    let number = |text: &str| text.parse::<u32>().ok();
    let numbers = own.and_then(|fields| Some((number(fields[2])?, number(fields[3])?)));
    let Some((uid, gid)) = numbers else {
        return Err(Reading::malformed(
            "/etc/passwd",
            &format!("no {name}"),
            "the user; one of a directory service is not read",
        ));
    };
    let group = root.read_text("/etc/group");
    let Some(text) = group.value() else { return Err(group.map(|_| ())) };
    let of = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let [group, _, number, members] = fields[..] else { return None };
        let number = number.parse().ok()?;
        let is_member = number == gid || members.split(',').any(|member| member == name);
        is_member.then(|| (group.to_owned(), number))
    };
    Ok(Ids { uid, gid, groups: text.lines().filter_map(of).collect() })
}

fn grants(root: &Root, name: &str) -> Reading<Vec<Grant>> {
    let ids = match ids(root, name) {
        Ok(ids) => ids,
        Err(unknown) => return unknown.map(|()| Vec::new()),
    };
    let lines = lines_by_name(root);
    lines.map(|lines| {
        let grant = |item: &&str| {
            let of_item: Vec<_> = lines.iter().filter(|line| line.item == *item).collect();
            decided(&of_item, &ids, name)
        };
        ITEMS.iter().filter_map(grant).collect()
    })
}

/// What holds after all lines of one item: a line for the user goes over one for a group, that over
/// one for all; of equal ones the last wins (`src_soft`, `src_hard` of `pam_limits.c`).
fn decided(lines: &[&LimitLine], ids: &Ids, name: &str) -> Option<Grant> {
    let mut grant: Option<Grant> = None;
    let (mut soft_rank, mut hard_rank) = (u8::MAX, u8::MAX);
    for line in lines {
        let Some(rank) = rank(&line.domain, ids, name) else { continue };
        let grant = grant.get_or_insert_with(|| Grant {
            item: line.item.clone(),
            soft: None,
            hard: None,
            line: String::new(),
        });
        for (kind, limit, known) in
            [("soft", &mut grant.soft, &mut soft_rank), ("hard", &mut grant.hard, &mut hard_rank)]
        {
            if (line.kind == kind || line.kind == "-") && rank <= *known {
                *known = rank;
                *limit = Some(line.value.clone());
                grant.line = format!("{}:{}", line.file, line.line);
            }
        }
    }
    grant
}

/// How closely a line is about a user, 0 the closest; `None`: not at all. Of numbers
/// (limits.conf(5)) `:N` is N alone, of all groups; a range of groups is about the first one.
fn rank(who: &str, ids: &Ids, name: &str) -> Option<u8> {
    if who == name {
        return Some(0);
    }
    if let Some(group) = who.strip_prefix('@') {
        let is_of = |(known, number): &(String, u32)| {
            known == group || group.strip_prefix(':').is_some_and(|one| one.parse() == Ok(*number))
        };
        return (in_range(group, ids.gid) || ids.groups.iter().any(is_of)).then_some(1);
    }
    match in_range(who, ids.uid) {
        true => Some(0),
        false => (who == "*").then_some(3),
    }
}

/// Whether a number is in `LOW:HIGH`, `LOW:` or `:ONE`.
fn in_range(range: &str, number: u32) -> bool {
    let Some((low, high)) = range.split_once(':') else { return false };
    let bound = |text: &str| text.parse::<u32>().ok();
    match (bound(low), bound(high)) {
        (Some(low), Some(high)) => (low..=high).contains(&number),
        (Some(low), None) => high.is_empty() && number >= low,
        (None, Some(one)) => low.is_empty() && number == one,
        (None, None) => false,
    }
}

/// Limits of this process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// RLIMIT_RTPRIO: highest real-time priority without CAP_SYS_NICE.
    pub rtprio: Reading<Limit>,
    /// RLIMIT_MEMLOCK in bytes: how much may be locked without CAP_IPC_LOCK.
    pub memlock: Reading<Limit>,
    /// CAP_SYS_NICE in the effective set (CapEff of /proc/self/status).
    pub cap_sys_nice: Reading<bool>,
    /// CAP_IPC_LOCK in the effective set.
    pub cap_ipc_lock: Reading<bool>,
    /// RLIMIT_RTTIME in microseconds: a real-time task that runs longer without blocking is killed.
    pub rttime: Reading<Limit>,
}

/// Soft and hard limit; `None` is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    pub soft: Option<u64>,
    pub hard: Option<u64>,
}

/// Bits of the capability sets (include/uapi/linux/capability.h).
pub(super) const CAP_IPC_LOCK: u32 = 14;

pub(super) const CAP_SYS_NICE: u32 = 23;

impl Limits {
    /// Reads the limits of this process from /proc/self: not by getrlimit(2), so that a captured
    /// machine does not show ours.
    pub fn read(root: &Root) -> Self {
        let limits = root.read_text("/proc/self/limits");
        let effective = root.read_text("/proc/self/status").and_then(|path, text| {
            let set = field(&text, "CapEff").unwrap_or_default();
            let known = effective_capabilities(&text).map(|set| Reading::known(&path, set));
            known.unwrap_or_else(|| Reading::malformed(&path, set, "CapEff: and a mask"))
        });
        let has = |bit: u32| effective.clone().map(|set| set & (1 << bit) != 0);
        Self {
            rtprio: limit(&limits, "Max realtime priority"),
            memlock: limit(&limits, "Max locked memory"),
            cap_sys_nice: has(CAP_SYS_NICE),
            cap_ipc_lock: has(CAP_IPC_LOCK),
            rttime: limit(&limits, "Max realtime timeout"),
        }
    }
}

/// A line of /proc/PID/limits: name, soft limit, hard limit, unit where there is one.
pub(super) fn limit(limits: &Reading<String>, name: &str) -> Reading<Limit> {
    limits.clone().and_then(|path, text| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        let number = |word: Option<&str>| match word? {
            "unlimited" => Some(None),
            digits => digits.parse().ok().map(Some),
        };
        let mut words = line[name.len().min(line.len())..].split_whitespace();
        match (number(words.next()), number(words.next())) {
            (Some(soft), Some(hard)) => Reading::known(path, Limit { soft, hard }),
            _ => Reading::malformed(path, line, format!("{name}, soft limit, hard limit")),
        }
    })
}

pub(super) fn effective_capabilities(status: &str) -> Option<u64> {
    u64::from_str_radix(field(status, "CapEff")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::ReadingState;
    use crate::testing::Tree;

    fn lines(files: &[(&str, &str)]) -> Vec<String> {
        let found = Rights::read(&Tree::new(files).root()).limit_lines;
        let line = |l: &LimitLine| {
            let file = l.file.rsplit('/').next().unwrap();
            format!("{} {} {} {} {file}:{}", l.domain, l.kind, l.item, l.value, l.line)
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
    fn absent_and_denied_are_reported() {
        let bare = Rights::read(&Tree::new(&[("proc/version", "")]).root());
        assert!(bare.limit_lines.is_absent() && bare.services.is_absent());
        assert!(bare.groups.is_absent() && bare.initial_user_namespace.is_absent());
        let refused = Tree::new(&[("etc/security/limits.conf/x", ""), ("etc/pam.d/login/x", "")]);
        let refused = Rights::read(&refused.root());
        assert!(matches!(refused.limit_lines.state, ReadingState::Denied { .. }));
        assert!(matches!(refused.services.state, ReadingState::Denied { .. }));
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

#[cfg(test)]
mod account_tests {
    use super::*;
    use crate::testing::Tree;

    const PASSWD: &str = "root:x:0:0::/root:/bin/sh\nalice:x:1000:1000::/home/alice:/bin/sh\n";
    const GROUP: &str = "root:x:0:\nalice:x:1000:\nrealtime:x:95:bob,alice\naudio:x:29:bob\n";

    fn alice(limits: &str) -> Account {
        let tree = Tree::new(&[
            ("etc/passwd", PASSWD),
            ("etc/group", GROUP),
            ("etc/security/limits.conf", limits),
        ]);
        Account::read(&tree.root(), "alice", UserSource::Stated)
    }

    #[test]
    fn the_closest_line_decides_and_of_equal_ones_the_last() {
        let soft =
            |limits: &str| alice(limits).grant("rtprio").and_then(|grant| grant.soft.clone());
        let some = |value: &str| Some(value.to_owned());
        assert_eq!(soft("@realtime - rtprio 95\n"), some("95"));
        assert_eq!(soft("@realtime - rtprio 95\n* - rtprio 0\n"), some("95"));
        assert_eq!(soft("alice - rtprio 7\n@realtime - rtprio 95\n"), some("7"));
        assert_eq!(soft("@realtime - rtprio 95\n@alice - rtprio 3\n"), some("3"));
        assert_eq!(soft("@audio - rtprio 95\nbob - rtprio 95\nroot - rtprio 95\n"), None);
        assert_eq!(soft("1000:1001 - rtprio 5\n"), some("5"));
        assert_eq!(soft("1001: - rtprio 5\n@900:1000 - rtprio 6\n"), some("6"));
        assert_eq!(soft("@90:99 - rtprio 6\n:999 - rtprio 5\n"), None);
        assert_eq!(soft("@:95 - rtprio 4\n"), some("4"));
        assert_eq!(soft("@realtime hard rtprio 95\n"), None);
        let grant = alice("# x\n@realtime hard rtprio 95\n").grant("rtprio").cloned().unwrap();
        assert_eq!(grant.hard.as_deref(), Some("95"));
        assert_eq!(grant.line, "/etc/security/limits.conf:2");
    }

    #[test]
    fn an_unknown_user_is_unknown() {
        let tree = Tree::new(&[("etc/passwd", PASSWD), ("etc/group", GROUP)]);
        let of = |name: &str| Account::read(&tree.root(), name, UserSource::Stated).grants;
        assert!(of("carol").why_unknown().is_some_and(|why| why.contains("no carol")));
        let bare = Tree::new(&[("proc/version", "")]);
        assert!(Account::read(&bare.root(), "alice", UserSource::Runs).grants.value().is_none());
        assert_eq!(name_of(&tree.root(), 1000).as_deref(), Some("alice"));
        assert_eq!(name_of(&tree.root(), 7), None);
    }
}

#[cfg(test)]
mod limits_tests {
    use super::*;
    use crate::testing::Tree;

    #[test]
    fn soft_hard_unlimited_and_capabilities() {
        let tree = Tree::new(&[
            (
                "proc/self/limits",
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max locked memory         8388608              unlimited            bytes     \n\
                 Max realtime priority     0                    99                   \n\
                 Max realtime timeout      many                 unlimited            us        \n",
            ),
            ("proc/self/status", "Name:\tx\nCapEff:\t0000000000804000\n"),
        ]);
        let limits = Limits::read(&tree.root());
        assert_eq!(limits.rtprio.value(), Some(&Limit { soft: Some(0), hard: Some(99) }));
        assert_eq!(limits.memlock.value(), Some(&Limit { soft: Some(8_388_608), hard: None }));
        assert!(limits.rttime.why_unknown().unwrap().contains("many"));
        assert_eq!(limits.cap_sys_nice.value(), Some(&true));
        assert_eq!(limits.cap_ipc_lock.value(), Some(&true));
    }

    #[test]
    fn a_captured_machine_does_not_show_our_limits() {
        let limits = Limits::read(&Tree::new(&[("proc/version", "")]).root());
        assert!(limits.rtprio.is_absent() && limits.cap_sys_nice.is_absent());
        let plain = Limits::read(&Tree::new(&[("proc/self/status", "CapEff:\t0\n")]).root());
        assert_eq!(plain.cap_sys_nice.value(), Some(&false));
        let none = Limits::read(&Tree::new(&[("proc/self/status", "Name:\tx\n")]).root());
        assert!(none.cap_ipc_lock.why_unknown().unwrap().contains("CapEff"));
    }
}
