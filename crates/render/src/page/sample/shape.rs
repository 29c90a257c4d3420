//! Shape of a run for tests, and its numbers.

pub(super) const SECOND: u64 = 1_000_000_000;

/// What a run is to look like.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub(crate) cpus: u32,
    pub(crate) seconds: u64,
    /// Wake-ups a second and CPU.
    pub(crate) per_second: u64,
    pub(crate) budget_ns: Option<u64>,
    pub(crate) usual_ns: u64,
    /// Rare large latencies, of which the largest make wake-ups missed.
    pub(crate) spikes: bool,
    /// Name that a test wants to see everywhere.
    pub(crate) name: String,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            cpus: 2,
            seconds: 60,
            per_second: 1000,
            budget_ns: Some(100_000),
            usual_ns: 3_100,
            spikes: true,
            name: "cell-7".into(),
        }
    }
}

/// Numbers of a fixed sequence (xorshift64*).
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    /// Between 0 and 1.
    pub(super) fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// About normal, mean 0, deviation 1.
    pub(super) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

/// End of the idle third.
pub(super) fn idle_ns(shape: &Shape) -> u64 {
    (shape.seconds / 3).max(1) * SECOND
}
