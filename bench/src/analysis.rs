//! What analysing costs: a week of rows. Nothing of the machine is measured, only arithmetic.

use std::io::Write;

use rtproof_stats::{
    Histogram, Layout, Moments, change,
    evidence::{self, LateSample, Rate},
    moving::{self, MovingRow, Spans},
};

use crate::numbers::spread;

const WEEK_S: usize = 604_800;
const SECOND_NS: u64 = 1_000_000_000;

/// Numbers from a seed: the same every time.
struct Random(u64);

impl Random {
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// Roughly normal: twelve units.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

pub(crate) fn run(out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(out, "Analysing, ms of CPU time: median (quartiles; range) of 5 rounds\n")?;
    writeln!(out, "| what | ms |\n|---|---|")?;
    let week = Week::new();
    let mut row = |what: &str, ms: Vec<f64>| -> anyhow::Result<()> {
        let text = spread(ms).map_or("-".into(), |spread| spread.text(2));
        Ok(writeln!(out, "| {what} | {text} |")?)
    };
    row("a week of rows, 604 800: all below", timed(5, || week.all()))?;
    row("- totals of all rows merged", timed(5, || week.totals()))?;
    row("- changes of the level", timed(5, || week.changes()))?;
    row("- levels that are shown, three rates", timed(5, || week.levels()))?;
    let rows = WeekRows::new();
    row("the same week: moving statistics, window 10 s", timed(5, || rows.moving(10)))?;
    row("- window 1 h", timed(5, || rows.moving(3600)))?;
    row("- window 1 d", timed(5, || rows.moving(86_400)))?;
    Ok(())
}

/// CPU time of this thread, milliseconds: what else runs on the machine is not in it.
fn cpu_ms() -> f64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

/// CPU time of each of so many calls, milliseconds.
fn timed<T>(rounds: usize, mut work: impl FnMut() -> T) -> Vec<f64> {
    (0..rounds)
        .map(|_| {
            let start = cpu_ms();
            std::hint::black_box(work());
            cpu_ms() - start
        })
        .collect()
}

/// A week of seconds: medians with 21 changes of level, largest values, totals.
struct Week {
    medians: Vec<f64>,
    largest: Vec<LateSample>,
    totals: Vec<Moments>,
}

impl Week {
    fn new() -> Self {
        let mut random = Random(0x7ee7);
        let mut state = 0.0;
        let medians = (0..WEEK_S).map(|s| {
            state = 0.3 * state + 0.01 * random.normal();
            f64::ln(12_000.0) + state + if s / 28_800 % 2 == 1 { 0.1 } else { 0.0 }
        });
        let medians: Vec<f64> = medians.collect();
        let late = |s: u64| LateSample {
            latency_ns: 20_000 + (4000.0 * random.exponential()) as u64,
            seconds: s..=s,
        };
        let mut largest: Vec<LateSample> = (0..WEEK_S as u64).map(late).collect();
        let totals = largest.iter().map(|late| {
            let mut moments = Moments::default();
            moments.push(late.latency_ns);
            moments.push(12_000);
            moments
        });
        let totals = totals.collect();
        largest.sort_unstable_by_key(|late| std::cmp::Reverse(late.latency_ns));
        Self { medians, largest, totals }
    }

    fn all(&self) -> impl Sized {
        (self.totals(), self.changes(), self.levels())
    }

    fn totals(&self) -> Moments {
        let mut sum = Moments::default();
        self.totals.iter().for_each(|totals| sum.merge(totals));
        sum
    }

    fn changes(&self) -> Vec<change::LevelStep> {
        change::steps(&self.medians, 0.004)
    }

    fn levels(&self) -> [Option<u64>; 3] {
        let time_ns = WEEK_S as u64 * SECOND_NS;
        [60.0, 3.0, 0.125].map(|per_hour| {
            let rate = Rate { per_hour, confidence: 0.95 };
            evidence::level(&self.largest, 0, SECOND_NS, time_ns, rate)
        })
    }
}

/// Rows as a record has them: sums and cells of a thousand wake-ups each, log-normal, whose median
/// goes up and down within a day. A thousand different ones, over and over.
struct WeekRows {
    seconds: Vec<(Moments, Vec<(u16, u64)>)>,
}

impl WeekRows {
    fn new() -> Self {
        let mut random = Random(0x5ec0);
        let second = |at: usize| {
            let (mut wake, mut cells) = (Moments::default(), Histogram::new(Layout::COARSE));
            let median = 12_000.0 * (0.2 * (at as f64 * 0.00628).sin()).exp();
            for _ in 0..1000 {
                let latency_ns = (median * (0.3 * random.normal()).exp()) as u64;
                wake.push(latency_ns);
                cells.record(latency_ns);
            }
            (wake, cells.buckets().map(|(cell, n)| (cell as u16, n)).collect())
        };
        Self { seconds: (0..1000).map(second).collect() }
    }

    fn moving(&self, window_s: u64) -> f64 {
        let row = |s: usize| {
            let (wake, cells) = &self.seconds[s * 7 % 1000];
            let from_ns = s as u64 * SECOND_NS;
            MovingRow { thread: 0, from_ns, to_ns: from_ns + SECOND_NS, wake, missed: 0, cells }
        };
        let mut rows: Vec<MovingRow<'_>> = (0..WEEK_S).map(row).collect();
        let window_ns = window_s * SECOND_NS;
        let spans = Spans { step_ns: SECOND_NS, window_ns, half_life_ns: window_ns / 2 };
        let mut last = 0.0;
        moving::each(&mut rows, 1, spans, |step| {
            last = step.windowed.map_or(0.0, |of| of.mean_ns);
        });
        last
    }
}
