//! A comparison of runs, as text and as a page.

pub use super::compare_pictures::{ComparePage, GroupFigure};

use std::io::{self, Write};

use maud::{Markup, html};

use rtproof_judge::{
    compare::{
        Against, CauseCell, CauseLine, CompareAnswer, CompareDesign, Comparison, Direction,
        RunSummary, StatisticCell, StatisticChange, StatisticLine, ValueUnit,
    },
    units,
};
use rtproof_results::signed;

use super::summary;
use crate::html::NONE;
use crate::text::{BOLD, DIM, Terminal, WARN, wrapped};

// What text and page of a comparison share: numbers in words, and how it was made.

/// A value with its unit; a dash where there is none.
pub(crate) fn cell(unit: ValueUnit, cell: &StatisticCell) -> String {
    match cell.value {
        None => "–".into(),
        Some(value) => format!("{}{}", at_least(cell.at_least), with_unit(unit, value)),
    }
}

/// Prefix of a value that may be larger.
pub(crate) const fn at_least(it_is: bool) -> &'static str {
    if it_is { "≥ " } else { "" }
}

fn with_unit(unit: ValueUnit, value: f64) -> String {
    match unit {
        ValueUnit::Ns => units::ns(value.max(0.0).round() as u64),
        ValueUnit::Share => share(value),
        ValueUnit::Number => number(value),
    }
}

fn share(value: f64) -> String {
    if value > 0.0 { units::probability(value) } else { "0".into() }
}

fn number(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

/// A value without its unit: microseconds, a share, a number.
pub(crate) fn bare(unit: ValueUnit, value: f64) -> String {
    match unit {
        ValueUnit::Ns => units::us_column(value.max(0.0).round() as u64),
        ValueUnit::Share => share(value),
        ValueUnit::Number => number(value),
    }
}

/// A ratio as a change; a dash where there is none.
pub(crate) fn change(change: &StatisticChange) -> String {
    match (change.ratio, change.from.zip(change.to)) {
        (Some(ratio), _) => ratio_text(ratio),
        (None, Some((from, to))) if from == to && change.direction != Direction::Unknown => {
            "0 %".into()
        }
        _ => "–".into(),
    }
}

fn ratio_text(ratio: f64) -> String {
    if ratio > 11.0 {
        return format!("{ratio:.0} times");
    }
    signed((ratio * 1e6).round() as u64)
}

/// The interval of a change, or its range over the tenths of both runs.
pub(crate) fn interval(change: &StatisticChange) -> String {
    match (change.low, change.high) {
        (Some(low), Some(high)) => format!("{} to {}", ratio_text(low), ratio_text(high)),
        (Some(low), None) => format!("{} or more", ratio_text(low)),
        (None, Some(high)) => format!("{} or less", ratio_text(high)),
        (None, None) if change.ratio.is_some() => "none".into(),
        (None, None) => String::new(),
    }
}

/// The sentence of one among many, without what all of them begin with.
pub(crate) fn own(one: &Against) -> String {
    const BEGIN: &str = "In these runs ";
    match (one.sentence.find(BEGIN), &one.pairs) {
        (Some(at), None) => capital(&one.sentence[at + BEGIN.len()..]),
        _ => one.sentence.clone(),
    }
}

/// With a capital letter; names keep theirs.
pub(crate) fn capital(text: &str) -> String {
    match text.strip_prefix("with ") {
        Some(rest) => format!("With {rest}"),
        None if text.starts_with("cannot") || text.starts_with("no ") => first_capital(text),
        None => match text {
            "better" | "worse" => first_capital(text),
            other => other.to_owned(),
        },
    }
}

fn first_capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

pub(crate) fn p_value(p: f64) -> String {
    rtproof_results::p_value(Some((p * 1e9).round() as u64))
}

/// A share as percent.
pub(crate) fn percent(share: f64) -> String {
    rtproof_results::percent(share)
}

/// What a change decides.
pub(crate) fn decided(change: &StatisticChange) -> &'static str {
    match (change.answer, change.differs) {
        (Some(CompareAnswer::CannotDecide), Direction::Lower) => "lower, perhaps within the margin",
        (Some(CompareAnswer::CannotDecide), Direction::Higher) => {
            "higher, perhaps within the margin"
        }
        (answer, _) => answer.map_or("", CompareAnswer::text),
    }
}

