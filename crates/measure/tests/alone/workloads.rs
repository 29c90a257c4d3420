//! Every workload on this machine, for some tenths of a second each: its account adds up, its
//! samples are what they can be, and a stall that is planted is seen.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use rtproof_measure::{
    EndReason, Policy, Quantity, Session, SessionPlan, Slot, StartedThread, ThreadReport,
    cycle::SLOT_NS,
    workloads::{self, WORKLOADS, Workload},
};
use rtproof_stats::{Moments, Totals};

use super::alone;

mod exec;
mod kernel;
mod marks;
mod packet;
mod pairs;
mod stall;
mod timers;
mod work;

fn parse(text: &str) -> Arc<dyn Workload> {
    workloads::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// One CPU, 1 ms, 0.4 s.
fn plan(text: &str) -> SessionPlan {
    SessionPlan {
        cpus: vec![0],
        policy: Policy::Fifo,
        priority: 60,
        period_ns: 1_000_000,
        duration_ns: 400_000_000,
        staggered: false,
        budget_ns: Some(10_000_000),
        spike_ns: Some(20_000_000),
        slot_ns: SLOT_NS / 10,
        keeps_samples: false,
        clock: rtproof_measure::clock::Clock::Monotonic,
        workloads: vec![parse(text)],
    }
}

/// What one thread measured.
struct Got {
    totals: Totals,
    intervals: Moments,
    started: StartedThread,
    report: ThreadReport,
    spikes: Vec<u64>,
}

impl std::fmt::Debug for Got {
    /// Without the histograms.
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { totals, intervals, started, report, spikes } = self;
        let ThreadReport { reason, scheduled, ending, .. } = report;
        write!(to, "{reason:?} {scheduled} {totals:?} {intervals:?} {started:?} {ending:?} ")?;
        write!(to, "{} spikes", spikes.len())
    }
}

impl Got {
    fn min(&self) -> u64 {
        self.totals.wake.min().expect("samples")
    }

    fn max(&self) -> u64 {
        self.totals.wake.max().expect("samples")
    }
}

/// Runs a plan to its end and checks what holds for every workload.
fn run(plan: &SessionPlan) -> Vec<Got> {
    run_with(plan, |_| {})
}

fn run_with(plan: &SessionPlan, mut meanwhile: impl FnMut(&Session)) -> Vec<Got> {
    let mut session = Session::start(plan).unwrap_or_else(|error| panic!("{error}"));
    let n = plan.cpus.len();
    let mut totals = vec![(Totals::default(), Moments::default()); n];
    let mut spikes = vec![Vec::new(); n];
    let mut edges = vec![None; n];
    let mut histograms = vec![(0, 0); n];
    let mut largest = BTreeSet::new();
    let mut take = |number: u32, slot: &Slot| {
        let i = number as usize;
        totals[i].0.merge(&slot.totals);
        totals[i].1.merge(&slot.intervals);
        histograms[i].0 += slot.wake.total();
        histograms[i].1 += slot.missed.total();
        assert_eq!(edges[i].unwrap_or(slot.from_ns), slot.from_ns, "slots join without a gap");
        edges[i] = Some(slot.to_ns);
        for sample in slot.top.as_slice() {
            assert!(largest.insert((number, sample.due_ns)), "two of {} ns", sample.due_ns);
        }
    };
    while !session.is_finished() {
        std::thread::sleep(Duration::from_millis(20));
        meanwhile(&session);
        session.collect(&mut take);
        session.spikes(|number, spike| spikes[number as usize].push(spike.latency_ns));
    }
    let started = session.take_started();
    let late = &mut spikes;
    let reports = session.finish(&mut take, |number, spike| {
        late[number as usize].push(spike.latency_ns);
    });
    assert_eq!(reports.len(), n);
    let joined = totals.into_iter().zip(started).zip(reports).zip(spikes);
    let got: Vec<Got> = joined
        .map(|((((totals, intervals), started), report), spikes)| Got {
            totals,
            intervals,
            started,
            report,
            spikes,
        })
        .collect();
    for (got, (wake, missed)) in got.iter().zip(histograms) {
        assert_eq!(got.report.scheduled, got.totals.accounted(), "{got:?}");
        assert_eq!((wake, missed), (got.totals.wake.count(), got.totals.missed), "{got:?}");
        assert_eq!(got.totals.early, 0, "{got:?}");
        assert!(got.started.own_cost.sentence.ends_with('.'), "{got:?}");
    }
    got
}

