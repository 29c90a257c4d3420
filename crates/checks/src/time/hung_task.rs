//! How often does the kernel look for tasks that wait too long?
//!
//! The search has no fixed period: it is the timeout, or a shorter interval of its own.

use rtproof_host::{Facts, knobs::time as knobs};

use crate::check::{Check, Judge};
use crate::draft::Draft;
use crate::machine::built_with;
use crate::setting;
use crate::{Finding, Impact, Intent, Remedy};

/// Seconds between two searches in tuned's profile for isolated CPUs.
const SECONDS_MIN: i64 = 600;

pub(super) static CHECK: Check = Check {
    id: "hung-task",
    title: "search for hung tasks (khungtaskd)",
    why: "khungtaskd walks over every task in one go, and what a busy real-time thread keeps \
          waiting is reported on the console",
    source: "Documentation/admin-guide/sysctl/kernel.rst (hung_task_timeout_secs); \
             kernel/hung_task.c; tuned, profile cpu-partitioning (600); Wu, \"Real-time \
             programming with Linux, part 2\" (CONFIG_DETECT_HUNG_TASK)",
    trade_off: Some(
        "a task that never comes back from the kernel is reported later, or with 0 never",
    ),
    impact: Impact::Tens,
    knobs: &[&knobs::HUNG_TASK, &knobs::HUNG_TASK_INTERVAL],
    judge: Judge::Ask(judge),
    ..Check::NEW
};

fn judge(draft: Draft, facts: &Facts, _: &Intent) -> Finding {
    let timeout = setting::number(facts, &knobs::HUNG_TASK);
    let wanted = format!("0 (off), or at least {SECONDS_MIN} s");
    let draft = draft.wants(wanted).read(&timeout, show);
    if timeout.is_absent() && built_with(facts, "DETECT_HUNG_TASK") == Some(false) {
        return draft.without(facts, "DETECT_HUNG_TASK");
    }
    let Some(&timeout_s) = timeout.value() else {
        return draft.blind(&timeout);
    };
    if timeout_s == 0 {
        return draft.good("off");
    }
    let paths = vec![timeout.path.clone()];
    let remedy = Remedy::set(&knobs::HUNG_TASK, paths, SECONDS_MIN.to_string());
    if timeout_s < SECONDS_MIN {
        return draft.remedies([remedy]).doubtful(format!("searches every {timeout_s} s"));
    }
    let interval = setting::number(facts, &knobs::HUNG_TASK_INTERVAL);
    if interval.is_absent() {
        // Older kernels have the timeout alone.
        return draft.good(format!("searches every {timeout_s} s"));
    }
    let draft = draft.read(&interval, show);
    match interval.value() {
        None => draft.blind(&interval),
        Some(&interval_s) if interval_s > 0 && interval_s < SECONDS_MIN => {
            let paths = vec![interval.path.clone()];
            draft.remedies([Remedy::set(&knobs::HUNG_TASK_INTERVAL, paths, "0")]).doubtful(format!(
                "searches every {interval_s} s: the interval of its own is shorter"
            ))
        }
        Some(_) => draft.good(format!("searches not more than once in {SECONDS_MIN} s")),
    }
}

fn show(seconds: &i64) -> String {
    seconds.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{self, Doubtful, Good, NotApplicable, Unknown};
    use crate::testing::{fill_setting, good, intent, set_setting};
    use rtproof_host::Reading;

    fn status(timeout: &str, interval: &str) -> Status {
        let mut facts = good();
        fill_setting(&mut facts, &knobs::HUNG_TASK, timeout);
        fill_setting(&mut facts, &knobs::HUNG_TASK_INTERVAL, interval);
        CHECK.judge(&facts, &intent()).status
    }

    #[test]
    fn by_the_shorter_period() {
        assert_eq!(status("0", "?"), Good);
        assert_eq!(status("600", "0"), Good);
        assert_eq!(status("1200", "900"), Good);
        assert_eq!(status("120", "0"), Doubtful);
        assert_eq!(status("1200", "60"), Doubtful);
        assert_eq!(status("?", "0"), Unknown);
        assert_eq!(status("600", "?"), Unknown);
    }

    #[test]
    fn a_missing_file_needs_the_kernel_s_word() {
        let mut facts = good();
        set_setting(&mut facts, &knobs::HUNG_TASK, Reading::absent("x"));
        assert_eq!(CHECK.judge(&facts, &intent()).status, NotApplicable);
        facts.kernel.config = Reading::absent("/proc/config.gz");
        assert_eq!(CHECK.judge(&facts, &intent()).status, Unknown);
    }
}
