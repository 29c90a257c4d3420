//! What the samples of a workload are counted from: for rows and summaries.

use rtproof_judge::Spread;
use rtproof_measure::Quantity;
use rtproof_stats::Moments;

/// What a CPU measures, in samples.
pub fn quantity(workload: &str) -> Quantity {
    rtproof_measure::workloads::parse(workload)
        .map_or(Quantity::Latency, |workload| workload.quantity())
}

/// What samples should be, and what percentages are of; nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// What they should be.
    pub nominal_ns: Option<u64>,
    /// Percentages are of this; `None`: of the mean.
    pub whole_ns: Option<u64>,
}

impl Scale {
    /// Of the samples of a quantity. Lateness should be nothing and is a share of the
    /// period; a duration has no such value.
    pub fn of(quantity: Quantity, period_ns: u64) -> Self {
        match quantity.is_lateness() {
            true => Self { nominal_ns: Some(0), whole_ns: Some(period_ns) },
            false => Self { nominal_ns: None, whole_ns: None },
        }
    }

    pub const fn of_intervals(period_ns: u64) -> Self {
        Self { nominal_ns: Some(period_ns), whole_ns: Some(period_ns) }
    }

    /// The samples by it.
    pub fn spread(self, moments: &Moments) -> Spread {
        Spread::of(moments, self.nominal_ns)
    }

    /// A deviation as a percentage.
    pub fn percent(self, deviation_ns: f64, spread: &Spread) -> Option<f64> {
        let whole = self.whole_ns.map(|ns| ns as f64).or(spread.mean_ns)?;
        (whole > 0.0).then(|| deviation_ns / whole * 100.0)
    }

    /// How far a value is from what it should be (from the mean where there is no such value), as a
    /// percentage.
    pub fn off(self, value_ns: u64, spread: &Spread) -> Option<f64> {
        let from = self.nominal_ns.map(|ns| ns as f64).or(spread.mean_ns)?;
        self.percent(value_ns as f64 - from, spread)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_of_the_period_or_of_the_mean() {
        let mut moments = Moments::default();
        [67_000, 1_017_502, 4_449_000].into_iter().for_each(|ns| {
            moments.push(ns);
        });
        let scale = Scale::of_intervals(1_000_000);
        let spread = scale.spread(&moments);
        // S3's first row, signed: 93.3 % too short, 344.9 % too long.
        let off = [67_000, 4_449_000].map(|ns| scale.off(ns, &spread).map(|p| (p * 10.0).round()));
        assert_eq!(off, [Some(-933.0), Some(3449.0)]);
        let late = Scale::of(Quantity::Latency, 1_000_000);
        assert_eq!(late.off(50_000, &late.spread(&moments)), Some(5.0));
        let duration = Scale::of(Quantity::Duration, 1_000_000);
        let spread = duration.spread(&moments);
        assert_eq!((spread.rms_ns, duration.percent(0.0, &spread)), (None, Some(0.0)));
        let none = duration.spread(&Moments::default());
        assert_eq!(duration.off(5, &none), None);
    }
}
