//! Spikes for tests, as real machines show them: a stalled guest, a throttled group, a short one of
//! many causes, one with lost events.

use std::collections::BTreeMap;

use rtproof_host::knobs::cpu::RT_RUNTIME;
use rtproof_judge::{
    Remedy,
    causes::{
        CauseCpu, CauseRow, ExplainedSpike, Explanation, RecorderSummary, Share, ShareRow, Span,
        Spikes, Structure,
    },
};
use rtproof_trace::{
    Coverage, Event, EventData, Lost, Task, TaskPolicy, WakeUp, WakeUpBasis, Window,
    WindowIdleState, WindowSurroundings, event::Vector,
};

const TID: i32 = 4212;

const DUE_NS: u64 = 1_000_000_000_000;

/// Events of a CPU, one after the other.
pub(crate) struct Events {
    cpu: u32,
    pub(crate) list: Vec<Event>,
}

impl Events {
    /// Of this CPU.
    pub(crate) fn on(cpu: u32) -> Self {
        Self { cpu, list: Vec::new() }
    }

    /// An event.
    pub(crate) fn at(&mut self, at_ns: u64, pid: i32, what: EventData) -> &mut Self {
        self.list.push(Event { at_ns, cpu: self.cpu, pid, flags: 0, preempt: 0, what });
        self
    }

    /// From one task to another.
    pub(crate) fn switch(&mut self, at_ns: u64, prev_pid: i32, next_pid: i32) -> &mut Self {
        let what = EventData::Switch {
            prev_comm: "".into(),
            prev_pid,
            prev_prio: 120,
            prev_state: 0,
            next_comm: "".into(),
            next_pid,
            next_prio: 120,
        };
        self.at(at_ns, prev_pid, what)
    }

    pub(crate) fn vector(&mut self, from_ns: u64, to_ns: u64) -> &mut Self {
        let pid = self.list.last().map_or(0, |event| match event.what {
            EventData::Switch { next_pid, .. } => next_pid,
            _ => event.pid,
        });
        let vector = Vector::LocalTimer;
        self.at(from_ns, pid, EventData::VectorEntry { vector });
        self.at(to_ns, pid, EventData::VectorExit { vector })
    }
}

/// An explanation out of what happened in turn: cause, culprit, nanoseconds.
fn explanation(parts: &[(&str, &str, u64)]) -> Explanation {
    let mut shares: Vec<ShareRow> = Vec::new();
    for (cause, culprit, ns) in parts {
        match shares.iter_mut().find(|s| s.cause == *cause && s.culprit == *culprit) {
            Some(share) => share.ns += ns,
            None => shares.push(ShareRow {
                cause: (*cause).into(),
                culprit: (*culprit).into(),
                ns: *ns,
                ..ShareRow::default()
            }),
        }
    }
    shares.sort_by_key(|share| std::cmp::Reverse(share.ns));
    let mut at_ns = DUE_NS;
    let mut spans = Vec::new();
    for (cause, culprit, ns) in parts {
        let is_it = |s: &ShareRow| s.cause == *cause && s.culprit == *culprit;
        let share = u32::try_from(shares.iter().position(is_it).unwrap()).unwrap();
        spans.push(Span { from_ns: at_ns, to_ns: at_ns + ns, share });
        at_ns += ns;
    }
    Explanation {
        wake: WakeUp {
            tid: TID,
            cpu: 1,
            due_ns: DUE_NS,
            ran_ns: at_ns,
            how: WakeUpBasis::Measured,
        },
        task: "rtproof/1 [FIFO 80]".into(),
        irq_ns: None,
        woken_ns: None,
        switched_ns: None,
        spans,
        shares: shares.into_iter().map(Share::assumed).collect(),
        incomplete: Vec::new(),
        wakers: vec!["local timer".into()],
    }
}

fn edit(explanation: &mut Explanation, cause: &str, with: impl FnOnce(&mut ShareRow)) {
    let share = explanation.shares.iter_mut().find(|share| share.cause == cause).unwrap();
    alter(share, with);
}

/// Changes the largest share of a spike.
pub(crate) fn edit_top(spike: &mut ExplainedSpike, with: impl FnOnce(&mut ShareRow)) {
    alter(&mut spike.explanation.shares[0], with);
}

fn alter(share: &mut Share, with: impl FnOnce(&mut ShareRow)) {
    let mut row = ShareRow::clone(share);
    with(&mut row);
    *share = Share::assumed(row);
}

