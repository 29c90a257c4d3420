//! Late wake-ups in a text: the kernel's `trace` file with events, or what wakeup_rt kept.

use std::path::Path;

use anyhow::Context;
use rtproof_judge::{causes, units};
use rtproof_trace::{
    Brief, How, WakeUp,
    ftrace_text::{self, TextTrace},
    scan::{Scanner, Subjects},
};

use super::{Explained, Gather};

/// Explains what it is about, or the late wake-ups of some threads.
///
/// # Errors
/// A text that is no trace; one without the threads asked for.
pub fn of_text(
    path: &Path,
    text: &str,
    subjects: &Subjects,
    over_ns: u64,
) -> anyhow::Result<Explained> {
    let trace = ftrace_text::parse(text).with_context(|| path.display().to_string())?;
    let late = match trace.subject {
        Some(subject) => vec![subject],
        None => find(&trace, subjects, over_ns),
    };
    let begin_ns = trace.events.first().map_or(0, |event| event.at_ns);
    let mut gather = Gather::default();
    for wake in &late {
        gather.add(wake, trace.window_of(wake), begin_ns);
    }
    let mut notes = vec!["Times of a text are whole microseconds.".to_owned()];
    if trace.skipped.count > 0 {
        notes.push(format!(
            "{} lines were not understood, e.g. {:?}.",
            trace.skipped.count,
            trace.skipped.first.first().map_or("", String::as_str)
        ));
    }
    if late.is_empty() {
        notes.push(format!(
            "No wake-up of these threads is more than {} late in it; it holds {} events.",
            units::ns(over_ns),
            trace.events.len()
        ));
    }
    let latency = trace.latency_ns.map_or_else(String::new, |ns| format!(", {}", units::ns(ns)));
    let tracer = if trace.tracer.is_empty() { "text" } else { &trace.tracer };
    let about = format!("{}: {tracer}{latency}", path.display());
    let told = gather.finish(over_ns, causes::Recorder::default(), about);
    Ok(Explained { notes, ..told })
}

/// Wake-ups in the events.
fn find(trace: &TextTrace, subjects: &Subjects, over_ns: u64) -> Vec<WakeUp> {
    let mut scanner = Scanner::new(subjects, over_ns, false);
    let mut late: Vec<WakeUp> = Vec::new();
    for event in &trace.events {
        late.extend(scanner.feed_brief(event.at_ns, event.cpu, &Brief::of(event)));
    }
    // Without the expiry of timers all that is known is who was woken when.
    debug_assert!(late.iter().all(|wake| wake.how != How::Measured));
    late
}
