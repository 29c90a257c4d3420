//! The hot path: the cycle of a measuring thread; `run_grid` fits on one screen.
//!
//! After arming: integer nanoseconds, absolute deadlines, no allocation, no lock, no system call
//! but the clock and the sleep. The schedule never slips: wake-ups that were due while the thread
//! was still late are counted as missed, each with its own lateness, and the next one is the
//! first that is still to come.

mod laws;

pub(crate) use laws::{Exchange, ExchangeAnswer, InFlight, Sending};

use std::sync::atomic::{AtomicBool, Ordering};

use rtrb::{Consumer, Producer};

use rtproof_stats::coincidence::GAP_PERIODS;

use crate::slot::{LateWakeUp, Outlet, Slot};
use crate::{EndReason, slot};

/// A second, the length of a slot unless shorter ones are requested.
pub const SLOT_NS: u64 = 1_000_000_000;

/// Slots per thread: one being written, one being emptied, one for a collector that is late. One
/// that is later still makes a slot longer and loses nothing.
pub const SLOTS: usize = 3;

/// Most slots per thread, where they are short.
pub const SLOTS_MAX: usize = 16;

/// A thread that finds no empty slot for this long concludes that real-time threads starve the
/// machine, and ends.
pub const STARVED_NS: u64 = 4_000_000_000;

/// When wake-ups are due. Times are CLOCK_MONOTONIC nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub first_ns: u64,
    pub period_ns: u64,
    /// No wake-up is due at or after this.
    pub end_ns: u64,
    /// Slots end at this plus multiples of their length.
    pub origin_ns: u64,
    /// Length of a slot.
    pub slot_ns: u64,
    /// Later than this is late. `u64::MAX`: nothing is.
    pub budget_ns: u64,
}

impl Schedule {
    /// Wake-ups due before `until_ns`, from the schedule alone.
    pub const fn due_before(&self, until_ns: u64) -> u64 {
        let until_ns = if until_ns < self.end_ns { until_ns } else { self.end_ns };
        until_ns.saturating_sub(self.first_ns).div_ceil(self.period_ns)
    }
}

/// The state of a measuring thread.
#[derive(Debug)]
pub struct Cycle {
    schedule: Schedule,
    slot: Box<Slot>,
    empty: Consumer<Box<Slot>>,
    full: Producer<Box<Slot>>,
    spikes: Outlet,
    /// Later than this is a spike: the threshold as it was at the last end of a second.
    spike_ns: u64,
    /// Later than this is looked at: missed wake-ups, late ones or spikes.
    beyond_ns: u64,
    next_due_ns: u64,
    slot_end_ns: u64,
    starving_since_ns: u64,
    last_late_ns: u64,
    any_late: bool,
    /// Cycles that were due, of a law whose schedule is not known before.
    counted: Option<u64>,
    /// Cycles of the schedule that a step of the clock took out of it.
    unmeasured: u64,
}

impl Cycle {
    /// A thread that will record into `slot` first and exchange full slots for empty ones.
    pub fn new(
        schedule: Schedule,
        mut slot: Box<Slot>,
        empty: Consumer<Box<Slot>>,
        full: Producer<Box<Slot>>,
        spikes: Outlet,
    ) -> Self {
        slot.from_ns = schedule.first_ns;
        let mut cycle = Self {
            schedule,
            slot,
            empty,
            full,
            spikes,
            spike_ns: u64::MAX,
            beyond_ns: 0,
            next_due_ns: schedule.first_ns,
            slot_end_ns: schedule.origin_ns + schedule.slot_ns,
            starving_since_ns: 0,
            last_late_ns: 0,
            any_late: false,
            counted: None,
            unmeasured: 0,
        };
        cycle.refresh();
        cycle
    }

    /// Takes over the threshold that the collector wants.
    fn refresh(&mut self) {
        let Schedule { period_ns, budget_ns, .. } = self.schedule;
        self.spike_ns = self.spikes.threshold_ns();
        self.beyond_ns = budget_ns.min(period_ns - 1).min(self.spike_ns);
    }

