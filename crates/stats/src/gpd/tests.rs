//! The fit against published and computed values, and its coverage in simulations.

use super::*;
use crate::binomial::Random;
use crate::reference;

#[track_caller]
fn close(got: f64, want: f64, relative: f64) {
    assert!((got / want - 1.0).abs() < relative, "got {got}, want {want}");
}

fn rain() -> Option<Vec<f64>> {
    let days = reference::column("rain_exceedances_idx_u30.csv", 1)?;
    Some(days.into_iter().map(|mm| mm - 30.0).collect())
}

#[test]
fn rain_of_coles() {
    let Some(excesses) = rain() else { return };
    let fit = fit(&excesses).expect("a fit");
    close(fit.gpd.sigma, 7.440_269_033_247, 1e-9);
    close(fit.gpd.xi, 0.184_499_052_701_5, 1e-9);
    close(fit.nll, 485.093_721_313_86, 1e-12);
    let covariance = fit.covariance(&excesses).expect("a bowl");
    close(covariance[0][0].sqrt(), 0.958_532_405_1, 1e-6);
    close(covariance[1][1].sqrt(), 0.101_204_033_5, 1e-6);
    close(covariance[0][1], -0.065_507_849_64, 1e-6);
    // The level of a hundred years of 365.25 days; 152 of 17531 days were above 30 mm.
    let m = 36_525.0 * 152.0 / 17_531.0;
    close(30.0 + fit.gpd.exceeded_once_in(m), 106.342_765_2, 1e-9);
    let (low, high) = fit.level_interval(&excesses, m, 0.95, 1.0);
    close(30.0 + low.expect("a limit"), 80.864_180, 1e-6);
    close(30.0 + high.expect("a limit"), 185.035_638, 1e-6);
    let (low, high) = fit.xi_interval(&excesses, 0.95);
    let (low, high) = low.zip(high).expect("limits");
    assert!((0.0..0.05).contains(&low) && (0.38..0.45).contains(&high), "{low} {high}");
    let mut ascending = excesses;
    ascending.sort_unstable_by(f64::total_cmp);
    let start = by_l_moments(&ascending).expect("moments");
    close(start.sigma, 7.299_018_970_313_07, 1e-12);
    close(start.xi, 0.196_515_872_329_383_83, 1e-11);
}

/// Excesses of a known distribution.
fn sample(gpd: Gpd, n: usize, random: &mut Random) -> Vec<f64> {
    (0..n).map(|_| gpd.exceeded_once_in(random.exponential().exp())).collect()
}

#[test]
fn planted_shapes_come_back() {
    let mut random = Random::new(11);
    for xi in [-0.3, -0.1, 0.0, 0.1, 0.3, 0.6] {
        let planted = Gpd { sigma: 3000.0, xi };
        let got = fit(&sample(planted, 20_000, &mut random)).expect("a fit").gpd;
        assert!((got.xi - xi).abs() < 0.03 && (got.sigma / 3000.0 - 1.0).abs() < 0.04, "{got:?}");
        close(planted.exceeds(planted.exceeded_once_in(50.0)), 0.02, 1e-6);
    }
}

#[test]
fn a_short_scan_finds_the_same() {
    let mut random = Random::new(12);
    for round in 0..200 {
        let planted = Gpd { sigma: 1.0, xi: f64::from(round % 9) * 0.1 - 0.3 };
        let excesses = sample(planted, 60, &mut random);
        let (long, short) = (fit(&excesses), fit_with(&excesses, 24));
        let (long, short) = long.zip(short).expect("fits");
        assert!((long.nll - short.nll).abs() < 1e-6, "{round}: {long:?} {short:?}");
    }
}

#[test]
fn the_derivative_is_one() {
    let excesses = sample(Gpd { sigma: 1.0, xi: 0.1 }, 300, &mut Random::new(13));
    let mean = excesses.iter().sum::<f64>() / 300.0;
    let scaled: Vec<f64> = excesses.iter().map(|y| y / mean).collect();
    for t in [-0.05, -2e-5, -9e-6, 9e-6, 2e-5, 0.3] {
        let h = 1e-3;
        let nll = |t: f64| at(&scaled, t).nll(&scaled) / 300.0;
        let difference = (nll(t - h) - nll(t + h)) / (2.0 * h);
        let got = derivative(&scaled, t);
        assert!((got - difference).abs() < 1e-4, "{t}: {got} {difference}");
    }
    // The series meets the formula.
    let (series, formula) = (derivative(&scaled, 0.999e-5), derivative(&scaled, 1.001e-5));
    assert!((series - formula).abs() < 1e-7, "{series} {formula}");
}

#[test]
fn the_interval_covers_the_level() {
    // The level exceeded once in ten times the exposure, of 200 excesses: 150 experiments here,
    // 2000 in `rtproof-bench stats`.
    let planted = Gpd { sigma: 1.0, xi: 0.05 };
    let m = 2000.0;
    let truth = planted.exceeded_once_in(m);
    let mut random = Random::new(14);
    let experiments = 150;
    let holds = (0..experiments)
        .filter(|_| {
            let excesses = sample(planted, 200, &mut random);
            let fit = fit(&excesses).expect("a fit");
            let (low, high) = fit.level_interval(&excesses, m, 0.95, 1.0);
            low.is_none_or(|low| low <= truth) && high.is_none_or(|high| truth <= high)
        })
        .count();
    // 95 % of 150 are 142, give or take three deviations of 2.7.
    assert!((134..=149).contains(&holds), "{holds} of {experiments}");
}

#[test]
fn nothing_is_made_of_nothing() {
    assert_eq!(fit(&[1.0; 9]), None);
    assert_eq!(fit(&[1.0; 40]), None);
    let mut bad = vec![1.0; 40];
    bad[3] = 0.0;
    assert_eq!(fit(&bad), None);
    bad[3] = f64::NAN;
    assert_eq!(fit(&bad), None);
}

#[test]
fn the_scale_of_an_exponential_tail_has_an_upper_end() {
    // n (ln s + 1 / s - 1) = 6.6349 / 2 with n = 50, by bisection: s = 1.4737.
    let excesses: Vec<f64> = (0..50).map(|_| 2.0).collect();
    let upper = exponential_upper(&excesses, 0.99, 1.0);
    assert!((upper / 2.0 - 1.473739256).abs() < 1e-6, "{upper}");
    assert!(exponential_upper(&excesses, 0.99, 4.0) > upper * 1.3);
}
