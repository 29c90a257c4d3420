//! `rtproof kernel bisect --trial-boots` on a machine in a folder that the test "reboots": GRUB's
//! choice for the next boot is read as GRUB reads it. Real boots are in the lab
//! (`lab/src/cases/tune/bisect.rs`).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Output,
};

use crate::support::{
    self, ACCEPTED, FAILED, REFUSED, USAGE, expect_code, folder,
    small::{Small, image},
    small_linux::{has_programs, repository},
    start, stderr, wait_for,
};
use serde_json::Value;
use tempfile::TempDir;

/// Exit code: a reboot comes next.
const NEXT: i32 = 3;

/// A machine, and beside it a repository.
struct Lab {
    tree: Small,
    work: TempDir,
    boots: u32,
}

impl Lab {
    fn new(commits: usize, bad: usize, broken: &[usize]) -> Self {
        let (tree, work) = (Small::with_grub(), folder());
        fs::create_dir_all(tree.file("/lib/modules")).unwrap();
        fs::create_dir_all(work.path().join("images")).unwrap();
        for name in ["good", "bad"] {
            let bytes = [&image("6.1.0-small")[..], name.as_bytes()].concat();
            fs::write(work.path().join("images").join(name), bytes).unwrap();
        }
        repository(work.path(), commits, bad, broken);
        let config = work.path().join("config");
        let text = fs::read_to_string(&config).unwrap() + "CONFIG_MODULES=n\n";
        fs::write(config, text).unwrap();
        Self { tree, work, boots: 0 }
    }

    fn at(&self) -> &Path {
        self.work.path()
    }

    /// The command line, with a test that runs in each kernel.
    fn words(&self, bad: &str, pause: &str, test: &str) -> Vec<String> {
        let root = self.tree.path().display().to_string();
        let pause = format!("PAUSE={pause}");
        let words = [
            "kernel",
            "bisect",
            "out",
            "--source",
            "linux",
            "--config",
            "config",
            "--json",
            "--trial-boots",
            "--initrd",
            "none",
            "--yes",
            "--root",
            &root,
            "--good",
            "c0",
            "--bad",
            bad,
            "--set",
            "IMAGES=../../images",
            "--set",
            "GUILTY=",
            "--set",
            &pause,
            "--",
            "sh",
            "-c",
            test,
        ];
        words.map(str::to_owned).to_vec()
    }

    /// Is good where the good image is what boots.
    fn compared(&self) -> String {
        let booted = self.tree.file("/boot/rtproof");
        format!("cmp -s {}/vmlinuz-* images/good", booted.display())
    }

    fn run(&self, words: &[String]) -> Output {
        support::run(self.at(), &words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// The machine boots: GRUB's choice once, else its default. `falls`: that kernel does not come
    /// up, so that the default boots.
    fn reboot(&mut self, falls: bool) -> bool {
        self.boots += 1;
        let block = self.tree.read("/boot/grub/grubenv");
        let is_armed = block.contains("next_entry=rtproof-real-time");
        let block = block.replace("next_entry=rtproof-real-time", "next_entry=");
        let short = 1024 - block.len();
        self.tree.write("/boot/grub/grubenv", &(block + &"#".repeat(short)));
        let line = match is_armed && !falls {
            true => {
                let menu = self.tree.read("/boot/grub/custom.cfg");
                let line = menu.lines().find_map(|line| line.trim().strip_prefix("linux"));
                let line = line.expect("our entry").trim();
                format!("BOOT_IMAGE={line}\n")
            }
            false => "BOOT_IMAGE=/boot/vmlinuz-6.12.5-rt root=/dev/sda1 ro quiet\n".to_owned(),
        };
        self.tree.write("/proc/cmdline", &line);
        let id = format!("{:08x}-2222-4333-8444-555555555555\n", self.boots);
        self.tree.write("/proc/sys/kernel/random/boot_id", &id);
        is_armed
    }

    /// Reboots until there is an answer. `falls` are the trial boots that do not come up.
    fn bisect(&mut self, words: &[String], falls: &[u32]) -> (Output, u32) {
        let mut trials = 0;
        for _ in 0..60 {
            let output = self.run(words);
            if output.status.code() != Some(NEXT) {
                return (output, trials);
            }
            let next = json(&output);
            let is_trial = next["step"].is_u64();
            trials += u32::from(is_trial);
            assert_eq!(self.reboot(is_trial && falls.contains(&trials)), is_trial, "{next}");
        }
        panic!("no end");
    }

    /// All files of the machine that are not its running state.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let proc = self.tree.file("/proc");
        let all = self.tree.all().into_iter();
        all.filter(|(path, _)| !path.starts_with(&proc) && !path.ends_with("grubenv")).collect()
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)))
}

