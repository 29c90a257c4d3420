//! What each change of a design does, from the pairs of slices.

use super::{
    design::Design,
    lenth::{Lenth, lenth},
};
use crate::paired::{self, Margin, Paired};

/// Below this p value, unadjusted, a change is looked at again: a screening may be wrong about it
/// either way, what follows may not.
const STANDS_OUT: f64 = 0.05;

/// The main effect of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effect {
    /// On to off, from the pairs: estimate, interval, exact p value. What the other changes do is
    /// noise in it.
    pub paired: Paired,
    /// Mean of on to off: the contrast of the design, in which the other changes cancel out.
    pub contrast: f64,
    /// Whether the contrast is beyond Lenth's margin of error.
    pub is_active: bool,
}

impl Effect {
    /// Whether it is worth pairs of its own.
    pub fn stands_out(&self) -> bool {
        self.is_active || self.paired.p < STANDS_OUT
    }
}

/// What two changes do together beyond what each does by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interaction {
    pub factors: [usize; 2],
    /// Half of what one does more where the other is on than where it is off.
    pub contrast: f64,
}

/// Main effects of the changes on one response: its logarithm in the two slices of each pair, the
/// first that was measured first. `None` for a pair that was lost. The error margins are Lenth's
/// over all columns. Nothing with fewer than two pairs.
pub fn effects(
    design: &Design,
    pairs: &[Option<[f64; 2]>],
    confidence: f64,
    margin: Margin,
) -> (Vec<Effect>, Option<Lenth>) {
    let measured = measured(design, pairs);
    let differences = |column: usize| -> Vec<f64> {
        let of = |(pair, [first, second]): &(usize, [f64; 2])| {
            design.sign(*pair, column) * (first - second)
        };
        measured.iter().map(of).collect()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    if measured.len() < 2 {
        return (Vec::new(), None);
    }
    let contrasts: Vec<f64> = (0..design.columns()).map(|c| mean(&differences(c))).collect();
    let margins = lenth(&contrasts, confidence);
    let effect = |factor: usize| {
        let contrast = contrasts[factor];
        let paired = paired::compare(&differences(factor), confidence, margin)?;
        let is_active = margins.is_some_and(|margins| contrast.abs() > margins.margin);
        Some(Effect { paired, contrast, is_active })
    };
    ((0..design.factors).filter_map(effect).collect(), margins)
}

/// What every two changes of a design with every combination do together; none elsewhere, where
/// pairs of them stand for each other. Compares pair with pair: drift is not excluded.
pub fn interactions(design: &Design, pairs: &[Option<[f64; 2]>]) -> Vec<Interaction> {
    if design.kind != super::Kind::Factorial {
        return Vec::new();
    }
    let measured = measured(design, pairs);
    let two = |one: usize, other: usize| {
        let sign = |pair: usize| design.sign(pair, one) * design.sign(pair, other);
        let of = |with: f64| {
            let those = measured.iter().filter(|(pair, _)| sign(*pair) == with);
            let levels: Vec<f64> = those.map(|(_, [a, b])| f64::midpoint(*a, *b)).collect();
            (!levels.is_empty()).then(|| levels.iter().sum::<f64>() / levels.len() as f64)
        };
        Some(Interaction { factors: [one, other], contrast: of(1.0)? - of(-1.0)? })
    };
    let all = (0..design.factors).flat_map(|other| (0..other).map(move |one| (one, other)));
    all.filter_map(|(one, other)| two(one, other)).collect()
}

fn measured(design: &Design, pairs: &[Option<[f64; 2]>]) -> Vec<(usize, [f64; 2])> {
    let those = pairs.iter().enumerate().take(design.rows.len());
    those.filter_map(|(pair, values)| Some((pair, (*values)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::{super::design, *};

    const MARGIN: Margin = Margin { low: -0.05, high: 0.05 };

    /// Responses of slices that follow a law exactly.
    fn law(design: &Design, law: impl Fn(&[bool]) -> f64) -> Vec<Option<[f64; 2]>> {
        let mirrored = |row: &[bool]| row.iter().map(|on| !on).collect::<Vec<_>>();
        design.rows.iter().map(|row| Some([law(row), law(&mirrored(row))])).collect()
    }

    #[test]
    fn effects_are_told_exactly_whatever_two_do_together() {
        let small = design(3, 4).expect("a design");
        let on = |row: &[bool], factor: usize| f64::from(u8::from(row[factor]));
        let values = law(&small, |row| {
            9.0 - 0.3 * on(row, 1) + 0.1 * on(row, 2) + 0.2 * on(row, 0) * on(row, 3)
        });
        let (found, _) = effects(&small, &values, 0.95, MARGIN);
        // Half of what two do together is each one's own.
        let wanted = [0.1, -0.3, 0.1, 0.1];
        for (effect, want) in found.iter().zip(wanted) {
            assert!((effect.contrast - want).abs() < 1e-12, "{effect:?} {want}");
        }
        for two in interactions(&small, &values) {
            let want = if two.factors == [0, 3] { 0.1 } else { 0.0 };
            assert!((two.contrast - want).abs() < 1e-12, "{two:?}");
        }
        let large = design(3, 9).expect("a design");
        let mut values = law(&large, |row| 5.0 - 0.4 * on(row, 7) + 0.3 * on(row, 1) * on(row, 2));
        // A little noise, or there is none to compare with.
        for (pair, value) in (0_u8..).zip(values.iter_mut().flatten()) {
            value[0] += 1e-7 * f64::from(pair * pair % 7);
        }
        let (found, margins) = effects(&large, &values, 0.95, MARGIN);
        assert!(margins.is_some() && found.len() == 9);
        assert!((found[7].contrast + 0.4).abs() < 1e-6, "the others cancel out");
        assert!(found[0].contrast.abs() < 1e-6);
        assert!(found[7].stands_out() && !found[0].stands_out(), "{found:?}");
        assert!(interactions(&large, &values).is_empty());
    }

    #[test]
    fn lost_pairs_are_left_out() {
        let design = design(3, 5).expect("a design");
        let mut values = law(&design, |row| if row[2] { 1.0 } else { 1.5 });
        values[4] = None;
        let (found, _) = effects(&design, &values, 0.95, MARGIN);
        assert_eq!(found[2].paired.n, 11);
        assert!((found[2].contrast + 0.5).abs() < 1e-12);
        assert!(effects(&design, &values[..1], 0.95, MARGIN).0.is_empty());
        assert!(effects(&design, &[None; 12], 0.95, MARGIN).0.is_empty());
    }
}
