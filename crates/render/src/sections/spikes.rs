//! Why it was late: the causes of all spikes in a table, what removes them, and the worst spikes
//! one by one, each with its picture and with shares that sum to its latency.

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use maud::{Markup, html};

use rtproof_host::text;
use rtproof_judge::{
    Finding, Report,
    causes::{
        CauseClass, CauseRow, ExplainedSpike, Explanation, RecorderSummary, Share, Spikes,
        Structure, classes,
    },
    units::{self, grouped},
};
use rtproof_record::Run;
use rtproof_trace::Window;

use super::findings::{FindingGroup, remedy_shown};
use crate::spike::{self, percent, us, us_number};
use crate::svg::chart::px;
use crate::svg::spike::draw;
use crate::text::{BAD, BOLD, DIM, Terminal, TextPage, TextStyle, WARN, wrapped_in};
use crate::timeline::{blocks_of, fitted, letter, style, timeline};

/// Most spikes shown one by one; the record has all.
pub(crate) const SHOWN_MAX: usize = 12;

/// Bytes of their pictures, about: one of a busy machine may have 90 kB.
const BYTES_MAX: usize = 400_000;

/// The worst spikes one by one, as many as the page has room for.
pub(crate) fn pictures<'w>(
    spikes: &Spikes,
    findings: &[Finding],
    windows: &dyn Fn(u32) -> Option<&'w Window>,
) -> Vec<Markup> {
    let mut room = BYTES_MAX;
    let mut pictures = Vec::new();
    for spike in spikes.worst.iter().take(SHOWN_MAX) {
        let remedy = remedy_of(spikes, spike, findings);
        let picture = self::spike(spike, windows(spike.number), &remedy);
        let length = picture.0.len();
        if length > room && !pictures.is_empty() {
            break;
        }
        room = room.saturating_sub(length);
        pictures.push(picture);
    }
    pictures
}

/// The section. `findings`: those of the same page; `shown`: the worst spikes.
pub(crate) fn section(spikes: &Spikes, findings: &[Finding], shown: &[Markup]) -> Markup {
    html! {
        section #spikes {
            h2 { "Why it was late" }
            p { (summary_html(spikes)) }
            @if !spikes.causes.is_empty() {
                (causes_table(spikes))
                (by_cpu(spikes))
            }
            (structure(&spikes.structure))
            (remedies(spikes, findings))
            (recorder_html(&spikes.recorder))
            @if !shown.is_empty() {
                h3 { "The worst, one by one" }
                p.quiet {
                    "The worst of each cause. Shares are disjoint and sum to the latency; hatched "
                    "is what may as well be something else."
                }
                @for picture in shown { (picture) }
                @if shown.len() < spikes.worst.len() {
                    p.quiet { "The record holds " (spikes.worst.len() - shown.len()) " more." }
                }
            }
        }
    }
}

/// How many there were, and how much of their time is known.
fn summary_html(spikes: &Spikes) -> String {
    let count = |n: u64| grouped(n);
    let limit = units::ns(spikes.threshold_ns);
    let from = if spikes.adaptive { ", a limit set from how the machine ran" } else { "" };
    if spikes.seen == 0 {
        return format!("No wake-up was later than {limit}{from}.");
    }
    let (were, all) =
        if spikes.seen == 1 { ("wake-up was", "it") } else { ("wake-ups were", "them") };
    let mut text = format!(
        "{} {were} later than {limit}{from}. {} of {all} are explained",
        count(spikes.seen),
        count(spikes.explained)
    );
    if spikes.unexamined > 0 {
        let why = "too many at once, or nothing was recorded of them";
        text.push_str(&format!(", {} were not examined ({why})", count(spikes.unexamined)));
    }
    text.push_str(&format!(
        ". Of the {} of lateness in all, {} is certain.",
        units::ns(spikes.sum_ns),
        percent(spikes.certain_ns, spikes.sum_ns)
    ));
    if spikes.incomplete > 0 {
        text.push_str(&format!(
            " {} incomplete: events were lost or missing, so that the shares may be wrong.",
            match spikes.incomplete {
                1 => "1 explanation is".into(),
                n => format!("{} explanations are", count(n)),
            }
        ));
    }
    text
}

