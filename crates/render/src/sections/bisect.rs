//! A bisection of kernels, as text and as a page.

use std::io::{self, Write};

use maud::{Markup, html};

use rtproof_host::text;
use rtproof_judge::units::{count, grouped};
use rtproof_results::kernel::{
    BisectStep, BisectSuspect, BisectedIn, BisectedOver, GuestClock, KernelBisectNext,
    KernelBisected, KernelSide, StepOutcome, Stretches,
};

use super::kernel;
use crate::page::{BAD, BOLD, DIM, GOOD, Terminal, WARN, wrapped};

// What a bisection found, in words that its text and its page share.

/// Digits of a commit or a digest that are shown.
pub(crate) const DIGITS: usize = 12;

/// What lengths are counted in.
pub(crate) const fn unit(of: &KernelBisected) -> &'static str {
    match of.booted_in {
        BisectedIn::Guest => "instructions",
        BisectedIn::Machine => "ns",
    }
}

/// The answer in one sentence.
pub(crate) fn bisect_sentence(of: &KernelBisected) -> String {
    match of.is_reproduced {
        Some(false) => format!(
            "Not reproduced, a second boot of the same kernel ended otherwise: {}",
            answer(of)
        ),
        _ => answer(of),
    }
}

fn answer(of: &KernelBisected) -> String {
    let number = of.suspects.len() as u64;
    let all = match of.over {
        BisectedOver::Commits => count(number, "commit"),
        BisectedOver::Options => count(number, "option"),
    };
    match (of.over, of.is_found, of.suspects.first()) {
        (BisectedOver::Commits, true, Some(BisectSuspect::Commit { commit, subject, .. })) => {
            format!("The first bad commit is {}: {subject}", short_id(commit))
        }
        (BisectedOver::Commits, ..) => format!(
            "The first bad commit is one of {all}: those between could not be tested, so none is \
             named"
        ),
        (BisectedOver::Options, true, _) if number == 1 => {
            format!("The option that makes the difference is {}", names(of))
        }
        (BisectedOver::Options, true, _) => {
            format!("{all} make the difference together, and none of them alone: {}", names(of))
        }
        (BisectedOver::Options, false, _) => format!(
            "Among {all} is what makes the difference; without some of them it could not be \
             tested: {}",
            names(of)
        ),
    }
}

fn names(of: &KernelBisected) -> String {
    let name = |suspect: &BisectSuspect| match suspect {
        BisectSuspect::Option { option, .. } => {
            format!("{} ({} -> {})", option.name, option.values[0], option.values[1])
        }
        BisectSuspect::Commit { commit, .. } => short_id(commit).to_owned(),
    };
    of.suspects.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// The first digits of an id.
pub(crate) fn short_id(id: &str) -> &str {
    id.get(..DIGITS).unwrap_or(id)
}

/// How many steps ended in which way.
pub(crate) fn tally(of: &KernelBisected) -> String {
    let number =
        |outcome| of.steps.iter().filter(|step| step.outcome == outcome).count().to_string();
    format!(
        "{}: {} good, {} bad, {} skipped",
        count(of.steps.len() as u64, "step"),
        number(StepOutcome::Good),
        number(StepOutcome::Bad),
        number(StepOutcome::Skipped)
    )
}

/// The test and its limit in words.
pub(crate) fn test(of: &KernelBisected) -> String {
    match of.threshold {
        Some(limit) => format!("{} (limit {})", of.test, grouped(limit)),
        None => of.test.clone(),
    }
}

// A bisection as one page: the culprit, the evidence of both sides, every step with its logs.

pub fn page(of: &KernelBisected) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let body = html! {
        header {
            p.tool { "rtproof · kernel bisect" }
            h1 { (bisect_sentence(of)) }
            p { "Bad is: " (test(of)) }
            p.quiet { (tally(of)) " · " (of.folder) }
        }
        main {
            @if !of.notes.is_empty() {
                section aria-labelledby="notes" {
                    h2 #notes { "What may mislead" }
                    ul { @for note in &of.notes { li { (note) } } }
                }
            }
            section aria-labelledby="culprit" {
                h2 #culprit { (if of.is_found { "Culprit" } else { "Candidates" }) }
                @for suspect in &of.suspects { (suspect_html(suspect)) }
                @if !of.changed.is_empty() {
                    h3 { "Changed by kconfig along with it" }
                    (crate::html::scroll(
                        "Options that kconfig changed",
                        &crate::html::table(&of.changed, &[
                            ("option", &|it| html! { (it.name) }),
                            ("good", &|it| html! { (it.values[0]) }),
                            ("bad", &|it| html! { (it.values[1]) }),
                        ]),
                    ))
                }
            }
            section aria-labelledby="evidence" {
                h2 #evidence { "Evidence of both sides" }
                (evidence_html(of))
            }
            section aria-labelledby="steps" {
                h2 #steps { (count(of.steps.len() as u64, "step")) }
                (crate::html::scroll("All steps", &steps_html(of)))
            }
        }
        footer {
            @if of.booted_in == BisectedIn::Guest { p { (GuestClock::Instructions.meaning()) } }
            p { "Made by rtproof " (version) ". The same in JSON: rtproof kernel bisect --json." }
        }
        (crate::html::data("bisect", of))
    };
    crate::html::page(&bisect_sentence(of), Some(version), &body)
}

