//! Each law with made-up times: what it samples, what it counts as missed, and that its account
//! holds where it is stopped, late or stalled.

mod exchange;
mod stepped;

use rtrb::{Consumer, Producer, RingBuffer};

use super::*;
use crate::cycle::{SLOT_NS, SLOTS};
use crate::slot::{Inlet, Slot, ring};

const MS: u64 = 1_000_000;

struct Rig {
    cycle: Cycle,
    _give: Producer<Box<Slot>>,
    take: Consumer<Box<Slot>>,
    spikes: Inlet,
}

/// A second and a half at 1 ms, from 1 s on; spikes above 3 ms, late above 2 ms.
fn rig() -> Rig {
    let (mut give, empty) = RingBuffer::new(SLOTS);
    let (full, take) = RingBuffer::new(SLOTS);
    (1..SLOTS).for_each(|_| give.push(Box::default()).expect("room"));
    let schedule = Schedule {
        first_ns: SLOT_NS,
        period_ns: MS,
        end_ns: SLOT_NS * 5 / 2,
        origin_ns: SLOT_NS,
        slot_ns: SLOT_NS,
        budget_ns: 2 * MS,
    };
    let (outlet, spikes) = ring(3 * MS);
    Rig {
        cycle: Cycle::new(schedule, Box::default(), empty, full, outlet),
        _give: give,
        take,
        spikes,
    }
}

impl Rig {
    /// Scheduled, both slots' totals, spikes.
    fn end(mut self) -> (u64, rtproof_stats::Totals, Vec<Slot>, usize) {
        let scheduled = self.cycle.scheduled();
        let mut slots = Vec::new();
        while let Ok(slot) = self.take.pop() {
            slots.push(*slot);
        }
        slots.push(*self.cycle.into_last_slot());
        let mut sum = rtproof_stats::Totals::default();
        slots.iter().for_each(|slot| sum.merge(&slot.totals));
        let mut spikes = 0;
        self.spikes.drain(|_| spikes += 1);
        (scheduled, sum, slots, spikes)
    }
}

#[test]
fn a_relative_sleep_drifts_and_a_long_one_held_several() {
    let mut rig = rig();
    let mut now_ns = SLOT_NS;
    let mut n = 0;
    let reason = rig.cycle.run_relative(&AtomicBool::new(false), || {
        n += 1;
        // 100 us late each time, and one stall of 50 ms.
        now_ns += MS + if n == 200 { 50 * MS } else { 100_000 };
        now_ns
    });
    assert_eq!(reason, EndReason::Complete);
    let (scheduled, sum, slots, spikes) = rig.end();
    assert_eq!(scheduled, sum.accounted());
    assert_eq!((sum.missed, sum.wake.max(), spikes), (50, Some(50 * MS), 1));
    // 1500 ms less the stall's 51 at 1.1 ms each.
    assert_eq!(sum.wake.count(), (1500 * MS - 51 * MS).div_ceil(1_100_000));
    assert_eq!(sum.wake.min(), Some(100_000));
    let intervals = &slots[0].intervals;
    assert_eq!((intervals.min(), intervals.max()), (Some(1_100_000), Some(51 * MS)));
}

#[test]
fn a_relative_sleep_that_is_stopped_keeps_its_account() {
    let mut rig = rig();
    let stop = AtomicBool::new(false);
    let mut now_ns = SLOT_NS;
    let reason = rig.cycle.run_relative(&stop, || {
        now_ns += 4 * MS + 1;
        stop.store(now_ns > SLOT_NS + 40 * MS, Ordering::Relaxed);
        now_ns
    });
    let (scheduled, sum, _, _) = rig.end();
    assert_eq!((reason, scheduled, sum.accounted()), (EndReason::Stopped, 40, 40));
    assert_eq!(sum.wake.count(), 10);
}

