//! Late wake-ups over time: the seconds that hold any, the episodes that these make, and the share
//! of each CPU in the parts of a run.
//!
//! Rows that are longer than a second do not tell where in them wake-ups were late: to accept, each
//! is a second of its own, as far from the others as may be; to refuse, all are one.

use std::{collections::BTreeMap, ops::RangeInclusive};

use rtproof_record::{
    Run,
    run::{Phase, Second, Thread},
};
use rtproof_stats::{
    Sample,
    evidence::{LateSample, LateSpans, PARTS},
};

const SECOND_NS: u64 = 1_000_000_000;

/// Length of what is counted: a second, or a period where that is longer.
pub(crate) fn second_ns(run: &Run) -> u64 {
    let periods = run.threads.iter().map(|thread| thread.info.period_ns);
    periods.chain([run.options.period_ns]).fold(SECOND_NS, u64::max)
}

/// Late seconds of all CPUs.
pub(crate) struct LateTimes {
    second_ns: u64,
    known: LateSpans,
    /// Longer rows with late wake-ups, by their first second, and how many are late at most.
    rows: Vec<(RangeInclusive<u64>, u64)>,
}

impl LateTimes {
    pub(crate) fn of(run: &Run, budget_ns: u64) -> Self {
        let second_ns = second_ns(run);
        let (mut known, mut rows) = (Vec::new(), Vec::new());
        for thread in &run.threads {
            add(thread, budget_ns, second_ns, &mut known, &mut rows);
        }
        rows.sort_unstable_by_key(|(span, _)| (*span.start(), *span.end()));
        // CPUs of the same row: each may have been late in seconds of its own.
        rows.dedup_by(|next, row| {
            let is_same = row.0 == next.0;
            if is_same {
                row.1 = row.1.saturating_add(next.1).min(length(&row.0));
            }
            is_same
        });
        Self { second_ns, known: LateSpans::of(known), rows }
    }

    pub(crate) fn most(&self) -> u64 {
        self.rows.iter().fold(self.known.seconds(), |sum, row| sum.saturating_add(row.1))
    }

    pub(crate) fn least(&self) -> u64 {
        let mut spans: Vec<&RangeInclusive<u64>> =
            self.rows.iter().map(|(span, _)| span).filter(|s| !self.known.any_within(s)).collect();
        spans.sort_unstable_by_key(|span| *span.end());
        let mut free = 0;
        let apart = spans.into_iter().filter(|span| {
            let is_apart = *span.start() >= free;
            if is_apart {
                free = span.end().saturating_add(1);
            }
            is_apart
        });
        self.known.seconds().saturating_add(apart.count() as u64)
    }

    fn dead(&self, dead_ns: u64) -> u64 {
        dead_ns.div_ceil(self.second_ns).max(1)
    }

    /// Episodes, wherever in longer rows wake-ups were late: at most.
    pub(crate) fn episodes(&self, dead_ns: u64) -> u64 {
        let dead = self.dead(dead_ns);
        let (mut count, mut free) = (self.known.episodes(dead), 0_u64);
        for (span, late) in &self.rows {
            // As far apart as so many may be.
            let step = (length(span) / (*late).max(1)).max(dead);
            let places = length(span).div_ceil(step).min(*late);
            let gone = free.saturating_sub(*span.start()).div_ceil(step).min(places);
            if gone < places {
                count = count.saturating_add(places - gone);
                free = (places - 1).saturating_mul(step).saturating_add(*span.start());
                free = free.saturating_add(dead);
            }
        }
        count
    }

    /// Episodes at least: late wake-ups that are so far apart wherever in their rows they were.
    pub(crate) fn episodes_least(&self, dead_ns: u64) -> u64 {
        let dead = self.dead(dead_ns);
        let known = self.known.spans().iter().map(|span| (*span.end(), *span.start(), true));
        let rows = self.rows.iter().map(|(span, _)| (*span.end(), *span.start(), false));
        let mut spans: Vec<(u64, u64, bool)> = known.chain(rows).collect();
        // By their end: those that end first leave most room.
        spans.sort_unstable();
        let (mut count, mut free) = (0_u64, 0_u64);
        for (last, first, is_known) in spans {
            if is_known && last >= free {
                let begin = first.max(free);
                let more = (last - begin) / dead;
                count = count.saturating_add(more).saturating_add(1);
                free = begin.saturating_add(more.saturating_add(1).saturating_mul(dead));
            } else if !is_known && first >= free {
                count = count.saturating_add(1);
                free = last.saturating_add(dead);
            }
        }
        count
    }
}

