//! Latency: histogram, percentiles, quantiles, largest samples, missed wake-ups, CPUs.

use std::io::{self, Write};

use maud::{Markup, html};

use rtproof_judge::{
    Report,
    report::{CpuReport, Measured},
    units::{self, grouped, us_column},
};
use rtproof_model::run::APPLICATION;
use rtproof_record::{
    Run,
    run::{EndReason, RecordedLoad, ThreadInfo},
};
use rtproof_stats::{
    Histogram, Layout,
    quantile::{Q, Quantile},
};

use crate::html::Figure;
use crate::svg::bins::{BinColumn, TimeBins};
use crate::svg::chart::{colours, count_text};
use crate::svg::latency;
use crate::text::{BAD, BOLD, DIM, Terminal, TextStyle, WARN, wrapped};

const NOTHING: &str = "No wake-up was measured.";

/// CPUs that have a column of their own in the table of the histogram.
const COLUMNS_MAX: usize = 16;

pub(crate) fn latency_section(run: &Run, report: &Report) -> Markup {
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
    let Some(bins) = latency::bins(run) else {
        return crate::html::no_chart("chart-histogram", title, NOTHING);
    };
    let text = histogram_text(report);
    let differs = run.threads.iter().any(|thread| thread.totals.missed > 0);
    let picture = html! {
        div.log-axes {
            p.quiet {
                "Both axes are logarithmic; a bin is about " (format!("{:.0}", bins.percent()))
                "\u{a0}% wide."
            }
            (latency::draw_histogram(run, &report.all, &bins, (title, &text)))
        }
        (linear(run, report, title))
    };
    let mut legend = cpu_legend(run);
    if differs {
        let text = "with missed wake-ups (deadline view)".to_owned();
        legend.push(("dashed".into(), None, text));
    }
    crate::html::figure(&Figure {
        title,
        text: &text,
        picture,
        legend: html! { (switch()) (crate::html::legend(&legend)) },
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
    let Some((bins, step_ns)) = latency::linear_bins(run) else { return Markup::default() };
    let width = units::ns(step_ns);
    let later = match latency::beyond(run, &bins) {
        0 => "All wake-ups are in it.".into(),
        n => format!(
            "{} wake-ups are later than {}, where it ends.",
            grouped(n),
            units::ns(bins.range(bins.len() - 1).1 as u64)
        ),
    };
    let text =
        format!("Latency is linear, about {width} to a bin, counts are logarithmic. {later}");
    html! {
        div.linear-axes {
            p.quiet { (text) }
            (latency::draw_linear(
                run, &report.all, &bins, (&format!("{title}, linear"), &text),
            ))
        }
    }
}

fn histogram_text(report: &Report) -> String {
    let mut text =
        format!("{} wake-ups measured on {}", grouped(report.all.sampled), cpus(report.cpus.len()));
    if let (Some(min), Some(max)) = (report.all.min_ns, report.all.max_ns) {
        let p50 = report.all.wake_ns(Q::P50);
        let median =
            p50.map_or(String::new(), |ns| format!(", half of them below {}", units::ns(ns)));
        text += &format!(", from {} to {}{median}", units::ns(min), units::ns(max));
    }
    if let Some(budget_ns) = report.options.requirement.budget_ns {
        let late = grouped(report.all.late);
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
        let drawn = measured.len().min(latency::DRAWN_MAX);
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
            (crate::html::table_head(columns))
            tbody {
                @for (row, wake, missed) in rows {
                    tr {
                        th scope="row" { (octave_text(row)) }
                        td.num { (grouped(wake)) }
                        @for (_, counts) in shown { td.num { (grouped(counts[row])) } }
                        td.num { (grouped(missed)) }
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
    let Some(picture) = latency::draw_percentile(run, report, title, &text) else {
        return crate::html::no_chart("chart-percentile", title, NOTHING);
    };
    let mut legend = vec![("all".to_owned(), None, "all CPUs, wake-up view".to_owned())];
    if report.all.missed > 0 {
        legend.push(("all dashed".into(), None, "all CPUs, deadline view".into()));
    }
    if run.threads.len() > 1 {
        legend.extend(cpu_legend(run));
    }
    legend.push(("whisker".into(), None, "range over the tenths of the run".into()));
    crate::html::figure(&Figure {
        title,
        text: &text,
        picture,
        legend: crate::html::legend(&legend),
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
            (crate::html::table_head(["quantile", "#wake-up view, µs", "#deadline view, µs"]))
            tbody {
                @for (i, quantile) in longer.iter().enumerate() {
                    tr {
                        th scope="row" { (quantile.q.name()) }
                        (crate::html::quantile_cell(report.all.wake.get(i)))
                        (crate::html::quantile_cell(report.all.deadline.get(i)))
                    }
                }
            }
        }
    }
}

// Missed wake-ups: the account of each CPU, and when they were missed.

pub(crate) fn missed_section(
    run: &Run,
    report: &Report,
    columns: &[BinColumn],
    time: TimeBins,
) -> Markup {
    html! {
        section #missed {
            p { (sentence(report)) }
            (crate::html::scroll("Account of the wake-ups", &account(report)))
            @if report.all.missed > 0 { (figure(run, columns, time)) }
        }
    }
}

fn sentence(report: &Report) -> String {
    let all = &report.all;
    if all.missed == 0 {
        return format!("Every wake-up that was due was measured: {}.", grouped(all.scheduled));
    }
    let share = all.missed as f64 / all.scheduled.max(1) as f64;
    format!(
        "{} of {} wake-ups ({}) came due while their thread was still late. They have no latency \
         of their own in the wake-up view; in the deadline view each counts with its lateness.",
        grouped(all.missed),
        grouped(all.scheduled),
        units::probability(share)
    )
}

fn account(report: &Report) -> Markup {
    let adds_up =
        |cpu: &CpuReport| cpu.measured.scheduled == cpu.measured.sampled + cpu.measured.missed;
    crate::html::table(
        &report.cpus,
        &[
            ("#CPU", &|cpu| html! { (cpu.thread.cpu) }),
            ("#scheduled", &|cpu| html! { (grouped(cpu.measured.scheduled)) }),
            ("", &|cpu| html! { (if adds_up(cpu) { "=" } else { "≠" }) }),
            ("#sampled", &|cpu| html! { (grouped(cpu.measured.sampled)) }),
            ("", &|_| html! { "+" }),
            ("#missed", &|cpu| html! { (grouped(cpu.measured.missed)) }),
            ("checked", &|cpu| {
                html! { @if cpu.end.is_none() {
                    span.status.unknown {
                        (crate::html::icon("question")) "torn: the schedule is not known"
                    }
                } @else if adds_up(cpu) {
                    span.status.good { (crate::html::icon("check")) "adds up" }
                } @else {
                    span.status.bad { (crate::html::icon("cross")) "does not add up" }
                } }
            }),
        ],
    )
}

fn figure(run: &Run, columns: &[BinColumn], time: TimeBins) -> Markup {
    let title = "Missed wake-ups over time";
    let (most, at) = columns
        .iter()
        .zip(0..)
        .map(|(column, i)| (column.missed, i))
        .max_by_key(|&(n, i)| (n, std::cmp::Reverse(i)))
        .unwrap_or((0, 0));
    let text = format!(
        "Most were missed in the {} from {}: {}.",
        units::duration(time.width_ns),
        units::duration(time.start_ns(at)),
        grouped(most)
    );
    let picture = latency::draw_missed(run, columns, time, (title, &text));
    let table = crate::html::table(
        columns.iter().enumerate().filter(|(_, c)| c.missed > 0),
        &[
            ("from", &|(i, _)| html! { (units::duration(time.start_ns(*i))) }),
            ("#missed", &|(_, column)| html! { (grouped(column.missed)) }),
            ("#sampled", &|(_, column)| html! { (grouped(column.sampled)) }),
        ],
    );
    crate::html::figure(&Figure {
        title,
        text: &text,
        picture,
        legend: Markup::default(),
        table: Some(table),
    })
}

// Tables of quantiles with their ranges: all CPUs, each CPU, each load phase, both views.

/// A row: its name and what was measured.
type Row<'a> = (String, &'a Measured);

pub(crate) fn quantiles_section(report: &Report) -> Markup {
    let cpus = || report.cpus.iter().map(|cpu| (format!("CPU {}", cpu.thread.cpu), &cpu.measured));
    let all: Vec<Row<'_>> = std::iter::once(("all".into(), &report.all)).chain(cpus()).collect();
    let phases: Vec<Row<'_>> =
        report.phases.iter().map(|phase| (phase.name.clone(), &phase.measured)).collect();
    html! {
        section #quantiles {
            p { (CONVENTION) }
            h3 { "Wake-up view" }
            (quantiles_table("Wake-up view", &all, View::Wake))
            @if report.all.missed > 0 {
                h3 { "Deadline view" }
                (quantiles_table("Deadline view", &all, View::Deadline))
            } @else {
                p.quiet { "Nothing was missed: the deadline view is the same." }
            }
            @if !phases.is_empty() {
                h3 { "By load phase" }
                (phase_table(report, &phases))
            }
        }
    }
}

const CONVENTION: &str = "Microseconds. Below each quantile stands its range over the tenths of \
    the run (of the phase), where each holds ten wake-ups beyond it: a fact, and no confidence. A \
    quantile is the upper edge of a bucket at most 0.8 % wide, a range has edges of buckets 3 % \
    wide; smallest and largest are exact.";

/// Which wake-ups a table is about.
#[derive(Clone, Copy)]
enum View {
    /// Those that were measured.
    Wake,
    /// Those that were due.
    Deadline,
}

impl View {
    fn quantiles(self, measured: &Measured) -> &Vec<Quantile> {
        match self {
            Self::Wake => &measured.wake,
            Self::Deadline => &measured.deadline,
        }
    }

    /// Columns before the quantiles. Smallest value and deviation are exact for measured wake-ups
    /// only; the largest is that of both, as a missed one is less late than what swallowed it.
    const fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Wake => &["", "#wake-ups", "#min", "#mean", "#sd", "#max"],
            Self::Deadline => &["", "#wake-ups", "#mean", "#max"],
        }
    }

    fn count_and_mean(self, measured: &Measured) -> (u64, Option<f64>) {
        match self {
            Self::Wake => (measured.sampled, measured.mean_ns),
            Self::Deadline => (measured.sampled + measured.missed, measured.deadline_mean_ns),
        }
    }
}

fn quantiles_table(label: &str, rows: &[Row<'_>], view: View) -> Markup {
    let names = names(rows, view);
    let fixed = view.columns().iter().map(|&column| column.to_owned());
    let columns = fixed.chain(names.iter().map(|name| format!("#{name}")));
    let body = html! {
        table.quantiles {
            (crate::html::table_head(columns))
            tbody {
                @for (name, measured) in rows {
                    @let (count, mean_ns) = view.count_and_mean(measured);
                    tr {
                        th scope="row" { (name) }
                        td.num { (grouped(count)) }
                        @if let View::Wake = view { td.num { (crate::html::us(measured.min_ns)) } }
                        td.num { (crate::html::us_mean(mean_ns)) }
                        @if let View::Wake = view {
                            td.num { (crate::html::us_mean(measured.sd_ns)) }
                        }
                        td.num { strong { (crate::html::us(measured.max_ns)) } }
                        @for i in 0..names.len() {
                            (crate::html::quantile_cell(view.quantiles(measured).get(i)))
                        }
                    }
                }
            }
        }
    };
    crate::html::scroll(label, &body)
}

/// Names of the quantiles of the row that has most of them.
fn names(rows: &[Row<'_>], view: View) -> Vec<String> {
    let all = rows.iter().map(|(_, measured)| view.quantiles(measured));
    let longest = all.max_by_key(|quantiles| quantiles.len());
    longest.map_or(Vec::new(), |quantiles| quantiles.iter().map(|q| q.q.name()).collect())
}

fn phase_table(report: &Report, rows: &[Row<'_>]) -> Markup {
    let names = names(rows, View::Wake);
    let fixed =
        ["phase", "time", "#sampled", "#missed", "#late", "#mean", "#max"].map(str::to_owned);
    let columns = fixed.into_iter().chain(names.iter().map(|name| format!("#{name}")));
    let body = html! {
        table.quantiles {
            (crate::html::table_head(columns))
            tbody {
                @for (phase, (name, measured)) in report.phases.iter().zip(rows) {
                    tr {
                        th scope="row" { (name) }
                        td { (units::duration(phase.from_ns)) " – " (units::duration(phase.to_ns)) }
                        td.num { (grouped(measured.sampled)) }
                        td.num { (grouped(measured.missed)) }
                        td.num { (grouped(measured.late)) }
                        td.num { (crate::html::us_mean(measured.mean_ns)) }
                        td.num { strong { (crate::html::us(measured.max_ns)) } }
                        @for i in 0..names.len() {
                            (crate::html::quantile_cell(measured.wake.get(i)))
                        }
                    }
                }
            }
        }
    };
    html! {
        (crate::html::scroll("By load phase", &body))
        p.quiet {
            "A phase holds the seconds that begin in it; its quantiles come from buckets at most "
            "3.1 % wide."
        }
    }
}

// The largest samples, exactly, with their times.

pub(crate) fn samples_section(report: &Report) -> Markup {
    html! {
        section #samples {
            @if report.top.is_empty() {
                p { "No wake-up was measured." }
            } @else {
                p {
                    "The " (report.top.len()) " largest of all CPUs, exact; "
                    "no larger one was left out."
                }
                (crate::html::scroll("Largest samples", &samples_table(report)))
            }
        }
    }
}

fn samples_table(report: &Report) -> Markup {
    let budget_ns = report.options.requirement.budget_ns;
    let budget = budget_ns.map(|_| "budget");
    let columns = ["##", "#latency, µs"].into_iter().chain(budget);
    let columns = columns.chain(["#CPU", "#due after", "due at", "phase"]);
    let started_ns = report.run.started_realtime_ns;
    html! {
        table {
            (crate::html::table_head(columns))
            tbody {
                @for (i, top) in report.top.iter().enumerate() {
                    tr {
                        td.num { (i + 1) }
                        th.num scope="row" { (us_column(top.latency_ns)) }
                        @if let Some(budget_ns) = budget_ns {
                            td { (against(top.latency_ns, budget_ns)) }
                        }
                        td.num { (top.cpu) }
                        td.num { (crate::html::run_time(top.due_ns)) }
                        td { (crate::html::wall_clock(started_ns.saturating_add(top.due_ns))) }
                        td {
                            (if top.phase.is_empty() { crate::html::NONE }
                             else { top.phase.as_str() })
                        }
                    }
                }
            }
        }
    }
}

fn against(latency_ns: u64, budget_ns: u64) -> Markup {
    if latency_ns > budget_ns {
        let over = units::ns(latency_ns - budget_ns);
        return html! { span.status.bad { (crate::html::icon("cross")) "late by " (over) } };
    }
    html! { span.status.good { (crate::html::icon("check")) "within" } }
}

// The measuring threads and the loads: what ran where, under which policy, and what it did.

pub(crate) fn threads_section(report: &Report) -> Markup {
    html! {
        section #threads {
            h3 { "Measuring threads" }
            (crate::html::scroll("Measuring threads", &threads(report)))
            h3 { "Loads" }
            @if report.loads.is_empty() {
                p { "No load ran: the machine was measured as it was." }
            } @else {
                (crate::html::scroll("Loads", &loads(&report.loads)))
            }
        }
    }
}

fn threads(report: &Report) -> Markup {
    let count = |n: Option<u64>| n.map_or(crate::html::NONE.into(), grouped);
    let per_wakeup = |cpu: &CpuReport| {
        cpu.end
            .as_ref()
            .filter(|_| cpu.measured.sampled > 0)
            .map_or(crate::html::NONE.into(), |end| {
                units::ns(end.cpu_time_ns / cpu.measured.sampled)
            })
    };
    crate::html::table(
        &report.cpus,
        &[
            ("#CPU", &|cpu| html! { (cpu.thread.cpu) }),
            ("workload", &|cpu| html! { (cpu.thread.workload) }),
            ("policy", &|cpu| html! { (crate::html::policy(cpu.thread.policy)) }),
            ("#priority", &|cpu| html! { (cpu.thread.priority) }),
            ("#period", &|cpu| html! { (units::ns(cpu.thread.period_ns)) }),
            ("memory", &|cpu| html! { (if cpu.thread.locked { "locked" } else { "not locked" }) }),
            ("#late", &|cpu| html! { (grouped(cpu.measured.late)) }),
            ("#max, µs", &|cpu| html! { (crate::html::us(cpu.measured.max_ns)) }),
            ("#faults", &|cpu| {
                html! { (count(cpu.end.as_ref().map(|end| end.faults_minor + end.faults_major))) }
            }),
            ("#preempted", &|cpu| html! { (count(cpu.end.as_ref().map(|end| end.preemptions))) }),
            ("#CPU time per wake-up", &|cpu| html! { (per_wakeup(cpu)) }),
            ("ended", &|cpu| html! { (ended(cpu.end.as_ref().map(|end| end.reason))) }),
        ],
    )
}

fn ended(reason: Option<EndReason>) -> Markup {
    let (class, icon, text) = match reason {
        Some(EndReason::Complete) => ("good", "check", "complete"),
        Some(EndReason::Stopped) => ("doubtful", "warn", "stopped"),
        Some(EndReason::Starved) => ("bad", "cross", "starved the machine"),
        Some(EndReason::CpuLost) => ("bad", "cross", "lost its CPU"),
        Some(EndReason::Failed) => ("bad", "cross", "workload failed"),
        Some(EndReason::Panicked) => ("bad", "cross", "failed inside rtproof"),
        None => ("unknown", "question", "torn: not known"),
    };
    html! { span class={ "status " (class) } { (crate::html::icon(icon)) (text) } }
}

fn loads(loads: &[RecordedLoad]) -> Markup {
    crate::html::table(
        loads,
        &[
            ("load", &|load| html! { (load.name) }),
            ("~what it did", &|load| html! { (load.detail) }),
            ("time", &|load| {
                html! { (units::duration(load.from_ns)) " – " (units::duration(load.to_ns)) }
            }),
            ("#achieved", &|load| html! { (rate(load)) }),
            ("~trouble", &|load| {
                html! { @if let Some(error) = &load.error {
                    span.status.bad { (crate::html::icon("cross")) (error) }
                } @else { (crate::html::NONE) } }
            }),
        ],
    )
}

/// What a load achieved in a second.
fn rate(load: &RecordedLoad) -> String {
    let seconds = load.to_ns.saturating_sub(load.from_ns) as f64 / 1e9;
    if seconds <= 0.0 {
        return crate::html::NONE.into();
    }
    let rate = (load.work as f64 / seconds).round() as u64;
    match load.unit.as_str() {
        "bytes" => format!("{}/s", crate::html::binary_size(rate)),
        unit if rate < 1_000_000 => format!("{} {unit}/s", grouped(rate)),
        unit => format!("{} {unit}/s", count_text(rate as f64)),
    }
}

// The measurement as a table: CPUs as rows, the account and the quantiles as columns.

/// Writes the request line, the table and the caveats as text.
pub fn measured(to: &mut Terminal, report: &Report) -> io::Result<()> {
    request_line(to, report)?;
    table_text(to, report)?;
    cost(to, report)?;
    for note in report.notes.iter().take(NOTES_MAX) {
        let style = if note.weakens { BAD } else { WARN };
        wrapped(to, &format!("         {style}!{style:#} "), "           ", &note.text)?;
    }
    if report.notes.len() > NOTES_MAX {
        let more = report.notes.len() - NOTES_MAX;
        writeln!(to, "         and {more} more: rtproof export --format csv --table notes")?;
    }
    super::time::changes_text(to, &report.surroundings)?;
    for load in report.loads.iter().filter(|load| load.error.is_none()) {
        let seconds = (load.to_ns.saturating_sub(load.from_ns)) as f64 / 1e9;
        let rate = if seconds > 0.0 { load.work as f64 / seconds } else { 0.0 };
        let rate = rate_text(rate, &load.unit);
        let comma = if load.detail.is_empty() { "" } else { ", " };
        let text = format!("load {}: {rate}{comma}{}", load.name, load.detail);
        wrapped(to, &format!("         {DIM}"), "           ", &format!("{text}{DIM:#}"))?;
    }
    Ok(())
}

/// Most notes in text: a run has a handful.
const NOTES_MAX: usize = 200;

fn request_line(to: &mut Terminal, report: &Report) -> io::Result<()> {
    let options = &report.options;
    let policy = match options.policy.name().to_uppercase() {
        name if options.priority > 0 => format!("{name} {}", options.priority),
        name => name,
    };
    let load: Vec<&str> = match options.phases.as_slice() {
        // A program of `rtproof run`.
        [] => vec!["what ran beside it"],
        phases => phases.iter().map(|phase| phase.name.as_str()).collect(),
    };
    let text = format!(
        "{}  {policy}  period {}  load {}  {}",
        units::cpus(&options.cpus),
        units::ns(options.period_ns),
        load.join(", then "),
        report.duration_text(),
    );
    writeln!(to, "{BOLD}Measure{BOLD:#}  {text}")
}

const HEADS: [&str; 11] =
    ["", "scheduled", "missed", "late", "min", "p5", "p50", "p95", "p99", "p99.9", "max"];

/// Columns of [`HEADS`] that a terminal of 80 columns has no room for: p5 and p95.
const WIDE: [usize; 2] = [5, 7];

/// Columns of a terminal from which on these are shown.
const WIDE_MIN: usize = 100;

fn table_text(to: &mut Terminal, report: &Report) -> io::Result<()> {
    let budget_ns = report.options.requirement.budget_ns;
    let columns = to.page.columns;
    let mut rows = vec![HEADS.map(String::from)];
    rows.extend(report.cpus.iter().map(|cpu| row(&label(&cpu.thread), &cpu.measured, columns)));
    if report.cpus.len() > 1 {
        rows.push(row("all", &report.all, columns));
    }
    if report.phases.len() > 1 {
        rows.extend(report.phases.iter().map(|phase| row(&phase.name, &phase.measured, columns)));
    }
    let skip = |column: usize| {
        column == 3 && budget_ns.is_none() || columns < WIDE_MIN && WIDE.contains(&column)
    };
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEADS.len()).map(width).collect();
    for (i, row) in rows.iter().enumerate() {
        let style = if i == 0 { DIM } else { TextStyle::PLAIN };
        write!(to, "  {style}{:<w$}", row[0], w = widths[0])?;
        for column in (1..HEADS.len()).filter(|&column| !skip(column)) {
            let pad = widths[column] - row[column].chars().count();
            let is_late = i > 0 && column == 3 && row[3] != "0";
            let style = if is_late { BAD } else { style };
            write!(to, "  {}{style}{}{style:#}", " ".repeat(pad), row[column])?;
        }
        writeln!(to, "{style:#}{}", if i == 0 { "   µs" } else { "" })?;
    }
    Ok(())
}

/// A thread of a program has a name of its own.
fn label(thread: &ThreadInfo) -> String {
    match thread.workload.strip_prefix(APPLICATION) {
        Some(name) => format!("{name} CPU {}", thread.cpu),
        None => format!("CPU {}", thread.cpu),
    }
}

/// Columns that the numbers of a row take, without [`WIDE`] and with it.
const NUMBERS_WIDTH: [usize; 2] = [72, 88];

/// A name, cut where the terminal has no room for it.
fn fitting(name: &str, width: usize) -> String {
    let numbers = NUMBERS_WIDTH[usize::from(width >= WIDE_MIN)];
    let room = width.saturating_sub(numbers).max(6);
    match name.chars().count() <= room {
        true => name.into(),
        false => name.chars().take(room - 1).chain(['…']).collect(),
    }
}

fn row(name: &str, measured: &Measured, columns: usize) -> [String; 11] {
    let time = |ns: Option<u64>| ns.map_or("-".into(), us_column);
    let [p5, p50, p95, p99, p99_9] = Q::TABLE.map(|q| time(measured.wake_ns(q)));
    [
        fitting(name, columns),
        grouped(measured.scheduled),
        grouped(measured.missed),
        grouped(measured.late),
        time(measured.min_ns),
        p5,
        p50,
        p95,
        p99,
        p99_9,
        time(measured.max_ns),
    ]
}

fn cost(to: &mut Terminal, report: &Report) -> io::Result<()> {
    let cost = &report.cost;
    let text = format!(
        "clock read {} ns, step {} ns, resolution {} ns; recording {} ns a sample; shortest \
         period {}",
        cost.clock_read_ps.div_ceil(1000),
        cost.clock_step_ns,
        cost.clock_getres_ns,
        cost.record_ps.div_ceil(1000),
        units::ns(cost.floor_ns)
    );
    wrapped(to, &format!("         {DIM}"), "           ", &format!("{text}{DIM:#}"))
}

/// A rate with a prefix: `1.2 M ops/s`; bytes with a binary one, as on the page: `1.2 GiB/s`.
fn rate_text(rate: f64, unit: &str) -> String {
    if unit == "bytes" {
        return format!("{}/s", crate::page::binary_size(rate.round() as u64));
    }
    let (value, prefix) = match rate {
        r if r >= 1e9 => (r / 1e9, "G "),
        r if r >= 1e6 => (r / 1e6, "M "),
        r if r >= 1e3 => (r / 1e3, "k "),
        r => (r, ""),
    };
    format!("{value:.1} {prefix}{unit}/s")
}

#[cfg(test)]
mod tests {
    use super::rate_text;

    #[test]
    fn bytes_have_the_units_of_the_page() {
        assert_eq!(rate_text(1_610_612_736.0, "bytes"), "1.5 GiB/s");
        assert_eq!(rate_text(1_500_000.0, "ops"), "1.5 M ops/s");
    }
}
