//! A made-up machine whose latency follows the knobs, and the result of a trial on it.

use rtproof_host::tune::{Change, Compare, Item, Switching};
use rtproof_judge::Impact;
use rtproof_record::effects::TrialDesign;

use super::*;
use crate::experiment::plan::{BEFORE, ONCE, SharedSchedule as Timed, share};

const S: u64 = 1_000_000_000;

const MS: u64 = 1_000_000;

/// A switch that remembers.
#[derive(Default)]
struct Fake {
    on: Vec<String>,
    kept: Vec<String>,
    calls: usize,
    refuses: Option<&'static str>,
    stuck_after: Option<usize>,
}

fn names(items: &[Item]) -> Vec<String> {
    items.iter().map(|item| item.change.target()).collect()
}

impl Switch for Fake {
    fn on(&mut self, items: &[Item]) -> anyhow::Result<()> {
        assert!(self.on.is_empty(), "only while nothing is on");
        self.calls += 1;
        let names = names(items);
        if let Some(refused) = names.iter().find(|name| Some(name.as_str()) == self.refuses) {
            anyhow::bail!("{refused}: permission denied");
        }
        self.on = names;
        Ok(())
    }

    fn off(&mut self) -> anyhow::Result<()> {
        anyhow::ensure!(self.stuck_after.is_none_or(|calls| self.calls < calls), "it is stuck");
        self.on.clear();
        Ok(())
    }

    fn keep(&mut self, items: &[Item]) -> anyhow::Result<()> {
        assert!(self.on.is_empty() && self.kept.is_empty());
        self.kept = names(items);
        Ok(())
    }
}

fn knob(path: &str, kind: Switching) -> Candidate {
    let value = |path: &str| Change::Value {
        path: path.into(),
        value: "1".into(),
        compare: Compare::Text,
        couples: Vec::new(),
    };
    let item = |place, path: &str| (place, Item { change: value(path), checks: vec![path.into()] });
    let now = if kind == Switching::Later { vec![] } else { vec![item(1, path)] };
    let later = vec![item(0, &format!("{path}.conf"))];
    Candidate { name: path.into(), impact: Impact::Tens, kind, now, later, settings: Vec::new() }
}

/// What a trial left behind.
struct Done {
    reported: Vec<Reported>,
    slices: Vec<Slice>,
    trial: Option<TrialSummary>,
    said: Vec<String>,
    trouble: Option<String>,
}

/// Runs a trial of a minute on two CPUs; `latency_ns` of what is on and a random number is how late
/// the latest wake-ups of a slot are.
fn trial(
    fake: &mut Fake,
    knobs: &[Candidate],
    until_ns: u64,
    latency_ns: impl Fn(&[String], u64) -> u64,
) -> Done {
    let count = |kind| knobs.iter().filter(|knob| knob.kind == kind).count();
    let shares =
        share(60 * S, count(Switching::Toggled), count(Switching::Once), 2, MS).expect("shares");
    let (mut said, mut reported) = (Vec::new(), Vec::<Reported>::new());
    let (mut slices, mut trial, mut now_ns, mut seed) = (Vec::new(), None, 0, 1_u64);
    let mut tell = |text: String| said.push(text);
    let fake_ptr = std::cell::RefCell::new(fake);
    struct Shared<'a, 'b>(&'a std::cell::RefCell<&'b mut Fake>);
    impl Switch for Shared<'_, '_> {
        fn on(&mut self, items: &[Item]) -> anyhow::Result<()> {
            self.0.borrow_mut().on(items)
        }
        fn off(&mut self) -> anyhow::Result<()> {
            self.0.borrow_mut().off()
        }
        fn keep(&mut self, items: &[Item]) -> anyhow::Result<()> {
            self.0.borrow_mut().keep(items)
        }
    }
    let mut shared = Shared(&fake_ptr);
    let (schedule, plan, untried) = Timed::new(knobs, shares, 60 * S, 42);
    let mut conduct =
        Conduct::new(&mut shared, &mut tell, knobs.to_vec(), Box::new(schedule), plan, untried, 2);
    let mut take = |conduct: &mut Conduct<'_>| {
        let (tick, _) = conduct.tick();
        trial = tick.trial.or(trial.take());
        if !tick.knobs.is_empty() {
            reported = tick.knobs;
        }
        slices.extend(tick.slices);
    };
    while now_ns < until_ns {
        // A slot of each thread, then whatever the switcher wants by then.
        let from_ns = now_ns;
        now_ns += SLOT_NS;
        for thread in 0..2 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
            let fake = fake_ptr.borrow();
            let on = if fake.kept.is_empty() { &fake.on } else { &fake.kept };
            let tail_ns = latency_ns(on, seed >> 33);
            let mut slot = Slot { from_ns, to_ns: now_ns, ..Slot::default() };
            (0..100).for_each(|i| {
                slot.record_wake(
                    from_ns + i * MS,
                    from_ns + i * MS + if i == 50 { tail_ns } else { 2000 },
                );
            });
            drop(fake);
            conduct.take(thread, &slot, 0);
        }
        while conduct.due(&|| now_ns + AFTER_NS) <= now_ns + AFTER_NS {}
        take(&mut conduct);
    }
    conduct.finish(now_ns);
    take(&mut conduct);
    let trouble = conduct.end().trouble.map(|error| format!("{error:#}"));
    Done { reported, slices, trial, said, trouble }
}

