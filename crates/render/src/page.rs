//! The report as a list of sections.

#[cfg(test)]
mod html_tests;
#[cfg(test)]
pub(crate) mod sample;

pub(crate) use crate::html::binary_size;
pub use crate::sections::compare::comparison;
pub use crate::sections::distribution::{distribution, moving};
pub use crate::sections::findings::{FindingDetail, application, audit, word};
pub use crate::sections::imported::{imported_html, imported_text};
pub use crate::sections::latency::measured;
pub use crate::sections::launch::{locks, party, rules};
pub use crate::sections::plan::{entry_place, manual_entries, plan, steps, tokens};
pub use crate::sections::spikes::{explanation, spikes, spikes_of};
pub use crate::sections::summary::{
    answer_again, answer_text, next_text, proofs, reference, verdict,
};
pub use crate::sections::tune::{
    applied, boot_left, exported, parameters, status, taken_back, trial_kernel, undone, verified,
};
pub use crate::text::{
    BAD, BOLD, DIM, GOOD, Glyphs, Terminal, TextPage, TextStyle, WARN, WIDTH_MAX, WIDTH_MIN,
    wrapped,
};

use std::{
    io::{self, Write},
    path::Path,
};

use maud::{Markup, html};

use rtproof_judge::{Finding, Report, report::MachineSummary, units};
use rtproof_record::Run;

use crate::sections::{effects, findings, latency, machine, summary, time};
use crate::svg::bins::TimeBins;
use crate::svg::time::StripRows;
use crate::text::title_line;

// The report of a run as one HTML file: it opens offline, prints, is read without JavaScript and
// by a screen reader, and carries its own numbers as JSON.
//
// The order is the order of questions: is it accepted, what stands in the way, what was measured,
// when, on what machine, how. Sections are in `crate::sections`; pictures come from
// `crate::svg::chart`.

/// What the record itself cannot say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    /// Shown above all in the alarm colour: the record was altered after it was sealed, or is torn.
    pub banner: Option<String>,
    /// The next command, which can be pasted.
    pub next: Option<String>,
}

/// The report of a run as an HTML document.
pub fn render(run: &Run, report: &Report, extra: &Extra) -> String {
    let time = TimeBins::of(run);
    let (rows, columns) = StripRows::of(run, time);
    let pictures = report.spikes.as_ref().map_or_else(Vec::new, |found| {
        let window = |number| run.spikes.as_ref()?.window(number);
        crate::sections::spikes::pictures(found, &report.findings, &window)
    });
    let page = crate::html::ReportPage { run, report, time, rows, columns, pictures };
    let title = format!("{} – {}", report.verdict.answer.text(), crate::html::hostname(report));
    let body = html! {
        a.skip href="#verdict" { "Skip to the verdict" }
        @if let Some(banner) = &extra.banner { (crate::html::banner(banner)) }
        (header(report))
        main.proof {
            (summary::verdict_section(run, report, extra.next.as_deref()))
            (contents(&page))
            @for section in SECTIONS { (section.shown(&page)) }
            (summary::paper_section(report))
        }
        (footer(report))
        (data(report, page.pictures.len()))
        (crate::html::script())
    };
    crate::html::page(&title, Some(&report.run.tool_version), &body)
}

pub(crate) fn header(report: &Report) -> Markup {
    let machine = &report.machine;
    let kernel = machine.kernel.as_ref().map(|kernel| format!("Linux {kernel}"));
    let cpus = machine.cpus_online.map(|n| units::count(n, "CPU"));
    let line: Vec<String> = [machine.model.clone(), machine.cpu_model.clone(), cpus, kernel]
        .into_iter()
        .flatten()
        .chain([machine.preemption.clone()])
        .collect();
    html! {
        header {
            p.tool { "rtproof · real-time proof test" }
            h1 { (crate::html::hostname(report)) }
            p { (line.join(" · ")) }
            p.quiet {
                (crate::html::wall_clock(report.run.started_realtime_ns)) " · "
                (request_line(report))
            }
        }
    }
}

