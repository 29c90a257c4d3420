//! Missed wake-ups over time: bars, where there were any.

use maud::{Markup, html};
use rtproof_judge::units;
use rtproof_record::Run;

use super::{
    bins::{Column, TimeBins},
    frame::{About, Frame},
    heat::over_time,
    labels, px,
    scale::Scale,
};

pub(crate) fn draw(run: &Run, columns: &[Column], time: TimeBins, text: (&str, &str)) -> Markup {
    let most = columns.iter().map(|column| column.missed).max().unwrap_or(0);
    let y = Scale::from_zero(most as f64 * 1.08);
    let frame = Frame::wide(220.0, 36.0, over_time(time), y);
    let about = About {
        id: "chart-missed",
        title: text.0,
        text: text.1,
        series: 1,
        units: ("time", "count"),
    };
    let width = ((frame.right - frame.left) / time.len as f64 - 1.0).max(1.5);
    let mut ticks = frame.y.round_ticks();
    ticks.retain(|tick| tick.value.fract().abs() < 1e-9);
    let body = html! {
        (frame.y_axis(&ticks, "missed"))
        g.series.bars data-cpu="all" {
            @for (i, column) in columns.iter().enumerate().filter(|(_, column)| column.missed > 0) {
                @let y = frame.px_y(column.missed as f64);
                rect x=(px(frame.px_x(time.start_ns(i) as f64))) y=(px(y)) width=(px(width))
                    height=(px(frame.bottom - y)) {
                    title { (units::grouped(column.missed)) " missed from "
                        (units::duration(time.start_ns(i))) }
                }
            }
        }
        (frame.x_axis(&frame.x.time_ticks(10), "time since the first wake-up"))
        (labels::phases(&frame, &run.options.phases))
    };
    frame.root(about, &body)
}
