//! What the kernel's own measuring tracers have in common: an instance of ours, a thread that
//! runs beside and records their lines.

use std::{
    fs::File,
    io::Read,
    os::fd::AsFd,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, poll};

use rtproof_host::{
    Root,
    tracefs::{TracefsError, Tracer, TracerRequest},
};
use rtproof_model::trial::HwlatLook;

use super::workload::{
    Armed, Description, OwnCost, Plain, Workload, WorkloadEnding, WorkloadError, WorkloadSetting,
    whole_microseconds,
};
use crate::cycle::Cycle;
use crate::{EndReason, Failure, Quantity, sys, task};

/// Longest wait for lines, so that a stop is seen.
const POLL_INTERVAL_NS: u64 = 50_000_000;

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
    /// The kernel's `hwlat` tracer.
    Hardware,
}

pub(super) fn arm(
    workload: &'static str,
    request: &TracerRequest,
    source: Source,
    setting: &WorkloadSetting,
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
            if cycle.hand_over(now_ns) {
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
                let left_ns = cycle.edge_ns().saturating_sub(now_ns).min(POLL_INTERVAL_NS);
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

    fn ending(&self) -> WorkloadEnding {
        WorkloadEnding {
            lost: self.account.lost,
            failure: self.failure.clone(),
            settings: self.settings.clone(),
            ..WorkloadEnding::default()
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

// hwlat: the kernel's search for what the hardware takes.

pub(super) const HWLAT: Plain = Plain {
    description: Description::new(
        "hwlat",
        "The kernel's hwlat tracer on one CPU: a kernel thread reads the clock with interrupts off \
     for half of each second. The largest gap above 1 us of each window is a sample. \
     Shows what neither the kernel nor a program can see: the firmware (SMIs), the \
     hypervisor, the hardware. Shows nothing else, and not the other half of the time. Keeps \
     interrupts from that CPU meanwhile: never on a machine in use. Needs root and \
     CONFIG_HWLAT_TRACER.",
        Quantity::Gap,
    )
    .on_other_cpu()
    .single_thread(),
    arm: |about, setting| {
        let shared = vec![("tracing_thresh", "1".into())];
        let request = TracerRequest::on_one_cpu("hwlat", setting.cpu, shared);
        arm(about.name, &request, Source::Hardware, setting)
    },
};

// hwlat for a while, as part of a trial: short windows, so that no CPU waits long for the one
// whose interrupts are off.

/// Interrupts are off for so long of each window, microseconds. The kernel's own are 0.5 s of 1 s.
const WIDTH_US: u64 = 20_000;

const WINDOW_US: u64 = 100_000;

/// How much of the text is read at a time.
const PIECE: usize = 16 << 10;

/// hwlat while it runs; dropping it ends it and puts everything back.
pub(crate) struct HwlatRun {
    tracer: Tracer,
    cpu: u32,
    threshold_ns: u64,
}

impl HwlatRun {
    /// Starts it on a CPU.
    ///
    /// # Errors
    /// The kernel has no such tracer, another program uses it, or a setting is refused.
    pub(crate) fn start(root: &Root, cpu: u32, threshold_ns: u64) -> Result<Self, TracefsError> {
        // The width first: it has to be less than the window, and the usual one is.
        let shared = vec![
            ("tracing_thresh", (threshold_ns / 1_000).to_string()),
            ("hwlat_detector/width", WIDTH_US.to_string()),
            ("hwlat_detector/window", WINDOW_US.to_string()),
        ];
        let tracer = Tracer::start(root, &TracerRequest::on_one_cpu("hwlat", cpu, shared))?;
        Ok(Self { tracer, cpu, threshold_ns })
    }

    /// Ends it; what it saw in the time that it ran.
    ///
    /// # Errors
    /// Its lines cannot be read.
    pub(crate) fn end(self, ran: Duration) -> Result<HwlatLook, TracefsError> {
        let mut pipe = self.tracer.lines()?;
        let ran_ns = u64::try_from(ran.as_nanos()).unwrap_or(u64::MAX);
        let mut look = HwlatLook {
            cpu: self.cpu,
            // Whole windows alone.
            duration_ns: ran_ns / (WINDOW_US * 1_000) * WIDTH_US * 1_000,
            threshold_ns: self.threshold_ns,
            gaps: rtproof_model::trial::GapCounts::default(),
            with_nmi: 0,
        };
        let mut lines = Lines::default();
        let mut piece = vec![0; PIECE];
        // It never waits: an error is the end of what there is.
        while let Ok(length @ 1..) = pipe.read(&mut piece) {
            lines.feed(&piece[..length], |line| match line.event {
                Event::Hardware { nmis: 1.., .. } => look.with_nmi += 1,
                event @ Event::Hardware { .. } => look.gaps.add(event.value_ns()),
                _ => {}
            });
        }
        drop(pipe);
        let _ = self.tracer.end();
        Ok(look)
    }
}

// Lines of the kernel's own measuring tracers, as `trace_pipe` prints them. No I/O here.
//
// Forms: Documentation/trace/timerlat-tracer.rst, osnoise-tracer.rst, hwlat_detector.rst; the
// trace's clock is `mono`.

/// Longest line that is kept.
const LINE_MAX: usize = 4096;

/// Where timerlat reads its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Context {
    /// In the timer's interrupt.
    Irq,
    Thread,
    /// Back in user space.
    User,
}

/// What a line says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// timerlat: activation, where, how late.
    Timerlat { seq: u64, context: Context, latency_ns: u64 },
    /// osnoise: a gap above the threshold.
    Noise { start_ns: u64, duration_ns: u64 },
    /// hwlat: the largest gaps of a window, and the non-maskable interrupts in it.
    Hardware { seq: u64, inner_us: u64, outer_us: u64, nmis: u64 },
    /// The kernel lost events here.
    Lost(u64),
}

impl Event {
    /// How late or how long; 0 for one that is neither.
    fn value_ns(self) -> u64 {
        match self {
            Self::Timerlat { latency_ns, .. } => latency_ns,
            Self::Noise { duration_ns, .. } => duration_ns,
            Self::Hardware { inner_us, outer_us, .. } => {
                inner_us.max(outer_us).saturating_mul(1000)
            }
            Self::Lost(_) => 0,
        }
    }
}

/// A line with its CPU and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    cpu: u32,
    /// CLOCK_MONOTONIC, to the microsecond.
    at_ns: u64,
    event: Event,
}

/// Reads a line; `None`: it says something else.
fn parse_line(text: &str) -> Option<Line> {
    if let Some(rest) = text.strip_prefix("CPU:") {
        // `CPU:1 [LOST 38 EVENTS]`
        let (cpu, rest) = rest.split_once(" [LOST ")?;
        let count = rest.split_once(' ')?.0.parse().ok()?;
        return Some(Line { cpu: cpu.trim().parse().ok()?, at_ns: 0, event: Event::Lost(count) });
    }
    let (head, event) = [timerlat, noise, hardware].iter().find_map(|form| form(text))?;
    let at_ns = seconds_ns(head.split_whitespace().last()?.trim_end_matches(':'))?;
    // Names of tasks may hold brackets: the last ones are the CPU's.
    let (before, _) = head.rsplit_once(']')?;
    let cpu = before.rsplit_once('[')?.1.parse().ok()?;
    Some(Line { cpu, at_ns, event })
}

/// `#1     context    irq timer_latency       932 ns`
fn timerlat(text: &str) -> Option<(&str, Event)> {
    let (head, rest) = text.rsplit_once(": #")?;
    let mut words = rest.split_whitespace();
    let seq = words.next()?.parse().ok()?;
    let context = match (words.next()?, words.next()?) {
        ("context", "irq") => Context::Irq,
        ("context", "thread") => Context::Thread,
        ("context", "user-ret") => Context::User,
        _ => return None,
    };
    let latency_ns = match (words.next()?, words.next()?.parse(), words.next()?) {
        ("timer_latency", Ok(latency_ns), "ns") => latency_ns,
        _ => return None,
    };
    Some((head, Event::Timerlat { seq, context, latency_ns }))
}

/// `sample_threshold: start 5789.857529929 duration 1845 ns interference 2`
fn noise(text: &str) -> Option<(&str, Event)> {
    let (head, rest) = text.split_once(": sample_threshold: start ")?;
    let words: Vec<&str> = rest.split_whitespace().take(4).collect();
    let [start, "duration", duration, "ns"] = *words else { return None };
    let event = Event::Noise { start_ns: seconds_ns(start)?, duration_ns: duration.parse().ok()? };
    Some((head, event))
}

/// `#1     inner/outer(us):   11/12    ts:1581527483.343962693 count:6 nmi-total:0 nmi-count:1`
fn hardware(text: &str) -> Option<(&str, Event)> {
    let (head, rest) = text.rsplit_once(": #")?;
    let (seq, rest) = rest.split_once("inner/outer(us):")?;
    let (inner, rest) = rest.split_once('/')?;
    let outer = rest.split_whitespace().next()?;
    let number = |text: &str| text.trim().parse().ok();
    let (seq, inner_us, outer_us) = (number(seq)?, number(inner)?, number(outer)?);
    // Kernels name them only where there were some.
    let nmis = rest.split_once("nmi-count:").map_or(Some(0), |(_, count)| number(count))?;
    Some((head, Event::Hardware { seq, inner_us, outer_us, nmis }))
}

/// Seconds with up to nine decimals.
fn seconds_ns(text: &str) -> Option<u64> {
    let (seconds, rest) = text.split_once('.')?;
    let digits = rest.len();
    if digits == 0 || digits > 9 || !rest.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let fraction: u64 = rest.parse().ok()?;
    let fraction_ns = fraction * 10_u64.pow(9 - u32::try_from(digits).ok()?);
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction_ns)
}

