//! A made-up run with every field in use, and the record that must come of it.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::disallowed_methods,
    reason = "an example and a fuzz target use it too"
)]

use std::path::Path;

use rtproof_host::{CpuList, Facts, Root, facts::tasks::Policy};
use rtproof_model::{
    Basis, CauseCpu, CauseRow, Finding, Impact, RecorderSummary, Remedy, Status, Verdict,
    VerdictAnswer, When, verdict::HeldShare,
};
use rtproof_record::{
    BudgetClass, EffectTick, Effects, Judgement, Options, RecordedSpikes, Requirement, Run,
    RunHead, RunTail, Snapshot, SpikeTick, Start, TOP_MAX, ThreadTick, Tick, Writer,
    effects::{
        Decision, Effect, KnobResult, Slice, SlicePart, SliceStatistic, TrialDesign, TrialMode,
        TrialSummary,
    },
    run::{
        Cost, CpuIdleState, EndReason, HostCpuSecond, HostSecond, IdleReading, IdleTime, Mark,
        MarkKind, Meta, Note, Phase, RecordedLoad, RunEnd, Second, Surroundings, SurroundingsTick,
        Thread, ThreadEnd, ThreadInfo, Totals,
    },
    spikes::{CauseEntry, KeptSpike, MainCause, Spike, SpikeSummary},
};
use rtproof_stats::{Histogram, Layout, Moments, Sample};
use rtproof_trace::{Event, EventData, Window};

pub const RUN_ID: &str = "0123456789abcdef0123456789abcdef";
pub const SECOND_NS: u64 = 1_000_000_000;

/// SplitMix64: the same run every time.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// Latencies as machines have them: a hump at some microseconds and a long thin tail.
    pub fn latency_ns(&mut self) -> u64 {
        let hump = 2_000 + (0..4).map(|_| self.below(1_500)).sum::<u64>();
        let tail = if self.below(400) == 0 { 1 << self.below(24) } else { 0 };
        hump + tail
    }
}

/// Largest first, ties by time: all of them sorted, no heap.
fn largest(mut samples: Vec<Sample>) -> Vec<Sample> {
    samples.sort_by_key(|sample| (std::cmp::Reverse(sample.latency_ns), sample.due_ns));
    samples.truncate(TOP_MAX);
    samples
}

pub fn facts(hostname: &str) -> Facts {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("proc/sys/kernel/hostname", &format!("{hostname}\n"));
    write("proc/sys/kernel/random/boot_id", "1b4e28ba-2fa1-11d2-883f-0016d3cca427\n");
    write("proc/meminfo", "MemTotal:        8048944 kB\nMemAvailable:    5048944 kB\n");
    write("proc/swaps", "rubbish\n");
    Facts::read(&Root::dir(folder.path()).unwrap())
}

pub fn snapshot(hostname: &str) -> Snapshot {
    let row = rtproof_host::flatten::FactRow {
        key: "identity.hostname".into(),
        state: rtproof_host::flatten::RowState::Known,
        value: hostname.into(),
        path: "/proc/sys/kernel/hostname".into(),
        class: rtproof_host::flatten::FactClass::Identity,
    };
    let rows = vec![row];
    Snapshot { facts: facts(hostname), rows, condition_id: Some("feed".into()) }
}

