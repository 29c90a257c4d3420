//! Extreme values: how far the tail of what was measured may be followed, and where it may not.
//!
//! Largest values of clusters over a threshold (never single wake-ups), a generalised Pareto
//! distribution, profile-likelihood intervals because the symmetric ones err on the optimistic
//! side, and nine reasons to refuse (`tail`). Coles, An Introduction to Statistical Modeling of
//! Extreme Values (2001), for the theory.

pub mod anderson;
mod blocks;
pub mod cv;
pub mod gpd;
pub mod holdout;
pub mod iid;
mod level;
pub mod lmoments;
mod profile;
mod rules;
pub mod tail;

use crate::beta::chi_squared_tail;

/// The quantile of chi-squared with one degree of freedom, 0 < confidence < 1.
fn chi_squared_quantile(confidence: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 200.0_f64);
    for _ in 0..100 {
        let mid = f64::midpoint(low, high);
        if chi_squared_tail(mid, 1) > 1.0 - confidence { low = mid } else { high = mid }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_tables() {
        assert!((chi_squared_quantile(0.95) - 3.841_458_820_694).abs() < 1e-10);
        assert!((chi_squared_quantile(0.99) - 6.634_896_601_021).abs() < 1e-10);
    }
}
