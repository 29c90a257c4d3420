//! Experiments on a made-up machine whose latency follows the knobs.

use rtproof_host::tune::{Change, Compare, Item, Switching};
use rtproof_judge::Impact;
use rtproof_record::effects::{Decision, TrialMode};

use super::*;
use crate::experiment::screening;

fn knob(name: &str) -> Candidate {
    let change = Change::Value {
        path: format!("/sys/{name}"),
        value: "1".into(),
        compare: Compare::Text,
        couples: Vec::new(),
    };
    let now = vec![(0, Item { change, checks: vec![name.into()] })];
    let (later, settings) = (Vec::new(), Vec::new());
    Candidate {
        name: name.into(),
        impact: Impact::Tens,
        kind: Switching::Toggled,
        now,
        later,
        settings,
    }
}

/// What an experiment left behind.
struct Done {
    reported: Vec<Reported>,
    slices: Vec<Slice>,
    said: Vec<String>,
    profile: Vec<usize>,
}

/// Runs an experiment with so many knobs; `factor` of what is on multiplies the latency.
fn experiment(n: usize, seed: u64, factor: impl Fn(&[usize]) -> f64) -> Done {
    let knobs: Vec<Candidate> = (0..n).map(|at| knob(&format!("k{at}"))).collect();
    let setup = ExperimentSetup::new(n, 12, 1_000_000_000, false, 2000.0).expect("a set-up");
    let (mut schedule, mut trial) = StagedExperiment::new(&knobs, setup.clone(), seed, Some(0.1));
    let (mut slices, mut said, mut untried) = (Vec::new(), Vec::new(), Untried::new());
    let mut random = seed.wrapping_mul(2) + 1;
    loop {
        said.extend(schedule.evaluate(&slices, &mut trial));
        let Some(task) = schedule.task(&slices, &mut untried, 0) else { break };
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        let noise = 0.96 + (random >> 40) as f64 / (1 << 24) as f64 * 0.08;
        // Drifts by a tenth, too.
        let drift = 1.0 + 0.1 * slices.len() as f64 / 60.0;
        let p999_ns = (100_000.0 * factor(&task.on) * noise * drift) as u64;
        slices.push(Slice {
            number: u32::try_from(slices.len()).expect("few"),
            part: task.part,
            pair: task.pair,
            on: task.on.iter().map(|&at| at as u32).collect(),
            from_ns: 0,
            to_ns: 1,
            scheduled: 2000,
            p999_ns: Some(p999_ns),
            max_ns: Some(p999_ns + 50_000 + (random >> 50)),
            missed: 0,
        });
    }
    let reported = schedule.analysis(&knobs, &slices, &untried);
    let terms = Terms { margin: MARGIN, total_ns: 0, mirrored: false, knobs: 1 };
    let profile = screening::profile(&reported, &slices, &knobs, terms);
    Done { reported, slices, said, profile }
}

fn decisions(done: &Done, those: &[usize]) -> Vec<Decision> {
    those.iter().map(|&at| done.reported[at].decision).collect()
}

#[test]
fn of_eleven_the_ones_that_matter_are_named() {
    let done = experiment(11, 5, |on| {
        let one = if on.contains(&3) { 0.6 } else { 1.0 };
        let other = if on.contains(&7) { 0.75 } else { 1.0 };
        let worse = if on.contains(&9) { 1.5 } else { 1.0 };
        one * other * worse
    });
    use rtproof_record::effects::Decision::{Helps, Hurts};
    assert_eq!(decisions(&done, &[3, 7, 9]), [Helps, Helps, Hurts], "{:#?}", done.reported);
    assert!(done.reported.iter().enumerate().all(|(at, reported)| {
        [3, 7, 9].contains(&at) || ![Helps, Hurts].contains(&reported.decision)
    }));
    assert_eq!(done.profile, [3, 7]);
    assert!(
        done.reported.iter().all(|reported| !reported.kept && reported.how == TrialMode::Toggled)
    );
    let screened = done.slices.iter().filter(|slice| slice.part == SlicePart::Screen).count();
    assert_eq!(screened, 24, "Plackett and Burman's twelve rows, folded over");
    assert!(done.said[0].contains("stand out: k3, k7"), "{:?}", done.said);
    assert!(done.reported[3].why.contains("together: p99.9 −"), "{}", done.reported[3].why);
    // Each is compared beside the others that help.
    let pairs = done.slices.iter().filter(|slice| slice.part == SlicePart::Pair);
    assert!(pairs.clone().any(|slice| slice.on == [3, 7]) && pairs.clone().any(|s| s.on == [7]));
    assert!(pairs.clone().any(|slice| slice.on == [3, 7, 9]), "what hurts is tried beside them");
}

#[test]
fn two_knobs_of_the_same_effect_are_reported_as_such() {
    // Either of them takes all of it away.
    let done = experiment(3, 8, |on| if on.contains(&0) || on.contains(&1) { 0.5 } else { 1.0 });
    use rtproof_record::effects::Decision::{Helps, Hurts};
    for at in [0, 1] {
        assert!(![Helps, Hurts].contains(&done.reported[at].decision), "{:?}", done.reported[at]);
        assert!(done.reported[at].why.contains("beside the others it adds nothing"));
    }
    assert_eq!(done.profile, [0, 1], "together they help");
    let screened = done.slices.iter().filter(|slice| slice.part == SlicePart::Screen).count();
    assert_eq!(screened, 24, "every combination of three, thrice");
}

#[test]
fn where_nothing_matters_nothing_is_named() {
    for seed in 0..10 {
        let done = experiment(6, seed, |_| 1.0);
        let is_named =
            |reported: &&Reported| [Decision::Helps, Decision::Hurts].contains(&reported.decision);
        assert_eq!(done.reported.iter().find(is_named), None);
        assert!(done.profile.is_empty());
        assert!(
            done.reported.iter().all(|reported| !reported.effects.is_empty()),
            "numbers for each"
        );
    }
}

#[test]
fn a_single_knob_is_paired_at_once() {
    let done = experiment(1, 2, |on| if on.is_empty() { 1.0 } else { 0.8 });
    assert_eq!((done.reported[0].decision, done.profile.as_slice()), (Decision::Helps, &[0][..]));
    assert!(done.slices.iter().all(|slice| slice.part == SlicePart::Pair) && done.said.is_empty());
    assert_eq!(done.slices.len(), 24);
}
