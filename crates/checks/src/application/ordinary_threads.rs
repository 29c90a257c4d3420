//! Its threads that are not real-time: do they share a CPU with those that are?

use crate::case::{Case, NAMED_MAX, Scheduled, of_threads, place};
use crate::check::{Answer, Check, Judge, Wanted};
use crate::draft::Draft;
use crate::text::{count, cpus, first_few};
use crate::{Impact, Remedy};

pub(super) static CHECK: Check = Check {
    id: "app-ordinary-threads",
    title: "ordinary threads on the CPUs of the application's real-time threads",
    why: "ordinary threads on the same CPU evict its caches and start timers and work of the \
          kernel there, and hold locks that a real-time thread may wait for",
    source: "sched(7); Documentation/timers/no_hz.rst (a second runnable task keeps the tick)",
    impact: Impact::Microseconds,
    wanted: Wanted::Text("none on the CPUs of its real-time threads"),
    judge: Judge::App(judge),
    ..Check::NEW
};

fn judge(draft: Draft, case: &Case<'_>) -> Answer {
    let (draft, all) = case.scheduled(draft)?;
    let (real_time, ordinary): (Vec<Scheduled<'_>>, Vec<Scheduled<'_>>) =
        all.iter().partition(|thread| thread.sched.policy.is_real_time());
    if real_time.is_empty() {
        return Ok(draft.not_applicable("the application has no real-time thread"));
    }
    if ordinary.is_empty() {
        return Ok(draft.good(format!("all of its {} are real-time", count(all.len(), "thread"))));
    }
    let (draft, real_time) = place(draft, &real_time)?;
    let readings = ordinary.iter().map(|found| (found.thread, &found.thread.status));
    let draft = draft.saw(of_threads(readings, |status| format!("CPUs {}", status.cpus)));
    let shares = |cpus: &rtproof_host::CpuList| {
        real_time.iter().any(|thread| !thread.status.cpus.intersection(cpus).is_empty())
    };
    let placed = ordinary.iter().filter_map(|found| Some((found, found.thread.status.value()?)));
    let beside: Vec<_> = placed.filter(|(_, status)| shares(&status.cpus)).collect();
    if beside.is_empty() {
        if let Some(unread) = ordinary.iter().find(|t| t.thread.status.value().is_none()) {
            return Ok(draft.blind(&unread.thread.status));
        }
        let number = count(ordinary.len(), "ordinary thread");
        return Ok(draft.good(format!("{number}, on other CPUs")));
    }
    let names: Vec<String> = beside
        .iter()
        .map(|(t, on)| format!("{} (tid {}) on {}", t.sched.comm, t.thread.tid, cpus(&on.cpus)))
        .collect();
    let text = "start ordinary threads with the affinity of the housekeeping CPUs \
                (pthread_attr_setaffinity_np(3)), or move them with taskset(1)";
    Ok(draft.remedies([Remedy::Manual { text: text.into() }]).doubtful(format!(
        "{} may run beside its real-time threads: {}",
        count(beside.len(), "ordinary thread"),
        first_few(&names, NAMED_MAX)
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status::{Doubtful, Good, NotApplicable, Unknown};
    use crate::application::testing::{Scene, blank, sched_of, set_cpus, thread};
    use rtproof_host::facts::tasks::Policy;

    #[test]
    fn elsewhere_beside_none_and_unknown() {
        let mut scene = Scene::good();
        assert_eq!(scene.judge(&CHECK).summary, "1 ordinary thread, on other CPUs");
        set_cpus(&mut scene, 100, &[0, 1, 2]);
        assert_eq!(scene.judge(&CHECK).status, Doubtful);
        blank(&mut thread(&mut scene, 100).status);
        assert_eq!(scene.judge(&CHECK).status, Unknown);
        sched_of(&mut scene, 100).policy = Policy::Fifo;
        assert_eq!(scene.judge(&CHECK).status, Good);
        for tid in [100, 101] {
            sched_of(&mut scene, tid).policy = Policy::Other;
        }
        assert_eq!(scene.judge(&CHECK).status, NotApplicable);
    }
}
