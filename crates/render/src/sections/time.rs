//! The run over time: latency, the host's counters, changes from outside.

use std::io;

use maud::{Markup, html};

use rtproof_judge::{
    Report,
    moving::{Frequency, IdleUse, RunSurroundings, Segment},
    units::{self, grouped},
};
use rtproof_record::{Run, run::Thread};

use super::distribution;
use crate::html::{Figure, ReportPage};
use crate::spike;
use crate::svg::bins::{BinColumn, HeatBins, TimeBins};
use crate::svg::events::EventLanes;
use crate::svg::time::{self, Dot, HostSeries, StripRows};
use crate::text::{DIM, Terminal, WARN, wrapped};

/// Surroundings of a measurement: threads that were changed from outside, before and after; idle
/// states and frequencies of the measured CPUs. Empty if there is nothing to show.
pub(crate) fn beside_section(report: &Report) -> Markup {
    let surroundings = &report.surroundings;
    let cpu = |number: u32| {
        let found = report.cpus.iter().find(|cpu| cpu.thread.number == number);
        found.map_or(crate::html::NONE.into(), |cpu| cpu.thread.cpu.to_string())
    };
    html! {
        section #beside {
            @if !surroundings.marks.is_empty() {
                h3 { "Threads that were changed while they measured" }
                (crate::html::scroll("Changes", &marks(surroundings, &cpu)))
                h3 { "What they measured between the changes" }
                p.quiet { "Whole seconds; those in which a thread was changed are left out." }
                (crate::html::scroll(
                    "Between the changes",
                    &segments(surroundings.segments.iter()),
                ))
            }
            @if !surroundings.idle.is_empty() {
                h3 { "Idle states of the measured CPUs" }
                (crate::html::scroll("Idle states", &idle_html(surroundings)))
            }
            @if !surroundings.frequencies.is_empty() {
                h3 { "Frequency of the measured CPUs" }
                (crate::html::scroll("Frequency", &frequencies(surroundings)))
            }
        }
    }
}

fn marks(surroundings: &RunSurroundings, cpu: &impl Fn(u32) -> String) -> Markup {
    crate::html::table(
        &surroundings.marks,
        &[
            ("#CPU", &|mark| html! { (cpu(mark.thread)) }),
            ("between", &|mark| {
                html! {
                    (crate::html::run_time(mark.since_ns)) " – "
                    (crate::html::run_time(mark.at_ns))
                }
            }),
            ("was", &|mark| html! { (mark.before) }),
            ("is", &|mark| html! { (mark.after) }),
        ],
    )
}

/// What threads measured between changes.
pub(super) fn segments<'a>(segments: impl Iterator<Item = &'a Segment>) -> Markup {
    let of = |segment: &'a Segment| segment.intervals.as_ref().unwrap_or(&segment.samples);
    crate::html::table(
        segments,
        &[
            ("#CPU", &|segment| html! { (segment.cpu) }),
            ("from", &|segment| html! { (crate::html::run_time(segment.from_ns)) }),
            ("to", &|segment| html! { (crate::html::run_time(segment.to_ns)) }),
            ("with", &|segment| {
                html! {
                    (segment.policy.as_deref().unwrap_or_default()) " "
                    (segment.cpus.as_deref().unwrap_or_default())
                }
            }),
            ("of", &|segment| {
                html! { (if segment.intervals.is_some() { "intervals" } else { "samples" }) }
            }),
            ("#n", &|segment| html! { (grouped(of(segment).n)) }),
            ("#mean, µs", &|segment| html! { (crate::html::us_mean(of(segment).mean_ns)) }),
            ("#sd, µs", &|segment| html! { (crate::html::us_mean(of(segment).sd_ns)) }),
            ("#min, µs", &|segment| html! { (crate::html::us(of(segment).min_ns)) }),
            ("#max, µs", &|segment| html! { (crate::html::us(of(segment).max_ns)) }),
            ("#missed", &|segment| html! { (grouped(segment.missed)) }),
        ],
    )
}

