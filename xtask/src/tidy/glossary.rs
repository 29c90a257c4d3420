//! The words of docs/glossary.md: those in its last column stand in no comment, help text or page,
//! and no type has such a name. A noun that the house has once is defined once.

use std::collections::BTreeMap;

use crate::source::{Source, has_word};
use crate::tree::{Complaint, Tree, is_test_file};

/// The page.
const PAGE: &str = "docs/glossary.md";
/// Texts that keep their words: history, and what names the words themselves.
const EXEMPT: &[&str] = &[PAGE, "CHANGELOG.md", "docs/adr/", "docs/reference/"];
/// Names that no type has: words of a private language.
const NAMES: &[&str] =
    &["Asked", "Conductor", "Course", "Guardian", "Onlooker", "Seen", "Told", "Wish", "Wishes"];
/// Nouns of which the house has one each.
const NOUNS: &[&str] = &[
    "Cause",
    "Change",
    "Check",
    "Cost",
    "CpuList",
    "EndReason",
    "Evidence",
    "Explanation",
    "FactRow",
    "Facts",
    "Finding",
    "Impact",
    "Intent",
    "Journal",
    "Knob",
    "Policy",
    "Profile",
    "Reading",
    "Remedy",
    "Requirement",
    "Share",
    "Verdict",
    "Window",
];

/// Checks every text and every definition.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let Some(page) = tree.text(PAGE) else {
        return vec![Complaint::about(PAGE, "is missing: restore it")];
    };
    let wrong = wrong_words(page);
    let mut complaints = Vec::new();
    let mut defined: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for (path, text) in tree.texts() {
        let is_rust = path.ends_with(".rs");
        let is_prose = path.ends_with(".md") && !EXEMPT.iter().any(|part| path.starts_with(part));
        if is_prose {
            words(path, text.lines().map(str::to_owned), &wrong, &mut complaints);
        } else if is_rust && tree.rust().any(|(rust, _)| rust == path) && !is_list(path) {
            let source = Source::parse(text);
            words(path, comments(text, &source).into_iter(), &wrong, &mut complaints);
            for (line, name) in types(&source) {
                if NAMES.contains(&name.as_str()) {
                    let text = format!("a type named `{name}`: say what it is (docs/glossary.md)");
                    complaints.push(Complaint::at(path, line, text));
                }
                let is_product = path.starts_with("crates/") && !is_test_file(path);
                if let Some(noun) = NOUNS.iter().find(|noun| **noun == name)
                    && is_product
                    && !source.in_test(line)
                {
                    defined.entry(noun).or_default().push((path, line));
                }
            }
        }
    }
    for (noun, places) in defined {
        for (path, line) in places.iter().skip(1) {
            let (first, at) = places[0];
            let text = format!("`{noun}` stands in {first}:{at}, too: one of them goes");
            complaints.push(Complaint::at(path, *line, text));
        }
    }
    complaints
}

/// The file that holds the list names its words.
fn is_list(path: &str) -> bool {
    path == "xtask/src/tidy/glossary.rs"
}

/// The last column of the page's table, word by word, each with its term.
fn wrong_words(page: &str) -> Vec<(String, String)> {
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let mut wrong = Vec::new();
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let [term, _, not] = cells[..] else { continue };
        let words = not.split(", ").filter(|word| !word.is_empty() && *word != "not");
        wrong.extend(words.map(|word| (word.to_lowercase(), term.to_owned())));
    }
    wrong
}

fn words(
    path: &str,
    lines: impl Iterator<Item = String>,
    wrong: &[(String, String)],
    complaints: &mut Vec<Complaint>,
) {
    for (index, line) in lines.enumerate() {
        let line = line.to_lowercase();
        for (word, term) in wrong.iter().filter(|(word, _)| has_word(&line, word)) {
            let text = format!("`{word}`: see `{term}` in {PAGE}");
            complaints.push(Complaint::at(path, index + 1, text));
        }
    }
}

/// The comments of a file, line by line; code is left out.
fn comments(text: &str, source: &Source) -> Vec<String> {
    let lines = text.lines().zip(source.code.lines()).enumerate();
    let comment = |(index, (line, code)): (usize, (&str, &str))| {
        let is_string = source.starts_in_string(index + 1);
        let start = line.find("//").filter(|_| !is_string)?;
        // Code after the slashes: they are in a literal.
        code.get(start..).is_some_and(|rest| rest.trim().is_empty()).then(|| line[start..].into())
    };
    lines.map(|line| comment(line).unwrap_or_default()).collect()
}

/// Names of the types that a file defines, with their lines.
fn types(source: &Source) -> Vec<(usize, String)> {
    let name = |line: &str| {
        let mut words = line.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words.find(|word| matches!(*word, "struct" | "enum" | "trait"))?;
        words.find(|word| !word.is_empty()).map(str::to_owned)
    };
    let lines = source.code.lines().enumerate();
    lines.filter_map(|(index, line)| Some((index + 1, name(line)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str =
        "| term | meaning | not |\n|---|---|---|\n| report | x | told, was told |\n";

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let tree = Tree::of(&[(PAGE, TABLE), (path, text)]);
        check(&tree).into_iter().map(|complaint| complaint.text).collect()
    }

    #[test]
    fn wrong_words_are_found_in_comments_and_pages_alone() {
        assert_eq!(complaints("docs/a.md", "It is told.\n").len(), 1);
        assert_eq!(complaints("crates/a/src/b.rs", "// It is told.\nfn f() {}\n").len(), 1);
        assert_eq!(complaints("crates/a/src/b.rs", "fn told() -> &str { \"told\" }\n").len(), 0);
        assert_eq!(complaints("crates/a/src/b.rs", "let a = \"// told\";\n").len(), 0);
        assert_eq!(complaints("CHANGELOG.md", "It was told.\n").len(), 0);
    }

    #[test]
    fn private_names_and_nouns_that_stand_twice_are_found() {
        assert_eq!(
            complaints("crates/a/src/b.rs", "pub(crate) struct Told<'a>(&'a str);\n").len(),
            1
        );
        let twice = "pub enum Policy {}\nmod c { pub enum Policy {} }\n";
        assert_eq!(complaints("crates/a/src/b.rs", twice).len(), 1);
        let tested = "pub enum Policy {}\n#[cfg(test)]\nmod c { pub enum Policy {} }\n";
        assert_eq!(complaints("crates/a/src/b.rs", tested).len(), 0);
    }
}
