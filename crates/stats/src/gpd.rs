//! The generalised Pareto distribution of excesses over a threshold, fitted by maximum likelihood.
//!
//! F(y) = 1 - (1 + xi y / sigma)^(-1/xi). With t = xi / sigma the likelihood is largest at xi =
//! mean ln(1 + t y), which leaves one number to search for (Grimshaw, Technometrics 35, 1993). It
//! is scanned, so that no start can lead astray, then refined on the derivative.

#[cfg(test)]
mod tests;

use crate::binomial::{Random, chi_squared_tail};

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
    /// Probability that an excess is larger: `P(Y > y)`.
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
        minimum(profile, (low, high), 1e-12).0
    } else {
        zero(slope, (low, high), 1e-15).unwrap_or_else(|| place(best))
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
        let hessian = hessian(&nll, [self.gpd.sigma, self.gpd.xi], scale);
        let covariance = inverse(hessian)?;
        (covariance[0][0] > 0.0 && covariance[1][1] > 0.0).then_some(covariance)
    }

    /// Profile-likelihood interval of the shape.
    pub fn xi_interval(&self, excesses: &[f64], confidence: f64) -> (Option<f64>, Option<f64>) {
        let mean = excesses.iter().sum::<f64>() / excesses.len() as f64;
        let profile = |xi: f64| {
            let nll = |ln_sigma: f64| Gpd { sigma: ln_sigma.exp(), xi }.nll(excesses);
            minimum(nll, ((mean / 30.0).ln(), (mean * 30.0).ln()), 1e-9).1
        };
        self.limits(profile, self.gpd.xi, 0.05, profile_drop(confidence), (-2.0, 5.0))
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
            minimum(nll, (self.gpd.xi - 1.0, self.gpd.xi + 1.0), 1e-9).1
        };
        let bounds = (level * 1e-3, level * 1e3);
        self.limits(profile, level, 0.05 * level, profile_drop(confidence) * spread, bounds)
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
        limits(over, best, step, (least, most))
    }
}

/// By how much a profile rises at the ends of an interval: half of the quantile of chi-squared.
fn profile_drop(confidence: f64) -> f64 {
    chi_squared_quantile(confidence) / 2.0
}

/// Upper end of the profile-likelihood interval of the scale of an exponential tail.
pub fn exponential_upper(excesses: &[f64], confidence: f64, spread: f64) -> f64 {
    let n = excesses.len() as f64;
    let mean = excesses.iter().sum::<f64>() / n;
    let rise = profile_drop(confidence) * spread / n;
    // ln(s) + 1 / s - 1 = rise, s in means.
    let over = |s: f64| s.ln() + 1.0 / s - 1.0 - rise;
    mean * zero(over, (1.0, 2.0 * (rise + 1.0).exp()), 1e-9).unwrap_or(1.0)
}

/// Scale and shape from L-moments of ascending excesses (Hosking and Wallis 1987).
pub fn by_l_moments(ascending: &[f64]) -> Option<Gpd> {
    let l = of_sorted(ascending)?;
    let k = l.l1 / l.l2 - 2.0;
    Some(Gpd { sigma: (1.0 + k) * l.l1, xi: -k })
}

// Does a fitted distribution fit? Anderson and Darling (1952), with p values from samples that the
// fitted distribution makes: the tables for distributions known beforehand would say yes too
// often.

/// Places of the scan when a sample is fitted that a fitted distribution made.
const FITTED_SCAN: usize = 24;

/// Distances of a sample from a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Distance {
    /// Anderson-Darling: A², the tails count most.
    pub a2: f64,
    /// Cramér-von Mises: W², all parts count alike.
    pub w2: f64,
}

/// Distances of ascending excesses from a distribution.
pub fn distance(ascending: &[f64], gpd: &Gpd) -> Distance {
    let n = ascending.len() as f64;
    let above: Vec<f64> = ascending.iter().map(|&y| gpd.exceeds(y).clamp(1e-300, 1.0)).collect();
    let (mut a2, mut w2) = (0.0, 0.0);
    for (i, (&s, &s_mirror)) in above.iter().zip(above.iter().rev()).enumerate() {
        let odd = (2 * i + 1) as f64;
        let below = (1.0 - s).max(1e-16);
        a2 += odd * (below.ln() + s_mirror.ln());
        w2 += (below - odd / (2.0 * n)).powi(2);
    }
    Distance { a2: -n - a2 / n, w2: w2 + 1.0 / (12.0 * n) }
}

