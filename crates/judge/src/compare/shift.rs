//! The shift function: how far each quantile moved (Doksum 1974), from the deciles to the tail.

use rtproof_stats::quantile::Q;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The quantiles of the shift.
pub(super) const GRID: [Q; 14] = [
    Q { above: 9, of: 10 },
    Q { above: 8, of: 10 },
    Q { above: 7, of: 10 },
    Q { above: 6, of: 10 },
    Q::P50,
    Q { above: 4, of: 10 },
    Q { above: 3, of: 10 },
    Q { above: 2, of: 10 },
    Q { above: 1, of: 10 },
    Q { above: 1, of: 100 },
    Q { above: 1, of: 1000 },
    Q { above: 1, of: 10_000 },
    Q { above: 1, of: 100_000 },
    Q { above: 1, of: 1_000_000 },
];

/// How far each quantile moved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shift {
    /// From the lowest quantile up.
    pub points: Vec<ShiftPoint>,
    /// How the bands came about.
    pub method: String,
}

/// How one quantile differs between two sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ShiftPoint {
    /// Name, e.g. `p99.9`.
    pub quantile: String,
    /// Share of wake-ups below it.
    pub share: f64,
    /// In the first group, nanoseconds.
    pub from_ns: f64,
    pub to_ns: f64,
    /// This one to the first.
    pub ratio: f64,
    /// Lower end of the band, a ratio.
    pub low: Option<f64>,
    pub high: Option<f64>,
}
