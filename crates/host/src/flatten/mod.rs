//! Facts as rows of key and value: what a record stores, and what two runs are compared by.
//!
//! Keys are stable: elements are named by their own number (`cpus.3.freq.governor`,
//! `irqs.24.effective`), never by their place in a list. Each row has a [`FactClass`], which says
//! who sets the fact and whether it belongs to the condition under which latencies may be compared.
//!
//! The walk is generic over the serialised facts, so that a new fact is a new row without a line
//! here. Some subjects are written by hand, because their natural form makes no stable or useful
//! rows: build configuration, command line, real-time tasks, irqbalance, settings, units.

mod special;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::facts::tasks::{Policy, RtTask};
use crate::text::hex;
use crate::{CpuList, Facts};

impl Facts {
    /// All facts as rows, sorted by key. Of the build configuration only the options that can
    /// matter to latency have their own rows; the rest is in `kernel.config`, a digest.
    pub fn rows(&self) -> Vec<FactRow> {
        let mut rows = Vec::new();
        special::config(&self.kernel.config, &mut rows);
        special::cmdline(&self.kernel.cmdline, &mut rows);
        special::rt_tasks(&self.rt_tasks, &mut rows);
        special::placement(&self.placement, &mut rows);
        special::irqbalance(&self.irqs.irqbalance, &mut rows);
        special::settings(&self.settings, &mut rows);
        special::units(&self.units, &mut rows);
        special::limit_lines(&self.rights.limit_lines, &mut rows);
        let Ok(Value::Object(mut facts)) = serde_json::to_value(self) else {
            // Facts are plain structs with text keys: serialising them cannot fail.
            return rows;
        };
        for subject in ["copy", "rt_tasks", "placement", "settings", "units"] {
            facts.remove(subject);
        }
        for (subject, field) in [
            ("kernel", "config"),
            ("kernel", "cmdline"),
            ("irqs", "irqbalance"),
            ("rights", "limit_lines"),
            ("virt", "hypervisor_quoted"),
        ] {
            if let Some(Value::Object(subject)) = facts.get_mut(subject) {
                subject.remove(field);
            }
        }
        walk("", &Value::Object(facts), "", &mut rows);
        rows.sort_by(|a, b| a.key.cmp(&b.key));
        rows
    }
}

/// `path` is that of the reading that the value is in.
fn walk(key: &str, value: &Value, path: &str, rows: &mut Vec<FactRow>) {
    match value {
        Value::Object(fields) => match reading(fields) {
            Some((state, path)) => walk_reading(key, state, path, fields, rows),
            None => {
                for (name, value) in fields {
                    walk(&join(key, name), value, path, rows);
                }
            }
        },
        Value::Array(items) => walk_array(key, items, path, rows),
        // Of all nulls, those of limits alone mean something else.
        Value::Null if key.starts_with("limits.") => {
            rows.push(known_row(key, "unlimited".into(), path));
        }
        scalar => rows.push(known_row(key, value_text(scalar), path)),
    }
}

/// State and path, where an object is a serialised [`crate::Reading`].
fn reading(fields: &Map<String, Value>) -> Option<(RowState, &str)> {
    let state = RowState::deserialize(fields.get("state")?).ok()?;
    Some((state, fields.get("path")?.as_str()?))
}

fn walk_reading(
    key: &str,
    state: RowState,
    path: &str,
    fields: &Map<String, Value>,
    rows: &mut Vec<FactRow>,
) {
    let text = |name: &str| fields.get(name).map(value_text).unwrap_or_default();
    let value = match state {
        RowState::Known => {
            let value = fields.get("value").unwrap_or(&Value::Null);
            return walk(key, value, path, rows);
        }
        RowState::Absent => String::new(),
        RowState::Denied => text("why"),
        RowState::Malformed => format!("{}; expected {}", text("found"), text("expected")),
    };
    rows.push(fact_row(key, value, state, path));
}

