//! How the time that is given is shared: slices before, pairs for each knob, slices after.

use rtproof_judge::units;
use rtproof_stats::{
    paired::{self, PAIRS},
    screening::FACTORS_MAX,
};

use crate::experiment::{
    analyse::LEVEL,
    conduct::{LEAD_NS, SLOT_NS},
};

pub(crate) const SLICE_MIN_NS: u64 = 500_000_000;
/// Longest slice: what drifts slower than that is in both slices of a pair.
const SLICE_MAX_NS: u64 = 60_000_000_000;
/// Fewest wake-ups of a slice: p99.9 of fewer is their maximum.
const WAKE_UPS_MIN: u64 = 1000;
/// Time after a change before it is measured.
pub(crate) const SETTLE_NS: u64 = 100_000_000;
/// What a change, settling and waiting for the next slot take, as a rule and a half.
const OVERHEAD_NS: u64 = SETTLE_NS + SLOT_NS + SLOT_NS / 2;
/// Slices before anything is changed.
pub(crate) const BEFORE: u32 = 8;
/// Slices with what is made once, and with what was kept.
pub(crate) const ONCE: u32 = 4;

/// Shares of the time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// Length of a slice, whole slots.
    pub(crate) slice_ns: u64,
    /// Pairs for each knob.
    pub(crate) pairs: usize,
    /// Knobs (of those that can be toggled) that are tried: the first so many.
    pub(crate) toggled: usize,
    /// Whether all are tried at once.
    pub(crate) mirrored: bool,
    /// Knobs of those that can be tried once that are: the first so many.
    pub(crate) once: usize,
    /// What all of it takes.
    pub(crate) needs_ns: u64,
}

impl Shares {
    fn slices_ns(&self, n: u64) -> u64 {
        n * (self.slice_ns + OVERHEAD_NS)
    }

    /// The same with what it takes.
    fn counted(mut self) -> Self {
        let pairs = if self.mirrored { self.pairs } else { self.pairs * self.toggled } as u64;
        let switched = 2 * pairs + u64::from(ONCE) * (self.once as u64 + 1);
        let before_ns = u64::from(BEFORE) * (self.slice_ns + SLOT_NS);
        self.needs_ns = LEAD_NS + before_ns + self.slices_ns(switched);
        self
    }
}

/// Shares `total_ns` between `toggled` and `once` knobs. `None`: too short for the shortest slices
/// of one knob; then [`shortest_ns`] tells what is needed.
pub(crate) fn share(
    total_ns: u64,
    toggled: usize,
    once: usize,
    cpus: usize,
    period_ns: u64,
) -> Option<Shares> {
    let least_ns = least_slice_ns(cpus, period_ns);
    let shares = |toggled: usize, pairs, mirrored, once| {
        let fits = |slots: u64| {
            let slice_ns = least_ns + slots * SLOT_NS;
            let shares = Shares { slice_ns, pairs, toggled, mirrored, once, needs_ns: 0 }.counted();
            (shares.needs_ns <= total_ns).then_some(shares)
        };
        let most = SLICE_MAX_NS.saturating_sub(least_ns) / SLOT_NS;
        // The longest slices that fit.
        let (mut low, mut high) = (0, most + 1);
        fits(0)?;
        while high - low > 1 {
            let mid = u64::midpoint(low, high);
            if fits(mid).is_some() { low = mid } else { high = mid }
        }
        fits(low)
    };
    // All knobs one by one, with fewer pairs before fewer knobs; all at once where that does not
    // fit; fewer at last.
    for once in (0..=once).rev() {
        for pairs in (pairs_least(toggled)..=PAIRS).rev() {
            if let Some(found) = shares(toggled, pairs, false, once) {
                return Some(found);
            }
        }
        let many = toggled.min(FACTORS_MAX);
        let at_once = paired::mirrored_pairs(many).filter(|_| many > 1);
        if let Some(found) = at_once.and_then(|pairs| shares(many, pairs, true, once)) {
            return Some(found);
        }
    }
    (1..toggled).rev().find_map(|toggled| shares(toggled, pairs_least(toggled), false, 0))
}

/// Pairs below which nothing could be decided of so many knobs, whatever they do, and one to spare:
/// what disturbs a slice costs a pair.
fn pairs_least(toggled: usize) -> usize {
    (paired::pairs_least(toggled, LEVEL) + 1).min(PAIRS)
}

