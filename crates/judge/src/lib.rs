//! Judging: checks of a machine's configuration, verdict over a run.
//!
//! Floor 3. Pure: no I/O, no clock. The same facts and the same record give the same answer.

pub mod averages;
pub mod beside;
pub mod causes;
pub mod checks;
pub mod compare;
mod dependence;
pub mod distribution;
pub mod intent;
pub mod plan;
pub mod profile;
pub mod report;
mod share;
pub mod spread;
pub mod structure;
pub mod tail;
#[doc(hidden)]
pub mod testing;
pub mod trials;
pub mod units;
pub mod verdict;
pub mod verify;
mod weakness;

pub use checks::application;
pub use rtproof_model::{Evidence, Finding, Impact, Remedy, Status, When};
pub use intent::Intent;
pub use profile::Profile;
pub use report::Report;
pub use spread::Spread;
pub use rtproof_model::{Answer, Standing, Verdict};
pub use weakness::early_end;
