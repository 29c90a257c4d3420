//! The file there and back, every mistake with its line, and what a boot has of it.

use std::fs;

use rtproof_host::{
    Root,
    door::Invalid,
    tune::{Change, Compare, IrqName, Scheduling, TaskName, UnitState},
};

use super::*;

fn cpus(list: &str) -> CpuList {
    CpuList::parse(list, None).unwrap()
}

/// A machine in a folder.
fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let root = Root::dir(dir.path()).unwrap();
    (dir, root)
}

fn stat(tid: u32, comm: &str, flags: u32) -> String {
    let zeros = "0 ".repeat(11);
    format!("{tid} ({comm}) S 2 0 0 0 -1 {flags} {zeros}1 0 77 {}17 2 90 1 0 0\n", "0 ".repeat(15))
}

const KTHREAD: u32 = 0x0020_0000;

fn busy_machine() -> (tempfile::TempDir, Root) {
    let irq = |number: u32, actions: &str, hwirq: &str, chip: &str| {
        let top = format!("sys/kernel/irq/{number}");
        vec![
            (format!("{top}/actions"), format!("{actions}\n")),
            (format!("{top}/hwirq"), format!("{hwirq}\n")),
            (format!("{top}/chip_name"), format!("{chip}\n")),
        ]
    };
    let task = |tid: u32, comm: &str, flags: u32, group: &str| {
        let top = format!("proc/{tid}");
        vec![
            (format!("{top}/stat"), stat(tid, comm, flags)),
            (format!("{top}/status"), format!("Tgid:\t{tid}\n")),
            (format!("{top}/cgroup"), format!("0::{group}\n")),
        ]
    };
    let governor = |cpu: u32| {
        let path = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        vec![(path, "powersave\n".to_owned())]
    };
    let files = [
        irq(33, "eth0-rx-0", "524288", "PCI-MSIX-0000:02:00.0"),
        irq(34, "eth0-rx-1", "524289", "PCI-MSIX-0000:02:00.0"),
        irq(9, "acpi", "9", "IO-APIC"),
        irq(10, "", "", ""),
        task(21, "rcuc/1", KTHREAD, "/"),
        task(33, "irq/33-eth0-rx-", KTHREAD, "/"),
        task(400, "plc", 0, "/system.slice/plc.service"),
        task(401, "rcuc/1", 0, "/user.slice/user-1000.slice/session-1.scope"),
        task(402, "plc", 0, "/user.slice/user-1000.slice/user@1000.service/app.slice/plc.service"),
        governor(0),
        governor(1),
        vec![("proc/sys/kernel/watchdog".into(), "1\n".into())],
    ]
    .concat();
    let files: Vec<(&str, &str)> = files.iter().map(|(p, c)| (p.as_str(), c.as_str())).collect();
    machine(&files)
}

fn parse(text: &str) -> Result<Config, Invalid> {
    Config::parse(text, "/etc/rtproof.toml").map_err(|error| error.to_string().into())
}

fn task_of(tid: u32, comm: &str, set: &Scheduling) -> Change {
    let task = TaskName { tid, start_ticks: Some(77), comm: comm.into() };
    Change::Task { task, set: set.clone() }
}

/// One change of every kind that a boot can repeat, with odd words.
fn every_kind() -> Vec<Change> {
    let value = |path: &str, value: &str, compare| Change::Value {
        path: path.into(),
        value: value.into(),
        compare,
        couples: vec![],
    };
    let fifo = Scheduling { policy: Some("fifo".into()), priority: Some(4), ..Default::default() };
    let deadline = Scheduling {
        policy: Some("deadline".into()),
        deadline_ns: Some([1_500_001, 2_000_000, 3_000_000_000]),
        reset_on_fork: Some(true),
        cpus: Some(cpus("0-3,7")),
        nice: Some(-5),
        ..Default::default()
    };
    vec![
        value("/proc/sys/kernel/watchdog", "0", Compare::Number),
        value("/sys/kernel/mm/transparent_hugepage/enabled", "never", Compare::Choice),
        value("/sys/x", "a \"b\" \\ \t\u{7}é # '''", Compare::Text),
        Change::Value {
            path: "/sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq".into(),
            value: "1000".into(),
            compare: Compare::Text,
            couples: vec!["/sys/devices/system/cpu/cpu1/cpufreq/scaling_min_freq".into()],
        },
        Change::Irq {
            irq: IrqName {
                number: 33,
                actions: "eth0-rx-0".into(),
                hwirq: "524288".into(),
                chip: "PCI-MSIX-0000:02:00.0".into(),
            },
            cpus: cpus("0-1"),
        },
        task_of(21, "rcuc/1", &fifo),
        task_of(400, "plc", &deadline),
        Change::Hotplug { path: "/sys/devices/system/cpu/cpu3/online".into(), value: "0".into() },
        Change::Folder { path: "/sys/fs/cgroup/rt".into() },
        Change::File { path: "/run/x".into(), content: Some("a\nb".into()), mode: Some(0o600) },
        Change::File { path: "/run/y".into(), content: None, mode: None },
        Change::Unit { unit: "irqbalance.service".into(), want: UnitState::Stopped },
        Change::Unit { unit: "x.service".into(), want: UnitState::Started },
        Change::Property {
            unit: "system.slice".into(),
            property: "AllowedCPUs".into(),
            value: "0-1".into(),
        },
    ]
}

