//! `Chart`: axes, scales, series and marks of every picture.

use std::fmt::Write;

use maud::{Markup, html};

use rtproof_judge::{report::Measured, units};
use rtproof_record::run::Phase;
use rtproof_stats::quantile::Q;

// The frame of a chart: where the plot lies in the picture, axes, grid, and the root element.

/// Width of a picture in its own units; the page scales it.
pub(crate) const WIDTH: f64 = 960.0;

/// Left margin: room for the texts of the axis, also in the larger letters of a telephone.
pub(crate) const LEFT: f64 = 90.0;

/// A picture and the plot in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// Width of the picture.
    pub(crate) width: f64,
    /// Height of the picture.
    pub(crate) height: f64,
    /// Left edge of the plot.
    pub(crate) left: f64,
    /// Right edge of the plot.
    pub(crate) right: f64,
    /// Upper edge of the plot.
    pub(crate) top: f64,
    /// Lower edge of the plot.
    pub(crate) bottom: f64,
    pub(crate) x: Scale,
    pub(crate) y: Scale,
}

/// What a chart is called and says, for those who do not see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    /// `chart-histogram` ...
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    /// The numbers in a sentence.
    pub(crate) text: &'a str,
    /// Number of series drawn.
    pub(crate) series: usize,
    /// What the axes measure, for read-outs: `ns`, `time`, `count`, `nines`, or nothing.
    pub(crate) units: (&'a str, &'a str),
}

impl Frame {
    /// A picture as wide as the page, its plot within the usual margins.
    pub(crate) fn wide(height: f64, top: f64, x: Scale, y: Scale) -> Self {
        let (left, right, bottom) = (LEFT, WIDTH - 14.0, height - 48.0);
        Self { width: WIDTH, height, left, right, top, bottom, x, y }
    }

    /// Horizontal place of a value.
    pub(crate) fn px_x(&self, value: f64) -> f64 {
        self.left + self.x.at(value) * (self.right - self.left)
    }

    /// Vertical place of a value.
    pub(crate) fn px_y(&self, value: f64) -> f64 {
        self.bottom - self.y.at(value) * (self.bottom - self.top)
    }

    /// The root element round `body`.
    pub(crate) fn root(&self, about: About<'_>, body: &Markup) -> Markup {
        self.root_as("img", about, body)
    }

    /// The same with a role of its own: `img` hides from a screen reader what is within.
    pub(crate) fn root_as(&self, role: &str, about: About<'_>, body: &Markup) -> Markup {
        let scale = |scale: Scale, from: f64, to: f64, unit: &str| {
            let (low, high) = scale.ends();
            let kind = if matches!(scale, Scale::Log { .. }) { "log" } else { "linear" };
            format!("{kind} {low:.3} {high:.3} {} {} {unit}", px(from), px(to))
        };
        let (title, text) = (format!("{}-title", about.id), format!("{}-text", about.id));
        html! {
            svg.chart id=(about.id) data-series=(about.series) role=(role)
                aria-labelledby=(format!("{title} {text}"))
                viewBox=(format!("0 0 {} {}", px(self.width), px(self.height)))
                data-x=(scale(self.x, self.left, self.right, about.units.0))
                data-y=(scale(self.y, self.bottom, self.top, about.units.1)) {
                title id=(title) { (about.title) }
                desc id=(text) { (about.text) }
                (body)
            }
        }
    }

    /// Grid and texts of the horizontal axis.
    pub(crate) fn x_axis(&self, ticks: &[AxisTick], title: &str) -> Markup {
        html! {
            g.axis.x {
                @for tick in ticks {
                    @let x = px(self.px_x(tick.value));
                    line class=(grid_class(tick)) x1=(x) x2=(x)
                        y1=(px(self.top)) y2=(px(self.bottom)) {}
                }
                line.base x1=(px(self.left)) x2=(px(self.right))
                    y1=(px(self.bottom)) y2=(px(self.bottom)) {}
                @for (tick, text) in named(ticks) {
                    @let x = self.px_x(tick.value);
                    // The last text must not exceed the picture.
                    @let last = x > self.right - 14.0;
                    text x=(px(if last { self.width } else { x })) y=(px(self.bottom + 18.0))
                        text-anchor=(if last { "end" } else { "middle" }) { (text) }
                }
                text.name x=(px(f64::midpoint(self.left, self.right))) y=(px(self.bottom + 40.0))
                    text-anchor="middle" { (title) }
            }
        }
    }

