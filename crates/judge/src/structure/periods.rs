//! Do the spikes follow a period: those of each culprit, and all of them?

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rtproof_stats::{
    cluster,
    period::{self, Period},
};

use super::{
    spikes::{EVENTS_MIN, Hypothesis, SpikeAt, Spikes},
    suspects, text,
};
use crate::causes::{self, Structure};

/// Culprits that are looked at, the most frequent first.
const CULPRITS_MAX: usize = 6;
/// Spikes that must lie within so much of the period for it to be one.
const WIDTH_MAX: f64 = 0.25;
/// Spikes in one group per culprit that make it worth to look inside groups.
const DENSE: usize = 20;
/// Inside groups the time between spikes is not Poisson's, so more spikes are required.
const DENSE_P: f64 = 1000.0;

/// One question for each culprit with enough spikes, one for all.
pub(super) fn ask(spikes: &Spikes<'_>) -> Vec<Hypothesis> {
    let mut culprits: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for spike in spikes.all {
        *culprits.entry((spike.cause, spike.culprit)).or_default() += 1;
    }
    let mut culprits: Vec<_> = culprits.into_iter().collect();
    culprits.sort_by_key(|&(who, count)| (Reverse(count), who));
    let alone = culprits.len() == 1;
    let mut asked = Vec::new();
    for ((cause, culprit), _) in culprits.into_iter().take(CULPRITS_MAX) {
        let want = |spike: &SpikeAt<'_>| (spike.cause, spike.culprit) == (cause, culprit);
        asked.extend(of(spikes, want, cause, &by(cause, culprit)));
    }
    if !alone {
        asked.extend(of(spikes, |_| true, "", ""));
    }
    asked
}

/// ` by multipathd [RR 99]`, ` from a page fault of the thread`.
fn by(cause: &str, culprit: &str) -> String {
    match (cause, culprit) {
        ("", _) => " without an explanation".into(),
        (cause, "") => format!(" from {}", causes::title(cause)),
        (_, culprit) => format!(" by {culprit}"),
    }
}

fn of<'a>(
    spikes: &Spikes<'a>,
    want: impl Fn(&SpikeAt<'a>) -> bool,
    cause: &str,
    by: &str,
) -> Option<Hypothesis> {
    let period_ns = spikes.input.period_ns;
    let count = spikes.all.iter().filter(|spike| want(spike)).count();
    let mut groups = spikes.groups(&want);
    let mut shortest_ns = period_ns.saturating_mul(2 * cluster::GAP_PERIODS);
    let dense = count >= DENSE * groups.len().max(EVENTS_MIN);
    if dense {
        // Faster than groups end: what is apart by an on-time wake-up is counted.
        let times = spikes.all.iter().filter(|spike| want(spike)).map(|spike| spike.at_ns);
        groups = cluster::starts(times, period_ns.saturating_add(period_ns / 2));
        shortest_ns = period_ns.saturating_mul(3);
    }
    if groups.len() < EVENTS_MIN {
        return None;
    }
    let hints: Vec<u64> = suspects::SUSPECTS.iter().map(|suspect| suspect.period_ns).collect();
    let ask = period::Ask { sampling_ns: period_ns, shortest_ns, hints_ns: &hints };
    let found = period::search(&groups, &ask)?;
    let p = if dense { (found.p * DENSE_P).min(1.0) } else { found.p };
    let narrow = found.fold.width_ns <= WIDTH_MAX * found.period_ns;
    let enough = found.fold.follow >= EVENTS_MIN as u64;
    let say = || {
        let of = spikes.of(found.fold.follow, &groups, count);
        sentence(&found, &of, (by, cause), spikes, &groups)
    };
    Some(Hypothesis { p, found: (narrow && enough).then(say) })
}

fn sentence(
    found: &Period,
    of: &str,
    (by, cause): (&str, &str),
    spikes: &Spikes<'_>,
    groups: &[u64],
) -> Structure {
    let sampling_ns = spikes.input.period_ns;
    let period = text::period(found.period_ns, found.error_ns);
    // The resolution is the distance of wake-ups.
    let steps = (found.fold.width_ns / sampling_ns as f64).ceil().max(1.0);
    let width = text::time(steps * sampling_ns as f64);
    let part = (found.fold.of as usize) < groups.len();
    let part = match part {
        true => format!(
            " from {} to {} after the start",
            text::time(found.from_ns as f64),
            text::time(found.to_ns as f64)
        ),
        false => String::new(),
    };
    let name = suspects::name(found.period_ns, found.error_ns, cause, sampling_ns);
    Structure {
        kind: "period".into(),
        text: format!(
            "{of}{by} follow a period of {period}{part} (phase width {width}, {{p}}){name}"
        ),
        period_ns: Some(found.period_ns.round() as u64),
        count: found.fold.follow,
        of: groups.len() as u64,
        p: found.p,
        cpu: None,
        moments: spikes.times(groups.iter().copied().filter(|&at_ns| found.is_followed_by(at_ns))),
    }
}

/// All spikes have the period of their main culprit: said once, of the culprit.
pub(super) fn without_echoes(found: Vec<Structure>) -> Vec<Structure> {
    let of_culprits: Vec<u64> =
        found.iter().filter(|one| !is_of_all(one)).filter_map(|one| one.period_ns).collect();
    let echoes = |one: &Structure| {
        let near =
            |period: &u64| one.period_ns.is_some_and(|own| own.abs_diff(*period) <= own / 1000);
        is_of_all(one) && of_culprits.iter().any(near)
    };
    found.into_iter().filter(|one| !echoes(one)).collect()
}

fn is_of_all(one: &Structure) -> bool {
    one.kind == "period" && one.text.contains("spikes follow")
}
