//! What every file looks like: sizes and widths, a header, no white space at ends, no notes to
//! self; and every folder holds more than one file.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    source::has_word,
    tree::{Complaint, File, Files, is_fixture},
};

/// Longest file in lines, with its tests.
const LINES_MAX: usize = 1_000;
/// Fewest lines of code of a product file: what is shorter is a part of another file.
const CODE_MIN: usize = 60;
/// Files that may be shorter: the roots of crates and folders, and templates.
const ROOTS: &[&str] = &["lib.rs", "main.rs", "mod.rs", "_template.rs"];
/// Files that may be shorter because everything else of the crate uses them, or nothing does.
const SHORT: &[&str] = &[
    "crates/host/src/take.rs",
    "crates/measure/src/fuzzing.rs",
    "crates/results/src/record_state.rs",
];
/// Longest line in characters.
const COLUMNS_MAX: usize = 100;
/// Notes to self; they belong into the tracker, not into the tree.
const NOTES: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
/// Endings of the files that are source; Markdown is reflowed by its readers and may be wide.
const SOURCE: &[&str] = &[".rs", ".toml", ".sh", "Makefile", ".ci/run"];

/// Checks every text and every folder of source.
pub(super) fn check(files: &Files<'_>) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for file in files.rust() {
        check_lines(file.path, file.text, Some(file), &mut complaints);
        check_rust(file, &mut complaints);
    }
    for (path, text) in files.tree.texts().filter(|(path, _)| !is_fixture(path)) {
        let is_source = SOURCE.iter().any(|ending| path.ends_with(ending));
        if !path.ends_with(".rs") && (is_source || path.ends_with(".md")) {
            check_lines(path, text, None, &mut complaints);
        }
        if is_source && !text.is_empty() && !text.ends_with('\n') {
            complaints.push(Complaint::about(path, "end the last line"));
        }
    }
    check_folders(files, &mut complaints);
    complaints
}

fn check_lines(path: &str, text: &str, rust: Option<&File<'_>>, complaints: &mut Vec<Complaint>) {
    let has_tabs = path.ends_with("Makefile") || path.ends_with(".sh");
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let mut complain = |text: String| complaints.push(Complaint::at(path, number, text));
        if NOTES.iter().any(|note| has_word(line, note)) {
            complain("a note to self: do it, or say in plain words what is so".into());
        }
        // A string that spans lines is data.
        if rust.is_some_and(|file| file.source.starts_in_string(number)) {
            continue;
        }
        if line.ends_with([' ', '\t', '\r']) {
            complain("white space at the end of the line: remove it".into());
        }
        if line.contains('\t') && !has_tabs {
            complain("a tab: use spaces".into());
        }
        // Data of a test is clearer whole than broken.
        let is_test = rust.is_some_and(|file| file.is_test || file.source.in_test(number));
        let is_data = is_test && line.contains('"') || line.contains("://");
        let columns = line.chars().count();
        if !path.ends_with(".md") && columns > COLUMNS_MAX && !is_data {
            complain(format!("{columns} columns: break it before {COLUMNS_MAX}"));
        }
    }
}

fn check_rust(file: &File<'_>, complaints: &mut Vec<Complaint>) {
    let path = file.path;
    let name = path.rsplit('/').next().unwrap_or_default();
    if !matches!(name, "main.rs" | "_template.rs") && !file.text.starts_with("//! ") {
        let text = "begin with `//!` and say what this file does and why it exists";
        complaints.push(Complaint::at(path, 1, text));
    }
    let mut complain = |text: String| {
        complaints.push(Complaint::about(path, text).known_as(format!("size {path}")));
    };
    let lines = file.text.lines().count();
    if lines > LINES_MAX {
        complain(format!("{lines} lines: split it, the cap is {LINES_MAX}"));
    }
    let has_code = |(number, line): (usize, &str)| {
        let is_comment = line.trim_start().starts_with("//");
        let is_string = file.source.starts_in_string(number);
        (is_string || !line.trim().is_empty() && !is_comment) && !file.source.in_test(number)
    };
    let numbered = file.text.lines().enumerate().map(|(index, line)| (index + 1, line));
    let code = numbered.filter(|line| has_code(*line)).count();
    if file.is_product() && code < CODE_MIN && !ROOTS.contains(&name) && !SHORT.contains(&path) {
        complain(format!("{code} lines of code: put it into the file that uses it"));
    }
}

