//! Causes: why a wake-up was late.
//!
//! The time from due to run is cut into moments ([`scene`]). Each moment goes to the first cause of
//! [`CAUSES`] that attributes it; the last cause takes the rest. Shares are disjoint and sum to the
//! latency by construction.
//!
//! To add one: copy what is in `_template.rs` into the file of its subject, fill it in, add one
//! line to [`CAUSES`] and one to [`CONTRADICTIONS`].
//!
//! Pure: the same wake-up and window give the same explanation.

#[cfg(test)]
mod _template;
mod explain;
mod interrupts;
mod machine;
mod names;
pub mod scene;
mod section;
pub mod table;
mod tasks;
#[cfg(test)]
mod testing;

pub use explain::explain;
pub use table::{CauseTable, ExplainedSpike, Explanation, Spikes};

pub use rtproof_model::{
    CauseCpu, CauseRow, RecorderSummary, ShareRow, Span, Structure, StructureMoment,
};

pub use crate::proof::{Certainty, Share};

use scene::WakeUpPhase;

use rtproof_trace::{EventClass, EventData, Extent, event};

use crate::Remedy;

/// All causes; the first one that attributes a moment decides.
pub const CAUSES: &[Cause] = &[
    interrupts::NMI,
    tasks::STOPPED,
    machine::HOTPLUG,
    tasks::MIGRATION,
    machine::PAGE_FAULT,
    tasks::BLOCKED,
    tasks::OWN_CYCLE,
    machine::TIMER_SLACK,
    interrupts::MASKED,
    interrupts::TIMER_WORK,
    interrupts::IPI,
    interrupts::IRQ,
    interrupts::SOFTIRQ,
    // Before rtproof: a server may have let its thread run, which then is not the cause.
    tasks::THROTTLED,
    tasks::RTPROOF,
    tasks::PRIORITY_INHERITANCE,
    interrupts::IRQ_THREAD,
    tasks::KWORKER,
    tasks::PREEMPTED,
    tasks::QUEUED,
    machine::FREQUENCY,
    interrupts::PREEMPT_OFF,
    machine::IDLE_EXIT,
    machine::SWITCH,
    interrupts::IRQS_OFF,
    machine::STALL,
    CAUSE,
];

/// The cause with an id.
pub fn find(id: &str) -> Option<&'static Cause> {
    CAUSES.iter().find(|cause| cause.id == id)
}

/// A cause in words; the id itself for one that a newer rtproof wrote.
pub fn title(id: &str) -> &str {
    match find(id) {
        Some(cause) => cause.title,
        None => id,
    }
}

/// The kind of the cause with an id; [`CauseKind::Unknown`] for one that a newer rtproof wrote.
pub fn kind(id: &str) -> CauseKind {
    find(id).map_or(CauseKind::Unknown, |cause| cause.kind)
}

// What a cause is, and what it says about a moment.

/// The kind of a cause: the report gives all causes of one kind the same colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CauseKind {
    /// An interrupt, its handler or its thread.
    Interrupt,
    /// Deferred work of an interrupt.
    Softirq,
    /// Another thread ran, or the thread moved, stopped or waited for a stopper.
    Scheduling,
    /// The scheduler withheld the CPU because a quota was used up.
    Throttling,
    /// A lock, or kernel code that cannot be preempted or interrupted.
    Blocking,
    /// Hardware, firmware or a hypervisor stopped the CPU.
    Hardware,
    /// An idle state or a change of frequency.
    Power,
    /// The thread itself, or the normal path of every wake-up.
    Own,
    /// No cause is known.
    Unknown,
}

/// A cause of latency.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// Identifier in kebab-case; it never changes.
    pub id: &'static str,
    /// The kind, for the colour.
    pub kind: CauseKind,
    /// In words, as the end of "late because of: ...".
    pub title: &'static str,
    /// Which events show it, and what distinguishes it from other causes.
    pub about: &'static str,
    /// The public source: kernel file, document, measurement.
    pub source: &'static str,
    /// Checks whose knobs remove it.
    pub checks: &'static [&'static str],
    /// Attributes a moment to this cause, if it caused it. The first cause of the list that
    /// attributes a moment decides.
    attribute: fn(&scene::Moment<'_>) -> Option<Attribution>,
}

/// Cause of one moment of a late wake-up: who, what else it may be, what removes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    /// The culprit; empty if unknown.
    pub culprit: String,
    /// Other causes that fit as well.
    pub alternatives: Vec<&'static str>,
    /// What was not recorded and could contradict it.
    pub unrecorded: Vec<&'static str>,
    pub detail: Vec<String>,
    /// Unit, driver or module.
    pub owner: Option<String>,
    pub remedies: Vec<Remedy>,
    /// The end, if it covers only the first part; the rest of the moment is divided again.
    pub until_ns: Option<u64>,
}

