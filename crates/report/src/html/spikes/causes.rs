//! The table of causes, by CPU as well, and what would remove them.

use maud::{Markup, html};
use rtproof_judge::{
    Finding,
    causes::{CauseRow, Spike, Spikes},
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

/// Most causes whose remedies are shown.
const REMEDIES_MAX: usize = 8;
/// Of those in sight.
const REMEDIES_FIRST: usize = 3;

/// Causes in sight; the others are closed.
const FIRST: usize = 8;

/// Most causes in a table.
const ROWS_MAX: usize = 50;

fn shown(spikes: &Spikes) -> &[CauseRow] {
    &spikes.causes[..spikes.causes.len().min(ROWS_MAX)]
}

/// The causes, the largest sum first.
pub(super) fn table(spikes: &Spikes) -> Markup {
    // A share of a bar that is always there; what is no number is none.
    let part = |row: &CauseRow| row.sum_ns as f64 / spikes.sum_ns.max(1) as f64 * 100.0;
    let (first, rest) = shown(spikes).split_at(shown(spikes).len().min(FIRST));
    let part_table = |rows: &[CauseRow]| {
        parts::table_of(
            "causes",
            rows,
            &[
                ("~cause", &|row| html! { (row.title) }),
                ("~who", &|row| {
                    html! { (if row.culprit.is_empty() { parts::NONE } else { &row.culprit })
                    @if let Some(owner) = &row.owner { br; small { (owner) } } }
                }),
                ("#spikes", &|row| html! { (units::grouped(row.count)) }),
                ("#the largest in", &|row| html! { (units::grouped(row.top)) }),
                ("#worst, µs", &|row| html! { (spike::us_number(row.worst_ns)) }),
                ("#sum, µs", &|row| html! { (spike::us_number(row.sum_ns)) }),
                ("share of the lateness", &|row| {
                    html! { span.share aria-hidden="true" {
                        i class=(spike::class(&row.cause))
                            style=(format!("width:{}%", px(part(row).clamp(0.0, 100.0)))) {}
                    }
                    (percent(row.sum_ns, spikes.sum_ns)) }
                }),
                ("uncertain", &|row| {
                    html! { (if row.ambiguous_ns == 0 { parts::NONE.into() } else {
                        percent(row.ambiguous_ns, row.sum_ns)
                    }) }
                }),
            ],
        )
    };
    html! {
        (parts::scroll("Causes of the spikes", &part_table(first)))
        @if !rest.is_empty() {
            details.more {
                summary { (units::count(rest.len(), "cause")) " more" }
                (parts::scroll("More causes of the spikes", &part_table(rest)))
            }
        }
        @let more = spikes.causes.len() - shown(spikes).len();
        @if more > 0 { p.quiet { "The record holds " (more) " more, each with a smaller sum." } }
    }
}

/// The same for each CPU.
pub(super) fn by_cpu(spikes: &Spikes) -> Markup {
    let rows = shown(spikes).iter().flat_map(|row| row.cpus.iter().map(move |of| (row, of)));
    let table = parts::table(
        rows,
        &[
            ("cause", &|(row, _)| html! { (row.title) }),
            ("~who", &|(row, _)| {
                html! { (if row.culprit.is_empty() { parts::NONE } else { &row.culprit }) }
            }),
            ("#CPU", &|(_, of)| html! { (of.cpu) }),
            ("#spikes", &|(_, of)| html! { (units::grouped(of.count)) }),
            ("#worst, µs", &|(_, of)| html! { (spike::us_number(of.worst_ns)) }),
            ("#sum, µs", &|(_, of)| html! { (spike::us_number(of.sum_ns)) }),
        ],
    );
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
            @let rows: Vec<Markup> = rows.iter().map(|row| html! {
                details.finding {
                    summary {
                        (row.title)
                        @if !row.culprit.is_empty() { ": " strong { (row.culprit) } }
                        span.quiet { " " (percent(row.sum_ns, spikes.sum_ns)) }
                    }
                    (removed(row, findings))
                }
            }).collect();
            (parts::first(&rows, REMEDIES_FIRST, "more"))
        }
    }
}

/// What removes a cause: commands, and the checks that found them.
fn removed(row: &CauseRow, findings: &[Finding]) -> Markup {
    html! {
        @for remedy in &row.remedies { (remedy_shown(remedy)) }
        (checks(&row.checks, findings))
    }
}

/// What removes the largest cause of a spike.
pub(super) fn remedy_of(spikes: &Spikes, spike: &Spike, findings: &[Finding]) -> Markup {
    let row = spike.explanation.top().and_then(|top| {
        let is_it = |row: &&CauseRow| row.cause == top.cause && row.culprit == top.culprit;
        spikes.causes.iter().find(is_it)
    });
    let row = row.filter(|row| !row.remedies.is_empty() || !row.checks.is_empty());
    html! {
        @if let Some(row) = row {
            div.remedies { p { strong { "What would remove it" } } (removed(row, findings)) }
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