fn written(root: &Root, changes: &[Change]) -> (Config, Vec<NotRepeated>) {
    let checks = ["a-check".to_owned(), "b".into()];
    let reason = vec!["Why so.".to_owned(), String::new(), "  Cost: \u{7}much".into()];
    Config::of(
        root,
        ConfigIntent::default(),
        changes.iter().map(|c| (c, &checks[..], reason.clone())),
    )
}

#[test]
fn the_file_repeats_what_was_applied() {
    let (_dir, root) = busy_machine();
    let (mut config, left_out) = written(&root, &every_kind());
    assert_eq!(left_out, []);
    assert_eq!(config.changes.len(), every_kind().len());
    config.intent = ConfigIntent {
        cpus: Some(cpus("2-3")),
        profile: Some("busy-poll".into()),
        priority: Some(90),
        period_ns: Some(333_333),
        budget_ns: Some(50_000),
    };
    let text = config.text();
    let mut read = parse(&text).unwrap();
    for repeated in &mut read.changes {
        let line = text.lines().nth(repeated.line - 1).unwrap();
        assert!(line.starts_with("kind = "), "{line}");
        repeated.line = 0;
    }
    assert_eq!(read, config, "{text}");
    assert_eq!(read.text(), text);
    assert_eq!(read.units(), ["plc.service"]);
    assert!(text.contains("\n# Why so.\n#\n#   Cost:  much\n[[change]]\nkind = "), "{text}");
}

#[test]
fn names_hold_over_boots() {
    let (_dir, root) = busy_machine();
    let set = Scheduling { nice: Some(1), ..Default::default() };
    let other = Scheduling { nice: Some(2), ..Default::default() };
    let changes = [
        task_of(33, "irq/33-eth0-rx-", &set),
        // A session's, a user's service with a known name, one that has ended, one that is another.
        task_of(401, "rcuc/1", &set),
        task_of(402, "plc", &set),
        task_of(9999, "gone", &set),
        task_of(21, "other", &set),
        // Two tasks of one name.
        task_of(400, "plc", &set),
        task_of(400, "plc", &set),
        task_of(400, "plc", &other),
        // What lasts by itself is neither repeated nor missed.
        Change::Unit { unit: "irqbalance.service".into(), want: UnitState::Masked },
        Change::File { path: "/etc/x".into(), content: None, mode: None },
    ];
    let (config, left_out) = written(&root, &changes);
    let named: Vec<String> = config.changes.iter().map(|change| change.what.target()).collect();
    assert_eq!(named, ["kernel thread irq/*-eth0-rx-", "task plc of plc.service"]);
    let why: Vec<&str> = left_out.iter().map(|left| &left.why[..12]).collect();
    let session = "no service s";
    assert_eq!(why, [session, session, "the task has", "the task has", "another task"]);
}

