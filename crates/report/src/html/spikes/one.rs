//! One spike: its picture, its shares as a sum, who woke it, and what more is known.

use maud::{Markup, html};
use rtproof_judge::{
    causes::{Explanation, Share, Spike},
    units,
};
use rtproof_trace::Window;

use super::super::parts;
use crate::{spike, svg::spike::draw};

/// A spike, folded away. `remedy`: what removes its largest cause.
pub(super) fn spike(spike: &Spike, window: Option<&Window>, remedy: &Markup) -> Markup {
    let explanation = &spike.explanation;
    let wake = &explanation.wake;
    let id = format!("spike-{}", spike.number);
    let top = explanation.top().map(spike::named).unwrap_or_default();
    html! {
        details.spike {
            summary {
                strong { (spike::us(wake.latency_ns())) }
                " · CPU " (wake.cpu) " · " (top)
                @if explanation.shares.len() > 1 {
                    " and " (explanation.shares.len() - 1) " more"
                }
                @if !explanation.incomplete.is_empty() { " · incomplete" }
            }
            // The anchor is within, so that a link to it opens the spike.
            p.quiet id=(id) {
                "Spike " (spike.number) ": " (explanation.task) ", due "
                (parts::at(spike.at_ns)) " after the start"
                @if !spike.phase.is_empty() { ", phase " (spike.phase) }
                ". " a href="#timeline" { "Back to the time line" }
            }
            @if !explanation.incomplete.is_empty() {
                p.doubtful {
                    span.status.doubtful { (parts::icon("warn")) "incomplete" }
                    " " (explanation.incomplete.join("; ")) "."
                }
            }
            (parts::scroll("Timeline", &draw(&format!("chart-{id}"), explanation, window)))
            @if window.is_none() {
                p.quiet { "Its events were not kept: only the causes are drawn." }
            }
            (parts::scroll("Shares of the latency", &shares(explanation)))
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
            (parts::head(["#ns", "#share", "cause", "what more is known"]))
            tbody {
                @for share in listed { (row(share, late_ns)) }
                @if let Some((count, ns)) = rest {
                    tr {
                        td.num { (units::grouped(ns)) }
                        td.num { (spike::percent(ns, late_ns)) }
                        th scope="row" { (count) " more" }
                        td { (parts::NONE) }
                    }
                }
            }
            tfoot {
                tr {
                    td.num { "= " (units::grouped(sum_ns)) }
                    td.num { (spike::percent(sum_ns, late_ns)) }
                    td {
                        @if sum_ns == late_ns {
                            span.status.good { (parts::icon("check")) "the latency, exactly" }
                        } @else {
                            span.status.bad {
                                (parts::icon("cross"))
                                "not the latency: " (units::grouped(late_ns)) " ns"
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
            td.num { (units::grouped(share.ns)) }
            td.num { (spike::percent(share.ns, late_ns)) }
            th.wrap scope="row" {
                span class={ "swatch block " (spike::class(&share.cause)) } {}
                (spike::named(share))
                @if let Some(or) = spike::otherwise(share) { small { " (" (or) ")" } }
            }
            td.wrap { (known(share)) }
        }
    }
}

/// Owner and details; frames of a stack one below the other.
fn known(share: &Share) -> Markup {
    let (frames, texts): (Vec<&String>, Vec<&String>) =
        share.detail.iter().partition(|detail| spike::is_frame(detail));
    let texts: Vec<String> =
        spike::owner(share).into_iter().chain(texts.into_iter().cloned()).collect();
    html! {
        @if texts.is_empty() && frames.is_empty() { (parts::NONE) }
        (texts.join("; "))
        @if !frames.is_empty() {
            ol.stack { @for frame in frames { li { code { (frame) } } } }
        }
    }
}
