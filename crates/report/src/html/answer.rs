//! The answer below the verdict: how far the worst was from the budget, the largest classes of
//! causes, and the next command.

use maud::{Markup, html};
use rtproof_judge::{
    Report,
    causes::{Spikes, title},
    units,
};

use crate::{spike, svg::px};

/// Classes of causes that are named.
const CLASSES_MAX: usize = 3;

/// The causes of one class, summed.
pub(super) struct Class<'a> {
    /// Id of the cause.
    pub(super) cause: &'a str,
    /// Its culprit with the largest sum; may be empty.
    culprit: &'a str,
    /// Checks whose knobs remove it.
    pub(super) checks: Vec<&'a str>,
    sum_ns: u64,
    ambiguous_ns: u64,
}

/// The block; `next` is a command that can be pasted.
pub(super) fn block(report: &Report, next: Option<&str>) -> Markup {
    html! {
        @if let Some(margin) = margin(report) { p.margin { (margin) } }
        @if let Some(spikes) = &report.spikes { (why(spikes)) }
        @if let Some(next) = next {
            div.next {
                p { strong { "Next" } }
                pre.code tabindex="0" { code { (next) } }
            }
        }
    }
}

/// How far the worst wake-up was from the budget.
pub(super) fn margin(report: &Report) -> Option<String> {
    let budget_ns = report.options.requirement.budget_ns.filter(|&ns| ns > 0)?;
    let worst_ns = report.verdict.basis.worst.as_ref()?.latency_ns;
    let worst = units::ns(worst_ns);
    let budget = units::ns(budget_ns);
    let Some(left_ns) = budget_ns.checked_sub(worst_ns) else {
        let times = worst_ns as f64 / budget_ns as f64;
        let times =
            if times < 10.0 { format!("{times:.1}") } else { units::grouped(times.round() as u64) };
        return Some(format!("The worst took {worst}: {times} times the budget of {budget}."));
    };
    let part = 100.0 * left_ns as f64 / budget_ns as f64;
    Some(format!(
        "Margin: the worst took {worst}; {} ({part:.0}\u{a0}%) of the budget of {budget} were \
         left.",
        units::ns(left_ns)
    ))
}

/// The largest classes, those with a share that can be seen.
pub(super) fn classes(spikes: &Spikes) -> Vec<Class<'_>> {
    let mut classes: Vec<Class<'_>> = Vec::new();
    // Rows come with the largest sum first, so the first culprit of a class is its largest.
    for row in &spikes.causes {
        let found = classes.iter().position(|class| class.cause == row.cause);
        let at = found.unwrap_or_else(|| {
            classes.push(Class {
                cause: &row.cause,
                culprit: &row.culprit,
                checks: Vec::new(),
                sum_ns: 0,
                ambiguous_ns: 0,
            });
            classes.len() - 1
        });
        let class = &mut classes[at];
        class.sum_ns = class.sum_ns.saturating_add(row.sum_ns);
        class.ambiguous_ns = class.ambiguous_ns.saturating_add(row.ambiguous_ns);
        for check in row.checks.iter().map(String::as_str) {
            if !class.checks.contains(&check) {
                class.checks.push(check);
            }
        }
    }
    classes.sort_by_key(|class| std::cmp::Reverse(class.sum_ns));
    classes
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
        return format!("of the lateness of {}", units::count(spikes.seen as usize, "spike"));
    }
    format!(
        "of the lateness of {} of {} spikes",
        units::grouped(spikes.explained),
        units::grouped(spikes.seen)
    )
}

fn line(class: &Class<'_>, spikes: &Spikes) -> Markup {
    let part = class.sum_ns as f64 / spikes.sum_ns.max(1) as f64 * 100.0;
    let certain_ns = class.sum_ns.saturating_sub(class.ambiguous_ns);
    html! {
        span.share aria-hidden="true" {
            i class=(spike::class(class.cause))
                style=(format!("width:{}%", px(part.clamp(0.0, 100.0)))) {}
        }
        strong { (spike::percent(class.sum_ns, spikes.sum_ns)) } " "
        (title(class.cause))
        @if !class.culprit.is_empty() { ": " (class.culprit) }
        @if class.ambiguous_ns > 0 {
            span.quiet { " (" (spike::percent(certain_ns, spikes.sum_ns)) " for certain)" }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::sample::{self, Shape};

    fn margin_of(budget_ns: u64, worst_ns: u64) -> String {
        let mut report = sample::report(&sample::run(&Shape { seconds: 3, ..Shape::default() }));
        report.options.requirement.budget_ns = Some(budget_ns);
        report.verdict.basis.worst.as_mut().expect("a worst").latency_ns = worst_ns;
        margin(&report).expect("a margin").replace(['\u{a0}', '\u{202f}'], " ")
    }

    #[test]
    fn the_margin_is_said_on_both_sides_of_the_budget() {
        assert_eq!(
            margin_of(100_000, 47_000),
            "Margin: the worst took 47 µs; 53 µs (53 %) of the budget of 100 µs were left."
        );
        assert!(margin_of(100_000, 250_000).ends_with("2.5 times the budget of 100 µs."));
        assert!(margin_of(1, u64::MAX).contains("times the budget"));
        assert!(margin_of(7, 7).contains("0 ns (0 %)"));
    }

    #[test]
    fn classes_are_summed_over_culprits_and_the_largest_is_first() {
        let mut spikes = spike::sample::spikes();
        spikes.causes.truncate(1);
        let row = spikes.causes[0].clone();
        let other = |cause: &str, culprit: &str, sum_ns| rtproof_judge::causes::CauseRow {
            cause: cause.into(),
            culprit: culprit.into(),
            sum_ns,
            ..row.clone()
        };
        spikes.causes = vec![other("irq", "eth0", 5), other("stall", "x", 4), other("irq", "a", 3)];
        let found: Vec<_> =
            classes(&spikes).iter().map(|c| (c.cause, c.culprit, c.sum_ns)).collect();
        assert_eq!(found, [("irq", "eth0", 8), ("stall", "x", 4)]);
    }
}
