//! Regularised incomplete beta function, the one special function that exact binomial bounds need.
//!
//! Continued fraction after Lentz (Numerical Recipes section 6.4; DLMF 8.17.22) with the
//! logarithm of the gamma function after Lanczos (g = 7, n = 9).

/// ln Gamma(x) for x > 0.
pub(crate) fn ln_gamma(x: f64) -> f64 {
    const C: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let t = x + 7.5;
    let sum = C.iter().enumerate().skip(1).fold(C[0], |sum, (i, c)| sum + c / (x + i as f64));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// I_x(a, b), the distribution function of the beta distribution.
pub(crate) fn regularised(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let ln_front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    if x < (a + 1.0) / (a + b + 2.0) {
        ln_front.exp() * continued_fraction(a, b, x) / a
    } else {
        1.0 - ln_front.exp() * continued_fraction(b, a, 1.0 - x) / b
    }
}

fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (sum, above, below) = (a + b, a + 1.0, a - 1.0);
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - sum * x / above);
    let mut h = d;
    // Converges in O(sqrt(max(a, b))) steps; 10^10 samples need about 10^5.
    for m in 1..1_000_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((below + 2.0 * m) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (sum + m) * x / ((a + 2.0 * m) * (above + 2.0 * m));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        let step = d * c;
        h *= step;
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    h
}

/// P(X <= k) for X ~ Poisson(mean).
pub(crate) fn poisson_cdf(k: u64, mean: f64) -> f64 {
    upper_gamma(k as f64 + 1.0, mean)
}

/// P(X >= k) for X ~ Poisson(mean), k at least 1, to full precision where it is small.
pub(crate) fn poisson_tail(k: u64, mean: f64) -> f64 {
    let a = k as f64;
    if mean <= 0.0 || mean >= a + 1.0 {
        return 1.0 - upper_gamma(a, mean);
    }
    (a * mean.ln() - mean - ln_gamma(a)).exp() * lower_series(a, mean)
}

/// P(X > x) for X ~ chi-squared with so many degrees of freedom.
pub(crate) fn chi_squared_tail(x: f64, freedom: u32) -> f64 {
    upper_gamma(f64::from(freedom) / 2.0, x / 2.0)
}

/// The regularised upper incomplete gamma function Q(a, x), by series or continued fraction
/// (Numerical Recipes section 6.2).
fn upper_gamma(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    let front = (a * x.ln() - x - ln_gamma(a)).exp();
    if x < a + 1.0 { 1.0 - front * lower_series(a, x) } else { front * upper_fraction(a, x) }
}

/// P(|X| > z) for a standard normal X.
pub(crate) fn normal_both_tails(z: f64) -> f64 {
    chi_squared_tail(z * z, 1)
}

fn lower_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (1.0 / a, 1.0 / a, a);
    // Converges in O(sqrt(a)) steps.
    for _ in 0..1_000_000 {
        n += 1.0;
        term *= x / n;
        sum += term;
        if term < sum * 1e-16 {
            break;
        }
    }
    sum
}

fn upper_fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut b = x + 1.0 - a;
    let (mut c, mut d) = (1.0 / TINY, 1.0 / guard(b));
    let mut h = d;
    for i in 1..1_000_000 {
        let i = f64::from(i);
        let an = -i * (i - a);
        b += 2.0;
        d = 1.0 / guard(an * d + b);
        c = guard(b + an / c);
        let step = d * c;
        h *= step;
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    h
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        // I_x(1, n) = 1 - (1 - x)^n; I_x(a, 1) = x^a; I_1/2(a, a) = 1/2.
        let close = |got: f64, want: f64| assert!((got - want).abs() < 1e-12, "{got} {want}");
        close(regularised(1.0, 10.0, 0.1), 1.0 - 0.9_f64.powi(10));
        close(regularised(5.0, 1.0, 0.7), 0.7_f64.powi(5));
        close(regularised(40.0, 40.0, 0.5), 0.5);
        close(ln_gamma(5.0), 24.0_f64.ln());
        // R: pchisq(3.841458820694124, 1, lower = FALSE), and 2 pnorm(-1).
        close(chi_squared_tail(3.841_458_820_694_124, 1), 0.05);
        close(normal_both_tails(1.0), 0.317_310_507_862_914_1);
        close(chi_squared_tail(2.0, 2), (-1.0_f64).exp());
        close(ln_gamma(0.5), std::f64::consts::PI.sqrt().ln());
    }
}
