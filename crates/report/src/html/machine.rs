//! The machine: what decides its latency, read from the facts; what changed during the run; and the
//! whole document, folded.

use std::collections::BTreeSet;

use maud::{Markup, html};
use rtproof_host::{Facts, Reading};
use rtproof_judge::{Report, units};
use rtproof_record::Run;

use super::{facts, parts};

/// A fact: name, value, path.
struct Row {
    name: &'static str,
    value: Result<String, String>,
    path: String,
}

pub(super) fn section(run: &Run, report: &Report) -> Markup {
    html! {
        section #machine {
            (parts::scroll("The machine", &table(&rows(&run.facts_start, report))))
            (changes(run, report))
            details.facts {
                summary { "All facts, as read before the first wake-up" }
                pre.code tabindex="0" { (facts::lines(&run.facts_start)) }
            }
        }
    }
}

fn table(rows: &[Row]) -> Markup {
    html! {
        table.facts {
            (parts::head(["fact", "value", "read from"]))
            tbody {
                @for row in rows {
                    tr {
                        th scope="row" { (row.name) }
                        @match &row.value {
                            Ok(value) => td.wrap { (value) },
                            Err(why) => td.wrap {
                                span.status.unknown { (parts::icon("question")) "unknown: " (why) }
                            },
                        }
                        td.wrap { code { (row.path) } }
                    }
                }
            }
        }
    }
}

fn row<T>(name: &'static str, reading: &Reading<T>, show: impl FnOnce(&T) -> String) -> Row {
    let value = match reading.value() {
        Some(value) => Ok(show(value)),
        None => Err(reading.why_unknown().unwrap_or_default()),
    };
    Row { name, value, path: reading.path.clone() }
}

fn text(name: &'static str, reading: &Reading<String>) -> Row {
    row(name, reading, Clone::clone)
}

fn cpus(name: &'static str, reading: &Reading<rtproof_host::CpuList>) -> Row {
    row(name, reading, |list| if list.is_empty() { "none".into() } else { list.to_string() })
}

fn rows(facts: &Facts, report: &Report) -> Vec<Row> {
    let optional = |value: &Option<String>| value.clone().unwrap_or("none".into());
    let mut rows = vec![
        text("host", &facts.identity.hostname),
        text("product", &facts.identity.model),
        text("CPU", &facts.identity.cpu_model),
        cpus("CPUs online", &facts.cpus.online),
        row("memory", &facts.identity.memory_bytes, |&n| parts::bytes(n)),
        text("kernel", &facts.kernel.release),
        text("kernel build", &facts.kernel.build),
        row("preemption", &facts.kernel.preemption, |_| report.machine.preemption.clone()),
        row("command line", &facts.kernel.cmdline, |line| line.text.clone()),
        text("lockdown", &facts.kernel.lockdown),
        text("clock source", &facts.clock.source),
        row("hypervisor", &facts.virt.hypervisor, optional),
        row("container", &facts.virt.container, optional),
        cpus("isolated CPUs", &facts.cpus.isolated),
        cpus("full-tickless CPUs", &facts.cpus.nohz_full),
        text("SMT", &facts.cpus.smt_control),
        text("idle driver", &facts.cpus.idle_driver),
        text("idle governor", &facts.cpus.idle_governor),
    ];
    rows.extend(governors(facts));
    rows.extend(settings(facts));
    rows
}

/// Governors in use: most machines have one on all CPUs.
fn governors(facts: &Facts) -> Option<Row> {
    let first = facts.cpus.cpus.first()?;
    let names: BTreeSet<&str> = facts
        .cpus
        .cpus
        .iter()
        .filter_map(|cpu| cpu.freq.governor.value().map(String::as_str))
        .collect();
    let names: Vec<&str> = names.into_iter().collect();
    Some(row("frequency governor", &first.freq.governor, |_| names.join(", ")))
}

fn settings(facts: &Facts) -> [Row; 6] {
    let runtime = |&us: &i64| match us {
        -1 => "off".into(),
        us => format!("{} of each period", units::ns(us.unsigned_abs().saturating_mul(1000))),
    };
    [
        row("real-time throttling", &facts.sched.rt_runtime_us, runtime),
        row("interrupts go to", &facts.irqs.default_affinity, ToString::to_string),
        row("irqbalance", &facts.irqs.irqbalance, |irqbalance| match irqbalance.running {
            Some(pid) => format!("runs (pid {pid})"),
            None => "does not run".into(),
        }),
        row("real-time tasks", &facts.rt_tasks, |tasks| units::grouped(tasks.len() as u64)),
        text("transparent huge pages", &facts.memory.thp_enabled),
        row("swap", &facts.memory.swaps, |swaps| match swaps.len() {
            0 => "none".into(),
            _ => parts::bytes(swaps.iter().map(|swap| swap.size_bytes).sum()),
        }),
    ]
}

fn changes(run: &Run, report: &Report) -> Markup {
    if run.facts_end.is_none() {
        return html! {
            p {
                (parts::icon("question"))
                " The record is torn: whether settings changed during the run is not known."
            }
        };
    }
    if report.changes.is_empty() {
        return html! { p { "No setting changed between the first wake-up and the last." } };
    }
    let table = parts::table(
        &report.changes,
        &[
            ("fact", &|change| html! { code { (change.key) } }),
            ("~at the start", &|change| html! { (change.from) }),
            ("~at the end", &|change| html! { (change.to) }),
        ],
    );
    html! {
        h3 { "Moved during the run " span.count { (report.changes.len()) } }
        p {
            @if report.changes.iter().all(|change| change.is_task()) {
                "Real-time tasks came or went: not all was measured beside the same ones."
            } @else {
                "Settings that may change latency were not the same at the end: what was measured "
                "belongs to no one setting."
            }
        }
        (parts::scroll("Moved during the run", &table))
    }
}
