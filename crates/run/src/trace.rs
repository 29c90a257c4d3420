//! `rtproof trace`: drives one of the kernel's own tracers and explains what it kept.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Context;

use rtproof_host::{
    CpuList, Facts, Root,
    door::usage,
    tracefs::{self, Keeps, Known, Tracer, TracerRequest, WANTED},
};
use rtproof_judge::units;
use rtproof_trace::scan::Subjects;

use crate::explain::{self, Explained, TextFile};
use crate::prove::Signals;

/// Interval between reads of the trace.
const POLL: Duration = Duration::from_millis(20);

/// Text that is kept; it is in memory until it is explained.
const TEXT_BYTES_MAX: u64 = 128 << 20;

/// Latencies whose traces are kept, of tracers that keep the longest.
const KEPT_MAX: usize = 32;

/// Size of the ring of a CPU, kilobytes.
const RING_KB: u64 = 4096;

/// Of all CPUs together.
const RINGS_KB_MAX: u64 = 128 << 10;

/// Times and tasks in the lines of function_graph: without them nothing can be explained.
const GRAPH_OPTIONS: &[(&str, &str)] = &[("funcgraph-abstime", "1"), ("funcgraph-proc", "1")];

/// What timerlat and osnoise say of interrupts and tasks.
const NOISE: &[&str] = &[
    "osnoise:irq_noise",
    "osnoise:nmi_noise",
    "osnoise:softirq_noise",
    "osnoise:thread_noise",
    "osnoise:sample_threshold",
];

/// `probe_wakeup` in kernel/trace/trace_sched_wakeup.c.
const NOT_FOLLOWED: &str = "The kernel follows one wake-up at a time here, and none while a task \
                            of the same or a higher priority runs: such a delay is not seen.";

/// What `rtproof trace` records.
#[derive(Clone, Debug)]
pub struct TraceOptions {
    pub tracer: &'static Known,
    pub duration_ns: u64,
    pub over_ns: u64,
    /// On these CPUs, as the user wrote them; `None`: all.
    pub cpus: Option<String>,
    /// Whether tracers of latencies record the calls of functions.
    pub functions: bool,
    /// Functions that are traced; none: all.
    pub only: Vec<String>,
    /// Threads of this name; `None`: all of real-time priority.
    pub task: Option<String>,
    /// Where the text is kept.
    pub out: Option<PathBuf>,
}

/// What came of it.
#[derive(Debug)]
pub struct Traced {
    /// What was late, explained.
    pub explained: Explained,
    /// The longest that was seen, late or not.
    pub longest_ns: Option<u64>,
    /// Events that the kernel overwrote or left out.
    pub lost_events: u64,
    /// For how long it was traced.
    pub traced_ns: u64,
}

/// Traces for a while, or until a signal comes.
///
/// # Errors
/// Options that do not fit (usage); a kernel that lacks the tracer; another user who runs it.
pub fn trace(options: &TraceOptions) -> anyhow::Result<Traced> {
    let root = Root::live();
    let facts = Facts::read(&root);
    let cpus = cpus(options, &facts)?;
    fits(options)?;
    if let Some(out) = &options.out {
        rtproof_host::door::try_new(out)
            .with_context(|| format!("{}: cannot be written", out.display()))?;
    }
    let signals = Signals::catch(&root).context("cannot catch signals")?;
    let tracer = Tracer::start(&root, &request(options, &cpus, &root))?;
    let mut run = Run::new(options, tracer)?;
    let start = Instant::now();
    let duration = Duration::from_nanos(options.duration_ns);
    while start.elapsed() < duration && signals.received().is_none() && !run.is_full() {
        std::thread::sleep(POLL.min(duration.saturating_sub(start.elapsed())));
        run.poll()?;
    }
    let traced_ns = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let ended = run.end(traced_ns)?;
    if let Some(out) = &options.out {
        ended.keep(out).with_context(|| format!("{}: cannot be written", out.display()))?;
    }
    // All is put back, and many late wake-ups take long to explain.
    signals.end_at_once();
    ended.explain(options, &cpus)
}

fn cpus(options: &TraceOptions, facts: &Facts) -> anyhow::Result<CpuList> {
    match &options.cpus {
        Some(text) => crate::online_cpus(text, "--cpus", facts),
        None => facts.cpus.online.value().cloned().context("the CPUs that are online are unknown"),
    }
}