fn length(span: &RangeInclusive<u64>) -> u64 {
    (span.end() - span.start()).saturating_add(1)
}

/// Adds what a thread shows to known spans, and to rows.
fn add(
    thread: &Thread,
    budget_ns: u64,
    second_ns: u64,
    known: &mut Vec<RangeInclusive<u64>>,
    rows: &mut Vec<(RangeInclusive<u64>, u64)>,
) {
    let covered = |sample: Sample| late_seconds(sample, budget_ns, second_ns);
    let listed = || thread.top.iter().filter(|sample| sample.latency_ns > budget_ns);
    if listed().count() as u64 == thread.totals.late_sampled {
        known.extend(listed().copied().map(covered));
        return;
    }
    for row in thread.seconds.iter().filter(|row| row.totals.late() > 0) {
        // What a wake-up that was seconds late covers is late; the largest is exact.
        let latency_ns = row.totals.wake.max().unwrap_or(0);
        let covered = covered(Sample { due_ns: row.max_at_ns, latency_ns });
        // A row of a staggered thread lies across two seconds, and is one.
        if length_ns(row) < second_ns.saturating_mul(3) / 2 {
            let first = row.from_ns / second_ns;
            known.extend([first..=first, covered]);
            continue;
        }
        let nearest = |ns: u64| ns.saturating_add(second_ns / 2) / second_ns;
        let (from, to) = (nearest(row.from_ns), nearest(row.to_ns));
        let span = from..=to.saturating_sub(1).max(from);
        let most = row.totals.late().max(length(&covered)).min(length(&span));
        rows.push((span, most));
    }
}

/// Seconds in which wake-ups were due that a sample was too late for.
fn late_seconds(sample: Sample, budget_ns: u64, second_ns: u64) -> RangeInclusive<u64> {
    let late_ns = sample.latency_ns.saturating_sub(budget_ns).saturating_sub(1);
    let last_ns = sample.due_ns.saturating_add(late_ns);
    sample.due_ns / second_ns..=last_ns / second_ns
}

/// The largest samples of all CPUs with the seconds that each made late, the largest first, and the
/// level down to which all are there and no tenth of the run of a CPU holds `gate` or more of them.
pub(crate) fn largest(run: &Run, gate: f64) -> (Vec<LateSample>, u64) {
    let (second_ns, period_ns) = (second_ns(run), run.options.period_ns.max(1));
    let of_thread = |thread: &Thread| {
        let has_all = thread.top.len() as u64 >= thread.totals.wake.count();
        let last = thread.top.last().map(|last| last.latency_ns);
        if has_all { 0 } else { last.or(thread.totals.wake.max()).unwrap_or(0) }
    };
    let mut complete_ns = run.threads.iter().map(of_thread).fold(0, u64::max);
    let mut samples: Vec<(&Thread, Sample)> = run
        .threads
        .iter()
        .flat_map(|thread| thread.top.iter().map(move |&sample| (thread, sample)))
        .filter(|(_, sample)| sample.latency_ns > complete_ns)
        .collect();
    samples.sort_unstable_by_key(|(_, sample)| std::cmp::Reverse(sample.latency_ns));
    let mut tenths: BTreeMap<(u32, u64), u64> = BTreeMap::new();
    let is_gated = |&(thread, sample): &(&Thread, Sample)| {
        let length_ns = thread.written_to_ns().max(1);
        let tenth = sample.due_ns.saturating_mul(PARTS as u64) / length_ns;
        let above = tenths.entry((thread.info.number, tenth)).or_default();
        // Those that were missed meanwhile are as late.
        *above = above.saturating_add(sample.latency_ns / period_ns).saturating_add(1);
        *above as f64 >= gate * thread.totals.accounted() as f64 / PARTS as f64
    };
    if let Some(at) = samples.iter().position(is_gated) {
        complete_ns = samples[at].1.latency_ns;
        samples.truncate(at);
    }
    let late = |(_, sample): (&Thread, Sample)| LateSample {
        latency_ns: sample.latency_ns,
        seconds: sample.due_ns / second_ns
            ..=sample.due_ns.saturating_add(sample.latency_ns) / second_ns,
    };
    (samples.into_iter().map(late).collect(), complete_ns)
}

