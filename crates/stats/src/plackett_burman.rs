//! The designs of Plackett and Burman, and rows of a design in random order.

use crate::random::Random;

/// First rows of the designs of Plackett and Burman (Biometrika 33, 1946), which are shifted round.
pub(crate) const TWELVE: &str = "++-+++---+-";
const TWENTY: &str = "++--++++-+-+----++-";
/// The rows of the design of Plackett and Burman with so many runs, columns one fewer: the
/// generator shifted round, then a row of minuses. `None`: there is none here (12 and 20 are).
pub(crate) fn plackett_burman(runs: usize) -> Option<Vec<Vec<bool>>> {
    let generator = [TWELVE, TWENTY].into_iter().find(|text| text.len() + 1 == runs)?.as_bytes();
    let shifted = |shift: usize| {
        let at = |column: usize| generator[(column + runs - 1 - shift) % generator.len()];
        (0..runs - 1).map(|column| at(column) == b'+').collect()
    };
    let mut rows: Vec<Vec<bool>> = (0..runs - 1).map(shifted).collect();
    rows.push(vec![false; runs - 1]);
    Some(rows)
}

/// Puts the rows, and the two slices of each, into the order of `seed`.
pub(crate) fn shuffle(seed: u64, rows: &mut [Vec<bool>]) {
    let mut random = Random::new(seed);
    for last in (1..rows.len()).rev() {
        rows.swap(last, random.below(last as u64 + 1) as usize);
    }
    for row in rows {
        if random.below(2) == 1 {
            row.iter_mut().for_each(|on| *on = !*on);
        }
    }
}