    /// Runs until the schedule ends, `stop` is set, or slots are not collected. `wait` returns the
    /// time at which the thread ran, given the time at which it was to. Woken before that time to
    /// be stopped, it counts no wake-up.
    #[inline(always)]
    pub fn run(&mut self, stop: &AtomicBool, wait: impl FnMut(u64) -> u64) -> EndReason {
        self.run_grid::<false>(stop, wait)
    }

    /// The same, keeping the intervals between wake-ups as well.
    #[inline(always)]
    pub fn run_keeping(&mut self, stop: &AtomicBool, wait: impl FnMut(u64) -> u64) -> EndReason {
        self.run_grid::<true>(stop, wait)
    }

    #[inline(always)]
    fn run_grid<const KEEP: bool>(
        &mut self,
        stop: &AtomicBool,
        mut wait: impl FnMut(u64) -> u64,
    ) -> EndReason {
        let mut last_ns = 0;
        loop {
            let due_ns = self.next_due_ns;
            if due_ns >= self.schedule.end_ns {
                return EndReason::Complete;
            }
            if due_ns >= self.slot_end_ns && self.rotate(due_ns) {
                return EndReason::Starved;
            }
            let now_ns = wait(due_ns);
            if now_ns < due_ns && stop.load(Ordering::Relaxed) {
                return EndReason::Stopped;
            }
            let latency_ns = self.slot.record_wake(due_ns, now_ns);
            if KEEP {
                if last_ns != 0 {
                    self.slot.intervals.push(now_ns.saturating_sub(last_ns));
                }
                last_ns = now_ns;
            }
            self.next_due_ns = due_ns + self.schedule.period_ns;
            if latency_ns > self.beyond_ns {
                self.beyond(due_ns, latency_ns);
            }
            if stop.load(Ordering::Relaxed) {
                return EndReason::Stopped;
            }
        }
    }

    /// A wake-up later than usual: what it was too late for.
    #[cold]
    #[inline(never)]
    fn beyond(&mut self, due_ns: u64, latency_ns: u64) {
        if latency_ns >= self.schedule.period_ns {
            self.miss(due_ns, latency_ns);
        }
        if latency_ns > self.schedule.budget_ns {
            self.late(due_ns, latency_ns);
        }
        if latency_ns > self.spike_ns {
            self.spikes.push(&mut self.slot, LateWakeUp { due_ns, latency_ns });
        }
    }

    /// Counts the wake-ups that were due while the thread was late, and skips them.
    #[cold]
    #[inline(never)]
    fn miss(&mut self, due_ns: u64, latency_ns: u64) {
        let Schedule { period_ns, end_ns, budget_ns, .. } = self.schedule;
        let left = (end_ns - due_ns - 1) / period_ns;
        let missed = (latency_ns / period_ns).min(left);
        self.slot.record_missed(latency_ns, period_ns, missed, budget_ns);
        self.next_due_ns = due_ns + (missed + 1) * period_ns;
    }

    /// Counts a late wake-up, and a new cluster when the last one is long ago.
    #[cold]
    #[inline(never)]
    fn late(&mut self, due_ns: u64, latency_ns: u64) {
        self.slot.totals.late_sampled += 1;
        let gap_ns = self.schedule.period_ns.saturating_mul(GAP_PERIODS);
        if !self.any_late || due_ns.saturating_sub(self.last_late_ns) > gap_ns {
            self.slot.totals.late_clusters += 1;
        }
        (self.any_late, self.last_late_ns) = (true, due_ns.saturating_add(latency_ns));
    }

    /// Hands the slot over, if an empty one is there. True: none has been for too long.
    #[cold]
    #[inline(never)]
    fn rotate(&mut self, due_ns: u64) -> bool {
        self.refresh();
        let Schedule { origin_ns, slot_ns, .. } = self.schedule;
        let past = (due_ns - origin_ns) / slot_ns;
        self.slot_end_ns = origin_ns + (past + 1) * slot_ns;
        let Ok(empty) = self.empty.pop() else {
            if self.starving_since_ns == 0 {
                self.starving_since_ns = self.slot_end_ns - slot_ns;
            }
            return due_ns - self.starving_since_ns >= STARVED_NS;
        };
        self.starving_since_ns = 0;
        let mut full = std::mem::replace(&mut self.slot, empty);
        full.to_ns = due_ns;
        self.slot.from_ns = due_ns;
        // The ring holds as many slots as there are: there is always room.
        let pushed = self.full.push(full);
        debug_assert!(pushed.is_ok(), "more slots than the ring was made for");
        false
    }

