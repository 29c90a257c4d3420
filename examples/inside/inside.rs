//! Statistics inside the loop of an application, by the crate `rtproof-stats`: all is allocated
//! before the loop, and each of its calls takes a bounded time.
//!
//! ```text
//! cargo run --release -p rtproof-stats --example inside -- 5000
//! ```
//!
//! The loop uses what it computes: it counts cycles later than its own p99 so far, which no tool
//! beside it can do for it.

#![expect(
    clippy::disallowed_methods,
    reason = "an application: it has a clock, arguments and an output"
)]

use std::{
    io::Write,
    time::{Duration, Instant},
};

use rtproof_stats::{
    Histogram, Layout, Moments,
    moments::Shape,
    quantile::{P2, Q},
};

/// Cycles of a window.
const WINDOW: u64 = 1000;
/// Windows that are kept: the last `KEPT * WINDOW` cycles.
const KEPT: usize = 10;

/// What a loop computes of its own latencies, in nanoseconds.
pub(crate) struct Statistics {
    /// Exact sums up to the fourth power: mean, sd, skewness, kurtosis.
    pub(crate) all: Moments,
    /// 36 KiB of counts: quantiles at most 0.8 % above the sample, never below it.
    pub(crate) histogram: Histogram,
    /// Five numbers each: smaller than a histogram, but without a bound of their error.
    pub(crate) p2: [P2; 3],
    windows: [Moments; KEPT],
    current: usize,
}

impl Statistics {
    /// Allocates all that there will be.
    pub(crate) fn new() -> Self {
        Self {
            all: Moments::default(),
            histogram: Histogram::new(Layout::FINE),
            p2: [0.5, 0.95, 0.99].map(P2::new),
            windows: std::array::from_fn(|_| Moments::default()),
            current: 0,
        }
    }

    /// Takes the latency of a cycle.
    pub(crate) fn record(&mut self, latency_ns: u64) {
        self.all.push(latency_ns);
        self.histogram.record(latency_ns);
        for p2 in &mut self.p2 {
            p2.push(latency_ns as f64);
        }
        if self.windows[self.current].count() == WINDOW {
            self.current = (self.current + 1) % KEPT;
            self.windows[self.current].clear();
        }
        self.windows[self.current].push(latency_ns);
    }

    /// Of the last cycles, exact: `KEPT - 1` whole windows and the one that fills.
    pub(crate) fn recent(&self) -> Moments {
        self.windows.iter().fold(Moments::default(), |mut sum, window| {
            sum.merge(window);
            sum
        })
    }

    /// A quantile of all cycles; `None`: too few for it.
    pub(crate) fn quantile(&self, q: Q) -> Option<u64> {
        let n = self.all.count();
        let value = self.histogram.value_at_rank(q.rank(n)).filter(|_| q.is_carried_by(n))?;
        // The edge of a bucket may lie beyond the largest sample.
        self.all.max().map(|max| value.min(max))
    }
}

/// A periodic loop. Returns how many cycles were later than the p99 of those before them.
pub(crate) fn cycles(count: u64, period: Duration, statistics: &mut Statistics) -> u64 {
    let mut beyond = 0;
    let mut p99_ns = u64::MAX;
    let mut due = Instant::now() + period;
    for cycle in 1..=count {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let late = Instant::now().saturating_duration_since(due);
        let latency_ns = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
        beyond += u64::from(latency_ns > p99_ns);
        statistics.record(latency_ns);
        if cycle % WINDOW == 0 {
            // 4608 counts: some microseconds, so not in each cycle.
            p99_ns = statistics.quantile(Q::P99).unwrap_or(u64::MAX);
        }
        // The work of the cycle.
        due += period;
    }
    beyond
}

/// Writes the table, after the loop.
///
/// # Errors
/// The output is gone.
pub(crate) fn table(
    statistics: &Statistics,
    beyond: u64,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let unknown = || "-".to_owned();
    let real = |value: Option<f64>| value.map_or_else(unknown, |value| format!("{value:.3}"));
    let whole = |value: Option<u64>| value.map_or_else(unknown, |value| value.to_string());
    let (all, recent) = (&statistics.all, statistics.recent());
    let shape = Shape::of(all);
    writeln!(out, "cycles {}, {beyond} beyond the p99 before them; ns", all.count())?;
    writeln!(out, "min {} max {}", whole(all.min()), whole(all.max()))?;
    writeln!(out, "mean {} sd {}", real(all.mean()), real(all.sd()))?;
    let (skewness, kurtosis) = (shape.map(|it| it.g1), shape.map(|it| it.kurtosis));
    writeln!(out, "skewness {} kurtosis {}", real(skewness), real(kurtosis))?;
    for (q, p2) in [Q::P50, Q::P95, Q::P99].into_iter().zip(&statistics.p2) {
        let estimate = p2.estimate().map(|it| it.value);
        let value = whole(statistics.quantile(q));
        writeln!(out, "{} {value}, by P2 {}", q.name(), real(estimate))?;
    }
    let n = recent.count();
    writeln!(out, "last {n}: mean {} sd {}", real(recent.mean()), real(recent.sd()))
}

fn main() -> std::io::Result<()> {
    let count = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(5000);
    let mut statistics = Statistics::new();
    let beyond = cycles(count, Duration::from_millis(1), &mut statistics);
    table(&statistics, beyond, &mut std::io::stdout().lock())
}
