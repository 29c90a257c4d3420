//! Exact statements on rates from counts: Clopper-Pearson bounds, Poisson bounds, and when a count
//! that is looked at repeatedly decides. Also the distribution functions that they need, and random
//! numbers from a seed.

// Clopper and Pearson, Biometrika 26 (1934): never below the stated confidence, at any sample size.

/// P(X >= k) for X ~ Binomial(n, p), to full precision where it is small.
pub fn tail(k: u64, n: u64, p: f64) -> f64 {
    match k {
        0 => 1.0,
        k if k > n => 0.0,
        k => regularised(k as f64, (n - k) as f64 + 1.0, p),
    }
}

/// One-sided upper bound on the probability of an event seen `k` times in `n` trials.
/// 1 when there were no trials.
pub fn upper_bound(k: u64, n: u64, confidence: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    if k == 0 {
        // (1 - p)^n = alpha
        return -f64::exp_m1((1.0 - confidence).ln() / n as f64);
    }
    bisect(|p| regularised(k as f64 + 1.0, (n - k) as f64, p), confidence)
}

/// One-sided upper bound on the mean of a Poisson count of which `k` events were seen:
/// 2.996 for none at 95 %. Divide by the exposure for a rate.
pub fn poisson_upper(k: u64, confidence: f64) -> f64 {
    if k == 0 {
        return -(1.0 - confidence).ln();
    }
    // The mean at which P(X <= k) falls to 1 - confidence: not far above k, by ten deviations.
    let (mut low, mut high) = (k as f64, k as f64 + 10.0 * (k as f64).sqrt() + 50.0);
    for _ in 0..100 {
        let mid = f64::midpoint(low, high);
        if poisson_cdf(k, mid) > 1.0 - confidence { low = mid } else { high = mid }
    }
    high
}

/// One-sided lower bound on the mean of a Poisson count of which `k` events were seen: 0.051 for
/// one at 95 %.
pub fn poisson_lower(k: u64, confidence: f64) -> f64 {
    // The mean at which P(X >= k) rises to 1 - confidence: below k.
    let (mut low, mut high) = (0.0, k as f64);
    for _ in 0..100 {
        let mid = f64::midpoint(low, high);
        if poisson_cdf(k.saturating_sub(1), mid) > confidence { low = mid } else { high = mid }
    }
    low
}

/// P(X <= k) for X ~ Poisson(mean).
pub fn poisson_at_most(k: u64, mean: f64) -> f64 {
    if mean <= 0.0 { 1.0 } else { poisson_cdf(k, mean) }
}

/// The p at which an increasing function reaches `target`.
fn bisect(f: impl Fn(f64) -> f64, target: f64) -> f64 {
    // On a logarithmic scale first: bounds of 1e-9 need relative, not absolute, precision.
    let (mut low, mut high) = (-70.0_f64, 0.0_f64);
    for _ in 0..120 {
        let mid = f64::midpoint(low, high);
        if f(mid.exp()) < target { low = mid } else { high = mid }
    }
    high.exp()
}

// Regularised incomplete beta function, the one special function that exact binomial bounds need.
//
// Continued fraction after Lentz (Numerical Recipes section 6.4; DLMF 8.17.22) with the
// logarithm of the gamma function after Lanczos (g = 7, n = 9).

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

/// Numbers from a seed that look random and are the same every time: for shifts and for thinning.
///
/// SplitMix64 (Steele, Lea and Flood 2014): one addition and a finaliser, any seed will do.
pub struct Random(u64);

impl Random {
    /// From a seed: the same one gives the same numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    #[expect(clippy::should_implement_trait, reason = "there is no end")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to below `n`; 0 for 0.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// In [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// Standard normal, after Box and Muller.
    pub fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}

// A count of events against a rate, looked at whenever one likes: after how much exposure so many
// events show that the rate is below the one asked for, and within how little that it is above.
//
// Exposures are in events expected at the rate asked for. The error allowed, 1 - confidence, is
// spent on the counts 0, 1, 2, ...: most of it on the first, which a good machine meets soonest,
// the rest in parts that fall with the square of the count, so that every rate below is accepted
// in the end. Events are taken for a Poisson process (Garwood, Biometrika 28, 1936, for a single
// look; Kulldorff and others, Sequential Analysis 30, 2011, for boundaries of exposure).

/// Share of the error that the first count gets.
const FIRST: f64 = 0.8;

/// Counts up to which the boundary of acceptance is exact; beyond, each look is paid for in full.
const EXACT: u64 = 200;

/// What the n-th count, from 0, may spend of an error of 1.
fn share(n: u64) -> f64 {
    if n == 0 { FIRST } else { (1.0 - FIRST) / (n as f64 * (n as f64 + 1.0)) }
}

