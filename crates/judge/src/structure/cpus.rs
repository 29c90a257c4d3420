//! Do spikes of several CPUs come at once?
//!
//! A spike's end is compared: what stops CPUs together lets them go together, wherever their own
//! wake-ups were due.

use rtproof_stats::{
    coincidence::Coincidence,
    jitter::{self, Ask},
};

use super::{
    spikes::{EVENTS_MIN, Hypothesis, SECOND_NS, SEED, SHIFTS, Spikes, near},
    text,
};
use crate::causes::{Moment, Structure};

/// Ends this close together are one.
const WITHIN_NS: u64 = 100_000;
/// CPUs that are looked at in pairs, those with the most spikes first.
const PAIRS_OF: usize = 8;
/// Times as often as by chance that is spoken of.
const TIMES: f64 = 2.0;

/// Groups of spikes of one CPU: when the first wake-up of each came to run.
struct Cpu {
    cpu: u32,
    spikes: usize,
    ends: Vec<u64>,
}

/// One question for all CPUs at once, and one for each pair.
pub(super) fn ask(spikes: &Spikes<'_>) -> Vec<Hypothesis> {
    let mut cpus: Vec<Cpu> = spikes.cpus().into_iter().map(|cpu| of_cpu(spikes, cpu)).collect();
    cpus.retain(|cpu| cpu.ends.len() >= EVENTS_MIN);
    // Company is counted from the CPU with the fewest groups.
    cpus.sort_by_key(|cpu| (cpu.ends.len(), cpu.cpu));
    let mut asked = Vec::new();
    if cpus.len() == spikes.input.cpus && cpus.len() >= 2 {
        let lists: Vec<&[u64]> = cpus.iter().map(|cpu| cpu.ends.as_slice()).collect();
        if let Some(found) = jitter::together(&lists, &moves(spikes)) {
            asked.push(Hypothesis { p: found.p, found: all(&found, &cpus, spikes) });
        }
    }
    if spikes.input.cpus > 2 {
        let together = asked.iter().any(|asked| asked.found.is_some());
        if together {
            leave_out_common(&mut cpus);
        }
        asked.extend(pairs(&cpus, spikes));
    }
    asked
}

fn of_cpu(spikes: &Spikes<'_>, cpu: u32) -> Cpu {
    let own = || spikes.all.iter().filter(move |spike| spike.cpu == cpu);
    let starts = spikes.groups(|spike| spike.cpu == cpu);
    let mut next = own();
    let mut ends: Vec<u64> = starts
        .iter()
        .filter_map(|&start| next.find(|spike| spike.at_ns == start))
        .map(|spike| spike.at_ns.saturating_add(spike.latency_ns))
        .collect();
    ends.sort_unstable();
    Cpu { cpu, spikes: own().count(), ends }
}

/// Moves along the grid of the wake-ups within 2 ms to a second: what both have in common for
/// longer, as a load that comes and goes, stays where it was.
const fn moves(spikes: &Spikes<'_>) -> Ask<'static> {
    Ask {
        window_ns: WITHIN_NS,
        widths_ns: &[2_000_000, 20_000_000, 200_000_000, SECOND_NS],
        step_ns: spikes.input.period_ns,
        tries: SHIFTS,
        seed: SEED,
    }
}

fn worth_saying(found: &Coincidence) -> bool {
    found.hits >= EVENTS_MIN as u64 && found.hits as f64 >= TIMES * found.expected
}

fn all(found: &Coincidence, cpus: &[Cpu], spikes: &Spikes<'_>) -> Option<Structure> {
    let first = cpus.first().filter(|_| worth_saying(found))?;
    let of = spikes.of(found.hits, &first.ends, first.spikes);
    let (cpu, expected) = (first.cpu, text::expected(found.expected));
    let text = match cpus {
        [_, second] => format!(
            "{of} of CPU {cpu} came at once with one of CPU {}, within 100 µs ({expected} by \
             chance, {{p}}), more closely than a common load explains. Both have one cause, which is not \
             shown: firmware (SMI), the hypervisor, the clock, a shared core or cache, an interrupt \
             from one to the other",
            second.cpu
        ),
        _ => format!(
            "{of} of CPU {cpu} came at once on all {} measured CPUs, within 100 µs ({expected} by \
             chance, {{p}}), more closely than a common load explains. All have one cause, which is not \
             shown: firmware (SMI), the hypervisor, the clock, an interrupt to all",
            cpus.len()
        ),
    };
    let together = first
        .ends
        .iter()
        .copied()
        .filter(|&at| cpus.iter().skip(1).all(|other| near(&other.ends, at, WITHIN_NS)));
    Some(structure(text, found, first, spikes.times(together)))
}

fn structure(text: String, found: &Coincidence, first: &Cpu, moments: Vec<Moment>) -> Structure {
    Structure {
        kind: "cpus".into(),
        text,
        period_ns: None,
        count: found.hits,
        of: first.ends.len() as u64,
        p: found.p,
        cpu: None,
        moments,
    }
}

/// What came on all CPUs says nothing of two.
fn leave_out_common(cpus: &mut [Cpu]) {
    let lists: Vec<Vec<u64>> = cpus.iter().map(|cpu| cpu.ends.clone()).collect();
    for cpu in cpus {
        cpu.ends.retain(|&time| !lists.iter().all(|list| near(list, time, WITHIN_NS)));
    }
}

fn pairs(cpus: &[Cpu], spikes: &Spikes<'_>) -> Vec<Hypothesis> {
    let mut cpus: Vec<&Cpu> = cpus.iter().filter(|cpu| cpu.ends.len() >= EVENTS_MIN).collect();
    cpus.sort_by_key(|cpu| (std::cmp::Reverse(cpu.ends.len()), cpu.cpu));
    cpus.truncate(PAIRS_OF);
    cpus.sort_by_key(|cpu| cpu.cpu);
    let mut asked = Vec::new();
    for (index, a) in cpus.iter().enumerate() {
        for b in &cpus[index + 1..] {
            let Some(found) = jitter::together(&[&a.ends, &b.ends], &moves(spikes)) else {
                continue;
            };
            let say = || {
                let of = spikes.of(found.hits, &a.ends, a.spikes);
                let text = format!(
                    "{of} of CPU {} came at once with one of CPU {}, within 100 µs ({} by chance, \
                     {{p}}), not on all CPUs. Both have one cause, such as a shared core or cache, or an \
                     interrupt from one to the other",
                    a.cpu,
                    b.cpu,
                    text::expected(found.expected)
                );
                let together = a.ends.iter().copied().filter(|&at| near(&b.ends, at, WITHIN_NS));
                structure(text, &found, a, spikes.times(together))
            };
            asked.push(Hypothesis { p: found.p, found: worth_saying(&found).then(say) });
        }
    }
    asked
}