/// How the comparison was made, term by term.
pub(crate) fn method_terms(comparison: &Comparison) -> Vec<(&'static str, String)> {
    let request = &comparison.request;
    let mut lines = vec![(
        "difference",
        format!(
            "Up to {} up or down it does not matter; intervals of pairs are at {} confidence.",
            percent(request.margin),
            percent(request.confidence)
        ),
    )];
    match comparison.design {
        CompareDesign::Single => lines.push((
            "single runs",
            "One run of each, one after the other. Whatever else changed meanwhile is in the \
             difference too, so nothing is decided. Ranges are over the tenths of the runs: from \
             the lowest of one over the highest of the other to the other way round."
                .into(),
        )),
        CompareDesign::Paired => lines.push((
            "pairs",
            "Runs that follow each other in time, one of each kind, are a pair; what drifts is in \
             both. \"change\" is the median of the ratios of pairs (Hodges and Lehmann), with the \
             exact interval of the signed-rank test. The values of the groups are the medians of \
             their runs: their ratio is another number. p values are those of the exact \
             sign-flip test of no difference, after Holm over p99.9, which has most of the level \
             first, the latest wake-up and missed ones. Better and worse are by more than the \
             margin: the same test of a difference as large as the margin. No difference is \
             within the margin by two such tests, and no pair off by three margins. All of them \
             hold where a coin decided which run of a pair came first, and no run changes the one \
             after it; where one kind always came first nothing is decided. Other statistics decide \
             nothing."
                .into(),
        )),
    }
    lines.push((
        "quantile",
        "The value of rank ceil(p n): the upper edge of its bucket, at most 0.8 % wide; of other \
         tools the value as they write it, which rounds down."
            .into(),
    ));
    lines.push((
        "largest value",
        "Exact. Compared where both numbers of wake-ups agree within 2 %: of two like runs the \
         longer one has the larger maximum by itself."
            .into(),
    ));
    lines
}

// Runs side by side as one HTML file: the answer first, then the numbers, the pictures, what
// differs between the runs and why they were late, and every run and thread by itself.

impl ComparePage<'_> {
    /// The page as a document.
    pub fn render(&self) -> String {
        let names: Vec<&str> = self.groups.iter().map(|group| group.label.as_str()).collect();
        let title = match names.as_slice() {
            [a, b] => format!("{a} and {b}"),
            names => format!("{} runs", names.len()),
        };
        let body = html! {
            a.skip href="#verdict" { "Skip to the answer" }
            @for banner in &self.banners { (crate::html::banner(banner)) }
            header {
                p.tool { "rtproof · comparison" }
                h1 { (title) }
                p { (self.about()) }
            }
            main {
                (verdict_section(self))
                (self.contents())
                (super::compare_pictures::pictures_section(self))
                (super::compare_pictures::over_section(self))
                (summary::reference_section(&self.comparison.reference))
                (numbers_section(self.comparison))
                (causes_html(self.comparison))
                (facts_html(self))
                (crate::html::folded("Runs and threads", &runs_section(self.comparison)))
                (crate::html::folded("How it was compared", &method_section(self.comparison)))
            }
            footer {
                p {
                    "Made by rtproof " (env!("CARGO_PKG_VERSION")) ". This file holds the "
                    "whole comparison as JSON in the element " code { "rtproof-compare" }
                    "."
                }
            }
            (crate::html::data("rtproof-compare", self.comparison))
            (crate::html::script())
        };
        crate::html::page(&format!("{title} compared"), Some(env!("CARGO_PKG_VERSION")), &body)
    }

    /// Machines and tools in a line.
    fn about(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        let runs = || self.comparison.groups.iter().flat_map(|group| &group.runs);
        for run in runs() {
            let place = run.machine.as_ref().and_then(|place| place.hostname.clone());
            for part in place.into_iter().chain([run.tool.clone(), run.workload.clone()]) {
                if !part.is_empty() && !parts.contains(&part) && parts.len() < 6 {
                    parts.push(part);
                }
            }
        }
        parts.join(" · ")
    }

    fn contents(&self) -> Markup {
        let mut sections =
            vec![("pictures", "Pictures"), ("time", "Over time"), ("numbers", "Numbers")];
        if !self.comparison.reference.is_empty() {
            sections.insert(2, ("reference", "Reference"));
        }
        if !self.comparison.causes.is_empty() {
            sections.push(("causes", "Why they were late"));
        }
        sections.push(("facts", "What else differs"));
        sections.extend([("runs", "Runs and threads"), ("method", "How it was compared")]);
        crate::html::contents(sections.into_iter())
    }
}

