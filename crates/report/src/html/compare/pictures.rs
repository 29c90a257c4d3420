//! The pictures: histograms over each other, the nines, how far each quantile moved, the runs over
//! time, and of many runs each beside the first.

use maud::{Markup, html};
use rtproof_judge::compare::{Comparison, Design, Group};

use super::{
    super::parts::{self, Figure as Shown},
    page::{Figure, Page},
};
use crate::svg::compare::{
    Series, later,
    overlay::{self, Drawn},
    runs, shift,
};

pub(super) fn section(page: &Page<'_>) -> Markup {
    let series: Vec<Series> = page
        .groups
        .iter()
        .enumerate()
        .map(|(at, group)| Series::of(group, page.comparison.view, Some(at)))
        .collect();
    html! {
        section #pictures {
            h2 { "Pictures" }
            (both(page, &series, ("overlay", "later"), None))
            @for (at, figure) in page.figures.iter().enumerate() {
                (chosen(page, &series, at, figure))
            }
            (shifts(page.comparison))
            (over_time(page.comparison))
            @if page.groups.len() > 2 { (each(page, &series)) }
        }
    }
}

/// Histogram and nines of some lines.
fn both(page: &Page<'_>, series: &[Series], ids: (&str, &str), of: Option<&str>) -> Markup {
    let text = maxima(series);
    let of = of.map_or_else(String::new, |of| format!(": {of}"));
    let drawn = |id, title| Drawn {
        id,
        title,
        text: &text,
        budget_ns: budget(page),
        height: 420.0 + 14.0 * series.len().saturating_sub(4) as f64,
        named: true,
        reach_ns: None,
    };
    let (histogram, nines) =
        (format!("Histograms over each other{of}"), format!("The far tail{of}"));
    let (first, second) = (format!("chart-{}", ids.0), format!("chart-{}", ids.1));
    let nothing = "Nothing was measured.";
    html! {
        @match overlay::draw(series, drawn(&first, &histogram)) {
            Some(picture) => (parts::figure(&Shown {
                title: &histogram, text: &text, picture, legend: legend(series), table: None,
            })),
            None => (parts::no_chart(&first, &histogram, nothing)),
        }
        @match later::draw(series, drawn(&second, &nines)) {
            Some(picture) => (parts::figure(&Shown {
                title: &nines,
                text: "How far each run is out at each nine: the lower a line reaches the later, \
                       the more wake-ups it had; the further left, the better.",
                picture, legend: legend(series), table: None,
            })),
            None => (parts::no_chart(&second, &nines, nothing)),
        }
    }
}

/// A legend only where names at the lines may run into each other.
fn legend(series: &[Series]) -> Markup {
    if series.len() <= 4 {
        return Markup::default();
    }
    html! {
        ul.legend {
            @for line in series {
                li { span class={ "swatch " (line.class())
                    @if line.line() != "line" { " dashed" } } {} (line.label) }
            }
        }
    }
}

fn maxima(series: &[Series]) -> String {
    let texts: Vec<String> =
        series.iter().map(|line| format!("{} {}", line.label, line.max_text())).collect();
    format!("Latest wake-up: {}.", texts.join(", "))
}

/// The budget, where the comparison counts against one.
fn budget(page: &Page<'_>) -> Option<u64> {
    let asked = page.comparison.wish.budget_ns;
    let of_runs = || page.groups.iter().flat_map(|g| &g.sides).find_map(|side| side.budget_ns);
    asked.or_else(of_runs)
}

/// A picture of some of the runs alone.
fn chosen(page: &Page<'_>, all: &[Series], at: usize, figure: &Figure) -> Markup {
    let series: Vec<Series> = figure.groups.iter().filter_map(|&at| all.get(at)).cloned().collect();
    // Colours of their own: of few lines they are furthest apart.
    let series: Vec<Series> = series
        .into_iter()
        .enumerate()
        .map(|(colour, line)| Series { colour: Some(colour), ..line })
        .collect();
    let names: Vec<&str> = series.iter().map(|line| line.label.as_str()).collect();
    let ids = (format!("figure-{at}"), format!("figure-{at}-later"));
    both(page, &series, (&ids.0, &ids.1), Some(&names.join(", ")))
}

