//! What a terminal can show: colours of its own palette, which it keeps readable on its own
//! background, and characters.

use ratatui_core::{
    buffer::Buffer,
    style::{Color, Modifier, Style},
};

/// A line: words with their styles.
pub type Drawn = Vec<(String, Style)>;

/// What the terminal can show: colours, Unicode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// Whether colours are shown; without, bold and reverse remain.
    pub colours: bool,
    /// Whether anything but ASCII is shown.
    pub unicode: bool,
}

impl Look {
    pub const FULL: Self = Self { colours: true, unicode: true };

    pub(super) const fn bold(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) const fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// The row that is chosen.
    pub(super) const fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) const fn bad(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    pub(super) const fn warn(self) -> Style {
        self.coloured(Color::Yellow)
    }

    pub(super) const fn good(self) -> Style {
        self.coloured(Color::Green)
    }

    pub(super) const fn coloured(self, colour: Color) -> Style {
        if self.colours { Style::new().fg(colour) } else { Style::new() }
    }

    /// Bars of eight heights, the lowest first.
    pub(super) const fn heights(self) -> [char; 8] {
        if self.unicode {
            ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
        } else {
            ['_', '.', ',', '-', '=', '+', '*', '#']
        }
    }

    /// Idle states, shallow, between and deep; and time that was not idle.
    pub(super) const fn shades(self) -> [char; 4] {
        if self.unicode { ['▓', '▒', '░', '█'] } else { ['=', '-', '.', '#'] }
    }

    /// Puts only what the terminal can show.
    pub(super) fn finish(self, to: &mut Buffer) {
        if self.unicode {
            return;
        }
        for cell in &mut to.content {
            if !cell.symbol().is_ascii() {
                let plain = match cell.symbol() {
                    "µ" => "u",
                    "\u{202f}" | "°" => " ",
                    "–" | "─" | "−" => "-",
                    "│" | "┤" | "├" | "▏" => "|",
                    "→" | "▸" => ">",
                    "█" => "#",
                    "×" => "x",
                    _ => "?",
                };
                cell.set_symbol(plain);
            }
        }
    }
}
