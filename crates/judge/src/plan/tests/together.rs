//! Several findings: order, one target of two, risks, CPUs that go.

use rtproof_host::{
    CpuList, Facts, Knob, Reading,
    knobs::{self, cpu, device},
    tune::{Change, Compare, Scheduling, TaskName, UnitState},
};

use super::{plan_for, shown};
use crate::checks::testing::{cpus, fill_setting, good, good_stock, intent, set_cmdline};
use crate::plan::{Plan, PlanLevel, Selection, make};
use crate::{Finding, Impact, Intent, Remedy, Status, When, checks};

/// A bad finding with these remedies.
fn bad(check: &str, remedies: Vec<Remedy>) -> Finding {
    Finding {
        check: check.into(),
        status: Status::Bad,
        summary: "bad".into(),
        wanted: "better".into(),
        cpus: None,
        evidence: Vec::new(),
        why: format!("why {check}"),
        source: "here".into(),
        remedies,
        when: When::Now,
        impact: Impact::Tens,
        trade_off: None,
        skipped: None,
    }
}

/// The knob whose pattern a path matches.
pub(super) fn knob_at(path: &str) -> &'static Knob {
    let is_name = |(pattern, name): (&str, &str)| {
        let pattern = pattern.replace("{cpu}", "*");
        let (before, after) = pattern.split_once('*').unwrap_or((&pattern, ""));
        let is_open = pattern.contains('*') && name.len() > pattern.len() - 1;
        pattern == name || is_open && name.starts_with(before) && name.ends_with(after)
    };
    let is_at = |pattern: &str| {
        let parts = pattern.split('/').zip(path.split('/'));
        pattern.split('/').count() == path.split('/').count() && parts.into_iter().all(is_name)
    };
    let found = knobs::all().find(|knob| knob.patterns().any(is_at));
    let group = || match path.rsplit('/').next().unwrap() {
        "cgroup.subtree_control" => &cpu::GROUP_CONTROLLERS,
        "cpuset.cpus" => &cpu::GROUP_CPUS,
        "cpuset.cpus.partition" => &cpu::GROUP_PARTITION,
        _ => panic!("no knob for {path}"),
    };
    found.unwrap_or_else(group)
}

fn write(path: &str, value: &str) -> Remedy {
    Remedy::set(knob_at(path), vec![path.into()], value)
}

fn boot(parameter: &str) -> Remedy {
    Remedy::Boot { parameter: parameter.into() }
}

fn unit(unit: &str, action: &str) -> Remedy {
    Remedy::Unit { unit: unit.into(), action: action.into() }
}

fn plan(facts: &Facts, remedies: Vec<(&str, Vec<Remedy>)>) -> Plan {
    let findings: Vec<Finding> =
        remedies.into_iter().map(|(check, remedies)| bad(check, remedies)).collect();
    make(facts, &findings, &intent(), &Selection::default())
}

