//! What recording costs the measured threads, measured and not assumed: short measurements on one
//! CPU in pairs, one with the recorder paused and one with it recording.
//!
//! The order changes from pair to pair, so that a machine that grows busier or calmer meanwhile
//! does not look like a cost, and the median of the pairs' differences is reported, because a
//! single slice may meet anything.

use rtproof_stats::{Histogram, Layout};

use super::{Recorder, RecorderError};
use crate::{
    session::{Plan, Session, SessionError},
    slot::Slot,
};

/// What recording adds to the median latency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordingCost {
    /// Median over the pairs of p50 with recording less p50 without, nanoseconds.
    pub delta_ns: i64,
    /// Pairs in which both slices had samples.
    pub pairs: u32,
    /// Those differences, nanoseconds, ascending.
    pub deltas_ns: Vec<i64>,
}

/// Why the cost is not known.
#[derive(Debug, thiserror::Error)]
pub enum CostError {
    /// The recorder could not be paused.
    #[error(transparent)]
    Recorder(#[from] RecorderError),
    /// The threads could not be started.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// No slice had a sample.
    #[error("no wake-up was measured; make the slices longer than the period")]
    Nothing,
}

/// Pairs and length of a slice, nanoseconds, that tell the cost to some tens of nanoseconds on a
/// quiet machine, in about three seconds.
pub const USUAL: (u32, u64) = (8, 100_000_000);

/// Measures the cost with short sessions like `plan`, of `slice_ns` each, on its first CPU. The
/// recorder records afterwards.
///
/// # Errors
/// The recorder or a session cannot be used.
pub fn cost(
    recorder: &Recorder,
    plan: &Plan,
    pairs: u32,
    slice_ns: u64,
) -> Result<RecordingCost, CostError> {
    let cpus = plan.cpus.iter().take(1).copied().collect();
    let plan = Plan { cpus, duration_ns: slice_ns, keeps_samples: false, ..plan.clone() };
    let measured = deltas(recorder, &plan, pairs);
    // Whatever came between: it records afterwards.
    recorder.resume()?;
    let mut deltas_ns = measured?;
    deltas_ns.sort_unstable();
    let delta_ns = median(&deltas_ns).ok_or(CostError::Nothing)?;
    let pairs = u32::try_from(deltas_ns.len()).unwrap_or(u32::MAX);
    Ok(RecordingCost { delta_ns, pairs, deltas_ns })
}

fn deltas(recorder: &Recorder, plan: &Plan, pairs: u32) -> Result<Vec<i64>, CostError> {
    let slice = |records: bool| -> Result<Option<u64>, CostError> {
        if records {
            recorder.resume()?
        } else {
            recorder.pause()?
        }
        Ok(p50_ns(plan)?)
    };
    let mut deltas = Vec::new();
    for pair in 0..pairs {
        let is_first = pair % 2 == 0;
        let (first, second) = (slice(is_first)?, slice(!is_first)?);
        let (with, without) = if is_first { (first, second) } else { (second, first) };
        if let (Some(with), Some(without)) = (with, without) {
            deltas.push(with.cast_signed().saturating_sub(without.cast_signed()));
        }
    }
    Ok(deltas)
}

/// Median latency of one session, of its wake-up view.
fn p50_ns(plan: &Plan) -> Result<Option<u64>, SessionError> {
    let mut wake = Histogram::new(Layout::FINE);
    let mut session = Session::start(plan)?;
    let mut take = |_: u32, slot: &Slot| slot.wake.add_to(&mut wake);
    while !session.is_finished() {
        std::thread::sleep(std::time::Duration::from_millis(5));
        session.collect(&mut take);
    }
    session.finish(&mut take, |_, _| {});
    let rank = wake.total().div_ceil(2);
    Ok(wake.value_at_rank(rank).filter(|_| !wake.is_empty()))
}

/// Of ascending values; half way between the two in the middle.
fn median(sorted: &[i64]) -> Option<i64> {
    let last = sorted.len().checked_sub(1)?;
    let (low, high) = (sorted.get(last / 2)?, sorted.get(last.div_ceil(2))?);
    Some(low.midpoint(*high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_pairs() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[7]), Some(7));
        assert_eq!(median(&[-5, 3]), Some(-1));
        assert_eq!(median(&[-5, 3, 900]), Some(3));
    }
}