/// Probability of as large an A² if the fitted distribution were the true one, from `samples` of it
/// that are fitted themselves. The same seed gives the same answer.
pub fn p_value(ascending: &[f64], gpd: &Gpd, samples: u32, seed: u64) -> f64 {
    let observed = distance(ascending, gpd).a2;
    let mut random = Random::new(seed);
    let mut as_far = 0_u32;
    for _ in 0..samples {
        let mut sample: Vec<f64> = ascending
            .iter()
            .map(|_| gpd.exceeded_once_in(random.exponential().exp()).max(f64::MIN_POSITIVE))
            .collect();
        sample.sort_unstable_by(f64::total_cmp);
        let far = fit_with(&sample, FITTED_SCAN)
            .is_none_or(|fit| distance(&sample, &fit.gpd).a2 >= observed);
        as_far += u32::from(far);
    }
    f64::from(as_far + 1) / f64::from(samples + 1)
}

// L-moments (Hosking, J. R. Stat. Soc. B 52, 1990): sums of ordered values that outliers hardly
// move. Where a fit starts, and a check on where it ends.

/// The first two L-moments and the ratios t3, t4, unbiased.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LMoments {
    /// First L-moment: the mean of the values.
    pub l1: f64,
    /// Half of the expected difference of two values.
    pub l2: f64,
    /// L-skewness, the third L-moment over the second.
    pub t3: f64,
    /// L-kurtosis, the fourth L-moment over the second.
    pub t4: f64,
}

/// Of ascending values, four or more that are not all equal.
pub fn of_sorted(values: &[f64]) -> Option<LMoments> {
    let n = values.len() as f64;
    let mut b = [0.0; 4];
    for (i, &x) in values.iter().enumerate() {
        let i = i as f64;
        let mut weight = 1.0;
        for (r, b) in b.iter_mut().enumerate() {
            *b += weight * x / n;
            weight *= (i - r as f64) / (n - 1.0 - r as f64);
        }
    }
    let l2 = 2.0 * b[1] - b[0];
    let l3 = 6.0 * b[2] - 6.0 * b[1] + b[0];
    let l4 = 20.0 * b[3] - 30.0 * b[2] + 12.0 * b[1] - b[0];
    (values.len() >= 4 && l2 > 0.0).then(|| LMoments { l1: b[0], l2, t3: l3 / l2, t4: l4 / l2 })
}

// Extreme values: how far the tail of what was measured may be followed, and where it may not.
//
// Largest values of clusters over a threshold (never single wake-ups), a generalised Pareto
// distribution, profile-likelihood intervals because the symmetric ones err on the optimistic
// side, and nine reasons to refuse (`tail`). Coles, An Introduction to Statistical Modeling of
// Extreme Values (2001), for the theory.

/// The quantile of chi-squared with one degree of freedom, 0 < confidence < 1.
fn chi_squared_quantile(confidence: f64) -> f64 {
    let (mut low, mut high) = (0.0_f64, 200.0_f64);
    for _ in 0..100 {
        let mid = f64::midpoint(low, high);
        if chi_squared_tail(mid, 1) > 1.0 - confidence { low = mid } else { high = mid }
    }
    f64::midpoint(low, high)
}

// Limits of a profile likelihood: where it has fallen by so much, on either side.

/// Zeros of `over`, which is below 0 at `best`, left and right of it: first in steps that double,
/// then exactly. `None` on a side where there is none up to the bound.
fn limits(
    over: impl Fn(f64) -> f64,
    best: f64,
    step: f64,
    (least, most): (f64, f64),
) -> (Option<f64>, Option<f64>) {
    let side = |sign: f64| {
        let (mut inside, mut by) = (best, step);
        for _ in 0..40 {
            let outside = (inside + sign * by).clamp(least, most);
            if over(outside) > 0.0 {
                return zero(&over, (inside, outside), step * 1e-7);
            }
            if outside <= least || outside >= most {
                return None;
            }
            inside = outside;
            by *= 2.0;
        }
        None
    };
    (side(-1.0), side(1.0))
}

// Where a function is smallest and where it is zero: what fitting a distribution takes.
//
// After Brent (Algorithms for Minimization without Derivatives, 1973). Second derivatives are
// differences of the fourth order, whose errors stay below 1e-9 here.

