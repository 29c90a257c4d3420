//! Cheap counters of the host, once a second, while something is being measured.
//!
//! A sample must not disturb what is measured. Files stay open and are read again with pread(2);
//! and what would make the kernel interrupt a measured CPU, or call firmware, is left out and said
//! so in [`HostSampler::skipped`]:
//!
//! - `scaling_cur_freq` on x86 from 4.13 to 5.18 sends an IPI to the CPU to read APERF and MPERF
//!   and may sleep 10 ms (arch/x86/kernel/cpu/aperfmperf.c, `arch_freq_get_on_cpu`). From 5.19 it
//!   takes the sample of the last tick (f3eca381bd49), and elsewhere a number that cpufreq has or
//!   the counters of the last tick.
//! - The `x86_pkg_temp` thermal zone reads an MSR on one CPU of the package by IPI
//!   (drivers/thermal/intel/x86_pkg_temp_thermal.c): left out where that CPU is measured. ACPI
//!   zones run firmware code, which may enter SMM and stop all CPUs: left out on x86.

pub mod cpus;
pub mod residency;
pub mod rt_tasks;

use std::{fs::File, io, os::unix::fs::FileExt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    CpuList, Facts, Reading, Root,
    activity::cpu_ticks,
    facts::{kernel::Kernel, tasks::Stat},
};

/// Milliseconds per tick of /proc/stat. The kernel's ABI counts in USER_HZ, which is 100 on every
/// architecture that Linux supports but Alpha (include/asm-generic/param.h), whatever CONFIG_HZ is.
const TICK_MS: u64 = 10;

/// First x86 kernel whose scaling_cur_freq needs no IPI.
const CUR_FREQ_QUIET_SINCE: (u32, u32) = (5, 19);

/// Counters of the host over one second: since the reading before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostSecond {
    /// Time of the reading, nanoseconds after the origin.
    pub at_ns: u64,
    /// Interrupts, all CPUs (`intr` of /proc/stat).
    pub interrupts: Option<u64>,
    /// Context switches, all CPUs.
    pub context_switches: Option<u64>,
    /// Hottest thermal zone, thousandths of a degree Celsius.
    pub temp_max_mc: Option<i64>,
    /// Per online CPU, ascending; a CPU that has just come online is missing once. Of a long run
    /// that was read to be shown only one in 60 has them, with the sums of all 60.
    pub cpus: Vec<HostCpuSecond>,
}

/// The counters of [`HostSecond`] in their order: name, version of the record that it came with
/// where that is later than the table (else 0), meaning.
pub const HOST_COUNTERS: [(&str, i32, &str); 3] = [
    ("interrupts", 0, "Interrupts, all CPUs. NULL: unknown."),
    ("context_switches", 0, "Context switches, all CPUs. NULL: unknown."),
    ("temp_max_mc", 0, "Hottest zone, 1/1000 degree Celsius. NULL: unknown."),
];

/// Counters of one CPU over one second. Times in milliseconds, in steps of 10.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostCpuSecond {
    pub cpu: u32,
    /// Not idle: user, nice, system, irq, softirq.
    pub busy_ms: u64,
    /// Stolen by the hypervisor.
    pub steal_ms: u64,
    /// Frequency now, Hz; `None` where there is no cpufreq or reading it would disturb.
    pub freq_hz: Option<u64>,
}

/// Where a thread is and has been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// CPU it last ran on.
    pub cpu: u32,
    /// Times that it came to another CPU; `None` where the kernel does not count for it
    /// (CONFIG_SCHED_DEBUG, always on since Linux 6.15).
    pub migrations: Option<u64>,
}

#[derive(Debug)]
pub struct HostSampler {
    root: Root,
    stat: Option<File>,
    online: Option<File>,
    zones: Vec<File>,
    frequencies: Vec<(u32, File)>,
    skipped: Vec<String>,
    last: Counters,
    buffer: Vec<u8>,
}

/// What /proc/stat counts since boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counters {
    interrupts: Option<u64>,
    context_switches: Option<u64>,
    /// CPU, busy ticks, steal ticks.
    cpus: Vec<(u32, u64, u64)>,
}

