//! A load in a process of its own: how rtproof starts itself for it.

/// First argument of a worker.
pub const NAME: &str = "load-worker";