fn walk_array(key: &str, items: &[Value], path: &str, rows: &mut Vec<FactRow>) {
    // The lists of CPUs and interrupts carry the name of their subject twice: cpus.cpus.3.
    let base = match key {
        "cpus.cpus" => "cpus",
        "irqs.irqs" => "irqs",
        other => other,
    };
    if items.iter().any(|item| named_element(item).is_none()) || items.is_empty() {
        let words: Vec<String> = items.iter().map(value_text).collect();
        // An empty list of CPUs or interrupts means that their own reading is not known.
        if key != "cpus.cpus" {
            rows.push(known_row(key, words.join(" "), path));
        }
        return;
    }
    for item in items {
        let Some((name, rest)) = named_element(item) else {
            continue;
        };
        walk(&join(base, &name), &rest, path, rows);
    }
}

/// The element's own name, and the element without it: `{number: 24, ...}`, `[3, 120]`.
fn named_element(item: &Value) -> Option<(String, Value)> {
    match item {
        Value::Object(fields) => {
            let names = ["id", "number", "cpu", "index", "name"];
            let name = names.into_iter().find(|name| fields.contains_key(*name))?;
            let mut rest = fields.clone();
            let value = rest.remove(name)?;
            Some((value_text(&value), Value::Object(rest)))
        }
        Value::Array(pair) => match &pair[..] {
            [name, value] => Some((value_text(name), value.clone())),
            _ => None,
        },
        _ => None,
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".into(),
        other => other.to_string(),
    }
}

fn join(key: &str, name: &str) -> String {
    if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") }
}

/// The condition of a measurement: 16 hex digits over every fact that may change latency. Machines
/// of the same kind that are set up alike share it. Interrupts count by what they serve, because
/// their numbers change from boot to boot; devices that come and go (USB, virtual network
/// interfaces) by the values that they have: one more that is set like another changes nothing.
pub fn condition_id(rows: &[FactRow]) -> String {
    let actions: BTreeMap<&str, &str> = rows
        .iter()
        .filter_map(|row| {
            let number = row.key.strip_prefix("irqs.")?.strip_suffix(".actions")?;
            Some((number, row.value.as_str()))
        })
        .collect();
    let line = |row: &FactRow| {
        let name = row.key.strip_prefix("irqs.").and_then(|rest| {
            let (number, field) = rest.split_once('.')?;
            Some(format!("irqs.({}).{field}", actions.get(number)?))
        });
        let name = name.or_else(|| of_removable(row));
        // The reason of a refusal is no condition, that it is refused is.
        let value = if row.state == RowState::Known { row.value.as_str() } else { "" };
        format!("{}\0{:?}\0{value}\n", name.as_deref().unwrap_or(&row.key), row.state)
    };
    // What a USB device is, is none.
    let counts = |row: &&FactRow| {
        row.class.is_condition() && !row.key.starts_with("settings.usb-autosuspend-class")
    };
    let mut lines: Vec<String> = rows.iter().filter(|row| counts(row)).map(line).collect();
    lines.sort_unstable();
    lines.dedup();
    let digest = Sha256::digest(lines.concat());
    hex(&digest[..8])
}

/// The name of a setting of a device that comes and goes, without the device.
fn of_removable(row: &FactRow) -> Option<String> {
    const FOLDERS: [&str; 2] = ["/sys/bus/usb/devices/", "/sys/class/net/"];
    FOLDERS.iter().find(|folder| row.path.starts_with(*folder))?;
    let knob = row.key.strip_prefix("settings.")?.split('.').next()?;
    Some(format!("settings.{knob}.(any)"))
}

// What changed between the start and the end of a run that may change latency.
//
// An idle machine must not look moved: counters, this process's own limits and affinity, kernel
// threads that come and go under known names, and the wording of a refusal are no change.

/// One fact that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactChange {
    /// Key of the row; `cpus.3` or `irqs.24` where the whole of it came or went; `rt_tasks.NAME`.
    pub key: String,
    /// Value at the start, or `not there`, or why it was not known.
    pub from: String,
    /// Value at the end, likewise.
    pub to: String,
}

const NOT_THERE: &str = "not there";

