//! Workloads that sleep until they are due, each by another call of the kernel.

use std::{
    os::fd::OwnedFd,
    sync::atomic::{AtomicBool, AtomicU32, Ordering},
};

use rustix::{
    thread::ClockId,
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};

use super::pair::{Channel, HandOff, PairSide, Times};
use super::workload::{self, Clocks, Description, Plain, WorkloadError};
use crate::clock::{Clock, KernelClock, Timekeeper};
use crate::cycle::Cycle;
use crate::sys::signals::{Alarm, CallSignal, ThreadTimer};
use crate::task::tid;
use crate::{EndReason, Quantity, sys};

// Relative sleep by clock_nanosleep(2): what a program does that asks for "a period from now".

pub(super) const NANOSLEEP_RELATIVE: Plain = Plain {
    description: Description::new(
        "nanosleep-relative",
        "Interval from one wake-up to the next, less the period, of a thread that sleeps for one \
     period each time (clock_nanosleep, relative, CLOCK_MONOTONIC unless --clock). Holds the thread's own way \
     from one reading of the clock into the next sleep. Each lateness moves all that follow: \
     this schedule drifts, and is not what a control loop should use. An interval of k whole \
     periods held k cycles that were due; one is sampled, k - 1 are missed.",
        Quantity::Interval,
    )
    .with_intervals()
    .with_clocks(Clocks::Relative),
    arm: |about, setting| match setting.clock {
        Clock::Monotonic => {
            workload::armed(sys::timespec(setting.period_ns), run_nanosleep_relative)
        }
        _ => workload::armed_by(about.name, setting, run_nanosleep_relative_by),
    },
};

#[inline(never)]
fn run_nanosleep_relative(cycle: &mut Cycle, stop: &AtomicBool, period: &Timespec) -> EndReason {
    // On the stack, which is locked.
    let period = *period;
    workload::run_sleeps(cycle, stop, || {
        let _ = rustix::thread::clock_nanosleep_relative(ClockId::Monotonic, &period);
    })
}

#[inline(never)]
fn run_nanosleep_relative_by(
    cycle: &mut Cycle,
    stop: &AtomicBool,
    clock: &mut Timekeeper<KernelClock>,
) -> EndReason {
    let period_ns = cycle.schedule().period_ns;
    workload::sleep_until(cycle.schedule().first_ns);
    cycle.begin_at(clock.now_ns());
    cycle.run_relative(stop, || {
        clock.sleep_for(period_ns);
        clock.now_ns()
    })
}

// A POSIX timer that sends a signal to the measuring thread.

pub(super) const POSIX_TIMER: Plain = Plain {
    description: Description::new(
        "posix-timer",
        "Time from the expiry of a periodic POSIX timer (timer_settime, absolute CLOCK_MONOTONIC) \
     to the thread that its real-time signal is sent to reading the clock. The signal is \
     blocked and taken with sigwaitinfo(2): no handler runs, and what entering one would cost \
     is not measured.",
        Quantity::Latency,
    )
    .with_intervals(),
    arm: |about, setting| {
        let timer = ThreadTimer::new();
        let timer = timer.map_err(|error| WorkloadError::unfit(about.name, error))?;
        workload::armed((timer, setting.period_ns), run_posix_timer)
    },
};

#[inline(never)]
fn run_posix_timer(
    cycle: &mut Cycle,
    stop: &AtomicBool,
    (timer, period_ns): &(ThreadTimer, u64),
) -> EndReason {
    let first_ns = cycle.schedule().first_ns;
    // A time of 0 would disarm it: the session gave up, and there is nothing to wait for.
    if first_ns == 0 || timer.start(first_ns, *period_ns).is_err() {
        return EndReason::Stopped;
    }
    workload::run_expiries(cycle, stop, || timer.wait())
}

// setitimer(2) and SIGALRM: the periodic task of simple programs.

/// Time before the first wake-up at which the timer is started.
const LEAD_NS: u64 = 2_000_000;

