//! Words and names. The words in the last column of docs/glossary.md stand in no comment, help text
//! or page; those of a private idiom, in no name of the code. A public type has a name of its own.

use std::collections::BTreeMap;

use crate::{
    source::has_word,
    tree::{Complaint, File, Files},
};

/// The page.
const PAGE: &str = "docs/glossary.md";
/// Texts that keep their words: history, and what is made.
const EXEMPT: &[&str] = &[PAGE, "CHANGELOG.md", "docs/adr/", "docs/reference/"];
/// Words that are no part of a name in the product, and what to say in their place. The JSON, the
/// journal and the columns of a record keep theirs: `#[serde(rename)]`.
const IDIOM: &[(&str, &str)] = &[
    ("beside", "`Surroundings` for the data, `meanwhile`"),
    ("blind", "`unreadable`"),
    ("got", "`threads`, `granted`, or what it is"),
    ("meant", "`IntentTable`, `UserSource`, or what it is"),
    ("saw", "`evidence`"),
    ("told", "`reported`, `explained`, or `quantiles`"),
    ("took", "`evidence`"),
];
/// Names that no type has, and what it could be called.
const TYPES: &[(&str, &str)] = &[
    ("Asked", "`Request`"),
    ("Conductor", "`Observer`"),
    ("Course", "`Schedule`"),
    ("Draft", "`FindingBuilder`, `blank`"),
    ("Guardian", "`RollbackTimer`"),
    ("Ink", "`Style`"),
    ("Look", "`FirmwareTick`"),
    ("Making", "`ApplyProgress`"),
    ("Nature", "`Properties`"),
    ("Onlooker", "`Observer`"),
    ("Pace", "`Switching`"),
    ("Seen", "`Observation`"),
    ("Sheet", "`Terminal`"),
    ("Stands", "`Standing`"),
    ("StandsNow", "`Standing`"),
    ("Three", "`Comparison`"),
    ("Trying", "`BootProgress`"),
    ("WasSo", "`AsWanted`"),
    ("Who", "`Target`"),
    ("Whom", "`Target`"),
    ("Wish", "`Request`"),
    ("Wishes", "`Request`"),
];
/// Nouns of the glossary: one type each, public or not.
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
/// Names that every module may have for what only it calls so.
const EVERYWHERE: &[&str] = &["Args", "Error", "Options", "Request"];

/// Checks the words of comments and pages, and the names of the product.
pub(super) fn check_words(files: &Files<'_>) -> Vec<Complaint> {
    let Some(page) = files.tree.text(PAGE) else {
        return vec![Complaint::about(PAGE, "is missing: restore it")];
    };
    let wrong = wrong_words(page);
    let mut complaints = Vec::new();
    for (path, text) in files.tree.texts().filter(|(path, _)| path.ends_with(".md")) {
        if !EXEMPT.iter().any(|part| path.starts_with(part)) {
            words(path, text.lines(), &wrong, &mut complaints);
        }
    }
    for file in files.rust().filter(|file| file.path != "xtask/src/tidy/names.rs") {
        words(file.path, comments(file).into_iter(), &wrong, &mut complaints);
    }
    files.product().for_each(|file| idiom(file, &mut complaints));
    complaints
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

fn words<'a>(
    path: &str,
    lines: impl Iterator<Item = &'a str>,
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
fn comments<'a>(file: &File<'a>) -> Vec<&'a str> {
    let lines = file.text.lines().zip(file.source.code.lines()).enumerate();
    let comment = |(index, (line, code)): (usize, (&'a str, &str))| {
        let is_string = file.source.starts_in_string(index + 1);
        let start = line.find("//").filter(|_| !is_string)?;
        // Code after the slashes: they are in a literal.
        code.get(start..).is_some_and(|rest| rest.trim().is_empty()).then(|| &line[start..])
    };
    lines.map(|line| comment(line).unwrap_or_default()).collect()
}

/// Names of the private idiom in the code.
fn idiom(file: &File<'_>, complaints: &mut Vec<Complaint>) {
    for (number, line) in file.code() {
        for name in identifiers(line) {
            let lower = name.to_ascii_lowercase();
            let mut inside = IDIOM.iter().filter(|(word, _)| lower.contains(word));
            let part = inside.find(|(word, _)| parts(name).any(|part| part == *word));
            let whole = TYPES.iter().find(|(word, _)| *word == name);
            if let Some((word, instead)) = part.or(whole) {
                let text = format!("`{name}`: say {instead} in place of `{word}`");
                let complaint = Complaint::at(file.path, number, text);
                complaints.push(complaint.known_as(format!("name {word}")));
            }
        }
    }
}

fn identifiers(code: &str) -> impl Iterator<Item = &str> {
    let words = code.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with(|c: char| c.is_alphabetic() || c == '_'))
}

