//! The machine: what decides its latency, read from the facts; what changed during the run; and the
//! whole document, folded.

use std::collections::BTreeSet;

use maud::{Markup, html};

use rtproof_host::{Facts, Reading};
use rtproof_judge::{Report, units};
use rtproof_record::{Run, Start, run::RunEnd};

/// A fact: name, value, path.
struct MachineRow {
    name: &'static str,
    value: Result<String, String>,
    path: String,
}

pub(crate) fn machine_section(run: &Run, report: &Report) -> Markup {
    html! {
        section #machine {
            (crate::html::scroll("The machine", &table(&rows(&run.facts_start, report))))
            (changes(run, report))
            details.facts {
                summary { "All facts, as read before the first wake-up" }
                pre.code tabindex="0" { (crate::html::fact_lines(&run.facts_start)) }
            }
        }
    }
}

fn table(rows: &[MachineRow]) -> Markup {
    html! {
        table.facts {
            (crate::html::table_head(["fact", "value", "read from"]))
            tbody {
                @for row in rows {
                    tr {
                        th scope="row" { (row.name) }
                        @match &row.value {
                            Ok(value) => td.wrap { (value) },
                            Err(why) => td.wrap {
                                span.status.unknown {
                                    (crate::html::icon("question")) "unknown: " (why)
                                }
                            },
                        }
                        td.wrap { code { (row.path) } }
                    }
                }
            }
        }
    }
}

fn row<T>(name: &'static str, reading: &Reading<T>, show: impl FnOnce(&T) -> String) -> MachineRow {
    let value = match reading.value() {
        Some(value) => Ok(show(value)),
        None => Err(reading.why_unknown().unwrap_or_default()),
    };
    MachineRow { name, value, path: reading.path.clone() }
}

fn text(name: &'static str, reading: &Reading<String>) -> MachineRow {
    row(name, reading, Clone::clone)
}

fn cpus(name: &'static str, reading: &Reading<rtproof_host::CpuList>) -> MachineRow {
    row(name, reading, |list| if list.is_empty() { "none".into() } else { list.to_string() })
}

fn rows(facts: &Facts, report: &Report) -> Vec<MachineRow> {
    let optional = |value: &Option<String>| value.clone().unwrap_or("none".into());
    let mut rows = vec![
        text("host", &facts.identity.hostname),
        text("product", &facts.identity.model),
        text("CPU", &facts.identity.cpu_model),
        cpus("CPUs online", &facts.cpus.online),
        row("memory", &facts.identity.memory_bytes, |&n| crate::html::binary_size(n)),
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
fn governors(facts: &Facts) -> Option<MachineRow> {
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

fn settings(facts: &Facts) -> [MachineRow; 6] {
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
            _ => crate::html::binary_size(swaps.iter().map(|swap| swap.size_bytes).sum()),
        }),
    ]
}

fn changes(run: &Run, report: &Report) -> Markup {
    if run.facts_end.is_none() {
        return html! {
            p {
                (crate::html::icon("question"))
                " The record is torn: whether settings changed during the run is not known."
            }
        };
    }
    if report.changes.is_empty() {
        return html! { p { "No setting changed between the first wake-up and the last." } };
    }
    let table = crate::html::table(
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
        (crate::html::scroll("Moved during the run", &table))
    }
}

// How it was measured: what the measuring costs, what was asked, what the words mean, and where
// the claim ends.

pub(crate) fn method_section(report: &Report) -> Markup {
    html! {
        section #method {
            (crate::html::scroll("Options and cost", &html! {
                table.facts { tbody {
                    @for (name, value, note) in options(report).into_iter().chain(cost(report)) {
                        tr {
                            th scope="row" { (name) }
                            td.wrap { (value) }
                            td.wrap.quiet { (note) }
                        }
                    }
                } }
            }))
            h3 { "Command line" }
            pre.code tabindex="0" { code { (command(report)) } }
            h3 { "Words" }
            (words())
            h3 { "Limits of what is claimed" }
            (limits(report))
        }
    }
}

type MethodRow = (&'static str, String, &'static str);

