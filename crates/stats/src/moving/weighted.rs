//! Moments with weights that halve with age. Pébay's formulas hold for weights as for counts: all
//! sums of a state that ages by a step are multiplied by the same factor, and its mean stays.

use super::values::Values;
use crate::{
    Moments,
    quantile::Q,
    shape::{Shape, central},
};

/// Weights of new samples grow instead of those of old ones shrinking, up to this.
const WEIGHT_MAX: f64 = 1e200;

/// What a step's samples weigh.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weight {
    /// Weight of the samples of this step.
    pub(super) of_new: f64,
    /// What all weights that were given before have to be multiplied by.
    pub(super) rebased_by: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Weighted {
    /// Factor of a step.
    grows: f64,
    weight: f64,
    /// Sums of weights and of their squares, in units of the weight of this step's samples.
    n: f64,
    n2: f64,
    mean: f64,
    /// Sums of the 2nd, 3rd and 4th power of deviations.
    m: [f64; 3],
    /// A step without sums of higher powers came: its part cannot be known any more.
    is_higher_lost: bool,
}

impl Weighted {
    pub(super) fn new(half_life_steps: f64) -> Self {
        let grows = 2_f64.powf(1.0 / half_life_steps.max(1e-2));
        Self { grows, weight: 1.0, n: 0.0, n2: 0.0, mean: 0.0, m: [0.0; 3], is_higher_lost: false }
    }

    /// A step passes, with these samples or none.
    pub(super) fn enter(&mut self, here: &Moments) -> Weight {
        let fade = 1.0 / self.grows;
        self.n *= fade;
        self.n2 *= fade * fade;
        self.m = self.m.map(|m| m * fade);
        self.weight *= self.grows;
        let rebased_by = (self.weight > WEIGHT_MAX).then(|| 1.0 / self.weight);
        if rebased_by.is_some() {
            self.weight = 1.0;
        }
        if let Some(mean) = here.mean() {
            let n = here.count() as f64;
            let m2 = here.sd().map_or(0.0, |sd| sd * sd * (n - 1.0));
            let higher = central(here);
            self.is_higher_lost |= higher.is_none();
            self.merge(n, mean, higher.unwrap_or([m2, 0.0, 0.0]));
        }
        Weight { of_new: self.weight, rebased_by }
    }

    /// Adds samples of weight 1 (Pébay 2008, equations 2.1 and 3.1).
    fn merge(&mut self, nb: f64, mean: f64, [b2, b3, b4]: [f64; 3]) {
        let (na, [a2, a3, a4]) = (self.n, self.m);
        let n = na + nb;
        let d = mean - self.mean;
        let (ra, rb) = (na / n, nb / n);
        self.mean += d * rb;
        self.m = [
            a2 + b2 + d * d * na * rb,
            a3 + b3 + d.powi(3) * na * rb * (ra - rb) + 3.0 * d * (ra * b2 - rb * a2),
            a4 + b4
                + d.powi(4) * na * rb * (ra * ra - ra * rb + rb * rb)
                + 6.0 * d * d * (ra * ra * b2 + rb * rb * a2)
                + 4.0 * d * (ra * b3 - rb * a3),
        ];
        self.n = n;
        self.n2 += nb;
    }

    /// The values; percentiles are not among them.
    pub(super) fn values(&self) -> Option<Values> {
        if self.n <= 0.0 {
            return None;
        }
        let worth = self.n * self.n / self.n2;
        let sd = (self.m[0] / self.n).sqrt();
        // Means of equal samples differ by rounding, and its shape is no shape.
        let differ = sd > 16.0 * f64::EPSILON * self.mean;
        let shape = Shape::from_central(self.n, self.m, false);
        let shape = shape.filter(|_| differ && !self.is_higher_lost);
        Some(Values {
            n: worth,
            mean_ns: self.mean,
            sd_ns: (worth > 1.0).then_some(if differ { sd } else { 0.0 }),
            skewness: shape.map(|shape| shape.g1),
            kurtosis: shape.map(|shape| shape.g2),
            percentiles_ns: [None; Q::TABLE.len()],
        })
    }
}
