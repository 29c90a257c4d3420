//! The verdict strip: the answer, its reasons and the numbers that it rests on, before all else.

use maud::{Markup, html};
use rtproof_judge::{Answer, Report, units};
use rtproof_record::Run;

use super::{answer, parts};

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

pub(super) fn section(run: &Run, report: &Report, next: Option<&str>) -> Markup {
    let verdict = &report.verdict;
    let (class, icon) = match verdict.answer {
        Answer::Accepted => ("accepted", "check"),
        Answer::Refused => ("refused", "cross"),
        Answer::NotProven => ("not-proven", "question"),
        Answer::NotJudged => ("not-judged", "dash"),
    };
    html! {
        section #verdict class={ "verdict sheet " (class) } aria-labelledby="answer"
            data-answer=(class) {
            h2 #answer { (parts::icon(icon)) (heading(run, verdict.answer)) }
            p.sentence { (sentence(&verdict.sentence)) }
            (answer::block(report, next))
            @if !verdict.reasons.is_empty() {
                h3 { "What it rests on" }
                ul.reasons { @for reason in &verdict.reasons { li { (reason) } } }
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
fn heading(run: &Run, answer: Answer) -> &'static str {
    match (answer, &run.effects) {
        (Answer::NotJudged, Some(_)) => "EXPERIMENT",
        _ => answer.text(),
    }
}

/// The sentence follows the answer in lower case; on a line of its own it starts with a capital.
fn sentence(text: &str) -> String {
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
            worst.map_or(parts::NONE.into(), |worst| units::ns(worst.latency_ns)),
            worst.map_or(String::new(), |worst| {
                format!("CPU {}, at {}, {}", worst.cpu, parts::at(worst.due_ns), worst.phase)
            }),
        )
        .alarm(basis.late > 0),
    ];
    tiles.extend(quantiles(report));
    tiles.extend(bounds(report));
    tiles.extend(tail(report));
    tiles
}

/// The levels exceeded once in a time of operation, or that none is given.
fn tail(report: &Report) -> Vec<Tile> {
    let Some(tail) = &report.verdict.tail else { return Vec::new() };
    let rows = tail.rows();
    if rows.iter().all(|(_, ahead)| ahead.level().is_none()) {
        let rules = rows[0].1.text();
        return vec![Tile::new("tail", "not extrapolated".into(), rules)];
    }
    let budget_ns = report.options.requirement.budget_ns.unwrap_or(u64::MAX);
    rows.into_iter()
        .map(|(time, ahead)| {
            let name = format!("once in a {time} of operation");
            match ahead.level() {
                None => Tile::new(&name, parts::NONE.into(), ahead.text()),
                Some(level) => {
                    let most = units::ns(level.high_ns.ceil() as u64);
                    let few = if level.is_exploratory { "; exploratory" } else { "" };
                    let condition = &tail.condition;
                    let note = format!("at most {most} at 99 % confidence{few}; {condition}");
                    Tile::new(&name, units::ns(level.level_ns as u64), note)
                        .alarm(level.high_ns >= budget_ns as f64)
                }
            }
        })
        .collect()
}

fn late(report: &Report) -> Tile {
    let basis = &report.verdict.basis;
    match report.options.requirement.budget_ns {
        None => Tile::new("late", parts::NONE.into(), "no budget given"),
        Some(budget_ns) => {
            let count = basis.late_groups.map_or(basis.late_clusters, |groups| groups.count);
            let groups = match count {
                0 => String::new(),
                n => format!(", in {}", units::count(n, "group")),
            };
            let note = format!("later than {}{groups}", units::ns(budget_ns));
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
            let value = quantile.value_ns.map_or(parts::NONE.into(), units::ns);
            let note = match (quantile.low_ns, quantile.high_ns) {
                (Some(low), Some(high)) => format!("{} to {}", units::ns(low), units::ns(high)),
                (Some(low), None) => format!("above {}, no upper end", units::ns(low)),
                _ => "no interval: too few independent samples".into(),
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
    if let Some(share) = basis.late_share_upper {
        tiles.push(Tile::new("share late, below", units::probability(share), at.clone()));
    }
    if let Some(rate) = basis.late_rate_upper_per_hour {
        let at = format!("{at}, if they come at a steady rate");
        tiles.push(Tile::new("rate of late groups, below", units::per_hour(rate), at));
    }
    let n_eff = format!("worth {} independent wake-ups", units::grouped(basis.n_eff));
    tiles.push(Tile::new("exposure", units::duration(basis.exposure_ns), n_eff));
    match basis.further_ns {
        Some(0) => tiles.push(Tile::new("longer needed", "none".into(), "long enough")),
        Some(further_ns) => tiles.push(Tile::new(
            "longer needed",
            units::duration(further_ns),
            "at least, without a further late group",
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
                            @if note.at_ns > 0 { span.quiet { "at " (parts::at(note.at_ns)) " " } }
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
