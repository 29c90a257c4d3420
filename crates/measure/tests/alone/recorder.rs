//! The flight recorder on this machine: real wake-ups of real threads, asked for and found.

use std::{
    sync::{
        OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rtproof_host::{CpuList, Facts, Root, tracefs::TracefsError};
use rtproof_measure::{
    Policy, Recorder, SessionPlan,
    cycle::SLOT_NS,
    recorder::{RecorderError, RecorderSettings, RingMode, counters::cost},
    workloads,
};
use rtproof_trace::{EventData, Subjects, WakeUp, WakeUpBasis, Window};
use rustix::thread::ClockId;

use super::alone;

fn online() -> CpuList {
    CpuList::new(0..std::thread::available_parallelism().map_or(1, |n| n.get()) as u32)
}

fn settings() -> RecorderSettings {
    let none = CpuList::default;
    RecorderSettings {
        mode: Some(RingMode::Stream),
        ..RecorderSettings::new(online(), none(), none())
    }
}

/// `None`: this user may not record; in CI he must.
fn recorder(settings: RecorderSettings) -> Option<Recorder> {
    let root = Root::live();
    match Recorder::start(&root, &Facts::read(&root), settings) {
        Ok(recorder) => Some(recorder),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "CI needs root and tracefs: {error}");
            eprintln!("not run: {error}");
            None
        }
    }
}

fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Sleeps until a time and returns the result. Tried again if the thread was moved meanwhile.
fn sleep() -> WakeUp {
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    let cpu = || u32::try_from(rustix::thread::sched_getcpu()).expect("a CPU");
    loop {
        let (before, due_ns) = (cpu(), now_ns() + 2_000_000);
        let due = rustix::time::Timespec {
            tv_sec: (due_ns / 1_000_000_000).cast_signed(),
            tv_nsec: (due_ns % 1_000_000_000).cast_signed(),
        };
        rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &due).expect("a sleep");
        let ran_ns = now_ns();
        if cpu() == before {
            return WakeUp { tid, cpu: before, due_ns, ran_ns, how: WakeUpBasis::Measured };
        }
    }
}

/// The window of a wake-up; patient, because the machine may be loaded.
fn window(recorder: &Recorder, wake: &WakeUp) -> Window {
    assert!(recorder.ask(*wake));
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(30) {
        if let Some((of, window)) = recorder.take().pop() {
            assert_eq!(of, *wake);
            return window;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("no answer: {:?}", recorder.stats());
}

/// When the window says the task was woken and switched to.
fn story(window: &Window, wake: &WakeUp) -> (Option<u64>, Option<u64>) {
    let within = |at_ns: u64| (wake.due_ns..=wake.ran_ns).contains(&at_ns);
    let mut found = (None, None);
    for event in window.events.iter().filter(|event| within(event.at_ns)) {
        match &event.what {
            EventData::Waking { pid, .. } if *pid == wake.tid => found.0 = Some(event.at_ns),
            EventData::Switch { next_pid, .. } if *next_pid == wake.tid => {
                found.1 = Some(event.at_ns)
            }
            _ => {}
        }
    }
    found
}

/// A CPU whose kernel records the switches from its idle task, as the kernel's own text shows. Not
/// all do: a guest of 6.18 under a nested hypervisor recorded, on one of its CPUs and for hours,
/// nothing that its idle task did outside interrupts, neither here nor for perf.
fn cpu_that_tells() -> Option<u32> {
    static FOUND: OnceLock<Option<u32>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let folder = Folder(format!("{INSTANCES}/idle-switches-{}", std::process::id()));
        std::fs::create_dir(&folder.0).expect("an instance");
        std::fs::write(format!("{}/events/sched/sched_switch/enable", folder.0), "1")
            .expect("switches are recorded");
        online().iter().find(|cpu| {
            on_cpu(*cpu, || (0..20).for_each(|_| std::thread::sleep(Duration::from_millis(2))));
            let text = std::fs::read_to_string(format!("{}/per_cpu/cpu{cpu}/trace", folder.0));
            let text = text.expect("the text of a CPU");
            let (from, to) = (text.matches(" prev_pid=0 "), text.matches(" next_pid=0 "));
            let (from, to) = (from.count(), to.count());
            if 2 * from < to {
                eprintln!("CPU {cpu}: {to} switches to the idle task recorded, {from} from it");
            }
            2 * from >= to
        })
    })
}

const INSTANCES: &str = "/sys/kernel/tracing/instances";

