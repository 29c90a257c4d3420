//! Files that are to be explained: of which kind each is, and what is read of a text.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    os::unix::fs::FileExt,
    path::Path,
};

use anyhow::Context;

use rtproof_judge::{
    causes::{self, Explanation, Share, ShareRow, Span},
    units,
};
use rtproof_trace::{
    Coverage, WakeUp, WakeUpBasis, Window,
    dat::ReadAt,
    ftrace_text::{
        self, Finder, RtlaCpu, RtlaPart, TextEntry, TextError, TextTrace, Windows, parse_rtla,
    },
    scan::Subjects,
};

use super::{Explained, ExplanationGather};

/// A file that can be read anywhere.
#[derive(Debug)]
pub struct OnDisk {
    file: File,
    length: u64,
}

/// What a file is.
#[derive(Debug)]
pub enum InputKind {
    /// A record of rtproof.
    Record,
    TraceDat(OnDisk),
    /// A trace as text, or what rtla prints.
    Text(TextFile),
}

/// A text that is read more than once, without being held in memory.
#[derive(Debug)]
pub struct TextFile {
    file: OnDisk,
    /// Decoded from UTF-16.
    decoded: Option<String>,
}

/// Longest text in UTF-16, which is decoded whole.
const UTF16_BYTES_MAX: u64 = 64 << 20;

/// Bytes of the beginning read at once.
const START_BYTES: u64 = 1 << 20;

/// How SQLite files, trace.dat files and those of perf begin.
const SQLITE: &[u8] = b"SQLite format 3\0";

const TRACE_DAT: &[u8] = b"\x17\x08\x44tracing";

const PERF_DATA: &[u8] = b"PERFILE2";

impl InputKind {
    /// Looks into a file.
    ///
    /// # Errors
    /// A file that cannot be read, or is none of these.
    pub fn of(path: &Path) -> anyhow::Result<Self> {
        let cannot = || format!("{}: cannot be read", path.display());
        let no_file = || {
            format!(
                "{}: no regular file; give a record (*.rtproof), a trace.dat of trace-cmd, or a \
                 copy of the kernel's trace file",
                path.display()
            )
        };
        let file = rtproof_host::door::read(path).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory => {
                anyhow::Error::msg(no_file())
            }
            _ => anyhow::Error::new(error).context(cannot()),
        })?;
        let metadata = file.metadata().with_context(cannot)?;
        let on_disk = OnDisk { length: metadata.len(), file };
        let mut begins = [0; 16];
        let count = on_disk.read_at(0, &mut begins).with_context(cannot)?;
        let begins = &begins[..count];
        if begins.starts_with(SQLITE) {
            return Ok(Self::Record);
        }
        if begins.starts_with(TRACE_DAT) {
            return Ok(Self::TraceDat(on_disk));
        }
        anyhow::ensure!(
            !begins.starts_with(PERF_DATA),
            "{path}: data of perf: run `perf script -i {path} > FILE`, then `rtproof explain FILE`",
            path = path.display()
        );
        let utf16 = match begins {
            [0xff, 0xfe, ..] => Some(u16::from_le_bytes as fn([u8; 2]) -> u16),
            [0xfe, 0xff, ..] => Some(u16::from_be_bytes as fn([u8; 2]) -> u16),
            _ => None,
        };
        if let Some(unit) = utf16 {
            anyhow::ensure!(
                on_disk.length <= UTF16_BYTES_MAX,
                "{}: UTF-16 of {} bytes, {UTF16_BYTES_MAX} at most; convert it with iconv",
                path.display(),
                on_disk.length
            );
            let mut bytes = vec![0; usize::try_from(on_disk.length)?];
            on_disk.file.read_exact_at(&mut bytes, 0).with_context(cannot)?;
            let units: Vec<u16> =
                bytes[2..].chunks_exact(2).map(|pair| unit([pair[0], pair[1]])).collect();
            let decoded = Some(String::from_utf16_lossy(&units));
            return Ok(Self::Text(TextFile { file: on_disk, decoded }));
        }
        let mut start = vec![0; usize::try_from(on_disk.length.min(4096))?];
        on_disk.file.read_exact_at(&mut start, 0).with_context(cannot)?;
        anyhow::ensure!(
            !start.is_empty() && !start.contains(&0),
            "{}: not a record (*.rtproof), not a trace.dat of trace-cmd, and no text",
            path.display()
        );
        Ok(Self::Text(TextFile { file: on_disk, decoded: None }))
    }
}

