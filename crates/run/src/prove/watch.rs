//! The measured threads seen from outside, once a second: whether each is still where it was put,
//! and changes of its policy or allowed CPUs.

use rtproof_host::{
    HostSampler, Placement, Root,
    facts::tasks::Policy,
    idle::IdleSampler,
    tune::{Scheduling, Tasks},
};
use rtproof_judge::units;
use rtproof_measure::{
    LiveTasks,
    clock::{Clock, Steps},
};
use rtproof_record::{
    Options, Tick,
    run::{CpuIdleState, IDLE_READINGS_MAX, IdleTime, MARKS_MAX, Mark, MarkKind, Note, ThreadInfo},
};

use super::{Observer, notes};

/// A thread as it was last seen.
#[derive(Debug)]
struct Watched {
    info: ThreadInfo,
    /// Whether it was put on its CPU: else it may be anywhere.
    is_pinned: bool,
    lost: bool,
    /// Number of migrations at the last look.
    migrations: Option<u64>,
    /// How it was scheduled, and when that was seen; `None`: it could not be asked.
    last: Option<(Scheduling, u64)>,
}

/// All threads of a run.
#[derive(Debug, Default)]
pub(super) struct ThreadWatch {
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

impl ThreadWatch {
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
        for mark in &tick.surroundings.marks {
            if let Some(info) = self.thread(mark.thread) {
                observer.mark(info, mark);
            }
        }
    }

