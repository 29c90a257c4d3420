//! The generalised extreme-value distribution of largest values of blocks.
//!
//! A second view of the tail, for series that are only known by their largest value per block.
//! Fitted by Newton's method from L-moments.

use crate::{
    beta::ln_gamma,
    extreme::{chi_squared_quantile, lmoments},
    optimum,
};

const SMALL: f64 = 1e-6;

/// Location, scale and shape; the shape has the sign of [`super::gpd::Gpd`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gev {
    /// Location.
    pub mu: f64,
    /// Scale.
    pub sigma: f64,
    /// Shape.
    pub xi: f64,
}

/// A fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The distribution.
    pub gev: Gev,
    /// Negative logarithm of its likelihood.
    pub nll: f64,
}

impl Gev {
    /// Negative log-likelihood of block maxima; infinite where one is impossible.
    #[must_use]
    pub fn nll(&self, maxima: &[f64]) -> f64 {
        let Self { mu, sigma, xi } = *self;
        if sigma <= 0.0 || !sigma.is_finite() {
            return f64::INFINITY;
        }
        let of = |x: &f64| {
            let z = (x - mu) / sigma;
            // y = ln(1 + xi z) / xi, whose exponential is the rate of exceeding.
            let y = if xi.abs() < SMALL { z - xi * z * z / 2.0 } else { (xi * z).ln_1p() / xi };
            (1.0 + xi) * y + (-y).exp()
        };
        let sum = maxima.iter().map(of).sum::<f64>();
        if sum.is_nan() { f64::INFINITY } else { maxima.len() as f64 * sigma.ln() + sum }
    }

    /// The level that one block in `m` exceeds, m > 1.
    #[must_use]
    pub fn exceeded_once_in(&self, m: f64) -> f64 {
        self.mu + self.sigma * growth(self.xi, m)
    }
}

/// (y^-xi - 1) / xi with y = -ln(1 - 1/m).
fn growth(xi: f64, m: f64) -> f64 {
    let l = -(-(-1.0 / m).ln_1p()).ln();
    if (xi * l).abs() < SMALL { l + xi * l * l / 2.0 } else { (xi * l).exp_m1() / xi }
}

/// Fits block maxima. `None` of fewer than ten, or where there is no maximum of the likelihood.
#[must_use]
pub fn fit(maxima: &[f64]) -> Option<Fit> {
    let mut ascending = maxima.to_vec();
    ascending.sort_unstable_by(f64::total_cmp);
    let start = by_l_moments(&ascending).filter(|_| maxima.len() >= 10)?;
    let nll = |[mu, sigma, xi]: [f64; 3]| Gev { mu, sigma, xi }.nll(maxima);
    let scale = [start.sigma, start.sigma, 1.0];
    // L-moments may lie outside of what the values allow; an exponential tail never does.
    let starts = [start, Gev { xi: 0.0, ..start }];
    let ([mu, sigma, xi], nll) =
        starts.iter().find_map(|s| optimum::newton(nll, [s.mu, s.sigma, s.xi], scale))?;
    Some(Fit { gev: Gev { mu, sigma, xi }, nll })
}