impl Attribution {
    /// An attribution to a culprit.
    pub fn of_culprit(culprit: impl Into<String>) -> Self {
        Self { culprit: culprit.into(), ..Self::default() }
    }

    /// What is said of a share that it makes up.
    fn row(&self, cause: &Cause, ns: u64) -> ShareRow {
        let texts = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        ShareRow {
            cause: cause.id.into(),
            culprit: self.culprit.clone(),
            ns,
            alternatives: texts(&self.alternatives),
            unrecorded: texts(&self.unrecorded),
            detail: self.detail.clone(),
            owner: self.owner.clone(),
            checks: texts(cause.checks),
            remedies: self.remedies.clone(),
        }
    }

    /// Adds other causes that fit as well.
    #[must_use]
    pub fn or_causes(mut self, others: &[&'static str]) -> Self {
        self.alternatives.extend_from_slice(others);
        self
    }

    /// Adds lines of evidence.
    #[must_use]
    pub fn detail(mut self, lines: impl IntoIterator<Item = String>) -> Self {
        self.detail.extend(lines);
        self
    }

    /// Sets the unit, driver or module.
    #[must_use]
    pub fn owner(mut self, owner: Option<String>) -> Self {
        self.owner = owner;
        self
    }

    #[must_use]
    pub fn remedy(mut self, remedy: Remedy) -> Self {
        self.remedies.push(remedy);
        self
    }

    /// Adds a remedy that only a human can apply.
    #[must_use]
    pub fn manual(self, text: impl Into<String>) -> Self {
        self.remedy(Remedy::Manual { text: text.into() })
    }
}

// Causes by class: what happened, with the culprits below.

/// All rows of one cause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CauseClass<'a> {
    /// Id of the cause.
    pub cause: &'a str,
    /// In words, without what distinguishes its rows.
    pub title: &'a str,
    /// Sum of the shares of all rows, nanoseconds.
    pub sum_ns: u64,
    /// Of that: may have been something else.
    pub ambiguous_ns: u64,
    pub worst_ns: u64,
    /// Its rows, the largest sum first.
    pub rows: Vec<&'a CauseRow>,
}

impl CauseClass<'_> {
    /// Time with no other possible cause.
    pub const fn certain_ns(&self) -> u64 {
        self.sum_ns.saturating_sub(self.ambiguous_ns)
    }
}

/// The classes of a run's causes, the largest sum first.
pub fn classes(spikes: &Spikes) -> Vec<CauseClass<'_>> {
    let mut classes: Vec<CauseClass<'_>> = Vec::new();
    for row in &spikes.causes {
        let at = classes.iter().position(|class| class.cause == row.cause);
        let at = at.unwrap_or_else(|| {
            let title = title(&row.cause).split(':').next().unwrap_or_default();
            let (sum_ns, ambiguous_ns, worst_ns) = (0, 0, 0);
            let cause = &row.cause;
            classes.push(CauseClass {
                cause,
                title,
                sum_ns,
                ambiguous_ns,
                worst_ns,
                rows: Vec::new(),
            });
            classes.len() - 1
        });
        let class = &mut classes[at];
        class.sum_ns = class.sum_ns.saturating_add(row.sum_ns);
        class.ambiguous_ns = class.ambiguous_ns.saturating_add(row.ambiguous_ns);
        class.worst_ns = class.worst_ns.max(row.worst_ns);
        class.rows.push(row);
    }
    for class in &mut classes {
        class.rows.sort_by_key(|row| std::cmp::Reverse(row.sum_ns));
    }
    classes.sort_by_key(|class| std::cmp::Reverse(class.sum_ns));
    classes
}

// What a cause needs to be certain: the classes of events that would contradict it.
//
// A moment is attributed by the events that are there. An event that was not recorded cannot
// contradict it, so that the attribution is only likely, and the causes that such events would
// show are its alternatives.

/// Time of a task on the CPU, or of the kernel instead: anything may have interrupted it.
const OVER_A_TASK: &[EventClass] =
    &[EventClass::Switches, EventClass::Interrupts, EventClass::Softirqs];