/// What was asked, in a line.
pub(crate) fn request_line(report: &Report) -> String {
    let options = &report.options;
    let budget = options.requirement.budget_ns.map_or("no budget".into(), |budget_ns| {
        format!(
            "budget {} (class {})",
            units::ns(budget_ns),
            crate::html::class(options.requirement.class)
        )
    });
    format!(
        "{}, every {}, for {}, {budget}",
        units::cpus(&options.cpus),
        units::ns(options.period_ns),
        report.duration_text(),
    )
}

pub(crate) fn contents(page: &crate::html::ReportPage<'_>) -> Markup {
    let sections = SECTIONS.iter().filter(|section| (section.when)(page));
    crate::html::contents(sections.map(|section| (section.id, section.name)))
}

pub(crate) fn footer(report: &Report) -> Markup {
    html! {
        footer {
            p {
                "Made by rtproof " (report.run.tool_version) " from run "
                code { (report.run.run_id) }
                ". This file holds the report as JSON in the element "
                code { "rtproof-report" }
                ", without the steps of moving statistics, which "
                code { "rtproof report --json" } " prints."
            }
        }
    }
}

/// The report as JSON within the page, with the spikes that it shows and without the steps of
/// moving statistics; the record has all of them.
pub(crate) fn data(report: &Report, shown: usize) -> Markup {
    let mut report = report.clone();
    if let Some(spikes) = &mut report.spikes {
        spikes.worst.truncate(shown);
    }
    // They are in the picture and its table.
    report.moving.rows.clear();
    crate::html::data("rtproof-report", &report)
}

// The sections of the report, in order. To add one: its function in the file of its subject, a row
// in `SECTIONS`.

/// Whether a section is read at once or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fold {
    /// Shown, with a heading of its own.
    Open,
    /// Closed, with this heading.
    Closed(&'static str),
}

