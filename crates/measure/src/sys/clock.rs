//! Clocks by number: rustix names no CLOCK_TAI. The C library of 32-bit processors has two of each
//! call, and the one under the plain name has 32 bits for seconds: its dates end in 2038.

use rustix::time::Timespec;

#[cfg(all(target_pointer_width = "32", target_env = "gnu"))]
use self::time64::{clock_getres, clock_gettime, clock_nanosleep, timespec};
#[cfg(not(all(target_pointer_width = "32", target_env = "gnu")))]
use libc::{clock_getres, clock_gettime, clock_nanosleep, timespec};

/// The calls with 64-bit time, of glibc 2.34 and later. On a kernel before 5.1 they use the others.
#[cfg(all(target_pointer_width = "32", target_env = "gnu"))]
mod time64 {
    use libc::{c_int, clockid_t};

    /// `struct __timespec64` (time/bits/types/struct_timespec.h) of little-endian processors.
    #[repr(C)]
    #[allow(non_camel_case_types, reason = "the name that it has elsewhere")]
    pub(super) struct timespec {
        pub(super) tv_sec: i64,
        pub(super) tv_nsec: i32,
        pub(super) padding: i32,
    }

    unsafe extern "C" {
        #[link_name = "__clock_gettime64"]
        pub(super) fn clock_gettime(clock: clockid_t, now: *mut timespec) -> c_int;
        #[link_name = "__clock_getres64"]
        pub(super) fn clock_getres(clock: clockid_t, step: *mut timespec) -> c_int;
        #[link_name = "__clock_nanosleep_time64"]
        pub(super) fn clock_nanosleep(
            clock: clockid_t,
            flags: c_int,
            time: *const timespec,
            left: *mut timespec,
        ) -> c_int;
    }
}

/// Number of a clock, e.g. `libc::CLOCK_TAI`.
pub(crate) type ClockNumber = libc::clockid_t;

const fn zero() -> timespec {
    // SAFETY: all-zero bytes are a valid timespec, a structure of integers.
    unsafe { std::mem::zeroed() }
}

/// A clock in nanoseconds; of one that this kernel does not have, 0.
#[inline(always)]
pub(crate) fn clock_ns(clock: ClockNumber) -> u64 {
    let mut now = zero();
    // SAFETY: `now` is valid for the write.
    unsafe { clock_gettime(clock, &raw mut now) };
    // The kernel sets no clock before 1970, and 2^64 ns are 584 years.
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The step that its timers have, nanoseconds; of one that this kernel does not have, 0.
pub(crate) fn resolution_ns(clock: ClockNumber) -> u64 {
    let mut step = zero();
    // SAFETY: `step` is valid for the write.
    unsafe { clock_getres(clock, &raw mut step) };
    step.tv_sec as u64 * 1_000_000_000 + step.tv_nsec as u64
}

/// Sleeps by a clock: until a time of it, or for a time from now. False: a signal ended the sleep,
/// or nothing can sleep by this clock.
#[inline(always)]
pub(crate) fn sleep(clock: ClockNumber, is_absolute: bool, time: &Timespec) -> bool {
    let mut until = zero();
    (until.tv_sec, until.tv_nsec) = (time.tv_sec as _, time.tv_nsec as _);
    let flags = if is_absolute { libc::TIMER_ABSTIME } else { 0 };
    // SAFETY: `until` is a valid timespec; what is left of it is not asked for.
    let error = unsafe { clock_nanosleep(clock, flags, &raw const until, std::ptr::null_mut()) };
    error == 0
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_date_is_that_of_the_standard_library_and_one_after_2038_can_be_waited_for() {
        let date = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let before_ns = date();
        let now_ns = clock_ns(libc::CLOCK_REALTIME);
        assert!(before_ns <= now_ns && now_ns <= date());
        assert!(resolution_ns(libc::CLOCK_MONOTONIC) > 0);
        assert_eq!((clock_ns(99), resolution_ns(99)), (0, 0));
        let from_ns = clock_ns(libc::CLOCK_MONOTONIC);
        assert!(sleep(libc::CLOCK_MONOTONIC, true, &crate::sys::timespec(from_ns + 1_000_000)));
        assert!(clock_ns(libc::CLOCK_MONOTONIC) >= from_ns + 1_000_000);
        // 2^32 s: with 32 bits it is 1970, and the sleep would be over.
        let far = std::thread::spawn(|| {
            sleep(libc::CLOCK_REALTIME, true, &crate::sys::timespec(4_294_967_296_000_000_000))
        });
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!far.is_finished());
    }
}