fn suspect_html(of: &BisectSuspect) -> Markup {
    html! {
        @match of {
            BisectSuspect::Commit { commit, subject, author, date, stat, outcome } => {
                h3 { (short_id(commit)) " " (subject) }
                p { (author) ", " (date) ", " (outcome.map_or("not tested", StepOutcome::name)) }
                p.quiet { (commit) }
                pre { @for line in stat { (line) "\n" } }
            }
            BisectSuspect::Option { option, prompt, help, is_needed } => {
                h3 { (option.name) ": " (option.values[0]) " → " (option.values[1]) }
                @if let Some(prompt) = prompt { p { (prompt) } }
                @if !help.is_empty() { pre { @for line in help { (line) "\n" } } }
                @if is_needed.is_none() {
                    p { "Whether it is needed is unknown: no test without it." }
                }
            }
        }
    }
}

fn evidence_html(of: &KernelBisected) -> Markup {
    let step = |number: usize| of.steps.iter().find(|step| step.number == number);
    let sides: Vec<(&str, &BisectStep)> = ["good", "bad"]
        .into_iter()
        .zip(of.evidence)
        .filter_map(|(name, number)| Some((name, step(number)?)))
        .collect();
    let length = |of: &BisectStep, of_side: fn(&KernelSide) -> Option<u64>| {
        let value = of.measured.as_ref().and_then(of_side);
        html! { (value.map_or_else(|| crate::html::NONE.to_owned(), grouped)) }
    };
    html! {
        (crate::html::scroll("Both sides", &crate::html::table(&sides, &[
            ("side", &|it| html! { (it.0) }),
            ("step", &|it| html! { (it.1.number) }),
            ("kernel", &|it| html! { (short_id(&it.1.id)) }),
            ("~found", &|it| html! { (it.1.why) }),
            ("#due", &|it| length(it.1, |side| Some(side.scheduled))),
            ("#missed", &|it| length(it.1, |side| Some(side.missed))),
            ("#p50", &|it| length(it.1, |side| side.latency.p50)),
            ("#p99.9", &|it| length(it.1, |side| side.latency.p999)),
            (&format!("#max, {}", unit(of)), &|it| length(it.1, |side| side.latency.max)),
        ])))
        @for (name, step) in &sides {
            @if let Some(side) = step.measured.as_ref().filter(|side| side.threshold.is_some()) {
                h3 { "Causes, " (name) }
                (causes(side, unit(of)))
            }
        }
    }
}

