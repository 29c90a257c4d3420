//! The late wake-ups in a trace.dat of another tool: found in a first pass, their windows taken
//! in a second, so that memory does not grow with the file.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::Context;

use rtproof_judge::{causes, units};
use rtproof_trace::{
    Coverage, Decoder, Pages, Task, WakeUp, Window, WindowSize, around,
    coverage::RecordedKinds,
    dat::{self, DatSymbols, TraceDat},
    merge::Merge,
    scan::{Scanner, Subjects, ThreadTotals},
};

use super::file::OnDisk;
use super::{Explained, ExplanationGather};

/// Late wake-ups that are explained; more are counted. The latest ones stay.
const EXPLAINED_MAX: usize = 5_000;

/// Functions of timers that threads sleep on.
const SLEEPS: [&str; 3] = ["hrtimer_wakeup", "posix_timer_fn", "timerfd_tmrproc"];

/// Explains the late wake-ups of some threads.
///
/// # Errors
/// A torn or damaged file, with the place; no such thread in it.
pub fn of_trace_dat(
    path: &Path,
    file: OnDisk,
    subjects: &Subjects,
    over_ns: u64,
) -> anyhow::Result<Explained> {
    let at = || path.display().to_string();
    let trace = TraceDat::open(file).with_context(at)?;
    let Some(buffer) = trace.main_buffer() else {
        anyhow::bail!("{}: holds no events; was the recording stopped before it began?", at());
    };
    let (clock, buffer_name) = (buffer.clock.clone(), buffer.name.clone());
    let symbols = trace.symbols().with_context(at)?;
    let strings = trace.strings().iter().map(|(&address, &name)| (address, name));
    let decoder = Decoder::new(trace.formats()).with_strings(strings);
    let mut pages = trace.pages(buffer).with_context(at)?;
    // The name may be wrong: trace-cmd extract writes `local` for an instance on `mono`.
    let explained = dat::is_monotonic(&mut pages, &decoder).with_context(at)?;
    let is_mono = explained.unwrap_or(clock == "mono");
    let mut found = find(&mut pages, &trace, &decoder, &symbols, subjects, (over_ns, is_mono))
        .with_context(at)?;
    anyhow::ensure!(
        found.wakings > 0,
        "{}: no wake-up was recorded in it (sched_waking, sched_wakeup): it holds {}; record with \
         trace-cmd record -C mono -e sched -e irq -e irq_vectors -e timer -e power",
        at(),
        held(&trace, &found.ids)
    );
    anyhow::ensure!(
        !found.totals.is_empty(),
        "{}: none of the threads asked for is in it; the most awake are: {}",
        at(),
        busiest(trace.comms().values().map(ToString::to_string))
    );
    found.late.sort_by_key(|wake| std::cmp::Reverse(wake.latency_ns()));
    let mut gather = ExplanationGather::default();
    gather.add_unexamined(found.over.saturating_sub(found.late.len() as u64));
    let mut lost = 0;
    for wake in &found.late {
        let mut window =
            around::window(&mut pages, &decoder, wake, &WindowSize::default()).with_context(at)?;
        if let Some(tsc) = trace.tsc() {
            tsc.apply(&mut window);
        }
        name(&mut window, trace.comms(), &symbols);
        window.coverage = found.coverage.clone();
        lost += u64::from(!window.lost.is_empty());
        gather.add(wake, window, found.begin_ns);
    }
    let recorder = causes::RecorderSummary {
        missing: missing(&trace),
        lost_events: trace.stats().iter().map(|of| of.overrun + of.dropped).sum(),
        ..causes::RecorderSummary::default()
    };
    let mut notes: Vec<String> = trace.notes().to_vec();
    if !is_mono {
        notes.push(format!(
            "The clock of this trace is {clock}: when a timer was due is counted back from its \
             interrupt. Record with -C mono for exact times."
        ));
    }
    let without = found.coverage.without();
    if !without.is_empty() {
        notes.push(format!("Not recorded in it, or not completely: {without}."));
    }
    if lost > 0 {
        notes.push(format!("{lost} windows have lost events: their shares may be wrong."));
    }
    notes.extend(super::inferred(found.totals.iter()));
    let missing = found.missing;
    let doubts = super::doubts(found.misfits, 0, &found.silent_cpus);
    let wake_ups = found.totals.iter().map(|of| of.wake_ups).sum();
    let open = super::open_wake_ups(found.totals.iter()).into_iter();
    let open = open.chain(super::without_timers(&found.coverage, wake_ups)).chain(
        (missing > 0).then(|| format!("events are missing in {}", units::count(missing, "place"))),
    );
    let gaps = open.collect();
    let about = about(path, &buffer_name, &found);
    let explained = gather.finish(over_ns, recorder, about);
    let no_wake_ups = found.totals.iter().all(|of| of.wake_ups == 0) && explained.spikes.seen == 0;
    Ok(Explained { notes, no_wake_ups, gaps, doubts, ..explained })
}

/// What the first pass found.
struct Found {
    late: Vec<WakeUp>,
    over: u64,
    totals: Vec<ThreadTotals>,
    events: u64,
    wakings: u64,
    /// Places, after the first event of a CPU, where events were lost.
    missing: u64,
    begin_ns: u64,
    end_ns: u64,
    /// Events by their number.
    ids: BTreeMap<u16, u64>,
    coverage: Coverage,
    /// Events that contradict the one before them.
    misfits: u64,
    /// CPUs of which there is none.
    silent_cpus: Vec<u32>,
}