#[test]
fn the_order_is_the_kernel_s() {
    let cpu = |file: &str| format!("/sys/devices/system/cpu/cpu2/cpufreq/{file}");
    let task = TaskName { tid: 9, start_ticks: Some(1), comm: "x".into() };
    let set = Scheduling { policy: Some("other".into()), ..Scheduling::default() };
    // Backwards, so that only the order can bring them into their places.
    let remedies = vec![
        ("z", vec![Remedy::Hold { limit_us: 0 }]),
        ("y", vec![Remedy::File { path: "/etc/x/rtproof.conf".into(), line: "a = 1".into() }]),
        ("x", vec![Remedy::Task { task, set }]),
        ("w", vec![write("/proc/sys/vm/swappiness", "10")]),
        ("v", vec![write("/sys/devices/virtual/workqueue/cpumask", "3")]),
        ("u", vec![write("/proc/irq/10/smp_affinity_list", "0-1")]),
        ("t", vec![write("/proc/irq/9/smp_affinity_list", "0-1")]),
        ("s", vec![write("/proc/irq/default_smp_affinity", "3")]),
        (
            "r",
            vec![Remedy::Property {
                unit: "x.slice".into(),
                property: "AllowedCPUs".into(),
                value: "0-1".into(),
            }],
        ),
        ("q", vec![write("/sys/fs/cgroup/rtproof/cpuset.cpus.partition", "isolated")]),
        ("p", vec![write("/sys/fs/cgroup/rtproof/cpuset.cpus", "2-3")]),
        ("o", vec![write("/sys/fs/cgroup/cgroup.subtree_control", "+cpuset")]),
        ("n", vec![write("/proc/sys/kernel/watchdog", "0")]),
        ("m", vec![write("/sys/kernel/mm/transparent_hugepage/enabled", "never")]),
        ("l", vec![write("/sys/kernel/debug/sched/fair_server/cpu2/runtime", "0")]),
        ("k", vec![write("/proc/sys/kernel/sched_rt_runtime_us", "-1")]),
        ("j", vec![write(&cpu("scaling_min_freq"), "4100000")]),
        ("i", vec![write(&cpu("scaling_max_freq"), "4100000")]),
        ("h", vec![write(&cpu("scaling_governor"), "performance")]),
        ("g", vec![write("/sys/devices/system/cpu/intel_pstate/no_turbo", "1")]),
        ("f", vec![write("/sys/devices/system/cpu/intel_pstate/status", "passive")]),
        ("e", vec![write("/sys/devices/system/cpu/cpu1/online", "0")]),
        ("d", vec![write("/sys/devices/system/cpu/cpu3/online", "1")]),
        ("c", vec![unit("tuned.service", "disable --now")]),
    ];
    let plan = plan(&good(), remedies);
    assert_eq!(
        shown(&plan),
        [
            "unit tuned.service disabled",
            "hotplug /sys/devices/system/cpu/cpu3/online = 1",
            "hotplug /sys/devices/system/cpu/cpu1/online = 0",
            "/sys/devices/system/cpu/intel_pstate/status = passive",
            "/sys/devices/system/cpu/intel_pstate/no_turbo = 1",
            "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor = performance",
            "/sys/devices/system/cpu/cpu2/cpufreq/scaling_max_freq = 4100000",
            "/sys/devices/system/cpu/cpu2/cpufreq/scaling_min_freq = 4100000",
            "/proc/sys/kernel/sched_rt_runtime_us = -1",
            "/sys/kernel/debug/sched/fair_server/cpu2/runtime = 0",
            "/sys/kernel/mm/transparent_hugepage/enabled = never",
            "/proc/sys/kernel/watchdog = 0",
            "/sys/fs/cgroup/cgroup.subtree_control = +cpuset",
            "/sys/fs/cgroup/rtproof/cpuset.cpus = 2-3",
            "/sys/fs/cgroup/rtproof/cpuset.cpus.partition = isolated",
            "x.slice AllowedCPUs=0",
            "/proc/irq/default_smp_affinity = 1",
            "irq 9  = 0",
            "irq 10  = 0",
            "/sys/devices/virtual/workqueue/cpumask = 1",
            "/proc/sys/vm/swappiness = 10",
            "task 9 x: other",
            "file /etc/systemd/system/rtproof-latency.service",
            "file /etc/x/rtproof.conf: a = 1",
            "unit rtproof-latency.service enabled",
        ],
        "CPU 1 goes, so that nothing is moved to it"
    );
}

#[test]
fn a_maximum_below_the_minimum_of_now_waits_for_the_new_minimum() {
    let cpu = |file: &str| format!("/sys/devices/system/cpu/cpu2/cpufreq/{file}");
    let mut facts = good();
    let least = &mut facts.cpus.cpus[2].freq.min_hz;
    *least = Reading::known(least.path.clone(), 3_000_000_000);
    let remedies = vec![(
        "x",
        vec![
            write(&cpu("scaling_max_freq"), "2000000"),
            write(&cpu("scaling_min_freq"), "2000000"),
        ],
    )];
    let plan = plan(&facts, remedies);
    assert!(shown(&plan)[0].contains("scaling_min_freq"), "{plan:#?}");
}

