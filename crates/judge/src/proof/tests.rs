//! Proofs against a generator that knows at each nanosecond what was over the task, whole and with
//! events taken away.

use rtproof_trace::{Lost, event::Vector, event::flags::HARDIRQ};

use super::*;

const TIMER: Hard = Hard::Vector(Vector::LocalTimer);
const CALL: Hard = Hard::Vector(Vector::CallFunction);

/// What really was over the task at each nanosecond, and the events that a kernel writes of it.
#[derive(Default)]
struct Truth {
    at_ns: u64,
    task: i32,
    spans: Vec<(u64, u64, CpuState)>,
    events: Vec<Event>,
    seed: u64,
}

impl Truth {
    fn of(seed: u64) -> Self {
        let mut truth = Self { task: 7, seed: seed.wrapping_mul(2) + 1, ..Self::default() };
        for _ in 0..40 {
            truth.run(&CpuState::default());
            match truth.random(4) {
                0 => truth.interrupt(&CpuState::default(), 0),
                1 => truth.softirq(),
                2 => truth.nmi(&CpuState::default()),
                _ => truth.switch(),
            }
        }
        truth
    }

    /// xorshift64*: the same seed gives the same run.
    fn random(&mut self, below: u64) -> u64 {
        self.seed ^= self.seed >> 12;
        self.seed ^= self.seed << 25;
        self.seed ^= self.seed >> 27;
        (self.seed.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    }

    fn write(&mut self, over: &CpuState, what: EventData) {
        let flags = if over.hard.is_some() { HARDIRQ } else { 0 };
        let event = Event { at_ns: self.at_ns, cpu: 0, pid: self.task, flags, preempt: 0, what };
        self.events.push(event);
    }

    /// Time passes in a state.
    fn run(&mut self, over: &CpuState) {
        let to_ns = self.at_ns + 1 + self.random(50);
        self.spans.push((self.at_ns, to_ns, CpuState { task: self.task, ..over.clone() }));
        self.at_ns = to_ns;
        if self.random(3) == 0 {
            self.write(over, EventData::SoftirqRaise { vec: 1 });
            let to_ns = self.at_ns + 1;
            self.spans.push((self.at_ns, to_ns, CpuState { task: self.task, ..over.clone() }));
            self.at_ns = to_ns;
        }
    }

    fn interrupt(&mut self, under: &CpuState, depth: u64) {
        let irq = i32::try_from(self.random(2)).unwrap();
        let (hard, entry, exit) = match self.random(3) + depth {
            0 => (
                TIMER,
                EventData::VectorEntry { vector: Vector::LocalTimer },
                EventData::VectorExit { vector: Vector::LocalTimer },
            ),
            1 => (
                CALL,
                EventData::VectorEntry { vector: Vector::CallFunction },
                EventData::VectorExit { vector: Vector::CallFunction },
            ),
            _ => (
                Hard::Irq { irq, name: "dev".into() },
                EventData::IrqEntry { irq, name: "dev".into() },
                EventData::IrqExit { irq },
            ),
        };
        let over = CpuState { hard: Some((hard, self.at_ns)), ..under.clone() };
        self.write(&over, entry);
        self.run(&over);
        if hard == TIMER {
            let function = self.random(2) + 100;
            let expire = EventData::TimerExpire { timer: 1, function, now_ns: self.at_ns };
            self.write(&over, expire);
            self.run(&CpuState { expiring: Some(function), ..over.clone() });
            self.write(&over, EventData::TimerExpired { timer: 1 });
            self.run(&over);
        }
        if self.random(4) == 0 {
            self.nmi(&over);
            self.run(&over);
        }
        self.write(&over, exit);
    }

    fn nmi(&mut self, under: &CpuState) {
        let (from_ns, handler) = (self.at_ns, 200 + self.random(2));
        self.at_ns += 1 + self.random(20);
        let over = CpuState { nmi: Some(handler), task: self.task, ..under.clone() };
        self.spans.push((from_ns, self.at_ns, over.clone()));
        let delta_ns = self.at_ns - from_ns;
        self.write(&over, EventData::Nmi { handler, delta_ns });
    }

    /// Interrupted, and on PREEMPT_RT preempted.
    fn softirq(&mut self) {
        let vec = u32::try_from(self.random(3)).unwrap();
        let over = CpuState { softirq: Some(vec), ..CpuState::default() };
        let task = self.task;
        self.write(&over, EventData::SoftirqEntry { vec });
        for _ in 0..self.random(4) {
            self.run(&over);
            match self.random(3) {
                0 => self.interrupt(&over, 0),
                1 => {
                    self.switch_to(task + 1);
                    self.run(&CpuState::default());
                    self.switch_to(task);
                }
                _ => self.nmi(&over),
            }
        }
        self.run(&over);
        self.write(&over, EventData::SoftirqExit { vec });
    }

    fn switch(&mut self) {
        let to = 7 + i32::try_from(self.random(3)).unwrap();
        self.switch_to(to);
    }

    fn switch_to(&mut self, next_pid: i32) {
        let what = EventData::Switch {
            prev_comm: "a".into(),
            prev_pid: self.task,
            prev_prio: 120,
            prev_state: 0,
            next_comm: "b".into(),
            next_pid,
            next_prio: 120,
        };
        self.write(&CpuState::default(), what);
        self.task = next_pid;
        self.at_ns += 1;
    }

    fn window(&self) -> Window {
        Window { events: self.events.clone(), ..Window::default() }
    }

    /// Whether a state was the true one all the time.
    fn holds(&self, claim: &CpuState, from_ns: u64, to_ns: u64) -> bool {
        let mut spans = self.spans.iter().filter(|(a, b, _)| *a < to_ns && from_ns < *b);
        spans.all(|(_, _, state)| top(state) == top(claim))
            && self.spans.iter().any(|(a, b, _)| *a <= from_ns && from_ns < *b)
    }
}

/// What is on top, as a claim names it.
fn top(state: &CpuState) -> String {
    match (state.nmi, state.hard, state.softirq) {
        (Some(handler), ..) => format!("nmi {handler}"),
        (None, Some((hard, _)), _) => format!("{hard:?} {:?}", state.expiring),
        (None, None, Some(vec)) => format!("softirq {vec} of {}", state.task),
        _ => "task".into(),
    }
}

/// Causes that may propose a state, with whether they name a timer's function.
fn proposals(state: &CpuState) -> Vec<(&'static str, bool)> {
    let mut all = vec![("preempted", false), ("irqs-off", false), ("stall", false)];
    all.extend(match (state.nmi, state.hard, state.softirq) {
        (Some(_), ..) => vec![("nmi", false)],
        (None, Some((TIMER, _)), _) => vec![("timer-work", true), ("timer-work", false)],
        (None, Some(_), _) => vec![("irq", false), ("masked", false)],
        (None, None, Some(_)) => vec![("softirq", false)],
        _ => Vec::new(),
    });
    all
}

/// Proposes each state at every time, right or wrong, and counts what is proved of the right ones.
fn check(truth: &Truth, window: &Window) -> (u64, u64, u64) {
    let overs = Overs::of(window);
    let (mut proved, mut provable, mut wrong) = (0, 0, 0);
    for (from_ns, to_ns, state) in &truth.spans {
        for (cause, names) in proposals(state) {
            let is_over = state.nmi.is_some() || state.hard.is_some() || state.softirq.is_some();
            let is_kind = is_over && !["preempted", "irqs-off", "stall"].contains(&cause);
            let of = overs.prove(cause, state, names, (*from_ns, *to_ns));
            proved += u64::from(of.is_some());
            provable += u64::from(is_kind && (!names || state.expiring.is_some()));
            wrong += u64::from(of.is_some() && !is_kind);
        }
    }
    for pair in truth.spans.windows(2) {
        for claim in [&pair[0].2, &pair[1].2] {
            for (from_ns, to_ns, _) in pair {
                for (cause, names) in proposals(claim) {
                    let is_proved = overs.prove(cause, claim, names, (*from_ns, *to_ns)).is_some();
                    let claim =
                        CpuState { expiring: claim.expiring.filter(|_| names), ..claim.clone() };
                    let is_true = truth.holds(&claim, *from_ns, *to_ns)
                        || !names && top_hard(truth, &claim, *from_ns, *to_ns);
                    wrong += u64::from(is_proved && !is_true);
                }
            }
        }
    }
    (proved, provable, wrong)
}

/// Whether the interrupt itself was on top, whichever function ran in it.
fn top_hard(truth: &Truth, claim: &CpuState, from_ns: u64, to_ns: u64) -> bool {
    let mut spans = truth.spans.iter().filter(|(a, b, _)| *a < to_ns && from_ns < *b);
    claim.hard.is_some()
        && spans
            .all(|(_, _, of)| of.nmi.is_none() && of.hard.map(|h| h.0) == claim.hard.map(|h| h.0))
}

#[test]
fn whole_events_prove_what_was_and_nothing_else() {
    let (mut proved, mut provable) = (0, 0);
    for seed in 0..300 {
        let truth = Truth::of(seed);
        let (of, all, wrong) = check(&truth, &truth.window());
        assert_eq!(wrong, 0, "seed {seed}");
        (proved, provable) = (proved + of, provable + all);
    }
    assert!(proved * 100 >= provable * 98, "{proved} of {provable}");
}

#[test]
fn an_event_that_is_missing_proves_nothing_wrong() {
    for seed in 0..8 {
        let truth = Truth::of(seed);
        for at in 0..truth.events.len() {
            let mut window = truth.window();
            let gone = window.events.remove(at);
            // An NMI has one line: without it nothing shows it.
            if matches!(gone.what, EventData::Nmi { .. }) {
                continue;
            }
            assert_eq!(
                check(&truth, &window).2,
                0,
                "seed {seed}, without {gone:?}: {:#?}",
                &truth.events[at.saturating_sub(4)..truth.events.len().min(at + 6)]
            );
        }
    }
}

#[test]
fn a_kind_that_is_missing_proves_nothing_wrong_of_itself() {
    type Kind = fn(&EventData) -> bool;
    let kinds: [Kind; 4] = [
        |what| matches!(what, EventData::VectorExit { .. }),
        |what| matches!(what, EventData::IrqExit { .. }),
        |what| matches!(what, EventData::VectorEntry { .. }),
        |what| matches!(what, EventData::SoftirqEntry { .. }),
    ];
    for (seed, is_gone) in (0..200).flat_map(|seed| kinds.map(|kind| (seed, kind))) {
        let truth = Truth::of(seed);
        let mut window = truth.window();
        window.events.retain(|event| !is_gone(&event.what));
        for (from_ns, to_ns, state) in &truth.spans {
            let hard = state.hard.filter(|_| state.nmi.is_none());
            let Some((hard, _)) = hard else { continue };
            let cause = if hard == TIMER { "timer-work" } else { "irq" };
            let proof = Overs::of(&window).prove(cause, state, false, (*from_ns, *to_ns));
            let end = match hard {
                Hard::Irq { irq, .. } => EventData::IrqExit { irq },
                Hard::Vector(vector) => EventData::VectorExit { vector },
                _ => continue,
            };
            assert!(proof.is_none() || !is_gone(&end), "seed {seed}");
        }
    }
}

fn state_of(hard: Hard) -> CpuState {
    CpuState { task: 7, hard: Some((hard, 10)), ..CpuState::default() }
}

fn window(whats: &[(u64, i32, u8, EventData)]) -> Window {
    let event = |(at_ns, pid, flags, what): &(u64, i32, u8, EventData)| Event {
        at_ns: *at_ns,
        cpu: 0,
        pid: *pid,
        flags: *flags,
        preempt: 0,
        what: what.clone(),
    };
    Window { events: whats.iter().map(event).collect(), ..Window::default() }
}

#[test]
fn losses_steal_and_what_does_not_fit_prove_nothing() {
    let vector = Vector::LocalTimer;
    let (entry, exit) = (EventData::VectorEntry { vector }, EventData::VectorExit { vector });
    let flush = EventData::SoftirqRaise { vec: 1 };
    let (state, tile) = (state_of(TIMER), (10, 90));
    let is_proved =
        |window: &Window| Overs::of(window).prove("timer-work", &state, false, tile).is_some();
    let whole = [(10, 7, 0, entry), (90, 7, HARDIRQ, exit)];
    assert!(is_proved(&window(&whole)));
    let with = |at: u64, pid, flags| {
        let mut all = whole.to_vec();
        all.insert(1, (at, pid, flags, flush.clone()));
        window(&all)
    };
    assert!(is_proved(&with(50, 7, HARDIRQ)));
    assert!(!is_proved(&with(50, 7, 0)), "not in an interrupt");
    assert!(!is_proved(&with(50, 8, HARDIRQ)), "over another task");
    // It began twice, and ended twice: which end is whose is not known.
    let mut twice = whole.to_vec();
    twice
        .splice(1..1, [(30, 7, HARDIRQ, whole[0].3.clone()), (40, 7, HARDIRQ, whole[1].3.clone())]);
    assert!(Overs::of(&window(&twice)).prove("timer-work", &state, false, (50, 90)).is_none());
    // An interrupt came in a softirq, and neither its begin nor its end is there.
    let softirq = CpuState { task: 7, softirq: Some(1), ..CpuState::default() };
    let of = |flags| {
        let inner = (50, 7, flags, flush.clone());
        let whole = [
            (10, 7, 0, EventData::SoftirqEntry { vec: 1 }),
            inner,
            (90, 7, 0, EventData::SoftirqExit { vec: 1 }),
        ];
        Overs::of(&window(&whole)).prove("softirq", &softirq, false, tile).is_some()
    };
    assert!(of(0) && !of(HARDIRQ));
    let other = Window { cpu: 1, ..window(&whole) };
    assert!(!is_proved(&other), "of another CPU");
    let lost = |from_ns, to_ns| Window {
        lost: vec![Lost { from_ns, to_ns, count: None }],
        ..window(&whole)
    };
    assert!(!is_proved(&lost(40, 60)) && !is_proved(&lost(80, 95)) && is_proved(&lost(91, 95)));
    assert!(!is_proved(&Window { cut: true, ..window(&whole) }));
    let mut stolen = window(&whole);
    stolen.surroundings.steal_ns = Some(1);
    assert!(!is_proved(&stolen));
    stolen.surroundings.steal_ns = Some(0);
    assert!(is_proved(&stolen));
    stolen.surroundings.smi = Some(1);
    assert!(!is_proved(&stolen));
}

#[test]
fn a_share_is_certain_only_where_all_of_it_is_proved() {
    let row = |ns| ShareRow { cause: "irq".into(), ns, ..ShareRow::default() };
    let proof = |cause, from_ns, to_ns| Proof { cause, from_ns, to_ns };
    let both = [proof("irq", 10, 20), proof("irq", 30, 40)];
    assert!(Share::new(row(20), &both).is_certain());
    for (row, proofs) in [
        (row(21), &both[..]),
        (row(10), &both),
        (row(0), &[]),
        (row(20), &[both[0].clone(), both[0].clone()]),
        (row(20), &[both[0].clone(), proof("softirq", 30, 40)]),
        (ShareRow { alternatives: vec!["stall".into()], ..row(20) }, &both),
        (ShareRow { unrecorded: vec!["switches".into()], ..row(20) }, &both),
    ] {
        assert_eq!(Share::new(row, proofs).certainty(), Certainty::Likely);
    }
}

#[test]
fn what_is_read_back_is_likely() {
    let row = ShareRow { cause: "irq".into(), ns: 5, ..ShareRow::default() };
    let share = Share::assumed(row);
    let json = serde_json::to_value(&share).expect("JSON");
    assert_eq!((&json["certainty"], &json["ns"]), (&"certain".into(), &5.into()));
    let back: Share = serde_json::from_value(json).expect("a share");
    assert_eq!(back.certainty(), Certainty::Likely);
    let nothing = Share::from(ShareRow { cause: "unexplained".into(), ..ShareRow::default() });
    assert_eq!(nothing.certainty(), Certainty::Unknown);
}
