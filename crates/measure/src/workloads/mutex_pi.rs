//! Hand-off of a mutex with priority inheritance: how long a thread waits for a lock that is free.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

use rustix::thread::futex as kernel;

use super::{
    Armed, Quantity, Setting, Workload, WorkloadError, futex,
    pair::{self, Channel, Other, Pair, Times},
};
use crate::{sys, thread::tid};

/// How long a holder on another CPU goes on after somebody waits: by then it sleeps.
const SETTLE_NS: u64 = 20_000;

/// FUTEX_LOCK_PI and FUTEX_UNLOCK_PI.
#[derive(Clone, Copy, Debug)]
pub struct MutexPi {
    other: Other,
}

impl MutexPi {
    /// Both threads on the measured CPU.
    pub const USUAL: Self = Self { other: Other::Same };
}

impl Workload for MutexPi {
    fn name(&self) -> &'static str {
        "mutex-pi"
    }

    fn about(&self) -> &'static str {
        "Time from a thread of lower priority beginning to release a mutex with priority \
         inheritance, for which the measuring thread waits, to the measuring thread having it, \
         once a period. Uses the futexes of which the C library makes such mutexes \
         (PTHREAD_PRIO_INHERIT), always contended. The holder is one priority below and inherits \
         the higher one; how long it holds the mutex is not part of it, nor is an uncontended \
         lock."
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
        let word = || AtomicU32::new(0);
        let is_same = match self.other {
            Other::Same => true,
            Other::Cpu(cpu) => cpu == setting.cpu,
        };
        let channel = Mutex {
            lock: word(),
            call: word(),
            held: word(),
            is_same,
            is_over: AtomicBool::new(false),
        };
        Ok(Box::new(Pair::start(self.name(), channel, self.other, 1, setting)?))
    }
}

/// A mutex as the C library lays it out: the owner's id, and whether somebody waits.
struct Mutex {
    lock: AtomicU32,
    /// The partner is to take it.
    call: AtomicU32,
    /// The partner has it.
    held: AtomicU32,
    is_same: bool,
    is_over: AtomicBool,
}

impl Channel for Mutex {
    #[inline(always)]
    fn lead(&self, times: &Times) {
        futex::wake(&self.call);
        futex::wait(&self.held);
        lock(&self.lock);
        times.end();
        unlock(&self.lock);
    }

    #[inline(always)]
    fn follow(&self, times: &Times) {
        futex::wait(&self.call);
        if self.is_over.load(Ordering::Acquire) {
            return;
        }
        lock(&self.lock);
        futex::wake(&self.held);
        while self.lock.load(Ordering::Acquire) & kernel::WAITERS == 0 {
            // On one CPU the measuring thread runs first as a rule: it has the higher priority.
            if self.is_same {
                rustix::thread::sched_yield();
            }
            std::hint::spin_loop();
        }
        if !self.is_same {
            let until_ns = sys::now_ns() + SETTLE_NS;
            while sys::now_ns() < until_ns {
                std::hint::spin_loop();
            }
        }
        times.begin();
        unlock(&self.lock);
    }

    fn release(&self) {
        self.is_over.store(true, Ordering::Release);
        futex::wake(&self.call);
    }
}

#[inline(always)]
fn lock(word: &AtomicU32) {
    let own = tid();
    while word.compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed).is_err() {
        // The kernel makes us the owner. An error is that of a word that changed meanwhile.
        if kernel::lock_pi(word, kernel::Flags::PRIVATE, None).is_ok() {
            return;
        }
    }
}

#[inline(always)]
fn unlock(word: &AtomicU32) {
    if word.compare_exchange(tid(), 0, Ordering::Release, Ordering::Relaxed).is_err() {
        // Somebody waits: the kernel hands it over. We are the owner, so that it can.
        let _ = kernel::unlock_pi(word, kernel::Flags::PRIVATE);
    }
}
