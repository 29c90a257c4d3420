//! What the kernel's own measuring tracers have in common: an instance of ours, a thread that
//! runs beside and records their lines.

mod hardware;
mod lines;

use std::{
    fs::File,
    io::Read,
    os::fd::AsFd,
    sync::atomic::{AtomicBool, Ordering},
};

use rtproof_host::{
    Root,
    tracefs::{Tracer, TracerRequest},
};
use rustix::event::{PollFd, PollFlags, poll};

pub(crate) use self::hardware::Hardware;
use self::lines::{Context, Event, Line, Lines};
use super::{
    error::WorkloadError,
    workload::{Armed, Ending, OwnCost, Setting},
};
use crate::failure::Failure;
use crate::{EndReason, cycle::Cycle, sys, task};

/// Longest wait for lines, so that a stop is seen.
const LOOK_NS: u64 = 50_000_000;

/// Longer is no sample but a slip of the tracer, and counts as lost: what a histogram holds, an
/// hour.
const VALUE_MAX_NS: u64 = 3_600_000_000_000;

/// Which samples are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// timerlat, in its interrupt.
    TimerIrq,
    /// timerlat, in its thread.
    TimerThread,
    Noise,
    /// hwlat.
    Hardware,
}

pub(super) fn arm(
    workload: &'static str,
    request: &TracerRequest,
    source: Source,
    setting: &Setting,
) -> Result<Box<dyn Armed>, WorkloadError> {
    let unfit = |error| WorkloadError::unfit(workload, error);
    let tracer = Tracer::start(&Root::live(), request).map_err(unfit)?;
    let pipe = tracer.lines().map_err(unfit)?;
    task::leave(setting.cpu);
    let account = Account::new(source, setting.cpu, setting.period_ns);
    Ok(Box::new(Reader {
        workload,
        settings: Vec::new(),
        pipe: Some(pipe),
        tracer: Some(tracer),
        account,
        failure: None,
    }))
}

/// Reads what a tracer prints.
struct Reader {
    workload: &'static str,
    /// `None` once it was ended; closed before the instance can go.
    pipe: Option<File>,
    tracer: Option<Tracer>,
    account: Account,
    failure: Option<String>,
    /// See [`Tracer::end`].
    settings: Vec<String>,
}

impl Reader {
    fn follow(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> Result<EndReason, Failure> {
        let Some(pipe) = &mut self.pipe else { return Err("ended already".into()) };
        let mut lines = Lines::default();
        let mut buffer = [0; 16 << 10];
        loop {
            let now_ns = sys::now_ns();
            if cycle.turn(now_ns) {
                return Ok(EndReason::Starved);
            }
            let n = match pipe.read(&mut buffer) {
                Ok(n) => n,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => 0,
                Err(error) => return Err(Failure(format!("its lines cannot be read: {error}"))),
            };
            lines.feed(&buffer[..n], |line| self.account.take(line, cycle));
            if now_ns >= cycle.schedule().end_ns {
                return Ok(EndReason::Complete);
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(EndReason::Stopped);
            }
            if n == 0 {
                let left_ns = cycle.edge_ns().saturating_sub(now_ns).min(LOOK_NS);
                let timeout = sys::timespec(left_ns);
                let mut fds = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::IN)];
                let _ = poll(&mut fds, Some(&timeout));
            }
        }
    }
}

impl Armed for Reader {
    fn cost(&self) -> OwnCost {
        let sentence = "The kernel reads its own clocks: what that takes is in its samples and not \
                        known here. Its lines are read on another CPU.";
        OwnCost { ns: 0, sentence: sentence.into() }
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        cycle.begin_counting();
        let reason = self.follow(cycle, stop).unwrap_or_else(|why| {
            self.failure = Some(format!("{}: {why}", self.workload));
            EndReason::Failed
        });
        // It ends with the run, and its settings go back.
        self.pipe = None;
        self.settings = self.tracer.take().map(Tracer::end).unwrap_or_default();
        reason
    }

    fn code(&self) -> Vec<usize> {
        Vec::new()
    }

