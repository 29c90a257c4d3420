//! The answer first: verdict, what it rests on, where it stands among reference machines, the sheet
//! to print.

use std::io::{self, Write};

use maud::{Markup, html};

use rtproof_host::text;
use rtproof_judge::{
    Finding, Report, Status,
    causes::{CauseClass, Spikes, classes},
    compare::Reference,
    units,
};
use rtproof_record::Run;
use rtproof_results::{Answer, Tone};

use super::findings::{self, word};
use crate::page::FindingDetail;
use crate::spike;
use crate::svg::chart::px;
use crate::text::{BAD, BOLD, DIM, GOOD, Terminal, TextStyle, WARN, wrapped};

// The answer below a verdict: the largest classes of causes, or why, and the next command.

/// Classes of causes that are named.
const CLASSES_MAX: usize = 3;

/// The block; `next` is a command that can be pasted.
fn block_html(report: &Report, next: Option<&str>) -> Markup {
    html! {
        @if let Some(spikes) = &report.spikes { (why(spikes)) }
        (next_html(next))
    }
}

/// The same of what has no picture of its causes.
pub(super) fn short_html(answer: &Answer) -> Markup {
    html! {
        @if let Some(why) = &answer.why { p.why { strong { "Why" } " " (why) } }
        (next_html(answer.next.as_deref()))
    }
}

fn next_html(command: Option<&str>) -> Markup {
    html! {
        @if let Some(command) = command {
            div.next {
                p { strong { "Next" } }
                pre.code tabindex="0" { code { (command) } }
            }
        }
    }
}

fn why(spikes: &Spikes) -> Markup {
    if let Some(why) = spikes.recorder.off.as_ref().filter(|_| spikes.seen > 0) {
        return html! { p { strong { "Why" } ": unknown; nothing was recorded (" (why) ")." } };
    }
    let classes = classes(spikes);
    let unseen = classes.len().saturating_sub(CLASSES_MAX);
    html! {
        @if !classes.is_empty() {
            p.why { strong { "Why" } " " span.quiet { (of(spikes)) } }
            ol.why {
                @for class in classes.iter().take(CLASSES_MAX) {
                    li { (class_line(class, spikes)) }
                }
            }
            p.quiet {
                a href="#spikes" {
                    @if unseen > 0 { (unseen) " more, and each spike" }
                    @else { "All causes, and each spike" }
                }
            }
        }
    }
}

fn of(spikes: &Spikes) -> String {
    if spikes.explained == spikes.seen {
        return format!("of the lateness of {}", units::count(spikes.seen, "spike"));
    }
    format!(
        "of the lateness of {} of {} spikes",
        units::grouped(spikes.explained),
        units::grouped(spikes.seen)
    )
}

fn class_line(class: &CauseClass<'_>, spikes: &Spikes) -> Markup {
    let part = class.sum_ns as f64 / spikes.sum_ns.max(1) as f64 * 100.0;
    html! {
        span.share aria-hidden="true" {
            i class=(spike::class(class.cause))
                style=(format!("width:{}%", px(part.clamp(0.0, 100.0)))) {}
        }
        strong { (spike::percent(class.sum_ns, spikes.sum_ns)) } " "
        @if class.certain_ns() == 0 && class.cause != "unexplained" { "likely " }
        (class.title)
        @if let Some(row) = class.rows.first().filter(|row| !row.culprit.is_empty()) {
            ": " (row.culprit)
        }
        @if (1..class.sum_ns).contains(&class.certain_ns()) {
            span.quiet { " (" (spike::percent(class.certain_ns(), spikes.sum_ns)) " for certain)" }
        }
    }
}

// The second sheet of a printed report: causes, fixes, conditions, and where to sign. Only
// printed: on screen the page has all of it at length.
//
// Every list is cut to a number of lines and every line to two, so that verdict, histogram and
// this fit two sheets of A4, whatever names a machine has.

/// Lines of each list.
const LINES_MAX: usize = 8;

/// Characters of a line: two lines of the sheet.
const CHARACTERS_MAX: usize = 150;

pub(crate) fn paper_section(report: &Report) -> Markup {
    html! {
        section.paper #paper {
            @if let Some(spikes) = &report.spikes { (causes(spikes)) }
            (fixes(report))
            (conditions(report))
            (signature(report))
        }
    }
}