    pub const fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Wake-ups that were due and are accounted for, from the schedule alone; of a law that makes
    /// its schedule as it goes, from what the law counted.
    pub const fn scheduled(&self) -> u64 {
        match self.counted {
            Some(counted) => counted,
            // What was taken out was due before the next one.
            None => self.schedule.due_before(self.next_due_ns) - self.unmeasured,
        }
    }

    /// The slot that was not handed over.
    pub fn into_last_slot(self) -> Box<Slot> {
        let mut slot = self.slot;
        slot.to_ns = self.next_due_ns.min(self.schedule.end_ns);
        slot
    }
}

/// Slots that a thread gets: for a second or more of a late collector as far as they go.
pub fn slots(slot_ns: u64) -> usize {
    let seconds = SLOT_NS.div_ceil(slot_ns.max(1));
    usize::try_from(seconds).unwrap_or(SLOTS_MAX).saturating_mul(SLOTS).min(SLOTS_MAX)
}

/// Memory of a measuring thread, bytes: slots with histograms and largest samples, the rings that
/// they go round in, the ring of spikes, the state of the cycle. Beside it there is the stack
/// ([`STACK_BYTES`](crate::thread::STACK_BYTES)), and what the workload works on.
///
/// 128 KiB at most with slots of a second. With the shortest it is five times as much: there are
/// [`SLOTS_MAX`] of them.
pub const fn bytes(slots: usize) -> usize {
    let rings = 2 * slot::ring_bytes::<Box<Slot>>(slots);
    slots * Slot::BYTES + rings + slot::BYTES + size_of::<Cycle>()
}

/// Addresses of what runs only when a wake-up is late or a second ends: locked into memory too,
/// because a late moment is the wrong one for a page fault.
pub(crate) fn code() -> [usize; 11] {
    [
        Cycle::beyond as fn(&mut Cycle, u64, u64) as usize,
        Outlet::push as fn(&mut Outlet, &mut Slot, LateWakeUp) as usize,
        Cycle::miss as fn(&mut Cycle, u64, u64) as usize,
        Cycle::late as fn(&mut Cycle, u64, u64) as usize,
        Cycle::rotate as fn(&mut Cycle, u64) -> bool as usize,
        Cycle::beyond_piece as fn(&mut Cycle, u64, u64, u64) as usize,
        Cycle::gap as fn(&mut Cycle, u64, u64) as usize,
        Cycle::bound as fn(&mut Cycle, u64, u64, u64) -> u64 as usize,
        Cycle::unanswered as fn(&mut Cycle, u64, u64) as usize,
        Cycle::held as fn(&mut Cycle, u64, u64) -> u64 as usize,
        Slot::record_missed as fn(&mut Slot, u64, u64, u64, u64) as usize,
    ]
}

/// Runs every path of a cycle once, with made-up times: on time, late, missed, a spike with and
/// without room for it, end of a second.
pub(crate) fn rehearse() {
    let (mut give, empty) = rtrb::RingBuffer::new(SLOTS);
    let (full, _take) = rtrb::RingBuffer::new(SLOTS);
    // The ring is empty.
    let _ = give.push(Box::default());
    let schedule = Schedule {
        first_ns: SLOT_NS,
        period_ns: SLOT_NS / 1000,
        end_ns: 3 * SLOT_NS,
        origin_ns: SLOT_NS,
        slot_ns: SLOT_NS,
        budget_ns: 1000,
    };
    let (spikes, _take_spikes) = slot::ring(schedule.budget_ns / 2);
    let mut cycle = Cycle::new(schedule, Box::default(), empty, full, spikes);
    let mut wakes = 0_u64;
    let reason = cycle.run(&AtomicBool::new(false), |due_ns| {
        wakes += 1;
        due_ns + if wakes.is_multiple_of(100) { 5 * SLOT_NS / 1000 } else { wakes }
    });
    std::hint::black_box((reason, cycle));
}

