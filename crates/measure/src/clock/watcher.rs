//! Rouses threads that sleep by a clock that was set back, off the measured CPUs.
//!
//! A thread that sleeps until a time of CLOCK_REALTIME sleeps on for as long as that clock was set
//! back by: an hour, or for ever. The kernel cancels a timerfd at each set, so that this thread
//! knows of it at once; each measuring thread is roused, looks at its clock and sleeps on by it.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, eventfd, poll},
    io::Errno,
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create,
        timerfd_settime,
    },
};

use rtproof_model::run::Clock;

use super::source::id;
use crate::sys;

/// How often the distance is looked at all the same: the TAI offset changes without a set.
const LOOK_NS: u64 = 1_000_000_000;
/// A distance that differs by this much was changed. Below it nobody sleeps too long to notice.
const CHANGED_NS: u64 = 1_000_000;
/// After these a thread is roused again: it may just have been about to sleep.
const AGAIN: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(50)];

/// The thread that watches.
#[derive(Debug)]
pub(crate) struct StepWatcher {
    end: Arc<OwnedFd>,
    join: Option<JoinHandle<()>>,
}

impl StepWatcher {
    /// Watches a clock for threads, by thread id; `None` where it cannot be set back.
    ///
    /// # Errors
    /// No descriptor or no thread is available.
    pub(crate) fn start(clock: Clock, tids: Vec<Arc<AtomicU32>>) -> io::Result<Option<Self>> {
        if !matches!(clock, Clock::Realtime | Clock::Tai) {
            return Ok(None);
        }
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Realtime, flags)?;
        let end = Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?);
        let watched = Arc::clone(&end);
        let name = std::thread::Builder::new().name("rtproof/clock".into());
        let join = name.spawn(move || {
            sys::block_signals();
            watch(clock, &timer, watched.as_fd(), &tids);
        })?;
        Ok(Some(Self { end, join: Some(join) }))
    }
}

impl Drop for StepWatcher {
    fn drop(&mut self) {
        let is_told = rustix::io::write(&*self.end, &1_u64.to_ne_bytes()).is_ok();
        if let Some(join) = self.join.take().filter(|_| is_told) {
            // It panicked: it is gone, which is enough.
            let _ = join.join();
        }
    }
}

fn watch(clock: Clock, timer: &OwnedFd, end: BorrowedFd<'_>, tids: &[Arc<AtomicU32>]) {
    let distance = || sys::clock::clock_ns(id(clock)).wrapping_sub(sys::now_ns());
    let mut last = distance();
    loop {
        let mut was_set = arm(timer) == Err(Errno::CANCELED);
        if !was_set {
            let mut both =
                [PollFd::new(timer, PollFlags::IN), PollFd::from_borrowed_fd(end, PollFlags::IN)];
            // Signals are blocked here; were one to come all the same, it looks once more.
            let _ = poll(&mut both, None);
            if both[1].revents().contains(PollFlags::IN) {
                return;
            }
            was_set = rustix::io::read(timer, &mut [0_u8; 8]) == Err(Errno::CANCELED);
        }
        let now = distance();
        let moved_ns = now.wrapping_sub(last).cast_signed().unsigned_abs();
        last = now;
        if was_set || moved_ns > CHANGED_NS {
            rouse(tids);
            for pause in AGAIN {
                std::thread::sleep(pause);
                rouse(tids);
            }
        }
    }
}

fn rouse(tids: &[Arc<AtomicU32>]) {
    let tids = tids.iter().map(|tid| tid.load(Ordering::Acquire)).filter(|&tid| tid != 0);
    tids.for_each(sys::signals::nudge);
}

/// Expires after a while, or when CLOCK_REALTIME is set.
fn arm(timer: &OwnedFd) -> Result<(), Errno> {
    let at_ns = sys::clock::clock_ns(id(Clock::Realtime)).saturating_add(LOOK_NS);
    let spec = Itimerspec { it_interval: sys::timespec(0), it_value: sys::timespec(at_ns) };
    let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    timerfd_settime(timer, flags, &spec).map(|_| ())
}
