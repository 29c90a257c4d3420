//! Plans as text.

use rtproof_host::{
    CpuList,
    tune::{Bytes, Change, Compare, IrqName, Scheduling, State, TaskName, UnitState},
};
use rtproof_judge::{
    Impact,
    plan::{BootWord, Instruction, Reason, Step},
};
use rtproof_results::tune::{BootPreview, Previewed};

use super::steps;
use crate::text::{Glyphs, Terminal, WIDTH_MAX};

fn reason() -> Reason {
    Reason {
        checks: vec!["ksm".into()],
        why: "it scans".into(),
        impact: Impact::Tens,
        trade_off: Some("more memory".into()),
        risk: None,
    }
}

fn value(path: &str, new: &str, old: Option<&str>) -> Previewed {
    let change = Change::Value {
        path: path.into(),
        value: new.into(),
        compare: Compare::Text,
        couples: Vec::new(),
    };
    let before = old.map(|old| State::Value { bytes: old.into(), couples: Vec::new() });
    let unknown = old.is_none().then(|| "refused".to_owned());
    Previewed { step: Step { change, reason: reason() }, before, unknown }
}

fn plain(show: impl FnOnce(&mut Terminal) -> std::io::Result<()>) -> String {
    let mut text = Terminal::new(WIDTH_MAX, Glyphs::BLOCKS);
    show(&mut text).unwrap();
    anstream::adapter::strip_str(&text.shown()).to_string()
}

#[test]
fn equal_changes_of_many_cpus_are_one() {
    let all: Vec<Previewed> = [0, 1, 2, 5]
        .iter()
        .map(|cpu| {
            value(&format!("/sys/cpu/cpu{cpu}/governor"), "performance", Some("powersave\n"))
        })
        .chain([value("/sys/cpu/cpu9/governor", "performance", Some("schedutil\n"))])
        .chain([value("/sys/cpu/cpu9/limit", "performance", Some("powersave\n"))])
        .collect();
    let all: Vec<&Previewed> = all.iter().collect();
    let shown: Vec<(String, usize)> =
        super::fold(&all[..5], 8).into_iter().map(|it| (it.target, it.count)).collect();
    let expected = [("/sys/cpu/cpu{0-2,5}/governor".to_owned(), 4)];
    assert_eq!(shown[..1], expected);
    assert_eq!(shown[1], ("/sys/cpu/cpu9/governor".to_owned(), 1));
    // What differs in two names is shown one by one.
    assert_eq!(super::fold(&all, 8).len(), 6);
}

#[test]
fn names_without_a_number_and_interrupts() {
    let devices = [value("/sys/eth0/x", "1", Some("0")), value("/sys/wlan1/x", "1", Some("0"))];
    let devices: Vec<&Previewed> = devices.iter().collect();
    assert_eq!(super::fold(&devices, 8)[0].target, "/sys/{eth0,wlan1}/x");
    let irq = |number: u32, name: &str| Previewed {
        step: Step {
            change: Change::Irq {
                irq: IrqName {
                    number,
                    actions: name.into(),
                    hwirq: String::new(),
                    chip: String::new(),
                },
                cpus: CpuList::new([0, 1]),
            },
            reason: reason(),
        },
        before: Some(State::Value { bytes: "0-3\n".into(), couples: Vec::new() }),
        unknown: None,
    };
    let irqs = [irq(24, "nvme0q1"), irq(25, "nvme0q2"), irq(30, "eth0")];
    let irqs: Vec<&Previewed> = irqs.iter().collect();
    let folded = super::fold(&irqs, 8);
    assert_eq!(folded[0].target, "IRQ {24-25,30} (nvme0q1, nvme0q2, eth0)");
    let (old, new) = irqs[0].step.change.lines(irqs[0].before.as_ref());
    assert_eq!((old[0].as_str(), new[0].as_str()), ("CPUs 0-3", "CPUs 0-1"));
    // Names of tasks hold what separates the words of other targets.
    let task = |(tid, comm): (u32, &str)| Previewed {
        step: Step {
            change: Change::Task {
                task: TaskName { tid, start_ticks: Some(1), comm: comm.into() },
                set: Scheduling { cpus: Some(CpuList::new([0])), ..Scheduling::default() },
            },
            reason: reason(),
        },
        before: None,
        unknown: Some("no rights".into()),
    };
    let tasks = [(2, "kthreadd"), (16, "rcuop/0"), (17, "a (b) c"), (18, "ksmd")].map(task);
    let tasks: Vec<&Previewed> = tasks.iter().collect();
    let folded = super::fold(&tasks, 3);
    assert_eq!((folded.len(), folded[0].count), (1, 4));
    assert_eq!(folded[0].target, "task {2,16-18} (kthreadd, rcuop/0, a (b) c, … 1 more)");
    let all = &super::fold(&tasks, usize::MAX)[0].target;
    assert_eq!(all, "task {2,16-18} (kthreadd, rcuop/0, a (b) c, ksmd)");
}

