//! How far the tail of a run may be followed: the level of latency exceeded once in an hour, a day,
//! a year of operation, or why no such number is given.
//!
//! The groups come from the largest wake-up of each second and the largest ones of the run, both
//! exact; CPUs are taken together in the time of the wall clock, for what strikes one may strike
//! all. Only the time counts that the verdict counts.

use rtproof_model::verdict::{Extrapolation, Projection};
use rtproof_record::{Run, run::Thread};
use rtproof_stats::{
    Histogram, Layout, dependence,
    quantile::Q,
    tail::{self, Holdout, MeasuredPeaks, Model, Peak},
};

const HOUR_NS: u64 = 3_600_000_000_000;

/// Seed of the random samples: any value, but fixed.
const SEED: u64 = 0x7461_696c;

/// Seconds that may exceed a threshold, one in so many: then one second seldom hides two groups.
const SECONDS: u64 = 20;

/// Wake-ups that may exceed a threshold.
const HIGHEST: Q = Q { above: 1, of: 100 };

/// Of a run with so much time under its load; `None` where there is none.
pub fn extrapolate(run: &Run, exposure_ns: u64) -> Option<Extrapolation> {
    let rate = run.options.requirement.rate_per_1000h;
    if exposure_ns == 0 || rate == 0 {
        return None;
    }
    let sampling_ns = run.options.period_ns;
    let complete_ns = complete_ns(run);
    // A short run is refused whatever its groups say: they are not fitted.
    let short = MeasuredPeaks {
        peaks: &[],
        complete_ns,
        exposure_ns,
        sampling_ns,
        longest_period_ns: None,
        seed: SEED,
    };
    let peaks = peaks(run, complete_ns);
    let model = Model::too_short(&short)
        .unwrap_or_else(|| Model::of(&MeasuredPeaks { peaks: &peaks, ..short }));
    let ahead = |target_ns| Projection { target_ns, tail: model.level(target_ns) };
    let asked_ns = u128::from(HOUR_NS) * 1000 / u128::from(rate);
    let days = |days: u64| HOUR_NS * 24 * days;
    Some(Extrapolation {
        exposure_ns,
        clusters: peaks.len() as u64,
        complete_ns,
        requested: ahead(u64::try_from(asked_ns).unwrap_or(u64::MAX)),
        hour: ahead(HOUR_NS),
        day: ahead(days(1)),
        year: ahead(days(365) + HOUR_NS * 6),
        condition: Extrapolation::CONDITION.into(),
    })
}

/// Of the groups over the threshold, how many are to exceed the level that is put to the test.
const HELD_SHARE: f64 = 0.05;

/// The tail of the first half of the time under load put to the test by the second; `None`: too few
/// groups.
pub fn holdout(run: &Run) -> Option<Holdout> {
    let loaded = || run.options.phases.iter().filter(|phase| !phase.loads.is_empty());
    let end_ns = run.threads.iter().map(|thread| thread.covered().1).max()?;
    let from_ns = loaded().map(|phase| phase.from_ns).min().unwrap_or(0);
    let to_ns = loaded().map(|phase| phase.to_ns).max().unwrap_or(end_ns).min(end_ns);
    let mut peaks = peaks(run, complete_ns(run));
    peaks.iter_mut().for_each(|peak| peak.at_ns = peak.at_ns.saturating_sub(from_ns));
    tail::check_holdout(&peaks, to_ns.saturating_sub(from_ns), HELD_SHARE)
}

/// Whether a moment is of the time that the verdict counts.
fn counts(run: &Run, at_ns: u64) -> bool {
    let mut loaded = run.options.phases.iter().filter(|phase| !phase.loads.is_empty()).peekable();
    loaded.peek().is_none() || loaded.any(|phase| (phase.from_ns..phase.to_ns).contains(&at_ns))
}

/// Above it every group is known: of each thread either all samples, or one in most seconds.
fn complete_ns(run: &Run) -> u64 {
    let of_thread = |thread: &Thread| {
        let mut maxima: Vec<u64> =
            thread.seconds.iter().filter_map(|second| second.totals.wake.max()).collect();
        maxima.sort_unstable_by_key(|&ns| std::cmp::Reverse(ns));
        let by_seconds = maxima.get(maxima.len() / SECONDS as usize).copied().unwrap_or(u64::MAX);
        let has_all = thread.top.len() as u64 >= thread.totals.wake.count();
        let by_top = thread.top.last().filter(|_| !has_all).map_or(0, |last| last.latency_ns);
        by_seconds.min(by_top)
    };
    let mut wake = Histogram::new(Layout::FINE);
    run.threads.iter().for_each(|thread| wake.merge(&thread.wake));
    let highest = wake.value_at_rank(HIGHEST.rank(wake.total())).unwrap_or(0);
    run.threads.iter().map(of_thread).fold(highest, u64::max)
}

/// The groups of all threads over a level.
fn peaks(run: &Run, over_ns: u64) -> Vec<Peak> {
    let of_thread = |thread: &'_ Thread| -> Vec<Peak> {
        let top = thread
            .top
            .iter()
            .map(|sample| Peak { at_ns: sample.due_ns, latency_ns: sample.latency_ns });
        let seconds = thread.seconds.iter().filter_map(|second| {
            Some(Peak { at_ns: second.max_at_ns, latency_ns: second.totals.wake.max()? })
        });
        top.chain(seconds)
            .filter(|peak| peak.latency_ns > over_ns && counts(run, peak.at_ns))
            .collect()
    };
    let gap_ns = run.options.period_ns.saturating_mul(dependence::GAP_PERIODS);
    tail::peaks(run.threads.iter().flat_map(of_thread), gap_ns)
}

