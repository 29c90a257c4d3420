//! The pictures of a comparison.

use maud::{Markup, html};

use rtproof_judge::{
    compare::{CompareDesign, Comparison, Group},
    units,
};
use rtproof_results::Answer;

use crate::html::Figure as Shown;
use crate::svg::compare::{CompareSeries, Overlay};
use crate::svg::over::Placing;
use crate::svg::{compare, over};

// Runs over each other in time, and the CPUs of each: where latency jumps, and what else changed
// at that moment.

/// Runs drawn, at most: more cannot be distinguished.
const RUNS_MAX: usize = 8;

pub(super) fn over_section(page: &ComparePage<'_>) -> Markup {
    let (runs, left_out) = drawn_runs(page);
    html! {
        section #time {
            h2 { "Over time" }
            @match over::latencies(&runs) {
                None => (crate::html::no_chart("chart-over", "Latency over time", NOTHING)),
                Some(y) => {
                    (together_over(page, &runs, left_out, y))
                    (levels(page.comparison))
                    (each_over(&runs, y))
                }
            }
        }
    }
}

const NOTHING: &str = "None of these files holds times: latencies over time are in records of \
                       rtproof alone.";

/// Runs that are drawn, and how many that have times are not: of each group equally many.
fn drawn_runs<'a>(page: &ComparePage<'a>) -> (Vec<over::ShownRun<'a>>, usize) {
    let of_group = (RUNS_MAX / page.groups.len().max(1)).max(1);
    let mut runs = Vec::new();
    let mut left_out = 0;
    for (colour, group) in page.groups.iter().enumerate() {
        let timed = group.sides.iter().filter_map(|side| Some((side, side.over.as_ref()?)));
        for (at, (side, over)) in timed.enumerate() {
            if at < of_group && runs.len() < RUNS_MAX {
                runs.push(over::ShownRun { label: &side.label, colour, over });
            } else {
                left_out += 1;
            }
        }
    }
    (runs, left_out)
}

