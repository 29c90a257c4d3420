//! The second sheet of a printed report: causes, fixes, conditions, and where to sign. Only
//! printed: on screen the page has all of it at length.
//!
//! Every list is cut to a number of lines and every line to two, so that verdict, histogram and
//! this fit two sheets of A4, whatever names a machine has.

use maud::{Markup, html};
use rtproof_judge::{
    Finding, Report, Status,
    causes::{Class, Spikes, classes},
    units,
};

use super::{findings, parts};
use crate::spike;

/// Lines of each list.
const LINES_MAX: usize = 8;
/// Characters of a line: two lines of the sheet.
const CHARACTERS_MAX: usize = 150;

pub(super) fn section(report: &Report) -> Markup {
    html! {
        section.paper #paper {
            @if let Some(spikes) = &report.spikes { (causes(spikes)) }
            (fixes(report))
            (conditions(report))
            (signature(report))
        }
    }
}

/// As much of a text as two lines hold.
fn short(text: &str) -> String {
    match text.char_indices().nth(CHARACTERS_MAX) {
        None => text.into(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

fn more(all: usize) -> Markup {
    html! {
        @if let Some(more @ 1..) = all.checked_sub(LINES_MAX) {
            p.quiet { (more) " more in the report." }
        }
    }
}

fn causes(spikes: &Spikes) -> Markup {
    let rows = &spikes.causes;
    let table = parts::table(
        rows.iter().take(LINES_MAX),
        &[
            ("~cause", &|row| html! { (short(&row.title)) }),
            ("~who", &|row| {
                html! {
                    @if row.culprit.is_empty() { (parts::NONE) } @else { (short(&row.culprit)) }
                }
            }),
            ("#spikes", &|row| html! { (units::grouped(row.count)) }),
            ("#worst, µs", &|row| html! { (spike::us_number(row.worst_ns)) }),
            ("#share", &|row| html! { (spike::percent(row.sum_ns, spikes.sum_ns)) }),
        ],
    );
    html! {
        h2 { "Causes" }
        @if rows.is_empty() {
            p { "No wake-up was late enough to look for a cause." }
        } @else { (table) (more(rows.len())) }
    }
}

/// Findings that ask for a change: first those of the largest causes, then by what they cost.
fn fixes(report: &Report) -> Markup {
    let classes = report.spikes.as_ref().map(classes).unwrap_or_default();
    let place = |finding: &Finding| {
        let of =
            |class: &Class<'_>| class.rows.iter().any(|row| row.checks.contains(&finding.check));
        classes.iter().position(of).unwrap_or(usize::MAX)
    };
    let asks = |finding: &&Finding| {
        matches!(findings::Group::of(finding), findings::Group::Change(_))
            && finding.status == Status::Bad
    };
    let mut all: Vec<&Finding> = report.findings.iter().filter(asks).collect();
    all.sort_by_key(|finding| (place(finding), finding.impact));
    html! {
        h2 { "Fixes" }
        @if all.is_empty() { p { "No check found anything that must be changed." } }
        ul {
            @for finding in all.iter().take(LINES_MAX) {
                li {
                    code { (finding.check) } ": " (short(&finding.summary))
                    @if let Some(remedy) = finding.remedies.first() {
                        br; code { (short(&remedy.to_string())) }
                    }
                }
            }
        }
        (more(all.len()))
    }
}

fn conditions(report: &Report) -> Markup {
    let (machine, options) = (&report.machine, &report.options);
    let or = |text: &Option<String>| text.as_deref().map_or(parts::NONE.into(), short);
    let loads = match options.phases.as_slice() {
        [] => vec!["none of rtproof's"],
        phases => phases.iter().map(|phase| phase.name.as_str()).collect(),
    };
    let rows = [
        ("machine", or(&machine.model)),
        ("processor", or(&machine.cpu_model)),
        ("kernel", format!("{}, {}", or(&machine.kernel), short(&machine.preemption))),
        ("hypervisor", machine.hypervisor.as_deref().map_or("none".into(), short)),
        ("clock", or(&machine.clocksource)),
        ("measured", short(&units::cpus(&options.cpus))),
        (
            "thread",
            format!(
                "{}, priority {}, every {}",
                parts::policy(options.policy),
                options.priority,
                units::ns(options.period_ns)
            ),
        ),
        ("load phases", short(&loads.join(", "))),
        ("started", parts::wall_clock(report.run.started_realtime_ns)),
        ("lasted", report.duration_text()),
        ("changed meanwhile", changed(report)),
    ];
    html! {
        h2 { "Conditions" }
        dl { @for (name, value) in rows { dt { (name) } dd { (value) } } }
    }
}

fn changed(report: &Report) -> String {
    match report.changes.as_slice() {
        [] => "no setting that was read".into(),
        changes => {
            let names: Vec<&str> = changes.iter().take(4).map(|c| c.key.as_str()).collect();
            let more = if changes.len() > names.len() { ", ..." } else { "" };
            short(&format!("{}: {}{more}", changes.len(), names.join(", ")))
        }
    }
}

fn signature(report: &Report) -> Markup {
    html! {
        p.run {
            strong { (report.verdict.answer.text()) }
            ". Run " code { (report.run.run_id) } ", rtproof " (report.run.tool_version)
            ". The record holds every number of this sheet; " code { "rtproof report RECORD" }
            " judges it again."
        }
        div.sign {
            @for what in ["Place, date", "Name", "Signature"] { p { (what) } }
        }
    }
}