/// How far each quantile moved.
fn shifts(comparison: &Comparison) -> Markup {
    let first = comparison.groups.first().map_or("the first", |group| group.label.as_str());
    let drawn = comparison.against.iter().map(|one| {
        let label = comparison.groups.get(one.group).map_or("", |group| group.label.as_str());
        let title = format!("{label} to {first}, quantile by quantile");
        let worst = one
            .shift
            .points
            .iter()
            .max_by(|a, b| a.ratio.ln().abs().total_cmp(&b.ratio.ln().abs()));
        let text = worst.map_or_else(String::new, |point| {
            format!(
                "Below the line is lower latency. The largest change is that of {}: {}. Band: {}. \
                 Shaded: differences that do not matter.",
                point.quantile,
                rtproof_results::effects::signed((point.ratio * 1e6) as u64),
                one.shift.method
            )
        });
        let id = format!("chart-shift-{}", one.group);
        let picture =
            shift::draw(&one.shift, one.group, comparison.wish.margin, (&id, &title, &text));
        (title, text, picture)
    });
    let all = html! {
        @for (title, text, picture) in drawn {
            @if let Some(picture) = picture {
                (parts::figure(&Shown {
                    title: &title, text: &text, picture, legend: Markup::default(), table: None,
                }))
            }
        }
    };
    if comparison.against.len() < 3 {
        return all;
    }
    html! {
        (together(comparison, first))
        details { summary { "Each of them with its band" } (all) }
    }
}

/// Many lines in one picture.
fn together(comparison: &Comparison, first: &str) -> Markup {
    let title = format!("Each to {first}, quantile by quantile");
    let text = "Below the middle line is lower latency. Shaded: differences that do not matter.";
    let lines: Vec<_> = comparison
        .against
        .iter()
        .filter_map(|one| {
            let group = comparison.groups.get(one.group)?;
            Some((group.label.as_str(), one.group, &one.shift))
        })
        .collect();
    let margin = comparison.wish.margin;
    let Some(picture) = shift::together(&lines, margin, ("chart-shifts", &title, text)) else {
        return Markup::default();
    };
    parts::figure(&Shown { title: &title, text, picture, legend: Markup::default(), table: None })
}

fn over_time(comparison: &Comparison) -> Markup {
    if comparison.design == Design::Single {
        return Markup::default();
    }
    let title = "The runs in order of time";
    let text = "p99.9 of each run. What rises or falls along the whole picture is drift, which \
                pairs take out.";
    let Some(picture) = runs::draw(comparison, ("chart-runs", title, text)) else {
        return Markup::default();
    };
    parts::figure(&Shown { title, text, picture, legend: Markup::default(), table: None })
}

/// Each run by itself with its threads, the first one grey behind it.
fn each(page: &Page<'_>, all: &[Series]) -> Markup {
    let reach_ns = all.iter().filter_map(|line| line.max_ns).max().map(|ns| ns as f64);
    let one = |at: usize, group: &Group| {
        let mut series: Vec<Series> = Vec::new();
        if at > 0 {
            series.extend(all.first().map(|first| Series { colour: None, ..first.clone() }));
        }
        series.push(Series { colour: Some(at), ..all[at].clone() });
        let title = group.label.clone();
        let first = page.groups.first().map_or("", |group| group.label.as_str());
        let text = match at {
            0 => format!("Latest {}.", all[at].max_text()),
            _ => format!("Latest {}; grey: {first}.", all[at].max_text()),
        };
        let id = format!("chart-each-{at}");
        let drawn = Drawn {
            id: &id,
            title: &title,
            text: &text,
            budget_ns: None,
            height: 400.0,
            named: false,
            reach_ns,
        };
        let picture = overlay::draw(&series, drawn)?;
        Some(parts::figure(&Shown {
            title: &title,
            text: &text,
            picture,
            legend: Markup::default(),
            table: None,
        }))
    };
    html! {
        h3 { "Each beside the first" }
        div.smalls.half {
            @for (at, group) in page.groups.iter().enumerate() {
                @if let Some(figure) = one(at, group) { (figure) }
            }
        }
    }
}