#[test]
fn one_target_is_one_step_or_a_conflict() {
    let same = || write("/proc/sys/vm/swappiness", "10");
    let plan_of = |remedies| plan(&good(), remedies);
    let both = plan_of(vec![("a", vec![same()]), ("b", vec![same()])]);
    assert_eq!(both.steps.len(), 1);
    assert_eq!(both.steps[0].reason.checks, ["a", "b"]);
    assert_eq!(both.steps[0].reason.why, "why a; why b");

    let other = write("/proc/sys/vm/swappiness", "0");
    let torn = plan_of(vec![("a", vec![same()]), ("b", vec![other])]);
    assert!(torn.steps.is_empty());
    let [conflict] = torn.conflicts.as_slice() else { panic!("{torn:#?}") };
    assert_eq!(conflict.target, "/proc/sys/vm/swappiness");
    let wish = |check: &str, value: &str| (check.to_owned(), value.to_owned());
    assert_eq!(conflict.requests, [wish("a", "10"), wish("b", "0")]);

    let stronger = plan_of(vec![
        ("a", vec![unit("x.service", "stop")]),
        ("b", vec![unit("x.service", "mask")]),
    ]);
    assert_eq!(shown(&stronger), ["unit x.service masked"]);
    let against = plan_of(vec![
        ("a", vec![unit("x.service", "stop")]),
        ("b", vec![unit("x.service", "start")]),
    ]);
    assert_eq!(shown(&against), ["conflict x.service"]);

    let task = || TaskName { tid: 9, start_ticks: Some(1), comm: "x".into() };
    let move_it = Scheduling { cpus: Some(cpus(&[0])), ..Scheduling::default() };
    let lower = Scheduling { policy: Some("other".into()), ..Scheduling::default() };
    let set = |set| vec![Remedy::Task { task: task(), set }];
    let one = plan_of(vec![("a", set(move_it.clone())), ("b", set(lower))]);
    assert_eq!(shown(&one), ["task 9 x: other cpus 0"]);
    let there = Scheduling { cpus: Some(cpus(&[1])), ..Scheduling::default() };
    let torn = plan_of(vec![("a", set(move_it)), ("b", set(there))]);
    assert_eq!(torn.conflicts[0].requests, [wish("a", "CPUs 0"), wish("b", "CPUs 1")]);
}

#[test]
fn boot_words_are_one_for_each_name() {
    let words = |parameters: &[&str]| {
        let names = ["a", "b", "c", "d"];
        let remedies = names.into_iter().zip(parameters).map(|(id, p)| (id, vec![boot(p)]));
        shown(&plan(&good(), remedies.collect()))
    };
    assert_eq!(
        words(&["isolcpus=domain,2-3", "isolcpus=managed_irq,3", "isolcpus=nohz,2"]),
        ["boot isolcpus=managed_irq,domain,nohz,2-3"]
    );
    assert_eq!(words(&["irqaffinity=0-1", "irqaffinity=0"]), ["boot irqaffinity=0"]);
    assert_eq!(words(&["nohz_full=2", "nohz_full=3"]), ["conflict kernel command line: nohz_full"]);
    assert_eq!(words(&["preempt=full", "preempt=lazy"]), ["conflict kernel command line: preempt"]);
    let wanted = Selection { risky: true, ..Selection::default() };
    let findings = [bad("a", vec![boot("mce=ignore_ce")]), bad("b", vec![boot("mce=no_cmci")])];
    let both = make(&good(), &findings, &intent(), &wanted);
    assert_eq!(shown(&both), ["boot mce=ignore_ce", "boot mce=no_cmci"], "words that add up");
    let without = Remedy::Unboot { parameter: "nohz_full".into() };
    let torn = plan(&good(), vec![("a", vec![without]), ("b", vec![boot("nohz_full=1-3")])]);
    assert_eq!(shown(&torn), ["conflict kernel command line: nohz_full"]);
}

