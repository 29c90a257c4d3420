//! What a doc comment has to say. It carries what name and type cannot: a unit, a range, what
//! `None` means, why. So nothing forces a doc onto a function, a field or a variant whose name says
//! it, and a doc that does exist says something: four words, or a name, a number or an example.
//!
//! A public type or trait is what a newcomer looks up, and has a doc. Every crate has a README,
//! which is its first page in rustdoc, with an example that the compiler runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::{Complaint, File, Files};

/// Fewest words of a doc comment. Five would refuse a thousand that are clear ("Two threads a
/// core."), and make them longer, not better.
const WORDS_MIN: usize = 4;
/// Most items with one and the same doc.
const SAME_MAX: usize = 3;
/// What takes the README into rustdoc.
const README: &str = "#![doc = include_str!(\"../README.md\")]";
/// The binary's own crate: its doc comments are the help that clap prints, its types are not used
/// by others.
const BINARY: &str = "crates/rtproof/";

/// Checks every doc comment of the product, and the README of every crate.
pub(super) fn check(files: &Files<'_>) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let mut same: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    for file in files.product().filter(|file| !is_help(file)) {
        for item in items(file) {
            check_item(file.path, &item, &mut complaints);
            if !item.doc.is_empty() {
                same.entry(item.doc).or_default().push((file.path, item.line));
            }
        }
    }
    for (doc, places) in same.into_iter().filter(|(_, places)| places.len() > SAME_MAX) {
        for (path, line) in &places[SAME_MAX..] {
            let times = places.len();
            let text =
                format!("`{doc}` stands {times} times: say what is special here, or nothing");
            complaints.push(Complaint::at(path, *line, text).known_as(format!("same doc {doc}")));
        }
    }
    check_readmes(files, &mut complaints);
    complaints
}

/// Whether the docs of a file are texts of `--help`.
fn is_help(file: &File<'_>) -> bool {
    let signs = ["clap::", "commands! {"];
    file.path.starts_with(BINARY) && signs.iter().any(|sign| file.source.code.contains(sign))
}

/// An item, a field or a variant with its doc.
struct Item {
    line: usize,
    doc: String,
    /// The line of code below the doc and the attributes.
    code: String,
}

fn check_item(path: &str, item: &Item, complaints: &mut Vec<Complaint>) {
    let mut complain = |text: String| {
        let complaint = Complaint::at(path, item.line, text);
        complaints.push(complaint.known_as(format!("doc {path}")));
    };
    let says = |doc: &str| {
        let has_fact = doc.contains(|c: char| c.is_ascii_digit() || "`/_[%".contains(c));
        has_fact || doc.split_whitespace().count() >= WORDS_MIN
    };
    if !item.doc.is_empty() && !says(&item.doc) {
        complain(format!(
            "`{}` says too little: say what the name does not (unit, range, why), or nothing",
            item.doc
        ));
    } else if item.doc.is_empty()
        && !path.starts_with(BINARY)
        && let Some(name) = public_type(&item.code)
    {
        complain(format!("`{name}` is public and has no doc: say what it is, in a sentence"));
    }
}

/// Docs and public types of a file, without those of tests. A doc is its first paragraph.
fn items(file: &File<'_>) -> Vec<Item> {
    let mut items = Vec::new();
    let mut doc: Option<(usize, Vec<&str>)> = None;
    let mut brackets = 0_i32;
    for ((index, line), code) in file.text.lines().enumerate().zip(file.source.code.lines()) {
        let number = index + 1;
        if file.source.in_test(number) || file.source.starts_in_string(number) {
            continue;
        }
        let line = line.trim();
        if let Some(text) = line.strip_prefix("///").filter(|text| !text.starts_with('/')) {
            doc.get_or_insert((number, Vec::new())).1.push(text.trim());
            continue;
        }
        let code = code.trim();
        if brackets > 0 || code.starts_with("#[") {
            let count = |sign| i32::try_from(code.matches(sign).count()).unwrap_or(0);
            brackets += count('[') - count(']');
            continue;
        }
        if code.is_empty() && line.starts_with("//") {
            continue;
        }
        let (at, lines) = doc.take().unwrap_or((number, Vec::new()));
        let paragraph = |line: &&&str| !line.is_empty() && !line.starts_with('#');
        let lines = lines.iter().skip_while(|line| !paragraph(line)).take_while(paragraph);
        let doc = lines.copied().collect::<Vec<_>>().join(" ");
        if !doc.is_empty() || public_type(code).is_some() {
            items.push(Item { line: at, doc, code: code.to_owned() });
        }
    }
    items
}

