//! Why wake-ups were late, in each group: what came, went or stayed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::groups::Group;

/// One cause and culprit in each group.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseLine {
    pub cause: String,
    pub title: String,
    pub culprit: String,
    /// One for each group; null: its spikes were not explained.
    pub cells: Vec<Option<CauseCell>>,
}

/// One cause in one group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CauseCell {
    pub count: u64,
    /// Those per hour of measuring.
    pub per_hour: f64,
    /// Its largest share, nanoseconds.
    pub worst_ns: u64,
    /// Sum of its shares, nanoseconds.
    pub sum_ns: u64,
}

/// All causes, the largest sum in any group first.
pub(super) fn of(groups: &[Group]) -> Vec<CauseLine> {
    let mut lines: BTreeMap<(String, String), CauseLine> = BTreeMap::new();
    for (at, group) in groups.iter().enumerate() {
        let hours: f64 = group
            .sides
            .iter()
            .filter_map(|side| side.duration_ns)
            .map(|ns| ns as f64 / 3.6e12)
            .sum();
        let rows = group.sides.iter().filter_map(|side| side.spikes.as_ref());
        for row in rows.flat_map(|spikes| &spikes.causes) {
            let line = lines
                .entry((row.cause.clone(), row.culprit.clone()))
                .or_insert_with(|| empty(row, groups));
            let Some(Some(cell)) = line.cells.get_mut(at) else { continue };
            cell.count += row.count;
            cell.worst_ns = cell.worst_ns.max(row.worst_ns);
            cell.sum_ns = cell.sum_ns.saturating_add(row.sum_ns);
            cell.per_hour = if hours > 0.0 { cell.count as f64 / hours } else { 0.0 };
        }
    }
    let mut lines: Vec<CauseLine> = lines.into_values().collect();
    let largest = |line: &CauseLine| line.cells.iter().flatten().map(|cell| cell.sum_ns).max();
    lines.sort_by_key(|line| (std::cmp::Reverse(largest(line)), line.culprit.clone()));
    lines
}

fn empty(row: &crate::causes::CauseRow, groups: &[Group]) -> CauseLine {
    let explained = |group: &Group| {
        group.sides.iter().any(|side| side.spikes.is_some()).then(CauseCell::default)
    };
    CauseLine {
        cause: row.cause.clone(),
        title: row.title.clone(),
        culprit: row.culprit.clone(),
        cells: groups.iter().map(explained).collect(),
    }
}
