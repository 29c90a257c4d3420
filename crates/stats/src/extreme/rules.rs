//! The nine reasons to refuse to follow a tail, each with its numbers and its words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    blocks, gpd, iid,
    level::{Level, Measured},
};
use crate::{
    dispersion,
    period::{self, Ask},
};

/// Level of the tests of rules 2 and 3.
const TEST_LEVEL: f64 = 0.01;
/// Largest upper end of the level's interval, in levels. It is so large that hardly a tail is
/// refused for it: to show only those whose upper end came out low would be to choose.
const RATIO_MAX: f64 = 100.0;
/// Times of the exposure that may be looked ahead.
const TIMES_MAX: f64 = 10.0;
const DISTINCT_MIN: usize = 20;
/// Largest move of the shape without the largest value, in its standard errors.
const ERRORS_MAX: f64 = 2.0;
/// The longest period of a disturbance, where none is known: 15 minutes.
const LONGEST_NS: u64 = 900_000_000_000;
/// Such periods that must be measured.
const PERIODS: u64 = 3;

/// A reason to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "rule")]
pub enum Rule {
    /// 1: fewer than fifty clusters.
    TooFew {
        /// How many there are.
        clusters: u64,
    },
    /// 2: the clusters differ from half to half or block to block, or depend on each other.
    NotAlike {
        /// Probability of halves as different (Kolmogorov-Smirnov).
        halves_p: f64,
        /// Probability of such runs above and below the median.
        runs_p: f64,
        /// Probability of blocks of time as different (Kruskal-Wallis).
        #[serde(default = "one")]
        blocks_p: f64,
        /// Probability of as many clusters close to each other in time.
        #[serde(default = "one")]
        episodes_p: f64,
    },
    /// 3: the clusters follow a period.
    Periodic {
        period_ns: f64,
        /// Clusters that follow it.
        count: u64,
        /// Probability by chance.
        p: f64,
    },
    /// 4: the distribution fits over no threshold.
    NoFit {
        /// The largest probability of a fit as bad by chance.
        p: f64,
    },
    /// 5: the tail is too heavy, or the level too uncertain.
    TooWide {
        /// Upper end of the 95 % interval of the shape; `None`: there is none.
        xi_high: Option<f64>,
        /// Upper end of the level's interval in levels; `None`: not requested, or there is none.
        ratio: Option<f64>,
    },
    /// 6: too far ahead.
    TooFar {
        /// The requested time, in times measured.
        times: f64,
    },
    /// 7: the values are too coarse.
    TooCoarse { distinct: u64 },
    /// 8: one value makes the tail.
    OneValue {
        /// How far the shape moves without it, in standard errors.
        errors: f64,
    },
    /// 9: too short for what comes seldom.
    TooShort { exposure_ns: u64, needed_ns: u64 },
}

impl Rule {
    /// Its number, 1 to 9.
    pub const fn number(&self) -> u8 {
        match self {
            Self::TooFew { .. } => 1,
            Self::NotAlike { .. } => 2,
            Self::Periodic { .. } => 3,
            Self::NoFit { .. } => 4,
            Self::TooWide { .. } => 5,
            Self::TooFar { .. } => 6,
            Self::TooCoarse { .. } => 7,
            Self::OneValue { .. } => 8,
            Self::TooShort { .. } => 9,
        }
    }

    /// What it says, to follow "because".
    pub fn text(&self) -> String {
        match *self {
            Self::TooFew { clusters } => format!("only {clusters} groups of late wake-ups (50)"),
            Self::NotAlike { halves_p, runs_p, blocks_p, episodes_p } => format!(
                "the groups are not alike from beginning to end (halves p = {halves_p:.0e}, \
                 runs p = {runs_p:.0e}, blocks p = {blocks_p:.0e}, episodes p = {episodes_p:.0e})"
            ),
            Self::Periodic { period_ns, count, p } => format!(
                "{count} groups come every {} s (p = {p:.0e}): that is no chance",
                digits(period_ns / 1e9)
            ),
            Self::NoFit { p } => format!("no tail fits over any threshold (p = {p:.3})"),
            Self::TooWide { xi_high, ratio } => match (xi_high, ratio) {
                (_, Some(ratio)) => format!("the level may be {ratio:.0} times as high"),
                (Some(xi), None) => format!("the level has no upper end (xi up to {xi:.2})"),
                (None, None) => "the level has no upper end: any weight of the tail fits".into(),
            },
            Self::TooFar { times } => {
                format!("that is {} times what was measured (10)", digits(times))
            }
            Self::TooCoarse { distinct } => format!("only {distinct} values differ (20)"),
            Self::OneValue { errors } => {
                format!("one value makes the tail ({errors:.1} standard errors without it)")
            }
            Self::TooShort { exposure_ns, needed_ns } => format!(
                "{} min do not show what comes every quarter of an hour or so ({} min)",
                digits(exposure_ns as f64 / 6e10),
                digits(needed_ns as f64 / 6e10)
            ),
        }
    }
}

