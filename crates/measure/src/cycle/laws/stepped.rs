//! Wake-ups on a grid, by a clock that may be set meanwhile.
//!
//! The grid stays where it is on CLOCK_MONOTONIC, so that a run neither ends early nor takes an
//! hour longer. A cycle that a step left without a wake-up of its own is taken out of the schedule
//! and counted beside it: `scheduled == sampled + missed` holds for what is left.

use std::sync::atomic::{AtomicBool, Ordering};

use super::super::{Cycle, Schedule};
use crate::{
    EndReason,
    clock::{TimeSource, Timekeeper, Woken},
    spike::Spike,
};

impl Cycle {
    /// Runs as [`Cycle::run`] does, by another clock.
    #[inline(always)]
    pub(crate) fn run_by<C: TimeSource>(
        &mut self,
        stop: &AtomicBool,
        clock: &mut Timekeeper<C>,
    ) -> EndReason {
        loop {
            let due_ns = self.next_due_ns;
            if due_ns >= self.schedule.end_ns {
                return EndReason::Complete;
            }
            if due_ns >= self.slot_end_ns && self.rotate(due_ns) {
                return EndReason::Starved;
            }
            match clock.wait(due_ns, stop) {
                Woken::At(now_ns) => {
                    if now_ns < due_ns && stop.load(Ordering::Relaxed) {
                        return EndReason::Stopped;
                    }
                    let latency_ns = self.slot.record_wake(due_ns, now_ns);
                    self.next_due_ns = due_ns + self.schedule.period_ns;
                    if latency_ns > self.beyond_ns {
                        self.beyond(due_ns, latency_ns);
                    }
                }
                Woken::Bound { now_ns, late_ns } => {
                    let cycles = self.bound(due_ns, now_ns, late_ns);
                    clock.ledger().unmeasured(cycles);
                }
                Woken::Held { now_ns } => {
                    let cycles = self.held(due_ns, now_ns);
                    clock.ledger().unmeasured(cycles);
                }
            }
            if stop.load(Ordering::Relaxed) {
                return EndReason::Stopped;
            }
        }
    }

    /// Cycles due after `due_ns` and up to `until_ns`.
    fn due_after(&self, due_ns: u64, until_ns: u64) -> u64 {
        let Schedule { period_ns, end_ns, .. } = self.schedule;
        let left = (end_ns - due_ns - 1) / period_ns;
        (until_ns.saturating_sub(due_ns) / period_ns).min(left)
    }

    /// A wake-up that the clock moved: it was due `late_ns` before `now_ns`. Returns the cycles
    /// that fell into the step.
    #[cold]
    #[inline(never)]
    pub(in crate::cycle) fn bound(&mut self, due_ns: u64, now_ns: u64, late_ns: u64) -> u64 {
        let moved_ns = now_ns - late_ns;
        let cycles = self.due_after(due_ns, moved_ns);
        self.unmeasured += cycles;
        self.slot.record_wake(moved_ns, now_ns);
        let last_ns = due_ns + cycles * self.schedule.period_ns;
        self.next_due_ns = last_ns + self.schedule.period_ns;
        if now_ns - last_ns >= self.schedule.period_ns {
            self.miss(last_ns, now_ns - last_ns);
        }
        if late_ns > self.schedule.budget_ns {
            self.late(moved_ns, late_ns);
        }
        if late_ns > self.spike_ns {
            self.spikes.push(&mut self.slot, Spike { due_ns: moved_ns, latency_ns: late_ns });
        }
        cycles
    }

    /// A thread that the clock kept asleep: what was due until `now_ns` is not measured. Returns
    /// how many cycles that were.
    #[cold]
    #[inline(never)]
    pub(in crate::cycle) fn held(&mut self, due_ns: u64, now_ns: u64) -> u64 {
        let cycles = 1 + self.due_after(due_ns, now_ns);
        self.unmeasured += cycles;
        self.next_due_ns = due_ns + cycles * self.schedule.period_ns;
        cycles
    }
}