/// What changed between two snapshots of one machine, sorted by key. Interrupts are distinguished
/// by number here, which holds within one boot. A real-time task of a user counts by its identity
/// (process, thread, start time, name, policy, priority), one of the kernel by name and priority.
pub fn changed_facts(start: &Facts, end: &Facts) -> Vec<FactChange> {
    let (start_rows, end_rows) = (start.rows(), end.rows());
    let (from, to) = (conditions(&start_rows), conditions(&end_rows));
    let keys: BTreeSet<&str> = from.keys().chain(to.keys()).copied().collect();
    let mut changes: BTreeMap<String, FactChange> = BTreeMap::new();
    let obeyed = obeyed(start, end);
    for key in keys.into_iter().filter(|key| !obeyed.contains(*key)) {
        if whole(key, &from, &to, &mut changes) {
            continue;
        }
        let text =
            |rows: &Conditions<'_>| rows.get(key).map_or(NOT_THERE.into(), |row| row_text(row));
        let differ = match (from.get(key), to.get(key)) {
            (Some(a), Some(b)) => !same(a, b),
            _ => true,
        };
        if differ {
            add(&mut changes, key, text(&from), text(&to));
        }
    }
    user_tasks(start, end, &mut changes);
    changes.into_values().collect()
}

/// Interrupts that went in between where they had been sent before: the kernel moves one when it
/// next fires.
fn obeyed(start: &Facts, end: &Facts) -> BTreeSet<String> {
    let (Some(before), Some(after)) = (start.irqs.irqs.value(), end.irqs.irqs.value()) else {
        return BTreeSet::new();
    };
    let obeyed = before.iter().filter(|irq| {
        let Some(now) = after.iter().find(|now| now.number == irq.number) else { return false };
        let (Some(asked), Some(was), Some(is)) =
            (irq.requested.value(), irq.effective.value(), now.effective.value())
        else {
            return false;
        };
        let is_within = |cpus: &CpuList| !cpus.is_empty() && cpus.difference(asked).is_empty();
        now.requested.value() == Some(asked) && !is_within(was) && is_within(is)
    });
    obeyed.map(|irq| format!("irqs.{}.effective", irq.number)).collect()
}

type Conditions<'a> = BTreeMap<&'a str, &'a FactRow>;

/// Rows that may change latency. Real-time tasks of users are compared one by one.
fn conditions(rows: &[FactRow]) -> Conditions<'_> {
    let user_task =
        |key: &str| key.starts_with("rt_tasks.") && !key.starts_with("rt_tasks.kernel.");
    rows.iter()
        .filter(|row| row.class.is_condition() && !user_task(&row.key))
        .map(|row| (row.key.as_str(), row))
        .collect()
}

fn same(a: &FactRow, b: &FactRow) -> bool {
    a.state == b.state && (a.state != RowState::Known || a.value == b.value)
}

fn row_text(row: &FactRow) -> String {
    match row.state {
        RowState::Known => row.value.clone(),
        RowState::Absent => NOT_THERE.into(),
        RowState::Denied => format!("refused: {}", row.value),
        RowState::Malformed => format!("malformed: {}", row.value),
    }
}

fn add(changes: &mut BTreeMap<String, FactChange>, key: &str, from: String, to: String) {
    changes.insert(key.to_owned(), FactChange { key: key.to_owned(), from, to });
}

/// A CPU or an interrupt that came or went is one change and not one for each of its rows. True
/// where the key is part of such a one.
fn whole(
    key: &str,
    from: &Conditions<'_>,
    to: &Conditions<'_>,
    changes: &mut BTreeMap<String, FactChange>,
) -> bool {
    let mut parts = key.splitn(3, '.');
    let (Some(subject @ ("cpus" | "irqs")), Some(number), Some(_)) =
        (parts.next(), parts.next(), parts.next())
    else {
        return false;
    };
    if number.parse::<u32>().is_err() {
        return false;
    }
    let prefix = format!("{subject}.{number}.");
    let has = |rows: &Conditions<'_>| {
        rows.range(prefix.as_str()..).next().is_some_and(|(key, _)| key.starts_with(&prefix))
    };
    let text = |rows: &Conditions<'_>| match rows.get(format!("{prefix}actions").as_str()) {
        Some(row) => row.value.clone(),
        None => "there".into(),
    };
    let (from, to) = match (has(from), has(to)) {
        (true, false) => (text(from), NOT_THERE.to_owned()),
        (false, true) => (NOT_THERE.to_owned(), text(to)),
        _ => return false,
    };
    add(changes, prefix.trim_end_matches('.'), from, to);
    true
}

