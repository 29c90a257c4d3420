//! Real measuring threads on this machine: everything accounted for, nothing allocated while armed.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use rtproof_measure::{
    EndReason, Policy, Session, SessionError, SessionPlan, Slot, clock::Clock, cycle::SLOT_NS,
    is_armed, session::PERIOD_MIN_NS, workloads,
};
use rtproof_stats::{Histogram, Totals};

use super::alone;

/// Counts what an armed thread allocates or frees.
struct Counting;

static WHILE_ARMED: AtomicU64 = AtomicU64::new(0);
static EVER: AtomicU64 = AtomicU64::new(0);

impl Counting {
    fn count() {
        EVER.fetch_add(1, Ordering::Relaxed);
        if is_armed() {
            WHILE_ARMED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

// SAFETY: every call is passed on to the system allocator unchanged.
#[expect(unsafe_code, reason = "GlobalAlloc is an unsafe trait")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Self::count();
        // SAFETY: the caller's layout, unchanged.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        Self::count();
        // SAFETY: a pointer that `alloc` returned, with its layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn plan(period_ns: u64, duration_ns: u64) -> SessionPlan {
    let cpus = std::thread::available_parallelism().map_or(1, |n| n.get().min(2) as u32);
    SessionPlan {
        cpus: (0..cpus).collect(),
        policy: Policy::Fifo,
        priority: 80,
        period_ns,
        duration_ns,
        staggered: true,
        budget_ns: Some(100_000),
        spike_ns: Some(20_000),
        slot_ns: SLOT_NS,
        keeps_samples: false,
        clock: Clock::Monotonic,
        workloads: vec![workloads::timer_wakeup()],
    }
}

/// Runs a plan, collecting twice a second, or four times in a short run; returns per thread
/// (totals,
/// both histograms' totals).
fn run(plan: &SessionPlan) -> Vec<(Totals, u64, u64, rtproof_measure::ThreadReport)> {
    let mut session = Session::start(plan).expect("a session");
    let n = plan.cpus.len();
    let mut totals = vec![Totals::default(); n];
    let empty = || Histogram::new(rtproof_stats::Layout::FINE);
    let mut wake: Vec<_> = (0..n).map(|_| empty()).collect();
    let mut missed: Vec<_> = (0..n).map(|_| empty()).collect();
    let mut edges = vec![None; n];
    let mut take = |number: u32, slot: &Slot| {
        let i = number as usize;
        totals[i].merge(&slot.totals);
        slot.wake.add_to(&mut wake[i]);
        slot.missed.add_to(&mut missed[i]);
        assert!(slot.from_ns <= slot.to_ns);
        assert_eq!(edges[i].unwrap_or(slot.from_ns), slot.from_ns, "slots join without a gap");
        edges[i] = Some(slot.to_ns);
    };
    let pause = Duration::from_nanos(plan.duration_ns / 4).min(Duration::from_millis(500));
    while !session.is_finished() {
        std::thread::sleep(pause);
        session.collect(&mut take);
    }
    let reports = session.finish(&mut take, |_, _| {});
    assert_eq!(reports.len(), n);
    let views = wake.iter().zip(&missed).map(|(w, m)| (w.total(), m.total()));
    let joined = totals.into_iter().zip(views).zip(reports);
    joined.map(|((t, (w, m)), report)| (t, w, m, report)).collect()
}

#[test]
fn scheduled_is_sampled_plus_missed_at_every_period() {
    let _alone = alone();
    for period_ns in [PERIOD_MIN_NS, 100_000, 1_000_000] {
        let plan = plan(period_ns, 1_500_000_000);
        for (totals, wake, missed, report) in run(&plan) {
            let due = plan.duration_ns / period_ns;
            assert_eq!(report.reason, EndReason::Complete);
            // A staggered thread starts within the first period and ends with the others.
            assert!(report.scheduled == due, "{} of {due} at {period_ns} ns", report.scheduled);
            assert_eq!(totals.accounted(), report.scheduled, "at {period_ns} ns");
            assert_eq!((wake, missed), (totals.wake.count(), totals.missed));
            assert_eq!(totals.early, 0);
        }
    }
}

#[test]
fn an_armed_thread_allocates_nothing_and_faults_nothing_major() {
    let _alone = alone();
    let before = EVER.load(Ordering::Relaxed);
    let reports = run(&plan(100_000, 3_200_000_000));
    assert!(EVER.load(Ordering::Relaxed) > before, "the counting allocator is in use");
    assert_eq!(WHILE_ARMED.load(Ordering::Relaxed), 0);
    for (_, _, _, report) in reports {
        assert_eq!(report.faults_major, 0);
        assert!(report.cpu_time_ns > 0);
    }
}

/// Every workload by every clock that it takes: the account holds and nothing is allocated.
#[test]
fn every_clock_measures() {
    let _alone = alone();
    let before = WHILE_ARMED.load(Ordering::Relaxed);
    let mut measured = Vec::new();
    for clock in Clock::ALL.into_iter().filter(|clock| !clock.is_monotonic()) {
        for name in ["timer-wakeup", "nanosleep-relative", "clock-gettime", "busy-loop"] {
            let workload = workloads::parse(name).expect("a workload");
            let takes = workload.describe().clocks.contains(clock);
            let plan = SessionPlan {
                cpus: vec![0],
                clock,
                workloads: vec![workload],
                slot_ns: SLOT_NS / 20,
                ..plan(1_000_000, 150_000_000)
            };
            if !takes {
                let error = Session::start(&plan).expect_err("a clock that it does not take");
                assert!(matches!(error, SessionError::Workload { .. }), "{error}");
                assert!(error.to_string().contains(clock.name()), "{error}");
                continue;
            }
            for (totals, wake, missed, report) in run(&plan) {
                assert_eq!(report.reason, EndReason::Complete, "{name} by {clock:?}");
                assert_eq!(totals.accounted(), report.scheduled, "{name} by {clock:?}");
                assert_eq!((wake, missed), (totals.wake.count(), totals.missed));
                assert!(totals.wake.count() > 0, "{name} by {clock:?}");
                // Nothing sets this machine's clock while the test runs.
                assert!(report.steps.is_empty(), "{name} by {clock:?}: {:?}", report.steps);
                // Neither the distance of the clocks nor an epoch is in a sample.
                assert!(totals.wake.max() < Some(1_000_000_000), "{name} by {clock:?}");
            }
            measured.push((name, clock));
        }
    }
    assert_eq!(measured.len(), 9, "{measured:?}");
    assert_eq!(WHILE_ARMED.load(Ordering::Relaxed), before);
}

/// A short plan for each workload that needs nothing from outside.
fn of_every_workload() -> impl Iterator<Item = SessionPlan> {
    let all = workloads::WORKLOADS.iter().filter_map(|w| workloads::parse(&w.spec()).ok());
    let on_cpu = all.filter(|workload| workload.place() == workloads::ThreadPlace::OnCpu);
    on_cpu.map(|workload| SessionPlan {
        cpus: vec![0],
        slot_ns: SLOT_NS / 20,
        workloads: vec![workload],
        ..plan(1_000_000, 150_000_000)
    })
}

#[test]
fn no_workload_allocates_while_it_is_armed() {
    let _alone = alone();
    let before = WHILE_ARMED.load(Ordering::Relaxed);
    let mut n = 0;
    for plan in of_every_workload() {
        let (totals, _, _, report) = run(&plan).remove(0);
        let spec = plan.workloads[0].spec();
        assert_eq!(WHILE_ARMED.load(Ordering::Relaxed), before, "{spec}");
        assert_eq!((report.reason, report.faults_major), (EndReason::Complete, 0), "{spec}");
        assert_eq!(report.scheduled, totals.accounted(), "{spec}");
        n += 1;
    }
    assert!(n >= 16, "{n} workloads");
}

#[test]
fn every_spike_comes_out_or_is_counted() {
    let _alone = alone();
    let mut plan = plan(1_000_000, 3_100_000_000);
    // Every wake-up, in the first second; then none until the end.
    plan.spike_ns = Some(0);
    let mut session = Session::start(&plan).expect("a session");
    let (mut came, mut seen, mut dropped) = (0_u64, 0, 0);
    let mut take = |_: u32, spike: rtproof_measure::LateWakeUp| {
        assert!(spike.latency_ns > 0 && spike.due_ns > 0);
        came += 1;
    };
    session.set_spike_ns(u64::MAX);
    let mut sampled = 0;
    let mut slots = |_: u32, slot: &Slot| {
        (seen, dropped) = (seen + slot.spikes, dropped + slot.spikes_dropped);
        sampled += slot.totals.wake.count();
    };
    while !session.is_finished() {
        std::thread::sleep(Duration::from_millis(100));
        session.spikes(&mut take);
        session.collect(&mut slots);
    }
    session.finish(&mut slots, &mut take);
    assert_eq!(came + dropped, seen);
    assert!(seen > 0 && seen < sampled, "{seen} of {sampled}: only those of the first second");
}

#[test]
fn stopping_ends_within_a_period_and_keeps_the_account() {
    let _alone = alone();
    let plan = plan(10_000_000, 60_000_000_000);
    let session = Session::start(&plan).expect("a session");
    assert!(session.started().iter().all(|started| started.pin_error.is_none()));
    std::thread::sleep(Duration::from_millis(300));
    session.stop();
    let mut accounted = 0;
    let reports = session.finish(|_, slot| accounted += slot.totals.accounted(), |_, _| {});
    assert!(reports.iter().all(|report| report.reason == EndReason::Stopped));
    assert_eq!(accounted, reports.iter().map(|report| report.scheduled).sum::<u64>());
    assert!(accounted > 10 && accounted < 1000 * plan.cpus.len() as u64, "{accounted}");
}

#[test]
fn a_cpu_that_is_not_there_is_named() {
    let mut plan = plan(1_000_000, 1_000_000_000);
    plan.cpus = vec![0, 1000];
    let error = Session::start(&plan).expect_err("no CPU 1000");
    assert!(error.to_string().contains("CPU 1000"), "{error}");
    plan.cpus = vec![0, 5000];
    let error = Session::start(&plan).expect_err("no CPU 5000");
    assert!(error.to_string().contains("CPU 5000"), "{error}");
    plan.cpus.clear();
    assert!(Session::start(&plan).is_err());
}

#[test]
fn uncollected_threads_end_by_themselves() {
    let _alone = alone();
    let plan = plan(1_000_000, 60_000_000_000);
    let session = Session::start(&plan).expect("a session");
    let start = std::time::Instant::now();
    while !session.is_finished() {
        assert!(start.elapsed() < Duration::from_secs(20), "still running");
        std::thread::sleep(Duration::from_millis(100));
    }
    let mut accounted = 0;
    let reports = session.finish(|_, slot| accounted += slot.totals.accounted(), |_, _| {});
    assert!(reports.iter().all(|report| report.reason == EndReason::Starved), "{reports:?}");
    assert_eq!(accounted, reports.iter().map(|report| report.scheduled).sum::<u64>());
}
