//! Suspects of a drift: for a change that is no longer as it was applied, the programs and
//! files of this machine that set the same thing, each with what points at it.
//!
//! The kernel does not know who wrote a value. Reported is which program would write it, and is
//! there to do it: a suspect, not a culprit. Nothing is changed.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Root;
use crate::change::Change;
use crate::facts::platform::FOLDERS;
use crate::facts::virt::SLICES;

/// Who may have changed what a change set; files that name the thing come first. Empty: no one
/// known is there. Reads a hundred small files at most.
pub fn suspects(root: &Root, change: &Change) -> Vec<Suspect> {
    let words = Words::of(root, change);
    let mut found = sysctl(root, &words);
    found.extend(udev(root, &words));
    found.extend(tuned(root, &words));
    found.extend(power_settings(root, &words));
    let running = [
        irqbalance(root, &words),
        power_daemons(root, &words),
        link(root, &words),
        resume(root, &words),
        hotplug(root, &words),
        control_group(root, change),
        on_demand(root, change),
        packages(root, change),
    ];
    found.extend(running.into_iter().flatten());
    found
}

/// By its process: it may run without a unit. The names alone are read, nothing that would have
/// the kernel interrupt a busy CPU.
fn irqbalance(root: &Root, words: &Words) -> Option<Suspect> {
    if !words.is_subject(Subject::Irq) {
        return None;
    }
    let pids = root.list_numbered("/proc", "");
    let is_it = |path: &String| root.trimmed(path).value().is_some_and(|comm| comm == "irqbalance");
    let path = pids.value()?.iter().map(|pid| format!("/proc/{pid}/comm")).find(is_it)?;
    let why = "moves interrupts every ten seconds; disable it, or ban the real-time CPUs";
    Suspect::new("irqbalance", why, vec![DriftClue::new(path, "irqbalance runs")])
}

/// Daemons that set frequencies, and what they are.
const POWER: &[(&str, &str)] = &[
    ("power-profiles-daemon.service", "sets the energy preference and the platform's profile"),
    ("tuned-ppd.service", "switches tuned's profile when the desktop asks"),
    ("thermald.service", "lowers frequencies when the machine is warm"),
    ("tlp.service", "sets frequencies and devices when power is plugged in or out"),
    ("auto-cpufreq.service", "sets the governor by the load, all the time"),
    ("system76-power.service", "sets frequencies by its profile"),
    ("upower.service", "asks others to save power when the battery runs low"),
];

fn power_daemons(root: &Root, words: &Words) -> Option<Suspect> {
    if !words.is_subject(Subject::Power) {
        return None;
    }
    let running: Vec<(String, &str, &str)> = POWER
        .iter()
        .filter_map(|&(unit, what)| Some((group_of(root, unit)?, unit, what)))
        .collect();
    let who: Vec<&str> = running.iter().map(|(_, unit, _)| *unit).collect();
    let clues = running.iter().map(|(group, unit, what)| {
        DriftClue::new(group.clone(), format!("{unit} runs: it {what}"))
    });
    let why = "sets frequencies of CPUs while it runs; stop and disable it";
    Suspect::new(&who.join(", "), why, clues.collect())
}

/// A driver asks for its interrupts anew when its interface comes up, and they start from the
/// default affinity; queues are made anew, too.
fn link(root: &Root, words: &Words) -> Option<Suspect> {
    let interface = words.interface.as_deref()?;
    let top = format!("/sys/class/net/{interface}");
    let ups = root.trimmed(&format!("{top}/carrier_up_count"));
    let ups: Option<u64> = ups.value().and_then(|ups| ups.parse().ok()).filter(|ups| *ups > 0);
    let mut clues: Vec<DriftClue> = ups
        .map(|ups| {
            let text =
                format!("the link came up {} since boot", rtproof_stats::samples::times(ups));
            DriftClue::new(format!("{top}/carrier_up_count"), text)
        })
        .into_iter()
        .collect();
    let managers = [
        "NetworkManager.service",
        "systemd-networkd.service",
        "networking.service",
        "connman.service",
    ];
    let manager = managers.iter().find_map(|unit| Some((group_of(root, unit)?, *unit)));
    if let Some((group, unit)) = &manager {
        clues.push(DriftClue::new(group.clone(), format!("{unit} takes interfaces up and down")));
    }
    let who = manager.map_or("the driver", |(_, unit)| unit);
    let why = "when an interface comes up its driver asks for the interrupts anew, and they start \
               from the default affinity; set /proc/irq/default_smp_affinity (irqaffinity=), too";
    Suspect::new(&format!("{interface}: {who}"), why, clues)
}

