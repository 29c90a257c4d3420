//! What analysing costs: a week of rows, the fit of a tail; and what the intervals of a tail cover,
//! in more experiments than a test has time for. Nothing of the machine is measured, only
//! arithmetic.

use std::{
    io::Write,
    process::{Command, Stdio},
};

use rtproof_stats::{
    Histogram, Layout, Moments, change,
    gpd::{self, Gpd},
    moments,
    moving::{self, MovingRow, Spans},
    tail::{MeasuredPeaks, Model, Peak},
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

pub(crate) fn run(out: &mut impl Write, experiments: u32) -> anyhow::Result<()> {
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
    row("- what a mean is worth (Geyer)", timed(5, || week.worth()))?;
    row("- tail: groups, fit, nine rules, three levels", timed(5, || week.tail()))?;
    let rows = WeekRows::new();
    row("the same week: moving statistics, window 10 s", timed(5, || rows.moving(10)))?;
    row("- window 1 h", timed(5, || rows.moving(3600)))?;
    row("- window 1 d", timed(5, || rows.moving(86_400)))?;
    let mut random = Random(0x5eed);
    let samples: Vec<Vec<f64>> = (0..20).map(|_| excesses(&mut random, 200)).collect();
    let mut next = samples.iter().cycle();
    row("GPD of 200 excesses: fit", timed(20, || next.next().and_then(|s| gpd::fit(s))))?;
    let mut next = samples.iter().cycle();
    let whole = || {
        let sample = next.next()?;
        let fit = gpd::fit(sample)?;
        Some((fit.covariance(sample), fit.level_interval(sample, 2000.0, 0.99, 1.0)))
    };
    row("GPD of 200 excesses: fit, errors, interval of a level", timed(20, whole))?;
    let what = "the same fit by scipy.stats.genpareto, without errors and interval";
    match scipy() {
        Some(ms) => row(what, ms)?,
        None => writeln!(out, "| {what} | skipped: no python3 with scipy here |")?,
    }
    coverage(out, experiments)
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
    peaks: Vec<Peak>,
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
        let peaks = (0..WEEK_S as u64).map(|s| Peak {
            at_ns: s * SECOND_NS + (random.unit() * 1e9) as u64,
            latency_ns: 20_000 + (4000.0 * random.exponential()) as u64,
        });
        let peaks: Vec<Peak> = peaks.collect();
        let totals = peaks.iter().map(|peak| {
            let mut moments = Moments::default();
            moments.push(peak.latency_ns);
            moments.push(12_000);
            moments
        });
        let totals = totals.collect();
        Self { medians, peaks, totals }
    }

    fn all(&self) -> impl Sized {
        (self.totals(), self.changes(), self.worth(), self.tail())
    }

    fn totals(&self) -> Moments {
        let mut sum = Moments::default();
        self.totals.iter().for_each(|totals| sum.merge(totals));
        sum
    }

    fn changes(&self) -> Vec<change::LevelStep> {
        change::steps(&self.medians, 0.004)
    }

    fn worth(&self) -> Option<f64> {
        moments::n_eff(&self.medians)
    }

    fn tail(&self) -> impl Sized {
        let mut highest: Vec<u64> = self.peaks.iter().map(|peak| peak.latency_ns).collect();
        highest.sort_unstable();
        let complete_ns = highest[highest.len() - highest.len() / 20];
        let model = Model::of(&MeasuredPeaks {
            peaks: &self.peaks,
            complete_ns,
            exposure_ns: WEEK_S as u64 * SECOND_NS,
            sampling_ns: 1_000_000,
            longest_period_ns: None,
            seed: 1,
        });
        [1, 24, 1680].map(|hours| model.level(hours * 3600 * SECOND_NS))
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

/// The distribution of the experiments.
const PLANTED: Gpd = Gpd { sigma: 1.0, xi: 0.05 };

fn excesses(random: &mut Random, n: usize) -> Vec<f64> {
    (0..n).map(|_| PLANTED.exceeded_once_in(random.exponential().exp())).collect()
}

/// Milliseconds of CPU time of each of twenty fits by scipy, where there is one.
fn scipy() -> Option<Vec<f64>> {
    let program = "import time, numpy as np\nfrom scipy.stats import genpareto as g\n\
                   g.fit(g.rvs(0.05, size=200, random_state=0), floc=0)\n\
                   for i in range(20):\n\
                   \x20 x = g.rvs(0.05, size=200, random_state=i + 1); t = time.process_time()\n\
                   \x20 g.fit(x, floc=0); print((time.process_time() - t) * 1000)";
    let ran = Command::new("python3").args(["-c", program]).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8(ran.stdout).ok()?;
    let ms: Vec<f64> = text.lines().filter_map(|line| line.trim().parse().ok()).collect();
    (!ms.is_empty()).then_some(ms)
}

/// How often the intervals hold the truth.
fn coverage(out: &mut impl Write, experiments: u32) -> anyhow::Result<()> {
    writeln!(
        out,
        "\nProfile-likelihood interval of the level exceeded once in ten times the exposure, xi = \
         0.05, {experiments} experiments each\n"
    )?;
    writeln!(out, "| excesses | holds, of 95 % | truth above | holds, of 99 % | truth above |")?;
    writeln!(out, "|---|---|---|---|---|")?;
    for k in [100, 200, 500] {
        let mut random = Random(0xc0ffee + k as u64);
        let m = 10.0 * k as f64;
        let truth = PLANTED.exceeded_once_in(m);
        let mut counts = [[0_u32; 2]; 2];
        for _ in 0..experiments {
            let sample = excesses(&mut random, k);
            let Some(fit) = gpd::fit(&sample) else { continue };
            for (counts, confidence) in counts.iter_mut().zip([0.95, 0.99]) {
                let (low, high) = fit.level_interval(&sample, m, confidence, 1.0);
                let above = high.is_some_and(|high| truth > high);
                let below = low.is_some_and(|low| truth < low);
                counts[0] += u32::from(!above && !below);
                counts[1] += u32::from(above);
            }
        }
        let percent = |n: u32| f64::from(n) * 100.0 / f64::from(experiments.max(1));
        let [[held95, above95], [held99, above99]] = counts;
        writeln!(
            out,
            "| {k} | {:.2} % | {:.2} % | {:.2} % | {:.2} % |",
            percent(held95),
            percent(above95),
            percent(held99),
            percent(above99)
        )?;
    }
    Ok(writeln!(out)?)
}