/// Idle states as a table.
pub(super) fn idle_html(surroundings: &RunSurroundings) -> Markup {
    crate::html::table(
        &surroundings.idle,
        &[
            ("#CPU", &|of| html! { (of.cpu) }),
            ("state", &|of| html! { (of.name) }),
            ("#exit, µs", &|of| html! { (of.exit_us.map_or(crate::html::NONE.into(), grouped)) }),
            ("#entered", &|of| html! { (grouped(of.entered)) }),
            ("#share of the time", &|of| html! { (format!("{:.1} %", of.share * 100.0)) }),
        ],
    )
}

fn frequencies(surroundings: &RunSurroundings) -> Markup {
    let ghz = |hz: u64| format!("{:.3}", hz as f64 / 1e9);
    crate::html::table(
        &surroundings.frequencies,
        &[
            ("#CPU", &|of| html! { (of.cpu) }),
            ("#lowest, GHz", &|of| html! { (ghz(of.min_hz)) }),
            ("#mean, GHz", &|of| html! { (ghz(of.mean_hz)) }),
            ("#highest, GHz", &|of| html! { (ghz(of.max_hz)) }),
            ("#readings", &|of| html! { (grouped(of.readings)) }),
        ],
    )
}

// The figure of all spikes over time: a dot each, with links to those that are explained.

/// Rows of the table.
const ROWS_MAX: usize = 50;

/// The figure; `shown`: how many spikes the page has a picture of.
pub(crate) fn dots_figure(
    run: &Run,
    report: &Report,
    time: TimeBins,
    events: &EventLanes,
    shown: usize,
) -> Markup {
    let title = "Spikes over time";
    let dots = time::dots_of(run, report, shown);
    if dots.is_empty() {
        let why = report.spikes.as_ref().map(|spikes| spikes.threshold_ns);
        let why = why.map_or("No wake-up was measured.".into(), |threshold_ns| {
            format!("No wake-up was later than {}.", units::ns(threshold_ns))
        });
        return crate::html::no_chart("chart-spikes", title, &why);
    }
    let text = dots_text(run, report, &dots) + &events.text();
    let legend: Vec<_> = time::classes(&dots)
        .into_iter()
        .map(|(class, name, n)| (format!("point {class}"), None, format!("{name} ({n})")))
        .collect();
    crate::html::figure(&Figure {
        title,
        text: &text,
        picture: time::draw_dots(run, &dots, time, events, (title, &text)),
        legend: crate::html::legend(&legend),
        table: Some(dots_table(&dots)),
    })
}

fn dots_text(run: &Run, report: &Report, dots: &[Dot]) -> String {
    let n = grouped(dots.len() as u64);
    let Some(found) = run.spikes.as_ref().and(report.spikes.as_ref()) else {
        return format!("The {n} largest samples; nothing looked for their causes.");
    };
    let of = match found.seen > dots.len() as u64 {
        true => format!("{n} of {} spikes", grouped(found.seen)),
        false => units::count(dots.len(), "spike"),
    };
    let pictures = dots.iter().filter(|dot| dot.picture.is_some()).count();
    let links = if pictures == 0 {
        String::new()
    } else {
        format!(" A dot with a dark edge leads to the picture of that spike ({pictures}).")
    };
    format!("{of}, each by the class of its largest cause.{links}")
}

fn dots_table(dots: &[Dot]) -> Markup {
    let table = crate::html::table(
        dots.iter().take(ROWS_MAX),
        &[
            ("#at", &|dot| html! { (crate::html::run_time(dot.at_ns)) }),
            ("#CPU", &|dot| html! { (dot.cpu) }),
            ("#latency, µs", &|dot| html! { (spike::us_number(dot.latency_ns)) }),
            ("~cause", &|dot| html! { (dot.why()) }),
            ("", &|dot| {
                html! { @if let Some(number) = dot.picture {
                    a href={ "#spike-" (number) } { "spike " (number) }
                } }
            }),
        ],
    );
    html! {
        (table)
        @if let Some(more @ 1..) = dots.len().checked_sub(ROWS_MAX) {
            p.quiet {
                (grouped(more as u64)) " more: rtproof export --format csv --table spikes"
            }
        }
    }
}

// The host while it was measured: small charts of its counters.

