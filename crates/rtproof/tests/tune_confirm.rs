//! `tune apply --confirm`: everything is undone when no confirmation comes, whatever became of
//! the tool.

use std::{path::Path, time::Duration};

use crate::support::{
    self, ACCEPTED, FAILED, expect_code, kill, small::Small, start, stderr, stdout, wait_for,
};

const APPLY: [&str; 6] = ["apply", "ksm,cpufreq-governor", "--cpus", "2-3", "--yes", "--confirm"];

fn apply(tree: &Small, within: &str) {
    let output = tree.tune(&[&APPLY[..], &[within]].concat());
    expect_code(&output, ACCEPTED);
    assert!(stderr(&output).contains("rtproof tune confirm"), "{}", stderr(&output));
}

/// Marks of journals that wait.
fn marks(tree: &Small) -> usize {
    let folder = tree.file("/var/lib/rtproof/tune");
    let of = |ending| if folder.is_dir() { support::files(&folder, ending).len() } else { 0 };
    of(".unconfirmed") + of(".expired")
}

/// RollbackTimers of a machine that run.
fn guardians(root: &Path) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").expect("/proc");
    let lines = entries.filter_map(|entry| {
        let cmdline = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&cmdline).replace('\0', " "))
    });
    let root = root.to_string_lossy();
    lines.filter(|line| line.contains("tune guard") && line.contains(&*root)).collect()
}

#[test]
fn an_unconfirmed_trial_is_undone() {
    let tree = Small::new();
    let before = tree.all();
    apply(&tree, "1s");
    wait_for("the guardian", 20, || tree.all() == before && marks(&tree) == 0);
    let late = tree.tune(&["confirm"]);
    expect_code(&late, FAILED);
    assert!(stderr(&late).contains("nothing waits for a confirmation"), "{}", stderr(&late));
    wait_for("its end", 20, || guardians(tree.path()).is_empty());
}

#[test]
fn a_confirmed_journal_stays() {
    let tree = Small::new();
    apply(&tree, "600s");
    assert_eq!(guardians(tree.path()).len(), 1);
    let status = tree.tune(&["status"]);
    assert!(stdout(&status).contains("not confirmed yet"), "{}", stdout(&status));
    expect_code(&tree.tune(&["confirm"]), ACCEPTED);
    wait_for("the guardian's end", 20, || guardians(tree.path()).is_empty());
    assert_eq!(tree.governor(2), "performance");
    expect_code(&tree.tune(&["status"]), ACCEPTED);
    expect_code(&tree.tune(&["undo"]), ACCEPTED);
}

#[test]
fn an_undo_before_ends_the_guardian() {
    let tree = Small::new();
    let before = tree.all();
    apply(&tree, "600s");
    expect_code(&tree.tune(&["undo"]), ACCEPTED);
    assert_eq!(tree.all(), before);
    wait_for("the guardian's end", 20, || guardians(tree.path()).is_empty());
    assert_eq!(marks(&tree), 0);
}

#[test]
fn a_copy_called_like_another_journal_does_not_end_its_guardian() {
    let tree = Small::new();
    expect_code(&tree.tune(&["apply", "stat-interval", "--yes"]), ACCEPTED);
    let elsewhere = support::folder();
    let copy = elsewhere.path().join("0002.journal");
    std::fs::copy(tree.journal(), &copy).unwrap();
    apply(&tree, "600s");
    assert_eq!(marks(&tree), 1);
    expect_code(&tree.tune(&["undo", "--journal", copy.to_str().unwrap()]), ACCEPTED);
    assert_eq!((marks(&tree), guardians(tree.path()).len()), (1, 1));
    expect_code(&tree.tune(&["confirm"]), ACCEPTED);
    wait_for("the guardian's end", 20, || guardians(tree.path()).is_empty());
}

#[test]
fn after_a_reboot_status_reports_the_unconfirmed_journal() {
    let tree = Small::new();
    apply(&tree, "600s");
    let boot_id = "/proc/sys/kernel/random/boot_id";
    tree.write(boot_id, "99999999-2222-4333-8444-555555555555\n");
    let status = tree.tune(&["status"]);
    assert!(stdout(&status).contains("who waited went with the reboot"), "{}", stdout(&status));
    expect_code(&tree.tune(&["confirm"]), ACCEPTED);
    wait_for("the guardian's end", 20, || guardians(tree.path()).is_empty());
}

#[test]
fn the_tool_is_killed() {
    // At many moments: before the first write, between two, after the last.
    for delay_ms in [0, 5, 10, 20, 40, 80, 160] {
        let tree = Small::new();
        let before = tree.all();
        let root = tree.path().to_str().unwrap();
        let args = [&["tune"][..], &APPLY, &["1s", "--root", root]].concat();
        let mut tool = start(tree.path(), &args);
        // The mark is there before anything is changed.
        let marked = || marks(&tree) > 0 || tree.all() != before;
        wait_for("the mark", 60, marked);
        std::thread::sleep(Duration::from_millis(delay_ms));
        kill("KILL", tool.id());
        tool.wait().unwrap();
        wait_for("the guardian", 60, || {
            tree.all() == before && (marks(&tree) == 0 || guardians(tree.path()).is_empty())
        });
        let open = tree.tune(&["undo", "--all"]);
        expect_code(&open, ACCEPTED);
        assert_eq!(tree.all(), before, "{delay_ms} ms");
    }
}

