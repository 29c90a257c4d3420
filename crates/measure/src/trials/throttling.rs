//! Throttling: a SCHED_FIFO spinner beside an ordinary one on one CPU. Is it paused, for how long,
//! and which tasks ran meanwhile?
//!
//! The FIFO spinner reads the clock; a step of more than a millisecond is a gap. In a gap it looks
//! whether it was switched out (ru_nivcsw) and whether the ordinary spinner, which writes down when
//! it last ran, got to run. A gap with neither is time taken from beneath: hypervisor, firmware,
//! interrupts.
//!
//! Bounds: both spinners look at their deadline in their loop; the FIFO one has priority 1, the
//! least there is, so that threads of the kernel and of others run ahead of it; RLIMIT_RTTIME ends
//! the program should the loop not end; the thread that waits, on another CPU where there is one,
//! takes the policy away half a second after the deadline.

use std::{
    io,
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

use rustix::process::{Resource, Rlimit};

use rtproof_host::{CpuList, task};
use rtproof_model::trial::{Spin, ThrottlingObservation};

use super::{Length, Observation, Refusal, Trial, TrialContext};
use crate::task::{pin, tid};
use crate::{Policy, sys};

/// Shortest step of the clock that is a gap.
pub const GAP_MIN_NS: u64 = 1_000_000;

/// Longest time that the FIFO thread spins.
const LONGEST_NS: u64 = 3_500_000_000;

/// How long after its deadline a spinner is taken the policy away.
const OVERDUE_NS: u64 = 500_000_000;

/// Longest wait for a spinner to get to run.
const START_MAX_NS: u64 = 2_000_000_000;

/// Gaps that are kept one by one.
const GAPS_MAX: usize = 256;

/// The least SCHED_FIFO priority: what matters is that it is not an ordinary task.
const PRIORITY: u32 = 1;

/// The trial `throttling`: whether the kernel pauses a spinning SCHED_FIFO thread.
#[derive(Clone, Copy, Debug)]
pub struct Throttling;

impl Trial for Throttling {
    fn name(&self) -> &'static str {
        "throttling"
    }

    fn about(&self) -> &'static str {
        "is a SCHED_FIFO spinner paused for an ordinary one on its CPU, and by what; spins for 3 s"
    }

    fn length(&self) -> Length {
        Length::Time { default_ns: 3_000_000_000, longest_ns: LONGEST_NS }
    }

    fn measured(&self, ctx: &TrialContext<'_>) -> CpuList {
        CpuList::new([cpu(ctx)])
    }

    fn observe(&self, ctx: &TrialContext<'_>) -> Observation {
        let cpu = cpu(ctx);
        let one = CpuList::new([cpu]);
        let steal = || task::times(ctx.root, &one);
        let before = steal();
        let run = spin(ctx, cpu);
        let steal_ms =
            before.and_then(|_, before| steal().map(|after| after[0].since(&before[0]).steal_ms));
        Observation::Throttling(ThrottlingObservation { cpu, run, steal_ms })
    }
}

/// The CPU to try: the last of the real-time CPUs, preferably one that this process may use; 0 only
/// where there is no other.
fn cpu(ctx: &TrialContext<'_>) -> u32 {
    let facts = &ctx.facts.cpus;
    let zero = CpuList::new([0]);
    let rt_cpus = match ctx.rt_cpus.is_empty() {
        true => facts.online.value().cloned().unwrap_or_default(),
        false => ctx.rt_cpus.clone(),
    };
    let others = rt_cpus.difference(&zero);
    let allowed = facts.allowed.value().map(|allowed| allowed.intersection(&others));
    let last = |list: &CpuList| list.as_slice().last().copied();
    allowed.as_ref().and_then(last).or_else(|| last(&others)).unwrap_or(0)
}

/// What the three threads share.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    /// When the ordinary spinner last ran.
    ran_ns: AtomicU64,
    /// CPU time used so far.
    ordinary_cpu_ns: AtomicU64,
    ordinary_tid: AtomicU32,
    fifo_tid: AtomicU32,
    /// Whether the FIFO spinner has begun: until it has its policy it waits like everybody.
    spins: AtomicBool,
}