fn digits(value: f64) -> String {
    match value {
        v if v >= 99.5 => format!("{v:.0}"),
        v if v >= 9.95 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

pub(super) fn too_short(measured: &Measured<'_>) -> Option<Rule> {
    let longest = measured.longest_period_ns.unwrap_or(0).max(LONGEST_NS);
    let (exposure_ns, needed_ns) = (measured.exposure_ns, longest.saturating_mul(PERIODS));
    (exposure_ns < needed_ns).then_some(Rule::TooShort { exposure_ns, needed_ns })
}

/// Excesses in order of time, with their times.
pub(super) fn not_alike(
    excesses: &[f64],
    times_ns: &[u64],
    measured: &Measured<'_>,
) -> Option<Rule> {
    let (halves_p, runs_p) = (iid::halves(excesses), iid::runs(excesses));
    let blocks_p = blocks::alike(times_ns, excesses, measured.exposure_ns);
    let from_ns = times_ns.first().copied().unwrap_or(0);
    let times: Vec<u64> = times_ns.iter().map(|at| at - from_ns).collect();
    let length_ns = measured.exposure_ns.max(times.last().copied().unwrap_or(0) + 1);
    let episodes_p = dispersion::of(&times, length_ns, measured.seed).map_or(1.0, |found| found.p);
    let least = halves_p.min(runs_p).min(blocks_p).min(episodes_p);
    (least < TEST_LEVEL).then_some(Rule::NotAlike { halves_p, runs_p, blocks_p, episodes_p })
}

const fn one() -> f64 {
    1.0
}

pub(super) fn periodic(times_ns: &[u64], sampling_ns: u64) -> Option<Rule> {
    let ask = Ask { sampling_ns, shortest_ns: 3 * sampling_ns.max(1), hints_ns: &[] };
    let found = period::search(times_ns, &ask).filter(|found| found.p < TEST_LEVEL)?;
    Some(Rule::Periodic { period_ns: found.period_ns, count: found.fold.follow, p: found.p })
}

pub(super) fn too_wide(level: &Level) -> Option<Rule> {
    let ratio = level.high_ns / level.level_ns;
    let xi_high = level.xi_high.is_finite().then_some(level.xi_high);
    let is_wide = ratio.is_nan() || ratio > RATIO_MAX;
    is_wide.then_some(Rule::TooWide { xi_high, ratio: ratio.is_finite().then_some(ratio) })
}

pub(super) fn too_far(exposure_ns: u64, target_ns: u64) -> Option<Rule> {
    let times = target_ns as f64 / exposure_ns.max(1) as f64;
    (times > TIMES_MAX).then_some(Rule::TooFar { times })
}

pub(super) fn too_coarse(excesses: &[f64]) -> Option<Rule> {
    let mut values: Vec<u64> = excesses.iter().map(|&y| y as u64).collect();
    values.sort_unstable();
    values.dedup();
    (values.len() < DISTINCT_MIN).then_some(Rule::TooCoarse { distinct: values.len() as u64 })
}

pub(super) fn one_value(excesses: &[f64], fit: &gpd::Fit) -> Option<Rule> {
    let largest = (0..excesses.len()).max_by(|&a, &b| excesses[a].total_cmp(&excesses[b]))?;
    let mut others = excesses.to_vec();
    others.remove(largest);
    // Where the curvature gives no error, that of many values: (1 + xi) / sqrt(k).
    let rough = (1.0 + fit.gpd.xi) / (excesses.len() as f64).sqrt();
    let error = fit.covariance(excesses).map_or(rough, |covariance| covariance[1][1].sqrt());
    let errors = gpd::fit(&others).map(|other| (other.gpd.xi - fit.gpd.xi).abs() / error)?;
    (errors > ERRORS_MAX).then_some(Rule::OneValue { errors })
}