/// Late wake-ups and all of them in a part of the time of a thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Part {
    pub(crate) late: f64,
    pub(crate) n: f64,
}

impl Part {
    pub(crate) fn share(self) -> f64 {
        if self.n > 0.0 { (self.late / self.n).min(1.0) } else { 0.0 }
    }
}

/// The rows of a thread that count, one after the other: those under load, or all where nothing
/// was. Phases without a load are looked at apart.
pub(crate) struct LateRows<'a> {
    rows: Vec<&'a Second>,
    /// Time of the rows, nanoseconds.
    pub(crate) length_ns: u64,
    pub(crate) late: u64,
    pub(crate) n: u64,
}

impl<'a> LateRows<'a> {
    pub(crate) fn of(run: &Run, thread: &'a Thread) -> Self {
        let loaded = phases(run, true);
        Self::within(thread, |row| loaded.is_empty() || is_within(row, &loaded))
    }

    /// Of the phases without a load, where others had one.
    pub(crate) fn while_idle(run: &Run, thread: &'a Thread) -> Self {
        let (loaded, idle) = (phases(run, true), phases(run, false));
        Self::within(thread, |row| !loaded.is_empty() && is_within(row, &idle))
    }

    fn within(thread: &'a Thread, counts: impl Fn(&Second) -> bool) -> Self {
        let rows: Vec<&Second> = thread.seconds.iter().filter(|row| counts(row)).collect();
        let sum = |of: &dyn Fn(&Second) -> u64| {
            rows.iter().fold(0_u64, |sum, row| sum.saturating_add(of(row)))
        };
        let (length_ns, late) = (sum(&length_ns), sum(&|row| row.totals.late()));
        let n = sum(&|row| row.totals.accounted());
        Self { rows, length_ns, late, n }
    }

    pub(crate) fn share(&self) -> f64 {
        self.late as f64 / self.n.max(1) as f64
    }

    /// Most blocks of which none is shorter than a usual row.
    pub(crate) fn blocks_max(&self) -> usize {
        let mut lengths: Vec<u64> = self.rows.iter().map(|row| length_ns(row)).collect();
        lengths.sort_unstable();
        let usual = lengths.get(lengths.len() * 9 / 10).copied().unwrap_or(0).max(1);
        // Due times are multiples of the period: rows of a second are a little longer or shorter.
        ((self.length_ns as f64 / usual as f64).round() as usize).min(self.rows.len())
    }

    /// So many equal parts of the time. `whole`: all that is late in a long row counts for each
    /// part that it lies in, as it may have been there.
    pub(crate) fn parts(&self, count: usize, whole: bool) -> Vec<Part> {
        let mut parts = vec![Part::default(); count];
        let width = (self.length_ns as f64 / count.max(1) as f64).max(1.0);
        let mut from = 0.0;
        for row in &self.rows {
            let length = length_ns(row) as f64;
            let to = from + length;
            let (late, n) = (row.totals.late() as f64, row.totals.accounted() as f64);
            let is_long = whole && length * 4.0 > width;
            let first = ((from / width) as usize).min(count.saturating_sub(1));
            for (at, part) in parts.iter_mut().enumerate().skip(first) {
                let (begin, end) = (at as f64 * width, (at + 1) as f64 * width);
                if begin >= to {
                    break;
                }
                let inside =
                    if length > 0.0 { (to.min(end) - from.max(begin)) / length } else { 1.0 };
                if inside > 0.0 {
                    part.n += n * inside;
                    part.late += if is_long { late.min(n * inside) } else { late * inside };
                }
            }
            from = to;
        }
        parts
    }

    /// The tenth with the largest share: that share, and where it is in the time of the run.
    pub(crate) fn worst_tenth(&self) -> Option<(f64, u64, u64)> {
        let tenths = self.parts(PARTS, true);
        let (at, worst) = tenths
            .iter()
            .enumerate()
            .filter(|(_, part)| part.n > 0.0)
            .max_by(|a, b| a.1.share().total_cmp(&b.1.share()))?;
        let width = self.length_ns / PARTS as u64;
        let place = |offset_ns: u64| {
            let mut left = offset_ns;
            for row in &self.rows {
                if left < length_ns(row) {
                    return row.from_ns.saturating_add(left);
                }
                left -= length_ns(row);
            }
            self.rows.last().map_or(0, |row| row.to_ns)
        };
        let at = at as u64;
        Some((worst.share(), place(at * width), place((at + 1) * width)))
    }
}