#[test]
fn a_mistake_is_reported_with_its_line_and_the_expected_value() {
    for (text, line, words) in [
        ("version = 1\n[[change]]\nkind = \"valeu\"", "3:8", "no kind \"valeu\"; there are value"),
        ("version = 1\n[[change]]\nkind = \"grub-env\"", "3:8", "lasts by itself"),
        ("version = 1\n[[change]]\npath = \"/sys/x\"", "2:1", "no `kind`"),
        ("version = 1\n\n[[change]]\nkind=\"value\"\npath = \"/sys/x\"", "4:6", "needs `value`"),
        ("version = 1\n[[change]]\nkind=\"value\"\nfile = 1", "4:1", "unknown field `file`"),
        (
            "version = 1\n[[change]]\nkind=\"folder\"\npath=\"/run/x\"\nvalue=\"1\"",
            "5:7",
            "does not",
        ),
        (
            "version = 1\n[[change]]\nkind=\"value\"\nvalue=\"\"\npath=\"/etc/x\"",
            "5:6",
            "below /proc",
        ),
        (
            "version=1\n[[change]]\nkind=\"value\"\nvalue=\"\"\npath=\"/sys/../x\"",
            "5:6",
            "without ..",
        ),
        ("version=1\n[[change]]\nkind=\"irq\"\ncpus=\"0\"", "3:6", "which interrupt"),
        ("version=1\n[[change]]\nkind=\"irq\"\nactions=\"x\"\n cpus = \"3-1\"", "5:9", "like 0-3"),
        ("version=1\n[[change]]\nkind=\"irq\"\nactions=\"x\"\ncpus=\"\"", "5:6", "no CPU"),
        ("version=1\n[[change]]\nkind=\"task\"\ncomm=\"x\"", "3:6", "nothing is set"),
        ("version=1\n[[change]]\nkind=\"task\"\ncomm=\"*\"\nnice=1", "4:6", "every task"),
        (
            "version=1\n[[change]]\nkind=\"task\"\ncomm=\"x\"\npolicy=\"rt\"",
            "5:8",
            "there are other",
        ),
        (
            "version=1\n[[change]]\nkind=\"task\"\ncomm=\"x\"\npolicy=\"rr\"",
            "5:8",
            "needs `priority`",
        ),
        ("version=1\n[[change]]\nkind=\"task\"\ncomm=\"x\"\npriority=9", "5:10", "needs policy"),
        ("version=1\n[[change]]\nkind=\"task\"\ncomm=\"x\"\nnice=20", "5:6", "-20 to 19"),
        (
            "version=1\n[[change]]\nkind=\"task\"\ncomm=\"x\"\nnice=0\nunit=\"x\"",
            "6:6",
            "a service",
        ),
        (
            "version=1\n[[change]]\nkind=\"task\"\ncomm=\"x\"\nruntime=\"1ms\"",
            "5:9",
            "\"deadline\"",
        ),
        (
            "version=1\n[[change]]\nkind=\"task\"\ncomm=\"x\"\npolicy=\"deadline\"\nruntime=\"1\"",
            "6:9",
            "no unit",
        ),
        (
            "version=1\n[[change]]\nkind=\"unit\"\nunit=\"x\"\nwant=\"masked\"",
            "5:6",
            "lasts by itself",
        ),
        ("version=1\n[[change]]\nkind=\"unit\"\nunit=\"x\"\nwant=\"up\"", "5:6", "unknown variant"),
        (
            "version=1\n[[change]]\nkind=\"file\"\npath=\"/run/x\"\nmode=\"9\"",
            "5:6",
            "like \"0644\"",
        ),
        ("version = 2", "1:11", "version 1 is what this rtproof knows"),
        ("[intent]\ncpus = \"1\"", "1:1", "no `version = 1`"),
        ("version = 1\n[intent]\npriority = 100", "3:12", "1 to 99"),
        ("version = 1\n[intent]\nperiod = \"1\"", "3:10", "no unit"),
        ("version = 1\nchanges = 1", "2:1", "unknown field `changes`"),
        ("version = 1\n[intent\n", "2:8", ""),
        ("version = 1\nversion = 1\n", "2:1", "duplicate key"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(&format!("/etc/rtproof.toml:{line}: ")), "{text}\n{error}");
        assert!(error.contains(words), "{text}\n{error}");
    }
}

#[test]
fn a_file_that_others_can_write_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.toml");
    fs::write(&path, "version = 1\n").unwrap();
    assert_eq!(Config::open(&path, false), Ok(Config::default()));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(
        Config::open(&path, false).unwrap_err().to_string().contains("can be written by others")
    );
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert!(Config::open(&path, false).unwrap_err().to_string().contains("cannot be read"));
    fs::write(&path, "#".repeat(2 << 20)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(Config::open(&path, false).unwrap_err().to_string().contains("larger than 1 MiB"));
    let (_dir, root) = machine(&[("etc/rtproof.toml", "version = 1\n")]);
    assert_eq!(Config::of_machine(&root), Ok(Config::default()));
    let (_dir, root) = machine(&[]);
    let error = Config::of_machine(&root).unwrap_err().to_string();
    assert_eq!(error, "/etc/rtproof.toml: not there");
}

/// Written by hand, with patterns and a device that is not there.
const BY_HAND: &str = r#"
version = 1

[[change]]
kind = "value"
path = "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"
value = "performance"
checks = ["cpufreq-governor"]

