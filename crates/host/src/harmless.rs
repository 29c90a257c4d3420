//! Words of others for people to read: a host name, a task or a file name may hold sequences that
//! command a terminal, or characters that turn or hide the text around them.
//!
//! Everything that goes to a terminal, a page or a document for people passes one of these.

use std::{fmt::Write, io};

use serde_json::ser::Formatter;

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
pub fn text(words: &str) -> String {
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
pub fn line(words: &str) -> String {
    text(words).replace('\n', "\\n").replace('\t', "\\t")
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
        assert_eq!(text(words), words);
        assert_eq!(line("a\n\tb"), "a\\n\\tb");
    }

    #[test]
    fn what_commands_turns_or_hides_is_written_out() {
        assert_eq!(text("a\u{1b}]0;title\u{7}b"), "a\\x1b]0;title\\x07b");
        assert_eq!(text("a\u{1b}[8mb\rc\u{7f}"), "a\\x1b[8mb\\x0dc\\x7f");
        assert_eq!(text("a\u{9b}2J"), "a\\x9b2J");
        assert_eq!(text("a\u{202e}b\u{200b}\u{feff}"), "a\\u{202e}b\\u{200b}\\u{feff}");
        assert_eq!(text("\u{2066}\u{e0041}\u{61c}"), "\\u{2066}\\u{e0041}\\u{61c}");
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