#[test]
fn a_commit_is_found_over_boots_of_which_one_falls_back_and_a_kill() {
    if !has_programs() {
        return;
    }
    let mut lab = Lab::new(16, 11, &[6]);
    let before = lab.files();
    let test = lab.compared();
    let words = lab.words("c15", "0.5", &test);
    // Killed while the first kernel is built.
    let mut child = start(lab.at(), &words.iter().map(String::as_str).collect::<Vec<_>>());
    wait_for("a build", 60, || lab.at().join("out/steps/001/build.log").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    let words = lab.words("c15", "0.5", &test);
    // The same boot: the kernel is chosen again, nothing is tested twice.
    let first = lab.run(&words);
    expect_code(&first, NEXT);
    assert_eq!(json(&first)["step"], 1);
    let again = lab.run(&words);
    expect_code(&again, NEXT);
    assert_eq!(
        (&json(&again)["step"], json(&again)["steps"].as_array().unwrap().len()),
        (&1.into(), 0)
    );
    let menu = lab.tree.read("/boot/grub/custom.cfg");
    assert!(menu.contains("rtproof.bisect=1-11111111"), "{menu}");
    // c7 is tried first after the ends: it does not come up.
    let (output, trials) = lab.bisect(&words, &[3]);
    expect_code(&output, ACCEPTED);
    let found = json(&output);
    assert_eq!(found["suspects"][0]["subject"], "change 11", "{found}");
    assert_eq!((&found["booted_in"], &found["is_reproduced"]), (&"machine".into(), &true.into()));
    let steps = found["steps"].as_array().unwrap();
    let skipped: Vec<&Value> = steps.iter().filter(|it| it["outcome"] == "skipped").collect();
    assert!(
        skipped[0]["why"].to_string().contains("did not come up, or was not booted"),
        "{found}"
    );
    let repeats: Vec<&Value> = steps.iter().filter(|it| it["repeats"].is_u64()).collect();
    assert_eq!(repeats.len(), 2, "{found}");
    let built = skipped.iter().filter(|it| it["why"].to_string().contains("does not build"));
    assert_eq!(trials as usize, steps.len() - built.count(), "one trial boot for each: {found}");
    // What was found good by one boot is said, and nothing of those that booted twice.
    let again: Vec<&Value> = repeats.iter().map(|it| &it["repeats"]).collect();
    let once = steps[2..].iter().filter(|it| it["outcome"] == "good" && it["repeats"].is_null());
    let once = once.filter(|it| !again.contains(&&it["number"])).count();
    let is_said = found["notes"].to_string().contains("by one boot each");
    assert_eq!(is_said, once > 0, "{found}");
    assert!(once > 0, "the test needs one: {found}");
    assert_eq!(lab.files(), before, "nothing of it stays on the machine");
    let page = fs::read_to_string(lab.at().join("out/bisect.html")).unwrap();
    assert!(page.contains("change 11") && page.contains("test, s"));
}

#[test]
fn an_answer_that_a_second_boot_does_not_confirm_is_discarded() {
    if !has_programs() {
        return;
    }
    let mut lab = Lab::new(4, 2, &[]);
    // Good the first time, and bad from the fifth test on.
    let test = format!("echo x >> count; [ $(wc -l < count) -lt 5 ] && {}", lab.compared());
    let words = lab.words("c3", "0", &test);
    let (output, _) = lab.bisect(&words, &[]);
    expect_code(&output, REFUSED);
    let found = json(&output);
    assert_eq!((&found["is_found"], &found["is_reproduced"]), (&true.into(), &false.into()));
    let page = fs::read_to_string(lab.at().join("out/bisect.html")).unwrap();
    assert!(page.contains("Not reproduced"), "the page says so");
}

#[test]
fn an_end_that_does_not_boot_is_an_error_and_is_tried_again() {
    if !has_programs() {
        return;
    }
    let mut lab = Lab::new(4, 2, &[]);
    let test = lab.compared();
    let words = lab.words("c3", "0", &test);
    let (output, _) = lab.bisect(&words, &[1]);
    expect_code(&output, FAILED);
    let said = stderr(&output);
    assert!(said.contains("the good end (change 0)") && said.contains("did not come up"), "{said}");
    // In a kernel that was tested: nothing is tested again, the machine's own is to boot.
    expect_code(&lab.run(&words), NEXT);
    assert!(lab.reboot(false));
    for _ in 0..2 {
        let next = json(&lab.run(&words));
        assert_eq!((&next["step"], next["steps"].as_array().unwrap().len()), (&Value::Null, 1));
    }
    assert!(!lab.reboot(false));
    let (output, _) = lab.bisect(&words, &[]);
    expect_code(&output, ACCEPTED);
    assert_eq!(json(&output)["suspects"][0]["subject"], "change 2");
}

#[test]
fn a_proof_that_was_cut_short_is_no_answer() {
    if !has_programs() {
        return;
    }
    let mut lab = Lab::new(4, 2, &[]);
    let mut words = lab.words("c3", "0", "true");
    words.truncate(words.iter().position(|word| word == "--").unwrap());
    let prove = "--prove=--for 60s --load idle --no-trace --budget 10s";
    words.extend(["--verdict", "--timeout", "3s", prove].map(str::to_owned));
    expect_code(&lab.run(&words), NEXT);
    lab.reboot(false);
    let output = lab.run(&words);
    expect_code(&output, FAILED);
    let said = stderr(&output);
    assert!(said.contains("the good end (change 0): not tested"), "{said}");
    assert!(said.contains("prove was cut short, SIGTERM came"), "{said}");
}

#[test]
fn what_cannot_work_is_refused_before_a_build() {
    if !has_programs() {
        return;
    }
    let lab = Lab::new(4, 2, &[]);
    let test = lab.compared();
    let is_built = || lab.at().join("out/steps").exists();
    // No boot loader.
    fs::rename(lab.tree.file("/boot/grub"), lab.tree.file("/boot/other")).unwrap();
    let output = lab.run(&lab.words("c3", "0", &test));
    expect_code(&output, FAILED);
    assert!(!is_built(), "{}", stderr(&output));
    fs::rename(lab.tree.file("/boot/other"), lab.tree.file("/boot/grub")).unwrap();
    // An initial RAM disk is made on the machine itself alone.
    let words = lab.words("c3", "0", &test);
    let made: Vec<String> = words
        .iter()
        .filter(|word| !["--initrd", "none"].contains(&word.as_str()))
        .cloned()
        .collect();
    let output = lab.run(&made);
    expect_code(&output, FAILED);
    assert!(stderr(&output).contains("--initrd"), "{}", stderr(&output));
    assert!(!is_built());
    // Instructions are counted in guests alone, and a verdict belongs to a machine.
    let at = words.iter().position(|word| word == "--").unwrap();
    for more in
        [&["--longest"][..], &["--user", "nobody", "--verdict"], &["--memory=64", "--verdict"]]
    {
        let mut words = words[..at].to_vec();
        words.extend(more.iter().map(|word| (*word).to_owned()));
        assert_eq!(lab.run(&words).status.code(), Some(USAGE), "{more:?}");
    }
    let plain: Vec<String> =
        words[..at].iter().filter(|word| *word != "--trial-boots").cloned().collect();
    let mut verdict = plain.clone();
    verdict.push("--verdict".to_owned());
    assert_eq!(lab.run(&verdict).status.code(), Some(USAGE));
    let mut lab = lab;
    expect_code(&lab.run(&words), NEXT);
    // One boot can be chosen at a time: a second bisection leaves it alone.
    let menu = lab.tree.read("/boot/grub/custom.cfg");
    let other: Vec<String> = words
        .iter()
        .map(|word| if word == "out" { "other".into() } else { word.clone() })
        .collect();
    let output = lab.run(&other);
    expect_code(&output, FAILED);
    let said = stderr(&output);
    assert!(said.contains("out: another bisection waits there"), "{said}");
    assert_eq!(lab.tree.read("/boot/grub/custom.cfg"), menu);
    // A parameter that the boot loader cannot have is refused before a build.
    let mut odd = words.clone();
    odd.splice(2..3, ["odd", "--append", "x=$(reboot)"].map(str::to_owned));
    expect_code(&lab.run(&odd), FAILED);
    assert!(!lab.at().join("odd/steps").exists());
    // Another machine does not go on with it.
    lab.reboot(false);
    lab.tree.write("/etc/machine-id", "ffffffffffffffffffffffffffffffff\n");
    let output = lab.run(&words);
    expect_code(&output, FAILED);
    assert!(stderr(&output).contains("--trial-boots, machine"), "{}", stderr(&output));
}
