//! How much the values of a series depend on those before them: autocorrelation, what a mean is
//! worth in independent values, and tests that a series is noise about one level.

use crate::beta::chi_squared_tail;

/// Largest lag that is looked at.
const LAG_MAX: usize = 5000;
/// Values that are looked at one by one; a longer series is looked at in means of neighbours.
const VALUES_MAX: usize = 16_384;

/// Autocorrelation at a lag: products of deviations from the mean over their squares, as NIST and
/// R have it. `None` for a constant or too short a series.
#[must_use]
pub fn autocorrelation(values: &[f64], lag: usize) -> Option<f64> {
    let centred = Centred::of(values)?;
    (lag < values.len()).then(|| centred.at(lag))
}

/// A series less its mean, and the sum of its squares.
struct Centred {
    values: Vec<f64>,
    squares: f64,
}

impl Centred {
    fn of(values: &[f64]) -> Option<Self> {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let values: Vec<f64> = values.iter().map(|value| value - mean).collect();
        let squares = values.iter().map(|value| value * value).sum::<f64>();
        (values.len() > 1 && squares > 0.0 && squares.is_finite())
            .then_some(Self { values, squares })
    }

    fn at(&self, lag: usize) -> f64 {
        let pairs = self.values.iter().zip(&self.values[lag..]);
        pairs.map(|(a, b)| a * b).sum::<f64>() / self.squares
    }
}

/// How many values of the series count for one: 1 + 2 sum of the autocorrelations, summed in pairs
/// while these are positive and made to fall (the initial monotone sequence of Geyer, Statistical
/// Science 7, 1992). 1 for noise, never below. `None` as for [`autocorrelation`].
#[must_use]
pub fn correlation_time(values: &[f64]) -> Option<f64> {
    let centred = Centred::of(values)?;
    if values.len() > 2 * VALUES_MAX {
        // Means of neighbours have the same mean, and the same error of it.
        let width = values.len().div_ceil(VALUES_MAX);
        let means: Vec<f64> = centred
            .values
            .chunks_exact(width)
            .map(|chunk| chunk.iter().sum::<f64>() / width as f64)
            .collect();
        let variance = |centred: &Centred| centred.squares / centred.values.len() as f64;
        let ratio = variance(&Centred::of(&means)?) / variance(&centred);
        return Some((width as f64 * ratio * correlation_time(&means)?).max(1.0));
    }
    let most = (values.len() - 1).min(LAG_MAX);
    let (mut time, mut last) = (-1.0, f64::INFINITY);
    for lag in (0..most).step_by(2) {
        let pair = (centred.at(lag) + centred.at(lag + 1)).min(last);
        if pair <= 0.0 {
            break;
        }
        time += 2.0 * pair;
        last = pair;
    }
    Some(time.max(1.0))
}

/// What the mean of a series is worth in independent values: n over [`correlation_time`].
#[must_use]
pub fn n_eff(values: &[f64]) -> Option<f64> {
    Some(values.len() as f64 / correlation_time(values)?)
}

/// A test statistic with its probability by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// The statistic.
    pub statistic: f64,
    /// Probability of as much by chance.
    pub p: f64,
}

/// Ljung and Box (1978): are all autocorrelations up to a lag those of noise?
#[must_use]
pub fn ljung_box(values: &[f64], lags: u32) -> Option<Tested> {
    let centred = Centred::of(values)?;
    let n = values.len() as f64;
    if lags == 0 || lags as usize >= values.len() {
        return None;
    }
    let sum: f64 =
        (1..=lags).map(|lag| centred.at(lag as usize).powi(2) / (n - f64::from(lag))).sum();
    let statistic = n * (n + 2.0) * sum;
    Some(Tested { statistic, p: chi_squared_tail(statistic, lags) })
}

