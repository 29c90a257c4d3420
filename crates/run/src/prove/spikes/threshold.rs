//! From when on a wake-up is a spike, where nobody said it: the threshold follows the machine.
//!
//! It begins at four times what the machine needs to turn round, 20 µs at least, and is looked at
//! once a second: where more than about twenty wake-ups a second and CPU are beyond it, or fewer
//! than one, it moves to where ten, or five, of the last second were. It takes more than one quiet
//! second to go far down, and it never goes to where wake-ups are ordinary.

use rtproof_stats::{Histogram, Layout, SlotCounts};

/// It never begins below this.
const FIRST_MIN_NS: u64 = 20_000;
/// It never goes below this.
const MIN_NS: u64 = 5_000;
/// Spikes a second and CPU that are too many, and the number then aimed at.
const TOO_MANY: u64 = 20;
const FROM_MANY: u64 = 10;
/// Fewer than one in a second is too few; the number then aimed at.
const FROM_FEW: u64 = 5;

/// The threshold of a run.
#[derive(Debug)]
pub(super) struct Threshold {
    ns: u64,
    adaptive: bool,
    cpus: u64,
    second: Histogram,
}

impl Threshold {
    /// As asked, or following the machine. `floor_ns`: what it needs to turn round.
    pub(super) fn new(asked_ns: Option<u64>, floor_ns: u64, cpus: usize) -> Self {
        Self {
            ns: asked_ns.unwrap_or_else(|| first_ns(floor_ns)),
            adaptive: asked_ns.is_none(),
            cpus: cpus as u64,
            second: Histogram::new(Layout::FINE),
        }
    }

    pub(super) const fn ns(&self) -> u64 {
        self.ns
    }

    pub(super) const fn is_adaptive(&self) -> bool {
        self.adaptive
    }

    /// What a thread measured in a second.
    pub(super) fn learn(&mut self, wake: &SlotCounts) {
        if self.adaptive {
            wake.add_to(&mut self.second);
        }
    }

    /// A second is over. Returns the threshold if it has moved.
    pub(super) fn tick(&mut self) -> Option<u64> {
        let moved_ns = self.moved_ns();
        self.second.clear();
        if moved_ns == self.ns {
            return None;
        }
        self.ns = moved_ns;
        Some(moved_ns)
    }

    fn moved_ns(&self) -> u64 {
        let n = self.second.total();
        // At long periods a second has few wake-ups: at most one in fifty of them is a spike.
        let rank = |spikes: u64| n - (spikes * self.cpus).min(n / 50);
        let beyond = |spikes: u64| self.second.value_at_rank(rank(spikes));
        let (Some(many), Some(few), Some(median)) =
            (beyond(TOO_MANY), beyond(1), self.second.value_at_rank(n.div_ceil(2)))
        else {
            return self.ns;
        };
        if many > self.ns {
            return beyond(FROM_MANY).map_or(self.ns, |ns| ns.max(self.ns));
        }
        if few <= self.ns {
            let lowest_ns = MIN_NS.max(2 * median).max(self.ns / 2);
            return beyond(FROM_FEW).map_or(self.ns, |ns| ns.max(lowest_ns).min(self.ns));
        }
        self.ns
    }
}

fn first_ns(floor_ns: u64) -> u64 {
    FIRST_MIN_NS.max(floor_ns.saturating_mul(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second of a thousand wake-ups at 4 µs, but for so many at another latency.
    fn second(others: &[(u64, u64)]) -> SlotCounts {
        let mut wake = SlotCounts::default();
        let n: u64 = others.iter().map(|&(_, n)| n).sum();
        wake.record_n(4000, 1000 - n);
        others.iter().for_each(|&(ns, n)| wake.record_n(ns, n));
        wake
    }

    fn after(threshold: &mut Threshold, wake: &SlotCounts) -> u64 {
        threshold.learn(wake);
        threshold.tick();
        threshold.ns()
    }

    #[test]
    fn what_was_asked_stays() {
        let mut threshold = Threshold::new(Some(1000), 9000, 1);
        assert!(!threshold.is_adaptive());
        assert_eq!(after(&mut threshold, &second(&[(90_000, 500)])), 1000);
    }

    #[test]
    fn it_begins_above_what_the_machine_needs() {
        assert_eq!(Threshold::new(None, 2000, 1).ns(), 20_000);
        assert_eq!(Threshold::new(None, 50_000, 1).ns(), 200_000);
    }

    #[test]
    fn it_follows_the_machine_and_stays_where_it_fits() {
        let mut threshold = Threshold::new(None, 0, 1);
        // 100 of 30 µs and 10 of 70 µs: ten a second are left.
        let loud = second(&[(30_000, 100), (70_000, 10)]);
        let raised = after(&mut threshold, &loud);
        assert!((30_000..70_000).contains(&raised), "{raised}");
        assert_eq!(after(&mut threshold, &loud), raised, "ten are neither many nor few");
        // Nothing beyond: halfway down at most, and never to where wake-ups are ordinary.
        let quiet = second(&[]);
        assert_eq!(after(&mut threshold, &quiet), raised / 2);
        for _ in 0..20 {
            after(&mut threshold, &quiet);
        }
        let lowest = threshold.ns();
        assert!((8000..8100).contains(&lowest), "twice the median: {lowest}");
        // A second without a wake-up says nothing.
        assert_eq!(after(&mut threshold, &SlotCounts::default()), lowest);
    }

    #[test]
    fn it_counts_per_cpu_and_few_wake_ups_are_not_all_spikes() {
        let mut threshold = Threshold::new(None, 0, 4);
        // 60 of 4000 wake-ups on four CPUs: 15 each.
        for _ in 0..3 {
            threshold.learn(&second(&[]));
        }
        assert_eq!(after(&mut threshold, &second(&[(30_000, 60)])), 20_000);
        // At a period of 100 ms there are ten wake-ups a second, and all of them are 50 µs late.
        let mut threshold = Threshold::new(None, 0, 1);
        let mut slow = SlotCounts::default();
        slow.record_n(50_000, 10);
        assert!(after(&mut threshold, &slow) >= 50_000);
    }
}
