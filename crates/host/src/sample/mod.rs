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
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fs::File, io, os::unix::fs::FileExt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::facts::kernel::Kernel;
use crate::facts::tasks::Stat;
use crate::task::cpu_ticks;
use crate::{CpuList, Facts, Reading, Root, idle};

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

/// Samples counters, temperatures and frequencies of the host while a run lasts.
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
            && policy_cpus(root, &folder, cpu).any(|c| measured.contains(c))
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
fn policy_cpus(root: &Root, folder: &str, cpu: u32) -> impl Iterator<Item = u32> {
    let affected = root.trimmed(&format!("{folder}/affected_cpus"));
    let affected = affected.value().map(String::as_str).unwrap_or_default();
    let cpus: Vec<u32> = affected.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    cpus.into_iter().chain([cpu])
}

// Idle-state residency as the hardware counted it: the MSRs of Intel's cores.
//
// Reading a register interrupts its CPU (arch/x86/kernel/msr.c, `rdmsr_safe_on_cpu`), so this is
// only for unmeasured CPUs, and on request. A hypervisor answers reads
// of registers that it does not know as it likes (KVM: `ignore_msrs`), so a guest has none.

/// The time stamp counter, at whose rate the others count (Intel SDM volume 4, table 2-2).
const TSC: u64 = 0x10;

/// MSR_CORE_C3_RESIDENCY, MSR_CORE_C6_RESIDENCY, MSR_CORE_C7_RESIDENCY.
const STATES: [(u64, &str); 3] = [(0x3fc, "CC3"), (0x3fd, "CC6"), (0x3fe, "CC7")];

/// IA32_THERM_STATUS: bit 31 valid, bits 16 to 22 degrees below the one at which the CPU throttles.
const THERM_STATUS: u64 = 0x19c;

/// MSR_TEMPERATURE_TARGET: bits 16 to 23 have that temperature (Intel SDM volume 4, table 2-2).
const TEMPERATURE_TARGET: u64 = 0x1a2;

/// Counters of one CPU: time stamp, then each state that it has.
type StateCounters = (u64, BTreeMap<u64, u64>);

/// Reads them again and again.
#[derive(Debug)]
pub struct ResidencySampler {
    root: Root,
    last: BTreeMap<u32, StateCounters>,
}

