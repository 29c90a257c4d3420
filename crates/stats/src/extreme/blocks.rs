//! Are excesses alike from block to block of time? Tests of halves miss what comes and goes in
//! minutes.

use crate::beta::chi_squared_tail;

/// So many blocks, of long and of short episodes.
const BLOCKS: [usize; 2] = [12, 48];

/// The block of a moment, the first one being the start.
fn block(times_ns: &[u64], i: usize, length_ns: u64, blocks: usize) -> usize {
    let from_ns = times_ns.first().copied().unwrap_or(0);
    let at = u128::from(times_ns[i] - from_ns) * blocks as u128 / u128::from(length_ns.max(1));
    (at as usize).min(blocks - 1)
}

/// Probability of ranks as different between blocks of time, of excesses that have no memory, for
/// both numbers of blocks (Kruskal and Wallis 1952; blocks with fewer than five are left out). 1
/// where there is nothing to compare.
pub(super) fn alike(times_ns: &[u64], excesses: &[f64], length_ns: u64) -> f64 {
    let of_blocks = |blocks: usize| {
        let mut groups = vec![Vec::new(); blocks];
        for (i, &y) in excesses.iter().enumerate() {
            groups[block(times_ns, i, length_ns, blocks)].push(y);
        }
        kruskal_wallis(groups)
    };
    let least = BLOCKS.into_iter().map(of_blocks).fold(1.0, f64::min);
    (least * BLOCKS.len() as f64).min(1.0)
}

fn kruskal_wallis(mut groups: Vec<Vec<f64>>) -> f64 {
    groups.retain(|group| group.len() >= 5);
    let mut all = groups.concat();
    all.sort_unstable_by(f64::total_cmp);
    let n = all.len() as f64;
    if groups.len() < 2 {
        return 1.0;
    }
    // The middle rank of those that tie.
    let rank = |y: f64| {
        let (below, up_to) = (all.partition_point(|&x| x < y), all.partition_point(|&x| x <= y));
        (below + up_to + 1) as f64 / 2.0
    };
    let of_group = |group: &Vec<f64>| {
        let sum: f64 = group.iter().map(|&y| rank(y)).sum();
        sum * sum / group.len() as f64
    };
    let h = 12.0 / (n * (n + 1.0)) * groups.iter().map(of_group).sum::<f64>() - 3.0 * (n + 1.0);
    chi_squared_tail(h, groups.len() as u32 - 1)
}

/// Variance of the sums of excesses over blocks of time, against that of independent excesses that
/// come at a steady rate (a compound Poisson process); 1 at least.
pub(super) fn spread(times_ns: &[u64], excesses: &[f64], length_ns: u64) -> f64 {
    let squares: f64 = excesses.iter().map(|y| y * y).sum();
    let of_blocks = |blocks: usize| {
        let mut sums = vec![0.0; blocks];
        for (i, &y) in excesses.iter().enumerate() {
            sums[block(times_ns, i, length_ns, blocks)] += y;
        }
        let mean = sums.iter().sum::<f64>() / blocks as f64;
        let variance = sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>();
        variance * blocks as f64 / (blocks - 1) as f64 / squares.max(f64::MIN_POSITIVE)
    };
    BLOCKS.into_iter().map(of_blocks).fold(1.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    const HOUR: u64 = 3_600_000_000_000;

    /// Excesses of an hour; in one of six minutes they are so many times as large.
    fn hour(seed: u64, times: f64) -> (Vec<u64>, Vec<f64>) {
        let mut random = Random::new(seed);
        let mut at: Vec<u64> = (0..300).map(|_| random.below(HOUR)).collect();
        at.sort_unstable();
        let scale = |&at: &u64| if at / (HOUR / 6) % 3 == 1 { times } else { 1.0 };
        let excesses = at.iter().map(|at| scale(at) * random.exponential()).collect();
        (at, excesses)
    }

    #[test]
    fn what_comes_and_goes_in_minutes_is_seen() {
        let p = |times: f64, seed| {
            let (at, excesses) = hour(seed, times);
            alike(&at, &excesses, HOUR)
        };
        let alarms = (0..300).filter(|&seed| p(1.0, seed) < 0.05).count();
        // 15 expected, three errors are 11.
        assert!((2..=26).contains(&alarms), "{alarms}");
        assert!((0..50).all(|seed| p(4.0, seed) < 0.01));
        let spread = |times: f64| {
            let of = |seed| {
                let (at, excesses) = hour(seed, times);
                spread(&at, &excesses, HOUR)
            };
            (0..50).map(of).sum::<f64>() / 50.0
        };
        let (steady, changing) = (spread(1.0), spread(4.0));
        assert!(steady < 1.5 && changing > 3.0, "{steady} {changing}");
    }

    #[test]
    fn by_hand() {
        // Ranks 15 and 40 of 5 each: H = 12 / 110 (45 + 320) - 33 = 6.8182, p = 0.009023.
        let groups = [1.0, 6.0].map(|from| (0..5).map(|i| from + f64::from(i)).collect());
        let p = kruskal_wallis(groups.to_vec());
        assert!((p - 0.009_023).abs() < 1e-6, "{p}");
        assert_eq!((alike(&[], &[], 9), spread(&[], &[], 9)), (1.0, 1.0));
    }
}