impl TextFile {
    /// A text that was written just now.
    pub fn of(file: File) -> io::Result<Self> {
        let length = file.metadata()?.len();
        Ok(Self { file: OnDisk { file, length }, decoded: None })
    }

    /// Reads it from its beginning.
    pub fn open(&self) -> io::Result<Box<dyn BufRead + '_>> {
        Ok(match &self.decoded {
            Some(text) => Box::new(text.as_bytes()),
            None => {
                Box::new(BufReader::with_capacity(1 << 16, FromStart { of: &self.file, at: 0 }))
            }
        })
    }

    /// Its beginning, which would hold an analysis of rtla.
    pub fn start(&self) -> io::Result<String> {
        let mut bytes = Vec::new();
        self.open()?.take(START_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Reads a file from a place of its own.
struct FromStart<'a> {
    of: &'a OnDisk,
    at: u64,
}

impl Read for FromStart<'_> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let count = self.of.read_at(self.at, buf)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl ReadAt for OnDisk {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, at: u64, buf: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(&self.file, buf, at)
    }
}

// What rtla's own analysis says, as an explanation: its sums, and no event to check them with.

/// What makes each of them likely only.
const UNRECORDED: &str = "the events: rtla prints sums alone";

/// The wake-ups that rtla analysed; `None`: the text holds no analysis.
pub(super) fn of_rtla(text: &str) -> Option<Vec<(WakeUp, Window, Explanation)>> {
    let analysis = parse_rtla(text)?;
    Some(analysis.cpus.iter().filter_map(of_cpu).collect())
}

fn of_cpu(cpu: &RtlaCpu) -> Option<(WakeUp, Window, Explanation)> {
    // The last part, behind the rule, is the whole.
    let whole_ns = cpu.parts.last()?.ns?;
    let wake =
        WakeUp { tid: -1, cpu: cpu.cpu, due_ns: 0, ran_ns: whole_ns, how: WakeUpBasis::Measured };
    let mut shares = shares(cpu, whole_ns);
    let mut left_ns = whole_ns;
    for share in &mut shares {
        share.ns = share.ns.min(left_ns);
        left_ns -= share.ns;
    }
    if left_ns > 0 {
        let text = "rtla's parts do not sum to the latency".to_owned();
        shares.push(share("unexplained", "", left_ns, vec![text]));
    }
    shares.retain(|share| share.ns > 0);
    shares.sort_by_key(|share| std::cmp::Reverse(share.ns));
    let mut at_ns = 0;
    let spans = (0..).zip(&shares).map(|(number, share)| {
        at_ns += share.ns;
        Span { from_ns: at_ns - share.ns, to_ns: at_ns, share: number }
    });
    let spans = spans.collect();
    let explanation = Explanation {
        wake,
        task: format!("timerlat/{}", cpu.cpu),
        irq_ns: None,
        woken_ns: None,
        switched_ns: None,
        spans,
        shares: shares.into_iter().map(Share::from).collect(),
        incomplete: vec!["rtla's analysis holds sums, not events: their order is not known".into()],
        wakers: Vec::new(),
    };
    let window =
        Window { cpu: cpu.cpu, to_ns: whole_ns, coverage: Coverage::none(), ..Window::default() };
    Some((wake, window, explanation))
}

