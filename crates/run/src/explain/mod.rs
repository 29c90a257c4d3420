//! The work of `explain`: late wake-ups with their windows, from any source.

mod file;
pub(crate) mod live;
mod locks;
mod trace_dat;

pub use file::{InputKind, TextFile, of_text};
pub(crate) use file::{longest, of_trace};
pub use live::{ProcessTarget, live};
pub(crate) use live::{name, observe};
pub use trace_dat::of_trace_dat;

use std::path::Path;

use anyhow::Context;

use rtproof_host::{CpuList, door::write_whole};
use rtproof_judge::{
    Report,
    causes::{CauseTable, ExplainedSpike, Explanation, RecorderSummary, Spikes, explain, title},
    spikes::gathered,
    units,
};
use rtproof_record::{run::Note, spikes::SpikeSummary};
use rtproof_results::{
    LocksFound,
    record_state::{integrity, open_whole},
};
use rtproof_trace::{
    Coverage, EventClass, Extent, WakeUp, Window, dat, perfetto, scan::ThreadTotals,
};

/// Late wake-ups with their causes, and what was missing to explain them.
#[derive(Debug)]
pub struct Explained {
    /// The subject in a line: file, thread, number of wake-ups.
    pub about: String,
    /// The table and the worst.
    pub spikes: Spikes,
    /// Windows of the worst, by number.
    pub windows: Vec<(u32, Window)>,
    /// What the user must know of how it was found.
    pub notes: Vec<String>,
    /// Whether there was no wake-up at all to look at: nothing is known then.
    pub no_wake_ups: bool,
    /// What leaves open whether more wake-ups were late than were found: clauses.
    pub gaps: Vec<String>,
    /// Why how late a wake-up was may be wrong: clauses.
    pub doubts: Vec<String>,
    /// The locks that a running application waits for; `None`: they were not observed.
    pub locks: Option<LocksFound>,
    /// The judged run; `None`: a trace, or a running application.
    pub report: Option<Box<Report>>,
}

impl Explained {
    /// Whether more wake-ups may have been late than were found.
    pub const fn is_open(&self) -> bool {
        !self.gaps.is_empty() || !self.doubts.is_empty()
    }

    /// The window of a spike.
    pub fn window(&self, number: u32) -> Option<&Window> {
        self.windows.iter().find(|(of, _)| *of == number).map(|(_, window)| window)
    }

    /// The spike with a number.
    pub fn spike(&self, number: u32) -> Option<&ExplainedSpike> {
        self.spikes.worst.iter().find(|spike| spike.number == number)
    }
}

// One spike as a file for other tools' pictures.

/// Writes the window of a spike: for ui.perfetto.dev, for trace-cmd and KernelShark.
pub fn export(
    spike: &ExplainedSpike,
    window: &Window,
    perfetto_path: Option<&Path>,
    trace_dat_path: Option<&Path>,
) -> anyhow::Result<()> {
    if let Some(path) = perfetto_path {
        let bytes = perfetto_bytes(spike, window);
        write_whole(path, |to| Ok(to.write_all(&bytes)?)).with_context(|| cannot(path))?;
    }
    if let Some(path) = trace_dat_path {
        let mut bytes = Vec::new();
        dat::write_window(window, "mono", &mut bytes)?;
        write_whole(path, |to| Ok(to.write_all(&bytes)?)).with_context(|| cannot(path))?;
    }
    Ok(())
}

fn perfetto_bytes(spike: &ExplainedSpike, window: &Window) -> Vec<u8> {
    let explanation = &spike.explanation;
    let names: Vec<String> = explanation
        .shares
        .iter()
        .map(|share| match share.culprit.as_str() {
            "" => title(&share.cause).to_owned(),
            culprit => format!("{}: {culprit}", share.cause),
        })
        .collect();
    let spans: Vec<(u64, u64, &str)> = explanation
        .spans
        .iter()
        .filter_map(|span| {
            Some((span.from_ns, span.to_ns, names.get(span.share as usize)?.as_str()))
        })
        .collect();
    perfetto::encode(window, &explanation.wake, &spans)
}

