//! Class 95: fewer than one wake-up in twenty is late.

use rtproof_record::Run;

use super::{Answer, Case, Judged};
use crate::{
    share::{Shares, share_bounds},
    units,
};

/// Share of late wake-ups that is allowed.
const ALLOWED: f64 = 0.05;

impl Case<'_> {
    pub(super) fn ninety_five(&self) -> Judged {
        if let Some(nothing) = self.nothing_covered().filter(|_| self.basis.late == 0) {
            return nothing;
        }
        let (upper, lower) = share_bounds(self.run, self.confidence());
        let (late, n) = self
            .run
            .threads
            .iter()
            .map(|thread| Shares::of(self.run, thread))
            .fold((0, 0), |(late, n), shares| (late + shares.late, n + shares.n));
        let shares = format!(
            "{} of {} wake-ups were later than {} {}; at {} confidence fewer than {} are",
            units::grouped(late),
            units::grouped(n),
            units::ns(self.budget_ns),
            self.load_text(),
            self.confidence_text(),
            units::probability(upper),
        );
        if lower > ALLOWED {
            return self.refused();
        }
        match self.basis.further_ns {
            Some(0) if self.weak.is_empty() => {
                (Answer::Accepted, format!("meets 95 % real-time: {shares}"), Vec::new())
            }
            Some(further_ns) if further_ns > 0 => {
                let step = format!(
                    "If it goes on like this, {} more would prove it.",
                    units::duration(further_ns)
                );
                (Answer::NotProven, shares, vec![step])
            }
            Some(_) => (Answer::NotProven, shares, Vec::new()),
            None => {
                let step = "It is too close to 5 %, or above: more of the same does not prove it. \
                            See what makes them late, or raise the budget."
                    .into();
                (Answer::NotProven, shares, vec![step])
            }
        }
    }
}

/// How much longer to measure; 0 when it is enough, `None` when more of the same does not help.
pub(super) fn further_ns(run: &Run, exposure_ns: u64, confidence: f64) -> Option<u64> {
    let shares: Vec<Shares> = run.threads.iter().map(|thread| Shares::of(run, thread)).collect();
    if exposure_ns == 0 || shares.iter().any(|shares| shares.n == 0) {
        return None;
    }
    let enough = |times: f64| shares.iter().all(|s| s.bounds(confidence, times).0 < ALLOWED);
    let times = std::iter::successors(Some(1.0), |times| Some(times * 1.25))
        .take(60)
        .find(|&times| enough(times))?;
    Some((exposure_ns as f64 * (times - 1.0)) as u64)
}
