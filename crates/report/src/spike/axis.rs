//! The time axis of a spike: even, or with short stretches widened so that they can be seen.
//!
//! A wake-up 3.4 ms late may hold a share of 2 µs. On an even axis that is half a pixel; here each
//! stretch has at least the room that it was promised, and the rest is shared by duration.

/// From times to places.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Axis {
    /// Times with their places; both never fall.
    knots: Vec<(u64, f64)>,
}

impl Axis {
    /// Equal distances for equal times.
    pub(crate) fn even(ends_ns: (u64, u64), places: (f64, f64)) -> Self {
        Self { knots: vec![(ends_ns.0, places.0), (ends_ns.1.max(ends_ns.0 + 1), places.1)] }
    }

    pub(crate) fn through(knots: Vec<(u64, f64)>) -> Self {
        Self { knots }
    }

    /// Place of a time; times outside are put on the ends.
    pub(crate) fn at(&self, at_ns: u64) -> f64 {
        let after = self.knots.partition_point(|(knot_ns, _)| *knot_ns <= at_ns);
        let before = after.checked_sub(1).and_then(|i| self.knots.get(i));
        match (before, self.knots.get(after)) {
            (Some(&(low_ns, low)), Some(&(high_ns, high))) => {
                let part = (at_ns - low_ns) as f64 / (high_ns - low_ns) as f64;
                low + part * (high - low)
            }
            (Some(&(_, place)), None) | (None, Some(&(_, place))) => place,
            (None, None) => 0.0,
        }
    }

    /// First and last time.
    pub(crate) fn ends_ns(&self) -> (u64, u64) {
        let first = self.knots.first().map_or(0, |knot| knot.0);
        (first, self.knots.last().map_or(first, |knot| knot.0))
    }
}

/// Widths of stretches that sum to `room`: each at least its `least`, the others in proportion to
/// their duration. Where all the least together exceed the room, they shrink alike.
pub(crate) fn widths(durations_ns: &[u64], least: &[f64], room: f64) -> Vec<f64> {
    let asked: f64 = least.iter().sum();
    let shrink = if asked > room && asked > 0.0 { room / asked } else { 1.0 };
    let least: Vec<f64> = least.iter().map(|width| width * shrink).collect();
    let mut is_least = vec![false; least.len()];
    let mut scale = 0.0;
    // Each turn fixes one more at its least width, or ends.
    for _ in 0..=least.len() {
        let fixed: f64 = (0..least.len()).filter(|&i| is_least[i]).map(|i| least[i]).sum();
        let free = (0..least.len()).filter(|&i| !is_least[i]).map(|i| durations_ns[i]);
        let free_ns: u128 = free.map(u128::from).sum();
        scale = if free_ns > 0 { (room - fixed).max(0.0) / free_ns as f64 } else { 0.0 };
        let narrow: Vec<usize> = (0..least.len())
            .filter(|&i| !is_least[i] && durations_ns[i] as f64 * scale < least[i])
            .collect();
        if narrow.is_empty() {
            break;
        }
        narrow.into_iter().for_each(|i| is_least[i] = true);
    }
    (0..least.len())
        .map(|i| if is_least[i] { least[i] } else { durations_ns[i] as f64 * scale })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_even_axis_keeps_proportions_and_ends() {
        let axis = Axis::even((1000, 3000), (10.0, 30.0));
        assert_eq!((axis.at(0), axis.at(1000), axis.at(2000), axis.at(9000)), (10., 10., 20., 30.));
        assert_eq!(Axis::even((5, 5), (0.0, 9.0)).at(5), 0.0);
        assert_eq!(Axis::through(Vec::new()).at(7), 0.0);
    }

    #[test]
    fn short_stretches_have_their_least_and_all_fill_the_room() {
        let widths = widths(&[2_658_700, 1_800, 708_100, 0], &[5.0, 40.0, 5.0, 20.0], 860.0);
        assert!((widths.iter().sum::<f64>() - 860.0).abs() < 1e-6);
        assert_eq!((widths[1], widths[3]), (40.0, 20.0));
        assert!((widths[0] / widths[2] - 2_658_700.0 / 708_100.0).abs() < 1e-6, "still even");
    }

    #[test]
    fn too_much_asked_shrinks_alike() {
        let widths = widths(&[1, 1, 1], &[40.0, 80.0, 80.0], 100.0);
        assert_eq!(widths, [20.0, 40.0, 40.0]);
        assert!(super::widths(&[], &[], 10.0).is_empty());
    }
}