/// Bytes as they come, to whole lines; what is too long for one is passed over.
#[derive(Debug, Default)]
struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(Line)) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let room = LINE_MAX.saturating_sub(self.partial.len());
            self.partial.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                if let Some(line) = parse_line(String::from_utf8_lossy(&self.partial).trim_end()) {
                    take(line);
                }
                self.partial.clear();
            }
        }
    }
}

// osnoise: the kernel's own loop that never sleeps.

pub(super) const OSNOISE: Plain = Plain {
    description: Description::new(
        "osnoise",
        "The kernel's osnoise tracer on one CPU: a kernel thread reads the clock without pause. \
     Each gap above 1 us is a sample, less what interrupts the gap in turn. Shows what \
     interrupts, softirqs, other tasks and the hardware take from the CPU; not wake-ups. Each \
     gap is scheduled when it is found. The period of the measurement is not used. Needs root \
     and CONFIG_OSNOISE_TRACER.",
        Quantity::Gap,
    )
    .on_other_cpu()
    .single_thread(),
    arm: |about, setting| {
        let shared = vec![
            ("osnoise/stop_tracing_us", "0".into()),
            ("osnoise/stop_tracing_total_us", "0".into()),
            ("tracing_thresh", "1".into()),
            ("osnoise/cpus", setting.cpu.to_string()),
        ];
        let events = vec!["osnoise:sample_threshold"];
        let request =
            TracerRequest { events, ..TracerRequest::on_one_cpu("osnoise", setting.cpu, shared) };
        arm(about.name, &request, Source::Noise, setting)
    },
};

