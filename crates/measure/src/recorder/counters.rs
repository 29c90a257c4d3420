//! Counters next to the events: what the hypervisor, the firmware and quotas took. They are read at
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
const COST_PARTS: u64 = 400;

#[derive(Debug)]
struct Sample {
    /// When its reading began and ended: a spike in between is in some of the counts.
    from_ns: u64,
    to_ns: u64,
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
        // Reading another CPU's register interrupts that; the only CPU reads its own.
        let only = if online.len() == 1 { online.iter().next() } else { None };
        let smi_cpu = online.difference(measured).iter().next().or(only);
        let smi_cpu = smi_cpu.filter(|cpu| msr::read(root, *cpu, msr::SMI_COUNT).value().is_some());
        let servers = &facts.sched.fair_server;
        let is_served =
            servers.value().map(|servers| servers.iter().any(|server| server.runtime_ns > 0));
        let fixed = Beside {
            // Kernels before 6.12 have none.
            fair_server: is_served.or(servers.is_absent().then_some(false)),
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
        let from_ns = clock();
        if from_ns >= self.next_ns {
            let to_ns = self.take(from_ns, &clock);
            self.next_ns = from_ns + to_ns.saturating_sub(from_ns) * COST_PARTS;
        }
    }

    /// Takes one; when it was complete.
    fn take(&mut self, from_ns: u64, clock: impl Fn() -> u64) -> u64 {
        let times = activity::times(&self.root, &self.cpus);
        let steal = times.value().into_iter().flatten();
        let mut sample = Sample {
            from_ns,
            to_ns: from_ns,
            steal_ms: steal.map(|times| (times.cpu, times.steal_ms)).collect(),
            smi: self
                .smi_cpu
                .and_then(|cpu| msr::read(&self.root, cpu, msr::SMI_COUNT).value().copied()),
            throttled: self.groups.iter().map(|(_, file)| throttled(&self.root, file)).collect(),
        };
        sample.to_ns = clock();
        let to_ns = sample.to_ns;
        if self.samples.len() == SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
        to_ns
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
        clock: impl Fn() -> u64,
    ) -> Beside {
        if self.samples.back().is_none_or(|last| last.from_ns < to_ns) {
            self.take(clock(), &clock);
        }
        let mut beside = Beside { idle_states: self.idle_states(cpu), ..self.fixed.clone() };
        let after = self.samples.partition_point(|sample| sample.from_ns < to_ns);
        let before = self.samples.partition_point(|sample| sample.to_ns <= from_ns);
        let (Some(before), Some(after)) =
            (before.checked_sub(1).and_then(|at| self.samples.get(at)), self.samples.get(after))
        else {
            return beside;
        };
        beside.over_ns = after.to_ns.saturating_sub(before.from_ns);
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

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make the machines that they read")]
mod tests {
    use std::{cell::Cell, fs};

    use super::*;

    fn machine() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("proc")).unwrap();
        fs::create_dir_all(dir.path().join("sys/fs/cgroup/plc")).unwrap();
        set(&dir, 5, 1);
        dir
    }

    /// Stolen ticks of 10 ms, and periods in which the group was throttled.
    fn set(dir: &tempfile::TempDir, steal: u64, throttled: u64) {
        let stat = format!("cpu  0 0 0 0 0 0 0 0 0 0\ncpu1 1 2 3 4 5 6 7 {steal} 0 0\n");
        fs::write(dir.path().join("proc/stat"), stat).unwrap();
        let stat = format!("nr_periods 9\nnr_throttled {throttled}\n");
        fs::write(dir.path().join("sys/fs/cgroup/plc/cpu.stat"), stat).unwrap();
    }

    #[test]
    fn what_went_by_over_a_spike_is_between_the_samples_round_it() {
        let dir = machine();
        let root = Root::dir(dir.path()).unwrap();
        let mut counters = Counters::new(&root, &Facts::read(&root), &CpuList::new([1]));
        counters.watch("/plc");
        counters.watch("/nothing");
        counters.sample(|| 100);
        counters.sample(|| 200);
        set(&dir, 7, 4);
        counters.sample(|| 300);
        set(&dir, 9, 9);
        counters.sample(|| 400);
        let beside = counters.beside(1, Some("/plc"), 210, 290, || 500);
        assert_eq!((beside.over_ns, beside.steal_ns), (100, Some(20_000_000)));
        assert_eq!((beside.throttled, beside.smi), (Some(3), None));
        let other = counters.beside(2, Some("/nothing"), 150, 350, || 500);
        assert_eq!((other.over_ns, other.steal_ns, other.throttled), (300, None, None));
        // Nothing was counted before it: no delta.
        assert_eq!(counters.beside(1, None, 50, 150, || 500).over_ns, 0);
        // Nothing was counted after it: that is made up for.
        set(&dir, 10, 9);
        let last = counters.beside(1, None, 410, 450, || 500);
        assert_eq!((last.over_ns, last.steal_ns), (100, Some(10_000_000)));
    }

    #[test]
    fn a_sample_that_a_spike_came_into_bounds_it_on_no_side() {
        let dir = machine();
        let root = Root::dir(dir.path()).unwrap();
        let mut counters = Counters::new(&root, &Facts::read(&root), &CpuList::new([1]));
        counters.sample(|| 100);
        // Begun at 400 and complete at 900: what came at 500 is in some of its counts.
        let times = Cell::new(400);
        counters.next_ns = 0;
        counters.sample(|| times.replace(900));
        set(&dir, 7, 1);
        let beside = counters.beside(1, None, 500, 600, || 1_000);
        assert_eq!((beside.over_ns, beside.steal_ns), (900, Some(20_000_000)));
        // Nor does it end what began before it and lasted into it.
        let beside = counters.beside(1, None, 350, 450, || 1_000);
        assert_eq!((beside.over_ns, beside.steal_ns), (900, Some(20_000_000)));
    }

    #[test]
    fn a_file_that_takes_long_is_read_less_often() {
        let dir = machine();
        let root = Root::dir(dir.path()).unwrap();
        let mut counters = Counters::new(&root, &Facts::read(&root), &CpuList::new([1]));
        let now = Cell::new(0);
        // Each question takes 7 ns.
        let clock = || now.replace(now.get() + 7);
        counters.sample(clock);
        counters.sample(clock);
        assert_eq!(counters.samples.len(), 1, "not yet again");
        now.set(7 * COST_PARTS);
        counters.sample(clock);
        assert_eq!(counters.samples.len(), 2);
    }

    #[test]
    fn samples_are_bounded() {
        let dir = machine();
        let root = Root::dir(dir.path()).unwrap();
        let mut counters = Counters::new(&root, &Facts::read(&root), &CpuList::new([1]));
        (0..1_000).for_each(|at_ns| counters.sample(|| at_ns));
        assert_eq!(counters.samples.len(), SAMPLES_MAX);
        assert_eq!(counters.samples[0].from_ns, 1_000 - SAMPLES_MAX as u64);
    }
}
