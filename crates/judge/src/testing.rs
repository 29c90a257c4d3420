//! Runs made for tests: what a run of some seconds with some late wake-ups looks like.

use std::{collections::BTreeMap, sync::LazyLock};

use rtproof_host::{CpuList, facts::tasks::Policy};
use rtproof_record::{
    BudgetClass, Options, Requirement, Run, Start,
    run::{
        Cost, EndReason, Meta, Phase, RecordedLoad, RunEnd, Second, Thread, ThreadEnd, ThreadInfo,
    },
};
use rtproof_stats::{Histogram, Layout, Moments, TopSamples, Totals};

const SECOND_NS: u64 = 1_000_000_000;

const MS: u64 = 1_000_000;

/// A run at 1 ms under load `cpu`, all of it at 5 µs but for `late`: (CPU, millisecond, latency).
/// The budget is 100 µs.
pub fn run(class: BudgetClass, cpus: u32, seconds: u64, late: &[(u32, u64, u64)]) -> Run {
    // The first one named of a moment.
    let at: BTreeMap<(u32, u64), u64> =
        late.iter().rev().map(|&(cpu, ms, ns)| ((cpu, ms), ns)).collect();
    run_of(class, cpus, seconds, |cpu, ms| at.get(&(cpu, ms)).copied().unwrap_or(5000 + ms % 7))
}

/// A run of two CPUs, of which CPU 1 takes 9 µs in place of 5 µs from a second on.
pub fn slower_from(seconds: u64, from_s: u64) -> Run {
    let latency = |cpu: u32, ms: u64| match cpu {
        1 if ms >= from_s * 1000 => 9000 + ms % 50,
        _ => 5000 + ms % 50,
    };
    run_of(BudgetClass::Hundred, 2, seconds, latency)
}

/// Whether tests run all of their rounds: `FULL=1`.
#[expect(clippy::disallowed_methods, reason = "how long a test takes is no part of a judgement")]
pub fn is_full() -> bool {
    std::env::var_os("FULL").is_some_and(|value| value == "1")
}

/// A run at 1 ms under load `cpu` with a budget of 100 µs, whose latencies a function of CPU and
/// millisecond gives; it is asked for one CPU after the other, in order of time.
pub fn run_of(
    class: BudgetClass,
    cpus: u32,
    seconds: u64,
    mut latency_ns: impl FnMut(u32, u64) -> u64,
) -> Run {
    let facts = crate::checks::testing::good();
    let options = options(class, cpus, seconds);
    let threads: Vec<Thread> =
        (0..cpus).map(|cpu| thread(cpu, seconds, &mut |ms| latency_ns(cpu, ms))).collect();
    Run {
        meta: Meta {
            run_id: "0123456789abcdef0123456789abcdef".into(),
            tool_version: "0.1.0".into(),
            command: vec!["rtproof".into(), "prove".into()],
            started_realtime_ns: 1_795_000_000 * SECOND_NS,
            started_monotonic_ns: 1000 * SECOND_NS,
            ended: Some(RunEnd::Complete),
        },
        threads,
        options,
        facts_end: Some(facts.clone()),
        facts_start: facts,
        cost: Cost {
            clock_read_ps: 25_000,
            clock_step_ns: 10,
            clock_getres_ns: 1,
            record_ps: 5000,
            floor_ns: 4000,
        },
        host: Vec::new(),
        loads: vec![RecordedLoad {
            name: "cpu".into(),
            detail: "2 spinning threads".into(),
            unit: "operations".into(),
            work: 1_000_000,
            from_ns: 0,
            to_ns: seconds * SECOND_NS,
            error: None,
        }],
        notes: Vec::new(),
        spikes: None,
        effects: None,
        surroundings: rtproof_record::Surroundings::default(),
        imported: None,
    }
}

