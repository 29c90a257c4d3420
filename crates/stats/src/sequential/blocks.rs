//! Rows drawn again in blocks of random length.

use crate::{random::Random, series};

/// Fewest rows of a block, on average: 2 s of rows of one second.
const ROWS_MIN: f64 = 2.0;
/// Correlation times of a block.
const TIMES: f64 = 4.0;

/// Mean length of a block for a series of rows of `row_ns` each: max(2 s, 4 correlation times),
/// never more than a fifth of the series.
#[must_use]
pub fn block_rows(values: &[f64], row_ns: u64) -> f64 {
    let least = ROWS_MIN * 1e9 / row_ns.max(1) as f64;
    let time = series::correlation_time(values).unwrap_or(1.0);
    (TIMES * if time > 1.0 { time } else { 0.0 }).max(least).min(values.len() as f64 / 5.0).max(1.0)
}

/// Numbers of `n` rows drawn again: each one follows the last, round the end, but for a new place
/// at random once in `block` rows.
pub(crate) fn drawn(n: usize, block: f64, random: &mut Random) -> impl Iterator<Item = usize> {
    let mut at = 0;
    (0..n).map(move |i| {
        at = if i == 0 || random.unit() * block < 1.0 {
            random.below(n as u64) as usize
        } else {
            (at + 1) % n
        };
        at
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_as_long_as_asked() {
        let mut random = Random::new(1);
        let rows: Vec<usize> = drawn(100_000, 20.0, &mut random).collect();
        let breaks = rows.windows(2).filter(|pair| (pair[0] + 1) % 100_000 != pair[1]).count();
        assert!((4700..5300).contains(&breaks), "{breaks}");
        assert_eq!(drawn(0, 8.0, &mut random).count(), 0);
    }

    #[test]
    fn dependence_makes_them_longer() {
        let mut random = Random::new(2);
        let noise: Vec<f64> = (0..2000).map(|_| random.normal()).collect();
        assert!(block_rows(&noise, 1_000_000_000) < 8.0);
        let mut state = 0.0;
        let slow: Vec<f64> = noise
            .iter()
            .map(|x| {
                state = 0.95 * state + x;
                state
            })
            .collect();
        let block = block_rows(&slow, 1_000_000_000);
        assert!((80.0..320.0).contains(&block), "{block}");
        assert_eq!(block_rows(&slow[..20], 1_000_000_000), 4.0, "a fifth of the rows");
        assert_eq!(block_rows(&[], 1_000_000_000), 1.0);
        assert_eq!(block_rows(&[1.0; 100], 100_000_000), 20.0, "two seconds of tenths");
    }
}
