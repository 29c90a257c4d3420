//! Runs over each other in time: latency of each, and below it what happened meanwhile: frequency,
//! temperature and interrupts over each other, and a lane of each run with its load phases, changes
//! from outside and changes of its level.

use maud::{Markup, html};

use rtproof_judge::{
    compare::{OverTime, Shift, ShiftPoint},
    units,
};

use super::chart::{About, AxisTick, COLOURS, Frame, Path, Scale, WIDTH, colours, fitted, px};

/// Height of a curve of the host.
const CURVE: f64 = 50.0;

/// Height of a lane of a run.
const LANE: f64 = 20.0;

/// Room above each of them.
const AIR: f64 = 8.0;

/// Room below the plots: times and their name.
const FOOT: f64 = 48.0;

const SINCE: &str = "time since the first wake-up of each run";

/// A run of a picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShownRun<'a> {
    pub(crate) label: &'a str,
    /// Number of its colour.
    pub(crate) colour: usize,
    pub(crate) over: &'a OverTime,
}

/// Where the time of each run lies in the picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Placing {
    /// Of each run its pieces: from, to, and where the piece begins in the picture.
    runs: Vec<Vec<(u64, u64, u64)>>,
    /// End of the picture.
    end_ns: u64,
    /// What its time is.
    axis: &'static str,
}

