//! A machine's own words must not command the terminal: a host name, a task or a captured file may
//! hold escape sequences.

use std::fmt::Write;

/// The text with its control characters written out; line ends and our own colours stay.
pub(super) fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\u{1b}' => colour(rest).unwrap_or(0),
            '\n' | '\t' => 1,
            c if c.is_control() => 0,
            c => c.len_utf8(),
        };
        if length > 0 {
            shown.push_str(&rest[..length]);
            rest = &rest[length..];
        } else {
            // Writing to a string does not fail.
            let _ = write!(shown, "\\x{:02x}", u32::from(c));
            rest = &rest[c.len_utf8()..];
        }
    }
    shown
}

/// Length of the sequence that sets colours (ECMA-48 SGR) at the start of a text.
fn colour(text: &str) -> Option<usize> {
    let body = text.strip_prefix("\u{1b}[")?;
    let end = body.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    body[end..].starts_with('m').then_some("\u{1b}[".len() + end + "m".len())
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn text_lines_and_colours_stay() {
        let text = "\u{1b}[1mrtproof\u{1b}[0m µs\n\tlate \u{1b}[38;5;1mBAD\u{1b}[0m\n";
        assert_eq!(shown(text), text);
    }

    #[test]
    fn what_commands_a_terminal_is_written_out() {
        assert_eq!(shown("a\u{1b}]0;title\u{7}b"), "a\\x1b]0;title\\x07b");
        assert_eq!(shown("a\u{1b}[2Jb\rc"), "a\\x1b[2Jb\\x0dc");
        assert_eq!(shown("a\u{9b}2Jb\u{1b}"), "a\\x9b2Jb\\x1b");
    }
}