    /// Looks at all threads.
    pub(super) fn poll(&mut self, sampler: &mut HostSampler, now_ns: u64) -> Look {
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

// Idle states of the measured CPUs, as often as a record takes them.

const SECOND_NS: u64 = 1_000_000_000;

/// A second's reading comes some time after its end, never a whole one.
const SLACK_NS: u64 = SECOND_NS / 2;

#[derive(Debug)]
pub(super) struct IdleReader {
    sampler: IdleSampler,
    step_ns: u64,
    next_ns: u64,
    left: u64,
}

impl IdleReader {
    pub(super) fn new(root: &Root, options: &Options) -> Self {
        let step_ns = step_ns(options.duration_ns);
        Self {
            sampler: IdleSampler::new(root, &options.cpus),
            step_ns,
            next_ns: step_ns - SLACK_NS,
            left: IDLE_READINGS_MAX,
        }
    }

    /// The states there are.
    pub(super) fn states(&self) -> Vec<CpuIdleState> {
        self.sampler.states().to_vec()
    }

    /// Times since the reading before, where it is time for one.
    pub(super) fn sample(&mut self, now_ns: u64) -> Option<Vec<IdleTime>> {
        if now_ns < self.next_ns || self.left == 0 || self.sampler.states().is_empty() {
            return None;
        }
        self.next_ns = now_ns - SLACK_NS + self.step_ns;
        self.left -= 1;
        Some(self.sampler.sample())
    }
}

/// Time between readings: whole seconds.
fn step_ns(duration_ns: u64) -> u64 {
    duration_ns.div_ceil(IDLE_READINGS_MAX).div_ceil(SECOND_NS).max(1) * SECOND_NS
}

// Steps of the clock that a run is measured by, as the threads found them. They are noted when
// they come, so that a run that is killed has them in its record.

/// Notes of one run, at most. A daemon may set the clock every second, for days.
const NOTES_MAX: u32 = 20;

/// What was noted so far.
#[derive(Debug, Default)]
pub(super) struct StepWatch {
    clock: Clock,
    /// By number of the thread.
    noted: Vec<Steps>,
    notes: u32,
    left_out: u32,
}

impl StepWatch {
    pub(super) fn of(clock: Clock) -> Self {
        Self { clock, ..Self::default() }
    }

    /// What is new, of all threads with their numbers. `cpu` names the CPU of a thread.
    pub(super) fn poll(
        &mut self,
        at_ns: u64,
        now: impl Iterator<Item = (u32, Steps)>,
        cpu: impl Fn(u32) -> u32,
    ) -> Option<Note> {
        let mut new: Vec<(u32, Steps)> = Vec::new();
        for (number, steps) in now {
            let at = number as usize;
            self.noted.resize(self.noted.len().max(at + 1), Steps::default());
            let since = steps.since(self.noted[at]);
            self.noted[at] = steps;
            if !since.is_empty() {
                new.push((cpu(number), since));
            }
        }
        if new.is_empty() {
            return None;
        }
        if self.notes >= NOTES_MAX {
            self.left_out += 1;
            return None;
        }
        self.notes += 1;
        Some(note(at_ns, self.clock, &new))
    }

    /// What was not noted, after the last look.
    pub(super) fn rest(&self, at_ns: u64) -> Option<Note> {
        let (first, rest) = self.noted.split_first()?;
        let most = rest.iter().fold(*first, |most, one| Steps {
            steps: most.steps.max(one.steps),
            ahead_ns: most.ahead_ns.max(one.ahead_ns),
            back_ns: most.back_ns.max(one.back_ns),
            unmeasured: most.unmeasured + one.unmeasured,
            bounds: most.bounds + one.bounds,
        });
        let text = format!(
            "{} was set in {} more seconds than are listed. In the whole run: {}; {}.",
            self.clock.name(),
            self.left_out,
            moved(&most),
            lost_cycles(most.unmeasured, most.bounds)
        );
        (self.left_out > 0).then(|| step_note(at_ns, &most, text))
    }
}

fn note(at_ns: u64, clock: Clock, new: &[(u32, Steps)]) -> Note {
    // The clock is one: threads differ in what they found only where a step came between.
    let most =
        new.iter().map(|(_, steps)| *steps).max_by_key(|steps| steps.ahead_ns + steps.back_ns);
    let most = most.unwrap_or_default();
    let cpus = rtproof_host::CpuList::new(new.iter().map(|(cpu, _)| *cpu));
    let (unmeasured, bounds) = new
        .iter()
        .fold((0, 0), |(cycles, bounds), (_, of)| (cycles + of.unmeasured, bounds + of.bounds));
    let why = match clock {
        Clock::Boottime => ", as a suspend does",
        _ => "",
    };
    // A sample that may hold it is marked.
    let free = if bounds == 0 { "the step is in no latency; " } else { "" };
    let text = format!(
        "{} was set{why}: {}, noticed {} after the start on {}; {free}{}.",
        clock.name(),
        moved(&most),
        units::duration(at_ns),
        units::cpus(&cpus),
        lost_cycles(unmeasured, bounds)
    );
    step_note(at_ns, &Steps { unmeasured, bounds, ..most }, text)
}

fn step_note(at_ns: u64, steps: &Steps, text: String) -> Note {
    let weakens = steps.unmeasured > 0 || steps.bounds > 0;
    Note { at_ns, id: "clock-set".into(), text, weakens }
}

/// How often and by how much.
fn moved(steps: &Steps) -> String {
    let mut parts = vec![units::times(steps.steps)];
    for (word, ns) in [("ahead", steps.ahead_ns), ("back", steps.back_ns)] {
        if ns > 0 {
            parts.push(format!("{word} by {}", units::ns(ns)));
        }
    }
    parts.join(", ")
}

/// What of the cycles was lost to it.
fn lost_cycles(unmeasured: u64, bounds: u64) -> String {
    let cycles = match unmeasured {
        0 => "no cycle was left out for it".into(),
        1 => "1 cycle that fell into it is not measured".into(),
        n => format!("{} cycles that fell into it are not measured", units::grouped(n)),
    };
    match bounds {
        0 => cycles,
        n => format!("{cycles}; {} may be wrong by as much as the step", units::count(n, "sample")),
    }
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
        let reported: Vec<_> =
            marks.iter().map(|m| (m.kind, m.before.as_str(), m.after.as_str())).collect();
        let expected = [
            (MarkKind::Policy, "SCHED_FIFO 80", "SCHED_FIFO 81"),
            (MarkKind::Affinity, "CPU 1", "CPUs 0-1"),
        ];
        assert_eq!(reported, expected);
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
    fn a_thread_that_left_and_returned_has_moved() {
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

#[cfg(test)]
mod idle_tests {
    use super::*;

    #[test]
    fn a_long_run_has_as_many_readings_as_a_record_takes() {
        assert_eq!(
            [1, 600, 601, 86_400].map(|s| step_ns(s * SECOND_NS) / SECOND_NS),
            [1, 1, 2, 144]
        );
        assert!((1..100_000).all(|s| s * SECOND_NS / step_ns(s * SECOND_NS) <= IDLE_READINGS_MAX));
    }
}

#[cfg(test)]
mod steps_tests {
    use super::*;

    const STEP: Steps =
        Steps { steps: 1, ahead_ns: 0, back_ns: 3_600_000_000_000, unmeasured: 0, bounds: 0 };

    #[test]
    fn a_step_is_noted_once_with_what_it_cost() {
        let mut watch = StepWatch::of(Clock::Realtime);
        let cpu = |number| number + 2;
        let none = Steps::default();
        assert!(watch.poll(1, [(0, none), (1, none)].into_iter(), cpu).is_none());
        let note = watch.poll(2_000_000_000, [(0, STEP), (1, STEP)].into_iter(), cpu);
        let note = note.expect("news");
        assert!(!note.weakens);
        for part in ["set: once, back by", "CPUs 2-3", "in no latency", "no cycle was left out"] {
            assert!(note.text.contains(part), "{part}: {}", note.text);
        }
        assert!(watch.poll(3, [(0, STEP), (1, STEP)].into_iter(), cpu).is_none(), "noted before");
        let worse = Steps { steps: 2, unmeasured: 7, bounds: 1, ..STEP };
        let note = watch.poll(4, [(0, STEP), (1, worse)].into_iter(), cpu).expect("news");
        assert!(note.weakens && note.text.contains("7 cycles"), "{}", note.text);
        // One sample may hold it.
        assert!(!note.text.contains("in no latency"), "{}", note.text);
        assert!(watch.rest(5).is_none(), "all was noted");
    }

    #[test]
    fn what_is_too_much_is_summed_up() {
        let mut watch = StepWatch::of(Clock::Tai);
        let noted = (1..=30_u64).filter_map(|n| {
            let steps = Steps { steps: n, ahead_ns: n * 1000, ..Steps::default() };
            watch.poll(n, [(0, steps)].into_iter(), |number| number)
        });
        assert_eq!(noted.count(), 20);
        let text = watch.rest(31).expect("the rest").text;
        assert!(text.contains("10 more seconds") && text.contains("30 times"), "{text}");
        assert!(text.contains("ahead by 30 µs"), "{text}");
    }
}
