//! Idle states of the measured CPUs, as often as a record takes them.

use rtproof_host::{Root, idle::IdleSampler};
use rtproof_record::{
    Options,
    beside::{IDLE_READINGS_MAX, IdleState, IdleTime},
};

const SECOND_NS: u64 = 1_000_000_000;
/// A second's reading comes some time after its end, never a whole one.
const SLACK_NS: u64 = SECOND_NS / 2;

#[derive(Debug)]
pub(super) struct Idle {
    sampler: IdleSampler,
    step_ns: u64,
    next_ns: u64,
    left: u64,
}

impl Idle {
    pub(super) fn new(root: &Root, options: &Options) -> Self {
        let step_ns = step_ns(options.duration_ns);
        Self {
            sampler: IdleSampler::new(root, &options.cpus),
            step_ns,
            next_ns: step_ns - SLACK_NS,
            left: IDLE_READINGS_MAX,
        }
    }

    /// The states there are.
    pub(super) fn states(&self) -> Vec<IdleState> {
        self.sampler.states().to_vec()
    }

    /// Times since the reading before, where it is time for one.
    pub(super) fn sample(&mut self, now_ns: u64) -> Option<Vec<IdleTime>> {
        if now_ns < self.next_ns || self.left == 0 || self.sampler.states().is_empty() {
            return None;
        }
        self.next_ns = now_ns - SLACK_NS + self.step_ns;
        self.left -= 1;
        Some(self.sampler.sample())
    }
}

/// Time between readings: whole seconds.
fn step_ns(duration_ns: u64) -> u64 {
    duration_ns.div_ceil(IDLE_READINGS_MAX).div_ceil(SECOND_NS).max(1) * SECOND_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_has_as_many_readings_as_a_record_takes() {
        assert_eq!(
            [1, 600, 601, 86_400].map(|s| step_ns(s * SECOND_NS) / SECOND_NS),
            [1, 1, 2, 144]
        );
        assert!((1..100_000).all(|s| s * SECOND_NS / step_ns(s * SECOND_NS) <= IDLE_READINGS_MAX));
    }
}
