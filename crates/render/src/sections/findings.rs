//! The open findings, grouped by what the reader has to do about them.

use std::io::{self, Write};

use maud::{Markup, html};

use rtproof_host::facts::copied::MachineCopy;
use rtproof_judge::{
    Finding, Remedy, Report, Status, When,
    report::MachineSummary,
    units,
    unknowns::{UnknownGroup, UnknownReason, unknown_groups},
};
use rtproof_results::IntentShown;

use crate::text::{BAD, BOLD, DIM, GOOD, Terminal, TextStyle, WARN, title_line, wrapped};

/// Bad findings of a group in sight; the others are closed.
const SHOWN_MAX: usize = 5;

/// What a finding asks of the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FindingGroup {
    /// A change, which takes effect then.
    Change(When),
    Unknown,
    /// Nothing: the user leaves it out.
    Skipped,
    Fine,
}

impl FindingGroup {
    const SHOWN: [Self; 6] = [
        Self::Change(When::Now),
        Self::Change(When::Login),
        Self::Change(When::Boot),
        Self::Change(When::Kernel),
        Self::Change(When::Firmware),
        Self::Unknown,
    ];

    /// Group of a finding.
    pub(crate) fn of(finding: &Finding) -> Self {
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

pub(crate) fn section(report: &Report) -> Markup {
    let of = |group: FindingGroup| -> Vec<&Finding> {
        let mut of: Vec<_> =
            report.findings.iter().filter(|f| FindingGroup::of(f) == group).collect();
        of.sort_by_key(|finding| (finding.status, finding.impact));
        of
    };
    html! {
        section #findings {
            h2 { "What stands in the way" }
            p { (counts(report)) }
            @for note in report.machine.copy.iter().flat_map(|copy| &copy.notes) {
                p.copy { (note) }
            }
            @for group in FindingGroup::SHOWN {
                @let findings = of(group);
                @if !findings.is_empty() {
                    h3 { (group.title()) " " span.count { (findings.len()) } }
                    p.quiet { (group.text()) }
                    @let (bad, others): (Vec<&Finding>, Vec<&Finding>) =
                        findings.into_iter().partition(|f| f.status == Status::Bad);
                    @let bad: Vec<Markup> = bad.into_iter().map(card).collect();
                    (crate::html::first_rows(&bad, SHOWN_MAX, "more"))
                    @if group == FindingGroup::Unknown {
                        (unknown_cards(report))
                    } @else if !others.is_empty() {
                        details.fine {
                            summary { (others.len()) " " (crate::html::status(others[0].status).2) }
                            @for finding in others { (card(finding)) }
                        }
                    }
                }
            }
            @for group in [FindingGroup::Skipped, FindingGroup::Fine] {
                @let fine = of(group);
                @if !fine.is_empty() {
                    details.fine {
                        summary { (group.title()) " (" (fine.len()) ")" }
                        (crate::html::scroll(group.title(), &fine_table(&fine)))
                    }
                }
            }
        }
    }
}

/// Unknown findings by their reason, with what would make them known.
fn unknown_cards(report: &Report) -> Markup {
    let groups = unknown_groups(&report.findings, report.machine.copy.as_ref());
    html! {
        @for group in groups {
            details.fine {
                summary {
                    (group.checks.len()) " unknown"
                    @if !group.text.is_empty() { ": " (group.text) }
                }
                @if let Some(next) = &group.next { p.quiet { "To know: " code { (next) } } }
                @for finding in of_group(&report.findings, &group) { (card(finding)) }
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
    let (class, ..) = crate::html::status(finding.status);
    html! {
        details class={ "finding " (class) } {
            summary {
                (crate::html::status_mark(finding.status)) " " code { (finding.check) }
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
            (crate::html::table_head(["status", "check", "what is so", "read from"]))
            tbody {
                @for finding in findings {
                    tr {
                        td { (crate::html::status_mark(finding.status)) }
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

// Findings as text, by what the reader has to do: now, at the next boot, in the firmware; the
// most effective first. Unknown answers are grouped by reason, in few lines.

/// Most bad findings in the head of a run: the audit has the rest.
const HEAD_MAX: usize = 8;

/// Most lines of evidence for one finding.
const EVIDENCE_MAX: usize = 12;

/// Longest name that makes the others' column wider.
const NAME_MAX: usize = 24;

/// How much is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FindingDetail {
    /// What is good and what does not apply as well.
    pub all: bool,
    /// For each finding what was read, why it matters and what the change costs.
    pub verbose: bool,
}

/// An audit on its own.
pub fn audit(
    to: &mut Terminal,
    machine: &MachineSummary,
    intent: &IntentShown,
    findings: &[Finding],
    detail: FindingDetail,
) -> io::Result<()> {
    title_line(to, machine)?;
    wrapped(to, &format!("{BOLD}For{BOLD:#}      "), "         ", &intent.line())?;
    if machine.container.is_some() && findings.iter().any(Finding::is_open) {
        let text = "change /proc/sys, /sys and boot parameters there: a container sees them";
        wrapped(to, &format!("{BOLD}Host{BOLD:#}     "), "         ", text)?;
    }
    summary(to, findings)?;
    groups(to, findings, detail)?;
    unknown(to, findings, machine.copy.as_ref(), detail)?;
    skipped(to, findings)?;
    if detail.all {
        settled(to, findings, detail)?;
    }
    if !detail.verbose && findings.iter().any(Finding::is_open) {
        let text = "Details: rtproof check -v, or rtproof check explain ID";
        writeln!(to, "{DIM}{text}{DIM:#}")?;
    }
    Ok(())
}

/// Findings about one application.
pub fn application(
    to: &mut Terminal,
    head: &str,
    findings: &[Finding],
    detail: FindingDetail,
) -> io::Result<()> {
    writeln!(to, "\n{BOLD}Application{BOLD:#} {head}")?;
    summary(to, findings)?;
    groups(to, findings, detail)?;
    unknown(to, findings, None, detail)?;
    skipped(to, findings)?;
    if detail.all { settled(to, findings, detail) } else { Ok(()) }
}

/// One line of counts.
pub(crate) fn summary(to: &mut Terminal, findings: &[Finding]) -> io::Result<()> {
    let counted = || findings.iter().filter(|finding| finding.skipped.is_none());
    let count = |status| counted().filter(|finding| finding.status == status).count();
    let mut parts: Vec<String> = [
        (Status::Good, "good"),
        (Status::Bad, "bad"),
        (Status::Doubtful, "doubtful"),
        (Status::Unknown, "unknown"),
        (Status::NotApplicable, "not applicable"),
    ]
    .into_iter()
    .filter_map(|(status, name)| match count(status) {
        0 => None,
        n => Some(format!("{n} {name}")),
    })
    .collect();
    let skipped = findings.len() - counted().count();
    parts.extend((skipped > 0).then(|| format!("{skipped} skipped")));
    writeln!(to, "{BOLD}Checks{BOLD:#}   {}: {}", findings.len(), parts.join(", "))
}

/// The worst findings, as many as fit before a measurement.
pub(crate) fn head(to: &mut Terminal, findings: &[Finding]) -> io::Result<()> {
    let mut bad: Vec<&Finding> =
        findings.iter().filter(|f| f.is_open() && f.status == Status::Bad).collect();
    bad.sort_by_key(|finding| (finding.impact, finding.when));
    let width = column(&bad[..bad.len().min(HEAD_MAX)]);
    for finding in bad.iter().take(HEAD_MAX) {
        line(to, finding, width)?;
    }
    if bad.len() > HEAD_MAX {
        let more = bad.len() - HEAD_MAX;
        writeln!(to, "  {DIM}and {more} more bad findings: rtproof check{DIM:#}")?;
    }
    Ok(())
}

/// The open findings, by what has to be done.
fn groups(to: &mut Terminal, findings: &[Finding], detail: FindingDetail) -> io::Result<()> {
    for when in [When::Now, When::Login, When::Boot, When::Kernel, When::Firmware] {
        let mut of: Vec<&Finding> =
            findings.iter().filter(|finding| finding.is_open() && finding.when == when).collect();
        of.sort_by_key(|finding| (finding.status, finding.impact));
        let Some(worst) = of.first() else { continue };
        let bad = of.iter().filter(|finding| finding.status == Status::Bad).count();
        let counts = [(bad, "bad"), (of.len() - bad, "doubtful")];
        let counts: Vec<String> =
            counts.iter().filter(|(n, _)| *n > 0).map(|(n, name)| format!("{n} {name}")).collect();
        writeln!(to)?;
        let (title, impact) = (when.title(), worst.impact.text());
        let counts = counts.join(", ");
        writeln!(to, "{BOLD}{title}{BOLD:#}: {counts} {DIM}(worst costs {impact}){DIM:#}")?;
        let width = column(&of);
        for (finding, same) in by_fact(&of, detail) {
            one(to, finding, width, detail)?;
            if !same.is_empty() {
                let next = " ".repeat(11 + width + 2);
                let text = format!("{} (the same fact; each: -v)", same.join(", "));
                let (first, next) = (format!("{next}{DIM}also:{DIM:#} "), format!("{next}      "));
                wrapped(to, &first, &next, &text)?;
            }
        }
    }
    Ok(())
}

/// Checks that see one fact of a machine, those with the widest fix first.
const FACTS: [&[&str]; 2] = [
    &["thp", "thp-defrag", "khugepaged"],
    &["pm-qos-resume", "cpu-dma-latency", "cpuidle-states", "kvm-guest"],
];

/// Findings, each with the ids of those about the same fact; with all detail each by itself.
fn by_fact<'a>(of: &[&'a Finding], detail: FindingDetail) -> Vec<(&'a Finding, Vec<&'a str>)> {
    // The idle states are one fact only in a guest whose CPU may halt: elsewhere they are several.
    let halts = of.iter().any(|finding| finding.summary.contains("a guest's CPU may halt"));
    let fact = |finding: &Finding| {
        let at = FACTS.iter().position(|ids| ids.contains(&finding.check.as_str()))?;
        (!detail.verbose && (at == 0 || halts)).then_some(at)
    };
    let place = |finding: &Finding| {
        let ids = FACTS.into_iter().flatten();
        ids.copied().position(|id| id == finding.check)
    };
    let mut shown: Vec<(&Finding, Vec<&str>)> = Vec::new();
    for &finding in of {
        let fact_here = fact(finding);
        match shown.iter_mut().find(|(lead, _)| fact_here.is_some() && fact(lead) == fact_here) {
            None => shown.push((finding, Vec::new())),
            Some((lead, same)) => {
                let is_first = lead.status == finding.status && place(finding) < place(lead);
                let other = if is_first { std::mem::replace(lead, finding) } else { finding };
                same.push(&other.check);
            }
        }
    }
    shown
}

/// Width of the column of names.
fn column(findings: &[&Finding]) -> usize {
    findings.iter().map(|finding| finding.check.len()).max().unwrap_or(0).min(NAME_MAX)
}

fn line(to: &mut Terminal, finding: &Finding, width: usize) -> io::Result<()> {
    let (word, style) = word(finding.status);
    let name = &finding.check;
    let first = format!("  {style}{word:<8}{style:#} {name:<width$}  ");
    wrapped(to, &first, &" ".repeat(11 + width + 2), &finding.summary)
}

fn one(
    to: &mut Terminal,
    finding: &Finding,
    width: usize,
    detail: FindingDetail,
) -> io::Result<()> {
    line(to, finding, width)?;
    let next = " ".repeat(11 + width + 2);
    let mut more = |name: &str, text: &str| {
        wrapped(to, &format!("{next}{DIM}{name}:{DIM:#} "), &format!("{next}     "), text)
    };
    if detail.verbose {
        if let Some(cpus) = &finding.cpus {
            more("on ", &units::cpus(cpus))?;
        }
        for evidence in finding.evidence.iter().take(EVIDENCE_MAX) {
            more("saw", &format!("{}: {}", evidence.path, evidence.value))?;
        }
        if finding.evidence.len() > EVIDENCE_MAX {
            let rest = finding.evidence.len() - EVIDENCE_MAX;
            more("saw", &format!("{rest} more lines: --json has all"))?;
        }
        more("why", &finding.why)?;
        if let Some(trade_off) = &finding.trade_off {
            more("but", trade_off)?;
        }
        more("src", &finding.source)?;
    }
    // The first is the one to take; the others are other ways.
    let shown = if detail.verbose { finding.remedies.len() } else { 1 };
    let hidden = finding.remedies.len().saturating_sub(shown);
    for remedy in finding.remedies.iter().take(shown) {
        let also = if hidden > 0 { format!(" (and {hidden} more: -v)") } else { String::new() };
        more("fix", &format!("{remedy}{also}"))?;
    }
    Ok(())
}

/// Most ids of a group of unknown findings.
const IDS_MAX: usize = 40;

/// Unknown answers by reason: most share a few.
fn unknown(
    to: &mut Terminal,
    findings: &[Finding],
    copy: Option<&MachineCopy>,
    detail: FindingDetail,
) -> io::Result<()> {
    let groups = unknown_groups(findings, copy);
    let count: usize = groups.iter().map(|group| group.checks.len()).sum();
    if count == 0 {
        return Ok(());
    }
    writeln!(to, "\n{BOLD}Unknown{BOLD:#}: {count}")?;
    for (at, group) in groups.iter().enumerate() {
        let next = " ".repeat(11);
        if detail.verbose || group.reason == UnknownReason::Own {
            let of = of_group(findings, group);
            let width = column(&of);
            of.into_iter().try_for_each(|finding| match detail.verbose {
                true => one(to, finding, width, detail),
                false => line(to, finding, width),
            })?;
        } else {
            let first = format!("  {WARN}{:<8}{WARN:#} ", "UNKNOWN");
            let more = group.checks.len().saturating_sub(IDS_MAX);
            let more = if more > 0 { format!(", and {more} more: -v") } else { String::new() };
            let ids = group.checks[..group.checks.len().min(IDS_MAX)].join(", ");
            let text = format!("{}: {}: {ids}{more}", group.checks.len(), group.text);
            wrapped(to, &first, &next, &text)?;
        }
        let is_last = groups.get(at + 1).is_none_or(|after| after.next != group.next);
        if let Some(command) = group.next.as_ref().filter(|_| is_last) {
            wrapped(to, &format!("{next}{DIM}to know:{DIM:#} "), &next, command)?;
        }
    }
    Ok(())
}

fn of_group<'a>(findings: &'a [Finding], group: &UnknownGroup) -> Vec<&'a Finding> {
    let is_of = |finding: &&Finding| {
        finding.status == Status::Unknown && group.checks.contains(&finding.check)
    };
    findings.iter().filter(is_of).collect()
}

/// What the user left out, with the reason.
fn skipped(to: &mut Terminal, findings: &[Finding]) -> io::Result<()> {
    let of = || findings.iter().filter_map(|f| Some((f, f.skipped.as_ref()?)));
    if of().next().is_none() {
        return Ok(());
    }
    writeln!(to, "\n{BOLD}Skipped{BOLD:#}")?;
    for (finding, reason) in of() {
        let (word, _) = word(finding.status);
        let first = format!("  {DIM}{word:<8}{DIM:#} {}  ", finding.check);
        wrapped(to, &first, &" ".repeat(11), &format!("{reason} ({})", finding.summary))?;
    }
    Ok(())
}

/// What is good, and what does not apply.
fn settled(to: &mut Terminal, findings: &[Finding], detail: FindingDetail) -> io::Result<()> {
    for (status, name) in [(Status::Good, "Good"), (Status::NotApplicable, "Not applicable")] {
        let is_of = |finding: &&Finding| finding.status == status && finding.skipped.is_none();
        let of: Vec<&Finding> = findings.iter().filter(is_of).collect();
        if of.is_empty() {
            continue;
        }
        writeln!(to, "\n{BOLD}{name}{BOLD:#}: {}", of.len())?;
        let width = column(&of);
        for finding in of {
            one(to, finding, width, detail)?;
        }
    }
    Ok(())
}

/// A status as a word, padded names aside.
pub const fn word(status: Status) -> (&'static str, TextStyle) {
    match status {
        Status::Bad => ("BAD", BAD),
        Status::Doubtful => ("DOUBTFUL", WARN),
        Status::Unknown => ("UNKNOWN", WARN),
        Status::Good => ("GOOD", GOOD),
        Status::NotApplicable => ("N/A", DIM),
    }
}

#[cfg(test)]
mod tests {
    use rtproof_judge::{Impact, Remedy};

    use super::*;
    use crate::text::Glyphs;

    fn finding(check: &str, status: Status, summary: &str) -> Finding {
        Finding {
            check: check.into(),
            status,
            summary: summary.into(),
            wanted: String::new(),
            cpus: None,
            evidence: Vec::new(),
            why: String::new(),
            source: String::new(),
            remedies: vec![Remedy::Manual { text: format!("mend {check}") }],
            when: When::Now,
            impact: Impact::Tens,
            trade_off: None,
            skipped: None,
        }
    }

    fn shown(findings: &[Finding], verbose: bool) -> String {
        let mut sheet = Terminal::new(100, Glyphs::BLOCKS);
        groups(&mut sheet, findings, FindingDetail { all: false, verbose }).unwrap();
        sheet.shown().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn one_fact_is_one_finding_with_the_ids_of_the_others() {
        let halts = "a guest's CPU may halt, and the host decides when it wakes up";
        let all = ["cpuidle-states", "cpu-dma-latency", "pm-qos-resume", "kvm-guest"];
        let mut found: Vec<Finding> =
            all.iter().map(|id| finding(id, Status::Doubtful, halts)).collect();
        found.push(finding("khugepaged", Status::Doubtful, "on"));
        found.push(finding("thp", Status::Doubtful, "always"));
        found.push(finding("thp-defrag", Status::Bad, "always"));
        let text = shown(&found, false);
        assert_eq!(text.matches(" mend ").count(), 2, "{text}");
        assert!(text.contains(" cpuidle-states, cpu-dma-latency, kvm-guest (the same"), "{text}");
        assert!(text.contains("mend pm-qos-resume"), "{text}");
        // What is bad leads what is doubtful.
        assert!(text.contains("mend thp-defrag") && text.contains("khugepaged, thp ("), "{text}");
        assert!(text.contains("1 bad, 6 doubtful"), "all are counted: {text}");
        assert_eq!(shown(&found, true).matches(" mend ").count(), 7);
    }

    #[test]
    fn idle_states_of_a_real_machine_are_facts_of_their_own() {
        let found = ["cpuidle-states", "cpu-dma-latency"]
            .map(|id| finding(id, Status::Doubtful, "C6, 133 µs"));
        assert_eq!(shown(&found, false).matches(" mend ").count(), 2);
    }
}
