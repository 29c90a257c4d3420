//! Cycles whose samples are not wake-ups on a grid: intervals that start where the last one ended,
//! pieces of work, messages and their answers, gaps of a loop that never sleeps, and what other
//! programs report.
//!
//! Each law says what was scheduled, so that `scheduled == sampled + missed` holds for all of them
//! and can fail for each.

mod exchange;
mod stepped;

pub(crate) use exchange::{Answer, Exchange, Sending, UnderWay};

use std::sync::atomic::{AtomicBool, Ordering};

use super::gaps::Gaps;
use super::{Cycle, Schedule};
use crate::{EndReason, spike::Spike};

impl Cycle {
    /// Moves the grid: the timer that makes the wake-ups was started so that the first is then.
    pub(crate) fn begin_at(&mut self, first_ns: u64) {
        self.schedule.first_ns = first_ns;
        self.next_due_ns = first_ns;
        self.slot.from_ns = first_ns;
    }

    /// Relative sleeps. `wait` sleeps for a period and returns the time after it.
    ///
    /// A cycle is due one period after the last one woke, so the schedule drifts by every
    /// lateness. The sample is the interval less the period. An interval of k whole periods held k
    /// cycles that were due, of which one came: the others are missed.
    #[inline(always)]
    pub fn run_relative(&mut self, stop: &AtomicBool, mut wait: impl FnMut() -> u64) -> EndReason {
        let Schedule { period_ns, end_ns, .. } = self.schedule;
        self.counted = Some(0);
        let mut last_ns = self.schedule.first_ns;
        loop {
            let due_ns = last_ns + period_ns;
            self.next_due_ns = due_ns;
            if due_ns >= end_ns {
                return EndReason::Complete;
            }
            if due_ns >= self.slot_end_ns && self.rotate(due_ns) {
                return EndReason::Starved;
            }
            let now_ns = wait();
            if now_ns < due_ns && stop.load(Ordering::Relaxed) {
                return EndReason::Stopped;
            }
            let over_ns = self.slot.record_wake(due_ns, now_ns);
            self.slot.intervals.push(now_ns.saturating_sub(last_ns));
            // From the interval alone, not from what is counted as missed below.
            let due = Schedule { first_ns: due_ns, ..self.schedule };
            self.expect(due.due_before(now_ns + 1).max(1));
            if over_ns > self.beyond_ns {
                self.beyond(due_ns, over_ns);
            }
            last_ns = now_ns;
            if stop.load(Ordering::Relaxed) {
                self.next_due_ns = now_ns + period_ns;
                return EndReason::Stopped;
            }
        }
    }

