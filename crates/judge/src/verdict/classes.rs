//! The rules of class 95 and of class 100.

use std::fmt;

use rtproof_model::verdict::{LateSeconds, Level, VerdictAnswer};
use rtproof_record::{BudgetClass, Requirement, Run};
use rtproof_stats::{
    binomial,
    evidence::{self, Rate},
};

use super::{JudgedCase, VerdictCase, covered_ns};
use crate::late::{LateRows, LateTimes, largest, second_ns};
use crate::share::{ALLOWED, Shares};
use crate::{share, units};

const HOUR_NS: f64 = 3.6e12;

const DAY_NS: u64 = 86_400_000_000_000;

/// Refused by a count: so many times as many late seconds as the rate allows at 95 % (Markov's
/// inequality, whatever depends on what).
fn too_many(confidence: f64) -> f64 {
    1.0 / (1.0 - confidence)
}

/// Highest rate that class 100 judges, per hour: one second in ten, or one period in ten where
/// these are longer. Above, a rate is a share.
pub fn rate_max(period_ns: u64) -> f64 {
    360.0 * 1e9 / period_ns.max(1_000_000_000) as f64
}

/// What a run can prove at most, before it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Ahead {
    /// What is asked for, e.g. `3/day`.
    asked: String,
    /// Time that proves it, under load where there is one, if nothing is late.
    pub needed_ns: u64,
    exposure_ns: u64,
    /// Rate that late episodes are shown to be below, per hour; `None`: nothing is.
    pub proves_per_hour: Option<f64>,
}

impl Ahead {
    /// Says it, where the run is too short for what is asked for. `is_loaded`: whether a load runs
    /// in the time that counts.
    pub fn sentence(&self, is_loaded: bool) -> Option<String> {
        let loaded = if is_loaded { " under load" } else { "" };
        let at_most = self.proves_per_hour.map_or("nothing".into(), |per_hour| {
            format!("at most late episodes rarer than {}", units::rate_at_most(per_hour))
        });
        (self.exposure_ns < self.needed_ns).then(|| {
            format!(
                "{}{loaded} can prove {at_most}; {} takes {} without a late wake-up (--to-prove).",
                units::duration(self.exposure_ns),
                self.asked,
                units::duration(whole(self.needed_ns)),
            )
        })
    }
}

/// A rate that is so high that it is a share of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateTooHigh {
    per_hour: f64,
    pub most_per_hour: f64,
}

impl fmt::Display for RateTooHigh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (asked, most) = (units::rate(self.per_hour), units::rate(self.most_per_hour));
        write!(
            f,
            "--max-rate {asked}: above {most} a rate is a share of the time; ask for --class 95, \
             or for a lower rate"
        )
    }
}

/// What a run that measures for so long, under load where there is one, can prove; `None`: nothing
/// is asked that a time proves.
///
/// # Errors
/// A rate that is a share.
pub fn ahead(
    requirement: &Requirement,
    period_ns: u64,
    exposure_ns: u64,
) -> Result<Option<Ahead>, RateTooHigh> {
    let confidence = f64::from(requirement.confidence_ppm) / 1e6;
    let per_hour = requirement.rate_per_1000h as f64 / 1000.0;
    let most_per_hour = rate_max(period_ns);
    if requirement.budget_ns.is_none() {
        return Ok(None);
    }
    Ok(match requirement.class {
        BudgetClass::Soft | BudgetClass::Safe => None,
        BudgetClass::Hundred if per_hour > most_per_hour => {
            return Err(RateTooHigh { per_hour, most_per_hour });
        }
        BudgetClass::Hundred => {
            let none = binomial::accepted_from(0, confidence);
            let shown = none / (exposure_ns.max(1) as f64 / HOUR_NS);
            Some(Ahead {
                asked: units::rate(per_hour),
                needed_ns: (none / per_hour * HOUR_NS).ceil() as u64,
                exposure_ns,
                proves_per_hour: (shown <= most_per_hour).then_some(shown),
            })
        }
        BudgetClass::NinetyFive => Some(Ahead {
            asked: "class 95".into(),
            needed_ns: share::needed_ns(confidence, requirement.episode_ns),
            exposure_ns,
            proves_per_hour: None,
        }),
    })
}

