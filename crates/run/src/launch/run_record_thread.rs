//! One thread of a program as a record holds it: its period, its wake-ups second by second.

use rtproof_measure::Slot;
use rtproof_record::{ThreadTick, run::ThreadInfo};
use rtproof_stats::coincidence::GAP_PERIODS;
use rtproof_trace::{WakeUp, WakeUpBasis};

use crate::prove::collect::second;

/// Intervals that it takes to find a period.
const INTERVALS_MIN: usize = 8;

/// An interval is that of a period if it is a multiple of it within this part of the period.
const WITHIN: u64 = 10;

/// How a thread is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rhythm {
    /// From one wake-up to the next: the period, or the mean where there is none.
    pub(super) interval_ns: u64,
    /// Whether a timer wakes it at one period: then cycles that came while it was late are known.
    pub(super) is_periodic: bool,
}

impl Rhythm {
    /// That of a thread's first wake-ups. Nine of ten intervals make a period.
    pub(super) fn of(wakes: &[WakeUp]) -> Self {
        let timers: Vec<u64> = wakes
            .iter()
            .filter(|wake| wake.how == WakeUpBasis::Timer)
            .map(|wake| wake.due_ns)
            .collect();
        let mut intervals: Vec<u64> = timers
            .windows(2)
            .map(|two| two[1].saturating_sub(two[0]))
            .filter(|&ns| ns > 0)
            .collect();
        intervals.sort_unstable();
        let median_ns = intervals.get(intervals.len() / 2).copied().unwrap_or(0);
        let is_multiple = |ns: u64| {
            let turns = (ns + median_ns / 2) / median_ns;
            turns > 0 && ns.abs_diff(turns * median_ns) <= median_ns / WITHIN
        };
        if intervals.len() >= INTERVALS_MIN && timers.len() * 10 >= wakes.len() * 9 {
            let fitting = intervals.iter().filter(|&&ns| is_multiple(ns)).count();
            if fitting * 10 >= intervals.len() * 9 {
                return Self { interval_ns: median_ns, is_periodic: true };
            }
        }
        let span_ns = match (wakes.first(), wakes.last()) {
            (Some(first), Some(last)) => last.due_ns.saturating_sub(first.due_ns),
            _ => 0,
        };
        let between = (wakes.len() as u64).saturating_sub(1).max(1);
        Self { interval_ns: (span_ns / between).max(1), is_periodic: false }
    }
}

/// A thread whose wake-ups go into the record.
#[derive(Debug)]
pub(super) struct JudgedThread {
    pub(super) info: ThreadInfo,
    rhythm: Rhythm,
    budget_ns: u64,
    slot: Box<Slot>,
    /// The last wake-up: how many cycles it missed is known with the next one.
    last: Option<WakeUp>,
    /// Due time in the record of the last one.
    due_ns: u64,
    late_until_ns: Option<u64>,
    written_to_ns: u64,
    /// Wake-ups, sampled and missed.
    pub(super) accounted: u64,
    /// Whether it ran on another CPU than at first.
    pub(super) has_moved: bool,
}

impl JudgedThread {
    pub(super) fn new(info: ThreadInfo, rhythm: Rhythm, budget_ns: u64) -> Self {
        Self {
            info,
            rhythm,
            budget_ns,
            slot: Box::default(),
            last: None,
            due_ns: 0,
            late_until_ns: None,
            written_to_ns: 0,
            accounted: 0,
            has_moved: false,
        }
    }

    pub(super) fn woke(&mut self, wake: WakeUp) {
        self.has_moved |= wake.cpu != self.info.cpu;
        if let Some(last) = self.last.replace(wake) {
            self.count(&last, Some(wake.due_ns));
        }
    }

    /// There will be no more.
    pub(super) fn end(&mut self) {
        if let Some(last) = self.last.take() {
            self.count(&last, None);
        }
    }

    fn count(&mut self, wake: &WakeUp, next_due_ns: Option<u64>) {
        // The due time is the sample's name, and in order.
        let due_ns = wake.due_ns.max(self.due_ns + 1);
        self.due_ns = due_ns;
        let interval_ns = self.rhythm.interval_ns;
        if self.slot.from_ns == 0 {
            self.slot.from_ns = due_ns.max(self.written_to_ns);
        }
        let step_ns = if self.rhythm.is_periodic { interval_ns } else { 1 };
        self.slot.to_ns = (due_ns + step_ns).max(self.slot.from_ns);
        let latency_ns = wake.latency_ns();
        self.slot.record_wake(due_ns, due_ns.saturating_add(latency_ns));
        self.accounted += 1;
        if self.rhythm.is_periodic {
            let missed = missed(wake, next_due_ns, interval_ns);
            self.slot.record_missed(latency_ns, interval_ns, missed, self.budget_ns);
            self.accounted += missed;
        }
        if latency_ns > self.budget_ns {
            self.slot.totals.late_sampled += 1;
            let gap_ns = interval_ns.saturating_mul(GAP_PERIODS);
            let is_new = |until: u64| due_ns.saturating_sub(until) > gap_ns;
            self.slot.totals.late_clusters += u64::from(self.late_until_ns.is_none_or(is_new));
            self.late_until_ns = Some(due_ns.saturating_add(latency_ns));
        }
    }

