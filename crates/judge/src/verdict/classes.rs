//! The rules of class 95 and of class 100.

use rtproof_model::verdict::{LateGroups, VerdictAnswer};
use rtproof_record::Run;
use rtproof_stats::binomial;

use super::{JudgedCase, VerdictCase, covered_ns};
use crate::share::{COVERED_MIN_NS, LateShares, share_lower, share_upper, shares, while_idle};
use crate::units;

// Class 100: groups of late wake-ups come less often than the rate asked for.

const HOUR_NS: f64 = 3.6e12;

impl VerdictCase<'_> {
    pub(super) fn hundred(&self) -> JudgedCase {
        let b = self.basis;
        if let Some(nothing) = self.nothing_covered().filter(|_| b.late == 0) {
            return nothing;
        }
        let groups = b.late_groups.unwrap_or_default();
        let rate = LateRate::of(self.run, &groups, b.exposure_ns);
        if b.late > 0 && (rate.is_above() || self.lesser_policy().is_some()) {
            return self.refused_for(self.above(&rate));
        }
        let upper = b.late_rate_upper_per_hour.map_or("?".into(), units::per_hour);
        let bound = format!(
            "{}; late groups are fewer than {upper} at {} confidence if they come at a steady rate",
            self.claim(&groups),
            self.confidence_text(),
        );
        let (tail, is_over) = self.tail();
        let seen = groups_text(&groups, b.exposure_ns);
        match b.further_ns {
            // Enough was counted, but the tail may well be over.
            Some(0) if is_over => (VerdictAnswer::NotProven, bound, vec![tail, seen]),
            Some(0) if self.weak.is_empty() => (VerdictAnswer::Accepted, bound, vec![tail, seen]),
            Some(further_ns) if further_ns > 0 => {
                (VerdictAnswer::NotProven, bound, vec![self.step(&groups, further_ns), tail, seen])
            }
            Some(_) => (VerdictAnswer::NotProven, bound, vec![tail, seen]),
            None => (VerdictAnswer::NotProven, bound, vec![seen, tail]),
        }
    }

    fn claim(&self, groups: &LateGroups) -> String {
        let b = self.basis;
        let idle = match covered_ns(self.run).saturating_sub(b.exposure_ns) {
            0 => String::new(),
            idle_ns => format!(" and {} idle", units::duration(idle_ns)),
        };
        let when = format!("in {} {}{idle}", units::duration(b.exposure_ns), self.load_text());
        let budget = units::ns(self.budget_ns);
        let scheduled = units::grouped(b.scheduled);
        if b.late > 0 {
            return format!(
                "{} of {scheduled} wake-ups were later than {budget}{}, in {}, {when}",
                units::grouped(b.late),
                self.worst_text(),
                units::count(groups.count, "group"),
            );
        }
        let missed = match b.missed {
            0 => String::new(),
            missed => format!(" ({} of them missed)", units::grouped(missed)),
        };
        let worst = self.worst_text();
        format!("no wake-up of {scheduled}{missed} was later than {budget} {when}{worst}")
    }

    /// Why a machine is refused.
    fn above(&self, rate: &LateRate) -> String {
        let lower = rate.lower_per_hour().map_or("any rate".into(), at_least);
        format!(
            "The late ones came in {}: more than {lower} at {} confidence if they come at a steady \
             rate; at most {} was asked for.",
            units::count(rate.count, "group"),
            self.confidence_text(),
            units::per_hour(rate.requested_per_hour),
        )
    }

    /// What to do where the time is too short.
    fn step(&self, groups: &LateGroups, further_ns: u64) -> String {
        let asked = self.run.options.requirement.rate_per_1000h as f64 / 1000.0;
        let at_most = match groups.count {
            0 => "without a late one".into(),
            count => format!("with no more than {}", units::count(count, "late group")),
        };
        // A program lasts as long as it does.
        let option = if self.run.options.phases.is_empty() { "" } else { " (--for)" };
        format!(
            "To bound them below {} a run must last {} {at_most}, {} more than this one{option}; \
             or ask for less (--max-rate).",
            units::per_hour(asked),
            units::duration(whole(self.basis.exposure_ns + further_ns)),
            units::duration(whole(further_ns)),
        )
    }

    /// Sentence on the tail, and whether its level may be over the budget.
    fn tail(&self) -> (String, bool) {
        let counted = "the rate is bounded by counting alone";
        self.tail.map_or_else(
            || (format!("The tail was not extrapolated: {counted}."), false),
            |tail| tail.sentence(self.budget_ns, counted),
        )
    }
}

/// What a group is, and what was seen of their sizes and times.
fn groups_text(groups: &LateGroups, exposure_ns: u64) -> String {
    const GROUP: &str = "Late wake-ups less than ten on-time periods apart, on whatever CPU, are \
                         one group";
    let unseen =
        format!("episodes rarer than one in {} can be unseen", units::duration(exposure_ns / 3));
    if groups.count == 0 {
        return format!(
            "{GROUP}. None was seen: their size and whether they come at a steady rate are not \
             tested; {unseen}."
        );
    }
    let mean = groups.mean.unwrap_or(1.0);
    let largest = groups
        .largest
        .map_or(String::new(), |largest| format!(", the largest {}", units::grouped(largest)));
    let times = match (groups.episodes(), groups.dispersion) {
        (Some(found), _) => format!(
            "They come in episodes (p = {:.1e}, variance / mean {:.1}): the bound does not hold",
            found.p, found.index
        ),
        (None, Some(steady)) if groups.count >= LateGroups::TESTED_MIN => {
            format!("Their times fit a steady rate (p = {:.2})", steady.p)
        }
        _ => "They are too few to test whether they come at a steady rate".into(),
    };
    format!("{GROUP}; they hold {mean:.1} on average{largest}. {times}; {unseen}.")
}