/// What was counted of the late wake-ups of a run.
pub(super) struct Counted {
    pub(super) budget_ns: u64,
    pub(super) shares: Shares,
    times: LateTimes,
    seconds: u64,
    rate: Rate,
    rate_max: f64,
    /// Time under load, in which late episodes must be few.
    pub(super) exposure_ns: u64,
    /// All the time in which they were counted.
    covered_ns: u64,
}

impl Counted {
    pub(super) fn of(run: &Run, budget_ns: u64, exposure_ns: u64) -> Self {
        let requirement = &run.options.requirement;
        let covered_ns = covered_ns(run).max(exposure_ns);
        Self {
            budget_ns,
            shares: Shares::of(run),
            times: LateTimes::of(run, budget_ns),
            seconds: covered_ns.div_ceil(second_ns(run)),
            rate: Rate {
                per_hour: requirement.rate_per_1000h as f64 / 1000.0,
                confidence: f64::from(requirement.confidence_ppm) / 1e6,
            },
            rate_max: rate_max(second_ns(run)),
            exposure_ns,
            covered_ns,
        }
    }

    fn episodes(&self) -> u64 {
        self.times.episodes(self.rate.dead_ns())
    }

    /// Lowest rate that is shown, where nothing forbids one.
    fn proven(&self) -> Option<f64> {
        if self.shares.is_gated() || self.shares.is_above() {
            return None;
        }
        let episodes = |dead_ns| self.times.episodes(dead_ns);
        let confidence = self.rate.confidence;
        let rate = evidence::rate_shown(self.times.most(), self.exposure_ns, confidence, episodes)?;
        (rate.per_hour <= self.rate_max).then_some(rate.per_hour)
    }

    pub(super) fn late_seconds(&self, is_whole: bool) -> LateSeconds {
        LateSeconds {
            seconds: self.times.most(),
            seconds_least: self.times.least(),
            of: self.seconds,
            episodes: self.episodes(),
            episode_ns: self.rate.dead_ns(),
            proven_per_hour: if is_whole { self.proven() } else { None },
        }
    }

    /// Twenty times as many late seconds as allowed.
    fn has_too_many(&self) -> bool {
        let limit = too_many(self.rate.confidence) * self.rate.expected(self.covered_ns);
        self.times.least() as f64 >= limit.max(1.0)
    }

    /// Whether so many episodes in so little time show a higher rate.
    fn has_too_frequent(&self) -> bool {
        let episodes = self.times.episodes_least(self.rate.dead_ns());
        let within = binomial::refused_within(episodes, self.rate.confidence);
        episodes > 0 && self.rate.expected(self.covered_ns) <= within
    }

    fn is_above(&self) -> bool {
        self.has_too_many() || self.has_too_frequent() || self.shares.is_above()
    }

    /// Whether class 100 is met.
    fn is_shown(&self) -> bool {
        let (episodes, seconds) = (self.episodes(), self.times.most());
        self.rate.per_hour <= self.rate_max
            && self.rate.is_shown(episodes, seconds, self.exposure_ns)
            && !self.shares.is_gated()
            && !self.is_above()
    }

    /// Time under load that would prove class 100 without a further late second; `None`: no time
    /// does.
    pub(super) fn needed_ns(&self) -> Option<u64> {
        if self.rate.per_hour > self.rate_max || self.shares.is_gated() || self.is_above() {
            return None;
        }
        let expected = binomial::accepted_from(self.episodes(), self.rate.confidence);
        let expected = expected.max(self.times.most() as f64);
        Some((expected / self.rate.per_hour * HOUR_NS).ceil() as u64)
    }
}

/// Rates of the levels that are shown, per hour: from what a run of half an hour proves to what
/// takes days.
const RATES: [f64; 7] = [360.0, 60.0, 10.0, 3.0, 1.0, 3.0 / 24.0, 1.0 / 24.0];

