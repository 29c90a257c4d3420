//! Late wake-ups in a text: the kernel's `trace` file in every form, trace-cmd report, perf script,
//! and what rtla prints.

use std::{io::BufRead, path::Path};

use anyhow::Context;
use rtproof_judge::{
    causes::{self, Explanation},
    units,
};
use rtproof_trace::{
    Class, WakeUp, Window,
    ftrace_text::{self, Entry, Finder, TextError, TextTrace, Windows},
    scan::Subjects,
};

use super::{Explained, Gather, TextFile, gaps};

/// A latency that the header gives may differ from the events by this: the tracer reads the clock
/// before and after it writes them.
const HEADER_NS: u64 = 30_000;

/// Explains what it is about, or the late wake-ups of some threads.
///
/// # Errors
/// A text that is no trace; one that cannot be read.
pub fn of_text(
    path: &Path,
    text: &TextFile,
    subjects: &Subjects,
    over_ns: u64,
) -> anyhow::Result<Explained> {
    let at = || path.display().to_string();
    let analysis = super::rtla::of_text(&text.start().with_context(at)?);
    explained(path, text, subjects, over_ns, analysis)
}

/// The same of a trace that was recorded just now, which may be empty.
pub(crate) fn of_trace(
    path: &Path,
    text: &TextFile,
    subjects: &Subjects,
    over_ns: u64,
) -> anyhow::Result<Explained> {
    explained(path, text, subjects, over_ns, Some(Vec::new()))
}

