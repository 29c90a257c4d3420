//! The record of a long run, made up but for the machine's own facts: seconds are drawn from a few
//! hundred that went through a measuring thread's slot, and written by the writer of real runs.

use std::path::Path;

use rtproof_host::{CpuList, Facts, Root, facts::tasks::Policy};
use rtproof_measure::Slot;
use rtproof_model::{CauseCpu, CauseRow};
use rtproof_record::{
    BudgetClass, ClockOrigin, Options, Requirement, RunHead, RunTail, Snapshot, SpikeTick, Start,
    ThreadTick, Tick, Writer,
    run::{
        Cost, EndReason, HostCpuSecond, HostSecond, Meta, Phase, RunEnd, Sample, Second, ThreadEnd,
        ThreadInfo,
    },
    spikes::{CauseEntry, MainCause, Spike, SpikeSummary},
};

const SECOND_NS: u64 = 1_000_000_000;
const PERIOD_NS: u64 = 1_000_000;
const BUDGET_NS: u64 = 250_000;
const SPIKE_NS: u64 = 40_000;
/// Seconds to draw from, of quiet ones and of ones with a spike.
const DRAWS: u64 = 128;
/// Seconds that are written at once: a commit for each would take an hour.
const BATCH: u64 = 60;
/// Spikes in a record, about.
const SPIKES: u64 = 5000;
/// Largest samples a second hands over; the few largest of the run are among them.
const TOP: usize = 4;
const CULPRITS: [&str; 4] = ["kworker/u8:3", "irq/41-eth0", "ksoftirqd/1", "rcu_preempt"];

/// Numbers from a seed.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 16) % n
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A few microseconds, log-normal.
    fn latency_ns(&mut self) -> u64 {
        let (u, v) = (self.unit().max(1e-12), self.unit());
        let normal = (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos();
        // Without the far tail: that is what spikes are for.
        (5000.0 * (0.35 * normal.clamp(-4.0, 4.0)).exp()) as u64
    }
}

#[derive(Debug)]
pub(super) struct Made {
    /// Threads times seconds.
    pub(super) rows: u64,
    pub(super) spikes: u64,
}

/// Writes and seals a record of so many seconds and CPUs, the `number`th such run.
pub(super) fn record(path: &Path, seconds: u64, cpus: u32, number: u64) -> anyhow::Result<Made> {
    let facts = Facts::read(&Root::live());
    let snapshot = || Snapshot { facts: facts.clone(), rows: Vec::new(), condition_id: None };
    let mut writer = Writer::create(path, &head(snapshot(), seconds, cpus, number))?;
    let mut random = Random(0x10_4e70 + number);
    let quiet: Vec<ThreadTick> = (0..DRAWS).map(|_| draw(&mut random, false)).collect();
    let loud: Vec<ThreadTick> = (0..DRAWS).map(|_| draw(&mut random, true)).collect();
    let rows = seconds * u64::from(cpus);
    let (mut spikes, mut sums) = (Vec::new(), vec![0_u64; cpus as usize]);
    for first in (0..seconds).step_by(BATCH as usize) {
        let batch = first..seconds.min(first + BATCH);
        let mut tick = Tick::default();
        if first == 0 {
            tick.origin =
                Some(ClockOrigin { realtime_ns: began_ns(seconds, number), monotonic_ns: 1 });
            tick.started = (0..cpus).map(info).collect();
        }
        for cpu in 0..cpus {
            for at in batch.clone() {
                let is_loud = random.below(rows) < SPIKES;
                let from = if is_loud { &loud } else { &quiet };
                let second = placed(&from[random.below(DRAWS) as usize], cpu, at);
                if is_loud {
                    let totals = &second.second.totals;
                    spikes.push((cpu, second.second.max_at_ns, totals.wake.max().unwrap_or(0)));
                }
                sums[cpu as usize] += second.second.totals.accounted();
                tick.threads.push(second);
            }
        }
        let mut hosts = batch.map(|at| host(&mut random, at, cpus));
        tick.host = hosts.next();
        if first + BATCH >= seconds {
            tick.spikes = listed(&spikes, cpus);
        }
        writer.append(&tick)?;
        for host in hosts {
            writer.append(&Tick { host: Some(host), ..Tick::default() })?;
        }
    }
    let ends = (0..).zip(&sums).map(|(number, &scheduled)| (number, end(scheduled)));
    let (facts, threads) = (Some(snapshot()), ends.collect());
    let tail = RunTail { ended: RunEnd::Complete, facts, threads, options: None };
    writer.finish(&tail)?.seal()?;
    Ok(Made { rows, spikes: spikes.len() as u64 })
}