fn resume(root: &Root, words: &Words) -> Option<Suspect> {
    const PATH: &str = "/sys/power/suspend_stats/success";
    let moves = [Subject::Irq, Subject::Power, Subject::Hotplug, Subject::Device];
    let slept: u64 = root.trimmed(PATH).value()?.parse().ok()?;
    if slept == 0 || !moves.iter().any(|subject| words.is_subject(*subject)) {
        return None;
    }
    let why = "waking up takes every CPU but the first into operation anew, and drivers set their \
               devices up again";
    Suspect::new(
        "resume from sleep",
        why,
        vec![DriftClue::new(PATH, format!("{} since boot", rtproof_stats::samples::times(slept)))],
    )
}

fn hotplug(root: &Root, words: &Words) -> Option<Suspect> {
    const PATH: &str = "/sys/devices/system/cpu/offline";
    if ![Subject::Irq, Subject::Task, Subject::Power]
        .iter()
        .any(|subject| words.is_subject(*subject))
    {
        return None;
    }
    let offline = root.trimmed(PATH).value().cloned().filter(|cpus| !cpus.is_empty())?;
    let why = "a CPU that goes out of operation sends its interrupts and threads elsewhere, and \
               what it had was set anew when it came back";
    Suspect::new(
        "CPU hotplug",
        why,
        vec![DriftClue::new(PATH, format!("{offline} out of operation"))],
    )
}

/// The CPUs of a task follow those of its control group.
fn control_group(root: &Root, change: &Change) -> Option<Suspect> {
    let Change::Task { task, set } = change else { return None };
    let path = format!("/proc/{}/cgroup", task.tid);
    let text = root.read_text(&path);
    let group = text.value()?.lines().find_map(|line| line.strip_prefix("0::"))?.trim().to_owned();
    if set.cpus.is_none() || group == "/" {
        return None;
    }
    let why = "when the CPUs of a control group change, the kernel sets the affinity of its tasks \
               anew; set AllowedCPUs= or CPUAffinity= of the unit";
    Suspect::new("cpuset of its control group", why, vec![DriftClue::new(path, group)])
}

/// A unit that another unit starts.
fn on_demand(root: &Root, change: &Change) -> Option<Suspect> {
    let Change::Unit { unit, want } = change else { return None };
    let stops = want.stops();
    let name = unit.rsplit_once('.').map_or(unit.as_str(), |(name, _)| name);
    let starters = ["timer", "socket", "path"].map(|kind| format!("{name}.{kind}"));
    let folders = ["/etc/systemd/system", "/run/systemd/system", "/usr/lib/systemd/system"];
    let clue = |starter: &String| {
        let path = folders.iter().map(|top| format!("{top}/{starter}"));
        let path = path.into_iter().find(|path| root.exists(path))?;
        Some(DriftClue::new(path, format!("{starter} starts {unit}")))
    };
    let clues = starters.iter().filter_map(clue).collect();
    Suspect::new("systemd", "another unit starts it; mask it", clues).filter(|_| stops)
}

/// Files of /etc and /boot that packages write.
fn packages(root: &Root, change: &Change) -> Option<Suspect> {
    const LOGS: [&str; 5] = [
        "/var/log/dpkg.log",
        "/var/log/dnf.log",
        "/var/log/dnf5.log",
        "/var/log/pacman.log",
        "/var/log/zypp/history",
    ];
    let path = match change {
        Change::File { path, .. } | Change::GrubEnv { path, .. } => path,
        _ => return None,
    };
    if !["/etc/", "/boot/", "/efi/"].iter().any(|top| path.starts_with(top)) {
        return None;
    }
    let log = LOGS.iter().find(|log| root.exists(log))?;
    let why = "an update replaces files of /etc and, with a new kernel, writes the boot menu anew";
    Suspect::new("package updates", why, vec![DriftClue::new(*log, "what was installed when")])
}

