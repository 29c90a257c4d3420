//! Missed wake-ups: the account of each CPU, and when they were missed.

use maud::{Markup, html};
use rtproof_judge::{Report, report::CpuReport, units};
use rtproof_record::Run;

use super::parts::{self, Figure};
use crate::svg::{
    bins::{Column, TimeBins},
    missed,
};

pub(super) fn section(run: &Run, report: &Report, columns: &[Column], time: TimeBins) -> Markup {
    html! {
        section #missed {
            p { (sentence(report)) }
            (parts::scroll("Account of the wake-ups", &account(report)))
            @if report.all.missed > 0 { (figure(run, columns, time)) }
        }
    }
}

fn sentence(report: &Report) -> String {
    let all = &report.all;
    if all.missed == 0 {
        return format!(
            "Every wake-up that was due was measured: {}.",
            units::grouped(all.scheduled)
        );
    }
    let share = all.missed as f64 / all.scheduled.max(1) as f64;
    format!(
        "{} of {} wake-ups ({}) came due while their thread was still late. They have no latency \
         of their own in the wake-up view; in the deadline view each counts with its lateness.",
        units::grouped(all.missed),
        units::grouped(all.scheduled),
        units::probability(share)
    )
}

fn account(report: &Report) -> Markup {
    let adds_up =
        |cpu: &CpuReport| cpu.measured.scheduled == cpu.measured.sampled + cpu.measured.missed;
    parts::table(
        &report.cpus,
        &[
            ("#CPU", &|cpu| html! { (cpu.thread.cpu) }),
            ("#scheduled", &|cpu| html! { (units::grouped(cpu.measured.scheduled)) }),
            ("", &|cpu| html! { (if adds_up(cpu) { "=" } else { "≠" }) }),
            ("#sampled", &|cpu| html! { (units::grouped(cpu.measured.sampled)) }),
            ("", &|_| html! { "+" }),
            ("#missed", &|cpu| html! { (units::grouped(cpu.measured.missed)) }),
            ("checked", &|cpu| {
                html! { @if cpu.end.is_none() {
                    span.status.unknown {
                        (parts::icon("question")) "torn: the schedule is not known"
                    }
                } @else if adds_up(cpu) {
                    span.status.good { (parts::icon("check")) "adds up" }
                } @else {
                    span.status.bad { (parts::icon("cross")) "does not add up" }
                } }
            }),
        ],
    )
}

fn figure(run: &Run, columns: &[Column], time: TimeBins) -> Markup {
    let title = "Missed wake-ups over time";
    let (most, at) = columns
        .iter()
        .zip(0..)
        .map(|(column, i)| (column.missed, i))
        .max_by_key(|&(n, i)| (n, std::cmp::Reverse(i)))
        .unwrap_or((0, 0));
    let text = format!(
        "Most were missed in the {} from {}: {}.",
        units::duration(time.width_ns),
        units::duration(time.start_ns(at)),
        units::grouped(most)
    );
    let picture = missed::draw(run, columns, time, (title, &text));
    let table = parts::table(
        columns.iter().enumerate().filter(|(_, c)| c.missed > 0),
        &[
            ("from", &|(i, _)| html! { (units::duration(time.start_ns(*i))) }),
            ("#missed", &|(_, column)| html! { (units::grouped(column.missed)) }),
            ("#sampled", &|(_, column)| html! { (units::grouped(column.sampled)) }),
        ],
    );
    parts::figure(&Figure {
        title,
        text: &text,
        picture,
        legend: Markup::default(),
        table: Some(table),
    })
}
