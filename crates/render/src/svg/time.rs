//! Pictures over time: strips, heat maps, moving statistics, the host's counters.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use rtproof_judge::{
    causes::kind, distribution::AverageRow, moving::Moving, report::Report, units,
};
use rtproof_record::{
    Run,
    run::{HostCpuSecond, HostSecond},
};
use rtproof_stats::moving::{MovingStatistic, MovingStep, STATISTICS, Values};

use super::bins::{BinColumn, HeatBins, TimeBins, level};
use super::chart::{self, About, Frame, LEFT, Path, Scale, WIDTH, px};
use super::events::EventLanes;
use crate::spike;

// What a second of the host shows: each row is a chart and a column of the table in section
// "host".

#[derive(Clone, Copy, Debug)]
pub(crate) struct HostColumn {
    /// `steal`, `interrupts` ...; part of the chart's id.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// Unit, after the number.
    pub(crate) unit: &'static str,
    /// Where its axis starts, and whether it is shown at all.
    pub(crate) shown: ColumnShown,
    /// Smallest, mean and largest value of a second.
    pub(crate) value: fn(&HostSecond) -> Option<[f64; 3]>,
}

/// How a column is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnShown {
    FromZero,
    /// From zero, and only if it was not zero all the time.
    IfAny,
    /// From the smallest value on.
    Range,
}

const fn column(
    id: &'static str,
    title: &'static str,
    unit: &'static str,
    shown: ColumnShown,
    value: fn(&HostSecond) -> Option<[f64; 3]>,
) -> HostColumn {
    HostColumn { id, title, unit, shown, value }
}

/// Every column, in the order of the page.
pub(crate) const COLUMNS: &[HostColumn] = &[
    column(
        "steal",
        "Time stolen by the hypervisor",
        "ms per second",
        ColumnShown::IfAny,
        |second| sum(second, |cpu| cpu.steal_ms),
    ),
    column("interrupts", "Interrupts", "per second", ColumnShown::FromZero, |second| {
        single(second.interrupts)
    }),
    column("switches", "Context switches", "per second", ColumnShown::FromZero, |second| {
        single(second.context_switches)
    }),
    column("busy", "CPU time used, all CPUs", "ms per second", ColumnShown::FromZero, |second| {
        sum(second, |cpu| cpu.busy_ms)
    }),
    column("frequency", "CPU frequency", "GHz", ColumnShown::Range, frequency),
    column("temperature", "Hottest thermal zone", "°C", ColumnShown::Range, |second| {
        second.temp_max_mc.map(|mc| [mc as f64 / 1000.0; 3])
    }),
];

fn single(value: Option<u64>) -> Option<[f64; 3]> {
    value.map(|value| [value as f64; 3])
}

fn sum(second: &HostSecond, of: fn(&HostCpuSecond) -> u64) -> Option<[f64; 3]> {
    single((!second.cpus.is_empty()).then(|| second.cpus.iter().map(of).sum()))
}

/// Slowest, mean and fastest CPU, in GHz.
fn frequency(second: &HostSecond) -> Option<[f64; 3]> {
    let ghz: Vec<f64> =
        second.cpus.iter().filter_map(|cpu| cpu.freq_hz).map(|hz| hz as f64 / 1e9).collect();
    let low = ghz.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ghz.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    (!ghz.is_empty()).then(|| [low, ghz.iter().sum::<f64>() / ghz.len() as f64, high])
}

// Every spike as a dot: when it was, how late, and by its colour the class of its cause. The worst
// have a text each, those that the page explains a link; of very many the rest is drawn, no more.

/// Dots that have a text of their own, at most: the worst.
const REPORTED_MAX: usize = 400;

/// Places of the others, at most: dots at one place are drawn once.
const REST_MAX: usize = 3_000;

/// Radius of a dot.
const RADIUS: &str = "4";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dot {
    /// When it was due.
    pub(crate) at_ns: u64,
    pub(crate) latency_ns: u64,
    pub(crate) cpu: u32,
    /// Cause; empty: not explained.
    pub(crate) cause: String,
    /// Culprit; may be empty.
    pub(crate) culprit: String,
    /// Its number, where the page has its picture.
    pub(crate) picture: Option<u32>,
}