/// Classes of events that would contradict each cause.
pub const CONTRADICTIONS: &[(&str, &[EventClass])] = &[
    ("nmi", &[]),
    ("stopped", &[EventClass::Switches]),
    ("hotplug", &[EventClass::Switches]),
    ("migration", &[EventClass::Switches]),
    ("page-fault", &[EventClass::Switches, EventClass::Interrupts]),
    ("blocked", &[EventClass::Switches]),
    ("own-cycle", OVER_A_TASK),
    ("timer-slack", &[]),
    ("masked", &[EventClass::Interrupts]),
    ("timer-work", &[EventClass::Interrupts, EventClass::Timers]),
    ("ipi", &[EventClass::Interrupts]),
    ("irq", &[EventClass::Interrupts]),
    ("softirq", &[EventClass::Interrupts, EventClass::Softirqs]),
    ("throttled", OVER_A_TASK),
    ("rtproof", OVER_A_TASK),
    ("priority-inheritance", OVER_A_TASK),
    ("irq-thread", OVER_A_TASK),
    ("kworker", OVER_A_TASK),
    ("preempted", OVER_A_TASK),
    ("queued", OVER_A_TASK),
    ("frequency", OVER_A_TASK),
    ("preempt-off", OVER_A_TASK),
    ("idle-exit", &[EventClass::Interrupts, EventClass::Idle]),
    ("switch", &[EventClass::Interrupts]),
    ("irqs-off", &[EventClass::Interrupts, EventClass::Nmis]),
    (
        "stall",
        &[
            EventClass::Switches,
            EventClass::Interrupts,
            EventClass::Softirqs,
            EventClass::Nmis,
            EventClass::Idle,
            EventClass::Timers,
        ],
    ),
    ("unexplained", &[]),
];

/// The classes of events that would contradict a cause.
pub fn contradictions(cause: &str) -> &'static [EventClass] {
    CONTRADICTIONS.iter().find(|(id, _)| *id == cause).map_or(&[], |(_, classes)| classes)
}

/// The cause that events of a class would have shown.
fn contradicting_cause(class: EventClass, moment: &scene::Moment<'_>) -> Option<&'static str> {
    // Only the idle task leaves the CPU to an idle state.
    let may_idle = moment.cpu.task <= 0;
    Some(match (class, moment.phase) {
        (EventClass::Interrupts, WakeUpPhase::TimerLate) => "masked",
        (EventClass::Interrupts, _) => "irq",
        (EventClass::Softirqs, _) => "softirq",
        (EventClass::Switches, _) => "preempted",
        (EventClass::Nmis, _) => "nmi",
        (EventClass::Idle, _) if may_idle => "idle-exit",
        (EventClass::Timers, _) if moment.cpu.hard.is_some() => "timer-work",
        (EventClass::WakeUps | EventClass::Idle | EventClass::Timers, _) => return None,
    })
}

/// Whether code that ran in a moment would have shown: all of it was recorded, or another CPU tells
/// that nothing could run.
fn shows_code(moment: &scene::Moment<'_>) -> bool {
    let is_complete = |class: &EventClass| moment.scene.coverage.of(*class) == Extent::Complete;
    OVER_A_TASK.iter().all(is_complete) || machine::together(moment).is_some()
}

/// Adds what could contradict the attribution of a moment to a cause and was not recorded.
fn doubt(moment: &scene::Moment<'_>, cause: &str, mut by: Attribution) -> Attribution {
    let coverage = &moment.scene.coverage;
    for &class in contradictions(cause) {
        let extent = coverage.of(class);
        if extent == Extent::Complete {
            continue;
        }
        let rival = contradicting_cause(class, moment);
        // Of a class that shows nothing here no event is missed.
        if rival.is_some() || class == EventClass::Timers && cause == "timer-work" {
            by.unrecorded.push(class.text());
        }
        by.alternatives
            .extend(rival.filter(|rival| *rival != cause && !by.alternatives.contains(rival)));
    }
    if cause != "unexplained" {
        by.unrecorded.extend(moment.doubt);
    }
    by
}

// Which of two tasks runs first.

/// First priority of fair tasks in the kernel's scale.
const FAIR: i32 = 100;

/// Priority of the task of a moment relative to the late thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PriorityOrder {
    Above,
    /// They take turns, or wait for each other.
    Equal,
    /// It should give way.
    Below,
    /// It should by what is known, but the kernel, which knew better, did not ask it to.
    NotBelow,
    /// One of the priorities is unknown.
    Unknown,
    /// Nor here, but an interrupt over the task found preemption off.
    UnknownAndHeld,
}

/// Compares the task on the CPU with the late thread.
fn order(moment: &scene::Moment<'_>) -> PriorityOrder {
    match known(moment) {
        PriorityOrder::Below if was_kept(moment) => PriorityOrder::NotBelow,
        PriorityOrder::Unknown if is_held(moment) => PriorityOrder::UnknownAndHeld,
        order => order,
    }
}

