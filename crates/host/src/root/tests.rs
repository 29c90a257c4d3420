//! Tests of the gate.

use std::{fs, os::unix::fs::symlink};

use rustix::{
    fs::{CWD, FileType, Mode, mknodat},
    io::Errno,
};

use super::*;
use crate::reading::ReadingState;
use crate::testing::Tree;

#[test]
fn links_and_dots_stay_inside() {
    let tree = Tree::new(&[("usr/lib/os-release", "captured\n"), ("etc/hostname", "h\n")]);
    let path = |name: &str| tree.path().join(name);
    symlink("/usr/lib/os-release", path("etc/os-release")).unwrap();
    symlink("../../../../../../etc/hostname", path("usr/up")).unwrap();
    symlink("/", path("usr/top")).unwrap();
    symlink("loop", path("loop")).unwrap();
    symlink("/no/such", path("nowhere")).unwrap();
    let root = tree.root();
    let text = |name: &str| root.trimmed(name).value().cloned();
    assert_eq!(text("/etc/os-release").as_deref(), Some("captured"));
    assert_eq!(text("/usr/up").as_deref(), Some("h"));
    assert_eq!(text("/usr/top/usr/top/etc/hostname").as_deref(), Some("h"));
    assert_eq!(text("/../../../etc/hostname").as_deref(), Some("h"));
    assert_eq!(root.read_link("/etc/os-release").value().unwrap(), "/usr/lib/os-release");
    assert!(matches!(root.read_text("/loop").state, ReadingState::Denied { .. }));
    assert!(root.read_text("/nowhere").is_absent() && root.exists("/nowhere"));
    // The live machine has both; the captured one does not.
    assert!(root.read_text("/proc/self/status").is_absent());
    assert!(!root.exists("/bin") && root.list_dir("/proc").is_absent());
    assert_eq!(root.list_dir("/usr").value().unwrap(), &["lib", "top", "up"]);
}

#[test]
fn errors_become_states() {
    let around = |lockdown: Option<&str>, container, unprivileged| RefusalContext {
        lockdown: lockdown.map(Into::into),
        container,
        unprivileged: Some("run as root").filter(|_| unprivileged),
    };
    let state = |errno: Errno, around: &RefusalContext| {
        ReadRefusal::from(errno).reading::<()>("/sys/kernel/debug/x", || around).state
    };
    let plain = around(None, false, false);
    for errno in [Errno::NOENT, Errno::NOTDIR, Errno::NODEV, Errno::SRCH] {
        assert_eq!(state(errno, &plain), ReadingState::Absent, "{errno}");
    }
    let why = |errno, around: &RefusalContext| match state(errno, around) {
        ReadingState::Denied { why } => why,
        other => panic!("{errno}: {other:?}"),
    };
    assert!(why(Errno::IO, &plain).contains("os error 5"));
    assert!(why(Errno::INVAL, &plain).contains("Invalid argument"));
    let locked = around(Some("integrity"), true, false);
    let refused = why(Errno::PERM, &locked);
    assert!(refused.contains("locked down (integrity)") && refused.contains("container"));
    assert!(why(Errno::ACCESS, &around(None, false, true)).contains("run as root"));
}

#[test]
fn what_is_no_file_is_refused_and_does_not_block() {
    let tree = Tree::new(&[("proc/version/inner", "")]);
    let fifo = tree.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let root = tree.root();
    assert!(root.read_text("/proc/version").why_unknown().unwrap().contains("directory"));
    assert!(root.read_text("/fifo").why_unknown().unwrap().contains("regular file"));
    assert!(matches!(root.read_link("/fifo").state, ReadingState::Malformed { .. }));
    assert!(root.read_text("/fifo/below").is_absent());
}

