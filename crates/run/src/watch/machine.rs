//! Activity of each CPU, from files whose reading interrupts no CPU: once a second.

use std::collections::BTreeMap;

use rtproof_host::{
    CpuList, Facts, HostSampler, Root,
    idle::IdleSampler,
    sample::{
        ResidencySampler,
        cpus::{Counted, CpuSampler, RtNow, RtSampler},
    },
};
use rtproof_results::watch::{EventRate, IdleCounter, IdleShare, WatchCpu, WatchFrame, WatchTask};

use super::outranked;

/// Shortest span that makes a rate: of a shorter one the first frame knows none.
const SPAN_MIN_NS: u64 = 200_000_000;

/// Reads a machine again and again.
#[derive(Debug)]
pub(super) struct MachineSampler {
    host: HostSampler,
    cpus: CpuSampler,
    idle: IdleSampler,
    /// States by CPU, shallow to deep, with their names.
    states: BTreeMap<u32, Vec<(u32, String)>>,
    residency: Option<ResidencySampler>,
    /// CPUs whose registers may be read.
    free: CpuList,
    tasks: RtSampler,
    isolated: CpuList,
    online: CpuList,
    hostname: Option<String>,
    kernel: Option<String>,
    unknown: Vec<String>,
}

impl MachineSampler {
    /// Opens what is read. `undisturbed`: CPUs that must not be interrupted by asking.
    pub(super) fn new(root: &Root, facts: &Facts, undisturbed: &CpuList, msr: bool) -> Self {
        let online = facts.cpus.online.value().cloned().unwrap_or_default();
        let isolated = facts.cpus.isolated.value().cloned().unwrap_or_default();
        let quiet = undisturbed.union(&isolated);
        let host = HostSampler::new(root, facts, &quiet);
        let cpus = CpuSampler::new(root, &online);
        let idle = IdleSampler::new(root, &online);
        let mut states: BTreeMap<u32, Vec<(u32, String)>> = BTreeMap::new();
        for state in idle.states() {
            states.entry(state.cpu).or_default().push((state.state, state.name.clone()));
        }
        let mut unknown: Vec<String> =
            host.skipped().iter().map(|what| format!("Not read: {what}.")).collect();
        unknown.extend(cpus.unknown().iter().map(|what| format!("{what}.")));
        if states.is_empty() {
            unknown.push(
                "Idle states: the kernel has no cpuidle states here (/sys/devices/system/cpu/\
                 cpuN/cpuidle), as in most virtual machines."
                    .into(),
            );
        }
        let free = online.difference(&quiet);
        let residency = msr.then(|| ResidencySampler::new(root, facts, &free));
        let residency = residency.and_then(|sampler| {
            let why = sampler.as_ref().err().cloned();
            unknown.extend(why.map(|why| format!("Hardware residency counters: {why}.")));
            sampler.ok()
        });
        if facts.cpus.cpus.iter().all(|cpu| cpu.freq.driver.value().is_none()) {
            unknown.push(
                "Frequency: there is no cpufreq (/sys/devices/system/cpu/cpuN/cpufreq), as in most \
                 virtual machines."
                    .into(),
            );
        }
        let mut tasks = RtSampler::new(root);
        // The first reading finds the tasks; shares are known from the second on.
        let _ = tasks.sample();
        Self {
            host,
            cpus,
            idle,
            states,
            residency,
            free,
            tasks,
            isolated,
            online,
            hostname: facts.identity.hostname.value().cloned(),
            kernel: facts.kernel.release.value().cloned(),
            unknown,
        }
    }

