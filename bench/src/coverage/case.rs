//! One process under one claim, how often what is counted happens, and what is promised of it.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is promised of a share of experiments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Promise {
    /// A wrong answer: at most this share.
    AtMost(f64),
    /// A right answer where an honest one can be had: at least this share.
    AtLeast(f64),
    /// Nothing: what the run holds cannot tell, and the text says this condition.
    Unless(&'static str),
}

/// One process under one claim.
pub(super) struct Case {
    /// What is said, e.g. `class 95 accepts at a true share of 5 %`.
    pub(super) claim: &'static str,
    /// What the machine does.
    pub(super) process: String,
    pub(super) promise: Promise,
    /// Experiments for the page.
    pub(super) runs: u64,
    /// Experiments for the test: so many that it takes well below a second, or none.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the test"))]
    pub(super) quick: u64,
    /// Whether what is counted happened in the experiment with this seed.
    pub(super) happened: Box<dyn Fn(u64) -> bool + Sync>,
}

impl Case {
    /// How many of so many experiments it happened in; seeds 1, 2, ...
    pub(super) fn count(&self, runs: u64) -> u64 {
        let (next, happened) = (AtomicU64::new(0), AtomicU64::new(0));
        let work = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed) + 1;
                if seed > runs {
                    break;
                }
                happened.fetch_add(u64::from((self.happened)(seed)), Ordering::Relaxed);
            }
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        happened.into_inner()
    }

    /// Whether a count keeps the promise, within three standard errors of the simulation.
    pub(super) fn keeps(&self, count: u64, runs: u64) -> bool {
        let share = count as f64 / runs as f64;
        let error = |p: f64| 3.0 * (p * (1.0 - p) / runs as f64).sqrt();
        match self.promise {
            Promise::AtMost(p) => share <= p + error(p),
            Promise::AtLeast(p) => share >= p - error(p),
            Promise::Unless(_) => true,
        }
    }
}
