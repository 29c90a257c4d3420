//! The measuring threads and the loads: what ran where, under which policy, and what it did.

use maud::{Markup, html};
use rtproof_judge::{Report, report::CpuReport, units};
use rtproof_record::run::{EndReason, Load};

use super::parts;
use crate::svg::scale::count_text;

pub(super) fn section(report: &Report) -> Markup {
    html! {
        section #threads {
            h3 { "Measuring threads" }
            (parts::scroll("Measuring threads", &threads(report)))
            h3 { "Loads" }
            @if report.loads.is_empty() {
                p { "No load ran: the machine was measured as it was." }
            } @else {
                (parts::scroll("Loads", &loads(&report.loads)))
            }
        }
    }
}

fn threads(report: &Report) -> Markup {
    let count = |n: Option<u64>| n.map_or(parts::NONE.into(), units::grouped);
    let per_wakeup = |cpu: &CpuReport| {
        cpu.end
            .as_ref()
            .filter(|_| cpu.measured.sampled > 0)
            .map_or(parts::NONE.into(), |end| units::ns(end.cpu_time_ns / cpu.measured.sampled))
    };
    parts::table(
        &report.cpus,
        &[
            ("#CPU", &|cpu| html! { (cpu.thread.cpu) }),
            ("workload", &|cpu| html! { (cpu.thread.workload) }),
            ("policy", &|cpu| html! { (parts::policy(cpu.thread.policy)) }),
            ("#priority", &|cpu| html! { (cpu.thread.priority) }),
            ("#period", &|cpu| html! { (units::ns(cpu.thread.period_ns)) }),
            ("memory", &|cpu| html! { (if cpu.thread.locked { "locked" } else { "not locked" }) }),
            ("#late", &|cpu| html! { (units::grouped(cpu.measured.late)) }),
            ("#max, µs", &|cpu| html! { (parts::us(cpu.measured.max_ns)) }),
            ("#faults", &|cpu| {
                html! { (count(cpu.end.as_ref().map(|end| end.faults_minor + end.faults_major))) }
            }),
            ("#preempted", &|cpu| html! { (count(cpu.end.as_ref().map(|end| end.preemptions))) }),
            ("#CPU time per wake-up", &|cpu| html! { (per_wakeup(cpu)) }),
            ("ended", &|cpu| html! { (ended(cpu.end.as_ref().map(|end| end.reason))) }),
        ],
    )
}

fn ended(reason: Option<EndReason>) -> Markup {
    let (class, icon, text) = match reason {
        Some(EndReason::Complete) => ("good", "check", "complete"),
        Some(EndReason::Stopped) => ("doubtful", "warn", "stopped"),
        Some(EndReason::Starved) => ("bad", "cross", "starved the machine"),
        Some(EndReason::CpuLost) => ("bad", "cross", "lost its CPU"),
        Some(EndReason::Failed) => ("bad", "cross", "workload failed"),
        Some(EndReason::Panicked) => ("bad", "cross", "failed inside rtproof"),
        None => ("unknown", "question", "torn: not known"),
    };
    html! { span class={ "status " (class) } { (parts::icon(icon)) (text) } }
}

fn loads(loads: &[Load]) -> Markup {
    parts::table(
        loads,
        &[
            ("load", &|load| html! { (load.name) }),
            ("~what it did", &|load| html! { (load.detail) }),
            ("time", &|load| {
                html! { (units::duration(load.from_ns)) " – " (units::duration(load.to_ns)) }
            }),
            ("#achieved", &|load| html! { (rate(load)) }),
            ("~trouble", &|load| {
                html! { @if let Some(error) = &load.error {
                    span.status.bad { (parts::icon("cross")) (error) }
                } @else { (parts::NONE) } }
            }),
        ],
    )
}

/// What a load achieved in a second.
fn rate(load: &Load) -> String {
    let seconds = load.to_ns.saturating_sub(load.from_ns) as f64 / 1e9;
    if seconds <= 0.0 {
        return parts::NONE.into();
    }
    let rate = (load.work as f64 / seconds).round() as u64;
    match load.unit.as_str() {
        "bytes" => format!("{}/s", parts::bytes(rate)),
        unit if rate < 1_000_000 => format!("{} {unit}/s", units::grouped(rate)),
        unit => format!("{} {unit}/s", count_text(rate as f64)),
    }
}
