//! Text for a terminal: its width, its colours, tables, wrapping.

use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    io::{self, Write},
    sync::LazyLock,
};

use anstyle::{AnsiColor, Style};

use rtproof_host::text;
use rtproof_judge::{report::MachineSummary, units};

// Styles of text, kept apart from escape sequences in the words of others: those must not command
// the terminal, nor colour or hide anything.

/// Stands round each of our sequences; a random number, so that no file can hold it. It takes no
/// room in a line, as it has the form of a colour.
static MARK: LazyLock<String> =
    LazyLock::new(|| format!("\u{1b}[{}m", RandomState::new().hash_one("ink")));

pub const BOLD: TextStyle = TextStyle(Style::new().bold());

/// Style of what matters less.
pub const DIM: TextStyle = TextStyle(Style::new().dimmed());

/// Style of what is good.
pub const GOOD: TextStyle = TextStyle::of(AnsiColor::Green);

/// Style of what is bad.
pub const BAD: TextStyle = TextStyle(AnsiColor::Red.on_default().bold());

/// Style of what is doubtful.
pub const WARN: TextStyle = TextStyle::of(AnsiColor::Yellow);

/// A style: `{ink}` begins it, `{ink:#}` ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextStyle(Style);

impl TextStyle {
    /// As text is without one.
    pub const PLAIN: Self = Self(Style::new());

    /// The same in bold.
    pub(crate) const fn bold(self) -> Self {
        Self(self.0.bold())
    }

    /// Style with this foreground colour on the terminal's background.
    pub(crate) const fn of(colour: AnsiColor) -> Self {
        Self(colour.on_default())
    }
}

impl fmt::Display for TextStyle {
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
pub(crate) fn styled_text(text: &str) -> String {
    let parts = text.split(MARK.as_str()).enumerate();
    parts.fold(String::with_capacity(text.len()), |mut shown, (at, part)| {
        match at % 2 {
            0 => shown.push_str(&text::harmless_text(part)),
            _ => shown.push_str(part),
        }
        shown
    })
}

// What text is written on: its width, its characters, its styles, its lines.

/// The characters that it is made of.
#[derive(Clone, Copy, Debug)]
pub struct Glyphs {
    /// Blocks of the causes: neighbours differ, also without colours.
    pub(crate) blocks: [char; 4],
    /// Start of a task.
    pub(crate) bar: char,
    /// An interrupt or a softirq.
    pub(crate) mark: char,
    pub(crate) lost: char,
    /// From due to ran: left end, line, right end.
    pub(crate) arrow: [char; 3],
    /// Below a step: its name follows, or ends there.
    pub(crate) steps: [char; 2],
}

impl Glyphs {
    pub const BLOCKS: Self = Self {
        blocks: ['█', '▒', '▓', '░'],
        bar: '▏',
        mark: '▀',
        lost: '×',
        arrow: ['├', '─', '┤'],
        steps: ['└', '┘'],
    };
    /// For terminals that know nothing else.
    pub const ASCII: Self = Self {
        blocks: ['#', '=', '%', '-'],
        bar: '|',
        mark: '^',
        lost: 'x',
        arrow: ['|', '-', '|'],
        steps: ['`', '\''],
    };
}

/// Where it is shown.
#[derive(Clone, Copy, Debug)]
pub struct TextPage {
    /// Columns of the terminal.
    pub columns: usize,
    /// What it can show.
    pub glyphs: Glyphs,
}

/// One line: tool, host, kernel, CPUs, preemption model.
pub(crate) fn title_line(to: &mut Terminal, machine: &MachineSummary) -> io::Result<()> {
    let or_unknown = |value: &Option<String>| value.clone().unwrap_or_else(|| "?".into());
    let (kernel, arch) = (or_unknown(&machine.kernel), or_unknown(&machine.arch));
    let mut parts = vec![or_unknown(&machine.hostname), format!("Linux {kernel} {arch}")];
    parts.extend(cpus(machine));
    parts.push(machine.preemption.clone());
    let inside = [&machine.hypervisor, &machine.container].into_iter().flatten();
    parts.extend(inside.map(|inside| format!("in {inside}")));
    parts.extend(machine.bare_metal.then(|| "bare metal".into()));
    let head = format!("{BOLD}rtproof {}{BOLD:#}   ", env!("CARGO_PKG_VERSION"));
    wrapped(to, &head, "         ", &parts.join(", "))?;
    let mut notes = machine.copy.iter().flat_map(|copy| &copy.notes);
    notes.try_for_each(|note| wrapped(to, &format!("{BOLD}Copy{BOLD:#}     "), "         ", note))
}

/// CPUs: how many, of which kinds, on how many nodes.
fn cpus(machine: &MachineSummary) -> Vec<String> {
    let offline = machine.cpus_offline.as_ref().filter(|offline| !offline.is_empty());
    let mut parts: Vec<String> = match (machine.cpus_present, offline) {
        (Some(present), Some(offline)) => {
            let are = if offline.len() == 1 { "is" } else { "are" };
            vec![format!("{} of {present} CPUs {are} offline: {offline}", offline.len())]
        }
        _ => machine.cpus_online.map(|cpus| units::count(cpus, "CPU")).into_iter().collect(),
    };
    if let kinds @ [_, _, ..] = &machine.cpu_kinds[..] {
        let counts: Vec<String> = kinds.iter().map(u32::to_string).collect();
        parts.push(format!("{} of {} kinds", counts.join(" + "), kinds.len()));
    }
    parts.extend(machine.nodes.filter(|&nodes| nodes > 1).map(|nodes| format!("{nodes} nodes")));
    parts
}

/// Most columns of tables and pictures.
pub const WIDTH_MAX: usize = 200;

/// Most columns of prose.
const PROSE_MAX: usize = 120;

/// Fewest: prefixes alone take half of it.
pub const WIDTH_MIN: usize = 60;

/// Text that is written for a terminal or a file.
#[derive(Clone, Debug)]
pub struct Terminal {
    /// Where it is shown.
    pub page: TextPage,
    bytes: Vec<u8>,
    /// Range of the answer block in it.
    answer: Option<std::ops::Range<usize>>,
}

impl Terminal {
    pub const fn new(columns: usize, glyphs: Glyphs) -> Self {
        Self { page: TextPage { columns, glyphs }, bytes: Vec::new(), answer: None }
    }

