//! What stands in the way: the findings, grouped by what the reader has to do about them.

use maud::{Markup, html};
use rtproof_judge::{Finding, Remedy, Report, Status, units};

use super::parts;

/// What a finding asks of the reader, in the order shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    /// Set something now.
    Now,
    /// Set something and reboot.
    Reboot,
    /// Firmware, kernel build, hypervisor.
    Human,
    /// Think.
    LookInto,
    /// Find out.
    Unknown,
    /// Nothing.
    Fine,
}

impl Group {
    const SHOWN: [Self; 5] = [Self::Now, Self::Reboot, Self::Human, Self::LookInto, Self::Unknown];

    /// Group of a finding: the least effort among its remedies decides.
    pub(super) fn of(finding: &Finding) -> Self {
        match finding.status {
            Status::Good | Status::NotApplicable => return Self::Fine,
            Status::Unknown => return Self::Unknown,
            Status::Bad | Status::Doubtful => {}
        }
        let effort = |remedy: &Remedy| match remedy {
            Remedy::Write { .. } | Remedy::Unit { .. } | Remedy::Command { .. } => Self::Now,
            Remedy::Boot { .. } | Remedy::File { .. } => Self::Reboot,
            Remedy::Manual { .. } => Self::Human,
        };
        finding.remedies.iter().map(effort).min().unwrap_or(Self::LookInto)
    }

    const fn title(self) -> &'static str {
        match self {
            Self::Now => "Change now, at run time",
            Self::Reboot => "Change and reboot",
            Self::Human => "Firmware, kernel build or hypervisor",
            Self::LookInto => "Look into",
            Self::Unknown => "Could not be told",
            Self::Fine => "Good or not applicable",
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Now => "Takes effect at once; lost at the next boot unless made permanent.",
            Self::Reboot => "Takes effect at the next boot.",
            Self::Human => "Only a human can do this.",
            Self::LookInto => "May add latency; it depends on what only you know.",
            Self::Unknown => {
                "Unknown is not a pass: each says what was asked and why it stayed open."
            }
            Self::Fine => "",
        }
    }
}

/// The section.
pub(super) fn section(report: &Report) -> Markup {
    let of = |group: Group| -> Vec<&Finding> {
        let mut of: Vec<_> = report.findings.iter().filter(|f| Group::of(f) == group).collect();
        of.sort_by_key(|finding| finding.status);
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
                    @for finding in findings { (card(finding)) }
                }
            }
            @let fine = of(Group::Fine);
            @if !fine.is_empty() {
                details.fine {
                    summary { (Group::Fine.title()) " (" (fine.len()) ")" }
                    (parts::scroll(Group::Fine.title(), &fine_table(&fine)))
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
        article class={ "finding " (class) } id={ "check-" (finding.check) } {
            h4 {
                (parts::status_mark(finding.status)) " " code { (finding.check) }
                @if let Some(cpus) = &finding.cpus { span.quiet { " " (units::cpus(cpus)) } }
            }
            p.summary { (finding.summary) }
            p { (finding.why) }
            @for remedy in &finding.remedies { (remedy_shown(remedy)) }
            details {
                summary { "Found, wanted, source" }
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
}

/// A remedy, with the part that is typed as code of its own.
fn remedy_shown(remedy: &Remedy) -> Markup {
    let (before, code) = match remedy {
        Remedy::Manual { text } => return html! { p.remedy { (text) } },
        Remedy::Boot { parameter } => ("Kernel command line:".into(), parameter.clone()),
        Remedy::File { path, line } => (format!("In {path}:"), line.clone()),
        Remedy::Write { .. } | Remedy::Unit { .. } | Remedy::Command { .. } => {
            (String::new(), remedy.to_string())
        }
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
                        td.wrap { (finding.summary) }
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