impl Dot {
    /// In a line: `12.345 s, CPU 3: 1.2 ms, preempted by a task: rustc`.
    pub(crate) fn text(&self) -> String {
        let ms = self.at_ns / 1_000_000;
        let at = format!("{}.{:03} s", units::grouped(ms / 1000), ms % 1000);
        format!("{at}, CPU {}: {}, {}", self.cpu, units::ns(self.latency_ns), self.why())
    }

    pub(crate) fn why(&self) -> String {
        let who =
            if self.culprit.is_empty() { String::new() } else { format!(": {}", self.culprit) };
        match self.cause.as_str() {
            "" => "not explained".into(),
            cause => format!("{}{who}", rtproof_judge::causes::title(cause)),
        }
    }

    /// Class of its colour.
    pub(crate) fn class(&self) -> &'static str {
        spike::class(&self.cause)
    }
}

/// The dots of a run, worst first. `shown`: numbers of spikes whose pictures the page has.
pub(crate) fn dots_of(run: &Run, report: &Report, shown: usize) -> Vec<Dot> {
    let pictures: Vec<(u32, u64, u32)> = report
        .spikes
        .iter()
        .flat_map(|spikes| spikes.worst.iter().take(shown))
        .map(|spike| (spike.explanation.wake.cpu, spike.at_ns, spike.number))
        .collect();
    let cpu_of = |number: u32| {
        let thread = run.threads.iter().find(|thread| thread.info.number == number);
        thread.map_or(number, |thread| thread.info.cpu)
    };
    let spikes = run.spikes.iter().flat_map(|spikes| &spikes.list);
    let mut dots: Vec<Dot> = spikes
        .map(|spike| {
            let cpu = cpu_of(spike.thread);
            let (cause, culprit) = match &spike.why {
                None => (String::new(), String::new()),
                Some(why) => (why.cause.clone(), why.culprit.clone()),
            };
            let is_it = |of: &&(u32, u64, u32)| (of.0, of.1) == (cpu, spike.due_ns);
            Dot {
                at_ns: spike.due_ns,
                latency_ns: spike.latency_ns,
                cpu,
                cause,
                culprit,
                picture: pictures.iter().find(is_it).map(|of| of.2),
            }
        })
        .collect();
    if run.spikes.is_none() {
        // Causes were not searched; the largest samples are still known.
        dots = report
            .top
            .iter()
            .map(|top| Dot {
                at_ns: top.due_ns,
                latency_ns: top.latency_ns,
                cpu: top.cpu,
                cause: String::new(),
                culprit: String::new(),
                picture: None,
            })
            .collect();
    }
    dots.sort_by_key(|dot| (std::cmp::Reverse(dot.latency_ns), dot.at_ns, dot.cpu));
    dots
}

/// Draws them; there is at least one.
pub(crate) fn draw_dots(
    run: &Run,
    dots: &[Dot],
    time: TimeBins,
    events: &EventLanes,
    text: (&str, &str),
) -> Markup {
    let frame = dots_frame(run, dots, time, events);
    let (explained, rest): (Vec<_>, Vec<_>) = {
        let is_explained = |at: usize, dot: &Dot| at < REPORTED_MAX || dot.picture.is_some();
        let (explained, rest): (Vec<_>, Vec<_>) =
            dots.iter().enumerate().partition(|(at, dot)| is_explained(*at, dot));
        (explained.into_iter().map(|t| t.1).collect(), rest.into_iter().map(|t| t.1).collect())
    };
    let about =
        About { id: "chart-spikes", title: text.0, text: text.1, series: 1, units: ("time", "ns") };
    let body = html! {
        (frame.y_axis(&frame.y.latency_ticks(6.0), "latency"))
        (frame.x_axis(&frame.x.time_ticks(10), "time since the first wake-up"))
        (chart::phases(&events.above(&frame), &run.options.phases))
        (events.lanes(&frame))
        g.plot {
            (events.lines(&frame))
            g.series.dots data-cpu="all" {
                (dust(&frame, &rest))
                // The worst last, so that they lie on top.
                @for dot in explained.into_iter().rev() { (draw_one(&frame, dot)) }
            }
        }
        (frame.budget_level(run.options.requirement.budget_ns))
    };
    // Not an image: it has links.
    frame.root_as("group", about, &body)
}

