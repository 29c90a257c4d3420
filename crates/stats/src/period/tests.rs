//! Reference values, and planted periods with their truth.

use std::f64::consts::TAU;

use super::*;
use crate::binomial::Random;

const MS: u64 = 1_000_000;

const SECOND: u64 = 1_000_000_000;

fn ask() -> PeriodOptions<'static> {
    PeriodOptions { sampling_ns: MS, shortest_ns: 20 * MS, hints_ns: &[] }
}

/// Ascending, on the grid of the wake-ups, one of a cluster.
fn seen(mut times: Vec<u64>, sampling_ns: u64) -> Vec<u64> {
    for time in &mut times {
        *time = time.div_ceil(sampling_ns) * sampling_ns;
    }
    times.sort_unstable();
    times.dedup_by(|b, a| *b - *a <= 10 * sampling_ns);
    times
}

fn scattered(n: u64, duration_ns: u64, random: &mut Random) -> Vec<u64> {
    (0..n).map(|_| random.below(duration_ns)).collect()
}

/// Events at every multiple of a period, late by up to `jitter_ns`.
fn periodic(period_ns: u64, duration_ns: u64, jitter_ns: u64, random: &mut Random) -> Vec<u64> {
    let phase = random.below(period_ns);
    (0..(duration_ns - phase) / period_ns)
        .map(|i| phase + i * period_ns + random.below(jitter_ns))
        .collect()
}

#[test]
fn rayleigh_reference_values() {
    // With one harmonic, H is twice the z of Rayleigh's test.
    let degrees = [20.0, 25.0, 30.0, 35.0, 40.0, 45.0, 50.0, 60.0, 70.0, 200.0_f64];
    let got = H::of(&degrees.map(|degrees| degrees / 360.0), 1.0, 1);
    assert!((got.h / 2.0 - 6.014_944_655_678_845).abs() < 1e-5, "{got:?}");
}

#[test]
fn h_is_the_definition_summed_plainly() {
    let mut random = Random::new(4);
    let times: Vec<f64> = (0..37).map(|_| 60.0 * random.unit()).collect();
    let frequency = 1.7;
    let (mut sum, mut want) = (0.0, f64::MIN);
    for k in 1..=20 {
        let angles: Vec<f64> = times.iter().map(|t| TAU * frequency * t * f64::from(k)).collect();
        let (sin, cos) = angles.iter().fold((0.0, 0.0), |(s, c), a| (s + a.sin(), c + a.cos()));
        sum += 2.0 * f64::hypot(sin, cos).powi(2) / times.len() as f64;
        want = want.max(sum - 4.0 * f64::from(k) + 4.0);
    }
    let got = H::of(&times, frequency, 20);
    assert!((got.h - want).abs() < 1e-4, "{got:?} {want}");
    assert_eq!(H::of(&[], 1.0, 20).h, 0.0);
    // p of one frequency, over many draws (e^(-0.4 H): de Jager and Buesching 2010).
    let by_chance = (0..4000).filter(|_| {
        let times: Vec<f64> = (0..50).map(|_| 60.0 * random.unit()).collect();
        H::of(&times, frequency, 20).p() < 0.05
    });
    let share = by_chance.count() as f64 / 4000.0;
    assert!((0.03..0.065).contains(&share), "{share}");
}

#[test]
fn planted_periods_are_found_with_their_fundamental() {
    let mut errors = Vec::new();
    for seed in 0..50 {
        let mut random = Random::new(seed);
        let duration = 60 * SECOND;
        let period = 200 * MS + random.below(1800 * MS);
        let mut times = periodic(period, duration, MS, &mut random);
        // One spike in three follows the period.
        let others = 2 * times.len() as u64;
        times.extend(scattered(others, duration, &mut random));
        let found = search(&seen(times, MS), &ask()).expect("a period");
        assert!(found.p < 0.001, "seed {seed}: {found:?}");
        errors.push((found.period_ns / period as f64 - 1.0).abs());
        assert!(errors[seed as usize] < 5e-4, "seed {seed}: {period} {found:?}");
        assert!(found.fold.width_ns < 0.1 * found.period_ns, "seed {seed}: {found:?}");
    }
    errors.sort_unstable_by(f64::total_cmp);
    assert!(errors[25] < 5e-5 && errors[47] < 2e-4, "{errors:?}");
}

#[test]
fn noise_has_no_period() {
    let mut alarms = 0;
    for seed in 0..100 {
        let mut random = Random::new(7000 + seed);
        // Few, some and many spikes.
        let n = [6, 12, 40, 120, 400][seed as usize % 5];
        let times = seen(scattered(n, 60 * SECOND, &mut random), MS);
        alarms += u32::from(search(&times, &ask()).is_some_and(|found| found.p < 0.01));
    }
    assert!(alarms <= 2, "{alarms} false alarms of 100");
}

