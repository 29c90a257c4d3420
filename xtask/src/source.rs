//! Rust source seen as code, comments and strings: just enough of a lexer that a rule about code is
//! not fooled by a comment, and a rule about strings is not fooled by code.

/// One Rust file, taken apart. All three have the lines of the original.
pub(crate) struct Source {
    /// The code: comments and the insides of literals are blanked with spaces.
    pub(crate) code: String,
    /// String literals: line of the opening quote, from 1, and the text between the quotes.
    pub(crate) strings: Vec<(usize, String)>,
    /// Per line, from 0: whether the line begins inside a string literal.
    starts_in_string: Vec<bool>,
    /// Per line, from 0: whether the line belongs to an item under `#[cfg(test)]`.
    in_test: Vec<bool>,
}

impl Source {
    /// Takes a file apart.
    pub(crate) fn parse(text: &str) -> Self {
        let mut lexer = Lexer::new(text);
        lexer.run();
        let in_test = test_lines(&lexer.code);
        Self {
            code: lexer.code,
            strings: lexer.strings,
            starts_in_string: lexer.starts_in_string,
            in_test,
        }
    }

    /// Whether a line, from 1, begins inside a string literal.
    pub(crate) fn starts_in_string(&self, line: usize) -> bool {
        self.starts_in_string.get(line - 1).copied().unwrap_or(false)
    }

    /// Whether a line, from 1, belongs to an item under `#[cfg(test)]`.
    pub(crate) fn in_test(&self, line: usize) -> bool {
        self.in_test.get(line - 1).copied().unwrap_or(false)
    }

    /// Lines, from 1, where a word stands in the code.
    pub(crate) fn lines_with_word(&self, word: &str) -> Vec<usize> {
        let lines = self.code.lines().enumerate();
        lines.filter(|(_, line)| has_word(line, word)).map(|(index, _)| index + 1).collect()
    }
}

/// Whether a word stands in a text with no letter, digit or underscore on either side.
pub(crate) fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    code: String,
    strings: Vec<(usize, String)>,
    starts_in_string: Vec<bool>,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            line: 1,
            code: String::with_capacity(text.len()),
            strings: Vec::new(),
            starts_in_string: vec![false],
        }
    }

    fn run(&mut self) {
        while let Some(c) = self.rest.chars().next() {
            if self.rest.starts_with("//") {
                let end = self.rest.find('\n').unwrap_or(self.rest.len());
                self.blank(end, false);
            } else if self.rest.starts_with("/*") {
                self.blank(block_comment_end(self.rest), false);
            } else if let Some(quotes) = Quotes::at(self.rest, self.code.chars().next_back()) {
                self.string(&quotes);
            } else if c == '\'' {
                match char_literal_end(self.rest) {
                    Some(end) => self.blank(end, false),
                    None => self.keep(c),
                }
            } else {
                self.keep(c);
            }
        }
    }

    /// Copies one character of code.
    fn keep(&mut self, c: char) {
        self.code.push(c);
        self.advance(c, false);
    }

    /// Replaces the next `bytes` by spaces, keeping line ends.
    fn blank(&mut self, bytes: usize, in_string: bool) {
        for c in self.rest[..bytes].chars() {
            self.code.push(if c == '\n' { '\n' } else { ' ' });
            self.advance(c, in_string);
        }
    }

    fn advance(&mut self, c: char, in_string: bool) {
        self.rest = &self.rest[c.len_utf8()..];
        if c == '\n' {
            self.line += 1;
            self.starts_in_string.push(in_string);
        }
    }

    fn string(&mut self, quotes: &Quotes) {
        let line = self.line;
        self.blank(quotes.open, false);
        let end = quotes.inside(self.rest);
        self.strings.push((line, self.rest[..end].to_owned()));
        self.blank(end, true);
        self.blank(quotes.close.len().min(self.rest.len()), false);
    }
}

/// How a string literal opens and closes.
struct Quotes {
    /// Bytes of prefix, hashes and quote.
    open: usize,
    close: String,
    /// Whether a backslash is a backslash.
    raw: bool,
}

impl Quotes {
    /// The string literal that begins here, if one does.
    fn at(text: &str, before: Option<char>) -> Option<Self> {
        let prefix = text.find(|c| !matches!(c, 'b' | 'c' | 'r')).filter(|&bytes| bytes <= 2)?;
        if prefix > 0 && before.is_some_and(|c| c.is_alphanumeric() || c == '_') {
            return None;
        }
        let raw = text[..prefix].contains('r');
        let rest = &text[prefix..];
        let hashes = if raw { rest.find(|c| c != '#')? } else { 0 };
        rest[hashes..].starts_with('"').then(|| Self {
            open: prefix + hashes + 1,
            close: format!("\"{}", "#".repeat(hashes)),
            raw,
        })
    }

