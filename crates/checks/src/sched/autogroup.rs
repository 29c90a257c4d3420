//! Does a nice value of the application count beyond its own session?
//!
//! Autogroups gather the ordinary tasks of each session: nice then ranks a task within its session
//! alone. Real-time tasks are in no such group, so nothing is wrong for an application that has a
//! priority.

use rtproof_host::{Facts, Reading, knobs};

use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::machine::{built_with, option};
use crate::setting;
use crate::{Finding, Impact, Intent, Remedy};

pub(super) static CHECK: Check = Check {
    id: "sched-autogroup",
    title: "automatic groups of ordinary tasks, one a session",
    why: "with autogroups the nice value of an ordinary task ranks it within its own session only",
    source: "sched(7), \"The autogroup feature\"; kernel/sched/autogroup.c",
    impact: Impact::Information,
    knobs: &[&knobs::sched::AUTOGROUP],
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, intent: &Intent) -> Finding {
    let is_real_time = intent.priority > 0;
    let draft = draft.wants(if is_real_time { "known" } else { "0" });
    let reading = setting::text(facts, &knobs::sched::AUTOGROUP);
    let draft = draft.read(&reading, String::clone);
    match reading.value().map(String::as_str) {
        Some("0") => draft.good("off"),
        Some("1") if is_real_time => draft.good(format!(
            "on, for ordinary tasks only: FIFO {} is in no autogroup",
            intent.priority
        )),
        Some("1") => draft
            .remedies([Remedy::set(&knobs::sched::AUTOGROUP, vec![reading.path.clone()], "0")])
            .doubtful("on: a nice value ranks the application within its session only"),
        Some(found) => draft.blind(&Reading::<String>::malformed(&reading.path, found, "0, 1")),
        None if reading.is_absent() && built_with(facts, "SCHED_AUTOGROUP") == Some(false) => draft
            .saw([option(facts, "SCHED_AUTOGROUP")])
            .not_applicable("this kernel is built without autogroups"),
        None => draft.blind(&reading),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};

    fn judge(value: &str, priority: u32) -> Finding {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::sched::AUTOGROUP, value);
        CHECK.judge(&facts, &Intent { priority, ..intent() })
    }

    #[test]
    fn it_concerns_ordinary_tasks_only() {
        assert_eq!(judge("1", 80).status, Good);
        assert_eq!(judge("1", 0).status, Doubtful);
        assert_eq!(judge("0", 0).status, Good);
        assert_eq!(judge("x", 80).status, Unknown);
    }

    #[test]
    fn a_kernel_without_it_and_a_refusal() {
        let mut facts = good();
        let knob = &knobs::sched::AUTOGROUP;
        set_setting(&mut facts, knob, Reading::absent("/proc/sys/kernel/sched_autogroup_enabled"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
        set_setting(&mut facts, knob, Reading::denied("/x", "EACCES"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