#[test]
fn a_step_shows_everything_known() {
    let mut risky = value("/proc/sys/x", "0", None);
    risky.step.reason.risk = Some("less security".into());
    let text = plain(|to| steps(to, &[value("/sys/run", "0", Some("1\n")), risky], true));
    for part in [
        "Running kernel: 2 changes (until the next boot",
        "  /sys/run\n    - 1\n    + 0\n",
        "why  it scans (ksm; costs tens of µs)",
        "but  more memory",
        "RISK less security",
        "? not known: refused\n    + 0",
        "rtproof check explain ksm",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn files_show_the_lines_that_change() {
    let file = |content: Option<&str>| Change::File {
        path: "/etc/x".into(),
        content: content.map(Bytes::from),
        mode: None,
    };
    let old = State::File {
        bytes: "one\ntwo\nthree\n".into(),
        mode: 0o644,
        uid: 0,
        gid: 0,
        modified_ns: 0,
        attributes: Vec::new(),
    };
    let lines = |change: &Change, before| change.lines(Some(before));
    let of = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    assert_eq!(lines(&file(Some("one\n2\n2b\nthree\n")), &old), (of(&["two"]), of(&["2", "2b"])));
    assert_eq!(lines(&file(Some("new\n")), &State::Absent), (of(&[]), of(&["new"])));
    assert_eq!(lines(&file(None), &old), (of(&["one", "two", "three"]), of(&[])));
    let long: String = (0..40).map(|n| format!("{n}\n")).collect();
    let (_, new) = lines(&file(Some(&long)), &State::Absent);
    assert!(new.len() < 20 && new.last().unwrap().contains("28 more lines"), "{new:?}");
}

#[test]
fn states_of_tasks_units_and_words() {
    let task = TaskName { tid: 7, start_ticks: None, comm: "loop".into() };
    let set = Scheduling {
        policy: Some("fifo".into()),
        priority: Some(50),
        cpus: Some(CpuList::new([2])),
        ..Scheduling::default()
    };
    let now = Scheduling { policy: Some("other".into()), ..set.clone() };
    let now = Scheduling { priority: None, nice: Some(5), ..now };
    let change = Change::Task { task, set };
    assert_eq!(change.before(&State::Task { scheduling: now }), "other, CPU 2");
    assert_eq!(change.after(), "fifo 50, CPU 2");
    let unit = Change::Unit { unit: "x.service".into(), want: UnitState::Masked };
    let enabled =
        ("/etc/systemd/system/multi-user.target.wants/x.service".into(), "/lib/x.service".into());
    let state = State::Unit { active: true, links: vec![enabled], folders: Vec::new() };
    assert_eq!(unit.before(&state), "running, enabled");
    assert_eq!(unit.after(), "not running, masked");
    let feature = Change::Value {
        path: "/sys/kernel/debug/sched/features".into(),
        value: "NO_TTWU_QUEUE".into(),
        compare: Compare::Word,
        couples: Vec::new(),
    };
    let state = State::Value { bytes: "GENTLE TTWU_QUEUE HRTICK\n".into(), couples: Vec::new() };
    assert_eq!(feature.before(&state), "TTWU_QUEUE");
}

#[test]
fn words_are_a_diff_of_the_line() {
    let word = |parameter: &str, removes| BootWord {
        parameter: parameter.into(),
        removes,
        reason: reason(),
    };
    let boot = BootPreview {
        words: vec![word("isolcpus=2-3", true), word("nohz", true), word("mce=ignore_ce", false)],
        now: Some("ro isolcpus=2 nohz=off mce=off".into()),
        then: Some("ro isolcpus=2-3 mce=off mce=ignore_ce".into()),
        loader: Some("GRUB 2".into()),
        entry: Some("real-time".into()),
        ..BootPreview::default()
    };
    let text = plain(|to| super::boot(to, &boot, false));
    for part in [
        "Next boot: 3 parameters",
        "entry \"real-time\" of GRUB 2",
        "    - isolcpus=2\n    + isolcpus=2-3\n",
        "    - nohz=off\n      why",
        "      but  more memory\n    + mce=ignore_ce\n",
        "    - ro isolcpus=2 nohz=off mce=off\n    + ro isolcpus=2-3 mce=off mce=ignore_ce\n",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
}

#[test]
fn another_way_for_the_same_check_is_no_second_entry() {
    let by_hand = |text: &str, options: &[&str]| Instruction {
        text: text.into(),
        build_options: options.iter().map(|option| (*option).to_owned()).collect(),
        reason: reason(),
    };
    let all = [by_hand("install a kernel", &[]), by_hand("use a kernel built with X", &["X=y"])];
    let text = plain(|to| super::instructions(to, &all, true));
    assert!(text.contains("By hand: 1 ") && text.contains("CONFIG_X=y"), "{text}");
    assert!(!text.contains("built with") && text.matches("why").count() == 1, "{text}");
    let alone = plain(|to| super::instructions(to, &all[1..], false));
    assert!(alone.contains("use a kernel built with X"), "{alone}");
}
