//! Limits of a profile likelihood: where it has fallen by so much, on either side.

use crate::optimum;

/// Zeros of `over`, which is below 0 at `best`, left and right of it: first in steps that double,
/// then exactly. `None` on a side where there is none up to the bound.
pub(super) fn limits(
    over: impl Fn(f64) -> f64,
    best: f64,
    step: f64,
    (least, most): (f64, f64),
) -> (Option<f64>, Option<f64>) {
    let side = |sign: f64| {
        let (mut inside, mut by) = (best, step);
        for _ in 0..40 {
            let outside = (inside + sign * by).clamp(least, most);
            if over(outside) > 0.0 {
                return optimum::zero(&over, (inside, outside), step * 1e-7);
            }
            if outside <= least || outside >= most {
                return None;
            }
            inside = outside;
            by *= 2.0;
        }
        None
    };
    (side(-1.0), side(1.0))
}
