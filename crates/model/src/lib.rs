//! Nouns that several crates share, as plain data.
#![doc = include_str!("../README.md")]

pub mod finding;
pub mod run;
pub mod spikes;
pub mod trial;
pub mod verdict;

pub use finding::{Evidence, Finding, Impact, Remedy, Status, When};
pub use run::{Cost, EndReason};
pub use spikes::{CauseCpu, CauseRow, RecorderSummary, ShareRow, Span, Structure, StructureMoment};
pub use trial::Observation;
pub use verdict::{Basis, Integrity, Verdict, VerdictAnswer, WorstLatency};