    /// Fills in what was read since the frame before.
    pub(super) fn fill(&mut self, frame: &mut WatchFrame) {
        let span_ns = frame.span_ns.max(SPAN_MIN_NS);
        if let Some(online) = self.host.online().value() {
            self.online = online.clone();
        }
        let host = self.host.sample(0);
        let events = self.cpus.sample(&self.online);
        let mut idle: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
        for time in self.idle.sample() {
            idle.entry(time.cpu).or_default().insert(time.state, time.residency_us);
        }
        let hardware = self.residency.as_mut().map(|sampler| sampler.sample(&self.free));
        let warm = self.residency.as_ref().map(|sampler| sampler.temperatures(&self.free));
        let warm = warm.unwrap_or_default();
        frame.host.clone_from(&self.hostname);
        frame.kernel.clone_from(&self.kernel);
        frame.temp_max_mc = host.temp_max_mc;
        frame.context_switches_per_s = host.context_switches.map(|n| per_s(n, span_ns));
        for event in events {
            let of_host = host.cpus.iter().find(|row| row.cpu == event.cpu);
            let by_hardware = hardware.as_ref().and_then(|by_cpu| by_cpu.get(&event.cpu));
            let (idle, idle_by) = match (by_hardware, self.states.get(&event.cpu)) {
                (Some(shares), _) => {
                    let state =
                        |&(name, permille): &(&str, u32)| IdleShare { name: name.into(), permille };
                    (shares.iter().map(state).collect(), Some(IdleCounter::Hardware))
                }
                (None, Some(states)) => {
                    (shares(states, idle.get(&event.cpu), span_ns), Some(IdleCounter::Kernel))
                }
                (None, None) => (Vec::new(), None),
            };
            frame.cpus.push(WatchCpu {
                cpu: event.cpu,
                isolated: self.isolated.contains(event.cpu),
                busy_permille: of_host.map(|row| permille(row.busy_ms * 1_000_000, span_ns)),
                steal_permille: of_host.map(|row| permille(row.steal_ms * 1_000_000, span_ns)),
                idle,
                idle_by,
                freq_hz: of_host.and_then(|row| row.freq_hz),
                temp_mc: warm.get(&event.cpu).copied(),
                throttled: event.throttled,
                interrupts: event.interrupts.map(|counted| rate(counted, span_ns)),
                softirqs: event.softirqs.map(|counted| rate(counted, span_ns)),
                switches_per_s: event.switches.map(|n| per_s(n, span_ns)),
            });
        }
        if frame.span_ns < SPAN_MIN_NS {
            forget_rates(frame);
        }
        frame.unknown.extend(self.unknown.iter().cloned());
        if frame.temp_max_mc.is_none() {
            frame.unknown.push(
                "Temperature: no thermal zone can be read without disturbing (/sys/class/thermal)."
                    .into(),
            );
        }
        let tasks = self.tasks.sample();
        if let Some(why) = tasks.why_unknown() {
            frame.unknown.push(format!("Real-time tasks: {why}."));
        }
        frame.tasks = tasks.into_value().map(|tasks| of_tasks(&tasks, span_ns));
        if frame.span_ns < SPAN_MIN_NS {
            frame.tasks.iter_mut().flatten().for_each(|task| task.share_permille = None);
        }
    }
}

/// What was counted over too short a time.
fn forget_rates(frame: &mut WatchFrame) {
    frame.context_switches_per_s = None;
    for cpu in &mut frame.cpus {
        let WatchCpu { cpu: number, isolated, freq_hz, .. } = *cpu;
        *cpu = WatchCpu { cpu: number, isolated, freq_hz, ..WatchCpu::default() };
    }
    frame.unknown.push("Rates and shares: known from the second frame on.".into());
}

fn of_tasks(tasks: &[RtNow], span_ns: u64) -> Vec<WatchTask> {
    let of = |task: &RtNow| {
        let (count, names) = outranked(task, tasks);
        WatchTask {
            cpu: task.cpu,
            tid: task.tid,
            comm: task.comm.clone(),
            policy: task.policy,
            priority: task.priority,
            kernel_thread: task.kernel_thread,
            share_permille: task.ran_ns.map(|ran_ns| permille(ran_ns, span_ns)),
            cpus: task.allowed.clone(),
            outranked: count,
            outranked_by: names,
        }
    };
    tasks.iter().map(of).collect()
}

/// Shares of the time in each state. The kernel adds up when a state is left, so what is counted
/// in a span may have begun before it: it is cut to the span.
fn shares(
    states: &[(u32, String)],
    times: Option<&BTreeMap<u32, u64>>,
    span_ns: u64,
) -> Vec<IdleShare> {
    let us = |state: u32| times.and_then(|times| times.get(&state)).copied().unwrap_or(0);
    let all_ns = states.iter().map(|(state, _)| us(*state).saturating_mul(1000)).sum::<u64>();
    let whole_ns = span_ns.max(all_ns);
    let share = |(state, name): &(u32, String)| IdleShare {
        name: name.clone(),
        permille: permille(us(*state).saturating_mul(1000), whole_ns),
    };
    states.iter().map(share).collect()
}

