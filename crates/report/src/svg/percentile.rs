//! The percentile plot: latency over 1/(1 - p), so that each nine has the same width. The tail,
//! which the histogram shows as a few single counts, is here as wide as the bulk.

use maud::{Markup, html};
use rtproof_judge::{Report, units};
use rtproof_record::Run;
use rtproof_stats::{Histogram, Layout, quantile::Quantile};

use super::{
    Path, colours,
    frame::{About, Frame},
    histogram::DRAWN_MAX,
    px,
    scale::{Scale, Tick},
};

/// Draws the plot of a run; `None` when nothing was measured.
pub(crate) fn draw(run: &Run, report: &Report, title: &str, text: &str) -> Option<Markup> {
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
        @for quantile in report.all.wake.iter().filter(is_upper) { (interval(&frame, quantile)) }
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
fn nines(frame: &Frame) -> Vec<Tick> {
    let high = frame.x.ends().1;
    let nines = (1..).map(|nines: i32| (nines, 10_f64.powi(nines))).take_while(|&(_, x)| x <= high);
    let mut ticks = vec![
        Tick { value: 1.0, text: Some("0 %".into()) },
        Tick { value: 2.0, text: Some("50 %".into()) },
    ];
    ticks.extend(nines.map(|(nines, value)| {
        let decimals = (nines as usize).saturating_sub(2);
        let percent = 100.0 - 100.0 / value;
        Tick { value, text: Some(format!("{percent:.decimals$} %")) }
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

/// The interval of a quantile: a whisker, with an arrow where the samples give no upper end.
fn interval(frame: &Frame, quantile: &Quantile) -> Markup {
    let x = frame.px_x(quantile.q.of as f64 / quantile.q.above.max(1) as f64);
    let (Some(_), Some(low_ns)) = (quantile.value_ns, quantile.low_ns) else {
        return Markup::default();
    };
    let low = frame.px_y(low_ns as f64);
    let (high, open) = match quantile.high_ns {
        Some(high_ns) => (frame.px_y(high_ns as f64), false),
        None => (frame.top + 4.0, true),
    };
    let mut path = Path::default();
    path.to(x - 4.0, low).across(x + 4.0).to(x, low).down(high);
    if open {
        path.to(x - 4.0, high + 6.0).line(x, high).line(x + 4.0, high + 6.0);
    } else {
        path.to(x - 4.0, high).across(x + 4.0);
    }
    let to = quantile.high_ns.map_or("no upper end".into(), units::ns);
    html! {
        g.interval {
            title { (quantile.q.name()) ": " (units::ns(low_ns)) " to " (to) }
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