// timerlat: the kernel's own measurement of a timer's latency.

#[derive(Clone, Copy, Debug)]
pub(super) struct Timerlat {
    source: Source,
}

/// Periods that the kernel takes, microseconds.
const PERIOD_US: std::ops::RangeInclusive<u64> = 100..=1_000_000;

pub(super) const TIMERLAT: Timerlat = Timerlat { source: Source::TimerThread };

const DESCRIPTION: Description = Description {
    parameter: Some("irq or thread, as in timerlat:irq; thread without"),
    ..Description::new(
        "timerlat",
        "The kernel's timerlat tracer on one CPU: time from the expiry of a kernel timer to its \
         interrupt (timerlat:irq) or to a kernel thread that it wakes (timerlat, timerlat:thread). \
         The kernel gives that thread SCHED_FIFO 95. Splits what timer-wakeup measures as a whole. \
         Does not hold the return to user space. Periods from 100us to 1s, as the kernel has it. \
         Needs root and CONFIG_TIMERLAT_TRACER.",
        Quantity::Latency,
    )
    .on_other_cpu()
    .single_thread()
};

impl Workload for Timerlat {
    fn describe(&self) -> &Description {
        &DESCRIPTION
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        let source = match parameter {
            None | Some("thread") => Source::TimerThread,
            Some("irq") => Source::TimerIrq,
            Some(text) => {
                return Err(WorkloadError::parameter(self.name(), text, "`irq` or `thread`"));
            }
        };
        Ok(Arc::new(Self { source }))
    }

