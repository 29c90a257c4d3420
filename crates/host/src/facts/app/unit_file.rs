//! Settings of a systemd unit, from its file and drop-ins (systemd.unit(5), "Unit File Load Path").
//!
//! Neither the bus nor systemctl is called, so that a captured machine gives the same result. What
//! the manager's own defaults add (system.conf) is not here.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Reading, Root};

/// Folders, the first wins.
const FOLDERS: &[&str] = &[
    "/etc/systemd/system.control",
    "/run/systemd/system.control",
    "/run/systemd/transient",
    "/run/systemd/generator.early",
    "/etc/systemd/system",
    "/etc/systemd/system.attached",
    "/run/systemd/system",
    "/run/systemd/system.attached",
    "/run/systemd/generator",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
    "/run/systemd/generator.late",
];

/// Settings that are kept: those that decide about real-time operation (systemd.exec(5),
/// systemd.resource-control(5)).
const KEPT: &[&str] = &[
    "AllowedCPUs",
    "AllowedMemoryNodes",
    "AmbientCapabilities",
    "CapabilityBoundingSet",
    "CPUAffinity",
    "CPUQuota",
    "CPUSchedulingPolicy",
    "CPUSchedulingPriority",
    "CPUSchedulingResetOnFork",
    "LimitMEMLOCK",
    "LimitRTPRIO",
    "LimitRTTIME",
    "MemoryHigh",
    "MemoryMax",
    "Nice",
    "NUMAMask",
    "NUMAPolicy",
    "OOMScoreAdjust",
    "RestrictRealtime",
    "SystemCallFilter",
    "TimerSlackNSec",
    "User",
];

/// Settings whose lines add up, joined by `; `; an empty line clears them.
const LISTS: &[&str] = &[
    "AllowedCPUs",
    "AmbientCapabilities",
    "CapabilityBoundingSet",
    "CPUAffinity",
    "SystemCallFilter",
];

/// Whether a setting is read.
pub(crate) fn is_setting(key: &str) -> bool {
    KEPT.contains(&key)
}

/// What a unit's files say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UnitFile {
    /// Name, e.g. `arm.service`.
    pub name: String,
    /// Its file, then its drop-ins in the order in which they are applied.
    pub files: Vec<String>,
    pub settings: BTreeMap<String, Assignment>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Assignment {
    /// Value as it is written.
    pub value: String,
    /// File of the last line that set it.
    pub file: String,
}

/// The files of the unit that a process runs in. `cgroup` says which manager started it.
pub(super) fn read(
    root: &Root,
    cgroup: &Reading<String>,
    unit: &Reading<Option<String>>,
) -> Reading<Option<UnitFile>> {
    unit.clone().and_then(|path, name| {
        let Some(name) = name else {
            return Reading::known(path, None);
        };
        if cgroup.value().is_some_and(|text| is_of_user(text, &name)) {
            let why = "a unit of a user's service manager: its files are not looked for";
            return Reading::denied(format!("files of {name}"), why);
        }
        let Some(found) = find(root, &name) else {
            return Reading::absent(format!("files of {name}"));
        };
        parse_all(root, &name, found)
    })
}

/// Whether the group of a unit lies below the group of a user's manager.
fn is_of_user(cgroup: &str, unit: &str) -> bool {
    let below_manager = |line: &str| {
        let mut parts = line
            .split('/')
            .skip_while(|part| !(part.starts_with("user@") && part.ends_with(".service")));
        parts.next().is_some_and(|manager| manager != unit) && parts.any(|part| part == unit)
    };
    cgroup.lines().any(below_manager)
}

/// The unit's file, or its template's, and its drop-ins by name; `None`: no file.
pub(super) fn find(root: &Root, name: &str) -> Option<(String, Vec<String>)> {
    let listed: Vec<(&str, Vec<String>)> = FOLDERS
        .iter()
        .filter_map(|folder| Some((*folder, root.list_dir(folder).value()?.clone())))
        .collect();
    let file_of = |name: &str| {
        let has = |entries: &[String]| entries.iter().any(|entry| entry == name);
        let found = listed.iter().find(|(_, entries)| has(entries));
        found.map(|(folder, _)| format!("{folder}/{name}"))
    };
    let template = template(name);
    let file = file_of(name).or_else(|| file_of(template.as_deref()?))?;
    let mut drop_ins: BTreeMap<String, String> = BTreeMap::new();
    for folder_name in drop_in_folders(name, template.as_deref()) {
        for (folder, entries) in &listed {
            if !entries.contains(&folder_name) {
                continue;
            }
            let path = format!("{folder}/{folder_name}");
            for entry in root.list_dir(&path).value().into_iter().flatten() {
                if entry.ends_with(".conf") {
                    drop_ins.entry(entry.clone()).or_insert_with(|| format!("{path}/{entry}"));
                }
            }
        }
    }
    Some((file, drop_ins.into_values().collect()))
}

