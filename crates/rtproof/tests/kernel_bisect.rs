//! `rtproof kernel bisect` with real make, git and QEMU, and a small source of the test's own: what
//! it "builds" are made-up kernels that answer as a guest does. A real kernel is bisected outside
//! of the lab's guests (lab/src/outside.rs).

use std::{fs, path::Path, process::Output};

use crate::support::{
    self, ACCEPTED, FAILED, REFUSED, USAGE, expect_code, folder,
    made_up::{Then, has_qemu, kernel},
    run,
    small_linux::{self, HEAD, has_programs, sh},
    start, stderr, wait_for,
};

/// Whether all programs are here.
fn is_able() -> bool {
    has_programs() && has_qemu()
}

/// A guest that says that its command ended with a code, or panics while it runs.
fn image(at: &Path, name: &str, exit: Option<i32>) {
    let ran = exit.map(|exit| {
        format!("[{{\"name\":\"command\",\"exit\":{exit},\"why\":null,\"seconds\":1.0}}]")
    });
    let text = match ran {
        None => "GUEST-INIT 6.1.0-small\r\nGUEST-STEP command\r\nKernel panic - not syncing: x\r\n"
            .to_owned(),
        Some(ran) => {
            let script = format!(
                "printf '%s steps.json\\n%s' {} '{ran}' | gzip | base64 -w 76 | sed 's/$/\\r/'",
                ran.len()
            );
            let lines = sh(at, &script);
            format!(
                "GUEST-INIT 6.1.0-small\r\nGUEST-FILES-BEGIN\r\n{lines}\r\nGUEST-FILES-END\r\n\
                 GUEST-RC=0\r\n"
            )
        }
    };
    fs::create_dir_all(at.join("images")).expect("a folder");
    fs::write(at.join("images").join(name), kernel(&text, Then::Reset)).expect("an image");
}

/// The repository, whose kernels are guests.
fn repository(at: &Path, commits: usize, bad: usize, broken: &[usize]) {
    image(at, "good", Some(0));
    image(at, "bad", Some(1));
    image(at, "panic", None);
    small_linux::repository(at, commits, bad, broken);
}

fn words<'a>(ends: [&'a str; 4], more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["kernel", "bisect", "--source", "linux", "--json", "out"];
    words.extend(ends);
    words.extend(["--set", "IMAGES=../../images", "--set", "GUILTY="]);
    words.extend(more.iter().filter(|word| !word.is_empty()));
    words
}

fn commits<'a>(good: &'a str, bad: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut all = words(["--good", good, "--bad", bad], &["--config", "config"]);
    all.extend(more);
    if !more.contains(&"--") {
        all.extend(["--set", "PAUSE=0", "--", "true"]);
    }
    all
}

fn json(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)))
}

/// Content of a repository without access times.
fn listing(at: &Path) -> String {
    sh(
        at,
        "cd linux; find . -type f -exec sha256sum {} + | sort; git for-each-ref; git worktree list",
    )
}