fn together_over(
    page: &ComparePage<'_>,
    runs: &[over::ShownRun<'_>],
    left_out: usize,
    y: crate::svg::chart::Scale,
) -> Markup {
    let placing = page.by_phase.then(|| Placing::by_phase(runs));
    let how = match &placing {
        None => "Runs begin together.",
        Some(None) => {
            "A run has no load phases, so runs are not aligned by phase; they begin \
                       together."
        }
        Some(Some(_)) => "Load phases of one name begin together.",
    };
    let placing = placing.flatten().unwrap_or_else(|| Placing::by_start(runs));
    let title = "Latency over time, runs over each other";
    let missing = over::missing(runs);
    let missing = match missing.is_empty() {
        true => String::new(),
        false => format!(" No run has readings of: {}.", missing.join("; ")),
    };
    let text = format!(
        "{how} Lines are the latest wake-up of all CPUs, faint ones the highest median of a CPU, \
         in columns of {}. Below: the host, and of each run its load phases; ticks are changes of \
         its level, dotted ones changes from outside.{missing}{}",
        widths(runs),
        without(page, left_out)
    );
    let legend = html! {
        ul.legend {
            @for run in runs {
                li { span class={ "swatch " (over::class(run.colour)) } {} (run.label) }
            }
        }
    };
    let picture = over::runs(runs, &placing, y, ("chart-over", title, &text));
    crate::html::figure(&Shown { title, text: &text, picture, legend, table: None })
}

/// Widths of the columns: one, or from the smallest to the largest.
fn widths(runs: &[over::ShownRun<'_>]) -> String {
    let widths = || runs.iter().map(|run| run.over.width_ns);
    let (least, most) = (widths().min().unwrap_or(0), widths().max().unwrap_or(0));
    match least == most {
        true => units::duration(least),
        false => format!("{} to {}", units::duration(least), units::duration(most)),
    }
}

/// Runs that are not drawn, and why.
fn without(page: &ComparePage<'_>, left_out: usize) -> String {
    let sides = page.groups.iter().flat_map(|group| &group.sides);
    let timeless: Vec<&str> =
        sides.filter(|side| side.over.is_none()).map(|side| side.label.as_str()).collect();
    let mut text = match timeless.len() {
        0 => String::new(),
        1..=4 => format!(" Without times in its file: {}.", timeless.join(", ")),
        n => format!(" {n} runs have no times in their files."),
    };
    if left_out > 0 {
        text += &format!(" {} more not drawn.", units::count(left_out, "run"));
    }
    text
}

/// Where the level of each run changes, in sentences.
fn levels(comparison: &Comparison) -> Markup {
    html! {
        h3 { "Changes of the level" }
        ul.reasons {
            @for of in &comparison.levels { li { b { (of.run) } ": " (of.text) "." } }
        }
    }
}

/// The CPUs of each run over each other.
fn each_over(runs: &[over::ShownRun<'_>], y: crate::svg::chart::Scale) -> Markup {
    let reach_ns = runs.iter().map(|run| run.over.end_ns).max().unwrap_or(0);
    let one = |at: usize, run: &over::ShownRun<'_>| {
        let title = format!("CPUs of {} over each other", run.label);
        let text = format!(
            "Medians, faint the latest wake-up, in columns of {}.",
            units::duration(run.over.width_ns)
        );
        let id = format!("chart-over-{at}");
        let colours = over::cpu_colours(run.over);
        let grey = colours.iter().filter(|colour| colour.is_none()).count();
        let legend = html! {
            ul.legend {
                @for (cpu, colour) in run.over.cpus.iter().zip(&colours) {
                    @if let Some(colour) = colour {
                        li { span class={ "swatch " (over::class(*colour)) } {} "CPU " (cpu.cpu) }
                    }
                }
                @if grey > 0 { li { span.swatch.grey {} (units::count(grey, "other CPU")) } }
            }
        };
        let picture = over::cpus(run, y, reach_ns, (&id, &title, &text));
        crate::html::figure(&Shown { title: &title, text: &text, picture, legend, table: None })
    };
    html! { @for (at, run) in runs.iter().enumerate() { (one(at, run)) } }
}

// What the page of a comparison shows.

/// A picture of some of the groups, by number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFigure {
    /// Numbers of the groups.
    pub groups: Vec<usize>,
}

/// What the page shows.
#[derive(Clone, Debug)]
pub struct ComparePage<'a> {
    pub groups: &'a [Group],
    pub comparison: &'a Comparison,
    /// The same in short.
    pub answer: &'a Answer,
    /// Banners at the top: records that were altered or are torn.
    pub banners: Vec<String>,
    /// Whether runs over time are aligned by their load phases; else they begin together.
    pub by_phase: bool,
    pub figures: Vec<GroupFigure>,
}

// The pictures: histograms over each other, the nines, how far each quantile moved, the runs over
// time, and of many runs each beside the first.

pub(super) fn pictures_section(page: &ComparePage<'_>) -> Markup {
    let series: Vec<CompareSeries> = page
        .groups
        .iter()
        .enumerate()
        .map(|(at, group)| CompareSeries::of(group, page.comparison.view, Some(at)))
        .collect();
    html! {
        section #pictures {
            h2 { "Pictures" }
            (both(page, &series, ("overlay", "later"), None))
            @for (at, figure) in page.figures.iter().enumerate() {
                (chosen_figure(page, &series, at, figure))
            }
            (shifts(page.comparison))
            (over_time(page.comparison))
            @if page.groups.len() > 2 { (each_run(page, &series)) }
        }
    }
}

