//! The sections of the report, in order. To add one: a file with its function, its `mod`, a row
//! here.

use maud::Markup;

use super::{
    beside, distribution, effects, findings, host, latency, machine, method, missed, page::Page,
    parts, quantiles, reference, samples, spikes, threads, timeline,
};

/// Whether a section is read at once or opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fold {
    /// Shown, with a heading of its own.
    Open,
    /// Closed, with this heading.
    Closed(&'static str),
}

pub(super) struct Section {
    /// Its anchor.
    pub(super) id: &'static str,
    /// Its name in the contents.
    pub(super) name: &'static str,
    /// Whether the page has it.
    pub(super) when: fn(&Page<'_>) -> bool,
    fold: Fold,
    show: fn(&Page<'_>) -> Markup,
}

impl Section {
    /// The section; nothing if the page does not have it.
    pub(super) fn shown(&self, page: &Page<'_>) -> Markup {
        match self.fold {
            _ if !(self.when)(page) => Markup::default(),
            Fold::Open => (self.show)(page),
            Fold::Closed(title) => parts::folded(title, &(self.show)(page)),
        }
    }
}

const fn section(
    id: &'static str,
    name: &'static str,
    when: fn(&Page<'_>) -> bool,
    fold: Fold,
    show: fn(&Page<'_>) -> Markup,
) -> Section {
    Section { id, name, when, fold, show }
}

const fn always(_: &Page<'_>) -> bool {
    true
}

/// Every section: first those that answer, then the numbers behind them.
pub(super) const SECTIONS: &[Section] = &[
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
        |page| reference::section(&page.report.reference),
    ),
    section("timeline", "Over time", always, Fold::Open, timeline::section),
    section("latency", "Latency", always, Fold::Open, |page| {
        latency::section(page.run, page.report)
    }),
    section("spikes", "Why it was late", |page| page.report.spikes.is_some(), Fold::Open, why_late),
    section("findings", "What stands in the way", always, Fold::Open, |page| {
        findings::section(page.report)
    }),
    section("missed", "Missed", always, Fold::Closed("Missed wake-ups"), |page| {
        missed::section(page.run, page.report, &page.columns, page.time)
    }),
    section("quantiles", "Quantiles", always, Fold::Closed("Quantiles"), |page| {
        quantiles::section(page.report)
    }),
    section(
        "moments",
        "Moments",
        |page| page.report.all.sampled > 0,
        Fold::Closed("Moments and percentiles"),
        |page| distribution::section(page.report),
    ),
    section("threads", "CPUs and loads", always, Fold::Closed("CPUs and loads"), |page| {
        threads::section(page.report)
    }),
    section(
        "beside",
        "Changes and idle states",
        |page| !page.report.beside.is_empty(),
        Fold::Closed("Changes from outside, idle states"),
        |page| beside::section(page.report),
    ),
    section("samples", "Largest samples", always, Fold::Closed("Largest samples"), |page| {
        samples::section(page.report)
    }),
    section(
        "host",
        "Host",
        |page| !page.run.host.is_empty(),
        Fold::Closed("The host meanwhile"),
        |page| host::section(page.run, page.time),
    ),
    section("machine", "Machine", always, Fold::Closed("The machine"), |page| {
        machine::section(page.run, page.report)
    }),
    section("method", "How it was measured", always, Fold::Closed("How it was measured"), |page| {
        method::section(page.report)
    }),
];

fn why_late(page: &Page<'_>) -> Markup {
    let Some(found) = &page.report.spikes else { return Markup::default() };
    spikes::section(found, &page.report.findings, &page.pictures)
}
