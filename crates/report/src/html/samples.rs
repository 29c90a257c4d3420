//! The largest samples, exactly, with their times.

use maud::{Markup, html};
use rtproof_judge::{Report, units};

use super::parts;

pub(super) fn section(report: &Report) -> Markup {
    html! {
        section #samples {
            @if report.top.is_empty() {
                p { "No wake-up was measured." }
            } @else {
                p {
                    "The " (report.top.len()) " largest of all CPUs, exact; "
                    "no larger one was left out."
                }
                (parts::scroll("Largest samples", &table(report)))
            }
        }
    }
}

fn table(report: &Report) -> Markup {
    let budget_ns = report.options.requirement.budget_ns;
    let budget = budget_ns.map(|_| "budget");
    let columns = ["##", "#latency, µs"].into_iter().chain(budget);
    let columns = columns.chain(["#CPU", "#due after", "due at", "phase"]);
    let started_ns = report.run.started_realtime_ns;
    html! {
        table {
            (parts::head(columns))
            tbody {
                @for (i, top) in report.top.iter().enumerate() {
                    tr {
                        td.num { (i + 1) }
                        th.num scope="row" { (units::us_column(top.latency_ns)) }
                        @if let Some(budget_ns) = budget_ns {
                            td { (against(top.latency_ns, budget_ns)) }
                        }
                        td.num { (top.cpu) }
                        td.num { (parts::at(top.due_ns)) }
                        td { (parts::wall_clock(started_ns.saturating_add(top.due_ns))) }
                        td { (if top.phase.is_empty() { parts::NONE } else { top.phase.as_str() }) }
                    }
                }
            }
        }
    }
}

fn against(latency_ns: u64, budget_ns: u64) -> Markup {
    if latency_ns > budget_ns {
        let over = units::ns(latency_ns - budget_ns);
        return html! { span.status.bad { (parts::icon("cross")) "late by " (over) } };
    }
    html! { span.status.good { (parts::icon("check")) "within" } }
}