    /// Grid and texts of the vertical axis.
    pub(crate) fn y_axis(&self, ticks: &[AxisTick], title: &str) -> Markup {
        let middle = px(f64::midpoint(self.top, self.bottom));
        html! {
            g.axis {
                @for tick in ticks {
                    @let y = px(self.px_y(tick.value));
                    line class=(grid_class(tick)) y1=(y) y2=(y)
                        x1=(px(self.left)) x2=(px(self.right)) {}
                }
                @for (tick, text) in named(ticks) {
                    text x=(px(self.left - 7.0)) y=(px(self.px_y(tick.value) + 4.5))
                        text-anchor="end" { (text) }
                }
                text.name x="14" y=(middle) text-anchor="middle"
                    transform=(format!("rotate(-90 14 {middle})")) { (title) }
            }
        }
    }

    /// The budget as an upright line, named above the plot.
    pub(crate) fn budget_upright(&self, budget_ns: Option<u64>) -> Markup {
        let Some(budget_ns) = budget_ns.filter(|&ns| self.x.holds(ns as f64)) else {
            return Markup::default();
        };
        let x = self.px_x(budget_ns as f64);
        let anchor = if x > self.right - 60.0 { "end" } else { "middle" };
        html! {
            g.budget {
                line x1=(px(x)) x2=(px(x)) y1=(px(self.top)) y2=(px(self.bottom)) {}
                text x=(px(x)) y=(px(self.top - 7.0)) text-anchor=(anchor) {
                    (budget_text(budget_ns))
                }
            }
        }
    }

    /// The budget as a level line, named at its right end.
    pub(crate) fn budget_level(&self, budget_ns: Option<u64>) -> Markup {
        let Some(budget_ns) = budget_ns.filter(|&ns| self.y.holds(ns as f64)) else {
            return Markup::default();
        };
        let y = self.px_y(budget_ns as f64);
        html! {
            g.budget {
                line x1=(px(self.left)) x2=(px(self.right)) y1=(px(y)) y2=(px(y)) {}
                text.halo x=(px(self.left + 6.0)) y=(px(y - 6.0)) { (budget_text(budget_ns)) }
            }
        }
    }
}

fn budget_text(budget_ns: u64) -> String {
    format!("budget {}", units::ns(budget_ns))
}

fn grid_class(tick: &AxisTick) -> &'static str {
    if tick.text.is_some() { "grid" } else { "grid minor" }
}

fn named(ticks: &[AxisTick]) -> impl Iterator<Item = (&AxisTick, &String)> {
    ticks.iter().filter_map(|tick| Some((tick, tick.text.as_ref()?)))
}

// Texts within plots: the names of maxima, and the bands of the load phases.

/// Width of a character, about.
const CHARACTER: f64 = 7.2;

/// A value marked on the horizontal axis, with its text.
#[derive(Clone, Debug)]
pub(crate) struct AxisMark {
    /// Value on the scale.
    pub(crate) value: f64,
    pub(crate) text: String,
    /// Class of its colour.
    pub(crate) class: String,
}

/// Marks on the horizontal axis: a thin line up from it and the text at its end, the rightmost on
/// top, so that no line runs through a text.
pub(crate) fn marks(frame: &Frame, mut marks: Vec<AxisMark>) -> Markup {
    marks.sort_by(|a, b| b.value.total_cmp(&a.value).then_with(|| a.text.cmp(&b.text)));
    html! {
        @for (row, mark) in marks.iter().enumerate() {
            @let x = frame.px_x(mark.value);
            @let y = frame.top + 14.0 + row as f64 * 18.0;
            @let fits = x - frame.left > mark.text.chars().count() as f64 * CHARACTER + 10.0;
            g class={ "mark " (mark.class) } {
                line x1=(px(x)) x2=(px(x)) y1=(px(y - 11.0)) y2=(px(frame.bottom + 5.0)) {}
                text.halo x=(px(if fits { x - 5.0 } else { x + 5.0 })) y=(px(y))
                    text-anchor=(if fits { "end" } else { "start" }) { (mark.text) }
            }
        }
    }
}

