//! Execution-time jitter: a piece of work of always the same size, once a period, timed.
//!
//! The operations differ; waiting, timing, calibration and what is said of them do not.

use std::sync::{Arc, atomic::AtomicBool};

use super::workload::{
    Armed, Clocks, Description, OwnCost, Plain, Workload, WorkloadEnding, WorkloadError,
    WorkloadSetting, sleep_until,
};
use crate::clock::{Clock, KernelClock, Timekeeper};
use crate::cycle::{Cycle, Gaps};
use crate::{EndReason, Quantity, calibrate, clock, sys};

/// How long a piece is to take: a quarter of the period, and not more than this. A histogram
/// resolves 0.8 %, so that shorter pieces show smaller disturbances.
const PIECE_NS_MAX: u64 = 20_000;

/// Shortest piece: a clock that steps by tens of nanoseconds is to be 2 % of it.
const PIECE_NS_MIN: u64 = 1000;

/// Most operations of a piece.
const OPS_MAX: u64 = 1 << 32;

/// An operation that is done many times over.
pub(super) trait Operation: 'static {
    /// What it is, for "1200 of …".
    const WORDS: &'static str;
    /// Does it `ops` times.
    fn run(&mut self, ops: u64);
    /// Its memory, as (address, bytes).
    fn memory(&self) -> Vec<(usize, usize)> {
        Vec::new()
    }
}

/// A calibrated piece of work.
struct Work<O> {
    operation: O,
    ops: u64,
    fastest_ns: u64,
    clock_ps: u64,
    /// `None`: CLOCK_MONOTONIC.
    clock: Option<Timekeeper<KernelClock>>,
}

/// Finds how many operations take about a quarter of the period.
pub(super) fn calibrate<O: Operation>(
    mut operation: O,
    setting: &WorkloadSetting,
) -> Box<dyn Armed> {
    let target_ns = (setting.period_ns / 4).clamp(PIECE_NS_MIN, PIECE_NS_MAX);
    let mut ops = 1;
    while ops < OPS_MAX && fastest_ns(&mut operation, ops) < PIECE_NS_MIN {
        ops *= 2;
    }
    let took_ns = fastest_ns(&mut operation, ops).max(1);
    let ops = (ops * target_ns / took_ns).clamp(1, OPS_MAX);
    let fastest_ns = fastest_ns(&mut operation, ops);
    let clock_ps = calibrate::clock_read_ps(setting.clock);
    let clock = (setting.clock != Clock::Monotonic).then(|| setting.timekeeper());
    Box::new(Work { operation, ops, fastest_ns, clock_ps, clock })
}

/// The fastest of some pieces.
fn fastest_ns<O: Operation>(operation: &mut O, ops: u64) -> u64 {
    let mut time = || {
        let start_ns = sys::now_ns();
        operation.run(ops);
        sys::now_ns() - start_ns
    };
    (0..20).map(|_| time()).min().unwrap_or(0)
}

impl<O: Operation> Armed for Work<O> {
    fn cost(&self) -> OwnCost {
        let ns = self.clock_ps.div_ceil(1000);
        let Self { ops, fastest_ns, .. } = self;
        let words = O::WORDS;
        let sentence = format!(
            "A cycle is {ops} of {words}: {fastest_ns} ns at their fastest before the run. Each \
             sample holds one reading of the clock, {ns} ns."
        );
        OwnCost { ns, sentence }
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        match &mut self.clock {
            None => run_work(cycle, stop, &mut self.operation, self.ops),
            Some(clock) => run_by(cycle, stop, &mut self.operation, self.ops, clock),
        }
    }

    fn code(&self) -> Vec<usize> {
        let run: fn(&mut Cycle, &AtomicBool, &mut O, u64) -> EndReason = run_work::<O>;
        let by: fn(
            &mut Cycle,
            &AtomicBool,
            &mut O,
            u64,
            &mut Timekeeper<KernelClock>,
        ) -> EndReason = run_by::<O>;
        vec![run as usize, by as usize, O::run as fn(&mut O, u64) as usize]
    }

    fn memory(&self) -> Vec<(usize, usize)> {
        self.operation.memory()
    }
}

#[inline(never)]
fn run_work<O: Operation>(
    cycle: &mut Cycle,
    stop: &AtomicBool,
    operation: &mut O,
    ops: u64,
) -> EndReason {
    cycle.run_pieces(stop, |due_ns| {
        sleep_until(due_ns);
        let start_ns = sys::now_ns();
        operation.run(ops);
        let done_ns = sys::now_ns();
        (done_ns - start_ns, done_ns)
    })
}