/// 3449.6 µs: a stall, then a daemon of higher priority, and six short ones.
pub(crate) fn stall() -> ExplainedSpike {
    let mut explanation = explanation(&[
        ("stall", "", 2_658_713),
        ("timer_irq", "", 3_787),
        ("irq", "local timer", 6_588),
        ("softirq", "NET_RX", 64_401),
        ("switch", "", 1_902),
        ("preempted", "multipathd [RR 99]", 400_000),
        ("irq", "IRQ 24 eth0-rx-0", 1_811),
        ("preempted", "multipathd [RR 99]", 308_104),
        ("switch", "", 1_796),
        ("return", "", 2_500),
    ]);
    (explanation.irq_ns, explanation.woken_ns) =
        (Some(DUE_NS + 2_658_713), Some(DUE_NS + 2_662_500));
    explanation.switched_ns = Some(DUE_NS + 3_445_306);
    edit(&mut explanation, "stall", |stall| {
        stall.detail =
            vec!["interrupted in user mode: interrupts were not off".into(), "steal 3 ms".into()];
        stall.checks = vec!["steal-time".into()];
        stall.remedies = vec![Remedy::Manual {
            text: "Give the guest CPUs of its own on the host, without a quota.".into(),
        }];
    });
    edit(&mut explanation, "preempted", |preempted| {
        preempted.owner = Some("multipathd.service".into());
        preempted.detail = vec![
            "cgroup /system.slice/multipathd.service".into(),
            "woken by kworker/1:2".into(),
            "may use CPUs 0-1".into(),
        ];
        preempted.checks = vec!["prio-99".into(), "rt-tasks-off-their-cpus".into()];
        preempted.remedies = vec![
            Remedy::Command { command: "chrt --rr -p 10 812".into() },
            Remedy::File {
                path: "/etc/systemd/system/multipathd.service.d/rt.conf".into(),
                line: "CPUSchedulingPriority=10".into(),
            },
        ];
    });
    ExplainedSpike { number: 1, at_ns: 41_207_000_000, phase: "cpu+net".into(), explanation }
}

/// 50 ms: real-time throttling lets a compiler run, with a tick every 4 ms.
pub(crate) fn throttled() -> ExplainedSpike {
    let mut parts = vec![("timer_irq", "", 2_150), ("irq", "local timer", 3_020)];
    for _ in 0..12 {
        parts.push(("throttled", "cc1plus", 4_000_000 - 2_750));
        parts.push(("irq", "local timer", 2_750));
    }
    parts.extend([
        ("throttled", "cc1plus", 2_012_300),
        ("switch", "", 2_130),
        ("return", "", 2_400),
    ]);
    let mut explanation = explanation(&parts);
    (explanation.irq_ns, explanation.woken_ns) = (Some(DUE_NS), Some(DUE_NS + 2_150));
    explanation.switched_ns = Some(explanation.wake.ran_ns - 2_400);
    edit(&mut explanation, "throttled", |share| {
        share.detail = vec!["sched_rt_runtime_us 950000 of 1000000".into()];
        share.checks = vec!["rt-throttling".into()];
        let path = "/proc/sys/kernel/sched_rt_runtime_us".into();
        share.remedies = vec![Remedy::set(&RT_RUNTIME, vec![path], "-1")];
    });
    ExplainedSpike { number: 0, at_ns: 18_004_000_000, phase: "cpu".into(), explanation }
}

/// 60 µs of six causes.
pub(crate) fn short() -> ExplainedSpike {
    let mut explanation = explanation(&[
        ("idle_exit", "C6", 28_100),
        ("timer_irq", "", 4_200),
        ("softirq", "RCU", 9_800),
        ("preempt_off", "ext4_end_io_rsv_work", 11_300),
        ("switch", "", 2_100),
        ("return", "", 4_500),
    ]);
    explanation.irq_ns = Some(DUE_NS + 28_100);
    explanation.woken_ns = Some(DUE_NS + 32_300);
    explanation.switched_ns = Some(DUE_NS + 55_500);
    edit(&mut explanation, "preempt_off", |share| {
        share.owner = Some("ext4".into());
        share.detail = vec![
            "_raw_spin_lock+0x1f/0x30".into(),
            "ext4_finish_bio+0xc2/0x290".into(),
            "ext4_end_io_rsv_work+0x9a/0x1d0".into(),
            "process_one_work+0x17e/0x340".into(),
        ];
    });
    edit(&mut explanation, "idle_exit", |share| share.checks = vec!["cpuidle-states".into()]);
    ExplainedSpike { number: 2, at_ns: 7_311_000_000, phase: "idle".into(), explanation }
}