    fn ending(&self) -> Ending {
        Ending {
            lost: self.account.lost,
            failure: self.failure.clone(),
            settings: self.settings.clone(),
            ..Ending::default()
        }
    }
}

#[derive(Debug)]
struct Account {
    source: Source,
    cpu: u32,
    period_ns: u64,
    /// Number and due time of the last activation.
    last: Option<(u64, u64)>,
    lost: u64,
}

impl Account {
    const fn new(source: Source, cpu: u32, period_ns: u64) -> Self {
        Self { source, cpu, period_ns, last: None, lost: 0 }
    }

    fn take(&mut self, line: Line, cycle: &mut Cycle) {
        if line.cpu != self.cpu {
            return;
        }
        if line.event.value_ns() > VALUE_MAX_NS {
            self.lost = self.lost.saturating_add(1);
            return;
        }
        let (first_ns, end_ns) = (cycle.schedule().first_ns, cycle.schedule().end_ns);
        let is_within = |at_ns: u64| at_ns >= first_ns && at_ns < end_ns;
        match (line.event, self.source) {
            (Event::Timerlat { seq, context, latency_ns }, source)
                if source.context() == Some(context) =>
            {
                let due_ns = line.at_ns.saturating_sub(latency_ns);
                if is_within(due_ns) {
                    self.activation(seq, due_ns, latency_ns, cycle);
                }
            }
            (Event::Noise { start_ns, duration_ns }, Source::Noise) if is_within(start_ns) => {
                cycle.expect(1);
                cycle.take_sample(start_ns, duration_ns);
            }
            (Event::Hardware { seq, inner_us, outer_us, .. }, Source::Hardware)
                if is_within(line.at_ns) =>
            {
                if let Some((last, _)) = self.last.replace((seq, line.at_ns)) {
                    let between = seq.saturating_sub(last).saturating_sub(1);
                    self.lost = self.lost.saturating_add(between);
                }
                cycle.expect(1);
                cycle.take_sample(line.at_ns, inner_us.max(outer_us).saturating_mul(1000));
            }
            // Activations are missing by their numbers; other events have none.
            (Event::Lost(count), Source::Noise) => self.lost = self.lost.saturating_add(count),
            _ => {}
        }
    }

    /// A wake-up of timerlat. The kernel skips periods that are over when its thread is done, and
    /// numbers those that it does not skip: the due times tell how many there were.
    fn activation(&mut self, seq: u64, due_ns: u64, latency_ns: u64, cycle: &mut Cycle) {
        let mut due = 1;
        let mut late_ns = 0;
        if let Some((last_seq, last_due_ns)) = self.last.replace((seq, due_ns)) {
            let periods =
                (due_ns.saturating_sub(last_due_ns) + self.period_ns / 2) / self.period_ns;
            let between = seq.saturating_sub(last_seq).saturating_sub(1);
            let lost = between.min(periods.saturating_sub(1));
            self.lost = self.lost.saturating_add(lost);
            due = periods.saturating_sub(lost).max(1);
            late_ns = due_ns.saturating_sub(last_due_ns + self.period_ns);
        }
        cycle.expect(due);
        cycle.take_missed(due - 1, late_ns);
        cycle.take_sample(due_ns, latency_ns);
    }
}

/// Lines of a tracer for the fuzz targets, with the account that is kept of them: what was lost.
#[cfg(any(test, feature = "testing"))]
pub(crate) fn fuzz(which: u8, bytes: &[u8], piece: usize, cycle: &mut Cycle) -> u64 {
    let sources = [Source::TimerIrq, Source::TimerThread, Source::Noise, Source::Hardware];
    let source = sources[usize::from(which) % sources.len()];
    let mut account = Account::new(source, 3, cycle.schedule().period_ns);
    let mut lines = Lines::default();
    for piece in bytes.chunks(piece) {
        lines.feed(piece, |line| account.take(line, cycle));
    }
    account.lost
}

