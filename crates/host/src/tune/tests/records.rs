//! Journals that are damaged, foreign, copied, held by another; machines that cannot be changed.

use proptest::prelude::*;

use super::*;
use crate::tune::FOLDER;
use crate::tune::script::JournalScript;

fn tree() -> Tree {
    Tree::in_memory(&[
        ("etc/machine-id", "one\n"),
        ("proc/sys/a", "1\n"),
        ("proc/sys/b", "2"),
        ("etc/c", "c\n"),
    ])
}

fn changes() -> Vec<Change> {
    vec![value("/proc/sys/a", "7"), value("/proc/sys/b", "2"), file("/etc/c", Some(b"\xff"))]
}

const FIRST: &str = "var/lib/rtproof/tune/0001.journal";

fn applied() -> Tree {
    let tree = tree();
    let root = tree.root();
    apply_to(&Machine::new(&root, &NoTasks).unwrap(), &changes()).unwrap();
    tree
}

/// Opens the first journal and undoes it.
fn try_undo(tree: &Tree) -> Result<Vec<UndoneChange>, String> {
    let root = tree.root();
    let machine = Machine::new(&root, &NoTasks).map_err(|error| error.to_string())?;
    let mut journal = Journal::open(&machine, None).map_err(|error| error.to_string())?;
    undo(&machine, &mut journal, &mut |_| {}).map_err(|error| error.to_string())
}

