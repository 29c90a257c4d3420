//! What was imported as a page: the tool, its series, what may mislead. Pictures of it are in the
//! pages of `rtproof compare`.

use maud::{Markup, html};
use rtproof_judge::units::{self, grouped, us_column};
use rtproof_record::import::{Imported, ToolValue};

use super::parts;
use crate::imported::{QUANTILES, Series, series};

pub fn imported(imported: &Imported, banner: Option<&str>) -> String {
    let version = imported.tool_version.as_deref().unwrap_or("(version unknown)");
    let title = format!("{} – imported", imported.source);
    let body = html! {
        @if let Some(banner) = banner { (parts::banner(banner)) }
        header {
            h1 { "Imported: " (imported.source) }
            p { (imported.tool) " " (version) ", format " (imported.dialect) }
        }
        main {
            section aria-labelledby="series" {
                h2 #series { "What it measured" }
                div.scroll { (table(imported)) }
            }
            @if !imported.doubts.is_empty() {
                section aria-labelledby="doubts" {
                    h2 #doubts { "What may mislead" }
                    ul { @for doubt in &imported.doubts { li { (doubt.text) } } }
                }
            }
            section aria-labelledby="about" {
                h2 #about { "What is known of it" }
                (about(imported))
            }
            @if !imported.remarks.is_empty() {
                section aria-labelledby="said" {
                    h2 #said { "What else the tool said" }
                    ul { @for remark in &imported.remarks { li { (remark) } } }
                }
            }
        }
    };
    parts::page(&title, None, &body)
}

fn table(imported: &Imported) -> Markup {
    html! {
        table {
            caption { "Times in µs, in the steps of the tool." }
            thead {
                tr {
                    th scope="col" { "series" }
                    th scope="col" { "what" }
                    @for name in ["n", "min", "mean"] { th scope="col" { (name) } }
                    @for (name, _) in QUANTILES { th scope="col" { (name) } }
                    th scope="col" { "max" }
                    th scope="col" { "skipped" }
                }
            }
            tbody { @for series in series(imported) { (row(&series)) } }
        }
    }
}

fn row(series: &Series) -> Markup {
    let time = |ns: Option<u64>| ns.map_or("-".into(), us_column);
    let quantile = |ppm: u32| {
        let found = series.quantiles.iter().find(|quantile| quantile.ppm == ppm);
        found.map_or("-".into(), |quantile| reading(quantile.value))
    };
    html! {
        tr {
            th scope="row" { (series.label) }
            td { (series.kind.words()) }
            td { (grouped(series.n)) }
            td { (time(series.min_ns)) }
            td { (time(series.mean_ns.map(|ns| ns.max(0.0) as u64))) }
            @for (_, ppm) in QUANTILES { td { (quantile(ppm)) } }
            td { (series.max.map_or("-".into(), reading)) }
            td { (series.omitted.map_or("-".into(), grouped)) }
        }
    }
}

fn reading(reading: ToolValue) -> String {
    format!("{}{}", if reading.at_least { "≥ " } else { "" }, us_column(reading.ns))
}

fn about(imported: &Imported) -> Markup {
    let or = |text: &Option<String>| text.clone().unwrap_or_else(|| "not in the file".into());
    let time = |ns: Option<u64>| ns.map_or("unknown".into(), units::ns);
    let rows = [
        ("machine", or(&imported.machine)),
        ("command", or(&imported.command)),
        ("period", time(imported.period_ns)),
        ("duration", time(imported.duration_ns)),
        ("step of its values", units::ns(imported.resolution_ns)),
        ("SHA-256 of the file", imported.digest.clone()),
    ];
    html! { dl { @for (name, text) in rows { dt { (name) } dd { (text) } } } }
}
