//! One instance: made, set up, read, removed.

use std::fs::File;

use super::{
    Missing, TracefsError, WANTED, Wanted,
    events::{OWN, OWN_FORMATS, Or, POINTING, TIMER_IRQS},
    find_or_mount,
    folder::{Folder, Stats, remove_stale},
    mount::shown,
    refused, why,
};
use crate::{CpuList, Reading, Root};

/// Rings of all CPUs together: what they may take of the machine's memory.
const RINGS_KB_MAX: u64 = 256 << 10;
/// A ring that holds a few switches.
const RING_KB_MIN: u64 = 8;

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

/// An instance of our own; dropping it removes it, once the files of [`Instance::pipe`] are closed.
#[derive(Debug)]
pub struct Instance {
    top: &'static str,
    folder: Folder,
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
        let top = find_or_mount(root)?;
        let removed = remove_stale(root, top);
        let folder = Folder::make(root, top)?;
        let mut instance =
            Self { top, folder, enabled: Vec::new(), missing: Vec::new(), removed, stack: None };
        instance.set_up(rings)?;
        Ok(instance)
    }

    fn set_up(&mut self, rings: &Rings) -> Result<(), TracefsError> {
        self.folder.write("tracing_on", "0")?;
        self.folder.write("trace_clock", "mono").map_err(|error| {
            let why = why(&error)
                + "; the trace must run on CLOCK_MONOTONIC, which the threads' own times are on: \
                   any other clock would be compared by an offset that drifts";
            TracefsError::Refused { path: shown(&self.folder.file("trace_clock")), why }
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
                path: shown(&self.folder.file(&event_file(missing.event, "enable"))),
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
        let mut failed: Vec<(&Wanted, Missing)> = Vec::new();
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
            let is_covered = match wanted.or {
                Or::NoSuchThing => true,
                Or::Event(other) => self.enabled.contains(&other),
                Or::Nothing => false,
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
                    let path = shown(&self.folder.file("events"));
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
    pub fn stats(&self, cpu: u32) -> Reading<Stats> {
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
}
