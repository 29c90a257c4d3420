//! Files that set values at boot, when a device comes, or at a program's request: which of
//! them name the thing, and in which line.

use std::collections::BTreeMap;

use super::{
    clue::{Clue, Suspect, group_of},
    words::{Subject, Words},
};
use crate::{Root, facts::platform::sysctl::FOLDERS};

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
fn lines(root: &Root, path: &str, fits: impl Fn(&str) -> bool) -> Vec<Clue> {
    let text = root.read_text(path);
    let lines = text.value().map(String::as_str).unwrap_or_default().lines().enumerate();
    lines
        .map(|(at, line)| (at, line.trim()))
        .filter(|(_, line)| !line.starts_with(['#', ';']) && fits(line))
        .take(CLUES_MAX)
        .map(|(at, line)| Clue {
            path: path.to_owned(),
            line: u32::try_from(at + 1).ok(),
            text: line.chars().take(TEXT_MAX).collect(),
        })
        .collect()
}

/// Files of sysctl.d that set the same key; `*` in them matches any part of a name.
pub(super) fn sysctl(root: &Root, words: &Words) -> Vec<Suspect> {
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
    let clues: Vec<Clue> = files.iter().flat_map(|path| lines(root, path, names)).collect();
    let why = "sets it at boot, when a package is installed and when a user runs \
               `sysctl --system`; change the line";
    let of = |clue: Clue| Suspect::new(&format!("sysctl, {}", clue.path), why, vec![clue]);
    clues.into_iter().filter_map(of).collect()
}

/// Rules of udev that write the attribute.
pub(super) fn udev(root: &Root, words: &Words) -> Vec<Suspect> {
    let Some(path) = &words.path else { return Vec::new() };
    let folders = [
        "/etc/udev/rules.d",
        "/run/udev/rules.d",
        "/usr/local/lib/udev/rules.d",
        "/usr/lib/udev/rules.d",
        "/lib/udev/rules.d",
    ];
    let clues: Vec<Clue> = configured(root, &folders, ".rules")
        .iter()
        .flat_map(|file| lines(root, file, |line| writes(line, path)))
        .collect();
    let why = "writes it when the device comes or changes (also at `udevadm trigger`)";
    let of = |clue: Clue| Suspect::new(&format!("udev, {}", clue.path), why, vec![clue]);
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
pub(super) fn tuned(root: &Root, words: &Words) -> Vec<Suspect> {
    const ACTIVE: &str = "/etc/tuned/active_profile";
    let Some(group) = group_of(root, "tuned.service") else { return Vec::new() };
    let active = root.trimmed(ACTIVE).value().cloned().unwrap_or_default();
    let mut clues = vec![Clue::new(group, "tuned.service runs"), Clue::new(ACTIVE, active.clone())];
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

pub(super) fn power_settings(root: &Root, words: &Words) -> Vec<Suspect> {
    let Some(path) = words.path.as_ref().filter(|_| words.is(Subject::Power)) else {
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