/// Interrupts that are asked: any moment may ask, of thousands.
const INTERRUPTS_MAX: usize = 64;

/// Whether each interrupt over the task, while the thread waited, found preemption off.
fn is_held(moment: &scene::Moment<'_>) -> bool {
    let scene = moment.scene;
    let (from_ns, to_ns) = (moment.runnable_since_ns, scene.switched_ns.unwrap_or(moment.to_ns));
    let over = scene
        .events(from_ns, to_ns)
        .filter(|event| event.pid == moment.cpu.task && event.flags & event::flags::HARDIRQ != 0);
    let depths = over.map(|event| event.preempt & 0x0f).take(INTERRUPTS_MAX);
    depths.min().is_some_and(|depth| depth > 0)
}

/// Whether the kernel left the task on its CPU when it woke the thread there. One that should give
/// way is asked to before the event is written (kernel/sched/core.c, wakeup_preempt). Its priority
/// was raised while it ran, then, and no switch recorded that.
fn was_kept(moment: &scene::Moment<'_>) -> bool {
    let (scene, task) = (moment.scene, moment.cpu.task);
    let Some(since_ns) = moment.cpu.since_ns.filter(|_| task > 0) else { return false };
    let from_ns = since_ns.max(scene.wake.due_ns);
    // Kernels before 4.3 write the event first, and have no sched_waking.
    let is_new = scene.window.events.iter().any(|event| {
        matches!(event.what, EventData::Waking { pid, .. } if pid == scene.wake.tid)
            && (scene.wake.due_ns..=moment.from_ns).contains(&event.at_ns)
    });
    if !is_new {
        return false;
    }
    // In order of time, the last one is the thread's own.
    let mut before = scene.events(from_ns, moment.from_ns).rev().take_while(|e| e.pid == task);
    before.find_map(|event| match event.what {
        EventData::Wakeup { pid, target_cpu, .. } if pid == scene.wake.tid => {
            let asked = event::flags::NEED_RESCHED | event::flags::NEED_RESCHED_LAZY;
            // It is written with interrupts off: else the trace has no flags.
            let has_flags = event.flags & event::flags::IRQS_OFF != 0;
            Some(target_cpu == scene.wake.cpu && has_flags && event.flags & asked == 0)
        }
        _ => None,
    }) == Some(true)
}

fn known(moment: &scene::Moment<'_>) -> PriorityOrder {
    match (current_priority(moment), left_with(moment), moment.scene.prio_at(moment.from_ns)) {
        (_, _, None) => PriorityOrder::Unknown,
        (Some(theirs), Some(left), Some(ours)) if left != theirs => {
            // It changed while the task ran: that it outranked the thread in the end counts.
            match compare(moment, left, ours) {
                PriorityOrder::Above => PriorityOrder::Above,
                _ => compare(moment, theirs, ours),
            }
        }
        (None, None, _) => PriorityOrder::Unknown,
        (Some(theirs), _, Some(ours)) | (None, Some(theirs), Some(ours)) => {
            compare(moment, theirs, ours)
        }
    }
}

fn compare(moment: &scene::Moment<'_>, theirs: i32, ours: i32) -> PriorityOrder {
    if moment.cpu.task == 0 {
        return PriorityOrder::Below;
    }
    if theirs >= FAIR && ours >= FAIR {
        // Fair tasks take turns, whatever their nice values are.
        return PriorityOrder::Equal;
    }
    match theirs.cmp(&ours) {
        std::cmp::Ordering::Less => PriorityOrder::Above,
        std::cmp::Ordering::Equal => PriorityOrder::Equal,
        std::cmp::Ordering::Greater => PriorityOrder::Below,
    }
}

/// The priority with which the task on the CPU left it in the end.
fn left_with(moment: &scene::Moment<'_>) -> Option<i32> {
    let scene = moment.scene;
    // Once another task is current it has left, seen or not.
    let mut own = scene.events(moment.from_ns, u64::MAX).skip_while(|e| e.at_ns == moment.from_ns);
    let mut here = own.by_ref().take_while(|event| event.pid == moment.cpu.task);
    here.find_map(|event| match event.what {
        EventData::Switch { prev_pid, prev_prio, .. } if prev_pid == moment.cpu.task => {
            Some(prev_prio)
        }
        _ => None,
    })
}