/// An instance that is removed in the end.
struct Folder(String);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Does something on a CPU, and goes back to where it was allowed before.
fn on_cpu<T>(cpu: u32, what: impl FnOnce() -> T) -> T {
    let before = rustix::thread::sched_getaffinity(None).expect("an affinity");
    let mut only = rustix::thread::CpuSet::new();
    only.set(cpu as usize);
    rustix::thread::sched_setaffinity(None, &only).expect("a CPU");
    let outcome = what();
    rustix::thread::sched_setaffinity(None, &before).expect("the CPUs of before");
    outcome
}

/// A wake-up of this thread with a window that explains it, on a CPU whose kernel records it; where
/// there is none, a window that shows at least the waking.
fn next_window(recorder: &Recorder) -> (WakeUp, Window) {
    match cpu_that_tells() {
        Some(cpu) => on_cpu(cpu, || told_here(recorder, true)),
        None => told_here(recorder, false),
    }
}

/// On a loaded machine a timer may expire before the thread sleeps: then there was no wake-up, and
/// another one is tried.
fn told_here(recorder: &Recorder, with_switch: bool) -> (WakeUp, Window) {
    let mut missed = Vec::new();
    for _ in 0..50 {
        let wake = sleep();
        let window = window(recorder, &wake);
        assert!(!window.lost_between(wake.due_ns, wake.ran_ns), "{wake:?} {:?}", window.lost);
        assert!(window.events.is_sorted_by_key(|event| event.at_ns));
        assert_eq!(window.cpu, wake.cpu);
        let (woken_ns, switched_ns) = story(&window, &wake);
        if woken_ns.is_some() && (switched_ns > woken_ns || !with_switch) {
            return (wake, window);
        }
        missed.push(format!("{wake:?}: woken {woken_ns:?}, switched to {switched_ns:?}"));
    }
    panic!("none of {} wake-ups is told: {missed:#?}\n{:?}", missed.len(), recorder.stats());
}

/// Two threads that wake each other as fast as they can, until `stop`.
fn ping_pong(stop: &AtomicBool) {
    let (there, back) = (std::sync::mpsc::sync_channel(0), std::sync::mpsc::sync_channel(0));
    std::thread::scope(|scope| {
        let (answers, questions) = (back.0, there.1);
        scope.spawn(move || while questions.recv().is_ok_and(|()| answers.send(()).is_ok()) {});
        while !stop.load(Ordering::Relaxed) {
            let _ = there.0.send(());
            let _ = back.1.recv();
        }
        drop((there.0, back.1));
    });
}

#[test]
fn a_wake_up_is_reported_with_names() {
    let _alone = alone();
    let Some(mut recorder) = recorder(settings()) else { return };
    let (wake, window) = next_window(&recorder);
    let own = &window.tasks[&wake.tid];
    assert_eq!(own.tgid, i32::try_from(std::process::id()).expect("a pid"));
    assert!(own.policy.is_some() && own.cpus_allowed.is_some(), "{own:?}");
    let symbols = rtproof_host::symbols::KernelSymbols::read(&Root::live());
    assert_eq!(window.symbols.is_empty(), symbols.value().is_none());
    let is_timer = |name: &String| name.starts_with("hrtimer_wakeup+0x0/");
    assert!(window.symbols.is_empty() || window.symbols.values().any(is_timer));
    // It was asked for at once, and yet counters were read before and after it.
    assert!(window.surroundings.over_ns >= wake.latency_ns(), "{:?}", window.surroundings);
    assert!(window.surroundings.steal_ns.is_some() && window.surroundings.preempt_rt.is_some());
    recorder.stop();
    let stats = recorder.stats();
    assert_eq!((stats.waiting, stats.refused), (0, 0));
    assert!(stats.answered >= 1);
    assert!(stats.events > 0 && stats.bytes > 0 && stats.cpu_time_ns > 0, "{stats:?}");
    assert!(!recorder.ask(wake), "it has stopped");
    assert!(matches!(recorder.pause(), Err(RecorderError::Stopped)));
    let folder = format!("/sys/kernel/tracing/instances/{}", recorder.name());
    assert!(!std::path::Path::new(&folder).exists());
}

#[test]
fn partly_filled_sub_buffers_continue_in_time() {
    let _alone = alone();
    let often = RecorderSettings { poll: Duration::from_millis(1), ..settings() };
    let Some(recorder) = recorder(often) else { return };
    // Hundreds of reads of the sub-buffer that is being written, and a wake-up across each.
    for _ in 0..100 {
        next_window(&recorder);
    }
    assert!(recorder.stats().pages > 100);
}

