//! Judging: causes of late wake-ups, plan, comparison, verdict over a run.
//!
//! Pure: no I/O, no clock. The same facts and the same record give the same answer.

pub mod averages;
pub mod beside;
pub mod causes;
pub mod compare;
mod dependence;
pub mod distribution;
mod groups;
pub mod locks;
pub mod moving;
pub mod plan;
pub mod reference;
pub mod report;
pub mod rules;
mod share;
pub mod spikes;
pub mod spread;
pub mod structure;
pub mod tail;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod verdict;
pub mod verify;
mod weakness;

pub use report::Report;
pub use rtproof_checks::quantity as units;
pub use rtproof_checks::{
    self as checks, Intent, Profile, application, intent, profile, quantity, trials,
};
pub use rtproof_model::{Answer, Standing, Verdict};
pub use rtproof_model::{Evidence, Finding, Impact, Remedy, Status, When};
pub use spread::Spread;
pub use weakness::{early_end, loads_ran};
