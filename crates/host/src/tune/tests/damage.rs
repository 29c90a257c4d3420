//! Journals damaged at random: what an undo says is what is, or it does nothing and says so.

use super::*;
use crate::tune::engine::undo;
use crate::tune::{FOLDER, script};

const FIRST: &str = "var/lib/rtproof/tune/0001.journal";

const TRIES: u64 = 1200;

fn tree() -> Tree {
    Tree::in_memory(&[
        ("etc/machine-id", "one\n"),
        ("proc/sys/kernel/random/boot_id", "boot\n"),
        ("proc/sys/a", "1\n"),
        ("proc/sys/b", "2\n"),
        ("proc/sys/c", "3\n"),
        ("sys/d", "off\n"),
        ("etc/e", "e\n"),
    ])
}

fn changes() -> Vec<Change> {
    vec![
        value("/proc/sys/a", "7"),
        // So already: nothing of it is ours.
        value("/proc/sys/b", "2"),
        value("/proc/sys/c", "8"),
        value("/sys/d", "on"),
        file("/etc/e", Some(b"other\n")),
        file("/etc/new", Some(b"new\n")),
    ]
}

/// A generator of its own: the crate of statistics is above.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % n.max(1)
    }
}

fn damage(whole: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let lines: Vec<&[u8]> = whole.split_inclusive(|&byte| byte == b'\n').collect();
    let (at, line) = (random.below(whole.len()), random.below(lines.len()));
    match random.below(9) {
        0 => bytes.truncate(at),
        // At the end of a line: all that is left of it holds.
        1 => bytes = lines[..line].concat(),
        2 => bytes[at] ^= 1 << random.below(8),
        3 => bytes[at..].fill(0),
        4 => bytes = [&lines[..line], &lines[line + 1..]].concat().concat(),
        5 => bytes = [&lines[..line], &lines[line..=line], &lines[line..]].concat().concat(),
        6 => bytes.swap(at, random.below(whole.len())),
        7 => bytes.insert(at, random.below(256) as u8),
        _ => bytes = vec![random.below(256) as u8; random.below(4096)],
    }
    bytes
}

/// What still differs from before the apply, as targets.
fn differ(tree: &Tree, before: &BTreeMap<String, String>) -> Vec<String> {
    let now = snapshot(tree.path());
    let names: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    names.into_iter().filter(|name| before.get(*name) != now.get(*name)).cloned().collect()
}

#[test]
fn an_undo_never_reports_more_than_it_did() {
    let tree = tree();
    let root = tree.root();
    let before = snapshot(tree.path());
    let machine = Machine::new(&root, &NoTasks).unwrap();
    apply_to(&machine, &changes()).unwrap();
    let whole = fs::read(tree.path().join(FIRST)).unwrap();
    let during: Vec<(String, Vec<u8>)> = differ(&tree, &before)
        .into_iter()
        .map(|name| (name.clone(), fs::read(tree.path().join(&name[1..])).unwrap()))
        .collect();
    assert_eq!(during.len(), 5);
    let (mut clean, mut named_rest, mut refused) = (0, 0, 0);
    for seed in 0..TRIES {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        for (name, bytes) in &during {
            fs::write(tree.path().join(&name[1..]), bytes).unwrap();
        }
        fs::write(tree.path().join(FIRST), damage(&whole, &mut random)).unwrap();
        let takes_all = random.below(2) == 0;
        let machine = Machine::to_undo(&root, &NoTasks).unwrap();
        let machine = if takes_all { machine.taking_damaged() } else { machine };
        let opened = Journal::open(&machine, None);
        let left = || differ(&tree, &before);
        match opened {
            Err(JournalError::Corrupt { path, verified, named, .. }) => {
                refused += 1;
                assert_eq!(left().len(), 5, "{seed}: refused, and something was written");
                assert!(path.ends_with("0001.journal"));
                assert!(!takes_all || verified.is_none(), "{seed}");
                // With its first line whole, all that was planned is listed: verified, or by name.
                assert!(verified.is_none_or(|n| n + named.len() == 6), "{seed}: {named:?}");
            }
            Err(error) => panic!("{seed}: {error}"),
            Ok(mut journal) => {
                let undone = match undo(&machine, &mut journal, &mut |_| {}) {
                    Err(UndoError::Unrecorded { undone, .. }) if journal.is_damaged() => undone,
                    undone => undone.unwrap_or_else(|error| panic!("{seed}: {error}")),
                };
                let fine = |it: &UndoneChange| {
                    matches!(it.outcome, Outcome::Restored | Outcome::WasBefore)
                };
                assert!(undone.iter().all(fine), "{seed}: {undone:?}");
                let unnoted: Vec<String> =
                    journal.planned_only(&machine).iter().map(Change::target).collect();
                let mut left = left();
                // The folder's file is named by its path, as every other.
                left.sort();
                let mut said = unnoted.clone();
                said.sort();
                assert_eq!(left, said, "{seed}: what differs is what is said to");
                match unnoted.is_empty() {
                    true => clean += 1,
                    false => named_rest += 1,
                }
                assert_eq!(journal.is_closed(), unnoted.is_empty() && !journal.is_damaged());
            }
        }
    }
    assert_eq!(clean + named_rest + refused, TRIES);
    assert!(clean > 20 && named_rest > 200 && refused > 200, "{clean} {named_rest} {refused}");
}