fn dots_frame(run: &Run, dots: &[Dot], time: TimeBins, events: &EventLanes) -> Frame {
    let high = dots.iter().map(|dot| dot.latency_ns).max().unwrap_or(1).max(1) as f64;
    let low = dots.iter().map(|dot| dot.latency_ns).min().unwrap_or(1).max(1) as f64;
    // The budget is in the picture wherever it is not out of all proportion.
    let budget = run.options.requirement.budget_ns.map(|ns| ns as f64);
    let budget = budget.filter(|&ns| ns > low / 30.0 && ns < high * 30.0);
    let (low, high) = budget.map_or((low, high), |ns| (low.min(ns), high.max(ns)));
    let y = Scale::Log { low: low / 1.35, high: high * 1.35 };
    let lanes = events.height();
    Frame::wide(300.0 + lanes, 40.0 + lanes, over_time(time), y)
}

fn draw_one(frame: &Frame, dot: &Dot) -> Markup {
    let (x, y) = (px(frame.px_x(dot.at_ns as f64)), px(frame.px_y(dot.latency_ns as f64)));
    let text = dot.text();
    let circle = html! { ellipse cx=(x) cy=(y) rx=(RADIUS) ry=(RADIUS) {} };
    match dot.picture {
        None => {
            html! {
                g class={ "dot " (dot.class()) } data-t=(dot.at_ns) { title { (text) } (circle) }
            }
        }
        Some(number) => html! {
            a class={ "dot shown " (dot.class()) } data-t=(dot.at_ns)
                href={ "#spike-" (number) } aria-label=(text) {
                title { (text) }
                (circle)
            }
        },
    }
}

/// The dots that are only drawn, a path for each class: a point is a stroke of no length.
fn dust(frame: &Frame, dots: &[&Dot]) -> Markup {
    let mut places = BTreeSet::new();
    for dot in dots {
        if places.len() == REST_MAX {
            break;
        }
        let at = |value: f64| value.round() as i64;
        places.insert((
            dot.class(),
            at(frame.px_x(dot.at_ns as f64)),
            at(frame.px_y(dot.latency_ns as f64)),
        ));
    }
    let mut classes: Vec<&str> = places.iter().map(|place| place.0).collect();
    classes.dedup();
    html! {
        @for class in classes {
            path class={ "dust " (class) } d=({
                let mut path = Path::default();
                for place in places.iter().filter(|place| place.0 == class) {
                    path.to(place.1 as f64, place.2 as f64).across(place.1 as f64);
                }
                path.finish()
            }) {}
        }
    }
}

/// Classes of causes that are there, most dots first: colour, name, dots.
pub(crate) fn classes(dots: &[Dot]) -> Vec<(&'static str, &'static str, usize)> {
    let mut classes: Vec<(&'static str, &'static str, usize)> = Vec::new();
    for dot in dots {
        let class = dot.class();
        match classes.iter_mut().find(|of| of.0 == class) {
            Some(of) => of.2 += 1,
            None => classes.push((class, spike::kind_name(kind(&dot.cause)), 1)),
        }
    }
    classes.sort_by_key(|of| std::cmp::Reverse(of.2));
    classes
}

// The heat map of latency over time: what was usual, what was rare, and when. OSADL's stacked
// histograms seen from above.

/// Colours of the ramp, `h0` to `h8`.
pub(crate) const LEVELS: usize = 9;

const MARKED: usize = 10;

