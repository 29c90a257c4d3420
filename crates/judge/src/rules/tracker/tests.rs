//! Made-up events of threads, and what is a breach of them.

use super::*;

struct Known(bool);

impl Outside for Known {
    fn descriptor(&mut self, _: u32, _: u64) -> Option<String> {
        None
    }

    fn class(&mut self, _: u32) -> Option<(bool, i32)> {
        Some(if self.0 { (true, 19) } else { (false, 120) })
    }

    fn is_same_mapping(&mut self, _: u32, a: u64, b: u64) -> Option<bool> {
        Some(a / 0x1000 == b / 0x1000)
    }
}

const NAMES: &[(i64, &str)] =
    &[(9, "mmap"), (202, "futex"), (56, "clone"), (230, "clock_nanosleep")];

fn event(time_ns: u64, tid: u32, what: ProgramEventData) -> ProgramEvent {
    ProgramEvent { time_ns, cpu: 1, pid: 7, tid, what, stack: None }
}

fn rules(is_real_time: bool, all: Vec<ProgramEvent>) -> (Vec<Rule>, Tracker) {
    let mut outside = Known(is_real_time);
    let mut tracker = Tracker::new(7, NAMES, None);
    tracker.begin(10, &mut outside);
    all.into_iter().for_each(|it| tracker.take(it, &mut outside));
    tracker.finish();
    (tracker.found().iter().map(|it| it.rule).collect(), tracker)
}

fn enter(number: i64, args: [u64; 6]) -> ProgramEventData {
    ProgramEventData::Enter { number, args }
}

/// In a PID namespace.
fn switched(priority: i32) -> ProgramEventData {
    ProgramEventData::SwitchedOut { number: 1007, priority }
}

fn exit(number: i64) -> ProgramEventData {
    ProgramEventData::Exit { number, result: 0 }
}

#[test]
fn a_breach_counts_from_real_time_threads_and_from_when_it_is_ready() {
    let calls = |at| vec![event(at, 7, enter(9, [0; 6])), event(at + 1, 7, exit(9))];
    assert_eq!(rules(true, calls(20)).0, [Rule::Memory]);
    assert_eq!(rules(false, calls(20)).0, []);
    assert_eq!(rules(true, calls(5)).0, []);
    // A call that never returns.
    assert_eq!(rules(true, vec![event(20, 7, enter(9, [0; 6]))]).0, [Rule::Memory]);
    let sleep = [1, 1, 0, 0, 0, 0];
    assert_eq!(rules(true, vec![event(20, 7, enter(230, sleep))]).0, []);
}

#[test]
fn a_thread_that_lives_between_two_looks_is_judged_by_its_birth() {
    let made = ProgramEventData::Forked { pid: 7, tid: 8, parent_pid: 7, parent: 7 };
    for (priority, found) in [(19, vec![Rule::Migration]), (120, vec![])] {
        let all = vec![
            event(20, 7, made.clone()),
            event(21, 7, ProgramEventData::Born { priority }),
            event(22, 8, ProgramEventData::Migrated),
            event(23, 8, ProgramEventData::Ended),
        ];
        assert_eq!(rules(false, all).0, found);
    }
}

#[test]
fn a_priority_that_is_inherited_is_not_the_threads_own() {
    let boosted = event(20, 7, switched(19));
    let (found, tracker) = rules(false, vec![boosted, event(21, 7, ProgramEventData::Migrated)]);
    assert_eq!(found, []);
    assert!(!tracker.threads()[&7].was_real_time);
    // One that was made ordinary from outside.
    let lowered = event(20, 7, switched(120));
    assert_eq!(rules(true, vec![lowered]).0, [Rule::Scheduling]);
}

#[test]
fn a_lock_counts_where_it_was_waited_for() {
    let lock = || event(20, 7, enter(202, [0, 128, 2, 0, 0, 0]));
    assert_eq!(rules(true, vec![lock(), event(21, 7, exit(202))]).0, []);
    let waits = event(21, 7, switched(19));
    let wakes = event(22, 9, ProgramEventData::Wakes { number: 1007 });
    let all = vec![lock(), waits, wakes, event(25, 7, exit(202))];
    let (found, tracker) = rules(true, all);
    assert_eq!(found, [Rule::Lock]);
    assert_eq!(tracker.numbers, BTreeMap::from([(1007, 7)]));
    // Never got: it waits to the end, or its time is up, whoever's interrupt woke it.
    let waits = || event(21, 7, switched(19));
    assert_eq!(rules(true, vec![lock(), waits()]).0, [Rule::Lock]);
    let mut tracker = Tracker::new(7, NAMES, None);
    tracker.begin(10, &mut Known(true));
    let wakes = event(22, 9, ProgramEventData::Wakes { number: 1007 });
    let ends = event(25, 7, ProgramEventData::Exit { number: 202, result: -110 });
    for it in [lock(), waits(), wakes, ends] {
        tracker.take(it, &mut Known(true));
    }
    let found = tracker.found();
    assert!(found.len() == 1 && found[0].what.ends_with("is not known"), "{found:?}");
}

