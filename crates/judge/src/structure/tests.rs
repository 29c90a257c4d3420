//! Runs with their truth planted, and runs without any.

use rtproof_record::run::{HostCpuSecond, HostSecond, Phase};

use super::{SECOND_NS, *};
use crate::testing::is_full;

const MS: u64 = 1_000_000;

/// Numbers that look random: the judge has no clock and no dice.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

fn random(seed: u64) -> Random {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    for _ in 0..8 {
        random.below(2);
    }
    random
}

fn spike<'a>(cpu: u32, at_ns: u64, culprit: &'a str) -> SpikeAt<'a> {
    // Due on the grid of a period of 1 ms.
    let due = at_ns.div_ceil(MS) * MS;
    SpikeAt { cpu, at_ns: due, latency_ns: 90_000, cause: "preempted", culprit }
}

fn phase(name: &str, from_s: u64, to_s: u64) -> Phase {
    Phase {
        name: name.into(),
        loads: vec![name.into()],
        from_ns: from_s * SECOND_NS,
        to_ns: to_s * SECOND_NS,
    }
}

fn input<'a>(spikes: &'a [SpikeAt<'a>]) -> StructureInput<'a> {
    StructureInput {
        spikes,
        host: &[],
        phases: &[],
        period_ns: MS,
        duration_ns: 60 * SECOND_NS,
        cpus: 1,
        levels: &[],
    }
}

fn ask(
    spikes: &[SpikeAt<'_>],
    host: &[HostSecond],
    phases: &[Phase],
    cpus: usize,
) -> Vec<Structure> {
    structure(&StructureInput { host, phases, cpus, ..input(spikes) })
}

fn texts(found: &[Structure]) -> Vec<&str> {
    found.iter().map(|one| one.text.as_str()).collect()
}

#[test]
fn a_culprit_that_comes_every_second() {
    let mut random = random(1);
    let mut spikes: Vec<_> = (0..37)
        .map(|i| spike(0, (1 + i) * SECOND_NS + random.below(2 * MS), "multipathd [RR 99]"))
        .collect();
    for _ in 0..4 {
        spikes.push(spike(0, random.below(60 * SECOND_NS), "multipathd [RR 99]"));
    }
    for _ in 0..9 {
        spikes.push(spike(0, random.below(60 * SECOND_NS), "kworker/0:1"));
    }
    let found = ask(&spikes, &[], &[], 1);
    let moments: Vec<u64> = found[0].moments.iter().map(|moment| moment.at_ns).collect();
    assert!(moments.len() as u64 == found[0].count && moments.is_sorted(), "{moments:?}");
    assert!(moments.iter().all(|at| at % SECOND_NS < 3 * MS), "{moments:?}");
    assert_eq!(
        texts(&found),
        ["37 of 41 spikes by multipathd [RR 99] follow a period of 1.000 s (37 of 37 cycles, \
          phase width 2 ms, p < 1e-9): the period of vmstat's and many daemons' once-a-second \
          work, and sched_rt_period_us"]
    );
    assert_eq!((found[0].kind.as_str(), found[0].count, found[0].of), ("period", 37, 41));
    assert!(found[0].period_ns.is_some_and(|ns| ns.abs_diff(SECOND_NS) < 200_000));
    spikes.reverse();
    assert_eq!(ask(&spikes, &[], &[], 1), found, "in any order");
}

#[test]
fn a_hog_that_never_lets_a_group_end() {
    // Busy 0.7 ms of every 5 ms: each fifth wake-up is late, no group ends.
    let spikes: Vec<_> = (0..12_000).map(|i| spike(1, i * 5 * MS, "badhog [RR 99]")).collect();
    let found = ask(&spikes, &[], &[], 1);
    assert!(found[0].text.starts_with(
        "12\u{202f}000 of 12\u{202f}000 spikes by badhog [RR 99] follow a period of 5.000 ms"
    ));
}

#[test]
fn stops_of_all_cpus_and_of_two() {
    let mut random = random(2);
    let mut spikes = Vec::new();
    for cpu in 0..4 {
        for _ in 0..12 {
            spikes.push(spike(cpu, random.below(60 * SECOND_NS), "a"));
        }
    }
    for _ in 0..14 {
        let at = random.below(60 * SECOND_NS);
        spikes.extend((0..4).map(|cpu| spike(cpu, at, "smi")));
    }
    for _ in 0..10 {
        let at = random.below(60 * SECOND_NS);
        spikes.extend((2..4).map(|cpu| spike(cpu, at, "b")));
    }
    let found = ask(&spikes, &[], &[], 4);
    let cpus: Vec<&Structure> = found.iter().filter(|one| one.kind == "cpus").collect();
    assert_eq!(cpus.len(), 2, "{found:?}");
    assert!(
        cpus[0].text.contains("14 of 26 spikes of CPU")
            || cpus[1].text.contains("on all 4 measured CPUs")
    );
    assert!(found.iter().any(|one| one.text.contains("of CPU 2 came at once with one of CPU 3")));
    let two: Vec<_> = spikes.iter().filter(|spike| spike.cpu < 2).copied().collect();
    let found = ask(&two, &[], &[], 2);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].kind.as_str(), found[0].count), ("cpus", 14), "{found:?}");
}

