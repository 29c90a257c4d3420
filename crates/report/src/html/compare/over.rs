//! Runs over each other in time, and the CPUs of each: where latency jumps, and what else changed
//! at that moment.

use maud::{Markup, html};
use rtproof_judge::{compare::Comparison, units};

use super::{
    super::parts::{self, Figure as Shown},
    page::Page,
};
use crate::svg::compare::over::{self, Placing};

/// Runs drawn, at most: more cannot be distinguished.
const RUNS_MAX: usize = 8;

pub(super) fn section(page: &Page<'_>) -> Markup {
    let (runs, left_out) = chosen(page);
    html! {
        section #time {
            h2 { "Over time" }
            @match over::latencies(&runs) {
                None => (parts::no_chart("chart-over", "Latency over time", NOTHING)),
                Some(y) => {
                    (together(page, &runs, left_out, y))
                    (levels(page.comparison))
                    (each(&runs, y))
                }
            }
        }
    }
}

const NOTHING: &str = "None of these files holds times: latencies over time are in records of \
                       rtproof alone.";

/// Runs that are drawn, and how many that have times are not: of each group equally many.
fn chosen<'a>(page: &Page<'a>) -> (Vec<over::Shown<'a>>, usize) {
    let of_group = (RUNS_MAX / page.groups.len().max(1)).max(1);
    let mut runs = Vec::new();
    let mut left_out = 0;
    for (colour, group) in page.groups.iter().enumerate() {
        let timed = group.sides.iter().filter_map(|side| Some((side, side.over.as_ref()?)));
        for (at, (side, over)) in timed.enumerate() {
            if at < of_group && runs.len() < RUNS_MAX {
                runs.push(over::Shown { label: &side.label, colour, over });
            } else {
                left_out += 1;
            }
        }
    }
    (runs, left_out)
}

fn together(
    page: &Page<'_>,
    runs: &[over::Shown<'_>],
    left_out: usize,
    y: crate::svg::scale::Scale,
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
    parts::figure(&Shown { title, text: &text, picture, legend, table: None })
}

/// Widths of the columns: one, or from the smallest to the largest.
fn widths(runs: &[over::Shown<'_>]) -> String {
    let widths = || runs.iter().map(|run| run.over.width_ns);
    let (least, most) = (widths().min().unwrap_or(0), widths().max().unwrap_or(0));
    match least == most {
        true => units::duration(least),
        false => format!("{} to {}", units::duration(least), units::duration(most)),
    }
}

/// Runs that are not drawn, and why.
fn without(page: &Page<'_>, left_out: usize) -> String {
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
fn each(runs: &[over::Shown<'_>], y: crate::svg::scale::Scale) -> Markup {
    let reach_ns = runs.iter().map(|run| run.over.end_ns).max().unwrap_or(0);
    let one = |at: usize, run: &over::Shown<'_>| {
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
        parts::figure(&Shown { title: &title, text: &text, picture, legend, table: None })
    };
    html! { @for (at, run) in runs.iter().enumerate() { (one(at, run)) } }
}

#[cfg(test)]
mod tests {
    use rtproof_judge::compare::{Group, Request, Side, compare_groups};
    use rtproof_results::answer::Answer;

    use super::*;
    use crate::html::sample;

    /// The page of these runs.
    fn page(runs: &[rtproof_record::Run], by_phase: bool) -> String {
        let side = |(at, run): (usize, &rtproof_record::Run)| {
            Group::single(Side::of_run(run, &format!("run-{at}"), &format!("{at}.rtproof")))
        };
        let groups: Vec<Group> = runs.iter().enumerate().map(side).collect();
        let comparison = compare_groups(&groups, &Request::default());
        let answer = Answer::default();
        let (groups, comparison) = (&groups[..], &comparison);
        let page = Page {
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
    fn what_a_run_does_not_have_is_said() {
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
