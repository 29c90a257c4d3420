//! Lengths of steps, windows and half-lives, and the statistics by name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::values::Values;
use crate::{quantile::Q, quantity};

/// Lengths, in steps of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Spans {
    /// Length of a step, nanoseconds: a value each.
    pub step_ns: u64,
    /// Length of the window, nanoseconds: whole steps.
    pub window_ns: u64,
    /// Age at which a sample counts half, nanoseconds.
    pub half_life_ns: u64,
}

/// What is asked for; `None`: the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    /// Length of the window: a tenth of the run, three steps at least.
    pub window_ns: Option<u64>,
    /// Half-life: half of the window.
    pub half_life_ns: Option<u64>,
}

/// Lengths that the rows of a run do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpansError {
    /// The window is no whole number of steps.
    NotWhole(u64, u64),
    /// The window is longer than the run: it would never be full.
    TooLong(u64, u64),
    /// The half-life is shorter than a step.
    TooShort(u64, u64),
}

impl std::fmt::Display for SpansError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ns = quantity::duration;
        match *self {
            Self::NotWhole(asked, step) => write!(
                f,
                "a window of {} is no whole number of the rows that were read, of {} each; ask for \
                 a multiple of {}",
                quantity::ns(asked),
                ns(step),
                ns(step)
            ),
            Self::TooLong(asked, end) => write!(
                f,
                "a window of {} is longer than the run of {} and would never be full; ask for a \
                 shorter one",
                ns(asked),
                ns(end)
            ),
            Self::TooShort(asked, step) => write!(
                f,
                "a half-life of {} is shorter than the rows that were read, of {} each; ask for {} \
                 or more",
                quantity::ns(asked),
                ns(step),
                ns(step)
            ),
        }
    }
}

impl std::error::Error for SpansError {}

impl Spans {
    /// For a run of this length in steps of this one.
    ///
    /// # Errors
    /// Lengths asked for that the steps or the run do not allow.
    pub fn of(step_ns: u64, end_ns: u64, asked: Lengths) -> Result<Self, SpansError> {
        let step_ns = step_ns.max(1);
        let steps = super::steps(end_ns, step_ns);
        let window_ns = match asked.window_ns {
            Some(window_ns) if window_ns == 0 || window_ns % step_ns != 0 => {
                return Err(SpansError::NotWhole(window_ns, step_ns));
            }
            Some(window_ns) if window_ns / step_ns > steps => {
                return Err(SpansError::TooLong(window_ns, end_ns));
            }
            Some(window_ns) => window_ns,
            None => (steps / 10).max(3).saturating_mul(step_ns),
        };
        let half_life_ns = match asked.half_life_ns {
            Some(half_life_ns) if half_life_ns < step_ns => {
                return Err(SpansError::TooShort(half_life_ns, step_ns));
            }
            Some(half_life_ns) => half_life_ns,
            None => (window_ns / 2).max(step_ns),
        };
        Ok(Self { step_ns, window_ns, half_life_ns })
    }
}

/// A statistic among [`Values`].
pub struct Statistic {
    /// Name in files: `mean_ns`, `p99.9_ns`, `skewness`.
    pub id: &'static str,
    pub name: &'static str,
    /// Whether it is a time; else it is a number.
    pub is_time: bool,
    /// Takes it from the values.
    pub of: fn(&Values) -> Option<f64>,
}

const fn time(id: &'static str, name: &'static str, of: fn(&Values) -> Option<f64>) -> Statistic {
    Statistic { id, name, is_time: true, of }
}

fn percentile(values: &Values, at: usize) -> Option<f64> {
    values.percentiles_ns[at].map(|ns| ns as f64)
}

/// All statistics. Percentiles stand in the order of [`Q::TABLE`].
pub const STATISTICS: [Statistic; 4 + Q::TABLE.len()] = [
    time("mean_ns", "mean", |of| Some(of.mean_ns)),
    time("sd_ns", "sd", |of| of.sd_ns),
    time("p5_ns", "p5", |of| percentile(of, 0)),
    time("p50_ns", "p50", |of| percentile(of, 1)),
    time("p95_ns", "p95", |of| percentile(of, 2)),
    time("p99_ns", "p99", |of| percentile(of, 3)),
    time("p99.9_ns", "p99.9", |of| percentile(of, 4)),
    Statistic { id: "skewness", name: "skewness g1", is_time: false, of: |of| of.skewness },
    Statistic { id: "kurtosis", name: "kurtosis g2", is_time: false, of: |of| of.kurtosis },
];

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn lengths_that_no_rows_have_are_refused_with_both() {
        let of =
            |window_ns, half_life_ns| Spans::of(S, 20 * S, Lengths { window_ns, half_life_ns });
        assert_eq!(
            of(None, None),
            Ok(Spans { step_ns: S, window_ns: 3 * S, half_life_ns: 3 * S / 2 })
        );
        assert_eq!(of(Some(10 * S), Some(2 * S)).map(|of| of.window_ns), Ok(10 * S));
        let text = |of: Result<Spans, SpansError>| of.expect_err("refused").to_string();
        assert!(text(of(Some(1_500_000_000), None)).contains("multiple of 1 s"));
        assert!(text(of(Some(0), None)).contains("0 ns"));
        assert!(text(of(Some(60 * S), None)).contains("1 min is longer than the run of 20 s"));
        assert!(text(of(None, Some(S / 2))).contains("half-life of 500 ms"));
        let short = Spans::of(S, 0, Lengths::default()).expect("of nothing");
        assert_eq!(short.window_ns, 3 * S);
    }

    #[test]
    fn percentiles_have_their_names() {
        let named = STATISTICS.iter().filter(|of| of.name.starts_with('p'));
        for (statistic, q) in named.zip(Q::TABLE) {
            assert_eq!(statistic.name, q.name());
            assert_eq!(statistic.id, format!("{}_ns", q.name()));
        }
    }
}
