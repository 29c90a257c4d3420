//! A program of `rtproof run`: what would be set, and what it got.

use std::io::{self, Write};

use rtproof_judge::{
    Report,
    locks::{HolderPreempter, LockKind, LockOrder, LockThread},
    rules::{Compliance, Rule},
    units,
};
use rtproof_results::{
    LockWaits, LocksFound,
    launch::{
        Breach, BudgetAnswer, Cannot, LaunchPlan, LaunchSetting, Launched, LaunchedThread,
        ProgramEnding, RecordProof, Rules, StackFrame,
    },
};

use super::plan::steps;
use super::spikes::spikes;
use super::tune::taken_back;
use crate::text::{BAD, BOLD, DIM, GOOD, Terminal, WARN, title_line, wrapped};

/// Most threads that are shown; the JSON form has all.
const THREADS_MAX: usize = 16;

/// Most names of tasks that preempted one thread.
const NAMES_MAX: usize = 4;

/// Width of the column of names of settings.
const WIDTH: usize = 23;

/// What would be set.
pub fn plan(to: &mut Terminal, plan: &LaunchPlan, verbose: bool) -> io::Result<()> {
    title_line(to, &plan.machine.machine)?;
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

fn settings(to: &mut Terminal, all: &[LaunchSetting]) -> io::Result<()> {
    let next = " ".repeat(WIDTH + 2);
    all.iter().try_for_each(|it| {
        let first = format!("  {:<WIDTH$}", it.what);
        wrapped(to, &first, &next, &format!("{}: {}", it.value, it.how))
    })
}

fn cannot(to: &mut Terminal, all: &[Cannot], word: &str) -> io::Result<()> {
    all.iter().try_for_each(|it| {
        let first = format!("{BAD}{word}{BAD:#}  {}: ", it.what);
        wrapped(to, &first, "    ", &it.why)
    })
}

fn notes(to: &mut Terminal, all: &[String]) -> io::Result<()> {
    all.iter().try_for_each(|note| wrapped(to, &format!("{WARN}note{WARN:#}  "), "      ", note))
}

/// What a program got.
pub fn launched(to: &mut Terminal, of: &Launched, verbose: bool) -> io::Result<()> {
    let how = match of.ending {
        ProgramEnding::Exited(code) => format!("exit status {code}"),
        ProgramEnding::Killed(signal) => format!("ended by signal {signal}"),
    };
    let name = of.command.first().map_or("", String::as_str);
    let ran = units::duration(of.ran_ns);
    let style = if of.ending == ProgramEnding::Exited(0) { GOOD } else { WARN };
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
                "{} wake-ups may have been late: the kernel did not record when they were due or \
                 when the thread ran",
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
            BudgetAnswer::Within => GOOD,
            BudgetAnswer::Exceeded => BAD,
            BudgetAnswer::CannotTell => WARN,
        };
        wrapped(to, &format!("{BOLD}Budget{BOLD:#}  {style}"), "  ", &verdict.text)?;
        write!(to, "{style:#}")?;
    }
    if let Some(of) = &of.rules {
        rules(to, of, verbose)?;
    }
    undone(to, of)?;
    notes(to, &of.notes)
}

/// The verdict on its wake-ups, and where their record is.
pub fn proof(to: &mut Terminal, of: &Launched, report: Option<&Report>) -> io::Result<()> {
    if let Some(report) = report {
        crate::page::verdict(to, report)?;
    }
    match &of.proof {
        None => Ok(()),
        Some(RecordProof::Missing { why }) => wrapped(to, "Record   none: ", "         ", why),
        Some(RecordProof::Made { file, page, sealed, .. }) => {
            let torn = if *sealed { "" } else { " (not sealed)" };
            let page = page.as_ref().map_or("none was written".into(), |page| page.clone());
            writeln!(to, "         record {file}{torn}   report {page}")
        }
    }
}