/// 412 µs with lost events, ambiguous, woken from another CPU.
pub(crate) fn incomplete() -> ExplainedSpike {
    let mut explanation = explanation(&[
        ("irq_off", "kworker/1:0", 210_450),
        ("irq", "IRQ 38 can0", 14_200),
        ("queued", "irq/38-can0 [FIFO 80]", 96_310),
        ("unexplained", "", 83_000),
        ("return", "", 8_040),
    ]);
    explanation.irq_ns = Some(DUE_NS + 210_450);
    explanation.woken_ns = Some(DUE_NS + 224_650);
    edit(&mut explanation, "irq_off", |share| share.alternatives = vec!["stall".into()]);
    explanation.incomplete = vec![
        "17 events of CPU 1 were lost within it".into(),
        "irq_vectors:local_timer_entry is missing: timer interrupts do not show".into(),
    ];
    explanation.wakers = vec!["irq/38-can0 [FIFO 50]".into(), "IRQ 38 can0".into()];
    ExplainedSpike { number: 3, at_ns: 33_500_000_000, phase: "cpu+net".into(), explanation }
}

/// The window of a spike; spike 2 has none.
pub(crate) fn window(number: u32) -> Option<Window> {
    let (due, mut list) = (DUE_NS, Vec::new());
    let mut on = Events::on(1);
    match number {
        0 => {
            on.switch(due - 9_000_000, 4213, 900).vector(due, due + 5_170);
            for tick in 1..=12_u64 {
                let at_ns = due + 5_170 + tick * 4_000_000 - 2_750;
                on.vector(at_ns, at_ns + 2_750);
            }
            on.switch(throttled().explanation.wake.ran_ns - 2_400, 900, TID);
        }
        1 => {
            on.switch(due - 800_000, 0, 777);
            on.vector(due + 2_658_713, due + 2_669_088);
            on.at(due + 2_669_400, 777, EventData::SoftirqEntry { vec: 3 });
            on.at(due + 2_733_300, 777, EventData::SoftirqExit { vec: 3 });
            on.switch(due + 2_735_391, 777, 812);
            on.at(due + 3_135_391, 812, EventData::IrqEntry { irq: 24, name: "eth0-rx-0".into() });
            on.at(due + 3_137_202, 812, EventData::IrqExit { irq: 24 });
            on.switch(due + 3_445_306, 812, TID);
        }
        3 => {
            let mut other = Events::on(0);
            let send = EventData::IpiSend { to_cpu: 1, callsite: 0, callback: 0xffff_8000 };
            other.at(due + 60_000, 66, send);
            let wakes =
                EventData::Waking { comm: "rtproof/1".into(), pid: TID, prio: 19, target_cpu: 1 };
            other.at(due + 224_650, 138, wakes);
            list.extend(other.list);
            on.switch(due - 30_000, 0, 65);
            on.at(due + 210_450, 65, EventData::IrqEntry { irq: 38, name: "can0".into() });
            on.at(due + 224_500, 65, EventData::IrqExit { irq: 38 });
            on.switch(due + 230_000, 65, 139);
        }
        _ => return None,
    }
    list.extend(on.list);
    list.sort_by_key(|event| event.at_ns);
    let (from_ns, to_ns) = (due - 10_000_000, due + 60_000_000);
    let is_lossy = number == 3;
    let lost = Lost { from_ns: due + 320_960, to_ns: due + 403_960, count: Some(17) };
    let states = WindowIdleState { name: "C6".into(), exit_latency_ns: 133_000 };
    Some(Window {
        cpu: 1,
        from_ns,
        to_ns,
        events: list,
        lost: is_lossy.then_some(lost).into_iter().collect(),
        tasks: tasks(),
        symbols: BTreeMap::from([(0xffff_8000, "flush_tlb_func+0x0/0x200".into())]),
        missing: Vec::new(),
        late_idle: Vec::new(),
        late_own: Vec::new(),
        cut: false,
        coverage: Coverage::default(),
        section: None,
        surroundings: WindowSurroundings {
            idle_states: BTreeMap::from([(2, states)]),
            ..WindowSurroundings::default()
        },
    })
}

fn tasks() -> BTreeMap<i32, Task> {
    let task = |comm: &str, policy: TaskPolicy, rt_priority: u32| Task {
        comm: comm.into(),
        policy: Some(policy),
        rt_priority,
        ..Task::default()
    };
    BTreeMap::from([
        (TID, task("rtproof/1", TaskPolicy::Fifo, 80)),
        (65, task("kworker/1:0", TaskPolicy::Other, 0)),
        (66, task("kworker/0:2", TaskPolicy::Other, 0)),
        (138, task("irq/38-can0", TaskPolicy::Fifo, 50)),
        (139, task("irq/38-can0", TaskPolicy::Fifo, 80)),
        (777, task("stress-ng-cpu", TaskPolicy::Other, 0)),
        (812, task("multipathd", TaskPolicy::Rr, 99)),
        (900, task("cc1plus", TaskPolicy::Other, 0)),
        (4213, task("badhog", TaskPolicy::Fifo, 50)),
    ])
}

