//! Copy this into the file of its subject to add a cause; CONTRIBUTING.md has the steps. It is
//! compiled and tested, but it is in no list, so it explains nothing.
//!
//! An event that is not recorded yet comes first: `rtproof_trace::event`.

use super::scene::{Moment, WakeUpPhase};
use super::{Attribution, Cause, CauseKind, names};

pub(super) const CAUSE: Cause = Cause {
    // Short, kebab-case, the field's own word; it is in records and scripts and never changes.
    id: "template",
    // One of the few kinds that share a colour in the report.
    kind: CauseKind::Scheduling,
    // The end of "late because of: ...".
    title: "a thread of RCU callbacks",
    // Which events show it, and what distinguishes it.
    about: "an rcuc thread was running while the thread could have; told by its name",
    // Public titles: a kernel file, a document, a measurement with its number.
    source: "kernel/rcu/tree.c (rcu_cpu_kthread)",
    // Checks whose knobs remove it: their ids.
    checks: &["config-rcu-nocb"],
    attribute: attribute_template,
};

fn attribute_template(moment: &Moment<'_>) -> Option<Attribution> {
    // First the phase of the wake-up, then the CPU: `is_task` excludes interrupts.
    if moment.phase != WakeUpPhase::Runnable || !moment.is_task() {
        return None;
    }
    // Without evidence return None. If another cause fits as well, add
    // `.or_causes(&["irqs-off"])`.
    let name = names::comm(moment.scene, moment.cpu.task);
    if !name.starts_with("rcuc/") {
        return None;
    }
    // `names` formats tasks, interrupts and functions. `until_ns` limits it to the first part.
    Some(
        Attribution::of_culprit(names::task(moment.scene, moment.cpu.task, moment.cpu.prio))
            .manual("move callbacks off this CPU: boot with rcu_nocbs="),
    )
}

#[cfg(test)]
mod tests {
    use rtproof_trace::TaskPolicy;

    use super::*;
    use crate::causes::testing::{Story, US};

    /// A task that runs from 5 us before the due time until the thread is switched to.
    fn behind(comm: &str) -> Vec<(u64, Attribution)> {
        let story = Story::new().with(60, comm, TaskPolicy::Fifo, 90);
        let story = story.switch(-5, 7, 120, 0, 60, 9).timer(1, 60).switch(80, 60, 9, 0, 50, 19);
        story.attributed_to(&CAUSE, 82)
    }

    #[test]
    fn attributes_its_own_time_only() {
        let attributed = behind("rcuc/0");
        // Woken at 3 us inside the timer interrupt, which is not its doing, until 4 us.
        assert_eq!(attributed.iter().map(|(ns, _)| ns).sum::<u64>(), 76 * US);
        assert!(
            attributed.iter().all(|(_, attribution)| attribution.culprit == "rcuc/0 [FIFO 90]"),
            "{attributed:?}"
        );
        assert_eq!(behind("rcu_preempt"), []);
    }
}