/// Smaller of a bracketed function's values: place and value, to about `tolerance` in the place.
/// Infinite values are walls.
pub(crate) fn minimum(
    f: impl Fn(f64) -> f64,
    (low, high): (f64, f64),
    tolerance: f64,
) -> (f64, f64) {
    const GOLDEN: f64 = 0.381_966_011_250_105;
    let (mut a, mut b) = (low, high);
    let mut x = a + GOLDEN * (b - a);
    let (mut w, mut v) = (x, x);
    let mut fx = f(x);
    let (mut fw, mut fv) = (fx, fx);
    let (mut step, mut before) = (0.0_f64, 0.0_f64);
    for _ in 0..200 {
        let middle = f64::midpoint(a, b);
        let near = tolerance + 1e-12 * x.abs();
        if (x - middle).abs() <= 2.0 * near - 0.5 * (b - a) {
            break;
        }
        // A parabola through the last three places, where it steps into the bracket and shrinks.
        let (r, q) = ((x - w) * (fx - fv), (x - v) * (fx - fw));
        let (mut top, mut below) = ((x - v) * q - (x - w) * r, 2.0 * (q - r));
        if below > 0.0 {
            top = -top
        } else {
            below = -below
        }
        let shrinks = top.abs() < (0.5 * below * before).abs();
        let inside = top > below * (a - x) && top < below * (b - x);
        before = step;
        if shrinks && inside {
            step = top / below;
        } else {
            before = if x < middle { b - x } else { a - x };
            step = GOLDEN * before;
        }
        let u = x + if step.abs() >= near { step } else { near.copysign(step) };
        let fu = f(u);
        if fu <= fx {
            if u < x {
                b = x
            } else {
                a = x
            }
            (v, fv, w, fw, x, fx) = (w, fw, x, fx, u, fu);
        } else {
            if u < x {
                a = u
            } else {
                b = u
            }
            if fu <= fw || w == x {
                (v, fv, w, fw) = (w, fw, u, fu);
            } else if fu <= fv || v == x || v == w {
                (v, fv) = (u, fu);
            }
        }
    }
    (x, fx)
}

/// A zero between two places with values of different sign; `None` where they are not.
/// Illinois variant of the rule of false position, with halving where that is slow.
pub(crate) fn zero(f: impl Fn(f64) -> f64, (low, high): (f64, f64), tolerance: f64) -> Option<f64> {
    let (mut a, mut b) = (low, high);
    let (mut fa, mut fb) = (f(a), f(b));
    if fa.is_nan() || fb.is_nan() || fa * fb > 0.0 {
        return None;
    }
    for round in 0..200 {
        if fa == 0.0 || (b - a).abs() <= tolerance + 1e-14 * a.abs() {
            return Some(a);
        }
        let false_position = b - fb * (b - a) / (fb - fa);
        let halves = round % 4 == 3 || !false_position.is_finite();
        let x = if halves { f64::midpoint(a, b) } else { false_position };
        let fx = f(x);
        if fx == 0.0 {
            return Some(x);
        }
        if fx * fb < 0.0 {
            (a, fa) = (b, fb);
        } else {
            fa *= 0.5;
        }
        (b, fb) = (x, fx);
    }
    Some(b)
}

/// Second derivatives of `f` at `x`, with steps in the `scale` of each parameter.
pub(crate) fn hessian<const N: usize>(
    f: &impl Fn([f64; N]) -> f64,
    x: [f64; N],
    scale: [f64; N],
) -> [[f64; N]; N] {
    const STEP: f64 = 2e-3;
    let at = |i: usize, di: f64, j: usize, dj: f64| {
        let mut place = x;
        place[i] += di * STEP * scale[i];
        place[j] += dj * STEP * scale[j];
        f(place)
    };
    let mut hessian = [[0.0; N]; N];
    let here = f(x);
    for i in 0..N {
        let h = STEP * scale[i];
        let [m2, m1, p1, p2] = [-2.0, -1.0, 1.0, 2.0].map(|d| at(i, d, i, 0.0));
        hessian[i][i] = (-m2 + 16.0 * m1 - 30.0 * here + 16.0 * p1 - p2) / (12.0 * h * h);
        for j in 0..i {
            let mixed =
                |d: f64| at(i, d, j, d) - at(i, d, j, -d) - at(i, -d, j, d) + at(i, -d, j, -d);
            let area = 4.0 * h * STEP * scale[j];
            // Richardson: the error of the small step, less that of the large one.
            let second = (4.0 * mixed(1.0) - mixed(2.0) / 4.0) / (3.0 * area);
            (hessian[i][j], hessian[j][i]) = (second, second);
        }
    }
    hessian
}

/// x of m x = y, by elimination with pivots; `None` where m has no inverse.
pub(crate) fn solve<const N: usize>(mut m: [[f64; N]; N], mut y: [f64; N]) -> Option<[f64; N]> {
    for column in 0..N {
        let pivot =
            (column..N).max_by(|&a, &b| m[a][column].abs().total_cmp(&m[b][column].abs()))?;
        if m[pivot][column].abs() < 1e-300 || !m[pivot][column].is_finite() {
            return None;
        }
        m.swap(column, pivot);
        y.swap(column, pivot);
        for row in 0..N {
            if row != column {
                let factor = m[row][column] / m[column][column];
                let pivot = m[column];
                m[row].iter_mut().zip(pivot).for_each(|(x, p)| *x -= factor * p);
                y[row] -= factor * y[column];
            }
        }
    }
    Some(std::array::from_fn(|i| y[i] / m[i][i]))
}