/// Exposure from which at most `count` events show that the rate is below the one asked for. Over
/// all counts and looks, at that rate or above, this is wrong with probability 1 - confidence.
pub fn accepted_from(count: u64, confidence: f64) -> f64 {
    if count > EXACT {
        return poisson_upper(count, 1.0 - (1.0 - confidence) * share(count));
    }
    // What is spent on each count, and its exposure. That a count is reached without an acceptance
    // is its Poisson probability less that of each acceptance before, followed by what is left.
    let mut spent: Vec<(f64, f64)> = Vec::new();
    for n in 0..=count {
        let alpha = (1.0 - confidence) * share(n);
        let from = spent.last().map_or(0.0, |&(_, from)| from);
        let earlier: f64 =
            (0..n).zip(&spent).map(|(i, &(alpha, at))| alpha * poisson(n - i, from - at)).sum();
        let reached = poisson(n, from) - earlier;
        // The rest of the exposure must be without a further event.
        let further = (reached / alpha).ln().max(0.0);
        spent.push((reached.min(alpha), from + further));
    }
    spent.last().map_or(0.0, |&(_, from)| from)
}

/// Exposure within which `count` events, one at least, show that the rate is above the one asked
/// for. Over all counts and looks, at that rate or below, this is wrong with probability
/// 1 - confidence at most (Bonferroni over the counts).
pub fn refused_within(count: u64, confidence: f64) -> f64 {
    // What one event shows holds with more of them.
    let one = -(-(1.0 - confidence) * FIRST).ln_1p();
    let before = match count {
        0 => return 0.0,
        1 => return one,
        count => count - 1,
    };
    let beta = (1.0 - confidence) * share(before);
    // On a logarithmic scale: for few events it is small.
    let (mut low, mut high) = (-60.0_f64, (count as f64 + 1.0).ln());
    for _ in 0..80 {
        let mid = f64::midpoint(low, high);
        if poisson_tail(count, mid.exp()) > beta { high = mid } else { low = mid }
    }
    low.exp().max(one)
}

