//! Cheap random numbers for the loads: a few cycles each, so that the memory and the disk are the
//! load and not the generator. Nothing measured depends on them.

/// Marsaglia's xorshift64*: <https://www.jstatsoft.org/article/view/v008i14>.
pub(super) struct XorShift(u64);

impl XorShift {
    /// A generator; each `seed` gives its own sequence.
    pub(super) fn new(seed: u64) -> Self {
        // The state must not be zero; the golden ratio spreads small seeds.
        Self((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `end`, which is at least 1 and at most 2^32.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        debug_assert!((1..=1 << 32).contains(&end));
        ((self.next() >> 32) * end) >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_below_the_end_and_reach_all() {
        let mut rng = XorShift::new(0);
        let mut seen = [false; 10];
        for _ in 0..1000 {
            seen[usize::try_from(rng.below(10)).unwrap()] = true;
        }
        assert_eq!(seen, [true; 10]);
        assert_eq!(XorShift::new(7).below(1), 0);
        assert_ne!(XorShift::new(1).next(), XorShift::new(2).next());
    }
}