/// The inverse of a matrix, for the variances of estimates.
pub(crate) fn inverse<const N: usize>(m: [[f64; N]; N]) -> Option<[[f64; N]; N]> {
    let mut columns = [[0.0; N]; N];
    for (i, column) in columns.iter_mut().enumerate() {
        let mut unit = [0.0; N];
        unit[i] = 1.0;
        *column = solve(m, unit)?;
    }
    Some(columns)
}

#[cfg(test)]
mod anderson_tests {
    use super::*;
    use crate::reference;

    #[test]
    fn rain_of_coles() {
        let Some(mut excesses) = reference::column("rain_exceedances_idx_u30.csv", 1) else {
            return;
        };
        excesses.iter_mut().for_each(|mm| *mm -= 30.0);
        excesses.sort_unstable_by(f64::total_cmp);
        let fit = fit(&excesses).expect("a fit").gpd;
        let got = distance(&excesses, &fit);
        assert!((got.a2 - 0.391_368_80).abs() < 5e-8, "{got:?}");
        assert!((got.w2 - 0.038_087_89).abs() < 5e-8, "{got:?}");
        let p = p_value(&excesses, &fit, 999, 1);
        assert!((0.42..0.54).contains(&p), "{p}");
    }

    #[test]
    fn misfits_are_detected() {
        let mut random = Random::new(21);
        let p = |mut values: Vec<f64>| {
            values.sort_unstable_by(f64::total_cmp);
            let fit = fit(&values).expect("a fit").gpd;
            p_value(&values, &fit, 199, 2)
        };
        let alarms =
            (0..60).filter(|_| p((0..100).map(|_| random.exponential()).collect()) < 0.05).count();
        assert!(alarms <= 8, "{alarms} of 60");
        let two = (0..200).map(|i| if i % 2 == 0 { 1.0 } else { 3.0 } + 0.1 * random.unit());
        assert!(p(two.collect()) < 0.01);
    }
}

#[cfg(test)]
mod lmoments_tests {
    use super::*;
    use crate::reference;

    #[test]
    fn reference_values() {
        let Some(mut sea) = reference::column("portpirie.csv", 0) else { return };
        sea.sort_unstable_by(f64::total_cmp);
        let l = of_sorted(&sea).expect("moments");
        for (got, want) in [
            (l.l1, 3.980_615_384_615_384_7),
            (l.l2, 0.134_644_230_769_230_6),
            (l.t3, 0.137_433_135_076_505_84),
            (l.t4, 0.132_831_202_618_113_65),
        ] {
            assert!((got / want - 1.0).abs() < 1e-11, "{got} {want}");
        }
        assert_eq!(of_sorted(&[1.0, 2.0, 3.0]), None);
        assert_eq!(of_sorted(&[2.0; 9]), None);
    }
}

#[cfg(test)]
mod extreme_tests {
    use super::*;

    #[test]
    fn quantiles_of_the_tables() {
        assert!((chi_squared_quantile(0.95) - 3.841_458_820_694).abs() < 1e-10);
        assert!((chi_squared_quantile(0.99) - 6.634_896_601_021).abs() < 1e-10);
    }
}

#[cfg(test)]
mod optimum_tests {
    use super::*;

    #[test]
    fn one_dimension() {
        let (at, value) = minimum(|x| (x - 2.0).powi(2) + 3.0, (-10.0, 17.0), 1e-9);
        assert!((at - 2.0).abs() < 1e-7 && (value - 3.0).abs() < 1e-12);
        let wall = |x: f64| if x < 0.3 { f64::INFINITY } else { x * x };
        let (at, _) = minimum(wall, (-1.0, 4.0), 1e-9);
        assert!((at - 0.3).abs() < 1e-6, "{at}");
        let root = zero(|x| x.exp() - 5.0, (0.0, 20.0), 1e-13).expect("a root");
        assert!((root - 5.0_f64.ln()).abs() < 1e-12, "{root}");
        assert_eq!(zero(|x| x * x + 1.0, (-1.0, 1.0), 1e-9), None);
        assert_eq!(zero(|x| x, (0.0, 1.0), 1e-9), Some(0.0));
    }

    #[test]
    fn three_dimensions() {
        let bowl = |[x, y, z]: [f64; 3]| x * x + x * y + y * y + (z - 3.0).powi(2) * (1.0 + x * x);
        let hessian = hessian(&bowl, [0.0, 0.0, 3.0], [1.0; 3]);
        let inverse = inverse(hessian).expect("an inverse");
        assert!((inverse[0][0] - 2.0 / 3.0).abs() < 1e-7, "{inverse:?}");
        assert!((inverse[0][1] + 1.0 / 3.0).abs() < 1e-7, "{inverse:?}");
        assert_eq!(solve([[1.0, 2.0], [2.0, 4.0]], [1.0, 1.0]), None);
    }
}