#[test]
fn a_word_takes_the_place_of_the_one_that_is_there_and_wins_over_what_only_stays() {
    let mut facts = good();
    set_cmdline(&mut facts, "quiet isolcpus=2");
    let remedies = vec![
        ("boot-persistence", vec![boot("isolcpus=2")]),
        ("a", vec![boot("isolcpus=managed_irq,domain,2-3")]),
    ];
    let plan = plan(&facts, remedies);
    let [word] = plan.boot.as_slice() else { panic!("{plan:#?}") };
    assert_eq!(word.parameter, "isolcpus=managed_irq,domain,2-3");
    assert!(word.removes);
    assert_eq!(word.reason.checks, ["boot-persistence", "a"]);
}

#[test]
fn what_is_risky_waits_until_it_is_named() {
    let mut facts = good();
    fill_setting(&mut facts, &cpu::MCE_IGNORE_CE, "0");
    let findings = checks::judge_all(&facts, &intent());
    let of = |wanted: Selection| make(&facts, &findings, &intent(), &wanted);
    let unnamed = of(Selection { level: PlanLevel::Max, ..Selection::default() });
    assert!(unnamed.steps.is_empty(), "{unnamed:#?}");
    let why = &unnamed.left_out.iter().find(|one| one.check == "mce-ce").unwrap().why;
    assert!(why.starts_with("risky: ") && why.contains("name it"), "{why}");
    let named = of(Selection { ids: vec!["mce-ce".into()], ..Selection::default() });
    let wished = of(Selection { level: PlanLevel::Max, risky: true, ..Selection::default() });
    for plan in [named, wished] {
        let step = &plan.steps[0];
        assert!(step.reason.risk.as_ref().is_some_and(|risk| risk.contains("memory errors")));
    }
}

#[test]
fn nothing_risky_is_planned_by_itself() {
    let risky = [
        boot("mitigations=off"),
        boot("mce=off"),
        boot("idle=poll"),
        boot("nomodeset"),
        boot("efi=noruntime"),
        unit("multipathd.service", "disable --now"),
        unit("NetworkManager.service", "stop"),
        unit("swap.target", "mask"),
        unit("thermald.service", "disable --now"),
        write("/sys/module/kvm/parameters/nx_huge_pages", "N"),
        write("/sys/class/powercap/intel-rapl:0/constraint_0_power_limit_uw", "1"),
    ];
    for remedy in risky {
        let plan = plan(&good(), vec![("a", vec![remedy.clone()])]);
        assert!(plan.steps.is_empty() && plan.boot.is_empty(), "{remedy}");
        assert!(plan.left_out[0].why.starts_with("risky: "), "{remedy}");
    }
    for plain in [
        write("/proc/sys/kernel/sched_rt_runtime_us", "-1"),
        unit("irqbalance.service", "disable --now"),
        boot("nohz_full=2-3"),
        // A change that removes a risk is not risky.
        Remedy::Unboot { parameter: "idle".into() },
    ] {
        assert_eq!(plan(&good(), vec![("a", vec![plain])]).left_out, []);
    }
}

