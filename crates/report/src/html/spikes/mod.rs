//! Why it was late: the causes of all spikes in a table, what removes them, and the worst spikes
//! one by one, each with its picture and with shares that sum to its latency.

mod causes;
mod one;

use maud::{Markup, html};
use rtproof_judge::{
    Finding,
    causes::{Recorder, Spikes, Structure},
    units,
};
use rtproof_trace::Window;

use super::parts;
use crate::spike::percent;

/// Most spikes shown one by one; the record has all.
pub(super) const SHOWN_MAX: usize = 12;
/// Bytes of their pictures, about: one of a busy machine may have 90 kB.
const BYTES_MAX: usize = 400_000;

/// The worst spikes one by one, as many as the page has room for.
pub(super) fn pictures<'w>(
    spikes: &Spikes,
    findings: &[Finding],
    windows: &dyn Fn(u32) -> Option<&'w Window>,
) -> Vec<Markup> {
    let mut room = BYTES_MAX;
    let mut pictures = Vec::new();
    for spike in spikes.worst.iter().take(SHOWN_MAX) {
        let remedy = causes::remedy_of(spikes, spike, findings);
        let picture = one::spike(spike, windows(spike.number), &remedy);
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
pub(super) fn section(spikes: &Spikes, findings: &[Finding], shown: &[Markup]) -> Markup {
    html! {
        section #spikes {
            h2 { "Why it was late" }
            p { (summary(spikes)) }
            @if !spikes.causes.is_empty() {
                (causes::table(spikes))
                (causes::by_cpu(spikes))
            }
            (structure(&spikes.structure))
            (causes::remedies(spikes, findings))
            (recorder(&spikes.recorder))
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
fn summary(spikes: &Spikes) -> String {
    let count = |n: u64| units::grouped(n);
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
        ". Of the {} of lateness in all, {} is attributed unambiguously.",
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
fn recorder(recorder: &Recorder) -> Markup {
    let mut texts = Vec::new();
    if let Some(why) = &recorder.off {
        texts.push(format!("No kernel events were recorded: {why}."));
    }
    if let Some(cost_ns) = recorder.cost_p50_ns {
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
        texts.push(format!("{} events were lost.", units::grouped(recorder.lost_events)));
    }
    if recorder.blind_ns > 0 {
        texts.push(format!("For {} nothing was recorded.", units::duration(recorder.blind_ns)));
    }
    if let Some(from_ns) = recorder.stacks_from_ns {
        let at = parts::at(from_ns);
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

#[cfg(test)]
mod tests;
