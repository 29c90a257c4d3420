//! What a session hands to the writer: the head before the first wake-up, a tick a second, the
//! tail.

use rtproof_host::{Facts, flatten::FactRow};
use rtproof_stats::{Histogram, Layout, Sample};

use crate::error::Contradiction;
use crate::{
    BesideTick, EffectTick, Options, SpikeTick, pairs,
    run::{Cost, HostSecond, Load, Meta, Note, RunEnd, Second, ThreadEnd, ThreadInfo},
};

/// How many of a thread's largest samples are kept.
pub const TOP_MAX: usize = 64;

/// All that is known before the first wake-up.
#[derive(Clone, Debug)]
pub struct Head {
    /// Identity; `ended` is ignored. The times may be estimates until a tick brings the [`Origin`].
    pub meta: Meta,
    pub options: Options,
    pub facts: Snapshot,
    pub cost: Cost,
}

/// The machine at one moment, as document and as rows.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The document that judging reads.
    pub facts: Facts,
    /// The same, one fact a row, for SQL.
    pub rows: Vec<FactRow>,
    /// Hash of the facts that may change latency.
    pub condition_id: Option<String>,
}

/// What one second brought. Everything may be empty.
#[derive(Clone, Debug, Default)]
pub struct Tick {
    /// Times of the first wake-up, once they are known.
    pub origin: Option<Origin>,
    /// Threads that started; each before its first [`ThreadTick`].
    pub started: Vec<ThreadInfo>,
    /// Seconds of threads, in order of time for each thread.
    pub threads: Vec<ThreadTick>,
    /// Threads (by number) that ended.
    pub ended: Vec<(u32, ThreadEnd)>,
    pub host: Option<HostSecond>,
    pub notes: Vec<Note>,
    /// Loads that are new or have changed. Name and `from_ns` say which one it is: a later state
    /// of a load replaces the earlier one.
    pub loads: Vec<Load>,
    pub spikes: SpikeTick,
    /// Changes that are tried.
    pub effects: EffectTick,
    /// What was watched beside it.
    pub beside: BesideTick,
}

/// The first wake-up on two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Wall-clock time, nanoseconds since 1970.
    pub realtime_ns: u64,
    /// CLOCK_MONOTONIC, nanoseconds: origin of all times in the record.
    pub monotonic_ns: u64,
}

/// One second of one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadTick {
    /// Number of the thread.
    pub number: u32,
    /// The second; its histograms are the fine ones on the coarse grid.
    pub second: Second,
    /// Wake-up view of this second alone, fine grid, non-empty buckets ascending.
    pub wake_fine: Vec<(u16, u64)>,
    /// Lateness of missed wake-ups of this second alone, likewise.
    pub missed_fine: Vec<(u16, u64)>,
    /// The largest samples of this second, in any order, at most [`TOP_MAX`]. The largest samples
    /// of the run are exact when each second hands over its [`TOP_MAX`] largest.
    pub top: Vec<Sample>,
}

/// What is known after the last wake-up.
#[derive(Clone, Debug)]
pub struct Tail {
    /// How the run ended.
    pub ended: RunEnd,
    /// The machine now; `None` when there was no time left to look.
    pub facts: Option<Snapshot>,
    /// How each thread (by number) ended, unless a tick said so.
    pub threads: Vec<(u32, ThreadEnd)>,
    /// The options as they were in the end, where nobody could know before how long the run would
    /// last; `None`: those of the head.
    pub options: Option<Options>,
}

impl ThreadTick {
    /// Builds the tick of a thread from its fine histograms of one second; fills the coarse ones of
    /// `second`.
    pub fn new(
        number: u32,
        mut second: Second,
        wake: &Histogram,
        missed: &Histogram,
        top: Vec<Sample>,
    ) -> Self {
        // Bucket numbers fit: the fine grid has fewer than 2^16 buckets.
        let pairs = |h: &Histogram| h.buckets().map(|(b, n)| (b as u16, n)).collect();
        second.wake = pairs(&wake.coarsened(Layout::COARSE));
        second.missed = pairs(&missed.coarsened(Layout::COARSE));
        Self { number, second, wake_fine: pairs(wake), missed_fine: pairs(missed), top }
    }

    /// Whether sums, both grids and the largest samples tell the same story.
    pub(crate) fn check(&self) -> Result<(), Contradiction> {
        let second = &self.second;
        let sampled = second.totals.wake.count();
        check_view("sampled", sampled, &second.wake, &self.wake_fine)?;
        check_view("missed", second.totals.missed, &second.missed, &self.missed_fine)?;
        if second.from_ns > second.to_ns {
            return Err(format!("second from {} to {} ns", second.from_ns, second.to_ns).into());
        }
        if self.top.len() > TOP_MAX {
            return Err(
                format!("{} largest samples, expected {TOP_MAX} at most", self.top.len()).into()
            );
        }
        let wake = &second.totals.wake;
        let edges = [self.wake_fine.first(), self.wake_fine.last()];
        let expected = [wake.min(), wake.max()].map(|ns| ns.map(|ns| Layout::FINE.index(ns)));
        if edges.map(|edge| edge.map(|&(bucket, _)| usize::from(bucket))) != expected {
            return Err(format!(
                "extremes {:?} and {:?} ns are not those of the histogram",
                wake.min(),
                wake.max()
            )
            .into());
        }
        let largest = self.top.iter().map(|sample| sample.latency_ns).max();
        if largest.is_some() && largest != wake.max() {
            return Err(format!(
                "largest sample {largest:?}, but the second's maximum is {:?}",
                wake.max()
            )
            .into());
        }
        Ok(())
    }
}

fn check_view(
    view: &str,
    count: u64,
    coarse: &[(u16, u64)],
    fine: &[(u16, u64)],
) -> Result<(), Contradiction> {
    pairs::check(coarse, Layout::COARSE)?;
    pairs::check(fine, Layout::FINE)?;
    let (in_coarse, in_fine) = (pairs::total(coarse), pairs::total(fine));
    if in_coarse != count || in_fine != count {
        return Err(format!(
            "{count} wake-ups {view}, but its histograms hold {in_coarse} (coarse) and {in_fine} \
             (fine)"
        )
        .into());
    }
    if coarsened(fine) != coarse {
        return Err(
            format!("the coarse histogram of the {view} is not the fine one coarsened").into()
        );
    }
    Ok(())
}

/// Fine buckets on the coarse grid.
pub(crate) fn coarsened(fine: &[(u16, u64)]) -> Vec<(u16, u64)> {
    let mut coarse: Vec<(u16, u64)> = Vec::with_capacity(fine.len());
    for &(bucket, n) in fine {
        let bucket = Layout::FINE.coarsen(usize::from(bucket), Layout::COARSE) as u16;
        match coarse.last_mut() {
            Some((last, sum)) if *last == bucket => *sum = sum.saturating_add(n),
            _ => coarse.push((bucket, n)),
        }
    }
    coarse
}
