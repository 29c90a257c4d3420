//! Latency: the histogram and the percentile plot.

use maud::{Markup, html};
use rtproof_judge::{Report, units};
use rtproof_record::Run;
use rtproof_stats::{Histogram, Layout, quantile::Q};

use super::parts::{self, Figure};
use crate::svg::{colours, histogram, percentile};

const NOTHING: &str = "No wake-up was measured.";
/// CPUs that have a column of their own in the table of the histogram.
const COLUMNS_MAX: usize = 16;

pub(super) fn section(run: &Run, report: &Report) -> Markup {
    html! {
        section.sheet #latency {
            h2 { "Latency" }
            (histogram_figure(run, report))
            details.fold {
                summary { "Percentiles: how far each nine is out" }
                (percentile_figure(run, report))
            }
        }
    }
}

fn histogram_figure(run: &Run, report: &Report) -> Markup {
    let title = "Latency histogram";
    let Some(bins) = histogram::bins(run) else {
        return parts::no_chart("chart-histogram", title, NOTHING);
    };
    let text = histogram_text(report);
    let differs = run.threads.iter().any(|thread| thread.totals.missed > 0);
    let picture = html! {
        div.log-axes {
            p.quiet {
                "Both axes are logarithmic; a bin is about " (format!("{:.0}", bins.percent()))
                "\u{a0}% wide."
            }
            (histogram::draw(run, &report.all, &bins, (title, &text)))
        }
        (linear(run, report, title))
    };
    let mut legend = cpu_legend(run);
    if differs {
        let text = "with missed wake-ups (deadline view)".to_owned();
        legend.push(("dashed".into(), None, text));
    }
    parts::figure(&Figure {
        title,
        text: &text,
        picture,
        legend: html! { (switch()) (parts::legend(&legend)) },
        table: Some(histogram_table(run)),
    })
}

