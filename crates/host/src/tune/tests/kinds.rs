//! Each kind of change by itself: its three ways, its refusals.

use super::played::{ordinary, stat};
use super::*;

/// Played parts of a small machine.
struct Small {
    tree: Tree,
    root: Root,
    tasks: PlayedTasks,
    units: PlayedUnits,
}

impl Small {
    fn new(files: &[(&str, &str)]) -> Self {
        let tree = Tree::in_memory(files);
        let units = PlayedUnits::new(&tree, &["a.service", "script.service"]);
        Self { root: tree.root(), units, tasks: PlayedTasks::default(), tree }
    }

    fn machine(&self) -> Machine<'_> {
        Machine::played(&self.root, &self.tasks, &self.units).unwrap()
    }

    fn apply(&self, change: &Change) -> Result<ApplySummary, ApplyError> {
        apply_to(&self.machine(), std::slice::from_ref(change))
    }

    fn undo(&self) -> Outcome {
        let mut outcomes = undo_on(&self.machine());
        assert_eq!(outcomes.len(), 1);
        outcomes.pop().unwrap()
    }
}

fn why(result: Result<ApplySummary, ApplyError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_missing_value_is_not_created_as_a_file() {
    let small = Small::new(&[("proc/sys/x", "1\n")]);
    let refused = why(small.apply(&value("/proc/sys/vm/none", "1")));
    assert!(refused.contains("/proc/sys/vm/none: not there"), "{refused}");
    assert!(!small.tree.path().join("proc/sys/vm").exists());
    // In the middle of a plan the changes before it are undone.
    let machine = small.machine();
    let changes =
        [value("/proc/sys/x", "2"), value("/proc/sys/none", "1"), value("/proc/sys/x", "3")];
    let refused = why(apply_to(&machine, &changes));
    assert!(refused.contains("everything was taken back"), "{refused}");
    assert_eq!(text(&small.tree, "proc/sys/x"), "1\n");
    assert!(Journal::list(&machine).unwrap().iter().all(|journal| journal.closed));
    // Or left out.
    let mut journal = Journal::begin(&machine, String::new(), &[]).unwrap();
    let options = ApplyOptions { keep_going: true };
    let applied = apply(&machine, &mut journal, &items(&changes), options, &mut |_| {}).unwrap();
    assert_eq!((applied.done, applied.failed.len()), (2, 1));
    assert_eq!(text(&small.tree, "proc/sys/x"), "3\n");
    let standing = status(&machine, &journal);
    assert!(matches!(&standing[0].standing, Standing::Changed { .. }), "{standing:?}");
    assert!(
        matches!(&standing[1].standing, Standing::NotMade { why } if why.contains("not there"))
    );
    assert_eq!((&standing[2].standing, &standing[2].checks[0][..]), (&Standing::AsApplied, "x"));
}

#[test]
fn ended_tasks_are_skipped_and_listed() {
    let small = Small::new(&[("proc/sys/x", "1\n")]);
    let machine = small.machine();
    let task = TaskName { tid: 41, start_ticks: Some(1), comm: "gone".into() };
    let set = Scheduling { policy: Some("fifo".into()), ..Scheduling::default() };
    let irq =
        IrqName { number: 7, actions: "eth9".into(), hwirq: String::new(), chip: String::new() };
    let cpus = CpuList::new([0]);
    let changes =
        [Change::Task { task, set }, value("/proc/sys/x", "2"), Change::Irq { irq, cpus }];
    let applied = apply_to(&machine, &changes).unwrap();
    assert_eq!((applied.done, applied.failed), (1, vec![]));
    let left_out: Vec<&Change> = applied.left_out.iter().map(|(change, _)| change).collect();
    assert_eq!(left_out, [&changes[0], &changes[2]]);
    let journal = Journal::open(&machine, None).unwrap();
    let standing = status(&machine, &journal);
    for at in [0, 2] {
        let not_made = |stands: &Standing| matches!(stands, Standing::NotMade { .. });
        assert!(not_made(&standing[at].standing), "{standing:?}");
    }
    assert_eq!(standing[1].standing, Standing::AsApplied);
}

#[test]
fn an_interrupt_that_the_kernel_places_is_skipped_and_listed() {
    let file = "/proc/irq/7/smp_affinity_list";
    let small = Small::new(&[("proc/sys/x", "1\n"), (file, "0-3\n")]);
    let machine = small.machine();
    machine.gate.faults.refuses(file);
    let irq =
        IrqName { number: 7, actions: String::new(), hwirq: String::new(), chip: String::new() };
    let change = Change::Irq { irq, cpus: CpuList::new([0]) };
    let applied = apply_to(&machine, &[value("/proc/sys/x", "2"), change.clone()]).unwrap();
    let [(left_out, why)] = applied.left_out.as_slice() else { panic!("{applied:?}") };
    assert_eq!((left_out, applied.failed.as_slice()), (&change, &[][..]));
    assert!(why.contains("managed interrupt"), "{why}");
    let journal = Journal::open(&machine, None).unwrap();
    let standing = status(&machine, &journal);
    assert!(matches!(&standing[1].standing, Standing::NotMade { .. }), "{standing:?}");
    assert_eq!(text(&small.tree, &file[1..]), "0-3\n");
    // Another value that is refused takes all back.
    drop(journal);
    undo_on(&machine);
    machine.gate.faults.refuses("/proc/sys/x");
    let refused = self::why(apply_to(&machine, &[change, value("/proc/sys/x", "2")]));
    assert!(refused.contains("everything was taken back"), "{refused}");
    assert_eq!(text(&small.tree, &file[1..]), "0-3\n");
}

#[test]
fn what_others_have_changed_is_left_alone() {
    let small = Small::new(&[("proc/sys/a", "1\n"), ("etc/b", "b\n"), ("etc/c", "c\n")]);
    let changes =
        [value("/proc/sys/a", "2"), file("/etc/b", Some(b"ours\n")), file("/etc/c", None)];
    apply_to(&small.machine(), &changes).unwrap();
    small.tree.write("proc/sys/a", "3\n");
    small.tree.write("etc/b", "theirs\n");
    let machine = small.machine();
    let journal = Journal::open(&machine, None).unwrap();
    let found = |stands: &Standing| matches!(stands, Standing::Changed { .. });
    let standing = status(&machine, &journal);
    assert!(
        found(&standing[0].standing)
            && found(&standing[1].standing)
            && !found(&standing[2].standing)
    );
    let outcomes = undo_on(&machine);
    assert_eq!(outcomes[0], Outcome::Restored);
    assert!(matches!(&outcomes[1], Outcome::LeftAlone { found: State::File { bytes, .. } }
        if bytes.text() == "theirs\n"));
    assert!(matches!(&outcomes[2], Outcome::LeftAlone { .. }));
    assert_eq!(text(&small.tree, "proc/sys/a"), "3\n");
    assert_eq!(text(&small.tree, "etc/c"), "c\n");
    assert!(matches!(Journal::open(&machine, None), Err(JournalError::NoneOpen)));
}

#[test]
fn a_machine_that_is_as_wanted_is_not_touched() {
    let small = Small::new(&[("proc/sys/a", "0x10\n"), ("etc/b", "b\n")]);
    let before = snapshot(small.tree.path());
    let number = Change::Value {
        path: "/proc/sys/a".into(),
        value: "16".into(),
        compare: Compare::Number,
        couples: vec![],
    };
    let applied = apply_to(&small.machine(), &[number, file("/etc/b", Some(b"b\n"))]).unwrap();
    assert_eq!((applied.done, applied.was_so), (0, 2));
    assert_eq!(snapshot(small.tree.path()), before);
    assert_eq!(undo_on(&small.machine()), []);
}

#[test]
fn values_that_move_each_other_end_as_they_were() {
    let small =
        Small::new(&[("proc/sys/vm/dirty_bytes", "0\n"), ("proc/sys/vm/dirty_ratio", "20\n")]);
    let change = Change::Value {
        path: "/proc/sys/vm/dirty_bytes".into(),
        value: "1000000".into(),
        compare: Compare::Number,
        couples: vec!["/proc/sys/vm/dirty_ratio".into()],
    };
    small.apply(&change).unwrap();
    assert_eq!(small.undo(), Outcome::Restored);
    assert_eq!(text(&small.tree, "proc/sys/vm/dirty_ratio"), "20\n");
    // What another program has set since stays.
    small.apply(&change).unwrap();
    small.tree.write("proc/sys/vm/dirty_ratio", "5\n");
    assert_eq!(small.undo(), Outcome::Restored);
    assert_eq!(text(&small.tree, "proc/sys/vm/dirty_ratio"), "5\n");
}

#[test]
fn grub_clears_what_it_boots_once_and_the_undo_is_exact() {
    let small = Small::new(&[]);
    let block = |lines: &str| {
        let mut block = format!("# GRUB Environment Block\n{lines}");
        block.extend(std::iter::repeat_n('#', 1024 - block.len()));
        block
    };
    let old = block("saved_entry=0\n");
    small.tree.write("boot/efi/grubenv", &old);
    fs::create_dir_all(small.tree.path().join("boot/grub2")).unwrap();
    symlink("../efi/grubenv", small.tree.path().join("boot/grub2/grubenv")).unwrap();
    let change = Change::GrubEnv {
        path: "/boot/grub2/grubenv".into(),
        key: "next_entry".into(),
        value: "rt".into(),
    };
    small.apply(&change).unwrap();
    assert_eq!(text(&small.tree, "boot/efi/grubenv"), block("saved_entry=0\nnext_entry=rt\n"));
    small.tree.write("boot/efi/grubenv", &block("saved_entry=0\nnext_entry=\n"));
    assert_eq!(small.undo(), Outcome::Restored);
    assert_eq!(text(&small.tree, "boot/efi/grubenv"), old);
    assert!(small.tree.path().join("boot/grub2/grubenv").is_symlink());
    // Other variables of others stay.
    small.apply(&change).unwrap();
    small.tree.write("boot/efi/grubenv", &block("saved_entry=1\nnext_entry=rt\nx=y\n"));
    assert_eq!(small.undo(), Outcome::Restored);
    assert_eq!(text(&small.tree, "boot/efi/grubenv"), block("saved_entry=1\nx=y\n"));
    small.apply(&change).unwrap();
    small.tree.write("boot/efi/grubenv", &block("next_entry=other\n"));
    assert!(matches!(small.undo(), Outcome::LeftAlone { .. }));
    small.tree.write("boot/efi/grubenv", "no block");
    assert!(why(small.apply(&change)).contains("grub-editenv"));
}

#[test]
fn variables_of_the_firmware_are_whole() {
    let name = "LoaderEntryDefault-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f";
    let path = format!("sys/firmware/efi/efivars/{name}");
    let small = Small::new(&[("etc/x", "")]);
    let change = Change::EfiVariable { name: name.into(), value: "aé".into() };
    assert!(why(small.apply(&change)).contains("not started by EFI"));
    small.tree.write("sys/firmware/efi/efivars/other", "");
    small.apply(&change).unwrap();
    let bytes = fs::read(small.tree.path().join(&path)).unwrap();
    assert_eq!(bytes, [7, 0, 0, 0, b'a', 0, 0xe9, 0, 0, 0]);
    assert_eq!(small.undo(), Outcome::Restored);
    assert!(!small.tree.path().join(&path).exists());
    fs::write(small.tree.path().join(&path), [7, 0, 0, 0, b'x', 0, 0, 0]).unwrap();
    small.apply(&change).unwrap();
    assert_eq!(small.undo(), Outcome::Restored);
    assert_eq!(fs::read(small.tree.path().join(&path)).unwrap(), [7, 0, 0, 0, b'x', 0, 0, 0]);
}

#[test]
fn an_interrupt_is_found_by_what_it_is() {
    let small = Small::new(&[
        ("proc/irq/5/smp_affinity_list", "0-3\n"),
        ("sys/kernel/irq/5/actions", "eth0-rx\n"),
        ("sys/kernel/irq/5/hwirq", "9\n"),
        ("sys/kernel/irq/5/chip_name", "PCI-MSI\n"),
        ("proc/irq/6/smp_affinity_list", "0-3\n"),
        ("proc/irq/6/effective_affinity_list", "1\n"),
        ("proc/irq/6/i8042/x", ""),
    ]);
    let named = small.machine().named(Change::Irq {
        irq: IrqName {
            number: 6,
            actions: String::new(),
            hwirq: String::new(),
            chip: String::new(),
        },
        cpus: CpuList::new([1]),
    });
    let Change::Irq { irq, .. } = named.unwrap() else { panic!() };
    assert_eq!((irq.number, &irq.actions[..]), (6, "i8042"));
    let change = Change::Irq {
        irq: IrqName {
            number: 6,
            actions: "eth0-rx".into(),
            hwirq: "9".into(),
            chip: "PCI-MSI".into(),
        },
        cpus: CpuList::new([1]),
    };
    let applied = small.apply(&change).unwrap();
    assert_eq!((applied.done, applied.pending.len()), (1, 0));
    assert_eq!(text(&small.tree, "proc/irq/5/smp_affinity_list"), "1\n");
    assert_eq!(text(&small.tree, "proc/irq/6/smp_affinity_list"), "0-3\n");
    // Asked for anew under another number.
    for name in ["smp_affinity_list", "actions", "hwirq", "chip_name"] {
        let top = if name == "smp_affinity_list" { "proc/irq" } else { "sys/kernel/irq" };
        let old = text(&small.tree, &format!("{top}/5/{name}"));
        small.tree.write(&format!("{top}/8/{name}"), &old);
    }
    fs::remove_dir_all(small.tree.path().join("proc/irq/5")).unwrap();
    fs::remove_dir_all(small.tree.path().join("sys/kernel/irq/5")).unwrap();
    assert_eq!(small.undo(), Outcome::Restored);
    assert_eq!(text(&small.tree, "proc/irq/8/smp_affinity_list"), "0-3\n");
    small.apply(&change).unwrap();
    fs::remove_dir_all(small.tree.path().join("sys/kernel/irq/8")).unwrap();
    assert_eq!(small.undo(), Outcome::Gone { why: Gone::Ended });
}

fn to_fifo(tid: u32, start_ticks: Option<u64>, comm: &str) -> Change {
    Change::Task {
        task: TaskName { tid, start_ticks, comm: comm.into() },
        set: Scheduling {
            policy: Some("fifo".into()),
            priority: Some(50),
            cpus: Some(CpuList::new([1])),
            ..Scheduling::default()
        },
    }
}

#[test]
fn a_task_is_never_another_one() {
    let small = Small::new(&[
        ("proc/7/stat", &stat(7, "plc", 100, 0)),
        ("proc/8/stat", &stat(8, "twin", 100, 0)),
        ("proc/9/stat", &stat(9, "twin", 101, 0)),
        ("proc/10/stat", &stat(10, "migration/1", 1, 0x0420_0000)),
    ]);
    for tid in 7..=10 {
        small.tasks.0.borrow_mut().insert(tid, ordinary("0-1"));
    }
    assert!(why(small.apply(&to_fifo(0, None, "twin"))).contains("2 tasks of this name"));
    // One that has ended is reported, and undoes nothing else.
    let gone = small.apply(&to_fifo(7, Some(99), "plc")).unwrap();
    assert!(gone.done == 0 && gone.left_out[0].1.ends_with(": gone"), "{gone:?}");
    assert!(why(small.apply(&to_fifo(10, None, "migration/1"))).contains("PF_NO_SETAFFINITY"));
    assert_eq!(small.tasks.0.borrow()[&10], ordinary("0-1"));
    small.apply(&to_fifo(0, None, "plc")).unwrap();
    // Another task by now.
    small.tree.write("proc/7/stat", &stat(7, "sh", 5000, 0));
    small.tasks.0.borrow_mut().insert(7, ordinary("0"));
    assert_eq!(small.undo(), Outcome::Gone { why: Gone::Ended });
    assert_eq!(small.tasks.0.borrow()[&7], ordinary("0"));
    // What another has changed stays; the rest is put back.
    small.apply(&to_fifo(9, None, "twin")).unwrap();
    small.tasks.0.borrow_mut().get_mut(&9).unwrap().priority = Some(20);
    assert!(matches!(small.undo(), Outcome::LeftAlone { .. }));
    let task = small.tasks.0.borrow()[&9].clone();
    assert_eq!((task.priority, task.cpus), (Some(20), ordinary("0-1").cpus));
}

#[test]
fn running_values_are_gone_after_a_reboot_and_files_are_not() {
    let boot = "proc/sys/kernel/random/boot_id";
    let small = Small::new(&[(boot, "one\n"), ("proc/sys/a", "1\n"), ("etc/b", "b\n")]);
    let changes = [value("/proc/sys/a", "2"), file("/etc/b", Some(b"new"))];
    apply_to(&small.machine(), &changes).unwrap();
    small.tree.write(boot, "two\n");
    assert!(Journal::list(&small.machine()).unwrap()[0].earlier_boot);
    let outcomes = undo_on(&small.machine());
    assert_eq!(outcomes, [Outcome::Restored, Outcome::Gone { why: Gone::Reboot }]);
    assert_eq!(text(&small.tree, "proc/sys/a"), "2\n");
    assert_eq!(text(&small.tree, "etc/b"), "b\n");
}

#[test]
fn a_folder_that_others_use_stays() {
    let small = Small::new(&[("etc/x", "")]);
    let change = Change::Folder { path: "/etc/ours.d".into() };
    small.apply(&change).unwrap();
    small.tree.write("etc/ours.d/theirs", "");
    assert!(matches!(small.undo(), Outcome::LeftAlone { found: State::Folder }));
    assert!(why(small.apply(&file("/etc/ours.d", Some(b"x")))).contains("a folder"));
    assert!(why(small.apply(&file("/etc/none/x", Some(b"x")))).contains("/etc/none/x"));
}

#[test]
fn units_are_put_back_link_by_link() {
    let small = Small::new(&[
        ("usr/lib/systemd/system/a.service", "[Install]\nWantedBy=m.target\nAlias=alias.service\n"),
        ("usr/lib/systemd/system/static.service", ""),
        ("usr/lib/systemd/system/m.target.wants/static.service", ""),
        ("usr/lib/systemd/system/t@.service", "[Install]\nRequiredBy=%i.mount m.target\n"),
        ("etc/systemd/system/own.service", "[Service]\n"),
        ("etc/init.d/script", ""),
    ]);
    let path = |name: &str| small.tree.path().join(name);
    for (link, to) in [
        ("etc/systemd/system/m.target.wants/a.service", "/lib/systemd/system/a.service"),
        ("etc/systemd/system/alias.service", "/lib/systemd/system/a.service"),
        ("etc/rc2.d/S01script", "../init.d/script"),
        ("etc/rc6.d/K01script", "../init.d/script"),
    ] {
        fs::create_dir_all(path(link).parent().unwrap()).unwrap();
        symlink(to, path(link)).unwrap();
    }
    let before = snapshot(small.tree.path());
    let unit = |unit: &str, want| Change::Unit { unit: unit.into(), want };
    let is = |link: &str| path(link).is_symlink();
    for (change, made) in [
        (unit("a.service", UnitState::Disabled), None),
        (unit("a.service", UnitState::Masked), Some("etc/systemd/system/a.service")),
        (unit("a.service", UnitState::Stopped), None),
        (unit("script.service", UnitState::Disabled), Some("etc/rc2.d/K01script")),
        (
            unit("t@x.service", UnitState::Enabled),
            Some("etc/systemd/system/m.target.requires/t@x.service"),
        ),
        (unit("static.service", UnitState::Started), None),
    ] {
        small.apply(&change).unwrap();
        let Change::Unit { unit, want } = &change else { panic!() };
        assert_eq!(small.units.runs(unit), matches!(want, UnitState::Enabled | UnitState::Started));
        assert!(made.is_none_or(is), "{made:?}");
        let is_disabled = *want == UnitState::Disabled && unit == "a.service";
        assert!(!is_disabled || !is("etc/systemd/system/alias.service"));
        assert_eq!(small.undo(), Outcome::Restored, "{change:?}");
        assert_eq!(difference(&before, &snapshot(small.tree.path())), Vec::<String>::new());
        assert!(small.units.runs("a.service") && !small.units.runs("static.service"));
    }
    let refused = why(small.apply(&unit("static.service", UnitState::Disabled)));
    assert!(refused.contains("mask it"), "{refused}");
    assert!(why(small.apply(&unit("own.service", UnitState::Masked))).contains("disable it"));
    assert!(why(small.apply(&unit("none.service", UnitState::Enabled))).contains("installed"));
    // Enabled since in another way: that stays.
    small.apply(&unit("a.service", UnitState::Disabled)).unwrap();
    symlink("/lib/systemd/system/a.service", path("etc/systemd/system/m.target.wants/a.service"))
        .unwrap();
    assert!(matches!(small.undo(), Outcome::LeftAlone { .. }));
}

#[test]
fn a_folder_of_files_has_no_tasks_and_no_running_units() {
    let tree = Tree::in_memory(&[
        ("proc/7/stat", &stat(7, "plc", 100, 0)),
        ("usr/lib/systemd/system/a.service", "[Install]\nWantedBy=m.target\n"),
        ("etc/systemd/system/x", ""),
    ]);
    let root = tree.root();
    let machine = Machine::new(&root, &NoTasks).unwrap();
    assert!(why(apply_to(&machine, &[to_fifo(7, None, "plc")])).contains("folder of files"));
    let property = Change::Property {
        unit: "system.slice".into(),
        property: "AllowedCPUs".into(),
        value: "0".into(),
    };
    assert!(why(apply_to(&machine, &[property])).contains("folder of files"));
    let unit = Change::Unit { unit: "a.service".into(), want: UnitState::Enabled };
    apply_to(&machine, &[unit]).unwrap();
    assert!(tree.path().join("etc/systemd/system/m.target.wants/a.service").is_symlink());
    assert_eq!(undo_on(&machine), [Outcome::Restored]);
    assert!(!tree.path().join("etc/systemd/system/m.target.wants").exists());
    let reader = Machine::for_reading(&root, &NoTasks);
    assert!(matches!(reader.state(&file("/etc/x", None)), Ok(State::Absent)));
    assert!(reader.write(&file("/etc/x", Some(b"")), &State::Absent).is_err());
}

/// Tasks that the kernel moves when the switch is off, and does not move back.
struct Moved<'a>(&'a PlayedTasks, &'a Path);

impl Tasks for Moved<'_> {
    fn scheduling(&self, tid: u32) -> io::Result<Scheduling> {
        let is_off = fs::read_to_string(self.1).unwrap().trim() == "off";
        let now = self.0.scheduling(tid)?;
        if is_off && now.cpus.as_ref().is_some_and(|cpus| cpus.iter().all(|cpu| cpu >= 2)) {
            self.0.set(
                tid,
                &Scheduling { cpus: Some(CpuList::new([0, 1])), ..Scheduling::default() },
            )?;
        }
        self.0.scheduling(tid)
    }

    fn set(&self, tid: u32, to: &Scheduling) -> io::Result<()> {
        self.0.set(tid, to)
    }
}

