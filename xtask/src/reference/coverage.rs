//! docs/coverage.md: its table of all items is made from docs/coverage.tsv; the rest of the page is
//! written by hand. crates/rtproof/tests/coverage.rs holds the lines to commands, checks and tests.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};

use super::markdown::cell;
use crate::tree::root;

/// Between these lines of the page stands what is made.
const MARKS: (&str, &str) =
    ("<!-- From coverage.tsv, by `cargo xtask reference`. -->\n", "<!-- End. -->\n");

/// The page, with the table of now.
pub(super) fn page() -> Result<String> {
    let read = |name: &str| {
        let path = root().join("docs").join(name);
        std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))
    };
    filled(&read("coverage.md")?, &read("coverage.tsv")?)
}

fn filled(page: &str, lines: &str) -> Result<String> {
    let (before, rest) = page.split_once(MARKS.0).context("docs/coverage.md: no first mark")?;
    let (_, after) = rest.split_once(MARKS.1).context("docs/coverage.md: no last mark")?;
    Ok([before, MARKS.0, &table(lines)?, MARKS.1, after].concat())
}

fn table(lines: &str) -> Result<String> {
    let mut rows = String::new();
    let mut counts = [("yes", 0_u32), ("part", 0), ("no", 0)];
    for (at, line) in lines.lines().enumerate().skip(1) {
        let cells: Vec<String> = line.split('\t').map(cell).collect();
        let [number, source, what, state, shown, test] = cells.as_slice() else {
            anyhow::bail!("docs/coverage.tsv:{}: {} cells, 6 expected", at + 1, cells.len());
        };
        let word = state.split(':').next().unwrap_or_default();
        let count = counts.iter_mut().find(|(state, _)| *state == word);
        count.with_context(|| format!("docs/coverage.tsv:{}: yes, part or no", at + 1))?.1 += 1;
        let (shown, test) = (quoted(shown), quoted(test));
        writeln!(rows, "| {number} | {source} | {what} | {state} | {shown} | {test} |")?;
    }
    ensure!(!rows.is_empty(), "docs/coverage.tsv has no lines");
    let [yes, part, no] = counts.map(|(_, count)| count);
    Ok(format!(
        "\n{} items: {yes} yes, {part} in part, {no} no.\n\n\
         | # | source | what | here | shown by | test |\n|---|---|---|---|---|---|\n{rows}\n",
        yes + part + no
    ))
}

/// Names and commands of a cell, each in backticks.
fn quoted(cell: &str) -> String {
    let parts = cell.split(" ; ").filter(|part| !part.is_empty());
    parts.map(|part| format!("`{part}`")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_stands_between_the_marks_is_made() {
        let page = format!("# Head\n{}old\n{}tail\n", MARKS.0, MARKS.1);
        let lines = "head\n1\tS0:1\twhat\tyes\tsmt ; rtproof check\tlab a/b\n\
                     2\tS0:2\tmore\tno: not built\t\t\n";
        let made = filled(&page, lines).unwrap();
        assert!(made.starts_with("# Head\n") && made.ends_with("tail\n"), "{made}");
        assert!(made.contains("\n2 items: 1 yes, 0 in part, 1 no.\n"), "{made}");
        assert!(
            made.contains("\n| 1 | S0:1 | what | yes | `smt`, `rtproof check` | `lab a/b` |\n")
        );
        assert!(made.contains("\n| 2 | S0:2 | more | no: not built |  |  |\n"), "{made}");
        assert_eq!(filled(&made, lines).unwrap(), made);
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        let error = |line: &str| format!("{:#}", table(&format!("head\n{line}\n")).unwrap_err());
        assert!(error("1\tS0:1").starts_with("docs/coverage.tsv:2: 2 cells"));
        assert!(error("1\tS0:1\twhat\tmaybe\t\t").starts_with("docs/coverage.tsv:2: yes, part"));
    }
}
