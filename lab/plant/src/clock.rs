//! CLOCK_MONOTONIC in nanoseconds: the clock of all truths, and of the measured threads.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::{
    thread::{ClockId, clock_nanosleep_absolute},
    time::{Timespec, clock_gettime},
};

pub(crate) const SECOND_NS: u64 = 1_000_000_000;
pub(crate) const MS_NS: u64 = 1_000_000;

pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * SECOND_NS + now.tv_nsec.unsigned_abs()
}

/// Sleeps; returns early when it is to stop.
pub(crate) fn sleep_until(at_ns: u64, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) && now_ns() < at_ns {
        sleep_once(at_ns);
    }
}

/// Sleeps; returns early when a signal comes, and when the time has passed.
pub(crate) fn sleep_once(at_ns: u64) {
    // EINTR: whoever has to stop then looks for himself.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &timespec(at_ns));
}

/// As the kernel wants it.
pub(crate) fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / SECOND_NS).cast_signed(), tv_nsec: (ns % SECOND_NS).cast_signed() }
}

pub(crate) fn sleep(ns: u64) {
    sleep_until(now_ns() + ns, &AtomicBool::new(false));
}
