//! Several questions asked of the same data: p values adjusted after Holm (1979).
//!
//! The chance of even one false answer stays below the level, whatever depends on what.

/// The adjusted p values, in the order given.
#[must_use]
pub fn adjust(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        largest = largest.max((p[index] * (p.len() - rank) as f64).min(1.0));
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
}