fn shares(cpu: &RtlaCpu, whole_ns: u64) -> Vec<ShareRow> {
    let ns = |name: &str| cpu.part(name).and_then(|part| part.ns).unwrap_or(0);
    let who = |part: &RtlaPart| -> String {
        let names = part.tasks.iter().map(|(name, id, _)| format!("{name}:{id}"));
        names.collect::<Vec<_>>().join(", ")
    };
    let blocking = cpu.part("Blocking thread");
    let blocker = blocking.map(&who).unwrap_or_default();
    let stack = kernel_stack(&cpu.stack);
    let function = stack.first().map(|function| format!("{function} in ")).unwrap_or_default();
    let stack = (!stack.is_empty()).then(|| stack.join(" ← "));
    let stops_at_irq = cpu.part("Thread latency").is_none();
    let mut shares = Vec::new();
    let irq_ns = if stops_at_irq { whole_ns } else { ns("IRQ latency") };
    let delay = cpu.part("IRQ handler delay");
    let is_idle = delay
        .and_then(|delay| delay.remark.as_deref())
        .is_some_and(|remark| remark.contains("idle"));
    if is_idle {
        shares.push(share("idle-exit", "", irq_ns, Vec::new()));
    } else if irq_ns > 0 {
        let mut late = share(
            "irqs-off",
            &format!("{function}{blocker}"),
            irq_ns,
            stack.clone().into_iter().collect(),
        );
        late.alternatives = vec!["stall".into(), "masked".into()];
        shares.push(late);
    }
    shares.push(share("timer-work", "timerlat", ns("Timerlat IRQ duration"), Vec::new()));
    if !stops_at_irq {
        let held_ns = blocking.and_then(|part| part.ns).unwrap_or(0);
        let culprit = format!("{function}{blocker}");
        shares.push(share("preempt-off", &culprit, held_ns, stack.into_iter().collect()));
    }
    for (name, cause) in [
        ("NMI interference", "nmi"),
        ("IRQ interference", "irq"),
        ("Softirq interference", "softirq"),
        ("Thread interference", "preempted"),
    ] {
        let Some(part) = cpu.part(name) else { continue };
        let named_ns: u64 = part.tasks.iter().filter_map(|(_, _, ns)| *ns).sum();
        for (name, id, ns) in &part.tasks {
            shares.push(share(cause, &format!("{name}:{id}"), ns.unwrap_or(0), Vec::new()));
        }
        let rest_ns = part.ns.unwrap_or(0).saturating_sub(named_ns);
        shares.push(share(cause, "", rest_ns, Vec::new()));
    }
    shares
}

/// The functions that the timer interrupt interrupted: those below its entry.
fn kernel_stack(stack: &[String]) -> Vec<String> {
    let is_entry = |name: &String| name.starts_with("asm_") || name.ends_with("_irq");
    let below = stack.iter().rposition(is_entry).map_or(0, |at| at + 1);
    stack[below..].to_vec()
}

fn share(cause: &str, culprit: &str, ns: u64, detail: Vec<String>) -> ShareRow {
    let checks = causes::find(cause).map(|cause| cause.checks).unwrap_or_default();
    ShareRow {
        cause: cause.into(),
        culprit: culprit.into(),
        ns,
        unrecorded: vec![UNRECORDED.into()],
        detail,
        checks: checks.iter().map(ToString::to_string).collect(),
        ..ShareRow::default()
    }
}

