//! Words that the tool does not say to a user: a measurement is not a promise, and an answer is not
//! small talk. Looked for in the string literals of the crates, outside tests.

use crate::source::{Source, has_word};
use crate::tree::{Complaint, Tree, is_test_file};

/// Words in lower case, and what to say in their place.
const BANNED: &[(&str, &str)] = &[
    ("guaranteed", "say what was measured: n, confidence, exposure"),
    ("certified", "a verdict is accepted, refused or not proven"),
    ("jitter-free", "give the latency"),
    ("never late", "give n and the largest latency"),
    ("optimal", "say what is wanted and why"),
    ("oops", "say what is wrong and the next step"),
    ("sorry", "say what is wrong and the next step"),
];

/// Checks every string that may reach a user.
pub(crate) fn check(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| is_shipped(path)) {
        let source = Source::parse(text);
        for (line, string) in source.strings.iter().filter(|(line, _)| !source.in_test(*line)) {
            let string = string.to_lowercase();
            for (word, instead) in BANNED.iter().filter(|(word, _)| has_word(&string, word)) {
                complaints.push(Complaint::at(path, *line, format!("says `{word}`: {instead}")));
            }
        }
    }
    complaints
}

/// Whether a file is part of the binary.
fn is_shipped(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/src/") && !is_test_file(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn banned_words_are_found_in_strings_a_user_may_see() {
        let text = "//! Guaranteed.\nfn a() -> &'static str {\n    \"Guaranteed: 5 us\"\n}\n";
        assert_eq!(check(&Tree::of(&[("crates/judge/src/a.rs", text)]))[0].line, 3);
        assert_eq!(check(&Tree::of(&[("crates/judge/tests/a.rs", text)])), []);
        let text = "//! A.\n#[cfg(test)]\nmod tests {\n    const A: &str = \"guaranteed\";\n}\n";
        assert_eq!(check(&Tree::of(&[("crates/judge/src/a.rs", text)])), []);
    }
}