fn cannot(path: &Path) -> String {
    format!("{}: cannot be written", path.display())
}

// What leaves open whether more wake-ups were late than were found: clauses, for an answer that
// none was.

/// Wake-ups without an end, or without a time when they were due.
fn open_wake_ups<'a>(totals: impl Iterator<Item = &'a ThreadTotals>) -> Vec<String> {
    let (unseen, undue, in_vain) = totals.fold((0, 0, 0), |(unseen, undue, in_vain), of| {
        (unseen + of.unseen, undue + of.undue, in_vain + of.in_vain)
    });
    let wake_ups = |count| units::count(count, "wake-up");
    let clauses = [
        (unseen, format!("when the thread ran was not recorded in {}", wake_ups(unseen))),
        (undue, format!("when it was due was not recorded of {}", wake_ups(undue))),
        (
            in_vain,
            format!("a timer fired while its thread slept on, {}", units::count(in_vain, "time")),
        ),
    ];
    clauses.into_iter().filter(|(count, _)| *count > 0).map(|(_, clause)| clause).collect()
}

/// What a file without the functions of timers leaves open.
fn without_timers(coverage: &Coverage, wake_ups: u64) -> Option<String> {
    let is_open = wake_ups > 0 && coverage.of(EventClass::Timers) == Extent::None;
    is_open.then(|| {
        "timers were not recorded (hrtimer_start, hrtimer_expire_entry): what is late before a \
         thread is woken is not known"
            .to_owned()
    })
}

/// Wake-ups that are counted with a bound as their end: notes.
pub(crate) fn inferred<'a>(totals: impl Iterator<Item = &'a ThreadTotals>) -> Vec<String> {
    let (at_most, at_least) = totals
        .fold((0, 0), |(at_most, at_least), of| (at_most + of.inferred, at_least + of.at_least));
    let note = |count: u64, end: &str, bound: &str| {
        (count > 0).then(|| {
            format!(
                "{} counted up to {end}, as the switch to the thread was not recorded: {bound} \
                 that late.",
                if count == 1 { "1 wake-up is".into() } else { format!("{count} wake-ups are") }
            )
        })
    };
    let on_time = note(at_most, "the thread's next event", "at most");
    let late = note(at_least, "the last event of the task before it", "at least");
    on_time.into_iter().chain(late).collect()
}

/// Events that the kernel could not keep.
fn lost(events: u64) -> Option<String> {
    (events > 0).then(|| format!("lost: {}", units::count(events, "kernel event")))
}

/// Why how late a wake-up was may be wrong: events that contradict each other, time that goes back,
/// CPUs of which events are missing.
fn doubts(misfits: u64, reversals: u64, silent: &[u32]) -> Vec<String> {
    let places = |count: u64| (count > 0).then(|| units::count(count, "place"));
    let misfits = places(misfits).map(|places| {
        format!(
            "its events contradict each other in {places}: others are missing, and nothing marks \
             them"
        )
    });
    let reversals = places(reversals)
        .map(|places| format!("its lines are not in the order of time in {places}: sort them"));
    let cpus = CpuList::new(silent.iter().copied());
    let silent = (!cpus.is_empty())
        .then(|| format!("it lacks events of CPU {cpus}: what ran there is not known"));
    [misfits, reversals, silent].into_iter().flatten().collect()
}

// Explains late wake-ups as they come, and keeps the worst of each cause with their windows.

/// Collects explained spikes: the table of causes, and the worst ones in full.
#[derive(Default)]
pub struct ExplanationGather {
    table: CauseTable,
    kept: Vec<(ExplainedSpike, Window)>,
    seen: u64,
}

impl ExplanationGather {
    /// A late wake-up that is explained. Times in the answer count from `origin_ns`. Returns
    /// whether a stack at the timer interrupt would help.
    pub fn add(&mut self, wake: &WakeUp, window: Window, origin_ns: u64) -> bool {
        let explanation = explain(wake, &window);
        self.explained(wake, window, explanation, origin_ns)
    }