fn rate(counted: Counted, span_ns: u64) -> EventRate {
    let Counted { total, top } = counted;
    let top = top.into_iter().map(|(name, n)| (name, per_s(n, span_ns))).collect();
    EventRate { per_s: per_s(total, span_ns), top }
}

fn per_s(n: u64, span_ns: u64) -> u64 {
    let span_ns = u128::from(span_ns);
    let n = (u128::from(n) * 1_000_000_000 + span_ns / 2) / span_ns;
    u64::try_from(n).unwrap_or(u64::MAX)
}

fn permille(part_ns: u64, whole_ns: u64) -> u32 {
    let (part_ns, whole_ns) = (u128::from(part_ns), u128::from(whole_ns));
    let n = (part_ns * 1000 + whole_ns / 2) / whole_ns;
    u32::try_from(n.min(1000)).unwrap_or(1000)
}

#[cfg(test)]
mod tests {
    use rtproof_results::watch::{WatchSource, WatchSourceKind};

    use super::*;

    fn frame(span_ns: u64) -> WatchFrame {
        let source = WatchSource {
            kind: WatchSourceKind::Passive,
            about: String::new(),
            load: None,
            ended: None,
            record: None,
        };
        WatchFrame { span_ns, ..WatchFrame::empty(source) }
    }

    #[test]
    fn rates_and_shares() {
        assert_eq!((per_s(1000, 1_000_000_000), per_s(1, 2_000_000_000)), (1000, 1));
        assert_eq!((permille(1, 2), permille(3, 2), permille(0, 9)), (500, 1000, 0));
        let states = [(0, "POLL".to_owned()), (1, "C6".to_owned())];
        let times = BTreeMap::from([(1, 3_000_000)]);
        let slept = shares(&states, Some(&times), 1_000_000_000);
        assert_eq!(slept[1], IdleShare { name: "C6".into(), permille: 1000 }, "cut to the span");
        assert_eq!(shares(&states, None, 1_000_000_000)[0].permille, 0);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "tests make the machines that they read")]
    fn a_captured_machine_that_continues() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            std::fs::write(path, text).expect("a file");
        };
        let stat = |busy: u64, ctxt: u64| {
            format!(
                "cpu  0 0 0 0 0 0 0 0 0 0\ncpu1 {busy} 0 0 0 0 0 0 7 0 0\nintr 5\nctxt {ctxt}\n"
            )
        };
        let idle = "sys/devices/system/cpu/cpu1/cpuidle/state1";
        write("proc/stat", &stat(10, 100));
        write("proc/1/stat", "");
        write("sys/devices/system/cpu/online", "1\n");
        write(&format!("{idle}/name"), "C6\n");
        write(&format!("{idle}/usage"), "1\n");
        write(&format!("{idle}/time"), "0\n");
        let root = Root::dir(folder.path()).expect("a machine");
        let mut machine =
            MachineSampler::new(&root, &Facts::read(&root), &CpuList::default(), true);
        write("proc/stat", &stat(60, 1100));
        write(&format!("{idle}/usage"), "5\n");
        write(&format!("{idle}/time"), "250000\n");
        let mut frame = frame(1_000_000_000);
        machine.fill(&mut frame);
        let [cpu] = &frame.cpus[..] else { panic!("{:?}", frame.cpus) };
        assert_eq!((cpu.cpu, cpu.busy_permille, cpu.steal_permille), (1, Some(500), Some(0)));
        assert_eq!((cpu.idle[0].permille, cpu.idle_by), (250, Some(IdleCounter::Kernel)));
        assert_eq!((cpu.freq_hz, cpu.interrupts.as_ref(), cpu.switches_per_s), (None, None, None));
        assert_eq!(frame.context_switches_per_s, Some(1000));
        assert_eq!(frame.tasks, Some(Vec::new()));
        for what in ["Frequency", "Interrupts", "Throttling", "Temperature", "Hardware residency"] {
            assert!(frame.unknown.iter().any(|why| why.contains(what)), "{what}: {frame:?}");
        }
    }
}
