//! The flight recorder on this machine: real wake-ups of real threads, asked for and found.

use std::{
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rtproof_host::{CpuList, Facts, Root, tracefs::TracefsError};
use rtproof_measure::{
    Plan, Policy, Recorder,
    recorder::{Mode, RecorderError, Settings, cost::cost},
    workloads::WORKLOADS,
};
use rtproof_trace::{How, WakeUp, What, Window};
use rustix::thread::ClockId;

/// Tests would load the machine for each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner)
}

fn online() -> CpuList {
    CpuList::new(0..std::thread::available_parallelism().map_or(1, |n| n.get()) as u32)
}

fn settings() -> Settings {
    let none = CpuList::default;
    Settings { mode: Some(Mode::Stream), ..Settings::new(online(), none(), none()) }
}

/// `None`: this user may not record; in CI he must.
fn recorder(settings: Settings) -> Option<Recorder> {
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

/// Sleeps to a time and tells how that went. Tried again where the thread was moved meanwhile.
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
            return WakeUp { tid, cpu: before, due_ns, ran_ns, how: How::Measured };
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
            What::Waking { pid, .. } if *pid == wake.tid => found.0 = Some(event.at_ns),
            What::Switch { next_pid, .. } if *next_pid == wake.tid => found.1 = Some(event.at_ns),
            _ => {}
        }
    }
    found
}

