//! One instance: made, set up, read, removed.

#![expect(clippy::disallowed_methods, reason = "files of tracefs, of the live machine only")]

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    time::{Duration, Instant},
};

use rustix::{fs::OFlags, io::Errno};

use super::{
    Missing, TracefsError, WANTED, Wanted,
    events::{OWN, OWN_FORMATS, Or, POINTING, TIMER_IRQS},
    find,
    name::Name,
    refused, refused_io, why,
};
use crate::{CpuList, Reading, Root, reading::State};

/// Rings of all CPUs together: what they may take of the machine's memory.
const RINGS_KB_MAX: u64 = 256 << 10;
/// A ring that holds a few switches.
const RING_KB_MIN: u64 = 8;
/// Longest wait for readers of the instance to close their files.
const REMOVE_TIMEOUT: Duration = Duration::from_secs(1);
/// Most instances of one process.
const NUMBER_MAX: u32 = 63;

/// Size of the ring of each CPU, kilobytes of 1024 bytes. They are made smaller together where
/// they would take more than 256 MB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rings {
    /// CPUs that are measured.
    pub measured: CpuList,
    /// Of each of them.
    pub measured_kb: u64,
    /// Other CPUs that are recorded.
    pub others: CpuList,
    /// Of each of them.
    pub others_kb: u64,
}

impl Rings {
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

/// What the kernel counts of one CPU's ring since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Events in it.
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

/// An instance of our own; dropping it removes it, once the files of [`Instance::pipe`] are closed.
#[derive(Debug)]
pub struct Instance {
    root: Root,
    /// Of tracefs.
    top: &'static str,
    /// Of the instance.
    folder: String,
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
    pub fn create(root: &Root, rings: &Rings) -> Result<Self, TracefsError> {
        let top = find(root)?;
        let removed = remove_stale(root, top);
        let folder = make(root, top)?;
        let mut instance = Self {
            root: root.clone(),
            top,
            folder,
            enabled: Vec::new(),
            missing: Vec::new(),
            removed,
            stack: None,
        };
        instance.set_up(rings)?;
        Ok(instance)
    }

    fn set_up(&mut self, rings: &Rings) -> Result<(), TracefsError> {
        self.write("tracing_on", "0")?;
        self.write("trace_clock", "mono").map_err(|error| TracefsError::NoClock {
            path: self.path("trace_clock"),
            why: why(&error),
        })?;
        let sizes = rings.sizes();
        self.write("tracing_cpumask", &cpu_mask(sizes.iter().map(|(cpu, _)| *cpu)))?;
        for (cpu, kb) in sizes {
            // A CPU that is not there has no ring.
            let file = format!("per_cpu/cpu{cpu}/buffer_size_kb");
            if self.root.exists(&self.path(&file)) {
                self.write(&file, &kb.to_string())?;
            }
        }
        self.write("options/overwrite", "1")?;
        self.enable_all();
        match self.missing.iter().find(|missing| missing.event == "sched:sched_switch") {
            None => Ok(()),
            Some(missing) => Err(TracefsError::NoSwitch {
                path: self.path(&event_file(missing.event, "enable")),
                why: missing.why.clone(),
            }),
        }
    }

    fn enable_all(&mut self) {
        let mut failed: Vec<(&Wanted, Missing)> = Vec::new();
        for wanted in WANTED {
            for event in wanted.events {
                match self.enable(event) {
                    Ok(()) => self.enabled.push(event),
                    Err(Some(why)) => {
                        self.missing.push(Missing { event, why, without: wanted.without })
                    }
                    Err(None) => {
                        let why = "is not in this kernel".into();
                        failed.push((wanted, Missing { event, why, without: wanted.without }));
                    }
                }
            }
        }
        for (wanted, missing) in failed {
            let is_told = match wanted.or {
                Or::NoSuchThing => true,
                Or::Event(other) => self.enabled.contains(&other),
                Or::Nothing => false,
            };
            if !is_told {
                self.missing.push(missing);
            }
        }
    }

