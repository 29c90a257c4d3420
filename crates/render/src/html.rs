//! HTML that all pages share: the document, tables, folded parts, data for programs.

use std::fmt::Write;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde::Serialize;

use rtproof_host::{
    Facts,
    facts::tasks::Policy,
    flatten::{FactRow, RowState},
    text,
};
use rtproof_judge::{Report, Status, units};
use rtproof_record::{BudgetClass, Run};
use rtproof_stats::quantile::Quantile;

use crate::svg::bins::{BinColumn, TimeBins};
use crate::svg::time::StripRows;

// The facts as lines: every one with the path that was asked, known or not.

/// Text shown at most, in bytes; the record holds the rest.
const TEXT_MAX: usize = 120_000;

/// The facts, a line each: `kernel.release = 6.12.57-rt14  (/proc/sys/kernel/osrelease)`.
pub(crate) fn fact_lines(facts: &Facts) -> String {
    let rows = facts.rows();
    let mut text = String::new();
    for (i, row) in rows.iter().enumerate() {
        if text.len() > TEXT_MAX {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "... {} more are in the record", rows.len() - i);
            break;
        }
        let _ = writeln!(text, "{} = {}  ({})", row.key, value(row), row.path);
    }
    text
}

fn value(row: &FactRow) -> String {
    match row.state {
        RowState::Known => row.value.clone(),
        RowState::Absent => "unknown: not there".into(),
        RowState::Denied => format!("unknown: refused: {}", row.value),
        RowState::Malformed => format!("unknown: holds {}", row.value),
    }
}

/// What sections are made from.
pub(crate) struct ReportPage<'a> {
    pub(crate) run: &'a Run,
    pub(crate) report: &'a Report,
    pub(crate) time: TimeBins,
    pub(crate) rows: StripRows,
    pub(crate) columns: Vec<BinColumn>,
    /// The worst spikes one by one.
    pub(crate) pictures: Vec<Markup>,
}

// Pieces that all sections use: icons, figures, tables that scroll in themselves, numbers.

pub(crate) const STYLE: &str = include_str!("html/style.css");

/// Nothing is fetched, whatever a host name or a command line may hold.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      img-src data:; base-uri 'none'; form-action 'none'";

/// Placeholder of a missing value.
pub(crate) const NONE: &str = "–";

/// An icon beside a word: shapes differ, not only colours.
pub(crate) fn icon(name: &str) -> Markup {
    let d = match name {
        "check" => "M3 8.5 6.5 12 13 4.5",
        "cross" => "M4 4 12 12M12 4 4 12",
        "question" => "M5.2 6a2.8 2.8 0 1 1 4.3 2.3c-1 .7-1.5 1.1-1.5 2.2M8 12.9v.4",
        "warn" => "M8 2.5 14.5 13.5H1.5ZM8 6.6v3M8 11.5v.3",
        _ => "M3.5 8H12.5",
    };
    html! { svg.icon viewBox="0 0 16 16" aria-hidden="true" { path d=(d) {} } }
}

/// A whole page; `generator` is the version that made its numbers, `data` is JSON for its reader.
pub(crate) fn page(title: &str, generator: Option<&str>, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                @if let Some(version) = generator {
                    meta name="generator" content={ "rtproof " (version) };
                }
                title { (title) " – rtproof" }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body { (body) }
        }
    };
    let page = text::harmless_text(&page.into_string());
    #[cfg(test)]
    tests::check_page(&page);
    page
}

/// The script of a page: read-outs, keys and zoom for what is there without it. One block, so that
/// its files share names and the page has none of them.
const SCRIPT: &str = concat!(
    "'use strict';{",
    include_str!("html/script/page.js"),
    include_str!("html/script/bins.js"),
    include_str!("html/script/dots.js"),
    include_str!("html/script/zoom.js"),
    "}"
);

