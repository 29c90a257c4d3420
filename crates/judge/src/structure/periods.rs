//! Do the spikes follow a period: those of each culprit, and all of them? Do they come more often
//! in one load phase? What did frequency and temperature do when a latency changed?

use std::{cmp::Reverse, collections::BTreeMap};

use rtproof_record::run::{HostSecond, Phase};
use rtproof_stats::{
    binomial, coincidence,
    period::{self, Period},
};

use super::{EVENTS_MIN, Hypothesis, LEVEL, SECOND_NS, SpikeAt, SpikeTimes, StructureInput};
use crate::causes::Structure;
use crate::{causes, quantity};

/// Maximum number of culprits, the most frequent first.
const CULPRITS_MAX: usize = 6;

/// Periods of one culprit: the most followed, then what the rest follows.
const PERIODS_MAX: usize = 3;

/// Spikes that must lie within so much of the period for it to be one.
const WIDTH_MAX: f64 = 0.25;

/// Share of the cycles from the first follower to the last that hold one.
const FILLED: f64 = 0.25;

/// Up to 21 ticks of HZ 100: what a tick starts lies on its grid, and any of its multiples looks
/// like a period.
const TICKS_NS: f64 = 210e6;

/// Of such a short period nearly every cycle holds one.
const FAST_FILLED: f64 = 0.9;

/// Spikes in one group per culprit that make it worth to look inside groups.
const DENSE: usize = 20;

/// A walk of regular intervals keeps a phase for a while: below this it is one of the run.
const P_PHASE: f64 = 1e-9;

/// Groups' own gap makes intervals that are shorter than so many times it regular.
const REGULAR_GAPS: f64 = 5.0;

/// Inside groups the time between spikes is not Poisson's, so more spikes are required.
const DENSE_P: f64 = 1000.0;

