//! Class 100: late wake-ups come less often than the rate asked for.

use rtproof_record::Run;
use rtproof_stats::Totals;

use super::{Answer, Case, Judged, covered_ns};
use crate::units;

impl Case<'_> {
    pub(super) fn hundred(&self) -> Judged {
        let b = self.basis;
        if b.late > 0 {
            return self.refused();
        }
        if let Some(nothing) = self.nothing_covered() {
            return nothing;
        }
        let idle_ns = covered_ns(self.run).saturating_sub(b.exposure_ns);
        let idle = match idle_ns {
            0 => String::new(),
            idle_ns => format!(" and {} idle", units::duration(idle_ns)),
        };
        let missed = match b.missed {
            0 => String::new(),
            missed => format!(" ({} of them missed)", units::grouped(missed)),
        };
        let claim = format!(
            "no wake-up of {}{missed} was later than {} in {} {}{idle}",
            units::grouped(b.scheduled),
            units::ns(self.budget_ns),
            units::duration(b.exposure_ns),
            self.load_text(),
        );
        let bound = format!(
            "{claim}; late ones are fewer than {} at {} confidence",
            b.late_rate_upper_per_hour.map_or("?".into(), units::per_hour),
            self.confidence_text(),
        );
        let (tail, is_over) = self.tail();
        match b.further_ns {
            // Nothing was late, but the tail may well be.
            Some(0) if is_over => (Answer::NotProven, bound, vec![tail]),
            Some(0) if self.weak.is_empty() => (Answer::Accepted, bound, vec![tail]),
            Some(further_ns) if further_ns > 0 => {
                let asked = self.run.options.requirement.rate_per_1000h as f64 / 1000.0;
                let step = format!(
                    "To bound them below {} measure {} longer without a late one (--for), or ask \
                     for \
                     less (--max-rate).",
                    units::per_hour(asked),
                    units::duration(further_ns),
                );
                (Answer::NotProven, bound, vec![step, tail])
            }
            _ => (Answer::NotProven, bound, vec![tail]),
        }
    }

    /// What is said of the tail, and whether its level may be over the budget.
    fn tail(&self) -> (String, bool) {
        let counted = "the rate is bounded by counting alone";
        self.tail.map_or_else(
            || (format!("The tail was not extrapolated: {counted}."), false),
            |tail| tail.sentence(self.budget_ns, counted),
        )
    }
}

/// How much longer to measure; 0 when it is enough, `None` when more of the same does not help.
pub(super) fn further_ns(
    run: &Run,
    totals: &Totals,
    exposure_ns: u64,
    confidence: f64,
) -> Option<u64> {
    if totals.late() > 0 {
        return None;
    }
    let rate = run.options.requirement.rate_per_1000h as f64 / 1000.0;
    let wanted_ns = -(1.0 - confidence).ln() / rate * 3.6e12;
    Some((wanted_ns - exposure_ns as f64).max(0.0).ceil() as u64)
}