/// The same, timed by another clock. The sleep between pieces stays on CLOCK_MONOTONIC.
#[inline(never)]
fn run_by<O: Operation>(
    cycle: &mut Cycle,
    stop: &AtomicBool,
    operation: &mut O,
    ops: u64,
    clock: &mut Timekeeper<KernelClock>,
) -> EndReason {
    cycle.run_pieces(stop, |due_ns| {
        sleep_until(due_ns);
        clock.time(|| operation.run(ops))
    })
}

/// A linear congruential step (Knuth's MMIX): cheap, and its high bits look random.
#[inline(always)]
pub(super) const fn step(x: u64) -> u64 {
    x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
}

// A loop that never sleeps and reads the clock: whatever takes its CPU away leaves a gap.

/// Thresholds that make sense, nanoseconds.
const THRESHOLD_NS: std::ops::RangeInclusive<u64> = 50..=1_000_000_000;

/// Back-to-back readings of the clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct BusyLoop {
    threshold_ns: u64,
}

/// What every interrupt takes longer than.
pub(super) const BUSY_LOOP: BusyLoop = BusyLoop { threshold_ns: 1000 };

const BUSY_LOOP_DESCRIPTION: Description = Description {
    parameter: Some("the threshold in ns, us or ms, as in busy-loop:200ns; 1us without"),
    ..Description::new(
        "busy-loop",
        "Gaps between readings of the clock in a loop that never sleeps: time that interrupts, \
         the firmware (SMIs), the hypervisor, page faults or other tasks took from the CPU. Not \
         wake-ups, timers or the scheduler. Steps above the threshold are samples, each scheduled \
         when it is found, none missed; steps above and up to it add up to the whole run. The \
         period is not used. A real-time policy keeps everything else from that CPU, and the \
         kernel's limit (sched_rt_runtime_us, 95 %) then makes gaps of its own.",
        Quantity::Gap,
    )
};

impl Workload for BusyLoop {
    fn describe(&self) -> &Description {
        &BUSY_LOOP_DESCRIPTION
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        let Some(text) = parameter else { return Ok(Arc::new(BUSY_LOOP)) };
        let threshold_ns = time_ns(text).filter(|ns| THRESHOLD_NS.contains(ns));
        let threshold_ns = threshold_ns.ok_or_else(|| {
            WorkloadError::parameter(self.name(), text, "a time from 50ns to 1s, as 500ns or 2us")
        })?;
        Ok(Arc::new(Self { threshold_ns }))
    }

    fn spec(&self) -> String {
        format!("{}:{}ns", self.name(), self.threshold_ns)
    }

    fn arm(&self, _: &WorkloadSetting) -> Result<Box<dyn Armed>, WorkloadError> {
        let clock_ps = calibrate::clock_read_ps(Clock::Monotonic);
        if clock_ps / 1000 * 2 >= self.threshold_ns {
            let why = format!(
                "reading the clock takes {} ns here, so that a step of the loop would pass for a \
                 gap; take a threshold of {} ns or more",
                clock_ps / 1000,
                (clock_ps / 1000 * 4).max(*THRESHOLD_NS.start())
            );
            return Err(WorkloadError::unfit(self.name(), why));
        }
        let gaps = Gaps { threshold_ns: self.threshold_ns, ..Gaps::default() };
        Ok(Box::new(Ready { clock_ps, gaps }))
    }
}

struct Ready {
    clock_ps: u64,
    gaps: Gaps,
}

impl Armed for Ready {
    fn cost(&self) -> OwnCost {
        let ns = self.clock_ps.div_ceil(1000);
        let sentence = format!(
            "A step of the loop is one reading of the clock, {ns} ns: each gap holds that much of \
             the loop's own time."
        );
        OwnCost { ns, sentence }
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        let (reason, gaps) = run_busy_loop(cycle, stop, self.gaps.threshold_ns);
        self.gaps = gaps;
        reason
    }

    fn code(&self) -> Vec<usize> {
        vec![run_busy_loop as fn(&mut Cycle, &AtomicBool, u64) -> (EndReason, Gaps) as usize]
    }

    fn ending(&self) -> WorkloadEnding {
        WorkloadEnding { gaps: Some(self.gaps), ..WorkloadEnding::default() }
    }
}

#[inline(never)]
fn run_busy_loop(cycle: &mut Cycle, stop: &AtomicBool, threshold_ns: u64) -> (EndReason, Gaps) {
    sleep_until(cycle.schedule().first_ns);
    cycle.run_gaps(stop, threshold_ns, sys::now_ns)
}