/// The spikes of a run.
pub(crate) fn spikes() -> Spikes {
    let mut worst = vec![throttled(), stall(), incomplete(), short()];
    worst.sort_by_key(|spike| std::cmp::Reverse(spike.explanation.wake.latency_ns()));
    let causes = rows(&worst);
    let sum_ns = worst.iter().map(|spike| spike.explanation.wake.latency_ns()).sum();
    let certain_ns = worst.iter().map(|spike| spike.explanation.certain_ns()).sum();
    Spikes {
        threshold_ns: 50_000,
        adaptive: true,
        seen: 431,
        explained: 428,
        incomplete: 1,
        unexamined: 3,
        sum_ns,
        certain_ns,
        recorder: RecorderSummary {
            off: None,
            cost_p50_ns: Some(1_180),
            cost_pairs: 8,
            missing: vec![
                "nmi:nmi_handler: NMIs cannot be told from stalls".into(),
                "preemptirq:irq_disable: where interrupts were turned off is not known".into(),
            ],
            lost_events: 17,
            blind_ns: 0,
            stacks_from_ns: Some(4_200_000_000),
        },
        causes,
        worst,
        structure: vec![Structure {
            kind: "period".into(),
            text: "29 of 31 spikes by the hypervisor follow a period of 100.004 ms (29 of 33 \
                   cycles, phase width 2 ms, p = 3e-12): the period of the CPU quota of a control \
                   group (cpu.max) or of a hypervisor"
                .into(),
            period_ns: Some(100_000_000),
            count: 29,
            of: 31,
            p: 3.1e-12,
            cpu: None,
            moments: Vec::new(),
        }],
    }
}

/// The table of causes of these spikes.
fn rows(worst: &[ExplainedSpike]) -> Vec<CauseRow> {
    let mut rows: Vec<CauseRow> = Vec::new();
    for share in worst.iter().flat_map(|spike| &spike.explanation.shares) {
        let is_it = |row: &CauseRow| row.cause == share.cause && row.culprit == share.culprit;
        let at = rows.iter().position(is_it).unwrap_or_else(|| {
            rows.push(CauseRow {
                cause: share.cause.clone(),
                title: rtproof_judge::causes::title(&share.cause).into(),
                culprit: share.culprit.clone(),
                owner: share.owner.clone(),
                top: 0,
                count: 0,
                worst_ns: 0,
                sum_ns: 0,
                ambiguous_ns: 0,
                cpus: Vec::new(),
                checks: share.checks.clone(),
                remedies: share.remedies.clone(),
            });
            rows.len() - 1
        });
        let row = &mut rows[at];
        (row.count, row.top) = (row.count + 1, row.top + u64::from(share.ns > 200_000));
        (row.sum_ns, row.worst_ns) = (row.sum_ns + share.ns, row.worst_ns.max(share.ns));
        row.ambiguous_ns += if share.is_certain() { 0 } else { share.ns };
        let (count, worst_ns, sum_ns) = (row.count, row.worst_ns, row.sum_ns);
        row.cpus = vec![CauseCpu { cpu: 1, count, worst_ns, sum_ns }];
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.sum_ns));
    rows
}

/// A name that wants to be markup and to command a terminal.
pub(crate) const HOSTILE: &str = "<script>alert(1)</script>\u{1b}[2J'\"&";

/// Spikes with a hostile name everywhere.
pub(crate) fn hostile() -> Spikes {
    let mut spikes = spikes();
    for row in &mut spikes.causes {
        (row.culprit, row.owner) = (HOSTILE.into(), Some(HOSTILE.into()));
        row.checks = vec![HOSTILE.into()];
    }
    for spike in &mut spikes.worst {
        spike.phase = HOSTILE.into();
        spike.explanation.wakers = vec![HOSTILE.into()];
        spike.explanation.incomplete = vec![HOSTILE.into()];
        for share in &mut spike.explanation.shares {
            alter(share, |row| {
                (row.culprit, row.detail) = (HOSTILE.into(), vec![HOSTILE.into()]);
            });
        }
    }
    spikes
}

#[test]
fn samples_sum_to_their_latency() {
    for spike in [stall(), throttled(), short(), incomplete()] {
        let explanation = &spike.explanation;
        assert_eq!(super::sum_ns(explanation), explanation.wake.latency_ns());
    }
    assert_eq!(stall().explanation.wake.latency_ns(), 3_449_602);
    assert_eq!(short().explanation.wake.latency_ns(), 60_000);
}
