//! Each rule fires on its own fixture, and no other does there.

use super::*;
use crate::binomial::Random;
use crate::threshold;

const SECOND: u64 = 1_000_000_000;

const HOUR: u64 = 3600 * SECOND;

/// Clusters at random times with excesses of 20 µs made by `excess`, over some hours.
fn clusters(
    seed: u64,
    n: usize,
    hours: u64,
    mut excess: impl FnMut(f64, &mut Random) -> f64,
) -> Vec<Peak> {
    let mut random = Random::new(seed);
    let mut times: Vec<u64> = (0..n).map(|_| random.below(hours * HOUR)).collect();
    times.sort_unstable();
    times
        .into_iter()
        .map(|at_ns| {
            let part = at_ns as f64 / (hours * HOUR) as f64;
            let latency_ns = 20_000 + excess(part, &mut random).max(1.0) as u64;
            Peak { at_ns, latency_ns }
        })
        .collect()
}

fn measured(peaks: &[Peak], exposure_ns: u64) -> MeasuredPeaks<'_> {
    MeasuredPeaks {
        peaks,
        complete_ns: 20_000,
        exposure_ns,
        sampling_ns: 1_000_000,
        longest_period_ns: None,
        seed: 7,
    }
}

fn exponential(_: f64, random: &mut Random) -> f64 {
    4000.0 * random.exponential()
}

/// The numbers of the rules that fire.
fn fired(measured: &MeasuredPeaks<'_>, target_ns: u64) -> Vec<u8> {
    match Model::of(measured).level(target_ns) {
        Tail::Level(_) => Vec::new(),
        Tail::Refused { rules } => {
            assert!(rules.iter().all(|rule| !rule.text().is_empty()));
            rules.iter().map(RefusalReason::number).collect()
        }
    }
}

#[test]
fn a_tail_of_chance_has_a_level() {
    let peaks = clusters(1, 400, 8, exponential);
    let Tail::Level(day) = Model::of(&measured(&peaks, 8 * HOUR)).level(24 * HOUR) else {
        panic!("refused: {:?}", fired(&measured(&peaks, 8 * HOUR), 24 * HOUR))
    };
    // 1200 clusters a day: 20 µs + 4 µs ln 1200 = 48.4 µs.
    assert!((day.level_ns / 48_360.0 - 1.0).abs() < 0.15, "{day:?}");
    assert!(day.low_ns < 48_360.0 && 48_360.0 < day.high_ns, "{day:?}");
    assert!(day.clusters == 400 && !day.is_exploratory && day.fit_p >= 0.05, "{day:?}");
    let model = Model::of(&measured(&peaks, 8 * HOUR));
    let Tail::Level(hour) = model.level(HOUR) else { panic!("refused") };
    let Tail::Level(second) = model.level(SECOND) else { panic!("refused") };
    assert_eq!((second.level_ns, second.high_ns), (20_000.0, 20_000.0), "below the threshold");
    assert!(hour.level_ns < day.level_ns && hour.high_ns < day.high_ns);
    assert_eq!(model.weight(), Some(threshold::Weight::Exponential));
    assert!(fired(&measured(&peaks, 8 * HOUR), 8760 * HOUR).contains(&6), "a year");
    // Fewer than a hundred are shown, and marked.
    let few = clusters(2, 70, 8, exponential);
    let Tail::Level(few) = Model::of(&measured(&few, 8 * HOUR)).level(8 * HOUR) else {
        panic!("refused")
    };
    assert!(few.is_exploratory && few.clusters == 70);
}

#[test]
fn rule_1_too_few() {
    let peaks = clusters(3, 49, 8, exponential);
    assert_eq!(fired(&measured(&peaks, 8 * HOUR), 24 * HOUR), [1]);
    assert_eq!(fired(&measured(&[], 8 * HOUR), 24 * HOUR), [1]);
}

#[test]
fn rule_2_not_alike() {
    // It gets worse in the second half, by a scale that still fits one tail.
    let worse = |part: f64, random: &mut Random| {
        (if part < 0.5 { 3000.0 } else { 5000.0 }) * random.exponential()
    };
    assert_eq!(fired(&measured(&clusters(4, 400, 8, worse), 8 * HOUR), 24 * HOUR), [2]);
    // Halves that are alike, of regimes of a quarter of an hour.
    let regimes = |part: f64, random: &mut Random| {
        (if ((part * 32.0) as u64).is_multiple_of(2) { 1500.0 } else { 6000.0 })
            * random.exponential()
    };
    let peaks = clusters(4, 400, 8, regimes);
    assert!(fired(&measured(&peaks, 8 * HOUR), 24 * HOUR).contains(&2));
    // Three of four come within a tenth of the time.
    let mut peaks = clusters(4, 400, 8, exponential);
    for peak in peaks.iter_mut().filter(|peak| !peak.latency_ns.is_multiple_of(4)) {
        peak.at_ns = 4 * HOUR + peak.at_ns / 10;
    }
    peaks.sort_unstable_by_key(|peak| peak.at_ns);
    assert!(fired(&measured(&peaks, 8 * HOUR), 24 * HOUR).contains(&2));
}