/// As much of a text as two lines hold.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(CHARACTERS_MAX) {
        None => text.into(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

fn more(all: usize) -> Markup {
    html! {
        @if let Some(more @ 1..) = all.checked_sub(LINES_MAX) {
            p.quiet { (more) " more in the report." }
        }
    }
}

fn causes(spikes: &Spikes) -> Markup {
    let rows = &spikes.causes;
    let table = crate::html::table(
        rows.iter().take(LINES_MAX),
        &[
            ("~cause", &|row| html! { (shortened(&row.title)) }),
            ("~who", &|row| {
                html! {
                    @if row.culprit.is_empty() { (crate::html::NONE) }
                    @else { (shortened(&row.culprit)) }
                }
            }),
            ("#spikes", &|row| html! { (units::grouped(row.count)) }),
            ("#worst, µs", &|row| html! { (spike::us_number(row.worst_ns)) }),
            ("#share", &|row| html! { (spike::percent(row.sum_ns, spikes.sum_ns)) }),
        ],
    );
    html! {
        h2 { "Causes" }
        @if rows.is_empty() {
            p { "No wake-up was late enough to look for a cause." }
        } @else { (table) (more(rows.len())) }
    }
}

/// Findings that ask for a change: first those of the largest causes, then by what they cost.
fn fixes(report: &Report) -> Markup {
    let classes = report.spikes.as_ref().map(classes).unwrap_or_default();
    let place = |finding: &Finding| {
        let of = |class: &CauseClass<'_>| {
            class.rows.iter().any(|row| row.checks.contains(&finding.check))
        };
        classes.iter().position(of).unwrap_or(usize::MAX)
    };
    let asks = |finding: &&Finding| {
        matches!(findings::FindingGroup::of(finding), findings::FindingGroup::Change(_))
            && finding.status == Status::Bad
    };
    let mut all: Vec<&Finding> = report.findings.iter().filter(asks).collect();
    all.sort_by_key(|finding| (place(finding), finding.impact));
    html! {
        h2 { "Fixes" }
        @if all.is_empty() { p { "No check found anything that must be changed." } }
        ul {
            @for finding in all.iter().take(LINES_MAX) {
                li {
                    code { (finding.check) } ": " (shortened(&finding.summary))
                    @if let Some(remedy) = finding.remedies.first() {
                        br; code { (shortened(&remedy.to_string())) }
                    }
                }
            }
        }
        (more(all.len()))
    }
}

fn conditions(report: &Report) -> Markup {
    let (machine, options) = (&report.machine, &report.options);
    let or = |text: &Option<String>| text.as_deref().map_or(crate::html::NONE.into(), shortened);
    let loads = match options.phases.as_slice() {
        [] => vec!["none of rtproof's"],
        phases => phases.iter().map(|phase| phase.name.as_str()).collect(),
    };
    let rows = [
        ("machine", or(&machine.model)),
        ("processor", or(&machine.cpu_model)),
        ("kernel", format!("{}, {}", or(&machine.kernel), shortened(&machine.preemption))),
        ("hypervisor", machine.hypervisor.as_deref().map_or("none".into(), shortened)),
        ("clock", or(&machine.clocksource)),
        ("measured", shortened(&units::cpus(&options.cpus))),
        (
            "thread",
            format!(
                "{}, priority {}, every {}",
                crate::html::policy(options.policy),
                options.priority,
                units::ns(options.period_ns)
            ),
        ),
        ("load phases", shortened(&loads.join(", "))),
        ("started", crate::html::wall_clock(report.run.started_realtime_ns)),
        ("lasted", report.duration_text()),
        ("changed meanwhile", changed(report)),
    ];
    html! {
        h2 { "Conditions" }
        dl { @for (name, value) in rows { dt { (name) } dd { (value) } } }
    }
}

fn changed(report: &Report) -> String {
    match report.changes.as_slice() {
        [] => "no setting that was read".into(),
        changes => {
            let names: Vec<&str> = changes.iter().take(4).map(|c| c.key.as_str()).collect();
            let more = if changes.len() > names.len() { ", ..." } else { "" };
            shortened(&format!("{}: {}{more}", changes.len(), names.join(", ")))
        }
    }
}

fn signature(report: &Report) -> Markup {
    html! {
        p.run {
            strong { (report.verdict.answer.text()) }
            ". Run " code { (report.run.run_id) } ", rtproof " (report.run.tool_version)
            ". The record holds every number of this sheet; " code { "rtproof report RECORD" }
            " judges it again."
        }
        div.sign {
            @for what in ["Place, date", "Name", "Signature"] { p { (what) } }
        }
    }
}