fn structure(structure: &[Structure]) -> Markup {
    html! {
        @if !structure.is_empty() {
            h3 { "What they have in common" }
            ul {
                @for of in structure {
                    li { (of.text) "." }
                }
            }
        }
    }
}

/// How it was recorded, and what that leaves open.
fn recorder_html(recorder: &RecorderSummary) -> Markup {
    let mut texts = Vec::new();
    if let Some(why) = &recorder.off {
        texts.push(format!("No kernel events were recorded: {why}."));
    }
    if let Some(cost_ns) = recorder.cost_p50_ns.filter(|_| recorder.off.is_none()) {
        let sign = if cost_ns < 0 { "−" } else { "+" };
        texts.push(format!(
            "Recording changes the median latency by {sign}{}, measured in {} of slices with and \
             without it.",
            units::ns(cost_ns.unsigned_abs()),
            units::count(recorder.cost_pairs, "pair")
        ));
    } else if recorder.off.is_none() {
        texts.push("What recording costs was not measured.".into());
    }
    if recorder.lost_events > 0 {
        texts.push(format!("{} events were lost.", grouped(recorder.lost_events)));
    }
    if recorder.blind_ns > 0 {
        texts.push(format!("For {} nothing was recorded.", units::duration(recorder.blind_ns)));
    }
    if let Some(from_ns) = recorder.stacks_from_ns {
        let at = crate::html::run_time(from_ns);
        texts.push(format!("Stacks at the timer interrupt were recorded from {at} on."));
    }
    html! {
        p.quiet { (texts.join(" ")) }
        @if !recorder.missing.is_empty() {
            details {
                summary {
                    (units::count(recorder.missing.len(), "kernel event"))
                    " not there: what cannot be told apart"
                }
                ul { @for missing in &recorder.missing { li { (missing) } } }
            }
        }
    }
}

// The spikes of a run as text: how many, what caused them, the worst one, what would remove the
// largest cause.

/// Most shares named below a timeline.
const SHARES_MAX: usize = 8;

const INDENT: &str = "         ";

/// The spikes after the measured part. `window`: the events round the worst, `spikes.worst[0]`,
/// where they were kept.
pub fn spikes(to: &mut Terminal, spikes: &Spikes, window: Option<&Window>) -> io::Result<()> {
    to.page.spikes(to, spikes, window)
}

/// The spikes of a run, where its record has any.
pub fn spikes_of(to: &mut Terminal, run: &Run, report: &Report) -> io::Result<()> {
    let Some(found) = &report.spikes else { return Ok(()) };
    let window = |worst: &ExplainedSpike| run.spikes.as_ref()?.window(worst.number);
    spikes(to, found, found.worst.first().and_then(window))
}

impl TextPage {
    pub(crate) fn spikes(
        self,
        to: &mut dyn Write,
        spikes: &Spikes,
        window: Option<&Window>,
    ) -> io::Result<()> {
        self.wrapped(to, &format!("{BOLD}Spikes{BOLD:#}   "), INDENT, &summary_text(spikes))?;
        if spikes.incomplete > 0 {
            let text = format!(
                "{} incomplete: events were lost or missing, so that shares may be wrong",
                grouped(spikes.incomplete)
            );
            self.wrapped(to, &format!("{INDENT}{WARN}!{WARN:#} "), "           ", &text)?;
        }
        self.causes(to, spikes)?;
        for of in &spikes.structure {
            self.wrapped(to, &format!("{INDENT}{DIM}-{DIM:#} "), "           ", &of.text)?;
        }
        if let Some(worst) = spikes.worst.first() {
            self.worst(to, worst, window)?;
        }
        let text = format!("{}{DIM:#}", recorder_text(&spikes.recorder));
        self.wrapped(to, &format!("{INDENT}{DIM}"), INDENT, &text)
    }

