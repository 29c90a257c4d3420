//! Words and numbers that text and HTML share about the distribution of the samples.

use rtproof_judge::{
    moving::{Gap, Moving},
    units::{self, grouped},
};
use rtproof_stats::extreme::holdout::Holdout;

/// What the numbers are, and what they are not for.
pub(crate) const CONVENTION: &str = "Of the wake-ups that were measured, from exact sums. sd with \
    n - 1; skewness g1 = m3 / m2^1.5, and G1 its estimate for the population. Excess kurtosis g2 = \
    m4 / m2² - 3, and G2 likewise. Kurtosis is g2 + 3, which is 3 for a normal distribution. \
    Skewness and kurtosis count outliers: k equal ones among n make a kurtosis of about n / k. \
    Worth: what the samples are worth in independent ones for their mean, from which its standard \
     error follows. Nothing is decided by these.";

/// Why P² is beside the point.
pub(crate) const P2_CAUTION: &str = "An estimate without an interval, as older tables have it, \
    made from the cells of each second in order of time: it can be off twelvefold, and cannot be \
    merged. The histogram's own quantile, and how far P² is off it, stand beside it.";

/// `all`, `CPU 3`.
pub(crate) fn name(cpu: Option<u32>) -> String {
    cpu.map_or("all".into(), |cpu| format!("CPU {cpu}"))
}

/// A number with three digits or more, groups of digits where it is large.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        a if !a.is_finite() => "-".into(),
        a if a >= 1000.0 => {
            let sign = if value < 0.0 { "-" } else { "" };
            format!("{sign}{}", grouped(a.round() as u64))
        }
        a if a >= 100.0 => format!("{value:.0}"),
        a if a >= 10.0 => format!("{value:.1}"),
        a if a >= 0.1 || a == 0.0 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// Time without samples and missed wake-ups, which moving statistics do not show; the first `most`
/// gaps by name. `None`: there is nothing of that.
pub(crate) fn gaps(moving: &Moving, most: usize) -> Option<String> {
    let mut texts = Vec::new();
    if moving.gaps_all > 0 {
        let named = |gap: &Gap| {
            let cpus = units::count(gap.cpus, "CPU");
            format!(
                "{cpus} from {} to {}",
                units::duration(gap.from_ns),
                units::duration(gap.to_ns)
            )
        };
        let shown: Vec<String> = moving.gaps.iter().take(most).map(named).collect();
        let more = match moving.gaps_all - shown.len() as u64 {
            0 => String::new(),
            more => format!(", and {} more", grouped(more)),
        };
        texts.push(format!("No sample: {}{more}.", shown.join(", ")));
    }
    if moving.missed > 0 {
        texts.push(format!(
            "{} missed in {} of the steps; no value here counts them, the deadline view does.",
            units::count(moving.missed, "wake-up"),
            grouped(moving.missed_steps)
        ));
    }
    (!texts.is_empty()).then(|| texts.join(" "))
}

/// What became of the prediction.
pub(crate) fn held_out(held: &Holdout) -> String {
    let (level, of) = (units::ns(held.level_ns.round() as u64), grouped(held.of));
    let found = match held.p < 0.01 {
        true => "more than chance allows: the tail grew worse, or it is no such distribution",
        false => "as chance has it",
    };
    format!(
        "A tail fitted to the first half of the time predicts that {:.1} of the {of} groups of \
         the second half exceed {level}: {} did (p = {:.2}), {found}.",
        held.expected,
        grouped(held.exceeded),
        held.p
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let texts = [31.62, 0.05, 4998.2, -1.7, 0.0, 0.123, 250.4].map(number);
        let want = ["31.6", "0.0500", "4 998", "-1.70", "0.00", "0.12", "250"];
        assert_eq!(texts.map(|text| text.replace('\u{202f}', " ")), want);
        assert_eq!(number(f64::NAN), "-");
    }

    #[test]
    fn a_prediction_that_failed_is_told() {
        let held = Holdout { level_ns: 48_400.0, of: 120, expected: 6.0, exceeded: 7, p: 0.41 };
        assert!(held_out(&held).ends_with("48.4 µs: 7 did (p = 0.41), as chance has it."));
        let bad = Holdout { exceeded: 30, p: 1e-9, ..held };
        assert!(held_out(&bad).contains("30 did (p = 0.00), more than chance allows"));
    }
}
