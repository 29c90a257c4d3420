//! Changes of several findings: what is about one target is one step, or a conflict.

use rtproof_host::tune::{Change, Scheduling, UnitState};
use rtproof_host::{Facts, Knob};

use super::{
    order,
    step::{Conflict, Reason, Step},
};

/// One change that a finding requests.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) change: Change,
    /// The knob that it sets, if there is one.
    pub(super) knob: Option<&'static Knob>,
    pub(super) reason: Reason,
}

/// Changes of the findings, in their order.
#[derive(Debug, Default)]
pub(super) struct Changes(Vec<Wanted>);

impl Changes {
    pub(super) fn add(&mut self, change: Change, knob: Option<&'static Knob>, reason: Reason) {
        self.0.push(Wanted { change, knob, reason });
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Wanted> {
        self.0.iter()
    }

    /// Each as `change` makes it; the checks of those of which nothing is left.
    pub(super) fn map(
        &mut self,
        change: impl Fn(Change, Option<&Knob>) -> Option<Change>,
    ) -> Vec<String> {
        let mut lost = Vec::new();
        for Wanted { change: one, knob, reason } in std::mem::take(&mut self.0) {
            match change(one, knob) {
                Some(change) => self.add(change, knob, reason),
                None => lost.extend(reason.checks),
            }
        }
        lost
    }

    /// The value that is written to a file, if all changes agree on it.
    pub(super) fn value_of(&self, file: &str) -> Option<&str> {
        let mut values = self.0.iter().filter_map(|wanted| match &wanted.change {
            Change::Value { path, value, .. } if path == file => Some(value.as_str()),
            _ => None,
        });
        let first = values.next()?;
        values.all(|value| value == first).then_some(first)
    }

    /// The values that a knob is set to, with the reasons.
    pub(super) fn values(&self, of: &'static Knob) -> impl Iterator<Item = (&str, &Reason)> {
        self.0.iter().filter_map(move |wanted| match &wanted.change {
            Change::Value { value, .. } if wanted.knob == Some(of) => {
                Some((value.as_str(), &wanted.reason))
            }
            _ => None,
        })
    }

    /// The steps in order, and what contradicts.
    pub(super) fn finish(self, facts: &Facts) -> (Vec<Step>, Vec<Conflict>) {
        let mut groups: Vec<(String, Vec<Wanted>)> = Vec::new();
        for wanted in self.0 {
            let target = wanted.change.target();
            match groups.iter_mut().find(|(known, _)| *known == target) {
                Some((_, group)) => group.push(wanted),
                None => groups.push((target, vec![wanted])),
            }
        }
        let (mut steps, mut conflicts) = (Vec::new(), Vec::new());
        for (target, group) in groups {
            match merged(&group) {
                Some(change) => {
                    let key = order::key(facts, &change, group[0].knob);
                    let reasons = group.into_iter().map(|wanted| wanted.reason);
                    let Some(reason) = reasons.reduce(Reason::merged) else { continue };
                    steps.push((key, Step { change, reason }));
                }
                None => conflicts.push(Conflict { target, requests: requests(&group) }),
            }
        }
        steps.sort_by(|(one, _), (other, _)| one.cmp(other));
        let steps = steps.into_iter().map(|(_, step)| step).collect();
        conflicts.sort_by(|one, other| one.target.cmp(&other.target));
        (steps, conflicts)
    }
}

fn requests(group: &[Wanted]) -> Vec<(String, String)> {
    let request = |one: &Wanted| (one.reason.checks.join(", "), one.change.wanted());
    group.iter().map(request).collect()
}

/// The one change that does what all want.
fn merged(group: &[Wanted]) -> Option<Change> {
    let mut changes = group.iter().map(|wanted| &wanted.change);
    let first = changes.next()?.clone();
    changes.try_fold(first, both)
}

fn both(one: Change, other: &Change) -> Option<Change> {
    if one == *other {
        return Some(one);
    }
    match (one, other) {
        (
            Change::Value { path, value, compare, mut couples },
            Change::Value { value: wanted, couples: more, .. },
        ) if value == *wanted => {
            couples.extend(
                more.iter().filter(|file| !couples.contains(file)).cloned().collect::<Vec<_>>(),
            );
            Some(Change::Value { path, value, compare, couples })
        }
        (Change::Unit { unit, want }, Change::Unit { want: wanted, .. }) => {
            Some(Change::Unit { unit, want: stronger(want, *wanted)? })
        }
        (Change::Task { task, set }, Change::Task { set: wanted, .. }) => {
            Some(Change::Task { task, set: together(set, wanted)? })
        }
        _ => None,
    }
}

/// Of two requests for a unit the one that includes the other.
fn stronger(one: UnitState, other: UnitState) -> Option<UnitState> {
    let strength = |want: UnitState| match want {
        UnitState::Stopped => (0, 0),
        UnitState::Disabled => (0, 1),
        UnitState::Masked => (0, 2),
        UnitState::Started => (1, 0),
        UnitState::Enabled => (1, 1),
    };
    let ((side, first), (other_side, second)) = (strength(one), strength(other));
    (side == other_side).then_some(if first < second { other } else { one })
}

/// Scheduling that has both: what one leaves alone, the other sets.
fn together(one: Scheduling, other: &Scheduling) -> Option<Scheduling> {
    fn field<T: Clone + PartialEq>(one: Option<T>, other: &Option<T>) -> Option<Option<T>> {
        match (one, other) {
            (Some(one), Some(other)) if one != *other => None,
            (one, other) => Some(one.or_else(|| other.clone())),
        }
    }
    Some(Scheduling {
        policy: field(one.policy, &other.policy)?,
        priority: field(one.priority, &other.priority)?,
        nice: field(one.nice, &other.nice)?,
        deadline_ns: field(one.deadline_ns, &other.deadline_ns)?,
        reset_on_fork: field(one.reset_on_fork, &other.reset_on_fork)?,
        cpus: field(one.cpus, &other.cpus)?,
    })
}