    /// `Err(None)`: there is no such event; `Err(Some(why))`: refused.
    fn enable(&self, event: &str) -> Result<(), Option<String>> {
        let file = event_file(event, "enable");
        if self.root.read_text(&self.path(&file)).is_absent() {
            return Err(None);
        }
        self.write(&file, "1").map_err(|error| Some(format!("is refused ({})", why(&error))))
    }

    /// Name, `rtproof-PID-START`.
    #[must_use]
    pub fn name(&self) -> &str {
        self.folder.rsplit('/').next().unwrap_or_default()
    }

    /// Instances of dead processes that were removed before this one was made.
    #[must_use]
    pub fn removed(&self) -> &[String] {
        &self.removed
    }

    /// Events that are recorded, `system:event`.
    #[must_use]
    pub fn enabled(&self) -> &[&'static str] {
        &self.enabled
    }

    /// Events that this machine lacks or refuses and that nothing else replaces.
    #[must_use]
    pub fn missing(&self) -> &[Missing] {
        &self.missing
    }

    /// System and `format` file of each enabled event and of stacks.
    ///
    /// # Errors
    /// One cannot be read.
    pub fn formats(&self) -> Result<Vec<(&'static str, String)>, TracefsError> {
        let enabled = self.enabled.iter().map(|event| {
            let system = event.split(':').next().unwrap_or_default();
            (system, self.path(&event_file(event, "format")))
        });
        // The kernel's own are at the top alone.
        let path = |name| format!("{}/events/{OWN}/{name}/format", self.top);
        let own = OWN_FORMATS.iter().map(|name| (OWN, path(name)));
        let own = own.filter(|(_, path)| self.root.exists(path));
        let read = |(system, path): (_, String)| Ok((system, known(self.root.read_text(&path))?));
        enabled.chain(own).map(read).collect()
    }

    /// `header_page`: where the parts of a sub-buffer are.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn header_page(&self) -> Result<String, TracefsError> {
        self.header("header_page")
    }