/// Name of a state and its share of the time, 1/1000.
pub type StateShares = Vec<(&'static str, u32)>;

impl ResidencySampler {
    /// Opens the residency counters of the given CPUs.
    ///
    /// # Errors
    /// Why there are no such counters here: a phrase.
    pub fn new(root: &Root, facts: &Facts, cpus: &CpuList) -> Result<Self, String> {
        match facts.virt.hypervisor.value() {
            Some(None) => {}
            Some(Some(name)) => return Err(format!("this is a guest ({name}) without its own")),
            None => return Err("whether this is a guest is not known".into()),
        }
        let model = facts.identity.cpu_model.value().map_or("", String::as_str);
        if !model.contains("Intel") {
            return Err(format!("they are known of Intel's CPUs alone, and this is \"{model}\""));
        }
        let first = cpus.iter().next().ok_or("no CPU may be interrupted for it")?;
        match idle::read_msr(root, first, TSC) {
            read if read.value().is_some() => {}
            read if read.is_absent() => return Err(format!("{} (modprobe msr)", read.path)),
            read => {
                return Err(format!("{}: {}", read.path, read.why_unknown().unwrap_or_default()));
            }
        }
        let mut sampler = Self { root: root.clone(), last: BTreeMap::new() };
        let _ = sampler.sample(cpus);
        if sampler.last.values().all(|(_, states)| states.is_empty()) {
            return Err("the CPUs have none of the registers 0x3fc to 0x3fe".into());
        }
        Ok(sampler)
    }

    /// Shares since the reading before, by CPU.
    pub fn sample(&mut self, cpus: &CpuList) -> BTreeMap<u32, StateShares> {
        let read =
            |cpu| Some((cpu, counters(|register| idle::read_msr(&self.root, cpu, register))?));
        let now: BTreeMap<u32, StateCounters> = cpus.iter().filter_map(read).collect();
        let last = std::mem::replace(&mut self.last, now);
        let of = |(cpu, now): (&u32, &StateCounters)| Some((*cpu, shares(now, last.get(cpu)?)?));
        self.last.iter().filter_map(of).collect()
    }
}

impl ResidencySampler {
    /// Temperatures of the cores of some CPUs, thousandths of a degree Celsius; those without a
    /// valid reading are left out.
    pub fn temperatures(&self, cpus: &CpuList) -> BTreeMap<u32, i64> {
        let of = |cpu| {
            let read = |register| idle::read_msr(&self.root, cpu, register);
            Some((cpu, temperature(read)?))
        };
        cpus.iter().filter_map(of).collect()
    }
}

fn temperature(read: impl Fn(u64) -> Reading<u64>) -> Option<i64> {
    let status = read(THERM_STATUS).into_value().filter(|status| status >> 31 & 1 == 1)?;
    let target = read(TEMPERATURE_TARGET).into_value()? >> 16 & 0xff;
    let below = status >> 16 & 0x7f;
    // A target of 0 is a processor that does not say it.
    let degrees = (target > 0).then(|| target.cast_signed() - below.cast_signed())?;
    Some(degrees * 1000)
}

fn counters(read: impl Fn(u64) -> Reading<u64>) -> Option<StateCounters> {
    let states = STATES.iter().filter_map(|&(register, _)| {
        let value = read(register).into_value()?;
        Some((register, value))
    });
    let states = states.collect();
    Some((read(TSC).into_value()?, states))
}

/// `None` where the time stamp went backwards: the CPU was off.
fn shares(now: &StateCounters, last: &StateCounters) -> Option<StateShares> {
    let ticks = now.0.checked_sub(last.0).filter(|&ticks| ticks > 0)?;
    let share = |&(register, name): &(u64, &'static str)| {
        let since = now.1.get(&register)?.checked_sub(*last.1.get(&register)?)?;
        let permille = u128::from(since) * 1000 / u128::from(ticks);
        Some((name, u32::try_from(permille.min(1000)).unwrap_or(1000)))
    };
    let shares: StateShares = STATES.iter().filter_map(share).collect();
    (!shares.is_empty()).then_some(shares)
}

#[cfg(test)]
mod residency_tests {
    use super::*;

    #[test]
    fn shares_of_the_time_stamp() {
        let at = |tsc, c6, c7| (tsc, BTreeMap::from([(0x3fd, c6), (0x3fe, c7)]));
        assert_eq!(
            shares(&at(3000, 950, 7), &at(1000, 100, 7)),
            Some(vec![("CC6", 425), ("CC7", 0)])
        );
        assert_eq!(shares(&at(1000, 1, 1), &at(3000, 0, 0)), None);
        assert_eq!(shares(&(9, BTreeMap::new()), &(1, BTreeMap::new())), None);
    }

    #[test]
    fn a_temperature_is_so_many_degrees_below_the_one_of_throttling() {
        let of = |status: u64, target: u64| {
            temperature(|register| match register {
                THERM_STATUS => Reading::known("msr", status),
                TEMPERATURE_TARGET => Reading::known("msr", target),
                _ => Reading::absent("msr"),
            })
        };
        // 39 below 100 degrees; the other bits say other things.
        assert_eq!(of(1 << 31 | 39 << 16 | 0x88, 100 << 16 | 0x0a00), Some(61_000));
        assert_eq!(of(39 << 16, 100 << 16), None, "not valid");
        assert_eq!(of(1 << 31 | 39 << 16, 0), None, "no target");
        assert_eq!(temperature(|_| Reading::denied("msr", "Input/output error")), None);
    }

    #[test]
    fn a_register_that_is_not_there_is_left_out() {
        let read = |register| match register {
            TSC => Reading::known("msr", 5),
            0x3fd => Reading::known("msr", 4),
            _ => Reading::denied("msr", "Input/output error"),
        };
        assert_eq!(counters(read), Some((5, BTreeMap::from([(0x3fd, 4)]))));
        assert_eq!(counters(|_| Reading::absent("msr")), None);
    }
}
