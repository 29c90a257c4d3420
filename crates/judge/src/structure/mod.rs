//! What the spikes of a run have in common: periods, CPUs, load phases, changes of frequency; and
//! what changes of its level do.
//!
//! Late wake-ups come in groups, so groups are counted, never single spikes; nothing is said on
//! fewer than five. All tests of one run are adjusted together (Holm), and a sentence is
//! written where the adjusted p is below 1 %. The same run gives the same sentences.

mod cpus;
mod levels;
mod marks;
mod periods;
mod phases;
mod suspects;
mod text;

use rtproof_record::{
    Run,
    options::Phase,
    run::{HostSecond, Thread},
};
use rtproof_stats::{cluster, holm};

pub use levels::Levels;

use crate::{
    causes::{Moment, Structure},
    quantity::grouped,
};

/// Groups of spikes below which nothing is said.
const EVENTS_MIN: usize = 5;
/// Adjusted probability by chance below which a sentence is written.
const LEVEL: f64 = 0.01;
/// Shifts that stand for chance.
const SHIFTS: u32 = 500;
/// Moments that are kept of one sentence: more than a picture can show apart.
const MOMENTS_MAX: u64 = 500;
/// Seed of the shifts: any will do, as long as it stays.
const SEED: u64 = 0x7274_7072_6f6f_6601;
const SECOND_NS: u64 = 1_000_000_000;

/// One spike: when, where, why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpikeAt<'a> {
    /// CPU.
    pub cpu: u32,
    /// When it was due, nanoseconds after the origin of the run.
    pub at_ns: u64,
    /// How late it was.
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
    /// Load phases.
    pub phases: &'a [Phase],
    /// Period of the wake-ups.
    pub period_ns: u64,
    /// Length of the run.
    pub duration_ns: u64,
    /// CPUs that were measured.
    pub cpus: usize,
    /// The level of each CPU, second by second.
    pub levels: &'a [Levels],
}

/// A question that was asked. What was asked counts, whatever came out.
struct Asked {
    /// Probability by chance.
    p: f64,
    /// What to say, with `{p}` for the adjusted probability; `None`: too small to speak of.
    found: Option<Structure>,
}

/// What the spikes of a run have in common.
#[must_use]
pub fn of_run(run: &Run) -> Vec<Structure> {
    let Some(recorded) = &run.spikes else { return Vec::new() };
    let thread = |number: u32| run.threads.iter().find(|thread| thread.info.number == number);
    let spikes: Vec<SpikeAt<'_>> = recorded
        .list
        .iter()
        .filter_map(|spike| {
            let why = spike.why.as_ref();
            Some(SpikeAt {
                cpu: thread(spike.thread)?.info.cpu,
                at_ns: spike.due_ns,
                latency_ns: spike.latency_ns,
                cause: why.map_or("", |why| &why.cause),
                culprit: why.map_or("", |why| &why.culprit),
            })
        })
        .collect();
    let end = run.threads.iter().map(Thread::written_to_ns).max().unwrap_or(0);
    // A list that is full ends before the run does.
    let full = (spikes.len() as u64) < recorded.summary.seen;
    let last = spikes.iter().map(|spike| spike.at_ns).max().unwrap_or(0);
    structure(&Input {
        spikes: &spikes,
        host: &run.host,
        phases: &run.options.phases,
        period_ns: run.options.period_ns,
        duration_ns: if full { last.saturating_add(1) } else { end },
        cpus: run.threads.len(),
        levels: &run.threads.iter().map(Levels::of).collect::<Vec<_>>(),
    })
}

/// What spikes have in common: the least likely by chance first.
#[must_use]
pub fn structure(input: &Input<'_>) -> Vec<Structure> {
    if input.period_ns == 0 || input.duration_ns == 0 {
        return Vec::new();
    }
    let mut spikes: Vec<SpikeAt<'_>> =
        input.spikes.iter().filter(|spike| spike.at_ns < input.duration_ns).copied().collect();
    spikes.sort_unstable_by_key(|spike| (spike.at_ns, spike.cpu));
    let spikes = Spikes { all: &spikes, input };
    let mut asked = periods::ask(&spikes);
    asked.extend(cpus::ask(&spikes));
    asked.extend(phases::ask(&spikes));
    asked.extend(marks::ask(&spikes));
    asked.extend(levels::ask(&spikes));
    let adjusted = holm::adjust(&asked.iter().map(|asked| asked.p).collect::<Vec<_>>());
    let mut found: Vec<Structure> = asked
        .into_iter()
        .zip(adjusted)
        .filter(|&(_, p)| p < LEVEL)
        .filter_map(|(asked, p)| asked.found.map(|found| (found, p)))
        .map(|(found, p)| {
            let text = found.text.replace("{p}", &text::probability(p));
            Structure { text, p, ..found }
        })
        .collect();
    found.sort_by(|a, b| a.p.total_cmp(&b.p));
    periods::without_echoes(found)
}

/// The spikes by time, and the run that they are of.
struct Spikes<'a> {
    all: &'a [SpikeAt<'a>],
    input: &'a Input<'a>,
}

impl<'a> Spikes<'a> {
    /// Starts of the groups among the spikes that are wanted: a gap of ten periods ends a group.
    fn groups(&self, want: impl Fn(&SpikeAt<'a>) -> bool) -> Vec<u64> {
        let gap_ns = self.input.period_ns.saturating_mul(cluster::GAP_PERIODS);
        cluster::starts(
            self.all.iter().filter(|spike| want(spike)).map(|spike| spike.at_ns),
            gap_ns,
        )
    }

    /// CPUs with spikes, ascending.
    fn cpus(&self) -> Vec<u32> {
        let mut cpus: Vec<u32> = self.all.iter().map(|spike| spike.cpu).collect();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    /// Moments for a picture: those that it can show apart.
    fn moments(&self, all: impl IntoIterator<Item = (u64, String)>) -> Vec<Moment> {
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
    fn times(&self, all: impl IntoIterator<Item = u64>) -> Vec<Moment> {
        self.moments(all.into_iter().map(|at_ns| (at_ns, String::new())))
    }

    /// How many of so many, in words: groups are spikes where each group is one.
    fn of(&self, count: u64, groups: &[u64], spikes: usize) -> String {
        let noun = if groups.len() == spikes { "spikes" } else { "groups of spikes" };
        format!("{} of {} {noun}", grouped(count), grouped(groups.len() as u64))
    }
}

/// Whether one of ascending times lies within a window of this one.
fn near(times: &[u64], time: u64, within_ns: u64) -> bool {
    let next = times.partition_point(|&other| other < time.saturating_sub(within_ns));
    times.get(next).is_some_and(|&other| other <= time.saturating_add(within_ns))
}

#[cfg(test)]
mod tests;