/// That the priority of the task on the CPU or of the late thread was another one at times.
fn changed(moment: &scene::Moment<'_>) -> Option<String> {
    let scene = moment.scene;
    let rank = |prio: i32| names::rank(None, Some(prio));
    let ours = scene.prio_at(moment.from_ns).zip(scene.prio).filter(|(then, last)| then != last);
    if let Some((then, last)) = ours {
        return Some(format!(
            "the late thread itself was [{}] then, not [{}]: something changed its priority",
            rank(then),
            rank(last)
        ));
    }
    let (theirs, left) = (current_priority(moment), left_with(moment));
    if order(moment) == PriorityOrder::NotBelow {
        return Some(format!(
            "the kernel did not ask it to give way when the thread was woken: it was no longer \
             [{}] then, though no switch recorded that",
            rank(theirs.or(left)?)
        ));
    }
    let theirs = theirs.zip(left).filter(|(came, left)| came != left);
    theirs.map(|(came, left)| {
        format!(
            "its priority changed while it ran: [{}] at first, [{}] at last",
            rank(came),
            rank(left)
        )
    })
}

/// Priority of the task on the CPU: as the switch to it recorded, which includes inheritance.
fn current_priority(moment: &scene::Moment<'_>) -> Option<i32> {
    moment.cpu.prio.or_else(|| {
        // A trace in text knows names only.
        let task = moment.scene.task(moment.cpu.task).filter(|task| task.policy.is_some())?;
        let rt = i32::try_from(task.rt_priority).ok()?;
        Some(if rt > 0 { 99 - rt } else { 120 + task.nice })
    })
}

// What is left.

const CAUSE: Cause = Cause {
    id: "unexplained",
    kind: CauseKind::Unknown,
    title: "nothing that was recorded",
    about: "no event says what the CPU did",
    source: "docs/adr/0009-every-nanosecond-is-claimed.md",
    checks: &[],
    attribute,
};

fn attribute(moment: &scene::Moment<'_>) -> Option<Attribution> {
    let _ = moment;
    Some(Attribution::default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_cause_but_the_last_has_a_known_kind() {
        for cause in CAUSES {
            let is_unknown = kind(cause.id) == CauseKind::Unknown;
            assert_eq!(is_unknown, cause.id == "unexplained", "{}", cause.id);
        }
        assert_eq!(kind("never-seen"), CauseKind::Unknown);
    }

    #[test]
    fn ids_are_unique_and_what_they_name_exists() {
        let mut ids: Vec<&str> = CAUSES.iter().map(|cause| cause.id).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), CAUSES.len());
        let known: Vec<&str> = crate::checks::all()
            .map(|check| check.id)
            .chain(crate::application::all().map(|check| check.id))
            .collect();
        for cause in CAUSES {
            assert!(!cause.about.is_empty() && !cause.source.is_empty(), "{}", cause.id);
            // Users read it: a label that only we can resolve is no source.
            let ours = ["S0", "S1", "S2", "S3", "S4", "blame", "facts", "promise"];
            let mut words = cause.source.split(|c: char| !c.is_alphanumeric());
            assert!(!words.any(|word| ours.contains(&word)), "{}", cause.source);
            for check in cause.checks {
                assert!(known.contains(check), "{}: no check {check}", cause.id);
            }
        }
    }
}

#[cfg(test)]
mod classes_tests {
    use super::*;

    fn row(cause: &str, culprit: &str, sum_ns: u64, ambiguous_ns: u64) -> CauseRow {
        let (cause, culprit) = (cause.to_owned(), culprit.to_owned());
        let worst_ns = sum_ns / 2;
        CauseRow { cause, culprit, sum_ns, ambiguous_ns, worst_ns, ..CauseRow::default() }
    }

    #[test]
    fn rows_of_one_cause_are_one_class() {
        let causes = vec![
            row("stall", "firmware", 50, 0),
            row("softirq", "NET_RX", 40, 10),
            row("softirq", "TIMER", 30, 0),
            row("of a newer rtproof", "x", 5, 5),
        ];
        let spikes = Spikes { causes, ..Spikes::default() };
        let found = classes(&spikes);
        let shown: Vec<_> =
            found.iter().map(|c| (c.cause, c.sum_ns, c.certain_ns(), c.rows.len())).collect();
        let expected =
            [("softirq", 70, 60, 2), ("stall", 50, 50, 1), ("of a newer rtproof", 5, 0, 1)];
        assert_eq!(shown, expected);
        assert_eq!((found[0].worst_ns, found[2].title), (20, "of a newer rtproof"));
        assert_eq!(classes(&Spikes::default()), []);
    }
}

#[cfg(test)]
mod coverage_tests {
    use super::*;

    #[test]
    fn every_cause_names_what_would_contradict_it() {
        let listed: Vec<&str> = CONTRADICTIONS.iter().map(|(id, _)| *id).collect();
        let causes: Vec<&str> = CAUSES.iter().map(|cause| cause.id).collect();
        assert_eq!(listed, causes);
    }
}