fn least_slice_ns(cpus: usize, period_ns: u64) -> u64 {
    let wake_ups_ns = WAKE_UPS_MIN.div_ceil(cpus.max(1) as u64).saturating_mul(period_ns);
    SLICE_MIN_NS.max(wake_ups_ns).div_ceil(SLOT_NS).saturating_mul(SLOT_NS)
}

/// What trying one knob takes at least, and trying all of them one by one.
pub(crate) fn shortest_ns(toggled: usize, once: usize, cpus: usize, period_ns: u64) -> [u64; 2] {
    let slice_ns = least_slice_ns(cpus, period_ns);
    [(toggled.min(1), once.min(usize::from(toggled == 0))), (toggled, once)].map(
        |(toggled, once)| {
            let pairs = pairs_least(toggled);
            Shares { slice_ns, pairs, toggled, mirrored: false, once, needs_ns: 0 }
                .counted()
                .needs_ns
        },
    )
}

/// What is going to happen, before it does.
pub(crate) fn sentence(shares: &Shares) -> String {
    let knobs = |n: usize| if n == 1 { "1 knob".into() } else { format!("{n} knobs") };
    let slice = units::duration(shares.slice_ns);
    let mut text = match (shares.toggled, shares.mirrored) {
        (0, _) => String::new(),
        (n, false) => {
            format!(
                "{}: {} pairs of slices of {slice} each, on and off in random order",
                knobs(n),
                shares.pairs
            )
        }
        (n, true) => format!(
            "{} at once: {} pairs of slices of {slice}, some on in one and the others in the other",
            knobs(n),
            shares.pairs
        ),
    };
    if shares.once > 0 {
        let joint = if text.is_empty() { "" } else { "; " };
        text += &format!("{joint}{} before and after, once", knobs(shares.once));
    }
    format!("{text}. It takes {}.", units::duration(shares.needs_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;
    const MS: u64 = 1_000_000;

    #[test]
    fn a_minute() {
        let of = |toggled, once| share(60 * S, toggled, once, 2, MS).expect("shares");
        let one = of(1, 0);
        assert_eq!((one.pairs, one.mirrored, one.toggled), (12, false, 1));
        assert!(one.slice_ns > 1200 * MS && one.needs_ns <= 60 * S, "{one:?}");
        let three = of(3, 0);
        assert!(!three.mirrored && three.toggled == 3 && three.pairs >= 9, "{three:?}");
        let many = of(11, 0);
        assert_eq!((many.pairs, many.mirrored, many.toggled), (12, true, 11));
        assert!(many.slice_ns > S, "{many:?}");
        let more = of(30, 2);
        assert_eq!((more.pairs, more.mirrored, more.toggled), (20, true, 19));
        let none = of(0, 2);
        assert_eq!((none.toggled, none.once), (0, 2));
    }

    #[test]
    fn every_slice_is_long_enough_and_all_fits() {
        for seconds in [15, 20, 40, 60, 300, 3600, 86_400] {
            for (toggled, once) in [(0, 1), (1, 0), (2, 3), (5, 0), (12, 4), (40, 9)] {
                let Some(shares) = share(seconds * S, toggled, once, 2, MS) else { continue };
                assert!(shares.needs_ns <= seconds * S, "{shares:?}");
                assert!(shares.slice_ns >= SLICE_MIN_NS && shares.slice_ns <= SLICE_MAX_NS);
                assert_eq!(shares.slice_ns % SLOT_NS, 0);
                let least = paired::pairs_least(shares.toggled, LEVEL);
                assert!(shares.toggled == 0 || shares.pairs >= least, "{shares:?}");
            }
        }
        // p99.9 of one CPU at 10 ms takes ten seconds.
        let slow = share(3600 * S, 1, 0, 1, 10 * MS).expect("shares");
        assert!(slow.slice_ns >= 10 * S);
    }

    #[test]
    fn too_short_is_said() {
        assert_eq!(share(5 * S, 1, 0, 2, MS), None);
        let [one, all] = shortest_ns(3, 0, 2, MS);
        assert!(share(one, 3, 0, 2, MS).is_some() && share(one - SLOT_NS, 3, 0, 2, MS).is_none());
        assert!(all > 2 * one);
    }
}
