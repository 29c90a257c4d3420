//! The whole lists of S0, S1 and S2 (docs/coverage.md): for each item a machine where it is wrong,
//! and the plan for it.

use std::collections::BTreeMap;

use rtproof_host::{
    CpuList, Facts, Knob, Reading,
    facts::{
        irq::Irqbalance,
        isolation::{Cpusets, Hierarchy},
        sched::FairServer,
        tasks::TaskGroup,
        virt::Unit,
    },
    knobs::{cpu, power},
    tune::TaskName,
};

use super::{plan_for, shown};
use crate::checks::testing::{
    cpus, fill_setting, good, good_stock, intent, irq, set_cmdline, set_config, task,
};
use crate::profile::{Choice, IsolationMethod, WorkloadKind};
use crate::{Intent, Profile};

/// One item: what makes the machine wrong, the checks named, the plan.
struct Item {
    name: &'static str,
    machine: fn() -> (Facts, Intent),
    ids: &'static [&'static str],
    plan: &'static [&'static str],
}

fn with(change: impl FnOnce(&mut Facts)) -> (Facts, Intent) {
    let mut facts = good();
    change(&mut facts);
    (facts, intent())
}

fn busy_poll(change: impl FnOnce(&mut Facts)) -> (Facts, Intent) {
    let mut facts = good();
    change(&mut facts);
    (facts, Intent { profile: Profile::of(WorkloadKind::BusyPoll), ..intent() })
}

fn set<T>(reading: &mut Reading<T>, value: T) {
    *reading = Reading::known(reading.path.clone(), value);
}

fn with_smt(facts: &mut Facts) {
    set(&mut facts.cpus.smt_control, "on".into());
    set(&mut facts.cpus.smt_active, true);
    // Eight threads: 0 with 4, 1 with 5, 2 with 6, 3 with 7.
    let four = facts.cpus.cpus.clone();
    for cpu in four {
        let mut second = cpu.clone();
        second.id = cpu.id + 4;
        facts.cpus.cpus.push(second);
    }
    for cpu in &mut facts.cpus.cpus {
        let first = cpu.id % 4;
        set(&mut cpu.siblings, cpus(&[first, first + 4]));
    }
    for list in [&mut facts.cpus.online, &mut facts.cpus.possible] {
        set(list, CpuList::new(0..8));
    }
}

fn without_isolation(facts: &mut Facts) {
    set_cmdline(facts, "quiet");
    set(&mut facts.cpus.isolated, CpuList::default());
    set(&mut facts.cpus.nohz_full, CpuList::default());
}

fn with_unit(facts: &mut Facts, name: &str) {
    let unit = Unit {
        file: format!("/usr/lib/systemd/system/{name}"),
        enabled: true,
        masked: false,
        running: Some(true),
    };
    let mut units: BTreeMap<String, Unit> = facts.units.value().cloned().unwrap_or_default();
    units.insert(name.into(), unit);
    set(&mut facts.units, units);
}

fn with_deep_states(facts: &mut Facts) {
    for cpu in &mut facts.cpus.cpus {
        let mut states = cpu.idle_states.value().cloned().unwrap_or_default();
        states.iter_mut().for_each(|state| state.disabled = false);
        set(&mut cpu.idle_states, states);
    }
}

fn with_irqbalance(facts: &mut Facts) {
    let balance = Irqbalance { running: Some(612), enabled: true, banned: None, banned_from: None };
    set(&mut facts.irqs.irqbalance, balance);
}

fn add_rt_task(facts: &mut Facts, one: rtproof_host::facts::tasks::RtTask) {
    let mut tasks = facts.rt_tasks.value().cloned().unwrap_or_default();
    tasks.push(one);
    set(&mut facts.rt_tasks, tasks);
}

fn with_detector(facts: &mut Facts, knob: &Knob) {
    fill_setting(facts, knob, "1");
    fill_setting(facts, &cpu::WATCHDOG_CPUMASK, "0-3");
}

