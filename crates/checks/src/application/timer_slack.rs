//! Slack of its timers.
//!
//! Sleeps of real-time threads have none in any kernel. Timed waits for a futex, so for a
//! condition variable, do before 6.12, which is why the value that the file shows matters: from
//! 6.12 it is 0 for a real-time thread.

use crate::case::{Case, NAMED_MAX, Scheduled, name, of_threads};
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::first_few;
use crate::{Remedy, Status, quantity};
use rtproof_host::knobs::sched::TIMER_SLACK;

pub(super) static CHECK: Check = Check {
    id: "app-timer-slack",
    title: "slack of the application's timers",
    why: "a timer with slack may fire later by as much, so that it fires with others: 50 µs by \
          default",
    source: "proc_pid_timerslack_ns(5), PR_SET_TIMERSLACK(2const); kernel/sched/syscalls.c \
             (__setscheduler_params, 6.12); kernel/futex/waitwake.c (futex_wait)",
    wanted: Wanted::Text("0 for real-time threads, else 1 ns"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let (draft, mut threads) = case.scheduled(draft)?;
    let is_real_time = threads.iter().any(|thread| thread.sched.policy.is_real_time());
    if is_real_time {
        threads.retain(|thread| thread.sched.policy.is_real_time());
    }
    let readings = threads.iter().map(|found| (found.thread, &found.thread.timer_slack_ns));
    let draft = draft.saw(of_threads(readings, |ns| quantity::ns(*ns)));
    let is_slack =
        |thread: &&Scheduled<'_>| thread.thread.timer_slack_ns.value().is_some_and(|&ns| ns > 1);
    let slack: Vec<&Scheduled<'_>> = threads.iter().filter(is_slack).collect();
    let most = slack.iter().filter_map(|thread| thread.thread.timer_slack_ns.value()).max();
    let Some(&most) = most else {
        return match threads.iter().find(|t| t.thread.timer_slack_ns.value().is_none()) {
            Some(unread) => Ok(draft.blind(&unread.thread.timer_slack_ns)),
            None => Ok(draft.good("no slack")),
        };
    };
    let names: Vec<String> = slack.iter().map(|thread| name(thread.thread, thread.sched)).collect();
    let names = first_few(&names, NAMED_MAX);
    let most = quantity::ns(most);
    let paths = slack.iter().map(|t| t.thread.timer_slack_ns.path.clone()).take(NAMED_MAX);
    let write = Remedy::set(&TIMER_SLACK, paths.collect(), "1");
    let text = "call prctl(PR_SET_TIMERSLACK, 1) in the thread";
    let draft = draft.remedies([write, Remedy::Manual { text: text.into() }]);
    let (status, what) = match is_real_time {
        true => (Status::Doubtful, "timed waits for condition variables (sleeps are not delayed)"),
        false => (Status::Bad, "sleeps and timed waits"),
    };
    Ok(draft.status(status, format!("{what} end up to {most} late: {names}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Bad, Doubtful, Good, Unknown};
    use crate::application::testing::{Scene, sched_of, thread};
    use rtproof_host::{Reading, facts::tasks::Policy};

    #[test]
    fn none_real_time_ordinary_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).status, Good);
        let path = "/proc/101/timerslack_ns";
        thread(&mut scene, 101).timer_slack_ns = Reading::known(path, 50_000);
        let finding = scene.judge(&CHECK);
        assert_eq!(finding.status, Doubtful);
        assert!(finding.summary.contains("up to 50 µs late"), "{}", finding.summary);
        thread(&mut scene, 101).timer_slack_ns = Reading::denied(path, "needs root");
        assert_eq!(scene.judge(&CHECK).status, Unknown);
        sched_of(&mut scene, 101).policy = Policy::Other;
        assert_eq!(scene.judge(&CHECK).status, Bad, "50 µs of the ordinary one");
    }
}