/// The words of `a_name`, `A_NAME` or `AName`, in lower case.
fn parts(name: &str) -> impl Iterator<Item = String> {
    let mut parts = vec![String::new()];
    let mut after_small = false;
    for c in name.chars() {
        if c == '_' || c.is_uppercase() && after_small {
            parts.push(String::new());
        }
        after_small = c.is_lowercase();
        if c != '_' {
            parts.last_mut().expect("it begins with one").extend(c.to_lowercase());
        }
    }
    parts.into_iter()
}

/// Checks that one name means one type.
pub(super) fn check_types(files: &Files<'_>) -> Vec<Complaint> {
    let mut defined: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for file in files.product() {
        for (number, line) in file.code() {
            let Some((name, is_public)) = type_name(line) else { continue };
            if (is_public || NOUNS.contains(&name)) && !EVERYWHERE.contains(&name) {
                defined.entry(name).or_default().push((file.path, number));
            }
        }
    }
    let mut complaints = Vec::new();
    for (name, places) in defined {
        let (first, at) = places[0];
        for (path, line) in &places[1..] {
            let text = format!("`{name}` stands in {first}:{at}, too: say whose it is in the name");
            complaints.push(Complaint::at(path, *line, text).known_as(format!("type {name}")));
        }
    }
    complaints
}

/// The type that a line defines, and whether other crates may see it.
fn type_name(line: &str) -> Option<(&str, bool)> {
    let mut words = line.split_whitespace();
    let first = words.next()?;
    let is_public = first == "pub";
    let kind = if first.starts_with("pub") { words.next()? } else { first };
    let kind = if kind == "unsafe" { words.next()? } else { kind };
    let is_type = ["struct", "enum", "trait", "union", "type"].contains(&kind);
    // A type that belongs to a trait is indented.
    let is_own = !(line.starts_with(' ') && kind == "type");
    (is_type && is_own).then_some((identifiers(words.next()?).next()?, is_public))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    const TABLE: &str =
        "| term | meaning | not |\n|---|---|---|\n| report | x | told, was told |\n";

    fn words(path: &str, text: &str) -> Vec<String> {
        found(check_words, &[(PAGE, TABLE), (path, text)]).into_iter().map(|it| it.2).collect()
    }

    fn types(files: &[(&str, &str)]) -> usize {
        found(check_types, files).len()
    }

    #[test]
    fn wrong_words_are_found_in_comments_and_pages_alone() {
        assert_eq!(words("docs/a.md", "It is told.\n").len(), 1);
        assert_eq!(words("lab/src/b.rs", "// It is told.\nfn f() {}\n").len(), 1);
        assert_eq!(words("lab/src/b.rs", "fn told() -> &str { \"told\" }\n").len(), 0);
        assert_eq!(words("lab/src/b.rs", "let a = \"// told\";\n").len(), 0);
        assert_eq!(words("CHANGELOG.md", "It was told.\n").len(), 0);
        assert_eq!(found(check_words, &[]).len(), 1, "the page is missing");
    }

    #[test]
    fn names_of_the_idiom_are_found_as_words_of_a_name() {
        let names = |text: &str| words("crates/a/src/b.rs", text).len();
        assert_eq!(names("fn is_told() {}\nstruct ToldTwice;\nconst TOLD: u8 = 0;\n"), 3);
        assert_eq!(names("struct Sheet;\nfn f(s: Whom) {}\n"), 2);
        assert_eq!(names("fn f(stolder: Worksheet, sheet: u8, gotten: u8) {}\n"), 0);
        assert_eq!(names("let a = \"told\";\n"), 0);
        assert_eq!(names("#[cfg(test)]\nmod tests {\n    fn told() {}\n}\n"), 0);
        assert_eq!(words("crates/a/tests/b.rs", "fn told() {}\n").len(), 0);
    }

    #[test]
    fn a_public_type_has_a_name_of_its_own() {
        let two = |a: &str, b: &str| types(&[("crates/a/src/a.rs", a), ("crates/b/src/b.rs", b)]);
        assert_eq!(two("pub struct Kind;\n", "pub enum Kind {}\n"), 1);
        assert_eq!(two("pub struct Kind;\n", "pub(crate) enum Kind {}\nenum Kind {}\n"), 0);
        assert_eq!(two("pub struct Options;\n", "pub struct Options<'a>(&'a u8);\n"), 0);
        assert_eq!(two("pub enum Policy {}\n", "enum Policy {}\n"), 1, "a noun of the glossary");
        assert_eq!(two("impl A for B {\n    type Output = C;\n}\n", "pub type Output = u8;\n"), 0);
        let tested = "pub enum Kind {}\n#[cfg(test)]\nmod c { pub enum Kind {} }\n";
        assert_eq!(types(&[("crates/a/src/a.rs", tested)]), 0);
    }
}
