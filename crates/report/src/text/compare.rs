//! Runs side by side as text: what the answer rests on, the table, what else differs, why they were
//! late.

use std::io::{self, Write};

use rtproof_judge::{
    compare::{Against, Comparison, Design, Line, Unit},
    units,
};

use crate::{
    compare as words,
    text::sheet::{BOLD, DIM, Sheet, WARN, wrapped},
};

/// Facts and causes shown, at most.
const SHOWN: usize = 12;
/// Columns before the text.
const MARGIN: &str = "         ";

pub fn comparison(to: &mut Sheet, comparison: &Comparison) -> io::Result<()> {
    reasons(to, comparison)?;
    match comparison.against.as_slice() {
        [one] => two(to, comparison, one)?,
        _ => many(to, comparison)?,
    }
    super::reference(to, &comparison.reference)?;
    levels(to, comparison)?;
    causes(to, comparison)?;
    facts(to, comparison)?;
    for doubt in comparison.doubts.iter().take(SHOWN) {
        wrapped(to, &format!("{MARGIN}{WARN}!{WARN:#} "), "           ", doubt)?;
    }
    more(to, comparison.doubts.len(), "doubt", "--json or --html")
}

fn reasons(to: &mut Sheet, comparison: &Comparison) -> io::Result<()> {
    let lines: Vec<String> = match comparison.against.as_slice() {
        [one] => one.reasons.clone(),
        many => many.iter().map(words::own).collect(),
    };
    for (at, line) in lines.iter().enumerate() {
        let head = if at == 0 { format!("{BOLD}Compare{BOLD:#}  ") } else { MARGIN.into() };
        wrapped(to, &head, MARGIN, &format!("{DIM}{line}{DIM:#}"))?;
    }
    Ok(())
}

/// Two runs or groups: statistics as rows.
fn two(to: &mut Sheet, comparison: &Comparison, one: &Against) -> io::Result<()> {
    let label = |at: usize| comparison.groups.get(at).map_or("", |group| group.label.as_str());
    let tested = comparison.design == Design::Paired;
    let mut heads = vec![
        String::new(),
        fitting(label(0), to.page.columns),
        fitting(label(one.group), to.page.columns),
        if tested { "of pairs" } else { "change" }.into(),
        format!("{} interval", words::percent(comparison.wish.confidence)),
    ];
    if tested {
        heads.extend(["p (Holm)".into(), String::new()]);
    }
    let mut rows = vec![heads];
    for line in &comparison.table {
        let mut row = vec![line.statistic.clone()];
        row.extend(line.cells.iter().map(|cell| words::cell(line.unit, cell)));
        if let Some(change) = one.changes.iter().find(|c| c.statistic == line.statistic) {
            row.extend([words::change(change), words::interval(change)]);
            if tested {
                let p = change.p_adjusted.map_or_else(String::new, words::p_value);
                row.extend([p, words::decided(change).into()]);
            }
        }
        rows.push(row);
    }
    grid(to, &rows, &[5, 4])?;
    if tested {
        let note = "values: medians of the runs. of pairs: median of the ratios of pairs, which is \
                    not the ratio of these medians.";
        wrapped(to, &format!("  {DIM}"), "  ", &format!("{note}{DIM:#}"))?;
    }
    Ok(())
}

/// A name, cut so that two and their numbers fit into a narrow terminal.
fn fitting(name: &str, width: usize) -> String {
    let room = if width < 80 { 14 } else { 24 };
    match name.chars().count() <= room {
        true => name.into(),
        false => name.chars().take(room - 1).chain(['…']).collect(),
    }
}

/// Many runs: runs as rows, each with its change of p99.9 against the first.
fn many(to: &mut Sheet, comparison: &Comparison) -> io::Result<()> {
    let shown = ["p50", "p99", "p99.9", "p99.99", "p99.999", "max", "missed"];
    let lines: Vec<&Line> = shown
        .iter()
        .filter_map(|name| comparison.table.iter().find(|line| line.statistic == *name))
        .collect();
    let mut heads = vec![String::new()];
    heads.extend(lines.iter().map(|line| line.statistic.clone()));
    heads.push("wake-ups".into());
    let mut rows = vec![heads];
    for (at, group) in comparison.groups.iter().enumerate() {
        let mut row = vec![fitting(&group.label, to.page.columns)];
        for line in &lines {
            row.push(line.cells.get(at).map_or_else(String::new, |cell| match line.unit {
                Unit::Ns => words::cell(line.unit, cell).replace(" µs", ""),
                _ => words::cell(line.unit, cell),
            }));
        }
        row.push(units::grouped(group.runs.iter().map(|run| run.sampled).sum()));
        rows.push(row);
    }
    grid(to, &rows, &[8, 7, 1, 2, 5])?;
    writeln!(to, "{MARGIN}{DIM}µs unless said otherwise{DIM:#}")
}