#[test]
fn a_stopped_guardian_is_no_rollback() {
    let tree = Small::new();
    let before = tree.all();
    let guarded = || -> bool {
        let status = tree.tune(&["status", "--json"]);
        let status: serde_json::Value = serde_json::from_str(&stdout(&status)).expect("JSON");
        status["journals"][0]["guarded"].as_bool().expect("a boolean")
    };
    apply(&tree, "2s");
    let root = tree.path().to_string_lossy().into_owned();
    let ours = support::processes(&root);
    let pid = support::processes("guard").into_iter().find(|pid| ours.contains(pid));
    let pid = pid.expect("a guardian");
    assert!(guarded());
    kill("STOP", pid);
    std::thread::sleep(Duration::from_millis(2500));
    assert!(!guarded(), "its time is up, and nothing is taken back");
    assert_ne!(tree.all(), before);
    kill("CONT", pid);
    wait_for("the guardian", 20, || tree.all() == before && marks(&tree) == 0);
}

/// Makes the folder of the journals vanish and come back: a file system that is not mounted.
fn hide(tree: &Small, hidden: bool) {
    let (there, gone) = (tree.file("/var/lib/rtproof"), tree.file("/var/lib/elsewhere"));
    let (from, to) = if hidden { (there, gone) } else { (gone, there) };
    std::fs::rename(from, to).unwrap();
}

#[test]
fn a_folder_that_is_gone_confirms_nothing() {
    let tree = Small::new();
    let before = tree.all();
    apply(&tree, "1s");
    hide(&tree, true);
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(guardians(tree.path()).len(), 1, "it waits for the folder");
    hide(&tree, false);
    wait_for("the guardian", 20, || tree.all() == before && marks(&tree) == 0);
    wait_for("its end", 20, || guardians(tree.path()).is_empty());
}

/// A disk with an error is made read-only by its file system: what was changed goes back all the
/// same.
#[test]
fn a_guardian_needs_to_write_nothing() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("left out: mounts need root");
        return;
    }
    let tree = Small::new();
    let before = tree.all();
    let root = tree.path().display();
    let script = format!(
        "set -e; mkdir {root}/var; mount --bind {root}/var {root}/var; \
         {binary} tune {apply} 1s --root {root}; \
         mount -o remount,ro,bind {root}/var; if touch {root}/var/x; then exit 9; fi; \
         for i in $(seq 200); do sleep 0.1; grep -q powersave {governor} && break; done; sleep 2; \
         {binary} tune status --root {root}",
        binary = support::binary(),
        apply = APPLY.join(" "),
        governor = tree.file("/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor").display(),
    );
    let mut command = std::process::Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).current_dir(tree.path());
    let output = command.output().expect("unshare runs");
    assert_eq!(tree.all(), before, "{}{}", stdout(&output), stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("all is as it was before"), "{text}");
    assert!(text.contains("powersave as before, not"), "{text}");
    wait_for("its end", 20, || guardians(tree.path()).is_empty());
    // With the disk writable again.
    expect_code(&tree.tune(&["undo"]), ACCEPTED);
    assert_eq!((tree.all(), marks(&tree)), (before, 0));
}

#[test]
fn a_mark_that_was_removed_confirms_nothing() {
    let tree = Small::new();
    let before = tree.all();
    apply(&tree, "1s");
    std::fs::remove_file(tree.file("/var/lib/rtproof/tune/0001.unconfirmed")).unwrap();
    wait_for("the guardian", 20, || tree.all() == before);
    wait_for("its end", 20, || guardians(tree.path()).is_empty());
}

#[test]
fn a_guardian_that_was_killed_is_missed() {
    let tree = Small::new();
    apply(&tree, "600s");
    let status = |tree: &Small| stdout(&tree.tune(&["status"]));
    assert!(status(&tree).contains("or it is taken back"), "{}", status(&tree));
    let pattern = format!("tune guard.*{}", tree.path().display());
    let killed = std::process::Command::new("pkill").args(["-KILL", "-f", &pattern]).status();
    assert!(killed.unwrap().success());
    wait_for("its end", 20, || guardians(tree.path()).is_empty());
    let text = status(&tree);
    assert!(text.contains("nobody is left to take it back"), "{text}");
    let json = stdout(&tree.tune(&["status", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let waits = |key: &str| json["journals"][0][key].as_bool();
    assert_eq!((waits("unconfirmed"), waits("guarded")), (Some(true), Some(false)));
    expect_code(&tree.tune(&["undo"]), ACCEPTED);
}