// Runs side by side as text: what the answer rests on, the table, what else differs, why they were
// late.

/// Facts and causes shown, at most.
const SHOWN_TEXT: usize = 12;

/// Columns before the text.
const MARGIN: &str = "         ";

pub fn comparison(to: &mut Terminal, comparison: &Comparison) -> io::Result<()> {
    reasons(to, comparison)?;
    match comparison.against.as_slice() {
        [one] => two_text(to, comparison, one)?,
        _ => many_text(to, comparison)?,
    }
    crate::page::reference(to, &comparison.reference)?;
    levels(to, comparison)?;
    causes_text(to, comparison)?;
    facts_text(to, comparison)?;
    for doubt in comparison.doubts.iter().take(SHOWN_TEXT) {
        wrapped(to, &format!("{MARGIN}{WARN}!{WARN:#} "), "           ", doubt)?;
    }
    more(to, comparison.doubts.len(), "doubt", "--json or --html")
}

fn reasons(to: &mut Terminal, comparison: &Comparison) -> io::Result<()> {
    let lines: Vec<String> = match comparison.against.as_slice() {
        [one] => one.reasons.clone(),
        many_text => many_text.iter().map(own).collect(),
    };
    for (at, line) in lines.iter().enumerate() {
        let head = if at == 0 { format!("{BOLD}Compare{BOLD:#}  ") } else { MARGIN.into() };
        wrapped(to, &head, MARGIN, &format!("{DIM}{line}{DIM:#}"))?;
    }
    Ok(())
}