[[change]] # every queue
kind = "irq"
actions = "eth0-*"
cpus = "0"

[[change]]
kind = "irq"
actions = "acpi"
hwirq = "10"        # another kernel's number
cpus = "0"

[[change]]
kind = "irq"
actions = "nvme0q1"
cpus = "0"

[[change]]
kind = "irq"
actions = "eth0-*"
hwirq = "7"
cpus = "0"

[[change]]
kind = "task"
comm = "rcuc/*"
policy = "fifo"
priority = 4

[[change]]
kind = "task"
comm = "plc"
unit = "plc.service"
cpus = "2"

[[change]]
kind = "task"
comm = "plc"
nice = 1

[[change]]
kind = "value"
path = "/sys/class/net/eth9/queues/rx-0/rps_cpus"
value = "1"

[[change]]
kind = "property"
unit = "system.slice"
property = "AllowedCPUs"
value = "0-1"
"#;

#[test]
fn a_boot_takes_what_is_there_and_names_what_is_not() {
    let (_dir, root) = busy_machine();
    let config = parse(BY_HAND).unwrap();
    assert!(matches!(
        &config.changes[8].what,
        NamedChange::Plain(Change::Value { compare: Compare::CpuMask, .. })
    ));
    let resolved = config.resolve(&root);
    let found: Vec<(usize, String)> =
        resolved.found.iter().map(|found| (found.line, found.change.target())).collect();
    let governor = |cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    assert_eq!(
        found,
        [
            (5, governor(0)),
            (5, governor(1)),
            (11, "/proc/irq/33/smp_affinity_list".into()),
            (11, "/proc/irq/34/smp_affinity_list".into()),
            (16, "/proc/irq/9/smp_affinity_list".into()),
            // Neither the session's process of that name nor the user's service.
            (33, "task 21 (rcuc/1)".into()),
            (39, "task 400 (plc)".into()),
            (55, "system.slice AllowedCPUs".into()),
        ]
    );
    assert_eq!(resolved.found[0].checks, ["cpufreq-governor"]);
    let notes = resolved.found.iter().filter_map(|found| found.note.as_deref());
    let notes: Vec<&str> = notes.collect();
    assert_eq!(notes, ["found by its handler alone: hwirq is 9, chip IO-APIC"]);
    let absent: Vec<(usize, &str, &str)> = resolved
        .absent
        .iter()
        .map(|absent| (absent.line, absent.target.as_str(), absent.why.as_str()))
        .collect();
    assert_eq!(
        absent,
        [
            (22, "interrupt with actions nvme0q1", "no interrupt has this handler now"),
            (
                27,
                "interrupt with actions eth0-*, hwirq 7",
                "no interrupt has this hwirq and chip now"
            ),
            (45, "kernel thread plc", "no such task runs"),
            (50, "/sys/class/net/eth9/queues/rx-0/rps_cpus", "not there"),
        ]
    );
}

#[test]
fn patterns() {
    for (pattern, name, is) in [
        ("abc", "abc", true),
        ("abc", "abcd", false),
        ("*", "", true),
        ("irq/*-eth0", "irq/45-eth0", true),
        ("irq/*-eth0", "irq/45-eth01", false),
        ("a*b*c", "a-b-c", true),
        ("a*b*c", "a-c-b", false),
        ("ab*b", "ab", false),
        ("a**", "a", true),
        ("*a*", "bab", true),
    ] {
        assert_eq!(fits(pattern, name), is, "{pattern} {name}");
    }
}

#[test]
fn a_group_of_a_boot_has_its_files_once_it_is_made() {
    let (_dir, root) = machine(&[("sys/fs/cgroup/cgroup.subtree_control", "cpu\n")]);
    let plain = |text: &str| format!("[[change]]\n{text}\n");
    let folder = plain("kind = \"folder\"\npath = \"/sys/fs/cgroup/rt\"");
    let cpus = plain("kind = \"value\"\npath = \"/sys/fs/cgroup/rt/cpuset.cpus\"\nvalue = \"2\"");
    let config = |text: String| Config::parse(&format!("version = 1\n{text}"), "x").unwrap();
    let of = |text: String| config(text).resolve(&root);
    let both = of(format!("{folder}{cpus}"));
    assert_eq!((both.found.len(), both.absent), (2, vec![]));
    // Not before it, and not without it.
    assert_eq!(of(format!("{cpus}{folder}")).absent.len(), 1);
    assert_eq!(of(cpus).absent.len(), 1);
}
