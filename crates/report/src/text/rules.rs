//! The rules of a real-time program: which were kept, each breach with its place, and what is not
//! known.

use std::io::{self, Write};

use rtproof_judge::{
    rules::{Kept, Rule},
    units,
};
use rtproof_results::rules::{Breach, Frame, Rules};

use super::sheet::{BAD, BOLD, DIM, GOOD, Sheet, WARN, wrapped};

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

pub fn rules(to: &mut Sheet, of: &Rules, verbose: bool) -> io::Result<()> {
    let style = match of.answer {
        Kept::Kept => GOOD,
        Kept::Broken => BAD,
        Kept::NotKnown => WARN,
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
            wrapped(to, &first, "    ", &format!("{}; instead: {}", it.rule.title(), it.instead))?;
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
    let kept = ids(Kept::Kept);
    if !kept.is_empty() {
        wrapped(to, &format!("  {GOOD}kept{GOOD:#}  "), "    ", &kept)?;
        let is_kept = |id: &str| kept.split(", ").any(|kept| kept == id);
        for (id, limit) in LIMITS.into_iter().filter(|(id, _)| is_kept(id)) {
            wrapped(to, &format!("    {DIM}"), "      ", &format!("{id}: {limit}{DIM:#}"))?;
        }
    }
    let not_known: Vec<_> = of.rules.iter().filter(|it| it.answer == Kept::NotKnown).collect();
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

fn breach(to: &mut Sheet, it: &Breach) -> io::Result<()> {
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

pub(super) fn frame(it: &Frame) -> String {
    let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    let module = it.module.as_deref().map_or_else(|| format!("{:#x}", it.address), name);
    let function = it.function.clone().unwrap_or(module);
    match (&it.file, it.line) {
        (Some(file), Some(line)) => format!("{function} ({}:{line})", name(file)),
        _ => function,
    }
}