pub fn head() -> RunHead {
    let phase = |name: &str, loads: &[&str], from_ns, to_ns| Phase {
        name: name.into(),
        loads: loads.iter().map(|load| (*load).into()).collect(),
        from_ns,
        to_ns,
    };
    RunHead {
        meta: Meta {
            run_id: RUN_ID.into(),
            tool_version: "0.1.0".into(),
            command: vec!["rtproof".into(), "prove".into(), "--name=\"ä, \n\"".into()],
            started_realtime_ns: 1_790_000_000_123_456_789,
            started_monotonic_ns: 987_654_321,
            ended: None,
        },
        options: Options {
            profile: String::new(),
            skipped: std::collections::BTreeMap::new(),
            spike_ns: Some(50_000),
            trace: true,
            cpus: CpuList::new([1, 2, 3]),
            housekeeping: CpuList::new([0]),
            load_cpus: CpuList::new([0, 1]),
            policy: Policy::Fifo,
            priority: 90,
            period_ns: 1_000_000,
            duration_ns: 60 * SECOND_NS,
            start: Start::Staggered,
            clock: rtproof_record::Clock::Monotonic,
            dma_latency_us: Some(0),
            phases: vec![
                phase("idle", &[], 0, 5 * SECOND_NS),
                phase("all", &["cpu", "cmd:make -j4"], 5 * SECOND_NS, 60 * SECOND_NS),
            ],
            requirement: Requirement {
                budget_ns: Some(100_000),
                class: BudgetClass::Hundred,
                confidence_ppm: 950_000,
                rate_per_1000h: 3,
                episode_ns: Some(2_000_000_000),
            },
        },
        facts: snapshot("robot-7"),
        cost: Cost {
            clock_read_ps: 23_456,
            clock_step_ns: 12,
            clock_getres_ns: 1,
            record_ps: 4_100,
            floor_ns: 2_345,
        },
    }
}

pub fn info(number: u32, period_ns: u64) -> ThreadInfo {
    ThreadInfo {
        number,
        cpu: number + 1,
        tid: 4_000 + number,
        workload: "timer-wakeup".into(),
        policy: if number == 1 { Policy::Other } else { Policy::Fifo },
        priority: 90,
        locked: number != 1,
        period_ns,
        first_due_ns: u64::from(number) * 333_333,
    }
}

pub fn end(thread: &Thread) -> ThreadEnd {
    ThreadEnd {
        reason: if thread.info.number == 2 { EndReason::CpuLost } else { EndReason::Complete },
        scheduled: thread.totals.accounted(),
        faults_minor: 3,
        faults_major: 1,
        cpu_time_ns: 55_555_555,
        preemptions: 7,
    }
}

/// Makes ticks and keeps, by other means than the crate, the threads that must come of them.
pub struct Maker {
    pub random: Random,
    pub threads: Vec<Thread>,
    pub host: Vec<HostSecond>,
    per_second: u64,
}

impl Maker {
    /// `per_second`: samples of each thread in a second.
    pub fn new(seed: u64, threads: u32, per_second: u64) -> Self {
        let thread = |number| Thread {
            info: info(number, SECOND_NS / per_second.max(1)),
            totals: Totals::default(),
            end: None,
            wake: Histogram::new(Layout::FINE),
            missed: Histogram::new(Layout::FINE),
            top: Vec::new(),
            seconds: Vec::new(),
        };
        Self {
            random: Random(seed),
            threads: (0..threads).map(thread).collect(),
            host: Vec::new(),
            per_second,
        }
    }

    /// The tick of second `at`.
    pub fn tick(&mut self, at: u64) -> Tick {
        let started =
            if at == 0 { self.threads.iter().map(|t| t.info.clone()).collect() } else { vec![] };
        let threads = (0..self.threads.len()).map(|i| self.thread_tick(i, at)).collect();
        let host = self.host_second(at);
        self.host.push(host.clone());
        Tick { started, threads, host: Some(host), ..Tick::default() }
    }

