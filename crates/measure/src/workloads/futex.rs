//! Hand-off by a futex: what every condition variable and semaphore of the C library ends in.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use rustix::thread::futex;

use super::{
    Armed, Quantity, Setting, Workload, WorkloadError,
    pair::{self, Channel, Other, Pair, Times},
};

/// A store and FUTEX_WAKE, FUTEX_WAIT.
#[derive(Clone, Copy, Debug)]
pub struct Futex {
    other: Other,
}

impl Futex {
    /// Both threads on the measured CPU.
    pub const USUAL: Self = Self { other: Other::Same };
}

impl Workload for Futex {
    fn name(&self) -> &'static str {
        "futex"
    }

    fn about(&self) -> &'static str {
        "Time from one thread storing a word and waking the other with futex(2) to the other \
         thread's first reading of the clock, once a period. On one CPU the way of the caller to \
         sleep is part of it; with two CPUs the interrupt that wakes the other one, and its way \
         out of idle, are. The answer back is not."
    }

    fn quantity(&self) -> Quantity {
        Quantity::HandOff
    }

    fn parameter(&self) -> Option<&'static str> {
        Some(pair::PARAMETER)
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        Ok(Arc::new(Self { other: Other::parse(self.name(), parameter)? }))
    }

    fn spec(&self) -> String {
        self.other.spec(self.name())
    }

    fn arm(&self, setting: &Setting) -> Result<Box<dyn Armed>, WorkloadError> {
        let channel = Words { call: AtomicU32::new(0), answer: AtomicU32::new(0) };
        Ok(Box::new(Pair::start(self.name(), channel, self.other, 0, setting)?))
    }
}

/// A word for each direction: 1 while somebody is called.
struct Words {
    call: AtomicU32,
    answer: AtomicU32,
}

impl Channel for Words {
    #[inline(always)]
    fn lead(&self, times: &Times) {
        times.begin();
        wake(&self.call);
        wait(&self.answer);
    }

    #[inline(always)]
    fn follow(&self, times: &Times) {
        wait(&self.call);
        times.end();
        wake(&self.answer);
    }

    fn release(&self) {
        wake(&self.call);
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
        // It has been called meanwhile, or a wake-up was for nobody: looked at again.
        let _ = futex::wait(word, futex::Flags::PRIVATE, 0, None);
    }
}