/// Two runs or groups: statistics as rows.
fn two_text(to: &mut Terminal, comparison: &Comparison, one: &Against) -> io::Result<()> {
    let label = |at: usize| comparison.groups.get(at).map_or("", |group| group.label.as_str());
    let tested = comparison.design == CompareDesign::Paired;
    let mut heads = vec![
        String::new(),
        fitting(label(0), to.page.columns),
        fitting(label(one.group), to.page.columns),
        if tested { "of pairs" } else { "change" }.into(),
        range_name(comparison),
    ];
    if tested {
        heads.extend(["p (Holm)".into(), String::new()]);
    }
    let mut rows = vec![heads];
    for line in &comparison.table {
        let mut row = vec![line.statistic.clone()];
        row.extend(line.cells.iter().map(|cell| self::cell(line.unit, cell)));
        if let Some(change) = one.changes.iter().find(|c| c.statistic == line.statistic) {
            row.extend([self::change(change), interval(change)]);
            if tested {
                let p = change.p_adjusted.map_or_else(String::new, p_value);
                row.extend([p, decided(change).into()]);
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
fn many_text(to: &mut Terminal, comparison: &Comparison) -> io::Result<()> {
    let shown = ["p50", "p99", "p99.9", "p99.99", "p99.999", "max", "missed"];
    let lines: Vec<&StatisticLine> = shown
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
                ValueUnit::Ns => self::cell(line.unit, cell).replace(" µs", ""),
                _ => self::cell(line.unit, cell),
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
fn grid(to: &mut Terminal, rows: &[Vec<String>], expendable: &[usize]) -> io::Result<()> {
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
fn levels(to: &mut Terminal, comparison: &Comparison) -> io::Result<()> {
    // Of files without times there is one thing to say, once.
    if comparison.levels.iter().all(|of| !of.searched && of.changes.is_empty()) {
        return Ok(());
    }
    for (at, of) in comparison.levels.iter().take(SHOWN_TEXT).enumerate() {
        let head = if at == 0 { format!("{BOLD}Levels{BOLD:#}   ") } else { MARGIN.into() };
        wrapped(to, &head, "           ", &format!("{}: {}", of.run, of.text))?;
    }
    more(to, comparison.levels.len(), "run", "--json or --html")
}

fn causes_text(to: &mut Terminal, comparison: &Comparison) -> io::Result<()> {
    for (at, line) in comparison.causes.iter().take(SHOWN_TEXT).enumerate() {
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

fn facts_text(to: &mut Terminal, comparison: &Comparison) -> io::Result<()> {
    for (at, line) in comparison.facts.iter().take(SHOWN_TEXT).enumerate() {
        let head = if at == 0 { format!("{BOLD}Differs{BOLD:#}  ") } else { MARGIN.into() };
        let values: Vec<&str> =
            line.values.iter().map(|value| value.as_deref().unwrap_or("not told")).collect();
        wrapped(to, &head, "           ", &format!("{}: {}", line.key, values.join(" | ")))?;
    }
    more(to, comparison.facts.len(), "fact", "--json or --html")
}

fn more(to: &mut Terminal, count: usize, noun: &str, where_to: &str) -> io::Result<()> {
    match count.saturating_sub(SHOWN_TEXT) {
        0 => Ok(()),
        more => {
            let noun = units::count(more, noun);
            writeln!(to, "{MARGIN}{DIM}and {noun} more: {where_to}{DIM:#}")
        }
    }
}

// Besides the latencies: why wake-ups were late, and what differs between the runs.

/// Lines shown; of facts, the others are folded away.
const SHOWN_HTML: usize = 25;

/// Causes in sight; the others are closed.
const FIRST: usize = 8;

/// Causes; nothing where no run has its spikes explained.
fn causes_html(comparison: &Comparison) -> Markup {
    if comparison.causes.is_empty() {
        return Markup::default();
    }
    let cell = |cell: Option<CauseCell>| match cell {
        None => html! { td.num { small { "not explained" } } },
        Some(CauseCell { count: 0, .. }) => html! { td.num { "0" } },
        Some(cell) => html! {
            td.num {
                (units::grouped(cell.count))
                small.interval {
                    (units::rate(cell.per_hour)) ", worst " (units::ns(cell.worst_ns))
                }
            }
        },
    };
    let table = |lines: &[CauseLine]| {
        html! {
            table {
                thead { tr {
                    th { "cause" } th { "who" }
                    @for group in &comparison.groups { th.num { (group.label) } }
                } }
                tbody {
                    @for line in lines {
                        tr {
                            th.wrap scope="row" { (line.title) }
                            td.wrap { (line.culprit) }
                            @for one in &line.cells { (cell(*one)) }
                        }
                    }
                }
            }
        }
    };
    let all = &comparison.causes[..comparison.causes.len().min(SHOWN_HTML)];
    let (first, rest) = all.split_at(all.len().min(FIRST));
    html! {
        section #causes {
            h2 { "Why they were late" }
            p { "Spikes in which each cause has a share. What is a spike follows each run." }
            (crate::html::scroll("Causes", &table(first)))
            @if !rest.is_empty() {
                details.more {
                    summary { (rest.len()) " more" }
                    (crate::html::scroll("More causes", &table(rest)))
                }
            }
        }
    }
}

fn facts_html(page: &ComparePage<'_>) -> Markup {
    let comparison = page.comparison;
    let unknown: Vec<&str> = page
        .groups
        .iter()
        .filter(|group| group.sides.iter().any(|side| !side.has_facts))
        .map(|group| group.label.as_str())
        .collect();
    let (first, rest) = comparison.facts.split_at(comparison.facts.len().min(SHOWN_HTML));
    html! {
        section #facts {
            h2 { "What else differs" }
            @if !unknown.is_empty() {
                p {
                    "Of " (unknown.join(", ")) " the settings of the machine are not known: what "
                    "other tools write does not hold them. A record of rtproof does."
                }
            }
            @if comparison.facts.is_empty() {
                @if unknown.len() < page.groups.len() {
                    p { "Nothing: all settings that rtproof reads are the same." }
                }
            } @else {
                (crate::html::scroll("Facts that differ", &table(comparison, first)))
                @if !rest.is_empty() {
                    details {
                        summary { (rest.len()) " more" }
                        (crate::html::scroll("More facts that differ", &table(comparison, rest)))
                    }
                }
            }
        }
    }
}

fn table(comparison: &Comparison, lines: &[rtproof_judge::compare::FactLine]) -> Markup {
    html! {
        table {
            thead { tr {
                th { "fact" }
                @for group in &comparison.groups { th { (group.label) } }
            } }
            tbody {
                @for line in lines {
                    tr {
                        th.wrap scope="row" { code { (line.key) } }
                        @for value in &line.values {
                            td.wrap { @match value {
                                Some(value) => (value),
                                None => small { "not told" },
                            } }
                        }
                    }
                }
            }
        }
    }
}

// The statistics as a table: values with their intervals, ratios, and what each rests on.

pub(super) fn numbers_section(comparison: &Comparison) -> Markup {
    html! {
        section #numbers {
            h2 { "Numbers" }
            p { (convention(comparison)) }
            @if let [one] = comparison.against.as_slice() {
                (crate::html::scroll("Statistics", &two_html(comparison, one)))
                (delta(one))
            } @else {
                (crate::html::scroll("Statistics", &many_html(comparison)))
            }
            details.numbers {
                summary { "What each number rests on" }
                (crate::html::scroll("What each number rests on", &rests_on(comparison)))
            }
        }
    }
}

/// What stands beside a change.
fn range_name(comparison: &Comparison) -> String {
    match comparison.design {
        CompareDesign::Single => "range of tenths".into(),
        CompareDesign::Paired => format!("{} interval", percent(comparison.request.confidence)),
    }
}

fn convention(comparison: &Comparison) -> String {
    let view = match comparison.view {
        rtproof_judge::compare::View::Deadline => {
            "Quantiles are over all wake-ups that were due: missed ones count with their own \
             lateness."
        }
        rtproof_judge::compare::View::Wake => "Quantiles are over the wake-ups that were measured.",
    };
    let drift = match comparison.design {
        CompareDesign::Single => " The ranges do not hold drift between the runs.",
        CompareDesign::Paired => "",
    };
    format!(
        "{view} Below each value stands its range, over the tenths of a run or over several runs. \
         Kurtosis is 3 of a normal distribution; it and skewness count outliers more than anything \
         else.{drift}"
    )
}

fn delta(one: &Against) -> Markup {
    let Some(delta) = one.cliffs_delta else { return Markup::default() };
    html! {
        p {
            "Of all pairs of wake-ups, one of each, this one's is later in "
            (percent(f64::midpoint(1.0, delta)))
            " (ties count half; Cliff’s delta " (format!("{delta:+.3}")) ")."
        }
    }
}

fn two_html(comparison: &Comparison, one: &Against) -> Markup {
    let label = |at: usize| comparison.groups.get(at).map_or("", |group| group.label.as_str());
    let tested = comparison.design == CompareDesign::Paired;
    let change = |line: &StatisticLine| one.changes.iter().find(|c| c.statistic == line.statistic);
    html! {
        table {
            thead { tr {
                td {}
                th.num { (label(0)) }
                th.num { (label(one.group)) }
                th.num { (if tested { "change of pairs" } else { "change" }) }
                th { (range_name(comparison)) }
                @if tested { th.num { "p (Holm)" } td {} }
            } }
            tbody {
                @for line in &comparison.table {
                    tr {
                        th scope="row" { (line.statistic) }
                        @for cell in &line.cells { (value(line, cell)) }
                        @match change(line) {
                            Some(change) => (change_cells(change, tested)),
                            None => { td {} td {} @if tested { td {} td {} } },
                        }
                    }
                }
            }
        }
    }
}

fn change_cells(change: &StatisticChange, tested: bool) -> Markup {
    html! {
        td.num { (self::change(change)) }
        @if change.ratio.is_none() && change.direction == Direction::Unknown {
            td.wrap { small { "not compared: " (change.method) } }
        } @else {
            td { (interval(change)) }
        }
        @if tested {
            td.num { (change.p_adjusted.map_or_else(|| NONE.into(), p_value)) }
            td { (decided(change)) }
        }
    }
}

/// Statistics as rows, groups as columns, the change against the first below each value.
fn many_html(comparison: &Comparison) -> Markup {
    html! {
        table {
            thead { tr {
                td {}
                @for group in &comparison.groups { th.num { (group.label) } }
            } }
            tbody {
                @for line in &comparison.table {
                    tr {
                        th scope="row" { (line.statistic) }
                        @for (at, cell) in line.cells.iter().enumerate() {
                            td.num {
                                (self::cell(line.unit, cell))
                                @if let Some(change) = found(comparison, at, &line.statistic) {
                                    small.interval { (self::change(change)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn found<'a>(
    comparison: &'a Comparison,
    group: usize,
    statistic: &str,
) -> Option<&'a StatisticChange> {
    let one = comparison.against.iter().find(|one| one.group == group)?;
    one.changes.iter().find(|change| change.statistic == statistic)
}

fn value(line: &StatisticLine, cell: &StatisticCell) -> Markup {
    let end = |value: Option<f64>| value.map_or_else(|| "?".into(), |v| bare(line.unit, v));
    let interval = (cell.low.is_some() || cell.high.is_some())
        .then(|| format!("{}…{}", end(cell.low), end(cell.high)));
    html! {
        td.num {
            (self::cell(line.unit, cell))
            @if let Some(interval) = interval { small.interval { (interval) } }
        }
    }
}

fn rests_on(comparison: &Comparison) -> Markup {
    let label = |at: usize| comparison.groups.get(at).map_or("", |group| group.label.as_str());
    html! {
        table {
            (crate::html::table_head(["", "run", "#wake-ups", "how"]))
            tbody {
                @for line in &comparison.table {
                    @for (at, cell) in line.cells.iter().enumerate() {
                        tr {
                            th scope="row" { (line.statistic) }
                            td { (label(at)) }
                            td.num { (units::grouped(cell.n)) }
                            td.wrap { (cell.method) }
                        }
                    }
                }
                @for one in &comparison.against {
                    @for change in &one.changes {
                        tr {
                            th scope="row" { (change.statistic) }
                            td { (label(one.group)) " to " (label(0)) }
                            td.num { (units::grouped(change.n)) }
                            td.wrap { (change.method) }
                        }
                    }
                }
            }
        }
    }
}

// Every run and thread by itself, and how the comparison was made.

/// Runs whose threads are shown without being asked for.
const OPEN_MAX: usize = 12;

pub(super) fn runs_section(comparison: &Comparison) -> Markup {
    let runs: Vec<(&str, &RunSummary)> = comparison
        .groups
        .iter()
        .flat_map(|group| group.runs.iter().map(|run| (group.label.as_str(), run)))
        .collect();
    html! {
        section #runs {
            (crate::html::scroll("Runs", &list(comparison, &runs)))
            @if runs.len() <= OPEN_MAX {
                h3 { "Threads" }
                (crate::html::scroll("Threads", &threads(&runs)))
            } @else {
                details {
                    summary { "Threads of all runs" }
                    (crate::html::scroll("Threads", &threads(&runs)))
                }
            }
        }
    }
}

fn list(comparison: &Comparison, runs: &[(&str, &RunSummary)]) -> Markup {
    let grouped = comparison.design == CompareDesign::Paired;
    html! {
        table {
            thead { tr {
                @if grouped { th { "group" } }
                th { "run" } th { "measured by" } th { "start" } th.num { "wake-ups" }
                th.num { "missed" } th.num { "p99.9" } th.num { "max" } th { "file" }
            } }
            tbody {
                @for (group, run) in runs {
                    tr {
                        @if grouped { td { (group) } }
                        th scope="row" { (run.label) }
                        td { (run.tool) }
                        td { (run.started_ns.map_or_else(|| NONE.into(), crate::html::wall_clock)) }
                        td.num { (units::grouped(run.sampled)) }
                        td.num { (run.missed.map_or_else(|| NONE.into(), units::grouped)) }
                        td.num { (crate::html::us(run.p999_ns)) }
                        td.num { (at_least(run.max_is_at_least)) (crate::html::us(run.max_ns)) }
                        td.wrap { code { (run.source) } }
                    }
                }
            }
        }
    }
}

fn threads(runs: &[(&str, &RunSummary)]) -> Markup {
    let rows = runs.iter().flat_map(|(_, run)| run.threads.iter().map(move |thread| (run, thread)));
    let none = || NONE.into();
    let table = crate::html::table(
        rows,
        &[
            ("run", &|(run, _)| html! { (run.label) }),
            ("thread", &|(_, of)| html! { (of.label) }),
            ("#wake-ups", &|(_, of)| html! { (units::grouped(of.sampled)) }),
            ("#missed", &|(_, of)| html! { (of.missed.map_or_else(none, units::grouped)) }),
            ("#min", &|(_, of)| html! { (crate::html::us(of.min_ns)) }),
            ("#mean", &|(_, of)| html! { (crate::html::us_mean(of.mean_ns)) }),
            ("#p5", &|(_, of)| html! { (crate::html::us(of.p5_ns)) }),
            ("#p50", &|(_, of)| html! { (crate::html::us(of.p50_ns)) }),
            ("#p95", &|(_, of)| html! { (crate::html::us(of.p95_ns)) }),
            ("#p99", &|(_, of)| html! { (crate::html::us(of.p99_ns)) }),
            ("#p99.9", &|(_, of)| html! { (crate::html::us(of.p999_ns)) }),
            ("#p99.99", &|(_, of)| html! { (crate::html::us(of.p9999_ns)) }),
            ("#max", &|(_, of)| {
                html! { (at_least(of.max_is_at_least)) (crate::html::us(of.max_ns)) }
            }),
        ],
    );
    html! { (table) p.quiet { "Microseconds." } }
}

/// How the comparison was made.
pub(super) fn method_section(comparison: &Comparison) -> Markup {
    html! {
        section #method {
            dl.words {
                @for (word, text) in method_terms(comparison) { dt { (word) } dd { (text) } }
            }
        }
    }
}

// The answer: a word, a sentence, its reasons.

pub(super) fn verdict_section(page: &ComparePage<'_>) -> Markup {
    let comparison = page.comparison;
    let (class, icon) = tone(comparison.answer);
    let many = comparison.against.len() > 1;
    html! {
        section.verdict.(class) #verdict {
            h2 { (crate::html::icon(icon)) (capital(comparison.answer.text())) }
            p.sentence { (comparison.sentence) }
            (summary::short_html(page.answer))
            @if !comparison.mismatches.is_empty() {
                p.status.bad {
                    (crate::html::icon("warn")) "These runs are not alike; compared all the same:"
                }
                ul.reasons { @for mismatch in &comparison.mismatches { li { (mismatch.text()) } } }
            }
            @if many {
                ul.reasons {
                    @for one in &comparison.against { li { (own(one)) } }
                }
            }
            @if let [one] = comparison.against.as_slice() {
                ul.reasons { @for reason in &one.reasons { li { (reason) } } }
            } @else if let Some(one) = comparison.against.first() {
                // Of single runs they are all alike.
                details { summary { "How to read this" }
                    ul.reasons { @for reason in &one.reasons { li { (reason) } } } }
            }
            @if !comparison.doubts.is_empty() {
                details.notes open[comparison.doubts.len() < 5] {
                    summary { "What is doubtful about the runs (" (comparison.doubts.len()) ")" }
                    ul { @for doubt in &comparison.doubts { li { (doubt) } } }
                }
            }
        }
    }
}

fn tone(answer: CompareAnswer) -> (&'static str, &'static str) {
    match answer {
        CompareAnswer::Better => ("accepted", "check"),
        CompareAnswer::Worse => ("refused", "cross"),
        CompareAnswer::NoDifference => ("idle", "dash"),
        CompareAnswer::CannotDecide => ("not-proven", "question"),
    }
}

#[cfg(test)]
mod tests {
    use rtproof_judge::compare::ValueUnit;

    use super::*;

    #[test]
    fn values_are_short() {
        assert_eq!(bare(ValueUnit::Ns, 55_000.0), "55.0");
        assert_eq!(bare(ValueUnit::Share, 0.0), "0");
        assert_eq!(bare(ValueUnit::Number, 2.5), "2.50");
    }
}
