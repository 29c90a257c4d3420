//! What a trial on the live machine shows, as a [`Finding`]: one pure function for each trial of
//! the trials, from what was seen, the facts and the intent.
//!
//! A trial tries what a check infers, so it may be sure where the check can only doubt: its finding
//! is good or bad where the thing was seen, and unknown where it could not be tried.

mod conditions;
mod isolation;
mod memlock;
mod priority;
mod smi;
mod throttling;

use rtproof_host::Facts;
use rtproof_model::Observation;

use crate::Check;
use crate::{Finding, Intent};

/// The finding of one trial.
pub fn judge(seen: &Observation, facts: &Facts, intent: &Intent) -> Finding {
    match seen {
        Observation::Throttling(seen) => throttling::judge(seen, facts, intent),
        Observation::Isolation(seen) => isolation::judge(seen, facts, intent),
        Observation::Priority(seen) => priority::judge(seen, facts),
        Observation::Memlock(seen) => memlock::judge(seen, facts),
        Observation::Smi(seen) => smi::judge(seen, facts),
    }
}

/// The finding of a trial that could not be run at all.
pub fn not_run(trial: &str, why: &str) -> Finding {
    let check = CHECKS.iter().find(|check| check.id.ends_with(trial));
    let check = *check.unwrap_or(&&throttling::CHECK);
    check.draft().took(format!("trial {trial}"), why).unknown(format!("not tried: {why}"))
}

/// Every check, in the order of the trials.
const CHECKS: &[&Check] =
    &[&priority::CHECK, &memlock::CHECK, &throttling::CHECK, &isolation::CHECK, &smi::CHECK];

#[cfg(test)]
mod tests {
    use rtproof_model::trial::NAMES;

    use super::*;
    use crate::Status;

    #[test]
    fn every_trial_has_its_check() {
        assert_eq!(NAMES.len(), CHECKS.len());
        for (trial, check) in NAMES.iter().zip(CHECKS) {
            assert_eq!(check.id, format!("proof-{}", trial));
            assert!(!check.why.ends_with('.') && !check.source.is_empty());
            let finding = not_run(trial, "no thread");
            assert_eq!((finding.check.as_str(), finding.status), (check.id, Status::Unknown));
            assert_eq!(finding.summary, "not tried: no thread");
        }
    }
}
