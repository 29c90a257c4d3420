//! Whoever knows less never gets a better answer: each path of each captured machine is refused,
//! left out and cut off in turn, and no check says "good" that did not say so before.

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
    let (rt_cpus, proposed) = Intent::default_rt_cpus(facts);
    let online = facts.cpus.online.value().cloned().unwrap_or_default();
    Intent {
        housekeeping: online.difference(&rt_cpus),
        rt_cpus,
        proposed,
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

/// What may happen to a file on its way here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    Denied,
    Absent,
    /// The second half is gone.
    Cut,
}

impl Loss {
    /// Whether something of it could be taken away.
    fn of(self, capture: &mut Capture, path: &str) -> bool {
        match self {
            Self::Denied => capture.set_denied(path),
            Self::Absent => capture.set_absent(path),
            // Nothing says how long a list of mounts is.
            Self::Cut if path.ends_with("/mounts") => return false,
            Self::Cut => {
                let root = Root::captured(capture.clone());
                let Some(bytes) = root.read_bytes(path).value().cloned() else { return false };
                let lines: Vec<&[u8]> = bytes.split_inclusive(|&byte| byte == b'\n').collect();
                if lines.len() < 2 {
                    return false;
                }
                capture.set_file(path, &lines[..lines.len() / 2].concat());
            }
        }
        true
    }
}

/// What became better or worse on a machine when one path of it was lost, and how many were
/// tried: every ninth or 27th of those that differ by more than a number, others on each machine;
/// every third with FULL=1.
fn wrong(loss: Loss, number: usize, name: &str, capture: &Capture) -> (usize, Vec<String>) {
    let whole = facts(capture);
    let intent = intent(&whole);
    let before = judge_all(&whole, &intent);
    let alike = |path: &str| path.replace(|c: char| c.is_ascii_digit(), "");
    let paths: BTreeMap<String, String> =
        capture.paths().map(|path| (alike(path), path.to_owned())).collect();
    let step = match (is_full(), loss) {
        (true, _) | (_, Loss::Cut) => 3,
        (false, Loss::Denied) => 9,
        (false, _) => 27,
    };
    let (mut tried, mut wrong) = (0, Vec::new());
    for path in paths.into_values().skip(number % step).step_by(step) {
        let mut less = capture.clone();
        if !loss.of(&mut less, &path) {
            continue;
        }
        tried += 1;
        for (was, is) in before.iter().zip(judge_all(&facts(&less), &intent)) {
            let is_wrong = match loss {
                Loss::Denied => is_better(was.status, is.status) || is_worse(was.status, is.status),
                _ => {
                    is.status == Status::Good
                        && !matches!(was.status, Status::Good | Status::NotApplicable)
                }
            };
            if is_wrong {
                wrong.push(format!(
                    "{name}, {loss:?} {path}: {}: {:?} -> {:?}: {}",
                    is.check, was.status, is.status, is.summary
                ));
            }
        }
    }
    (tried, wrong)
}

/// How many paths were tried.
fn nothing_gets_better(loss: Loss) -> usize {
    let machines: Vec<_> = machines().into_iter().enumerate().collect();
    let half = |half: usize| {
        let mine = machines.iter().skip(half).step_by(2);
        mine.map(|(number, (name, capture))| wrong(loss, *number, name, capture))
            .collect::<Vec<_>>()
    };
    let all: Vec<_> = thread::scope(|scope| {
        let other = scope.spawn(|| half(1));
        let mut all = half(0);
        all.extend(other.join().expect("it ends"));
        all
    });
    let tried: usize = all.iter().map(|(tried, _)| tried).sum();
    let wrong: Vec<String> = all.into_iter().flat_map(|(_, wrong)| wrong).collect();
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
    tried
}

#[test]
fn no_answer_gets_better_for_what_could_not_be_read() {
    let tried = nothing_gets_better(Loss::Denied);
    assert!(tried > if is_full() { 500 } else { 150 }, "{tried} paths");
}

#[test]
fn no_answer_becomes_good_for_what_is_missing() {
    assert!(nothing_gets_better(Loss::Absent) > 50);
}

#[test]
fn no_answer_becomes_good_for_what_is_cut_off() {
    assert!(nothing_gets_better(Loss::Cut) > 20);
}