    fn thread_tick(&mut self, i: usize, at: u64) -> ThreadTick {
        let (mut wake, mut missed) = (Histogram::new(Layout::FINE), Histogram::new(Layout::FINE));
        let mut top = Vec::new();
        let mut totals = Totals::default();
        let mut max_at_ns = 0;
        let period_ns = SECOND_NS / self.per_second.max(1);
        for sample in 0..self.per_second {
            let due_ns = at * SECOND_NS + sample * period_ns;
            let latency_ns = self.random.latency_ns();
            if totals.wake.max().is_none_or(|max| latency_ns > max) {
                max_at_ns = due_ns;
            }
            totals.wake.push(latency_ns);
            wake.record(latency_ns);
            top.push(Sample { due_ns, latency_ns });
            totals.late_sampled += u64::from(latency_ns > 100_000);
            if latency_ns > period_ns {
                let count = latency_ns / period_ns;
                missed.record_progression(latency_ns - period_ns, period_ns, count);
                totals.missed += count;
                totals.missed_sum_ns +=
                    (1..=count).map(|k| u128::from(latency_ns - k * period_ns)).sum::<u128>();
            }
        }
        let thread = &mut self.threads[i];
        thread.totals.merge(&totals);
        thread.wake.merge(&wake);
        thread.missed.merge(&missed);
        top = largest(top);
        thread.top = largest(thread.top.iter().chain(&top).copied().collect());
        // Of some seconds only: the first of a thread may hold no whole interval.
        let (n, sum) = (at.min(2), u128::from(at.min(2)) * 1_000_000);
        let intervals = Moments::from_parts(n, (900_000, 1_100_000), (sum, sum * 1_000_000), None);
        let second = Second {
            from_ns: at * SECOND_NS,
            to_ns: (at + 1) * SECOND_NS,
            totals,
            max_at_ns,
            wake: Vec::new(),
            missed: Vec::new(),
            intervals,
        };
        let tick = ThreadTick::new(thread.info.number, second, &wake, &missed, top);
        thread.seconds.push(tick.second.clone());
        tick
    }

    fn host_second(&mut self, at: u64) -> HostSecond {
        let known = at.is_multiple_of(2);
        let cpu = |cpu| HostCpuSecond {
            cpu,
            busy_ms: 17 * at,
            steal_ms: u64::from(cpu),
            freq_hz: known.then_some(3_600_000_000),
        };
        let read = HostSecond { at_ns: (at + 1) * SECOND_NS, ..HostSecond::default() };
        HostSecond {
            interrupts: known.then_some(1_000 + at),
            context_switches: known.then_some(2_000 + at),
            temp_max_mc: known.then_some(-1_500),
            cpus: (0..=self.threads.len() as u32).map(cpu).collect(),
            ..read
        }
    }
}

pub fn notes() -> Vec<Note> {
    let note = |at_ns, id: &str, weakens| Note {
        at_ns,
        id: id.into(),
        text: format!("{id}: \"so it is\", and\nthat is the next step"),
        weakens,
    };
    vec![note(0, "no-rt-right", true), note(SECOND_NS, "load-ended", false)]
}

pub fn load(name: &str, work: u64) -> RecordedLoad {
    RecordedLoad {
        name: name.into(),
        detail: "64 MiB, 2 threads".into(),
        unit: "bytes".into(),
        work,
        from_ns: 5,
        to_ns: 5 + work,
        error: (name == "disk").then(|| "no space, it said".into()),
    }
}

pub fn tail(threads: &mut [Thread]) -> RunTail {
    for thread in threads.iter_mut() {
        thread.end = Some(end(thread));
    }
    RunTail {
        ended: RunEnd::Interrupted { signal: "SIGINT".into() },
        facts: Some(snapshot("robot-7-moved")),
        threads: threads.iter().map(|t| (t.info.number, t.end.clone().unwrap())).collect(),
        options: None,
    }
}

fn finding() -> Finding {
    Finding {
        check: "rt-throttling".into(),
        status: Status::Bad,
        summary: "95 % of the time".into(),
        wanted: "off".into(),
        cpus: None,
        evidence: Vec::new(),
        why: "it stops real-time tasks".into(),
        source: "kernel/sched/rt.c".into(),
        remedies: vec![Remedy::Manual { text: "turn it off".into() }],
        when: When::Now,
        impact: Impact::Milliseconds,
        trade_off: None,
        skipped: None,
    }
}