/// Fits the distribution with xi = 0 (Gumbel).
#[must_use]
pub fn fit_gumbel(maxima: &[f64]) -> Option<Fit> {
    let n = maxima.len() as f64;
    let mean = maxima.iter().sum::<f64>() / n;
    let sd = (maxima.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
    if maxima.len() < 10 || sd <= 0.0 || !sd.is_finite() {
        return None;
    }
    let weights = |sigma: f64| maxima.iter().map(move |x| (-(x - mean) / sigma).exp());
    let equation = |sigma: f64| {
        let (top, below) =
            maxima.iter().zip(weights(sigma)).fold((0.0, 0.0), |(t, b), (x, w)| (t + x * w, b + w));
        mean - top / below - sigma
    };
    let sigma = optimum::zero(equation, (sd * 0.05, sd * 5.0), sd * 1e-13)?;
    let mu = mean - sigma * (weights(sigma).sum::<f64>() / n).ln();
    let gev = Gev { mu, sigma, xi: 0.0 };
    Some(Fit { gev, nll: gev.nll(maxima) })
}

/// Location, scale and shape from L-moments of ascending values (Hosking, Wallis and Wood 1985,
/// solved exactly).
#[must_use]
pub fn by_l_moments(ascending: &[f64]) -> Option<Gev> {
    let l = lmoments::of_sorted(ascending)?;
    let power = |base: f64, k: f64| -f64::exp_m1(-k * base.ln());
    let t3 = |k: f64| {
        if k.abs() < 1e-7 {
            2.0 * 3.0_f64.ln() / 2.0_f64.ln() - 3.0
        } else {
            2.0 * power(3.0, k) / power(2.0, k) - 3.0
        }
    };
    let k = optimum::zero(|k| t3(k) - l.t3, (-0.95, 5.0), 1e-15)?;
    let gamma = ln_gamma(1.0 + k).exp();
    if k.abs() < 1e-7 {
        let sigma = l.l2 / 2.0_f64.ln();
        return Some(Gev { mu: l.l1 - 0.577_215_664_901_532_9 * sigma, sigma, xi: 0.0 });
    }
    let sigma = l.l2 * k / (gamma * power(2.0, k));
    Some(Gev { mu: l.l1 - sigma * (1.0 - gamma) / k, sigma, xi: -k })
}

impl Fit {
    /// Standard errors of location, scale and shape from the curvature of the likelihood.
    #[must_use]
    pub fn standard_errors(&self, maxima: &[f64]) -> Option<[f64; 3]> {
        let nll = |[mu, sigma, xi]: [f64; 3]| Gev { mu, sigma, xi }.nll(maxima);
        let Gev { mu, sigma, xi } = self.gev;
        let (_, hessian) = optimum::derivatives(&nll, [mu, sigma, xi], [sigma, sigma, 1.0]);
        let covariance = optimum::inverse(hessian)?;
        let errors: [f64; 3] = std::array::from_fn(|i| covariance[i][i].sqrt());
        errors.iter().all(|error| error.is_finite()).then_some(errors)
    }

    /// Profile-likelihood interval of the shape.
    #[must_use]
    pub fn xi_interval(&self, maxima: &[f64], confidence: f64) -> (Option<f64>, Option<f64>) {
        let Gev { mu, sigma, xi } = self.gev;
        let profile = |xi: f64| {
            let nll = |[mu, sigma]: [f64; 2]| Gev { mu, sigma, xi }.nll(maxima);
            optimum::newton(nll, [mu, sigma], [sigma, sigma]).map(|(_, nll)| nll)
        };
        self.limits(profile, xi, 0.05, confidence, (-1.5, 3.0))
    }

    /// Profile-likelihood interval of the level that one block in `m` exceeds.
    #[must_use]
    pub fn level_interval(
        &self,
        maxima: &[f64],
        m: f64,
        confidence: f64,
    ) -> (Option<f64>, Option<f64>) {
        let Gev { sigma, xi, .. } = self.gev;
        let level = self.gev.exceeded_once_in(m);
        let profile = |level: f64| {
            let nll = |[sigma, xi]: [f64; 2]| {
                Gev { mu: level - sigma * growth(xi, m), sigma, xi }.nll(maxima)
            };
            optimum::newton(nll, [sigma, xi], [sigma, 1.0]).map(|(_, nll)| nll)
        };
        let bounds = (level - 300.0 * sigma, level + 300.0 * sigma);
        self.limits(profile, level, 0.3 * sigma, confidence, bounds)
    }

    fn limits(
        &self,
        profile: impl Fn(f64) -> Option<f64>,
        best: f64,
        step: f64,
        confidence: f64,
        bounds: (f64, f64),
    ) -> (Option<f64>, Option<f64>) {
        let wall = self.nll + chi_squared_quantile(confidence) / 2.0;
        let over = |x: f64| profile(x).map_or(1e3, |nll| nll - wall);
        super::profile::limits(over, best, step, bounds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference;

    #[track_caller]
    fn close(got: f64, want: f64, relative: f64) {
        assert!((got / want - 1.0).abs() < relative, "got {got}, want {want}");
    }

    #[test]
    fn port_pirie_of_coles() {
        let Some(sea) = reference::column("portpirie.csv", 0) else { return };
        let fit = fit(&sea).expect("a fit");
        close(fit.gev.mu, 3.874_749_855_058_5, 1e-8);
        close(fit.gev.sigma, 0.198_043_957_122_21, 1e-7);
        close(fit.gev.xi, -0.050_109_531_519_733, 1e-6);
        close(fit.nll, -4.339_058_473_679_4, 1e-11);
        let errors = fit.standard_errors(&sea).expect("a bowl");
        for (got, want) in
            errors.into_iter().zip([0.027_932_180_71, 0.020_249_238_89, 0.098_255_532_43])
        {
            close(got, want, 1e-5);
        }
        close(fit.gev.exceeded_once_in(10.0), 4.296_211_939_06, 1e-8);
        close(fit.gev.exceeded_once_in(100.0), 4.688_403_755_91, 1e-7);
        let both = |(low, high): (Option<f64>, Option<f64>)| low.zip(high).expect("limits");
        let (low, high) = both(fit.level_interval(&sea, 10.0, 0.95));
        close(low, 4.204_611_3, 1e-7);
        close(high, 4.445_080_4, 1e-7);
        let (low, high) = both(fit.level_interval(&sea, 100.0, 0.95));
        close(low, 4.490_436_8, 1e-7);
        close(high, 5.260_704_6, 1e-7);
        let (low, high) = both(fit.xi_interval(&sea, 0.95));
        close(low, -0.218_157_1, 1e-6);
        close(high, 0.170_405_5, 1e-6);
    }

    #[test]
    fn port_pirie_by_other_ways() {
        let Some(mut sea) = reference::column("portpirie.csv", 0) else { return };
        let gumbel = fit_gumbel(&sea).expect("a fit");
        // R's evd, whose search stops some digits early.
        close(gumbel.gev.mu, 3.869_445_79, 1e-6);
        close(gumbel.gev.sigma, 0.194_890_81, 1e-5);
        close(2.0 * gumbel.nll, -8.435_363_78, 1e-8);
        assert!(gumbel.nll <= -8.435_363_78 / 2.0);
        sea.sort_unstable_by(f64::total_cmp);
        let start = by_l_moments(&sea).expect("moments");
        close(start.mu, 3.873_147_622_413_524_6, 1e-12);
        close(start.sigma, 0.203_222_285_716_78, 1e-10);
        close(start.xi, -0.051_211_917_361_051_37, 1e-9);
    }

    #[test]
    fn nothing_of_nothing() {
        assert_eq!((fit(&[1.0; 30]), fit_gumbel(&[1.0; 30])), (None, None));
        assert_eq!((fit(&[1.0, 2.0, 4.0, 8.0]), fit_gumbel(&[1.0, 2.0])), (None, None));
    }
}
