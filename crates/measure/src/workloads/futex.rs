//! Hand-off by a futex: what every condition variable and semaphore of the C library ends in.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

use super::{
    pair::{HandOff, Way},
    workload::Description,
};
use crate::quantity::Quantity;

pub(super) const WORKLOAD: HandOff = HandOff::new(
    Description::new(
        "futex",
        "Time from one thread storing a word and waking the other with futex(2) to the other \
     thread's first reading of the clock, once a period. On one CPU the way of the caller to sleep \
     is part of it. With two CPUs the interrupt that wakes the other one is, and its way out of \
     idle. The answer back is not part of it.",
        Quantity::HandOff,
    ),
    |own, setting| own.both_ways(|| Ok(AtomicU32::new(0)), setting),
);

/// A word: 1 while the other thread is called.
impl Way for AtomicU32 {
    #[inline(always)]
    fn send(&self) {
        wake(self);
    }

    #[inline(always)]
    fn take(&self) {
        wait(self);
    }
}

/// Calls whoever waits for the word.
#[inline(always)]
pub(super) fn wake(word: &AtomicU32) {
    word.store(1, Ordering::Release);
    // Nobody waiting is no error.
    let _ = futex::wake(word, futex::Flags::PRIVATE, 1);
}

/// Waits for a call, and takes it.
#[inline(always)]
pub(super) fn wait(word: &AtomicU32) {
    while word.swap(0, Ordering::Acquire) == 0 {
        // Called meanwhile, or a spurious wake-up: read again.
        let _ = futex::wait(word, futex::Flags::PRIVATE, 0, None);
    }
}
