//! What the spikes of a run have in common: periods, CPUs, load phases, changes of frequency; and
//! what changes of its level do.
//!
//! Late wake-ups come in groups, so groups are counted, never single spikes; nothing is said on
//! fewer than five. All tests of one run are adjusted together (Holm), and a sentence is
//! written where the adjusted p is below 1 %. The same run gives the same sentences.

mod beside;
mod cpus;
mod levels;
mod marks;
mod periods;
mod phases;
mod spikes;
mod suspects;
mod text;

use rtproof_record::{Run, run::Thread};
use rtproof_stats::holm;

pub use levels::{SECONDS_MIN, has_level};
pub use spikes::{Input, Levels, SpikeAt};
use spikes::{LEVEL, Spikes};

use crate::causes::Structure;

/// What the spikes of a run have in common.
pub fn of_run(run: &Run) -> Vec<Structure> {
    // A record from before spikes were kept has levels all the same.
    let list = run.spikes.as_ref().map_or(&[][..], |recorded| &recorded.list);
    let thread = |number: u32| run.threads.iter().find(|thread| thread.info.number == number);
    let spikes: Vec<SpikeAt<'_>> = list
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
    let seen = run.spikes.as_ref().map_or(0, |recorded| recorded.summary.seen);
    let full = (spikes.len() as u64) < seen;
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

#[cfg(test)]
mod tests;
