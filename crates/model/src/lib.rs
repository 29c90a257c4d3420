//! The nouns of rtproof as plain data: what a check finds, why a wake-up was late, what a trial
//! observed, what a verdict says. A record holds them, the judge makes them, the report shows them;
//! each stands here once.
//!
//! Data only: no I/O, no clock, no judgement.

pub mod finding;
pub mod run;
pub mod spikes;
pub mod trial;
pub mod verdict;

pub use finding::{Evidence, Finding, Impact, Remedy, Status, When};
pub use run::{Cost, EndReason};
pub use spikes::{
    CauseCpu, CauseRow, Certainty, ExplainedSpike, Explanation, RecorderSummary, Share, Span,
    Spikes, Structure, StructureMoment,
};
pub use trial::Observation;
pub use verdict::{
    Basis, Extrapolation, Integrity, Projection, Verdict, VerdictAnswer, WorstLatency,
};
