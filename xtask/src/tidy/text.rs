//! What every text looks like: header, size, width, white space, no notes to self.

use crate::source::{Source, has_word};
use crate::tree::{Complaint, Tree, is_fixture, is_test_file};

/// Longest file in lines; the habit is 100 to 400.
const LINES_MAX: usize = 800;
/// Longest line in characters.
const COLUMNS_MAX: usize = 100;
/// Notes to self; they belong into the tracker, not into the tree.
const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
/// Macros that are never committed.
const MACROS: &[&str] = &["dbg", "unimplemented", "todo"];
/// Endings of the files that are source; Markdown is reflowed by its readers and may be wide.
const SOURCE: &[&str] = &[".rs", ".toml", ".sh", "Makefile", ".ci/run"];

/// Checks every text.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.texts() {
        if is_fixture(path) || is_verbatim(path) {
            continue;
        }
        let is_source = SOURCE.iter().any(|ending| path.ends_with(ending));
        if is_source || path.ends_with(".md") {
            check_lines(path, text, is_source, &mut complaints);
        }
        if path.ends_with(".rs") {
            check_rust(path, text, &mut complaints);
        }
        if is_source && !text.is_empty() && !text.ends_with('\n') {
            complaints.push(Complaint::about(path, "end the last line"));
        }
    }
    complaints
}

/// Texts of others, kept byte for byte.
fn is_verbatim(path: &str) -> bool {
    path.starts_with("LICENSE-") || path == "Cargo.lock"
}

fn check_lines(path: &str, text: &str, is_source: bool, complaints: &mut Vec<Complaint>) {
    let rust = path.ends_with(".rs").then(|| Source::parse(text));
    let is_makefile = path.ends_with("Makefile");
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let mut complain = |text: String| complaints.push(Complaint::at(path, number, text));
        if NOTES.iter().any(|note| has_word(line, note)) {
            complain("a note to self: do it, or say in plain words what is so".into());
        }
        // A string that spans lines is data.
        if rust.as_ref().is_some_and(|source| source.starts_in_string(number)) {
            continue;
        }
        if line.ends_with([' ', '\t', '\r']) {
            complain("white space at the end of the line: remove it".into());
        }
        if line.contains('\t') && !(is_makefile || path.ends_with(".sh")) {
            complain("a tab: use spaces".into());
        }
        // Data of a test is clearer whole than broken.
        let is_test = rust.as_ref().is_some_and(|rust| is_test_file(path) || rust.in_test(number));
        if is_test && line.contains('"') {
            continue;
        }
        let columns = line.chars().count();
        if is_source && columns > COLUMNS_MAX && !line.contains("://") {
            complain(format!("{columns} columns: break it before {COLUMNS_MAX}"));
        }
    }
}

fn check_rust(path: &str, text: &str, complaints: &mut Vec<Complaint>) {
    let lines = text.lines().count();
    if lines > LINES_MAX {
        let text = format!("{lines} lines: split it, the cap is {LINES_MAX}");
        complaints.push(Complaint::about(path, text));
    }
    let is_template = path.ends_with("/_template.rs") || path.ends_with("/main.rs");
    if !is_template && !text.starts_with("//! ") {
        complaints.push(Complaint::at(path, 1, "begin with `//!` and say why this file exists"));
    }
    let source = Source::parse(text);
    for name in MACROS {
        for line in source.lines_with_word(&format!("{name}!")) {
            complaints.push(Complaint::at(path, line, format!("`{name}!` is not committed")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<(usize, String)> {
        let complaints = check(&Tree::of(&[(path, text)]));
        complaints.into_iter().map(|complaint| (complaint.line, complaint.text)).collect()
    }

    #[test]
    fn a_clean_file_passes() {
        assert_eq!(complaints("a.rs", "//! Why.\n\nfn a() {}\n"), []);
        assert_eq!(complaints("crates/x/src/main.rs", "fn main() {}\n"), []);
        assert_eq!(complaints("Makefile", "a:\n\techo a\n"), []);
    }

    #[test]
    fn each_fault_is_found_at_its_line() {
        let wide = "x".repeat(101);
        for (text, line) in [
            ("fn a() {}\n".to_owned(), 1),
            ("//! W.\nfn a() {} \n".to_owned(), 2),
            ("//! W.\n\tfn a() {}\n".to_owned(), 2),
            (format!("//! W.\n// {wide}\n"), 2),
            (format!("//! W.\n// {}: later\n", NOTES[0]), 2),
            ("//! W.\nfn a() { dbg!(1); }\n".to_owned(), 2),
            (format!("//! W.\n{}", "\n".repeat(LINES_MAX)), 0),
            ("//! W.".to_owned(), 0),
        ] {
            let found = complaints("a.rs", &text);
            assert_eq!(found.len(), 1, "{text:?}: {found:?}");
            assert_eq!(found[0].0, line, "{text:?}");
        }
    }

    #[test]
    fn data_is_left_alone() {
        let wide = "x".repeat(101);
        assert_eq!(
            complaints("a.rs", &format!("//! W.\nconst A: &str = \"\n{wide}\t \n\";\n")),
            []
        );
        assert_eq!(complaints("crates/x/fixtures/a.rs", &wide), []);
        assert_eq!(complaints("docs/a.md", &format!("{wide}\n")), []);
        assert_eq!(complaints("a/src/tests.rs", &format!("//! W.\nf(\"{wide}\");\n")), []);
        assert_eq!(complaints("a/src/tests.rs", &format!("//! W.\n// {wide}\n")).len(), 1);
        assert_eq!(complaints("a.rs", &format!("//! W.\n// https://a/{wide}\n")), []);
    }
}