#[test]
fn two_recorders_do_not_see_each_other() {
    let _alone = alone();
    let (Some(one), Some(two)) = (recorder(settings()), recorder(settings())) else { return };
    assert_ne!(one.name(), two.name());
    next_window(&one);
    next_window(&two);
    drop(one);
    next_window(&two);
}

#[test]
fn a_pause_is_a_gap() {
    let _alone = alone();
    let Some(recorder) = recorder(settings()) else { return };
    recorder.pause().expect("paused");
    let unseen = sleep();
    recorder.resume().expect("resumed");
    let of_pause = window(&recorder, &unseen);
    assert!(of_pause.lost_between(unseen.due_ns, unseen.ran_ns), "{of_pause:?}");
    next_window(&recorder);
    assert_eq!(recorder.stats().blind_ns, 0, "a pause was asked for");
}

#[test]
fn frozen_it_reads_for_an_answer_and_counts_its_blind_time() {
    let _alone = alone();
    let frozen = RecorderSettings { mode: Some(RingMode::Freeze), ..settings() };
    let Some(recorder) = recorder(frozen) else { return };
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(recorder.stats().pages, 0, "nothing is read before it is asked for");
    for _ in 0..3 {
        let before = recorder.stats().blind_ns;
        next_window(&recorder);
        let start = Instant::now();
        while recorder.stats().blind_ns == before && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(recorder.stats().blind_ns > before);
    }
}

/// Wakes up beside two busy threads, with rings of two sub-buffers that are seldom read. Returns
/// how many wake-ups were lost; the others are explained.
fn lose(mode: RingMode) -> Option<usize> {
    let poll = Duration::from_millis(300);
    let small = RecorderSettings { measured_kb: 8, poll, mode: Some(mode), ..settings() };
    let mut recorder = recorder(small)?;
    let stop = AtomicBool::new(false);
    let lost = std::thread::scope(|scope| {
        scope.spawn(|| ping_pong(&stop));
        std::thread::sleep(Duration::from_millis(400));
        let wakes: Vec<WakeUp> = (0..20).map(|_| sleep()).collect();
        let windows: Vec<Window> = wakes.iter().map(|wake| window(&recorder, wake)).collect();
        stop.store(true, Ordering::Relaxed);
        let is_lost = |(wake, window): &(&WakeUp, &Window)| {
            let lost = window.lost_between(wake.due_ns, wake.ran_ns);
            let busy = window.events.iter().filter(|event| event.cpu == wake.cpu).count() > 1;
            assert!(lost || busy, "neither told nor lost: {window:?}");
            lost
        };
        wakes.iter().zip(&windows).filter(is_lost).count()
    });
    recorder.stop();
    let stats = recorder.stats();
    assert_eq!(stats.lost_events > 0, mode == RingMode::Stream, "{stats:?}");
    Some(lost)
}

#[test]
fn loss_is_reported() {
    let _alone = alone();
    for mode in [RingMode::Stream, RingMode::Freeze] {
        let Some(lost) = lose(mode) else { return };
        assert!(lost > 0, "two pages for 300 ms of switching, {mode:?}");
    }
}

#[test]
fn stacks_are_taken_where_the_kernel_can() {
    let _alone = alone();
    let Some(recorder) = recorder(settings()) else { return };
    if let Err(error) = recorder.arm_stack(true) {
        eprintln!("no stacks: {error}");
        return;
    }
    recorder.arm_stack(true).expect("twice is once");
    let stacks = |window: &Window| -> Vec<Box<[u64]>> {
        let frames = |what: &EventData| match what {
            EventData::Stack { frames } => Some(frames.clone()),
            _ => None,
        };
        window.events.iter().filter_map(|event| frames(&event.what)).collect()
    };
    let (_, window) = next_window(&recorder);
    let found = stacks(&window);
    assert!(found.iter().any(|frames| frames.len() > 1), "{window:?}");
    let named = found.iter().flatten().filter(|frame| window.symbol(**frame).is_some()).count();
    assert!(window.symbols.is_empty() || named > 1);
    assert!(recorder.stats().stacks);
    recorder.arm_stack(false).expect("off");
    assert!(!recorder.stats().stacks);
    // Stacks of before are within the lead of the next window.
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(stacks(&next_window(&recorder).1).len(), 0);
}