pub fn judgement() -> Judgement {
    Judgement {
        findings: vec![finding()],
        verdict: Verdict {
            answer: VerdictAnswer::Accepted,
            sentence: "no wake-up was late".into(),
            reasons: vec!["A year is not an hour.".into()],
            basis: Basis {
                scheduled: 7,
                held: Some(HeldShare { worst_tenth: 0.1 + 0.2, ..HeldShare::default() }),
                ..Basis::default()
            },
        },
        summary: "accepted: 100 us".into(),
    }
}

/// Writes a run of `seconds`, not finished; the writer and what must be read back.
pub fn begin(path: &Path, seconds: u64) -> (Writer, Run) {
    begin_seen(path, seconds, |_| ())
}

/// The same; `seen` looks after each second that was written.
pub fn begin_seen(path: &Path, seconds: u64, mut seen: impl FnMut(&Tick)) -> (Writer, Run) {
    let head = head();
    let mut writer = Writer::create(path, &head).unwrap();
    let mut maker = Maker::new(7, 3, 1_000);
    for at in 0..seconds {
        let mut tick = maker.tick(at);
        if at == 0 {
            tick.notes = notes();
            tick.loads = vec![load("memory", 10), load("disk", 3)];
        }
        if at == 1 {
            tick.loads = vec![load("memory", 20)];
        }
        tick.spikes = spike_tick(at);
        tick.effects = effect_tick(at);
        tick.surroundings = beside_tick(at);
        writer.append(&tick).unwrap();
        seen(&tick);
    }
    let run = Run {
        meta: head.meta,
        options: head.options,
        facts_start: head.facts.facts,
        facts_end: None,
        cost: head.cost,
        threads: maker.threads,
        host: maker.host,
        loads: vec![load("memory", if seconds > 1 { 20 } else { 10 }), load("disk", 3)],
        notes: notes(),
        spikes: match seconds {
            0 => None,
            1 => Some(spikes_after_one()),
            _ => Some(spikes_after_two()),
        },
        effects: match seconds {
            0 => None,
            1 => Some(effects_after_one()),
            _ => Some(effects_after_two()),
        },
        surroundings: beside_after(seconds),
        imported: None,
    };
    (writer, run)
}

fn kept(number: u32, latency_ns: u64) -> KeptSpike {
    let event = |at_ns, what| Event { at_ns, cpu: 2, pid: 17, flags: 0, preempt: 0, what };
    let window = Window {
        cpu: 2,
        from_ns: 1,
        to_ns: 900,
        events: vec![event(5, EventData::Idle { state: 1 }), event(7, EventData::IdleExit)],
        missing: vec!["nmi:nmi_handler".into()],
        ..Window::default()
    };
    KeptSpike { number, thread: 1, due_ns: 1_000 * u64::from(number), latency_ns, window }
}

fn cause(number: u32, culprit: &str, count: u64) -> CauseEntry {
    let cpu = |cpu| CauseCpu { cpu, count, worst_ns: 500 * count, sum_ns: 700 * count };
    let row = CauseRow {
        cause: "preempted".into(),
        title: "ran instead".into(),
        culprit: culprit.into(),
        top: count,
        count: 2 * count,
        worst_ns: 500 * count,
        sum_ns: 1400 * count,
        ambiguous_ns: 3,
        cpus: vec![cpu(1), cpu(2)],
        ..CauseRow::default()
    };
    CauseEntry { number, row }
}

fn summary(seen: u64, explained: u64) -> SpikeSummary {
    SpikeSummary {
        threshold_ns: 50_000,
        adaptive: true,
        seen,
        explained,
        incomplete: 1,
        unexamined: seen - explained,
        dropped: 1,
        sum_ns: 1_000_000,
        certain_ns: 999_000,
        recorder: RecorderSummary { cost_pairs: 4, ..RecorderSummary::default() },
    }
}

fn spike(thread: u32, due_ns: u64, culprit: Option<&str>) -> Spike {
    let why = culprit.map(|culprit| MainCause {
        cause: "preempted".into(),
        culprit: culprit.into(),
        complete: culprit != "b",
    });
    Spike { thread, due_ns, latency_ns: 60_000 + due_ns, why }
}