#[test]
fn no_cpu_is_taken_from_a_machine_that_has_no_other() {
    let all = Intent { rt_cpus: CpuList::new(0..4), housekeeping: CpuList::default(), ..intent() };
    let remedies = [
        boot("isolcpus=managed_irq,domain,0-3"),
        boot("nohz_full=0-3"),
        write("/proc/irq/24/smp_affinity_list", "0"),
        write("/sys/devices/virtual/workqueue/cpumask", "0"),
    ];
    for remedy in remedies {
        let findings = [bad("a", vec![remedy.clone()])];
        let plan = make(&good(), &findings, &all, &Selection::default());
        assert!(plan.steps.is_empty() && plan.boot.is_empty(), "{remedy}");
        assert!(plan.left_out[0].why.contains("--cpus"), "{remedy}");
    }
    for word in ["isolcpus=domain,0-3", "nohz_full=0-3", "isolcpus="] {
        let plan = plan(&good(), vec![("a", vec![boot(word)])]);
        assert!(plan.boot.is_empty() && plan.left_out.len() == 1, "{word}: {plan:#?}");
    }
    let both = vec![(
        "a",
        vec![
            write("/sys/devices/system/cpu/cpu1/online", "0"),
            write("/sys/devices/system/cpu/cpu0/online", "0"),
        ],
    )];
    let mut facts = good();
    facts.cpus.online = Reading::known(facts.cpus.online.path.clone(), cpus(&[0, 2, 3]));
    let plan = plan(&facts, both);
    assert!(plan.left_out[0].why.contains("none is left"), "{plan:#?}");
}

#[test]
fn cpus_that_go_offline_are_set_nothing() {
    let mut facts = good();
    for cpu in &mut facts.cpus.cpus {
        let first = cpu.id / 2 * 2;
        cpu.siblings = Reading::known(cpu.siblings.path.clone(), cpus(&[first, first + 1]));
    }
    let cpu = |n: u32| format!("/sys/devices/system/cpu/cpu{n}/cpufreq/scaling_governor");
    let remedies = vec![
        ("smt", vec![write("/sys/devices/system/cpu/smt/control", "off")]),
        ("a", vec![write(&cpu(2), "performance")]),
        ("b", vec![write(&cpu(3), "performance")]),
        ("c", vec![write("/proc/irq/25/smp_affinity_list", "0-1")]),
        ("d", vec![write("/proc/irq/default_smp_affinity", "3")]),
        ("e", vec![write("/proc/irq/24/smp_affinity_list", "1")]),
    ];
    let plan = plan(&facts, remedies);
    assert_eq!(
        shown(&plan),
        [
            "hotplug /sys/devices/system/cpu/smt/control = off",
            "/sys/devices/system/cpu/cpu2/cpufreq/scaling_governor = performance",
            "/proc/irq/default_smp_affinity = 1",
            "irq 25 eth0 = 0",
            "not b: CPUs 1,3 go offline with this plan",
            "not e: CPUs 1,3 go offline with this plan",
        ]
    );
}

#[test]
fn how_a_value_is_compared_and_what_moves_with_it() {
    let cases: [(&str, &str, Compare, &[&str]); 10] = [
        (
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "never",
            Compare::Choice,
            &["/proc/sys/vm/min_free_kbytes"],
        ),
        ("/sys/devices/virtual/workqueue/cpumask", "3", Compare::CpuMask, &[]),
        (
            "/sys/devices/virtual/workqueue/writeback/cpumask",
            "3",
            Compare::CpuMask,
            &["/sys/devices/virtual/workqueue/cpumask"],
        ),
        ("/proc/sys/kernel/watchdog_cpumask", "0-1", Compare::CpuList, &[]),
        ("/proc/irq/default_smp_affinity", "3", Compare::CpuMask, &[]),
        ("/sys/kernel/debug/sched/features", "NO_RT_PUSH_IPI", Compare::Word, &[]),
        ("/sys/module/workqueue/parameters/power_efficient", "Y", Compare::Number, &[]),
        ("/proc/sys/vm/dirty_ratio", "10", Compare::Number, &["/proc/sys/vm/dirty_bytes"]),
        (
            "/proc/sys/kernel/watchdog",
            "0",
            Compare::Number,
            &["/proc/sys/kernel/nmi_watchdog", "/proc/sys/kernel/soft_watchdog"],
        ),
        ("/sys/devices/system/cpu/cpu2/power/pm_qos_resume_latency_us", "n/a", Compare::Text, &[]),
    ];
    for (path, value, compare, couples) in cases {
        let plan = plan(&good(), vec![("a", vec![write(path, value)])]);
        let couples = couples.iter().map(|&path| path.to_owned()).collect();
        let change = Change::Value { path: path.into(), value: value.into(), compare, couples };
        assert_eq!(plan.steps[0].change, change);
    }
}