/// P(X = n) for X ~ Poisson(mean).
fn poisson(n: u64, mean: f64) -> f64 {
    match n {
        0 => (-mean).exp(),
        n => (n as f64 * mean.ln() - mean - ln_gamma(n as f64 + 1.0)).exp(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, want: f64, relative: f64) {
        assert!((got / want - 1.0).abs() < relative, "got {got}, want {want}");
    }

    #[test]
    fn upper_bounds_of_the_literature() {
        close(upper_bound(0, 3000, 0.95), 9.980_790e-4, 1e-6);
        close(upper_bound(0, 5000, 0.95), 5.989_670e-4, 1e-6);
        close(upper_bound(2, 1_000_000, 0.95), 6.295_780_1e-6, 1e-7);
    }

    #[test]
    fn tails() {
        close(tail(3, 4, 0.1), 4.0 * 0.001 * 0.9 + 0.0001, 1e-12);
        close(tail(20, 20, 0.001), 1e-60, 1e-9);
        assert_eq!((tail(0, 5, 0.1), tail(6, 5, 0.1)), (1.0, 0.0));
    }

    #[test]
    fn five_percent_class() {
        // n / k at which the 95 % upper bound first falls below 5 %.
        for (n, k) in [(59, 0), (93, 1), (124, 2), (153, 3), (181, 4), (208, 5), (1000, 38)] {
            assert!(upper_bound(k, n, 0.95) < 0.05, "{n}/{k}");
            assert!(upper_bound(k, n - 1, 0.95) >= 0.05 || n == 1000, "{n}/{k}");
        }
        assert!(upper_bound(39, 1000, 0.95) >= 0.05);
        assert!(upper_bound(224, 5000, 0.95) < 0.05 && upper_bound(225, 5000, 0.95) >= 0.05);
    }

    #[test]
    fn poisson_bounds() {
        let at95 = [2.99573, 4.74386, 6.29579, 7.75366, 9.15352, 10.51303];
        let at99 = [4.60517, 6.63835, 8.40595, 10.04512, 11.60463, 13.10848];
        for k in 0..6 {
            close(poisson_upper(k as u64, 0.95), at95[k], 1e-5);
            close(poisson_upper(k as u64, 0.99), at99[k], 1e-5);
        }
    }

    #[test]
    fn lower_bounds_of_poisson_counts() {
        // Half of scipy.stats.chi2.ppf(0.05, 2 k).
        for (k, want) in [(1, 0.051_293_3), (3, 0.817_691), (5, 1.970_15), (10, 5.425_41)] {
            close(poisson_lower(k, 0.95), want, 1e-5);
        }
        assert_eq!(poisson_lower(0, 0.95), 0.0);
        close(poisson_at_most(0, 3.0), (-3.0_f64).exp(), 1e-12);
        close(poisson_at_most(1, 2.0), 3.0 * (-2.0_f64).exp(), 1e-12);
        assert_eq!(poisson_at_most(0, 0.0), 1.0);
    }

    #[test]
    fn poisson_bounds_of_many_events() {
        // Wilson and Hilferty 1931: (k+1) (1 - 1/(9(k+1)) + z/(3 sqrt(k+1)))^3, z(0.95) = 1.644854.
        for k in [200_u64, 744, 1000, 1_000_000, 1_000_000_000] {
            let a = k as f64 + 1.0;
            let approximate =
                a * (1.0 - 1.0 / (9.0 * a) + 1.644_853_627 / (3.0 * a.sqrt())).powi(3);
            close(poisson_upper(k, 0.95), approximate, 1e-5);
        }
    }
}

#[cfg(test)]
mod beta_tests {
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

#[cfg(test)]
mod random_tests {
    use super::*;

    #[test]
    fn published_values() {
        // The sequence of seed 1234567 that the authors' C code prints.
        let mut random = Random::new(1_234_567);
        assert_eq!(random.next(), 6_457_827_717_110_365_317);
        assert_eq!(random.next(), 3_203_168_211_198_807_973);
        let mut counts = [0; 5];
        for _ in 0..5000 {
            counts[random.below(5) as usize] += 1;
        }
        assert!(counts.iter().all(|&n| (880..1120).contains(&n)), "{counts:?}");
        assert_eq!(random.below(0), 0);
    }
}

#[cfg(test)]
mod sequential_tests {
    use super::*;

    fn close(got: f64, want: f64) {
        assert!((got / want - 1.0).abs() < 1e-9, "got {got}, want {want}");
    }

    #[test]
    fn boundaries_by_hand() {
        // -ln 0.04; then x0 + ln(x0 e^-x0 / 0.005); of the third, the paths 2 at x1 without 0 at
        // x0: one or two events before x0, none or one from there to x1.
        let x0 = -0.04_f64.ln();
        close(accepted_from(0, 0.95), x0);
        let x1 = x0 + (x0 * 0.04 / 0.005).ln();
        close(accepted_from(1, 0.95), x1);
        let more = x1 - x0;
        let two = 0.04 * (-more).exp() * (x0 * x0 / 2.0 + x0 * more);
        close(accepted_from(2, 0.95), x1 + (two / (0.01 / 6.0)).ln());
        // -ln(1 - 0.04), and P(X >= 2) = 0.005 (by bisection of its series).
        close(refused_within(1, 0.95), -(-0.04_f64).ln_1p());
        close(refused_within(2, 0.95), 0.10349454674809105);
        assert_eq!(refused_within(0, 0.95), 0.0);
    }

    #[test]
    fn boundaries_grow_and_meet_the_rate() {
        for confidence in [0.5, 0.9, 0.95, 0.99, 0.999_999] {
            let from: Vec<f64> = (0..230).map(|k| accepted_from(k, confidence)).collect();
            let within: Vec<f64> = (0..230).map(|k| refused_within(k, confidence)).collect();
            for (k, pair) in from.windows(2).enumerate() {
                assert!(pair[1] > pair[0], "{confidence} {k}: {pair:?}");
                // Never both.
                assert!(within[k] < from[k] && within[k + 1] >= within[k], "{confidence} {k}");
            }
        }
        let many = 1_000_000;
        assert!((accepted_from(many, 0.95) / many as f64 - 1.0).abs() < 0.01);
        assert!((refused_within(many, 0.95) / many as f64 - 1.0).abs() < 0.01);
    }

    /// Shares of processes with so many events per event expected that are ever accepted, and ever
    /// refused, before the 60th event, looked at all the time.
    fn ever(seed: u64, rate: f64, runs: u32) -> (f64, f64) {
        let from: Vec<f64> = (0..60).map(|k| accepted_from(k, 0.95)).collect();
        let within: Vec<f64> = (0..60).map(|k| refused_within(k, 0.95)).collect();
        let mut random = Random::new(seed);
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..runs {
            let mut at = 0.0;
            let (mut is_accepted, mut is_refused) = (false, false);
            for k in 0..59 {
                at += random.exponential() / rate;
                // Before this event there were k, and with it one more.
                is_accepted |= at >= from[k];
                is_refused |= at <= within[k + 1];
            }
            accepted += u32::from(is_accepted);
            refused += u32::from(is_refused);
        }
        (f64::from(accepted) / f64::from(runs), f64::from(refused) / f64::from(runs))
    }

    #[test]
    fn looking_all_the_time_costs_what_is_allowed() {
        // Spent up to the 60th event: 0.05 (0.8 + 0.2 (1 - 1/60)) = 0.0498.
        let (accepted, refused) = ever(1, 1.0, 60_000);
        assert!((accepted - 0.0498).abs() < 3.0 * 0.000_9, "{accepted}");
        assert!((0.04..0.05).contains(&refused), "{refused}");
        assert!(ever(2, 0.333, 2000).0 > 0.99, "a third is accepted in the end");
        assert!(ever(3, 2.5, 2000).1 > 0.95, "more than twice is refused in the end");
    }
}