pub(super) const SETITIMER: Plain = Plain {
    description: Description::new(
        "setitimer",
        "Time from the expiry of the process's interval timer (setitimer, ITIMER_REAL) to the \
     thread that takes SIGALRM reading the clock, against the timer's own grid. The grid begins \
     with the clock read right before the call. So the call itself, well below a microsecond, is \
     in every sample. The signal is blocked and taken with sigwaitinfo(2), not by a \
     handler. The intervals between signals are kept beside. Whole microseconds only; a \
     process has one such timer, so one CPU at a time.",
        Quantity::Latency,
    )
    .with_intervals()
    .single_thread(),
    arm: |about, setting| {
        let period_us = workload::whole_microseconds(about.name, setting.period_ns)?;
        let alarm = Alarm::claim().map_err(|error| WorkloadError::unfit(about.name, error))?;
        workload::armed((alarm, period_us), run_setitimer)
    },
};

#[inline(never)]
fn run_setitimer(
    cycle: &mut Cycle,
    stop: &AtomicBool,
    (alarm, period_us): &(Alarm, u64),
) -> EndReason {
    if !begin_interval(cycle, alarm, *period_us) {
        return EndReason::Stopped;
    }
    workload::run_expiries(cycle, stop, || alarm.wait())
}

/// Starts the timer, and the cycles on its grid; false: it cannot be started.
pub(super) fn begin_interval(cycle: &mut Cycle, alarm: &Alarm, period_us: u64) -> bool {
    let first_ns = cycle.schedule().first_ns;
    workload::sleep_until(first_ns.saturating_sub(LEAD_NS));
    let before_ns = sys::now_ns();
    // At least 1 us: a value of 0 would disarm it.
    let value_us = first_ns.saturating_sub(before_ns) / 1000 + 1;
    let has_started = alarm.start(value_us, period_us).is_ok();
    if has_started {
        cycle.begin_at(before_ns + value_us * 1000);
    }
    has_started
}

// setitimer(2) and a handler of SIGALRM that does the work: the skeleton of S3.

pub(super) const SIGALRM_HANDLER: Plain = Plain {
    description: Description::new(
        "sigalrm-handler",
        "Time from the expiry of the process's interval timer (setitimer, ITIMER_REAL) to the \
         first statement of a handler of SIGALRM. The handler interrupts a thread that waits in \
         sigsuspend(2), as pause(2) does. The way back from the handler is not in it. Against the \
         timer's own grid, as setitimer. The intervals between entries are kept beside. Whole \
         microseconds only; a process has one such timer, so one CPU at a time.",
        Quantity::Latency,
    )
    .with_intervals()
    .single_thread(),
    arm: |about, setting| {
        let period_us = workload::whole_microseconds(about.name, setting.period_ns)?;
        let unfit = |error| WorkloadError::unfit(about.name, error);
        let alarm = Alarm::claim().map_err(unfit)?;
        alarm.handle().map_err(unfit)?;
        workload::armed((alarm, period_us), run_sigalrm_handler)
    },
};

#[inline(never)]
fn run_sigalrm_handler(
    cycle: &mut Cycle,
    stop: &AtomicBool,
    (alarm, period_us): &(Alarm, u64),
) -> EndReason {
    if !begin_interval(cycle, alarm, *period_us) {
        return EndReason::Stopped;
    }
    cycle.run_keeping(stop, |due_ns| {
        loop {
            match alarm.enter() {
                // An expiry from before was counted as missed.
                Some(entered_ns) if entered_ns < due_ns => {}
                Some(entered_ns) => return entered_ns,
                None => return sys::now_ns(),
            }
        }
    })
}

// Signal round trip: one thread signals another, which signals back.

pub(super) const SIGNAL: HandOff = HandOff::new(
    Description::new(
        "signal",
        "Time from one thread sending a real-time signal to another with tgkill(2), over the \
     other taking it and signalling back, to the first having taken the answer, once a \
     period. Both take signals with sigwaitinfo(2): entering a handler is not measured.",
        Quantity::RoundTrip,
    ),
    |own, setting| {
        let id = || AtomicU32::new(0);
        own.start(Signals { call: CallSignal::new(), measuring: id(), partner: id() }, 0, setting)
    },
);

/// The signal, and the ids of both threads.
struct Signals {
    call: CallSignal,
    measuring: AtomicU32,
    partner: AtomicU32,
}

impl Channel for Signals {
    const IS_ROUND_TRIP: bool = true;

    fn enter(&self, side: PairSide) {
        let id = if side == PairSide::Partner { &self.partner } else { &self.measuring };
        id.store(tid(), Ordering::Release);
    }