pub(crate) struct Section {
    /// Anchor in the page, without `#`.
    pub(crate) id: &'static str,
    /// Its name in the contents.
    pub(crate) name: &'static str,
    /// Whether the page has it.
    pub(crate) when: fn(&crate::html::ReportPage<'_>) -> bool,
    fold: Fold,
    show: fn(&crate::html::ReportPage<'_>) -> Markup,
}

impl Section {
    /// The section; nothing if the page does not have it.
    pub(crate) fn shown(&self, page: &crate::html::ReportPage<'_>) -> Markup {
        match self.fold {
            _ if !(self.when)(page) => Markup::default(),
            Fold::Open => (self.show)(page),
            Fold::Closed(title) => crate::html::folded(title, &(self.show)(page)),
        }
    }
}

const fn section(
    id: &'static str,
    name: &'static str,
    when: fn(&crate::html::ReportPage<'_>) -> bool,
    fold: Fold,
    show: fn(&crate::html::ReportPage<'_>) -> Markup,
) -> Section {
    Section { id, name, when, fold, show }
}

const fn always(_: &crate::html::ReportPage<'_>) -> bool {
    true
}

/// Every section: first those that answer, then the numbers behind them.
pub(crate) const SECTIONS: &[Section] = &[
    section(
        "effects",
        "Effects of the changes",
        |page| page.run.effects.is_some(),
        Fold::Open,
        |page| effects::section(page.run),
    ),
    section(
        "reference",
        "Reference",
        |page| !page.report.reference.is_empty(),
        Fold::Open,
        |page| summary::reference_section(&page.report.reference),
    ),
    section("timeline", "Over time", always, Fold::Open, time::timeline_section),
    section("latency", "Latency", always, Fold::Open, |page| {
        latency::latency_section(page.run, page.report)
    }),
    section("spikes", "Why it was late", |page| page.report.spikes.is_some(), Fold::Open, why_late),
    section("findings", "What stands in the way", always, Fold::Open, |page| {
        findings::section(page.report)
    }),
    section("missed", "Missed", always, Fold::Closed("Missed wake-ups"), |page| {
        latency::missed_section(page.run, page.report, &page.columns, page.time)
    }),
    section("quantiles", "Quantiles", always, Fold::Closed("Quantiles"), |page| {
        latency::quantiles_section(page.report)
    }),
    section(
        "moments",
        "Moments",
        |page| page.report.all.sampled > 0,
        Fold::Closed("Moments and percentiles"),
        |page| crate::sections::distribution::section(page.report),
    ),
    section("threads", "CPUs and loads", always, Fold::Closed("CPUs and loads"), |page| {
        latency::threads_section(page.report)
    }),
    section(
        "beside",
        "Changes and idle states",
        |page| !page.report.surroundings.is_empty(),
        Fold::Closed("Changes from outside, idle states"),
        |page| time::beside_section(page.report),
    ),
    section("samples", "Largest samples", always, Fold::Closed("Largest samples"), |page| {
        latency::samples_section(page.report)
    }),
    section(
        "host",
        "Host",
        |page| !page.run.host.is_empty(),
        Fold::Closed("The host meanwhile"),
        |page| time::host_section(page.run, page.time),
    ),
    section("machine", "Machine", always, Fold::Closed("The machine"), |page| {
        machine::machine_section(page.run, page.report)
    }),
    section("method", "How it was measured", always, Fold::Closed("How it was measured"), |page| {
        machine::method_section(page.report)
    }),
];

fn why_late(page: &crate::html::ReportPage<'_>) -> Markup {
    let Some(found) = &page.report.spikes else { return Markup::default() };
    crate::sections::spikes::section(found, &page.report.findings, &page.pictures)
}

// The answer as text on stdout.

/// The machine and its checks: what is printed before anything is measured.
pub fn machine_head(
    to: &mut Terminal,
    machine: &MachineSummary,
    findings: &[Finding],
) -> io::Result<()> {
    title_line(to, machine)?;
    findings::summary(to, findings)?;
    findings::head(to, findings)
}

/// A line above everything, where something is wrong with the record itself.
pub fn banner(to: &mut Terminal, banner: Option<&str>) -> io::Result<()> {
    match banner {
        Some(text) => wrapped(to, &format!("{BAD}!{BAD:#} "), "  ", text),
        None => Ok(()),
    }
}

/// The subject of `explain`, and its caveats.
pub fn explained_head(to: &mut Terminal, about: &str, notes: &[String]) -> io::Result<()> {
    wrapped(
        to,
        &format!("{BOLD}rtproof {}{BOLD:#}   ", env!("CARGO_PKG_VERSION")),
        "         ",
        about,
    )?;
    notes.iter().try_for_each(|note| {
        wrapped(to, &format!("         {WARN}!{WARN:#} "), "           ", note)
    })
}

/// A sentence on lines of its own.
pub fn note_text(to: &mut Terminal, text: &str) -> io::Result<()> {
    wrapped(to, "", "", text)
}

/// What to do next, one line each.
pub fn hint(to: &mut Terminal, commands: &[String]) -> io::Result<()> {
    if !commands.is_empty() {
        writeln!(to)?;
    }
    commands.iter().try_for_each(|command| writeln!(to, "{DIM}{command}{DIM:#}"))
}

/// Paths of the existing files.
pub fn file_list(
    to: &mut Terminal,
    record: &Path,
    html: &Path,
    is_sealed: bool,
    has_report: bool,
) -> io::Result<()> {
    let (record, html) = (record.display(), html.display());
    let torn = if is_sealed { "" } else { " (not sealed)" };
    if has_report {
        return writeln!(to, "         record {record}{torn}   report {html}");
    }
    writeln!(to, "         record {record}{torn}   no report was written")?;
    writeln!(to, "         make one: rtproof report {record} --html {html}")
}
