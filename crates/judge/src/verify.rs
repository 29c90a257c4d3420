//! After a boot: the effect of each word requested on the kernel's command line.
//!
//! A word can be missing, be refused by the kernel in silence, or have less effect than it says.
//! Where the kernel shows the effect is one table (`PLACES`); what it shows is read by the caller
//! and handed in.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use rtproof_host::{
    CpuList, Facts, Reading,
    facts::kernel::{CommandLine, Parameter, Preemption},
};

/// Whether a boot parameter took effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Verified {
    pub parameter: String,
    /// Whether it must be absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub removes: bool,
    /// Words with its name on the command line of the running kernel; `None`: not readable.
    pub on_command_line: Option<Vec<String>>,
    pub effect: WordEffect,
    /// Where the kernel shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// What it shows there, or why that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// Effect of each word; `shown` has the readings of [`paths`].
pub fn words(facts: &Facts, request: &[WantedWord], shown: &ShownValues) -> Vec<Verified> {
    request.iter().map(|request| word(facts, request, shown)).collect()
}

fn word(facts: &Facts, request: &WantedWord, shown: &ShownValues) -> Verified {
    let parameter = request.parameter.clone();
    let removes = request.removes;
    let cmdline = &facts.kernel.cmdline;
    let Some(line) = cmdline.value() else {
        let WordObservation { effect, path, found } = WordObservation::unreadable(cmdline);
        return Verified { parameter, removes, on_command_line: None, effect, path, found };
    };
    let wanted = CommandLine::parse(&parameter);
    let Some(wanted) = wanted.parameters.first() else {
        let found = Some("no parameter".into());
        let effect = WordEffect::CannotTell;
        let on_command_line = Some(Vec::new());
        return Verified { parameter, removes, on_command_line, effect, path: None, found };
    };
    let given: Vec<Option<&str>> = line.all(&wanted.key).collect();
    let write = |value: &Option<&str>| match value {
        Some(value) => format!("{}={value}", wanted.key),
        None => wanted.key.clone(),
    };
    let on_command_line: Vec<String> = given.iter().map(write).collect();
    let seen = match () {
        () if removes => {
            let effect = if given.is_empty() { WordEffect::Effective } else { WordEffect::Missing };
            WordObservation { effect, path: Some(cmdline.path.clone()), found: None }
        }
        () if !given.contains(&wanted.value.as_deref()) => WordObservation {
            effect: WordEffect::Missing,
            path: Some(cmdline.path.clone()),
            found: None,
        },
        () if is_unknown(facts, &wanted.key) => WordObservation {
            effect: WordEffect::Ignored,
            path: Some(facts.platform.log.path.clone()),
            found: Some("the kernel says that it does not know it".into()),
        },
        () => observe(facts, wanted, shown),
    };
    let WordObservation { effect, path, found } = seen;
    Verified { parameter, removes, on_command_line: Some(on_command_line), effect, path, found }
}

/// Whether the kernel said that it did not take a parameter.
fn is_unknown(facts: &Facts, key: &str) -> bool {
    let log = facts.platform.log.value();
    let names = log.and_then(|log| log.unknown_parameters.as_ref());
    let plain = |name: &str| name.replace('-', "_");
    names.is_some_and(|names| names.iter().any(|name| plain(name) == plain(key)))
}

// A word of the command line, what was observed of it, and whether it took effect.

/// What the kernel shows, by path.
pub type ShownValues = BTreeMap<String, Reading<String>>;

/// A word that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedWord {
    /// The word, e.g. `isolcpus=2-3`; the name alone if it must be absent.
    pub parameter: String,
    /// Whether it must be absent.
    pub removes: bool,
}

/// Effect of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WordEffect {
    /// The kernel shows the requested value; a word that must be absent is absent.
    Effective,
    /// It is on the command line, and the kernel did not know it.
    Ignored,
    /// It is on the command line, and the kernel shows something else.
    NotEffective,
    /// It is not on the command line, or is still there.
    Missing,
    /// It is on the command line, and nothing shows its effect.
    NotShown,
    /// What would show it cannot be read.
    CannotTell,
}

impl WordEffect {
    pub const fn text(self) -> &'static str {
        match self {
            Self::Effective => "effective",
            Self::Ignored => "ignored by the kernel",
            Self::NotEffective => "not effective",
            Self::Missing => "not as asked on the command line",
            Self::NotShown => "not shown by the kernel",
            Self::CannotTell => "cannot tell",
        }
    }

    /// Whether something is not as it was asked for.
    pub const fn is_bad(self) -> bool {
        matches!(self, Self::Ignored | Self::NotEffective | Self::Missing)
    }
}

