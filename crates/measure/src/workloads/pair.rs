//! Two threads that hand over to each other: what the hand-off workloads share.
//!
//! The measuring thread wakes its partner once a period and waits for its answer. Both have read
//! the clock; who takes the difference from where to where depends on the workload.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread::JoinHandle,
};

use super::{Armed, OwnCost, Setting, WorkloadError, timer_wakeup::sleep_until};
use crate::{
    calibrate,
    cycle::Cycle,
    sys,
    thread::{self, EndReason, Policy},
};

/// Stack of a partner; all of it is locked.
const STACK_BYTES: usize = 64 * 1024;
/// Hand-offs before the run, which warm both threads and tell what one takes.
const WARM_UP: u64 = 100;

/// Where the partner runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    /// On the measured CPU: each hand-off is a switch of tasks there.
    Same,
    /// On another CPU, which is woken by an interrupt from the measured one.
    Cpu(u32),
}

/// For [`super::Workload::parameter`] of all of them.
pub(super) const PARAMETER: &str =
    "the partner's CPU, as in futex:3, or same; the measured one without";

impl Other {
    pub(super) fn parse(
        workload: &'static str,
        parameter: Option<&str>,
    ) -> Result<Self, WorkloadError> {
        match parameter {
            None | Some("same") => Ok(Self::Same),
            Some(text) => text.parse().map(Self::Cpu).map_err(|_| {
                WorkloadError::parameter(workload, text, "`same` or the number of a CPU")
            }),
        }
    }

    pub(super) fn spec(self, workload: &str) -> String {
        match self {
            Self::Same => workload.into(),
            Self::Cpu(cpu) => format!("{workload}:{cpu}"),
        }
    }
}

/// How two threads wake each other.
pub(super) trait Channel: Send + Sync + 'static {
    /// From the measuring thread's hand-off to its own next instruction, instead of to the
    /// partner's.
    const IS_ROUND_TRIP: bool = false;
    /// Called by either thread in itself, before anything else.
    fn enter(&self, _side: Side) {}
    /// The measuring thread's turn: wakes the partner and waits until it has answered. The
    /// hand-off begins at the clock reading that is stored into `times.begin_ns`.
    fn lead(&self, times: &Times);
    /// The partner's turn: waits, stores into `times.end_ns` when it was reached, answers.
    fn follow(&self, times: &Times);
    /// Wakes the partner for the last time: its `follow` returns.
    fn release(&self);
    /// Addresses of code that is not part of either loop.
    fn code() -> Vec<usize> {
        Vec::new()
    }
}

/// One of the two threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Measuring,
    Partner,
}

/// What the threads tell each other of the last hand-off.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// When it began, CLOCK_MONOTONIC.
    pub(super) begin_ns: AtomicU64,
    /// When it had arrived.
    pub(super) end_ns: AtomicU64,
}

impl Times {
    /// Now, as a beginning.
    #[inline(always)]
    pub(super) fn begin(&self) {
        self.begin_ns.store(sys::now_ns(), Ordering::Release);
    }

    /// Now, as an end.
    #[inline(always)]
    pub(super) fn end(&self) {
        self.end_ns.store(sys::now_ns(), Ordering::Release);
    }

    #[inline(always)]
    fn took_ns(&self) -> u64 {
        let end_ns = self.end_ns.load(Ordering::Acquire);
        end_ns.saturating_sub(self.begin_ns.load(Ordering::Acquire))
    }
}

struct Shared<C> {
    channel: C,
    times: Times,
    is_over: AtomicBool,
}

/// A measuring thread's end of a pair.
pub(super) struct Pair<C: Channel> {
    shared: Arc<Shared<C>>,
    partner: Option<JoinHandle<()>>,
    clock_ps: u64,
    fastest_ns: u64,
}

/// Who the partner is.
struct Partner {
    workload: &'static str,
    cpu: u32,
    policy: Policy,
    priority: u32,
}

