//! Statistics over time of all CPUs together: of a window that moves, with weights that halve with
//! age, and of all so far. Where nothing was sampled is said, and never bridged.

use rtproof_record::{Run, moving};
use rtproof_stats::moving::{Lengths, STATISTICS, Spans, SpansError, Statistic, Step, Values};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    pub statistics: Vec<Line>,
    /// Steps listed: the values of every n-th one stand in `rows`, and the last one.
    pub every: u64,
    /// Steps, in order of time.
    pub rows: Vec<Step>,
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
pub struct Line {
    /// `mean_ns`, `sd_ns`, `p5_ns` ... `p99.9_ns`, `skewness`, `kurtosis`.
    pub id: String,
    /// Of the whole run; null: it has none.
    pub cumulative: Option<f64>,
    /// Of the windows; null: no window was full.
    pub windowed: Option<Range>,
    /// With weights by age.
    pub exponential: Option<Range>,
}

/// Between which values a statistic moved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
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
    pub fn of(run: &Run, asked: Lengths) -> Result<Self, SpansError> {
        let spans = moving::spans(run, asked)?;
        let end_ns = run.threads.iter().map(rtproof_record::run::Thread::written_to_ns).max();
        let every = (end_ns.unwrap_or(0) / spans.step_ns).div_ceil(ROWS_MAX).max(1);
        let mut all = Self {
            spans,
            every,
            statistics: STATISTICS.iter().map(line).collect(),
            ..<_>::default()
        };
        let (mut at, mut last) = (0, None);
        moving::each(&run.threads, spans, |step| {
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

    fn take(&mut self, step: &Step) {
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

    fn add_gap(&mut self, step: &Step) {
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

fn line(of: &Statistic) -> Line {
    Line { id: of.id.into(), cumulative: None, windowed: None, exponential: None }
}

fn widen(range: &mut Option<Range>, value: Option<f64>, at_ns: u64) {
    let Some(value) = value else {
        if let Some(range) = range {
            range.last = None;
        }
        return;
    };
    let range = range.get_or_insert(Range {
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

#[cfg(test)]
mod tests {
    use rtproof_record::Class;

    use super::*;
    use crate::testing;

    const S: u64 = 1_000_000_000;

    fn asked(window_ns: u64) -> Lengths {
        Lengths { window_ns: Some(window_ns), half_life_ns: None }
    }

    #[test]
    fn a_bad_stretch_is_where_it_was() {
        // 20 us more from second 30 to 39.
        let run = testing::run_of(Class::Soft, 2, 60, |_, ms| {
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
    fn gaps_are_told_with_their_length() {
        let mut run = testing::run(Class::Soft, 2, 60, &[]);
        run.threads[1].seconds.retain(|second| !(20..23).contains(&(second.from_ns / S)));
        run.threads[0].seconds[50].totals.missed = 3;
        let moving = Moving::of(&run, asked(10 * S)).expect("a window");
        assert_eq!(moving.gaps, [Gap { from_ns: 20 * S, to_ns: 23 * S, cpus: 1 }]);
        assert_eq!((moving.gaps_all, moving.missed, moving.missed_steps), (1, 3, 1));
        assert_eq!(moving.rows[29].window_gaps, 3);
    }

    #[test]
    fn long_runs_are_thinned_and_their_extremes_are_not() {
        let run = testing::run(Class::Soft, 1, 400, &[(0, 123_456, 9_000_000)]);
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