#[test]
fn questions_are_bounded_and_counted() {
    let _alone = alone();
    let slow = RecorderSettings { poll: Duration::from_secs(2), ..settings() };
    let Some(mut recorder) = recorder(slow) else { return };
    let wake = sleep();
    let taken = (0..20_000).filter(|_| recorder.ask(wake)).count() as u64;
    recorder.stop();
    let stats = recorder.stats();
    assert!(stats.refused > 0 && taken + stats.refused == 20_000, "{stats:?}");
    assert_eq!(stats.answered + stats.waiting, taken);
    assert_eq!(recorder.take().len() as u64, stats.answered);
}

#[test]
fn its_cost_is_measured_in_pairs() {
    let _alone = alone();
    let Some(recorder) = recorder(settings()) else { return };
    let plan = SessionPlan {
        cpus: vec![0],
        policy: Policy::Fifo,
        priority: 80,
        period_ns: 500_000,
        duration_ns: 1,
        staggered: false,
        budget_ns: None,
        spike_ns: None,
        slot_ns: SLOT_NS,
        keeps_samples: false,
        clock: rtproof_measure::clock::Clock::Monotonic,
        workloads: vec![workloads::timer_wakeup()],
    };
    let cost = cost(&recorder, &plan, 3, 50_000_000).expect("a cost");
    assert_eq!((cost.pairs, cost.deltas_ns.len()), (3, 3));
    assert_eq!(cost.delta_ns, cost.deltas_ns[1]);
    next_window(&recorder);
}

#[test]
fn late_wake_ups_of_others_are_found_in_the_events() {
    let _alone = alone();
    let Some(mut recorder) = recorder(settings()) else { return };
    let stop = AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        let (send_tid, tids) = std::sync::mpsc::channel();
        let stop = &stop;
        scope.spawn(move || {
            let _ = send_tid.send(rustix::thread::gettid().as_raw_nonzero().get());
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        let tid = tids.recv().expect("a thread id");
        let subjects = Subjects { tids: vec![tid], ..Subjects::default() };
        // Every wake-up is late by more than this.
        recorder.watch(Some((subjects, 0))).expect("it is told");
        let mut found = Vec::new();
        let start = Instant::now();
        while found.len() < 50 && start.elapsed() < Duration::from_secs(30) {
            found.extend(recorder.take());
            std::thread::sleep(Duration::from_millis(20));
        }
        stop.store(true, Ordering::Relaxed);
        assert!(found.iter().all(|(wake, _)| wake.tid == tid));
        found
    });
    assert!(found.len() >= 50, "{} {:?}", found.len(), recorder.stats());
    let by_timer = found.iter().filter(|(wake, _)| wake.how == WakeUpBasis::Timer).count();
    assert!(by_timer > 0, "it sleeps on a timer");
    let mut without_switch = 0;
    for (wake, window) in &found {
        assert!(wake.due_ns < wake.ran_ns && wake.cpu == window.cpu);
        match story(window, wake).1 {
            Some(at_ns) => assert_eq!(at_ns, wake.ran_ns, "{wake:?}"),
            None => {
                assert!(window.events.iter().any(|event| event.at_ns == wake.ran_ns), "{wake:?}");
                without_switch += 1;
            }
        }
        assert!(window.tasks.contains_key(&wake.tid));
    }
    let order: Vec<u64> = found.iter().map(|(wake, _)| wake.ran_ns).collect();
    assert!(order.is_sorted_by(|one, next| one < next), "each is found once");
    recorder.stop();
    let totals = recorder.watched();
    let [one] = totals.as_slice() else { panic!("{totals:?}") };
    assert!(one.wake_ups >= found.len() as u64 && one.over <= one.wake_ups, "{one:?}");
    // A kernel that leaves out switches from its idle task: see `cpu_that_tells`.
    assert!(without_switch <= one.at_least + one.inferred, "{without_switch} {one:?}");
}

#[test]
fn frozen_it_finds_nothing_by_itself() {
    let _alone = alone();
    let frozen = RecorderSettings { mode: Some(RingMode::Freeze), ..settings() };
    let Some(recorder) = recorder(frozen) else { return };
    assert!(matches!(recorder.watch(None), Err(RecorderError::Frozen)));
}

#[test]
fn a_captured_machine_cannot_be_recorded() {
    let dir = tempfile::tempdir().expect("a folder");
    let root = Root::dir(dir.path()).expect("a root");
    let error = Recorder::start(&root, &Facts::read(&root), settings()).expect_err("not live");
    assert!(matches!(error, RecorderError::Tracefs(TracefsError::NotLive)));
    let none = CpuList::default;
    let nobody = RecorderSettings::new(none(), none(), none());
    let error = Recorder::start(&Root::live(), &Facts::read(&root), nobody).expect_err("no CPU");
    assert!(error.to_string().contains("--cpus"), "{error}");
}