const ITEMS: &[Item] = &[
    Item {
        name: "SMT (S0, S1)",
        machine: || with(with_smt),
        ids: &["smt"],
        plan: &["hotplug /sys/devices/system/cpu/smt/control = off", "boot nosmt"],
    },
    Item {
        name: "governor (S0, S1, S2)",
        machine: || with(|facts| set(&mut facts.cpus.cpus[3].freq.governor, "powersave".into())),
        ids: &["cpufreq-governor"],
        plan: &[
            "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor = performance",
            "boot cpufreq.default_governor=performance",
        ],
    },
    Item {
        name: "fixed frequency (S2)",
        machine: || with(|facts| set(&mut facts.cpus.cpus[3].freq.governor, "powersave".into())),
        ids: &["cpufreq-minmax"],
        plan: &[
            "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor = performance",
            "/sys/devices/system/cpu/cpu3/cpufreq/scaling_min_freq = 4100000",
        ],
    },
    Item {
        name: "C-states, one by one (S1)",
        machine: || with(with_deep_states),
        ids: &["cpuidle-states"],
        plan: &[
            "/sys/devices/system/cpu/cpu2/cpuidle/state3/disable = 1",
            "/sys/devices/system/cpu/cpu3/cpuidle/state3/disable = 1",
            "boot intel_idle.max_cstate=1",
        ],
    },
    Item {
        name: "C-states, the limit that is held (S1)",
        machine: || with(with_deep_states),
        ids: &["cpu-dma-latency"],
        plan: &[
            "file /etc/systemd/system/rtproof-latency.service",
            "unit rtproof-latency.service enabled",
        ],
    },
    Item {
        name: "C-states, each CPU's own limit",
        machine: || with(with_deep_states),
        ids: &["pm-qos-resume"],
        plan: &[
            "/sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us = 25",
            "/sys/devices/system/cpu/cpu3/power/pm_qos_resume_latency_us = 25",
        ],
    },
    Item {
        name: "C-states at boot (S1, S2)",
        machine: || {
            with(|facts| {
                with_deep_states(facts);
                set_cmdline(facts, "quiet processor.max_cstate=1");
            })
        },
        ids: &["cstate-cmdline"],
        plan: &["boot intel_idle.max_cstate=1"],
    },
    Item {
        name: "turbo (S1)",
        machine: || {
            let (mut facts, mut intent) = with(|_| {});
            fill_setting(&mut facts, &power::NO_TURBO, "0");
            intent.profile.choices.turbo = Choice::Off;
            (facts, intent)
        },
        ids: &["turbo-boost"],
        plan: &["/sys/devices/system/cpu/intel_pstate/no_turbo = 1"],
    },
    Item {
        name: "RT throttling (S0)",
        machine: || {
            let mut facts = good_stock();
            set(&mut facts.sched.rt_runtime_us, 950_000);
            (facts, intent())
        },
        ids: &["rt-throttling"],
        plan: &[
            "/proc/sys/kernel/sched_rt_runtime_us = -1",
            "file /etc/sysctl.d/99-zz-rtproof.conf: kernel.sched_rt_runtime_us = -1",
        ],
    },
    Item {
        name: "fair server",
        machine: || {
            with(|facts| {
                let server =
                    |cpu| FairServer { cpu, runtime_ns: 50_000_000, period_ns: 1_000_000_000 };
                set(&mut facts.sched.fair_server, (0..4).map(server).collect());
            })
        },
        ids: &["fair-server"],
        plan: &[
            "/sys/kernel/debug/sched/fair_server/cpu2/runtime = 0",
            "/sys/kernel/debug/sched/fair_server/cpu3/runtime = 0",
        ],
    },
    Item {
        name: "rogue tasks: a service (S0)",
        machine: || {
            with(|facts| {
                let unit = Some("chatty.service".to_owned());
                let mut one = task(812, "chatty", 90, &[0, 1, 2, 3], false);
                one.unit = unit;
                add_rt_task(facts, one);
            })
        },
        ids: &["rogue-rt-tasks"],
        plan: &["unit chatty.service disabled"],
    },
    Item {
        name: "rogue tasks: a session's",
        machine: || with(|facts| add_rt_task(facts, task(813, "jackd", 90, &[0, 1, 2, 3], false))),
        ids: &["rogue-rt-tasks"],
        plan: &["task 813 jackd: other"],
    },
    Item {
        name: "isolcpus (S0, S1, S2)",
        machine: || with(without_isolation),
        ids: &["isolcpus"],
        plan: &["boot isolcpus=managed_irq,domain,2-3"],
    },
    Item {
        name: "isolation by a partition",
        machine: || {
            let (mut facts, mut intent) = with(without_isolation);
            let found = Cpusets {
                hierarchy: Hierarchy::V2,
                effective: Some(cpus(&[0, 1, 2, 3])),
                groups: Vec::new(),
                is_complete: true,
            };
            set(&mut facts.isolation.cpusets, found);
            intent.profile.choices.isolation = IsolationMethod::Cpuset;
            (facts, intent)
        },
        ids: &["cpuset-partition"],
        plan: &[
            "folder /sys/fs/cgroup/rtproof",
            "/sys/fs/cgroup/cgroup.subtree_control = +cpuset",
            "/sys/fs/cgroup/rtproof/cpuset.cpus = 2-3",
            "/sys/fs/cgroup/rtproof/cpuset.cpus.partition = isolated",
            "human: put the application into the partition, nobody else may use its CPUs: write \
             its process id to /sys/fs/cgroup/rtproof/cgroup.procs, as root",
        ],
    },
    Item {
        name: "nohz_full (S0, S1, S2)",
        machine: || busy_poll(without_isolation),
        ids: &["nohz-full"],
        plan: &["boot nohz_full=2-3"],
    },
    Item {
        name: "rcu_nocbs (S1)",
        machine: || with(without_isolation),
        ids: &["rcu-nocbs"],
        plan: &["boot rcu_nocbs=2-3"],
    },
    Item {
        name: "IRQ affinity (S1, S2)",
        machine: || {
            with(|facts| {
                let mut irqs = vec![irq(25, "eth0", &[0, 1, 2, 3], &[2])];
                let mut queue = irq(30, "nvme0q3", &[3], &[3]);
                queue.managed = true;
                irqs.push(queue);
                set(&mut facts.irqs.irqs, irqs);
            })
        },
        ids: &["irq-affinity"],
        plan: &[
            "irq 25 eth0 = 0-1",
            "not irq-affinity: interrupt 30 (nvme0q3) is managed: the kernel places it, and \
             nobody else can; isolcpus=managed_irq,... keeps it away (from Linux 5.6 on), or fewer \
             queues of its device",
        ],
    },
    Item {
        name: "IRQ affinity from the start (S1)",
        machine: || {
            with(|facts| {
                set_cmdline(facts, "quiet isolcpus=managed_irq,domain,2-3");
                set(&mut facts.irqs.default_affinity, cpus(&[0, 1, 2, 3]));
            })
        },
        ids: &["irqaffinity-boot"],
        plan: &["/proc/irq/default_smp_affinity = 3", "boot irqaffinity=0-1"],
    },
    Item {
        name: "irqbalance (S1)",
        machine: || with(with_irqbalance),
        ids: &["irqbalance"],
        plan: &["unit irqbalance.service disabled"],
    },
    Item {
        name: "limits.d (S0)",
        machine: || {
            with(|facts| {
                let none = rtproof_host::facts::rights::Limit { soft: Some(0), hard: Some(0) };
                let little = rtproof_host::facts::rights::Limit { soft: Some(8), hard: Some(8) };
                set(&mut facts.limits.rtprio, none);
                set(&mut facts.limits.memlock, little);
            })
        },
        ids: &["limits-rtprio", "limits-memlock"],
        plan: &[
            "file /etc/security/limits.d/99-rtproof.conf: @realtime - rtprio 95; \
             @realtime - memlock unlimited",
            "group realtime",
            "human: say who is to be in the group realtime: add --user NAME to this command",
        ],
    },
    Item {
        name: "machine checks (S2)",
        machine: || with(|facts| fill_setting(facts, &cpu::MCE_IGNORE_CE, "0")),
        ids: &["mce-ce"],
        plan: &[
            "/sys/devices/system/machinecheck/machinecheck0/ignore_ce = 1",
            "boot mce=ignore_ce",
        ],
    },
    Item {
        name: "soft lockup detector (S0, S2)",
        machine: || with(|facts| with_detector(facts, &cpu::SOFT_WATCHDOG)),
        ids: &["soft-watchdog"],
        plan: &["/proc/sys/kernel/soft_watchdog = 0", "boot nosoftlockup"],
    },
    Item {
        name: "hard lockup detector",
        machine: || with(|facts| with_detector(facts, &cpu::NMI_WATCHDOG)),
        ids: &["nmi-watchdog"],
        plan: &["/proc/sys/kernel/nmi_watchdog = 0", "boot nmi_watchdog=0"],
    },
    Item {
        name: "stat_interval (S2)",
        machine: || {
            with(|facts| {
                without_isolation(facts);
                fill_setting(facts, &cpu::STAT_INTERVAL, "1");
            })
        },
        ids: &["stat-interval"],
        plan: &["/proc/sys/vm/stat_interval = 10"],
    },
    Item {
        name: "THP (S2)",
        machine: || {
            let mut facts = good_stock();
            set(&mut facts.memory.thp_enabled, "always".into());
            (facts, intent())
        },
        ids: &["thp"],
        plan: &[
            "/sys/kernel/mm/transparent_hugepage/enabled = never",
            "boot transparent_hugepage=never",
        ],
    },
    Item {
        name: "clocksource (S2)",
        machine: || with(|facts| set(&mut facts.clock.source, "hpet".into())),
        ids: &["clocksource"],
        plan: &[
            "/sys/devices/system/clocksource/clocksource0/current_clocksource = tsc",
            "boot clocksource=tsc",
        ],
    },
    Item {
        name: "idle=poll (S1, S2)",
        machine: || {
            let (facts, mut intent) = with(|_| {});
            intent.profile.choices.idle_poll = Choice::On;
            (facts, intent)
        },
        ids: &["idle-poll"],
        plan: &["boot idle=poll"],
    },
    Item {
        name: "idle=poll, taken away",
        machine: || {
            with(|facts| {
                set_cmdline(facts, "quiet idle=poll");
                set(&mut facts.cpus.cpus[3].siblings, cpus(&[1, 3]));
            })
        },
        ids: &["idle-poll"],
        plan: &["boot without idle"],
    },
    Item {
        name: "workers of the kernel",
        machine: || {
            with(|facts| {
                without_isolation(facts);
                fill_setting(facts, &cpu::WORKQUEUE_CPUMASK, "f");
            })
        },
        ids: &["workqueue-cpumask"],
        plan: &["/sys/devices/virtual/workqueue/cpumask = 3", "boot workqueue.unbound_cpus=0-1"],
    },
    Item {
        name: "threads of the kernel",
        machine: || {
            with(|facts| {
                let mut groups = facts.placement.value().cloned().unwrap_or_default();
                let one =
                    |tid, comm: &str| TaskName { tid, start_ticks: Some(7), comm: comm.into() };
                groups.push(TaskGroup {
                    name: "kswapdN".into(),
                    kernel_thread: true,
                    bound: false,
                    cpus: Some(cpus(&[0, 1, 2, 3])),
                    policy: None,
                    unit: None,
                    count: 2,
                    tid: 61,
                    tasks: vec![one(61, "kswapd0"), one(62, "kswapd1")],
                });
                set(&mut facts.placement, groups);
            })
        },
        ids: &["kthread-affinity"],
        plan: &["task 61 kswapd0: cpus 0-1", "task 62 kswapd1: cpus 0-1"],
    },
    Item {
        name: "competing daemons",
        machine: || with(|facts| with_unit(facts, "tlp.service")),
        ids: &["power-daemons"],
        plan: &["unit tlp.service disabled"],
    },
    Item {
        name: "kernel build (S0, S1)",
        machine: || with(|facts| set_config(facts, "CPU_ISOLATION", None)),
        ids: &["config-cpu-isolation"],
        plan: &["human: use a kernel built with CONFIG_CPU_ISOLATION"],
    },
];

