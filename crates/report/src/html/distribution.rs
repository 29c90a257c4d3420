//! Moments and percentiles: what tables of latency show beside quantiles, each under the name of
//! its convention; what the samples are worth; and the tail's own prediction put to the test.

use maud::{Markup, html};
use rtproof_judge::{Report, distribution::Distribution, units};
use rtproof_stats::extreme::holdout::Holdout;

use super::parts;
use crate::distribution::{CONVENTION, P2_CAUTION, held_out, name, number};

pub(super) fn section(report: &Report) -> Markup {
    html! {
        section #moments {
            p { (CONVENTION) }
            (parts::scroll("Moments", &moments(rows(&report.distribution))))
            (p2(&report.distribution))
            (bunched(&report.distribution))
            @if let Some(held) = &report.holdout { (holdout(held)) }
        }
    }
}

fn rows(all: &[Distribution]) -> impl Iterator<Item = (String, &Distribution)> {
    all.iter().map(|of| (name(of.cpu), of))
}

/// A row for each; names come with them.
pub(super) fn moments<'a>(rows: impl Iterator<Item = (String, &'a Distribution)>) -> Markup {
    let shape = |of: &'a Distribution| of.shape.as_ref();
    parts::table_of(
        "quantiles",
        rows,
        &[
            ("", &|(name, _)| html! { (name) }),
            ("#samples", &|(_, of)| html! { (units::grouped(of.n)) }),
            ("#worth", &|(_, of)| {
                html! { (of.mean_n_eff.map_or(parts::NONE.into(), units::grouped)) }
            }),
            ("#mean, µs", &|(_, of)| html! { (us3(of.mean_ns)) }),
            ("#± error", &|(_, of)| html! { (us3(of.mean_error_ns)) }),
            ("#sd, µs", &|(_, of)| html! { (us3(of.sd_ns)) }),
            ("#cv", &|(_, of)| html! { (cell(of.cv)) }),
            ("#spread", &|(_, of)| html! { (cell(of.spread)) }),
            ("#skewness g1", &|(_, of)| {
                html! {
                    (cell(shape(of).map(|s| s.g1)))
                    @if shape(of).is_some_and(|s| s.is_estimate) { " *" }
                }
            }),
            ("#G1", &|(_, of)| html! { (cell(shape(of).and_then(|s| s.g1_sample))) }),
            ("#g2", &|(_, of)| html! { (cell(shape(of).map(|s| s.g2))) }),
            ("#G2", &|(_, of)| html! { (cell(shape(of).and_then(|s| s.g2_sample))) }),
            ("#kurtosis g2 + 3", &|(_, of)| html! { (cell(shape(of).map(|s| s.kurtosis))) }),
            ("#at most", &|(_, of)| html! { (cell(of.kurtosis_max)) }),
        ],
    )
}

fn cell(value: Option<f64>) -> String {
    value.map_or(parts::NONE.into(), number)
}

/// Microseconds with three decimals: means have a finer resolution than samples.
fn us3(ns: Option<f64>) -> String {
    ns.map_or(parts::NONE.into(), |ns| format!("{:.3}", ns / 1000.0))
}

fn p2(all: &[Distribution]) -> Markup {
    let Some(first) = all.iter().find(|of| !of.p2.is_empty()) else {
        return Markup::default();
    };
    let names = first.p2.iter().map(|of| of.q.name());
    let columns: Vec<String> = std::iter::once(String::new())
        .chain(names.flat_map(|name| {
            [format!("#{name}, µs"), "#P² estimate, µs".into(), "#error, %".into()]
        }))
        .collect();
    html! {
        h3 { "P² beside the histogram" }
        p.quiet { (P2_CAUTION) }
        (parts::scroll("P² beside the histogram", &html! {
            table.quantiles {
                (parts::head(columns))
                tbody {
                    @for of in all.iter().filter(|of| !of.p2.is_empty()) {
                        tr {
                            th scope="row" { (name(of.cpu)) }
                            @for estimated in &of.p2 {
                                td.num { (parts::us(estimated.histogram_ns)) }
                                td.num.quiet { (parts::us_mean(Some(estimated.p2_ns))) }
                                td.num.quiet { (percent(estimated.error)) }
                            }
                        }
                    }
                }
            }
        }))
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or(parts::NONE.into(), |share| format!("{:+.1}", 100.0 * share))
}

fn bunched(all: &[Distribution]) -> Markup {
    // That of all is that of its worst CPU, which has a row of its own.
    let each = all.iter().filter(|of| of.cpu.is_some() || all.len() == 1);
    let rows: Vec<_> = each.filter_map(|of| of.extremal).collect();
    if rows.is_empty() {
        return Markup::default();
    }
    let table = parts::table(
        &rows,
        &[
            ("#CPU", &|of| html! { (of.cpu) }),
            ("#level, µs", &|of| html! { (parts::us(Some(of.level_ns))) }),
            ("#samples from there", &|of| html! { (units::grouped(of.of)) }),
            ("#groups", &|of| html! { (units::grouped(of.clusters)) }),
            ("#index, runs", &|of| html! { (cell(Some(of.runs))) }),
            ("#intervals", &|of| html! { (cell(of.intervals)) }),
        ],
    );
    html! {
        h3 { "How the largest samples are bunched" }
        p.quiet {
            "The extremal index: how many of the largest samples are news, the rest being company. \
             By runs (ten on-time periods end a group) and by the intervals between them (Ferro and \
             Segers)."
        }
        (parts::scroll("Extremal index", &table))
    }
}

fn holdout(held: &Holdout) -> Markup {
    html! {
        h3 { "The tail put to the test" }
        p { (held_out(held)) }
    }
}