/// What budget the run would have proven in class 100.
pub(super) fn levels(run: &Run, exposure_ns: u64) -> Vec<Level> {
    let second_ns = second_ns(run);
    let (largest, complete_ns) = largest(run, ALLOWED);
    let confidence = f64::from(run.options.requirement.confidence_ppm) / 1e6;
    let none = binomial::accepted_from(0, confidence);
    let of = |per_hour: f64| {
        let rate = Rate { per_hour, confidence };
        let level_ns = evidence::level(&largest, complete_ns, second_ns, exposure_ns, rate);
        Level { per_hour, level_ns, takes_ns: (none / per_hour * HOUR_NS).ceil() as u64 }
    };
    let rates = RATES.into_iter().filter(|&rate| rate <= rate_max(second_ns));
    if run.threads.is_empty() { Vec::new() } else { rates.map(of).collect() }
}

// Class 100: late episodes come less often than the rate asked for.

impl VerdictCase<'_> {
    pub(super) fn hundred(&self) -> JudgedCase {
        let (b, c) = (self.basis, &self.counted);
        if let Some(nothing) = self.nothing_covered().filter(|_| b.late == 0) {
            return nothing;
        }
        if b.late > 0 && (c.is_above() || self.lesser_policy().is_some()) {
            return self.refused(self.above());
        }
        let asked = units::rate(c.rate.per_hour);
        let claim = self.claim();
        if c.is_shown() && self.weak.is_empty() && b.further_ns == Some(0) {
            let sentence = format!(
                "{claim}; at {} confidence late episodes come less often than {asked}, if what \
                 makes wake-ups late comes at random{} and lasts {} or less",
                self.confidence_text(),
                self.time_of_day(),
                units::duration(c.rate.dead_ns()),
            );
            return (VerdictAnswer::Accepted, sentence, vec![self.seen()]);
        }
        let mut reasons = Vec::new();
        reasons.extend(self.gate());
        if c.rate.per_hour > c.rate_max {
            reasons.push(format!(
                "Above {} a rate is a share of the time: ask for --class 95, or for a lower \
                 --max-rate.",
                units::rate(c.rate_max)
            ));
        }
        reasons.extend(b.further_ns.filter(|&ns| ns > 0).map(|further_ns| self.step(further_ns)));
        reasons.extend(self.proven());
        reasons.push(self.seen());
        (VerdictAnswer::NotProven, format!("for late episodes below {asked}: {claim}"), reasons)
    }

    fn claim(&self) -> String {
        let b = self.basis;
        let idle = match covered_ns(self.run).saturating_sub(b.exposure_ns) {
            0 => String::new(),
            idle_ns => format!(" and {} idle", units::duration(idle_ns)),
        };
        let when = format!("in {} {}{idle}", units::duration(b.exposure_ns), self.load_text());
        let budget = units::ns(self.counted.budget_ns);
        let scheduled = units::grouped(b.scheduled);
        if b.late > 0 {
            return format!(
                "{} of {scheduled} wake-ups were later than {budget}{}, in {}, {when}",
                units::grouped(b.late),
                self.worst_text(),
                self.seconds_text(),
            );
        }
        let missed = match b.missed {
            0 => String::new(),
            missed => format!(" ({} of them missed)", units::grouped(missed)),
        };
        let worst = self.worst_text();
        format!("no wake-up of {scheduled}{missed} was later than {budget} {when}{worst}")
    }

    /// `9 late seconds`, with both ends where rows do not tell.
    fn seconds_text(&self) -> String {
        let what = if self.counted.rate_max < 360.0 { "late period" } else { "late second" };
        let (most, least) = (self.counted.times.most(), self.counted.times.least());
        match most == least {
            true => units::count(most, what),
            false => format!("{} to {}", units::grouped(least), units::count(most, what)),
        }
    }

    /// Why a machine is refused.
    fn above(&self) -> String {
        let c = &self.counted;
        let (asked, seconds) = (units::rate(c.rate.per_hour), self.seconds_text());
        let time = units::duration(c.covered_ns);
        match () {
            () if c.has_too_many() => format!(
                "{seconds} in {time}, at least {} times what {asked} allows: refused at {} \
                 confidence, whatever depends on what.",
                units::grouped(too_many(c.rate.confidence).round() as u64),
                self.confidence_text()
            ),
            () if c.has_too_frequent() => format!(
                "{} in {time}: at {} confidence they come more often than {asked}.",
                units::count(c.times.episodes_least(c.rate.dead_ns()), "late episode"),
                self.confidence_text(),
            ),
            () => self.share_above(),
        }
    }

    /// What to do where the time is too short.
    fn step(&self, further_ns: u64) -> String {
        let c = &self.counted;
        let asked = units::rate(c.rate.per_hour);
        let needed = units::duration(whole(c.exposure_ns.saturating_add(further_ns)));
        // A program lasts as long as it does.
        let option = if self.run.options.phases.is_empty() { "" } else { " (--for)" };
        let rest = format!(
            "{} more than this run{option}; or ask for less (--max-rate)",
            units::duration(whole(further_ns))
        );
        match (c.times.most(), c.episodes()) {
            (0, _) => {
                format!("{asked} takes {needed}{} without a late wake-up, {rest}.", self.loaded())
            }
            (most, _) if most as f64 > c.rate.expected(c.exposure_ns) => format!(
                "{}; {asked} allows {} in this time: it takes {needed} without a further one, \
                 {rest}.",
                self.seconds_text(),
                units::grouped(c.rate.expected(c.exposure_ns) as u64),
            ),
            (_, episodes) => format!(
                "{}; {asked} takes {needed} without a further one, {rest}.",
                units::count(episodes, "late episode"),
            ),
        }
    }

    /// The strongest that the run shows all the same.
    fn proven(&self) -> Option<String> {
        let per_hour = self.basis.late_seconds?.proven_per_hour?;
        let dead_ns = Rate { per_hour, confidence: 0.95 }.dead_ns();
        Some(format!(
            "Proven by this run: late episodes rarer than {} at {} confidence, if what makes \
             wake-ups late comes at random{} and lasts {} or less.",
            units::rate_at_most(per_hour),
            self.confidence_text(),
            self.time_of_day(),
            units::duration(dead_ns),
        ))
    }

    /// What a run of this length does not see.
    fn seen(&self) -> String {
        let unseen = format!(
            "Episodes rarer than one in {} can be unseen",
            units::duration(self.basis.exposure_ns / 3)
        );
        match self.counted.times.most() {
            0 => format!("{unseen}. How long one would last is not known: none was seen."),
            _ => format!(
                "{unseen}. An episode takes in the late seconds of {} from its first one on: {} in \
                 this run, of {}.",
                units::duration(self.counted.rate.dead_ns()),
                units::grouped(self.counted.episodes()),
                self.seconds_text(),
            ),
        }
    }

    /// What the time that counts is.
    fn loaded(&self) -> &'static str {
        let is_loaded = self.run.options.phases.iter().any(|phase| !phase.loads.is_empty());
        if is_loaded { " under load" } else { "" }
    }

    /// A machine may be another one at night.
    fn time_of_day(&self) -> &'static str {
        if self.basis.exposure_ns < DAY_NS { ", at this time of the day," } else { "" }
    }

    /// The tenth of the run that keeps every class from accepting it.
    fn gate(&self) -> Option<String> {
        let held = self.basis.held.filter(|held| held.worst_tenth >= ALLOWED)?;
        Some(format!(
            "In one tenth of the run ({} to {}) {} of the wake-ups of a CPU were late: no class \
             accepts 5 % or more.",
            units::duration(held.worst_tenth_from_ns),
            units::duration(held.worst_tenth_to_ns),
            units::probability(held.worst_tenth),
        ))
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
    ns.div_ceil(unit * SECOND_NS).saturating_mul(unit * SECOND_NS)
}

