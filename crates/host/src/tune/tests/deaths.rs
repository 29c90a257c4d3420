//! Killed at every single write: what comes after puts everything back.

use super::packages::PlayedPackages;
use super::played::{SHADOW, ordinary, stat};
use super::*;
use crate::tune::faults::may_die;

const GRUBENV: &str = "boot/grub/grubenv";

const EFI: &str = "LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";

/// A machine with odd values: no line's end, bytes that are not text, empty files, links.
fn machine() -> Tree {
    let tree = Tree::in_memory(&[
        ("etc/machine-id", "0123456789abcdef0123456789abcdef\n"),
        ("proc/sys/kernel/random/boot_id", "boot-1\n"),
        ("proc/sys/kernel/osrelease", "6.1.0-50-amd64\n"),
        ("etc/packages", ""),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
        ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "schedutil"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("proc/sys/vm/min_free_kbytes", "67584\n"),
        ("proc/sys/kernel/sched_rt_runtime_us", " 950000 \n"),
        ("sys/kernel/debug/sched/features", "PLACE_LAG HRTICK TTWU_QUEUE\n"),
        ("sys/fs/cgroup/cgroup.subtree_control", ""),
        ("sys/devices/virtual/workqueue/cpumask", "ff\n"),
        ("proc/sys/kernel/watchdog_cpumask", "0-3\n"),
        ("proc/irq/19/smp_affinity_list", "0-3\n"),
        ("proc/irq/19/effective_affinity_list", "3\n"),
        ("sys/kernel/irq/19/actions", "eth0\n"),
        ("sys/kernel/irq/19/hwirq", "524288\n"),
        ("sys/kernel/irq/19/chip_name", "PCI-MSI\n"),
        ("sys/devices/system/cpu/smt/control", "on\n"),
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2\n"),
        ("sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "1,3\n"),
        ("sys/fs/cgroup/cpuset/cpuset.cpus", "0-3\n"),
        ("sys/fs/cgroup/cpuset/cgroup.procs", ""),
        ("sys/fs/cgroup/cpuset/a/cpuset.cpus", "2-3\n"),
        ("sys/fs/cgroup/cpuset/a/cgroup.procs", ""),
        ("proc/400/stat", &stat(400, "plc", 777, 0)),
        ("proc/401/stat", &stat(401, "rcuog/0", 5, 0x0020_0000)),
        ("etc/sysctl.d/90-old.conf", "kernel.x = 1"),
        ("etc/group", "root:x:0:\nalice:x:1000:\n"),
        ("etc/passwd", "alice:x:1000:1000::/home/alice:/bin/sh\n"),
        ("etc/security/limits.conf", "# nothing\n"),
        ("etc/modprobe.d/x.conf", ""),
        ("etc/default/irqbalance", "OPTIONS=\n"),
        ("usr/lib/systemd/system/irqbalance.service", "[Install]\nWantedBy=multi-user.target\n"),
        ("usr/lib/systemd/system/ondemand.service", "[Service]\n"),
        ("usr/lib/systemd/system/rtproof.service", "[Install]\nWantedBy=basic.target\n"),
        ("sys/firmware/efi/efivars/other", "x"),
    ]);
    let path = |name: &str| tree.path().join(name);
    let mut block = b"# GRUB Environment Block\nsaved_entry=0\n".to_vec();
    block.resize(1024, b'#');
    fs::create_dir_all(path("boot/grub")).unwrap();
    fs::write(path(GRUBENV), block).unwrap();
    fs::write(path("etc/binary"), b"\xff\x00\xfe").unwrap();
    fs::set_permissions(path("etc/binary"), fs::Permissions::from_mode(0o4711)).unwrap();
    symlink("../usr/lib/sysctl.d/x.conf", path("etc/sysctl.d/50-link.conf")).unwrap();
    let wants = path("etc/systemd/system/multi-user.target.wants");
    fs::create_dir_all(&wants).unwrap();
    symlink("/lib/systemd/system/irqbalance.service", wants.join("irqbalance.service")).unwrap();
    let staging = path(&STAGING[1..]);
    fs::create_dir_all(staging.join("modules/kernel")).unwrap();
    fs::create_dir_all(path("lib/modules")).unwrap();
    for (name, text) in
        [("vmlinuz", "kernel"), ("modules/kernel/x.ko", "code"), ("modules/modules.dep", "x: ")]
    {
        fs::write(staging.join(name), text).unwrap();
        fs::set_permissions(staging.join(name), fs::Permissions::from_mode(0o644)).unwrap();
    }
    for name in ["modules", "modules/kernel"] {
        fs::set_permissions(staging.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let old = rustix::fs::Timespec { tv_sec: 1_600_000_000, tv_nsec: 123_456_789 };
    for name in ["etc/binary", "etc/sysctl.d/90-old.conf", "etc/modprobe.d/x.conf", GRUBENV]
        .map(path)
        .into_iter()
        .chain(["vmlinuz", "modules/kernel/x.ko", "modules/modules.dep"].map(|it| staging.join(it)))
    {
        let times = rustix::fs::Timestamps { last_access: old, last_modification: old };
        rustix::fs::futimens(fs::File::open(name).unwrap(), &times).unwrap();
    }
    tree
}

/// More than 25 changes, of every kind.
fn changes() -> Vec<Change> {
    let governor = |cpu| {
        value(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"), "performance")
    };
    let compared = |path: &str, wanted: &str, compare| Change::Value {
        path: path.into(),
        value: wanted.into(),
        compare,
        couples: vec![],
    };
    let task = |tid, comm: &str, set| Change::Task {
        task: TaskName { tid, start_ticks: None, comm: comm.into() },
        set,
    };
    let unit = |name: &str, want| Change::Unit { unit: name.into(), want };
    let mut changes = crate::tune::kinds::examples();
    changes.extend([
        Change::Hotplug { path: "/sys/devices/system/cpu/smt/control".into(), value: "off".into() },
        governor(0),
        governor(1),
        Change::Value {
            path: "/sys/kernel/mm/transparent_hugepage/enabled".into(),
            value: "never".into(),
            compare: Compare::Choice,
            couples: vec!["/proc/sys/vm/min_free_kbytes".into(), "/proc/sys/vm/none".into()],
        },
        compared("/proc/sys/kernel/sched_rt_runtime_us", "-1", Compare::Number),
        compared("/sys/kernel/debug/sched/features", "NO_HRTICK", Compare::Word),
        compared("/sys/devices/virtual/workqueue/cpumask", "3", Compare::CpuMask),
        compared("/proc/sys/kernel/watchdog_cpumask", "0-1", Compare::CpuList),
        Change::Irq {
            irq: IrqName {
                number: 7,
                actions: "eth0".into(),
                hwirq: "524288".into(),
                chip: "PCI-MSI".into(),
            },
            cpus: CpuList::new([0, 1]),
        },
        task(
            400,
            "plc",
            Scheduling {
                policy: Some("fifo".into()),
                priority: Some(80),
                cpus: Some(CpuList::new([3])),
                ..Scheduling::default()
            },
        ),
        task(
            0,
            "rcuog/0",
            Scheduling { cpus: Some(CpuList::new([0, 1])), ..Scheduling::default() },
        ),
        file("/etc/rtproof.d/a.conf", Some(b"a\n")),
        file("/etc/sysctl.d/90-rtproof.conf", Some(b"kernel.timer_migration = 0\n")),
        file("/etc/sysctl.d/90-old.conf", None),
        file("/etc/sysctl.d/50-link.conf", Some(b"no link\n")),
        file("/etc/binary", Some(b"\x00\x01")),
        Change::File {
            path: "/etc/security/limits.conf".into(),
            content: Some("@realtime - rtprio 99\n".into()),
            mode: Some(0o600),
        },
        file("/etc/modprobe.d/x.conf", Some(b"options x y=1\n")),
        file("/etc/default/irqbalance", None),
        Change::Folder { path: "/etc/systemd/system/ssh.service.d".into() },
        file("/etc/systemd/system/ssh.service.d/cpus.conf", Some(b"[Service]\nCPUAffinity=0\n")),
        unit("irqbalance.service", UnitState::Disabled),
        unit("ondemand.service", UnitState::Masked),
        unit("rtproof.service", UnitState::Enabled),
        Change::Property {
            unit: "system.slice".into(),
            property: "AllowedCPUs".into(),
            value: "0-1".into(),
        },
        Change::GrubEnv {
            path: "/boot/grub/grubenv".into(),
            key: "next_entry".into(),
            value: "real-time".into(),
        },
        Change::EfiVariable { name: EFI.into(), value: "real-time.conf".into() },
        Change::Folder { path: "/sys/fs/cgroup/rt".into() },
    ]);
    changes
}

/// The parts of a machine.
struct Whole {
    tree: Tree,
    root: Root,
    tasks: PlayedTasks,
    units: PlayedUnits,
    accounts: PlayedAccounts,
    packages: PlayedPackages,
}

type Seen = (BTreeMap<String, String>, BTreeMap<u32, Scheduling>, bool, bool, String);

impl Whole {
    fn new() -> Self {
        let tree = machine();
        let tasks = PlayedTasks::default();
        tasks.0.borrow_mut().insert(400, ordinary("0-3"));
        tasks.0.borrow_mut().insert(401, ordinary("2-3"));
        let units = PlayedUnits::new(&tree, &["irqbalance.service", "ondemand.service"]);
        let accounts = PlayedAccounts::new(&tree, SHADOW);
        let packages = PlayedPackages::new(&tree);
        let root = tree.root();
        Self { tree, root, tasks, units, accounts, packages }
    }

    fn machine(&self) -> Machine<'_> {
        let machine = Machine::played(&self.root, &self.tasks, &self.units).unwrap();
        machine.with_accounts(&self.accounts).with_packages(&self.packages)
    }

    /// Everything that is visible of it.
    fn seen(&self) -> Seen {
        let mut tree = snapshot(self.tree.path());
        // Made by systemctl itself, emptied by us.
        tree.retain(|name, _| name != "/run" && name != "/run/systemd");
        let property = self.units.properties.borrow().get("system.slice AllowedCPUs").cloned();
        (
            tree,
            self.tasks.0.borrow().clone(),
            self.units.runs("irqbalance.service"),
            self.units.runs("ondemand.service") && !self.units.runs("rtproof.service"),
            property.unwrap_or_default(),
        )
    }

    fn assert_seen(&self, before: &Seen, when: &str) {
        let now = self.seen();
        assert_eq!(difference(&before.0, &now.0), Vec::<String>::new(), "{when}");
        assert_eq!(
            (&before.1, before.2, before.3, &before.4),
            (&now.1, now.2, now.3, &now.4),
            "{when}"
        );
    }
}

/// Applies with a machine that dies after `n` single writes: whether it lived.
fn apply_and_die(whole: &Whole, n: u32) -> bool {
    let machine = whole.machine();
    machine.gate.faults.dies_after(n);
    may_die(|| {
        let title = "all".into();
        let mut journal = Journal::begin(&machine, title, &items(&changes())).unwrap();
        let all = items(&changes());
        apply(&machine, &mut journal, &all, ApplyOptions::default(), &mut |_| {}).unwrap();
    })
    .is_some()
}

fn undo_whole(whole: &Whole) -> Vec<UndoneChange> {
    let machine = whole.machine();
    match Journal::open(&machine, None) {
        Ok(mut journal) => undo(&machine, &mut journal, &mut |_| {}).unwrap(),
        Err(JournalError::NoneOpen) => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

fn assert_undone(undone: &[UndoneChange], when: &str) {
    for undone in undone {
        assert!(
            matches!(undone.outcome, Outcome::Restored | Outcome::WasBefore),
            "{when}: {undone:?}"
        );
    }
}

/// Single writes of the whole plan.
fn steps() -> u32 {
    let whole = Whole::new();
    let machine = whole.machine();
    machine.gate.faults.dies_after(u32::MAX);
    let applied = apply_to(&machine, &changes()).unwrap();
    assert_eq!((applied.done, applied.was_so), (changes().len(), 0));
    assert!(applied.pending[0].1.contains("log out"), "{:?}", applied.pending);
    assert!(applied.pending[1].1.contains("was booted"), "{:?}", applied.pending);
    assert!(applied.pending[2].1.contains("pending"), "{:?}", applied.pending);
    machine.gate.faults.steps()
}

#[test]
fn everything_is_made_and_put_back() {
    let whole = Whole::new();
    let before = whole.seen();
    assert!(changes().len() >= 25);
    assert!(apply_and_die(&whole, u32::MAX));
    let machine = whole.machine();
    let journal = Journal::open(&machine, None).unwrap();
    for standing in status(&machine, &journal) {
        assert_eq!(standing.standing, Standing::AsApplied, "{:?}", standing.change);
    }
    assert_eq!(text(&whole.tree, "proc/sys/kernel/watchdog_cpumask"), "0-1\n");
    assert_eq!(whole.tasks.0.borrow()[&400].priority, Some(80));
    let undone = undo_whole(&whole);
    assert_eq!(undone.len(), changes().len());
    assert!(undone.iter().all(|undone| undone.outcome == Outcome::Restored), "{undone:?}");
    whole.assert_seen(&before, "undone");
    assert_eq!(undo_whole(&whole), []);
    let list = Journal::list(&machine).unwrap();
    assert!(list[0].closed && list[0].in_force == 0 && list[0].changes == changes().len());
    let reloads =
        whole.units.asked.borrow().iter().filter(|asked| *asked == "daemon-reload").count();
    assert!(reloads >= 2, "{:?}", whole.units.asked.borrow());
}

#[test]
fn killed_while_applying_at_every_single_write() {
    let steps = steps();
    assert!(steps > 150, "{steps}");
    for n in 0..steps {
        let whole = Whole::new();
        let before = whole.seen();
        assert!(!apply_and_die(&whole, n), "{n} of {steps}");
        let when = format!("killed before single write {n} of {steps}");
        assert_undone(&undo_whole(&whole), &when);
        whole.assert_seen(&before, &when);
        assert_eq!(undo_whole(&whole), [], "{when}");
    }
}

#[test]
fn killed_while_undoing_at_every_single_write() {
    let mut n = 0;
    loop {
        let whole = Whole::new();
        let before = whole.seen();
        assert!(apply_and_die(&whole, u32::MAX));
        let machine = whole.machine();
        machine.gate.faults.dies_after(n);
        let lived = may_die(|| {
            let mut journal = Journal::open(&machine, None).unwrap();
            undo(&machine, &mut journal, &mut |_| {}).unwrap();
        });
        let when = format!("undo killed before single write {n}");
        assert_undone(&undo_whole(&whole), &when);
        whole.assert_seen(&before, &when);
        if lived.is_some() {
            break;
        }
        n += 1;
    }
    assert!(n > 100, "{n}");
}

#[test]
fn killed_while_applying_and_again_while_undoing() {
    let steps = steps();
    // Not every pair of the two: some 30 000.
    for first in (3..steps).step_by(17) {
        for second in (first % 11..steps).step_by(11) {
            let whole = Whole::new();
            let before = whole.seen();
            apply_and_die(&whole, first);
            let machine = whole.machine();
            machine.gate.faults.dies_after(second);
            let lived = may_die(|| {
                if let Ok(mut journal) = Journal::open(&machine, None) {
                    undo(&machine, &mut journal, &mut |_| {}).unwrap();
                }
            });
            let when = format!("killed at {first}, then at {second}");
            assert_undone(&undo_whole(&whole), &when);
            whole.assert_seen(&before, &when);
            if lived.is_some() {
                break;
            }
        }
    }
}

#[test]
fn a_full_disk_takes_everything_back() {
    for lines in 1..20 {
        let whole = Whole::new();
        let before = whole.seen();
        let machine = whole.machine();
        let mut journal = Journal::begin(&machine, String::new(), &[]).unwrap();
        machine.gate.faults.full_after(lines);
        let all = items(&changes());
        let error = apply(&machine, &mut journal, &all, ApplyOptions::default(), &mut |_| {});
        let error = error.unwrap_err();
        assert!(matches!(error, ApplyError::Journal { .. }), "{error}");
        assert!(error.to_string().contains("No space left"), "{error}");
        whole.assert_seen(&before, &format!("full after {lines} lines"));
        // The journal could not say so: the next undo finds everything as it was.
        drop(journal);
        assert_undone(&undo_whole(&whole), "after room was made");
        whole.assert_seen(&before, "after room was made");
    }
}