/// Where the time of a loop that never sleeps went: `busy_ns + gap_ns == run_ns`, always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gaps {
    /// First to last reading of the clock, nanoseconds.
    pub run_ns: u64,
    /// In steps up to the threshold.
    pub busy_ns: u64,
    /// In steps above it.
    pub gap_ns: u64,
    pub gaps: u64,
    pub steps: u64,
    /// The shortest step: the loop's own resolution, nanoseconds.
    pub step_min_ns: u64,
    /// Above this a step is a gap, nanoseconds.
    pub threshold_ns: u64,
}

#[cfg(test)]
mod tests {
    use rtrb::RingBuffer;

    use super::*;
    use crate::slot::{Inlet, SPIKES, ring};

    const MS: u64 = 1_000_000;

    /// A cycle of `seconds` at 1 ms with all its slots, and the collector's ends of the rings.
    fn cycle(seconds: u64) -> (Cycle, Consumer<Box<Slot>>, Producer<Box<Slot>>) {
        let (cycle, take, give, _) = spiky(seconds, u64::MAX);
        (cycle, take, give)
    }

    /// The same with a threshold of spikes, and the collector's end of those.
    fn spiky(
        seconds: u64,
        spike_ns: u64,
    ) -> (Cycle, Consumer<Box<Slot>>, Producer<Box<Slot>>, Inlet) {
        let (mut give, empty) = RingBuffer::new(SLOTS);
        let (full, take) = RingBuffer::new(SLOTS);
        for _ in 1..SLOTS {
            give.push(Box::default()).expect("room");
        }
        let (first_ns, end_ns) = (SLOT_NS, (1 + seconds) * SLOT_NS);
        let schedule = Schedule {
            first_ns,
            period_ns: MS,
            end_ns,
            origin_ns: first_ns,
            slot_ns: SLOT_NS,
            budget_ns: 100_000,
        };
        let (outlet, inlet) = ring(spike_ns);
        (Cycle::new(schedule, Box::default(), empty, full, outlet), take, give, inlet)
    }

    fn go(seconds: u64, late: impl Fn(u64) -> u64) -> (EndReason, u64, Vec<Slot>) {
        let (mut cycle, mut take, mut give) = cycle(seconds);
        let mut slots = Vec::new();
        let reason = cycle.run(&AtomicBool::new(false), |due_ns| {
            while let Ok(slot) = take.pop() {
                slots.push(Slot::clone(&slot));
                give.push(Box::default()).expect("room");
            }
            due_ns + late(due_ns)
        });
        while let Ok(slot) = take.pop() {
            slots.push(*slot);
        }
        let scheduled = cycle.scheduled();
        slots.push(*cycle.into_last_slot());
        (reason, scheduled, slots)
    }

    fn totals(slots: &[Slot]) -> rtproof_stats::Totals {
        let mut sum = rtproof_stats::Totals::default();
        slots.iter().for_each(|slot| sum.merge(&slot.totals));
        sum
    }

    #[test]
    fn every_wake_up_is_accounted_for() {
        let (reason, scheduled, slots) = go(3, |_| 5_000);
        assert_eq!((reason, scheduled), (EndReason::Complete, 3000));
        assert_eq!(slots.len(), 3);
        assert!(slots.iter().all(|slot| slot.totals.wake.count() == 1000));
        assert_eq!(totals(&slots).late(), 0);
    }

    #[test]
    fn a_stall_of_100_ms_is_one_sample_and_a_hundred_missed() {
        let at = SLOT_NS + 500 * MS;
        let (_, scheduled, slots) = go(2, |due| if due == at { 100 * MS + 1000 } else { 1000 });
        let sum = totals(&slots);
        assert_eq!((scheduled, sum.accounted()), (2000, 2000));
        assert_eq!((sum.missed, sum.wake.count()), (100, 1900));
        assert_eq!((sum.late_sampled, sum.late_missed, sum.late_clusters), (1, 99, 1));
        // 1899 samples of 1 us, one of 100.001 ms, and 0.001, 1.001, .. 99.001 ms.
        let mean = (sum.wake.sum() + sum.missed_sum_ns) as f64 / 2000.0;
        assert!((mean - 2_526_000.0).abs() < 1.0, "{mean}");
        let deadline: u64 = slots.iter().map(|s| s.wake.total() + s.missed.total()).sum();
        assert_eq!(deadline, 2000);
    }