fn spikes_after_one() -> RecordedSpikes {
    RecordedSpikes {
        summary: summary(12, 8),
        causes: vec![cause(0, "a [RR 99], \"x\"", 1)],
        list: vec![spike(0, 3, Some("a")), spike(1, 2, None)],
        kept: vec![kept(1, 80_000), kept(2, 70_000)],
    }
}

fn spikes_after_two() -> RecordedSpikes {
    let RecordedSpikes { mut list, kept: mut windows, .. } = spikes_after_one();
    list.push(spike(1, 9, Some("b")));
    windows.remove(0);
    windows.push(kept(3, 90_000));
    let causes = vec![cause(0, "a [RR 99], \"x\"", 2), cause(1, "", 1)];
    RecordedSpikes { summary: summary(20, 14), causes, list, kept: windows }
}

/// What the spikes of `at` are, as the writer receives them.
pub fn spike_tick(at: u64) -> SpikeTick {
    let all = |spikes: RecordedSpikes| {
        let RecordedSpikes { summary, causes, list, kept } = spikes;
        SpikeTick { summary: Some(summary), causes, list, kept, dropped: Vec::new() }
    };
    match at {
        0 => all(spikes_after_one()),
        1 => {
            let mut tick = all(spikes_after_two());
            tick.list.retain(|spike| spike.due_ns == 9);
            tick.kept.retain(|kept| kept.number == 3);
            SpikeTick { dropped: vec![1], ..tick }
        }
        _ => SpikeTick::default(),
    }
}

fn knob(number: u32, decision: Decision) -> KnobResult {
    let effect = |statistic, p| Effect {
        statistic,
        pairs: 12,
        off_ns: 90_000,
        on_ns: 60_000,
        ratio_ppm: 666_667,
        low_ppm: p,
        high_ppm: p.map(|p| p + 1),
        p_ppb: p,
        adjusted_ppb: p.map(|p| 2 * p),
    };
    KnobResult {
        number,
        name: format!("check-{number}"),
        changes: vec!["/proc/sys/vm/stat_interval: 1 \u{2192} 120".into()],
        how: TrialMode::Toggled,
        decision,
        kept: decision == Decision::Helps,
        why: "because, \"so\"".into(),
        effects: vec![
            effect(SliceStatistic::P999, Some(488_281)),
            effect(SliceStatistic::Max, None),
        ],
    }
}

fn effects_after_one() -> Effects {
    let slice = |number, part, on: &[u32]| Slice {
        number,
        part,
        pair: 3,
        on: on.to_vec(),
        from_ns: 500 * u64::from(number),
        to_ns: 500 * u64::from(number) + 400,
        scheduled: 1000,
        p999_ns: (number > 0).then_some(60_000),
        max_ns: (number > 0).then_some(70_000),
        missed: 2,
    };
    Effects {
        trial: TrialSummary {
            seed: 42,
            design: TrialDesign::Mirrored,
            pairs: 12,
            slice_ns: 500_000_000,
            margin_ppm: 50_000,
            level_ppb: 50_000_000,
            detectable_ppm: None,
        },
        knobs: vec![knob(0, Decision::NotTried), knob(1, Decision::NotTried)],
        slices: vec![slice(0, SlicePart::Before, &[]), slice(1, SlicePart::Pair, &[0, 1])],
    }
}

fn effects_after_two() -> Effects {
    let mut effects = effects_after_one();
    effects.trial.detectable_ppm = Some(80_000);
    effects.knobs[1] = knob(1, Decision::Helps);
    let last = Slice { number: 2, on: vec![1], ..effects.slices[1].clone() };
    effects.slices.push(last);
    effects
}