    fn worst(
        self,
        to: &mut dyn Write,
        worst: &ExplainedSpike,
        window: Option<&Window>,
    ) -> io::Result<()> {
        let explanation = &worst.explanation;
        let phase =
            if worst.phase.is_empty() { String::new() } else { format!(", {}", worst.phase) };
        let text = format!(
            "{} late on CPU {}{phase}: spike {}",
            us(explanation.wake.latency_ns()),
            explanation.wake.cpu,
            worst.number
        );
        self.wrapped(to, &format!("{BOLD}Worst{BOLD:#}    "), INDENT, &text)?;
        timeline(to, explanation, window, self.columns, self.glyphs)?;
        for (i, share) in explanation.shares.iter().enumerate().take(SHARES_MAX) {
            let tone = style(&share.cause);
            let time = us(share.ns);
            let first = format!("        {tone}{}{tone:#} {time:>12} ", letter(i));
            self.wrapped(to, &first, &" ".repeat(23), &spike::named(share))?;
        }
        let more = explanation.shares.len().saturating_sub(SHARES_MAX);
        if more > 0 {
            writeln!(to, "        {DIM}and {more} more{DIM:#}")?;
        }
        Ok(())
    }
}

fn summary_text(spikes: &Spikes) -> String {
    let limit = units::ns(spikes.threshold_ns);
    let limit = if spikes.adaptive { format!("{limit} (from the run)") } else { limit };
    if spikes.seen == 0 {
        return format!("none seen later than {limit}");
    }
    let unexamined = match spikes.unexamined {
        0 => String::new(),
        n => format!(", {} not examined", grouped(n)),
    };
    if spikes.explained == 0 {
        return format!("{} later than {limit}, none explained{unexamined}", grouped(spikes.seen));
    }
    format!(
        "{} later than {limit}, {} explained{unexamined}; {} of {} is certain",
        grouped(spikes.seen),
        grouped(spikes.explained),
        percent(spikes.certain_ns, spikes.sum_ns),
        us(spikes.sum_ns)
    )
}

/// How it was recorded, in a line.
fn recorder_text(recorder: &RecorderSummary) -> String {
    let mut texts = Vec::new();
    texts.extend(recorder.off.as_ref().map(|why| format!("nothing recorded: {why}")));
    let cost_ns = recorder.cost_p50_ns.filter(|_| recorder.off.is_none());
    texts.extend(cost_ns.map(|cost_ns| {
        let sign = if cost_ns < 0 { '−' } else { '+' };
        format!("recording costs {sign}{} at p50", units::ns(cost_ns.unsigned_abs()))
    }));
    if recorder.off.is_none() && recorder.cost_p50_ns.is_none() {
        texts.push("cost of recording not measured".into());
    }
    if recorder.off.is_none() {
        texts.push(format!("{} events lost", grouped(recorder.lost_events)));
    }
    if recorder.blind_ns > 0 {
        texts.push(format!("{} without recording", units::duration(recorder.blind_ns)));
    }
    if !recorder.missing.is_empty() {
        texts.push(format!("not there: {}", recorder.missing.join("; ")));
    }
    texts.join("; ")
}

// The table of causes, by CPU as well, and what would remove them.

/// Most causes whose remedies are shown.
const REMEDIES_MAX: usize = 8;

/// Of those in sight.
const REMEDIES_FIRST: usize = 3;

/// Causes in sight; the others are closed.
const FIRST: usize = 8;

/// Most causes in a table.
const ROWS_MAX: usize = 50;

fn shown(spikes: &Spikes) -> &[CauseRow] {
    &spikes.causes[..spikes.causes.len().min(ROWS_MAX)]
}

