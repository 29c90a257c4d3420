//! The measured threads seen from outside, once a second: whether each is still where it was put,
//! and who changed its policy or the CPUs that it may run on.

use rtproof_host::{
    HostSampler, Placement,
    facts::tasks::Policy,
    tune::{Scheduling, Tasks},
};
use rtproof_judge::units;
use rtproof_measure::LiveTasks;
use rtproof_record::{
    Tick,
    beside::{MARKS_MAX, Mark, MarkKind},
    run::{Note, ThreadInfo},
};

use super::{notes, observer::Observer};

/// A thread as it was last seen.
#[derive(Debug)]
struct Watched {
    info: ThreadInfo,
    /// Whether it was put on its CPU: else it may be anywhere.
    is_pinned: bool,
    lost: bool,
    /// Times that it had come to another CPU when it was last seen.
    migrations: Option<u64>,
    /// How it was scheduled, and when that was seen; `None`: it could not be asked.
    last: Option<(Scheduling, u64)>,
}

/// All threads of a run.
#[derive(Debug, Default)]
pub(super) struct Watch {
    threads: Vec<Watched>,
    marks: usize,
}

#[derive(Debug, Default)]
pub(super) struct Look {
    /// Threads that are no longer on their CPUs.
    pub(super) lost: Vec<u32>,
    pub(super) notes: Vec<Note>,
    pub(super) marks: Vec<Mark>,
}

impl Watch {
    /// Watches a thread from now on; it has started.
    pub(super) fn add(&mut self, sampler: &HostSampler, info: ThreadInfo, is_pinned: bool) {
        let now = LiveTasks.scheduling(info.tid).ok();
        let last = now.map(|scheduling| (as_begun(scheduling, &info), 0));
        let placement = sampler.thread_placement(info.tid);
        let migrations = placement.value().and_then(|placement| placement.migrations);
        self.threads.push(Watched { info, is_pinned, lost: false, migrations, last });
    }

    /// The threads, by number.
    pub(super) fn threads(&self) -> impl Iterator<Item = &ThreadInfo> {
        self.threads.iter().map(|watched| &watched.info)
    }

    pub(super) fn thread(&self, number: u32) -> Option<&ThreadInfo> {
        self.threads.get(number as usize).map(|watched| &watched.info)
    }

    /// Whether it was found elsewhere.
    pub(super) fn is_lost(&self, number: u32) -> bool {
        self.threads.get(number as usize).is_some_and(|watched| watched.lost)
    }

    /// Shows what a second brought of the threads.
    pub(super) fn show(&self, tick: &Tick, observer: &mut dyn Observer) {
        for row in &tick.threads {
            if let Some(info) = self.thread(row.number) {
                observer.second(info, &row.second);
            }
        }
        for mark in &tick.beside.marks {
            if let Some(info) = self.thread(mark.thread) {
                observer.mark(info, mark);
            }
        }
    }

    /// Looks at all threads.
    pub(super) fn look(&mut self, sampler: &mut HostSampler, now_ns: u64) -> Look {
        let online = sampler.online();
        let mut seen = Look::default();
        for watched in self.threads.iter_mut().filter(|watched| !watched.lost) {
            let cpu = watched.info.cpu;
            // A thread that has ended has no placement and no scheduling.
            if let Ok(scheduling) = LiveTasks.scheduling(watched.info.tid) {
                seen.marks.extend(watched.changes(&scheduling, now_ns));
                watched.last = Some((scheduling, now_ns));
            }
            if !watched.is_pinned {
                continue;
            }
            let placement = sampler.thread_placement(watched.info.tid);
            let Some(placement) = placement.value() else { continue };
            let is_online = online.value().is_none_or(|online| online.contains(cpu));
            let was_away = watched.has_moved(placement);
            if placement.cpu != cpu || !is_online || was_away {
                watched.lost = true;
                seen.lost.push(watched.info.number);
                seen.notes.push(notes::cpu_lost(now_ns, cpu, placement.cpu, is_online));
            }
        }
        seen.marks.truncate(MARKS_MAX - self.marks);
        self.marks += seen.marks.len();
        for mark in &seen.marks {
            let cpu = self.thread(mark.thread).map_or(0, |info| info.cpu);
            seen.notes.push(notes::changed(mark, cpu));
        }
        seen
    }
}

impl Watched {
    /// Whether it came to another CPU since it was last seen, even if it is back.
    fn has_moved(&mut self, placement: &Placement) -> bool {
        let before = std::mem::replace(&mut self.migrations, placement.migrations);
        before.zip(placement.migrations).is_some_and(|(before, now)| now != before)
    }

    /// What is not as it was.
    fn changes(&self, now: &Scheduling, now_ns: u64) -> Vec<Mark> {
        let Some((last, since_ns)) = &self.last else { return Vec::new() };
        let mark = |kind, [before, after]: [String; 2]| Mark {
            thread: self.info.number,
            since_ns: *since_ns,
            at_ns: now_ns,
            kind,
            before,
            after,
        };
        let policies = [policy_text(last), policy_text(now)];
        let cpus = [cpus_text(last), cpus_text(now)];
        [(MarkKind::Policy, policies), (MarkKind::Affinity, cpus)]
            .into_iter()
            .filter(|(_, texts)| texts[0] != texts[1])
            .map(|(kind, texts)| mark(kind, texts))
            .collect()
    }
}