#[cfg(test)]
mod tests {
    use rtproof_record::BudgetClass;
    use rtproof_stats::tail::RefusalReason;

    use rtproof_stats::tail::Tail;

    use super::*;
    use crate::testing::run;
    use crate::{Integrity, VerdictAnswer, verdict};

    /// Latencies with an exponential tail of 5 µs over 20 µs, one every 15 s or so.
    fn late(seconds: u64, scale_ns: f64) -> Vec<(u32, u64, u64)> {
        let mut state = 0x9E37_79B9_7F4A_7C15_u64;
        let mut unit = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..seconds / 15)
            .map(|_| {
                let ms = (unit() * (seconds * 1000) as f64) as u64;
                (0, ms, 20_000 + (-(1.0 - unit()).ln() * scale_ns) as u64)
            })
            .collect()
    }

    fn numbers(ahead: &Projection) -> Vec<u8> {
        match &ahead.tail {
            Tail::Level(_) => Vec::new(),
            Tail::Refused { rules } => rules.iter().map(RefusalReason::number).collect(),
        }
    }

    /// An hour in which three late ones an hour would be allowed.
    fn hour(scale_ns: f64) -> Run {
        let mut hour = run(BudgetClass::Hundred, 1, 3600, &late(3600, scale_ns));
        hour.options.requirement.rate_per_1000h = 3300;
        hour
    }

    #[test]
    fn an_hour_has_a_level_that_its_verdict_names() {
        let hour = hour(5000.0);
        let verdict = verdict::judge(&hour, &[], &Integrity::Sealed);
        let tail = verdict.tail.clone().expect("a tail");
        assert_eq!(verdict.answer, VerdictAnswer::Accepted, "{:?} {tail:?}", verdict.reasons);
        let Tail::Level(level) = &tail.requested.tail else { panic!("{tail:?}") };
        // 240 groups over 20 µs an hour, 73 in 1091 s: 20 + 5 ln 73 = 41.4 µs.
        assert!((level.level_ns / 41_400.0 - 1.0).abs() < 0.2, "{level:?}");
        assert!((150..=240).contains(&level.clusters) && level.high_ns < 100_000.0, "{level:?}");
        assert!(verdict.reasons[0].starts_with("The tail, followed to "), "{verdict:?}");
        assert!(verdict.reasons[0].contains(": below 100 µs ("), "{}", verdict.reasons[0]);
        assert!(numbers(&tail.hour).is_empty());
        assert!(tail.hour.text().contains(" µs, at most "), "{}", tail.hour.text());
        assert!(numbers(&tail.day).contains(&6) && numbers(&tail.year).contains(&6));
    }

    #[test]
    fn a_tail_that_reaches_the_budget_is_not_proven() {
        let mut hour = hour(5000.0);
        let accepted = verdict::judge(&hour, &[], &Integrity::Sealed);
        let Some(Tail::Level(level)) = accepted.tail.map(|tail| tail.requested.tail) else {
            panic!("refused")
        };
        // Nothing was later, and what may be is.
        let worst = hour.threads[0].totals.wake.max().expect("a worst one");
        let budget_ns = (worst + 1).max(level.high_ns as u64 - 1);
        hour.options.requirement.budget_ns = Some(budget_ns.min(level.high_ns as u64));
        let verdict = verdict::judge(&hour, &[], &Integrity::Sealed);
        assert_eq!((verdict.answer, verdict.basis.late), (VerdictAnswer::NotProven, 0));
        assert!(verdict.reasons[0].contains("not surely below"), "{verdict:?}");
    }

    #[test]
    fn a_short_run_is_refused_by_its_rule() {
        let short = run(BudgetClass::Hundred, 2, 20, &[]);
        let verdict = verdict::judge(&short, &[], &Integrity::Sealed);
        let tail = verdict.tail.clone().expect("a tail");
        assert_eq!(numbers(&tail.hour), [6, 9]);
        assert_eq!(tail.hour.text(), "refused by rules 6, 9");
        let said = verdict.reasons.iter().any(|reason| {
            reason.starts_with("The tail is not extrapolated, the rate is bounded by counting")
                && reason.contains("(rule 9)")
        });
        assert!(said, "{:?}", verdict.reasons);
        let soft =
            verdict::judge(&run(BudgetClass::NinetyFive, 1, 20, &[]), &[], &Integrity::Sealed);
        assert_eq!(soft.tail, None);
    }

    #[test]
    fn only_the_time_under_load_counts() {
        let mut half = hour(5000.0);
        half.options.phases[0].from_ns = 1_800_000_000_000;
        let all = peaks(&hour(5000.0), 20_000);
        let under_load = peaks(&half, 20_000);
        assert!(under_load.iter().all(|peak| peak.at_ns >= 1_800_000_000_000));
        assert!(!under_load.is_empty() && under_load.len() < all.len());
        // The largest of a second and the same one of the run are one.
        let mut sorted = all.clone();
        sorted.dedup_by_key(|peak| peak.at_ns);
        assert_eq!(sorted.len(), all.len());
    }
}
