//! A program of `rtproof run`: what would be set, and what it got.

use std::io::{self, Write};

use rtproof_judge::{Report, units};
use rtproof_results::launch::{Answer, Cannot, Ending, Launched, Plan, Proof, Setting, Thread};

use super::{
    plan::steps,
    sheet::{BAD, BOLD, DIM, GOOD, Sheet, WARN, title, wrapped},
    spikes::spikes,
    tune::taken_back,
};

/// Most threads that are shown; the JSON form has all.
const THREADS_MAX: usize = 16;
/// Most names of tasks that preempted one thread.
const NAMES_MAX: usize = 4;
/// Width of the column of names of settings.
const WIDTH: usize = 23;

/// What would be set.
pub fn plan(to: &mut Sheet, plan: &Plan, verbose: bool) -> io::Result<()> {
    title(to, &plan.machine.machine)?;
    wrapped(to, "Program  ", "         ", &plan.command.join(" "))?;
    writeln!(to, "\n{BOLD}With the program: it ends with it{BOLD:#}")?;
    settings(to, &plan.program)?;
    if !plan.held.is_empty() {
        writeln!(to, "\n{BOLD}Held while it runs: the kernel drops it with the process{BOLD:#}")?;
        settings(to, &plan.held)?;
    }
    let changes = plan.machine.steps.len();
    if changes == 0 {
        writeln!(to, "\n{BOLD}Machine: nothing is changed{BOLD:#}")?;
    } else {
        let count = units::count(changes, "change");
        writeln!(to, "\n{BOLD}Machine: {count}, undone at the end of the program{BOLD:#}")?;
        steps(to, &plan.machine.steps, verbose)?;
    }
    if verbose {
        for it in &plan.machine.left_out {
            wrapped(to, &format!("  {DIM}left out{DIM:#}  {}: ", it.check), "    ", &it.why)?;
        }
    }
    cannot(to, &plan.cannot, "cannot be set")?;
    notes(to, &plan.notes)
}

fn settings(to: &mut Sheet, all: &[Setting]) -> io::Result<()> {
    let next = " ".repeat(WIDTH + 2);
    all.iter().try_for_each(|it| {
        let first = format!("  {:<WIDTH$}", it.what);
        wrapped(to, &first, &next, &format!("{}: {}", it.value, it.how))
    })
}

fn cannot(to: &mut Sheet, all: &[Cannot], word: &str) -> io::Result<()> {
    all.iter().try_for_each(|it| {
        let first = format!("{BAD}{word}{BAD:#}  {}: ", it.what);
        wrapped(to, &first, "    ", &it.why)
    })
}

fn notes(to: &mut Sheet, all: &[String]) -> io::Result<()> {
    all.iter().try_for_each(|note| wrapped(to, &format!("{WARN}note{WARN:#}  "), "      ", note))
}

/// What a program got.
pub fn launched(to: &mut Sheet, of: &Launched, verbose: bool) -> io::Result<()> {
    let how = match of.ending {
        Ending::Exited(code) => format!("exit status {code}"),
        Ending::Killed(signal) => format!("ended by signal {signal}"),
    };
    let name = of.command.first().map_or("", String::as_str);
    let ran = units::duration(of.ran_ns);
    let style = if of.ending == Ending::Exited(0) { GOOD } else { WARN };
    let text = format!("process {} ran {ran}, {how}", of.pid);
    wrapped(to, &format!("{BOLD}{name}{BOLD:#}  {style}"), "  ", &text)?;
    write!(to, "{style:#}")?;
    cannot(to, &of.not_set, "not set")?;
    threads(to, of)?;
    if let Some(faults) = of.faults {
        let text = format!(
            "{} without a disk, {} with one, all threads of its first process",
            faults.minor, faults.major
        );
        wrapped(to, "Page faults  ", "  ", &text)?;
    }
    if let Some(wake_ups) = &of.wake_ups {
        if wake_ups.lost_events > 0 {
            let lost = wake_ups.lost_events;
            let text = format!("{lost} kernel events: wake-ups are missing from these counts");
            wrapped(to, &format!("{WARN}Lost{WARN:#}  "), "  ", &text)?;
        }
        if wake_ups.unseen > 0 {
            let text = format!(
                "{} wake-ups have no end: the kernel left out when the thread ran, and they are \
                 not counted",
                wake_ups.unseen
            );
            wrapped(to, &format!("{WARN}Unseen{WARN:#}  "), "  ", &text)?;
        }
        if wake_ups.inferred > 0 {
            let text = format!(
                "{} wake-ups have a bound as their end, as the kernel left out the switch to the \
                 thread. Those on time were at most that late, the late ones at least",
                wake_ups.inferred
            );
            wrapped(to, "Bounds  ", "  ", &text)?;
        }
        if wake_ups.spikes.seen > 0 {
            spikes(to, &wake_ups.spikes, None)?;
        }
    }
    if let Some(verdict) = &of.verdict {
        let style = match verdict.answer {
            Answer::Within => GOOD,
            Answer::Exceeded => BAD,
            Answer::CannotTell => WARN,
        };
        wrapped(to, &format!("{BOLD}Budget{BOLD:#}  {style}"), "  ", &verdict.text)?;
        write!(to, "{style:#}")?;
    }
    if let Some(of) = &of.rules {
        super::rules::rules(to, of, verbose)?;
    }
    undone(to, of)?;
    notes(to, &of.notes)
}

