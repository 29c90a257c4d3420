//! NAME: what is tried and what it shows that no file does. Say what bounds it.
//!
//! To add a trial: copy this into the file of its subject, fill it in, add one line to `TRIALS` and
//! one variant to `Observation` in `mod.rs`; `crates/checks/src/trials` makes a finding of what it
//! saw.

use rtproof_model::trial::PriorityObservation;

use super::{Length, Observation, Trial, TrialContext};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Template;

impl Trial for Template {
    fn name(&self) -> &'static str {
        "template"
    }

    fn about(&self) -> &'static str {
        "asks for nothing and sees nothing"
    }

    fn length(&self) -> Length {
        Length::Time { default_ns: 1_000_000, longest_ns: 2_000_000 }
    }

    fn observe(&self, ctx: &TrialContext<'_>) -> Observation {
        // A type of its own, with what was seen and why something was not: no status, no advice.
        Observation::Priority(PriorityObservation::not_requested(ctx.priority))
    }
}