    /// Writes the answer block: what is left when only the answer is wanted. The first one counts.
    ///
    /// # Errors
    /// Those of `show`.
    pub fn in_answer(&mut self, show: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        let from = self.bytes.len();
        show(self)?;
        self.answer.get_or_insert(from..self.bytes.len());
        Ok(())
    }

    /// The answer block as [`Terminal::shown`] has it; `None`: none was written.
    pub fn answer(&self) -> Option<String> {
        let bytes = self.bytes.get(self.answer.clone()?)?;
        Some(styled_text(&String::from_utf8_lossy(bytes)))
    }

    /// Lines that are written.
    pub fn lines(&self) -> usize {
        self.bytes.iter().filter(|&&byte| byte == b'\n').count()
    }

    /// What is written, with colours; colours and hidden characters of others are written out.
    pub fn shown(&self) -> String {
        styled_text(&String::from_utf8_lossy(&self.bytes))
    }
}

impl Write for Terminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes text broken into lines: `first` before the first, `next` before the others. Prefixes may
/// hold colours, which take no room. Groups of digits stay together.
pub fn wrapped(to: &mut Terminal, first: &str, next: &str, text: &str) -> io::Result<()> {
    wrapped_in(to.page.columns.min(PROSE_MAX), to, first, next, text)
}

/// Writes rows in columns, the first row as the head of values in µs. Columns of `spare`, by their
/// heads, are left out, the first one first, until the rest fits.
pub(crate) fn table(
    to: &mut Terminal,
    indent: &str,
    rows: &[Vec<String>],
    spare: &[&str],
) -> io::Result<()> {
    columns_of(to, indent, "   µs", rows, spare)
}

/// The same of values in several units.
pub(crate) fn columns(to: &mut Terminal, indent: &str, rows: &[Vec<String>]) -> io::Result<()> {
    columns_of(to, indent, "", rows, &[])
}

fn columns_of(
    to: &mut Terminal,
    indent: &str,
    unit: &str,
    rows: &[Vec<String>],
    spare: &[&str],
) -> io::Result<()> {
    // A line end in a name would begin a line that says anything.
    let row = |row: &Vec<String>| row.iter().map(|cell| text::harmless_line(cell)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(row).collect();
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let shown = fitting(&rows[0], &widths, spare, to.page.columns.saturating_sub(indent.len() + 5));
    for (i, row) in rows.iter().enumerate() {
        let (style, unit) = if i == 0 { (DIM, unit) } else { (TextStyle::PLAIN, "") };
        write!(to, "{indent}{style}{:<w$}", row[0], w = widths[0])?;
        for at in shown.iter().copied().skip(1) {
            write!(to, "  {:>width$}", row[at], width = widths[at])?;
        }
        writeln!(to, "{style:#}{unit}")?;
    }
    Ok(())
}

/// Columns that are shown of a table.
pub(crate) fn fitting(
    heads: &[String],
    widths: &[usize],
    spare: &[&str],
    columns: usize,
) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..heads.len()).collect();
    for name in spare {
        let wide: usize = shown.iter().map(|&at| widths[at] + 2).sum();
        if wide > columns + 2 {
            shown.retain(|&at| heads[at] != *name);
        }
    }
    shown
}

