//! What the frequency of a CPU, or the temperature of the machine, did near the second at which a
//! latency changed.
//!
//! That both came within a second is an observation, and no cause: it is said with the share of
//! the run that is as near to such a change, and not at all where most of it is.

use rtproof_record::run::HostSecond;

use super::spikes::{Input, SECOND_NS};

/// A change of frequency by less than a tenth is not one.
const FREQUENCY_PARTS: u64 = 10;
/// A change of temperature by less is not one, thousandths of a degree.
const JUMP_MC: u64 = 2000;
/// Rows further apart do not tell the second of a change.
const APART_NS: u64 = 2 * SECOND_NS;
/// Share of the run near to a change from which nearness says nothing.
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

/// What was read beside the latencies of one CPU.
#[derive(Clone, Debug)]
pub(super) struct Company([Jumps; 2]);

impl Company {
    pub(super) fn of(input: &Input<'_>, cpu: u32) -> Self {
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

    fn beside(host: &[HostSecond], cpu: u32) -> Company {
        let input = Input {
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
        let own = beside(&rows, 1);
        assert_eq!(own.short(100 * SECOND_NS), ", 3 GHz → 1 GHz");
        assert_eq!(
            own.sentence(101 * SECOND_NS),
            ", within a second of a change of its frequency from 3 GHz to 1 GHz (0.7 % of the run \
             is as near to one)"
        );
        assert_eq!(own.short(102 * SECOND_NS), "", "a second further off");
        assert_eq!(own.short(99 * SECOND_NS), "");
        assert_eq!(beside(&rows, 0).short(100 * SECOND_NS), "", "another CPU's");
        assert_eq!(beside(&rows, 7).short(100 * SECOND_NS), "", "a CPU without rows");
    }

    #[test]
    fn what_nearly_every_second_has_is_not_named() {
        let rows = host(300, |s, _| if s % 2 == 0 { SLOW } else { FAST });
        let own = beside(&rows, 1);
        assert_eq!((own.0[0].changes.len(), own.0[0].share > 0.99), (299, true));
        assert_eq!(beside(&rows, 1).sentence(100 * SECOND_NS), "");
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
        let own = beside(&rows, 1);
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
