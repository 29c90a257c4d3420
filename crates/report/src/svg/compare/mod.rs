//! Pictures of runs side by side: histograms over each other, the share of later wake-ups, how far
//! each quantile moved, and the runs in order of time.
//!
//! Every line carries its name where it ends, so that no legend has to be hunted; beyond eight,
//! colours come again with dashes.

pub(crate) mod cells;
pub(crate) mod later;
pub(crate) mod over;
pub(crate) mod overlay;
pub(crate) mod runs;
pub(crate) mod shift;

use rtproof_judge::{
    compare::{Group, View},
    units,
};
use rtproof_stats::Bins;

use super::{COLOURS, labels::Mark};

/// One line of a picture.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) label: String,
    pub(crate) bins: Bins,
    pub(crate) max_ns: Option<u64>,
    /// Whether that may have been larger.
    pub(crate) at_least: bool,
    /// Whether a cell goes by its lower edge.
    pub(crate) rounds_down: bool,
    /// Width of its cells at least.
    pub(crate) resolution_ns: u64,
    /// Number of its colour; `None`: grey, behind the others.
    pub(crate) colour: Option<usize>,
}

impl Series {
    /// A group of runs, all together.
    pub(crate) fn of(group: &Group, view: View, colour: Option<usize>) -> Self {
        let mut bins = Bins::default();
        group.sides.iter().for_each(|side| bins.merge(&side.all(view)));
        let maxima = group.sides.iter().filter_map(rtproof_judge::compare::Side::max);
        let max = maxima.max_by_key(|max| max.0);
        Self {
            label: group.label.clone(),
            bins,
            max_ns: max.map(|max| max.0),
            at_least: max.is_some_and(|max| max.1),
            rounds_down: group.sides.iter().any(|side| side.rounds_down),
            resolution_ns: group.sides.iter().map(|side| side.resolution_ns).max().unwrap_or(1),
            colour,
        }
    }

    /// Class of the line's colour.
    pub(crate) fn class(&self) -> String {
        self.colour.map_or_else(|| "grey".into(), |colour| format!("s{}", colour % COLOURS))
    }

    /// Class of the line itself: the second eight are dashed.
    pub(crate) fn line(&self) -> &'static str {
        match self.colour {
            Some(colour) if colour >= COLOURS => "line dashed",
            _ => "line",
        }
    }

    /// The largest value in words.
    pub(crate) fn max_text(&self) -> String {
        let max_ns = self.max_ns.unwrap_or(0);
        format!("{}{}", if self.at_least { "≥ " } else { "" }, units::ns(max_ns))
    }

    /// Name and largest value, at the largest value.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            value: self.max_ns.unwrap_or(0) as f64,
            text: format!("{}: {}", self.label, self.max_text()),
            class: self.class(),
        }
    }

    /// Where a cell is drawn.
    pub(crate) fn value(&self, bin: &rtproof_stats::Bin) -> f64 {
        let high_ns = match self.max_ns {
            Some(max_ns) if !self.at_least => bin.high_ns.min(max_ns.max(bin.low_ns)),
            // The last cell of a histogram that ended before has no upper edge.
            _ => bin.high_ns.min(self.max_ns.unwrap_or(bin.low_ns).max(bin.low_ns)),
        };
        if self.rounds_down { bin.low_ns as f64 } else { high_ns as f64 }
    }

    /// Smallest and largest value; `None` of nothing.
    pub(crate) fn ends(&self) -> Option<(f64, f64)> {
        let first = self.bins.iter().next()?;
        let last = self.bins.iter().last()?;
        let high =
            self.max_ns.map_or(self.value(last), |max_ns| self.value(last).max(max_ns as f64));
        Some((first.low_ns as f64, high))
    }
}

/// Smallest and largest value of all lines.
pub(crate) fn ends(series: &[Series]) -> Option<(f64, f64)> {
    series.iter().filter_map(Series::ends).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}