/// A rate per hour that its text does not raise.
fn at_least(rate: f64) -> String {
    match rate {
        r if r >= 1.0 => format!("{}/h", units::grouped(r as u64)),
        r => units::per_hour((r * 1000.0).floor() / 1000.0),
    }
}

/// A time that its text does not shorten: in hours from a day on, in minutes from an hour on.
fn whole(ns: u64) -> u64 {
    const SECOND_NS: u64 = 1_000_000_000;
    let unit = match ns / SECOND_NS {
        86_400.. => 3600,
        3600.. => 60,
        _ => 1,
    };
    ns.div_ceil(unit * SECOND_NS) * unit * SECOND_NS
}

/// Groups held against the rate asked for.
#[derive(Clone, Copy)]
pub(super) struct LateRate {
    count: u64,
    confidence: f64,
    requested_per_hour: f64,
    /// Time under load, in which groups must be few.
    exposure_h: f64,
    /// All the time in which they were counted.
    covered_h: f64,
    /// Groups that are surely apart; in episodes as many as those are worth.
    apart: u64,
    /// How many of them make one of those.
    worth: f64,
    in_episodes: bool,
}

impl LateRate {
    pub(super) fn of(run: &Run, groups: &LateGroups, exposure_ns: u64) -> Self {
        let requirement = &run.options.requirement;
        let episodes = groups.episodes();
        let worth = episodes.map_or(1.0, |found| found.index);
        // One is at least one.
        let apart = (groups.at_least as f64 / worth) as u64;
        Self {
            count: groups.count,
            confidence: f64::from(requirement.confidence_ppm) / 1e6,
            requested_per_hour: requirement.rate_per_1000h as f64 / 1000.0,
            exposure_h: exposure_ns as f64 / HOUR_NS,
            covered_h: covered_ns(run) as f64 / HOUR_NS,
            apart: apart.max(groups.at_least.min(1)),
            worth,
            in_episodes: episodes.is_some(),
        }
    }

    /// `None`: nothing was covered.
    pub(super) fn upper_per_hour(&self) -> Option<f64> {
        let expected = binomial::accepted_from(self.count, self.confidence);
        (self.exposure_h > 0.0).then(|| expected / self.exposure_h)
    }

    pub(super) fn lower_per_hour(&self) -> Option<f64> {
        let expected = binomial::refused_within(self.apart, self.confidence);
        (self.covered_h > 0.0).then(|| expected * self.worth / self.covered_h)
    }

    /// Whether the rate is shown to be above the one asked for.
    fn is_above(&self) -> bool {
        self.lower_per_hour().is_none_or(|lower| lower > self.requested_per_hour)
    }

    /// How much longer to measure without a further group; 0 when it is enough, `None` when more of
    /// the same does not help: the rate is above, or they come in episodes.
    pub(super) fn further_ns(&self) -> Option<u64> {
        if self.in_episodes || self.count > 0 && self.is_above() {
            return None;
        }
        let wanted_h =
            binomial::accepted_from(self.count, self.confidence) / self.requested_per_hour;
        Some(((wanted_h - self.exposure_h) * HOUR_NS).max(0.0).ceil() as u64)
    }
}

// Class 95: fewer than one wake-up in twenty is late.

/// Share of late wake-ups that is allowed.
const ALLOWED: f64 = 0.05;

/// Steps of a quarter in which longer runs are tried: up to 650 000 times as long.
const STEPS_MAX: i32 = 60;

impl VerdictCase<'_> {
    pub(super) fn ninety_five(&self) -> JudgedCase {
        if let Some(nothing) = self.nothing_covered().filter(|_| self.basis.late == 0) {
            return nothing;
        }
        let shares = shares(self.run);
        if share_lower(&shares, self.confidence()) > ALLOWED {
            return self.refused();
        }
        let sentence = self.of_shares(&shares);
        if let Some(step) = self.often_late_while_idle() {
            return (VerdictAnswer::NotProven, sentence, vec![step]);
        }
        match self.basis.further_ns {
            Some(0) if self.weak.is_empty() => (
                VerdictAnswer::Accepted,
                format!("meets 95 % real-time: {sentence}"),
                vec![self.undetected_episodes()],
            ),
            Some(further_ns) if further_ns > 0 => {
                let step = format!(
                    "If it goes on like this, about {} more would prove it; that is an estimate.",
                    units::duration(further_ns)
                );
                (VerdictAnswer::NotProven, sentence, vec![step])
            }
            Some(_) => (VerdictAnswer::NotProven, sentence, Vec::new()),
            None => {
                let step = match shares.iter().any(LateShares::is_short) {
                    true => "Measure for a minute under load, or longer.",
                    false => {
                        "It is too close to 5 %, or above: more of the same does not prove it. \
                         See what makes them late, or raise the budget."
                    }
                };
                (VerdictAnswer::NotProven, sentence, vec![step.into()])
            }
        }
    }

    /// What was counted, and the bound, or why there is none.
    fn of_shares(&self, shares: &[LateShares]) -> String {
        let sum = |of: &dyn Fn(&LateShares) -> u64| units::grouped(shares.iter().map(of).sum());
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
            None if shares.iter().any(LateShares::is_short) => {
                "a bound on the share takes a minute of load, at least".into()
            }
            None => "latencies stay high or low for too long to bound the share by this run".into(),
        };
        format!("{counted}{}; {bound}", self.idle_text())
    }

    /// Late wake-ups without a load, which the bound does not cover.
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
    fn undetected_episodes(&self) -> String {
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
pub(super) fn further_ns(shares: &[LateShares], exposure_ns: u64, confidence: f64) -> Option<u64> {
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
