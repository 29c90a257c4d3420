//! Timers that send signals, and threads that wait for them. Signals are blocked and taken one by
//! one, but for the nudge that ends a long sleep, and where the entry of a handler is measured.

use std::{
    cell::Cell,
    io,
    mem::MaybeUninit,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// A set with one signal.
fn only(signal: i32) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set that sigaddset changes and that is then read.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        set.assume_init()
    }
}

/// Waits for a signal of the set, which the calling thread blocks. False: it cannot, or a nudge
/// came.
#[inline(always)]
fn wait(set: &libc::sigset_t) -> bool {
    loop {
        // SAFETY: `set` is a valid set; no information is asked for.
        let taken = unsafe { libc::sigwaitinfo(set, std::ptr::null_mut()) };
        if taken > 0 {
            return true;
        }
        // A stop and a continuation of the process end the call too.
        let is_interrupted = io::Error::last_os_error().raw_os_error() == Some(libc::EINTR);
        if !is_interrupted || NUDGED.get() {
            return false;
        }
    }
}

thread_local! {
    /// Whether the thread is to look at its stop flag.
    static NUDGED: Cell<bool> = const { Cell::new(false) };
    /// When the handler of SIGALRM began last in this thread; 0: not since it was looked at.
    static ENTERED_NS: Cell<u64> = const { Cell::new(0) };
}

extern "C" fn entered(_: libc::c_int) {
    ENTERED_NS.set(super::now_ns());
}

extern "C" fn nudged(_: libc::c_int) {
    // Plain memory of the thread: its place is known when the thread starts.
    NUDGED.set(true);
}

fn nudge_signal() -> i32 {
    libc::SIGRTMIN() + 6
}

/// Lets a nudge interrupt what the calling thread waits for. Another program that uses the same
/// signal has its handler in its own process.
pub(crate) fn allow_nudges() {
    static HANDLER: Once = Once::new();
    HANDLER.call_once(|| {
        // SAFETY: all-zero bytes are a valid sigaction; without SA_RESTART, so that calls return.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = nudged as extern "C" fn(libc::c_int) as usize;
        // SAFETY: `action` is a valid sigaction with a handler of the form that no flag asks for;
        // no old action is asked for.
        unsafe { libc::sigaction(nudge_signal(), &raw const action, std::ptr::null_mut()) };
    });
    let set = only(nudge_signal());
    // SAFETY: `set` is a valid set; no old one is asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Interrupts a thread of this process once, if it allows that.
pub(crate) fn interrupt_thread(tid: u32) {
    // SAFETY: three numbers; a thread that is gone is ESRCH.
    unsafe {
        libc::syscall(libc::SYS_tgkill, libc::getpid(), tid.cast_signed(), nudge_signal());
    }
}

/// Takes what is pending of a set.
fn drain(set: &libc::sigset_t) {
    let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `set` and `now` are valid; no information is asked for. A time of 0 does not wait.
    while unsafe { libc::sigtimedwait(set, std::ptr::null_mut(), &raw const now) } > 0 {}
}

/// 68 years at most, where the C library has 32 bits for seconds: no wait and no uptime is longer.
fn seconds(of: u64) -> libc::time_t {
    of.try_into().unwrap_or(libc::time_t::MAX)
}

/// A time of CLOCK_MONOTONIC, or from now on.
pub(super) fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: seconds(ns / 1_000_000_000),
        tv_nsec: (ns % 1_000_000_000).try_into().unwrap_or(0),
    }
}

/// The signal with which two threads call each other, for the thread that waits for it.
#[derive(Debug)]
pub(crate) struct CallSignal {
    signal: i32,
    set: libc::sigset_t,
}

impl CallSignal {
    pub(crate) fn new() -> Self {
        let signal = libc::SIGRTMIN() + 5;
        Self { signal, set: only(signal) }
    }

    /// Signals a thread of this process that blocks all signals.
    #[inline(always)]
    pub(crate) fn send(&self, tid: u32) {
        // SAFETY: three numbers; a thread that is gone is ESRCH.
        unsafe {
            libc::syscall(libc::SYS_tgkill, libc::getpid(), tid.cast_signed(), self.signal);
        }
    }

