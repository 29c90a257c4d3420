//! A clock that is set while a thread sleeps by it, in a simulated kernel: no step is a latency, no
//! latency is lost in a step, and the account holds.

use std::sync::Arc;

use super::*;
use crate::clock::{Ledger, Steps, TimeSource, Timekeeper};

const HOUR: i64 = 3_600_000_000_000;

/// Time that a reading of a clock takes.
const READ_NS: u64 = 20;

/// Time from the expiry of the timer to the thread.
const WAKE_NS: u64 = 5_000;

/// A set of the clock.
#[derive(Clone, Copy)]
struct Set {
    at_ns: u64,
    by_ns: i64,
    /// After which time the sleeping thread is roused.
    rouse_ns: Option<u64>,
}

struct Sim {
    now_ns: u64,
    distance_ns: i64,
    sets: Vec<Set>,
    /// From when on the thread is late once, and by how much.
    stall: Option<(u64, u64)>,
}

impl Sim {
    fn set_until(&mut self, until_ns: u64) -> Option<Set> {
        let set = *self.sets.first().filter(|set| set.at_ns <= until_ns)?;
        self.sets.remove(0);
        self.distance_ns += set.by_ns;
        Some(set)
    }

    fn pass(&mut self, ns: u64) -> u64 {
        self.now_ns += ns;
        while self.set_until(self.now_ns).is_some() {}
        self.now_ns
    }
}

impl TimeSource for Sim {
    fn monotonic_ns(&mut self) -> u64 {
        self.pass(READ_NS)
    }

    fn read_ns(&mut self) -> u64 {
        self.pass(READ_NS).wrapping_add_signed(self.distance_ns)
    }

    fn sleep_for(&mut self, ns: u64) {
        self.pass(ns + WAKE_NS);
    }

    fn sleep_until(&mut self, at_ns: u64) -> bool {
        loop {
            let expires_ns = at_ns.saturating_add_signed(-self.distance_ns).max(self.now_ns);
            let Some(set) = self.set_until(expires_ns) else {
                self.now_ns = expires_ns;
                let stall = self.stall.take_if(|(from_ns, _)| *from_ns <= expires_ns);
                self.pass(WAKE_NS + stall.map_or(0, |(_, ns)| ns));
                return true;
            };
            self.now_ns = self.now_ns.max(set.at_ns);
            let expires_ns = at_ns.saturating_add_signed(-self.distance_ns);
            if let Some(roused_ns) = set.rouse_ns.map(|ns| self.now_ns + ns)
                && roused_ns < expires_ns
            {
                self.now_ns = roused_ns;
                return false;
            }
        }
    }
}

struct Outcome {
    scheduled: u64,
    sum: rtproof_stats::Totals,
    spikes: usize,
    steps: Steps,
}

impl Outcome {
    fn max_ns(&self) -> u64 {
        self.sum.wake.max().unwrap_or(0)
    }
}

/// A second and a half at 1 ms, by a clock that is an hour ahead.
fn go(sets: &[Set], stall: Option<(u64, u64)>) -> Outcome {
    let mut rig = rig();
    let ledger = Arc::new(Ledger::default());
    let now_ns = SLOT_NS - 10 * MS;
    let sim = Sim { now_ns, distance_ns: HOUR, sets: sets.to_vec(), stall };
    let mut clock = Timekeeper::new(sim, true, Arc::clone(&ledger));
    assert_eq!(rig.cycle.run_by(&AtomicBool::new(false), &mut clock), EndReason::Complete);
    let (scheduled, sum, _, spikes) = rig.end();
    let outcome = Outcome { scheduled, sum, spikes, steps: ledger.read() };
    assert_eq!(outcome.scheduled, outcome.sum.accounted(), "scheduled == sampled + missed");
    assert_eq!(outcome.scheduled + outcome.steps.unmeasured, 1500, "all that the grid had");
    outcome
}

fn set(at_ns: u64, by_ns: i64, rouse_ns: Option<u64>) -> Set {
    Set { at_ns: SLOT_NS + at_ns, by_ns, rouse_ns }
}

#[test]
fn without_a_step_nothing_is_reported() {
    let outcome = go(&[], None);
    assert_eq!((outcome.scheduled, outcome.steps), (1500, Steps::default()));
    assert!((WAKE_NS..WAKE_NS + 100).contains(&outcome.max_ns()), "{}", outcome.max_ns());
}

