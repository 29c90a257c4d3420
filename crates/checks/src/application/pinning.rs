//! Has each real-time thread one CPU of its own choice?
//!
//! SCHED_DEADLINE is left out: its threads must be allowed on all CPUs of their domain.

use rtproof_host::facts::tasks::Policy;

use crate::Remedy;
use crate::case::{Case, NAMED_MAX, name};
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::{cpus, first_few};

pub(super) static CHECK: Check = Check {
    id: "app-pinning",
    title: "real-time threads that may move between CPUs",
    why: "after a move to another CPU the thread finds its data in none of the near caches",
    source: "kernel/sched/rt.c (push_rt_task, pull_rt_task); sched_setaffinity(2)",
    trade_off: Some(
        "a pinned thread waits for a task of its own or a higher priority there even while another \
         CPU is idle",
    ),
    wanted: Wanted::Text("one CPU for each real-time thread"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let (draft, threads) = case.placed(draft)?;
    let wide: Vec<String> = threads
        .iter()
        .filter(|t| t.sched.policy != Policy::Deadline && t.status.cpus.len() > 1)
        .map(|t| format!("{} on {}", name(t.thread, t.sched), cpus(&t.status.cpus)))
        .collect();
    if wide.is_empty() {
        return Ok(draft.good("each real-time thread has one CPU"));
    }
    let text = "pin each thread to a CPU of its own with pthread_setaffinity_np(3) or taskset(1)";
    Ok(draft
        .remedies([Remedy::Manual { text: text.into() }])
        .doubtful(format!("may move: {}", first_few(&wide, NAMED_MAX))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, sched_of, set_cpus, thread};

    #[test]
    fn one_cpu_or_several() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).status, Good);
        set_cpus(&mut scene, 101, &[2, 3]);
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Doubtful);
        assert_eq!(finding.summary, "may move: loop (tid 101, SCHED_FIFO 80) on CPUs 2-3");
        sched_of(&mut scene, 101).policy = Policy::Deadline;
        assert_eq!(scene.judge(&CHECK).status, Good);
        blank(&mut thread(&mut scene, 101).status);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
