//! trace.dat files of others, and ours in the hands of `trace-cmd`: real captures read in place,
//! and recordings made here where that is allowed. What cannot be had is said, and fails under
//! `CI=true` where it is installed there.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::common::{capture, ignored};
use rtproof_trace::{
    Decoder, Event, EventData, Pages, RingPage, Window,
    dat::{Parts, TraceDat, is_monotonic, write, write_window},
    ftrace_text,
};
use tempfile::TempDir;

fn has_trace_cmd() -> bool {
    let is_there = Command::new("trace-cmd").arg("-h").output().is_ok();
    if !is_there {
        ignored("no trace-cmd: apt-get install trace-cmd", true);
    }
    is_there
}

/// When, where, who, what: of every event.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    at_ns: u64,
    cpu: u32,
    pid: i32,
    name: String,
}

/// What `trace-cmd report` makes of a file.
fn report(file: &Path) -> Vec<Line> {
    let output = Command::new("trace-cmd").args(["report", "-R", "-t", "-i"]).arg(file).output();
    let output = output.expect("trace-cmd runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<Line> = text.lines().filter_map(line).collect();
    lines.sort();
    lines
}

/// `  name-17 [002] 106439.675571123:  sched_switch:  fields`
fn line(line: &str) -> Option<Line> {
    let is_cpu = |at: &usize| {
        let cpu = line.as_bytes().get(at + 2..at + 6);
        cpu.is_some_and(|cpu| cpu[..3].iter().all(u8::is_ascii_digit) && cpu[3] == b']')
    };
    let at = line.match_indices(" [").map(|(at, _)| at).find(is_cpu)?;
    let pid = line[..at].trim_end().rsplit('-').next()?.parse().ok()?;
    let cpu = line[at + 2..at + 5].parse().ok()?;
    let mut words = line[at + 6..].split_whitespace();
    let (seconds, rest) = words.next()?.strip_suffix(':')?.split_once('.')?;
    assert_eq!(rest.len(), 9, "{line}");
    let at_ns = seconds.parse::<u64>().ok()? * 1_000_000_000 + rest.parse::<u64>().ok()?;
    Some(Line { at_ns, cpu, pid, name: words.next()?.trim_end_matches(':').to_owned() })
}

/// Every event of a file's main buffer, as we read it.
fn read(bytes: &[u8]) -> (Vec<Line>, Vec<Event>) {
    let dat = TraceDat::open(bytes).expect("a trace.dat");
    let decoder = Decoder::new(dat.formats()).with_strings(dat.strings().clone());
    let mut pages = dat.pages(dat.main_buffer().expect("events")).expect("its pages");
    let (mut lines, mut events, mut page) = (Vec::new(), Vec::new(), Vec::new());
    for cpu in pages.cpus().to_vec() {
        for index in 0..pages.count(cpu) {
            pages.read(cpu, index, &mut page).expect("a page");
            for raw in RingPage::parse(decoder.layout(), &page).expect("a page").records() {
                let raw = raw.expect("a record");
                let event = decoder.event(cpu, &raw);
                let name = dat.formats().event_name(raw.id).unwrap_or("?:?");
                let name = name.split(':').nth(1).unwrap_or(name).to_owned();
                lines.push(Line { at_ns: raw.at_ns, cpu, pid: event.pid, name });
                events.push(event);
            }
        }
    }
    lines.sort();
    (lines, events)
}

fn assert_same(ours: &[Line], theirs: &[Line]) {
    assert_eq!(ours.len(), theirs.len());
    let different = ours.iter().zip(theirs).find(|(ours, theirs)| ours != theirs);
    assert_eq!(different, None);
}

#[test]
fn a_real_capture_is_read_as_trace_cmd_reads_it() {
    let Some(path) = capture("trace-dat/trappy-raw_trace.dat") else { return };
    let bytes = fs::read(&path).expect("the capture");
    let dat = TraceDat::open(bytes.as_slice()).expect("a trace.dat");
    assert_eq!((dat.version(), dat.is_big_endian(), dat.long_bytes()), (6, false, 8));
    let stats = dat.stats();
    assert_eq!((stats.len(), stats.iter().map(|stat| stat.overrun).sum::<u64>()), (6, 0));
    let main = dat.main_buffer().expect("a buffer");
    assert_eq!((main.name.as_str(), main.clock.as_str()), ("", "local"));
    assert_eq!(main.cpus(), [0, 1, 2, 5]);
    let symbols = dat.symbols().expect("symbols");
    assert!(symbols.len() > 20_000, "{}", symbols.len());
    let (lines, events) = read(&bytes);
    let is_switch = |event: &&Event| matches!(event.what, EventData::Switch { .. });
    assert_eq!((lines.len(), events.iter().filter(is_switch).count()), (757, 755));
    if has_trace_cmd() {
        assert_same(&lines, &report(&path));
    }
}

/// A private instance of the kernel's tracing; gone at the end.
struct Instance(PathBuf);

impl Drop for Instance {
    fn drop(&mut self) {
        // trace-cmd may have taken it away.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Records some scheduling on this machine.
fn recorded(folder: &TempDir, name: &str) -> Option<PathBuf> {
    if !has_trace_cmd() {
        return None;
    }
    let instance = format!("rtproof-test-{}-{name}", std::process::id());
    let path = Path::new("/sys/kernel/tracing/instances").join(&instance);
    if let Err(error) = fs::create_dir(&path) {
        ignored(&format!("{}: {error}: needs root and tracefs", path.display()), false);
        return None;
    }
    let path = Instance(path);
    let set = |file: &str, value: &str| fs::write(path.0.join(file), value);
    let armed = set("trace_clock", "mono")
        .and_then(|()| set("buffer_size_kb", "512"))
        .and_then(|()| set("events/sched/enable", "1"))
        .and_then(|()| set("events/irq/enable", "1"))
        .and_then(|()| set("events/timer/enable", "1"))
        .and_then(|()| set("tracing_on", "1"));
    armed.expect("an instance takes its events");
    // Enough switches for many chunks; more than the ring holds is overwritten, which is as good.
    for _ in 0..50 {
        let status = Command::new("true").status();
        assert!(status.expect("true runs").success());
    }
    set("tracing_on", "0").expect("an instance stops");
    let text = fs::read(path.0.join("trace")).expect("the text");
    fs::write(folder.path().join(format!("{name}.txt")), text).expect("a file");
    let file = folder.path().join(format!("{name}.dat"));
    let mut command = Command::new("trace-cmd");
    command.args(["extract", "-B", &instance, "-o"]).arg(&file);
    let output = command.output().expect("trace-cmd runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(file)
}

fn converted(from: &Path, name: &str, options: &[&str]) -> PathBuf {
    let to = from.with_file_name(name);
    let mut command = Command::new("trace-cmd");
    command.arg("convert").args(options).arg("-i").arg(from).arg("-o").arg(&to);
    let output = command.output().expect("trace-cmd runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    to
}

#[test]
fn recordings_in_every_version_are_read_as_trace_cmd_reads_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(file) = recorded(&folder, "compressed") else { return };
    let theirs = report(&file);
    assert!(theirs.len() > 500, "{}", theirs.len());
    let listed = Command::new("trace-cmd").args(["list", "-c"]).output().expect("trace-cmd runs");
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut files = vec![
        file.clone(),
        converted(&file, "six.dat", &["--file-version", "6"]),
        converted(&file, "none.dat", &["--compression", "none"]),
    ];
    if listed.contains("zlib") {
        files.push(converted(&file, "zlib.dat", &["--compression", "zlib"]));
    }
    for file in files {
        let bytes = fs::read(&file).expect("a file");
        let (lines, _) = read(&bytes);
        assert_same(&lines, &theirs);
        let dat = TraceDat::open(bytes.as_slice()).expect("a trace.dat");
        let main = dat.main_buffer().expect("a buffer");
        assert!(main.name.starts_with("rtproof-test-"), "{}", main.name);
        // trace-cmd may report another clock than the one of the instance.
        let mut pages = dat.pages(main).expect("its pages");
        let is_mono = is_monotonic(&mut pages, &Decoder::new(dat.formats()));
        assert_eq!(is_mono.expect("pages"), Some(true));
        assert!(dat.symbols().expect("symbols").len() > 10_000);
        assert!(dat.comms().len() > 5 && dat.uname().is_some_and(|name| name.starts_with("Linux")));
        copy_is_the_same(&dat, &folder, &lines);
    }
}

/// Its pages in a file of ours: trace-cmd and we see the same events.
fn copy_is_the_same(dat: &TraceDat<&[u8]>, folder: &TempDir, lines: &[Line]) {
    let main = dat.main_buffer().expect("a buffer");
    let mut pages = dat.pages(main).expect("its pages");
    let ranges = pages.cpus().iter().map(|&cpu| (cpu, 0..pages.count(cpu))).collect();
    let mut bytes = Vec::new();
    let parts = Parts::of(dat, main.page_bytes, "mono");
    write(&parts, &mut pages, &ranges, &mut bytes).expect("memory takes everything");
    let file = folder.path().join("copy.dat");
    fs::write(&file, &bytes).expect("a file");
    assert_same(&read(&bytes).0, lines);
    assert_same(&report(&file), lines);
}

#[test]
fn a_window_of_a_recording_opens_in_trace_cmd() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(file) = recorded(&folder, "window") else { return };
    let bytes = fs::read(&file).expect("a file");
    let (_, mut events) = read(&bytes);
    events.retain(|event| !matches!(event.what, EventData::Other { .. }));
    assert!(events.len() > 300, "{}", events.len());
    events.sort_by_key(|event| (event.at_ns, event.cpu));
    let dat = TraceDat::open(bytes.as_slice()).expect("a trace.dat");
    let all = dat.symbols().expect("symbols");
    let mut symbols = BTreeMap::new();
    for event in &events {
        if let EventData::TimerExpire { function, .. } = event.what
            && let Some(name) = all.name(function)
        {
            symbols.insert(function, name);
        }
    }
    assert!(symbols.values().any(|name| name.contains("+0x0/")), "{symbols:?}");
    let window = Window { events, symbols: symbols.clone(), ..Window::default() };
    let file = folder.path().join("ours.dat");
    let mut bytes = Vec::new();
    write_window(&window, "mono", &mut bytes).expect("memory takes everything");
    fs::write(&file, &bytes).expect("a file");
    let (lines, mut again) = read(&bytes);
    again.sort_by_key(|event| (event.at_ns, event.cpu));
    assert!(again == window.events);
    assert_same(&lines, &report(&file));
    let output = Command::new("trace-cmd").args(["report", "-i"]).arg(&file).output();
    let output = output.expect("trace-cmd runs");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("sched_switch:") && text.contains(" ==> "), "{text}");
    for name in symbols.values() {
        let function = name.split('+').next().unwrap_or(name);
        assert!(text.contains(&format!("function={function}")), "no {function}");
    }
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(!complaints.contains("rror") && !complaints.contains("arn"), "{complaints}");
}

#[test]
fn the_text_of_a_recording_has_the_events_of_its_pages() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(file) = recorded(&folder, "text") else { return };
    let (_, mut pages) = read(&fs::read(&file).expect("a file"));
    let text = fs::read(file.with_extension("txt")).expect("a file");
    let trace = ftrace_text::parse(&String::from_utf8_lossy(&text)).expect("a trace");
    assert_eq!(trace.skipped.count, 0, "{:?}", trace.skipped);
    // Text has neither addresses nor nanoseconds.
    let plain = |events: &mut Vec<Event>| {
        events.retain(|event| {
            matches!(
                event.what,
                EventData::Switch { .. }
                    | EventData::Waking { .. }
                    | EventData::Wakeup { .. }
                    | EventData::Migrate { .. }
                    | EventData::IrqEntry { .. }
                    | EventData::IrqExit { .. }
                    | EventData::SoftirqRaise { .. }
                    | EventData::SoftirqEntry { .. }
                    | EventData::SoftirqExit { .. }
            )
        });
        // The kernel rounds to the nearest.
        events.iter_mut().for_each(|event| event.at_ns = 0);
        events.sort_by_key(|event| event.cpu);
    };
    let mut events = trace.events;
    // The letters do not show all bits.
    let known = rtproof_trace::event::flags::HARDIRQ | rtproof_trace::event::flags::SOFTIRQ;
    for event in pages.iter_mut().chain(&mut events) {
        event.flags &= known;
    }
    plain(&mut pages);
    plain(&mut events);
    assert!(pages.len() > 300, "{}", pages.len());
    assert_eq!(events.len(), pages.len());
    for (of_text, of_page) in events.iter().zip(&pages) {
        assert_eq!(of_text, of_page);
    }
}
