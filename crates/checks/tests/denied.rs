//! Whoever knows less never gets a better answer: each path of each captured machine is refused in
//! turn, and no check says "good" or "not applicable" that did not say so before.

use std::{collections::BTreeMap, fs, path::Path, thread};

use rtproof_checks::{Intent, Profile, Status, judge_all};
use rtproof_host::{Capture, Facts, Root};

pub(crate) fn facts(capture: &Capture) -> Facts {
    Facts::read(&Root::captured(capture.clone()))
}

/// Whether a third is tried in place of a ninth.
pub(crate) fn is_full() -> bool {
    std::env::var_os("FULL").is_some_and(|value| value == "1")
}

/// Machines to try, with what they are called.
pub(crate) fn machines() -> Vec<(String, Capture)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/machines");
    let files =
        fs::read_dir(folder).expect("the machines").map(|file| file.expect("a file").path());
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let mut all: Vec<_> = files.map(|path| (name(&path), path)).collect();
    all.retain(|(name, _)| name.ends_with(".txt") && !name.ends_with(".check.txt"));
    all.sort();
    let read = |path| Capture::parse(&fs::read(path).expect("a capture")).expect("a capture");
    all.into_iter().map(|(name, path)| (name, read(path))).collect()
}

/// What the real-time CPUs of a machine are to be does not change with what can be read.
pub(crate) fn intent(facts: &Facts) -> Intent {
    let rt_cpus = Intent::default_rt_cpus(facts);
    let online = facts.cpus.online.value().cloned().unwrap_or_default();
    Intent {
        housekeeping: online.difference(&rt_cpus),
        rt_cpus,
        priority: 80,
        period_ns: 1_000_000,
        budget_ns: None,
        profile: Profile::named("periodic").expect("it exists"),
        skip: BTreeMap::new(),
        user: None,
    }
}

/// A found or unknown status that is lost.
const fn is_better(was: Status, is: Status) -> bool {
    matches!(was, Status::Bad | Status::Doubtful | Status::Unknown)
        && matches!(is, Status::Good | Status::NotApplicable)
        || matches!((was, is), (Status::Good, Status::NotApplicable))
}

/// Whether a denied file turned a good status into a bad one.
const fn is_worse(was: Status, is: Status) -> bool {
    matches!((was, is), (Status::Good | Status::NotApplicable, Status::Bad))
}

/// What became better or worse on a machine when one path of it was refused, and how many were
/// tried: every ninth of those that differ by more than a number, others on each machine; every
/// third with FULL=1.
fn wrong(number: usize, name: &str, capture: &Capture) -> (usize, Vec<String>) {
    let whole = facts(capture);
    let intent = intent(&whole);
    let before = judge_all(&whole, &intent);
    let alike = |path: &str| path.replace(|c: char| c.is_ascii_digit(), "");
    let paths: BTreeMap<String, String> =
        capture.paths().map(|path| (alike(path), path.to_owned())).collect();
    let step = if is_full() { 3 } else { 9 };
    let (mut tried, mut wrong) = (0, Vec::new());
    for path in paths.into_values().skip(number % step).step_by(step) {
        let mut less = capture.clone();
        less.set_denied(&path);
        tried += 1;
        for (was, is) in before.iter().zip(judge_all(&facts(&less), &intent)) {
            if is_better(was.status, is.status) || is_worse(was.status, is.status) {
                wrong.push(format!(
                    "{name} without {path}: {}: {:?} -> {:?}: {}",
                    is.check, was.status, is.status, is.summary
                ));
            }
        }
    }
    (tried, wrong)
}

#[test]
fn no_answer_gets_better_for_what_could_not_be_read() {
    let machines: Vec<_> = machines().into_iter().enumerate().collect();
    let half = |half: usize| {
        let mine = machines.iter().skip(half).step_by(2);
        mine.map(|(number, (name, capture))| wrong(*number, name, capture)).collect::<Vec<_>>()
    };
    let all: Vec<_> = thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let mut all = half(0);
        all.extend(other.join().expect("it ends"));
        all
    });
    let tried: usize = all.iter().map(|(tried, _)| tried).sum();
    let wrong: Vec<String> = all.into_iter().flat_map(|(_, wrong)| wrong).collect();
    assert!(tried > if is_full() { 500 } else { 150 }, "{tried} paths");
    println!("{tried} paths refused");
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
}
