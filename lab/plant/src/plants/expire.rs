//! A long timer interrupt: many timers that expire in the same instant. An observer, this very
//! thread, sees the interrupt as a gap in its own time.

use std::os::fd::OwnedFd;

use rustix::{
    io::Errno,
    process::{Resource, Rlimit, setrlimit},
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create,
        timerfd_settime,
    },
};

use crate::args::Args;
use crate::clock::{now_ns, timespec};
use crate::failure::Failure;
use crate::occurrences::Occurrences;
use crate::run::Frame;

const COUNT: u64 = 1_000;
const COUNT_MAX: u64 = 20_000;
/// Looks at the clock begin so long before the timers expire (ordinary threads sleep up to 50 µs
/// too long), and end so long after.
const WATCH_NS: u64 = 250_000;
/// Shorter: no interrupt of many timers.
const GAP_NS: u64 = 20_000;

pub(super) fn expire(frame: Frame, args: &Args) -> Result<(), Failure> {
    let every_ns = args.needed_ns("every").map_err(Failure::Usage)?;
    let count = args.number("count").map_err(Failure::Usage)?.unwrap_or(COUNT);
    if count > COUNT_MAX {
        return Err(Failure::Usage(format!("--count: at most {COUNT_MAX}")));
    }
    let failed = |error: Errno| format!("{count} timers: {error}");
    let timers = timers(count).map_err(failed)?;
    frame.run("expire", args, |run, truth| {
        let room = (run.end_ns - run.begin_ns).div_ceil(every_ns);
        let mut all = Occurrences::with_room(room);
        let result = run.each(every_ns, |due_ns| {
            // Armed on this CPU, half a period ahead.
            run.sleep_until(due_ns);
            let expires_ns = due_ns + every_ns / 2;
            timers.iter().try_for_each(|timer| arm(timer, expires_ns)).map_err(failed)?;
            run.sleep_until(expires_ns - WATCH_NS);
            if let Some((begin_ns, end_ns)) = watch(expires_ns) {
                all.add(begin_ns, end_ns);
            }
            Ok(())
        });
        all.tell(truth);
        truth.set("timers", timers.len());
        result
    })
}

fn timers(count: u64) -> Result<Vec<OwnedFd>, Errno> {
    let files = Some(count + 64);
    setrlimit(Resource::Nofile, Rlimit { current: files, maximum: files })?;
    (0..count).map(|_| timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::empty())).collect()
}

fn arm(timer: &OwnedFd, at_ns: u64) -> Result<(), Errno> {
    let time = Itimerspec { it_interval: timespec(0), it_value: timespec(at_ns) };
    timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &time).map(drop)
}

/// The gap in which the timers expired; `None`: the looks began too late, or there was none.
fn watch(expires_ns: u64) -> Option<(u64, u64)> {
    let mut last_ns = now_ns();
    if last_ns >= expires_ns {
        return None;
    }
    while last_ns < expires_ns + WATCH_NS {
        let now_ns = now_ns();
        if now_ns >= expires_ns && now_ns - last_ns >= GAP_NS {
            return Some((last_ns.max(expires_ns), now_ns));
        }
        last_ns = now_ns;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_begin_too_late_see_nothing() {
        assert_eq!(watch(now_ns() - 1), None);
    }
}