/// The verdict on its wake-ups, and where their record is.
pub fn proof(to: &mut Sheet, of: &Launched, report: Option<&Report>) -> io::Result<()> {
    if let Some(report) = report {
        super::verdict(to, report)?;
    }
    match &of.proof {
        None => Ok(()),
        Some(Proof::Missing { why }) => wrapped(to, "Record   none: ", "         ", why),
        Some(Proof::Made { file, page, sealed, .. }) => {
            let torn = if *sealed { "" } else { " (not sealed)" };
            let page = page.as_ref().map_or("none was written".into(), |page| page.clone());
            writeln!(to, "         record {file}{torn}   report {page}")
        }
    }
}

/// The table of threads: the latest first, then those with the most faults.
fn threads(to: &mut Sheet, of: &Launched) -> io::Result<()> {
    let mut all: Vec<&Thread> = of.threads.iter().collect();
    let worst = |it: &Thread| it.latency.map_or(0, |latency| latency.worst_ns);
    let is_real_time = |it: &Thread| it.scheduling.as_ref().is_some_and(|of| of.is_real_time);
    all.sort_by_key(|it| (!is_real_time(it), std::cmp::Reverse(worst(it)), it.tid));
    writeln!(
        to,
        "\n{BOLD}{:<24} {:<9} {:>9} {:>8} {:>8} {:>7} {:>8} {:>6} {:>6}{BOLD:#}",
        "thread", "policy", "wake-ups", "mean", "worst", "late", "faults", "lost", "moved"
    )?;
    for it in all.iter().take(THREADS_MAX) {
        thread(to, it)?;
    }
    let more = (all.len().saturating_sub(THREADS_MAX)) as u64 + of.threads_more;
    if more > 0 {
        writeln!(to, "{DIM}  and {more} more threads: --json has them{DIM:#}")?;
    }
    writeln!(
        to,
        "{DIM}lost: times it lost the CPU while it was runnable; moved: to another CPU; ?: not \
         known{DIM:#}"
    )
}

fn thread(to: &mut Sheet, it: &Thread) -> io::Result<()> {
    let number = |n: Option<u64>| n.map_or_else(|| "?".into(), |n| n.to_string());
    let policy = it.scheduling.as_ref().map_or_else(
        || "?".into(),
        |of| match (of.policy.trim_start_matches("SCHED_").to_lowercase(), of.priority) {
            (policy, 0) => policy,
            (policy, priority) => format!("{policy} {priority}"),
        },
    );
    let latency = it.latency;
    let time = |ns: Option<u64>| ns.map_or_else(|| "-".into(), units::ns);
    let name = format!("{}:{}", it.name, it.tid);
    writeln!(
        to,
        "{name:<24} {policy:<9} {:>9} {:>8} {:>8} {:>7} {:>8} {:>6} {:>6}",
        latency.map_or_else(|| "-".into(), |of| of.wake_ups.to_string()),
        time(latency.map(|of| of.mean_ns)),
        time(latency.map(|of| of.worst_ns)),
        latency.map_or_else(|| "-".into(), |of| of.over.to_string()),
        number(it.faults.map(|of| of.minor + of.major)),
        number(it.involuntary_switches),
        number(it.migrations),
    )?;
    let names = it.preempted_by.iter().take(NAMES_MAX).map(|by| {
        let name = if by.by.is_empty() { "others" } else { &by.by };
        format!("{name} {} ({})", by.times, units::ns(by.waited_ns))
    });
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        return Ok(());
    }
    let more = it.preempted_by.len().saturating_sub(NAMES_MAX);
    let more = if more > 0 { format!(", and {more} more names") } else { String::new() };
    wrapped(to, "  in its place: ", "    ", &format!("{}{more}", names.join(", ")))
}

/// What became of the changes: in full only where something is not as it was.
fn undone(to: &mut Sheet, of: &Launched) -> io::Result<()> {
    let Some(undone) = &of.undone else { return Ok(()) };
    let is_plain = |it: &&rtproof_results::tune::outcome::TakenBack| {
        use rtproof_results::tune::outcome::TakenBackOutcome::{Gone, Restored, WasBefore};
        !matches!(it.outcome, Restored | WasBefore | Gone)
    };
    let left: Vec<_> = undone.changes.iter().filter(is_plain).cloned().collect();
    let count = units::count(of.changes, "change");
    if left.is_empty() {
        return writeln!(to, "{GOOD}Undone{GOOD:#}  {count} of the machine, none is left");
    }
    writeln!(to, "{BAD}Not all is as it was{BAD:#}  {}", undone.path)?;
    taken_back(to, &left)
}