impl HostSampler {
    /// Opens the files and takes the first counts. `facts` say which kernel and CPUs there are,
    /// `measured` which CPUs must not be disturbed.
    pub fn new(root: &Root, facts: &Facts, measured: &CpuList) -> Self {
        let mut skipped = Vec::new();
        let zones = open_zones(root, facts, measured, &mut skipped);
        let frequencies = open_frequencies(root, facts, measured, &mut skipped);
        let open = |path| root.open(path).into_value();
        let mut sampler = Self {
            root: root.clone(),
            stat: open("/proc/stat"),
            online: open("/sys/devices/system/cpu/online"),
            zones,
            frequencies,
            skipped,
            last: Counters::default(),
            buffer: vec![0; 16 << 10],
        };
        sampler.last = sampler.counters();
        sampler
    }

    /// What is not sampled because asking would disturb the measured CPUs, one phrase each.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// Counts since the sample before, or since [`HostSampler::new`]. `at_ns` is the caller's time.
    pub fn sample(&mut self, at_ns: u64) -> HostSecond {
        let now = self.counters();
        let last = std::mem::replace(&mut self.last, now);
        let since = |now: Option<u64>, last: Option<u64>| Some(now?.saturating_sub(last?));
        let mut sample = HostSecond {
            at_ns,
            interrupts: since(self.last.interrupts, last.interrupts),
            context_switches: since(self.last.context_switches, last.context_switches),
            temp_max_mc: self.zones.iter().filter_map(read_number).max(),
            cpus: Vec::with_capacity(self.last.cpus.len()),
        };
        for &(cpu, busy, steal) in &self.last.cpus {
            // /proc/stat lists CPUs in ascending order.
            let Ok(before) = last.cpus.binary_search_by_key(&cpu, |row| row.0) else {
                continue;
            };
            let (_, busy_before, steal_before) = last.cpus[before];
            sample.cpus.push(HostCpuSecond {
                cpu,
                // Counters of a CPU may step back a tick (Documentation/filesystems/proc.rst).
                busy_ms: busy.saturating_sub(busy_before).saturating_mul(TICK_MS),
                steal_ms: steal.saturating_sub(steal_before).saturating_mul(TICK_MS),
                freq_hz: self.frequency_hz(cpu),
            });
        }
        sample
    }

    /// CPUs that are online now: a measured CPU may go away in mid-run.
    pub fn online(&mut self) -> Reading<CpuList> {
        let path = "/sys/devices/system/cpu/online";
        let Some(file) = &self.online else {
            return self.root.cpu_list(path);
        };
        match read_again(file, &mut self.buffer) {
            Ok(text) => match CpuList::parse(&String::from_utf8_lossy(text), None) {
                Ok(cpus) => Reading::known(path, cpus),
                Err(error) => Reading::malformed(path, &error.to_string(), "a list of CPUs"),
            },
            Err(error) => Reading::denied(path, error.to_string()),
        }
    }

    /// Where a thread of this process is. Absent once it has ended.
    pub fn thread_placement(&self, tid: u32) -> Reading<Placement> {
        let folder = format!("/proc/self/task/{tid}");
        let sched = self.root.read_text(&format!("{folder}/sched"));
        let migrations = sched.value().and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("se.nr_migrations"))?;
            line.rsplit(':').next()?.trim().parse().ok()
        });
        let stat = self.root.read_text(&format!("{folder}/stat"));
        stat.parsed("a line of at least 41 fields", |line| {
            Some(Placement { cpu: Stat::parse(line)?.cpu, migrations })
        })
    }

    fn frequency_hz(&self, cpu: u32) -> Option<u64> {
        let at = self.frequencies.binary_search_by_key(&cpu, |row| row.0).ok()?;
        let (_, file) = &self.frequencies[at];
        u64::try_from(read_number(file)?).ok().map(|khz| khz * 1000)
    }

    fn counters(&mut self) -> Counters {
        let Some(file) = &self.stat else {
            return Counters::default();
        };
        match read_again(file, &mut self.buffer) {
            Ok(text) => Counters::parse(&String::from_utf8_lossy(text)),
            Err(_) => Counters::default(),
        }
    }
}

impl Counters {
    /// `cpuN user nice system idle iowait irq softirq steal ...`, `intr SUM ...`, `ctxt SUM`. Guest
    /// time is within user time.
    fn parse(stat: &str) -> Self {
        let mut counters = Self::default();
        for line in stat.lines() {
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            let first = || rest.split(' ').next().and_then(|word| word.parse().ok());
            match name {
                "intr" => counters.interrupts = first(),
                "ctxt" => counters.context_switches = first(),
                _ => counters.cpus.extend(cpu_row(line)),
            }
        }
        counters
    }
}