/// The script of a page.
pub(crate) fn script() -> Markup {
    html! { script { (PreEscaped(SCRIPT)) } }
}

/// What must be known before anything else of a page.
pub(crate) fn banner(text: &str) -> Markup {
    html! { p.banner role="alert" { (icon("cross")) " " (text) } }
}

/// A value as JSON within the page; `<` is escaped, so that nothing in it can end the element.
pub(crate) fn data(id: &str, value: &impl Serialize) -> Markup {
    let json = serde_json::to_string(value).unwrap_or_else(|_| "null".into());
    let json = text::json(&json).replace('<', "\\u003c");
    html! { script id=(id) type="application/json" { (PreEscaped(json)) } }
}

/// The sections of a page, to go to.
pub(crate) fn contents<'a>(sections: impl Iterator<Item = (&'a str, &'a str)>) -> Markup {
    html! {
        nav.contents aria-label="Sections" {
            ul { @for (id, name) in sections { li { a href={ "#" (id) } { (name) } } } }
            (print_all())
        }
    }
}

/// A part of the page that is closed until it is opened: its heading stays in sight. A link to
/// something in it opens it, without a script.
pub(crate) fn folded(title: &str, body: &Markup) -> Markup {
    html! { details.part { summary { h2 { (title) } } (body) } }
}

/// Rows of a list in sight, and the others closed below.
pub(crate) fn first_rows(rows: &[Markup], shown: usize, more: &str) -> Markup {
    let (first, rest) = rows.split_at(rows.len().min(shown));
    html! {
        @for row in first { (row) }
        @if !rest.is_empty() {
            details.more {
                summary { (rest.len()) " " (more) }
                @for row in rest { (row) }
            }
        }
    }
}

/// The switch that prints what is folded away too; it needs no script.
pub(crate) fn print_all() -> Markup {
    html! {
        label.print-all {
            input #print-all type="checkbox";
            " print everything"
        }
    }
}

/// Class, icon and word of a status.
pub(crate) const fn status(status: Status) -> (&'static str, &'static str, &'static str) {
    match status {
        Status::Bad => ("bad", "cross", "bad"),
        Status::Doubtful => ("doubtful", "warn", "doubtful"),
        Status::Unknown => ("unknown", "question", "unknown"),
        Status::Good => ("good", "check", "good"),
        Status::NotApplicable => ("idle", "dash", "not applicable"),
    }
}

/// Word and icon of a status, in its colour.
pub(crate) fn status_mark(of: Status) -> Markup {
    let (class, name, word) = status(of);
    html! { span class={ "status " (class) } { (icon(name)) (word) } }
}

/// A container that scrolls when its content is wider than the page, by touch and by keyboard.
pub(crate) fn scroll(label: &str, body: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="group" aria-label=(label) { (body) } }
}

/// A picture with its legend, its sentence and its numbers.
pub(crate) struct Figure<'a> {
    pub(crate) title: &'a str,
    /// The numbers in a sentence; also the description of the picture.
    pub(crate) text: &'a str,
    pub(crate) picture: Markup,
    /// Legend; may be empty.
    pub(crate) legend: Markup,
    /// The numbers as a table; `None` where the section has one for all its pictures.
    pub(crate) table: Option<Markup>,
}

pub(crate) fn figure(figure: &Figure<'_>) -> Markup {
    html! {
        figure {
            h3 { (figure.title) }
            figcaption { (figure.text) }
            (figure.legend)
            (scroll(figure.title, &figure.picture))
            @if let Some(table) = &figure.table {
                details.numbers {
                    summary { "The numbers as a table" }
                    (scroll(figure.title, table))
                }
            }
        }
    }
}

/// Stands for a chart of nothing.
pub(crate) fn no_chart(id: &str, title: &str, why: &str) -> Markup {
    html! {
        figure {
            h3 { (title) }
            p.chart.empty id=(id) data-series="0" { (why) }
        }
    }
}

