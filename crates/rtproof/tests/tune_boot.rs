//! `tune trial`, `verify` and `confirm` on a machine in a folder that boots with GRUB.

use std::process::Output;

use crate::support::{
    self, ACCEPTED, FAILED, NOT_PROVEN, REFUSED, expect_code, small::Small, stderr, stdout,
};
use serde_json::Value;

const WORDS: [&str; 2] = ["isolcpus=managed_irq,domain,2-3", "nohz_full=2-3"];

fn trial(tree: &Small) -> Output {
    tree.tune(&[&["trial", "--yes"][..], &WORDS].concat())
}

/// The boot of the entry, as far as a folder can boot.
fn boot_trial(tree: &Small) {
    let words = WORDS.join(" ");
    let line =
        format!("BOOT_IMAGE=/boot/vmlinuz-6.12.5-rt root=/dev/sda1 ro quiet {words} panic=10\n");
    tree.write("/proc/cmdline", &line);
    // GRUB forgets the choice before it starts the kernel.
    let forgotten =
        tree.read("/boot/grub/grubenv").replace("next_entry=rtproof-real-time", "next_entry=");
    let short = 1024 - forgotten.len();
    tree.write("/boot/grub/grubenv", &(forgotten + &"#".repeat(short)));
    tree.write("/proc/sys/kernel/random/boot_id", "22222222-2222-4333-8444-555555555555\n");
    tree.write("/proc/sys/kernel/panic", "10\n");
    tree.write("/sys/devices/system/cpu/isolated", "2-3\n");
    tree.write("/sys/devices/system/cpu/nohz_full", "2-3\n");
}

fn effects(output: &Output) -> Vec<(String, String)> {
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let parameters = found["parameters"].as_array().expect("parameters").clone();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    parameters.iter().map(|it| (text(&it["parameter"]), text(&it["effect"]))).collect()
}