// A suspect, and the evidence for it.

/// A program, unit or file that sets the same thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Suspect {
    /// A program, a unit or a file.
    #[serde(rename = "who")]
    pub name: String,
    /// What it does, and how to prevent that.
    pub why: String,
    /// What points at it; never empty.
    pub evidence: Vec<DriftClue>,
}

/// A line of a file that may explain who changed a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DriftClue {
    pub path: String,
    /// Line in it, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    pub text: String,
}

impl std::fmt::Display for DriftClue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.text),
            None => write!(f, "{}: {}", self.path, self.text),
        }
    }
}

impl DriftClue {
    fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self { path: path.into(), line: None, text: text.into() }
    }
}

impl Suspect {
    fn new(who: &str, why: &str, evidence: Vec<DriftClue>) -> Option<Self> {
        let suspect = Self { name: who.into(), why: why.into(), evidence };
        (!suspect.evidence.is_empty()).then_some(suspect)
    }
}

/// Whether a service runs: it has a control group then.
fn group_of(root: &Root, unit: &str) -> Option<String> {
    SLICES.iter().map(|slice| format!("{slice}/{unit}")).find(|path| root.exists(path))
}

// Files that set values at boot, when a device comes, or at a program's request: which of
// them name the thing, and in which line.

/// Most lines named for one suspect.
const CLUES_MAX: usize = 8;

/// Longest text of a clue, in characters.
const TEXT_MAX: usize = 160;

/// Deepest `include=` of a profile.
const PARENTS_MAX: usize = 16;

/// Files of a kind, by name; of one name the first folder's is read.
fn configured(root: &Root, folders: &[&str], ending: &str) -> Vec<String> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for folder in folders {
        let names = root.list_dir(folder).value().cloned().unwrap_or_default();
        for name in names.into_iter().filter(|name| name.ends_with(ending)) {
            let path = format!("{folder}/{name}");
            files.entry(name).or_insert(path);
        }
    }
    files.into_values().collect()
}

/// Lines of a file that are no comment and that fit, as clues.
fn lines(root: &Root, path: &str, fits: impl Fn(&str) -> bool) -> Vec<DriftClue> {
    let text = root.read_text(path);
    let lines = text.value().map(String::as_str).unwrap_or_default().lines().enumerate();
    lines
        .map(|(at, line)| (at, line.trim()))
        .filter(|(_, line)| !line.starts_with(['#', ';']) && fits(line))
        .take(CLUES_MAX)
        .map(|(at, line)| DriftClue {
            path: path.to_owned(),
            line: u32::try_from(at + 1).ok(),
            text: line.chars().take(TEXT_MAX).collect(),
        })
        .collect()
}

/// Files of sysctl.d that set the same key; `*` in them matches any part of a name.
fn sysctl(root: &Root, words: &Words) -> Vec<Suspect> {
    let Some(wanted) = &words.sysctl else { return Vec::new() };
    let names = |line: &str| {
        let Some((name, _)) = line.split_once('=') else { return false };
        let name = name.trim().trim_start_matches('-');
        // The first separator decides; `a.b/c` is /proc/sys/a/b.c (sysctl.d(5)).
        let name = match name.find(['.', '/']).map(|at| &name[at..=at]) {
            Some(".") => name.replace('/', "\0").replace('.', "/").replace('\0', "."),
            _ => name.to_owned(),
        };
        let parts = || name.split('/').zip(wanted.split('/'));
        name.split('/').count() == wanted.split('/').count()
            && parts().all(|(pattern, part)| pattern == "*" || pattern == part)
    };
    let mut files = configured(root, FOLDERS, ".conf");
    files.push("/etc/sysctl.conf".into());
    let clues: Vec<DriftClue> = files.iter().flat_map(|path| lines(root, path, names)).collect();
    let why = "sets it at boot, when a package is installed and when a user runs \
               `sysctl --system`; change the line";
    let of = |clue: DriftClue| Suspect::new(&format!("sysctl, {}", clue.path), why, vec![clue]);
    clues.into_iter().filter_map(of).collect()
}

