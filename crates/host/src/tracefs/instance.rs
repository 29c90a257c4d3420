//! One instance: made, set up, read, removed.

#![expect(clippy::disallowed_methods, reason = "files of tracefs, of the live machine only")]

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use rustix::{fs::OFlags, io::Errno};

use super::globals::{Guard, InstanceName, shown_path};
use super::{
    IfMissing, Missing, OWN, OWN_FORMATS, POINTING, TIMER_IRQS, TracefsError, WANTED, WantedEvents,
    find_or_mount, globals, refused, refused_io, why,
};
use crate::{CpuList, Reading, Root};

/// Rings of all CPUs together: what they may take of the machine's memory.
const RINGS_KB_MAX: u64 = 256 << 10;

/// A ring that holds a few switches.
const RING_KB_MIN: u64 = 8;

/// Size of the ring of each CPU, kilobytes of 1024 bytes. They are made smaller together where
/// they would take more than 256 MB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingSizes {
    /// CPUs that are measured.
    pub measured: CpuList,
    /// Of each of them.
    pub measured_kb: u64,
    /// Other CPUs that are recorded.
    pub others: CpuList,
    /// Of each of them.
    pub others_kb: u64,
}

impl RingSizes {
    /// CPU and kilobytes, ascending.
    fn sizes(&self) -> Vec<(u32, u64)> {
        let measured = self.measured.iter().map(|cpu| (cpu, self.measured_kb));
        let is_other = |cpu: &u32| !self.measured.contains(*cpu);
        let others = self.others.iter().filter(is_other).map(|cpu| (cpu, self.others_kb));
        let mut sizes: Vec<(u32, u64)> = measured.chain(others).collect();
        sizes.sort_unstable();
        let total: u64 = sizes.iter().map(|(_, kb)| *kb).sum();
        for (_, kb) in sizes.iter_mut().filter(|_| total > RINGS_KB_MAX) {
            *kb = kb.saturating_mul(RINGS_KB_MAX) / total;
        }
        sizes.iter_mut().for_each(|(_, kb)| *kb = (*kb).max(RING_KB_MIN));
        sizes
    }
}

/// An instance of our own; dropping it removes it, once the files of [`Instance::pipe`] are closed.
#[derive(Debug)]
pub struct Instance {
    top: &'static str,
    folder: InstanceFolder,
    enabled: Vec<&'static str>,
    missing: Vec<Missing>,
    removed: Vec<String>,
    /// The event whose trigger takes stacks, and what was written into it.
    stack: Option<(&'static str, String)>,
}

impl Instance {
    /// Makes an instance, off, with all events of [`WANTED`] enabled that this kernel has. What
    /// dead processes left behind is removed first.
    ///
    /// # Errors
    /// Why events cannot be recorded here; nothing is left behind then.
    pub fn create(root: &Root, rings: &RingSizes) -> Result<Self, TracefsError> {
        let top = find_or_mount(root)?;
        let removed = remove_stale(root, top);
        let folder = InstanceFolder::make(root, top)?;
        let mut instance =
            Self { top, folder, enabled: Vec::new(), missing: Vec::new(), removed, stack: None };
        instance.set_up(rings)?;
        Ok(instance)
    }

    fn set_up(&mut self, rings: &RingSizes) -> Result<(), TracefsError> {
        self.folder.write("tracing_on", "0")?;
        self.folder.write("trace_clock", "mono").map_err(|error| {
            let why = why(&error)
                + "; the trace must run on CLOCK_MONOTONIC, which the threads' own times are on: \
                   any other clock would be compared by an offset that drifts";
            TracefsError::Refused { path: shown_path(&self.folder.file("trace_clock")), why }
        })?;
        let sizes = rings.sizes();
        self.folder.write("tracing_cpumask", &cpu_mask(sizes.iter().map(|(cpu, _)| *cpu)))?;
        for (cpu, kb) in sizes {
            // A CPU that is not there has no ring.
            let file = format!("per_cpu/cpu{cpu}/buffer_size_kb");
            if self.folder.root.exists(&self.folder.file(&file)) {
                self.folder.write(&file, &kb.to_string())?;
            }
        }
        self.folder.write("options/overwrite", "1")?;
        self.record_no_names();
        self.enable_all();
        match self.missing.iter().find(|missing| missing.event == "sched:sched_switch") {
            None => Ok(()),
            Some(missing) => Err(TracefsError::Refused {
                path: shown_path(&self.folder.file(&event_file(missing.event, "enable"))),
                why: format!("{}; without it the running tasks are unknown", missing.why),
            }),
        }
    }

