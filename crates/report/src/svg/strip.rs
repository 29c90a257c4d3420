//! CPU over time: the worst case of each CPU in each column. Tells a stall of the whole machine (an
//! upright line) from the trouble of one CPU (a level one).

use maud::{Markup, html};
use rtproof_record::Run;

use super::{
    bins::{Column, TimeBins, level},
    events::Events,
    frame::{About, Frame, LEFT, WIDTH},
    heat::{LEVELS, Runs, over_time},
    labels, px,
    scale::Scale,
};

/// Colours over the budget: to so many times of it, `o0` to `o2`; beyond is `o3`.
pub(crate) const OVER: [u64; 3] = [2, 5, 20];

/// Rows at most; on larger machines neighbouring CPUs share one.
const ROWS_MAX: usize = 64;

/// Rows of the picture: the CPUs of each and its columns.
pub(crate) struct Rows {
    rows: Vec<(Vec<u32>, Vec<Column>)>,
}

impl Rows {
    /// Rows of a run, and the columns of all its CPUs together.
    pub(crate) fn of(run: &Run, time: TimeBins) -> (Self, Vec<Column>) {
        let per_row = run.threads.len().div_ceil(ROWS_MAX).max(1);
        let mut all = vec![Column::default(); time.len];
        let mut rows = Vec::new();
        for threads in run.threads.chunks(per_row) {
            let mut columns = vec![Column::default(); time.len];
            for thread in threads {
                let of_thread = Column::of(thread, time);
                columns.iter_mut().zip(&of_thread).for_each(|(a, b)| a.merge(b));
            }
            all.iter_mut().zip(&columns).for_each(|(a, b)| a.merge(b));
            rows.push((threads.iter().map(|thread| thread.info.cpu).collect(), columns));
        }
        (Self { rows }, all)
    }

    /// Smallest and largest worst case of a cell.
    pub(crate) fn range(&self) -> Option<(u64, u64)> {
        let worst = || self.rows.iter().flat_map(|(_, columns)| columns).filter_map(|c| c.worst);
        Some((worst().map(|w| w.0).min()?, worst().map(|w| w.0).max()?))
    }
}

pub(crate) fn draw(
    run: &Run,
    rows: &Rows,
    time: TimeBins,
    events: &Events,
    text: (&str, &str),
) -> Markup {
    let height = (260.0 / rows.rows.len().max(1) as f64).clamp(9.0, 22.0);
    let (top, plot) = (36.0, height * rows.rows.len() as f64);
    let frame = Frame {
        width: WIDTH,
        height: top + plot + 48.0,
        left: LEFT,
        right: WIDTH - 14.0,
        top,
        bottom: top + plot,
        x: over_time(time),
        y: Scale::from_zero(rows.rows.len() as f64),
    };
    let about = About {
        id: "chart-strip",
        title: text.0,
        text: text.1,
        series: rows.rows.len(),
        units: ("time", ""),
    };
    let cpus: Vec<&[u32]> = rows.rows.iter().map(|(cpus, _)| cpus.as_slice()).collect();
    let body = html! {
        g.plot {
            (cells(&frame, run, rows, time, height))
            (events.lines_of_cpus(&frame, &cpus, height))
        }
        (frame.x_axis(&frame.x.time_ticks(10), "time since the first wake-up"))
        (labels::phases(&frame, &run.options.phases))
        g.axis { (names(&frame, rows, height)) }
    };
    frame.root(about, &body)
}

fn cells(frame: &Frame, run: &Run, rows: &Rows, time: TimeBins, height: f64) -> Markup {
    let (low, high) = rows.range().unwrap_or((1, 1));
    let budget_ns = run.options.requirement.budget_ns.unwrap_or(u64::MAX);
    let width = (frame.right - frame.left) / time.len as f64;
    html! {
        @for (i, (cpus, columns)) in rows.rows.iter().enumerate() {
            @let (fine, over) = split(columns, budget_ns, (low, high));
            g.series.cells data-cpu=(name(cpus))
                transform=(format!("translate({} {}) scale({width:.4} {:.4})",
                    px(frame.left), px(frame.top + i as f64 * height), height - 1.0))
                data-w=(worst_text(columns)) data-step=(time.width_ns) {
                (fine.finish())
                (over.finish_as("o"))
            }
        }
    }
}

/// Worst cases in microseconds, three digits, for the read-out of a page; empty where nothing was
/// measured.
fn worst_text(columns: &[Column]) -> String {
    let text = |column: &Column| {
        let Some((worst_ns, _)) = column.worst else { return String::new() };
        let us = worst_ns as f64 / 1000.0;
        let decimals = if us < 1.0 {
            3
        } else if us < 10.0 {
            2
        } else {
            usize::from(us < 100.0)
        };
        format!("{us:.decimals$}")
    };
    columns.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// Cells within the budget and cells over it.
fn split(columns: &[Column], budget_ns: u64, range: (u64, u64)) -> (Runs, Runs) {
    let (mut fine, mut over) = (Runs::default(), Runs::default());
    for (column, cell) in columns.iter().enumerate() {
        let Some((worst_ns, _)) = cell.worst else {
            continue;
        };
        match worst_ns > budget_ns || cell.late > 0 {
            true => over.push(times_over(worst_ns, budget_ns), 0, column),
            false => fine.push(level(worst_ns, range.0, range.1.min(budget_ns), LEVELS), 0, column),
        }
    }
    (fine, over)
}

/// How far over the budget, as a level.
fn times_over(worst_ns: u64, budget_ns: u64) -> usize {
    let within = |times: &u64| worst_ns <= budget_ns.saturating_mul(*times);
    OVER.iter().position(within).unwrap_or(OVER.len())
}

fn names(frame: &Frame, rows: &Rows, height: f64) -> Markup {
    let every = (13.0 / height).ceil() as usize;
    html! {
        @for (i, (cpus, _)) in rows.rows.iter().enumerate().filter(|(i, _)| i % every.max(1) == 0) {
            text x=(px(frame.left - 7.0)) y=(px(frame.top + (i as f64 + 0.5) * height + 4.0))
                text-anchor="end" { "CPU " (name(cpus)) }
        }
    }
}

fn name(cpus: &[u32]) -> String {
    match cpus {
        [] => String::new(),
        [cpu] => cpu.to_string(),
        [first, .., last] => format!("{first}–{last}"),
    }
}
