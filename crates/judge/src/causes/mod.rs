//! Causes: why a wake-up was late, one file each, in one list.
//!
//! The time from due to run is cut into moments ([`scene`]); each moment is offered to the causes
//! in the order of [`CAUSES`], and the first that claims it has it. Shares are disjoint and sum to
//! the latency by construction; the last cause takes what nobody claims.
//!
//! To add one: copy `_template.rs`, fill it in, add one line to [`CAUSES`].
//!
//! Pure: the same wake-up and window give the same explanation.

#[cfg(test)]
mod _template;
mod blocked;
mod claim;
mod explain;
mod frequency;
mod hotplug;
mod idle_exit;
mod ipi;
mod irq;
mod irq_thread;
mod irqs_off;
mod kworker;
mod masked;
mod migration;
mod names;
mod nmi;
mod of_run;
mod order;
mod own_cycle;
mod page_fault;
mod preempt_off;
mod preempted;
mod priority_inheritance;
mod queued;
mod rtproof;
pub mod scene;
mod softirq;
pub mod stack;
mod stall;
mod stopped;
mod switch;
pub mod table;
#[cfg(test)]
mod testing;
mod throttled;
mod timer_work;
mod unexplained;

pub use claim::{Cause, Claim};
pub use explain::explain;
pub use of_run::{gathered, of_run};
pub use rtproof_model::{
    CauseCpu, CauseRow, Explanation, Moment, Recorder, Share, Span, Spike, Spikes, Structure,
};
pub use table::Table;

/// All causes, in the order in which they are asked.
pub const CAUSES: &[&dyn Cause] = &[
    &nmi::Nmi,
    &stopped::Stopped,
    &hotplug::Hotplug,
    &migration::Migration,
    &page_fault::PageFault,
    &blocked::Blocked,
    &masked::Masked,
    &timer_work::TimerWork,
    &ipi::Ipi,
    &irq::Irq,
    &softirq::Softirq,
    &own_cycle::OwnCycle,
    // Before rtproof: what a server lets run may be its own thread, and is not to blame.
    &throttled::Throttled,
    &rtproof::Rtproof,
    &priority_inheritance::PriorityInheritance,
    &irq_thread::IrqThread,
    &kworker::Kworker,
    &preempted::Preempted,
    &queued::Queued,
    &frequency::Frequency,
    &preempt_off::PreemptOff,
    &idle_exit::IdleExit,
    &switch::Switch,
    &irqs_off::IrqsOff,
    &stall::Stall,
    &unexplained::Unexplained,
];

/// The cause with an id.
#[must_use]
pub fn find(id: &str) -> Option<&'static dyn Cause> {
    CAUSES.iter().copied().find(|cause| cause.id() == id)
}

/// A cause in words; the id itself for one that a newer rtproof wrote.
#[must_use]
pub fn title(id: &str) -> &str {
    match find(id) {
        Some(cause) => cause.title(),
        None => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_what_they_name_exists() {
        let mut ids: Vec<&str> = CAUSES.iter().map(|cause| cause.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), CAUSES.len());
        let known: Vec<&str> = crate::checks::all()
            .map(|check| check.id())
            .chain(crate::application::all().map(|check| check.id()))
            .collect();
        for cause in CAUSES {
            assert!(!cause.about().is_empty() && !cause.source().is_empty(), "{}", cause.id());
            // Users read it: a label that only we can resolve is no source.
            let ours = ["S0", "S1", "S2", "S3", "S4", "blame", "facts", "promise"];
            let mut words = cause.source().split(|c: char| !c.is_alphanumeric());
            assert!(!words.any(|word| ours.contains(&word)), "{}", cause.source());
            for check in cause.checks() {
                assert!(known.contains(check), "{}: no check {check}", cause.id());
            }
        }
    }
}
