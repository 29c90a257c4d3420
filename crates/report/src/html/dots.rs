//! The figure of all spikes over time: a dot each, with links to those that are explained.

use maud::{Markup, html};
use rtproof_judge::{Report, units};
use rtproof_record::Run;

use super::parts::{self, Figure};
use crate::{
    spike,
    svg::{
        bins::TimeBins,
        dots::{self, Dot},
        events::Events,
    },
};

/// Rows of the table.
const ROWS_MAX: usize = 50;

/// The figure; `shown`: how many spikes the page has a picture of.
pub(super) fn figure(
    run: &Run,
    report: &Report,
    time: TimeBins,
    events: &Events,
    shown: usize,
) -> Markup {
    let title = "Spikes over time";
    let dots = dots::of(run, report, shown);
    if dots.is_empty() {
        let why = report.spikes.as_ref().map(|spikes| spikes.threshold_ns);
        let why = why.map_or("No wake-up was measured.".into(), |threshold_ns| {
            format!("No wake-up was later than {}.", units::ns(threshold_ns))
        });
        return parts::no_chart("chart-spikes", title, &why);
    }
    let text = text(run, report, &dots) + &events.text();
    let legend: Vec<_> = dots::classes(&dots)
        .into_iter()
        .map(|(class, name, n)| (format!("point {class}"), None, format!("{name} ({n})")))
        .collect();
    parts::figure(&Figure {
        title,
        text: &text,
        picture: dots::draw(run, &dots, time, events, (title, &text)),
        legend: parts::legend(&legend),
        table: Some(table(&dots)),
    })
}

fn text(run: &Run, report: &Report, dots: &[Dot]) -> String {
    let n = units::grouped(dots.len() as u64);
    let Some(found) = run.spikes.as_ref().and(report.spikes.as_ref()) else {
        return format!("The {n} largest samples; nothing looked for their causes.");
    };
    let of = match found.seen > dots.len() as u64 {
        true => format!("{n} of {} spikes", units::grouped(found.seen)),
        false => units::count(dots.len(), "spike"),
    };
    let pictures = dots.iter().filter(|dot| dot.picture.is_some()).count();
    let links = if pictures == 0 {
        String::new()
    } else {
        format!(" A dot with a dark edge leads to the picture of that spike ({pictures}).")
    };
    format!("{of}, each by the class of its largest cause.{links}")
}

fn table(dots: &[Dot]) -> Markup {
    let table = parts::table(
        dots.iter().take(ROWS_MAX),
        &[
            ("#at", &|dot| html! { (parts::at(dot.at_ns)) }),
            ("#CPU", &|dot| html! { (dot.cpu) }),
            ("#latency, µs", &|dot| html! { (spike::us_number(dot.latency_ns)) }),
            ("~cause", &|dot| html! { (dot.why()) }),
            ("", &|dot| {
                html! { @if let Some(number) = dot.picture {
                    a href={ "#spike-" (number) } { "spike " (number) }
                } }
            }),
        ],
    );
    html! {
        (table)
        @if let Some(more @ 1..) = dots.len().checked_sub(ROWS_MAX) {
            p.quiet {
                (units::grouped(more as u64)) " more: rtproof export --format csv --table spikes"
            }
        }
    }
}