fn causes(of: &KernelSide, unit: &str) -> Markup {
    let [seen, explained, incomplete] = of.spikes;
    html! {
        p {
            (count(seen, "wake-up")) " above " (of.threshold.map_or_else(String::new, grouped))
            " " (unit) ", " (grouped(explained)) " explained, " (grouped(incomplete))
            " with events missing"
        }
        @if !of.causes.is_empty() {
            (crate::html::scroll("Causes", &crate::html::table(&of.causes, &[
                ("cause", &|it: &&Stretches| html! { (it.title) }),
                ("#stretches", &|it| html! { (grouped(it.count)) }),
                ("#longest", &|it| html! { (grouped(it.longest)) }),
                ("#all", &|it| html! { (grouped(it.sum)) }),
                ("#uncertain", &|it| html! { (grouped(it.uncertain)) }),
            ])))
        }
    }
}

fn steps_html(of: &KernelBisected) -> Markup {
    let last = match of.booted_in {
        BisectedIn::Guest => "#guest, s",
        BisectedIn::Machine => "#test, s",
    };
    let outcome = |outcome: StepOutcome| {
        let (class, icon) = match outcome {
            StepOutcome::Good => ("good", "check"),
            StepOutcome::Bad => ("bad", "cross"),
            StepOutcome::Skipped => ("unknown", "question"),
        };
        html! { span class={ "status " (class) } { (crate::html::icon(icon)) (outcome.name()) } }
    };
    crate::html::table(
        &of.steps,
        &[
            ("step", &|it| html! { (it.number) }),
            ("kernel", &|it| html! { (short_id(&it.id)) }),
            ("outcome", &|it| outcome(it.outcome)),
            ("~what", &|it| html! { (it.title) }),
            ("~found", &|it| html! { (it.why) }),
            ("#build, s", &|it| html! { (it.build_s) }),
            ("#objects", &|it| html! { (it.objects) }),
            (last, &|it| html! { (format!("{:.1}", it.boot_s)) }),
            ("~logs", &|it| html! { (it.folder) }),
        ],
    )
}

// The answer of a bisection: the culprit first, the evidence of both sides, every step.

/// Suspects that are shown in full.
const SUSPECTS_MAX: usize = 10;

pub fn kernel_bisected(to: &mut Terminal, of: &KernelBisected, page: &str) -> io::Result<()> {
    wrapped(
        to,
        &BOLD.to_string(),
        "",
        &format!("{}{BOLD:#}", text::harmless_line(&bisect_sentence(of))),
    )?;
    writeln!(to, "  bad is    {}", text::harmless_line(&test(of)))?;
    writeln!(to, "  {}", tally(of))?;
    writeln!(to, "  page      {page}")?;
    for note in &of.notes {
        wrapped(to, &format!("{WARN}note{WARN:#}: "), "  ", &text::harmless_line(note))?;
    }
    for suspect in of.suspects.iter().take(SUSPECTS_MAX) {
        suspect_text(to, suspect)?;
    }
    if of.suspects.len() > SUSPECTS_MAX {
        writeln!(to, "  {DIM}{} more: --json{DIM:#}", of.suspects.len() - SUSPECTS_MAX)?;
    }
    if !of.changed.is_empty() {
        let changed = of.changed.iter().map(|it| {
            let [good, bad] = it.values.each_ref().map(|value| text::harmless_line(value));
            format!("{} {good} -> {bad}", text::harmless_line(&it.name))
        });
        let changed = changed.collect::<Vec<_>>().join(", ");
        writeln!(to)?;
        wrapped(to, "kconfig changed along with it: ", "  ", &changed)?;
    }
    evidence_text(to, of)?;
    steps_text(to, of)?;
    match of.booted_in {
        BisectedIn::Guest => {
            writeln!(to)?;
            wrapped(to, "", "", GuestClock::Instructions.meaning())
        }
        BisectedIn::Machine => Ok(()),
    }
}

