//! One user by name: the groups of it, and what the limits files grant it at its next login.
//!
//! Not part of [`super::Facts`]: who the users of a machine are is private. Only /etc is read, as a
//! static program cannot ask a directory service; a user or group of one is unknown here.

use super::rights::{self, ITEMS};
use crate::{Reading, Root};

/// How it is known which user is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meant {
    /// Named on the command line.
    Stated,
    /// Asked through sudo or doas.
    Asked,
    Runs,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    pub name: String,
    /// How it is known that this one is meant.
    pub meant: Meant,
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
    pub fn read(root: &Root, name: &str, meant: Meant) -> Self {
        Self { name: name.to_owned(), meant, grants: grants(root, name) }
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
    let lines = rights::lines_by_name(root);
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
fn decided(lines: &[&rights::LimitLine], ids: &Ids, name: &str) -> Option<Grant> {
    let mut grant: Option<Grant> = None;
    let (mut soft_rank, mut hard_rank) = (u8::MAX, u8::MAX);
    for line in lines {
        let Some(rank) = rank(&line.who, ids, name) else { continue };
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

#[cfg(test)]
mod tests {
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
        Account::read(&tree.root(), "alice", Meant::Stated)
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
    fn who_is_not_there_is_unknown() {
        let tree = Tree::new(&[("etc/passwd", PASSWD), ("etc/group", GROUP)]);
        let of = |name: &str| Account::read(&tree.root(), name, Meant::Stated).grants;
        assert!(of("carol").why_unknown().is_some_and(|why| why.contains("no carol")));
        let bare = Tree::new(&[("proc/version", "")]);
        assert!(Account::read(&bare.root(), "alice", Meant::Runs).grants.value().is_none());
        assert_eq!(name_of(&tree.root(), 1000).as_deref(), Some("alice"));
        assert_eq!(name_of(&tree.root(), 7), None);
    }
}