fn spin(ctx: &TrialContext<'_>, cpu: u32) -> Result<Spin, Refusal> {
    let duration_ns = ctx.duration_ns.min(LONGEST_NS);
    let guard = TimeLimit::set(duration_ns + 2 * OVERDUE_NS)?;
    let shared = &Shared::default();
    let cannot_start = |error: io::Error| Refusal::new("starting a thread", &error);
    let run = std::thread::scope(|scope| {
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        let until_ns = sys::now_ns() + 2 * START_MAX_NS + duration_ns + OVERDUE_NS;
        let ordinary = thread("rtproof/plain")
            .spawn_scoped(scope, move || spin_ordinary(shared, cpu, until_ns))
            .map_err(cannot_start)?;
        let has_run = || shared.ran_ns.load(Ordering::Acquire) != 0;
        wait_for_start(|| has_run() || ordinary.is_finished());
        let is_running = has_run();
        let fifo = is_running.then(|| {
            let fifo = thread("rtproof/fifo")
                .spawn_scoped(scope, move || spin_fifo(shared, cpu, duration_ns))?;
            wait_for_start(|| shared.spins.load(Ordering::Acquire) || fifo.is_finished());
            let start_ns = sys::now_ns();
            ctx.wait(start_ns, duration_ns + OVERDUE_NS, |_| fifo.is_finished());
            shared.stop.store(true, Ordering::Release);
            if !fifo.is_finished() {
                // It ends at the next look at the flag; should something keep it from looking, it
                // shall at least not keep the CPU.
                std::thread::sleep(std::time::Duration::from_millis(20));
                release(&shared.fifo_tid, cpu);
            }
            fifo.join().map_err(|_| io::Error::other("the spinner panicked"))
        });
        shared.stop.store(true, Ordering::Release);
        if !ordinary.is_finished() && !is_running {
            release(&shared.ordinary_tid, cpu);
        }
        let pinned = ordinary.join().unwrap_or(Ok(()));
        match fifo {
            Some(Ok(run)) => run,
            Some(Err(error)) => Err(cannot_start(error)),
            None => Err(pinned.err().unwrap_or_else(|| Refusal {
                errno: None,
                text: format!(
                    "an ordinary thread on CPU {cpu} did not get to run: a real-time task keeps \
                     that CPU for itself"
                ),
            })),
        }
    });
    drop(guard);
    run
}

