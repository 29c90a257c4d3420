//! What is to be made: name, language, class, place.

use std::{
    fmt::{self, Display, Formatter},
    path::PathBuf,
};

use crate::usage::Invalid;

/// Longest name: a thread's name has 15 bytes, and this one is its begin.
const NAME_BYTES_MAX: usize = 32;

/// Names that Cargo, Rust or the project itself need.
const TAKEN: &[&str] = &[
    "abstract",
    "alloc",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "build",
    "class",
    "const",
    "continue",
    "core",
    "crate",
    "deps",
    "do",
    "dyn",
    "else",
    "enum",
    "examples",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "incremental",
    "let",
    "libc",
    "loop",
    "macro",
    "main",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "proc-macro",
    "pub",
    "ref",
    "return",
    "rtproof",
    "rtproof-mark",
    "self",
    "src",
    "static",
    "std",
    "struct",
    "super",
    "target",
    "test",
    "tests",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
];

/// Language of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// C11.
    C,
    /// C++17.
    Cpp,
    /// Rust, edition 2021.
    Rust,
}

/// Scheduling class of its loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Fifo,
    Deadline,
}

/// The name of a project: of its folder, program and unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(pub(super) String);

impl std::str::FromStr for Name {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Self, Invalid> {
        let wrong = |why: &str| {
            Invalid(format!(
                "\"{}\": {why}; a name has 1 to {NAME_BYTES_MAX} of a-z, 0-9, - and _, begins \
                 with a letter and ends with a letter or digit, e.g. arm-control",
                text.escape_default()
            ))
        };
        let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        if text.is_empty() {
            return Err(wrong("no name"));
        }
        if text.len() > NAME_BYTES_MAX {
            return Err(wrong("too long"));
        }
        if let Some(c) = text.chars().find(|&c| !is_end(c) && c != '-' && c != '_') {
            return Err(wrong(&format!("`{}` is no character of a name", c.escape_default())));
        }
        if !text.starts_with(|c: char| c.is_ascii_lowercase()) || !text.ends_with(is_end) {
            return Err(wrong("its first or last character does not fit"));
        }
        if TAKEN.contains(&text) {
            return Err(Invalid(format!(
                "\"{text}\" has a meaning to Cargo, Rust or the project itself: take another name, \
                 e.g. {text}-control"
            )));
        }
        Ok(Self(text.into()))
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is to be made.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name of the project.
    pub name: Name,
    pub language: Language,
    pub class: Class,
    /// Folder in which the project's folder is made; it exists.
    pub parent: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_every_tool_takes() {
        for name in ["a", "arm-control", "x1", "a_b", &"a".repeat(32)] {
            assert_eq!(name.parse::<Name>().unwrap().to_string(), name);
        }
        let long = "a".repeat(33);
        let bad = [
            "",
            "1a",
            "-a",
            "a-",
            "_a",
            "A",
            "a b",
            "a/b",
            "../a",
            ".",
            "a.b",
            "a\n",
            "a\0",
            "é",
            "fn",
            "test",
            "libc",
            "src",
            "rtproof-mark",
            &long,
            "a@b",
            "$(id)",
            "%s",
        ];
        for name in bad {
            let error = name.parse::<Name>().expect_err(name);
            assert!(error.contains("e.g. "), "{error}");
        }
    }
}