#[test]
fn spikes_that_come_and_go_have_no_period() {
    // Thirty times as many in the last third, and bunches of 3 s at random.
    let mut alarms = 0;
    for seed in 0..60 {
        let mut random = Random::new(9000 + seed);
        let mut times = scattered(20, 40 * SECOND, &mut random);
        times.extend(scattered(300, 20 * SECOND, &mut random).iter().map(|t| t + 40 * SECOND));
        if seed % 2 == 1 {
            times.clear();
            for _ in 0..8 {
                let from = random.below(57 * SECOND);
                times.extend(scattered(30, 3 * SECOND, &mut random).iter().map(|t| t + from));
            }
        }
        alarms += u32::from(search(&seen(times, MS), &ask()).is_some_and(|found| found.p < 0.01));
    }
    assert!(alarms <= 1, "{alarms} false alarms of 60");
}

#[test]
fn few_spikes_that_skip_periods() {
    // A hypervisor's quota: all at multiples of 100 ms, few of them (facts: 100, 900, 300 ...).
    let mut found_right = 0;
    for seed in 0..50 {
        let mut random = Random::new(300 + seed);
        let times: Vec<u64> =
            (0..31).map(|_| random.below(600) * 100 * MS + random.below(MS)).collect();
        let found = search(&seen(times, MS), &ask()).expect("a period");
        let right = (found.period_ns / (100 * MS) as f64 - 1.0).abs() < 5e-4;
        found_right += u32::from(right && found.p < 1e-6 && found.fold.follow >= 28);
    }
    assert!(found_right >= 48, "{found_right} of 50");
}

#[test]
fn all_of_a_period_and_its_width() {
    let mut random = Random::new(5);
    let times = seen(periodic(SECOND, 60 * SECOND, 3 * MS, &mut random), MS);
    let found = search(&times, &ask()).expect("a period");
    assert_eq!((found.fold.follow, found.fold.of), (59, 59));
    assert!((1.0..4.1).contains(&(found.fold.width_ns / MS as f64)), "{found:?}");
    assert!((found.period_ns - SECOND as f64).abs() < 4.0 * found.error_ns, "{found:?}");
    assert!(found.error_ns < 20_000.0 && found.p < 1e-9, "{found:?}");
}

#[test]
fn a_broad_period_is_not_taken_for_a_longer_one() {
    // Spikes in a third of each period: one harmonic holds nearly all of it.
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let period = SECOND + random.below(SECOND);
        let times: Vec<u64> = (0..200)
            .map(|_| random.below(60 * SECOND / period) * period + random.below(period / 3))
            .collect();
        let found = search(&seen(times, MS), &ask()).expect("a period");
        let ratio = found.period_ns / period as f64;
        assert!((ratio - 1.0).abs() < 5e-3, "seed {seed}: {ratio} {found:?}");
    }
}

#[test]
fn short_periods_of_long_runs() {
    let mut random = Random::new(11);
    let hour = 3600 * SECOND;
    // Dense: found in a short stretch, followed through the whole.
    let times = seen(periodic(SECOND, hour, MS, &mut random), MS);
    let found = search(&times, &ask()).expect("a period");
    assert!((found.period_ns / 1e9 - 1.0).abs() < 1e-6, "{found:?}");
    assert!(found.fold.of > 3590 && found.fold.follow > 3590, "{found:?}");
    // Sparse: forty in a day, at whole seconds; found because one second is known to be about.
    let times: Vec<u64> =
        (0..40).map(|_| random.below(86_400) * SECOND + random.below(3 * MS)).collect();
    let hinted = PeriodOptions { hints_ns: &[SECOND], ..ask() };
    let found = search(&seen(times, MS), &hinted).expect("a period");
    assert!((found.period_ns / 1e9 - 1.0).abs() < 1e-6 && found.p < 1e-6, "{found:?}");
}

#[test]
fn work_is_bounded_and_bad_input_gives_nothing() {
    let mut random = Random::new(6);
    let many = seen(scattered(200_000, 86_400 * SECOND, &mut random), MS);
    assert!(search(&many, &ask()).is_some_and(|found| found.p > 0.01));
    assert_eq!(search(&[], &ask()), None);
    assert_eq!(search(&[7; 9], &ask()), None);
    assert_eq!(search(&[1, 2, 3, 4], &ask()), None);
    let nonsense = PeriodOptions { sampling_ns: 0, shortest_ns: 0, hints_ns: &[0, u64::MAX] };
    let far = [0, 1, 2, 3, 4, u64::MAX / 2, u64::MAX];
    let _ = search(&far, &nonsense);
    assert_eq!(fold(&[], 5.0), None);
}

#[test]
fn a_sweep_is_the_test_at_each_frequency() {
    let mut random = Random::new(8);
    let times: Vec<f64> = (0..203).map(|_| random.below(86_400_000) as f64 / 1e3).collect();
    let (from, step) = (0.013, 1.0 / (50.0 * 86_400.0));
    let mut sweep = Sweep::new(&times, from, step);
    for index in 0..300 {
        let (h, alone) = (sweep.next(20), H::of(&times, from + index as f64 * step, 20));
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-3 * b.abs().max(1.0);
        assert!(near(h.h, alone.h) && h.harmonics == alone.harmonics, "{index}: {h:?} {alone:?}");
        assert!(h.powers.iter().zip(&alone.powers).all(|(a, b)| near(*a, *b)), "{index}");
    }
}
