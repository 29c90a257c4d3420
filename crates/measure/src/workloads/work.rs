//! Execution-time jitter: a piece of work of always the same size, once a period, timed.
//!
//! The operations differ; waiting, timing, calibration and what is said of them do not.

use std::sync::atomic::AtomicBool;

use super::{
    timing::sleep_until,
    workload::{Armed, OwnCost, Setting},
};
use crate::{
    EndReason, calibrate,
    clock::{Clock, KernelClock, Timekeeper},
    cycle::Cycle,
    sys,
};

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
pub(super) fn calibrate<O: Operation>(mut operation: O, setting: &Setting) -> Box<dyn Armed> {
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
            None => run(cycle, stop, &mut self.operation, self.ops),
            Some(clock) => run_by(cycle, stop, &mut self.operation, self.ops, clock),
        }
    }

    fn code(&self) -> Vec<usize> {
        let run: fn(&mut Cycle, &AtomicBool, &mut O, u64) -> EndReason = run::<O>;
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
fn run<O: Operation>(
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