/// Draws the heat map of a run; `None` when nothing was measured. `columns` are those of all CPUs.
pub(crate) fn draw_heat(
    run: &Run,
    report: &Report,
    bins: &HeatBins,
    columns: &[BinColumn],
    events: &EventLanes,
    text: (&str, &str),
) -> Markup {
    let frame = heat_frame(run, bins, events);
    let about =
        About { id: "chart-heat", title: text.0, text: text.1, series: 1, units: ("time", "ns") };
    let body = html! {
        g.plot { (heat_cells(&frame, bins)) }
        (frame.y_axis(&frame.y.latency_ticks(8.0), "latency"))
        (frame.x_axis(&frame.x.time_ticks(10), "time since the first wake-up"))
        (chart::phases(&events.above(&frame), &run.options.phases))
        (events.lanes(&frame))
        (frame.budget_level(run.options.requirement.budget_ns))
        g.plot {
        (worst(&frame, bins.time, columns))
        (events.lines(&frame))
        g.largest {
            @for top in report.top.iter().take(MARKED) {
                ellipse rx="5" ry="5" cx=(px(frame.px_x(top.due_ns as f64)))
                    cy=(px(frame.px_y(top.latency_ns as f64))) {
                    title {
                        "CPU " (top.cpu) ": " (units::ns(top.latency_ns))
                        " at " (units::ns(top.due_ns))
                    }
                }
            }
        }
        }
    };
    frame.root(about, &body)
}

fn heat_frame(run: &Run, bins: &HeatBins, events: &EventLanes) -> Frame {
    let (low, mut high) = bins.range();
    let exact = run.threads.iter().filter_map(|thread| thread.totals.wake.max()).max().unwrap_or(0);
    let budget = run.options.requirement.budget_ns.map_or(high, |ns| ns as f64);
    high = high.max(exact as f64 * 1.1).max(budget * 1.25);
    let y = Scale::Log { low: low.min(budget / 1.25), high };
    let lanes = events.height();
    Frame::wide(430.0 + lanes, 40.0 + lanes, over_time(bins.time), y)
}

/// The scale of a time axis: whole columns.
pub(crate) fn over_time(time: TimeBins) -> Scale {
    Scale::from_zero((time.len as u64 * time.width_ns) as f64)
}

/// The cells, one path per colour, in units of cells: short text, and no seams.
fn heat_cells(frame: &Frame, bins: &HeatBins) -> Markup {
    let (low, high) = bins.range();
    let (lower, upper) = (frame.px_y(low), frame.px_y(high));
    let mut runs = Runs::default();
    let most = bins.most();
    for (&(row, column), &n) in &bins.counts {
        runs.push(level(n, 1, most, LEVELS), row, column);
    }
    let (width, height) =
        ((frame.right - frame.left) / bins.time.len as f64, (lower - upper) / f64::from(bins.rows));
    html! {
        g.series.cells data-cpu="all"
            transform=(format!("translate({} {}) scale({width:.4} -{height:.4})",
                px(frame.left), px(lower))) {
            (runs.finish())
        }
    }
}

/// Cells of a grid by colour, neighbours in a row joined.
#[derive(Default)]
pub(crate) struct Runs {
    rows: BTreeMap<usize, Vec<(u32, usize, usize)>>,
}

impl Runs {
    /// Adds a cell; cells come by row, then by column.
    pub(crate) fn push(&mut self, level: usize, row: u32, column: usize) {
        let runs = self.rows.entry(level).or_default();
        match runs.last_mut() {
            Some((last_row, _, end)) if *last_row == row && *end == column => *end += 1,
            _ => runs.push((row, column, column + 1)),
        }
    }

    /// A path per colour; a row is a line one unit thick.
    pub(crate) fn finish(self) -> Markup {
        self.finish_as("h")
    }

    /// The same in the colours of another ramp.
    pub(crate) fn finish_as(self, ramp: &str) -> Markup {
        html! {
            @for (level, runs) in self.rows {
                path class={ (ramp) (level) } d=(runs_text(&runs)) {}
            }
        }
    }
}

fn runs_text(runs: &[(u32, usize, usize)]) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let mut pen = None;
    for &(row, from, to) in runs {
        // Writing to a string cannot fail.
        let _ = match pen {
            Some((at_row, at)) if at_row == row => write!(text, "m{} 0h{}", from - at, to - from),
            _ => write!(text, "M{from} {row}.5h{}", to - from),
        };
        pen = Some((row, to));
    }
    text
}

