//! How much the values of a series depend on those before them: what a mean is worth in
//! independent values.

/// Largest lag that is looked at.
const LAG_MAX: usize = 5000;
/// Values that are looked at one by one; a longer series is looked at in means of neighbours.
const VALUES_MAX: usize = 16_384;

/// A series less its mean, and the sum of its squares. Autocorrelations are products of deviations
/// over these squares, as NIST and R have it; there are none of a constant or too short a series.
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

/// Autocorrelation at a lag.
#[cfg(test)]
pub(crate) fn autocorrelation(values: &[f64], lag: usize) -> Option<f64> {
    Some(Centred::of(values)?.at(lag))
}

/// How many values of the series count for one: 1 + 2 sum of the autocorrelations, summed in pairs
/// while these are positive and made to fall (the initial monotone sequence of Geyer, Statistical
/// Science 7, 1992). 1 for noise, never below. `None` for a
/// constant or too short a series.
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
pub fn n_eff(values: &[f64]) -> Option<f64> {
    Some(values.len() as f64 / correlation_time(values)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{random::Random, reference};

    #[track_caller]
    fn close(values: &[f64], want: f64, relative: f64) {
        let got = autocorrelation(values, 1).expect("a series");
        assert!((got / want - 1.0).abs() < relative, "got {got}, want {want}");
    }

    #[test]
    fn reference_values() {
        let Some(sea) = reference::column("portpirie.csv", 0) else { return };
        close(&sea, -0.038_080_000_429_621_2, 1e-11);
        let Some(nile) = reference::column("nile.csv", 0) else { return };
        close(&nile, 0.498_408_184, 1e-8);
    }

    #[test]
    fn certified_generators() {
        // NIST StRD NumAcc1 to 4.
        close(&[10_000_001.0, 10_000_003.0, 10_000_002.0], -0.5, 1e-12);
        for (offset, digits) in [(1.2, 1e-10), (1_000_000.2, 1e-8), (10_000_000.2, 1e-7)] {
            let rest = (0..1000).map(|i| offset + if i % 2 == 0 { -0.1 } else { 0.1 });
            let values: Vec<f64> = std::iter::once(offset).chain(rest).collect();
            close(&values, -0.999, digits);
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
            assert_eq!(n_eff(values), None);
        }
    }
}
