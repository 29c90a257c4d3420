//! What was seen beside a measurement: threads that were changed from outside, and what they
//! measured before and after; idle states and frequencies of the measured CPUs.

use rtproof_record::{
    Run,
    beside::{Mark, MarkKind},
    run::Thread,
};
use rtproof_stats::Moments;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Spread;

/// What else was recorded during the run: marks, idle states, frequencies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Beside {
    /// Changes of measured threads from outside, in order of time.
    pub marks: Vec<Mark>,
    /// What the changed threads measured between the changes.
    pub segments: Vec<Segment>,
    /// Idle states of the measured CPUs.
    pub idle: Vec<IdleUse>,
    /// Frequencies of the measured CPUs.
    pub frequencies: Vec<Frequency>,
}

/// A thread between two changes. Seconds in which it was changed are in none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Segment {
    /// CPU of the thread.
    pub cpu: u32,
    /// Start of its first whole second, nanoseconds after the origin.
    pub from_ns: u64,
    /// End of its last whole second.
    pub to_ns: u64,
    /// How the thread was scheduled, e.g. `SCHED_FIFO 1`; null: that was never changed.
    pub policy: Option<String>,
    /// Where it could run; null: that was never changed.
    pub cpus: Option<String>,
    pub samples: Spread,
    /// Intervals, where the workload keeps them.
    pub intervals: Option<Spread>,
    pub missed: u64,
}

/// An idle state of a CPU over the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IdleUse {
    pub cpu: u32,
    /// Number: 0 is the lightest.
    pub state: u32,
    /// Name, e.g. `C6`.
    pub name: String,
    /// Time to leave it as the driver says, microseconds; null: unknown.
    pub exit_us: Option<u64>,
    /// How often it was entered.
    pub entered: u64,
    /// Time in it, microseconds.
    pub residency_us: u64,
    /// Of the time observed, 0 to 1.
    pub share: f64,
}

/// Frequencies of a CPU over the run, one reading a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Frequency {
    pub cpu: u32,
    pub readings: u64,
    pub min_hz: u64,
    pub mean_hz: u64,
    pub max_hz: u64,
}

impl Beside {
    /// Of a run.
    pub fn of(run: &Run) -> Self {
        let marks = run.beside.marks.clone();
        let segments = run.threads.iter().flat_map(|thread| segments(thread, &marks)).collect();
        Self { marks, segments, idle: idle(run), frequencies: frequencies(run) }
    }

    /// Whether there is anything to tell.
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty() && self.idle.is_empty() && self.frequencies.is_empty()
    }
}

fn segments(thread: &Thread, marks: &[Mark]) -> Vec<Segment> {
    let marks: Vec<&Mark> = marks.iter().filter(|m| m.thread == thread.info.number).collect();
    // Marks of one look are one change.
    let mut edges: Vec<(u64, u64)> = marks.iter().map(|mark| (mark.since_ns, mark.at_ns)).collect();
    edges.dedup();
    if edges.is_empty() {
        return Vec::new();
    }
    let starts = std::iter::once(0).chain(edges.iter().map(|&(_, at_ns)| at_ns));
    let ends = edges.iter().map(|&(since_ns, _)| since_ns).chain([u64::MAX]);
    starts.zip(ends).filter_map(|(from, to)| segment(thread, &marks, from, to)).collect()
}

fn segment(thread: &Thread, marks: &[&Mark], from_ns: u64, to_ns: u64) -> Option<Segment> {
    let (mut samples, mut intervals, mut missed) = (Moments::default(), Moments::default(), 0);
    let mut ends = None;
    let inside = |s: &&rtproof_record::run::Second| s.from_ns >= from_ns && s.to_ns <= to_ns;
    for second in thread.seconds.iter().filter(inside) {
        samples.merge(&second.totals.wake);
        intervals.merge(&second.intervals);
        missed += second.totals.missed;
        ends = Some((ends.map_or(second.from_ns, |(first, _)| first), second.to_ns));
    }
    let (from, to) = ends?;
    let in_force = |kind: MarkKind| {
        let of_kind = || marks.iter().filter(|mark| mark.kind == kind);
        let last = of_kind().rfind(|mark| mark.at_ns <= from_ns).map(|mark| mark.after.clone());
        last.or_else(|| of_kind().next().map(|mark| mark.before.clone()))
    };
    Some(Segment {
        cpu: thread.info.cpu,
        from_ns: from,
        to_ns: to,
        policy: in_force(MarkKind::Policy),
        cpus: in_force(MarkKind::Affinity),
        samples: Spread::of(&samples, None),
        intervals: (intervals.count() > 0)
            .then(|| Spread::of(&intervals, Some(thread.info.period_ns))),
        missed,
    })
}

