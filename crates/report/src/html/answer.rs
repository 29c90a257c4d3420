//! The answer below a verdict: the largest classes of causes, or why, and the next command.

use maud::{Markup, html};
use rtproof_judge::{
    Report,
    causes::{Class, Spikes, classes},
    units,
};
use rtproof_results::answer::Answer;

use crate::{spike, svg::px};

/// Classes of causes that are named.
const CLASSES_MAX: usize = 3;

/// The block; `next` is a command that can be pasted.
pub(super) fn block(report: &Report, next: Option<&str>) -> Markup {
    html! {
        @if let Some(spikes) = &report.spikes { (why(spikes)) }
        (self::next(next))
    }
}

/// The same of what has no picture of its causes.
pub(super) fn short(answer: &Answer) -> Markup {
    html! {
        @if let Some(why) = &answer.why { p.why { strong { "Why" } " " (why) } }
        (next(answer.next.as_deref()))
    }
}

fn next(command: Option<&str>) -> Markup {
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
                @for class in classes.iter().take(CLASSES_MAX) { li { (line(class, spikes)) } }
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

fn line(class: &Class<'_>, spikes: &Spikes) -> Markup {
    let part = class.sum_ns as f64 / spikes.sum_ns.max(1) as f64 * 100.0;
    html! {
        span.share aria-hidden="true" {
            i class=(spike::class(class.cause))
                style=(format!("width:{}%", px(part.clamp(0.0, 100.0)))) {}
        }
        strong { (spike::percent(class.sum_ns, spikes.sum_ns)) } " "
        (class.title)
        @if let Some(row) = class.rows.first().filter(|row| !row.culprit.is_empty()) {
            ": " (row.culprit)
        }
        @if class.certain_ns() < class.sum_ns {
            span.quiet { " (" (spike::percent(class.certain_ns(), spikes.sum_ns)) " for certain)" }
        }
    }
}
