//! What `run` returns and `report` shows: data that neither owns. No I/O, no clock.

pub mod answer;
pub mod effects;
pub mod ended;
pub mod intent;
pub mod kernel;
pub mod launch;
pub mod locks;
pub mod measure;
pub mod rules;
pub mod tune;
pub mod watch;

pub use ended::Ended;

/// A policy as the kernel names it.
pub const fn policy_name(policy: rtproof_host::facts::tasks::Policy) -> &'static str {
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