#[test]
fn a_journal_is_one_checked_line_for_each_step() {
    let tree = applied();
    let path = tree.path().join(FIRST);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let text = text(&tree, FIRST);
    let kinds: Vec<String> = text
        .lines()
        .map(|line| {
            let json: serde_json::Value = serde_json::from_str(&line[17..]).unwrap();
            json["line"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(kinds, ["header", "begin", "done", "same", "begin", "done"]);
    assert!(!text.contains("one\\n") && !text.contains("\"one\""), "the id is a hash");
    let script = JournalScript::parse(text.as_bytes()).unwrap();
    assert_eq!(script.entries.len(), 3);
    assert_eq!(script.header.what, "test");
}

#[test]
fn a_torn_last_line_is_left_out_and_any_other_damage_is_refused() {
    let whole = fs::read(applied().path().join(FIRST)).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|&byte| byte == b'\n').collect();
    let with = |bytes: &[u8]| {
        let tree = applied();
        fs::write(tree.path().join(FIRST), bytes).unwrap();
        let before = snapshot(tree.path());
        let result = try_undo(&tree);
        (before != snapshot(tree.path()), result)
    };
    // Cut in the last line: the change is found to have been made.
    let torn = &whole[..whole.len() - 5];
    assert!(with(torn).1.unwrap().iter().all(|undone| undone.outcome == Outcome::Restored));
    // A block that never got to the disk.
    let mut zeros = lines[..5].concat();
    zeros.extend([0; 30]);
    zeros.push(b'\n');
    assert!(with(&zeros).1.is_ok());
    let mut flipped = whole.clone();
    flipped[lines[0].len() + 40] ^= 4;
    let dropped = [&lines[..1], &lines[2..]].concat().concat();
    let swapped = [lines[0], lines[2], lines[1]].concat();
    let mut last = whole.clone();
    let at = last.len() - 10;
    last[at] ^= 1;
    for (bytes, line) in [(flipped, 2), (dropped, 2), (swapped, 2), (last, 6)] {
        let (is_changed, result) = with(&bytes);
        let error = result.unwrap_err();
        assert!(!is_changed && error.contains("damaged"), "{error}");
        assert!(error.contains(&format!("0001.journal:{line}: ")), "{error}");
    }
    for nothing in [&b""[..], b"0123456789abcdef {}", b"x\n"] {
        assert!(with(nothing).1.is_err());
    }
    // A line that verifies and does not belong where it is.
    let script = JournalScript::parse(lines[0]).unwrap();
    let line = script.text_of(&JournalLine::Undoing { n: 3 }).unwrap();
    let error = with(&[lines[0], line.as_bytes()].concat()).1.unwrap_err();
    assert!(error.contains("out of order"), "{error}");
}

/// An id that was taken for none would make the journal another machine's.
#[test]
fn a_journal_needs_a_known_machine_id() {
    let tree = tree();
    let id = tree.path().join("etc/machine-id");
    fs::remove_file(&id).unwrap();
    fs::create_dir(&id).unwrap();
    let root = tree.root();
    let machine = Machine::new(&root, &NoTasks).unwrap();
    let error = Journal::begin(&machine, "test".into(), &[]).unwrap_err().to_string();
    assert!(error.contains("/etc/machine-id"), "{error}");
    assert!(!tree.path().join(FIRST).exists());
    fs::remove_dir(&id).unwrap();
    apply_to(&Machine::new(&root, &NoTasks).unwrap(), &changes()).unwrap();
    assert_eq!(undo_on(&Machine::new(&root, &NoTasks).unwrap()).len(), 2);
}

/// A folder of links that cannot be listed may hold one of the unit's.
#[test]
fn links_that_cannot_be_seen_stop_a_change_of_their_unit() {
    let tree = tree();
    tree.write("etc/systemd/system/a.target.wants/x", "");
    symlink("b.target.wants", tree.path().join("etc/systemd/system/b.target.wants")).unwrap();
    let change = Change::Unit { unit: "odd.service".into(), want: UnitState::Masked };
    let root = tree.root();
    let machine = Machine::new(&root, &NoTasks).unwrap();
    let error = machine.state(&change).unwrap_err().to_string();
    assert!(error.contains("b.target.wants"), "{error}");
}

#[test]
fn a_journal_of_another_machine_is_refused_and_a_copy_works() {
    let tree = applied();
    let root = tree.root();
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("saved");
    fs::copy(tree.path().join(FIRST), &copy).unwrap();
    tree.write("etc/machine-id", "two\n");
    let before = snapshot(tree.path());
    let machine = Machine::new(&root, &NoTasks).unwrap();
    let error = Journal::open(&machine, Some(&copy)).unwrap_err().to_string();
    assert!(error.contains("another machine"), "{error}");
    assert!(Journal::list(&machine).unwrap()[0].problem.as_ref().unwrap().contains("another"));
    assert_eq!(snapshot(tree.path()), before);
    tree.write("etc/machine-id", "one\n");
    let mut journal = Journal::open(&machine, Some(&copy)).unwrap();
    let undone = undo(&machine, &mut journal, &mut |_| {}).unwrap();
    assert!(undone.iter().all(|undone| undone.outcome == Outcome::Restored));
    drop(journal);
    // The copy says that it is done; the original finds everything as it was.
    assert!(Journal::open(&machine, Some(&copy)).unwrap().is_closed());
    assert_eq!(undo_on(&machine), [Outcome::WasBefore, Outcome::WasBefore]);
    let none = Journal::open(&machine, Some(Path::new("/no/such"))).unwrap_err();
    assert!(none.to_string().contains("/no/such: no journal"));
}

#[test]
fn a_second_process_is_told_the_holder_of_the_lock() {
    let tree = tree();
    let root = tree.root();
    let machine = Machine::new(&root, &NoTasks).unwrap();
    let mut first = Journal::begin(&machine, String::new(), &[]).unwrap();
    let options = ApplyOptions::default();
    apply(&machine, &mut first, &items(&changes()), options, &mut |_| {}).unwrap();
    let other = Machine::new(&root, &NoTasks).unwrap();
    let error = Journal::begin(&other, String::new(), &[]).unwrap_err().to_string();
    assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
    // To look is allowed; to undo is not.
    let mut same = Journal::open(&other, None).unwrap();
    assert_eq!(status(&other, &same).len(), 3);
    assert!(matches!(
        undo(&other, &mut same, &mut |_| {}),
        Err(UndoError::Journal(JournalError::Locked { .. }))
    ));
    assert_eq!(text(&tree, "proc/sys/a"), "7\n");
    drop(first);
    assert_eq!(undo(&other, &mut same, &mut |_| {}).unwrap().len(), 2);
    drop(same);
    let next = Journal::begin(&machine, String::new(), &[]).unwrap();
    assert_eq!(next.path(), format!("{FOLDER}/0002.journal"));
}

#[test]
fn a_machine_that_cannot_be_changed_is_an_error() {
    let tree = tree();
    let capture = crate::Capture::of_files([("/etc/machine-id", &b"x\n"[..])]);
    let captured = Root::captured(capture);
    let error = Machine::new(&captured, &NoTasks).unwrap_err();
    assert!(matches!(error, NotTunable::Capture));
    assert!(Machine::for_reading(&captured, &NoTasks).state(&value("/etc/machine-id", "")).is_ok());
    let root = tree.root();
    let (live, units) = (Root::live(), PlayedUnits::new(&tree, &[]));
    assert!(Machine::played(&live, &NoTasks, &units).is_err());
    // Files in the way of the folders.
    tree.write("var", "");
    let before = snapshot(tree.path());
    let refused =
        Machine::new(&root, &NoTasks).map_err(|error| error.to_string()).and_then(|machine| {
            match Journal::begin(&machine, String::new(), &[]) {
                Ok(_) => Ok(()),
                Err(error) => Err(error.to_string()),
            }
        });
    assert!(refused.unwrap_err().contains("/var"));
    assert_eq!(snapshot(tree.path()), before);
}

/// Sets or clears the flag that makes a folder immutable; false where that cannot be done here.
fn immutable(folder: &Path, on: bool) -> bool {
    use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
    let file = fs::File::open(folder).unwrap();
    let Ok(flags) = ioctl_getflags(&file) else { return false };
    let flags = if on { flags | IFlags::IMMUTABLE } else { flags - IFlags::IMMUTABLE };
    ioctl_setflags(&file, flags).is_ok()
}

#[test]
fn an_immutable_folder_is_found_before_anything_is_changed() {
    let tree = Tree::new(&[("proc/sys/a", "1\n"), ("etc/x/c", "c\n"), ("var/lib/x", "")]);
    let root = tree.root();
    let (etc, lib) = (tree.path().join("etc/x"), tree.path().join("var/lib"));
    if !immutable(&etc, true) {
        // No right to, or a file system without such flags: the others decide.
        return;
    }
    let machine = Machine::new(&root, &NoTasks).unwrap();
    let changes = [value("/proc/sys/a", "7"), file("/etc/x/new", Some(b""))];
    let error = apply_to(&machine, &changes).unwrap_err().to_string();
    immutable(&etc, false);
    assert!(error.contains("/etc/x: ") && error.contains("immutable"), "{error}");
    assert!(error.contains("nothing was changed"), "{error}");
    assert_eq!(text(&tree, "proc/sys/a"), "1\n");
    fs::remove_dir_all(tree.path().join("var/lib/rtproof")).unwrap();
    assert!(immutable(&lib, true));
    let error = Machine::new(&root, &NoTasks).unwrap_err().to_string();
    immutable(&lib, false);
    assert!(error.contains("/var/lib: immutable") && error.contains("make it writable"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_damage_makes_a_wrong_restore(
        cut in 0usize..4000,
        flips in prop::collection::vec((0usize..4000, 0u8..8), 0..3),
    ) {
        static WHOLE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
        let whole = WHOLE.get_or_init(|| {
            let tree = applied();
            let _ = try_undo(&tree).unwrap();
            fs::read(tree.path().join(FIRST)).unwrap()
        });
        let mut bytes = whole[..cut.min(whole.len())].to_vec();
        for (at, bit) in flips {
            let length = bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(at % length) {
                *byte ^= 1 << bit;
            }
        }
        // What is read is what was written: a prefix of whole lines, or nothing at all.
        if let Ok(script) = JournalScript::parse(&bytes) {
            let length = usize::try_from(script.length).unwrap();
            prop_assert_eq!(&bytes[..length], &whole[..length]);
            prop_assert!(!bytes[length..].contains(&b'\n') || bytes[length..].contains(&0));
        }
    }
}

/// Files of the marks.
fn marks(tree: &Tree) -> Vec<String> {
    let folder = fs::read_dir(tree.path().join("run/rtproof")).into_iter().flatten();
    let mut names: Vec<String> =
        folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn running() -> Tree {
    let tree = tree();
    fs::create_dir(tree.path().join("run")).unwrap();
    tree
}

#[test]
fn a_mark_says_what_is_applied_until_all_is_undone() {
    let tree = running();
    let root = tree.root();
    let machine = Machine::new(&root, &NoTasks).unwrap();
    let all = items(&changes());
    let mut journal = Journal::begin(&machine, "test".into(), &all).unwrap();
    let mark: serde_json::Value =
        serde_json::from_str(&text(&tree, "run/rtproof/0001.applied")).unwrap();
    let digest = text(&tree, FIRST)[..16].to_owned();
    assert_eq!((&mark["number"], &mark["changes"]), (&1.into(), &3.into()));
    assert_eq!(mark["digest"], digest);
    assert_eq!(text(&tree, "proc/sys/a"), "1\n", "it is there before the first change");
    apply(&machine, &mut journal, &all, ApplyOptions::default(), &mut |_| {}).unwrap();
    drop(journal);
    apply_to(&machine, &[value("/proc/sys/b", "3")]).unwrap();
    assert_eq!(marks(&tree), ["0001.applied", "0002.applied"]);
    undo_on(&machine);
    assert_eq!(marks(&tree), ["0001.applied"]);
    undo_on(&machine);
    assert!(!tree.path().join("run/rtproof").exists());
}

#[test]
fn without_its_journal_something_is_applied_all_the_same() {
    let tree = running();
    let root = tree.root();
    let machine = Machine::new(&root, &NoTasks).unwrap();
    apply_to(&machine, &changes()).unwrap();
    let saved = fs::read(tree.path().join(FIRST)).unwrap();
    let is_lost = |of: Result<Journal, JournalError>| {
        assert!(matches!(of, Err(JournalError::Lost(_))), "{of:?}");
    };
    fs::remove_dir_all(tree.path().join("var/lib/rtproof")).unwrap();
    is_lost(Journal::open(&machine, None));
    is_lost(Journal::open_number(&machine, 1));
    let list = Journal::list(&machine).unwrap();
    assert!(list.len() == 1 && list[0].is_missing && !list[0].closed, "{list:?}");
    // Another apply does not take its number, and its undo does not forget it.
    apply_to(&machine, &[value("/proc/sys/b", "3")]).unwrap();
    let second = tree.path().join("var/lib/rtproof/tune/0002.journal");
    assert_eq!(undo_on(&machine), [Outcome::Restored]);
    is_lost(Journal::open(&machine, None));
    // Nor is another journal under its name taken for it.
    fs::copy(second, tree.path().join(FIRST)).unwrap();
    is_lost(Journal::open(&machine, None));
    // A mark that cannot be read says as much as one that can.
    let mark = tree.path().join("run/rtproof/0001.applied");
    let whole = fs::read(&mark).unwrap();
    fs::write(&mark, "{\"digest\": \"\u{1b}[2J").unwrap();
    fs::remove_file(tree.path().join(FIRST)).unwrap();
    is_lost(Journal::open(&machine, None));
    fs::write(&mark, whole).unwrap();
    fs::write(tree.path().join(FIRST), saved).unwrap();
    assert_eq!(undo_on(&machine).len(), 2);
    assert_eq!((text(&tree, "proc/sys/a"), marks(&tree).len()), ("1\n".into(), 0));
}

#[test]
fn a_copy_that_is_undone_takes_the_mark_and_a_journal_without_a_mark_is_whole() {
    let tree = running();
    let root = tree.root();
    let machine = Machine::new(&root, &NoTasks).unwrap();
    apply_to(&machine, &changes()).unwrap();
    let copy = tree.path().join("copy");
    fs::rename(tree.path().join(FIRST), &copy).unwrap();
    undo(&machine, &mut Journal::open(&machine, Some(&copy)).unwrap(), &mut |_| {}).unwrap();
    assert_eq!(marks(&tree), [""; 0]);
    assert!(matches!(Journal::open(&machine, None), Err(JournalError::NoneOpen)));
    // A reboot empties /run; earlier versions made no marks.
    apply_to(&machine, &changes()).unwrap();
    fs::remove_dir_all(tree.path().join("run/rtproof")).unwrap();
    assert!(!Journal::list(&machine).unwrap()[0].is_missing);
    assert_eq!(undo_on(&machine).len(), 2);
}

/// At each change the folder of the journals goes, or the journal becomes another one.
#[test]
fn a_journal_that_vanishes_while_it_is_applied_takes_everything_back() {
    let folder = "var/lib/rtproof";
    let ways: [&dyn Fn(&Path); 4] = [
        &|top| fs::remove_dir_all(top.join(folder)).unwrap(),
        &|top| fs::rename(top.join(folder), top.join("var/lib/elsewhere")).unwrap(),
        &|top| fs::remove_file(top.join(FIRST)).unwrap(),
        &|top| fs::write(top.join(FIRST), fs::read(top.join("etc/c")).unwrap()).unwrap(),
    ];
    for (way, take) in ways.iter().enumerate() {
        for at in [0, 2] {
            let tree = running();
            let root = tree.root();
            let before = snapshot(tree.path());
            let machine = Machine::new(&root, &NoTasks).unwrap();
            let all = items(&changes());
            let mut journal = Journal::begin(&machine, "test".into(), &all).unwrap();
            let options = ApplyOptions { keep_going: true };
            let applied = apply(&machine, &mut journal, &all, options, &mut |event| {
                if matches!(event, ApplyEvent::Begin { n, .. } if n == at) {
                    take(tree.path());
                }
            });
            let error = applied.expect_err("not done");
            assert!(matches!(error, ApplyError::Journal { .. }), "{error}");
            assert!(error.to_string().contains("everything was taken back"), "{error}");
            assert_eq!(difference(&before, &snapshot(tree.path())), [""; 0], "{way} at {at}");
        }
    }
}