/// A column of a table: its name and what it shows of a row. `#` before the name: numbers; `~`:
/// long text, which is broken into lines.
pub(crate) type TableColumn<'a, T> = (&'a str, &'a dyn Fn(&T) -> Markup);

/// A table; the first column names the row.
pub(crate) fn table<T>(
    rows: impl IntoIterator<Item = T>,
    columns: &[TableColumn<'_, T>],
) -> Markup {
    table_of("", rows, columns)
}

/// A table of a class.
pub(crate) fn table_of<T>(
    class: &str,
    rows: impl IntoIterator<Item = T>,
    columns: &[TableColumn<'_, T>],
) -> Markup {
    let class = (!class.is_empty()).then_some(class);
    html! {
        table class=[class] {
            (table_head(columns.iter().map(|(name, _)| name)))
            tbody {
                @for row in rows {
                    tr {
                        @for (at, (name, show)) in columns.iter().enumerate() {
                            @let class = kind(name).0;
                            @if at == 0 { th class=[class] scope="row" { (show(&row)) } }
                            @else { td class=[class] { (show(&row)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Class of a column's cells, and its name.
fn kind(name: &str) -> (Option<&'static str>, &str) {
    match (name.strip_prefix('#'), name.strip_prefix('~')) {
        (Some(name), _) => (Some("num"), name),
        (None, Some(name)) => (Some("wrap"), name),
        (None, None) => (None, name),
    }
}

/// The head of a table; a column whose name begins with `#` holds numbers.
pub(crate) fn table_head<S: AsRef<str>>(columns: impl IntoIterator<Item = S>) -> Markup {
    html! {
        thead { tr {
            @for column in columns {
                @let (class, name) = kind(column.as_ref());
                // A header without a name heads nothing.
                @if name.is_empty() { td {} }
                @else { th class=[class.filter(|class| *class == "num")] { (name) } }
            }
        } }
    }
}

/// Entries of a legend: class of the swatch and text. Entries may carry the CPU they stand for.
pub(crate) fn legend(entries: &[(String, Option<u32>, String)]) -> Markup {
    html! {
        ul.legend {
            @for (class, cpu, text) in entries {
                li data-cpu=[cpu] { span class={ "swatch " (class) } {} (text) }
            }
        }
    }
}

/// The legend of a ramp of colours, from `low` to `high`.
pub(crate) fn ramp(low: &str, high: &str, what: &str) -> Markup {
    html! {
        p.ramp {
            (low) " "
            span.cells aria-hidden="true" {
                @for level in 0..crate::svg::time::LEVELS { i class={ "h" (level) } {} }
            }
            " " (high) " " (what)
        }
    }
}

/// Microseconds of a table.
pub(crate) fn us(value_ns: Option<u64>) -> String {
    value_ns.map_or(NONE.into(), units::us_column)
}

/// Microseconds of a mean.
pub(crate) fn us_mean(value_ns: Option<f64>) -> String {
    us(value_ns.filter(|v| v.is_finite()).map(|v| v.round() as u64))
}

/// A quantile with its interval, for a cell.
pub(crate) fn quantile_cell(quantile: Option<&Quantile>) -> Markup {
    // Quantiles are listed up to the first that the samples do not carry.
    let carried = quantile.and_then(|quantile| Some((quantile, quantile.value_ns?)));
    let Some((quantile, value_ns)) = carried else {
        return html! { td.num.few { small { "not enough samples" } } };
    };
    html! {
        td.num {
            (units::us_column(value_ns))
            small.interval { (range(quantile)) }
        }
    }
}

/// The range of a quantile over the tenths of the run, in microseconds.
pub(crate) fn range(quantile: &Quantile) -> String {
    match (quantile.tenths_low_ns, quantile.tenths_high_ns) {
        (Some(low), Some(high)) => format!("{}…{}", units::us_column(low), units::us_column(high)),
        _ => "no range".into(),
    }
}

pub(crate) fn hostname(report: &Report) -> &str {
    report.machine.hostname.as_deref().unwrap_or("unknown machine")
}

/// A wall-clock time, UTC, to the second.
pub(crate) fn wall_clock(realtime_ns: u64) -> String {
    match jiff::Timestamp::from_nanosecond(i128::from(realtime_ns)) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => format!("{realtime_ns} ns after 1970"),
    }
}

/// A time within the run, in seconds to the millisecond.
pub(crate) fn run_time(due_ns: u64) -> String {
    let ms = due_ns / 1_000_000;
    format!("{}.{:03} s", units::grouped(ms / 1000), ms % 1000)
}

/// A budget class as the command line names it.
pub(crate) const fn class(class: BudgetClass) -> &'static str {
    match class {
        BudgetClass::Soft => "soft",
        BudgetClass::NinetyFive => "95 %",
        BudgetClass::Hundred => "100 %",
        BudgetClass::Safe => "safe",
    }
}

/// A policy as the kernel names it.
pub(crate) const fn policy(policy: Policy) -> &'static str {
    match policy {
        Policy::Other => "SCHED_OTHER",
        Policy::Fifo => "SCHED_FIFO",
        Policy::Rr => "SCHED_RR",
        Policy::Batch => "SCHED_BATCH",
        Policy::Idle => "SCHED_IDLE",
        Policy::Deadline => "SCHED_DEADLINE",
        Policy::Ext => "SCHED_EXT",
    }
}

/// Bytes with a binary unit: `16 GiB`.
pub(crate) fn binary_size(n: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    for (shift, name) in UNITS {
        if n >> shift > 0 {
            let text = format!("{:.1}", n as f64 / (1_u64 << shift) as f64);
            return format!("{} {name}", text.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    format!("{n} bytes")
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    /// What pages are made of. A browser takes an unknown element apart without a word.
    const ELEMENTS: &str = "\
        a article b body br caption circle clipPath code col colgroup dd defs desc \
        details div dl dt ellipse em fieldset figcaption figure footer g h1 h2 h3 h4 \
        head header html i img input kbd label legend li line link main mark meta nav ol \
        option output p path pattern polygon polyline pre rect s section select small \
        span strong style sub summary sup svg table tbody td text tfoot th thead time \
        title tr tspan u ul use";

    fn values<'a>(markup: &'a str, attribute: &str) -> Vec<&'a str> {
        markup.split(attribute).skip(1).filter_map(|rest| rest.split('"').next()).collect()
    }

    /// Holds for every page that a test makes: elements are known, links within it lead somewhere.
    pub(super) fn check_page(page: &str) {
        let markup = page.split("<script").next().unwrap_or_default();
        for tag in markup.split('<').skip(1).filter(|tag| !tag.starts_with(['/', '!'])) {
            let name =
                tag.split(|c: char| c.is_whitespace() || c == '>').next().unwrap_or_default();
            assert!(ELEMENTS.split(' ').any(|known| known == name), "<{name}> is no element");
        }
        let ids: HashSet<&str> = values(page, " id=\"").into_iter().collect();
        let links = values(markup, " href=\"#").into_iter();
        let labels =
            values(markup, " aria-labelledby=\"").into_iter().flat_map(|ids| ids.split(' '));
        for id in links.chain(labels) {
            assert!(ids.contains(id), "nothing has the id {id}");
        }
    }

    #[test]
    #[should_panic(expected = "<quiet_table> is no element")]
    fn an_unknown_element_is_found() {
        check_page("<!DOCTYPE html><html><quiet_table></quiet_table></html>");
    }

    #[test]
    #[should_panic(expected = "nothing has the id moments")]
    fn a_link_to_nowhere_is_found() {
        check_page("<html><a href=\"#moments\">Moments</a><h2 id=\"moment\">Moment</h2></html>");
    }
}
