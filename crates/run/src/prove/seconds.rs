//! Slots that are shorter than a second, put together: a record is made of seconds.

use rtproof_measure::Slot;
use rtproof_record::{
    ThreadTick,
    run::{Sample, Second},
};

const SECOND_NS: u64 = 1_000_000_000;

/// Slots of each thread until their second is over.
#[derive(Debug, Default)]
pub(super) struct Seconds {
    short: bool,
    threads: Vec<Option<Box<Slot>>>,
}

impl Seconds {
    /// For slots of a length.
    pub(super) fn of(slot_ns: u64) -> Self {
        Self { short: slot_ns < SECOND_NS, threads: Vec::new() }
    }

    /// Takes a slot in; returns a second if one is complete.
    pub(super) fn tick(&mut self, thread: u32, slot: &Slot, origin_ns: u64) -> Option<ThreadTick> {
        if !self.short {
            return Some(second(thread, slot, origin_ns));
        }
        let whole = self.take(thread, slot, origin_ns)?;
        Some(second(thread, &whole, origin_ns))
    }

    /// Returns the second before a slot, if it begins another one.
    fn take(&mut self, thread: u32, slot: &Slot, origin_ns: u64) -> Option<Box<Slot>> {
        let at = thread as usize;
        if self.threads.len() <= at {
            self.threads.resize_with(at + 1, || None);
        }
        let second = |slot: &Slot| slot.from_ns.saturating_sub(origin_ns) / SECOND_NS;
        match &mut self.threads[at] {
            Some(whole) if second(whole) == second(slot) => {
                merge(whole, slot);
                None
            }
            other => other.replace(Box::new(slot.clone())),
        }
    }

    pub(super) fn rest(&mut self, origin_ns: u64) -> impl Iterator<Item = ThreadTick> {
        let left = (0..).zip(std::mem::take(&mut self.threads));
        left.filter_map(move |(thread, slot)| Some(second(thread, &*slot?, origin_ns)))
    }
}

/// Adds a later slot.
fn merge(whole: &mut Slot, slot: &Slot) {
    if slot.totals.wake.max() > whole.totals.wake.max() {
        whole.max_at_ns = slot.max_at_ns;
    }
    whole.to_ns = slot.to_ns;
    whole.totals.merge(&slot.totals);
    whole.wake.merge(&slot.wake);
    whole.missed.merge(&slot.missed);
    whole.intervals.merge(&slot.intervals);
    slot.top.as_slice().iter().for_each(|&sample| whole.top.push(sample));
    whole.spikes += slot.spikes;
    whole.spikes_dropped += slot.spikes_dropped;
}

/// A slot as a second of the record.
pub(crate) fn second(number: u32, slot: &Slot, origin_ns: u64) -> ThreadTick {
    let relative = |ns: u64| ns.saturating_sub(origin_ns);
    let second = Second {
        from_ns: relative(slot.from_ns),
        to_ns: relative(slot.to_ns),
        totals: slot.totals.clone(),
        max_at_ns: relative(slot.max_at_ns),
        wake: Vec::new(),
        missed: Vec::new(),
        intervals: slot.intervals.clone(),
    };
    let top = slot
        .top
        .as_slice()
        .iter()
        .map(|sample| Sample { due_ns: relative(sample.due_ns), latency_ns: sample.latency_ns });
    let (wake, missed) = (slot.wake.histogram(), slot.missed.histogram());
    ThreadTick::new(number, second, &wake, &missed, top.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(from_ms: u64, latency_ns: u64) -> Slot {
        let from_ns = from_ms * 1_000_000;
        let mut slot = Slot { from_ns, to_ns: from_ns + SECOND_NS / 4, ..Slot::default() };
        slot.record_wake(from_ns, from_ns + latency_ns);
        slot
    }

    #[test]
    fn four_quarters_are_a_second() {
        let (mut seconds, mut out) = (Seconds::of(SECOND_NS / 4), Vec::new());
        let origin_ns = 50_000_000;
        for (i, latency_ns) in [5, 9, 7, 1, 2, 4].into_iter().enumerate() {
            out.extend(seconds.tick(1, &slot(50 + 250 * i as u64, latency_ns), origin_ns));
        }
        assert_eq!(out.len(), 1);
        out.extend(seconds.rest(origin_ns));
        let [first, second] = &out[..] else { panic!("{} seconds", out.len()) };
        assert_eq!((first.number, second.number), (1, 1));
        let totals = &first.second.totals;
        assert_eq!((totals.wake.count(), totals.wake.max()), (4, Some(9)));
        assert_eq!((first.second.max_at_ns, first.top.len()), (250_000_000, 4));
        assert_eq!((first.second.from_ns, first.second.to_ns), (0, SECOND_NS));
        assert_eq!((second.second.from_ns, second.second.totals.wake.count()), (SECOND_NS, 2));
        assert_eq!(seconds.rest(origin_ns).count(), 0);
    }

    #[test]
    fn whole_seconds_pass() {
        let mut seconds = Seconds::of(SECOND_NS);
        assert!(seconds.tick(0, &slot(0, 1), 0).is_some());
        assert_eq!(seconds.rest(0).count(), 0);
    }
}
