//! Where a function is smallest and where it is zero: what fitting a distribution takes.
//!
//! After Brent (Algorithms for Minimization without Derivatives, 1973). Second derivatives are
//! differences of the fourth order, whose errors stay below 1e-9 here.

/// Smaller of a bracketed function's values: place and value, to about `tolerance` in the place.
/// Infinite values are walls.
pub(crate) fn minimum(
    f: impl Fn(f64) -> f64,
    (low, high): (f64, f64),
    tolerance: f64,
) -> (f64, f64) {
    const GOLDEN: f64 = 0.381_966_011_250_105;
    let (mut a, mut b) = (low, high);
    let mut x = a + GOLDEN * (b - a);
    let (mut w, mut v) = (x, x);
    let mut fx = f(x);
    let (mut fw, mut fv) = (fx, fx);
    let (mut step, mut before) = (0.0_f64, 0.0_f64);
    for _ in 0..200 {
        let middle = f64::midpoint(a, b);
        let near = tolerance + 1e-12 * x.abs();
        if (x - middle).abs() <= 2.0 * near - 0.5 * (b - a) {
            break;
        }
        // A parabola through the last three places, where it steps into the bracket and shrinks.
        let (r, q) = ((x - w) * (fx - fv), (x - v) * (fx - fw));
        let (mut top, mut below) = ((x - v) * q - (x - w) * r, 2.0 * (q - r));
        if below > 0.0 {
            top = -top
        } else {
            below = -below
        }
        let shrinks = top.abs() < (0.5 * below * before).abs();
        let inside = top > below * (a - x) && top < below * (b - x);
        before = step;
        if shrinks && inside {
            step = top / below;
        } else {
            before = if x < middle { b - x } else { a - x };
            step = GOLDEN * before;
        }
        let u = x + if step.abs() >= near { step } else { near.copysign(step) };
        let fu = f(u);
        if fu <= fx {
            if u < x {
                b = x
            } else {
                a = x
            }
            (v, fv, w, fw, x, fx) = (w, fw, x, fx, u, fu);
        } else {
            if u < x {
                a = u
            } else {
                b = u
            }
            if fu <= fw || w == x {
                (v, fv, w, fw) = (w, fw, u, fu);
            } else if fu <= fv || v == x || v == w {
                (v, fv) = (u, fu);
            }
        }
    }
    (x, fx)
}

/// A zero between two places with values of different sign; `None` where they are not.
/// Illinois variant of the rule of false position, with halving where that is slow.
pub(crate) fn zero(f: impl Fn(f64) -> f64, (low, high): (f64, f64), tolerance: f64) -> Option<f64> {
    let (mut a, mut b) = (low, high);
    let (mut fa, mut fb) = (f(a), f(b));
    if fa.is_nan() || fb.is_nan() || fa * fb > 0.0 {
        return None;
    }
    for round in 0..200 {
        if fa == 0.0 || (b - a).abs() <= tolerance + 1e-14 * a.abs() {
            return Some(a);
        }
        let false_position = b - fb * (b - a) / (fb - fa);
        let halves = round % 4 == 3 || !false_position.is_finite();
        let x = if halves { f64::midpoint(a, b) } else { false_position };
        let fx = f(x);
        if fx == 0.0 {
            return Some(x);
        }
        if fx * fb < 0.0 {
            (a, fa) = (b, fb);
        } else {
            fa *= 0.5;
        }
        (b, fb) = (x, fx);
    }
    Some(b)
}