/// The causes, the largest sum first.
fn causes_table(spikes: &Spikes) -> Markup {
    // A share of a bar that is always drawn; not-a-number gives none.
    let part = |row: &CauseRow| row.sum_ns as f64 / spikes.sum_ns.max(1) as f64 * 100.0;
    let (first, rest) = shown(spikes).split_at(shown(spikes).len().min(FIRST));
    let part_table = |rows: &[CauseRow]| {
        crate::html::table_of(
            "causes",
            rows,
            &[
                ("~cause", &|row| html! { (row.title) }),
                ("~who", &|row| {
                    html! { (if row.culprit.is_empty() { crate::html::NONE } else { &row.culprit })
                    @if let Some(owner) = &row.owner { br; small { (owner) } } }
                }),
                ("#spikes", &|row| html! { (grouped(row.count)) }),
                ("#the largest in", &|row| html! { (grouped(row.top)) }),
                ("#worst, µs", &|row| html! { (us_number(row.worst_ns)) }),
                ("#sum, µs", &|row| html! { (us_number(row.sum_ns)) }),
                ("share of the lateness", &|row| {
                    html! { span.share aria-hidden="true" {
                        i class=(spike::class(&row.cause))
                            style=(format!("width:{}%", px(part(row).clamp(0.0, 100.0)))) {}
                    }
                    (percent(row.sum_ns, spikes.sum_ns)) }
                }),
                ("uncertain", &|row| {
                    html! { (if row.ambiguous_ns == 0 { crate::html::NONE.into() } else {
                        percent(row.ambiguous_ns, row.sum_ns)
                    }) }
                }),
            ],
        )
    };
    html! {
        (crate::html::scroll("Causes of the spikes", &part_table(first)))
        @if !rest.is_empty() {
            details.more {
                summary { (units::count(rest.len(), "cause")) " more" }
                (crate::html::scroll("More causes of the spikes", &part_table(rest)))
            }
        }
        @let more = spikes.causes.len() - shown(spikes).len();
        @if more > 0 { p.quiet { "The record holds " (more) " more, each with a smaller sum." } }
    }
}

/// The same for each CPU.
fn by_cpu(spikes: &Spikes) -> Markup {
    let rows = shown(spikes).iter().flat_map(|row| row.cpus.iter().map(move |of| (row, of)));
    let table = crate::html::table(
        rows,
        &[
            ("cause", &|(row, _)| html! { (row.title) }),
            ("~who", &|(row, _)| {
                html! { (if row.culprit.is_empty() { crate::html::NONE } else { &row.culprit }) }
            }),
            ("#CPU", &|(_, of)| html! { (of.cpu) }),
            ("#spikes", &|(_, of)| html! { (grouped(of.count)) }),
            ("#worst, µs", &|(_, of)| html! { (us_number(of.worst_ns)) }),
            ("#sum, µs", &|(_, of)| html! { (us_number(of.sum_ns)) }),
        ],
    );
    html! {
        details.numbers {
            summary { "By CPU" }
            (crate::html::scroll("Causes by CPU", &table))
        }
    }
}

/// Knob that would remove the largest of them.
fn remedies(spikes: &Spikes, findings: &[Finding]) -> Markup {
    let has = |row: &&CauseRow| !row.remedies.is_empty() || !row.checks.is_empty();
    let rows: Vec<&CauseRow> = spikes.causes.iter().filter(has).take(REMEDIES_MAX).collect();
    html! {
        @if !rows.is_empty() {
            h3 { "What would remove them" }
            @let rows: Vec<Markup> = rows.iter().map(|row| html! {
                details.finding {
                    summary {
                        (row.title)
                        @if !row.culprit.is_empty() { ": " strong { (row.culprit) } }
                        span.quiet { " " (percent(row.sum_ns, spikes.sum_ns)) }
                    }
                    (removed(row, findings))
                }
            }).collect();
            (crate::html::first_rows(&rows, REMEDIES_FIRST, "more"))
        }
    }
}