#[test]
fn what_a_process_inherits_is_a_breach_of_its_own() {
    let all = |priority| {
        vec![
            event(20, 7, enter(56, [0; 6])),
            event(21, 7, ProgramEventData::Forked { pid: 8, tid: 8, parent_pid: 7, parent: 7 }),
            event(22, 7, ProgramEventData::Born { priority }),
            event(23, 7, exit(56)),
        ]
    };
    assert_eq!(rules(true, all(19)).0, [Rule::Inheritance]);
    assert_eq!(rules(true, all(120)).0, [Rule::Blocking]);
}

#[test]
fn what_is_not_observed_is_known() {
    let (_, mut tracker) = rules(true, vec![]);
    assert!(tracker.unobserved().is_empty());
    tracker.compare(50, &[(7, 7)], "x");
    assert!(tracker.unobserved().is_empty());
    tracker.compare(50, &[(7, 7), (7, 9)], "x");
    assert_eq!(tracker.unobserved().len(), 1);
    let executed = ProgramEventData::Named { name: "x".into(), by_exec: true };
    let all = vec![event(20, 7, executed), event(21, 7, ProgramEventData::Ended)];
    assert_eq!(rules(true, all).1.unobserved().len(), 1);
}

fn reported(by: Monitor, number: u32) -> ProgramEventData {
    ProgramEventData::Reported { monitor: by, number }
}

/// Rule, monitor and reason of each breach, and the page faults that were not handled.
fn judged(is_real_time: bool, all: &[ProgramEvent]) -> (Vec<(Rule, bool, &'static str)>, u64) {
    let mut outside = Known(is_real_time);
    let mut tracker = Tracker::new(7, NAMES, None);
    tracker.begin(10, &mut outside);
    all.iter().cloned().for_each(|it| tracker.take(it, &mut outside));
    tracker.finish();
    let found = tracker.found();
    let found = found.iter().map(|it| (it.rule, it.monitor.is_some(), it.why)).collect();
    (found, tracker.faults_unhandled())
}

#[test]
fn a_sleep_that_the_kernels_monitor_reports_is_one_breach() {
    let sleep = reported(Monitor::Sleep, 1007);
    let call = |flags, by: u32| {
        vec![
            event(15, 7, switched(19)),
            event(20, 7, enter(230, [1, flags, 0, 0, 0, 0])),
            event(21, by, sleep.clone()),
            // Of a thread of another program.
            event(22, by, reported(Monitor::Sleep, 4711)),
            event(23, 7, exit(230)),
        ]
    };
    let (found, _) = judged(true, &call(0, 7));
    assert_eq!(found, [(Rule::RelativeSleep, true, "it waits for a time from now on")]);
    assert_eq!(judged(true, &call(1, 7)).0, [(Rule::KernelMonitor, true, WHY_SLEEP)]);
    assert_eq!(judged(true, &call(1, 9)).0, [(Rule::KernelMonitor, true, WHY_WAKE)]);
    // An ordinary thread that the kernel raised.
    assert_eq!(judged(false, &call(1, 9)).0, [(Rule::KernelMonitor, true, WHY_RAISED)]);
    // It never returns; no call was seen at all; and before it was ready.
    assert_eq!(judged(true, &call(1, 7)[..3]).0, [(Rule::KernelMonitor, true, WHY_SLEEP)]);
    let alone = [event(15, 7, switched(19)), event(21, 9, sleep.clone())];
    assert_eq!(judged(true, &alone).0, [(Rule::KernelMonitor, true, WHY_WAKE)]);
    assert_eq!(judged(true, &[event(15, 7, switched(19)), event(5, 9, sleep)]).0, []);
}

#[test]
fn a_page_fault_that_the_kernels_monitor_reports_is_one_breach() {
    let report = |at| event(at, 7, reported(Monitor::PageFault, 7));
    let fault = |at| event(at, 7, ProgramEventData::Fault { address: 0x5000 });
    let why = "the kernel finds or makes the page, or reads it from a disk";
    let twice = [report(20), fault(21), fault(22)];
    let found = vec![(Rule::PageFault, true, why), (Rule::PageFault, false, why)];
    assert_eq!(judged(true, &twice), (found, 0));
    assert_eq!(judged(false, &twice), (vec![(Rule::KernelMonitor, true, WHY_RAISED)], 0));
    // Nothing had to be handled, and the fault after that is another one.
    let other = [report(20), event(21, 7, exit(9)), fault(22)];
    assert_eq!(judged(true, &other), (vec![(Rule::PageFault, false, why)], 1));
}
