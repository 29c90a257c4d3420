//! The causes of a run's spikes by class, culprits beneath, on less than a screen.

use std::io::{self, Write};

use rtproof_host::harmless;
use rtproof_judge::{
    causes::{CauseRow, Class, Spikes, classes},
    units::grouped,
};

use super::super::timeline::fitted;
use crate::{
    spike::{percent, us_number},
    text::sheet::{BOLD, DIM, Ink, Page},
};

const CLASSES_MAX: usize = 5;
/// Most culprits of a class.
const CULPRITS_MAX: usize = 3;
/// Classes of which a fix is shown.
const FIXES_MAX: usize = 3;
const HEADS: [&str; 4] = ["share", "certain", "spikes", "worst µs"];

/// A line of the table.
struct Line {
    name: String,
    /// Who did it, where that belongs to the same line and there is room.
    who: String,
    cells: [String; 4],
    tone: Ink,
    fix: Option<String>,
}

impl Page {
    /// The causes as a table. `share`: of the lateness of all explained spikes; `certain`: of that,
    /// what cannot have been anything else.
    pub(super) fn causes(self, to: &mut dyn Write, spikes: &Spikes) -> io::Result<()> {
        let classes = classes(spikes);
        if classes.is_empty() {
            return Ok(());
        }
        let shown = &classes[..classes.len().min(CLASSES_MAX)];
        let mut lines = vec![Line {
            name: String::new(),
            who: String::new(),
            cells: HEADS.map(String::from),
            tone: DIM,
            fix: None,
        }];
        for (i, class) in shown.iter().enumerate() {
            lines.extend(of_class(class, spikes.sum_ns, i < FIXES_MAX));
        }
        let wide =
            |column: usize| lines.iter().map(|line| line.cells[column].chars().count()).max();
        let widths: Vec<usize> = (0..HEADS.len()).map(|column| wide(column).unwrap_or(0)).collect();
        let room = self.columns.saturating_sub(2 + widths.iter().sum::<usize>() + HEADS.len() * 2);
        for line in &lines {
            let (tone, name, who) = (line.tone, &line.name, harmless::line(&line.who));
            let both = if who.is_empty() { name.clone() } else { format!("{name}: {who}") };
            let is_whole = both.chars().count() <= room;
            let first = fitted(if is_whole { &both } else { name }, room);
            write!(to, "  {tone}{first:<room$}{tone:#}")?;
            for (text, width) in line.cells.iter().zip(&widths) {
                write!(to, "  {text:>width$}")?;
            }
            writeln!(to)?;
            if !is_whole && !who.is_empty() {
                writeln!(to, "    {}", fitted(&who, self.columns - 4))?;
            }
            if let Some(fix) = &line.fix {
                self.wrapped(to, &format!("      {DIM}fix:{DIM:#} "), "           ", fix)?;
            }
        }
        let rest = &classes[shown.len()..];
        if !rest.is_empty() {
            let sum_ns = rest.iter().map(|class| class.sum_ns).sum();
            let of = percent(sum_ns, spikes.sum_ns);
            let kinds = if rest.len() == 1 { "kind of cause" } else { "kinds of cause" };
            writeln!(to, "  {DIM}and {} more {kinds}, {of}{DIM:#}", rest.len())?;
        }
        Ok(())
    }
}

/// The lines of a class: one where one culprit is all of it.
fn of_class(class: &Class<'_>, all_ns: u64, with_fix: bool) -> Vec<Line> {
    let cells = |sum_ns, certain_ns, count: Option<u64>, worst_ns| {
        let count = count.map(grouped).unwrap_or_default();
        [percent(sum_ns, all_ns), percent(certain_ns, all_ns), count, us_number(worst_ns)]
    };
    // The first there is.
    let fix = || class.rows.iter().find_map(|row| row.remedies.first()).map(ToString::to_string);
    let fix = if with_fix { fix() } else { None };
    let (certain_ns, worst_ns) = (class.certain_ns(), class.worst_ns);
    if let [row] = *class.rows.as_slice() {
        let cells = cells(class.sum_ns, certain_ns, Some(row.count), worst_ns);
        let (name, who) = (class.title.to_owned(), who(row));
        return vec![Line { name, who, cells, tone: BOLD, fix }];
    }
    let cells_of_class = cells(class.sum_ns, certain_ns, None, worst_ns);
    let line =
        |name: String, cells, tone| Line { name, who: String::new(), cells, tone, fix: None };
    let mut lines = vec![line(class.title.to_owned(), cells_of_class, BOLD)];
    // One that is left is shown rather than counted.
    let shown = if class.rows.len() == CULPRITS_MAX + 1 { CULPRITS_MAX + 1 } else { CULPRITS_MAX };
    lines.extend(class.rows.iter().take(shown).map(|row| {
        let who = who(row);
        let who = if who.is_empty() { "(no culprit)".to_owned() } else { who };
        let certain_ns = row.sum_ns.saturating_sub(row.ambiguous_ns);
        let cells = cells(row.sum_ns, certain_ns, Some(row.count), row.worst_ns);
        line(format!("  {}", harmless::line(&who)), cells, Ink::PLAIN)
    }));
    let rest = class.rows.get(shown..).unwrap_or_default();
    if !rest.is_empty() {
        let sum = |of: fn(&CauseRow) -> u64| rest.iter().map(|row| of(row)).sum::<u64>();
        let (sum_ns, ambiguous_ns) = (sum(|row| row.sum_ns), sum(|row| row.ambiguous_ns));
        let worst_ns = rest.iter().map(|row| row.worst_ns).max().unwrap_or(0);
        let name = format!("  {} more", grouped(rest.len() as u64));
        let cells = cells(sum_ns, sum_ns.saturating_sub(ambiguous_ns), None, worst_ns);
        lines.push(line(name, cells, DIM));
    }
    if let Some(last) = lines.last_mut() {
        last.fix = fix;
    }
    lines
}

/// Culprit and what it belongs to.
fn who(row: &CauseRow) -> String {
    match (&row.owner, row.culprit.is_empty()) {
        (Some(owner), false) => format!("{} ({owner})", row.culprit),
        (Some(owner), true) => owner.clone(),
        (None, _) => row.culprit.clone(),
    }
}