/// What removes a cause: commands, and the checks that found them.
fn removed(row: &CauseRow, findings: &[Finding]) -> Markup {
    html! {
        @for remedy in &row.remedies { (remedy_shown(remedy)) }
        (checks(&row.checks, findings))
    }
}

/// What removes the largest cause of a spike.
fn remedy_of(spikes: &Spikes, spike: &ExplainedSpike, findings: &[Finding]) -> Markup {
    let row = spike.explanation.top().and_then(|top| {
        let is_it = |row: &&CauseRow| row.cause == top.cause && row.culprit == top.culprit;
        spikes.causes.iter().find(is_it)
    });
    let row = row.filter(|row| !row.remedies.is_empty() || !row.checks.is_empty());
    html! {
        @if let Some(row) = row {
            div.remedies { p { strong { "What would remove it" } } (removed(row, findings)) }
        }
    }
}

/// Checks whose knobs remove a cause; where the page has the finding, a link to it.
fn checks(checks: &[String], findings: &[Finding]) -> Markup {
    html! {
        @if !checks.is_empty() {
            p.quiet {
                "Checks: "
                @for (i, check) in checks.iter().enumerate() {
                    @if i > 0 { ", " }
                    @if findings.iter().any(|finding| finding.check == *check && is_card(finding)) {
                        a href={ "#check-" (check) } { code { (check) } }
                    } @else { code { (check) } }
                }
            }
        }
    }
}

/// Whether the page shows a finding at length, so that there is something to link to.
fn is_card(finding: &Finding) -> bool {
    !matches!(FindingGroup::of(finding), FindingGroup::Skipped | FindingGroup::Fine)
}

// One spike: its picture, its shares as a sum, its wakers, and details.

/// A spike, folded away. `remedy`: what removes its largest cause.
fn spike(spike: &ExplainedSpike, window: Option<&Window>, remedy: &Markup) -> Markup {
    let explanation = &spike.explanation;
    let wake = &explanation.wake;
    let id = format!("spike-{}", spike.number);
    let top = explanation.top().map(spike::named).unwrap_or_default();
    html! {
        details.spike {
            summary {
                strong { (us(wake.latency_ns())) }
                " · CPU " (wake.cpu) " · " (top)
                @if explanation.shares.len() > 1 {
                    " and " (explanation.shares.len() - 1) " more"
                }
                @if !explanation.incomplete.is_empty() { " · incomplete" }
            }
            // The anchor is within, so that a link to it opens the spike.
            p.quiet id=(id) {
                "Spike " (spike.number) ": " (explanation.task) ", due "
                (crate::html::run_time(spike.at_ns)) " after the start"
                @if !spike.phase.is_empty() { ", phase " (spike.phase) }
                ". " a href="#timeline" { "Back to the time line" }
            }
            @if !explanation.incomplete.is_empty() {
                p.doubtful {
                    span.status.doubtful { (crate::html::icon("warn")) "incomplete" }
                    " " (explanation.incomplete.join("; ")) "."
                }
            }
            (crate::html::scroll("Timeline", &draw(&format!("chart-{id}"), explanation, window)))
            @if window.is_none() {
                p.quiet { "Its events were not kept: only the causes are drawn." }
            }
            (crate::html::scroll("Shares of the latency", &shares(explanation)))
            @if !explanation.wakers.is_empty() {
                p { "Woken by " (explanation.wakers.join(", which was woken by ")) "." }
            }
            (remedy)
        }
    }
}