    /// The same, explained already.
    pub fn explained(
        &mut self,
        wake: &WakeUp,
        window: Window,
        explanation: Explanation,
        origin_ns: u64,
    ) -> bool {
        self.seen += 1;
        let wants_stacks = explanation.wants_stacks();
        let added = self.table.add(&explanation);
        if let Some(number) = added.drop {
            self.kept.retain(|(spike, _)| spike.number != number);
        }
        if let Some(number) = added.keep {
            let at_ns = wake.due_ns.saturating_sub(origin_ns);
            self.kept.push((
                ExplainedSpike { number, at_ns, phase: String::new(), explanation },
                window,
            ));
        }
        wants_stacks
    }

    /// Late wake-ups of which there is no window.
    pub fn add_unexamined(&mut self, count: u64) {
        self.seen += count;
    }

    /// How many were late in all: those of which no window came are not examined.
    pub fn count_all(&mut self, late: u64) {
        self.seen = self.seen.max(late);
    }

    /// All of it. Numbers are given anew: 1 is the worst.
    pub fn finish(
        mut self,
        threshold_ns: u64,
        recorder: RecorderSummary,
        about: String,
    ) -> Explained {
        self.kept.sort_by_key(|(spike, _)| {
            (std::cmp::Reverse(spike.explanation.wake.latency_ns()), spike.at_ns)
        });
        let (mut worst, mut windows) = (Vec::<ExplainedSpike>::new(), Vec::new());
        for (number, (mut spike, window)) in (1..).zip(self.kept) {
            spike.number = number;
            worst.push(spike);
            windows.push((number, window));
        }
        // What a tracer kept counts however short it is.
        let least_ns = worst.iter().map(|spike| spike.explanation.wake.latency_ns()).min();
        let threshold_ns = least_ns
            .map_or(threshold_ns, |ns| threshold_ns.min(ns.saturating_sub(1) / 1_000 * 1_000));
        let summary = SpikeSummary { threshold_ns, seen: self.seen, ..SpikeSummary::default() };
        let spikes = gathered(&mut self.table, summary, recorder, worst);
        Explained {
            about,
            spikes,
            windows,
            notes: Vec::new(),
            no_wake_ups: false,
            gaps: Vec::new(),
            doubts: Vec::new(),
            locks: None,
            report: None,
        }
    }
}

// The spikes of a record.

/// Notes of records that were made from kernel events alone.
const LEAVE_OPEN: &[&str] = &["events-lost", "wake-ups-left-out", "wake-ups-unseen"];

/// Reads the explained spikes of a record.
///
/// # Errors
/// A file that is no record or was altered; a record without spikes, with the reason.
pub fn of_record(path: &Path) -> anyhow::Result<Explained> {
    let opened = open_whole(path)?;
    let report = Report::new(&opened.run, &integrity(&opened.state));
    let run = opened.run;
    let Some(spikes) = report.spikes.clone() else {
        anyhow::bail!(
            "{}: this record has no spikes: it was made before they were recorded, or with \
             --no-trace; measure again with rtproof prove",
            path.display()
        );
    };
    let leaves_open = |note: &&Note| LEAVE_OPEN.contains(&&*note.id);
    let gaps = run.notes.iter().filter(leaves_open).map(|note| note.text.clone()).collect();
    let kept = run.spikes.map(|spikes| spikes.kept).unwrap_or_default();
    let windows = kept.into_iter().map(|kept| (kept.number, kept.window)).collect();
    let about = format!("{}: {}", path.display(), run.meta.command.join(" "));
    Ok(Explained {
        about,
        spikes,
        windows,
        notes: Vec::new(),
        no_wake_ups: false,
        gaps,
        doubts: Vec::new(),
        locks: None,
        report: Some(Box::new(report)),
    })
}
