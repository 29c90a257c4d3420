//! Facts as rows of key and value: what a record stores, and what two runs are compared by.
//!
//! Keys are stable: elements are named by their own number (`cpus.3.freq.governor`,
//! `irqs.24.effective`), never by their place in a list. Each row has a [`Class`], which says who
//! sets the fact and whether it belongs to the condition under which latencies may be compared.
//!
//! The walk is generic over the serialised facts, so that a new fact is a new row without a line
//! here. Some subjects are written by hand, because their natural form makes no stable or useful
//! rows: build configuration, command line, real-time tasks, irqbalance, settings, units.

mod change;
mod special;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

pub use change::{FactChange, changes};

use crate::Facts;

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FactRow {
    /// Dotted name, e.g. `cpus.3.freq.governor`.
    pub key: String,
    /// The value as text where it is known; else why it is not, empty where it is absent.
    pub value: String,
    /// State of the reading.
    pub state: RowState,
    /// The path asked.
    pub path: String,
    /// Who sets it.
    pub class: Class,
}

/// State of a [`crate::Reading`], without what comes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum RowState {
    /// The value was read.
    Known,
    /// No such file.
    Absent,
    /// Reading was refused.
    Denied,
    /// Not what was expected.
    Malformed,
}

/// Who sets a fact, and so what has to be done to change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Class {
    /// Which machine, which boot: no condition.
    Identity,
    /// The hardware, or the hypervisor in its place.
    Hardware,
    /// Tables of the firmware.
    Firmware,
    /// The kernel's build.
    Kernel,
    /// The boot entry.
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

impl Class {
    /// Name as it is serialised.
    #[must_use]
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
    #[must_use]
    pub const fn is_condition(self) -> bool {
        !matches!(self, Self::Identity | Self::Process | Self::Volatile)
    }
}

/// Class by the start of the key, the first that matches. `*` stands for one part of the key.
const CLASSES: &[(&str, Class)] = &[
    ("identity.model", Class::Hardware),
    ("identity.cpu_model", Class::Hardware),
    ("identity.memory_bytes", Class::Hardware),
    ("identity", Class::Identity),
    ("kernel.cmdline", Class::Boot),
    ("kernel.lockdown", Class::Boot),
    ("kernel.tainted", Class::Runtime),
    ("kernel", Class::Kernel),
    ("cpus.possible", Class::Hardware),
    ("cpus.nodes", Class::Hardware),
    ("cpus.isolated", Class::Boot),
    ("cpus.nohz_full", Class::Boot),
    ("cpus.allowed", Class::Process),
    ("cpus.*.core", Class::Hardware),
    ("cpus.*.package", Class::Hardware),
    ("cpus.*.siblings", Class::Hardware),
    ("cpus.*.last_level_cache_bytes", Class::Hardware),
    ("cpus.*.idle_states.*.disabled", Class::Runtime),
    ("cpus.*.idle_states", Class::Firmware),
    ("clock.available", Class::Hardware),
    ("rt_tasks", Class::Load),
    ("placement", Class::Volatile),
    ("isolation.counters", Class::Volatile),
    ("isolation.uptime_ms", Class::Volatile),
    ("irqs.unhandled", Class::Volatile),
    ("irqs.*.count", Class::Volatile),
    ("irqs.*.actions", Class::Hardware),
    ("irqs.*.chip", Class::Hardware),
    ("limits", Class::Process),
    ("settings.cpufreq-minmax-hardware", Class::Hardware),
    ("settings.pci-runtime-pm-class", Class::Hardware),
    ("settings.rapl-limit-design", Class::Hardware),
    ("settings.usb-autosuspend-class", Class::Hardware),
    ("rights", Class::Process),
    ("memory.swaps.*.used_bytes", Class::Volatile),
    ("memory.available_bytes", Class::Volatile),
    ("resctrl.supported", Class::Hardware),
    ("resctrl.caches", Class::Hardware),
    ("net.interfaces.*.driver", Class::Hardware),
    ("net.interfaces.*.wireless", Class::Hardware),
    ("devices.graphics", Class::Hardware),
    ("devices.raspberry_pi", Class::Firmware),
    ("platform.vendor", Class::Hardware),
    ("platform.microcode", Class::Firmware),
    ("platform.tsc_flags", Class::Hardware),
    ("platform.smi_count", Class::Volatile),
    ("platform.uptime_s", Class::Volatile),
    ("platform.log", Class::Volatile),
    ("platform.boot", Class::Volatile),
    ("platform.sysctl", Class::Volatile),
    ("virt.steal_ticks", Class::Volatile),
    ("virt.hypervisor", Class::Hardware),
];

