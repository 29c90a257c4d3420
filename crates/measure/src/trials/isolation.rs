//! Isolation: does anything else run on the real-time CPUs while the others are loaded? They are
//! observed by counters of the kernel before and after: nothing of ours runs there.
//!
//! A task is said to have run there where its last CPU is one of them and its context switches or
//! its CPU time grew since the look before, a second ago. Tasks that ran there in between and went
//! on elsewhere, or ended, are not named; the count of time slices has them, where the kernel
//! keeps one.

use std::collections::HashMap;

use rtproof_host::{
    CpuList, Reading,
    task::{self, CpuTimes, InterruptLine},
};
use rtproof_model::trial::{IsolationObservation, RanTask, Work};

use super::{Length, Observation, Trial, TrialContext};
use crate::loads::{LoadSet, LoadSettings, Runner, RunningLoad};
use crate::sys;

/// What the other CPUs are loaded with: busy CPUs, new processes, memory and its TLB shootdowns,
/// softirqs of the network.
const LOADS: &str = "cpu+fork+memory+net";

/// Time for the loads to start, which is not part of the trial.
const SETTLE_NS: u64 = 500_000_000;

const SECOND_NS: u64 = 1_000_000_000;

/// The trial `isolation`: what disturbs the real-time CPUs under load.
#[derive(Clone, Copy, Debug)]
pub struct IsolationTrial;

impl Trial for IsolationTrial {
    fn name(&self) -> &'static str {
        "isolation"
    }

    fn about(&self) -> &'static str {
        "which interrupts and tasks reach the real-time CPUs while the others are loaded"
    }

    fn length(&self) -> Length {
        Length::Time { default_ns: 5 * SECOND_NS, longest_ns: 600 * SECOND_NS }
    }

    fn measured(&self, ctx: &TrialContext<'_>) -> CpuList {
        ctx.rt_cpus.clone()
    }

    fn observe(&self, ctx: &TrialContext<'_>) -> Observation {
        let mut running = Vec::new();
        let mut loads = Vec::new();
        if !ctx.housekeeping.is_empty() && !ctx.rt_cpus.is_empty() {
            start_loads(ctx, &mut running, &mut loads);
            ctx.wait(sys::now_ns(), SETTLE_NS, |_| false);
        }
        let before = Look::at(ctx);
        let mut who = RanTasks::new(ctx);
        let mut next_ns = SECOND_NS;
        let duration_ns = match ctx.housekeeping.is_empty() || ctx.rt_cpus.is_empty() {
            true => 0,
            false => ctx.wait(sys::now_ns(), ctx.duration_ns, |elapsed_ns| {
                if elapsed_ns >= next_ns {
                    next_ns = elapsed_ns + SECOND_NS;
                    running.iter_mut().for_each(|load| {
                        // What went wrong is in its outcome.
                        let _ = load.poll();
                    });
                    who.poll(ctx);
                }
                false
            }),
        };
        who.poll(ctx);
        let after = Look::at(ctx);
        for outcome in Runner::stop_all(running) {
            let work = format!("{} {}", outcome.work, outcome.unit);
            loads.push(Work { load: outcome.name, work, error: outcome.error });
        }
        Observation::Isolation(IsolationObservation {
            cpus: ctx.rt_cpus.clone(),
            load_cpus: ctx.housekeeping.clone(),
            loads,
            duration_ns,
            times: zip(before.times, after.times, |before, after| {
                before.iter().zip(&after).map(|(before, after)| after.since(before)).collect()
            }),
            interrupts: zip(before.interrupts, after.interrupts, since),
            softirqs: zip(before.softirqs, after.softirqs, since),
            time_slices: zip(before.time_slices, after.time_slices, |before, after| {
                after.saturating_sub(before)
            }),
            tasks: who.done(),
        })
    }
}

fn start_loads(ctx: &TrialContext<'_>, running: &mut Vec<RunningLoad>, failed: &mut Vec<Work>) {
    let settings = LoadSettings { cpus: ctx.housekeeping.clone(), ..ctx.loads.clone() };
    let Ok(set) = LOADS.parse::<LoadSet>() else { return };
    for spec in set.as_slice() {
        match Runner::start(spec, &settings) {
            Ok(load) => running.push(load),
            Err(error) => failed.push(Work {
                load: spec.to_string(),
                work: String::new(),
                error: Some(error.to_string()),
            }),
        }
    }
}

/// Counters at one time.
struct Look {
    times: Reading<Vec<CpuTimes>>,
    interrupts: Reading<Vec<InterruptLine>>,
    softirqs: Reading<Vec<InterruptLine>>,
    time_slices: Reading<u64>,
}

