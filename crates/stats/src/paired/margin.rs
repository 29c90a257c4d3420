//! Differences that do not matter.

/// From the lowest to the highest difference that does not matter, as logarithms of ratios: 5 %
/// lower is a ratio of 0.95, 5 % higher one of 1.05.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Margin {
    /// Lowest, not above 0.
    pub low: f64,
    /// Highest, not below 0.
    pub high: f64,
}

impl Margin {
    /// Of a share, e.g. 0.05.
    pub fn of_share(share: f64) -> Self {
        let share = share.clamp(0.0, 0.99);
        Self { low: (-share).ln_1p(), high: share.ln_1p() }
    }

    /// The same for differences with the other sign.
    #[must_use]
    pub fn mirrored(self) -> Self {
        Self { low: -self.high, high: -self.low }
    }

    /// Whether a difference does not matter.
    pub fn holds(self, difference: f64) -> bool {
        (self.low..=self.high).contains(&difference)
    }
}
