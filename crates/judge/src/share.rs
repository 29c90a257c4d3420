//! The share of late wake-ups and its bounds, with what dependent wake-ups are worth.

use rtproof_record::{
    Run,
    options::Phase,
    run::{Second, Thread},
};
use rtproof_stats::{binomial, cluster};

/// Wake-ups of a thread in independent ones, as far as being late goes.
pub(crate) fn n_eff(run: &Run, thread: &Thread) -> u64 {
    Shares::of(run, thread).n_eff
}

/// Share of independent ones among the largest samples of a thread.
pub(crate) fn extremal_index(run: &Run, thread: &Thread) -> f64 {
    cluster::extremal_index(&thread.top, run.options.period_ns)
}

/// Late wake-ups of a thread in the phases that had a load, or in all when none had one.
pub(crate) struct Shares {
    pub(crate) late: u64,
    pub(crate) n: u64,
    n_eff: u64,
}

impl Shares {
    pub(crate) fn of(run: &Run, thread: &Thread) -> Self {
        let loaded: Vec<&Phase> =
            run.options.phases.iter().filter(|phase| !phase.loads.is_empty()).collect();
        let inside = |second: &&Second| {
            let within =
                |phase: &&Phase| second.from_ns >= phase.from_ns && second.to_ns <= phase.to_ns;
            loaded.is_empty() || loaded.iter().any(within)
        };
        let blocks = thread
            .seconds
            .iter()
            .filter(inside)
            .map(|second| (second.totals.late(), second.totals.accounted()));
        let (late, n) = blocks.clone().fold((0, 0), |(late, n), (k, m)| (late + k, n + m));
        let n_eff = cluster::design_n_eff(blocks)
            .unwrap_or_else(|| (n as f64 * extremal_index(run, thread)) as u64);
        Self { late, n, n_eff: n_eff.clamp(u64::from(n > 0), n.max(1)) }
    }

    /// Upper and lower bound on the share; nothing measured bounds nothing.
    pub(crate) fn bounds(&self, confidence: f64, times: f64) -> (f64, f64) {
        let share = self.late as f64 / self.n.max(1) as f64;
        let n = (self.n_eff as f64 * times) as u64;
        let k = ((share * n as f64).ceil() as u64).min(n);
        (binomial::upper_bound(k, n, confidence), binomial::lower_bound(k, n, confidence))
    }
}

/// Upper and lower bound on the share of late wake-ups, of the CPU that is worst off.
pub(crate) fn share_bounds(run: &Run, confidence: f64) -> (f64, f64) {
    let bounds = run.threads.iter().map(|thread| Shares::of(run, thread).bounds(confidence, 1.0));
    bounds.fold((0.0, 0.0), |(u, l), (upper, lower)| (f64::max(u, upper), f64::max(l, lower)))
}