#[test]
fn the_console_s_level_keeps_the_other_three_numbers() {
    let mut facts = good();
    fill_setting(&mut facts, &device::PRINTK, "7\t4\t1\t7");
    let plan = plan_for(&facts, &intent(), &["printk-console"]);
    assert_eq!(plan.steps[0].change.target(), "/proc/sys/kernel/printk");
    assert!(shown(&plan)[0].ends_with("\t4\t1\t7"), "{plan:#?}");
}

#[test]
fn lines_of_one_file_are_one_change_and_what_is_there_stays() {
    let path = "/etc/security/limits.d/99-rtproof.conf";
    let line = |line: &str| vec![Remedy::File { path: path.into(), line: line.into() }];
    let mut facts = good();
    let mut lines = facts.rights.limit_lines.value().cloned().unwrap_or_default();
    for one in &mut lines {
        one.file = path.into();
    }
    let kept: Vec<String> = lines
        .iter()
        .map(|l| format!("{} {} {} {}", l.domain, l.kind, l.item, l.value))
        .filter(|line| !line.starts_with("@realtime - rtprio"))
        .collect();
    facts.rights.limit_lines = Reading::known("/etc/security/limits.d", lines);
    let remedies = vec![
        ("a", line("@realtime - rtprio 80")),
        ("b", line("@realtime - rtprio 95")),
        ("c", line("@realtime - nice -20")),
    ];
    let plan = plan(&facts, remedies);
    let [step] = plan.steps.as_slice() else { panic!("{plan:#?}") };
    let Change::File { content: Some(content), .. } = &step.change else { panic!() };
    let text = content.text();
    assert!(text.contains("@realtime - rtprio 95\n") && !text.contains("rtprio 80"), "{text}");
    assert!(text.contains("@realtime - nice -20\n"), "{text}");
    assert!(kept.iter().all(|line| text.contains(line.as_str())), "{text}\n{kept:?}");
    assert_eq!(step.reason.checks, ["a", "b", "c"]);

    let ini =
        |line: &str| vec![Remedy::File { path: "/etc/x/rtproof.conf".into(), line: line.into() }];
    let torn = self::plan(
        &good(),
        vec![("a", ini("[Manager] CPUAffinity=0")), ("b", ini("[Manager]\nCPUAffinity=1"))],
    );
    assert_eq!(shown(&torn), ["conflict /etc/x/rtproof.conf: CPUAffinity"]);
}

#[test]
fn what_lasts_has_the_value_that_is_planned() {
    let mut facts = good_stock();
    facts.sched.rt_runtime_us = Reading::known(facts.sched.rt_runtime_us.path.clone(), 950_000);
    let drift = Remedy::File {
        path: crate::plan::SYSCTL_FILE.into(),
        line: "kernel.sched_rt_runtime_us = 950000".into(),
    };
    let findings = [
        bad("persistence-drift", vec![drift]),
        bad("rt-throttling", vec![write("/proc/sys/kernel/sched_rt_runtime_us", "-1")]),
    ];
    let plan = make(&facts, &findings, &intent(), &Selection::default());
    assert_eq!(
        shown(&plan),
        [
            "/proc/sys/kernel/sched_rt_runtime_us = -1",
            "file /etc/sysctl.d/99-zz-rtproof.conf: kernel.sched_rt_runtime_us = -1",
        ]
    );
}