    /// `header_event`: how records begin.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn header_event(&self) -> Result<String, TracefsError> {
        self.header("header_event")
    }

    /// Texts that events only point at, by address (`printk_formats`): the reasons of Arm's
    /// inter-processor interrupts. Empty where nothing points there.
    #[must_use]
    pub fn strings(&self) -> Vec<(u64, String)> {
        if !self.enabled.iter().any(|event| POINTING.contains(event)) {
            return Vec::new();
        }
        let text = self.root.read_text(&format!("{}/printk_formats", self.top));
        parse_strings(text.value().map(String::as_str).unwrap_or_default())
    }

    /// The instance's own: its sub-buffers may have another size than those of the top.
    fn header(&self, name: &str) -> Result<String, TracefsError> {
        let own = self.root.read_text(&self.path(&format!("events/{name}")));
        let path = format!("{}/events/{name}", self.top);
        known(own.or_else(|| self.root.read_text(&path)))
    }

    /// Starts or stops recording. The ring keeps what it has.
    ///
    /// # Errors
    /// The write is refused.
    pub fn set_on(&self, on: bool) -> Result<(), TracefsError> {
        self.write("tracing_on", if on { "1" } else { "0" })
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
                    let path = self.path("events");
                    let why = "none of the events of the timer interrupt is there".into();
                    return Err(TracefsError::Refused { path, why });
                };
                let trigger = format!("stacktrace{filter}");
                self.write(&event_file(event, "trigger"), &trigger)?;
                self.stack = Some((event, trigger));
            }
            (false, Some((event, trigger))) => {
                self.write(&event_file(event, "trigger"), &format!("!{trigger}"))?;
            }
            (false, None) => {}
        }
        Ok(())
    }

    /// CPUs that have a ring: those that were possible at boot.
    #[must_use]
    pub fn cpus(&self) -> Vec<u32> {
        let numbers = self.root.list_numbered(&self.path("per_cpu"), "cpu");
        numbers.value().cloned().unwrap_or_default()
    }

    /// The ring of a CPU, to be read one sub-buffer at a time. A read never waits: an empty ring
    /// answers with [`io::ErrorKind::WouldBlock`].
    ///
    /// # Errors
    /// There is no such CPU, or opening is refused.
    pub fn pipe(&self, cpu: u32) -> Result<File, TracefsError> {
        let path = self.path(&format!("per_cpu/cpu{cpu}/trace_pipe_raw"));
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&path);
        file.map_err(|error| refused_io(&self.root, &path, error))
    }

    /// What the kernel counts of a CPU's ring.
    #[must_use]
    pub fn stats(&self, cpu: u32) -> Reading<Stats> {
        let path = self.path(&format!("per_cpu/cpu{cpu}/stats"));
        self.root.read_text(&path).map(|text| parse_stats(&text))
    }

    fn path(&self, file: &str) -> String {
        format!("{}/{file}", self.folder)
    }

    /// The only place of this crate that writes into tracefs: below the instance.
    fn write(&self, file: &str, text: &str) -> Result<(), TracefsError> {
        let path = self.path(file);
        write_to(&path, text).map_err(|error| refused_io(&self.root, &path, error))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // Removing it undoes both as well; a reader may keep it for a while.
        let _ = self.set_on(false);
        let _ = self.write("events/enable", "0");
        let start = Instant::now();
        while is_busy(fs::remove_dir(&self.folder)) && start.elapsed() < REMOVE_TIMEOUT {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

pub(super) fn is_busy(removed: io::Result<()>) -> bool {
    let busy = Some(Errno::BUSY.raw_os_error());
    removed.is_err_and(|error| error.raw_os_error() == busy)
}

/// One write(2): the kernel takes each as a command.
pub(super) fn write_to(path: &str, text: &str) -> io::Result<()> {
    OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

pub(super) fn make(root: &Root, top: &str) -> Result<String, TracefsError> {
    let own = Name::own(root);
    let mut number = 0;
    loop {
        let folder = format!("{top}/instances/{}", Name { number, ..own }.text());
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < NUMBER_MAX => {
                number += 1;
            }
            Err(error) => return Err(refused_io(root, &folder, error)),
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
    let is_stale = |text: &&String| Name::parse(text).is_some_and(|name| name.is_stale(root));
    let stale = names.value().into_iter().flatten().filter(is_stale);
    let removed = stale.filter(|name| fs::remove_dir(format!("{top}/instances/{name}")).is_ok());
    removed.cloned().collect()
}

pub(super) fn event_file(event: &str, file: &str) -> String {
    format!("events/{}/{file}", event.replace(':', "/"))
}

fn known(text: Reading<String>) -> Result<String, TracefsError> {
    match text.state {
        State::Known { value } => Ok(value),
        state => Err(refused(&Reading::<String> { path: text.path, state })),
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

pub(super) fn parse_stats(text: &str) -> Stats {
    let count = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    };
    Stats {
        entries: count("entries"),
        overrun: count("overrun"),
        commit_overrun: count("commit overrun"),
        dropped: count("dropped events"),
        read: count("read events"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_are_bounded_together() {
        let cpus = |numbers: std::ops::Range<u32>| CpuList::new(numbers);
        let rings =
            Rings { measured: cpus(1..3), measured_kb: 4096, others: cpus(0..2), others_kb: 512 };
        assert_eq!(rings.sizes(), [(0, 512), (1, 4096), (2, 4096)]);
        let many = Rings { measured: cpus(0..256), others: cpus(0..0), ..rings.clone() };
        assert!(many.sizes().iter().all(|(_, kb)| *kb == 1024));
        let tiny = Rings { measured: cpus(0..1), measured_kb: 0, others: cpus(0..0), ..rings };
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

    #[test]
    fn counts_of_a_ring() {
        let text = "entries: 3\noverrun: 7\ncommit overrun: 1\nbytes: 9\noldest event ts:     0.0\n\
                    now ts:   9.0\ndropped events: 2\nread events: 5\n";
        let wanted = Stats { entries: 3, overrun: 7, commit_overrun: 1, dropped: 2, read: 5 };
        assert_eq!(parse_stats(text), wanted);
        assert_eq!(parse_stats(""), Stats::default());
    }
}
