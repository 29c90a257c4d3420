//! The index of a matrix as one HTML page: all cells in a picture and a table, with links to their
//! reports.

use maud::{Markup, html};
use rtproof_judge::units;
use rtproof_results::{
    answer::Answer,
    measure::index::{CellResult, Index, SpikeCount, State, ThreadResult},
};

use super::{answer, beside, parts};
use crate::svg::ranges::{self, Range};

/// Rows of the picture, at most: the table has all.
const DRAWN_MAX: usize = 150;
/// Causes of spikes in sight; the others are closed.
const SPIKES_FIRST: usize = 10;

pub fn page(index: &Index, answer: &Answer) -> String {
    let host = index.machine.as_ref().and_then(|machine| machine.hostname.as_deref());
    let host = host.unwrap_or("unknown machine");
    let body = html! {
        (header(index, host))
        main.measured {
            section.sheet #answer {
                p.sentence { (answer.result) }
                (answer::short(answer))
            }
            nav.contents aria-label="Printing" { (parts::print_all()) }
            (picture(index))
            (numbers(index))
            (cells(index))
            (spikes(index))
            (moments(index))
            (changes(index))
            (idle(index))
        }
        footer {
            p { "Made by rtproof " (index.tool_version) ". The numbers are in index.json." }
        }
        (parts::script())
    };
    parts::page(&format!("Measured – {host}"), Some(index.tool_version), &body)
}

fn header(index: &Index, host: &str) -> Markup {
    let line: Vec<String> = index
        .machine
        .iter()
        .flat_map(|machine| {
            let kernel = machine.kernel.as_ref().map(|kernel| format!("Linux {kernel}"));
            let cpus = machine.cpus_online.map(|n| units::count(n, "CPU"));
            let preemption = Some(machine.preemption.clone());
            [machine.model.clone(), machine.cpu_model.clone(), cpus, kernel, preemption]
        })
        .flatten()
        .collect();
    html! {
        header {
            p.tool { "rtproof · measured, not judged" }
            h1 { (host) }
            p { (line.join(" · ")) }
            p.quiet {
                (units::count(index.cells.len(), "cell")) ": " (index.count(State::Done)) " done"
                @for (state, word) in [
                    (State::CutShort, "cut short"),
                    (State::Failed, "failed"),
                    (State::Missing, "not measured"),
                ] {
                    @let n = index.count(state);
                    @if n > 0 { ", " (n) " " (word) }
                }
            }
        }
    }
}

fn name(cell: &CellResult, thread: &ThreadResult) -> String {
    let of = &cell.cell;
    let mut parts = vec![
        format!("{} {}", of.number, thread.workload),
        format!("CPU {}", thread.cpu),
        of.scheduling(),
        units::ns(of.period_ns),
        of.load.clone(),
    ];
    parts.extend((!of.condition.is_empty()).then(|| of.condition.clone()));
    parts.join(" · ")
}

fn picture(index: &Index) -> Markup {
    let title = "From the smallest sample to the largest";
    let mut rows = Vec::new();
    let mut last = None;
    for (cell, thread) in index.rows() {
        let (Some(min), Some(max)) = (thread.samples.min_ns, thread.samples.max_ns) else {
            continue;
        };
        let quantiles = &thread.quantiles;
        rows.push(Range {
            name: name(cell, thread),
            ends_ns: [min, max],
            median_ns: quantiles.p50_ns,
            quantiles_ns: [quantiles.p5_ns, quantiles.p95_ns, quantiles.p99_ns, quantiles.p999_ns],
            begins: last != Some(&thread.workload),
        });
        last = Some(&thread.workload);
    }
    if rows.is_empty() {
        let none = parts::no_chart("chart-ranges", title, "Nothing was measured.");
        return html! { section #ranges { (none) } };
    }
    let all = rows.len();
    rows.truncate(DRAWN_MAX);
    let text = format!(
        "{} of {}: the line goes from the smallest to the largest sample, the large dot is the \
         median, small ones are p5, p95, p99 and p99.9, the ring is the maximum.",
        units::count(rows.len(), "row"),
        all
    );
    html! {
        section #ranges {
            h2 { "All cells" }
            (parts::figure(&parts::Figure {
                title,
                text: &text,
                picture: ranges::draw(&rows, (title, &text)),
                legend: Markup::default(),
                table: None,
            }))
        }
    }
}