#[test]
fn more_under_load_and_at_its_edges() {
    let mut random = random(3);
    let phases = [phase("idle", 0, 20), phase("net", 20, 40), phase("disk", 40, 60)];
    let spikes: Vec<_> = (0..40)
        .map(|i| {
            let at = if i % 4 == 0 {
                random.below(60 * SECOND_NS)
            } else {
                20 * SECOND_NS + random.below(20 * SECOND_NS)
            };
            spike(0, at, "a")
        })
        .collect();
    let found = ask(&spikes, &[], &phases, 1);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].text.contains("came in the phase net, 20 s of 1 min"), "{found:?}");
    // Six phases, and a burst of work at each start.
    let phases: Vec<Phase> = (0..6).map(|i| phase("p", 10 * i, 10 * i + 10)).collect();
    let spikes: Vec<_> = (1..6)
        .flat_map(|i| [100, 400, 700].map(|ms| i * 10 * SECOND_NS + ms * MS + i))
        .map(|at| spike(0, at + random.below(250 * MS), "fork"))
        .collect();
    let found = ask(&spikes, &[], &phases, 1);
    assert!(
        texts(&found).iter().any(|text| text.contains("within a second of a load's start or end")),
        "{found:?}"
    );
}

/// Rows with a change of frequency before each of these seconds.
fn host(changes: &[u64], stolen: &[u64]) -> Vec<HostSecond> {
    let mut high = false;
    (1..=60)
        .map(|second| {
            high ^= changes.contains(&second);
            let cpu = HostCpuSecond {
                cpu: 0,
                busy_ms: 10,
                steal_ms: 30 * u64::from(stolen.contains(&second)),
                freq_hz: Some(if high { 3_000_000_000 } else { 1_200_000_000 }),
            };
            HostSecond { at_ns: second * SECOND_NS, cpus: vec![cpu], ..HostSecond::default() }
        })
        .collect()
}

#[test]
fn spikes_with_changes_of_frequency_and_with_steal() {
    let mut random = random(4);
    let seconds = [3, 11, 17, 26, 30, 41, 48, 57];
    let spikes: Vec<_> = seconds
        .iter()
        .flat_map(|&second| [100, 500].map(|ms| (second - 1) * SECOND_NS + ms * MS))
        .map(|at| spike(0, at + random.below(300 * MS), "a"))
        .collect();
    let found = ask(&spikes, &host(&seconds, &[]), &[], 1);
    assert!(
        texts(&found)[0]
            .contains("16 of 16 spikes of CPU 0 came within a second of a change of its frequency"),
        "{found:?}"
    );
    let found = ask(&spikes, &host(&[], &seconds), &[], 1);
    assert!(texts(&found)[0].contains("(steal)"), "{found:?}");
}

#[test]
fn noise_has_no_structure() {
    let mut alarms = Vec::new();
    for seed in 0..if is_full() { 40 } else { 8 } {
        let mut random = random(100 + seed);
        let n = [8, 25, 60, 150][seed as usize % 4];
        let mut spikes = Vec::new();
        for cpu in 0..2 {
            for _ in 0..n {
                let at = random.below(60 * SECOND_NS);
                let who = ["a", "b", "c"][random.below(3) as usize];
                // One in four is a stall that makes several wake-ups late.
                let late = if random.below(4) == 0 { 1 + random.below(12) } else { 1 };
                spikes.extend((0..late).map(|i| spike(cpu, at + i * MS, who)));
            }
        }
        let changes: Vec<u64> = (0..12).map(|_| 1 + random.below(60)).collect();
        let stolen: Vec<u64> = (0..20).map(|_| 1 + random.below(60)).collect();
        let phases = [phase("idle", 0, 15), phase("cpu", 15, 35), phase("net", 35, 60)];
        let found = ask(&spikes, &host(&changes, &stolen), &phases, 2);
        alarms.extend(found.into_iter().map(|one| format!("{seed}: {}", one.text)));
    }
    assert!(alarms.len() <= 1, "{alarms:#?}");
}

