//! Statistics over time: lines of each statistic, of the window, by age, and of all so far. Which
//! of them are seen is for the switches of the page.

use maud::{Markup, html};
use rtproof_judge::{Report, averages::AverageRow, moving::Moving};
use rtproof_stats::moving::{STATISTICS, Statistic, Step, Values};

use super::{
    Path,
    bins::TimeBins,
    events::Events,
    frame::{About, Frame},
    heat::over_time,
    labels,
    scale::Scale,
};

/// How samples are taken together: class of its lines and switch, name, look of the line, values.
pub(crate) struct Kind {
    /// Class of its lines.
    pub(crate) class: &'static str,
    /// Name in the legend.
    pub(crate) name: &'static str,
    /// Class of the look.
    pub(crate) look: &'static str,
    of: fn(&Step) -> Option<&Values>,
}

pub(crate) const KINDS: [Kind; 3] = [
    Kind { class: "windowed", name: "of the window", look: "", of: |step| step.windowed.as_ref() },
    Kind {
        class: "aged",
        name: "weights halve with age",
        look: "dashed",
        of: |step| step.exponential.as_ref(),
    },
    Kind {
        class: "sofar",
        name: "all so far (cumulative)",
        look: "thick faint",
        of: |step| step.cumulative.as_ref(),
    },
];

/// Class of the lines of a statistic.
pub(crate) fn class(statistic: &Statistic) -> String {
    statistic.id.trim_end_matches("_ns").replace('.', "-")
}

/// The statistics that are times, in one picture.
pub(crate) fn draw_times(
    report: &Report,
    time: TimeBins,
    events: &Events,
    text: (&str, &str),
) -> Markup {
    let times = || STATISTICS.iter().enumerate().filter(|(_, of)| of.is_time);
    let values: Vec<f64> =
        times().flat_map(|(_, of)| all(&report.moving, of)).filter(|ns| *ns > 0.0).collect();
    let lanes = events.height();
    let frame = Frame::wide(300.0 + lanes, 40.0 + lanes, over_time(time), logarithmic(&values));
    let about = About {
        id: "chart-moving",
        title: text.0,
        text: text.1,
        series: times().count() * KINDS.len() + 1,
        units: ("time", "ns"),
    };
    let body = html! {
        (frame.y_axis(&frame.y.latency_ticks(6.0), "latency"))
        (frame.x_axis(&frame.x.time_ticks(10), "time since the first wake-up"))
        (labels::phases(&events.above(&frame), &report.options.phases))
        (events.lanes(&frame))
        g.moving.eachstep { path.line.s0.faint d=(means(&frame, report)) {} }
        (events.lines(&frame))
        @for (at, of) in times() { (lines(&frame, &report.moving, of, at)) }
    };
    frame.root(about, &body)
}

/// One of the statistics that are numbers.
pub(crate) fn draw_number(
    moving: &Moving,
    time: TimeBins,
    statistic: &Statistic,
    text: (&str, &str),
) -> Markup {
    let values = all(moving, statistic);
    let low = values.iter().copied().fold(0.0, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    let room = 0.06 * (high - low).max(1.0);
    let y = Scale::Linear { low: low - room, high: high + room };
    let frame = Frame::wide(200.0, 16.0, over_time(time), y);
    let about = About {
        id: &format!("chart-moving-{}", statistic.id),
        title: text.0,
        text: text.1,
        series: KINDS.len(),
        units: ("time", "number"),
    };
    let body = html! {
        (frame.y_axis(&frame.y.round_ticks(), statistic.name))
        (frame.x_axis(&frame.x.time_ticks(10), "time since the first wake-up"))
        (lines(&frame, moving, statistic, 0))
    };
    frame.root(about, &body)
}

/// The lines of a statistic in its colour.
fn lines(frame: &Frame, moving: &Moving, statistic: &Statistic, colour: usize) -> Markup {
    html! {
        g class={ "series s" (colour) } data-cpu=(statistic.name) {
            @for kind in &KINDS {
                g class={ "moving " (kind.class) " " (class(statistic)) } {
                    path class={ "line " (kind.look) }
                        d=(path(frame, moving, |step| (statistic.of)((kind.of)(step)?))) {}
                }
            }
        }
    }
}

fn all(moving: &Moving, statistic: &Statistic) -> Vec<f64> {
    let of = |step: &Step| {
        KINDS.iter().filter_map(|kind| (statistic.of)((kind.of)(step)?)).collect::<Vec<_>>()
    };
    moving.rows.iter().flat_map(of).collect()
}

/// Logarithmic: p5 and p99.9 are seen beside each other.
fn logarithmic(values: &[f64]) -> Scale {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(0.0, f64::max);
    match low.is_finite() {
        true => Scale::Log { low: low / 1.2, high: high * 1.2 },
        false => Scale::Log { low: 100.0, high: 10_000.0 },
    }
}

/// From value to value, each at the end of its step; broken where a step between has none.
fn path(frame: &Frame, moving: &Moving, value: impl Fn(&Step) -> Option<f64>) -> String {
    let (mut path, mut is_drawn) = (Path::default(), false);
    for step in &moving.rows {
        let Some(value) = value(step) else {
            is_drawn = false;
            continue;
        };
        let (x, y) = (frame.px_x(step.to_ns as f64), frame.px_y(value));
        if is_drawn {
            path.line(x, y)
        } else {
            path.to(x, y).across(x + 0.6)
        };
        is_drawn = true;
    }
    path.finish()
}

/// Steps of the means of each stretch, with a gap where there is none.
fn means(frame: &Frame, report: &Report) -> String {
    let (mut path, mut end_ns) = (Path::default(), None);
    for &AverageRow { from_ns, mean_ns, .. } in &report.averages.rows {
        let (x, y) = (frame.px_x(from_ns as f64), frame.px_y(mean_ns));
        if end_ns == Some(from_ns) {
            path.down(y)
        } else {
            path.to(x, y)
        };
        let to_ns = from_ns.saturating_add(report.averages.width_ns);
        path.across(frame.px_x(to_ns as f64));
        end_ns = Some(to_ns);
    }
    path.finish()
}