    /// Bytes between the quotes, given the text after the opening one.
    fn inside(&self, text: &str) -> usize {
        let mut chars = text.char_indices();
        while let Some((index, c)) = chars.next() {
            if !self.raw && c == '\\' {
                chars.next();
            } else if text[index..].starts_with(&self.close) {
                return index;
            }
        }
        text.len()
    }
}

/// Bytes of the block comment that begins here; they nest.
fn block_comment_end(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut index = 0;
    while let Some(c) = text[index..].chars().next() {
        if text[index..].starts_with("/*") {
            depth += 1;
            index += 2;
        } else if text[index..].starts_with("*/") {
            depth -= 1;
            index += 2;
            if depth == 0 {
                return index;
            }
        } else {
            index += c.len_utf8();
        }
    }
    text.len()
}

/// Bytes of the character literal that begins here; `None` when it is a lifetime.
fn char_literal_end(text: &str) -> Option<usize> {
    let inside = &text[1..];
    let first = inside.chars().next()?;
    if first == '\\' {
        // The character after the backslash may be a quote.
        let escaped = inside[1..].chars().next()?.len_utf8();
        let close = inside[1 + escaped..].find('\'')?;
        return Some(1 + 1 + escaped + close + 1);
    }
    inside[first.len_utf8()..].starts_with('\'').then(|| 1 + first.len_utf8() + 1)
}

/// Per line of blanked code, whether it belongs to an item under `#[cfg(test)]`.
fn test_lines(code: &str) -> Vec<bool> {
    let mut result = Vec::new();
    let mut depth = 0_i64;
    // Depth at which the item under the attribute began, once the attribute was seen.
    let mut item: Option<(i64, bool)> = None;
    for line in code.lines() {
        if item.is_none() && line.trim_start().starts_with("#[cfg(test)]") {
            item = Some((depth, false));
        }
        result.push(item.is_some());
        for c in line.chars() {
            match c {
                '{' => {
                    depth += 1;
                    item = item.map(|(start, _)| (start, true));
                }
                '}' => depth -= 1,
                ';' if item == Some((depth, false)) => item = None,
                _ => {}
            }
        }
        if item.is_some_and(|(start, opened)| opened && depth <= start) {
            item = None;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_not_code() {
        let text = "let a = \"unsafe\"; // unsafe\n/* unsafe /* x */ unsafe */ let b = 'u';\n";
        let source = Source::parse(text);
        assert!(source.lines_with_word("unsafe").is_empty());
        assert_eq!(source.lines_with_word("let"), [1, 2]);
        assert_eq!(source.strings, [(1, "unsafe".to_owned())]);
        assert_eq!(source.code.len(), text.len());
    }

    #[test]
    fn raw_byte_and_escaped_strings_end_where_they_end() {
        let source = Source::parse(r###"a(r#"x "y" z"#, b"\"q\\", "", r"\", c"z"); unsafe"###);
        let strings: Vec<_> = source.strings.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(strings, ["x \"y\" z", "\\\"q\\\\", "", "\\", "z"]);
        assert_eq!(source.lines_with_word("unsafe"), [1]);
    }

    #[test]
    fn lifetimes_are_not_character_literals() {
        let source =
            Source::parse("fn f<'a>(x: &'a str) -> char { if x == \"'\" { '\\'' } else { '{' } }");
        assert_eq!(source.strings.len(), 1);
        assert!(source.code.contains("'a str"));
        assert_eq!(source.code.matches('{').count(), source.code.matches('}').count());
    }

    #[test]
    fn lines_inside_a_string_are_known() {
        let source = Source::parse("let a = \"one\ntwo\n\";\nlet b;\n");
        let inside: Vec<_> = (1..=4).map(|line| source.starts_in_string(line)).collect();
        assert_eq!(inside, [false, true, true, false]);
    }

    #[test]
    fn test_items_are_known_line_by_line() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() {}\n}\nfn c() {}\n\
                    #[cfg(test)]\nmod other;\nfn d() {}\n";
        let source = Source::parse(text);
        let lines: Vec<_> = (1..=9).filter(|&line| source.in_test(line)).collect();
        assert_eq!(lines, [2, 3, 4, 5, 7, 8]);
    }

    #[test]
    fn a_word_is_not_part_of_a_word() {
        assert!(has_word("an unsafe {", "unsafe"));
        assert!(!has_word("#![deny(unsafe_code)]", "unsafe"));
    }
}
