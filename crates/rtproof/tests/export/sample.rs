//! A plan with every kind of change, with values and words that are easy to get wrong.

use std::collections::BTreeMap;

use rtproof_host::{
    CpuList,
    tune::{Bytes, Change, Compare, IrqName, Scheduling, State, TaskName, UnitState},
};
use rtproof_judge::{
    Impact,
    plan::{BootWord, Instruction, LeftOut, Plan, Reason, Step},
};

/// A plan and what is known beside it.
pub(crate) struct Sample {
    pub(crate) plan: Plan,
    machine: &'static str,
    realtime: CpuList,
    housekeeping: CpuList,
    before: BTreeMap<String, State>,
}

impl Sample {
    pub(crate) fn source(&self) -> super::ExportSource<'_> {
        super::ExportSource {
            plan: &self.plan,
            machine: self.machine,
            realtime: &self.realtime,
            housekeeping: &self.housekeeping,
            build: Some(&[]),
            before: &self.before,
        }
    }

    pub(crate) fn empty() -> Self {
        Self {
            plan: Plan::default(),
            machine: "Linux 6.12.0-rt x86_64, 4 CPUs",
            realtime: CpuList::new([2, 3]),
            housekeeping: CpuList::new([0, 1]),
            before: BTreeMap::new(),
        }
    }

    pub(crate) fn rich() -> Self {
        let mut sample = Self::empty();
        let changes = values().into_iter().chain(others());
        sample.plan = Plan {
            steps: changes.map(|(check, change)| Step { change, reason: because(check) }).collect(),
            boot: words(),
            instructions: instructions(),
            left_out: vec![LeftOut {
                check: "mitigations".into(),
                why: "risky: name it to have it".into(),
                is_unknown: false,
            }],
            conflicts: Vec::new(),
        };
        for (target, text) in [
            ("/proc/sys/vm/stat_interval", "1\n"),
            ("/proc/sys/kernel/sched_rt_runtime_us", "950000\n"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("/sys/devices/virtual/workqueue/cpumask", "f\n"),
        ] {
            sample.before.insert(
                target.into(),
                State::Value { bytes: Bytes::from(text), couples: Vec::new() },
            );
        }
        let wants = "/etc/systemd/system/multi-user.target.wants/irqbalance.service";
        let links = vec![(wants.into(), "/lib/systemd/system/irqbalance.service".into())];
        let unit = State::Unit { active: true, links, folders: Vec::new() };
        sample.before.insert("irqbalance.service".into(), unit);
        sample
    }
}

/// A reason, with what a comment must not be broken by.
pub(crate) fn because(check: &str) -> Reason {
    Reason {
        checks: vec![check.into()],
        why: format!(
            "why of {check} costs 100 % of {{{{ time }}}}\nand a \u{1b}[31mline $HOME `id`"
        ),
        impact: Impact::Tens,
        trade_off: Some("power; heat".into()),
        risk: None,
    }
}

fn value(path: &str, value: &str, compare: Compare) -> Change {
    Change::Value { path: path.into(), value: value.into(), compare, couples: Vec::new() }
}

/// Values, in an order the kernel takes.
fn values() -> Vec<(&'static str, Change)> {
    let cpu = "/sys/devices/system/cpu";
    let mut all = vec![
        ("stat-interval", value("/proc/sys/vm/stat_interval", "120", Compare::Number)),
        ("rt-throttling", value("/proc/sys/kernel/sched_rt_runtime_us", "-1", Compare::Number)),
        ("printk-console", value("/proc/sys/kernel/printk", "3 4 1 7", Compare::Text)),
        ("ipv6", value("/proc/sys/net/ipv6/conf/eth0.100/disable_ipv6", "1", Compare::Number)),
        ("thp", value("/sys/kernel/mm/transparent_hugepage/enabled", "never", Compare::Choice)),
        ("workqueue", value("/sys/devices/virtual/workqueue/cpumask", "3", Compare::CpuMask)),
        ("irq-default", value("/proc/irq/default_smp_affinity", "3", Compare::CpuMask)),
        ("sched-features", value("/sys/kernel/debug/sched/features", "NO_HRTICK", Compare::Word)),
        ("sched-features", value("/sys/kernel/debug/sched/features", "RT_PUSH_IPI", Compare::Word)),
    ];
    for n in [2, 3] {
        let governor = format!("{cpu}/cpu{n}/cpufreq/scaling_governor");
        all.push(("cpufreq-governor", value(&governor, "performance", Compare::Text)));
        // The largest before the least.
        let max = format!("{cpu}/cpu{n}/cpufreq/scaling_max_freq");
        all.push(("cpufreq-minmax", value(&max, "3000000", Compare::Number)));
        let min = format!("{cpu}/cpu{n}/cpufreq/scaling_min_freq");
        all.push(("cpufreq-minmax", value(&min, "3000000", Compare::Number)));
        for state in [1, 2, 3] {
            let disable = format!("{cpu}/cpu{n}/cpuidle/state{state}/disable");
            all.push(("cpuidle-states", value(&disable, "1", Compare::Number)));
        }
        let server = format!("/sys/kernel/debug/sched/fair_server/cpu{n}/runtime");
        all.push(("fair-server", value(&server, "0", Compare::Number)));
    }
    let group = "/sys/fs/cgroup/rt";
    all.extend([
        ("cpuset", value("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset", Compare::Controller)),
        ("cpuset", Change::Folder { path: group.into() }),
        ("cpuset", value(&format!("{group}/cpuset.cpus"), "2-3", Compare::CpuList)),
        ("cpuset", value(&format!("{group}/cpuset.cpus.partition"), "isolated", Compare::Text)),
    ]);
    all
}