/// Events of one number that are looked at for what they show of their class: the first one of
/// an interrupt's may be of a device, a later one the timer's.
const EXAMINED: u64 = 1_000;

/// What a file holds: the most frequent events.
fn held(dat: &TraceDat<OnDisk>, ids: &BTreeMap<u16, u64>) -> String {
    let mut counts: Vec<(u64, u16)> = ids.iter().map(|(&id, &count)| (count, id)).collect();
    counts.sort_unstable_by(|a, b| b.cmp(a));
    let named = counts.iter().take(8).map(|&(count, id)| {
        let name = dat.formats().event_name(id).unwrap_or("unknown");
        format!("{} {name}", units::grouped(count))
    });
    let named: Vec<String> = named.collect();
    if named.is_empty() { "no event".into() } else { named.join(", ") }
}

fn find(
    pages: &mut dyn Pages,
    dat: &TraceDat<OnDisk>,
    decoder: &Decoder,
    symbols: &DatSymbols,
    subjects: &Subjects,
    (over_ns, is_mono): (u64, bool),
) -> anyhow::Result<Found> {
    let sleeps: Vec<u64> = SLEEPS.iter().filter_map(|name| symbols.address(name)).collect();
    let mut scanner = Scanner::new(subjects, over_ns, is_mono).with_sleep_functions(sleeps);
    let mut found = Found {
        late: Vec::new(),
        over: 0,
        totals: Vec::new(),
        events: 0,
        wakings: 0,
        missing: 0,
        begin_ns: 0,
        end_ns: 0,
        ids: BTreeMap::new(),
        coverage: Coverage::default(),
        misfits: 0,
        silent_cpus: Vec::new(),
    };
    let mut seen = RecordedKinds::default();
    let mut cpus = BTreeSet::new();
    let mut counts: Vec<u64> = Vec::new();
    let mut merge = Merge::new(pages, dat.formats().layout());
    while let Some(merged) = merge.next()? {
        if found.events == 0 {
            found.begin_ns = merged.raw.at_ns;
        }
        found.end_ns = merged.raw.at_ns;
        found.events += 1;
        let is_first = cpus.insert(merged.cpu);
        found.missing += u64::from(!is_first && merged.missed.is_some());
        let id = usize::from(merged.raw.id);
        if counts.len() <= id {
            counts.resize(id + 1, 0);
        }
        counts[id] += 1;
        if merged.missed.is_some() {
            seen.lose(merged.cpu);
        }
        seen.was_on(merged.cpu, merged.raw.at_ns);
        if counts[id] > EXAMINED {
            seen.choose();
        } else if decoder.knows(merged.raw.id) {
            seen.take(&decoder.event(merged.cpu, &merged.raw));
        }
        for wake in scanner.feed_merged(decoder, &merged) {
            found.over += 1;
            found.late.push(wake);
        }
        if found.late.len() >= 2 * EXPLAINED_MAX {
            found.late.sort_by_key(|wake| std::cmp::Reverse(wake.latency_ns()));
            found.late.truncate(EXPLAINED_MAX);
        }
    }
    found.late.sort_by_key(|wake| std::cmp::Reverse(wake.latency_ns()));
    found.late.truncate(EXPLAINED_MAX);
    found.wakings = scanner.wakings();
    found.coverage = seen.coverage();
    found.misfits = seen.misfits();
    found.silent_cpus = seen.silent_cpus();
    let ids = (0..=u16::MAX).zip(counts).filter(|(_, count)| *count > 0);
    found.ids = ids.collect();
    found.totals = scanner.totals().filter(|of| of.wake_ups + of.unseen > 0).copied().collect();
    Ok(found)
}

/// Names of tasks and addresses; policies are not in a trace.
fn name<C: ToString>(window: &mut Window, comms: &BTreeMap<i32, C>, symbols: &DatSymbols) {
    for tid in window.tids() {
        if let Some(comm) = comms.get(&tid) {
            window.tasks.insert(tid, Task { comm: comm.to_string(), ..Task::default() });
        }
    }
    let named = |address: u64| Some((address, symbols.name(address)?));
    window.symbols = window.addresses().into_iter().filter_map(named).collect();
}

/// Events that the explanation would use. Without a format and without a record looks the same in
/// the file; only formats are known here.
fn missing(dat: &TraceDat<OnDisk>) -> Vec<String> {
    let wanted = ["sched:sched_switch", "sched:sched_waking", "timer:hrtimer_expire_entry"];
    let lacks = wanted.iter().filter(|name| !dat.formats().has(name));
    lacks.map(|name| format!("{name}: this kernel does not have it")).collect()
}

fn busiest(names: impl Iterator<Item = String>) -> String {
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.dedup();
    let more = names.len().saturating_sub(12);
    names.truncate(12);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

fn about(path: &Path, buffer: &str, found: &Found) -> String {
    let wake_ups: u64 = found.totals.iter().map(|of| of.wake_ups).sum();
    let worst = found.totals.iter().filter_map(|of| of.worst).map(|w| w.latency_ns()).max();
    let of = if buffer.is_empty() { String::new() } else { format!(", buffer {buffer}") };
    format!(
        "{}{of}: {} events in {}, {} wake-ups of {} threads, worst {}",
        path.display(),
        units::grouped(found.events),
        units::duration(found.end_ns.saturating_sub(found.begin_ns)),
        units::grouped(wake_ups),
        found.totals.len(),
        worst.map_or_else(|| "unknown".into(), units::ns)
    )
}