/// The longest latency in a text, late or not.
pub(crate) fn longest(text: &TextFile, subjects: &Subjects) -> anyhow::Result<Option<u64>> {
    let (traces, finders) = match scan(&mut *text.open()?, subjects, 0) {
        Ok(found) => found,
        Err(TextError::None { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let all = traces.iter().zip(finders);
    let late = all.flat_map(|(of, finder)| finder.finish(of.subject, of.count, of.end_ns).0);
    Ok(late.map(|wake| wake.latency_ns()).max())
}

type Analysis = Option<Vec<(WakeUp, Window, Explanation)>>;

fn explained(
    path: &Path,
    text: &TextFile,
    subjects: &Subjects,
    over_ns: u64,
    analysis: Analysis,
) -> anyhow::Result<Explained> {
    let at = || path.display().to_string();
    let (traces, finders) = match scan(&mut *text.open().with_context(at)?, subjects, over_ns) {
        Ok(found) => found,
        Err(TextError::None { .. }) if analysis.is_some() => (Vec::new(), Vec::new()),
        Err(error) => return Err(error).with_context(at),
    };
    let mut gather = Gather::default();
    let mut notes = Vec::new();
    for (wake, window, explanation) in analysis.into_iter().flatten() {
        gather.explained(&wake, window, explanation, 0);
    }
    let (mut late, mut all, mut open, mut doubts) = (Vec::new(), 0, Vec::new(), Vec::new());
    for (trace, finder) in traces.iter().zip(finders) {
        let wake_ups = finder.wake_ups();
        all += wake_ups;
        open.extend(hidden(trace, &finder));
        doubts.extend(gaps::doubts(trace.misfits, trace.reversals, &trace.silent_cpus));
        notes.extend(gaps::inferred(finder.totals()));
        let (found, count) = finder.finish(trace.subject, trace.count, trace.end_ns);
        gather.unexamined(count.saturating_sub(found.len() as u64));
        say(trace, &found, (wake_ups, over_ns), &mut notes);
        late.push(found);
    }
    if late.iter().any(|late| !late.is_empty()) {
        windows(&mut *text.open().with_context(at)?, &traces, late, &mut gather)?;
    }
    let about = format!("{}: {}", path.display(), about(&traces));
    let told = gather.finish(over_ns, causes::Recorder::default(), about);
    let saw_none = all == 0 && told.spikes.seen == 0;
    Ok(Explained { notes, saw_none, gaps: open, doubts, ..told })
}

/// Where it may hide wake-ups.
fn hidden(trace: &TextTrace, finder: &Finder) -> Vec<String> {
    let cut = trace.entries.filter(|(said, read)| read < said);
    let cut = cut.map(|(said, read)| format!("its header says {said} entries, {read} are here"));
    let skipped = trace.skipped.count;
    // A few are what people write round a trace.
    let skipped = (skipped > trace.count / 10)
        .then(|| format!("not understood: {}", units::count(skipped, "line")));
    // What was overwritten before the first event of a CPU is before the trace.
    let lost = trace.lost.iter().filter(|(_, lost)| lost.from_ns > 0).count();
    let lost = (lost > 0).then(|| format!("events are missing in {}", units::count(lost, "place")));
    let lossy = trace.is_lossy.then(|| "perf says that it lost events, not which".to_owned());
    let unseen = gaps::unseen(finder.totals()).into_iter();
    unseen.chain(lost).chain(lossy).chain(cut).chain(skipped).collect()
}

/// First pass: what is late.
fn scan(
    text: &mut dyn BufRead,
    subjects: &Subjects,
    over_ns: u64,
) -> Result<(Vec<TextTrace>, Vec<Finder>), TextError> {
    let mut finders: Vec<Finder> = Vec::new();
    let traces = ftrace_text::read(text, &mut |trace, entry| {
        while finders.len() <= trace {
            finders.push(Finder::new(subjects, over_ns));
        }
        finders[trace].take(entry);
    })?;
    while finders.len() < traces.len() {
        finders.push(Finder::new(subjects, over_ns));
    }
    Ok((traces, finders))
}

/// Second pass: the events round it.
fn windows(
    text: &mut dyn BufRead,
    traces: &[TextTrace],
    late: Vec<Vec<WakeUp>>,
    gather: &mut Gather,
) -> anyhow::Result<()> {
    let begin_ns = late.iter().flatten().map(|wake| wake.due_ns).min().unwrap_or(0);
    let mut all: Vec<Windows<'_>> =
        traces.iter().zip(late).map(|(trace, late)| Windows::new(trace, late)).collect();
    let mut found = |wake: &WakeUp, window| {
        gather.add(wake, window, begin_ns);
    };
    ftrace_text::read(text, &mut |trace, entry| {
        if let (Some(windows), Entry::Event(event, _)) = (all.get_mut(trace), entry) {
            windows.take(event, &mut found);
        }
    })?;
    let left: Vec<u64> = all.into_iter().map(|windows| windows.finish(&mut found)).collect();
    left.into_iter().for_each(|count| gather.unexamined(count));
    Ok(())
}

fn about(traces: &[TextTrace]) -> String {
    let of = |trace: &TextTrace| {
        let tracer = if trace.tracer.is_empty() { "text" } else { &trace.tracer };
        let latency =
            trace.latency_ns.map_or_else(String::new, |ns| format!(", {}", units::ns(ns)));
        format!("{tracer}{latency}")
    };
    if traces.is_empty() {
        return "analysis of rtla".into();
    }
    traces.iter().map(of).collect::<Vec<_>>().join("; ")
}

/// What the user must know of a text.
fn say(
    trace: &TextTrace,
    late: &[WakeUp],
    (wake_ups, over_ns): (u64, u64),
    notes: &mut Vec<String>,
) {
    if !trace.is_fine {
        notes.push("Its times are whole microseconds.".to_owned());
    }
    if let Some((said, read)) = trace.entries.filter(|(said, read)| read < said) {
        notes.push(format!(
            "Its header says {said} entries, {read} are here: it was cut or abbreviated, and what \
             is missing may contradict the rest."
        ));
    }
    if let Some(latency_ns) = trace.latency_ns {
        let ours = late.first().map(WakeUp::latency_ns);
        match ours {
            Some(ns) if ns.abs_diff(latency_ns) > HEADER_NS.max(latency_ns / 20) => {
                notes.push(format!(
                    "Its header says {}, its entries {}: one of them is wrong, or the text is not \
                     whole.",
                    units::ns(latency_ns),
                    units::ns(ns)
                ));
            }
            None => notes.push(format!(
                "Its header says {}; the entries that would explain it are not in the text.",
                units::ns(latency_ns)
            )),
            Some(_) => {}
        }
    }
    let without = trace.coverage.without();
    if !without.is_empty() && trace.count > 0 {
        notes.push(format!("Not recorded in it, or not completely: {without}."));
    }
    if trace.skipped.count > 0 {
        notes.push(format!(
            "{} lines were not understood, e.g. {:?}.",
            trace.skipped.count,
            trace.skipped.first.first().map_or("", String::as_str)
        ));
    }
    if late.is_empty() && trace.latency_ns.is_none() {
        let blind = !trace.coverage.has(Class::WakeUps) || !trace.coverage.has(Class::Switches);
        notes.push(if trace.tracer == "hwlat" {
            "hwlat found no gap above its own threshold, which the text does not say.".into()
        } else if wake_ups == 0 && blind {
            format!(
                "It holds {} events and no wake-up of these threads (sched_waking with \
                 sched_switch, or timerlat): whether one was late cannot be seen in it.",
                trace.count
            )
        } else {
            format!(
                "It holds {} events. Of the {} of these threads that it shows none was more than \
                 {} late.",
                trace.count,
                units::count(wake_ups, "wake-up"),
                units::ns(over_ns)
            )
        });
    }
}
