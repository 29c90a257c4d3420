//! Counters beside the events: what the hypervisor, the firmware and quotas took. They are read at
//! every look at the rings, so that what went by over a spike is known.

use std::collections::VecDeque;

use rtproof_host::{
    CpuList, Facts, Root, activity,
    facts::kernel::Preemption,
    msr,
    task::{throttle_file, throttled},
};
use rtproof_trace::{Beside, IdleState};

/// Samples that are kept: five seconds of them.
const SAMPLES_MAX: usize = 256;
/// Groups whose quota is watched.
const GROUPS_MAX: usize = 16;
/// Share of a CPU that reading may take, one part in so many: /proc/stat of a large machine takes
/// milliseconds.
const COST_PARTS: u64 = 100;

/// One reading.
#[derive(Debug)]
struct Sample {
    at_ns: u64,
    /// CPU and stolen milliseconds since boot.
    steal_ms: Vec<(u32, u64)>,
    smi: Option<u64>,
    /// As `groups`, which only grows.
    throttled: Vec<Option<u64>>,
}

/// Reads them and keeps some.
#[derive(Debug)]
pub(super) struct Counters {
    root: Root,
    cpus: CpuList,
    /// The CPU that is asked for its count of system management interrupts, which all CPUs take
    /// together. Asking interrupts it, so it is no measured one.
    smi_cpu: Option<u32>,
    /// Group and its file.
    groups: Vec<(String, String)>,
    samples: VecDeque<Sample>,
    next_ns: u64,
    /// What never changes, and the idle states of each CPU.
    fixed: Beside,
    idle_states: Vec<(u32, Vec<rtproof_host::facts::cpu::IdleState>)>,
}

impl Counters {
    pub(super) fn new(root: &Root, facts: &Facts, measured: &CpuList) -> Self {
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let smi_cpu = online.difference(measured).iter().next();
        let smi_cpu = smi_cpu.filter(|cpu| msr::read(root, *cpu, msr::SMI_COUNT).value().is_some());
        let fixed = Beside {
            rt_runtime_us: facts.sched.rt_runtime_us.value().copied(),
            rt_period_us: facts.sched.rt_period_us.value().copied(),
            preempt_rt: facts.kernel.preemption.value().map(|model| *model == Preemption::Rt),
            guest: facts.virt.hypervisor.value().map(Option::is_some),
            ..Beside::default()
        };
        let states =
            |cpu: &rtproof_host::facts::cpu::Cpu| Some((cpu.id, cpu.idle_states.value()?.clone()));
        Self {
            root: root.clone(),
            cpus: measured.clone(),
            smi_cpu,
            groups: Vec::new(),
            samples: VecDeque::new(),
            next_ns: 0,
            fixed,
            idle_states: facts.cpus.cpus.iter().filter_map(states).collect(),
        }
    }

    /// Takes a sample, unless the last ones were so dear that it would take too much of a CPU.
    pub(super) fn sample(&mut self, clock: impl Fn() -> u64) {
        let at_ns = clock();
        if at_ns >= self.next_ns {
            self.take(at_ns);
            let cost_ns = clock().saturating_sub(at_ns);
            self.next_ns = at_ns + cost_ns * COST_PARTS;
        }
    }

    fn take(&mut self, at_ns: u64) {
        let times = activity::times(&self.root, &self.cpus);
        let steal = times.value().into_iter().flatten();
        let sample = Sample {
            at_ns,
            steal_ms: steal.map(|times| (times.cpu, times.steal_ms)).collect(),
            smi: self
                .smi_cpu
                .and_then(|cpu| msr::read(&self.root, cpu, msr::SMI_COUNT).value().copied()),
            throttled: self.groups.iter().map(|(_, file)| throttled(&self.root, file)).collect(),
        };
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// Watches the quota of a group from now on.
    pub(super) fn watch(&mut self, group: &str) {
        let is_known = self.groups.iter().any(|(known, _)| known == group);
        if !is_known && self.groups.len() < GROUPS_MAX {
            let file = throttle_file(&self.root, group);
            self.groups.extend(file.map(|file| (group.to_owned(), file)));
        }
    }

    /// What is known of a CPU between two times, for a task of a group.
    pub(super) fn beside(
        &mut self,
        cpu: u32,
        group: Option<&str>,
        from_ns: u64,
        to_ns: u64,
        now_ns: u64,
    ) -> Beside {
        if self.samples.back().is_none_or(|last| last.at_ns < to_ns) {
            self.take(now_ns);
        }
        let mut beside = Beside { idle_states: self.idle_states(cpu), ..self.fixed.clone() };
        let after = self.samples.partition_point(|sample| sample.at_ns < to_ns);
        let before = self.samples.partition_point(|sample| sample.at_ns <= from_ns);
        let (Some(before), Some(after)) =
            (before.checked_sub(1).and_then(|at| self.samples.get(at)), self.samples.get(after))
        else {
            return beside;
        };
        beside.over_ns = after.at_ns - before.at_ns;
        let steal = |sample: &Sample| {
            sample.steal_ms.iter().find(|(of, _)| *of == cpu).map(|(_, ms)| ms * 1_000_000)
        };
        beside.steal_ns = since(steal(before), steal(after));
        beside.smi = since(before.smi, after.smi);
        let group = self.groups.iter().position(|(known, _)| Some(known.as_str()) == group);
        let count = |sample: &Sample| *sample.throttled.get(group?)?;
        beside.throttled = since(count(before), count(after));
        beside
    }

    fn idle_states(&self, cpu: u32) -> std::collections::BTreeMap<u32, IdleState> {
        let states = self.idle_states.iter().find(|(of, _)| *of == cpu);
        let states = states.into_iter().flat_map(|(_, states)| states);
        let state = |state: &rtproof_host::facts::cpu::IdleState| IdleState {
            name: state.name.clone(),
            exit_latency_ns: state.exit_latency_ns,
        };
        states.map(|known| (known.index, state(known))).collect()
    }
}

/// Counters may step back.
fn since(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    Some(after?.saturating_sub(before?))
}