/// Rows of the table, at most.
const ROWS: u64 = 100;

/// The section; nothing where no counter was read.
pub(crate) fn host_section(run: &Run, time: TimeBins) -> Markup {
    let counters = HostSeries::all(run);
    if counters.is_empty() {
        return Markup::default();
    }
    html! {
        section #host {
            p.quiet { "Read once a second on " (place(run)) ". Loaded phases are shaded." }
            div.smalls { @for counter in &counters { (counter_figure(run, counter, time)) } }
            details.numbers {
                summary { "The numbers as a table" }
                (crate::html::scroll("The host meanwhile", &counters_table(&counters, time)))
            }
        }
    }
}

/// Where the counters were read: without housekeeping CPUs a measured one did it.
fn place(run: &Run) -> &'static str {
    match run.options.housekeeping.is_empty() {
        true => "a measured CPU, as no other was left",
        false => "a housekeeping CPU",
    }
}

fn counter_figure(run: &Run, counter: &HostSeries, time: TimeBins) -> Markup {
    let title = format!("{}, {}", counter.column.title, counter.column.unit);
    let text = counter_text(counter);
    crate::html::figure(&Figure {
        title: &title,
        text: &text,
        picture: time::draw_host(run, counter, time, &text),
        legend: Markup::default(),
        table: None,
    })
}

fn counter_text(counter: &HostSeries) -> String {
    let Some([low, mean, high]) = counter.summary() else {
        return String::new();
    };
    let [low, mean, high] = [low, mean, high].map(number);
    format!("{low} to {high}, on average {mean} {}.", counter.column.unit)
}

/// A number of a counter: two decimals below ten, one below a hundred.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => return grouped(value.round().max(0.0) as u64),
    };
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

/// All counters in one table, means of at most [`ROWS`] intervals.
fn counters_table(counters: &[HostSeries], time: TimeBins) -> Markup {
    let time = time.coarser(ROWS);
    let columns: Vec<_> = counters.iter().map(|counter| counter.columns(time)).collect();
    html! {
        table {
            thead { tr {
                th { "from" }
                @for HostSeries { column, .. } in counters {
                    th.num { (column.title) br; (column.unit) }
                }
            } }
            tbody {
                @for row in 0..time.len {
                    tr {
                        th scope="row" { (units::duration(time.start_ns(row))) }
                        @for column in &columns {
                            td.num {
                                (column[row].map_or(crate::html::NONE.into(), |v| number(v[1])))
                            }
                        }
                    }
                }
            }
        }
    }
}

// Latency over time: the heat map of all CPUs and the worst case of each.

const NOTHING: &str = "No wake-up was measured.";

pub(crate) fn timeline_section(page: &ReportPage<'_>) -> Markup {
    let ReportPage { run, report, time, rows, columns, pictures } = page;
    let time = *time;
    html! {
        section #timeline {
            h2 { "Latency over time" }
            @let events = EventLanes::of(report);
            (dots_figure(run, report, time, &events, pictures.len()))
            (strip_figure(run, rows, time, &events))
            details.fold {
                summary { "Every latency over time" }
                (heat_figure(run, report, columns, &events))
            }
            details.fold {
                summary { "Mean, deviation, percentiles and shape over time" }
                (distribution::figures(report, time, &events))
            }
        }
    }
}

fn width_text(time: TimeBins) -> String {
    units::duration(time.width_ns)
}

fn heat_figure(run: &Run, report: &Report, columns: &[BinColumn], events: &EventLanes) -> Markup {
    let title = "All CPUs over time";
    let Some(bins) = HeatBins::of(run) else {
        return crate::html::no_chart("chart-heat", title, NOTHING);
    };
    let text = heat_text(report, columns, bins.time) + &events.text();
    let picture = time::draw_heat(run, report, &bins, columns, events, (title, &text));
    let mut marks = vec![
        ("worst".into(), None, format!("worst of each {}", width_text(bins.time))),
        ("ring".into(), None, "largest samples".into()),
    ];
    if !events.is_empty() {
        marks.push(("event".into(), None, "changes and coincidences".into()));
    }
    let legend = html! {
        div.legends {
            (crate::html::ramp("1", &grouped(bins.most()), "wake-ups per cell"))
            (crate::html::legend(&marks))
        }
    };
    crate::html::figure(&Figure {
        title,
        text: &text,
        picture,
        legend,
        table: Some(heat_table(run, columns, bins.time)),
    })
}

