//! The script of the exports, run on a false machine: it sets, says what is not so, and puts back.

use std::{fs, path::Path, process::Command};

use super::tools::{self, exported, got, machine, ok, put, run, said, written};

/// The script of the rich sample, without what asks programs of the live machine.
fn script(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("root/usr/local/sbin/rtproof-tuning");
    let text = fs::read_to_string(&path).expect("the script");
    ok(Command::new("sh").arg("-n").arg(&path));
    let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with("property ")).collect();
    fs::write(&path, kept.join("\n") + "\n").expect("the script");
    path
}

fn tuning(script: &Path, root: &Path, mode: &str) -> (bool, String) {
    let output = run(Command::new("sh").arg(script).arg(mode).env("RTPROOF_ROOT", root));
    (output.status.success(), said(&output))
}

#[test]
fn the_script_sets_in_order_checks_and_restores() {
    let folder = written(&exported("systemd"));
    let script = script(folder.path());
    let root = tempfile::tempdir().expect("a root");
    let root = root.path();
    machine(root);
    let before = tools::tree(root);

    let (is_so, output) = tuning(&script, root, "check");
    assert!(
        !is_so && output.contains("scaling_governor is schedutil, not performance"),
        "{output}"
    );
    assert_eq!(tools::tree(root), before, "check writes nothing");

    // Plain files say what was written, so words that add up read back as the last one alone.
    let (_, output) = tuning(&script, root, "start");
    assert!(!output.contains("refuses"), "{output}");
    let cpu = |n: u32, file: &str| got(root, &format!("/sys/devices/system/cpu/cpu{n}/{file}"));
    for n in [2, 3] {
        assert_eq!(cpu(n, "cpufreq/scaling_governor"), "performance");
        assert_eq!(cpu(n, "cpufreq/scaling_max_freq"), "3000000");
    }
    for n in [0, 1, 4, 10, 11] {
        assert_eq!(cpu(n, "cpufreq/scaling_governor"), "schedutil", "CPU {n} is not meant");
    }
    assert_eq!(got(root, "/proc/irq/46/smp_affinity_list"), "3");
    assert_eq!(got(root, "/proc/irq/47/smp_affinity_list"), "0-3", "the other of that name");
    assert_eq!(got(root, "/proc/irq/48/smp_affinity_list"), "0-3", "a longer name");
    assert_eq!(got(root, "/sys/fs/cgroup/rt/cpuset.cpus.partition"), "isolated");
    assert!(output.contains("no kernel thread rcuog/2"), "{output}");

    // Something else changes one of them.
    let minimum = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_min_freq";
    put(root, &[(minimum, "900000\n")]);
    let (_, output) = tuning(&script, root, "stop");
    assert!(output.contains("scaling_min_freq is 900000, which is not ours"), "{output}");
    assert_eq!(got(root, minimum), "900000");
    put(root, &[(minimum, "800000\n")]);
    // What adds up is reversed by its own word, which a plain file keeps alone.
    let skip = ["features", "subtree_control", "saved"];
    let odd = |path: &Path| skip.iter().any(|name| path.to_string_lossy().contains(name));
    let trimmed = |tree: Vec<(std::path::PathBuf, String)>| -> Vec<_> {
        let kept = tree.into_iter().filter(|(path, _)| !odd(path));
        kept.map(|(path, text)| (path, text.trim().to_owned())).collect()
    };
    assert_eq!(trimmed(tools::tree(root)), trimmed(before));
}

#[test]
fn twice_is_as_once() {
    let folder = written(&exported("systemd"));
    let script = script(folder.path());
    let root = tempfile::tempdir().expect("a root");
    machine(root.path());
    tuning(&script, root.path(), "start");
    tuning(&script, root.path(), "start");
    tuning(&script, root.path(), "stop");
    let governor = "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor";
    assert_eq!(got(root.path(), governor), "schedutil", "the first value is the one put back");
    let (is_well, _) = tuning(&script, root.path(), "stop");
    assert!(is_well, "nothing to take back is no failure");
}

#[test]
fn a_mode_it_does_not_know_is_usage() {
    let folder = written(&exported("systemd"));
    let script = folder.path().join("root/usr/local/sbin/rtproof-tuning");
    let output = run(Command::new(script).arg("restart"));
    assert_eq!(output.status.code(), Some(64));
}
