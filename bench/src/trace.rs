//! Reading a kernel trace: rtproof beside `trace-cmd report`, on the same file.
//!
//! The trace is recorded here and now, in an instance of its own: threads that wake each other
//! through pipes, as busily as the machine can, and one that sleeps, whose wake-ups are looked for.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufWriter, ErrorKind, Read, Write},
    os::unix::fs::FileExt,
    path::Path,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use rtproof_host::{
    CpuList, Root,
    tracefs::{Instance, RingSizes},
};
use rtproof_trace::{
    ByteOrder, Decoder, EventData, Formats, Merge, Pages, RingPage, Scanner, Subjects,
    dat::{self, Parts, ReadAt, TraceDat},
};

use crate::audit::{Ran, resident, time};
use crate::numbers::spread;

/// Events that the trace has at least.
const EVENTS_MIN: u64 = 2_500_000;
/// Longest time to record them.
const RECORD_MAX: Duration = Duration::from_secs(120);
/// Pairs of threads that wake each other.
const PAIRS: usize = 2;
/// Ring of each CPU, kilobytes.
const RING_KB: u64 = 8 << 10;
const ROUNDS: usize = 5;

/// What is made of the events.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum How {
    /// All wake-ups of real-time threads are found
    Scan,
    /// All events are decoded with all their fields
    Events,
}

/// Pages as they were recorded.
struct Recorded {
    cpus: Vec<u32>,
    page_bytes: usize,
    bytes: Vec<Vec<u8>>,
}

impl Pages for Recorded {
    fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    fn count(&self, cpu: u32) -> usize {
        let at = self.cpus.binary_search(&cpu);
        at.map_or(0, |at| self.bytes[at].len() / self.page_bytes)
    }

    fn read(&mut self, cpu: u32, index: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let bytes = self.cpus.binary_search(&cpu).ok().map(|at| &self.bytes[at]);
        let from = index * self.page_bytes;
        let page = bytes.and_then(|bytes| bytes.get(from..from + self.page_bytes));
        into.clear();
        into.extend_from_slice(page.ok_or(ErrorKind::InvalidInput)?);
        Ok(())
    }
}

/// Records, reads with both, prints the table.
pub(crate) fn run(out: &mut impl Write) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("trace.dat");
    let events = match record(&file) {
        Ok(events) => events,
        Err(error) => {
            writeln!(out, "Reading a kernel trace: left out: {error:#}\n")?;
            return Ok(());
        }
    };
    let path = file.to_str().context("the folder for temporary files is not UTF-8")?;
    let own = std::env::current_exe()?;
    let own = own.to_str().context("the path of the benchmark is not UTF-8")?;
    let words = |words: &[&str]| -> Vec<String> { words.iter().map(ToString::to_string).collect() };
    let mut commands = vec![
        ("rtproof: wake-ups of real-time threads", words(&[own, "read-trace", path, "scan"])),
        ("rtproof: all fields of all events", words(&[own, "read-trace", path, "events"])),
    ];
    if Command::new("trace-cmd").arg("--version").output().is_ok() {
        commands.push(("trace-cmd report", words(&["trace-cmd", "report", "-i", path])));
    }
    let mut runs: Vec<Vec<Ran>> = vec![Vec::new(); commands.len()];
    for round in 0..ROUNDS {
        for place in 0..commands.len() {
            let which = (place + round) % commands.len();
            runs[which].push(time(&commands[which].1)?);
        }
    }
    let megabytes = file.metadata()?.len() as f64 / 1e6;
    writeln!(
        out,
        "Reading a kernel trace of {events} events, {megabytes:.0} MB, on one core: median \
         (quartiles; range) of {ROUNDS} rounds\n"
    )?;
    writeln!(out, "| what | CPU, ms | million events a second | ratio of CPU | resident, KiB |")?;
    writeln!(out, "|---|---|---|---|---|")?;
    for (at, (name, command)) in commands.iter().enumerate() {
        let column = |of: &dyn Fn(usize) -> f64, decimals: usize| {
            let values = (0..ROUNDS).map(of).collect();
            spread(values).map_or("-".into(), |spread| spread.text(decimals))
        };
        let cpu = column(&|round| runs[at][round].cpu_ms, 0);
        let speed = column(&|round| events as f64 / runs[at][round].cpu_ms / 1e3, 2);
        let ratio = column(&|round| runs[at][round].cpu_ms / runs[0][round].cpu_ms, 1);
        let memory = resident(command).unwrap_or_else(|| "?".into());
        writeln!(out, "| {name} | {cpu} | {speed} | {ratio} | {memory} |")?;
    }
    writeln!(out)?;
    Ok(())
}