#[test]
fn a_boot_that_cannot_be_asked_for_is_no_other() {
    let tree = tree();
    let root = tree.root();
    let machine = Machine::new(&root, &NoTasks).unwrap();
    apply_to(&machine, &changes()).unwrap();
    fs::remove_file(tree.path().join("proc/sys/kernel/random/boot_id")).unwrap();
    assert!(!Journal::list(&machine).unwrap()[0].earlier_boot);
    assert!(undo_on(&machine).iter().all(|outcome| *outcome == Outcome::Restored));
    assert_eq!(text(&tree, "proc/sys/a"), "1\n");
}

#[test]
fn what_a_damaged_journal_names_is_listed_and_it_is_put_aside() {
    let tree = tree();
    let root = tree.root();
    let machine = Machine::new(&root, &NoTasks).unwrap();
    apply_to(&machine, &changes()).unwrap();
    let path = tree.path().join(FIRST);
    let whole = fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|&byte| byte == b'\n').collect();
    // In its first line: nothing holds, and what can be read is listed as such.
    let mut first = whole.clone();
    first[20] ^= 1;
    fs::write(&path, &first).unwrap();
    let why = Journal::open(&machine, None).unwrap_err().to_string();
    assert!(why.contains("/proc/sys/a, /proc/sys/c") && why.contains("damaged lines"), "{why}");
    assert_eq!(script::named(&first).len(), 5);
    fs::write(&path, b"").unwrap();
    let why = Journal::open(&machine, None).unwrap_err().to_string();
    assert!(why.contains("undamaged copy"), "{why}");
    // In the last but one: all but the last change hold.
    let mut later = whole.clone();
    let at = whole.len() - lines[lines.len() - 1].len() - 9;
    later[at] ^= 1;
    fs::write(&path, &later).unwrap();
    let why = Journal::open(&machine, None).unwrap_err().to_string();
    assert!(why.contains("undo the 5 of its changes") && why.contains("/etc/new"), "{why}");
    let machine = machine.taking_damaged();
    let mut journal = Journal::open(&machine, None).unwrap();
    assert!(matches!(
        undo(&machine, &mut journal, &mut |_| {}),
        Err(UndoError::Unrecorded { undone, .. }) if undone.len() == 4
    ));
    assert_eq!(journal.planned_only(&machine).len(), 1);
    fs::remove_file(tree.path().join("etc/new")).unwrap();
    assert_eq!(journal.planned_only(&machine), []);
    assert_eq!(fs::read(&path).unwrap(), later, "evidence stays as it is");
    journal.put_aside(&machine).unwrap();
    assert_eq!(fs::read(path.with_extension("damaged")).unwrap(), later);
    assert!(matches!(Journal::open(&machine, None), Err(JournalError::NoneOpen)));
    assert!(tree.path().join(&FOLDER[1..]).exists());
}
