//! What was seen beside a measurement: threads that were changed from outside, before and after;
//! idle states and frequencies of the measured CPUs.

use maud::{Markup, html};
use rtproof_judge::{
    Report, Spread,
    beside::{Beside, Segment},
    units,
};

use super::parts;

/// The section of a report; nothing where there is nothing to tell.
pub(super) fn section(report: &Report) -> Markup {
    let beside = &report.beside;
    let cpu = |number: u32| {
        let found = report.cpus.iter().find(|cpu| cpu.thread.number == number);
        found.map_or(parts::NONE.into(), |cpu| cpu.thread.cpu.to_string())
    };
    html! {
        section #beside {
            h2 { "Changes from outside, idle states" }
            @if !beside.marks.is_empty() {
                h3 { "Threads that were changed while they measured" }
                (parts::scroll("Changes", &marks(beside, &cpu)))
                h3 { "What they measured between the changes" }
                p.quiet { "Whole seconds; those in which a thread was changed are left out." }
                (parts::scroll("Between the changes", &segments(beside.segments.iter())))
            }
            @if !beside.idle.is_empty() {
                h3 { "Idle states of the measured CPUs" }
                (parts::scroll("Idle states", &idle(beside)))
            }
            @if !beside.frequencies.is_empty() {
                h3 { "Frequency of the measured CPUs" }
                (parts::scroll("Frequency", &frequencies(beside)))
            }
        }
    }
}

fn marks(beside: &Beside, cpu: &impl Fn(u32) -> String) -> Markup {
    html! {
        table {
            (parts::head(["#CPU", "between", "was", "is"]))
            tbody {
                @for mark in &beside.marks {
                    tr {
                        th.num scope="row" { (cpu(mark.thread)) }
                        td { (parts::at(mark.since_ns)) " – " (parts::at(mark.at_ns)) }
                        td { (mark.before) }
                        td { (mark.after) }
                    }
                }
            }
        }
    }
}

/// What threads measured between changes.
pub(super) fn segments<'a>(segments: impl Iterator<Item = &'a Segment>) -> Markup {
    let columns = [
        "#CPU",
        "from",
        "to",
        "with",
        "of",
        "#n",
        "#mean, µs",
        "#sd, µs",
        "#min, µs",
        "#max, µs",
        "#missed",
    ];
    html! {
        table {
            (parts::head(columns))
            tbody {
                @for segment in segments {
                    @let spread = segment.intervals.as_ref().unwrap_or(&segment.samples);
                    tr {
                        th.num scope="row" { (segment.cpu) }
                        td { (parts::at(segment.from_ns)) }
                        td { (parts::at(segment.to_ns)) }
                        td {
                            (segment.policy.as_deref().unwrap_or_default()) " "
                            (segment.cpus.as_deref().unwrap_or_default())
                        }
                        td { (if segment.intervals.is_some() { "intervals" } else { "samples" }) }
                        (numbers(spread))
                        td.num { (units::grouped(segment.missed)) }
                    }
                }
            }
        }
    }
}

fn numbers(spread: &Spread) -> Markup {
    html! {
        td.num { (units::grouped(spread.n)) }
        td.num { (parts::us_mean(spread.mean_ns)) }
        td.num { (parts::us_mean(spread.sd_ns)) }
        td.num { (parts::us(spread.min_ns)) }
        td.num { (parts::us(spread.max_ns)) }
    }
}

/// Idle states as a table.
pub(super) fn idle(beside: &Beside) -> Markup {
    html! {
        table {
            (parts::head(["#CPU", "state", "#exit, µs", "#entered", "#share of the time"]))
            tbody {
                @for of in &beside.idle {
                    tr {
                        th.num scope="row" { (of.cpu) }
                        td { (of.name) }
                        td.num { (of.exit_us.map_or(parts::NONE.into(), units::grouped)) }
                        td.num { (units::grouped(of.entered)) }
                        td.num { (format!("{:.1} %", of.share * 100.0)) }
                    }
                }
            }
        }
    }
}

fn frequencies(beside: &Beside) -> Markup {
    let ghz = |hz: u64| format!("{:.3}", hz as f64 / 1e9);
    html! {
        table {
            (parts::head(["#CPU", "#lowest, GHz", "#mean, GHz", "#highest, GHz", "#readings"]))
            tbody {
                @for of in &beside.frequencies {
                    tr {
                        th.num scope="row" { (of.cpu) }
                        td.num { (ghz(of.min_hz)) }
                        td.num { (ghz(of.mean_hz)) }
                        td.num { (ghz(of.max_hz)) }
                        td.num { (units::grouped(of.readings)) }
                    }
                }
            }
        }
    }
}