/// A run at 1 ms under load `cpu` with a budget of 100 µs, from the number of late wake-ups of each
/// second of each CPU, of 1000: rows alone, as fast as they are few.
pub fn of_rows(class: BudgetClass, cpus: &[Vec<u64>]) -> Run {
    static OF_THOUSAND: LazyLock<Vec<Moments>> = LazyLock::new(|| {
        let of = |late: u64| {
            let mut wake = Moments::default();
            for i in 0..1000 {
                wake.push(if i < late { LATE_NS } else { ON_TIME_NS });
            }
            wake
        };
        (0..=1000).map(of).collect()
    });
    let seconds = cpus.iter().map(Vec::len).max().unwrap_or(0) as u64;
    let mut run = run_of(class, cpus.len() as u32, 0, |_, _| 0);
    run.options = options(class, cpus.len() as u32, seconds);
    for (thread, rows) in run.threads.iter_mut().zip(cpus) {
        thread.seconds = (0..)
            .zip(rows)
            .map(|(s, &late)| Second {
                from_ns: s * SECOND_NS,
                to_ns: (s + 1) * SECOND_NS,
                max_at_ns: s * SECOND_NS,
                wake: [(ON_TIME_NS, 1000 - late), (LATE_NS, late)]
                    .into_iter()
                    .filter(|&(_, n)| n > 0)
                    .map(|(ns, n)| (Layout::COARSE.index(ns) as u16, n))
                    .collect(),
                missed: Vec::new(),
                intervals: Moments::default(),
                totals: Totals {
                    wake: OF_THOUSAND[late as usize].clone(),
                    late_sampled: late,
                    late_clusters: u64::from(late > 0),
                    ..Totals::default()
                },
            })
            .collect();
        for row in &thread.seconds {
            thread.totals.merge(&row.totals);
        }
        for (ns, n) in
            [(ON_TIME_NS, 1000 * seconds - thread.totals.late()), (LATE_NS, thread.totals.late())]
        {
            // A bucket of the grid.
            let _ = thread.wake.add_bucket(Layout::FINE.index(ns), n);
        }
        if let Some(end) = &mut thread.end {
            end.scheduled = thread.totals.accounted();
        }
    }
    run.loads[0].to_ns = seconds * SECOND_NS;
    run
}

const ON_TIME_NS: u64 = 5000;

const LATE_NS: u64 = 200_000;

fn options(class: BudgetClass, cpus: u32, seconds: u64) -> Options {
    let all = CpuList::new(0..cpus);
    Options {
        profile: String::new(),
        skipped: BTreeMap::new(),
        spike_ns: None,
        trace: true,
        cpus: all.clone(),
        housekeeping: CpuList::new([cpus]),
        load_cpus: all,
        policy: Policy::Fifo,
        priority: 80,
        period_ns: MS,
        duration_ns: seconds * SECOND_NS,
        start: Start::Staggered,
        clock: rtproof_record::Clock::Monotonic,
        dma_latency_us: None,
        phases: vec![Phase {
            name: "cpu".into(),
            loads: vec!["cpu".into()],
            from_ns: 0,
            to_ns: seconds * SECOND_NS,
        }],
        requirement: Requirement {
            budget_ns: Some(100_000),
            class,
            confidence_ppm: 950_000,
            rate_per_1000h: 125,
            episode_ns: None,
        },
    }
}

fn thread(cpu: u32, seconds: u64, latency_at: &mut dyn FnMut(u64) -> u64) -> Thread {
    let (mut totals, mut wake) = (Totals::default(), Histogram::new(Layout::FINE));
    let mut top = TopSamples::new(64);
    let mut rows = Vec::new();
    let mut last_late_ms = None;
    for s in 0..seconds {
        let (mut second, mut coarse) = (Totals::default(), Histogram::new(Layout::COARSE));
        let mut max_at_ns = s * SECOND_NS;
        for ms in s * 1000..(s + 1) * 1000 {
            let latency_ns = latency_at(ms);
            if second.wake.push(latency_ns) {
                max_at_ns = ms * MS;
            }
            wake.record(latency_ns);
            coarse.record(latency_ns);
            top.push(rtproof_stats::Sample { due_ns: ms * MS, latency_ns });
            if latency_ns > 100_000 {
                second.late_sampled += 1;
                second.late_clusters += u64::from(last_late_ms.is_none_or(|last| ms > last + 10));
                last_late_ms = Some(ms);
            }
        }
        rows.push(Second {
            from_ns: s * SECOND_NS,
            to_ns: (s + 1) * SECOND_NS,
            max_at_ns,
            wake: coarse.buckets().map(|(b, n)| (b as u16, n)).collect(),
            missed: Vec::new(),
            intervals: Moments::default(),
            totals: second.clone(),
        });
        totals.merge(&second);
    }
    Thread {
        info: ThreadInfo {
            number: cpu,
            cpu,
            tid: 1000 + cpu,
            workload: "timer-wakeup".into(),
            policy: Policy::Fifo,
            priority: 80,
            locked: true,
            period_ns: MS,
            first_due_ns: 0,
        },
        end: Some(ThreadEnd {
            reason: EndReason::Complete,
            scheduled: totals.accounted(),
            faults_minor: 0,
            faults_major: 0,
            cpu_time_ns: seconds * MS,
            preemptions: 0,
        }),
        totals,
        wake,
        missed: Histogram::new(Layout::FINE),
        top: top.sorted(),
        seconds: rows,
    }
}
