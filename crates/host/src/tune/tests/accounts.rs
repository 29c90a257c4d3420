//! Groups and members on a tree: what is made, what was there, what others did meanwhile.

use super::played::{PlayedAccounts, SHADOW};
use super::*;

const BUSYBOX: &[&str] = &["addgroup", "delgroup"];

fn tree(group: &str) -> Tree {
    Tree::new(&[
        ("etc/group", group),
        ("etc/passwd", "root:x:0:0::/:/bin/sh\nalice:x:1000:1000::/:/bin/sh\n"),
        ("etc/machine-id", "0123456789abcdef0123456789abcdef\n"),
    ])
}

fn both() -> [Change; 2] {
    [Change::Group { name: "realtime".into() }, member("alice")]
}

fn member(user: &str) -> Change {
    Change::Member { group: "realtime".into(), user: user.into() }
}

/// Applies both, lets `meanwhile` happen to /etc/group, undoes: what became of each, the file.
fn undone(
    before: &str,
    tools: &'static [&'static str],
    meanwhile: impl FnOnce(String) -> String,
) -> (Vec<Outcome>, String) {
    let tree = tree(before);
    let accounts = PlayedAccounts::new(&tree, tools);
    let root = tree.root();
    let machine = Machine::new(&root, &NoTasks).unwrap().with_accounts(&accounts);
    apply_to(&machine, &both()).unwrap();
    assert!(text(&tree, "etc/group").lines().any(|line| line.contains("alice")));
    let path = tree.path().join("etc/group");
    fs::write(&path, meanwhile(text(&tree, "etc/group"))).unwrap();
    (undo_on(&machine), text(&tree, "etc/group"))
}

#[test]
fn a_group_and_its_member_come_and_go_with_the_tools_that_are_there() {
    for tools in [SHADOW, BUSYBOX] {
        let (outcomes, group) = undone("root:x:0:\n", tools, |group| group);
        assert_eq!(outcomes, [Outcome::Restored, Outcome::Restored], "{tools:?}");
        assert_eq!(group, "root:x:0:\n");
    }
}

#[test]
fn what_was_there_stays() {
    for (before, changed) in [
        ("realtime:x:95:alice\n", 0),
        ("realtime:x:95:bob,alice\n", 0),
        ("realtime:x:1000:\n", 0),
        ("realtime:x:95:bob\n", 1),
    ] {
        let tree = tree(before);
        let accounts = PlayedAccounts::new(&tree, SHADOW);
        let root = tree.root();
        let machine = Machine::new(&root, &NoTasks).unwrap().with_accounts(&accounts);
        let applied = apply_to(&machine, &both()).unwrap();
        assert_eq!(applied.done, changed, "{before}");
        assert_eq!(applied.pending.len(), changed);
        undo_on(&machine);
        assert_eq!(text(&tree, "etc/group"), before);
    }
}

#[test]
fn a_group_that_others_use_by_now_stays() {
    let (outcomes, group) = undone("", SHADOW, |group| group.replace("alice", "alice,bob"));
    assert_eq!(outcomes[0], Outcome::Restored);
    assert!(matches!(outcomes[1], Outcome::LeftAlone { .. }), "{outcomes:?}");
    assert!(group.contains("realtime:x:999:bob"), "{group}");
    let (outcomes, group) = undone("", SHADOW, |group| group.replace("999", "7"));
    assert!(outcomes.iter().all(|it| matches!(it, Outcome::LeftAlone { .. })), "{outcomes:?}");
    assert!(group.contains("realtime:x:7:alice"), "{group}");
    let (outcomes, group) = undone("x:x:1:\n", SHADOW, |_| "x:x:1:\n".into());
    assert_eq!(outcomes, [Outcome::WasBefore, Outcome::WasBefore]);
    assert_eq!(group, "x:x:1:\n");
}

#[test]
fn impossible_changes_are_reported_and_leave_nothing() {
    let tree = tree("root:x:0:\n");
    let root = tree.root();
    let failed = |tools: &'static [&'static str], changes: &[Change]| {
        let accounts = PlayedAccounts::new(&tree, tools);
        let machine = Machine::new(&root, &NoTasks).unwrap().with_accounts(&accounts);
        let error = apply_to(&machine, changes).unwrap_err().to_string();
        assert_eq!(text(&tree, "etc/group"), "root:x:0:\n", "{error}");
        error
    };
    let error = failed(&[], &both());
    assert!(error.contains("neither groupadd nor addgroup: install passwd"), "{error}");
    let changes = [Change::Group { name: "realtime".into() }, member("nobody-here")];
    let error = failed(SHADOW, &changes);
    assert!(error.contains("gpasswd -a nobody-here realtime: user 'nobody-here' does"), "{error}");
    let error = failed(SHADOW, &[Change::Group { name: "sudo".into() }]);
    assert!(error.contains("makes and fills only realtime"), "{error}");
    let machine = Machine::new(&root, &NoTasks).unwrap();
    let error = apply_to(&machine, &both()).unwrap_err().to_string();
    assert!(error.contains("on the machine itself alone"), "{error}");
    assert!(may_change_groups(&root, &both()).is_err());
    assert!(may_change_groups(&root, &[value("/proc/sys/x", "1")]).is_ok());
    assert!(may_change_groups(&Root::live(), &both()).is_ok());
}