#[test]
fn random_late_wake_ups_have_no_structure() {
    for (seed, one_in) in [(1, 3), (2, 5), (3, 8), (4, 20)] {
        let mut random = random(seed);
        let late = (0..60_000).filter(|_| random.below(one_in) == 0);
        let spikes: Vec<_> = late.map(|i| spike(0, i * MS, "a")).collect();
        assert_eq!(ask(&spikes, &[], &[], 1), [], "seed {seed}");
    }
}

#[test]
fn too_little_is_silence() {
    assert_eq!(ask(&[], &[], &[], 1), []);
    let four: Vec<_> = (1..5).map(|i| spike(0, i * SECOND_NS, "a")).collect();
    assert_eq!(
        ask(&four, &host(&[1, 2, 3, 4], &[]), &[phase("a", 0, 5), phase("b", 5, 60)], 1),
        []
    );
    let input = StructureInput {
        spikes: &four,
        host: &[],
        phases: &[],
        period_ns: 0,
        duration_ns: 0,
        cpus: 0,
        levels: &[],
    };
    assert_eq!(structure(&input), []);
    // Nonsense of a record that was altered is no panic.
    let far = [0, 5, u64::MAX / 2, u64::MAX - 1].repeat(5);
    let far: Vec<_> =
        far.into_iter().map(|at_ns| SpikeAt { at_ns, latency_ns: u64::MAX, ..four[0] }).collect();
    let phases = [phase("a", 3, 1), Phase { to_ns: u64::MAX, ..phase("b", 0, 0) }];
    let input = StructureInput {
        spikes: &far,
        phases: &phases,
        period_ns: u64::MAX,
        duration_ns: u64::MAX,
        ..input
    };
    let _ = structure(&input);
    let _ = structure(&StructureInput { period_ns: 1, ..input });
}

#[test]
fn two_periods_are_not_their_common_divisor() {
    let every = |s: u64| (1..600 / s).map(move |i| spike(0, i * s * SECOND_NS, "a"));
    let spikes: Vec<_> = every(7).chain(every(11)).collect();
    let found = structure(&StructureInput { duration_ns: 600 * SECOND_NS, ..input(&spikes) });
    let periods: Vec<_> = found.iter().map(|one| (one.period_ns, one.count)).collect();
    assert_eq!(periods, [(Some(7 * SECOND_NS), 84), (Some(11 * SECOND_NS), 53)], "{found:?}");
}

#[test]
fn a_loop_that_counts_from_its_last_run_has_no_phase() {
    let mut random = random(9);
    let mut at = 0;
    let spikes: Vec<_> = (0..600)
        .map(|_| {
            at += 700 * MS + random.below(300 * MS);
            spike(0, at, "a")
        })
        .collect();
    let found = structure(&StructureInput { duration_ns: 600 * SECOND_NS, ..input(&spikes) });
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].text.starts_with("599 of 599 intervals between spikes by a are 70"),
        "{found:?}"
    );
    assert!(found[0].text.contains("no clear phase"), "{found:?}");
}

#[test]
fn what_a_tick_starts_has_no_period() {
    let mut alarms = Vec::new();
    for seed in 0..if is_full() { 45 } else { 15 } {
        let mut random = random(500 + seed);
        let tick = [10, 4, 1][seed as usize % 3] * MS;
        let mut spikes = Vec::new();
        match seed % 5 {
            // Bursts.
            0 => {
                for _ in 0..20 {
                    let at = random.below(300 * SECOND_NS);
                    spikes.extend(
                        (0..6).map(|_| spike(0, (at + random.below(SECOND_NS)) / tick * tick, "a")),
                    );
                }
            }
            // Jobs of ten, of which each second tick or so is late.
            1 => {
                for _ in 0..15 {
                    let at = random.below(300 * SECOND_NS) / tick * tick;
                    spikes.extend(
                        (0..10).map(|i| spike(0, at + (2 * i + random.below(2)) * tick, "a")),
                    );
                }
            }
            of => {
                let n = [0, 0, 40, 200, 1500][of as usize];
                spikes.extend(
                    (0..n).map(|_| spike(0, random.below(300 * SECOND_NS) / tick * tick, "a")),
                );
            }
        }
        let found = structure(&StructureInput { duration_ns: 300 * SECOND_NS, ..input(&spikes) });
        let periods = found.into_iter().filter(|one| one.kind == "period");
        alarms.extend(periods.map(|one| format!("{seed}: {}", one.text)));
    }
    assert!(alarms.is_empty(), "{alarms:#?}");
}
