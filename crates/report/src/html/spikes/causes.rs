//! The table of causes, by CPU as well, and what would remove them.

use maud::{Markup, html};
use rtproof_judge::{
    Finding,
    causes::{CauseRow, Spikes},
    units,
};

use super::super::{
    findings::{Group, remedy_shown},
    parts,
};
use crate::{
    spike::{self, percent},
    svg::px,
};

/// Columns of the table.
const COLUMNS: [&str; 8] = [
    "cause",
    "who",
    "#spikes",
    "#the largest in",
    "#worst, µs",
    "#sum, µs",
    "share of the lateness",
    "uncertain",
];

/// Most causes whose remedies are shown.
const REMEDIES_MAX: usize = 8;

/// Most causes in a table.
const ROWS_MAX: usize = 50;

fn shown(spikes: &Spikes) -> &[CauseRow] {
    &spikes.causes[..spikes.causes.len().min(ROWS_MAX)]
}

/// The causes, the largest sum first.
pub(super) fn table(spikes: &Spikes) -> Markup {
    html! {
        table.causes {
            (parts::head(COLUMNS))
            tbody { @for row in shown(spikes) { (cause(row, spikes.sum_ns)) } }
        }
        @let more = spikes.causes.len() - shown(spikes).len();
        @if more > 0 { p.quiet { "The record holds " (more) " more, each with a smaller sum." } }
    }
}

fn cause(row: &CauseRow, sum_ns: u64) -> Markup {
    // A share of a bar that is always there; what is no number is none.
    let part = row.sum_ns as f64 / sum_ns.max(1) as f64 * 100.0;
    html! {
        tr {
            th.wrap scope="row" { (row.title) }
            td.wrap {
                (if row.culprit.is_empty() { parts::NONE } else { &row.culprit })
                @if let Some(owner) = &row.owner { br; small { (owner) } }
            }
            td.num { (units::grouped(row.count)) }
            td.num { (units::grouped(row.top)) }
            td.num { (spike::us_number(row.worst_ns)) }
            td.num { (spike::us_number(row.sum_ns)) }
            td {
                span.share aria-hidden="true" {
                    i class=(spike::class(&row.cause))
                        style=(format!("width:{}%", px(part.clamp(0.0, 100.0)))) {}
                }
                (percent(row.sum_ns, sum_ns))
            }
            td { (if row.ambiguous_ns == 0 { parts::NONE.into() } else {
                percent(row.ambiguous_ns, row.sum_ns)
            }) }
        }
    }
}

/// The same for each CPU.
pub(super) fn by_cpu(spikes: &Spikes) -> Markup {
    let columns = ["cause", "who", "#CPU", "#spikes", "#worst, µs", "#sum, µs"];
    let table = html! {
        table {
            (parts::head(columns))
            tbody {
                @for row in shown(spikes) {
                    @for of in &row.cpus {
                        tr {
                            th scope="row" { (row.title) }
                            td.wrap {
                                (if row.culprit.is_empty() { parts::NONE } else { &row.culprit })
                            }
                            td.num { (of.cpu) }
                            td.num { (units::grouped(of.count)) }
                            td.num { (spike::us_number(of.worst_ns)) }
                            td.num { (spike::us_number(of.sum_ns)) }
                        }
                    }
                }
            }
        }
    };
    html! {
        details.numbers {
            summary { "By CPU" }
            (parts::scroll("Causes by CPU", &table))
        }
    }
}

/// What would remove the largest of them.
pub(super) fn remedies(spikes: &Spikes, findings: &[Finding]) -> Markup {
    let has = |row: &&CauseRow| !row.remedies.is_empty() || !row.checks.is_empty();
    let rows: Vec<&CauseRow> = spikes.causes.iter().filter(has).take(REMEDIES_MAX).collect();
    html! {
        @if !rows.is_empty() {
            h3 { "What would remove them" }
            @for row in rows {
                article.finding {
                    h4 {
                        (row.title)
                        @if !row.culprit.is_empty() { ": " strong { (row.culprit) } }
                        span.quiet { " " (percent(row.sum_ns, spikes.sum_ns)) }
                    }
                    @for remedy in &row.remedies { (remedy_shown(remedy)) }
                    (checks(&row.checks, findings))
                }
            }
        }
    }
}

/// Checks whose knobs remove a cause; where the page has the finding, a link to it.
pub(super) fn checks(checks: &[String], findings: &[Finding]) -> Markup {
    html! {
        @if !checks.is_empty() {
            p.quiet {
                "Checks: "
                @for (i, check) in checks.iter().enumerate() {
                    @if i > 0 { ", " }
                    @if findings.iter().any(|finding| finding.check == *check && is_card(finding)) {
                        a href={ "#check-" (check) } { code { (check) } }
                    } @else { code { (check) } }
                }
            }
        }
    }
}

/// Whether the page shows a finding at length, so that there is something to link to.
fn is_card(finding: &Finding) -> bool {
    !matches!(Group::of(finding), Group::Skipped | Group::Fine)
}
