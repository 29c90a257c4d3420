//! The nine reasons to refuse to follow a tail, each with its numbers and its words.

use serde::{Deserialize, Serialize};

use super::{
    gpd, iid,
    level::{Level, Measured},
};
use crate::period::{self, Ask};

/// Level of the tests of rules 2 and 3.
const TEST_LEVEL: f64 = 0.01;
/// Largest upper end of the shape's interval.
const XI_MAX: f64 = 0.5;
/// Largest upper end of the level's interval, in levels.
const RATIO_MAX: f64 = 2.0;
/// Times of the exposure that may be looked ahead.
const TIMES_MAX: f64 = 10.0;
/// Fewest different values.
const DISTINCT_MIN: usize = 20;
/// Largest move of the shape without the largest value, in its standard errors.
const ERRORS_MAX: f64 = 2.0;
/// The longest period of a disturbance, where none is known: 15 minutes.
const LONGEST_NS: u64 = 900_000_000_000;
/// Such periods that must be measured.
const PERIODS: u64 = 3;

/// A reason to refuse.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "rule")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Rule {
    /// 1: fewer than fifty clusters.
    TooFew {
        /// How many there are.
        clusters: u64,
    },
    /// 2: the clusters of the two halves differ, or depend on each other.
    NotAlike {
        /// Probability of halves as different (Kolmogorov-Smirnov).
        halves_p: f64,
        /// Probability of such runs above and below the median.
        runs_p: f64,
    },
    /// 3: the clusters follow a period.
    Periodic {
        /// The period.
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
    TooCoarse {
        /// Different values.
        distinct: u64,
    },
    /// 8: one value makes the tail.
    OneValue {
        /// How far the shape moves without it, in standard errors.
        errors: f64,
    },
    /// 9: too short for what comes seldom.
    TooShort {
        /// Time measured.
        exposure_ns: u64,
        /// Time needed.
        needed_ns: u64,
    },
}

impl Rule {
    /// Its number, 1 to 9.
    #[must_use]
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
    #[must_use]
    pub fn text(&self) -> String {
        match *self {
            Self::TooFew { clusters } => format!("only {clusters} groups of late wake-ups (50)"),
            Self::NotAlike { halves_p, runs_p } => format!(
                "the groups are not alike from beginning to end (halves p = {halves_p:.0e}, \
                 runs p = {runs_p:.0e})"
            ),
            Self::Periodic { period_ns, count, p } => format!(
                "{count} groups come every {} s (p = {p:.0e}): that is no chance",
                digits(period_ns / 1e9)
            ),
            Self::NoFit { p } => format!("no tail fits over any threshold (p = {p:.3})"),
            Self::TooWide { xi_high, ratio } => {
                let heavy = xi_high.is_none_or(|xi| xi > XI_MAX);
                match (heavy, xi_high, ratio) {
                    (true, Some(xi), _) => format!("the tail may be too heavy (xi up to {xi:.2})"),
                    (true, None, _) => "the tail may be of any weight".into(),
                    (false, _, Some(ratio)) => {
                        format!("the level may be {ratio:.1} times as high")
                    }
                    (false, _, None) => "the level has no upper end".into(),
                }
            }
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

/// Three digits.
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

/// Excesses in order of time.
pub(super) fn not_alike(excesses: &[f64]) -> Option<Rule> {
    let (halves_p, runs_p) = (iid::halves(excesses), iid::runs(excesses));
    (halves_p < TEST_LEVEL || runs_p < TEST_LEVEL).then_some(Rule::NotAlike { halves_p, runs_p })
}

pub(super) fn periodic(times_ns: &[u64], sampling_ns: u64) -> Option<Rule> {
    let ask = Ask { sampling_ns, shortest_ns: 3 * sampling_ns.max(1), hints_ns: &[] };
    let found = period::search(times_ns, &ask).filter(|found| found.p < TEST_LEVEL)?;
    Some(Rule::Periodic { period_ns: found.period_ns, count: found.fold.follow, p: found.p })
}

pub(super) fn heavy(xi_high: Option<f64>) -> Option<Rule> {
    let is_heavy = xi_high.is_none_or(|xi| xi > XI_MAX);
    is_heavy.then_some(Rule::TooWide { xi_high, ratio: None })
}

/// Unless the rule has fired already.
pub(super) fn too_wide(level: &Level, found: &[Rule]) -> Option<Rule> {
    let ratio = level.high_ns / level.level_ns;
    let is_wide = ratio.is_nan() || ratio > RATIO_MAX;
    let xi_high = level.xi_high.is_finite().then_some(level.xi_high);
    let ratio = ratio.is_finite().then_some(ratio);
    (is_wide && found.iter().all(|rule| rule.number() != 5))
        .then_some(Rule::TooWide { xi_high, ratio })
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
