//! What the frequency of a CPU did near the second at which its latency changed.
//!
//! That both came within a second is an observation, and no cause: it is said with the share of
//! the run that is as near to a change of frequency, and not at all where most of it is.

use rtproof_record::run::HostSecond;

use super::spikes::{Input, SECOND_NS};

/// A change of frequency by less than a tenth is not one.
const FREQUENCY_PARTS: u64 = 10;
/// Rows further apart do not tell the second of a change.
const APART_NS: u64 = 2 * SECOND_NS;
/// Share of the run near to a change of frequency from which nearness says nothing.
const SHARE_MOST: f64 = 0.2;

/// A change of frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrequencyStep {
    /// Halfway between the two readings, nanoseconds after the origin.
    pub(super) at_ns: u64,
    before_hz: u64,
    after_hz: u64,
}

/// Changes of frequency of one CPU, in order of time. Readings on both sides of a gap are none.
pub(super) fn changes(host: &[HostSecond], cpu: u32) -> Vec<FrequencyStep> {
    let read = |row: &HostSecond| row.cpus.iter().find(|own| own.cpu == cpu)?.freq_hz;
    let of = |pair: &[HostSecond]| {
        let (before_hz, after_hz) = (read(&pair[0])?, read(&pair[1])?);
        let near = pair[1].at_ns.saturating_sub(pair[0].at_ns) <= APART_NS;
        let changed = before_hz.abs_diff(after_hz) >= (before_hz / FREQUENCY_PARTS).max(1);
        let at_ns = u64::midpoint(pair[0].at_ns, pair[1].at_ns);
        (near && changed).then_some(FrequencyStep { at_ns, before_hz, after_hz })
    };
    host.windows(2).filter_map(of).collect()
}

/// The changes of frequency of one CPU, and how much of the run is near to one.
#[derive(Clone, Debug, Default)]
pub(super) struct Frequency {
    changes: Vec<FrequencyStep>,
    /// Share of the run within a second of a change.
    share: f64,
}

impl Frequency {
    pub(super) fn of(input: &Input<'_>, cpu: u32) -> Self {
        let changes = changes(input.host, cpu);
        let (mut near_ns, mut free_ns) = (0_u64, 0_u64);
        for change in &changes {
            let from_ns = change.at_ns.saturating_sub(SECOND_NS).max(free_ns);
            free_ns = change.at_ns.saturating_add(SECOND_NS).min(input.duration_ns).max(free_ns);
            near_ns += free_ns.saturating_sub(from_ns);
        }
        Self { changes, share: near_ns as f64 / input.duration_ns.max(1) as f64 }
    }

    /// The change within a second of a moment, the nearest one; `None` also where nearly every
    /// moment has one.
    fn at(&self, at_ns: u64) -> Option<&FrequencyStep> {
        let nearest = self.changes.iter().min_by_key(|change| change.at_ns.abs_diff(at_ns))?;
        let is_near = nearest.at_ns.abs_diff(at_ns) <= SECOND_NS;
        (is_near && self.share < SHARE_MOST).then_some(nearest)
    }

    /// Continues a sentence.
    pub(super) fn sentence(&self, at_ns: u64) -> String {
        self.at(at_ns).map_or_else(String::new, |change| {
            format!(
                ", within a second of a change of its frequency from {} ({} of the run is as near \
                 to one)",
                change.text(" to "),
                percent(self.share)
            )
        })
    }

    /// Continues the label of a moment.
    pub(super) fn short(&self, at_ns: u64) -> String {
        self.at(at_ns).map_or_else(String::new, |change| format!(", {}", change.text(" → ")))
    }
}

impl FrequencyStep {
    fn text(&self, to: &str) -> String {
        format!("{}{to}{}", ghz(self.before_hz), ghz(self.after_hz))
    }
}

fn ghz(hz: u64) -> String {
    let text = format!("{:.2}", hz as f64 / 1e9);
    format!("{} GHz", text.trim_end_matches('0').trim_end_matches('.'))
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

    fn frequency(host: &[HostSecond], cpu: u32) -> Frequency {
        let input = Input {
            spikes: &[],
            host,
            phases: &[],
            period_ns: 1_000_000,
            duration_ns: host.len() as u64 * SECOND_NS,
            cpus: 2,
            levels: &[],
        };
        Frequency::of(&input, cpu)
    }

    const FAST: Option<u64> = Some(3_000_000_000);
    const SLOW: Option<u64> = Some(1_000_000_000);

    #[test]
    fn a_change_is_named_with_how_often_that_is_so() {
        let rows = host(300, |s, cpu| if cpu == 1 && s >= 100 { SLOW } else { FAST });
        let own = frequency(&rows, 1);
        assert_eq!(own.short(100 * SECOND_NS), ", 3 GHz → 1 GHz");
        assert_eq!(
            own.sentence(101 * SECOND_NS),
            ", within a second of a change of its frequency from 3 GHz to 1 GHz (0.7 % of the run \
             is as near to one)"
        );
        assert_eq!(own.short(102 * SECOND_NS), "", "a second further off");
        assert_eq!(own.short(99 * SECOND_NS), "");
        assert_eq!(frequency(&rows, 0).short(100 * SECOND_NS), "", "another CPU's");
        assert_eq!(frequency(&rows, 7).short(100 * SECOND_NS), "", "a CPU without rows");
    }

    #[test]
    fn what_nearly_every_second_has_is_not_named() {
        let rows = host(300, |s, _| if s % 2 == 0 { SLOW } else { FAST });
        assert_eq!(frequency(&rows, 1).changes.len(), 299);
        assert!(frequency(&rows, 1).share > 0.99);
        assert_eq!(frequency(&rows, 1).sentence(100 * SECOND_NS), "");
    }

    #[test]
    fn gaps_and_small_steps_are_no_changes() {
        let rows = host(300, |s, _| match s {
            0..100 => FAST,
            100..110 => None,
            _ => SLOW,
        });
        assert!(changes(&rows, 1).is_empty(), "nobody saw when");
        let mut rows = host(300, |s, _| if s < 100 { FAST } else { SLOW });
        rows.drain(95..105);
        assert!(changes(&rows, 1).is_empty(), "ten seconds without a reading");
        let rows = host(300, |s, _| Some(3_000_000_000 - 200_000_000 * (s / 100)));
        assert!(changes(&rows, 1).is_empty(), "by less than a tenth");
        let rows = host(300, |s, _| Some(if s < 100 { 0 } else { 5 }));
        assert_eq!(changes(&rows, 1).len(), 1, "a driver that says nothing of use");
        assert!(changes(&host(300, |_, _| Some(0)), 1).is_empty());
    }
}