/// Rules of udev that write the attribute.
fn udev(root: &Root, words: &Words) -> Vec<Suspect> {
    let Some(path) = &words.path else { return Vec::new() };
    let folders = [
        "/etc/udev/rules.d",
        "/run/udev/rules.d",
        "/usr/local/lib/udev/rules.d",
        "/usr/lib/udev/rules.d",
        "/lib/udev/rules.d",
    ];
    let clues: Vec<DriftClue> = configured(root, &folders, ".rules")
        .iter()
        .flat_map(|file| lines(root, file, |line| writes(line, path)))
        .collect();
    let why = "writes it when the device comes or changes (also at `udevadm trigger`)";
    let of = |clue: DriftClue| Suspect::new(&format!("udev, {}", clue.path), why, vec![clue]);
    clues.into_iter().filter_map(of).collect()
}

/// Whether a rule assigns an attribute (`ATTR{x}="1"`, not the comparison `==`) or a sysctl, or
/// runs a program with its path or name.
fn writes(rule: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let assigns = |key: &str, is: &dyn Fn(&str) -> bool| {
        rule.split(key).skip(1).any(|rest| {
            let Some((attribute, rest)) = rest.split_once('}') else { return false };
            let rest = rest.trim_start();
            rest.starts_with('=') && !rest.starts_with("==") && is(attribute)
        })
    };
    let is_attribute =
        |attribute: &str| path.strip_suffix(attribute).is_some_and(|head| head.ends_with('/'));
    let is_sysctl = |key: &str| path.strip_prefix("/proc/sys/") == Some(&key.replace('.', "/"));
    let runs = || {
        let program = rule.split_once("RUN").map(|(_, program)| program);
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        // A short name such as `online` is a word of many programs.
        name.len() > 7
            && program.is_some_and(|program| program.split(|c| !is_word(c)).any(|w| w == name))
    };
    assigns("ATTR{", &is_attribute) || assigns("SYSCTL{", &is_sysctl) || runs()
}

/// tuned, where it runs and its profile or one that this includes names the thing.
fn tuned(root: &Root, words: &Words) -> Vec<Suspect> {
    const ACTIVE: &str = "/etc/tuned/active_profile";
    let Some(group) = group_of(root, "tuned.service") else { return Vec::new() };
    let active = root.trimmed(ACTIVE).value().cloned().unwrap_or_default();
    let mut clues =
        vec![DriftClue::new(group, "tuned.service runs"), DriftClue::new(ACTIVE, active.clone())];
    let mut names: Vec<String> = active.split_whitespace().map(str::to_owned).collect();
    let mut at = 0;
    let mut hits = Vec::new();
    while at < names.len().min(PARENTS_MAX) {
        if let Some(file) = profile(root, &names[at]) {
            for include in lines(root, &file, |line| option(line) == Some("include")) {
                let parents = include.text.split_once('=').map_or("", |(_, parents)| parents);
                let parents = parents.split([',', ' ']).map(str::trim).filter(|p| !p.is_empty());
                let new: Vec<String> =
                    parents.filter(|p| !names.iter().any(|n| n == p)).map(str::to_owned).collect();
                names.extend(new);
            }
            hits.extend(lines(root, &file, |line| {
                option(line).is_some_and(|o| names_it(o, words))
            }));
        }
        at += 1;
    }
    if hits.is_empty() {
        return Vec::new();
    }
    clues.extend(hits.into_iter().take(CLUES_MAX));
    let why = "sets it by its profile, at its start and when the profile changes; disable it, or \
               put the value into the profile (`rtproof tune export --format tuned`)";
    Suspect::new("tuned", why, clues).into_iter().collect()
}

/// File of a profile (tuned 2.24 moved them into folders `profiles`).
fn profile(root: &Root, name: &str) -> Option<String> {
    if name.contains('/') {
        return None;
    }
    ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"]
        .iter()
        .map(|top| format!("{top}/{name}/tuned.conf"))
        .find(|path| root.exists(path))
}

