//! systemd's own programs read the files of `--format systemd`.

use std::{fs, os::unix::fs::PermissionsExt, process::Command};

use super::tools::{self, exported, got, machine, ok, program, put, run, said, written};

#[test]
fn systemd_analyze_reports_nothing() {
    let Some(analyze) = program("systemd-analyze") else { return };
    let folder = written(&exported("systemd"));
    let root = folder.path().join("root");
    // What the units run and wait for, as a machine has it.
    put(&root, &[("bin/sh", "#!\n"), ("usr/lib/systemd/system/sysinit.target", "[Unit]\n")]);
    for target in ["basic", "multi-user", "shutdown", "sysinit"] {
        put(&root, &[(&format!("usr/lib/systemd/system/{target}.target"), "[Unit]\n")]);
    }
    fs::set_permissions(root.join("bin/sh"), fs::Permissions::from_mode(0o755)).expect("mode");
    let units = fs::read_dir(root.join("etc/systemd/system")).expect("units");
    let units: Vec<_> = units
        .map(|unit| unit.expect("a unit").file_name())
        .filter(|name| name.to_string_lossy().ends_with(".service"))
        .collect();
    assert_eq!(units.len(), 2, "{units:?}");
    for unit in &units {
        let said = ok(Command::new(&analyze)
            .args(["verify", "--man=no", "--recursive-errors=one", "--root"])
            .arg(&root)
            .arg(unit));
        assert_eq!(said, "", "{unit:?}");
    }
    // The program would not find what is not there.
    put(&root, &[("etc/systemd/system/bad.service", "[Service]\nExecStrat=/bin/sh\n")]);
    let bad = run(Command::new(&analyze)
        .args(["verify", "--man=no", "--root"])
        .arg(&root)
        .arg("bad.service"));
    assert_ne!(said(&bad), "");
}

#[test]
fn systemd_tmpfiles_writes_these_paths_and_no_others() {
    let Some(tmpfiles) = program("systemd-tmpfiles") else { return };
    let folder = written(&exported("systemd"));
    let root = tempfile::tempdir().expect("a root");
    let root = root.path();
    machine(root);
    let conf = folder.path().join("root/etc/tmpfiles.d/90-rtproof.conf");
    put(root, &[("/etc/tmpfiles.d/x.conf", &fs::read_to_string(conf).expect("the file"))]);
    // It writes over what is there: a plain file keeps the rest, a file of /sys has none.
    put(root, &[("/sys/kernel/mm/transparent_hugepage/enabled", "-\n")]);
    let before = tools::tree(root);
    let said = ok(Command::new(&tmpfiles)
        .arg("--create")
        .arg(format!("--root={}", root.display()))
        .arg("x.conf"));
    assert_eq!(said, "");
    let after = tools::tree(root);
    let changed: Vec<String> = after
        .iter()
        .zip(&before)
        .filter(|(after, before)| after != before)
        .map(|((path, text), _)| format!("{} {text}", path.display()))
        .collect();
    let cpu = "sys/devices/system/cpu";
    let mut expected = vec![
        "proc/irq/default_smp_affinity 3".to_owned(),
        "sys/devices/virtual/workqueue/cpumask 3".into(),
        "sys/kernel/mm/transparent_hugepage/enabled never".into(),
    ];
    for n in [2, 3] {
        for state in 1..=3 {
            expected.push(format!("{cpu}/cpu{n}/cpuidle/state{state}/disable 1"));
        }
    }
    expected.sort();
    let mut changed: Vec<String> = changed.iter().map(|line| line.trim().to_owned()).collect();
    changed.sort();
    assert_eq!(changed, expected);
}

#[test]
fn install_fills_a_tree_and_remove_empties_it() {
    let folder = written(&exported("systemd"));
    let tree = tempfile::tempdir().expect("a tree");
    let shell = |name: &str| {
        let path = folder.path().join(name);
        ok(Command::new("sh").arg("-n").arg(&path));
        ok(Command::new(&path).env("DESTDIR", tree.path()))
    };
    shell("install.sh");
    let put: Vec<_> = tools::tree(tree.path());
    let meant: Vec<_> = tools::tree(&folder.path().join("root"));
    assert_eq!(put, meant);
    let sysctl = got(tree.path(), "/etc/sysctl.d/99-zz-rtproof-values.conf");
    for line in [
        "vm.stat_interval = 120",
        "kernel.sched_rt_runtime_us = -1",
        "kernel.printk = 3 4 1 7",
        "net.ipv6.conf.eth0/100.disable_ipv6 = 1",
    ] {
        assert!(sysctl.lines().any(|is| is == line), "{line}: {sysctl}");
    }
    shell("remove.sh");
    assert_eq!(tools::tree(tree.path()), []);
}

#[test]
fn the_latency_unit_writes_what_the_kernel_reads() {
    let exported = exported("systemd");
    let path = "root/etc/systemd/system/rtproof-cpu-dma-latency.service";
    let unit = exported.files.iter().find(|file| file.path == path).expect(path);
    // Ten hexadecimal digits with 0x: four bytes would be taken for a number in binary.
    assert!(unit.content.contains("echo 0x0000000a >&3; exec sleep infinity"), "{}", unit.content);
    assert!(!exported.files.iter().any(|file| file.content.contains("tune hold")));
}