    fn spec(&self) -> String {
        let context = if self.source == Source::TimerIrq { "irq" } else { "thread" };
        format!("{}:{context}", self.name())
    }

    fn arm(&self, setting: &WorkloadSetting) -> Result<Box<dyn Armed>, WorkloadError> {
        let period_us = whole_microseconds(self.name(), setting.period_ns)?;
        if !PERIOD_US.contains(&period_us) {
            let why = "the kernel takes periods from 100us to 1s";
            return Err(WorkloadError::unfit(self.name(), why));
        }
        let shared = vec![
            ("osnoise/stop_tracing_us", "0".into()),
            ("osnoise/stop_tracing_total_us", "0".into()),
            ("osnoise/timerlat_period_us", period_us.to_string()),
            ("osnoise/cpus", setting.cpu.to_string()),
        ];
        let request = TracerRequest::on_one_cpu("timerlat", setting.cpu, shared);
        arm(self.name(), &request, self.source, setting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cycle, slot};

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
        let (outlet, _inlet) = slot::ring(u64::MAX);
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

#[cfg(test)]
mod lines_tests {
    use super::*;

    const TEXT: &str = "\
          <idle>-0       [000] d.h1.    54.029328: #1     context    irq timer_latency       932 ns
           <...>-867     [000] .....    54.029339: #1     context thread timer_latency     11700 ns
  my [odd]: #9 x-12      [013] d....  1054.5: #77    context user-ret timer_latency    20000 ns
     osnoise/8-961     [008] d.h.  5789.857532: sample_threshold: start 5789.857529929 duration 1845 ns interference 2
           <...>-1729    [001] d...   678.473449: #3     inner/outer(us):   11/12    ts:1581527483.343962693 count:6
CPU:1 [LOST 38 EVENTS]
# tracer: timerlat
           <...>-859     [000] ....    81.637220: 1000000        190  99.98100          9       18     0      1007    18     1
";

    fn read(bytes: &[u8]) -> Vec<Line> {
        let (mut lines, mut got) = (Lines::default(), Vec::new());
        // In pieces, as a pipe has it.
        bytes.chunks(7).for_each(|chunk| lines.feed(chunk, |line| got.push(line)));
        got
    }

    #[test]
    fn lines_of_the_documentation_are_read() {
        let timerlat = |cpu, at_ns, seq, context, latency_ns| Line {
            cpu,
            at_ns,
            event: Event::Timerlat { seq, context, latency_ns },
        };
        let noise = Event::Noise { start_ns: 5_789_857_529_929, duration_ns: 1845 };
        let hardware = Event::Hardware { seq: 3, inner_us: 11, outer_us: 12, nmis: 0 };
        let expected = [
            timerlat(0, 54_029_328_000, 1, Context::Irq, 932),
            timerlat(0, 54_029_339_000, 1, Context::Thread, 11_700),
            timerlat(13, 1_054_500_000_000, 77, Context::User, 20_000),
            Line { cpu: 8, at_ns: 5_789_857_532_000, event: noise },
            Line { cpu: 1, at_ns: 678_473_449_000, event: hardware },
            Line { cpu: 1, at_ns: 0, event: Event::Lost(38) },
        ];
        assert_eq!(read(TEXT.as_bytes()), expected);
    }

    #[test]
    fn what_is_no_line_is_passed_over() {
        for cut in 0..TEXT.len() {
            // Whatever is missing at the end of any line: nothing is made up, nothing panics.
            read(&TEXT.as_bytes()[cut..]);
            read(&TEXT.as_bytes()[..cut]);
        }
        for text in [
            "x-1 [000] d 1.0: #1 context irq timer_latency -5 ns",
            "x-1 [000] d 1.0: #1 context irq timer_latency 99999999999999999999 ns",
            "x-1 [0] d 99999999999999999999.0: #1 context irq timer_latency 1 ns",
            "x-1 000 d 1.0: #1 context irq timer_latency 1 ns",
            "x-1 [000] d 1.0000000001: #1 context irq timer_latency 1 ns",
            "CPU:x [LOST 1 EVENTS]",
        ] {
            assert_eq!(parse_line(text), None, "{text}");
        }
        assert!(read(&[b'x'; 100_000]).is_empty());
        let mut long = vec![b'x'; 100_000];
        long.extend_from_slice(format!("\n{TEXT}").as_bytes());
        assert_eq!(read(&long).len(), 6);
    }
}