/// Name of an option: `vm.swappiness` of `vm.swappiness = >10`.
fn option(line: &str) -> Option<&str> {
    line.split_once('=').map(|(name, _)| name.trim())
}

fn names_it(option: &str, words: &Words) -> bool {
    // `group.ksoftirqd` of the scheduler plugin.
    let option = option.strip_prefix("group.").unwrap_or(option);
    words.tuned.iter().any(|word| word == option)
}

/// Files of the programs that set frequencies once, at boot or when power is plugged in.
const POWER_FILES: [&str; 6] = [
    "/etc/tlp.conf",
    "/etc/default/tlp",
    "/etc/default/cpufrequtils",
    "/etc/default/cpupower",
    "/etc/sysconfig/cpupower",
    "/etc/auto-cpufreq.conf",
];

/// Words in them, by the end of the path.
const POWER_WORDS: &[(&str, &[&str])] = &[
    ("/scaling_governor", &["GOVERNOR", "governor"]),
    ("/energy_performance_preference", &["ENERGY_PERF_POLICY", "energy_performance_preference"]),
    ("/energy_perf_bias", &["ENERGY_PERF_POLICY", "perf_bias"]),
    ("/scaling_min_freq", &["MIN_FREQ", "MIN_SPEED", "min_freq"]),
    ("/scaling_max_freq", &["MAX_FREQ", "MAX_SPEED", "max_freq"]),
    ("/no_turbo", &["CPU_BOOST", "turbo"]),
    ("/boost", &["CPU_BOOST", "turbo"]),
    ("/min_perf_pct", &["MIN_PERF"]),
    ("/max_perf_pct", &["MAX_PERF"]),
    ("/platform_profile", &["PLATFORM_PROFILE"]),
];

fn power_settings(root: &Root, words: &Words) -> Vec<Suspect> {
    let Some(path) = words.path.as_ref().filter(|_| words.is_subject(Subject::Power)) else {
        return Vec::new();
    };
    let known = POWER_WORDS.iter().find(|(end, _)| path.ends_with(end));
    let names = known.map_or(&[][..], |(_, names)| names);
    let of = |file: &&str| {
        let names_it =
            |line: &str| option(line).is_some_and(|o| names.iter().any(|n| o.contains(n)));
        let why = "sets frequencies of CPUs; change the line, or disable its program";
        Suspect::new(file, why, lines(root, file, names_it))
    };
    POWER_FILES.iter().filter_map(of).collect()
}

// The names under which others set what a change sets.

/// Subject of a change, for programs that set whole subjects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// Which CPUs handle an interrupt.
    Irq,
    /// Frequencies and idle states.
    Power,
    /// Which CPUs are online or offline.
    Hotplug,
    Task,
    /// Anything else of a device.
    Device,
}

/// Names of the thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Words {
    /// Path of the value, where it is one.
    path: Option<String>,
    /// Name as a sysctl, with slashes.
    sysctl: Option<String>,
    /// Words of tuned's profiles.
    tuned: Vec<String>,
    /// Network interface that it belongs to.
    interface: Option<String>,
    subject: Option<Subject>,
}

/// Options of tuned's plugins, by the end of the path that they set (profiles of tuned 2.20 and
/// later, tuned-profiles(7)).
const TUNED: &[(&str, &[&str])] = &[
    ("/scaling_governor", &["governor"]),
    ("/energy_performance_preference", &["energy_performance_preference", "energy_perf_bias"]),
    ("/energy_perf_bias", &["energy_perf_bias"]),
    ("/min_perf_pct", &["min_perf_pct"]),
    ("/max_perf_pct", &["max_perf_pct"]),
    ("/no_turbo", &["no_turbo"]),
    ("/boost", &["boost"]),
    ("/scaling_min_freq", &["min_perf_pct", "scaling_min_freq"]),
    ("/scaling_max_freq", &["max_perf_pct", "scaling_max_freq"]),
    ("/cpu_dma_latency", &["force_latency"]),
    ("/transparent_hugepage/enabled", &["transparent_hugepages", "transparent_hugepage"]),
    ("/transparent_hugepage/defrag", &["transparent_hugepage.defrag"]),
    ("/queue/scheduler", &["elevator"]),
    ("/queue/read_ahead_kb", &["readahead"]),
    ("/workqueue/cpumask", &["workqueue", "cpumask"]),
    ("/smp_affinity", &["irq_smp_affinity", "isolated_cores", "default_irq_smp_affinity"]),
    ("/smp_affinity_list", &["irq_smp_affinity", "isolated_cores", "default_irq_smp_affinity"]),
    ("/default_smp_affinity", &["default_irq_smp_affinity", "isolated_cores"]),
];