/// Observation at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WordObservation {
    effect: WordEffect,
    path: Option<String>,
    found: Option<String>,
}

impl WordObservation {
    const NOWHERE: Self = Self { effect: WordEffect::NotShown, path: None, found: None };

    fn at(path: &str, found: impl Into<String>, is_as_asked: bool) -> Self {
        let effect = if is_as_asked { WordEffect::Effective } else { WordEffect::NotEffective };
        Self { effect, path: Some(path.to_owned()), found: Some(found.into()) }
    }

    fn unreadable<T>(reading: &Reading<T>) -> Self {
        let (path, found) = (Some(reading.path.clone()), reading.why_unknown());
        Self { effect: WordEffect::CannotTell, path, found }
    }
}

/// A parameter, and the file that shows its effect.
struct Place {
    /// Its name, with underscores.
    key: &'static str,
    /// The value that it is about; `None`: any.
    value: Option<&'static str>,
    path: &'static str,
    shows: Shows,
}

/// What a file has to hold.
enum Shows {
    /// Every CPU of the parameter's list, flags before it aside.
    Cpus,
    /// The CPUs of the list as a mask; CPU 0, which the kernel adds, may be there as well.
    Mask,
    /// The value, or the choice in brackets; numbers as numbers.
    Value,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// The value as the first number.
    First,
    /// A text that begins so; if it begins with the second the effect is unknown.
    Begins(&'static str, &'static str),
    /// The value; not there at all when the parameter is `disable`.
    ValueOrAbsent,
}

const fn place(key: &'static str, path: &'static str, shows: Shows) -> Place {
    Place { key, value: None, path, shows }
}

const fn when(key: &'static str, value: &'static str, path: &'static str, shows: Shows) -> Place {
    Place { key, value: Some(value), path, shows }
}

const PLACES: &[Place] = &[
    place("isolcpus", "/sys/devices/system/cpu/isolated", Shows::Cpus),
    place("nohz_full", "/sys/devices/system/cpu/nohz_full", Shows::Cpus),
    place("irqaffinity", "/proc/irq/default_smp_affinity", Shows::Mask),
    place("workqueue.unbound_cpus", "/sys/devices/virtual/workqueue/cpumask", Shows::Mask),
    place(
        "nosmt",
        "/sys/devices/system/cpu/smt/control",
        Shows::OneOf(&["off", "forceoff", "notsupported", "notimplemented"]),
    ),
    when("idle", "poll", "/sys/devices/system/cpu/cpuidle/current_driver", Shows::OneOf(&["none"])),
    place("intel_pstate", "/sys/devices/system/cpu/intel_pstate/status", Shows::ValueOrAbsent),
    place("amd_pstate", "/sys/devices/system/cpu/amd_pstate/status", Shows::ValueOrAbsent),
    place("transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled", Shows::Value),
    place(
        "clocksource",
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        Shows::Value,
    ),
    place("nosoftlockup", "/proc/sys/kernel/soft_watchdog", Shows::OneOf(&["0"])),
    place("nowatchdog", "/proc/sys/kernel/watchdog", Shows::OneOf(&["0"])),
    place("nmi_watchdog", "/proc/sys/kernel/nmi_watchdog", Shows::Value),
    when(
        "mce",
        "ignore_ce",
        "/sys/devices/system/machinecheck/machinecheck0/ignore_ce",
        Shows::OneOf(&["1"]),
    ),
    when(
        "mce",
        "no_cmci",
        "/sys/devices/system/machinecheck/machinecheck0/cmci_disabled",
        Shows::OneOf(&["1"]),
    ),
    when(
        "mitigations",
        "off",
        "/sys/devices/system/cpu/vulnerabilities/spectre_v2",
        Shows::Begins("Vulnerable", "Not affected"),
    ),
    when("numa_balancing", "disable", "/proc/sys/kernel/numa_balancing", Shows::OneOf(&["0"])),
    place("noautogroup", "/proc/sys/kernel/sched_autogroup_enabled", Shows::OneOf(&["0"])),
    place("panic", "/proc/sys/kernel/panic", Shows::Value),
    place("loglevel", "/proc/sys/kernel/printk", Shows::First),
];

/// Parameters whose effect is among the facts.
type Fact = fn(&Facts, &str) -> WordObservation;

