//! Statistics over time of all CPUs together: of a window that moves, with weights that halve with
//! age, and of all so far. Where nothing was sampled is said, and never bridged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use rtproof_record::{
    Run,
    run::{Mark, MarkKind, Thread},
};
use rtproof_stats::{
    Moments,
    moving::{Lengths, MovingStatistic, MovingStep, STATISTICS, Spans, SpansError, Values},
};

use crate::LatencySpread;

/// Steps listed at most: as many as a picture has columns for.
const ROWS_MAX: u64 = 100;

const GAPS_MAX: usize = 100;

/// Statistics of all CPUs together over time, of the wake-up view.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Moving {
    /// Lengths of a step, of the window and of the half-life.
    #[serde(flatten)]
    pub spans: Spans,
    /// Each statistic: of the whole run, and between which values it moved in all steps.
    pub statistics: Vec<MovingLine>,
    /// Steps listed: the values of every n-th one stand in `rows`, and the last one.
    pub every: u64,
    /// Steps, in order of time.
    pub rows: Vec<MovingStep>,
    /// Time in which a CPU has no sample, the first 100 stretches.
    pub gaps: Vec<Gap>,
    /// Stretches in which a CPU has no sample.
    pub gaps_all: u64,
    /// Missed wake-ups: in none of the statistics.
    pub missed: u64,
    /// Steps with missed wake-ups.
    pub missed_steps: u64,
}

/// A statistic in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MovingLine {
    /// `mean_ns`, `sd_ns`, `p5_ns` ... `p99.9_ns`, `skewness`, `kurtosis`.
    pub id: String,
    /// Of the whole run; null: it has none.
    pub cumulative: Option<f64>,
    /// Of the windows; null: no window was full.
    pub windowed: Option<MovingRange>,
    /// With weights by age.
    pub exponential: Option<MovingRange>,
}

/// Between which values a statistic moved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MovingRange {
    pub low: f64,
    /// End of its step, nanoseconds after the first wake-up.
    pub low_at_ns: u64,
    pub high: f64,
    /// End of its step.
    pub high_at_ns: u64,
    /// Value at the end of the run; null: it has none there.
    pub last: Option<f64>,
}

/// A stretch of time without samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gap {
    /// Start, nanoseconds after the first wake-up.
    pub from_ns: u64,
    pub to_ns: u64,
    pub cpus: u32,
}

impl Moving {
    /// Of a run, with lengths asked for.
    ///
    /// # Errors
    /// Lengths that this run does not have.
    pub fn of(run: &Run, requested: Lengths) -> Result<Self, SpansError> {
        let spans = rtproof_record::spans(run, requested)?;
        let end_ns = run.threads.iter().map(Thread::written_to_ns).max();
        let every = (end_ns.unwrap_or(0) / spans.step_ns).div_ceil(ROWS_MAX).max(1);
        let mut all = Self {
            spans,
            every,
            statistics: STATISTICS.iter().map(line).collect(),
            ..<_>::default()
        };
        let (mut at, mut last) = (0, None);
        rtproof_record::each_step(&run.threads, spans, |step| {
            at += 1;
            all.take(&step);
            last = (at % every != 0).then_some(step);
            if at % every == 0 {
                all.rows.push(step);
            }
        });
        all.rows.extend(last);
        Ok(all)
    }

    /// Whether there are no steps.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn take(&mut self, step: &MovingStep) {
        for (line, statistic) in self.statistics.iter_mut().zip(&STATISTICS) {
            let of = |values: Option<Values>| values.as_ref().and_then(statistic.of);
            line.cumulative = of(step.cumulative);
            widen(&mut line.windowed, of(step.windowed), step.to_ns);
            widen(&mut line.exponential, of(step.exponential), step.to_ns);
        }
        self.missed = self.missed.saturating_add(step.missed);
        self.missed_steps += u64::from(step.missed > 0);
        self.add_gap(step);
    }

    fn add_gap(&mut self, step: &MovingStep) {
        let gap = Gap { from_ns: step.from_ns, to_ns: step.to_ns, cpus: step.gaps };
        match self.gaps.last_mut() {
            _ if step.gaps == 0 => {}
            Some(last) if last.to_ns == gap.from_ns && last.cpus == gap.cpus => {
                last.to_ns = gap.to_ns;
            }
            _ => {
                self.gaps_all += 1;
                if self.gaps.len() < GAPS_MAX {
                    self.gaps.push(gap);
                }
            }
        }
    }
}

fn line(of: &MovingStatistic) -> MovingLine {
    MovingLine { id: of.id.into(), cumulative: None, windowed: None, exponential: None }
}

fn widen(range: &mut Option<MovingRange>, value: Option<f64>, at_ns: u64) {
    let Some(value) = value else {
        if let Some(range) = range {
            range.last = None;
        }
        return;
    };
    let range = range.get_or_insert(MovingRange {
        low: value,
        low_at_ns: at_ns,
        high: value,
        high_at_ns: at_ns,
        last: None,
    });
    if value < range.low {
        (range.low, range.low_at_ns) = (value, at_ns);
    }
    if value > range.high {
        (range.high, range.high_at_ns) = (value, at_ns);
    }
    range.last = Some(value);
}

// Surroundings of a measurement: threads that were changed from outside, and what they
// measured before and after; idle states and frequencies of the measured CPUs.

/// What else was recorded during the run: marks, idle states, frequencies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunSurroundings {
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
    pub samples: LatencySpread,
    /// Intervals, where the workload keeps them.
    pub intervals: Option<LatencySpread>,
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

