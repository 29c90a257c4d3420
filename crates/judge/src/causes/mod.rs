//! Causes: why a wake-up was late, one file each, in one list.
//!
//! The time from due to run is cut into moments ([`scene`]). Each moment goes to the first cause of
//! [`CAUSES`] that attributes it; the last cause takes the rest. Shares are disjoint and sum to the
//! latency by construction.
//!
//! To add one: copy `_template.rs`, fill it in, add `mod`, one line to [`CAUSES`], one to
//! [`coverage::CONTRADICTIONS`].
//!
//! Pure: the same wake-up and window give the same explanation.

#[cfg(test)]
mod _template;
mod blocked;
mod cause;
mod classes;
pub mod coverage;
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
mod order;
mod own_cycle;
mod page_fault;
mod preempt_off;
mod preempted;
mod priority_inheritance;
mod queued;
mod rtproof;
pub mod scene;
mod section;
mod softirq;
pub mod stack;
mod stall;
mod stopped;
mod switch;
pub mod table;
#[cfg(test)]
mod testing;
mod throttled;
mod timer_slack;
mod timer_work;
mod unexplained;

pub use cause::{Attribution, Cause, Kind};
pub use classes::{Class, classes};
pub use explain::explain;
pub use rtproof_model::{
    CauseCpu, CauseRow, Certainty, Explanation, Moment, Recorder, Share, Span, Spike, Spikes,
    Structure,
};
pub use table::Table;

/// All causes; the first one that attributes a moment decides.
pub const CAUSES: &[Cause] = &[
    nmi::CAUSE,
    stopped::CAUSE,
    hotplug::CAUSE,
    migration::CAUSE,
    page_fault::CAUSE,
    blocked::CAUSE,
    own_cycle::CAUSE,
    timer_slack::CAUSE,
    masked::CAUSE,
    timer_work::CAUSE,
    ipi::CAUSE,
    irq::CAUSE,
    softirq::CAUSE,
    // Before rtproof: a server may have let its thread run, which then is not the cause.
    throttled::CAUSE,
    rtproof::CAUSE,
    priority_inheritance::CAUSE,
    irq_thread::CAUSE,
    kworker::CAUSE,
    preempted::CAUSE,
    queued::CAUSE,
    frequency::CAUSE,
    preempt_off::CAUSE,
    idle_exit::CAUSE,
    switch::CAUSE,
    irqs_off::CAUSE,
    stall::CAUSE,
    unexplained::CAUSE,
];

/// The cause with an id.
pub fn find(id: &str) -> Option<&'static Cause> {
    CAUSES.iter().find(|cause| cause.id == id)
}

/// A cause in words; the id itself for one that a newer rtproof wrote.
pub fn title(id: &str) -> &str {
    match find(id) {
        Some(cause) => cause.title,
        None => id,
    }
}

/// The kind of the cause with an id; [`Kind::Unknown`] for one that a newer rtproof wrote.
pub fn kind(id: &str) -> Kind {
    find(id).map_or(Kind::Unknown, |cause| cause.kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_cause_but_the_last_has_a_known_kind() {
        for cause in CAUSES {
            let is_unknown = kind(cause.id) == Kind::Unknown;
            assert_eq!(is_unknown, cause.id == "unexplained", "{}", cause.id);
        }
        assert_eq!(kind("never-seen"), Kind::Unknown);
    }

    #[test]
    fn ids_are_unique_and_what_they_name_exists() {
        let mut ids: Vec<&str> = CAUSES.iter().map(|cause| cause.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), CAUSES.len());
        let known: Vec<&str> = crate::checks::all()
            .map(|check| check.id)
            .chain(crate::application::all().map(|check| check.id))
            .collect();
        for cause in CAUSES {
            assert!(!cause.about.is_empty() && !cause.source.is_empty(), "{}", cause.id);
            // Users read it: a label that only we can resolve is no source.
            let ours = ["S0", "S1", "S2", "S3", "S4", "blame", "facts", "promise"];
            let mut words = cause.source.split(|c: char| !c.is_alphanumeric());
            assert!(!words.any(|word| ours.contains(&word)), "{}", cause.source);
            for check in cause.checks {
                assert!(known.contains(check), "{}: no check {check}", cause.id);
            }
        }
    }
}