    /// Has the kernel keep no list of names of tasks for this instance. That takes a lock and a
    /// copy at each switch and wake-up, half of what recording costs them; events carry names
    /// themselves. The kernel would end those lists of all instances (`set_tracer_flag` in
    /// kernel/trace/trace.c): while others record, it stays as it is.
    fn record_no_names(&self) {
        if self.folder.is_alone(self.top) {
            // A kernel that refuses costs more, no less.
            let _ = self.folder.write("trace_options", "norecord-cmd");
        }
    }

    fn enable_all(&mut self) {
        let mut failed: Vec<(&WantedEvents, Missing)> = Vec::new();
        for wanted in WANTED {
            for event in wanted.events {
                let file = event_file(event, "enable");
                if self.folder.root.read_text(&self.folder.file(&file)).is_absent() {
                    let why = "is not in this kernel".into();
                    failed.push((wanted, Missing { event, why, without: wanted.without }));
                    continue;
                }
                match self.folder.write(&file, "1") {
                    Ok(()) => self.enabled.push(event),
                    Err(error) => {
                        let why = format!("is refused ({})", why(&error));
                        self.missing.push(Missing { event, why, without: wanted.without });
                    }
                }
            }
        }
        for (wanted, missing) in failed {
            let is_covered = match wanted.if_missing {
                IfMissing::NoSuchThing => true,
                IfMissing::Event(other) => self.enabled.contains(&other),
                IfMissing::Nothing => false,
            };
            if !is_covered {
                self.missing.push(missing);
            }
        }
    }

    /// Name, `rtproof-PID-START`.
    pub fn name(&self) -> &str {
        self.folder.path.rsplit('/').next().unwrap_or_default()
    }

    pub fn path(&self) -> &str {
        &self.folder.path
    }

    /// Instances of dead processes that were removed before this one was made.
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// Events that are recorded, `system:event`.
    pub fn enabled(&self) -> &[&'static str] {
        &self.enabled
    }

    /// Events that this machine lacks or refuses and that nothing else replaces.
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// System and `format` file of each enabled event and of stacks.
    pub fn formats(&self) -> Result<Vec<(&'static str, String)>, TracefsError> {
        let enabled = self.enabled.iter().map(|event| {
            let system = event.split(':').next().unwrap_or_default();
            (system, self.folder.file(&event_file(event, "format")))
        });
        // The kernel's own are at the top alone.
        let path = |name| format!("{}/events/{OWN}/{name}/format", self.top);
        let own = OWN_FORMATS.iter().map(|name| (OWN, path(name)));
        let own = own.filter(|(_, path)| self.folder.root.exists(path));
        let read =
            |(system, path): (_, String)| Ok((system, known(self.folder.root.read_text(&path))?));
        enabled.chain(own).map(read).collect()
    }

    /// Texts that events only point at, by address (`printk_formats`): the reasons of Arm's
    /// inter-processor interrupts. Empty where nothing points there.
    pub fn strings(&self) -> Vec<(u64, String)> {
        if !self.enabled.iter().any(|event| POINTING.contains(event)) {
            return Vec::new();
        }
        let text = self.folder.root.read_text(&format!("{}/printk_formats", self.top));
        parse_strings(text.value().map(String::as_str).unwrap_or_default())
    }

    /// `header_page`, how sub-buffers begin, or `header_event`, how records begin: the instance's
    /// own, whose sub-buffers may have another size than those of the top.
    pub fn header(&self, name: &str) -> Result<String, TracefsError> {
        let own = self.folder.root.read_text(&self.folder.file(&format!("events/{name}")));
        let path = format!("{}/events/{name}", self.top);
        known(own.or_else(|| self.folder.root.read_text(&path)))
    }

    /// Starts or stops recording. The ring keeps what it has.
    pub fn set_on(&self, on: bool) -> Result<(), TracefsError> {
        self.folder.write("tracing_on", if on { "1" } else { "0" })
    }

