//! Explanations against a simulated scheduler that knows the truth: what is certain is true in each
//! microsecond, and the late wake-ups are counted, with all events and with some taken away.

mod machine;

use rtproof_judge::causes::explain;
use rtproof_trace::{
    Coverage, Event, EventBrief, EventClass, EventData, Extent, Lost, Scanner, Subjects, WakeUp,
    Window,
};

use machine::{Did, Machine, STEP_NS, VICTIM};

/// Later than this is late.
const LATE_NS: u64 = 100_000;

/// Steps of a run.
const STEPS: u64 = 20_000;

/// What was explained of all runs, and how much of it was certain or wrong.
#[derive(Debug, Default)]
struct Sums {
    late: u64,
    late_ns: u64,
    certain_ns: u64,
    /// Certain, and another thing was on the CPU.
    wrong_ns: u64,
}

/// What is missing of the events.
#[derive(Clone, Default)]
struct Blindness {
    coverage: Coverage,
    lost: Vec<Lost>,
}

/// Late wake-ups, and whether all of them are known.
fn scan(events: &[Event]) -> (Vec<WakeUp>, bool) {
    let subjects = Subjects { tids: vec![VICTIM], ..Subjects::default() };
    let mut scanner = Scanner::new(&subjects, LATE_NS, true).with_sleep_functions(vec![0xc100]);
    let mut late = Vec::new();
    for event in events {
        late.extend(scanner.current(event.at_ns, event.cpu, event.pid, event.flags));
        late.extend(scanner.feed_brief(event.at_ns, event.cpu, &EventBrief::of(event)));
    }
    let totals = scanner.totals().next().copied().unwrap_or_default();
    (late, totals.unknown() == 0)
}

/// Explains every late wake-up of the victim by what is left of the events.
fn judge(machine: &Machine, events: &[Event], blind: &Blindness, sums: &mut Sums) {
    for &(due_ns, ran_ns) in machine.wake_ups.iter().filter(|(due, ran)| ran - due > LATE_NS) {
        let (from_ns, to_ns) = (due_ns.saturating_sub(3_000_000), ran_ns + 200_000);
        let is_in = |event: &&Event| (from_ns..=to_ns).contains(&event.at_ns);
        let mut window = Window {
            cpu: 0,
            from_ns,
            to_ns,
            events: events.iter().filter(is_in).cloned().collect(),
            coverage: blind.coverage.clone(),
            lost: blind.lost.clone(),
            ..Window::default()
        };
        let steps = (from_ns / STEP_NS) as usize..((to_ns / STEP_NS) as usize + 1);
        let all = &machine.did[0];
        let stood = all[steps.start.min(all.len())..steps.end.min(all.len())].iter();
        let stood = stood.filter(|did| **did == Did::Stood).count() as u64;
        window.surroundings.steal_ns = Some(stood * STEP_NS);
        window.surroundings.guest = Some(true);
        window.surroundings.preempt_rt = Some(false);
        let how = rtproof_trace::WakeUpBasis::Timer;
        let wake = WakeUp { tid: VICTIM, cpu: 0, due_ns, ran_ns, how };
        let explanation = explain(&wake, &window);
        sums.late += 1;
        sums.late_ns += ran_ns - due_ns;
        for span in &explanation.spans {
            let share = &explanation.shares[span.share as usize];
            if !share.is_certain() {
                continue;
            }
            sums.certain_ns += span.to_ns - span.from_ns;
            // Steps that lie within it; events are written at the begin of a step.
            let inside = span.from_ns.div_ceil(STEP_NS)..span.to_ns / STEP_NS;
            let did = inside.map(|step| machine.did[0][step as usize]);
            let wrong = did.filter(|did| !fits(&share.cause, &share.culprit, *did)).count();
            sums.wrong_ns += wrong as u64 * STEP_NS;
        }
    }
}

/// Whether a cause is what a CPU did.
fn fits(cause: &str, culprit: &str, did: Did) -> bool {
    match did {
        Did::Timer => cause == "timer-work",
        Did::Irq(irq) => {
            ["irq", "masked"].contains(&cause) && culprit.starts_with(&format!("IRQ {irq} "))
        }
        Did::Softirq(vec) => {
            cause == "softirq" && culprit == rtproof_trace::event::softirq_name(vec)
        }
        Did::Stood | Did::Ran(_) => false,
    }
}

fn truly_late(machine: &Machine) -> u64 {
    machine.wake_ups.iter().filter(|(due, ran)| ran - due > LATE_NS).count() as u64
}

#[expect(clippy::disallowed_methods, reason = "a test asks how long it may take")]
fn seeds() -> u64 {
    if std::env::var_os("FULL").is_some() { 10_000 } else { 120 }
}

