//! Which of several changes matter: all of them are tried at once, in few slices of time.
//!
//! The unit is the pair of slices, as in [`crate::paired`]: some changes are on in one slice, all
//! the others in the other one (the first slice's row folded over), in random order. What drifts is
//! in both slices of a pair; folding keeps what two changes do together out of what each does by
//! itself (Box and Hunter 1961). Up to four changes are tried in every combination, up to eleven
//! after Plackett and Burman (1946), up to nineteen after their larger design. A screening only
//! says what to look at: what stands out is confirmed with new pairs.

#[cfg(test)]
mod simulation;

use crate::paired::{self, Margin, PAIRS, Paired, plackett_burman, shuffle, t_quantile};

// Which changes are on in which slice.

/// Most changes that are tried in every combination.
const FACTORIAL_MAX: usize = 4;

/// Most changes of a design.
pub const FACTORS_MAX: usize = 19;

/// How changes share the slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DesignKind {
    /// One change, on and off.
    Single,
    /// Every combination of up to four.
    Factorial,
    /// A design of Plackett and Burman, folded over.
    PlackettBurman,
}

/// A design: one row for each pair of slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Design {
    pub kind: DesignKind,
    pub factors: usize,
    /// For each pair in order of time, the columns of its first slice: `true` is on. In the second
    /// slice each is the other way round. Columns beyond the changes belong to none: what they
    /// show is noise.
    pub rows: Vec<Vec<bool>>,
}

impl Design {
    /// Changes that are on in the two slices of a pair.
    pub fn slices(&self, pair: usize) -> Option<[Vec<usize>; 2]> {
        let row = self.rows.get(pair)?;
        let of = |on: bool| (0..self.factors).filter(|&factor| row[factor] == on).collect();
        Some([of(true), of(false)])
    }

    /// The row of a pair as signs.
    fn sign(&self, pair: usize, column: usize) -> f64 {
        if self.rows[pair][column] { 1.0 } else { -1.0 }
    }

    /// Columns, those of no change among them.
    fn columns(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }
}

/// Half of all combinations, none of them another's mirror image, repeated until there are pairs
/// enough.
fn factorial(factors: usize) -> Vec<Vec<bool>> {
    let half = 1_usize << (factors - 1);
    let row = |at: usize| (0..factors).map(|factor| (at % half) & (1 << factor) != 0).collect();
    (0..PAIRS.next_multiple_of(half)).map(row).collect()
}

/// A design for so many changes, pairs and slices in the order of `seed`. `None`: none, or more
/// than [`FACTORS_MAX`].
pub fn design(seed: u64, factors: usize) -> Option<Design> {
    let (kind, mut rows) = match factors {
        0 => return None,
        1 => (DesignKind::Single, vec![vec![true]; PAIRS]),
        2..=FACTORIAL_MAX => (DesignKind::Factorial, factorial(factors)),
        _ => {
            let runs = if factors < PAIRS { PAIRS } else { FACTORS_MAX + 1 };
            let rows = plackett_burman(runs).filter(|_| factors < runs)?;
            (DesignKind::PlackettBurman, rows)
        }
    };
    shuffle(seed, &mut rows);
    Some(Design { kind, factors, rows })
}

// What each change of a design does, from the pairs of slices.

/// Below this p value, unadjusted, a change is looked at again: a screening may be wrong about it
/// either way, what follows may not.
const LARGE_P: f64 = 0.05;

/// The main effect of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MainEffect {
    /// On to off, from the pairs: estimate, interval, exact p value. What the other changes do is
    /// noise in it.
    pub paired: Paired,
    /// Mean of on to off: the contrast of the design, in which the other changes cancel out.
    pub contrast: f64,
    /// Whether the contrast is beyond Lenth's margin of error.
    pub is_active: bool,
}

impl MainEffect {
    /// Whether it is worth pairs of its own.
    pub fn is_large(&self) -> bool {
        self.is_active || self.paired.p < LARGE_P
    }
}

/// What two changes do together beyond what each does by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interaction {
    pub factors: [usize; 2],
    /// Half of what one does more where the other is on than where it is off.
    pub contrast: f64,
}

