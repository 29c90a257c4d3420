//! Several questions asked of the same data: p values adjusted after Holm (1979), with weights
//! where some questions matter more than others (his section 4).
//!
//! The chance of even one false answer stays below the level, whatever depends on what.

/// The adjusted p values, in the order given.
pub fn adjust(p: &[f64]) -> Vec<f64> {
    weighted(&p.iter().map(|&p| (p, 1.0)).collect::<Vec<_>>(), 0.0)
}

/// The same of p values with weights above 0. A question may first use its weight's share of the
/// level; what is answered leaves its share to the others. `spare`: weight of questions that were
/// asked and could not be tested.
pub fn weighted(p: &[(f64, f64)], spare: f64) -> Vec<f64> {
    let by_weight = |at: usize| p[at].0 / p[at].1;
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| by_weight(a).total_cmp(&by_weight(b)));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        let left = order[rank..].iter().map(|&at| p[at].1).sum::<f64>() + spare;
        largest = largest.max((by_weight(index) * left).min(1.0));
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_values() {
        let adjusted = adjust(&[0.01, 0.04, 0.03, 0.005]);
        for (got, want) in adjusted.into_iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((got - want).abs() < 1e-15, "{got} {want}");
        }
        assert!(adjust(&[]).is_empty());
        assert_eq!(adjust(&[0.7, 0.9]), [1.0, 1.0]);
    }

    #[test]
    fn weights_by_hand() {
        // 0.03/0.9 = 0.0333 and 0.01/0.1 = 0.1: the first is tested at 0.9, the second at all.
        let close = |got: Vec<f64>, want: &[f64]| {
            got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-12)
        };
        assert!(close(weighted(&[(0.03, 0.9), (0.04, 0.1)], 0.0), &[0.1 / 3.0, 0.04]));
        // What is not answered leaves nothing.
        assert!(close(weighted(&[(0.3, 0.9), (0.01, 0.1)], 0.0), &[0.3, 0.1]));
        // Four more of the kind that could not be tested.
        assert!(close(weighted(&[(0.01, 1.0)], 4.0), &[0.05]));
    }
}