#[test]
fn with_all_events_nothing_certain_is_wrong_and_all_that_is_late_is_counted() {
    let (mut sums, mut whole) = (Sums::default(), 0);
    let mut interrupted_ns = 0;
    for seed in 0..seeds() {
        let machine = Machine::run(seed, STEPS);
        judge(&machine, &machine.events, &Blindness::default(), &mut sums);
        let (late, is_whole) = scan(&machine.events);
        let counted = late.len() as u64;
        let truth = truly_late(&machine);
        assert!(counted <= truth, "seed {seed}: {counted} of {truth}");
        if is_whole {
            assert_eq!(counted, truth, "seed {seed}");
            whole += 1;
        }
        for &(due_ns, ran_ns) in machine.wake_ups.iter().filter(|(due, ran)| ran - due > LATE_NS) {
            let steps = (due_ns / STEP_NS) as usize..(ran_ns / STEP_NS) as usize;
            let did = machine.did[0][steps].iter();
            let over = did.filter(|did| !matches!(did, Did::Ran(_) | Did::Stood)).count() as u64;
            interrupted_ns += over * STEP_NS;
        }
    }
    assert_eq!(sums.wrong_ns, 0, "{sums:?}");
    assert!(sums.late > seeds() && whole > seeds() / 4, "{sums:?}, {whole} whole");
    assert!(sums.certain_ns * 3 > interrupted_ns, "{sums:?} of {interrupted_ns}");
}

type Kind = (EventClass, fn(&EventData) -> bool);

const KINDS: [Kind; 6] = [
    (EventClass::Switches, |what| matches!(what, EventData::Switch { .. })),
    (EventClass::WakeUps, |what| {
        matches!(what, EventData::Waking { .. } | EventData::Wakeup { .. })
    }),
    (EventClass::Interrupts, |what| {
        matches!(
            what,
            EventData::VectorEntry { .. }
                | EventData::VectorExit { .. }
                | EventData::IrqEntry { .. }
                | EventData::IrqExit { .. }
        )
    }),
    (EventClass::Softirqs, |what| {
        matches!(what, EventData::SoftirqEntry { .. } | EventData::SoftirqExit { .. })
    }),
    (EventClass::Timers, |what| {
        matches!(what, EventData::TimerExpire { .. } | EventData::TimerExpired { .. })
    }),
    (EventClass::Interrupts, |what| {
        matches!(what, EventData::IrqEntry { .. } | EventData::IrqExit { .. })
    }),
];

#[test]
fn without_kinds_of_events_that_are_known_to_be_missing_nothing_certain_is_wrong() {
    let mut sums = Sums::default();
    for seed in 0..seeds() / 4 {
        let machine = Machine::run(seed, STEPS);
        for (number, one) in KINDS.iter().enumerate() {
            for other in &KINDS[number..] {
                let mut blind = Blindness::default();
                blind.coverage.limit(one.0, Extent::Partial);
                blind.coverage.limit(other.0, Extent::Partial);
                let is_left = |event: &&Event| !(one.1)(&event.what) && !(other.1)(&event.what);
                let left: Vec<Event> = machine.events.iter().filter(is_left).cloned().collect();
                judge(&machine, &left, &blind, &mut sums);
            }
        }
    }
    assert_eq!(sums.wrong_ns, 0, "{sums:?}");
}

#[test]
fn without_stretches_that_are_known_to_be_lost_nothing_certain_is_wrong() {
    let mut sums = Sums::default();
    for seed in 0..seeds() {
        let mut machine = Machine::run(seed, STEPS);
        let mut lost = Vec::new();
        for _ in 0..10 {
            let from_ns = machine.random(STEPS * STEP_NS);
            let to_ns = from_ns + machine.random(500_000);
            lost.push(Lost { from_ns, to_ns, count: None });
        }
        let is_lost = |event: &Event| {
            event.cpu == 0 && lost.iter().any(|of| (of.from_ns..=of.to_ns).contains(&event.at_ns))
        };
        let left: Vec<Event> =
            machine.events.iter().filter(|event| !is_lost(event)).cloned().collect();
        let blind = Blindness { lost: lost.clone(), ..Blindness::default() };
        judge(&machine, &left, &blind, &mut sums);
    }
    assert_eq!(sums.wrong_ns, 0, "{sums:?}");
}

#[test]
fn without_the_other_cpu_nothing_certain_is_wrong() {
    let mut sums = Sums::default();
    for seed in 0..seeds() / 4 {
        let mut machine = Machine::run(seed, STEPS);
        machine.events.retain(|event| event.cpu == 0);
        judge(&machine, &machine.events, &Blindness::default(), &mut sums);
    }
    assert_eq!(sums.wrong_ns, 0, "{sums:?}");
}

#[test]
fn one_event_in_a_hundred_that_silently_lacks_makes_nothing_certain_wrong() {
    let mut sums = Sums::default();
    for seed in 0..seeds() {
        let mut machine = Machine::run(seed, STEPS);
        let events = std::mem::take(&mut machine.events);
        let left: Vec<Event> = events.into_iter().filter(|_| machine.random(100) > 0).collect();
        judge(&machine, &left, &Blindness::default(), &mut sums);
    }
    assert_eq!(sums.wrong_ns, 0, "{sums:?}");
}
