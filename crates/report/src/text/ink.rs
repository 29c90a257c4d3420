//! Styles of text, kept apart from escape sequences in the words of others: those must not command
//! the terminal, nor colour or hide anything.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    sync::LazyLock,
};

use anstyle::{AnsiColor, Style};
use rtproof_host::harmless;

/// Stands round each of our sequences; a random number, so that no file can hold it. It takes no
/// room in a line, as it has the form of a colour.
static MARK: LazyLock<String> =
    LazyLock::new(|| format!("\u{1b}[{}m", RandomState::new().hash_one("ink")));

pub const BOLD: Ink = Ink(Style::new().bold());
/// Style of what matters less.
pub const DIM: Ink = Ink(Style::new().dimmed());
/// Style of what is good.
pub const GOOD: Ink = Ink::of(AnsiColor::Green);
/// Style of what is bad.
pub const BAD: Ink = Ink(AnsiColor::Red.on_default().bold());
/// Style of what is doubtful.
pub const WARN: Ink = Ink::of(AnsiColor::Yellow);

/// A style: `{ink}` begins it, `{ink:#}` ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ink(Style);

impl Ink {
    /// As text is without one.
    pub const PLAIN: Self = Self(Style::new());

    /// The same in bold.
    pub(super) const fn bold(self) -> Self {
        Self(self.0.bold())
    }

    /// A colour.
    pub(super) const fn of(colour: AnsiColor) -> Self {
        Self(colour.on_default())
    }
}

impl fmt::Display for Ink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_plain() {
            return Ok(());
        }
        let mark = MARK.as_str();
        if f.alternate() {
            write!(f, "{mark}{:#}{mark}", self.0)
        } else {
            write!(f, "{mark}{}{mark}", self.0)
        }
    }
}

/// The text with our styles, and everything else made harmless.
pub(super) fn shown(text: &str) -> String {
    let parts = text.split(MARK.as_str()).enumerate();
    parts.fold(String::with_capacity(text.len()), |mut shown, (at, part)| {
        match at % 2 {
            0 => shown.push_str(&harmless::text(part)),
            _ => shown.push_str(part),
        }
        shown
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_our_styles_stay() {
        let text = format!("{BOLD}rtproof{BOLD:#} µs\n\tlate {BAD}BAD{BAD:#}{}\n", Ink::PLAIN);
        let expected = "\u{1b}[1mrtproof\u{1b}[0m µs\n\tlate \u{1b}[1m\u{1b}[31mBAD\u{1b}[0m\n";
        assert_eq!(shown(&text), expected);
    }

    #[test]
    fn sequences_of_others_are_written_out() {
        let others = "\u{1b}[8mhidden\u{1b}[0m\u{202e}\u{1b}[2J";
        let expected = "\\x1b[8mhidden\\x1b[0m\\u{202e}\\x1b[2J";
        assert_eq!(shown(others), expected);
        let text = shown(&format!("{BAD}{others}{BAD:#}"));
        assert_eq!(text, format!("\u{1b}[1m\u{1b}[31m{expected}\u{1b}[0m"));
    }
}