fn heat_text(report: &Report, columns: &[BinColumn], time: TimeBins) -> String {
    let mut worst: Vec<u64> = columns.iter().filter_map(|c| Some(c.worst?.0)).collect();
    worst.sort_unstable();
    let usual = worst.get(worst.len() / 2).copied().unwrap_or(0);
    let place = report.verdict.basis.worst.as_ref().map_or(String::new(), |worst| {
        let at = crate::html::run_time(worst.due_ns);
        format!(" The largest, {}, came at {at} on CPU {}.", units::ns(worst.latency_ns), worst.cpu)
    });
    format!(
        "Each column is {} of all CPUs; half of the columns have a worst case above {}.{place}",
        width_text(time),
        units::ns(usual)
    )
}

fn heat_table(run: &Run, columns: &[BinColumn], time: TimeBins) -> Markup {
    let phase_at = |at_ns: u64| {
        let phase = run.options.phases.iter().find(|p| (p.from_ns..p.to_ns).contains(&at_ns));
        phase.map_or(crate::html::NONE, |phase| phase.name.as_str())
    };
    crate::html::table(
        columns.iter().enumerate(),
        &[
            ("from", &|(i, _)| html! { (units::duration(time.start_ns(*i))) }),
            ("phase", &|(i, _)| html! { (phase_at(time.start_ns(*i))) }),
            ("#sampled", &|(_, column)| html! { (grouped(column.sampled)) }),
            ("#missed", &|(_, column)| html! { (grouped(column.missed)) }),
            ("#late", &|(_, column)| html! { (grouped(column.late)) }),
            ("#worst, µs", &|(_, column)| html! { (crate::html::us(column.worst.map(|w| w.0))) }),
            ("#CPU", &|(_, column)| {
                html! { (column.worst.map_or(crate::html::NONE.into(), |w| w.1.to_string())) }
            }),
        ],
    )
}

fn strip_figure(run: &Run, rows: &StripRows, time: TimeBins, events: &EventLanes) -> Markup {
    let title = "Worst case per CPU over time";
    let Some((low, high)) = rows.range() else {
        return crate::html::no_chart("chart-strip", title, NOTHING);
    };
    let budget_ns = run.options.requirement.budget_ns;
    let text = format!(
        "The worst case of each CPU in each {}, {} to {}. An upright line is a stall of the whole \
         machine, a level one the trouble of a CPU.",
        width_text(time),
        units::ns(low),
        units::ns(high)
    );
    crate::html::figure(&Figure {
        title,
        text: &text,
        picture: time::draw_strip(run, rows, time, events, (title, &text)),
        legend: strip_legend(low, high, budget_ns),
        table: Some(strip_table(run)),
    })
}

/// Colours within the budget, and over it by how many times it is.
fn strip_legend(low_ns: u64, high_ns: u64, budget_ns: Option<u64>) -> Markup {
    let budget_ns = budget_ns.unwrap_or(u64::MAX);
    html! {
        div.legends {
            @if low_ns <= budget_ns {
                (crate::html::ramp(
                    &units::ns(low_ns),
                    &units::ns(high_ns.min(budget_ns)),
                    "worst case",
                ))
            }
            @if high_ns > budget_ns {
                p.ramp {
                    "over the budget of " (units::ns(budget_ns)) ", to "
                    @for (level, times) in time::OVER.iter().enumerate() {
                        span.overkey {
                            i class={ "o" (level) } aria-hidden="true" {} " " (times) " times "
                        }
                    }
                    span.overkey {
                        i class={ "o" (time::OVER.len()) } aria-hidden="true" {} " more"
                    }
                }
            }
        }
    }
}

