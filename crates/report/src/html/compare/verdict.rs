//! The answer: a word, a sentence, its reasons.

use maud::{Markup, html};
use rtproof_judge::compare::Answer;

use super::{
    super::{answer, parts},
    page::Page,
};
use crate::compare as words;

pub(super) fn section(page: &Page<'_>) -> Markup {
    let comparison = page.comparison;
    let (class, icon) = tone(comparison.answer);
    let many = comparison.against.len() > 1;
    html! {
        section.verdict.(class) #verdict {
            h2 { (parts::icon(icon)) (words::capital(comparison.answer.text())) }
            p.sentence { (comparison.sentence) }
            (answer::short(page.answer))
            @if !comparison.mismatches.is_empty() {
                p.status.bad {
                    (parts::icon("warn")) "These runs are not alike; compared all the same:"
                }
                ul.reasons { @for mismatch in &comparison.mismatches { li { (mismatch.text()) } } }
            }
            @if many {
                ul.reasons {
                    @for one in &comparison.against { li { (words::own(one)) } }
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

fn tone(answer: Answer) -> (&'static str, &'static str) {
    match answer {
        Answer::Better => ("accepted", "check"),
        Answer::Worse => ("refused", "cross"),
        Answer::NoDifference => ("idle", "dash"),
        Answer::CannotDecide => ("not-proven", "question"),
    }
}
