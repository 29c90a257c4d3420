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
pub mod quantity;
pub mod report;
mod share;
pub mod spread;
pub mod structure;
pub mod tail;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod trials;
pub mod verdict;
pub mod verify;
mod weakness;

pub use checks::application;
pub use intent::Intent;
pub use profile::Profile;
pub use quantity as units;
pub use report::Report;
pub use rtproof_model::{Answer, Standing, Verdict};
pub use rtproof_model::{Evidence, Finding, Impact, Remedy, Status, When};
pub use spread::Spread;
pub use weakness::early_end;
