//! A clock beside CLOCK_MONOTONIC as the kernel has it: its number, reading it, sleeping by it.

use rtproof_model::run::Clock;

use crate::sys::{
    self,
    clock::{ClockNumber, clock_ns, sleep},
};

/// The clock as the kernel names it.
pub(crate) const fn id(clock: Clock) -> ClockNumber {
    match clock {
        Clock::Monotonic => libc::CLOCK_MONOTONIC,
        Clock::Raw => libc::CLOCK_MONOTONIC_RAW,
        Clock::Realtime => libc::CLOCK_REALTIME,
        Clock::Boottime => libc::CLOCK_BOOTTIME,
        Clock::Tai => libc::CLOCK_TAI,
    }
}

/// Whether a thread can sleep by a clock here. Takes no time.
pub(crate) fn can_sleep(clock: Clock) -> bool {
    sleep(id(clock), true, &sys::timespec(1))
}

/// A clock beside CLOCK_MONOTONIC. Nanoseconds.
pub(crate) trait TimeSource {
    /// CLOCK_MONOTONIC.
    fn monotonic_ns(&mut self) -> u64;
    fn read_ns(&mut self) -> u64;
    /// Sleeps for a time from now.
    fn sleep_for(&mut self, ns: u64);
    /// Sleeps until a time of the clock. False: a signal ended it.
    fn sleep_until(&mut self, at_ns: u64) -> bool;
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelClock(ClockNumber);

impl KernelClock {
    pub(crate) const fn new(clock: Clock) -> Self {
        Self(id(clock))
    }
}

impl TimeSource for KernelClock {
    #[inline(always)]
    fn monotonic_ns(&mut self) -> u64 {
        sys::now_ns()
    }

    #[inline(always)]
    fn read_ns(&mut self) -> u64 {
        clock_ns(self.0)
    }

    #[inline(always)]
    fn sleep_for(&mut self, ns: u64) {
        sleep(self.0, false, &sys::timespec(ns));
    }

    #[inline(always)]
    fn sleep_until(&mut self, at_ns: u64) -> bool {
        sleep(self.0, true, &sys::timespec(at_ns))
    }
}