#[test]
fn tried_verified_kept_and_removed() {
    let tree = Small::with_grub();
    let before = tree.all();
    let output = trial(&tree);
    expect_code(&output, ACCEPTED);
    let text = stdout(&output);
    for part in ["+ root=/dev/sda1 ro quiet", "nohz_full=2-3", "rtproof tune verify"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let menu = "/boot/grub/grub.cfg";
    assert_eq!(Some(&tree.read(menu).into_bytes()), before.get(&tree.file(menu)), "not ours");
    let status = tree.tune(&["status"]);
    assert!(stdout(&status).contains("on trial: the next boot is it"), "{}", stdout(&status));

    // Not booted yet: nothing can be confirmed.
    let early = tree.tune(&["confirm"]);
    expect_code(&early, FAILED);
    assert!(stderr(&early).contains("this boot is not the trial"), "{}", stderr(&early));
    let missing = tree.tune(&["verify", "--json"]);
    expect_code(&missing, REFUSED);
    assert!(effects(&missing).iter().all(|(_, effect)| effect == "missing"), "{missing:?}");

    boot_trial(&tree);
    let verified = tree.tune(&["verify", "--json"]);
    expect_code(&verified, ACCEPTED);
    let effects = effects(&verified);
    assert_eq!(effects.len(), 3, "{effects:?}");
    assert!(effects.iter().all(|(_, effect)| effect == "effective"), "{effects:?}");
    let root = tree.path().to_str().unwrap();
    let persists = || {
        let args = ["check", "--only", "boot-persistence", "--root", root, "--json"];
        let output = support::run(tree.path(), &args);
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        let finding = &document["findings"][0];
        (finding["status"].to_string(), finding["summary"].to_string())
    };
    let (status, summary) = persists();
    assert!(status != "\"good\"" && summary.contains("not in /boot/grub/grub.cfg"), "{summary}");
    let kept = tree.tune(&["confirm"]);
    expect_code(&kept, ACCEPTED);
    let (status, summary) = persists();
    assert_eq!(status, "\"good\"", "the entry that boots next has them: {summary}");
    // Another try would change what boots from now on.
    let there = tree.all();
    let again = tree.tune(&["trial", "skew_tick=1", "--yes"]);
    expect_code(&again, FAILED);
    assert!(stderr(&again).contains("is the default of GRUB 2"), "{}", stderr(&again));
    assert_eq!(tree.all(), there);
    let status = tree.tune(&["status"]);
    expect_code(&status, ACCEPTED);
    let text = stdout(&status);
    for part in ["the default, and running", "changed by us", "used up"] {
        assert!(text.contains(part), "{part}: {text}");
    }

    expect_code(&tree.tune(&["undo", "--all"]), ACCEPTED);
    let after = tree.all();
    for (path, bytes) in before.iter().filter(|(path, _)| {
        let path = path.to_string_lossy();
        path.contains("/boot/") || path.contains("/etc/")
    }) {
        assert_eq!(after.get(path), Some(bytes), "{}", path.display());
    }
    let count = |all: &std::collections::BTreeMap<std::path::PathBuf, Vec<u8>>| {
        all.keys().filter(|path| path.starts_with(tree.file("/boot"))).count()
    };
    assert_eq!(count(&after), count(&before), "nothing of ours is left in /boot");
}

#[test]
fn a_confirmation_of_changes_does_not_wait_for_the_boot_entry() {
    let tree = Small::with_grub();
    expect_code(&trial(&tree), ACCEPTED);
    expect_code(&tree.tune(&["apply", "ksm", "--yes", "--confirm", "600s"]), ACCEPTED);
    let kept = tree.tune(&["confirm"]);
    expect_code(&kept, ACCEPTED);
    assert!(stdout(&kept).contains("journal 2: kept"), "{}", stdout(&kept));
    assert!(stderr(&kept).contains("the boot entry is not confirmed"), "{}", stderr(&kept));
    // Alone it is an error.
    expect_code(&tree.tune(&["confirm"]), FAILED);
}

#[test]
fn without_a_choice_for_one_boot_the_entry_is_made_on_request_alone() {
    let tree = Small::new();
    let labels = "DEFAULT linux\nLABEL linux\n\tLINUX /vmlinuz-6.12.5-rt\n\tAPPEND root=/dev/sda1 \
                  ro\n";
    tree.write("/boot/extlinux/extlinux.conf", labels);
    let cmdline = "root=/dev/sda1 ro\n";
    tree.write("/proc/cmdline", cmdline);
    let before = tree.all();
    let words = ["trial", "isolcpus=2-3", "--yes"];
    let refused = tree.tune(&words);
    expect_code(&refused, FAILED);
    assert!(stderr(&refused).contains("tune trial --by-hand"), "{}", stderr(&refused));
    assert_eq!(tree.all(), before);
    let made = tree.tune(&[&words[..], &["--by-hand"]].concat());
    expect_code(&made, ACCEPTED);
    assert!(stdout(&made).contains("choose \"rtproof real-time\""), "{}", stdout(&made));
    let text = tree.read("/boot/extlinux/extlinux.conf");
    assert!(text.starts_with(labels) && text.contains("isolcpus=2-3 panic=10"), "{text}");
    expect_code(&tree.tune(&["confirm"]), FAILED);
    tree.write("/proc/cmdline", "root=/dev/sda1 ro isolcpus=2-3 panic=10\n");
    expect_code(&tree.tune(&["confirm"]), ACCEPTED);
    assert!(tree.read("/boot/extlinux/extlinux.conf").contains("DEFAULT rtproof-real-time"));
    tree.write("/proc/cmdline", cmdline);
    expect_code(&tree.tune(&["undo", "--all"]), ACCEPTED);
    assert_eq!(tree.all(), before);
}

#[test]
fn a_boot_that_lacks_words_is_reported() {
    let tree = Small::with_grub();
    expect_code(&trial(&tree), ACCEPTED);
    boot_trial(&tree);
    tree.write("/sys/devices/system/cpu/nohz_full", "(null)\n");
    let output = tree.tune(&["verify"]);
    expect_code(&output, REFUSED);
    let text = stdout(&output);
    assert!(text.contains("NOT EFFECTIVE") && text.contains("nohz_full=2-3"), "{text}");
    std::fs::remove_file(tree.file("/sys/devices/system/cpu/nohz_full")).unwrap();
    let output = tree.tune(&["verify", "nohz_full=2-3"]);
    let text = stdout(&output);
    expect_code(&output, NOT_PROVEN);
    assert!(text.contains("CANNOT TELL"), "{text}");
}

#[test]
fn a_plan_shows_the_line_that_would_boot() {
    let tree = Small::with_grub();
    let before = tree.all();
    let output = tree.tune(&["plan", "isolcpus,nohz-full,rcu-nocbs", "--cpus", "2-3"]);
    expect_code(&output, ACCEPTED);
    let text = stdout(&output);
    for part in [
        "entry \"rtproof real-time\" of",
        "    + isolcpus=managed_irq,domain,2-3\n",
        "    - root=/dev/sda1 ro quiet\n",
        "    + root=/dev/sda1 ro quiet isolcpus=managed_irq,domain,2-3",
        "Next     rtproof tune trial",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let applied = tree.tune(&["apply", "isolcpus", "--cpus", "2-3", "--yes"]);
    expect_code(&applied, ACCEPTED);
    let (text, next) = (
        stdout(&applied),
        "1 boot parameter left\nNext     rtproof tune plan --cpus 2-3 isolcpus --root ",
    );
    assert!(text.contains(next), "{text}");
    assert_eq!(tree.all(), before);
}

#[test]
fn where_no_entry_can_be_made_it_is_printed() {
    let tree = Small::new();
    let before = tree.all();
    let output = trial(&tree);
    expect_code(&output, FAILED);
    assert!(stderr(&output).contains("nothing was changed"), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("root=/dev/sda1 ro quiet isolcpus=managed_irq,domain,2-3"), "{text}");
    assert_eq!(tree.all(), before);
}