fn options(report: &Report) -> Vec<MethodRow> {
    let options = &report.options;
    let list = |list: &rtproof_host::CpuList| {
        if list.is_empty() { "none".into() } else { list.to_string() }
    };
    let dma = match options.dma_latency_us {
        None => "not touched".into(),
        Some(us) => format!("held at {us} µs"),
    };
    let start = match options.start {
        Start::Aligned => "all CPUs at the same instants",
        Start::Staggered => "CPU i of n at i/n of the period",
    };
    vec![
        ("run", report.run.run_id.clone(), "random identity"),
        ("started", crate::html::wall_clock(report.run.started_realtime_ns), "first wake-up"),
        ("ended", ended(report), ""),
        ("measured CPUs", list(&options.cpus), "one thread each"),
        ("housekeeping CPUs", list(&options.housekeeping), "the tool's own threads"),
        ("load CPUs", list(&options.load_cpus), ""),
        (
            "policy asked",
            format!("{}, priority {}", crate::html::policy(options.policy), options.priority),
            "in force: see measuring threads",
        ),
        ("period", units::ns(options.period_ns), start),
        ("duration asked", units::duration(options.duration_ns), ""),
        ("clock", options.clock.name().into(), "waited for and read; times are CLOCK_MONOTONIC"),
        ("/dev/cpu_dma_latency", dma, "held low, it forbids deep idle states"),
    ]
}

fn ended(report: &Report) -> String {
    match &report.run.ended {
        Some(RunEnd::Complete) => "complete".into(),
        Some(RunEnd::Interrupted { signal }) => format!("interrupted by {signal}"),
        Some(RunEnd::Aborted { why }) => format!("aborted: {why}"),
        None => format!("torn: its end was not written; {} measured", report.duration_text()),
    }
}

fn cost(report: &Report) -> Vec<MethodRow> {
    let cost = &report.cost;
    vec![
        ("clock reading costs", picoseconds(cost.clock_read_ps), "median, before the run"),
        ("clock step", units::ns(cost.clock_step_ns), "smallest difference of two readings"),
        ("clock resolution", units::ns(cost.clock_getres_ns), "clock_getres"),
        ("recording a sample costs", picoseconds(cost.record_ps), ""),
        ("floor", units::ns(cost.floor_ns), "median excess of sleeps of 50 µs"),
    ]
}

/// Picoseconds as nanoseconds with a decimal.
fn picoseconds(ps: u64) -> String {
    format!("{}.{} ns", units::grouped(ps / 1000), ps % 1000 / 100)
}

/// The command line, quoted where a shell needs it.
fn command(report: &Report) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./,:@%".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(is_plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    };
    report.run.command.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

fn words() -> Markup {
    let words = [
        ("latency", LATENCY),
        ("scheduled, sampled, missed", ACCOUNT),
        ("wake-up view", "The sampled wake-ups, as cyclictest shows them."),
        ("deadline view", DEADLINE_VIEW),
        ("quantile", QUANTILE),
        ("late second, late episode", EPISODE),
        ("exposure", EXPOSURE),
    ];
    html! {
        dl.words { @for (word, meaning) in words { dt { (word) } dd { (meaning) } } }
    }
}

const LATENCY: &str = "From the moment a thread should have run to the moment it does, against an \
    absolute schedule.";

const ACCOUNT: &str = "Wake-ups that were due; that were measured; that came due while the thread \
    was still late. Scheduled = sampled + missed, checked for every CPU.";

const DEADLINE_VIEW: &str = "Every wake-up that was due; a missed one counts with its own \
    lateness, so that a long stall is not one sample but all that it swallowed.";

const QUANTILE: &str = "The value of rank ⌈q·n⌉, shown as the upper edge of its bucket, and its \
    range over ten equal parts of the run.";

const EPISODE: &str = "A second (a period, where that is longer) in which any wake-up on any CPU \
    was late. An episode begins with one and takes in those of a quarter of the time between two at \
    the rate asked for, from its beginning on.";

const EXPOSURE: &str = "Time from the first wake-up to the last under the loads. CPUs do not add \
    to it: what strikes one may strike all.";

fn limits(report: &Report) -> Markup {
    let unseen = format!(
        "What happens less often than about once in {} was probably not seen. Firmware interrupts \
         can be minutes apart.",
        units::duration(report.verdict.basis.exposure_ns)
    );
    let limits = [SCOPE, unseen.as_str(), MAXIMUM, TAIL, SAFE];
    html! {
        ul { @for limit in limits { li { (limit) } } }
    }
}

const SCOPE: &str = "It holds for this machine, this kernel, these settings and the loads that \
    ran; not for loads that did not.";

const MAXIMUM: &str = "The largest sample is no upper bound: an equally long further run exceeds \
    it with probability 1/2.";

const TAIL: &str = "A bound on the rate of late episodes is from counting alone: nothing is \
    fitted, and nothing is said of rates that the run is too short for.";

const SAFE: &str = "Measuring cannot certify a life-critical system.";
