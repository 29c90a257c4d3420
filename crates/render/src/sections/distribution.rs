//! Moments, percentiles and moving statistics, as text and on the page.
//!
//! Words and numbers that text and HTML share about the distribution of the samples.

use std::io::{self, Write};

use maud::{Markup, html};

use rtproof_judge::{
    Report,
    distribution::Distribution,
    moving::{Gap, Moving, MovingRange},
    units::{self, grouped, us_column},
};
use rtproof_stats::moving::{MovingStatistic, MovingStep, PERCENTILE_ERROR, STATISTICS};

use crate::html::Figure;
use crate::svg::bins::TimeBins;
use crate::svg::events::EventLanes;
use crate::svg::time::{self, KINDS, class};
use crate::text::{BOLD, DIM, Terminal, WARN, table, wrapped};

/// What the numbers are, and what they are not for.
pub(crate) const CONVENTION: &str = "Of the wake-ups that were measured, from exact sums. sd with \
    n - 1; skewness g1 = m3 / m2^1.5, and G1 its estimate for the population. Excess kurtosis g2 = \
    m4 / m2² - 3, and G2 likewise. Kurtosis is g2 + 3, which is 3 for a normal distribution. \
    Skewness and kurtosis count outliers: k equal ones among n make a kurtosis of about n / k. \
    Nothing is decided by these.";

/// Why P² is not applicable.
pub(crate) const P2_CAUTION: &str = "An estimate without an interval, as older tables have it, \
    made from the cells of each second in order of time: it can be off twelvefold, and cannot be \
    merged. The histogram's own quantile, and how far P² is off it, stand beside it.";

/// `all`, `CPU 3`.
pub(crate) fn name(cpu: Option<u32>) -> String {
    cpu.map_or("all".into(), |cpu| format!("CPU {cpu}"))
}

/// A number with three digits or more, groups of digits where it is large.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        a if !a.is_finite() => "-".into(),
        a if a >= 1000.0 => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", grouped(a.round() as u64))
        }
        a if a >= 100.0 => format!("{value:.0}"),
        a if a >= 10.0 => format!("{value:.1}"),
        a if a >= 0.1 || a == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// Time without samples and missed wake-ups, which moving statistics do not show; the first `most`
/// gaps by name. `None`: there is nothing of that.
pub(crate) fn gaps(moving: &Moving, most: usize) -> Option<String> {
    let mut texts = Vec::new();
    if moving.gaps_all > 0 {
        let named = |gap: &Gap| {
            let cpus = units::count(gap.cpus, "CPU");
            format!(
                "{cpus} from {} to {}",
                units::duration(gap.from_ns),
                units::duration(gap.to_ns)
            )
        };
        let shown: Vec<String> = moving.gaps.iter().take(most).map(named).collect();
        let more = match moving.gaps_all - shown.len() as u64 {
            0 => String::new(),
            more => format!(", and {} more", grouped(more)),
        };
        texts.push(format!("No sample: {}{more}.", shown.join(", ")));
    }
    if moving.missed > 0 {
        texts.push(format!(
            "{} missed in {} of the steps; no value here counts them, the deadline view does.",
            units::count(moving.missed, "wake-up"),
            grouped(moving.missed_steps)
        ));
    }
    (!texts.is_empty()).then(|| texts.join(" "))
}

// Moments and percentiles: what tables of latency show beside quantiles, each under the name of
// its convention.

pub(crate) fn section(report: &Report) -> Markup {
    html! {
        section #moments {
            p { (CONVENTION) }
            (crate::html::scroll("Moments", &moments_html(rows_html(&report.distribution))))
            (p2(&report.distribution))
        }
    }
}

fn rows_html(all: &[Distribution]) -> impl Iterator<Item = (String, &Distribution)> {
    all.iter().map(|of| (name(of.cpu), of))
}