    #[test]
    fn slots_are_as_long_as_is_wanted() {
        let (schedule, slot_ns) = (cycle(1).0.schedule, SLOT_NS / 10);
        let n = slots(slot_ns);
        assert_eq!((n, slots(SLOT_NS), slots(0), slots(u64::MAX)), (SLOTS_MAX, SLOTS, 16, SLOTS));
        let (mut give, empty) = RingBuffer::new(n);
        let (full, mut take) = RingBuffer::new(n);
        (1..n).for_each(|_| give.push(Box::default()).expect("room"));
        let schedule = Schedule { slot_ns, ..schedule };
        let (outlet, _spikes) = ring(u64::MAX);
        let mut cycle = Cycle::new(schedule, Box::default(), empty, full, outlet);
        assert_eq!(cycle.run(&AtomicBool::new(false), |due| due + 1), EndReason::Complete);
        for i in 0..9 {
            let slot = take.pop().expect("nine full slots");
            assert_eq!(slot.totals.wake.count(), 100);
            assert_eq!(slot.from_ns, schedule.origin_ns + i * slot_ns);
        }
        assert_eq!(cycle.into_last_slot().totals.wake.count(), 100);
    }

    #[test]
    fn the_memory_of_a_thread_is_bounded() {
        let kib = |bytes: usize| bytes.div_ceil(1024);
        // Lengths and pointers are half as long on a 32-bit processor.
        let wanted = if cfg!(target_pointer_width = "64") { (126, 614) } else { (125, 613) };
        assert_eq!((kib(bytes(slots(SLOT_NS))), kib(bytes(SLOTS_MAX))), wanted);
        // What is locked is what is counted: nothing was left out but the rings of slots.
        let slots: Vec<Box<Slot>> = (0..SLOTS).map(|_| Box::default()).collect();
        let (mut outlet, _inlet) = ring(0);
        let spikes: usize = outlet.memory().iter().map(|(_, bytes)| bytes).sum();
        let all: usize = slots.iter().flat_map(|slot| slot.memory()).map(|(_, bytes)| bytes).sum();
        let rings = 2 * slot::ring_bytes::<Box<Slot>>(SLOTS);
        assert!(all + spikes + rings + size_of::<Cycle>() <= bytes(SLOTS));
        assert!(all + spikes > bytes(SLOTS) - 2048);
    }

    #[test]
    fn a_stall_past_the_end_misses_only_what_was_due() {
        let (reason, scheduled, slots) =
            go(2, |due| if due == SLOT_NS + 1990 * MS { 3600 * SLOT_NS } else { 0 });
        let sum = totals(&slots);
        assert_eq!((reason, scheduled), (EndReason::Complete, 2000));
        assert_eq!((sum.accounted(), sum.missed), (2000, 9));
        assert_eq!(sum.wake.max(), Some(3600 * SLOT_NS));
    }

    #[test]
    fn a_collector_that_is_late_loses_nothing() {
        let (mut cycle, mut take, mut give) = cycle(20);
        let mut waits = 0;
        let reason = cycle.run(&AtomicBool::new(false), |due_ns| {
            waits += 1;
            if waits == 5500 {
                while let Ok(mut slot) = take.pop() {
                    assert_eq!(slot.totals.accounted(), 1000);
                    slot.clear();
                    give.push(slot).expect("room");
                }
            }
            due_ns
        });
        // Slots 1 and 2 went out; the third grew from second 2 until one was free at 5.5 s. It goes
        // out at 6 s; then two are used up, and from second 8 nothing is collected for 4 s.
        assert_eq!(reason, EndReason::Starved);
        assert_eq!(waits, 12_000);
        let mut counts = Vec::new();
        while let Ok(slot) = take.pop() {
            counts.push(slot.totals.accounted());
        }
        counts.push(cycle.into_last_slot().totals.accounted());
        assert_eq!(counts, [4000, 1000, 5000]);
    }