/// The worst case of each column as a line over the cells.
fn worst(frame: &Frame, time: TimeBins, columns: &[BinColumn]) -> Markup {
    let mut path = Path::default();
    let mut open = false;
    for (i, column) in columns.iter().enumerate() {
        let Some((latency_ns, _)) = column.worst else {
            open = false;
            continue;
        };
        let start_ns = time.start_ns(i) as f64;
        let (from, to) = (frame.px_x(start_ns), frame.px_x(start_ns + time.width_ns as f64));
        let y = frame.px_y(latency_ns as f64);
        if open {
            path.down(y);
        } else {
            path.to(from, y);
        }
        path.across(to);
        open = true;
    }
    html! { path.worst d=(path.finish()) {} }
}

// Counters of the host over time: small charts of one shape, to be read one under the other.

/// A column of the host in each second of a run.
pub(crate) struct HostSeries {
    pub(crate) column: &'static HostColumn,
    /// Seconds: time, smallest, mean and largest value.
    points: Vec<(u64, [f64; 3])>,
}

impl HostSeries {
    /// All that a run has a reading of.
    pub(crate) fn all(run: &Run) -> Vec<Self> {
        let of = |column: &'static HostColumn| {
            let value = |second: &HostSecond| Some((second.at_ns, (column.value)(second)?));
            Self { column, points: run.host.iter().filter_map(value).collect() }
        };
        let is_shown = |counter: &Self| {
            let any =
                |[.., high]: [f64; 3]| counter.column.shown != ColumnShown::IfAny || high > 0.0;
            counter.summary().is_some_and(any)
        };
        COLUMNS.iter().map(of).filter(is_shown).collect()
    }

    /// Merged to columns: smallest, mean, largest of each.
    pub(crate) fn columns(&self, time: TimeBins) -> Vec<Option<[f64; 3]>> {
        let mut sums = vec![(0_u32, [f64::INFINITY, 0.0, f64::NEG_INFINITY]); time.len];
        for &(at_ns, [low, mean, high]) in &self.points {
            // A reading covers the second before it.
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

pub(crate) fn draw_host(run: &Run, counter: &HostSeries, time: TimeBins, text: &str) -> Markup {
    let frame = host_frame(counter, time);
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

fn host_frame(counter: &HostSeries, time: TimeBins) -> Frame {
    let [low, _, high] = counter.summary().unwrap_or([0.0, 0.0, 1.0]);
    let y = if counter.column.shown != ColumnShown::Range || high <= low {
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

// Statistics over time: lines of each statistic, of the window, by age, and of all so far. Which
// of them are seen is for the switches of the page.

/// How samples are taken together: class of its lines and switch, name, look of the line, values.
pub(crate) struct SeriesKind {
    /// Class of its lines.
    pub(crate) class: &'static str,
    /// Name in the legend.
    pub(crate) name: &'static str,
    /// Class of the look.
    pub(crate) look: &'static str,
    of: fn(&MovingStep) -> Option<&Values>,
}

pub(crate) const KINDS: [SeriesKind; 3] = [
    SeriesKind {
        class: "windowed",
        name: "of the window",
        look: "",
        of: |step| step.windowed.as_ref(),
    },
    SeriesKind {
        class: "aged",
        name: "weights halve with age",
        look: "dashed",
        of: |step| step.exponential.as_ref(),
    },
    SeriesKind {
        class: "sofar",
        name: "all so far (cumulative)",
        look: "thick faint",
        of: |step| step.cumulative.as_ref(),
    },
];

/// Class of the lines of a statistic.
pub(crate) fn class(statistic: &MovingStatistic) -> String {
    statistic.id.trim_end_matches("_ns").replace('.', "-")
}

/// The statistics that are times, in one picture.
pub(crate) fn draw_times(
    report: &Report,
    time: TimeBins,
    events: &EventLanes,
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
        (chart::phases(&events.above(&frame), &report.options.phases))
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
    statistic: &MovingStatistic,
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
fn lines(frame: &Frame, moving: &Moving, statistic: &MovingStatistic, colour: usize) -> Markup {
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

fn all(moving: &Moving, statistic: &MovingStatistic) -> Vec<f64> {
    let of = |step: &MovingStep| {
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
fn path(frame: &Frame, moving: &Moving, value: impl Fn(&MovingStep) -> Option<f64>) -> String {
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

// CPU over time: the worst case of each CPU in each column. Tells a stall of the whole machine (an
// upright line) from the trouble of one CPU (a level one).

/// Colours over the budget: to so many times of it, `o0` to `o2`; beyond is `o3`.
pub(crate) const OVER: [u64; 3] = [2, 5, 20];

/// Rows at most; on larger machines neighbouring CPUs share one.
const ROWS_MAX: usize = 64;

/// Rows of the picture: the CPUs of each and its columns.
pub(crate) struct StripRows {
    rows: Vec<(Vec<u32>, Vec<BinColumn>)>,
}

impl StripRows {
    /// Rows of a run, and the columns of all its CPUs together.
    pub(crate) fn of(run: &Run, time: TimeBins) -> (Self, Vec<BinColumn>) {
        let per_row = run.threads.len().div_ceil(ROWS_MAX).max(1);
        let mut all = vec![BinColumn::default(); time.len];
        let mut rows = Vec::new();
        for threads in run.threads.chunks(per_row) {
            let mut columns = vec![BinColumn::default(); time.len];
            for thread in threads {
                let of_thread = BinColumn::of(thread, time);
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

pub(crate) fn draw_strip(
    run: &Run,
    rows: &StripRows,
    time: TimeBins,
    events: &EventLanes,
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
            (strip_cells(&frame, run, rows, time, height))
            (events.lines_of_cpus(&frame, &cpus, height))
        }
        (frame.x_axis(&frame.x.time_ticks(10), "time since the first wake-up"))
        (chart::phases(&frame, &run.options.phases))
        g.axis { (names(&frame, rows, height)) }
    };
    frame.root(about, &body)
}

fn strip_cells(frame: &Frame, run: &Run, rows: &StripRows, time: TimeBins, height: f64) -> Markup {
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
fn worst_text(columns: &[BinColumn]) -> String {
    let text = |column: &BinColumn| {
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
fn split(columns: &[BinColumn], budget_ns: u64, range: (u64, u64)) -> (Runs, Runs) {
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

fn names(frame: &Frame, rows: &StripRows, height: f64) -> Markup {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::sample::{self, Shape};

    fn dot(at_ns: u64, latency_ns: u64, cause: &str) -> Dot {
        let culprit = "<script>alert(1)</script>".into();
        Dot { at_ns, latency_ns, cpu: 2, cause: cause.into(), culprit, picture: None }
    }

    fn drawn(dots: &[Dot]) -> String {
        let run = sample::run(&Shape { seconds: 3, ..Shape::default() });
        draw_dots(&run, dots, TimeBins::of(&run), &EventLanes::default(), ("t", "x")).into_string()
    }

    #[test]
    fn names_in_titles_stay_text() {
        let shown = Dot { picture: Some(7), ..dot(1, 5_000_000, "irq") };
        let page = drawn(&[shown, dot(2_000_000_000, 80_000, "stall")]);
        assert!(!page.contains("<script"), "{page}");
        assert_eq!(page.matches("&lt;script&gt;").count(), 3);
        assert!(page.contains("class=\"dot shown s0\" data-t=\"1\" href=\"#spike-7\""));
        assert!(page.contains("class=\"dot s3\""));
    }

    #[test]
    fn of_very_many_the_worst_have_a_text_and_the_picture_stays_small() {
        let mut dots: Vec<Dot> =
            (0..50_000).map(|i| dot(i * 59_000, 90_000 + i * 13 % 7_000_000, "irq")).collect();
        dots.sort_by_key(|dot| std::cmp::Reverse(dot.latency_ns));
        dots.last_mut().unwrap().picture = Some(3);
        let page = drawn(&dots);
        assert_eq!(page.matches("<title>").count(), REPORTED_MAX + 1 + 3, "dots and phases");
        assert!(page.contains("#spike-3") && page.len() < 200_000, "{}", page.len());
        assert!(!page.contains("NaN"));
    }

    #[test]
    fn without_causes_the_largest_samples_are_dots() {
        let run = sample::run(&Shape { seconds: 3, ..Shape::default() });
        let report = sample::report(&run);
        let dots = dots_of(&run, &report, 12);
        assert_eq!(dots.len(), report.top.len());
        assert_eq!(classes(&dots), [("grey", "not explained", dots.len())]);
    }
}