/// A second of a thread, at time zero.
fn draw(random: &mut Random, is_loud: bool) -> ThreadTick {
    let mut slot = Slot::default();
    let loud_at = if is_loud { random.below(1000) } else { u64::MAX };
    for i in 0..1000 {
        let due_ns = i * PERIOD_NS;
        let late_ns = if i == loud_at { 45_000 + random.below(150_000) } else { 0 };
        slot.record_wake(due_ns, due_ns + random.latency_ns() + late_ns);
    }
    let second = Second {
        from_ns: 0,
        to_ns: SECOND_NS,
        totals: slot.totals.clone(),
        max_at_ns: slot.max_at_ns,
        wake: Vec::new(),
        missed: Vec::new(),
        intervals: rtproof_stats::Moments::default(),
    };
    let top = slot.top.sorted().into_iter().take(TOP).collect();
    ThreadTick::new(0, second, &slot.wake.histogram(), &slot.missed.histogram(), top)
}

/// The same of a thread at its time.
fn placed(draw: &ThreadTick, thread: u32, at: u64) -> ThreadTick {
    let mut tick = draw.clone();
    tick.number = thread;
    let offset_ns = at * SECOND_NS;
    let second = &mut tick.second;
    for ns in [&mut second.from_ns, &mut second.to_ns, &mut second.max_at_ns] {
        *ns += offset_ns;
    }
    tick.top.iter_mut().for_each(|sample: &mut Sample| sample.due_ns += offset_ns);
    tick
}

fn host(random: &mut Random, at: u64, cpus: u32) -> HostSecond {
    let cpu = |cpu, n: u64| HostCpuSecond {
        cpu,
        busy_ms: n % 400,
        steal_ms: 0,
        freq_hz: Some(3_600_000_000),
    };
    let read = HostSecond { at_ns: (at + 1) * SECOND_NS, ..HostSecond::default() };
    HostSecond {
        interrupts: Some(60_000 + random.below(5000)),
        context_switches: Some(120_000 + random.below(9000)),
        temp_max_mc: Some(48_000 + random.below(1500).cast_signed()),
        cpus: (0..cpus).map(|number| cpu(number, random.next() >> 20)).collect(),
        ..read
    }
}

