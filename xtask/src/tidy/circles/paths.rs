//! The paths that a file names: its imports, and `a::b` wherever it stands in the code.

/// One mention of something elsewhere.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Import {
    /// A path in an expression or a type.
    Path { line: usize, path: Vec<String> },
    /// One name of an import; `alias`: what it is called here, `*` for all names.
    Use { line: usize, path: Vec<String>, alias: Option<String>, is_public: bool },
}

/// Every mention, in the order of the text. Comments and literals of `code` are blank.
pub(super) fn paths_of(code: &str) -> Vec<Import> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let (line, token) = tokens[at];
        if token == "use" && starts_item(&tokens[..at]) {
            let is_public = matches!(before(&tokens[..at]), Some("pub" | ")"));
            at += 1;
            let mut names = Vec::new();
            at = tree(&tokens, at, &[], &mut names);
            let import = |(path, alias)| Import::Use { line, path, alias, is_public };
            found.extend(names.into_iter().map(import));
        } else if is_name(token) && tokens.get(at + 1).is_some_and(|next| next.1 == "::") {
            let mut path = vec![token.to_owned()];
            at += 1;
            while let [(_, "::"), (_, name), ..] = &tokens[at..] {
                if !is_name(name) {
                    break;
                }
                path.push((*name).to_owned());
                at += 2;
            }
            found.push(Import::Path { line, path });
        } else {
            at += 1;
        }
    }
    found
}

/// Whether an item may start after these tokens.
fn starts_item(tokens: &[(usize, &str)]) -> bool {
    matches!(before(tokens), None | Some(";" | "{" | "}" | "]" | "pub" | ")"))
}

fn before<'a>(tokens: &[(usize, &'a str)]) -> Option<&'a str> {
    tokens.last().map(|token| token.1)
}

/// Reads one tree of an import from `at` on and returns where it ends.
fn tree(
    tokens: &[(usize, &str)],
    mut at: usize,
    above: &[String],
    names: &mut Vec<(Vec<String>, Option<String>)>,
) -> usize {
    let mut path = above.to_vec();
    while let Some(&(_, token)) = tokens.get(at) {
        at += 1;
        match token {
            "::" => {}
            "{" => {
                while tokens.get(at).is_some_and(|token| token.1 != "}") {
                    at = tree(tokens, at, &path, names);
                    at += usize::from(tokens.get(at).is_some_and(|token| token.1 == ","));
                }
                return at + 1;
            }
            "*" => {
                names.push((path, Some("*".into())));
                return at;
            }
            "as" => {
                let alias = tokens.get(at).map(|token| token.1.to_owned());
                names.push((path, alias));
                return at + 1;
            }
            name if is_name(name) => {
                // `a::{self}` is `a`.
                if name != "self" || path.is_empty() {
                    path.push(name.to_owned());
                }
                let next = tokens.get(at).map(|token| token.1);
                if !matches!(next, Some("::" | "as")) {
                    let alias = path.last().cloned();
                    names.push((path, alias));
                    return at;
                }
            }
            _ => return at - 1,
        }
    }
    at
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words, `::` and single signs, with their lines from 1.
fn tokens(code: &str) -> Vec<(usize, &str)> {
    let mut tokens = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            let bytes = if is_part(first) {
                rest.find(|c| !is_part(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            tokens.push((index + 1, &rest[..bytes]));
            rest = rest[bytes..].trim_start();
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(code: &str) -> Vec<String> {
        let name = |import| match import {
            Import::Path { path, .. } => path.join("::"),
            Import::Use { path, alias, is_public, .. } => {
                let public = if is_public { "pub " } else { "" };
                format!("{public}{} as {}", path.join("::"), alias.unwrap_or_default())
            }
        };
        paths_of(code).into_iter().map(name).collect()
    }

    #[test]
    fn imports_and_paths_are_found() {
        let code = "use a::{self, b::{C, D as E}, f::*};\npub(crate) use g::H;\nfn x() { i::j(k) }";
        let wanted =
            ["a as a", "a::b::C as C", "a::b::D as E", "a::f as *", "pub g::H as H", "i::j"];
        assert_eq!(names(code), wanted);
        assert_eq!(names("let use_ = Self::new(); self.x"), ["Self::new"]);
        assert_eq!(
            names("use super::super::parts::{self, NONE};"),
            ["super::super::parts as parts", "super::super::parts::NONE as NONE"]
        );
    }
}
