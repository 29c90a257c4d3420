//! Do spikes come with something that happened: a change of frequency, time taken by the
//! hypervisor, the edge of a load phase?

use rtproof_stats::coincidence::{self, Ask};

use super::{
    beside,
    spikes::{EVENTS_MIN, Hypothesis, SECOND_NS, SEED, SHIFTS, Spikes, near},
    text,
};
use crate::causes::Structure;

/// Fewest moments for a test.
const MOMENTS_MIN: usize = 3;
/// Times as often as by chance that is spoken of.
const TIMES: f64 = 1.5;

/// Moments at which something happened.
pub(super) struct Marks {
    pub(super) kind: &'static str,
    pub(super) what: &'static str,
    /// The CPU it is of; `None`: all.
    cpu: Option<u32>,
    pub(super) at_ns: Vec<u64>,
    pub(super) within_ns: u64,
    /// Largest shift that stands for chance.
    pub(super) most_ns: u64,
}

/// Moments of the whole machine, known to a second.
pub(super) const fn moments(kind: &'static str, what: &'static str, at_ns: Vec<u64>) -> Marks {
    Marks { kind, what, cpu: None, at_ns, within_ns: SECOND_NS, most_ns: u64::MAX }
}

/// One question for each CPU and kind of moment.
pub(super) fn ask(spikes: &Spikes<'_>) -> Vec<Hypothesis> {
    let mut marks: Vec<Marks> = Vec::new();
    for cpu in spikes.cpus() {
        marks.push(frequency(spikes, cpu));
        marks.push(steal(spikes, cpu));
    }
    marks.push(edges(spikes));
    marks.iter().filter_map(|marks| of(spikes, marks)).collect()
}

fn of(spikes: &Spikes<'_>, marks: &Marks) -> Option<Hypothesis> {
    let own = |cpu: u32| marks.cpu.is_none_or(|of| of == cpu);
    let groups = spikes.groups(|spike| own(spike.cpu));
    if groups.len() < EVENTS_MIN || marks.at_ns.len() < MOMENTS_MIN {
        return None;
    }
    let ask = Ask {
        window_ns: marks.within_ns,
        duration_ns: spikes.input.duration_ns,
        shifts: SHIFTS,
        least_ns: 3 * marks.within_ns,
        most_ns: marks.most_ns,
        step_ns: 1,
        seed: SEED,
    };
    let found = coincidence::pair(&groups, &marks.at_ns, &ask)?;
    // A bunch of spikes at one moment says as much as one spike, so the moments are tested, too.
    let moments = coincidence::pair(&marks.at_ns, &groups, &ask)?;
    let p = found.p.max(moments.p);
    let enough = found.hits >= EVENTS_MIN as u64 && found.hits as f64 >= TIMES * found.expected;
    let say = || {
        let count = spikes.all.iter().filter(|spike| own(spike.cpu)).count();
        let of = spikes.of(found.hits, &groups, count);
        let cpu = marks.cpu.map_or_else(String::new, |cpu| format!(" of CPU {cpu}"));
        let (what, expected) = (marks.what, text::expected(found.expected));
        Structure {
            kind: marks.kind.into(),
            text: format!("{of}{cpu} came {what} ({expected} by chance, {{p}})"),
            period_ns: None,
            count: found.hits,
            of: groups.len() as u64,
            p,
            cpu: marks.cpu,
            moments: spikes.times(
                groups.iter().copied().filter(|&at| near(&marks.at_ns, at, marks.within_ns)),
            ),
        }
    };
    Some(Hypothesis { p, found: enough.then(say) })
}

/// Between two rows the frequency changed: anywhere from one to the other.
pub(super) fn frequency(spikes: &Spikes<'_>, cpu: u32) -> Marks {
    Marks {
        kind: "frequency",
        what: "within a second of a change of its frequency",
        cpu: Some(cpu),
        at_ns: beside::frequencies(spikes.input.host, cpu)
            .iter()
            .map(|change| change.at_ns)
            .collect(),
        within_ns: SECOND_NS,
        most_ns: u64::MAX,
    }
}

/// Seconds in which the hypervisor ran something else.
fn steal(spikes: &Spikes<'_>, cpu: u32) -> Marks {
    let stolen = spikes
        .input
        .host
        .iter()
        .filter(|row| row.cpus.iter().any(|own| own.cpu == cpu && own.steal_ms > 0));
    Marks {
        kind: "steal",
        what: "in a second in which the hypervisor ran something else on its CPU (steal)",
        cpu: Some(cpu),
        at_ns: stolen.map(|row| row.at_ns.saturating_sub(SECOND_NS / 2)).collect(),
        within_ns: SECOND_NS / 2,
        most_ns: u64::MAX,
    }
}

/// Where loads start and end.
pub(super) fn edges(spikes: &Spikes<'_>) -> Marks {
    let (end, phases) = (spikes.input.duration_ns, spikes.input.phases);
    // Phases of equal length: a shift by a whole phase would meet the next edge.
    let shortest = phases.iter().map(|phase| phase.to_ns.saturating_sub(phase.from_ns)).min();
    let edges = phases.iter().map(|phase| phase.from_ns).filter(|&at| at > 0 && at < end);
    let mut at_ns: Vec<u64> = edges.collect();
    at_ns.sort_unstable();
    Marks {
        kind: "phase",
        what: "within a second of a load's start or end",
        cpu: None,
        at_ns,
        within_ns: SECOND_NS,
        most_ns: shortest.unwrap_or(0).saturating_sub(3 * SECOND_NS),
    }
}