    /// Takes the kernel stack at each timer interrupt from now on, or no longer. It costs the
    /// interrupted CPU more than all other events together.
    ///
    /// # Errors
    /// The kernel takes no stacks (CONFIG_STACKTRACE).
    pub fn arm_stack(&mut self, on: bool) -> Result<(), TracefsError> {
        match (on, self.stack.take()) {
            (true, Some(armed)) => self.stack = Some(armed),
            (true, None) => {
                let usable = |(event, _): &&(&'static str, &str)| self.enabled.contains(event);
                let Some((event, filter)) = TIMER_IRQS.iter().find(usable) else {
                    let path = shown_path(&self.folder.file("events"));
                    let why = "none of the events of the timer interrupt is there".into();
                    return Err(TracefsError::Refused { path, why });
                };
                let trigger = format!("stacktrace{filter}");
                self.folder.write(&event_file(event, "trigger"), &trigger)?;
                self.stack = Some((event, trigger));
            }
            (false, Some((event, trigger))) => {
                self.folder.write(&event_file(event, "trigger"), &format!("!{trigger}"))?;
            }
            (false, None) => {}
        }
        Ok(())
    }

    /// CPUs that have a ring: those that were possible at boot.
    pub fn cpus(&self) -> Vec<u32> {
        let numbers = self.folder.root.list_numbered(&self.folder.file("per_cpu"), "cpu");
        numbers.value().cloned().unwrap_or_default()
    }

    /// The ring of a CPU, to be read one sub-buffer at a time. A read never waits: an empty ring
    /// answers with [`WouldBlock`](std::io::ErrorKind::WouldBlock).
    ///
    /// # Errors
    /// There is no such CPU, or opening is refused.
    pub fn pipe(&self, cpu: u32) -> Result<File, TracefsError> {
        self.folder.pipe(cpu, "trace_pipe_raw")
    }

    /// What the kernel counts of a CPU's ring.
    pub fn stats(&self, cpu: u32) -> Reading<RingStats> {
        self.folder.stats(cpu)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Removing it undoes both as well; a reader may keep it for a while.
        let _ = self.set_on(false);
        let _ = self.folder.write("events/enable", "0");
        self.folder.remove();
    }
}

pub(super) fn event_file(event: &str, file: &str) -> String {
    format!("events/{}/{file}", event.replace(':', "/"))
}

fn known(text: Reading<String>) -> Result<String, TracefsError> {
    match text.value() {
        Some(_) => Ok(text.into_value().unwrap_or_default()),
        None => Err(refused(&text)),
    }
}

/// As cpumask_parse takes it: groups of eight hexadecimal digits, highest first.
pub(super) fn cpu_mask(cpus: impl Iterator<Item = u32>) -> String {
    let mut words = vec![0u32];
    for cpu in cpus {
        let word = cpu as usize / 32;
        if word >= words.len() {
            words.resize(word + 1, 0);
        }
        words[word] |= 1 << (cpu % 32);
    }
    let words: Vec<String> = words.iter().rev().map(|word| format!("{word:08x}")).collect();
    words.join(",")
}

/// Lines `0xADDRESS : "TEXT"`.
fn parse_strings(text: &str) -> Vec<(u64, String)> {
    let string = |line: &str| {
        let (address, text) = line.split_once(" : ")?;
        let address = u64::from_str_radix(address.trim().strip_prefix("0x")?, 16).ok()?;
        Some((address, text.trim().trim_matches('"').to_owned()))
    };
    text.lines().filter_map(string).collect()
}

// The folder of one instance below `tracing/instances`, and what each kind of recording does with
// its files.

/// How long removing waits for one that still reads.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(1);

/// Instances that one process may have.
const NUMBER_MAX: u32 = 63;

/// What the kernel counts of one CPU's ring since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RingStats {
    pub entries: u64,
    /// Events that were overwritten before they were read.
    pub overrun: u64,
    /// Events lost because the ring was full of nested ones.
    pub commit_overrun: u64,
    /// Events that were not written because the ring was full and may not be overwritten.
    pub dropped: u64,
    /// Events that were read.
    pub read: u64,
}

impl RingStats {
    pub(super) fn read(root: &Root, path: &str) -> Reading<Self> {
        root.read_text(path).map(|text| parse_stats(&text))
    }
}

/// One instance's folder. Its guard removes it where this process cannot any more.
#[derive(Debug)]
pub(super) struct InstanceFolder {
    pub(super) root: Root,
    pub(super) path: String,
    _guard: Guard,
}

impl InstanceFolder {
    /// Makes a new one, named by this process. The guard comes first: it takes a while to make an
    /// instance, and a process that is killed meanwhile would leave it behind.
    pub(super) fn make(root: &Root, top: &str) -> Result<Self, TracefsError> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let own = InstanceName::own(root);
        let path = |number| format!("{top}/instances/{}", InstanceName { number, ..own }.text());
        let is_free = |path: &String| !root.exists(path);
        let path =
            (0..=NUMBER_MAX).map(path).find(is_free).ok_or_else(|| TracefsError::Refused {
                path: shown_path(&format!("{top}/instances")),
                why: format!("this process has {} instances already", NUMBER_MAX + 1),
            })?;
        let guard = Guard::start(&path, &globals::state(globals::STATE, &path));
        let guard = guard.map_err(|error| TracefsError::Refused {
            path: shown_path(&path),
            why: format!("removing it when rtproof is killed takes a shell: {error}"),
        })?;
        fs::create_dir(&path).map_err(|error| refused_io(root, &path, error))?;
        Ok(Self { root: root.clone(), path, _guard: guard })
    }