#[test]
fn what_a_cpu_that_goes_takes_along_is_put_back() {
    let small = Small::new(&[
        ("sys/devices/system/cpu/smt/control", "on\n"),
        ("sys/devices/system/cpu/online", "0-3\n"),
        ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,2\n"),
        ("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,3\n"),
        ("sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "0,2\n"),
        ("sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "1,3\n"),
        ("sys/fs/cgroup/cpuset/cpuset.cpus", "0-3\n"),
        ("sys/fs/cgroup/cpuset/tasks", ""),
        ("sys/fs/cgroup/cpuset/rt/cpuset.cpus", "2-3\n"),
        ("sys/fs/cgroup/cpuset/rt/tasks", "7\n99\n"),
        ("proc/irq/9/smp_affinity_list", "2\n"),
        ("sys/kernel/irq/9/actions", "nvme\n"),
        ("proc/7/stat", &stat(7, "rt", 100, 0)),
        ("proc/8/stat", &stat(8, "wide", 100, 0)),
    ]);
    small.tasks.0.borrow_mut().insert(7, ordinary("2-3"));
    small.tasks.0.borrow_mut().insert(8, ordinary("0-3"));
    let switch = small.tree.path().join("sys/devices/system/cpu/smt/control");
    let moved = Moved(&small.tasks, &switch);
    let machine = Machine::played(&small.root, &moved, &small.units).unwrap();
    let change =
        Change::Hotplug { path: "/sys/devices/system/cpu/smt/control".into(), value: "off".into() };
    let mut journal = Journal::begin(&machine, String::new(), &[]).unwrap();
    let all = items(&[change]);
    apply(&machine, &mut journal, &all, ApplyOptions::default(), &mut |_| {}).unwrap();
    assert_eq!(small.tasks.0.borrow()[&7], ordinary("0-1"));
    let Some(State::Hotplug { tasks, irqs, groups, .. }) = &journal.entries()[0].before else {
        panic!("{:?}", journal.entries())
    };
    assert_eq!((tasks.len(), irqs.len(), groups.len()), (2, 1, 2));
    assert_eq!(groups[0].0, "/sys/fs/cgroup/cpuset/rt/cpuset.cpus");
    assert_eq!(groups[1], ("/sys/fs/cgroup/cpuset/rt/tasks".into(), Bytes::from("7\n99\n")));
    drop(journal);
    // Version 1 moves the tasks of a group without a CPU away; 99 has ended meanwhile.
    small.tree.write("sys/fs/cgroup/cpuset/rt/tasks", "");
    assert_eq!(undo_on(&machine), [Outcome::Restored]);
    assert_eq!(small.tasks.0.borrow()[&7], ordinary("2-3"));
    assert_eq!(small.tasks.0.borrow()[&8], ordinary("0-3"));
    assert_eq!(text(&small.tree, "sys/devices/system/cpu/smt/control"), "on\n");
    assert_eq!(text(&small.tree, "sys/fs/cgroup/cpuset/rt/tasks"), "7\n");
}

#[test]
fn a_partition_is_made_with_its_group_and_taken_back_also_when_it_is_invalid() {
    let top = "/sys/fs/cgroup/cgroup.subtree_control";
    let group = "/sys/fs/cgroup/rt";
    let partition = format!("{group}/cpuset.cpus.partition");
    let small = Small::new(&[(&top[1..], "cpu\n")]);
    let before = snapshot(small.tree.path());
    let machine = small.machine();
    machine.gate.faults.plays_groups();
    let of = |path: &str, value: &str, compare| Change::Value {
        path: path.into(),
        value: value.into(),
        compare,
        couples: Vec::new(),
    };
    let changes = [
        Change::Folder { path: group.into() },
        of(top, "+cpuset", Compare::Controller),
        of(&format!("{group}/cpuset.cpus"), "2-3", Compare::CpuList),
        of(&partition, "isolated", Compare::Text),
    ];
    for file in ["cpuset.cpus", "cpuset.cpus.partition"] {
        let file = format!("{group}/{file}");
        assert!(changes[0].brings(&file) && changes[1].brings(&file), "{file}");
    }
    assert!(!changes[1].brings("/sys/fs/cgroup/rt/cpu.max"), "of another controller");
    assert!(!changes[0].brings("/sys/fs/cgroup/other/cpuset.cpus"), "of another group");
    assert!(!changes[1].brings("/sys/fs/cgroup/rt/below/cpuset.cpus"), "of a group below");
    let invalid = "isolated invalid (Cpu list in cpuset.cpus not exclusive)\n";
    for shown in ["isolated\n", invalid] {
        apply_to(&machine, &changes).unwrap();
        small.tree.write(&partition[1..], shown);
        let journal = Journal::open(&machine, None).unwrap();
        let standing = status(&machine, &journal).pop().unwrap();
        match shown == invalid {
            true => assert!(matches!(standing.standing, Standing::Changed { .. }), "{standing:?}"),
            false => assert_eq!(standing.standing, Standing::AsApplied),
        }
        drop(journal);
        let outcomes = undo_on(&machine);
        assert_eq!(outcomes, vec![Outcome::Restored; 4]);
        assert_eq!(snapshot(small.tree.path()), before);
    }
}

/// Tasks to which the kernel gives no CPU of a partition of others.
struct Held<'a>(&'a PlayedTasks, &'a Path);

impl Tasks for Held<'_> {
    fn scheduling(&self, tid: u32) -> io::Result<Scheduling> {
        self.0.scheduling(tid)
    }

    fn set(&self, tid: u32, to: &Scheduling) -> io::Result<()> {
        let is_held = fs::read_to_string(self.1).is_ok_and(|kind| kind.trim() == "root");
        let mut to = to.clone();
        if is_held {
            to.cpus = to.cpus.map(|cpus| CpuList::new(cpus.iter().filter(|cpu| *cpu < 2)));
        }
        self.0.set(tid, &to)
    }
}

#[test]
fn what_a_partition_holds_back_is_put_back_after_it() {
    let group = "/sys/fs/cgroup/rt";
    let partition = format!("{group}/cpuset.cpus.partition");
    let small =
        Small::new(&[("sys/fs/cgroup/x", ""), ("proc/7/stat", &stat(7, "kswapd0", 100, 0))]);
    small.tasks.0.borrow_mut().insert(7, ordinary("0-3"));
    let file = small.tree.path().join(&partition[1..]);
    let held = Held(&small.tasks, &file);
    let machine = Machine::played(&small.root, &held, &small.units).unwrap();
    machine.gate.faults.plays_groups();
    let of_task = Change::Task {
        task: TaskName { tid: 7, start_ticks: None, comm: "kswapd0".into() },
        set: Scheduling { cpus: Some(CpuList::new([0, 1])), ..Scheduling::default() },
    };
    let changes = [Change::Folder { path: group.into() }, value(&partition, "root"), of_task];
    apply_to(&machine, &changes).unwrap();
    assert_eq!(small.tasks.0.borrow()[&7], ordinary("0-1"));
    let mut shown = 0;
    let mut journal = Journal::open(&machine, None).unwrap();
    let undone = undo(&machine, &mut journal, &mut |_| shown += 1).unwrap();
    assert!(undone.iter().all(|it| it.outcome == Outcome::Restored), "{undone:?}");
    assert_eq!((undone.len(), shown), (3, 3));
    assert!(journal.is_closed());
    assert_eq!(small.tasks.0.borrow()[&7], ordinary("0-3"));
}