    #[test]
    fn spikes_are_sent_beside_the_slots() {
        // Above the budget, between spike and budget, at the threshold, and one of many periods.
        let late = |due: u64| match due - SLOT_NS {
            0 => 150_000,
            7_000_000 => 40_001,
            9_000_000 => 40_000,
            20_000_000 => 5 * MS + 3,
            _ => 1000,
        };
        let (mut cycle, _take, _give, mut inlet) = spiky(1, 40_000);
        let reason = cycle.run(&AtomicBool::new(false), |due_ns| due_ns + late(due_ns));
        assert_eq!(reason, EndReason::Complete);
        let mut got = Vec::new();
        inlet.drain(|spike| got.push((spike.due_ns - SLOT_NS, spike.latency_ns)));
        assert_eq!(got, [(0, 150_000), (7 * MS, 40_001), (20 * MS, 5 * MS + 3)]);
        let slot = cycle.into_last_slot();
        assert_eq!((slot.spikes, slot.spikes_dropped), (3, 0));
        assert_eq!((slot.totals.late_sampled, slot.totals.late_missed), (2, 4));
        assert_eq!((slot.totals.missed, slot.totals.accounted()), (5, 1000));
    }

    #[test]
    fn a_moved_threshold_holds_from_the_next_second_on() {
        let (mut cycle, mut take, mut give, mut inlet) = spiky(4, u64::MAX);
        let mut counts = Vec::new();
        let mut waits = 0;
        let reason = cycle.run(&AtomicBool::new(false), |due_ns| {
            waits += 1;
            if waits == 1500 {
                inlet.set_threshold_ns(10_000);
            }
            if waits == 2500 {
                inlet.set_threshold_ns(30_000);
            }
            while let Ok(mut slot) = take.pop() {
                counts.push(slot.spikes);
                slot.clear();
                give.push(slot).expect("room");
            }
            // One in ten is 20 us late.
            due_ns + if waits % 10 == 0 { 20_000 } else { 5000 }
        });
        assert_eq!(reason, EndReason::Complete);
        counts.push(cycle.into_last_slot().spikes);
        assert_eq!(counts, [0, 0, 100, 0]);
        let mut n = 0;
        inlet.drain(|_| n += 1);
        assert_eq!(n, 100);
    }

    #[test]
    fn dropped_spikes_are_counted() {
        let (mut cycle, _take, _give, mut inlet) = spiky(3, 0);
        assert_eq!(cycle.run(&AtomicBool::new(false), |due_ns| due_ns + 1), EndReason::Complete);
        let mut n = 0;
        inlet.drain(|_| n += 1);
        assert_eq!(n, SPIKES);
        // The slots before were handed over; the last one holds what its second brought.
        let slot = cycle.into_last_slot();
        assert_eq!((slot.spikes, slot.spikes_dropped), (1000, 1000));
    }

    #[test]
    fn stopping_keeps_the_account() {
        let (mut cycle, _take, _give) = cycle(5);
        let stop = AtomicBool::new(false);
        let mut waits = 0;
        let reason = cycle.run(&stop, |due_ns| {
            waits += 1;
            stop.store(waits == 700, Ordering::Relaxed);
            due_ns + if waits == 700 { 2500 * 1000 } else { 0 }
        });
        assert_eq!((reason, cycle.scheduled()), (EndReason::Stopped, 702));
        assert_eq!(cycle.into_last_slot().totals.accounted(), 702);
    }

    #[test]
    fn a_period_that_does_not_divide_the_duration() {
        let schedule = Schedule {
            first_ns: 10,
            period_ns: 7,
            end_ns: 31,
            origin_ns: 10,
            slot_ns: 1,
            budget_ns: u64::MAX,
        };
        assert_eq!(schedule.due_before(u64::MAX), 3, "10, 17, 24");
        assert_eq!(schedule.due_before(17), 1);
        assert_eq!(schedule.due_before(18), 2);
        assert_eq!(schedule.due_before(0), 0);
    }
}
