//! A run with what it is judged by, and what all classes say of it.

use rtproof_model::verdict::{Answer, Basis, Extrapolation};
use rtproof_record::{Run, options::Phase, run::Thread};

use crate::{units, weakness::loads_ran};

pub(super) type Judged = (Answer, String, Vec<String>);

pub(super) struct Case<'a> {
    pub(super) run: &'a Run,
    pub(super) basis: &'a Basis,
    pub(super) budget_ns: u64,
    pub(super) weak: &'a [String],
    pub(super) tail: Option<&'a Extrapolation>,
}

impl Case<'_> {
    pub(super) fn confidence(&self) -> f64 {
        f64::from(self.run.options.requirement.confidence_ppm) / 1e6
    }

    pub(super) fn confidence_text(&self) -> String {
        units::confidence(self.run.options.requirement.confidence_ppm)
    }

    pub(super) fn load_text(&self) -> String {
        let loaded: Vec<_> =
            self.run.options.phases.iter().filter(|phase| !phase.loads.is_empty()).collect();
        match loaded.as_slice() {
            // A program of `rtproof run`: nobody started a load for it.
            [] if self.run.options.phases.is_empty() => "beside what else ran".into(),
            [] => "with no load".into(),
            phases => {
                let name = |phase: &&&Phase| match loads_ran(self.run, phase) {
                    true => phase.name.clone(),
                    false => format!("{} (not all of which ran)", phase.name),
                };
                let names: Vec<_> = phases.iter().map(|phase| name(&phase)).collect();
                format!("under load {}", names.join(", "))
            }
        }
    }

    /// The worst wake-up, how much of the budget it took, and where it was.
    pub(super) fn worst_text(&self) -> String {
        self.basis.worst.as_ref().map_or(String::new(), |w| {
            let (worst, of) = (units::ns(w.latency_ns), of_budget(w.latency_ns, self.budget_ns));
            format!(" (worst {worst}{of}, CPU {}, {})", w.cpu, w.phase)
        })
    }

    pub(super) fn refused(&self) -> Judged {
        let b = self.basis;
        let bound = b.late_share_upper.map_or(String::new(), |upper| {
            format!(
                "; at {} confidence fewer than {} of wake-ups are late",
                self.confidence_text(),
                units::probability(upper)
            )
        });
        let groups = units::count(b.late_clusters, "group");
        let groups = format!("The late ones came in {groups}{bound}.");
        self.refused_for(groups)
    }

    /// Refused, for a reason.
    pub(super) fn refused_for(&self, reason: String) -> Judged {
        let (b, worst) = (self.basis, self.worst_text());
        let sentence = format!(
            "for a budget of {}: {} of {} wake-ups were later{worst}",
            units::ns(self.budget_ns),
            units::grouped(b.late),
            units::grouped(b.scheduled),
        );
        if let Some(got) = self.lesser_policy() {
            let sentence =
                format!("{sentence}, with {got}, which says nothing of the one asked for");
            return (Answer::NotProven, sentence, vec![reason]);
        }
        (Answer::Refused, sentence, vec![reason])
    }

    /// The policy in force, where it is less than what was asked for.
    pub(super) fn lesser_policy(&self) -> Option<String> {
        let options = &self.run.options;
        let lesser = |thread: &&Thread| {
            let is_lesser = options.policy.is_real_time() && !thread.info.policy.is_real_time();
            is_lesser || thread.info.priority < options.priority
        };
        let info = &self.run.threads.iter().find(lesser)?.info;
        Some(match info.priority {
            0 => "no real-time priority".into(),
            priority => format!("priority {priority}"),
        })
    }

    /// The answer where the wake-ups cover no time: a single one is a moment.
    pub(super) fn nothing_covered(&self) -> Option<Judged> {
        let (b, budget) = (self.basis, units::ns(self.budget_ns));
        if b.exposure_ns > 0 && b.scheduled > 0 {
            return None;
        }
        let few = b.scheduled > 0 && covered_ns(self.run) == 0;
        let (what, steps) = if few {
            let wake_ups = units::count(b.scheduled, "wake-up");
            let cover = if b.scheduled == 1 { "covers" } else { "cover" };
            let step = "Measure for several periods: raise --for or lower --period.".into();
            (format!("{wake_ups} {cover} no time"), vec![step])
        } else {
            ("nothing was measured under the load".into(), Vec::new())
        };
        Some((Answer::NotProven, format!("for a budget of {budget}: {what}"), steps))
    }

    pub(super) fn safe(&self) -> Judged {
        if self.basis.late > 0 {
            return self.refused();
        }
        let sentence = "for life-critical use: measurement cannot certify it".to_owned();
        let step =
            "It needs an analysis of the worst case; what was measured only bounds the rate \
                    of late wake-ups under this load."
                .to_owned();
        (Answer::NotProven, sentence, vec![step])
    }
}

/// How much of the budget a latency takes; rounded up, so that nothing late is 100 %.
fn of_budget(latency_ns: u64, budget_ns: u64) -> String {
    let (latency, budget) = (u128::from(latency_ns), u128::from(budget_ns));
    match (latency * 100).div_ceil(budget.max(1)) {
        _ if budget_ns == 0 => String::new(),
        percent @ ..1000 => format!(", {percent} % of the budget"),
        _ => format!(", {} times the budget", units::grouped((latency / budget) as u64)),
    }
}

/// Time that every thread covered. Of a program of `rtproof run` the time in which any of its
/// threads was woken: one that waits for its end covers nothing, and all are counted over this.
pub(super) fn covered_ns(run: &Run) -> u64 {
    if run.options.phases.is_empty() {
        let ends = || run.threads.iter().map(Thread::covered);
        let from_ns = ends().map(|(from_ns, _)| from_ns).min().unwrap_or(0);
        return ends().map(|(_, to_ns)| to_ns).max().unwrap_or(0).saturating_sub(from_ns);
    }
    let covered = |thread: &Thread| {
        let (from_ns, to_ns) = thread.covered();
        to_ns - from_ns
    };
    run.threads.iter().map(covered).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_is_said_as_a_part_of_the_budget() {
        assert_eq!(of_budget(47_000, 100_000), ", 47 % of the budget");
        assert_eq!(of_budget(1, 100_000), ", 1 % of the budget");
        assert_eq!(of_budget(100_000, 100_000), ", 100 % of the budget");
        assert_eq!(of_budget(100_001, 100_000), ", 101 % of the budget", "late, if only just");
        assert_eq!(of_budget(1_250_000, 100_000), ", 12 times the budget");
        assert_eq!(of_budget(7, 0), "");
        assert!(of_budget(u64::MAX, 1).ends_with(" times the budget"));
    }
}
