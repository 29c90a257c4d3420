//! Counters of the host over time: small charts of one shape, to be read one under the other.

use maud::{Markup, html};
use rtproof_record::{Run, run::HostSecond};

use super::{
    Path,
    bins::TimeBins,
    frame::{About, Frame},
    heat::over_time,
    px,
    scale::Scale,
};
use crate::seconds::{COLUMNS, Column, Shown};

/// A column of the host in each second of a run.
pub(crate) struct Counter {
    pub(crate) column: &'static Column,
    /// Seconds: time, smallest, mean and largest value.
    points: Vec<(u64, [f64; 3])>,
}

impl Counter {
    /// All that a run has a reading of.
    pub(crate) fn all(run: &Run) -> Vec<Self> {
        let of = |column: &'static Column| {
            let value = |second: &HostSecond| Some((second.at_ns, (column.value)(second)?));
            Self { column, points: run.host.iter().filter_map(value).collect() }
        };
        let is_shown = |counter: &Self| {
            let any = |[.., high]: [f64; 3]| counter.column.shown != Shown::IfAny || high > 0.0;
            counter.summary().is_some_and(any)
        };
        COLUMNS.iter().map(of).filter(is_shown).collect()
    }

    /// Merged to columns: smallest, mean, largest of each.
    pub(crate) fn columns(&self, time: TimeBins) -> Vec<Option<[f64; 3]>> {
        let mut sums = vec![(0_u32, [f64::INFINITY, 0.0, f64::NEG_INFINITY]); time.len];
        for &(at_ns, [low, mean, high]) in &self.points {
            // A reading tells of the second before it.
            let (n, sum) = &mut sums[time.index(at_ns.saturating_sub(500_000_000))];
            *n += 1;
            *sum = [sum[0].min(low), sum[1] + mean, sum[2].max(high)];
        }
        let mean = |(n, [low, sum, high]): (u32, [f64; 3])| {
            (n > 0).then(|| [low, sum / f64::from(n), high])
        };
        sums.into_iter().map(mean).collect()
    }

    /// Smallest and largest value, and the mean.
    pub(crate) fn summary(&self) -> Option<[f64; 3]> {
        let first = self.points.first()?.1;
        let sum = self.points.iter().fold([first[0], 0.0, first[2]], |sum, (_, point)| {
            [sum[0].min(point[0]), sum[1] + point[1], sum[2].max(point[2])]
        });
        Some([sum[0], sum[1] / self.points.len() as f64, sum[2]])
    }
}

pub(crate) fn draw(run: &Run, counter: &Counter, time: TimeBins, text: &str) -> Markup {
    let frame = frame(counter, time);
    let id = format!("chart-host-{}", counter.column.id);
    let about =
        About { id: &id, title: counter.column.title, text, series: 1, units: ("time", "number") };
    let columns = counter.columns(time);
    let ticks = frame.y.round_ticks();
    let body = html! {
        g.phases {
            @for phase in run.options.phases.iter().filter(|phase| !phase.loads.is_empty()) {
                @let from = frame.px_x(phase.from_ns as f64);
                rect.shade x=(px(from)) y=(px(frame.top)) height=(px(frame.bottom - frame.top))
                    width=(px(frame.px_x(phase.to_ns as f64) - from)) {}
            }
        }
        (frame.y_axis(&ticks, ""))
        g.series.s0 data-cpu="all" {
            path.range d=(range(&frame, time, &columns)) {}
            path.line d=(line(&frame, time, &columns)) {}
        }
        (frame.x_axis(&frame.x.time_ticks(4), ""))
    };
    frame.root(about, &body)
}

fn frame(counter: &Counter, time: TimeBins) -> Frame {
    let [low, _, high] = counter.summary().unwrap_or([0.0, 0.0, 1.0]);
    let y = if counter.column.shown != Shown::Range || high <= low {
        Scale::from_zero(high * 1.1)
    } else {
        let air = (high - low) * 0.15;
        Scale::Linear { low: (low - air).max(0.0), high: high + air }
    };
    Frame {
        width: 470.0,
        height: 150.0,
        left: 64.0,
        right: 458.0,
        top: 10.0,
        bottom: 122.0,
        x: over_time(time),
        y,
    }
}

/// The mean of each column, steps; a gap where there was no reading.
fn line(frame: &Frame, time: TimeBins, columns: &[Option<[f64; 3]>]) -> String {
    let mut path = Path::default();
    let mut open = false;
    for (i, column) in columns.iter().enumerate() {
        if let Some([_, mean, _]) = column {
            let start_ns = time.start_ns(i) as f64;
            let y = frame.px_y(*mean);
            if open {
                path.down(y);
            } else {
                path.to(frame.px_x(start_ns), y);
            }
            path.across(frame.px_x(start_ns + time.width_ns as f64));
        }
        open = column.is_some();
    }
    path.finish()
}

/// From the smallest to the largest of each column.
fn range(frame: &Frame, time: TimeBins, columns: &[Option<[f64; 3]>]) -> String {
    let mut path = Path::default();
    for (i, column) in columns.iter().enumerate() {
        let Some([low, _, high]) = *column else {
            continue;
        };
        if high > low {
            let start_ns = time.start_ns(i) as f64;
            path.to(frame.px_x(start_ns), frame.px_y(low))
                .down(frame.px_y(high))
                .across(frame.px_x(start_ns + time.width_ns as f64))
                .down(frame.px_y(low));
        }
    }
    path.finish()
}