/// Bands of the load phases above a plot over time, and their limits in it.
pub(crate) fn phases(frame: &Frame, phases: &[Phase]) -> Markup {
    let end_ns = frame.x.ends().1;
    let (top, height) = (frame.top - 26.0, 18.0);
    html! {
        g.phases {
            @for phase in phases.iter().filter(|phase| (phase.from_ns as f64) < end_ns) {
                @let from = frame.px_x(phase.from_ns as f64);
                @let to = frame.px_x(phase.to_ns as f64);
                g {
                    title { (phase.name) }
                    rect class=(if phase.loads.is_empty() { "phase idle" } else { "phase" })
                        x=(px(from)) y=(px(top)) rx="2"
                        width=(px((to - from - 2.0).max(1.0))) height=(px(height)) {}
                    @if let Some(text) = fitted(&phase.name, to - from - 10.0) {
                        text x=(px(from + 5.0)) y=(px(top + 13.5)) { (text) }
                    }
                }
                @if phase.from_ns > 0 {
                    line.limit x1=(px(from - 1.0)) x2=(px(from - 1.0))
                        y1=(px(top)) y2=(px(frame.bottom)) {}
                }
            }
        }
    }
}

/// A text cut to a width; `None` where not even three characters fit.
pub(crate) fn fitted(text: &str, width: f64) -> Option<String> {
    let room = (width / CHARACTER).max(0.0) as usize;
    if text.chars().count() <= room {
        return Some(text.into());
    }
    (room >= 4).then(|| text.chars().take(room - 1).chain(['…']).collect())
}

// Mean, mean ± standard deviation and percentiles as uprights in a histogram, of all CPUs together
// and in the wake-up view. A switch of the page shows them: they would hide what lies below.

/// Height of a name: each has a line of its own, so that none hides another.
const NAME: f64 = 14.0;

/// Room that a name takes to the right of its upright.
const NAME_WIDTH: f64 = 110.0;

/// Names and values, ascending. A mean - sd of zero or less is left out: no latency is there.
fn levels(measured: &Measured) -> Vec<(String, f64)> {
    let mut levels: Vec<(String, f64)> = Vec::new();
    if let Some(mean_ns) = measured.mean_ns {
        levels.push(("μ".into(), mean_ns));
        if let Some(sd_ns) = measured.sd_ns {
            levels.push(("μ − σ".into(), mean_ns - sd_ns));
            levels.push(("μ + σ".into(), mean_ns + sd_ns));
        }
    }
    let carried =
        Q::TABLE.into_iter().filter_map(|q| Some((q.name(), measured.wake_ns(q)? as f64)));
    levels.extend(carried);
    levels.retain(|&(_, ns)| ns > 0.0);
    levels.sort_by(|a, b| a.1.total_cmp(&b.1));
    levels
}

/// Draws those that the axis holds.
pub(super) fn draw_levels(frame: &Frame, measured: &Measured) -> Markup {
    let mut levels = levels(measured);
    levels.retain(|&(_, ns)| frame.x.holds(ns));
    html! {
        g.levels {
            @for (at, (name, ns)) in levels.iter().enumerate() {
                @let x = frame.px_x(*ns);
                @let is_right = x > frame.right - NAME_WIDTH;
                line x1=(px(x)) x2=(px(x)) y1=(px(frame.top)) y2=(px(frame.bottom)) {}
                text.halo x=(px(if is_right { x - 4.0 } else { x + 4.0 }))
                    y=(px(frame.top + NAME * (at as f64 + 1.0)))
                    text-anchor=(if is_right { "end" } else { "start" }) {
                    (name) " " (units::ns(ns.round() as u64))
                }
            }
        }
    }
}

// Charts as SVG text: the pictures of the HTML report.
//
// Written by hand because the charts this report lives by (logarithmic counts per CPU, the nines
// axis, the heat map) are ours, and because the bytes must be the same whenever and wherever a
// record is drawn: coordinates have one decimal, nothing is random, colours are classes that the
// page gives light, dark and printed values.

/// Series that have a colour of their own; more are drawn grey, the worst excepted.
pub(crate) const COLOURS: usize = 8;

/// A coordinate with one decimal at most: `12`, `12.3`. What is no number is drawn at 0.
pub(crate) fn px(value: f64) -> String {
    let tenths = if value.is_finite() { (value * 10.0).round() as i64 } else { 0 };
    let (sign, tenths) = (if tenths < 0 { "-" } else { "" }, tenths.unsigned_abs());
    match tenths % 10 {
        0 => format!("{sign}{}", tenths / 10),
        rest => format!("{sign}{}.{rest}", tenths / 10),
    }
}

