//! Where a measuring thread records: one slot a second, all of it preallocated.
//!
//! Slots go round between the measuring thread and the collector. When the collector is late the
//! thread goes on in the slot it has: it then covers more than a second and nothing is lost.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rtrb::{Consumer, Producer, RingBuffer};

use rtproof_stats::{Moments, Sample, SlotCounts, TopSamples, Totals};

/// Largest samples kept per slot, and so per thread of a run, exactly.
pub const TOP: usize = 64;

/// What one thread measured in one second.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Due time of the first wake-up it covers, CLOCK_MONOTONIC nanoseconds.
    pub from_ns: u64,
    /// Due time of the first wake-up it no longer covers.
    pub to_ns: u64,
    pub totals: Totals,
    /// Due time of the largest sample.
    pub max_at_ns: u64,
    /// Intervals from one wake-up to the next, of workloads that keep them
    /// (`keeps_intervals` of the workload); else empty.
    pub intervals: Moments,
    pub wake: SlotCounts,
    /// Lateness of missed wake-ups.
    pub missed: SlotCounts,
    pub top: TopSamples,
    /// Wake-ups later than the threshold of spikes.
    pub spikes: u64,
    /// Of those, the ones that found no room on their way to the collector.
    pub spikes_dropped: u64,
    /// Each single sample, where they are kept.
    pub kept: KeptSamples,
}

/// Single samples, in the order of time, as far as there is room.
#[derive(Clone, Debug, Default)]
pub struct KeptSamples {
    /// Empty where none are kept.
    room: Box<[Sample]>,
    len: usize,
    /// Samples that found no room.
    pub lost: u64,
}

impl KeptSamples {
    /// Room for so many.
    pub fn new(room: usize) -> Self {
        Self { room: vec![Sample::default(); room].into(), ..Self::default() }
    }

    /// What is in it.
    pub fn as_slice(&self) -> &[Sample] {
        self.room.get(..self.len).unwrap_or_default()
    }

    #[inline(always)]
    fn push(&mut self, sample: Sample) {
        match self.room.get_mut(self.len) {
            Some(place) => {
                *place = sample;
                self.len += 1;
            }
            None => self.lost += u64::from(!self.room.is_empty()),
        }
    }
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            from_ns: 0,
            to_ns: 0,
            totals: Totals::default(),
            max_at_ns: 0,
            intervals: Moments::default(),
            wake: SlotCounts::default(),
            missed: SlotCounts::default(),
            top: TopSamples::new(TOP),
            spikes: 0,
            spikes_dropped: 0,
            kept: KeptSamples::default(),
        }
    }
}

impl Slot {
    /// Memory of a slot with all that belongs to it, bytes.
    pub const BYTES: usize =
        size_of::<Self>() + 2 * SlotCounts::HEAP_BYTES + TOP * size_of::<Sample>();

    /// Empties the slot; the memory stays.
    pub fn clear(&mut self) {
        (self.kept.len, self.kept.lost) = (0, 0);
        (self.from_ns, self.to_ns, self.max_at_ns) = (0, 0, 0);
        (self.spikes, self.spikes_dropped) = (0, 0);
        self.totals = Totals::default();
        self.intervals = Moments::default();
        self.wake.clear();
        self.missed.clear();
        self.top.clear();
    }

    /// The memory to lock into RAM, as (address, bytes).
    pub(crate) fn memory(&self) -> [(usize, usize); 5] {
        [
            (std::ptr::from_ref(self) as usize, size_of::<Self>()),
            self.wake.memory(),
            self.missed.memory(),
            self.top.memory(),
            (self.kept.room.as_ptr() as usize, size_of_val(&*self.kept.room)),
        ]
    }

    /// Records the wake-up that was due at `due_ns` and came at `now_ns`. Returns how late it was.
    #[inline(always)]
    pub fn record_wake(&mut self, due_ns: u64, now_ns: u64) -> u64 {
        let latency_ns = now_ns.saturating_sub(due_ns);
        if now_ns < due_ns {
            self.totals.early += 1;
        }
        if self.totals.wake.push(latency_ns) {
            self.max_at_ns = due_ns;
        }
        self.wake.record(latency_ns);
        let sample = Sample { due_ns, latency_ns };
        self.top.push(sample);
        self.kept.push(sample);
        latency_ns
    }