    pub(super) fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Writes a file of the instance, in one write(2): the kernel takes each as a command.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), TracefsError> {
        self.try_write(name, text).map_err(|error| refused_io(&self.root, &self.file(name), error))
    }

    /// The same, with the kernel's own answer.
    pub(super) fn try_write(&self, name: &str, text: &str) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(self.file(name));
        file.and_then(|mut file| file.write_all(text.as_bytes()))
    }

    /// Whether no one else records events, at the top or in another instance.
    fn is_alone(&self, top: &str) -> bool {
        let names = self.root.list_dir(&format!("{top}/instances"));
        let others = names.value().into_iter().flatten();
        let others = others.map(|name| format!("{top}/instances/{name}"));
        let mut all = others.filter(|path| *path != self.path).chain([top.to_owned()]);
        let is_off = |text: Reading<String>| text.value().is_some_and(|text| text.trim() == "0");
        all.all(|path| is_off(self.root.read_text(&format!("{path}/events/enable"))))
    }

    /// Opens a file of a CPU for reads that never wait.
    pub(super) fn pipe(&self, cpu: u32, name: &str) -> Result<File, TracefsError> {
        let path = self.file(&format!("per_cpu/cpu{cpu}/{name}"));
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        file.map_err(|error| refused_io(&self.root, &path, error))
    }

    pub(super) fn stats(&self, cpu: u32) -> Reading<RingStats> {
        RingStats::read(&self.root, &self.file(&format!("per_cpu/cpu{cpu}/stats")))
    }

    /// Removes it; a reader may keep it for a while.
    pub(super) fn remove(&self) {
        let is_busy = |error: io::Error| error.raw_os_error() == Some(Errno::BUSY.raw_os_error());
        let start = Instant::now();
        while fs::remove_dir(&self.path).is_err_and(is_busy) && start.elapsed() < REMOVE_TIMEOUT {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Removes what dead processes left. In a container processes outside are hidden, so that all
/// of theirs would look dead: nothing is removed there. An instance that is being read cannot be
/// removed, whoever reads it.
pub(super) fn remove_stale(root: &Root, top: &str) -> Vec<String> {
    if !root.in_initial_namespaces() {
        return Vec::new();
    }
    let names = root.list_dir(&format!("{top}/instances"));
    let is_stale =
        |text: &&String| InstanceName::parse(text).is_some_and(|name| name.is_stale(root));
    let stale = names.value().into_iter().flatten().filter(is_stale);
    let removed = stale.filter(|name| fs::remove_dir(format!("{top}/instances/{name}")).is_ok());
    removed.cloned().collect()
}

fn parse_stats(text: &str) -> RingStats {
    let count = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    RingStats {
        entries: count("entries"),
        overrun: count("overrun"),
        commit_overrun: count("commit overrun"),
        dropped: count("dropped events"),
        read: count("read events"),
    }
}

// What a tracer is to do.

/// Size of the ring of a CPU, kilobytes: seconds of samples.
const RING_KB: u64 = 1024;

/// A tracer to run, with its CPUs and options.
#[derive(Clone, Debug)]
pub struct TracerRequest {
    /// Name, as in `available_tracers`.
    pub tracer: &'static str,
    pub cpus: CpuList,
    /// Size of the ring of each, kilobytes.
    pub ring_kb: u64,
    /// Settings that all instances share: file below the folder of tracefs, value. Those that a
    /// kernel lacks are an error.
    pub shared: Vec<(&'static str, String)>,
    /// Options of the tracer: some kernels keep them for each instance, some for all together.
    pub options: &'static [(&'static str, &'static str)],
    /// Settings of the instance: file below its folder, value.
    pub own: Vec<(&'static str, String)>,
    /// Events to enable, `system:event`.
    pub events: Vec<&'static str>,
}

impl TracerRequest {
    /// A tracer on one CPU.
    pub fn on_one_cpu(tracer: &'static str, cpu: u32, shared: Vec<(&'static str, String)>) -> Self {
        Self {
            tracer,
            cpus: CpuList::new([cpu]),
            ring_kb: RING_KB,
            shared,
            options: &[],
            own: Vec::new(),
            events: Vec::new(),
        }
    }
}

// A tracer at the top of tracefs: shared by the whole machine, borrowed while unused.
//
// function_graph runs there alone before Linux 6.11. The top is one ring, one tracer and one set
// of events for everybody; whoever changes it puts all of it back (`Globals`).

/// The folder of tracefs, in use.
#[derive(Debug)]
pub(super) struct TracefsFolder(pub(super) &'static str);

/// Whether it is unused: no tracer, no event, no filter, nothing recorded that is not read yet.
///
/// # Errors
/// What is used, and how to end that.
pub(super) fn is_free(root: &Root, top: &str, request: &TracerRequest) -> Result<(), TracefsError> {
    let refused = |file: &str, why: String| {
        let path = shown_path(&format!("{top}/{file}"));
        let why = format!(
            "{why}; this kernel runs `{}` for the whole machine only, and what others trace is not \
             disturbed: nothing was changed",
            request.tracer
        );
        Err(TracefsError::Refused { path, why })
    };
    let found = |file: &str| root.trimmed(&format!("{top}/{file}"));
    for (file, free, how) in [
        ("current_tracer", "nop", "end it with `echo nop`"),
        ("events/enable", "0", "end them with `echo 0`"),
    ] {
        match found(file).value().map(String::as_str) {
            Some(value) if value == free => {}
            Some(value) => return refused(file, format!("is in use ({value}); {how}")),
            None => return refused(file, "cannot be read".into()),
        }
    }
    for file in ["set_ftrace_filter", "set_ftrace_notrace", "set_graph_function"] {
        let is_set = |text: &String| text.lines().any(|line| !line.starts_with('#'));
        if found(file).value().is_some_and(is_set) {
            return refused(file, "another user has set a filter; empty it with `echo >`".into());
        }
    }
    if !request.own.is_empty() {
        return refused("instances", "a filter needs an instance; leave out --only".into());
    }
    let size = found("buffer_size_kb");
    if size.value().is_none_or(|size| size.starts_with('X')) {
        return refused("buffer_size_kb", "its CPUs have rings of different sizes".into());
    }
    let cpus = root.list_numbered(&format!("{top}/per_cpu"), "cpu");
    for cpu in cpus.value().into_iter().flatten() {
        let stats = RingStats::read(root, &format!("{top}/per_cpu/cpu{cpu}/stats"));
        let entries = stats.value().map_or(0, |stats| stats.entries);
        if entries > 0 {
            let why = format!("holds {entries} events of another user; read it, then `echo >` it");
            return refused(&format!("per_cpu/cpu{cpu}/trace"), why);
        }
    }
    Ok(())
}

/// Settings that make the top do what an instance does, in this order; the last one starts it.
/// Undone in reverse: the tracer ends first, and the clock empties the ring (`tracing_set_clock`).
pub(super) fn settings(root: &Root, top: &str, request: &TracerRequest) -> Vec<(String, String)> {
    let event = |event: &&str| (event_file(event, "enable"), "1".to_owned());
    let own = [
        ("tracing_on", "1".to_owned()),
        ("trace_clock", "mono".to_owned()),
        ("tracing_cpumask", cpu_mask(request.cpus.iter())),
        ("buffer_size_kb", request.ring_kb.to_string()),
        ("options/overwrite", "1".to_owned()),
    ];
    let own = own.into_iter().map(|(file, value)| (file.to_owned(), value));
    let all = own.chain(request.events.iter().map(event));
    let all = all.chain([("current_tracer".to_owned(), request.tracer.to_owned())]);
    let all = all.map(|(file, value)| (format!("{top}/{file}"), value));
    all.filter(|(path, _)| root.exists(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_bounded_together() {
        let cpus = |numbers: std::ops::Range<u32>| CpuList::new(numbers);
        let rings = RingSizes {
            measured: cpus(1..3),
            measured_kb: 4096,
            others: cpus(0..2),
            others_kb: 512,
        };
        assert_eq!(rings.sizes(), [(0, 512), (1, 4096), (2, 4096)]);
        let many = RingSizes { measured: cpus(0..256), others: cpus(0..0), ..rings.clone() };
        assert!(many.sizes().iter().all(|(_, kb)| *kb == 1024));
        let tiny = RingSizes { measured: cpus(0..1), measured_kb: 0, others: cpus(0..0), ..rings };
        assert_eq!(tiny.sizes(), [(0, RING_KB_MIN)]);
    }

    #[test]
    fn masks_are_groups_of_32() {
        assert_eq!(cpu_mask([0, 1].into_iter()), "00000003");
        assert_eq!(cpu_mask([31, 33].into_iter()), "00000002,80000000");
    }

    #[test]
    fn texts_by_address() {
        let text = "0xffffffff8281972f : \"Rescheduling interrupts\"\n0x1 : \"x : y\"\nbad\n";
        let strings = parse_strings(text);
        assert_eq!(strings[0], (0xffff_ffff_8281_972f, "Rescheduling interrupts".into()));
        assert_eq!((strings.len(), strings[1].1.as_str()), (2, "x : y"));
    }
}

#[cfg(test)]
mod folder_tests {
    use super::*;

    #[test]
    fn counts_of_a_ring() {
        let text = "entries: 3\noverrun: 7\ncommit overrun: 1\nbytes: 9\noldest event ts:     0.0\n\
                    now ts:   9.0\ndropped events: 2\nread events: 5\n";
        let wanted = RingStats { entries: 3, overrun: 7, commit_overrun: 1, dropped: 2, read: 5 };
        assert_eq!(parse_stats(text), wanted);
        assert_eq!(parse_stats(""), RingStats::default());
    }
}

#[cfg(test)]
mod top_tests {
    use super::*;
    use crate::testing::Tree;

    const TOP: &str = "/sys/kernel/tracing";
    const FREE: &[(&str, &str)] = &[
        ("sys/kernel/tracing/current_tracer", "nop\n"),
        ("sys/kernel/tracing/events/enable", "0\n"),
        ("sys/kernel/tracing/set_ftrace_filter", "#### all functions enabled ####\n"),
        ("sys/kernel/tracing/buffer_size_kb", "7 (expanded: 1408)\n"),
        ("sys/kernel/tracing/per_cpu/cpu0/stats", "entries: 0\noverrun: 0\n"),
    ];

    #[test]
    fn the_top_instance_is_used_only_when_free() {
        let request = TracerRequest::on_one_cpu("function_graph", 0, Vec::new());
        assert!(is_free(&Tree::new(FREE).root(), TOP, &request).is_ok());
        for (file, text) in [
            ("current_tracer", "function\n"),
            ("events/enable", "X\n"),
            ("set_ftrace_filter", "schedule\n"),
            ("set_graph_function", "schedule\n"),
            ("buffer_size_kb", "X\n"),
            ("per_cpu/cpu0/stats", "entries: 7\n"),
        ] {
            let tree = Tree::new(FREE);
            tree.write(&format!("sys/kernel/tracing/{file}"), text);
            let error = is_free(&tree.root(), TOP, &request).unwrap_err().to_string();
            assert!(error.contains("nothing was changed"), "{file}: {error}");
        }
        let none = is_free(&Tree::new(&[]).root(), TOP, &request).unwrap_err().to_string();
        assert!(none.contains("cannot be read"), "{none}");
    }

    #[test]
    fn the_tracer_starts_last() {
        let files = [("sys/kernel/tracing/trace_clock", "[local] global mono\n"), FREE[0]];
        let request = TracerRequest::on_one_cpu("function_graph", 0, Vec::new());
        let settings = settings(&Tree::new(&files).root(), TOP, &request);
        assert_eq!(settings.first().unwrap().0, format!("{TOP}/trace_clock"));
        assert_eq!(settings.last().unwrap().1, "function_graph");
    }
}
