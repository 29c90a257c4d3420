//! Loads: what disturbs the measured threads. One file each, one list.
//!
//! A load runs in a process of its own, so that its page faults and memory maps do not touch the
//! measuring process, and ends with it whatever happens to it.

/// Placeholder, replaced by the loads.
pub trait Load: Sync {
    /// Name.
    fn name(&self) -> &'static str;
}