/// Nanoseconds of a number with `ns`, `us`, `ms` or `s`.
fn time_ns(text: &str) -> Option<u64> {
    let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    let (word, unit) = units.iter().find(|(word, _)| text.ends_with(word))?;
    let number: f64 = text.strip_suffix(word)?.trim().parse().ok()?;
    let ns = (number * unit).round();
    (number.is_finite() && (1.0..1e18).contains(&ns)).then_some(ns as u64)
}

// clock_gettime(2): the call that every program makes, as a rule without entering the kernel.

pub(super) const CLOCK_GETTIME: Plain = Plain {
    description: Description::new(
        "clock-gettime",
        "Duration of a fixed number of readings of the clock (clock_gettime, \
     CLOCK_MONOTONIC unless --clock). Where the \
     clock source allows it the kernel is not entered; elsewhere each is a system call, and \
     many times slower. Shows disturbances of the CPU and of the kernel's timekeeping; not \
     how late the work began.",
        Quantity::Duration,
    )
    .with_clocks(Clocks::Read),
    arm: |_, setting| Ok(calibrate(Readings(clock::id(setting.clock)), setting)),
};

struct Readings(sys::ClockNumber);

impl Operation for Readings {
    const WORDS: &'static str = "a reading of the clock";

    #[inline(never)]
    fn run(&mut self, ops: u64) {
        for _ in 0..ops {
            std::hint::black_box(sys::clock_ns(self.0));
        }
    }
}

// kill(0, 0): a system call that does some work in the kernel and has no effect.

pub(super) const KILL: Plain = Plain {
    description: Description::new(
        "kill",
        "Duration of a fixed number of system calls kill(0, 0), which asks for the right to \
     signal the own process group and signals nobody. Shows disturbances of the way into the \
     kernel and back and of its process table; grows with the number of processes in the \
     group. Not how late the work began.",
        Quantity::Duration,
    )
    .with_clocks(Clocks::Read),
    arm: |_, setting| Ok(calibrate(Calls, setting)),
};

struct Calls;

impl Operation for Calls {
    const WORDS: &'static str = "the system call kill(0, 0)";

    #[inline(never)]
    fn run(&mut self, ops: u64) {
        for _ in 0..ops {
            // It is our own group: allowed.
            let _ = rustix::process::test_kill_current_process_group();
        }
    }
}

// Memory operations: reads and writes all over a buffer, whose size decides which cache, or the
// memory itself, is measured.

/// Words of a cache line.
const LINE: usize = 8;

/// Smallest and largest buffer, bytes.
const BYTES: std::ops::RangeInclusive<u64> = 4096..=1 << 30;

const UNITS: &[(&str, u64)] = &[
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("k", 1 << 10),
    ("M", 1 << 20),
    ("", 1),
];

/// Reads and writes of a buffer of some bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    bytes: u64,
}

/// What fits into the second-level cache of most machines, not into the first.
pub(super) const MEMORY: Memory = Memory { bytes: 64 << 10 };

const MEMORY_DESCRIPTION: Description = Description {
    parameter: Some("the size of the buffer, 4KiB to 1GiB, as in memory:4MiB; 64KiB without"),
    clocks: Clocks::Read,
    ..Description::new(
        "memory",
        "Duration of a fixed number of reads and writes of single cache lines all over a buffer \
         of a given size. Each place depends on what the last one read. Shows what takes the CPU away, \
         and what throws lines out of the caches or keeps the memory busy: \
         other CPUs, devices, neighbours of a guest. Not bandwidth, and not how late the work \
         began.",
        Quantity::Duration,
    )
};

impl Workload for Memory {
    fn describe(&self) -> &Description {
        &MEMORY_DESCRIPTION
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        let Some(text) = parameter else { return Ok(Arc::new(MEMORY)) };
        let bytes = bytes(text).filter(|bytes| BYTES.contains(bytes));
        let bytes = bytes.ok_or_else(|| {
            WorkloadError::parameter(self.name(), text, "a size from 4KiB to 1GiB, as 64KiB")
        })?;
        Ok(Arc::new(Self { bytes }))
    }

    fn spec(&self) -> String {
        let unit = UNITS[..3].iter().rev().find(|(_, unit)| self.bytes.is_multiple_of(*unit));
        let (word, unit) = unit.copied().unwrap_or(("", 1));
        format!("{}:{}{word}", self.name(), self.bytes / unit)
    }