const FACTS: &[(&str, Fact)] =
    &[("rcu_nocbs", rcu_nocbs), ("preempt", preempt), ("systemd.cpu_affinity", init_cpus)];

/// The files that show the effects of these words: to be read for [`words`].
pub fn paths(wanted: &[WantedWord]) -> Vec<String> {
    let of = |wanted: &WantedWord| {
        let (key, value) = match wanted.parameter.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (wanted.parameter.as_str(), None),
        };
        path_of(key, value)
    };
    wanted.iter().filter_map(of).collect()
}

/// The file of one parameter.
fn path_of(key: &str, value: Option<&str>) -> Option<String> {
    let name = key.replace('-', "_");
    if let Some(place) = place_of(&name, value) {
        return Some(place.path.to_owned());
    }
    if FACTS.iter().any(|(key, _)| *key == name) {
        return None;
    }
    // What the line says goes into a path: names have no folders in them.
    let is_name = |name: &str| !name.is_empty() && !name.contains('/') && name != "..";
    let (module, parameter) = name.split_once('.').unwrap_or(("kernel", &name));
    (is_name(module) && is_name(parameter))
        .then(|| format!("/sys/module/{module}/parameters/{parameter}"))
}

fn place_of(name: &str, value: Option<&str>) -> Option<&'static Place> {
    let is = |place: &&Place| {
        place.key == name && place.value.is_none_or(|wanted| Some(wanted) == value)
    };
    PLACES.iter().find(is)
}

/// What the kernel shows of a parameter that is on its command line.
fn observe(facts: &Facts, wanted: &Parameter, shown: &ShownValues) -> WordObservation {
    let name = wanted.key.replace('-', "_");
    let value = wanted.value.as_deref();
    if let Some((_, look)) = FACTS.iter().find(|(key, _)| *key == name) {
        return look(facts, value.unwrap_or_default());
    }
    let Some(path) = path_of(&name, value) else { return WordObservation::NOWHERE };
    let Some(reading) = shown.get(&path) else { return WordObservation::NOWHERE };
    match place_of(&name, value) {
        Some(place) => at_place(facts, &place.shows, value, reading),
        // Not every parameter of a module has a file.
        None if reading.is_absent() => WordObservation::NOWHERE,
        None => compare(reading, |found| is_value(found, value.unwrap_or("1"))),
    }
}

fn at_place(
    facts: &Facts,
    shows: &Shows,
    value: Option<&str>,
    reading: &Reading<String>,
) -> WordObservation {
    let value = value.unwrap_or_default();
    match shows {
        Shows::Cpus => cpus(facts, value, reading),
        Shows::Mask => mask(facts, value, reading),
        Shows::Value => compare(reading, |found| is_value(found, value)),
        Shows::OneOf(words) => compare(reading, |found| words.contains(&found)),
        Shows::First => compare(reading, |found| found.split_whitespace().next() == Some(value)),
        Shows::Begins(_, never) if reading.value().is_some_and(|it| it.starts_with(never)) => {
            WordObservation { effect: WordEffect::NotShown, ..compare(reading, |_| true) }
        }
        Shows::Begins(text, _) => compare(reading, |found| found.starts_with(text)),
        Shows::ValueOrAbsent if value == "disable" && reading.is_absent() => {
            WordObservation::at(&reading.path, "not there", true)
        }
        Shows::ValueOrAbsent => compare(reading, |found| is_value(found, value)),
    }
}

fn compare(reading: &Reading<String>, is_as_asked: impl FnOnce(&str) -> bool) -> WordObservation {
    match reading.value() {
        Some(found) => WordObservation::at(&reading.path, found, is_as_asked(found.trim())),
        None => WordObservation::unreadable(reading),
    }
}

/// Whether a file shows a value: as text, as the choice in brackets, as a number, or as a switch.
fn is_value(found: &str, wanted: &str) -> bool {
    let choice = found.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    let found = choice.map_or(found, |(choice, _)| choice);
    let plain = |text: &str| match text {
        "Y" | "y" | "on" | "yes" | "true" => "1".to_owned(),
        "N" | "n" | "off" | "no" | "false" => "0".to_owned(),
        text => text.to_owned(),
    };
    found == wanted || plain(found) == plain(wanted) || is_same_number(found, wanted)
}

fn is_same_number(one: &str, other: &str) -> bool {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    number(one).is_some_and(|one| number(other) == Some(one))
}

