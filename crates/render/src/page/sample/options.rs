//! What was asked of a run for tests, its loads and the host meanwhile.

use rtproof_host::{CpuList, facts::tasks::Policy};
use rtproof_record::{
    BudgetClass, Options, Requirement, Start,
    run::{HostCpuSecond, HostSecond, Meta, Phase, RecordedLoad, RunEnd},
};

use super::shape::{SECOND, Shape, idle_ns};

pub(super) fn meta(shape: &Shape) -> Meta {
    Meta {
        run_id: "3f0c9a51d2b84e6f90a1c7e25b6d8f04".into(),
        tool_version: "0.1.0".into(),
        command: [
            "rtproof",
            "prove",
            "--budget",
            "100us",
            "--load",
            &format!("cmd:{}", shape.name),
        ]
        .map(Into::into)
        .into(),
        started_realtime_ns: 1_795_242_819_000_000_000,
        started_monotonic_ns: 81_230_000_000,
        ended: Some(RunEnd::Complete),
    }
}

pub(super) fn options(shape: &Shape) -> Options {
    let end_ns = shape.seconds * SECOND;
    let phase = |name: &str, loads: &[&str], from_ns: u64, to_ns: u64| Phase {
        name: name.into(),
        loads: loads.iter().map(|&load| load.into()).collect(),
        from_ns,
        to_ns,
    };
    let third = idle_ns(shape);
    Options {
        profile: String::new(),
        skipped: std::collections::BTreeMap::new(),
        spike_ns: shape.budget_ns,
        trace: true,
        cpus: CpuList::new(2..2 + shape.cpus),
        housekeeping: CpuList::new([0]),
        load_cpus: CpuList::new(0..2 + shape.cpus),
        policy: Policy::Fifo,
        priority: 98,
        period_ns: SECOND / shape.per_second.max(1),
        duration_ns: end_ns,
        start: Start::Staggered,
        clock: rtproof_record::Clock::Monotonic,
        dma_latency_us: None,
        phases: vec![
            phase("idle", &[], 0, third),
            phase("cpu+memory", &["cpu", "memory"], third, third * 2),
            phase("net+disk+fork", &["net", "disk", "fork"], third * 2, end_ns.max(third * 2)),
        ],
        requirement: Requirement {
            budget_ns: shape.budget_ns,
            class: BudgetClass::Hundred,
            confidence_ppm: 950_000,
            rate_per_1000h: 200_000,
            episode_ns: None,
        },
    }
}

pub(super) fn host(shape: &Shape, second: u64) -> HostSecond {
    let loaded = second * SECOND > idle_ns(shape);
    let wave = (second as f64 / 5.0).sin();
    let at = HostSecond { at_ns: second * SECOND, ..HostSecond::default() };
    HostSecond {
        interrupts: Some(if loaded { 48_000 } else { 3_100 } + (wave * 900.0) as u64),
        context_switches: Some(if loaded { 92_000 } else { 4_200 } + second * 37 % 1_100),
        temp_max_mc: Some(41_000 + if loaded { 21_000 } else { 0 } + (wave * 800.0) as i64),
        cpus: (0..shape.cpus + 2)
            .map(|cpu| HostCpuSecond {
                cpu,
                busy_ms: if loaded { 990 } else { 21 },
                steal_ms: u64::from(second.is_multiple_of(17)) * 6,
                freq_hz: Some(
                    if loaded { 3_400_000_000 } else { 3_600_000_000 }
                        + u64::from(cpu) * 10_000_000,
                ),
            })
            .collect(),
        ..at
    }
}

pub(super) fn loads(shape: &Shape) -> Vec<RecordedLoad> {
    let load = |name: &str, detail: &str, unit: &str, work| RecordedLoad {
        name: name.into(),
        detail: detail.into(),
        unit: unit.into(),
        work,
        from_ns: idle_ns(shape),
        to_ns: shape.seconds * SECOND,
        error: None,
    };
    let mut fork = load("fork", "fork, exit, wait; 1 process at a time", "operations", 812_000);
    fork.error = Some(format!("{}: stopped for 2 s: Cannot allocate memory", shape.name));
    vec![
        load("cpu", "2 threads of integer and vector work at nice 0", "operations", 91_800_000_000),
        load("memory", "copies of 64 MiB, 4 times the last-level cache", "bytes", 402_000_000_000),
        fork,
    ]
}
