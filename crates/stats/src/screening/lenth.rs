//! Which of many contrasts are more than noise, where nothing but the contrasts themselves tells
//! how large noise is: most of them are taken for it (Lenth, Technometrics 31, 1989).

use crate::paired::t_quantile;

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
mod tests {
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
    fn few_contrasts_and_no_noise_tell_nothing() {
        assert_eq!(lenth(&[1.0; 6], 0.95), None);
        assert_eq!(lenth(&[f64::NAN; 8], 0.95), None);
        assert_eq!(lenth(&[0.0; 8], 0.95), None);
        assert_eq!(median(vec![3.0, 1.0, 2.0, 10.0]), Some(2.5));
    }
}
