//! Which slice of a pair has the change: by chance, from a seed that is kept.

use super::PAIRS;
use crate::{
    plackett_burman::{plackett_burman, shuffle},
    random::Random,
};

/// For each pair, whether its first slice is the one with the change. Coins, not an alternation:
/// what the exact test takes for granted.
pub fn order(seed: u64, pairs: usize) -> Vec<bool> {
    let mut random = Random::new(seed);
    (0..pairs).map(|_| random.below(2) == 1).collect()
}

/// Pairs of slices that [`mirrored`] takes for so many changes; `None`: too many.
pub fn mirrored_pairs(changes: usize) -> Option<usize> {
    match changes {
        1..=11 => Some(PAIRS),
        12..=19 => Some(20),
        _ => None,
    }
}

/// Many changes at once: for each pair, which of the changes are on in its first slice; in the
/// second the others are. Every two changes are on together as often as apart, so that what one
/// does is not taken for the other's, and mirroring keeps what two do together out of what each
/// does. `None`: too many changes, or none.
pub fn mirrored(seed: u64, changes: usize) -> Option<Vec<Vec<bool>>> {
    let mut rows = plackett_burman(mirrored_pairs(changes)?)?;
    rows.iter_mut().for_each(|row| row.truncate(changes));
    shuffle(seed, &mut rows);
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_an_order() {
        assert_eq!(order(7, 12), order(7, 12));
        assert_ne!(order(7, 12), order(8, 12));
        let on = order(1, 1000).iter().filter(|&&on| on).count();
        assert!((450..550).contains(&on), "{on}");
    }

    #[test]
    fn mirrored_changes_do_not_stand_for_each_other() {
        for changes in [2, 5, 11, 12, 19] {
            let rows = mirrored(3, changes).expect("a design");
            assert_eq!(Some(rows.len()), mirrored_pairs(changes));
            for one in 0..changes {
                for other in 0..one {
                    let together = rows.iter().filter(|row| row[one] == row[other]).count();
                    assert_eq!(2 * together, rows.len(), "{one} {other} of {changes}");
                }
            }
        }
        assert_ne!(mirrored(3, 5), mirrored(4, 5));
        assert_eq!((mirrored(3, 0), mirrored(3, 20)), (None, None));
    }
}