/// Identity of a task.
type TaskIdentity<'a> = (u32, u32, u64, &'a str, Policy, u32);

fn user_tasks(start: &Facts, end: &Facts, changes: &mut BTreeMap<String, FactChange>) {
    // From known to unknown is in the rows already.
    let (Some(start), Some(end)) = (start.rt_tasks.value(), end.rt_tasks.value()) else {
        return;
    };
    let (start, end) = (identities(start), identities(end));
    let names: BTreeSet<&str> =
        start.symmetric_difference(&end).map(|&(_, _, _, comm, ..)| comm).collect();
    for name in names {
        let text = |tasks: &BTreeSet<TaskIdentity<'_>>| {
            let one = |&&(pid, tid, _, _, policy, priority): &&TaskIdentity<'_>| {
                format!("{} {priority} (process {pid}, thread {tid})", policy.name())
            };
            let all: Vec<String> =
                tasks.iter().filter(|task| task.3 == name).map(|task| one(&task)).collect();
            if all.is_empty() { NOT_THERE.to_owned() } else { all.join(", ") }
        };
        add(changes, &format!("rt_tasks.{name}"), text(&start), text(&end));
    }
}

fn identities(tasks: &[RtTask]) -> BTreeSet<TaskIdentity<'_>> {
    tasks
        .iter()
        .filter(|task| !task.kernel_thread)
        .map(|t| (t.pid, t.tid, t.start_ticks, t.comm.as_str(), t.policy, t.priority))
        .collect()
}

/// One fact as a row for SQL, with the path that it was read from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactRow {
    /// Dotted name, e.g. `cpus.3.freq.governor`.
    pub key: String,
    /// The value as text where it is known; else why it is not, empty where it is absent.
    pub value: String,
    /// State of the reading.
    pub state: RowState,
    /// The path that was read.
    pub path: String,
    pub class: FactClass,
}

/// State of a [`crate::Reading`], without what comes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RowState {
    /// The value was read.
    Known,
    Absent,
    Denied,
    /// Not what was expected.
    Malformed,
}

/// Origin of a fact, which decides how to change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FactClass {
    /// Which machine, which boot: no condition.
    Identity,
    /// The hardware, or the hypervisor in its place.
    Hardware,
    /// Tables of the firmware.
    Firmware,
    Kernel,
    Boot,
    /// Set while the system runs.
    Runtime,
    /// Other work on the machine.
    Load,
    /// Rights and limits of this process: what a run got is in the record of its threads.
    Process,
    /// Counters, which change by themselves: no condition.
    Volatile,
}

impl FactClass {
    /// Name as it is serialised.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Hardware => "hardware",
            Self::Firmware => "firmware",
            Self::Kernel => "kernel",
            Self::Boot => "boot",
            Self::Runtime => "runtime",
            Self::Load => "load",
            Self::Process => "process",
            Self::Volatile => "volatile",
        }
    }

    /// Whether facts of this class may change latency.
    pub const fn is_condition(self) -> bool {
        !matches!(self, Self::Identity | Self::Process | Self::Volatile)
    }
}

fn known_row(key: &str, value: String, path: &str) -> FactRow {
    fact_row(key, value, RowState::Known, path)
}

fn fact_row(key: &str, value: String, state: RowState, path: &str) -> FactRow {
    FactRow { key: key.to_owned(), value, state, path: path.to_owned(), class: class_of(key) }
}

