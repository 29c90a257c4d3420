//! Expectations of a case: each has a name, says what was expected and what came, and all that fail
//! are reported, not only the first.

use std::{fmt::Debug, ops::RangeInclusive};

/// One expectation that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Name of the expectation.
    pub what: String,
    pub expected: String,
    pub came: String,
}

#[derive(Debug, Default)]
pub struct Expect {
    asked: usize,
    failures: Vec<Failure>,
}

impl Expect {
    pub fn equal<T: PartialEq + Debug>(&mut self, what: &str, came: T, expected: T) {
        let holds = came == expected;
        self.note(what, holds, || (format!("{expected:?}"), format!("{came:?}")));
    }

    /// It lies within the range.
    pub fn within<T: PartialOrd + Debug>(&mut self, what: &str, came: T, range: RangeInclusive<T>) {
        let holds = range.contains(&came);
        let expected = || format!("{:?} to {:?}", range.start(), range.end());
        self.note(what, holds, || (expected(), format!("{came:?}")));
    }

    /// The text has this part.
    pub fn contains(&mut self, what: &str, text: &str, part: &str) {
        let holds = text.contains(part);
        self.note(what, holds, || (format!("a text with {part:?}"), shortened(text)));
    }

    /// The text does not have this part.
    pub fn lacks(&mut self, what: &str, text: &str, part: &str) {
        let holds = !text.contains(part);
        self.note(what, holds, || (format!("a text without {part:?}"), shortened(text)));
    }

    /// It holds; `came` tells what did.
    pub fn that(&mut self, what: &str, expected: &str, holds: bool, came: impl Debug) {
        self.note(what, holds, || (expected.to_owned(), format!("{came:?}")));
    }

    /// It cannot even be checked.
    pub fn impossible(&mut self, what: &str, error: &anyhow::Error) {
        self.note(what, false, || ("to be there".to_owned(), format!("{error:#}")));
    }

    pub const fn asked(&self) -> usize {
        self.asked
    }

    /// Those that did not hold.
    pub fn failures(&self) -> &[Failure] {
        &self.failures
    }

    fn note(&mut self, what: &str, holds: bool, texts: impl FnOnce() -> (String, String)) {
        self.asked += 1;
        if !holds {
            let (expected, came) = texts();
            self.failures.push(Failure { what: what.to_owned(), expected, came });
        }
    }
}

/// A long text: its beginning and its end.
fn shortened(text: &str) -> String {
    const HALF: usize = 600;
    let count = text.chars().count();
    if count <= 2 * HALF {
        return format!("{text:?}");
    }
    let begin: String = text.chars().take(HALF).collect();
    let end: String = text.chars().skip(count - HALF).collect();
    format!("{begin:?} ... {end:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_is_kept_with_both_sides() {
        let mut expect = Expect::default();
        expect.equal("exit code", 3, 0);
        expect.equal("same", 1, 1);
        expect.within("worst", 5.0, 1.0..=2.0);
        expect.contains("text", "abc", "d");
        expect.lacks("text", "abc", "b");
        expect.that("rule", "it holds", false, "no");
        assert_eq!(expect.asked(), 6);
        let whats: Vec<&str> = expect.failures().iter().map(|f| f.what.as_str()).collect();
        assert_eq!(whats, ["exit code", "worst", "text", "text", "rule"]);
        assert_eq!(expect.failures()[0].expected, "0");
        assert_eq!(expect.failures()[0].came, "3");
    }

    #[test]
    fn a_value_that_is_no_number_is_in_no_range() {
        let mut expect = Expect::default();
        expect.within("nan", f64::NAN, 0.0..=1.0);
        assert_eq!(expect.failures().len(), 1);
    }
}
