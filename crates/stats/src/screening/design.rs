//! Which changes are on in which slice.

use crate::{
    paired::PAIRS,
    plackett_burman::{plackett_burman, shuffle},
};

/// Most changes that are tried in every combination.
const FACTORIAL_MAX: usize = 4;
/// Most changes of a design.
pub const FACTORS_MAX: usize = 19;

/// How changes share the slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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
    pub kind: Kind,
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
    pub(super) fn sign(&self, pair: usize, column: usize) -> f64 {
        if self.rows[pair][column] { 1.0 } else { -1.0 }
    }

    /// Columns, those of no change among them.
    pub(super) fn columns(&self) -> usize {
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
        1 => (Kind::Single, vec![vec![true]; PAIRS]),
        2..=FACTORIAL_MAX => (Kind::Factorial, factorial(factors)),
        _ => {
            let runs = if factors < PAIRS { PAIRS } else { FACTORS_MAX + 1 };
            let rows = plackett_burman(runs).filter(|_| factors < runs)?;
            (Kind::PlackettBurman, rows)
        }
    };
    shuffle(seed, &mut rows);
    Some(Design { kind, factors, rows })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plackett_burman::TWELVE;

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
        use Kind::{Factorial as F, PlackettBurman as P, Single as S};
        assert_eq!(kinds, [S, F, F, P, P, P, P]);
        assert_eq!((design(1, 0), design(1, 20)), (None, None));
        let design = design(1, 3).expect("a design");
        let [on, off] = design.slices(0).expect("a pair");
        assert_eq!(on.len() + off.len(), 3);
        assert_eq!(design.slices(design.rows.len()), None);
    }
}
