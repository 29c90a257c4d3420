//! Facts that differ between the runs, beside the latencies that differ.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{groups::Group, side::Side};

/// One fact with its value in each group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FactLine {
    /// Name, e.g. `cpus.3.freq.governor`; `run.` is what the run was asked.
    pub key: String,
    /// One for each group; null: unknown. What varies within a group is reported as such.
    pub values: Vec<Option<String>>,
    /// Whether it is the same within each group, so that it may be what makes the difference.
    pub steady: bool,
}

/// How the names of facts begin that come first.
const FIRST: [&str; 5] = ["run.", "kernel.", "cpus.", "settings.", "rt_tasks."];

/// The facts that differ: what the run was asked, then the machine. Groups of which no facts are
/// known are left open.
pub(super) fn of(groups: &[Group]) -> Vec<FactLine> {
    let same_boot = same_boot(groups);
    let keys: BTreeSet<&str> = groups
        .iter()
        .flat_map(|group| &group.sides)
        .flat_map(|side| side.facts.keys().map(String::as_str))
        // Interrupts have other numbers after a boot.
        .filter(|key| same_boot || !key.starts_with("irqs."))
        .collect();
    let mut lines: Vec<FactLine> = keys.into_iter().filter_map(|key| line(key, groups)).collect();
    lines.sort_by_key(|line| {
        let place = FIRST.iter().position(|start| line.key.starts_with(start));
        (!line.steady, place.unwrap_or(FIRST.len()), line.key.clone())
    });
    lines
}

fn same_boot(groups: &[Group]) -> bool {
    let boots: BTreeSet<Option<&str>> = groups
        .iter()
        .flat_map(|group| &group.sides)
        .filter(|side| side.has_facts)
        .map(|side| side.boot_id.as_deref())
        .collect();
    boots.len() == 1 && !boots.contains(&None)
}

fn line(key: &str, groups: &[Group]) -> Option<FactLine> {
    let found: Vec<BTreeSet<Option<&str>>> = groups
        .iter()
        .map(|group| group.sides.iter().filter_map(|side| value(side, key)).collect())
        .collect();
    let known: Vec<&BTreeSet<Option<&str>>> = found.iter().filter(|set| !set.is_empty()).collect();
    if known.windows(2).all(|pair| pair[0] == pair[1] && pair[0].len() == 1)
        && known.iter().all(|set| set.len() == 1)
    {
        return None;
    }
    let text = |set: &BTreeSet<Option<&str>>| {
        let values: Vec<&str> = set.iter().map(|value| value.unwrap_or("not there")).collect();
        match values.as_slice() {
            [] => None,
            [one] => Some((*one).to_owned()),
            many => Some(format!("varies: {}", many.join("; "))),
        }
    };
    Some(FactLine {
        key: key.into(),
        steady: found.iter().all(|set| set.len() < 2),
        values: found.iter().map(text).collect(),
    })
}

/// The value in a run; inner `None`: absent; outer `None`: unknown.
fn value<'a>(side: &'a Side, key: &str) -> Option<Option<&'a str>> {
    match side.facts.get(key) {
        Some(value) => Some(Some(value.as_str())),
        None => side.has_facts.then_some(None),
    }
}