/// The shares as a sum.
fn shares(explanation: &Explanation) -> Markup {
    let (listed, rest) = spike::listed(explanation);
    let (sum_ns, late_ns) = (spike::sum_ns(explanation), explanation.wake.latency_ns());
    html! {
        table.shares {
            (crate::html::table_head(["#ns", "#share", "cause", "what more is known"]))
            tbody {
                @for share in listed { (row(share, late_ns)) }
                @if let Some((count, ns)) = rest {
                    tr {
                        td.num { (grouped(ns)) }
                        td.num { (percent(ns, late_ns)) }
                        th scope="row" { (count) " more" }
                        td { (crate::html::NONE) }
                    }
                }
            }
            tfoot {
                tr {
                    td.num { "= " (grouped(sum_ns)) }
                    td.num { (percent(sum_ns, late_ns)) }
                    td {
                        @if sum_ns == late_ns {
                            span.status.good { (crate::html::icon("check")) "the latency, exactly" }
                        } @else {
                            span.status.bad {
                                (crate::html::icon("cross"))
                                "not the latency: " (grouped(late_ns)) " ns"
                            }
                        }
                    }
                    td {}
                }
            }
        }
    }
}

fn row(share: &Share, late_ns: u64) -> Markup {
    html! {
        tr {
            td.num { (grouped(share.ns)) }
            td.num { (percent(share.ns, late_ns)) }
            th.wrap scope="row" {
                span class={ "swatch block " (spike::class(&share.cause)) } {}
                (spike::named(share))
                @if let Some(or) = spike::otherwise(share) { small { " (" (or) ")" } }
            }
            td.wrap { (known_html(share)) }
        }
    }
}

/// Owner and details; frames of a stack one below the other.
fn known_html(share: &Share) -> Markup {
    let (frames, texts): (Vec<&String>, Vec<&String>) =
        share.detail.iter().partition(|detail| spike::is_frame(detail));
    let texts: Vec<String> =
        spike::owner(share).into_iter().chain(texts.into_iter().cloned()).collect();
    html! {
        @if texts.is_empty() && frames.is_empty() { (crate::html::NONE) }
        (texts.join("; "))
        @if !frames.is_empty() {
            ol.stack { @for frame in frames { li { code { (frame) } } } }
        }
    }
}

// One late wake-up as text: its steps, its shares as a sum, its timeline, its wakers, what would
// remove it.

/// Shares of less than one in so many have no remedies shown.
const SMALL: u64 = 20;

/// Why a wake-up was late. `window`: the events round it, where they were kept.
pub fn explanation(
    to: &mut Terminal,
    explanation: &Explanation,
    window: Option<&Window>,
) -> io::Result<()> {
    to.page.explanation(to, explanation, window)
}

impl TextPage {
    pub(crate) fn explanation(
        self,
        to: &mut dyn Write,
        explanation: &Explanation,
        window: Option<&Window>,
    ) -> io::Result<()> {
        let wake = &explanation.wake;
        let text =
            format!("{} late on CPU {}: {}", us(wake.latency_ns()), wake.cpu, explanation.task);
        self.wrapped(to, &format!("{BOLD}Spike{BOLD:#}    "), "         ", &text)?;
        for why in &explanation.incomplete {
            let first = format!("         {WARN}!{WARN:#} ");
            self.wrapped(to, &first, "           ", &format!("incomplete: {why}"))?;
        }
        self.wrapped(to, &format!("{BOLD}Steps{BOLD:#}    "), "         ", &steps(explanation))?;
        self.shares(to, explanation)?;
        writeln!(to)?;
        timeline(to, explanation, window, self.columns, self.glyphs)?;
        if window.is_none() {
            let text = "its events were not kept: only the causes are drawn";
            self.wrapped(to, &format!("        {DIM}"), "        ", &format!("{text}{DIM:#}"))?;
        }
        if !explanation.wakers.is_empty() {
            let text = explanation.wakers.join(", which was woken by ");
            self.wrapped(to, &format!("{BOLD}Woken by{BOLD:#} "), "         ", &text)?;
        }
        self.remedies(to, explanation)
    }

