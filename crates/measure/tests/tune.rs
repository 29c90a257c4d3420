//! The engine of `tune` on the live machine: a thread of our own is changed and put back, nothing
//! of the machine is; and the machines that it refuses. Each runs in a mount namespace of its own,
//! where /var/lib is an empty place in memory.

use std::{
    fs,
    process::Command,
    sync::mpsc::{Receiver, Sender, channel},
};

use rtproof_host::{
    CpuList, Root,
    tune::{
        ApplyOptions, Bytes, Change, Gone, Item, Journal, Machine, NotTunable, Outcome, Scheduling,
        Standing, State, TaskName, Tasks, UndoError, apply, status, undo,
    },
};
use rtproof_measure::LiveTasks;

/// Set in the process that is in the namespace.
const INSIDE: &str = "RTPROOF_TUNE_INSIDE";

/// Runs the rest of a test in a namespace of its own, after `before` in a shell. Whether this is
/// that process.
fn inside(test: &str, before: &str, launcher: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let own = std::env::current_exe().expect("a path");
    let script = format!(
        "mount -t tmpfs none /var/lib && mount -t tmpfs none /run && {before} && echo covered >&2 && exec {launcher} {} --exact \
         {test} --nocapture",
        own.display()
    );
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", &script])
        .env(INSIDE, "1")
        .output()
        .expect("unshare");
    let complaint = String::from_utf8_lossy(&output.stderr);
    if complaint.contains("covered") {
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{complaint}");
        assert!(text.contains("1 passed"), "{text}");
        return false;
    }
    assert!(std::env::var_os("CI").is_none(), "CI needs root: {complaint}");
    eprintln!("not run: no mount namespace ({})", complaint.trim());
    false
}

/// A thread that waits until the other end of its channel is dropped.
fn thread() -> (u32, Sender<()>, std::thread::JoinHandle<()>) {
    let (send_tid, tid) = channel();
    let (end, wait): (_, Receiver<()>) = channel();
    let thread = std::thread::spawn(move || {
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        send_tid.send(tid.cast_unsigned()).expect("the test waits");
        let _ = wait.recv();
    });
    (tid.recv().expect("a thread id"), end, thread)
}

fn items(changes: Vec<Change>) -> Vec<Item> {
    changes.into_iter().map(|change| Item { change, checks: Vec::new() }).collect()
}

fn begin(machine: &Machine<'_>) -> Journal {
    Journal::begin(machine, "test".into(), &[]).expect("a journal")
}

fn outcomes(machine: &Machine<'_>, journal: &mut Journal) -> Vec<Outcome> {
    let undone = undo(machine, journal, &mut |_| {}).expect("an undo");
    undone.into_iter().map(|undone| undone.outcome).collect()
}

#[test]
fn a_thread_of_our_own_is_changed_and_put_back() {
    if !inside("tune::a_thread_of_our_own_is_changed_and_put_back", "true", "") {
        return;
    }
    let root = Root::live();
    let machine = Machine::new(&root, &LiveTasks).expect("root on the machine itself");
    let (tid, end, handle) = thread();
    let before = LiveTasks.scheduling(tid).expect("our own thread");
    let first = before.cpus.as_ref().and_then(|cpus| cpus.iter().next()).expect("a CPU");
    let task =
        |set| Change::Task { task: TaskName { tid, start_ticks: None, comm: comm(tid) }, set };
    let batch = Scheduling { policy: Some("batch".into()), nice: Some(4), ..Scheduling::default() };
    let one = Scheduling { cpus: Some(CpuList::new([first])), ..Scheduling::default() };
    let new = Change::File {
        path: "/run/new.conf".into(),
        content: Some(Bytes::from("new\n")),
        mode: Some(0o640),
    };
    let changes = items(vec![task(batch), task(one), new]);
    let mut journal = begin(&machine);
    let applied = apply(&machine, &mut journal, &changes, ApplyOptions::default(), &mut |_| {});
    assert_eq!(applied.expect("applied").done, 3);
    let now = LiveTasks.scheduling(tid).expect("our own thread");
    assert_eq!((now.policy.as_deref(), now.nice), (Some("batch"), Some(4)));
    assert_eq!(now.cpus, Some(CpuList::new([first])));
    let standing = status(&machine, &journal);
    assert!(
        standing.iter().all(|standing| standing.standing == Standing::AsApplied),
        "{standing:?}"
    );
    assert_eq!(outcomes(&machine, &mut journal), vec![Outcome::Restored; 3]);
    assert_eq!(LiveTasks.scheduling(tid).expect("our own thread"), before);
    assert_eq!(outcomes(&machine, &mut journal), []);
    drop(journal);
    // A thread that has ended is gone, whoever has its id by then.
    let mut journal = begin(&machine);
    let idle = Scheduling { policy: Some("idle".into()), ..Scheduling::default() };
    let changes = items(vec![task(idle)]);
    apply(&machine, &mut journal, &changes, ApplyOptions::default(), &mut |_| {}).expect("applied");
    drop(end);
    handle.join().expect("the thread ends");
    assert_eq!(outcomes(&machine, &mut journal), [Outcome::Gone { why: Gone::Ended }]);
}