    /// What came since the last call, as a second of the record.
    pub(super) fn take(&mut self, origin_ns: u64) -> Option<ThreadTick> {
        if self.slot.totals.accounted() == 0 {
            return None;
        }
        let tick = second(self.info.number, &self.slot, origin_ns);
        self.written_to_ns = self.slot.to_ns;
        self.slot.clear();
        Some(tick)
    }
}

/// Cycles that were due while a thread was late, and did not come later: none of those up to the
/// next one.
fn missed(wake: &WakeUp, next_due_ns: Option<u64>, period_ns: u64) -> u64 {
    let while_late = wake.latency_ns() / period_ns;
    let left_out = next_due_ns.map_or(while_late, |next_ns| {
        let periods = (next_ns.saturating_sub(wake.due_ns) + period_ns / 2) / period_ns;
        periods.saturating_sub(1)
    });
    while_late.min(left_out)
}

#[cfg(test)]
mod tests {
    use rtproof_host::facts::tasks::Policy;

    use super::*;

    const MS: u64 = 1_000_000;

    fn wake(due_ns: u64, latency_ns: u64, how: WakeUpBasis) -> WakeUp {
        WakeUp { tid: 7, cpu: 1, due_ns, ran_ns: due_ns + latency_ns, how }
    }

    fn judged(rhythm: Rhythm) -> JudgedThread {
        let info = ThreadInfo {
            number: 0,
            cpu: 1,
            tid: 7,
            workload: "app:loop".into(),
            policy: Policy::Fifo,
            priority: 80,
            locked: false,
            period_ns: rhythm.interval_ns,
            first_due_ns: 0,
        };
        JudgedThread::new(info, rhythm, 50_000)
    }

    #[test]
    fn a_period_is_what_nine_of_ten_intervals_are() {
        let every = |period: u64| (0..40).map(move |i| wake(i * period, 9_000, WakeUpBasis::Timer));
        let clean: Vec<_> = every(MS).collect();
        assert_eq!(Rhythm::of(&clean), Rhythm { interval_ns: MS, is_periodic: true });
        // Cycles that were left out are multiples.
        let gaps: Vec<_> = every(MS).filter(|wake| wake.due_ns % (7 * MS) != 0).collect();
        assert_eq!(Rhythm::of(&gaps), Rhythm { interval_ns: MS, is_periodic: true });
        // Events have no period, however regular they are; nor has what is woken by both.
        let woken: Vec<_> = (0..40).map(|i| wake(i * MS, 9_000, WakeUpBasis::Woken)).collect();
        assert_eq!(Rhythm::of(&woken), Rhythm { interval_ns: MS, is_periodic: false });
        let wild: Vec<_> =
            (0..40).map(|i| wake(i * i * 100_003 + i * 7, 9_000, WakeUpBasis::Timer)).collect();
        assert!(!Rhythm::of(&wild).is_periodic);
        assert!(!Rhythm::of(&clean[..8]).is_periodic, "too few");
        assert_eq!(Rhythm::of(&[]).interval_ns, 1);
    }

    #[test]
    fn cycles_that_a_late_wake_up_swallowed_are_missed_and_those_that_were_made_up_are_not() {
        let mut thread = judged(Rhythm { interval_ns: MS, is_periodic: true });
        thread.woke(wake(10 * MS, 9_000, WakeUpBasis::Timer));
        // 3.5 ms late; goes on with the first cycle after that.
        thread.woke(wake(11 * MS, 3 * MS + MS / 2, WakeUpBasis::Timer));
        thread.woke(wake(15 * MS, 8_000, WakeUpBasis::Timer));
        // Late by 2.2 ms, and the next cycle is made up.
        thread.woke(wake(16 * MS, 2 * MS + MS / 5, WakeUpBasis::Timer));
        thread.woke(wake(17 * MS, MS + MS / 4, WakeUpBasis::Timer));
        thread.end();
        let tick = thread.take(0).expect("wake-ups");
        let totals = &tick.second.totals;
        assert_eq!((totals.wake.count(), totals.missed), (5, 4), "3 of the first, 1 of the last");
        assert_eq!((totals.late_sampled, totals.late_clusters), (3, 1));
        assert_eq!(totals.late_missed, 4);
        assert_eq!((tick.second.from_ns, tick.second.to_ns), (10 * MS, 18 * MS));
        assert_eq!(thread.accounted, 9);
        assert!(thread.take(0).is_none(), "once");
    }

    #[test]
    fn without_a_period_nothing_is_missed_and_due_times_stay_in_order() {
        let mut thread = judged(Rhythm { interval_ns: MS, is_periodic: false });
        thread.woke(wake(10 * MS, 5 * MS, WakeUpBasis::Woken));
        thread.woke(wake(9 * MS, 7_000, WakeUpBasis::Timer));
        thread.woke(wake(9 * MS, 7_000, WakeUpBasis::Timer));
        thread.end();
        let tick = thread.take(0).expect("wake-ups");
        assert_eq!((tick.second.totals.wake.count(), tick.second.totals.missed), (3, 0));
        let mut dues: Vec<u64> = tick.top.iter().map(|sample| sample.due_ns).collect();
        dues.sort_unstable();
        assert_eq!(dues, [10 * MS, 10 * MS + 1, 10 * MS + 2]);
        thread.woke(wake(10 * MS, 1_000, WakeUpBasis::Timer));
        thread.end();
        let next = thread.take(0).expect("another one");
        assert!(next.second.from_ns >= tick.second.to_ns, "seconds do not lap");
    }
}