/// The `d` of a path, absolute coordinates.
#[derive(Default)]
pub(crate) struct Path {
    pub(super) text: String,
}

impl Path {
    /// Moves to a point.
    pub(crate) fn to(&mut self, x: f64, y: f64) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "M{} {}", px(x), px(y));
        self
    }

    /// A line to a point.
    pub(crate) fn line(&mut self, x: f64, y: f64) -> &mut Self {
        let _ = write!(self.text, "L{} {}", px(x), px(y));
        self
    }

    pub(crate) fn across(&mut self, x: f64) -> &mut Self {
        let _ = write!(self.text, "H{}", px(x));
        self
    }

    pub(crate) fn down(&mut self, y: f64) -> &mut Self {
        let _ = write!(self.text, "V{}", px(y));
        self
    }

    /// Whether nothing was drawn.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text of the path.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// How each of `maxima` is drawn: a colour number, or `None` for grey. All have a colour where
/// there are few; among many the worst three have one.
pub(crate) fn colours(maxima: &[u64]) -> Vec<Option<usize>> {
    if maxima.len() <= COLOURS {
        return (0..maxima.len()).map(Some).collect();
    }
    let mut order: Vec<usize> = (0..maxima.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(maxima[i]), i));
    let mut colours = vec![None; maxima.len()];
    for (colour, &i) in order.iter().take(3).enumerate() {
        colours[i] = Some(colour);
    }
    colours
}

// Scales: from a value to a place between 0 and 1, and the ticks that a reader expects there.

/// A scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    /// Equal distances for equal differences.
    Linear {
        /// Value at 0.
        low: f64,
        /// Value at 1.
        high: f64,
    },
    /// Equal distances for equal ratios; ends are positive.
    Log {
        /// Value at 0.
        low: f64,
        /// Value at 1.
        high: f64,
    },
}

/// A tick: a value, and a text where it has one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisTick {
    /// Value on the scale.
    pub(crate) value: f64,
    /// Text; minor ticks have none.
    pub(crate) text: Option<String>,
}

impl Scale {
    /// A linear scale from zero.
    pub(crate) fn from_zero(high: f64) -> Self {
        Self::Linear { low: 0.0, high: if high > 0.0 { high } else { 1.0 } }
    }

