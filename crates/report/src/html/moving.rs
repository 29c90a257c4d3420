//! Moving statistics: pictures over time whose lines are switched on and off without a script.

use maud::{Markup, html};
use rtproof_judge::{Report, moving::Moving, units};
use rtproof_stats::moving::{PERCENTILE_ERROR, STATISTICS, Statistic, Step};

use super::parts::{self, Figure};
use crate::{
    distribution::{gaps, number},
    svg::{
        bins::TimeBins,
        events::Events,
        moving::{self, KINDS, class},
    },
};

/// Statistics that are seen at first; those that are numbers always are.
const SHOWN: [&str; 4] = ["mean", "p50", "p99", "p99.9"];
/// Rows of the table.
const ROWS_MAX: usize = 50;
const GAPS_MAX: usize = 6;

pub(super) fn figures(report: &Report, time: TimeBins, events: &Events) -> Markup {
    let title = "Moving statistics";
    let found = &report.moving;
    if found.is_empty() {
        return parts::no_chart("chart-moving", title, "No wake-up was measured.");
    }
    let text = text(found);
    let times = STATISTICS.iter().enumerate().filter(|(_, of)| of.is_time);
    let mut legend: Vec<_> =
        times.map(|(at, of)| (format!("s{at}"), None, of.name.to_owned())).collect();
    legend.extend(KINDS.iter().map(|kind| (kind.look.to_owned(), None, kind.name.to_owned())));
    let first = parts::figure(&Figure {
        title,
        text: &text,
        picture: moving::draw_times(report, time, events, (title, &text)),
        legend: html! { (switches()) (parts::legend(&legend)) },
        table: Some(table(found)),
    });
    html! {
        (first)
        @for number in STATISTICS.iter().filter(|of| !of.is_time) { (of(found, time, number)) }
    }
}

fn of(moving: &Moving, time: TimeBins, statistic: &Statistic) -> Markup {
    let title = format!("Moving {}", statistic.name);
    let text = "It counts outliers: k equal ones among n make a kurtosis of about n / k, and a \
                skewness of about its root. Lines as above.";
    parts::figure(&Figure {
        title: &title,
        text,
        picture: moving::draw_number(moving, time, statistic, (&title, text)),
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
    let absent = gaps(moving, GAPS_MAX).map_or_else(String::new, |text| format!(" {text}"));
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

fn table(moving: &Moving) -> Markup {
    let value = |statistic: &Statistic, step: &Step| {
        let value = step.windowed.as_ref().and_then(statistic.of);
        match value {
            None => parts::NONE.into(),
            Some(_) if statistic.is_time => parts::us_mean(value),
            Some(value) => number(value),
        }
    };
    let every = moving.rows.len().div_ceil(ROWS_MAX).max(1);
    html! {
        p.quiet {
            "Of the window that ends there, times in \u{b5}s. All kinds and steps: "
            code { "rtproof export --format csv --table moving" }
        }
        table {
            (parts::head(["#end", "#n", "#missed", "#gaps"].into_iter().map(String::from).chain(
                STATISTICS.iter().map(|of| format!("#{}", of.name)))))
            tbody {
                @for step in moving.rows.iter().rev().step_by(every).rev() {
                    tr {
                        th.num scope="row" { (units::duration(step.to_ns)) }
                        td.num { (units::grouped(step.windowed.map_or(0, |of| of.n as u64))) }
                        td.num { (units::grouped(step.window_missed)) }
                        td.num { (units::grouped(step.window_gaps)) }
                        @for statistic in &STATISTICS {
                            td.num { (value(statistic, step)) }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::parts::STYLE;

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
