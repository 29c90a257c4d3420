//! A bisection as one page: the culprit, the evidence of both sides, every step with its logs.

use maud::{Markup, html};
use rtproof_judge::units::{count, grouped};
use rtproof_results::kernel::{
    bisect::{BisectStep, BisectedIn, KernelBisected, StepOutcome, Suspect},
    boot::GuestClock,
    compare::{KernelSide, Stretches},
};

use super::parts;
use crate::bisected::{sentence, short, tally, test, unit};

pub fn page(of: &KernelBisected) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let body = html! {
        header {
            p.tool { "rtproof · kernel bisect" }
            h1 { (sentence(of)) }
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
                @for suspect in &of.suspects { (self::suspect(suspect)) }
                @if !of.changed.is_empty() {
                    h3 { "Changed by kconfig along with it" }
                    (parts::scroll("Options that kconfig changed", &parts::table(&of.changed, &[
                        ("option", &|it| html! { (it.name) }),
                        ("good", &|it| html! { (it.values[0]) }),
                        ("bad", &|it| html! { (it.values[1]) }),
                    ])))
                }
            }
            section aria-labelledby="evidence" {
                h2 #evidence { "Evidence of both sides" }
                (evidence(of))
            }
            section aria-labelledby="steps" {
                h2 #steps { (count(of.steps.len() as u64, "step")) }
                (parts::scroll("All steps", &steps(of)))
            }
        }
        footer {
            @if of.booted_in == BisectedIn::Guest { p { (GuestClock::Instructions.says()) } }
            p { "Made by rtproof " (version) ". The same in JSON: rtproof kernel bisect --json." }
        }
        (parts::data("bisect", of))
    };
    parts::page(&sentence(of), Some(version), &body)
}

fn suspect(of: &Suspect) -> Markup {
    html! {
        @match of {
            Suspect::Commit { commit, subject, author, date, stat, outcome } => {
                h3 { (short(commit)) " " (subject) }
                p { (author) ", " (date) ", " (outcome.map_or("not tested", StepOutcome::name)) }
                p.quiet { (commit) }
                pre { @for line in stat { (line) "\n" } }
            }
            Suspect::Option { option, prompt, help, is_needed } => {
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

fn evidence(of: &KernelBisected) -> Markup {
    let step = |number: usize| of.steps.iter().find(|step| step.number == number);
    let sides: Vec<(&str, &BisectStep)> = ["good", "bad"]
        .into_iter()
        .zip(of.evidence)
        .filter_map(|(name, number)| Some((name, step(number)?)))
        .collect();
    let length = |of: &BisectStep, of_side: fn(&KernelSide) -> Option<u64>| {
        let value = of.measured.as_ref().and_then(of_side);
        html! { (value.map_or_else(|| parts::NONE.to_owned(), grouped)) }
    };
    html! {
        (parts::scroll("Both sides", &parts::table(&sides, &[
            ("side", &|it| html! { (it.0) }),
            ("step", &|it| html! { (it.1.number) }),
            ("kernel", &|it| html! { (short(&it.1.id)) }),
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
            (parts::scroll("Causes", &parts::table(&of.causes, &[
                ("cause", &|it: &&Stretches| html! { (it.title) }),
                ("#stretches", &|it| html! { (grouped(it.count)) }),
                ("#longest", &|it| html! { (grouped(it.longest)) }),
                ("#all", &|it| html! { (grouped(it.sum)) }),
                ("#uncertain", &|it| html! { (grouped(it.uncertain)) }),
            ])))
        }
    }
}

fn steps(of: &KernelBisected) -> Markup {
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
        html! { span class={ "status " (class) } { (parts::icon(icon)) (outcome.name()) } }
    };
    parts::table(
        &of.steps,
        &[
            ("step", &|it| html! { (it.number) }),
            ("kernel", &|it| html! { (short(&it.id)) }),
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
