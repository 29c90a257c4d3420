//! What stands in the way: the findings, grouped by what the reader has to do about them.

use maud::{Markup, html};
use rtproof_judge::{Finding, Remedy, Report, Status, When, units};

use super::parts;

/// Bad findings of a group in sight; the others are closed.
const SHOWN_MAX: usize = 5;

/// What a finding asks of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// A change, which takes effect then.
    Change(When),
    Unknown,
    /// Nothing: the user leaves it out.
    Skipped,
    Fine,
}

impl Group {
    const SHOWN: [Self; 6] = [
        Self::Change(When::Now),
        Self::Change(When::Login),
        Self::Change(When::Boot),
        Self::Change(When::Kernel),
        Self::Change(When::Firmware),
        Self::Unknown,
    ];

    /// Group of a finding.
    pub(super) fn of(finding: &Finding) -> Self {
        if finding.skipped.is_some() {
            return Self::Skipped;
        }
        match finding.status {
            Status::Good | Status::NotApplicable => Self::Fine,
            Status::Unknown => Self::Unknown,
            Status::Bad | Status::Doubtful => Self::Change(finding.when),
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Change(when) => when.title(),
            Self::Unknown => "Unknown",
            Self::Skipped => "Left out by the user",
            Self::Fine => "Good or not applicable",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Change(When::Now) => {
                "Takes effect at once; lost at the next boot unless made permanent."
            }
            Self::Change(When::Login) => "Takes effect when the application starts again.",
            Self::Change(When::Boot) => "Takes effect at the next boot.",
            Self::Change(When::Kernel | When::Firmware) => "Only a human can do this.",
            Self::Unknown => {
                "Unknown is not a pass: each says what was asked and why it stayed open."
            }
            Self::Skipped | Self::Fine => "",
        }
    }
}

pub(super) fn section(report: &Report) -> Markup {
    let of = |group: Group| -> Vec<&Finding> {
        let mut of: Vec<_> = report.findings.iter().filter(|f| Group::of(f) == group).collect();
        of.sort_by_key(|finding| (finding.status, finding.impact));
        of
    };
    html! {
        section #findings {
            h2 { "What stands in the way" }
            p { (counts(report)) }
            @for group in Group::SHOWN {
                @let findings = of(group);
                @if !findings.is_empty() {
                    h3 { (group.title()) " " span.count { (findings.len()) } }
                    p.quiet { (group.text()) }
                    @let (bad, others): (Vec<&Finding>, Vec<&Finding>) =
                        findings.into_iter().partition(|f| f.status == Status::Bad);
                    @let bad: Vec<Markup> = bad.into_iter().map(card).collect();
                    (parts::first(&bad, SHOWN_MAX, "more"))
                    @if !others.is_empty() {
                        details.fine {
                            summary { (others.len()) " " (parts::status(others[0].status).2) }
                            @for finding in others { (card(finding)) }
                        }
                    }
                }
            }
            @for group in [Group::Skipped, Group::Fine] {
                @let fine = of(group);
                @if !fine.is_empty() {
                    details.fine {
                        summary { (group.title()) " (" (fine.len()) ")" }
                        (parts::scroll(group.title(), &fine_table(&fine)))
                    }
                }
            }
        }
    }
}

fn counts(report: &Report) -> String {
    if report.findings.is_empty() {
        return "No check was made.".into();
    }
    let count = |status| report.findings.iter().filter(|f| f.status == status).count();
    let named = [
        (count(Status::Bad), "bad"),
        (count(Status::Doubtful), "doubtful"),
        (count(Status::Unknown), "unknown"),
        (count(Status::Good), "good"),
        (count(Status::NotApplicable), "not applicable"),
    ];
    let shown: Vec<_> =
        named.iter().filter(|(n, _)| *n > 0).map(|(n, name)| format!("{n} {name}")).collect();
    format!("{} checks: {}.", report.findings.len(), shown.join(", "))
}

fn card(finding: &Finding) -> Markup {
    let (class, ..) = parts::status(finding.status);
    html! {
        details class={ "finding " (class) } {
            summary {
                (parts::status_mark(finding.status)) " " code { (finding.check) }
                @if let Some(cpus) = &finding.cpus { span.quiet { " " (units::cpus(cpus)) } }
                " " span.summary { (finding.summary) }
            }
            // The anchor is within, so that a link to it opens the finding.
            p id={ "check-" (finding.check) } { (finding.why) }
            @if let Some(trade_off) = &finding.trade_off { p.quiet { "But: " (trade_off) } }
            @for remedy in &finding.remedies { (remedy_shown(remedy)) }
            dl {
                    @for evidence in &finding.evidence {
                        dt { code { (evidence.path) } }
                        dd { (evidence.value) }
                    }
                    @if !finding.wanted.is_empty() { dt { "wanted" } dd { (finding.wanted) } }
                    dt { "source" } dd { (finding.source) }
            }
        }
    }
}

/// A remedy, with the part that is typed as code of its own.
pub(super) fn remedy_shown(remedy: &Remedy) -> Markup {
    let (before, code) = match remedy {
        Remedy::Manual { .. }
        | Remedy::Build { .. }
        | Remedy::Hold { .. }
        | Remedy::Changes { .. } => {
            return html! { p.remedy { (remedy) } };
        }
        Remedy::Boot { parameter } => ("Kernel command line:".into(), parameter.clone()),
        Remedy::File { path, line } => (format!("In {path}:"), line.clone()),
        Remedy::Set { .. }
        | Remedy::Unboot { .. }
        | Remedy::Unit { .. }
        | Remedy::Property { .. }
        | Remedy::Task { .. }
        | Remedy::Command { .. } => (String::new(), remedy.to_string()),
    };
    html! {
        @if !before.is_empty() { p.remedy { (before) } }
        pre.code tabindex="0" { code { (code) } }
    }
}

fn fine_table(findings: &[&Finding]) -> Markup {
    html! {
        table {
            (parts::head(["status", "check", "what is so", "read from"]))
            tbody {
                @for finding in findings {
                    tr {
                        td { (parts::status_mark(finding.status)) }
                        th scope="row" { code { (finding.check) } }
                        td.wrap {
                            (finding.summary)
                            @if let Some(reason) = &finding.skipped { " (left out: " (reason) ")" }
                        }
                        td.wrap {
                            @if let Some(evidence) = finding.evidence.first() {
                                code { (evidence.path) }
                            }
                        }
                    }
                }
            }
        }
    }
}
