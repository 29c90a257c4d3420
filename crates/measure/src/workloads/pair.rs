//! Two threads that hand over to each other: what the hand-off workloads share.
//!
//! The measuring thread wakes its partner once a period and waits for its answer. Both have read
//! the clock; who takes the difference from where to where depends on the workload.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc,
    },
    thread::JoinHandle,
};

use super::{
    error::WorkloadError,
    timing::sleep_until,
    workload::{Armed, Description, OwnCost, Setting, Workload},
};
use crate::{EndReason, Policy, calibrate, cycle::Cycle, sys, task};

/// Stack of a partner; all of it is locked.
const STACK_BYTES: usize = 64 * 1024;
/// Hand-offs before the run, which warm both threads and show how long one takes.
const WARM_UP: u64 = 100;

/// Where the partner runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Other {
    /// On the measured CPU: each hand-off is a switch of tasks there.
    Same,
    /// On another CPU, which is woken by an interrupt from the measured one.
    Cpu(u32),
}

/// For [`Description::parameter`] of all of them.
const PARAMETER: &str = "the partner's CPU, as in futex:3, or same; the measured one without";

impl Other {
    pub(super) fn cpu(self, measured: u32) -> u32 {
        if let Self::Cpu(cpu) = self { cpu } else { measured }
    }
}

/// A workload of two threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandOff {
    description: Description,
    pub(super) other: Other,
    start: Start,
}

type Start = fn(&HandOff, &Setting) -> Result<Box<dyn Armed>, WorkloadError>;

impl HandOff {
    /// Both threads on the measured CPU. `start` makes the channel.
    pub(super) const fn new(description: Description, start: Start) -> Self {
        let description = Description { parameter: Some(PARAMETER), ..description };
        Self { description, other: Other::Same, start }
    }

    /// Starts a partner, `below` priorities under the measuring thread.
    pub(super) fn start<C: Channel>(
        &self,
        channel: C,
        below: u32,
        setting: &Setting,
    ) -> Result<Box<dyn Armed>, WorkloadError> {
        Ok(Box::new(Pair::start(self.name(), channel, self.other, below, setting)?))
    }

    /// Starts a partner of the same priority, with one way to it and one back.
    pub(super) fn both_ways<W: Way>(
        &self,
        way: impl Fn() -> io::Result<W>,
        setting: &Setting,
    ) -> Result<Box<dyn Armed>, WorkloadError> {
        let ways = way().and_then(|call| Ok(Ways { call, answer: way()? }));
        let ways = ways.map_err(|error| WorkloadError::unfit(self.name(), error))?;
        self.start(ways, 0, setting)
    }
}

impl Workload for HandOff {
    fn describe(&self) -> &Description {
        &self.description
    }

    fn with(&self, parameter: Option<&str>) -> Result<Arc<dyn Workload>, WorkloadError> {
        let other = match parameter {
            None | Some("same") => Other::Same,
            Some(text) => Other::Cpu(text.parse().map_err(|_| {
                WorkloadError::parameter(self.name(), text, "`same` or the number of a CPU")
            })?),
        };
        Ok(Arc::new(Self { other, ..*self }))
    }

    fn spec(&self) -> String {
        match self.other {
            Other::Same => self.name().into(),
            Other::Cpu(cpu) => format!("{}:{cpu}", self.name()),
        }
    }

    fn arm(&self, setting: &Setting) -> Result<Box<dyn Armed>, WorkloadError> {
        (self.start)(self, setting)
    }
}

/// One direction: a thread sends, the other waits for it and takes it.
pub(super) trait Way: Send + Sync + 'static {
    /// Wakes the other thread; never waits.
    fn send(&self);
    /// Waits until the other thread has sent.
    fn take(&self);
}

/// A way for each direction.
struct Ways<W> {
    call: W,
    answer: W,
}

impl<W: Way> Channel for Ways<W> {
    #[inline(always)]
    fn lead(&self, times: &Times) {
        times.begin();
        self.call.send();
        self.answer.take();
    }

    #[inline(always)]
    fn follow(&self, times: &Times) {
        self.call.take();
        times.end();
        self.answer.send();
    }

    fn release(&self) {
        self.call.send();
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
}

/// One of the two threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Measuring,
    Partner,
}

/// What the threads know of the last hand-off.
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
struct Pair<C: Channel> {
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
    fn start(
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
            cpu: other.cpu(setting.cpu),
            policy: setting.policy,
            priority: match setting.priority.saturating_sub(below) {
                0 if is_real_time => 1,
                priority => priority,
            },
        };
        let (times, is_over) = (Times::default(), AtomicBool::new(false));
        let shared = Arc::new(Shared { channel, times, is_over });
        let (ready, answer) = mpsc::channel();
        let life = Arc::clone(&shared);
        let join = std::thread::Builder::new()
            .name(format!("rtproof/{}+", setting.cpu))
            .stack_size(STACK_BYTES)
            .spawn(move || partner_main(&life, &partner, &ready))
            .map_err(|error| WorkloadError::unfit(workload, error))?;
        shared.channel.enter(Side::Measuring);
        let clock_ps = calibrate::clock_read_ps(crate::clock::Clock::Monotonic);
        let mut pair = Self { shared, partner: Some(join), clock_ps, fastest_ns: 0 };
        // Its end of the channel is gone where it panicked.
        let gone = || WorkloadError::unfit(workload, "the partner did not start");
        answer.recv().unwrap_or_else(|_| Err(gone()))?;
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
    // The measuring thread reports a refused policy: it requested the same one.
    let _ = task::raise(partner.policy, partner.priority);
    let pinned = task::pin(partner.cpu).map_err(|error| {
        let why = format!("the partner cannot run on CPU {}: {error}", partner.cpu);
        WorkloadError::unfit(partner.workload, why)
    });
    let may_run = pinned.is_ok();
    // As far as it may; the measuring thread reports what is missing.
    let _ = sys::stack().and_then(|(address, bytes)| sys::lock(address, bytes));
    let serve: fn(&Shared<C>) = serve::<C>;
    let _ = task::lock_code(serve as usize);
    shared.channel.enter(Side::Partner);
    let _ = ready.send(pinned);
    if may_run {
        task::set_armed(true);
        serve(shared);
        task::set_armed(false);
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
            // It panicked: it is gone, which is enough.
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
        vec![run as usize]
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