/// Main effects of the changes on one response: its logarithm in the two slices of each pair, the
/// first that was measured first. `None` for a pair that was lost. The error margins are Lenth's
/// over all columns. Nothing with fewer than two pairs.
pub fn effects(
    design: &Design,
    pairs: &[Option<[f64; 2]>],
    confidence: f64,
    margin: Margin,
) -> (Vec<MainEffect>, Option<Lenth>) {
    let measured = measured(design, pairs);
    let differences = |column: usize| -> Vec<f64> {
        let of = |(pair, [first, second]): &(usize, [f64; 2])| {
            design.sign(*pair, column) * (first - second)
        };
        measured.iter().map(of).collect()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    if measured.len() < 2 {
        return (Vec::new(), None);
    }
    let contrasts: Vec<f64> = (0..design.columns()).map(|c| mean(&differences(c))).collect();
    let margins = lenth(&contrasts, confidence);
    let effect = |factor: usize| {
        let contrast = contrasts[factor];
        let paired = paired::compare(&differences(factor), confidence, margin)?;
        let is_active = margins.is_some_and(|margins| contrast.abs() > margins.margin);
        Some(MainEffect { paired, contrast, is_active })
    };
    ((0..design.factors).filter_map(effect).collect(), margins)
}

/// What every two changes of a design with every combination do together; none elsewhere, where
/// pairs of them stand for each other. Compares pair with pair: drift is not excluded.
pub fn interactions(design: &Design, pairs: &[Option<[f64; 2]>]) -> Vec<Interaction> {
    if design.kind != DesignKind::Factorial {
        return Vec::new();
    }
    let measured = measured(design, pairs);
    let two = |one: usize, other: usize| {
        let sign = |pair: usize| design.sign(pair, one) * design.sign(pair, other);
        let of = |with: f64| {
            let those = measured.iter().filter(|(pair, _)| sign(*pair) == with);
            let levels: Vec<f64> = those.map(|(_, [a, b])| f64::midpoint(*a, *b)).collect();
            (!levels.is_empty()).then(|| levels.iter().sum::<f64>() / levels.len() as f64)
        };
        Some(Interaction { factors: [one, other], contrast: of(1.0)? - of(-1.0)? })
    };
    let all = (0..design.factors).flat_map(|other| (0..other).map(move |one| (one, other)));
    all.filter_map(|(one, other)| two(one, other)).collect()
}

fn measured(design: &Design, pairs: &[Option<[f64; 2]>]) -> Vec<(usize, [f64; 2])> {
    let those = pairs.iter().enumerate().take(design.rows.len());
    those.filter_map(|(pair, values)| Some((pair, (*values)?))).collect()
}

// Which of many contrasts are more than noise, where only the contrasts themselves show
// how large noise is: most of them are taken for it (Lenth, Technometrics 31, 1989).

/// Fewest contrasts from which noise is estimated.
pub const CONTRASTS_MIN: usize = 7;

/// Margins of noise by Lenth's method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lenth {
    /// Pseudo standard error of a contrast.
    pub error: f64,
    /// Margin of error of one contrast.
    pub margin: f64,
    /// Margin of error of all contrasts together.
    pub simultaneous: f64,
}

/// The margins of so many contrasts. `None`: fewer than [`CONTRASTS_MIN`], or no noise at all.
pub fn lenth(contrasts: &[f64], confidence: f64) -> Option<Lenth> {
    let m = contrasts.len();
    if m < CONTRASTS_MIN || contrasts.iter().any(|contrast| !contrast.is_finite()) {
        return None;
    }
    let sizes: Vec<f64> = contrasts.iter().map(|contrast| contrast.abs()).collect();
    let first = 1.5 * median(sizes.clone())?;
    let inactive = sizes.into_iter().filter(|size| *size < 2.5 * first).collect();
    let error = 1.5 * median(inactive)?;
    let freedom = m as f64 / 3.0;
    let alone = f64::midpoint(1.0, confidence);
    let together = f64::midpoint(1.0, confidence.powf(1.0 / m as f64));
    let margin = |level: f64| t_quantile(level, freedom) * error;
    Some(Lenth { error, margin: margin(alone), simultaneous: margin(together) })
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    match values.len() % 2 {
        _ if values.is_empty() => None,
        1 => Some(values[half]),
        _ => Some(f64::midpoint(values[half - 1], values[half])),
    }
}