    fn arm(&self, setting: &WorkloadSetting) -> Result<Box<dyn Armed>, WorkloadError> {
        let lines = self.bytes as usize / (LINE * size_of::<u64>());
        let mut words = Vec::new();
        words.try_reserve_exact(lines * LINE).map_err(|_| {
            let why = format!("no {} bytes of memory; take a smaller buffer", self.bytes);
            WorkloadError::unfit(self.name(), why)
        })?;
        words.resize(lines * LINE, 1);
        Ok(calibrate(Buffer { words, lines: lines as u64, x: 1 }, setting))
    }
}

/// Bytes of a text with a binary unit.
fn bytes(text: &str) -> Option<u64> {
    let (word, unit) = UNITS.iter().find(|(word, _)| text.ends_with(word))?;
    let number = text.strip_suffix(word)?.trim();
    number.parse::<u64>().ok()?.checked_mul(*unit)
}

struct Buffer {
    words: Vec<u64>,
    lines: u64,
    x: u64,
}

impl Operation for Buffer {
    const WORDS: &'static str = "a read and a write of a cache line";

    #[inline(never)]
    fn run(&mut self, ops: u64) {
        let mut x = self.x;
        for _ in 0..ops {
            // The high half of a product of the high half: a line, all of them equally often.
            let line = ((x >> 32) * self.lines) >> 32;
            let word = &mut self.words[line as usize * LINE];
            *word = word.wrapping_add(2);
            // All words are odd: 1, but the CPU has to read it to know.
            x = step(x ^ 1) ^ (*word & 1);
        }
        self.x = x;
    }

    fn memory(&self) -> Vec<(usize, usize)> {
        vec![(self.words.as_ptr() as usize, size_of_val(self.words.as_slice()))]
    }
}

// Register operations: work that needs no memory and no kernel, so that only what takes the CPU
// away, or slows it down, can change how long it takes.

pub(super) const REGISTERS: Plain = Plain {
    description: Description::new(
        "registers",
        "Duration of a fixed number of multiplications in registers, one after the other. Shows \
     interrupts, preemption, changes of frequency, a busy sibling thread and steals; not \
     memory, caches or the kernel, and not how late the work began.",
        Quantity::Duration,
    )
    .with_clocks(Clocks::Read),
    arm: |_, setting| Ok(calibrate(Chain(1), setting)),
};

/// Each operation needs the result of the one before it.
struct Chain(u64);

impl Operation for Chain {
    const WORDS: &'static str = "a multiplication and an addition in registers";

    #[inline(never)]
    fn run(&mut self, ops: u64) {
        let mut x = self.0;
        for _ in 0..ops {
            x = std::hint::black_box(step(x));
        }
        self.0 = x;
    }
}

#[cfg(test)]
mod busy_loop_tests {
    use super::*;

    #[test]
    fn thresholds_are_read_and_written() {
        let spec = |text| BUSY_LOOP.with(Some(text)).map(|busy| busy.spec());
        assert_eq!(spec("200ns").expect("a time"), "busy-loop:200ns");
        assert_eq!(spec("2us").expect("a time"), "busy-loop:2000ns");
        assert_eq!(spec("1.5us").expect("a time"), "busy-loop:1500ns");
        for text in ["", "10", "10ns", "2s", "us", "-1us", "NaNus", "1e99us", "0.0us"] {
            let error = spec(text).expect_err(text).to_string();
            assert!(error.contains("50ns to 1s"), "{error}");
        }
    }
}

#[cfg(test)]
mod memory_tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_written() {
        let spec = |text| MEMORY.with(Some(text)).map(|memory| memory.spec());
        assert_eq!(spec("4MiB").expect("a size"), "memory:4MiB");
        assert_eq!(spec("1536k").expect("a size"), "memory:1536KiB");
        assert_eq!(spec("5000").expect("a size"), "memory:5000");
        assert_eq!(spec("65536").expect("a size"), "memory:64KiB");
        for text in ["", "4095", "2GiB", "1.5MiB", "-4KiB", "KiB", "99999999999999999999", "4TiB"] {
            let error = spec(text).expect_err(text).to_string();
            assert!(error.contains("4KiB to 1GiB"), "{error}");
        }
    }

    #[test]
    fn operations_go_all_over_the_buffer() {
        let mut buffer = Buffer { words: vec![1; 64 * LINE], lines: 64, x: 1 };
        buffer.run(4096);
        let touched = buffer.words.iter().filter(|&&word| word > 1).count();
        assert_eq!(touched, 64);
        assert_eq!(buffer.words.iter().map(|word| word / 2).sum::<u64>(), 4096);
    }
}
