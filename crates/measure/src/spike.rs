//! Spikes on their way out of a measuring thread: a bounded ring, and the threshold that the
//! collector may move.
//!
//! What does not fit is counted in the slot, which holds every wake-up anyway: a spike that is
//! dropped is still measured, but its cause stays unknown.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use rtrb::{Consumer, Producer, RingBuffer};

use crate::slot::Slot;

/// Spikes of one thread that wait for the collector, at most.
pub const SPIKES: usize = 768;

/// Memory of the ring with both its ends and the threshold, bytes.
pub(crate) const BYTES: usize = ring_bytes::<Spike>(SPIKES) + ARC_BYTES + size_of::<AtomicU64>();

/// The two counts of an `Arc`.
const ARC_BYTES: usize = 2 * size_of::<usize>();

/// Memory of a ring of `n`, bytes: its places, and its indices in cache lines of their own.
pub(crate) const fn ring_bytes<T>(n: usize) -> usize {
    ARC_BYTES + size_of::<RingBuffer<T>>() + n * size_of::<T>()
}

/// A wake-up later than the threshold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spike {
    /// When it was due, CLOCK_MONOTONIC nanoseconds.
    pub due_ns: u64,
    pub latency_ns: u64,
}

/// The measuring thread's end.
#[derive(Debug)]
pub struct Outlet {
    ring: Producer<Spike>,
    threshold_ns: Arc<AtomicU64>,
}

/// The collector's end of the ring of spikes.
#[derive(Debug)]
pub struct Inlet {
    ring: Consumer<Spike>,
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
    pub(crate) fn push(&mut self, slot: &mut Slot, spike: Spike) {
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
    pub fn drain(&mut self, mut take: impl FnMut(Spike)) {
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

    #[test]
    fn a_full_ring_drops_and_counts() {
        let (mut outlet, mut inlet) = ring(0);
        let mut slot = Slot::default();
        let spike = |n: usize| Spike { due_ns: n as u64, latency_ns: 1 };
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
        assert!(bytes >= SPIKES * size_of::<Spike>(), "{bytes}");
        inlet.drain(|spike| panic!("nothing was pushed: {spike:?}"));
        let mut slot = Slot::default();
        (0..SPIKES).for_each(|_| outlet.push(&mut slot, Spike::default()));
        assert_eq!(slot.spikes_dropped, 0, "asking took no room");
    }
}