    #[inline(always)]
    fn lead(&self, times: &Times) {
        times.begin();
        self.call.send(self.partner.load(Ordering::Acquire));
        self.call.wait();
    }

    #[inline(always)]
    fn follow(&self, times: &Times) {
        self.call.wait();
        times.end();
        self.call.send(self.measuring.load(Ordering::Acquire));
    }

    fn release(&self) {
        self.call.send(self.partner.load(Ordering::Acquire));
    }
}

// Timer wake-up: sleep until an absolute time, read the clock. The field's basic latency.

pub(super) const TIMER_WAKEUP: Plain = Plain {
    description: Description::new(
        "timer-wakeup",
        "Time from the expiry of a timer (clock_nanosleep, absolute, \
     CLOCK_MONOTONIC unless --clock) to the \
     thread reading the clock. Covers the timer interrupt, the wake-up and the scheduler; not \
     device interrupts, threaded handlers or the application's own work.",
        Quantity::Latency,
    )
    .with_clocks(Clocks::Timers),
    arm: |about, setting| match setting.clock {
        Clock::Monotonic => workload::armed((), run_timer_wakeup),
        _ => workload::armed_by(about.name, setting, run_timer_wakeup_by),
    },
};

#[inline(never)]
fn run_timer_wakeup(cycle: &mut Cycle, stop: &AtomicBool, (): &()) -> EndReason {
    cycle.run(stop, |due_ns| {
        workload::sleep_until(due_ns);
        sys::now_ns()
    })
}

#[inline(never)]
fn run_timer_wakeup_by(
    cycle: &mut Cycle,
    stop: &AtomicBool,
    clock: &mut Timekeeper<KernelClock>,
) -> EndReason {
    cycle.run_by(stop, clock)
}

// A periodic timerfd: the timer of event loops.

pub(super) const TIMERFD: Plain = Plain {
    description: Description::new(
        "timerfd",
        "Time from the expiry of a periodic timerfd (absolute CLOCK_MONOTONIC) to the thread that \
     reads it reading the clock. Covers the timer interrupt, the wake-up through the file's \
     wait queue, the scheduler and the return from read(2); not the poll(2) or epoll(7) that \
     an event loop puts before it.",
        Quantity::Latency,
    )
    .with_intervals(),
    arm: |about, setting| {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC);
        let timer = timer.map_err(|error| WorkloadError::unfit(about.name, error))?;
        workload::armed((timer, setting.period_ns), run_timerfd)
    },
};

#[inline(never)]
fn run_timerfd(
    cycle: &mut Cycle,
    stop: &AtomicBool,
    (timer, period_ns): &(OwnedFd, u64),
) -> EndReason {
    let first_ns = cycle.schedule().first_ns;
    let spec =
        Itimerspec { it_interval: sys::timespec(*period_ns), it_value: sys::timespec(first_ns) };
    // A time of 0 would disarm it: the session gave up, and there is nothing to wait for.
    if first_ns == 0 || timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &spec).is_err() {
        return EndReason::Stopped;
    }
    // A read returns all expiries since the last one.
    workload::run_expiries(cycle, stop, || rustix::io::read(timer, &mut [0_u8; 8]).is_ok())
}

// usleep(3): the call of old programs, and one of the six kinds of work that jitter is shown with.

pub(super) const USLEEP: Plain = Plain {
    description: Description::new(
        "usleep",
        "Interval from one wake-up to the next, less the period, of a thread that calls usleep(3) \
     for one period each time. Drifts as nanosleep-relative does, with the same account of \
     missed cycles; the C library's own way into the call is part of it. Whole microseconds \
     below 1 s only. It does not measure latency against a schedule.",
        Quantity::Interval,
    )
    .with_intervals(),
    arm: |about, setting| {
        let period_us = workload::whole_microseconds(about.name, setting.period_ns)?;
        let period_us = u32::try_from(period_us).ok().filter(|&us| us < 1_000_000);
        let period_us = period_us.ok_or_else(|| {
            WorkloadError::unfit(about.name, "usleep(3) takes less than 1 s; shorten the period")
        })?;
        workload::armed(period_us, run_usleep)
    },
};

#[inline(never)]
fn run_usleep(cycle: &mut Cycle, stop: &AtomicBool, period_us: &u32) -> EndReason {
    let period_us = *period_us;
    workload::run_sleeps(cycle, stop, || sys::usleep(period_us))
}