/// Histogram and nines of some lines.
fn both(
    page: &ComparePage<'_>,
    series: &[CompareSeries],
    ids: (&str, &str),
    of: Option<&str>,
) -> Markup {
    let text = maxima(series);
    let of = of.map_or_else(String::new, |of| format!(": {of}"));
    let drawn = |id, title| Overlay {
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
        @match compare::draw_overlay(series, drawn(&first, &histogram)) {
            Some(picture) => (crate::html::figure(&Shown {
                title: &histogram, text: &text, picture, legend: legend(series), table: None,
            })),
            None => (crate::html::no_chart(&first, &histogram, nothing)),
        }
        @match compare::draw_later(series, drawn(&second, &nines)) {
            Some(picture) => (crate::html::figure(&Shown {
                title: &nines,
                text: "How far each run is out at each nine: the lower a line reaches the later, \
                       the more wake-ups it had; the further left, the better.",
                picture, legend: legend(series), table: None,
            })),
            None => (crate::html::no_chart(&second, &nines, nothing)),
        }
    }
}

/// A legend only where names at the lines may run into each other.
fn legend(series: &[CompareSeries]) -> Markup {
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

fn maxima(series: &[CompareSeries]) -> String {
    let texts: Vec<String> =
        series.iter().map(|line| format!("{} {}", line.label, line.max_text())).collect();
    format!("Latest wake-up: {}.", texts.join(", "))
}

/// The budget, where the comparison counts against one.
fn budget(page: &ComparePage<'_>) -> Option<u64> {
    let asked = page.comparison.request.budget_ns;
    let of_runs = || page.groups.iter().flat_map(|g| &g.sides).find_map(|side| side.budget_ns);
    asked.or_else(of_runs)
}

/// A picture of some of the runs alone.
fn chosen_figure(
    page: &ComparePage<'_>,
    all: &[CompareSeries],
    at: usize,
    figure: &GroupFigure,
) -> Markup {
    let series: Vec<CompareSeries> =
        figure.groups.iter().filter_map(|&at| all.get(at)).cloned().collect();
    // Colours of their own: of few lines they are furthest apart.
    let series: Vec<CompareSeries> = series
        .into_iter()
        .enumerate()
        .map(|(colour, line)| CompareSeries { colour: Some(colour), ..line })
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
                rtproof_results::signed((point.ratio * 1e6) as u64),
                one.shift.method
            )
        });
        let id = format!("chart-shift-{}", one.group);
        let picture = over::draw_shift(
            &one.shift,
            one.group,
            comparison.request.margin,
            (&id, &title, &text),
        );
        (title, text, picture)
    });
    let all = html! {
        @for (title, text, picture) in drawn {
            @if let Some(picture) = picture {
                (crate::html::figure(&Shown {
                    title: &title, text: &text, picture, legend: Markup::default(), table: None,
                }))
            }
        }
    };
    if comparison.against.len() < 3 {
        return all;
    }
    html! {
        (shift_figure(comparison, first))
        details { summary { "Each of them with its band" } (all) }
    }
}

/// Many lines in one picture.
fn shift_figure(comparison: &Comparison, first: &str) -> Markup {
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
    let margin = comparison.request.margin;
    let Some(picture) = over::together(&lines, margin, ("chart-shifts", &title, text)) else {
        return Markup::default();
    };
    crate::html::figure(&Shown {
        title: &title,
        text,
        picture,
        legend: Markup::default(),
        table: None,
    })
}

fn over_time(comparison: &Comparison) -> Markup {
    if comparison.design == CompareDesign::Single {
        return Markup::default();
    }
    let title = "The runs in order of time";
    let text = "p99.9 of each run. What rises or falls along the whole picture is drift, which \
                pairs take out.";
    let Some(picture) = compare::draw_runs(comparison, ("chart-runs", title, text)) else {
        return Markup::default();
    };
    crate::html::figure(&Shown { title, text, picture, legend: Markup::default(), table: None })
}