#[cfg(test)]
mod design_tests {
    use super::*;
    use crate::paired::TWELVE;

    #[test]
    fn the_designs_of_plackett_and_burman_are_orthogonal() {
        for runs in [12, 20] {
            let rows = plackett_burman(runs).expect("a design");
            assert_eq!((rows.len(), rows[0].len()), (runs, runs - 1));
            for one in 0..runs - 1 {
                let on = rows.iter().filter(|row| row[one]).count();
                assert_eq!(on, runs / 2, "column {one} is on as often as off");
                for other in 0..one {
                    let alike = rows.iter().filter(|row| row[one] == row[other]).count();
                    assert_eq!(2 * alike, runs, "columns {one} and {other}");
                }
            }
        }
        // As printed in the paper: the first row of N = 12, and the last.
        let rows = plackett_burman(12).expect("a design");
        let text = |row: &Vec<bool>| -> String {
            row.iter().map(|&on| if on { '+' } else { '-' }).collect()
        };
        assert_eq!((text(&rows[0]).as_str(), text(&rows[11]).as_str()), (TWELVE, "-----------"));
        assert_eq!(text(&rows[1]), "-++-+++---+", "shifted by one");
        assert_eq!((plackett_burman(8), plackett_burman(0)), (None, None));
    }

    #[test]
    fn main_effects_are_clear_of_each_other_and_of_what_two_do_together() {
        for factors in 2..=FACTORS_MAX {
            let design = design(factors as u64, factors).expect("a design");
            // All slices: each row and its mirror image.
            let slices: Vec<Vec<f64>> = (0..design.rows.len())
                .flat_map(|pair| [1.0, -1.0].map(|side| (pair, side)))
                .map(|(pair, side)| (0..factors).map(|f| side * design.sign(pair, f)).collect())
                .collect();
            let product = |columns: &[usize]| -> f64 {
                slices.iter().map(|row| columns.iter().map(|&c| row[c]).product::<f64>()).sum()
            };
            for one in 0..factors {
                assert_eq!(product(&[one]), 0.0);
                for other in 0..one {
                    assert_eq!(product(&[one, other]), 0.0, "{one} {other} of {factors}");
                    for third in 0..factors {
                        assert_eq!(product(&[one, other, third]), 0.0, "folded over");
                    }
                }
            }
        }
    }

    #[test]
    fn up_to_four_in_every_combination() {
        for factors in 2..=4 {
            let design = design(5, factors).expect("a design");
            assert!(design.rows.len() >= PAIRS, "{}", design.rows.len());
            let mut seen: std::collections::BTreeMap<Vec<bool>, usize> = Default::default();
            for row in &design.rows {
                *seen.entry(row.clone()).or_default() += 1;
                *seen.entry(row.iter().map(|on| !on).collect()).or_default() += 1;
            }
            assert_eq!(seen.len(), 1 << factors);
            let counts: std::collections::BTreeSet<usize> = seen.values().copied().collect();
            assert_eq!(counts.len(), 1, "all as often: {seen:?}");
        }
    }

    #[test]
    fn a_seed_is_a_design() {
        assert_eq!(design(7, 6), design(7, 6));
        assert_ne!(design(7, 6), design(8, 6));
        let kinds = [1, 2, 4, 5, 11, 12, 19].map(|n| design(1, n).expect("a design").kind);
        use super::DesignKind::{Factorial as F, PlackettBurman as P, Single as S};
        assert_eq!(kinds, [S, F, F, P, P, P, P]);
        assert_eq!((design(1, 0), design(1, 20)), (None, None));
        let design = design(1, 3).expect("a design");
        let [on, off] = design.slices(0).expect("a pair");
        assert_eq!(on.len() + off.len(), 3);
        assert_eq!(design.slices(design.rows.len()), None);
    }
}

#[cfg(test)]
mod effects_tests {
    use super::*;

    const MARGIN: Margin = Margin { low: -0.05, high: 0.05 };