impl Source {
    const fn context(self) -> Option<Context> {
        match self {
            Self::TimerIrq => Some(Context::Irq),
            Self::TimerThread => Some(Context::Thread),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cycle, spike};

    const MS: u64 = 1_000_000;

    /// Takes lines in a run of a second from 1 s on; scheduled, last slot, lost.
    fn take(source: Source, lines: &[(u64, Event)]) -> (u64, Box<crate::Slot>, u64) {
        let (_give, empty) = rtrb::RingBuffer::new(4);
        let (full, _take) = rtrb::RingBuffer::new(4);
        let schedule = cycle::Schedule {
            first_ns: 1000 * MS,
            period_ns: MS,
            end_ns: 2000 * MS,
            origin_ns: 1000 * MS,
            slot_ns: cycle::SLOT_NS,
            budget_ns: u64::MAX,
        };
        let (outlet, _inlet) = spike::ring(u64::MAX);
        let mut cycle = Cycle::new(schedule, Box::default(), empty, full, outlet);
        cycle.begin_counting();
        let mut account = Account::new(source, 3, MS);
        for &(at_ns, event) in lines {
            account.take(Line { cpu: 3, at_ns, event }, &mut cycle);
            account.take(Line { cpu: 2, at_ns, event }, &mut cycle);
        }
        (cycle.scheduled(), cycle.into_last_slot(), account.lost)
    }

    #[test]
    fn skipped_activations_are_missed_and_unread_ones_are_lost() {
        let at = |ms: u64, seq, context, latency_ns| {
            (ms * MS + latency_ns, Event::Timerlat { seq, context, latency_ns })
        };
        let lines = [
            at(999, 9, Context::Thread, 5),
            at(1000, 10, Context::Irq, 100),
            at(1000, 10, Context::Thread, 5000),
            at(1001, 11, Context::Thread, 3 * MS),
            // Three periods were skipped: number 12 is due five later.
            at(1005, 12, Context::Thread, 6000),
            // Two were lost on their way.
            at(1008, 15, Context::Thread, 7000),
            at(2000, 16, Context::Thread, 7000),
        ];
        let (scheduled, slot, lost) = take(Source::TimerThread, &lines);
        assert_eq!((scheduled, slot.totals.accounted(), lost), (7, 7, 2));
        assert_eq!((slot.totals.wake.count(), slot.totals.missed), (4, 3));
        assert_eq!(slot.totals.wake.max(), Some(3 * MS));
        let (scheduled, slot, _) = take(Source::TimerIrq, &lines);
        assert_eq!((scheduled, slot.totals.wake.max()), (1, Some(100)));
    }

    #[test]
    fn what_cannot_be_is_lost_and_no_sample() {
        // A difference of clocks below zero, as a number without a sign; the last number there is.
        let huge = |seq| {
            let (context, latency_ns) = (Context::Thread, u64::MAX - 7);
            (1001 * MS, Event::Timerlat { seq, context, latency_ns })
        };
        let last = Event::Timerlat { seq: u64::MAX, context: Context::Thread, latency_ns: 5 };
        let (scheduled, slot, lost) =
            take(Source::TimerThread, &[huge(1), (1002 * MS, last), (1003 * MS, last), huge(9)]);
        assert_eq!((scheduled, slot.totals.wake.max(), lost), (2, Some(5), 2));
        let lost = take(Source::Noise, &[(0, Event::Lost(u64::MAX)), (0, Event::Lost(2))]).2;
        assert_eq!(lost, u64::MAX);
    }

    #[test]
    fn gaps_are_taken_as_they_are_found() {
        let noise = |ms: u64, duration_ns| {
            (ms * MS, Event::Noise { start_ns: ms * MS - duration_ns, duration_ns })
        };
        let lines = [noise(1001, 1500), noise(1002, 9000), (0, Event::Lost(5)), noise(2001, 7)];
        let (scheduled, slot, lost) = take(Source::Noise, &lines);
        assert_eq!((scheduled, slot.totals.wake.count(), lost), (2, 2, 5));
        let gap = |ms: u64, seq, inner_us, outer_us| {
            (ms * MS, Event::Hardware { seq, inner_us, outer_us, nmis: 0 })
        };
        let (scheduled, slot, lost) =
            take(Source::Hardware, &[gap(1100, 1, 11, 12), gap(1900, 3, 40, 2)]);
        assert_eq!((scheduled, slot.totals.wake.max(), lost), (2, Some(40_000), 1));
    }
}