fn cpu_row(line: &str) -> Option<(u32, u64, u64)> {
    let (cpu, [user, nice, system, _idle, _iowait, irq, softirq, steal]) = cpu_ticks(line)?;
    let busy = [nice, system, irq, softirq].into_iter().fold(user, u64::saturating_add);
    Some((cpu, busy, steal))
}

/// A file from its start. The buffer grows until one pread takes all, so that /proc/stat is one
/// snapshot.
fn read_again<'a>(file: &File, buffer: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
    loop {
        let length = file.read_at(buffer, 0)?;
        if length < buffer.len() {
            return Ok(&buffer[..length]);
        }
        buffer.resize(buffer.len() * 2, 0);
    }
}

/// A file with one number; no allocation.
fn read_number(file: &File) -> Option<i64> {
    let mut buffer = [0; 32];
    let length = file.read_at(&mut buffer, 0).ok()?;
    std::str::from_utf8(&buffer[..length]).ok()?.trim().parse().ok()
}

/// Unknown architectures are taken for x86: what may disturb is left out.
fn may_be_x86(kernel: &Kernel) -> bool {
    let arch = kernel.arch.value().map_or("x86", String::as_str);
    arch.contains("86")
}

fn open_zones(
    root: &Root,
    facts: &Facts,
    measured: &CpuList,
    skipped: &mut Vec<String>,
) -> Vec<File> {
    const FOLDER: &str = "/sys/class/thermal";
    let numbers = root.list_numbered(FOLDER, "thermal_zone");
    let x86 = may_be_x86(&facts.kernel);
    let package_first_measured = package_firsts(facts).iter().any(|&cpu| measured.contains(cpu));
    let mut zones = Vec::new();
    for number in numbers.value().into_iter().flatten() {
        let zone = format!("{FOLDER}/thermal_zone{number}");
        let kind = root.trimmed(&format!("{zone}/type"));
        let kind = kind.value().map_or("of unknown type", String::as_str);
        let why = match kind {
            _ if !x86 => None,
            "x86_pkg_temp" if package_first_measured => Some("it interrupts a measured CPU"),
            "x86_pkg_temp" => None,
            _ if kind.starts_with("pch_") => None,
            _ => Some("it may run firmware"),
        };
        match why {
            Some(why) => skipped.push(format!("temperature of {zone} ({kind}): {why}")),
            None => zones.extend(root.open(&format!("{zone}/temp")).into_value()),
        }
    }
    zones
}

/// The CPU of each package that came online first: the one that the package's zone asks.
fn package_firsts(facts: &Facts) -> Vec<u32> {
    let mut seen = Vec::new();
    let mut firsts = Vec::new();
    for cpu in &facts.cpus.cpus {
        let package = cpu.package.value().copied();
        if !seen.contains(&package) {
            seen.push(package);
            firsts.push(cpu.id);
        }
    }
    firsts
}

fn open_frequencies(
    root: &Root,
    facts: &Facts,
    measured: &CpuList,
    skipped: &mut Vec<String>,
) -> Vec<(u32, File)> {
    let quiet = facts.kernel.version.value().is_some_and(|&v| v >= CUR_FREQ_QUIET_SINCE);
    let interrupts = may_be_x86(&facts.kernel) && !quiet;
    let mut files = Vec::new();
    let mut left_out = Vec::new();
    for cpu in facts.cpus.cpus.iter().map(|cpu| cpu.id) {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq");
        let path = format!("{folder}/scaling_cur_freq");
        if interrupts
            && root.exists(&path)
            && asks(root, &folder, cpu).any(|c| measured.contains(c))
        {
            left_out.push(cpu);
            continue;
        }
        files.extend(root.open(&path).into_value().map(|file| (cpu, file)));
    }
    if !left_out.is_empty() {
        let cpus = CpuList::new(left_out);
        let plural = if cpus.len() == 1 { "" } else { "s" };
        skipped.push(format!(
            "frequency of CPU{plural} {cpus}: before Linux 5.19 asking interrupts a measured CPU"
        ));
    }
    files
}

/// CPUs that may be interrupted by asking for one CPU's frequency: all of its policy, because the
/// policy's first CPU is read.
fn asks(root: &Root, folder: &str, cpu: u32) -> impl Iterator<Item = u32> {
    let affected = root.trimmed(&format!("{folder}/affected_cpus"));
    let affected = affected.value().map(String::as_str).unwrap_or_default();
    let cpus: Vec<u32> = affected.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    cpus.into_iter().chain([cpu])
}

#[cfg(test)]
mod tests;
