//! Groups of late wake-ups, on whatever CPU: how many, how large, and whether they come at a steady
//! rate.
//!
//! Their moments are exact where the largest samples of every thread hold all that were late; else
//! they are known to the second, and groups of several CPUs are counted one by one.

use rtproof_model::verdict::LateGroups;
use rtproof_record::{Run, run::Thread};
use rtproof_stats::{cluster, dispersion};

/// Seed of the samples that stand for chance: any will do, as long as it stays.
const SEED: u64 = 0x6772_6f75;

/// A group: when it began, and its wake-ups, where they are known.
struct Group {
    at_ns: u64,
    late: Option<u64>,
}

/// Groups of a run with a budget.
pub(crate) fn of(run: &Run, budget_ns: u64) -> LateGroups {
    let exact = exact(run, budget_ns);
    let of_one = run.threads.iter().map(|thread| thread.totals.late_clusters).max().unwrap_or(0);
    let at_least = exact.as_ref().map_or(of_one, |groups| groups.len() as u64);
    let groups = exact.unwrap_or_else(|| by_rows(run));
    let count = groups.len() as u64;
    let late: u64 = run.threads.iter().map(|thread| thread.totals.late()).sum();
    let spans = spans(run);
    let times: Vec<u64> = groups.iter().filter_map(|group| within(&spans, group.at_ns)).collect();
    let length_ns = spans.iter().map(|(from_ns, to_ns)| to_ns - from_ns).sum();
    LateGroups {
        count,
        at_least,
        largest: groups.iter().map(|group| group.late).max().flatten(),
        mean: (count > 0).then(|| late as f64 / count as f64),
        dispersion: dispersion::of(&times, length_ns, SEED),
    }
}

/// From the largest samples, where they hold every late one; those that were missed followed one.
fn exact(run: &Run, budget_ns: u64) -> Option<Vec<Group>> {
    let late = |thread: &Thread| {
        let samples = thread.top.iter().filter(|sample| sample.latency_ns > budget_ns);
        samples.copied().collect::<Vec<_>>()
    };
    let of_threads: Vec<_> = run.threads.iter().map(late).collect();
    let mut threads = run.threads.iter().zip(&of_threads);
    if !threads.all(|(thread, late)| late.len() as u64 == thread.totals.late_sampled) {
        return None;
    }
    let mut samples = of_threads.concat();
    samples.sort_unstable_by_key(|sample| sample.due_ns);
    let period_ns = run.options.period_ns.max(1);
    let gap_ns = period_ns.saturating_mul(cluster::GAP_PERIODS);
    let (mut groups, mut end_ns) = (Vec::<Group>::new(), 0_u64);
    for sample in samples {
        let late = 1 + (sample.latency_ns - budget_ns - 1) / period_ns;
        match groups.last_mut().filter(|_| sample.due_ns.saturating_sub(end_ns) <= gap_ns) {
            Some(group) => group.late = group.late.map(|before| before + late),
            None => groups.push(Group { at_ns: sample.due_ns, late: Some(late) }),
        }
        end_ns = end_ns.max(sample.due_ns.saturating_add(sample.latency_ns));
    }
    Some(groups)
}

/// From the seconds: those of one second spread over it.
fn by_rows(run: &Run) -> Vec<Group> {
    let rows = run.threads.iter().flat_map(|thread| &thread.seconds);
    let of_row = |second: &rtproof_record::run::Second| {
        let (from_ns, count) = (second.from_ns, second.totals.late_clusters);
        let step_ns = second.to_ns.saturating_sub(from_ns) / (count + 1);
        (1..=count).map(move |i| Group { at_ns: from_ns + i * step_ns, late: None })
    };
    rows.flat_map(of_row).collect()
}

/// The time that the verdict counts: loaded phases, or all of it where there is none.
fn spans(run: &Run) -> Vec<(u64, u64)> {
    let to_ns = run.threads.iter().map(|thread| thread.covered().1).max().unwrap_or(0);
    let loaded = run.options.phases.iter().filter(|phase| !phase.loads.is_empty());
    let spans: Vec<_> = loaded
        .map(|phase| (phase.from_ns, phase.to_ns.min(to_ns)))
        .filter(|(from_ns, to_ns)| from_ns < to_ns)
        .collect();
    if spans.is_empty() { vec![(0, to_ns)] } else { spans }
}

/// A moment in the time of the spans, one after the other.
fn within(spans: &[(u64, u64)], at_ns: u64) -> Option<u64> {
    let mut before_ns = 0;
    for &(from_ns, to_ns) in spans {
        if (from_ns..to_ns).contains(&at_ns) {
            return Some(before_ns + at_ns - from_ns);
        }
        before_ns += to_ns - from_ns;
    }
    None
}

#[cfg(test)]
mod tests {
    use rtproof_record::Class;

    use super::*;
    use crate::testing::run;

    #[test]
    fn what_strikes_all_cpus_is_one_group() {
        let all = [(0, 500, 150_000), (1, 500, 160_000), (1, 507, 2_300_000), (0, 900, 150_000)];
        let mut four = run(Class::Hundred, 2, 1, &all);
        let groups = of(&four, 100_000);
        // Three sampled, and two missed of the one that was 2.3 ms late.
        assert_eq!((groups.count, groups.largest), (2, Some(5)));
        // Their moments are not known any more: one by one, to the second.
        four.threads[0].top.clear();
        let groups = of(&four, 100_000);
        assert_eq!((groups.count, groups.at_least, groups.largest), (3, 2, None));
        assert!(groups.dispersion.is_some());
    }

    #[test]
    fn only_the_time_under_load_has_a_rate() {
        let late: Vec<_> = (0..20).map(|i| (0, 10_000 + i * 500, 150_000)).collect();
        let mut half = run(Class::Hundred, 1, 20, &late);
        assert!(of(&half, 100_000).dispersion.is_some_and(|steady| steady.p < 0.01));
        half.options.phases[0].from_ns = 10_000_000_000;
        let half = of(&half, 100_000);
        assert!(half.dispersion.is_some_and(|steady| steady.p > 0.5), "{half:?}");
        assert_eq!(of(&run(Class::Hundred, 1, 1, &[]), 100_000).dispersion, None);
    }
}
