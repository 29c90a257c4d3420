//! Latency over time: the heat map of all CPUs and the worst case of each.

use maud::{Markup, html};
use rtproof_judge::{Report, units};
use rtproof_record::{Run, run::Thread};

use super::{
    dots, moving,
    page::Page,
    parts::{self, Figure},
};
use crate::svg::{
    bins::{Column, HeatBins, TimeBins},
    events::Events,
    heat,
    strip::{self, Rows},
};

const NOTHING: &str = "No wake-up was measured.";

pub(super) fn section(page: &Page<'_>) -> Markup {
    let Page { run, report, time, rows, columns, pictures } = page;
    let time = *time;
    html! {
        section #timeline {
            h2 { "Latency over time" }
            @let events = Events::of(report);
            (dots::figure(run, report, time, &events, pictures.len()))
            (strip_figure(run, rows, time, &events))
            details.fold {
                summary { "Every latency over time" }
                (heat_figure(run, report, columns, &events))
            }
            details.fold {
                summary { "Mean, deviation, percentiles and shape over time" }
                (moving::figures(report, time, &events))
            }
        }
    }
}

fn width_text(time: TimeBins) -> String {
    units::duration(time.width_ns)
}

fn heat_figure(run: &Run, report: &Report, columns: &[Column], events: &Events) -> Markup {
    let title = "All CPUs over time";
    let Some(bins) = HeatBins::of(run) else {
        return parts::no_chart("chart-heat", title, NOTHING);
    };
    let text = heat_text(report, columns, bins.time) + &events.text();
    let picture = heat::draw(run, report, &bins, columns, events, (title, &text));
    let mut marks = vec![
        ("worst".into(), None, format!("worst of each {}", width_text(bins.time))),
        ("ring".into(), None, "largest samples".into()),
    ];
    if !events.is_empty() {
        marks.push(("event".into(), None, "changes and coincidences".into()));
    }
    let legend = html! {
        div.legends {
            (parts::ramp("1", &units::grouped(bins.most()), "wake-ups per cell"))
            (parts::legend(&marks))
        }
    };
    parts::figure(&Figure {
        title,
        text: &text,
        picture,
        legend,
        table: Some(heat_table(run, columns, bins.time)),
    })
}

fn heat_text(report: &Report, columns: &[Column], time: TimeBins) -> String {
    let mut worst: Vec<u64> = columns.iter().filter_map(|c| Some(c.worst?.0)).collect();
    worst.sort_unstable();
    let usual = worst.get(worst.len() / 2).copied().unwrap_or(0);
    let place = report.verdict.basis.worst.as_ref().map_or(String::new(), |worst| {
        let at = parts::at(worst.due_ns);
        format!(" The largest, {}, came at {at} on CPU {}.", units::ns(worst.latency_ns), worst.cpu)
    });
    format!(
        "Each column is {} of all CPUs; half of the columns have a worst case above {}.{place}",
        width_text(time),
        units::ns(usual)
    )
}

fn heat_table(run: &Run, columns: &[Column], time: TimeBins) -> Markup {
    let phase_at = |at_ns: u64| {
        let phase = run.options.phases.iter().find(|p| (p.from_ns..p.to_ns).contains(&at_ns));
        phase.map_or(parts::NONE, |phase| phase.name.as_str())
    };
    parts::table(
        columns.iter().enumerate(),
        &[
            ("from", &|(i, _)| html! { (units::duration(time.start_ns(*i))) }),
            ("phase", &|(i, _)| html! { (phase_at(time.start_ns(*i))) }),
            ("#sampled", &|(_, column)| html! { (units::grouped(column.sampled)) }),
            ("#missed", &|(_, column)| html! { (units::grouped(column.missed)) }),
            ("#late", &|(_, column)| html! { (units::grouped(column.late)) }),
            ("#worst, µs", &|(_, column)| html! { (parts::us(column.worst.map(|w| w.0))) }),
            ("#CPU", &|(_, column)| {
                html! { (column.worst.map_or(parts::NONE.into(), |w| w.1.to_string())) }
            }),
        ],
    )
}

fn strip_figure(run: &Run, rows: &Rows, time: TimeBins, events: &Events) -> Markup {
    let title = "Worst case per CPU over time";
    let Some((low, high)) = rows.range() else {
        return parts::no_chart("chart-strip", title, NOTHING);
    };
    let budget_ns = run.options.requirement.budget_ns;
    let text = format!(
        "The worst case of each CPU in each {}, {} to {}. An upright line is a stall of the whole \
         machine, a level one the trouble of a CPU.",
        width_text(time),
        units::ns(low),
        units::ns(high)
    );
    parts::figure(&Figure {
        title,
        text: &text,
        picture: strip::draw(run, rows, time, events, (title, &text)),
        legend: strip_legend(low, high, budget_ns),
        table: Some(strip_table(run)),
    })
}

/// Colours within the budget, and over it by how many times it is.
fn strip_legend(low_ns: u64, high_ns: u64, budget_ns: Option<u64>) -> Markup {
    let budget_ns = budget_ns.unwrap_or(u64::MAX);
    html! {
        div.legends {
            @if low_ns <= budget_ns {
                (parts::ramp(&units::ns(low_ns), &units::ns(high_ns.min(budget_ns)), "worst case"))
            }
            @if high_ns > budget_ns {
                p.ramp {
                    "over the budget of " (units::ns(budget_ns)) ", to "
                    @for (level, times) in strip::OVER.iter().enumerate() {
                        span.overkey {
                            i class={ "o" (level) } aria-hidden="true" {} " " (times) " times "
                        }
                    }
                    span.overkey {
                        i class={ "o" (strip::OVER.len()) } aria-hidden="true" {} " more"
                    }
                }
            }
        }
    }
}

fn strip_table(run: &Run) -> Markup {
    let at = |thread: &Thread| thread.top.first().map(|top| parts::at(top.due_ns));
    parts::table(
        &run.threads,
        &[
            ("#CPU", &|thread| html! { (thread.info.cpu) }),
            ("#worst, µs", &|thread| html! { (parts::us(thread.totals.wake.max())) }),
            ("#at", &|thread| html! { (at(thread).as_deref().unwrap_or(parts::NONE)) }),
            ("#late", &|thread| html! { (units::grouped(thread.totals.late())) }),
            ("#missed", &|thread| html! { (units::grouped(thread.totals.missed)) }),
        ],
    )
}
