//! Slices with known effects, and what must be said of them.

use rtproof_host::tune::{Change, Compare, Item, Switching};
use rtproof_judge::Impact;

use super::*;

const TERMS: Terms = Terms { margin: 0.05, total_ns: 60_000_000_000, mirrored: false, knobs: 1 };

fn knob(name: &str, kind: Switching) -> Candidate {
    let change = Change::Value {
        path: format!("/sys/{name}"),
        value: "1".into(),
        compare: Compare::Text,
        couples: Vec::new(),
    };
    let item = (0, Item { change, checks: vec![name.into()] });
    Candidate {
        name: name.into(),
        impact: Impact::Tens,
        kind,
        now: vec![item],
        later: Vec::new(),
        settings: Vec::new(),
    }
}

fn slice(
    number: usize,
    part: SlicePart,
    pair: usize,
    on: &[u32],
    p999_ns: u64,
    max_ns: u64,
) -> Slice {
    Slice {
        number: number as u32,
        part,
        pair: pair as u32,
        on: on.to_vec(),
        from_ns: 0,
        to_ns: 1,
        scheduled: 1000,
        p999_ns: Some(p999_ns),
        max_ns: Some(max_ns),
        missed: 0,
    }
}

/// Twelve pairs of knob 0 with wobble; `on` maps (p99.9, max) without to those with.
fn pairs(wobble: u64, on: impl Fn(u64, u64) -> (u64, u64)) -> Vec<Slice> {
    (0..24)
        .map(|i| {
            let (pair, first) = (i / 2, i % 2 == 0);
            let (p999, max) =
                (100_000 + wobble * (i as u64 * 7 % 11), 200_000 + wobble * (i as u64 * 5 % 13));
            let is_on = first == (pair % 3 == 0);
            let (p999, max) = if is_on { on(p999, max) } else { (p999, max) };
            slice(i, SlicePart::Pair, pair, if is_on { &[0] } else { &[] }, p999, max)
        })
        .collect()
}

fn result_of(slices: &[Slice]) -> Reported {
    analyse(&[knob("k", Switching::Toggled)], slices, &Untried::new(), TERMS).remove(0)
}

#[test]
fn what_helps_helps() {
    let reported = result_of(&pairs(100, |p999, max| (p999 * 7 / 10, max)));
    assert_eq!(
        (reported.decision, reported.how, reported.kept),
        (Decision::Helps, TrialMode::Toggled, false)
    );
    let [p999, max] = &reported.effects[..] else { panic!("{reported:?}") };
    assert!((690_000..710_000).contains(&p999.ratio_ppm), "{p999:?}");
    assert!(p999.low_ppm < Some(p999.ratio_ppm) && p999.high_ppm > Some(p999.ratio_ppm));
    assert_eq!((p999.p_ppb, p999.adjusted_ppb), (Some(488_281), Some(530_740)));
    assert!((990_000..1_010_000).contains(&max.ratio_ppm));
    assert!(
        reported
            .why
            .starts_with("lower by more than 5 %: p99.9 −30 % (median of the ratios of pairs"),
        "{}",
        reported.why
    );
}

#[test]
fn what_hurts_the_worst_hurts() {
    let reported = result_of(&pairs(100, |p999, max| (p999, 3 * max)));
    assert_eq!(reported.decision, Decision::Hurts);
    assert!(reported.why.starts_with("higher by more than 5 %: max +200 %"), "{}", reported.why);
}

#[test]
fn a_choice_is_left_to_the_user() {
    let reported = result_of(&pairs(100, |p999, max| (p999 / 2, 3 * max)));
    assert_eq!(reported.decision, Decision::CannotDecide);
    assert!(reported.why.contains("a choice for you"), "{}", reported.why);
}

#[test]
fn too_few_slices_give_no_answer() {
    let same = result_of(&pairs(10, |p999, max| (p999, max)));
    assert_eq!(same.decision, Decision::NoDifference);
    assert!(same.why.contains("larger than 5 %"), "{}", same.why);
    let noisy = result_of(&pairs(20_000, |p999, max| (p999, max)));
    assert_eq!(noisy.decision, Decision::CannotDecide);
    assert!(
        noisy.why.contains("is found four times in five") && noisy.why.contains("would show it"),
        "{}",
        noisy.why
    );
    let few = result_of(&pairs(10, |p999, max| (p999 / 9, max))[..10]);
    assert_eq!(few.decision, Decision::CannotDecide);
    assert!(
        few.why.starts_with("5 pairs were measured, and fewer than 6 decide nothing of 1 knob"),
        "{}",
        few.why
    );
    let none = result_of(&[]);
    assert_eq!((none.decision, none.effects.len()), (Decision::CannotDecide, 0));
    // Half a pair does not count.
    assert_eq!(result_of(&pairs(10, |p999, max| (p999, max))[..1]).effects.len(), 0);
}

#[test]
fn before_and_after_decide_nothing() {
    let mut slices: Vec<_> =
        (0..4).map(|i| slice(i, SlicePart::Before, 0, &[], 90_000, 90_000)).collect();
    slices.extend((4..8).map(|i| slice(i, SlicePart::Once, 0, &[0], 9_000, 9_000)));
    let knobs = [
        knob("smt", Switching::Once),
        knob("limits", Switching::Later),
        knob("bad", Switching::Toggled),
    ];
    let untried = Untried::from([(2, "it cannot be written".into())]);
    let all = analyse(&knobs, &slices, &untried, TERMS);
    assert_eq!((all[0].decision, all[0].how), (Decision::CannotDecide, TrialMode::Once));
    assert_eq!((all[0].effects[0].ratio_ppm, all[0].effects[0].p_ppb), (100_000, None));
    assert!(all[0].why.contains("drift is not excluded"));
    assert_eq!((all[1].decision, all[1].how), (Decision::NotTried, TrialMode::NotTried));
    assert!(all[1].why.contains("next boot"));
    assert_eq!(
        (all[2].decision, all[2].why.as_str()),
        (Decision::NotTried, "it cannot be written")
    );
}
