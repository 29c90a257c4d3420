//! What the tests share: an export on disk, a false machine, programs of others.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use rtproof_run::tune::export::{self, ExportSource, Exported};
use tempfile::TempDir;

use super::sample::Sample;

/// The rich sample in a format.
pub(crate) fn exported(format: &str) -> Exported {
    of(format, &Sample::rich().source())
}

/// A plan in a format.
pub(crate) fn of(format: &str, source: &ExportSource<'_>) -> Exported {
    export::export(export::format(format).expect("a format"), source).expect("an export")
}

/// An export in a folder.
pub(crate) fn written(exported: &Exported) -> TempDir {
    let folder = tempfile::Builder::new().prefix("rtproof-export-").tempdir().expect("a folder");
    for file in &exported.files {
        let path = folder.path().join(&file.path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(&path, &file.content).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(file.mode)).expect("permissions");
    }
    folder
}

/// Files of a machine under a folder.
pub(crate) fn put(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }
}

/// What a file under a folder says, white space at the ends cut off.
pub(crate) fn got(root: &Path, path: &str) -> String {
    let path = root.join(path.trim_start_matches('/'));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    text.trim().to_owned()
}

/// The values that the rich sample sets, as odd as a machine may have them.
pub(crate) fn machine(root: &Path) {
    let cpu = "/sys/devices/system/cpu";
    let mut files: Vec<(String, &str)> = vec![
        ("/proc/sys/vm/stat_interval".into(), "7\n"),
        ("/proc/sys/kernel/sched_rt_runtime_us".into(), "940000\n"),
        ("/proc/sys/kernel/printk".into(), "7\t4\t1\t7\n"),
        ("/proc/sys/net/ipv6/conf/eth0.100/disable_ipv6".into(), "0\n"),
        ("/sys/kernel/mm/transparent_hugepage/enabled".into(), "always [madvise] never\n"),
        ("/sys/devices/virtual/workqueue/cpumask".into(), "f\n"),
        ("/proc/irq/default_smp_affinity".into(), "f\n"),
        ("/sys/kernel/debug/sched/features".into(), "HRTICK NO_RT_PUSH_IPI\n"),
        ("/sys/fs/cgroup/cgroup.subtree_control".into(), "cpu io\n"),
        ("/sys/fs/cgroup/rt/cpuset.cpus".into(), "\n"),
        ("/sys/fs/cgroup/rt/cpuset.cpus.partition".into(), "member\n"),
    ];
    for n in 0..12 {
        for (file, text) in [
            ("cpufreq/scaling_governor", "schedutil\n"),
            ("cpufreq/scaling_max_freq", "2100000\n"),
            ("cpufreq/scaling_min_freq", "800000\n"),
            ("cpuidle/state1/disable", "0\n"),
            ("cpuidle/state2/disable", "0\n"),
            ("cpuidle/state3/disable", "0\n"),
            ("cpuidle/state4/disable", "0\n"),
        ] {
            files.push((format!("{cpu}/cpu{n}/{file}"), text));
        }
        files.push((format!("/sys/kernel/debug/sched/fair_server/cpu{n}/runtime"), "50000000\n"));
    }
    // Two interrupts of one name differ in their numbers in the controller.
    for (number, actions, hwirq) in
        [(46, "eth0-rx-0", "524289"), (47, "eth0-rx-0", "524999"), (48, "eth0-rx-01", "1")]
    {
        files.push((
            format!("/sys/kernel/irq/{number}/actions"),
            Box::leak(format!("{actions}\n").into_boxed_str()),
        ));
        files.push((
            format!("/sys/kernel/irq/{number}/hwirq"),
            Box::leak(format!("{hwirq}\n").into_boxed_str()),
        ));
        files.push((format!("/proc/irq/{number}/smp_affinity_list"), "0-3\n"));
    }
    for (path, text) in files {
        put(root, &[(&path, text)]);
    }
    fs::create_dir_all(root.join("run")).expect("/run");
}

/// Every file under a folder with its text.
pub(crate) fn tree(root: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            } else {
                let text = fs::read_to_string(&path).unwrap_or_default();
                all.push((path.strip_prefix(root).expect("under it").to_owned(), text));
            }
        }
    }
    all.sort();
    all
}

/// A program of others, installed or unpacked by scripts/deps.sh. `None` where a test may be left
/// out: never under `CI=true`.
#[expect(clippy::print_stderr, reason = "a test that is left out says so")]
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let home = std::env::var_os("HOME").unwrap_or_default();
    let unpacked = Path::new(&home).join(".cache/rtproof-export-tools");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .chain([unpacked.clone(), unpacked.join("root/usr/bin")]);
    let found = folders.map(|folder| folder.join(name)).find(|path| path.exists());
    let is_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    assert!(found.is_some() || !is_ci, "no {name}: run `make deps`");
    if found.is_none() {
        eprintln!("left out: no {name}; run `make deps`");
    }
    found
}

/// The folder into which scripts/deps.sh unpacks.
pub(crate) fn unpacked() -> PathBuf {
    let home = std::env::var_os("HOME").unwrap_or_default();
    Path::new(&home).join(".cache/rtproof-export-tools/root")
}

/// Runs to the end, without terminal.
pub(crate) fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).env("LC_ALL", "C.UTF-8").output().expect("the program runs")
}

/// stdout and stderr as text.
pub(crate) fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Runs, and has to end well.
#[track_caller]
pub(crate) fn ok(command: &mut Command) -> String {
    let output = run(command);
    let said = said(&output);
    assert!(output.status.success(), "{command:?}: {said}");
    said
}