fn numbers(index: &Index) -> Markup {
    let rows: Vec<_> = index.rows().collect();
    let part = |value: Option<f64>| value.map_or(parts::NONE.into(), |v| format!("{v:.3}"));
    let table = parts::table(
        rows,
        &[
            ("#cell", &|(cell, _)| {
                html! { a href={ (cell.cell.name) ".html" } { (cell.cell.number) } }
            }),
            ("workload", &|(_, thread)| html! { (thread.workload) }),
            ("of", &|(_, thread)| html! { (thread.quantity.replace('_', "-")) }),
            ("#CPU", &|(_, thread)| html! { (thread.cpu) }),
            ("policy", &|(cell, _)| html! { (cell.cell.scheduling()) }),
            ("#period", &|(cell, _)| html! { (units::ns(cell.cell.period_ns)) }),
            ("load", &|(cell, _)| html! { (cell.cell.load) }),
            ("condition", &|(cell, _)| {
                html! {
                    (cell.cell.condition)
                    @if cell.cell.repetition > 1 { " r" (cell.cell.repetition) }
                }
            }),
            ("#n", &|(_, thread)| html! { (units::grouped(thread.samples.n)) }),
            ("#missed", &|(_, thread)| html! { (units::grouped(thread.missed)) }),
            ("#mean", &|(_, thread)| html! { (parts::us_mean(thread.samples.mean_ns)) }),
            ("#sd", &|(_, thread)| html! { (parts::us_mean(thread.samples.sd_ns)) }),
            ("#rms", &|(_, thread)| html! { (parts::us_mean(thread.samples.rms_ns)) }),
            ("#min", &|(_, thread)| html! { (parts::us(thread.samples.min_ns)) }),
            ("#p5", &|(_, thread)| html! { (parts::us(thread.quantiles.p5_ns)) }),
            ("#p50", &|(_, thread)| html! { (parts::us(thread.quantiles.p50_ns)) }),
            ("#p95", &|(_, thread)| html! { (parts::us(thread.quantiles.p95_ns)) }),
            ("#p99", &|(_, thread)| html! { (parts::us(thread.quantiles.p99_ns)) }),
            ("#p99.9", &|(_, thread)| html! { (parts::us(thread.quantiles.p999_ns)) }),
            ("#max", &|(_, thread)| html! { (parts::us(thread.samples.max_ns)) }),
            ("#cv", &|(_, thread)| html! { (part(thread.cv)) }),
            ("#spread", &|(_, thread)| html! { (part(thread.spread)) }),
        ],
    );
    html! {
        section #numbers {
            h2 { "The numbers" }
            p.quiet {
                "Microseconds. sd is about the mean, rms about the nominal value (0 for lateness; \
                 none for a duration); cv = sd / mean, spread = (max - min) / median. A quantile \
                 that the samples do not carry is left open."
            }
            (parts::scroll("The numbers", &table))
            (intervals(index))
        }
    }
}

/// Moments of all cells, folded: nothing is decided by them.
fn moments(index: &Index) -> Markup {
    let rows: Vec<_> = index.rows().collect();
    if rows.is_empty() {
        return Markup::default();
    }
    let rows = rows.into_iter().map(|(cell, thread)| (name(cell, thread), &thread.distribution));
    html! {
        (parts::folded("Moments", &html! {
            section #moments {
                p.quiet { (crate::distribution::CONVENTION) }
                (parts::scroll("Moments", &super::distribution::moments(rows)))
            }
        }))
    }
}

fn intervals(index: &Index) -> Markup {
    let rows: Vec<_> =
        index.rows().filter_map(|(c, t)| Some((c, t, t.intervals.as_ref()?))).collect();
    if rows.is_empty() {
        return Markup::default();
    }
    let us = |ns: Option<f64>| ns.map_or(parts::NONE.into(), |ns| format!("{:.3}", ns / 1000.0));
    let table = parts::table(
        rows,
        &[
            ("#cell", &|(cell, _, _)| html! { (cell.cell.number) }),
            ("workload", &|(_, thread, _)| html! { (thread.workload) }),
            ("#CPU", &|(_, thread, _)| html! { (thread.cpu) }),
            ("#n", &|(_, _, of)| html! { (units::grouped(of.n)) }),
            ("#mean", &|(_, _, of)| html! { (us(of.mean_ns)) }),
            ("#sd", &|(_, _, of)| html! { (us(of.sd_ns)) }),
            ("#rms", &|(_, _, of)| html! { (us(of.rms_ns)) }),
            ("#min", &|(_, _, of)| html! { (parts::us(of.min_ns)) }),
            ("#max", &|(_, _, of)| html! { (parts::us(of.max_ns)) }),
        ],
    );
    html! {
        h3 { "Intervals from one wake-up to the next, µs" }
        (parts::scroll("Intervals", &table))
    }
}