    /// Records `count` wake-ups that were due `period_ns`, 2 `period_ns`, ... after one that came
    /// `latency_ns` late: each was late by what was left.
    #[inline(never)]
    pub fn record_missed(&mut self, latency_ns: u64, period_ns: u64, count: u64, budget_ns: u64) {
        if count == 0 {
            return;
        }
        self.missed.record_progression(latency_ns - period_ns, period_ns, count);
        self.totals.missed += count;
        let (n, period) = (u128::from(count), u128::from(period_ns));
        self.totals.missed_sum_ns += n * u128::from(latency_ns) - period * (n * (n + 1) / 2);
        // Of i = 1..=count, those with latency - i period > budget.
        let late = latency_ns.saturating_sub(budget_ns).saturating_sub(1) / period_ns;
        self.totals.late_missed += late.min(count);
    }
}

// Spikes on their way out of a measuring thread: a bounded ring, and the threshold that the
// collector may move.
//
// What does not fit is counted in the slot, which holds every wake-up anyway: a spike that is
// dropped is still measured, but its cause stays unknown.

/// Spikes of one thread that wait for the collector, at most.
pub const SPIKES: usize = 768;

/// Memory of the ring with both its ends and the threshold, bytes.
pub(crate) const BYTES: usize =
    ring_bytes::<LateWakeUp>(SPIKES) + ARC_BYTES + size_of::<AtomicU64>();

/// The two counts of an `Arc`.
const ARC_BYTES: usize = 2 * size_of::<usize>();

/// Memory of a ring of `n`, bytes: its places, and its indices in cache lines of their own.
pub(crate) const fn ring_bytes<T>(n: usize) -> usize {
    ARC_BYTES + size_of::<RingBuffer<T>>() + n * size_of::<T>()
}

/// A wake-up later than the threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LateWakeUp {
    /// When it was due, CLOCK_MONOTONIC nanoseconds.
    pub due_ns: u64,
    pub latency_ns: u64,
}

/// The measuring thread's end.
#[derive(Debug)]
pub struct Outlet {
    ring: Producer<LateWakeUp>,
    threshold_ns: Arc<AtomicU64>,
}

/// The collector's end of the ring of spikes.
#[derive(Debug)]
pub struct Inlet {
    ring: Consumer<LateWakeUp>,
    threshold_ns: Arc<AtomicU64>,
}

/// Both ends of a ring. Later than `threshold_ns` is a spike; `u64::MAX`: nothing is.
pub fn ring(threshold_ns: u64) -> (Outlet, Inlet) {
    let (give, take) = RingBuffer::new(SPIKES);
    let threshold = Arc::new(AtomicU64::new(threshold_ns));
    let outlet = Outlet { ring: give, threshold_ns: Arc::clone(&threshold) };
    (outlet, Inlet { ring: take, threshold_ns: threshold })
}

impl Outlet {
    /// The threshold now. The thread asks at the end of each slot, not with every wake-up.
    pub(crate) fn threshold_ns(&self) -> u64 {
        self.threshold_ns.load(Ordering::Relaxed)
    }

    /// Hands a spike over, or counts it as dropped.
    #[inline(never)]
    pub(crate) fn push(&mut self, slot: &mut Slot, spike: LateWakeUp) {
        slot.spikes += 1;
        if self.ring.push(spike).is_err() {
            slot.spikes_dropped += 1;
        }
    }

    /// The memory to lock into RAM, as (address, bytes). Touches all of it.
    pub(crate) fn memory(&mut self) -> Vec<(usize, usize)> {
        let of = |start: usize, bytes: usize| (start, bytes);
        let buffer = self.ring.buffer();
        let mut memory = vec![
            of(std::ptr::from_ref(buffer) as usize, size_of_val(buffer)),
            of(Arc::as_ptr(&self.threshold_ns) as usize, size_of::<AtomicU64>()),
        ];
        // A new ring is empty: the chunk is all of it. It is given back unwritten.
        if let Ok(mut chunk) = self.ring.write_chunk(SPIKES) {
            let (all, rest) = chunk.as_mut_slices();
            memory.extend([all, rest].map(|part| of(part.as_ptr() as usize, size_of_val(part))));
        }
        memory.retain(|&(_, bytes)| bytes > 0);
        memory
    }
}

impl Inlet {
    /// Hands out what came, oldest first.
    pub fn drain(&mut self, mut take: impl FnMut(LateWakeUp)) {
        while let Ok(spike) = self.ring.pop() {
            take(spike);
        }
    }

