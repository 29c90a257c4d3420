//! Pieces of text that several readers take out.

use std::{fmt::Write, io};

use serde_json::ser::Formatter;

/// The lines that begin with a key and a colon; `None` where a key has none.
pub(crate) fn excerpt(bytes: &[u8], keys: &[&str]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let key = |line: &str| line.split_once(':').map(|(key, _)| key.to_owned());
    let wanted = |line: &&str| key(line).is_some_and(|key| keys.contains(&key.as_str()));
    let lines: Vec<&str> = text.lines().filter(wanted).collect();
    let is_there = |wanted: &&str| lines.iter().any(|line| key(line).as_deref() == Some(*wanted));
    keys.iter().all(is_there).then(|| lines.iter().map(|line| format!("{line}\n")).collect())
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What follows a name and a colon in a text of such lines, as /proc/PID/status and /proc/cpuinfo
/// are.
pub(crate) fn field<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

/// Words of a kernel command line: white space within double quotes parts none.
pub(crate) fn quoted_words(line: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let at_space = move |c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    };
    line.split(at_space).filter(|word| !word.is_empty())
}

/// A word without the double quotes round it or round its value.
pub(crate) fn unquoted(word: &str) -> String {
    let bare = |text: &str| {
        let Some(inner) = text.strip_prefix('"') else { return text.to_owned() };
        inner.strip_suffix('"').unwrap_or(inner).to_owned()
    };
    match word.split_once('=') {
        _ if word.starts_with('"') => bare(word),
        Some((key, value)) => format!("{key}={}", bare(value)),
        None => word.to_owned(),
    }
}

/// The text between the first `open` and the next `close`.
pub(crate) fn between(text: &str, open: char, close: char) -> Option<&str> {
    let (_, rest) = text.split_once(open)?;
    rest.split_once(close).map(|(inner, _)| inner)
}

/// Undoes the octal escapes of a name: white space and backslash are written `\\040`.
pub(crate) fn unescape(name: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = name.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let code = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        match code.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) if byte == b'\\' => {
                bytes.push(escaped);
                rest = &after[3..];
            }
            _ => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

// Words of others for people to read: a host name, a task or a file name may hold sequences that
// command a terminal, or characters that turn or hide the text around them.
//
// Everything that goes to a terminal, a page or a document for people passes one of these.

/// Whether a character does something other than to be seen: control characters, and those that
/// turn the direction of text, join or hide it (Unicode categories Cc, Zl, Zp, Cf and what is
/// rendered as nothing).
pub const fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{600}'..='\u{605}'
            | '\u{61c}'
            | '\u{6dd}'
            | '\u{70f}'
            | '\u{890}'..='\u{891}'
            | '\u{8e2}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}'
            | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// A text with its hidden characters written out (`\x1b`, `\u{202e}`). Line ends and tabs stay:
/// they are the layout.
pub fn harmless_text(words: &str) -> String {
    escaped(
        words,
        |c| c != '\n' && c != '\t',
        |to, c| match u32::from(c) {
            code @ ..0x100 => write!(to, "\\x{code:02x}"),
            code => write!(to, "\\u{{{code:x}}}"),
        },
    )
}

/// A text that has one line: line ends and tabs are written out as well.
pub fn harmless_line(words: &str) -> String {
    harmless_text(words).replace('\n', "\\n").replace('\t', "\\t")
}

/// A JSON document with the hidden characters of its strings escaped: the same data, which can be
/// printed. White space between its parts stays.
pub fn json(document: &str) -> String {
    // JSON has escaped C0 already; what is left of it is white space between the parts.
    escaped(
        document,
        |c| c >= '\u{7f}',
        |to, c| c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(to, "\\u{unit:04x}")),
    )
}

/// [`json`] while a document without white space is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl Formatter for Json {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        to: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        to.write_all(json(fragment).as_bytes())
    }
}

fn escaped(
    words: &str,
    also: impl Fn(char) -> bool,
    escape: impl Fn(&mut String, char) -> std::fmt::Result,
) -> String {
    let mut to = String::with_capacity(words.len());
    for c in words.chars() {
        if is_hidden(c) && also(c) {
            // Writing to a string does not fail.
            let _ = escape(&mut to, c);
        } else {
            to.push(c);
        }
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_its_layout_stay() {
        let words = "a\n\tb µs 12\u{202f}345 é 漢 → \\x1b";
        assert_eq!(harmless_text(words), words);
        assert_eq!(harmless_line("a\n\tb"), "a\\n\\tb");
    }

    #[test]
    fn what_commands_turns_or_hides_is_written_out() {
        assert_eq!(harmless_text("a\u{1b}]0;title\u{7}b"), "a\\x1b]0;title\\x07b");
        assert_eq!(harmless_text("a\u{1b}[8mb\rc\u{7f}"), "a\\x1b[8mb\\x0dc\\x7f");
        assert_eq!(harmless_text("a\u{9b}2J"), "a\\x9b2J");
        assert_eq!(harmless_text("a\u{202e}b\u{200b}\u{feff}"), "a\\u{202e}b\\u{200b}\\u{feff}");
        assert_eq!(harmless_text("\u{2066}\u{e0041}\u{61c}"), "\\u{2066}\\u{e0041}\\u{61c}");
    }

    #[test]
    fn json_keeps_its_data() {
        let data = "a\u{1b}\u{7f}\u{85}\n\u{202e}\u{e0041}\u{202f}é";
        let plain = serde_json::to_string_pretty(&[data]).unwrap();
        let shown = json(&plain);
        assert!(!shown.chars().any(|c| c != '\n' && is_hidden(c)), "{shown:?}");
        assert_eq!(serde_json::from_str::<[String; 1]>(&shown).unwrap(), [data]);
    }
}