/// The window holds everything between the wake-up's due time and its run.
fn assert_told(window: &Window, wake: &WakeUp) {
    let (woken_ns, switched_ns) = story(window, wake);
    assert!(woken_ns.is_some() && switched_ns > woken_ns, "{wake:?} in {window:#?}");
    assert!(!window.lost_between(wake.due_ns, wake.ran_ns), "{:?}", window.lost);
    assert!(window.events.is_sorted_by_key(|event| event.at_ns));
    assert_eq!(window.cpu, wake.cpu);
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
fn a_wake_up_is_told_with_names() {
    let _alone = alone();
    let Some(mut recorder) = recorder(settings()) else { return };
    let wake = sleep();
    let window = window(&recorder, &wake);
    assert_told(&window, &wake);
    let own = &window.tasks[&wake.tid];
    assert_eq!(own.tgid, i32::try_from(std::process::id()).expect("a pid"));
    assert!(own.policy.is_some() && own.cpus_allowed.is_some(), "{own:?}");
    let symbols = rtproof_host::symbols::Symbols::read(&Root::live());
    assert_eq!(window.symbols.is_empty(), symbols.value().is_none());
    let is_timer = |name: &String| name.starts_with("hrtimer_wakeup+0x0/");
    assert!(window.symbols.is_empty() || window.symbols.values().any(is_timer));
    assert!(window.beside.over_ns >= wake.latency_ns(), "{:?}", window.beside);
    assert!(window.beside.steal_ns.is_some() && window.beside.preempt_rt.is_some());
    recorder.stop();
    let stats = recorder.stats();
    assert_eq!((stats.answered, stats.refused), (1, 0));
    assert!(stats.events > 0 && stats.bytes > 0 && stats.cpu_time_ns > 0, "{stats:?}");
    assert!(!recorder.ask(wake), "it has stopped");
    assert!(matches!(recorder.pause(), Err(RecorderError::Stopped)));
    let folder = format!("/sys/kernel/tracing/instances/{}", recorder.name());
    assert!(!std::path::Path::new(&folder).exists());
}

#[test]
fn partly_filled_sub_buffers_go_on_in_time() {
    let _alone = alone();
    let often = Settings { poll: Duration::from_millis(1), ..settings() };
    let Some(recorder) = recorder(often) else { return };
    // Hundreds of reads of the sub-buffer that is being written, and a wake-up across each.
    for _ in 0..100 {
        let wake = sleep();
        assert_told(&window(&recorder, &wake), &wake);
    }
    assert!(recorder.stats().pages > 100);
}

#[test]
fn two_recorders_do_not_see_each_other() {
    let _alone = alone();
    let (Some(one), Some(two)) = (recorder(settings()), recorder(settings())) else { return };
    assert_ne!(one.name(), two.name());
    let wake = sleep();
    assert_told(&window(&one, &wake), &wake);
    assert_told(&window(&two, &wake), &wake);
    drop(one);
    let wake = sleep();
    assert_told(&window(&two, &wake), &wake);
}

#[test]
fn a_pause_is_a_gap() {
    let _alone = alone();
    let Some(recorder) = recorder(settings()) else { return };
    recorder.pause().expect("paused");
    let unseen = sleep();
    recorder.resume().expect("resumed");
    let seen = sleep();
    let of_pause = window(&recorder, &unseen);
    assert!(of_pause.lost_between(unseen.due_ns, unseen.ran_ns), "{of_pause:?}");
    assert_told(&window(&recorder, &seen), &seen);
    assert_eq!(recorder.stats().blind_ns, 0, "a pause was asked for");
}

#[test]
fn frozen_it_reads_for_an_answer_and_counts_its_blind_time() {
    let _alone = alone();
    let frozen = Settings { mode: Some(Mode::Freeze), ..settings() };
    let Some(recorder) = recorder(frozen) else { return };
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(recorder.stats().pages, 0, "nothing is read before it is asked for");
    for _ in 0..3 {
        let before = recorder.stats().blind_ns;
        let wake = sleep();
        assert_told(&window(&recorder, &wake), &wake);
        let start = Instant::now();
        while recorder.stats().blind_ns == before && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(recorder.stats().blind_ns > before);
    }
}

#[test]
fn loss_is_told() {
    let _alone = alone();
    let small = Settings { measured_kb: 8, poll: Duration::from_millis(300), ..settings() };
    let Some(mut recorder) = recorder(small) else { return };
    let stop = AtomicBool::new(false);
    let told = std::thread::scope(|scope| {
        scope.spawn(|| ping_pong(&stop));
        std::thread::sleep(Duration::from_millis(400));
        // Overwritten before it is read: the next look is far away and the rings are full soon.
        let wakes: Vec<WakeUp> = (0..20).map(|_| sleep()).collect();
        let windows: Vec<Window> = wakes.iter().map(|wake| window(&recorder, wake)).collect();
        stop.store(true, Ordering::Relaxed);
        let is_lost = |(wake, window): (&WakeUp, &Window)| {
            let lost = window.lost_between(wake.due_ns, wake.ran_ns);
            assert!(lost || story(window, wake).1.is_some(), "neither told nor lost");
            lost
        };
        wakes.iter().zip(&windows).filter(|(wake, window)| is_lost((wake, window))).count()
    });
    assert!(told > 0, "two pages for 300 ms of switching");
    recorder.stop();
    assert!(recorder.stats().lost_events > 0, "{:?}", recorder.stats());
}

#[test]
fn questions_are_bounded_and_counted() {
    let _alone = alone();
    let slow = Settings { poll: Duration::from_secs(2), ..settings() };
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
    let plan = Plan {
        cpus: vec![0],
        policy: Policy::Fifo,
        priority: 80,
        period_ns: 500_000,
        duration_ns: 1,
        staggered: false,
        budget_ns: None,
        spike_ns: None,
        workload: WORKLOADS[0],
    };
    let cost = cost(&recorder, &plan, 3, 50_000_000).expect("a cost");
    assert_eq!((cost.pairs, cost.deltas_ns.len()), (3, 3));
    assert_eq!(cost.delta_ns, cost.deltas_ns[1]);
    let wake = sleep();
    assert_told(&window(&recorder, &wake), &wake);
}

#[test]
fn a_captured_machine_cannot_be_recorded() {
    let dir = tempfile::tempdir().expect("a folder");
    let root = Root::dir(dir.path()).expect("a root");
    let error = Recorder::start(&root, &Facts::read(&root), settings()).expect_err("not live");
    assert!(matches!(error, RecorderError::Tracefs(TracefsError::NotLive)));
    let none = CpuList::default;
    let nobody = Settings::new(none(), none(), none());
    let error = Recorder::start(&Root::live(), &Facts::read(&root), nobody).expect_err("no CPU");
    assert!(error.to_string().contains("--cpus"), "{error}");
}
