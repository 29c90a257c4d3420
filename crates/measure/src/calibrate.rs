//! What measuring costs here: measured before every run and printed with it.

pub use rtproof_model::run::Cost;

use std::{sync::mpsc, time::Duration};

use crate::clock::Clock;
use crate::slot::Slot;
use crate::task::{pin, raise};
use crate::{Policy, clock, sys, task};

/// Longest wait for the calibration, which takes some milliseconds.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Measures on a CPU, under a policy, in a thread of its own. Takes a few milliseconds.
///
/// # Errors
/// When the thread cannot be made or pinned, or something outranks it on its CPU and never yields.
pub fn calibrate(cpu: u32, policy: Policy, priority: u32, clock: Clock) -> std::io::Result<Cost> {
    let (report, reported) = mpsc::channel();
    let (born, tid) = mpsc::channel();
    std::thread::Builder::new().name("rtproof/cost".into()).spawn(move || {
        sys::block_signals();
        // An error: the caller has stopped waiting.
        let _ = born.send(task::tid());
        // Raised first, see `thread`; the measuring threads report a refusal.
        // A deadline does not change what a call takes, but would be refused to a pinned thread.
        if policy != Policy::Deadline {
            let _ = raise(policy, priority);
        }
        let _ = report.send(pin(cpu).map(|()| measure(clock)));
    })?;
    reported.recv_timeout(TIMEOUT).unwrap_or_else(|_| {
        tid.try_iter().for_each(|tid| sys::release(tid, cpu));
        let seconds = TIMEOUT.as_secs();
        let text = format!(
            "no word from a thread on CPU {cpu} after {seconds} s: a task of higher real-time \
             priority keeps that CPU for itself; see `rtproof check`"
        );
        Err(std::io::Error::new(std::io::ErrorKind::TimedOut, text))
    })
}

fn measure(clock: Clock) -> Cost {
    Cost {
        clock_read_ps: clock_read_ps(clock),
        clock_step_ns: clock_step(clock),
        clock_getres_ns: sys::resolution_ns(clock::id(clock)),
        record_ps: record_cost(),
        floor_ns: floor(),
    }
}

/// Median cost of reading a clock on this CPU, picoseconds.
pub(crate) fn clock_read_ps(clock: Clock) -> u64 {
    let id = clock::id(clock);
    per_call_ps(1000, |_| {
        std::hint::black_box(sys::clock_ns(id));
    })
}

/// Median over 31 batches of the cost of a call, picoseconds.
pub(crate) fn per_call_ps(calls: u64, mut call: impl FnMut(u64)) -> u64 {
    let batches = (0..31).map(|_| {
        let start_ns = sys::now_ns();
        (0..calls).for_each(&mut call);
        (sys::now_ns() - start_ns) * 1000 / calls
    });
    median(batches.collect())
}

pub(crate) fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

fn clock_step(clock: Clock) -> u64 {
    let id = clock::id(clock);
    let mut smallest = u64::MAX;
    let mut last_ns = sys::clock_ns(id);
    for _ in 0..10_000 {
        let now_ns = sys::clock_ns(id);
        if now_ns > last_ns {
            smallest = smallest.min(now_ns - last_ns);
            last_ns = now_ns;
        }
    }
    if smallest == u64::MAX { 0 } else { smallest }
}

fn record_cost() -> u64 {
    let mut slot = Slot::default();
    let mut x = 1_u64;
    let (mut due_ns, calls) = (0, 2000);
    let cost = per_call_ps(calls, |_| {
        // Latencies of a few microseconds with some spread, as in life.
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        due_ns += 1_000_000;
        slot.record_wake(due_ns, due_ns + 3000 + (x >> 52));
    });
    std::hint::black_box(&slot);
    cost
}

fn floor() -> u64 {
    // Long enough that the thread really sleeps: a time that is all but due is not slept for.
    const SLEEP_NS: u64 = 50_000;
    let sleep = || {
        let before_ns = sys::now_ns();
        let due = sys::timespec(before_ns + SLEEP_NS);
        let _ = rustix::thread::clock_nanosleep_absolute(rustix::thread::ClockId::Monotonic, &due);
        (sys::now_ns() - before_ns).saturating_sub(SLEEP_NS)
    };
    median((0..500).map(|_| sleep()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_plausible() {
        for clock in [Clock::Monotonic, Clock::Raw] {
            let cost = calibrate(0, Policy::Other, 0, clock).expect("CPU 0");
            assert!(cost.clock_read_ps > 0 && cost.clock_getres_ns > 0 && cost.floor_ns > 0);
            assert!(cost.clock_step_ns > 0 && cost.record_ps > 0, "{clock:?}");
        }
    }
}