/// One question for each culprit with enough spikes, one for all.
pub(super) fn ask_periods(spikes: &SpikeTimes<'_>) -> Vec<Hypothesis> {
    let mut culprits: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for spike in spikes.all {
        *culprits.entry((spike.cause, spike.culprit)).or_default() += 1;
    }
    let mut culprits: Vec<_> = culprits.into_iter().collect();
    culprits.sort_by_key(|&(who, count)| (Reverse(count), who));
    let alone = culprits.len() == 1;
    let mut hypotheses = Vec::new();
    for ((cause, culprit), _) in culprits.into_iter().take(CULPRITS_MAX) {
        let want = |spike: &SpikeAt<'_>| (spike.cause, spike.culprit) == (cause, culprit);
        hypotheses.extend(of(spikes, want, cause, &by(cause, culprit)));
    }
    if !alone {
        hypotheses.extend(of(spikes, |_| true, "", ""));
    }
    hypotheses
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
    spikes: &SpikeTimes<'a>,
    want: impl Fn(&SpikeAt<'a>) -> bool,
    cause: &str,
    by: &str,
) -> Vec<Hypothesis> {
    let period_ns = spikes.input.period_ns;
    let count = spikes.all.iter().filter(|spike| want(spike)).count();
    let mut groups = spikes.groups(&want);
    let mut shortest_ns = period_ns.saturating_mul(2 * coincidence::GAP_PERIODS);
    let dense = count >= DENSE * groups.len().max(EVENTS_MIN);
    if dense {
        // Faster than groups end: what is apart by an on-time wake-up is counted.
        let times = spikes.all.iter().filter(|spike| want(spike)).map(|spike| spike.at_ns);
        groups = coincidence::starts(times, period_ns.saturating_add(period_ns / 2));
        shortest_ns = period_ns.saturating_mul(3);
    }
    let hints: Vec<u64> = super::SUSPECTS.iter().map(|suspect| suspect.period_ns).collect();
    let ask = period::PeriodOptions { sampling_ns: period_ns, shortest_ns, hints_ns: &hints };
    let mut hypotheses = Vec::new();
    let mut left = groups.clone();
    while left.len() >= EVENTS_MIN && hypotheses.len() < PERIODS_MAX {
        let Some(mut found) = period::search(&left, &ask) else { break };
        if !hypotheses.is_empty() {
            found = found.filled(&groups);
        }
        let p = if dense { (found.p * DENSE_P).min(1.0) } else { found.p };
        let follow = found.fold.follow;
        // Where intervals are regular, phases are not by chance: what the test supposes fails.
        let all_ns = groups[groups.len() - 1] - groups[0];
        let keeps = found.p < P_PHASE && found.to_ns - found.from_ns >= all_ns / 2;
        if hypotheses.is_empty() && !dense && !keeps {
            let regular = period::intervals(&groups).filter(|regular| {
                regular.p < LEVEL && regular.mean_ns >= REGULAR_GAPS * shortest_ns as f64
            });
            if let Some(regular) = regular {
                return vec![loosely(&regular, by, spikes, &groups)];
            }
        }
        let narrow = found.fold.width_ns <= WIDTH_MAX * found.period_ns;
        let most = if found.period_ns < TICKS_NS { FAST_FILLED } else { FILLED };
        let is_one = narrow && follow >= EVENTS_MIN as u64 && found.occupancy() >= most;
        let as_structure = || {
            let of = spikes.of(follow, &groups, count);
            sentence(&found, &of, (by, cause), spikes, &groups)
        };
        hypotheses.push(Hypothesis { p, found: is_one.then(as_structure) });
        let rest = found.rest(&left, period_ns).filter(|_| is_one && p < LEVEL);
        let Some(rest) = rest else { break };
        left = rest;
    }
    hypotheses
}

/// Regular, but they keep no phase.
fn loosely(
    regular: &period::Intervals,
    by: &str,
    spikes: &SpikeTimes<'_>,
    groups: &[u64],
) -> Hypothesis {
    let time = |ns: u64| super::time(ns as f64);
    let text = format!(
        "{} of {} intervals between spikes{by} are {} to {}, {} on average ({{p}}), with no clear \
         phase. A loop that counts from its last run looks so, and a period with much jitter",
        quantity::grouped(regular.count),
        quantity::grouped(regular.of),
        time(regular.shortest_ns),
        time(regular.longest_ns),
        super::time(regular.mean_ns),
    );
    let found = Structure {
        kind: "intervals".into(),
        text,
        period_ns: None,
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
    spikes: &SpikeTimes<'_>,
    groups: &[u64],
) -> Structure {
    let sampling_ns = spikes.input.period_ns;
    let period = super::period(found.period_ns, found.error_ns);
    // The resolution is the distance of wake-ups.
    let steps = (found.fold.width_ns / sampling_ns as f64).ceil().max(1.0);
    let width = super::time(steps * sampling_ns as f64);
    let (first, last) = (groups.first().copied(), groups.last().copied());
    let apart = |a: u64, b: Option<u64>| a.abs_diff(b.unwrap_or(a)) as f64 > found.period_ns;
    let part = match apart(found.from_ns, first) || apart(found.to_ns, last) {
        true => format!(
            " from {} to {} after the start",
            super::time(found.from_ns as f64),
            super::time(found.to_ns as f64)
        ),
        false => String::new(),
    };
    let name = super::suspects_text(found, cause, sampling_ns);
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

// What the frequency of a CPU, or the temperature of the machine, did near the second at which a
// latency changed.
//
// That both came within a second is an observation, and no cause: it is said with the share of
// the run that is as near to such a change, and not at all where most of it is.

/// A change of frequency by less than a tenth is not one.
const FREQUENCY_PARTS: u64 = 10;

/// A change of temperature by less is not one, thousandths of a degree.
const JUMP_MC: u64 = 2000;

/// Rows further apart do not locate a change to the second.
const APART_NS: u64 = 2 * SECOND_NS;

/// Share of the run near a change above which nearness is no evidence.
const SHARE_MOST: f64 = 0.2;

/// A change from one reading to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Jump {
    /// Halfway between the two readings, nanoseconds after the origin.
    pub(super) at_ns: u64,
    /// Both readings, with their unit.
    before: String,
    after: String,
}

/// Changes of frequency of one CPU, in order of time. Readings on both sides of a gap are none.
pub(super) fn frequencies(host: &[HostSecond], cpu: u32) -> Vec<Jump> {
    changes(
        host,
        |row| row.cpus.iter().find(|own| own.cpu == cpu)?.freq_hz,
        |before, after| before.abs_diff(after) >= (before / FREQUENCY_PARTS).max(1),
        |hz| format!("{} GHz", trimmed(hz as f64 / 1e9, 2)),
    )
}

/// Jumps of the hottest zone, in order of time; likewise.
pub(super) fn temperatures(host: &[HostSecond]) -> Vec<Jump> {
    changes(
        host,
        |row| row.temp_max_mc,
        |before, after| before.abs_diff(after) >= JUMP_MC,
        |mc| format!("{} °C", trimmed(mc as f64 / 1e3, 1)),
    )
}

fn changes<T: Copy>(
    host: &[HostSecond],
    read: impl Fn(&HostSecond) -> Option<T>,
    is_change: impl Fn(T, T) -> bool,
    text: impl Fn(T) -> String,
) -> Vec<Jump> {
    let of = |pair: &[HostSecond]| {
        let (before, after) = (read(&pair[0])?, read(&pair[1])?);
        let near = pair[1].at_ns.saturating_sub(pair[0].at_ns) <= APART_NS;
        let at_ns = u64::midpoint(pair[0].at_ns, pair[1].at_ns);
        let change = || Jump { at_ns, before: text(before), after: text(after) };
        (near && is_change(before, after)).then(change)
    };
    host.windows(2).filter_map(of).collect()
}

/// Changes of one reading, and how much of the run is near to one.
#[derive(Clone, Debug)]
struct Jumps {
    /// Continues "within a second of a".
    what: &'static str,
    changes: Vec<Jump>,
    /// Share of the run within a second of a change.
    share: f64,
}

/// Readings of one CPU besides its latencies.
#[derive(Clone, Debug)]
pub(super) struct Company([Jumps; 2]);

impl Company {
    pub(super) fn of(input: &StructureInput<'_>, cpu: u32) -> Self {
        let reading = |what, changes| Jumps::new(what, changes, input.duration_ns);
        Self([
            reading("change of its frequency", frequencies(input.host, cpu)),
            reading("jump of temperature", temperatures(input.host)),
        ])
    }

    pub(super) fn sentence(&self, at_ns: u64) -> String {
        self.0.iter().map(|reading| reading.sentence(at_ns)).collect()
    }

    /// Continues the label of a moment.
    pub(super) fn short(&self, at_ns: u64) -> String {
        let near = self.0.iter().filter_map(|reading| reading.at(at_ns));
        near.map(|change| format!(", {} → {}", change.before, change.after)).collect()
    }
}

impl Jumps {
    fn new(what: &'static str, changes: Vec<Jump>, duration_ns: u64) -> Self {
        let (mut near_ns, mut free_ns) = (0_u64, 0_u64);
        for change in &changes {
            let from_ns = change.at_ns.saturating_sub(SECOND_NS).max(free_ns);
            free_ns = change.at_ns.saturating_add(SECOND_NS).min(duration_ns).max(free_ns);
            near_ns += free_ns.saturating_sub(from_ns);
        }
        Self { what, changes, share: near_ns as f64 / duration_ns.max(1) as f64 }
    }

    /// The change within a second of a moment, the nearest one; `None` also where nearly every
    /// moment has one.
    fn at(&self, at_ns: u64) -> Option<&Jump> {
        let nearest = self.changes.iter().min_by_key(|change| change.at_ns.abs_diff(at_ns))?;
        let is_near = nearest.at_ns.abs_diff(at_ns) <= SECOND_NS;
        (is_near && self.share < SHARE_MOST).then_some(nearest)
    }

    fn sentence(&self, at_ns: u64) -> String {
        self.at(at_ns).map_or_else(String::new, |Jump { before, after, .. }| {
            let (what, share) = (self.what, percent(self.share));
            format!(
                ", within a second of a {what} from {before} to {after} ({share} of the run is as \
                 near to one)"
            )
        })
    }
}

fn trimmed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent < 0.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

// Do spikes come more often in one load phase than in the others?
//
// With equal rates, the groups of a phase are a binomial share of all: its part of the time
// (exact, Przyborowski and Wilenski 1940). Groups that bunch within phases are worth fewer.

/// Parts of the run in which clustering is tested.
const PARTS: u64 = 24;

/// Times the rate of the other phases that is spoken of.
const TIMES: f64 = 1.5;

/// One question for each phase, where there are several.
pub(super) fn ask_phases(spikes: &SpikeTimes<'_>) -> Vec<Hypothesis> {
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
            let as_structure = || {
                let of = spikes.of(own, &groups, count);
                let others = match own as usize == groups.len() {
                    true => "there was none in the others".into(),
                    false => format!("{times:.1} times the rate of the others"),
                };
                let (length, total) = (super::time(length as f64), super::time(total as f64));
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
            Hypothesis {
                p,
                found: (own as usize >= EVENTS_MIN && times >= TIMES).then(as_structure),
            }
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

#[cfg(test)]
mod tests {
    use rtproof_record::run::HostCpuSecond;

    use super::*;

    /// Rows at the end of each second; `hz` gives what a CPU has in it.
    fn host(seconds: u64, hz: impl Fn(u64, u32) -> Option<u64>) -> Vec<HostSecond> {
        (0..seconds)
            .map(|s| HostSecond {
                at_ns: (s + 1) * SECOND_NS,
                cpus: (0..2)
                    .map(|cpu| HostCpuSecond {
                        cpu,
                        freq_hz: hz(s, cpu),
                        ..HostCpuSecond::default()
                    })
                    .collect(),
                ..HostSecond::default()
            })
            .collect()
    }

    fn company(host: &[HostSecond], cpu: u32) -> Company {
        let input = StructureInput {
            spikes: &[],
            host,
            phases: &[],
            period_ns: 1_000_000,
            duration_ns: host.len() as u64 * SECOND_NS,
            cpus: 2,
            levels: &[],
        };
        Company::of(&input, cpu)
    }

    const FAST: Option<u64> = Some(3_000_000_000);
    const SLOW: Option<u64> = Some(1_000_000_000);

    #[test]
    fn a_change_is_named_with_how_often_that_is_so() {
        let rows = host(300, |s, cpu| if cpu == 1 && s >= 100 { SLOW } else { FAST });
        let own = company(&rows, 1);
        assert_eq!(own.short(100 * SECOND_NS), ", 3 GHz → 1 GHz");
        assert_eq!(
            own.sentence(101 * SECOND_NS),
            ", within a second of a change of its frequency from 3 GHz to 1 GHz (0.7 % of the run \
             is as near to one)"
        );
        assert_eq!(own.short(102 * SECOND_NS), "", "a second further off");
        assert_eq!(own.short(99 * SECOND_NS), "");
        assert_eq!(company(&rows, 0).short(100 * SECOND_NS), "", "another CPU's");
        assert_eq!(company(&rows, 7).short(100 * SECOND_NS), "", "a CPU without rows");
    }

    #[test]
    fn what_nearly_every_second_has_is_not_named() {
        let rows = host(300, |s, _| if s % 2 == 0 { SLOW } else { FAST });
        let own = company(&rows, 1);
        assert_eq!((own.0[0].changes.len(), own.0[0].share > 0.99), (299, true));
        assert_eq!(company(&rows, 1).sentence(100 * SECOND_NS), "");
    }

    #[test]
    fn gaps_and_small_steps_are_no_changes() {
        let rows = host(300, |s, _| match s {
            0..100 => FAST,
            100..110 => None,
            _ => SLOW,
        });
        assert!(frequencies(&rows, 1).is_empty(), "nobody saw when");
        let mut rows = host(300, |s, _| if s < 100 { FAST } else { SLOW });
        rows.drain(95..105);
        assert!(frequencies(&rows, 1).is_empty(), "ten seconds without a reading");
        let rows = host(300, |s, _| Some(3_000_000_000 - 200_000_000 * (s / 100)));
        assert!(frequencies(&rows, 1).is_empty(), "by less than a tenth");
        let rows = host(300, |s, _| Some(if s < 100 { 0 } else { 5 }));
        assert_eq!(frequencies(&rows, 1).len(), 1, "a driver that says nothing of use");
        assert!(frequencies(&host(300, |_, _| Some(0)), 1).is_empty());
    }

    #[test]
    fn temperatures_are_named_likewise() {
        let mut rows = host(300, |s, _| if s < 100 { FAST } else { SLOW });
        for (s, row) in (0..).zip(&mut rows) {
            row.temp_max_mc = Some(if s < 100 { 45_000 } else { 86_500 });
        }
        let own = company(&rows, 1);
        assert_eq!(own.short(100 * SECOND_NS), ", 3 GHz → 1 GHz, 45 °C → 86.5 °C");
        let text = own.sentence(100 * SECOND_NS);
        assert!(text.contains("a jump of temperature from 45 °C to 86.5 °C (0.7 % of"), "{text}");
        let slowly = |rows: &mut [HostSecond]| {
            for (s, row) in (0..).zip(rows) {
                row.temp_max_mc = Some(45_000 + 1_500 * s);
            }
        };
        slowly(&mut rows);
        assert!(temperatures(&rows).is_empty(), "a slow rise has no second");
        rows.iter_mut().for_each(|row| row.temp_max_mc = None);
        assert!(temperatures(&rows).is_empty());
    }
}
