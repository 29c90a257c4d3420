//! Clocks by number: rustix names no CLOCK_TAI.

use rustix::time::Timespec;

/// Number of a clock, e.g. `libc::CLOCK_TAI`.
pub(crate) type ClockNumber = libc::clockid_t;

/// A clock in nanoseconds; of one that this kernel does not have, 0.
#[inline(always)]
pub(crate) fn clock_ns(clock: ClockNumber) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for the write.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    // The kernel sets no clock before 1970, and 2^64 ns are 584 years.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The step that its timers have, nanoseconds; of one that this kernel does not have, 0.
pub(crate) fn resolution_ns(clock: ClockNumber) -> u64 {
    let mut step = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `step` is valid for the write.
    unsafe { libc::clock_getres(clock, &raw mut step) };
    step.tv_sec as u64 * 1_000_000_000 + step.tv_nsec as u64
}

/// Sleeps by a clock: until a time of it, or for a time from now. False: a signal ended the sleep,
/// or nothing can sleep by this clock.
#[inline(always)]
pub(crate) fn sleep(clock: ClockNumber, is_absolute: bool, time: &Timespec) -> bool {
    let time = libc::timespec { tv_sec: time.tv_sec as _, tv_nsec: time.tv_nsec as _ };
    let flags = if is_absolute { libc::TIMER_ABSTIME } else { 0 };
    // SAFETY: `time` is a valid timespec; what is left of it is not asked for.
    let error =
        unsafe { libc::clock_nanosleep(clock, flags, &raw const time, std::ptr::null_mut()) };
    error == 0
}
