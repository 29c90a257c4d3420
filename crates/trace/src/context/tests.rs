//! Tests of the reconstruction, on hand-made events.

use super::*;
use crate::event;
use crate::event::Comm;

fn event(at_ns: u64, pid: i32, what: EventData) -> Event {
    Event { at_ns, cpu: 0, pid, flags: 0, preempt: 0, what }
}

fn switch(at_ns: u64, prev_pid: i32, next_pid: i32) -> Event {
    let what = EventData::Switch {
        prev_comm: Comm::default(),
        prev_pid,
        prev_prio: 120,
        prev_state: 0,
        next_comm: Comm::default(),
        next_pid,
        next_prio: 120,
    };
    event(at_ns, prev_pid, what)
}

fn spans(stretches: &[Stretch]) -> Vec<(u64, u64)> {
    stretches.iter().map(|stretch| (stretch.from_ns, stretch.to_ns)).collect()
}

/// Whole, in order, without gaps.
fn covers(stretches: &[Stretch], from_ns: u64, to_ns: u64) {
    assert_eq!(stretches.first().map(|s| s.from_ns), Some(from_ns));
    assert_eq!(stretches.last().map(|s| s.to_ns), Some(to_ns));
    assert!(stretches.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
    assert!(stretches.iter().all(|s| s.from_ns < s.to_ns));
}

#[test]
fn interrupts_stack_over_tasks() {
    let timer = Vector::LocalTimer;
    let disk = Hard::Irq { irq: 9, name: "disk".into() };
    let events = [
        switch(5, 1, 2),
        event(20, 2, EventData::IrqEntry { irq: 9, name: "disk".into() }),
        event(30, 2, EventData::VectorEntry { vector: timer }),
        event(32, 2, EventData::TimerExpire { timer: 1, function: 77, now_ns: 31 }),
        event(35, 2, EventData::TimerExpired { timer: 1 }),
        event(40, 2, EventData::VectorExit { vector: timer }),
        event(50, 2, EventData::IrqExit { irq: 9 }),
        switch(60, 2, 0),
    ];
    let all = reconstruct(&events, 0, 10, 100);
    covers(&all, 10, 100);
    let hard: Vec<Option<Hard>> = all.iter().map(|s| s.state.hard.map(|(hard, _)| hard)).collect();
    let vector = Some(Hard::Vector(timer));
    assert_eq!(hard, [None, Some(disk), vector, vector, vector, Some(disk), None, None]);
    assert_eq!(all[3].state.expiring, Some(77));
    assert_eq!(all[0].state.since_ns, Some(5));
    assert_eq!(all.last().map(|s| s.state.task), Some(0));
}

#[test]
fn a_preempted_softirq_continues_with_its_task() {
    // PREEMPT_RT: blame.md's trap; a per-CPU stack would call the time of task 7 a softirq.
    let events = [
        switch(0, 9, 3),
        event(10, 3, EventData::SoftirqEntry { vec: 1 }),
        switch(20, 3, 7),
        switch(30, 7, 3),
        event(40, 3, EventData::SoftirqExit { vec: 1 }),
    ];
    let all = reconstruct(&events, 0, 0, 50);
    covers(&all, 0, 50);
    let softirqs: Vec<_> = all.iter().map(|s| (s.state.task, s.state.softirq)).collect();
    assert_eq!(softirqs, [(3, None), (3, Some(1)), (7, None), (3, Some(1)), (3, None)]);
}

#[test]
fn what_changes_nothing_makes_no_boundary() {
    let waking = EventData::Waking { comm: Comm::default(), pid: 5, prio: 1, target_cpu: 0 };
    let events = [switch(0, 1, 2), event(10, 2, waking.clone()), event(20, 2, waking)];
    let all = reconstruct(&events, 0, 0, 30);
    assert_eq!(spans(&all), [(0, 30)]);
}

#[test]
fn a_trace_that_begins_inside_an_interrupt() {
    let mut first = event(10, 2, EventData::TimerExpire { timer: 1, function: 5, now_ns: 9 });
    first.flags = event::flags::HARDIRQ | event::flags::IRQS_OFF;
    let mut last = event(20, 2, EventData::VectorExit { vector: Vector::LocalTimer });
    last.flags = event::flags::HARDIRQ;
    // Without the beginning of interrupts nothing but flags says when one has ended.
    let after = event(25, 2, EventData::SoftirqRaise { vec: 1 });
    let events = [first, last, after];
    let all = reconstruct(&events, 0, 0, 30);
    covers(&all, 0, 30);
    let inside: Vec<_> = all.iter().map(|s| s.state.hard.is_some()).collect();
    assert_eq!(inside, [true, true, false]);
    assert_eq!(all[0].state.hard.map(|(hard, _)| hard), Some(Hard::Unknown));
    assert_eq!(all.last().and_then(|s| s.state.hard), None);
}

#[test]
fn an_nmi_is_reported_when_it_has_ended() {
    let events = [switch(0, 1, 2), event(50, 2, EventData::Nmi { handler: 3, delta_ns: 20 })];
    let all = reconstruct(&events, 0, 10, 100);
    covers(&all, 10, 100);
    assert_eq!(spans(&all), [(10, 30), (30, 50), (50, 100)]);
    assert_eq!(all[1].state.nmi, Some(3));
}

#[test]
fn no_events_give_one_unknown_stretch() {
    let all = reconstruct(&[], 0, 5, 9);
    assert_eq!((spans(&all), all[0].state.task), (vec![(5, 9)], -1));
    assert!(reconstruct(&[], 0, 5, 5).is_empty());
}

#[test]
fn a_noise_is_as_long_as_it_says_whenever_it_is_written() {
    let noise = |at_ns, kind: &str, start_ns, duration_ns| {
        let (kind, name, number) = (kind.into(), "disk".into(), 40);
        event(at_ns, 2, EventData::Noise { kind, name, number, start_ns, duration_ns })
    };
    let over = |event: Event| {
        let events = [switch(5, 1, 2), event, switch(95_000, 2, 0)];
        let all = reconstruct(&events, 0, 10, 100_000);
        covers(&all, 10, 100_000);
        let is_over = |of: &&Stretch| of.state.hard.is_some() || of.state.softirq.is_some();
        spans(&all.into_iter().filter(|of| is_over(&of)).collect::<Vec<_>>())
    };
    // Written 22 us after it ended.
    assert_eq!(over(noise(60_000, "irq", 30_000, 8_000)), [(30_000, 38_000)]);
    // Its start is on another clock.
    assert_eq!(over(noise(60_000, "irq", 9_000_000, 8_000)), [(52_000, 60_000)]);
    // Without what interrupted it, so that it ends later.
    assert_eq!(over(noise(60_000, "softirq", 30_000, 8_000)), [(30_000, 60_000)]);
}
