//! Copy this file to start a cause. It is compiled and tested, so it cannot rot; it is in no list,
//! so it explains nothing.
//!
//! 1. Copy it to `your_cause.rs` beside it; rename the type; set the id to the file's name with `-`
//!    for `_`.
//! 2. Say here, in the header, in one sentence what held the thread up.
//! 3. Add `mod your_cause;` and one line in `CAUSES`, both in `mod.rs`. The first cause of the list
//!    that claims a moment has it: stand before those that would take yours, behind those that know
//!    better.
//! 4. Plant it in a made-up window, in `explain/tests.rs`: the largest share must be yours, and
//!    with the one event less that proves it, somebody else's.
//!
//! If it needs an event that is not recorded yet, the event comes first: `rtproof_trace::event`.

use super::{
    claim::{Cause, Claim, Kind},
    names,
    scene::{Moment, Phase},
};

/// One unit type per cause, named like the file.
#[derive(Debug)]
pub(super) struct Template;

impl Cause for Template {
    // Short, kebab-case, the field's own word; it is in records and scripts and never changes.
    fn id(&self) -> &'static str {
        "template"
    }

    // One of the few kinds that share a colour in the report.
    fn kind(&self) -> Kind {
        Kind::Scheduling
    }

    // The end of "late because of: ...".
    fn title(&self) -> &'static str {
        "a thread of RCU callbacks"
    }

    // Which events show it, and what it is told apart from.
    fn about(&self) -> &'static str {
        "an rcuc thread was running while the thread could have; told by its name"
    }

    // Public titles: a kernel file, a document, a measurement with its number.
    fn source(&self) -> &'static str {
        "kernel/rcu/tree.c (rcu_cpu_kthread)"
    }

    // Checks whose knobs remove it: their ids.
    fn checks(&self) -> &'static [&'static str] {
        &["config-rcu-nocb"]
    }

    fn claims(&self, moment: &Moment<'_>) -> Option<Claim> {
        // First where the thread was on its way, then what its CPU did: `is_task` says that no
        // interrupt is on top, which would be another cause's.
        if moment.phase != Phase::Runnable || !moment.is_task() {
            return None;
        }
        // What is not known is not claimed. Claim only what was seen; where it may as well have
        // been something else, say so with `.or(&["irqs-off"])`.
        let name = names::comm(moment.scene, moment.cpu.task);
        if !name.starts_with("rcuc/") {
            return None;
        }
        // `names` writes tasks, interrupts and functions as every cause does. A claim for a part of
        // the moment sets `until_ns`: the rest is asked for again.
        Some(
            Claim::by(names::task(moment.scene, moment.cpu.task, moment.cpu.prio))
                .manual("move callbacks off this CPU: boot with rcu_nocbs="),
        )
    }
}

#[cfg(test)]
mod tests {
    use rtproof_trace::Policy;

    use super::*;
    use crate::causes::testing::{Story, US};

    /// A task that runs from 5 us before the due time until the thread is switched to.
    fn behind(comm: &str) -> Vec<(u64, Claim)> {
        let story = Story::new().with(60, comm, Policy::Fifo, 90);
        let story = story.switch(-5, 7, 120, 0, 60, 9).timer(1, 60).switch(80, 60, 9, 0, 50, 19);
        story.claimed_by(&Template, 82)
    }

    #[test]
    fn claims_its_own_and_nothing_else() {
        let claims = behind("rcuc/0");
        // Woken at 3 us inside the timer interrupt, which is not its doing, until 4 us.
        assert_eq!(claims.iter().map(|(ns, _)| ns).sum::<u64>(), 76 * US);
        assert!(claims.iter().all(|(_, claim)| claim.culprit == "rcuc/0 [FIFO 90]"), "{claims:?}");
        assert_eq!(behind("rcu_preempt"), []);
    }
}
