//! The coefficient of variation of excesses: 1 if and only if the tail is exponential (del
//! Castillo, Daoudi and Lockhart 2014; Abella and others 2017). Above: heavier. Below: lighter, and
//! an exponential tail is on the safe side.

/// What the coefficient says of a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    Light,
    /// Not distinguishable from exponential.
    Exponential,
    Heavy,
}

/// sd / mean of excesses (n - 1). `None` below two.
pub fn coefficient(excesses: &[f64]) -> Option<f64> {
    let n = excesses.len() as f64;
    let mean = excesses.iter().sum::<f64>() / n;
    let squares = excesses.iter().map(|y| (y - mean).powi(2)).sum::<f64>();
    (excesses.len() > 1 && mean > 0.0).then(|| (squares / (n - 1.0)).sqrt() / mean)
}

/// Where 95 % of the coefficients of `n` exponential excesses lie, n from 50: between simulated
/// values, and the normal limit beyond 500.
pub fn band(n: usize) -> (f64, f64) {
    // (1 / sqrt(n), (1 - low) sqrt(n), (high - 1) sqrt(n))
    const TABLE: [(f64, f64, f64); 5] = [
        (0.0, 1.96, 1.96),
        (0.044_721, 1.856, 2.035),
        (0.070_711, 1.796, 2.022),
        (0.1, 1.74, 2.02),
        (0.141_421, 1.676, 1.853),
    ];
    let s = 1.0 / (n.max(50) as f64).sqrt();
    let at = TABLE.iter().position(|row| row.0 >= s).unwrap_or(TABLE.len() - 1).max(1);
    let ((s0, low0, high0), (s1, low1, high1)) = (TABLE[at - 1], TABLE[at]);
    let part = (s - s0) / (s1 - s0);
    let (low, high) = (low0 + part * (low1 - low0), high0 + part * (high1 - high0));
    (1.0 - low * s, 1.0 + high * s)
}

/// The verdict of the coefficient; `None` below 50 excesses.
pub fn weight(excesses: &[f64]) -> Option<Weight> {
    let (low, high) = band(excesses.len());
    let cv = coefficient(excesses).filter(|_| excesses.len() >= 50)?;
    Some(match cv {
        cv if cv < low => Weight::Light,
        cv if cv > high => Weight::Heavy,
        _ => Weight::Exponential,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{random::Random, reference};

    #[test]
    fn reference_values() {
        let Some(mut rain) = reference::column("rain_exceedances_idx_u30.csv", 1) else { return };
        rain.sort_unstable_by(|a, b| b.total_cmp(a));
        let over = |k: usize, u: f64| {
            let excesses: Vec<f64> = rain[..k].iter().map(|mm| mm - u).collect();
            coefficient(&excesses).expect("a number")
        };
        for (got, want) in [
            (over(152, 30.0), 1.182_973_971_968_281_5),
            (over(100, rain[100]), 1.136_646_462_241_043_5),
            (over(50, rain[50]), 1.008_441_168_048_412_9),
        ] {
            assert!((got - want).abs() < 1e-12, "{got} {want}");
        }
    }

    #[test]
    fn the_band_is_that_of_exponential_excesses() {
        for (n, low, high) in
            [(50, 0.763, 1.262), (100, 0.826, 1.202), (200, 0.873, 1.143), (500, 0.917, 1.091)]
        {
            let got = band(n);
            assert!((got.0 - low).abs() < 6e-4 && (got.1 - high).abs() < 6e-4, "{n}: {got:?}");
        }
        let mut random = Random::new(31);
        let outside = (0..2000)
            .filter(|_| {
                let excesses: Vec<f64> = (0..300).map(|_| random.exponential()).collect();
                weight(&excesses) != Some(Weight::Exponential)
            })
            .count();
        assert!((60..140).contains(&outside), "{outside} of 2000, 100 expected");
        let even: Vec<f64> = (1..200).map(f64::from).collect();
        let heavy: Vec<f64> = (0..200).map(|_| (1.5 * random.exponential()).exp()).collect();
        assert_eq!((weight(&even), weight(&heavy)), (Some(Weight::Light), Some(Weight::Heavy)));
        assert_eq!((weight(&even[..49]), coefficient(&[1.0])), (None, None));
    }
}
