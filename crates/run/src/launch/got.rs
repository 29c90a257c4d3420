//! What the threads of a program got: the kernel's counts, looked at while they live, and their
//! wake-ups where those were recorded.

use std::collections::{BTreeMap, btree_map::Entry};

use rtproof_host::{
    Root,
    counts::{self, Counts},
    facts::tasks::Policy,
};
use rtproof_judge::units;
use rtproof_results::{
    launch::{Answer, BudgetKept, Faults, Latency, Preempted, Scheduling, Thread, WakeUps},
    policy_name,
};

use crate::explain::live::Closed;

/// Most threads that are kept apart.
const THREADS_MAX: usize = 4_096;

/// The threads of the program and of the processes that it started.
#[derive(Debug, Default)]
pub(super) struct Threads {
    seen: BTreeMap<u32, (u32, Option<Counts>)>,
    more: u64,
}

impl Threads {
    /// Looks for threads that have come; returns them. Each is looked at once, in case that it ends
    /// before the next look.
    pub(super) fn find(&mut self, root: &Root, pids: &[u32]) -> Vec<u32> {
        let mut fresh = Vec::new();
        for &pid in pids {
            for tid in counts::threads(root, pid) {
                let is_full = self.seen.len() >= THREADS_MAX;
                match self.seen.entry(tid) {
                    Entry::Occupied(_) => {}
                    Entry::Vacant(_) if is_full => self.more += 1,
                    Entry::Vacant(place) => {
                        place.insert((pid, counts::of_thread(root, pid, tid)));
                        fresh.push(tid);
                    }
                }
            }
        }
        fresh
    }

    /// What was last seen of a thread.
    pub(super) fn counts(&self, tid: u32) -> Option<&Counts> {
        self.seen.get(&tid)?.1.as_ref()
    }

    /// Looks at all of them again. One that has ended keeps what it had.
    pub(super) fn look(&mut self, root: &Root) {
        for (&tid, (pid, seen)) in &mut self.seen {
            let now = counts::of_thread(root, *pid, tid);
            let is_same =
                |now: &Counts| seen.as_ref().is_none_or(|seen| seen.start_ticks == now.start_ticks);
            let Some(mut now) = now.filter(is_same) else { continue };
            // One that waits to be waited for has no CPUs any more.
            now.cpus = now.cpus.or_else(|| seen.as_ref().and_then(|seen| seen.cpus.clone()));
            *seen = Some(now);
        }
    }

    /// What they got, and how many were not kept apart.
    pub(super) fn finish(self, recorded: Option<&Closed>) -> (Vec<Thread>, u64) {
        let thread =
            |(tid, (pid, seen)): (u32, (u32, Option<Counts>))| thread(tid, pid, seen, recorded);
        (self.seen.into_iter().map(thread).collect(), self.more)
    }
}

fn thread(tid: u32, pid: u32, seen: Option<Counts>, recorded: Option<&Closed>) -> Thread {
    let id = tid.cast_signed();
    let totals = recorded.and_then(|of| of.totals.iter().find(|totals| totals.tid == id));
    let of_policy = |policy: Policy, priority| Scheduling {
        policy: policy_name(policy),
        priority,
        is_real_time: policy.is_real_time(),
    };
    let latency = totals.filter(|totals| totals.wake_ups > 0).map(|totals| Latency {
        wake_ups: totals.wake_ups,
        over: totals.over,
        mean_ns: totals.sum_ns / totals.wake_ups,
        worst_ns: totals.worst.map_or(0, |worst| worst.latency_ns()),
    });
    let mut preempted_by: Vec<Preempted> = recorded
        .into_iter()
        .flat_map(|of| &of.preemptions)
        .filter(|it| it.tid == id)
        .map(|it| Preempted { by: it.by.to_string(), times: it.times, waited_ns: it.waited_ns })
        .collect();
    preempted_by.sort_by_key(|it| std::cmp::Reverse((it.waited_ns, it.times)));
    let counted = seen.as_ref();
    Thread {
        tid,
        pid,
        name: counted.map_or_else(
            || totals.map_or_else(String::new, |it| it.comm.to_string()),
            |of| of.comm.clone(),
        ),
        scheduling: counted.and_then(|of| Some(of_policy(of.policy?, of.priority))),
        cpus: counted.and_then(|of| of.cpus.as_ref()).map_or_else(String::new, ToString::to_string),
        faults: counted.map(|of| Faults { minor: of.minor_faults, major: of.major_faults }),
        voluntary_switches: counted.and_then(|of| of.voluntary_switches),
        involuntary_switches: counted.and_then(|of| of.involuntary_switches),
        migrations: counted.and_then(|of| of.migrations).or(totals.map(|of| of.migrations)),
        latency,
        preempted_by,
    }
}

