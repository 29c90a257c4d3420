//! Pictures of the distribution of latency: histogram, percentiles, missed wake-ups.

use maud::{Markup, html};

use rtproof_judge::{Report, report::Measured, units};
use rtproof_record::Run;
use rtproof_stats::{Histogram, Layout, quantile::Quantile};

use super::bins::{BinColumn, LatencyBins, TimeBins};
use super::chart::{self, About, AxisMark, AxisTick, Frame, Path, Scale, colours, px};
use super::time::over_time;

// The latency histogram: one step line per CPU, counts and latencies logarithmic, the maximum of
// each CPU named. The picture that OSADL made the field's own.

/// CPUs drawn, at most: those with the largest maxima.
pub(crate) const DRAWN_MAX: usize = 64;

/// Maxima named in the plot, at most.
const NAMED_MAX: usize = 8;

struct Line {
    cpu: u32,
    max_ns: u64,
    colour: Option<usize>,
    wake: Vec<u64>,
    deadline: Option<Vec<u64>>,
}

/// Bins for the histogram of a run; `None` when nothing was measured.
pub(crate) fn bins(run: &Run) -> Option<LatencyBins> {
    let histograms = run.threads.iter().flat_map(|thread| [&thread.wake, &thread.missed]);
    LatencyBins::over(histograms, run.threads.len() > 12)
}

/// Bins of the same on a linear axis, as OSADL draws it, as far as useful: the budget and what
/// is usual are in it. `None` when nothing was measured.
pub(crate) fn linear_bins(run: &Run) -> Option<(LatencyBins, u64)> {
    let all = run.threads.iter().map(|thread| &thread.wake).filter(|wake| !wake.is_empty());
    let largest = run.threads.iter().filter_map(|thread| thread.totals.wake.max()).max()?;
    let usual = all.map(usual_ns).max()?.saturating_mul(2);
    let budget = run.options.requirement.budget_ns.unwrap_or(0);
    let budget = if budget / 20 > largest { 0 } else { budget };
    let reach_ns = usual.max(budget.saturating_mul(4)).min(largest.max(budget / 2 * 3));
    Some(LatencyBins::linear(reach_ns.max(10_000)))
}

/// What 99 of 100 samples are below, about.
fn usual_ns(histogram: &Histogram) -> u64 {
    let mut left = histogram.total() / 100;
    let buckets: Vec<_> = histogram.buckets().collect();
    for (bucket, n) in buckets.into_iter().rev() {
        match left.checked_sub(n) {
            Some(rest) => left = rest,
            None => return Layout::FINE.upper(bucket),
        }
    }
    0
}

/// Wake-ups that are later than the last bin.
pub(crate) fn beyond(run: &Run, bins: &LatencyBins) -> u64 {
    let of = |thread: &rtproof_record::run::Thread| {
        thread.wake.total() - bins.counts(&thread.wake).iter().sum::<u64>()
    };
    run.threads.iter().map(of).sum()
}

/// Draws the histogram of a run, latencies logarithmic.
pub(crate) fn draw_histogram(
    run: &Run,
    all: &Measured,
    bins: &LatencyBins,
    text: (&str, &str),
) -> Markup {
    let about = ("chart-histogram", text.0, text.1);
    draw_on(run, all, bins, latency_axis(run, bins), about)
}

/// The same with latencies linear.
pub(crate) fn draw_linear(
    run: &Run,
    all: &Measured,
    bins: &LatencyBins,
    text: (&str, &str),
) -> Markup {
    let x = Scale::from_zero(bins.range(bins.len() - 1).1);
    draw_on(run, all, bins, x, ("chart-histogram-linear", text.0, text.1))
}