/// Second derivatives of `f` at `x`, with steps in the `scale` of each parameter.
pub(crate) fn hessian<const N: usize>(
    f: &impl Fn([f64; N]) -> f64,
    x: [f64; N],
    scale: [f64; N],
) -> [[f64; N]; N] {
    const STEP: f64 = 2e-3;
    let at = |i: usize, di: f64, j: usize, dj: f64| {
        let mut place = x;
        place[i] += di * STEP * scale[i];
        place[j] += dj * STEP * scale[j];
        f(place)
    };
    let mut hessian = [[0.0; N]; N];
    let here = f(x);
    for i in 0..N {
        let h = STEP * scale[i];
        let [m2, m1, p1, p2] = [-2.0, -1.0, 1.0, 2.0].map(|d| at(i, d, i, 0.0));
        hessian[i][i] = (-m2 + 16.0 * m1 - 30.0 * here + 16.0 * p1 - p2) / (12.0 * h * h);
        for j in 0..i {
            let mixed =
                |d: f64| at(i, d, j, d) - at(i, d, j, -d) - at(i, -d, j, d) + at(i, -d, j, -d);
            let area = 4.0 * h * STEP * scale[j];
            // Richardson: the error of the small step, less that of the large one.
            let second = (4.0 * mixed(1.0) - mixed(2.0) / 4.0) / (3.0 * area);
            (hessian[i][j], hessian[j][i]) = (second, second);
        }
    }
    hessian
}

/// x of m x = y, by elimination with pivots; `None` where m has no inverse.
pub(crate) fn solve<const N: usize>(mut m: [[f64; N]; N], mut y: [f64; N]) -> Option<[f64; N]> {
    for column in 0..N {
        let pivot =
            (column..N).max_by(|&a, &b| m[a][column].abs().total_cmp(&m[b][column].abs()))?;
        if m[pivot][column].abs() < 1e-300 || !m[pivot][column].is_finite() {
            return None;
        }
        m.swap(column, pivot);
        y.swap(column, pivot);
        for row in 0..N {
            if row != column {
                let factor = m[row][column] / m[column][column];
                let pivot = m[column];
                m[row].iter_mut().zip(pivot).for_each(|(x, p)| *x -= factor * p);
                y[row] -= factor * y[column];
            }
        }
    }
    Some(std::array::from_fn(|i| y[i] / m[i][i]))
}

/// The inverse of a matrix, for the variances of estimates.
pub(crate) fn inverse<const N: usize>(m: [[f64; N]; N]) -> Option<[[f64; N]; N]> {
    let mut columns = [[0.0; N]; N];
    for (i, column) in columns.iter_mut().enumerate() {
        let mut unit = [0.0; N];
        unit[i] = 1.0;
        *column = solve(m, unit)?;
    }
    Some(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_dimension() {
        let (at, value) = minimum(|x| (x - 2.0).powi(2) + 3.0, (-10.0, 17.0), 1e-9);
        assert!((at - 2.0).abs() < 1e-7 && (value - 3.0).abs() < 1e-12);
        let wall = |x: f64| if x < 0.3 { f64::INFINITY } else { x * x };
        let (at, _) = minimum(wall, (-1.0, 4.0), 1e-9);
        assert!((at - 0.3).abs() < 1e-6, "{at}");
        let root = zero(|x| x.exp() - 5.0, (0.0, 20.0), 1e-13).expect("a root");
        assert!((root - 5.0_f64.ln()).abs() < 1e-12, "{root}");
        assert_eq!(zero(|x| x * x + 1.0, (-1.0, 1.0), 1e-9), None);
        assert_eq!(zero(|x| x, (0.0, 1.0), 1e-9), Some(0.0));
    }

    #[test]
    fn three_dimensions() {
        let bowl = |[x, y, z]: [f64; 3]| x * x + x * y + y * y + (z - 3.0).powi(2) * (1.0 + x * x);
        let hessian = hessian(&bowl, [0.0, 0.0, 3.0], [1.0; 3]);
        let inverse = inverse(hessian).expect("an inverse");
        assert!((inverse[0][0] - 2.0 / 3.0).abs() < 1e-7, "{inverse:?}");
        assert!((inverse[0][1] + 1.0 / 3.0).abs() < 1e-7, "{inverse:?}");
        assert_eq!(solve([[1.0, 2.0], [2.0, 4.0]], [1.0, 1.0]), None);
    }
}
