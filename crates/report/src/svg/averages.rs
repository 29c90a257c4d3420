//! The mean latency over time: of each stretch, of all so far, and of the last few.

use maud::{Markup, html};
use rtproof_judge::{
    Report,
    averages::{AverageRow, Averages},
};

use super::{
    Path,
    bins::TimeBins,
    events::Events,
    frame::{About, Frame},
    heat::over_time,
    labels,
    scale::Scale,
};

/// Times the median that the largest mean may be on a linear axis.
const TALL: f64 = 8.0;

/// Draws the averages.
pub(crate) fn draw(report: &Report, time: TimeBins, events: &Events, text: (&str, &str)) -> Markup {
    let averages = &report.averages;
    let lanes = events.height();
    let frame = Frame::wide(250.0 + lanes, 40.0 + lanes, over_time(time), scale(averages));
    let about = About {
        id: "chart-averages",
        title: text.0,
        text: text.1,
        series: 3,
        units: ("time", "ns"),
    };
    let line = |value: fn(&AverageRow) -> Option<f64>| path(&frame, averages, value);
    let body = html! {
        (frame.y_axis(&frame.y.latency_steps(), "mean latency"))
        (frame.x_axis(&frame.x.time_ticks(10), "time since the first wake-up"))
        (labels::phases(&events.above(&frame), &report.options.phases))
        (events.lanes(&frame))
        g.series.s0 data-cpu="mean" { path.line.faint d=(line(|row| Some(row.mean_ns))) {} }
        (events.lines(&frame))
        g.series.s0 data-cpu="moving" { path.line d=(line(|row| row.moving_ns)) {} }
        g.series.s1 data-cpu="cumulative" {
            path.line.thick d=(line(|row| Some(row.cumulative_ns))) {}
        }
    };
    frame.root(about, &body)
}

/// From zero; logarithmic where one stretch would press all others to the ground.
fn scale(averages: &Averages) -> Scale {
    let mut means: Vec<f64> = averages.rows.iter().map(|row| row.mean_ns).collect();
    means.sort_unstable_by(f64::total_cmp);
    let (low, high) = (means.first().copied().unwrap_or(1.0), means.last().copied().unwrap_or(1.0));
    let median = means.get(means.len() / 2).copied().unwrap_or(high);
    match high > TALL * median && low > 0.0 {
        true => Scale::Log { low: low / 1.2, high: high * 1.2 },
        false => Scale::from_zero(high * 1.12),
    }
}

/// Steps, with a gap where there is no value.
fn path(frame: &Frame, averages: &Averages, value: fn(&AverageRow) -> Option<f64>) -> String {
    let mut path = Path::default();
    let mut end_ns = None;
    for row in &averages.rows {
        let Some(ns) = value(row) else {
            end_ns = None;
            continue;
        };
        let (x, y) = (frame.px_x(row.from_ns as f64), frame.px_y(ns));
        if end_ns == Some(row.from_ns) {
            path.down(y);
        } else {
            path.to(x, y);
        }
        let to_ns = row.from_ns.saturating_add(averages.width_ns);
        path.across(frame.px_x(to_ns as f64));
        end_ns = Some(to_ns);
    }
    path.finish()
}
