//! How it was measured: what the measuring costs, what was asked, what the words mean, and where
//! the claim ends.

use maud::{Markup, html};
use rtproof_judge::{Report, units};
use rtproof_record::{Start, run::RunEnd};

use super::parts;

pub(super) fn section(report: &Report) -> Markup {
    html! {
        section #method {
            (parts::scroll("Options and cost", &html! {
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
            (words(report))
            h3 { "Limits of what is claimed" }
            (limits(report))
        }
    }
}

type Row = (&'static str, String, &'static str);

fn options(report: &Report) -> Vec<Row> {
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
        ("started", parts::wall_clock(report.run.started_realtime_ns), "first wake-up"),
        ("ended", ended(report), ""),
        ("measured CPUs", list(&options.cpus), "one thread each"),
        ("housekeeping CPUs", list(&options.housekeeping), "the tool's own threads"),
        ("load CPUs", list(&options.load_cpus), ""),
        (
            "policy asked",
            format!("{}, priority {}", parts::policy(options.policy), options.priority),
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

fn cost(report: &Report) -> Vec<Row> {
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

fn words(report: &Report) -> Markup {
    let confidence = units::confidence(report.options.requirement.confidence_ppm);
    let quantile = format!(
        "The value of rank ⌈q·n⌉, shown as the upper edge of its bucket. Its interval is that of \
         order statistics at {confidence} confidence, from the lower edge of one bucket to the \
         upper edge of another. n is reduced to what dependent samples are worth (long-run \
         variance over seconds). There is none where fewer than five independent samples lie on \
         the rarer side, or the run holds fewer than 20 seconds or 20 correlation times."
    );
    let words = [
        ("latency", LATENCY),
        ("scheduled, sampled, missed", ACCOUNT),
        ("wake-up view", "The sampled wake-ups, as cyclictest shows them."),
        ("deadline view", DEADLINE_VIEW),
        ("quantile", quantile.as_str()),
        ("group of late wake-ups", GROUP),
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
const GROUP: &str =
    "Late wake-ups with less than ten on-time periods between them: one cause, counted once.";
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
const TAIL: &str = "A bound on the rate of late wake-ups is from counting alone. The tail is \
    followed beyond what was measured only where none of nine rules forbids it, and never beyond ten times \
    as long.";
const SAFE: &str = "Measuring cannot certify a life-critical system.";