fn strip_table(run: &Run) -> Markup {
    let at = |thread: &Thread| thread.top.first().map(|top| crate::html::run_time(top.due_ns));
    crate::html::table(
        &run.threads,
        &[
            ("#CPU", &|thread| html! { (thread.info.cpu) }),
            ("#worst, µs", &|thread| html! { (crate::html::us(thread.totals.wake.max())) }),
            ("#at", &|thread| html! { (at(thread).as_deref().unwrap_or(crate::html::NONE)) }),
            ("#late", &|thread| html! { (grouped(thread.totals.late())) }),
            ("#missed", &|thread| html! { (grouped(thread.totals.missed)) }),
        ],
    )
}

/// CPUs whose idle states are shown; the page has a table of all.
const CPUS_MAX: usize = 8;

/// What was changed from outside.
pub(super) fn changes_text(to: &mut Terminal, surroundings: &RunSurroundings) -> io::Result<()> {
    for segment in &surroundings.segments {
        wrapped(to, &format!("         {WARN}│{WARN:#} "), "           ", &of_segment(segment))?;
    }
    Ok(())
}

/// Idle states and frequencies.
pub(super) fn states(to: &mut Terminal, surroundings: &RunSurroundings) -> io::Result<()> {
    let mut cpus: Vec<u32> = surroundings.idle.iter().map(|of| of.cpu).collect();
    cpus.dedup();
    let idle = cpus.into_iter().take(CPUS_MAX).map(|cpu| idle_text(cpu, &surroundings.idle));
    let frequencies = surroundings.frequencies.iter().take(CPUS_MAX).map(frequency);
    let lines: Vec<String> = idle.chain(frequencies).collect();
    for line in lines {
        wrapped(to, &format!("         {DIM}"), "           ", &format!("{line}{DIM:#}"))?;
    }
    Ok(())
}

/// What a thread measured between two changes.
fn of_segment(segment: &Segment) -> String {
    let spread = segment.intervals.as_ref().unwrap_or(&segment.samples);
    let what = if segment.intervals.is_some() { "intervals" } else { "samples" };
    let us = |ns: Option<f64>| ns.map_or("-".into(), |ns| format!("{:.3}", ns / 1000.0));
    let state: Vec<&str> =
        [&segment.policy, &segment.cpus].into_iter().filter_map(Option::as_deref).collect();
    format!(
        "CPU {} from {} to {} with {}: {} {what}, mean {}, sd {}, min {}, max {} µs, missed {}",
        segment.cpu,
        units::duration(segment.from_ns / 1_000_000 * 1_000_000),
        units::duration(segment.to_ns / 1_000_000 * 1_000_000),
        state.join(" on "),
        grouped(spread.n),
        us(spread.mean_ns),
        us(spread.sd_ns),
        us(spread.min_ns.map(|ns| ns as f64)),
        us(spread.max_ns.map(|ns| ns as f64)),
        grouped(segment.missed),
    )
}

fn idle_text(cpu: u32, all: &[IdleUse]) -> String {
    let used = all.iter().filter(|of| of.cpu == cpu && of.entered > 0);
    let states: Vec<String> = used
        .map(|of| format!("{} {:.1} % ({})", of.name, of.share * 100.0, units::times(of.entered)))
        .collect();
    match states.is_empty() {
        true => format!("CPU {cpu} was in no idle state"),
        false => format!("CPU {cpu} idle: {}", states.join(", ")),
    }
}

fn frequency(of: &Frequency) -> String {
    let ghz = |hz: u64| format!("{:.2}", hz as f64 / 1e9);
    format!(
        "CPU {} frequency: {} to {}, mean {} GHz",
        of.cpu,
        ghz(of.min_hz),
        ghz(of.max_hz),
        ghz(of.mean_hz)
    )
}

#[cfg(test)]
mod tests {
    use rtproof_host::CpuList;

    use crate::page::sample;

    #[test]
    fn without_housekeeping_cpus_none_is_named() {
        let mut run = sample::run(&sample::Shape::default());
        run.options.housekeeping = CpuList::default();
        assert!(super::place(&run).starts_with("a measured CPU"));
        run.options.housekeeping = CpuList::new([0]);
        assert_eq!(super::place(&run), "a housekeeping CPU");
    }
}
