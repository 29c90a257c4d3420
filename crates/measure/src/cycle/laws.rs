//! Cycles whose samples are not wake-ups on a grid: intervals that start where the last one ended,
//! pieces of work, messages and their answers, gaps of a loop that never sleeps, and what other
//! programs report.
//!
//! Each law says what was scheduled, so that `scheduled == sampled + missed` holds for all of them
//! and can fail for each.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Cycle, Gaps, Schedule};
use crate::EndReason;
use crate::clock::{TimeSource, Timekeeper, WaitEnd};
use crate::slot::LateWakeUp;

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
            self.spikes.push(&mut self.slot, LateWakeUp { due_ns, latency_ns: took_ns });
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
            // A clock that did not move between two readings does not measure the loop.
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
            self.spikes.push(&mut self.slot, LateWakeUp { due_ns: from_ns, latency_ns: gap_ns });
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
            self.spikes.push(&mut self.slot, LateWakeUp { due_ns, latency_ns: value_ns });
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
    pub(crate) fn hand_over(&mut self, now_ns: u64) -> bool {
        let now_ns = now_ns.min(self.schedule.end_ns);
        self.next_due_ns = self.next_due_ns.max(now_ns);
        now_ns >= self.slot_end_ns && now_ns < self.schedule.end_ns && self.rotate(now_ns)
    }

    /// When the slot is to be handed over, or the run ends.
    pub(crate) fn edge_ns(&self) -> u64 {
        self.slot_end_ns.min(self.schedule.end_ns)
    }
}

// Messages that go out on a grid, and their answers, which may come late, in another order, twice,
// or never.
//
// The next message goes out when it is due, whether or not the one before was answered, as a
// cyclic protocol does it: a slow answer delays no other message, and its own time is kept.

/// Messages that can be under way at once; one that is this many cycles old is lost.
const IN_FLIGHT: usize = 1024;

/// An answer that is not here after this, or after ten periods, is lost.
const LOST_NS: u64 = 1_000_000_000;

/// What carries numbered messages, and their answers.
pub(crate) trait Exchange {
    /// Sends message `number` now; never waits.
    fn send(&mut self, number: u64) -> Sending;
    /// Waits for an answer until a time. `None`: none has come by then, or `stop` is set.
    fn answer(&mut self, until_ns: u64, stop: &AtomicBool) -> Option<ExchangeAnswer>;
}

/// When a message was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    /// The clock right before.
    pub(crate) at_ns: u64,
    /// Whether it went out.
    pub(crate) is_out: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ExchangeAnswer {
    /// Which message it answers.
    pub(crate) number: u64,
    /// When the thread received it.
    pub(crate) at_ns: u64,
}

/// Messages that were sent. Ones that were answered or given up are `u64::MAX`.
#[derive(Debug)]
pub(crate) struct InFlight {
    sent_ns: Box<[u64; IN_FLIGHT]>,
    /// Number of the oldest one that may be open, and of the next one.
    oldest: u64,
    next: u64,
    /// Messages that were never answered.
    lost: u64,
}

impl InFlight {
    pub(crate) fn new() -> Self {
        Self { sent_ns: Box::new([u64::MAX; IN_FLIGHT]), oldest: 0, next: 0, lost: 0 }
    }

    /// Messages that were sent and never answered.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// To be locked: address and bytes.
    pub(crate) fn memory(&self) -> (usize, usize) {
        (self.sent_ns.as_ptr() as usize, size_of_val(&*self.sent_ns))
    }

    /// When an open message was sent; it is no longer open then.
    #[inline(always)]
    fn close(&mut self, number: u64) -> Option<u64> {
        let is_open = (self.oldest..self.next).contains(&number);
        let sent_ns = &mut self.sent_ns[number as usize % IN_FLIGHT];
        let was_ns = is_open.then(|| std::mem::replace(sent_ns, u64::MAX))?;
        (was_ns != u64::MAX).then_some(was_ns)
    }

    /// The oldest open message, if it was sent before `lost_ns`, or there is no room for another.
    #[inline(always)]
    fn give_up(&mut self, lost_ns: u64) -> Option<u64> {
        while self.oldest < self.next {
            let sent_ns = self.sent_ns[self.oldest as usize % IN_FLIGHT];
            let is_full = self.next - self.oldest >= IN_FLIGHT as u64;
            if sent_ns != u64::MAX && sent_ns >= lost_ns && !is_full {
                return None;
            }
            let was_ns = self.close(self.oldest);
            self.oldest += 1;
            if was_ns.is_some() {
                self.lost += 1;
                return was_ns;
            }
        }
        None
    }

    fn open(&self) -> u64 {
        let open = (self.oldest..self.next)
            .filter(|number| self.sent_ns[*number as usize % IN_FLIGHT] != u64::MAX);
        open.count() as u64
    }
}

