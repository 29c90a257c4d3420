//! Where a run stands among machines that are kept for reference.

use maud::{Markup, html};
use rtproof_judge::{compare::Reference, units};

use super::parts;

/// Files that are named in sight.
const SHOWN: usize = 20;

/// The section; nothing where no folder was given.
pub(super) fn section(all: &[Reference]) -> Markup {
    if all.is_empty() {
        return Markup::default();
    }
    let cell = |count: Option<u64>| count.map_or_else(|| parts::NONE.into(), units::grouped);
    html! {
        section #reference {
            h2 { "Among machines of reference" }
            @for one in all {
                ul.reasons { @for line in &one.lines { li { (line) } } }
                (parts::scroll("Ranks", &html! {
                    table {
                        (parts::head([
                            "run", "among", "statistic", "#µs", "#machines", "#lower", "#same",
                            "#higher", "#least, µs", "#middle, µs", "#most, µs",
                        ]))
                        tbody {
                            @for (among, ranks) in groups(one) {
                                @for rank in ranks {
                                    tr {
                                        th scope="row" { (one.run) }
                                        td { (among) }
                                        td { (rank.statistic) }
                                        td.num { (parts::us(Some(rank.value_ns))) }
                                        td.num { (units::grouped(rank.machines)) }
                                        td.num { (cell(rank.lower)) }
                                        td.num { (cell(rank.same)) }
                                        td.num { (cell(rank.higher)) }
                                        td.num { (parts::us(Some(rank.least_ns))) }
                                        td.num { (parts::us(Some(rank.middle_ns))) }
                                        td.num { (parts::us(Some(rank.most_ns))) }
                                    }
                                }
                            }
                        }
                    }
                }))
                @if !one.left_out.is_empty() {
                    details {
                        summary { (units::count(one.left_out.len(), "file")) " not used" }
                        ul {
                            @for out in one.left_out.iter().take(SHOWN) {
                                li { code { (out.file) } ": " (out.why) }
                            }
                            @if one.left_out.len() > SHOWN {
                                li { (one.left_out.len() - SHOWN) " more: --json" }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn groups(one: &Reference) -> [(&str, &[rtproof_judge::compare::Rank]); 2] {
    [("all", &one.all), (one.alike_by.as_deref().unwrap_or_default(), &one.alike)]
}
