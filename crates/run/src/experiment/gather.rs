//! One slice of time, put together from the slots of all threads.

use rtproof_measure::Slot;
use rtproof_record::effects::{Part, Slice};
use rtproof_stats::{Histogram, Layout, Totals, quantile::Q};

/// Fewest wake-ups for which p99.9 is given.
const WAKE_UPS_MIN: u64 = 900;
const P999: Q = Q { above: 1, of: 1000 };

/// A slice that is being measured. Times are nanoseconds after the origin.
#[derive(Debug)]
pub(crate) struct Gather {
    from_ns: u64,
    to_ns: u64,
    /// How far each thread has handed over.
    reached_ns: Vec<u64>,
    /// Wake-ups that were due: those measured and, by their lateness, those missed.
    due: Histogram,
    totals: Totals,
}

impl Gather {
    pub(crate) fn new(from_ns: u64, to_ns: u64, threads: usize) -> Self {
        Self {
            from_ns,
            to_ns,
            reached_ns: vec![0; threads],
            due: Histogram::new(Layout::FINE),
            totals: Totals::default(),
        }
    }

    pub(crate) fn to_ns(&self) -> u64 {
        self.to_ns
    }

    /// Takes a slot; one that began outside is no part of it. One that a long stall carried over
    /// the end is: what was due in the slice was that late.
    pub(crate) fn take(&mut self, thread: usize, slot: &Slot, origin_ns: u64) {
        let from_ns = slot.from_ns.saturating_sub(origin_ns);
        if let Some(reached_ns) = self.reached_ns.get_mut(thread) {
            *reached_ns = slot.to_ns.saturating_sub(origin_ns);
        }
        if (self.from_ns..self.to_ns).contains(&from_ns) {
            slot.wake.add_to(&mut self.due);
            slot.missed.add_to(&mut self.due);
            self.totals.merge(&slot.totals);
        }
    }

    /// Threads that have not handed over all of it.
    pub(crate) fn waits_for(&self) -> Vec<usize> {
        let behind = |thread: &usize| self.reached_ns[*thread] < self.to_ns;
        (0..self.reached_ns.len()).filter(behind).collect()
    }

    pub(crate) fn slice(&self, number: u32, part: Part, pair: u32, on: Vec<u32>) -> Slice {
        let scheduled = self.due.total();
        let enough = scheduled >= WAKE_UPS_MIN;
        Slice {
            number,
            part,
            pair,
            on,
            from_ns: self.from_ns,
            to_ns: self.to_ns,
            scheduled,
            p999_ns: enough.then(|| self.due.value_at_rank(P999.rank(scheduled))).flatten(),
            max_ns: self.totals.wake.max(),
            missed: self.totals.missed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A slot of 100 wake-ups from `from_ms` on, the first of them `late_ms` late.
    fn slot(from_ms: u64, late_ms: u64) -> Slot {
        let mut slot = Slot { from_ns: from_ms * MS, ..Slot::default() };
        slot.record_wake(from_ms * MS, (from_ms + late_ms) * MS);
        slot.record_missed(late_ms * MS, MS, late_ms, u64::MAX);
        for i in late_ms + 1..100 {
            slot.record_wake((from_ms + i) * MS, (from_ms + i) * MS + 5_000);
        }
        slot.to_ns = (from_ms + 100.max(late_ms + 1)) * MS;
        slot
    }

    #[test]
    fn what_was_due_in_the_slice_is_in_it() {
        let mut gather = Gather::new(100 * MS, 1100 * MS, 2);
        for thread in 0..2 {
            for i in 0..10 {
                gather.take(thread, &slot(1000 + 100 * i, 0), 1000 * MS);
            }
        }
        assert_eq!(gather.waits_for(), [0, 1]);
        gather.take(0, &slot(2000, 20), 1000 * MS);
        assert_eq!(gather.waits_for(), [1]);
        gather.take(1, &slot(2000, 0), 1000 * MS);
        gather.take(1, &slot(2100, 50), 1000 * MS);
        assert!(gather.waits_for().is_empty());
        let slice = gather.slice(7, Part::Pair, 3, vec![1]);
        assert_eq!((slice.number, slice.pair, slice.on.as_slice()), (7, 3, &[1][..]));
        assert_eq!((slice.scheduled, slice.missed, slice.max_ns), (2000, 20, Some(20 * MS)));
        // Two of 2000 may be later: 20 and 19 ms are, 18 ms is the quantile.
        let p999 = slice.p999_ns.expect("a quantile");
        assert!((18 * MS..18 * MS + MS / 5).contains(&p999), "{p999}");
    }

    #[test]
    fn a_few_wake_ups_have_no_tail() {
        let mut gather = Gather::new(0, 100 * MS, 1);
        gather.take(0, &slot(0, 0), 0);
        assert_eq!(gather.slice(0, Part::Before, 0, Vec::new()).p999_ns, None);
    }
}