/// Class of a key; what no line names is set at run time.
fn class_of(key: &str) -> Class {
    let matches = |pattern: &str| {
        let mut parts = key.split('.');
        pattern.split('.').all(|part| parts.next().is_some_and(|k| part == "*" || part == k))
    };
    CLASSES.iter().find(|(pattern, _)| matches(pattern)).map_or(Class::Runtime, |line| line.1)
}

impl Facts {
    /// All facts as rows, sorted by key. Of the build configuration only the options that can
    /// matter to latency have their own rows; the rest is in `kernel.config`, a digest.
    #[must_use]
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
        for subject in ["rt_tasks", "placement", "settings", "units"] {
            facts.remove(subject);
        }
        for (subject, field) in [
            ("kernel", "config"),
            ("kernel", "cmdline"),
            ("irqs", "irqbalance"),
            ("rights", "limit_lines"),
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
            rows.push(known(key, "unlimited".into(), path));
        }
        scalar => rows.push(known(key, text_of(scalar), path)),
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
    let text = |name: &str| fields.get(name).map(text_of).unwrap_or_default();
    let value = match state {
        RowState::Known => {
            let value = fields.get("value").unwrap_or(&Value::Null);
            return walk(key, value, path, rows);
        }
        RowState::Absent => String::new(),
        RowState::Denied => text("why"),
        RowState::Malformed => format!("{}; expected {}", text("found"), text("expected")),
    };
    rows.push(row(key, value, state, path));
}

fn walk_array(key: &str, items: &[Value], path: &str, rows: &mut Vec<FactRow>) {
    // The lists of CPUs and interrupts carry the name of their subject twice: cpus.cpus.3.
    let base = match key {
        "cpus.cpus" => "cpus",
        "irqs.irqs" => "irqs",
        other => other,
    };
    if items.iter().any(|item| named_element(item).is_none()) || items.is_empty() {
        let words: Vec<String> = items.iter().map(text_of).collect();
        // An empty list of CPUs or interrupts means that their own reading is not known.
        if key != "cpus.cpus" {
            rows.push(known(key, words.join(" "), path));
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
            Some((text_of(&value), Value::Object(rest)))
        }
        Value::Array(pair) => match &pair[..] {
            [name, value] => Some((text_of(name), value.clone())),
            _ => None,
        },
        _ => None,
    }
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".into(),
        other => other.to_string(),
    }
}

fn join(key: &str, name: &str) -> String {
    if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") }
}

fn known(key: &str, value: String, path: &str) -> FactRow {
    row(key, value, RowState::Known, path)
}

fn row(key: &str, value: String, state: RowState, path: &str) -> FactRow {
    FactRow { key: key.to_owned(), value, state, path: path.to_owned(), class: class_of(key) }
}

/// The condition of a measurement: 16 hex digits over every fact that may change latency. Machines
/// of the same kind that are set up alike share it. Interrupts count by what they serve, because
/// their numbers change from boot to boot.
#[must_use]
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
        // The reason of a refusal is no condition, that it is refused is.
        let value = if row.state == RowState::Known { row.value.as_str() } else { "" };
        format!("{}\0{:?}\0{value}\n", name.as_deref().unwrap_or(&row.key), row.state)
    };
    let mut lines: Vec<String> =
        rows.iter().filter(|row| row.class.is_condition()).map(line).collect();
    lines.sort_unstable();
    let digest = Sha256::digest(lines.concat());
    hex(&digest[..8])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
