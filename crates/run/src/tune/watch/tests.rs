//! A machine in a folder whose values change.

use std::fs;

use rtproof_host::tune::{self, ApplyOptions, Item, apply, undo};

use super::*;

struct Played {
    dir: tempfile::TempDir,
    root: Root,
}

impl Played {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::dir(dir.path()).unwrap();
        let played = Self { dir, root };
        played.write("proc/sys/vm/swappiness", "60\n");
        played.write("proc/sys/vm/stat_interval", "1\n");
        played.write("etc/sysctl.d/README", "");
        played.write("etc/machine-id", "0123456789abcdef0123456789abcdef\n");
        played.write("proc/sys/kernel/random/boot_id", "aaaa\n");
        played
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Applies two values and a file.
    fn applied(&self, machine: &Machine<'_>) -> Journal {
        let value = |name: &str, value: &str| Change::Value {
            path: format!("/proc/sys/vm/{name}"),
            value: value.into(),
            compare: tune::Compare::Number,
            couples: vec![],
        };
        let file = Change::File {
            path: "/etc/sysctl.d/90-x.conf".into(),
            content: Some("vm.x=1\nvm.y=2\n".into()),
            mode: None,
        };
        let changes = [value("swappiness", "10"), value("stat_interval", "120"), file];
        let items = changes.map(|change| Item { change, checks: vec![] });
        let mut journal = Journal::begin(machine, "test".into(), &[]).unwrap();
        let options = ApplyOptions { keep_going: false };
        apply(machine, &mut journal, &items, options, &mut |_| {}).unwrap();
        journal
    }
}

fn lines(watcher: &mut Watcher, machine: &Machine<'_>) -> Vec<String> {
    let drifts = watcher.poll(machine, "T").unwrap();
    drifts.iter().map(Drift::line).collect()
}

#[test]
fn each_drift_is_reported_once_with_its_suspects() {
    let played = Played::new();
    let machine = Machine::new(&played.root, &LiveTasks).unwrap();
    let mut watcher = Watcher::default();
    assert_eq!(lines(&mut watcher, &machine), [""; 0]);
    let mut journal = played.applied(&machine);
    assert_eq!(lines(&mut watcher, &machine), [""; 0], "a new journal is no drift");
    assert_eq!(watcher.counts(), (3, 0));

    played.write("etc/sysctl.d/10-a.conf", "# the distribution's\nvm.swappiness=60\n");
    played.write("proc/sys/vm/swappiness", "60\n");
    let clue = "sysctl, /etc/sysctl.d/10-a.conf (/etc/sysctl.d/10-a.conf:2: vm.swappiness=60)";
    let changed = format!("T /proc/sys/vm/swappiness: 60, applied was 10; maybe {clue}");
    assert_eq!(lines(&mut watcher, &machine), [changed]);
    assert_eq!(lines(&mut watcher, &machine), [""; 0], "once");
    assert_eq!(watcher.counts(), (3, 1));

    played.write("etc/sysctl.d/90-x.conf", "");
    let file = "T /etc/sysctl.d/90-x.conf: an empty file, applied was a file of 2 lines";
    assert_eq!(lines(&mut watcher, &machine), [file]);
    played.write("etc/sysctl.d/90-x.conf", "vm.x=1\nvm.y=3\n");
    let file = "T /etc/sysctl.d/90-x.conf: other text, permissions or owner";
    assert_eq!(lines(&mut watcher, &machine), [file]);

    played.write("proc/sys/vm/swappiness", "10\n");
    let again = "T /proc/sys/vm/swappiness: as applied again";
    assert_eq!(lines(&mut watcher, &machine), [again]);

    undo(&machine, &mut journal, &mut |_| {}).unwrap();
    lines(&mut watcher, &machine);
    assert_eq!(lines(&mut watcher, &machine), [""; 0]);
}

#[test]
fn a_watch_that_begins_late_reports_existing_drift() {
    let played = Played::new();
    let machine = Machine::new(&played.root, &LiveTasks).unwrap();
    drop(played.applied(&machine));
    played.write("proc/sys/vm/stat_interval", "\u{1b}[31m7\n");
    let mut watcher = Watcher::default();
    let drifts = watcher.poll(&machine, "2026-01-01T00:00:00Z").unwrap();
    assert_eq!(drifts.len(), 1);
    assert!(!drifts[0].line().contains('\u{1b}'), "{:?}", drifts[0].line());

    let mut out = Vec::new();
    write(&mut out, &drifts, true).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert_eq!(json["schema"], SCHEMA);
    assert_eq!(json["now"], "changed");
    assert_eq!(json["target"], "/proc/sys/vm/stat_interval");
    assert_eq!(json["time"], "2026-01-01T00:00:00Z");
}

#[test]
fn it_runs_on_unneeded_cpus() {
    let played = Played::new();
    played.write("sys/devices/system/cpu/online", "0-7\n");
    assert_eq!(housekeeping(&played.root).to_string(), "0-7");
    played.write("sys/devices/system/cpu/isolated", "4-5\n");
    played.write("sys/devices/system/cpu/nohz_full", "(null)\n");
    played.write("sys/fs/cgroup/cpuset.cpus.isolated", "7\n");
    assert_eq!(housekeeping(&played.root).to_string(), "0-3,6");
    played.write("sys/devices/system/cpu/isolated", "0-7\n");
    assert_eq!(housekeeping(&played.root).to_string(), "0-7");
}

#[test]
fn times_between_looks_are_bounded() {
    assert_eq!(every("10s"), Ok(EVERY_NS));
    for wrong in ["100ms", "2h", "10", ""] {
        assert!(every(wrong).is_err(), "{wrong}");
    }
}