    /// Waits for the signal, which another thread sends at once: no nudge ends it.
    #[inline(always)]
    pub(crate) fn wait(&self) {
        // The set is valid: it can be waited for.
        while !wait(&self.set) {}
    }
}

/// A POSIX timer whose signal goes to the thread that made it, and to no other.
#[derive(Debug)]
pub(crate) struct ThreadTimer {
    timer: libc::timer_t,
    set: libc::sigset_t,
}

impl ThreadTimer {
    /// A timer for the calling thread, which blocks all signals.
    ///
    /// # Errors
    /// EAGAIN where the limit of pending signals is reached.
    pub(crate) fn new() -> io::Result<Self> {
        let signal = libc::SIGRTMIN() + 4;
        // SAFETY: all-zero bytes are a valid sigevent, a structure of integers and pointers.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        event.sigev_notify_thread_id = rustix::thread::gettid().as_raw_nonzero().get();
        let mut timer = MaybeUninit::<libc::timer_t>::uninit();
        // SAFETY: `event` and `timer` are valid for the call, which fills `timer` when it succeeds.
        unsafe {
            match libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, timer.as_mut_ptr()) {
                0 => Ok(Self { timer: timer.assume_init(), set: only(signal) }),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    /// Starts it: first at an absolute time of CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// None with valid times.
    pub(crate) fn start(&self, first_ns: u64, period_ns: u64) -> io::Result<()> {
        let spec =
            libc::itimerspec { it_interval: timespec(period_ns), it_value: timespec(first_ns) };
        // SAFETY: the timer is ours and alive; `spec` is valid; no old value is asked for.
        let result = unsafe {
            libc::timer_settime(
                self.timer,
                libc::TIMER_ABSTIME,
                &raw const spec,
                std::ptr::null_mut(),
            )
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits for its signal; false: it cannot.
    #[inline(always)]
    pub(crate) fn wait(&self) -> bool {
        wait(&self.set)
    }
}

impl Drop for ThreadTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is ours, alive, and not used after.
        unsafe { libc::timer_delete(self.timer) };
        drain(&self.set);
    }
}

/// The process's interval timer and its SIGALRM, for the thread that claimed them.
#[derive(Debug)]
pub(crate) struct Alarm {
    set: libc::sigset_t,
}

/// Runs in a thread that does not block SIGALRM: it does from now on, so that the next one goes to
/// the thread that waits for it.
extern "C" fn step_aside(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands a handler with SA_SIGINFO a pointer to the interrupted context,
    // whose mask is put in force when the handler returns. sigaddset may be called in a handler.
    unsafe {
        let context = context.cast::<libc::ucontext_t>();
        libc::sigaddset(&raw mut (*context).uc_sigmask, libc::SIGALRM);
    }
}

/// Whether a thread of this process has the timer.
static CLAIMED: AtomicBool = AtomicBool::new(false);

impl Alarm {
    /// Times that other threads are made to step aside, at most: there are fewer.
    const THREADS_MAX: u32 = 4096;

    /// Makes every other thread of the process block SIGALRM, as the calling one does: the signal
    /// is sent to the process, and any thread that does not block it would get it instead. Threads
    /// that are started later have the mask of those that start them.
    ///
    /// # Errors
    /// Something else uses the timer: a value is left in it.
    pub(crate) fn claim() -> io::Result<Self> {
        let in_use = || io::Error::other("the process's interval timer is in use");
        if CLAIMED.swap(true, Ordering::Relaxed) {
            return Err(in_use());
        }
        if Self::is_running() {
            CLAIMED.store(false, Ordering::Relaxed);
            return Err(in_use());
        }
        let alarm = Self { set: only(libc::SIGALRM) };
        // SAFETY: all-zero bytes are a valid sigaction, whose mask is then initialised.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        action.sa_sigaction = step_aside
            as extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void)
            as usize;
        // SAFETY: `action` is a valid sigaction with a handler of the form that SA_SIGINFO asks
        // for; no old action is asked for.
        if unsafe { libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        for _ in 0..Self::THREADS_MAX {
            // SAFETY: sends a signal to our own process, which has a handler for it.
            unsafe { libc::kill(libc::getpid(), libc::SIGALRM) };
            if alarm.stays_pending() {
                break;
            }
        }
        drain(&alarm.set);
        Ok(alarm)
    }

    /// Lets a handler run for each signal from now on, and runs it once, so that its code is there.
    ///
    /// # Errors
    /// None with a valid handler.
    pub(crate) fn handle(&self) -> io::Result<()> {
        // SAFETY: all-zero bytes are a valid sigaction, whose mask is then initialised.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = entered as extern "C" fn(libc::c_int) as usize;
        // SAFETY: `action` is a valid sigaction with a handler of the form that no flag asks for;
        // no old action is asked for. raise sends to the calling thread, which blocks the signal.
        let failed = unsafe {
            libc::sigfillset(&raw mut action.sa_mask);
            libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut()) != 0
                || libc::raise(libc::SIGALRM) != 0
        };
        if failed {
            return Err(io::Error::last_os_error());
        }
        self.enter().map(drop).ok_or_else(|| io::Error::other("the handler of SIGALRM did not run"))
    }

    /// Waits until the handler runs and returns when it began; `None`: a nudge came instead.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Option<u64> {
        ENTERED_NS.set(0);
        let mut mask = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: sigfillset initialises the set that is then changed and read.
        let mask = unsafe {
            libc::sigfillset(mask.as_mut_ptr());
            libc::sigdelset(mask.as_mut_ptr(), libc::SIGALRM);
            libc::sigdelset(mask.as_mut_ptr(), nudge_signal());
            mask.assume_init()
        };
        loop {
            // SAFETY: `mask` is a valid set. It returns when a handler has returned.
            unsafe { libc::sigsuspend(&raw const mask) };
            match ENTERED_NS.get() {
                0 if NUDGED.get() => return None,
                // A stop and a continuation of the process end the call too.
                0 => {}
                entered_ns => return Some(entered_ns),
            }
        }
    }