/// What the effects of `at` are, as the writer receives them.
pub fn effect_tick(at: u64) -> EffectTick {
    match at {
        0 => {
            let Effects { trial, knobs, slices } = effects_after_one();
            EffectTick { trial: Some(trial), knobs, slices }
        }
        1 => {
            let Effects { trial, mut knobs, mut slices } = effects_after_two();
            let (knobs, slices) = (knobs.split_off(1), slices.split_off(2));
            EffectTick { trial: Some(trial), knobs, slices }
        }
        _ => EffectTick::default(),
    }
}

/// What is watched beside the run, after so many seconds.
fn beside_after(seconds: u64) -> Surroundings {
    let mut beside = Surroundings::default();
    for at in 0..seconds {
        let tick = beside_tick(at);
        beside.marks.extend(tick.marks);
        beside.states.extend(tick.states);
        beside
            .idle
            .extend(tick.idle.map(|times| IdleReading { at_ns: (at + 1) * SECOND_NS, times }));
    }
    beside
}

fn beside_tick(at: u64) -> SurroundingsTick {
    let state =
        |state, name: &str, exit_us| CpuIdleState { cpu: 1, state, name: name.into(), exit_us };
    let time = |state| IdleTime { cpu: 1, state, entered: at, residency_us: 999_000 };
    let mark = |kind, before: &str, after: &str| Mark {
        thread: 1,
        since_ns: at * SECOND_NS,
        at_ns: at * SECOND_NS + 7,
        kind,
        before: before.into(),
        after: after.into(),
    };
    match at {
        0 => SurroundingsTick {
            states: vec![state(0, "POLL", None), state(1, "C6 \"deep\"", Some(133))],
            ..SurroundingsTick::default()
        },
        1 => SurroundingsTick {
            marks: vec![
                mark(MarkKind::Policy, "SCHED_OTHER", "SCHED_FIFO 1"),
                mark(MarkKind::Affinity, "CPU 1", "CPUs 0-1"),
            ],
            idle: Some(vec![time(0), time(1)]),
            ..SurroundingsTick::default()
        },
        _ => SurroundingsTick { idle: Some(vec![time(1)]), ..SurroundingsTick::default() },
    }
}

/// Writes a whole sealed run.
pub fn sealed(path: &Path, seconds: u64) -> Run {
    let (writer, mut run) = begin(path, seconds);
    let tail = tail(&mut run.threads);
    let finished = writer.finish(&tail).unwrap();
    finished.store_judgement(&judgement()).unwrap();
    finished.seal().unwrap();
    run.meta.ended = Some(tail.ended);
    run.facts_end = tail.facts.map(|snapshot| snapshot.facts);
    run
}

/// Every field.
pub fn assert_same(got: &Run, expected: &Run) {
    assert_eq!(got.meta, expected.meta);
    assert_eq!(got.options, expected.options);
    assert_eq!(got.facts_start, expected.facts_start);
    assert_eq!(got.facts_end, expected.facts_end);
    assert_eq!(got.cost, expected.cost);
    assert_eq!(got.threads.len(), expected.threads.len());
    for (got, expected) in got.threads.iter().zip(&expected.threads) {
        assert_same_thread(got, expected);
    }
    assert_eq!(got.host, expected.host);
    assert_eq!(got.loads, expected.loads);
    assert_eq!(got.notes, expected.notes);
    assert_eq!(got.spikes, expected.spikes);
    assert_eq!(got.effects, expected.effects);
    assert_eq!(got.surroundings, expected.surroundings);
}

/// Every field; says which one differs, not what all the others are.
pub fn assert_same_thread(got: &Thread, expected: &Thread) {
    assert_eq!(got.info, expected.info);
    assert_eq!(got.totals, expected.totals);
    assert_eq!(got.end, expected.end);
    assert_eq!(got.top, expected.top);
    assert_eq!(got.seconds.len(), expected.seconds.len());
    assert!(got.seconds == expected.seconds, "seconds of thread {}", got.info.number);
    assert!(got == expected, "histograms of thread {}", got.info.number);
}