#[test]
fn two_kills_lose_nothing_and_the_first_bad_commit_is_found() {
    if !is_able() {
        return;
    }
    let folder = folder();
    let at = folder.path();
    // 40 commits; git tries 19, 20 and their neighbours first.
    repository(at, 40, 24, &[19, 20, 21, 30]);
    let before = listing(at);
    let words = commits("c0", "c39", &["--set", "PAUSE=0.4", "--", "true"]);
    let steps = || -> usize {
        let text = fs::read(at.join("out/bisect.json")).unwrap_or_default();
        let state: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
        state["steps"].as_array().map_or(0, Vec::len)
    };
    let mut kept = String::new();
    for least in [3, 5] {
        let mut child = start(at, &words);
        wait_for("steps", 120, || steps() >= least);
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        kept = fs::read_to_string(at.join("out/bisect.json")).expect("the state");
    }
    let output = run(at, &words);
    expect_code(&output, ACCEPTED);
    let found = json(&output);
    assert_eq!(found["suspects"].as_array().map(Vec::len), Some(1), "{found}");
    let culprit = &found["suspects"][0];
    assert_eq!((&culprit["subject"], &culprit["outcome"]), (&"change 24".into(), &"bad".into()));
    assert_eq!(culprit["commit"].as_str(), Some(sh(at, "git -C linux rev-parse c24").as_str()));
    assert!(culprit["stat"].to_string().contains("state"), "{culprit}");
    // Steps before the second kill are kept word for word, with their logs.
    let state: serde_json::Value = serde_json::from_str(&kept).expect("JSON");
    let done = state["steps"].as_array().expect("steps");
    let all = found["steps"].as_array().expect("steps");
    assert!(done.len() >= 5 && all.len() > done.len(), "{} {}", done.len(), all.len());
    for (was, is) in done.iter().zip(all).skip(2) {
        assert_eq!(was, is);
    }
    let skipped = all.iter().filter(|step| step["outcome"] == "skipped").collect::<Vec<_>>();
    assert!(!skipped.is_empty(), "{found}");
    for step in &skipped {
        assert!(step["why"].as_str().expect("why").contains("error: broken"), "{step}");
    }
    let step = |side: usize| &all[found["evidence"][side].as_u64().expect("a number") as usize - 1];
    assert_eq!((&step(0)["title"], &step(1)["title"]), (&"change 23".into(), &"change 24".into()));
    assert!(at.join("out/steps/001/build.log").exists(), "logs stay");
    assert!(fs::read_to_string(at.join("out/bisect.html")).expect("a page").contains("change 24"));
    assert_eq!(listing(at), before, "the user's repository is as it was");
    // Once more: the answer, and no step.
    let again = run(at, &words);
    assert_eq!(json(&again)["steps"], found["steps"]);
    // Another question is not this bisection's.
    let other = run(at, &commits("c0", "c38", &[]));
    expect_code(&other, FAILED);
    let said = stderr(&other);
    assert!(said.contains("bad end: ") && said.contains("PAUSE=0.4"), "{said}");
}

#[test]
fn commits_that_do_not_build_near_the_culprit_become_candidates() {
    if !is_able() {
        return;
    }
    let folder = folder();
    let at = folder.path();
    repository(at, 16, 8, &[7, 8, 9]);
    let output = run(at, &commits("c0", "c15", &[]));
    expect_code(&output, REFUSED);
    let found = json(&output);
    assert_eq!(found["is_found"], false);
    let mut subjects: Vec<&str> = found["suspects"]
        .as_array()
        .expect("suspects")
        .iter()
        .map(|of| of["subject"].as_str().expect("a subject"))
        .collect();
    subjects.sort_unstable();
    assert_eq!(subjects, ["change 10", "change 7", "change 8", "change 9"]);
}

#[test]
fn ends_that_are_not_as_stated_end_it_before_it_begins() {
    if !is_able() {
        return;
    }
    let folder = folder();
    let at = folder.path();
    repository(at, 8, 4, &[1]);
    let refused = |words: &[&str]| {
        let output = run(at, words);
        expect_code(&output, FAILED);
        let _ = fs::remove_dir_all(at.join("out"));
        stderr(&output)
    };
    let said = refused(&commits("c5", "c7", &[]));
    assert!(said.contains("the good end is bad: exit code 1"), "{said}");
    let said = refused(&commits("c0", "c2", &[]));
    assert!(said.contains("the bad end is good: exit code 0"), "{said}");
    let said = refused(&commits("c1", "c7", &[]));
    assert!(said.contains("the good end") && said.contains("error: broken"), "{said}");
    assert!(refused(&commits("c7", "c0", &[])).contains("older than the good one"));
    assert!(refused(&commits("c3", "c3", &[])).contains("the same commit"));
    let none = run(at, &commits("c0", "none", &[]));
    assert!(stderr(&none).contains("no commit \"none\""), "{}", stderr(&none));
    assert!(!at.join("out").exists(), "nothing was begun");
    fs::create_dir(at.join("out")).expect("a folder");
    fs::write(at.join("out/mine"), "x").expect("a file");
    let said = refused(&commits("c0", "c7", &[]));
    assert!(said.contains("holds \"mine\" and no bisection"), "{said}");
    for usage in [&["--good", "c0"][..], &["--good", "c0", "--bad", "c1", "--check", "no-such"]] {
        let mut words = vec!["kernel", "bisect", "--source", "linux", "--config", "config", "out"];
        words.extend(usage);
        assert_eq!(run(at, &words).status.code(), Some(USAGE), "{words:?}");
    }
}

