//! The latency histogram: one step line per CPU, counts and latencies logarithmic, the maximum of
//! each CPU named. The picture that OSADL made the field's own.

use maud::{Markup, html};
use rtproof_judge::{report::Measured, units};
use rtproof_record::Run;
use rtproof_stats::Histogram;

use super::{
    Path,
    bins::LatencyBins,
    colours,
    frame::{About, Frame},
    labels::{self, Mark},
    levels,
    scale::Scale,
};

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

/// Bins of the same on a linear axis, as OSADL draws it, to where it is of use: the budget and what
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
            None => return rtproof_stats::Layout::FINE.upper(bucket),
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
pub(crate) fn draw(run: &Run, all: &Measured, bins: &LatencyBins, text: (&str, &str)) -> Markup {
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
        Some(Mark { value: line.max_ns as f64, text, class: format!("s{colour}") })
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
        (levels::draw(&frame, all))
        (labels::marks(&frame, marks.take(NAMED_MAX).collect()))
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
