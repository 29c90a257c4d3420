//! The measuring threads and the loads: what ran where, under which policy, and what it did.

use maud::{Markup, html};
use rtproof_judge::{Report, report::CpuReport, units};
use rtproof_record::run::{EndReason, Load};

use super::parts;
use crate::svg::scale::count_text;

/// The section.
pub(super) fn section(report: &Report) -> Markup {
    html! {
        section #threads {
            h2 { "CPUs and loads" }
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

/// Columns of the measuring threads.
const THREAD: [&str; 12] = [
    "#CPU",
    "workload",
    "policy",
    "#priority",
    "#period",
    "memory",
    "#late",
    "#max, µs",
    "#faults",
    "#preempted",
    "#CPU time per wake-up",
    "ended",
];

fn threads(report: &Report) -> Markup {
    html! {
        table {
            (parts::head(THREAD))
            tbody { @for cpu in &report.cpus { (thread(cpu)) } }
        }
    }
}

fn thread(cpu: &CpuReport) -> Markup {
    let (info, end) = (&cpu.thread, cpu.end.as_ref());
    let count = |n: Option<u64>| n.map_or(parts::NONE.into(), units::grouped);
    let faults = end.map(|end| end.faults_minor + end.faults_major);
    let per_wakeup = end
        .filter(|_| cpu.measured.sampled > 0)
        .map_or(parts::NONE.into(), |end| units::ns(end.cpu_time_ns / cpu.measured.sampled));
    html! {
        tr {
            th.num scope="row" { (info.cpu) }
            td { (info.workload) }
            td { (parts::policy(info.policy)) }
            td.num { (info.priority) }
            td.num { (units::ns(info.period_ns)) }
            td { (if info.locked { "locked" } else { "not locked" }) }
            td.num { (units::grouped(cpu.measured.late)) }
            td.num { (parts::us(cpu.measured.max_ns)) }
            td.num { (count(faults)) }
            td.num { (count(end.map(|end| end.preemptions))) }
            td.num { (per_wakeup) }
            td { (ended(end.map(|end| end.reason))) }
        }
    }
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
    html! {
        table {
            (parts::head(["load", "what it did", "time", "#achieved", "trouble"]))
            tbody {
                @for load in loads {
                    tr {
                        th scope="row" { (load.name) }
                        td.wrap { (load.detail) }
                        td { (units::duration(load.from_ns)) " – " (units::duration(load.to_ns)) }
                        td.num { (rate(load)) }
                        td.wrap {
                            @if let Some(error) = &load.error {
                                span.status.bad { (parts::icon("cross")) (error) }
                            } @else { (parts::NONE) }
                        }
                    }
                }
            }
        }
    }
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