    /// The shares with bars, details and their sum.
    pub(crate) fn shares(self, to: &mut dyn Write, explanation: &Explanation) -> io::Result<()> {
        let (sum_ns, late_ns) = (spike::sum_ns(explanation), explanation.wake.latency_ns());
        let wide = format!("= {}", grouped(sum_ns)).chars().count();
        let bar_columns = if self.columns >= 80 { 12 } else { 6 };
        writeln!(to, "{BOLD}Shares{BOLD:#}{DIM}{:>n$}{DIM:#}", "ns", n = wide - 2)?;
        let blocks = blocks_of(&self.glyphs, explanation);
        let (listed, rest) = spike::listed(explanation);
        for ((i, share), block) in listed.iter().enumerate().zip(blocks) {
            let (tone, ns) = (style(&share.cause), grouped(share.ns));
            let of = percent(share.ns, late_ns);
            let bar = Self::bar(share.ns, late_ns, bar_columns, block);
            let first = format!(
                "  {tone}{}{tone:#} {ns:>n$} {of:>7} {tone}{bar}{tone:#} ",
                letter(i),
                n = wide
            );
            let next = " ".repeat(4 + wide + 9 + bar_columns + 1);
            self.wrapped(to, &first, &next, &spike::named(share))?;
            // Paths and stacks are long: on narrow terminals they have the whole line.
            let next = if self.columns >= 80 { next } else { " ".repeat(6) };
            for (frame, text) in known_text(share) {
                let indent = if frame { "  " } else { "" };
                let first = format!("{next}{indent}{DIM}");
                self.wrapped(to, &first, &format!("{next}  "), &format!("{text}{DIM:#}"))?;
            }
        }
        if let Some((count, ns)) = rest {
            let of = percent(ns, late_ns);
            writeln!(to, "    {:>wide$} {of:>7} {count} more", grouped(ns))?;
        }
        let sum = format!("= {}", grouped(sum_ns));
        let (tone, text) = match sum_ns == late_ns {
            true => (BOLD, "the latency, exactly".to_owned()),
            false => (BAD, format!("not the latency: {} ns", grouped(late_ns))),
        };
        let first = format!("    {BOLD}{sum:>wide$}{BOLD:#} {:>7} ", percent(sum_ns, late_ns));
        let next = " ".repeat(4 + wide + 9);
        self.wrapped(to, &first, &next, &format!("{tone}{text}{tone:#}"))
    }

    fn bar(ns: u64, of_ns: u64, columns: usize, block: char) -> String {
        let part = ns as f64 / of_ns.max(1) as f64 * columns as f64;
        let filled = (part.round() as usize).clamp(usize::from(ns > 0), columns);
        format!("{}{}", block.to_string().repeat(filled), " ".repeat(columns - filled))
    }

    /// What would remove its causes, by their letters.
    fn remedies(self, to: &mut dyn Write, explanation: &Explanation) -> io::Result<()> {
        // What took little is not worth a change.
        let least_ns = explanation.wake.latency_ns() / SMALL;
        let listed = || spike::listed(explanation).0.iter().enumerate();
        let shares = || listed().filter(|(i, share)| *i == 0 || share.ns >= least_ns);
        if shares().all(|(_, share)| share.remedies.is_empty() && share.checks.is_empty()) {
            return Ok(());
        }
        writeln!(to, "{BOLD}Remedies{BOLD:#}")?;
        for (i, share) in shares() {
            let tone = style(&share.cause);
            let first = format!("  {tone}{}{tone:#} ", letter(i));
            for remedy in &share.remedies {
                self.wrapped(to, &first, "    ", &remedy.to_string())?;
            }
            if !share.checks.is_empty() {
                let text = format!("rtproof check explain {}", share.checks.join(" | "));
                self.wrapped(
                    to,
                    &format!("  {tone}{}{tone:#} {DIM}", letter(i)),
                    "    ",
                    &format!("{text}{DIM:#}"),
                )?;
            }
        }
        Ok(())
    }

    pub(crate) fn wrapped(
        self,
        to: &mut dyn Write,
        first: &str,
        next: &str,
        text: &str,
    ) -> io::Result<()> {
        wrapped_in(self.columns, to, first, next, text)
    }
}