    /// Place of a value, 0 to 1; values outside are put on the edge.
    pub(crate) fn at(self, value: f64) -> f64 {
        let place = match self {
            Self::Linear { low, high } => (value - low) / (high - low),
            Self::Log { low, high } => (value.max(low) / low).ln() / (high / low).ln(),
        };
        if place.is_finite() { place.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Whether a value lies on the scale.
    pub(crate) fn holds(self, value: f64) -> bool {
        let (low, high) = self.ends();
        (low..=high).contains(&value)
    }

    pub(crate) fn ends(self) -> (f64, f64) {
        match self {
            Self::Linear { low, high } | Self::Log { low, high } => (low, high),
        }
    }

    /// Ticks of a logarithmic latency axis with room for `room` texts: decades have one, on short
    /// axes also their parts.
    pub(crate) fn latency_ticks(self, room: f64) -> Vec<AxisTick> {
        self.decade_ticks(latency_text, room)
    }

    /// Ticks of a logarithmic axis of counts.
    pub(crate) fn count_ticks(self, room: f64) -> Vec<AxisTick> {
        let mut ticks = self.decade_ticks(count_text, room);
        ticks.retain(|tick| tick.value >= 1.0);
        ticks
    }

    /// Ticks of a logarithmic axis of numbers, those below one too.
    pub(crate) fn number_ticks(self, room: f64) -> Vec<AxisTick> {
        self.decade_ticks(number_text, room)
    }

    fn decade_ticks(self, text: fn(f64) -> String, room: f64) -> Vec<AxisTick> {
        let (low, high) = self.ends();
        let decades = (high / low).log10();
        let is_named = |digit: u32, exponent: i32| match digit {
            1 => decades <= room || exponent % 3 == 0,
            2 | 5 => decades * 3.3 <= room,
            3 | 4 | 7 => decades * 10.0 <= room,
            _ => false,
        };
        let mut ticks = Vec::new();
        for exponent in low.log10().floor() as i32..=high.log10().ceil() as i32 {
            for digit in 1..10_u32 {
                let value = f64::from(digit) * 10_f64.powi(exponent);
                let minor = decades <= 6.5 || digit == 1;
                if self.holds(value) && minor {
                    let text = is_named(digit, exponent).then(|| text(value));
                    ticks.push(AxisTick { value, text });
                }
            }
        }
        ticks
    }

    /// Ticks of a time axis from zero, in nanoseconds: at most about `most` of them.
    pub(crate) fn time_ticks(self, most: usize) -> Vec<AxisTick> {
        const STEPS_S: [u64; 21] = [
            1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200,
            86_400, 172_800, 604_800, 2_592_000,
        ];
        let high_ns = self.ends().1;
        let fits = |step: &u64| high_ns / (*step as f64 * 1e9) <= most as f64;
        let step_s = STEPS_S.into_iter().find(fits).unwrap_or(31_536_000);
        (0..)
            .map(|i: u64| i * step_s)
            .take_while(|&at_s| at_s as f64 * 1e9 <= high_ns && at_s / step_s <= 2 * most as u64)
            .map(|at_s| {
                let text =
                    if at_s == 0 { "0".into() } else { units::duration(at_s * 1_000_000_000) };
                AxisTick { value: at_s as f64 * 1e9, text: Some(text) }
            })
            .collect()
    }

    /// Ticks of a linear latency axis with room for about `room` texts.
    pub(crate) fn latency_steps_of(self, room: f64) -> Vec<AxisTick> {
        let text = |value| if value > 0.0 { latency_text(value) } else { "0".into() };
        let named = |tick: AxisTick| AxisTick { text: Some(text(tick.value)), ..tick };
        self.ticks_of(room).into_iter().map(named).collect()
    }

    /// Ticks of a linear axis: two to five round values.
    pub(crate) fn round_ticks(self) -> Vec<AxisTick> {
        self.ticks_of(3.5)
    }

    /// Ticks of a linear axis at round values, `room` of them or a few less.
    fn ticks_of(self, room: f64) -> Vec<AxisTick> {
        let (low, high) = self.ends();
        let raw = (high - low) / room;
        let exponent = raw.log10().floor();
        let power = 10_f64.powf(exponent);
        let times = [1.0, 2.0, 5.0, 10.0].into_iter().find(|m| m * power >= raw).unwrap_or(10.0);
        let step = times * power;
        let decimals = if step < 1.0 { (-exponent).clamp(0.0, 6.0) as usize } else { 0 };
        let text = |value: f64| match value {
            v if v >= 1000.0 => count_text(v),
            v => format!("{v:.decimals$}"),
        };
        let first = (low / step).ceil() as i64;
        (first..first + 3 + room as i64)
            .map(|i| i as f64 * step)
            .filter(|&value| self.holds(value))
            .map(|value| AxisTick { value, text: Some(text(value)) })
            .collect()
    }
}

/// A latency on an axis: `100 ns`, `1 ms`, `100 s`.
fn latency_text(value_ns: f64) -> String {
    if value_ns >= 60e9 {
        return format!("{} s", units::grouped((value_ns / 1e9).round() as u64));
    }
    units::ns(value_ns.round() as u64)
}

/// A number on an axis: `0.01`, `10 k`.
fn number_text(value: f64) -> String {
    if value >= 0.95 { count_text(value) } else { format!("{}", (value * 1e9).round() / 1e9) }
}

/// A count on an axis: `1`, `100`, `10 k`, `1 M`.
pub(crate) fn count_text(value: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];
    for (size, name) in UNITS {
        if value >= size * 0.9999 {
            let text = format!("{:.1}", value / size);
            return format!("{}\u{202f}{name}", text.trim_end_matches('0').trim_end_matches('.'));
        }
    }
    let text = format!("{value:.1}");
    text.trim_end_matches('0').trim_end_matches('.').into()
}

#[cfg(test)]
mod labels_tests {
    use super::*;

    #[test]
    fn texts_are_cut_where_they_do_not_fit() {
        assert_eq!(fitted("idle", 40.0).as_deref(), Some("idle"));
        assert_eq!(fitted("cpu+memory+net", 60.0).as_deref(), Some("cpu+mem…"));
        assert_eq!(fitted("cpu+memory", 20.0), None);
    }
}

#[cfg(test)]
mod levels_tests {
    use rtproof_stats::quantile::Quantile;

    use super::*;