impl Cycle {
    /// Sends a message once a period and takes answers whenever they come.
    ///
    /// The sample is the time from the moment before the sending to the answer in the thread's
    /// hands. A message that could not be sent, or has no answer for a second (ten periods, 1,024
    /// cycles), is missed, and so are those that were due while the thread was late.
    #[inline(always)]
    pub(crate) fn run_exchanges(
        &mut self,
        stop: &AtomicBool,
        exchange: &mut impl Exchange,
        in_flight: &mut InFlight,
    ) -> EndReason {
        let Schedule { period_ns, end_ns, .. } = self.schedule;
        let lost_ns = LOST_NS.max(period_ns.saturating_mul(10));
        self.counted = Some(0);
        loop {
            let due_ns = self.next_due_ns;
            while let Some(answer) = exchange.answer(due_ns.min(end_ns), stop) {
                self.answered(in_flight, answer, lost_ns);
            }
            if stop.load(Ordering::Relaxed) {
                return self.cut(in_flight);
            }
            if due_ns >= end_ns {
                break;
            }
            if due_ns >= self.slot_end_ns && self.rotate(due_ns) {
                self.cut(in_flight);
                return EndReason::Starved;
            }
            let number = in_flight.next;
            let sending = exchange.send(number);
            let due = Schedule { first_ns: due_ns, ..self.schedule };
            self.expect(due.due_before(sending.at_ns + 1).max(1));
            self.next_due_ns = due_ns + period_ns;
            if sending.at_ns >= self.next_due_ns {
                self.miss(due_ns, sending.at_ns - due_ns);
            }
            in_flight.sent_ns[number as usize % IN_FLIGHT] = sending.at_ns;
            in_flight.next += 1;
            if !sending.is_out && in_flight.close(number).is_some() {
                in_flight.lost += 1;
                self.unanswered(sending.at_ns, sending.at_ns.saturating_add(lost_ns));
            }
            while let Some(sent_ns) = in_flight.give_up(sending.at_ns.saturating_sub(lost_ns)) {
                self.unanswered(sent_ns, sending.at_ns);
            }
        }
        let until_ns = end_ns.saturating_add(lost_ns);
        while in_flight.open() > 0 {
            match exchange.answer(until_ns, stop) {
                Some(answer) => self.answered(in_flight, answer, lost_ns),
                None if stop.load(Ordering::Relaxed) => return self.cut(in_flight),
                None => break,
            }
        }
        while let Some(sent_ns) = in_flight.give_up(u64::MAX) {
            self.unanswered(sent_ns, until_ns);
        }
        EndReason::Complete
    }

    #[inline(always)]
    fn answered(&mut self, in_flight: &mut InFlight, answer: ExchangeAnswer, lost_ns: u64) {
        // Not one that came twice, or after it was given up.
        let Some(sent_ns) = in_flight.close(answer.number) else { return };
        let took_ns = answer.at_ns.saturating_sub(sent_ns);
        if took_ns <= lost_ns {
            self.take_sample(sent_ns, took_ns);
        } else {
            in_flight.lost += 1;
            self.unanswered(sent_ns, answer.at_ns);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn unanswered(&mut self, sent_ns: u64, now_ns: u64) {
        self.take_missed(1, now_ns.saturating_sub(sent_ns));
    }

    /// Stopped: whether the open ones would have been answered is not known.
    #[cold]
    #[inline(never)]
    fn cut(&mut self, in_flight: &InFlight) -> EndReason {
        let open = in_flight.open();
        self.counted = self.counted.map(|counted| counted - open);
        EndReason::Stopped
    }
}

// Wake-ups on a grid, by a clock that may be set meanwhile.
//
// The grid stays where it is on CLOCK_MONOTONIC, so that a run neither ends early nor takes an
// hour longer. A cycle that a step left without a wake-up of its own is taken out of the schedule
// and counted beside it: `scheduled == sampled + missed` holds for what is left.

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
                WaitEnd::At(now_ns) => {
                    if now_ns < due_ns && stop.load(Ordering::Relaxed) {
                        return EndReason::Stopped;
                    }
                    let latency_ns = self.slot.record_wake(due_ns, now_ns);
                    self.next_due_ns = due_ns + self.schedule.period_ns;
                    if latency_ns > self.beyond_ns {
                        self.beyond(due_ns, latency_ns);
                    }
                }
                WaitEnd::Bound { now_ns, late_ns } => {
                    let cycles = self.bound(due_ns, now_ns, late_ns);
                    clock.ledger().unmeasured(cycles);
                }
                WaitEnd::Held { now_ns } => {
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
    pub(super) fn bound(&mut self, due_ns: u64, now_ns: u64, late_ns: u64) -> u64 {
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
            self.spikes.push(&mut self.slot, LateWakeUp { due_ns: moved_ns, latency_ns: late_ns });
        }
        cycles
    }

    /// A thread that the clock kept asleep: what was due until `now_ns` is not measured. Returns
    /// how many cycles that were.
    #[cold]
    #[inline(never)]
    pub(super) fn held(&mut self, due_ns: u64, now_ns: u64) -> u64 {
        let cycles = 1 + self.due_after(due_ns, now_ns);
        self.unmeasured += cycles;
        self.next_due_ns = due_ns + cycles * self.schedule.period_ns;
        cycles
    }
}
