//! A run over time: as much of it as a picture of several runs can show. It is made while the
//! record is open, so that no comparison holds every second.

use std::collections::BTreeMap;

use rtproof_model::Structure;
use rtproof_record::{
    Run,
    run::{HostSecond, Phase, Second, Thread},
};
use rtproof_stats::Layout;

use crate::structure;

/// Columns of a run, at most: more cannot be seen apart.
const COLUMNS_MAX: u64 = 300;

const SECOND_NS: u64 = 1_000_000_000;

/// Smallest, mean and largest value of each column; `None`: no reading in it.
pub type Ranges = Vec<Option<[f64; 3]>>;

/// A run over time, in columns of equal width. A column without a value has `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverTime {
    /// End of what was measured, nanoseconds after the first wake-up.
    pub end_ns: u64,
    /// Width of a column, nanoseconds.
    pub width_ns: u64,
    /// Measured CPUs, in the order of the threads.
    pub cpus: Vec<CpuOverTime>,
    pub phases: Vec<Phase>,
    /// Changes of its threads from outside: when, and what.
    pub marks: Vec<(u64, String)>,
    /// Frequency of the measured CPUs, Hz; empty: never read.
    pub frequency_hz: Ranges,
    /// Hottest thermal zone, thousandths of a degree; empty: never read.
    pub temperature_mc: Ranges,
    /// Interrupts of all CPUs per second; empty: never read.
    pub interrupts: Ranges,
    /// Changes of the level, one finding for each CPU that has any.
    pub levels: Vec<Structure>,
    /// Whether all CPUs have seconds enough to look for changes of the level.
    pub has_seconds: bool,
}

/// One CPU over time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuOverTime {
    pub cpu: u32,
    /// Median of the wake-ups measured, nanoseconds: upper edge of a cell 3 % wide.
    pub median_ns: Vec<Option<u64>>,
    /// Latest wake-up measured, exact, nanoseconds.
    pub max_ns: Vec<Option<u64>>,
}

impl OverTime {
    /// Of a run that rtproof measured; `None`: no second is in its record.
    pub fn of(run: &Run, found: Option<&[Structure]>) -> Option<Self> {
        let end_ns = run.threads.iter().map(Thread::written_to_ns).max().filter(|&ns| ns > 0)?;
        // Of a long run many seconds are one: a column holds whole ones, or there would be gaps.
        let rows = run.threads.iter().map(|thread| thread.seconds.len()).max()? as u64;
        let usual_ns = whole_seconds((end_ns / rows.max(1)).saturating_sub(SECOND_NS / 10));
        let width_ns = whole_seconds(end_ns.div_ceil(COLUMNS_MAX)).div_ceil(usual_ns) * usual_ns;
        let columns = Columns { width_ns, len: end_ns.div_ceil(width_ns) as usize };
        let measured: Vec<u32> = run.threads.iter().map(|thread| thread.info.cpu).collect();
        let host = |value: &dyn Fn(&HostSecond) -> Option<[f64; 3]>| columns.ranges(run, value);
        let levels = match found {
            Some(found) => found.to_vec(),
            // A record from before spikes were kept has levels all the same.
            None => structure::of_run(run),
        };
        Some(Self {
            end_ns,
            width_ns,
            cpus: run.threads.iter().map(|thread| columns.cpu(thread)).collect(),
            phases: run.options.phases.clone(),
            marks: marks(run),
            frequency_hz: host(&|row| {
                let own = row.cpus.iter().filter(|own| measured.contains(&own.cpu));
                range(own.filter_map(|own| own.freq_hz).map(|hz| hz as f64))
            }),
            temperature_mc: host(&|row| range(row.temp_max_mc.map(|mc| mc as f64).into_iter())),
            interrupts: host(&|row| range(row.interrupts.map(|n| n as f64).into_iter())),
            levels: levels.into_iter().filter(|found| found.kind == "level").collect(),
            has_seconds: run.threads.iter().all(structure::has_level),
        })
    }

    /// Start of a column, nanoseconds after the first wake-up.
    pub fn start_ns(&self, column: usize) -> u64 {
        column as u64 * self.width_ns
    }
}

fn whole_seconds(ns: u64) -> u64 {
    ns.div_ceil(SECOND_NS).max(1) * SECOND_NS
}

#[derive(Clone, Copy)]
struct Columns {
    width_ns: u64,
    len: usize,
}

impl Columns {
    fn index(self, at_ns: u64) -> usize {
        ((at_ns / self.width_ns) as usize).min(self.len - 1)
    }