// Class 95: fewer than one wake-up in twenty is late.

impl VerdictCase<'_> {
    pub(super) fn ninety_five(&self) -> JudgedCase {
        let (b, shares) = (self.basis, &self.counted.shares);
        if let Some(nothing) = self.nothing_covered().filter(|_| b.late == 0) {
            return nothing;
        }
        if shares.is_above() {
            return self.refused(self.share_above());
        }
        let (counted, held) = (self.of_shares(), b.held.unwrap_or_default());
        if let Some(step) = self.often_late_while_idle() {
            return (VerdictAnswer::NotProven, counted, vec![step]);
        }
        if shares.is_below() && self.weak.is_empty() {
            let sentence = format!(
                "{counted}; at {} confidence fewer than 5 % are, if late ones come in stretches of \
                 about {} or less{}",
                self.confidence_text(),
                units::duration(held.holds_for_ns),
                self.time_of_day().trim_end_matches(','),
            );
            return (VerdictAnswer::Accepted, sentence, Vec::new());
        }
        let mut reasons: Vec<String> = self.gate().into_iter().collect();
        if shares.is_too_dependent() {
            reasons.push(format!(
                "Late wake-ups come in stretches too long for this run to tell: tenths of it \
                 differ {:.1} times as much as its blocks explain.",
                held.memory_ratio
            ));
        }
        match b.further_ns {
            Some(further_ns) if further_ns > 0 => reasons.push(format!(
                "It takes about {}{} if it goes on like this, {} more than this run.",
                units::duration(whole(b.exposure_ns.saturating_add(further_ns))),
                self.loaded(),
                units::duration(whole(further_ns)),
            )),
            Some(_) => {}
            None if reasons.is_empty() => reasons.push(
                "It is too close to 5 %, or above: more of the same does not prove it. See what \
                 makes them late, or raise the budget."
                    .into(),
            ),
            None => reasons.push("See what makes them late, or raise the budget.".into()),
        }
        let sentence = match shares.largest() {
            share if share > ALLOWED => {
                format!("this run did not meet it: {} late; {counted}", units::probability(share))
            }
            _ => counted,
        };
        (VerdictAnswer::NotProven, sentence, reasons)
    }

    /// `0.5 % of 600 000 wake-ups were later than 100 µs under load cpu (worst tenth 1.1 %)`.
    fn of_shares(&self) -> String {
        let (late, n) = self.counted(&LateRows::of);
        let held = self.basis.held.unwrap_or_default();
        let share = match late {
            0 => "none".into(),
            late => units::probability(late as f64 / n.max(1) as f64),
        };
        let worst = match late {
            0 => String::new(),
            _ => format!(" (worst tenth of the run {})", units::probability(held.worst_tenth)),
        };
        let (idle, of) = self.counted(&LateRows::while_idle);
        let idle = match idle {
            0 => String::new(),
            _ => format!(", and {} of {} while idle", units::grouped(idle), units::grouped(of)),
        };
        format!(
            "{share} of {} wake-ups {} later than {} {}{worst}{idle}",
            units::grouped(n),
            if late == 0 { "was" } else { "were" },
            units::ns(self.counted.budget_ns),
            self.load_text(),
        )
    }

    /// Late wake-ups and all in some rows of all threads.
    fn counted<'b>(
        &'b self,
        rows: &dyn Fn(&'b Run, &'b rtproof_record::run::Thread) -> LateRows<'b>,
    ) -> (u64, u64) {
        let of = self.run.threads.iter().map(|thread| rows(self.run, thread));
        of.fold((0, 0), |(late, n), rows| (late + rows.late, n + rows.n))
    }

    fn share_above(&self) -> String {
        let held = self.basis.held.unwrap_or_default();
        format!(
            "{} of the wake-ups of a CPU were late: more than 5 % at {} confidence, if late ones \
             come in stretches of about {} or less.",
            units::probability(self.counted.shares.largest()),
            self.confidence_text(),
            units::duration(held.holds_for_ns),
        )
    }

    /// Where a CPU was late too often without a load: those that sleep wake up later.
    fn often_late_while_idle(&self) -> Option<String> {
        let of = |thread| (thread, LateRows::while_idle(self.run, thread));
        let idle = self.run.threads.iter().map(of);
        let (thread, rows) = idle.max_by(|a, b| a.1.share().total_cmp(&b.1.share()))?;
        (rows.share() > ALLOWED).then(|| {
            format!(
                "While idle, {} of {} wake-ups of CPU {} were late: CPUs that sleep wake up \
                 later. Look at the idle states; --load idle judges that state.",
                units::grouped(rows.late),
                units::grouped(rows.n),
                thread.info.cpu,
            )
        })
    }
}