/// The steps with the time between them: `due, +2 658.7 interrupt, +3.8 woken ... µs`.
fn steps(explanation: &Explanation) -> String {
    let steps = spike::steps(explanation);
    let mut before_ns = None;
    let texts: Vec<String> = steps
        .into_iter()
        .map(|(name, at_ns)| match before_ns.replace(at_ns) {
            Some(before_ns) => format!("+{} {name}", us_number(at_ns - before_ns)),
            None => name.to_owned(),
        })
        .collect();
    format!("{} (µs)", texts.join(", "))
}

/// Details of a share; frames of a stack one by one.
fn known_text(share: &Share) -> Vec<(bool, String)> {
    let (frames, mut texts): (Vec<String>, Vec<String>) =
        share.detail.iter().cloned().partition(|detail| spike::is_frame(detail));
    texts.splice(0..0, spike::owner(share));
    texts.splice(0..0, spike::otherwise(share));
    let text = texts.join("; ");
    let text = (!text.is_empty()).then_some((false, text));
    text.into_iter().chain(frames.into_iter().map(|frame| (true, frame))).collect()
}

// The causes of a run's spikes by class, culprits beneath, on less than a screen.

const CLASSES_MAX: usize = 5;

/// Most culprits of a class.
const CULPRITS_MAX: usize = 3;

/// Classes of which a fix is shown.
const FIXES_MAX: usize = 3;

const HEADS: [&str; 4] = ["share", "certain", "spikes", "worst µs"];

/// A line of the table.
struct Line {
    name: String,
    /// Culprit, where it belongs to the same line and there is room.
    culprit: String,
    cells: [String; 4],
    tone: TextStyle,
    fix: Option<String>,
}

impl TextPage {
    /// The causes as a table. `share`: of the lateness of all explained spikes; `certain`: of that,
    /// what cannot have been anything else.
    fn causes(self, to: &mut dyn Write, spikes: &Spikes) -> io::Result<()> {
        let classes = classes(spikes);
        if classes.is_empty() {
            return Ok(());
        }
        let shown = &classes[..classes.len().min(CLASSES_MAX)];
        let mut lines = vec![Line {
            name: String::new(),
            culprit: String::new(),
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
            let (tone, name, who) = (line.tone, &line.name, text::harmless_line(&line.culprit));
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
fn of_class(class: &CauseClass<'_>, all_ns: u64, with_fix: bool) -> Vec<Line> {
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
        let (name, who) = (class.title.to_owned(), culprit(row));
        return vec![Line { name, culprit: who, cells, tone: BOLD, fix }];
    }
    let cells_of_class = cells(class.sum_ns, certain_ns, None, worst_ns);
    let line =
        |name: String, cells, tone| Line { name, culprit: String::new(), cells, tone, fix: None };
    let mut lines = vec![line(class.title.to_owned(), cells_of_class, BOLD)];
    // One that is left is shown rather than counted.
    let shown = if class.rows.len() == CULPRITS_MAX + 1 { CULPRITS_MAX + 1 } else { CULPRITS_MAX };
    lines.extend(class.rows.iter().take(shown).map(|row| {
        let who = culprit(row);
        let who = if who.is_empty() { "(no culprit)".to_owned() } else { who };
        let certain_ns = row.sum_ns.saturating_sub(row.ambiguous_ns);
        let cells = cells(row.sum_ns, certain_ns, Some(row.count), row.worst_ns);
        line(format!("  {}", text::harmless_line(&who)), cells, TextStyle::PLAIN)
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
fn culprit(row: &CauseRow) -> String {
    match (&row.owner, row.culprit.is_empty()) {
        (Some(owner), false) => format!("{} ({owner})", row.culprit),
        (Some(owner), true) => owner.clone(),
        (None, _) => row.culprit.clone(),
    }
}
