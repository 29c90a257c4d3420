//! How an experiment is laid out: slices, pairs, what it takes, and which difference it can see.

use rtproof_judge::units;
use rtproof_stats::{
    paired::{self, Margin, PAIRS_MAX, Spread},
    screening::{self, FACTORS_MAX, Kind},
};

use super::{
    analyse::{LEVEL, MARGIN},
    conduct::{LEAD_NS, SLOT_NS},
};
use crate::usage::usage;

/// Slices of a pilot.
pub const PILOT: u32 = 8;
/// Longest time after a change that is not measured.
const SETTLE_MAX_NS: u64 = 5_000_000_000;
/// Fewest wake-ups of a slice: p99.9 of fewer is their maximum.
const WAKE_UPS_MIN: u64 = 1000;

/// Time after a change that is not measured before slices of some length.
pub fn settle_ns(slice_ns: u64) -> u64 {
    (slice_ns / 12).clamp(SLOT_NS, SETTLE_MAX_NS).next_multiple_of(SLOT_NS)
}

/// Layout of an experiment: knobs, pairs and the length of its slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    pub knobs: usize,
    /// Pairs of slices for each knob.
    pub pairs: usize,
    /// Length of a slice, whole slots.
    pub slice_ns: u64,
    /// Time after a change that is not measured.
    pub settle_ns: u64,
    /// One knob after the other, without a screening.
    pub one_by_one: bool,
}

impl Setup {
    /// Checks a request.
    ///
    /// # Errors
    /// Usage: too many knobs, pairs that decide nothing, slices too short for p99.9.
    pub fn new(
        knobs: usize,
        pairs: usize,
        slice_ns: u64,
        one_by_one: bool,
        wake_ups_per_s: f64,
    ) -> anyhow::Result<Self> {
        if knobs > FACTORS_MAX && !one_by_one {
            return Err(usage(format!(
                "{knobs} knobs: {FACTORS_MAX} at most are tried at once; name those that you \
                 suspect, or give --one-by-one"
            )));
        }
        // What stands out of a screening is not known yet: one knob at least.
        let least = paired::pairs_least(if one_by_one { knobs } else { 1 }, LEVEL);
        if !(least..=PAIRS_MAX).contains(&pairs) {
            return Err(usage(format!(
                "--pairs {pairs}: from {least}, below which nothing can be decided, to {PAIRS_MAX}"
            )));
        }
        let slice_ns = slice_ns.next_multiple_of(SLOT_NS);
        if slice_ns as f64 / 1e9 * wake_ups_per_s < WAKE_UPS_MIN as f64 {
            let least_s = WAKE_UPS_MIN as f64 / wake_ups_per_s;
            return Err(usage(format!(
                "--slice {}: p99.9 takes {WAKE_UPS_MIN} wake-ups, that is {} here",
                units::duration(slice_ns),
                units::duration((least_s * 1e9).ceil() as u64)
            )));
        }
        Ok(Self { knobs, pairs, slice_ns, settle_ns: settle_ns(slice_ns), one_by_one })
    }

    /// The design of the screening; `None`: there is none.
    pub fn design(&self, seed: u64) -> Option<screening::Design> {
        screening::design(seed, self.knobs)
            .filter(|design| design.kind != Kind::Single && !self.one_by_one)
    }

    /// Pairs of the screening.
    fn screened(&self) -> usize {
        self.design(0).map_or(0, |design| design.rows.len())
    }

    /// Pairs that follow where so many knobs stand out.
    fn confirmed(&self, standing_out: usize) -> usize {
        match self.screened() {
            0 => self.pairs * self.knobs,
            _ => self.pairs * (standing_out + usize::from(standing_out > 1)),
        }
    }

    /// What the slices take where so many knobs stand out.
    pub fn needs_ns(&self, standing_out: usize) -> u64 {
        let slices = 2 * (self.screened() + self.confirmed(standing_out)) as u64;
        // A change, and waiting for the next slot and for the last slots of a slice.
        let each_ns = self.slice_ns + self.settle_ns + SLOT_NS + SLOT_NS / 2;
        LEAD_NS + slices * each_ns
    }