// Rank of a run among reference machines.

/// Files that are named in sight.
const SHOWN_HTML: usize = 20;

/// The section; nothing where no folder was given.
pub(crate) fn reference_section(all: &[Reference]) -> Markup {
    if all.is_empty() {
        return Markup::default();
    }
    let cell = |count: Option<u64>| count.map_or_else(|| crate::html::NONE.into(), units::grouped);
    html! {
        section #reference {
            h2 { "Among machines of reference" }
            @for one in all {
                ul.reasons { @for line in &one.lines { li { (line) } } }
                (crate::html::scroll("Ranks", &html! {
                    table {
                        (crate::html::table_head([
                            "run", "among", "statistic", "#µs", "#machines", "#lower", "#same",
                            "#higher", "#least, µs", "#middle, µs", "#most, µs",
                        ]))
                        tbody {
                            @for (among, ranks) in groups(one) {
                                @for rank in ranks {
                                    tr {
                                        th scope="row" { (one.run) }
                                        td { (among) }
                                        td { (rank.statistic) }
                                        td.num { (crate::html::us(Some(rank.value_ns))) }
                                        td.num { (units::grouped(rank.machines)) }
                                        td.num { (cell(rank.lower)) }
                                        td.num { (cell(rank.same)) }
                                        td.num { (cell(rank.higher)) }
                                        td.num { (crate::html::us(Some(rank.least_ns))) }
                                        td.num { (crate::html::us(Some(rank.middle_ns))) }
                                        td.num { (crate::html::us(Some(rank.most_ns))) }
                                    }
                                }
                            }
                        }
                    }
                }))
                @if !one.left_out.is_empty() {
                    details {
                        summary { (units::count(one.left_out.len(), "file")) " not used" }
                        ul {
                            @for out in one.left_out.iter().take(SHOWN_HTML) {
                                li { code { (out.file) } ": " (out.why) }
                            }
                            @if one.left_out.len() > SHOWN_HTML {
                                li { (one.left_out.len() - SHOWN_HTML) " more: --json" }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn groups(one: &Reference) -> [(&str, &[rtproof_judge::compare::QuantileRank]); 2] {
    [("all", &one.all), (one.alike_by.as_deref().unwrap_or_default(), &one.alike)]
}

// The verdict strip: the answer, its reasons and the numbers that it rests on, before all else.

/// A number of the strip.
struct Tile {
    name: String,
    value: String,
    note: String,
    alarm: bool,
}

impl Tile {
    fn new(name: &str, value: String, note: impl Into<String>) -> Self {
        Self { name: name.into(), value, note: note.into(), alarm: false }
    }

    fn alarm(mut self, alarm: bool) -> Self {
        self.alarm = alarm;
        self
    }
}

pub(crate) fn verdict_section(run: &Run, report: &Report, next: Option<&str>) -> Markup {
    let verdict = &report.verdict;
    let (class, icon) = match verdict.answer {
        rtproof_judge::VerdictAnswer::Accepted => ("accepted", "check"),
        rtproof_judge::VerdictAnswer::Refused => ("refused", "cross"),
        rtproof_judge::VerdictAnswer::NotProven => ("not-proven", "question"),
        rtproof_judge::VerdictAnswer::NotJudged => ("not-judged", "dash"),
    };
    html! {
        section #verdict class={ "verdict sheet " (class) } aria-labelledby="answer"
            data-answer=(class) {
            h2 #answer { (crate::html::icon(icon)) (heading(run, verdict.answer)) }
            p.sentence { (capitalised(&verdict.sentence)) }
            (block_html(report, next))
            @let rests_on = verdict.reasons.iter().cloned().chain(levels_text(report));
            @let rests_on: Vec<String> = rests_on.collect();
            @if !rests_on.is_empty() {
                h3 { "What it rests on" }
                ul.reasons { @for reason in &rests_on { li { (reason) } } }
            }
            dl.tiles {
                @for tile in tiles(run, report) {
                    div.alarm[tile.alarm] {
                        dt { (tile.name) }
                        dd { (tile.value) @if !tile.note.is_empty() { small { (tile.note) } } }
                    }
                }
            }
            (notes(report))
        }
    }
}

/// An experiment compares settings and has no budget to judge against: that is its head.
fn heading(run: &Run, answer: rtproof_judge::VerdictAnswer) -> &'static str {
    match (answer, &run.effects) {
        (rtproof_judge::VerdictAnswer::NotJudged, Some(_)) => "EXPERIMENT",
        _ => answer.text(),
    }
}

/// The sentence follows the answer in lower case; on a line of its own it starts with a capital.
fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(|first| first.to_uppercase().to_string());
    let dot = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{}{}{dot}", first.unwrap_or_default(), characters.as_str())
}

fn tiles(run: &Run, report: &Report) -> Vec<Tile> {
    let basis = &report.verdict.basis;
    let adds_up = basis.scheduled == basis.sampled + basis.missed;
    let account = if adds_up { "= sampled + missed" } else { "≠ sampled + missed" };
    let worst = basis.worst.as_ref();
    let mut tiles = vec![
        Tile::new("scheduled", units::grouped(basis.scheduled), account).alarm(!adds_up),
        Tile::new("sampled", units::grouped(basis.sampled), per_cpu(run)),
        Tile::new("missed", units::grouped(basis.missed), "due while still late")
            .alarm(basis.missed > 0),
        late(report),
        Tile::new(
            "worst",
            worst.map_or(crate::html::NONE.into(), |worst| units::ns(worst.latency_ns)),
            worst.map_or(String::new(), |worst| {
                format!(
                    "CPU {}, at {}, {}",
                    worst.cpu,
                    crate::html::run_time(worst.due_ns),
                    worst.phase
                )
            }),
        )
        .alarm(basis.late > 0),
    ];
    tiles.extend(quantiles(report));
    tiles.extend(bounds(report));
    tiles.extend(levels(report));
    tiles
}

/// What the time that counts is.
fn loaded(report: &Report) -> &'static str {
    let is_loaded = report.options.phases.iter().any(|phase| !phase.loads.is_empty());
    if is_loaded { " under load" } else { "" }
}

/// The budgets that the run would have proven, or how long that takes.
fn levels(report: &Report) -> Vec<Tile> {
    let budget_ns = report.options.requirement.budget_ns.unwrap_or(u64::MAX);
    let levels = &report.verdict.basis.levels;
    let shown = levels.iter().filter(|level| level.level_ns.is_some());
    let next = levels.iter().find(|level| level.level_ns.is_none());
    shown
        .chain(next)
        .map(|level| {
            let name = format!("later less often than {}", units::rate(level.per_hour));
            match level.level_ns {
                Some(ns) => {
                    let note = "by counting, on the condition above";
                    Tile::new(&name, units::ns(ns), note).alarm(ns > budget_ns)
                }
                None => {
                    let takes =
                        format!("takes {}{}", units::duration(level.takes_ns), loaded(report));
                    Tile::new(&name, crate::html::NONE.into(), takes)
                }
            }
        })
        .collect()
}

fn late(report: &Report) -> Tile {
    let basis = &report.verdict.basis;
    match report.options.requirement.budget_ns {
        None => Tile::new("late", crate::html::NONE.into(), "no budget given"),
        Some(budget_ns) => {
            let seconds = match basis.late_seconds.map_or(0, |late| late.seconds) {
                0 => String::new(),
                n => format!(", in {}", units::count(n, "late second")),
            };
            let note = format!("later than {}{seconds}", units::ns(budget_ns));
            Tile::new("late", units::grouped(basis.late), note).alarm(basis.late > 0)
        }
    }
}

fn per_cpu(run: &Run) -> String {
    match run.threads.len() {
        1 => "on 1 CPU".into(),
        n => format!("on {n} CPUs"),
    }
}

/// The highest three quantiles that the samples carry.
fn quantiles(report: &Report) -> Vec<Tile> {
    let carried: Vec<_> = report.all.wake.iter().filter(|q| q.value_ns.is_some()).collect();
    let shown = carried.iter().skip(carried.len().saturating_sub(3));
    shown
        .map(|quantile| {
            let value = quantile.value_ns.map_or(crate::html::NONE.into(), units::ns);
            let note = match (quantile.tenths_low_ns, quantile.tenths_high_ns) {
                (Some(low), Some(high)) => {
                    format!("tenths of the run: {} to {}", units::ns(low), units::ns(high))
                }
                _ => "too few in each tenth of the run for a range".into(),
            };
            Tile::new(&quantile.q.name(), value, note)
        })
        .collect()
}

fn bounds(report: &Report) -> Vec<Tile> {
    let basis = &report.verdict.basis;
    let at =
        format!("at {} confidence", units::confidence(report.options.requirement.confidence_ppm));
    let mut tiles = Vec::new();
    if let Some(held) = basis.held.filter(|held| held.late > 0) {
        let note = "largest late share of a CPU in a tenth of the run";
        tiles.push(Tile::new("worst tenth", units::probability(held.worst_tenth), note));
    }
    if let Some(rate) = basis.late_seconds.and_then(|late| late.proven_per_hour) {
        tiles.push(Tile::new("late episodes, below", units::rate_at_most(rate), at));
    }
    tiles.push(Tile::new(
        "exposure",
        units::duration(basis.exposure_ns),
        loaded(report).trim_start(),
    ));
    match basis.further_ns {
        Some(0) => tiles.push(Tile::new("longer needed", "none".into(), "long enough")),
        Some(further_ns) => tiles.push(Tile::new(
            "longer needed",
            units::duration(further_ns),
            "at least, without a further late wake-up",
        )),
        None => {}
    }
    tiles
}

/// Most notes on a page: a run has a handful.
const NOTES_MAX: usize = 200;

fn notes(report: &Report) -> Markup {
    html! {
        @if !report.notes.is_empty() {
            details.notes {
                summary { "Notes of the run (" (report.notes.len()) ")" }
                ul {
                    @for note in report.notes.iter().take(NOTES_MAX) {
                        li {
                            code { (note.id) } " "
                            @if note.at_ns > 0 {
                                span.quiet { "at " (crate::html::run_time(note.at_ns)) " " }
                            }
                            (note.text)
                            @if note.weakens { strong { " Weakens the verdict." } }
                        }
                    }
                    @if let Some(more) = report.notes.len().checked_sub(NOTES_MAX + 1) {
                        li { "and " (more + 1) " more: rtproof export --format csv --table notes" }
                    }
                }
            }
        }
    }
}

// The answer in a few lines: the result, why, what to do next.

/// Lines of a screen: below more, the answer is repeated.
const SCREEN: usize = 24;

pub fn answer_text(to: &mut Terminal, answer: &Answer) -> io::Result<()> {
    to.in_answer(|to| block_text(to, answer))
}

fn block_text(to: &mut Terminal, answer: &Answer) -> io::Result<()> {
    let style = match answer.tone {
        Tone::Verdict(word) => {
            let sentence = answer.result.strip_prefix(word.text()).unwrap_or(&answer.result);
            verdict_line(to, word, sentence.trim_start())?;
            return why_and_next(to, answer);
        }
        Tone::Plain => TextStyle::PLAIN,
        Tone::Good => GOOD,
        Tone::Doubtful => WARN,
        Tone::Bad => BAD,
    };
    let text = format!("{style}{}{style:#}", answer.result);
    wrapped(to, &format!("{BOLD}Result{BOLD:#}   "), "         ", &text)?;
    why_and_next(to, answer)
}

fn why_and_next(to: &mut Terminal, answer: &Answer) -> io::Result<()> {
    if let Some(why) = &answer.why {
        wrapped(to, &format!("{BOLD}Why{BOLD:#}      "), "         ", why)?;
    }
    next_text(to, answer.next.as_deref())
}

/// Writes it again below what is longer than a screen.
pub fn answer_again(to: &mut Terminal, answer: &Answer) -> io::Result<()> {
    if to.lines() <= SCREEN {
        return Ok(());
    }
    writeln!(to)?;
    answer_text(to, answer)
}

/// What to do next.
pub fn next_text(to: &mut Terminal, command: Option<&str>) -> io::Result<()> {
    match command {
        // One line, however long: a break would end the command where it is pasted.
        Some(command) => writeln!(to, "{BOLD}Next{BOLD:#}     {}", text::harmless_line(command)),
        None => Ok(()),
    }
}

// Findings of trials as text: every one, because each was asked for by name.

/// The group of the trials; where all or more is asked for, the evidence, too.
pub fn proofs(to: &mut Terminal, findings: &[&Finding], detail: FindingDetail) -> io::Result<()> {
    if findings.is_empty() {
        return Ok(());
    }
    writeln!(to, "{BOLD}Proof{BOLD:#}    {} tried on this machine", findings.len())?;
    let width = findings.iter().map(|finding| finding.check.len()).max().unwrap_or(0);
    let next = " ".repeat(11 + width + 2);
    let labelled = |to: &mut Terminal, label: &str, text: &str| {
        wrapped(to, &format!("{next}{DIM}{label}{DIM:#} "), &format!("{next}     "), text)
    };
    for finding in findings {
        let (status, style) = word(finding.status);
        let name = &finding.check;
        let first = format!("  {style}{status:<8}{style:#} {name:<width$}  ");
        wrapped(to, &first, &next, &finding.summary)?;
        for evidence in finding.evidence.iter().filter(|_| detail.all || detail.verbose) {
            labelled(to, "saw:", &format!("{}: {}", evidence.path, evidence.value))?;
        }
        for remedy in &finding.remedies {
            labelled(to, "fix:", &remedy.to_string())?;
        }
    }
    Ok(())
}

// Rank of a run among reference machines, as text.

/// Files that are named.
const SHOWN_TEXT: usize = 8;

const MARGIN: &str = "         ";

/// A line for each sentence; the files that were not used below.
pub fn reference(to: &mut Terminal, all: &[Reference]) -> io::Result<()> {
    let mut head = format!("{BOLD}Beside{BOLD:#}   ");
    for one in all {
        for line in &one.lines {
            wrapped(to, &head, MARGIN, line)?;
            head = MARGIN.into();
        }
        for out in one.left_out.iter().take(SHOWN_TEXT) {
            let text = format!("{} is not used: {}", out.file, out.why);
            wrapped(to, &format!("{MARGIN}{WARN}!{WARN:#} "), "           ", &text)?;
        }
        let more = one.left_out.len().saturating_sub(SHOWN_TEXT);
        if more > 0 {
            let text = format!("and {} more not used: --json", units::count(more, "file"));
            wrapped(to, MARGIN, MARGIN, &format!("{DIM}{text}{DIM:#}"))?;
        }
    }
    Ok(())
}

// The verdict as text.

/// The verdict, its reasons, and what changed in the machine.
pub fn verdict(to: &mut Terminal, report: &Report) -> io::Result<()> {
    let verdict = &report.verdict;
    verdict_sentence(to, report)?;
    for reason in &verdict.reasons {
        wrapped(to, &format!("         {DIM}-{DIM:#} "), "           ", reason)?;
    }
    if let Some(levels) = levels_text(report) {
        wrapped(to, &format!("         {DIM}-{DIM:#} "), "           ", &levels)?;
    }
    for change in &report.changes {
        let text = format!("{} changed from {} to {}", change.key, change.from, change.to);
        wrapped(to, &format!("         {WARN}!{WARN:#} "), "           ", &text)?;
    }
    Ok(())
}

/// `Shown by counting ...: later than 410 µs less often than 10/h, 900 µs less often than 3/h`.
fn levels_text(report: &Report) -> Option<String> {
    let levels = &report.verdict.basis.levels;
    let text = |level: &rtproof_judge::verdict::Level| {
        Some(format!(
            "{} less often than {}",
            units::ns(level.level_ns?),
            units::rate(level.per_hour)
        ))
    };
    let shown: Vec<String> = levels.iter().filter_map(text).collect();
    let more =
        levels.iter().find(|level| level.level_ns.is_none()).map_or_else(String::new, |level| {
            let (rate, takes) = (units::rate(level.per_hour), units::duration(level.takes_ns));
            format!(". What comes less often than {rate} takes {takes} to tell")
        });
    let confidence = units::confidence(report.options.requirement.confidence_ppm);
    (!shown.is_empty()).then(|| {
        format!(
            "Shown by counting at {confidence} confidence: later than {}; each if what makes \
             wake-ups late comes at random and lasts a quarter of the time between two at its \
             rate, or less{more}.",
            shown.join(", ")
        )
    })
}

/// The verdict in a sentence.
pub(super) fn verdict_sentence(to: &mut Terminal, report: &Report) -> io::Result<()> {
    verdict_line(to, report.verdict.answer, &report.verdict.sentence)
}

/// A verdict: its word and its sentence.
pub(crate) fn verdict_line(
    to: &mut Terminal,
    answer: rtproof_judge::VerdictAnswer,
    sentence: &str,
) -> io::Result<()> {
    let (style, word) = (style(answer), answer.text());
    let first = format!("{BOLD}Verdict{BOLD:#}  {style}{word}{style:#} ");
    wrapped(to, &first, "         ", sentence)
}

const fn style(answer: rtproof_judge::VerdictAnswer) -> TextStyle {
    match answer {
        rtproof_judge::VerdictAnswer::Accepted => GOOD.bold(),
        rtproof_judge::VerdictAnswer::Refused => BAD,
        rtproof_judge::VerdictAnswer::NotProven | rtproof_judge::VerdictAnswer::NotJudged => {
            WARN.bold()
        }
    }
}