#[test]
fn files_of_others_and_of_processes_are_listed_not_written() {
    let foreign = Remedy::File { path: "/etc/pam.d/sshd".into(), line: "session".into() };
    let remedies = vec![("a", vec![foreign]), ("b", vec![write("/proc/812/timerslack_ns", "1")])];
    let plan = plan(&good(), remedies);
    assert_eq!(
        shown(&plan),
        [
            "human: put \"session\" into /etc/pam.d/sshd",
            "human: as root: echo 1 > /proc/812/timerslack_ns",
        ]
    );
}

#[test]
fn the_first_remedy_is_used_and_early_ones_are_added() {
    let remedies = || {
        vec![
            Remedy::Manual { text: "think".into() },
            write("/proc/irq/default_smp_affinity", "3"),
            boot("irqaffinity=0-1"),
            boot("quiet"),
            Remedy::File { path: "/etc/x/rtproof.conf".into(), line: "a = 1".into() },
            Remedy::Manual { text: "or do".into() },
        ]
    };
    let findings = [bad("a", remedies())];
    let of = |durable| {
        let wanted = Selection { durable, ..Selection::default() };
        shown(&make(&good(), &findings, &intent(), &wanted))
    };
    let now = "/proc/irq/default_smp_affinity = 3";
    assert_eq!(of(false), [now, "boot irqaffinity=0-1", "human: think"]);
    assert_eq!(of(true), [now, "boot irqaffinity=0-1", "boot quiet", "human: think"]);
}

#[test]
fn of_the_ways_to_keep_cpus_awake_one_is_taken() {
    let mut facts = good();
    for cpu in &mut facts.cpus.cpus {
        let mut states = cpu.idle_states.value().cloned().unwrap_or_default();
        states.iter_mut().for_each(|state| state.disabled = false);
        cpu.idle_states = Reading::known(cpu.idle_states.path.clone(), states);
    }
    let findings = checks::judge_all(&facts, &intent());
    let wanted = Selection { level: PlanLevel::Max, ..Selection::default() };
    let plan = make(&facts, &findings, &intent(), &wanted);
    let all = shown(&plan);
    assert!(all[0].contains("cpuidle/state3/disable"), "{all:#?}");
    assert!(!all.iter().any(|line| line.contains("pm_qos") || line.contains("latency.service")));
    let why = "cpuidle-states does it; name this one to have both";
    for check in ["pm-qos-resume", "cpu-dma-latency"] {
        assert!(plan.left_out.iter().any(|one| one.check == check && one.why == why), "{check}");
    }
    let both = plan_for(&facts, &intent(), &["cpuidle-states", "cpu-dma-latency"]);
    let wish = Change::Unit { unit: "rtproof-latency.service".into(), want: UnitState::Enabled };
    assert_eq!(both.steps.last().map(|step| &step.change), Some(&wish));
}

#[test]
fn a_server_goes_after_the_limit_that_would_hold_it() {
    let server =
        || vec![("x", vec![write("/sys/kernel/debug/sched/fair_server/cpu2/runtime", "0")])];
    let off = "/sys/kernel/debug/sched/fair_server/cpu2/runtime = 0";
    let mut facts = good();
    let set = |facts: &mut Facts, limit: i64, period: i64| {
        facts.sched.rt_runtime_us = Reading::known("/proc/sys/kernel/sched_rt_runtime_us", limit);
        facts.sched.rt_period_us = Reading::known("/proc/sys/kernel/sched_rt_period_us", period);
    };
    set(&mut facts, 950_000, 1_000_000);
    let made = plan(&facts, server());
    assert_eq!(shown(&made), ["/proc/sys/kernel/sched_rt_runtime_us = -1", off]);
    assert!(made.steps[0].reason.why.contains("without this limit"));
    for limit in [-1, 1_000_000] {
        set(&mut facts, limit, 1_000_000);
        assert_eq!(shown(&plan(&facts, server())), [off], "{limit}");
    }
}
