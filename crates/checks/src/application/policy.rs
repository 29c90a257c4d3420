//! Is any thread real-time, and is none at the very top?

use rtproof_host::tune::Scheduling;

use crate::Impact;
use crate::case::{Case, NAMED_MAX, name, policy_of, set};
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::{count, first_few};

/// The highest priority: the stopper of each CPU and the feeder of the watchdog have it.
const HIGHEST: u32 = 99;

pub(super) static CHECK: Check = Check {
    id: "app-policy",
    title: "policy and priority of the application's threads",
    why: "an ordinary thread waits until the scheduler finds its turn fair, behind every real-time \
          task and beside all ordinary ones",
    source: "sched(7); kernel/sched/core.c; kernel/stop_machine.c",
    trade_off: Some("a real-time thread that does not sleep keeps all ordinary tasks off its CPU"),
    impact: Impact::Milliseconds,
    wanted: Wanted::Text("at least one thread under SCHED_FIFO, SCHED_RR or SCHED_DEADLINE"),
    judge: Judge::App(judge),
    ..Check::NEW
};

/// Real-time, with this priority.
fn fifo(priority: u32) -> Scheduling {
    let policy = Some("fifo".to_owned());
    Scheduling { policy, priority: Some(priority), ..Scheduling::default() }
}

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let (draft, threads) = case.scheduled(draft)?;
    let real_time: Vec<_> = threads.iter().filter(|t| t.sched.policy.is_real_time()).collect();
    if real_time.is_empty() {
        let priority = case.intent.priority.clamp(1, HIGHEST - 1);
        let unit = format!("CPUSchedulingPolicy=fifo\nCPUSchedulingPriority={priority}");
        let what = match threads.as_slice() {
            [one] => format!("its only thread is {}", policy_of(one.sched)),
            all => format!("none of its {} is real-time", count(all.len(), "thread")),
        };
        let main = threads.iter().find(|found| found.thread.tid == case.app.pid);
        let remedies = main.map(|main| set(main.thread, main.sched, fifo(priority)));
        return Ok(draft.remedies(remedies).remedies(case.drop_in(&unit)).bad(what));
    }
    let names: Vec<String> = real_time.iter().map(|t| name(t.thread, t.sched)).collect();
    let summary = format!(
        "{} of {}: {}",
        real_time.len(),
        count(threads.len(), "thread"),
        first_few(&names, NAMED_MAX)
    );
    match real_time.iter().find(|thread| thread.sched.priority >= HIGHEST) {
        Some(top) => {
            let below = set(top.thread, top.sched, fifo(HIGHEST - 1));
            Ok(draft.remedies([below]).doubtful(format!(
                "{summary}; 99 is also the priority of the kernel's own migration threads, which \
                 then wait for it"
            )))
        }
        None => Ok(draft.good(summary)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, blank, sched_of};
    use rtproof_host::facts::tasks::Policy;

    #[test]
    fn good_bad_doubtful_and_unknown() {
        let mut scene = Scene::good();
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Good);
        assert_eq!(finding.summary, "1 of 2 threads: loop (tid 101, SCHED_FIFO 80)");
        sched_of(&mut scene, 101).priority = 99;
        assert_eq!(scene.judge(&CHECK).status, Doubtful);
        sched_of(&mut scene, 101).policy = Policy::Other;
        let finding = scene.judge(&CHECK);
        assert_eq!((finding.status, finding.remedies.len()), (Bad, 2));
        assert_eq!(finding.summary, "none of its 2 threads is real-time");
        blank(&mut scene.app.processes[0].threads);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
    }
}