#[test]
fn a_piece_that_lasts_over_its_period_misses_the_next() {
    let mut rig = rig();
    let at = SLOT_NS + 300 * MS;
    let reason = rig.cycle.run_pieces(&AtomicBool::new(false), |due_ns| {
        // The piece itself waited 10 us for its CPU before it began.
        let took_ns = if due_ns == at { 5 * MS } else { 400_000 };
        (took_ns, due_ns + 10_000 + took_ns)
    });
    assert_eq!(reason, EndReason::Complete);
    let (scheduled, sum, _, spikes) = rig.end();
    assert_eq!((scheduled, sum.accounted(), sum.missed), (1500, 1500, 5));
    assert_eq!((sum.wake.max(), sum.wake.min()), (Some(5 * MS), Some(400_000)));
    assert_eq!((sum.late_sampled, spikes), (1, 1));
    // Late by 4.01, 3.01, .. 0.01 ms when it was done.
    assert_eq!(sum.missed_sum_ns, u128::from(10 * MS + 5 * 10_000));
}

#[test]
fn a_piece_that_began_late_is_no_longer_for_it() {
    let mut rig = rig();
    let at = SLOT_NS + 3 * MS;
    rig.cycle.run_pieces(&AtomicBool::new(false), |due_ns| {
        let late_ns = if due_ns == at { 20 * MS } else { 0 };
        (400_000, due_ns + late_ns + 400_000)
    });
    let (scheduled, sum, _, _) = rig.end();
    assert_eq!((scheduled, sum.accounted(), sum.missed), (1500, 1500, 20));
    assert_eq!(sum.wake.max(), Some(400_000));
}

#[test]
fn the_time_of_a_busy_loop_adds_up() {
    let mut rig = rig();
    let mut now_ns = SLOT_NS;
    let mut n = 0_u64;
    let (reason, gaps) = rig.cycle.run_gaps(&AtomicBool::new(false), 1000, || {
        n += 1;
        now_ns += match n {
            777 => 7 * MS,
            n if n.is_multiple_of(10_000) => 1001,
            n if n.is_multiple_of(999) => 1000,
            _ => 300,
        };
        now_ns
    });
    assert_eq!(reason, EndReason::Complete);
    let (scheduled, sum, slots, spikes) = rig.end();
    assert_eq!(gaps.busy_ns + gaps.gap_ns, gaps.run_ns);
    assert_eq!((gaps.gaps, gaps.steps, gaps.step_min_ns), (scheduled, n - 1, 300));
    assert_eq!((scheduled, sum.wake.count(), sum.missed), (1 + n / 10_000, scheduled, 0));
    assert_eq!((sum.wake.max(), sum.wake.min(), spikes), (Some(7 * MS), Some(1001), 1));
    assert_eq!(u128::from(gaps.gap_ns), sum.wake.sum());
    assert_eq!(slots.len(), 2);
    assert!(gaps.run_ns >= SLOT_NS * 3 / 2 - 600);
}

#[test]
fn reported_latencies_are_counted_as_reported() {
    let Rig { mut cycle, mut take, spikes: mut inlet, .. } = rig();
    cycle.begin_counting();
    for i in 0..1500 {
        let now_ns = SLOT_NS + i * MS;
        assert!(!cycle.hand_over(now_ns));
        cycle.expect(1);
        cycle.take_sample(now_ns, if i == 30 { 4 * MS } else { 10 });
    }
    cycle.expect(7);
    // Late by 2.5, 1.5 and 0.5 ms; of four nothing is known.
    cycle.take_missed(7, 2 * MS + MS / 2);
    assert_eq!(cycle.scheduled(), 1507);
    assert_eq!(cycle.edge_ns(), SLOT_NS * 5 / 2);
    let first = take.pop().expect("the first second");
    assert_eq!((first.from_ns, first.to_ns), (SLOT_NS, 2 * SLOT_NS));
    let last = cycle.into_last_slot();
    let mut sum = first.totals.clone();
    sum.merge(&last.totals);
    assert_eq!((sum.accounted(), sum.missed), (1507, 7));
    assert_eq!(sum.missed_sum_ns, u128::from(4 * MS + MS / 2));
    assert_eq!((sum.late_sampled, sum.late_missed), (1, 1));
    assert_eq!(first.missed.total() + last.missed.total(), 7);
    let mut n = 0;
    inlet.drain(|_| n += 1);
    assert_eq!(n, 1);
}
