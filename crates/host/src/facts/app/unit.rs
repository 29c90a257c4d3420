//! The systemd unit of an application, and its control groups.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuList, Reading, Root};

// Control groups of a process: what they limit, from its own group up to the top.
//
// A limit anywhere on the way holds for the process. A group without the file has no limit of its
// own: the controller is not enabled in it, or it is the root. That is known where the group's
// folder can be listed.

/// Maximum depth of groups.
const DEPTH_MAX: usize = 32;

/// memory.limit_in_bytes of version 1 that is no limit: the largest number of whole pages.
const NO_LIMIT_BYTES: u64 = 1 << 62;

/// Groups by controller, the process' own first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Groups {
    /// Lines of /proc/PID/cgroup.
    pub paths: Reading<String>,
    pub cpu: Reading<Vec<CpuGroup>>,
    /// CPUs and memory nodes.
    pub cpuset: Reading<Vec<CpusetGroup>>,
    pub memory: Reading<Vec<MemoryGroup>>,
}

/// What a group says of CPU time. `None`: the group has no such file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpuGroup {
    pub folder: String,
    /// Bandwidth of ordinary tasks (cpu.max; version 1: cpu.cfs_quota_us and cpu.cfs_period_us).
    pub quota: Reading<Option<Quota>>,
    /// Periods in which its tasks were stopped (cpu.stat, nr_throttled).
    pub throttled: Reading<Option<u64>>,
    /// Time of real-time tasks in microseconds of each period (version 1 with
    /// CONFIG_RT_GROUP_SCHED: cpu.rt_runtime_us). The root's is sched_rt_runtime_us and no limit
    /// of a group: `None`, too.
    pub rt_runtime_us: Reading<Option<i64>>,
}

/// Bandwidth of ordinary tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Quota {
    /// CPU time in each period, microseconds; `None` is no limit.
    pub max_us: Option<u64>,
    pub period_us: u64,
}

/// What a group says of CPUs and memory nodes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CpusetGroup {
    pub folder: String,
    /// CPUs in force (cpuset.cpus.effective; version 1: cpuset.effective_cpus).
    pub cpus: Reading<Option<CpuList>>,
    /// Memory nodes in force.
    pub mems: Reading<Option<CpuList>>,
    /// Kind of partition (cpuset.cpus.partition): member, root, isolated.
    pub partition: Reading<Option<String>>,
}

/// What a group says of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryGroup {
    pub folder: String,
    /// Least of memory.high and memory.max in bytes (version 1: memory.limit_in_bytes); 0 in
    /// neither is no limit: `None`.
    pub limit_bytes: Reading<Option<u64>>,
    /// Times the limit was met (memory.events, high and max; version 1: memory.failcnt).
    pub hits: Reading<Option<u64>>,
}

/// Where a controller has its groups.
struct Hierarchy {
    is_v1: bool,
    /// Folders, the process' own first.
    folders: Vec<String>,
}

impl Groups {
    /// Reads the groups that `cgroup`, a process' /proc/PID/cgroup, names.
    pub(super) fn read(root: &Root, cgroup: &Reading<String>) -> Self {
        Self {
            paths: cgroup.clone().map(|text| text.trim().to_owned()),
            cpu: of(root, cgroup, "cpu", cpu),
            cpuset: of(root, cgroup, "cpuset", cpuset),
            memory: of(root, cgroup, "memory", memory),
        }
    }
}

/// The groups of a controller, the innermost first.
fn of<T>(
    root: &Root,
    cgroup: &Reading<String>,
    controller: &str,
    read: fn(&Folder<'_>, bool) -> T,
) -> Reading<Vec<T>> {
    let found = cgroup.clone().and_then(|path, text| hierarchy(root, path, &text, controller));
    found.map(|found| {
        let folders = found.folders.iter().map(|folder| Folder::list(root, folder));
        folders.map(|folder| read(&folder, found.is_v1)).collect()
    })
}

/// Where the groups of a controller are: in the hierarchy of version 1 that has it, else in that
/// of version 2.
fn hierarchy(root: &Root, from: String, text: &str, controller: &str) -> Reading<Hierarchy> {
    let mut lines = text.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':');
        let _id = parts.next()?;
        Some((parts.next()?, parts.next()?))
    });
    let v1 = lines.clone().find(|(names, _)| names.split(',').any(|name| name == controller));
    let v2 = lines.find(|(names, _)| names.is_empty());
    let (base, path) = match (v1, v2) {
        (Some((_, path)), _) => (format!("/sys/fs/cgroup/{controller}"), path),
        (None, Some((_, path))) => (unified(root), path),
        (None, None) => return Reading::malformed(from, text, format!("a group of {controller}")),
    };
    let path = path.strip_suffix(" (deleted)").unwrap_or(path);
    if path.contains("/..") {
        return Reading::denied(from, format!("{path} is outside of this cgroup namespace"));
    }
    let mut folders = vec![base.clone()];
    for name in path.split('/').filter(|name| !name.is_empty()).take(DEPTH_MAX) {
        let above = folders.last().unwrap_or(&base);
        folders.push(format!("{above}/{name}"));
    }
    folders.reverse();
    // A group that is not there means nothing: another mount, or none.
    let own = folders.first().map(|folder| root.list_dir(folder));
    match own.filter(|own| own.value().is_none()) {
        Some(own) => own.map(|_| Hierarchy { is_v1: false, folders: Vec::new() }),
        None => Reading::known(from, Hierarchy { is_v1: v1.is_some(), folders }),
    }
}

/// Where version 2 is mounted: on top, or beside version 1.
fn unified(root: &Root) -> String {
    let is_on_top = root.read_text("/sys/fs/cgroup/cgroup.controllers").value().is_some();
    if is_on_top { "/sys/fs/cgroup".into() } else { "/sys/fs/cgroup/unified".into() }
}

