//! Rendering: the only place that prints. Text for people, JSON for programs, HTML for evidence.

pub(crate) mod compare;
pub(crate) mod distribution;
pub(crate) mod effects;
pub mod file;
pub mod html;
pub mod imported;
mod intent;
pub mod junit;
pub mod sarif;
pub(crate) mod spike;
pub mod svg;
pub mod text;

pub use intent::IntentShown;

/// A policy as the kernel names it.
pub(crate) const fn policy_name(policy: rtproof_host::facts::tasks::Policy) -> &'static str {
    use rtproof_host::facts::tasks::Policy;
    match policy {
        Policy::Other => "SCHED_OTHER",
        Policy::Fifo => "SCHED_FIFO",
        Policy::Rr => "SCHED_RR",
        Policy::Batch => "SCHED_BATCH",
        Policy::Idle => "SCHED_IDLE",
        Policy::Deadline => "SCHED_DEADLINE",
        Policy::Ext => "SCHED_EXT",
    }
}