fn changes(index: &Index) -> Markup {
    if index.segments().next().is_none() {
        return Markup::default();
    }
    html! {
        (parts::folded("Threads that were changed from outside", &html! {
            section #changes {
                p.quiet { "Whole seconds; those in which a thread was changed are left out." }
                @let segments = beside::segments(index.segments().map(|s| s.1));
                (parts::scroll("Between the changes", &segments))
            }
        }))
    }
}

fn spikes(index: &Index) -> Markup {
    let rows: Vec<_> =
        index.rows().flat_map(|(c, t)| t.spikes.iter().map(move |s| (c, t, s))).collect();
    if rows.is_empty() {
        return Markup::default();
    }
    let (first, rest) = rows.split_at(rows.len().min(SPIKES_FIRST));
    let table = |rows: &[(&CellResult, &ThreadResult, &SpikeCount)]| {
        parts::table(
            rows,
            &[
                ("#cell", &|(cell, _, _)| html! { (cell.cell.number) }),
                ("workload", &|(_, thread, _)| html! { (thread.workload) }),
                ("#CPU", &|(_, thread, _)| html! { (thread.cpu) }),
                ("~cause", &|(_, _, spike)| html! { (spike.title) }),
                ("~who", &|(_, _, spike)| html! { (spike.culprit) }),
                ("#spikes", &|(_, _, spike)| html! { (units::grouped(spike.count)) }),
                ("#worst, µs", &|(_, _, spike)| html! { (parts::us(Some(spike.worst_ns))) }),
                ("#sum, µs", &|(_, _, spike)| html! { (parts::us(Some(spike.sum_ns))) }),
            ],
        )
    };
    let title = "Spikes by cause";
    html! {
        section #spikes {
            h2 { (title) }
            @for cell in &index.cells {
                @if let Some(spikes) = &cell.spikes {
                    p { "Cell " (cell.cell.number) ": " (spikes) }
                }
            }
            (parts::scroll(title, &table(first)))
            @if !rest.is_empty() {
                details.more {
                    summary { (rest.len()) " more" }
                    (parts::scroll("More spikes by cause", &table(rest)))
                }
            }
        }
    }
}

fn idle(index: &Index) -> Markup {
    let cells: Vec<_> = index.cells.iter().filter(|cell| !cell.beside.idle.is_empty()).collect();
    if cells.is_empty() {
        return Markup::default();
    }
    html! {
        (parts::folded("Idle states", &html! {
            section #idle {
                @for cell in cells {
                    details.numbers {
                        summary { "Cell " (cell.cell.number) ": " (cell.cell.title()) }
                        (parts::scroll("Idle states", &beside::idle(&cell.beside)))
                    }
                }
            }
        }))
    }
}

fn state(state: State) -> Markup {
    let (class, icon, word) = match state {
        State::Done => ("good", "check", "done"),
        State::CutShort => ("doubtful", "warn", "cut short"),
        State::Failed => ("bad", "cross", "failed"),
        State::Missing => ("idle", "dash", "not measured"),
    };
    html! { span class={ "status " (class) } { (parts::icon(icon)) (word) } }
}

fn cells(index: &Index) -> Markup {
    let table = parts::table(
        &index.cells,
        &[
            ("#cell", &|cell| html! { (cell.cell.number) }),
            ("~what", &|cell| html! { (cell.cell.title()) }),
            ("for", &|cell| html! { (units::duration(cell.cell.duration_ns)) }),
            ("begun", &|cell| {
                html! { (cell.started_realtime_ns.map_or(parts::NONE.into(), parts::wall_clock)) }
            }),
            ("state", &|cell| state(cell.state)),
            ("files", &|cell| {
                html! { @if cell.started_realtime_ns.is_some() {
                    a href={ (cell.cell.name) ".html" } { "report" } " "
                    a href={ (cell.cell.name) ".rtproof" } { "record" }
                } }
            }),
            ("~to know", &|cell| {
                html! { @if let Some(why) = &cell.why { (why) " " }
                @if !cell.notes.is_empty() {
                    details { summary { (units::count(cell.notes.len(), "note")) }
                        ul { @for note in &cell.notes { li { (note) } } }
                    }
                } }
            }),
        ],
    );
    html! {
        section #cells {
            h2 { "Cells" }
            @for condition in &index.conditions {
                @if let Some(before) = &condition.before {
                    p { (condition.name) ": made by " code { (before) }
                        @if let Some(after) = &condition.after {
                            ", taken back by " code { (after) }
                        }
                    }
                }
            }
            (parts::scroll("Cells", &table))
        }
    }
}
