//! Charts as SVG text: the pictures of the HTML report.
//!
//! Written by hand because the charts this report lives by (logarithmic counts per CPU, the nines
//! axis, the heat map) are ours, and because the bytes must be the same whenever and wherever a
//! record is drawn: coordinates have one decimal, nothing is random, colours are classes that the
//! page gives light, dark and printed values.

pub(crate) mod bins;
pub(crate) mod compare;
pub(crate) mod dots;
pub(crate) mod events;
pub(crate) mod forest;
pub(crate) mod frame;
pub(crate) mod heat;
pub(crate) mod histogram;
pub(crate) mod host;
pub(crate) mod labels;
mod levels;
pub(crate) mod missed;
pub(crate) mod moving;
pub(crate) mod percentile;
pub(crate) mod ranges;
pub(crate) mod scale;
pub(crate) mod spike;
pub(crate) mod strip;

use std::fmt::Write;

/// Series that have a colour of their own; more are drawn grey, the worst excepted.
pub(crate) const COLOURS: usize = 8;

/// A coordinate with one decimal at most: `12`, `12.3`. What is no number is drawn at 0.
pub(crate) fn px(value: f64) -> String {
    let tenths = if value.is_finite() { (value * 10.0).round() as i64 } else { 0 };
    let (sign, tenths) = (if tenths < 0 { "-" } else { "" }, tenths.unsigned_abs());
    match tenths % 10 {
        0 => format!("{sign}{}", tenths / 10),
        rest => format!("{sign}{}.{rest}", tenths / 10),
    }
}

/// The `d` of a path, absolute coordinates.
#[derive(Default)]
pub(crate) struct Path {
    text: String,
}

impl Path {
    /// Moves to a point.
    pub(crate) fn to(&mut self, x: f64, y: f64) -> &mut Self {
        // Writing to a string cannot fail.
        let _ = write!(self.text, "M{} {}", px(x), px(y));
        self
    }

    /// A line to a point.
    pub(crate) fn line(&mut self, x: f64, y: f64) -> &mut Self {
        let _ = write!(self.text, "L{} {}", px(x), px(y));
        self
    }

    pub(crate) fn across(&mut self, x: f64) -> &mut Self {
        let _ = write!(self.text, "H{}", px(x));
        self
    }

    pub(crate) fn down(&mut self, y: f64) -> &mut Self {
        let _ = write!(self.text, "V{}", px(y));
        self
    }

    /// Whether nothing was drawn.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text of the path.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// How each of `maxima` is drawn: a colour number, or `None` for grey. All have a colour where
/// there are few; among many the worst three have one.
pub(crate) fn colours(maxima: &[u64]) -> Vec<Option<usize>> {
    if maxima.len() <= COLOURS {
        return (0..maxima.len()).map(Some).collect();
    }
    let mut order: Vec<usize> = (0..maxima.len()).collect();
    order.sort_by_key(|&i| (std::cmp::Reverse(maxima[i]), i));
    let mut colours = vec![None; maxima.len()];
    for (colour, &i) in order.iter().take(3).enumerate() {
        colours[i] = Some(colour);
    }
    colours
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        let cases = [(0.0, "0"), (12.34, "12.3"), (-0.04, "0"), (-1.25, "-1.3"), (3.0, "3")];
        for (value, text) in cases {
            assert_eq!(px(value), text);
        }
        assert_eq!((px(f64::NAN).as_str(), px(f64::INFINITY).as_str()), ("0", "0"));
    }

    #[test]
    fn few_have_a_colour_each_and_of_many_the_worst() {
        assert_eq!(colours(&[5, 9]), [Some(0), Some(1)]);
        let mut many = vec![10; 12];
        many[7] = 30;
        let colours = colours(&many);
        assert_eq!((colours[7], colours[0], colours[1]), (Some(0), Some(1), Some(2)));
        assert_eq!(colours.iter().flatten().count(), 3);
    }
}