// Late wake-ups in a text: the kernel's `trace` file in every form, trace-cmd report, perf script,
// and what rtla prints.

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
    let analysis = of_rtla(&text.start().with_context(at)?);
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
    let mut gather = ExplanationGather::default();
    let mut notes = Vec::new();
    for (wake, window, explanation) in analysis.into_iter().flatten() {
        gather.explained(&wake, window, explanation, 0);
    }
    let (mut late, mut all, mut open, mut doubts) = (Vec::new(), 0, Vec::new(), Vec::new());
    for (trace, finder) in traces.iter().zip(finders) {
        let wake_ups = finder.wake_ups();
        all += wake_ups;
        open.extend(hidden_wake_ups(trace, &finder));
        doubts.extend(super::doubts(trace.misfits, trace.reversals, &trace.silent_cpus));
        notes.extend(super::inferred(finder.totals()));
        let (found, count) = finder.finish(trace.subject, trace.count, trace.end_ns);
        gather.add_unexamined(count.saturating_sub(found.len() as u64));
        notes_of(trace, &found, wake_ups, &mut notes);
        late.push(found);
    }
    if late.iter().any(|late| !late.is_empty()) {
        windows(&mut *text.open().with_context(at)?, &traces, late, &mut gather)?;
    }
    let about = format!("{}: {}", path.display(), about(&traces));
    let gathered = gather.finish(over_ns, causes::RecorderSummary::default(), about);
    let no_wake_ups = all == 0 && gathered.spikes.seen == 0;
    Ok(Explained { notes, no_wake_ups, gaps: open, doubts, ..gathered })
}

/// Where it may hide wake-ups.
fn hidden_wake_ups(trace: &TextTrace, finder: &Finder) -> Vec<String> {
    let cut = trace.entries.filter(|(said, read)| read < said);
    let cut = cut.map(|(said, read)| format!("its header says {said} entries, {read} are here"));
    let skipped = trace.skipped.count;
    // A few are what people write round a trace.
    let skipped = (skipped > trace.count / 10)
        .then(|| format!("not understood: {}", units::count(skipped, "line")));
    // Events overwritten before a CPU's first one are before the trace.
    let lost = trace.lost.iter().filter(|(_, lost)| lost.from_ns > 0).count();
    let lost = (lost > 0).then(|| format!("events are missing in {}", units::count(lost, "place")));
    let lossy = trace.is_lossy.then(|| "perf says that it lost events, not which".to_owned());
    let timers = super::without_timers(&trace.coverage, finder.wake_ups());
    let marked = trace.marked_ns.map(|ns| {
        format!("its own mark says that a wake-up was {} late, over the limit", units::ns(ns))
    });
    let unseen = super::open_wake_ups(finder.totals()).into_iter();
    unseen.chain(marked).chain(timers).chain(lost).chain(lossy).chain(cut).chain(skipped).collect()
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
    gather: &mut ExplanationGather,
) -> anyhow::Result<()> {
    let begin_ns = late.iter().flatten().map(|wake| wake.due_ns).min().unwrap_or(0);
    let mut all: Vec<Windows<'_>> =
        traces.iter().zip(late).map(|(trace, late)| Windows::new(trace, late)).collect();
    let mut found = |wake: &WakeUp, window| {
        gather.add(wake, window, begin_ns);
    };
    ftrace_text::read(text, &mut |trace, entry| {
        if let (Some(windows), TextEntry::Event(event, _)) = (all.get_mut(trace), entry) {
            windows.take(event, &mut found);
        }
    })?;
    let left: Vec<u64> = all.into_iter().map(|windows| windows.finish(&mut found)).collect();
    left.into_iter().for_each(|count| gather.add_unexamined(count));
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
fn notes_of(trace: &TextTrace, late: &[WakeUp], wake_ups: u64, notes: &mut Vec<String>) {
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
        notes.push(if trace.tracer == "hwlat" {
            "hwlat found no gap above its own threshold, which the text does not say.".into()
        } else if wake_ups == 0 {
            format!(
                "It holds {} events and no wake-up of these threads (sched_waking with \
                 sched_switch, or timerlat): whether one was late cannot be seen in it.",
                trace.count
            )
        } else {
            format!(
                "It holds {} events and {} of these threads.",
                trace.count,
                units::count(wake_ups, "wake-up")
            )
        });
    }
}
