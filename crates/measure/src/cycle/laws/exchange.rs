//! Messages that go out on a grid, and their answers, which may come late, in another order, twice,
//! or never.
//!
//! The next message goes out when it is due, whether or not the one before was answered, as a
//! cyclic protocol does it: a slow answer delays no other message, and its own time is kept.

use std::sync::atomic::{AtomicBool, Ordering};

use super::super::{Cycle, Schedule};
use crate::EndReason;

/// Messages that can be under way at once; one that is this many cycles old is lost.
const UNDER_WAY: usize = 1024;
/// An answer that is not here after this, or after ten periods, is lost.
const LOST_NS: u64 = 1_000_000_000;

/// What carries numbered messages, and their answers.
pub(crate) trait Exchange {
    /// Sends message `number` now; never waits.
    fn send(&mut self, number: u64) -> Sending;
    /// Waits for an answer until a time. `None`: none has come by then, or `stop` is set.
    fn answer(&mut self, until_ns: u64, stop: &AtomicBool) -> Option<Answer>;
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
pub(crate) struct Answer {
    /// Which message it answers.
    pub(crate) number: u64,
    /// When the thread had it.
    pub(crate) at_ns: u64,
}

/// Messages that were sent. Ones that were answered or given up are `u64::MAX`.
#[derive(Debug)]
pub(crate) struct UnderWay {
    sent_ns: Box<[u64; UNDER_WAY]>,
    /// Number of the oldest one that may be open, and of the next one.
    oldest: u64,
    next: u64,
    /// Messages that were never answered.
    lost: u64,
}

impl UnderWay {
    pub(crate) fn new() -> Self {
        Self { sent_ns: Box::new([u64::MAX; UNDER_WAY]), oldest: 0, next: 0, lost: 0 }
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
        let sent_ns = &mut self.sent_ns[number as usize % UNDER_WAY];
        let was_ns = is_open.then(|| std::mem::replace(sent_ns, u64::MAX))?;
        (was_ns != u64::MAX).then_some(was_ns)
    }

    /// The oldest open message, if it was sent before `lost_ns`, or there is no room for another.
    #[inline(always)]
    fn give_up(&mut self, lost_ns: u64) -> Option<u64> {
        while self.oldest < self.next {
            let sent_ns = self.sent_ns[self.oldest as usize % UNDER_WAY];
            let is_full = self.next - self.oldest >= UNDER_WAY as u64;
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
            .filter(|number| self.sent_ns[*number as usize % UNDER_WAY] != u64::MAX);
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
        under_way: &mut UnderWay,
    ) -> EndReason {
        let Schedule { period_ns, end_ns, .. } = self.schedule;
        let lost_ns = LOST_NS.max(period_ns.saturating_mul(10));
        self.counted = Some(0);
        loop {
            let due_ns = self.next_due_ns;
            while let Some(answer) = exchange.answer(due_ns.min(end_ns), stop) {
                self.answered(under_way, answer, lost_ns);
            }
            if stop.load(Ordering::Relaxed) {
                return self.cut(under_way);
            }
            if due_ns >= end_ns {
                break;
            }
            if due_ns >= self.slot_end_ns && self.rotate(due_ns) {
                self.cut(under_way);
                return EndReason::Starved;
            }
            let number = under_way.next;
            let sending = exchange.send(number);
            let due = Schedule { first_ns: due_ns, ..self.schedule };
            self.expect(due.due_before(sending.at_ns + 1).max(1));
            self.next_due_ns = due_ns + period_ns;
            if sending.at_ns >= self.next_due_ns {
                self.miss(due_ns, sending.at_ns - due_ns);
            }
            under_way.sent_ns[number as usize % UNDER_WAY] = sending.at_ns;
            under_way.next += 1;
            if !sending.is_out && under_way.close(number).is_some() {
                under_way.lost += 1;
                self.unanswered(sending.at_ns, sending.at_ns.saturating_add(lost_ns));
            }
            while let Some(sent_ns) = under_way.give_up(sending.at_ns.saturating_sub(lost_ns)) {
                self.unanswered(sent_ns, sending.at_ns);
            }
        }
        let until_ns = end_ns.saturating_add(lost_ns);
        while under_way.open() > 0 {
            match exchange.answer(until_ns, stop) {
                Some(answer) => self.answered(under_way, answer, lost_ns),
                None if stop.load(Ordering::Relaxed) => return self.cut(under_way),
                None => break,
            }
        }
        while let Some(sent_ns) = under_way.give_up(u64::MAX) {
            self.unanswered(sent_ns, until_ns);
        }
        EndReason::Complete
    }

    #[inline(always)]
    fn answered(&mut self, under_way: &mut UnderWay, answer: Answer, lost_ns: u64) {
        // Not one that came twice, or after it was given up.
        let Some(sent_ns) = under_way.close(answer.number) else { return };
        let took_ns = answer.at_ns.saturating_sub(sent_ns);
        if took_ns <= lost_ns {
            self.take_sample(sent_ns, took_ns);
        } else {
            under_way.lost += 1;
            self.unanswered(sent_ns, answer.at_ns);
        }
    }

    #[cold]
    #[inline(never)]
    pub(in super::super) fn unanswered(&mut self, sent_ns: u64, now_ns: u64) {
        self.take_missed(1, now_ns.saturating_sub(sent_ns));
    }

    /// Stopped: whether the open ones would have been answered is not known.
    #[cold]
    #[inline(never)]
    fn cut(&mut self, under_way: &UnderWay) -> EndReason {
        let open = under_way.open();
        self.counted = self.counted.map(|counted| counted - open);
        EndReason::Stopped
    }
}