/// Whether a word is a unit, alone or before a mark.
fn is_unit(word: &str) -> bool {
    ["%", "ns", "µs", "ms", "s"].contains(&word.trim_end_matches([',', '.', ';', ':', ')']))
}

/// The same, so many columns wide.
pub(crate) fn wrapped_in(
    columns: usize,
    to: &mut dyn Write,
    first: &str,
    next: &str,
    text: &str,
) -> io::Result<()> {
    let length = |prefix: &str| anstream::adapter::strip_str(prefix).to_string().chars().count();
    let (mut prefix, mut room) = (first, columns.saturating_sub(length(first)));
    let mut line = String::new();
    let mut used = 0;
    let mut words = text.split([' ', '\n']).filter(|word| !word.is_empty()).peekable();
    while let Some(first) = words.next() {
        let mut word = first.to_owned();
        // A number keeps its unit.
        while let Some(unit) = words.next_if(|next| is_unit(next)) {
            word.push(' ');
            word.push_str(unit);
        }
        let word_length = length(&word);
        if used > 0 && used + 1 + word_length > room {
            writeln!(to, "{prefix}{line}")?;
            (prefix, room) = (next, columns.saturating_sub(length(next)));
            line.clear();
            used = 0;
        }
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(&word);
        used += word_length;
    }
    writeln!(to, "{prefix}{line}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_our_styles_stay() {
        let text =
            format!("{BOLD}rtproof{BOLD:#} µs\n\tlate {BAD}BAD{BAD:#}{}\n", TextStyle::PLAIN);
        let expected = "\u{1b}[1mrtproof\u{1b}[0m µs\n\tlate \u{1b}[1m\u{1b}[31mBAD\u{1b}[0m\n";
        assert_eq!(styled_text(&text), expected);
    }

    #[test]
    fn sequences_of_others_are_written_out() {
        let others = "\u{1b}[8mhidden\u{1b}[0m\u{202e}\u{1b}[2J";
        let expected = "\\x1b[8mhidden\\x1b[0m\\u{202e}\\x1b[2J";
        assert_eq!(styled_text(others), expected);
        let text = styled_text(&format!("{BAD}{others}{BAD:#}"));
        assert_eq!(text, format!("\u{1b}[1m\u{1b}[31m{expected}\u{1b}[0m"));
    }
}

#[cfg(test)]
mod sheet_tests {
    use super::*;

    #[test]
    fn a_number_keeps_its_unit_at_the_end_of_a_line() {
        let mut out = Vec::new();
        wrapped_in(24, &mut out, "", "  ", "higher by +83 % to +96 %, (67.5 → 128 µs) in 10 s.")
            .expect("memory");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text, "higher by +83 % to\n  +96 %, (67.5 → 128 µs)\n  in 10 s.\n");
    }
}
