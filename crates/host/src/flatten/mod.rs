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
mod row;
mod special;

use std::collections::BTreeMap;

use serde::Deserialize as _;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

pub use change::{FactChange, changes};
pub use row::{Class, FactRow, RowState};
use row::{known, row};

use crate::{Facts, text::hex};

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

#[cfg(test)]
mod tests;
