//! Do spikes come more often in one load phase than in the others?
//!
//! With equal rates, the groups of a phase are a binomial share of all: its part of the time
//! (exact, Przyborowski and Wilenski 1940). Groups that bunch within phases are worth fewer.

use rtproof_record::options::Phase;
use rtproof_stats::binomial;

use super::{
    spikes::{EVENTS_MIN, Hypothesis, Spikes},
    text,
};
use crate::causes::Structure;

/// Parts of the run in which bunching is looked at.
const PARTS: u64 = 24;
/// Times the rate of the other phases that is spoken of.
const TIMES: f64 = 1.5;

/// One question for each phase, where there are several.
pub(super) fn ask(spikes: &Spikes<'_>) -> Vec<Hypothesis> {
    let end = spikes.input.duration_ns;
    let phases: Vec<(&Phase, u64)> = spikes
        .input
        .phases
        .iter()
        .map(|phase| (phase, phase.to_ns.min(end).saturating_sub(phase.from_ns)))
        .filter(|&(_, length)| length > 0)
        .collect();
    let total: u64 = phases.iter().map(|&(_, length)| length).sum();
    let inside = |time: u64| phases.iter().any(|(phase, _)| holds(phase, time));
    let groups: Vec<u64> = spikes.groups(|spike| inside(spike.at_ns));
    if phases.len() < 2 || groups.len() < EVENTS_MIN {
        return Vec::new();
    }
    let count = spikes.all.iter().filter(|spike| inside(spike.at_ns)).count();
    let worth = 1.0 / spread(&phases, &groups, total);
    phases
        .iter()
        .map(|&(phase, length)| {
            let own = groups.iter().filter(|&&time| holds(phase, time)).count() as u64;
            let of = groups.len() as u64;
            let share = length as f64 / total as f64;
            // The part of independent groups that these are worth.
            let (k, n) = ((own as f64 * worth) as u64, (of as f64 * worth).ceil() as u64);
            let p = binomial::tail(k, n, share);
            let times = own as f64 / share / ((of - own) as f64 / (1.0 - share)).max(1.0);
            let say = || {
                let of = spikes.of(own, &groups, count);
                let others = match own as usize == groups.len() {
                    true => "there was none in the others".into(),
                    false => format!("{times:.1} times the rate of the others"),
                };
                let (length, total) = (text::time(length as f64), text::time(total as f64));
                Structure {
                    kind: "phase".into(),
                    text: format!(
                        "{of} came in the phase {}, {length} of {total} ({{p}}): {others}",
                        phase.name
                    ),
                    period_ns: None,
                    count: own,
                    of: groups.len() as u64,
                    p,
                    cpu: None,
                    // The picture has bands of the phases.
                    moments: Vec::new(),
                }
            };
            Hypothesis { p, found: (own as usize >= EVENTS_MIN && times >= TIMES).then(say) }
        })
        .collect()
}

fn holds(phase: &Phase, time_ns: u64) -> bool {
    (phase.from_ns..phase.to_ns).contains(&time_ns)
}

/// Variance over mean of the counts in equal parts of each phase, against the phase's own rate: 1
/// for independent groups, more where they bunch. Never below 1.
fn spread(phases: &[(&Phase, u64)], groups: &[u64], total: u64) -> f64 {
    let (mut squares, mut freedom) = (0.0, 0.0);
    for &(phase, length) in phases {
        let parts = (PARTS as f64 * length as f64 / total as f64).round().max(1.0) as u64;
        let mut counts = vec![0.0; parts as usize];
        for &time in groups.iter().filter(|&&time| holds(phase, time)) {
            let part = u128::from(time - phase.from_ns) * u128::from(parts) / u128::from(length);
            counts[(part as usize).min(parts as usize - 1)] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / parts as f64;
        if parts > 1 && mean > 0.0 {
            squares +=
                counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / mean;
            freedom += parts as f64 - 1.0;
        }
    }
    if freedom > 0.0 { (squares / freedom).max(1.0) } else { 1.0 }
}