/// Name of the type or trait that a line of code makes public.
fn public_type(code: &str) -> Option<&str> {
    let rest = code.strip_prefix("pub ")?;
    let rest = rest.strip_prefix("unsafe ").unwrap_or(rest);
    let (kind, rest) = rest.split_once(' ')?;
    let is_type = ["struct", "enum", "trait", "union"].contains(&kind);
    let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
    is_type.then(|| &rest[..end])
}

fn check_readmes(files: &Files<'_>, complaints: &mut Vec<Complaint>) {
    let folder = |path: &'_ str| Some(path.strip_prefix("crates/")?.split_once('/')?.0.to_owned());
    let crates: BTreeSet<String> = files.rust().filter_map(|file| folder(file.path)).collect();
    for name in crates {
        let path = format!("crates/{name}/README.md");
        let mut complain = |path: &str, text: &str| {
            let complaint = Complaint::about(path, text);
            complaints.push(complaint.known_as(format!("readme {name}")));
        };
        let Some(readme) = files.tree.text(&path) else {
            complain(&path, "is missing: what it is, what it never does, where to begin, example");
            continue;
        };
        let fences = readme.lines().filter(|line| line.starts_with("```"));
        let opening: Vec<&str> = fences.step_by(2).collect();
        if !opening.iter().any(|fence| ["```", "```rust", "```no_run"].contains(fence)) {
            complain(&path, "has no example in Rust: the compiler runs what is fenced by ```");
        }
        let lib = format!("crates/{name}/src/lib.rs");
        if files.tree.text(&lib).is_none_or(|text| !text.contains(README)) {
            complain(
                &lib,
                "does not take the README in: `#![doc = include_str!(\"../README.md\")]`",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::found;

    fn complaints(text: &str) -> Vec<usize> {
        let all = found(check, &[("crates/a/src/b.rs", text)]).into_iter();
        all.filter(|(path, ..)| path.ends_with("b.rs")).map(|(_, line, _)| line).collect()
    }

    #[test]
    fn docs_that_say_something_pass_and_none_is_needed_on_a_function() {
        let text = "/// Latency in nanoseconds of a thread.\npub struct A {\n    /// In µs, 0-99.\n    \
                    a: u8,\n    b: u8,\n}\npub fn getter() {}\n/// See [`A`].\npub fn f() {}\n";
        assert!(complaints(text).is_empty());
        assert!(
            complaints("#[cfg(test)]\nmod tests {\n    /// Why.\n    pub struct A;\n}\n")
                .is_empty()
        );
    }

    #[test]
    fn docs_that_say_nothing_and_public_types_without_one_are_found() {
        assert_eq!(complaints("/// The file.\n///\n/// # Errors\n/// Often.\nfn f() {}\n"), [1]);
        assert_eq!(complaints("struct A {\n    /// Why not.\n    a: u8,\n}\n"), [2]);
        let derived =
            "#[derive(\n    Debug,\n)]\n// Note.\npub enum A {}\npub trait B {}\nstruct C;\n";
        assert_eq!(complaints(derived), [5, 6]);
        assert_eq!(complaints("pub(crate) struct A;\npub fn f() {}\n"), [0; 0]);
    }

    #[test]
    fn one_text_stands_three_times() {
        let times = |n| "/// When it was made, UTC.\nfn f() {}\n".repeat(n);
        assert!(complaints(&times(3)).is_empty());
        assert_eq!(complaints(&times(5)), [7, 9]);
    }

    #[test]
    fn help_of_the_command_line_is_left_alone() {
        let help =
            "#[derive(clap::Args)]\npub struct Args {\n    /// Do not ask\n    yes: bool,\n}\n";
        assert_eq!(found(check, &[("crates/rtproof/src/a.rs", help)]).len(), 1, "the README");
    }

    #[test]
    fn every_crate_has_a_readme_with_an_example() {
        let lib = "//! A.\n#![doc = include_str!(\"../README.md\")]\n";
        let of = |lib: &str, readme| {
            found(check, &[("crates/a/src/lib.rs", lib), ("crates/a/README.md", readme)]).len()
        };
        assert_eq!(of(lib, "# A\n\n```\nassert!(true);\n```\n"), 0);
        assert_eq!(of(lib, "# A\n\n```sh\nls\n```\n"), 1);
        assert_eq!(of("//! A.\n", "```rust\n```\n"), 1);
        assert_eq!(found(check, &[("crates/a/src/lib.rs", lib)]).len(), 1);
    }
}
