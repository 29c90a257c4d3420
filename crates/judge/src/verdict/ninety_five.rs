//! Class 95: fewer than one wake-up in twenty is late.

use rtproof_model::verdict::Answer;

use super::case::{Case, Judged};
use crate::{
    share::{COVERED_MIN_NS, Shares, share_lower, share_upper, shares, while_idle},
    units,
};

/// Share of late wake-ups that is allowed.
const ALLOWED: f64 = 0.05;
/// Steps of a quarter in which longer runs are tried: up to 650 000 times as long.
const STEPS_MAX: i32 = 60;

impl Case<'_> {
    pub(super) fn ninety_five(&self) -> Judged {
        if let Some(nothing) = self.nothing_covered().filter(|_| self.basis.late == 0) {
            return nothing;
        }
        let shares = shares(self.run);
        if share_lower(&shares, self.confidence()) > ALLOWED {
            return self.refused();
        }
        let sentence = self.of_shares(&shares);
        if let Some(step) = self.often_late_while_idle() {
            return (Answer::NotProven, sentence, vec![step]);
        }
        match self.basis.further_ns {
            Some(0) if self.weak.is_empty() => {
                (Answer::Accepted, format!("meets 95 % real-time: {sentence}"), vec![self.hidden()])
            }
            Some(further_ns) if further_ns > 0 => {
                let step = format!(
                    "If it goes on like this, about {} more would prove it; that is an estimate.",
                    units::duration(further_ns)
                );
                (Answer::NotProven, sentence, vec![step])
            }
            Some(_) => (Answer::NotProven, sentence, Vec::new()),
            None => {
                let step = match shares.iter().any(Shares::is_short) {
                    true => "Measure for a minute under load, or longer.",
                    false => {
                        "It is too close to 5 %, or above: more of the same does not prove it. \
                         See what makes them late, or raise the budget."
                    }
                };
                (Answer::NotProven, sentence, vec![step.into()])
            }
        }
    }

    /// What was counted, and the bound, or why there is none.
    fn of_shares(&self, shares: &[Shares]) -> String {
        let sum = |of: &dyn Fn(&Shares) -> u64| units::grouped(shares.iter().map(of).sum());
        let counted = format!(
            "{} of {} wake-ups were later than {} {}",
            sum(&|shares| shares.late),
            sum(&|shares| shares.n),
            units::ns(self.budget_ns),
            self.load_text(),
        );
        let bound = match share_upper(shares, self.confidence()) {
            Some(upper) => format!(
                "at {} confidence fewer than {} are",
                self.confidence_text(),
                units::probability(upper)
            ),
            None if shares.iter().any(Shares::is_short) => {
                "a bound on the share takes a minute of load, at least".into()
            }
            None => "latencies stay high or low for too long to bound the share by this run".into(),
        };
        format!("{counted}{}; {bound}", self.idle_text())
    }

    /// What was late without a load, which the bound does not hold for.
    fn idle_text(&self) -> String {
        let idle = while_idle(self.run);
        let (late, n) = idle.iter().fold((0, 0), |(late, n), of| (late + of.1, n + of.2));
        match late {
            0 => String::new(),
            _ => format!(", and {} of {} while idle", units::grouped(late), units::grouped(n)),
        }
    }

    /// Where a CPU was late too often without a load: those that sleep wake up later.
    fn often_late_while_idle(&self) -> Option<String> {
        let share = |&(_, late, n): &(u32, u64, u64)| late as f64 / n.max(1) as f64;
        let worst =
            while_idle(self.run).into_iter().max_by(|a, b| share(a).total_cmp(&share(b)))?;
        (share(&worst) > ALLOWED).then(|| {
            let (cpu, late, n) = worst;
            format!(
                "While idle, {} of {} wake-ups of CPU {cpu} were late: CPUs that sleep wake up \
                 later. Look at the idle states; --load idle judges that state.",
                units::grouped(late),
                units::grouped(n)
            )
        })
    }

    /// Which lateness a run of this length does not see. Episodes of mean length d that make up 5 %
    /// of the time are 19 d apart; none begins in T with exp(-T / 19 d), and none goes on at its
    /// start with 0.95: T / 55.9 at 95 %.
    fn hidden(&self) -> String {
        let wrong = 1.0 - self.confidence();
        let apart = (1.0 - ALLOWED) / ALLOWED * ((1.0 - ALLOWED) / wrong).ln().max(1.0);
        let longest_ns = self.basis.exposure_ns as f64 / apart;
        format!(
            "This holds for lateness in episodes of up to {} on average; of longer ones, a run of \
             this length may have seen none.",
            units::duration(longest_ns as u64)
        )
    }
}

/// How much longer to measure, if it goes on like this; 0 when it is enough, `None` when more of
/// the same does not help.
pub(super) fn further_ns(shares: &[Shares], exposure_ns: u64, confidence: f64) -> Option<u64> {
    if exposure_ns == 0 || shares.iter().any(|shares| shares.n == 0) {
        return None;
    }
    let enough = |times: f64| {
        shares.iter().all(|s| s.upper(confidence, times).is_some_and(|upper| upper < ALLOWED))
    };
    if enough(1.0) {
        return Some(0);
    }
    let least = (COVERED_MIN_NS as f64 / exposure_ns as f64).max(1.0);
    let times = (0..STEPS_MAX).map(|i| least * 1.25_f64.powi(i)).find(|&times| enough(times))?;
    Some(((exposure_ns as f64 * (times - 1.0)) as u64).max(1_000_000_000))
}