/// Kwiatkowski, Phillips, Schmidt and Shin (1992): is the series noise about one level? The
/// statistic, with Bartlett weights up to `lags`; above [`KPSS_ONE_PERCENT`] it is not.
#[must_use]
pub fn kpss(values: &[f64], lags: usize) -> Option<f64> {
    let centred = Centred::of(values)?;
    let n = values.len() as f64;
    let mut sum = 0.0;
    let squares: f64 = centred
        .values
        .iter()
        .map(|value| {
            sum += value;
            sum * sum
        })
        .sum();
    let weight = |lag: usize| 1.0 - lag as f64 / (lags as f64 + 1.0);
    let lags = lags.min(values.len() - 1);
    let long_run = 1.0 + 2.0 * (1..=lags).map(|lag| weight(lag) * centred.at(lag)).sum::<f64>();
    (long_run > 0.0).then(|| squares / (n * n) / (long_run * centred.squares / n))
}

/// Critical value of [`kpss`] at 1 %, from their table 1.
pub const KPSS_ONE_PERCENT: f64 = 0.739;
/// Critical value of [`kpss`] at 5 %.
pub const KPSS_FIVE_PERCENT: f64 = 0.463;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{random::Random, reference};

    #[track_caller]
    fn close(got: Option<f64>, want: f64, relative: f64) {
        let got = got.expect("a number");
        assert!((got / want - 1.0).abs() < relative, "got {got}, want {want}");
    }

    #[test]
    fn reference_values() {
        let Some(sea) = reference::column("portpirie.csv", 0) else { return };
        let five = ljung_box(&sea, 5).expect("a test");
        close(Some(five.statistic), 1.797_490_683_494_659, 1e-12);
        close(Some(five.p), 0.8764, 1e-4);
        close(ljung_box(&sea, 10).map(|test| test.statistic), 5.829_842_302_661_749, 1e-12);
        close(kpss(&sea, 4), 0.059_165_726_484_055_194, 1e-12);
        close(autocorrelation(&sea, 1), -0.038_080_000_429_621_2, 1e-11);
        let Some(nile) = reference::column("nile.csv", 0) else { return };
        close(ljung_box(&nile, 5).map(|test| test.statistic), 63.971_712_348_133_15, 1e-12);
        close(ljung_box(&nile, 10).map(|test| test.statistic), 88.126_871_551_299_81, 1e-12);
        close(kpss(&nile, 4), 0.965_434_907_752_66, 1e-12);
        close(autocorrelation(&nile, 1), 0.498_408_184, 1e-8);
    }

    #[test]
    fn certified_generators() {
        // NIST StRD NumAcc1 to 4.
        close(autocorrelation(&[10_000_001.0, 10_000_003.0, 10_000_002.0], 1), -0.5, 1e-12);
        for (offset, digits) in [(1.2, 1e-10), (1_000_000.2, 1e-8), (10_000_000.2, 1e-7)] {
            let rest = (0..1000).map(|i| offset + if i % 2 == 0 { -0.1 } else { 0.1 });
            let values: Vec<f64> = std::iter::once(offset).chain(rest).collect();
            close(autocorrelation(&values, 1), -0.999, digits);
        }
    }

    #[test]
    fn dependent_values_are_worth_fewer() {
        let mut random = Random::new(5);
        let mut series = |phi: f64| -> Vec<f64> {
            let mut state = 0.0;
            (0..40_000)
                .map(|_| {
                    state = phi * state + random.normal();
                    state
                })
                .collect()
        };
        // (1 + phi) / (1 - phi) for a series of first order.
        for (phi, want) in [(0.0, 1.0), (0.5, 3.0), (0.9, 19.0)] {
            let time = correlation_time(&series(phi)).expect("a time");
            assert!((time / want - 1.0).abs() < 0.15, "{phi}: {time}");
        }
        assert!(n_eff(&series(0.9)).is_some_and(|n| (1700.0..2600.0).contains(&n)));
    }

    #[test]
    fn nothing_of_nothing() {
        for values in [&[][..], &[1.0], &[2.0, 2.0, 2.0]] {
            assert_eq!(autocorrelation(values, 1), None);
            assert_eq!((n_eff(values), kpss(values, 2)), (None, None));
            assert_eq!(ljung_box(values, 1), None);
        }
        assert_eq!(ljung_box(&[1.0, 2.0, 4.0], 3), None);
    }
}
