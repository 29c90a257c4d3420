//! How often did its real-time threads lose the CPU?
//!
//! The count holds every switch away from a thread that had work: to a task of a higher priority,
//! at the end of a slice, on PREEMPT_RT also a wait for a lock of the kernel; and those before the
//! thread became real-time. So it is reported and not judged: what matters is whether it rises.

use crate::Impact;
use crate::case::{Case, NAMED_MAX, of_threads};
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::{first_few, times};

pub(super) static CHECK: Check = Check {
    id: "app-preempted",
    title: "involuntary context switches of the application's real-time threads",
    why: "each one is a time when the thread had work and another ran",
    source: "proc_pid_status(5) (nonvoluntary_ctxt_switches); kernel/sched/core.c (__schedule)",
    impact: Impact::Information,
    wanted: Wanted::Text("known; it should not rise"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let (draft, threads) = case.placed(draft)?;
    let readings = threads.iter().map(|found| (found.thread, &found.thread.status));
    let draft = draft.saw(of_threads(readings, |status| {
        format!("{} voluntary, {} not", status.voluntary_switches, status.involuntary_switches)
    }));
    let mut sorted: Vec<_> = threads.iter().collect();
    sorted.sort_by_key(|thread| std::cmp::Reverse(thread.status.involuntary_switches));
    let shown: Vec<String> = sorted
        .iter()
        .map(|found| {
            let (lost, tid) = (found.status.involuntary_switches, found.thread.tid);
            format!("{} (tid {tid}) {}", found.sched.comm, times(lost))
        })
        .collect();
    Ok(draft.good(format!("lost the CPU since the start: {}", first_few(&shown, NAMED_MAX))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Good, NotApplicable, Unknown};
    use crate::application::testing::{Scene, blank, sched_of, thread};
    use rtproof_host::facts::tasks::Policy;

    #[test]
    fn told_unknown_and_not_applicable() {
        let mut scene = Scene::good();
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Good);
        assert!(finding.summary.ends_with("loop (tid 101) once"), "{}", finding.summary);
        blank(&mut thread(&mut scene, 101).status);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
        sched_of(&mut scene, 101).policy = Policy::Batch;
        assert_eq!(scene.judge(&CHECK).status, NotApplicable);
    }
}