/// A group's folder and the names in it.
struct Folder<'a> {
    root: &'a Root,
    path: &'a str,
    names: Option<Vec<String>>,
}

impl<'a> Folder<'a> {
    fn list(root: &'a Root, path: &'a str) -> Self {
        Self { root, path, names: root.list_dir(path).value().cloned() }
    }

    fn lacks(&self, name: &str) -> bool {
        self.names.as_ref().is_some_and(|names| !names.iter().any(|found| found == name))
    }

    /// Whether it is the root of a hierarchy of version 1: only roots have this file, and the top
    /// that a cgroup namespace shows need not be one (kernel/cgroup/cgroup-v1.c,
    /// `CFTYPE_ONLY_ON_ROOT`).
    fn is_root(&self) -> bool {
        self.names.as_ref().is_some_and(|names| names.iter().any(|name| name == "release_agent"))
    }

    /// A file's text through `parse`; `None` where the group has no such file.
    fn get<T>(
        &self,
        name: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Reading<Option<T>> {
        let path = format!("{}/{name}", self.path);
        if self.lacks(name) {
            return Reading::known(path, None);
        }
        self.root.trimmed(&path).parsed(expected, parse).map(Some)
    }
}

fn cpu(folder: &Folder<'_>, is_v1: bool) -> CpuGroup {
    let quota = if is_v1 {
        quota_v1(folder)
    } else {
        folder.get("cpu.max", "a number or max, and a period", |text| {
            let (max, period) = text.split_once(' ')?;
            let max_us = if max == "max" { None } else { Some(max.parse().ok()?) };
            Some(Quota { max_us, period_us: period.parse().ok()? })
        })
    };
    let throttled = folder.get("cpu.stat", "lines with names and numbers", |text| {
        // Version 2 has the line only where the controller is enabled.
        Some(value(text, "nr_throttled").unwrap_or(0))
    });
    let rt_runtime_us = match is_v1 {
        true if !folder.is_root() => {
            folder.get("cpu.rt_runtime_us", "microseconds or -1", |text| text.parse().ok())
        }
        // Version 2 has no such file in any kernel.
        _ => Reading::known(format!("{}/cpu.rt_runtime_us", folder.path), None),
    };
    CpuGroup { folder: folder.path.into(), quota, throttled, rt_runtime_us }
}

fn quota_v1(folder: &Folder<'_>) -> Reading<Option<Quota>> {
    let quota =
        folder.get("cpu.cfs_quota_us", "microseconds or -1", |text| text.parse::<i64>().ok());
    let period = folder.get("cpu.cfs_period_us", "microseconds", |text| text.parse::<u64>().ok());
    quota.and_then(|path, quota| match (quota, period.value()) {
        (None, _) => Reading::known(path, None),
        (Some(max), Some(Some(period_us))) => {
            let quota = Quota { max_us: u64::try_from(max).ok(), period_us: *period_us };
            Reading::known(path, Some(quota))
        }
        _ => period.map(|_| None),
    })
}

/// The number after a name at the start of a line.
fn value(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line?.trim().parse().ok()
}

fn cpuset(folder: &Folder<'_>, is_v1: bool) -> CpusetGroup {
    let (cpus, mems) = match is_v1 {
        true => ("cpuset.effective_cpus", "cpuset.effective_mems"),
        false => ("cpuset.cpus.effective", "cpuset.mems.effective"),
    };
    let list = |name| folder.get(name, "a list", |text| CpuList::parse(text, None).ok());
    CpusetGroup {
        folder: folder.path.into(),
        cpus: list(cpus),
        mems: list(mems),
        partition: folder.get("cpuset.cpus.partition", "a word", |text| Some(text.to_owned())),
    }
}

fn memory(folder: &Folder<'_>, is_v1: bool) -> MemoryGroup {
    let path = folder.path.to_owned();
    if is_v1 {
        let limit = folder.get("memory.limit_in_bytes", "bytes", |text| text.parse::<u64>().ok());
        return MemoryGroup {
            folder: path,
            limit_bytes: limit.map(|limit| limit.filter(|&bytes| bytes < NO_LIMIT_BYTES)),
            hits: folder.get("memory.failcnt", "a count", |text| text.parse().ok()),
        };
    }
    let limit = |name| {
        folder.get(name, "bytes or max", |text| match text {
            "max" => Some(None),
            bytes => bytes.parse::<u64>().ok().map(Some),
        })
    };
    let (high, max) = (limit("memory.high"), limit("memory.max"));
    let limit_bytes = high
        .and_then(|_, high| max.map(|max| high.flatten().into_iter().chain(max.flatten()).min()));
    let hits = folder.get("memory.events", "lines with names and numbers", |text| {
        value(text, "high")?.checked_add(value(text, "max")?)
    });
    MemoryGroup { folder: path, limit_bytes, hits }
}

// Settings of a systemd unit, from its file and drop-ins (systemd.unit(5), "Unit File Load Path").
//
// Neither the bus nor systemctl is called, so that a captured machine gives the same result. What
// the manager's own defaults add (system.conf) is not here.

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

/// Value of one setting in a unit file, and the file that set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Assignment {
    /// Value as it is written.
    pub value: String,
    /// File of the last line that set it.
    pub file: String,
}

/// The files of the unit that a process runs in. `cgroup` says which manager started it.
pub(super) fn read_unit_file(
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
        let Some(found) = find_unit_file(root, &name) else {
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
pub(super) fn find_unit_file(root: &Root, name: &str) -> Option<(String, Vec<String>)> {
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
    fn lines_continue_lists_add_up_and_an_empty_value_clears() {
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