fn fits(options: &TraceOptions) -> anyhow::Result<()> {
    let Known { name, keeps, .. } = options.tracer;
    if !options.only.is_empty() && *keeps != Keeps::Last {
        return Err(usage(format!("--only is for function and function_graph, not for {name}")));
    }
    if !options.functions && *keeps != Keeps::Longest {
        let which = "wakeup, wakeup_rt, wakeup_dl, irqsoff, preemptoff and preemptirqsoff";
        return Err(usage(format!("--no-functions is for {which}, not for {name}")));
    }
    let tracers = ["nop", "function", "function_graph"];
    if options.task.is_some() && !tracers.contains(name) {
        return Err(usage(format!("--task is for {}; {name} decides itself", tracers.join(", "))));
    }
    if *name == "hwlat" && options.over_ns < 1_000 {
        return Err(usage("--over: hwlat measures whole microseconds; write 1us or more"));
    }
    Ok(())
}

/// How the tracer is set up.
fn request(options: &TraceOptions, cpus: &CpuList, root: &Root) -> TracerRequest {
    let name = options.tracer.name;
    let shared = match name {
        // Everything above a microsecond is a line: the longest is known where nothing is late.
        "hwlat" => vec![("tracing_thresh", "1".to_owned())],
        "osnoise" | "timerlat" => {
            let mut shared = vec![
                ("osnoise/stop_tracing_us", "0".to_owned()),
                ("osnoise/stop_tracing_total_us", "0".to_owned()),
                ("osnoise/cpus", cpus.to_string()),
            ];
            if name == "osnoise" {
                shared.push(("tracing_thresh", "1".to_owned()));
            }
            shared
        }
        _ => Vec::new(),
    };
    let mut own = Vec::new();
    if options.tracer.keeps == Keeps::Longest {
        let functions = if options.functions { "1" } else { "0" };
        own.push(("options/function-trace", functions.to_owned()));
    }
    if !options.only.is_empty() {
        own.push(("set_ftrace_filter", options.only.join(" ")));
    }
    let count = u64::try_from(cpus.len().max(1)).unwrap_or(1);
    TracerRequest {
        tracer: name,
        cpus: cpus.clone(),
        ring_kb: RING_KB.min(RINGS_KB_MAX / count).max(64),
        shared,
        options: if name == "function_graph" { GRAPH_OPTIONS } else { &[] },
        own,
        events: events(name).filter(|event| tracefs::has_event(root, event)).collect(),
    }
}

/// Events in addition to the tracer that explain its output.
fn events(tracer: &str) -> impl Iterator<Item = &'static str> {
    let (wanted, noise): (&[_], &[_]) = match tracer {
        "nop" | "function" | "function_graph" => (WANTED, &[]),
        "osnoise" | "timerlat" => (&[], NOISE),
        _ => (&[], &[]),
    };
    wanted.iter().flat_map(|wanted| wanted.events).chain(noise).copied()
}

/// A trace that goes on.
struct Run<'a> {
    options: &'a TraceOptions,
    tracer: Tracer,
    /// Its lines as they come.
    pipe: Option<File>,
    text: Text,
    /// Latencies whose traces are in the text.
    kept: usize,
    longest_us: u64,
    /// How long the tracer was stopped to be read.
    stopped_for: Duration,
}

impl<'a> Run<'a> {
    fn new(options: &'a TraceOptions, tracer: Tracer) -> anyhow::Result<Self> {
        let mut text = Text::new()?;
        let mut pipe = None;
        if options.tracer.keeps == Keeps::Lines {
            text.header(options.tracer.name, tracer.text()?)?;
            pipe = Some(tracer.all_lines()?);
        }
        let (kept, longest_us, stopped_for) = (0, 0, Duration::ZERO);
        Ok(Self { options, tracer, pipe, text, kept, longest_us, stopped_for })
    }

    fn is_full(&self) -> bool {
        self.text.is_full()
    }

    /// Takes what there is.
    fn poll(&mut self) -> anyhow::Result<()> {
        if let Some(pipe) = &mut self.pipe {
            return Ok(self.text.take_lines(pipe)?);
        }
        if self.options.tracer.keeps != Keeps::Longest || self.kept >= KEPT_MAX {
            return Ok(());
        }
        let longest_us = self.tracer.longest_us()?;
        self.longest_us = self.longest_us.max(longest_us);
        if longest_us.saturating_mul(1_000) <= self.options.over_ns {
            return Ok(());
        }
        // The buffers of the longest one and of what goes on are swapped under a reader.
        let start = Instant::now();
        self.tracer.set_on(false)?;
        self.longest_us = self.longest_us.max(self.tracer.longest_us()?);
        self.text.take(&mut self.tracer.text()?)?;
        self.kept += 1;
        self.tracer.forget_longest()?;
        self.tracer.set_on(true)?;
        self.stopped_for += start.elapsed();
        Ok(())
    }