fn draw_on(
    run: &Run,
    all: &Measured,
    bins: &LatencyBins,
    x: Scale,
    (id, title, text): (&str, &str, &str),
) -> Markup {
    let lines = lines(run, bins);
    let most = lines.iter().flat_map(|l| l.wake.iter().chain(l.deadline.iter().flatten())).max();
    let most = most.copied().unwrap_or(1);
    let y = Scale::Log { low: 0.7, high: (most as f64 * 1.6).max(10.0) };
    let frame = Frame::wide(420.0, 30.0, x, y);
    let about = About { id, title, text, series: lines.len(), units: ("ns", "count") };
    let ticks = match x {
        Scale::Log { .. } => x.latency_ticks(13.0),
        Scale::Linear { .. } => x.latency_steps_of(12.0),
    };
    let marks = lines.iter().filter_map(|line| {
        let colour = line.colour?;
        let out = if frame.x.holds(line.max_ns as f64) { "" } else { " →" };
        let text = format!("CPU {}: {}{out}", line.cpu, units::ns(line.max_ns));
        Some(AxisMark { value: line.max_ns as f64, text, class: format!("s{colour}") })
    });
    let alone = lines.len() == 1;
    let body = html! {
        (frame.y_axis(&frame.y.count_ticks(8.0), "wake-ups per bin"))
        (frame.x_axis(&ticks, "latency"))
        // Grey lines first: the coloured ones lie on top.
        g data-edges=(bins.edges_text()) {
            @for line in lines.iter().filter(|line| line.colour.is_none()) {
                (draw_line(&frame, bins, line, alone))
            }
            @for line in lines.iter().rev().filter(|line| line.colour.is_some()) {
                (draw_line(&frame, bins, line, alone))
            }
        }
        (frame.budget_upright(run.options.requirement.budget_ns))
        (chart::draw_levels(&frame, all))
        (chart::marks(&frame, marks.take(NAMED_MAX).collect()))
    };
    frame.root(about, &body)
}

fn latency_axis(run: &Run, bins: &LatencyBins) -> Scale {
    let (mut low, mut high) = (bins.range(0).0, bins.range(bins.len() - 1).1);
    let exact = run.threads.iter().filter_map(|thread| thread.totals.wake.max()).max().unwrap_or(0);
    let budget = run.options.requirement.budget_ns.map_or(high, |ns| ns as f64);
    high = high.max(exact as f64).max(budget);
    low = low.min(budget);
    // Some air, so that neither a peak nor the budget lies on the edge.
    let air = (high / low).powf(0.02).max(1.05);
    Scale::Log { low: low / air, high: high * air }
}

fn lines(run: &Run, bins: &LatencyBins) -> Vec<Line> {
    let mut threads: Vec<_> =
        run.threads.iter().filter(|thread| thread.totals.accounted() > 0).collect();
    if threads.len() > DRAWN_MAX {
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.totals.wake.max()));
        threads.truncate(DRAWN_MAX);
        threads.sort_by_key(|thread| thread.info.cpu);
    }
    let maxima: Vec<u64> =
        threads.iter().map(|thread| thread.totals.wake.max().unwrap_or(0)).collect();
    let drawn = threads.iter().zip(&maxima).zip(colours(&maxima));
    drawn
        .map(|((thread, &max_ns), colour)| {
            let wake = bins.counts(&thread.wake);
            Line {
                cpu: thread.info.cpu,
                max_ns,
                colour,
                deadline: deadline(&wake, bins, &thread.missed),
                wake,
            }
        })
        .collect()
}

/// Wake-up view plus the missed; `None` where nothing was missed.
fn deadline(wake: &[u64], bins: &LatencyBins, missed: &Histogram) -> Option<Vec<u64>> {
    let missed_counts = (!missed.is_empty()).then(|| bins.counts(missed))?;
    Some(wake.iter().zip(missed_counts).map(|(wake, missed)| wake + missed).collect())
}

fn draw_line(frame: &Frame, bins: &LatencyBins, line: &Line, alone: bool) -> Markup {
    let class = line.colour.map_or("grey".into(), |colour| format!("s{colour}"));
    let solid = steps(frame, bins, &line.wake);
    html! {
        g class={ "series " (class) } data-cpu=(line.cpu) data-n=(counts_text(&line.wake)) {
            title { "CPU " (line.cpu) ", largest " (units::ns(line.max_ns)) }
            @if alone { path.area d=(solid) {} }
            path.line d=(solid) {}
            @if let Some(deadline) = &line.deadline {
                path.line.dashed d=(differing_steps(frame, bins, &line.wake, deadline)) {}
            }
        }
    }
}

