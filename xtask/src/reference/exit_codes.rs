//! docs/reference/exit-codes.md: what the number means that a script gets.

use std::fmt::Write;

use super::markdown::{cell, head};

const ABOUT: &str = "Every command ends with one of these, so that a script can act on a verdict.";

/// The page, from codes, names and meanings.
pub(crate) fn page(codes: &[(u8, &str, &str)]) -> String {
    let mut page = head("Exit codes", ABOUT);
    page.push_str("\n| code | name | meaning |\n|---:|---|---|\n");
    for (code, name, meaning) in codes {
        writeln!(page, "| {code} | {} | {} |", cell(name), cell(meaning))
            .expect("a string takes everything");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_a_row() {
        let page = page(&[(3, "cannot tell", "Not proven.")]);
        assert!(page.ends_with("| 3 | cannot tell | Not proven. |\n"));
    }
}