#[test]
fn each_item_of_the_lists_is_planned() {
    let mut wrong = String::new();
    for item in ITEMS {
        let (facts, intent) = (item.machine)();
        let plan = plan_for(&facts, &intent, item.ids);
        if shown(&plan) != item.plan {
            wrong.push_str(&format!("{}: {:#?}\n", item.name, shown(&plan)));
        }
        for step in &plan.steps {
            let json = serde_json::to_string(&step.change).unwrap();
            assert_eq!(
                serde_json::from_str::<rtproof_host::tune::Change>(&json).unwrap(),
                step.change
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The page that lists what is covered.
const PAGE: &str = include_str!("../../../../../docs/coverage.md");

#[test]
fn the_page_has_each_item_and_what_becomes_of_it() {
    for item in ITEMS {
        let start = format!("| {} | ", item.name);
        let row = PAGE.lines().find(|line| line.starts_with(&start));
        let row = row.unwrap_or_else(|| panic!("docs/coverage.md has no row: {start}"));
        for id in item.ids {
            assert!(row.contains(&format!("`{id}`")), "{}: {id}\n{row}", item.name);
        }
        let ours =
            item.plan.iter().filter(|line| !line.starts_with("not ") && !line.starts_with("human"));
        for line in ours {
            let target = line.split(" = ").next().unwrap_or(line);
            let target = target.split(": ").next().unwrap_or(target);
            assert!(row.contains(target), "{}: {target}\n{row}", item.name);
        }
    }
}