#[test]
fn a_step_forward_wakes_the_thread_early_and_it_sleeps_on() {
    let outcome = go(&[set(500 * MS + 400_000, HOUR, None)], None);
    assert_eq!((outcome.scheduled, outcome.sum.missed, outcome.sum.early), (1500, 0, 0));
    assert_eq!((outcome.steps.steps, outcome.steps.unmeasured), (1, 0));
    assert!(outcome.steps.ahead_ns.abs_diff(HOUR as u64) < 100, "{:?}", outcome.steps);
    assert!(outcome.max_ns() < WAKE_NS + 100, "{}", outcome.max_ns());
}

#[test]
fn a_thread_that_is_roused_in_time_loses_nothing_by_a_step_back() {
    let outcome = go(&[set(500 * MS + 400_000, -HOUR, Some(100_000))], None);
    assert_eq!((outcome.scheduled, outcome.sum.missed), (1500, 0));
    assert!(outcome.steps.back_ns.abs_diff(HOUR as u64) < 100, "{:?}", outcome.steps);
    assert!(outcome.max_ns() < WAKE_NS + 100, "{}", outcome.max_ns());
}

#[test]
fn a_thread_that_is_roused_late_leaves_cycles_unmeasured() {
    // Due at 501 ms; roused at 506.2 ms.
    let outcome = go(&[set(500 * MS + 400_000, -HOUR, Some(5_800_000))], None);
    assert_eq!((outcome.steps.unmeasured, outcome.sum.missed), (6, 0));
    assert!(outcome.max_ns() < WAKE_NS + 100, "{}", outcome.max_ns());
}

#[test]
fn a_thread_that_is_not_woken_is_late_by_its_own_clock() {
    let outcome = go(&[set(500 * MS + 400_000, -10_000_000, None)], None);
    assert_eq!((outcome.steps.unmeasured, outcome.steps.bounds), (10, 1));
    assert_eq!((outcome.sum.missed, outcome.spikes), (0, 0));
    assert!(outcome.max_ns() < WAKE_NS + 100, "{}", outcome.max_ns());
}

#[test]
fn a_stall_in_the_same_cycle_is_still_a_stall() {
    // Set back by 10.5 ms; due at 511.5 ms by its own clock, and 20 ms late then: the cycles of 512
    // to 531 ms are missed.
    let back = set(500 * MS + 400_000, -10_500_000, None);
    let outcome = go(&[back], Some((SLOT_NS + 505 * MS, 20 * MS)));
    assert_eq!((outcome.steps.unmeasured, outcome.sum.missed), (10, 20));
    assert!((20 * MS..20 * MS + 10_000).contains(&outcome.max_ns()), "{}", outcome.max_ns());
    assert_eq!((outcome.spikes, outcome.sum.late_sampled), (1, 1));
}

#[test]
fn a_step_after_the_timer_expired_is_no_part_of_the_latency() {
    for by_ns in [HOUR, -HOUR, 100_000, -100_000, -2_000] {
        let outcome = go(&[set(500 * MS + 2_000, by_ns, None)], None);
        assert_eq!((outcome.scheduled, outcome.steps.steps), (1500, 1), "{by_ns}");
        assert!(outcome.max_ns() < WAKE_NS + 200, "{by_ns}: {}", outcome.max_ns());
    }
}

#[test]
fn a_step_back_does_not_lengthen_a_run() {
    let outcome = go(&[set(1490 * MS + 400_000, -60_000_000_000, None)], None);
    // The cycle of 1491 ms is sampled when the clock reaches it; 1492 to 1499 ms are not.
    assert_eq!((outcome.steps.unmeasured, outcome.scheduled), (8, 1492));
}

/// Steps and stalls anywhere: whatever comes, the account holds, and no latency is reported that is
/// longer than the stall.
#[test]
fn steps_and_stalls_anywhere() {
    let mut x = 1_u64;
    let mut random = |n: u64| {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (x >> 33) % n
    };
    for _ in 0..2000 {
        let count = random(4);
        let sets: Vec<Set> = (0..count)
            .map(|number| {
                let size = [3_000, 70_000, 900_000, 40_000_000, HOUR as u64][random(5) as usize];
                let by_ns = (1_000 + random(size)).cast_signed();
                let by_ns = if random(2) == 0 { by_ns } else { -by_ns };
                // One a cycle: for a thread that is not woken, a second one would end the sleep.
                let at_ns = (number * 400 + random(380)) * MS + random(MS);
                let rouse_ns = Some(random(3 * MS)).filter(|_| count > 1 || random(2) == 0);
                set(at_ns, by_ns, rouse_ns)
            })
            .collect();
        let stall_ns = random(3) * random(30 * MS);
        let outcome = go(&sets, Some((SLOT_NS + random(1400 * MS), stall_ns)));
        assert!(outcome.max_ns() <= stall_ns + WAKE_NS + 1_000, "{}", outcome.max_ns());
    }
}