/// Which axes: needs no script.
fn switch() -> Markup {
    html! {
        fieldset.switch {
            legend { "Axes" }
            label { input #axes-log type="radio" name="axes" checked; " both logarithmic" }
            label { input #axes-linear type="radio" name="axes"; " linear µs, as OSADL" }
            label {
                input #levels type="checkbox";
                " μ, μ ± σ and percentiles of all CPUs together"
            }
        }
    }
}

/// OSADL's view: linear latencies, logarithmic counts.
fn linear(run: &Run, report: &Report, title: &str) -> Markup {
    let Some((bins, step_ns)) = histogram::linear_bins(run) else { return Markup::default() };
    let width = units::ns(step_ns);
    let later = match histogram::beyond(run, &bins) {
        0 => "All wake-ups are in it.".into(),
        n => format!(
            "{} wake-ups are later than {}, where it ends.",
            units::grouped(n),
            units::ns(bins.range(bins.len() - 1).1 as u64)
        ),
    };
    let text =
        format!("Latency is linear, about {width} to a bin, counts are logarithmic. {later}");
    html! {
        div.linear-axes {
            p.quiet { (text) }
            (histogram::draw_linear(
                run, &report.all, &bins, (&format!("{title}, linear"), &text),
            ))
        }
    }
}

fn histogram_text(report: &Report) -> String {
    let mut text = format!(
        "{} wake-ups measured on {}",
        units::grouped(report.all.sampled),
        cpus(report.cpus.len())
    );
    if let (Some(min), Some(max)) = (report.all.min_ns, report.all.max_ns) {
        let p50 = report.all.wake_ns(Q::P50);
        let median =
            p50.map_or(String::new(), |ns| format!(", half of them below {}", units::ns(ns)));
        text += &format!(", from {} to {}{median}", units::ns(min), units::ns(max));
    }
    if let Some(budget_ns) = report.options.requirement.budget_ns {
        let late = units::grouped(report.all.late);
        text += &format!("; {late} later than the budget of {}", units::ns(budget_ns));
    }
    text + "."
}

fn cpus(n: usize) -> String {
    if n == 1 { "1 CPU".into() } else { format!("{n} CPUs") }
}

/// Entries of the CPUs: all, or the worst of many.
fn cpu_legend(run: &Run) -> Vec<(String, Option<u32>, String)> {
    let measured: Vec<_> = run.threads.iter().filter(|t| t.totals.accounted() > 0).collect();
    let maxima: Vec<u64> = measured.iter().map(|t| t.totals.wake.max().unwrap_or(0)).collect();
    let colours = colours(&maxima);
    let mut named: Vec<_> = measured
        .iter()
        .zip(&maxima)
        .zip(&colours)
        .filter_map(|((thread, &max), &colour)| Some((colour?, thread.info.cpu, max)))
        .collect();
    let grey = measured.len() - named.len();
    if grey > 0 {
        named.sort_by_key(|&(colour, ..)| colour);
    }
    let mut entries: Vec<_> = named
        .into_iter()
        .map(|(colour, cpu, max)| {
            (format!("s{colour}"), Some(cpu), format!("CPU {cpu}, max {}", units::ns(max)))
        })
        .collect();
    if grey > 0 {
        let rest = maxima.iter().zip(&colours).filter(|(_, colour)| colour.is_none());
        let max = rest.map(|(&max, _)| max).max().unwrap_or(0);
        let drawn = measured.len().min(histogram::DRAWN_MAX);
        let left_out = match measured.len() - drawn {
            0 => String::new(),
            n => format!("; {n} with smaller maxima not drawn"),
        };
        let text = format!("{} others, max {}{left_out}", grey, units::ns(max));
        entries.push(("grey".into(), None, text));
    }
    entries
}

/// Counts per power of two.
fn histogram_table(run: &Run) -> Markup {
    let octaves = |histogram: &Histogram| {
        let mut counts = [0_u64; 64];
        for (bucket, n) in histogram.buckets() {
            counts[(Layout::FINE.lower(bucket) | 1).ilog2() as usize] += n;
        }
        counts
    };
    let each: Vec<_> = run.threads.iter().map(|t| (t.info.cpu, octaves(&t.wake))).collect();
    let missed: Vec<_> = run.threads.iter().map(|t| octaves(&t.missed)).collect();
    let sum = |counts: &mut dyn Iterator<Item = &[u64; 64]>, row: usize| {
        counts.map(|c| c[row]).sum::<u64>()
    };
    let rows: Vec<_> = (0..64)
        .map(|row| (row, sum(&mut each.iter().map(|e| &e.1), row), sum(&mut missed.iter(), row)))
        .filter(|&(_, wake, missed)| wake + missed > 0)
        .collect();
    let shown = if each.len() <= COLUMNS_MAX { each.as_slice() } else { &[] };
    let named = shown.iter().map(|(cpu, _)| format!("#CPU {cpu}"));
    let columns = ["latency".into(), "#all CPUs".into()].into_iter().chain(named);
    let columns = columns.chain(["#missed".to_owned()]);
    html! {
        table {
            (parts::head(columns))
            tbody {
                @for (row, wake, missed) in rows {
                    tr {
                        th scope="row" { (octave_text(row)) }
                        td.num { (units::grouped(wake)) }
                        @for (_, counts) in shown { td.num { (units::grouped(counts[row])) } }
                        td.num { (units::grouped(missed)) }
                    }
                }
            }
        }
    }
}

fn octave_text(row: usize) -> String {
    let low = if row == 0 { 0 } else { 1_u64 << row };
    format!("{} to {}", units::ns(low), units::ns((2_u64 << row) - 1))
}

fn percentile_figure(run: &Run, report: &Report) -> Markup {
    let title = "Percentiles";
    let text = percentile_text(report);
    let Some(picture) = percentile::draw(run, report, title, &text) else {
        return parts::no_chart("chart-percentile", title, NOTHING);
    };
    let mut legend = vec![("all".to_owned(), None, "all CPUs, wake-up view".to_owned())];
    if report.all.missed > 0 {
        legend.push(("all dashed".into(), None, "all CPUs, deadline view".into()));
    }
    if run.threads.len() > 1 {
        legend.extend(cpu_legend(run));
    }
    let confidence = units::confidence(report.options.requirement.confidence_ppm);
    legend.push(("whisker".into(), None, format!("interval at {confidence} confidence")));
    parts::figure(&Figure {
        title,
        text: &text,
        picture,
        legend: parts::legend(&legend),
        table: Some(percentile_table(report)),
    })
}

fn percentile_text(report: &Report) -> String {
    let named: Vec<String> = report
        .all
        .wake
        .iter()
        .filter_map(|q| Some(format!("{} {}", q.q.name(), units::ns(q.value_ns?))))
        .collect();
    if named.is_empty() {
        return "Too few samples for any percentile.".into();
    }
    format!(
        "All CPUs together: {}. Each nine has the same width; the line ends where the samples end, \
         and nothing is drawn beyond.",
        named.join(", ")
    )
}

fn percentile_table(report: &Report) -> Markup {
    let longer = if report.all.deadline.len() > report.all.wake.len() {
        &report.all.deadline
    } else {
        &report.all.wake
    };
    html! {
        table {
            (parts::head(["quantile", "#wake-up view, µs", "#deadline view, µs"]))
            tbody {
                @for (i, quantile) in longer.iter().enumerate() {
                    tr {
                        th scope="row" { (quantile.q.name()) }
                        (parts::quantile_cell(report.all.wake.get(i)))
                        (parts::quantile_cell(report.all.deadline.get(i)))
                    }
                }
            }
        }
    }
}