    /// Whether a signal sent to the process stays pending for 20 ms.
    fn stays_pending(&self) -> bool {
        let is_pending = || {
            let mut set = MaybeUninit::<libc::sigset_t>::uninit();
            // SAFETY: sigpending fills the set that is then read.
            unsafe {
                libc::sigpending(set.as_mut_ptr()) == 0
                    && libc::sigismember(set.as_ptr(), libc::SIGALRM) == 1
            }
        };
        (0..20).all(|_| {
            let pending = is_pending();
            if pending {
                std::thread::sleep(Duration::from_millis(1));
            }
            pending
        })
    }

    fn is_running() -> bool {
        let mut value = MaybeUninit::<libc::itimerval>::zeroed();
        // SAFETY: getitimer fills the value; all-zero bytes are a valid one should it fail.
        let value = unsafe {
            libc::getitimer(libc::ITIMER_REAL, value.as_mut_ptr());
            value.assume_init()
        };
        value.it_value.tv_sec != 0 || value.it_value.tv_usec != 0
    }

    /// Starts the timer; times are in microseconds.
    ///
    /// # Errors
    /// None with valid times.
    pub(crate) fn start(&self, value_us: u64, period_us: u64) -> io::Result<()> {
        let of = |us: u64| libc::timeval {
            tv_sec: seconds(us / 1_000_000),
            tv_usec: (us % 1_000_000).try_into().unwrap_or(0),
        };
        let value = libc::itimerval { it_interval: of(period_us), it_value: of(value_us) };
        // SAFETY: `value` is valid for the call; no old value is asked for.
        match unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const value, std::ptr::null_mut()) }
        {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits for its signal; false: it cannot.
    #[inline(always)]
    pub(crate) fn wait(&self) -> bool {
        wait(&self.set)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        let _ = self.start(0, 0);
        drain(&self.set);
        CLAIMED.store(false, Ordering::Relaxed);
    }
}
