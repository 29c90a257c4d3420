//! What was seen beside a measurement: threads that were changed from outside, before and after;
//! idle states and frequencies of the measured CPUs.

use maud::{Markup, html};
use rtproof_judge::{
    Report,
    beside::{Beside, Segment},
    units,
};

use super::parts;

/// The section of a report; nothing where there is nothing to tell.
pub(super) fn section(report: &Report) -> Markup {
    let beside = &report.beside;
    let cpu = |number: u32| {
        let found = report.cpus.iter().find(|cpu| cpu.thread.number == number);
        found.map_or(parts::NONE.into(), |cpu| cpu.thread.cpu.to_string())
    };
    html! {
        section #beside {
            @if !beside.marks.is_empty() {
                h3 { "Threads that were changed while they measured" }
                (parts::scroll("Changes", &marks(beside, &cpu)))
                h3 { "What they measured between the changes" }
                p.quiet { "Whole seconds; those in which a thread was changed are left out." }
                (parts::scroll("Between the changes", &segments(beside.segments.iter())))
            }
            @if !beside.idle.is_empty() {
                h3 { "Idle states of the measured CPUs" }
                (parts::scroll("Idle states", &idle(beside)))
            }
            @if !beside.frequencies.is_empty() {
                h3 { "Frequency of the measured CPUs" }
                (parts::scroll("Frequency", &frequencies(beside)))
            }
        }
    }
}

fn marks(beside: &Beside, cpu: &impl Fn(u32) -> String) -> Markup {
    parts::table(
        &beside.marks,
        &[
            ("#CPU", &|mark| html! { (cpu(mark.thread)) }),
            ("between", &|mark| html! { (parts::at(mark.since_ns)) " – " (parts::at(mark.at_ns)) }),
            ("was", &|mark| html! { (mark.before) }),
            ("is", &|mark| html! { (mark.after) }),
        ],
    )
}

/// What threads measured between changes.
pub(super) fn segments<'a>(segments: impl Iterator<Item = &'a Segment>) -> Markup {
    let of = |segment: &'a Segment| segment.intervals.as_ref().unwrap_or(&segment.samples);
    parts::table(
        segments,
        &[
            ("#CPU", &|segment| html! { (segment.cpu) }),
            ("from", &|segment| html! { (parts::at(segment.from_ns)) }),
            ("to", &|segment| html! { (parts::at(segment.to_ns)) }),
            ("with", &|segment| {
                html! {
                    (segment.policy.as_deref().unwrap_or_default()) " "
                    (segment.cpus.as_deref().unwrap_or_default())
                }
            }),
            ("of", &|segment| {
                html! { (if segment.intervals.is_some() { "intervals" } else { "samples" }) }
            }),
            ("#n", &|segment| html! { (units::grouped(of(segment).n)) }),
            ("#mean, µs", &|segment| html! { (parts::us_mean(of(segment).mean_ns)) }),
            ("#sd, µs", &|segment| html! { (parts::us_mean(of(segment).sd_ns)) }),
            ("#min, µs", &|segment| html! { (parts::us(of(segment).min_ns)) }),
            ("#max, µs", &|segment| html! { (parts::us(of(segment).max_ns)) }),
            ("#missed", &|segment| html! { (units::grouped(segment.missed)) }),
        ],
    )
}

/// Idle states as a table.
pub(super) fn idle(beside: &Beside) -> Markup {
    parts::table(
        &beside.idle,
        &[
            ("#CPU", &|of| html! { (of.cpu) }),
            ("state", &|of| html! { (of.name) }),
            ("#exit, µs", &|of| html! { (of.exit_us.map_or(parts::NONE.into(), units::grouped)) }),
            ("#entered", &|of| html! { (units::grouped(of.entered)) }),
            ("#share of the time", &|of| html! { (format!("{:.1} %", of.share * 100.0)) }),
        ],
    )
}

fn frequencies(beside: &Beside) -> Markup {
    let ghz = |hz: u64| format!("{:.3}", hz as f64 / 1e9);
    parts::table(
        &beside.frequencies,
        &[
            ("#CPU", &|of| html! { (of.cpu) }),
            ("#lowest, GHz", &|of| html! { (ghz(of.min_hz)) }),
            ("#mean, GHz", &|of| html! { (ghz(of.mean_hz)) }),
            ("#highest, GHz", &|of| html! { (ghz(of.max_hz)) }),
            ("#readings", &|of| html! { (units::grouped(of.readings)) }),
        ],
    )
}