#[test]
fn values() {
    let tree = Tree::new(&[
        ("number", "-12\n"),
        ("list", "0-2\n"),
        ("null", "(null)\n"),
        ("empty", "\n"),
        ("choice", "always [madvise] never\n"),
    ]);
    fs::write(tree.path().join("latin"), b"caf\xe9\0").unwrap();
    let root = tree.root();
    assert_eq!(root.number::<i64>("/number", "a number").value(), Some(&-12));
    let malformed = root.number::<u32>("/number", "a count").state;
    assert_eq!(
        malformed,
        ReadingState::Malformed { found: "-12".into(), expected: "a count".into() }
    );
    assert_eq!(root.cpu_list("/list").value().unwrap().to_string(), "0-2");
    assert_eq!(root.cpu_list("/null").value(), Some(&CpuList::default()));
    assert_eq!(root.cpu_list("/empty").value(), Some(&CpuList::default()));
    assert!(matches!(root.cpu_list("/choice").state, ReadingState::Malformed { .. }));
    assert_eq!(root.bracketed("/choice", '[', ']').value().unwrap(), "madvise");
    assert!(matches!(root.bracketed("/list", '[', ']').state, ReadingState::Malformed { .. }));
    assert_eq!(root.trimmed("/latin").value().unwrap(), "caf\u{fffd}");
}

#[test]
fn a_root_must_be_a_folder() {
    let tree = Tree::new(&[("file", "")]);
    assert!(matches!(Root::dir(tree.path().join("file")), Err(RootError::NotAFolder(_))));
    assert!(matches!(Root::dir(tree.path().join("none")), Err(RootError::Open { .. })));
    assert!(Root::dir("/").unwrap().is_live() && !tree.root().is_live());
}

/// A copy by tar, scp, rsync or git of files whose inodes say that they have no bytes.
#[test]
fn files_that_a_copy_left_empty_are_not_known() {
    let tree = Tree::new(&[
        ("proc/cmdline", ""),
        ("proc/modules", ""),
        ("proc/7/cmdline", ""),
        ("proc/sys/kernel/osrelease", ""),
        ("sys/devices/system/cpu/isolated", ""),
        ("sys/devices/system/cpu/online", "\n"),
        ("sys/fs/cgroup/cgroup.controllers", ""),
        ("etc/machine-id", ""),
    ]);
    let (as_it_is, judged) = (tree.root(), tree.root().judged());
    for (path, is_hollow) in [
        ("/proc/cmdline", true),
        ("/proc/modules", false),
        ("/proc/7/cmdline", false),
        ("/proc/sys/kernel/osrelease", true),
        ("/sys/devices/system/cpu/isolated", true),
        ("/sys/devices/system/cpu/online", false),
        ("/sys/fs/cgroup/cgroup.controllers", false),
        ("/etc/machine-id", false),
    ] {
        assert_eq!(judged.read_text(path).value().is_none(), is_hollow, "{path}");
        assert!(as_it_is.read_text(path).value().is_some(), "{path}");
    }
    let state = judged.excerpt("/proc/cmdline", &["x"]).state;
    assert_eq!(state, ReadingState::Denied { why: COPIED_EMPTY.into() });
}

#[test]
fn a_mask_stands_for_the_list_that_is_not_there() {
    let tree = Tree::new(&[
        ("n/node0/cpumap", "00000000,0000000f\n"),
        ("n/node1/cpumap", "f0\n"),
        ("n/node1/cpulist", "4-5\n"),
        ("sys/c/thread_siblings", "80000001\n"),
        ("sys/c/thread_siblings_list", ""),
        ("c/shared_cpu_list", "x\n"),
        ("c/shared_cpu_map", "3\n"),
        ("r/cpus", "c\n"),
        ("odd/core_siblings", "g\n"),
    ]);
    let root = tree.root().judged();
    let of = |path: &str| root.cpu_list(path).value().map(ToString::to_string);
    assert_eq!(of("/n/node0/cpulist").as_deref(), Some("0-3"));
    assert_eq!(of("/n/node1/cpulist").as_deref(), Some("4-5"), "the list comes first");
    assert_eq!(of("/c/shared_cpu_list").as_deref(), Some("0-1"));
    assert_eq!(of("/r/cpus_list").as_deref(), Some("2-3"));
    assert!(root.cpu_list("/none/x_list").is_absent());
    let odd = root.cpu_list("/odd/core_siblings_list");
    assert!(!odd.is_absent() && odd.value().is_none());
    let wide = root.cpu_list("/sys/c/thread_siblings_list");
    assert_eq!((wide.path.as_str(), wide.value().unwrap().len()), ("/sys/c/thread_siblings", 2));
}