/// `a@.service` for `a@b.service`.
fn template(name: &str) -> Option<String> {
    let (stem, kind) = name.rsplit_once('.')?;
    let (before, _) = stem.split_once('@')?;
    Some(format!("{before}@.{kind}"))
}

/// Names of folders with drop-ins, the most specific first: the unit's, its template's, those of
/// the parts of its name before a dash, its kind's.
fn drop_in_folders(name: &str, template: Option<&str>) -> Vec<String> {
    let mut folders = vec![format!("{name}.d")];
    folders.extend(template.map(|template| format!("{template}.d")));
    if let Some((stem, kind)) = name.rsplit_once('.') {
        let dashes: Vec<usize> = stem.match_indices('-').map(|(at, _)| at).collect();
        folders.extend(dashes.iter().rev().map(|&at| format!("{}.{kind}.d", &stem[..=at])));
        folders.push(format!("{kind}.d"));
    }
    folders
}

fn parse_all(
    root: &Root,
    name: &str,
    (file, drop_ins): (String, Vec<String>),
) -> Reading<Option<UnitFile>> {
    let files: Vec<String> = std::iter::once(file).chain(drop_ins).collect();
    let mut settings = BTreeMap::new();
    for path in &files {
        let text = root.read_text(path);
        let Some(text) = text.value() else {
            return text.map(|_| None);
        };
        parse(text, path, &mut settings);
    }
    let unit = UnitFile { name: name.into(), settings, files };
    Reading::known(unit.files.join(", "), Some(unit))
}

/// Adds the settings of one file (systemd.syntax(7)): a line that ends in a backslash goes on in
/// the next, comments between them are left out.
fn parse(text: &str, file: &str, settings: &mut BTreeMap<String, Assignment>) {
    let mut whole = String::new();
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(start) = line.strip_suffix('\\') {
            whole.push_str(start);
            whole.push(' ');
            continue;
        }
        whole.push_str(line);
        assign(&std::mem::take(&mut whole), file, settings);
    }
    assign(&whole, file, settings);
}

fn assign(line: &str, file: &str, settings: &mut BTreeMap<String, Assignment>) {
    let Some((key, value)) = line.split_once('=') else {
        return;
    };
    let (key, value) = (key.trim(), value.trim());
    if !KEPT.contains(&key) {
        return;
    }
    if value.is_empty() {
        settings.remove(key);
        return;
    }
    let before = settings.get(key).filter(|_| LISTS.contains(&key));
    let value = before.map_or_else(|| value.into(), |old| format!("{}; {value}", old.value));
    settings.insert(key.into(), Assignment { value, file: file.into() });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_on_lists_add_up_and_an_empty_value_clears() {
        let mut settings = BTreeMap::new();
        let text = "[Service]\nCPUAffinity=2 \\\n# why\n 3\nNice=5\nRestrictRealtime = yes\nX=1\n";
        parse(text, "a", &mut settings);
        parse("[Service]\nCPUAffinity=5\nNice=\nLimitRTPRIO=95", "b", &mut settings);
        let shown: Vec<_> =
            settings.iter().map(|(key, set)| (key.as_str(), set.value.as_str())).collect();
        let expected =
            [("CPUAffinity", "2  3; 5"), ("LimitRTPRIO", "95"), ("RestrictRealtime", "yes")];
        assert_eq!(shown, expected);
        assert_eq!(settings["CPUAffinity"].file, "b");
    }

    #[test]
    fn folders_of_drop_ins() {
        let name = "a-b@c.service";
        let template = template(name);
        assert_eq!(template.as_deref(), Some("a-b@.service"));
        let folders = drop_in_folders(name, template.as_deref());
        assert_eq!(folders, ["a-b@c.service.d", "a-b@.service.d", "a-.service.d", "service.d"]);
    }

    #[test]
    fn units_of_a_user() {
        let line = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service\n";
        assert!(is_of_user(line, "x.service"));
        assert!(!is_of_user(line, "user@1000.service"));
        assert!(!is_of_user("0::/system.slice/x.service\n", "x.service"));
    }
}