    /// Pieces of work on a grid. `piece` waits until the piece is due, does it, and returns how
    /// long it took, as it counts, and when it was done.
    ///
    /// The sample is the duration. Pieces that were due before one was done are missed, each late
    /// by what was left until then.
    #[inline(always)]
    pub fn run_pieces(
        &mut self,
        stop: &AtomicBool,
        mut piece: impl FnMut(u64) -> (u64, u64),
    ) -> EndReason {
        loop {
            let due_ns = self.next_due_ns;
            if due_ns >= self.schedule.end_ns {
                return EndReason::Complete;
            }
            if due_ns >= self.slot_end_ns && self.rotate(due_ns) {
                return EndReason::Starved;
            }
            let (took_ns, done_ns) = piece(due_ns);
            // Done before it was due: woken to be stopped.
            if done_ns < due_ns && stop.load(Ordering::Relaxed) {
                return EndReason::Stopped;
            }
            self.slot.record_wake(due_ns, due_ns.saturating_add(took_ns));
            self.next_due_ns = due_ns + self.schedule.period_ns;
            if took_ns > self.beyond_ns || done_ns >= self.next_due_ns {
                self.beyond_piece(due_ns, took_ns, done_ns);
            }
            if stop.load(Ordering::Relaxed) {
                return EndReason::Stopped;
            }
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn beyond_piece(&mut self, due_ns: u64, took_ns: u64, done_ns: u64) {
        if done_ns >= self.next_due_ns {
            self.miss(due_ns, done_ns - due_ns);
        }
        if took_ns > self.schedule.budget_ns {
            self.late(due_ns, took_ns);
        }
        if took_ns > self.spike_ns {
            self.spikes.push(&mut self.slot, Spike { due_ns, latency_ns: took_ns });
        }
    }

    /// Reads a clock without pause from the first moment of the schedule to its end.
    ///
    /// A step above `threshold_ns` is a gap: each is scheduled when it is found, and sampled;
    /// none is missed. Completeness is checked by time: steps above and up to the
    /// threshold add up to the whole run.
    #[inline(always)]
    pub fn run_gaps(
        &mut self,
        stop: &AtomicBool,
        threshold_ns: u64,
        mut clock: impl FnMut() -> u64,
    ) -> (EndReason, Gaps) {
        self.counted = Some(0);
        let mut gaps = Gaps { threshold_ns, step_min_ns: u64::MAX, ..Gaps::default() };
        let start_ns = clock();
        let mut last_ns = start_ns;
        let reason = loop {
            let now_ns = clock();
            let step_ns = now_ns.saturating_sub(last_ns);
            gaps.steps += 1;
            if step_ns > threshold_ns {
                gaps.gap_ns += step_ns;
                gaps.gaps += 1;
                self.gap(last_ns, step_ns);
            } else {
                gaps.busy_ns += step_ns;
            }
            // A clock that did not move between two readings tells nothing of the loop.
            if step_ns < gaps.step_min_ns && step_ns > 0 {
                gaps.step_min_ns = step_ns;
            }
            last_ns = now_ns;
            self.next_due_ns = now_ns;
            if now_ns >= self.slot_end_ns && now_ns < self.schedule.end_ns && self.rotate(now_ns) {
                break EndReason::Starved;
            }
            if now_ns >= self.schedule.end_ns {
                break EndReason::Complete;
            }
            if stop.load(Ordering::Relaxed) {
                break EndReason::Stopped;
            }
        };
        gaps.run_ns = last_ns.saturating_sub(start_ns);
        (reason, gaps)
    }

    #[cold]
    #[inline(never)]
    pub(super) fn gap(&mut self, from_ns: u64, gap_ns: u64) {
        self.expect(1);
        self.slot.record_wake(from_ns, from_ns + gap_ns);
        if gap_ns > self.schedule.budget_ns {
            self.late(from_ns, gap_ns);
        }
        if gap_ns > self.spike_ns {
            self.spikes.push(&mut self.slot, Spike { due_ns: from_ns, latency_ns: gap_ns });
        }
    }

    /// Begins a law of which the caller says what was due: [`Cycle::expect`], then
    /// [`Cycle::take_sample`] and [`Cycle::take_missed`].
    pub(crate) fn begin_counting(&mut self) {
        self.counted = Some(0);
    }

    /// Cycles that were due.
    #[inline(always)]
    pub(crate) fn expect(&mut self, cycles: u64) {
        if let Some(counted) = &mut self.counted {
            *counted += cycles;
        }
    }

    /// A sample that was taken elsewhere.
    #[inline(always)]
    pub(crate) fn take_sample(&mut self, due_ns: u64, value_ns: u64) {
        self.take_value(due_ns, value_ns);
        if value_ns > self.spike_ns {
            self.spikes.push(&mut self.slot, Spike { due_ns, latency_ns: value_ns });
        }
    }

    /// A sample of which only the value is known: `at_ns` is when it came, and of what it took
    /// nothing is to be looked for.
    #[inline(always)]
    pub(crate) fn take_value(&mut self, at_ns: u64, value_ns: u64) {
        self.slot.record_wake(at_ns, at_ns.saturating_add(value_ns));
        if value_ns > self.schedule.budget_ns {
            self.late(at_ns, value_ns);
        }
    }

    /// An interval between two samples that were taken elsewhere.
    pub(crate) fn take_interval(&mut self, interval_ns: u64) {
        self.slot.intervals.push(interval_ns);
    }

    /// Cycles that were due and did not come. The first of them was late by `first_late_ns` when
    /// the program went on, each further one by a period less, at least by nothing.
    pub(crate) fn take_missed(&mut self, count: u64, first_late_ns: u64) {
        let Schedule { period_ns, budget_ns, .. } = self.schedule;
        let known = count.min(first_late_ns / period_ns + 1);
        self.slot.record_missed(first_late_ns + period_ns, period_ns, known, budget_ns);
        self.slot.missed.record_n(0, count - known);
        self.slot.totals.missed += count - known;
    }

    /// Hands the slot over when its time is over. True: none was emptied for too long.
    pub(crate) fn turn(&mut self, now_ns: u64) -> bool {
        let now_ns = now_ns.min(self.schedule.end_ns);
        self.next_due_ns = self.next_due_ns.max(now_ns);
        now_ns >= self.slot_end_ns && now_ns < self.schedule.end_ns && self.rotate(now_ns)
    }

    /// When the slot is to be handed over, or the run ends.
    pub(crate) fn edge_ns(&self) -> u64 {
        self.slot_end_ns.min(self.schedule.end_ns)
    }
}

#[cfg(test)]
mod tests;