fn comm(tid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{tid}/comm")).expect("our own thread");
    name.trim_end().to_owned()
}

#[test]
fn a_refusal_by_the_kernel_leaves_nothing() {
    if !inside("tune::a_refusal_by_the_kernel_leaves_nothing", "true", "") {
        return;
    }
    let root = Root::live();
    let machine = Machine::new(&root, &LiveTasks).expect("root on the machine itself");
    // A read-only file of the kernel.
    let path = "/sys/devices/system/cpu/possible";
    let value = Change::Value {
        path: path.into(),
        value: "0-999".into(),
        compare: rtproof_host::tune::Compare::CpuList,
        couples: Vec::new(),
    };
    let file =
        Change::File { path: "/run/first".into(), content: Some(Bytes::from("x")), mode: None };
    let mut journal = begin(&machine);
    let changes = items(vec![file.clone(), value]);
    let error = apply(&machine, &mut journal, &changes, ApplyOptions::default(), &mut |_| {});
    let error = error.expect_err("the kernel refuses").to_string();
    assert!(error.contains(path) && error.contains("everything was taken back"), "{error}");
    assert_eq!(machine.state(&file), Ok(State::Absent));
    assert!(journal.is_closed());
}

#[test]
fn a_container_is_refused() {
    let before = "mount --bind /sys /sys && mount -o remount,ro,bind /sys";
    if !inside("tune::a_container_is_refused", before, "") {
        return;
    }
    let root = Root::live();
    let error = Machine::new(&root, &LiveTasks).expect_err("refused");
    assert!(matches!(error, NotTunable::Container { path: "/sys", .. }), "{error}");
    assert!(error.to_string().contains("run it on the host"));
}

#[test]
fn whoever_is_not_root_is_refused() {
    let launcher = "setpriv --reuid=65534 --regid=65534 --clear-groups";
    if !inside("tune::whoever_is_not_root_is_refused", "true", launcher) {
        return;
    }
    let root = Root::live();
    let error = Machine::new(&root, &LiveTasks).expect_err("refused");
    assert!(error.to_string().contains("sudo"), "{error}");
}

#[test]
fn a_read_only_file_system_is_refused_before_and_after() {
    // A place that is made read-only half way, by its own mount.
    let before = "mkdir /var/lib/rtproof && mount -t tmpfs none /var/lib/rtproof";
    if !inside("tune::a_read_only_file_system_is_refused_before_and_after", before, "") {
        return;
    }
    let root = Root::live();
    let machine = Machine::new(&root, &LiveTasks).expect("root on the machine itself");
    let file =
        Change::File { path: "/run/first".into(), content: Some(Bytes::from("x")), mode: None };
    let mut journal = begin(&machine);
    let changes = items(vec![file.clone()]);
    apply(&machine, &mut journal, &changes, ApplyOptions::default(), &mut |_| {}).expect("applied");
    let copy = "/var/lib/copy.journal";
    fs::copy(journal.path(), copy).expect("a copy");
    drop(journal);
    let remount = |how: &str| {
        let mount = Command::new("mount").args(["-o", how, "/var/lib/rtproof"]).status();
        assert!(mount.expect("mount").success());
    };
    remount("remount,ro");
    let mut journal = Journal::open(&machine, None).expect("it can be read");
    // Nothing can be written down, and everything is undone.
    let error = undo(&machine, &mut journal, &mut |_| {}).expect_err("it cannot be written");
    let UndoError::Unrecorded { undone, source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    assert_eq!(undone[0].outcome, Outcome::Restored);
    assert_eq!(machine.state(&file), Ok(State::Absent));
    assert!(!journal.is_closed());
    drop(journal);
    let refused = Machine::new(&root, &LiveTasks).expect_err("refused").to_string();
    assert!(refused.contains("make it writable"), "{refused}");
    remount("remount,rw");
    // The copy does as well as the journal itself.
    let mut journal = Journal::open(&machine, Some(copy.as_ref())).expect("a copy");
    assert_eq!(outcomes(&machine, &mut journal), [Outcome::WasBefore]);
    assert!(journal.is_closed());
}