fn idle(run: &Run) -> Vec<IdleUse> {
    let observed_us = run.beside.idle.last().map_or(0, |reading| reading.at_ns / 1000);
    let used =
        |(state, entered, residency_us): (&rtproof_record::beside::IdleState, u64, u64)| IdleUse {
            cpu: state.cpu,
            state: state.state,
            name: state.name.clone(),
            exit_us: state.exit_us,
            entered,
            residency_us,
            // A stay that began before the first reading is counted when it ends.
            share: (residency_us as f64 / observed_us.max(1) as f64).min(1.0),
        };
    if observed_us == 0 {
        return Vec::new();
    }
    run.beside.idle_sums().into_iter().map(used).collect()
}

fn frequencies(run: &Run) -> Vec<Frequency> {
    let of = |cpu: u32| {
        let all = run.host.iter().flat_map(|second| &second.cpus);
        let hz: Vec<u64> = all.filter(|row| row.cpu == cpu).filter_map(|row| row.freq_hz).collect();
        let sum = hz.iter().fold(0_u64, |sum, &hz| sum.saturating_add(hz));
        Some(Frequency {
            cpu,
            readings: hz.len() as u64,
            min_hz: *hz.iter().min()?,
            mean_hz: sum / hz.len() as u64,
            max_hz: *hz.iter().max()?,
        })
    };
    run.options.cpus.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use rtproof_record::{
        Class,
        beside::{IdleReading, IdleState, IdleTime},
    };

    use super::*;
    use crate::testing;

    const SECOND_NS: u64 = 1_000_000_000;

    fn mark(kind: MarkKind, at_s: u64, before: &str, after: &str) -> Mark {
        let at_ns = at_s * SECOND_NS + 50_000_000;
        let (before, after) = (before.into(), after.into());
        Mark { thread: 0, since_ns: at_ns - SECOND_NS, at_ns, kind, before, after }
    }

    #[test]
    fn what_a_thread_measured_before_and_after_is_told_apart() {
        let mut run = testing::run(Class::Soft, 2, 10, &[]);
        run.beside.marks = vec![
            mark(MarkKind::Policy, 4, "SCHED_OTHER", "SCHED_FIFO 1"),
            mark(MarkKind::Affinity, 4, "CPU 0", "CPUs 0-1"),
        ];
        let beside = Beside::of(&run);
        let [before, after] = &beside.segments[..] else { panic!("{:?}", beside.segments) };
        assert_eq!(
            (before.policy.as_deref(), after.policy.as_deref()),
            (Some("SCHED_OTHER"), Some("SCHED_FIFO 1"))
        );
        assert_eq!(
            (before.cpus.as_deref(), after.cpus.as_deref()),
            (Some("CPU 0"), Some("CPUs 0-1"))
        );
        assert!(before.to_ns <= 3 * SECOND_NS + 50_000_000, "{before:?}");
        assert!(after.from_ns >= 4 * SECOND_NS + 50_000_000, "{after:?}");
        assert!(before.samples.n > 0 && after.samples.n > before.samples.n);
        run.beside.marks.clear();
        assert_eq!(Beside::of(&run).segments, []);
    }

    #[test]
    fn shares_are_of_the_time_observed() {
        let mut run = testing::run(Class::Soft, 1, 2, &[]);
        let state =
            |state, name: &str| IdleState { cpu: 0, state, name: name.into(), exit_us: None };
        run.beside.states = vec![state(0, "POLL"), state(1, "C6")];
        let time = IdleTime { cpu: 0, state: 1, entered: 3, residency_us: 250_000 };
        run.beside.idle =
            [1, 2].map(|s| IdleReading { at_ns: s * SECOND_NS, times: vec![time] }).into();
        let idle = Beside::of(&run).idle;
        assert_eq!(
            idle.iter().map(|of| (of.entered, of.share)).collect::<Vec<_>>(),
            [(0, 0.0), (6, 0.25)]
        );
        run.beside.idle.clear();
        assert_eq!(Beside::of(&run).idle, []);
    }
}