/// Bins that are not empty, for the read-out of a page: `12:3 13:1`.
fn counts_text(counts: &[u64]) -> String {
    let filled = counts.iter().enumerate().filter(|(_, n)| **n > 0);
    filled.map(|(bin, n)| format!("{bin}:{n}")).collect::<Vec<_>>().join(" ")
}

/// A step line down to the axis wherever a bin is empty.
fn steps(frame: &Frame, bins: &LatencyBins, counts: &[u64]) -> String {
    let mut path = Path::default();
    let mut open = false;
    for (bin, &n) in counts.iter().enumerate() {
        let (from, to) = bins.range(bin);
        if n == 0 {
            if open {
                path.down(frame.bottom);
            }
            open = false;
            continue;
        }
        if !open {
            path.to(frame.px_x(from), frame.bottom);
        }
        path.down(frame.px_y(n as f64)).across(frame.px_x(to));
        open = true;
    }
    if open {
        path.down(frame.bottom);
    }
    path.finish()
}

/// The steps of `counts` in the bins where they differ from `base`.
fn differing_steps(frame: &Frame, bins: &LatencyBins, base: &[u64], counts: &[u64]) -> String {
    let mut path = Path::default();
    let mut open = false;
    for (bin, (&was, &is)) in base.iter().zip(counts).enumerate() {
        let (from, to) = bins.range(bin);
        if is != was {
            let y = frame.px_y(is as f64);
            if open {
                path.down(y);
            } else {
                let before = if was == 0 { frame.bottom } else { frame.px_y(was as f64) };
                path.to(frame.px_x(from), before).down(y);
            }
            path.across(frame.px_x(to));
        } else if open {
            path.down(if was == 0 { frame.bottom } else { frame.px_y(was as f64) });
        }
        open = is != was;
    }
    if open {
        path.down(frame.bottom);
    }
    path.finish()
}

// Missed wake-ups over time: bars, where there were any.

pub(crate) fn draw_missed(
    run: &Run,
    columns: &[BinColumn],
    time: TimeBins,
    text: (&str, &str),
) -> Markup {
    let most = columns.iter().map(|column| column.missed).max().unwrap_or(0);
    let y = Scale::from_zero(most as f64 * 1.08);
    let frame = Frame::wide(220.0, 36.0, over_time(time), y);
    let about = About {
        id: "chart-missed",
        title: text.0,
        text: text.1,
        series: 1,
        units: ("time", "count"),
    };
    let width = ((frame.right - frame.left) / time.len as f64 - 1.0).max(1.5);
    let mut ticks = frame.y.round_ticks();
    ticks.retain(|tick| tick.value.fract().abs() < 1e-9);
    let body = html! {
        (frame.y_axis(&ticks, "missed"))
        g.series.bars data-cpu="all" {
            @for (i, column) in columns.iter().enumerate().filter(|(_, column)| column.missed > 0) {
                @let y = frame.px_y(column.missed as f64);
                rect x=(px(frame.px_x(time.start_ns(i) as f64))) y=(px(y)) width=(px(width))
                    height=(px(frame.bottom - y)) {
                    title { (units::grouped(column.missed)) " missed from "
                        (units::duration(time.start_ns(i))) }
                }
            }
        }
        (frame.x_axis(&frame.x.time_ticks(10), "time since the first wake-up"))
        (chart::phases(&frame, &run.options.phases))
    };
    frame.root(about, &body)
}

// The percentile plot: latency over 1/(1 - p), so that each nine has the same width. The tail,
// which the histogram shows as a few single counts, is here as wide as the bulk.

