//! The frame of a chart: where the plot lies in the picture, axes, grid, and the root element.

use maud::{Markup, html};

use super::{
    px,
    scale::{Scale, Tick},
};

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
    /// Horizontal scale.
    pub(crate) x: Scale,
    /// Vertical scale.
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
    pub(crate) fn x_axis(&self, ticks: &[Tick], title: &str) -> Markup {
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
                    // The last text must not stand out of the picture.
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
    pub(crate) fn y_axis(&self, ticks: &[Tick], title: &str) -> Markup {
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
    format!("budget {}", rtproof_judge::units::ns(budget_ns))
}

fn grid_class(tick: &Tick) -> &'static str {
    if tick.text.is_some() { "grid" } else { "grid minor" }
}

fn named(ticks: &[Tick]) -> impl Iterator<Item = (&Tick, &String)> {
    ticks.iter().filter_map(|tick| Some((tick, tick.text.as_ref()?)))
}