impl Look {
    fn at(ctx: &TrialContext<'_>) -> Self {
        Self {
            times: task::times(ctx.root, ctx.rt_cpus),
            interrupts: task::interrupts(ctx.root, ctx.rt_cpus),
            softirqs: task::softirqs(ctx.root, ctx.rt_cpus),
            time_slices: task::time_slices(ctx.root, ctx.rt_cpus),
        }
    }
}

fn zip<T, U>(before: Reading<T>, after: Reading<T>, f: impl FnOnce(T, T) -> U) -> Reading<U> {
    before.and_then(|_, before| after.map(|after| f(before, after)))
}

/// The lines whose counts grew, by how much on which CPU.
fn since(before: Vec<InterruptLine>, after: Vec<InterruptLine>) -> Vec<InterruptLine> {
    let grown = |after: InterruptLine| {
        let earlier = before.iter().find(|line| line.name == after.name);
        let earlier = |cpu| {
            let counts = earlier.into_iter().flat_map(|line| &line.counts);
            counts.clone().find(|(other, _)| *other == cpu).map_or(0, |(_, count)| *count)
        };
        let counts: Vec<(u32, u64)> = after
            .counts
            .iter()
            .map(|&(cpu, count)| (cpu, count.saturating_sub(earlier(cpu))))
            .filter(|(_, count)| *count > 0)
            .collect();
        (!counts.is_empty()).then_some(InterruptLine { counts, ..after })
    };
    after.into_iter().filter_map(grown).collect()
}

/// Tasks that ran on the real-time CPUs.
struct RanTasks {
    last: HashMap<(u32, u64), (u64, u64)>,
    ran: Vec<RanTask>,
    /// Why the tasks cannot be read.
    state: Reading<()>,
}

impl RanTasks {
    fn new(ctx: &TrialContext<'_>) -> Self {
        let mut who = Self { last: HashMap::new(), ran: Vec::new(), state: Reading::known("", ()) };
        who.poll(ctx);
        who.ran.clear();
        who
    }

    fn poll(&mut self, ctx: &TrialContext<'_>) {
        let reading = task::tasks(ctx.root, ctx.rt_cpus);
        for task in reading.value().into_iter().flatten() {
            let now = (task.switches, task.time_ms);
            let before = self.last.insert((task.tid, task.start_ticks), now).unwrap_or_default();
            let switches = now.0.saturating_sub(before.0);
            let time_ms = now.1.saturating_sub(before.1);
            if (switches, time_ms) == (0, 0) || !ctx.rt_cpus.contains(task.cpu) {
                continue;
            }
            let here = CpuList::new([task.cpu]);
            // The name of a kworker changes with its work.
            match self.ran.iter_mut().find(|ran| ran.tid == task.tid) {
                Some(ran) => {
                    ran.switches += switches;
                    ran.time_ms += time_ms;
                    ran.on = ran.on.union(&here);
                }
                None => self.ran.push(RanTask {
                    tid: task.tid,
                    comm: task.comm.clone(),
                    kernel_thread: task.kernel_thread,
                    policy: task.policy,
                    allowed: task.allowed.clone(),
                    on: here,
                    switches,
                    time_ms,
                }),
            }
        }
        self.state = reading.map(drop);
    }

    fn done(mut self) -> Reading<Vec<RanTask>> {
        self.ran.sort_by_key(|ran| std::cmp::Reverse((ran.switches, ran.time_ms)));
        self.state.map(|()| self.ran)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trials::testing::try_out;

    #[test]
    fn growth_is_reported_by_cpu() {
        let line = |name: &str, counts: &[(u32, u64)]| InterruptLine {
            name: name.into(),
            about: "x".into(),
            counts: counts.to_vec(),
        };
        let before = vec![line("1", &[(2, 5), (3, 5)]), line("2", &[(2, 9), (3, 9)])];
        let after =
            vec![line("1", &[(2, 5), (3, 9)]), line("2", &[(2, 9), (3, 9)]), line("3", &[(2, 1)])];
        let grown = since(before, after);
        assert_eq!(grown, [line("1", &[(3, 4)]), line("3", &[(2, 1)])]);
    }

    #[test]
    fn a_look_without_a_load_names_what_failed() {
        let Observation::Isolation(observed) = try_out(&IsolationTrial, 300_000_000, false) else {
            panic!("another observation");
        };
        if observed.load_cpus.is_empty() {
            return assert_eq!(observed.duration_ns, 0);
        }
        assert!((300_000_000..2_000_000_000).contains(&observed.duration_ns), "{observed:?}");
        assert_eq!(observed.loads.len(), 4);
        assert!(observed.loads.iter().all(|load| load.error.is_some()), "{:?}", observed.loads);
        assert!(observed.times.value().is_some_and(|times| times.len() == 1));
        assert!(observed.interrupts.value().is_some() && observed.tasks.value().is_some());
    }
}
