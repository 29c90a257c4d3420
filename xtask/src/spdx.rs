//! Licence expressions: <https://spdx.github.io/spdx-spec/v2.3/SPDX-license-expressions/>, and the
//! old form `MIT/Apache-2.0`, which means `OR`.

/// Whether an expression can be met with the licences allowed. `Apache-2.0 WITH LLVM-exception` is
/// asked for as one name. `None`: not an expression.
pub(crate) fn is_satisfied(expression: &str, is_allowed: impl Fn(&str) -> bool) -> Option<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<_> = spaced.split_whitespace().collect();
    let mut parser = Parser { words: &words, is_allowed };
    let result = parser.any()?;
    parser.words.is_empty().then_some(result)
}

struct Parser<'a, F> {
    words: &'a [&'a str],
    is_allowed: F,
}

impl<'a, F: Fn(&str) -> bool> Parser<'a, F> {
    fn take(&mut self, word: &str) -> bool {
        let is_next = self.words.first() == Some(&word);
        if is_next {
            self.words = &self.words[1..];
        }
        is_next
    }

    fn any(&mut self) -> Option<bool> {
        let mut result = self.all()?;
        while self.take("OR") {
            result |= self.all()?;
        }
        Some(result)
    }

    fn all(&mut self) -> Option<bool> {
        let mut result = self.one()?;
        while self.take("AND") {
            result &= self.one()?;
        }
        Some(result)
    }

    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let result = self.any()?;
            return self.take(")").then_some(result);
        }
        let name = self.name()?;
        if self.take("WITH") {
            let exception = self.name()?;
            return Some((self.is_allowed)(&format!("{name} WITH {exception}")));
        }
        Some((self.is_allowed)(name))
    }

    fn name(&mut self) -> Option<&'a str> {
        let (first, rest) = self.words.split_first()?;
        let is_name = !matches!(*first, "(" | ")" | "AND" | "OR" | "WITH");
        is_name.then(|| {
            self.words = rest;
            *first
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_evaluated() {
        let allowed = ["MIT", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];
        for (expression, wanted) in [
            ("MIT", Some(true)),
            ("GPL-3.0-only", Some(false)),
            ("MIT OR Apache-2.0", Some(true)),
            ("MIT/Apache-2.0", Some(true)),
            ("MIT AND Apache-2.0", Some(false)),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", Some(true)),
            ("MIT OR Apache-2.0 AND GPL-3.0-only", Some(true)),
            ("Apache-2.0 WITH LLVM-exception OR GPL-3.0-only", Some(true)),
            ("Apache-2.0 WITH Other-exception", Some(false)),
            ("", None),
            ("MIT OR", None),
            ("(MIT", None),
            ("MIT Apache-2.0", None),
        ] {
            let found = is_satisfied(expression, |licence| allowed.contains(&licence));
            assert_eq!(found, wanted, "{expression}");
        }
    }
}
