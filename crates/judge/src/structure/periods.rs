//! Do the spikes follow a period: those of each culprit, and all of them?

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rtproof_stats::{
    cluster,
    period::{self, Period},
};

use super::{
    spikes::{EVENTS_MIN, Hypothesis, LEVEL, SpikeAt, Spikes},
    suspects, text,
};
use crate::{
    causes::{self, Structure},
    quantity,
};

/// Culprits that are looked at, the most frequent first.
const CULPRITS_MAX: usize = 6;
/// Periods of one culprit: the most followed, then what the rest follows.
const PERIODS_MAX: usize = 3;
/// Spikes that must lie within so much of the period for it to be one.
const WIDTH_MAX: f64 = 0.25;
/// Spikes in one group per culprit that make it worth to look inside groups.
const DENSE: usize = 20;
/// A walk of regular intervals keeps a phase for a while: below this it is one of the run.
const P_PHASE: f64 = 1e-9;
/// Groups' own gap makes intervals that are shorter than so many times it regular.
const REGULAR_GAPS: f64 = 5.0;
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

/// The period that they follow; then, without those, the next.
fn of<'a>(
    spikes: &Spikes<'a>,
    want: impl Fn(&SpikeAt<'a>) -> bool,
    cause: &str,
    by: &str,
) -> Vec<Hypothesis> {
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
    let hints: Vec<u64> = suspects::SUSPECTS.iter().map(|suspect| suspect.period_ns).collect();
    let ask = period::Ask { sampling_ns: period_ns, shortest_ns, hints_ns: &hints };
    let mut asked = Vec::new();
    let mut left = groups.clone();
    while left.len() >= EVENTS_MIN && asked.len() < PERIODS_MAX {
        let Some(mut found) = period::search(&left, &ask) else { break };
        if !asked.is_empty() {
            found = found.filled(&groups);
        }
        let p = if dense { (found.p * DENSE_P).min(1.0) } else { found.p };
        let follow = found.fold.follow;
        // Where intervals are regular, phases are not by chance: what the test supposes fails.
        let all_ns = groups[groups.len() - 1] - groups[0];
        let keeps = found.p < P_PHASE && found.to_ns - found.from_ns >= all_ns / 2;
        if asked.is_empty() && !dense && !keeps {
            let regular = period::intervals(&groups).filter(|regular| {
                regular.p < LEVEL && regular.mean_ns >= REGULAR_GAPS * shortest_ns as f64
            });
            if let Some(regular) = regular {
                return vec![loosely(&regular, by, spikes, &groups)];
            }
        }
        let narrow = found.fold.width_ns <= WIDTH_MAX * found.period_ns;
        let is_one = narrow && follow >= EVENTS_MIN as u64;
        let say = || {
            let of = spikes.of(follow, &groups, count);
            sentence(&found, &of, (by, cause), spikes, &groups)
        };
        asked.push(Hypothesis { p, found: is_one.then(say) });
        let rest = found.rest(&left, period_ns).filter(|_| is_one && p < LEVEL);
        let Some(rest) = rest else { break };
        left = rest;
    }
    asked
}

/// Regular, but they keep no phase.
fn loosely(
    regular: &period::Intervals,
    by: &str,
    spikes: &Spikes<'_>,
    groups: &[u64],
) -> Hypothesis {
    let time = |ns: u64| text::time(ns as f64);
    let text = format!(
        "{} of {} intervals between spikes{by} are {} to {}, {} on average ({{p}}), with no clear \
         phase. A loop that counts from its last run looks so, and a period with much jitter",
        quantity::grouped(regular.count),
        quantity::grouped(regular.of),
        time(regular.shortest_ns),
        time(regular.longest_ns),
        text::time(regular.mean_ns),
    );
    let found = Structure {
        kind: "period".into(),
        text,
        period_ns: Some(regular.mean_ns.round() as u64),
        count: regular.count,
        of: regular.of,
        p: regular.p,
        cpu: None,
        moments: spikes.times(groups.iter().copied()),
    };
    Hypothesis { p: regular.p, found: Some(found) }
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
    let (first, last) = (groups.first().copied(), groups.last().copied());
    let apart = |a: u64, b: Option<u64>| a.abs_diff(b.unwrap_or(a)) as f64 > found.period_ns;
    let part = match apart(found.from_ns, first) || apart(found.to_ns, last) {
        true => format!(
            " from {} to {} after the start",
            text::time(found.from_ns as f64),
            text::time(found.to_ns as f64)
        ),
        false => String::new(),
    };
    let name = suspects::name(found, cause, sampling_ns);
    Structure {
        kind: "period".into(),
        text: format!(
            "{of}{by} follow a period of {period}{part} ({} of {} cycles, phase width {width}, \
             {{p}}){name}",
            quantity::grouped(found.occupied),
            quantity::grouped(found.cycles)
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
