//! The generalised Pareto distribution of excesses over a threshold, fitted by maximum likelihood.
//!
//! F(y) = 1 - (1 + xi y / sigma)^(-1/xi). With t = xi / sigma the likelihood is largest at xi =
//! mean ln(1 + t y), which leaves one number to search for (Grimshaw, Technometrics 35, 1993). It
//! is scanned, so that no start can lead astray, then refined on the derivative.

use crate::{
    extreme::{chi_squared_quantile, lmoments},
    optimum,
};

/// Below it the distribution is taken for exponential, by series.
const SMALL: f64 = 1e-6;
/// Smallest shape for which the estimate behaves as such.
const XI_MIN: f64 = -0.5;
/// Places of the scan.
const SCAN: usize = 120;

/// Generalised Pareto distribution: scale and shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpd {
    /// Scale, in the unit of the excesses.
    pub sigma: f64,
    /// Shape: 0 exponential, above heavier, below bounded.
    pub xi: f64,
}

/// A fitted distribution with its negative log likelihood.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    pub gpd: Gpd,
    /// Negative logarithm of its likelihood.
    pub nll: f64,
}

impl Gpd {
    /// P(Y > y).
    pub fn exceeds(&self, y: f64) -> f64 {
        let z = y / self.sigma;
        if self.xi.abs() < SMALL {
            return (-z + self.xi * z * z / 2.0).exp();
        }
        let base = 1.0 + self.xi * z;
        if base <= 0.0 { 0.0 } else { base.powf(-1.0 / self.xi) }
    }

    /// The excess that one in `m` exceeds, m >= 1.
    pub fn exceeded_once_in(&self, m: f64) -> f64 {
        self.sigma * growth(self.xi, m)
    }

    /// Negative log-likelihood of excesses; infinite where one is impossible.
    pub fn nll(&self, excesses: &[f64]) -> f64 {
        let (n, Self { sigma, xi }) = (excesses.len() as f64, *self);
        if sigma <= 0.0 || !sigma.is_finite() {
            return f64::INFINITY;
        }
        let sum: f64 = if xi.abs() < SMALL {
            excesses.iter().map(|y| y / sigma).map(|z| z + xi * (z - z * z / 2.0)).sum()
        } else {
            let logs = excesses.iter().map(|y| (xi * y / sigma).ln_1p()).sum::<f64>();
            (1.0 + 1.0 / xi) * logs
        };
        if sum.is_nan() { f64::INFINITY } else { n * sigma.ln() + sum }
    }
}

/// (m^xi - 1) / xi.
fn growth(xi: f64, m: f64) -> f64 {
    let l = m.ln();
    if (xi * l).abs() < SMALL { l + xi * l * l / 2.0 } else { (xi * l).exp_m1() / xi }
}

/// Fits excesses, all above 0. `None` of fewer than ten, or where there is no scale.
pub fn fit(excesses: &[f64]) -> Option<Fit> {
    fit_with(excesses, SCAN)
}

/// The same with fewer places of the scan: for samples that the fitted distribution itself made.
pub(crate) fn fit_with(excesses: &[f64], scan: usize) -> Option<Fit> {
    let n = excesses.len() as f64;
    let max = excesses.iter().copied().fold(0.0, f64::max);
    let mean = excesses.iter().sum::<f64>() / n;
    let bad = |y: &f64| !y.is_finite() || *y <= 0.0;
    if excesses.len() < 10 || excesses.iter().any(bad) || max <= mean {
        return None;
    }
    let scaled: Vec<f64> = excesses.iter().map(|y| y / mean).collect();
    let max = max / mean;
    // Places of t from just above -1 / max, where the largest would be the end of the world, to
    // where shapes are above 3; denser near 0.
    let half = scan as f64 / 2.0;
    let place = |i: usize| {
        let at = i as f64 / half - 1.0;
        if at < 0.0 {
            -(1.0 - (1.0 + at).powi(3).max(1e-9)).min(1.0 - 1e-9) / max
        } else {
            (at * 6.0).exp_m1() / 3.0
        }
    };
    let profile = |t: f64| {
        let gpd = at(&scaled, t);
        if gpd.xi < XI_MIN { f64::INFINITY } else { gpd.nll(&scaled) }
    };
    let values: Vec<f64> = (0..=scan).map(|i| profile(place(i))).collect();
    let best = (0..values.len()).min_by(|&a, &b| values[a].total_cmp(&values[b]))?;
    let (low, high) = (place(best.saturating_sub(1)), place((best + 1).min(scan)));
    let slope = |t: f64| derivative(&scaled, t);
    let t = if slope(low) < 0.0 || slope(high) > 0.0 {
        // At the edge of what is allowed: no zero inside.
        optimum::minimum(profile, (low, high), 1e-12).0
    } else {
        optimum::zero(slope, (low, high), 1e-15).unwrap_or_else(|| place(best))
    };
    let gpd = at(&scaled, t);
    let gpd = Gpd { sigma: gpd.sigma * mean, xi: gpd.xi };
    let nll = gpd.nll(excesses);
    nll.is_finite().then_some(Fit { gpd, nll })
}