impl Words {
    fn of(root: &Root, change: &Change) -> Self {
        match change {
            Change::Value { path, .. } => Self::of_path(root, path, None),
            Change::Hotplug { path, .. } => {
                Self { subject: Some(Subject::Hotplug), ..Self::of_path(root, path, None) }
            }
            Change::Irq { irq, .. } => {
                let path = format!("/proc/irq/{}/smp_affinity_list", irq.number);
                Self::of_path(root, &path, Some((irq.number, &irq.actions)))
            }
            Change::Task { task, .. } => Self {
                subject: Some(Subject::Task),
                tuned: vec!["isolated_cores".into(), task_word(&task.comm)],
                ..Self::default()
            },
            _ => Self::default(),
        }
    }

    fn of_path(root: &Root, path: &str, irq: Option<(u32, &str)>) -> Self {
        let sysctl = path.strip_prefix("/proc/sys/").map(str::to_owned);
        let mut tuned: Vec<String> = vec![path.to_owned()];
        tuned.extend(sysctl.iter().flat_map(|name| [name.clone(), name.replace('/', ".")]));
        let known = TUNED.iter().find(|(end, _)| path.ends_with(end));
        tuned.extend(known.into_iter().flat_map(|(_, words)| words.iter().map(|&w| w.to_owned())));
        let interface = match irq {
            Some((number, actions)) => interface_of(root, number, actions),
            None => path
                .strip_prefix("/sys/class/net/")
                .or_else(|| path.split_once("/net/").map(|(_, rest)| rest))
                .filter(|_| path.starts_with("/sys/"))
                .and_then(|rest| rest.split('/').next())
                .map(str::to_owned),
        };
        Self { subject: subject_of(path), path: Some(path.to_owned()), sysctl, tuned, interface }
    }

    fn is_subject(&self, subject: Subject) -> bool {
        self.subject == Some(subject)
    }
}

fn subject_of(path: &str) -> Option<Subject> {
    const POWER: [&str; 7] = [
        "/cpufreq/",
        "/cpuidle/",
        "/intel_pstate/",
        "/amd_pstate/",
        "/power/energy_perf_bias",
        "/firmware/acpi/platform_profile",
        "/powercap/",
    ];
    let has = |part: &&str| path.contains(*part);
    match () {
        () if path.starts_with("/proc/irq/") => Some(Subject::Irq),
        () if POWER.iter().any(has) => Some(Subject::Power),
        () if path.starts_with("/sys/devices/system/cpu/") => Some(Subject::Hotplug),
        () if path.starts_with("/sys/") => Some(Subject::Device),
        () => None,
    }
}

/// Threads of the kernel have a number or a CPU after their name, and tuned's profiles a pattern:
/// `group.ksoftirqd=0:f:2:*:ksoftirqd.*`.
fn task_word(comm: &str) -> String {
    comm.split(['/', '-']).next().unwrap_or(comm).to_owned()
}

/// The interface of an interrupt: its device lists it, or a handler bears its name.
fn interface_of(root: &Root, number: u32, actions: &str) -> Option<String> {
    let interfaces = root.list_dir("/sys/class/net");
    let is_its = |name: &&String| {
        root.exists(&format!("/sys/class/net/{name}/device/msi_irqs/{number}"))
            || actions.split([',', '-', ' ', '@', ':']).any(|word| word == name.as_str())
    };
    interfaces.value()?.iter().find(is_its).cloned()
}
