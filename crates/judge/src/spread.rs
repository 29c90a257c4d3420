//! How samples lie about their mean and about a nominal value, exact from their power sums.

use rtproof_stats::Moments;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Count, mean, two kinds of deviation, extremes; nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    pub n: u64,
    /// What they should be: the period for intervals, 0 for lateness; null: there is no such value.
    pub nominal_ns: Option<u64>,
    /// Mean; null: no sample.
    pub mean_ns: Option<f64>,
    /// Standard deviation about the mean (n - 1); null: fewer than two samples.
    pub sd_ns: Option<f64>,
    /// Root of the mean square deviation from the nominal value; null: there is none.
    pub rms_ns: Option<f64>,
    /// Smallest; null: no sample.
    pub min_ns: Option<u64>,
    /// Largest; null: no sample.
    pub max_ns: Option<u64>,
}

impl Spread {
    /// Of samples, about a nominal value.
    pub fn of(moments: &Moments, nominal_ns: Option<u64>) -> Self {
        Self {
            n: moments.count(),
            nominal_ns,
            mean_ns: moments.mean(),
            sd_ns: moments.sd(),
            rms_ns: nominal_ns.and_then(|nominal_ns| rms(moments, nominal_ns)),
            min_ns: moments.min(),
            max_ns: moments.max(),
        }
    }

    /// Coefficient of variation: sd / mean.
    pub fn cv(&self) -> Option<f64> {
        Some(self.sd_ns? / self.mean_ns.filter(|&mean| mean > 0.0)?)
    }

    /// (max - min) / `median_ns`.
    pub fn range_over(&self, median_ns: Option<u64>) -> Option<f64> {
        let median_ns = median_ns.filter(|&median| median > 0)?;
        Some((self.max_ns? - self.min_ns?) as f64 / median_ns as f64)
    }
}

/// The sums fit: squares up to 2^107 after 2^43 samples of an hour, times two.
fn rms(moments: &Moments, nominal_ns: u64) -> Option<f64> {
    let n = moments.count();
    if n == 0 {
        return None;
    }
    let (sum, sum2, _) = moments.power_sums();
    let nominal = u128::from(nominal_ns);
    let exact = nominal
        .checked_mul(nominal)
        .and_then(|square| square.checked_mul(u128::from(n)))
        .and_then(|squares| squares.checked_add(sum2))
        .zip(nominal.checked_mul(sum).and_then(|product| product.checked_mul(2)))
        .map(|(all, twice)| all.saturating_sub(twice) as f64);
    let about = || {
        let (mean, nominal) = (sum as f64 / n as f64, nominal as f64);
        let variance = moments.sd().map_or(0.0, |sd| sd * sd * (n - 1) as f64);
        variance + (mean - nominal) * (mean - nominal) * n as f64
    };
    Some((exact.unwrap_or_else(about) / n as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[u64]) -> Moments {
        let mut moments = Moments::default();
        values.iter().for_each(|&value| {
            moments.push(value);
        });
        moments
    }

    #[test]
    fn one_interval_has_an_rms_and_no_sd() {
        // The last row of S3: n 1, mean 1035, "SD" 35.
        let spread = Spread::of(&moments(&[1_035_000]), Some(1_000_000));
        assert_eq!((spread.n, spread.mean_ns, spread.sd_ns), (1, Some(1_035_000.0), None));
        assert_eq!(spread.rms_ns, Some(35_000.0));
        assert_eq!(Spread::of(&moments(&[7]), None).rms_ns, None);
        assert_eq!(
            Spread::of(&moments(&[]), Some(1)),
            Spread { nominal_ns: Some(1), ..Spread::default() }
        );
    }

    #[test]
    fn rms_is_sd_and_bias_together() {
        let spread = Spread::of(&moments(&[9, 11, 13]), Some(10));
        let rms = spread.rms_ns.unwrap();
        assert!((rms - (11.0_f64 / 3.0).sqrt()).abs() < 1e-12, "{rms}");
        let late = Spread::of(&moments(&[3, 4]), Some(0));
        assert_eq!(late.rms_ns, Some(12.5_f64.sqrt()));
        assert_eq!(spread.cv(), Some(2.0 / 11.0));
        assert_eq!((spread.range_over(Some(8)), spread.range_over(Some(0))), (Some(0.5), None));
    }

    #[test]
    fn sums_beyond_128_bits_are_still_told() {
        let big = Moments::from_parts(
            4,
            (u64::MAX, u64::MAX),
            (4 * u128::from(u64::MAX), u128::MAX),
            None,
        );
        let rms = Spread::of(&big, Some(u64::MAX)).rms_ns.unwrap();
        assert!(rms.is_finite() && rms >= 0.0);
    }
}