/// The CPUs of a parameter, with `N` for the last one and flags before the list.
fn list(facts: &Facts, value: &str) -> Option<(CpuList, bool)> {
    let mut rest = value;
    let mut flags = Vec::new();
    while rest.starts_with(|c: char| c.is_ascii_lowercase()) {
        let (flag, after) = rest.split_once(',')?;
        flags.push(flag);
        rest = after;
    }
    let set = facts.cpus.possible.value().or_else(|| facts.cpus.online.value());
    let last = set.and_then(|cpus| cpus.as_slice().last().copied());
    let is_domain = flags.contains(&"domain") || flags.is_empty();
    Some((CpuList::parse(rest, last).ok()?, is_domain))
}

fn cpus(facts: &Facts, value: &str, reading: &Reading<String>) -> WordObservation {
    let Some((wanted, is_domain)) = list(facts, value) else {
        // A list that the kernel cannot read either.
        return compare(reading, |_| false);
    };
    if !is_domain {
        return WordObservation::NOWHERE;
    }
    let possible = facts.cpus.possible.value().or_else(|| facts.cpus.online.value());
    let wanted = possible.map_or(wanted.clone(), |possible| wanted.intersection(possible));
    compare(reading, |found| {
        let found = if found == "(null)" { "" } else { found };
        CpuList::parse(found, None).is_ok_and(|found| wanted.difference(&found).is_empty())
    })
}

fn mask(facts: &Facts, value: &str, reading: &Reading<String>) -> WordObservation {
    let Some((wanted, _)) = list(facts, value) else { return compare(reading, |_| false) };
    let possible = facts.cpus.possible.value().or_else(|| facts.cpus.online.value());
    let there = |cpus: CpuList| possible.map_or(cpus.clone(), |all| cpus.intersection(all));
    let wanted = there(wanted);
    compare(reading, |found| {
        CpuList::parse_mask(found).is_ok_and(|found| {
            let found = there(found);
            // irq_affinity_setup() adds the CPU that boots.
            let more = found.difference(&wanted);
            wanted.difference(&found).is_empty() && more.difference(&CpuList::new([0])).is_empty()
        })
    })
}

/// The kernel names the CPUs in its log; the threads that run the callbacks are there in any case.
fn rcu_nocbs(facts: &Facts, value: &str) -> WordObservation {
    let Some((wanted, _)) = list(facts, value) else { return WordObservation::NOWHERE };
    let log = &facts.platform.log;
    if let Some(offloaded) = log.value().and_then(|log| log.rcu_offloaded.as_ref()) {
        let found = format!("Offload RCU callbacks from CPUs: {offloaded}");
        return WordObservation::at(&log.path, found, wanted.difference(offloaded).is_empty());
    }
    let tasks = &facts.placement;
    let Some(groups) = tasks.value() else { return WordObservation::unreadable(tasks) };
    let threads: u32 = groups
        .iter()
        .filter(|group| group.kernel_thread)
        .filter(|group| group.name.starts_with("rcuop") || group.name.starts_with("rcuos"))
        .map(|group| group.count)
        .sum();
    if groups.iter().all(|group| !group.kernel_thread) {
        let found = Some("no kernel thread is visible here".into());
        return WordObservation {
            effect: WordEffect::CannotTell,
            path: Some(tasks.path.clone()),
            found,
        };
    }
    let is_enough = usize::try_from(threads).is_ok_and(|threads| threads >= wanted.len());
    WordObservation::at(&tasks.path, format!("{threads} threads rcuop"), is_enough)
}

fn preempt(facts: &Facts, value: &str) -> WordObservation {
    let reading = &facts.kernel.preemption;
    let Some(found) = reading.value() else { return WordObservation::unreadable(reading) };
    let name = match found {
        Preemption::Rt => "rt",
        Preemption::Full => "full",
        Preemption::Lazy => "lazy",
        Preemption::Voluntary => "voluntary",
        Preemption::None => "none",
        Preemption::DynamicUnknown => {
            let found = Some("which model is in force cannot be read".into());
            let path = Some(reading.path.clone());
            return WordObservation { effect: WordEffect::CannotTell, path, found };
        }
    };
    WordObservation::at(&reading.path, name, name == value)
}

fn init_cpus(facts: &Facts, value: &str) -> WordObservation {
    let reading = &facts.isolation.init_cpus;
    let Some(found) = reading.value() else { return WordObservation::unreadable(reading) };
    // systemd takes spaces and commas between the parts.
    let wanted = CpuList::parse(&value.replace(' ', ","), None);
    WordObservation::at(
        &reading.path,
        found.to_string(),
        wanted.is_ok_and(|wanted| wanted == *found),
    )
}
