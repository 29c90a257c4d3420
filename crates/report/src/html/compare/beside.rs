//! What stands beside the latencies: why wake-ups were late, and what differs between the runs.

use maud::{Markup, html};
use rtproof_judge::{
    compare::{CauseCell, CauseLine, Comparison},
    units,
};

use super::{super::parts, page::Page};

/// Lines shown; of facts, the others are folded away.
const SHOWN: usize = 25;
/// Causes in sight; the others are closed.
const FIRST: usize = 8;

/// Causes; nothing where no run has its spikes explained.
pub(super) fn causes(comparison: &Comparison) -> Markup {
    if comparison.causes.is_empty() {
        return Markup::default();
    }
    let cell = |cell: Option<CauseCell>| match cell {
        None => html! { td.num { small { "not explained" } } },
        Some(CauseCell { count: 0, .. }) => html! { td.num { "0" } },
        Some(cell) => html! {
            td.num {
                (units::grouped(cell.count))
                small.interval {
                    (units::per_hour(cell.per_hour)) ", worst " (units::ns(cell.worst_ns))
                }
            }
        },
    };
    let table = |lines: &[CauseLine]| {
        html! {
            table {
                thead { tr {
                    th { "cause" } th { "who" }
                    @for group in &comparison.groups { th.num { (group.label) } }
                } }
                tbody {
                    @for line in lines {
                        tr {
                            th.wrap scope="row" { (line.title) }
                            td.wrap { (line.culprit) }
                            @for one in &line.cells { (cell(*one)) }
                        }
                    }
                }
            }
        }
    };
    let all = &comparison.causes[..comparison.causes.len().min(SHOWN)];
    let (first, rest) = all.split_at(all.len().min(FIRST));
    html! {
        section #causes {
            h2 { "Why they were late" }
            p { "Spikes in which each cause has a share. What is a spike follows each run." }
            (parts::scroll("Causes", &table(first)))
            @if !rest.is_empty() {
                details.more {
                    summary { (rest.len()) " more" }
                    (parts::scroll("More causes", &table(rest)))
                }
            }
        }
    }
}

pub(super) fn facts(page: &Page<'_>) -> Markup {
    let comparison = page.comparison;
    let unknown: Vec<&str> = page
        .groups
        .iter()
        .filter(|group| group.sides.iter().any(|side| !side.has_facts))
        .map(|group| group.label.as_str())
        .collect();
    let (first, rest) = comparison.facts.split_at(comparison.facts.len().min(SHOWN));
    html! {
        section #facts {
            h2 { "What else differs" }
            @if !unknown.is_empty() {
                p {
                    "Of " (unknown.join(", ")) " the settings of the machine are not known: what "
                    "other tools write does not hold them. A record of rtproof does."
                }
            }
            @if comparison.facts.is_empty() {
                @if unknown.len() < page.groups.len() {
                    p { "Nothing: all settings that rtproof reads are the same." }
                }
            } @else {
                (parts::scroll("Facts that differ", &table(comparison, first)))
                @if !rest.is_empty() {
                    details {
                        summary { (rest.len()) " more" }
                        (parts::scroll("More facts that differ", &table(comparison, rest)))
                    }
                }
            }
        }
    }
}

fn table(comparison: &Comparison, lines: &[rtproof_judge::compare::FactLine]) -> Markup {
    html! {
        table {
            thead { tr {
                th { "fact" }
                @for group in &comparison.groups { th { (group.label) } }
            } }
            tbody {
                @for line in lines {
                    tr {
                        th.wrap scope="row" { code { (line.key) } }
                        @for value in &line.values {
                            td.wrap { @match value {
                                Some(value) => (value),
                                None => small { "not told" },
                            } }
                        }
                    }
                }
            }
        }
    }
}
