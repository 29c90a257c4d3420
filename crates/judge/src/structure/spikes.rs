//! What all questions share: the spikes by time, the run that they are of, an answer.

use rtproof_record::{options::Phase, run::HostSecond};
use rtproof_stats::cluster;

use crate::{
    causes::{Moment, Structure},
    quantity::grouped,
};

/// Adjusted probability by chance below which a sentence is written.
pub(super) const LEVEL: f64 = 0.01;
/// Groups of spikes below which nothing is said.
pub(super) const EVENTS_MIN: usize = 5;
/// Shifts that stand for chance.
pub(super) const SHIFTS: u32 = 500;
/// Moments that are kept of one sentence: more than a picture can show apart.
const MOMENTS_MAX: u64 = 500;
/// Seed of the shifts: any will do, as long as it stays.
pub(super) const SEED: u64 = 0x7274_7072_6f6f_6601;
pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// One spike: when, where, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpikeAt<'a> {
    pub cpu: u32,
    /// When it was due, nanoseconds after the origin of the run.
    pub at_ns: u64,
    pub latency_ns: u64,
    /// Cause of the largest share, by id; empty: not explained.
    pub cause: &'a str,
    /// Its culprit; empty: nobody to name.
    pub culprit: &'a str,
}

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// Spikes, in any order.
    pub spikes: &'a [SpikeAt<'a>],
    /// Host counters, one row a second.
    pub host: &'a [HostSecond],
    pub phases: &'a [Phase],
    pub period_ns: u64,
    /// Length of the run.
    pub duration_ns: u64,
    /// CPUs that were measured.
    pub cpus: usize,
    /// The level of each CPU, second by second.
    pub levels: &'a [Levels],
}

/// A question that was asked. What was asked counts, whatever came out.
pub(super) struct Hypothesis {
    /// Probability by chance.
    pub(super) p: f64,
    /// What to say, with `{p}` for the adjusted probability; `None`: too small to speak of.
    pub(super) found: Option<Structure>,
}

/// The level of one CPU, second by second.
#[derive(Clone, Debug, PartialEq)]
pub struct Levels {
    pub cpu: u32,
    /// Begin of each second, nanoseconds after the origin, and the logarithm of its median.
    pub rows: Vec<(u64, f64)>,
}

/// The spikes by time, and the run that they are of.
pub(super) struct Spikes<'a> {
    pub(super) all: &'a [SpikeAt<'a>],
    pub(super) input: &'a Input<'a>,
}

impl<'a> Spikes<'a> {
    /// Starts of the groups among the spikes that are wanted: a gap of ten periods ends a group.
    pub(super) fn groups(&self, want: impl Fn(&SpikeAt<'a>) -> bool) -> Vec<u64> {
        let gap_ns = self.input.period_ns.saturating_mul(cluster::GAP_PERIODS);
        cluster::starts(
            self.all.iter().filter(|spike| want(spike)).map(|spike| spike.at_ns),
            gap_ns,
        )
    }

    /// CPUs with spikes, ascending.
    pub(super) fn cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = self.all.iter().map(|spike| spike.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// Moments for a picture: those that it can show apart.
    pub(super) fn moments(&self, all: impl IntoIterator<Item = (u64, String)>) -> Vec<Moment> {
        let apart_ns = self.input.duration_ns / MOMENTS_MAX;
        let (mut kept, mut next_ns): (Vec<Moment>, u64) = (Vec::new(), 0);
        for (at_ns, text) in all {
            if at_ns >= next_ns && at_ns < self.input.duration_ns {
                kept.push(Moment { at_ns, text });
                next_ns = at_ns.saturating_add(apart_ns.max(1));
            }
        }
        kept
    }

    /// The same, without texts.
    pub(super) fn times(&self, all: impl IntoIterator<Item = u64>) -> Vec<Moment> {
        self.moments(all.into_iter().map(|at_ns| (at_ns, String::new())))
    }

    /// How many of so many, in words: groups are spikes where each group is one.
    pub(super) fn of(&self, count: u64, groups: &[u64], spikes: usize) -> String {
        let noun = if groups.len() == spikes { "spikes" } else { "groups of spikes" };
        format!("{} of {} {noun}", grouped(count), grouped(groups.len() as u64))
    }
}

/// Whether one of ascending times lies within a window of this one.
pub(super) fn near(times: &[u64], time: u64, within_ns: u64) -> bool {
    let next = times.partition_point(|&other| other < time.saturating_sub(within_ns));
    times.get(next).is_some_and(|&other| other <= time.saturating_add(within_ns))
}