/// How a thread was scheduled when it began to measure, which on a busy machine may be a while ago.
fn as_begun(now: Scheduling, info: &ThreadInfo) -> Scheduling {
    if now.policy.as_deref() == Some(info.policy.name())
        && now.priority.is_none_or(|priority| priority == info.priority)
    {
        return now;
    }
    let has_priority = matches!(info.policy, Policy::Fifo | Policy::Rr);
    Scheduling {
        policy: Some(info.policy.name().into()),
        priority: has_priority.then_some(info.priority),
        nice: None,
        deadline_ns: None,
        ..now
    }
}

/// A policy and what belongs to it, e.g. `SCHED_FIFO 80`.
fn policy_text(of: &Scheduling) -> String {
    let policy = of.policy.as_deref().unwrap_or("?").to_ascii_uppercase();
    let rest = match (of.priority, of.nice, of.deadline_ns) {
        (Some(priority), ..) => format!(" {priority}"),
        (_, Some(nice), _) if nice != 0 => format!(" nice {nice}"),
        (.., Some(times)) => format!(" {}", times.map(units::ns).join("/")),
        _ => String::new(),
    };
    format!("SCHED_{policy}{rest}")
}

fn cpus_text(of: &Scheduling) -> String {
    of.cpus.as_ref().map_or("?".into(), units::cpus)
}

#[cfg(test)]
mod tests {
    use rtproof_host::CpuList;

    use super::*;

    fn fifo(priority: u32) -> Scheduling {
        let (policy, cpus) = (Some("fifo".into()), Some(CpuList::new([1])));
        Scheduling { policy, priority: Some(priority), cpus, ..Scheduling::default() }
    }

    fn watched(last: Option<(Scheduling, u64)>) -> Watched {
        let info = ThreadInfo {
            number: 3,
            cpu: 1,
            tid: 77,
            workload: "timer-wakeup".into(),
            policy: Policy::Fifo,
            priority: 80,
            locked: true,
            period_ns: 1,
            first_due_ns: 0,
        };
        Watched { info, is_pinned: true, lost: false, migrations: Some(1), last }
    }

    #[test]
    fn what_is_not_as_it_was_is_marked() {
        let thread = watched(Some((fifo(80), 5)));
        assert_eq!(thread.changes(&fifo(80), 9), []);
        let both = Scheduling { cpus: Some(CpuList::new([0, 1])), ..fifo(81) };
        let marks = thread.changes(&both, 9);
        let told: Vec<_> =
            marks.iter().map(|m| (m.kind, m.before.as_str(), m.after.as_str())).collect();
        let expected = [
            (MarkKind::Policy, "SCHED_FIFO 80", "SCHED_FIFO 81"),
            (MarkKind::Affinity, "CPU 1", "CPUs 0-1"),
        ];
        assert_eq!(told, expected);
        assert!(marks.iter().all(|m| (m.thread, m.since_ns, m.at_ns) == (3, 5, 9)));
        assert_eq!(watched(None).changes(&both, 9), [], "what was is not known");
    }

    #[test]
    fn what_was_changed_before_the_first_look_is_a_change() {
        let info = watched(None).info;
        assert_eq!(as_begun(fifo(80), &info), fifo(80));
        assert_eq!(as_begun(fifo(7), &info), fifo(80));
        let nice =
            Scheduling { policy: Some("other".into()), priority: None, nice: Some(5), ..fifo(80) };
        assert_eq!(as_begun(nice.clone(), &info), fifo(80));
        let ordinary = ThreadInfo { policy: Policy::Other, priority: 0, ..info };
        assert_eq!(as_begun(nice.clone(), &ordinary), nice);
        assert_eq!(policy_text(&as_begun(fifo(7), &ordinary)), "SCHED_OTHER");
    }

    #[test]
    fn who_went_away_and_came_back_has_moved() {
        let mut thread = watched(None);
        let at = |migrations| Placement { cpu: 1, migrations };
        assert!(!thread.has_moved(&at(Some(1))));
        assert!(thread.has_moved(&at(Some(3))));
        assert!(!thread.has_moved(&at(None)), "not counted is not moved");
        assert!(!thread.has_moved(&at(Some(4))), "what was before is not known");
    }

    #[test]
    fn policies_are_named_with_what_belongs_to_them() {
        let of = |policy: &str| Scheduling { policy: Some(policy.into()), ..Scheduling::default() };
        assert_eq!(policy_text(&of("other")), "SCHED_OTHER");
        assert_eq!(
            policy_text(&Scheduling { nice: Some(-5), ..of("batch") }),
            "SCHED_BATCH nice -5"
        );
        assert_eq!(policy_text(&Scheduling { nice: Some(0), ..of("other") }), "SCHED_OTHER");
        let deadline_ns = Some([100_000, 900_000, 1_000_000]);
        let deadline = Scheduling { deadline_ns, ..of("deadline") };
        assert_eq!(policy_text(&deadline), "SCHED_DEADLINE 100 µs/900 µs/1 ms");
    }
}
