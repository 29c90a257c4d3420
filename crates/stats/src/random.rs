//! Numbers that look random and are the same every time: for shifts and for thinning.
//!
//! SplitMix64 (Steele, Lea and Flood 2014): one addition and a finaliser, any seed will do.

/// A stream of numbers from a seed.
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

#[cfg(test)]
mod tests {
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
