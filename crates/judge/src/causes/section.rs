//! What a tracer measured itself: sections with interrupts or preemption off, and gaps in the work
//! of a thread that polls the clock. No thread was woken in them.

use std::collections::BTreeMap;

use rtproof_model::Span;
use rtproof_trace::{
    Event, EventData, WakeUp, WakeUpBasis, Window,
    event::{self},
};

use super::{Attribution, Cause, Explanation, interrupts, machine, tasks};

/// Functions that are named of a section.
const NAMED_MAX: usize = 4;

/// Why a section or a gap was as long as it was; `None`: it is a wake-up.
pub(super) fn explain(wake: &WakeUp, window: &Window) -> Option<Explanation> {
    let mut incomplete = Vec::new();
    let (cause, attribution, task) = match wake.how {
        WakeUpBasis::Section => {
            let found = section(wake, window);
            let calls =
                own(wake, window).filter(|e| matches!(e.what, EventData::Call { .. })).count();
            if calls == 0 {
                incomplete.push("what ran inside the section was not recorded".to_owned());
            }
            found
        }
        WakeUpBasis::Gap => gap(wake, window)?,
        WakeUpBasis::Measured | WakeUpBasis::Timer | WakeUpBasis::Woken => return None,
    };
    Some(whole(wake, cause, attribution, task, incomplete))
}

/// An explanation with one share.
fn whole(
    wake: &WakeUp,
    cause: &Cause,
    by: Attribution,
    task: String,
    incomplete: Vec<String>,
) -> Explanation {
    let share = by.row(cause, wake.latency_ns()).into();
    let has_length = wake.latency_ns() > 0;
    Explanation {
        wake: *wake,
        task,
        irq_ns: None,
        woken_ns: None,
        switched_ns: None,
        spans: has_length
            .then_some(Span { from_ns: wake.due_ns, to_ns: wake.ran_ns, share: 0 })
            .into_iter()
            .collect(),
        shares: has_length.then_some(share).into_iter().collect(),
        incomplete,
        wakers: Vec::new(),
    }
}

fn own<'a>(wake: &WakeUp, window: &'a Window) -> impl Iterator<Item = &'a Event> {
    let (cpu, from_ns, to_ns) = (wake.cpu, wake.due_ns, wake.ran_ns);
    window.events.iter().filter(move |e| e.cpu == cpu && (from_ns..=to_ns).contains(&e.at_ns))
}

fn section(wake: &WakeUp, window: &Window) -> (&'static Cause, Attribution, String) {
    let section = window.section.clone().unwrap_or_default();
    let task = window.tasks.get(&wake.tid).map_or_else(
        || format!("task {}", wake.tid),
        |task| format!("{} ({})", task.comm, wake.tid),
    );
    // Of preemptirqsoff either may be off: interrupts are, where every entry says so.
    let mut entries = own(wake, window).peekable();
    let all_irqs_off =
        entries.peek().is_some() && entries.all(|event| event.flags & event::flags::IRQS_OFF != 0);
    let (cause, or): (_, &[_]) = match section.tracer.as_str() {
        "irqsoff" => (&interrupts::IRQS_OFF, &[]),
        "preemptoff" => (&interrupts::PREEMPT_OFF, &[]),
        _ if all_irqs_off => (&interrupts::IRQS_OFF, &["preempt-off"]),
        _ => (&interrupts::PREEMPT_OFF, &["irqs-off"]),
    };
    let ends = match (section.began.as_str(), section.ended.as_str()) {
        ("", "") => String::new(),
        (began, ended) => format!("{began} to {ended} in "),
    };
    let attribution = Attribution::of_culprit(format!("{ends}{task}")).or_causes(or);
    let attribution = attribution.detail(["the kernel's tracer measured this section".to_owned()]);
    let attribution = attribution.detail(longest(wake, window)).detail(stack(wake, window));
    let silent_ns = longest_silence(wake, window);
    // Without events inside, the CPU may also have stalled.
    let attribution = if silent_ns > wake.latency_ns() / 2 {
        let mut attribution = attribution.or_causes(&["stall"]);
        attribution.unrecorded.push("what ran in the longest part of it");
        attribution
    } else {
        attribution
    };
    (
        cause,
        attribution.manual(
            "the code named here keeps the CPU: another driver, a newer kernel, or keep what \
         calls it off this CPU",
        ),
        task,
    )
}