#[test]
fn a_panic_is_the_command_s_answer_and_one_works_at_a_time() {
    if !is_able() {
        return;
    }
    let folder = folder();
    let at = folder.path();
    repository(at, 6, 3, &[]);
    fs::copy(at.join("images/panic"), at.join("images/bad")).expect("an image");
    let words = commits("c0", "c5", &["--set", "PAUSE=2", "--", "true"]);
    let mut child = start(at, &words);
    wait_for("the state", 60, || at.join("out/bisect.json").exists());
    let second = run(at, &words);
    expect_code(&second, FAILED);
    assert!(stderr(&second).contains("another bisection works here"), "{}", stderr(&second));
    // Ctrl-C names the way on, and records nothing of what it cut off.
    support::kill("INT", child.id());
    assert_eq!(child.wait().expect("it ends").code(), Some(FAILED));
    let output = run(at, &words);
    expect_code(&output, ACCEPTED);
    let found = json(&output);
    assert_eq!(found["suspects"][0]["subject"], "change 3");
    assert!(found["steps"][1]["why"].to_string().contains("panicked"), "{found}");
    assert!(found["notes"].to_string().contains("panicked"), "{found}");
}

/// Bisects two configurations that differ in these options and those named; the guilty ones.
fn options(differ: &str, guilty: &str, more: &[&str]) -> (Output, serde_json::Value) {
    let folder = folder();
    let at = folder.path();
    repository(at, 1, 0, &[]);
    let many: String = (0..22).map(|number| format!("CONFIG_O{number}=y\n")).collect();
    let named: String = differ.split(' ').map(|name| format!("CONFIG_{name}=y\n")).collect();
    fs::write(at.join("bad"), format!("{HEAD}{many}{named}")).expect("a file");
    let guilty = format!("GUILTY={guilty}");
    let mut words = words(["--good-config", "config", "--bad-config", "bad"], more);
    let old = words.iter().position(|word| *word == "GUILTY=").expect("it is there");
    words[old] = &guilty;
    let images = format!("IMAGES={}", at.join("images").display());
    let old = words.iter().position(|word| word.starts_with("IMAGES=")).expect("it is there");
    words[old] = &images;
    words.extend(["--set", "PAUSE=0", "--", "true"]);
    let output = run(at, &words);
    let found = json(&output);
    (output, found)
}

fn named(found: &serde_json::Value) -> Vec<&str> {
    let all = found["suspects"].as_array().expect("suspects");
    all.iter().map(|of| of["option"]["name"].as_str().expect("a name")).collect()
}

#[test]
fn one_option_of_many_is_found_and_its_consequences_are_separated() {
    if !is_able() {
        return;
    }
    let (output, found) = options("MASTER SLAVE", "SLAVE", &[]);
    expect_code(&output, ACCEPTED);
    assert_eq!(named(&found), ["MASTER"]);
    let changed = found["changed"].as_array().expect("options");
    assert_eq!((changed.len(), &changed[0]["name"]), (1, &"SLAVE".into()), "{found}");
}

#[test]
fn a_guilty_pair_and_what_an_option_depends_on_are_found() {
    if !is_able() {
        return;
    }
    let (output, found) = options("X", "O3 O17", &[]);
    expect_code(&output, ACCEPTED);
    assert_eq!(named(&found), ["O17", "O3"]);
    // Asked for alone it is dropped: both are needed.
    let (output, found) = options("PARENT ORPHAN", "ORPHAN", &[]);
    expect_code(&output, ACCEPTED);
    assert_eq!(named(&found), ["ORPHAN", "PARENT"]);
}

#[test]
fn a_set_that_cannot_be_reduced_is_reported_as_a_set() {
    if !is_able() {
        return;
    }
    let (output, found) = options("DOOM DEED", "DOOM", &[]);
    expect_code(&output, REFUSED);
    assert_eq!(named(&found), ["DEED", "DOOM"]);
    let needed: Vec<_> =
        found["suspects"].as_array().expect("two").iter().map(|of| &of["is_needed"]).collect();
    assert_eq!(needed, [&serde_json::Value::Null, &true.into()]);
}