/// A folder below `src` that holds one file alone is a file; its tests alone may lie in it.
fn check_folders(files: &Files<'_>, complaints: &mut Vec<Complaint>) {
    let mut folders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for path in files.tree.paths().filter(|path| !is_fixture(path)) {
        let mut path = path;
        while let Some((folder, name)) = path.rsplit_once('/') {
            folders.entry(folder).or_default().insert(name);
            path = folder;
        }
    }
    let is_inside = |folder: &str| folder.contains("/src/") && !folder.ends_with("/bin");
    for (folder, names) in folders.into_iter().filter(|(folder, _)| is_inside(folder)) {
        let [name] = names.iter().copied().collect::<Vec<_>>()[..] else { continue };
        let path = format!("{folder}/{name}");
        if files.product().any(|file| file.path == path) {
            let text = format!("the only file of its folder: put it into {folder}.rs");
            complaints.push(Complaint::about(&path, text).known_as(format!("folder {folder}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    fn complaints(path: &str, text: &str) -> Vec<(usize, String)> {
        found(check, &[(path, text)]).into_iter().map(|(_, line, text)| (line, text)).collect()
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
        let string = format!("//! W.\nconst A: &str = \"\n{wide}\t \n\";\n");
        assert_eq!(complaints("a.rs", &string), []);
        assert_eq!(complaints("crates/x/fixtures/a.rs", &wide), []);
        assert_eq!(complaints("docs/a.md", &format!("{wide}\n")), []);
        assert_eq!(complaints("a/src/tests.rs", &format!("//! W.\nf(\"{wide}\");\n")), []);
        assert_eq!(complaints("a/src/tests.rs", &format!("//! W.\n// {wide}\n")).len(), 1);
        assert_eq!(complaints("a.rs", &format!("//! W.\n// https://a/{wide}\n")), []);
    }

    #[test]
    fn a_product_file_has_sixty_lines_of_code() {
        let text = |lines| format!("//! W.\n\n// C.\n{}", "a();\n".repeat(lines));
        let tested = format!("{}#[cfg(test)]\nmod tests {{\n}}\n", text(CODE_MIN - 1));
        assert_eq!(complaints("crates/x/src/a.rs", &text(CODE_MIN)), []);
        assert_eq!(complaints("crates/x/src/a.rs", &tested).len(), 1);
        for path in ["crates/x/src/lib.rs", "crates/x/src/tests.rs", SHORT[0], "xtask/src/a.rs"] {
            assert_eq!(complaints(path, &text(1)), [], "{path}");
        }
    }

    #[test]
    fn a_folder_holds_more_than_one_file() {
        let w = "//! W.\n";
        let found = |paths: &[&str]| {
            let files: Vec<_> = paths.iter().map(|path| (*path, w)).collect();
            found(check, &files).into_iter().map(|(path, ..)| path).collect::<Vec<_>>()
        };
        let is_root = |path: &String| path.ends_with("lib.rs") || path.ends_with("mod.rs");
        let one = "crates/c/src/a/mod.rs";
        let of = |paths: &[&str]| found(paths).into_iter().filter(is_root).collect::<Vec<_>>();
        assert_eq!(of(&["crates/c/src/lib.rs", one]), [one]);
        assert_eq!(of(&["crates/c/src/lib.rs", "crates/c/src/a/tests.rs"]), [""; 0]);
        assert_eq!(of(&[one, "crates/c/src/a/b.rs", "crates/c/tests/main.rs"]), [""; 0]);
    }
}