/// Records a trace into a file. How many events it has.
fn record(file: &Path) -> anyhow::Result<u64> {
    let root = Root::live();
    let cpus: CpuList = rtproof_host::Facts::read(&root)
        .cpus
        .online
        .value()
        .cloned()
        .context("the machine does not say which CPUs it has")?;
    let none = CpuList::default();
    let rings = RingSizes { measured: cpus, measured_kb: RING_KB, others: none, others_kb: 0 };
    let instance = Instance::create(&root, &rings)?;
    let mut formats = Formats::new(&instance.header("header_page")?, ByteOrder::native())?;
    formats.set_header_event(&instance.header("header_event")?);
    for (system, text) in instance.formats()? {
        formats.add(system, &text)?;
    }
    let stop = AtomicBool::new(false);
    instance.set_on(true)?;
    let (mut recorded, events) = thread::scope(|scope| {
        let started = load(scope, &stop);
        let recorded = started.and_then(|()| drain(&instance, &formats));
        stop.store(true, Ordering::Relaxed);
        recorded
    })?;
    instance.set_on(false)?;
    let ranges = recorded.cpus.clone().into_iter().map(|cpu| (cpu, 0..recorded.count(cpu)));
    let ranges: BTreeMap<_, _> = ranges.collect();
    let parts = Parts {
        formats: &formats,
        page_bytes: u32::try_from(formats.sub_buffer_bytes())?,
        symbols: None,
        comms: BTreeMap::new(),
        clock: "mono",
        uname: None,
    };
    #[expect(clippy::disallowed_methods, reason = "a file of the benchmark's own")]
    let mut out = BufWriter::new(File::create(file)?);
    dat::write(&parts, &mut recorded, &ranges, &mut out)?;
    out.flush()?;
    Ok(events)
}

/// Threads that wake each other until the stop flag is set, and one that sleeps.
fn load<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    stop: &'scope AtomicBool,
) -> anyhow::Result<()> {
    for _ in 0..PAIRS {
        let ((mut from_a, mut to_b), (mut from_b, mut to_a)) = (io::pipe()?, io::pipe()?);
        // Both ends close when their thread ends: none waits for ever.
        scope.spawn(move || {
            let mut byte = [0];
            while !stop.load(Ordering::Relaxed)
                && to_b.write_all(&byte).is_ok()
                && from_b.read_exact(&mut byte).is_ok()
            {}
        });
        scope.spawn(move || {
            let mut byte = [0];
            while from_a.read_exact(&mut byte).is_ok() && to_a.write_all(&byte).is_ok() {}
        });
    }
    scope.spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_micros(500));
        }
    });
    Ok(())
}

/// Reads the rings until there are enough events.
fn drain(instance: &Instance, formats: &Formats) -> anyhow::Result<(Recorded, u64)> {
    let cpus = instance.cpus();
    let page_bytes = formats.sub_buffer_bytes();
    let pipes: Result<Vec<File>, _> = cpus.iter().map(|&cpu| instance.pipe(cpu)).collect();
    let mut pipes = pipes?;
    let mut bytes = vec![Vec::new(); cpus.len()];
    let mut page = vec![0; page_bytes];
    let (mut events, start) = (0, Instant::now());
    while events < EVENTS_MIN && start.elapsed() < RECORD_MAX {
        thread::sleep(Duration::from_millis(10));
        for (pipe, bytes) in pipes.iter_mut().zip(&mut bytes) {
            loop {
                page.fill(0);
                match pipe.read(&mut page) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.into()),
                }
                let parsed = RingPage::parse(formats.layout(), &page)?;
                events += parsed.records().count() as u64;
                let is_full = parsed.used_bytes(formats.layout()) > page_bytes / 2;
                bytes.extend_from_slice(&page);
                // What comes in while it is read would come in pages of an event or two.
                if !is_full {
                    break;
                }
            }
        }
    }
    Ok((Recorded { cpus, page_bytes, bytes }, events))
}

/// A file on disk.
struct OnDisk {
    file: File,
    length: u64,
}

impl ReadAt for OnDisk {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(&self.file, into, at)
    }
}

/// Reads a trace.dat and prints what was found.
#[expect(clippy::disallowed_methods, reason = "a file of the benchmark's own")]
pub(crate) fn read(out: &mut impl Write, file: &Path, how: How) -> anyhow::Result<()> {
    let file = File::open(file)?;
    let length = file.metadata()?.len();
    let dat = TraceDat::open(OnDisk { file, length })?;
    let buffer = dat.main_buffer().context("the trace has no events")?;
    let mut pages = dat.pages(buffer)?;
    let decoder = Decoder::new(dat.formats());
    let subjects = Subjects { all_real_time: true, ..Subjects::default() };
    let mut scanner = Scanner::new(&subjects, 0, true);
    let mut merge = Merge::new(&mut pages, decoder.layout());
    let (mut events, mut found) = (0_u64, 0_u64);
    while let Some(run) = merge.next_run()? {
        let cpu = run.cpu;
        if run.missed.is_some() {
            scanner.lost(cpu);
        }
        match how {
            How::Scan => {
                for raw in run {
                    events += 1;
                    found += scanner.feed(&decoder, cpu, &raw).count() as u64;
                }
            }
            How::Events => {
                for raw in run {
                    events += 1;
                    let event = decoder.event(cpu, &raw);
                    found += u64::from(!matches!(event.what, EventData::Other { .. }));
                }
            }
        }
    }
    writeln!(out, "{events} events, {found} found")?;
    Ok(())
}