#[test]
fn rule_3_periodic() {
    // One in three comes every 40 s, no larger than the others.
    let mut peaks = clusters(5, 200, 8, exponential);
    let mut random = Random::new(50);
    peaks.extend((0..100).map(|i| Peak {
        at_ns: 1000 * SECOND + i * 240 * SECOND + random.below(1_000_000),
        latency_ns: 20_000 + (4000.0 * random.exponential()) as u64,
    }));
    peaks.sort_unstable_by_key(|peak| peak.at_ns);
    let measured = measured(&peaks, 8 * HOUR);
    assert_eq!(fired(&measured, 24 * HOUR), [3]);
    let Tail::Refused { rules } = Model::of(&measured).level(24 * HOUR) else { panic!("a level") };
    let RefusalReason::Periodic { period_ns, count, .. } = rules[0] else { panic!("{rules:?}") };
    assert!((period_ns / 240e9 - 1.0).abs() < 1e-4 && count >= 90, "{rules:?}");
}

#[test]
fn rule_4_no_fit() {
    // Cantor's set: two lumps, each of two lumps, and so on, over whichever threshold.
    let lumps = |_: f64, random: &mut Random| {
        let sides = (1..14).map(|i| 2.0 * (random.unit() * 2.0).floor() / 3.0_f64.powi(i));
        9000.0 * sides.sum::<f64>()
    };
    assert_eq!(fired(&measured(&clusters(6, 450, 8, lumps), 8 * HOUR), 24 * HOUR), [4]);
}

#[test]
fn rule_5_too_wide() {
    let heavy = |xi: f64| {
        move |_: f64, random: &mut Random| 8000.0 * (xi * random.exponential()).exp_m1() / xi
    };
    assert_eq!(fired(&measured(&clusters(7, 300, 8, heavy(2.5)), 8 * HOUR), 24 * HOUR), [5]);
    // A heavy tail alone is no reason: its upper end says what it may come to.
    let peaks = clusters(7, 300, 8, heavy(0.3));
    let Tail::Level(level) = Model::of(&measured(&peaks, 8 * HOUR)).level(24 * HOUR) else {
        panic!("refused")
    };
    assert!(level.high_ns > 1.5 * level.level_ns && level.high_ns.is_finite(), "{level:?}");
}

#[test]
fn rule_6_too_far() {
    let peaks = clusters(1, 400, 8, exponential);
    assert!(fired(&measured(&peaks, 8 * HOUR), 80 * HOUR).is_empty());
    assert_eq!(fired(&measured(&peaks, 8 * HOUR), 81 * HOUR), [6]);
}

#[test]
fn rule_7_too_coarse() {
    // A clock that counts in microseconds.
    let coarse = |_: f64, random: &mut Random| (4.0 * random.exponential()).ceil() * 1000.0;
    assert_eq!(fired(&measured(&clusters(8, 60, 8, coarse), 8 * HOUR), 24 * HOUR), [7]);
}

#[test]
fn rule_8_one_value() {
    // A tail that ends at 33 µs, and one of another making.
    let bounded =
        |_: f64, random: &mut Random| 13_000.0 * (1.0 - (-0.3 * random.exponential()).exp());
    let mut peaks = clusters(9, 300, 8, bounded);
    peaks[140].latency_ns = 20_000 + 22_000;
    assert_eq!(fired(&measured(&peaks, 8 * HOUR), 24 * HOUR), [8]);
}

#[test]
fn rule_9_too_short() {
    // Ten minutes in which the system management interrupt of every quarter of an hour, 400 µs
    // long, did not come: the tail looks well, and no number is given for an hour, nor 1000 of
    // them.
    let mut random = Random::new(10);
    let mut times: Vec<u64> = (0..400).map(|_| random.below(600 * SECOND)).collect();
    times.sort_unstable();
    let peaks: Vec<Peak> = times
        .into_iter()
        .map(|at_ns| Peak { at_ns, latency_ns: 12_000 + (1000.0 * random.exponential()) as u64 })
        .collect();
    let mut short = MeasuredPeaks { complete_ns: 12_000, ..measured(&peaks, 600 * SECOND) };
    assert_eq!(fired(&short, HOUR), [9]);
    assert_eq!(fired(&short, 1000 * HOUR), [6, 9]);
    // A known period asks for more.
    let long = clusters(1, 400, 8, exponential);
    short = MeasuredPeaks { longest_period_ns: Some(3 * HOUR), ..measured(&long, 8 * HOUR) };
    assert_eq!(fired(&short, HOUR), [9]);
}

#[test]
fn chance_alone_is_seldom_refused() {
    // Rules 2, 3, 4, 5, 8 together, on what deserves a level.
    let refused = (100..112)
        .filter(|&seed| {
            let peaks = clusters(seed, 200, 8, exponential);
            !fired(&measured(&peaks, 8 * HOUR), 24 * HOUR).is_empty()
        })
        .count();
    assert!(refused <= 3, "{refused} of 12");
}

#[test]
fn groups_have_one_peak() {
    let peak = |at_ns, latency_ns| Peak { at_ns, latency_ns };
    let samples = [peak(50, 7), peak(0, 3), peak(10, 9), peak(20, 4), peak(41, 5)];
    assert_eq!(peaks(samples, 20), [peak(10, 9), peak(50, 7)]);
    assert!(peaks([], 20).is_empty());
}