/// A row for each; names come with them.
pub(crate) fn moments_html<'a>(rows: impl Iterator<Item = (String, &'a Distribution)>) -> Markup {
    let shape = |of: &'a Distribution| of.shape.as_ref();
    crate::html::table_of(
        "quantiles",
        rows,
        &[
            ("", &|(name, _)| html! { (name) }),
            ("#samples", &|(_, of)| html! { (grouped(of.n)) }),
            ("#mean, µs", &|(_, of)| html! { (us3(of.mean_ns)) }),
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
    value.map_or(crate::html::NONE.into(), number)
}

/// Microseconds with three decimals: means have a finer resolution than samples.
fn us3(ns: Option<f64>) -> String {
    ns.map_or(crate::html::NONE.into(), |ns| format!("{:.3}", ns / 1000.0))
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
        (crate::html::scroll("P² beside the histogram", &html! {
            table.quantiles {
                (crate::html::table_head(columns))
                tbody {
                    @for of in all.iter().filter(|of| !of.p2.is_empty()) {
                        tr {
                            th scope="row" { (name(of.cpu)) }
                            @for estimated in &of.p2 {
                                td.num { (crate::html::us(estimated.histogram_ns)) }
                                td.num.quiet { (crate::html::us_mean(Some(estimated.p2_ns))) }
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
    share.map_or(crate::html::NONE.into(), |share| format!("{:+.1}", 100.0 * share))
}

// Moments and P² estimates as text: what is asked for with -v.

const HEADS: [&str; 9] = ["", "mean", "sd", "cv", "spread", "g1", "G1", "g2", "G2"];

/// All of it, of a report.
pub fn distribution(to: &mut Terminal, report: &Report) -> io::Result<()> {
    writeln!(to, "{BOLD}Moments{BOLD:#}")?;
    let of_workload = report.distribution.iter().map(|of| (name(of.cpu), of));
    moments_text(to, "  ", &of_workload.collect::<Vec<_>>())?;
    for of in &report.distribution {
        estimates(to, INDENT, of)?;
    }
    let text = format!("{CONVENTION} P²: {P2_CAUTION}");
    wrapped(to, &format!("{INDENT}{DIM}"), INDENT, &format!("{text}{DIM:#}"))
}

/// A table of moments, a row for each.
pub(super) fn moments_text(
    to: &mut Terminal,
    indent: &str,
    of: &[(String, &Distribution)],
) -> io::Result<()> {
    let mut rows: Vec<Vec<String>> = vec![HEADS.map(String::from).into()];
    rows.extend(of.iter().map(|(name, of)| row(name, of)));
    table(to, indent, &rows, &[])
}

fn row(name: &str, of: &Distribution) -> Vec<String> {
    let us = |ns: Option<f64>| ns.map_or("-".into(), |ns| format!("{:.3}", ns / 1000.0));
    let part = |value: Option<f64>| value.map_or("-".into(), number);
    let shape = of.shape.as_ref();
    vec![
        name.into(),
        us(of.mean_ns),
        us(of.sd_ns),
        part(of.cv),
        part(of.spread),
        part(shape.map(|shape| shape.g1)),
        part(shape.and_then(|shape| shape.g1_sample)),
        part(shape.map(|shape| shape.g2)),
        part(shape.and_then(|shape| shape.g2_sample)),
    ]
}

/// P² beside the histogram, in a line.
pub(super) fn estimates(to: &mut Terminal, indent: &str, of: &Distribution) -> io::Result<()> {
    if of.p2.is_empty() {
        return Ok(());
    }
    let texts: Vec<String> = of
        .p2
        .iter()
        .map(|of| {
            let own = of.histogram_ns.map_or("too few samples".into(), us_column);
            let error =
                of.error.map_or_else(String::new, |error| format!(", {:+.1} %", 100.0 * error));
            let p2 = us_column(of.p2_ns.max(0.0).round() as u64);
            format!("{} {p2} ({own}{error})", of.q.name())
        })
        .collect();
    let text =
        format!("{}: P² estimates (histogram, error of P²) {} µs", name(of.cpu), texts.join(", "));
    wrapped(to, indent, &format!("{indent}  "), &text)
}

// Moving statistics: pictures over time whose lines are switched on and off without a script.

/// Statistics that are seen at first; those that are numbers always are.
const SHOWN: [&str; 4] = ["mean", "p50", "p99", "p99.9"];

/// Rows of the table.
const ROWS_MAX_HTML: usize = 50;

const GAPS_MAX_HTML: usize = 6;

pub(super) fn figures(report: &Report, time: TimeBins, events: &EventLanes) -> Markup {
    let title = "Moving statistics";
    let found = &report.moving;
    if found.is_empty() {
        return crate::html::no_chart("chart-moving", title, "No wake-up was measured.");
    }
    let text = text(found);
    let times = STATISTICS.iter().enumerate().filter(|(_, of)| of.is_time);
    let mut legend: Vec<_> =
        times.map(|(at, of)| (format!("s{at}"), None, of.name.to_owned())).collect();
    legend.extend(KINDS.iter().map(|kind| (kind.look.to_owned(), None, kind.name.to_owned())));
    let first = crate::html::figure(&Figure {
        title,
        text: &text,
        picture: time::draw_times(report, time, events, (title, &text)),
        legend: html! { (switches()) (crate::html::legend(&legend)) },
        table: Some(moving_table(found)),
    });
    html! {
        (first)
        @for number in STATISTICS.iter().filter(|of| !of.is_time) { (of(found, time, number)) }
    }
}

fn of(moving: &Moving, time: TimeBins, statistic: &MovingStatistic) -> Markup {
    let title = format!("Moving {}", statistic.name);
    let text = "It counts outliers: k equal ones among n make a kurtosis of about n / k, and a \
                skewness of about its root. Lines as above.";
    crate::html::figure(&Figure {
        title: &title,
        text,
        picture: time::draw_number(moving, time, statistic, (&title, text)),
        legend: Markup::default(),
        table: None,
    })
}

fn text(moving: &Moving) -> String {
    let spans = moving.spans;
    let every = match moving.every {
        1 => String::new(),
        n => format!(
            " Drawn is each {n}th value; the highest and lowest ones of all stand in the text of \
             `rtproof report --moving`."
        ),
    };
    let absent = gaps(moving, GAPS_MAX_HTML).map_or_else(String::new, |text| format!(" {text}"));
    format!(
        "All CPUs together, a value each {}: of the samples of the last {} (from the first full \
         window on), with weights that halve every {}, and of all so far. Percentiles lie up to \
         {:.1} % above the sample. A line ends where there is no sample.{every}{absent}",
        units::duration(spans.step_ns),
        units::duration(spans.window_ns),
        units::duration(spans.half_life_ns),
        100.0 * PERCENTILE_ERROR
    )
}

/// Which lines: needs no script. A browser that does not know `:has` shows all.
fn switches() -> Markup {
    let kinds = KINDS.iter().map(|kind| (kind.class.to_owned(), kind.name, true));
    let times = STATISTICS.iter().filter(|of| of.is_time);
    let times = times.map(|of| (class(of), of.name, SHOWN.contains(&of.name)));
    let each = ("eachstep".to_owned(), "mean of each stretch", false);
    let all: Vec<_> = kinds.chain(times).chain([each]).collect();
    html! {
        fieldset.switch {
            legend { "Lines" }
            @for (class, name, is_on) in &all {
                label {
                    input id={ "moving-" (class) } type="checkbox" checked[*is_on]; " " (name)
                }
            }
        }
    }
}

fn moving_table(moving: &Moving) -> Markup {
    let value = |statistic: &MovingStatistic, step: &MovingStep| {
        let value = step.windowed.as_ref().and_then(statistic.of);
        match value {
            None => crate::html::NONE.into(),
            Some(_) if statistic.is_time => crate::html::us_mean(value),
            Some(value) => number(value),
        }
    };
    let every = moving.rows.len().div_ceil(ROWS_MAX_HTML).max(1);
    html! {
        p.quiet {
            "Of the window that ends there, times in \u{b5}s. All kinds and steps: "
            code { "rtproof export --format csv --table moving" }
        }
        table {
            (crate::html::table_head(
                ["#end", "#n", "#missed", "#gaps"].into_iter().map(String::from)
                    .chain(STATISTICS.iter().map(|of| format!("#{}", of.name)))))
            tbody {
                @for step in moving.rows.iter().rev().step_by(every).rev() {
                    tr {
                        th.num scope="row" { (units::duration(step.to_ns)) }
                        td.num { (grouped(step.windowed.map_or(0, |of| of.n as u64))) }
                        td.num { (grouped(step.window_missed)) }
                        td.num { (grouped(step.window_gaps)) }
                        @for statistic in &STATISTICS {
                            td.num { (value(statistic, step)) }
                        }
                    }
                }
            }
        }
    }
}

// Moving statistics as text: each statistic beside the cumulative one, where time has no samples,
// and with `--moving` the windows over time.

const INDENT: &str = "         ";

/// Rows of the windows over time.
const ROWS_MAX_TEXT: usize = 24;

/// Gaps named in text.
const GAPS_MAX_TEXT: usize = 4;

/// Each statistic in a line, gaps and missed wake-ups; `is_full`: the windows over time, too.
pub fn moving(to: &mut Terminal, report: &Report, is_full: bool) -> io::Result<()> {
    use std::io::Write;
    let moving = &report.moving;
    if moving.is_empty() {
        return Ok(());
    }
    let (window, half_life) = lengths(moving);
    writeln!(
        to,
        "{BOLD}Moving{BOLD:#}   window {window}, half-life {half_life}, a value each {}, all CPUs \
         together",
        units::duration(moving.spans.step_ns)
    )?;
    rows_text(to, &summary(moving))?;
    absent(to, moving)?;
    if is_full {
        writeln!(to, "  {DIM}windows of {window} that end at{DIM:#}")?;
        rows_text(to, &over_time(moving))?;
    }
    let text = format!(
        "Times in µs, of the samples alone. Mean, sd, g1 and g2 come from exact sums; sd has n - \
         1, or the weights. Percentiles lie up to {:.1} % above the sample; - where too few samples \
         carry one.",
        100.0 * PERCENTILE_ERROR
    );
    wrapped(to, &format!("{INDENT}{DIM}"), INDENT, &format!("{text}{DIM:#}"))
}

fn lengths(moving: &Moving) -> (String, String) {
    (units::duration(moving.spans.window_ns), units::duration(moving.spans.half_life_ns))
}

/// A value with the figures that its kind has.
fn shown(statistic: &MovingStatistic, value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(ns) if statistic.is_time => format!("{:.3}", ns / 1000.0),
        Some(value) => number(value),
    }
}

fn summary(moving: &Moving) -> Vec<Vec<String>> {
    let heads =
        ["", "all", "window: low", "at", "high", "at", "last", "by age: low", "high", "last"];
    let mut rows = vec![heads.map(String::from).to_vec()];
    for (line, statistic) in moving.statistics.iter().zip(&STATISTICS) {
        let value = |value| shown(statistic, value);
        let of = |range: Option<MovingRange>, of: fn(MovingRange) -> f64| value(range.map(of));
        let at = |range: Option<MovingRange>, of: fn(MovingRange) -> u64| {
            range.map_or("-".into(), |range| units::duration(of(range)))
        };
        let (windowed, aged) = (line.windowed, line.exponential);
        rows.push(vec![
            statistic.name.into(),
            value(line.cumulative),
            of(windowed, |range| range.low),
            at(windowed, |range| range.low_at_ns),
            of(windowed, |range| range.high),
            at(windowed, |range| range.high_at_ns),
            value(windowed.and_then(|range| range.last)),
            of(aged, |range| range.low),
            of(aged, |range| range.high),
            value(aged.and_then(|range| range.last)),
        ]);
    }
    rows
}

/// The windows at a few moments, the last one among them.
fn over_time(moving: &Moving) -> Vec<Vec<String>> {
    let mut heads = vec!["at".to_owned()];
    heads.extend(["n", "missed", "gaps"].map(String::from));
    heads.extend(
        STATISTICS.iter().map(|of| of.name.replace("skewness ", "").replace("kurtosis ", "")),
    );
    let mut rows = vec![heads];
    let every = moving.rows.len().div_ceil(ROWS_MAX_TEXT).max(1);
    for step in moving.rows.iter().rev().step_by(every).rev() {
        let windowed = step.windowed.as_ref();
        let mut row = vec![
            units::duration(step.to_ns),
            windowed.map_or("-".into(), |of| grouped(of.n as u64)),
            grouped(step.window_missed),
            grouped(step.window_gaps),
        ];
        row.extend(STATISTICS.iter().map(|of| shown(of, windowed.and_then(of.of))));
        rows.push(row);
    }
    rows
}

/// Rows in columns, the first one as the head.
fn rows_text(to: &mut Terminal, rows: &[Vec<String>]) -> io::Result<()> {
    crate::text::columns(to, "  ", rows)
}

/// Time without samples and missed wake-ups.
fn absent(to: &mut Terminal, moving: &Moving) -> io::Result<()> {
    if let Some(text) = gaps(moving, GAPS_MAX_TEXT) {
        wrapped(to, &format!("{INDENT}{WARN}!{WARN:#} "), "           ", &text)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let texts = [31.62, 0.05, 4998.2, -1.7, 0.0, 0.123, 250.4].map(number);
        let want = ["31.6", "0.0500", "4 998", "-1.70", "0.00", "0.12", "250"];
        assert_eq!(texts.map(|text| text.replace('\u{202f}', " ")), want);
        assert_eq!(number(f64::NAN), "-");
    }
}

#[cfg(test)]
mod moving_tests {
    use super::*;
    use crate::html::STYLE;

    #[test]
    fn every_line_has_its_switch() {
        let page = switches().into_string();
        let classes = KINDS
            .iter()
            .map(|kind| kind.class.to_owned())
            .chain(STATISTICS.iter().filter(|of| of.is_time).map(class))
            .chain(["eachstep".to_owned()]);
        for class in classes {
            assert!(page.contains(&format!("id=\"moving-{class}\"")), "{class}");
            let rule = format!("body:has(#moving-{class}:not(:checked)) .moving.{class}");
            assert!(STYLE.contains(&rule), "{rule}");
        }
    }
}