fn irq(number: u32, actions: &str, hwirq: &str) -> IrqName {
    let chip = "PCI-MSI".into();
    IrqName { number, actions: actions.into(), hwirq: hwirq.into(), chip }
}

/// What is not a value.
fn others() -> Vec<(&'static str, Change)> {
    let task = |tid, comm: &str| TaskName { tid, start_ticks: Some(7), comm: comm.into() };
    let fifo = |priority, cpus: Option<CpuList>| Scheduling {
        policy: Some("fifo".into()),
        priority: Some(priority),
        cpus,
        ..Scheduling::default()
    };
    let file = |path: &str, content: Option<&str>| Change::File {
        path: path.into(),
        content: content.map(Bytes::from),
        mode: None,
    };
    let unit = |unit: &str, want| Change::Unit { unit: unit.into(), want };
    let holds = "[Service]\nExecStart=/usr/bin/rtproof tune hold --latency 10us\n";
    let limits = "@realtime - rtprio 95\n@realtime - memlock unlimited\n";
    let pin = Scheduling { cpus: Some(CpuList::new([0, 1])), ..Scheduling::default() };
    vec![
        (
            "irq-affinity",
            Change::Irq { irq: irq(45, "eth0-rx-0", "524289"), cpus: CpuList::new([3]) },
        ),
        ("irq-affinity", Change::Irq { irq: irq(9, "", "9"), cpus: CpuList::new([0, 1]) }),
        ("softirq", Change::Task { task: task(23, "ksoftirqd/2"), set: fifo(2, None) }),
        (
            "irq-thread",
            Change::Task {
                task: task(90, "irq/45-eth0-rx-0"),
                set: fifo(85, Some(CpuList::new([3]))),
            },
        ),
        ("rcuo-affinity", Change::Task { task: task(24, "rcuog/2"), set: pin }),
        ("rogue", Change::Task { task: task(4711, "robot"), set: fifo(80, None) }),
        (
            "smt",
            Change::Hotplug {
                path: "/sys/devices/system/cpu/cpu3/online".into(),
                value: "0".into(),
            },
        ),
        ("limits-rtprio", file("/etc/security/limits.d/99-realtime.conf", Some(limits))),
        ("sysctl-drift", file("/etc/sysctl.d/50-old.conf", None)),
        ("cpu-dma-latency", file("/etc/systemd/system/rtproof-latency.service", Some(holds))),
        ("cpu-dma-latency", unit("rtproof-latency.service", UnitState::Enabled)),
        (
            "boot",
            Change::GrubEnv {
                path: "/boot/grub/grubenv".into(),
                key: "next_entry".into(),
                value: "rtproof".into(),
            },
        ),
        (
            "boot",
            Change::EfiVariable {
                name: "LoaderEntryOneShot-4a67b082-0a4c-41cf-b6c7-440b29bb8c4f".into(),
                value: "rtproof.conf".into(),
            },
        ),
        ("irqbalance", unit("irqbalance.service", UnitState::Disabled)),
        ("background-timers", unit("fwupd-refresh.timer", UnitState::Masked)),
        ("stalld", unit("stalld.service", UnitState::Stopped)),
        (
            "cpuset-shield",
            Change::Property {
                unit: "system.slice".into(),
                property: "AllowedCPUs".into(),
                value: "0-1".into(),
            },
        ),
    ]
}

fn words() -> Vec<BootWord> {
    let word = |check: &str, parameter: &str, removes| BootWord {
        parameter: parameter.into(),
        removes,
        reason: because(check),
    };
    vec![
        word("isolcpus", "isolcpus=managed_irq,domain,2-3", true),
        word("nohz-full", "nohz_full=2-3", false),
        word("rcu-nocbs", "rcu_nocbs=2-3", false),
        word("irqaffinity-boot", "irqaffinity=0-1", false),
        word("idle-poll", "idle", true),
        word("memmap", "memmap=64K$0x1000", false),
        word("skew-tick", "skew_tick=1", false),
    ]
}

fn instructions() -> Vec<Instruction> {
    let instruction = |check: &str, text: &str, options: &[&str]| Instruction {
        text: text.into(),
        build_options: options.iter().map(|&option| option.to_owned()).collect(),
        reason: because(check),
    };
    vec![
        instruction("preempt-rt", "use a kernel with PREEMPT_RT", &["PREEMPT_RT=y"]),
        instruction("config-hz", "use a kernel with HZ=1000", &["HZ_1000=y", "HZ=1000"]),
        instruction(
            "config-debug-heavy",
            "use a kernel built without CONFIG_PROVE_LOCKING, CONFIG_KASAN",
            &["PROVE_LOCKING=n", "KASAN=n"],
        ),
        instruction("cmdline", "build the words in", &["CMDLINE=\"quiet\""]),
        instruction("smi-count", "ask the firmware's maker about SMIs", &[]),
    ]
}