/// Each run by itself with its threads, the first one grey behind it.
fn each_run(page: &ComparePage<'_>, all: &[CompareSeries]) -> Markup {
    let reach_ns = all.iter().filter_map(|line| line.max_ns).max().map(|ns| ns as f64);
    let one = |at: usize, group: &Group| {
        let mut series: Vec<CompareSeries> = Vec::new();
        if at > 0 {
            series.extend(all.first().map(|first| CompareSeries { colour: None, ..first.clone() }));
        }
        series.push(CompareSeries { colour: Some(at), ..all[at].clone() });
        let title = group.label.clone();
        let first = page.groups.first().map_or("", |group| group.label.as_str());
        let text = match at {
            0 => format!("Latest {}.", all[at].max_text()),
            _ => format!("Latest {}; grey: {first}.", all[at].max_text()),
        };
        let id = format!("chart-each-{at}");
        let drawn = Overlay {
            id: &id,
            title: &title,
            text: &text,
            budget_ns: None,
            height: 400.0,
            named: false,
            reach_ns,
        };
        let picture = compare::draw_overlay(&series, drawn)?;
        Some(crate::html::figure(&Shown {
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

#[cfg(test)]
mod tests {
    use rtproof_judge::compare::{CompareRequest, Group, Side, compare_groups};
    use rtproof_results::Answer;

    use super::*;
    use crate::page::sample;

    /// The page of these runs.
    fn page(runs: &[rtproof_record::Run], by_phase: bool) -> String {
        let side = |(at, run): (usize, &rtproof_record::Run)| {
            Group::single(Side::of_run(run, &format!("run-{at}"), &format!("{at}.rtproof")))
        };
        let groups: Vec<Group> = runs.iter().enumerate().map(side).collect();
        let comparison = compare_groups(&groups, &CompareRequest::default());
        let answer = Answer::default();
        let (groups, comparison) = (&groups[..], &comparison);
        let page = ComparePage {
            groups,
            comparison,
            answer: &answer,
            banners: Vec::new(),
            by_phase,
            figures: Vec::new(),
        };
        page.render()
    }

    fn runs(cpus: u32) -> Vec<rtproof_record::Run> {
        [(90, 3_100), (240, 9_000)]
            .map(|(seconds, usual_ns)| {
                let shape = sample::Shape { cpus, seconds, usual_ns, ..sample::Shape::default() };
                let mut run = sample::run(&shape);
                run.meta.run_id = format!("{seconds:032}");
                run
            })
            .into()
    }

    #[test]
    fn runs_of_different_length_lie_over_each_other_with_their_cpus() {
        for by_phase in [false, true] {
            let page = page(&runs(8), by_phase);
            for id in ["chart-over", "chart-over-0", "chart-over-1"] {
                assert!(page.contains(&format!("svg class=\"chart\" id=\"{id}\"")), "{id}");
            }
            for part in ["frequency of the CPUs, GHz", "interrupts per second", "run-1: idle"] {
                assert!(page.contains(part), "{part}");
            }
            let how = if by_phase { "of one name begin together" } else { "Runs begin together" };
            assert!(page.contains(how));
            let drawn =
                page.split("id=\"time\"").nth(1).and_then(|at| at.split("</section>").next());
            assert!(drawn.is_some_and(|drawn| !drawn.contains("NaN") && !drawn.contains("inf ")));
        }
    }

    #[test]
    fn missing_parts_of_a_run_are_named() {
        let mut both = runs(1);
        both[1].host.clear();
        both[1].options.phases.clear();
        let half = page(&both, true);
        assert!(half.contains("A run has no load phases"));
        both[0].host.clear();
        let bare = page(&both, false);
        assert!(bare.contains("No run has readings of: frequency of the CPUs, GHz; hottest"));
        both.iter_mut().flat_map(|run| &mut run.threads).for_each(|t| t.seconds.clear());
        let none = page(&both, false);
        assert!(none.contains("None of these files holds times"));
        let many = vec![runs(1)[0].clone(); 11];
        assert!(page(&many, false).contains("3 runs more not drawn"));
    }
}
