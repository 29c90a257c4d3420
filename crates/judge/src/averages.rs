//! The mean latency over time, as tables and pictures of averages show it: of each stretch, of all
//! so far (cumulative), and of the last few stretches (moving).

use rtproof_record::Run;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const SECOND_NS: u64 = 1_000_000_000;
/// Stretches at most: as many as a picture has columns.
const ROWS_MAX: u64 = 300;

/// Averages of all CPUs together over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Averages {
    /// Length of a stretch: whole seconds, so many that there are 300 stretches at most.
    pub width_ns: u64,
    /// Length that the moving average is of, a tenth of the run or three stretches.
    pub window_ns: u64,
    /// Stretches, in order of time; those without a sample are left out.
    pub rows: Vec<AverageRow>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AverageRow {
    /// Start, nanoseconds after the first wake-up.
    pub from_ns: u64,
    pub n: u64,
    pub mean_ns: f64,
    /// Mean of all samples up to the end of the stretch.
    pub cumulative_ns: f64,
    /// Mean of the samples of the window that ends with the stretch; null: it is not full yet.
    pub moving_ns: Option<f64>,
}

impl Averages {
    /// Of a run.
    pub fn of(run: &Run) -> Self {
        let seconds = || run.threads.iter().flat_map(|thread| &thread.seconds);
        let Some(end_ns) = seconds().map(|second| second.to_ns).max() else {
            return Self::default();
        };
        let width_ns = end_ns.div_ceil(ROWS_MAX).div_ceil(SECOND_NS).max(1) * SECOND_NS;
        let len = end_ns.div_ceil(width_ns).max(1) as usize;
        let window = (len / 10).max(3);
        let mut sums = vec![(0_u64, 0_u128); len];
        for second in seconds() {
            let (n, sum) = &mut sums[((second.from_ns / width_ns) as usize).min(len - 1)];
            *n = n.saturating_add(second.totals.wake.count());
            *sum = sum.saturating_add(second.totals.wake.sum());
        }
        Self { width_ns, window_ns: width_ns * window as u64, rows: rows(&sums, width_ns, window) }
    }
}

fn rows(sums: &[(u64, u128)], width_ns: u64, window: usize) -> Vec<AverageRow> {
    let add = |all: (u64, u128), of: &(u64, u128)| {
        (all.0.saturating_add(of.0), all.1.saturating_add(of.1))
    };
    let mean = |(n, sum): (u64, u128)| (n > 0).then(|| sum as f64 / n as f64);
    let mut so_far = (0, 0);
    let mut rows = Vec::new();
    for (i, of) in sums.iter().enumerate() {
        so_far = add(so_far, of);
        let (Some(mean_ns), Some(cumulative_ns)) = (mean(*of), mean(so_far)) else { continue };
        let last = (i + 1).checked_sub(window).map(|from| &sums[from..=i]);
        let moving_ns = last.and_then(|last| mean(last.iter().fold((0, 0), add)));
        let from_ns = i as u64 * width_ns;
        rows.push(AverageRow { from_ns, n: of.0, mean_ns, cumulative_ns, moving_ns });
    }
    rows
}

#[cfg(test)]
mod tests {
    use rtproof_record::Class;

    use super::*;
    use crate::testing;

    #[test]
    fn averages_are_of_samples_and_not_of_means() {
        let rows = rows(&[(1, 10), (3, 90), (0, 0), (2, 20), (4, 40)], SECOND_NS, 3);
        let found: Vec<_> =
            rows.iter().map(|row| (row.mean_ns, row.cumulative_ns, row.moving_ns)).collect();
        assert_eq!(
            found,
            [
                (10.0, 10.0, None),
                (30.0, 25.0, None),
                (10.0, 20.0, Some(22.0)),
                (10.0, 16.0, Some(10.0)),
            ]
        );
        assert_eq!(rows[2].from_ns, 3 * SECOND_NS);
    }

    #[test]
    fn a_run_has_a_row_a_second_and_nothing_has_none() {
        let run = testing::run(Class::Soft, 2, 20, &[]);
        let found = Averages::of(&run);
        assert_eq!((found.width_ns, found.window_ns), (SECOND_NS, 3 * SECOND_NS));
        assert_eq!(found.rows.len(), 20);
        assert!(found.rows.iter().all(|row| (row.cumulative_ns / row.mean_ns - 1.0).abs() < 0.1));
        let mut none = run;
        none.threads.clear();
        assert_eq!(Averages::of(&none), Averages::default());
    }
}
