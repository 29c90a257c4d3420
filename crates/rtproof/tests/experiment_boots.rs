//! `rtproof experiment boots` on a machine in a folder that boots with GRUB: twelve "reboots", each
//! another boot_id and the command line that GRUB would have given; and what can go wrong.

use std::process::Output;

use crate::support::{
    self, ACCEPTED, FAILED, NOT_PROVEN, USAGE, alone, code, expect_code, small::Small, stderr,
    stdout,
};
use serde_json::Value;

const WORD: &str = "nohz_full=2-3";

fn experiment(tree: &Small, args: &[&str]) -> Output {
    let root = tree.path().to_str().expect("UTF-8");
    let args = [&["experiment"][..], args, &["--root", root]].concat();
    support::run(tree.path(), &args)
}

fn begin(tree: &Small) -> Output {
    let quick = ["--slice", "500ms", "--load", "idle", "--boots", "6", "--yes"];
    experiment(tree, &[&["boots", WORD][..], &quick].concat())
}

/// Reboots, as far as a folder can: GRUB takes the entry that was chosen once, and forgets it.
/// Returns whether it was ours.
fn reboot(tree: &Small, number: usize) -> bool {
    let block = tree.read("/boot/grub/grubenv");
    let is_ours = block.contains("next_entry=rtproof-real-time");
    let forgotten = block.replace("next_entry=rtproof-real-time", "next_entry=");
    let forgotten = forgotten.trim_end_matches('#').to_owned();
    let short = 1024 - forgotten.len();
    tree.write("/boot/grub/grubenv", &(forgotten + &"#".repeat(short)));
    let words = if is_ours { format!(" {WORD} panic=10") } else { String::new() };
    let line = format!("BOOT_IMAGE=/boot/vmlinuz-6.12.5-rt root=/dev/sda1 ro quiet{words}\n");
    tree.write("/proc/cmdline", &line);
    let id = format!("{number:08}-2222-4333-8444-555555555555\n");
    tree.write("/proc/sys/kernel/random/boot_id", &id);
    is_ours
}

fn state(tree: &Small) -> Value {
    serde_json::from_str(&tree.read("/var/lib/rtproof/experiment/state.json")).expect("JSON")
}

#[test]
fn given_up_the_boot_loader_is_as_it_was() {
    let tree = Small::with_grub();
    let before = tree.all();
    expect_code(&begin(&tree), ACCEPTED);
    expect_code(&experiment(&tree, &["end"]), NOT_PROVEN);
    let after = tree.all();
    for (path, bytes) in &before {
        assert_eq!(after.get(path), Some(bytes), "{}", path.display());
    }
    expect_code(&experiment(&tree, &["end"]), USAGE);
    // A state that is damaged can be given up.
    expect_code(&begin(&tree), ACCEPTED);
    tree.write("/var/lib/rtproof/experiment/state.json", "{");
    let output = experiment(&tree, &["resume"]);
    expect_code(&output, FAILED);
    assert!(stderr(&output).contains("experiment end gives it up"), "{}", stderr(&output));
    expect_code(&experiment(&tree, &["end"]), FAILED);
    expect_code(&begin(&tree), ACCEPTED);
}

#[test]
fn what_is_there_already_cannot_be_tried() {
    let tree = Small::with_grub();
    let line = format!("BOOT_IMAGE=/boot/vmlinuz-6.12.5-rt root=/dev/sda1 ro quiet {WORD}\n");
    tree.write("/proc/cmdline", &line);
    let output = begin(&tree);
    expect_code(&output, FAILED);
    assert!(stderr(&output).contains("on the command line already"), "{}", stderr(&output));
    expect_code(&experiment(&tree, &["boots", WORD, "--boots", "5", "--yes"]), USAGE);
    expect_code(&experiment(&tree, &["boots", "=2", "--yes"]), USAGE);
}

/// Measures live.
mod live {
    use super::*;

    #[test]
    fn twelve_boots_are_an_experiment() {
        let _alone = alone();
        let tree = Small::with_grub();
        let before = tree.all();
        let output = begin(&tree);
        expect_code(&output, ACCEPTED);
        let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
        for part in
            ["12 boots, 6 with and 6 without nohz_full=2-3", "then rtproof experiment resume"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        // Not rebooted yet; a second experiment beside it.
        let early = experiment(&tree, &["resume"]);
        expect_code(&early, FAILED);
        assert!(stderr(&early).contains("this boot is no new one"), "{}", stderr(&early));
        let second = begin(&tree);
        expect_code(&second, FAILED);
        assert!(stderr(&second).contains("is under way, 0 of 12"), "{}", stderr(&second));

        let order = state(&tree)["order"].as_array().expect("an order").clone();
        let mut last = None;
        for (number, with) in order.iter().enumerate() {
            assert_eq!(reboot(&tree, number + 1), with.as_bool().expect("an arm"), "boot {number}");
            if number == 4 {
                // A boot that is not the one that was chosen is not counted, and chosen again.
                let line = tree.read("/proc/cmdline");
                let other = match line.contains(WORD) {
                    true => line.replace(WORD, ""),
                    false => line.replace("quiet", &format!("quiet {WORD}")),
                };
                tree.write("/proc/cmdline", &other);
                let output = experiment(&tree, &["resume"]);
                expect_code(&output, ACCEPTED);
                let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
                assert!(text.contains("was not measured; chosen again"), "{text}");
                assert_eq!(reboot(&tree, 99), with.as_bool().expect("an arm"), "chosen again");
            }
            let output = experiment(&tree, &["resume"]);
            assert!([ACCEPTED, NOT_PROVEN].contains(&code(&output)), "{output:?}");
            last = Some(output);
        }
        let text = stdout(&last.expect("twelve boots"));
        for part in ["Effects", WORD, "12 records in"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let over = experiment(&tree, &["resume"]);
        expect_code(&over, USAGE);
        // The boot loader is as it was.
        let after = tree.all();
        for (path, bytes) in before.iter().filter(|(path, _)| path.starts_with(tree.file("/boot")))
        {
            assert_eq!(after.get(path), Some(bytes), "{}", path.display());
        }
        let of_boot = |all: &std::collections::BTreeMap<std::path::PathBuf, Vec<u8>>| {
            all.keys().filter(|path| path.starts_with(tree.file("/boot"))).count()
        };
        assert_eq!(of_boot(&after), of_boot(&before), "nothing of ours is left in /boot");
        let records = support::files(&tree.file("/var/lib/rtproof/experiment"), ".rtproof");
        assert_eq!(records.len(), 12);
    }
}