impl<C: Channel> Pair<C> {
    /// Starts a partner, `below` priorities under the measuring thread.
    pub(super) fn start(
        workload: &'static str,
        channel: C,
        other: Other,
        below: u32,
        setting: &Setting,
    ) -> Result<Self, WorkloadError> {
        if setting.policy == Policy::Deadline {
            let why = "two deadline tasks do not share a period; take fifo, rr or other";
            return Err(WorkloadError::unfit(workload, why));
        }
        let is_real_time = setting.policy.has_priority();
        let partner = Partner {
            workload,
            cpu: if let Other::Cpu(cpu) = other { cpu } else { setting.cpu },
            policy: setting.policy,
            priority: match setting.priority.saturating_sub(below) {
                0 if is_real_time => 1,
                priority => priority,
            },
        };
        let (times, is_over) = (Times::default(), AtomicBool::new(false));
        let shared = Arc::new(Shared { channel, times, is_over });
        let (ready, told) = mpsc::channel();
        let life = Arc::clone(&shared);
        let join = std::thread::Builder::new()
            .name(format!("rtproof/{}+", setting.cpu))
            .stack_size(STACK_BYTES)
            .spawn(move || partner_main(&life, &partner, &ready))
            .map_err(|error| WorkloadError::unfit(workload, error))?;
        shared.channel.enter(Side::Measuring);
        let clock_ps = calibrate::clock_read_ps();
        let mut pair = Self { shared, partner: Some(join), clock_ps, fastest_ns: 0 };
        // Its end of the channel is gone where it panicked.
        let gone = || WorkloadError::unfit(workload, "the partner did not start");
        told.recv().unwrap_or_else(|_| Err(gone()))?;
        pair.fastest_ns = (0..WARM_UP).map(|_| pair.once().0).min().unwrap_or(0);
        Ok(pair)
    }

    /// One hand-off: how long it took, when it was over.
    #[inline(always)]
    fn once(&self) -> (u64, u64) {
        once(&self.shared)
    }
}

#[inline(always)]
fn once<C: Channel>(shared: &Shared<C>) -> (u64, u64) {
    shared.channel.lead(&shared.times);
    let done_ns = sys::now_ns();
    if C::IS_ROUND_TRIP {
        let begin_ns = shared.times.begin_ns.load(Ordering::Relaxed);
        return (done_ns.saturating_sub(begin_ns), done_ns);
    }
    (shared.times.took_ns(), done_ns)
}

/// The partner from birth to death.
fn partner_main<C: Channel>(
    shared: &Shared<C>,
    partner: &Partner,
    ready: &mpsc::Sender<Result<(), WorkloadError>>,
) {
    sys::block_signals();
    // A refused policy is told by the measuring thread, which asked for the same.
    let _ = thread::raise(partner.policy, partner.priority);
    let pinned = thread::pin(partner.cpu).map_err(|error| {
        let why = format!("the partner cannot run on CPU {}: {error}", partner.cpu);
        WorkloadError::unfit(partner.workload, why)
    });
    let may_run = pinned.is_ok();
    // As far as it may; what is missing is told by the measuring thread.
    let _ = sys::stack().and_then(|(address, bytes)| sys::lock(address, bytes));
    let serve: fn(&Shared<C>) = serve::<C>;
    let _ = thread::lock_code(serve as usize);
    shared.channel.enter(Side::Partner);
    let _ = ready.send(pinned);
    if may_run {
        thread::set_armed(true);
        serve(shared);
        thread::set_armed(false);
    }
}

#[inline(never)]
fn serve<C: Channel>(shared: &Shared<C>) {
    while !shared.is_over.load(Ordering::Acquire) {
        shared.channel.follow(&shared.times);
    }
}

impl<C: Channel> Drop for Pair<C> {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.channel.release();
        if let Some(partner) = self.partner.take() {
            // It panicked: it is gone, which is all that is wanted.
            let _ = partner.join();
        }
    }
}

impl<C: Channel> Armed for Pair<C> {
    fn cost(&self) -> OwnCost {
        let ns = self.clock_ps.div_ceil(1000);
        let sentence = format!(
            "The fastest of {WARM_UP} before the run took {} ns. Each sample holds one reading of \
             the clock, {ns} ns.",
            self.fastest_ns
        );
        OwnCost { ns, sentence }
    }

    fn run(&mut self, cycle: &mut Cycle, stop: &AtomicBool) -> EndReason {
        run(cycle, stop, &self.shared)
    }

    fn code(&self) -> Vec<usize> {
        let run: fn(&mut Cycle, &AtomicBool, &Shared<C>) -> EndReason = run::<C>;
        let mut code = C::code();
        code.push(run as usize);
        code
    }

    fn memory(&self) -> Vec<(usize, usize)> {
        vec![(Arc::as_ptr(&self.shared) as usize, size_of::<Shared<C>>())]
    }
}

#[inline(never)]
fn run<C: Channel>(cycle: &mut Cycle, stop: &AtomicBool, shared: &Shared<C>) -> EndReason {
    cycle.run_pieces(stop, |due_ns| {
        sleep_until(due_ns);
        once(shared)
    })
}
