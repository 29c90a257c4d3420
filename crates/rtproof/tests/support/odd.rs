//! A machine in a folder whose values are as no program would leave them, and a plan that changes
//! every kind of thing that a folder can hold. Undo has to give back these, not what is usual.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rtproof_host::{
    CpuList, Root,
    tune::{self, Bytes, Change, Compare, IrqName, UnitState},
};
use rtproof_measure::task::LiveTasks;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::tree::{Snapshot, differences, put, put_link, put_odd, snapshot};
use super::{expect_code, run, stderr, stdout};

/// A GRUB environment block: 1024 bytes, filled up with `#`.
fn grub_block(variables: &str) -> Vec<u8> {
    let mut block = format!("# GRUB Environment Block\n{variables}").into_bytes();
    block.resize(1024, b'#');
    block
}

/// Values of the kernel: path, what is there, what is wanted, how it is compared.
const VALUES: &[(&str, &[u8], &str, Compare)] = &[
    // No line end.
    ("/proc/sys/kernel/sched_rt_runtime_us", b"900000", "-1", Compare::Number),
    // White space after the value.
    ("/proc/sys/vm/swappiness", b"13  \t\n", "1", Compare::Number),
    ("/proc/sys/vm/stat_interval", b"7\n\n", "120", Compare::Number),
    // In front of it.
    ("/proc/sys/kernel/timer_migration", b"  1\n", "0", Compare::Number),
    // Nothing at all.
    ("/sys/module/printk/parameters/odd", b"", "1", Compare::Text),
    // No text.
    ("/sys/devices/odd/binary", b"\xff\xfe\0\x80\x01", "text", Compare::Text),
    // Carriage return; several lines.
    ("/proc/sys/kernel/watchdog", b"1\r\n", "0", Compare::Text),
    ("/proc/sys/kernel/printk", b"7\t4\t1\t7\n", "3 4 1 3", Compare::Text),
    ("/sys/devices/odd/lines", b"one\ntwo\n\nfour", "zero", Compare::Text),
    ("/sys/module/kfence/parameters/sample_interval", b"0x64\n", "0", Compare::Number),
    ("/sys/module/workqueue/parameters/power_efficient", b"Y\n", "N", Compare::Number),
    ("/proc/sys/kernel/watchdog_cpumask", b"0,1,2-3\n", "0", Compare::CpuList),
    ("/sys/devices/virtual/workqueue/cpumask", b"00000000,0000000f\n", "1", Compare::CpuMask),
    ("/sys/kernel/rcu_expedited", b"0\n", "1", Compare::Number),
];

/// The choice in brackets: path, what is there, what is wanted.
const CHOICES: &[(&str, &[u8], &str)] = &[
    ("/sys/kernel/mm/transparent_hugepage/enabled", b"always [madvise] never\n", "never"),
    ("/sys/kernel/mm/transparent_hugepage/defrag", b"[always] defer never", "never"),
];