/// Class by the start of the key, the first that matches. `*` matches one part of the key.
const CLASSES: &[(&str, FactClass)] = &[
    ("identity.model", FactClass::Hardware),
    ("identity.cpu_model", FactClass::Hardware),
    ("identity.memory_bytes", FactClass::Hardware),
    ("identity", FactClass::Identity),
    ("kernel.cmdline", FactClass::Boot),
    ("kernel.lockdown", FactClass::Boot),
    ("kernel.tainted", FactClass::Runtime),
    ("kernel", FactClass::Kernel),
    ("cpus.possible", FactClass::Hardware),
    ("cpus.present", FactClass::Hardware),
    ("cpus.nodes", FactClass::Hardware),
    ("cpus.isolated", FactClass::Boot),
    ("cpus.nohz_full", FactClass::Boot),
    ("cpus.allowed", FactClass::Process),
    ("cpus.*.core", FactClass::Hardware),
    ("cpus.*.package", FactClass::Hardware),
    ("cpus.*.siblings", FactClass::Hardware),
    ("cpus.*.last_level_cache_bytes", FactClass::Hardware),
    ("cpus.*.last_level_cpus", FactClass::Hardware),
    ("cpus.*.part", FactClass::Hardware),
    ("cpus.*.capacity", FactClass::Hardware),
    ("cpus.*.freq.hardware_max_hz", FactClass::Hardware),
    ("cpus.*.idle_states.*.disabled", FactClass::Runtime),
    ("cpus.*.idle_states", FactClass::Firmware),
    ("clock.available", FactClass::Hardware),
    ("rt_tasks", FactClass::Load),
    ("placement", FactClass::Volatile),
    ("isolation.counters", FactClass::Volatile),
    ("isolation.uptime_ms", FactClass::Volatile),
    ("irqs.unhandled", FactClass::Volatile),
    ("irqs.*.count", FactClass::Volatile),
    ("irqs.*.actions", FactClass::Hardware),
    ("irqs.*.chip", FactClass::Hardware),
    ("limits", FactClass::Process),
    ("settings.laptop-chassis", FactClass::Identity),
    ("settings.laptop-lid", FactClass::Identity),
    ("settings.laptop-supply", FactClass::Identity),
    ("settings.laptop-supply-scope", FactClass::Identity),
    ("settings.pci-runtime-pm-class", FactClass::Hardware),
    ("settings.rapl-limit-design", FactClass::Hardware),
    ("settings.usb-autosuspend-class", FactClass::Hardware),
    ("rights", FactClass::Process),
    ("memory.swaps.*.used_bytes", FactClass::Volatile),
    ("memory.available_bytes", FactClass::Volatile),
    ("resctrl.supported", FactClass::Hardware),
    ("resctrl.caches", FactClass::Hardware),
    ("net.interfaces.*.driver", FactClass::Hardware),
    ("net.interfaces.*.wireless", FactClass::Hardware),
    ("devices.graphics", FactClass::Hardware),
    ("devices.raspberry_pi", FactClass::Firmware),
    ("platform.vendor", FactClass::Hardware),
    ("platform.microcode", FactClass::Firmware),
    ("platform.tsc_flags", FactClass::Hardware),
    ("platform.smi_count", FactClass::Volatile),
    ("platform.uptime_s", FactClass::Volatile),
    ("platform.log", FactClass::Volatile),
    ("platform.boot", FactClass::Volatile),
    ("platform.sysctl", FactClass::Volatile),
    ("platform.firmware", FactClass::Volatile),
    ("virt.steal_ticks", FactClass::Volatile),
    ("virt.hypervisor", FactClass::Hardware),
];

/// Class of a key; what no line names is set at run time.
fn class_of(key: &str) -> FactClass {
    let matches = |pattern: &str| {
        let mut parts = key.split('.');
        pattern.split('.').all(|part| parts.next().is_some_and(|k| part == "*" || part == k))
    };
    CLASSES.iter().find(|(pattern, _)| matches(pattern)).map_or(FactClass::Runtime, |line| line.1)
}

#[cfg(test)]
mod change_tests {
    use super::*;
    use crate::Reading;
    use crate::flatten::tests::machine;

