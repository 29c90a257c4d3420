//! NAME: what is tried, and what can be known from it that no file tells. Say what bounds it.
//!
//! To add a trial: copy this file, fill it in, add `pub mod`, one line to `TRIALS` and one variant
//! to `Observation` in `mod.rs`; then `crates/judge/src/trials` makes a finding of what it saw.

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
        Observation::Priority(PriorityObservation::unasked(ctx.priority))
    }
}