impl RunSurroundings {
    pub fn of(run: &Run) -> Self {
        let marks = run.surroundings.marks.clone();
        let segments = run.threads.iter().flat_map(|thread| segments(thread, &marks)).collect();
        Self { marks, segments, idle: idle(run), frequencies: frequencies(run) }
    }

    /// Whether there is anything to report.
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
        samples: LatencySpread::of(&samples, None),
        intervals: (intervals.count() > 0)
            .then(|| LatencySpread::of(&intervals, Some(thread.info.period_ns))),
        missed,
    })
}

fn idle(run: &Run) -> Vec<IdleUse> {
    let observed_us = run.surroundings.idle.last().map_or(0, |reading| reading.at_ns / 1000);
    let used =
        |(state, entered, residency_us): (&rtproof_record::run::CpuIdleState, u64, u64)| IdleUse {
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
    run.surroundings.idle_sums().into_iter().map(used).collect()
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
    use rtproof_record::BudgetClass;

    use super::*;
    use crate::testing;

    const S: u64 = 1_000_000_000;

    fn asked(window_ns: u64) -> Lengths {
        Lengths { window_ns: Some(window_ns), half_life_ns: None }
    }

    #[test]
    fn a_bad_stretch_is_where_it_was() {
        // 20 us more from second 30 to 39.
        let run = testing::run_of(BudgetClass::Soft, 2, 60, |_, ms| {
            5000 + ms % 7 + if (30_000..40_000).contains(&ms) { 20_000 } else { 0 }
        });
        let moving = Moving::of(&run, asked(5 * S)).expect("a window");
        assert_eq!((moving.rows.len(), moving.every, moving.gaps_all), (60, 1, 0));
        let of =
            |id: &str| moving.statistics.iter().find(|line| line.id == id).expect("a statistic");
        let mean = of("mean_ns").windowed.expect("windows");
        assert!((35 * S..=40 * S).contains(&mean.high_at_ns) && mean.high > 25_000.0, "{mean:?}");
        assert!(mean.low < 5010.0 && mean.last.is_some_and(|last| last < 5010.0));
        assert!(of("mean_ns").cumulative.is_some_and(|ns| (8000.0..9000.0).contains(&ns)));
        let sd = of("sd_ns").windowed.expect("windows");
        assert!(sd.high > 9000.0, "half of a window is late: {sd:?}");
        assert!(Moving::of(&run, asked(61 * S)).is_err());
    }

    #[test]
    fn gaps_are_reported_with_their_length() {
        let mut run = testing::run(BudgetClass::Soft, 2, 60, &[]);
        run.threads[1].seconds.retain(|second| !(20..23).contains(&(second.from_ns / S)));
        run.threads[0].seconds[50].totals.missed = 3;
        let moving = Moving::of(&run, asked(10 * S)).expect("a window");
        assert_eq!(moving.gaps, [Gap { from_ns: 20 * S, to_ns: 23 * S, cpus: 1 }]);
        assert_eq!((moving.gaps_all, moving.missed, moving.missed_steps), (1, 3, 1));
        assert_eq!(moving.rows[29].window_gaps, 3);
    }

    #[test]
    fn long_runs_are_thinned_and_their_extremes_are_not() {
        let run = testing::run(BudgetClass::Soft, 1, 400, &[(0, 123_456, 9_000_000)]);
        let moving = Moving::of(&run, asked(2 * S)).expect("a window");
        assert_eq!((moving.every, moving.rows.len()), (4, 100));
        assert_eq!(moving.rows.last().map(|row| row.to_ns), Some(400 * S));
        let kurtosis = moving.statistics.last().and_then(|line| line.windowed).expect("a range");
        assert!([124 * S, 125 * S].contains(&kurtosis.high_at_ns), "{kurtosis:?}");
        let mut none = run;
        none.threads.clear();
        assert!(Moving::of(&none, Lengths::default()).expect("nothing").is_empty());
    }
}

#[cfg(test)]
mod beside_tests {
    use rtproof_record::{
        BudgetClass,
        run::{CpuIdleState, IdleReading, IdleTime},
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
    fn measurements_before_and_after_a_change_are_separated() {
        let mut run = testing::run(BudgetClass::Soft, 2, 10, &[]);
        run.surroundings.marks = vec![
            mark(MarkKind::Policy, 4, "SCHED_OTHER", "SCHED_FIFO 1"),
            mark(MarkKind::Affinity, 4, "CPU 0", "CPUs 0-1"),
        ];
        let surroundings = RunSurroundings::of(&run);
        let [before, after] = &surroundings.segments[..] else {
            panic!("{:?}", surroundings.segments)
        };
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
        run.surroundings.marks.clear();
        assert_eq!(RunSurroundings::of(&run).segments, []);
    }

    #[test]
    fn shares_are_of_the_time_observed() {
        let mut run = testing::run(BudgetClass::Soft, 1, 2, &[]);
        let state =
            |state, name: &str| CpuIdleState { cpu: 0, state, name: name.into(), exit_us: None };
        run.surroundings.states = vec![state(0, "POLL"), state(1, "C6")];
        let time = IdleTime { cpu: 0, state: 1, entered: 3, residency_us: 250_000 };
        run.surroundings.idle =
            [1, 2].map(|s| IdleReading { at_ns: s * SECOND_NS, times: vec![time] }).into();
        let idle = RunSurroundings::of(&run).idle;
        assert_eq!(
            idle.iter().map(|of| (of.entered, of.share)).collect::<Vec<_>>(),
            [(0, 0.0), (6, 0.25)]
        );
        run.surroundings.idle.clear();
        assert_eq!(RunSurroundings::of(&run).idle, []);
    }
}