    fn cpu(self, thread: &Thread) -> CpuOverTime {
        let mut of = CpuOverTime {
            cpu: thread.info.cpu,
            median_ns: vec![None; self.len],
            max_ns: vec![None; self.len],
        };
        let mut cells: BTreeMap<u16, u64> = BTreeMap::new();
        // Seconds are in order of time.
        let mut rest = thread.seconds.as_slice();
        while let Some(first) = rest.first() {
            let column = self.index(first.from_ns);
            let same = rest.iter().take_while(|row| self.index(row.from_ns) == column).count();
            let (now, later) = rest.split_at(same);
            cells.clear();
            for &(cell, n) in now.iter().flat_map(|row: &Second| &row.wake) {
                *cells.entry(cell).or_insert(0) += n;
            }
            of.median_ns[column] = median(&cells);
            of.max_ns[column] = now.iter().filter_map(|row| row.totals.wake.max()).max();
            rest = later;
        }
        of
    }

    fn ranges(self, run: &Run, value: &dyn Fn(&HostSecond) -> Option<[f64; 3]>) -> Ranges {
        let mut sums: Vec<Option<(f64, [f64; 3])>> = vec![None; self.len];
        for row in &run.host {
            let Some([low, mean, high]) = value(row) else { continue };
            // A reading is of the second before it.
            let sum = &mut sums[self.index(row.at_ns.saturating_sub(SECOND_NS / 2))];
            let (n, all) = sum.unwrap_or((0.0, [f64::INFINITY, 0.0, f64::NEG_INFINITY]));
            *sum = Some((n + 1.0, [all[0].min(low), all[1] + mean, all[2].max(high)]));
        }
        if sums.iter().all(Option::is_none) {
            return Vec::new();
        }
        let mean = |(n, [low, sum, high]): (f64, [f64; 3])| [low, sum / n, high];
        sums.into_iter().map(|sum| sum.map(mean)).collect()
    }
}

fn median(cells: &BTreeMap<u16, u64>) -> Option<u64> {
    let rank = cells.values().sum::<u64>().div_ceil(2);
    let mut below = 0;
    let cell = cells.iter().find(|&(_, &n)| {
        below += n;
        n > 0 && below >= rank
    })?;
    let layout = Layout::COARSE;
    Some(layout.upper(usize::from(*cell.0).min(layout.len() - 1)))
}

fn range(values: impl Iterator<Item = f64>) -> Option<[f64; 3]> {
    let values: Vec<f64> = values.collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (!values.is_empty()).then_some([low, mean, high])
}

fn marks(run: &Run) -> Vec<(u64, String)> {
    let of = |mark: &rtproof_record::run::Mark| {
        let thread = run.threads.iter().find(|thread| thread.info.number == mark.thread);
        let cpu = thread.map_or_else(String::new, |thread| format!("CPU {}: ", thread.info.cpu));
        (mark.at_ns, format!("{cpu}{} → {}", mark.before, mark.after))
    };
    run.surroundings.marks.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use rtproof_record::run::HostCpuSecond;

    use super::*;
    use crate::testing::slower_from as run;

    fn host(seconds: u64) -> Vec<HostSecond> {
        let cpu = |cpu, freq_hz| HostCpuSecond { cpu, freq_hz, ..HostCpuSecond::default() };
        (0..seconds)
            .map(|s| HostSecond {
                at_ns: (s + 1) * SECOND_NS,
                interrupts: Some(100 + s),
                cpus: vec![cpu(0, Some(2_000_000_000)), cpu(7, Some(9_000_000_000))],
                ..HostSecond::default()
            })
            .collect()
    }

    #[test]
    fn columns_hold_all_of_a_run_and_levels_are_found() {
        let mut run = run(400, 250);
        run.host = host(400);
        let over = OverTime::of(&run, None).expect("seconds");
        assert_eq!((over.width_ns, over.cpus.len()), (2 * SECOND_NS, 2));
        let one = &over.cpus[1];
        assert_eq!((one.median_ns.len(), one.max_ns.len()), (200, 200));
        assert!(one.median_ns[124].is_some_and(|ns| (5000..5300).contains(&ns)), "{one:?}");
        assert!(one.median_ns[125].is_some_and(|ns| (8900..9400).contains(&ns)), "{one:?}");
        assert_eq!(one.max_ns[125], Some(9049));
        // CPU 7 was not measured; there is no thermal zone.
        assert_eq!(over.frequency_hz[3], Some([2e9; 3]));
        assert_eq!(over.interrupts[0], Some([100.0, 100.5, 101.0]));
        assert!(over.temperature_mc.is_empty());
        assert_eq!(over.levels.len(), 1);
    }

    #[test]
    fn gaps_stay_gaps() {
        let mut run = run(60, 100);
        run.threads[0].seconds.drain(20..30);
        let over = OverTime::of(&run, Some(&[])).expect("seconds");
        assert!(over.cpus[0].max_ns[20..30].iter().all(Option::is_none));
        assert!(over.cpus[0].max_ns[30].is_some() && over.cpus[1].max_ns[20].is_some());
    }
}