    fn keys(changes: &[FactChange]) -> Vec<&str> {
        changes.iter().map(|change| change.key.as_str()).collect()
    }

    #[test]
    fn an_idle_machine_has_not_moved() {
        let tree = machine();
        tree.write("proc/self/status", "Cpus_allowed_list:\t0-1\nCapEff:\t1\n");
        let start = Facts::read(&tree.root());
        assert_eq!(changed_facts(&start, &start), []);
        tree.write("proc/stat", "cpu0 0 0 0 0 0 0 0 90\ncpu1 0 0 0 0 0 0 0 80\n");
        tree.write("proc/interrupts", "  CPU0 CPU1\n 24: 50 60 PCI-MSI 1-edge  nvme0q0\n");
        tree.write("proc/swaps", "Filename Type Size Used Priority\n/dev/dm-1 partition 8 6 -2\n");
        tree.write("proc/self/status", "Cpus_allowed_list:\t0\nCapEff:\t0\n");
        // One more kernel thread of a known kind, and another process of irqbalance.
        let thread = std::fs::read_to_string(tree.path().join("proc/20/stat")).unwrap();
        tree.write("proc/21/stat", &thread.replace("nvme0q0", "nvme0q1"));
        std::fs::rename(tree.path().join("proc/301"), tree.path().join("proc/400")).unwrap();
        assert_eq!(changed_facts(&start, &Facts::read(&tree.root())), []);
    }

    #[test]
    fn each_move_is_reported_once() {
        let tree = machine();
        let start = Facts::read(&tree.root());
        tree.write("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n");
        tree.write("proc/interrupts", "  CPU0 CPU1\n 25: 1 1 PCI-MSI 2-edge  eth0\n");
        let end = Facts::read(&tree.root());
        let changes_found = changed_facts(&start, &end);
        assert_eq!(keys(&changes_found), ["cpus.1.freq.governor", "irqs.24", "irqs.25"]);
        assert_eq!(
            (changes_found[0].from.as_str(), changes_found[0].to.as_str()),
            ("performance", "powersave")
        );
        assert_eq!(
            (changes_found[1].from.as_str(), changes_found[1].to.as_str()),
            ("nvme0q0", NOT_THERE)
        );
        assert_eq!(
            (changes_found[2].from.as_str(), changes_found[2].to.as_str()),
            (NOT_THERE, "eth0")
        );
    }

    #[test]
    fn a_cpu_that_went_away() {
        let tree = machine();
        let start = Facts::read(&tree.root());
        tree.write("sys/devices/system/cpu/online", "0\n");
        let found = changed_facts(&start, &Facts::read(&tree.root()));
        assert_eq!(keys(&found), ["cpus.1", "cpus.online"]);
        assert_eq!(found[0].to, NOT_THERE);
    }

    #[test]
    fn user_tasks_count_one_by_one() {
        let tree = machine();
        let start = Facts::read(&tree.root());
        // Another process of the same name and priority: a restart.
        std::fs::rename(tree.path().join("proc/300"), tree.path().join("proc/310")).unwrap();
        let found = changed_facts(&start, &Facts::read(&tree.root()));
        assert_eq!(keys(&found), ["rt_tasks.multipathd"]);
        assert_eq!(found[0].from, "rr 99 (process 300, thread 300)");
        assert_eq!(found[0].to, "rr 99 (process 310, thread 310)");
    }

    #[test]
    fn the_wording_of_a_refusal_is_no_change_but_a_refusal_is() {
        let mut start = Facts::read(&machine().root());
        let mut end = start.clone();
        start.sched.rt_runtime_us = Reading::denied("p", "one");
        end.sched.rt_runtime_us = Reading::denied("p", "two");
        assert_eq!(changed_facts(&start, &end), []);
        end.sched.rt_runtime_us = Reading::known("p", -1);
        let found = changed_facts(&start, &end);
        assert_eq!((found[0].from.as_str(), found[0].to.as_str()), ("refused: one", "-1"));
    }
}