fn listed(spikes: &[(u32, u64, u64)], cpus: u32) -> SpikeTick {
    let sum_ns: u64 = spikes.iter().map(|spike| spike.2).sum();
    let seen = spikes.len() as u64;
    let culprit = |i: usize| CULPRITS[i % CULPRITS.len()];
    let list = spikes.iter().enumerate().map(|(i, &(thread, due_ns, latency_ns))| {
        let (cause, culprit) = ("preempted".into(), culprit(i).into());
        let why = Some(MainCause { cause, culprit, complete: true });
        Spike { thread, due_ns, latency_ns, why }
    });
    let of = |number: usize, cpu: Option<u32>| {
        let own = spikes.iter().skip(number).step_by(CULPRITS.len());
        let own = own.filter(move |spike| cpu.is_none_or(|cpu| cpu == spike.0));
        let own: Vec<u64> = own.map(|spike| spike.2).collect();
        (own.len() as u64, own.iter().copied().max().unwrap_or(0), own.iter().sum::<u64>())
    };
    let cause = |number: usize| {
        let (count, worst_ns, sum_ns) = of(number, None);
        let cpus = (0..cpus).map(|cpu| {
            let (count, worst_ns, sum_ns) = of(number, Some(cpu));
            CauseCpu { cpu, count, worst_ns, sum_ns }
        });
        let row = CauseRow {
            cause: "preempted".into(),
            culprit: culprit(number).into(),
            top: count,
            count,
            worst_ns,
            sum_ns,
            ambiguous_ns: 0,
            cpus: cpus.filter(|cpu| cpu.count > 0).collect(),
            ..CauseRow::default()
        };
        CauseEntry { number: number as u32, row }
    };
    SpikeTick {
        summary: Some(SpikeSummary {
            threshold_ns: SPIKE_NS,
            seen,
            explained: seen,
            sum_ns,
            certain_ns: sum_ns,
            ..SpikeSummary::default()
        }),
        causes: (0..CULPRITS.len().min(spikes.len())).map(cause).collect(),
        list: list.collect(),
        ..SpikeTick::default()
    }
}

fn info(number: u32) -> ThreadInfo {
    ThreadInfo {
        number,
        cpu: number,
        tid: 4000 + number,
        workload: "timer-wakeup".into(),
        policy: Policy::Fifo,
        priority: 80,
        locked: true,
        period_ns: PERIOD_NS,
        first_due_ns: 0,
    }
}

fn end(scheduled: u64) -> ThreadEnd {
    ThreadEnd {
        reason: EndReason::Complete,
        scheduled,
        faults_minor: 0,
        faults_major: 0,
        cpu_time_ns: scheduled * 2000,
        preemptions: 0,
    }
}

/// One run after the other, with an hour between.
fn began_ns(seconds: u64, number: u64) -> u64 {
    (1_790_000_000 + number * (seconds + 3600)) * SECOND_NS
}

fn head(facts: Snapshot, seconds: u64, cpus: u32, number: u64) -> RunHead {
    let phase = |name: &str, loads: &[&str], from: u64, to: u64| Phase {
        name: name.into(),
        loads: loads.iter().map(|&load| load.into()).collect(),
        from_ns: from * SECOND_NS,
        to_ns: to * SECOND_NS,
    };
    // Within minutes, as in life.
    let (idle, half) = (seconds / 10 + 7, seconds / 2 + 7);
    RunHead {
        meta: Meta {
            run_id: format!("00112233445566778899aabbccdd{number:04x}"),
            tool_version: env!("CARGO_PKG_VERSION").into(),
            command: vec!["rtproof".into(), "prove".into()],
            started_realtime_ns: began_ns(seconds, number),
            started_monotonic_ns: 1,
            ended: None,
        },
        options: Options {
            cpus: CpuList::new(0..cpus),
            housekeeping: CpuList::new([]),
            load_cpus: CpuList::new(0..cpus),
            policy: Policy::Fifo,
            priority: 80,
            period_ns: PERIOD_NS,
            duration_ns: seconds * SECOND_NS,
            start: Start::Aligned,
            clock: rtproof_record::Clock::Monotonic,
            dma_latency_us: Some(0),
            phases: vec![
                phase("idle", &[], 0, idle),
                phase("cpu", &["cpu"], idle, half),
                phase("all", &["cpu", "memory"], half, seconds),
            ],
            requirement: Requirement {
                budget_ns: Some(BUDGET_NS),
                class: BudgetClass::Hundred,
                confidence_ppm: 950_000,
                rate_per_1000h: 1000,
                episode_ns: None,
            },
            profile: String::new(),
            skipped: std::collections::BTreeMap::new(),
            spike_ns: Some(SPIKE_NS),
            trace: false,
        },
        facts,
        cost: Cost {
            clock_read_ps: 23_000,
            clock_step_ns: 12,
            clock_getres_ns: 1,
            record_ps: 5_000,
            floor_ns: 2_000,
        },
    }
}
