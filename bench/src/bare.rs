//! The yardstick: sleep to an absolute time, read the clock, keep the largest. Nothing less
//! measures a wake-up.

use rustix::{
    thread::{ClockId, clock_nanosleep_absolute},
    time::{Timespec, clock_gettime},
};

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Runs for a duration; returns the number of wake-ups.
pub(crate) fn run(period_ns: u64, duration_ns: u64) -> u64 {
    let mut due_ns = now_ns() + period_ns;
    let end_ns = due_ns + duration_ns;
    let (mut n, mut max_ns) = (0, 0);
    while due_ns < end_ns {
        let due = Timespec {
            tv_sec: (due_ns / 1_000_000_000).cast_signed(),
            tv_nsec: (due_ns % 1_000_000_000).cast_signed(),
        };
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &due);
        let now_ns = now_ns();
        max_ns = std::cmp::max(max_ns, now_ns - due_ns);
        n += 1;
        while due_ns <= now_ns {
            due_ns += period_ns;
        }
    }
    std::hint::black_box(max_ns);
    n
}
