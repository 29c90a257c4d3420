//! Every run and thread by itself, and how the comparison was made.

use maud::{Markup, html};
use rtproof_judge::{
    compare::{Comparison, Design, RunSummary},
    units,
};

use super::super::parts::{self, NONE};
use crate::compare as words;

/// Runs whose threads are shown without being asked for.
const OPEN_MAX: usize = 12;

pub(super) fn section(comparison: &Comparison) -> Markup {
    let runs: Vec<(&str, &RunSummary)> = comparison
        .groups
        .iter()
        .flat_map(|group| group.runs.iter().map(|run| (group.label.as_str(), run)))
        .collect();
    html! {
        section #runs {
            (parts::scroll("Runs", &list(comparison, &runs)))
            @if runs.len() <= OPEN_MAX {
                h3 { "Threads" }
                (parts::scroll("Threads", &threads(&runs)))
            } @else {
                details {
                    summary { "Threads of all runs" }
                    (parts::scroll("Threads", &threads(&runs)))
                }
            }
        }
    }
}

fn list(comparison: &Comparison, runs: &[(&str, &RunSummary)]) -> Markup {
    let grouped = comparison.design == Design::Paired;
    html! {
        table {
            thead { tr {
                @if grouped { th { "group" } }
                th { "run" } th { "measured by" } th { "start" } th.num { "wake-ups" }
                th.num { "missed" } th.num { "p99.9" } th.num { "max" } th { "file" }
            } }
            tbody {
                @for (group, run) in runs {
                    tr {
                        @if grouped { td { (group) } }
                        th scope="row" { (run.label) }
                        td { (run.tool) }
                        td { (run.started_ns.map_or_else(|| NONE.into(), parts::wall_clock)) }
                        td.num { (units::grouped(run.sampled)) }
                        td.num { (run.missed.map_or_else(|| NONE.into(), units::grouped)) }
                        td.num { (parts::us(run.p999_ns)) }
                        td.num { (words::at_least(run.max_is_at_least)) (parts::us(run.max_ns)) }
                        td.wrap { code { (run.source) } }
                    }
                }
            }
        }
    }
}

fn threads(runs: &[(&str, &RunSummary)]) -> Markup {
    let rows = runs.iter().flat_map(|(_, run)| run.threads.iter().map(move |thread| (run, thread)));
    let none = || NONE.into();
    let table = parts::table(
        rows,
        &[
            ("run", &|(run, _)| html! { (run.label) }),
            ("thread", &|(_, of)| html! { (of.label) }),
            ("#wake-ups", &|(_, of)| html! { (units::grouped(of.sampled)) }),
            ("#missed", &|(_, of)| html! { (of.missed.map_or_else(none, units::grouped)) }),
            ("#min", &|(_, of)| html! { (parts::us(of.min_ns)) }),
            ("#mean", &|(_, of)| html! { (parts::us_mean(of.mean_ns)) }),
            ("#p5", &|(_, of)| html! { (parts::us(of.p5_ns)) }),
            ("#p50", &|(_, of)| html! { (parts::us(of.p50_ns)) }),
            ("#p95", &|(_, of)| html! { (parts::us(of.p95_ns)) }),
            ("#p99", &|(_, of)| html! { (parts::us(of.p99_ns)) }),
            ("#p99.9", &|(_, of)| html! { (parts::us(of.p999_ns)) }),
            ("#p99.99", &|(_, of)| html! { (parts::us(of.p9999_ns)) }),
            ("#max", &|(_, of)| {
                html! { (words::at_least(of.max_is_at_least)) (parts::us(of.max_ns)) }
            }),
        ],
    );
    html! { (table) p.quiet { "Microseconds." } }
}

/// How the comparison was made.
pub(super) fn method(comparison: &Comparison) -> Markup {
    html! {
        section #method {
            dl.words {
                @for (word, text) in words::method(comparison) { dt { (word) } dd { (text) } }
            }
        }
    }
}