    /// Responses of slices that follow a law exactly.
    fn law(design: &Design, law: impl Fn(&[bool]) -> f64) -> Vec<Option<[f64; 2]>> {
        let mirrored = |row: &[bool]| row.iter().map(|on| !on).collect::<Vec<_>>();
        design.rows.iter().map(|row| Some([law(row), law(&mirrored(row))])).collect()
    }

    #[test]
    fn main_effects_are_exact_despite_interactions() {
        let small = design(3, 4).expect("a design");
        let on = |row: &[bool], factor: usize| f64::from(u8::from(row[factor]));
        let values = law(&small, |row| {
            9.0 - 0.3 * on(row, 1) + 0.1 * on(row, 2) + 0.2 * on(row, 0) * on(row, 3)
        });
        let (found, _) = effects(&small, &values, 0.95, MARGIN);
        // Half of what two do together is each one's own.
        let wanted = [0.1, -0.3, 0.1, 0.1];
        for (effect, want) in found.iter().zip(wanted) {
            assert!((effect.contrast - want).abs() < 1e-12, "{effect:?} {want}");
        }
        for two in interactions(&small, &values) {
            let want = if two.factors == [0, 3] { 0.1 } else { 0.0 };
            assert!((two.contrast - want).abs() < 1e-12, "{two:?}");
        }
        let large = design(3, 9).expect("a design");
        let mut values = law(&large, |row| 5.0 - 0.4 * on(row, 7) + 0.3 * on(row, 1) * on(row, 2));
        // A little noise, or there is none to compare with.
        for (pair, value) in (0_u8..).zip(values.iter_mut().flatten()) {
            value[0] += 1e-7 * f64::from(pair * pair % 7);
        }
        let (found, margins) = effects(&large, &values, 0.95, MARGIN);
        assert!(margins.is_some() && found.len() == 9);
        assert!((found[7].contrast + 0.4).abs() < 1e-6, "the others cancel out");
        assert!(found[0].contrast.abs() < 1e-6);
        assert!(found[7].is_large() && !found[0].is_large(), "{found:?}");
        assert!(interactions(&large, &values).is_empty());
    }

    #[test]
    fn lost_pairs_are_left_out() {
        let design = design(3, 5).expect("a design");
        let mut values = law(&design, |row| if row[2] { 1.0 } else { 1.5 });
        values[4] = None;
        let (found, _) = effects(&design, &values, 0.95, MARGIN);
        assert_eq!(found[2].paired.n, 11);
        assert!((found[2].contrast + 0.5).abs() < 1e-12);
        assert!(effects(&design, &values[..1], 0.95, MARGIN).0.is_empty());
        assert!(effects(&design, &[None; 12], 0.95, MARGIN).0.is_empty());
    }
}

#[cfg(test)]
mod lenth_tests {
    use super::*;

    #[test]
    fn reference_values() {
        // The welding experiment (Taguchi and Wu 1980) as Box and Meyer (1986) have its contrasts,
        // first example of Lenth's paper.
        let contrasts = [
            0.13, -0.15, 0.30, 0.15, 0.40, -0.03, 0.38, 0.40, -0.05, 0.43, 0.13, 0.13, -0.38, 2.15,
            3.10,
        ];
        let found = lenth(&contrasts, 0.95).expect("margins");
        assert!((found.error - 0.225).abs() < 1e-12, "{found:?}");
        // t(0.975, 5) = 2.571 and, for all fifteen, t(0.9983, 5) = 5.219 in his table.
        assert!((found.margin / found.error - 2.571).abs() < 5e-4, "{found:?}");
        assert!((found.simultaneous / found.error - 5.219).abs() < 5e-3, "{found:?}");
        let active = contrasts.iter().filter(|c| c.abs() > found.simultaneous).count();
        assert_eq!(active, 2);
    }

    #[test]
    fn few_contrasts_or_no_noise_give_no_answer() {
        assert_eq!(lenth(&[1.0; 6], 0.95), None);
        assert_eq!(lenth(&[f64::NAN; 8], 0.95), None);
        assert_eq!(lenth(&[0.0; 8], 0.95), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0, 10.0]), Some(2.5));
    }
}