fn length_ns(row: &Second) -> u64 {
    row.to_ns.saturating_sub(row.from_ns)
}

fn phases(run: &Run, is_loaded: bool) -> Vec<&Phase> {
    run.options.phases.iter().filter(|phase| phase.loads.is_empty() != is_loaded).collect()
}

fn is_within(row: &Second, phases: &[&Phase]) -> bool {
    phases.iter().any(|phase| row.from_ns >= phase.from_ns && row.to_ns <= phase.to_ns)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rtproof_record::BudgetClass;
    use rtproof_stats::binomial::Random;

    use super::*;
    use crate::VerdictAnswer;
    use crate::testing::{run, run_of};

    const BUDGET: u64 = 100_000;

    #[test]
    fn late_seconds_are_of_all_cpus() {
        let late = [(0, 500, 150_000), (1, 900, 160_000), (1, 1100, 150_000), (0, 7000, 200_000)];
        let mut two = run(BudgetClass::Hundred, 2, 10, &late);
        let times = LateTimes::of(&two, BUDGET);
        assert_eq!((times.most(), times.least()), (3, 3));
        assert_eq!([1, 3, 8].map(|s| times.episodes(s * SECOND_NS)), [3, 2, 1]);
        // From the rows, where not all samples were kept.
        two.threads.iter_mut().for_each(|thread| thread.top.truncate(1));
        assert_eq!(LateTimes::of(&two, BUDGET).most(), 3);
    }

    #[test]
    fn an_outage_is_as_many_seconds_as_it_lasts() {
        let mut one = run(BudgetClass::Hundred, 1, 60, &[(0, 10_500, 5 * SECOND_NS)]);
        assert_eq!(LateTimes::of(&one, BUDGET).known.spans(), [10..=15]);
        one.threads[0].top.clear();
        assert_eq!(LateTimes::of(&one, BUDGET).known.spans(), [10..=15]);
    }

    /// Rows of a minute in place of seconds.
    fn by_minutes(run: &mut Run) {
        for thread in &mut run.threads {
            thread.top.clear();
            let minutes = thread.seconds.chunks(60).map(|seconds| {
                let mut row = seconds[0].clone();
                row.to_ns = seconds[seconds.len() - 1].to_ns;
                seconds[1..].iter().for_each(|more| {
                    if more.totals.wake.max() > row.totals.wake.max() {
                        row.max_at_ns = more.max_at_ns;
                    }
                    row.totals.merge(&more.totals);
                });
                row
            });
            thread.seconds = minutes.collect();
        }
    }

    #[test]
    fn rows_of_a_minute_bound_both_ways() {
        let late = [(0, 500, 150_000), (0, 30_500, 150_000), (1, 30_700, 150_000)];
        let mut two = run(BudgetClass::Hundred, 2, 180, &late);
        assert_eq!(LateTimes::of(&two, BUDGET).most(), 2);
        by_minutes(&mut two);
        let times = LateTimes::of(&two, BUDGET);
        assert_eq!((times.most(), times.least()), (3, 1));
        assert_eq!((times.episodes(10 * SECOND_NS), times.episodes_least(10 * SECOND_NS)), (3, 1));
        // Minutes next to each other may be late where they meet.
        let mut next =
            run(BudgetClass::Hundred, 1, 180, &[(0, 500, 150_000), (0, 60_500, 150_000)]);
        next.threads[0].top.clear();
        by_minutes(&mut next);
        let times = LateTimes::of(&next, BUDGET);
        assert_eq!((times.most(), times.episodes_least(10 * SECOND_NS)), (2, 1));
        let mut always = run_of(BudgetClass::Hundred, 1, 180, |_, _| 200_000);
        by_minutes(&mut always);
        let times = LateTimes::of(&always, BUDGET);
        assert_eq!((times.most(), times.least(), times.episodes(60 * SECOND_NS)), (180, 3, 3));
    }

    #[test]
    fn what_no_run_can_be_is_no_work() {
        let mut run = run(BudgetClass::Hundred, 1, 180, &[(0, 500, u64::MAX - 9)]);
        let times = LateTimes::of(&run, BUDGET);
        assert!(times.most() > u64::MAX / 2 / SECOND_NS && times.episodes(SECOND_NS) > 1 << 32);
        run.threads[0].top.clear();
        run.threads[0].seconds[9].to_ns = u64::MAX;
        run.threads[0].seconds[9].totals.late_missed = u64::MAX / 4;
        let times = LateTimes::of(&run, BUDGET);
        assert!(times.episodes(10) > 0 && times.episodes_least(10) > 0 && times.least() > 0);
    }

    #[test]
    fn parts_hold_all_and_tenths_are_found() {
        let run = run_of(BudgetClass::Hundred, 1, 100, |_, ms| {
            if (43_000..46_000).contains(&ms) { 200_000 } else { 5000 }
        });
        let rows = LateRows::of(&run, &run.threads[0]);
        assert_eq!((rows.late, rows.n, rows.length_ns), (3000, 100_000, 100 * SECOND_NS));
        for count in [1, 7, 10, 42, 100] {
            let parts = rows.parts(count, false);
            let (late, n) = parts.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.late, sum.1 + p.n));
            assert!((late - 3000.0).abs() < 1e-6 && (n - 1e5).abs() < 1e-6, "{count}");
        }
        let (share, from, to) = rows.worst_tenth().expect("a tenth");
        assert!((share - 0.3).abs() < 1e-9, "{share}");
        assert_eq!((from, to), (40 * SECOND_NS, 50 * SECOND_NS));
        assert_eq!(rows.blocks_max(), 100);
    }

    #[test]
    fn long_rows_hide_no_late_tenth() {
        let mut run = run_of(BudgetClass::Hundred, 1, 120, |_, ms| {
            if (43_000..46_000).contains(&ms) { 200_000 } else { 5000 }
        });
        let exact = LateRows::of(&run, &run.threads[0]).worst_tenth().expect("a tenth").0;
        by_minutes(&mut run);
        let rows = LateRows::of(&run, &run.threads[0]);
        assert!(rows.worst_tenth().expect("a tenth").0 >= exact);
        assert_eq!(rows.blocks_max(), 2);
    }

    /// What rows of a minute accept or refuse, their seconds do, too.
    #[test]
    fn merged_rows_make_no_verdict() {
        let mut random = Random::new(7);
        let mut seen = BTreeMap::new();
        for class in [BudgetClass::NinetyFive, BudgetClass::Hundred] {
            for _ in 0..100 {
                let (minutes, stretch) = (2 + random.below(150), 1 + random.below(200));
                let (rate, share) = ([0, 1, 30, 400][random.below(4) as usize], random.below(80));
                let mut late = vec![0; 60 * minutes as usize];
                let mut until = 0;
                for (second, late) in (0..).zip(&mut late) {
                    if until <= second && random.below(1000) < rate {
                        until = second + stretch;
                    }
                    if second < until {
                        *late = 1000.min(random.below(20 * share + 2));
                    }
                }
                let mut run = crate::testing::of_rows(class, &[late]);
                run.options.requirement.rate_per_1000h =
                    [125, 60_000, 360_000][random.below(3) as usize];
                let judge = |run: &Run| crate::verdict::judge(run, &[], &crate::Integrity::Sealed);
                let exact = judge(&run).answer;
                by_minutes(&mut run);
                let merged = judge(&run);
                if merged.answer != VerdictAnswer::NotProven {
                    assert_eq!(merged.answer, exact, "{class:?}: {merged:?}");
                }
                *seen.entry((merged.answer.text(), exact.text())).or_insert(0) += 1;
            }
        }
        assert!(seen.len() >= 4, "{seen:?}");
    }

    /// Of many CPUs an hour is read by minutes, which leave too few blocks for class 95.
    #[test]
    fn rows_of_a_minute_say_how_long_they_need() {
        let judged = |minutes: usize| {
            let mut run =
                crate::testing::of_rows(BudgetClass::NinetyFive, &[vec![0; 60 * minutes]]);
            by_minutes(&mut run);
            crate::verdict::judge(&run, &[], &crate::Integrity::Sealed)
        };
        let hour = judged(60);
        assert_eq!(hour.answer, VerdictAnswer::NotProven, "{hour:?}");
        let needed_ns = hour.basis.exposure_ns + hour.basis.further_ns.expect("a time");
        assert_eq!(needed_ns.div_ceil(60 * SECOND_NS), 70, "{hour:?}");
        assert_eq!(judged(69).answer, VerdictAnswer::Accepted);
        assert_eq!(judged(68).answer, VerdictAnswer::NotProven);
    }
}