    /// What the pilot takes.
    pub fn pilot_ns(&self) -> u64 {
        LEAD_NS + u64::from(PILOT) * (self.slice_ns + SLOT_NS)
    }

    /// Time after which a run that does not come to its end is ended.
    pub fn most_ns(&self) -> u64 {
        let needs_ns = self.needs_ns(self.knobs);
        (needs_ns + needs_ns / 2 + 30_000_000_000).next_multiple_of(1_000_000_000)
    }

    /// Knobs that are decided in the end where so many stand out, and all of them together.
    pub fn decided(&self, standing_out: usize) -> usize {
        let arms = match self.screened() {
            0 => self.knobs,
            _ => standing_out + usize::from(standing_out > 1),
        };
        arms.max(1)
    }

    /// Smallest change of p99.9 that is shown to be larger than the margin four times in five, as a
    /// share downwards. `None`: none.
    pub fn detectable(&self, spread: Spread, standing_out: usize) -> Option<f64> {
        let margin = Margin::of_share(MARGIN).mirrored();
        paired::detectable(spread, self.pairs, self.decided(standing_out), LEVEL, margin)
            .map(|least| -f64::exp_m1(-least))
    }

    /// What is going to happen.
    pub fn sentence(&self, seed: u64) -> String {
        let (slice, pairs) = (units::duration(self.slice_ns), self.pairs);
        let knobs = units::count(self.knobs, "knob");
        let needs = |n| units::duration(self.needs_ns(n));
        match self.design(seed) {
            None => format!(
                "{knobs}: {pairs} pairs of slices of {slice} each, on and off in random order. It \
                 takes {}.",
                needs(self.knobs)
            ),
            Some(design) => format!(
                "{knobs} at once in {} pairs of slices of {slice} ({}, in random order), then \
                 {pairs} pairs for each that stands out. It takes {} where none does, {} where two \
                 do, {} at most.",
                design.rows.len(),
                match design.kind {
                    Kind::Factorial => "every combination and its mirror image",
                    _ => "Plackett and Burman's design folded over",
                },
                needs(0),
                needs(2.min(self.knobs)),
                needs(self.knobs)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn setup(knobs: usize, pairs: usize, slice_ns: u64) -> anyhow::Result<Setup> {
        Setup::new(knobs, pairs, slice_ns, false, 2000.0)
    }

    #[test]
    fn what_it_takes_is_said() {
        let one = setup(1, 12, 60 * S).expect("a set-up");
        assert_eq!((one.settle_ns, one.design(1)), (5 * S, None));
        // 24 slices of a minute with five seconds each.
        assert!((26 * 60 * S..27 * 60 * S).contains(&one.needs_ns(1)), "{}", one.needs_ns(1));
        assert!(one.sentence(1).contains("12 pairs of slices of 1 min"), "{}", one.sentence(1));
        let many = setup(11, 12, 2 * S).expect("a set-up");
        assert_eq!((many.decided(0), many.decided(1), many.decided(3)), (1, 1, 4));
        assert!(many.needs_ns(0) < many.needs_ns(1) && many.most_ns() > many.needs_ns(11));
        let text = many.sentence(1);
        assert!(
            text.contains("11 knobs at once in 12 pairs") && text.contains("Plackett"),
            "{text}"
        );
        let apart = Setup::new(3, 10, 2 * S, true, 2000.0).expect("a set-up");
        assert_eq!((apart.design(1), apart.decided(3)), (None, 3));
    }

    #[test]
    fn more_pairs_and_fewer_questions_see_more() {
        let of = |pairs, standing_out| {
            setup(11, pairs, 2 * S)
                .expect("a set-up")
                .detectable(Spread::assumed(0.1), standing_out)
        };
        assert!(of(20, 1) < of(12, 1) && of(12, 1) < of(12, 4));
        assert_eq!(of(6, 3), None, "six pairs decide on one knob, not on four");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |knobs, pairs, slice_ns| {
            setup(knobs, pairs, slice_ns).expect_err("refused").to_string()
        };
        assert!(refused(20, 12, S).contains("19 at most"));
        assert!(refused(1, 5, S).contains("--pairs 5: from 6"));
        assert!(refused(1, 12, S / 5).contains("1000 wake-ups, that is 0.5 s"));
    }
}
