//! The report of a run as one HTML file: it opens offline, prints, is read without JavaScript and
//! by a screen reader, and carries its own numbers as JSON.
//!
//! The order is the order of questions: is it accepted, what stands in the way, what was measured,
//! when, on what machine, how. One file per section; pictures come from [`super::svg`].

mod answer;
mod beside;
pub mod compare;
mod distribution;
mod dots;
mod effects;
mod facts;
mod findings;
mod host;
mod imported;
pub mod kernel_bisect;
mod latency;
mod machine;
pub mod measure;
mod method;
mod missed;
mod moving;
mod page;
mod paper;
mod parts;
mod quantiles;
mod reference;
#[cfg(test)]
pub(crate) mod sample;
mod samples;
mod sections;
mod spikes;
#[cfg(test)]
mod tests;
mod threads;
mod timeline;
mod verdict;

use maud::{Markup, html};
use rtproof_judge::{Report, units};
use rtproof_record::Run;

use self::{page::Page, sections::SECTIONS};
use super::svg::{bins::TimeBins, strip::Rows};

pub use self::imported::imported;
pub(crate) use self::parts::bytes;

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
    let (rows, columns) = Rows::of(run, time);
    let pictures = report.spikes.as_ref().map_or_else(Vec::new, |found| {
        let window = |number| run.spikes.as_ref()?.window(number);
        spikes::pictures(found, &report.findings, &window)
    });
    let page = Page { run, report, time, rows, columns, pictures };
    let title = format!("{} – {}", report.verdict.answer.text(), parts::hostname(report));
    let body = html! {
        a.skip href="#verdict" { "Skip to the verdict" }
        @if let Some(banner) = &extra.banner { (parts::banner(banner)) }
        (header(report))
        main.proof {
            (verdict::section(run, report, extra.next.as_deref()))
            (contents(&page))
            @for section in SECTIONS { (section.shown(&page)) }
            (paper::section(report))
        }
        (footer(report))
        (data(report, page.pictures.len()))
        (parts::script())
    };
    parts::page(&title, Some(&report.run.tool_version), &body)
}

fn header(report: &Report) -> Markup {
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
            h1 { (parts::hostname(report)) }
            p { (line.join(" · ")) }
            p.quiet { (parts::wall_clock(report.run.started_realtime_ns)) " · " (asked(report)) }
        }
    }
}

/// What was asked, in a line.
fn asked(report: &Report) -> String {
    let options = &report.options;
    let budget = options.requirement.budget_ns.map_or("no budget".into(), |budget_ns| {
        format!(
            "budget {} (class {})",
            units::ns(budget_ns),
            parts::class(options.requirement.class)
        )
    });
    format!(
        "{}, every {}, for {}, {budget}",
        units::cpus(&options.cpus),
        units::ns(options.period_ns),
        report.duration_text(),
    )
}

fn contents(page: &Page<'_>) -> Markup {
    let sections = SECTIONS.iter().filter(|section| (section.when)(page));
    parts::contents(sections.map(|section| (section.id, section.name)))
}

fn footer(report: &Report) -> Markup {
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
fn data(report: &Report, shown: usize) -> Markup {
    let mut report = report.clone();
    if let Some(spikes) = &mut report.spikes {
        spikes.worst.truncate(shown);
    }
    // They stand in the picture and its table.
    report.moving.rows.clear();
    parts::data("rtproof-report", &report)
}