/// Files: path, what is there with its permissions, what is wanted.
type Former = Option<(&'static [u8], u32)>;
const FILES: &[(&str, Former, Option<&[u8]>)] = &[
    ("/etc/security/limits.d/99-rtproof.conf", None, Some(b"@realtime - rtprio 98\n")),
    ("/etc/sysctl.d/99-odd.conf", Some((b"vm.swappiness=13", 0o600)), Some(b"vm.swappiness = 1\n")),
    ("/etc/modprobe.d/odd.conf", Some((b"\0\xffodd\r\n", 0o4751)), None),
    ("/etc/odd/empty.conf", Some((b"", 0o000)), Some(b"no longer\n")),
    ("/etc/odd/to-empty.conf", Some((b"something\n", 0o640)), Some(b"")),
    ("/etc/odd/name with spaces \u{e9}.conf", Some((b"  \n", 0o666)), Some(b"x")),
    ("/etc/default/grub.d/90-rtproof.cfg", None, Some(b"GRUB_DEFAULT=saved\n")),
    ("/etc/odd/not-there.conf", None, None),
];

/// Makes the machine.
pub(crate) fn machine(root: &Path) {
    for (path, old, ..) in VALUES {
        put(root, path, old);
    }
    for (path, old, _) in CHOICES {
        put(root, path, old);
    }
    for (at, (path, former, _)) in FILES.iter().enumerate() {
        match former {
            Some((old, mode)) => put_odd(root, path, old, *mode, 1_000_000_000 + at as u64),
            None => fs::create_dir_all(root.join(path[1..].rsplit_once('/').expect("a folder").0))
                .expect("a folder"),
        }
    }
    for cpu in 0..4 {
        let cpu = format!("/sys/devices/system/cpu/cpu{cpu}");
        let odd = if cpu.ends_with('2') { "powersave " } else { "powersave" };
        put(root, &format!("{cpu}/cpufreq/scaling_governor"), odd.as_bytes());
        put(root, &format!("{cpu}/cpufreq/scaling_min_freq"), b"800000\n");
        put(root, &format!("{cpu}/cpufreq/scaling_max_freq"), b"1200000\n");
        put(root, &format!("{cpu}/online"), b"1\n");
    }
    put(root, "/sys/devices/system/cpu/online", b"0-3\n");
    for (irq, actions) in [(24, "eth0"), (25, "nvme0q0"), (26, "nvme0q0")] {
        put(root, &format!("/proc/irq/{irq}/smp_affinity_list"), b"0-3\n");
        put(root, &format!("/proc/irq/{irq}/effective_affinity_list"), b"2\n");
        put(root, &format!("/sys/kernel/irq/{irq}/actions"), format!("{actions}\n").as_bytes());
        put(root, &format!("/sys/kernel/irq/{irq}/hwirq"), format!("{}\n", irq * 10).as_bytes());
        put(root, &format!("/sys/kernel/irq/{irq}/chip_name"), b"PCI-MSI\n");
    }
    let block = grub_block("saved_entry=odd one\nkept=yes\n");
    put_odd(root, "/boot/grub/grubenv", &block, 0o640, 1_100_000_000);
    // A link in place of a file, one that leads nowhere, one that leads out of the tree, and a file
    // with two names.
    put_odd(root, "/etc/odd/real.conf", b"behind a link\n", 0o604, 1_200_000_000);
    put_link(root, "/etc/odd/link.conf", "real.conf");
    put_link(root, "/etc/odd/dangling.conf", "../nowhere");
    units(root);
    put(root, "/etc/machine-id", b"0123456789abcdef0123456789abcdef\n");
    fs::create_dir_all(root.join("var/lib")).expect("a folder");
    fs::create_dir_all(root.join("run/lock")).expect("a folder");
}

/// A unit that is enabled, one that is masked by a link with an odd text.
fn units(root: &Path) {
    let unit = b"[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";
    for name in ["irqbalance.service", "odd.service"] {
        put(root, &format!("/usr/lib/systemd/system/{name}"), unit);
    }
    let wants = "/etc/systemd/system/multi-user.target.wants";
    let odd = "../../../../usr/lib/systemd/system/../system/irqbalance.service";
    put_link(root, &format!("{wants}/irqbalance.service"), odd);
    put_link(root, &format!("{wants}/odd.service"), "/lib/systemd/system/odd.service");
}

fn value(path: &str, value: &str, compare: Compare) -> Change {
    Change::Value { path: path.into(), value: value.into(), compare, couples: Vec::new() }
}

/// What is to change.
fn changes() -> Vec<Change> {
    let mut all: Vec<Change> =
        VALUES.iter().map(|(path, _, new, compare)| value(path, new, *compare)).collect();
    all.extend(CHOICES.iter().map(|(path, _, new)| value(path, new, Compare::Choice)));
    for cpu in [2, 3] {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq");
        all.push(value(&format!("{folder}/scaling_max_freq"), "3000000", Compare::Number));
        all.push(value(&format!("{folder}/scaling_min_freq"), "3000000", Compare::Number));
        all.push(value(&format!("{folder}/scaling_governor"), "performance", Compare::Text));
    }
    let cpus = CpuList::new([0]);
    for (number, actions, hwirq) in [(24, "eth0", "240"), (26, "nvme0q0", "260")] {
        let irq = IrqName {
            number,
            actions: actions.into(),
            hwirq: hwirq.into(),
            chip: "PCI-MSI".into(),
        };
        all.push(Change::Irq { irq, cpus: cpus.clone() });
    }
    let folder = |path: &str| Change::Folder { path: path.into() };
    let file = |path: &str, content: Option<&[u8]>, mode| {
        let content = content.map(|bytes| Bytes(bytes.to_vec()));
        Change::File { path: path.into(), content, mode }
    };
    all.extend(FILES.iter().map(|(path, _, new)| file(path, *new, None)));
    all.push(folder("/etc/systemd/system/odd.service.d"));
    all.push(folder("/etc/systemd/system/odd.service.d/deep"));
    let inside = "/etc/systemd/system/odd.service.d/deep/90-rtproof.conf";
    all.push(file(inside, Some(b"[Service]\nCPUAffinity=0\n"), Some(0o640)));
    // There already: nothing to do, and nothing to take away.
    all.push(folder("/etc/odd"));
    all.push(file("/etc/odd/link.conf", Some(b"not a link\n"), None));
    all.push(file("/etc/odd/dangling.conf", None, None));
    let block = "/boot/grub/grubenv";
    for (key, new) in [("next_entry", "rtproof-trial"), ("saved_entry", "0")] {
        all.push(Change::GrubEnv { path: block.into(), key: key.into(), value: new.into() });
    }
    for (unit, want) in
        [("irqbalance.service", UnitState::Disabled), ("odd.service", UnitState::Masked)]
    {
        all.push(Change::Unit { unit: unit.into(), want });
    }
    all
}

/// Number of changes.
pub(crate) fn count() -> usize {
    changes().len()
}

/// The plan in the form of `tune plan --json`: with what each change finds.
fn plan(root: &Path) -> Value {
    let root = Root::open_path(root).expect("the machine");
    let machine = tune::Machine::for_reading(&root, &LiveTasks);
    let step = |change: Change| {
        let before = machine.state(&change).unwrap_or_else(|e| panic!("{}: {e}", change.target()));
        json!({
            "change": change, "before": before,
            "checks": ["test"], "why": "the test wants it", "impact": "tens",
        })
    };
    let steps: Vec<Value> = changes().into_iter().map(step).collect();
    json!({ "schema": "rtproof/plan/1", "steps": steps })
}

/// Ours to keep: journals stay when they are closed.
const OURS: &[&str] = &["var/lib/rtproof", "run/lock", "run/rtproof"];

/// A machine in a folder, and the plan beside it.
pub(crate) struct Machine {
    pub(crate) folder: TempDir,
    pub(crate) before: Snapshot,
}

impl Machine {
    pub(crate) fn new() -> Self {
        // In memory, where there is some: a disk would take most of the time for its barriers.
        let memory = Path::new("/dev/shm");
        let mut builder = tempfile::Builder::new();
        builder.prefix("rtproof-test-");
        let folder = match memory.is_dir() {
            true => builder.tempdir_in(memory),
            false => builder.tempdir(),
        };
        let folder = folder.expect("a temporary folder");
        machine(&folder.path().join("root"));
        let plan = plan(&folder.path().join("root"));
        fs::write(folder.path().join("plan.json"), plan.to_string()).expect("the plan is written");
        let before = snapshot(&folder.path().join("root"), OURS);
        Self { folder, before }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    pub(crate) fn differ(&self) -> Vec<String> {
        differences(&self.before, &snapshot(&self.root(), OURS))
    }

    /// Takes everything back, twice, and compares; forgets the journals.
    #[track_caller]
    pub(crate) fn undone(&self, after: &str) {
        let output = run(self.folder.path(), UNDO);
        let differ = self.differ();
        assert!(
            differ.is_empty() && output.status.success(),
            "{after}: {} files differ:\n{}\n{}\n{}",
            differ.len(),
            differ.join("\n"),
            stdout(&output),
            stderr(&output)
        );
        let again = run(self.folder.path(), UNDO);
        assert_eq!(self.differ(), [""; 0], "{after}: a second undo changes nothing");
        expect_code(&again, 0);
        let _ = fs::remove_dir_all(self.root().join("var/lib/rtproof"));
    }
}

/// Applies the plan.
pub(crate) const APPLY: &[&str] =
    &["tune", "apply", "--root", "root", "--plan", "plan.json", "--yes"];
/// Takes everything back.
pub(crate) const UNDO: &[&str] = &["tune", "undo", "--root", "root"];