    /// Ends the tracer, with everything put back.
    fn end(mut self, traced_ns: u64) -> anyhow::Result<Ended> {
        self.tracer.set_on(false)?;
        let lost = |stats: tracefs::RingStats| stats.overrun + stats.commit_overrun + stats.dropped;
        let mut lost_events = 0;
        match self.options.tracer.keeps {
            Keeps::Longest => {
                let longest_us = self.tracer.longest_us()?;
                let is_new = longest_us.saturating_mul(1_000) > self.options.over_ns;
                self.longest_us = self.longest_us.max(longest_us);
                if longest_us > 0 && (is_new || self.kept == 0) {
                    self.text.take(&mut self.tracer.text()?)?;
                    self.kept += 1;
                }
            }
            Keeps::Last => self.text.take(&mut self.tracer.text()?)?,
            Keeps::Lines => self.poll()?,
        }
        if self.options.tracer.keeps != Keeps::Longest {
            let stats = self.tracer.all_stats().filter_map(|(_, stats)| stats.into_value());
            lost_events = stats.map(lost).sum();
        }
        let mut notes = Vec::new();
        if self.tracer.is_global() {
            notes.push(format!(
                "This kernel runs {} for the whole machine, in no instance.",
                self.options.tracer.name
            ));
        }
        if self.options.tracer.name.starts_with("wakeup") {
            notes.push(NOT_FOLLOWED.to_owned());
        }
        if !self.stopped_for.is_zero() {
            let blind_ns = u64::try_from(self.stopped_for.as_nanos()).unwrap_or(u64::MAX);
            notes.push(format!(
                "The tracer was stopped for {} in all while what it had kept was read.",
                units::duration(blind_ns)
            ));
        }
        if self.kept >= KEPT_MAX {
            notes.push(format!(
                "{KEPT_MAX} latencies were kept; of those after them the longest alone."
            ));
        }
        if self.text.is_full() {
            notes.push(format!("The text reached {} MiB: no more was kept.", TEXT_BYTES_MAX >> 20));
        }
        // A reader would keep the instance.
        drop(self.pipe.take());
        notes.extend(self.tracer.end());
        let longest_ns = match self.options.tracer.keeps {
            Keeps::Longest => Some(self.longest_us.saturating_mul(1_000)).filter(|ns| *ns > 0),
            _ => None,
        };
        Ok(Ended { text: self.text, notes, longest_ns, lost_events, traced_ns })
    }
}

/// The text of a trace, in memory.
struct Text {
    file: File,
    bytes: u64,
}

impl Text {
    fn new() -> anyhow::Result<Self> {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let file =
            rustix::fs::memfd_create("rtproof-trace", flags).context("memory for the text")?;
        Ok(Self { file: file.into(), bytes: 0 })
    }

    fn is_full(&self) -> bool {
        self.bytes >= TEXT_BYTES_MAX
    }

    /// The lines of a trace that say what its columns are.
    fn header(&mut self, tracer: &str, of: File) -> io::Result<()> {
        let mut text = String::new();
        for line in BufReader::new(of).lines() {
            let line = line?;
            if !line.starts_with('#') {
                break;
            }
            // How many entries there are is not known yet.
            if !line.contains("entries-in-buffer") {
                text += &line;
                text.push('\n');
            }
        }
        if text.is_empty() {
            text = format!("# tracer: {tracer}\n#\n");
        }
        self.bytes += text.len() as u64;
        self.file.write_all(text.as_bytes())
    }

    fn take(&mut self, of: &mut File) -> io::Result<()> {
        let left = TEXT_BYTES_MAX.saturating_sub(self.bytes);
        self.bytes += io::copy(&mut of.take(left), &mut self.file)?;
        Ok(())
    }