/// The best distribution with xi / sigma = t, for excesses of mean 1.
fn at(scaled: &[f64], t: f64) -> Gpd {
    let n = scaled.len() as f64;
    if t.abs() < 1e-9 {
        return Gpd { sigma: 1.0, xi: t };
    }
    let xi = scaled.iter().map(|y| (t * y).ln_1p()).sum::<f64>() / n;
    Gpd { sigma: xi / t, xi }
}

/// Derivative of the log-likelihood along the profile, over n.
fn derivative(scaled: &[f64], t: f64) -> f64 {
    let n = scaled.len() as f64;
    let (mut logs, mut parts) = (0.0, 0.0);
    for y in scaled {
        logs += (t * y).ln_1p();
        parts += y / (1.0 + t * y);
    }
    let (xi, b) = (logs / n, parts / n);
    if t.abs() < 1e-5 {
        // 1/t - B/xi to first order; the mean is 1, m2 and m3 are those of the powers.
        let power = |k: i32| scaled.iter().map(|y| y.powi(k)).sum::<f64>() / n;
        let (m2, m3) = (power(2), power(3));
        return m2 / 2.0 - t * (2.0 * m3 / 3.0 - m2 * m2 / 4.0) - b;
    }
    1.0 / t - b * (1.0 + 1.0 / xi)
}

impl Fit {
    /// Variances and covariance of sigma and xi from the curvature of the likelihood.
    pub fn covariance(&self, excesses: &[f64]) -> Option<[[f64; 2]; 2]> {
        let nll = |[sigma, xi]: [f64; 2]| Gpd { sigma, xi }.nll(excesses);
        let scale = [self.gpd.sigma * 0.5, 0.5];
        let hessian = optimum::hessian(&nll, [self.gpd.sigma, self.gpd.xi], scale);
        let covariance = optimum::inverse(hessian)?;
        (covariance[0][0] > 0.0 && covariance[1][1] > 0.0).then_some(covariance)
    }

    /// Profile-likelihood interval of the shape.
    pub fn xi_interval(&self, excesses: &[f64], confidence: f64) -> (Option<f64>, Option<f64>) {
        let mean = excesses.iter().sum::<f64>() / excesses.len() as f64;
        let profile = |xi: f64| {
            let nll = |ln_sigma: f64| Gpd { sigma: ln_sigma.exp(), xi }.nll(excesses);
            optimum::minimum(nll, ((mean / 30.0).ln(), (mean * 30.0).ln()), 1e-9).1
        };
        self.limits(profile, self.gpd.xi, 0.05, wall(confidence), (-2.0, 5.0))
    }

    /// Profile-likelihood interval of the excess that one in `m` exceeds. `spread`: how much more
    /// the excesses vary than independent ones, by which the likelihood is worth less (Chandler and
    /// Bate, Biometrika 94, 2007).
    pub fn level_interval(
        &self,
        excesses: &[f64],
        m: f64,
        confidence: f64,
        spread: f64,
    ) -> (Option<f64>, Option<f64>) {
        let level = self.gpd.exceeded_once_in(m);
        let profile = |level: f64| {
            let nll = |xi: f64| Gpd { sigma: level / growth(xi, m), xi }.nll(excesses);
            optimum::minimum(nll, (self.gpd.xi - 1.0, self.gpd.xi + 1.0), 1e-9).1
        };
        let bounds = (level * 1e-3, level * 1e3);
        self.limits(profile, level, 0.05 * level, wall(confidence) * spread, bounds)
    }

    /// Where a profile rises by so much, on both sides of its minimum.
    /// `None` on a side where it does not within the bounds.
    fn limits(
        &self,
        profile: impl Fn(f64) -> f64,
        best: f64,
        step: f64,
        rise: f64,
        (least, most): (f64, f64),
    ) -> (Option<f64>, Option<f64>) {
        let wall = self.nll + rise;
        let over = |x: f64| {
            let value = profile(x) - wall;
            // A wall of a finite height, for the search by lines.
            if value.is_finite() { value } else { 1e3 }
        };
        super::profile::limits(over, best, step, (least, most))
    }
}

/// By how much a profile rises at the ends of an interval: half of the quantile of chi-squared.
fn wall(confidence: f64) -> f64 {
    chi_squared_quantile(confidence) / 2.0
}

/// Upper end of the profile-likelihood interval of the scale of an exponential tail.
pub fn exponential_upper(excesses: &[f64], confidence: f64, spread: f64) -> f64 {
    let n = excesses.len() as f64;
    let mean = excesses.iter().sum::<f64>() / n;
    let rise = wall(confidence) * spread / n;
    // ln(s) + 1 / s - 1 = rise, s in means.
    let over = |s: f64| s.ln() + 1.0 / s - 1.0 - rise;
    mean * optimum::zero(over, (1.0, 2.0 * (rise + 1.0).exp()), 1e-9).unwrap_or(1.0)
}

/// Scale and shape from L-moments of ascending excesses (Hosking and Wallis 1987).
pub fn by_l_moments(ascending: &[f64]) -> Option<Gpd> {
    let l = lmoments::of_sorted(ascending)?;
    let k = l.l1 / l.l2 - 2.0;
    Some(Gpd { sigma: (1.0 + k) * l.l1, xi: -k })
}

#[cfg(test)]
mod tests;