/// Draws the plot of a run; `None` when nothing was measured.
pub(crate) fn draw_percentile(
    run: &Run,
    report: &Report,
    title: &str,
    text: &str,
) -> Option<Markup> {
    let (wake, deadline) = merged(run);
    let frame = frame(run, &wake, &deadline)?;
    let max_ns = report.all.max_ns;
    let differs = deadline.total() > wake.total();
    let threads = run.threads.len().min(DRAWN_MAX);
    let single = threads < 2;
    let series = if single { 1 } else { 1 + threads } + usize::from(differs);
    let about = About { id: "chart-percentile", title, text, series, units: ("nines", "ns") };
    let body = html! {
        (frame.y_axis(&frame.y.latency_ticks(8.0), "latency"))
        (frame.x_axis(&nines(&frame), "share of wake-ups that are faster"))
        @if !single { (threads_drawn(&frame, run)) }
        @if differs {
            g.series.all data-cpu="all-deadline" {
                title { "All CPUs, deadline view" }
                path.line.dashed d=(curve(&frame, &deadline, None, 0.5)) {}
            }
        }
        g.series.all data-cpu="all" {
            title { "All CPUs, wake-up view" }
            path.line.thick d=(curve(&frame, &wake, max_ns, 0.5)) {}
        }
        (frame.budget_level(run.options.requirement.budget_ns))
        @for quantile in report.all.wake.iter().filter(is_upper) { (range(&frame, quantile)) }
        (end_of_data(&frame, wake.total(), max_ns))
    };
    Some(frame.root(about, &body))
}

fn merged(run: &Run) -> (Histogram, Histogram) {
    let mut wake = Histogram::new(Layout::FINE);
    run.threads.iter().for_each(|thread| wake.merge(&thread.wake));
    let mut deadline = wake.clone();
    run.threads.iter().for_each(|thread| deadline.merge(&thread.missed));
    (wake, deadline)
}

fn frame(run: &Run, wake: &Histogram, deadline: &Histogram) -> Option<Frame> {
    let low = Layout::FINE.lower(deadline.buckets().next()?.0).max(1) as f64;
    let exact = run.threads.iter().filter_map(|thread| thread.totals.wake.max()).max().unwrap_or(0);
    let last = deadline.buckets().last().map_or(0, |(bucket, _)| Layout::FINE.upper(bucket));
    let high = (exact.max(last) as f64).max(low * 2.0);
    let budget = run.options.requirement.budget_ns.map_or(high, |ns| ns as f64);
    let y = Scale::Log { low: low.min(budget) / 1.2, high: high.max(budget) * 1.3 };
    let n = wake.total().max(deadline.total()).max(2) as f64;
    // A quarter of a nine to the right, for the mark at the end of the data.
    let x = Scale::Log { low: 1.0, high: (n * 1.8).max(100.0) };
    Some(Frame::wide(420.0, 14.0, x, y))
}

/// Ticks at 50 %, 90 %, 99 %, ...
fn nines(frame: &Frame) -> Vec<AxisTick> {
    let high = frame.x.ends().1;
    let nines = (1..).map(|nines: i32| (nines, 10_f64.powi(nines))).take_while(|&(_, x)| x <= high);
    let mut ticks = vec![
        AxisTick { value: 1.0, text: Some("0 %".into()) },
        AxisTick { value: 2.0, text: Some("50 %".into()) },
    ];
    ticks.extend(nines.map(|(nines, value)| {
        let decimals = (nines as usize).saturating_sub(2);
        let percent = 100.0 - 100.0 / value;
        AxisTick { value, text: Some(format!("{percent:.decimals$} %")) }
    }));
    ticks
}