/// Waits for a spinner to begin, for so long as that may take.
fn wait_for_start(has_begun: impl Fn() -> bool) {
    let start_ns = sys::now_ns();
    while !has_begun() && sys::now_ns() - start_ns <= START_MAX_NS {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

fn release(thread: &AtomicU32, cpu: u32) {
    match thread.load(Ordering::Acquire) {
        0 => {}
        tid => sys::release(tid, cpu),
    }
}

/// Spins as an ordinary task and writes down when it ran.
fn spin_ordinary(shared: &Shared, cpu: u32, until_ns: u64) -> Result<(), Refusal> {
    sys::block_signals();
    shared.ordinary_tid.store(tid(), Ordering::Release);
    pin(cpu).map_err(|error| Refusal::new(&format!("running on CPU {cpu}"), &error))?;
    loop {
        let now_ns = sys::now_ns();
        shared.ordinary_cpu_ns.store(sys::thread_cpu_ns(), Ordering::Relaxed);
        shared.ran_ns.store(now_ns, Ordering::Release);
        if now_ns >= until_ns || shared.stop.load(Ordering::Relaxed) {
            return Ok(());
        }
    }
}

/// Spins as a FIFO task and looks for gaps.
fn spin_fifo(shared: &Shared, cpu: u32, duration_ns: u64) -> Result<Spin, Refusal> {
    sys::block_signals();
    shared.fifo_tid.store(tid(), Ordering::Release);
    sys::set_policy(Policy::Fifo, PRIORITY)
        .map_err(|error| Refusal::new(&format!("SCHED_FIFO {PRIORITY}"), &error))?;
    pin(cpu).map_err(|error| Refusal::new(&format!("running on CPU {cpu}"), &error))?;
    let mut run = Spin { first: Vec::with_capacity(GAPS_MAX), ..Spin::default() };
    let ordinary_before_ns = shared.ordinary_cpu_ns.load(Ordering::Relaxed);
    let before = sys::usage();
    let mut switched = before.preemptions;
    shared.spins.store(true, Ordering::Release);
    let start_ns = sys::now_ns();
    let mut last_ns = start_ns;
    loop {
        let now_ns = sys::now_ns();
        if now_ns - last_ns > GAP_MIN_NS {
            let (gap_ns, switches) = (now_ns - last_ns, sys::usage().preemptions);
            let gaps = match () {
                () if shared.ran_ns.load(Ordering::Acquire) > last_ns => &mut run.ordinary,
                () if switches > switched => &mut run.others,
                () => &mut run.beneath,
            };
            gaps.add(gap_ns);
            switched = switches;
            if run.first.len() < GAPS_MAX {
                run.first.push((last_ns - start_ns, gap_ns));
            }
        }
        last_ns = now_ns;
        if now_ns - start_ns >= duration_ns || shared.stop.load(Ordering::Relaxed) {
            break;
        }
    }
    let after = sys::usage();
    // Looked at first: the ordinary one may run as soon as this one is ordinary, too.
    let ordinary_ns = shared.ordinary_cpu_ns.load(Ordering::Relaxed);
    // What follows is done with no more haste than the rest of the program.
    let _ = sys::set_policy(Policy::Other, 0);
    run.duration_ns = last_ns - start_ns;
    run.fifo_cpu_ns = after.cpu_time_ns - before.cpu_time_ns;
    run.preemptions = after.preemptions - before.preemptions;
    run.ordinary_cpu_ns = ordinary_ns.saturating_sub(ordinary_before_ns);
    Ok(run)
}

/// RLIMIT_RTTIME of this process while it spins: the kernel's own end for a real-time thread that
/// does not block. The limit of before is set again at the end.
struct TimeLimit(Rlimit);

impl TimeLimit {
    /// # Errors
    /// The hard limit is below what the trial needs: it would end the program.
    fn set(longest_ns: u64) -> Result<Self, Refusal> {
        let before = rustix::process::getrlimit(Resource::Rttime);
        let wanted_us = longest_ns / 1_000;
        if let Some(hard_us) = before.maximum.filter(|&hard_us| hard_us < wanted_us) {
            let text = format!(
                "RLIMIT_RTTIME: {hard_us} µs at most, and a real-time thread that spins longer is \
                 killed; raise it: ulimit -R unlimited"
            );
            return Err(Refusal { errno: None, text });
        }
        let limit = Rlimit { current: Some(wanted_us), maximum: before.maximum };
        // Lowering, or raising up to the hard limit, is always allowed.
        let _ = rustix::process::setrlimit(Resource::Rttime, limit);
        Ok(Self(before))
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        let before = Rlimit { current: self.0.current, maximum: self.0.maximum };
        let _ = rustix::process::setrlimit(Resource::Rttime, before);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, MutexGuard};

    use super::*;
    use crate::trials::testing::{try_on_one_cpu, try_out};

    /// FIFO spinners of two tests at once would pause each other.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    fn alone() -> MutexGuard<'static, ()> {
        ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    #[test]
    fn a_short_spin_ends_and_adds_up() {
        let _alone = alone();
        let started_ns = sys::now_ns();
        let Observation::Throttling(observed) = try_out(&Throttling, 300_000_000, false) else {
            panic!("another observation");
        };
        adds_up(observed, started_ns);
    }

    #[test]
    fn it_ends_on_a_machine_of_one_cpu() {
        let _alone = alone();
        let started_ns = sys::now_ns();
        let Observation::Throttling(observed) = try_on_one_cpu(&Throttling, 300_000_000) else {
            panic!("another observation");
        };
        adds_up(observed, started_ns);
    }

    fn adds_up(observed: ThrottlingObservation, started_ns: u64) {
        assert!(sys::now_ns() - started_ns < 5_000_000_000);
        match observed.run {
            Ok(run) => {
                assert!((300_000_000..800_000_000).contains(&run.duration_ns), "{run:?}");
                assert!(run.fifo_cpu_ns > 0 && run.fifo_cpu_ns <= run.duration_ns + 50_000_000);
                let gaps = [run.ordinary, run.others, run.beneath];
                assert_eq!(run.first.len() as u64, gaps.iter().map(|gaps| gaps.count).sum::<u64>());
                assert!(gaps.iter().all(|gaps| gaps.max_ns <= gaps.sum_ns));
            }
            Err(refusal) => assert!(refusal.is_permission(), "{refusal:?}"),
        }
    }

    #[test]
    fn a_stop_ends_it_at_once() {
        let _alone = alone();
        let Observation::Throttling(observed) = try_out(&Throttling, 3_000_000_000, true) else {
            panic!("another observation");
        };
        assert!(
            observed.run.is_err() || observed.run.is_ok_and(|run| run.duration_ns < 500_000_000)
        );
    }
}