/// One thread of one workload.
fn one(text: &str) -> Got {
    let mut got = run(&plan(text));
    assert_eq!(got[0].report.reason, EndReason::Complete, "{text}: {got:?}");
    got.remove(0)
}

#[test]
fn whatever_sleeps_for_long_ends_when_it_is_asked_to() {
    let _alone = alone();
    // exec runs a program of the user's, and those of the kernel are polled.
    let beside = ["exec", "timerlat", "osnoise", "hwlat", "marks"];
    for workload in WORKLOADS.iter().filter(|workload| !beside.contains(&workload.name())) {
        let name = workload.name();
        let whole_ns = 600_000_000_000;
        // usleep(3) takes less than a second.
        let period_ns = if name == "usleep" { 990_000_000 } else { 10_000_000_000 };
        let plan = SessionPlan { period_ns, duration_ns: whole_ns, slot_ns: SLOT_NS, ..plan(name) };
        let session = Session::start(&plan).unwrap_or_else(|error| panic!("{error}"));
        // Past the first wake-up: it sleeps until the second.
        std::thread::sleep(Duration::from_millis(300));
        let asked = std::time::Instant::now();
        let mut totals = Totals::default();
        let reports = session.finish(|_, slot| totals.merge(&slot.totals), |_, _| {});
        assert!(asked.elapsed() < Duration::from_secs(5), "{name}: {:?}", asked.elapsed());
        assert_eq!(reports.len(), 1, "{name}");
        assert_eq!(reports[0].reason, EndReason::Stopped, "{name}");
        assert_eq!((reports[0].scheduled, totals.early), (totals.accounted(), 0), "{name}");
        if workload.quantity() == Quantity::Gap {
            continue;
        }
        assert!(totals.accounted() <= 1, "{name}: none came before it was due: {totals:?}");
    }
}

#[test]
fn every_workload_describes_itself() {
    for workload in WORKLOADS {
        let words = workload.quantity().words();
        assert!(Quantity::ALL.iter().any(|quantity| quantity.words() == words));
        let text = workload.spec();
        assert!(text.starts_with(workload.name()), "{text}");
    }
}

#[test]
fn each_cpu_has_its_own_workload_or_all_have_one() {
    let _alone = alone();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if cpus > 1 {
        let mut plan = plan("registers");
        plan.cpus = vec![0, 1];
        plan.workloads = vec![parse("registers"), parse("timer-wakeup")];
        let got = run(&plan);
        assert!(got[0].started.own_cost.sentence.contains("multiplication"));
        assert!(got[1].started.own_cost.sentence.contains("reading of the clock"));
    }
    let mut odd = plan("kill");
    odd.workloads = vec![parse("kill"), parse("kill")];
    let error = Session::start(&odd).expect_err("two for one CPU").to_string();
    assert!(error.contains("2 workloads for 1 CPUs"), "{error}");
    odd.workloads.clear();
    assert!(Session::start(&odd).is_err());
}

#[test]
fn policies_are_what_was_asked_for() {
    let _alone = alone();
    for policy in [Policy::Other, Policy::Fifo, Policy::Rr, Policy::Deadline] {
        let mut plan = plan("timer-wakeup");
        plan.policy = policy;
        plan.priority = if policy.has_priority() { 40 } else { 0 };
        plan.duration_ns = 100_000_000;
        let got = run(&plan).remove(0);
        assert_eq!(Policy::from_name(policy.name()), Some(policy));
        if got.started.policy_error.is_some() {
            // Without the right to it the thread runs as an ordinary one, and says so.
            continue;
        }
        assert_eq!(got.started.policy, policy);
        assert_eq!(got.started.priority, plan.priority);
        // A deadline task that may not be pinned runs all the same.
        assert!(got.started.is_pinned || policy == Policy::Deadline);
        assert!(got.totals.accounted() >= 99, "{got:?}");
    }
}

/// As in rtproof, which runs on the housekeeping CPUs when it starts the threads.
#[test]
fn sched_deadline_works_for_a_pinned_thread() {
    let _alone = alone();
    let mut plan = plan("timer-wakeup");
    plan.policy = Policy::Deadline;
    plan.duration_ns = 100_000_000;
    let free = run(&plan).remove(0).started.policy;
    let pinned = std::thread::spawn(move || {
        rtproof_measure::task::pin_all(&[0]).expect("CPU 0");
        run(&plan).remove(0).started
    });
    let pinned = pinned.join().expect("no panic");
    assert_eq!(pinned.policy, free, "{:?}", pinned.policy_error);
}