    /// What is there of a pipe.
    fn take_lines(&mut self, pipe: &mut File) -> io::Result<()> {
        let mut buffer = vec![0; 64 << 10];
        while !self.is_full() {
            match pipe.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    self.bytes += count as u64;
                    self.file.write_all(&buffer[..count])?;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A trace that has ended.
struct Ended {
    text: Text,
    notes: Vec<String>,
    longest_ns: Option<u64>,
    lost_events: u64,
    traced_ns: u64,
}

impl Ended {
    /// Writes the text where the user wants it.
    fn keep(&self, out: &Path) -> anyhow::Result<()> {
        let mut text = self.text.file.try_clone()?;
        text.seek(SeekFrom::Start(0))?;
        rtproof_host::door::write_whole(out, |to| Ok(io::copy(&mut text, to).map(drop)?))
    }

    fn explain(mut self, options: &TraceOptions, cpus: &CpuList) -> anyhow::Result<Traced> {
        let subjects = Subjects {
            comms: options.task.iter().cloned().collect(),
            all_real_time: options.task.is_none(),
            ..Subjects::default()
        };
        let name = options.tracer.name;
        let text = TextFile::of(self.text.file)?;
        let text = match name {
            "hwlat" => {
                let (late, longest_ns) = gaps(&text, options.over_ns)?;
                self.longest_ns = longest_ns;
                late
            }
            _ => text,
        };
        let mut explained = explain::of_trace(Path::new(name), &text, &subjects, options.over_ns)?;
        if options.tracer.keeps != Keeps::Longest && name != "hwlat" {
            self.longest_ns = explain::longest(&text, &subjects)?;
        }
        if options.tracer.keeps == Keeps::Longest || name == "hwlat" {
            // The kernel measures that itself.
            explained.gaps.clear();
            explained.doubts.clear();
        }
        explained.no_wake_ups = self.longest_ns.is_none() && name != "hwlat";
        if self.lost_events > 0 {
            self.notes.push(lost(options.tracer, self.lost_events));
        }
        explained.about = format!(
            "{name} for {} on CPUs {cpus}: {}",
            units::duration(self.traced_ns),
            match self.longest_ns {
                Some(ns) => format!("the longest {}", units::ns(ns)),
                None => "no latency seen".into(),
            }
        );
        self.notes.append(&mut explained.notes);
        explained.notes = self.notes;
        let (lost_events, traced_ns) = (self.lost_events, self.traced_ns);
        Ok(Traced { explained, longest_ns: self.longest_ns, lost_events, traced_ns })
    }
}

/// The lines of hwlat with a gap above the threshold, the kernel's own was lower; and the longest.
fn gaps(text: &TextFile, over_ns: u64) -> anyhow::Result<(TextFile, Option<u64>)> {
    let mut late = Text::new()?;
    let mut longest_ns = None;
    for line in text.open()?.lines() {
        let line = line?;
        let long_ns = gap_ns(&line);
        longest_ns = longest_ns.max(long_ns);
        if long_ns.is_none_or(|ns| ns > over_ns) {
            writeln!(late.file, "{line}")?;
        }
    }
    Ok((TextFile::of(late.file)?, longest_ns))
}

/// The gap of a line of hwlat: `#1 inner/outer(us):   11/12    ts:1581527483.343962693`.
fn gap_ns(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("inner/outer(us):")?;
    let (inner, rest) = rest.split_once('/')?;
    let us = |text: &str| text.trim().parse::<u64>().ok();
    let outer_us = us(rest.split_whitespace().next()?)?;
    us(inner)?.max(outer_us).checked_mul(1_000)
}

fn lost(tracer: &Known, events: u64) -> String {
    let events = units::grouped(events);
    match tracer.keeps {
        Keeps::Last => format!(
            "The rings keep the last calls: {events} older events were overwritten, and what was \
             late before is not known. --only traces fewer functions."
        ),
        _ => format!("The kernel lost {events} events: what was late among them is not known."),
    }
}

#[cfg(test)]
mod tests {
    use rtproof_host::tracefs;

    use super::*;

    fn options(tracer: &str) -> TraceOptions {
        TraceOptions {
            tracer: tracefs::find_tracer(tracer).unwrap(),
            duration_ns: 1,
            over_ns: 100_000,
            cpus: None,
            functions: true,
            only: Vec::new(),
            task: None,
            out: None,
        }
    }

    #[test]
    fn options_of_other_tracers_are_usage_errors() {
        assert!(fits(&options("wakeup_rt")).is_ok());
        let only = vec!["schedule".to_owned()];
        assert!(fits(&TraceOptions { only: only.clone(), ..options("wakeup_rt") }).is_err());
        assert!(fits(&TraceOptions { only, ..options("function") }).is_ok());
        assert!(fits(&TraceOptions { functions: false, ..options("nop") }).is_err());
        assert!(fits(&TraceOptions { task: Some("x".into()), ..options("timerlat") }).is_err());
        assert!(fits(&TraceOptions { over_ns: 999, ..options("hwlat") }).is_err());
    }

    #[test]
    fn the_rings_of_many_cpus_are_bounded() {
        let request = |count| {
            let cpus = CpuList::new(0..count);
            request(&options("wakeup_rt"), &cpus, &Root::live())
        };
        assert_eq!(request(2).ring_kb, RING_KB);
        assert_eq!(request(1024).ring_kb * 1024, RINGS_KB_MAX);
        assert_eq!(request(2).own, [("options/function-trace", "1".to_owned())]);
    }

    #[test]
    fn gaps_of_hwlat_are_read() {
        let line = "<...>-1729 [001] d... 678.4: #1 inner/outer(us):   11/12    ts:1581.3 count:6";
        assert_eq!(gap_ns(line), Some(12_000));
        assert_eq!(gap_ns("# tracer: hwlat"), None);
        assert_eq!(gap_ns("inner/outer(us): x/1 ts"), None);
    }
}