/// Rows under each other, the first one dim; where the terminal is narrow, columns are left out in
/// the order of `expendable`.
fn grid(to: &mut Sheet, rows: &[Vec<String>], expendable: &[usize]) -> io::Result<()> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let wide = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..count).map(|column| wide(column).unwrap_or(0)).collect();
    let mut columns: Vec<usize> = (0..count).collect();
    let needed =
        |columns: &[usize]| columns.iter().map(|&column| widths[column] + 2).sum::<usize>();
    for column in expendable {
        if needed(&columns) + 2 > to.page.columns {
            columns.retain(|other| other != column);
        }
    }
    for (at, row) in rows.iter().enumerate() {
        let mut line = String::from("  ");
        for &column in &columns {
            let cell = row.get(column).map_or("", String::as_str);
            let pad = " ".repeat(widths[column] - cell.chars().count());
            line += &if column == 0 { format!("{cell}{pad}") } else { format!("  {pad}{cell}") };
        }
        match at {
            0 => writeln!(to, "{DIM}{}{DIM:#}", line.trim_end())?,
            _ => writeln!(to, "{}", line.trim_end())?,
        }
    }
    Ok(())
}

/// Where the level of each run changes: a line each.
fn levels(to: &mut Sheet, comparison: &Comparison) -> io::Result<()> {
    // Of files without times there is one thing to say, once.
    if comparison.levels.iter().all(|of| !of.looked && of.changes.is_empty()) {
        return Ok(());
    }
    for (at, of) in comparison.levels.iter().take(SHOWN).enumerate() {
        let head = if at == 0 { format!("{BOLD}Levels{BOLD:#}   ") } else { MARGIN.into() };
        wrapped(to, &head, "           ", &format!("{}: {}", of.run, of.text))?;
    }
    more(to, comparison.levels.len(), "run", "--json or --html")
}

fn causes(to: &mut Sheet, comparison: &Comparison) -> io::Result<()> {
    for (at, line) in comparison.causes.iter().take(SHOWN).enumerate() {
        let head = if at == 0 { format!("{BOLD}Late{BOLD:#}     ") } else { MARGIN.into() };
        let cells = comparison.groups.iter().zip(&line.cells).map(|(group, cell)| match cell {
            None => format!("{} not explained", group.label),
            Some(cell) if cell.count == 0 => format!("{} never", group.label),
            Some(cell) => {
                format!(
                    "{} {}, worst {}",
                    group.label,
                    units::times(cell.count),
                    units::ns(cell.worst_ns)
                )
            }
        });
        let cells: Vec<String> = cells.collect();
        let who =
            if line.culprit.is_empty() { String::new() } else { format!(" ({})", line.culprit) };
        wrapped(to, &head, "           ", &format!("{}{who}: {}", line.title, cells.join("; ")))?;
    }
    more(to, comparison.causes.len(), "cause", "--json or --html")
}

fn facts(to: &mut Sheet, comparison: &Comparison) -> io::Result<()> {
    for (at, line) in comparison.facts.iter().take(SHOWN).enumerate() {
        let head = if at == 0 { format!("{BOLD}Differs{BOLD:#}  ") } else { MARGIN.into() };
        let values: Vec<&str> =
            line.values.iter().map(|value| value.as_deref().unwrap_or("not told")).collect();
        wrapped(to, &head, "           ", &format!("{}: {}", line.key, values.join(" | ")))?;
    }
    more(to, comparison.facts.len(), "fact", "--json or --html")
}

fn more(to: &mut Sheet, count: usize, noun: &str, where_to: &str) -> io::Result<()> {
    match count.saturating_sub(SHOWN) {
        0 => Ok(()),
        more => {
            let noun = units::count(more, noun);
            writeln!(to, "{MARGIN}{DIM}and {noun} more: {where_to}{DIM:#}")
        }
    }
}
