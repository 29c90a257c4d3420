//! Whether runs are alike enough to be compared: same machine, same work, same period and budget.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    groups::Group,
    side::{Side, View},
};
use crate::quantity;

/// Something in which runs must agree and do not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mismatch {
    /// `run`, `machine`, `workload`, `clock`, `period`, `budget`.
    pub what: String,
    /// The values found, each with the first run that has it.
    pub values: Vec<String>,
}

impl Mismatch {
    pub fn text(&self) -> String {
        let values = self.values.join("; ");
        match self.what.as_str() {
            "run" => format!("the same run was given twice: {values}"),
            "machine" => format!("the runs are of different machines: {values}"),
            "workload" => format!("the runs measured different things: {values}"),
            what => format!("the runs have different {what}s: {values}"),
        }
    }
}

/// All that stands against comparing these runs.
pub(super) fn of(groups: &[Group]) -> Vec<Mismatch> {
    let sides: Vec<&Side> = groups.iter().flat_map(|group| &group.sides).collect();
    let of = |what: &str, value: &dyn Fn(&Side) -> Option<(String, String)>| {
        let mut seen = BTreeSet::new();
        let mut values = Vec::new();
        for side in &sides {
            // What a file does not record cannot be checked.
            if let Some((key, text)) = value(side)
                && seen.insert(key)
            {
                values.push(format!("{} ({text})", side.label));
            }
        }
        (values.len() > 1).then(|| Mismatch { what: what.into(), values })
    };
    let time = |ns: Option<u64>| ns.map(|ns| (ns.to_string(), quantity::ns(ns)));
    [
        twice(&sides),
        of("machine", &machine).filter(|_| has_two_ids(&sides) || !is_one_boot(&sides)),
        of("workload", &|side| Some((side.kind().into(), side.kind().into()))),
        of("clock", &|side| side.facts.get("run.clock").map(|name| (name.clone(), name.clone()))),
        of("period", &|side| time(side.period_ns)),
        of("budget", &|side| time(side.budget_ns)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn twice(sides: &[&Side]) -> Option<Mismatch> {
    let mut seen = BTreeSet::new();
    let mut values = Vec::new();
    for side in sides.iter().filter(|side| !side.id.is_empty()) {
        if !seen.insert(side.id.as_str()) {
            values.push(side.source.clone());
        }
    }
    (!values.is_empty()).then(|| Mismatch { what: "run".into(), values })
}

/// Whether all runs are of one boot, and so of one machine, whatever it is called in a container.
fn is_one_boot(sides: &[&Side]) -> bool {
    let mut boots = sides.iter().map(|side| side.boot_id.as_deref());
    let first = boots.next().flatten();
    first.is_some() && boots.all(|boot| boot == first)
}

/// Whether two are known to be of different machines. Copies of a virtual machine share a boot.
fn has_two_ids(sides: &[&Side]) -> bool {
    let id = |side: &&Side| side.machine.as_ref()?.machine_id.clone();
    sides.iter().filter_map(id).collect::<BTreeSet<String>>().len() > 1
}

/// Whether nothing names the machine: a container has a name of its own, another at each start.
fn is_nameless(side: &Side) -> bool {
    let place = side.machine.as_ref();
    place.is_some_and(|place| place.container.is_some() && place.machine_id.is_none())
}

/// The machine's own id where it has one, else what it is called and made of.
fn machine(side: &Side) -> Option<(String, String)> {
    let place = side.machine.as_ref().filter(|_| !is_nameless(side))?;
    let name = place.hostname.clone().unwrap_or_else(|| "no name".into());
    let model = place.model.clone().unwrap_or_default();
    let text = if model.is_empty() { name.clone() } else { format!("{name}, {model}") };
    if place.machine_id.is_none() && place.hostname.is_none() && model.is_empty() {
        return None;
    }
    let key = place.machine_id.clone().unwrap_or_else(|| format!("{name}\n{model}"));
    Some((key, text))
}

/// The budget that all runs with one share.
pub(super) fn budget(groups: &[Group]) -> Option<u64> {
    let mut budgets =
        groups.iter().flat_map(|group| &group.sides).filter_map(|side| side.budget_ns);
    let first = budgets.next()?;
    budgets.all(|budget_ns| budget_ns == first).then_some(first)
}

/// What is doubtful about the runs, and what their tools leave out.
pub(super) fn doubts(groups: &[Group], view: View) -> Vec<String> {
    let sides = || groups.iter().flat_map(|group| &group.sides);
    let mut doubts = of_runs(&sides().collect::<Vec<_>>());
    let (known, unknown): (Vec<&Side>, Vec<&Side>) = sides().partition(|side| side.knows_missed());
    if view == View::Wake && !unknown.is_empty() {
        let names = names(&unknown);
        let more = if known.is_empty() { "" } else { "; those of the others are left out too" };
        doubts.push(format!(
            "Wake-ups that were missed have no lateness in {names}{more}: latencies are those of \
             the wake-ups that were measured, which flatters a run that misses many."
        ));
    }
    let unplaced: Vec<&Side> = sides().filter(|side| side.machine.is_none()).collect();
    if !unplaced.is_empty() {
        let names = names(&unplaced);
        doubts.push(format!(
            "Whether the machines and their settings are the same cannot be checked: they are not \
             recorded in {names}."
        ));
    }
    let nameless: Vec<&Side> = sides().filter(|side| is_nameless(side)).collect();
    if !nameless.is_empty() && !is_one_boot(&sides().collect::<Vec<_>>()) {
        let names = names(&nameless);
        doubts.push(format!(
            "Whether the machines are the same cannot be checked: {names} ran in a container, \
             which does not show the machine's id."
        ));
    }
    let dedup: BTreeSet<&str> = sides().map(|side| side.tool.as_str()).collect();
    if dedup.len() > 1 {
        let tools: Vec<&str> = dedup.into_iter().collect();
        doubts.push(format!(
            "The runs were measured by {}: each adds a cost of its own.",
            tools.join(" and ")
        ));
    }
    doubts
}

/// Each doubt once, with the runs that have it.
fn of_runs(sides: &[&Side]) -> Vec<String> {
    let mut texts: Vec<&str> = Vec::new();
    for doubt in sides.iter().flat_map(|side| &side.doubts) {
        if !texts.contains(&doubt.as_str()) {
            texts.push(doubt);
        }
    }
    let told = |text: &str| {
        let with: Vec<&Side> = sides
            .iter()
            .copied()
            .filter(|side| side.doubts.iter().any(|doubt| doubt == text))
            .collect();
        match with.len() == sides.len() && with.len() > 2 {
            true => format!("all runs: {text}"),
            false => format!("{}: {text}", names(&with)),
        }
    };
    texts.into_iter().map(told).collect()
}

/// Names of runs, not all of many.
fn names(sides: &[&Side]) -> String {
    let shown: Vec<&str> = sides.iter().take(3).map(|side| side.label.as_str()).collect();
    match sides.len() {
        0..=3 => shown.join(", "),
        n => format!("{} and {} more", shown.join(", "), n - 3),
    }
}