/// What comes next, where the machine has to boot first.
pub fn next_step(to: &mut Terminal, of: &KernelBisectNext, reboots: bool) -> io::Result<()> {
    if let Some(step) = of.steps.last() {
        let why = text::harmless_line(&step.why);
        writeln!(to, "step {}  {}: {why}", step.number, step.outcome.name())?;
    }
    let done = count(of.steps.len() as u64, "step");
    wrapped(to, "", "  ", &format!("{done} done. Next: {}.", text::harmless_line(&of.then)))?;
    let argument = of.reboot.as_ref().map(|it| format!(" '{it}'")).unwrap_or_default();
    match reboots {
        true => writeln!(to, "  Rebooting; rtproof-bisect.service goes on after it."),
        false => writeln!(to, "  Now: reboot{argument}, and give the same command again after it."),
    }
}

fn suspect_text(to: &mut Terminal, of: &BisectSuspect) -> io::Result<()> {
    writeln!(to)?;
    match of {
        BisectSuspect::Commit { commit, subject, author, date, stat, outcome } => {
            writeln!(to, "{BOLD}{}{BOLD:#}  {}", short_id(commit), text::harmless_line(subject))?;
            let outcome = outcome.map_or("not tested", StepOutcome::name);
            writeln!(
                to,
                "  {}, {}, {outcome}",
                text::harmless_line(author),
                text::harmless_line(date)
            )?;
            stat.iter().try_for_each(|line| writeln!(to, "    {}", text::harmless_line(line)))
        }
        BisectSuspect::Option { option, prompt, help, is_needed } => {
            let [good, bad] = option.values.each_ref().map(|value| text::harmless_line(value));
            let prompt = prompt.as_deref().unwrap_or("no prompt");
            let name = text::harmless_line(&option.name);
            writeln!(to, "{BOLD}{name}{BOLD:#}: {good} -> {bad}  {}", text::harmless_line(prompt))?;
            for line in help {
                writeln!(to, "    {DIM}{}{DIM:#}", text::harmless_line(line))?;
            }
            if is_needed.is_none() {
                writeln!(to, "  whether it is needed is unknown: no test without it")?;
            }
            Ok(())
        }
    }
}

/// Both sides, as `kernel compare` shows two kernels.
fn evidence_text(to: &mut Terminal, of: &KernelBisected) -> io::Result<()> {
    let sides = [("good", of.evidence[0]), ("bad", of.evidence[1])];
    writeln!(to, "\n{BOLD}Evidence{BOLD:#}")?;
    let mut measured = Vec::new();
    for (name, number) in sides {
        let Some(step) = of.steps.iter().find(|step| step.number == number) else { continue };
        let why = text::harmless_line(&step.why);
        writeln!(to, "  {name:<4}  step {number}, {}: {why}", short_id(&step.id))?;
        measured.extend(step.measured.as_ref().map(|side| (name, side)));
    }
    match &of.prove {
        Some(prove) if !measured.is_empty() => kernel::measured(to, prove, unit(of), &measured),
        _ => Ok(()),
    }
}

fn steps_text(to: &mut Terminal, of: &KernelBisected) -> io::Result<()> {
    writeln!(to, "\n{BOLD}Steps{BOLD:#}")?;
    let last = match of.booted_in {
        BisectedIn::Guest => "guest s",
        BisectedIn::Machine => " test s",
    };
    let (head, rest) = ("kernel", format!("  build s  objects  {last}"));
    let of = &of.steps;
    writeln!(to, "  {DIM}     {head:<DIGITS$}  outcome{rest}{DIM:#}")?;
    for step in of {
        let style = match step.outcome {
            StepOutcome::Good => GOOD,
            StepOutcome::Bad => BAD,
            StepOutcome::Skipped => WARN,
        };
        writeln!(
            to,
            "  {:>3}  {:<DIGITS$}  {style}{:<7}{style:#}  {:>7}  {:>7}  {:>7.1}  {}",
            step.number,
            short_id(&step.id),
            step.outcome.name(),
            step.build_s,
            step.objects,
            step.boot_s,
            text::harmless_line(&step.title)
        )?;
    }
    for step in of.iter().filter(|step| step.outcome == StepOutcome::Skipped) {
        let text = format!("{}; logs: {}", text::harmless_line(&step.why), step.folder);
        wrapped(to, &format!("  {} skipped: ", step.number), "    ", &text)?;
    }
    Ok(())
}
