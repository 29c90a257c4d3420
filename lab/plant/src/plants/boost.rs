//! Priority inheritance: a thread of low priority holds a lock that one of FIFO 90 waits for, and
//! runs with that priority until it gives the lock back.

use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::{
    futex::{self, Flags},
    gettid,
};

use crate::args::Args;
use crate::clock::{self, MS_NS, now_ns};
use crate::failure::Failure;
use crate::occurrences::Occurrences;
use crate::policy::Policy;
use crate::run::{Frame, Run};

/// The waiting thread asks for the lock so long after it was taken.
const ASKS_AFTER_NS: u64 = 100_000;
/// Above the measured threads.
const HIGH: Policy = Policy::Fifo(90);

pub(super) fn boost(frame: Frame, args: &Args) -> Result<(), Failure> {
    let busy_ns = args.needed_ns("busy").map_err(Failure::Usage)?;
    let every_ns = args.needed_ns("every").map_err(Failure::Usage)?;
    if every_ns < 2 * busy_ns {
        return Err(Failure::Usage("--every: at least twice --busy".into()));
    }
    frame.run("boost", args, |run, truth| {
        let room = (run.end_ns - run.begin_ns).div_ceil(every_ns);
        let mut all = Occurrences::with_room(room);
        let lock = AtomicU32::new(0);
        let result = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait(run, every_ns, &lock));
            let held = hold(run, busy_ns, every_ns, &lock, &mut all);
            let waited = waiting.join().unwrap_or_else(|_| Err("its thread ended".into()));
            held.and(waited)
        });
        all.tell(truth);
        result
    })
}

/// The thread that holds the lock: its time with the other's priority is the truth.
fn hold(
    run: &Run,
    busy_ns: u64,
    every_ns: u64,
    lock: &AtomicU32,
    all: &mut Occurrences,
) -> Result<(), String> {
    let own = gettid().as_raw_nonzero().get().unsigned_abs();
    run.each(every_ns, |due_ns| {
        run.sleep_until(due_ns);
        if lock.compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return Ok(());
        }
        let is_asked = || lock.load(Ordering::Relaxed) & futex::WAITERS != 0;
        while !is_asked() && now_ns() < due_ns + 10 * MS_NS {}
        let begin_ns = now_ns();
        let was_asked = is_asked();
        while was_asked && now_ns() < begin_ns + busy_ns {}
        if was_asked {
            all.add(begin_ns, now_ns());
        }
        give_back(lock, own)
    })
}

/// The thread of high priority, which has to wait for the other.
fn wait(run: &Run, every_ns: u64, lock: &AtomicU32) -> Result<(), String> {
    HIGH.apply()?;
    let own = gettid().as_raw_nonzero().get().unsigned_abs();
    run.each(every_ns, |due_ns| {
        run.sleep_until(due_ns + ASKS_AFTER_NS);
        // Not held: the other is late, and there is nothing to wait for.
        if lock.load(Ordering::Relaxed) == 0 {
            clock::sleep(MS_NS);
            return Ok(());
        }
        let failed = |error| format!("cannot wait for the lock: {error}");
        futex::lock_pi(lock, Flags::PRIVATE, None).map_err(failed)?;
        give_back(lock, own)
    })
}

fn give_back(lock: &AtomicU32, own: u32) -> Result<(), String> {
    if lock.compare_exchange(own, 0, Ordering::Release, Ordering::Relaxed).is_ok() {
        return Ok(());
    }
    // A task waits: the kernel hands it over.
    futex::unlock_pi(lock, Flags::PRIVATE).map_err(|error| format!("cannot unlock: {error}"))
}