    /// Moves the threshold; in force from the thread's next second on.
    pub fn set_threshold_ns(&self, threshold_ns: u64) {
        self.threshold_ns.store(threshold_ns, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without --keep-samples a slot keeps none: an empty part.
    #[test]
    fn an_empty_part_is_no_reason_not_to_lock() {
        let slot = Slot::default();
        assert!(slot.memory().iter().any(|&(_, bytes)| bytes == 0));
        let empty = slot.memory().into_iter().filter(|&(_, bytes)| bytes == 0);
        for (address, bytes) in empty {
            crate::sys::lock(address, bytes).expect("nothing to lock");
        }
    }

    #[test]
    fn missed_wake_ups_count_with_their_own_lateness() {
        // Due every 100, one wake-up 1050 late: those due at 100, 200, .. 1000 were missed, late by
        // 950, 850, .. 50.
        let mut slot = Slot::default();
        slot.record_missed(1050, 100, 10, 450);
        assert_eq!(slot.totals.missed, 10);
        assert_eq!(slot.totals.missed_sum_ns, (0..10).map(|i| 50 + 100 * i).sum());
        assert_eq!(slot.missed.total(), 10);
        assert_eq!(slot.totals.late_missed, 5, "550, 650, .. 950; 450 itself is on time");
        slot.record_missed(99, 100, 0, 0);
        assert_eq!(slot.totals.missed, 10);
    }

    #[test]
    fn a_wake_up_before_its_time_is_counted_as_such() {
        let mut slot = Slot::default();
        assert_eq!(slot.record_wake(1000, 900), 0);
        assert_eq!(slot.record_wake(2000, 2700), 700);
        assert_eq!(slot.record_wake(3000, 3100), 100);
        assert_eq!((slot.totals.early, slot.max_at_ns), (1, 2000));
        assert_eq!((slot.totals.wake.count(), slot.wake.total()), (3, 3));
        assert!(slot.kept.as_slice().is_empty() && slot.kept.lost == 0, "none unless asked for");
        slot.clear();
        assert_eq!((slot.totals.accounted(), slot.top.as_slice().len()), (0, 0));
    }

    #[test]
    fn samples_are_kept_as_far_as_there_is_room_and_counted_beyond() {
        let mut slot = Slot { kept: KeptSamples::new(2), ..Slot::default() };
        for n in 1..=3 {
            slot.record_wake(1000 * n, 1000 * n + n);
        }
        let sample = |n: u64| Sample { due_ns: 1000 * n, latency_ns: n };
        assert_eq!((slot.kept.as_slice(), slot.kept.lost), (&[sample(1), sample(2)][..], 1));
        slot.clear();
        slot.record_wake(9000, 9009);
        let last = Sample { due_ns: 9000, latency_ns: 9 };
        assert_eq!((slot.kept.as_slice(), slot.kept.lost), (&[last][..], 0));
    }
}

#[cfg(test)]
mod spike_tests {
    use super::*;

    #[test]
    fn a_full_ring_drops_and_counts() {
        let (mut outlet, mut inlet) = ring(0);
        let mut slot = Slot::default();
        let spike = |n: usize| LateWakeUp { due_ns: n as u64, latency_ns: 1 };
        (0..SPIKES + 3).for_each(|n| outlet.push(&mut slot, spike(n)));
        assert_eq!((slot.spikes, slot.spikes_dropped), (SPIKES as u64 + 3, 3));
        let mut got = Vec::new();
        inlet.drain(|spike| got.push(spike));
        assert_eq!(got, (0..SPIKES).map(spike).collect::<Vec<_>>(), "the oldest are kept");
        outlet.push(&mut slot, spike(7));
        assert_eq!(slot.spikes_dropped, 3, "there is room again");
        slot.clear();
        assert_eq!((slot.spikes, slot.spikes_dropped), (0, 0));
    }

    #[test]
    fn all_of_the_ring_is_locked() {
        let (mut outlet, mut inlet) = ring(0);
        let bytes: usize = outlet.memory().iter().map(|(_, bytes)| bytes).sum();
        assert!(bytes >= SPIKES * size_of::<LateWakeUp>(), "{bytes}");
        inlet.drain(|spike| panic!("nothing was pushed: {spike:?}"));
        let mut slot = Slot::default();
        (0..SPIKES).for_each(|_| outlet.push(&mut slot, LateWakeUp::default()));
        assert_eq!(slot.spikes_dropped, 0, "asking took no room");
    }
}