    fn measured(mean_ns: Option<f64>, sd_ns: Option<f64>, wake: &[(Q, u64)]) -> Measured {
        let quantile = |&(q, ns)| Quantile {
            q,
            value_ns: Some(ns),
            tenths_low_ns: None,
            tenths_high_ns: None,
        };
        Measured {
            scheduled: 9,
            sampled: 9,
            missed: 0,
            late: 0,
            min_ns: None,
            max_ns: None,
            mean_ns,
            sd_ns,
            deadline_mean_ns: None,
            wake: wake.iter().map(quantile).collect(),
            deadline: Vec::new(),
        }
    }

    #[test]
    fn only_quantiles_the_samples_support_are_drawn_in_order() {
        let of = measured(Some(7000.0), Some(2000.0), &[(Q::P50, 6500), (Q::P95, 9500)]);
        let found: Vec<_> = levels(&of);
        let names: Vec<(&str, f64)> = found.iter().map(|(name, ns)| (name.as_str(), *ns)).collect();
        let want =
            [("μ − σ", 5000.0), ("p50", 6500.0), ("μ", 7000.0), ("μ + σ", 9000.0), ("p95", 9500.0)];
        assert_eq!(names, want);
        // The deviation of outliers is larger than the mean.
        let wide: Vec<_> = levels(&measured(Some(7000.0), Some(9000.0), &[]));
        assert_eq!(wide.iter().map(|level| level.1).collect::<Vec<_>>(), [7000.0, 16_000.0]);
        assert!(levels(&measured(None, None, &[])).is_empty());
    }
}

#[cfg(test)]
mod svg_tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        let cases = [(0.0, "0"), (12.34, "12.3"), (-0.04, "0"), (-1.25, "-1.3"), (3.0, "3")];
        for (value, text) in cases {
            assert_eq!(px(value), text);
        }
        assert_eq!((px(f64::NAN).as_str(), px(f64::INFINITY).as_str()), ("0", "0"));
    }

    #[test]
    fn few_have_a_colour_each_and_of_many_the_worst() {
        assert_eq!(colours(&[5, 9]), [Some(0), Some(1)]);
        let mut many = vec![10; 12];
        many[7] = 30;
        let colours = colours(&many);
        assert_eq!((colours[7], colours[0], colours[1]), (Some(0), Some(1), Some(2)));
        assert_eq!(colours.iter().flatten().count(), 3);
    }
}

#[cfg(test)]
mod scale_tests {
    use super::*;

    fn named(ticks: Vec<AxisTick>) -> Vec<String> {
        ticks.into_iter().filter_map(|tick| tick.text).collect()
    }

    #[test]
    fn places_are_between_the_ends() {
        let log = Scale::Log { low: 1e3, high: 1e6 };
        assert!((log.at(1e3), log.at(1e6)) == (0.0, 1.0) && (log.at(31_622.8) - 0.5).abs() < 1e-6);
        assert_eq!((log.at(0.0), log.at(1e12)), (0.0, 1.0));
        let point = Scale::Linear { low: 4.0, high: 4.0 };
        assert_eq!((point.at(4.0), point.at(5.0)), (0.0, 0.0));
    }

    #[test]
    fn ticks_are_what_a_reader_expects() {
        let wide = Scale::Log { low: 500.0, high: 2e6 };
        assert_eq!(named(wide.latency_ticks(9.0)), ["1 µs", "10 µs", "100 µs", "1 ms"]);
        let narrow = Scale::Log { low: 1_000.0, high: 20_000.0 };
        assert_eq!(named(narrow.latency_ticks(9.0)), ["1 µs", "2 µs", "5 µs", "10 µs", "20 µs"]);
        let hour = Scale::Log { low: 1e9, high: 4e12 };
        assert_eq!(
            named(hour.latency_ticks(9.0)).last().unwrap().replace('\u{202f}', " "),
            "1 000 s"
        );
        let minute = Scale::from_zero(60e9);
        assert_eq!(
            named(minute.time_ticks(8)),
            ["0", "10 s", "20 s", "30 s", "40 s", "50 s", "1 min"]
        );
        assert_eq!(named(Scale::from_zero(86_400e9).time_ticks(8)).last().unwrap(), "1 d");
        assert_eq!(count_text(10_000.0).replace('\u{202f}', " "), "10 k");
        let round = Scale::from_zero(930.0).round_ticks();
        assert_eq!(named(round), ["0", "500"]);
        let latency = Scale::from_zero(26_000.0).latency_steps_of(3.5);
        assert_eq!(named(latency), ["0", "10 µs", "20 µs"]);
    }
}