/// The functions after which it took longest until the next entry.
fn longest(wake: &WakeUp, window: &Window) -> Option<String> {
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    let mut last: Option<(u64, u64)> = None;
    for event in own(wake, window) {
        if let Some((function, at_ns)) = last {
            *sums.entry(function).or_default() += event.at_ns - at_ns;
        }
        last = match event.what {
            EventData::Call { function, .. } => Some((function, event.at_ns)),
            _ => None,
        };
    }
    let mut sums: Vec<(u64, u64)> = sums.into_iter().map(|(of, ns)| (ns, of)).collect();
    sums.sort_unstable_by(|a, b| b.cmp(a));
    let named = sums.iter().take(NAMED_MAX).filter(|(ns, _)| *ns > 0).map(|&(ns, function)| {
        let name = window.function(function).unwrap_or("?");
        format!("{name} {}", rtproof_stats::samples::ns(ns))
    });
    let named: Vec<String> = named.collect();
    (!named.is_empty()).then(|| format!("longest until the next entry: {}", named.join(", ")))
}

fn longest_silence(wake: &WakeUp, window: &Window) -> u64 {
    let inside = own(wake, window).map(|event| event.at_ns);
    let mut at_ns = wake.due_ns;
    let mut longest_ns = 0;
    for next_ns in inside.chain([wake.ran_ns]) {
        longest_ns = longest_ns.max(next_ns.saturating_sub(at_ns));
        at_ns = next_ns;
    }
    longest_ns
}

/// The stack that the tracer wrote at the end.
fn stack(wake: &WakeUp, window: &Window) -> Option<String> {
    let stacks = window.events.iter().filter(|event| event.cpu == wake.cpu);
    let frames = stacks.rev().find_map(|event| match &event.what {
        EventData::Stack { frames } => Some(frames),
        _ => None,
    })?;
    let names: Vec<&str> = frames.iter().filter_map(|&frame| window.symbol(frame)).collect();
    (!names.is_empty()).then(|| names.join(" ← "))
}

/// What hwlat or osnoise found.
fn gap(wake: &WakeUp, window: &Window) -> Option<(&'static Cause, Attribution, String)> {
    let is_it = |event: &&Event| event.cpu == wake.cpu && event.at_ns == wake.ran_ns;
    window.events.iter().filter(is_it).find_map(|event| match &event.what {
        EventData::Hwlat { nmi_count, .. } => {
            let by = Attribution::of_culprit("hardware, firmware or a hypervisor");
            let by = by.detail(["the tracer hwlat polls the clock with interrupts off".to_owned()]);
            let by = if *nmi_count > 0 {
                by.or_causes(&["nmi"])
                    .detail([format!("{nmi_count} non-maskable interrupts meanwhile")])
            } else {
                by
            };
            let by = by.manual("firmware settings: no legacy USB, no power capping");
            Some((&machine::STALL, by, "the hwlat tracer's thread".to_owned()))
        }
        EventData::Noise { kind, name, number, duration_ns, .. } => {
            if *duration_ns != wake.latency_ns() {
                return None;
            }
            let named = match number {
                -1 => name.to_string(),
                number => format!("{name}:{number}"),
            };
            let cause = match kind.as_bytes() {
                b"irq" => &interrupts::IRQ,
                b"softirq" => &interrupts::SOFTIRQ,
                b"nmi" => &interrupts::NMI,
                _ => &tasks::PREEMPTED,
            };
            let by = Attribution::of_culprit(named);
            // osnoise does not say how they rank.
            let by = if cause.id == "preempted" { by.or_causes(&["queued"]) } else { by };
            let by = by.detail(["measured by osnoise, without what interrupted it".to_owned()]);
            Some((cause, by, "osnoise's thread".to_owned()))
        }
        _ => None,
    })
}