/// One CPU after the other, grey ones first.
fn threads_drawn(frame: &Frame, run: &Run) -> Markup {
    let mut threads: Vec<_> = run.threads.iter().collect();
    if threads.len() > DRAWN_MAX {
        threads.sort_by_key(|thread| std::cmp::Reverse(thread.totals.wake.max()));
        threads.truncate(DRAWN_MAX);
        threads.sort_by_key(|thread| thread.info.cpu);
    }
    let maxima: Vec<u64> =
        threads.iter().map(|thread| thread.totals.wake.max().unwrap_or(0)).collect();
    let mut order: Vec<_> = threads.into_iter().zip(&maxima).zip(colours(&maxima)).collect();
    order.sort_by_key(|(_, colour)| colour.is_some());
    let step = if order.len() > 12 { 2.0 } else { 0.5 };
    html! {
        @for ((thread, &max_ns), colour) in order {
            @let class = colour.map_or("grey".into(), |colour| format!("s{colour}"));
            g class={ "series " (class) } data-cpu=(thread.info.cpu) {
                title { "CPU " (thread.info.cpu) ", largest " (units::ns(max_ns)) }
                path.line d=(curve(frame, &thread.wake, thread.totals.wake.max(), step)) {}
                @if colour.is_some() && max_ns > 0 {
                    circle.ends r="2.8" cx=(px(frame.px_x(thread.wake.total() as f64)))
                        cy=(px(frame.px_y(max_ns as f64))) {}
                }
            }
        }
    }
}

/// Steps of the empirical quantile function: level from one rank to the next, up at each bucket;
/// steps smaller than `least` units both ways are joined.
fn curve(frame: &Frame, histogram: &Histogram, max_ns: Option<u64>, least: f64) -> String {
    let n = histogram.total();
    let mut path = Path::default();
    let mut seen = 0;
    let mut at = (frame.left, 0.0);
    for (bucket, count) in histogram.buckets() {
        seen += count;
        let upper = Layout::FINE.upper(bucket);
        let value = if seen == n { max_ns.unwrap_or(upper) } else { upper };
        let y = frame.px_y(value as f64);
        // The last sample ends at 1/(1 - (n-1)/n) = n, which is as far as n samples reach.
        let x = frame.px_x(n as f64 / (n - seen).max(1) as f64);
        let is_seen = x - at.0 >= least || at.1 - y >= least || seen == n;
        if path.is_empty() {
            path.to(frame.left, y).across(x);
        } else if is_seen {
            path.down(y).across(x);
        } else {
            continue;
        }
        at = (x, y);
    }
    path.finish()
}

/// Below the median the axis has no room: it counts nines.
fn is_upper(quantile: &&Quantile) -> bool {
    2 * quantile.q.above <= quantile.q.of
}

/// The range of a quantile over the tenths of the run: a whisker.
fn range(frame: &Frame, quantile: &Quantile) -> Markup {
    let x = frame.px_x(quantile.q.of as f64 / quantile.q.above.max(1) as f64);
    let ends = quantile.tenths_low_ns.zip(quantile.tenths_high_ns);
    let Some((low_ns, high_ns)) = ends.filter(|_| quantile.value_ns.is_some()) else {
        return Markup::default();
    };
    let (low, high) = (frame.px_y(low_ns as f64), frame.px_y(high_ns as f64));
    let mut path = Path::default();
    path.to(x - 4.0, low).across(x + 4.0).to(x, low).down(high);
    path.to(x - 4.0, high).across(x + 4.0);
    html! {
        g.interval {
            title {
                (quantile.q.name()) ", tenths of the run: " (units::ns(low_ns)) " to "
                (units::ns(high_ns))
            }
            path d=(path.finish()) {}
        }
    }
}

fn end_of_data(frame: &Frame, n: u64, max_ns: Option<u64>) -> Markup {
    let Some(max_ns) = max_ns else {
        return Markup::default();
    };
    let (x, y) = (frame.px_x(n as f64), frame.px_y(max_ns as f64));
    let fits = x - frame.left > 220.0;
    let (side, anchor) = if fits { (-8.0, "end") } else { (8.0, "start") };
    let samples = if n == 1 { "1 sample".into() } else { format!("{} samples", units::grouped(n)) };
    html! {
        g.end {
            line x1=(px(x)) x2=(px(x)) y1=(px(y)) y2=(px(frame.bottom)) {}
            circle cx=(px(x)) cy=(px(y)) r="4" {}
            text.halo x=(px(x + side)) y=(px(frame.bottom - 8.0)) text-anchor=(anchor) {
                "end of data: " (samples)
            }
            text.halo x=(px(x + side)) y=(px(y.min(frame.bottom - 22.0) - 8.0))
                text-anchor=(anchor) {
                (units::ns(max_ns))
            }
        }
    }
}