fn noise(random: u64) -> u64 {
    100_000 + random % 5_000
}

#[test]
fn what_helps_is_kept_and_the_rest_is_not() {
    let mut fake = Fake::default();
    let knobs = [
        knob("a", Switching::Toggled),
        knob("b", Switching::Toggled),
        knob("c", Switching::Toggled),
    ];
    let done = trial(&mut fake, &knobs, 60 * S, |on, random| {
        let less = if on.contains(&"b".into()) { 2 } else { 1 };
        let more = if on.contains(&"c".into()) { 3 } else { 1 };
        noise(random) / less * more
    });
    let decisions: Vec<_> =
        done.reported.iter().map(|reported| (reported.decision, reported.kept)).collect();
    assert_eq!(
        decisions[1..],
        [(Decision::Helps, true), (Decision::Hurts, false)],
        "{:#?}",
        done.reported
    );
    assert!(!decisions[0].1 && decisions[0].0 != Decision::Helps);
    assert_eq!(fake.kept, ["b.conf", "b"], "in the order of the plan, with what comes later");
    assert!(fake.on.is_empty() && done.trouble.is_none());
    let of = |part| done.slices.iter().filter(|slice| slice.part == part).count();
    assert_eq!((of(SlicePart::Before), of(SlicePart::After)), (BEFORE as usize, ONCE as usize));
    assert_eq!(of(SlicePart::Pair), 3 * 2 * done.trial.as_ref().expect("a trial").pairs as usize);
    assert!(done.slices.iter().all(|slice| slice.scheduled >= 1000), "equal exposure");
    assert!(done.trial.expect("a trial").detectable_ppm.is_some());
    assert!(done.said[0].contains("is found four times in five"), "{:?}", done.said);
}

#[test]
fn many_knobs_are_tried_at_once() {
    let mut fake = Fake::default();
    let knobs: Vec<Candidate> =
        ('a'..='k').map(|name| knob(&name.to_string(), Switching::Toggled)).collect();
    let done = trial(&mut fake, &knobs, 60 * S, |on, random| {
        if on.contains(&"e".into()) { noise(random) / 2 } else { noise(random) }
    });
    let kept: Vec<_> = done
        .reported
        .iter()
        .filter(|reported| reported.kept)
        .map(|reported| &reported.name)
        .collect();
    assert_eq!(kept, ["e"]);
    assert_eq!(done.trial.expect("a trial").design, TrialDesign::Mirrored);
}

#[test]
fn a_knob_that_cannot_be_made_is_left_out() {
    let mut fake = Fake { refuses: Some("a"), ..Fake::default() };
    let knobs: Vec<Candidate> =
        ('a'..='k').map(|name| knob(&name.to_string(), Switching::Toggled)).collect();
    let done = trial(&mut fake, &knobs, 60 * S, |on, random| {
        if on.contains(&"e".into()) { noise(random) / 2 } else { noise(random) }
    });
    assert_eq!(done.reported[0].decision, Decision::NotTried);
    assert!(done.reported[0].why.contains("a: permission denied"), "{}", done.reported[0].why);
    assert_eq!(done.reported[4].decision, Decision::Helps);
    assert!(done.slices.iter().all(|slice| !slice.on.contains(&0)));
}

#[test]
fn what_is_made_once_is_reported_and_undone() {
    let mut fake = Fake::default();
    let knobs = [knob("smt", Switching::Once), knob("limits", Switching::Later)];
    let done = trial(&mut fake, &knobs, 60 * S, |on, random| {
        if on.is_empty() { noise(random) } else { noise(random) / 10 }
    });
    assert_eq!(
        (done.reported[0].how, done.reported[0].decision),
        (TrialMode::Once, Decision::CannotDecide)
    );
    assert!((90_000..110_000).contains(&done.reported[0].effects[0].ratio_ppm));
    assert_eq!((done.reported[1].how, done.reported[1].kept), (TrialMode::NotTried, false));
    assert!(fake.on.is_empty() && fake.kept.is_empty());
    assert_eq!(fake.calls, 1);
}

#[test]
fn cut_short_nothing_stays() {
    let mut fake = Fake::default();
    for until in [0, 5 * S, 20 * S, 40 * S] {
        let done = trial(&mut fake, &[knob("a", Switching::Toggled)], until, |on, random| {
            if on.is_empty() { noise(random) } else { noise(random) / 10 }
        });
        assert!(fake.on.is_empty() && fake.kept.is_empty());
        assert!(done.reported.iter().all(|reported| !reported.kept));
        assert!(
            until == 0 || done.reported[0].why.contains("nothing was kept"),
            "{:?}",
            done.reported
        );
    }
}

#[test]
fn what_cannot_be_taken_back_ends_the_trial() {
    let mut fake = Fake { stuck_after: Some(5), ..Fake::default() };
    let done =
        trial(&mut fake, &[knob("a", Switching::Toggled)], 60 * S, |_, random| noise(random));
    let trouble = done.trouble.expect("trouble");
    assert!(trouble.contains("could not be taken back") && trouble.contains("stuck"), "{trouble}");
    assert_eq!(fake.calls, 5, "nothing more was changed");
    assert!(fake.kept.is_empty());
}
