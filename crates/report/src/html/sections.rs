//! The sections of the report, in order. To add one: a file with its function, and a row here.

use maud::Markup;
use rtproof_judge::Report;
use rtproof_record::Run;

use super::{
    beside, distribution, effects, findings, host, latency, machine, method, missed, quantiles,
    samples, spikes, threads, timeline,
};
use crate::svg::{
    bins::{Column, TimeBins},
    strip::Rows,
};

/// What sections are made from.
pub(super) struct Page<'a> {
    pub(super) run: &'a Run,
    pub(super) report: &'a Report,
    pub(super) time: TimeBins,
    pub(super) rows: Rows,
    pub(super) columns: Vec<Column>,
}

/// One section.
pub(super) struct Section {
    /// Its anchor.
    pub(super) id: &'static str,
    /// Its name in the contents.
    pub(super) name: &'static str,
    /// Whether the page has it.
    pub(super) when: fn(&Page<'_>) -> bool,
    show: fn(&Page<'_>) -> Markup,
}

impl Section {
    /// The section; nothing if the page does not have it.
    pub(super) fn shown(&self, page: &Page<'_>) -> Markup {
        if (self.when)(page) { (self.show)(page) } else { Markup::default() }
    }
}

const fn section(
    id: &'static str,
    name: &'static str,
    when: fn(&Page<'_>) -> bool,
    show: fn(&Page<'_>) -> Markup,
) -> Section {
    Section { id, name, when, show }
}

const fn always(_: &Page<'_>) -> bool {
    true
}

/// Every section.
pub(super) const SECTIONS: &[Section] = &[
    section(
        "effects",
        "Effects of the changes",
        |page| page.run.effects.is_some(),
        |page| effects::section(page.run),
    ),
    section("findings", "What stands in the way", always, |page| findings::section(page.report)),
    section("latency", "Latency", always, |page| latency::section(page.run, page.report)),
    section("spikes", "Why it was late", |page| page.report.spikes.is_some(), why_late),
    section("timeline", "Over time", always, |page| {
        timeline::section(page.run, page.report, &page.rows, &page.columns, page.time)
    }),
    section("missed", "Missed", always, |page| {
        missed::section(page.run, page.report, &page.columns, page.time)
    }),
    section("quantiles", "Quantiles", always, |page| quantiles::section(page.report)),
    section(
        "moments",
        "Moments",
        |page| page.report.all.sampled > 0,
        |page| distribution::section(page.report),
    ),
    section("threads", "CPUs and loads", always, |page| threads::section(page.report)),
    section(
        "beside",
        "Changes and idle states",
        |page| !page.report.beside.is_empty(),
        |page| beside::section(page.report),
    ),
    section("samples", "Largest samples", always, |page| samples::section(page.report)),
    section(
        "host",
        "Host",
        |page| !page.run.host.is_empty(),
        |page| host::section(page.run, page.time),
    ),
    section("machine", "Machine", always, |page| machine::section(page.run, page.report)),
    section("method", "How it was measured", always, |page| method::section(page.report)),
];

fn why_late(page: &Page<'_>) -> Markup {
    let Some(found) = &page.report.spikes else { return Markup::default() };
    let window = |number| page.run.spikes.as_ref()?.window(number);
    spikes::section(found, &page.report.findings, &window)
}