/// The table of threads: the latest first, then those with the most faults.
fn threads(to: &mut Terminal, of: &Launched) -> io::Result<()> {
    let mut all: Vec<&LaunchedThread> = of.threads.iter().collect();
    let worst = |it: &LaunchedThread| it.latency.map_or(0, |latency| latency.worst_ns);
    let is_real_time =
        |it: &LaunchedThread| it.scheduling.as_ref().is_some_and(|of| of.is_real_time);
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

fn thread(to: &mut Terminal, it: &LaunchedThread) -> io::Result<()> {
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

/// Outcome of the changes: in full only if something was not restored.
fn undone(to: &mut Terminal, of: &Launched) -> io::Result<()> {
    let Some(undone) = &of.undone else { return Ok(()) };
    let is_plain = |it: &&rtproof_results::tune::TakenBack| {
        use rtproof_results::tune::TakenBackOutcome::{Gone, Restored, WasBefore};
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

// The locks that real-time threads of an application waited for: holders, and what ran in the
// holder's place.

/// Most locks that are shown; the JSON form has all.
const WAITS_MAX: usize = 12;

/// What ends priority inversion.
const FIX: &str = "priority inheritance: pthread_mutexattr_setprotocol with PTHREAD_PRIO_INHERIT. \
                   C++: std::mutex has none; wrap a pthread_mutex_t. Rust: std::sync::Mutex has \
                   none; rtsc::pi::Mutex, linux_futex::PiFutex, or pthread_mutex_t of libc";

pub fn locks(to: &mut Terminal, of: &LocksFound) -> io::Result<()> {
    let inversions = of.waits.iter().filter(|it| it.is_inversion()).count();
    let title = match (of.waits.len(), inversions) {
        (0, _) => "no real-time thread was seen to wait for a lock without priority inheritance"
            .to_owned(),
        (_, 0) => "real-time threads waited for locks without priority inheritance; no inversion \
                   of a tenth of a wait and more"
            .to_owned(),
        (all, _) => {
            let pairs = units::count(all, "pair");
            format!(
                "{BAD}priority inversion{BAD:#}: {inversions} of {pairs} of a waiter and a holder"
            )
        }
    };
    writeln!(to)?;
    wrapped(to, &format!("{BOLD}Locks{BOLD:#}    "), "         ", &title)?;
    for it in of.waits.iter().take(WAITS_MAX) {
        waits(to, it)?;
    }
    if of.waits.len() > WAITS_MAX {
        writeln!(to, "{DIM}  and {} more: --json has them{DIM:#}", of.waits.len() - WAITS_MAX)?;
    }
    if inversions > 0 {
        wrapped(to, "  fix: ", "    ", FIX)?;
    }
    others(to, of)
}

fn waits(to: &mut Terminal, it: &LockWaits) -> io::Result<()> {
    let (waiter, holder) = (party(&it.waiter), party(&it.holder));
    let sure = if it.is_certain { "" } else { ", likely" };
    let first = match it.is_inversion() {
        true => format!("  {BAD}inversion{sure}{BAD:#}  "),
        false => format!("  {WARN}{}{sure}{WARN:#}  ", what(it)),
    };
    let worst = units::ns(it.worst_ns);
    let text = format!("{waiter} waited {worst} for a lock that {holder} held: {}", did(it));
    wrapped(to, &first, "    ", &text)?;
    let kind = match it.kind {
        LockKind::Pthread => "a mutex of glibc without priority inheritance",
        LockKind::Named => "a lock without priority inheritance whose word names its holder",
        LockKind::Rust => "a lock of Rust's library, which has no priority inheritance",
        LockKind::Used => {
            "used as a lock without priority inheritance; two threads that hand work to each other \
             look the same"
        }
        LockKind::NotSure => "it may be a lock",
    };
    let place = it.at.as_ref().map_or_else(String::new, |at| format!(" at {}", frame(at)));
    let hands = match it.hands {
        0 => String::new(),
        count => format!("; {} had it before", units::count(count, "other thread")),
    };
    let (times, sum) = (units::count(it.count, "wait"), units::ns(it.sum_ns));
    let text = format!("{kind}{place}; {times}, {sum} in all, the longest is shown{hands}");
    wrapped(to, &format!("    {DIM}"), "      ", &format!("{text}{DIM:#}"))
}

/// The largest part of the longest wait.
fn what(it: &LockWaits) -> &'static str {
    let of = &it.holder_time;
    let longest = of.preempters.iter().max_by_key(|it| it.ns);
    let instead = longest.map_or((0, "not run"), |it| match it.order {
        LockOrder::Higher => (it.ns, "outranked"),
        LockOrder::Middle | LockOrder::Lower | LockOrder::Idle => (it.ns, "not run"),
    });
    let own = [
        (of.holder_ran_ns, "long holder"),
        (of.holder_slept_ns, "holder asleep"),
        (of.unknown_ns, "not known"),
    ];
    own.into_iter().chain([instead]).max_by_key(|(ns, _)| *ns).map_or("not known", |it| it.1)
}

/// What the holder did meanwhile; sums to the wait.
fn did(it: &LockWaits) -> String {
    let of = &it.holder_time;
    let instead = |it: &HolderPreempter| {
        let who = LockThread { tid: it.tid, name: it.name.clone(), priority: Some(it.priority) };
        let (who, ns) = (party(&who), units::ns(it.ns));
        match it.order {
            LockOrder::Middle => format!("{ns} {who} ran in its place"),
            LockOrder::Higher => format!("{ns} {who} ran, which outranks both"),
            LockOrder::Lower => {
                format!("{ns} {who} ran below it: preemption was off, or it was throttled")
            }
            LockOrder::Idle => format!("{ns} nobody ran: it was throttled, or on its way to a CPU"),
        }
    };
    let own = [
        (of.holder_ran_ns, "it ran"),
        (of.holder_slept_ns, "it slept or waited itself"),
        (of.unknown_ns, "not known"),
    ];
    let own = own.into_iter().filter(|(ns, _)| *ns > 0);
    let own = own.map(|(ns, text)| (ns, format!("{} {text}", units::ns(ns))));
    let mut all: Vec<(u64, String)> =
        own.chain(of.preempters.iter().map(|it| (it.ns, instead(it)))).collect();
    all.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    let (shown, rest) = all.split_at(all.len().min(4));
    let mut text: Vec<String> = shown.iter().map(|(_, text)| text.clone()).collect();
    if !rest.is_empty() {
        let ns = rest.iter().map(|(ns, _)| ns).sum();
        text.push(format!("{} {} more", units::ns(ns), rest.len()));
    }
    text.join(", ")
}

/// A thread as `name:tid [priority]`.
pub fn party(of: &LockThread) -> String {
    let rank = match of.priority {
        Some(..0) => "DEADLINE".into(),
        Some(priority @ 0..=98) => format!("real-time {}", 99 - priority),
        Some(99) => "real-time".into(),
        Some(_) => "OTHER".into(),
        None => "priority unknown".into(),
    };
    format!("{}:{} [{rank}]", of.name, of.tid)
}

/// Waits that are not for a lock without priority inheritance.
fn others(to: &mut Terminal, of: &LocksFound) -> io::Result<()> {
    let it = &of.others;
    let count = |count: u64| units::count(count, "wait");
    let lines = [
        (
            it.inheriting,
            format!("with priority inheritance: at most {}", units::ns(it.inheriting_worst_ns)),
        ),
        (
            it.events,
            "no lock that is recognised: a condition variable, a semaphore, a parked thread".into(),
        ),
        (
            it.not_sure,
            format!(
                "what may be a lock, at most {}: it was not used often enough, or not as a lock is",
                units::ns(it.not_sure_worst_ns)
            ),
        ),
        (it.given_up, "a lock, given up or interrupted".into()),
        (it.unseen, "a lock, and who released it was not seen".into()),
        (it.endless, "a lock, to the end of the observation".into()),
        (it.too_long, "a lock, among more events than are kept".into()),
    ];
    for (number, text) in lines.into_iter().filter(|(number, _)| *number > 0) {
        let text = format!("{}: {text}{DIM:#}", count(number));
        wrapped(to, &format!("  {DIM}"), "    ", &text)?;
    }
    for why in &of.unknown {
        wrapped(to, &format!("  {WARN}not observed{WARN:#}  "), "    ", why)?;
    }
    Ok(())
}

// The rules of a real-time program: which were kept, each breach with its place, and what is not
// known.

/// Most breaches, and frames of each, that are shown; the JSON form has all.
const BREACHES_MAX: usize = 24;

const FRAMES_MAX: usize = 6;

/// What is not seen of a rule that was kept as far as it was seen.
const LIMITS: [(&str, &str); 3] = [
    (
        "blocking",
        "a descriptor is looked at up to 40 ms after the call, when it may be another one",
    ),
    ("lock", "locks of glibc and Rust; another lock counts as a wait for an event"),
    ("output", "a descriptor is looked at up to 40 ms after the call, when it may be another one"),
];

pub fn rules(to: &mut Terminal, of: &Rules, verbose: bool) -> io::Result<()> {
    let style = match of.answer {
        Compliance::Kept => GOOD,
        Compliance::Broken => BAD,
        Compliance::NotKnown => WARN,
    };
    wrapped(to, &format!("\n{BOLD}Rules{BOLD:#}  {style}"), "  ", &of.text)?;
    write!(to, "{style:#}")?;
    let ready = match of.ready_after_ns {
        Some(ns) => format!("{}; from {} on", of.ready, units::duration(ns)),
        None => format!("{}: that was not seen", of.ready),
    };
    wrapped(to, &format!("  {DIM}"), "  ", &ready)?;
    write!(to, "{DIM:#}")?;
    let mut before = None;
    for it in of.breaches.iter().take(BREACHES_MAX) {
        if before.replace(it.rule).is_none_or(|before| before != it.rule) {
            let first = format!("  {BAD}{}{BAD:#}  ", it.rule.id());
            wrapped(to, &first, "    ", &format!("{}; instead: {}", it.rule.title(), it.advice))?;
        }
        breach(to, it)?;
    }
    let more = of.breaches.len().saturating_sub(BREACHES_MAX);
    if more > 0 {
        let more = units::count(more, "more place");
        writeln!(to, "{DIM}  and {more} of breaches: --json has them{DIM:#}")?;
    }
    if of.breaches_more > 0 {
        let (more, kept) = (of.breaches_more, of.breaches.len());
        let text =
            format!("and {more} more breaches, beyond the {kept} places that are kept apart");
        wrapped(to, &format!("{DIM}  "), "  ", &format!("{text}{DIM:#}"))?;
    }
    let ids = |answer| {
        let all = of.rules.iter().filter(move |it| it.answer == answer);
        all.map(|it| it.rule.id()).collect::<Vec<_>>().join(", ")
    };
    let kept = ids(Compliance::Kept);
    if !kept.is_empty() {
        wrapped(to, &format!("  {GOOD}kept{GOOD:#}  "), "    ", &kept)?;
        let is_kept = |id: &str| kept.split(", ").any(|kept| kept == id);
        for (id, limit) in LIMITS.into_iter().filter(|(id, _)| is_kept(id)) {
            wrapped(to, &format!("    {DIM}"), "      ", &format!("{id}: {limit}{DIM:#}"))?;
        }
    }
    let not_known: Vec<_> =
        of.rules.iter().filter(|it| it.answer == Compliance::NotKnown).collect();
    let mut reasons: Vec<&str> = not_known.iter().filter_map(|it| it.why.as_deref()).collect();
    reasons.dedup();
    for why in reasons {
        let of_it = not_known.iter().filter(|it| it.why.as_deref() == Some(why));
        let names: Vec<&str> = of_it.map(|it| it.rule.id()).collect();
        let text = format!("{}: {why}", names.join(", "));
        wrapped(to, &format!("  {WARN}not known{WARN:#}  "), "    ", &text)?;
    }
    for why in &of.unknown {
        wrapped(to, &format!("  {WARN}not observed{WARN:#}  "), "    ", why)?;
    }
    if !of.ordinary.is_empty() && (verbose || of.threads.is_empty()) {
        let names = of.ordinary.join(", ");
        wrapped(to, &format!("  {DIM}ordinary threads, not judged{DIM:#}  "), "    ", &names)?;
    }
    if verbose {
        wrapped(to, &format!("  {DIM}"), "    ", &format!("{}{DIM:#}", of.monitors.text))?;
    }
    Ok(())
}

fn breach(to: &mut Terminal, it: &Breach) -> io::Result<()> {
    let worst = it.worst_ns.map_or_else(String::new, |ns| format!(", at most {}", units::ns(ns)));
    let times = if it.count == 1 { "once".into() } else { format!("{} times", it.count) };
    let first = format!("    {}:{} ", it.thread, it.tid);
    let place = it.at.as_ref().map_or_else(String::new, |at| format!(" at {}", frame(at)));
    let text = format!("{}{place}; {times}{worst}; {}", it.what, it.why);
    let text = text + &monitor(it);
    wrapped(to, &first, "      ", &text)?;
    let shown: Vec<String> = it.stack.iter().take(FRAMES_MAX).map(frame).collect();
    let cut = if it.is_cut || it.stack.len() > FRAMES_MAX { ", ..." } else { "" };
    if !shown.is_empty() {
        let text = format!("{}{cut}", shown.join(", "));
        wrapped(to, &format!("      {DIM}stack{DIM:#} "), "        ", &text)?;
    }
    Ok(())
}

/// What the kernel's monitor says to a breach.
fn monitor(it: &Breach) -> String {
    match it.monitor {
        None => String::new(),
        Some(name) if it.rule == Rule::KernelMonitor => format!("; {name} reports it"),
        Some(name) if it.monitor_count == it.count => {
            format!("; the kernel's monitor {name} says so, too")
        }
        Some(name) => {
            format!("; the kernel's monitor {name} says so, too, {} times", it.monitor_count)
        }
    }
}

pub(super) fn frame(it: &StackFrame) -> String {
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let module = it.module.as_deref().map_or_else(|| format!("{:#x}", it.address), name);
    let function = it.function.clone().unwrap_or(module);
    match (&it.file, it.line) {
        (Some(file), Some(line)) => format!("{function} ({}:{line})", name(file)),
        _ => function,
    }
}