/// Whether the budget was kept, as far as it was recorded: by the real-time threads where there are
/// any, else by all. No confidence is claimed, which `prove` has: nobody chose how long this ran,
/// and under which load.
pub(super) fn verdict(
    budget_ns: u64,
    threads: &[Thread],
    recorded: Option<&WakeUps>,
) -> BudgetKept {
    let budget = units::ns(budget_ns);
    let answer = |answer, text: String| BudgetKept { budget_ns, answer, text };
    let Some(recorded) = recorded else {
        return answer(Answer::CannotTell, "cannot tell: wake-ups were not recorded".into());
    };
    let is_real_time = |of: &&Thread| of.scheduling.as_ref().is_some_and(|it| it.is_real_time);
    let has_real_time = threads.iter().any(|of| is_real_time(&of));
    let judged = threads.iter().filter(|of| !has_real_time || is_real_time(of));
    let judged: Vec<Latency> = judged.filter_map(|of| of.latency).collect();
    let whose = if has_real_time { "of its real-time threads" } else { "of its threads" };
    let wake_ups: u64 = judged.iter().map(|of| of.wake_ups).sum();
    let over: u64 = judged.iter().map(|of| of.over).sum();
    let worst = units::ns(judged.iter().map(|of| of.worst_ns).max().unwrap_or(0));
    if over > 0 {
        let text = format!(
            "exceeded: {over} of {wake_ups} recorded wake-ups {whose} were later than {budget}, \
             worst {worst}"
        );
        return answer(Answer::Exceeded, text);
    }
    if wake_ups == 0 {
        return answer(Answer::CannotTell, format!("cannot tell: no wake-up {whose} was recorded"));
    }
    if recorded.unseen > 0 {
        let text = format!(
            "cannot tell: none of {wake_ups} recorded wake-ups {whose} was later than {budget}, \
             but the kernel left out when {} others ended",
            recorded.unseen
        );
        return answer(Answer::CannotTell, text);
    }
    if recorded.lost_events > 0 {
        let text = format!(
            "cannot tell: none of {wake_ups} recorded wake-ups {whose} was later than {budget}, \
             but {} kernel events were lost, and wake-ups with them",
            recorded.lost_events
        );
        return answer(Answer::CannotTell, text);
    }
    let text = format!(
        "within: none of {wake_ups} recorded wake-ups {whose} was later than {budget}, worst \
         {worst}; that is what was seen, with no confidence"
    );
    answer(Answer::Within, text)
}

#[cfg(test)]
mod tests {
    use rtproof_judge::causes::Spikes;

    use super::*;

    fn of(policy: Policy, wake_ups: u64, over: u64) -> Thread {
        let counts = Counts {
            comm: "x".into(),
            start_ticks: 1,
            policy: Some(policy),
            priority: 1,
            cpus: None,
            minor_faults: 0,
            major_faults: 0,
            cpu_time_ns: 0,
            voluntary_switches: None,
            involuntary_switches: None,
            migrations: None,
        };
        let latency = Latency { wake_ups, over, mean_ns: 5, worst_ns: 9_000 };
        let latency = (wake_ups > 0).then_some(latency);
        Thread { latency, ..thread(7, 7, Some(counts), None) }
    }

    #[test]
    fn a_verdict_says_no_more_than_was_recorded() {
        let recorded = |lost_events| {
            let spikes = Spikes::default();
            Some(WakeUps { over_ns: 10_000, lost_events, unseen: 0, inferred: 0, spikes })
        };
        let said = |threads: &[Thread], recorded: Option<WakeUps>| {
            verdict(10_000, threads, recorded.as_ref()).answer
        };
        let good = of(Policy::Fifo, 100, 0);
        assert_eq!(said(std::slice::from_ref(&good), recorded(0)), Answer::Within);
        assert_eq!(said(std::slice::from_ref(&good), recorded(1)), Answer::CannotTell);
        assert_eq!(said(std::slice::from_ref(&good), None), Answer::CannotTell);
        let unseen = recorded(0).map(|of| WakeUps { unseen: 1, ..of });
        assert_eq!(said(std::slice::from_ref(&good), unseen), Answer::CannotTell);
        assert_eq!(said(&[of(Policy::Fifo, 0, 0)], recorded(0)), Answer::CannotTell);
        assert_eq!(said(&[], recorded(0)), Answer::CannotTell);
        assert_eq!(said(&[of(Policy::Fifo, 9, 1)], recorded(3)), Answer::Exceeded);
        // An ordinary thread counts only where no other is real-time.
        let ordinary = of(Policy::Other, 9, 1);
        assert_eq!(said(&[good, ordinary.clone()], recorded(0)), Answer::Within);
        assert_eq!(said(&[ordinary], recorded(0)), Answer::Exceeded);
    }
}
