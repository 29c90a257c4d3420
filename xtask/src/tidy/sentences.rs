//! Sentences that a user reads have 30 words at most: in help, in the strings of the crates, in the
//! pages of docs. A reader under pressure does not unfold a longer one.

use crate::source::Source;
use crate::tree::{Complaint, Tree, is_test_file};

/// Most words of a sentence.
const WORDS_MAX: usize = 30;
/// Pages that keep their sentences: history, and what is written by `cargo xtask reference`.
const EXEMPT: &[&str] = &["docs/adr/", "docs/reference/"];

/// Checks strings, help and pages.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.texts() {
        let texts = match () {
            () if path.starts_with("crates/") && path.ends_with(".rs") && is_shipped(path) => {
                strings(text)
            }
            () if is_page(path) => paragraphs(text),
            () => continue,
        };
        for (line, text) in texts {
            for words in sentences(&text).filter(|&words| words > WORDS_MAX) {
                let text = format!("a sentence of {words} words: say it in {WORDS_MAX} or fewer");
                complaints.push(Complaint::at(path, line, text));
            }
        }
    }
    complaints
}

fn is_shipped(path: &str) -> bool {
    path.contains("/src/") && !is_test_file(path)
}

fn is_page(path: &str) -> bool {
    let is_prose = path == "README.md" || path.starts_with("docs/") && path.ends_with(".md");
    is_prose && !EXEMPT.iter().any(|folder| path.starts_with(folder))
}

/// The texts of a Rust file that a user may see, with their lines: string literals, and the help
/// that clap takes from comments.
fn strings(text: &str) -> Vec<(usize, String)> {
    let source = Source::parse(text);
    let lines: Vec<&str> = source.code.lines().collect();
    // A list of sources is no sentence.
    let is_source = |line: usize| {
        lines.get(line - 1).is_some_and(|code| code.trim_start().starts_with("source:"))
    };
    let strings = source.strings.iter();
    let strings = strings.filter(|(line, _)| !source.in_test(*line) && !is_source(*line));
    let mut all: Vec<(usize, String)> =
        strings.map(|(line, string)| (*line, unfolded(string))).collect();
    if ["clap::Args", "clap::Subcommand", "commands! {", "Subcommand)"]
        .iter()
        .any(|sign| source.code.contains(sign))
    {
        all.extend(help(text));
    }
    all
}

/// A literal as it is printed, as far as sentences go.
fn unfolded(string: &str) -> String {
    let mut text = String::new();
    let mut lines = string.lines().peekable();
    while let Some(line) = lines.next() {
        let (line, is_joined) = match line.strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        text += &line.replace("\\n", "\n").replace("\\\"", "\"");
        if let Some(next) = lines.peek().filter(|_| !is_joined) {
            // What is indented is an example or an item of a list.
            let is_apart = next.starts_with("  ") || next.is_empty() || line.starts_with("  ");
            text += if is_apart { "\n\n" } else { " " };
        }
        if let Some(next) = lines.peek_mut().filter(|_| is_joined) {
            *next = next.trim_start();
        }
    }
    text
}

/// Comments of arguments and commands.
fn help(text: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        let Some(line) = line.trim_start().strip_prefix("///") else {
            is_open = false;
            continue;
        };
        match all.last_mut().filter(|_| is_open && !line.trim().is_empty()) {
            Some((_, text)) => *text += line,
            None => all.push((at + 1, line.to_owned())),
        }
        is_open = true;
    }
    all
}

/// Paragraphs and items of a page; code, tables and headings are left out.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let (mut is_code, mut is_open) = (false, false);
    for (at, line) in text.lines().enumerate() {
        let bare = line.trim_start();
        if bare.starts_with("```") {
            is_code = !is_code;
        }
        let is_item =
            bare.starts_with("- ") || bare.split_once(". ").is_some_and(|(n, _)| is_number(n));
        let is_fence = bare.starts_with("```");
        if is_code || is_fence || bare.is_empty() || bare.starts_with(['|', '#']) {
            is_open = false;
            continue;
        }
        match all.last_mut().filter(|_| is_open && !is_item) {
            Some((_, text)) => {
                text.push(' ');
                *text += bare;
            }
            None => all.push((at + 1, bare.to_owned())),
        }
        is_open = true;
    }
    all
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|c| c.is_ascii_digit())
}

/// Words of each sentence.
fn sentences(text: &str) -> impl Iterator<Item = usize> + '_ {
    let parts = text.split("\n\n").flat_map(|part| part.split("\n  "));
    parts.flat_map(|part| {
        let mut counts = vec![0];
        for word in part.split_whitespace() {
            let is_word = word.chars().any(char::is_alphanumeric);
            *counts.last_mut().expect("it begins with one") += usize::from(is_word);
            let bare = word.trim_end_matches(['"', ')', '`', '*', '\'']);
            if bare.ends_with(['.', '?', '!']) && !bare.ends_with("e.g.") {
                counts.push(0);
            }
        }
        counts
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&Tree::of(&[(path, text)])).into_iter().map(|complaint| complaint.line).collect()
    }

    #[test]
    fn long_sentences_are_found_in_strings_help_and_pages() {
        let long = "word ".repeat(31);
        let short = "word ".repeat(30);
        let string = |text: &str| format!("//! {text}\nfn f() {{ g(\"{text}\"); }}\n");
        assert_eq!(lines("crates/a/src/b.rs", &string(&long)), [2]);
        assert!(lines("crates/a/src/b.rs", &string(&short)).is_empty());
        assert!(lines("crates/a/tests/b.rs", &string(&long)).is_empty());
        let folded = format!("//! A.\nconst A: &str = \"{short}\\\n    word word\";\n");
        assert_eq!(lines("crates/a/src/b.rs", &folded), [2]);
        let help = format!("#[derive(clap::Args)]\nstruct A {{\n/// {long}\nb: u8 }}\n");
        assert_eq!(lines("crates/a/src/b.rs", &help), [3]);
        assert_eq!(lines("docs/a.md", &format!("# {long}\n\n{short}\nword\n")), [3]);
        assert!(
            lines("docs/a.md", &format!("{short}.\n{short}.\n- {short}\n- {short}\n")).is_empty()
        );
        assert!(lines("docs/a.md", &format!("```\n{long}\n```\n| {long} |\n")).is_empty());
        assert!(lines("docs/adr/a.md", &long).is_empty());
    }
}
