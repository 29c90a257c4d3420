//! Hand-off of a mutex with priority inheritance: how long a thread waits for a lock that is free.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rustix::thread::futex as kernel;

use super::{
    futex,
    pair::{Channel, HandOff, Times},
    workload::Description,
};
use crate::{quantity::Quantity, sys, task::tid};

/// How long a holder on another CPU goes on after the measuring thread waits: by then it sleeps.
const SETTLE_NS: u64 = 20_000;

pub(super) const WORKLOAD: HandOff = HandOff::new(
    Description::new(
        "mutex-pi",
        "Time from a thread of lower priority beginning to release a mutex with priority \
     inheritance, for which the measuring thread waits, to the measuring thread having it, \
     once a period. Uses the futexes of which the C library makes such mutexes \
     (PTHREAD_PRIO_INHERIT), always contended. The holder is one priority below and inherits \
     the higher one; how long it holds the mutex is not part of it, nor is an uncontended \
     lock.",
        Quantity::HandOff,
    ),
    |own, setting| {
        let word = || AtomicU32::new(0);
        let channel = Mutex {
            lock: word(),
            call: word(),
            held: word(),
            is_same: own.other.cpu(setting.cpu) == setting.cpu,
            is_over: AtomicBool::new(false),
        };
        own.start(channel, 1, setting)
    },
);

/// A mutex as the C library lays it out: the owner's id, and whether a thread waits.
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
        // A thread waits: the kernel hands the mutex over, because we are its owner.
        let _ = kernel::unlock_pi(word, kernel::Flags::PRIVATE);
    }
}
