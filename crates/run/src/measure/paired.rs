//! Two states of the machine compared, cell by cell: what a matrix with two conditions ends with.

use rtproof_judge::compare::{self, Group, Request, Side};
use rtproof_results::measure::{
    index::ConditionPair,
    plan::{Cell, Plan},
};

use super::folder::{Folder, Found};

/// Each combination under the first condition against the same under the second; none where there
/// are not two conditions, or one of them has no finished run.
pub(super) fn compared(plan: &Plan, folder: &Folder) -> Vec<ConditionPair> {
    let [first, second] = plan.conditions.as_slice() else { return Vec::new() };
    let alike = |cell: &Cell| Cell {
        number: 0,
        name: String::new(),
        condition: String::new(),
        repetition: 1,
        ..cell.clone()
    };
    let mut combinations: Vec<Cell> = Vec::new();
    for cell in plan.cells.iter().map(alike) {
        if !combinations.contains(&cell) {
            combinations.push(cell);
        }
    }
    let one = |combination: &Cell| {
        let group = |condition: &str| Group {
            label: condition.to_owned(),
            sides: plan
                .cells
                .iter()
                .filter(|cell| cell.condition == condition && alike(cell) == *combination)
                .filter_map(|cell| side(cell, folder))
                .collect(),
        };
        let groups = [group(&first.name), group(&second.name)];
        let is_whole = groups.iter().all(|group| !group.sides.is_empty());
        is_whole.then(|| pair(combination, &groups)).flatten()
    };
    combinations.iter().filter_map(one).collect()
}

/// The finished run of a cell.
fn side(cell: &Cell, folder: &Folder) -> Option<Side> {
    match folder.find(cell) {
        Found::Done(run) => Some(Side::of_run(&run, &cell.name, &cell.name)),
        Found::Nothing | Found::CutShort | Found::Unusable(_) => None,
    }
}

fn pair(combination: &Cell, groups: &[Group; 2]) -> Option<ConditionPair> {
    let comparison = compare::compare_groups(groups, &Request::default());
    let against = comparison.against.into_iter().next()?;
    let primary = against.changes.iter().find(|change| change.detectable.is_some());
    Some(ConditionPair {
        what: combination.title(),
        from: groups[0].label.clone(),
        to: groups[1].label.clone(),
        pairs: against.pairs.as_ref().map_or(0, |pairs| pairs.pairs.len()),
        pairs_min: rtproof_stats::paired::PAIRS_MIN,
        detectable_ratio: primary.and_then(|change| change.detectable),
        answer: against.answer,
        sentence: against.sentence,
    })
}
