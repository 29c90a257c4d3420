//! Spikes and plants meet: by time alone.

use serde::{Deserialize, Serialize};

use super::spikes::Spike;
use super::stretches::Stretches;

/// So much of a spike's latency must lie within a plant's stretches for it to be the plant's, in
/// percent. More than half, so that the plant has the largest share whatever the rest is.
const LEAST_PERCENT: u64 = 60;

/// What a plant must be blamed for.
#[derive(Clone, Debug)]
pub struct Expected {
    /// Name of the plant.
    pub plant: String,
    /// Causes, by id, of which each is right.
    pub causes: Vec<String>,
    /// Words that the culprit must have, all of them.
    pub culprit: Vec<String>,
    pub acted: Stretches,
    /// Shorter spikes are left out: what is no longer than the way there and back has no
    /// attribution.
    pub least_ns: u64,
}

/// A planted spike, and what rtproof says about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    pub plant: String,
    /// When it was due, CLOCK_MONOTONIC.
    pub due_ns: u64,
    pub latency_ns: u64,
    /// The cause that rtproof says; `not examined` where it says none.
    pub cause: String,
    /// The culprit it names.
    pub culprit: String,
    /// Whether rtproof says that events are missing, and names no cause of most of it.
    pub incomplete: bool,
    /// Whether the cause is the planted one.
    pub cause_right: bool,
    /// Whether cause and culprit are.
    pub right: bool,
}

impl Expected {
    /// The planted ones among the spikes.
    pub fn judge(&self, spikes: &[Spike]) -> Vec<Judged> {
        let planted = spikes.iter().filter(|spike| self.is_planted(spike));
        planted.map(|spike| self.judged(spike)).collect()
    }

    /// Whether the plant acted during most of a spike.
    pub(super) fn is_planted(&self, spike: &Spike) -> bool {
        let Spike { due_ns, latency_ns, .. } = *spike;
        let inside_ns = self.acted.overlap_ns(due_ns, due_ns + latency_ns);
        latency_ns >= self.least_ns && inside_ns * 100 >= latency_ns * LEAST_PERCENT
    }

    fn judged(&self, spike: &Spike) -> Judged {
        let cause = spike.cause.clone().unwrap_or_else(|| "not examined".into());
        let cause_right = self.causes.contains(&cause);
        let culprit_right = self.culprit.iter().all(|word| spike.culprit.contains(word));
        Judged {
            plant: self.plant.clone(),
            due_ns: spike.due_ns,
            latency_ns: spike.latency_ns,
            cause,
            culprit: spike.culprit.clone(),
            // One that was not examined is no excuse.
            incomplete: !spike.complete && spike.cause.as_deref() == Some("unexplained"),
            cause_right,
            right: cause_right && culprit_right,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected() -> Expected {
        Expected {
            plant: "rr99".into(),
            causes: vec!["preempted".into()],
            culprit: vec!["multipathd".into(), "RR 99".into()],
            acted: Stretches::of(vec![(1_000, 2_000), (5_000, 6_000)]),
            least_ns: 50,
        }
    }

    fn spike(due_ns: u64, latency_ns: u64, cause: &str, culprit: &str) -> Spike {
        let cause = Some(cause.to_owned()).filter(|cause| !cause.is_empty());
        Spike { due_ns, latency_ns, cause, culprit: culprit.into(), complete: true }
    }

    #[test]
    fn only_what_lies_mostly_within_is_planted() {
        let who = "multipathd [RR 99]";
        let all = [
            spike(1_000, 1_000, "preempted", who),
            spike(1_400, 1_000, "preempted", who), // 600 of 1000
            spike(1_401, 1_000, "preempted", who), // 599 of 1000
            spike(3_000, 500, "stall", ""),        // no plant
            spike(5_100, 49, "preempted", who),    // too short
        ];
        let judged = expected().judge(&all);
        let dues: Vec<u64> = judged.iter().map(|judged| judged.due_ns).collect();
        assert_eq!(dues, [1_000, 1_400]);
        assert!(judged.iter().all(|judged| judged.right && !judged.incomplete));
    }

    #[test]
    fn cause_and_culprit_must_both_be_right() {
        let all = [
            spike(1_000, 900, "preempted", "multipathd [RR 99]"),
            spike(1_000, 900, "preempted", "migration/1 [FIFO 99]"),
            spike(1_000, 900, "stall", "multipathd [RR 99]"),
            spike(1_000, 900, "", ""),
        ];
        let judged = expected().judge(&all);
        let rights: Vec<bool> = judged.iter().map(|judged| judged.right).collect();
        assert_eq!(rights, [true, false, false, false]);
        assert_eq!(judged[3].cause, "not examined");
    }
}
