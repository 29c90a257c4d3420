//! Causes, verdict, plan and comparison: pure functions over facts and records.
#![doc = include_str!("../README.md")]

pub mod causes;
pub mod compare;
pub mod distribution;
mod late;
pub mod locks;
pub mod moving;
pub mod plan;
pub mod proof;
pub mod report;
pub mod rules;
mod share;
pub mod spikes;
pub mod structure;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod unknowns;
pub mod verdict;
pub mod verify;
pub mod weakness;

pub use distribution::LatencySpread;
pub use report::Report;
pub use weakness::{early_end, loads_ran};

pub use rtproof_checks::{
    self as units, self as quantity, self as intent, self as checks, FirstSentence, Intent,
    Profile, application, profile, trials,
};
pub use rtproof_model::{
    Evidence, Finding, Impact, Integrity, Remedy, Status, Verdict, VerdictAnswer, When,
};