impl Placing {
    /// All runs begin together.
    pub(crate) fn by_start(runs: &[ShownRun<'_>]) -> Self {
        let end_ns = runs.iter().map(|run| run.over.end_ns).max().unwrap_or(0);
        let whole = |run: &ShownRun<'_>| vec![(0, run.over.end_ns, 0)];
        Self { runs: runs.iter().map(whole).collect(), end_ns, axis: SINCE }
    }

    /// Phases of one name begin together: the first one of it with the first, and so on. Each has
    /// the room of the longest. `None`: a run has no phases.
    pub(crate) fn by_phase(runs: &[ShownRun<'_>]) -> Option<Self> {
        let mut slots: Vec<((&str, usize), u64)> = Vec::new();
        let mut named: Vec<Vec<(usize, u64, u64)>> = Vec::new();
        for run in runs {
            let mut pieces = Vec::new();
            for (at, phase) in run.over.phases.iter().enumerate() {
                let before = &run.over.phases[..at];
                let nth = before.iter().filter(|other| other.name == phase.name).count();
                let to_ns = phase.to_ns.min(run.over.end_ns);
                let length = to_ns.saturating_sub(phase.from_ns);
                let key = (phase.name.as_str(), nth);
                let slot = slots.iter().position(|slot| slot.0 == key).unwrap_or_else(|| {
                    slots.push((key, 0));
                    slots.len() - 1
                });
                slots[slot].1 = slots[slot].1.max(length);
                pieces.push((slot, phase.from_ns, to_ns));
            }
            if pieces.iter().all(|piece| piece.2 <= piece.1) {
                return None;
            }
            named.push(pieces);
        }
        let begins: Vec<u64> =
            (0..slots.len()).map(|slot| slots[..slot].iter().map(|slot| slot.1).sum()).collect();
        let place = |pieces: Vec<(usize, u64, u64)>| {
            let whole = pieces.into_iter().filter(|piece| piece.2 > piece.1);
            whole.map(|(slot, from, to)| (from, to, begins[slot])).collect()
        };
        Some(Self {
            runs: named.into_iter().map(place).collect(),
            end_ns: slots.iter().map(|slot| slot.1).sum(),
            axis: "load phases, one after the other",
        })
    }

    /// The parts of a stretch of a run, as they lie in the picture.
    fn parts(&self, run: usize, from_ns: u64, to_ns: u64) -> impl Iterator<Item = (f64, f64)> {
        self.runs[run].iter().filter_map(move |&(from, to, at)| {
            let (a, b) = (from_ns.max(from), to_ns.min(to));
            (a < b).then(|| ((at + (a - from)) as f64, (at + (b - from)) as f64))
        })
    }
}

/// A curve of the host, all runs over each other.
struct Curve {
    title: &'static str,
    of: fn(&OverTime) -> &[Option<[f64; 3]>],
    /// What a value is divided by.
    unit: f64,
}

const CURVES: [Curve; 3] = [
    Curve { title: "frequency of the CPUs, GHz", of: |over| &over.frequency_hz, unit: 1e9 },
    Curve { title: "hottest thermal zone, °C", of: |over| &over.temperature_mc, unit: 1e3 },
    Curve { title: "interrupts per second", of: |over| &over.interrupts, unit: 1.0 },
];

/// Names of the curves that no run has.
pub(crate) fn missing(runs: &[ShownRun<'_>]) -> Vec<&'static str> {
    let none = |curve: &&Curve| runs.iter().all(|run| (curve.of)(run.over).is_empty());
    CURVES.iter().filter(none).map(|curve| curve.title).collect()
}

/// A scale for the latencies of these runs; `None`: none has any.
pub(crate) fn latencies(runs: &[ShownRun<'_>]) -> Option<Scale> {
    let cpus = || runs.iter().flat_map(|run| &run.over.cpus);
    let low = cpus().flat_map(|cpu| cpu.median_ns.iter().flatten()).min()?;
    let high = cpus().flat_map(|cpu| cpu.max_ns.iter().flatten()).max()?;
    Some(Scale::Log { low: (*low as f64 / 1.3).max(1.0), high: (*high as f64 * 1.3).max(10.0) })
}

/// All runs over each other: the latest wake-up of each column over all CPUs, faint the median of
/// the CPU whose median is highest.
pub(crate) fn runs(
    runs: &[ShownRun<'_>],
    placing: &Placing,
    y: Scale,
    (id, title, text): (&str, &str, &str),
) -> Markup {
    let curves: Vec<&Curve> =
        CURVES.iter().filter(|c| runs.iter().any(|run| !(c.of)(run.over).is_empty())).collect();
    let below = curves.len() as f64 * (CURVE + AIR) + runs.len() as f64 * (LANE + 3.0) + 2.0 * AIR;
    let whole = over_frame(330.0 + below, placing, y);
    let plot = Frame { bottom: whole.bottom - below, ..whole };
    let units = ("time", "ns");
    let about = About { id, title, text, series: runs.len(), units };
    let worst = |of: &OverTime, column: usize| {
        of.cpus.iter().filter_map(|cpu| cpu.max_ns[column]).max().map(|ns| ns as f64)
    };
    let median = |of: &OverTime, column: usize| {
        of.cpus.iter().filter_map(|cpu| cpu.median_ns[column]).max().map(|ns| ns as f64)
    };
    let body = html! {
        (plot.y_axis(&plot.y.latency_ticks(6.0), "latency"))
        (whole.x_axis(&whole.x.time_ticks(10), placing.axis))
        @for (at, run) in runs.iter().enumerate() {
            g class={ "series " (class(run.colour)) } {
                title { (run.label) }
                path.line.faint
                    d=(over_line(&plot, placing, at, run.over, &|i| median(run.over, i))) {}
                path class=(colour_class(run.colour))
                    d=(over_line(&plot, placing, at, run.over, &|i| worst(run.over, i))) {}
            }
        }
        @for (row, curve) in curves.iter().enumerate() {
            @let top = plot.bottom + 2.0 * AIR + row as f64 * (CURVE + AIR);
            (drawn(&whole, runs, placing, curve, top))
        }
        @let top = plot.bottom + 2.0 * AIR + curves.len() as f64 * (CURVE + AIR);
        @for (at, run) in runs.iter().enumerate() {
            (lane(&whole, placing, at, run, top + at as f64 * (LANE + 3.0)))
        }
    };
    plot.root(about, &body)
}

/// The CPUs of one run over each other: median, and faint the latest wake-up.
pub(crate) fn cpus(
    run: &ShownRun<'_>,
    y: Scale,
    reach_ns: u64,
    (id, title, text): (&str, &str, &str),
) -> Markup {
    let placing = Placing { end_ns: reach_ns, ..Placing::by_start(&[*run]) };
    let frame = over_frame(280.0, &placing, y);
    let units = ("time", "ns");
    let about = About { id, title, text, series: run.over.cpus.len(), units };
    let of = |values: &[Option<u64>], i: usize| values[i].map(|ns| ns as f64);
    let body = html! {
        (frame.y_axis(&frame.y.latency_ticks(5.0), "latency"))
        (frame.x_axis(&frame.x.time_ticks(10), placing.axis))
        @for (cpu, colour) in run.over.cpus.iter().zip(cpu_colours(run.over)) {
            g class={ "series " (colour.map_or_else(|| "grey".into(), class)) } {
                title { "CPU " (cpu.cpu) }
                path.line.faint
                    d=(over_line(&frame, &placing, 0, run.over, &|i| of(&cpu.max_ns, i))) {}
                path.line.thick
                    d=(over_line(&frame, &placing, 0, run.over, &|i| of(&cpu.median_ns, i))) {}
            }
        }
    };
    frame.root(about, &body)
}

/// Colours of the CPUs of a run; among many only the worst have one.
pub(crate) fn cpu_colours(over: &OverTime) -> Vec<Option<usize>> {
    let worst = |values: &[Option<u64>]| values.iter().flatten().copied().max().unwrap_or(0);
    colours(&over.cpus.iter().map(|cpu| worst(&cpu.max_ns)).collect::<Vec<_>>())
}

fn over_frame(height: f64, placing: &Placing, y: Scale) -> Frame {
    let frame = Frame::wide(height, 14.0, Scale::from_zero(placing.end_ns as f64), y);
    Frame { bottom: height - FOOT, right: WIDTH - 24.0, ..frame }
}

pub(crate) fn class(colour: usize) -> String {
    format!("s{}", colour % COLOURS)
}

fn colour_class(colour: usize) -> &'static str {
    if colour >= COLOURS { "line dashed" } else { "line" }
}

/// Steps of a value, with a gap where there is none.
fn over_line(
    frame: &Frame,
    placing: &Placing,
    run: usize,
    over: &OverTime,
    value: &dyn Fn(usize) -> Option<f64>,
) -> String {
    let (mut path, mut end) = (Path::default(), f64::NAN);
    for column in 0..over.end_ns.div_ceil(over.width_ns.max(1)) as usize {
        let Some(value) = value(column) else { continue };
        let from_ns = over.start_ns(column);
        for (from, to) in placing.parts(run, from_ns, from_ns + over.width_ns) {
            let y = frame.px_y(value);
            if end == from {
                path.down(y);
            } else {
                path.to(frame.px_x(from), y);
            }
            path.across(frame.px_x(to));
            end = to;
        }
    }
    path.finish()
}

/// A curve with a scale of its own, its ends written at its left.
fn drawn(
    whole: &Frame,
    runs: &[ShownRun<'_>],
    placing: &Placing,
    curve: &Curve,
    top: f64,
) -> Markup {
    let values = || runs.iter().flat_map(|run| (curve.of)(run.over)).flatten();
    let low = values().map(|value| value[0]).fold(f64::INFINITY, f64::min) / curve.unit;
    let high = values().map(|value| value[2]).fold(f64::NEG_INFINITY, f64::max) / curve.unit;
    let air = if high > low { 0.0 } else { (high.abs() * 0.1).max(1.0) };
    let y = Scale::Linear { low: low - air, high: high + air };
    let frame = Frame { top: top + 14.0, bottom: top + CURVE, y, ..*whole };
    html! {
        g.curve {
            line.base x1=(px(frame.left)) x2=(px(frame.right))
                y1=(px(frame.bottom)) y2=(px(frame.bottom)) {}
            g.axis {
                @for (value, y) in ends(&frame, low, high) {
                    text x=(px(frame.left - 7.0)) y=(px(y)) text-anchor="end" { (number(value)) }
                }
            }
            @for (at, run) in runs.iter().enumerate() {
                @let values = (curve.of)(run.over);
                g class={ "series " (class(run.colour)) } {
                    title { (run.label) ", " (curve.title) }
                    path.range d=(over_band(&frame, placing, at, run.over, values, curve.unit)) {}
                    path class=(colour_class(run.colour))
                        d=(over_line(&frame, placing, at, run.over, &|i| {
                            values.get(i).copied().flatten().map(|value| value[1] / curve.unit)
                        })) {}
                }
            }
            text.halo x=(px(frame.left + 5.0)) y=(px(top + 10.0)) { (curve.title) }
        }
    }
}

/// The ends of a scale and positions of their texts; one if they are equal.
fn ends(frame: &Frame, low: f64, high: f64) -> Vec<(f64, f64)> {
    match number(low) == number(high) {
        true => vec![(low, frame.px_y(low) + 4.5)],
        false => vec![(high, frame.top + 4.5), (low, frame.bottom + 2.0)],
    }
}

fn number(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => super::chart::count_text(value),
        v if v >= 100.0 => format!("{value:.0}"),
        _ => format!("{value:.2}").trim_end_matches('0').trim_end_matches('.').into(),
    }
}

/// From the smallest to the largest value of each column.
fn over_band(
    frame: &Frame,
    placing: &Placing,
    run: usize,
    over: &OverTime,
    values: &[Option<[f64; 3]>],
    unit: f64,
) -> String {
    let mut path = Path::default();
    for (column, value) in values.iter().enumerate() {
        let Some([low, _, high]) = *value else { continue };
        let from_ns = over.start_ns(column);
        for (from, to) in placing.parts(run, from_ns, from_ns + over.width_ns) {
            if high > low {
                let (low, high) = (frame.px_y(low / unit), frame.px_y(high / unit));
                path.to(frame.px_x(from), low).down(high).across(frame.px_x(to)).down(low);
            }
        }
    }
    path.finish()
}

/// What happened in one run: its load phases, and ticks where it was changed from outside and
/// where its level changed.
fn lane(frame: &Frame, placing: &Placing, at: usize, run: &ShownRun<'_>, top: f64) -> Markup {
    let place = |at_ns: u64| {
        let part = placing.parts(at, at_ns, at_ns.saturating_add(1)).next();
        part.map(|(from, _)| px(frame.px_x(from)))
    };
    let levels = run.over.levels.iter().flat_map(|found| {
        let cpu = found.cpu.map_or_else(String::new, |cpu| format!("CPU {cpu}: "));
        found.moments.iter().map(move |moment| (moment.at_ns, format!("{cpu}{}", moment.text)))
    });
    let ticks = run.over.marks.iter().cloned().map(|mark| (mark, "outside"));
    let ticks = ticks.chain(levels.map(|level| (level, "level")));
    html! {
        g class={ "lane over " (class(run.colour)) } {
            text.name x=(px(frame.left - 7.0)) y=(px(top + 14.0)) text-anchor="end" {
                (fitted(run.label, frame.left - 12.0).unwrap_or_default())
            }
            g.phases {
                @for phase in &run.over.phases {
                    @for (from, to) in placing.parts(at, phase.from_ns, phase.to_ns) {
                        @let (from, to) = (frame.px_x(from), frame.px_x(to));
                        g {
                            title { (run.label) ": " (phase.name) }
                            rect class=(if phase.loads.is_empty() { "phase idle" } else { "phase" })
                                x=(px(from)) y=(px(top)) rx="2"
                                width=(px((to - from - 2.0).max(1.0))) height=(px(LANE)) {}
                            @if let Some(text) = fitted(&phase.name, to - from - 10.0) {
                                text x=(px(from + 5.0)) y=(px(top + 14.0)) { (text) }
                            }
                        }
                    }
                }
            }
            line.rail x1=(px(frame.left)) x2=(px(frame.right))
                y1=(px(top + LANE)) y2=(px(top + LANE)) {}
            @for ((at_ns, text), kind) in ticks {
                @if let Some(x) = place(at_ns) {
                    g.(kind) {
                        title { (run.label) ", " (at_ns / 1_000_000_000) " s: " (text) }
                        line.tick x1=(x) x2=(x) y1=(px(top)) y2=(px(top + LANE)) {}
                    }
                }
            }
        }
    }
}

// How far each quantile moved, as a ratio with its band; the margin within which nothing matters
// is shaded.

/// Ratios at which the axis may have a text, and their inverses.
const TICKS: [f64; 11] = [1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 100.0, 1000.0];

/// Room for a name at the end of a line.
const NAME: f64 = 16.0;

/// Room for a text of the axis.
const APART: f64 = 20.0;

/// Draws the quantiles of one group against the first; `None` where there are none.
pub(crate) fn draw_shift(
    shift: &Shift,
    colour: usize,
    margin: f64,
    (id, title, text): (&str, &str, &str),
) -> Option<Markup> {
    if shift.points.is_empty() {
        return None;
    }
    let frame = shift_frame(&shift.points, margin);
    let about = About { id, title, text, series: 1, units: ("", "") };
    let y = |ratio: f64| frame.px_y(ratio);
    let class = format!("s{}", colour % COLOURS);
    let body = html! {
        rect.shade x=(px(frame.left)) width=(px(frame.right - frame.left)) y=(px(y(1.0 + margin)))
            height=(px(y(1.0 / (1.0 + margin)) - y(1.0 + margin))) {}
        (frame.y_axis(&ticks(&frame), "change (logarithmic)"))
        line.limit x1=(px(frame.left)) x2=(px(frame.right)) y1=(px(y(1.0))) y2=(px(y(1.0))) {}
        (names(&frame, &shift.points))
        g class={ "series effect " (class) } {
            @if let Some(d) = shift_band(&frame, &shift.points) { path.range d=(d) {} }
            path.line d=(shift_line(&frame, &shift.points)) {}
            @for (at, point) in shift.points.iter().enumerate() {
                (one(&frame, at, point))
            }
        }
    };
    Some(frame.root(about, &body))
}

/// Place of a point: the deciles are close together, the tail has room for its names.
fn place(at: usize) -> f64 {
    const DECILES: usize = 9;
    at.min(DECILES) as f64 * 0.72 + at.saturating_sub(DECILES) as f64 * 1.25
}

/// The quantiles of many groups against the first, without their bands; each is named where it
/// ends. `None` where there are none.
pub(crate) fn together(
    shifts: &[(&str, usize, &Shift)],
    margin: f64,
    (id, title, text): (&str, &str, &str),
) -> Option<Markup> {
    let longest = shifts.iter().map(|(.., shift)| &shift.points).max_by_key(|p| p.len())?;
    let ratios: Vec<f64> =
        shifts.iter().flat_map(|(.., shift)| &shift.points).map(|point| point.ratio).collect();
    let mut frame = framed(longest, ratios.into_iter(), margin, 420.0);
    frame.right -= 170.0;
    let about = About { id, title, text, series: shifts.len(), units: ("", "") };
    let y = |ratio: f64| frame.px_y(ratio);
    // Names from the top down, none on another.
    let mut ends: Vec<(f64, f64, &str, usize)> = shifts
        .iter()
        .filter_map(|&(label, colour, shift)| {
            let last = shift.points.last()?;
            let end = frame.px_x(place(shift.points.len() - 1));
            Some((y(last.ratio), end, label, colour))
        })
        .collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut lowest = frame.top - NAME;
    for end in &mut ends {
        end.0 = end.0.max(lowest + NAME);
        lowest = end.0;
    }
    let body = html! {
        rect.shade x=(px(frame.left)) width=(px(frame.right - frame.left)) y=(px(y(1.0 + margin)))
            height=(px(y(1.0 / (1.0 + margin)) - y(1.0 + margin))) {}
        (frame.y_axis(&ticks(&frame), "change (logarithmic)"))
        line.limit x1=(px(frame.left)) x2=(px(frame.right)) y1=(px(y(1.0))) y2=(px(y(1.0))) {}
        (names(&frame, longest))
        @for &(label, colour, shift) in shifts {
            g class={ "series s" (colour % COLOURS) } {
                title { (label) }
                path class=(if colour >= COLOURS { "line dashed" } else { "line" })
                    d=(shift_line(&frame, &shift.points)) {}
            }
        }
        @for (y, x, label, colour) in ends {
            g class={ "mark s" (colour % COLOURS) } {
                text.halo x=(px(x + 8.0)) y=(px(y + 4.5)) { (label) }
            }
        }
    };
    Some(frame.root(about, &body))
}

fn shift_frame(points: &[ShiftPoint], margin: f64) -> Frame {
    let ratios = points.iter().flat_map(|p| [Some(p.ratio), p.low, p.high]).flatten();
    framed(points, ratios, margin, 330.0)
}

fn framed(
    points: &[ShiftPoint],
    ratios: impl Iterator<Item = f64>,
    margin: f64,
    height: f64,
) -> Frame {
    // Not narrower than the margin is wide on either side, and no wider than can be read.
    let least = 2.5 * margin.ln_1p().max(0.01);
    let most = 1000_f64.ln();
    let logs = ratios.filter(|ratio| *ratio > 0.0).map(f64::ln);
    let (low, high) = logs.fold((-least, least), |(low, high), log| (log.min(low), log.max(high)));
    let air = 0.12 * (high - low);
    let (low, high) = (low.max(-most) - air, high.min(most) + air);
    let y = Scale::Log { low: low.exp(), high: high.exp() };
    let x = Scale::Linear { low: -0.6, high: place(points.len()) - 0.4 };
    Frame::wide(height, 14.0, x, y)
}

/// Ticks on both sides of no change, their texts clear of each other.
fn ticks(frame: &Frame) -> Vec<AxisTick> {
    let mut values = vec![1.0];
    for outwards in [-1.0, 1.0] {
        let mut last = frame.px_y(1.0);
        for ratio in TICKS.map(|ratio| f64::powf(ratio, outwards)) {
            if frame.y.holds(ratio) && (frame.px_y(ratio) - last).abs() >= APART {
                last = frame.px_y(ratio);
                values.push(ratio);
            }
        }
    }
    values.sort_by(f64::total_cmp);
    let text = |ratio: f64| rtproof_results::signed((ratio * 1e6).round() as u64);
    values.into_iter().map(|value| AxisTick { value, text: Some(text(value)) }).collect()
}

fn names(frame: &Frame, points: &[ShiftPoint]) -> Markup {
    let middle = px(f64::midpoint(frame.left, frame.right));
    html! {
        g.axis {
            line.base x1=(px(frame.left)) x2=(px(frame.right))
                y1=(px(frame.bottom)) y2=(px(frame.bottom)) {}
            @for (at, point) in points.iter().enumerate() {
                text x=(px(frame.px_x(place(at)))) y=(px(frame.bottom + 18.0))
                    text-anchor="middle" { (point.quantile) }
            }
            text.name x=(middle) y=(px(frame.bottom + 40.0)) text-anchor="middle" {
                "quantile of latency, from the fastest tenth to the far tail"
            }
        }
    }
}

fn shift_line(frame: &Frame, points: &[ShiftPoint]) -> String {
    let mut path = Path::default();
    for (at, point) in points.iter().enumerate() {
        let (x, y) = (frame.px_x(place(at)), frame.px_y(point.ratio));
        if at == 0 {
            path.to(x, y)
        } else {
            path.line(x, y)
        };
    }
    path.finish()
}

/// The band from its lower ends and back along its upper ones; an end that is not there is drawn
/// at the edge.
fn shift_band(frame: &Frame, points: &[ShiftPoint]) -> Option<String> {
    let banded: Vec<(f64, f64, f64)> = points
        .iter()
        .enumerate()
        .filter(|(_, point)| point.low.is_some() || point.high.is_some())
        .map(|(at, point)| {
            let (low, high) = frame.y.ends();
            let x = frame.px_x(place(at));
            (x, frame.px_y(point.low.unwrap_or(low)), frame.px_y(point.high.unwrap_or(high)))
        })
        .collect();
    if banded.len() < 2 {
        return None;
    }
    let mut path = Path::default();
    for (at, &(x, low, _)) in banded.iter().enumerate() {
        if at == 0 {
            path.to(x, low)
        } else {
            path.line(x, low)
        };
    }
    for &(x, _, high) in banded.iter().rev() {
        path.line(x, high);
    }
    Some(path.finish() + "Z")
}

/// The point, and its difference in time written beside it, clear of the line.
fn one(frame: &Frame, at: usize, point: &ShiftPoint) -> Markup {
    let (x, y) = (frame.px_x(place(at)), frame.px_y(point.ratio));
    let difference = point.to_ns - point.from_ns;
    let sign = if difference < 0.0 { "−" } else { "+" };
    let text = match difference.abs() {
        d if d < 0.5 => "0".into(),
        d => format!("{sign}{}", units::ns(d as u64)),
    };
    let above = point.ratio >= 1.0;
    let at_edge = if above { y - frame.top < 22.0 } else { frame.bottom - y < 22.0 };
    let offset = if above == at_edge { 20.0 } else { -10.0 };
    html! {
        circle.point cx=(px(x)) cy=(px(y)) r="4" {
            title {
                (point.quantile) ": " (units::ns(point.from_ns as u64)) " to "
                (units::ns(point.to_ns as u64))
            }
        }
        text.halo.small x=(px(x)) y=(px(y + offset)) text-anchor="middle" { (text) }
    }
}

#[cfg(test)]
mod tests {
    use rtproof_record::run::Phase;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn over(phases: &[(&str, u64, u64)], end_s: u64) -> OverTime {
        let phase = |&(name, from, to): &(&str, u64, u64)| Phase {
            name: name.into(),
            loads: Vec::new(),
            from_ns: from * SECOND,
            to_ns: to * SECOND,
        };
        OverTime {
            end_ns: end_s * SECOND,
            width_ns: SECOND,
            phases: phases.iter().map(phase).collect(),
            ..OverTime::default()
        }
    }

    #[test]
    fn phases_of_one_name_lie_over_each_other() {
        let a = over(&[("idle", 0, 10), ("net", 10, 30)], 30);
        // Shorter, in another order, ended early, and with a phase that the first has not.
        let b = over(&[("net", 0, 15), ("idle", 15, 35), ("disk", 35, 99)], 40);
        let shown = [&a, &b].map(|over| ShownRun { label: "", colour: 0, over });
        let placing = Placing::by_phase(&shown).expect("phases");
        assert_eq!(placing.end_ns, 45 * SECOND);
        let at = |run: usize, s: u64| {
            placing.parts(run, s * SECOND, (s + 1) * SECOND).next().map(|part| part.0 / 1e9)
        };
        assert_eq!((at(0, 0), at(0, 10), at(0, 29)), (Some(0.0), Some(20.0), Some(39.0)));
        assert_eq!((at(1, 0), at(1, 15), at(1, 35)), (Some(20.0), Some(0.0), Some(40.0)));
        assert_eq!((at(0, 30), at(1, 41)), (None, None), "outside of every phase");
    }

    #[test]
    fn a_run_without_phases_is_not_aligned_by_them() {
        let (a, b) = (over(&[("idle", 0, 10)], 10), over(&[], 10));
        let shown = [&a, &b].map(|over| ShownRun { label: "", colour: 0, over });
        assert_eq!(Placing::by_phase(&shown), None);
        assert_eq!(Placing::by_start(&shown).end_ns, 10 * SECOND);
    }

    #[test]
    fn a_line_has_a_gap_where_nothing_was_measured() {
        let run = over(&[], 10);
        let shown = [ShownRun { label: "", colour: 0, over: &run }];
        let placing = Placing::by_start(&shown);
        let frame = over_frame(300.0, &placing, Scale::from_zero(10.0));
        let path = over_line(&frame, &placing, 0, &run, &|i| (i != 4).then_some(i as f64));
        assert_eq!(path.matches('M').count(), 2, "{path}");
        assert_eq!(over_line(&frame, &placing, 0, &run, &|_| None), "");
    }
}
